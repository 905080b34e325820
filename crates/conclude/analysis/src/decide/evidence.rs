//! The evidence in the values of a comparison: Student's test of the mean difference, and ranks beside it.

use super::MIN_REPEATS_FOR_RANKS;
use plimsoll_statistics::{HodgesLehmann, TTest, hodges_lehmann, one_sample, welch};

/// The evidence in the values of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Student's test of the mean difference.
    pub test: TTest,
    /// Repeats: pairs, or trials of the smaller side.
    pub n: usize,
    /// The Hodges–Lehmann shift, from [`MIN_REPEATS_FOR_RANKS`] pairs.
    pub shift: Option<HodgesLehmann>,
}

impl Evidence {
    /// Evidence from the differences of pairs. `resolution` is the standard deviation that rounding
    /// alone gives a difference: the spread is never taken to be smaller, so that values that agree
    /// to the last digit do not count as certain. None for fewer than two pairs.
    #[must_use]
    pub fn paired(differences: &[f64], resolution: f64, alpha: f64) -> Option<Evidence> {
        let test = one_sample(differences)?;
        let n = differences.len();
        let shift = (n >= MIN_REPEATS_FOR_RANKS).then(|| hodges_lehmann(differences, 1.0 - alpha)).flatten();
        Some(Evidence { test: resolved(test, resolution, n), n, shift })
    }

    /// Evidence from two sets of unpaired values: `values` less `baseline`. None where one has
    /// fewer than two.
    #[must_use]
    pub fn unpaired(values: &[f64], baseline: &[f64], resolution: f64) -> Option<Evidence> {
        let n = values.len().min(baseline.len());
        let test = welch(values, baseline)?;
        Some(Evidence { test: resolved(test, resolution, n), n, shift: None })
    }

    /// The standard deviation of a single repeat's difference.
    #[must_use]
    pub fn sd(&self) -> f64 {
        self.test.standard_error * (self.n as f64).sqrt()
    }
}

fn resolved(test: TTest, resolution: f64, n: usize) -> TTest {
    TTest { standard_error: test.standard_error.max(resolution / (n as f64).sqrt()), ..test }
}

/// The evidence with either copy of the baseline, where there is some with both.
pub(crate) fn both([one, other]: [Option<Evidence>; 2]) -> Option<[Evidence; 2]> {
    Some([one?, other?])
}
