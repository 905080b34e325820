//! The capacity on the page: what each variant carries, what limits it, and what each load showed.

use super::{ChartView, chart_view};
use crate::figures;
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport, Confirmation, Found, LevelOfLoad, in_words};
use plimsoll_analysis::estimate::CONFIDENCE;
use plimsoll_analysis::quantity::{confidence, percent, show};
use plimsoll_analysis::words::{self, counted};
use plimsoll_analysis::{Input, OrReason};
use plimsoll_model::measure::{Measure, Unit};
use plimsoll_model::objective::{Condition, Objective};

/// The results of a study that searches for the capacity.
pub(crate) struct CapacityView {
    /// The objective: `requests, p95 at most 200 ms; at most 1 % errors`.
    pub(crate) objective: String,
    /// The confidence of the intervals: `95 %`.
    pub(crate) confidence: String,
    pub(crate) rows: Vec<CapacityRow>,
    /// The duration that the objective limits first: `requests, p95`.
    pub(crate) duration: String,
    /// The noun for loads: `users`.
    pub(crate) noun: &'static str,
    pub(crate) levels: Vec<LevelsView>,
    pub(crate) charts: Vec<ChartView>,
}

/// The capacity of a variant under a condition.
pub(crate) struct CapacityRow {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) capacity: String,
    pub(crate) interval: String,
    pub(crate) starts: usize,
    pub(crate) limited_by: String,
    pub(crate) confirmed: String,
    pub(crate) peak: String,
}

/// The results of loads by level, for a variant under a condition.
pub(crate) struct LevelsView {
    pub(crate) title: String,
    pub(crate) rows: Vec<LevelRow>,
}

pub(crate) struct LevelRow {
    pub(crate) level: String,
    pub(crate) passed: String,
    pub(crate) throughput: String,
    pub(crate) duration: String,
    pub(crate) errors: String,
    pub(crate) cpu: String,
    pub(crate) memory: String,
}

pub(crate) fn capacity(input: &Input, report: &CapacityReport) -> CapacityView {
    let limit = report.objective.limits.first();
    CapacityView {
        objective: objective(&report.objective, input.facts.open_load),
        confidence: confidence(1.0 - CONFIDENCE),
        rows: report.cells.iter().map(|cell| capacity_row(input, report, cell)).collect(),
        duration: limit.map(|limit| words::measure(&limit.measure)).unwrap_or_default(),
        noun: report.noun(),
        levels: report.cells.iter().map(|cell| levels_view(input, cell)).collect(),
        charts: figures::of_capacity(input, report).iter().map(chart_view).collect(),
    }
}

/// The objective in words: `requests, p95 at most 200 ms; at most 1 % errors`.
pub(crate) fn objective(objective: &Objective, is_open: bool) -> String {
    let limits = objective
        .limits
        .iter()
        .map(|limit| format!("{} at most {}", words::measure(&limit.measure), show(limit.at_most, Unit::Seconds)));
    let errors = format!("at most {} errors", percent(objective.errors));
    let achieved = is_open.then(|| format!("at least {} of the arrivals finished", percent(objective.achieved)));
    limits.chain([errors]).chain(achieved).collect::<Vec<String>>().join("; ")
}

fn capacity_row(input: &Input, report: &CapacityReport, cell: &CapacityCell) -> CapacityRow {
    let (capacity, interval) = found(&cell.found, &report.measure);
    CapacityRow {
        condition: words::condition_in(&input.plan, cell.condition),
        variant: input.plan.label(cell.variant),
        capacity,
        interval,
        starts: cell.starts.len(),
        limited_by: limited_by(cell),
        confirmed: confirmed(cell, &report.measure),
        peak: value(cell.peak_throughput(), Unit::PerSecond),
    }
}

/// The capacity with its interval, or what is known instead.
pub(crate) fn found(found: &OrReason<Found>, measure: &Measure) -> (String, String) {
    let level = |level: f64| show(level, measure.unit());
    match found {
        Ok(Found::At(at, Ok(interval))) => (level(*at), format!("{} … {}", level(interval.low), level(interval.high))),
        Ok(Found::At(at, Err(reason))) => (level(*at), reason.clone()),
        Ok(Found::AtLeast(least)) => (format!("at least {}", level(*least)), String::new()),
        Ok(Found::Below(most)) => (format!("below {}", level(*most)), String::new()),
        Err(reason) => ("–".to_owned(), reason.clone()),
    }
}

/// The conditions that were broken, the most frequent first, with the number of loads: `requests, p95 (19 loads)`.
pub(crate) fn limited_by(cell: &CapacityCell) -> String {
    if cell.limits.is_empty() {
        return "nothing that was tried".to_owned();
    }
    let name =
        |(condition, loads): &(Condition, usize)| format!("{} ({})", in_words(condition), counted(*loads, "load"));
    cell.limits.iter().map(name).collect::<Vec<String>>().join(", ")
}

/// The longer loads that passed and failed: `at 1,240 for 60 s`.
pub(crate) fn confirmed(cell: &CapacityCell, measure: &Measure) -> String {
    let at =
        |one: &Confirmation| format!("at {} for {}", show(one.level, measure.unit()), show(one.seconds, Unit::Seconds));
    let failed: Vec<String> = cell
        .confirmations
        .iter()
        .filter(|one| !one.passed)
        .map(|one| format!("not {}: {}", at(one), one.reasons.join(", ")))
        .collect();
    let passed = cell.confirmed().map(at);
    let all: Vec<String> = passed.into_iter().chain(failed).collect();
    if all.is_empty() { "not tried".to_owned() } else { all.join("; ") }
}

fn levels_view(input: &Input, cell: &CapacityCell) -> LevelsView {
    let condition = words::conditions(&input.plan, &[cell.condition]);
    LevelsView {
        title: format!("{}{condition}", input.plan.label(cell.variant)),
        rows: cell.levels.iter().map(level_row).collect(),
    }
}

fn level_row(level: &LevelOfLoad) -> LevelRow {
    let [low, high] = [level.levels.low, level.levels.high].map(|level| show(level, Unit::Count));
    LevelRow {
        level: if low == high { low } else { format!("{low} to {high}") },
        passed: format!("{} of {}", level.passed, level.loads),
        throughput: value(level.throughput, Unit::PerSecond),
        duration: value(level.duration, Unit::Seconds),
        errors: value(level.errors, Unit::Share),
        cpu: value(level.cpu, Unit::Cores),
        memory: value(level.memory, Unit::Bytes),
    }
}

fn value(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(|| "–".to_owned(), |value| show(value, unit))
}
