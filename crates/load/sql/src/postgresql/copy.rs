//! Loading rows into PostgreSQL: COPY, in its text format.

use super::Postgresql;
use super::messages::{encoded, error, next, read_until_ready};
use crate::{SqlError, Value};
use bytes::BytesMut;
use plimsoll_model::record::ErrorKind;
use postgres_protocol::message::{backend, frontend};
use std::io::Write;

/// Buffered rows are sent from this many bytes on.
const CHUNK: usize = 64 * 1024;

/// Tag and length of `CopyData`.
const HEADER: usize = 5;

impl Postgresql {
    /// Begins a COPY, which [`Postgresql::copy_end`] or [`Postgresql::copy_fail`] ends.
    pub(crate) fn copy_begin(&mut self, table: &str, columns: &str) -> Result<(), SqlError> {
        self.send_query(&format!("COPY {table} ({columns}) FROM STDIN"))?;
        loop {
            match next(&mut self.socket)? {
                (backend::COPY_IN_RESPONSE_TAG, _) => break,
                (backend::ERROR_RESPONSE_TAG, body) => {
                    let (error, is_last) = error(self.socket.input(), body)?;
                    if is_last {
                        return Err(SqlError { kind: ErrorKind::Closed, ..error });
                    }
                    read_until_ready(&mut self.socket, |_, _, _| Ok(()))?;
                    return Err(error);
                }
                _ => {}
            }
        }
        self.copy_header();
        Ok(())
    }

    /// Adds a row.
    pub(crate) fn copy_row(&mut self, values: &[Value<'_>]) -> Result<(), SqlError> {
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                self.out.push(b'\t');
            }
            match value {
                Value::Null => self.out.extend_from_slice(b"\\N"),
                Value::Text(text) => escape(text, &mut self.out),
                _ => write!(self.out, "{value}").expect("memory takes every write"),
            }
        }
        self.out.push(b'\n');
        if self.out.len() < CHUNK {
            return Ok(());
        }
        self.copy_send()?;
        self.copy_header();
        Ok(())
    }

    /// Ends the COPY; returns the number of rows.
    pub(crate) fn copy_end(&mut self) -> Result<u64, SqlError> {
        self.copy_send()?;
        let mut done = BytesMut::new();
        frontend::copy_done(&mut done);
        self.socket.send(&done)?;
        let mut rows = 0;
        read_until_ready(&mut self.socket, |tag, input, body| {
            if tag == backend::COMMAND_COMPLETE_TAG {
                rows = super::affected(&input[body]);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Cancels the COPY: no row stays.
    pub(crate) fn copy_fail(&mut self) -> Result<(), SqlError> {
        let mut message = BytesMut::new();
        encoded(frontend::copy_fail("the load was given up", &mut message))?;
        self.socket.begin();
        self.socket.send(&message)?;
        match read_until_ready(&mut self.socket, |_, _, _| Ok(())) {
            Err(error) if error.is_fatal() => Err(error),
            // A cancelled COPY always reports an error.
            _ => Ok(()),
        }
    }

    fn copy_header(&mut self) {
        self.out.clear();
        self.out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
    }

    fn copy_send(&mut self) -> Result<(), SqlError> {
        if self.out.len() == HEADER {
            return Ok(());
        }
        let too_long = |_| SqlError::new(ErrorKind::Sql, "a row has over 2 GB");
        // The length of a message does not count its tag.
        let length = i32::try_from(self.out.len() - 1).map_err(too_long)?;
        self.out[1..HEADER].copy_from_slice(&length.to_be_bytes());
        self.socket.begin();
        self.socket.send(&self.out)
    }
}

/// Escapes the special characters of the text format with a backslash.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\\' | b'\n' | b'\r' | b'\t')) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match rest[at] {
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            _ => b"\\\\",
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_is_escaped() {
        let mut out = Vec::new();
        escape("a\tb\\N\r\nü", &mut out);
        assert_eq!(out, "a\\tb\\\\N\\r\\nü".as_bytes());
    }
}
