//! The JSON of a soak test: seconds, requests per second, cores, bytes; changes are ratios of the second half of the time to
//! the first.

use crate::page::soak::name;
use plimsoll_analysis::Input;
use plimsoll_analysis::soak::{Change, SoakReport};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Soak {
    seconds: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    condition: usize,
    variant: String,
    measure: String,
    first_half: f64,
    second_half: f64,
    loads: usize,
    change: Ratio,
    within_second_half: Option<Ratio>,
    judgement: &'static str,
}

#[derive(Serialize)]
struct Ratio {
    ratio: f64,
    interval: [f64; 2],
}

pub(super) fn soak(input: &Input, report: &SoakReport) -> Soak {
    let rows = report.rows.iter().map(|row| Row {
        condition: row.condition,
        variant: input.plan.label(row.variant),
        measure: row.measure.to_string(),
        first_half: row.first,
        second_half: row.second,
        loads: row.loads,
        change: ratio(&row.change),
        within_second_half: row.within_second.as_ref().map(ratio),
        judgement: name(row.trend),
    });
    Soak { seconds: report.length.as_secs_f64(), rows: rows.collect() }
}

fn ratio(change: &Change) -> Ratio {
    Ratio { ratio: change.ratio, interval: [change.low, change.high] }
}
