//! Detects whether more work arrives than is finished, in open load, where arrivals do not wait for
//! replies.

use crate::steady::Noise;
use crate::t::one_sample;

/// Growth below this share of the arrivals is not reported.
const MIN_SHARE: f64 = 0.01;

/// The p-value that growth must reach.
const SIGNIFICANCE: f64 = 0.001;

/// Standard deviations of the number of arrivals that growth must exceed.
const MIN_DEVIATIONS_OF_ARRIVALS: f64 = 3.0;

/// Fewest seconds for a test of growth.
const MIN_SECONDS: usize = 5;

/// The growth of unfinished work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Arrivals per second that are not finished.
    pub per_second: f64,
    /// The growth as a share of the arrivals.
    pub share: f64,
}

/// The growth of unfinished work, if it is clear: `unfinished` is the amount at the end of each
/// second, `finished` the amount finished in all of them.
///
/// The growth must be clear (p ≤ 0.001) in one of two ways. Either the increase per second is above
/// zero by a t test: that holds for a queue above its capacity, which walks at random as it grows,
/// and is conservative for one below. Or the second half of the seconds has more than the first,
/// with the noise around the least-squares line taken as a first-order autoregressive process: that
/// detects slow growth under strong noise.
///
/// Over all seconds it must come to more than 1 % of the arrivals, which is what may be missing
/// where a load counts as carried, and to more than three times their square root, so that the
/// variation of random arrivals does not count as growth. `None` where that does not hold, or where
/// there are fewer than five seconds, or a number is not finite.
#[must_use]
pub fn growth(unfinished: &[f64], finished: f64) -> Option<Growth> {
    let fine = finished.is_finite() && unfinished.iter().all(|value| value.is_finite());
    if unfinished.len() < MIN_SECONDS || !fine {
        return None;
    }
    let seconds = unfinished.len() as f64;
    let (first, second) = unfinished.split_at(unfinished.len() / 2);
    let mean = |half: &[f64]| half.iter().map(|value| value / half.len() as f64).sum::<f64>();
    // The middles of both halves are half of all seconds apart.
    let rise = mean(second) - mean(first);
    let per_second = rise / (seconds / 2.0);
    let grown = per_second * seconds;
    let arrived = finished.max(0.0) + grown.max(0.0);
    let enough = grown > (MIN_SHARE * arrived).max(MIN_DEVIATIONS_OF_ARRIVALS * arrived.sqrt());
    let clear = || is_added(unfinished) || rise > noise_of_halves(unfinished);
    (per_second.is_finite() && enough && clear()).then(|| Growth { per_second, share: grown / arrived })
}

fn is_added(unfinished: &[f64]) -> bool {
    let added: Vec<f64> = unfinished.windows(2).map(|pair| pair[1] - pair[0]).collect();
    one_sample(&added).is_some_and(|test| test.p_greater(0.0) <= SIGNIFICANCE)
}

/// The largest difference of the halves' means that chance explains.
fn noise_of_halves(values: &[f64]) -> f64 {
    let noise = Noise::of(values);
    let half = values.len() / 2;
    noise.errors_for(SIGNIFICANCE) * noise.error_of_difference(half, values.len() - half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, finite, samples};
    use proptest::prelude::*;

    #[test]
    fn growth_is_found_where_work_is_left_over() {
        // 1,000 arrive and 900 are finished each second.
        let unfinished: Vec<f64> = (1..=20).map(|second| f64::from(second) * 100.0).collect();
        let growth = growth(&unfinished, 18_000.0).expect("it grows");
        assert!((growth.per_second - 100.0).abs() < 1e-9 && (growth.share - 0.1).abs() < 1e-12, "{growth:?}");
    }

    #[test]
    fn neither_a_constant_number_nor_a_little_growth_nor_chance_is_growth() {
        for (unfinished, finished) in [
            (vec![50.0; 20], 20_000.0),
            ((0..20).map(|second| 50.0 + f64::from(second)).collect(), 20_000.0),
            ((0..20).map(|second| f64::from(second % 7) * 30.0).collect(), 2_000.0),
            ((0..20).map(|second| 900.0 - f64::from(second) * 40.0).collect(), 20_000.0),
            // 0.5 more each second of 10 arrivals: within what random arrivals do.
            ((0..20).map(|second| f64::from(second) * 0.5).collect(), 190.0),
            (vec![0.0, 1000.0, 2000.0], 100.0),
            (Vec::new(), 0.0),
        ] {
            assert_eq!(growth(&unfinished, finished), None, "{unfinished:?}");
        }
    }

    #[test]
    fn a_stable_queue_hardly_ever_seems_to_grow() {
        // A queue with 100 arrivals a second, looked at for a minute: at 90 % load from its steady
        // state, and at 110 % from empty.
        let mut noise = Noise::new(31);
        let mut found = |load: f64, runs: usize| {
            let grows = |_: &usize| {
                let mut waiting = if load < 1.0 { (noise.uniform().ln() / load.ln()).floor() } else { 0.0 };
                let mut finished = 0.0;
                let unfinished: Vec<f64> = (0..60)
                    .map(|_| {
                        // Each event is an arrival or the end of a service, as their rates are.
                        for _ in 0..(100.0 * (1.0 + 1.0 / load)) as usize {
                            if noise.uniform() < load / (1.0 + load) {
                                waiting += 1.0;
                            } else if waiting > 0.0 {
                                waiting -= 1.0;
                                finished += 1.0;
                            }
                        }
                        waiting
                    })
                    .collect();
                growth(&unfinished, finished).is_some()
            };
            (0..runs).filter(grows).count() as f64 / runs as f64
        };
        let (stable, growing) = (found(0.9, 1000), found(1.1, 300));
        assert!(stable <= 0.005, "{stable}");
        assert!(growing >= 0.95, "{growing}");
    }

    proptest! {
        #[test]
        fn any_numbers_give_growth_or_none(unfinished in samples(0..40), finished in finite()) {
            if let Some(growth) = growth(&unfinished, finished) {
                prop_assert!(growth.per_second > 0.0 && (0.0..=1.0).contains(&growth.share), "{:?}", growth);
            }
        }

        #[test]
        fn growth_is_a_share_of_what_arrives(
            unfinished in prop::collection::vec(0.0_f64..1e12, 0..60),
            finished in 0.0_f64..1e12,
        ) {
            if let Some(growth) = growth(&unfinished, finished) {
                prop_assert!(growth.per_second > 0.0 && growth.share > MIN_SHARE && growth.share <= 1.0);
            }
        }
    }
}
