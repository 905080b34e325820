//! The distribution of a trend's samples, in bounded memory.
//!
//! Values are counted in buckets, 2,048 to each power of two, by the top bits of their floating-point
//! form. So a percentile is at most 0.05 % too near to zero, for any values. Whole numbers below 4,096
//! are exact, and so are the least and the greatest value.

use super::Totals;
use serde::{Deserialize, Serialize};

/// The bits of the mantissa that select a bucket.
const STEP_BITS: u32 = 11;

/// The buckets of an octave.
pub(crate) const STEPS: usize = 1 << STEP_BITS;

/// The greatest key of an octave: the exponent of the greatest floating-point numbers.
const LAST_KEY: u32 = 0x7ff;

/// Counts, sum, extremes and buckets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "SparseTrend", try_from = "SparseTrend")]
pub struct Trend {
    totals: Totals,
    /// Zeros, which are nearly all values of some trends, such as the time to connect.
    zeros: u64,
    /// The buckets of each power of two and sign, in ascending order of values, from the least octave to the greatest; none
    /// for an octave without values.
    octaves: Vec<Option<Box<Counts>>>,
    /// The key of the first octave.
    first: i32,
}

type Counts = [u64; STEPS];

/// A trend with its filled buckets alone, as it goes to another process.
#[derive(Serialize, Deserialize)]
struct SparseTrend {
    totals: Totals,
    zeros: u64,
    /// The key of the octave, the step in it, and the count of each bucket.
    buckets: Vec<(i32, usize, u64)>,
}

impl From<Trend> for SparseTrend {
    fn from(trend: Trend) -> SparseTrend {
        let of_octave = |(key, counts): (i32, &Counts)| -> Vec<(i32, usize, u64)> {
            let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            filled.map(|(step, count)| (key, step, *count)).collect()
        };
        let buckets = trend.counts().flat_map(of_octave).collect();
        SparseTrend { totals: trend.totals, zeros: trend.zeros, buckets }
    }
}

impl TryFrom<SparseTrend> for Trend {
    type Error = String;

    fn try_from(sparse: SparseTrend) -> Result<Trend, String> {
        let mut trend = Trend { totals: sparse.totals, zeros: sparse.zeros, ..Trend::default() };
        for (key, step, count) in sparse.buckets {
            if key == 0 || key.unsigned_abs() > LAST_KEY || step >= STEPS {
                return Err(format!("there is no bucket {step} of the octave {key}"));
            }
            let known = &mut trend.octave(key)[step];
            *known = known.saturating_add(count);
        }
        Ok(trend)
    }
}

impl Trend {
    /// Adds a value; one that is not a number does not count.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.totals.add(value);
        match bucket(value) {
            (0, _) => self.zeros += 1,
            (key, step) => self.octave(key)[step] += 1,
        }
    }

    /// Merges another trend.
    pub fn merge(&mut self, other: &Trend) {
        self.totals.merge(&other.totals);
        self.zeros += other.zeros;
        for (key, counts) in other.counts() {
            self.octave(key).iter_mut().zip(counts).for_each(|(own, other)| *own += other);
        }
    }

    #[inline]
    fn octave(&mut self, key: i32) -> &mut Counts {
        // A key before the first one wraps to an index beyond the last.
        let place = key.wrapping_sub(self.first) as usize;
        if !matches!(self.octaves.get(place), Some(Some(_))) {
            self.make_room(key);
        }
        self.octaves[(key - self.first) as usize].as_mut().expect("it was made")
    }

    #[cold]
    fn make_room(&mut self, key: i32) {
        if self.octaves.is_empty() {
            self.first = key;
        }
        let before = (self.first - key).max(0) as usize;
        self.octaves.splice(..0, (0..before).map(|_| None));
        self.first -= before as i32;
        let all = (key - self.first + 1) as usize;
        self.octaves.resize_with(all.max(self.octaves.len()), || None);
        self.octaves[all - 1].get_or_insert_with(|| Box::new([0; STEPS]));
    }

    /// The octaves that have values, by key.
    fn counts(&self) -> impl Iterator<Item = (i32, &Counts)> {
        (self.first..).zip(&self.octaves).filter_map(|(key, counts)| Some((key, &**counts.as_ref()?)))
    }

    /// Count, sum and extremes of the values.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The value below which so many per cent of the values lie, between two of them by proportion.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> f64 {
        self.totals.percentile(percent, |rank| self.ranked(rank))
    }

    /// The value of this rank, from 0.
    fn ranked(&self, rank: u64) -> f64 {
        if rank + 1 >= self.totals.count {
            return self.totals.greatest;
        }
        let (mut before, mut has_zeros) = (0, self.zeros > 0);
        for (key, counts) in self.counts() {
            if key > 0 && std::mem::take(&mut has_zeros) {
                before += self.zeros;
                if before > rank {
                    return 0.0;
                }
            }
            for (step, count) in counts.iter().enumerate() {
                before += count;
                if before > rank {
                    return bound(key, step).clamp(self.totals.least, self.totals.greatest);
                }
            }
        }
        // The remaining values are zeros, above all others.
        0.0
    }
}

/// The octave of a value, and the step in it; both ascend with the value.
pub(crate) fn bucket(value: f64) -> (i32, usize) {
    let bits = value.abs().to_bits() >> (52 - STEP_BITS);
    let (exponent, step) = ((bits >> STEP_BITS) as i32, bits as usize % STEPS);
    // Numbers below the smallest normal one count as zero.
    match exponent {
        0 => (0, 0),
        _ if value > 0.0 => (exponent, step),
        _ => (-exponent, STEPS - 1 - step),
    }
}

/// The end of a bucket that lies nearer to zero.
pub(crate) fn bound(key: i32, step: usize) -> f64 {
    let step = if key < 0 { STEPS - 1 - step } else { step };
    let bits = ((u64::from(key.unsigned_abs()) << STEP_BITS) | step as u64) << (52 - STEP_BITS);
    f64::from_bits(bits) * f64::from(key.signum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trend(values: &[f64]) -> Trend {
        let mut trend = Trend::default();
        values.iter().for_each(|value| trend.add(*value));
        trend
    }

    /// The same from all the values.
    fn exact(values: &[f64], percent: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let place = percent / 100.0 * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        below + (above - below) * place.fract()
    }

    #[test]
    fn whole_numbers_are_exact() {
        let trend = trend(&[10.0, 11.0, 12.0, -3.0, 4095.0, 0.0, 11.0]);
        let percentiles = [0.0, 25.0, 50.0, 75.0, 100.0].map(|percent| trend.percentile(percent));
        assert_eq!(percentiles, [-3.0, 5.0, 11.0, 11.5, 4095.0]);
        assert_eq!(
            (trend.totals().count, trend.totals().min(), trend.totals().max(), trend.totals().avg()),
            (7, -3.0, 4095.0, 4136.0 / 7.0)
        );
    }

    #[test]
    fn a_trend_without_samples_is_zero() {
        let trend = trend(&[f64::NAN]);
        assert_eq!(
            (
                trend.totals().count,
                trend.totals().avg(),
                trend.totals().min(),
                trend.totals().max(),
                trend.percentile(95.0)
            ),
            (0, 0.0, 0.0, 0.0, 0.0)
        );
    }

    proptest! {
        #[test]
        fn percentiles_are_off_by_less_than_a_bucket(
            values in prop::collection::vec(prop_oneof![-1e9..1e9, -1.0..1.0, Just(0.0), 1e-300..1e-290], 1..200),
            percent in 0.0..100.0,
        ) {
            let (found, expected) = (trend(&values).percentile(percent), exact(&values, percent));
            // Between two values of unlike sign, what is off is so by their size, not by that of the result.
            let place = percent / 100.0 * (values.len() - 1) as f64;
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let size = sorted[place.floor() as usize].abs().max(sorted[place.ceil() as usize].abs());
            prop_assert!((found - expected).abs() <= size / 2048.0 * 1.000_001, "{found} for {expected}");
        }

        #[test]
        fn merging_equals_adding(
            values in prop::collection::vec(-1e3..1e3, 1..100),
            cut in any::<prop::sample::Index>(),
            percent in 0.0..100.0,
        ) {
            let (one, other) = values.split_at(cut.index(values.len()));
            let (mut merged, whole) = (trend(one), trend(&values));
            merged.merge(&trend(other));
            prop_assert_eq!(merged.percentile(percent), whole.percentile(percent));
            let extremes = |trend: &Trend| (trend.totals().count, trend.totals().min(), trend.totals().max());
            prop_assert_eq!(extremes(&merged), extremes(&whole));
            prop_assert!((merged.totals().avg() - whole.totals().avg()).abs() < 1e-9);
        }

        #[test]
        fn buckets_ascend_with_values(a in any::<f64>(), b in any::<f64>()) {
            prop_assert!(bucket(a.min(b)) <= bucket(a.max(b)));
        }
    }
}
