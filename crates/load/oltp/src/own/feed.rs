//! Files whose rows users take in turn.

use plimsoll_feed::{AtEnd, Table};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file, read once.
pub(super) struct Feed {
    table: Table,
    /// Rows that were taken, by all users together.
    taken: AtomicU64,
}

impl Feed {
    pub(super) fn read(file: &Path) -> Result<Feed, String> {
        let table = Table::read(file).map_err(|fault| fault.to_string())?;
        Ok(Feed { table, taken: AtomicU64::new(0) })
    }

    pub(super) fn file(&self) -> &Path {
        self.table.file()
    }

    /// Where the column of this name stands.
    pub(super) fn column(&self, name: &str) -> Result<usize, String> {
        self.table.column(name).map_err(|fault| fault.to_string())
    }

    /// The number of the row that nobody has taken yet; from the start again at the end.
    pub(super) fn take(&self) -> usize {
        let position = self.taken.fetch_add(1, Ordering::Relaxed);
        AtEnd::StartOver.row(position, self.table.rows()).expect("a table has rows")
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        self.table.cell(row, column).as_str()
    }
}
