//! The results of a variant under a condition.

use super::bottleneck::{self, CellMeans};
use super::{
    PossibleLimit, ReportContext, Statement, Statistic, Transaction, statements, statistics, transactions, work,
};
use crate::measure::TrialReader;
use plimsoll_model::record::ErrorKind;
use std::collections::BTreeMap;

/// A variant under a condition, over the trials that count.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants.
    pub variant: usize,
    /// Numbers of the trials.
    pub trials: Vec<u32>,
    /// Total measured time over all trials, in seconds.
    pub seconds: f64,
    /// By transaction; empty where the load is not SQL.
    pub transactions: Vec<Transaction>,
    /// Transactions that failed, by the kind of error.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Attempts after the first, by the kind of error that caused them, over whole trials.
    pub retries: BTreeMap<ErrorKind, u64>,
    /// Statements that the server was asked to cancel, over whole trials.
    pub cancels: CancelledStatements,
    /// By statement.
    pub statements: Vec<Statement>,
    /// The counters of databases, generator and machine.
    pub statistics: Vec<Statistic>,
    /// Possible limits of the throughput, as far as the numbers show any.
    pub possible_limits: Vec<PossibleLimit>,
}

/// Statements that exceeded their time limit, so that the server was asked to cancel them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelledStatements {
    /// Number of statements.
    pub requested: u64,
    /// Number of requests that did not reach the server: the statement may have continued.
    pub failed: u64,
}

impl Cell {
    /// The counter of `of` with this name.
    #[must_use]
    pub fn statistic(&self, of: &str, name: &str) -> Option<&Statistic> {
        self.statistics.iter().find(|one| one.of == of && one.name == name)
    }

    /// True if its transactions are those of TPC-C.
    #[must_use]
    pub fn is_tpcc(&self) -> bool {
        self.transactions.iter().any(|one| one.limit.is_some())
    }

    /// Number of failed transactions.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// All cells, by condition and variant, with the possible limits of each. The limits of a cell also
/// depend on the cell before it on the axis.
pub(super) fn cells(context: &ReportContext<'_>) -> Vec<Cell> {
    let conditions = 0..context.input.plan.conditions.len();
    let mut cells: Vec<Cell> = conditions
        .flat_map(|condition| context.variants().map(move |variant| cell(context, condition, variant)))
        .collect();
    // A search tells what gave out by its loads.
    if context.input.plan.searches() {
        return cells;
    }
    let means: Vec<CellMeans> = cells.iter().map(|cell| means(context, cell)).collect();
    for row in &context.grid.rows {
        for variant in context.variants() {
            let index = |place: &(usize, usize)| place.1 * context.input.plan.variants.len() + variant;
            let mut before = None;
            for index in row.places.iter().map(index) {
                cells[index].possible_limits = bottleneck::possible_limits(&means[index], before);
                before = Some(&means[index]);
            }
        }
    }
    cells
}

fn cell(context: &ReportContext<'_>, condition: usize, variant: usize) -> Cell {
    let readers = context.counted(condition, variant);
    let by_sql: Vec<&TrialReader<'_>> = readers.iter().copied().filter(|reader| work(reader).is_some()).collect();
    // Of a search, what is known of statements is that of its last load alone.
    let of_all_loads: &[&TrialReader<'_>] = if context.input.plan.searches() { &[] } else { &by_sql };
    Cell {
        condition,
        variant,
        trials: readers.iter().map(|reader| reader.trial().number()).collect(),
        seconds: readers.iter().map(|reader| reader.load().counted_seconds()).sum(),
        transactions: transactions::transactions(&by_sql),
        errors: errors(&by_sql),
        retries: retries(of_all_loads),
        cancels: cancels(of_all_loads),
        statements: statements::statements(of_all_loads, context.input.plan.turns()),
        statistics: statistics::statistics(context.input, &readers),
        possible_limits: Vec::new(),
    }
}

fn errors(readers: &[&TrialReader<'_>]) -> BTreeMap<ErrorKind, u64> {
    let mut errors = BTreeMap::new();
    for reader in readers {
        for (subject, tally) in &reader.load().tallies {
            if subject.is_request() {
                tally.errors.iter().for_each(|(kind, count)| *errors.entry(*kind).or_default() += count);
            }
        }
    }
    errors
}

fn retries(readers: &[&TrialReader<'_>]) -> BTreeMap<ErrorKind, u64> {
    let mut retries = BTreeMap::new();
    for (kind, count) in readers.iter().filter_map(|reader| work(reader)).flat_map(|facts| &facts.work.retries) {
        *retries.entry(*kind).or_default() += count;
    }
    retries
}

fn cancels(readers: &[&TrialReader<'_>]) -> CancelledStatements {
    let mut cancels = CancelledStatements::default();
    for facts in readers.iter().filter_map(|reader| work(reader)) {
        cancels.requested += facts.work.cancels;
        cancels.failed += facts.work.cancels_failed;
    }
    cancels
}

fn means(context: &ReportContext<'_>, cell: &Cell) -> CellMeans {
    let readers = context.counted(cell.condition, cell.variant);
    let names = crate::distinct::distinct(
        readers.iter().flat_map(|reader| reader.trial().databases()).map(|facts| facts.name.clone()),
    );
    let users: Vec<f64> = readers.iter().filter_map(|reader| users(reader)).collect();
    let processors = context.input.host.processors as f64;
    CellMeans::new(cell, &names, &context.input.facts.systems, processors, plimsoll_statistics::mean(&users))
}

/// The largest number of concurrent users.
fn users(reader: &TrialReader<'_>) -> Option<f64> {
    let rows = reader.load().generator.iter().filter(|row| reader.load().counts_second(row.second));
    rows.map(|row| row.users).max().map(|users| users as f64)
}
