//! The JSON Schema of what can be read, put together from the tables that a study names.

use super::declare::Key;
use serde_json::{Map, Value, json};

/// The schemas of named tables, each written once and referred to by its name.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    definitions: Map<String, Value>,
}

impl Schemas {
    /// Refers to the schema `name`, which `schema` writes where it is not known yet.
    pub(crate) fn reference(&mut self, name: &str, schema: fn(&mut Schemas) -> Value) -> Value {
        if !self.definitions.contains_key(name) {
            // A table may hold itself: from here on its name is taken.
            self.definitions.insert(name.to_owned(), Value::Null);
            let schema = schema(self);
            self.definitions.insert(name.to_owned(), schema);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// The schema of a table that has these keys and no others.
    pub(crate) fn table(&mut self, meaning: &[&str], keys: &[Key]) -> Value {
        let mut properties = Map::new();
        for key in keys {
            let mut schema = (key.schema)(self);
            schema["description"] = key.meaning().into();
            properties.insert(key.name.to_owned(), schema);
        }
        let mut table = json!({ "type": "object", "additionalProperties": false, "properties": properties });
        table["description"] = paragraph(meaning).into();
        let required: Vec<&str> = keys.iter().filter(|key| !key.optional).map(|key| key.name).collect();
        if !required.is_empty() {
            table["required"] = required.into();
        }
        table
    }

    /// The schemas of all tables that were referred to, by name.
    pub(crate) fn into_definitions(self) -> Map<String, Value> {
        self.definitions
    }
}

/// The text of a doc comment, whose lines begin with a space.
pub(super) fn paragraph(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n").trim().to_owned()
}
