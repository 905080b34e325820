//! The seam between what users do and who runs them.

use crate::{own, sbtest, tpcc};
use plimsoll_model::database::MixLine;
use plimsoll_model::sql::{Sql, SqlWork};
use plimsoll_sql::{Connection, SqlError};
use std::time::Duration;

/// Random numbers of one user.
pub trait Draw {
    /// From 0 to 1, 1 excluded.
    fn unit(&mut self) -> f64;

    /// A whole number from `low` to `high`, both included.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (high - low + 1) as f64;
        low + ((self.unit() * span) as i64).min(high - low)
    }
}

/// Hears of every statement while a transaction runs.
pub trait Watch {
    /// Runs `work`, which is statement number `statement` of the workload, and times it.
    fn statement(&mut self, statement: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError>;
}

/// A statement of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementName {
    /// The step it belongs to, as an index into the names of the workload's steps.
    pub step: usize,
    /// Its short name: `update district`.
    pub name: String,
}

/// How a transaction ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was committed.
    Committed,
    /// It was rolled back, as its input asks for.
    RolledBack,
}

/// What users do, ready for a trial.
pub trait Workload: Send + Sync {
    /// All statements that it knows, step by step: what [`Watch`] is told of by number.
    fn statements(&self) -> Vec<StatementName>;

    /// Makes a user ready: prepares its statements.
    ///
    /// # Errors
    /// The database lacks a table, or holds another amount of data.
    fn terminal(&self, index: u32, users: u32, connection: Connection) -> Result<Box<dyn Terminal>, SqlError>;

    /// Whether what all users were given to do so far was mixed as it should be.
    fn mix(&self) -> Vec<MixLine> {
        Vec::new()
    }

    /// The workload in words, for a report.
    fn in_words(&self) -> String;
}

/// One user.
pub trait Terminal: Send {
    /// Draws what is done next, with all its input: the number of the step.
    fn draw(&mut self, draw: &mut dyn Draw) -> usize;

    /// How long the user types before what was drawn, and thinks after it.
    fn waits(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }

    /// Runs what was drawn, in one attempt. After an error the transaction is rolled back already,
    /// unless the connection is gone; it may be called again with the same input.
    ///
    /// # Errors
    /// A statement failed, or its answer is not what it must be.
    fn run(&mut self, watch: &mut dyn Watch) -> Result<Ended, SqlError>;

    /// The connection, for its byte counts and its call limits.
    fn connection(&mut self) -> &mut Connection;
}

/// The workload that a study asks for.
///
/// # Errors
/// A statement's parameters do not fit its placeholders, or a feed cannot be read.
pub fn workload(sql: &Sql, seed: u64) -> Result<Box<dyn Workload>, String> {
    match &sql.work {
        SqlWork::Tpcc(tpcc) => Ok(tpcc::workload(tpcc, seed)),
        SqlWork::Oltp(oltp) => sbtest::workload(oltp),
        SqlWork::Own(transactions) => {
            own::workload(transactions, sql.endpoint.as_ref().map(|endpoint| endpoint.engine))
        }
    }
}
