//! A TOML document as the tables of a study read it: values that know where they stand, and
//! [`table!`], which declares a table once for the reader and the JSON Schema.

use crate::diagnostic::{Fault, Span};
use crate::faults::{Faults, all_of, nearest};
use crate::table::home_of;
use plimsoll_model::factor::Level;
use std::borrow::Cow;
use toml::de::{DeTable, DeValue};

/// A value of the document.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a DeValue<'a>,
    /// Where the value stands.
    pub(crate) span: Span,
    /// Where its name stands, if it has one.
    pub(crate) key: Option<Span>,
    /// How messages name it: `load.users`, `workload.steps[1].call`.
    pub(crate) path: String,
}

/// What can be read from a value of the document.
pub(crate) trait FromToml: Sized {
    /// Reads a value. `None` when it is wrong, which the faults then say.
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self>;

    /// What stands for a key that is not there; `None` when the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// What to go on with when the value is missing or wrong, so that the rest is still checked.
    fn broken() -> Option<Self> {
        None
    }
}

/// A table of the document.
pub(crate) struct TableNode<'a> {
    /// In the order of the file.
    entries: Vec<(&'a str, Node<'a>)>,
    /// What points at the table as a whole.
    place: Span,
    path: String,
    /// What a key of it means, where that is known.
    meaning: fn(&str) -> Option<String>,
}

impl<'a> Node<'a> {
    pub(crate) fn root(document: &'a DeValue<'a>) -> Node<'a> {
        Node { value: document, span: 0..0, key: None, path: String::new() }
    }

    /// What points at the value as a whole: its name, or the place where it begins.
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
        Some(TableNode { entries, place, path, meaning: |_| None })
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

    /// What stands there, in words.
    fn found(&self) -> String {
        match self.value {
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Datetime(_) => "a date or time".to_owned(),
            DeValue::Integer(value) if self.scalar().is_none() => format!("{value}, which is too large"),
            _ => self.scalar().as_ref().map_or_else(|| "a number out of range".to_owned(), in_words),
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
                    Node { value: value.get_ref(), span: value.span(), key: Some(key.span()), path },
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

    /// The same table, which knows what its keys mean.
    pub(crate) fn explained_by(self, meaning: fn(&str) -> Option<String>) -> TableNode<'a> {
        TableNode { meaning, ..self }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, node)| node)
    }

    /// Reads the value of `key`. A key that is only misspelt has been reported, and is neither
    /// missing nor left out.
    pub(crate) fn read<T: FromToml>(&self, key: &str, misspelt: &[&str], faults: &mut Faults) -> Option<T> {
        if let Some(node) = self.get(key) {
            return T::from_toml(node, faults).or_else(T::broken);
        }
        if misspelt.contains(&key) {
            return T::broken();
        }
        T::absent().or_else(|| {
            self.report_missing(key, faults);
            T::broken()
        })
    }

    /// Faults for keys that the table does not have. Returns those that were meant, as far as one
    /// can tell.
    pub(crate) fn refuse_unknown_keys<'k>(&self, known: &[&'k str], faults: &mut Faults) -> Vec<&'k str> {
        let free: Vec<&str> = known.iter().copied().filter(|known| self.get(known).is_none()).collect();
        let mut misspelt = Vec::new();
        for (key, node) in self.entries.iter().filter(|(key, _)| !known.contains(key)) {
            let meant = nearest(key, free.iter().copied());
            let elsewhere = home_of(key).map(|home| format!("`{key}` belongs {home}"));
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

    fn report_missing(&self, key: &str, faults: &mut Faults) {
        // In a file that is not all TOML, the key may stand in the part that could not be read.
        if faults.well_formed() {
            let help = (self.meaning)(key).map(|meaning| format!("`{key}`: {meaning}"));
            faults.add(Fault::error(&self.place, format!("`{key}` is missing in {}", self.name())).maybe_help(help));
        }
    }

    fn name(&self) -> Cow<'_, str> {
        if self.path.is_empty() { "the study".into() } else { format!("`{}`", self.path).into() }
    }
}

/// A value in words, as messages name what they found.
pub(crate) fn in_words(level: &Level) -> String {
    match level {
        Level::Bool(value) => format!("the boolean {value}"),
        Level::Integer(value) => format!("the whole number {value}"),
        Level::Number(value) => format!("the number {value}"),
        Level::Text(text) => format!("the text \"{text}\""),
    }
}

impl<T: FromToml> FromToml for Option<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        T::from_toml(node, faults).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn broken() -> Option<Self> {
        T::broken().map(Some)
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let items: Vec<Option<T>> = node.items(faults)?.iter().map(|item| T::from_toml(item, faults)).collect();
        items.into_iter().collect()
    }
}

/// One, or an array of several.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMore<T>(pub(crate) Vec<T>);

impl<T: FromToml> FromToml for OneOrMore<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Array(_) => Vec::from_toml(node, faults).map(OneOrMore),
            _ => T::from_toml(node, faults).map(|one| OneOrMore(vec![one])),
        }
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for OneOrMore<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{} or several", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let one = generator.subschema_for::<T>();
        schemars::json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// A part of the study that can be wrong without keeping the others from being checked.
#[derive(Clone, Debug)]
pub(crate) enum Part<T> {
    /// As it should be.
    Whole(T),
    /// Missing or wrong; a fault says so.
    Broken,
}

impl<T> Part<T> {
    pub(crate) fn as_whole(&self) -> Option<&T> {
        match self {
            Part::Whole(value) => Some(value),
            Part::Broken => None,
        }
    }
}

impl<T: FromToml> FromToml for Part<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        T::from_toml(node, faults).map(Part::Whole)
    }

    fn broken() -> Option<Self> {
        Some(Part::Broken)
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Part<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

/// The key that a field of a table stands for: what is a word of Rust is written `r#do` there.
pub(crate) const fn key_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Declares a table of the study file: its Rust type, its reader, and its part of the JSON Schema,
/// all from one list of keys. A key whose type is an `Option` may be left out.
macro_rules! table {
    ($(#[$doc:meta])* struct $name:ident { $($(#[$key_doc:meta])* $key:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$key_doc])* pub(crate) $key: $type,)*
            /// What points at the table in messages.
            #[schemars(skip)]
            #[allow(dead_code)] // not every table has faults of its own
            pub(crate) place: crate::diagnostic::Span,
        }

        impl $name {
            /// Its keys, in the order of the reference.
            #[allow(dead_code)] // only keys of tables with a header are looked for elsewhere
            pub(crate) const KEYS: &'static [&'static str] = &[$(crate::node::key_name(stringify!($key))),*];
        }

        impl crate::node::FromToml for $name {
            fn from_toml(node: &crate::node::Node<'_>, faults: &mut crate::faults::Faults) -> Option<Self> {
                let table = node.table(faults)?.explained_by(crate::schema::meaning::<Self>);
                let misspelt = table.refuse_unknown_keys(Self::KEYS, faults);
                $(let $key = table.read::<$type>(crate::node::key_name(stringify!($key)), &misspelt, faults);)*
                Some($name { $($key: $key?,)* place: node.place() })
            }
        }
    };
}
pub(crate) use table;
