//! A finished trial, as it stands in a bundle and as analysis reads it.

use crate::record::{ErrorKind, SequenceCheck, Subject, Tally};
use crate::sample::{HostSample, ProcessSample};
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
    /// Whether load was open: response times exist then.
    pub open_load: bool,
    /// The check over all replies, where the study asks for one: by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// An example of the text that came with each kind of error, by request name.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
}

/// Everything that a trial left behind.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// The short facts.
    pub summary: TrialSummary,
    /// What the measure phase scheduled, by subject: all its seconds and its drain merged.
    pub tallies: BTreeMap<Subject, Tally>,
    /// The load second by second, warm-up and drain included, in order of time.
    pub seconds: Vec<LoadSecond>,
    /// How the generator did, second by second.
    pub generator: Vec<GeneratorRow>,
    /// The system's processes, second by second and system by system.
    pub processes: Vec<ProcessSample>,
    /// The host, second by second.
    pub host: Vec<HostSample>,
}

/// What ended in one second for one subject, whatever phase scheduled it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// The second, from the start of the measure phase.
    pub second: i64,
    /// The subject, as [`Subject`] prints it.
    pub subject: String,
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
