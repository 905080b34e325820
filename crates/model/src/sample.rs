//! What telemetry sees once a second: the system's processes and the host.

use serde::{Deserialize, Serialize};

/// All processes of one system together, over one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Seconds from the start of the measure phase, at the end of the sampled span; negative in
    /// warm-up.
    pub at: f64,
    /// Name of the system.
    pub system: String,
    /// Processes.
    pub processes: u64,
    /// CPU used over the span, in cores.
    pub cpu_cores: f64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// Read from storage over the span, in bytes.
    pub read_bytes: u64,
    /// Written to storage over the span, in bytes.
    pub written_bytes: u64,
    /// Voluntary and involuntary context switches over the span.
    pub context_switches: u64,
}

/// The whole machine, over one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Seconds from the start of the measure phase, at the end of the sampled span.
    pub at: f64,
    /// CPU used by anything, in cores.
    pub cpu_cores: f64,
    /// CPU that the hypervisor took away, in cores.
    pub steal_cores: f64,
    /// Time waiting for storage, in cores.
    pub iowait_cores: f64,
    /// Memory that is free for use, in bytes.
    pub memory_available: u64,
    /// Runnable tasks.
    pub runnable: u64,
    /// Context switches over the span.
    pub context_switches: u64,
    /// Mean clock frequency of the processors at the end of the span, in megahertz; none where it
    /// cannot be read.
    #[serde(default)]
    pub frequency_mhz: Option<f64>,
}
