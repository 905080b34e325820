//! The JSON Schema of the study file, for editors.

use crate::document::{FromToml, Schemas};
use crate::table::root::StudyTable;
use serde_json::Value;

/// The JSON Schema of `study.toml`, made from the tables that read it.
#[must_use]
pub fn json_schema() -> Value {
    let mut schemas = Schemas::default();
    StudyTable::json_schema(&mut schemas);
    let mut definitions = schemas.into_definitions();
    let mut schema = definitions.remove(StudyTable::NAME).unwrap_or_default();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Plimsoll study".into();
    schema["$defs"] = definitions.into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_committed_schema_is_the_one_of_the_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/study.schema.json");
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let current = format!("{}\n", serde_json::to_string_pretty(&json_schema()).expect("JSON"));
        assert!(
            committed == current,
            "docs/study.schema.json is out of date: write it anew with `plimsoll schema > docs/study.schema.json`"
        );
    }

    #[test]
    fn nothing_may_be_null_and_every_table_refuses_unknown_keys() {
        let text = json_schema().to_string();
        assert!(!text.contains("null"), "{text}");
        let tables = json_schema()["$defs"].as_object().expect("definitions").clone();
        for (name, table) in tables {
            let is_choice = table.get("anyOf").is_some();
            assert!(is_choice || table.get("additionalProperties").is_some(), "{name} takes any key");
        }
    }
}
