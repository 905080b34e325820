//! Rolls back a transaction that failed.

use plimsoll_sql::{Connection, SqlError};

/// Rolls back after `error`, so that the connection can be used again. Returns the error to report: that of
/// the rollback if it ended the connection, or else `error`.
pub(crate) fn roll_back_after(connection: &mut Connection, error: SqlError) -> SqlError {
    if error.is_fatal() {
        return error;
    }
    match connection.batch("ROLLBACK") {
        Err(worse) if worse.is_fatal() => worse,
        _ => error,
    }
}
