//! Detects the end of the warm-up of a series, from which on it is steady.
//!
//! [`mser`] is the rule of the literature for truncating a series: the marginal standard error rule
//! over batches of five. White, *An effective truncation heuristic for bias reduction in simulation
//! output* (1997); Spratt (1998); White, Cobb and Spratt, *A comparison of five steady-state
//! truncation heuristics for simulation* (2000).
//!
//! [`steadiness`] is Plimsoll's rule for a trial, which is based on it. MSER alone removes a good
//! part of most steady series by chance: it always gives the best cut, however small its gain. As a
//! study uses one cut for all its trials, the worst of them would decide. So a cut counts only
//! where the removed part really differs from the rest, beyond noise with autocorrelation; and a
//! trial is never steady only where the rest still moves.

mod noise;
mod verdict;

use crate::sample::mean;

pub(crate) use noise::Noise;
pub use noise::{Halves, halves, later_halves};
pub use verdict::{Drift, Steadiness, Subject, steadiness};

/// Observations in a batch.
pub const BATCH: usize = 5;

/// The best truncation of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truncation {
    /// The number of values to remove at its start.
    pub cut: usize,
    /// The statistic there: the square of the standard error of what remains, had it no
    /// autocorrelation.
    pub statistic: f64,
}

/// The marginal standard error rule: the cut d in 0..=n/2 with the least Σ(zⱼ − z̄)²/(n − d)² over
/// what remains, the smaller one of several. A cut of n/2 means that the series is too short to
/// tell. `None` for fewer than four values, or one that is not finite.
#[must_use]
pub fn mser(values: &[f64]) -> Option<Truncation> {
    if values.len() < 4 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    Some(mser_within(values, values.len() / 2))
}

/// The means of consecutive batches of `size` values; what does not fill the last batch is left
/// out. Empty where `size` is zero or a value is not finite.
#[must_use]
pub fn batch_means(values: &[f64], size: usize) -> Vec<f64> {
    if size == 0 {
        return Vec::new();
    }
    values.chunks_exact(size).map(mean).collect::<Option<_>>().unwrap_or_default()
}

/// [`mser`] over the means of batches of five, the cut counted in observations.
#[must_use]
pub fn mser5(values: &[f64]) -> Option<Truncation> {
    let found = mser(&batch_means(values, BATCH))?;
    Some(Truncation { cut: found.cut * BATCH, ..found })
}

/// [`mser`] over finite values with cuts up to `last`, which leaves at least one value.
fn mser_within(values: &[f64], last: usize) -> Truncation {
    // In units of the largest value, so that no square leaves the range of numbers.
    let largest = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let unit = if largest > 0.0 { largest } else { 1.0 };
    let mut best = Truncation { cut: 0, statistic: f64::INFINITY };
    // From the end: count, mean, and sum of squares around it (Welford 1962).
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (index, value) in values.iter().enumerate().rev() {
        let value = value / unit;
        count += 1.0;
        let distance = value - mean;
        mean += distance / count;
        squares += distance * (value - mean);
        let statistic = squares / (count * count);
        if index <= last && statistic <= best.statistic {
            best = Truncation { cut: index, statistic };
        }
    }
    Truncation { statistic: best.statistic * unit * unit, ..best }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, close, samples};
    use proptest::prelude::*;

    /// The rule as its formula stands.
    fn by_definition(values: &[f64]) -> Vec<f64> {
        let statistic = |d: usize| {
            let rest = &values[d..];
            let middle = mean(rest).unwrap();
            let squares: f64 = rest.iter().map(|value| (value - middle).powi(2)).sum();
            squares / (rest.len() as f64).powi(2)
        };
        (0..=values.len() / 2).map(statistic).collect()
    }

    #[test]
    fn the_rule_is_its_formula() {
        let mut noise = testing::Noise::new(5);
        for n in [4, 7, 40, 241] {
            for start in [0.0, 3.0, -10.0] {
                let series: Vec<f64> =
                    (0..n).map(|j| 100.0 + start * (-(j as f64) / 9.0).exp() + noise.normal()).collect();
                let (found, statistics) = (mser(&series).unwrap(), by_definition(&series));
                let least = statistics.iter().copied().fold(f64::INFINITY, f64::min);
                close(found.statistic / least, 1.0, 1e-9);
                close(statistics[found.cut] / least, 1.0, 1e-9);
            }
        }
    }

    #[test]
    fn the_published_example_comes_out() {
        // pyMSER's README: start of equilibrated data 13368 of 48613, average 22.4197 after it. It takes
        // the rule without batches; with batches of five the cut is the batch that holds that start.
        let text = include_str!("steady/pymser_example.txt");
        let runs = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
        let series: Vec<f64> = runs
            .flat_map(|run| {
                let (level, cycles) = run.split_once('x').unwrap_or((run, "1"));
                let value = level.parse::<f64>().unwrap() * 22.280_287_162_8 / 553.0;
                std::iter::repeat_n(value, cycles.parse().unwrap())
            })
            .collect();
        assert_eq!(series.len(), 48_613);
        let found = mser(&series).unwrap();
        assert_eq!(found.cut, 13_368);
        close(mean(&series[found.cut..]).unwrap(), 22.4197, 5e-5);
        assert_eq!(mser5(&series).unwrap().cut, 13_365);
    }

    /// `n` whole numbers of noise on top of a start that falls from `start` to nothing over `length`
    /// values. The noise is the sum of four draws of ANSI C's linear congruential generator.
    fn noise_after_a_start(seed: u64, n: usize, start: i64, length: usize) -> Vec<f64> {
        let mut state = seed;
        let mut draw = || {
            state = (1_103_515_245 * state + 12_345) % (1 << 31);
            (state >> 16) as i64
        };
        let value = |j: usize| {
            let noise: i64 = (0..4).map(|_| draw()).sum();
            let left = length.saturating_sub(j) as i64;
            if length == 0 { noise } else { noise + (start * left).div_euclid(length as i64) }
        };
        (0..n).map(value).map(|value| value as f64).collect()
    }

    #[test]
    fn published_implementations_cut_batches_of_five_at_the_same_place() {
        // kim-convergence 0.1.0, mser_m with batches of 5, for these series; pymser 1.0.22 answers
        // the same, but for the two of 500 values with seed 2: it has no limit of n/2 there, and
        // takes a minimum among the last values.
        let cases = [
            (100, 0, 0),
            (203, 200_000, 20),
            (500, 60_000, 90),
            (500, -150_000, 60),
            (1000, 400_000, 300),
            (2400, -30_000, 700),
        ];
        let cuts = [[10, 20, 60, 55, 295, 485], [0, 20, 75, 60, 290, 350], [0, 20, 90, 50, 300, 425]];
        for (seed, cuts) in (1..).zip(cuts) {
            for ((n, start, length), cut) in cases.into_iter().zip(cuts) {
                let found = mser5(&noise_after_a_start(seed, n, start, length)).unwrap();
                assert_eq!(found.cut, cut, "seed {seed}, {n} values, start {start} over {length}");
            }
        }
    }

    #[test]
    fn cuts_by_hand_come_out() {
        // The remainder without spread has the statistic 0, the first such cut counts.
        assert_eq!(mser(&[9.0, 5.0, 1.0, 1.0, 1.0, 1.0]), Some(Truncation { cut: 2, statistic: 0.0 }));
        // d = 0: 2/16; d = 1: (2/3)/9 = 0.0741; d = 2: 0.5/4.
        let found = mser(&[2.0, 1.0, 0.0, 1.0]).unwrap();
        assert_eq!(found.cut, 1);
        close(found.statistic, 2.0 / 27.0, 1e-15);
        assert_eq!(mser(&[3.0; 10]).unwrap().cut, 0);
        assert_eq!(mser(&[1.0, 2.0, 3.0]), None);
        assert_eq!(mser(&[1.0, 2.0, 3.0, f64::NAN]), None);
    }

    #[test]
    fn batches_leave_out_what_does_not_fill_one() {
        assert_eq!(batch_means(&[1.0, 3.0, 5.0, 7.0, 100.0], 2), [2.0, 6.0]);
        assert!(batch_means(&[1.0], 0).is_empty() && batch_means(&[1.0], 2).is_empty());
        let mut series = vec![50.0; 15];
        series.extend(vec![1.0; 60]);
        series.extend(vec![2.0; 3]);
        assert_eq!(mser5(&series).unwrap().cut, 15);
    }

    #[test]
    fn the_cases_of_kim_convergence_come_out() {
        // openkim/kim-convergence, tests/test_mser_m.py, with noise of our own: a constant series is
        // not cut; a ramp of ten before a steady thousand is; one that never ends, or takes half of the series, reaches the limit.
        let mut noise = testing::Noise::new(12_345);
        let steady: Vec<f64> = (0..1000).map(|_| 10.0 + noise.uniform() - 0.5).collect();
        assert_eq!(mser5(&[1.0; 100]).unwrap().cut, 0);
        for ramp in [(0..10).map(f64::from).collect::<Vec<_>>(), (11..=20).rev().map(f64::from).collect()] {
            let series: Vec<f64> = ramp.into_iter().chain(steady.iter().copied()).collect();
            assert!(mser5(&series).unwrap().cut >= 10);
        }
        let ramp: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(mser5(&ramp).unwrap().cut, 50);
        let long: Vec<f64> = (0..1000).map(|j| f64::from(j) / 100.0 + noise.uniform() - 0.5).chain(steady).collect();
        assert!(mser5(&long).unwrap().cut >= 950);
    }

    proptest! {
        #[test]
        fn any_series_gives_a_cut_or_none(values in samples(0..80)) {
            if let Some(found) = mser(&values) {
                prop_assert!(found.cut <= values.len() / 2 && found.statistic >= 0.0);
            }
            let _ = mser5(&values);
        }

        #[test]
        fn the_cut_does_not_hang_on_the_unit(values in prop::collection::vec(-100..100, 4..60), shift in -50..50) {
            let series: Vec<f64> = values.iter().copied().map(f64::from).collect();
            let moved: Vec<f64> = values.iter().map(|value| 8.0 * f64::from(value + shift)).collect();
            let (here, there) = (mser(&series).unwrap(), mser(&moved).unwrap());
            // Rounding may choose between two cuts that are equally good.
            let statistics = by_definition(&series);
            prop_assert!((statistics[here.cut] - statistics[there.cut]).abs() <= 1e-9 * (1.0 + statistics[here.cut]));
        }
    }
}
