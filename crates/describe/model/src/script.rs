//! Scripts as a workload: users that run a program of the study's own.

use crate::storage::Secret;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What the users of a trial run, with every placeholder filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// The file that is loaded first. Its imports lie in its project or in [`Script::files`].
    pub entry: PathBuf,
    /// The exported function that runs once an iteration: `default`, or another one.
    pub exec: String,
    /// The environment variables that the script sees; it sees no others.
    pub env: BTreeMap<String, String>,
    /// Folders besides its own from which the script may read.
    pub files: Vec<PathBuf>,
    /// Limits on the memory and time of one user.
    pub limits: ScriptLimits,
    /// The tags of every sample.
    pub tags: BTreeMap<String, String>,
    /// Hosts besides the loopback that the script may reach.
    pub allowed: Vec<String>,
    /// The names of the study's systems by address. Requests to a system are named after it.
    pub systems: BTreeMap<SocketAddr, String>,
    /// The files of the program, with their SHA-256. Two bundles ran the same program if these are equal. Empty until
    /// the files were read.
    pub sources: Vec<(PathBuf, String)>,
    /// The load that its own options describe, where no study says what the load is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_load: Option<OwnLoad>,
}

/// The load that a script's own options describe: scenarios, as in a run without a study.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnLoad {
    /// The options with all defaults, as JSON.
    pub options: String,
    /// The path of the script on the machine where the run was begun.
    pub entry: PathBuf,
    /// The folder in which the run was begun: texts name files relative to it.
    pub folder: PathBuf,
    /// Threads, as many on each generator: a user stays on its thread from one scenario to the next.
    pub threads: usize,
    /// The parts of metrics that have a threshold: `http_req_duration{name:login}`.
    pub submetrics: Vec<String>,
    /// True if samples are also kept by scenario and group.
    pub by_group: bool,
    /// True if lines of the console for debugging are wanted too.
    pub verbose: bool,
    /// The secrets that the script may read, by source and name.
    pub secrets: BTreeMap<String, BTreeMap<String, Secret>>,
}

/// What a trial found out about its script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFacts {
    /// The names of its own metrics that hold times, in milliseconds.
    pub times: BTreeSet<String>,
    /// The number of lines that it wrote to its console.
    pub console: u64,
    /// The number of those lines that were not kept.
    pub left_out: u64,
    /// The results of a load that the script's own options describe, one for each generator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_load: Vec<Packed>,
}

/// A value that only the code for scripts reads, as that writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed(#[serde(with = "serde_bytes")] pub Vec<u8>);

/// Limits of one user of a script. A user that exceeds one is stopped for the rest of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// Bytes of the engine's memory.
    pub memory: u64,
    /// Bytes of stack.
    pub stack: u64,
    /// How long it may run without waiting for anything.
    pub busy: Duration,
    /// How long an iteration may take in all; unlimited when there is none.
    pub iteration: Option<Duration>,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits { memory: 64 << 20, stack: 1 << 20, busy: Duration::from_secs(1), iteration: None }
    }
}
