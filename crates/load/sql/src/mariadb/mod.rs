//! A session with MariaDB, or MySQL: version 10 of their protocol.

mod connect;
mod insert;
mod packet;
mod results;
mod rsa;
mod statement;

use crate::rows::Reply;
use crate::wire::Wire;
use crate::{Patience, Rows, Session, SqlError, Table, Value};
use connect::Greeting;
use insert::Insert;
use plimsoll_model::database::{Endpoint, Engine};
use results::{Nothing, results};
use statement::{Execution, Prepared};

/// Commands.
const QUIT: u8 = 1;
const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// Bits of what client and server can do; those of MariaDB alone are above 32.
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

/// What both ends can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Abilities(u64);

impl Abilities {
    fn can(self, bits: u64) -> bool {
        self.0 & bits == bits
    }
}

/// A session.
pub(crate) struct Mariadb {
    pub(crate) wire: Wire,
    version: String,
    pub(crate) session: Session,
    abilities: Abilities,
    statements: Vec<Prepared>,
    reply: Reply,
    /// What goes out next; kept for its memory.
    out: Vec<u8>,
    insert: Insert,
}

impl Mariadb {
    pub(crate) fn open(endpoint: &Endpoint, patience: Patience) -> Result<Mariadb, SqlError> {
        let mut wire = Wire::open(&endpoint.address, patience)?;
        let Greeting { version, thread, abilities, .. } = connect::connect(&mut wire, endpoint)?;
        Ok(Mariadb {
            wire,
            version,
            session: Session::Thread(thread),
            abilities,
            statements: Vec::new(),
            reply: Reply::default(),
            out: Vec::new(),
            insert: Insert::default(),
        })
    }

    /// Which of the two it is: MySQL does not say its name.
    pub(crate) fn engine(&self) -> Engine {
        if self.version.contains("MariaDB") { Engine::Mariadb } else { Engine::Mysql }
    }

    pub(crate) fn version(&self) -> String {
        format!("{} {}", self.engine(), number(&self.version))
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> Result<(), SqlError> {
        self.command(PREPARE, sql.as_bytes())?;
        let prepared = Prepared::read(&mut self.wire, self.abilities)?;
        self.statements.push(prepared);
        Ok(())
    }

    pub(crate) fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<(), SqlError> {
        let prepared = &mut self.statements[statement];
        packet::begin(&mut self.out);
        prepared.bind(parameters, &mut self.out)?;
        self.wire.begin();
        packet::send(&mut self.wire, 0, &mut self.out)?;
        self.reply.clear();
        let mut execution = Execution::new(prepared, &mut self.reply);
        let done = results(&mut self.wire, self.abilities, &mut execution).map(drop);
        done.inspect_err(|_| prepared.forget_kinds())
    }

    pub(crate) fn rows(&self, statement: usize) -> Rows<'_> {
        Rows { bytes: self.wire.input(), columns: self.statements[statement].columns(), reply: &self.reply }
    }

    pub(crate) fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        self.command(QUERY, sql.as_bytes())?;
        results(&mut self.wire, self.abilities, &mut Nothing)?;
        Ok(())
    }

    pub(crate) fn query(&mut self, sql: &str) -> Result<Table, SqlError> {
        self.command(QUERY, sql.as_bytes())?;
        let mut table = Table::default();
        results(&mut self.wire, self.abilities, &mut table)?;
        Ok(table)
    }

    pub(crate) fn leave(&mut self) {
        // A server that does not listen any more has noticed.
        let _ = self.command(QUIT, b"");
    }

    fn command(&mut self, command: u8, content: &[u8]) -> Result<(), SqlError> {
        packet::begin(&mut self.out);
        self.out.push(command);
        self.out.extend_from_slice(content);
        self.wire.begin();
        packet::send(&mut self.wire, 0, &mut self.out)
    }
}

/// The number of a server: MariaDB hid its own behind one that old clients of MySQL took.
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
