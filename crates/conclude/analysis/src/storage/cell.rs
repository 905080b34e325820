//! A cell: what an operation on objects of one size takes, on one back end.

use super::StorageTrial;
use super::distribution::Distribution;
use crate::estimate::{Interval, interval_of_centre, summarise};
use crate::measure::merged;
use crate::reason::OrReason;
use plimsoll_model::record::{Part, Subject, Tally};
use plimsoll_model::storage::{FILE_ALONE, Mode, Operation, Residency, StorageStep};

/// Operations of a trial from which on their spread means something.
const ENOUGH_FOR_SPREAD: u64 = 10;

/// Spreads below this one are hidden by the three digits of histograms.
const RESOLUTION: f64 = 0.001;

/// How many times the median an operation has to take to be called an outlier.
pub(super) const OUTLYING: f64 = 5.0;

/// How many times the median the mean has to be so that the two are said to part.
const MEAN_OVER_MEDIAN: f64 = 1.2;

/// Share of what was read in the page cache from which on a cell is about the cache.
const MOSTLY_CACHED: f64 = 0.5;

/// All operations of the trials that count, failed ones included. Durations are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What each trial gave; never empty.
    pub trials: Vec<TrialTiming>,
    /// Operations in all.
    pub operations: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Mean of the operations.
    pub mean: f64,
    /// Standard deviation of the operations; none for one.
    pub sd: Option<f64>,
    /// How they are distributed.
    pub quantiles: Quantiles,
    /// Where the mean of a trial lies, over trials, or why that cannot be said.
    pub interval: OrReason<Interval>,
    /// How steady operations are inside a trial, or why that cannot be said.
    pub spread: OrReason<Spread>,
    /// Size over median, for operations that move an object.
    pub bytes_per_second: Option<f64>,
    /// Median time to the first byte, where it was recorded.
    pub first_byte: Option<f64>,
    /// Medians of the parts that were timed apart.
    pub parts: Vec<(Part, f64)>,
    /// The requests that the operations took, where those were recorded.
    pub subrequests: Option<Subrequests>,
    /// What was done about caches and durability.
    pub mode: String,
    /// For reads, the share of what was read that lay in the page cache.
    pub cached: Option<f64>,
    /// True if it tells of writes that were not synced.
    pub not_durable: bool,
    /// The operations that set the mean apart from the median, where the two part.
    pub outliers: Option<Outliers>,
}

/// The operations of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialTiming {
    /// Number of the trial.
    pub trial: u32,
    /// How many.
    pub operations: u64,
    /// Their mean.
    pub mean: f64,
}

/// Quantiles of durations. A percentile is there if ten operations or more lie beyond it.
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

/// Standard deviation over mean of the operations of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Geometric mean over trials.
    pub centre: f64,
    /// Where that lies.
    pub interval: Interval,
}

/// Requests of which operations consist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subrequests {
    /// All of them, every attempt counting.
    pub count: u64,
    /// Those that failed, whether or not they were sent again.
    pub failed: u64,
    /// For each operation, on average.
    pub per_operation: f64,
}

/// Operations that took more than five times the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outliers {
    /// How many; none where the times are just far apart.
    pub count: u64,
    /// The share of all time that they took.
    pub share_of_time: f64,
    /// What the mean is without them.
    pub mean_without: f64,
    /// The trial that has all of them, if one of several has.
    pub only_in: Option<u32>,
}

impl Cell {
    /// What its interval is around: the geometric mean of the trials' means.
    pub(super) fn centre(&self) -> f64 {
        let means: Vec<f64> = self.trials.iter().map(|trial| trial.mean).collect();
        summarise(&means).map_or(self.mean, |summary| summary.centre)
    }

    /// True if it tells of the page cache, and not of storage.
    #[must_use]
    pub fn is_cache(&self) -> bool {
        self.cached.is_some_and(|share| share >= MOSTLY_CACHED)
    }
}

/// What the trials of a back end say of a step, or why they say nothing.
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

/// Makes a cell of trials that count, at least one of which has operations.
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

    /// The median of a part. Of the requests of an operation it would say nothing: they differ.
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

/// True if a write ends when its object would survive a loss of power, as far as this side can say:
/// what S3 has acknowledged is the server's to keep, and of a directory that is not synced the mode
/// tells.
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
