//! The noncentral t distribution: the distribution of the t statistic when the null hypothesis is
//! false.

use crate::{normal, quadrature};

/// The widest panel for the density of the root of chi-squared, whose standard deviation is at
/// most 0.71.
const MAX_PANEL_OF_DENSITY: f64 = 2.0;
/// The widest panel where the normal probability rises, in its own standard deviations.
const MAX_PANEL_OF_RISE: f64 = 4.0;
/// Beyond this many standard deviations the normal density is negligible.
const NEGLIGIBLE_BEYOND: f64 = 9.0;
/// The most panels of a stretch. Only a `t` so large that the rise is a step reaches it.
const MAX_PANELS: usize = 64;

/// The probability that a noncentral t with `df` degrees of freedom (1 or more) and noncentrality
/// `delta` is at most `t`: P((Z + δ) / √(χ²/df) ≤ t).
///
/// It is the mean of Φ(t·w/√df − δ) over w, the root of chi-squared, whose density is proportional
/// to w^(df − 1)·exp(−w²/2), by Gauss and Legendre's rule. The error is below 1e-10. Johnson, Kotz
/// and Balakrishnan, *Continuous Univariate Distributions* 2 (1995), chapter 31.
#[must_use]
pub fn noncentral_t_cdf(t: f64, df: f64, delta: f64) -> f64 {
    if delta.is_infinite() || t.is_infinite() {
        return if delta == f64::INFINITY || t == f64::NEG_INFINITY { 0.0 } else { 1.0 };
    }
    if df > 1e6 {
        return normal::cdf(t - delta);
    }
    let root = df.sqrt();
    let (low, high) = ((root - NEGLIGIBLE_BEYOND).max(0.0), root + NEGLIGIBLE_BEYOND);
    let mode = (df - 1.0).max(0.0).sqrt();
    // In units of the density at the mode; the constant falls out of the ratio below.
    let density = |w: f64| {
        let power = if df > 1.0 { (df - 1.0) * (w / mode).ln() } else { 0.0 };
        (power - 0.5 * (w - mode) * (w + mode)).exp()
    };
    // Φ rises around w = δ·√df/t within a few times √df/|t|: the panels are finer there.
    let mut ends = vec![low, high];
    let (rise, width) = (delta * root / t, root / t.abs());
    for end in [rise - NEGLIGIBLE_BEYOND * width, rise + NEGLIGIBLE_BEYOND * width] {
        if end > low && end < high {
            ends.push(end);
        }
    }
    ends.sort_by(f64::total_cmp);
    let (mut below, mut all) = (0.0, 0.0);
    for pair in ends.windows(2) {
        let inside = (f64::midpoint(pair[0], pair[1]) - rise).abs() <= NEGLIGIBLE_BEYOND * width;
        let panel = if inside { MAX_PANEL_OF_DENSITY.min(MAX_PANEL_OF_RISE * width) } else { MAX_PANEL_OF_DENSITY };
        let panels = (((pair[1] - pair[0]) / panel).ceil().max(1.0) as usize).min(MAX_PANELS);
        for (w, weight) in quadrature::points(pair[0], pair[1], panels) {
            let share = weight * density(w);
            all += share;
            below += share * normal::cdf(t * w / root - delta);
        }
    }
    (below / all).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t::{t_cdf, t_quantile};
    use crate::testing::close;
    use proptest::prelude::*;

    #[test]
    fn without_noncentrality_it_is_students_t() {
        for df in [1.0, 2.0, 3.0, 4.0, 9.0, 17.776, 100.0, 9_999.0] {
            for t in [-40.0, -3.0, -0.5, 0.0, 1e-9, 0.5, 2.0, 12.706, 1e4] {
                close(noncentral_t_cdf(t, df, 0.0), t_cdf(t, df), 1e-10);
            }
        }
    }

    #[test]
    fn at_zero_it_is_the_normal_distribution() {
        for delta in [-2.0, 0.3, 5.0] {
            close(noncentral_t_cdf(0.0, 7.0, delta), normal::cdf(-delta), 1e-12);
        }
    }

    #[test]
    fn values_are_those_published() {
        // Burkardt, TEST_VALUES, student_noncentral_cdf_values, computed with Mathematica.
        let table = [
            (3.0, 1.0, 0.0, 0.897_583_617_650_433_3),
            (3.0, 2.0, 0.0, 0.952_267_016_9),
            (3.0, 3.0, 0.0, 0.971_165_557_188_781_3),
            (3.0, 1.0, 0.5, 0.823_121_886_4),
            (3.0, 2.0, 0.5, 0.904_902_151_0),
            (3.0, 3.0, 0.5, 0.936_347_183_4),
            (3.0, 1.0, 1.0, 0.730_102_598_6),
            (3.0, 2.0, 1.0, 0.833_559_426_3),
            (3.0, 3.0, 1.0, 0.877_401_025_5),
            (3.0, 1.0, 2.0, 0.524_857_161_7),
            (3.0, 2.0, 2.0, 0.629_385_659_7),
            (3.0, 3.0, 2.0, 0.680_027_174_1),
            (3.0, 1.0, 4.0, 0.205_901_319_75),
            (3.0, 2.0, 4.0, 0.211_214_891_6),
            (3.0, 3.0, 4.0, 0.207_473_071_8),
            (15.0, 15.0, 7.0, 0.998_113_007_2),
            (15.0, 20.0, 7.0, 0.999_487_385_0),
            (15.0, 25.0, 7.0, 0.999_839_156_2),
            (0.05, 1.0, 1.0, 0.168_610_566_972),
            (0.05, 2.0, 1.0, 0.169_679_509_85),
            (0.05, 3.0, 1.0, 0.170_104_100_3),
            (4.0, 10.0, 2.0, 0.924_768_336_3),
            (4.0, 10.0, 3.0, 0.748_313_926_9),
            (4.0, 10.0, 4.0, 0.465_980_209_6),
            (5.0, 10.0, 2.0, 0.976_187_254_1),
            (5.0, 10.0, 3.0, 0.897_968_935_7),
            (5.0, 10.0, 4.0, 0.718_190_462_7),
            (6.0, 10.0, 2.0, 0.992_365_894_5),
            (6.0, 10.0, 3.0, 0.961_034_164_9),
            (6.0, 10.0, 4.0, 0.868_800_735_0),
        ];
        for (t, df, delta, expected) in table {
            close(noncentral_t_cdf(t, df, delta), expected, 1e-10);
        }
    }

    #[test]
    fn the_ends_are_certain() {
        assert_eq!(noncentral_t_cdf(f64::INFINITY, 4.0, 1.0), 1.0);
        assert_eq!(noncentral_t_cdf(f64::NEG_INFINITY, 4.0, 1.0), 0.0);
        assert_eq!(noncentral_t_cdf(2.0, 4.0, f64::INFINITY), 0.0);
        assert_eq!(noncentral_t_cdf(2.0, 4.0, f64::NEG_INFINITY), 1.0);
        close(noncentral_t_cdf(t_quantile(0.975, 1.0), 1.0, 1e8), 0.0, 1e-12);
    }

    proptest! {
        #[test]
        fn it_is_a_probability_that_rises_with_t_and_falls_with_delta(
            t in -1e3..1e3,
            df in 1.0..2e6,
            delta in -50.0..50.0,
            more in 0.0..10.0,
        ) {
            let (t, df, delta, more): (f64, f64, f64, f64) = (t, df, delta, more);
            let p = noncentral_t_cdf(t, df, delta);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!(noncentral_t_cdf(t + more, df, delta) >= p - 1e-10);
            prop_assert!(noncentral_t_cdf(t, df, delta + more) <= p + 1e-10);
            // (−T) with −δ is T with δ turned round.
            prop_assert!((noncentral_t_cdf(-t, df, -delta) - (1.0 - p)).abs() < 1e-10);
        }
    }
}
