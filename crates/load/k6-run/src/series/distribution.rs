//! The distribution of a trend in a series: for its percentiles, or by fixed bounds.
//!
//! A run may have many series with few samples each. So both take memory for what there is, unlike the trends of a
//! whole run.

use crate::metrics::Totals;
use crate::metrics::trend::{STEPS, bound, bucket};
use std::collections::BTreeMap;

/// The form in which trends keep their distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// For percentiles, which are off by at most 0.05 %.
    Percentiles,
    /// By the fixed [`BOUNDS`].
    Buckets,
}

/// The upper bounds of buckets, those that OpenTelemetry's SDKs take by default. A last bucket has what is above.
pub const BOUNDS: [f64; 15] =
    [0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0, 10000.0];

/// Counts by value, rounded towards zero by at most 0.05 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    totals: Totals,
    /// By the number of the bucket, which ascends with the value.
    counts: BTreeMap<i32, u64>,
}

impl Percentiles {
    /// Adds a value; one that is not a number does not count. `room` is how many more buckets there may be. False if the
    /// value would need one, and there is no room.
    pub(super) fn add(&mut self, value: f64, room: &mut usize) -> bool {
        if value.is_nan() {
            return true;
        }
        let (octave, step) = bucket(value);
        if !self.count_in(octave * STEPS as i32 + step as i32, 1, room) {
            return false;
        }
        self.totals.add(value);
        true
    }

    fn count_in(&mut self, bucket: i32, times: u64, room: &mut usize) -> bool {
        if let Some(count) = self.counts.get_mut(&bucket) {
            *count += times;
            return true;
        }
        let Some(left) = room.checked_sub(1) else { return false };
        *room = left;
        self.counts.insert(bucket, times);
        true
    }

    /// Adds another one. Returns how many values there was no room for.
    pub(super) fn merge(&mut self, other: &Percentiles, room: &mut usize) -> u64 {
        let mut lost = 0;
        for (bucket, times) in &other.counts {
            if !self.count_in(*bucket, *times, room) {
                lost += times;
            }
        }
        let taken = other.totals.count - lost;
        let sum = other.totals.avg() * taken as f64;
        self.totals.merge(&Totals { count: taken, sum, ..other.totals });
        lost
    }

    /// Count, sum and extremes of the values.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The value below which so many per cent of the values lie.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> f64 {
        self.totals.percentile(percent, |rank| self.ranked(rank))
    }

    /// The value of this rank, from 0.
    fn ranked(&self, rank: u64) -> f64 {
        let mut before = 0;
        let place = self.counts.iter().find(|(_, count)| {
            before += **count;
            before > rank
        });
        match place {
            Some((bucket, _)) if rank + 1 < self.totals.count => {
                let steps = STEPS as i32;
                bound(bucket.div_euclid(steps), bucket.rem_euclid(steps) as usize)
                    .clamp(self.totals.least, self.totals.greatest)
            }
            _ => self.totals.greatest,
        }
    }
}

/// Counts by fixed bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// Count, sum and extremes of the values.
    pub totals: Totals,
    /// The number of values up to each of the [`BOUNDS`] and above the one before it, and last of those above all bounds.
    pub counts: [u64; BOUNDS.len() + 1],
}

impl Buckets {
    /// Adds a value; one that is not a number does not count.
    pub(super) fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.totals.add(value);
        self.counts[BOUNDS.partition_point(|bound| *bound < value)] += 1;
    }

    /// Adds another one.
    pub(super) fn merge(&mut self, other: &Buckets) {
        self.totals.merge(&other.totals);
        self.counts.iter_mut().zip(other.counts).for_each(|(own, other)| *own += other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Trend;
    use proptest::prelude::*;

    const PERCENTS: [f64; 5] = [0.0, 37.0, 50.0, 99.0, 100.0];

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_trend_of_a_whole_run(
            values in prop::collection::vec(prop_oneof![-1e9..1e9, -1.0..1.0, Just(0.0), 1e-300..1e-290], 1..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let (mut trend, mut room) = (Trend::default(), usize::MAX);
            let (mut first, mut second) = (Percentiles::default(), Percentiles::default());
            let cut = cut.index(values.len());
            for (index, value) in values.iter().enumerate() {
                trend.add(*value);
                let part = if index < cut { &mut first } else { &mut second };
                prop_assert!(part.add(*value, &mut room));
            }
            prop_assert_eq!(first.merge(&second, &mut room), 0);
            prop_assert_eq!(
                (first.totals().count, first.totals().min(), first.totals().max(), PERCENTS.map(|percent| first.percentile(percent))),
                (trend.totals().count, trend.totals().min(), trend.totals().max(), PERCENTS.map(|percent| trend.percentile(percent)))
            );
            let (own, whole) = (first.totals().avg(), trend.totals().avg());
            prop_assert!((own - whole).abs() <= whole.abs() * 1e-9 + 1e-6);
        }
    }

    #[test]
    fn a_distribution_without_values_is_zero() {
        let (mut none, mut room) = (Percentiles::default(), 0);
        assert!(none.add(f64::NAN, &mut room), "a value that is none takes no room");
        let totals = none.totals();
        assert_eq!((totals.count, totals.avg(), totals.min(), totals.max()), (0, 0.0, 0.0, 0.0));
        assert_eq!(none.percentile(99.0), 0.0);
    }

    #[test]
    fn a_value_counts_below_the_bound_that_it_equals() {
        let mut buckets = Buckets::default();
        for value in [-1.0, 0.0, 0.1, 5.0, 5.1, 10000.0, 10000.1, f64::NAN] {
            buckets.add(value);
        }
        let mut expected = [0; BOUNDS.len() + 1];
        (expected[0], expected[1], expected[2], expected[14], expected[15]) = (2, 2, 1, 1, 1);
        let totals = buckets.totals;
        assert_eq!((buckets.counts, totals.count, totals.least, totals.greatest), (expected, 7, -1.0, 10000.1));
        let mut twice = buckets.clone();
        twice.merge(&buckets);
        assert_eq!((twice.totals.count, twice.counts[0], twice.totals.sum), (14, 4, 2.0 * totals.sum));
    }
}
