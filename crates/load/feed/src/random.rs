//! Random values for requests and rows: integers of a distribution, and texts of letters and digits.

use plimsoll_model::sql::Distribution;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// sysbench's defaults of `special`. The first is the share of samples from the middle of the range, the
/// second the size of that middle as a share of the range. Each other sample is the mean of
/// `ITERATIONS` uniform ones.
const SPECIAL_SAMPLES: f64 = 0.75;
const SPECIAL_ROWS: f64 = 0.01;
const ITERATIONS: i64 = 12;

/// The characters of random texts.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A source of random numbers, such as that of one user.
pub trait RandomSource {
    /// A number from 0 to 1, without 1.
    fn unit(&mut self) -> f64;

    /// A uniform integer from `low` to `high`, both included.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (high - low + 1) as f64;
        low + ((self.unit() * span) as i64).min(high - low)
    }
}

/// A source that gives the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct SeededRandom(Pcg64Mcg);

impl SeededRandom {
    /// The source of this seed.
    #[must_use]
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(Pcg64Mcg::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl RandomSource for SeededRandom {
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Draws integers from `low` to `high`, both included, with a distribution.
#[derive(Clone, Debug)]
pub struct IntegerSampler {
    low: i64,
    high: i64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Special,
    /// A uniform number of [0, 1) to this power.
    Power(f64),
    Zipf(Zipf),
}

impl IntegerSampler {
    /// A sampler of a range that a study names.
    ///
    /// # Errors
    /// The range is empty, or has more integers than an `i64` counts.
    pub fn checked(low: i64, high: i64, distribution: Distribution) -> Result<IntegerSampler, String> {
        if high.checked_sub(low).and_then(|width| width.checked_add(1)).is_none_or(|count| count < 1) {
            return Err(format!("expected a range from the smaller number to the larger, found {low} to {high}"));
        }
        Ok(IntegerSampler::new(low, high, distribution))
    }

    /// A sampler of a range that is not empty.
    #[must_use]
    pub fn new(low: i64, high: i64, distribution: Distribution) -> IntegerSampler {
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Special => Shape::Special,
            Distribution::Pareto(share) => Shape::Power(share.ln() / (1.0 - share).ln()),
            Distribution::Zipf(exponent) => Shape::Zipf(Zipf::new((high - low + 1) as f64, exponent)),
        };
        IntegerSampler { low, high, shape }
    }

    /// The next integer.
    pub fn sample(&self, random: &mut dyn RandomSource) -> i64 {
        match &self.shape {
            Shape::Uniform => random.between(self.low, self.high),
            Shape::Special => self.special(random),
            Shape::Power(power) => {
                let size = (self.high - self.low + 1) as f64;
                (self.low + (size * random.unit().powf(*power)) as i64).min(self.high)
            }
            Shape::Zipf(zipf) => self.low + zipf.sample(random) - 1,
        }
    }

    /// Three of four samples are uniform over the middle hundredth of the range. The fourth is a mean
    /// of uniform ones over the whole range.
    fn special(&self, random: &mut dyn RandomSource) -> i64 {
        let size = self.high - self.low + 1;
        if random.unit() < SPECIAL_SAMPLES {
            let rows = ((size as f64 * SPECIAL_ROWS) as i64).max(1);
            return self.low + size / 2 - rows / 2 + random.between(0, rows - 1);
        }
        let sum: i64 = (0..ITERATIONS).map(|_| random.between(0, size - 1)).sum();
        self.low + sum / ITERATIONS
    }
}

/// Appends `length` random letters and digits.
pub fn push_alphanumeric(text: &mut String, length: u32, random: &mut dyn RandomSource) {
    text.extend((0..length).map(|_| char::from(ALPHABET[random.between(0, ALPHABET.len() as i64 - 1) as usize])));
}

/// Integers from 1 on, with a probability in proportion to `k^-exponent`. The method is
/// rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6(3), 1996): about one random number per sample,
/// whatever the range.
#[derive(Clone, Debug)]
struct Zipf {
    largest: f64,
    exponent: f64,
    /// The integral of the density up to 1.5, minus the weight of 1.
    lowest_area: f64,
    /// The integral of the density up to half a step above the largest integer.
    highest_area: f64,
    /// An integer that lies at most this far above the inverted point is accepted without a test.
    accept_within: f64,
}

impl Zipf {
    fn new(largest: f64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { largest, exponent, lowest_area: 0.0, highest_area: 0.0, accept_within: 0.0 };
        zipf.lowest_area = zipf.integral(1.5) - 1.0;
        zipf.highest_area = zipf.integral(largest + 0.5);
        zipf.accept_within = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn sample(&self, random: &mut dyn RandomSource) -> i64 {
        loop {
            let area = self.highest_area + random.unit() * (self.lowest_area - self.highest_area);
            let point = self.inverse(area);
            let number = point.round().clamp(1.0, self.largest);
            if number - point <= self.accept_within || area >= self.integral(number + 0.5) - self.density(number) {
                return number as i64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// `(x^(1-s) - 1) / (1-s)`, and its limit `ln x` for an exponent `s` of 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        if power.abs() < 1e-9 { log } else { power.exp_m1() / power * log }
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding may lead just below the range of the integral.
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let log = if power.abs() < 1e-9 { area } else { power.ln_1p() / power * area };
        log.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const SAMPLES: u64 = 200_000;

    fn counts(low: i64, high: i64, distribution: Distribution) -> BTreeMap<i64, u64> {
        let (sampler, mut random) = (IntegerSampler::new(low, high, distribution), SeededRandom::new(7));
        let mut counts = BTreeMap::new();
        (0..SAMPLES).for_each(|_| *counts.entry(sampler.sample(&mut random)).or_default() += 1);
        counts
    }

    /// The share of samples that fell into a range.
    fn share(counts: &BTreeMap<i64, u64>, low: i64, high: i64) -> f64 {
        counts.range(low..=high).map(|(_, count)| count).sum::<u64>() as f64 / SAMPLES as f64
    }

    #[test]
    fn every_distribution_keeps_to_its_range_however_small() {
        let all = [Distribution::Uniform, Distribution::Special, Distribution::Pareto(0.2), Distribution::Zipf(0.8)];
        for distribution in all {
            for (low, high) in [(1, 1), (5, 6), (-3, 3), (1, 1_000), (1, 1 << 40)] {
                let found = counts(low, high, distribution);
                let (first, last) = (found.first_key_value().unwrap().0, found.last_key_value().unwrap().0);
                assert!(*first >= low && *last <= high, "{distribution:?} from {low} to {high}: {first} to {last}");
            }
        }
    }

    #[test]
    fn uniform_reaches_all_alike() {
        let found = counts(1, 10, Distribution::Uniform);
        assert_eq!(found.len(), 10);
        assert!(found.values().all(|count| count.abs_diff(SAMPLES / 10) < SAMPLES / 200), "{found:?}");
    }

    #[test]
    fn special_gives_three_quarters_to_the_middle_hundredth() {
        let found = counts(1, 100_000, Distribution::Special);
        // The mean of twelve uniform draws has a standard deviation of 8,333: of the last quarter,
        // some 5 % fall into the middle too.
        let middle = share(&found, 49_501, 50_500);
        assert!((0.75..0.78).contains(&middle), "{middle}");
        let around = share(&found, 50_000 - 8_333, 50_000 + 8_333);
        assert!((around - (0.75 + 0.25 * 0.683)).abs() < 0.01, "{around}");
    }

    #[test]
    fn a_fifth_gets_four_fifths_of_pareto() {
        let found = counts(1, 1_000, Distribution::Pareto(0.2));
        assert!((share(&found, 1, 200) - 0.8).abs() < 0.01);
        assert!((share(&found, 1, 40) - 0.64).abs() < 0.01, "and so on, in itself");
    }

    #[test]
    fn zipf_falls_with_the_power_of_the_rank() {
        for exponent in [0.8_f64, 1.0, 1.5] {
            let found = counts(1, 50, Distribution::Zipf(exponent));
            let whole: f64 = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1_i32, 2, 3, 10, 50] {
                let expected = f64::from(rank).powf(-exponent) / whole;
                let error = (expected / SAMPLES as f64).sqrt();
                let found = share(&found, rank.into(), rank.into());
                assert!((found - expected).abs() < 5.0 * error, "{exponent}: {rank} has {found}, expected {expected}");
            }
        }
    }
}
