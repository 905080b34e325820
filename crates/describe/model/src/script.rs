//! Scripts as a workload: users that run a program of the study's own.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// What the users of a trial run, with every placeholder filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// The file that is loaded first; what it imports lies in its folder or in [`Script::files`].
    pub entry: PathBuf,
    /// The function that is an iteration: `default`, or another that the script exports.
    pub exec: String,
    /// What the script sees as its environment, and nothing besides.
    pub env: BTreeMap<String, String>,
    /// Folders besides its own from which the script may read.
    pub files: Vec<PathBuf>,
    /// What a user may use up.
    pub limits: ScriptLimits,
    /// What each sample is tagged with.
    pub tags: BTreeMap<String, String>,
    /// Hosts besides the loopback that the script may reach.
    pub allowed: Vec<String>,
    /// The ports of the study's systems, and their names: requests to them are named by these.
    pub systems: BTreeMap<u16, String>,
    /// The files of the program, with their SHA-256: two bundles are of one program where these
    /// are equal. Empty until they were read.
    pub sources: Vec<(PathBuf, String)>,
}

/// What is known of a script after a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFacts {
    /// Its own metrics that hold times, in milliseconds.
    pub times: BTreeSet<String>,
    /// Lines that it wrote to its console.
    pub console: u64,
    /// Those of them that were not kept.
    pub left_out: u64,
}

/// What one user of a script may use up, before it is stopped for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// Bytes of the engine's memory.
    pub memory: u64,
    /// Bytes of stack.
    pub stack: u64,
    /// How long it may run without waiting for anything.
    pub busy: Duration,
    /// How long an iteration may take in all; none for as long as it takes.
    pub iteration: Option<Duration>,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits { memory: 64 << 20, stack: 1 << 20, busy: Duration::from_secs(1), iteration: None }
    }
}
