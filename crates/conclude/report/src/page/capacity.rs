//! The capacity on the page: what each variant carries, what limits it, and what each load showed.

use super::{ChartView, chart_view};
use crate::figures;
use plimsoll_analysis::capacity::{
    CapacityCell, CapacityReport, Confirmation, Found, Grade, Knee, LevelOfLoad, ResourceUse, Use, in_words, load_from,
    load_within, what_gave_out,
};
use plimsoll_analysis::estimate::CONFIDENCE;
use plimsoll_analysis::quantity::{confidence, percent, show, significant};
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
    pub(crate) ranges: Vec<RangeRow>,
    /// True if the load is users, so that throughput can stop to grow with them.
    pub(crate) of_users: bool,
    /// The Universal Scalability Law of each variant, in words.
    pub(crate) laws: Vec<String>,
    pub(crate) resources: Vec<ResourceRow>,
    /// What follows, sentence by sentence.
    pub(crate) advice: Vec<String>,
    pub(crate) levels: Vec<LevelsView>,
    pub(crate) charts: Vec<ChartView>,
}

/// The peak of the Universal Scalability Law says something up to so many times the largest load.
const FARTHEST: f64 = 1.5;

/// The capacity of a variant under a condition.
pub(crate) struct CapacityRow {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) capacity: String,
    pub(crate) interval: String,
    pub(crate) starts: usize,
    pub(crate) limited_by: String,
    pub(crate) confirmed: String,
}

/// How a variant does over the whole range of loads.
pub(crate) struct RangeRow {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) knee: String,
    pub(crate) iterations: String,
    pub(crate) requests: String,
    pub(crate) fails_from: String,
    pub(crate) gave_out: String,
}

/// A resource of a variant under load.
pub(crate) struct ResourceRow {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) resource: String,
    pub(crate) used: String,
    /// The share of the time in which something waited for it.
    pub(crate) waited_for: String,
    pub(crate) at: String,
    pub(crate) demand: String,
    pub(crate) allows: String,
    pub(crate) grade: &'static str,
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
    pub(crate) requests: String,
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
        ranges: report.cells.iter().filter_map(|cell| range_row(input, report, cell)).collect(),
        of_users: !input.facts.open_load,
        laws: report.cells.iter().filter_map(|cell| law(input, cell)).collect(),
        resources: report.cells.iter().flat_map(|cell| resource_rows(input, cell)).collect(),
        levels: report.cells.iter().map(|cell| levels_view(input, cell)).collect(),
        advice: report.advice.iter().map(ToString::to_string).collect(),
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
    }
}

/// The capacity with its interval, or what is known instead.
pub(crate) fn found(found: &OrReason<Found>, measure: &Measure) -> (String, String) {
    let within = |capacity: f64| show(load_within(capacity, measure), measure.unit());
    let from = |bound: f64| show(load_from(bound, measure), measure.unit());
    match found {
        Ok(Found::At(at, Ok(interval))) => {
            (within(*at), format!("{} … {}", within(interval.low), within(interval.high)))
        }
        Ok(Found::At(at, Err(reason))) => (within(*at), reason.clone()),
        Ok(Found::AtLeast(least)) => (format!("at least {}", within(*least)), String::new()),
        Ok(Found::Below(most)) => (format!("below {}", from(*most)), String::new()),
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

fn range_row(input: &Input, report: &CapacityReport, cell: &CapacityCell) -> Option<RangeRow> {
    let range = cell.range.as_ref()?;
    let users = |level: f64| show(level, Unit::Count);
    Some(RangeRow {
        condition: words::condition_in(&input.plan, cell.condition),
        variant: input.plan.label(cell.variant),
        knee: match range.knee {
            Some(Knee::At(level)) => with_interval(level, range.knee_interval.map(|one| [one.low, one.high])),
            Some(Knee::Beyond(level)) => format!("beyond {}", users(level)),
            None => "–".to_owned(),
        },
        iterations: value(range.peak.map(|peak| peak.iterations), Unit::PerSecond),
        requests: value(range.peak.map(|peak| peak.requests), Unit::PerSecond),
        fails_from: match range.fails_from {
            Some(level) => with_interval(level, range.failure_interval.map(|one| [one.low, one.high])),
            None => format!("not up to {}", users(range.most)),
        },
        gave_out: match &cell.gave_out {
            Some(gave_out) => what_gave_out(gave_out, report.noun()).0,
            None if matches!(cell.found, Ok(Found::Below(_))) => "the smallest load was too much".to_owned(),
            None => "nothing that was tried was too much".to_owned(),
        },
    })
}

/// A load with its interval: `320 (280 … 340)`.
fn with_interval(level: f64, interval: Option<[f64; 2]>) -> String {
    let users = |level: f64| show(level, Unit::Count);
    let interval = interval.map(|[low, high]| format!(" ({} … {})", users(low), users(high)));
    users(level) + &interval.unwrap_or_default()
}

/// The coefficients of the Universal Scalability Law, with its peak where that is not far beyond the loads.
fn law(input: &Input, cell: &CapacityCell) -> Option<String> {
    let range = cell.range.as_ref()?;
    let law = range.law?;
    let peak = law.peak().filter(|peak| *peak <= FARTHEST * range.most);
    let peak = peak.map(|peak| format!(", peak at {}", show(peak, Unit::Count))).unwrap_or_default();
    let place = format!("{}{}", input.plan.label(cell.variant), words::conditions(&input.plan, &[cell.condition]));
    Some(format!("{place}: γ {}, α {}, β {}{peak}", significant(law.gamma), small(law.alpha), small(law.beta)))
}

/// A number that may be very small: `0.021`, `4.2e-7`.
fn small(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value >= 0.01 {
        format!("{value:.3}")
    } else {
        format!("{value:.1e}")
    }
}

fn resource_rows(input: &Input, cell: &CapacityCell) -> Vec<ResourceRow> {
    let resources = cell.gave_out.iter().flat_map(|gave_out| &gave_out.resources);
    let row = |one: &ResourceUse| {
        let (level, used) = one.at_most?;
        Some(ResourceRow {
            condition: words::condition_in(&input.plan, cell.condition),
            variant: input.plan.label(cell.variant),
            resource: one.resource.to_string(),
            used: amount(one, used),
            waited_for: used.saturation.map_or_else(|| "–".to_owned(), percent),
            at: show(level, Unit::Count),
            demand: value(one.demand.map(|demand| demand.of_iteration), Unit::Seconds),
            allows: value(one.demand.map(|demand| demand.allows), Unit::PerSecond),
            grade: grade(one),
        })
    };
    resources.filter_map(row).collect()
}

/// The share that is used, and of how much: `98 % of 2`.
fn amount(one: &ResourceUse, used: Use) -> String {
    let share = percent(used.share());
    if one.resource.is_wait() {
        return format!("{share} of requests");
    }
    let of = if one.resource.is_time() { String::new() } else { format!(" of {}", show(used.of, Unit::Number)) };
    format!("{share}{of}")
}

/// How sure it is that a resource gave out, in words.
fn grade(one: &ResourceUse) -> &'static str {
    match one.grade {
        Grade::Free if one.resource.is_wait() => "hardly waited for",
        Grade::Free => "not used up",
        Grade::Always => "used up by light loads as well, which tells nothing",
        Grade::UsedUp if one.resource.is_wait() => "waited for where the load was too much",
        Grade::UsedUp => "used up where the load was too much",
        Grade::Explains => "used up, and explains the throughput",
        Grade::Shown if one.explains => "shown by a variant with more of it, and explains the throughput",
        Grade::Shown => "shown by a variant with more of it",
    }
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
        requests: value(level.requests, Unit::PerSecond),
        duration: value(level.duration, Unit::Seconds),
        errors: value(level.errors, Unit::Share),
        cpu: value(level.cpu, Unit::Cores),
        memory: value(level.memory, Unit::Bytes),
    }
}

fn value(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(|| "–".to_owned(), |value| show(value, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_as_many_users_as_pass() {
        let [users, arrivals]: [Measure; 2] =
            ["capacity.count", "capacity.rate"].map(|name| name.parse().expect("a measure"));
        let no_interval = || Err("one start".to_owned());
        for (known, of_users, of_arrivals) in [
            (Found::At(1.5, no_interval()), "1", "1.50 /s"),
            (Found::AtLeast(3.5), "at least 3", "at least 3.50 /s"),
            (Found::Below(3.5), "below 4", "below 3.50 /s"),
            (Found::Below(1.0), "below 1", "below 1.00 /s"),
        ] {
            let known = Ok(known);
            assert_eq!([found(&known, &users).0, found(&known, &arrivals).0], [of_users, of_arrivals]);
        }
    }
}
