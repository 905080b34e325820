//! A connection, whatever server it leads to.

use crate::{Rows, SqlError, Value};
use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long calls wait for an answer.
#[derive(Clone, Debug)]
pub struct Patience {
    /// The longest that one call may take.
    pub timeout: Duration,
    /// Set from outside when nothing is to go on.
    pub over: Arc<AtomicBool>,
    /// The instant at which the call under way must be done, where that is before its time-out.
    pub until: Option<Instant>,
}

impl Patience {
    /// So long for each call, whatever happens.
    #[must_use]
    pub fn of(timeout: Duration) -> Patience {
        Patience { timeout, over: Arc::default(), until: None }
    }
}

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub(crate) usize);

/// Rows as text, with the names of their columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names.
    pub columns: Vec<String>,
    /// Cells, none for NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    engine: Engine,
}

impl Connection {
    /// Connects and authenticates.
    ///
    /// # Errors
    /// The server is not there (`Connect`), refuses (`Denied`), or lacks the database (`Sql`).
    pub fn open(endpoint: &Endpoint, _patience: Patience) -> Result<Connection, SqlError> {
        Err(SqlError::new(
            ErrorKind::Connect,
            format!("{} at {} cannot be reached yet", endpoint.engine, endpoint.address),
        ))
    }

    /// What the server is.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// As the server says: `PostgreSQL 15.18`, `MariaDB 10.11.19`.
    #[must_use]
    pub fn version(&self) -> String {
        String::new()
    }

    /// When the call under way must be done; none for the time-out alone.
    pub fn until(&mut self, _instant: Option<Instant>) {}

    /// Prepares a statement. Parameters are `?` on every server; PostgreSQL's `$1` are made of them.
    ///
    /// # Errors
    /// The server does not take it.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, SqlError> {
        Err(SqlError::new(ErrorKind::Sql, sql))
    }

    /// Runs a prepared statement to its end: one round trip.
    ///
    /// # Errors
    /// The statement fails, the server is gone, or the time is up.
    pub fn execute(
        &mut self,
        _statement: Statement,
        _parameters: &[Value<'_>],
    ) -> Result<Box<dyn Rows + '_>, SqlError> {
        Err(SqlError::new(ErrorKind::Sql, ""))
    }

    /// Runs a text of one statement or several that give no rows: `BEGIN`, `COMMIT`, a schema.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        Err(SqlError::new(ErrorKind::Sql, sql))
    }

    /// Runs a text of one statement, and gives its rows.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn query(&mut self, sql: &str) -> Result<Table, SqlError> {
        Err(SqlError::new(ErrorKind::Sql, sql))
    }

    /// Loads rows into a table as fast as the server takes them: COPY, or INSERT of many rows.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn bulk<'a>(&'a mut self, table: &str, _columns: &[&str]) -> Result<Bulk<'a>, SqlError> {
        Err(SqlError::new(ErrorKind::Sql, table))
    }

    /// Bytes that have gone out and come in so far, framing included.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A load of rows under way; it ends with [`Bulk::finish`].
pub struct Bulk<'a> {
    #[allow(dead_code)]
    connection: &'a mut Connection,
}

impl Bulk<'_> {
    /// One more row.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn row(&mut self, _values: &[Value<'_>]) -> Result<(), SqlError> {
        Ok(())
    }

    /// All rows are there; gives how many.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn finish(self) -> Result<u64, SqlError> {
        Ok(0)
    }
}
