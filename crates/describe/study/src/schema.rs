//! The JSON Schema of the study file, for editors.

use crate::table::root::StudyTable;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;

/// The JSON Schema of `study.toml`, made from the tables that read it.
#[must_use]
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(WithoutNull);
    let mut schema = settings.into_generator().into_root_schema_for::<StudyTable>();
    schema.insert("title".to_owned(), "Plimsoll study".into());
    schema.to_value()
}

/// TOML has no null: what may be left out is left out.
#[derive(Clone, Debug)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(options)) = schema.get_mut("enum") {
            options.retain(|option| !option.is_null());
        }
        if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
            choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
            if let [Value::Object(only)] = choices.as_slice() {
                let only = only.clone();
                schema.remove("anyOf");
                for (key, value) in only {
                    schema.insert(key, value);
                }
            }
        }
    }
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
