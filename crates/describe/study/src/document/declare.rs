//! [`table!`] declares a table of the study file once for its reader and for the JSON Schema.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

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
            pub(crate) place: crate::document::Span,
        }

        impl $name {
            /// Its keys, in the order of the reference.
            #[allow(dead_code)] // only keys of tables with a header are looked for elsewhere
            pub(crate) const KEYS: &'static [&'static str] = &[$(crate::document::key_name(stringify!($key))),*];
        }

        impl crate::document::FromToml for $name {
            fn from_toml(node: &crate::document::Node<'_>, faults: &mut crate::document::Faults) -> Option<Self> {
                let table = node.table(faults)?.described_by(crate::document::key_description::<Self>);
                let misspelt = table.refuse_unknown_keys(Self::KEYS, faults);
                $(let $key = table.read::<$type>(crate::document::key_name(stringify!($key)), &misspelt, faults);)*
                Some($name { $($key: $key?,)* place: node.place() })
            }
        }
    };
}
pub(crate) use table;

/// What a key of a table means, as its part of the schema says it, to follow a colon.
pub(crate) fn key_description<T: JsonSchema>(key: &str) -> Option<String> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let meaning = schema.get("properties")?.get(key)?.get("description")?.as_str()?.trim_end_matches('.');
    let (first, rest) = meaning.split_at_checked(1)?;
    Some(first.to_lowercase() + rest)
}
