//! The data that a database holds before a trial, and the conditions that it must meet afterwards.

use crate::{own, sbtest, tpcc};
use plimsoll_model::database::{Condition, Dataset, Endpoint};
use plimsoll_sql::{Connection, SqlError};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Fills an empty database over as many connections as there are processors, then evaluates the
/// conditions of the data. Calls `progress` with the step under way and the share that is done.
///
/// # Errors
/// The server refuses, is gone, or its disk is full; or `interrupted` was set.
pub fn load(
    dataset: &Dataset,
    endpoint: &Endpoint,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<Vec<Condition>, SqlError> {
    let done = match dataset {
        Dataset::Tpcc { warehouses, seed } => return tpcc::load(*warehouses, *seed, endpoint, interrupted, progress),
        Dataset::Sbtest { tables, rows, seed } => {
            sbtest::load((*tables, *rows, *seed), endpoint, interrupted, progress)
        }
        Dataset::Scripts(files) => own::load_scripts(files, endpoint, interrupted, progress),
        Dataset::Empty => Ok(()),
    };
    done.map(|()| Vec::new())
}

/// The names of the tables of a dataset; empty if only the study knows them.
#[must_use]
pub fn tables(dataset: &Dataset) -> Vec<String> {
    match dataset {
        Dataset::Tpcc { .. } => tpcc::tables(),
        Dataset::Sbtest { tables, .. } => sbtest::tables(*tables),
        Dataset::Scripts(_) | Dataset::Empty => Vec::new(),
    }
}

/// Evaluates the conditions that the data must meet, for at most `within`. `after_load` adds the
/// condition that holds only right after the load.
///
/// # Errors
/// The server refuses or is gone.
pub fn conditions(
    dataset: &Dataset,
    connection: &mut Connection,
    after_load: bool,
    within: Duration,
) -> Result<Vec<Condition>, SqlError> {
    match dataset {
        Dataset::Tpcc { .. } => tpcc::conditions(connection, after_load, within),
        Dataset::Sbtest { .. } | Dataset::Scripts(_) | Dataset::Empty => Ok(Vec::new()),
    }
}
