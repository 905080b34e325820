//! Multiple testing: adjusted p values, each of which can be compared with one level.

/// Holm's adjusted p values, in the order of `p`: rejecting those up to α keeps the probability of
/// any false rejection at α or below, whatever the dependence between the tests.
///
/// In ascending order, the i-th of m becomes the largest of (m − j + 1)·p₍ⱼ₎ for j ≤ i, at most 1.
/// A value that is not a number counts as 1. Holm, *A simple sequentially rejective multiple test
/// procedure* (1979).
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let m = p.len();
    let mut adjusted = vec![1.0; m];
    let mut least: f64 = 0.0;
    for (rank, &index) in ascending(p).iter().enumerate() {
        least = least.max((m - rank) as f64 * bounded(p[index])).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// Benjamini and Hochberg's adjusted p values, in the order of `p`: among those up to q, the
/// expected share of false discoveries is at most q.
///
/// In ascending order, the i-th of m becomes the smallest of p₍ⱼ₎·m/j for j ≥ i, at most 1. A value
/// that is not a number counts as 1. Benjamini and Hochberg, *Controlling the false discovery rate*
/// (1995).
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let m = p.len();
    let mut adjusted = vec![1.0; m];
    let mut most: f64 = 1.0;
    for (rank, &index) in ascending(p).iter().enumerate().rev() {
        most = most.min(bounded(p[index]) * m as f64 / (rank + 1) as f64);
        adjusted[index] = most;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| bounded(p[a]).total_cmp(&bounded(p[b])));
    order
}

fn bounded(p: f64) -> f64 {
    if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn adjusted_values_are_those_published() {
        // scipy, stats.false_discovery_control: the example of Benjamini and Hochberg by R.
        let p = [0.005, 0.009, 0.019, 0.022, 0.051, 0.101, 0.361, 0.387];
        let expected = [0.036, 0.036, 0.044, 0.044, 0.0816, 0.134_67, 0.387, 0.387];
        for (found, expected) in benjamini_hochberg(&p).iter().zip(expected) {
            close(*found, expected, 5e-6);
        }
        // statsmodels, multipletests(method="fdr_bh").
        let p = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216];
        let expected = [0.01, 0.04, 0.084, 0.084, 0.084, 0.1, 0.105_714_285_714_285_72, 0.216, 0.216, 0.216];
        for (found, expected) in benjamini_hochberg(&p).iter().zip(expected) {
            close(*found, expected, 1e-12);
        }
        // Holm's rule by hand: 4·0.01, 3·0.0134, 2·0.03 under the one before, and the largest.
        let p = [0.03, 0.01, 0.04, 0.0134];
        for (found, expected) in holm(&p).iter().zip([0.06, 0.04, 0.06, 0.0402]) {
            close(*found, expected, 1e-12);
        }
    }

    #[test]
    fn nothing_and_nonsense_are_fine() {
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
        assert_eq!(holm(&[f64::NAN, 0.01, 2.0, -1.0]), [1.0, 0.03, 1.0, 0.0]);
        assert_eq!(benjamini_hochberg(&[f64::NAN, 0.01]), [1.0, 0.02]);
    }

    proptest! {
        #[test]
        fn adjusted_values_are_never_smaller_and_keep_their_order(p in vec(0.0..=1.0, 0..40)) {
            let (holm, bh) = (holm(&p), benjamini_hochberg(&p));
            for i in 0..p.len() {
                prop_assert!(p[i] <= bh[i] + 1e-15 && bh[i] <= holm[i] + 1e-12 && holm[i] <= 1.0);
                for j in 0..p.len() {
                    if p[i] < p[j] {
                        prop_assert!(holm[i] <= holm[j] && bh[i] <= bh[j]);
                    }
                }
            }
        }
    }
}
