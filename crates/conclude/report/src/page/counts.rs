//! The numbers of requests by name, where a number of iterations ends trials: they are the same in each, or something was
//! lost or sent twice.

use super::measured_time;
use plimsoll_analysis::quantity::grouped;
use plimsoll_analysis::{Input, words};
use plimsoll_model::record::Account;
use plimsoll_model::result::TrialResult;
use std::collections::BTreeMap;

/// The requests of a name in the trials of a variant under a condition.
pub(crate) struct CountRow {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) name: String,
    /// In each trial, or from the fewest to the most: `6,600`, `6,598 … 6,600`.
    pub(crate) sent: String,
    pub(crate) answered: String,
    pub(crate) failed: String,
    pub(crate) not_ended: String,
    pub(crate) trials: usize,
}

/// A row for each request of each variant under each condition; empty where time ends trials, or where accounts are not
/// known.
pub(crate) fn counts(input: &Input) -> Vec<CountRow> {
    let by_control_loop = input.trials().any(|trial| trial.load.summary.feedback.is_some());
    if by_control_loop || measured_time::range(input).is_none() {
        return Vec::new();
    }
    let mut cells: BTreeMap<(usize, usize, &str), Vec<&Account>> = BTreeMap::new();
    let counting: Vec<TrialResult<'_>> = input.trials().filter(|trial| input.counts(*trial)).collect();
    for trial in counting {
        for (name, account) in &trial.load.summary.replies.accounts {
            cells.entry((trial.condition(), trial.variant(), name)).or_default().push(account);
        }
    }
    let row = |((condition, variant, name), accounts): ((usize, usize, &str), Vec<&Account>)| {
        let of = |count: fn(&Account) -> u64| range(accounts.iter().map(|account| count(account)));
        CountRow {
            condition: words::condition_in(&input.plan, condition),
            variant: input.plan.label(variant),
            name: match name.strip_prefix("request:") {
                Some(name) => name.to_owned(),
                None if name == "connect" => "connections".to_owned(),
                None => name.to_owned(),
            },
            sent: of(|account| account.sent),
            answered: of(|account| account.answered),
            failed: of(|account| account.failed.values().sum()),
            not_ended: of(|account| account.abandoned + account.in_flight),
            trials: accounts.len(),
        }
    };
    cells.into_iter().map(row).collect()
}

fn range(counts: impl Iterator<Item = u64> + Clone) -> String {
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let number = |count: u64| grouped(count as f64);
    if least == most { number(least) } else { format!("{} … {}", number(least), number(most)) }
}
