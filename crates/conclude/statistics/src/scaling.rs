//! How throughput changes with the load: Gunther's Universal Scalability Law, fitted to points.
//!
//! Gunther, *Guerrilla Capacity Planning*, 2007: X(N) = γN / (1 + α(N − 1) + βN(N − 1)). γ is the throughput of one, α the
//! share that is done one after the other (contention), β what each costs each other (coherence). With β > 0 throughput
//! has a peak, at N = √((1 − α) / β). It describes points; it does not say what limits them.

/// Fewer points than this do not tell three coefficients apart.
pub const LEAST_POINTS: usize = 6;

const MOST_ROUNDS: usize = 500;

/// A fit is found where a round makes the sum of squares smaller by less than this share, or not at all with this damping.
const ENOUGH: f64 = 1e-14;
const MOST_DAMPING: f64 = 1e16;

/// The Universal Scalability Law with its coefficients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalabilityLaw {
    /// The throughput of one.
    pub gamma: f64,
    /// Contention, from 0 to 1.
    pub alpha: f64,
    /// Coherence, from 0 to 1.
    pub beta: f64,
}

impl ScalabilityLaw {
    /// The throughput at `n`.
    #[must_use]
    pub fn at(self, n: f64) -> f64 {
        self.gamma * n / self.slowdown(n)
    }

    /// The load with the highest throughput; none where it has no peak.
    #[must_use]
    pub fn peak(self) -> Option<f64> {
        (self.beta > 0.0).then(|| ((1.0 - self.alpha) / self.beta).sqrt())
    }

    fn slowdown(self, n: f64) -> f64 {
        1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0)
    }

    /// The derivatives of the throughput at `n` by γ, α and β.
    fn derivatives(self, n: f64) -> [f64; 3] {
        let slowdown = self.slowdown(n);
        let by_slowdown = -self.gamma * n / (slowdown * slowdown);
        [n / slowdown, by_slowdown * (n - 1.0), by_slowdown * n * (n - 1.0)]
    }

    fn squares(self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(n, x)| (x - self.at(*n)).powi(2)).sum()
    }
}

/// The law that is nearest to points of load and throughput, by least squares, with α and β from 0 to 1. None for fewer than
/// [`LEAST_POINTS`] different loads, or for numbers that are not finite and positive.
#[must_use]
pub fn scalability(points: &[(f64, f64)]) -> Option<ScalabilityLaw> {
    let is_valid = |value: f64| value.is_finite() && value > 0.0;
    let mut loads: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    if loads.len() < LEAST_POINTS || points.iter().any(|(n, x)| !is_valid(*n) || !is_valid(*x)) {
        return None;
    }
    // A coefficient that would leave its range at the best fit is at its lower end, and the others are fitted again.
    let free = [[true, true], [true, false], [false, true], [false, false]];
    let is_possible = |law: &ScalabilityLaw| (0.0..=1.0).contains(&law.alpha) && (0.0..=1.0).contains(&law.beta);
    let laws = free.into_iter().filter_map(|free| nearest(points, free)).filter(is_possible);
    laws.min_by(|one, other| one.squares(points).total_cmp(&other.squares(points)))
}

/// The nearest law of those where α and β are free, or zero (Levenberg 1944, Marquardt 1963).
fn nearest(points: &[(f64, f64)], [alpha, beta]: [bool; 2]) -> Option<ScalabilityLaw> {
    let free = [true, alpha, beta];
    let mut law = first_guess(points, free)?;
    let (mut squares, mut damping) = (law.squares(points), 1e-3);
    for _ in 0..MOST_ROUNDS {
        let mut equations = Equations::default();
        points.iter().for_each(|(n, x)| equations.add(law.derivatives(*n), x - law.at(*n), 1.0));
        let Some(by) = equations.solve(free, damping) else { break };
        let tried = ScalabilityLaw { gamma: law.gamma + by[0], alpha: law.alpha + by[1], beta: law.beta + by[2] };
        let of_tried = tried.squares(points);
        if of_tried < squares {
            let gained = (squares - of_tried) / squares;
            (law, squares, damping) = (tried, of_tried, damping / 10.0);
            if gained < ENOUGH {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > MOST_DAMPING {
                break;
            }
        }
    }
    (squares.is_finite() && law.gamma > 0.0).then_some(law)
}

/// The law is linear in N / X(N): a + b(N − 1) + cN(N − 1), with γ = 1 / a, α = b / a and β = c / a. The weights are those
/// with which a small error of N / X is one of X.
fn first_guess(points: &[(f64, f64)], free: [bool; 3]) -> Option<ScalabilityLaw> {
    let mut equations = Equations::default();
    points.iter().for_each(|(n, x)| equations.add([1.0, n - 1.0, n * (n - 1.0)], n / x, x * x / n));
    let [a, b, c] = equations.solve(free, 0.0).filter(|found| found[0] > 0.0).unwrap_or_else(|| {
        let largest = points.iter().map(|(n, x)| x / n).fold(0.0, f64::max);
        [1.0 / largest, 0.0, 0.0]
    });
    let law = ScalabilityLaw { gamma: 1.0 / a, alpha: b / a, beta: c / a };
    law.squares(points).is_finite().then_some(law)
}

/// The normal equations of a linear problem of least squares with three unknowns.
#[derive(Default)]
struct Equations {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
}

impl Equations {
    fn add(&mut self, of_unknowns: [f64; 3], value: f64, weight: f64) {
        for row in 0..3 {
            let weighed = weight * weight * of_unknowns[row];
            self.right[row] += weighed * value;
            (0..3).for_each(|column| self.matrix[row][column] += weighed * of_unknowns[column]);
        }
    }

    /// The unknowns, those that are not free being zero.
    fn solve(self, free: [bool; 3], damping: f64) -> Option<[f64; 3]> {
        let Equations { mut matrix, mut right } = self;
        for place in (0..3).filter(|place| !free[*place]) {
            (0..3).for_each(|other| (matrix[place][other], matrix[other][place]) = (0.0, 0.0));
            (matrix[place][place], right[place]) = (1.0, 0.0);
        }
        (0..3).for_each(|place| matrix[place][place] *= 1.0 + damping);
        solve(matrix, right)
    }
}

/// The solution of three linear equations with a symmetric, positive matrix: by Cramer's rule, on numbers of the same size.
fn solve(matrix: [[f64; 3]; 3], right: [f64; 3]) -> Option<[f64; 3]> {
    let sizes = [0, 1, 2].map(|place| matrix[place][place].sqrt());
    if sizes.iter().any(|size| !size.is_finite() || *size <= 0.0) {
        return None;
    }
    let scaled = [0, 1, 2].map(|row| [0, 1, 2].map(|column| matrix[row][column] / (sizes[row] * sizes[column])));
    let right = [0, 1, 2].map(|row| right[row] / sizes[row]);
    let all = determinant(scaled);
    let of = |column: usize| {
        let mut replaced = scaled;
        (0..3).for_each(|row| replaced[row][column] = right[row]);
        determinant(replaced) / all / sizes[column]
    };
    let found = [0, 1, 2].map(of);
    found.iter().all(|value| value.is_finite()).then_some(found)
}

fn determinant([a, b, c]: [[f64; 3]; 3]) -> f64 {
    a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) + a[2] * (b[0] * c[1] - b[1] * c[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The data of the R package `usl` (version 3.0.3), and what its tests expect of them.
    const RAYTRACER: [(f64, f64); 11] = [
        (1.0, 20.0),
        (4.0, 78.0),
        (8.0, 130.0),
        (12.0, 170.0),
        (16.0, 190.0),
        (20.0, 200.0),
        (24.0, 210.0),
        (28.0, 230.0),
        (32.0, 260.0),
        (48.0, 280.0),
        (64.0, 310.0),
    ];
    const SPECSDM91: [(f64, f64); 7] =
        [(1.0, 64.9), (18.0, 995.9), (36.0, 1652.4), (72.0, 1853.2), (108.0, 1828.9), (144.0, 1775.0), (216.0, 1702.2)];

    #[test]
    fn published_coefficients_come_out() {
        let law = scalability(&SPECSDM91).expect("a fit");
        close(law.gamma, 89.9952, 1e-4);
        close(law.alpha, 0.027_728_5, 1e-7);
        close(law.beta, 0.000_104_365, 1e-9);
        close(law.peak().expect("a peak"), 96.52, 0.01);
        close(law.at(96.52), 1884.0, 1.0);
        let residuals = [-25.10, -81.66, 111.09, 3.05, -49.99, -46.60, 56.00];
        for ((n, x), expected) in SPECSDM91.iter().zip(residuals) {
            close(x - law.at(*n), expected, 0.01);
        }
        let first = scalability(&RAYTRACER[..6]).expect("a fit");
        close(first.alpha, 0.02444, 1e-5);
        close(first.beta, 0.00163, 1e-5);
        close(first.gamma, 20.856, 1e-3);
    }

    #[test]
    fn without_a_peak_in_the_points_coherence_is_nothing() {
        let law = scalability(&RAYTRACER).expect("a fit");
        assert_eq!((law.beta, law.peak()), (0.0, None));
        // The package ends its search a little before the best fit.
        let published = ScalabilityLaw { gamma: 22.0052, alpha: 0.058_821_3, beta: 0.0 };
        close(law.alpha, published.alpha, 0.0011);
        close(law.squares(&RAYTRACER), 697.24, 0.01);
        assert!(law.squares(&RAYTRACER) < published.squares(&RAYTRACER));
    }

    #[test]
    fn points_of_the_law_give_it_back() {
        let points = [(1.0, 1.0), (2.0, 1.8868), (4.0, 3.0769), (6.0, 3.5294), (8.0, 3.5398), (10.0, 3.3557)];
        let law = scalability(&points).expect("a fit");
        close(law.alpha, 0.02, 1e-4);
        close(law.beta, 0.02, 1e-4);
        close(law.peak().expect("a peak"), 7.0, 0.01);
        let many: Vec<(f64, f64)> = [200.0, 400.0, 800.0, 1200.0, 1600.0, 2400.0, 3200.0]
            .map(|n| (n, ScalabilityLaw { gamma: 0.12, alpha: 1e-4, beta: 5e-7 }.at(n)))
            .to_vec();
        let law = scalability(&many).expect("a fit");
        close(law.gamma, 0.12, 1e-6);
        close(law.beta, 5e-7, 1e-11);
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(scalability(&SPECSDM91[..5]), None);
        assert_eq!(scalability(&[(1.0, 1.0); 9]), None, "one load, nine times");
        let mut bad = SPECSDM91;
        bad[2].1 = f64::NAN;
        assert_eq!(scalability(&bad), None);
    }

    proptest! {
        #[test]
        fn coefficients_stay_in_their_range(throughputs in vec(1e-3..1e6_f64, 6..20)) {
            let points: Vec<(f64, f64)> = throughputs.iter().zip(1..).map(|(x, n)| (f64::from(n), *x)).collect();
            if let Some(law) = scalability(&points) {
                prop_assert!(law.gamma > 0.0 && (0.0..=1.0).contains(&law.alpha) && (0.0..=1.0).contains(&law.beta));
                prop_assert!(points.iter().all(|(n, _)| law.at(*n).is_finite()));
            }
        }
    }
}
