//! The table of a condition: a row for each parameter, a column for each variant.

use plimsoll_analysis::exposed::{BucketQuantile, Exposed};
use plimsoll_analysis::quantity::show;
use plimsoll_analysis::{Analysis, Input, samples, words};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::{Metric, Subject};
use plimsoll_model::result::TrialResult;
use std::collections::{BTreeMap, BTreeSet};

/// The results under a condition.
pub(crate) struct ConditionView {
    pub(crate) title: String,
    /// Trials that count, for each variant.
    pub(crate) n: Vec<usize>,
    pub(crate) durations: Vec<DurationRow>,
    pub(crate) amounts: Vec<AmountRow>,
}

/// A duration with its statistics for each variant.
pub(crate) struct DurationRow {
    pub(crate) name: String,
    pub(crate) variants: Vec<Vec<Statistics>>,
}

/// A statistic of a duration, with the spread of the repeats.
#[derive(Clone)]
pub(crate) struct Statistics {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) spread: String,
    /// True if the study has a measure for it.
    pub(crate) known: bool,
}

/// One or two numbers for each variant.
pub(crate) struct AmountRow {
    pub(crate) name: String,
    pub(crate) variants: Vec<String>,
}

/// The columns of a duration, with the names that k6 gives them.
const STATISTICS: [(&str, Statistic); 7] = [
    ("avg", Statistic::Avg),
    ("min", Statistic::Min),
    ("med", Statistic::Med),
    ("max", Statistic::Max),
    ("p(90)", Statistic::Percentile(90.0)),
    ("p(95)", Statistic::Percentile(95.0)),
    ("p(99)", Statistic::Percentile(99.0)),
];

/// The sign for a value that is not known.
const UNKNOWN: &str = "–";

/// The tail of the histograms that systems expose, in per cent.
const TAIL_PERCENT: f64 = 99.0;
const TAIL: Statistic = Statistic::Percentile(TAIL_PERCENT);

pub(crate) fn conditions(input: &Input, analysis: &Analysis) -> Vec<ConditionView> {
    let rare = rare_requests(input);
    (0..input.plan.conditions.len()).map(|condition| Table { input, analysis, condition, rare: &rare }.view()).collect()
}

/// The most requests that tables list by name.
const MAX_REQUESTS: usize = 50;

/// The requests that tables leave out because many others are more frequent: scripts may name any
/// number of requests.
pub(crate) fn rare_requests(input: &Input) -> BTreeSet<String> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (subject, tally) in input.trials().flat_map(|trial| &trial.load.tallies) {
        if let Subject::Request(name) = subject {
            *counts.entry(name).or_default() += tally.count();
        }
    }
    rarest(counts)
}

/// The names beyond the most frequent ones; ties are broken by the alphabet.
fn rarest(counts: BTreeMap<&str, u64>) -> BTreeSet<String> {
    let mut names: Vec<(&str, u64)> = counts.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    names.into_iter().skip(MAX_REQUESTS).map(|(name, _)| name.to_owned()).collect()
}

struct Table<'a> {
    input: &'a Input,
    analysis: &'a Analysis,
    condition: usize,
    rare: &'a BTreeSet<String>,
}

impl Table<'_> {
    fn view(&self) -> ConditionView {
        ConditionView {
            title: words::condition_in(&self.input.plan, self.condition),
            n: self.variants().map(|variant| self.counted(variant)).collect(),
            durations: self.duration_series().iter().map(|series| self.duration(series)).collect(),
            amounts: self.amounts(),
        }
    }

    fn variants(&self) -> std::ops::Range<usize> {
        0..self.input.plan.variants.len()
    }

    fn counted(&self, variant: usize) -> usize {
        self.trials().filter(|trial| trial.variant() == variant).count()
    }

    /// The trials under the condition that count.
    fn trials(&self) -> impl Iterator<Item = TrialResult<'_>> {
        self.input.trials().filter(|trial| trial.condition() == self.condition && self.input.counts(*trial))
    }

    /// The series of durations that were recorded under the condition, in the analysis's order.
    fn duration_series(&self) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for measure in self.analysis.measures.iter().filter(|measure| measure.statistic == Statistic::Avg) {
            let duration = !matches!(measure.series, Series::Cpu(_) | Series::Memory(_) | Series::Exposed(_));
            let known = self.variants().any(|variant| {
                let estimate = self.analysis.estimate(self.condition, variant, measure);
                estimate.is_some_and(|estimate| estimate.summary.is_ok())
            });
            let rare = matches!(&measure.series, Series::RequestDuration(Some(name)) if self.rare.contains(name));
            if duration && known && !rare && !series.contains(&measure.series) {
                series.push(measure.series.clone());
            }
        }
        series
    }

    fn duration(&self, series: &Series) -> DurationRow {
        let cells = |variant| {
            STATISTICS
                .iter()
                .map(|(name, statistic)| {
                    let (value, spread) = self.value(variant, series, *statistic);
                    let known = self.analysis.measures.contains(&Measure::new(series.clone(), *statistic));
                    Statistics { name, value, spread, known }
                })
                .collect()
        };
        DurationRow { name: words::series(series), variants: self.variants().map(cells).collect() }
    }

    fn amounts(&self) -> Vec<AmountRow> {
        use Statistic::{Avg, Count, Max, Rate, Ratio};
        let mut rows = vec![
            self.amount("data received", &Series::DataReceived, [Count, Rate]),
            self.amount("data sent", &Series::DataSent, [Count, Rate]),
            self.amount("iterations", &Series::Iterations, [Count, Rate]),
            self.amount("errors", &Series::Errors, [Count, Ratio]),
            self.amount("CPU, mean and peak", &Series::Cpu(None), [Avg, Max]),
            self.amount("memory, mean and peak", &Series::Memory(None), [Avg, Max]),
        ];
        if self.analysis.measures.iter().any(|measure| measure.series == Series::FailedIterations) {
            rows.push(self.amount("failed iterations", &Series::FailedIterations, [Count, Ratio]));
        }
        if self.analysis.measures.iter().any(|measure| measure.series == Series::Deliveries) {
            rows.push(self.amount("deliveries", &Series::Deliveries, [Count, Rate]));
            rows.push(self.amount("lost deliveries", &Series::LostDeliveries, [Count, Ratio]));
        }
        if self.analysis.measures.iter().any(|measure| measure.series == Series::Subrequests) {
            rows.push(self.amount("subrequests", &Series::Subrequests, [Count, Rate]));
        }
        rows.extend(self.of_scripts());
        let systems = samples::names_of_systems(self.input);
        if systems.len() > 1 {
            for system in systems {
                let name = Some(system.clone());
                rows.push(self.amount(
                    &format!("CPU of {system}, mean and peak"),
                    &Series::Cpu(name.clone()),
                    [Avg, Max],
                ));
                rows.push(self.amount(
                    &format!("memory of {system}, mean and peak"),
                    &Series::Memory(name),
                    [Avg, Max],
                ));
            }
        }
        rows.extend(self.of_exposed());
        rows
    }

    /// The metrics that systems expose.
    fn of_exposed(&self) -> Vec<AmountRow> {
        use Statistic::{Avg, Count, Max, Rate};
        let mut known: BTreeMap<&str, Vec<Statistic>> = BTreeMap::new();
        for measure in &self.analysis.measures {
            if let Series::Exposed(name) = &measure.series {
                known.entry(name).or_default().push(measure.statistic);
            }
        }
        if known.is_empty() {
            return Vec::new();
        }
        let exposed: Vec<(usize, Exposed<'_>)> =
            self.trials().map(|trial| (trial.variant(), Exposed::of(trial, 1.0))).collect();
        let row = |(name, statistics): (&str, Vec<Statistic>)| {
            let series = Series::Exposed(name.to_owned());
            // What a series has tells its kind.
            if statistics.contains(&TAIL) {
                self.with_tail(name, &series, &exposed)
            } else if statistics.contains(&Max) {
                self.amount(&format!("{name}, mean and peak"), &series, [Avg, Max])
            } else if statistics.contains(&Avg) {
                self.amount(&format!("{name}, mean and number per second"), &series, [Avg, Rate])
            } else {
                self.amount(name, &series, [Count, Rate])
            }
        };
        known.into_iter().map(row).collect()
    }

    /// The mean and the tail of a histogram, with the bucket in which the tail lies in all trials.
    fn with_tail(&self, name: &str, series: &Series, exposed: &[(usize, Exposed<'_>)]) -> AmountRow {
        let unit = self.analysis.measure(series, TAIL).unit();
        let bucket = |variant: usize| {
            let of_variant = exposed.iter().filter(|(of, _)| *of == variant);
            let found: Vec<BucketQuantile> =
                of_variant.filter_map(|(_, exposed)| exposed.quantile(name, TAIL_PERCENT / 100.0).ok()).collect();
            let above = found.iter().map(|one| one.above.unwrap_or(0.0)).reduce(f64::min)?;
            let at_most = found.iter().map(|one| one.at_most).reduce(f64::max)?;
            let end = if at_most.is_finite() { show(at_most, unit) } else { "∞".to_owned() };
            Some(format!(" (in the bucket {} to {end})", show(above, unit)))
        };
        let row = self.amount(&format!("{name}, mean and {TAIL}"), series, [Statistic::Avg, TAIL]);
        let cells = row.variants.into_iter().enumerate();
        let known = |variant| self.value(variant, series, TAIL).0 != UNKNOWN;
        let of_bucket = |variant| bucket(variant).filter(|_| known(variant)).unwrap_or_default();
        let cells = cells.map(|(variant, cell)| cell + &of_bucket(variant)).collect();
        AmountRow { variants: cells, ..row }
    }

    /// The checks and counters of scripts.
    fn of_scripts(&self) -> Vec<AmountRow> {
        let mut rows: Vec<AmountRow> = Vec::new();
        for measure in &self.analysis.measures {
            let series = &measure.series;
            let row = match (series, measure.statistic) {
                (Series::Custom(Metric::Counter, _), Statistic::Count) => {
                    self.amount(&words::series(series), series, [Statistic::Count, Statistic::Rate])
                }
                (Series::Checks(_) | Series::Custom(Metric::Rate, _), Statistic::Ratio) => self.share(series),
                _ => continue,
            };
            rows.push(row);
        }
        rows
    }

    /// A share for each variant.
    fn share(&self, series: &Series) -> AmountRow {
        let cell = |variant| {
            let (value, spread) = self.value(variant, series, Statistic::Ratio);
            format!("{value} {spread}").trim_end().to_owned()
        };
        AmountRow { name: words::series(series), variants: self.variants().map(cell).collect() }
    }

    fn amount(&self, name: &str, series: &Series, [one, other]: [Statistic; 2]) -> AmountRow {
        let with = |value: String, spread: &str| format!("{value} {spread}").trim_end().to_owned();
        let cell = |variant| {
            let (first, of_first) = self.value(variant, series, one);
            let (second, of_second) = self.value(variant, series, other);
            // A count over windows of equal length spreads like its rate; a peak has no spread.
            let of_first = if of_second.is_empty() { of_first.as_str() } else { "" };
            format!("{}, {}", with(first, of_first), with(second, &of_second))
        };
        AmountRow { name: name.to_owned(), variants: self.variants().map(cell).collect() }
    }

    /// The centre of the repeats and their spread; for extremes the extreme of all repeats.
    fn value(&self, variant: usize, series: &Series, statistic: Statistic) -> (String, String) {
        let measure = self.analysis.measure(series, statistic);
        let estimate = self.analysis.estimate(self.condition, variant, &measure);
        match estimate.map(|estimate| &estimate.summary) {
            Some(Ok(summary)) => match statistic {
                Statistic::Min => (show(summary.min, measure.unit()), String::new()),
                Statistic::Max => (show(summary.max, measure.unit()), String::new()),
                _ => {
                    let spread =
                        summary.relative_sd().filter(|sd| *sd > 0.0).map(|sd| format!("± {:.1} %", sd * 100.0));
                    (show(summary.centre, measure.unit()), spread.unwrap_or_default())
                }
            },
            _ => (UNKNOWN.to_owned(), String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_leave_out_what_was_asked_for_least() {
        let names: Vec<String> = (0..MAX_REQUESTS + 2).map(|number| format!("GET /{number:02}")).collect();
        let counts = |last: u64| -> BTreeMap<&str, u64> {
            names.iter().map(|name| (name.as_str(), if name == "GET /51" { last } else { 5 })).collect()
        };
        assert_eq!(rarest(counts(5)), ["GET /50".to_owned(), "GET /51".to_owned()].into());
        assert_eq!(rarest(counts(9)), ["GET /49".to_owned(), "GET /50".to_owned()].into());
        assert!(rarest(counts(5).into_iter().take(MAX_REQUESTS).collect()).is_empty());
    }
}
