//! What can be read from a value of the document, and the forms in which tables hold it: optional,
//! several, one or several, valid or not.

use super::faults::Faults;
use super::node::{Node, TableNode};
use std::borrow::Cow;
use toml::de::DeValue;

/// What can be read from a value of the document.
pub(crate) trait FromToml: Sized {
    /// Reads a value. `None` if it is wrong; the faults say why.
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self>;

    /// The value of a key that is left out; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// The value that stands for a missing or wrong one, so that the rest is still checked; `None` if
    /// there is no such value.
    fn invalid() -> Option<Self> {
        None
    }
}

impl<T: FromToml> FromToml for Option<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        T::from_toml(node, faults).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
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

impl TableNode<'_> {
    /// Reads the value of `key`. A key that is only misspelt has been reported, and is neither
    /// missing nor left out.
    pub(crate) fn read<T: FromToml>(&self, key: &str, misspelt: &[&str], faults: &mut Faults) -> Option<T> {
        if let Some(node) = self.get(key) {
            return T::from_toml(node, faults).or_else(T::invalid);
        }
        if misspelt.contains(&key) {
            return T::invalid();
        }
        T::absent().or_else(|| {
            self.report_missing(key, faults);
            T::invalid()
        })
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
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Section<T> {
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
