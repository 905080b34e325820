//! Equivalence: two one-sided tests.
//!
//! Schuirmann, *A comparison of the two one-sided tests procedure and the power approach* (1987).

use crate::t::TTest;

/// Both one-sided tests of the claim that the true value lies between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tost {
    /// The p value of the truth being at most the lower bound.
    pub p_lower: f64,
    /// The p value of the truth being at least the upper bound.
    pub p_upper: f64,
    /// The larger of the two: the claim holds at level α where it is at most α. That is so exactly
    /// where the interval with confidence 1 − 2α lies inside the bounds.
    pub p: f64,
    /// The distance of the estimate from the lower bound, in standard errors.
    pub t_lower: f64,
    /// The distance of the estimate from the upper bound, in standard errors.
    pub t_upper: f64,
}

/// Tests the claim that the true value behind `test` lies between `low` and `high`.
#[must_use]
pub fn tost(test: &TTest, low: f64, high: f64) -> Tost {
    let (p_lower, p_upper) = (test.p_greater(low), test.p_less(high));
    let (t_lower, t_upper) = (test.statistic(low), test.statistic(high));
    Tost { p_lower, p_upper, p: p_lower.max(p_upper), t_lower, t_upper }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t::{Summary, one_sample, pooled, welch};
    use crate::testing::{close, common};
    use proptest::prelude::*;

    /// A published result: both statistics, both p values, degrees of freedom, and the ends of the
    /// 90 % and the 95 % interval.
    struct Known {
        t: [f64; 2],
        p: [f64; 2],
        df: f64,
        ninety: [f64; 2],
        ninety_five: [f64; 2],
    }

    #[track_caller]
    fn check(test: &TTest, bound: f64, known: &Known) {
        let found = tost(test, -bound, bound);
        close(found.t_lower, known.t[0], 6e-7 * known.t[0].abs().max(1.0));
        close(found.t_upper, known.t[1], 6e-7 * known.t[1].abs().max(1.0));
        close(found.p_lower / known.p[0], 1.0, 6e-7);
        close(found.p_upper / known.p[1], 1.0, 6e-7);
        close(found.p, known.p[0].max(known.p[1]), 1e-8);
        close(test.df, known.df, 5e-5);
        for (confidence, ends) in [(0.9, known.ninety), (0.95, known.ninety_five)] {
            close(test.interval(confidence).low, ends[0], 6e-8);
            close(test.interval(confidence).high, ends[1], 6e-8);
        }
    }

    /// The standard deviation of the differences of paired values.
    fn of_differences(first: f64, second: f64, correlation: f64) -> f64 {
        (first * first + second * second - 2.0 * correlation * first * second).sqrt()
    }

    #[test]
    fn the_known_results_of_toster_are_met() {
        // Lakens, TOSTER, tests/testthat/test-known_results.R.
        let one = Summary { mean: 0.54 - 0.5, sd: 1.2, n: 100 }.one_sample().unwrap();
        check(
            &one,
            0.3 * 1.2,
            &Known {
                t: [3.333_333, -2.666_667],
                p: [0.000_604_002_1, 0.004_474_619],
                df: 99.0,
                ninety: [-0.159_246_9, 0.239_246_9],
                ninety_five: [-0.198_106, 0.278_106],
            },
        );
        let raw = Summary { mean: 0.52 - 0.5, sd: 0.5, n: 300 }.one_sample().unwrap();
        check(
            &raw,
            0.1,
            &Known {
                t: [4.156_922, -2.771_281],
                p: [0.000_021_084_51, 0.002_966_762],
                df: 299.0,
                ninety: [-0.027_630_41, 0.067_630_41],
                ninety_five: [-0.036_809_24, 0.076_809_24],
            },
        );
        let first = Summary { mean: 5.25, sd: 0.95, n: 95 };
        let second = Summary { mean: 5.22, sd: 0.83, n: 89 };
        let two = first.welch(&second).unwrap();
        // The bounds are 0.43 of the root of the mean variance.
        check(
            &two,
            0.43 * f64::midpoint(0.95 * 0.95, 0.83 * 0.83).sqrt(),
            &Known {
                t: [3.149_73, -2.692_771],
                p: [0.000_956_008_3, 0.003_875_522],
                df: 181.1344,
                ninety: [-0.187_084_3, 0.247_084_3],
                ninety_five: [-0.229_079_9, 0.289_079_9],
            },
        );
        check(
            &two,
            0.384,
            &Known {
                t: [3.153_015, -2.696_056],
                p: [0.000_945_874_5, 0.003_838_994],
                df: 181.1344,
                ninety: [-0.187_084_3, 0.247_084_3],
                ninety_five: [-0.229_079_9, 0.289_079_9],
            },
        );
        let sd = of_differences(1.17, 1.29, 0.75);
        check(
            &Summary { mean: 5.83 - 5.75, sd, n: 65 }.one_sample().unwrap(),
            0.4 * sd,
            &Known {
                t: [3.960_381, -2.489_426],
                p: [0.000_095_317_28, 0.007_702_35],
                df: 64.0,
                ninety: [-0.101_543_3, 0.261_543_3],
                ninety_five: [-0.137_298_8, 0.297_298_8],
            },
        );
        let sd = of_differences(1.17, 1.30, 0.745);
        check(
            &Summary { mean: 5.83 - 5.75, sd, n: 65 }.one_sample().unwrap(),
            0.34,
            &Known {
                t: [3.803_437, -2.354_508],
                p: [0.000_160_610_3, 0.010_813_49],
                df: 64.0,
                ninety: [-0.104_303_2, 0.264_303_2],
                ninety_five: [-0.140_602_2, 0.300_602_2],
            },
        );
    }

    #[test]
    fn the_yields_of_ncss_are_met() {
        // NCSS, Two-Sample T-Tests for Equivalence, 198-1 to 197-8, as in TOSTER's test-NCSS1.R.
        let a = [452.0, 874.0, 554.0, 447.0, 356.0, 754.0, 558.0, 574.0, 664.0, 682.0, 547.0, 435.0, 245.0];
        let b = [
            546.0, 547.0, 774.0, 465.0, 459.0, 665.0, 467.0, 365.0, 589.0, 534.0, 456.0, 651.0, 654.0, 665.0, 546.0,
            537.0,
        ];
        for (test, p_lower, p_upper) in
            [(pooled(&a, &b).unwrap(), 0.028_21, 0.014_36), (welch(&a, &b).unwrap(), 0.036_28, 0.020_02)]
        {
            let found = tost(&test, -110.0, 110.0);
            close(found.p_lower, p_lower, 5e-6);
            close(found.p_upper, p_upper, 5e-6);
        }
    }

    #[test]
    fn without_spread_the_claim_holds_inside_the_bounds_only() {
        let test = one_sample(&[0.0, 0.0, 0.0]).unwrap();
        assert_eq!(tost(&test, -1.0, 1.0).p, 0.0);
        assert_eq!(tost(&test, 0.0, 1.0).p, 1.0);
        assert_eq!(tost(&test, 1.0, 2.0).p, 1.0);
    }

    proptest! {
        #[test]
        fn the_claim_holds_where_the_interval_lies_inside(values in common(2..20), bound in 0.0..1e3_f64) {
            if let Some(test) = one_sample(&values) {
                let (found, interval) = (tost(&test, -bound, bound), test.interval(0.9));
                prop_assert!((0.0..=1.0).contains(&found.p));
                if test.standard_error > 0.0 && (found.p - 0.05).abs() > 1e-9 {
                    prop_assert_eq!(found.p <= 0.05, -bound <= interval.low && interval.high <= bound);
                }
            }
        }
    }
}
