//! The plain statistics of a trend's samples, which need no buckets.

use serde::{Deserialize, Serialize};

/// Count, sum, least and greatest of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The least one; positive infinity without a value.
    pub least: f64,
    /// The greatest one; negative infinity without a value.
    pub greatest: f64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals { count: 0, sum: 0.0, least: f64::INFINITY, greatest: f64::NEG_INFINITY }
    }
}

impl Totals {
    /// Adds a value, which must be a number.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        // `f64::min` has a branch for values that are no number.
        self.least = if value < self.least { value } else { self.least };
        self.greatest = if value > self.greatest { value } else { self.greatest };
    }

    /// Adds the values of another one.
    pub(crate) fn merge(&mut self, other: &Totals) {
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// The mean; 0 without a value, as for the others.
    #[must_use]
    pub fn avg(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The least value.
    #[must_use]
    pub fn min(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.least }
    }

    /// The greatest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.greatest }
    }

    /// The value below which so many per cent of the values lie, between the values of two ranks by proportion. Ranks begin
    /// at 0.
    pub(crate) fn percentile(&self, percent: f64, ranked: impl Fn(u64) -> f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let last = (self.count - 1) as f64;
        let place = (percent / 100.0 * last).clamp(0.0, last);
        let (below, fraction) = (place.floor() as u64, place.fract());
        let lower = ranked(below);
        let value = if fraction > 0.0 { lower + (ranked(below + 1) - lower) * fraction } else { lower };
        value.clamp(self.least, self.greatest)
    }
}
