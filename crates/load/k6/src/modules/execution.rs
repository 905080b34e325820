//! The module `k6/execution`: the state of the run, and calls that end or fail it.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::native::Native;
use crate::operations::K6;
use crate::user::{Iteration, RunState, User, read_tag};
use jiff::Timestamp;
use plimsoll_javascript::{EventLoop, NativeModule};
use plimsoll_k6_run::scenario::Scenario;
use plimsoll_model::units::Instant;
use rquickjs::function::Opt;
use rquickjs::object::Accessor;
use rquickjs::proxy::{Proxy, ProxyHandler};
use rquickjs::{Coerced, Ctx, Exception, IntoJs, Object, Result, Value};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// See the module.
pub(crate) struct Execution;

impl NativeModule for Execution {
    const NAME: &'static str = "k6/execution";
    const EXPORTS: &'static [&'static str] = &["default", "instance", "scenario", "test", "vu"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.set("instance", instance(ctx)?)?;
        module.set("scenario", scenario(ctx)?)?;
        module.set("test", test(ctx)?)?;
        module.set("vu", vu(ctx)?)?;
        Ok(module)
    }
}

/// Adds a property that is computed at each read.
fn getter<'js, V: IntoJs<'js> + 'js>(
    object: &Object<'js>,
    name: &str,
    get: impl Fn(Ctx<'js>) -> Result<V> + 'js,
) -> Result<()> {
    object.prop(name, Accessor::from(get).enumerable().configurable())
}

/// A counter of the run.
type Counter = fn(&RunState) -> &AtomicU64;

fn instance<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let counters: [(&str, Counter); 4] = [
        ("iterationsCompleted", |run| &run.counts.iterations),
        ("iterationsInterrupted", |run| &run.counts.interrupted),
        ("vusActive", |run| &run.counts.users),
        ("vusInitialized", |run| &run.counts.users_made),
    ];
    for (name, counter) in counters {
        getter(&object, name, move |ctx| Ok(counter(User::of(&ctx)?.run()).load(Relaxed) as f64))?;
    }
    getter(&object, "currentTestRunDuration", |ctx| {
        let whole = User::of(&ctx)?.run().finished_parts() + elapsed(&ctx)?;
        Ok(whole.as_secs_f64() * 1e3)
    })?;
    Ok(object)
}

/// The time since the start of this part of the run: `setup`, the scenarios, or `teardown`.
fn elapsed(ctx: &Ctx<'_>) -> Result<Duration> {
    Ok(EventLoop::<K6>::of(ctx)?.now().since(Instant(0)).into())
}

fn scenario<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    getter(&object, "name", |ctx| in_scenario(&ctx, |_, scenario, _| Ok(scenario.name.clone())))?;
    getter(&object, "executor", |ctx| in_scenario(&ctx, |_, scenario, _| Ok(scenario.executor.name())))?;
    getter(&object, "startTime", |ctx| {
        let begun = |_: &User, scenario: &Scenario, _| {
            let ago = elapsed(&ctx)?.saturating_sub(scenario.start_time);
            Ok((Timestamp::now().as_millisecond() - ago.as_millis() as i64) as f64)
        };
        in_scenario(&ctx, begun)
    })?;
    getter(&object, "progress", |ctx| {
        in_scenario(&ctx, |user, _, index| Ok(user.run().progress(index, elapsed(&ctx)?)))
    })?;
    getter(&object, "iterationInInstance", |ctx| {
        in_scenario(&ctx, |user, _, _| Ok(user.iteration().in_process as f64))
    })?;
    getter(&object, "iterationInTest", |ctx| in_scenario(&ctx, |user, _, _| Ok(user.iteration().in_test as f64)))?;
    Ok(object)
}

/// Calls `ask` with the present scenario of the user and its index.
fn in_scenario<T>(ctx: &Ctx<'_>, ask: impl FnOnce(&User, &Scenario, usize) -> Result<T>) -> Result<T> {
    let user = User::of(ctx)?;
    let index = user.iteration().scenario;
    let Some(index) = index else {
        return Err(Exception::throw_message(ctx, "exec.scenario is there only while a scenario runs"));
    };
    ask(&user, &user.run().scenarios[index], index)
}

fn test<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.native("abort", abort)?;
    object.native("fail", fail)?;
    getter(&object, "options", |ctx: Ctx<'js>| -> Result<Value<'js>> {
        let user = User::running(&ctx, "exec.test.options")?;
        ctx.json_parse(user.options().to_json().to_string())
    })?;
    Ok(object)
}

/// `exec.test.abort(message)`: ends the run. The thread that runs the user stops it while it is parked.
fn abort(ctx: Ctx<'_>, message: Opt<Coerced<String>>) -> Result<()> {
    let message = message.0.map(|message| message.0).unwrap_or_default();
    let user = User::of(&ctx)?;
    let _ = user.run().abort.set(message);
    user.iteration_mut().aborts = true;
    loop {
        EventLoop::<K6>::of(&ctx)?.next(&ctx, &[])?;
    }
}

/// `exec.test.fail(message)`: marks the run as failed; it goes on.
fn fail(ctx: Ctx<'_>, message: Opt<Coerced<String>>) -> Result<()> {
    let message = message.0.map(|message| message.0).unwrap_or_default();
    let _ = User::of(&ctx)?.run().failure.set(message);
    Ok(())
}

fn vu<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for name in ["idInInstance", "idInTest"] {
        getter(&object, name, |ctx| Ok(User::of(&ctx)?.id as f64))?;
    }
    getter(&object, "iterationInInstance", |ctx| Ok(User::of(&ctx)?.iteration().in_instance as f64))?;
    getter(&object, "iterationInScenario", |ctx| {
        in_scenario(&ctx, |user, _, _| Ok(user.iteration().in_scenario as f64))
    })?;
    let tags = Labels::Tags.object(ctx)?;
    object.set("tags", tags.clone())?;
    let metrics = Object::new(ctx.clone())?;
    metrics.set("tags", tags)?;
    getter(&metrics, "metadata", |ctx| Labels::Metadata.object(&ctx))?;
    object.set("metrics", metrics)?;
    Ok(object)
}

/// Labels of all samples of the user, which a script may change.
#[derive(Clone, Copy, PartialEq)]
enum Labels {
    /// Tags of samples.
    Tags,
    /// Metadata of samples.
    Metadata,
}

impl Labels {
    /// The object with which scripts read and write them.
    fn object<'js>(self, ctx: &Ctx<'js>) -> Result<Proxy<'js>> {
        let handler = Object::new(ctx.clone())?;
        handler.native("get", move |ctx: Ctx<'js>, _: Object<'js>, name: Value<'js>| self.get(&ctx, &name))?;
        handler.native(
            "set",
            move |ctx: Ctx<'js>, _: Object<'js>, name: String, value: Value<'js>| -> Result<bool> {
                self.set(&ctx, name, value)
            },
        )?;
        handler.native("has", move |ctx: Ctx<'js>, _: Object<'js>, name: Value<'js>| -> Result<bool> {
            Ok(self.get(&ctx, &name)?.is_some())
        })?;
        handler.native("deleteProperty", move |ctx: Ctx<'js>, _: Object<'js>, name: String| -> Result<bool> {
            self.of(&mut User::of(&ctx)?.iteration_mut()).retain(|(label, _)| *label != name);
            Ok(true)
        })?;
        handler.native("ownKeys", move |ctx: Ctx<'js>| self.names(&ctx))?;
        let descriptor = move |ctx: Ctx<'js>, _: Object<'js>, name: Value<'js>| -> Result<Option<Object<'js>>> {
            let Some(value) = self.get(&ctx, &name)? else { return Ok(None) };
            let descriptor = Object::new(ctx)?;
            descriptor.set("value", value)?;
            ["configurable", "enumerable", "writable"].iter().try_for_each(|flag| descriptor.set(*flag, true))?;
            Ok(Some(descriptor))
        };
        handler.native("getOwnPropertyDescriptor", descriptor)?;
        Proxy::new(ctx.clone(), Object::new(ctx.clone())?, ProxyHandler::from_object(handler)?)
    }

    fn all(self, iteration: &Iteration) -> &[(String, String)] {
        match self {
            Labels::Tags => &iteration.tags,
            Labels::Metadata => &iteration.metadata,
        }
    }

    fn of(self, iteration: &mut Iteration) -> &mut Vec<(String, String)> {
        match self {
            Labels::Tags => Rc::make_mut(&mut iteration.tags),
            Labels::Metadata => Rc::make_mut(&mut iteration.metadata),
        }
    }

    /// The value of a label; None for symbols.
    fn get(self, ctx: &Ctx<'_>, name: &Value<'_>) -> Result<Option<String>> {
        let Some(name) = name.as_string() else { return Ok(None) };
        let (user, name) = (User::of(ctx)?, name.to_string()?);
        let iteration = user.iteration();
        if self == Labels::Tags && name == "group" {
            return Ok(Some(iteration.group.to_string()));
        }
        Ok(self.all(&iteration).iter().find(|(label, _)| *label == name).map(|(_, value)| value.clone()))
    }

    fn set<'js>(self, ctx: &Ctx<'js>, name: String, value: Value<'js>) -> Result<bool> {
        let (name, value) = read_tag(ctx, name, value)?;
        let user = User::of(ctx)?;
        let mut iteration = user.iteration_mut();
        let labels = self.of(&mut iteration);
        labels.retain(|(label, _)| *label != name);
        labels.push((name, value));
        Ok(true)
    }

    fn names(self, ctx: &Ctx<'_>) -> Result<Vec<String>> {
        let user = User::of(ctx)?;
        let iteration = user.iteration();
        let group = (self == Labels::Tags).then(|| "group".to_owned());
        Ok(group.into_iter().chain(self.all(&iteration).iter().map(|(name, _)| name.clone())).collect())
    }
}
