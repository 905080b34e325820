//! The control loops that changed the number of users, as a table.

use super::capacity::objective;
use super::{ChartView, chart_view};
use crate::figures;
use plimsoll_analysis::capacity::in_words;
use plimsoll_analysis::feedback::{FeedbackReport, FeedbackRow, drift, signed, swing};
use plimsoll_analysis::quantity::{grouped, percent};
use plimsoll_analysis::{Input, words};
use plimsoll_model::feedback::FeedbackEnd;
use std::time::Duration;

/// The control loops of a study.
pub(crate) struct FeedbackView {
    /// Their rules in a sentence.
    pub(crate) rules: String,
    pub(crate) rows: Vec<FeedbackRowView>,
    /// Their users over time.
    pub(crate) charts: Vec<ChartView>,
}

/// The control loop of a variant on a start.
pub(crate) struct FeedbackRowView {
    pub(crate) condition: String,
    pub(crate) variant: String,
    pub(crate) start: u32,
    /// The mean number of users: the answer.
    pub(crate) users: String,
    /// The fewest and the most in the window: `120 to 280`.
    pub(crate) meanwhile: String,
    pub(crate) swing: String,
    pub(crate) drift: String,
    /// When the first alert fired, and which: `after 92 s: request duration, p95`.
    pub(crate) first_alert: String,
    /// For how long each limit was exceeded: `request duration, p95: 700 s`.
    pub(crate) alerts: String,
    pub(crate) took: String,
    pub(crate) end: &'static str,
}

pub(crate) fn feedback(input: &Input, report: &FeedbackReport) -> FeedbackView {
    FeedbackView {
        rules: report.rows.first().map(|row| rules(input, row)).unwrap_or_default(),
        rows: report.rows.iter().map(|one| row(input, one)).collect(),
        charts: figures::users_over_time(input).iter().map(chart_view).collect(),
    }
}

fn rules(input: &Input, row: &FeedbackRow) -> String {
    let rules = &row.record.rules;
    let [rest, over, window] = [rules.rest, rules.over, rules.window].map(words::span);
    let limits = input.facts.objective.as_ref().map(|one| format!("Limits: {}. ", objective(one, false)));
    let (step, flat, most) = (rules.step, rules.flat, grouped(f64::from(rules.most)));
    format!(
        "{}{step} users came every second until a limit was exceeded over the last {over}. After that, {step} left while one was, and \
         {step} came while none was, {rest} apart, until the line through their number rose or fell by less than {flat} users a \
         second for {window}, or {most} users had been there for as long without a limit exceeded. The answer is the mean over \
         that time; beside it stand half the range of the number, as a share of the mean, and the change by that line.",
        limits.unwrap_or_default()
    )
}

fn row(input: &Input, row: &FeedbackRow) -> FeedbackRowView {
    let record = &row.record;
    let none = || "–".to_owned();
    let number = |users: u32| grouped(f64::from(users));
    let window = record.window.as_ref();
    let seconds = |seconds: u32| words::span(Duration::from_secs(u64::from(seconds)));
    let alerts = record.alerts.iter().map(|alert| {
        let name = in_words(&alert.condition);
        format!("{name}: {}", seconds(alert.seconds))
    });
    let alerts: Vec<String> = alerts.collect();
    FeedbackRowView {
        condition: words::condition_in(&input.plan, row.condition),
        variant: input.plan.label(row.variant),
        start: row.start,
        users: window.map_or_else(none, |window| grouped(window.mean.round())),
        meanwhile: window.map_or_else(none, |one| format!("{} to {}", number(one.fewest), number(one.most))),
        swing: window.map_or_else(none, |window| percent(swing(window))),
        drift: window.map_or_else(none, |window| signed(drift(window))),
        first_alert: record
            .first_alert
            .map_or_else(none, |second| format!("after {}: {}", seconds(second + 1), row.first_alerts())),
        alerts: if alerts.is_empty() { none() } else { alerts.join("; ") },
        took: words::span(row.took),
        end: match record.end {
            FeedbackEnd::Flat => "flat",
            FeedbackEnd::NoAlert => "no alert with the most users",
            FeedbackEnd::Time => "time was over",
        },
    }
}
