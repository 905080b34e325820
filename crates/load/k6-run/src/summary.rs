//! The summary at the end of a run: as text in the three modes of k6, and as JSON for `--summary-export` and
//! `handleSummary`.

mod export;
mod legacy;
mod lines;
mod number;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use number::json as json_number;

use crate::checks::Checks;
use crate::metrics::{Aggregation, Contains, Kind, Metric, MetricId, Registry, Sink, Sinks, Submetric};
use crate::options::TimeUnit;
use crate::threshold::{Limits, Outcome, Threshold};
use serde_json::Value;
use std::time::Duration;

/// The contents of a summary.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// The metrics.
    pub registry: &'a Registry,
    /// The samples of all threads.
    pub sinks: &'a Sinks,
    /// The duration of the run.
    pub elapsed: Duration,
    /// The thresholds.
    pub limits: &'a [Limits],
    /// The checks, of all threads.
    pub checks: &'a Checks,
    /// The aggregations of trends.
    pub trend_stats: &'a [Aggregation],
    /// The unit of times; none for a fitting unit each.
    pub time_unit: Option<TimeUnit>,
}

/// The mode of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The most important metrics.
    Compact,
    /// All metrics, and the checks of each group.
    Full,
    /// As before k6 1.0.
    Legacy,
}

/// The output of the run, for a script's `handleSummary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// True for a terminal.
    pub is_terminal: bool,
    /// True to leave out colours.
    pub no_color: bool,
}

/// A metric or submetric in a summary.
struct Row<'a> {
    metric: &'a Metric,
    submetric: Option<&'a Submetric>,
    sink: &'a Sink,
    limits: Option<&'a Limits>,
}

impl<'a> Summary<'a> {
    /// The text for a terminal without colours.
    #[must_use]
    pub fn text(&self, mode: Mode) -> String {
        match mode {
            Mode::Compact | Mode::Full => text::text(self, mode == Mode::Full),
            Mode::Legacy => legacy::text(self),
        }
    }

    /// The JSON of `--summary-export`.
    #[must_use]
    pub fn export(&self, setup_data: Option<Value>) -> Value {
        export::export(self, setup_data)
    }

    /// The argument of a script's `handleSummary`.
    #[must_use]
    pub fn data(&self, setup_data: Option<Value>, output: Output) -> Value {
        export::data(self, setup_data, output)
    }

    /// The metrics with a threshold that does not hold.
    #[must_use]
    pub fn crossed(&self) -> Vec<&'a str> {
        let broken = |limits: &&Limits| limits.judge(self.sinks, self.elapsed).iter().any(|judged| !judged.holds);
        let mut names: Vec<&str> = self.limits.iter().filter(broken).map(|limits| limits.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Metrics with samples or thresholds, sorted by name, each followed by its submetrics. A threshold on one of these
    /// shows the metric too.
    fn rows(&self) -> Vec<Row<'a>> {
        let (registry, sinks) = (self.registry, self.sinks);
        let mut metrics: Vec<(MetricId, &Metric)> = registry.iter().collect();
        metrics.sort_by_key(|(_, metric)| &metric.name);
        let mut rows = Vec::new();
        for (id, metric) in metrics {
            let mut parts: Vec<(usize, &Submetric)> = metric.submetrics.iter().enumerate().collect();
            parts.sort_by_key(|(_, part)| &part.name);
            let parts = parts.into_iter().map(|(index, part)| (Some(index), Some(part)));
            for (index, submetric) in std::iter::once((None, None)).chain(parts) {
                let limits = self.limits.iter().find(|limits| (limits.metric, limits.submetric) == (id, index));
                let sink = sinks.get(id, index);
                let above = || index.is_none() && self.limits.iter().any(|limits| limits.metric == id);
                if sink.samples() > 0 || limits.is_some() || above() {
                    rows.push(Row { metric, submetric, sink, limits });
                }
            }
        }
        rows
    }

    /// Metrics with samples in a group of a scenario, sorted by name.
    fn rows_of(&self, scenario: &str, group: &str) -> Vec<Row<'a>> {
        let both = self.registry.iter().map(|(_, metric)| metric).zip(self.sinks.part(scenario, group));
        let rows = both.filter(|(_, sink)| sink.samples() > 0);
        let mut rows: Vec<Row<'a>> =
            rows.map(|(metric, sink)| Row { metric, submetric: None, sink, limits: None }).collect();
        rows.sort_by_key(Row::name);
        rows
    }
}

impl<'a> Row<'a> {
    fn kind(&self) -> Kind {
        self.metric.kind
    }

    fn contains(&self) -> Contains {
        self.metric.contains
    }

    /// The full name.
    fn name(&self) -> &'a str {
        self.submetric.map_or(&self.metric.name, |submetric| &submetric.name)
    }

    /// The tags of a submetric, with their brackets: `{name:login}`.
    fn tags(&self) -> Option<&'a str> {
        self.submetric.map(|submetric| &submetric.name[self.metric.name.len()..])
    }

    /// The name in a list, where submetrics are indented under their metric.
    fn label(&self) -> String {
        match self.tags() {
            Some(tags) => format!("  {{ {} }}", tags.trim_matches(['{', '}'])),
            None => self.metric.name.clone(),
        }
    }

    fn judged(&self, summary: &Summary<'_>) -> Vec<(&'a Threshold, Outcome)> {
        let Some(limits) = self.limits else { return Vec::new() };
        limits.thresholds.iter().zip(limits.judge(summary.sinks, summary.elapsed)).collect()
    }
}

/// `✓` or `✗`.
fn mark(holds: bool) -> char {
    if holds { '✓' } else { '✗' }
}
