//! Tables of which a study has as many as it likes: `[system.NAME]`, `[database.NAME]`, `[store.NAME]`,
//! `[secret.NAME]`.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, TableNode, unknown};
use crate::value::{instance_name, is_name};
use serde_json::{Value, json};
use toml::de::DeValue;

/// A table that the study names: `[system.NAME]`.
pub(crate) trait NamedTable: FromToml + Clone {
    /// `system`, `database`, `store` or `secret`.
    const KIND: &'static str;
    /// Keys that only such a table has, and not the one around it.
    const IDENTIFYING_KEYS: &'static [&'static str];
    /// What it says first of all, for messages.
    const CONTENT: &'static str = "what it is";
    /// Names that are reserved.
    const RESERVED_NAMES: &'static [&'static str] = &["plimsoll", "secret"];

    /// The number of its instances, which are called `NAME-1`, `NAME-2`; none where it has the name itself.
    fn instances(&self) -> Option<u32> {
        None
    }
}

/// All tables of a kind, in the order of the file, which is the order in which systems start: name, its
/// place, and the table unless it is wrong.
#[derive(Clone, Debug)]
pub(crate) struct NamedTables<T>(pub(crate) Vec<(String, Span, Option<T>)>);

impl<T: NamedTable> NamedTables<T> {
    /// The names of all, those that are wrong included.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// The tables; `None` if one is wrong.
    pub(crate) fn all_valid(&self) -> Option<Vec<(String, T)>> {
        self.0.iter().map(|(name, _, table)| Some((name.clone(), table.clone()?))).collect()
    }
}

impl<T: NamedTable> FromToml for NamedTables<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let kind = T::KIND;
        if let Some(key) = first_identifying_key::<T>(&table) {
            let fault = Fault::error(&node.place(), format!("`{kind}` has `{key}`, but no name"));
            faults.add(fault.help(format!("write `[{kind}.NAME]`, with a name of your choice")));
            return None;
        }
        let mut all = Vec::new();
        for (name, node) in table.entries() {
            if !is_name(name) || T::RESERVED_NAMES.contains(name) {
                let fault = Fault::error(&node.place(), format!("a {kind} cannot be named `{name}`"));
                let taken: String = T::RESERVED_NAMES.iter().map(|name| format!("; `{name}` is taken")).collect();
                faults.add(fault.help(format!("a name is a letter, then letters, digits, `_` and `-`{taken}")));
            }
            let table = T::from_toml(node, faults);
            match table.as_ref().and_then(T::instances) {
                None => all.push(((*name).to_owned(), node.place(), table)),
                Some(instances) => {
                    let instance = |number| (instance_name(name, number), node.place(), table.clone());
                    all.extend((1..=instances).map(instance));
                }
            }
        }
        if let Some((name, place, _)) = first_twice(&all) {
            let fault = Fault::error(place, format!("two {kind}s are named `{name}`"));
            faults.add(fault.help("the instances of one have such names; give the other another name"));
        }
        Some(NamedTables(all))
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "object", "additionalProperties": T::json_schema(schemas) })
    }
}

/// The first that has the name of one before it.
fn first_twice<T>(all: &[(String, Span, Option<T>)]) -> Option<&(String, Span, Option<T>)> {
    all.iter()
        .enumerate()
        .find(|(place, (name, ..))| all[..*place].iter().any(|(known, ..)| known == name))
        .map(|(_, one)| one)
}

/// The first key that belongs into a table with a name, but stands in the one around it.
fn first_identifying_key<'a, T: NamedTable>(all: &TableNode<'a>) -> Option<&'a str> {
    let is_table = |node: &Node<'_>| matches!(node.value, DeValue::Table(_));
    all.entries().iter().find(|(key, node)| T::IDENTIFYING_KEYS.contains(key) && !is_table(node)).map(|(key, _)| *key)
}

/// The table called `name`, which stands at `span`.
pub(crate) fn find<'a, T: NamedTable>(
    all: &'a [(String, T)],
    name: &str,
    span: &Span,
    faults: &mut Faults,
) -> Option<&'a T> {
    let found = all.iter().find(|(known, _)| known == name);
    if found.is_none() {
        let fault = unknown(T::KIND, name, all.iter().map(|(name, _)| name.as_str()), span);
        let first = format!("say {} in `[{}.{name}]`", T::CONTENT, T::KIND);
        faults.add(if all.is_empty() { fault.help(first) } else { fault });
    }
    found.map(|(_, table)| table)
}
