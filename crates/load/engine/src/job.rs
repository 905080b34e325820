//! The job of a generator and its result.

use crate::clock::{Clock, nanos};
use crate::recorder::Findings;
use crate::schedule::Share;
use crate::sequence::SequenceRecorder;
use plimsoll_model::database::SqlFacts;
use plimsoll_model::load::{LoadProfile, Stop};
use plimsoll_model::record::{ErrorKind, SequenceCheck};
use plimsoll_model::script::ScriptFacts;
use plimsoll_model::storage::StorageFacts;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::Steps;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A load to offer, and how.
pub struct Job<'a> {
    /// The profile.
    pub load: &'a LoadProfile,
    /// Threads and their processors.
    pub generator: &'a GeneratorSpec,
    /// Seed of arrivals and think times.
    pub seed: u64,
    /// The share of users and arrivals that this generator carries; its threads divide it.
    pub share: Share,
    /// Set from outside to break off.
    pub interrupted: &'a AtomicBool,
    /// Hears where a storage workload keeps its objects, before it has any: should nobody be left
    /// to remove them, it is known where they are.
    pub on_place: &'a dyn Fn(&str),
    /// The file for the first of what scripts write to their console; without one nothing is kept.
    pub console: Option<PathBuf>,
}

/// The result of a run, beside its intervals.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The start of the measure phase on the system's monotonic clock.
    pub zero: std::time::Instant,
    /// Length of the measure phase as it was.
    pub window: Nanos,
    /// Results of the checks over all replies, by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// The first text that came with each kind of error, by subject.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What kept the generator from doing its work: such a trial is void.
    pub faults: Vec<String>,
    /// Users that broke a limit of their script, and were stopped for good: such a trial has failed.
    pub broken: Vec<String>,
    /// What whoever reads the results should know.
    pub warnings: Vec<String>,
    /// Why users stopped before the load was over, if they did: a feed had no more rows.
    pub stopped: Option<String>,
    /// True if it was broken off from outside.
    pub interrupted: bool,
    /// What is known of the back end, where the workload is storage.
    pub storage: Option<StorageFacts>,
    /// What users did, where the workload is SQL.
    pub sql: Option<SqlFacts>,
    /// What is known of the script, where the workload is one.
    pub script: Option<ScriptFacts>,
}

impl Job<'_> {
    /// The users of this generator's share that can be at work at once.
    #[must_use]
    pub fn users(&self) -> u64 {
        self.share.of_first(u64::from(self.load.most_users()))
    }
}

impl RunRecord {
    /// Makes the record of a run from what its threads found.
    #[must_use]
    pub fn new(findings: Vec<Findings>, steps: &Steps, job: &Job<'_>, clock: Clock) -> RunRecord {
        let limit = nanos(job.load.stop.limit());
        let last_done = findings.iter().filter_map(|found| found.last_done).max();
        let all_stopped = findings.iter().all(|found| found.all_stopped);
        let window = match job.load.stop {
            Stop::After(_) if !all_stopped => limit,
            // The phase ends with the last iteration, unless time ran out first.
            _ => last_done.map_or(limit, |at| at.0.clamp(1, limit)),
        };
        let mut examples: BTreeMap<String, BTreeMap<ErrorKind, String>> = BTreeMap::new();
        for (subject, kinds) in findings.iter().flat_map(|found| &found.examples) {
            let known = examples.entry(subject.clone()).or_default();
            kinds.iter().for_each(|(kind, text)| {
                known.entry(*kind).or_insert_with(|| text.clone());
            });
        }
        let interrupted = job.interrupted.load(Ordering::Relaxed);
        // Threads may have found the same.
        let warnings: BTreeSet<&String> = findings.iter().flat_map(|found| &found.warnings).collect();
        let warnings = warnings.into_iter().cloned().collect();
        RunRecord {
            zero: clock.zero(),
            window: Nanos(window.unsigned_abs()),
            sequences: sequences(&findings, steps),
            error_examples: examples,
            faults: findings.into_iter().flat_map(|found| found.faults).collect(),
            broken: Vec::new(),
            warnings,
            stopped: None,
            interrupted,
            storage: None,
            sql: None,
            script: None,
        }
    }
}

/// Why a run broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The machine allows fewer open files than the connections that the load needs.
    #[error(
        "the load needs {needed} open files, but the limit is {limit}; raise it (`ulimit -n {needed}`) or use fewer users"
    )]
    TooFewDescriptors {
        /// Descriptors needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// A processor that the generator is to run on is not there.
    #[error("failed to bind a generator thread to processor {processor}: {error}")]
    Pinning {
        /// The processor.
        processor: usize,
        /// What the kernel said.
        error: String,
    },
    /// The kernel refused what the loop needs.
    #[error("the generator's loop broke off: {0}")]
    Loop(String),
    /// Users could not get ready for the load.
    #[error("{0}")]
    Users(String),
}

fn sequences(findings: &[Findings], steps: &Steps) -> BTreeMap<String, SequenceCheck> {
    let Steps::Grpc { calls, .. } = steps else { return BTreeMap::new() };
    let checked = calls.iter().enumerate().filter(|(_, call)| call.sequence.is_some());
    checked
        .map(|(step, call)| {
            let mut whole = SequenceRecorder::default();
            findings.iter().for_each(|found| whole.merge(&found.sequences[step]));
            (call.name.clone(), whole.check())
        })
        .collect()
}
