//! Why a database cannot be had.

use plimsoll_sql::SqlError;
use plimsoll_system::SystemError;
use std::io;
use std::path::Path;

/// Why a database cannot be had. The text says what was expected, what was found, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The run is to stop.
    #[error("interrupted")]
    Interrupted,
    /// It does not work.
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

    /// What it is, with more said before it.
    pub(crate) fn after(self, text: &str) -> DatabaseError {
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
