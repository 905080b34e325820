//! Histograms of other programs: how many values are at most each of some bounds. Means are exact, and quantiles are known up
//! to a bucket.
//!
//! Such counts grow from the start of a process. What came in a span is the difference between its ends; where a count is
//! smaller at the end, the process began anew in between, and all of it came since then. Counts of several instances add up at
//! the bounds that all of them have.

use std::collections::BTreeMap;

/// A count of values by upper bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// Upper bounds, increasing and each with the number of values that are at most that; the last bound is infinite.
    at_most: Vec<(f64, f64)>,
    /// The sum of the values.
    sum: f64,
}

/// A quantile of which only the bucket is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketQuantile {
    /// The bucket's lower bound; none for the first bucket.
    pub above: Option<f64>,
    /// Its upper bound, which may be infinite.
    pub at_most: f64,
    /// The quantile if the values of the bucket were spread evenly over it; none in a bucket without an end.
    pub interpolated: Option<f64>,
}

impl Buckets {
    /// A histogram from the numbers of values that are at most each bound, in any order, and the sum of all values. None where one of them is no
    /// number, a smaller bound has more values, or there is no infinite bound.
    #[must_use]
    pub fn new(at_most: impl IntoIterator<Item = (f64, f64)>, sum: f64) -> Option<Buckets> {
        let mut at_most: Vec<(f64, f64)> = at_most.into_iter().collect();
        at_most.sort_by(|one, other| one.0.total_cmp(&other.0));
        let are_counts = at_most.iter().all(|(bound, count)| !bound.is_nan() && *count >= 0.0 && count.is_finite());
        let grows = at_most.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let has_all = at_most.last().is_some_and(|(bound, _)| *bound == f64::INFINITY);
        (are_counts && grows && has_all && sum.is_finite()).then_some(Buckets { at_most, sum })
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.at_most.last().map_or(0.0, |(_, count)| *count)
    }

    /// The mean of the values; none without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0.0).then(|| self.sum / self.count())
    }

    /// The values that came since `earlier`, at the bounds that both have.
    #[must_use]
    pub fn since(&self, earlier: &Buckets) -> Buckets {
        let before = |bound: f64| earlier.at_most.iter().find(|(known, _)| *known == bound).map(|(_, count)| *count);
        let pairs = || self.at_most.iter().filter_map(|(bound, now)| Some((*bound, *now, before(*bound)?)));
        if pairs().any(|(_, now, before)| now < before) {
            return self.clone();
        }
        // Counts that were not read at one instant may differ by a value here and there.
        let mut least = 0.0_f64;
        let grown = pairs().map(|(bound, now, before)| {
            least = least.max(now - before);
            (bound, least)
        });
        Buckets { at_most: grown.collect(), sum: self.sum - earlier.sum }
    }

    /// The histogram of several instances together, at the bounds that all of them have. None without an instance.
    #[must_use]
    pub fn together(all: &[Buckets]) -> Option<Buckets> {
        // Bounds are no NaN, so that their bits stand for them.
        let mut sums: BTreeMap<u64, (f64, f64, usize)> = BTreeMap::new();
        for (bound, count) in all.iter().flat_map(|one| &one.at_most) {
            let known = sums.entry(bound.to_bits()).or_insert((*bound, 0.0, 0));
            (known.1, known.2) = (known.1 + count, known.2 + 1);
        }
        let of_all = sums.into_values().filter(|(_, _, instances)| *instances == all.len());
        Buckets::new(of_all.map(|(bound, count, _)| (bound, count)), all.iter().map(|one| one.sum).sum())
    }

    /// The quantile `q`, from 0 to 1: the smallest value that is not exceeded by that share of the values. None without any
    /// values.
    ///
    /// *Source: Prometheus, `histogram_quantile`, for what is interpolated: a bucket that has no lower bound begins at 0, if
    /// its upper one is above that.*
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<BucketQuantile> {
        let rank = q.clamp(0.0, 1.0) * self.count();
        let place = self.at_most.iter().position(|(_, count)| *count > 0.0 && *count >= rank)?;
        let (at_most, up_to) = self.at_most[place];
        let (above, before) = match place.checked_sub(1) {
            Some(lower) => (Some(self.at_most[lower].0), self.at_most[lower].1),
            None => (None, 0.0),
        };
        let begin = above.or((at_most > 0.0).then_some(0.0));
        let interpolated = begin.filter(|_| at_most.is_finite()).map(|begin| {
            let share = (rank - before).max(0.0) / (up_to - before);
            begin + (at_most - begin) * share
        });
        Some(BucketQuantile { above, at_most, interpolated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f64 = f64::INFINITY;

    /// 100 values: 50 of at most 0.1, 40 to 0.2, 8 to 0.5, and 2 above.
    fn example() -> Buckets {
        Buckets::new([(INF, 100.0), (0.1, 50.0), (0.5, 98.0), (0.2, 90.0)], 12.0).expect("buckets")
    }

    #[test]
    fn quantiles_lie_in_a_bucket() {
        let quantile = |q: f64| example().quantile(q).expect("values");
        assert_eq!(quantile(0.5), BucketQuantile { above: None, at_most: 0.1, interpolated: Some(0.1) });
        let p70 = quantile(0.7);
        assert_eq!((p70.above, p70.at_most), (Some(0.1), 0.2));
        assert!((p70.interpolated.expect("an end") - 0.15).abs() < 1e-12);
        assert_eq!(quantile(0.99), BucketQuantile { above: Some(0.5), at_most: INF, interpolated: None });
        assert_eq!(quantile(0.0).interpolated, Some(0.0));
        assert_eq!(example().mean(), Some(0.12));
    }

    #[test]
    fn a_bucket_that_is_empty_holds_no_quantile() {
        let later = Buckets::new([(1.0, 0.0), (2.0, 0.0), (4.0, 8.0), (INF, 8.0)], 24.0).expect("buckets");
        assert_eq!(later.quantile(0.0).map(|found| found.at_most), Some(4.0));
        assert_eq!(later.quantile(0.5).and_then(|found| found.interpolated), Some(3.0));
        let below_zero = Buckets::new([(-1.0, 4.0), (INF, 4.0)], -8.0).expect("buckets");
        let unknown = BucketQuantile { above: None, at_most: -1.0, interpolated: None };
        assert_eq!(below_zero.quantile(0.5), Some(unknown));
        let none = Buckets::new([(1.0, 0.0), (INF, 0.0)], 0.0).expect("buckets");
        assert_eq!((none.quantile(0.5), none.mean()), (None, None));
    }

    #[test]
    fn what_came_in_a_span_is_the_difference() {
        let end = Buckets::new([(0.1, 60.0), (0.2, 120.0), (0.5, 128.0), (INF, 130.0)], 17.0).expect("buckets");
        let came = end.since(&example());
        assert_eq!(came, Buckets::new([(0.1, 10.0), (0.2, 30.0), (0.5, 30.0), (INF, 30.0)], 5.0).expect("buckets"));
        let anew = Buckets::new([(0.1, 3.0), (0.2, 3.0), (0.5, 3.0), (INF, 3.0)], 0.2).expect("buckets");
        assert_eq!(anew.since(&example()), anew, "the process began anew");
        let others = Buckets::new([(0.1, 60.0), (INF, 130.0)], 17.0).expect("buckets");
        let in_common = Buckets::new([(0.1, 10.0), (INF, 30.0)], 5.0).expect("buckets");
        assert_eq!(others.since(&example()), in_common);
    }

    #[test]
    fn instances_add_up_at_the_bounds_that_all_have() {
        let other = Buckets::new([(0.1, 1.0), (0.3, 2.0), (0.5, 2.0), (INF, 4.0)], 3.0).expect("buckets");
        let both = Buckets::together(&[example(), other]).expect("buckets");
        assert_eq!(both, Buckets::new([(0.1, 51.0), (0.5, 100.0), (INF, 104.0)], 15.0).expect("buckets"));
        assert_eq!(Buckets::together(&[]), None);
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        assert_eq!(Buckets::new([], 0.0), None);
        assert_eq!(Buckets::new([(1.0, 2.0)], 1.0), None, "no infinite bound");
        assert_eq!(Buckets::new([(1.0, 2.0), (INF, 1.0)], 1.0), None, "fewer in all than of at most 1");
        assert_eq!(Buckets::new([(1.0, 1.0), (1.0, 1.0), (INF, 1.0)], 1.0), None, "a bound twice");
        assert_eq!(Buckets::new([(f64::NAN, 1.0), (INF, 1.0)], 1.0), None);
        assert_eq!(Buckets::new([(1.0, f64::NAN), (INF, 1.0)], 1.0), None);
        assert_eq!(Buckets::new([(1.0, 1.0), (INF, 1.0)], f64::NAN), None);
    }
}
