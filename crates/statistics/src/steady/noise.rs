//! How much the means of parts of a series move by chance, when neighbours resemble one another.

use crate::effective::effective_n;
use crate::t::t_quantile;

/// The noise of a series, as a first-order autoregressive process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    sd: f64,
    rho: f64,
    /// Degrees of freedom that are behind `sd`, in independent values.
    df: f64,
}

impl Noise {
    /// Of what `values` leave around a straight line: a trend is no noise.
    ///
    /// A short series makes its own autocorrelation look smaller than it is, by (2 + 4ρ)/n where a
    /// line is fitted (Kendall 1954, Marriott and Pope 1954), and hides the slowest part of its
    /// noise in the line; both are made good.
    pub(crate) fn around_a_line(values: &[f64]) -> Noise {
        let n = values.len() as f64;
        let residuals = residuals(values);
        let squares: f64 = residuals.iter().map(|one| one * one).sum();
        if n < 5.0 || squares == 0.0 {
            return Noise { sd: 0.0, rho: 0.0, df: 1.0 };
        }
        let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let rho = ((products / squares + 2.0 / n) / (1.0 - 4.0 / n)).clamp(0.0, MOST_RHO);
        let each = n / effective_n(values.len(), rho);
        let variance = squares / (n - 2.0 * each).max(n / 2.0);
        Noise { sd: variance.sqrt(), rho, df: (effective_n(values.len(), rho) - 2.0).max(1.0) }
    }

    /// The standard error of the difference of the means of two parts with so many values.
    pub(crate) fn error_of_difference(&self, first: usize, second: usize) -> f64 {
        let share = |n: usize| 1.0 / effective_n(n, self.rho).max(1e-300);
        self.sd * (share(first) + share(second)).sqrt()
    }

    /// How many standard errors a difference must reach for its two-sided p value to be `p`.
    pub(crate) fn errors_for(&self, p: f64) -> f64 {
        t_quantile(1.0 - p / 2.0, self.df)
    }
}

/// Above this, noise and trend cannot be told apart in a series of a few hundred values.
const MOST_RHO: f64 = 0.95;

/// What a least-squares line leaves of `values`.
fn residuals(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let (middle, level) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let places = || (0..values.len()).map(|place| place as f64 - middle);
    let slope = places().zip(values).map(|(place, value)| place * (value - level)).sum::<f64>()
        / places().map(|place| place * place).sum::<f64>().max(1.0);
    places().zip(values).map(|(place, value)| value - level - slope * place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_error_of_a_difference_is_what_simulation_finds() {
        let mut random = testing::Noise::new(21);
        for (n, rho) in [(40, 0.0), (40, 0.6), (120, 0.3), (240, 0.6)] {
            let (mut squares, mut claimed) = (0.0, 0.0);
            let runs = 3_000;
            for _ in 0..runs {
                let series = random.autoregressive(rho, n);
                let (first, second) = series.split_at(n / 2);
                let middle = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
                squares += (middle(first) - middle(second)).powi(2);
                claimed += Noise::around_a_line(&series).error_of_difference(n / 2, n / 2).powi(2);
            }
            let ratio: f64 = (claimed / squares).sqrt();
            assert!((0.85..1.3).contains(&ratio), "n {n}, rho {rho}: {ratio}");
        }
    }

    #[test]
    fn a_trend_is_no_noise() {
        let line: Vec<f64> = (0..50).map(f64::from).collect();
        assert!(Noise::around_a_line(&line).sd < 1e-10);
        assert_eq!(Noise::around_a_line(&[1.0, 2.0]).sd, 0.0);
    }
}
