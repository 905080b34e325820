//! Converts errors of the engine into [`Exception`]s with their place.

use crate::access;
use crate::fault::{Exception, Place};
use crate::program::Program;
use crate::stack::places;
use rquickjs::function::Constructor;
use rquickjs::{CaughtError, Coerced, Ctx, Error, FromJs, Value};

/// The exception of an error. Of several places, the first in the script's own code counts: natives have none.
pub(crate) fn caught(ctx: &Ctx<'_>, program: &Program, error: Error) -> Exception {
    of_caught(ctx, program, CaughtError::from_error(ctx, error))
}

/// The exception of an error that was taken from the engine.
pub(crate) fn of_caught<'js>(ctx: &Ctx<'js>, program: &Program, error: CaughtError<'js>) -> Exception {
    match error {
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
    let stack = with_first_lines(&stack, program, found.as_ref().map(|(_, place)| place));
    let place = found.map(|(_, place)| place);
    let message = with_circle(helped(message), program, place.as_ref());
    Exception { message, place, stack }
}

/// The stack with the true columns of calls on the first line of a file, of which the engine counts those of modules of
/// CommonJS behind what it compiles them in. `done` is true already.
fn with_first_lines(stack: &str, program: &Program, done: Option<&Place>) -> String {
    let line = |line: &str| {
        let told = places(line).next().filter(|(_, line, _)| *line == 1);
        let place = told.and_then(|(file, line, column)| program.place(file, line, column, None));
        match (told, place) {
            (Some((file, number, column)), Some(place))
                if !done.is_some_and(|done| line.contains(&done.to_string())) =>
            {
                line.replacen(&format!("{file}:{number}:{column}"), &place.to_string(), 1) + "\n"
            }
            _ => format!("{line}\n"),
        }
    };
    stack.lines().map(line).collect()
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

/// The message, with help if the script mixes two systems of modules.
fn helped(message: String) -> String {
    match message.as_str() {
        "ReferenceError: module is not defined" | "ReferenceError: exports is not defined" => format!(
            "{message}: a file with `import` or `export` is an ECMAScript module, use `export`, such as `export default function () {{ … }}`"
        ),
        _ => message,
    }
}

/// Adds to an exception of modules that are loaded the imports that led to the outermost one.
pub(crate) fn with_imports(program: &Program, mut exception: Exception) -> Exception {
    let outermost = places(&exception.stack).last().map(|(file, ..)| program.import_chain(file).0);
    for place in outermost.iter().flatten() {
        exception.stack.push_str(&format!("    imported at {place}\n"));
    }
    exception
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
