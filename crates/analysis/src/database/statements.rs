//! What the statements of a transaction took.

use super::transactions::ROLLBACK;
use super::work;
use crate::measure::Reader;
use plimsoll_model::sql::TPCC_STEPS;

/// A statement of a transaction, over the measure phases of the trials that count.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The transaction, as measures name it.
    pub transaction: String,
    /// Its short name.
    pub statement: String,
    /// How often it was run.
    pub runs: u64,
    /// How often in a transaction, on average; none where no transaction was counted.
    pub per_transaction: Option<f64>,
    /// Mean duration, in seconds.
    pub mean: f64,
    /// The longest, in seconds.
    pub longest: f64,
    /// Its share of all the time of the transaction; the rest passed between statements.
    pub share: Option<f64>,
    /// How many failed, in whole trials.
    pub failed: u64,
}

/// What was counted of a statement.
struct Counted<'a> {
    place: (&'a str, &'a str),
    runs: u64,
    total: u64,
    longest: u64,
    failed: u64,
}

/// The statements of all trials together, in the workload's order.
pub(super) fn statements(readers: &[&Reader<'_>]) -> Vec<Statement> {
    let mut counted: Vec<Counted<'_>> = Vec::new();
    let facts = readers.iter().filter_map(|reader| work(reader));
    for one in facts.flat_map(|facts| &facts.work.statements) {
        let place = (one.transaction.as_str(), one.statement.as_str());
        let known = match counted.iter_mut().find(|known| known.place == place) {
            Some(known) => known,
            None => {
                counted.push(Counted { place, runs: 0, total: 0, longest: 0, failed: 0 });
                counted.last_mut().expect("it was pushed")
            }
        };
        known.runs += one.measured;
        known.total += one.total;
        known.longest = known.longest.max(one.longest);
        known.failed += one.failed;
    }
    let rollbacks_apart = counted.iter().any(|one| one.place.0 == ROLLBACK);
    let ran = counted.iter().filter(|one| one.runs > 0);
    ran.map(|one| statement(one, &transaction(readers, one.place.0, rollbacks_apart))).collect()
}

/// A transaction in the measure phases: how many, and their time in nanoseconds.
struct Ended {
    count: f64,
    time: f64,
}

fn transaction(readers: &[&Reader<'_>], name: &str, rollbacks_apart: bool) -> Ended {
    let subject = |step: &str| format!("request:{step}");
    let with_rollbacks = name == TPCC_STEPS[0] && !rollbacks_apart;
    let names: Vec<String> = [subject(name)].into_iter().chain(with_rollbacks.then(|| subject(ROLLBACK))).collect();
    let mut ended = Ended { count: 0.0, time: 0.0 };
    for reader in readers {
        let window = reader.result().summary.window.seconds();
        let measured = |second: i64| second >= 0 && (second as f64) < window;
        for row in reader.result().seconds.iter().filter(|row| measured(row.second) && names.contains(&row.subject)) {
            ended.count += row.count as f64;
            ended.time += row.count as f64 * row.mean;
        }
    }
    ended
}

fn statement(one: &Counted<'_>, ended: &Ended) -> Statement {
    let known = ended.count > 0.0;
    Statement {
        transaction: one.place.0.to_owned(),
        statement: one.place.1.to_owned(),
        runs: one.runs,
        per_transaction: known.then(|| one.runs as f64 / ended.count),
        mean: one.total as f64 / one.runs as f64 / 1e9,
        longest: one.longest as f64 / 1e9,
        share: known.then(|| one.total as f64 / ended.time),
        failed: one.failed,
    }
}
