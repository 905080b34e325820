//! How the samples of a trend are distributed, in bounded memory.
//!
//! Values are counted in buckets, 2,048 to each power of two, by the top bits of their floating-point
//! form. A percentile is so at most 0.05 % nearer to zero than it should be, whatever the values are;
//! whole numbers below 4,096 are exact, and so are the least and the greatest value.

/// Bits of the mantissa that tell buckets apart.
const STEP_BITS: u32 = 11;

const STEPS: usize = 1 << STEP_BITS;

/// Counts, sum, extremes and buckets.
#[derive(Clone, Debug)]
pub struct Trend {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// Of many trends nearly all values are nothing: the time that it took to connect.
    zeros: u64,
    /// By key, in ascending order of values: one for each power of two that occurs, and sign.
    octaves: Vec<Octave>,
}

#[derive(Clone, Debug)]
struct Octave {
    key: i32,
    counts: Box<[u64; STEPS]>,
}

impl Default for Trend {
    fn default() -> Trend {
        Trend { count: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, zeros: 0, octaves: Vec::new() }
    }
}

impl Trend {
    /// Adds a value; one that is not a number does not count.
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match bucket(value) {
            (0, _) => self.zeros += 1,
            (key, step) => self.octave(key).counts[step] += 1,
        }
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: &Trend) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.zeros += other.zeros;
        for octave in &other.octaves {
            let own = self.octave(octave.key);
            own.counts.iter_mut().zip(octave.counts.iter()).for_each(|(own, other)| *own += other);
        }
    }

    fn octave(&mut self, key: i32) -> &mut Octave {
        let place = self.octaves.binary_search_by_key(&key, |octave| octave.key).unwrap_or_else(|place| {
            self.octaves.insert(place, Octave { key, counts: Box::new([0; STEPS]) });
            place
        });
        &mut self.octaves[place]
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean; 0 without a value, as for the others.
    #[must_use]
    pub fn avg(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The least value.
    #[must_use]
    pub fn min(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.min }
    }

    /// The greatest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.max }
    }

    /// The value below which so many per cent of the values lie, between two of them by proportion.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let place = (percent / 100.0 * (self.count - 1) as f64).clamp(0.0, (self.count - 1) as f64);
        let (below, fraction) = (place.floor() as u64, place.fract());
        let lower = self.ranked(below);
        let value = if fraction > 0.0 { lower + (self.ranked(below + 1) - lower) * fraction } else { lower };
        value.clamp(self.min, self.max)
    }

    /// The value of this rank, from 0.
    fn ranked(&self, rank: u64) -> f64 {
        if rank + 1 >= self.count {
            return self.max;
        }
        let (below_zero, others) = self.octaves.split_at(self.octaves.partition_point(|octave| octave.key < 0));
        let mut before = 0;
        if let Some(value) = find(below_zero, &mut before, rank) {
            return value.clamp(self.min, self.max);
        }
        before += self.zeros;
        if before > rank {
            return 0.0;
        }
        let value = find(others, &mut before, rank).unwrap_or(self.max);
        value.clamp(self.min, self.max)
    }
}

/// The value of a rank in octaves that have `before` values before them.
fn find(octaves: &[Octave], before: &mut u64, rank: u64) -> Option<f64> {
    for octave in octaves {
        for (step, count) in octave.counts.iter().enumerate() {
            *before += count;
            if *before > rank {
                return Some(bound(octave.key, step));
            }
        }
    }
    None
}

/// The octave of a value, and the step in it; both ascend with the value.
fn bucket(value: f64) -> (i32, usize) {
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
fn bound(key: i32, step: usize) -> f64 {
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
        assert_eq!((trend.count(), trend.min(), trend.max(), trend.avg()), (7, -3.0, 4095.0, 4136.0 / 7.0));
    }

    #[test]
    fn nothing_is_zero() {
        let trend = trend(&[f64::NAN]);
        assert_eq!(
            (trend.count(), trend.avg(), trend.min(), trend.max(), trend.percentile(95.0)),
            (0, 0.0, 0.0, 0.0, 0.0)
        );
    }

    proptest! {
        #[test]
        fn percentiles_are_as_near_as_they_should_be(
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
        fn merging_is_as_good_as_adding(
            values in prop::collection::vec(-1e3..1e3, 1..100),
            cut in any::<prop::sample::Index>(),
            percent in 0.0..100.0,
        ) {
            let (one, other) = values.split_at(cut.index(values.len()));
            let (mut merged, whole) = (trend(one), trend(&values));
            merged.merge(&trend(other));
            prop_assert_eq!(merged.percentile(percent), whole.percentile(percent));
            prop_assert_eq!((merged.count(), merged.min(), merged.max()), (whole.count(), whole.min(), whole.max()));
            prop_assert!((merged.avg() - whole.avg()).abs() < 1e-9);
        }

        #[test]
        fn buckets_ascend_with_values(a in any::<f64>(), b in any::<f64>()) {
            prop_assert!(bucket(a.min(b)) <= bucket(a.max(b)));
        }
    }
}
