//! Properties of elements by their name: attributes, and related elements.
//!
//! Each name has a prototype of its own, made for the first such element. `kinds` is the table of names and their properties,
//! `related` finds what a property needs of other elements.

mod kinds;
mod related;

use super::document::{Direction, Document};
use super::element::Element;
use crate::native::Native;
use ego_tree::NodeId;
use kinds::KINDS;
use plimsoll_web::url::Parts;
use rquickjs::function::This;
use rquickjs::object::Property;
use rquickjs::{Class, Ctx, IntoJs, Object, Result, Value};

/// How a property gets its value.
#[derive(Clone, Copy)]
enum Reads {
    /// The text of an attribute; empty without one.
    Text(&'static str),
    /// The same as a URL, resolved against the page.
    Address(&'static str),
    /// True if the attribute is present.
    Flag(&'static str),
    /// A whole number, with a default.
    Whole(&'static str, i32),
    /// One of these texts; the first is the default.
    OneOf(&'static str, &'static [&'static str]),
    /// One of these texts, or undefined.
    Perhaps(&'static str, &'static [&'static str]),
    /// A constant.
    Fixed(&'static str),
    Nothing,
    /// A part of its `href`.
    Part(fn(&Parts<'_>) -> String),
    /// Another value that is no element.
    Made(fn(&Document, NodeId) -> Made),
    /// An element, if there is one.
    One(fn(&Document, NodeId) -> Option<NodeId>),
    /// Elements.
    Several(fn(&Document, NodeId) -> Vec<NodeId>),
}

/// Properties that are no plain attributes.
pub(super) enum Made {
    Text(String),
    Texts(Vec<String>),
    Number(f64),
    Truth(bool),
}

use Reads::{Address, Fixed, Flag, Nothing, One, OneOf, Part, Perhaps, Several, Text, Whole};

/// The prototype of elements of this name, kept on the prototype that all elements share.
pub(super) fn prototype<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Option<Object<'js>>> {
    let Some(shared) = Class::<Element>::prototype(ctx)? else { return Ok(None) };
    let of_name: Vec<&(&str, Reads)> =
        KINDS.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, functions)| *functions).collect();
    if of_name.is_empty() {
        return Ok(Some(shared));
    }
    let key = format!("<{name}>");
    if let Some(made) = shared.get::<_, Option<Object<'js>>>(&*key)? {
        return Ok(Some(made));
    }
    let made = Object::new(ctx.clone())?;
    made.set_prototype(Some(&shared))?;
    for (function, reads) in of_name {
        let reads = *reads;
        let read = move |ctx: Ctx<'js>, this: This<Class<'js, Element>>| reads.value(&ctx, &this.0.borrow());
        made.native(function, read)?;
    }
    shared.prop(&*key, Property::from(made.clone()))?;
    Ok(Some(made))
}

impl Reads {
    fn value<'js>(self, ctx: &Ctx<'js>, element: &Element) -> Result<Value<'js>> {
        let (page, id) = (element.document(), element.node());
        let attribute = |name: &str| page.attribute(id, name);
        match self {
            Text(name) => attribute(name).unwrap_or_default().into_js(ctx),
            Address(name) => attribute(name).map(|found| page.address(found)).unwrap_or_default().into_js(ctx),
            Flag(name) => attribute(name).is_some().into_js(ctx),
            Whole(name, otherwise) => integer_or(attribute(name), otherwise).into_js(ctx),
            OneOf(name, texts) => one_of(attribute(name), texts).into_js(ctx),
            Perhaps(name, texts) => match attribute(name).filter(|text| texts.contains(text)) {
                Some(text) => text.into_js(ctx),
                None => Ok(Value::new_undefined(ctx.clone())),
            },
            Fixed(text) => text.into_js(ctx),
            Nothing => Ok(Value::new_undefined(ctx.clone())),
            Part(of) => {
                let href = attribute("href").map(|href| page.address(href)).unwrap_or_default();
                of(&Parts::split(&href)).into_js(ctx)
            }
            Reads::Made(make) => make(page, id).into_js(ctx),
            One(find) => element.other(ctx, find(page, id)),
            Several(find) => element.others(ctx, find(page, id))?.into_js(ctx),
        }
    }
}

impl<'js> IntoJs<'js> for Made {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Made::Text(text) => text.into_js(ctx),
            Made::Texts(texts) => texts.into_js(ctx),
            Made::Number(number) => number.into_js(ctx),
            Made::Truth(truth) => truth.into_js(ctx),
        }
    }
}

fn integer_or(text: Option<&str>, otherwise: i32) -> i32 {
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn one_of(found: Option<&str>, texts: &[&str]) -> String {
    found.filter(|found| texts.contains(found)).unwrap_or(texts[0]).to_owned()
}
