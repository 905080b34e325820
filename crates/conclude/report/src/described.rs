//! The values of the one system of a study that compares nothing, as rows of a table.

use plimsoll_analysis::capacity::show_value;
use plimsoll_analysis::description::DescribedValue;
use plimsoll_analysis::estimate::CONFIDENCE;
use plimsoll_analysis::quantity::confidence;
use plimsoll_analysis::{Analysis, Input, words};

/// A measure under a condition.
pub(crate) struct ValueRow {
    /// The measure; empty where the row above has the same.
    pub(crate) measure: String,
    pub(crate) condition: String,
    pub(crate) value: String,
    pub(crate) interval: String,
    pub(crate) n: usize,
    /// The lowest and the highest trial, where there are several.
    pub(crate) range: String,
    /// Why there is no value or no interval.
    pub(crate) missing: String,
}

/// The confidence of the intervals: `95 %`.
pub(crate) fn confidence_of_values() -> String {
    confidence(1.0 - CONFIDENCE)
}

/// All values, by measure and then by condition.
pub(crate) fn rows(input: &Input, analysis: &Analysis) -> Vec<ValueRow> {
    rows_of(input, analysis.described.iter())
}

/// The most rows of a terminal's table; measures that the study names are shown beyond it.
const ROWS: usize = 12;

/// The header and the rows of the terminal's table.
pub(crate) fn for_terminal(input: &Input, analysis: &Analysis) -> Vec<Vec<String>> {
    let values = analysis.described.chunks(input.plan.conditions.len().max(1));
    let shown = values.scan(0, |rows, of_measure| {
        *rows += of_measure.len();
        Some(of_measure).filter(|of_measure| *rows <= ROWS || of_measure[0].named)
    });
    let rows = rows_of(input, shown.flatten());
    let one_condition = input.plan.conditions.len() == 1;
    let cells = |mut cells: Vec<String>| {
        if one_condition {
            cells.remove(1);
        }
        cells
    };
    let interval = format!("{} interval", confidence_of_values());
    let range = format!("{}s from … to", words::unit(&input.plan));
    let head = ["measure", "condition", "value", &interval, "n", &range].map(str::to_owned);
    let of_row =
        |row: ValueRow| cells(vec![row.measure, row.condition, row.value, row.interval, row.n.to_string(), row.range]);
    std::iter::once(cells(head.into())).chain(rows.into_iter().map(of_row)).collect()
}

fn rows_of<'a>(input: &Input, values: impl Iterator<Item = &'a DescribedValue>) -> Vec<ValueRow> {
    let mut last = None;
    let mut row = |value: &'a DescribedValue| {
        let estimate = &value.estimate;
        let show = |value: f64| show_value(input, value, &estimate.measure);
        let pair = |low, high| format!("{} … {}", show(low), show(high));
        let summary = estimate.summary.as_ref();
        let dash = || "–".to_owned();
        let first = last.replace(&estimate.measure) != Some(&estimate.measure);
        ValueRow {
            measure: if first { words::measure(&estimate.measure) } else { String::new() },
            condition: words::condition(&input.plan.conditions[value.condition]),
            value: summary.map_or_else(|_| dash(), |summary| show(summary.centre)),
            interval: estimate.interval.as_ref().map_or_else(|_| dash(), |one| pair(one.low, one.high)),
            n: summary.map_or(0, |summary| summary.n),
            // A single value is no range.
            range: summary
                .ok()
                .filter(|summary| summary.n > 1)
                .map_or_else(dash, |summary| pair(summary.min, summary.max)),
            missing: summary.err().or(estimate.interval.as_ref().err()).cloned().unwrap_or_default(),
        }
    };
    values.map(&mut row).collect()
}
