//! How much one number changes with another, without regard to single values that lie far off.

use crate::sample::mean;

/// By which share of it a sum of weights may be off.
const ROUNDING: f64 = 1e-12;

/// The slope of y over x by ranks: the median of the slopes of all pairs of points, each weighted by the distance of
/// its x. `None` where all x are the same, or a number or a slope is not finite.
///
/// It minimises the dispersion of ranks of the residuals (Jaeckel 1972), and is the weighted form (Sievers 1978) of the
/// slope of Theil and Sen. Where x has two values, it is the shift of Hodges and Lehmann.
#[must_use]
pub fn rank_slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let mut slopes: Vec<(f64, f64)> = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let pairs = points[..index].iter().filter(|(other, _)| other != x);
        slopes.extend(pairs.map(|(other_x, other_y)| ((y - other_y) / (x - other_x), (x - other_x).abs())));
    }
    if slopes.iter().any(|(slope, _)| !slope.is_finite()) {
        return None;
    }
    slopes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = slopes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    for (index, (slope, weight)) in slopes.iter().enumerate() {
        sum += weight;
        // Sums of the same weights in another order differ by their rounding.
        if (sum - half).abs() <= ROUNDING * half {
            return Some(slopes.get(index + 1).map_or(*slope, |next| f64::midpoint(*slope, next.0)));
        }
        if sum > half {
            return Some(*slope);
        }
    }
    None
}

/// The slope of the line through points by least squares. `None` where all x are the same.
#[must_use]
pub fn line_slope(points: &[(f64, f64)]) -> Option<f64> {
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (middle, level) = (mean(&x)?, mean(&y)?);
    let spread: f64 = x.iter().map(|x| (x - middle).powi(2)).sum();
    let together: f64 = points.iter().map(|(x, y)| (x - middle) * (y - level)).sum();
    (spread > 0.0).then(|| together / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::hodges_lehmann_shift;
    use crate::testing::{Noise, close, common, samples};
    use proptest::prelude::*;

    #[test]
    fn the_line_by_least_squares_follows_every_point() {
        let line: Vec<(f64, f64)> = (0..9).map(|x| (f64::from(x), 3.0 - 0.5 * f64::from(x))).collect();
        close(line_slope(&line).expect("a line"), -0.5, 1e-12);
        // One point far off: Σ(x − 1)(y − 3) / Σ(x − 1)² = (3 + 6) / 2.
        close(line_slope(&[(0.0, 0.0), (1.0, 0.0), (2.0, 9.0)]).expect("a line"), 4.5, 1e-12);
        assert_eq!([line_slope(&[]), line_slope(&[(1.0, 2.0), (1.0, 5.0)])], [None, None]);
    }

    #[test]
    fn of_two_groups_it_is_the_shift() {
        let (x, y) = ([3.0, 1.0, 7.0, 2.5], [0.5, 1.5, -2.0]);
        let points: Vec<(f64, f64)> = x.iter().map(|x| (1.0, *x)).chain(y.iter().map(|y| (0.0, *y))).collect();
        close(rank_slope(&points).unwrap(), hodges_lehmann_shift(&x, &y, 0.95).unwrap().estimate, 1e-12);
    }

    #[test]
    fn points_on_a_line_have_its_slope_though_some_lie_far_off() {
        let mut points: Vec<(f64, f64)> = (0..12).map(|x| (f64::from(x % 3), 5.0 - 0.25 * f64::from(x % 3))).collect();
        close(rank_slope(&points).unwrap(), -0.25, 1e-12);
        points[1].1 = 900.0;
        points[5].1 = -900.0;
        close(rank_slope(&points).unwrap(), -0.25, 1e-12);
    }

    #[test]
    fn it_scatters_hardly_more_than_least_squares_would() {
        // Of normal noise, least squares have the variance σ²/Σ(x − x̄)²: here 1/16; ranks take 1/0.955 of that.
        let mut noise = Noise::new(5);
        let slopes: Vec<f64> = (0..4_000)
            .map(|_| {
                let points: Vec<(f64, f64)> =
                    (0..24).map(|index| (f64::from(index % 3) - 1.0, noise.normal())).collect();
                rank_slope(&points).unwrap()
            })
            .collect();
        let variance = crate::standard_deviation(&slopes).unwrap().powi(2);
        assert!((variance * 16.0 * 0.955 - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn where_x_hardly_changes_there_is_no_slope() {
        for points in [
            &[][..],
            &[(1.0, 2.0)],
            &[(1.0, 2.0), (1.0, 3.0)],
            &[(0.0, 1.0), (1.0, f64::NAN)],
            &[(0.0, 0.0), (1e-308, 90.0)],
        ] {
            assert_eq!(rank_slope(points), None);
        }
    }

    #[test]
    fn half_of_the_weight_is_found_however_it_is_rounded() {
        let points = [(0.0, 0.0), (0.1, 1.0), (0.0, 3.0), (0.1, 2.0), (0.1, 7.0)];
        // The slopes are −20, −10, 10, 20, 40 and 70, each with the weight 0.1, of which three make more than 0.3.
        close(rank_slope(&points).unwrap(), 15.0, 1e-9);
    }

    proptest! {
        #[test]
        fn turning_y_turns_the_slope(x in common(2..20), y in samples(20..21)) {
            let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
            let turned: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, -y)).collect();
            match (rank_slope(&points), rank_slope(&turned)) {
                (Some(one), Some(other)) => prop_assert!((one + other).abs() <= 1e-9 * one.abs().max(1e-9)),
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }
}
