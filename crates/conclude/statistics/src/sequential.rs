//! Group sequential tests: significance levels that keep the probability of a false alarm over
//! several looks at the data.

use crate::{normal, quadrature};

/// Pocock's nominal two-sided level for each of `looks` equally spaced looks, so that all of them
/// together have the level 0.05; `None` for no look, or more than five.
///
/// Pocock, *Group sequential methods in the design and analysis of clinical trials* (1977), table
/// 1. [`nominal_level`] computes them.
#[must_use]
pub fn pocock(looks: usize) -> Option<f64> {
    [0.05, 0.0294, 0.0221, 0.0182, 0.0158].get(looks.checked_sub(1)?).copied()
}

/// The nominal two-sided level that each look must have so that the probability of any rejection is
/// `alpha`, when looks are taken at `times`, in proportion to the data at hand (5, 7, 10 repeats).
/// `None` unless the times are above zero, finite and ascending, and `alpha` lies between 0 and 1.
///
/// The probability of crossing is found look by look, by integrating the density of the sum over
/// what has not crossed before (Armitage, McPherson and Rowe 1969). It takes the standard deviation
/// as known, as Pocock's table does.
#[must_use]
pub fn nominal_level(times: &[f64], alpha: f64) -> Option<f64> {
    let ascending = times.windows(2).all(|pair| pair[0] < pair[1]);
    let finite = times.iter().all(|time| *time > 0.0 && time.is_finite());
    let in_range = alpha > 0.0 && alpha < 1.0;
    if times.is_empty() || !ascending || !finite || !in_range {
        return None;
    }
    // Between no correction and Bonferroni's.
    let mut low = normal::quantile(1.0 - alpha / 2.0);
    let mut high = normal::quantile(1.0 - alpha / (2 * times.len()) as f64);
    for _ in 0..60 {
        let boundary = f64::midpoint(low, high);
        if crossing(times, boundary) > alpha {
            low = boundary;
        } else {
            high = boundary;
        }
    }
    Some(2.0 * normal::cdf(-f64::midpoint(low, high)))
}

/// The probability that |Z| exceeds `boundary` at any of `times` under the null hypothesis.
fn crossing(times: &[f64], boundary: f64) -> f64 {
    let grid = |time: f64| quadrature::points(-boundary * time.sqrt(), boundary * time.sqrt(), 8);
    let mut points = grid(times[0]);
    let mut density: Vec<f64> =
        points.iter().map(|(s, _)| normal::density(s / times[0].sqrt()) / times[0].sqrt()).collect();
    for pair in times.windows(2) {
        let step = (pair[1] - pair[0]).sqrt();
        let next = grid(pair[1]);
        let arrives = |s: f64| -> f64 {
            let from = points.iter().zip(&density);
            from.map(|((before, weight), density)| weight * density * normal::density((s - before) / step) / step).sum()
        };
        density = next.iter().map(|(s, _)| arrives(*s)).collect();
        points = next;
    }
    1.0 - points.iter().zip(&density).map(|((_, weight), density)| weight * density).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    #[test]
    fn levels_are_those_of_pococks_table() {
        for looks in 1..=5 {
            let times: Vec<f64> = (1..=looks).map(|time| time as f64).collect();
            close(nominal_level(&times, 0.05).unwrap(), pocock(looks).unwrap(), 5.1e-5);
        }
        assert_eq!((pocock(0), pocock(6)), (None, None));
    }

    #[test]
    fn boundaries_are_those_of_jennison_and_turnbull() {
        // Jennison and Turnbull, *Group Sequential Methods* (2000), table 2.1: C_P(K, α).
        let table = [
            (0.01, &[2.576, 2.772, 2.873, 2.939, 2.986][..]),
            (0.05, &[1.960, 2.178, 2.289, 2.361, 2.413, 2.453, 2.485, 2.512, 2.535, 2.555]),
            (0.1, &[1.645, 1.875, 1.992, 2.067, 2.122]),
        ];
        for (alpha, boundaries) in table {
            for (index, expected) in boundaries.iter().enumerate() {
                let times: Vec<f64> = (1..=index + 1).map(|time| time as f64).collect();
                let level = nominal_level(&times, alpha).unwrap();
                close(normal::quantile(1.0 - level / 2.0), *expected, 5.1e-4);
            }
        }
    }

    #[test]
    fn looks_that_are_close_cost_less() {
        let equal = nominal_level(&[1.0, 2.0, 3.0], 0.05).unwrap();
        let close_looks = nominal_level(&[5.0, 7.0, 10.0], 0.05).unwrap();
        assert!(close_looks > equal && close_looks < 0.05, "{close_looks} against {equal}");
        // The unit of the times does not matter.
        close(nominal_level(&[0.5, 0.7, 1.0], 0.05).unwrap(), close_looks, 1e-9);
    }

    #[test]
    fn nonsense_is_none() {
        for times in [&[][..], &[0.0], &[2.0, 1.0], &[1.0, 1.0], &[f64::NAN], &[1.0, f64::INFINITY]] {
            assert_eq!(nominal_level(times, 0.05), None);
        }
        assert_eq!(nominal_level(&[1.0], 0.0), None);
        assert_eq!(nominal_level(&[1.0], f64::NAN), None);
    }
}
