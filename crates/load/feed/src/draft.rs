//! Columns and cells while a file is read: what the readers of CSV and JSON fill.

use crate::fault::{Fault, Place};

/// A cell: the value of a row in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A text: all there is in CSV, and strings of JSON without their quotes.
    Text(&'a str),
    /// A number, object, array, `true`, `false` or `null`, as JSON has it.
    Json(&'a str),
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The place of the first row without it: objects may have different names.
    pub(crate) absent: Option<Place>,
}

/// The end of a cell in the text of all cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellEnd {
    pub(crate) end: u32,
    pub(crate) is_json: bool,
}

/// Columns and cells of a table that is being read.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) columns: Vec<Column>,
    pub(crate) text: String,
    pub(crate) cells: Vec<CellEnd>,
}

impl<'a> Cell<'a> {
    /// Its text or JSON.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        match self {
            Cell::Text(text) | Cell::Json(text) => text,
        }
    }
}

impl Draft {
    /// Appends the next cell of the row.
    pub(crate) fn push(&mut self, cell: Cell<'_>) -> Result<(), Fault> {
        self.text.push_str(cell.as_str());
        let end = u32::try_from(self.text.len());
        let end = end.map_err(|_| Fault::of_file("expected less than 4 GiB of text, found more"))?;
        self.cells.push(CellEnd { end, is_json: matches!(cell, Cell::Json(_)) });
        Ok(())
    }

    pub(crate) fn add_column(&mut self, name: String, place: Place) -> Result<(), Fault> {
        if self.columns.iter().any(|column| column.name == name) {
            return Err(Fault::at(place, format!("expected each column once, found `{name}` again")));
        }
        self.columns.push(Column { name, absent: None });
        Ok(())
    }
}
