//! Reads objects of options, and notes keys that nobody reads.

use super::OptionFault;
use plimsoll_model::suggestion::did_you_mean;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// An object, the keys that were read, and the faults.
pub(super) struct Table<'a> {
    fields: &'a Map<String, Value>,
    /// The prefix of its options: `scenarios.login.`
    prefix: String,
    read: BTreeSet<&'static str>,
    faults: &'a mut Vec<OptionFault>,
}

/// A type of options.
pub(super) trait Field: Sized {
    /// Reads a value. The error is what was expected. May add faults.
    fn read(value: &Value, at: &str, faults: &mut Vec<OptionFault>) -> Result<Self, String>;

    /// The value, as scripts see it.
    fn written(&self) -> Value;
}

impl<'a> Table<'a> {
    pub(super) fn new(fields: &'a Map<String, Value>, prefix: String, faults: &'a mut Vec<OptionFault>) -> Table<'a> {
        Table { fields, prefix, read: BTreeSet::new(), faults }
    }

    /// Reads the option of this name; none if it is missing or `null`.
    pub(super) fn take<T: Field>(&mut self, name: &'static str) -> Option<T> {
        self.read.insert(name);
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        let at = format!("{}{name}", self.prefix);
        match T::read(value, &at, self.faults) {
            Ok(read) => Some(read),
            Err(expected) => {
                self.fault(name, &format!("expected {expected}, found {}", shown(value)));
                None
            }
        }
    }

    pub(super) fn fault(&mut self, name: &str, what: &str) {
        self.faults.push(OptionFault { option: format!("{}{name}", self.prefix), what: what.to_owned() });
    }

    /// A fault of the object itself.
    pub(super) fn fault_here(&mut self, what: &str) {
        let option = self.prefix.trim_end_matches('.').to_owned();
        self.faults.push(OptionFault { option, what: what.to_owned() });
    }

    /// The keys that were not read, each with a suggestion: "; did you mean `vus`?".
    pub(super) fn unread(&self) -> Vec<(String, String)> {
        let unread = self.fields.keys().filter(|name| !self.read.contains(name.as_str()));
        let hint = |name: &str| did_you_mean(name, self.read.iter().copied()).map(|hint| format!("; {hint}"));
        unread.map(|name| (name.clone(), hint(name).unwrap_or_default())).collect()
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value if it is short, else its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        Value::String(text) if text.chars().count() > 60 => format!("`{}…`", text.chars().take(60).collect::<String>()),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}
