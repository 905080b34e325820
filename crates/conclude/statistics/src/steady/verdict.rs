//! Decides from which second on a trial is steady, from the ticks that its load generator recorded.

use super::noise::{Noise, halves};
use super::{BATCH, mser_within};
use crate::sample::{mean, median};

/// Fewest batches in the measure phase. With fewer, a drift cannot be told from autocorrelated
/// noise: a server that becomes twice as slow looks like a noisy one.
const MIN_BATCHES: usize = 20;
/// At most one batch in this many may be empty.
const MAX_EMPTY_ONE_IN: usize = 10;
/// Number of neighbours on either side whose median is the level for a value.
const NEIGHBOURS: usize = 5;
/// Values beyond this many robust standard deviations from that level are winsorized.
const WINSOR_DEVIATIONS: f64 = 5.0;
/// The least such standard deviation: a series that varies less counts as constant.
const MIN_DEVIATION: f64 = 0.002;
/// The p value at which parts really differ. It is small because a cut is chosen as the best of
/// many, because two series are tested, and because the noisiest of some twenty trials decides.
const SIGNIFICANCE: f64 = 0.000_2;
/// The p value for a remainder that moves in the same direction as the removed part did.
const SIGNIFICANCE_AFTER_CUT: f64 = 0.01;
/// A smaller relative difference is not worth a cut.
const MIN_CUT_DIFFERENCE: f64 = 0.005;
/// The least relative difference between the halves of a trial that is never steady, for a
/// remainder as long as the measure phase.
const MIN_DRIFT: f64 = 0.05;
/// Parts whose means all rise, or all fall, show a drift of any shape; fewer parts do where the
/// removed part moved in the same direction.
const DRIFT_PARTS: usize = 8;
const DRIFT_PARTS_AFTER_CUT: usize = 5;

/// The series that was examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The mean duration of iterations.
    Durations,
    /// The number of iterations that ended.
    Throughput,
}

/// The movement of a trial that is never steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The series that moves.
    pub subject: Subject,
    /// The change from the first half of the examined part to the second, as a share: 0.1 is 10 %
    /// more.
    pub change: f64,
    /// That change in standard errors, including autocorrelation; infinite without noise, and for a
    /// monotonic movement.
    pub standard_errors: f64,
}

/// The tick from which on a trial is steady.
#[derive(Clone, Debug, PartialEq)]
pub enum Steadiness {
    /// Not judged, for this reason.
    NotJudged(String),
    /// Steady from this many ticks after the start of the measure phase on.
    From(usize),
    /// Never steady: this series moves most clearly.
    Never(Drift),
}

/// Finds the tick from which on a trial under constant load is steady. `ticks` are equal spans of
/// time, warm-up and measure phase in one series: the iterations that ended in each, and the sum of
/// their durations, in any unit. The measure phase begins with tick `measured`.
///
/// Ticks are grouped in batches of five. [`super::mser`], over cuts up to the middle of the measure
/// phase, is applied to the logarithm of the mean duration and to the throughput; a batch that
/// stands out from its neighbours is winsorized to five robust standard deviations, so that a stall
/// counts as one. A cut counts if the part of the measure phase that it removes differs from the
/// rest with p ≤ 0.0002, autocorrelation included, and by 0.5 %, and the rest does not continue in
/// the same way, as it does in a drift; otherwise a cut of at most half the length is tried. The
/// larger cut of both series counts.
///
/// The trial is never steady if either series moves by more than 5 % over a measure phase: if the
/// halves of the remainder differ at that pace with p ≤ 0.0002, or the means of its eighths all
/// rise, or all fall. Where the removed part moved in the same direction, p ≤ 0.01 is enough, and
/// so are fifths.
///
/// Not judged: fewer than 20 batches in the measure phase, or more than a tenth of them without
/// iterations.
#[must_use]
pub fn steadiness(ticks: &[(u64, u64)], measured: usize) -> Steadiness {
    let measured = measured.min(ticks.len());
    // Batches begin with the measure phase, so that one batch never belongs to both phases.
    let batches: Vec<(u64, u64)> = ticks[measured % BATCH..].chunks_exact(BATCH).map(merged).collect();
    let warmup = measured / BATCH;
    let in_measure = batches.len() - warmup.min(batches.len());
    if in_measure < MIN_BATCHES {
        return Steadiness::NotJudged(format!(
            "{} ticks in the measure phase are too few to tell: it takes {}",
            ticks.len() - measured,
            MIN_BATCHES * BATCH
        ));
    }
    let empty = batches.iter().filter(|batch| batch.0 == 0).count();
    if empty * MAX_EMPTY_ONE_IN > batches.len() {
        return Steadiness::NotJudged(format!(
            "no iteration ended in {empty} of {} batches of {BATCH} ticks",
            batches.len()
        ));
    }
    let series = [
        (Subject::Durations, winsorized(&durations(&batches))),
        (Subject::Throughput, winsorized(&throughput(&batches))),
    ];
    let cut = series.iter().map(|(_, values)| cut(values, warmup)).max().unwrap_or(warmup);
    let drifts = series.iter().filter_map(|(subject, values)| drift(*subject, values, warmup, cut));
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

/// Moves values far from their neighbours to the limit: a stall is no warm-up, but a lasting level
/// stays as it is.
fn winsorized(values: &[f64]) -> Vec<f64> {
    let around = |place: usize| {
        let near = &values[place.saturating_sub(NEIGHBOURS)..(place + NEIGHBOURS + 1).min(values.len())];
        median(near).unwrap_or(values[place])
    };
    let middles: Vec<f64> = (0..values.len()).map(around).collect();
    let distances: Vec<f64> = values.iter().zip(&middles).map(|(value, middle)| (value - middle).abs()).collect();
    // 1.4826 makes the median distance the standard deviation of a normal distribution.
    let deviation = (1.4826 * median(&distances).unwrap_or(0.0)).max(MIN_DEVIATION);
    let most = WINSOR_DEVIATIONS * deviation;
    values.iter().zip(&middles).map(|(value, middle)| value.clamp(middle - most, middle + most)).collect()
}

/// The first batch that counts, `warmup` or later, up to the middle of the measure phase.
fn cut(values: &[f64], warmup: usize) -> usize {
    let mut last = warmup + (values.len() - warmup) / 2;
    loop {
        let cut = mser_within(values, last).cut;
        if cut <= warmup {
            return warmup;
        }
        if is_warmup(&values[warmup..cut], &values[cut..]) {
            return cut;
        }
        last = warmup + (cut - warmup) / 2;
    }
}

/// True if `removed` really differs from `rest`, and the rest does not go on in the same way.
fn is_warmup(removed: &[f64], rest: &[f64]) -> bool {
    let noise = Noise::of(rest);
    let difference = (middle(removed) - middle(rest)).abs();
    let by_chance = noise.errors_for(SIGNIFICANCE) * noise.error_of_difference(removed.len(), rest.len());
    difference > MIN_CUT_DIFFERENCE.max(by_chance) && pace(rest, removed.len() + rest.len()).abs() < difference / 2.0
}

/// The rise from the first half of `rest` to its second, scaled to a rest of `full` batches. In a
/// straight drift it equals the difference between a removed part and the rest, however long that
/// part was.
fn pace(rest: &[f64], full: usize) -> f64 {
    let (first, second) = rest.split_at(rest.len() / 2);
    (middle(second) - middle(first)) * full as f64 / rest.len() as f64
}

/// The drift of what remains from batch `cut` on, if it is clear and large.
fn drift(subject: Subject, values: &[f64], warmup: usize, cut: usize) -> Option<Drift> {
    let rest = &values[cut..];
    let halves = halves(rest)?;
    let change = halves.second - halves.first;
    // Where what was cut away went the same way, there is less doubt that it goes on.
    let continues = cut > warmup && (middle(rest) - middle(&values[warmup..cut])) * change > 0.0;
    let clear = halves.p <= if continues { SIGNIFICANCE_AFTER_CUT } else { SIGNIFICANCE };
    let large = pace(rest, values.len() - warmup).abs() > MIN_DRIFT;
    let share = match subject {
        Subject::Durations => change.exp_m1(),
        Subject::Throughput => change / halves.first.max(f64::MIN_POSITIVE),
    };
    let standard_errors = change.abs() / halves.standard_error;
    let bends = is_monotonic(rest, if continues { DRIFT_PARTS_AFTER_CUT } else { DRIFT_PARTS });
    (large && (clear || bends)).then_some(Drift { subject, change: share, standard_errors })
}

/// True if the means of this many parts of a series, of two batches or more each, rise from each to
/// the next, or fall.
fn is_monotonic(values: &[f64], parts: usize) -> bool {
    if values.len() < 2 * parts {
        return false;
    }
    let part = |number: usize| values.len() * number / parts;
    let means: Vec<f64> = (0..parts).map(|number| middle(&values[part(number)..part(number + 1)])).collect();
    means.is_sorted_by(|one, next| one < next) || means.is_sorted_by(|one, next| one > next)
}

fn middle(values: &[f64]) -> f64 {
    mean(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
