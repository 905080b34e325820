//! The system under test: the processes that a trial starts, with every placeholder filled in.

use crate::exposed::ExposedMetrics;
use crate::units::Processors;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// One process (with its children) that is started for a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemSpec {
    /// Name in the study.
    pub name: String,
    /// The label of the agent on whose host it runs; none where it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Folder in which its commands run.
    pub dir: PathBuf,
    /// Run once before the first trial that needs it.
    pub build: Option<CommandLine>,
    /// Starts it; must stay in the foreground.
    pub start: CommandLine,
    /// The containers that this command asks an engine for; none where what it starts are its own children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers: Option<Containers>,
    /// The variables of Plimsoll's own environment that it gets; all when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<Vec<String>>,
    /// Environment added to that.
    pub env: BTreeMap<String, String>,
    /// When it counts as ready.
    pub ready: Ready,
    /// How it is stopped.
    pub stop: StopPolicy,
    /// Processors it may use; all when there is none.
    pub cpus: Option<Processors>,
    /// Prints its version; run once per distinct command.
    pub version: Option<CommandLine>,
    /// The port it listens on, if the study uses one.
    pub port: Option<u16>,
    /// The waits that its output tells of, by the name in the study: the regular expression of the lines that do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, String>,
    /// The metrics that it exposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<ExposedMetrics>,
    /// Files that are written before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<WrittenFiles>,
}

/// Containers as a system: an engine starts them, so that they are not children of the command that asks for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containers {
    /// The program that talks to the engine: `docker` or `podman`.
    pub engine: String,
    /// The Compose file or the image that they are made of.
    pub origin: ContainersOf,
}

/// The origin of containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainersOf {
    /// A Compose file, with all of its services.
    Compose(PathBuf),
    /// An image: one container.
    Image(String),
}

/// Files that a study writes for a system, such as the configuration of a proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenFiles {
    /// The folder of its own that they are written into.
    pub folder: PathBuf,
    /// Their names, and what they say.
    pub texts: BTreeMap<String, String>,
}

/// A program and its arguments. No shell is involved: `sh -c '…'` asks for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandLine(pub Vec<String>);

impl CommandLine {
    /// The program, as the study wrote it: a name looked up in `PATH`, or a path relative to the
    /// system's folder.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.0[0]
    }

    /// The arguments.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.0[1..]
    }
}

impl std::fmt::Display for CommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// When a started system counts as ready for load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// What is looked at.
    pub probe: Probe,
    /// How long it may take.
    pub within: Duration,
}

/// What tells that a system is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// A TCP connection to `host:port` is accepted.
    Tcp(String),
    /// A GET of this `http://` URL gives a status below 400.
    Http(String),
    /// Its output has a line with this text.
    Log(String),
    /// This command ends with exit code 0.
    Command(CommandLine),
    /// It is ready as soon as it runs.
    Started,
}

/// How a system is stopped: the signal, then after `grace` the kill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopPolicy {
    /// Sent to the whole process group.
    pub signal: StopSignal,
    /// How long it may take to end by itself.
    pub grace: Duration,
}

/// The signal that asks a system to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGKILL: no chance to end in order.
    Kill,
}
