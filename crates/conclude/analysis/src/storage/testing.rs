//! A storage study for the tests: back ends are compared, sizes are the conditions.

use crate::Input;
use crate::testing::{input, trial};
use plimsoll_model::factor::{Assignment, Factor, Level, Role};
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::TrialResult;
use plimsoll_model::storage::{Operation, Residency, StorageFacts, StorageStep};
use plimsoll_model::trial::{Plan, Trial};
use plimsoll_model::workload::Protocol;

/// Where a trial stands.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) back_end: usize,
    pub(crate) size: usize,
    /// From 0.
    pub(crate) repeat: u32,
}

/// The sizes of the tests.
pub(crate) const SIZES: [(&str, u64); 4] =
    [("100KB", 100_000), ("1MB", 1_000_000), ("10MB", 10_000_000), ("100MB", 100_000_000)];

/// A study of so many sizes and repeats, in which each trial writes objects and reads them back in
/// the milliseconds that `times` gives for an operation; trials of a block run side by side.
pub(crate) fn study(
    back_ends: &[&str],
    sizes: usize,
    repeats: u32,
    times: impl Fn(Spot, Operation) -> Vec<f64>,
) -> Input {
    let named = |name: &str, level: &str| Assignment(vec![(name.to_owned(), Level::Text(level.to_owned()))]);
    let levels = |names: &[&str]| names.iter().map(|name| Level::Text((*name).to_owned())).collect::<Vec<_>>();
    let labels = SIZES.map(|(label, _)| label);
    let mut input = input(repeats, |_| trial(1.0));
    let (role, factor) = (Role::Compared { baseline: 0 }, Role::Condition);
    input.facts.factors = vec![
        Factor { name: "backend".to_owned(), levels: levels(back_ends), role },
        Factor { name: "size".to_owned(), levels: levels(&labels[..sizes]), role: factor },
    ];
    input.facts.protocol = Protocol::Storage;
    input.facts.commands = Vec::new();
    let trials = trials(back_ends.len(), sizes, repeats);
    input.trials = trials.iter().map(|trial| result(*trial, back_ends, &times)).collect();
    input.plan = Plan {
        variants: back_ends.iter().map(|name| named("backend", name)).collect(),
        conditions: labels[..sizes].iter().map(|label| named("size", label)).collect(),
        lengths: vec![input.plan.lengths[0]; sizes],
        trials,
        ..input.plan
    };
    input
}

/// Every second block runs the other way round.
fn trials(back_ends: usize, sizes: usize, repeats: u32) -> Vec<Trial> {
    let mut trials = Vec::new();
    for repeat in 1..=repeats {
        for condition in 0..sizes {
            let block = (repeat - 1) * sizes as u32 + condition as u32 + 1;
            for place in 0..back_ends {
                let variant = if repeat.is_multiple_of(2) { back_ends - 1 - place } else { place };
                let (number, position) = (trials.len() as u32 + 1, place as u32 + 1);
                trials.push(Trial { number, block, repeat, attempt: 1, extended: false, position, variant, condition });
            }
        }
    }
    trials
}

fn result(place: Trial, back_ends: &[&str], times: impl Fn(Spot, Operation) -> Vec<f64>) -> TrialResult {
    let spot = Spot { back_end: place.variant, size: place.condition, repeat: place.repeat - 1 };
    let mut result = trial(1.0);
    result.summary.trial = place;
    result.summary.started_unix_ms = i64::from(place.number) * 3_000;
    result.tallies.remove(&Subject::Request("call".to_owned()));
    for operation in [Operation::Write, Operation::Read] {
        record(&mut result, operation.name(), &times(spot, operation));
    }
    result.summary.storage = Some(facts(back_ends[place.variant], SIZES[place.condition].1));
    result
}

/// Adds operations of these milliseconds.
pub(crate) fn record(result: &mut TrialResult, step: &str, milliseconds: &[f64]) {
    let mut tally = Tally::default();
    milliseconds.iter().for_each(|time| tally.service.record((time * 1e6) as u64).expect("in range"));
    result.tallies.insert(Subject::Request(step.to_owned()), tally);
}

fn facts(name: &str, size: u64) -> StorageFacts {
    let step = |operation: Operation| StorageStep { name: operation.name().to_owned(), operation };
    StorageFacts {
        name: name.to_owned(),
        kind: "directory".to_owned(),
        place: format!("/data/{name}"),
        on_this_machine: true,
        page_cache: true,
        mode: "app".to_owned(),
        payload: "random".to_owned(),
        size,
        block: 1 << 20,
        steps: vec![step(Operation::Write), step(Operation::Read)],
        residency: Some(Residency { pages: 100, cached: 0 }),
        ..StorageFacts::default()
    }
}

/// Changes what the trials of a back end say of where they stored something.
pub(crate) fn with_facts(mut input: Input, back_end: usize, change: impl Fn(&mut StorageFacts)) -> Input {
    let trials = input.trials.iter_mut().map(|result| &mut result.summary);
    trials
        .filter(|summary| summary.trial.variant == back_end)
        .filter_map(|summary| summary.storage.as_mut())
        .for_each(change);
    input
}

/// `count` operations around `milliseconds`, a little different in each repeat.
pub(crate) fn around(milliseconds: f64, repeat: u32, count: usize) -> Vec<f64> {
    let trial = 1.0 + f64::from(repeat % 5) / 100.0;
    (0..count).map(|index| milliseconds * trial * (0.9 + 0.2 * index as f64 / count as f64)).collect()
}
