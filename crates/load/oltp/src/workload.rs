//! The interface between workloads and the generator that runs their users.

use plimsoll_feed::RandomSource;
use plimsoll_model::database::MixLine;
use plimsoll_sql::{Connection, SqlError};
use std::time::Duration;

/// Runs every statement of a transaction, to time or count it.
pub trait StatementObserver {
    /// Calls `work`, which runs the statement number `statement` of the workload, once.
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

/// How a transaction that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// It was committed.
    Committed,
    /// It was rolled back, as its input asks for.
    RolledBack,
}

/// A compiled workload, which all users of a load share.
pub trait SqlWorkload: Send + Sync {
    /// The names of all its statements, step by step. A [`StatementObserver`] gets the index of a
    /// statement in this list.
    fn statements(&self) -> Vec<StatementName>;

    /// Creates the user `index`, from 0, and prepares its statements.
    ///
    /// # Errors
    /// The database lacks a table, or holds another amount of data.
    fn user(&self, index: u32, connection: Connection) -> Result<Box<dyn SqlUser>, SqlError>;

    /// Compares the inputs that all users drew so far with the mix that the workload prescribes.
    fn mix(&self) -> Vec<MixLine> {
        Vec::new()
    }

    /// A description of the workload for reports.
    fn description(&self) -> String;
}

/// One user of a workload, with a connection of its own.
pub trait SqlUser: Send {
    /// Draws the next transaction with all its input, and returns the number of its step.
    fn draw_transaction(&mut self, random: &mut dyn RandomSource) -> usize;

    /// The keying time before the transaction that was drawn, and the think time after it.
    fn keying_and_think_time(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }

    /// Makes one attempt at the transaction that was drawn. After an error the transaction is already
    /// rolled back, unless the connection is gone. The caller may try again with the same input.
    ///
    /// # Errors
    /// A statement failed, or its result is not what it must be.
    fn run_transaction(&mut self, observer: &mut dyn StatementObserver) -> Result<TransactionEnd, SqlError>;

    /// The connection, for its byte counts and its call limits.
    fn connection(&mut self) -> &mut Connection;
}
