//! Effective sample size of autocorrelated series.

use crate::sample::mean;

/// The correlation of each value with the next: Σ(xᵢ − x̄)(xᵢ₊₁ − x̄) / Σ(xᵢ − x̄)². `None` for fewer
/// than two values, or values without spread.
#[must_use]
pub fn autocorrelation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let middle = mean(values)?;
    let largest = values.iter().map(|value| (value - middle).abs()).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return None;
    }
    let scaled: Vec<f64> = values.iter().map(|value| (value - middle) / largest).collect();
    let product: f64 = scaled.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let square: f64 = scaled.iter().map(|value| value * value).sum();
    Some(product / square)
}

/// The number of independent values whose mean would be as uncertain as that of `n` values with the
/// autocorrelation `rho` of a first-order process: n / (1 + 2·Σ(1 − j/n)·ρʲ), which for many values
/// is n(1 − ρ)/(1 + ρ). `rho` is held between 0 and 0.999: values that alternate are not counted as
/// more than they are. At least 1 for n of 1 or more.
///
/// Bayley and Hammersley, *The "effective" number of independent observations in an autocorrelated
/// time series* (1946).
#[must_use]
pub fn effective_n(n: usize, rho: f64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let rho = if rho.is_nan() { 0.0 } else { rho.clamp(0.0, 0.999) };
    let count = n as f64;
    // Σ(1 − j/n)·ρʲ for j from 1 to n − 1, summed up.
    let sum = rho / (1.0 - rho) - rho * (1.0 - rho.powf(count)) / (count * (1.0 - rho).powi(2));
    (count / (1.0 + 2.0 * sum.max(0.0))).clamp(1.0, count)
}

/// [`effective_n`] of `values` with their [`autocorrelation`], corrected for the length of the
/// series: a short one underestimates its own by (1 + 3ρ)/n (Marriott and Pope 1954). The number of
/// values where they have no spread; `None` for fewer than two values, or one that is not finite.
#[must_use]
pub fn effective_size(values: &[f64]) -> Option<f64> {
    if values.len() < 2 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let rho = autocorrelation(values).map_or(0.0, |rho| (rho + 1.0 / n) / (1.0 - 3.0 / n.max(4.0)));
    Some(effective_n(values.len(), rho))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, close, samples};
    use proptest::prelude::*;

    #[test]
    fn the_sum_is_that_of_the_definition() {
        for (n, rho) in [(1, 0.5), (2, 0.5), (10, 0.3), (50, 0.9), (200, 0.0)] {
            let sum: f64 = (1..n).map(|j| (1.0 - f64::from(j) / f64::from(n)) * f64::powi(rho, j)).sum();
            close(effective_n(n as usize, rho), f64::from(n) / (1.0 + 2.0 * sum), 1e-9);
        }
        close(effective_n(100_000, 0.6), 25_000.0, 3.0);
        assert_eq!((effective_n(0, 0.5), effective_n(7, -0.5), effective_n(7, f64::NAN)), (0.0, 7.0, 7.0));
    }

    #[test]
    fn the_autocorrelation_of_noise_is_found() {
        let mut noise = Noise::new(3);
        for rho in [0.0, 0.3, 0.6, 0.9] {
            let series = noise.autoregressive(rho, 20_000);
            close(autocorrelation(&series).unwrap(), rho, 0.02);
        }
        // By hand: deviations −1.5, −0.5, 0.5, 1.5: (0.75 − 0.25 + 0.75) / 5.
        close(autocorrelation(&[1.0, 2.0, 3.0, 4.0]).unwrap(), 0.25, 1e-12);
    }

    proptest! {
        #[test]
        fn any_series_gives_a_number_or_none(values in samples(0..40), n in 0_usize..500, rho in -2.0..2.0) {
            if let Some(found) = autocorrelation(&values) {
                prop_assert!((-1.0..=1.0).contains(&found));
            }
            let found = effective_n(n, rho);
            prop_assert!(found <= n as f64 && (n == 0 || found >= 1.0));
        }
    }
}
