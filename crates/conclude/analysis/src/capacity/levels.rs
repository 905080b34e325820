//! The results of loads by level: those of about the same level are one row, over all starts.

use crate::samples;
use plimsoll_model::objective::{Condition, Judged, Passed};
use plimsoll_model::result::{RungResult, TrialResult};
use plimsoll_model::sample::ProcessSample;
use plimsoll_statistics::{Interval, median};

/// Loads within this share of one another are one level.
const SAME_LEVEL: f64 = 0.03;

/// A load of a search, with the start on which it ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadOnStart<'a> {
    pub(super) trial: TrialResult<'a>,
    pub(super) rung: &'a RungResult,
}

/// The loads of a search that count. A load under which a system ended does.
pub(super) fn loads(trial: TrialResult<'_>) -> impl Iterator<Item = LoadOnStart<'_>> {
    let loads = trial.load.rungs.iter().map(move |rung| LoadOnStart { trial, rung });
    loads.filter(|load| load.rung.summary.validity.counts() || load.killed())
}

impl LoadOnStart<'_> {
    pub(super) fn judged(&self) -> Option<&Judged> {
        self.rung.summary.objective.as_ref()
    }

    pub(super) fn passed(&self) -> bool {
        self.judged().is_some_and(|judged| judged.passed == Passed::Yes)
    }

    pub(super) fn missed(&self) -> bool {
        self.judged().is_some_and(|judged| judged.passed == Passed::No)
    }

    /// True if requests failed more often than the objective allows, or a system ended.
    pub(super) fn failed(&self) -> bool {
        self.broke(&Condition::Errors) || self.killed()
    }

    /// True if a system ended.
    pub(super) fn killed(&self) -> bool {
        self.broke(&Condition::Alive)
    }

    fn broke(&self, condition: &Condition) -> bool {
        self.judged().is_some_and(|judged| judged.broke(condition))
    }

    pub(super) fn throughput(&self) -> Option<f64> {
        self.per_second(self.rung.iterations)
    }

    pub(super) fn per_second(&self, count: u64) -> Option<f64> {
        let window = self.rung.summary.timing.window.seconds();
        (window > 0.0).then(|| count as f64 / window)
    }
}

/// The results of loads of about the same level, over all starts.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelOfLoad {
    /// The smallest and the largest level.
    pub levels: Interval,
    /// The number of loads.
    pub loads: usize,
    /// The number of those that passed.
    pub passed: usize,
    /// The number of those with more failures than the objective allows, or that ended a system.
    pub failed: usize,
    /// Iterations per second, the median of the loads.
    pub throughput: Option<f64>,
    /// Requests per second, the median of the loads.
    pub requests: Option<f64>,
    /// The duration that the first limit of the objective is about, in seconds: the median of the loads.
    pub duration: Option<f64>,
    /// The share of errors, the median of the loads.
    pub errors: Option<f64>,
    /// CPU of the systems in cores, the median of the loads.
    pub cpu: Option<f64>,
    /// Memory of the systems in bytes, the median of the loads.
    pub memory: Option<f64>,
}

/// A single load, with its place in time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedLoad {
    /// The middle of its measure phase on the clock of its start, in seconds.
    pub at: f64,
    /// Its results.
    pub load: LevelOfLoad,
}

impl LevelOfLoad {
    /// The middle of the levels.
    #[must_use]
    pub fn middle(&self) -> f64 {
        (self.levels.low * self.levels.high).sqrt()
    }
}

/// The loads by level, each with the smallest first.
pub(super) fn by_level<'a>(loads: &[LoadOnStart<'a>]) -> Vec<Vec<LoadOnStart<'a>>> {
    let mut loads = loads.to_vec();
    loads.sort_by(|one, other| level_of(one).total_cmp(&level_of(other)));
    let mut levels = Vec::new();
    let mut rest = &loads[..];
    while let Some(first) = rest.first() {
        let most = level_of(first) * (1.0 + SAME_LEVEL);
        let (of_level, others) = rest.split_at(rest.partition_point(|one| level_of(one) <= most));
        levels.push(of_level.to_vec());
        rest = others;
    }
    levels
}

fn level_of(load: &LoadOnStart<'_>) -> f64 {
    load.rung.rung.level
}

/// The results by level.
pub(super) fn levels(loads: &[LoadOnStart<'_>]) -> Vec<LevelOfLoad> {
    by_level(loads).iter().map(|loads| level(loads)).collect()
}

/// The loads of the first start, in the order in which they were offered.
pub(super) fn of_first_start(loads: &[LoadOnStart<'_>]) -> Vec<TimedLoad> {
    let Some(first) = loads.iter().map(|load| load.trial.number()).min() else { return Vec::new() };
    let timed = |load: &LoadOnStart<'_>| {
        let timing = &load.rung.summary.timing;
        TimedLoad {
            at: timing.zero.0 as f64 / 1e9 + timing.window.seconds() / 2.0,
            load: level(std::slice::from_ref(load)),
        }
    };
    let mut timed: Vec<TimedLoad> = loads.iter().filter(|load| load.trial.number() == first).map(timed).collect();
    timed.sort_by(|one, other| one.at.total_cmp(&other.at));
    timed
}

fn level(loads: &[LoadOnStart<'_>]) -> LevelOfLoad {
    let median_of = |values: Vec<f64>| median(&values);
    let read = |wanted: fn(&Condition) -> bool| {
        let reading = |judged: &Judged| judged.readings.iter().find(|reading| wanted(&reading.condition))?.value;
        median_of(loads.iter().filter_map(LoadOnStart::judged).filter_map(reading).collect())
    };
    let of_systems = |of: fn(&ProcessSample) -> f64| {
        let mean = |load: &LoadOnStart<'_>| samples::mean_during(load.trial, &load.rung.summary, of);
        median_of(loads.iter().filter_map(mean).collect())
    };
    let requests = |load: &LoadOnStart<'_>| load.per_second(load.rung.requests);
    LevelOfLoad {
        levels: Interval { low: loads.first().map_or(0.0, level_of), high: loads.last().map_or(0.0, level_of) },
        loads: loads.len(),
        passed: loads.iter().filter(|load| load.passed()).count(),
        failed: loads.iter().filter(|load| load.failed()).count(),
        throughput: median_of(loads.iter().filter_map(LoadOnStart::throughput).collect()),
        requests: median_of(loads.iter().filter_map(requests).collect()),
        duration: read(|condition| matches!(condition, Condition::Duration(_))),
        errors: read(|condition| *condition == Condition::Errors),
        cpu: of_systems(|sample| sample.cpu_cores),
        memory: of_systems(|sample| sample.resident as f64),
    }
}
