//! Finds the lowest and the highest of several values, as far as their intervals do not overlap.

use crate::estimate::Interval;
use crate::reason::OrReason;
use std::ops::Range;

/// The lowest and the highest of several values. Less is better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extremes {
    /// Indices whose intervals overlap with the one that ends lowest: each of them may be the
    /// lowest.
    pub(crate) first: Vec<usize>,
    /// The index whose interval lies above all others, if there is one.
    pub(crate) last: Option<usize>,
}

/// Finds the extremes by the interval of each value.
///
/// # Errors
///
/// The reason of the first value that has no interval.
pub(crate) fn extremes(intervals: impl Iterator<Item = OrReason<Interval>>) -> OrReason<Extremes> {
    let intervals: Vec<Interval> = intervals.collect::<OrReason<_>>()?;
    let lowest_end = intervals.iter().map(|one| one.high).fold(f64::INFINITY, f64::min);
    let highest_start = intervals.iter().map(|one| one.low).fold(f64::NEG_INFINITY, f64::max);
    let those = |which: &dyn Fn(&Interval) -> bool| -> Vec<usize> {
        (0..intervals.len()).filter(|index| which(&intervals[*index])).collect()
    };
    let last = match those(&|one| one.high >= highest_start)[..] {
        [only] if intervals.len() > 1 => Some(only),
        _ => None,
    };
    Ok(Extremes { first: those(&|one| one.low <= lowest_end), last })
}

/// Groups consecutive equal values, with the range of their indices.
pub(crate) fn runs<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<(Range<usize>, T)> {
    let mut runs: Vec<(Range<usize>, T)> = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        match runs.last_mut() {
            Some((range, known)) if *known == value => range.end = index + 1,
            _ => runs.push((index..index + 1, value)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_stand_out_whose_intervals_lie_apart() {
        for (intervals, first, last) in [
            (&[(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)][..], &[0][..], Some(2)),
            (&[(3.0, 4.0), (1.0, 2.0), (3.5, 6.0)], &[1], None),
            (&[(1.0, 3.0), (2.0, 4.0), (5.0, 6.0)], &[0, 1], Some(2)),
            (&[(1.0, 3.0), (3.0, 4.0)], &[0, 1], None),
            (&[(1.0, 2.0)], &[0], None),
            (&[], &[], None),
        ] {
            let given = intervals.iter().map(|(low, high)| Ok(Interval { low: *low, high: *high }));
            assert_eq!(extremes(given), Ok(Extremes { first: first.to_vec(), last }), "{intervals:?}");
        }
        let missing = [Ok(Interval { low: 1.0, high: 2.0 }), Err("no trial counts".to_owned())];
        assert_eq!(extremes(missing.into_iter()), Err("no trial counts".to_owned()));
    }

    #[test]
    fn runs_are_of_equal_neighbours() {
        assert_eq!(runs([1, 1, 2, 1]), [(0..2, 1), (2..3, 2), (3..4, 1)]);
        assert_eq!(runs(Vec::<u8>::new()), []);
    }
}
