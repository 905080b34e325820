//! A session with PostgreSQL: version 3 of its protocol.
//!
//! A prepared statement takes `Bind`, `Execute` and `Sync` in one write, most of which was laid out
//! when it was prepared; see [`statement`].

mod connect;
mod copy;
mod messages;
mod statement;

use crate::rows::{Cell, ResultSet};
use crate::socket::Socket;
use crate::{CallLimits, Rows, SessionId, SqlError, TextRows, Value};
use bytes::BytesMut;
use messages::{encoded, read_until_ready};
use plimsoll_model::database::Endpoint;
use postgres_protocol::message::{backend, frontend};
use statement::PreparedStatement;

/// A session.
pub(crate) struct Postgresql {
    pub(crate) socket: Socket,
    version: String,
    pub(crate) session: Option<SessionId>,
    statements: Vec<PreparedStatement>,
    result: ResultSet,
    /// Buffer for the next message, reused.
    out: Vec<u8>,
}

impl Postgresql {
    pub(crate) fn open(endpoint: &Endpoint, limits: CallLimits) -> Result<Postgresql, SqlError> {
        let mut socket = Socket::open(&endpoint.address, limits)?;
        let (version, session) = connect::connect(&mut socket, endpoint)?;
        Ok(Postgresql {
            socket,
            version,
            session,
            statements: Vec::new(),
            result: ResultSet::default(),
            out: Vec::new(),
        })
    }

    pub(crate) fn version(&self) -> String {
        format!("PostgreSQL {}", self.version)
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> Result<(), SqlError> {
        let prepared = PreparedStatement::new(&mut self.socket, self.statements.len(), sql)?;
        self.statements.push(prepared);
        Ok(())
    }

    pub(crate) fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<(), SqlError> {
        let prepared = &self.statements[statement];
        self.out.clear();
        prepared.bind(parameters, &mut self.out)?;
        self.socket.begin();
        self.socket.send(&self.out)?;
        self.result.clear();
        let (result, columns) = (&mut self.result, prepared.columns.len());
        read_until_ready(&mut self.socket, |tag, input, body| match tag {
            backend::DATA_ROW_TAG => add_row(result, columns, input, body),
            backend::COMMAND_COMPLETE_TAG => {
                result.affected = affected(&input[body]);
                Ok(())
            }
            _ => Ok(()),
        })
    }

    pub(crate) fn rows(&self, statement: usize) -> Rows<'_> {
        Rows { bytes: self.socket.input(), columns: &self.statements[statement].columns, result: &self.result }
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        self.send_query(sql)?;
        read_until_ready(&mut self.socket, |_, _, _| Ok(()))
    }

    pub(crate) fn query(&mut self, sql: &str) -> Result<TextRows, SqlError> {
        self.send_query(sql)?;
        let mut table = TextRows::default();
        read_until_ready(&mut self.socket, |tag, input, body| {
            match tag {
                backend::ROW_DESCRIPTION_TAG => {
                    table = TextRows {
                        columns: messages::columns(input, body)?.into_iter().map(|(name, _)| name).collect(),
                        rows: Vec::new(),
                    };
                }
                backend::DATA_ROW_TAG => {
                    let mut row = Vec::with_capacity(table.columns.len());
                    messages::cells(input, body, |cell| row.push(cell.map(|place| text(&input[place]))))?;
                    table.add(row)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(table)
    }

    pub(crate) fn terminate(&mut self) {
        // The server may be gone already.
        let _ = self.socket.send(b"X\0\0\0\x04");
    }

    /// Sends a text by the simple query protocol.
    fn send_query(&mut self, sql: &str) -> Result<(), SqlError> {
        let mut message = BytesMut::new();
        encoded(frontend::query(sql, &mut message))?;
        self.socket.begin();
        self.socket.send(&message)
    }
}

#[inline]
fn add_row(result: &mut ResultSet, columns: usize, input: &[u8], body: std::ops::Range<usize>) -> Result<(), SqlError> {
    let before = result.cells.len();
    let cells = &mut result.cells;
    messages::cells(input, body, |cell| {
        cells.push(cell.map_or(Cell::NULL, |place| Cell::new(place.start, place.len())));
    })?;
    if result.cells.len() - before != columns {
        return Err(SqlError::protocol("a row has another number of columns than the statement"));
    }
    result.end_row()
}

/// The number of rows from a tag such as `UPDATE 5`, `INSERT 0 1`; that of a SELECT changed none.
fn affected(tag: &[u8]) -> u64 {
    if tag.starts_with(b"SELECT") {
        return 0;
    }
    let digits = tag.strip_suffix(b"\0").unwrap_or(tag).rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
        .unwrap_or(0)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_where_they_were_changed() {
        assert_eq!(affected(b"UPDATE 12\0"), 12);
        assert_eq!(affected(b"INSERT 0 3\0"), 3);
        assert_eq!(affected(b"COPY 100000\0"), 100_000);
        assert_eq!(affected(b"SELECT 7\0"), 0);
        assert_eq!(affected(b"CREATE TABLE\0"), 0);
    }
}
