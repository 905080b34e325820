//! What is done with a transaction that failed.

use plimsoll_sql::{Connection, SqlError};

/// Rolls back after `error`, so that the connection can be used again: which of the two errors is to be told.
pub(crate) fn roll_back_after(connection: &mut Connection, error: SqlError) -> SqlError {
    if error.is_fatal() {
        return error;
    }
    match connection.batch("ROLLBACK") {
        Err(worse) if worse.is_fatal() => worse,
        _ => error,
    }
}
