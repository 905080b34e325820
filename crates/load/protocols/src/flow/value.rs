//! What a user keeps under a name, and how that is written.

use plimsoll_feed::Cell;
use std::borrow::Cow;

/// What a user keeps under a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// Nothing yet.
    #[default]
    Absent,
    /// A number that was drawn.
    Integer(i64),
    /// A text.
    Text(Box<str>),
    /// JSON that is no text.
    Json(Box<str>),
    /// All that was found.
    List(Box<[Value]>),
}

/// A value, wherever it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum View<'a> {
    Absent,
    Integer(i64),
    Text(&'a str),
    Json(&'a str),
    List(&'a [Value]),
}

impl Value {
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Value::Absent => View::Absent,
            Value::Integer(number) => View::Integer(*number),
            Value::Text(text) => View::Text(text),
            Value::Json(json) => View::Json(json),
            Value::List(items) => View::List(items),
        }
    }

    /// A value of JSON as it stands in a body; `None` where it is no JSON.
    pub(super) fn of_json(raw: &[u8]) -> Option<Value> {
        let text = std::str::from_utf8(raw).ok()?;
        match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(inside) if !inside.contains('\\') && !inside.contains(|c: char| c.is_ascii_control()) => {
                Some(Value::Text(inside.into()))
            }
            Some(_) => serde_json::from_str::<Box<str>>(text).ok().map(Value::Text),
            None => serde_json::from_str::<serde::de::IgnoredAny>(text).ok().map(|_| Value::Json(text.into())),
        }
    }

    /// A value of JSON that was parsed.
    pub(super) fn of_parsed(value: &serde_json::Value) -> Value {
        match value {
            serde_json::Value::String(text) => Value::Text(text.as_str().into()),
            other => Value::Json(other.to_string().into()),
        }
    }

    /// What a study gives: an array is a list.
    pub(super) fn of_study(value: &serde_json::Value) -> Value {
        match value {
            serde_json::Value::Array(items) => Value::List(items.iter().map(Value::of_parsed).collect()),
            other => Value::of_parsed(other),
        }
    }

    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            Value::Absent | Value::Integer(_) => 0,
            Value::Text(text) | Value::Json(text) => text.len(),
            Value::List(items) => items.iter().map(|item| item.size() + size_of::<Value>()).sum(),
        }
    }
}

impl<'a> View<'a> {
    pub(super) fn of_cell(cell: Cell<'a>) -> View<'a> {
        match cell {
            Cell::Text(text) => View::Text(text),
            Cell::Json(json) => View::Json(json),
        }
    }

    /// True if there is something: no `null`, and no list without items.
    pub(super) fn is_there(self) -> bool {
        !matches!(self, View::Absent | View::Json("null") | View::List([]))
    }

    /// As a text: lists, arrays and objects are JSON. Nothing where it is absent.
    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            View::Absent => Cow::Borrowed(""),
            View::Integer(number) => Cow::Owned(number.to_string()),
            View::Text(text) | View::Json(text) => Cow::Borrowed(text),
            View::List(_) => Cow::Owned(self.json()),
        }
    }

    /// As JSON.
    fn json(self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    /// Appends it as JSON: a text has quotes.
    pub(super) fn write_json(self, out: &mut String) {
        match self {
            View::Absent => out.push_str("null"),
            View::Integer(number) => out.push_str(&number.to_string()),
            View::Text(text) => out.push_str(&serde_json::Value::from(text).to_string()),
            View::Json(json) => out.push_str(json),
            View::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    item.view().write_json(out);
                }
                out.push(']');
            }
        }
    }

    /// The items of a list, or of an array in JSON.
    pub(super) fn items(self) -> Option<Cow<'a, [Value]>> {
        match self {
            View::List(items) => Some(Cow::Borrowed(items)),
            View::Json(json) if json.starts_with('[') => {
                let items: Vec<serde_json::Value> = serde_json::from_str(json).ok()?;
                Some(Cow::Owned(items.iter().map(Value::of_parsed).collect()))
            }
            View::Absent | View::Json("null") => Some(Cow::Borrowed(&[])),
            View::Integer(_) | View::Text(_) | View::Json(_) => None,
        }
    }
}
