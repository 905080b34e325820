//! Recorded durations as values with counts.
//!
//! All numbers of a cell come from one such list, in which each duration is the middle of the
//! durations that its histogram does not distinguish. So the numbers of a cell agree with one
//! another: the median is never further from the mean than the standard deviation.

use crate::measure::values_needed;
use hdrhistogram::Histogram;
use plimsoll_model::measure::Statistic;

/// Durations in seconds, ascending, with the count of each; never empty.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    values: Vec<(f64, u64)>,
    count: u64,
}

impl Distribution {
    /// The contents of a histogram of nanoseconds, if it has any.
    pub(super) fn new(histogram: &Histogram<u64>) -> Option<Distribution> {
        let values = histogram.iter_recorded().map(|one| {
            let nanoseconds = histogram.median_equivalent(one.value_iterated_to());
            (nanoseconds as f64 / 1e9, one.count_at_value())
        });
        (!histogram.is_empty()).then(|| Distribution { values: values.collect(), count: histogram.len() })
    }

    /// Number of durations.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the durations.
    pub(super) fn total(&self) -> f64 {
        self.values.iter().map(|(value, count)| value * *count as f64).sum()
    }

    pub(super) fn mean(&self) -> f64 {
        self.total() / self.count as f64
    }

    /// The standard deviation of a sample; none for one value.
    pub(super) fn sd(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|(value, count)| (value - mean).powi(2) * *count as f64).sum();
        (self.count > 1).then(|| (squares / (self.count - 1) as f64).sqrt())
    }

    /// The shortest and the longest.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.values[0].0, self.values[self.values.len() - 1].0)
    }

    pub(super) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// A percentile; none where too few values lie beyond it.
    pub(super) fn percentile(&self, p: f64) -> Option<f64> {
        let needed = values_needed(Statistic::Percentile(p))?;
        (self.count >= needed).then(|| self.quantile(p / 100.0))
    }

    /// The number and the sum of the durations above `limit`.
    pub(super) fn beyond(&self, limit: f64) -> (u64, f64) {
        let beyond = self.values.iter().filter(|(value, _)| *value > limit);
        beyond.fold((0, 0.0), |(count, total), (value, times)| (count + times, total + value * *times as f64))
    }

    fn quantile(&self, share: f64) -> f64 {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        let reaches = |(_, count): &&(f64, u64)| {
            seen += count;
            seen >= rank
        };
        self.values.iter().find(reaches).expect("all of them together reach any rank").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(nanoseconds: &[u64]) -> Distribution {
        let mut histogram = plimsoll_model::record::histogram();
        nanoseconds.iter().for_each(|value| histogram.record(*value).expect("in range"));
        Distribution::new(&histogram).expect("values")
    }

    #[test]
    fn small_numbers_are_kept_as_they_are() {
        let known = of(&[100, 200, 200, 500]);
        assert!((known.mean() - 250e-9).abs() < 1e-15 && known.median() == 200e-9);
        assert!((known.sd().expect("a spread") - 173.205e-9).abs() < 1e-12);
        assert_eq!(known.beyond(200e-9), (1, 500e-9));
        assert_eq!((of(&[7]).sd(), of(&[7, 7]).sd()), (None, Some(0.0)));
    }

    #[test]
    fn a_percentile_takes_ten_values_beyond_it() {
        let known = of(&(1..=100).collect::<Vec<u64>>());
        assert_eq!((known.percentile(75.0), known.percentile(95.0)), (Some(75e-9), None));
    }

    proptest! {
        #[test]
        fn the_median_is_never_further_from_the_mean_than_the_standard_deviation(
            values in prop::collection::vec(1_u64..3_600_000_000_000, 2..60),
        ) {
            let known = of(&values);
            let sd = known.sd().expect("two values");
            prop_assert!((known.mean() - known.median()).abs() <= sd * (1.0 + 1e-9) + known.mean() * 1e-12);
        }
    }
}
