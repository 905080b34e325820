//! The ladder: short loads that go up after a pass and down after a failure, by steps that get smaller at turns.

/// The steps of a ladder, as shares of the load. A turn of the direction leads to the next one; the third load in a row in the
/// same direction ([`SAME`]), and each one after it, leads back to the one before. Where loads or starts disagree by more than the
/// first step, all steps are larger in proportion: see [`Ladder::after`].
const STEPS: [f64; 5] = [0.06, 0.04, 0.03, 0.02, 0.015];

/// The largest first step of a ladder: it doubles the load, as a bracket does.
const LARGEST_STEP: f64 = 1.0;

/// The number of loads in a row that pass, or fail, from which on steps get larger again: the capacity has moved, and small steps
/// would not get there.
const SAME: usize = 3;

/// The usual number of loads of a ladder.
pub const LOADS: usize = 8;

/// The number where the first [`LOADS`] contradict one another, or those of a ladder before it on the same start.
pub const MOST_LOADS: usize = 3 * LOADS;

/// Loads contradict one another from this distance on: the logarithm of the largest that passed over the smallest that failed.
/// Where loads pass or fail by chance of 2 % either way, they hardly ever come that far apart.
pub const CONTRADICTION: f64 = 0.05;

/// The first levels of a ladder, which are no part of its mean: they are where earlier starts ended.
const FIRST_LEVELS: usize = 2;

/// A ladder, after some of its loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ladder {
    /// The load that is next.
    pub(super) level: f64,
    loads: usize,
    passes: usize,
    /// Whether the last load passed.
    last: Option<bool>,
    /// The number of loads in a row, up to the last, that did the same as it.
    same: usize,
    /// The place of the present step.
    step: usize,
    /// The sum of the logarithms of its levels without the first ones.
    sum: f64,
}

impl Ladder {
    pub(super) fn at(level: f64) -> Ladder {
        Ladder { level, loads: 0, passes: 0, last: None, same: 0, step: 0, sum: 0.0 }
    }

    /// The ladder that these loads went up and down.
    pub(super) fn of(tried: impl Iterator<Item = (f64, bool)>) -> Ladder {
        tried.fold(Ladder::at(0.0), |ladder, (level, has_passed)| Ladder { level, ..ladder }.after(has_passed, 0.0))
    }

    /// The ladder after its next load. `disagreement` is how far loads [contradict](super::contradiction) one another, or starts
    /// differ, so far: the first step is no smaller, and the others are in proportion. With small steps alone, starts that met the
    /// machine at two of its speeds would each find one, and agree by chance.
    pub(super) fn after(self, has_passed: bool, disagreement: f64) -> Ladder {
        let Ladder { level, loads, .. } = self;
        let has_turned = self.last.is_some_and(|last| last != has_passed);
        let same = if has_turned { 1 } else { self.same + 1 };
        let step = match has_turned {
            true => (self.step + 1).min(STEPS.len() - 1),
            false if same >= SAME => self.step.saturating_sub(1),
            false => self.step,
        };
        let first_step = disagreement.clamp(STEPS[0], LARGEST_STEP);
        let size = 1.0 + STEPS[step] / STEPS[0] * first_step;
        Ladder {
            level: if has_passed { level * size } else { level / size },
            loads: loads + 1,
            passes: self.passes + usize::from(has_passed),
            last: Some(has_passed),
            same,
            step,
            sum: self.sum + if loads < FIRST_LEVELS { 0.0 } else { level.ln() },
        }
    }

    /// The same with its next load in this range.
    pub(super) fn within(self, least: f64, most: f64) -> Ladder {
        Ladder { level: self.level.min(most).max(least), ..self }
    }

    /// What all its loads did, if they did the same.
    pub(super) fn one_way(&self) -> Option<bool> {
        match self.passes {
            0 => Some(false),
            passes if passes == self.loads => Some(true),
            _ => None,
        }
    }

    /// True if it takes no more loads. `contradiction` is that of the ladders of its start.
    pub(super) fn is_over(&self, contradiction: f64) -> bool {
        let goes_on = contradiction > CONTRADICTION && self.one_way().is_none();
        self.loads >= if goes_on { MOST_LOADS } else { LOADS }
    }

    /// The geometric mean of its levels; none of too few.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.loads >= LOADS).then(|| (self.sum / (self.loads - FIRST_LEVELS) as f64).exp())
    }
}
