//! What a run reads from a database that is up: facts, the limit of connections, and conditions of the data.

use crate::databases::PreparedDatabase;
use crate::engine;
use crate::error::DatabaseError;
use crate::ready::{limits, open};
use crate::safety;
use crate::settings::EffectiveSettings;
use plimsoll_model::database::{Address, Condition, Database, DatabaseFacts, ExpectedRow};
use plimsoll_model::sql::Transport;
use plimsoll_sql::{CallLimits, Connection};
use plimsoll_system::Interrupt;
use std::time::Duration;

/// How long a server may take to answer a query of this module.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to answer a query of the study after the load.
const EXPECTED_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the facts of a database that is up: version, settings in force and their risks, how its data was restored.
///
/// # Errors
/// The server does not answer.
pub fn facts(
    database: &Database,
    prepared: &PreparedDatabase,
    transport: Transport,
) -> Result<DatabaseFacts, DatabaseError> {
    let endpoint = prepared.endpoint(transport);
    let mut connection = open(&endpoint, CallLimits::timeout(QUERY_TIMEOUT))?;
    let unread = || DatabaseError::sql(&database.name, "read the settings");
    let in_force = EffectiveSettings::read(&mut connection).map_err(unread())?;
    let mut settings = safety::reported_settings(database.engine, &database.settings, &in_force);
    let mut others = Vec::new();
    for (name, endpoint) in prepared.others(transport) {
        others.push((name, open(&endpoint, CallLimits::timeout(QUERY_TIMEOUT))?));
    }
    settings.extend(safety::tables(&mut connection, &mut others).map_err(unread())?);
    Ok(DatabaseFacts {
        name: database.name.clone(),
        version: connection.version(),
        transport: match &endpoint.address {
            Address::Unix(_) => "UNIX socket".to_owned(),
            tcp => format!("TCP to {tcp}"),
        },
        isolation: isolation(&in_force),
        data: prepared.data_origin.clone(),
        restored: prepared.restored.how.clone(),
        restore_seconds: prepared.restore_seconds(),
        size: prepared.size,
        settings,
        loaded: prepared.conditions_when_loaded(),
        ..DatabaseFacts::default()
    })
}

/// Connections that Plimsoll itself holds while users are connected: one, of [`CounterSampler`].
///
/// [`CounterSampler`]: crate::CounterSampler
const OWN_CONNECTIONS: u32 = 1;
/// Connections to spare in the `max_connections` that the error suggests.
const SPARE_CONNECTIONS: u32 = 4;

/// Fails if the server's `max_connections` is too low for the load: each user has a connection of
/// its own from the start.
///
/// # Errors
/// The server takes fewer connections than that, or does not answer.
pub fn check_connections(database: &Database, prepared: &PreparedDatabase, users: u32) -> Result<(), DatabaseError> {
    let mut connection = open(&prepared.endpoint(Transport::Unix), CallLimits::timeout(QUERY_TIMEOUT))?;
    let in_force =
        EffectiveSettings::read(&mut connection).map_err(DatabaseError::sql(&database.name, "read the settings"))?;
    let most = in_force.get("max_connections").and_then(|most| most.shown.parse::<u32>().ok());
    let needed = users.saturating_add(OWN_CONNECTIONS);
    let Some(most) = most.filter(|most| *most < needed) else { return Ok(()) };
    Err(DatabaseError::Failed(format!(
        "{users} users take more than the {most} connections of the database `{}`\n\
         set its `max_connections` to {}, or give the load fewer `users` (in open load `max_users`)",
        database.name,
        needed.saturating_add(SPARE_CONNECTIONS)
    )))
}

/// The isolation level of transactions that ask for none: `READ COMMITTED`.
fn isolation(in_force: &EffectiveSettings) -> String {
    let names = ["default_transaction_isolation", "transaction_isolation", "tx_isolation"];
    let level = names.iter().find_map(|name| in_force.get(name));
    level.map(|level| level.shown.to_uppercase().replace('-', " ")).unwrap_or_default()
}

/// Evaluates the consistency conditions of the workload's data, usually after the load. The queries
/// take `within` at most.
///
/// # Errors
/// The server does not answer, or `interrupt` is set.
pub fn evaluate_conditions(
    database: &Database,
    prepared: &PreparedDatabase,
    within: Duration,
    interrupt: &Interrupt,
) -> Result<Vec<Condition>, DatabaseError> {
    let evaluate = || {
        // The server ends the queries after `within`; the client's own limit comes later.
        let limits = limits(within + QUERY_TIMEOUT, interrupt);
        let mut connection = open(&prepared.endpoint(Transport::Unix), limits)?;
        plimsoll_oltp::conditions(&database.dataset, &mut connection, false, within)
            .map_err(DatabaseError::sql(&database.name, "look at the data"))
    };
    let conditions = evaluate();
    if interrupt.is_set() { Err(DatabaseError::Interrupted) } else { conditions }
}

/// The conditions of a database's data, usually after the load: those of the workload, which take so long at most, if it has
/// any, and those of the study.
///
/// # Errors
/// The server does not answer, or `interrupt` is set.
pub fn conditions(
    database: &Database,
    prepared: &PreparedDatabase,
    of_workload: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Vec<Condition>, DatabaseError> {
    let of_workload = of_workload.map(|within| evaluate_conditions(database, prepared, within, interrupt));
    let expected = evaluate_expected(database, prepared, interrupt)?;
    Ok([of_workload.transpose()?.unwrap_or_default(), expected].concat())
}

/// Lets the server read the queries that the study asks after the load, without running them.
///
/// # Errors
/// A query is not understood, or names what is not there; the server does not answer, or `interrupt` is set.
pub fn check_expected(
    database: &Database,
    prepared: &PreparedDatabase,
    interrupt: &Interrupt,
) -> Result<(), DatabaseError> {
    for expected in &database.expected {
        let read = connection_for(expected, prepared, interrupt)?.prepare(&expected.query);
        if interrupt.is_set() {
            return Err(DatabaseError::Interrupted);
        }
        read.map_err(|error| DatabaseError::Failed(error.to_string()))?; // it names the query
    }
    Ok(())
}

fn connection_for(
    expected: &ExpectedRow,
    prepared: &PreparedDatabase,
    interrupt: &Interrupt,
) -> Result<Connection, DatabaseError> {
    let mut endpoint = prepared.endpoint(Transport::Unix);
    if let Some(named) = &expected.database {
        endpoint.database.clone_from(named);
    }
    open(&endpoint, limits(EXPECTED_TIMEOUT, interrupt))
}

/// Asks for the rows that the study expects in the database after the load.
///
/// # Errors
/// The server does not answer, a query of the study fails, or `interrupt` is set.
pub fn evaluate_expected(
    database: &Database,
    prepared: &PreparedDatabase,
    interrupt: &Interrupt,
) -> Result<Vec<Condition>, DatabaseError> {
    let conditions = database.expected.iter().map(|expected| {
        let mut connection = connection_for(expected, prepared, interrupt)?;
        let table = engine::read_only(&mut connection, &expected.query);
        let table = table.map_err(|error| DatabaseError::Failed(error.to_string()))?; // it names the query
        Ok(condition(expected, &table.rows))
    });
    let conditions = conditions.collect();
    if interrupt.is_set() { Err(DatabaseError::Interrupted) } else { conditions }
}

/// The condition that a query gives one row whose first column is what the study says.
fn condition(expected: &ExpectedRow, rows: &[Vec<Option<String>>]) -> Condition {
    let ExpectedRow { query, equals, .. } = expected;
    let found = match rows {
        [row] => row.first().cloned().flatten().unwrap_or_else(|| "NULL".to_owned()),
        rows => format!("{} rows", rows.len()),
    };
    let numbers = || Some((found.parse::<f64>().ok()?, equals.parse::<f64>().ok()?));
    let holds = found == *equals || numbers().is_some_and(|(found, asked)| found == asked);
    let detail = if holds { String::new() } else { format!("it gives {found}") };
    Condition { name: format!("`{query}` = {equals}"), holds: Some(holds), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_isolation_level_is_told_alike_for_all_servers() {
        for (name, value, told) in [
            ("default_transaction_isolation", "read committed", "READ COMMITTED"),
            ("tx_isolation", "REPEATABLE-READ", "REPEATABLE READ"),
            ("transaction_isolation", "SERIALIZABLE", "SERIALIZABLE"),
        ] {
            assert_eq!(isolation(&EffectiveSettings::of(&[(name, value)])), told);
        }
    }

    #[test]
    fn an_expected_row_is_compared_as_a_number_or_a_text() {
        let expected = ExpectedRow { query: "SELECT count(*) FROM plan".into(), equals: "300".into(), database: None };
        let row = |cell: &str| vec![Some(cell.to_owned())];
        for (rows, detail) in [
            (vec![row("300")], ""),
            (vec![row("300.00")], ""),
            (vec![row("299")], "it gives 299"),
            (vec![row("3e2x")], "it gives 3e2x"),
            (vec![vec![None]], "it gives NULL"),
            (Vec::new(), "it gives 0 rows"),
            (vec![row("300"), row("300")], "it gives 2 rows"),
        ] {
            let found = condition(&expected, &rows);
            assert_eq!((found.holds, found.detail.as_str()), (Some(detail.is_empty()), detail), "{rows:?}");
            assert_eq!(found.name, "`SELECT count(*) FROM plan` = 300");
        }
    }
}
