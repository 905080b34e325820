//! Feed files, whose rows all users take in turn.

use plimsoll_feed::{AtEnd, Table};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A feed file, read once and shared by all users.
pub(super) struct Feed {
    table: Table,
    /// The number of rows that all users together took.
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

    /// The index of the column of this name.
    pub(super) fn column(&self, name: &str) -> Result<usize, String> {
        self.table.column(name).map_err(|fault| fault.to_string())
    }

    /// Takes the next row, and returns its index. After the last row comes the first.
    pub(super) fn take(&self) -> usize {
        let position = self.taken.fetch_add(1, Ordering::Relaxed);
        AtEnd::StartOver.row(position, self.table.rows()).expect("a table has rows")
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        self.table.cell(row, column).as_str()
    }
}
