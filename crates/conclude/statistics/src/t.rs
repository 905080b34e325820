//! Student's t: one mean, the mean of paired differences, and the difference of two means.
//!
//! Student, *The Probable Error of a Mean* (1908); Welch, *The generalization of "Student's"
//! problem when several different population variances are involved* (1947).

use crate::normal;
use crate::sample::{Interval, mean, standard_deviation};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;
use std::cmp::Ordering;

/// An estimate whose distribution around the true value is Student's t, in units of its standard
/// error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// The estimate: a mean, or a difference of means.
    pub estimate: f64,
    /// Its standard error; zero where all values were equal.
    pub standard_error: f64,
    /// Its degrees of freedom, 1 or more; Welch's need not be whole.
    pub df: f64,
}

impl TTest {
    /// The confidence interval with `confidence` (0.95 is 95 %): estimate ± t · standard error.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Interval {
        // Without an error, the interval is the estimate at any confidence.
        let half = if self.standard_error == 0.0 {
            0.0
        } else {
            t_quantile(f64::midpoint(1.0, confidence), self.df).max(0.0) * self.standard_error
        };
        Interval { low: self.estimate - half, high: self.estimate + half }
    }

    /// The distance of the estimate from `null` in standard errors; infinite where the error is
    /// zero and the distance is not.
    #[must_use]
    pub fn statistic(&self, null: f64) -> f64 {
        let distance = self.estimate - null;
        if distance == 0.0 { 0.0 } else { distance / self.standard_error }
    }

    /// The p value of the null hypothesis that the truth is `null`.
    #[must_use]
    pub fn p_two_sided(&self, null: f64) -> f64 {
        let p = 2.0 * t_cdf(-self.statistic(null).abs(), self.df);
        p.min(1.0)
    }

    /// The p value of the null hypothesis that the truth is at most `null`: small when it is
    /// greater.
    #[must_use]
    pub fn p_greater(&self, null: f64) -> f64 {
        self.p_less_of(-self.statistic(null))
    }

    /// The p value of the null hypothesis that the truth is at least `null`: small when it is
    /// less.
    #[must_use]
    pub fn p_less(&self, null: f64) -> f64 {
        self.p_less_of(self.statistic(null))
    }

    fn p_less_of(&self, statistic: f64) -> f64 {
        // Without an error there is no doubt on which side the estimate lies.
        if self.standard_error == 0.0 && statistic == 0.0 { 1.0 } else { t_cdf(statistic, self.df) }
    }
}

/// The summary of a sample that a t test needs. Published examples often give no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with n − 1.
    pub sd: f64,
    /// The number of values, 2 or more.
    pub n: usize,
}

impl Summary {
    /// The summary of `values`; `None` for fewer than two, or one that is not finite, or a spread
    /// beyond the range of numbers.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Summary> {
        Some(Summary { mean: mean(values)?, sd: standard_deviation(values)?, n: values.len() })
    }

    /// The mean, with standard error sd / √n and n − 1 degrees of freedom.
    #[must_use]
    pub fn one_sample(&self) -> Option<TTest> {
        let df = self.n.checked_sub(1).filter(|df| *df > 0)? as f64;
        TTest { estimate: self.mean, standard_error: self.error(), df }.checked()
    }

    /// This mean less that of `other`, without assuming that their standard deviations are equal:
    /// standard error √(s₁²/n₁ + s₂²/n₂), degrees of freedom by Welch and Satterthwaite.
    #[must_use]
    pub fn welch(&self, other: &Summary) -> Option<TTest> {
        if self.n < 2 || other.n < 2 {
            return None;
        }
        let (first, second) = (self.error(), other.error());
        let larger = first.max(second);
        let df = if larger == 0.0 {
            (self.n + other.n - 2) as f64
        } else {
            // In units of the larger error, so that no square leaves the range of numbers.
            let (first, second) = ((first / larger).powi(2), (second / larger).powi(2));
            (first + second).powi(2) / (first.powi(2) / (self.n - 1) as f64 + second.powi(2) / (other.n - 1) as f64)
        };
        TTest { estimate: self.mean - other.mean, standard_error: first.hypot(second), df }.checked()
    }

    /// This mean less that of `other`, assuming that their standard deviations are equal: the
    /// pooled standard deviation, and n₁ + n₂ − 2 degrees of freedom.
    #[must_use]
    pub fn pooled(&self, other: &Summary) -> Option<TTest> {
        if self.n < 2 || other.n < 2 {
            return None;
        }
        let df = (self.n + other.n - 2) as f64;
        let share = |summary: &Summary| summary.sd * ((summary.n - 1) as f64 / df).sqrt();
        let sd = share(self).hypot(share(other));
        let standard_error = sd * (1.0 / self.n as f64 + 1.0 / other.n as f64).sqrt();
        TTest { estimate: self.mean - other.mean, standard_error, df }.checked()
    }

    fn error(&self) -> f64 {
        self.sd / (self.n as f64).sqrt()
    }
}

impl TTest {
    fn checked(self) -> Option<TTest> {
        let fine = self.estimate.is_finite() && self.standard_error.is_finite() && self.standard_error >= 0.0;
        (fine && self.df.is_finite() && self.df > 0.0).then_some(self)
    }
}

/// The mean of `values`, or of paired differences; `None` for fewer than two values.
#[must_use]
pub fn one_sample(values: &[f64]) -> Option<TTest> {
    Summary::of(values)?.one_sample()
}

/// mean(x) − mean(y), by [`Summary::welch`]; `None` for fewer than two values on either side.
#[must_use]
pub fn welch(x: &[f64], y: &[f64]) -> Option<TTest> {
    Summary::of(x)?.welch(&Summary::of(y)?)
}

/// mean(x) − mean(y), by [`Summary::pooled`]; `None` for fewer than two values on either side.
#[must_use]
pub fn pooled(x: &[f64], y: &[f64]) -> Option<TTest> {
    Summary::of(x)?.pooled(&Summary::of(y)?)
}

/// Above this many degrees of freedom the t distribution is computed through the normal one: the
/// difference is below 1e-10, and the continued fraction for the exact value would converge too
/// slowly.
const NORMAL_FROM_DF: f64 = 1e5;

/// The probability that Student's t with `df` degrees of freedom (above zero) is at most `t`.
#[must_use]
pub fn t_cdf(t: f64, df: f64) -> f64 {
    if t > 0.0 { 1.0 - upper_tail(t, df) } else { upper_tail(-t, df) }
}

/// The value up to which Student's t with `df` degrees of freedom (above zero) has the probability
/// `p`. Infinite where `p` is 0 or 1, and held there where `p` is beyond.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if p >= 0.5 { upper_quantile(1.0 - p, df) } else { -upper_quantile(p, df) }
}

/// The probability of a value of at least `t`, which is zero or above.
fn upper_tail(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        0.0
    } else if df > NORMAL_FROM_DF {
        normal::cdf(-t * (1.0 - 1.0 / (4.0 * df)) / (1.0 + t * t / (2.0 * df)).sqrt())
    } else if t < 1.0 {
        // Near the middle through the probability of the middle, which is exact there.
        0.5 - 0.5 * beta_reg(0.5, df / 2.0, t * t / (df + t * t))
    } else {
        // Abramowitz and Stegun 26.7.1: I(df/2, 1/2) at df / (df + t²).
        0.5 * beta_reg(df / 2.0, 0.5, df / (df + t * t))
    }
}

/// The value of zero or above that is exceeded with the probability `q`.
fn upper_quantile(q: f64, df: f64) -> f64 {
    if q >= 0.5 {
        return 0.0;
    }
    if q <= 0.0 {
        return f64::INFINITY;
    }
    // Newton's method, in t near the middle and in the logarithms of t and of the tail far out, where
    // they are nearly a line. A step out of the bracket is replaced by halving it.
    let far = q < 0.2;
    let (mut low, mut high) = (0.0, f64::MAX);
    let mut t = if far { 1.0 } else { 0.0 };
    for _ in 0..500 {
        let (tail, density) = (upper_tail(t, df), density(t, df));
        match tail.partial_cmp(&q) {
            Some(Ordering::Greater) => low = t,
            Some(Ordering::Less) => high = t,
            _ => break,
        }
        let step = if far { t * ((tail / q).ln() * tail / (t * density)).exp() } else { t + (tail - q) / density };
        if (step - t).abs() <= 1e-13 * t {
            break;
        }
        t = if step > low && step < high {
            step
        } else if low > 0.0 && high > 2.0 * low {
            // Orders of magnitude apart, the middle is the geometric one.
            low.sqrt() * high.sqrt()
        } else {
            f64::midpoint(low, high)
        };
    }
    t
}

fn density(t: f64, df: f64) -> f64 {
    let constant = ln_gamma(f64::midpoint(df, 1.0)) - ln_gamma(df / 2.0) - 0.5 * (df * std::f64::consts::PI).ln();
    (constant - f64::midpoint(df, 1.0) * (t * t / df).ln_1p()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{close, samples};
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values.
        let table = [
            (0.975, 1.0, 12.706),
            (0.975, 2.0, 4.303),
            (0.975, 3.0, 3.182),
            (0.975, 4.0, 2.776),
            (0.975, 5.0, 2.571),
            (0.975, 9.0, 2.262),
            (0.975, 30.0, 2.042),
            (0.975, 100.0, 1.984),
            (0.90, 7.0, 1.415),
            (0.95, 10.0, 1.812),
            (0.99, 3.0, 4.541),
            (0.999, 2.0, 22.327),
            (0.999, 60.0, 3.232),
        ];
        for (p, df, expected) in table {
            close(t_quantile(p, df), expected, 6e-4);
            close(t_quantile(1.0 - p, df), -expected, 6e-4);
        }
    }

    #[test]
    fn multipliers_are_those_of_the_method() {
        // METHOD 6.4: t/√n for 95 %.
        let table = [(3.0, 2.48), (4.0, 1.59), (5.0, 1.24), (6.0, 1.05), (8.0, 0.836), (10.0, 0.715)];
        for (n, expected) in table {
            let digits = if expected < 1.0 { 5e-4 } else { 5e-3 };
            close(t_quantile(0.975, n - 1.0) / f64::sqrt(n), expected, digits);
        }
    }

    #[test]
    fn a_quantile_and_its_probability_agree() {
        for df in [1.0, 1.3, 2.0, 2.9, 4.0, 19.169, 181.0, 9_999.0, 99_999.0, 1e6, 1e9] {
            for p in [1e-12, 1e-5, 0.025, 0.1, 0.19, 0.21, 0.4, 0.49, 0.51, 0.975, 0.9995] {
                let back = t_cdf(t_quantile(p, df), df);
                close(back / p, 1.0, 1e-10);
            }
        }
        // Closed forms for one and two degrees of freedom.
        close(t_quantile(0.75, 1.0), 1.0, 1e-12);
        close(t_quantile(0.9, 2.0), 0.8 * (2.0_f64 / (1.0 - 0.64)).sqrt(), 1e-12);
        // Where the normal approximation takes over, it agrees with the exact value.
        close(t_quantile(0.975, 99_999.9), t_quantile(0.975, 100_000.1), 1e-9);
        close(t_quantile(0.975, 1e12), normal::quantile(0.975), 1e-9);
    }

    #[test]
    fn the_interval_of_benchstat_is_met() {
        // golang.org/x/perf, benchmath/assumption_test.go, TestSummaryNormal.
        let test = one_sample(&[-8.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        close(test.estimate, 2.0, 1e-15);
        let interval = test.interval(0.95);
        close(interval.low, -3.351_092_806_089_359, 1e-12);
        close(interval.high, 7.351_092_806_089_359, 1e-12);
    }

    #[test]
    fn two_samples_agree_with_ncss() {
        // NCSS, Two-Sample T-Tests for Equivalence, as in TOSTER's test-NCSS1.R.
        let a = [452.0, 874.0, 554.0, 447.0, 356.0, 754.0, 558.0, 574.0, 664.0, 682.0, 547.0, 435.0, 245.0];
        let b = [
            546.0, 547.0, 774.0, 465.0, 459.0, 665.0, 467.0, 365.0, 589.0, 534.0, 456.0, 651.0, 654.0, 665.0, 546.0,
            537.0,
        ];
        let equal = pooled(&a, &b).unwrap();
        close(equal.estimate, -8.115_384_6, 1e-7);
        close(equal.standard_error, 51.114_285, 1e-6);
        assert_eq!(equal.df, 27.0);
        close(equal.interval(0.95).low, -112.993_23, 1e-5);
        close(equal.interval(0.95).high, 96.762_46, 1e-5);
        let unequal = welch(&a, &b).unwrap();
        close(unequal.standard_error, 53.618_547, 1e-6);
        close(unequal.df, 19.169, 5e-4);
        close(unequal.interval(0.95).low, -120.273_36, 1e-5);
        close(unequal.interval(0.95).high, 104.042_59, 1e-5);
    }

    #[test]
    fn the_sleep_data_of_student_come_out() {
        // Student 1908 (R's `sleep`): R documents t = -4.0621, df = 9, p = 0.002833 for the paired
        // test, and t = -1.8608, df = 17.776, p = 0.07939 for Welch's.
        let x = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let y = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
        let paired = one_sample(&differences).unwrap();
        close(paired.statistic(0.0), -4.0621, 5e-5);
        close(paired.p_two_sided(0.0), 0.002_833, 5e-7);
        close(paired.interval(0.95).low, -2.459_885_8, 1e-7);
        close(paired.interval(0.95).high, -0.700_114_2, 1e-7);
        let apart = welch(&x, &y).unwrap();
        close(apart.statistic(0.0), -1.8608, 5e-5);
        close(apart.df, 17.776, 5e-4);
        close(apart.p_two_sided(0.0), 0.079_39, 5e-6);
        close(apart.interval(0.95).low, -3.365_483_2, 1e-7);
        close(apart.interval(0.95).high, 0.205_483_2, 1e-7);
    }

    #[test]
    fn without_spread_there_is_no_doubt() {
        let test = one_sample(&[2.0, 2.0, 2.0]).unwrap();
        assert_eq!(test.interval(0.95), Interval { low: 2.0, high: 2.0 });
        assert_eq!(test.interval(1.0), Interval { low: 2.0, high: 2.0 });
        assert_eq!((test.p_two_sided(2.0), test.p_two_sided(1.0)), (1.0, 0.0));
        assert_eq!((test.p_greater(1.0), test.p_greater(2.0), test.p_greater(3.0)), (0.0, 1.0, 1.0));
        assert_eq!((test.p_less(1.0), test.p_less(2.0), test.p_less(3.0)), (1.0, 1.0, 0.0));
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]).unwrap().p_two_sided(0.0), 0.0);
    }

    #[test]
    fn too_little_is_none() {
        assert_eq!(one_sample(&[]), None);
        assert_eq!(one_sample(&[1.0]), None);
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(pooled(&[1.0, 2.0], &[]), None);
        assert_eq!(one_sample(&[1.0, f64::NAN]), None);
        assert_eq!(Summary { mean: 0.0, sd: 1.0, n: 1 }.one_sample(), None);
        assert_eq!(Summary { mean: 0.0, sd: -1.0, n: 9 }.one_sample(), None);
    }

    fn check(test: &TTest) -> Result<(), TestCaseError> {
        let wide = test.interval(0.99);
        let narrow = test.interval(0.9);
        prop_assert!(wide.low <= narrow.low && narrow.low <= test.estimate);
        prop_assert!(wide.high >= narrow.high && narrow.high >= test.estimate);
        for null in [0.0, test.estimate, wide.high, -1e300] {
            for p in [test.p_two_sided(null), test.p_less(null), test.p_greater(null)] {
                prop_assert!((0.0..=1.0).contains(&p), "p {p}");
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_sample_gives_numbers_or_none(x in samples(0..30), y in samples(0..30)) {
            for test in [one_sample(&x), welch(&x, &y), pooled(&x, &y)].into_iter().flatten() {
                check(&test)?;
            }
        }

        #[test]
        fn swapping_the_samples_turns_the_sign(x in samples(2..30), y in samples(2..30)) {
            for test in [welch, pooled] {
                if let (Some(forth), Some(back)) = (test(&x, &y), test(&y, &x)) {
                    let (forth, back) = (forth.interval(0.95), back.interval(0.95).negated());
                    let slack = (forth.high.abs() + forth.low.abs()) * 1e-12;
                    prop_assert!((forth.low - back.low).abs() <= slack && (forth.high - back.high).abs() <= slack);
                }
            }
        }

        #[test]
        fn the_interval_holds_what_the_test_does_not_reject(x in samples(2..30), null in -1e3..1e3) {
            if let Some(test) = one_sample(&x) {
                let p = test.p_two_sided(null);
                if (p - 0.05).abs() > 1e-6 {
                    prop_assert_eq!(test.interval(0.95).contains(null), p > 0.05);
                }
            }
        }

        #[test]
        fn probabilities_rise(a in -1e6..1e6, b in -1e6..1e6, df in 1.0..1e6) {
            let (a, b): (f64, f64) = (a, b);
            prop_assert!(t_cdf(a.min(b), df) <= t_cdf(a.max(b), df) + 1e-14);
        }
    }
}
