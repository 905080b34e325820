//! Reads formats 1 and 2, in which a start had one variant and one load, and both were one *trial*.

use crate::files::{STARTS, SUMMARY};
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::factor::Assignment;
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{ErrorKind, SequenceCheck};
use plimsoll_model::result::{
    FinishedStart, Headroom, LoadSummary, LoadTiming, Replies, StartSummary, StartTiming, Steadiness, VariantSystems,
    Work,
};
use plimsoll_model::script::ScriptFacts;
use plimsoll_model::start::{Design, Load, PhaseLengths, Start, Validity};
use plimsoll_model::storage::StorageFacts;
use plimsoll_model::units::{Instant, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The first format that separates starts from their loads.
const STARTS_AND_LOADS: u32 = 3;

/// The names in a bundle that depend on its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The folder of all starts, or trials.
    pub(crate) folder: &'static str,
    /// The file of short facts in the folder of each.
    pub(crate) summary: &'static str,
    /// The word before the number in the names of sealed parts.
    pub(crate) part: &'static str,
    /// True if histograms are marked with the number of their load.
    pub(crate) numbered_loads: bool,
}

impl Layout {
    /// The layout of a format.
    pub(crate) fn of(format: u32) -> Layout {
        if format < STARTS_AND_LOADS {
            Layout { folder: "trials", summary: "trial.json", part: "trial", numbered_loads: false }
        } else {
            Layout { folder: STARTS, summary: SUMMARY, part: "start", numbered_loads: true }
        }
    }

    /// True if the format is older than the separation of starts and loads.
    pub(crate) fn is_earlier(&self) -> bool {
        !self.numbered_loads
    }

    /// The folder of a sealed start.
    pub(crate) fn start_folder(&self, bundle: &Path, number: u32) -> PathBuf {
        bundle.join(self.folder).join(format!("{number:04}"))
    }

    /// The name of the part that a start is in the manifest.
    pub(crate) fn part_of(&self, number: u32) -> String {
        format!("{} {number}", self.part)
    }
}

/// A start with its only load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    number: u32,
    block: u32,
    repeat: u32,
    #[serde(default = "first_attempt")]
    attempt: u32,
    #[serde(default)]
    extended: bool,
    position: u32,
    variant: usize,
    condition: usize,
}

fn first_attempt() -> u32 {
    1
}

impl From<Trial> for Start {
    fn from(trial: Trial) -> Start {
        let Trial { number, block, repeat, attempt, extended, position, variant, condition } = trial;
        Start { number, block, repeat, attempt, extended, position, condition, variants: vec![variant] }
    }
}

/// The plan, `plan.json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EarlierPlan {
    seed: u64,
    repeats: u32,
    variants: Vec<Assignment>,
    conditions: Vec<Assignment>,
    trials: Vec<Trial>,
    lengths: Vec<PhaseLengths>,
    #[serde(default)]
    with_duplicate: bool,
    #[serde(default)]
    spare_blocks: u32,
    #[serde(default)]
    looks: Vec<u32>,
}

impl From<EarlierPlan> for Plan {
    fn from(plan: EarlierPlan) -> Plan {
        let EarlierPlan { seed, repeats, variants, conditions, trials, lengths, with_duplicate, spare_blocks, looks } =
            plan;
        let starts = trials.into_iter().map(Start::from).collect();
        let design = Design::Trials;
        let given_time = None;
        Plan {
            seed,
            repeats,
            variants,
            conditions,
            starts,
            lengths,
            design,
            with_duplicate,
            spare_blocks,
            looks,
            given_time,
            searches: Vec::new(),
        }
    }
}

/// The short facts of a trial, `trial.json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TrialSummary {
    trial: Trial,
    validity: Validity,
    warnings: Vec<String>,
    started_unix_ms: i64,
    took: Nanos,
    ready_after: Nanos,
    window: Nanos,
    #[serde(default)]
    steady_from: Option<Nanos>,
    #[serde(default)]
    unsteady: bool,
    #[serde(default)]
    unjudged: Option<String>,
    #[serde(default)]
    headroom: Headroom,
    open_load: bool,
    sequences: BTreeMap<String, SequenceCheck>,
    error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    #[serde(default)]
    storage: Option<StorageFacts>,
    #[serde(default)]
    databases: Vec<DatabaseFacts>,
    #[serde(default)]
    script: Option<ScriptFacts>,
}

impl TrialSummary {
    /// Converts the trial to a start with its load. All reasons of its validity go to the load, because these formats
    /// do not record which of them concern the start.
    pub(crate) fn finished_start(self, plan: &Plan) -> FinishedStart {
        let start = Start::from(self.trial);
        let variant = self.trial.variant;
        let lengths = plan.lengths.get(start.condition).map_or_else(PhaseLengths::default, |_| plan.lengths(&start, 1));
        let load = LoadSummary {
            load: Load { number: 1, variant, turn: 1, beside: None, rung: None, lengths },
            validity: self.validity,
            warnings: self.warnings,
            timing: LoadTiming { zero: Instant(0), window: self.window },
            steadiness: Steadiness { from: self.steady_from, unsteady: self.unsteady, unjudged: self.unjudged },
            headroom: self.headroom,
            others: None,
            others_elsewhere: BTreeMap::new(),
            objective: None,
            feedback: None,
            replies: Replies {
                open_load: self.open_load,
                sequences: self.sequences,
                error_examples: self.error_examples,
                ..Replies::default()
            },
            work: match (self.storage, self.script) {
                (Some(storage), _) => Work::Storage(Box::new(storage)),
                (None, Some(script)) => Work::Script(script),
                (None, None) => Work::Steps,
            },
            agents: Vec::new(),
        };
        let systems = VariantSystems {
            variant,
            ready_after: self.ready_after,
            processors: None,
            bound_to: BTreeMap::new(),
            databases: self.databases,
        };
        let summary = StartSummary {
            start,
            validity: Validity::Valid,
            warnings: Vec::new(),
            timing: StartTiming { started_unix_ms: self.started_unix_ms, took: self.took },
            systems: vec![systems],
            hosts: Vec::new(),
        };
        FinishedStart { summary, loads: vec![load] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_of_format_1_is_a_first_attempt() {
        let text = r#"{"number":1,"block":1,"repeat":1,"position":1,"variant":2,"condition":0}"#;
        let start = Start::from(serde_json::from_str::<Trial>(text).expect("a trial"));
        assert_eq!((start.attempt, start.extended, start.only_variant()), (1, false, Some(2)));
    }
}
