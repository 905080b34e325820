//! A connection to a server of any of the supported engines.

use crate::error::shortened;
use crate::mariadb::Mariadb;
use crate::postgresql::Postgresql;
use crate::{CallLimits, Rows, SessionId, SqlError, TextRows, Value};
use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use std::fmt;
use std::time::Instant;

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub(crate) usize);

/// A connection to a server. Dropping it ends the session in order.
pub struct Connection {
    server: Server,
    address: String,
    /// The texts of the statements, for errors.
    statements: Vec<String>,
    /// True after an error that leaves the session unusable.
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
    pub fn open(endpoint: &Endpoint, limits: CallLimits) -> Result<Connection, SqlError> {
        let server = match endpoint.engine {
            Engine::Postgresql => Postgresql::open(endpoint, limits).map(Server::Postgresql),
            Engine::Mariadb | Engine::Mysql => Mariadb::open(endpoint, limits).map(Server::Mariadb),
        };
        let server = server.map_err(|error| {
            // A connection that ends before it was made was not made.
            let kind = if error.kind == ErrorKind::Closed { ErrorKind::Connect } else { error.kind };
            let Endpoint { engine, address, user, .. } = endpoint;
            SqlError { kind, ..error }.during(format_args!("connect to {engine} at {address} as `{user}`"))
        })?;
        Ok(Connection { server, address: endpoint.address.to_string(), statements: Vec::new(), is_broken: false })
    }

    /// The engine that the server reports, which may differ from the one in the endpoint.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match &self.server {
            Server::Postgresql(_) => Engine::Postgresql,
            Server::Mariadb(server) => server.engine(),
        }
    }

    /// Name and version as the server reports them: `PostgreSQL 15.18`, `MariaDB 10.11.19`.
    #[must_use]
    pub fn version(&self) -> String {
        match &self.server {
            Server::Postgresql(server) => server.version(),
            Server::Mariadb(server) => server.version(),
        }
    }

    /// The identity of this session for [`SessionId::cancel`]; none if the server sent none.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        match &self.server {
            Server::Postgresql(server) => server.session,
            Server::Mariadb(server) => Some(server.session),
        }
    }

    /// Sets the instant by which the following calls must end; none leaves the time-out alone.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        match &mut self.server {
            Server::Postgresql(server) => server.socket.set_deadline(deadline),
            Server::Mariadb(server) => server.socket.set_deadline(deadline),
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

    /// Runs one or several statements given as text (`BEGIN`, `COMMIT`, a schema) and discards their
    /// rows.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        let done = self.attempt(|server| match server {
            Server::Postgresql(server) => server.batch(sql),
            Server::Mariadb(server) => server.batch(sql),
        });
        done.map_err(|error| error.of_statements(sql))
    }

    /// Runs one statement given as text, and returns its rows as text.
    ///
    /// # Errors
    /// As for [`Connection::execute`].
    pub fn query(&mut self, sql: &str) -> Result<TextRows, SqlError> {
        let done = self.attempt(|server| match server {
            Server::Postgresql(server) => server.query(sql),
            Server::Mariadb(server) => server.query(sql),
        });
        done.map_err(|error| error.during(format_args!("run `{}`", shortened(sql))))
    }

    /// Bytes sent and received so far, framing included.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        match &self.server {
            Server::Postgresql(server) => server.socket.bytes(),
            Server::Mariadb(server) => server.socket.bytes(),
        }
    }

    /// Runs `work` on the session. Fails if an earlier call broke it; marks it broken after a fatal error.
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
    /// Ends the session in order: servers log an error for a client that just closes the socket.
    fn drop(&mut self) {
        if !self.is_broken {
            match &mut self.server {
                Server::Postgresql(server) => server.terminate(),
                Server::Mariadb(server) => server.terminate(),
            }
        }
    }
}
