//! [`table!`] declares a table of the study file once for its reader and for the JSON Schema.

use super::schema::{Schemas, paragraph};
use serde_json::Value;

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The lines of its doc comment.
    pub(crate) doc: &'static [&'static str],
    /// True if it may be left out.
    pub(crate) optional: bool,
    /// Writes the schema of its value.
    pub(crate) schema: fn(&mut Schemas) -> Value,
}

impl Key {
    /// What it means, as the reference and the schema say it.
    pub(super) fn meaning(&self) -> String {
        paragraph(self.doc)
    }

    /// What it means, to follow a colon.
    pub(super) fn description(&self) -> Option<String> {
        let meaning = self.meaning();
        let (first, rest) = meaning.trim_end_matches('.').split_at_checked(1)?;
        Some(first.to_lowercase() + rest)
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
    ($(#[doc = $doc:literal])* struct $name:ident {
        $($(#[doc = $key_doc:literal])* $(#[allow($lint:ident)])? $key:ident: $type:ty,)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $($(#[doc = $key_doc])* $(#[allow($lint)])? pub(crate) $key: $type,)*
            /// What points at the table in messages.
            #[allow(dead_code)] // not every table has faults of its own
            pub(crate) place: crate::document::Span,
        }

        impl $name {
            /// Its keys, in the order of the reference.
            #[allow(dead_code)] // only keys of tables with a header are looked for elsewhere
            pub(crate) const KEYS: &'static [&'static str] = &[$(crate::document::key_name(stringify!($key))),*];

            /// Its name in the JSON Schema.
            #[allow(dead_code)] // only that of the whole study is looked for
            pub(crate) const NAME: &'static str = stringify!($name);

            const DESCRIBED_KEYS: &'static [crate::document::Key] = &[$(crate::document::Key {
                name: crate::document::key_name(stringify!($key)),
                doc: &[$($key_doc),*],
                optional: <$type as crate::document::FromToml>::OPTIONAL,
                schema: <$type as crate::document::FromToml>::json_schema,
            }),*];
        }

        impl crate::document::FromToml for $name {
            fn from_toml(node: &crate::document::Node<'_>, faults: &mut crate::document::Faults) -> Option<Self> {
                let table = node.table(faults)?.described_by(Self::DESCRIBED_KEYS);
                let misspelt = table.refuse_unknown_keys(Self::KEYS, faults);
                $(let $key = table.read::<$type>(crate::document::key_name(stringify!($key)), &misspelt, faults);)*
                Some($name { $($key: $key?,)* place: node.place() })
            }

            fn json_schema(schemas: &mut crate::document::Schemas) -> serde_json::Value {
                schemas.reference(Self::NAME, |schemas| schemas.table(&[$($doc),*], Self::DESCRIBED_KEYS))
            }
        }
    };
}
pub(crate) use table;
