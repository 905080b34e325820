//! A connection, whatever server it leads to.

use crate::bulk::Bulk;
use crate::mariadb::Mariadb;
use crate::postgresql::Postgresql;
use crate::{Rows, Session, SqlError, Value};
use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long calls wait for an answer. It is looked at about every tenth of a second.
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

/// A connection to a server. Dropping it says goodbye.
pub struct Connection {
    server: Server,
    address: String,
    /// The texts of the statements, for errors.
    statements: Vec<String>,
    /// Whether the server is in an unknown state, or gone.
    is_broken: bool,
}

pub(crate) enum Server {
    Postgresql(Postgresql),
    Mariadb(Mariadb),
}

impl Connection {
    /// Connects and authenticates.
    ///
    /// # Errors
    /// The server is not there (`Connect`), refuses (`Denied`), or lacks the database (`Sql`).
    pub fn open(endpoint: &Endpoint, patience: Patience) -> Result<Connection, SqlError> {
        let server = match endpoint.engine {
            Engine::Postgresql => Postgresql::open(endpoint, patience).map(Server::Postgresql),
            Engine::Mariadb | Engine::Mysql => Mariadb::open(endpoint, patience).map(Server::Mariadb),
        };
        let server = server.map_err(|error| {
            // A connection that ends before it was made was not made.
            let kind = if error.kind == ErrorKind::Closed { ErrorKind::Connect } else { error.kind };
            let Endpoint { engine, address, user, .. } = endpoint;
            SqlError { kind, ..error }.during(format_args!("connect to {engine} at {address} as `{user}`"))
        })?;
        Ok(Connection { server, address: endpoint.address.to_string(), statements: Vec::new(), is_broken: false })
    }

    /// What the server is, whatever it was taken for.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match &self.server {
            Server::Postgresql(_) => Engine::Postgresql,
            Server::Mariadb(server) => server.engine(),
        }
    }

    /// As the server says: `PostgreSQL 15.18`, `MariaDB 10.11.19`.
    #[must_use]
    pub fn version(&self) -> String {
        match &self.server {
            Server::Postgresql(server) => server.version(),
            Server::Mariadb(server) => server.version(),
        }
    }

    /// What the server knows this session by, where it says so.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        match &self.server {
            Server::Postgresql(server) => server.session,
            Server::Mariadb(server) => Some(server.session),
        }
    }

    /// When the call under way must be done; none for the time-out alone.
    pub fn until(&mut self, instant: Option<Instant>) {
        match &mut self.server {
            Server::Postgresql(server) => server.wire.until(instant),
            Server::Mariadb(server) => server.wire.until(instant),
        }
    }

    /// Prepares a statement. Parameters are `?` on every server; PostgreSQL's `$1` are made of them,
    /// and its operator `?` is written `??`.
    ///
    /// # Errors
    /// The server does not take it.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, SqlError> {
        let prepared = self.attempt(|server| match server {
            Server::Postgresql(server) => server.prepare(sql),
            Server::Mariadb(server) => server.prepare(sql),
        });
        prepared.map_err(|error| error.during(format_args!("prepare `{}`", shortened(sql))))?;
        self.statements.push(shortened(sql));
        Ok(Statement(self.statements.len() - 1))
    }

    /// Runs a prepared statement to its end: one round trip.
    ///
    /// # Errors
    /// The statement fails, the server is gone, or the time is up.
    pub fn execute(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Rows<'_>, SqlError> {
        let Statement(number) = statement;
        let done = self.attempt(|server| match server {
            Server::Postgresql(server) => server.execute(number, parameters),
            Server::Mariadb(server) => server.execute(number, parameters),
        });
        done.map_err(|error| error.during(format_args!("execute `{}`", self.statements[number])))?;
        Ok(match &self.server {
            Server::Postgresql(server) => server.rows(number),
            Server::Mariadb(server) => server.rows(number),
        })
    }

    /// Runs a text of one statement or several: `BEGIN`, `COMMIT`, a schema. Rows that they give are
    /// not kept.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        let done = self.attempt(|server| match server {
            Server::Postgresql(server) => server.batch(sql),
            Server::Mariadb(server) => server.batch(sql),
        });
        done.map_err(|error| error.during(format_args!("run `{}`", shortened(sql))))
    }

    /// Runs a text of one statement, and gives its rows.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn query(&mut self, sql: &str) -> Result<Table, SqlError> {
        let done = self.attempt(|server| match server {
            Server::Postgresql(server) => server.query(sql),
            Server::Mariadb(server) => server.query(sql),
        });
        done.map_err(|error| error.during(format_args!("run `{}`", shortened(sql))))
    }

    /// Loads rows into a table as fast as the server takes them: COPY, or INSERT of many rows. The
    /// names of table and columns go into the SQL as they are.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn bulk<'a>(&'a mut self, table: &str, columns: &[&str]) -> Result<Bulk<'a>, SqlError> {
        Bulk::begin(self, table, columns)
    }

    /// Bytes that have gone out and come in so far, framing included.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        match &self.server {
            Server::Postgresql(server) => server.wire.bytes(),
            Server::Mariadb(server) => server.wire.bytes(),
        }
    }

    /// Does something with the server, unless it is gone; remembers if it is afterwards.
    #[inline]
    pub(crate) fn attempt<T>(&mut self, work: impl FnOnce(&mut Server) -> Result<T, SqlError>) -> Result<T, SqlError> {
        if self.is_broken {
            let detail = "the connection was lost, or given up, in an earlier call; open another";
            return Err(SqlError::new(ErrorKind::Closed, detail));
        }
        let done = work(&mut self.server);
        if let Err(error) = &done {
            self.is_broken = error.is_fatal();
        }
        done
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.version())
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for Connection {
    /// Servers log those who leave without a word.
    fn drop(&mut self) {
        if !self.is_broken {
            match &mut self.server {
                Server::Postgresql(server) => server.leave(),
                Server::Mariadb(server) => server.leave(),
            }
        }
    }
}

/// As much of a statement as an error has room for, in one line.
fn shortened(sql: &str) -> String {
    const LONGEST: usize = 160;
    let words: Vec<&str> = sql.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_are_cut_between_characters() {
        assert_eq!(shortened("SELECT 1\n  FROM t"), "SELECT 1 FROM t");
        assert_eq!(shortened(&"ü".repeat(1000)), format!("{}…", "ü".repeat(160)));
    }
}
