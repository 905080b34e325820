//! The capacity of systems: the largest load that meets the objective, over the starts on which it was searched for, what
//! limits it, and what each load showed.

use crate::answer::Sentence;
use crate::estimate::{CONFIDENCE, Estimate, centre, interval_of_centre};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::numbers::Cell;
use crate::quantity::{confidence, grouped};
use crate::reason::OrReason;
use crate::samples;
use crate::search;
use crate::words;
use plimsoll_model::measure::{Effect, Measure, Series, Statistic};
use plimsoll_model::objective::{Condition, Judged, Objective, Passed};
use plimsoll_model::result::{RungResult, TrialResult};
use plimsoll_model::start::RungPart;
use plimsoll_statistics::{Interval, median};

pub use plimsoll_statistics::capacity::Capacity;

/// The results of a study that searches for the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityReport {
    /// The objective by which loads passed or failed.
    pub objective: Objective,
    /// The measure of the capacity: users, or arrivals per second.
    pub measure: Measure,
    /// By condition, then by variant.
    pub cells: Vec<CapacityCell>,
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
}

/// The capacity on one start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartCapacity {
    /// Its number.
    pub start: u32,
    /// The capacity.
    pub capacity: Capacity,
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

/// The results of loads of about the same level, over all starts.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelOfLoad {
    /// The smallest and the largest level.
    pub levels: Interval,
    /// How many loads there were.
    pub loads: usize,
    /// How many of them passed.
    pub passed: usize,
    /// Iterations per second, the median of the loads.
    pub throughput: Option<f64>,
    /// The duration that the first limit of the objective is about, in seconds: the median of the loads.
    pub duration: Option<f64>,
    /// The share of errors, the median of the loads.
    pub errors: Option<f64>,
    /// CPU of the systems in cores, the median of the loads.
    pub cpu: Option<f64>,
    /// Memory of the systems in bytes, the median of the loads.
    pub memory: Option<f64>,
}

/// Loads within this share of one another are one level of the table.
const SAME_LEVEL: f64 = 0.03;

/// The results of a study that searches for the capacity; none for another.
pub(crate) fn report(input: &Input, readers: &[TrialReader<'_>], cells: &[Cell]) -> Option<CapacityReport> {
    let objective = input.facts.objective.clone().filter(|_| input.plan.searches())?;
    let statistic = if input.facts.open_load { Statistic::Rate } else { Statistic::Count };
    let measure = Measure::new(Series::Capacity, statistic);
    let cell = |cell: &Cell| {
        let of_cell = readers.iter().filter(|reader| reader.is_of(cell.condition, cell.variant));
        let trials: Vec<TrialResult<'_>> = of_cell.map(TrialReader::trial).collect();
        let estimate = cell.estimates.iter().find(|estimate| estimate.measure == measure);
        capacity_cell(cell, &trials, estimate)
    };
    Some(CapacityReport { objective, measure: measure.clone(), cells: cells.iter().map(cell).collect() })
}

fn capacity_cell(cell: &Cell, trials: &[TrialResult<'_>], estimate: Option<&Estimate>) -> CapacityCell {
    let counting = || trials.iter().filter(|trial| trial.counts());
    let starts: Vec<StartCapacity> = counting()
        .filter_map(|trial| Some(StartCapacity { start: trial.number(), capacity: search::of_load(trial.load)?.ok()? }))
        .collect();
    let rungs = || counting().flat_map(|trial| trial.load.rungs.iter().map(move |rung| (*trial, rung)));
    let confirmations = rungs().filter(|(_, rung)| rung.rung.part == RungPart::Confirmation).filter_map(|(_, rung)| {
        let judged = rung.summary.objective.as_ref().filter(|_| rung.summary.validity.counts())?;
        Some(Confirmation {
            level: rung.rung.level,
            seconds: rung.summary.timing.window.seconds(),
            passed: judged.passed == Passed::Yes,
            reasons: judged.reasons.clone(),
        })
    });
    CapacityCell {
        condition: cell.condition,
        variant: cell.variant,
        found: found(&starts, estimate),
        limits: limits(rungs().filter_map(|(_, rung)| rung.summary.objective.as_ref())),
        confirmations: confirmations.collect(),
        levels: levels(rungs()),
        starts,
    }
}

/// The capacity over all starts. One that found no more than a bound makes all of it a bound.
fn found(starts: &[StartCapacity], estimate: Option<&Estimate>) -> OrReason<Found> {
    let bound = |of: fn(Capacity) -> Option<f64>| starts.iter().filter_map(move |start| of(start.capacity));
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
        Some(centre) => Ok(Found::At(centre, interval_of_centre(&values))),
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

fn levels<'a>(rungs: impl Iterator<Item = (TrialResult<'a>, &'a RungResult)>) -> Vec<LevelOfLoad> {
    let mut rungs: Vec<(TrialResult<'a>, &RungResult)> =
        rungs.filter(|(_, rung)| rung.summary.validity.counts()).collect();
    rungs.sort_by(|(_, one), (_, other)| one.rung.level.total_cmp(&other.rung.level));
    let same = |one: &(TrialResult<'a>, &RungResult), other: &(TrialResult<'a>, &RungResult)| {
        other.1.rung.level <= one.1.rung.level * (1.0 + SAME_LEVEL)
    };
    let mut levels = Vec::new();
    let mut rest = &rungs[..];
    while let Some(first) = rest.first() {
        let (of_level, others) = rest.split_at(rest.partition_point(|one| same(first, one)));
        levels.push(level(of_level));
        rest = others;
    }
    levels
}

fn level(rungs: &[(TrialResult<'_>, &RungResult)]) -> LevelOfLoad {
    let judged = || rungs.iter().filter_map(|(_, rung)| rung.summary.objective.as_ref());
    let median_of = |values: Vec<f64>| median(&values);
    let read = |wanted: fn(&Condition) -> bool| {
        let reading = |judged: &Judged| judged.readings.iter().find(|reading| wanted(&reading.condition))?.value;
        median_of(judged().filter_map(reading).collect())
    };
    let throughput = |(_, rung): &(TrialResult<'_>, &RungResult)| {
        let window = rung.summary.timing.window.seconds();
        (window > 0.0).then(|| rung.iterations as f64 / window)
    };
    let (first, last) = (rungs.first(), rungs.last());
    let level = |one: Option<&(TrialResult<'_>, &RungResult)>| one.map_or(0.0, |(_, rung)| rung.rung.level);
    let of_systems = |of: fn(&plimsoll_model::sample::ProcessSample) -> f64| {
        median_of(rungs.iter().filter_map(|(trial, rung)| samples::mean_during(*trial, &rung.summary, of)).collect())
    };
    LevelOfLoad {
        levels: Interval { low: level(first), high: level(last) },
        loads: rungs.len(),
        passed: judged().filter(|judged| judged.passed == Passed::Yes).count(),
        throughput: median_of(rungs.iter().filter_map(throughput).collect()),
        duration: read(|condition| matches!(condition, Condition::Duration(_))),
        errors: read(|condition| *condition == Condition::Errors),
        cpu: of_systems(|sample| sample.cpu_cores),
        memory: of_systems(|sample| sample.resident as f64),
    }
}

impl CapacityReport {
    /// The noun for loads: `users`, or `arrivals per second`.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.measure.statistic == Statistic::Rate { "arrivals per second" } else { "users" }
    }
}

/// A condition in words: `requests, p95`.
#[must_use]
pub fn in_words(condition: &Condition) -> String {
    match condition {
        Condition::Duration(measure) => words::measure(measure),
        Condition::Errors => "errors".to_owned(),
        Condition::Achieved => "arrivals that were not finished".to_owned(),
        Condition::Backlog => "a growing backlog".to_owned(),
        Condition::Alive => "a system that ended".to_owned(),
    }
}

/// A sentence for each variant and condition: `base carries 351 users`, with the interval and what limits it.
pub(crate) fn sentences(input: &Input, report: &CapacityReport) -> Vec<Sentence> {
    report.cells.iter().map(|cell| sentence(input, cell, report.noun())).collect()
}

fn sentence(input: &Input, cell: &CapacityCell, noun: &str) -> Sentence {
    let name = if input.plan.describes() { "The system".to_owned() } else { input.plan.label(cell.variant) };
    let place = words::conditions(&input.plan, &[cell.condition]);
    let level = |level: f64| match grouped(level.round()) {
        one if one == "1" && noun == "users" => "1 user".to_owned(),
        many => format!("{many} {noun}"),
    };
    let number = |level: f64| grouped(level.round());
    let limit = cell.limits.first().map(|(condition, _)| format!("limited by {}", in_words(condition)));
    let mut evidence: Vec<String> = Vec::new();
    let claim = match &cell.found {
        Ok(Found::At(at, interval)) => {
            evidence.push(match interval {
                Ok(interval) => format!(
                    "{} interval {} to {}, n = {}",
                    confidence(1.0 - CONFIDENCE),
                    number(interval.low),
                    number(interval.high),
                    cell.starts.len()
                ),
                Err(reason) => reason.clone(),
            });
            evidence.extend(limit);
            evidence.extend(confirmation(cell, number));
            format!("{name} carries {}{place}", level(*at))
        }
        Ok(Found::AtLeast(least)) => {
            evidence.push("no larger load could be tried".to_owned());
            format!("{name} carries at least {}{place}", level(*least))
        }
        Ok(Found::Below(most)) => {
            evidence.extend(limit);
            format!("{name} carries fewer than {}{place}", level(*most))
        }
        Err(reason) => {
            let claim = format!("Nothing can be said of the capacity of {name}{place}");
            return Sentence { outcome: None, claim, evidence: format!(": {reason}") };
        }
    };
    let evidence = if evidence.is_empty() { String::new() } else { format!("({})", evidence.join("; ")) };
    Sentence { outcome: None, claim, evidence }
}

/// The result of the longer loads, in words; none where there were none.
fn confirmation(cell: &CapacityCell, number: impl Fn(f64) -> String) -> Option<String> {
    if let Some(passed) = cell.confirmed() {
        return Some(format!("a load of {:.0} s at {} passed", passed.seconds, number(passed.level)));
    }
    let last = cell.confirmations.last()?;
    Some(format!("not confirmed: a load of {:.0} s at {} failed", last.seconds, number(last.level)))
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

    /// The highest throughput of any load, in iterations per second.
    #[must_use]
    pub fn peak_throughput(&self) -> Option<f64> {
        self.levels.iter().filter_map(|level| level.throughput).reduce(f64::max)
    }
}
