//! Feed files, whose rows all users take in turn. Generators of several shares of the users do not communicate: generator `i`
//! of `n` takes the rows `i`, `i + n`, `i + 2n`, …

use plimsoll_feed::{AtEnd, Table};
use plimsoll_model::load::{Share, WHOLE};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A feed file, read once and shared by all users.
pub(super) struct Feed {
    table: Table,
    /// The users that take rows here.
    share: Share,
    /// The number of rows that they took together.
    taken: AtomicU64,
}

impl Feed {
    pub(super) fn read(file: &Path) -> Result<Feed, String> {
        let table = Table::read(file).map_err(|fault| fault.to_string())?;
        Ok(Feed { table, share: WHOLE, taken: AtomicU64::new(0) })
    }

    /// From now on it is for these users.
    pub(super) fn set_share(&mut self, share: Share) {
        self.share = share;
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
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let position = self.share.index as u64 + taken * self.share.of as u64;
        AtEnd::StartOver.row(position, self.table.rows()).expect("a table has rows")
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        self.table.cell(row, column).as_str()
    }
}
