//! Data for users.

use super::text;
use plimsoll_feed::Table;
use std::path::Path;

/// Reads the input as CSV.
pub(super) fn csv(input: &[u8]) {
    read("feed.csv", input);
}

/// Reads the input as JSON.
pub(super) fn json(input: &[u8]) {
    read("feed.json", input);
}

fn read(name: &str, input: &[u8]) {
    match Table::parse(Path::new(name), &text(input)) {
        Ok(table) => {
            let columns = table.columns().count();
            assert!(table.rows() > 0 && columns > 0, "expected a table with content");
            for row in 0..table.rows() {
                (0..columns).for_each(|column| drop(table.cell(row, column).as_str().to_owned()));
            }
        }
        Err(fault) => drop(fault.to_string()),
    }
}
