//! What can be read from a value of the document, and the forms in which tables hold it: optional,
//! several, one or several, valid or not.

use super::faults::Faults;
use super::node::{Node, TableNode};
use super::schema::Schemas;
use serde_json::{Value, json};
use toml::de::DeValue;

/// What can be read from a value of the document.
pub(crate) trait FromToml: Sized {
    /// True if a key with such a value may be left out.
    const OPTIONAL: bool = false;

    /// Reads a value. `None` if it is wrong; the faults say why.
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self>;

    /// The value of a key that is left out; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Its JSON Schema, which may refer to those of named tables.
    fn json_schema(schemas: &mut Schemas) -> Value;

    /// The value that stands for a missing or wrong one, so that the rest is still checked; `None` if
    /// there is no such value.
    fn invalid() -> Option<Self> {
        None
    }
}

impl<T: FromToml> FromToml for Option<T> {
    const OPTIONAL: bool = true;

    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        T::from_toml(node, faults).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    /// TOML has no null: what may be left out is left out.
    fn json_schema(schemas: &mut Schemas) -> Value {
        T::json_schema(schemas)
    }

    fn invalid() -> Option<Self> {
        T::invalid().map(Some)
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let items: Vec<Option<T>> = node.items(faults)?.iter().map(|item| T::from_toml(item, faults)).collect();
        items.into_iter().collect()
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "array", "items": T::json_schema(schemas) })
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

    fn json_schema(schemas: &mut Schemas) -> Value {
        let one = T::json_schema(schemas);
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

impl TableNode<'_> {
    /// Reads the value of `key`. A key that is only misspelt has been reported, and is neither
    /// missing nor left out.
    pub(crate) fn read<T: FromToml>(&self, key: &str, misspelt: &[&str], faults: &mut Faults) -> Option<T> {
        let value = match self.get(key) {
            Some(node) => T::from_toml(node, faults),
            None if misspelt.contains(&key) => None,
            None if T::OPTIONAL => T::absent(),
            None => {
                self.report_missing(key, faults);
                None
            }
        };
        if value.is_some() { value } else { T::invalid() }
    }
}

/// A section of the study. Where it is wrong, the other sections are checked all the same.
#[derive(Clone, Debug)]
pub(crate) enum Section<T> {
    /// Without a fault.
    Valid(T),
    /// Missing or wrong; the faults say why.
    Invalid,
}

impl<T> Section<T> {
    /// The section, unless it is wrong.
    pub(crate) fn valid(&self) -> Option<&T> {
        match self {
            Section::Valid(value) => Some(value),
            Section::Invalid => None,
        }
    }
}

impl<T: FromToml> FromToml for Section<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        T::from_toml(node, faults).map(Section::Valid)
    }

    fn invalid() -> Option<Self> {
        Some(Section::Invalid)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        T::json_schema(schemas)
    }
}
