//! Tables whose names are the author's own, such as environments and headers.

use super::scalar::Scalar;
use super::scope::Scope;
use super::templated::Templated;
use super::text::Word;
use crate::document::{Faults, FromToml, Node, Schemas, Span};
use plimsoll_model::factor::Assignment;
use serde_json::{Value, json};

/// A table whose names are the author's own, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Entries<V>(pub(crate) Vec<(String, Span, V)>);

/// Names and texts.
pub(crate) type Pairs<T = Word> = Entries<Templated<T>>;

impl<V> Entries<V> {
    /// The names and where they stand.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Span)> {
        self.0.iter().map(|(name, place, _)| (name.as_str(), place))
    }

    /// The names with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, _, value)| (name.as_str(), value))
    }

    /// What becomes of every one, so that all faults are named.
    pub(crate) fn each<U>(&self, mut resolve: impl FnMut(&V) -> Option<U>) -> Option<Vec<(String, U)>> {
        let resolved: Vec<Option<(String, U)>> =
            self.0.iter().map(|(name, _, value)| Some((name.clone(), resolve(value)?))).collect();
        resolved.into_iter().collect()
    }
}

impl<T: Scalar + Into<String>> Pairs<T> {
    /// The pairs for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Vec<(String, String)>> {
        self.each(|value| value.resolve(scope, faults).map(Into::into))
    }

    /// `NAME=value` for each, for people, with the levels that are known.
    pub(crate) fn shown(&self, levels: &Assignment) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, _, value)| format!("{name}={}", value.shown(levels)))
    }

    /// Where the value of `name` stands.
    pub(crate) fn place_of(&self, name: &str) -> Option<&Span> {
        self.0.iter().find(|(known, ..)| known == name).map(|(_, _, value)| &value.span)
    }
}

impl<V: FromToml> FromToml for Entries<V> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let read =
            |(name, node): &(&str, Node<'_>)| Some(((*name).to_owned(), node.place(), V::from_toml(node, faults)?));
        let entries: Vec<Option<_>> = table.entries().iter().map(read).collect();
        entries.into_iter().collect::<Option<_>>().map(Entries)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "object", "additionalProperties": V::json_schema(schemas) })
    }
}
