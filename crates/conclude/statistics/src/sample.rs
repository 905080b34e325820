//! Summary statistics of a sample: mean, standard deviation, median, and the interval type.

/// A range of values, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end; may be minus infinity.
    pub low: f64,
    /// The upper end; may be infinity.
    pub high: f64,
}

impl Interval {
    /// True if `value` lies inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half the distance between the ends.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.high / 2.0 - self.low / 2.0
    }

    /// The interval of the value with its sign turned.
    #[must_use]
    pub fn negated(&self) -> Interval {
        Interval { low: -self.high, high: -self.low }
    }
}

/// The arithmetic mean; `None` for no value, or one that is not finite.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    // A sum can leave the range of numbers although the mean does not.
    Some(if mean.is_finite() { mean } else { values.iter().map(|value| value / n).sum() })
}

/// The standard deviation of a sample, with n − 1; `None` for fewer than two values, a value that
/// is not finite, or a spread beyond the range of numbers.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    // Exactly equal values have no spread, whatever rounding made of their mean.
    if values.iter().all(|value| *value == values[0]) {
        return Some(0.0);
    }
    // Squares of very large or very small numbers leave the range, so they are taken in units of
    // the largest deviation.
    let largest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if !largest.is_finite() {
        return None;
    }
    let squares: f64 = values.iter().map(|value| ((value - mean) / largest).powi(2)).sum();
    let deviation = largest * (squares / (values.len() - 1) as f64).sqrt();
    deviation.is_finite().then_some(deviation)
}

/// The median, the mean of the two middle values where their number is even; `None` for no value,
/// or one that is not finite.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) })
}

/// `values` in ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{close, samples};
    use proptest::prelude::*;

    #[test]
    fn few_numbers_come_to_what_they_should() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        close(standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap(), (32.0_f64 / 7.0).sqrt(), 1e-15);
        assert_eq!(standard_deviation(&[0.1, 0.1, 0.1]), Some(0.0));
    }

    #[test]
    fn the_numerical_accuracy_sets_of_nist_are_met() {
        // NIST StRD, univariate, NumAcc1 to NumAcc4: certified mean and standard deviation.
        let around = |middle: f64, count: usize| {
            let swing = (0..count - 1).map(|index| if index % 2 == 0 { middle - 0.1 } else { middle + 0.1 });
            std::iter::once(middle).chain(swing).collect::<Vec<f64>>()
        };
        let table = [
            (vec![10_000_001.0, 10_000_003.0, 10_000_002.0], 10_000_002.0, 1.0, 1e-14),
            (around(1.2, 1001), 1.2, 0.1, 1e-13),
            (around(1_000_000.2, 1001), 1_000_000.2, 0.1, 1e-9),
            (around(10_000_000.2, 1001), 10_000_000.2, 0.1, 1e-8),
        ];
        for (values, middle, sd, digits) in table {
            close(mean(&values).unwrap() / middle, 1.0, 1e-14);
            close(standard_deviation(&values).unwrap() / sd, 1.0, digits);
        }
    }

    #[test]
    fn what_has_no_value_is_none() {
        for values in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(mean(values), None);
            assert_eq!(median(values), None);
            assert_eq!(standard_deviation(values), None);
        }
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(standard_deviation(&[f64::MAX, -f64::MAX]), None);
    }

    #[test]
    fn numbers_at_the_ends_of_their_range_are_fine() {
        assert_eq!(mean(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        close(standard_deviation(&[1e-300, 3e-300]).unwrap(), 2e-300_f64 / 2.0_f64.sqrt(), 1e-310);
    }

    #[test]
    fn an_interval_knows_its_ends() {
        let interval = Interval { low: -1.0, high: 3.0 };
        assert!(interval.contains(-1.0) && interval.contains(3.0) && !interval.contains(3.1));
        assert_eq!(interval.half_width(), 2.0);
        assert_eq!(interval.negated(), Interval { low: -3.0, high: 1.0 });
    }

    proptest! {
        #[test]
        fn mean_and_median_lie_between_the_extremes(values in samples(1..40)) {
            let (low, high) = (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(f64::MIN, f64::max));
            let slack = (high.abs().max(low.abs())) * 1e-12;
            for value in [mean(&values).unwrap(), median(&values).unwrap()] {
                prop_assert!(low - slack <= value && value <= high + slack);
            }
            if let Some(sd) = standard_deviation(&values) {
                prop_assert!(sd >= 0.0 && sd.is_finite());
            }
        }
    }
}
