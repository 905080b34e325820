//! The k-th smallest of all pairwise averages or differences, without writing them all down.
//!
//! Rounding keeps the order of sums, so the pairs up to a value are counted in one pass over both
//! sorted lists; the k-th smallest is then found by halving the range of all floating-point
//! numbers, in 64 passes at most. It takes no memory, however many pairs there are.

/// All pairs of two sorted lists.
pub(super) struct Pairs<'a> {
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Averages of each value with itself and with each later one.
    Averages(&'a [f64]),
    /// Differences of each value of the first list and each of the second.
    Differences(&'a [f64], &'a [f64]),
}

/// The Walsh averages of `sorted`.
pub(super) fn walsh_averages(sorted: &[f64]) -> Pairs<'_> {
    Pairs { kind: Kind::Averages(sorted) }
}

/// The differences of `x` less `y`, both sorted.
pub(super) fn differences<'a>(x: &'a [f64], y: &'a [f64]) -> Pairs<'a> {
    Pairs { kind: Kind::Differences(x, y) }
}

impl Pairs<'_> {
    /// The number of pairs.
    pub(super) fn count(&self) -> usize {
        match self.kind {
            Kind::Averages(values) => values.len() * (values.len() + 1) / 2,
            Kind::Differences(x, y) => x.len() * y.len(),
        }
    }

    /// The `k`-th smallest, from 1.
    pub(super) fn nth(&self, k: usize) -> f64 {
        // Order-preserving whole numbers for floating-point numbers, minus infinity to infinity.
        let (mut low, mut high) = (key(f64::NEG_INFINITY), key(f64::INFINITY));
        while low < high {
            let middle = low + ((high - low) >> 1);
            if self.up_to(value(middle)) >= k {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        value(low)
    }

    /// The number of pairs of at most `bound`.
    fn up_to(&self, bound: f64) -> usize {
        match self.kind {
            Kind::Averages(values) => {
                let mut count = 0;
                let mut end = values.len();
                for (i, first) in values.iter().enumerate() {
                    while end > i && f64::midpoint(*first, values[end - 1]) > bound {
                        end -= 1;
                    }
                    if end <= i {
                        break;
                    }
                    count += end - i;
                }
                count
            }
            Kind::Differences(x, y) => {
                let mut count = 0;
                let mut start = 0;
                for first in x {
                    while start < y.len() && first - y[start] > bound {
                        start += 1;
                    }
                    count += y.len() - start;
                }
                count
            }
        }
    }
}

fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_sign_negative() { !bits } else { bits | (1 << 63) }
}

fn value(key: u64) -> f64 {
    if key >> 63 == 1 { f64::from_bits(key & !(1 << 63)) } else { f64::from_bits(!key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sorted;
    use crate::testing::samples;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_kth_is_that_of_the_list_written_down(x in samples(1..12), y in samples(1..12)) {
            let (x, y) = (sorted(&x), sorted(&y));
            let averages = (0..x.len()).flat_map(|i| x[i..].iter().map(|b| f64::midpoint(x[i], *b)).collect::<Vec<_>>());
            let differences_list = x.iter().flat_map(|a| y.iter().map(move |b| a - b));
            for (list, pairs) in [
                (averages.collect::<Vec<_>>(), walsh_averages(&x)),
                (differences_list.collect::<Vec<_>>(), differences(&x, &y)),
            ] {
                let list = sorted(&list);
                prop_assert_eq!(list.len(), pairs.count());
                for (index, expected) in list.iter().enumerate() {
                    let found = pairs.nth(index + 1);
                    prop_assert!(found == *expected, "{}: {} is not {}", index, found, expected);
                }
            }
        }
    }
}
