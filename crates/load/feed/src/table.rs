//! A table: the cells of a file in one text, with their ends.

use crate::draft::{Cell, CellEnd, Column, Draft};
use crate::fault::{Fault, FeedFault, Place};
use crate::{csv, json};
use std::path::{Path, PathBuf};

/// A file with columns and rows, read once.
#[derive(Debug)]
pub struct Table {
    file: PathBuf,
    columns: Vec<Column>,
    rows: usize,
    /// All cells, one after the other.
    text: String,
    /// Row by row, a cell for each column.
    cells: Vec<CellEnd>,
}

impl Table {
    /// Reads a file: one whose name ends in `.json` as an array of objects, any other as CSV whose
    /// first line names the columns. A file without rows is a fault.
    pub fn read(file: &Path) -> Result<Table, FeedFault> {
        let unreadable = |error: &dyn std::fmt::Display| format!("failed to read it: {error}");
        // Reading from a pipe could wait for ever.
        if file.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(in_file(file, Fault::of_file("expected a regular file, found another kind")));
        }
        let bytes = std::fs::read(file).map_err(|error| in_file(file, Fault::of_file(unreadable(&error))))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            in_file(file, Fault::at(Place::START.behind(&valid), "expected text in UTF-8, found other bytes"))
        })?;
        Table::parse(file, &text)
    }

    /// Reads a table from the content of a file of this name.
    pub fn parse(file: &Path, text: &str) -> Result<Table, FeedFault> {
        let is_json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = if is_json { json::read(text) } else { csv::read(text) };
        let draft = read.map_err(|fault| in_file(file, fault))?;
        if draft.cells.is_empty() {
            let rows = if is_json { "objects in its array" } else { "rows below the names of the columns" };
            return Err(in_file(file, Fault::of_file(format!("expected {rows}, found none"))));
        }
        let Draft { columns, text, cells } = draft;
        Ok(Table { file: file.to_owned(), rows: cells.len() / columns.len(), columns, text, cells })
    }

    /// The file that was read.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The number of rows; at least one.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The names of its columns, in the order of the file.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The index of a column. A column that some row lacks is a fault.
    pub fn column(&self, name: &str) -> Result<usize, FeedFault> {
        let Some(index) = self.columns.iter().position(|column| column.name == name) else {
            let known: Vec<&str> = self.columns().collect();
            let what = format!("expected a column `{name}`, found `{}`", known.join("`, `"));
            return Err(in_file(&self.file, Fault::of_file(what)));
        };
        match self.columns[index].absent {
            None => Ok(index),
            Some(place) => {
                let what = format!("expected a value for `{name}` in each object, found one without");
                Err(in_file(&self.file, Fault::at(place, what)))
            }
        }
    }

    /// A cell. `column` is an index from [`Table::column`].
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let index = row * self.columns.len() + column;
        let start = index.checked_sub(1).map_or(0, |before| self.cells[before].end);
        let CellEnd { end, is_json } = self.cells[index];
        let text = &self.text[start as usize..end as usize];
        if is_json { Cell::Json(text) } else { Cell::Text(text) }
    }
}

fn in_file(file: &Path, Fault { place, what }: Fault) -> FeedFault {
    FeedFault { file: file.to_owned(), place, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_extension_decides_the_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let (rows, objects) = (folder.path().join("rows.csv"), folder.path().join("objects.JSON"));
        fs::write(&rows, "\u{feff}id,name\n1,Ann\n2,Bob\n").expect("written");
        fs::write(&objects, "\u{feff}[{\"id\": 1, \"name\": \"Ann\"}, {\"id\": 2, \"name\": \"Bob\"}]")
            .expect("written");
        for (file, id) in [(rows, Cell::Text("2")), (objects, Cell::Json("2"))] {
            let table = Table::read(&file).expect("a feed");
            assert_eq!((table.rows(), table.file()), (2, file.as_path()));
            let (first, second) = (table.column("id").expect("there"), table.column("name").expect("there"));
            assert_eq!((table.cell(1, first), table.cell(0, second)), (id, Cell::Text("Ann")));
        }
    }

    #[test]
    fn a_folder_is_no_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let fault = Table::read(folder.path()).expect_err("it is no file").to_string();
        assert!(fault.ends_with("expected a regular file, found another kind"), "{fault}");
    }

    #[test]
    fn faults_have_a_place() {
        let cases = [
            ("a.csv", "", "feed `a.csv`: expected the names of columns in the first line, found nothing"),
            ("a.csv", "id,name\n", "feed `a.csv`: expected rows below the names of the columns, found none"),
            ("a.csv", "id,id\n1,2\n", "feed `a.csv`, line 1, column 4: expected each column once, found `id` again"),
            (
                "a.csv",
                "id,name\n1,Ann\n2\n",
                "feed `a.csv`, line 3, column 2: expected 2 cells as there are columns, found 1: `name` is missing",
            ),
            (
                "a.csv",
                "id,name\n1,Änn,x,y\n",
                "feed `a.csv`, line 2, column 7: expected 2 cells as there are columns, found 4: `x` is too many",
            ),
            (
                "a.csv",
                "id,name\n1,\"Ann\n",
                "feed `a.csv`, line 2, column 3: expected another quote after this one, found the end of the file",
            ),
            (
                "a.csv",
                "id,name\n1,\"A\"nn\n",
                "feed `a.csv`, line 2, column 6: expected a comma or the end of the line after a closing quote, found `n`",
            ),
            ("a.json", "[]", "feed `a.json`: expected objects in its array, found none"),
            ("a.json", "[{}]", "feed `a.json`: expected objects in its array, found none"),
            ("a.json", "[{\"a\": 1},\n {]", "feed `a.json`, line 2, column 3: expected JSON: key must be a string"),
            ("a.json", "{\"a\": 1}", "feed `a.json`, line 1, column 1: expected an array of objects, found an object"),
            ("a.json", "[{\"a\": 1},\n  7]", "feed `a.json`, line 2, column 3: expected an object, found a number"),
            (
                "a.json",
                "[{\"a\": 1,\n \"a\": 2}]",
                "feed `a.json`, line 1, column 2: expected each name once in an object, found `a` again",
            ),
            (
                "a.json",
                "[{\"a\": \"\\ud800\"}]",
                "feed `a.json`, line 1, column 8: expected a text, found one that is none: unexpected end of hex escape",
            ),
        ];
        for (file, text, expected) in cases {
            let fault = Table::parse(Path::new(file), text).expect_err(text);
            assert_eq!(fault.to_string(), expected);
        }
    }

    #[test]
    fn a_missing_file_and_one_that_is_no_text_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = Table::read(&folder.path().join("none.csv")).expect_err("it is not there").to_string();
        assert!(missing.contains("none.csv`: failed to read it: No such file"), "{missing}");
        let latin = folder.path().join("latin.csv");
        fs::write(&latin, b"id,name\n1,M\xfcller\n").expect("written");
        let fault = Table::read(&latin).expect_err("it is not UTF-8");
        assert_eq!(
            (fault.place, fault.what.as_str()),
            (Some(Place { line: 2, column: 4 }), "expected text in UTF-8, found other bytes")
        );
    }

    #[test]
    fn a_column_must_have_a_value_in_each_row() {
        let text = "[{\"id\": 1, \"name\": \"Ann\"},\n {\"id\": 2, \"city\": null}]";
        let table = Table::parse(Path::new("a.json"), text).expect("a feed");
        assert_eq!(table.column("id"), Ok(0));
        let faults = ["name", "city", "nme"].map(|name| table.column(name).expect_err(name).to_string());
        assert_eq!(
            faults,
            [
                "feed `a.json`, line 2, column 2: expected a value for `name` in each object, found one without",
                "feed `a.json`, line 1, column 2: expected a value for `city` in each object, found one without",
                "feed `a.json`: expected a column `nme`, found `id`, `name`, `city`",
            ]
        );
    }
}
