//! A finished trial, as it stands in a bundle and as analysis reads it.

use crate::database::DatabaseFacts;
use crate::record::{ErrorKind, SequenceCheck, Subject, Tally};
use crate::sample::{DatabaseSample, HostSample, ProcessSample};
use crate::script::ScriptFacts;
use crate::storage::StorageFacts;
use crate::trial::{Trial, Validity};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The short facts of a finished trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSummary {
    /// Which trial.
    pub trial: Trial,
    /// Whether it counts.
    pub validity: Validity,
    /// What a reader should know though the trial counts.
    pub warnings: Vec<String>,
    /// When it began, in milliseconds since 1970, UTC.
    pub started_unix_ms: i64,
    /// From the start of its setup to the end of its teardown.
    pub took: Nanos,
    /// From the start of the system to its readiness.
    pub ready_after: Nanos,
    /// Length of the measure phase as it was.
    pub window: Nanos,
    /// From where on the measure phase is steady, counted from its start; none where it never is,
    /// and where that was not judged.
    #[serde(default)]
    pub steady_from: Option<Nanos>,
    /// Whether the trial is void for want of a steady state and of nothing else: a longer warm-up
    /// may help.
    #[serde(default)]
    pub unsteady: bool,
    /// Why it was not judged whether the measure phase is steady; none where it was, and where load
    /// is meant to change.
    #[serde(default)]
    pub unjudged: Option<String>,
    /// How near the generator came to its limits.
    #[serde(default)]
    pub headroom: Headroom,
    /// Whether load was open: response times exist then.
    pub open_load: bool,
    /// The check over all replies, where the study asks for one: by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// An example of the text that came with each kind of error, by request name.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What is known of the back end, where the workload was storage.
    #[serde(default)]
    pub storage: Option<StorageFacts>,
    /// What is known of the databases that were started or used.
    #[serde(default)]
    pub databases: Vec<DatabaseFacts>,
    /// What is known of the script, where the workload was one.
    #[serde(default)]
    pub script: Option<ScriptFacts>,
}

/// How near the generator came to its limits over a measure phase: what it is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// Mean CPU of its busiest thread, in cores.
    pub busiest: f64,
    /// How much later than due work was started though a user was free: 99th percentile.
    pub lateness: Nanos,
}

/// Everything that a trial left behind.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// The short facts.
    pub summary: TrialSummary,
    /// The first second of the measure phase that counts. The seconds before it are left out of
    /// all trials of the condition, because one of them was not steady yet.
    pub cut: i64,
    /// What the measure phase scheduled and what ended from `cut` on, by subject: all those
    /// seconds and the drain merged.
    pub tallies: BTreeMap<Subject, Tally>,
    /// The load second by second, warm-up and drain included, in order of time.
    pub seconds: Vec<LoadSecond>,
    /// How the generator did, second by second.
    pub generator: Vec<GeneratorRow>,
    /// The system's processes, second by second and system by system.
    pub processes: Vec<ProcessSample>,
    /// The host, second by second.
    pub host: Vec<HostSample>,
    /// What databases counted, second by second.
    pub databases: Vec<DatabaseSample>,
}

impl TrialResult {
    /// The length of what counts of the measure phase, from the cut on, in seconds.
    #[must_use]
    pub fn counted_seconds(&self) -> f64 {
        (self.summary.window.seconds() - self.cut as f64).max(0.0)
    }

    /// Whether a second lies in what counts of the measure phase.
    #[must_use]
    pub fn counts_second(&self, second: i64) -> bool {
        second >= self.cut && (second as f64) < self.summary.window.seconds()
    }
}

/// What ended in one second for one subject, whatever phase scheduled it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// What it is about.
    pub subject: Subject,
    /// How many ended.
    pub count: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Mean service time in nanoseconds.
    pub mean: f64,
    /// Median service time in nanoseconds.
    pub p50: u64,
    /// 95th percentile of the service time in nanoseconds.
    pub p95: u64,
    /// 99th percentile of the service time in nanoseconds.
    pub p99: u64,
    /// Longest service time in nanoseconds.
    pub max: u64,
    /// 95th percentile of the response time in nanoseconds; 0 in closed load.
    pub response_p95: u64,
}

impl LoadSecond {
    /// A second in which nothing of this subject ended.
    #[must_use]
    pub fn empty(second: i64, subject: Subject) -> LoadSecond {
        LoadSecond {
            second,
            subject,
            count: 0,
            failed: 0,
            bytes_out: 0,
            bytes_in: 0,
            mean: 0.0,
            p50: 0,
            p95: 0,
            p99: 0,
            max: 0,
            response_p95: 0,
        }
    }
}

/// How the generator did in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorRow {
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// CPU of all its threads, in cores.
    pub cpu_cores: f64,
    /// CPU of its busiest thread, in cores.
    pub cpu_busiest: f64,
    /// Users at work.
    pub users: u64,
    /// Exchanges under way.
    pub in_flight: u64,
    /// Arrivals due and not started.
    pub backlog: u64,
    /// How much later than due work was started though a user was free: 99th percentile, in
    /// nanoseconds.
    pub lateness_p99: u64,
    /// The same, longest.
    pub lateness_max: u64,
    /// The longest time in which the loop did not look for new events, in nanoseconds.
    pub stall: u64,
}

/// The first second that counts in each condition: one cut for all of its trials, where the last
/// of them became steady. Trials that do not count have no say.
#[must_use]
pub fn common_cuts<'a>(summaries: impl IntoIterator<Item = &'a TrialSummary>) -> BTreeMap<usize, i64> {
    let mut cuts = BTreeMap::new();
    for summary in summaries.into_iter().filter(|summary| summary.validity.counts()) {
        let steady = summary.steady_from.map_or(0, |from| from.0.div_ceil(1_000_000_000) as i64);
        let cut: &mut i64 = cuts.entry(summary.trial.condition).or_default();
        *cut = steady.max(*cut);
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(condition: usize, steady_from: Option<u64>, validity: Validity) -> TrialSummary {
        TrialSummary {
            trial: Trial {
                number: 1,
                block: 1,
                repeat: 1,
                attempt: 1,
                extended: false,
                position: 1,
                variant: 0,
                condition,
            },
            validity,
            warnings: Vec::new(),
            started_unix_ms: 0,
            took: Nanos(0),
            ready_after: Nanos(0),
            window: Nanos(10_000_000_000),
            steady_from: steady_from.map(|milliseconds| Nanos(milliseconds * 1_000_000)),
            unsteady: false,
            unjudged: None,
            headroom: Headroom::default(),
            open_load: false,
            sequences: BTreeMap::new(),
            error_examples: BTreeMap::new(),
            storage: None,
            databases: Vec::new(),
            script: None,
        }
    }

    #[test]
    fn a_condition_is_cut_where_the_last_of_its_trials_that_count_became_steady() {
        let void = Validity::Void(vec!["no steady state".to_owned()]);
        let summaries = [
            summary(0, Some(0), Validity::Valid),
            summary(0, Some(1200), Validity::Valid),
            summary(0, Some(4000), void),
            summary(1, Some(3000), Validity::Valid),
            summary(2, None, Validity::Valid),
        ];
        assert_eq!(common_cuts(&summaries), BTreeMap::from([(0, 2), (1, 3), (2, 0)]));
    }
}
