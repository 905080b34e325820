//! What is looked at while a database runs, and after.

use crate::databases::{DatabaseError, Staged};
use plimsoll_model::database::{Database, DatabaseFacts};
use plimsoll_model::sample::DatabaseSample;
use plimsoll_model::sql::Transport;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Looks at what a database counts once a second, from its start until it is stopped.
#[derive(Debug)]
pub struct Look {}

impl Look {
    /// Begins, with a connection of its own.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn start(_database: &Database, _staged: &Staged) -> Result<Look, DatabaseError> {
        Ok(Look {})
    }

    /// The samples, with instants from `zero`.
    #[must_use]
    pub fn stop(self, _zero: Instant) -> Vec<DatabaseSample> {
        Vec::new()
    }
}

/// What is known of the database, while it runs: version, settings in force and their risks.
///
/// # Errors
/// The server does not answer.
pub fn facts(database: &Database, _staged: &Staged, _transport: Transport) -> Result<DatabaseFacts, DatabaseError> {
    Ok(DatabaseFacts { name: database.name.clone(), ..DatabaseFacts::default() })
}

/// What must hold of the data after the load, looked at for at most `within`.
///
/// # Errors
/// The server does not answer.
pub fn after(
    _database: &Database,
    _staged: &Staged,
    _within: Duration,
    _interrupted: &AtomicBool,
) -> Result<Vec<plimsoll_model::database::Condition>, DatabaseError> {
    Ok(Vec::new())
}
