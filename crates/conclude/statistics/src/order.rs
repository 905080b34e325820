//! Quantiles by order statistics: intervals that hold for any distribution of independent values.
//!
//! David and Nagaraja, *Order Statistics* (2003), 7.1; Conover, *Practical Nonparametric
//! Statistics* (1999), 3.2.

use crate::sample::Interval;

/// The interval of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileInterval {
    /// Where the quantile of the distribution lies.
    pub interval: Interval,
    /// The confidence of the interval, at least the requested one.
    pub attained: f64,
}

/// The interval of the `p` quantile from independent values in ascending order, with at least
/// `confidence`, half of the doubt on each side. `None` where there are too few values for both
/// ends ([`min_n`]), they are not ascending and finite, or p or confidence do not lie between 0
/// and 1.
///
/// The ends are x₍ₗ₎ and x₍ᵤ₎ with the largest l for which P(B < l) and the smallest u for which
/// P(B ≥ u) is at most α/2, where B is binomial with n and p.
#[must_use]
pub fn quantile_interval(sorted: &[f64], p: f64, confidence: f64) -> Option<QuantileInterval> {
    let ascending = sorted.windows(2).all(|pair| pair[0] <= pair[1]);
    if sorted.is_empty() || !ascending || !sorted.iter().all(|value| value.is_finite()) {
        return None;
    }
    if !(p > 0.0 && p < 1.0 && (0.0..1.0).contains(&confidence)) {
        return None;
    }
    let n = sorted.len();
    let binomial = Binomial::new(n, p);
    let tail = (1.0 - confidence) / 2.0;
    let lower = (1..=n).rev().find(|l| binomial.up_to(l - 1) <= tail)?;
    let upper = (1..=n).find(|u| binomial.from(*u) <= tail)?;
    // At low confidence the ends may cross over; the narrowest honest answer is both.
    let (lower, upper) = (lower.min(upper), lower.max(upper));
    let interval = Interval { low: sorted[lower - 1], high: sorted[upper - 1] };
    Some(QuantileInterval {
        interval,
        attained: (1.0 - binomial.up_to(lower - 1) - binomial.from(upper)).clamp(0.0, 1.0),
    })
}

/// The interval of the median: [`quantile_interval`] with p = 0.5. 95 % takes 6 values.
#[must_use]
pub fn median_interval(sorted: &[f64], confidence: f64) -> Option<QuantileInterval> {
    quantile_interval(sorted, 0.5, confidence)
}

/// The least number of values from which [`quantile_interval`] gives an interval; `None` unless p
/// and confidence lie between 0 and 1, or where no number would do.
///
/// Both pⁿ and (1 − p)ⁿ must be at most α/2. For a one-sided limit with confidence 1 − α, use the
/// confidence 1 − 2α.
#[must_use]
pub fn min_n(p: f64, confidence: f64) -> Option<usize> {
    if !(p > 0.0 && p < 1.0 && (0.0..1.0).contains(&confidence)) {
        return None;
    }
    let n = ((1.0 - confidence) / 2.0).ln() / p.max(1.0 - p).ln();
    // Rounding must not ask for one more where the power is exact.
    let n = (n - 1e-9).ceil().max(1.0);
    (n < 1e15).then_some(n as usize)
}

/// The two-sided p value of the `p` quantile being `value`, from independent values in any order;
/// `None` for no value, or where p does not lie between 0 and 1.
///
/// Twice the smaller of P(B ≤ number of values up to `value`) and P(B ≥ number of values below it).
#[must_use]
pub fn quantile_test(values: &[f64], p: f64, value: f64) -> Option<f64> {
    if values.is_empty() || value.is_nan() || values.iter().any(|one| one.is_nan()) || !(p > 0.0 && p < 1.0) {
        return None;
    }
    let binomial = Binomial::new(values.len(), p);
    let up_to = values.iter().filter(|one| **one <= value).count();
    let below = values.iter().filter(|one| **one < value).count();
    Some((2.0 * binomial.up_to(up_to).min(binomial.from(below))).min(1.0))
}

/// True if more than `share` of all values are hits, as `hits` of `n` show at 5 %: P(B ≥ hits) ≤ 0.05 where the share is
/// just that.
#[must_use]
pub fn share_is_above(hits: u64, n: u64, share: f64) -> bool {
    if hits == 0 || share >= 1.0 {
        return false;
    }
    share <= 0.0 || Binomial::new(n as usize, share).from(hits as usize) <= 0.05
}

/// The binomial distribution: sums from either end, so that small tails are exact.
struct Binomial {
    n: usize,
    /// The first value with a probability that counts.
    first: usize,
    below: Vec<f64>,
    above: Vec<f64>,
}

impl Binomial {
    /// By the ratio of neighbours, from the mode outwards as far as numbers go.
    fn new(n: usize, p: f64) -> Binomial {
        let mode = (((n + 1) as f64 * p).floor() as usize).min(n);
        let odds = p / (1.0 - p);
        let up = |k: usize, weight: f64| weight * (n - k) as f64 / (k + 1) as f64 * odds;
        let down = |k: usize, weight: f64| weight * k as f64 / (n + 1 - k) as f64 / odds;
        let mut weights = vec![1.0];
        for k in (1..=mode).rev() {
            let weight = down(k, *weights.last().expect("one is there"));
            if weight == 0.0 {
                break;
            }
            weights.push(weight);
        }
        let first = mode + 1 - weights.len();
        weights.reverse();
        for k in mode..n {
            let weight = up(k, *weights.last().expect("one is there"));
            if weight == 0.0 {
                break;
            }
            weights.push(weight);
        }
        let running = |sum: &mut f64, weight: &f64| {
            *sum += weight;
            Some(*sum)
        };
        let mut below: Vec<f64> = weights.iter().scan(0.0, running).collect();
        let mut above: Vec<f64> = weights.iter().rev().scan(0.0, running).collect();
        above.reverse();
        let all = above[0];
        for sum in below.iter_mut().chain(&mut above) {
            *sum = (*sum / all).min(1.0);
        }
        Binomial { n, first, below, above }
    }

    /// P(B ≤ k).
    fn up_to(&self, k: usize) -> f64 {
        match k.checked_sub(self.first) {
            None => 0.0,
            Some(_) if k >= self.n => 1.0,
            Some(index) => self.below.get(index).copied().unwrap_or(1.0),
        }
    }

    /// P(B ≥ k).
    fn from(&self, k: usize) -> f64 {
        match k.checked_sub(self.first) {
            None => 1.0,
            Some(index) => self.above.get(index).copied().unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_where_chance_would_hardly_make_so_many_hits() {
        // P(B ≥ 3) = 0.075 and P(B ≥ 4) = 0.016 of 20 at 5 %.
        assert_eq!([2, 3, 4].map(|hits| share_is_above(hits, 20, 0.05)), [false, false, true]);
        assert_eq!([0, 1].map(|hits| share_is_above(hits, 20, 0.0)), [false, true]);
        assert!(!share_is_above(20, 20, 1.0));
    }

    use crate::sample::sorted;
    use crate::testing::{close, samples};
    use proptest::prelude::*;

    #[track_caller]
    fn check(values: &[f64], p: f64, confidence: f64, low: f64, high: f64) {
        let found = quantile_interval(values, p, confidence).unwrap();
        close(found.interval.low, low, 5e-8);
        close(found.interval.high, high, 5e-8);
        assert!(found.attained >= confidence);
    }

    #[test]
    fn the_median_of_benchstat_is_met() {
        // golang.org/x/perf, benchmath/assumption_test.go, TestSummaryNone and TestMedianSamples.
        let values = [-10.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        check(&values, 0.5, 0.95, -10.0, 6.0);
        assert_eq!(median_interval(&values, 0.95).unwrap().attained, 0.96875);
        assert_eq!(median_interval(&values, 0.99), None);
        let two = median_interval(&[1.0, 2.0], 0.0).unwrap();
        assert_eq!((two.interval, two.attained), (Interval { low: 1.0, high: 2.0 }, 0.5));
        assert_eq!((min_n(0.5, 0.95), min_n(0.5, 0.99)), (Some(6), Some(8)));
    }

    #[test]
    fn intervals_are_those_of_scipy_and_r() {
        // scipy, test_stats.py, TestQuantileTest, against R's confintr::ci_quantile.
        let values: Vec<f64> = (0..=100).map(|step| (f64::from(step) / 100.0).exp()).collect();
        let check_exp = |p, confidence, low: f64, high: f64| {
            let found = quantile_interval(&values, p, confidence).unwrap().interval;
            close(found.low, low, 5.1e-10);
            close(found.high, high, 5.1e-10);
        };
        check_exp(0.3, 0.95, 1.221_402_758, 1.476_980_794);
        check_exp(0.5, 0.90, 1.506_817_785, 1.803_988_415);
        // asv, test_statistics.py, against R's asht::quantileTest, at 80 %.
        let values = [
            -2.479_466_14,
            -1.495_959_63,
            -1.028_124_82,
            -0.765_923_23,
            -0.094_527_43,
            0.107_327_43,
            0.277_983_42,
            0.501_737_79,
            0.578_298_23,
            0.604_749_48,
            0.946_956_75,
            1.201_597_89,
        ];
        check(&values, 0.2, 0.8, -2.479_466_14, -0.094_527_43);
        check(&values, 0.5, 0.8, -0.765_923_23, 0.578_298_23);
        check(&values, 0.8, 0.8, 0.501_737_79, 1.201_597_89);
        close(crate::median(&values).unwrap(), 0.192_655_4, 5e-8);
    }

    #[test]
    fn the_test_of_conover_is_met() {
        // Conover 1999, page 139: the upper quartile of the marks of 15 students is not 193.
        let marks =
            [189.0, 233.0, 195.0, 160.0, 212.0, 176.0, 231.0, 185.0, 199.0, 213.0, 202.0, 193.0, 174.0, 166.0, 248.0];
        close(quantile_test(&marks, 0.75, 193.0).unwrap(), 0.0346, 5e-5);
    }

    #[test]
    fn the_least_numbers_are_those_of_the_method() {
        // reference/stats.md 5: two-sided 95 %, then one-sided.
        let table = [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688)];
        for (p, expected) in table {
            assert_eq!(min_n(p, 0.95), Some(expected));
            let values: Vec<f64> = (0..expected).map(|value| value as f64).collect();
            assert!(quantile_interval(&values, p, 0.95).is_some());
            assert!(quantile_interval(&values[1..], p, 0.95).is_none());
        }
        assert_eq!((min_n(0.99, 0.9), min_n(0.999, 0.9)), (Some(299), Some(2995)));
        for (p, confidence) in [(0.0, 0.95), (1.0, 0.95), (0.5, 1.0), (f64::NAN, 0.95), (0.5, -0.1)] {
            assert_eq!(min_n(p, confidence), None);
        }
    }

    #[test]
    fn large_numbers_are_fine() {
        let values: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        let found = quantile_interval(&values, 0.99, 0.95).unwrap();
        // 990,000 ± 1.96·√(10⁶·0.99·0.01).
        close(found.interval.low, 989_804.0, 3.0);
        close(found.interval.high, 990_195.0, 3.0);
        close(found.attained, 0.95, 1e-3);
    }

    proptest! {
        #[test]
        fn any_values_give_an_interval_or_none(values in samples(0..60), p in 0.0..1.0, confidence in 0.0..1.0) {
            let values = sorted(&values);
            if let Some(found) = quantile_interval(&values, p, confidence) {
                prop_assert!(found.attained >= confidence - 1e-9 && found.attained <= 1.0, "{:?}", found);
                prop_assert!(found.interval.low <= found.interval.high);
                prop_assert!(min_n(p, confidence).unwrap() <= values.len());
                if let Some(wider) = quantile_interval(&values, p, f64::midpoint(1.0, confidence)) {
                    prop_assert!(wider.interval.low <= found.interval.low && found.interval.high <= wider.interval.high);
                }
            } else if let Some(least) = min_n(p, confidence) {
                prop_assert!(values.len() < least);
            }
        }

        #[test]
        fn the_distribution_adds_up(n in 1_usize..300, p in 0.001..0.999) {
            let binomial = Binomial::new(n, p);
            for k in 0..=n {
                prop_assert!((binomial.up_to(k) + binomial.from(k + 1) - 1.0).abs() < 1e-12);
            }
        }
    }
}
