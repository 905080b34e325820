//! The value of a measure in one trial.
//!
//! Durations are taken over everything that the measure phase scheduled, its drain included, from
//! merged histograms. Rates count what ended inside the measure phase, whatever phase scheduled
//! it: so a slow end neither adds to a rate nor takes from it. Where the first seconds of the
//! measure phase are cut, because a trial of the condition was not steady yet, both count from the
//! cut on.

use crate::OrReason;
use crate::quantity::grouped;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::{ErrorKind, METRIC_SCALE, Metric, Part, Subject, Tally};
use plimsoll_model::result::{LoadSecond, TrialResult};
use plimsoll_model::sample::ProcessSample;
use plimsoll_model::trial::Trial;
use plimsoll_statistics::mean;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Values that must lie beyond a percentile for it to mean something: so many make p99 take 1,000
/// of them, and p95 200.
pub const BEYOND: f64 = 10.0;

/// TPC-C's new order, as the seconds of a trial name it.
const NEW_ORDER: &str = "request:new_order";

/// Reads measures from one trial; merges its requests once.
#[derive(Debug)]
pub struct Reader<'a> {
    result: &'a TrialResult,
    requests: Cow<'a, Tally>,
}

/// Which of a tally's histograms a duration is read from.
#[derive(Clone, Copy)]
enum Clock {
    Service,
    Response,
    FirstByte,
}

impl<'a> Reader<'a> {
    /// A reader of `result`.
    #[must_use]
    pub fn new(result: &'a TrialResult) -> Reader<'a> {
        Reader { result, requests: all_requests(&result.tallies) }
    }

    /// The value of `measure`, in its unit.
    ///
    /// # Errors
    /// Why the trial has none; for a percentile also that it rests on too few values.
    pub fn value(&self, measure: &Measure) -> OrReason<f64> {
        let value = self.read(measure)?;
        // A bundle is text: whatever stands in it, no report shows what is no number.
        if value.is_finite() { Ok(value) } else { Err("what was recorded is no number".to_owned()) }
    }

    fn read(&self, measure: &Measure) -> OrReason<f64> {
        let statistic = measure.statistic;
        if let Some((needed, found)) = self.shortage(measure) {
            let (needed, found) = (grouped(needed as f64), grouped(found as f64));
            return Err(format!("{statistic} takes {needed} {}, found {found}", noun(&measure.series)));
        }
        match &measure.series {
            Series::IterationDuration => self.duration(&Subject::Iteration, Clock::Service, statistic),
            Series::ConnectDuration => self.duration(&Subject::Connect, Clock::Service, statistic),
            Series::RequestDuration(name) => self.of_requests(name.as_ref(), Clock::Service, statistic),
            Series::ResponseTime(name) => self.of_requests(name.as_ref(), Clock::Response, statistic),
            Series::FirstByte(name) => self.of_requests(name.as_ref(), Clock::FirstByte, statistic),
            Series::PartDuration(part, name) => self.of_part(*part, name.as_ref(), statistic),
            Series::Iterations => self.how_many(statistic, |subject| subject == "iteration", |second| second.count),
            Series::Requests => self.how_many(statistic, is_request, |second| second.count),
            Series::Subrequests => self.how_many(statistic, is_subrequest, |second| second.count),
            Series::NewOrders => self.new_orders(statistic),
            Series::DataReceived => self.how_many(statistic, is_exchange, |second| second.bytes_in),
            Series::DataSent => self.how_many(statistic, is_exchange, |second| second.bytes_out),
            Series::Errors => self.errors(statistic),
            Series::Checks(name) => self.checks(name.as_ref()),
            Series::Custom(metric, name) => self.custom(*metric, name, statistic),
            Series::Cpu(system) => self.telemetry(system.as_deref(), statistic, |sample| sample.cpu_cores),
            Series::Memory(system) => self.telemetry(system.as_deref(), statistic, |sample| sample.resident as f64),
        }
    }

    /// TPC-C's new orders that were committed: a number, or a rate per minute.
    fn new_orders(&self, statistic: Statistic) -> OrReason<f64> {
        let is_new_order = |subject: &str| subject == NEW_ORDER;
        if !self.result.seconds.iter().any(|second| is_new_order(&second.subject)) {
            return Err("no new_order was recorded: that is a transaction of TPC-C".to_owned());
        }
        let committed = self.how_many(statistic, is_new_order, |second| second.count.saturating_sub(second.failed))?;
        Ok(if statistic == Statistic::Rate { committed * 60.0 } else { committed })
    }

    /// The trial.
    #[must_use]
    pub fn trial(&self) -> Trial {
        self.result.summary.trial
    }

    /// Whether it counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.result.summary.validity.counts()
    }

    /// Whether it is one of a variant under a condition.
    #[must_use]
    pub fn is_of(&self, condition: usize, variant: usize) -> bool {
        (self.trial().condition, self.trial().variant) == (condition, variant)
    }

    /// What the trial left behind.
    #[must_use]
    pub fn result(&self) -> &'a TrialResult {
        self.result
    }

    /// All its requests together.
    #[must_use]
    pub fn requests(&self) -> &Tally {
        &self.requests
    }

    /// What was recorded of `subject`, if anything was.
    #[must_use]
    pub fn tally(&self, subject: &Subject) -> Option<&'a Tally> {
        self.result.tallies.get(subject).filter(|tally| tally.count() > 0)
    }

    /// Iterations that failed though none of their exchanges did, by kind: a script threw, or a loop of a flow did not
    /// come to its end.
    #[must_use]
    pub fn failed_alone(&self) -> BTreeMap<ErrorKind, u64> {
        let iterations = self.tally(&Subject::Iteration).map(|tally| &tally.errors);
        let alone = iterations.into_iter().flatten().map(|(kind, failed)| {
            let with_an_exchange = self.requests.errors.get(kind).copied().unwrap_or_default();
            (*kind, failed.saturating_sub(with_an_exchange))
        });
        alone.filter(|(_, failed)| *failed > 0).collect()
    }

    /// How many durations a measure is taken from; none when it is not one of durations.
    #[must_use]
    pub fn sample_size(&self, series: &Series) -> Option<u64> {
        let named = |name: &Option<String>| match name {
            Some(name) => self.tally(&Subject::Request(name.clone())).map_or(0, Tally::count),
            None => self.requests.count(),
        };
        Some(match series {
            Series::IterationDuration => self.tally(&Subject::Iteration).map_or(0, Tally::count),
            Series::ConnectDuration => self.tally(&Subject::Connect).map_or(0, Tally::count),
            Series::RequestDuration(name) | Series::ResponseTime(name) | Series::FirstByte(name) => named(name),
            Series::PartDuration(part, name) => self.parts(*part, name.as_ref()).map(Tally::count).sum(),
            Series::Custom(metric, name) => self.tally(&Subject::Custom(*metric, name.clone())).map_or(0, Tally::count),
            _ => return None,
        })
    }

    /// How many values a percentile takes and how many it has, where those are too few and not none.
    #[must_use]
    pub fn shortage(&self, measure: &Measure) -> Option<(u64, u64)> {
        let needed = values_needed(measure.statistic)?;
        let found = self.sample_size(&measure.series)?;
        (found > 0 && found < needed).then_some((needed, found))
    }

    fn of_requests(&self, name: Option<&String>, clock: Clock, statistic: Statistic) -> OrReason<f64> {
        match name {
            Some(name) => self.duration(&Subject::Request(name.clone()), clock, statistic),
            None => duration_in(&self.requests, clock, statistic),
        }
    }

    fn of_part(&self, part: Part, name: Option<&String>, statistic: Statistic) -> OrReason<f64> {
        let all = merged(self.parts(part, name));
        if all.count() == 0 {
            let of = name.map(|name| format!(" of {name}")).unwrap_or_default();
            return Err(format!("no {} was timed apart{of}", part.name()));
        }
        duration_in(&all, Clock::Service, statistic)
    }

    /// What was recorded of a part: of the step of that name, or of all.
    fn parts(&self, part: Part, name: Option<&String>) -> impl Iterator<Item = &'a Tally> {
        let is_meant = move |subject: &Subject| match subject {
            Subject::Part(one, step) => *one == part && name.is_none_or(|name| name == step),
            _ => false,
        };
        self.result.tallies.iter().filter(move |(subject, _)| is_meant(subject)).map(|(_, tally)| tally)
    }

    fn duration(&self, subject: &Subject, clock: Clock, statistic: Statistic) -> OrReason<f64> {
        let tally = self.tally(subject).ok_or_else(|| format!("no {subject} was recorded"))?;
        duration_in(tally, clock, statistic)
    }

    fn how_many(
        &self,
        statistic: Statistic,
        of: impl Fn(&str) -> bool,
        amount: impl Fn(&LoadSecond) -> u64,
    ) -> OrReason<f64> {
        let window = self.result.counted_seconds();
        if window <= 0.0 {
            return Err("nothing was measured".to_owned());
        }
        let counted = self.result.seconds.iter().filter(|row| self.result.counts_second(row.second));
        let all: u64 = counted.filter(|row| of(&row.subject)).map(amount).sum();
        match statistic {
            Statistic::Rate => Ok(all as f64 / window),
            _ => Ok(all as f64),
        }
    }

    /// What failed: exchanges, and iterations that did so by themselves.
    fn errors(&self, statistic: Statistic) -> OrReason<f64> {
        let alone: u64 = self.failed_alone().values().sum();
        let failed = (self.requests.failed() + alone) as f64;
        let all = (self.requests.count() + alone) as f64;
        match statistic {
            Statistic::Ratio if all > 0.0 => Ok(failed / all),
            Statistic::Ratio => Err("no exchange ended".to_owned()),
            _ => Ok(failed),
        }
    }

    /// The share of the checks of a script that held: of one of them, or of all.
    fn checks(&self, name: Option<&String>) -> OrReason<f64> {
        let is_meant = |subject: &Subject| match subject {
            Subject::Check(check) => name.is_none_or(|name| name == check),
            _ => false,
        };
        let tallies = self.result.tallies.iter().filter(|(subject, _)| is_meant(subject)).map(|(_, tally)| tally);
        let (all, failed) = tallies.fold((0, 0), |(all, failed), tally| (all + tally.count(), failed + tally.failed()));
        if all == 0 {
            return Err("no check was made".to_owned());
        }
        Ok(1.0 - failed as f64 / all as f64)
    }

    /// A metric of a script's own.
    fn custom(&self, metric: Metric, name: &str, statistic: Statistic) -> OrReason<f64> {
        let subject = Subject::Custom(metric, name.to_owned());
        let tally = self.tally(&subject).ok_or_else(|| format!("the script recorded no {subject}"))?;
        let sum = || tally.service.mean() * tally.count() as f64 / METRIC_SCALE;
        match (metric, statistic) {
            (Metric::Counter, Statistic::Rate) => match self.result.counted_seconds() {
                window if window > 0.0 => Ok(sum() / window),
                _ => Err("nothing was measured".to_owned()),
            },
            (Metric::Counter, _) => Ok(sum()),
            (Metric::Rate, _) => Ok(1.0 - tally.failed() as f64 / tally.count() as f64),
            (Metric::Gauge | Metric::Trend, _) => {
                Ok(duration_in(tally, Clock::Service, statistic)? * 1e9 / METRIC_SCALE)
            }
        }
    }

    fn telemetry(
        &self,
        system: Option<&str>,
        statistic: Statistic,
        of: impl Fn(&ProcessSample) -> f64,
    ) -> OrReason<f64> {
        let samples = samples_by_second(self.result, system, of).into_iter();
        let values: Vec<f64> =
            samples.filter(|(second, _)| self.result.counts_second(*second)).map(|(_, value)| value).collect();
        let none = || "no sample lies in the measure phase".to_owned();
        match statistic {
            Statistic::Max => values.iter().copied().reduce(f64::max).ok_or_else(none),
            _ => mean(&values).ok_or_else(none),
        }
    }
}

/// What `of` gives for each second of the measure phase: the sum over systems, or `system` alone.
///
/// A sample tells of the second that ends with it, so its middle has to lie in the window. Of a
/// system's samples in the same second the one nearest its end stands for it: a trial that ends
/// between two seconds has a last sample close behind the one before.
#[must_use]
pub fn samples_by_second(
    result: &TrialResult,
    system: Option<&str>,
    of: impl Fn(&ProcessSample) -> f64,
) -> BTreeMap<i64, f64> {
    let window = result.summary.window.seconds();
    let mut nearest: BTreeMap<(i64, &str), &ProcessSample> = BTreeMap::new();
    for sample in result.processes.iter().filter(|sample| system.is_none_or(|name| sample.system == name)) {
        let middle = sample.at - 0.5;
        if !(0.0..window).contains(&middle) {
            continue;
        }
        let second = middle.floor() as i64;
        let from_end = |sample: &ProcessSample| (sample.at - (second + 1) as f64).abs();
        let known = nearest.entry((second, &sample.system)).or_insert(sample);
        if from_end(sample) < from_end(known) {
            *known = sample;
        }
    }
    let mut sums = BTreeMap::new();
    for ((second, _), sample) in nearest {
        *sums.entry(second).or_default() += of(sample);
    }
    sums
}

/// How many values a percentile takes: so many that [`BEYOND`] of them lie beyond it.
pub(crate) fn values_needed(statistic: Statistic) -> Option<u64> {
    match statistic {
        Statistic::Percentile(p) => Some((BEYOND / (1.0 - p.max(100.0 - p) / 100.0)).round() as u64),
        _ => None,
    }
}

/// What the values of a series of durations are taken from.
fn noun(series: &Series) -> &'static str {
    match series {
        Series::IterationDuration => "iterations",
        Series::ConnectDuration => "connections",
        Series::PartDuration(part, _) if *part != Part::Subrequest => "operations",
        Series::Custom(..) => "values",
        _ => "requests",
    }
}

fn is_request(subject: &str) -> bool {
    subject.starts_with("request:")
}

fn is_subrequest(subject: &str) -> bool {
    subject.starts_with("subrequest:")
}

/// What moves bytes: an iteration only contains what does.
fn is_exchange(subject: &str) -> bool {
    is_request(subject) || subject == "connect"
}

fn all_requests(tallies: &BTreeMap<Subject, Tally>) -> Cow<'_, Tally> {
    let requests: Vec<&Tally> =
        tallies.iter().filter(|(subject, _)| matches!(subject, Subject::Request(_))).map(|(_, tally)| tally).collect();
    match requests[..] {
        [one] => Cow::Borrowed(one),
        _ => Cow::Owned(merged(requests)),
    }
}

/// Tallies together.
pub(crate) fn merged<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    let mut merged = Tally::default();
    tallies.into_iter().for_each(|tally| merged.merge(tally));
    merged
}

fn duration_in(tally: &Tally, clock: Clock, statistic: Statistic) -> OrReason<f64> {
    let (histogram, none) = match clock {
        Clock::Service => (&tally.service, "no request was recorded"),
        Clock::Response => (&tally.response, "there is no response time in closed load"),
        Clock::FirstByte => (&tally.first_byte, "no first byte was recorded"),
    };
    if histogram.is_empty() {
        return Err(none.to_owned());
    }
    let nanoseconds = match statistic {
        Statistic::Avg => histogram.mean(),
        Statistic::Min => histogram.min() as f64,
        Statistic::Max => histogram.max() as f64,
        Statistic::Percentile(p) => histogram.value_at_quantile(p / 100.0) as f64,
        _ => histogram.value_at_quantile(0.5) as f64,
    };
    Ok(nanoseconds / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{trial, with_second};
    use plimsoll_model::record::ErrorKind;
    use plimsoll_model::units::Nanos;
    use proptest::prelude::*;

    fn value(result: &TrialResult, measure: &str) -> OrReason<f64> {
        Reader::new(result).value(&measure.parse().expect("a measure"))
    }

    #[test]
    fn durations_come_from_the_histograms() {
        let result = trial(1.0); // 1, 2, … 100 ms
        for (measure, expected) in [
            ("request_duration.min", 0.001),
            ("request_duration.med", 0.050),
            ("request_duration.p95", 0.095),
            ("request_duration.max", 0.100),
            ("iteration_duration.avg", 0.0505),
        ] {
            let found = value(&result, measure).expect(measure);
            assert!((found / expected - 1.0).abs() < 0.002, "{measure}: {found} instead of {expected}");
        }
    }

    #[test]
    fn a_percentile_takes_ten_values_beyond_it() {
        let result = trial(1.0); // 1,000 iterations of one call
        for (measure, expected) in [
            ("request_duration.p99", Ok(())),
            ("request_duration.p99.9", Err("p99.9 takes 10,000 requests, found 1,000")),
            ("iteration_duration.p99.5", Err("p99.5 takes 2,000 iterations, found 1,000")),
            ("request_duration:call.p1", Ok(())),
            ("connect_duration.p95", Err("no connect was recorded")),
            ("request_duration.max", Ok(())),
        ] {
            assert_eq!(value(&result, measure).map(|_| ()), expected.map_err(str::to_owned), "{measure}");
        }
        let mut few = trial(1.0);
        few.tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests").service.clear();
        few.tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests").service.record(9).expect("1");
        assert_eq!(value(&few, "request_duration.p1"), Err("p1 takes 1,000 requests, found 1".to_owned()));
    }

    #[test]
    fn what_lies_before_the_cut_counts_for_nothing() {
        let mut result = trial(1.0);
        result.summary.window = Nanos(4_500_000_000);
        result.cut = 2;
        result.seconds.clear();
        for (second, count) in [(0, 1000), (1, 1000), (2, 30), (3, 50), (4, 20), (5, 7)] {
            with_second(&mut result, second, count);
        }
        let sample = |at: f64, resident| ProcessSample { at, resident, ..ProcessSample::default() };
        result.processes = vec![sample(1.0, 90), sample(2.0, 80), sample(3.0, 10), sample(4.0, 20)];
        assert_eq!(value(&result, "iterations.count"), Ok(100.0));
        assert_eq!(value(&result, "iterations.rate"), Ok(40.0), "over the two and a half seconds that are left");
        assert_eq!(value(&result, "memory.max"), Ok(20.0));
        result.cut = 5;
        assert_eq!(value(&result, "iterations.rate"), Err("nothing was measured".to_owned()));
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        let mut result = trial(1.0);
        let sample = |cpu_cores| ProcessSample { at: 1.0, cpu_cores, ..ProcessSample::default() };
        for cpu_cores in [f64::NAN, f64::INFINITY] {
            result.processes = vec![sample(cpu_cores)];
            assert_eq!(value(&result, "cpu.max"), Err("what was recorded is no number".to_owned()));
        }
    }

    #[test]
    fn rates_count_what_ended_inside_the_window() {
        let mut result = trial(1.0); // a window of 2 s
        result.seconds.clear();
        for (second, count) in [(-1, 1000), (0, 30), (1, 50), (2, 7)] {
            with_second(&mut result, second, count);
        }
        assert_eq!(value(&result, "iterations.rate"), Ok(40.0));
        assert_eq!(value(&result, "iterations.count"), Ok(80.0));
        assert_eq!(value(&result, "data_sent.rate"), Ok(40.0 * 10.0));
    }

    #[test]
    fn new_orders_are_those_that_were_committed_in_a_minute() {
        let mut result = trial(1.0); // a window of 2 s
        assert_eq!(
            value(&result, "new_orders.rate"),
            Err("no new_order was recorded: that is a transaction of TPC-C".to_owned())
        );
        for (second, step, count, failed) in
            [(-1, "new_order", 90, 0), (0, "new_order", 10, 2), (1, "new_order", 9, 0), (1, "new_order_rollback", 5, 0)]
        {
            let subject = format!("request:{step}");
            result.seconds.push(LoadSecond { second, subject, count, failed, ..LoadSecond::default() });
        }
        assert_eq!(value(&result, "new_orders.count"), Ok(17.0), "neither failed ones nor those rolled back by intent");
        assert_eq!(value(&result, "new_orders.rate"), Ok(17.0 / 2.0 * 60.0));
    }

    #[test]
    fn samples_of_one_system_in_a_second_are_never_added() {
        for (samples, expected) in [
            (&[("a", 1.0, 5), ("a", 2.0, 7)][..], &[(0, 5.0), (1, 7.0)][..]),
            (&[("a", 1.001, 5), ("a", 1.9985, 7), ("a", 2.36, 9)], &[(0, 5.0), (1, 7.0)]),
            (&[("a", 1.6, 5), ("a", 2.1, 7)], &[(1, 7.0)]),
            (&[("a", 1.001, 5), ("b", 0.949, 2), ("b", 1.3, 3)], &[(0, 7.0)]),
            (&[("a", 0.4, 5), ("a", 3.2, 7)], &[]),
        ] {
            let mut result = trial(1.0);
            result.summary.window = Nanos(2_400_000_000);
            result.processes = samples
                .iter()
                .map(|&(system, at, resident)| ProcessSample {
                    at,
                    system: system.to_owned(),
                    resident,
                    ..ProcessSample::default()
                })
                .collect();
            let sums = samples_by_second(&result, None, |sample| sample.resident as f64);
            assert_eq!(sums, expected.iter().copied().collect(), "{samples:?}");
        }
    }

    #[test]
    fn telemetry_adds_systems_and_keeps_to_the_window() {
        let mut result = trial(1.0);
        let sample = |at: f64, system: &str, cpu_cores: f64| ProcessSample {
            at,
            system: system.to_owned(),
            cpu_cores,
            ..ProcessSample::default()
        };
        result.processes = vec![
            sample(0.0, "web", 9.0),
            sample(1.0, "web", 0.5),
            sample(1.0, "base", 0.25),
            sample(2.0, "web", 0.7),
            sample(2.0, "base", 0.25),
            sample(3.0, "web", 9.0),
        ];
        assert!((value(&result, "cpu.avg").expect("samples") - 0.85).abs() < 1e-12);
        assert!((value(&result, "cpu.max").expect("samples") - 0.95).abs() < 1e-12);
        assert!((value(&result, "cpu:base.avg").expect("samples") - 0.25).abs() < 1e-12);
        assert_eq!(value(&result, "cpu:none.avg"), Err("no sample lies in the measure phase".to_owned()));
    }

    #[test]
    fn what_is_missing_says_why() {
        let result = trial(1.0);
        assert_eq!(value(&result, "response_time.p95"), Err("there is no response time in closed load".to_owned()));
        assert_eq!(value(&result, "connect_duration.p95"), Err("no connect was recorded".to_owned()));
        assert_eq!(value(&result, "request_duration:other.p95"), Err("no request:other was recorded".to_owned()));
    }

    #[test]
    fn parts_are_read_by_step_or_all_together() {
        let mut result = trial(1.0);
        for (step, milliseconds) in [("write", 2), ("copy", 4)] {
            let mut tally = Tally::default();
            tally.service.record_n(milliseconds * 1_000_000, 30).expect("in range");
            result.tallies.insert(Subject::Part(Part::Sync, step.to_owned()), tally);
            let subject = format!("subrequest:{step}");
            result.seconds.push(LoadSecond { second: 0, subject, count: 30, ..LoadSecond::default() });
        }
        for (measure, expected) in
            [("sync_duration:write.avg", 0.002), ("sync_duration.avg", 0.003), ("sync_duration.max", 0.004)]
        {
            let found = value(&result, measure).expect(measure);
            assert!((found / expected - 1.0).abs() < 0.002, "{measure}: {found} instead of {expected}");
        }
        assert_eq!(value(&result, "subrequests.rate"), Ok(30.0));
        assert_eq!(value(&result, "requests.count"), Ok(100.0), "what a request consists of is not counted again");
        assert_eq!(value(&result, "open_duration:write.med"), Err("no open was timed apart of write".to_owned()));
        assert_eq!(value(&result, "sync_duration:write.p95"), Err("p95 takes 200 operations, found 30".to_owned()));
    }

    #[test]
    fn what_a_script_checks_and_counts_is_read_by_name() {
        let mut result = trial(1.0); // a window of 2 s
        let tally = |values: &[f64], failed: u64| {
            let mut tally = Tally::default();
            for value in values {
                tally.service.record((value * METRIC_SCALE) as u64).expect("in range");
            }
            tally.errors.extend((failed > 0).then_some((ErrorKind::Check, failed)));
            tally
        };
        let check = |name: &str| Subject::Check(name.to_owned());
        let custom = |metric, name: &str| Subject::Custom(metric, name.to_owned());
        result.tallies.extend([
            (check("status is 200"), tally(&[0.0; 8], 2)),
            (check("fast: yes"), tally(&[0.0; 2], 2)),
            (custom(Metric::Counter, "orders"), tally(&[1.0, 3.0, 6.0], 0)),
            (custom(Metric::Rate, "in time"), tally(&[1.0, 0.0, 1.0, 1.0], 1)),
            (custom(Metric::Trend, "wait"), tally(&[2.5, 7.5], 0)),
        ]);
        for (measure, expected) in [
            ("checks.ratio", 0.6),
            ("checks:status is 200.ratio", 0.75),
            ("counter:orders.count", 10.0),
            ("counter:orders.rate", 5.0),
            ("rate:in time.ratio", 0.75),
            ("trend:wait.avg", 5.0),
            ("trend:wait.max", 7.5),
        ] {
            let found = value(&result, measure).expect(measure);
            assert!((found / expected - 1.0).abs() < 0.002, "{measure}: {found} instead of {expected}");
        }
        assert_eq!(value(&result, "trend:wait.p95"), Err("p95 takes 200 values, found 2".to_owned()));
        assert_eq!(value(&result, "checks:none.ratio"), Err("no check was made".to_owned()));
        assert_eq!(value(&result, "gauge:none.max"), Err("the script recorded no gauge:none".to_owned()));
    }

    #[test]
    fn errors_are_a_share_of_all_exchanges() {
        let mut result = trial(1.0);
        let tally = result.tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests");
        tally.errors.insert(ErrorKind::Timeout, 5);
        assert_eq!(value(&result, "errors.ratio"), Ok(0.005));
        assert_eq!(value(&result, "errors.count"), Ok(5.0));
    }

    #[test]
    fn iterations_that_fail_by_themselves_are_errors_too() {
        let mut result = trial(1.0);
        let failed = |result: &mut TrialResult, subject: Subject, kind, failed| {
            let tally = result.tallies.get_mut(&subject).expect("it is there");
            tally.errors.insert(kind, failed);
        };
        failed(&mut result, Subject::Request("call".to_owned()), ErrorKind::Timeout, 5);
        failed(&mut result, Subject::Iteration, ErrorKind::Timeout, 5);
        assert_eq!(value(&result, "errors.count"), Ok(5.0), "an exchange that fails takes its iteration along");
        failed(&mut result, Subject::Iteration, ErrorKind::Script, 20);
        assert_eq!(value(&result, "errors.count"), Ok(25.0));
        assert_eq!(value(&result, "errors.ratio"), Ok(25.0 / 1020.0));
    }

    proptest! {
        #[test]
        fn the_order_of_merging_does_not_matter(
            first in prop::collection::vec(1_u64..10_000_000_000, 1..40),
            second in prop::collection::vec(1_u64..10_000_000_000, 1..40),
        ) {
            let tally = |values: &[u64]| {
                let mut tally = Tally::default();
                values.iter().for_each(|value| tally.service.record(*value).expect("in range"));
                tally
            };
            let named = |names: [&str; 2]| {
                let mut result = trial(1.0);
                result.tallies = [(names[0], tally(&first)), (names[1], tally(&second))]
                    .into_iter()
                    .map(|(name, tally)| (Subject::Request(name.to_owned()), tally))
                    .collect();
                result
            };
            for measure in ["request_duration.med", "request_duration.avg", "request_duration.max"] {
                let forward = value(&named(["a", "b"]), measure).expect("requests");
                let backward = value(&named(["b", "a"]), measure).expect("requests");
                prop_assert!((forward - backward).abs() <= forward * 1e-12);
            }
        }
    }
}
