//! The durations of transactions: DBT-2's summary, and TPC-C's limits.

use crate::measure::{TrialReader, merged, values_needed};
use plimsoll_model::measure::Statistic;
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::sql::{NEW_ORDER, NEW_ORDER_ROLLBACK, TPCC_STEPS};
use std::collections::BTreeSet;

/// A transaction in the trials that count, failed and rolled back ones included.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The step, as measures name it.
    pub name: String,
    /// Its name in DBT-2: `New Order`; the step's name for other workloads.
    pub title: String,
    /// Number of transactions that ended.
    pub total: u64,
    /// Their share of all transactions.
    pub share: f64,
    /// Mean duration, in seconds.
    pub mean: f64,
    /// 90th percentile, in seconds; none where there are too few values for it.
    pub p90: Option<f64>,
    /// Number of failures.
    pub failed: u64,
    /// Number of intentional rollbacks, which the input asks for.
    pub rollbacks: u64,
    /// TPC-C's limit, for TPC-C.
    pub limit: Option<Limit>,
}

impl Transaction {
    /// The share of intentional rollbacks.
    #[must_use]
    pub fn rolled_back(&self) -> f64 {
        self.rollbacks as f64 / self.total as f64
    }
}

/// A limit for the 90th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// In seconds.
    pub seconds: f64,
    /// True if the 90th percentile is within the limit; none without a 90th percentile.
    pub holds: Option<bool>,
}

/// TPC-C's transactions in DBT-2's order, as it names them, with the limits of the 90th percentile
/// from clause 5.2.5.3.
const DBT2: [(&str, &str, f64); 5] = [
    ("delivery", "Delivery", 5.0),
    ("new_order", "New Order", 5.0),
    ("order_status", "Order Status", 5.0),
    ("payment", "Payment", 5.0),
    ("stock_level", "Stock Level", 20.0),
];

/// The transactions of these trials.
pub(super) fn transactions(readers: &[&TrialReader<'_>]) -> Vec<Transaction> {
    let names: BTreeSet<&str> = readers.iter().flat_map(|reader| names(reader)).collect();
    let of = |name: &str| merged(readers.iter().filter_map(|reader| reader.tally(&Subject::Request(name.to_owned()))));
    let all: u64 = names.iter().map(|name| of(name).count()).sum();
    let is_tpcc = !names.is_empty() && names.iter().all(|name| TPCC_STEPS.contains(name));
    let rows: Vec<Transaction> = if is_tpcc {
        DBT2.iter()
            .map(|(name, title, limit)| of_tpcc((name, title, *limit), of(name), &of(NEW_ORDER_ROLLBACK), all))
            .collect()
    } else {
        names.iter().map(|name| row((name, name), &of(name), all)).collect()
    };
    rows.into_iter().filter(|row| row.total > 0).collect()
}

fn names<'a>(reader: &TrialReader<'a>) -> impl Iterator<Item = &'a str> {
    reader.load().tallies.iter().filter(|(_, tally)| tally.count() > 0).filter_map(|(subject, _)| match subject {
        Subject::Request(name) => Some(name.as_str()),
        _ => None,
    })
}

fn of_tpcc((name, title, limit): (&str, &str, f64), mut tally: Tally, rolled_back: &Tally, all: u64) -> Transaction {
    let mut rollbacks = 0;
    if name == NEW_ORDER {
        tally.merge(rolled_back);
        rollbacks = rolled_back.count() - rolled_back.failed();
    }
    let row = row((name, title), &tally, all);
    let limit = Limit { seconds: limit, holds: row.p90.map(|p90| p90 <= limit) };
    Transaction { rollbacks, limit: Some(limit), ..row }
}

fn row((name, title): (&str, &str), tally: &Tally, all: u64) -> Transaction {
    Transaction {
        name: name.to_owned(),
        title: title.to_owned(),
        total: tally.count(),
        share: tally.count() as f64 / all.max(1) as f64,
        mean: tally.service.mean() / 1e9,
        p90: (Some(tally.service.len()) >= values_needed(Statistic::Percentile(90.0)))
            .then(|| tally.service.value_at_quantile(0.9) as f64 / 1e9),
        failed: tally.failed(),
        rollbacks: 0,
        limit: None,
    }
}
