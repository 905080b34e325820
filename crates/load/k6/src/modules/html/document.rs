//! A page as a tree of nodes, and the ways between them.

use super::render;
use super::selector::Selector;
use ego_tree::{NodeId, NodeRef};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{ParseOpts, QualName};
use plimsoll_javascript::busy::spend;
use plimsoll_javascript::{Held, HeldMemory};
use plimsoll_web::url::Parts;
use rquickjs::{Ctx, Result};
use scraper::{ElementRef, Html, HtmlTreeSink, Node};
use std::collections::HashSet;

/// How many bytes of a page are parsed at once. Deep in a page, each tag looks through all those around it.
const PARSED_AT_ONCE: usize = 4096;

/// The most memory that what is parsed at once may add to a page, in bytes, as far as can be foretold.
const TAKEN_AT_ONCE: usize = 64 << 20;

/// The memory of a node: its value and five links to others, and as much room that the list of nodes makes in advance.
const NODE: usize = 2 * (size_of::<Node>() + 5 * size_of::<usize>());

/// The memory of an attribute of an element: its name and its value, whose text may be one that others have too.
const ATTRIBUTE: usize = size_of::<(QualName, StrTendril)>();

/// A page.
#[derive(Debug)]
pub(crate) struct Document {
    html: Html,
    /// Its URL; empty if unknown.
    url: String,
    /// Counts its memory for as long as it is there.
    _held: Held,
}

/// A direction from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To its earlier siblings, nearest first.
    Before,
    /// To its later siblings, nearest first.
    Behind,
    /// To its ancestors, nearest first.
    Up,
}

/// Each node once, in order.
pub(crate) fn unique(nodes: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
    let mut seen = HashSet::new();
    nodes.into_iter().inspect(|_| spend(2)).filter(|node| seen.insert(*node)).collect()
}

/// The memory of the nodes behind the first `known` ones, without their texts, which are those of the page. Sets `known` to
/// the number of all.
fn memory_behind(page: &Html, known: &mut usize) -> usize {
    let nodes = page.tree.values();
    let new = nodes.len() - std::mem::replace(known, nodes.len());
    let attributes = |node: &Node| node.as_element().map_or(0, |element| element.attrs.len());
    nodes.rev().take(new).map(|node| NODE + attributes(node) * ATTRIBUTE).sum()
}

impl Document {
    /// Parses a page as browsers do: any text is a page.
    ///
    /// # Errors
    /// The user holds more than it may.
    pub(crate) fn parse(ctx: &Ctx<'_>, text: &str, url: &str) -> Result<Document> {
        let memory = HeldMemory::of(ctx)?;
        let mut held = Held::nothing(&memory);
        let mut parser = html5ever::parse_document(HtmlTreeSink::new(Html::new_document()), ParseOpts::default());
        let (mut rest, mut taken, mut nodes) = (text, text.len(), 0);
        while !rest.is_empty() {
            taken += memory_behind(&parser.tokenizer.sink.sink.0.borrow(), &mut nodes);
            held.set(taken);
            memory.look(ctx)?;
            // Eight bytes, `</p><p>x`, make all formatting elements (`<b>`, `<i>`) anew that were open in the paragraph, so
            // that a page may take twice as much.
            let most = (8 * TAKEN_AT_ONCE / taken).clamp(8, PARSED_AT_ONCE);
            let end = (most..rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            parser.process(StrTendril::from_slice(piece));
            spend(piece.len());
            rest = behind;
        }
        let html = parser.finish();
        held.set(taken + memory_behind(&html, &mut nodes));
        Ok(Document { html, url: url.to_owned(), _held: held })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The URL of a reference in the page; the reference itself if the URL of the page is unknown.
    pub(crate) fn address(&self, reference: &str) -> String {
        match self.url.as_str() {
            "" => reference.to_owned(),
            url => Parts::split(reference.trim()).resolved(&Parts::split(url)),
        }
    }

    pub(crate) fn root(&self) -> NodeId {
        self.html.tree.root().id()
    }

    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_, Node> {
        self.html.tree.get(id).expect("nodes stay in the document that they are of")
    }

    /// The node as an element; None for texts, comments, the document.
    pub(crate) fn element(&self, id: NodeId) -> Option<ElementRef<'_>> {
        ElementRef::wrap(self.node(id))
    }

    pub(crate) fn matches(&self, id: NodeId, selector: &Selector) -> bool {
        self.element(id).is_some_and(|element| selector.matches(element))
    }

    /// A node and all below it, in the order of the page.
    fn descendants(&self, id: NodeId) -> impl Iterator<Item = NodeRef<'_, Node>> {
        self.node(id).descendants().inspect(|_| spend(1))
    }

    /// The elements below a node that match, in the order of the page.
    pub(crate) fn find(&self, id: NodeId, selector: &Selector) -> Vec<NodeId> {
        let below = self.descendants(id).skip(1).filter_map(ElementRef::wrap);
        below.filter(|element| selector.matches(*element)).map(|element| element.id()).collect()
    }

    /// The elements below a node with one of these names, in the order of the page; all of them for no name.
    pub(crate) fn below(&self, id: NodeId, names: &[&str]) -> Vec<NodeId> {
        let below = self.descendants(id).skip(1).filter_map(ElementRef::wrap).map(|element| element.id());
        below.filter(|id| names.is_empty() || names.contains(&self.name(*id))).collect()
    }

    /// True if a node lies below another.
    pub(crate) fn contains(&self, id: NodeId, other: NodeId) -> bool {
        self.node(other).ancestors().inspect(|_| spend(1)).any(|above| above.id() == id)
    }

    /// The child elements of a node.
    pub(crate) fn children(&self, id: NodeId) -> Vec<NodeId> {
        let children = self.node(id).children().inspect(|_| spend(1));
        children.filter_map(ElementRef::wrap).map(|element| element.id()).collect()
    }

    /// The parent element of a node.
    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.node(id).parent().and_then(ElementRef::wrap).map(|element| element.id())
    }

    /// The elements in a direction from a node.
    pub(crate) fn along(&self, id: NodeId, direction: Direction) -> Vec<NodeId> {
        let node = self.node(id);
        let elements = |nodes: &mut dyn Iterator<Item = NodeRef<'_, Node>>| {
            nodes.inspect(|_| spend(1)).filter(|node| node.value().is_element()).map(|node| node.id()).collect()
        };
        match direction {
            Direction::Before => elements(&mut node.prev_siblings()),
            Direction::Behind => elements(&mut node.next_siblings()),
            Direction::Up => elements(&mut node.ancestors()),
        }
    }

    /// The sibling elements of a node, in the order of the page.
    pub(crate) fn siblings(&self, id: NodeId) -> Vec<NodeId> {
        let beside = self.node(id).parent().map(|parent| self.children(parent.id())).unwrap_or_default();
        beside.into_iter().filter(|other| *other != id).collect()
    }

    /// The texts in a node, joined.
    pub(crate) fn text(&self, id: NodeId) -> String {
        let texts = self.descendants(id).filter_map(|node| node.value().as_text());
        texts.map(|text| &*text.text as &str).collect()
    }

    /// What is in an element, or in the whole document, as HTML.
    pub(crate) fn inner_html(&self, id: NodeId) -> String {
        render::inner_html(self.node(id))
    }

    pub(crate) fn attribute(&self, id: NodeId, name: &str) -> Option<&str> {
        self.node(id).value().as_element()?.attr(name)
    }

    /// The name of an element in lower case; for other nodes their name in browsers.
    pub(crate) fn name(&self, id: NodeId) -> &str {
        match self.node(id).value() {
            Node::Element(element) => element.name(),
            Node::Text(_) => "#text",
            Node::Comment(_) => "#comment",
            Node::Doctype(doctype) => doctype.name(),
            Node::Document | Node::Fragment => "#document",
            Node::ProcessingInstruction(instruction) => &instruction.target,
        }
    }
}
