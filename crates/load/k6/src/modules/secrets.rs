//! The module `k6/secrets`: secrets that neither the script nor its environment has.

use crate::native::Native;
use crate::secrets::DEFAULT;
use crate::user::User;
use crate::value::{TextArg, settled, thrown};
use plimsoll_javascript::NativeModule;
use rquickjs::{Ctx, IntoJs, Object, Promise, Result};

/// See the module.
pub(crate) struct Secrets;

impl NativeModule for Secrets {
    const NAME: &'static str = "k6/secrets";
    const EXPORTS: &'static [&'static str] = &["default"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = source(ctx, DEFAULT.to_owned())?;
        module.native("source", |ctx: Ctx<'js>, name: TextArg| source(&ctx, name.0))?;
        Ok(module)
    }
}

/// A source, whose `get(name)` is a promise of a secret.
fn source<'js>(ctx: &Ctx<'js>, source: String) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let get = move |ctx: Ctx<'js>, name: TextArg| -> Result<Promise<'js>> {
        settled(&ctx, |ctx| {
            let found = User::of(ctx)?.run().secrets.get(&source, &name.0);
            found.map_err(|fault| thrown(ctx, fault))?.into_js(ctx)
        })
    };
    object.native("get", get)?;
    Ok(object)
}
