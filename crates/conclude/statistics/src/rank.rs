//! Rank tests and estimates: they assume no normal distribution and are robust to outliers.
//!
//! Conventions are those of R's `wilcox.test`: an exact interval takes the order statistic whose
//! number is the α/2 quantile of the statistic itself. (A rank further in, as some libraries take,
//! covers less than its stated confidence for few values.) Hollander, Wolfe and Chicken,
//! *Nonparametric Statistical Methods* (2014), chapters 3 and 4; Hodges and Lehmann, *Estimates of
//! Location Based on Rank Tests* (1963).

mod distribution;
mod selection;

use crate::normal;
use crate::sample::{Interval, sorted};
use distribution::Discrete;
use selection::{Pairs, differences, walsh_averages};

/// Up to this many values a side, the distribution of a rank statistic is exact.
const MAX_EXACT: usize = 50;
/// The limit where values are tied, which makes the exact distribution costlier.
const MAX_EXACT_WITH_TIES: usize = 25;

/// A rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// The statistic; half numbers come from ties.
    pub statistic: f64,
    /// The two-sided p value.
    pub p: f64,
    /// The p value against the alternative that x, or the differences, are smaller.
    pub p_less: f64,
    /// The p value against the alternative that x, or the differences, are greater.
    pub p_greater: f64,
}

impl RankTest {
    fn exact(statistic: f64, distribution: &Discrete) -> RankTest {
        let (p_less, p_greater) = (distribution.up_to(statistic), distribution.from(statistic));
        RankTest { statistic, p: (2.0 * p_less.min(p_greater)).min(1.0), p_less, p_greater }
    }

    /// By the normal approximation, with a continuity correction of half a step.
    fn approximate(statistic: f64, mean: f64, variance: f64) -> RankTest {
        if variance <= 0.0 {
            return RankTest { statistic, p: 1.0, p_less: 1.0, p_greater: 1.0 };
        }
        let (distance, deviation) = (statistic - mean, variance.sqrt());
        let p_less = normal::cdf((distance + 0.5) / deviation);
        let p_greater = normal::cdf(-(distance - 0.5) / deviation);
        RankTest { statistic, p: (2.0 * p_less.min(p_greater)).min(1.0), p_less, p_greater }
    }
}

/// Mann and Whitney's U test of whether x and y come from the same distribution. The statistic is
/// the number of pairs with x > y, a tie counting half; `None` where either is empty or a value is
/// not finite.
///
/// Exact up to 50 values a side, and up to 25 where values are tied (then over all ways to share
/// out the values found, as benchstat does); beyond that by [`mann_whitney_normal`]. Mann and
/// Whitney, *On a test of whether one of two random variables is stochastically larger than the
/// other* (1947).
#[must_use]
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Option<RankTest> {
    let ranks = Ranks::of_two(x, y)?;
    let most = if ranks.tied() { MAX_EXACT_WITH_TIES } else { MAX_EXACT };
    if x.len() > most || y.len() > most {
        return mann_whitney_normal(x, y);
    }
    let distribution = if ranks.tied() {
        Discrete::rank_sum_with_ties(&ranks.doubled, x.len())
    } else {
        Discrete::mann_whitney(x.len(), y.len())
    };
    Some(RankTest::exact(ranks.u(x.len()), &distribution))
}

/// [`mann_whitney`] by the normal approximation, with the variance corrected for ties and half a
/// step for continuity: for large samples.
#[must_use]
pub fn mann_whitney_normal(x: &[f64], y: &[f64]) -> Option<RankTest> {
    let ranks = Ranks::of_two(x, y)?;
    let (m, n) = (x.len() as f64, y.len() as f64);
    let all = m + n;
    let ties = if all > 1.0 { ranks.tie_sum() / (all * (all - 1.0)) } else { 0.0 };
    Some(RankTest::approximate(ranks.u(x.len()), m * n / 2.0, m * n / 12.0 * (all + 1.0 - ties)))
}

/// Wilcoxon's signed-rank test of whether paired differences are symmetric around zero. The
/// statistic is the sum of the ranks of the positive ones; differences of zero are left out.
/// `None` where none is left, or one is not finite.
///
/// Exact up to 50 differences, with ties as well; beyond that by the normal approximation with the
/// variance corrected for ties. Wilcoxon, *Individual comparisons by ranking methods* (1945).
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<RankTest> {
    if !differences.iter().all(|value| value.is_finite()) {
        return None;
    }
    let kept: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
    let sizes: Vec<f64> = kept.iter().map(|value| value.abs()).collect();
    let ranks = Ranks::of(&sizes);
    let doubled: usize = ranks.doubled.iter().zip(&kept).filter(|(_, value)| **value > 0.0).map(|(rank, _)| rank).sum();
    let statistic = doubled as f64 / 2.0;
    match kept.len() {
        0 => None,
        1..=MAX_EXACT => Some(RankTest::exact(statistic, &Discrete::signed_rank_sum(&ranks.doubled))),
        n => {
            let n = n as f64;
            let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranks.tie_sum() / 48.0;
            Some(RankTest::approximate(statistic, n * (n + 1.0) / 4.0, variance))
        }
    }
}

/// Hodges and Lehmann's estimate of a location or a shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HodgesLehmann {
    /// The median of the averages, or of the differences.
    pub estimate: f64,
    /// The confidence interval; `None` where even all the data cannot give the requested
    /// confidence.
    pub interval: Option<Interval>,
    /// The confidence of the interval, at least the requested one; without an interval, the
    /// confidence of the whole range of the data.
    pub attained: f64,
}

/// The centre of paired differences: the median of their Walsh averages (of each pair, and of each
/// difference with itself), and the interval that belongs to the signed-rank test. It assumes that
/// differences are spread evenly around their centre. A 95 % interval takes 6 differences. `None`
/// where there are none, or one is not finite.
///
/// The interval runs from the C-th smallest average to the C-th largest, with C the α/2 quantile of
/// the signed-rank statistic; with ties it covers no less. Up to 50 differences the quantile is
/// exact, beyond that from the normal approximation.
#[must_use]
pub fn hodges_lehmann(differences: &[f64], confidence: f64) -> Option<HodgesLehmann> {
    let sorted = checked(differences)?;
    let n = sorted.len();
    let pairs = walsh_averages(&sorted);
    if n <= MAX_EXACT {
        let doubled: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
        return estimate(&pairs, &Discrete::signed_rank_sum(&doubled), confidence);
    }
    let n = n as f64;
    approximate_estimate(&pairs, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0, confidence)
}

/// How far x lies above y: the median of all differences xᵢ − yⱼ, and the interval that belongs to
/// the Mann–Whitney test. It assumes that both are spread alike around their centres. A 95 %
/// interval takes 4 values a side. `None` where a side is empty, or a value is not finite.
///
/// The interval is formed as in [`hodges_lehmann`], with the quantile of U.
#[must_use]
pub fn hodges_lehmann_shift(x: &[f64], y: &[f64], confidence: f64) -> Option<HodgesLehmann> {
    let (x, y) = (checked(x)?, checked(y)?);
    let pairs = differences(&x, &y);
    if x.len() <= MAX_EXACT && y.len() <= MAX_EXACT {
        return estimate(&pairs, &Discrete::mann_whitney(x.len(), y.len()), confidence);
    }
    let (m, n) = (x.len() as f64, y.len() as f64);
    approximate_estimate(&pairs, m * n * (m + n + 1.0) / 12.0, confidence)
}

/// The exact interval from the distribution of the statistic that counts `pairs`.
fn estimate(pairs: &Pairs<'_>, distribution: &Discrete, confidence: f64) -> Option<HodgesLehmann> {
    let tail = (1.0 - confidence) / 2.0;
    let rank = distribution.quantile(tail) as usize;
    let (rank, reaches) = if rank == 0 { (1, false) } else { (rank, true) };
    finish(pairs, rank, reaches, 1.0 - 2.0 * distribution.up_to(rank as f64 - 1.0))
}

/// The interval from the normal approximation, for a statistic that counts `pairs` with `variance`.
fn approximate_estimate(pairs: &Pairs<'_>, variance: f64, confidence: f64) -> Option<HodgesLehmann> {
    let (mean, deviation) = (pairs.count() as f64 / 2.0, variance.sqrt());
    let tail = (1.0 - confidence) / 2.0;
    let found = mean + normal::quantile(tail) * deviation - 0.5;
    let reaches = found > 0.0;
    let rank = if reaches { (found.ceil() as usize).min(pairs.count().div_ceil(2)) } else { 1 };
    finish(pairs, rank, reaches, 1.0 - 2.0 * normal::cdf((rank as f64 - 0.5 - mean) / deviation))
}

/// The interval from the `rank`-th smallest to the `rank`-th largest of `pairs`.
fn finish(pairs: &Pairs<'_>, rank: usize, reaches: bool, attained: f64) -> Option<HodgesLehmann> {
    let count = pairs.count();
    let estimate = f64::midpoint(pairs.nth(count.div_ceil(2)), pairs.nth(count / 2 + 1));
    let interval = Interval { low: pairs.nth(rank), high: pairs.nth(count + 1 - rank) };
    let fine = estimate.is_finite() && interval.low.is_finite() && interval.high.is_finite();
    fine.then(|| HodgesLehmann { estimate, interval: reaches.then_some(interval), attained: attained.clamp(0.0, 1.0) })
}

fn checked(values: &[f64]) -> Option<Vec<f64>> {
    (!values.is_empty() && values.iter().all(|value| value.is_finite())).then(|| sorted(values))
}

/// Twice the rank of each value, so that the mean rank of tied values is a whole number too.
struct Ranks {
    doubled: Vec<usize>,
    /// The sizes of the groups of equal values.
    groups: Vec<usize>,
}

impl Ranks {
    fn of(values: &[f64]) -> Ranks {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let (mut doubled, mut groups) = (vec![0; values.len()], Vec::new());
        let mut before = 0;
        for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
            for &index in group {
                doubled[index] = 2 * before + group.len() + 1;
            }
            before += group.len();
            groups.push(group.len());
        }
        Ranks { doubled, groups }
    }

    /// The ranks of x, then of y, among all of both.
    fn of_two(x: &[f64], y: &[f64]) -> Option<Ranks> {
        let all: Vec<f64> = x.iter().chain(y).copied().collect();
        (!x.is_empty() && !y.is_empty() && all.iter().all(|value| value.is_finite())).then(|| Ranks::of(&all))
    }

    /// U of the first `m` values.
    fn u(&self, m: usize) -> f64 {
        let sum: usize = self.doubled[..m].iter().sum();
        (sum - m * (m + 1)) as f64 / 2.0
    }

    fn tied(&self) -> bool {
        self.groups.iter().any(|size| *size > 1)
    }

    /// Σ(t³ − t) over the groups of tied values.
    fn tie_sum(&self) -> f64 {
        self.groups.iter().map(|size| *size as f64).map(|size| size * size * size - size).sum()
    }
}

#[cfg(test)]
mod tests;
