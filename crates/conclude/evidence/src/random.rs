//! Random numbers that are reproducible by name.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Debug)]
pub struct RandomStream {
    random: Pcg64,
    /// The second of a pair of normal deviates.
    spare: Option<f64>,
}

impl RandomStream {
    /// The stream for this part of the simulation with this name: always the same, and different
    /// for each name and part.
    #[must_use]
    pub fn named(name: &str, part: u64) -> RandomStream {
        // FNV-1a, 64 bits: names that differ anywhere give seeds that differ everywhere.
        let bytes = name.bytes().chain(part.to_le_bytes());
        let seed = bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        RandomStream { random: Pcg64::seed_from_u64(seed), spare: None }
    }

    /// A random whole number, as the seed of another generator.
    pub fn seed(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// A uniform random number in [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// A standard normal random number (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (radius, angle) = ((2.0 * self.exponential()).sqrt(), std::f64::consts::TAU * self.share());
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// An exponential random number, with mean and standard deviation 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = RandomStream::named("moments", 0);
        let n = 200_000;
        let mut moments = |of: fn(&mut RandomStream) -> f64| {
            let values: Vec<f64> = (0..n).map(|_| of(&mut random)).collect();
            let mean = values.iter().sum::<f64>() / f64::from(n);
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / f64::from(n);
            (mean, variance)
        };
        // Four standard errors, or more.
        for (of, mean, variance) in [
            (RandomStream::share as fn(&mut RandomStream) -> f64, 0.5, 1.0 / 12.0),
            (RandomStream::normal, 0.0, 1.0),
            (RandomStream::exponential, 1.0, 1.0),
        ] {
            let found = moments(of);
            assert!((found.0 - mean).abs() < 0.01 && (found.1 - variance).abs() < 0.03, "{found:?}");
        }
    }

    #[test]
    fn a_name_and_a_part_have_a_stream_of_their_own() {
        let first = |name, part| RandomStream::named(name, part).seed();
        assert_eq!(first("a", 1), first("a", 1));
        assert!(first("a", 1) != first("a", 2) && first("a", 1) != first("b", 1));
    }
}
