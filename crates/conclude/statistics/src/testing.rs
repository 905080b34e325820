//! Shared by the tests of several modules: comparisons with a tolerance, samples of any finite
//! numbers, and seeded noise.

use proptest::collection::vec;
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// Asserts that two numbers differ by at most `tolerance`.
#[track_caller]
pub(crate) fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "found {found}, expected {expected} ± {tolerance}");
}

/// Any finite number: common ones, ties, and the ends of the range.
pub(crate) fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -1e3..1e3,
        3 => (-5..5).prop_map(f64::from),
        1 => any::<f64>().prop_filter("finite", |value| value.is_finite()),
    ]
}

/// Samples of any finite numbers.
pub(crate) fn samples(size: Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    vec(finite(), size)
}

/// Samples of numbers as they occur, with ties.
pub(crate) fn common(size: Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    vec(prop_oneof![3 => -1e3..1e3, 1 => (-5..5).prop_map(f64::from)], size)
}

/// Seeded noise.
pub(crate) struct Noise(Pcg64Mcg);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A number between 0 and 1, both excluded.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A number from the standard normal distribution (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }

    /// A stationary first-order autoregressive series with standard deviation 1.
    pub(crate) fn autoregressive(&mut self, rho: f64, n: usize) -> Vec<f64> {
        let mut value = self.normal();
        let step = (1.0 - rho * rho).sqrt();
        let mut series = Vec::with_capacity(n);
        for _ in 0..n {
            series.push(value);
            value = rho * value + step * self.normal();
        }
        series
    }
}
