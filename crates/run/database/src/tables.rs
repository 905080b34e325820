//! Checks that an external server has the tables that a workload needs.

use crate::error::DatabaseError;
use plimsoll_model::database::Database;
use plimsoll_sql::{Connection, SqlError};

/// The error codes of servers for a missing table.
const MISSING: [&str; 2] = ["42P01", "1146"];

/// Fails with the name of a missing table: Plimsoll loads data only into servers that it starts.
pub(crate) fn check(connection: &mut Connection, database: &Database) -> Result<(), DatabaseError> {
    let tables = plimsoll_oltp::tables(&database.dataset);
    let is_missing = |error: &SqlError| MISSING.contains(&error.code.as_str());
    let mut lacks = |table: &&String| {
        connection.query(&format!("SELECT 1 FROM {table} WHERE 1 = 0")).is_err_and(|error| is_missing(&error))
    };
    let Some(missing) = tables.iter().find(|table| lacks(table)) else { return Ok(()) };
    Err(DatabaseError::Failed(format!(
        "the database `{}` has no table `{missing}`, which the workload needs ({})\n\
         fill it by other means first, or let Plimsoll start and fill a server of its own (`server` instead of `url`)",
        database.name, database.dataset
    )))
}
