//! What changes over the time of the loads of a soak test, as a table.

use plimsoll_analysis::estimate::CONFIDENCE;
use plimsoll_analysis::quantity::{change, confidence, show};
use plimsoll_analysis::soak::{Change, SoakReport, SoakRow, Trend};
use plimsoll_analysis::{Input, words};

/// What changes over the time of a load.
pub(crate) struct SoakView {
    /// The length of a load: `4 h`.
    pub(crate) time: String,
    /// The confidence of the intervals: `95 %`.
    pub(crate) confidence: String,
    pub(crate) rows: Vec<SoakRowView>,
}

/// A measure over the time of the loads of a variant under a condition.
pub(crate) struct SoakRowView {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) measure: String,
    pub(crate) first: String,
    pub(crate) second: String,
    /// The change with its interval: `+39.0 % (+31.0 % … +45.0 %)`.
    pub(crate) change: String,
    pub(crate) within_second: String,
    pub(crate) trend: &'static str,
    pub(crate) loads: usize,
}

pub(crate) fn soak(input: &Input, report: &SoakReport) -> SoakView {
    let row = |row: &SoakRow| {
        let unit = row.measure.unit();
        SoakRowView {
            condition: words::condition_in(&input.plan, row.condition),
            variant: input.plan.label(row.variant),
            measure: words::measure(&row.measure),
            first: show(row.first, unit),
            second: show(row.second, unit),
            change: with_interval(&row.change),
            within_second: row.within_second.as_ref().map_or_else(|| "–".to_owned(), with_interval),
            trend: name(row.trend),
            loads: row.loads,
        }
    };
    SoakView {
        time: words::span(report.length),
        confidence: confidence(1.0 - CONFIDENCE),
        rows: report.rows.iter().map(row).collect(),
    }
}

fn with_interval(one: &Change) -> String {
    format!("{} ({} … {})", change(one.ratio), change(one.low), change(one.high))
}

/// The judgement in words.
pub(crate) fn name(trend: Trend) -> &'static str {
    match trend {
        Trend::GoesOn => "changes, and goes on",
        Trend::Changed => "changes; whether it goes on cannot be told",
        Trend::Settled => "changed, then hardly any more",
        Trend::Stays => "stays",
        Trend::Unclear => "cannot be told",
    }
}
