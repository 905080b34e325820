//! Hierarchical data: iterations within trials within builds, each level with a variance of its
//! own.
//!
//! Kalibera and Jones, *Rigorous Benchmarking in Reasonable Time* (2013) and *Quantifying
//! Performance Changes with Effect Size Confidence Intervals* (2012, arXiv 2007.10899). Level 1 is
//! the lowest, at which values are measured; only the highest level gives independent data, so only
//! its repetitions count as n.

use crate::sample::{Interval, mean};
use crate::t::{TTest, t_quantile};

/// A balanced nested design, decomposed into the variance of each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// The mean of all values.
    pub mean: f64,
    /// The repetitions at each level, the lowest first; each 2 or more.
    pub repetitions: Vec<usize>,
    /// S²: the variance of the means at each level around those of the level above, the lowest
    /// level first. It includes variance from the levels below.
    pub biased: Vec<f64>,
    /// T²: the variance that each level itself adds, the lowest first. Below zero where a level
    /// varies less by chance than the levels below it: repetitions there gain nothing.
    pub unbiased: Vec<f64>,
}

impl Levels {
    /// Decomposes `values`, which stand in order of the highest level, then the next, and so on;
    /// `repetitions` has how many there are at each, the highest first. `None` unless every level
    /// has two or more, and their product is the number of values, which are all finite.
    ///
    /// Sᵢ² is the sum of squares of level-i means around the mean of their group, over the number
    /// of groups times rᵢ − 1; T₁² = S₁², Tᵢ² = Sᵢ² − Sᵢ₋₁²/rᵢ₋₁.
    #[must_use]
    pub fn new(values: &[f64], repetitions: &[usize]) -> Option<Levels> {
        let expected = repetitions.iter().try_fold(1_usize, |product, count| product.checked_mul(*count))?;
        if repetitions.is_empty() || repetitions.iter().any(|count| *count < 2) || values.len() != expected {
            return None;
        }
        let mut means = values.to_vec();
        let (mut biased, mut unbiased): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        let lowest_first: Vec<usize> = repetitions.iter().rev().copied().collect();
        for (level, &count) in lowest_first.iter().enumerate() {
            let above: Vec<f64> = means.chunks(count).map(mean).collect::<Option<_>>()?;
            let squares: f64 = means
                .chunks(count)
                .zip(&above)
                .flat_map(|(group, middle)| group.iter().map(move |value| (value - middle).powi(2)))
                .sum();
            let variance = squares / (above.len() * (count - 1)) as f64;
            let from_below = if level == 0 { 0.0 } else { biased[level - 1] / lowest_first[level - 1] as f64 };
            biased.push(variance);
            unbiased.push(variance - from_below);
            means = above;
        }
        let fine = means[0].is_finite() && biased.iter().chain(&unbiased).all(|variance| variance.is_finite());
        fine.then_some(Levels { mean: means[0], repetitions: lowest_first, biased, unbiased })
    }

    /// How often each level below the highest should be repeated for the least cost, the lowest
    /// first, before rounding up; `costs` is what one repetition takes at each level, the highest
    /// first. rᵢ = √(cᵢ₊₁/cᵢ · Tᵢ²/Tᵢ₊₁²), and 1 where Tᵢ² is not above zero. An element is `None`
    /// where the level above adds no variance, so that more here never hurts; all is `None` where
    /// the costs do not fit the levels or are not above zero.
    #[must_use]
    pub fn optimal_repetitions(&self, costs: &[f64]) -> Option<Vec<Option<f64>>> {
        let fine = costs.len() == self.repetitions.len() && costs.iter().all(|cost| *cost > 0.0 && cost.is_finite());
        if !fine {
            return None;
        }
        let costs: Vec<f64> = costs.iter().rev().copied().collect();
        let optimum = |level: usize| {
            let (here, above) = (self.unbiased[level], self.unbiased[level + 1]);
            match (here > 0.0, above > 0.0) {
                (false, _) => Some(1.0),
                (true, false) => None,
                (true, true) => Some((costs[level + 1] / costs[level]).sqrt() * (here / above).sqrt()),
            }
        };
        Some((0..costs.len() - 1).map(optimum).collect())
    }

    /// The mean as a t test: the standard error is √(Sₙ²/rₙ) of the highest level, whose rₙ − 1 are
    /// the degrees of freedom.
    #[must_use]
    pub fn mean_test(&self) -> TTest {
        let highest = self.repetitions.len() - 1;
        let count = self.repetitions[highest] as f64;
        TTest { estimate: self.mean, standard_error: (self.biased[highest] / count).sqrt(), df: count - 1.0 }
    }

    /// The interval of this mean over that of `base`, by [`ratio_interval`].
    #[must_use]
    pub fn ratio_to(&self, base: &Levels, confidence: f64) -> Option<Interval> {
        ratio_interval(&self.mean_test(), &base.mean_test(), confidence)
    }
}

/// The interval of the ratio `new` over `base` of two independent means, by Fieller's theorem:
/// (Y·Y' ± √((Y·Y')² − (Y² − h²)(Y'² − h'²))) / (Y² − h²), with h and h' the half widths of the
/// intervals of the base Y and the new mean Y'. `None` where the interval of the base holds zero:
/// any ratio is possible then.
///
/// Fieller, *Some problems in interval estimation* (1954).
#[must_use]
pub fn ratio_interval(new: &TTest, base: &TTest, confidence: f64) -> Option<Interval> {
    let half = |test: &TTest| {
        if test.standard_error == 0.0 {
            0.0
        } else {
            t_quantile(f64::midpoint(1.0, confidence), test.df).max(0.0) * test.standard_error
        }
    };
    // In units of the base mean, so that no square leaves the range of numbers.
    let (mean, h, h_base) =
        (new.estimate / base.estimate, half(new) / base.estimate.abs(), half(base) / base.estimate.abs());
    let below = 1.0 - h_base * h_base;
    if base.estimate == 0.0 || below.is_nan() || below <= 0.0 {
        return None;
    }
    let root = (h * h * below + mean * mean * h_base * h_base).sqrt();
    let interval = Interval { low: (mean - root) / below, high: (mean + root) / below };
    (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t::one_sample;
    use crate::testing::{Noise, close, samples};
    use proptest::prelude::*;

    /// The worked example of Kalibera and Jones 2013.
    const WORKED: [f64; 12] = [9.0, 5.0, 8.0, 3.0, 10.0, 6.0, 7.0, 11.0, 1.0, 12.0, 2.0, 4.0];
    /// The example of libkalibera, test_data.py.
    const LIBRARY: [f64; 12] = [3.0, 4.0, 3.0, 1.2, 3.1, 3.0, 0.2, 1.0, 1.5, 1.0, 2.0, 3.0];

    #[track_caller]
    fn all_close(found: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            close(*found, *expected, tolerance);
        }
    }

    #[test]
    fn the_worked_examples_of_libkalibera_are_met() {
        // softdevteam/libkalibera, python/tests/test_data.py.
        let three = Levels::new(&WORKED, &[3, 2, 2]).unwrap();
        assert_eq!(three.mean, 6.5);
        all_close(&three.biased, &[16.5, 2.6, 3.6], 0.051);
        all_close(&three.unbiased, &[16.5, -5.7, 2.3], 0.051);
        let two = Levels::new(&WORKED, &[3, 4]).unwrap();
        assert_eq!(two.mean, 6.5);
        all_close(&two.biased, &[12.7, 3.6], 0.051);
        all_close(&two.unbiased, &[12.7, 0.4], 0.051);
        let library = Levels::new(&LIBRARY, &[2, 2, 3]).unwrap();
        close(library.biased[0], 0.726_67, 5e-6);
        all_close(&library.unbiased, &[0.726_666_7, 0.262_777_778, 0.7747], 5e-5);
        let optimum: Vec<f64> =
            library.optimal_repetitions(&[100.0, 20.0, 3.0]).unwrap().into_iter().flatten().collect();
        all_close(&optimum, &[4.2937, 1.3023], 5e-5);
        assert_eq!(optimum.iter().map(|count| count.ceil()).collect::<Vec<_>>(), [5.0, 2.0]);
        // A level that adds nothing is not worth repeating.
        assert_eq!(three.optimal_repetitions(&[100.0, 20.0, 3.0]), Some(vec![None, Some(1.0)]));
    }

    #[test]
    fn only_the_highest_level_counts() {
        let levels = Levels::new(&WORKED, &[3, 2, 2]).unwrap();
        let builds = one_sample(&[6.25, 8.5, 4.75]).unwrap();
        let test = levels.mean_test();
        close(test.standard_error, builds.standard_error, 1e-12);
        assert_eq!(test.df, 2.0);
    }

    #[test]
    fn without_an_error_of_the_base_the_ratio_is_that_of_the_interval() {
        let base = TTest { estimate: 2.0, standard_error: 0.0, df: 4.0 };
        let new = TTest { estimate: 3.0, standard_error: 0.1, df: 4.0 };
        let (found, interval) = (ratio_interval(&new, &base, 0.95).unwrap(), new.interval(0.95));
        close(found.low, interval.low / 2.0, 1e-12);
        close(found.high, interval.high / 2.0, 1e-12);
        assert_eq!(ratio_interval(&new, &TTest { estimate: 0.1, standard_error: 1.0, df: 4.0 }, 0.95), None);
        assert_eq!(ratio_interval(&new, &TTest { estimate: 0.0, standard_error: 0.0, df: 4.0 }, 0.95), None);
    }

    #[test]
    fn the_ratio_interval_covers_the_ratio() {
        // Two levels: 6 trials of 10 iterations, whose own spread is a third of that of trials.
        let mut noise = Noise::new(11);
        let mut study = |mean: f64| {
            let mut values = Vec::new();
            for _ in 0..6 {
                let trial = mean * (1.0 + 0.03 * noise.normal());
                values.extend((0..10).map(|_| trial * (1.0 + 0.01 * noise.normal())).collect::<Vec<f64>>());
            }
            Levels::new(&values, &[6, 10]).unwrap()
        };
        let runs = 4_000;
        let covered = (0..runs).filter(|_| {
            let (base, new) = (study(1.0), study(1.1));
            new.ratio_to(&base, 0.95).unwrap().contains(1.1)
        });
        let share = covered.count() as f64 / f64::from(runs);
        // Fieller with separate quantiles of t is a little wide for few trials.
        assert!((0.945..0.985).contains(&share), "{share}");
    }

    #[test]
    fn what_does_not_fit_is_none() {
        for (values, repetitions) in [
            (&[][..], &[][..]),
            (&[1.0, 2.0], &[]),
            (&[1.0, 2.0], &[2, 1]),
            (&[1.0, 2.0, 3.0], &[2, 2]),
            (&[1.0, f64::NAN], &[2]),
        ] {
            assert_eq!(Levels::new(values, repetitions), None);
        }
        let levels = Levels::new(&WORKED, &[3, 4]).unwrap();
        assert_eq!(levels.optimal_repetitions(&[1.0]), None);
        assert_eq!(levels.optimal_repetitions(&[1.0, 0.0]), None);
    }

    proptest! {
        #[test]
        fn any_values_give_numbers_or_none(values in samples(12..13), other in samples(12..13)) {
            let levels = Levels::new(&values, &[3, 2, 2]);
            if let Some(levels) = &levels {
                prop_assert!(levels.biased.iter().all(|variance| *variance >= 0.0));
                let _ = levels.optimal_repetitions(&[100.0, 20.0, 3.0]);
            }
            if let (Some(new), Some(base)) = (levels, Levels::new(&other, &[3, 2, 2]))
                && let Some(ratio) = new.ratio_to(&base, 0.95)
            {
                prop_assert!(ratio.low <= ratio.high);
            }
        }
    }
}
