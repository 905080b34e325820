//! Trials and the plan that orders them.

use crate::factor::Assignment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// One run of one variant under one condition: the unit of replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Place in the order of the run, from 1.
    pub number: u32,
    /// The block it belongs to, from 1: one trial of each variant under one condition, side by
    /// side in time.
    pub block: u32,
    /// Which repeat of its condition, from 1.
    pub repeat: u32,
    /// Place inside its block, from 1.
    pub position: u32,
    /// Index into the plan's variants.
    pub variant: usize,
    /// Index into the plan's conditions.
    pub condition: usize,
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
    /// The trials.
    pub trials: Vec<Trial>,
    /// What warm-up, measure and (at most) drain take for each condition, by its index.
    pub lengths: Vec<TrialLength>,
}

impl Plan {
    /// The levels of all factors in `trial`.
    #[must_use]
    pub fn assignment(&self, trial: &Trial) -> Assignment {
        self.variants[trial.variant].and(&self.conditions[trial.condition])
    }

    /// The time under load of all trials, without build, start and stop.
    #[must_use]
    pub fn time_under_load(&self) -> Duration {
        self.trials.iter().map(|trial| self.lengths[trial.condition].load()).sum()
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
