//! The value of a measure in one trial.
//!
//! Durations cover everything that the measure phase scheduled, its drain included, from merged
//! histograms. Rates count what ended inside the measure phase, whichever phase scheduled it, so a
//! slow end neither adds to a rate nor takes from it. Where the first seconds of the measure phase
//! are cut, because a trial of the condition was not steady yet, both start at the cut.

#[cfg(test)]
mod tests;

use crate::exposed::Exposed;
use crate::quantity::grouped;
use crate::reason::OrReason;
use crate::samples;
use crate::search;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::{ErrorKind, METRIC_SCALE, Metric, Part, Subject, Tally, failed_alone, failed_of_all};
use plimsoll_model::result::{LoadResult, LoadSecond, LoadSummary, TrialResult};
use plimsoll_model::sample::ProcessSample;
use plimsoll_model::sql::NEW_ORDER;
use plimsoll_statistics::mean;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The least number of values beyond a percentile for it to be meaningful: p99 then takes 1,000
/// values, p95 takes 200.
pub const MIN_VALUES_BEYOND: f64 = 10.0;

/// Reads measures from one trial; merges its requests once.
#[derive(Debug)]
pub struct TrialReader<'a> {
    trial: TrialResult<'a>,
    requests: Cow<'a, Tally>,
    /// The metrics that its systems expose.
    exposed: Exposed<'a>,
}

/// The histogram of a tally that a duration is read from.
#[derive(Clone, Copy)]
enum Clock {
    Service,
    Response,
    FirstByte,
}

impl<'a> TrialReader<'a> {
    /// Prepares to read `trial`.
    #[must_use]
    pub fn new(trial: TrialResult<'a>) -> TrialReader<'a> {
        let exposed = Exposed::of(trial, share_of_time(trial));
        TrialReader { trial, requests: all_requests(&trial.load.tallies), exposed }
    }

    /// Prepares to read a slice of a load, in which what systems expose is not read: they are asked once a second.
    pub(crate) fn of_slice(slice: TrialResult<'a>) -> TrialReader<'a> {
        TrialReader { trial: slice, requests: all_requests(&slice.load.tallies), exposed: Exposed::default() }
    }

    /// The value of `measure`, in its unit.
    ///
    /// # Errors
    /// Why the trial has none; for a percentile also that it rests on too few values.
    pub fn value(&self, measure: &Measure) -> OrReason<f64> {
        let value = self.read(measure)?;
        // A bundle is text and may hold anything; a report never shows a value that is not finite.
        if value.is_finite() { Ok(value) } else { Err("what was recorded is no number".to_owned()) }
    }

    fn read(&self, measure: &Measure) -> OrReason<f64> {
        let statistic = measure.statistic;
        if let Some((needed, found)) = self.shortage(measure) {
            let (needed, found) = (grouped(needed as f64), grouped(found as f64));
            return Err(format!("{statistic} takes {needed} {}, found {found}", noun_of_values(&measure.series)));
        }
        match &measure.series {
            Series::IterationDuration => self.duration(&Subject::Iteration, Clock::Service, statistic),
            Series::ConnectDuration => self.duration(&Subject::Connect, Clock::Service, statistic),
            Series::RequestDuration(name) => self.of_requests(name.as_ref(), Clock::Service, statistic),
            Series::ResponseTime(name) => self.of_requests(name.as_ref(), Clock::Response, statistic),
            Series::FirstByte(name) => self.of_requests(name.as_ref(), Clock::FirstByte, statistic),
            Series::PartDuration(part, name) => self.of_part(*part, name.as_ref(), statistic),
            Series::Iterations => {
                self.how_many(statistic, |subject| *subject == Subject::Iteration, |second| second.count)
            }
            Series::Requests => self.how_many(statistic, Subject::is_request, |second| second.count),
            Series::Subrequests => self.how_many(statistic, is_subrequest, |second| second.count),
            Series::Deliveries => self.how_many(statistic, is_delivery, |second| second.count - second.failed),
            Series::LostDeliveries => self.lost_deliveries(statistic),
            Series::Capacity => search::value(self.load()),
            Series::ElapsedTime => self.elapsed_time(),
            Series::NewOrders => self.new_orders(statistic),
            Series::DataReceived => self.how_many(statistic, is_exchange, |second| second.bytes_in),
            Series::DataSent => self.how_many(statistic, is_exchange, |second| second.bytes_out),
            Series::Errors => self.errors(statistic),
            Series::FailedIterations => self.failed_iterations(statistic),
            Series::Checks(name) => self.checks(name.as_ref()),
            Series::Custom(metric, name) => self.custom(*metric, name, measure),
            Series::Exposed(name) => self.exposed().value(name, statistic),
            Series::Cpu(system) => {
                let of = |statistic| self.telemetry(system.as_deref(), statistic, |sample| sample.cpu_cores);
                let share = share_of_time(self.trial);
                if statistic == Statistic::Max && share < 1.0 {
                    // A second may be that of other variants in part. So the peak is at least the mean under load.
                    return Ok(of(Statistic::Max)?.max(of(Statistic::Avg)? / share));
                }
                Ok(of(statistic)? / share)
            }
            Series::Memory(system) => self.telemetry(system.as_deref(), statistic, |sample| sample.resident as f64),
        }
    }

    /// How long all iterations took; nothing where they had not ended when the time was over.
    fn elapsed_time(&self) -> OrReason<f64> {
        let LoadSummary { timing, load, .. } = &self.load().summary;
        if Duration::from(timing.window) >= load.lengths.measure {
            return Err("the time was over (`load.duration`) before all iterations were done".to_owned());
        }
        Ok(timing.window.seconds())
    }

    /// Committed new orders of TPC-C: a number, or a rate per minute.
    fn new_orders(&self, statistic: Statistic) -> OrReason<f64> {
        let is_new_order = |subject: &Subject| subject.is_request_named(NEW_ORDER);
        if !self.load().seconds.iter().any(|second| is_new_order(&second.subject)) {
            return Err("no new_order was recorded: that is a transaction of TPC-C".to_owned());
        }
        let committed = self.how_many(statistic, is_new_order, |second| second.count.saturating_sub(second.failed))?;
        Ok(if statistic == Statistic::Rate { committed * 60.0 } else { committed })
    }

    /// The load with its start.
    #[must_use]
    pub fn trial(&self) -> TrialResult<'a> {
        self.trial
    }

    /// The records of the load.
    #[must_use]
    pub fn load(&self) -> &'a LoadResult {
        self.trial.load
    }

    /// True if the load counts, with its start.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.trial.counts()
    }

    /// True if the trial is one of this variant under this condition.
    #[must_use]
    pub fn is_of(&self, condition: usize, variant: usize) -> bool {
        (self.trial.condition(), self.trial.variant()) == (condition, variant)
    }

    /// The tally of all its requests together.
    #[must_use]
    pub fn requests(&self) -> &Tally {
        &self.requests
    }

    /// The tally of `subject`, if anything was recorded of it.
    #[must_use]
    pub fn tally(&self, subject: &Subject) -> Option<&'a Tally> {
        self.load().tallies.get(subject).filter(|tally| tally.count() > 0)
    }

    /// Iterations that failed although none of their exchanges did, by kind of error: a script
    /// threw, or a loop of a flow did not end.
    #[must_use]
    pub fn failed_without_exchange(&self) -> BTreeMap<ErrorKind, u64> {
        failed_alone(&self.requests, self.tally(&Subject::Iteration))
    }

    /// The number of durations behind a measure of this series; none if the series holds no
    /// durations.
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

    /// The number of events that a share or a count of this series refers to.
    #[must_use]
    pub fn denominator(&self, series: &Series) -> u64 {
        match series {
            Series::Iterations | Series::FailedIterations => self.tally(&Subject::Iteration).map_or(0, Tally::count),
            Series::NewOrders => self.sample_size(&Series::RequestDuration(Some(NEW_ORDER.to_owned()))).unwrap_or(0),
            Series::Checks(name) => self.check_tallies(name.as_ref()).map(Tally::count).sum(),
            Series::Deliveries | Series::LostDeliveries => self.parts(Part::Delivery, None).map(Tally::count).sum(),
            Series::Custom(..) => self.sample_size(series).unwrap_or(0),
            _ => self.requests.count(),
        }
    }

    /// The number of values that a percentile needs and the number it has, where there are some but
    /// too few.
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

    /// The tallies of a part: of the step with this name, or of all steps.
    fn parts(&self, part: Part, name: Option<&String>) -> impl Iterator<Item = &'a Tally> {
        let is_meant = move |subject: &Subject| match subject {
            Subject::Part(one, step) => *one == part && name.is_none_or(|name| name == step),
            _ => false,
        };
        self.load().tallies.iter().filter(move |(subject, _)| is_meant(subject)).map(|(_, tally)| tally)
    }

    fn duration(&self, subject: &Subject, clock: Clock, statistic: Statistic) -> OrReason<f64> {
        let tally = self.tally(subject).ok_or_else(|| format!("no {subject} was recorded"))?;
        duration_in(tally, clock, statistic)
    }

    fn how_many(
        &self,
        statistic: Statistic,
        of: impl Fn(&Subject) -> bool,
        amount: impl Fn(&LoadSecond) -> u64,
    ) -> OrReason<f64> {
        let window = self.load().counted_seconds();
        if window <= 0.0 {
            return Err("nothing was measured".to_owned());
        }
        let counted = self.load().seconds.iter().filter(|row| self.load().counts_second(row.second));
        // Summed as whole numbers: an empty sum of floating-point ones is -0, and is written so.
        let all = counted.filter(|row| of(&row.subject)).map(|row| u128::from(amount(row))).sum::<u128>() as f64;
        match statistic {
            Statistic::Rate => Ok(all / window),
            _ => Ok(all),
        }
    }

    /// Errors: failed exchanges, and iterations that failed without one.
    fn errors(&self, statistic: Statistic) -> OrReason<f64> {
        let [failed, all] = failed_of_all(&self.requests, self.tally(&Subject::Iteration)).map(|count| count as f64);
        match statistic {
            Statistic::Ratio if all > 0.0 => Ok(failed / all),
            Statistic::Ratio => Err("no exchange ended".to_owned()),
            _ => Ok(failed),
        }
    }

    /// Iterations that failed, with or without a failed exchange.
    fn failed_iterations(&self, statistic: Statistic) -> OrReason<f64> {
        let tally = self.tally(&Subject::Iteration).ok_or("no iteration ended")?;
        let failed = tally.failed() as f64;
        Ok(if statistic == Statistic::Ratio { failed / tally.count() as f64 } else { failed })
    }

    /// Deliveries that did not come.
    fn lost_deliveries(&self, statistic: Statistic) -> OrReason<f64> {
        let all = merged(self.parts(Part::Delivery, None));
        if all.count() == 0 {
            return Err("nothing was delivered to sockets".to_owned());
        }
        let lost = all.failed() as f64;
        Ok(if statistic == Statistic::Ratio { lost / all.count() as f64 } else { lost })
    }

    /// The share of a script's checks that passed: of the check with this name, or of all.
    fn checks(&self, name: Option<&String>) -> OrReason<f64> {
        let all = merged(self.check_tallies(name));
        if all.count() == 0 {
            return Err(name.map_or("no check was made".to_owned(), |name| format!("no check `{name}` was made")));
        }
        Ok(1.0 - all.failed() as f64 / all.count() as f64)
    }

    /// The tallies of checks: of the check with this name, or of all.
    fn check_tallies(&self, name: Option<&String>) -> impl Iterator<Item = &'a Tally> {
        let is_meant = move |subject: &Subject| match subject {
            Subject::Check(check) => name.is_none_or(|name| name == check),
            _ => false,
        };
        self.load().tallies.iter().filter(move |(subject, _)| is_meant(subject)).map(|(_, tally)| tally)
    }

    /// The value of a script's own metric; times are in seconds.
    fn custom(&self, metric: Metric, name: &str, measure: &Measure) -> OrReason<f64> {
        let statistic = measure.statistic;
        let subject = Subject::Custom(metric, name.to_owned());
        let tally = self.tally(&subject).ok_or_else(|| format!("the script recorded no {subject}"))?;
        let sum = || tally.service.mean() * tally.count() as f64 / METRIC_SCALE;
        match (metric, statistic) {
            (Metric::Counter, Statistic::Rate) => match self.load().counted_seconds() {
                window if window > 0.0 => Ok(sum() / window),
                _ => Err("nothing was measured".to_owned()),
            },
            (Metric::Counter, _) => Ok(sum()),
            (Metric::Rate, _) => Ok(1.0 - tally.failed() as f64 / tally.count() as f64),
            (Metric::Gauge | Metric::Trend, _) if measure.is_timed() => duration_in(tally, Clock::Service, statistic),
            (Metric::Gauge | Metric::Trend, _) => {
                Ok(duration_in(tally, Clock::Service, statistic)? * 1e9 / METRIC_SCALE)
            }
        }
    }

    /// The metrics that its systems expose.
    #[must_use]
    pub fn exposed(&self) -> &Exposed<'a> {
        &self.exposed
    }

    fn telemetry(
        &self,
        system: Option<&str>,
        statistic: Statistic,
        of: impl Fn(&ProcessSample) -> f64,
    ) -> OrReason<f64> {
        let samples = samples::by_second(self.trial, system, of).into_iter();
        // Of a search, they are those of the loads that count already.
        let is_search = !self.load().rungs.is_empty();
        let values: Vec<f64> = samples
            .filter(|(second, _)| is_search || self.load().counts_second(*second))
            .map(|(_, value)| value)
            .collect();
        let none = || "no sample lies in the measure phase".to_owned();
        match statistic {
            Statistic::Max => values.iter().copied().reduce(f64::max).ok_or_else(none),
            _ => mean(&values).ok_or_else(none),
        }
    }
}

/// The share of the time from its first to its last slice in which the variant was under load; 1 for a trial. The
/// processors are idle for it in the rest, which would make it look cheap. Slices that do not count load them as well.
pub(crate) fn share_of_time(trial: TrialResult<'_>) -> f64 {
    let (load, settle) = (trial.load, trial.load.settle().seconds());
    let between = load.slices.len().saturating_sub(1) as f64;
    let left_out = load.slices.iter().flat_map(|slice| &slice.left_out);
    let left_out: f64 = left_out.map(|slice| slice.settle.seconds() + slice.length.seconds()).sum();
    let under_load = load.summary.timing.window.seconds() + between * settle + left_out;
    match load.span().seconds() {
        span if !load.slices.is_empty() && span > 0.0 => under_load / span,
        _ => 1.0,
    }
}

/// The number of values that a percentile needs so that [`MIN_VALUES_BEYOND`] lie beyond it.
pub(crate) fn values_needed(statistic: Statistic) -> Option<u64> {
    match statistic {
        Statistic::Percentile(p) => Some((MIN_VALUES_BEYOND / (1.0 - p.max(100.0 - p) / 100.0)).round() as u64),
        _ => None,
    }
}

/// The noun for the values of a series of durations.
fn noun_of_values(series: &Series) -> &'static str {
    match series {
        Series::IterationDuration => "iterations",
        Series::ConnectDuration => "connections",
        Series::PartDuration(Part::Delivery, _) => "deliveries",
        Series::PartDuration(part, _) if *part != Part::Subrequest => "operations",
        Series::Custom(..) => "values",
        _ => "requests",
    }
}

fn is_subrequest(subject: &Subject) -> bool {
    matches!(subject, Subject::Part(Part::Subrequest, _))
}

fn is_delivery(subject: &Subject) -> bool {
    matches!(subject, Subject::Part(Part::Delivery, _))
}

/// True for subjects that transfer bytes themselves; an iteration only contains exchanges.
fn is_exchange(subject: &Subject) -> bool {
    matches!(subject, Subject::Request(_) | Subject::Connect)
}

fn all_requests(tallies: &BTreeMap<Subject, Tally>) -> Cow<'_, Tally> {
    let requests: Vec<&Tally> =
        tallies.iter().filter(|(subject, _)| subject.is_request()).map(|(_, tally)| tally).collect();
    match requests[..] {
        [one] => Cow::Borrowed(one),
        _ => Cow::Owned(merged(requests)),
    }
}

/// Merges tallies into one.
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
    statistic.of(histogram).ok_or_else(|| none.to_owned())
}
