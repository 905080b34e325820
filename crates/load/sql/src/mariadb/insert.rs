//! Loading rows into MariaDB: INSERTs of many rows each.

use super::results::{ResultHandler, results};
use super::{Mariadb, QUERY, packet};
use crate::{SqlError, TextRows, Value};
use std::io::Write;

/// The length of an INSERT in bytes, unless the server accepts less.
const MAX_STATEMENT: usize = 1 << 20;

/// Bytes that the server counts beside the text.
const MARGIN: usize = 1024;

/// Status flag: backslashes in strings are ordinary characters.
const NO_BACKSLASH_ESCAPES: u16 = 1 << 9;

/// A load under way.
#[derive(Default)]
pub(super) struct Insert {
    /// The start of each statement, up to its first row.
    prefix: Vec<u8>,
    max_length: usize,
    has_escapes: bool,
    inserted: u64,
}

impl Mariadb {
    /// Begins a load.
    pub(crate) fn insert_begin(&mut self, table: &str, columns: &str) -> Result<(), SqlError> {
        let mut allowed = TextRows::default();
        self.command(QUERY, b"SELECT @@max_allowed_packet")?;
        let state = results(&mut self.socket, self.capabilities, &mut allowed)?;
        let allowed =
            allowed.rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(MAX_STATEMENT);
        packet::begin(&mut self.out);
        self.out.push(QUERY);
        write!(self.out, "INSERT INTO {table} ({columns}) VALUES ").expect("memory takes every write");
        self.insert = Insert {
            prefix: self.out.clone(),
            max_length: MAX_STATEMENT.min(allowed.saturating_sub(MARGIN)),
            has_escapes: state & NO_BACKSLASH_ESCAPES == 0,
            inserted: 0,
        };
        Ok(())
    }

    /// Adds a row; sends those before it if there is no room for it.
    pub(crate) fn insert_row(&mut self, values: &[Value<'_>]) -> Result<(), SqlError> {
        let prefix = self.insert.prefix.len();
        let before = self.out.len();
        if before > prefix {
            self.out.push(b',');
        }
        write_row(values, self.insert.has_escapes, &mut self.out);
        if self.out.len() <= self.insert.max_length || before == prefix {
            return Ok(());
        }
        let row = self.out.split_off(before);
        self.insert_send()?;
        self.out.extend_from_slice(&row[1..]);
        Ok(())
    }

    /// Sends the remaining rows; returns the number of all rows.
    pub(crate) fn insert_end(&mut self) -> Result<u64, SqlError> {
        if self.out.len() > self.insert.prefix.len() {
            self.insert_send()?;
        }
        Ok(self.insert.inserted)
    }

    /// Sends the statement, and begins the next.
    fn insert_send(&mut self) -> Result<(), SqlError> {
        self.socket.begin();
        packet::send(&mut self.socket, 0, &mut self.out)?;
        self.out.clear();
        self.out.extend_from_slice(&self.insert.prefix);
        results(&mut self.socket, self.capabilities, &mut self.insert)?;
        Ok(())
    }
}

impl ResultHandler for Insert {
    fn changed(&mut self, rows: u64) {
        self.inserted += rows;
    }
}

fn write_row(values: &[Value<'_>], has_escapes: bool, out: &mut Vec<u8>) {
    for (number, value) in values.iter().enumerate() {
        out.push(if number == 0 { b'(' } else { b',' });
        match value {
            Value::Text(text) => write_string(text, has_escapes, out),
            _ => write!(out, "{value}").expect("memory takes every write"),
        }
    }
    out.push(b')');
}

/// A string with its quotes. One within is doubled, and so is a backslash where it has a meaning.
fn write_string(text: &str, has_escapes: bool, out: &mut Vec<u8>) {
    out.push(b'\'');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'\'' || (has_escapes && *byte == b'\\')) {
        out.extend_from_slice(&rest[..=at]);
        out.push(rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Value<'_>], has_escapes: bool) -> String {
        let mut out = Vec::new();
        write_row(values, has_escapes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_a_meaning_is_doubled() {
        let text = Value::Text(r"it's a \");
        assert_eq!(row(&[Value::Int(-1), Value::Null, text], true), r"(-1,NULL,'it''s a \\')");
        assert_eq!(row(&[text], false), r"('it''s a \')");
    }
}
