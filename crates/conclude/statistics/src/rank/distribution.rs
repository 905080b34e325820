//! Exact distributions of rank statistics under the null hypothesis, by dynamic programming: only
//! sums of products of probabilities, so that nothing cancels.

/// Probabilities of the values 0, `step`, 2·`step`, … of a statistic.
pub(super) struct Discrete {
    step: f64,
    /// The probability of each value or less.
    below: Vec<f64>,
    /// The probability of each value or more: summed from the top, so that small tails are exact
    /// on this side too.
    above: Vec<f64>,
}

/// Relative error of a probability that rounding may cause.
const ROUNDING_TOLERANCE: f64 = 1e-11;

impl Discrete {
    fn new(step: f64, probabilities: &[f64]) -> Discrete {
        let running = |sum: &mut f64, probability: &f64| {
            *sum += probability;
            Some(*sum)
        };
        let below = probabilities.iter().scan(0.0, running).collect();
        let mut above: Vec<f64> = probabilities.iter().rev().scan(0.0, running).collect();
        above.reverse();
        Discrete { step, below, above }
    }

    /// U of `m` values among `m + n` without ties: the largest of them is above all n of the others,
    /// or belongs to the others.
    ///
    /// p(m, n, u) = m/(m + n)·p(m − 1, n, u − n) + n/(m + n)·p(m, n − 1, u), Mann and Whitney 1947.
    pub(super) fn mann_whitney(m: usize, n: usize) -> Discrete {
        // For each number of y so far: the distribution with the current number of x.
        let mut rows: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
        for x in 1..=m {
            let mut next: Vec<Vec<f64>> = Vec::with_capacity(n + 1);
            next.push(vec![1.0]);
            for y in 1..=n {
                let mut row = vec![0.0; x * y + 1];
                let share = x as f64 / (x + y) as f64;
                for (u, probability) in rows[y].iter().enumerate() {
                    row[u + y] += share * probability;
                }
                for (u, probability) in next[y - 1].iter().enumerate() {
                    row[u] += (1.0 - share) * probability;
                }
                next.push(row);
            }
            rows = next;
        }
        Discrete::new(1.0, &rows[n])
    }

    /// U of `m` values when all have the (doubled) ranks given, over all ways to choose the m.
    pub(super) fn rank_sum_with_ties(doubled: &[usize], m: usize) -> Discrete {
        let mut largest = doubled.to_vec();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        let most: usize = largest.iter().take(m).sum();
        // By the number chosen so far: the probability of each sum.
        let mut rows = vec![vec![0.0; most + 1]; m + 1];
        rows[0][0] = 1.0;
        for (index, rank) in doubled.iter().enumerate() {
            let left = (doubled.len() - index) as f64;
            for chosen in (0..=m.min(index)).rev() {
                let share = (m - chosen) as f64 / left;
                let (below, above) = rows.split_at_mut(chosen + 1);
                let row = &mut below[chosen];
                for sum in 0..=most {
                    let probability = std::mem::take(&mut row[sum]);
                    if probability > 0.0 {
                        row[sum] = probability * (1.0 - share).max(0.0);
                        if share > 0.0 {
                            above[0][sum + rank] += probability * share;
                        }
                    }
                }
            }
        }
        // A rank sum of m(m + 1)/2, doubled, is U = 0.
        Discrete::new(0.5, &rows[m][(m * (m + 1)).min(most)..])
    }

    /// The sum of the (doubled) ranks given to positive differences, each sign being as likely.
    pub(super) fn signed_rank_sum(doubled: &[usize]) -> Discrete {
        let mut row = vec![1.0];
        for rank in doubled {
            let mut next = vec![0.0; row.len() + rank];
            for (sum, probability) in row.iter().enumerate() {
                next[sum] += 0.5 * probability;
                next[sum + rank] += 0.5 * probability;
            }
            row = next;
        }
        Discrete::new(0.5, &row)
    }

    /// The probability of `value` or less.
    pub(super) fn up_to(&self, value: f64) -> f64 {
        if value < 0.0 {
            return 0.0;
        }
        let index = (value / self.step) as usize;
        self.below.get(index).copied().unwrap_or(1.0).min(1.0)
    }

    /// The probability of `value` or more.
    pub(super) fn from(&self, value: f64) -> f64 {
        let index = (value / self.step).ceil().max(0.0) as usize;
        self.above.get(index).copied().unwrap_or(0.0).min(1.0)
    }

    /// The smallest value with at least the probability `p` at or below it.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        let index = self.below.partition_point(|sum| *sum < p * (1.0 - ROUNDING_TOLERANCE));
        index.min(self.below.len() - 1) as f64 * self.step
    }
}
