//! A cell: the durations of an operation on objects of one size, on one back end.

use super::StorageTrial;
use super::distribution::Distribution;
use crate::estimate::{Interval, interval_of_centre, summarise};
use crate::measure::merged;
use crate::reason::OrReason;
use plimsoll_model::record::{Part, Subject, Tally};
use plimsoll_model::storage::{FILE_ALONE, Mode, Operation, Residency, StorageStep};

/// Operations per trial from which on their spread is meaningful.
const ENOUGH_FOR_SPREAD: u64 = 10;

/// Spreads below this one are hidden by the three-digit resolution of histograms.
const RESOLUTION: f64 = 0.001;

/// An operation that takes more than this multiple of the median is an outlier.
pub(super) const OUTLYING: f64 = 5.0;

/// A mean above this multiple of the median is reported as apart from the median.
const MEAN_OVER_MEDIAN: f64 = 1.2;

/// Share of the read data in the page cache from which on a cell measures the cache.
const MOSTLY_CACHED: f64 = 0.5;

/// All operations of the trials that count, failed ones included. Durations are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The timing of each trial; never empty.
    pub trials: Vec<TrialTiming>,
    /// Total number of operations.
    pub operations: u64,
    /// Number of failed operations.
    pub failed: u64,
    /// Mean of the operations.
    pub mean: f64,
    /// Standard deviation of the operations; none for one.
    pub sd: Option<f64>,
    /// The quantiles of the operations.
    pub quantiles: Quantiles,
    /// The confidence interval of a trial's mean, over trials, or the reason why there is none.
    pub interval: OrReason<Interval>,
    /// The variation of operations inside a trial, or the reason why it is unknown.
    pub spread: OrReason<Spread>,
    /// Size over median, for operations that move an object.
    pub bytes_per_second: Option<f64>,
    /// Median time to the first byte, where it was recorded.
    pub first_byte: Option<f64>,
    /// Medians of the parts that were timed separately.
    pub parts: Vec<(Part, f64)>,
    /// The requests that the operations consist of, where those were recorded.
    pub subrequests: Option<Subrequests>,
    /// The handling of caches and durability, in words.
    pub mode: String,
    /// For reads, the share of the read data that was in the page cache.
    pub cached: Option<f64>,
    /// True for writes that were not synced.
    pub not_durable: bool,
    /// The outliers that move the mean away from the median, where it is far from it.
    pub outliers: Option<Outliers>,
}

/// The timing of the operations of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialTiming {
    /// Number of the trial.
    pub trial: u32,
    /// Number of operations.
    pub operations: u64,
    /// Their mean duration.
    pub mean: f64,
}

/// Quantiles of durations. A percentile is given if ten operations or more lie beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    /// The shortest.
    pub least: f64,
    /// 5th percentile.
    pub p5: Option<f64>,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// The longest.
    pub largest: f64,
}

/// The coefficient of variation of the operations of a trial: standard deviation over mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Geometric mean over trials.
    pub centre: f64,
    /// Its confidence interval.
    pub interval: Interval,
}

/// The requests that operations consist of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subrequests {
    /// Number of requests; every attempt counts.
    pub count: u64,
    /// Number of failed requests, whether or not they were retried.
    pub failed: u64,
    /// Mean number of requests per operation.
    pub per_operation: f64,
}

/// Operations that took more than five times the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outliers {
    /// Number of outliers; none where the times merely vary widely.
    pub count: u64,
    /// Their share of the total time.
    pub share_of_time: f64,
    /// The mean without them.
    pub mean_without: f64,
    /// The trial that has all of them, if there are several trials and one has them all.
    pub only_in: Option<u32>,
}

impl Cell {
    /// The centre of its interval: the geometric mean of the trials' means.
    pub(super) fn centre(&self) -> f64 {
        let means: Vec<f64> = self.trials.iter().map(|trial| trial.mean).collect();
        summarise(&means).map_or(self.mean, |summary| summary.centre)
    }

    /// True if it measures the page cache rather than storage.
    #[must_use]
    pub fn is_cache(&self) -> bool {
        self.cached.is_some_and(|share| share >= MOSTLY_CACHED)
    }
}

/// The cell of a back end and a step, or the reason why there is none.
pub(super) fn cell(places: &[StorageTrial<'_>], step: &StorageStep) -> OrReason<Cell> {
    let counted: Vec<StorageTrial<'_>> = places.iter().filter(|place| place.reader.counts()).copied().collect();
    let subject = Subject::Request(step.name.clone());
    let timed: Vec<Timed> = counted.iter().filter_map(|place| timed(place, &subject)).collect();
    match (places.first(), counted.first(), timed.is_empty()) {
        (None, ..) => Err("no trial ran".to_owned()),
        (_, None, _) => Err("no trial counts".to_owned()),
        (.., true) => Err(format!("no {} was recorded", step.name)),
        (_, Some(first), false) => {
            Ok(CellBuilder { places: &counted, first: *first, step, timed }.cell(&recorded(&counted, &subject)))
        }
    }
}

/// The operations of a trial, with their number.
struct Timed {
    trial: u32,
    operations: Distribution,
}

fn timed(place: &StorageTrial<'_>, subject: &Subject) -> Option<Timed> {
    let operations = Distribution::new(&place.reader.tally(subject)?.service)?;
    Some(Timed { trial: place.reader.trial().number(), operations })
}

fn recorded(places: &[StorageTrial<'_>], subject: &Subject) -> Tally {
    merged(places.iter().filter_map(|place| place.reader.tally(subject)))
}

/// Builds a cell from trials that count, at least one of which has operations.
struct CellBuilder<'a> {
    places: &'a [StorageTrial<'a>],
    first: StorageTrial<'a>,
    step: &'a StorageStep,
    timed: Vec<Timed>,
}

impl CellBuilder<'_> {
    fn cell(&self, tally: &Tally) -> Cell {
        let all = Distribution::new(&tally.service).expect("a trial has operations");
        let means: Vec<f64> = self.timed.iter().map(|trial| trial.operations.mean()).collect();
        let StorageTrial { facts, .. } = self.first;
        let operation = self.step.operation;
        let moves = matches!(operation, Operation::Write | Operation::Read);
        Cell {
            trials: self.timed.iter().map(Timed::timing).collect(),
            operations: all.count(),
            failed: tally.failed(),
            mean: all.mean(),
            sd: all.sd(),
            quantiles: quantiles(&all),
            interval: interval_of_centre(&means),
            spread: self.spread(),
            bytes_per_second: (moves && all.median() > 0.0).then(|| facts.size as f64 / all.median()),
            first_byte: Distribution::new(&tally.first_byte).map(|first| first.median()),
            parts: Part::ALL.into_iter().filter_map(|part| Some((part, self.part(part)?))).collect(),
            subrequests: self.subrequests(all.count()),
            mode: facts.mode.clone(),
            cached: self.cached(),
            not_durable: operation == Operation::Write && !is_durable(&self.first),
            outliers: self.outliers(&all),
        }
    }

    fn spread(&self) -> OrReason<Spread> {
        if self.timed.iter().any(|trial| trial.operations.count() < ENOUGH_FOR_SPREAD) {
            return Err(format!("a trial has fewer than {ENOUGH_FOR_SPREAD} operations"));
        }
        let relative = |trial: &Timed| {
            let mean = trial.operations.mean();
            let sd = trial.operations.sd().filter(|_| mean > 0.0);
            sd.map_or(RESOLUTION, |sd| (sd / mean).max(RESOLUTION))
        };
        let spreads: Vec<f64> = self.timed.iter().map(relative).collect();
        let centre = summarise(&spreads).ok_or("the times are no numbers")?.centre;
        Ok(Spread { centre, interval: interval_of_centre(&spreads)? })
    }

    /// The median of a part. For the requests of an operation a median says nothing: they differ.
    fn part(&self, part: Part) -> Option<f64> {
        let tally = recorded(self.places, &Subject::Part(part, self.step.name.clone()));
        Distribution::new(&tally.service).filter(|_| part != Part::Subrequest).map(|part| part.median())
    }

    fn subrequests(&self, operations: u64) -> Option<Subrequests> {
        let tally = recorded(self.places, &Subject::Part(Part::Subrequest, self.step.name.clone()));
        let (count, failed) = (tally.count(), tally.failed());
        (count > 0).then(|| Subrequests { count, failed, per_operation: count as f64 / operations as f64 })
    }

    fn cached(&self) -> Option<f64> {
        if self.step.operation != Operation::Read {
            return None;
        }
        let looked_at = self.places.iter().filter_map(|place| place.facts.residency);
        let all = looked_at.fold(Residency::default(), |all, one| Residency {
            pages: all.pages + one.pages,
            cached: all.cached + one.cached,
        });
        all.share()
    }

    fn outliers(&self, all: &Distribution) -> Option<Outliers> {
        let (mean, median) = (all.mean(), all.median());
        let part = mean >= MEAN_OVER_MEDIAN * median || all.sd().is_some_and(|sd| sd > mean);
        if !part || median <= 0.0 || all.count() < 3 {
            return None;
        }
        let limit = OUTLYING * median;
        let (count, time) = all.beyond(limit);
        let with_some: Vec<u32> =
            self.timed.iter().filter(|trial| trial.operations.beyond(limit).0 > 0).map(|trial| trial.trial).collect();
        Some(Outliers {
            count,
            share_of_time: time / all.total(),
            mean_without: (all.total() - time) / (all.count() - count) as f64,
            only_in: with_some.first().copied().filter(|_| with_some.len() == 1 && self.timed.len() > 1),
        })
    }
}

impl Timed {
    fn timing(&self) -> TrialTiming {
        TrialTiming { trial: self.trial, operations: self.operations.count(), mean: self.operations.mean() }
    }
}

/// True if a write ends only when its object would survive a loss of power, as far as this side
/// knows: an object that S3 acknowledged is the server's responsibility, and the mode tells of a
/// directory that is not synced.
fn is_durable(place: &StorageTrial<'_>) -> bool {
    [Mode::Durable.name(), FILE_ALONE].contains(&place.facts.mode.as_str()) || place.facts.kind == "S3"
}

fn quantiles(all: &Distribution) -> Quantiles {
    let (least, largest) = all.ends();
    Quantiles {
        least,
        p5: all.percentile(5.0),
        p25: all.percentile(25.0),
        p50: all.median(),
        p75: all.percentile(75.0),
        p95: all.percentile(95.0),
        p99: all.percentile(99.0),
        largest,
    }
}
