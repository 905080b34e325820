//! Whole numbers from a range and texts, drawn as a study asks for.

use crate::terminal::Draw;
use plimsoll_model::sql::Distribution;

/// sysbench's defaults of `special`: the share of draws that go to the middle of the range, the share
/// of the range that this middle is, and how many draws the others are the mean of.
const SPECIAL_DRAWS: f64 = 0.75;
const SPECIAL_ROWS: f64 = 0.01;
const ITERATIONS: i64 = 12;

/// Letters and digits, of which texts are made.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Draws from `low` to `high`, both included.
#[derive(Clone, Debug)]
pub struct Numbers {
    low: i64,
    high: i64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Special,
    /// A uniform number to this power.
    Power(f64),
    Zipf(Zipf),
}

impl Numbers {
    /// Numbers of a range that a study names.
    ///
    /// # Errors
    /// It has no numbers, or more than can be counted.
    pub fn of_study(low: i64, high: i64, distribution: Distribution) -> Result<Numbers, String> {
        if high.checked_sub(low).and_then(|width| width.checked_add(1)).is_none_or(|count| count < 1) {
            return Err(format!("expected a range from the smaller number to the larger, found {low} to {high}"));
        }
        Ok(Numbers::new(low, high, distribution))
    }

    pub(crate) fn new(low: i64, high: i64, distribution: Distribution) -> Numbers {
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Special => Shape::Special,
            Distribution::Pareto(share) => Shape::Power(share.ln() / (1.0 - share).ln()),
            Distribution::Zipf(exponent) => Shape::Zipf(Zipf::new((high - low + 1) as f64, exponent)),
        };
        Numbers { low, high, shape }
    }

    /// The next number.
    pub fn draw(&self, draw: &mut dyn Draw) -> i64 {
        match &self.shape {
            Shape::Uniform => draw.between(self.low, self.high),
            Shape::Special => self.special(draw),
            Shape::Power(power) => {
                let size = (self.high - self.low + 1) as f64;
                (self.low + (size * draw.unit().powf(*power)) as i64).min(self.high)
            }
            Shape::Zipf(zipf) => self.low + zipf.draw(draw) - 1,
        }
    }

    /// Three of four draws are uniform over a hundredth in the middle; the fourth is a mean of uniform
    /// ones over the whole.
    fn special(&self, draw: &mut dyn Draw) -> i64 {
        let size = self.high - self.low + 1;
        if draw.unit() < SPECIAL_DRAWS {
            let rows = ((size as f64 * SPECIAL_ROWS) as i64).max(1);
            return self.low + size / 2 - rows / 2 + draw.between(0, rows - 1);
        }
        let sum: i64 = (0..ITERATIONS).map(|_| draw.between(0, size - 1)).sum();
        self.low + sum / ITERATIONS
    }
}

/// Appends so many letters and digits.
pub fn letters(text: &mut String, length: u32, draw: &mut dyn Draw) {
    text.extend((0..length).map(|_| char::from(ALPHABET[draw.between(0, ALPHABET.len() as i64 - 1) as usize])));
}

/// Numbers from 1 on, each in proportion to `k^-exponent`: by rejection-inversion (W. Hörmann and
/// G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
/// ACM TOMACS 6(3), 1996), which takes about one draw whatever the range.
#[derive(Clone, Debug)]
struct Zipf {
    largest: f64,
    exponent: f64,
    /// The integral of the density up to half a step below the smallest number but for its own weight,
    /// and up to half a step above the largest.
    below: f64,
    above: f64,
    /// Numbers that lie at most this far above where the inversion points need no second look.
    at_once: f64,
}

impl Zipf {
    fn new(largest: f64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { largest, exponent, below: 0.0, above: 0.0, at_once: 0.0 };
        zipf.below = zipf.integral(1.5) - 1.0;
        zipf.above = zipf.integral(largest + 0.5);
        zipf.at_once = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn draw(&self, draw: &mut dyn Draw) -> i64 {
        loop {
            let area = self.above + draw.unit() * (self.below - self.above);
            let point = self.inverse(area);
            let number = point.round().clamp(1.0, self.largest);
            if number - point <= self.at_once || area >= self.integral(number + 0.5) - self.density(number) {
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
pub(crate) mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::{Rng, SeedableRng};
    use std::collections::BTreeMap;

    /// Seeded numbers for tests.
    pub(crate) struct Seeded(Pcg64Mcg);

    impl Seeded {
        pub(crate) fn new(seed: u64) -> Seeded {
            Seeded(Pcg64Mcg::seed_from_u64(seed))
        }
    }

    impl Draw for Seeded {
        fn unit(&mut self) -> f64 {
            (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    const DRAWS: u64 = 200_000;

    fn counts(low: i64, high: i64, distribution: Distribution) -> BTreeMap<i64, u64> {
        let (numbers, mut draw) = (Numbers::new(low, high, distribution), Seeded::new(7));
        let mut counts = BTreeMap::new();
        (0..DRAWS).for_each(|_| *counts.entry(numbers.draw(&mut draw)).or_default() += 1);
        counts
    }

    /// The share of draws that fell into a range.
    fn share(counts: &BTreeMap<i64, u64>, low: i64, high: i64) -> f64 {
        counts.range(low..=high).map(|(_, count)| count).sum::<u64>() as f64 / DRAWS as f64
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
        assert!(found.values().all(|count| count.abs_diff(DRAWS / 10) < DRAWS / 200), "{found:?}");
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
                let error = (expected / DRAWS as f64).sqrt();
                let found = share(&found, rank.into(), rank.into());
                assert!((found - expected).abs() < 5.0 * error, "{exponent}: {rank} has {found}, expected {expected}");
            }
        }
    }
}
