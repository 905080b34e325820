//! The loads that are excluded from the results, each with the reasons.

use crate::input::Input;
use crate::words;
use plimsoll_model::result::StartResult;
use plimsoll_model::start::{Start, Validity};

/// The status of a load that is in the plan and not in the bundle.
pub const NOT_RUN: &str = "did not run";

/// The status of a load that would count, in a block that was run again because of another load.
pub const RUN_AGAIN: &str = "run again";

/// Why a load does not count that others have replaced.
pub(crate) const BLOCK_RUN_AGAIN: &str = "its block was run again";

/// A load that is excluded from the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedLoad {
    /// Number of the start.
    pub trial: u32,
    /// Its status: `void`, `failed`, [`RUN_AGAIN`] or [`NOT_RUN`].
    pub what: &'static str,
    /// The reasons for the exclusion.
    pub reasons: Vec<String>,
}

/// All excluded loads, in the order of the plan.
pub(crate) fn excluded(input: &Input) -> Vec<ExcludedLoad> {
    let of_start = |start: &Start| {
        let again = input.plan.is_superseded(start);
        let load_validities = load_validities(input, start).into_iter();
        load_validities.filter_map(move |validity| excluded_load(start.number, validity, again)).collect::<Vec<_>>()
    };
    input.plan.starts.iter().flat_map(of_start).collect()
}

/// The validity of each load of a start; none for a load that did not run.
fn load_validities(input: &Input, start: &Start) -> Vec<Option<Validity>> {
    let none_offered = |result: &StartResult| vec![Some(result.summary.validity.clone())];
    match input.start(start.number) {
        Some(result) if result.loads.is_empty() => none_offered(result),
        Some(result) => result.trials().map(|trial| Some(trial.validity())).collect(),
        None => vec![None; start.variants.len()],
    }
}

fn excluded_load(trial: u32, validity: Option<Validity>, again: bool) -> Option<ExcludedLoad> {
    let (what, mut reasons) = match validity {
        Some(validity) if validity.counts() && again => (RUN_AGAIN, Vec::new()),
        Some(validity) if validity.counts() => return None,
        Some(validity) => (words::validity(&validity), validity.reasons().to_vec()),
        None => (NOT_RUN, vec!["it is not in the bundle".to_owned()]),
    };
    if again {
        reasons.push(BLOCK_RUN_AGAIN.to_owned());
    }
    Some(ExcludedLoad { trial, what, reasons })
}
