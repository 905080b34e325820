//! Faults of a feed, with their place.

use std::fmt;
use std::path::PathBuf;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// Why a file is no feed, or lacks a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedFault {
    /// The file.
    pub file: PathBuf,
    /// The place in the file; none for the file as a whole.
    pub place: Option<Place>,
    /// What was expected, and what was found.
    pub what: String,
}

/// A fault in a text, without the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Option<Place>,
    pub(crate) what: String,
}

impl Place {
    pub(crate) const START: Place = Place { line: 1, column: 1 };

    /// The place behind a text that begins here.
    pub(crate) fn behind(self, text: &str) -> Place {
        let lines = text.matches('\n').count();
        let column = if lines == 0 { self.column } else { 1 };
        let last_line = text.rsplit('\n').next().unwrap_or_default();
        Place { line: self.line + lines, column: column + last_line.chars().count() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl Fault {
    pub(crate) fn at(place: Place, what: impl Into<String>) -> Fault {
        Fault { place: Some(place), what: what.into() }
    }

    pub(crate) fn of_file(what: impl Into<String>) -> Fault {
        Fault { place: None, what: what.into() }
    }
}

impl fmt::Display for FeedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "feed `{}`", self.file.display())?;
        self.place.iter().try_for_each(|place| write!(f, ", {place}"))?;
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for FeedFault {}
