//! Tables of names and texts, such as environments and headers, and messages in JSON's form.

use crate::diagnostic::{Fault, Span};
use crate::faults::Faults;
use crate::node::{FromToml, Node};
use crate::scalar::Word;
use crate::scope::Scope;
use crate::template::Template;
use crate::value::{Scalar, Slot};
use plimsoll_model::factor::{Assignment, Level};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::borrow::Cow;
use toml::de::DeValue;

/// Names and texts, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<T = Word>(Vec<(String, Span, Slot<T>)>);

impl<T: Scalar + Into<String>> Pairs<T> {
    /// The pairs for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<(String, String)>> {
        let pairs: Vec<Option<(String, String)>> =
            self.0.iter().map(|(name, _, value)| Some((name.clone(), value.resolve(scope, faults)?.into()))).collect();
        pairs.into_iter().collect()
    }

    /// `NAME=value` for each, for people, with the levels that are known.
    pub(crate) fn shown(&self, levels: &Assignment) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, _, value)| format!("{name}={}", value.shown(levels)))
    }

    /// The names and where they stand.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Span)> {
        self.0.iter().map(|(name, place, _)| (name.as_str(), place))
    }

    /// The names with their values.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (&str, &Slot<T>)> {
        self.0.iter().map(|(name, _, value)| (name.as_str(), value))
    }

    /// Where the value of `name` stands.
    pub(crate) fn place_of(&self, name: &str) -> Option<&Span> {
        self.0.iter().find(|(known, ..)| known == name).map(|(_, _, value)| &value.span)
    }
}

impl<T: Scalar> FromToml for Pairs<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let read =
            |(name, node): &(&str, Node<'_>)| Some(((*name).to_owned(), node.place(), Slot::from_toml(node, faults)?));
        let pairs: Vec<Option<_>> = table.entries().iter().map(read).collect();
        pairs.into_iter().collect::<Option<_>>().map(Pairs)
    }
}

impl<T: Scalar> JsonSchema for Pairs<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<Slot<T>>() })
    }
}

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
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}
