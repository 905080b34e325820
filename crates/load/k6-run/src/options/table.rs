//! Objects of options, each key of which is read once.

use super::OptionFault;
use plimsoll_model::suggestion::did_you_mean;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// An object, what of it was read, and what was wrong.
pub(super) struct Table<'a> {
    fields: &'a Map<String, Value>,
    /// What stands before the names of its options: `scenarios.login.`
    prefix: String,
    read: BTreeSet<&'static str>,
    faults: &'a mut Vec<OptionFault>,
}

/// What an option can be.
pub(super) trait Field: Sized {
    /// Reads a value; else what was expected, or faults of its own.
    fn read(value: &Value, at: &str, faults: &mut Vec<OptionFault>) -> Result<Self, String>;

    /// The value, as scripts see it.
    fn written(&self) -> Value;
}

impl<'a> Table<'a> {
    pub(super) fn new(fields: &'a Map<String, Value>, prefix: String, faults: &'a mut Vec<OptionFault>) -> Table<'a> {
        Table { fields, prefix, read: BTreeSet::new(), faults }
    }

    /// The option of this name; `null` is as good as none.
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

    /// The names that nobody asked for, each with a name that was asked for and is near: "; did you mean `vus`?".
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

/// A value, where it is short enough to be shown.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        Value::String(text) if text.chars().count() > 60 => format!("`{}…`", text.chars().take(60).collect::<String>()),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}
