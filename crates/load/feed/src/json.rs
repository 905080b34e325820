//! JSON: an array of objects, whose names are the columns.

use crate::draft::{Cell, Draft};
use crate::fault::{Fault, Place};
use plimsoll_model::json::Members;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Finds line and column of parts of a text, from the last part onwards.
struct PlaceFinder<'a> {
    text: &'a str,
    offset: usize,
    place: Place,
}

pub(crate) fn read(text: &str) -> Result<Draft, Fault> {
    let mut places = PlaceFinder { text, offset: 0, place: Place::START };
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| no_json(&error))?;
    if !whole.get().starts_with('[') {
        return Err(Fault::at(places.of(whole.get()), format!("expected an array of objects, found {}", kind(whole))));
    }
    let values: Vec<&RawValue> = serde_json::from_str(whole.get()).map_err(|error| no_json(&error))?;
    let (mut draft, mut objects) = (Draft::default(), Vec::new());
    let mut known = HashMap::new();
    for value in values {
        let place = places.of(value.get());
        objects.push((place, fields(value, place, &mut draft, &mut known)?));
    }
    for (place, fields) in &objects {
        add_row(fields, *place, &mut draft, &mut places)?;
    }
    Ok(draft)
}

/// The values of an object by the index of their column. New names become columns.
fn fields<'a>(
    object: &'a RawValue,
    place: Place,
    draft: &mut Draft,
    known: &mut HashMap<String, usize>,
) -> Result<HashMap<usize, &'a RawValue>, Fault> {
    if !object.get().starts_with('{') {
        return Err(Fault::at(place, format!("expected an object, found {}", kind(object))));
    }
    let Members(members) =
        serde_json::from_str(object.get()).map_err(|error| Fault::at(place, without_place(&error)))?;
    let mut values = HashMap::new();
    for (name, value) in members {
        let column = match known.get(&name) {
            Some(column) => *column,
            None => {
                draft.add_column(name.clone(), place)?;
                known.insert(name.clone(), draft.columns.len() - 1);
                draft.columns.len() - 1
            }
        };
        if values.insert(column, value).is_some() {
            return Err(Fault::at(place, format!("expected each name once in an object, found `{name}` again")));
        }
    }
    Ok(values)
}

fn add_row(
    fields: &HashMap<usize, &RawValue>,
    place: Place,
    draft: &mut Draft,
    places: &mut PlaceFinder<'_>,
) -> Result<(), Fault> {
    for column in 0..draft.columns.len() {
        match fields.get(&column).map(|value| value.get()) {
            Some(text) if text.starts_with('"') => {
                let unquoted: String = serde_json::from_str(text).map_err(|error| {
                    let what = format!("expected a text, found one that is none: {}", without_place(&error));
                    Fault::at(places.of(text), what)
                })?;
                draft.push(Cell::Text(&unquoted))?;
            }
            Some(json) => draft.push(Cell::Json(json))?,
            None => {
                draft.columns[column].absent.get_or_insert(place);
                draft.push(Cell::Json("null"))?;
            }
        }
    }
    Ok(())
}

impl PlaceFinder<'_> {
    /// The place of a part of the text. Counts on from the last part if this one lies behind it.
    fn of(&mut self, part: &str) -> Place {
        let offset = part.as_ptr() as usize - self.text.as_ptr() as usize;
        if offset < self.offset {
            (self.offset, self.place) = (0, Place::START);
        }
        self.place = self.place.behind(&self.text[self.offset..offset]);
        self.offset = offset;
        self.place
    }
}

fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a truth value",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn no_json(error: &serde_json::Error) -> Fault {
    let place = Place { line: error.line().max(1), column: error.column().max(1) };
    Fault::at(place, format!("expected JSON: {}", without_place(error)))
}

/// The message of an error without its place.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned()
}

#[cfg(test)]
mod tests {
    use crate::draft::Cell;
    use crate::table::Table;
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    fn values_keep_their_type_and_text() {
        let text = r#"[{"t": "a\"\u00fc\n", "n": -1.50e3, "o": {"x": [1, 2]}, "b": true, "z": null, "": ""}]"#;
        let table = Table::parse(Path::new("a.json"), text).expect("a feed");
        let cell = |name| table.cell(0, table.column(name).expect(name));
        assert_eq!((cell("t"), cell("n")), (Cell::Text("a\"ü\n"), Cell::Json("-1.50e3")));
        assert_eq!((cell("o"), cell("b")), (Cell::Json(r#"{"x": [1, 2]}"#), Cell::Json("true")));
        assert_eq!((cell("z"), cell("")), (Cell::Json("null"), Cell::Text("")));
    }

    #[test]
    fn the_order_of_names_does_not_matter() {
        let table = Table::parse(Path::new("a.json"), r#"[{"a": 1, "b": 2}, {"b": 4, "a": 3}]"#).expect("a feed");
        let column = |name| table.column(name).expect(name);
        assert_eq!((table.cell(1, column("a")), table.cell(1, column("b"))), (Cell::Json("3"), Cell::Json("4")));
    }

    proptest! {
        #[test]
        fn the_output_of_another_writer_is_read(rows in prop::collection::vec((any::<String>(), any::<i64>()), 1..6)) {
            let objects: Vec<_> = rows.iter().map(|(t, n)| serde_json::json!({ "t": t, "n": n })).collect();
            let text = serde_json::to_string_pretty(&objects).expect("written");
            let table = Table::parse(Path::new("a.json"), &text).expect("a feed");
            prop_assert_eq!(table.rows(), rows.len());
            let (texts, numbers) = (table.column("t").expect("t"), table.column("n").expect("n"));
            for (row, (text, number)) in rows.iter().enumerate() {
                prop_assert_eq!(table.cell(row, texts), Cell::Text(text));
                prop_assert_eq!(table.cell(row, numbers), Cell::Json(&number.to_string()));
            }
        }
    }
}
