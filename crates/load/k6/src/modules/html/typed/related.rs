//! The sources of properties of an element: its texts and numbers, parts of URLs, and related elements.

use super::kinds::METHODS;
use super::{Direction, Document, Made, one_of};
use ego_tree::NodeId;
use plimsoll_web::url::Parts;

pub(super) fn text(found: Option<&str>) -> Made {
    Made::Text(found.unwrap_or_default().to_owned())
}

pub(super) fn count(nodes: &[NodeId]) -> Made {
    Made::Number(nodes.len() as f64)
}

/// An attribute, or a default of the element.
pub(super) fn attribute_or(
    page: &Document,
    id: NodeId,
    name: &str,
    otherwise: impl Fn(&Document, NodeId) -> String,
) -> String {
    page.attribute(id, name).map_or_else(|| otherwise(page, id), str::to_owned)
}

/// The value of a button or an option: its attribute, or its text.
pub(super) fn value(page: &Document, id: NodeId) -> String {
    attribute_or(page, id, "value", Document::inner_html)
}

pub(super) fn behind(sign: &str, part: Option<&str>) -> String {
    part.filter(|part| !part.is_empty()).map(|part| format!("{sign}{part}")).unwrap_or_default()
}

/// Userinfo, host and port of a URL.
pub(super) fn address<'a>(url: &Parts<'a>) -> (&'a str, &'a str, &'a str) {
    let authority = url.authority.unwrap_or_default();
    let (user, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    match address.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit())) {
        Some((host, port)) => (user, host, port),
        None => (user, address, ""),
    }
}

pub(super) fn user<'a>(url: &Parts<'a>) -> (&'a str, &'a str) {
    let user = address(url).0;
    user.split_once(':').unwrap_or((user, ""))
}

/// The host, with the port unless it is the default.
pub(super) fn host(url: &Parts<'_>) -> String {
    let (_, host, port) = address(url);
    match (url.scheme, port) {
        (_, "") | (Some("http"), "80") | (Some("https"), "443") | (Some("ftp"), "21") => host.to_owned(),
        _ => format!("{host}:{port}"),
    }
}

pub(super) fn origin(url: &Parts<'_>) -> String {
    let (_, host, port) = address(url);
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    url.scheme.map(|scheme| format!("{scheme}://{host}{port}")).unwrap_or_default()
}

/// The first of these nodes that has one of these names.
pub(super) fn named(page: &Document, nodes: Vec<NodeId>, names: &[&str]) -> Option<NodeId> {
    nodes.into_iter().find(|id| names.contains(&page.name(*id)))
}

/// The nearest ancestor with one of these names.
pub(super) fn around(page: &Document, id: NodeId, names: &[&str]) -> Option<NodeId> {
    named(page, page.along(id, Direction::Up), names)
}

/// The elements of a page with this value of an attribute.
pub(super) fn with(page: &Document, attribute: &str, value: &str) -> Vec<NodeId> {
    let mut all = page.below(page.root(), &[]);
    all.retain(|id| page.attribute(*id, attribute) == Some(value));
    all
}

pub(super) fn with_id(page: &Document, id: Option<&str>) -> Option<NodeId> {
    id.filter(|id| !id.is_empty()).and_then(|id| with(page, "id", id).first().copied())
}

/// The form to which an element belongs.
pub(super) fn owner(page: &Document, id: NodeId) -> Option<NodeId> {
    around(page, id, &["form"]).or_else(|| with_id(page, page.attribute(id, "form")))
}

pub(super) fn form_of_option(page: &Document, id: NodeId) -> Option<NodeId> {
    around(page, id, &["form"]).or_else(|| owner(page, around(page, id, &["select"])?))
}

/// An attribute of submission: that of an input or button, or of its form.
pub(super) fn of_form<'a>(page: &'a Document, id: NodeId, what: &str) -> Option<&'a str> {
    let own = page.attribute(id, &format!("form{what}"));
    own.or_else(|| page.attribute(owner(page, id)?, what))
}

pub(super) fn form_method(page: &Document, id: NodeId) -> Made {
    let method = of_form(page, id, "method").map(str::to_ascii_lowercase);
    Made::Text(one_of(method.as_deref(), &METHODS))
}

/// The labels of an element: the one around it, and those that refer to it.
pub(super) fn labels(page: &Document, id: NodeId) -> Vec<NodeId> {
    let mut found: Vec<NodeId> = around(page, id, &["label"]).into_iter().collect();
    let own = page.attribute(id, "id").filter(|own| !own.is_empty());
    let naming = own.map(|own| with(page, "for", own)).unwrap_or_default();
    found.extend(naming.into_iter().filter(|label| page.name(*label) == "label"));
    super::super::document::unique(found)
}

pub(super) fn control(page: &Document, id: NodeId) -> Option<NodeId> {
    with_id(page, page.attribute(id, "for"))
}

/// The list of an input that may have one.
pub(super) fn list(page: &Document, id: NodeId) -> Option<NodeId> {
    let has_none = ["hidden", "checkbox", "radio", "file", "button"];
    let found = with_id(page, page.attribute(id, "list"))?;
    (page.name(found) == "datalist" && !has_none.contains(&page.attribute(id, "type").unwrap_or_default()))
        .then_some(found)
}

/// The images and objects that use a map.
pub(super) fn images(page: &Document, id: NodeId) -> Vec<NodeId> {
    let Some(own) = page.attribute(id, "id") else { return Vec::new() };
    let mut found = with(page, "usemap", &format!("#{own}"));
    found.retain(|id| ["img", "object"].contains(&page.name(*id)));
    found
}

pub(super) fn is_disabled(page: &Document, id: NodeId) -> bool {
    let is_off = |id: NodeId| page.attribute(id, "disabled").is_some();
    is_off(id) || around(page, id, &["optgroup"]).is_some_and(is_off)
}

/// The index of an element among its kind, in their parent.
pub(super) fn place(page: &Document, id: NodeId, holders: &[&str], kinds: &[&str], otherwise: f64) -> Made {
    let holder = around(page, id, holders);
    let at = holder.and_then(|holder| page.below(holder, kinds).iter().position(|other| *other == id));
    Made::Number(at.map_or(otherwise, |at| at as f64))
}

pub(super) fn has_several(page: &Document, id: NodeId) -> bool {
    page.attribute(id, "multiple").is_some()
}

pub(super) fn selected(page: &Document, id: NodeId) -> Vec<NodeId> {
    let mut options = page.below(id, &["option"]);
    options.retain(|option| page.attribute(*option, "selected").is_some());
    options
}

pub(super) fn selected_index(page: &Document, id: NodeId) -> Made {
    let first = selected(page, id).first().copied();
    let at = page.below(id, &["option"]).iter().position(|option| Some(*option) == first);
    Made::Number(at.map_or(-1.0, |at| at as f64))
}

/// A number of a progress bar that is not below zero.
pub(super) fn positive(page: &Document, id: NodeId, name: &str) -> Option<f64> {
    page.attribute(id, name).and_then(|text| text.parse().ok()).filter(|number| *number >= 0.0)
}

pub(super) fn most(page: &Document, id: NodeId) -> f64 {
    positive(page, id, "max").unwrap_or(1.0)
}

pub(super) fn progress(page: &Document, id: NodeId, otherwise: f64) -> f64 {
    positive(page, id, "value").map_or(otherwise, |value| value / most(page, id))
}
