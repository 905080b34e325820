//! Why a statement, or a connection, failed.

use plimsoll_model::record::ErrorKind;

/// Why it failed, told apart as users of a database would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct SqlError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// The server's own code: an SQLSTATE, or MySQL's number; empty where the server said nothing.
    pub code: String,
    /// What was attempted, what the server said, and what to do about it. Never with a password.
    pub detail: String,
}

impl SqlError {
    /// A failure without a code of the server's.
    #[must_use]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> SqlError {
        SqlError { kind, code: String::new(), detail: detail.into() }
    }

    /// Whether the connection can no longer be used.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.kind, ErrorKind::Connect | ErrorKind::Closed | ErrorKind::Timeout | ErrorKind::Protocol)
    }
}
