//! The JSON of a search for the capacity: users or arrivals per second, seconds, cores, bytes.

use super::ends;
use crate::page::capacity::{found, limited_by};
use plimsoll_analysis::Input;
use plimsoll_analysis::capacity::Capacity as OfStart;
use plimsoll_analysis::capacity::{
    CapacityCell, CapacityReport, Found, GaveOut, Grade, Knee, LevelOfLoad, OverTheRange, ScalabilityLaw, what_gave_out,
};
use plimsoll_model::objective::Objective;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Capacity<'a> {
    measure: String,
    objective: &'a Objective,
    cells: Vec<CellRow<'a>>,
    advice: Vec<String>,
}

#[derive(Serialize)]
struct CellRow<'a> {
    condition: usize,
    variant: String,
    in_words: String,
    capacity: Option<f64>,
    interval: Option<[f64; 2]>,
    at_least: Option<f64>,
    below: Option<f64>,
    missing: Option<&'a str>,
    starts: Vec<StartRow>,
    limited_by: String,
    confirmations: Vec<ConfirmationRow<'a>>,
    range: Option<RangeRow>,
    gave_out: Option<GaveOutRow>,
    levels: Vec<LevelRow>,
}

#[derive(Serialize)]
struct StartRow {
    start: u32,
    capacity: Option<f64>,
    at_least: Option<f64>,
    below: Option<f64>,
}

#[derive(Serialize)]
struct ConfirmationRow<'a> {
    level: f64,
    seconds: f64,
    passed: bool,
    reasons: &'a [String],
}

#[derive(Serialize)]
struct RangeRow {
    most: f64,
    throughput_stops_to_grow_at: Option<f64>,
    throughput_stops_to_grow_interval: Option<[f64; 2]>,
    iterations_per_second_of_a_user: Option<f64>,
    most_iterations_per_second: Option<f64>,
    most_requests_per_second: Option<f64>,
    requests_fail_from: Option<f64>,
    requests_fail_interval: Option<[f64; 2]>,
    scalability_law: Option<LawRow>,
}

#[derive(Serialize)]
struct LawRow {
    gamma: f64,
    alpha: f64,
    beta: f64,
    peak: Option<f64>,
}

#[derive(Serialize)]
struct GaveOutRow {
    first: Option<String>,
    in_words: String,
    served_at_a_time: Option<f64>,
    resources: Vec<ResourceRow>,
}

#[derive(Serialize)]
struct ResourceRow {
    resource: String,
    grade: &'static str,
    level: Option<f64>,
    used: Option<f64>,
    of: Option<f64>,
    waited_for: Option<f64>,
    seconds_of_an_iteration: Option<f64>,
    allows_iterations_per_second: Option<f64>,
}

#[derive(Serialize)]
struct LevelRow {
    from: f64,
    to: f64,
    loads: usize,
    passed: usize,
    iterations_per_second: Option<f64>,
    requests_per_second: Option<f64>,
    duration: Option<f64>,
    errors: Option<f64>,
    cpu: Option<f64>,
    memory: Option<f64>,
}

pub(super) fn capacity<'a>(input: &Input, report: &'a CapacityReport) -> Capacity<'a> {
    Capacity {
        measure: report.measure.to_string(),
        objective: &report.objective,
        cells: report.cells.iter().map(|cell| cell_row(input, report, cell)).collect(),
        advice: report.advice.iter().map(ToString::to_string).collect(),
    }
}

fn cell_row<'a>(input: &Input, report: &CapacityReport, cell: &'a CapacityCell) -> CellRow<'a> {
    let known = cell.found.as_ref();
    let (capacity, interval) = match known {
        Ok(Found::At(at, interval)) => (Some(*at), ends(interval).0),
        _ => (None, None),
    };
    CellRow {
        condition: cell.condition,
        variant: input.plan.label(cell.variant),
        in_words: found(&cell.found, &report.measure).0,
        capacity,
        interval,
        at_least: known.ok().and_then(|found| if let Found::AtLeast(level) = found { Some(*level) } else { None }),
        below: known.ok().and_then(|found| if let Found::Below(level) = found { Some(*level) } else { None }),
        missing: known.err().map(String::as_str),
        starts: cell.starts.iter().map(|one| start_row(one.start, one.capacity)).collect(),
        limited_by: limited_by(cell),
        confirmations: cell
            .confirmations
            .iter()
            .map(|one| ConfirmationRow {
                level: one.level,
                seconds: one.seconds,
                passed: one.passed,
                reasons: &one.reasons,
            })
            .collect(),
        range: cell.range.as_ref().map(range_row),
        gave_out: cell.gave_out.as_ref().map(|gave_out| gave_out_row(gave_out, report.noun())),
        levels: cell.levels.iter().map(level_row).collect(),
    }
}

fn range_row(range: &OverTheRange) -> RangeRow {
    let law = |law: ScalabilityLaw| LawRow { gamma: law.gamma, alpha: law.alpha, beta: law.beta, peak: law.peak() };
    RangeRow {
        most: range.most,
        throughput_stops_to_grow_at: range.knee.and_then(|knee| match knee {
            Knee::At(level) => Some(level),
            Knee::Beyond(_) => None,
        }),
        throughput_stops_to_grow_interval: range.knee_interval.map(|interval| [interval.low, interval.high]),
        iterations_per_second_of_a_user: range.of_user,
        most_iterations_per_second: range.peak.map(|peak| peak.iterations),
        most_requests_per_second: range.peak.map(|peak| peak.requests),
        requests_fail_from: range.fails_from,
        requests_fail_interval: range.failure_interval.map(|interval| [interval.low, interval.high]),
        scalability_law: range.law.map(law),
    }
}

fn gave_out_row(gave_out: &GaveOut, noun: &str) -> GaveOutRow {
    let (what, evidence) = what_gave_out(gave_out, noun);
    GaveOutRow {
        first: gave_out.first().map(|first| first.resource.to_string()),
        in_words: format!("{what}: {evidence}"),
        served_at_a_time: gave_out.at_a_time,
        resources: gave_out
            .resources
            .iter()
            .map(|one| ResourceRow {
                resource: one.resource.to_string(),
                grade: grade(one.grade),
                level: one.at_most.map(|(level, _)| level),
                used: one.at_most.map(|(_, used)| used.used),
                of: one.at_most.map(|(_, used)| used.of),
                waited_for: one.at_most.and_then(|(_, used)| used.saturation),
                seconds_of_an_iteration: one.demand.map(|demand| demand.of_iteration),
                allows_iterations_per_second: one.demand.map(|demand| demand.allows),
            })
            .collect(),
    }
}

/// How sure it is that a resource gave out, in a word.
fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Free => "free",
        Grade::Always => "always",
        Grade::UsedUp => "used_up",
        Grade::Explains => "explains",
        Grade::Shown => "shown",
    }
}

fn start_row(start: u32, found: OfStart) -> StartRow {
    let none = StartRow { start, capacity: None, at_least: None, below: None };
    match found {
        OfStart::At(level) => StartRow { capacity: Some(level), ..none },
        OfStart::AtLeast(level) => StartRow { at_least: Some(level), ..none },
        OfStart::Below(level) => StartRow { below: Some(level), ..none },
        OfStart::Unsettled => none,
    }
}

fn level_row(level: &LevelOfLoad) -> LevelRow {
    LevelRow {
        from: level.levels.low,
        to: level.levels.high,
        loads: level.loads,
        passed: level.passed,
        iterations_per_second: level.throughput,
        requests_per_second: level.requests,
        duration: level.duration,
        errors: level.errors,
        cpu: level.cpu,
        memory: level.memory,
    }
}
