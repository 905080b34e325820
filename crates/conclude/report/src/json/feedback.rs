//! The JSON of control loops: users, seconds, and users per second.

use plimsoll_analysis::Input;
use plimsoll_analysis::feedback::{FeedbackReport, FeedbackRow};
use plimsoll_model::feedback::FeedbackRecord;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Row<'a> {
    condition: usize,
    variant: String,
    trial: u32,
    seconds: f64,
    #[serde(flatten)]
    record: &'a FeedbackRecord,
}

pub(super) fn feedback<'a>(input: &Input, report: &'a FeedbackReport) -> Vec<Row<'a>> {
    let row = |row: &'a FeedbackRow| Row {
        condition: row.condition,
        variant: input.plan.label(row.variant),
        trial: row.start,
        seconds: row.took.as_secs_f64(),
        record: &row.record,
    };
    report.rows.iter().map(row).collect()
}
