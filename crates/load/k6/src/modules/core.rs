//! The module `k6`: checks, groups, and waiting.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::native::Native;
use crate::operations::K6;
use crate::user::{User, milliseconds, read_tags};
use crate::value::{Arg, TextArg};
use plimsoll_javascript::busy::spend;
use plimsoll_javascript::{EventLoop, NativeModule};
use plimsoll_k6_run::checks::SEPARATOR;
use plimsoll_k6_run::metrics::builtin;
use plimsoll_model::units::Nanos;
use rquickjs::function::Opt;
use rquickjs::{Coerced, Ctx, Exception, FromJs, Function, Object, Result, Value};
use std::rc::Rc;

/// See the module.
pub(crate) struct Core;

impl NativeModule for Core {
    const NAME: &'static str = "k6";
    const EXPORTS: &'static [&'static str] = &["default", "check", "fail", "group", "randomSeed", "sleep"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.native("check", check)?;
        module.native("fail", fail)?;
        module.native("group", group)?;
        module.native("randomSeed", random_seed)?;
        module.native("sleep", sleep)?;
        Ok(module)
    }
}

/// `check(value, { name: test, … }, tags)`: true if all tests hold.
fn check<'js>(ctx: Ctx<'js>, Arg(value): Arg<'js>, Arg(tests): Arg<'js>, tags: Opt<Value<'js>>) -> Result<bool> {
    let user = User::running(&ctx, "check()")?;
    let tags = read_tags(&ctx, tags.0)?;
    let Some(tests) = tests.as_object() else {
        let found = tests.type_name();
        return Err(Exception::throw_type(&ctx, &format!("expected an object of tests in check(), found {found}")));
    };
    let mut all = true;
    for test in tests.props::<String, Value<'js>>() {
        let (name, test) = test?;
        if is_async(&test)? {
            let what = format!("check() takes no async function as `{name}`: await its result before, and check that");
            return Err(Exception::throw_type(&ctx, &what));
        }
        let outcome = outcome(&ctx, &name, &value, test);
        let passed = *outcome.as_ref().unwrap_or(&false);
        record(&ctx, &user, &name, passed, &tags)?;
        all &= outcome?;
    }
    Ok(all)
}

/// The outcome of a test: the result of the function, or the test itself.
fn outcome<'js>(ctx: &Ctx<'js>, name: &str, value: &Value<'js>, test: Value<'js>) -> Result<bool> {
    let result = match test.as_function() {
        Some(function) => function.call((value.clone(),))?,
        None => test,
    };
    if result.is_promise() {
        let what = format!("the check `{name}` gives a promise: await it before, and check what it resolves to");
        return Err(Exception::throw_type(ctx, &what));
    }
    Ok(Coerced::<bool>::from_js(ctx, result)?.0)
}

/// True for an async function.
fn is_async(value: &Value<'_>) -> Result<bool> {
    let Some(function) = value.as_function() else { return Ok(false) };
    let kind: Object<'_> = function.get("constructor")?;
    Ok(kind.get::<_, String>("name")? == "AsyncFunction")
}

fn record(ctx: &Ctx<'_>, user: &User, name: &str, passed: bool, tags: &[(String, String)]) -> Result<()> {
    must_be_plain(ctx, name)?;
    let mut tags: Vec<(&str, &str)> = tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    if user.has_system_tag("check") {
        tags.push(("check", name));
    }
    let now = EventLoop::<K6>::of(ctx)?.now();
    user.add(now, &[(builtin::CHECKS, f64::from(passed))], &tags);
    // Checks are looked through by name. Nothing is borrowed while time is spent.
    let known = user.recording().checks().all().len();
    spend(known);
    let iteration = user.iteration();
    user.recording().check(iteration.scenario, &iteration.group, name, passed);
    Ok(())
}

/// Refuses a name with the separator of groups.
fn must_be_plain(ctx: &Ctx<'_>, name: &str) -> Result<()> {
    if name.contains(SEPARATOR) {
        let what = format!("expected a name without `{SEPARATOR}` for a group or check, found `{name}`");
        return Err(Exception::throw_message(ctx, &what));
    }
    Ok(())
}

/// `group(name, function)`: the result of the function.
fn group<'js>(ctx: Ctx<'js>, name: TextArg, Arg(function): Arg<'js>) -> Result<Value<'js>> {
    let user = User::running(&ctx, "group()")?;
    must_be_plain(&ctx, &name.0)?;
    let Some(function) = function.as_function() else {
        return Err(Exception::throw_type(&ctx, "expected a function as second argument of group()"));
    };
    if is_async(function.as_value())? {
        let what = "group() takes no async function: it would be left before that is over";
        return Err(Exception::throw_type(&ctx, what));
    }
    in_group(&ctx, &user, &name.0, function)
}

fn in_group<'js>(ctx: &Ctx<'js>, user: &User, name: &str, function: &Function<'js>) -> Result<Value<'js>> {
    let events = EventLoop::<K6>::of(ctx)?;
    let outer = Rc::clone(&user.iteration().group);
    let path: Rc<str> = format!("{outer}{SEPARATOR}{name}").into();
    user.recording().enter_group(user.iteration().scenario, &path);
    user.iteration_mut().group = path;
    let began = events.now();
    let result = function.call(());
    let now = events.now();
    user.add(now, &[(builtin::GROUP_DURATION, milliseconds(began, now))], &[]);
    user.iteration_mut().group = outer;
    result
}

/// `fail(message)`: ends the iteration.
fn fail(ctx: Ctx<'_>, message: Opt<Coerced<String>>) -> Result<()> {
    Err(Exception::throw_message(&ctx, &message.0.map(|message| message.0).unwrap_or_default()))
}

/// `randomSeed(seed)`: seeds `Math.random`.
fn random_seed(ctx: Ctx<'_>, seed: Coerced<f64>) -> Result<()> {
    User::of(&ctx)?.seed(seed.0.to_bits());
    Ok(())
}

/// `sleep(seconds)`.
fn sleep(ctx: Ctx<'_>, seconds: Coerced<f64>) -> Result<()> {
    EventLoop::<K6>::of(&ctx)?.sleep(&ctx, Nanos((seconds.0 * 1e9) as u64))
}
