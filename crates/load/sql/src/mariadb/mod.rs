//! A session with MariaDB, or MySQL: version 10 of their protocol.

mod connect;
mod insert;
mod packet;
mod results;
mod rsa;
mod statement;

use crate::rows::ResultSet;
use crate::socket::Socket;
use crate::{CallLimits, Rows, SessionId, SqlError, TextRows, Value};
use connect::Greeting;
use insert::Insert;
use plimsoll_model::database::{Endpoint, Engine};
use results::{DiscardResults, results};
use statement::{FirstResult, PreparedStatement};

/// Commands.
const QUIT: u8 = 1;
const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// Capability flags of the protocol; bits 32 and above are MariaDB's extension.
mod capability {
    pub(super) const MYSQL: u64 = 1;
    const FOUND_ROWS: u64 = 1 << 1;
    const LONG_FLAG: u64 = 1 << 2;
    const CONNECT_WITH_DB: u64 = 1 << 3;
    pub(super) const PROTOCOL_41: u64 = 1 << 9;
    pub(super) const TLS: u64 = 1 << 11;
    const TRANSACTIONS: u64 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u64 = 1 << 15;
    const MULTI_STATEMENTS: u64 = 1 << 16;
    const MULTI_RESULTS: u64 = 1 << 17;
    const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub(super) const PLUGIN_AUTH: u64 = 1 << 19;
    pub(super) const DEPRECATE_EOF: u64 = 1 << 24;
    /// The server says what the columns of a prepared statement are only when that has changed.
    pub(super) const CACHE_METADATA: u64 = 1 << 36;

    pub(super) const WANTED: u64 = FOUND_ROWS
        | LONG_FLAG
        | CONNECT_WITH_DB
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_STATEMENTS
        | MULTI_RESULTS
        | PS_MULTI_RESULTS
        | PLUGIN_AUTH
        | DEPRECATE_EOF
        | CACHE_METADATA;
}

/// Capabilities that client and server share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capabilities(u64);

impl Capabilities {
    fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }
}

/// A session.
pub(crate) struct Mariadb {
    pub(crate) socket: Socket,
    version: String,
    pub(crate) session: SessionId,
    capabilities: Capabilities,
    statements: Vec<PreparedStatement>,
    result: ResultSet,
    /// Buffer for the next command, reused.
    out: Vec<u8>,
    insert: Insert,
}

impl Mariadb {
    pub(crate) fn open(endpoint: &Endpoint, limits: CallLimits) -> Result<Mariadb, SqlError> {
        let mut socket = Socket::open(&endpoint.address, limits)?;
        let Greeting { version, thread, capabilities, .. } = connect::connect(&mut socket, endpoint)?;
        Ok(Mariadb {
            socket,
            version,
            session: SessionId::Thread(thread),
            capabilities,
            statements: Vec::new(),
            result: ResultSet::default(),
            out: Vec::new(),
            insert: Insert::default(),
        })
    }

    /// MariaDB if the version names it; MySQL does not name itself.
    pub(crate) fn engine(&self) -> Engine {
        if self.version.contains("MariaDB") { Engine::Mariadb } else { Engine::Mysql }
    }

    pub(crate) fn version(&self) -> String {
        format!("{} {}", self.engine(), number(&self.version))
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> Result<(), SqlError> {
        self.command(PREPARE, sql.as_bytes())?;
        let prepared = PreparedStatement::read(&mut self.socket, self.capabilities)?;
        self.statements.push(prepared);
        Ok(())
    }

    pub(crate) fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<(), SqlError> {
        let prepared = &mut self.statements[statement];
        packet::begin(&mut self.out);
        prepared.bind(parameters, &mut self.out)?;
        self.socket.begin();
        packet::send(&mut self.socket, 0, &mut self.out)?;
        self.result.clear();
        let mut handler = FirstResult::new(prepared, &mut self.result);
        let done = results(&mut self.socket, self.capabilities, &mut handler).map(drop);
        done.inspect_err(|_| prepared.resend_types())
    }

    pub(crate) fn rows(&self, statement: usize) -> Rows<'_> {
        Rows { bytes: self.socket.input(), columns: self.statements[statement].columns(), result: &self.result }
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        self.command(QUERY, sql.as_bytes())?;
        results(&mut self.socket, self.capabilities, &mut DiscardResults)?;
        Ok(())
    }

    pub(crate) fn query(&mut self, sql: &str) -> Result<TextRows, SqlError> {
        self.command(QUERY, sql.as_bytes())?;
        let mut table = TextRows::default();
        results(&mut self.socket, self.capabilities, &mut table)?;
        Ok(table)
    }

    pub(crate) fn terminate(&mut self) {
        // The server may be gone already.
        let _ = self.command(QUIT, b"");
    }

    fn command(&mut self, command: u8, content: &[u8]) -> Result<(), SqlError> {
        packet::begin(&mut self.out);
        self.out.push(command);
        self.out.extend_from_slice(content);
        self.socket.begin();
        packet::send(&mut self.socket, 0, &mut self.out)
    }
}

/// The version number without prefix and suffix. Older MariaDB puts `5.5.5-` before it for old clients.
fn number(version: &str) -> &str {
    version.strip_prefix("5.5.5-").unwrap_or(version).split('-').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_their_own_numbers() {
        assert_eq!(number("5.5.5-10.11.19-MariaDB-0+deb12u1"), "10.11.19");
        assert_eq!(number("11.4.2-MariaDB"), "11.4.2");
        assert_eq!(number("5.5.9-log"), "5.5.9");
        assert_eq!(number("8.0.36"), "8.0.36");
    }
}
