//! Connections to real servers.
//!
//! Each test says what holds of all servers, by both transports.

mod cancel;
mod conversation;
mod errors;
mod loading;
mod values;

use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_sql::{CallLimits, Connection, Rows, SqlError, Value};
use plimsoll_testkit::database::{Database, shared};
use std::time::Duration;

/// Long enough for the busiest machine.
const LONG: Duration = Duration::from_secs(60);

/// Runs a case against each server.
fn on_each_server(case: impl Fn(&Database)) {
    // All are held to the end, so that tests at the same time need not start them again.
    let servers = [Engine::Postgresql, Engine::Mariadb, Engine::Mysql].map(shared);
    servers.iter().flatten().for_each(|server| case(server));
}

/// Runs a case on a connection to each server, by each transport.
fn on_each(case: impl Fn(&mut Connection)) {
    on_each_server(|server| {
        for endpoint in [server.unix(), server.tcp()] {
            case(&mut open(&endpoint));
        }
    });
}

fn open(endpoint: &Endpoint) -> Connection {
    Connection::open(endpoint, CallLimits::timeout(LONG)).unwrap()
}

/// A table of its own for a test.
fn make(connection: &mut Connection, table: &str, columns: &str) {
    connection.batch(&format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns})")).unwrap();
}

/// Prepares and runs a statement.
fn run<'a>(connection: &'a mut Connection, sql: &str, parameters: &[Value<'_>]) -> Result<Rows<'a>, SqlError> {
    let statement = connection.prepare(sql)?;
    connection.execute(statement, parameters)
}

/// The first cell of what a query gives.
fn cell(connection: &mut Connection, sql: &str) -> String {
    let table = connection.query(sql).unwrap();
    table.rows[0][0].clone().unwrap_or_else(|| "NULL".to_owned())
}
