//! A histogram as bytes, and the addition of such bytes to another histogram. A histogram of a second has a few hundred
//! buckets in use of some twenty thousand: only those cross the network, and only those are touched when they are added.
//!
//! Each used bucket is two numbers of variable length (LEB128): how many buckets it is below the one before, and its count. The
//! highest comes first: a histogram grows with its largest value, and so it grows once.

use hdrhistogram::Histogram;
use plimsoll_model::record::DIGITS;

/// Bits of a value that its bucket keeps: as many as hold two times 10 to the power of [`DIGITS`].
const BITS: u32 = (2 * 10_u32.pow(DIGITS as u32)).next_power_of_two().ilog2();

/// Buckets for each doubling of the value, but for the first, which has twice as many.
const HALF: u64 = 1 << (BITS - 1);

/// Buckets in all.
const BUCKETS: u64 = (u64::BITS - BITS + 2) as u64 * HALF;

/// The bytes end within a number, or a number in them is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no histogram")]
pub(crate) struct NoHistogram;

/// The used buckets of a histogram.
pub(crate) fn encode(histogram: &Histogram<u64>) -> Vec<u8> {
    let used: Vec<(u64, u64)> =
        histogram.iter_recorded().map(|used| (bucket_of(used.value_iterated_to()), used.count_at_value())).collect();
    let (mut bytes, mut above) = (Vec::with_capacity(2 * used.len()), BUCKETS);
    for (bucket, count) in used.into_iter().rev() {
        put(&mut bytes, above - bucket);
        put(&mut bytes, count);
        above = bucket;
    }
    bytes
}

/// Adds what [`encode`] wrote.
pub(crate) fn add(mut bytes: &[u8], into: &mut Histogram<u64>) -> Result<(), NoHistogram> {
    let mut bucket = BUCKETS;
    while !bytes.is_empty() {
        bucket = bucket.checked_sub(take(&mut bytes)?).filter(|bucket| *bucket < BUCKETS).ok_or(NoHistogram)?;
        let count = take(&mut bytes)?;
        into.record_n(lowest_value(bucket), count).map_err(|_| NoHistogram)?;
    }
    Ok(())
}

/// The bucket of a value, counted from 0.
fn bucket_of(value: u64) -> u64 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    (u64::from(shift) << (BITS - 1)) + (value >> shift)
}

/// The smallest value in a bucket.
fn lowest_value(bucket: u64) -> u64 {
    let shift = (bucket / HALF).saturating_sub(1);
    (bucket - shift * HALF) << shift
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, NoHistogram> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(NoHistogram)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(NoHistogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::{LONGEST, histogram};
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram<u64> {
        let mut all = histogram();
        values.iter().for_each(|value| all.record(*value).expect("in range"));
        all
    }

    proptest! {
        #[test]
        fn a_histogram_that_crossed_is_the_same_and_adds_like_it(
            values in prop::collection::vec((0_u32..42).prop_flat_map(|bits| 0..=(1_u64 << bits).min(LONGEST)), 0..200),
            others in prop::collection::vec(0..=LONGEST, 0..50),
        ) {
            let [sent, mut merged, mut expected] = [of(&values), of(&others), of(&others)];
            let mut received = histogram();
            add(&encode(&sent), &mut received).expect("its own bytes");
            prop_assert_eq!(&received, &sent);
            add(&encode(&sent), &mut merged).expect("its own bytes");
            expected.add(&sent).expect("of the same kind");
            prop_assert_eq!(&merged, &expected);
        }

        #[test]
        fn other_bytes_are_refused_or_read_but_never_fatal(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            // A bucket far beyond an hour would make a histogram grow without end.
            let mut into = Histogram::<u64>::new_with_max(LONGEST, DIGITS).expect("the digits of all histograms");
            let _ = add(&bytes, &mut into);
        }
    }

    #[test]
    fn a_bucket_in_use_takes_two_bytes_where_values_lie_together() {
        let bytes = encode(&of(&(0..500).map(|index| 1_000_000 + index * 2_000).collect::<Vec<u64>>()));
        assert!(bytes.len() < 1_100, "{} bytes", bytes.len());
    }
}
