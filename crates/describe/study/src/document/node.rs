//! A TOML document as the tables of a study read it: values that know where they stand.

use super::declare::Key;
use super::diagnostic::{Fault, Span};
use super::faults::{Faults, all_of, nearest};
use plimsoll_model::factor::Level;
use std::borrow::Cow;
use toml::de::{DeTable, DeValue};

/// A value of the document.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a DeValue<'a>,
    /// The place of the value.
    pub(crate) span: Span,
    /// The place of its key, if it has one.
    pub(crate) key: Option<Span>,
    /// The name in messages: `load.users`, `workload.steps[1].call`.
    pub(crate) path: String,
    /// Says to which table of the study file a key belongs, for keys in the wrong one.
    pub(crate) locate_key: LocateKey,
}

/// The place of a key in the study file, as in `in [load]`; none for a key that no table has.
pub(crate) type LocateKey = fn(&str, &str) -> Option<String>;

/// A table of the document.
pub(crate) struct TableNode<'a> {
    /// In the order of the file.
    entries: Vec<(&'a str, Node<'a>)>,
    /// The place that messages point at for the table as a whole.
    place: Span,
    path: String,
    /// Its keys, where they are known.
    keys: &'static [Key],
    locate_key: LocateKey,
}

impl<'a> Node<'a> {
    pub(crate) fn root(document: &'a DeValue<'a>, locate_key: LocateKey) -> Node<'a> {
        Node { value: document, span: 0..0, key: None, path: String::new(), locate_key }
    }

    /// The place that messages point at for the value as a whole: its key, or its first byte.
    pub(crate) fn place(&self) -> Span {
        self.key.clone().unwrap_or_else(|| self.span.start..self.span.end.min(self.span.start + 1))
    }

    /// `` `load.users` `` for messages.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() { "the study".to_owned() } else { format!("`{}`", self.path) }
    }

    /// The value, if it is a table.
    pub(crate) fn table(&self, faults: &mut Faults) -> Option<TableNode<'a>> {
        let DeValue::Table(table) = self.value else {
            faults.add(self.wrong_type("a table"));
            return None;
        };
        let (entries, place, path) = (self.entries(table), self.place(), self.path.clone());
        Some(TableNode { entries, place, path, keys: &[], locate_key: self.locate_key })
    }

    /// The items, if it is an array.
    pub(crate) fn items(&self, faults: &mut Faults) -> Option<Vec<Node<'a>>> {
        let DeValue::Array(items) = self.value else {
            faults.add(self.wrong_type("an array"));
            return None;
        };
        let numbered = items.iter().zip(1..).map(|(item, number)| Node {
            value: item.get_ref(),
            span: item.span(),
            key: None,
            path: format!("{}[{number}]", self.path),
            locate_key: self.locate_key,
        });
        Some(numbered.collect())
    }

    /// The value, if it is a text, a number or a boolean.
    pub(crate) fn scalar(&self) -> Option<Level> {
        match self.value {
            DeValue::String(text) => Some(Level::Text(text.to_string())),
            DeValue::Boolean(value) => Some(Level::Bool(*value)),
            DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix()).ok().map(Level::Integer),
            DeValue::Float(value) => value.as_str().parse().ok().map(Level::Number),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
        }
    }

    pub(crate) fn wrong_type(&self, expected: &str) -> Fault {
        let found = self.found();
        Fault::error(&self.span, format!("{} must be {expected}, not {found}", self.name())).label(found)
    }

    /// Describes the value that was found.
    fn found(&self) -> String {
        match self.value {
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Datetime(_) => "a date or time".to_owned(),
            DeValue::Integer(value) if self.scalar().is_none() => format!("{value}, which is too large"),
            _ => self.scalar().as_ref().map_or_else(|| "a number out of range".to_owned(), level_in_words),
        }
    }

    fn entries(&self, table: &'a DeTable<'a>) -> Vec<(&'a str, Node<'a>)> {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| {
                let dot = if self.path.is_empty() { "" } else { "." };
                let path = format!("{}{dot}{}", self.path, key.get_ref());
                (
                    key.get_ref().as_ref(),
                    Node {
                        value: value.get_ref(),
                        span: value.span(),
                        key: Some(key.span()),
                        path,
                        locate_key: self.locate_key,
                    },
                )
            })
            .collect();
        entries.sort_by_key(|(_, node)| (node.place().start, node.span.start));
        entries
    }
}

impl<'a> TableNode<'a> {
    pub(crate) fn entries(&self) -> &[(&'a str, Node<'a>)] {
        &self.entries
    }

    /// The same table, whose missing keys are described in messages.
    pub(crate) fn described_by(self, keys: &'static [Key]) -> TableNode<'a> {
        TableNode { keys, ..self }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, node)| node)
    }

    /// Reports keys that the table does not have. Returns the known keys that were probably meant.
    pub(crate) fn refuse_unknown_keys<'k>(&self, known: &[&'k str], faults: &mut Faults) -> Vec<&'k str> {
        let free: Vec<&str> = known.iter().copied().filter(|known| self.get(known).is_none()).collect();
        let mut misspelt = Vec::new();
        for (key, node) in self.entries.iter().filter(|(key, _)| !known.contains(key)) {
            let meant = nearest(key, free.iter().copied());
            let elsewhere = (self.locate_key)(key, &self.path).map(|place| format!("`{key}` belongs {place}"));
            let label = if elsewhere.is_some() { "not a key of this table" } else { "not a key of a study" };
            let near = meant.map(|meant| format!("did you mean `{meant}`?"));
            let help = match (near, elsewhere) {
                (Some(near), Some(elsewhere)) => format!("{near} {elsewhere}"),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => format!("the keys here are {}", all_of(known.iter().copied())),
            };
            let fault = Fault::error(&node.place(), format!("unknown key `{key}` in {}", self.name()));
            faults.add(fault.label(label).help(help));
            misspelt.extend(meant);
        }
        misspelt
    }

    pub(super) fn report_missing(&self, key: &str, faults: &mut Faults) {
        // In a file that is not all TOML, the key may stand in the part that could not be read.
        if faults.well_formed() {
            let help = self.description(key).map(|meaning| format!("`{key}`: {meaning}"));
            faults.add(Fault::error(&self.place, format!("`{key}` is missing in {}", self.name())).maybe_help(help));
        }
    }

    /// What `key` means, to follow a colon, where that is known.
    fn description(&self, key: &str) -> Option<String> {
        self.keys.iter().find(|known| known.name == key)?.description()
    }

    fn name(&self) -> Cow<'_, str> {
        if self.path.is_empty() { "the study".into() } else { format!("`{}`", self.path).into() }
    }
}

/// Describes a value, as messages name what they found.
pub(crate) fn level_in_words(level: &Level) -> String {
    match level {
        Level::Bool(value) => format!("the boolean {value}"),
        Level::Integer(value) => format!("the whole number {value}"),
        Level::Number(value) => format!("the number {value}"),
        Level::Text(text) => format!("the text \"{text}\""),
    }
}
