//! `Selection`: nodes of a page.

use super::document::{Direction, Document, unique};
use super::element::Element;
use super::form::{FormValue, fields, value_of};
use super::selector::Selector;
use crate::value::{Arg, TextArg, instance, non_null, text, thrown, wrong};
use ego_tree::NodeId;
use plimsoll_javascript::busy::spend;
use plimsoll_web::form;
use rquickjs::class::Trace;
use rquickjs::function::{Opt, This};
use rquickjs::{Array, Class, Coerced, Ctx, Function, IntoJs, JsLifetime, Object, Result, Value};
use std::collections::HashSet;
use std::rc::Rc;

/// Nodes of a page, in some order.
#[derive(Clone, Trace, JsLifetime)]
#[rquickjs::class]
pub(crate) struct Selection {
    #[qjs(skip_trace)]
    document: Rc<Document>,
    #[qjs(skip_trace)]
    nodes: Rc<[NodeId]>,
    /// The selection from which it was made.
    #[qjs(skip_trace)]
    before: Option<Rc<Selection>>,
}

/// A filter of nodes.
enum Sought<'js> {
    Selector(Selector),
    Nodes(Vec<NodeId>),
    /// Called with an index and a selection of a single node.
    Function(Function<'js>),
}

impl Selection {
    /// A page as a whole.
    ///
    /// # Errors
    /// The user holds more than it may.
    pub(crate) fn of_page(ctx: &Ctx<'_>, text: &str, url: &str) -> Result<Selection> {
        let document = Rc::new(Document::parse(ctx, text, url)?);
        let root = document.root();
        Ok(Selection::of(&document, vec![root]))
    }

    pub(crate) fn of(document: &Rc<Document>, nodes: Vec<NodeId>) -> Selection {
        Selection { document: Rc::clone(document), nodes: nodes.into(), before: None }
    }

    pub(crate) fn document(&self) -> &Rc<Document> {
        &self.document
    }

    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The matching elements below.
    pub(crate) fn below(&self, selector: &Selector) -> Selection {
        self.with(self.nodes.iter().flat_map(|id| self.document.find(*id, selector)))
    }

    /// The value of an attribute of the first node.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.nodes.first().and_then(|id| self.document.attribute(*id, name))
    }

    fn with(&self, nodes: impl IntoIterator<Item = NodeId>) -> Selection {
        Selection { before: Some(Rc::new(self.clone())), ..Selection::of(&self.document, unique(nodes)) }
    }

    /// The nodes that match the filter, if there is one.
    fn filtered<'js>(&self, ctx: &Ctx<'js>, nodes: Vec<NodeId>, filter: Option<Value<'js>>) -> Result<Selection> {
        let Some(filter) = non_null(filter) else { return Ok(self.with(nodes)) };
        let selector = selector(ctx, &filter)?;
        Ok(self.with(nodes.into_iter().filter(|id| self.document.matches(*id, &selector))))
    }

    /// The first element in a direction from each node.
    fn nearest<'js>(&self, ctx: &Ctx<'js>, direction: Direction, filter: Option<Value<'js>>) -> Result<Selection> {
        let nodes = self.nodes.iter().filter_map(|id| self.document.along(*id, direction).first().copied());
        self.filtered(ctx, nodes.collect(), filter)
    }

    /// All elements in a direction from each node.
    fn all<'js>(&self, ctx: &Ctx<'js>, direction: Direction, filter: Option<Value<'js>>) -> Result<Selection> {
        // Each node once from the start: deep in a page, nodes have the same ancestors.
        let nodes = unique(self.nodes.iter().flat_map(|id| self.document.along(*id, direction)));
        self.filtered(ctx, nodes, filter)
    }

    /// The elements in a direction from each node, up to the first match.
    fn until<'js>(
        &self,
        ctx: &Ctx<'js>,
        direction: Direction,
        end: Option<Value<'js>>,
        filter: Option<Value<'js>>,
    ) -> Result<Selection> {
        let end = non_null(end).map(|end| Sought::read(ctx, &end)).transpose()?;
        let is_end = |id: NodeId| match &end {
            None => Ok(false),
            Some(end) => end.is(ctx, self, 0, id),
        };
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        for id in &*self.nodes {
            for other in self.document.along(*id, direction) {
                if is_end(other)? {
                    break;
                }
                if known.insert(other) {
                    found.push(other);
                }
            }
        }
        self.filtered(ctx, found, filter)
    }

    /// The nodes that match, or those that do not.
    fn nodes_that_match<'js>(&self, ctx: &Ctx<'js>, sought: &Value<'js>, wanted: bool) -> Result<Vec<NodeId>> {
        let sought = Sought::read(ctx, sought)?;
        let mut kept = Vec::new();
        for (index, id) in self.nodes.iter().enumerate() {
            if sought.is(ctx, self, index, *id)? == wanted {
                kept.push(*id);
            }
        }
        Ok(kept)
    }

    fn range(&self, start: f64, end: f64) -> Selection {
        let count = self.nodes.len() as f64;
        // Negative indices count from the end.
        let place = |at: f64| (if at < 0.0 { count + at } else { at }).clamp(0.0, count) as usize;
        let (start, end) = (place(start), place(end));
        self.with(self.nodes.get(start..end.max(start)).unwrap_or_default().iter().copied())
    }

    fn at(&self, index: f64) -> Option<NodeId> {
        let index = if index < 0.0 { self.nodes.len() as f64 + index } else { index };
        (index >= 0.0).then(|| self.nodes.get(index as usize).copied()).flatten()
    }

    fn element<'js>(&self, ctx: &Ctx<'js>, id: NodeId) -> Result<Value<'js>> {
        Element::instance(ctx, &self.document, Some(id))
    }
}

impl<'js> Sought<'js> {
    fn read(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Sought<'js>> {
        if let Some(function) = value.as_function() {
            return Ok(Sought::Function(function.clone()));
        }
        if let Some(selection) = instance::<Selection>(value) {
            return Ok(Sought::Nodes(selection.borrow().nodes.to_vec()));
        }
        match instance::<Element>(value) {
            Some(element) => Ok(Sought::Nodes(vec![element.borrow().node()])),
            None => selector(ctx, value).map(Sought::Selector),
        }
    }

    fn is(&self, ctx: &Ctx<'js>, selection: &Selection, index: usize, id: NodeId) -> Result<bool> {
        match self {
            Sought::Selector(selector) => Ok(selection.document.matches(id, selector)),
            Sought::Nodes(nodes) => {
                spend(nodes.len());
                Ok(nodes.contains(&id))
            }
            Sought::Function(function) => {
                let one = Class::instance(ctx.clone(), selection.with([id]))?;
                Ok(function.call::<_, Coerced<bool>>((This(one.clone()), index, one))?.0)
            }
        }
    }

    /// The matching nodes below `id`.
    fn below(&self, ctx: &Ctx<'js>, document: &Document, id: NodeId) -> Result<Vec<NodeId>> {
        match self {
            Sought::Selector(selector) => Ok(document.find(id, selector)),
            Sought::Nodes(nodes) => Ok(nodes.iter().copied().filter(|node| document.contains(id, *node)).collect()),
            Sought::Function(_) => Err(thrown(ctx, "expected a selector, a selection or an element, found a function")),
        }
    }
}

fn selector<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Selector> {
    let Some(string) = value.as_string() else {
        return Err(wrong(ctx, "a selector, a selection or an element", value));
    };
    Selector::parse(&string.to_string()?).map_err(|why| thrown(ctx, why))
}

#[rquickjs::methods(rename_all = "camelCase")]
impl Selection {
    fn find<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<Selection> {
        let sought = Sought::read(&ctx, &sought.0)?;
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        for id in &*self.nodes {
            found.extend(sought.below(&ctx, &self.document, *id)?.into_iter().filter(|id| known.insert(*id)));
        }
        Ok(self.with(found))
    }

    fn add<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<Selection> {
        let more = match Sought::read(&ctx, &sought.0)? {
            Sought::Nodes(nodes) => nodes,
            other => other.below(&ctx, &self.document, self.document.root())?,
        };
        Ok(self.with(self.nodes.iter().copied().chain(more)))
    }

    fn filter<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<Selection> {
        Ok(self.with(self.nodes_that_match(&ctx, &sought.0, true)?))
    }

    fn not<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<Selection> {
        Ok(self.with(self.nodes_that_match(&ctx, &sought.0, false)?))
    }

    fn is<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<bool> {
        Ok(!self.nodes_that_match(&ctx, &sought.0, true)?.is_empty())
    }

    fn has<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<Selection> {
        let sought = Sought::read(&ctx, &sought.0)?;
        let mut kept = Vec::new();
        for id in &*self.nodes {
            if !sought.below(&ctx, &self.document, *id)?.is_empty() {
                kept.push(*id);
            }
        }
        Ok(self.with(kept))
    }

    fn closest<'js>(&self, ctx: Ctx<'js>, sought: Arg<'js>) -> Result<Selection> {
        let sought = Sought::read(&ctx, &sought.0)?;
        let mut found = Vec::new();
        for id in &*self.nodes {
            for other in [*id].into_iter().chain(self.document.along(*id, Direction::Up)) {
                if sought.is(&ctx, self, 0, other)? {
                    found.push(other);
                    break;
                }
            }
        }
        Ok(self.with(found))
    }

    fn children<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.filtered(&ctx, self.nodes.iter().flat_map(|id| self.document.children(*id)).collect(), filter.0)
    }

    fn contents(&self) -> Selection {
        self.with(self.nodes.iter().flat_map(|id| self.document.node(*id).children().map(|node| node.id())))
    }

    fn siblings<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.filtered(&ctx, unique(self.nodes.iter().flat_map(|id| self.document.siblings(*id))), filter.0)
    }

    fn parent<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.filtered(&ctx, self.nodes.iter().filter_map(|id| self.document.parent(*id)).collect(), filter.0)
    }

    fn parents<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.all(&ctx, Direction::Up, filter.0)
    }

    fn parents_until<'js>(&self, ctx: Ctx<'js>, end: Opt<Value<'js>>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.until(&ctx, Direction::Up, end.0, filter.0)
    }

    fn next<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.nearest(&ctx, Direction::Behind, filter.0)
    }

    fn next_all<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.all(&ctx, Direction::Behind, filter.0)
    }

    fn next_until<'js>(&self, ctx: Ctx<'js>, end: Opt<Value<'js>>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.until(&ctx, Direction::Behind, end.0, filter.0)
    }

    fn prev<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.nearest(&ctx, Direction::Before, filter.0)
    }

    fn prev_all<'js>(&self, ctx: Ctx<'js>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.all(&ctx, Direction::Before, filter.0)
    }

    fn prev_until<'js>(&self, ctx: Ctx<'js>, end: Opt<Value<'js>>, filter: Opt<Value<'js>>) -> Result<Selection> {
        self.until(&ctx, Direction::Before, end.0, filter.0)
    }

    /// The URL of the page.
    #[qjs(get, enumerable)]
    fn url(&self) -> String {
        self.document.url().to_owned()
    }

    /// The selection before the last step.
    fn end(&self) -> Selection {
        self.before.as_deref().cloned().unwrap_or_else(|| Selection::of(&self.document, Vec::new()))
    }

    fn eq(&self, index: f64) -> Selection {
        self.with(self.at(index))
    }

    fn first(&self) -> Selection {
        self.with(self.nodes.first().copied())
    }

    fn last(&self) -> Selection {
        self.with(self.nodes.last().copied())
    }

    fn slice(&self, start: f64, end: Opt<f64>) -> Selection {
        self.range(start, end.0.unwrap_or(self.nodes.len() as f64))
    }

    fn size(&self) -> usize {
        self.nodes.len()
    }

    /// An element, or all of them.
    fn get<'js>(&self, ctx: Ctx<'js>, index: Opt<f64>) -> Result<Value<'js>> {
        match index.0 {
            Some(index) => Element::instance(&ctx, &self.document, self.at(index)),
            None => self.nodes.iter().map(|id| self.element(&ctx, *id)).collect::<Result<Vec<_>>>()?.into_js(&ctx),
        }
    }

    fn to_array(&self) -> Vec<Selection> {
        self.nodes.iter().map(|id| self.with([*id])).collect()
    }

    /// The index of the first node: among its siblings, among the matches in the page, or of another node here.
    fn index<'js>(&self, ctx: Ctx<'js>, sought: Opt<Value<'js>>) -> Result<i64> {
        let place = |nodes: &[NodeId], id: Option<NodeId>| {
            let at = nodes.iter().position(|node| Some(*node) == id);
            at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
        };
        let first = self.nodes.first().copied();
        Ok(match non_null(sought.0).map(|sought| Sought::read(&ctx, &sought)).transpose()? {
            None => match first {
                Some(first) => self.document.along(first, Direction::Before).len() as i64,
                None => -1,
            },
            Some(Sought::Nodes(nodes)) => place(&self.nodes, nodes.first().copied()),
            Some(other) => place(&other.below(&ctx, &self.document, self.document.root())?, first),
        })
    }

    /// Calls a function with the index and element of each node.
    fn each<'js>(
        this: This<Class<'js, Selection>>,
        ctx: Ctx<'js>,
        function: Function<'js>,
    ) -> Result<Class<'js, Selection>> {
        let selection = this.0.borrow().clone();
        for (index, id) in selection.nodes.iter().enumerate() {
            function.call::<_, ()>((index, selection.element(&ctx, *id)?))?;
        }
        Ok(this.0)
    }

    /// The results of a function of the index and selection of each node.
    fn map<'js>(&self, ctx: Ctx<'js>, function: Function<'js>) -> Result<Vec<Value<'js>>> {
        let one =
            |(index, id): (usize, &NodeId)| function.call((index, Class::instance(ctx.clone(), self.with([*id]))?));
        self.nodes.iter().enumerate().map(one).collect()
    }

    fn text(&self) -> String {
        self.nodes.iter().map(|id| self.document.text(*id)).collect()
    }

    fn html(&self) -> String {
        self.nodes.first().map(|id| self.document.inner_html(*id)).unwrap_or_default()
    }

    fn attr<'js>(&self, ctx: Ctx<'js>, name: TextArg, otherwise: Opt<Value<'js>>) -> Result<Value<'js>> {
        match self.attribute(&name.0) {
            Some(value) => value.into_js(&ctx),
            None => Ok(otherwise.0.unwrap_or_else(|| Value::new_undefined(ctx))),
        }
    }

    fn val<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        match self.nodes.first() {
            Some(id) => value_of(&self.document, *id).into_js(&ctx),
            None => Ok(Value::new_undefined(ctx)),
        }
    }

    /// The value of an attribute `data-…`, or all of them.
    fn data<'js>(&self, ctx: Ctx<'js>, name: Opt<Value<'js>>) -> Result<Value<'js>> {
        if let Some(name) = non_null(name.0) {
            let attribute = format!("data-{}", dashed(&text(&ctx, name)?));
            return self
                .attribute(&attribute)
                .map_or_else(|| Ok(Value::new_undefined(ctx.clone())), |it| datum(&ctx, it));
        }
        let data = Object::new(ctx.clone())?;
        let element = self.nodes.first().and_then(|id| self.document.node(*id).value().as_element());
        for (name, value) in element.iter().flat_map(|element| element.attrs()) {
            if let Some(name) = name.strip_prefix("data-") {
                data.set(camel(name), datum(&ctx, value)?)?;
            }
        }
        Ok(data.into_value())
    }

    fn serialize_array<'js>(&self, ctx: Ctx<'js>) -> Result<Array<'js>> {
        let array = Array::new(ctx.clone())?;
        for (index, (name, value)) in fields(&self.document, &self.nodes).into_iter().enumerate() {
            let field = Object::new(ctx.clone())?;
            field.set("name", name)?;
            field.set("value", value)?;
            array.set(index, field)?;
        }
        Ok(array)
    }

    fn serialize_object<'js>(&self, ctx: Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        for (name, value) in fields(&self.document, &self.nodes) {
            object.set(name, value)?;
        }
        Ok(object)
    }

    fn serialize(&self) -> String {
        let mut sent: Vec<(String, String)> = Vec::new();
        for (name, value) in fields(&self.document, &self.nodes) {
            // The last field of a name counts, with all its values.
            spend(sent.len());
            sent.retain(|(known, _)| *known != name);
            match value {
                FormValue::Nothing => {}
                FormValue::One(value) => sent.push((name, value)),
                FormValue::Several(values) => sent.extend(values.into_iter().map(|value| (name.clone(), value))),
            }
        }
        form::sorted_query(sent)
    }
}

impl<'js> IntoJs<'js> for FormValue {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            FormValue::Nothing => Ok(Value::new_undefined(ctx.clone())),
            FormValue::One(value) => value.into_js(ctx),
            FormValue::Several(values) => values.into_js(ctx),
        }
    }
}

/// `testB` as `test-b`.
fn dashed(name: &str) -> String {
    name.chars().fold(String::new(), |mut dashed, c| {
        if c.is_ascii_uppercase() {
            dashed.push('-');
        }
        dashed.push(c.to_ascii_lowercase());
        dashed
    })
}

/// `test-b` as `testB`.
fn camel(name: &str) -> String {
    let mut parts = name.split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |camel, part| {
        let mut letters = part.chars();
        let capital = letters.next().map(|c| c.to_ascii_uppercase());
        camel.chars().chain(capital).chain(letters).collect()
    })
}

/// The value of `data-…`, as in jQuery: JSON, numbers that read back as written, true and false.
fn datum<'js>(ctx: &Ctx<'js>, value: &str) -> Result<Value<'js>> {
    match value {
        "" | "null" | "undefined" => return Ok(Value::new_undefined(ctx.clone())),
        "true" => return true.into_js(ctx),
        "false" => return false.into_js(ctx),
        json if json.starts_with(['{', '[']) => {
            if let Ok(read) = ctx.json_parse(json) {
                return Ok(read);
            }
            ctx.catch();
        }
        _ => {}
    }
    match value.parse::<f64>() {
        Ok(number) if number.to_string() == value => number.into_js(ctx),
        _ => value.into_js(ctx),
    }
}
