//! The module `k6/timers`: the timers that scripts also find as global functions.

use plimsoll_javascript::NativeModule;
use rquickjs::{Ctx, Object, Result, Value};

/// See the module.
pub(crate) struct Timers;

impl NativeModule for Timers {
    const NAME: &'static str = "k6/timers";
    const EXPORTS: &'static [&'static str] = &["default", "setTimeout", "clearTimeout", "setInterval", "clearInterval"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let (module, globals) = (Object::new(ctx.clone())?, ctx.globals());
        for name in &Self::EXPORTS[1..] {
            module.set(*name, globals.get::<_, Value<'js>>(*name)?)?;
        }
        Ok(module)
    }
}
