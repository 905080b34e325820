//! CSV files whose rows users take in turn.

use csv::StringRecord;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file, read once.
pub(super) struct Feed {
    pub(super) file: PathBuf,
    columns: StringRecord,
    rows: Vec<StringRecord>,
    /// Rows that were taken, by all users together.
    taken: AtomicUsize,
}

impl Feed {
    pub(super) fn read(file: &Path) -> Result<Feed, String> {
        let name = file.display();
        let unreadable = |error: csv::Error| format!("failed to read the feed `{name}`: {error}");
        let mut reader = csv::Reader::from_path(file).map_err(unreadable)?;
        let columns = reader.headers().map_err(unreadable)?.clone();
        let rows = reader.into_records().collect::<Result<Vec<StringRecord>, csv::Error>>().map_err(unreadable)?;
        if rows.is_empty() {
            return Err(format!("expected rows in the feed `{name}` below the names of its columns, found none"));
        }
        Ok(Feed { file: file.to_owned(), columns, rows, taken: AtomicUsize::new(0) })
    }

    /// Where the column of this name stands.
    pub(super) fn column(&self, name: &str) -> Result<usize, String> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| {
            let (file, known) = (self.file.display(), self.columns.iter().collect::<Vec<_>>().join("`, `"));
            format!("expected a column `{name}` in the feed `{file}`, found `{known}`")
        })
    }

    /// The number of the row that nobody has taken yet; from the start again at the end.
    pub(super) fn take(&self) -> usize {
        self.taken.fetch_add(1, Ordering::Relaxed) % self.rows.len()
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        // All rows have as many cells as there are columns: the reader has seen to it.
        &self.rows[row][column]
    }
}
