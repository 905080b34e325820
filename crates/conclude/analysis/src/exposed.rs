//! The metrics that systems expose, over the time in which a load was measured.
//!
//! Counts grow from the start of a process: what came in a span is the difference between its ends. Where a count falls, the
//! process began anew, and what it has counted since then came too. A second without an answer is a gap: counts bridge it, and
//! levels leave it out. Several systems that have the same series count together, as instances of one service do. Libraries make
//! a counter with its labels when it first counts, such as that of errors at the first error: before, it was zero in each answer.

use crate::measure::values_needed;
use crate::quantity::{grouped, significant};
use crate::reason::OrReason;
use crate::samples;
use plimsoll_model::exposed::{MetricKind, MetricSample, full_name};
use plimsoll_model::measure::Statistic;
use plimsoll_model::result::{LoadSummary, TrialResult};
use plimsoll_model::words::and_list;
use plimsoll_statistics::{Buckets, mean, median};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub use plimsoll_statistics::BucketQuantile;

/// An end of a span is that of an answer at most this many seconds from it.
const NEAR: f64 = 1.5;

/// A number is known where answers cover this share of the time: what comes of less is that of another time.
const COVERED: f64 = 0.8;

/// The least answers within slices of a variant for a level in turns.
const LEAST_IN_SLICES: usize = 3;

/// The metrics of the systems of one variant on one start, on the clock of its load.
#[derive(Debug, Default)]
pub struct Exposed<'a> {
    /// By full name and system, in order of time.
    series: BTreeMap<String, BTreeMap<&'a str, Vec<Answer<'a>>>>,
    /// When the load was measured.
    windows: Vec<Range<f64>>,
    /// Where variants took turns, the slices of the variant.
    slices: Vec<Range<f64>>,
    /// The share of the time of the windows in which the variant was under load.
    share_of_time: f64,
}

/// A sample with its instant, in seconds from the start of the load's measure phase.
#[derive(Clone, Copy, Debug)]
struct Answer<'a> {
    at: f64,
    sample: &'a MetricSample,
    /// True for an answer before the series began, which had nothing of it: it has counted nothing. The sample is its first.
    is_before: bool,
}

impl Answer<'_> {
    fn value(&self) -> f64 {
        if self.is_before { 0.0 } else { self.sample.value }
    }

    fn sum(&self) -> f64 {
        if self.is_before { 0.0 } else { self.sample.sum.unwrap_or(0.0) }
    }

    fn buckets(&self) -> Option<Buckets> {
        let counts =
            self.sample.buckets.0.iter().map(|(bound, count)| (*bound, if self.is_before { 0.0 } else { *count }));
        Buckets::new(counts, self.sum())
    }
}

/// What came of a histogram or summary in some time, of all systems and labels together.
#[derive(Clone, Debug, Default)]
pub struct Came {
    /// The number of values.
    count: f64,
    /// Their sum.
    sum: f64,
    /// The values by buckets, a part for each system and label; of summaries none.
    parts: Vec<Buckets>,
}

/// The growth of a series in the measure phase, of all systems together.
#[derive(Default)]
struct Growth {
    /// Values, or units of a counter.
    count: f64,
    /// The sum of the values.
    sum: f64,
    /// The count per second between the answers at its ends.
    rate: f64,
}

impl<'a> Exposed<'a> {
    /// The metrics of the systems that took a load, which were under load for this share of its time: not all of it where
    /// variants took turns.
    #[must_use]
    pub fn of(trial: TrialResult<'a>, share_of_time: f64) -> Exposed<'a> {
        Exposed::of_series(trial, share_of_time, |_| true)
    }

    /// A single series of the study, to be read second by second.
    #[must_use]
    pub fn only(trial: TrialResult<'a>, series: &str) -> Exposed<'a> {
        Exposed::of_series(trial, 1.0, |name| name == series)
    }

    /// A single series of the study during one load of a search.
    #[must_use]
    pub fn only_during(trial: TrialResult<'a>, load: &LoadSummary, series: &str) -> Exposed<'a> {
        Exposed { windows: vec![samples::window_of(trial, load)], ..Exposed::only(trial, series) }
    }

    fn of_series(trial: TrialResult<'a>, share_of_time: f64, is_wanted: impl Fn(&str) -> bool) -> Exposed<'a> {
        let mut series: BTreeMap<(&str, &str), BTreeMap<&str, Vec<Answer<'_>>>> = BTreeMap::new();
        let mut answered: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (at, sample) in samples::metrics(trial) {
            let of_system = answered.entry(&sample.system).or_default();
            if of_system.last() != Some(&at) {
                of_system.push(at);
            }
            if is_wanted(&sample.series) {
                let systems = series.entry((&sample.series, &sample.label)).or_default();
                systems.entry(&sample.system).or_default().push(Answer { at, sample, is_before: false });
            }
        }
        for (system, answers) in series.values_mut().flatten() {
            add_those_before(answers, &answered[system]);
        }
        let series = series.into_iter().map(|((name, label), systems)| (full_name(name, label), systems)).collect();
        Exposed { series, windows: samples::counted_windows(trial), slices: samples::slices(trial), share_of_time }
    }

    /// The full names of the series, each with its kind.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, MetricKind)> {
        self.series.iter().filter_map(|(name, systems)| Some((name.as_str(), kind(systems)?)))
    }

    /// A statistic of a series over the measure phase.
    ///
    /// # Errors
    /// Why there is none.
    pub fn value(&self, name: &str, statistic: Statistic) -> OrReason<f64> {
        let kind = self.series.get(name).and_then(kind).ok_or_else(|| format!("no system exposed `{name}`"))?;
        match (kind, statistic) {
            (MetricKind::Gauge, Statistic::Avg | Statistic::Min | Statistic::Med | Statistic::Max) => {
                self.level(name, statistic)
            }
            (MetricKind::Counter | MetricKind::Histogram | MetricKind::Summary, Statistic::Count | Statistic::Rate) => {
                let rate = self.growth(name)?.rate / self.share_of_time;
                // The answers at the ends of the phase do not come at its ends to the millisecond.
                Ok(if statistic == Statistic::Count { rate * length(self.under_load()) } else { rate })
            }
            (MetricKind::Histogram | MetricKind::Summary, Statistic::Avg) => {
                let growth = self.growth(name)?;
                if growth.count > 0.0 { Ok(growth.sum / growth.count) } else { Err(NOTHING_CAME.to_owned()) }
            }
            (MetricKind::Histogram, Statistic::Percentile(p)) => {
                let (needed, found) = (values_needed(statistic).unwrap_or(0), self.growth(name)?.count);
                if found < needed as f64 {
                    let [needed, found] = [needed as f64, found.round()].map(grouped);
                    return Err(format!("{statistic} takes {needed} values, found {found}"));
                }
                let quantile = self.quantile(name, p / 100.0)?;
                quantile.interpolated.ok_or_else(|| match quantile.above {
                    Some(above) => format!("{statistic} lies in the last bucket, above {above}"),
                    None => format!("{statistic} lies in the only bucket"),
                })
            }
            (kind, _) => {
                let known = match kind {
                    MetricKind::Counter => &["count", "rate"][..],
                    MetricKind::Gauge => &["avg", "min", "med", "max"],
                    MetricKind::Histogram => &["avg", "p1 to p99.99", "count", "rate"],
                    MetricKind::Summary => &["avg", "count", "rate"],
                };
                let known: Vec<String> = known.iter().map(|one| (*one).to_owned()).collect();
                Err(format!("`{name}` is a {kind}, which has {}, and no {statistic}", and_list(&known)))
            }
        }
    }

    /// The quantile `q` (0 to 1) of a histogram over the measure phase, with its bucket.
    ///
    /// # Errors
    /// Why there is none.
    pub fn quantile(&self, name: &str, q: f64) -> OrReason<BucketQuantile> {
        let mut parts = Vec::new();
        for answers in self.answers(name) {
            for span in self.spans(answers) {
                parts.extend(buckets_in(span));
            }
        }
        let all = Buckets::together(&parts).ok_or("no answer has the buckets of the measure phase")?;
        all.quantile(q).ok_or_else(|| NOTHING_CAME.to_owned())
    }

    /// A series in each second in which all systems answered: the rate of a counter, the level of a gauge, the mean of
    /// the values of a histogram or summary. Where variants take turns, a second holds slices of several, so that there are no
    /// rates, and levels are those within slices.
    #[must_use]
    pub fn by_second(&self, name: &str) -> BTreeMap<i64, f64> {
        let Some((systems, kind)) = self.series.get(name).and_then(|systems| Some((systems, kind(systems)?))) else {
            return BTreeMap::new();
        };
        if kind == MetricKind::Gauge {
            return self.levels(systems);
        }
        if kind == MetricKind::Counter && !self.slices.is_empty() {
            return BTreeMap::new();
        }
        let mut growths: BTreeMap<i64, (usize, Growth)> = BTreeMap::new();
        for answers in systems.values() {
            for pair in answers.windows(2).filter(|pair| pair[1].at - pair[0].at < 2.0) {
                let (count, sum) = grown(pair);
                let (of, all) = growths.entry((pair[1].at - 0.5).floor() as i64).or_default();
                *of += 1;
                all.add(count, sum, pair[1].at - pair[0].at);
            }
        }
        let value = |(second, (of, growth)): (i64, (usize, Growth))| {
            let value = if kind == MetricKind::Counter { growth.rate } else { growth.sum / growth.count };
            let is_known = of == systems.len() && value.is_finite() && self.is_measured(second as f64 + 0.5);
            is_known.then_some((second, value))
        };
        growths.into_iter().filter_map(value).collect()
    }

    /// What came of all histograms and summaries together in each second at both of whose ends some system answered.
    #[must_use]
    pub fn came_by_second(&self) -> BTreeMap<i64, Came> {
        let mut seconds: BTreeMap<i64, Came> = BTreeMap::new();
        let answers = self.series.values().flat_map(BTreeMap::values);
        for pair in answers.flat_map(|answers| answers.windows(2)) {
            let second = (pair[1].at - 0.5).floor() as i64;
            let has_values = pair[1].sample.sum.is_some();
            if has_values && pair[1].at - pair[0].at < 2.0 && self.is_measured(second as f64 + 0.5) {
                let (count, sum) = grown(pair);
                seconds.entry(second).or_default().add(Came { count, sum, parts: buckets_in(pair) });
            }
        }
        seconds
    }

    /// The answers of each system.
    fn answers(&self, name: &str) -> impl Iterator<Item = &[Answer<'a>]> {
        self.series.get(name).into_iter().flat_map(|systems| systems.values().map(Vec::as_slice))
    }

    /// The answers of a system from the begin of each window to its end.
    fn spans<'s>(&'s self, answers: &'s [Answer<'a>]) -> impl Iterator<Item = &'s [Answer<'a>]> {
        self.windows.iter().filter_map(|window| {
            let first = near(answers, window.start).or_else(|| answers.iter().position(|one| one.at > window.start))?;
            let last = near(answers, window.end).or_else(|| answers.iter().rposition(|one| one.at < window.end))?;
            (last > first).then(|| &answers[first..=last])
        })
    }

    /// The growth in the measure phase, where the answers of each system cover it.
    fn growth(&self, name: &str) -> OrReason<Growth> {
        let mut growth = Growth::default();
        let all = length(&self.windows);
        for answers in self.answers(name) {
            let (mut count, mut sum, mut seconds) = (0.0, 0.0, 0.0);
            for span in self.spans(answers) {
                let (grown, of_values) = grown(span);
                (count, sum, seconds) =
                    (count + grown, sum + of_values, seconds + span[span.len() - 1].at - span[0].at);
            }
            if seconds < COVERED * all || seconds <= 0.0 {
                return Err(too_few(seconds, all));
            }
            growth.add(count, sum, seconds);
        }
        Ok(growth)
    }

    fn level(&self, name: &str, statistic: Statistic) -> OrReason<f64> {
        let levels = self.series.get(name).map(|systems| self.levels(systems)).unwrap_or_default();
        let values: Vec<f64> = levels.into_values().collect();
        let all: f64 = self.windows.iter().map(|window| (window.end - window.start).floor()).sum();
        match self.slices.len() {
            0 if (values.len() as f64) < COVERED * all => return Err(too_few(values.len() as f64, all)),
            1.. if values.len() < LEAST_IN_SLICES => {
                return Err(format!(
                    "{} answers lie within slices of the variant, and it takes {LEAST_IN_SLICES}",
                    values.len()
                ));
            }
            _ => {}
        }
        let value = match statistic {
            Statistic::Min => values.iter().copied().reduce(f64::min),
            Statistic::Max => values.iter().copied().reduce(f64::max),
            Statistic::Med => median(&values),
            _ => mean(&values),
        };
        value.ok_or_else(|| "no answer of the system lies in the measure phase".to_owned())
    }

    /// The level of a gauge in each second in which all systems answered under load: the sum over them.
    fn levels(&self, systems: &BTreeMap<&str, Vec<Answer<'_>>>) -> BTreeMap<i64, f64> {
        let under_load = self.under_load();
        // They are asked once a second, now and then a little late: how far from the last time tells for which second. (The first
        // time is that at which the system was ready.)
        let last = systems.values().filter_map(|answers| answers.last()).map(|answer| answer.at).reduce(f64::max);
        let last = last.unwrap_or(0.0);
        let second_of = |at: f64| (last.floor() + (at - last).round()) as i64;
        let mut seconds: BTreeMap<i64, BTreeMap<&str, f64>> = BTreeMap::new();
        for (system, answers) in systems {
            for answer in answers.iter().filter(|answer| under_load.iter().any(|span| span.contains(&answer.at))) {
                seconds.entry(second_of(answer.at)).or_default().insert(system, answer.value());
            }
        }
        let of_all = seconds.into_iter().filter(|(_, of_systems)| of_systems.len() == systems.len());
        of_all.map(|(second, of_systems)| (second, of_systems.values().sum())).collect()
    }

    /// When the variant was under load.
    fn under_load(&self) -> &[Range<f64>] {
        if self.slices.is_empty() { &self.windows } else { &self.slices }
    }

    fn is_measured(&self, at: f64) -> bool {
        self.windows.iter().any(|window| window.contains(&at))
    }
}

impl Came {
    /// Adds what came in another time.
    pub fn add(&mut self, other: Came) {
        (self.count, self.sum) = (self.count + other.count, self.sum + other.sum);
        self.parts.extend(other.parts);
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.count
    }

    /// The mean of the values; none without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// A percentile (0 to 100) of a histogram, interpolated within its bucket. None of fewer values than it takes, in a bucket
    /// without an end, and of summaries.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let needed = values_needed(Statistic::Percentile(p))?;
        let all = Buckets::together(&self.parts).filter(|all| all.count() >= needed as f64)?;
        all.quantile(p / 100.0)?.interpolated
    }
}

impl Growth {
    /// Adds what came of a system in so many seconds.
    fn add(&mut self, count: f64, sum: f64, seconds: f64) {
        (self.count, self.sum, self.rate) = (self.count + count, self.sum + sum, self.rate + count / seconds);
    }
}

/// The seconds of all spans together.
fn length(spans: &[Range<f64>]) -> f64 {
    spans.iter().map(|span| span.end - span.start).sum()
}

fn too_few(covered: f64, all: f64) -> String {
    format!("answers of the system cover {} s of {} s", significant(covered), significant(all))
}

const NOTHING_CAME: &str = "no value came in the measure phase";

/// The series that systems expose, by full name, each with the variants that do, and the number of these loads in which they did.
#[must_use]
pub fn exposing<'a>(trials: impl Iterator<Item = TrialResult<'a>>) -> BTreeMap<String, BTreeMap<usize, usize>> {
    let mut exposing: BTreeMap<String, BTreeMap<usize, usize>> = BTreeMap::new();
    for trial in trials {
        let names: BTreeSet<String> =
            samples::metrics(trial).map(|(_, sample)| full_name(&sample.series, &sample.label)).collect();
        for name in names {
            *exposing.entry(name).or_default().entry(trial.variant()).or_default() += 1;
        }
    }
    exposing
}

/// Adds the answers of a system in which a series that counts was not there yet.
fn add_those_before(answers: &mut Vec<Answer<'_>>, answered: &[f64]) {
    let Some(first) = answers.first().copied().filter(|first| first.sample.kind != MetricKind::Gauge) else { return };
    let before = answered.iter().take_while(|at| **at < first.at);
    let before: Vec<Answer<'_>> = before.map(|at| Answer { at: *at, is_before: true, ..first }).collect();
    answers.splice(0..0, before);
}

/// The kind of a series: that of its first answer.
fn kind(systems: &BTreeMap<&str, Vec<Answer<'_>>>) -> Option<MetricKind> {
    Some(systems.values().next()?.first()?.sample.kind)
}

/// The place of the answer that is nearest to an instant, if one is near it.
fn near(answers: &[Answer<'_>], at: f64) -> Option<usize> {
    let distance = |one: &Answer<'_>| (one.at - at).abs();
    let nearest = answers.iter().enumerate().min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)));
    nearest.filter(|(_, one)| distance(one) <= NEAR).map(|(place, _)| place)
}

/// How much the count of a system, and the sum of its values, grew from the first answer to the last.
fn grown(answers: &[Answer<'_>]) -> (f64, f64) {
    let mut growth = (0.0, 0.0);
    for pair in answers.windows(2) {
        let began_anew = pair[1].value() < pair[0].value();
        let [before, sum_before] = if began_anew { [0.0, 0.0] } else { [pair[0].value(), pair[0].sum()] };
        growth = (growth.0 + pair[1].value() - before, growth.1 + pair[1].sum() - sum_before);
    }
    growth
}

/// The buckets that came from the first answer to the last: a part for each life of the process.
fn buckets_in(answers: &[Answer<'_>]) -> Vec<Buckets> {
    let mut lives = answers.chunk_by(|one, next| one.value() <= next.value());
    let first = lives.next().and_then(|life| Some(life.last()?.buckets()?.since(&life.first()?.buckets()?)));
    first.into_iter().chain(lives.filter_map(|life| life.last()?.buckets())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{only_trial, start};
    use plimsoll_model::exposed::BucketCounts;
    use plimsoll_model::measure::{Measure, Series};
    use plimsoll_model::result::StartResult;

    fn sample(at: f64, system: &str, series: &str, kind: MetricKind, value: f64) -> MetricSample {
        MetricSample {
            at,
            system: system.to_owned(),
            variant: 0,
            series: series.to_owned(),
            label: String::new(),
            kind,
            value,
            sum: None,
            buckets: BucketCounts::default(),
        }
    }

    /// A start whose load was measured for 2 s, with these samples.
    fn with(metrics: Vec<MetricSample>) -> StartResult {
        StartResult { metrics, ..start(1.0) }
    }

    fn value(start: &StartResult, text: &str) -> OrReason<f64> {
        let measure: Measure = text.parse().expect("a measure");
        let Series::Exposed(name) = &measure.series else { panic!("{text}") };
        Exposed::of(only_trial(start), 1.0).value(name, measure.statistic)
    }

    #[test]
    fn an_answer_that_is_late_belongs_to_its_second() {
        let gauge = |at, value| sample(at, "web", "queue", MetricKind::Gauge, value);
        // Of the second before, a little late.
        let late = with(vec![gauge(0.001, 2.0), gauge(0.999, 4.0)]);
        assert_eq!(value(&late, "metric:queue.avg"), Ok(3.0));
    }

    #[test]
    fn counts_are_differences_and_processes_may_begin_anew() {
        let counter = |at, value| sample(at, "web", "requests", MetricKind::Counter, value);
        let steady = with(vec![counter(-0.9, 100.0), counter(0.1, 110.0), counter(1.1, 130.0), counter(2.1, 150.0)]);
        assert_eq!(value(&steady, "metric:requests.rate"), Ok(20.0));
        assert_eq!(value(&steady, "metric:requests.count"), Ok(40.0));
        let anew = with(vec![counter(0.0, 1e9), counter(1.0, 6.0), counter(2.0, 16.0)]);
        assert_eq!(value(&anew, "metric:requests.rate"), Ok(8.0));
        let gap = with(vec![counter(0.0, 10.0), counter(2.0, 50.0)]);
        assert_eq!(value(&gap, "metric:requests.rate"), Ok(20.0));
        let two = with(vec![
            counter(0.0, 10.0),
            counter(2.0, 50.0),
            MetricSample { system: "api".to_owned(), ..counter(0.0, 0.0) },
            MetricSample { system: "api".to_owned(), ..counter(2.0, 20.0) },
        ]);
        assert_eq!(value(&two, "metric:requests.rate"), Ok(30.0));
        let one = with(vec![counter(1.0, 50.0)]);
        assert_eq!(value(&one, "metric:requests.rate"), Err("answers of the system cover 0 s of 2.00 s".to_owned()));
        let no_median = value(&steady, "metric:requests.med").expect_err("a counter");
        assert_eq!(no_median, "`requests` is a counter, which has count and rate, and no med");
        assert_eq!(value(&steady, "metric:none.avg"), Err("no system exposed `none`".to_owned()));
    }

    #[test]
    fn a_counter_that_first_counts_under_load_was_zero_before() {
        let counter = |at, name, value| sample(at, "web", name, MetricKind::Counter, value);
        let requests = |at| counter(at, "requests", 10.0);
        // The first error makes the series.
        let failed = with(vec![
            requests(0.0),
            requests(1.0),
            counter(1.0, "failed", 40.0),
            requests(2.0),
            counter(2.0, "failed", 40.0),
        ]);
        assert_eq!(value(&failed, "metric:failed.count"), Ok(40.0));
        let late = with(vec![requests(0.0), requests(1.0), requests(2.0), counter(2.0, "failed", 3.0)]);
        assert_eq!(value(&late, "metric:failed.rate"), Ok(1.5));
        assert_eq!(
            Exposed::only(only_trial(&late), "failed").by_second("failed"),
            BTreeMap::from([(0, 0.0), (1, 3.0)])
        );
        // What counted before anybody asked, and a level, were not zero.
        let earlier = with(vec![counter(1.0, "failed", 40.0), counter(2.0, "failed", 40.0)]);
        assert!(value(&earlier, "metric:failed.count").is_err());
        let level = |at| sample(at, "web", "queue", MetricKind::Gauge, 4.0);
        assert!(value(&with(vec![requests(0.0), requests(1.0), level(1.0)]), "metric:queue.avg").is_err());
    }

    #[test]
    fn a_level_is_that_of_seconds_in_which_all_systems_answered() {
        let gauge = |at, system, value| sample(at, system, "goroutines", MetricKind::Gauge, value);
        let levels = with(vec![gauge(0.2, "web", 10.0), gauge(1.2, "web", 20.0), gauge(2.2, "web", 90.0)]);
        assert_eq!(value(&levels, "metric:goroutines.avg"), Ok(15.0));
        assert_eq!(value(&levels, "metric:goroutines.max"), Ok(20.0));
        let two = vec![gauge(0.2, "web", 10.0), gauge(1.2, "web", 20.0), gauge(0.2, "api", 5.0)];
        let gap = value(&with(two.clone()), "metric:goroutines.avg");
        assert_eq!(gap, Err("answers of the system cover 1.00 s of 2.00 s".to_owned()));
        let two = with([two, vec![gauge(1.2, "api", 7.0)]].concat());
        assert_eq!(value(&two, "metric:goroutines.avg"), Ok(21.0));
        assert!(value(&with(vec![gauge(9.0, "web", 1.0)]), "metric:goroutines.min").is_err());
    }

    #[test]
    fn histograms_have_means_and_quantiles_of_what_came() {
        // Percentiles take some hundred values.
        let histogram = |at, [fast, all]: [f64; 2], sum: f64| MetricSample {
            sum: Some(sum),
            buckets: BucketCounts(vec![(0.1, fast), (0.5, all), (f64::INFINITY, all)]),
            ..sample(at, "web", "api", MetricKind::Histogram, all)
        };
        let steady = with(vec![histogram(0.0, [50.0, 1e4], 900.0), histogram(2.0, [950.0, 1.1e4], 1100.0)]);
        assert_eq!(value(&steady, "metric:api.avg"), Ok(0.2));
        assert_eq!(value(&steady, "metric:api.rate"), Ok(500.0));
        assert!(value(&steady, "metric:api.med").is_err_and(|why| why.ends_with("and no med")), "`p50` cannot decide");
        let p95 = value(&steady, "metric:api.p95").expect("a quantile");
        assert!((p95 - 0.3).abs() < 1e-12, "{p95}");
        let exposed = Exposed::of(only_trial(&steady), 1.0);
        let bucket = exposed.quantile("api", 0.95).expect("a quantile");
        assert_eq!((bucket.above, bucket.at_most), (Some(0.1), 0.5));
        let anew = with(vec![
            histogram(0.0, [5000.0, 1e4], 2000.0),
            histogram(1.0, [6000.0, 1.1e4], 2100.0),
            histogram(2.0, [3000.0, 3000.0], 300.0),
        ]);
        assert_eq!(value(&anew, "metric:api.avg"), Ok(0.1));
        let quick = value(&anew, "metric:api.p99").expect("a quantile");
        assert!((quick - 0.099).abs() < 1e-12, "{quick}: 4,000 of at most 0.1 s came");
        let idle = with(vec![histogram(0.0, [5.0, 10.0], 1.0), histogram(2.0, [5.0, 10.0], 1.0)]);
        assert_eq!(value(&idle, "metric:api.avg"), Err(NOTHING_CAME.to_owned()));
        assert_eq!(value(&idle, "metric:api.p95"), Err("p95 takes 200 values, found 0".to_owned()));
    }

    #[test]
    fn seconds_have_rates_levels_and_means() {
        let counter = |at, value| sample(at, "web", "requests", MetricKind::Counter, value);
        let start = with(vec![counter(0.0, 0.0), counter(1.0, 10.0), counter(2.0, 40.0), counter(3.0, 99.0)]);
        let by_second = Exposed::of(only_trial(&start), 1.0).by_second("requests");
        assert_eq!(by_second, BTreeMap::from([(0, 10.0), (1, 30.0)]));
        let gap = with(vec![counter(0.0, 0.0), counter(2.0, 40.0)]);
        assert!(Exposed::of(only_trial(&gap), 1.0).by_second("requests").is_empty());
    }
}
