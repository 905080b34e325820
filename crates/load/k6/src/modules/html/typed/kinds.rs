//! The table of elements and their properties, by the names of both.

use super::Reads::{self, Address, Fixed, Flag, Nothing, One, OneOf, Part, Perhaps, Several, Text, Whole};
use super::related::{
    address, attribute_or, behind, control, count, form_method, form_of_option, has_several, host, images, is_disabled,
    labels, list, most, named, of_form, origin, owner, place, progress, selected, selected_index, text, user, value,
};
use super::{Document, Made, integer_or, one_of};

const REFERRERS: Reads = OneOf(
    "referrerpolicy",
    &["", "no-referrer", "no-referrer-when-downgrade", "origin", "origin-when-cross-origin", "unsafe-url"],
);
const ORIGINS: Reads = Perhaps("crossorigin", &["anonymous", "use-credentials"]);
const ENCODINGS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
pub(super) const METHODS: [&str; 2] = ["get", "post"];
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
pub(super) type Functions = &'static [(&'static str, Reads)];

/// Names of elements and their properties. Later lines take precedence.
pub(super) const KINDS: &[(&[&str], Functions)] = &[
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
