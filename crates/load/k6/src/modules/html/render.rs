//! Writes nodes as HTML, in the form in which Go's library writes them, which k6 uses: attributes in the order of the
//! page, `<br/>`, and quotes as numbers.

use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use scraper::Node;
use scraper::node::{Doctype, Element};

/// Elements that have an empty content and no end.
const VOID: [&str; 15] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "meta", "param", "source", "track",
    "wbr",
];

/// Elements whose text is written as it is.
const LITERAL: [&str; 8] = ["iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "xmp"];

/// Elements in which a line break at the beginning does not count.
const WITH_IGNORED_BREAK: [&str; 3] = ["pre", "listing", "textarea"];

const HTML: &str = "http://www.w3.org/1999/xhtml";

/// What is in a node, as HTML. The depth of a page has no bound, so this does not call itself.
pub(super) fn inner_html(top: NodeRef<'_, Node>) -> String {
    let mut html = String::new();
    // Text at the top is escaped in any case.
    let is_literal = |node: NodeRef<'_, Node>| {
        let parent = node.parent().filter(|parent| parent.id() != top.id());
        parent.and_then(|parent| parent.value().as_element().map(is_literal)).unwrap_or_default()
    };
    for edge in top.traverse() {
        match edge {
            Edge::Open(node) | Edge::Close(node) if node.id() == top.id() => {}
            Edge::Open(node) => match node.value() {
                Node::Element(element) => begin(node, element, &mut html),
                Node::Text(text) if is_literal(node) => html.push_str(&text.text),
                Node::Text(text) => escape(&text.text, &mut html),
                Node::Comment(comment) => write_comment(&comment.comment, &mut html),
                Node::Doctype(doctype) => write_doctype(doctype, &mut html),
                Node::Document | Node::Fragment | Node::ProcessingInstruction(_) => {}
            },
            Edge::Close(node) => match node.value().as_element().map(Element::name) {
                // It has no end, and nothing comes after it.
                Some("plaintext") => return html,
                Some(name) if !VOID.contains(&name) => html.extend(["</", name, ">"]),
                _ => {}
            },
        }
    }
    html
}

fn is_literal(element: &Element) -> bool {
    &*element.name.ns == HTML && LITERAL.contains(&element.name())
}

/// Writes the beginning of an element.
fn begin(node: NodeRef<'_, Node>, element: &Element, html: &mut String) {
    html.extend(["<", element.name()]);
    for (name, value) in &element.attrs {
        html.push(' ');
        if let Some(prefix) = &name.prefix {
            html.extend([&**prefix, ":"]);
        }
        html.extend([&*name.local, "=\""]);
        escape(value, html);
        html.push('"');
    }
    html.push_str(if VOID.contains(&element.name()) { "/>" } else { ">" });
    let begins_with_break = || {
        let text = node.first_child().and_then(|child| child.value().as_text());
        text.is_some_and(|text| text.text.starts_with('\n'))
    };
    if WITH_IGNORED_BREAK.contains(&element.name()) && begins_with_break() {
        html.push('\n');
    }
}

fn write_doctype(doctype: &Doctype, html: &mut String) {
    html.extend(["<!DOCTYPE ", doctype.name()]);
    let (public, system) = (doctype.public_id(), doctype.system_id());
    match (public, system) {
        ("", "") => {}
        ("", system) => html.extend([" SYSTEM \"", system, "\""]),
        (public, "") => html.extend([" PUBLIC \"", public, "\""]),
        (public, system) => html.extend([" PUBLIC \"", public, "\" \"", system, "\""]),
    }
    html.push('>');
}

fn escape(text: &str, html: &mut String) {
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '\'' => html.push_str("&#39;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&#34;"),
            '\r' => html.push_str("&#13;"),
            other => html.push(other),
        }
    }
}

/// Writes a comment, of which only that is replaced which would end it.
fn write_comment(text: &str, html: &mut String) {
    html.push_str("<!--");
    let mut before = None;
    for char in text.chars() {
        match (before, char) {
            (_, '&') => html.push_str("&amp;"),
            (None | Some('!' | '-'), '>') => html.push_str("&gt;"),
            _ => html.push(char),
        }
        before = Some(char);
    }
    html.push_str("-->");
}
