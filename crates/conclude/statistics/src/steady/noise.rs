//! Autocorrelated noise: how much the means of parts of a series vary by chance.

use crate::effective::effective_n;
use crate::sample::mean;
use crate::t::{TTest, t_quantile};

/// The two halves of a series in time, compared with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halves {
    /// The mean of the first half; the smaller one where the number of values is odd.
    pub first: f64,
    /// The mean of the second half.
    pub second: f64,
    /// The standard error of their difference, autocorrelation included.
    pub standard_error: f64,
    /// The degrees of freedom of that error.
    pub df: f64,
    /// The two-sided p value of the null hypothesis of no difference.
    pub p: f64,
}

impl Halves {
    /// The logarithm of the ratio of the second half to the first, with the error that the difference gives it (to first order);
    /// `None` unless both means are above zero.
    #[must_use]
    pub fn log_ratio(&self) -> Option<TTest> {
        let standard_error = self.standard_error / (self.first * self.second).sqrt();
        let positive = self.first > 0.0 && self.second > 0.0 && standard_error.is_finite();
        positive.then(|| TTest { estimate: (self.second / self.first).ln(), standard_error, df: self.df })
    }
}

/// Compares the first half of a series with the second: whether the series stays the same. `None`
/// for fewer than eight values, or one that is not finite, or a spread beyond the range of numbers.
///
/// The noise is taken as a first-order autoregressive process around a straight line, or around two
/// levels where those fit far better, so that a drift or a step does not count as noise.
#[must_use]
pub fn halves(values: &[f64]) -> Option<Halves> {
    if values.len() < 8 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let (early, late) = values.split_at(values.len() / 2);
    let (first, second) = (mean(early)?, mean(late)?);
    let noise = Noise::of(values);
    let standard_error = noise.error_of_difference(early.len(), late.len());
    let test = TTest { estimate: second - first, standard_error, df: noise.df };
    let fine = test.estimate.is_finite() && standard_error.is_finite();
    fine.then(|| Halves { first, second, standard_error, df: noise.df, p: test.p_two_sided(0.0) })
}

/// Compares the third quarter of a series with the fourth: whether what changed before still does. `None` for fewer than sixteen
/// values, and as of [`halves`].
///
/// The noise is that of the whole series: half of it is short, and what moves in slow steps looks there like noise that swings
/// slowly. Where the series bends, so that neither a line nor two levels fit it, the noise is that of the second half alone.
#[must_use]
pub fn later_halves(values: &[f64]) -> Option<Halves> {
    let later = &values[values.len() / 2..];
    let alone = halves(later).filter(|_| values.len() >= 16)?;
    let noise = Noise::of(values);
    let standard_error = noise.error_of_difference(later.len() / 2, later.len().div_ceil(2));
    if !standard_error.is_finite() || noise.sd > BENT * Noise::of(later).sd {
        return Some(alone);
    }
    let test = TTest { estimate: alone.second - alone.first, standard_error, df: noise.df };
    Some(Halves { standard_error, df: noise.df, p: test.p_two_sided(0.0), ..alone })
}

/// The noise of a series, as a first-order autoregressive process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    sd: f64,
    rho: f64,
    /// Degrees of freedom of `sd`, in independent values.
    df: f64,
}

impl Noise {
    /// Estimates the noise of `values` from the residuals around a straight line, or around two
    /// levels where those fit far better: neither a trend nor a step is noise.
    ///
    /// A short series underestimates its own autocorrelation by (2 + 4ρ)/n where a line is fitted
    /// (Kendall 1954, Marriott and Pope 1954), and its line absorbs the slowest part of its noise;
    /// both are corrected.
    pub(crate) fn of(values: &[f64]) -> Noise {
        let n = values.len() as f64;
        let none = Noise { sd: 0.0, rho: 0.0, df: 1.0 };
        if n < 5.0 {
            return none;
        }
        let residuals = residuals(values);
        let squares: f64 = residuals.iter().map(|one| one * one).sum();
        if squares == 0.0 {
            return none;
        }
        let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let rho = ((products / squares + 2.0 / n) / (1.0 - 4.0 / n)).clamp(0.0, MAX_RHO);
        let each = n / effective_n(values.len(), rho);
        let variance = squares / (n - 2.0 * each).max(n / 2.0);
        Noise { sd: variance.sqrt(), rho, df: (n * (1.0 - rho * rho) / (1.0 + rho * rho) - 2.0).max(1.0) }
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

/// Above this autocorrelation, noise and trend cannot be distinguished in a series of a few hundred
/// values.
const MAX_RHO: f64 = 0.95;

/// A series bends where the noise around what fits it is so many times that in its second half.
const BENT: f64 = 2.0;

/// Two levels are preferred where their residual sum of squares is below this share of that of a
/// line.
const MAX_RATIO_OF_SQUARES: f64 = 0.5;

fn residuals(values: &[f64]) -> Vec<f64> {
    let (line, levels) = (around_a_line(values), around_two_levels(values));
    let squares = |residuals: &[f64]| residuals.iter().map(|one| one * one).sum::<f64>();
    if squares(&levels) < MAX_RATIO_OF_SQUARES * squares(&line) { levels } else { line }
}

/// The residuals around the best two levels, one before and one after a place that is not too near
/// an end.
fn around_two_levels(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let all: f64 = values.iter().sum();
    let mut before: f64 = values[..n / 8].iter().sum();
    let mut best = (f64::NEG_INFINITY, 0, 0.0);
    for (place, value) in values.iter().enumerate().take(n - n / 8).skip(n / 8) {
        before += value;
        let (first, second) = ((place + 1) as f64, (n - place - 1) as f64);
        // The squares between the levels, up to what is the same for all places.
        let between = before * before / first + (all - before) * (all - before) / second.max(1.0);
        if between > best.0 {
            best = (between, place + 1, before);
        }
    }
    let (_, place, before) = best;
    let (first, second) = (before / place as f64, (all - before) / (n - place).max(1) as f64);
    let level = |index: usize| if index < place { first } else { second };
    values.iter().enumerate().map(|(index, value)| value - level(index)).collect()
}

/// The residuals around a least-squares line.
fn around_a_line(values: &[f64]) -> Vec<f64> {
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
    use crate::testing::{self, samples};
    use proptest::prelude::*;

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
                claimed += Noise::of(&series).error_of_difference(n / 2, n / 2).powi(2);
            }
            let ratio: f64 = (claimed / squares).sqrt();
            assert!((0.85..1.3).contains(&ratio), "n {n}, rho {rho}: {ratio}");
        }
    }

    #[test]
    fn neither_a_trend_nor_a_step_is_noise() {
        let line: Vec<f64> = (0..50).map(f64::from).collect();
        assert!(Noise::of(&line).sd < 1e-10);
        let step: Vec<f64> = (0..50).map(|place| if place < 35 { 1.0 } else { 2.0 }).collect();
        assert!(Noise::of(&step).sd < 1e-10);
        assert_eq!(Noise::of(&[1.0, 2.0]).sd, 0.0);
    }

    #[test]
    fn halves_differ_by_chance_as_often_as_they_should() {
        let mut random = testing::Noise::new(22);
        for (n, rho) in [(20, 0.0), (40, 0.0), (40, 0.6), (120, 0.3), (240, 0.6)] {
            let runs = 4_000;
            let found = (0..runs).filter(|_| halves(&random.autoregressive(rho, n)).unwrap().p <= 0.01);
            let share = found.count() as f64 / f64::from(runs);
            assert!(share <= 0.03, "n {n}, rho {rho}: {share}");
        }
    }

    #[test]
    fn the_interval_of_the_ratio_holds_the_truth() {
        let mut random = testing::Noise::new(24);
        for (n, rho, growth) in [(60, 0.0, 1.0), (60, 0.0, 1.3), (60, 0.3, 1.1), (20, 0.0, 1.1)] {
            let runs = 3_000;
            let holds = |_: &i32| {
                // A line whose second half has the mean of the first times `growth`.
                let slope = 2.0 * (growth - 1.0) / n as f64;
                let level = |at: usize| 1.0 + slope * (at as f64 - n as f64 / 4.0 + 0.5);
                let noise = random.autoregressive(rho, n);
                let series: Vec<f64> = noise.iter().enumerate().map(|(at, one)| level(at) + 0.05 * one).collect();
                let interval = halves(&series).unwrap().log_ratio().unwrap().interval(0.95);
                interval.contains(f64::ln(growth))
            };
            let share = (0..runs).filter(holds).count() as f64 / f64::from(runs);
            assert!((0.93..=0.995).contains(&share), "n {n}, rho {rho}, growth {growth}: {share}");
        }
        assert_eq!(halves(&[0.0; 8]).unwrap().log_ratio(), None);
    }

    #[test]
    fn what_goes_on_is_seen_in_the_second_half_as_well() {
        let mut random = testing::Noise::new(25);
        // A line that falls or rises by 10 from end to end, and noise.
        for (n, rho, noise) in [(60, 0.0, 1.0), (60, 0.6, 1.0), (60, 0.8, 0.5), (32, 0.3, 1.0), (16, 0.0, 1.0)] {
            let runs = 2_000;
            let (mut holds, mut clear) = (0, 0);
            for _ in 0..runs {
                let series = random.autoregressive(rho, n);
                let line = |at: usize| 20.0 + 10.0 * at as f64 / n as f64;
                let series: Vec<f64> = series.iter().enumerate().map(|(at, one)| line(at) + noise * one).collect();
                let found = later_halves(&series).unwrap();
                let reach = found.standard_error * t_quantile(0.975, found.df);
                holds += usize::from((found.second - found.first - 2.5).abs() <= reach);
                clear += usize::from(found.p < 0.05);
            }
            let share = |count: usize| count as f64 / f64::from(runs);
            assert!(share(holds) >= 0.93, "n {n}, rho {rho}: {}", share(holds));
            assert!(share(clear) >= 0.3, "n {n}, rho {rho}: {}", share(clear));
        }
        assert_eq!(later_halves(&[1.0; 15]), None);
    }

    #[test]
    fn drifts_and_steps_are_seen() {
        let mut random = testing::Noise::new(23);
        let shapes: [fn(f64) -> f64; 3] = [|at| 10.0 * at, |at| if at < 0.7 { 0.0 } else { 10.0 }, |at| -10.0 * at];
        for shape in shapes {
            let noise = random.autoregressive(0.3, 60);
            let series: Vec<f64> =
                noise.iter().enumerate().map(|(at, noise)| shape(at as f64 / 60.0) + noise).collect();
            let found = halves(&series).unwrap();
            assert!(found.p < 0.001 && (found.second - found.first) * shape(0.9) > 0.0, "{found:?}");
        }
        assert_eq!(halves(&[1.0; 8]).unwrap().p, 1.0);
        assert_eq!(halves(&[1.0; 7]), None);
    }

    proptest! {
        #[test]
        fn any_series_has_halves_or_none(values in samples(0..40)) {
            if let Some(found) = halves(&values) {
                prop_assert!((0.0..=1.0).contains(&found.p) && found.standard_error >= 0.0, "{:?}", found);
            }
        }
    }
}
