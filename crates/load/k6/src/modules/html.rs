//! The module `k6/html`: pages of HTML, and what is selected in them as jQuery would.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

mod document;
mod element;
mod form;
mod render;
mod selection;
mod selector;
#[cfg(test)]
mod tests;
mod typed;

pub(crate) use form::{FormValue, fields, value_of};
pub(crate) use selection::Selection;
pub(crate) use selector::Selector;

use crate::native::Native;
use crate::value::TextArg;
use plimsoll_javascript::NativeModule;
use rquickjs::{Class, Ctx, Object, Result};

/// See the module.
pub(crate) struct Html;

impl NativeModule for Html {
    const NAME: &'static str = "k6/html";
    const EXPORTS: &'static [&'static str] = &["default", "parseHTML"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        object.native("parseHTML", parse_html)?;
        Ok(object)
    }
}

fn parse_html<'js>(ctx: Ctx<'js>, text: TextArg) -> Result<Class<'js, Selection>> {
    let page = Selection::of_page(&ctx, &text.0, "")?;
    Class::instance(ctx, page)
}
