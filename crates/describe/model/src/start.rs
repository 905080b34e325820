//! Starts of systems, the loads on them, and how they share time.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// One life of the systems: they are started and made ready, take one load after another, and are
/// stopped. The unit of replication. A start of one variant with one load is a *trial*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Place in the plan, from 1. Starts run in this order, with one exception: in a run that may end early, blocks
    /// that run again come before the next look at the verdicts.
    pub number: u32,
    /// The block it belongs to, from 1: every variant under one condition, side by side in time.
    pub block: u32,
    /// The repeat of its condition, from 1.
    pub repeat: u32,
    /// The attempt at that repeat, from 1: a block in which a load does not count runs again as a
    /// whole, as a block of its own.
    pub attempt: u32,
    /// True if its warm-up is longer by its measure phase, because the attempt before found no
    /// steady state.
    pub extended: bool,
    /// Place inside its block, from 1.
    pub position: u32,
    /// Index into the plan's conditions.
    pub condition: usize,
    /// The variants whose systems are alive on it, in the order in which they start: indices into
    /// the plan's variants; one past them for the duplicate of the baseline.
    pub variants: Vec<usize>,
}

impl Start {
    /// The only variant of the start; none if it has several. A trial has one.
    #[must_use]
    pub fn only_variant(&self) -> Option<usize> {
        match self.variants[..] {
            [variant] => Some(variant),
            _ => None,
        }
    }

    /// A new attempt at this start, as a part of the block `block`.
    #[must_use]
    pub fn again(&self, number: u32, block: u32, extended: bool) -> Start {
        Start { number, block, attempt: self.attempt + 1, extended, ..self.clone() }
    }
}

/// One period under load on a start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Place on its start, from 1.
    pub number: u32,
    /// The variant whose systems take the load: one of the start's.
    pub variant: usize,
    /// The turn of the start that it belongs to, from 1. A trial has one turn.
    #[serde(default = "first_turn", skip_serializing_if = "is_first_turn")]
    pub turn: u32,
    /// The variant that is loaded at the same time; none where each load is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<usize>,
    /// Its place in a search for the capacity; none for a load whose level the study names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// How long its phases take.
    pub lengths: PhaseLengths,
}

impl Load {
    /// True if the two run at the same time.
    #[must_use]
    pub fn runs_beside(&self, other: &Load) -> bool {
        self.turn == other.turn && self.beside == Some(other.variant) && other.beside == Some(self.variant)
    }
}

/// A load of a search for the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The users, or the arrivals per second. A search moves in steps that are no whole numbers; users are rounded when
    /// they are offered.
    pub level: f64,
    /// The part of the search that it belongs to.
    pub part: RungPart,
}

/// Parts of a search for the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungPart {
    /// Twice the load after a pass, half of it after a failure: it looks for the region.
    Bracket,
    /// Small steps around an estimate: it looks for the place.
    Ladder,
    /// A longer load at the lower end of the capacity's interval.
    Confirmation,
    /// One of equal steps: it shows how systems do over the whole range.
    Step,
    /// A light load after one under which requests failed: it shows whether the systems have recovered.
    Recovery,
}

fn first_turn() -> u32 {
    1
}

fn is_first_turn(turn: &u32) -> bool {
    *turn == first_turn()
}

/// How the variants of a block share time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// One start for each variant, with one load.
    #[default]
    Trials,
    /// One start for all variants, with short loads in turns.
    Turns(Turns),
    /// The same, but in each turn the baseline is loaded beside each other variant, at the same time.
    SideBySide(Turns),
}

impl Design {
    /// True if each start has one variant and one load.
    #[must_use]
    pub fn is_trials(&self) -> bool {
        *self == Design::Trials
    }

    /// The turns, if a start has some.
    #[must_use]
    pub fn turns(&self) -> Option<Turns> {
        match self {
            Design::Trials => None,
            Design::Turns(turns) | Design::SideBySide(turns) => Some(*turns),
        }
    }

    /// True if variants are loaded beside the baseline, at the same time.
    #[must_use]
    pub fn is_side_by_side(&self) -> bool {
        matches!(self, Design::SideBySide(_))
    }
}

/// The turns of a start: in each, every variant takes one short load, a *slice*, in random order. Side by side, it takes
/// it at the same time as the baseline, which has a slice beside each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The number of turns on a start.
    pub count: u32,
    /// Load before each slice that is not measured: users connect, caches fill again.
    pub settle: Duration,
    /// The measured part of a slice.
    pub slice: Duration,
}

impl Turns {
    /// The fewest turns that must count for their start to count: a quarter is trimmed from either end, and two must
    /// be left.
    pub const LEAST: u32 = 4;

    /// The fewest turns that must count for a start of so many to count: half of them, and at least [`Turns::LEAST`].
    #[must_use]
    pub fn needed_of(count: u32) -> u32 {
        count.div_ceil(2).max(Turns::LEAST)
    }

    /// The lengths of the slices of a turn under a load with these lengths. The first slice of a variant warms it up.
    pub(crate) fn lengths(self, turn: u32, of_load: PhaseLengths) -> PhaseLengths {
        let warmup = if turn == 1 { self.settle.max(of_load.warmup) } else { self.settle };
        PhaseLengths { warmup, measure: self.slice, drain: of_load.drain }
    }
}

/// How long the phases of a load take according to the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseLengths {
    /// Warm-up.
    pub warmup: Duration,
    /// Measure; the limit where a number of iterations ends it.
    pub measure: Duration,
    /// Drain, at most.
    pub drain: Duration,
}

impl PhaseLengths {
    /// The time that counts as being under load: warm-up and measure.
    #[must_use]
    pub fn under_load(self) -> Duration {
        self.warmup + self.measure
    }

    /// The same with a warm-up that is longer by the measure phase.
    #[must_use]
    pub fn extended(self) -> PhaseLengths {
        PhaseLengths { warmup: self.warmup + self.measure, ..self }
    }
}

/// A part of a start with its loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Systems are started and get ready.
    Setup,
    /// Load that is not measured.
    Warmup,
    /// Load that is measured.
    Measure,
    /// Exchanges under way finish.
    Drain,
    /// Systems are stopped.
    Teardown,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Setup => "setup",
            Phase::Warmup => "warm-up",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
            Phase::Teardown => "teardown",
        })
    }
}

/// Whether a start or a load counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It counts.
    Valid,
    /// It ran, but something other than the system limited what it measured. It counts neither as passed nor as failed.
    Void(Vec<String>),
    /// It could not be completed, or the system's replies were wrong.
    Failed(Vec<String>),
}

impl Validity {
    /// True if it counts in estimates.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self, Validity::Valid)
    }

    /// True if it measured something else than the systems.
    #[must_use]
    pub fn is_void(&self) -> bool {
        matches!(self, Validity::Void(_))
    }

    /// Combines two judgements of the same thing: a failure outweighs a void, and the reasons of `self` come first.
    #[must_use]
    pub fn and(&self, other: &Validity) -> Validity {
        let reasons = || [self.reasons(), other.reasons()].concat();
        match (self, other) {
            (Validity::Valid, other) => other.clone(),
            (known, Validity::Valid) => known.clone(),
            (Validity::Void(_), Validity::Void(_)) => Validity::Void(reasons()),
            _ => Validity::Failed(reasons()),
        }
    }

    /// Why it does not count; empty when it does.
    #[must_use]
    pub fn reasons(&self) -> &[String] {
        match self {
            Validity::Valid => &[],
            Validity::Void(reasons) | Validity::Failed(reasons) => reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_half_of_the_turns_are_needed() {
        assert_eq!([4, 7, 8, 9, 20].map(Turns::needed_of), [4, 4, 4, 5, 10]);
    }

    #[test]
    fn a_failure_outweighs_a_void() {
        let (void, failed) = (Validity::Void(vec!["v".into()]), Validity::Failed(vec!["f".into()]));
        assert_eq!(failed.and(&void), Validity::Failed(vec!["f".into(), "v".into()]));
        assert_eq!(void.and(&Validity::Valid), void);
        assert_eq!(Validity::Valid.and(&failed), failed);
    }
}
