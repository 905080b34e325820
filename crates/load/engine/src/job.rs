//! Jobs that threads of this process run, and the records of their results.

use crate::clock::{Clock, nanos};
use crate::recorder::Findings;
use crate::sequence::SequenceRecorder;
use plimsoll_model::job::{Job, JobRecord, Report, WorkFacts};
use plimsoll_model::load::Stop;
use plimsoll_model::record::{ErrorKind, SequenceCheck};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Steps;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// Jobs that come one after the other, and what listens to them.
pub trait Jobs {
    /// Waits for the next job; none if there is no more.
    fn next(&mut self) -> Option<Job>;

    /// A report of the job that runs.
    fn report(&mut self, report: Report);

    /// The job that ran has ended.
    fn ended(&mut self, record: JobRecord);
}

/// A job that this process runs.
#[derive(Clone, Copy)]
pub struct LocalJob<'a> {
    /// The job.
    pub job: &'a Job,
    /// The caller sets this to stop the job.
    pub interrupted: &'a AtomicBool,
}

impl LocalJob<'_> {
    /// True once the job must stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Makes the record of the job from the findings of its threads.
    #[must_use]
    pub fn record(&self, findings: Vec<Findings>, steps: &Steps, clock: Clock) -> JobRecord {
        let stop = self.job.load.stop;
        let limit = nanos(stop.limit());
        let last_done = findings.iter().filter_map(|found| found.last_done).max();
        let all_stopped = findings.iter().all(|found| found.all_stopped);
        let window = match stop {
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
        // Several threads may have the same warning.
        let warnings: BTreeSet<&String> = findings.iter().flat_map(|found| &found.warnings).collect();
        let warnings = warnings.into_iter().cloned().collect();
        JobRecord {
            zero: clock.unix(Instant(0)),
            window: Nanos(window.unsigned_abs()),
            sequences: sequences(&findings, steps),
            error_examples: examples,
            faults: findings.into_iter().flat_map(|found| found.faults).collect(),
            broken: Vec::new(),
            warnings,
            stopped: None,
            interrupted: self.is_interrupted(),
            facts: WorkFacts::None,
        }
    }
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
