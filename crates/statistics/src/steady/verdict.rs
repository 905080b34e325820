//! From where on a trial is steady, from the ticks that its load generator recorded.

use super::noise::Noise;
use super::{BATCH, mser_within};
use crate::sample::{mean, median};

/// Fewest batches in all, and in the measure phase.
const LEAST: (usize, usize) = (20, 10);
/// At most one batch in so many may be empty.
const EMPTY_ONE_IN: usize = 10;
/// Values beyond so many robust standard deviations from the median are drawn in: one stall in the
/// middle of a trial is no warm-up.
const DRAWN_IN: f64 = 5.0;
/// The least such standard deviation: what varies less is as good as constant.
const LEAST_DEVIATION: f64 = 0.002;
/// The p value that the removed part must reach against the rest. It is small because the cut was
/// chosen as the best of many, and because the most nervous of some twenty trials decides.
const P_OF_CUT: f64 = 0.000_2;
/// A smaller relative difference is not worth a cut.
const LEAST_CUT: f64 = 0.005;
/// The p value that the halves of what remains must reach for a trial to be never steady.
const P_OF_DRIFT: f64 = 0.001;
/// The least relative difference of those halves, for a remainder as long as the measure phase.
const LEAST_DRIFT: f64 = 0.05;

/// Parts of a series that all lie in order only where it goes one way: by chance, in one of 20,000
/// series without autocorrelation, and in one of 1,500 where that is 0.6 and there are as few as
/// 16 batches.
const PARTS: usize = 8;

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The mean duration of iterations.
    Durations,
    /// The number of iterations that ended.
    Throughput,
}

/// How a trial moves that is never steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// What moves.
    pub subject: Subject,
    /// The change from the first half of what was looked at to the second, as a share: 0.1 is 10 %
    /// more.
    pub change: f64,
    /// That change in standard errors, autocorrelation included; infinite without noise, and where
    /// it goes one way all the time.
    pub standard_errors: f64,
}

/// From where on a trial is steady.
#[derive(Clone, Debug, PartialEq)]
pub enum Steadiness {
    /// It cannot be said, for this reason.
    NotJudged(String),
    /// From so many ticks after the start of the measure phase on.
    From(usize),
    /// It never is: this is what moves most clearly.
    Never(Drift),
}

/// From where on a trial under constant load is steady. `ticks` are equal spans of time, warm-up and
/// measure phase in one series: the iterations that ended in each, and their durations together, in
/// any unit. The measure phase begins with tick `measured`.
///
/// Ticks are taken in batches of five. [`super::mser`], over cuts up to the middle of the measure
/// phase, is asked of the logarithm of the mean duration and of the throughput, each drawn in to
/// five robust standard deviations. Its cut counts if the part of the measure phase that it removes
/// differs from the rest with p ≤ 0.0002, autocorrelation included, and by 0.5 %; otherwise a cut
/// of at most half the length is tried. The larger cut of both series counts. The trial is never
/// steady if the halves of the remainder of either series differ with p ≤ 0.001 and at a pace of
/// more than 5 % over the measure phase. The same pace is enough where all eighths of the remainder
/// lie in order: a curve without noise looks like autocorrelation to any straight line.
///
/// Not judged: fewer than 20 batches in all or 10 in the measure phase, or more than a tenth of them
/// without iterations.
#[must_use]
pub fn steadiness(ticks: &[(u64, u64)], measured: usize) -> Steadiness {
    let measured = measured.min(ticks.len());
    // Batches begin with the measure phase, so that one batch never belongs to both phases.
    let batches: Vec<(u64, u64)> = ticks[measured % BATCH..].chunks_exact(BATCH).map(merged).collect();
    let warmup = measured / BATCH;
    let in_measure = batches.len() - warmup.min(batches.len());
    if batches.len() < LEAST.0 || in_measure < LEAST.1 {
        return Steadiness::NotJudged(format!(
            "{} ticks are too few to tell, {} of them in the measure phase: it takes {} and {}",
            ticks.len(),
            ticks.len() - measured,
            LEAST.0 * BATCH,
            LEAST.1 * BATCH
        ));
    }
    let empty = batches.iter().filter(|batch| batch.0 == 0).count();
    if empty * EMPTY_ONE_IN > batches.len() {
        return Steadiness::NotJudged(format!(
            "no iteration ended in {empty} of {} batches of {BATCH} ticks",
            batches.len()
        ));
    }
    let series =
        [(Subject::Durations, drawn_in(&durations(&batches))), (Subject::Throughput, drawn_in(&throughput(&batches)))];
    let cut = series.iter().map(|(_, values)| cut(values, warmup)).max().unwrap_or(warmup);
    let drifts = series.iter().filter_map(|(subject, values)| drift(*subject, &values[cut..], in_measure));
    match drifts.max_by(|one, other| one.standard_errors.total_cmp(&other.standard_errors)) {
        Some(drift) => Steadiness::Never(drift),
        None => Steadiness::From((cut - warmup) * BATCH),
    }
}

fn merged(ticks: &[(u64, u64)]) -> (u64, u64) {
    ticks.iter().fold((0, 0), |sum, tick| (sum.0.saturating_add(tick.0), sum.1.saturating_add(tick.1)))
}

/// The logarithm of the mean duration in each batch; one without iterations repeats its neighbour.
fn durations(batches: &[(u64, u64)]) -> Vec<f64> {
    let of = |batch: &(u64, u64)| (batch.0 > 0).then(|| (batch.1.max(1) as f64 / batch.0 as f64).ln());
    let mut last = batches.iter().find_map(of).unwrap_or(0.0);
    batches
        .iter()
        .map(|batch| {
            last = of(batch).unwrap_or(last);
            last
        })
        .collect()
}

/// The iterations in each batch, relative to the median batch.
fn throughput(batches: &[(u64, u64)]) -> Vec<f64> {
    let counts: Vec<f64> = batches.iter().map(|batch| batch.0 as f64).collect();
    let unit = median(&counts).filter(|unit| *unit > 0.0).unwrap_or(1.0);
    counts.iter().map(|count| count / unit).collect()
}

/// Values far from the median moved to where they are only just far.
fn drawn_in(values: &[f64]) -> Vec<f64> {
    let middle = median(values).unwrap_or(0.0);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // 1.4826 makes the median distance the standard deviation of a normal distribution.
    let deviation = (1.4826 * median(&distances).unwrap_or(0.0)).max(LEAST_DEVIATION);
    values.iter().map(|value| value.clamp(middle - DRAWN_IN * deviation, middle + DRAWN_IN * deviation)).collect()
}

/// The first batch that counts, `warmup` or later, up to the middle of the measure phase.
fn cut(values: &[f64], warmup: usize) -> usize {
    let half = (values.len() - warmup) / 2;
    let mut last = warmup + half;
    loop {
        let cut = mser_within(values, last).cut;
        if cut <= warmup {
            return warmup;
        }
        // A cut at the middle of the measure phase says that the series still falls there: what it
        // removes is no warm-up, but half of a drift.
        if cut < warmup + half && really_differs(&values[warmup..cut], &values[cut..]) {
            return cut;
        }
        last = warmup + (cut - warmup) / 2;
    }
}

fn really_differs(removed: &[f64], rest: &[f64]) -> bool {
    let noise = Noise::around_a_line(rest);
    let difference = (middle(removed) - middle(rest)).abs();
    difference > LEAST_CUT
        && difference > noise.errors_for(P_OF_CUT) * noise.error_of_difference(removed.len(), rest.len())
}

/// The drift of what remains of a measure phase of `full` batches, if it is clear and large.
fn drift(subject: Subject, rest: &[f64], full: usize) -> Option<Drift> {
    let (first, second) = rest.split_at(rest.len() / 2);
    let noise = Noise::around_a_line(rest);
    let (change, error) = (middle(second) - middle(first), noise.error_of_difference(first.len(), second.len()));
    let pace = change.abs() * full as f64 / rest.len() as f64;
    let clear = change.abs() > noise.errors_for(P_OF_DRIFT) * error;
    let relative = match subject {
        Subject::Durations => change.exp_m1(),
        Subject::Throughput => change / middle(first).max(f64::MIN_POSITIVE),
    };
    let standard_errors = if clear { change.abs() / error } else { f64::INFINITY };
    (pace > LEAST_DRIFT && (clear || goes_one_way(rest))).then_some(Drift {
        subject,
        change: relative,
        standard_errors,
    })
}

/// Whether the means of the eighths of a series rise, or fall, from each to the next.
fn goes_one_way(values: &[f64]) -> bool {
    if values.len() < 2 * PARTS {
        return false;
    }
    let part = |number: usize| values.len() * number / PARTS;
    let means: Vec<f64> = (0..PARTS).map(|number| middle(&values[part(number)..part(number + 1)])).collect();
    means.is_sorted_by(|one, next| one < next) || means.is_sorted_by(|one, next| one > next)
}

fn middle(values: &[f64]) -> f64 {
    mean(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
