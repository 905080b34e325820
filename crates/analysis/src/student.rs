//! Student's t distribution, as far as intervals need it.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The quantile of Student's t distribution at probability `p` with `df` degrees of freedom.
pub(crate) fn quantile(p: f64, df: usize) -> f64 {
    distribution(df).inverse_cdf(p)
}

/// The probability of a value at least as far from zero as `t`, on either side.
pub(crate) fn two_sided_p(t: f64, df: usize) -> f64 {
    2.0 * distribution(df).sf(t.abs())
}

fn distribution(df: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, df as f64).expect("degrees of freedom are above zero")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values at 0.975.
        let table =
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (30, 2.042), (100, 1.984)];
        for (df, expected) in table {
            assert!((quantile(0.975, df) - expected).abs() < 6e-4, "df {df}: {}", quantile(0.975, df));
        }
    }

    #[test]
    fn a_quantile_and_its_probability_agree() {
        assert!((two_sided_p(2.776_445, 4) - 0.05).abs() < 1e-6);
        assert!((two_sided_p(-2.776_445, 4) - 0.05).abs() < 1e-6);
    }
}
