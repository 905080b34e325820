//! Trials and the plan that orders them.

use crate::factor::Assignment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// One run of one variant under one condition: the unit of replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Place in the plan, from 1. Trials run in this order; but where a run may end early, those
    /// that were added because others did not count run before the next look at the verdicts.
    pub number: u32,
    /// The block it belongs to, from 1: one trial of each variant under one condition, side by
    /// side in time.
    pub block: u32,
    /// Which repeat of its condition, from 1.
    pub repeat: u32,
    /// Which attempt at that repeat, from 1: a block in which a trial does not count is run again
    /// as a whole, as a block of its own.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// Whether its warm-up is longer by its measure phase, because the attempt before found no
    /// steady state.
    #[serde(default)]
    pub extended: bool,
    /// Place inside its block, from 1.
    pub position: u32,
    /// Index into the plan's variants; one past them for the duplicate of the baseline.
    pub variant: usize,
    /// Index into the plan's conditions.
    pub condition: usize,
}

fn first_attempt() -> u32 {
    1
}

/// Every trial of a study, in the order in which they run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed of the order.
    pub seed: u64,
    /// Blocks per condition.
    pub repeats: u32,
    /// The combinations of the compared factors; index 0 is the baseline.
    pub variants: Vec<Assignment>,
    /// The combinations of the other factors, in the study's order; a study without any has one
    /// empty condition.
    pub conditions: Vec<Assignment>,
    /// The trials, those of blocks that were run again at the end.
    pub trials: Vec<Trial>,
    /// What warm-up, measure and (at most) drain take for each condition, by its index.
    pub lengths: Vec<TrialLength>,
    /// Whether every block holds the baseline a second time: the *duplicate*, whose ratio to the
    /// baseline is the noise floor of the study.
    #[serde(default)]
    pub with_duplicate: bool,
    /// How many blocks may be run again because a trial in them did not count, in all.
    #[serde(default)]
    pub spare_blocks: u32,
    /// The repeats after which the run may end when every verdict is reached, ascending, the last
    /// one being `repeats`; empty when all repeats are run whatever they show.
    #[serde(default)]
    pub looks: Vec<u32>,
}

impl Plan {
    /// The index that stands for the duplicate of the baseline in [`Trial::variant`], if the plan
    /// has one. It is no index into the variants, so that whatever goes through those leaves the
    /// duplicate out.
    #[must_use]
    pub fn duplicate(&self) -> Option<usize> {
        self.with_duplicate.then_some(self.variants.len())
    }

    /// The trials of a block: the variants, and the duplicate.
    #[must_use]
    pub fn block_size(&self) -> usize {
        self.variants.len() + usize::from(self.with_duplicate)
    }

    /// The levels of the compared factors of a variant, or of the duplicate.
    #[must_use]
    pub fn variant(&self, index: usize) -> &Assignment {
        self.variants.get(index).unwrap_or(&self.variants[0])
    }

    /// The name of a variant, or of the duplicate: `mutex`, `mutex (duplicate)`.
    #[must_use]
    pub fn label(&self, variant: usize) -> String {
        let name = self.variant(variant).label();
        if variant < self.variants.len() { name } else { format!("{name} (duplicate)") }
    }

    /// The levels of all factors in `trial`.
    #[must_use]
    pub fn assignment(&self, trial: &Trial) -> Assignment {
        self.variant(trial.variant).and(&self.conditions[trial.condition])
    }

    /// How long the phases of `trial` take.
    #[must_use]
    pub fn length(&self, trial: &Trial) -> TrialLength {
        let length = self.lengths[trial.condition];
        if trial.extended { TrialLength { warmup: length.warmup + length.measure, ..length } } else { length }
    }

    /// The time under load of all trials, without build, start and stop.
    #[must_use]
    pub fn time_under_load(&self) -> Duration {
        self.trials.iter().map(|trial| self.length(trial).load()).sum()
    }

    /// The plan of a run that ended after so many repeats: later ones are no longer in it.
    #[must_use]
    pub fn up_to(mut self, repeats: u32) -> Plan {
        self.trials.retain(|trial| trial.repeat <= repeats);
        self.repeats = self.repeats.min(repeats);
        self
    }

    /// Whether the block of `trial` was run again: its values do not count then, none of them.
    #[must_use]
    pub fn is_superseded(&self, trial: &Trial) -> bool {
        let place = |trial: &Trial| (trial.condition, trial.repeat);
        self.trials.iter().any(|other| place(other) == place(trial) && other.attempt > trial.attempt)
    }
}

/// How long the phases of a trial take, as the study asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialLength {
    /// Warm-up.
    pub warmup: Duration,
    /// Measure; the limit where a number of iterations ends it.
    pub measure: Duration,
    /// Drain, at most.
    pub drain: Duration,
}

impl TrialLength {
    /// Warm-up and measure.
    #[must_use]
    pub fn load(self) -> Duration {
        self.warmup + self.measure
    }
}

/// A part of a trial.
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

/// Whether a trial counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It counts.
    Valid,
    /// It ran, but what it measured is not the system: never passed, never failed.
    Void(Vec<String>),
    /// It could not be carried through, or the system's replies were wrong.
    Failed(Vec<String>),
}

impl Validity {
    /// Whether the trial counts in estimates.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self, Validity::Valid)
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
    use crate::factor::Level;

    fn trial(number: u32, repeat: u32, attempt: u32, variant: usize) -> Trial {
        let (block, position, condition) = (repeat, 1, 0);
        Trial { number, block, repeat, attempt, extended: attempt > 1, position, variant, condition }
    }

    /// One trial of the baseline in each of two repeats, and the first one again.
    fn plan() -> Plan {
        let second = Duration::from_secs(1);
        Plan {
            seed: 1,
            repeats: 2,
            variants: ["a", "b"].map(|mode| Assignment(vec![("mode".into(), Level::Text(mode.into()))])).into(),
            conditions: vec![Assignment::default()],
            trials: vec![trial(1, 1, 1, 0), trial(2, 2, 1, 2), trial(3, 1, 2, 0)],
            lengths: vec![TrialLength { warmup: second, measure: 4 * second, drain: second }],
            with_duplicate: true,
            spare_blocks: 1,
            looks: vec![1, 2],
        }
    }

    #[test]
    fn the_duplicate_is_the_baseline_by_another_name() {
        let plan = plan();
        assert_eq!((plan.duplicate(), plan.block_size()), (Some(2), 3));
        assert_eq!(plan.label(2), "a (duplicate)");
        assert_eq!(plan.assignment(&plan.trials[1]).label(), "a");
        assert_eq!(Plan { with_duplicate: false, ..plan }.duplicate(), None);
    }

    #[test]
    fn an_attempt_supersedes_the_one_before_it() {
        let plan = plan();
        let superseded: Vec<bool> = plan.trials.iter().map(|trial| plan.is_superseded(trial)).collect();
        assert_eq!(superseded, [true, false, false]);
    }

    #[test]
    fn an_extended_trial_warms_up_for_longer() {
        let plan = plan();
        let warmups = [0, 2].map(|trial| plan.length(&plan.trials[trial]).warmup.as_secs());
        assert_eq!((warmups, plan.time_under_load().as_secs()), ([1, 5], 5 + 5 + 9));
    }

    #[test]
    fn a_run_that_ended_early_has_no_later_repeats() {
        let plan = plan().up_to(1);
        let numbers: Vec<u32> = plan.trials.iter().map(|trial| trial.number).collect();
        assert_eq!((numbers, plan.repeats, plan.looks), (vec![1, 3], 1, vec![1, 2]));
    }

    #[test]
    fn a_trial_of_an_earlier_format_is_a_first_attempt() {
        let text = r#"{"number":1,"block":1,"repeat":1,"position":1,"variant":0,"condition":0}"#;
        assert_eq!(serde_json::from_str::<Trial>(text).expect("a trial"), trial(1, 1, 1, 0));
    }
}
