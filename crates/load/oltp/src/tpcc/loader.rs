//! Fills an empty database: several connections side by side take parts of the tables one after the
//! other, then make their indexes. At the end the conditions are looked at.

use super::attempt::wrong;
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

/// The longest that making an empty table may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long conditions are looked at after a load; what takes longer is left to the trials.
const CHECK_WITHIN: Duration = Duration::from_secs(60);

/// Making the indexes of a row takes about this share of what loading it takes.
const INDEXES: f64 = 0.2;

/// Fills an empty database with so many warehouses, and says which conditions hold. Two loads of the same
/// seed are equal. `progress` hears what is loaded and which share of the whole is done.
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
    let mut connection = Connection::open(endpoint, CallLimits::timeout(PATIENCE))?;
    for table in TABLES {
        connection.batch(&table.create(endpoint.engine))?;
    }
    let load = Load::new(parts(warehouses), seed, interrupted);
    let loaders = LoaderPool { endpoint, interrupted };
    let mut look = || load.tell(progress);
    loaders.each(&load.parts, &|connection, part| load.fill(connection, part), &mut look)?;
    loaders.each(&TABLES, &|connection, table| load.finish(connection, table), &mut look)?;
    let conditions = OnceLock::new();
    let check =
        |connection: &mut Connection, (): &()| load.check(connection).map(|looked| drop(conditions.set(looked)));
    loaders.each(&[()], &check, &mut look)?;
    Ok(conditions.into_inner().unwrap_or_default())
}

/// A load under way.
struct Load<'a> {
    parts: Vec<Part>,
    seed: u64,
    interrupted: &'a AtomicBool,
    /// Rows that are there.
    rows: AtomicU64,
    /// Rows whose indexes are there.
    indexed: AtomicU64,
    /// What was begun last.
    doing: Mutex<String>,
}

impl Load<'_> {
    fn new(parts: Vec<Part>, seed: u64, interrupted: &AtomicBool) -> Load<'_> {
        Load { parts, seed, interrupted, rows: AtomicU64::new(0), indexed: AtomicU64::new(0), doing: Mutex::default() }
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

    /// Makes a table's indexes, and lets the server look at what is in it.
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

    /// Looks at all conditions: one of them can be looked at only now.
    fn check(&self, connection: &mut Connection) -> Result<Vec<Condition>, SqlError> {
        self.begin("checking what was loaded".to_owned());
        let conditions = conditions(connection, true, CHECK_WITHIN)?;
        match conditions.iter().find(|condition| condition.holds == Some(false)) {
            None => Ok(conditions),
            Some(Condition { name, detail, .. }) => {
                Err(wrong(format!("expected that of the loaded data condition {name} holds, found {detail}")))
            }
        }
    }

    fn begin(&self, doing: String) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing;
    }

    fn tell(&self, progress: &mut dyn FnMut(&str, f64)) {
        let whole: u64 = self.parts.iter().map(|part| part.rows).sum();
        let (rows, indexed) = (self.rows.load(Relaxed) as f64, self.indexed.load(Relaxed) as f64);
        let share = (rows + INDEXES * indexed) / ((1.0 + INDEXES) * whole as f64);
        progress(&self.doing.lock().unwrap_or_else(PoisonError::into_inner), share.min(1.0));
    }
}
