//! CSV as RFC 4180 has it, with names of columns in the first line.
//!
//! Lines may end in any way, and empty lines do not count, as in the crate `csv`. That crate has no
//! columns in its errors, and takes a missing closing quote for a cell that reaches to the end of
//! the file: half of the users would be one cell.

use crate::draft::{Cell, Draft};
use crate::fault::{Fault, Place};
use std::iter::Peekable;
use std::str::Chars;

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// The place of the next character.
    place: Place,
}

/// One record: a line, or several if there are line breaks in quotes.
#[derive(Default)]
struct Record {
    cells: Vec<(String, Place)>,
    end: Option<Place>,
}

pub(crate) fn read(text: &str) -> Result<Draft, Fault> {
    let mut reader = Reader { rest: text.chars().peekable(), place: Place::START };
    let mut draft = Draft::default();
    let Some(names) = reader.record()? else {
        return Err(Fault::of_file("expected the names of columns in the first line, found nothing"));
    };
    names.cells.into_iter().try_for_each(|(name, place)| draft.add_column(name, place))?;
    while let Some(record) = reader.record()? {
        check_length(&record, &draft)?;
        record.cells.iter().try_for_each(|(cell, _)| draft.push(Cell::Text(cell)))?;
    }
    Ok(draft)
}

fn check_length(record: &Record, draft: &Draft) -> Result<(), Fault> {
    let (expected, found) = (draft.columns.len(), record.cells.len());
    let (place, which) = match (record.cells.get(expected), draft.columns.get(found)) {
        (Some((surplus, place)), _) => (*place, format!("`{surplus}` is too many")),
        (None, Some(column)) => (record.end.unwrap_or(Place::START), format!("`{}` is missing", column.name)),
        (None, None) => return Ok(()),
    };
    Err(Fault::at(place, format!("expected {expected} cells as there are columns, found {found}: {which}")))
}

impl Reader<'_> {
    /// The next record that is not an empty line; `None` at the end of the file.
    fn record(&mut self) -> Result<Option<Record>, Fault> {
        while self.rest.next_if(|c| matches!(c, '\r' | '\n')).inspect(|c| self.place = after(self.place, *c)).is_some()
        {
        }
        if self.rest.peek().is_none() {
            return Ok(None);
        }
        let mut record = Record::default();
        loop {
            let place = self.place;
            let cell = if self.take_if(|c| c == '"').is_some() { self.quoted(place)? } else { self.bare() };
            record.cells.push((cell, place));
            record.end = Some(self.place);
            if self.take_if(|c| c == ',').is_none() {
                return Ok(Some(record));
            }
        }
    }

    fn bare(&mut self) -> String {
        std::iter::from_fn(|| self.take_if(|c| !matches!(c, ',' | '\r' | '\n'))).collect()
    }

    /// Reads a cell whose opening quote is at `start`.
    fn quoted(&mut self, start: Place) -> Result<String, Fault> {
        let mut cell = String::new();
        loop {
            match self.take_if(|_| true) {
                None => {
                    let what = "expected another quote after this one, found the end of the file";
                    return Err(Fault::at(start, what));
                }
                // Two quotes are one quote of the cell.
                Some('"') if self.take_if(|c| c == '"').is_none() => break,
                Some(c) => cell.push(c),
            }
        }
        match self.rest.peek() {
            None | Some(',' | '\r' | '\n') => Ok(cell),
            Some(other) => {
                let what = "expected a comma or the end of the line after a closing quote";
                Err(Fault::at(self.place, format!("{what}, found `{other}`")))
            }
        }
    }

    fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let taken = self.rest.next_if(|c| wanted(*c))?;
        self.place = after(self.place, taken);
        Some(taken)
    }
}

/// The place behind a character.
fn after(place: Place, c: char) -> Place {
    match c {
        '\n' => Place { line: place.line + 1, column: 1 },
        _ => Place { column: place.column + 1, ..place },
    }
}

#[cfg(test)]
mod tests {
    use crate::draft::Cell;
    use crate::table::Table;
    use proptest::prelude::*;
    use std::path::Path;

    fn rows(text: &str) -> Vec<Vec<String>> {
        let table = Table::parse(Path::new("a.csv"), text).unwrap_or_else(|fault| panic!("{fault}"));
        let names = text.lines().find(|line| !line.is_empty()).expect("a line of names").split(',').count();
        let row = |row| (0..names).map(|column| table.cell(row, column).as_str().to_owned()).collect();
        (0..table.rows()).map(row).collect()
    }

    #[test]
    fn cells_are_read_as_the_rfc_has_them() {
        let cases: [(&str, &[[&str; 2]]); 6] = [
            // RFC 4180, section 2, rules 1 to 7.
            ("a,b\r\naaa,bbb\r\nzzz,yyy\r\n", &[["aaa", "bbb"], ["zzz", "yyy"]]),
            ("a,b\naaa,bbb", &[["aaa", "bbb"]]),
            ("a,b\n\"aaa\",\"b \r\nbb\"\nzzz,yyy", &[["aaa", "b \r\nbb"], ["zzz", "yyy"]]),
            ("a,b\naaa,\"b\"\"bb\"\n", &[["aaa", "b\"bb"]]),
            ("a,b\n spaces , stay \n", &[[" spaces ", " stay "]]),
            ("\n\na,b\n\n,\n\"\",x\"y\n\r\r\n", &[["", ""], ["", "x\"y"]]),
        ];
        for (text, expected) in cases {
            assert_eq!(rows(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_output_of_another_writer_is_read(
            cells in prop::collection::vec(prop::collection::vec("[a\",\r\n ü]{0,6}", 3), 1..6),
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(["x", "y", "z"]).expect("written");
            cells.iter().for_each(|row| writer.write_record(row).expect("written"));
            let text = String::from_utf8(writer.into_inner().expect("written")).expect("UTF-8");
            prop_assert_eq!(rows(&text), cells);
        }

        #[test]
        fn cells_equal_those_of_another_reader(text in "[ab\",\r\n]{0,30}") {
            let Ok(table) = Table::parse(Path::new("a.csv"), &text) else { return Ok(()) };
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let read: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
            let read = read.expect("what is right for us is right for others");
            prop_assert_eq!(read.len(), table.rows());
            for (row, record) in read.iter().enumerate() {
                for (column, cell) in record.iter().enumerate() {
                    prop_assert_eq!(table.cell(row, column), Cell::Text(cell));
                }
            }
        }
    }
}
