//! The values that a user keeps, and their text and JSON.

use plimsoll_feed::Cell;
use std::borrow::Cow;

/// A value that a user keeps under a name.
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
    /// All values that a capture found.
    List(Box<[Value]>),
}

/// A borrowed value, of a user or of a feed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueView<'a> {
    Absent,
    Integer(i64),
    Text(&'a str),
    Json(&'a str),
    List(&'a [Value]),
}

impl Value {
    pub(super) fn view(&self) -> ValueView<'_> {
        match self {
            Value::Absent => ValueView::Absent,
            Value::Integer(number) => ValueView::Integer(*number),
            Value::Text(text) => ValueView::Text(text),
            Value::Json(json) => ValueView::Json(json),
            Value::List(items) => ValueView::List(items),
        }
    }

    /// Parses a JSON value of a body; `None` if it is no JSON.
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

    /// A value from parsed JSON.
    pub(super) fn of_parsed(value: &serde_json::Value) -> Value {
        match value {
            serde_json::Value::String(text) => Value::Text(text.as_str().into()),
            other => Value::Json(other.to_string().into()),
        }
    }

    /// A value from the study file. An array is a list.
    pub(super) fn of_study(value: &serde_json::Value) -> Value {
        match value {
            serde_json::Value::Array(items) => Value::List(items.iter().map(Value::of_parsed).collect()),
            other => Value::of_parsed(other),
        }
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Value::Absent | Value::Integer(_) => 0,
            Value::Text(text) | Value::Json(text) => text.len(),
            Value::List(items) => items.iter().map(|item| item.size() + size_of::<Value>()).sum(),
        }
    }
}

impl<'a> ValueView<'a> {
    pub(super) fn of_cell(cell: Cell<'a>) -> ValueView<'a> {
        match cell {
            Cell::Text(text) => ValueView::Text(text),
            Cell::Json(json) => ValueView::Json(json),
        }
    }

    /// False for absent values, `null`, and empty lists.
    pub(super) fn is_present(self) -> bool {
        !matches!(self, ValueView::Absent | ValueView::Json("null") | ValueView::List([]))
    }

    /// Its text. Lists, arrays and objects are JSON; an absent value is empty.
    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            ValueView::Absent => Cow::Borrowed(""),
            ValueView::Integer(number) => Cow::Owned(number.to_string()),
            ValueView::Text(text) | ValueView::Json(text) => Cow::Borrowed(text),
            ValueView::List(_) => Cow::Owned(self.json()),
        }
    }

    /// As JSON.
    fn json(self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    /// Appends its JSON. A text gets quotes.
    pub(super) fn write_json(self, out: &mut String) {
        match self {
            ValueView::Absent => out.push_str("null"),
            ValueView::Integer(number) => out.push_str(&number.to_string()),
            ValueView::Text(text) => out.push_str(&serde_json::Value::from(text).to_string()),
            ValueView::Json(json) => out.push_str(json),
            ValueView::List(items) => {
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
            ValueView::List(items) => Some(Cow::Borrowed(items)),
            ValueView::Json(json) if json.starts_with('[') => {
                let items: Vec<serde_json::Value> = serde_json::from_str(json).ok()?;
                Some(Cow::Owned(items.iter().map(Value::of_parsed).collect()))
            }
            ValueView::Absent | ValueView::Json("null") => Some(Cow::Borrowed(&[])),
            ValueView::Integer(_) | ValueView::Text(_) | ValueView::Json(_) => None,
        }
    }
}
