//! The machine that a study ran on, and the programs that it ran.

use serde::{Deserialize, Serialize};

/// The name of the machine that Plimsoll itself runs on.
pub const LOCAL: &str = "local";

/// Returns [`LOCAL`]: the default for records that were written before machines had names.
pub(crate) fn local() -> String {
    LOCAL.to_owned()
}

/// True if this is the name of the machine that Plimsoll itself runs on; records that were made without one have none.
#[must_use]
pub fn is_local(machine: &str) -> bool {
    machine.is_empty() || machine == LOCAL
}

/// The share of all processors that others may use. Above it a machine has no room for a study: loads do not count.
pub const CROWDED: f64 = 0.25;

/// The use of the processors by everything but Plimsoll and its systems, in cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherProcesses {
    /// CPU.
    pub cpu_cores: f64,
    /// CPU that the hypervisor took away.
    pub steal_cores: f64,
    /// The processors of the machine.
    pub processors: usize,
    /// The processes that used the most, the first one most of all; only those of at least a hundredth of a core.
    pub busiest: Vec<BusyProcess>,
}

impl OtherProcesses {
    /// The share of all processors that others used, or that the hypervisor took away: 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        (self.cpu_cores + self.steal_cores) / self.processors.max(1) as f64
    }
}

/// A process that uses a processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyProcess {
    /// Its id.
    pub pid: i32,
    /// Its name, as the kernel has it: 15 characters at most.
    pub name: String,
    /// CPU that it used, in cores.
    pub cores: f64,
}

/// The machine as it was before the first start. `None` means that a value could not be read; nothing is guessed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name in the run; not serialised if it is [`LOCAL`].
    #[serde(default = "local", skip_serializing_if = "is_local")]
    pub machine: String,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Processors that Plimsoll may use.
    pub processors: usize,
    /// Memory in all, in bytes.
    pub memory: Option<u64>,
    /// Kernel name, release and architecture.
    pub kernel: Option<String>,
    /// Distribution.
    pub distribution: Option<String>,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Limit on CPU by a control group, in cores.
    pub cpu_limit: Option<f64>,
    /// Limit on memory by a control group, in bytes.
    pub memory_limit: Option<u64>,
    /// Hypervisor or container, if one shows.
    pub virtualization: Option<String>,
    /// Load averages over 1, 5 and 15 minutes before the start.
    pub load_before: Option<[f64; 3]>,
}

/// The name under which [`Version`] lists the files that users work with: scripts, feeds, bodies. No system can have
/// this name.
pub const WORKLOAD: &str = "the workload";

/// The version of something that was run: a program of the study, a file of its workload, or Plimsoll itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// Name of the system, `plimsoll`, or [`WORKLOAD`].
    pub name: String,
    /// The program as the study names it. Where that is a wrapper that runs another program, the full path of that
    /// other program's file.
    pub program: String,
    /// The full path of the program's file, where `program` is another text: a name that was found by search, or a path
    /// in the folder of the study. None where nothing had to be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What the version command printed, if the study has one.
    pub version: Option<String>,
    /// SHA-256 of the program's file, in hexadecimal.
    pub sha256: Option<String>,
}
