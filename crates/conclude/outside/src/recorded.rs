//! What was recorded of a version.

use crate::{range, table};
use std::collections::BTreeMap;

/// A version: its results under each case.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The name of its folder.
    pub name: String,
    /// By name; a folder without cases has one, whose name is empty.
    pub cases: BTreeMap<String, Case>,
}

/// The runs of a version under a case, in the order of their names.
pub type Case = Vec<Run>;

/// A run: what was recorded of each measure, by the name of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The measures.
    pub measures: BTreeMap<String, Recorded>,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// A number for each label; the label of a file without labels is empty.
    Values(BTreeMap<String, f64>),
    /// Numbers over time, a line for each label. Series of Prometheus get theirs anew when two versions are compared, so that one
    /// series has one label in all files.
    OverTime(BTreeMap<String, Line>),
}

/// Numbers over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Pairs of an instant, in seconds on some clock, and the number, in order of time.
    pub points: Vec<(f64, f64)>,
    /// The instants of samples that are no number, as NaN of a division by zero.
    pub no_number: Vec<f64>,
    /// The labels of a series of Prometheus, by their names; none of a table.
    pub labels: BTreeMap<String, String>,
}

impl Line {
    /// The mean of its numbers; none without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let values: Vec<f64> = self.points.iter().map(|(_, value)| *value).collect();
        plimsoll_statistics::mean(&values)
    }

    /// The distances between two samples, in seconds, whether they are numbers or not.
    #[must_use]
    pub fn distances(&self) -> Vec<f64> {
        let mut instants: Vec<f64> =
            self.points.iter().map(|(at, _)| *at).chain(self.no_number.iter().copied()).collect();
        instants.sort_by(f64::total_cmp);
        instants.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// The median distance between two samples, in seconds; none of fewer than two.
    #[must_use]
    pub fn step(&self) -> Option<f64> {
        plimsoll_statistics::median(&self.distances()).filter(|step| *step > 0.0)
    }

    /// From the first sample to the last, in seconds.
    #[must_use]
    pub fn span(&self) -> f64 {
        self.points.last().zip(self.points.first()).map_or(0.0, |(last, first)| last.0 - first.0)
    }
}

impl Recorded {
    /// The content of a file `NAME.csv`.
    ///
    /// # Errors
    /// What was expected and what was found, with its line.
    pub fn of_csv(bytes: &[u8]) -> Result<Recorded, String> {
        table::parse(bytes)
    }

    /// The content of a file `NAME.json`, an answer of Prometheus to `query_range`.
    ///
    /// # Errors
    /// What was expected and what was found.
    pub fn of_query_range(bytes: &[u8]) -> Result<Recorded, String> {
        range::parse(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
    }

    /// The labels, also those of lines over time that have no number.
    pub fn labels(&self) -> impl Iterator<Item = &String> {
        let of_values = if let Recorded::Values(values) = self { Some(values.keys()) } else { None };
        of_values.into_iter().flatten().chain(self.lines().map(|(label, _)| label))
    }

    /// A number for each label: over time the mean.
    #[must_use]
    pub fn values(&self) -> BTreeMap<String, f64> {
        match self {
            Recorded::Values(values) => values.clone(),
            Recorded::OverTime(lines) => {
                lines.iter().filter_map(|(label, line)| Some((label.clone(), line.mean()?))).collect()
            }
        }
    }

    /// The lines over time; none of a table of numbers.
    pub fn lines(&self) -> impl Iterator<Item = (&String, &Line)> {
        match self {
            Recorded::Values(_) => None,
            Recorded::OverTime(lines) => Some(lines),
        }
        .into_iter()
        .flatten()
    }
}
