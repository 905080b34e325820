//! Light loads after one under which requests failed, until the systems have recovered.
//!
//! Such a load may leave work behind that the generator has given up: requests that timed out and wait in the system, a pool
//! whose connections are broken, callers that hold back. The loads that follow would be judged by that.

use crate::outcomes::Shown;
use plimsoll_model::start::{PhaseLengths, Rung, RungPart};
use std::time::Duration;

/// The light load has at most this share of the one that the systems have to recover from, where one so small has passed.
const LIGHT: f64 = 0.25;

/// Its measure phase, as a share of that of other loads, and the least that it takes, where those do.
const SHORT: f64 = 0.25;
const SHORTEST: Duration = Duration::from_secs(1);

/// A light load that is offered until it meets the objective.
pub(super) struct Recovery {
    light: f64,
    /// How long it was offered in vain.
    took: Duration,
    /// How long the systems may take.
    at_most: Duration,
}

impl Recovery {
    /// The recovery from a load of `level`, where loads of the levels `passed` met the objective. None where there is no time
    /// for it, or no smaller load has passed: then it cannot be told from a light load that is too much.
    pub(super) fn after(level: f64, passed: &[f64], at_most: Duration) -> Option<Recovery> {
        let smaller = || passed.iter().copied().filter(|passed| *passed < level);
        let light = smaller().filter(|passed| *passed <= LIGHT * level).reduce(f64::max);
        let light = light.or_else(|| smaller().reduce(f64::min)).filter(|_| !at_most.is_zero())?;
        Some(Recovery { light, took: Duration::ZERO, at_most })
    }

    /// What is left of it after a light load: nothing where that showed that the systems have recovered.
    pub(super) fn goes_on(self, lengths: PhaseLengths, shown: Shown) -> Option<Recovery> {
        match shown {
            Shown::Judged { passed: true, .. } | Shown::TooFew { .. } => None,
            _ => Some(Recovery { took: self.took + lengths.warmup + lengths.measure, ..self }),
        }
    }

    /// True if the systems did not recover in the time that they had.
    pub(super) fn has_failed(&self) -> bool {
        self.took >= self.at_most
    }

    /// The next light load, with the length of its measure phase; `measure` is that of other loads.
    pub(super) fn next(&self, measure: Duration) -> (Rung, Duration) {
        let short = measure.mul_f64(SHORT).max(SHORTEST).min(measure);
        (Rung { level: self.light, part: RungPart::Recovery }, short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const MISSED: Shown = Shown::Judged { passed: false, strain: None, failed: true, share_to_weigh: None };

    #[test]
    fn the_light_load_is_one_that_has_passed() {
        let level = |passed: &[f64]| Some(Recovery::after(100.0, passed, MINUTE)?.light);
        assert_eq!(level(&[10.0, 20.0, 40.0, 80.0]), Some(20.0), "the largest of at most a quarter");
        assert_eq!(level(&[50.0, 80.0]), Some(50.0), "or the smallest");
        assert_eq!(level(&[100.0, 120.0]), None, "or none");
        assert!(Recovery::after(100.0, &[10.0], Duration::ZERO).is_none());
    }

    #[test]
    fn it_goes_on_until_a_light_load_passes_or_the_time_is_over() {
        let second = Duration::from_secs(1);
        let lengths = PhaseLengths { warmup: 2 * second, measure: 3 * second, drain: second };
        let begun = || Recovery::after(100.0, &[10.0], 10 * second).expect("a recovery");
        let passed = Shown::Judged { passed: true, strain: None, failed: false, share_to_weigh: None };
        assert!(begun().goes_on(lengths, passed).is_none());
        assert!(begun().goes_on(lengths, Shown::TooFew { share: 0.1 }).is_none(), "nothing was broken");
        let later = begun().goes_on(lengths, MISSED).expect("not yet");
        assert!(!later.has_failed());
        assert!(later.goes_on(lengths, Shown::Void).expect("not yet").has_failed());
    }

    #[test]
    fn light_loads_are_short() {
        let recovery = Recovery::after(100.0, &[10.0], MINUTE).expect("a recovery");
        let length = |measure: u64| recovery.next(Duration::from_millis(measure)).1.as_millis();
        assert_eq!([200, 2_000, 10_000].map(length), [200, 1_000, 2_500]);
    }
}
