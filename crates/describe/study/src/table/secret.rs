//! `[secret.NAME]`: texts that no bundle, report or message may hold.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, table};
use crate::table::named_tables::{NamedTable, NamedTables};
use crate::value::{Literal, Text};
use serde_json::Value;
use std::path::{Path, PathBuf};

table! {
    /// A text that `{secret.NAME}` stands for, and that no bundle, report or message holds.
    struct SecretKeys {
        /// The variable of Plimsoll's environment that has it.
        env: Option<Literal<Text>>,
        /// The file that has it, relative to the study's folder; an end of line at its end is left out.
        file: Option<Literal<Text>>,
    }
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of Plimsoll's environment.
    Environment(String),
    /// A file.
    File(PathBuf),
}

/// Where a secret comes from, as the study has it.
#[derive(Clone, Debug)]
pub(crate) struct SecretTable(SecretSource);

impl SecretTable {
    /// The source, with a file relative to the study's folder `dir`.
    pub(crate) fn source(&self, dir: &Path) -> SecretSource {
        match &self.0 {
            SecretSource::File(path) => SecretSource::File(dir.join(path)),
            variable => variable.clone(),
        }
    }
}

impl FromToml for SecretTable {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let keys = SecretKeys::from_toml(node, faults)?;
        match (keys.env, keys.file) {
            (Some(variable), None) => Some(SecretTable(SecretSource::Environment(variable.value.0))),
            (None, Some(file)) => Some(SecretTable(SecretSource::File(PathBuf::from(file.value.0)))),
            (None, None) | (Some(_), Some(_)) => {
                let fault = Fault::error(&keys.place, format!("`{}` must say where it comes from, once", node.path));
                faults.add(
                    fault.help(
                        "write `env = \"VARIABLE\"` for a variable of Plimsoll's environment, or `file = \"PATH\"`",
                    ),
                );
                None
            }
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        SecretKeys::json_schema(schemas)
    }
}

impl NamedTable for SecretTable {
    const KIND: &'static str = "secret";
    const IDENTIFYING_KEYS: &'static [&'static str] = &["env", "file"];
    const CONTENT: &'static str = "where it comes from";
}

pub(crate) type SecretTables = NamedTables<SecretTable>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, read_table};

    #[test]
    fn a_secret_comes_from_one_place() {
        let source = |text: &str| read_table::<SecretTable>(text).source(Path::new("/study"));
        assert_eq!(source("env = 'API_KEY'"), SecretSource::Environment("API_KEY".to_owned()));
        assert_eq!(source("file = 'key.txt'"), SecretSource::File("/study/key.txt".into()));
        for text in ["", "env = 'A'\nfile = 'b'"] {
            let faults = faults_of::<SecretTable>(text);
            assert!(faults.len() == 1 && faults[0].contains("must say where it comes from, once"), "{faults:?}");
        }
        assert_eq!(faults_of::<SecretTable>("value = 'hunter2'").len(), 2, "a value has no place in a study");
    }
}
