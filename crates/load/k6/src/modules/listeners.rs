//! Listeners of a socket or stream: functions of the script that its events call.
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]

use crate::user::warn;
use crate::value::thrown;
use rquickjs::class::Trace;
use rquickjs::function::IntoArgs;
use rquickjs::{Array, Ctx, Function, JsLifetime, Object, Result, Value};

/// All listeners of one socket or stream.
#[derive(Clone, Trace, JsLifetime)]
pub(crate) struct Listeners<'js> {
    /// An array of functions for each event.
    by_event: Object<'js>,
}

impl<'js> Listeners<'js> {
    pub(crate) fn new(ctx: &Ctx<'js>) -> Result<Listeners<'js>> {
        Ok(Listeners { by_event: Object::new(ctx.clone())? })
    }

    /// Adds a listener of an event, which should be one of `known`.
    ///
    /// # Errors
    /// It is no function.
    pub(crate) fn register(&self, known: &[&str], event: &str, listener: Option<Value<'js>>) -> Result<()> {
        let ctx = self.by_event.ctx();
        let Some(listener) = listener.and_then(Value::into_function) else {
            return Err(thrown(ctx, format!("handler for event \"{event}\" isn't a callable function")));
        };
        if !known.contains(&event) {
            return warn(ctx, &format!("can't add event handler: there is no event `{event}`"));
        }
        self.add(event, listener)
    }

    pub(crate) fn add(&self, event: &str, function: Function<'js>) -> Result<()> {
        let known = self.by_event.get::<_, Option<Array<'js>>>(event)?;
        let listeners = known.map_or_else(|| Array::new(self.by_event.ctx().clone()), Ok)?;
        listeners.set(listeners.len(), function)?;
        self.by_event.set(event, listeners)
    }

    pub(crate) fn of(&self, event: &str) -> Result<Vec<Function<'js>>> {
        let known = self.by_event.get::<_, Option<Array<'js>>>(event)?;
        known.map_or(Ok(Vec::new()), |listeners| listeners.iter().collect())
    }

    /// Calls the listeners of an event, in the order in which they were added.
    #[expect(clippy::needless_pass_by_value, reason = "callers make them on the spot")]
    pub(crate) fn call(&self, event: &str, arguments: impl IntoArgs<'js> + Clone) -> Result<()> {
        let call = |listener: Function<'js>| listener.call::<_, Value<'js>>(arguments.clone()).map(drop);
        self.of(event)?.into_iter().try_for_each(call)
    }
}
