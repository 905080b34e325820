//! Properties of elements by their name: attributes, and related elements.
//!
//! Attributes are lines of a table. Each name has a prototype of its own, made for the first such
//! element.

use super::document::{Direction, Document};
use super::element::Element;
use crate::native::Native;
use ego_tree::NodeId;
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

const REFERRERS: Reads = OneOf(
    "referrerpolicy",
    &["", "no-referrer", "no-referrer-when-downgrade", "origin", "origin-when-cross-origin", "unsafe-url"],
);
const ORIGINS: Reads = Perhaps("crossorigin", &["anonymous", "use-credentials"]);
const ENCODINGS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
const METHODS: [&str; 2] = ["get", "post"];
const ON_OR_OFF: Reads = OneOf("autocomplete", &["on", "off"]);
const INPUTS: Reads = OneOf(
    "type",
    &[
        "text",
        "button",
        "checkbox",
        "color",
        "date",
        "datetime-local",
        "email",
        "file",
        "hidden",
        "image",
        "month",
        "number",
        "password",
        "radio",
        "range",
        "reset",
        "search",
        "submit",
        "tel",
        "time",
        "url",
        "week",
    ],
);
const FORM: (&str, Reads) = ("form", One(owner));
const LABELS: (&str, Reads) = ("labels", Several(labels));
const CONTENT: Reads = Reads::Made(|page, id| Made::Text(page.text(id)));
const VALUE: Reads = Reads::Made(|page, id| Made::Text(value(page, id)));
const RELATIONS: Reads = Reads::Made(|page, id| {
    let words = page.attribute(id, "rel").unwrap_or_default().split(' ').filter(|word| !word.is_empty());
    Made::Texts(words.map(str::to_owned).collect())
});
const FIELDS: [&str; 5] = ["input", "select", "button", "textarea", "fieldset"];
const ROWS: (&str, Reads) = ("rows", Several(|page, id| page.below(id, &["tr"])));

/// Functions by their names.
type Functions = &'static [(&'static str, Reads)];

/// Names of elements and their properties. Later lines take precedence.
const KINDS: &[(&[&str], Functions)] = &[
    (
        &["a", "area"],
        &[
            ("download", Text("download")),
            ("referrerPolicy", REFERRERS),
            ("rel", Text("rel")),
            ("relList", RELATIONS),
            ("href", Address("href")),
            ("toString", Address("href")),
            ("target", Text("target")),
            ("type", Text("type")),
            ("accessKey", Text("accesskey")),
            ("hrefLang", Text("hreflang")),
            ("text", CONTENT),
            ("hash", Part(|url| behind("#", url.fragment))),
            ("host", Part(host)),
            ("hostname", Part(|url| address(url).1.to_owned())),
            ("port", Part(|url| address(url).2.to_owned())),
            ("username", Part(|url| user(url).0.to_owned())),
            ("password", Part(|url| user(url).1.to_owned())),
            ("origin", Part(origin)),
            ("pathname", Part(|url| url.path.to_owned())),
            ("protocol", Part(|url| url.scheme.unwrap_or(":").to_owned())),
            ("search", Part(|url| behind("?", url.query))),
        ],
    ),
    (
        &["audio", "video"],
        &[
            ("autoplay", Flag("autoplay")),
            ("controls", Flag("controls")),
            ("loop", Flag("loop")),
            ("muted", Flag("muted")),
            ("defaultMuted", Flag("muted")),
            ("preload", OneOf("preload", &["auto", "metadata", "none"])),
            ("src", Address("src")),
            ("currentSrc", Text("src")),
            ("crossOrigin", ORIGINS),
            ("mediaGroup", Text("mediagroup")),
            ("textTracks", Several(|page, id| page.below(id, &["track"]))),
        ],
    ),
    (
        &["button", "input"],
        &[
            FORM,
            LABELS,
            ("name", Text("name")),
            ("disabled", Flag("disabled")),
            ("autofocus", Flag("autofocus")),
            ("accessKey", Text("accesskey")),
            ("tabIndex", Whole("tabindex", 0)),
            ("formAction", Reads::Made(|page, id| Made::Text(page.address(of_form(page, id, "action").unwrap_or(""))))),
            ("formEnctype", Reads::Made(|page, id| Made::Text(one_of(of_form(page, id, "enctype"), &ENCODINGS)))),
            ("formMethod", Reads::Made(form_method)),
            ("formTarget", Reads::Made(|page, id| text(of_form(page, id, "target")))),
            ("formNoValidate", Reads::Made(|page, id| Made::Truth(of_form(page, id, "novalidate").is_some()))),
        ],
    ),
    (&["button"], &[("type", OneOf("type", &["submit", "button", "menu", "reset"])), ("value", VALUE)]),
    (
        &["input"],
        &[
            ("type", INPUTS),
            ("required", Flag("required")),
            ("value", Text("value")),
            ("defaultValue", Text("value")),
            ("checked", Flag("checked")),
            ("defaultChecked", Flag("checked")),
            ("alt", Text("alt")),
            ("src", Address("src")),
            ("height", Text("height")),
            ("width", Text("width")),
            ("accept", Text("accept")),
            ("autocomplete", ON_OR_OFF),
            ("maxLength", Whole("maxlength", -1)),
            ("size", Whole("size", 0)),
            ("pattern", Text("pattern")),
            ("placeholder", Text("placeholder")),
            ("readonly", Flag("readonly")),
            ("min", Text("min")),
            ("max", Text("max")),
            ("dirName", Text("dirname")),
            ("multiple", Flag("multiple")),
            ("step", Text("step")),
            ("list", One(list)),
        ],
    ),
    (&["base"], &[("href", Address("href")), ("target", Text("target"))]),
    (&["canvas"], &[("width", Whole("width", 150)), ("height", Whole("height", 150))]),
    (&["data", "param", "pre"], &[("name", Text("name")), ("value", Text("value"))]),
    (&["datalist"], &[("options", Several(|page, id| page.below(id, &["option"])))]),
    (&["del", "ins"], &[("cite", Text("cite")), ("datetime", Text("datetime"))]),
    (&["time"], &[("datetime", Text("datetime"))]),
    (&["quote"], &[("cite", Text("cite"))]),
    (&["embed"], &[("height", Text("height")), ("width", Text("width")), ("src", Text("src")), ("type", Text("type"))]),
    (
        &["fieldset"],
        &[
            FORM,
            ("disabled", Flag("disabled")),
            ("name", Text("name")),
            ("type", Fixed("fieldset")),
            ("elements", Several(|page, id| page.below(id, &FIELDS[..4]))),
            ("validity", Nothing),
        ],
    ),
    (
        &["form"],
        &[
            ("action", Address("action")),
            ("name", Text("name")),
            ("target", Text("target")),
            ("enctype", OneOf("enctype", &ENCODINGS)),
            ("encoding", OneOf("enctype", &ENCODINGS)),
            ("acceptCharset", Text("accept-charset")),
            ("autocomplete", ON_OR_OFF),
            ("noValidate", Flag("novalidate")),
            ("method", OneOf("method", &METHODS)),
            ("elements", Several(|page, id| page.below(id, &FIELDS))),
            ("length", Reads::Made(|page, id| count(&page.below(id, &FIELDS)))),
        ],
    ),
    (
        &["iframe"],
        &[
            ("allowfullscreen", Flag("allowfullscreen")),
            ("referrerPolicy", REFERRERS),
            ("height", Text("height")),
            ("width", Text("width")),
            ("name", Text("name")),
            ("src", Address("src")),
        ],
    ),
    (
        &["img"],
        &[
            ("currentSrc", Address("src")),
            ("src", Address("src")),
            ("sizes", Text("sizes")),
            ("srcset", Text("srcset")),
            ("alt", Text("alt")),
            ("crossOrigin", ORIGINS),
            ("height", Whole("height", 0)),
            ("width", Whole("width", 0)),
            ("isMap", Flag("ismap")),
            ("name", Text("name")),
            ("useMap", Text("usemap")),
            ("referrerPolicy", REFERRERS),
        ],
    ),
    (
        &["keygen"],
        &[
            FORM,
            LABELS,
            ("autofocus", Flag("autofocus")),
            ("challenge", Text("challenge")),
            ("disabled", Flag("disabled")),
            ("keytype", OneOf("keytype", &["RSA", "DSA", "EC"])),
            ("name", Text("name")),
            ("type", Fixed("keygen")),
        ],
    ),
    (&["label"], &[FORM, ("htmlFor", Text("for")), ("control", One(control))]),
    (&["legend"], &[FORM, ("accessKey", Text("accesskey"))]),
    (
        &["li"],
        &[
            ("value", Whole("value", 0)),
            ("type", OneOf("type", &["", "1", "a", "A", "i", "I", "disc", "square", "circle"])),
        ],
    ),
    (
        &["link"],
        &[
            ("crossOrigin", ORIGINS),
            ("referrerPolicy", REFERRERS),
            ("href", Address("href")),
            ("hreflang", Text("hreflang")),
            ("media", Text("media")),
            ("rel", Text("rel")),
            ("relList", RELATIONS),
            ("target", Text("target")),
            ("type", Text("type")),
        ],
    ),
    (
        &["map"],
        &[
            ("name", Text("name")),
            ("areas", Several(|page, id| page.below(id, &["area"]))),
            ("images", Several(images)),
        ],
    ),
    (
        &["meta"],
        &[
            ("content", Text("content")),
            ("name", Text("name")),
            ("httpEquiv", OneOf("http-equiv", &["content-type", "default-style", "refresh"])),
        ],
    ),
    (
        &["meter"],
        &[
            LABELS,
            ("min", Whole("min", 0)),
            ("max", Whole("max", 0)),
            ("high", Whole("high", 0)),
            ("low", Whole("low", 0)),
            ("optimum", Whole("optimum", 0)),
        ],
    ),
    (
        &["object"],
        &[
            FORM,
            ("data", Address("data")),
            ("height", Text("height")),
            ("width", Text("width")),
            ("name", Text("name")),
            ("type", Text("type")),
            ("tabIndex", Whole("tabindex", 0)),
            ("typeMustMatch", Flag("typemustmatch")),
            ("useMap", Text("usemap")),
        ],
    ),
    (
        &["ol"],
        &[
            ("reversed", Flag("reversed")),
            ("start", Whole("start", 0)),
            ("type", OneOf("type", &["1", "a", "A", "i", "I"])),
        ],
    ),
    (&["ul"], &[("type", Text("type"))]),
    (&["optgroup"], &[("disabled", Flag("disabled")), ("label", Text("label"))]),
    (
        &["option"],
        &[
            ("form", One(form_of_option)),
            ("defaultSelected", Flag("selected")),
            ("selected", Flag("selected")),
            ("disabled", Reads::Made(|page, id| Made::Truth(is_disabled(page, id)))),
            ("index", Reads::Made(|page, id| place(page, id, &["select", "datalist"], &["option"], 0.0))),
            ("label", Reads::Made(|page, id| Made::Text(attribute_or(page, id, "label", Document::text)))),
            ("text", CONTENT),
            ("value", VALUE),
        ],
    ),
    (
        &["output"],
        &[
            FORM,
            LABELS,
            ("htmlFor", Text("for")),
            ("name", Text("name")),
            ("type", Fixed("output")),
            ("value", CONTENT),
            ("defaultValue", CONTENT),
        ],
    ),
    (
        &["progress"],
        &[
            LABELS,
            ("max", Reads::Made(|page, id| Made::Number(most(page, id)))),
            ("value", Reads::Made(|page, id| Made::Number(progress(page, id, 0.0)))),
            ("position", Reads::Made(|page, id| Made::Number(progress(page, id, -1.0)))),
        ],
    ),
    (
        &["script"],
        &[
            ("crossOrigin", Text("crossorigin")),
            ("type", Text("type")),
            ("src", Address("src")),
            ("charset", Text("charset")),
            ("async", Flag("async")),
            ("defer", Flag("defer")),
            ("noModule", Flag("nomodule")),
            ("text", CONTENT),
        ],
    ),
    (
        &["select"],
        &[
            FORM,
            LABELS,
            ("autofocus", Flag("autofocus")),
            ("disabled", Flag("disabled")),
            ("multiple", Flag("multiple")),
            ("name", Text("name")),
            ("required", Flag("required")),
            ("tabIndex", Whole("tabindex", 0)),
            ("length", Reads::Made(|page, id| count(&page.below(id, &["option"])))),
            ("options", Several(|page, id| page.below(id, &["option"]))),
            ("selectedIndex", Reads::Made(selected_index)),
            ("selectedOptions", Several(selected)),
            ("size", Reads::Made(|page, id| Made::Number(if has_several(page, id) { 4.0 } else { 1.0 }))),
            (
                "type",
                Reads::Made(|page, id| text(Some(if has_several(page, id) { "select-multiple" } else { "select" }))),
            ),
            (
                "value",
                Reads::Made(|page, id| {
                    Made::Text(selected(page, id).first().map_or_else(String::new, |id| value(page, *id)))
                }),
            ),
        ],
    ),
    (
        &["source"],
        &[
            ("keySystem", Text("keysystem")),
            ("media", Text("media")),
            ("sizes", Text("sizes")),
            ("src", Address("src")),
            ("srcset", Text("srcset")),
            ("type", Text("type")),
        ],
    ),
    (
        &["style"],
        &[
            ("media", Text("media")),
            ("type", Reads::Made(|page, id| Made::Text(attribute_or(page, id, "type", |_, _| "text/css".to_owned())))),
        ],
    ),
    (
        &["table"],
        &[
            ROWS,
            ("sortable", Flag("sortable")),
            ("caption", One(|page, id| named(page, page.children(id), &["caption"]))),
            ("tHead", One(|page, id| named(page, page.children(id), &["thead"]))),
            ("tFoot", One(|page, id| named(page, page.children(id), &["tfoot"]))),
            ("tBodies", Several(|page, id| page.below(id, &["tbody"]))),
        ],
    ),
    (&["thead", "tfoot", "tbody"], &[ROWS]),
    (
        &["tr"],
        &[
            ("cells", Several(|page, id| page.below(id, &["th", "td"]))),
            ("rowIndex", Reads::Made(|page, id| place(page, id, &["table"], &["tr"], -1.0))),
            ("sectionRowIndex", Reads::Made(|page, id| place(page, id, &["thead", "tbody", "tfoot"], &["tr"], -1.0))),
        ],
    ),
    (
        &["td", "th"],
        &[
            ("colSpan", Whole("colspan", 1)),
            ("rowSpan", Whole("rowspan", 1)),
            ("headers", Text("headers")),
            ("cellIndex", Reads::Made(|page, id| place(page, id, &["tr"], &["th", "td"], -1.0))),
        ],
    ),
    (
        &["th"],
        &[
            ("abbr", Text("abbr")),
            ("scope", OneOf("scope", &["", "row", "col", "colgroup", "rowgroup"])),
            ("sorted", Flag("sorted")),
        ],
    ),
    (
        &["col"],
        &[("span", Reads::Made(|page, id| Made::Number(f64::from(integer_or(page.attribute(id, "span"), 1).max(1)))))],
    ),
    (
        &["textarea"],
        &[
            FORM,
            LABELS,
            ("type", Fixed("textarea")),
            ("defaultValue", CONTENT),
            ("length", Reads::Made(|page, id| Made::Number(page.text(id).chars().count() as f64))),
            ("placeholder", Text("placeholder")),
            ("rows", Whole("rows", 0)),
            ("cols", Whole("cols", 0)),
            ("maxLength", Whole("maxlength", 0)),
            ("tabIndex", Whole("tabindex", 0)),
            ("accessKey", Text("accesskey")),
            ("readOnly", Flag("readonly")),
            ("required", Flag("required")),
            ("autocomplete", ON_OR_OFF),
            ("autocapitalize", OneOf("autocapitalize", &["sentences", "none", "off", "characters", "words"])),
            ("wrap", OneOf("wrap", &["soft", "hard", "off"])),
        ],
    ),
    (&["title"], &[("text", CONTENT)]),
    (
        &["track"],
        &[
            ("kind", OneOf("kind", &["subtitle", "captions", "descriptions", "chapters", "metadata"])),
            ("src", Address("src")),
            ("srclang", Text("srclang")),
            ("label", Text("label")),
            ("default", Flag("default")),
        ],
    ),
];

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

fn text(found: Option<&str>) -> Made {
    Made::Text(found.unwrap_or_default().to_owned())
}

fn count(nodes: &[NodeId]) -> Made {
    Made::Number(nodes.len() as f64)
}

fn integer_or(text: Option<&str>, otherwise: i32) -> i32 {
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn one_of(found: Option<&str>, texts: &[&str]) -> String {
    found.filter(|found| texts.contains(found)).unwrap_or(texts[0]).to_owned()
}

/// An attribute, or a default of the element.
fn attribute_or(page: &Document, id: NodeId, name: &str, otherwise: impl Fn(&Document, NodeId) -> String) -> String {
    page.attribute(id, name).map_or_else(|| otherwise(page, id), str::to_owned)
}

/// The value of a button or an option: its attribute, or its text.
fn value(page: &Document, id: NodeId) -> String {
    attribute_or(page, id, "value", Document::inner_html)
}

fn behind(sign: &str, part: Option<&str>) -> String {
    part.filter(|part| !part.is_empty()).map(|part| format!("{sign}{part}")).unwrap_or_default()
}

/// Userinfo, host and port of a URL.
fn address<'a>(url: &Parts<'a>) -> (&'a str, &'a str, &'a str) {
    let authority = url.authority.unwrap_or_default();
    let (user, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    match address.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit())) {
        Some((host, port)) => (user, host, port),
        None => (user, address, ""),
    }
}

fn user<'a>(url: &Parts<'a>) -> (&'a str, &'a str) {
    let user = address(url).0;
    user.split_once(':').unwrap_or((user, ""))
}

/// The host, with the port unless it is the default.
fn host(url: &Parts<'_>) -> String {
    let (_, host, port) = address(url);
    match (url.scheme, port) {
        (_, "") | (Some("http"), "80") | (Some("https"), "443") | (Some("ftp"), "21") => host.to_owned(),
        _ => format!("{host}:{port}"),
    }
}

fn origin(url: &Parts<'_>) -> String {
    let (_, host, port) = address(url);
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    url.scheme.map(|scheme| format!("{scheme}://{host}{port}")).unwrap_or_default()
}

/// The first of these nodes that has one of these names.
fn named(page: &Document, nodes: Vec<NodeId>, names: &[&str]) -> Option<NodeId> {
    nodes.into_iter().find(|id| names.contains(&page.name(*id)))
}

/// The nearest ancestor with one of these names.
fn around(page: &Document, id: NodeId, names: &[&str]) -> Option<NodeId> {
    named(page, page.along(id, Direction::Up), names)
}

/// The elements of a page with this value of an attribute.
fn with(page: &Document, attribute: &str, value: &str) -> Vec<NodeId> {
    let mut all = page.below(page.root(), &[]);
    all.retain(|id| page.attribute(*id, attribute) == Some(value));
    all
}

fn with_id(page: &Document, id: Option<&str>) -> Option<NodeId> {
    id.filter(|id| !id.is_empty()).and_then(|id| with(page, "id", id).first().copied())
}

/// The form to which an element belongs.
fn owner(page: &Document, id: NodeId) -> Option<NodeId> {
    around(page, id, &["form"]).or_else(|| with_id(page, page.attribute(id, "form")))
}

fn form_of_option(page: &Document, id: NodeId) -> Option<NodeId> {
    around(page, id, &["form"]).or_else(|| owner(page, around(page, id, &["select"])?))
}

/// An attribute of submission: that of an input or button, or of its form.
fn of_form<'a>(page: &'a Document, id: NodeId, what: &str) -> Option<&'a str> {
    let own = page.attribute(id, &format!("form{what}"));
    own.or_else(|| page.attribute(owner(page, id)?, what))
}

fn form_method(page: &Document, id: NodeId) -> Made {
    let method = of_form(page, id, "method").map(str::to_ascii_lowercase);
    Made::Text(one_of(method.as_deref(), &METHODS))
}

/// The labels of an element: the one around it, and those that refer to it.
fn labels(page: &Document, id: NodeId) -> Vec<NodeId> {
    let mut found: Vec<NodeId> = around(page, id, &["label"]).into_iter().collect();
    let own = page.attribute(id, "id").filter(|own| !own.is_empty());
    let naming = own.map(|own| with(page, "for", own)).unwrap_or_default();
    found.extend(naming.into_iter().filter(|label| page.name(*label) == "label"));
    super::document::unique(found)
}

fn control(page: &Document, id: NodeId) -> Option<NodeId> {
    with_id(page, page.attribute(id, "for"))
}

/// The list of an input that may have one.
fn list(page: &Document, id: NodeId) -> Option<NodeId> {
    let has_none = ["hidden", "checkbox", "radio", "file", "button"];
    let found = with_id(page, page.attribute(id, "list"))?;
    (page.name(found) == "datalist" && !has_none.contains(&page.attribute(id, "type").unwrap_or_default()))
        .then_some(found)
}

/// The images and objects that use a map.
fn images(page: &Document, id: NodeId) -> Vec<NodeId> {
    let Some(own) = page.attribute(id, "id") else { return Vec::new() };
    let mut found = with(page, "usemap", &format!("#{own}"));
    found.retain(|id| ["img", "object"].contains(&page.name(*id)));
    found
}

fn is_disabled(page: &Document, id: NodeId) -> bool {
    let is_off = |id: NodeId| page.attribute(id, "disabled").is_some();
    is_off(id) || around(page, id, &["optgroup"]).is_some_and(is_off)
}

/// The index of an element among its kind, in their parent.
fn place(page: &Document, id: NodeId, holders: &[&str], kinds: &[&str], otherwise: f64) -> Made {
    let holder = around(page, id, holders);
    let at = holder.and_then(|holder| page.below(holder, kinds).iter().position(|other| *other == id));
    Made::Number(at.map_or(otherwise, |at| at as f64))
}

fn has_several(page: &Document, id: NodeId) -> bool {
    page.attribute(id, "multiple").is_some()
}

fn selected(page: &Document, id: NodeId) -> Vec<NodeId> {
    let mut options = page.below(id, &["option"]);
    options.retain(|option| page.attribute(*option, "selected").is_some());
    options
}

fn selected_index(page: &Document, id: NodeId) -> Made {
    let first = selected(page, id).first().copied();
    let at = page.below(id, &["option"]).iter().position(|option| Some(*option) == first);
    Made::Number(at.map_or(-1.0, |at| at as f64))
}

/// A number of a progress bar that is not below zero.
fn positive(page: &Document, id: NodeId, name: &str) -> Option<f64> {
    page.attribute(id, name).and_then(|text| text.parse().ok()).filter(|number| *number >= 0.0)
}

fn most(page: &Document, id: NodeId) -> f64 {
    positive(page, id, "max").unwrap_or(1.0)
}

fn progress(page: &Document, id: NodeId, otherwise: f64) -> f64 {
    positive(page, id, "value").map_or(otherwise, |value| value / most(page, id))
}
