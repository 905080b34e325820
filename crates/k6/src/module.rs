//! What modules of k6 have in common.

use rquickjs::function::IntoJsFunc;
use rquickjs::module::Exports;
use rquickjs::{Ctx, Function, Object, Result, Value};

/// Exports each of `names` with what it is in `module`; `default` is all of it, as in every module of k6.
pub(crate) fn export<'js>(exports: &Exports<'js>, module: &Object<'js>, names: &[&str]) -> Result<()> {
    for name in names {
        match *name {
            "default" => exports.export(*name, module.clone())?,
            name => exports.export(name, module.get::<_, Value<'js>>(name)?)?,
        };
    }
    Ok(())
}

/// Objects with functions in Rust.
pub(crate) trait Native<'js> {
    /// Gives the object a function. It does not know its name: that would take half as much memory again, for each user.
    fn native<P>(&self, name: &str, function: impl IntoJsFunc<'js, P> + 'js) -> Result<()>;
}

impl<'js> Native<'js> for Object<'js> {
    fn native<P>(&self, name: &str, function: impl IntoJsFunc<'js, P> + 'js) -> Result<()> {
        self.set(name, Function::new(self.ctx().clone(), function)?)
    }
}

/// Writes a warning to the console of the script.
pub(crate) fn warn(ctx: &Ctx<'_>, text: &str) -> Result<()> {
    let console: Object<'_> = ctx.globals().get("console")?;
    console.get::<_, Function<'_>>("warn")?.call((text,))
}
