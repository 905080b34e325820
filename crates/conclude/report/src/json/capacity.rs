//! The JSON of a search for the capacity: users or arrivals per second, seconds, cores, bytes.

use super::ends;
use crate::page::capacity::{found, limited_by};
use plimsoll_analysis::Input;
use plimsoll_analysis::capacity::Capacity as OfStart;
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport, Found, LevelOfLoad};
use plimsoll_model::objective::Objective;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Capacity<'a> {
    measure: String,
    objective: &'a Objective,
    cells: Vec<CellRow<'a>>,
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
struct LevelRow {
    from: f64,
    to: f64,
    loads: usize,
    passed: usize,
    iterations_per_second: Option<f64>,
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
        levels: cell.levels.iter().map(level_row).collect(),
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
        duration: level.duration,
        errors: level.errors,
        cpu: level.cpu,
        memory: level.memory,
    }
}
