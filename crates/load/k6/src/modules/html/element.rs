//! `Element`: a single node of a page, with the API of browsers.

use super::document::{Direction, Document};
use super::form::value_of;
use super::selection::Selection;
use super::selector::Selector;
use super::typed;
use crate::value::{TextArg, instance, thrown};
use ego_tree::NodeId;
use rquickjs::class::Trace;
use rquickjs::{Class, Ctx, JsLifetime, Object, Result, Value};
use scraper::Node;
use std::rc::Rc;

/// A node of a page.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct Element {
    #[qjs(skip_trace)]
    document: Rc<Document>,
    #[qjs(skip_trace)]
    id: NodeId,
}

impl Element {
    /// A node for the script; `undefined` for none.
    pub(crate) fn instance<'js>(ctx: &Ctx<'js>, document: &Rc<Document>, id: Option<NodeId>) -> Result<Value<'js>> {
        match id {
            Some(id) => {
                let element = Element { document: Rc::clone(document), id };
                let made = match typed::prototype(ctx, document.name(id))? {
                    Some(prototype) => Class::instance_proto(element, prototype)?,
                    None => Class::instance(ctx.clone(), element)?,
                };
                Ok(made.into_value())
            }
            None => Ok(Value::new_undefined(ctx.clone())),
        }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.id
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    pub(super) fn other<'js>(&self, ctx: &Ctx<'js>, id: Option<NodeId>) -> Result<Value<'js>> {
        Element::instance(ctx, &self.document, id)
    }

    pub(super) fn others<'js>(&self, ctx: &Ctx<'js>, ids: Vec<NodeId>) -> Result<Vec<Value<'js>>> {
        ids.into_iter().map(|id| self.other(ctx, Some(id))).collect()
    }

    fn attribute(&self, name: &str) -> Option<String> {
        self.document.attribute(self.id, name).map(str::to_owned)
    }

    fn found(&self, ctx: &Ctx<'_>, selector: &str) -> Result<Vec<NodeId>> {
        let selector = Selector::parse(selector).map_err(|why| thrown(ctx, why))?;
        Ok(self.document.find(self.id, &selector))
    }

    fn attribute_node<'js>(&self, ctx: &Ctx<'js>, name: &str, value: &str) -> Result<Object<'js>> {
        let node = Object::new(ctx.clone())?;
        node.set("name", name)?;
        node.set("value", value)?;
        Ok(node)
    }
}

/// The node of an argument.
fn node_of(value: &Value<'_>) -> Option<NodeId> {
    instance::<Element>(value).map(|element| element.borrow().id)
}

#[rquickjs::methods(rename_all = "camelCase")]
impl Element {
    fn node_name(&self) -> String {
        self.document.name(self.id).to_owned()
    }

    fn node_type(&self) -> u8 {
        match self.document.node(self.id).value() {
            Node::Element(_) => 1,
            Node::Text(_) => 3,
            Node::ProcessingInstruction(_) => 7,
            Node::Comment(_) => 8,
            Node::Document | Node::Fragment => 9,
            Node::Doctype(_) => 10,
        }
    }

    fn node_value(&self) -> Option<String> {
        match self.document.node(self.id).value() {
            Node::Text(text) => Some(text.text.to_string()),
            Node::Comment(comment) => Some(comment.comment.to_string()),
            _ => None,
        }
    }

    fn id(&self) -> Option<String> {
        self.attribute("id")
    }

    fn class_name(&self) -> Option<String> {
        self.attribute("class")
    }

    fn class_list(&self) -> Vec<String> {
        self.attribute("class").unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
    }

    fn lang(&self) -> Option<String> {
        self.attribute("lang")
    }

    #[qjs(rename = "innerHTML")]
    fn inner_html(&self) -> String {
        self.document.inner_html(self.id)
    }

    fn text_content(&self) -> String {
        self.document.text(self.id)
    }

    fn get_attribute(&self, name: TextArg) -> Option<String> {
        self.attribute(&name.0)
    }

    fn has_attribute(&self, name: TextArg) -> bool {
        self.attribute(&name.0).is_some()
    }

    fn has_attributes(&self) -> bool {
        self.document.node(self.id).value().as_element().is_some_and(|element| element.attrs().next().is_some())
    }

    fn get_attribute_node<'js>(&self, ctx: Ctx<'js>, name: TextArg) -> Result<Option<Object<'js>>> {
        let value = self.attribute(&name.0);
        value.map(|value| self.attribute_node(&ctx, &name.0, &value)).transpose()
    }

    fn attributes<'js>(&self, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let attributes = Object::new(ctx.clone())?;
        let element = self.document.node(self.id).value().as_element();
        for (name, value) in element.iter().flat_map(|element| element.attrs()) {
            attributes.set(name, self.attribute_node(&ctx, name, value)?)?;
        }
        Ok(attributes)
    }

    fn first_child<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.node(self.id).first_child().map(|node| node.id()))
    }

    fn last_child<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.node(self.id).last_child().map(|node| node.id()))
    }

    fn first_element_child<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.children(self.id).first().copied())
    }

    fn last_element_child<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.children(self.id).last().copied())
    }

    fn previous_sibling<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.node(self.id).prev_sibling().map(|node| node.id()))
    }

    fn next_sibling<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.node(self.id).next_sibling().map(|node| node.id()))
    }

    fn previous_element_sibling<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.along(self.id, Direction::Before).first().copied())
    }

    fn next_element_sibling<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.along(self.id, Direction::Behind).first().copied())
    }

    fn parent_node<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.node(self.id).parent().map(|node| node.id()))
    }

    fn parent_element<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, self.document.parent(self.id))
    }

    fn owner_document<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.other(&ctx, Some(self.document.root()))
    }

    fn child_nodes<'js>(&self, ctx: Ctx<'js>) -> Result<Vec<Value<'js>>> {
        self.others(&ctx, self.document.node(self.id).children().map(|node| node.id()).collect())
    }

    fn children<'js>(&self, ctx: Ctx<'js>) -> Result<Vec<Value<'js>>> {
        self.others(&ctx, self.document.children(self.id))
    }

    fn child_element_count(&self) -> usize {
        self.document.children(self.id).len()
    }

    fn has_child_nodes(&self) -> bool {
        self.document.node(self.id).has_children()
    }

    fn is_same_node(&self, other: Value<'_>) -> bool {
        node_of(&other) == Some(self.id)
    }

    fn is_equal_node(&self, other: Value<'_>) -> bool {
        let html = |element: &Element| element.document.inner_html(element.id);
        instance::<Element>(&other).is_some_and(|other| html(&other.borrow()) == html(self))
    }

    fn contains(&self, other: Value<'_>) -> bool {
        node_of(&other).is_some_and(|other| self.document.contains(self.id, other))
    }

    fn matches(&self, ctx: Ctx<'_>, selector: TextArg) -> Result<bool> {
        let selector = Selector::parse(&selector.0).map_err(|why| thrown(&ctx, why))?;
        Ok(self.document.matches(self.id, &selector))
    }

    fn query_selector<'js>(&self, ctx: Ctx<'js>, selector: TextArg) -> Result<Value<'js>> {
        let found = self.found(&ctx, &selector.0)?;
        self.other(&ctx, found.first().copied())
    }

    fn query_selector_all<'js>(&self, ctx: Ctx<'js>, selector: TextArg) -> Result<Vec<Value<'js>>> {
        let found = self.found(&ctx, &selector.0)?;
        self.others(&ctx, found)
    }

    fn get_elements_by_class_name<'js>(&self, ctx: Ctx<'js>, name: TextArg) -> Result<Vec<Value<'js>>> {
        self.query_selector_all(ctx, TextArg(format!(".{}", name.0)))
    }

    fn get_elements_by_tag_name<'js>(&self, ctx: Ctx<'js>, name: TextArg) -> Result<Vec<Value<'js>>> {
        self.query_selector_all(ctx, name)
    }

    #[qjs(rename = "namespaceURI")]
    fn namespace_uri(&self) -> Option<String> {
        let element = self.document.node(self.id).value().as_element()?;
        Some(element.name.ns.to_string())
    }

    fn is_default_namespace(&self) -> bool {
        self.namespace_uri().is_some_and(|uri| uri == "http://www.w3.org/1999/xhtml")
    }

    /// The value of an input.
    fn value<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        use rquickjs::IntoJs;
        value_of(&self.document, self.id).into_js(&ctx)
    }

    /// The element as a selection.
    fn selection(&self) -> Selection {
        Selection::of(&self.document, vec![self.id])
    }

    #[qjs(rename = "toString")]
    fn description(&self) -> String {
        match self.document.element(self.id) {
            Some(_) => "[object html.Node]".to_owned(),
            None => format!("[object {}]", self.document.name(self.id)),
        }
    }
}
