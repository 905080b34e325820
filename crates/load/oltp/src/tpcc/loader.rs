//! Fills an empty database. Several connections load parts of the tables side by side, then make their
//! indexes. At the end the conditions are evaluated.

use super::attempt::check_failed;
use super::conditions;
use super::rows::{Part, parts};
use super::schema::{TABLES, Table};
use crate::loader_pool::LoaderPool;
use plimsoll_model::database::{Condition, Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{CallLimits, Connection, SqlError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long making an empty table may take.
const CREATE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long evaluating conditions after a load may take. Conditions that take longer are left to the
/// trials.
const CHECK_WITHIN: Duration = Duration::from_secs(60);

/// The time to index a row, as a share of the time to load it.
const INDEX_SHARE: f64 = 0.2;

/// Fills an empty database with this many warehouses, and evaluates the conditions. Two loads of the same
/// seed are equal. Calls `progress` with the step under way and the share that is done.
///
/// # Errors
/// The server refuses, is gone, or its disk is full; `interrupted` was set; or what was loaded breaks
/// a condition.
pub(crate) fn load(
    warehouses: u32,
    seed: u64,
    endpoint: &Endpoint,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<Vec<Condition>, SqlError> {
    let mut connection = Connection::open(endpoint, CallLimits::timeout(CREATE_TIMEOUT))?;
    for table in TABLES {
        connection.batch(&table.create(endpoint.engine))?;
    }
    let load = Load::new(parts(warehouses), seed, interrupted);
    let loaders = LoaderPool { endpoint, interrupted };
    let mut report = || load.report(progress);
    loaders.run_all(&load.parts, &|connection, part| load.fill(connection, part), &mut report)?;
    loaders.run_all(&TABLES, &|connection, table| load.finish(connection, table), &mut report)?;
    let conditions = OnceLock::new();
    let check = |connection: &mut Connection, (): &()| load.check(connection).map(|found| drop(conditions.set(found)));
    loaders.run_all(&[()], &check, &mut report)?;
    Ok(conditions.into_inner().unwrap_or_default())
}

/// A load under way.
struct Load<'a> {
    parts: Vec<Part>,
    seed: u64,
    interrupted: &'a AtomicBool,
    /// The number of rows loaded so far.
    rows: AtomicU64,
    /// The number of rows that are indexed.
    indexed: AtomicU64,
    /// The step that was begun last.
    step: Mutex<String>,
}

impl Load<'_> {
    fn new(parts: Vec<Part>, seed: u64, interrupted: &AtomicBool) -> Load<'_> {
        Load { parts, seed, interrupted, rows: AtomicU64::new(0), indexed: AtomicU64::new(0), step: Mutex::default() }
    }

    /// Loads a part of a table.
    fn fill(&self, connection: &mut Connection, part: &Part) -> Result<(), SqlError> {
        self.begin(format!("loading {}", part.table.name));
        let mut bulk = connection.bulk(part.table.name, &part.table.column_names())?;
        part.fill(self.seed, &mut |row| {
            if self.interrupted.load(Relaxed) {
                return Err(SqlError::new(ErrorKind::Timeout, "loading was interrupted"));
            }
            self.rows.fetch_add(1, Relaxed);
            bulk.row(row)
        })?;
        bulk.finish()?;
        Ok(())
    }

    /// Makes a table's indexes, and updates the server's statistics of it.
    fn finish(&self, connection: &mut Connection, table: &Table) -> Result<(), SqlError> {
        self.begin(format!("indexing {}", table.name));
        if connection.engine() == Engine::Postgresql {
            connection.batch("SET maintenance_work_mem = '256MB'")?;
        }
        for statement in table.finish(connection.engine()) {
            connection.batch(&statement)?;
        }
        let rows = self.parts.iter().filter(|part| part.table.name == table.name).map(|part| part.rows);
        self.indexed.fetch_add(rows.sum(), Relaxed);
        Ok(())
    }

    /// Evaluates all conditions. One of them can be evaluated only now.
    fn check(&self, connection: &mut Connection) -> Result<Vec<Condition>, SqlError> {
        self.begin("checking what was loaded".to_owned());
        let conditions = conditions(connection, true, CHECK_WITHIN)?;
        match conditions.iter().find(|condition| condition.holds == Some(false)) {
            None => Ok(conditions),
            Some(Condition { name, detail, .. }) => {
                Err(check_failed(format!("expected that of the loaded data condition {name} holds, found {detail}")))
            }
        }
    }

    fn begin(&self, step: String) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    fn report(&self, progress: &mut dyn FnMut(&str, f64)) {
        let whole: u64 = self.parts.iter().map(|part| part.rows).sum();
        let (rows, indexed) = (self.rows.load(Relaxed) as f64, self.indexed.load(Relaxed) as f64);
        let share = (rows + INDEX_SHARE * indexed) / ((1.0 + INDEX_SHARE) * whole as f64);
        progress(&self.step.lock().unwrap_or_else(PoisonError::into_inner), share.min(1.0));
    }
}
