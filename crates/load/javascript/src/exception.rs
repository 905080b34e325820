//! Converts errors of the engine into [`Exception`]s with their place.

use crate::access;
use crate::fault::{Exception, Place};
use crate::program::Program;
use crate::stack::places;
use rquickjs::function::Constructor;
use rquickjs::{CaughtError, Coerced, Ctx, Error, FromJs, Value};

/// The exception of an error. Of several places, the first in the script's own code counts: natives have none.
pub(crate) fn caught(ctx: &Ctx<'_>, program: &Program, error: Error) -> Exception {
    match CaughtError::from_error(ctx, error) {
        CaughtError::Exception(error) => of_value(ctx, program, &error.into_object().into_value()),
        CaughtError::Value(value) => of_value(ctx, program, &value),
        CaughtError::Error(error) => Exception { message: error.to_string(), place: None, stack: String::new() },
    }
}

/// The exception of a thrown value, or of the reason of a rejected promise.
pub(crate) fn of_value<'js>(ctx: &Ctx<'js>, program: &Program, value: &Value<'js>) -> Exception {
    let message = text(ctx, value.clone());
    let mut stack = value.as_exception().and_then(rquickjs::Exception::stack).unwrap_or_default();
    // For an exception of a native, only the place of the call is known.
    let is_own = stack.lines().next().is_some_and(|first| places(first).next().is_some());
    let about_name = Some(message.as_str()).filter(|message| is_own && access::name_in(message).is_some());
    let found = places(&stack).find_map(|(file, line, column)| {
        let place = program.place(file, line, column, about_name)?;
        Some((format!("{file}:{line}:{column}"), place))
    });
    // The engine counts columns in another way. The stack must show the same place.
    if let Some((told, place)) = &found {
        stack = stack.replacen(told, &place.to_string(), 1);
    }
    let place = found.map(|(_, place)| place);
    let message = with_circle(helped(message), program, place.as_ref());
    Exception { message, place, stack }
}

/// The place in the script that runs now, or from which the native was called that runs.
pub(crate) fn here(ctx: &Ctx<'_>, program: &Program) -> Option<Place> {
    // The engine gives a stack only to errors that their constructor makes, or that were thrown to their end.
    let error = ctx.globals().get::<_, Constructor<'_>>("Error").and_then(|error| error.construct::<_, Value<'_>>(()));
    match error {
        Ok(error) => of_value(ctx, program, &error).place,
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

/// The message, with the circle of imports that may be why something does not exist yet.
fn with_circle(message: String, program: &Program, place: Option<&Place>) -> String {
    let circle =
        place.filter(|_| message.ends_with("is not initialized")).and_then(|place| program.circle(&place.file));
    match circle {
        Some(circle) => format!(
            "{message}: modules that import one another in a circle run before what they import exists: {}",
            circle.join(" → ")
        ),
        None => message,
    }
}

/// The message, with help if the script expects to be a module of Node.js.
fn helped(message: String) -> String {
    let help = match message.as_str() {
        "ReferenceError: require is not defined" => "use `import`, such as `import http from 'k6/http'`",
        "ReferenceError: module is not defined" | "ReferenceError: exports is not defined" => {
            "use `export`, such as `export default function () { … }`"
        }
        _ => return message,
    };
    format!("{message}: scripts are ECMAScript modules, {help}")
}

/// `String(value)`. A value whose conversion throws has a fixed text.
pub(crate) fn text<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> String {
    let text = match value.as_symbol() {
        Some(_) => return "a symbol".to_owned(),
        None => Coerced::<String>::from_js(ctx, value),
    };
    text.map(|text| text.0).unwrap_or_else(|_| {
        ctx.catch();
        "a value that has no text".to_owned()
    })
}
