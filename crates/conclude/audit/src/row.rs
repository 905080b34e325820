//! A row of a table: a reported number, or a comparison of two.

use crate::cell::{Change, Claim, Errors, TimeOfRun};
use crate::column::Statistic;
use crate::quantity::{Bound, Quantity};
use plimsoll_model::measure::{Direction, Unit};
use std::collections::BTreeMap;

/// The setup of a row, in lower case: the texts of columns that say how it was measured, and its settings, with
/// `settings: ` before their names, because a setting can have the name of a column.
pub(crate) type Setup = BTreeMap<String, String>;

/// A row as it was read. Missing values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    /// Line of the file, from 1.
    pub(crate) line: u64,
    /// The cells of unknown columns, which describe the row: heading and text.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) measure: Option<String>,
    pub(crate) variant: Option<String>,
    /// Number of runs.
    pub(crate) runs: Option<u64>,
    /// Number of values behind the statistics.
    pub(crate) requests: Option<f64>,
    /// True if the number of values is a bound: `1,000+`.
    pub(crate) requests_bound: bool,
    pub(crate) statistics: Vec<(Statistic, Quantity)>,
    /// The number that `value` is compared with, in rows that hold both.
    pub(crate) baseline: Option<Quantity>,
    pub(crate) change: Option<Change>,
    pub(crate) claim: Option<Claim>,
    pub(crate) better: Option<Direction>,
    /// The usual spread between runs of the same variant, as a share.
    pub(crate) variance: Option<f64>,
    pub(crate) order: Option<TimeOfRun>,
    pub(crate) bytes: Option<Quantity>,
    pub(crate) operation: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) users: Option<f64>,
    /// True if the number of users is a bound: `1,000+`.
    pub(crate) users_bound: bool,
    pub(crate) rate: Option<Quantity>,
    /// Mean duration of the operations that `rate` counts.
    pub(crate) duration: Option<Quantity>,
    pub(crate) think: Option<Quantity>,
    /// Mean duration of the part that is compared.
    pub(crate) call: Option<Quantity>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) errors: Option<Errors>,
    /// The kind of bound that the errors are, as in `< 0.1 %`; none where they are exact.
    pub(crate) errors_bound: Option<Bound>,
    pub(crate) data: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) target: Option<String>,
    /// CPU use of the load generator, as a share.
    pub(crate) generator_cpu: Option<f64>,
    /// True if each variant is at its best with the settings of this row.
    pub(crate) best: bool,
}

impl Row {
    /// A statistic of the row.
    pub(crate) fn get(&self, statistic: Statistic) -> Option<&Quantity> {
        self.statistics.iter().find(|(known, _)| *known == statistic).map(|(_, number)| number)
    }

    /// A statistic of the row, unless it is a bound: `< 1 ms`.
    pub(crate) fn exact(&self, statistic: Statistic) -> Option<&Quantity> {
        self.get(statistic).filter(|number| !number.bound)
    }

    /// The number of values behind the statistics, unless it is a bound.
    pub(crate) fn exact_requests(&self) -> Option<f64> {
        self.requests.filter(|_| !self.requests_bound)
    }

    /// The median.
    pub(crate) fn median(&self) -> Option<&Quantity> {
        self.get(Statistic::Percentile(50.0))
    }

    /// The representative number of the row: one of its statistics, or its rate.
    pub(crate) fn centre(&self) -> Option<&Quantity> {
        self.centre_of_statistics().or(self.rate.as_ref())
    }

    /// The value, the mean, the median, or any other statistic.
    pub(crate) fn centre_of_statistics(&self) -> Option<&Quantity> {
        let usual = [Statistic::Value, Statistic::Mean, Statistic::Percentile(50.0)];
        let first = || self.statistics.iter().find(|(one, _)| *one != Statistic::Sd).map(|(_, number)| number);
        usual.into_iter().find_map(|statistic| self.get(statistic)).or_else(first)
    }

    /// The percentiles in rising order, the median among them.
    pub(crate) fn percentiles(&self) -> Vec<(f64, &Quantity)> {
        let mut found: Vec<(f64, &Quantity)> = Vec::new();
        for (statistic, number) in &self.statistics {
            if let Statistic::Percentile(p) = statistic {
                found.push((*p, number));
            }
        }
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        found
    }

    /// The key of rows that may be compared with one another.
    pub(crate) fn group(&self) -> Vec<String> {
        let mut key = vec![self.measure.clone().unwrap_or_default().to_lowercase()];
        key.extend(self.labels.iter().map(|(heading, text)| format!("{heading}={text}")));
        key.push(self.operation.clone().unwrap_or_default().to_lowercase());
        key.push(self.bytes.as_ref().map(|bytes| bytes.value.to_string()).unwrap_or_default());
        key.push(self.users.map(|users| users.to_string()).unwrap_or_default());
        key.push(self.think.as_ref().map(|think| think.value.to_string()).unwrap_or_default());
        key
    }

    /// The settings of the row, and its columns that say how it was measured. Rows of one variant are repeated runs
    /// only where they are the same.
    pub(crate) fn setup(&self) -> Setup {
        let settings = self.settings.iter();
        let settings = settings.map(|(key, level)| (format!("settings: {}", key.to_lowercase()), level.to_lowercase()));
        self.circumstances().into_iter().chain(settings).collect()
    }

    /// The columns that say how the row was measured: mode, data, method and target.
    pub(crate) fn circumstances(&self) -> Setup {
        let columns = [("mode", &self.mode), ("data", &self.data), ("method", &self.method), ("target", &self.target)];
        let given = columns.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        given.map(|(name, text)| (name.to_owned(), text.to_lowercase())).collect()
    }

    /// The description of the row without its variant: `10GB, write`.
    pub(crate) fn condition(&self) -> String {
        let mut words: Vec<String> = self.measure.iter().cloned().collect();
        words.extend(self.labels.iter().map(|(_, text)| text.clone()));
        words.extend(self.bytes.as_ref().map(|bytes| bytes.text.clone()));
        words.extend(self.operation.clone());
        words.extend(self.users.map(|users| format!("{} users", plimsoll_analysis::quantity::grouped(users))));
        words.retain(|word| !word.is_empty());
        words.join(", ")
    }

    /// The description of the row, its variant first: `Local, 10GB, write`.
    pub(crate) fn name(&self) -> String {
        let condition = self.condition();
        match &self.variant {
            Some(variant) if condition.is_empty() => variant.clone(),
            Some(variant) => format!("{variant}, {condition}"),
            None if condition.is_empty() => "this row".to_owned(),
            None => condition,
        }
    }

    /// The direction that is better: given in the row, or known for its measure.
    pub(crate) fn direction(&self) -> Option<Direction> {
        let by_name = || match &self.measure {
            Some(measure) => crate::direction::of(measure),
            None => self.labels.iter().find_map(|(_, text)| crate::direction::of(text)),
        };
        self.better.or_else(by_name).or_else(|| self.by_unit())
    }

    /// The direction by the unit: less time is better, a higher rate is better.
    fn by_unit(&self) -> Option<Direction> {
        match self.centre()?.unit {
            Unit::Seconds => Some(Direction::Lower),
            Unit::PerSecond | Unit::BytesPerSecond => Some(Direction::Higher),
            _ => None,
        }
    }

    /// The mean duration of an iteration: the column of that name, or the row's own mean if it is
    /// a time.
    pub(crate) fn mean_duration(&self) -> Option<&Quantity> {
        let mean = || self.get(Statistic::Mean).filter(|mean| mean.unit == Unit::Seconds);
        self.duration.as_ref().or_else(mean)
    }
}
