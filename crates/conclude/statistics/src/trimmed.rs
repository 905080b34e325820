//! The trimmed mean: the mean of what is left when the same share of the values is dropped from either end.

use crate::sample::{mean, sorted};

/// A trimmed mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trimmed {
    /// The mean of the values that are kept.
    pub mean: f64,
    /// The square of its standard error; none where fewer than two values are kept.
    pub squared_error: Option<f64>,
    /// The values that are dropped from either end.
    pub dropped: usize,
}

/// The number of `n` values that are dropped from either end, rounded down.
#[must_use]
pub fn dropped(n: usize, share: f64) -> usize {
    (n as f64 * share.clamp(0.0, 0.499_999)) as usize
}

/// The mean of `values` without `share` of them, rounded down, at either end. `None` for no value, or one that is not
/// finite.
///
/// The standard error is that of Tukey and McLaughlin (1963): with the dropped values replaced by the nearest ones that
/// are kept, their sum of squares around their mean, over h·(h − 1) for h values that are kept. Without trimming it is
/// that of the mean.
#[must_use]
pub fn trimmed(values: &[f64], share: f64) -> Option<Trimmed> {
    let winsorized = Winsorized::of(values, share)?;
    let squared_error = squared_error(&winsorized.values, winsorized.dropped)?;
    Some(Trimmed { mean: winsorized.trimmed_mean, squared_error, dropped: winsorized.dropped })
}

/// The mean of two trimmed means of values that belong together in pairs, as `one[i]` and `other[i]`: each is trimmed by
/// itself. Its error is that of [`trimmed`] for the means of the pairs, whose values are replaced before. `None` also
/// where one has more values than the other.
#[must_use]
pub fn mean_of_trimmed(one: &[f64], other: &[f64], share: f64) -> Option<Trimmed> {
    let [first, second] = [Winsorized::of(one, share)?, Winsorized::of(other, share)?];
    if one.len() != other.len() {
        return None;
    }
    let pairs = first.values.iter().zip(&second.values);
    let means: Vec<f64> = pairs.map(|(one, other)| f64::midpoint(*one, *other)).collect();
    Some(Trimmed {
        mean: f64::midpoint(first.trimmed_mean, second.trimmed_mean),
        squared_error: squared_error(&means, first.dropped)?,
        dropped: first.dropped,
    })
}

/// Values in their order, of which those that are dropped are replaced by the nearest ones that are kept.
struct Winsorized {
    values: Vec<f64>,
    /// The mean of those that are kept.
    trimmed_mean: f64,
    /// How many are replaced at either end.
    dropped: usize,
}

impl Winsorized {
    fn of(values: &[f64], share: f64) -> Option<Winsorized> {
        let sorted = sorted(values);
        let (n, dropped) = (sorted.len(), dropped(sorted.len(), share));
        let trimmed_mean = mean(sorted.get(dropped..n - dropped)?)?;
        let (low, high) = (sorted[dropped], sorted[n - dropped - 1]);
        Some(Winsorized { values: values.iter().map(|value| value.clamp(low, high)).collect(), trimmed_mean, dropped })
    }
}

/// The squared standard error of a trimmed mean from its winsorized values: none within where fewer than two are kept.
fn squared_error(winsorized: &[f64], dropped: usize) -> Option<Option<f64>> {
    let middle = mean(winsorized)?;
    let squares: f64 = winsorized.iter().map(|value| (value - middle).powi(2)).sum();
    let kept = (winsorized.len() - 2 * dropped) as f64;
    Some((kept > 1.0).then(|| squares / (kept * (kept - 1.0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t::one_sample;
    use crate::testing::{Noise, close, samples};
    use proptest::prelude::*;

    #[test]
    fn the_worked_example_of_wilcox_is_met() {
        // Wilcox, Introduction to Robust Estimation and Hypothesis Testing: self-awareness, 20 % trimming of 19 values.
        let values = [
            77.0, 87.0, 88.0, 114.0, 151.0, 210.0, 219.0, 246.0, 253.0, 262.0, 296.0, 299.0, 306.0, 376.0, 428.0,
            515.0, 666.0, 1310.0, 2611.0,
        ];
        let found = trimmed(&values, 0.2).expect("values");
        assert_eq!(found.dropped, 3);
        close(found.mean, 282.7, 0.05);
        // Its error of 56.1 is s/(0.6·√19), as if 0.2 of 19 values were dropped; three are, so that here it is
        // s·√(18/(13·12)) with the same s.
        let expected = 56.1 * 0.6 * 19.0_f64.sqrt() * (18.0_f64 / (13.0 * 12.0)).sqrt();
        close(found.squared_error.expect("several").sqrt(), expected, 0.1);
    }

    #[test]
    fn the_error_of_two_trimmed_means_is_that_of_many() {
        let mut noise = Noise::new(11);
        let (mut means, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..4000 {
            // Each pair shares a value, as the two ratios of one variant do.
            let pairs: Vec<(f64, f64)> = (0..20)
                .map(|_| {
                    let shared = noise.normal();
                    (shared + noise.normal(), shared + noise.normal())
                })
                .collect();
            let [one, other] = [pairs.iter().map(|pair| pair.0).collect(), pairs.iter().map(|pair| pair.1).collect()]
                .map(|values: Vec<f64>| values);
            let found = mean_of_trimmed(&one, &other, 0.25).expect("values");
            means.push(found.mean);
            errors.push(found.squared_error.expect("several"));
        }
        let found = crate::sample::standard_deviation(&means).expect("several").powi(2);
        let said = mean(&errors).expect("values");
        assert!((said / found - 1.0).abs() < 0.12, "{said} of {found}");
        // 1.5 variances of a pair's mean over 20, and a sixth for trimming.
        assert!((found / (1.5 / 20.0) - 1.17).abs() < 0.1, "{found}");
        assert_eq!(mean_of_trimmed(&[1.0], &[1.0, 2.0], 0.25), None);
    }

    #[test]
    fn without_trimming_it_is_the_mean() {
        let values = [1.0, 2.0, 4.0, 9.0];
        let (found, test) = (trimmed(&values, 0.0).expect("values"), one_sample(&values).expect("values"));
        close(found.mean, test.estimate, 1e-12);
        close(found.squared_error.expect("several").sqrt(), test.standard_error, 1e-12);
    }

    #[test]
    fn the_error_is_that_of_many_trimmed_means() {
        let mut noise = Noise::new(3);
        let (mut means, mut errors) = (Vec::new(), 0.0);
        for _ in 0..4_000 {
            let values: Vec<f64> = (0..20).map(|_| noise.normal()).collect();
            let found = trimmed(&values, 0.25).expect("values");
            means.push(found.mean);
            errors += found.squared_error.expect("several") / 4_000.0;
        }
        let variance = crate::standard_deviation(&means).expect("many").powi(2);
        assert!((errors / variance - 1.0).abs() < 0.12, "{errors} for {variance}");
    }

    #[test]
    fn what_has_no_value_is_none() {
        for values in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(trimmed(values, 0.25), None);
        }
        assert_eq!(trimmed(&[7.0], 0.25), Some(Trimmed { mean: 7.0, squared_error: None, dropped: 0 }));
    }

    proptest! {
        #[test]
        fn one_wild_value_is_dropped(values in samples(4..40), wild in prop_oneof![Just(1e12), Just(-1e12)]) {
            let (low, high) = (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(f64::MIN, f64::max));
            let found = trimmed(&[&values[..], &[wild]].concat(), 0.25).expect("values");
            let slack = low.abs().max(high.abs()) * 1e-12;
            prop_assert!(low - slack <= found.mean && found.mean <= high + slack);
        }
    }
}
