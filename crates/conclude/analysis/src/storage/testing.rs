//! A storage study for the tests: back ends are compared, sizes are the conditions.

use crate::input::Input;
use crate::testing::{blocks, input, placed, start};
use plimsoll_model::factor::{Assignment, Factor, Level, Role};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::{LoadResult, StartResult, Work};
use plimsoll_model::start::Start;
use plimsoll_model::storage::{Operation, Residency, StorageFacts, StorageStep};
use plimsoll_model::workload::Protocol;

/// The place of a trial in the study.
#[derive(Clone, Copy)]
pub(crate) struct TrialPlace {
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
    times: impl Fn(TrialPlace, Operation) -> Vec<f64>,
) -> Input {
    let named = |name: &str, level: &str| Assignment(vec![(name.to_owned(), Level::Text(level.to_owned()))]);
    let levels = |names: &[&str]| names.iter().map(|name| Level::Text((*name).to_owned())).collect::<Vec<_>>();
    let labels = SIZES.map(|(label, _)| label);
    let mut input = input(repeats, |_| start(1.0));
    let (role, factor) = (Role::Compared { baseline: 0 }, Role::Condition);
    input.facts.factors = vec![
        Factor { name: "backend".to_owned(), levels: levels(back_ends), role },
        Factor { name: "size".to_owned(), levels: levels(&labels[..sizes]), role: factor },
    ];
    input.facts.protocol = Protocol::Storage;
    input.facts.commands = Vec::new();
    let starts = blocks(back_ends.len(), sizes, repeats);
    input.starts = starts.iter().map(|place| result(place, back_ends, &times)).collect();
    input.plan = Plan {
        variants: back_ends.iter().map(|name| named("backend", name)).collect(),
        conditions: labels[..sizes].iter().map(|label| named("size", label)).collect(),
        lengths: vec![input.plan.lengths[0]; sizes],
        starts,
        ..input.plan
    };
    input
}

fn result(place: &Start, back_ends: &[&str], times: impl Fn(TrialPlace, Operation) -> Vec<f64>) -> StartResult {
    let trial_place = TrialPlace { back_end: place.variants[0], size: place.condition, repeat: place.repeat - 1 };
    let mut result = placed(start(1.0), place);
    let load = &mut result.loads[0];
    load.tallies.remove(&Subject::Request("call".to_owned()));
    for operation in [Operation::Write, Operation::Read] {
        record(load, operation.name(), &times(trial_place, operation));
    }
    load.summary.work = Work::Storage(Box::new(facts(back_ends[trial_place.back_end], SIZES[trial_place.size].1)));
    result
}

/// Adds operations of these milliseconds.
pub(crate) fn record(load: &mut LoadResult, step: &str, milliseconds: &[f64]) {
    let mut tally = Tally::default();
    milliseconds.iter().for_each(|time| tally.service.record((time * 1e6) as u64).expect("in range"));
    load.tallies.insert(Subject::Request(step.to_owned()), tally);
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

/// Changes the facts about the storage of a back end's trials.
pub(crate) fn with_facts(mut input: Input, back_end: usize, change: impl Fn(&mut StorageFacts)) -> Input {
    let loads = input.starts.iter_mut().flat_map(|start| &mut start.loads);
    loads.filter(|load| load.summary.load.variant == back_end).filter_map(|load| storage_of(load)).for_each(change);
    input
}

/// The facts about the storage of a load.
pub(crate) fn storage_of(load: &mut LoadResult) -> Option<&mut StorageFacts> {
    match &mut load.summary.work {
        Work::Storage(facts) => Some(facts),
        Work::Steps | Work::Script(_) => None,
    }
}

/// `count` operations around `milliseconds`, a little different in each repeat.
pub(crate) fn around(milliseconds: f64, repeat: u32, count: usize) -> Vec<f64> {
    let trial = 1.0 + f64::from(repeat % 5) / 100.0;
    (0..count).map(|index| milliseconds * trial * (0.9 + 0.2 * index as f64 / count as f64)).collect()
}
