//! Findings about control loops: answers that are none, and how much their users moved.

use super::{Context, Finding, Severity};
use crate::feedback::{FeedbackRow, drift, in_window, is_silent, reached, remedy, swing};
use crate::quantity::grouped;
use plimsoll_model::feedback::FeedbackEnd;

/// Users that swing or drift by more than this share of their mean are told.
const MATERIAL: f64 = 0.05;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let Some(report) = &context.analysis.feedback else { return Vec::new() };
    let rows = || report.rows.iter();
    let place = |row: &FeedbackRow| {
        format!("trial {} ({}, {})", row.start, context.variant(row.variant), context.condition(row.condition))
    };
    let in_windows = |rows: &mut dyn Iterator<Item = &FeedbackRow>, is_told: fn(&FeedbackRow) -> bool| -> Vec<String> {
        let told = rows.filter(|row| is_told(row));
        told.filter_map(|row| Some(format!("{}: {}", place(row), in_window(row.record.window.as_ref()?)))).collect()
    };
    let mut findings = Vec::new();
    let silent = || rows().filter(|row| is_silent(&row.record));
    // A first look ends before an alert can fire by default, and has a finding of its own.
    if let Some(remedy) = remedy(silent()).filter(|_| !context.input.facts.quick) {
        findings.push(Finding {
            severity: Severity::Problem,
            topic: "control loop without an alert",
            sentence: format!(
                "No limit was exceeded, or none any more, so that the control loop has no answer: {remedy}."
            ),
            evidence: silent()
                .map(|row| format!("{}: up to {} users", place(row), grouped(f64::from(reached(&row.record)))))
                .collect(),
        });
    }
    let endless = in_windows(&mut rows(), |row| !is_silent(&row.record) && row.record.end == FeedbackEnd::Time);
    if !endless.is_empty() {
        findings.push(Finding {
            severity: Severity::Problem,
            topic: "control loop without an end",
            sentence: "The number of users did not become flat in the time of the load, so that the control loop has no answer: \
                       let `duration` of `[load]` be longer."
                .to_owned(),
            evidence: endless,
        });
    }
    let flat = || rows().filter(|row| row.record.end == FeedbackEnd::Flat);
    let full = in_windows(&mut flat(), |row| {
        row.record.window.as_ref().is_some_and(|window| window.most == row.record.rules.most)
    });
    if !full.is_empty() {
        findings.push(Finding {
            severity: Severity::Caution,
            topic: "control loop at its most users",
            sentence: "The control loop had as many users as it may have while it took its mean, so that its answer may be too \
                       low: let `most` of `[load]` be larger."
                .to_owned(),
            evidence: full,
        });
    }
    let drifting =
        in_windows(&mut flat(), |row| row.record.window.as_ref().is_some_and(|window| drift(window).abs() > MATERIAL));
    if !drifting.is_empty() {
        findings.push(Finding {
            severity: Severity::Caution,
            topic: "control loop drifts",
            sentence: "The number of users still rose or fell where the control loop ended: its limit for flat is a number of \
                       users a second, whatever their number."
                .to_owned(),
            evidence: drifting,
        });
    }
    let swinging =
        in_windows(&mut flat(), |row| row.record.window.as_ref().is_some_and(|window| swing(window) > MATERIAL));
    if !swinging.is_empty() {
        findings.push(Finding {
            severity: Severity::Caution,
            topic: "control loop swings",
            sentence: "The number of users swung while the control loop took its mean: alerts look back over more time than passes \
                       between two changes, so that it adds and takes away too many. Part of the time more users were at \
                       work than its mean, and limits were exceeded."
                .to_owned(),
            evidence: swinging,
        });
    }
    if flat().next().is_some() {
        findings.push(Finding {
            severity: Severity::Note,
            topic: "control loop",
            sentence: "The answer of a control loop is where alerts come and go, not the most users under whom the limits hold. An \
                       interval over several loops says how much they differ, and not how far they are from that. A search \
                       (`profile = \"capacity\"`) looks for it. Requests, throughput and processors are those of the whole \
                       load, with users that still come, and of variants under different numbers of users."
                .to_owned(),
            evidence: Vec::new(),
        });
    }
    findings
}
