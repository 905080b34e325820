//! Errors of preparing and starting a database.

use plimsoll_sql::SqlError;
use plimsoll_system::SystemError;
use std::io;
use std::path::Path;

/// An error of preparing or starting a database. The text says what was expected, what was found, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The operation failed.
    #[error("{0}")]
    Failed(String),
}

impl DatabaseError {
    pub(crate) fn failed(text: impl Into<String>) -> DatabaseError {
        DatabaseError::Failed(text.into())
    }

    /// Wraps an error of the operating system: `action` fits after "failed to".
    pub(crate) fn io(action: &str, path: &Path) -> impl FnOnce(io::Error) -> DatabaseError {
        let text = format!("failed to {action} {}", path.display());
        move |error| DatabaseError::Failed(format!("{text}: {error}"))
    }

    /// Wraps an error of the server `name`, which was asked to `action`.
    pub(crate) fn sql(name: &str, action: &str) -> impl FnOnce(SqlError) -> DatabaseError {
        let text = format!("failed to {action} of the database `{name}`");
        move |error| DatabaseError::Failed(format!("{text}: {error}"))
    }

    /// Puts a text before the message.
    pub(crate) fn with_prefix(self, text: &str) -> DatabaseError {
        match self {
            DatabaseError::Failed(rest) => DatabaseError::Failed(format!("{text}: {rest}")),
            DatabaseError::Interrupted => DatabaseError::Interrupted,
        }
    }
}

impl From<SystemError> for DatabaseError {
    fn from(error: SystemError) -> DatabaseError {
        match error {
            SystemError::Interrupted { .. } => DatabaseError::Interrupted,
            other => DatabaseError::Failed(other.to_string()),
        }
    }
}
