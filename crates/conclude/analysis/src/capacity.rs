//! The capacity of systems: the largest load that meets the objective, over the starts on which it was searched for, what
//! each load showed, how systems do over the whole range, and what gave out.

mod advice;
mod levels;
mod range;
mod resource;
mod resources;
mod sentences;
mod whole_users;

pub use levels::{LevelOfLoad, TimedLoad};
pub use plimsoll_statistics::ScalabilityLaw;
pub use plimsoll_statistics::capacity::Capacity;
pub use range::{Knee, OverTheRange, Peak};
pub use resource::{Demand, GaveOut, Grade, Intervention, Part, Resource, ResourceUse, Use, User};
pub(crate) use sentences::sentences;
pub use sentences::{in_words, what_gave_out};
pub use whole_users::{load_from, load_within, show_value};

use crate::answer::Sentence;
use crate::compare::Comparison;
use crate::estimate::{Estimate, centre, interval_of_capacities};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::numbers::Cell;
use crate::reason::OrReason;
use crate::search;
use levels::LoadOnStart;
use plimsoll_model::measure::{Effect, Measure, Series, Statistic};
use plimsoll_model::objective::{Condition, Judged, Objective, Passed};
use plimsoll_model::result::TrialResult;
use plimsoll_model::start::RungPart;
use plimsoll_statistics::Interval;
use std::collections::BTreeMap;

/// The results of a study that searches for the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityReport {
    /// The objective by which loads passed or failed.
    pub objective: Objective,
    /// The measure of the capacity: users, or arrivals per second.
    pub measure: Measure,
    /// By condition, then by variant.
    pub cells: Vec<CapacityCell>,
    /// What follows: which variant to take and what it costs, what to plan for, and what to watch.
    pub advice: Vec<Sentence>,
}

/// The capacity of a variant under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityCell {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants.
    pub variant: usize,
    /// The capacity on each start that counts, in their order.
    pub starts: Vec<StartCapacity>,
    /// The capacity over all of them, or why there is none.
    pub found: OrReason<Found>,
    /// The conditions of the objective that loads broke, each with the number of loads of which it was the one farthest beyond
    /// its bound; the most frequent first.
    pub limits: Vec<(Condition, usize)>,
    /// The longer loads at the lower end of the interval.
    pub confirmations: Vec<Confirmation>,
    /// The results of the loads, by level.
    pub levels: Vec<LevelOfLoad>,
    /// The loads of the first start that counts, in the order in which they were offered.
    pub of_first_start: Vec<TimedLoad>,
    /// Throughput and failures over the whole range of loads; none without a load that counts.
    pub range: Option<OverTheRange>,
    /// The resources that gave out; none where no load was too much.
    pub gave_out: Option<GaveOut>,
}

/// The capacity on one start.
#[derive(Clone, Debug, PartialEq)]
pub struct StartCapacity {
    /// Its number.
    pub start: u32,
    /// The capacity.
    pub capacity: Capacity,
    /// How far its loads contradict one another: see [`plimsoll_statistics::capacity::contradiction`].
    pub contradiction: f64,
    /// Why the search went no further, where that was because loads were void.
    pub stopped_by: Option<String>,
}

impl StartCapacity {
    fn of(trial: &TrialResult<'_>) -> Option<StartCapacity> {
        Some(StartCapacity {
            start: trial.number(),
            capacity: search::of_load(trial.load)?.ok()?,
            contradiction: search::contradiction(trial.load),
            stopped_by: search::stopped_by(trial.load).map(str::to_owned),
        })
    }
}

/// The capacity over several starts.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The geometric mean, with its interval or why it has none.
    At(f64, OrReason<Interval>),
    /// At least this: on a start, nothing that could be tried was too much.
    AtLeast(f64),
    /// Below this: on a start, the smallest load was too much.
    Below(f64),
}

/// A longer load that was to confirm the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// The load.
    pub level: f64,
    /// How long it was measured, in seconds.
    pub seconds: f64,
    /// True if it passed.
    pub passed: bool,
    /// The reasons why it did not.
    pub reasons: Vec<String>,
}

/// The results of a study that searches for the capacity; none for another.
pub(crate) fn report(
    input: &Input,
    readers: &[TrialReader<'_>],
    cells: &[Cell],
    comparisons: &[Comparison],
) -> Option<CapacityReport> {
    let objective = input.facts.objective.clone().filter(|_| input.plan.searches())?;
    let statistic = if input.facts.open_load { Statistic::Rate } else { Statistic::Count };
    let measure = Measure::new(Series::Capacity, statistic);
    let cell = |cell: &Cell| {
        let of_cell = readers.iter().filter(|reader| reader.is_of(cell.condition, cell.variant));
        let trials: Vec<TrialResult<'_>> = of_cell.map(TrialReader::trial).collect();
        let estimate = cell.estimates.iter().find(|estimate| estimate.measure == measure);
        capacity_cell(input, cell, &trials, estimate)
    };
    let mut cells: Vec<CapacityCell> = cells.iter().map(cell).collect();
    let of_capacity = comparisons.iter().filter(|comparison| comparison.measure == measure);
    of_capacity.for_each(|comparison| resources::intervene(&mut cells, comparison));
    let mut report = CapacityReport { objective, measure, cells, advice: Vec::new() };
    report.advice = advice::advice(input, &report, comparisons);
    Some(report)
}

fn capacity_cell(input: &Input, cell: &Cell, trials: &[TrialResult<'_>], estimate: Option<&Estimate>) -> CapacityCell {
    let counting = || trials.iter().filter(|trial| trial.counts());
    let starts: Vec<StartCapacity> = counting().filter_map(StartCapacity::of).collect();
    let loads: Vec<LoadOnStart<'_>> = counting().flat_map(|trial| levels::loads(*trial)).collect();
    let levels = levels::levels(&loads);
    // A start whose systems died does not count, but it shows that they did, also where its block ran again.
    let is_of_cell = |trial: &TrialResult<'_>| (trial.condition(), trial.variant()) == (cell.condition, cell.variant);
    let ran: Vec<TrialResult<'_>> = input.trials().filter(is_of_cell).collect();
    let killed = ran.iter().flat_map(|trial| levels::loads(*trial)).filter(LoadOnStart::killed);
    let killed = killed.map(|load| load.rung.rung.level).reduce(f64::min);
    let found = found(&starts, estimate);
    // Where the smallest load is too much, nothing gave out on the way.
    let gave_out = match found {
        Ok(Found::Below(_)) => None,
        _ => resources::gave_out(&loads, &input.host),
    };
    CapacityCell {
        condition: cell.condition,
        variant: cell.variant,
        found,
        limits: limits(loads.iter().filter_map(LoadOnStart::judged)),
        confirmations: loads.iter().filter_map(confirmation).collect(),
        range: range::over_the_range(&levels, killed, input.facts.open_load)
            .map(|range| with_intervals(range, &loads, &ran)),
        of_first_start: levels::of_first_start(&loads),
        gave_out,
        levels,
        starts,
    }
}

/// The same with intervals over the starts: of the load at which throughput stops to grow, from the loads that count, and of the
/// load from which on requests fail, which starts whose systems died show as well.
fn with_intervals(mut range: OverTheRange, counting: &[LoadOnStart<'_>], ran: &[TrialResult<'_>]) -> OverTheRange {
    let died = ran.iter().filter(|trial| !trial.counts()).map(|trial| levels::loads(*trial).collect::<Vec<_>>());
    let died = died.filter(|loads| loads.iter().any(LoadOnStart::killed)).flatten();
    let all: Vec<LoadOnStart<'_>> = counting.iter().copied().chain(died).collect();
    range.knee_interval = range::knee_interval(&by_start(counting));
    range.failure_interval = range::failure_interval(&by_start(&all));
    range
}

/// The levels of the loads of each start.
fn by_start(loads: &[LoadOnStart<'_>]) -> Vec<Vec<LevelOfLoad>> {
    let mut starts: BTreeMap<u32, Vec<LoadOnStart<'_>>> = BTreeMap::new();
    loads.iter().for_each(|load| starts.entry(load.trial.number()).or_default().push(*load));
    starts.values().map(|loads| levels::levels(loads)).collect()
}

/// The load as one that was to confirm the capacity; none for another.
fn confirmation(load: &LoadOnStart<'_>) -> Option<Confirmation> {
    let judged = load.judged().filter(|_| load.rung.rung.part == RungPart::Confirmation)?;
    Some(Confirmation {
        level: load.rung.rung.level,
        seconds: load.rung.summary.timing.window.seconds(),
        passed: judged.passed == Passed::Yes,
        reasons: judged.reasons.clone(),
    })
}

/// The capacity over all starts. One that found no more than a bound makes all of it a bound; but where void loads kept it from
/// finding more, it says nothing beside one that did.
fn found(starts: &[StartCapacity], estimate: Option<&Estimate>) -> OrReason<Found> {
    let is_found = |start: &&StartCapacity| matches!(start.capacity, Capacity::At(_));
    let is_any_found = starts.iter().any(|start| is_found(&start));
    let telling: Vec<&StartCapacity> =
        starts.iter().filter(|start| is_found(start) || start.stopped_by.is_none() || !is_any_found).collect();
    let bound = |of: fn(Capacity) -> Option<f64>| telling.iter().filter_map(move |start| of(start.capacity));
    let at = || bound(|capacity| if let Capacity::At(level) = capacity { Some(level) } else { None });
    let below = bound(|capacity| if let Capacity::Below(level) = capacity { Some(level) } else { None });
    let at_least = bound(|capacity| if let Capacity::AtLeast(level) = capacity { Some(level) } else { None });
    if let Some(below) = below.reduce(f64::max) {
        return Ok(Found::Below(at().fold(below, f64::max)));
    }
    if let Some(at_least) = at_least.reduce(f64::min) {
        return Ok(Found::AtLeast(at().fold(at_least, f64::min)));
    }
    let values: Vec<f64> = at().collect();
    match centre(&values, Effect::Ratio) {
        Some(centre) => {
            let widest = telling.iter().map(|start| start.contradiction).fold(0.0, f64::max);
            Ok(Found::At(centre, interval_of_capacities(&values, widest)))
        }
        None => {
            let reason = estimate.and_then(|estimate| estimate.summary.as_ref().err());
            Err(reason.cloned().unwrap_or_else(|| "no start counts".to_owned()))
        }
    }
}

/// How often each condition was the one that limited, the most frequent first.
fn limits<'a>(judged: impl Iterator<Item = &'a Judged>) -> Vec<(Condition, usize)> {
    let mut limits: Vec<(Condition, usize)> = Vec::new();
    for reading in judged.filter_map(Judged::limiting) {
        match limits.iter_mut().find(|(known, _)| *known == reading.condition) {
            Some((_, count)) => *count += 1,
            None => limits.push((reading.condition.clone(), 1)),
        }
    }
    limits.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    limits
}

impl CapacityReport {
    /// The noun for loads: `users`, or `arrivals per second`.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.measure.statistic == Statistic::Rate { "arrivals per second" } else { "users" }
    }
}

impl CapacityCell {
    /// True if something is known: a capacity that no longer load has refuted, or a bound.
    pub(crate) fn is_known(&self) -> bool {
        let is_refuted = !self.confirmations.is_empty() && self.confirmed().is_none();
        self.found.is_ok() && !is_refuted
    }

    /// The confirmation that passed, if one did.
    #[must_use]
    pub fn confirmed(&self) -> Option<&Confirmation> {
        self.confirmations.iter().find(|one| one.passed)
    }
}
