//! Messages in JSON's form, whose texts may hold placeholders and values of users.

use super::scope::Scope;
use super::template::{FilledSegment, Template};
use super::user_values::{ValueNames, ValueUse, misplaced_value};
use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{JsonPiece, JsonText};
use serde_json::{Map, Value, json};
use toml::de::DeValue;

/// A message in JSON's form, whose texts may hold placeholders.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    /// A number or a boolean.
    Plain(Value),
    /// A text, with where it stands.
    Text(Template, Span),
    /// Several.
    Array(Vec<Json>),
    /// Named ones.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The message for the trial that `scope` stands for. A text that is one placeholder and
    /// nothing else becomes what its level is: a number, a boolean or a text.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Value> {
        match self {
            Json::Plain(value) => Some(value.clone()),
            Json::Text(template, span) => scope.fill(template, span, faults).map(value_of),
            Json::Array(items) => items.iter().map(|item| item.resolve(scope, faults)).collect(),
            Json::Object(entries) => {
                let resolved = entries.iter().map(|(name, item)| Some((name.clone(), item.resolve(scope, faults)?)));
                resolved.collect::<Option<Map<String, Value>>>().map(Value::Object)
            }
        }
    }
}

impl Json {
    /// JSON of a flow for the trial that `scope` stands for, written out around the values of users.
    pub(crate) fn with_values(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<JsonText> {
        let mut text = JsonWriter::default();
        self.write(scope, values, faults, &mut text)?;
        Some(JsonText(text.0))
    }

    fn write(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults, text: &mut JsonWriter) -> Option<()> {
        match self {
            Json::Plain(value) => text.literal(&value.to_string()),
            Json::Text(template, span) if template.values().next().is_none() => {
                text.literal(&value_of(scope.fill(template, span, faults)?).to_string());
            }
            Json::Text(template, span) => text.text(&scope.filled(template, span, faults)?, values)?,
            Json::Array(items) => {
                text.literal("[");
                for (index, item) in items.iter().enumerate() {
                    text.literal(if index == 0 { "" } else { "," });
                    item.write(scope, values, faults, text)?;
                }
                text.literal("]");
            }
            Json::Object(entries) => {
                text.literal("{");
                for (index, (name, item)) in entries.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    text.literal(&format!("{comma}{}:", Value::from(name.as_str())));
                    item.write(scope, values, faults, text)?;
                }
                text.literal("}");
            }
        }
        Some(())
    }

    /// The values of users in it.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        match self {
            Json::Plain(_) => Vec::new(),
            Json::Text(template, span) => ValueUse::all_in(template, span),
            Json::Array(items) => items.iter().flat_map(Json::uses).collect(),
            Json::Object(entries) => entries.iter().flat_map(|(_, item)| item.uses()).collect(),
        }
    }

    /// The JSON where it can hold no value of a user.
    pub(crate) fn without_values(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Value> {
        let uses = self.uses();
        uses.iter().for_each(|one| faults.add(misplaced_value(&one.value, &one.span, faults)));
        if uses.is_empty() { self.resolve(scope, faults) } else { None }
    }
}

/// Writes JSON with values in it; neighbouring literals become one.
#[derive(Default)]
struct JsonWriter(Vec<JsonPiece>);

impl JsonWriter {
    fn literal(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(JsonPiece::Literal(before)) => before.push_str(text),
            _ => self.0.push(JsonPiece::Literal(text.to_owned())),
        }
    }

    /// A text with values in it: one that is a value alone is what that value is.
    fn text(&mut self, parts: &[FilledSegment], values: &ValueNames) -> Option<()> {
        if let [FilledSegment::Value(value)] = parts {
            self.0.push(JsonPiece::Whole(values.reference(&value.name)?));
            return Some(());
        }
        self.literal("\"");
        for part in parts {
            match part {
                FilledSegment::Literal(text) => {
                    let quoted = Value::from(text.as_str()).to_string();
                    self.literal(&quoted[1..quoted.len() - 1]);
                }
                FilledSegment::Value(value) => self.0.push(JsonPiece::Inside(values.reference(&value.name)?)),
            }
        }
        self.literal("\"");
        Some(())
    }
}

/// JSON of any kind, not only an object.
#[derive(Clone, Debug)]
pub(crate) struct AnyJson(pub(crate) Json);

impl FromToml for AnyJson {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        Json::from_toml(node, faults).map(AnyJson)
    }

    fn json_schema(_: &mut Schemas) -> Value {
        json!({ "type": ["object", "array", "string", "number", "boolean"] })
    }
}

fn value_of(level: Level) -> Value {
    match level {
        Level::Bool(value) => value.into(),
        Level::Integer(value) => value.into(),
        Level::Number(value) => value.into(),
        Level::Text(value) => value.into(),
    }
}

impl FromToml for Json {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Table(_) => {
                let table = node.table(faults)?;
                let read = |(name, node): &(&str, Node<'_>)| Some(((*name).to_owned(), Json::from_toml(node, faults)?));
                table.entries().iter().map(read).collect::<Option<_>>().map(Json::Object)
            }
            DeValue::Array(_) => Vec::from_toml(node, faults).map(Json::Array),
            DeValue::String(text) => Some(Json::Text(Template::parse(text).ok()?, node.span.clone())),
            _ => match node.scalar() {
                Some(Level::Number(number)) if !number.is_finite() => {
                    let message = format!("{} must be a finite number: JSON has no other", node.name());
                    faults.add(Fault::error(&node.span, message));
                    None
                }
                Some(level) => Some(Json::Plain(value_of(level))),
                None => {
                    faults.add(node.wrong_type("a text, a number, a boolean, an array or a table"));
                    None
                }
            },
        }
    }

    fn json_schema(_: &mut Schemas) -> Value {
        json!({ "type": "object" })
    }
}
