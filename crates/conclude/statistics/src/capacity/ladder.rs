//! The ladder: short loads that go up after a pass and down after a failure, by steps that get smaller at turns.

use super::Tried;

/// The steps of a ladder, as shares of the load. A turn of the direction leads to the next one; the third load in a row in the
/// same direction ([`SAME`]), and each one after it, leads back to the one before.
const STEPS: [f64; 5] = [0.06, 0.04, 0.03, 0.02, 0.015];

/// The number of loads in a row that pass, or fail, from which on steps get larger again: the capacity has moved, and small steps
/// would not get there.
const SAME: usize = 3;

/// The loads of a ladder.
pub const LOADS: usize = 8;

/// The loads of a ladder whose first [`LOADS`] contradict one another.
pub const MOST_LOADS: usize = 2 * LOADS;

/// Loads of a ladder contradict one another from this distance on: the logarithm of the largest that passed over the smallest
/// that failed. Where loads pass or fail by chance of 2 % either way, they hardly ever come that far apart.
pub const CONTRADICTION: f64 = 0.05;

/// The first levels of a ladder, which are no part of its mean: they are where earlier starts ended.
const FIRST_LEVELS: usize = 2;

/// A ladder, after some of its loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ladder {
    /// The load that is next.
    pub(super) level: f64,
    pub(super) loads: usize,
    pub(super) passes: usize,
    /// Whether the last load passed.
    last: Option<bool>,
    /// The number of loads in a row, up to the last, that did the same as it.
    same: usize,
    /// The place of the present step.
    step: usize,
    /// The largest load that passed, and the smallest that failed.
    passed: f64,
    failed: f64,
    /// The sum of the logarithms of its levels without the first.
    sum: f64,
}

impl Ladder {
    pub(super) fn at(level: f64) -> Ladder {
        Ladder {
            level,
            loads: 0,
            passes: 0,
            last: None,
            same: 0,
            step: 0,
            passed: 0.0,
            failed: f64::INFINITY,
            sum: 0.0,
        }
    }

    /// The ladder that these loads went up and down.
    pub(super) fn of(tried: &[Tried]) -> Ladder {
        let first = Ladder::at(tried.first().map_or(0.0, |one| one.level));
        tried.iter().fold(first, |ladder, one| Ladder { level: one.level, ..ladder }.after(one.passed))
    }

    /// The ladder after its next load.
    pub(super) fn after(self, has_passed: bool) -> Ladder {
        let Ladder { level, loads, .. } = self;
        let has_turned = self.last.is_some_and(|last| last != has_passed);
        let same = if has_turned { 1 } else { self.same + 1 };
        let step = match has_turned {
            true => (self.step + 1).min(STEPS.len() - 1),
            false if same >= SAME => self.step.saturating_sub(1),
            false => self.step,
        };
        let size = 1.0 + STEPS[step];
        Ladder {
            level: if has_passed { level * size } else { level / size },
            loads: loads + 1,
            passes: self.passes + usize::from(has_passed),
            last: Some(has_passed),
            same,
            step,
            passed: if has_passed { self.passed.max(level) } else { self.passed },
            failed: if has_passed { self.failed } else { self.failed.min(level) },
            sum: self.sum + if loads < FIRST_LEVELS { 0.0 } else { level.ln() },
        }
    }

    /// The same with its next load in this range.
    pub(super) fn within(self, least: f64, most: f64) -> Ladder {
        Ladder { level: self.level.min(most).max(least), ..self }
    }

    pub(super) fn is_over(&self) -> bool {
        self.loads >= if self.contradiction() > CONTRADICTION { MOST_LOADS } else { LOADS }
    }

    /// How far its loads contradict one another: the logarithm of the largest that passed over the smallest that failed.
    pub(super) fn contradiction(&self) -> f64 {
        (self.passed / self.failed).ln().max(0.0)
    }

    /// The geometric mean of its levels, that of the next load among them.
    pub(super) fn mean(&self) -> f64 {
        ((self.sum + self.level.ln()) / (self.loads - FIRST_LEVELS + 1) as f64).exp()
    }
}
