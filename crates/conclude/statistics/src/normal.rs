//! The standard normal distribution, and the quantile of chi-squared.

use statrs::distribution::{ChiSquared, ContinuousCDF};
use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::{PI, SQRT_2};

/// The probability of a value up to `z`.
pub(crate) fn cdf(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// The density at `z`.
pub(crate) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// The value up to which lies the probability `p`; infinite at 0 and 1.
pub(crate) fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        f64::NEG_INFINITY
    } else if p >= 1.0 {
        f64::INFINITY
    } else {
        -SQRT_2 * erfc_inv(2.0 * p)
    }
}

/// The value up to which a chi-squared distribution with `df` degrees of freedom has the
/// probability `p`, which lies between 0 and 1; `None` unless `df` is above zero and finite.
pub(crate) fn chi_squared_quantile(p: f64, df: f64) -> Option<f64> {
    let inside = p > 0.0 && p < 1.0 && df > 0.0 && df.is_finite();
    inside.then(|| ChiSquared::new(df).ok().map(|chi| chi.inverse_cdf(p))).flatten().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    #[test]
    fn values_are_those_of_published_tables() {
        // NIST/SEMATECH e-Handbook, 1.3.6.7.1 and 1.3.6.7.4 (lower critical values of chi-squared).
        close(cdf(1.96), 0.97500, 1e-5);
        close(quantile(0.975), 1.959_963_984_540, 1e-11);
        close(quantile(0.025), -1.959_963_984_540, 1e-11);
        close(chi_squared_quantile(0.05, 4.0).unwrap(), 0.711, 5e-4);
        close(chi_squared_quantile(0.95, 10.0).unwrap(), 18.307, 5e-4);
        close(density(0.0), 0.398_942_280_401, 1e-12);
    }

    #[test]
    fn the_ends_are_infinite_and_nonsense_is_none() {
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        for (p, df) in [(0.0, 3.0), (1.0, 3.0), (0.5, 0.0), (0.5, f64::NAN)] {
            assert_eq!(chi_squared_quantile(p, df), None);
        }
    }
}
