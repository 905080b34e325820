//! Findings about what changes over the time of a long load.

use super::{Context, Finding, Severity};
use crate::soak::{SoakRow, Trend, evidence};
use crate::words;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let Some(report) = &context.analysis.soak else { return Vec::new() };
    let mut worse: Vec<&SoakRow> = report.rows.iter().filter(|row| row.changes() && row.is_worse()).collect();
    // What still grows at the end comes first.
    worse.sort_by_key(|row| row.urgency());
    let Some(first) = worse.first() else { return Vec::new() };
    let time = words::span(report.length);
    let (severity, sentence) = match first.trend {
        Trend::GoesOn => (
            Severity::Problem,
            format!(
                "Over a load of {time} what is measured becomes worse, and still did at its end: how these systems do after a day \
                 is not what they do after minutes."
            ),
        ),
        Trend::Changed => (
            Severity::Problem,
            format!(
                "Over a load of {time} what is measured becomes worse. Whether it goes on cannot be told, and a longer load \
                 would: how these systems do after a day may not be what they do after minutes."
            ),
        ),
        _ => (
            Severity::Caution,
            format!(
                "Over a load of {time} what is measured became worse in its first half, and not further in its second: short loads \
                 do not show how these systems do later."
            ),
        ),
    };
    let line = |row: &&SoakRow| {
        format!(
            "{}, {}: {}",
            context.variant(row.variant),
            context.condition(row.condition),
            evidence(row, report.length)
        )
    };
    vec![Finding { severity, topic: "changes over time", sentence, evidence: worse.iter().map(line).collect() }]
}
