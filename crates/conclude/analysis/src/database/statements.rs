//! The durations of the statements of a transaction.

use super::work;
use crate::distinct::distinct;
use crate::estimate::summarise;
use crate::measure::{TrialReader, values_needed};
use plimsoll_model::database::StatementFacts;
use plimsoll_model::measure;
use plimsoll_model::record::Subject;
use plimsoll_model::sql::{NEW_ORDER, NEW_ORDER_ROLLBACK};

/// A statement of a transaction, over the measure phases of the trials that count.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The transaction, as measures name it.
    pub transaction: String,
    /// Its short name.
    pub statement: String,
    /// Number of executions.
    pub runs: u64,
    /// Mean number of executions per transaction; none where no transaction was counted.
    pub per_transaction: Option<f64>,
    /// Mean duration, in seconds.
    pub mean: f64,
    /// The geometric mean of the trials' percentiles, in seconds; none where a trial has too few
    /// executions.
    pub percentiles: [Option<f64>; 3],
    /// The longest duration.
    pub longest: f64,
    /// Its share of the total time of the transaction; the remaining time passes between
    /// statements.
    pub share: Option<f64>,
    /// Number of failures, over whole trials.
    pub failed: u64,
}

/// A percentile of statements: its name, its statistic, and its value in the facts of a trial.
type Percentile = (&'static str, measure::Statistic, fn(&StatementFacts) -> Option<u64>);

const PERCENTILES: [Percentile; 3] = [
    ("p50", measure::Statistic::Med, |one| one.p50),
    ("p95", measure::Statistic::Percentile(95.0), |one| one.p95),
    ("p99", measure::Statistic::Percentile(99.0), |one| one.p99),
];

impl Statement {
    /// The percentiles with their names.
    pub fn named_percentiles(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        PERCENTILES.map(|(name, ..)| name).into_iter().zip(self.percentiles)
    }
}

/// The statements of all trials together, in the workload's order. `turns` is the number of slices of a trial that lost none.
pub(super) fn statements(readers: &[&TrialReader<'_>], turns: u32) -> Vec<Statement> {
    let facts = readers.iter().filter_map(|reader| work(reader)).flat_map(|facts| &facts.work.statements);
    let facts: Vec<&StatementFacts> = facts.collect();
    let rollbacks_apart = facts.iter().any(|one| one.transaction == NEW_ORDER_ROLLBACK);
    let statement = |known| {
        let of_trials: Vec<&StatementFacts> = facts.iter().copied().filter(|one| place(one) == known).collect();
        statement(&of_trials, readers.len(), &transaction(readers, known.0, (rollbacks_apart, turns)))
    };
    let places = distinct(facts.iter().map(|one| place(one)));
    places.into_iter().map(statement).filter(|one| one.runs > 0).collect()
}

fn place(one: &StatementFacts) -> (&str, &str) {
    (&one.transaction, &one.statement)
}

/// The number and total time, in nanoseconds, of the transactions that began in the measure phases.
struct Ended {
    count: f64,
    time: f64,
    /// False if a trial lost slices: statements are counted over all slices, transactions only over those that count.
    is_whole: bool,
}

fn transaction(readers: &[&TrialReader<'_>], name: &str, (rollbacks_apart, turns): (bool, u32)) -> Ended {
    let with_rollbacks = name == NEW_ORDER && !rollbacks_apart;
    let names = [name].into_iter().chain(with_rollbacks.then_some(NEW_ORDER_ROLLBACK));
    let subjects: Vec<Subject> = names.map(|name| Subject::Request(name.to_owned())).collect();
    let all: Vec<(u64, f64)> = readers
        .iter()
        .flat_map(|reader| subjects.iter().flat_map(|subject| counts_and_means(reader, subject)))
        .collect();
    Ended {
        count: all.iter().map(|(count, _)| *count as f64).sum(),
        time: all.iter().map(|(count, mean)| *count as f64 * mean).sum(),
        is_whole: readers.iter().map(|reader| reader.load().slices.len() as u32).all(|of| of == 0 || of >= turns),
    }
}

/// Counts and means of the transactions. Where the first seconds are cut, the statements still
/// include them, so this takes what ended since the start of the measure phase, including a few
/// transactions of the warm-up.
fn counts_and_means(reader: &TrialReader<'_>, subject: &Subject) -> Vec<(u64, f64)> {
    if reader.load().cut <= 0 {
        return reader.tally(subject).map(|tally| (tally.count(), tally.service.mean())).into_iter().collect();
    }
    let rows = reader.load().seconds.iter().filter(|row| row.second >= 0 && row.subject == *subject);
    rows.map(|row| (row.count, row.mean)).collect()
}

/// A statement from the facts of its trials; `trials` is their total number.
fn statement(of_trials: &[&StatementFacts], trials: usize, ended: &Ended) -> Statement {
    let sum = |of: fn(&StatementFacts) -> u64| of_trials.iter().map(|one| of(one)).sum::<u64>();
    let (runs, total) = (sum(|one| one.measured), sum(|one| one.total));
    let longest = of_trials.iter().map(|one| one.longest).max().unwrap_or_default();
    let known = ended.count > 0.0 && ended.is_whole;
    Statement {
        transaction: of_trials[0].transaction.clone(),
        statement: of_trials[0].statement.clone(),
        runs,
        per_transaction: known.then(|| runs as f64 / ended.count),
        mean: total as f64 / runs as f64 / 1e9,
        percentiles: PERCENTILES.map(|one| percentile(of_trials, trials, one)),
        longest: longest as f64 / 1e9,
        // Transactions are timed to three digits, and cancelled ones only until their time limit.
        share: known.then(|| (total as f64 / ended.time).min(1.0)),
        failed: sum(|one| one.failed),
    }
}

/// The percentile over all trials, or none: the fastest trials alone would be too favourable.
fn percentile(of_trials: &[&StatementFacts], trials: usize, (_, statistic, of): Percentile) -> Option<f64> {
    let enough = |one: &&&StatementFacts| one.measured >= values_needed(statistic).unwrap_or(1);
    let values = of_trials.iter().filter(enough).filter_map(|one| Some(of(one)? as f64 / 1e9));
    let values: Vec<f64> = values.collect();
    Some(summarise(&values).filter(|all| all.n == trials)?.centre)
}
