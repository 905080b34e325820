//! Judges whether a load passes the objective of its study, from its seconds as they pass.

use hdrhistogram::Histogram;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::objective::{Condition, Judged, Limit, Objective, Passed, Reading};
use plimsoll_model::record::{Interval, RecordedPhase, Subject, Tally, failed_of_all};
use plimsoll_model::units::Nanos;
use plimsoll_statistics::capacity::{values_to_show, values_to_weigh};
use plimsoll_statistics::{growth, mean, share_is_above};
use std::collections::BTreeMap;

/// Standard deviations of what is under way at the ends of a load, taken as a Poisson number, that may be unfinished.
const DEVIATIONS: f64 = 3.0;

/// The iterations after which a limit without a value stays without one: what one iteration in 1,000 does is missing in
/// so many with a probability of 0.005 %.
const MANY_ITERATIONS: u64 = 10_000;

/// Observes a load, and keeps what its judgement needs.
#[derive(Debug)]
pub(crate) struct ObjectiveWatch {
    objective: Objective,
    /// True for arrivals, which do not wait for replies.
    is_open: bool,
    window_seconds: i64,
    /// The tallies of the measure phase.
    measured: Measured,
    /// Iterations that ended in the measure phase, whichever phase scheduled them.
    finished: u64,
    /// Arrivals that were not finished at the end of each second of the measure phase.
    unfinished: Vec<f64>,
}

impl ObjectiveWatch {
    pub(crate) fn new(objective: &Objective, is_open: bool, measure: Nanos) -> ObjectiveWatch {
        ObjectiveWatch {
            objective: objective.clone(),
            is_open,
            window_seconds: measure.0.div_ceil(1_000_000_000) as i64,
            measured: Measured::default(),
            finished: 0,
            unfinished: Vec::new(),
        }
    }

    /// Adds a second.
    pub(crate) fn observe(&mut self, interval: &Interval) {
        let is_measured = (0..self.window_seconds).contains(&interval.second);
        if is_measured {
            let generator = &interval.generator;
            self.unfinished.push((generator.in_flight + generator.backlog) as f64);
        }
        for ((_, subject), tally) in &interval.tallies {
            if is_measured && *subject == Subject::Iteration {
                self.finished += tally.count();
            }
        }
        self.measured.add(interval);
    }

    /// The judgement. `died` says what became of a system that ended under the load.
    pub(crate) fn judge(&self, died: Option<&str>) -> Judged {
        let mut conditions: Vec<Judgement> = self.objective.limits.iter().map(|limit| self.limit(limit)).collect();
        conditions.push(self.errors());
        if self.is_open {
            conditions.extend([self.achieved(), self.backlog()]);
        }
        if let Some(died) = died {
            let reading = Reading { condition: Condition::Alive, value: None, bound: 1.0, held: false };
            conditions.push(Judgement { reading, share_of_needed: 1.0, strain: None, reason: Some(died.to_owned()) });
        }
        let share_of_needed = conditions.iter().map(|one| one.share_of_needed).fold(f64::INFINITY, f64::min);
        let passed = match conditions.iter().all(|one| one.reading.held) {
            false => Passed::No,
            true if share_of_needed < 1.0 => Passed::TooFew,
            true => Passed::Yes,
        };
        let has_none = conditions.iter().any(|one| !one.reading.held && one.strain.is_none());
        let strain = conditions.iter().filter_map(|one| one.strain).reduce(f64::max).filter(|_| !has_none);
        let reasons = conditions.iter().filter_map(|one| one.reason.clone()).collect();
        let to_weigh = self.objective.limits.iter().filter_map(|limit| self.share_to_weigh(limit));
        Judged {
            passed,
            readings: conditions.into_iter().map(|one| one.reading).collect(),
            reasons,
            share_of_needed,
            strain,
            share_to_weigh: to_weigh.reduce(f64::min),
        }
    }

    /// The values of a percentile, as a share of those with which what misses can be weighed.
    fn share_to_weigh(&self, Limit { measure, .. }: &Limit) -> Option<f64> {
        let Statistic::Percentile(p) = measure.statistic else { return None };
        Some(self.measured.durations(&measure.series).len() as f64 / values_to_weigh(1.0 - p / 100.0))
    }

    fn limit(&self, limit: &Limit) -> Judgement {
        let Limit { measure, at_most } = limit;
        let histogram = self.measured.durations(&measure.series);
        let (value, count) = (measure.statistic.of(&histogram), histogram.len());
        let share = match measure.statistic {
            Statistic::Percentile(p) => 1.0 - p / 100.0,
            Statistic::Max => 0.0,
            _ => 0.5,
        };
        let needed = values_to_show(share);
        let exceeds = value.is_some_and(|value| value > *at_most);
        // Of few values, one beyond the limit may be chance.
        let misses = histogram.count_between((at_most * 1e9) as u64 + 1, u64::MAX);
        let held = !(exceeds && (count >= needed || share_is_above(misses, count, share)));
        let reading = Reading { condition: Condition::Duration(measure.clone()), value, bound: *at_most, held };
        let reason = (!held).then(|| {
            let value = value.unwrap_or_default();
            format!("{measure} was {:.1} ms, above {:.1} ms", value * 1e3, at_most * 1e3)
        });
        let strain = (count > 0 && share > 0.0).then(|| misses as f64 / count as f64 / share);
        let strain = strain.filter(|_| matches!(measure.statistic, Statistic::Percentile(_)));
        Judgement { reading, share_of_needed: count as f64 / needed as f64, strain, reason }
    }

    fn errors(&self) -> Judgement {
        let bound = self.objective.errors;
        let [failed, all] = self.measured.failed_of_all();
        let value = (all > 0).then(|| failed as f64 / all as f64);
        let needed = if bound > 0.0 { values_to_show(bound) } else { 1 };
        let exceeds = value.is_some_and(|value| value > bound);
        let held = !(exceeds && (all >= needed || share_is_above(failed, all, bound)));
        let reason = (!held).then(|| {
            format!(
                "{failed} of {all} failed, {:.2} %, above {:.2} %",
                100.0 * value.unwrap_or_default(),
                bound * 100.0
            )
        });
        let reading = Reading { condition: Condition::Errors, value, bound, held };
        let strain = value.filter(|_| bound > 0.0).map(|value| value / bound);
        Judgement { reading, share_of_needed: all as f64 / needed as f64, strain, reason }
    }

    /// What was finished in the measure phase, as a share of what arrived in it. What is under way at its ends differs by
    /// chance, which makes a difference where few arrive.
    fn achieved(&self) -> Judgement {
        let arrived = self.measured.0.get(&Subject::Iteration).map_or(0, Tally::count);
        let bound = self.objective.achieved;
        let value = (arrived > 0).then(|| (self.finished as f64 / arrived as f64).min(1.0));
        let under_way = mean(&self.unfinished).unwrap_or_default();
        let missing = arrived as f64 - self.finished as f64;
        let held = value.is_none_or(|value| value >= bound) || missing <= DEVIATIONS * (2.0 * (under_way + 1.0)).sqrt();
        let reason = (!held).then(|| {
            let value = 100.0 * value.unwrap_or_default();
            format!("{value:.1} % of the arrivals were finished in the same time, below {:.1} %", bound * 100.0)
        });
        Judgement {
            reading: Reading { condition: Condition::Achieved, value, bound, held },
            share_of_needed: 1.0,
            strain: None,
            reason,
        }
    }

    fn backlog(&self) -> Judgement {
        let growth = growth(&self.unfinished, self.finished as f64);
        let reading = Reading {
            condition: Condition::Backlog,
            value: Some(growth.map_or(0.0, |growth| growth.share)),
            bound: 0.0,
            held: growth.is_none(),
        };
        let reason = growth.map(|growth| format!("unfinished work grew by {:.1} a second", growth.per_second));
        Judgement { reading, share_of_needed: 1.0, strain: None, reason }
    }
}

/// Requests, connections and iterations that were scheduled in some seconds of the measure phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured(BTreeMap<Subject, Tally>);

impl Measured {
    /// Adds a second.
    pub(crate) fn add(&mut self, interval: &Interval) {
        for ((phase, subject), tally) in &interval.tallies {
            let is_needed = matches!(subject, Subject::Iteration | Subject::Request(_) | Subject::Connect);
            if *phase == RecordedPhase::Measure && is_needed {
                self.0.entry(subject.clone()).or_default().merge(tally);
            }
        }
    }

    /// Adds other seconds.
    pub(crate) fn merge(&mut self, other: &Measured) {
        for (subject, tally) in &other.0 {
            self.0.entry(subject.clone()).or_default().merge(tally);
        }
    }

    /// The number of exchanges and iterations that failed, and the number of all.
    pub(crate) fn failed_of_all(&self) -> [u64; 2] {
        failed_of_all(&self.requests(), self.0.get(&Subject::Iteration))
    }

    /// The durations of a series.
    pub(crate) fn durations(&self, series: &Series) -> Histogram<u64> {
        let of = |subject: &Subject| self.0.get(subject).cloned().unwrap_or_default();
        let tally = match (series, series.named_subject()) {
            (_, Some(subject)) => of(&subject),
            (Series::IterationDuration, None) => of(&Subject::Iteration),
            (Series::ConnectDuration, None) => of(&Subject::Connect),
            (_, None) => self.requests(),
        };
        match series {
            Series::ResponseTime(_) => tally.response,
            Series::FirstByte(_) => tally.first_byte,
            _ => tally.service,
        }
    }

    fn requests(&self) -> Tally {
        let mut all = Tally::default();
        let requests = self.0.iter().filter(|(subject, _)| subject.is_request());
        requests.for_each(|(_, tally)| all.merge(tally));
        all
    }
}

/// The judgement of one condition.
struct Judgement {
    reading: Reading,
    share_of_needed: f64,
    /// The share of misses, over the share that may miss.
    strain: Option<f64>,
    /// Why it is broken.
    reason: Option<String>,
}

/// A sentence for each limit of which a load has shown nothing, although so many iterations ended and nothing was
/// broken: it would let every load pass.
pub(crate) fn limits_without_values(judged: &Judged, iterations: u64) -> Vec<String> {
    if judged.passed != Passed::TooFew || iterations < MANY_ITERATIONS {
        return Vec::new();
    }
    let without = judged.readings.iter().filter(|reading| reading.value.is_none());
    let message = |reading: &Reading| match &reading.condition {
        Condition::Duration(measure) => Some(format!(
            "no value for `{measure}`, which the objective limits, in {iterations} iterations; limit requests that more \
             iterations make"
        )),
        _ => None,
    };
    without.filter_map(message).collect()
}

/// True if a condition is broken by more than the generator's own lateness can explain.
pub(crate) fn broken_in_spite_of(judged: &Judged, lateness: Nanos) -> bool {
    judged.readings.iter().filter(|reading| !reading.held).any(|reading| match (&reading.condition, reading.value) {
        (Condition::Duration(Measure { series: Series::IterationDuration, .. }), _) => false,
        (Condition::Duration(_), Some(value)) => value - lateness.seconds() > reading.bound,
        (Condition::Errors | Condition::Alive, _) => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::ErrorKind;

    fn objective(errors: f64) -> Objective {
        let limit = |measure: &str, at_most| Limit { measure: measure.parse().expect("a measure"), at_most };
        Objective { limits: vec![limit("request_duration.p95", 0.1)], errors, achieved: 0.99 }
    }

    /// A second in which `count` requests took `ms` each, of which `failed` failed.
    fn second(second: i64, count: u64, ms: u64, failed: u64) -> Interval {
        let mut tally = Tally::default();
        tally.service.record_n(ms * 1_000_000, count).expect("in range");
        tally.response.record_n(ms * 1_000_000, count).expect("in range");
        if failed > 0 {
            tally.errors.insert(ErrorKind::Status, failed);
        }
        let subjects = [Subject::Iteration, Subject::Request("get".to_owned())];
        let tallies = subjects.map(|subject| ((RecordedPhase::Measure, subject), tally.clone())).into();
        Interval { second, tallies, ..Interval::default() }
    }

    fn judged(is_open: bool, seconds: &[Interval]) -> Judged {
        let mut watch = ObjectiveWatch::new(&objective(0.01), is_open, Nanos(10_000_000_000));
        seconds.iter().for_each(|second| watch.observe(second));
        watch.judge(None)
    }

    #[test]
    fn a_load_passes_where_every_limit_holds_and_enough_requests_show_it() {
        let enough: Vec<Interval> = (0..10).map(|number| second(number, 40, 50, 0)).collect();
        assert_eq!(judged(false, &enough).passed, Passed::Yes);
        let few = judged(false, &enough[..1]);
        assert_eq!(few.passed, Passed::TooFew);
        assert!((few.share_of_needed - 40.0 / 299.0).abs() < 1e-9, "errors of at most 1 % take 299");
    }

    #[test]
    fn a_broken_limit_is_named_with_what_was_found() {
        let slow: Vec<Interval> = (0..10).map(|number| second(number, 40, 150, 0)).collect();
        let judged = judged(false, &slow);
        assert_eq!((judged.passed, judged.reasons.len()), (Passed::No, 1));
        assert!(judged.reasons[0].starts_with("request_duration.p95 was 150"), "{:?}", judged.reasons);
        assert!(broken_in_spite_of(&judged, Nanos(20_000_000)));
        assert!(!broken_in_spite_of(&judged, Nanos(60_000_000)));
    }

    #[test]
    fn one_slow_or_failed_request_of_few_may_be_chance() {
        let mut seconds = vec![second(0, 20, 50, 0), second(1, 1, 500, 1)];
        assert_eq!(judged(false, &seconds).passed, Passed::TooFew, "1 of 21");
        seconds.push(second(2, 9, 500, 9));
        assert_eq!(judged(false, &seconds).passed, Passed::No, "10 of 30 are not");
    }

    #[test]
    fn failures_are_held_against_their_share() {
        let seconds: Vec<Interval> = (0..10).map(|number| second(number, 40, 50, u64::from(number < 5))).collect();
        let judged = judged(false, &seconds);
        assert_eq!(judged.passed, Passed::No);
        assert_eq!(judged.reasons, ["5 of 400 failed, 1.25 %, above 1.00 %"]);
    }

    #[test]
    fn open_load_must_be_finished() {
        let mut seconds: Vec<Interval> = (0..10).map(|number| second(number, 40, 50, 0)).collect();
        assert_eq!(judged(true, &seconds).passed, Passed::Yes);
        seconds.push(second(10, 4, 60, 0));
        assert_eq!(judged(true, &seconds).passed, Passed::Yes, "4 of 404 may be under way by chance");
        seconds[10] = second(10, 20, 60, 0);
        let late = judged(true, &seconds);
        assert_eq!(late.passed, Passed::No, "{late:?}");
        assert!(late.reasons[0].starts_with("95.2 % of the arrivals"), "{:?}", late.reasons);
        for (number, second) in (0..).zip(&mut seconds) {
            second.generator.backlog = 20 * number;
        }
        let reasons = judged(true, &seconds).reasons;
        assert!(reasons.iter().any(|one| one.starts_with("unfinished work grew by 20.0 a second")), "{reasons:?}");
    }

    #[test]
    fn a_limit_that_has_no_value_in_many_iterations_never_gets_one() {
        let mut objective = objective(0.01);
        let pay = Limit { measure: "request_duration:pay.p95".parse().expect("a measure"), at_most: 0.1 };
        objective.limits.push(pay);
        let judged = |count: u64, failed: u64| {
            let mut watch = ObjectiveWatch::new(&objective, false, Nanos(1_000_000_000));
            watch.observe(&second(0, count, 50, failed));
            limits_without_values(&watch.judge(None), count)
        };
        assert_eq!(judged(9_999, 0), [""; 0], "a rare request may still come");
        let pay = "no value for `request_duration:pay.p95`, which the objective limits, in 10000 iterations";
        let told = judged(10_000, 0);
        assert!(told.len() == 1 && told[0].starts_with(pay), "{told:?}");
        assert_eq!(judged(10_000, 5_000), [""; 0], "the load has failed by what it showed");
    }

    #[test]
    fn a_system_that_ends_breaks_the_objective() {
        let watch = ObjectiveWatch::new(&objective(0.0), false, Nanos(1_000_000_000));
        let judged = watch.judge(Some("`api` ended"));
        assert_eq!((judged.passed, judged.reasons), (Passed::No, vec!["`api` ended".to_owned()]));
    }
}
