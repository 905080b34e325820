//! A session with PostgreSQL: version 3 of its protocol.
//!
//! A prepared statement takes `Bind`, `Execute` and `Sync` in one write, most of which was laid out
//! when it was prepared; see [`statement`].

mod connect;
mod copy;
mod messages;
mod statement;

use crate::rows::{Cell, Reply};
use crate::wire::Wire;
use crate::{Patience, Rows, Session, SqlError, Table, Value};
use bytes::BytesMut;
use messages::{answers, encoded};
use plimsoll_model::database::Endpoint;
use postgres_protocol::message::{backend, frontend};
use statement::Prepared;

/// A session.
pub(crate) struct Postgresql {
    pub(crate) wire: Wire,
    version: String,
    pub(crate) session: Option<Session>,
    statements: Vec<Prepared>,
    reply: Reply,
    /// What goes out next; kept for its memory.
    out: Vec<u8>,
}

impl Postgresql {
    pub(crate) fn open(endpoint: &Endpoint, patience: Patience) -> Result<Postgresql, SqlError> {
        let mut wire = Wire::open(&endpoint.address, patience)?;
        let (version, session) = connect::connect(&mut wire, endpoint)?;
        Ok(Postgresql { wire, version, session, statements: Vec::new(), reply: Reply::default(), out: Vec::new() })
    }

    pub(crate) fn version(&self) -> String {
        format!("PostgreSQL {}", self.version)
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> Result<(), SqlError> {
        let prepared = Prepared::new(&mut self.wire, self.statements.len(), sql)?;
        self.statements.push(prepared);
        Ok(())
    }

    pub(crate) fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<(), SqlError> {
        let prepared = &self.statements[statement];
        self.out.clear();
        prepared.bind(parameters, &mut self.out)?;
        self.wire.begin();
        self.wire.send(&self.out)?;
        self.reply.clear();
        let (reply, columns) = (&mut self.reply, prepared.columns.len());
        answers(&mut self.wire, |tag, input, body| match tag {
            backend::DATA_ROW_TAG => add_row(reply, columns, input, body),
            backend::COMMAND_COMPLETE_TAG => {
                reply.affected = affected(&input[body]);
                Ok(())
            }
            _ => Ok(()),
        })
    }

    pub(crate) fn rows(&self, statement: usize) -> Rows<'_> {
        Rows { bytes: self.wire.input(), columns: &self.statements[statement].columns, reply: &self.reply }
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        self.ask(sql)?;
        answers(&mut self.wire, |_, _, _| Ok(()))
    }

    pub(crate) fn query(&mut self, sql: &str) -> Result<Table, SqlError> {
        self.ask(sql)?;
        let mut table = Table::default();
        answers(&mut self.wire, |tag, input, body| {
            match tag {
                backend::ROW_DESCRIPTION_TAG => {
                    table = Table {
                        columns: messages::columns(input, body)?.into_iter().map(|(name, _)| name).collect(),
                        rows: Vec::new(),
                    };
                }
                backend::DATA_ROW_TAG => {
                    let mut row = Vec::with_capacity(table.columns.len());
                    messages::cells(input, body, |cell| row.push(cell.map(|place| text(&input[place]))))?;
                    table.rows.push(row);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(table)
    }

    pub(crate) fn leave(&mut self) {
        // A server that does not listen any more has noticed.
        let _ = self.wire.send(b"X\0\0\0\x04");
    }

    /// Sends a text in the simple protocol.
    fn ask(&mut self, sql: &str) -> Result<(), SqlError> {
        let mut message = BytesMut::new();
        encoded(frontend::query(sql, &mut message))?;
        self.wire.begin();
        self.wire.send(&message)
    }
}

#[inline]
fn add_row(reply: &mut Reply, columns: usize, input: &[u8], body: std::ops::Range<usize>) -> Result<(), SqlError> {
    let before = reply.cells.len();
    let cells = &mut reply.cells;
    messages::cells(input, body, |cell| {
        cells.push(cell.map_or(Cell::NULL, |place| Cell::new(place.start, place.len())));
    })?;
    if reply.cells.len() - before != columns {
        return Err(SqlError::protocol("a row has another number of columns than the statement"));
    }
    reply.rows += 1;
    Ok(())
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
