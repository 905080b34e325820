//! Values of inputs, and the fields of forms.

use super::document::Document;
use super::selector::Selector;
use ego_tree::NodeId;
use std::sync::LazyLock;

/// The elements whose values a form sends.
static FIELDS: LazyLock<Selector> = LazyLock::new(|| selector("input,select,textarea,keygen"));
static CHOSEN: LazyLock<Selector> = LazyLock::new(|| selector("option[selected]"));

/// Inputs of these types are never sent by themselves.
const BUTTONS: [&str; 5] = ["submit", "button", "reset", "image", "file"];

/// The value of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormValue {
    /// No value.
    Nothing,
    One(String),
    /// The values of a list with several choices.
    Several(Vec<String>),
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("the selector is right")
}

/// The value of an input, a button, a list, or an option of it.
pub(crate) fn value_of(document: &Document, id: NodeId) -> FormValue {
    match document.name(id) {
        "input" | "button" => FormValue::One(document.attribute(id, "value").unwrap_or(unset(document, id)).to_owned()),
        "textarea" => FormValue::One(document.text(id)),
        "option" => FormValue::One(option(document, id)),
        "select" => {
            let chosen = document.find(id, &CHOSEN);
            if document.attribute(id, "multiple").is_some() {
                return FormValue::Several(chosen.into_iter().map(|id| option(document, id)).collect());
            }
            FormValue::One(chosen.first().map(|id| option(document, *id)).unwrap_or_default())
        }
        _ => FormValue::Nothing,
    }
}

/// The default value of an input.
fn unset(document: &Document, id: NodeId) -> &'static str {
    match document.attribute(id, "type") {
        Some("checkbox" | "radio") => "on",
        _ => "",
    }
}

/// The value of an option: its attribute, or its text.
fn option(document: &Document, id: NodeId) -> String {
    document.attribute(id, "value").map_or_else(|| document.text(id), str::to_owned)
}

/// Names and values of the fields: all inputs of a form, or the nodes that are inputs.
pub(crate) fn fields(document: &Document, nodes: &[NodeId]) -> Vec<(String, FormValue)> {
    let is_form = nodes.iter().any(|id| document.name(*id) == "form");
    let inputs: Vec<NodeId> = if is_form {
        super::document::unique(nodes.iter().flat_map(|id| document.find(*id, &FIELDS)))
    } else {
        nodes.iter().copied().filter(|id| document.matches(*id, &FIELDS)).collect()
    };
    let sent = inputs.into_iter().filter(|id| is_sent(document, *id));
    let field = |id| (document.attribute(id, "name").unwrap_or_default().to_owned(), value_of(document, id));
    sent.map(field).collect()
}

/// True if a boolean attribute such as `checked` is present, with or without a value.
fn is_sent(document: &Document, id: NodeId) -> bool {
    let attribute = |name| document.attribute(id, name);
    let kind = attribute("type").unwrap_or_default();
    let is_off = matches!(kind, "checkbox" | "radio") && attribute("checked").is_none();
    let has_name = attribute("name").is_some_and(|name| !name.is_empty());
    has_name && attribute("disabled").is_none() && !BUTTONS.contains(&kind) && !is_off
}
