//! Global objects that the engine lacks and every script expects: timers, a console, `open`, and variables that the
//! caller of the script sets.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::commonjs;
use crate::event_loop::{EventLoop, Level, OpId, Operations, Then, Wakeup};
use crate::exception::text;
use crate::files::FileError;
use crate::import_meta;
use crate::program::Program;
use crate::reading::beside;
use plimsoll_model::units::Nanos;
use rquickjs::function::{Opt, Rest};
use rquickjs::{
    ArrayBuffer, Coerced, Ctx, Exception, Function, IntoJs, Object, Persistent, Result, String as Text, Value,
};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A value that is passed into a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A number, cheaper than its JSON.
    Number(f64),
    /// A text in JSON.
    Json(Rc<str>),
    /// A text in JSON that a user parses once: each call gets the same object.
    SharedJson(Rc<str>),
}

/// The objects that a user has parsed from [`Argument::SharedJson`].
#[derive(Default)]
pub(crate) struct ParsedArguments<'js>(RefCell<Vec<(Rc<str>, Value<'js>)>>);

impl<'js> ParsedArguments<'js> {
    pub(crate) fn value(&self, ctx: &Ctx<'js>, argument: &Argument) -> Result<Value<'js>> {
        match argument {
            Argument::Number(number) => number.into_js(ctx),
            Argument::Json(text) => ctx.json_parse(text.as_bytes()),
            Argument::SharedJson(text) => self.shared(ctx, text),
        }
    }

    fn shared(&self, ctx: &Ctx<'js>, text: &Rc<str>) -> Result<Value<'js>> {
        let mut parsed = self.0.borrow_mut();
        if let Some((_, value)) = parsed.iter().find(|(known, _)| Rc::ptr_eq(known, text)) {
            return Ok(value.clone());
        }
        let value = ctx.json_parse(text.as_bytes())?;
        parsed.push((Rc::clone(text), value.clone()));
        Ok(value)
    }
}

/// Sets global variables.
pub(crate) fn set<'js>(ctx: &Ctx<'js>, parsed: &ParsedArguments<'js>, variables: &[(Rc<str>, Argument)]) -> Result<()> {
    let globals = ctx.globals();
    variables.iter().try_for_each(|(name, argument)| globals.set(&**name, parsed.value(ctx, argument)?))
}

/// Installs all global objects of this module.
pub(crate) fn install<'js, P: Operations>(ctx: &Ctx<'js>, program: &Arc<Program>) -> Result<()> {
    let globals = ctx.globals();
    globals.set("setTimeout", Function::new(ctx.clone(), set_timeout::<P>)?)?;
    globals.set("setInterval", Function::new(ctx.clone(), set_interval::<P>)?)?;
    globals.set("clearTimeout", Function::new(ctx.clone(), clear::<P>)?)?;
    globals.set("clearInterval", Function::new(ctx.clone(), clear::<P>)?)?;
    globals.set("console", console::<P>(ctx)?)?;
    commonjs::install::<P>(ctx, program)?;
    let program = Arc::clone(program);
    let open = move |ctx: Ctx<'js>, path: String, mode: Opt<String>| -> Result<Value<'js>> {
        open::<P>(&ctx, &program, &path, mode.0.as_deref())
    };
    globals.set("open", Function::new(ctx.clone(), open)?)
}

fn set_timeout<'js, P: Operations>(
    ctx: Ctx<'js>,
    function: Function<'js>,
    delay: Opt<Coerced<f64>>,
    arguments: Rest<Value<'js>>,
) -> Result<OpId> {
    begin_timer::<P>(&ctx, function, span(delay), None, arguments.0)
}

fn set_interval<'js, P: Operations>(
    ctx: Ctx<'js>,
    function: Function<'js>,
    period: Opt<Coerced<f64>>,
    arguments: Rest<Value<'js>>,
) -> Result<OpId> {
    // At least a millisecond, as in browsers: a user whose interval is always due would never let another run.
    let period = span(period).max(Nanos(1_000_000));
    begin_timer::<P>(&ctx, function, period, Some(period), arguments.0)
}

fn clear<P: Operations>(ctx: Ctx<'_>, id: Opt<Coerced<f64>>) -> Result<()> {
    if let Some(Coerced(id)) = id.0 {
        EventLoop::<P>::of(&ctx)?.cancel_timer(id as OpId);
    }
    Ok(())
}

/// A span of milliseconds. Nothing and negative numbers are zero.
fn span(milliseconds: Opt<Coerced<f64>>) -> Nanos {
    let milliseconds = milliseconds.0.map_or(0.0, |given| given.0);
    Nanos((milliseconds * 1e6) as u64)
}

fn begin_timer<'js, P: Operations>(
    ctx: &Ctx<'js>,
    function: Function<'js>,
    delay: Nanos,
    period: Option<Nanos>,
    arguments: Vec<Value<'js>>,
) -> Result<OpId> {
    let events = EventLoop::<P>::of(ctx)?;
    let function = Persistent::save(ctx, function);
    let arguments = Persistent::save(ctx, arguments);
    let due = events.now().after(delay);
    let handler = move |ctx: &Ctx<'_>, _: Wakeup<P::Event>| {
        let function: Function<'_> = function.clone().restore(ctx)?;
        function.call::<_, ()>((Rest(arguments.clone().restore(ctx)?),))?;
        let again = |period| Ok(Then::At(EventLoop::<P>::of(ctx)?.now().after(period)));
        period.map_or(Ok(Then::Done), again)
    };
    Ok(events.at(due, Box::new(handler)))
}

fn console<'js, P: Operations>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let console = Object::new(ctx.clone())?;
    let methods = [
        ("debug", Level::Debug),
        ("log", Level::Info),
        ("info", Level::Info),
        ("warn", Level::Warn),
        ("error", Level::Error),
    ];
    for (name, level) in methods {
        let write = move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<()> {
            let words: Vec<String> = values.0.into_iter().map(|value| formatted(&ctx, value)).collect();
            EventLoop::<P>::of(&ctx)?.host().console(level, &words.join(" "));
            Ok(())
        };
        console.set(name, Function::new(ctx.clone(), write)?)?;
    }
    Ok(console)
}

/// A value in the form of `console.log`: errors with their stack, other objects as JSON.
fn formatted<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> String {
    if let Some(error) = value.as_exception() {
        let stack = error.stack().unwrap_or_default();
        return format!("{}\n{stack}", text(ctx, value)).trim_end().to_owned();
    }
    if value.is_object() && !value.is_function() {
        match ctx.json_stringify(value.clone()) {
            Ok(Some(json)) => return json.to_string().unwrap_or_default(),
            Ok(None) => {}
            Err(_) => drop(ctx.catch()),
        }
    }
    text(ctx, value)
}

/// `open(path)` returns a file as text, `open(path, "b")` as bytes. The path is relative to the calling module. It works
/// only while the script is loaded: later it would read files in the middle of a measurement.
fn open<'js, P: Operations>(ctx: &Ctx<'js>, program: &Program, path: &str, mode: Option<&str>) -> Result<Value<'js>> {
    if !EventLoop::<P>::of(ctx)?.is_loading() {
        let message = "open() works only while the script is loaded: call it outside of functions";
        return Err(Exception::throw_message(ctx, message));
    }
    // The caller may be a function of the engine: `files.map(open)`.
    let caller = (0..4).find_map(|level| ctx.script_or_module_name(level)?.to_string().ok());
    let caller = caller.as_deref().unwrap_or(program.entry());
    let path = import_meta::file_of(caller, path).unwrap_or_else(|| beside(caller, path));
    let unread = |error: FileError| {
        let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
        Exception::throw_message(ctx, &format!("{error}{help}"))
    };
    let content = program.files().read(Path::new(&path)).map_err(unread)?;
    match mode {
        Some("b") => Ok(ArrayBuffer::new_copy(ctx.clone(), &content)?.into_value()),
        _ => Ok(Text::from_str(ctx.clone(), &String::from_utf8_lossy(&content))?.into_value()),
    }
}
