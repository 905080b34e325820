//! The text of `compact` and `full`.

use super::lines::{Widths, compared, dotted, length};
use super::{Row, Summary, mark, number};
use crate::checks::{Check, Checks, last_name};
use crate::metrics::Contains;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Metrics that are shown in another way.
const NEVER: [&str; 2] = ["checks", "group_duration"];

/// Metrics that only `full` shows.
const DETAILS: [&str; 6] = [
    "http_req_blocked",
    "http_req_connecting",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
];

const EXECUTION: [&str; 5] = ["vus", "vus_max", "iterations", "iteration_duration", "dropped_iterations"];

/// The scenario of a script that names none.
const UNNAMED: &str = "default";

/// The groups of what runs before and after all scenarios, which k6 does not show.
const ALONE: [&str; 2] = ["::setup", "::teardown"];

/// The sections, in order.
const SECTIONS: [&str; 6] = ["CUSTOM", "HTTP", "EXECUTION", "NETWORK", "GRPC", "WEBSOCKET"];

const LABELS_OF_CHECKS: [&str; 3] = ["checks_total", "checks_succeeded", "checks_failed"];

pub(super) fn text(summary: &Summary<'_>, full: bool) -> String {
    let rows = summary.rows();
    let mut out = String::from("\n\n");
    thresholds(summary, &rows, &mut out);
    out.push_str("  █ TOTAL RESULTS \n\n");
    let checks = summary.checks.by_name();
    // A threshold on checks shows their numbers, also where there were none.
    if !checks.is_empty() || rows.iter().any(|row| row.metric.name == "checks") {
        checks_of(summary, &checks, 4, &mut out);
    }
    sections(summary, &rows, full, 4, &mut out);
    if full {
        parts(summary, &mut out);
    }
    out.push_str("\n\n");
    out
}

fn thresholds(summary: &Summary<'_>, rows: &[Row<'_>], out: &mut String) {
    // An empty list of thresholds only asks for its part of a metric.
    let is_limited = |row: &&Row<'_>| row.limits.is_some_and(|limits| !limits.thresholds.is_empty());
    let limited: Vec<&Row<'_>> = rows.iter().filter(is_limited).collect();
    if limited.is_empty() {
        return;
    }
    out.push_str("  █ THRESHOLDS \n");
    for row in &limited {
        // A part stands below its metric, if that has thresholds of its own.
        let is_below = |other: &&Row<'_>| other.submetric.is_none() && other.metric.name == row.metric.name;
        let (indent, name) = match row.tags() {
            Some(tags) if limited.iter().any(is_below) => (6, tags),
            _ => (4, row.name()),
        };
        let _ = write!(out, "\n{:indent$}{name}\n", "");
        for (threshold, judged) in row.judged(summary) {
            let value = compared(summary, row, threshold.aggregation, judged.value);
            let (mark, what) = (mark(judged.holds), threshold.aggregation);
            let _ = writeln!(out, "{:indent$}{mark} '{threshold}' {what}={value}", "");
        }
    }
    out.push_str("\n\n");
}

/// How many checks there were, and each of them.
fn checks_of(summary: &Summary<'_>, checks: &[Check], indent: usize, out: &mut String) {
    let passes: u64 = checks.iter().map(|check| check.passes).sum();
    let fails: u64 = checks.iter().map(|check| check.fails).sum();
    let total = passes + fails;
    let per_second = total as f64 / summary.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let share = |part: u64| (number::percent(part as f64 / total.max(1) as f64), format!("{part} out of {total}"));
    let rate = format!("{}/s", number::value(per_second, Contains::Default, None));
    let values = [(total.to_string(), rate), share(passes), share(fails)];
    let longest = LABELS_OF_CHECKS.iter().map(|label| length(label)).max().unwrap_or_default();
    let width = values.iter().map(|(value, _)| length(value)).max().unwrap_or_default();
    for (label, (value, extra)) in LABELS_OF_CHECKS.iter().zip(&values) {
        let _ = writeln!(out, "{:indent$}{} {value:<width$} {extra}", "", dotted(label, longest));
    }
    out.push('\n');
    checks.iter().for_each(|check| check_lines(check, indent, 2, out));
    out.push('\n');
}

/// A check, and below it how often it failed.
pub(super) fn check_lines(check: &Check, indent: usize, below: usize, out: &mut String) {
    let Check { name, passes, fails, .. } = check;
    let _ = writeln!(out, "{:indent$}{} {name}", "", mark(*fails == 0));
    if *fails > 0 {
        let share = 100 * passes / (passes + fails);
        let indent = indent + below;
        let _ = writeln!(out, "{:indent$}↳  {share}% — ✓ {passes} / ✗ {fails}", "");
    }
}

fn sections(summary: &Summary<'_>, rows: &[Row<'_>], full: bool, indent: usize, out: &mut String) {
    let shown = |row: &&Row<'_>| {
        let name = row.metric.name.as_str();
        !NEVER.contains(&name) && (full || !DETAILS.contains(&name))
    };
    let shown: Vec<&Row<'_>> = rows.iter().filter(shown).collect();
    let widths = Widths::of(summary, shown.iter().copied());
    for section in SECTIONS {
        let own: Vec<_> = shown.iter().filter(|row| section_of(&row.metric.name) == section).collect();
        if !own.is_empty() {
            let _ = writeln!(out, "{:indent$}{section}", "");
            for row in own {
                let _ = writeln!(out, "{:indent$}{}", "", widths.line(summary, row));
            }
            out.push('\n');
        }
    }
}

fn section_of(metric: &str) -> &'static str {
    match metric {
        _ if metric.starts_with("http_req") => "HTTP",
        _ if EXECUTION.contains(&metric) => "EXECUTION",
        "data_sent" | "data_received" => "NETWORK",
        _ if metric.starts_with("grpc_") => "GRPC",
        _ if metric.starts_with("ws_") => "WEBSOCKET",
        _ => "CUSTOM",
    }
}

/// Scenarios and groups. A scenario without a name is not distinguished from code that runs outside of scenarios.
fn parts(summary: &Summary<'_>, out: &mut String) {
    let mut scenarios: BTreeSet<&str> = summary.sinks.scenarios().collect();
    scenarios.extend(summary.checks.all().iter().map(|check| check.scenario.as_str()));
    let is_plain = |scenario: &str| scenario.is_empty() || scenario == UNNAMED;
    let all_plain = scenarios.iter().all(|scenario| is_plain(scenario));
    for scenario in ["", UNNAMED].into_iter().filter(|scenario| scenario.is_empty() || all_plain) {
        Part { summary, scenario, checks: summary.checks.within(|of| of == scenario) }.groups("", 2, out);
    }
    for scenario in scenarios.into_iter().filter(|scenario| !scenario.is_empty() && !all_plain) {
        let part = Part { summary, scenario, checks: summary.checks.within(|of| of == scenario) };
        let _ = writeln!(out, "\n  █ SCENARIO: {scenario} \n");
        part.results("", &part.checks.by_name(), 4, out);
        part.groups("", 4, out);
    }
}

/// A scenario that is shown with its groups.
struct Part<'a> {
    summary: &'a Summary<'a>,
    scenario: &'a str,
    checks: Checks,
}

impl Part<'_> {
    /// Each group in this one.
    fn groups(&self, path: &str, indent: usize, out: &mut String) {
        for group in self.checks.groups_in(path).into_iter().filter(|group| !ALONE.contains(group)) {
            let (gap, sign) = if indent == 2 { ("\n", '█') } else { ("", '↳') };
            let _ = writeln!(out, "{gap}{:indent$}{sign} GROUP: {} \n", "", last_name(group));
            self.results(group, &self.checks.of(group), indent + 2, out);
            self.groups(group, indent + 2, out);
        }
    }

    fn results(&self, group: &str, checks: &[Check], indent: usize, out: &mut String) {
        if !checks.is_empty() {
            checks_of(self.summary, checks, indent, out);
        }
        sections(self.summary, &self.summary.rows_of(self.scenario, group), true, indent, out);
    }
}
