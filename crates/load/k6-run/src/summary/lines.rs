//! Lists of metrics whose columns stand one below the other.

use super::{Row, Summary, number};
use crate::metrics::{Aggregation, Kind, Sink};

/// What a metric has in its line.
enum Cells {
    /// A column for each, such as `avg=1.2ms`: the name, and the value.
    Trend(Vec<(String, String)>),
    /// A value, and what goes with it.
    Other(String, Vec<String>),
}

/// How wide the columns of a list are.
#[derive(Default)]
pub(super) struct Widths {
    label: usize,
    value: usize,
    extras: Vec<usize>,
    stats: Vec<usize>,
}

impl Widths {
    /// Those of a list with these rows.
    pub(super) fn of<'r, 'a: 'r>(summary: &Summary<'_>, rows: impl IntoIterator<Item = &'r Row<'a>>) -> Widths {
        let mut widths = Widths::default();
        for row in rows {
            widths.label = widths.label.max(length(&row.label()));
            match cells(summary, row) {
                Cells::Trend(stats) => widen(&mut widths.stats, stats.iter().map(|(_, value)| value)),
                Cells::Other(value, extras) => {
                    widths.value = widths.value.max(length(&value));
                    widen(&mut widths.extras, extras.iter());
                }
            }
        }
        widths
    }

    /// The line of a row.
    pub(super) fn line(&self, summary: &Summary<'_>, row: &Row<'_>) -> String {
        let label = row.label();
        let values = match cells(summary, row) {
            Cells::Trend(stats) => {
                let columns =
                    stats.iter().zip(&self.stats).map(|((name, value), width)| format!("{name}={value:<width$}"));
                columns.collect::<Vec<_>>().join(" ")
            }
            Cells::Other(value, extras) => {
                let width = self.value;
                format!("{value:<width$} {}", self.extras(&extras))
            }
        };
        format!("{} {values}", dotted(&label, self.label))
    }

    /// One alone is not filled up.
    fn extras(&self, extras: &[String]) -> String {
        match extras {
            [one] => one.clone(),
            several => {
                let columns = several.iter().zip(&self.extras).map(|(extra, width)| format!("{extra:<width$}"));
                columns.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// A label with dots up to the longest one, and three more.
pub(super) fn dotted(label: &str, longest: usize) -> String {
    format!("{label}{}:", ".".repeat(longest + 3 - length(label)))
}

pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

fn widen<'s>(widths: &mut Vec<usize>, texts: impl Iterator<Item = &'s String>) {
    for (index, text) in texts.enumerate() {
        if index == widths.len() {
            widths.push(0);
        }
        widths[index] = widths[index].max(length(text));
    }
}

fn cells(summary: &Summary<'_>, row: &Row<'_>) -> Cells {
    let shown = |value| number::value(value, row.contains(), summary.time_unit);
    let get = |what| row.sink.get(what, summary.elapsed).unwrap_or_default();
    match row.sink {
        Sink::Trend(trend) => {
            let stat = |what: &Aggregation| match what {
                Aggregation::Count => (what.to_string(), trend.totals().count.to_string()),
                _ => (what.to_string(), shown(get(*what))),
            };
            Cells::Trend(summary.trend_stats.iter().map(stat).collect())
        }
        Sink::Counter { sum, .. } => Cells::Other(shown(*sum), vec![format!("{}/s", shown(get(Aggregation::Rate)))]),
        Sink::Gauge { last, min, max, .. } => {
            Cells::Other(shown(*last), vec![format!("min={}", shown(*min)), format!("max={}", shown(*max))])
        }
        Sink::Rate { trues, total } => {
            Cells::Other(number::percent(get(Aggregation::Rate)), vec![format!("{trues} out of {total}")])
        }
    }
}

/// The value that a threshold was held against.
pub(super) fn compared(summary: &Summary<'_>, row: &Row<'_>, what: Aggregation, value: f64) -> String {
    let shown = number::value(value, row.contains(), summary.time_unit);
    match (row.kind(), what) {
        (Kind::Rate, _) => number::percent(value),
        (Kind::Counter, Aggregation::Rate) => format!("{shown}/s"),
        _ => shown,
    }
}
