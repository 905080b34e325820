//! The interface of another host on which systems of a study run. Only plain data passes in either direction.
//! [`RunningSystem`] is a system that runs there, or on this machine.

use crate::running_variant::Executable;
use plimsoll_database::CounterSeries;
use plimsoll_model::database::{Condition, Database, DatabaseFacts, Endpoint};
use plimsoll_model::event::Event;
use plimsoll_model::host::Version;
use plimsoll_model::sample::Samples;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::SystemSpec;
use plimsoll_study::Place;
use plimsoll_system::{Interrupt, Running, Stopped, SystemError};
use plimsoll_telemetry::LastSamples;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A host that builds, starts, samples and stops systems.
pub trait Host {
    /// Its name in samples and messages.
    fn name(&self) -> &str;

    /// The place of systems there, with their own files in a folder of this name.
    fn place(&self, files: &Path) -> Place;

    /// The facts about it, by its name in samples.
    ///
    /// # Errors
    /// The host is lost.
    fn describe(&self, interrupt: &Interrupt) -> Result<plimsoll_model::host::Host, HostError>;

    /// A port that nobody listens on there.
    ///
    /// # Errors
    /// There is none, or the host is lost.
    fn free_port(&self, interrupt: &Interrupt) -> Result<u16, HostError>;

    /// Ends what an earlier part of the run of this name has left there: processes, and containers of `systems`. Returns the
    /// number of processes, and that of the starts whose containers were removed.
    ///
    /// # Errors
    /// An engine does not answer, or the host is lost.
    fn end_left_over(
        &self,
        run: &str,
        systems: &[SystemSpec],
        interrupt: &Interrupt,
    ) -> Result<(usize, usize), HostError>;

    /// The faults that would keep a system from starting there: programs that are not found, a port in use, an engine that does not
    /// answer, containers without one of the `services` that are measured.
    ///
    /// # Errors
    /// The host is lost.
    fn check(&self, system: &SystemSpec, services: &[String], interrupt: &Interrupt) -> Result<Vec<String>, HostError>;

    /// Runs the build command of a system, if it has one, with its output appended to `log`. Returns its duration.
    ///
    /// # Errors
    /// The command fails, or the host is lost.
    fn build(&self, system: &SystemSpec, log: &Path, interrupt: &Interrupt) -> Result<Duration, HostError>;

    /// The version of the program of a system, if that is known before it runs.
    ///
    /// # Errors
    /// A program cannot be read, or the host is lost.
    fn version(&self, system: &SystemSpec, interrupt: &Interrupt) -> Result<Vec<Version>, HostError>;

    /// The arguments of the command that starts a system that are files, with their hashes.
    ///
    /// # Errors
    /// The host is lost.
    fn arguments(&self, system: &SystemSpec, interrupt: &Interrupt) -> Result<Vec<Version>, HostError>;

    /// Starts a system of a variant, with its output appended to the file `output` of this machine.
    ///
    /// # Errors
    /// It cannot be started, or the host is lost.
    fn start(
        &self,
        system: &SystemSpec,
        variant: usize,
        output: &Path,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn SystemElsewhere>, HostError>;

    /// The faults that would keep a database from starting there: programs that are not found, settings that it would reject.
    ///
    /// # Errors
    /// The host is lost.
    fn check_database(&self, database: &Database, interrupt: &Interrupt) -> Result<Vec<String>, HostError>;

    /// Makes the data of a database of a variant, if that is not there yet, restores it, starts the server, and waits until
    /// it is ready. `outputs` are the files of this machine for the output of the server, and for that of its migration;
    /// `on_data` gets the events of data that is being made, `on_secret` the password of the load's user, before anything can
    /// write it.
    ///
    /// # Errors
    /// It cannot be started, or the host is lost.
    fn start_database(
        &self,
        database: &Database,
        variant: usize,
        outputs: [&Path; 2],
        on_data: &mut dyn FnMut(&Event),
        on_secret: &mut dyn FnMut(&Secret),
        interrupt: &Interrupt,
    ) -> Result<StartedDatabase, HostError>;

    /// Samples the host, and all systems that run there by now, once a second.
    ///
    /// # Errors
    /// The counters there cannot be read, a system does not show its metrics, or the host is lost.
    fn sample(&self, interrupt: &Interrupt) -> Result<Box<dyn SamplerElsewhere>, HostError>;
}

/// A database that has been started on another host.
pub struct StartedDatabase {
    /// The database, which answers questions about itself.
    pub database: Box<dyn DatabaseElsewhere>,
    /// Its server.
    pub server: Box<dyn SystemElsewhere>,
    /// From the start of the server until it was ready.
    pub ready_after: Duration,
}

/// A database that runs on another host.
pub trait DatabaseElsewhere {
    /// Its endpoint for other hosts.
    fn endpoint(&self) -> Endpoint;

    /// The facts about it while it is up.
    ///
    /// # Errors
    /// The server does not answer, or the host is lost.
    fn facts(&self) -> Result<DatabaseFacts, HostError>;

    /// Fails if it takes fewer connections than so many users need.
    ///
    /// # Errors
    /// It does; or the server does not answer, or the host is lost.
    fn check_connections(&self, users: u32) -> Result<(), HostError>;

    /// Starts to sample its counters, once a second.
    ///
    /// # Errors
    /// The server does not answer, or the host is lost.
    fn sample(&self) -> Result<(), HostError>;

    /// Ends that; returns the samples up to the end of the measure phase, which began at `zero`.
    ///
    /// # Errors
    /// The host is lost.
    fn stop_sampling(&self, zero: Instant, window: Duration) -> Result<CounterSeries, HostError>;

    /// Lets the server read what the study asks it after the load.
    ///
    /// # Errors
    /// A query is not understood; or the server does not answer, or the host is lost.
    fn check_expected(&self, interrupt: &Interrupt) -> Result<(), HostError>;

    /// The conditions of its data after the load: those of the workload, which take so long at most, if it has any, and those
    /// of the study.
    ///
    /// # Errors
    /// The server does not answer, or the host is lost.
    fn conditions(&self, of_workload: Option<Duration>, interrupt: &Interrupt) -> Result<Vec<Condition>, HostError>;

    /// The message of its server about the last login that it refused.
    fn refused_login(&self) -> Option<String>;
}

/// A system that runs on another host. Dropping it has it killed.
pub trait SystemElsewhere {
    /// Waits until it is ready; returns the time from its start to then.
    ///
    /// # Errors
    /// It ended, or is not ready in time; or the host is lost.
    fn wait_ready(&mut self, interrupt: &Interrupt) -> Result<Duration, HostError>;

    /// Fails if it has ended by itself, or the host is lost.
    ///
    /// # Errors
    /// What became of it.
    fn check(&self) -> Result<(), HostError>;

    /// The file that its first process ran when it was ready, with its SHA-256 in hexadecimal digits.
    fn executable(&self) -> Option<(PathBuf, Option<String>)>;

    /// The images of its containers, and their engine.
    fn versions_of_containers(&self) -> Vec<Version>;

    /// Stops it; returns when all of its processes are gone.
    ///
    /// # Errors
    /// It had ended by itself before, or the host is lost.
    fn stop(self: Box<Self>) -> Result<Stopped, HostError>;
}

/// Samples another host.
pub trait SamplerElsewhere {
    /// The samples since the last call. Their instants count from `zero`.
    fn take(&self, zero: Instant) -> Samples;

    /// Ends sampling. All instants count from `zero`.
    fn stop(self: Box<Self>, zero: Instant) -> LastSamples;
}

/// The reason why another host did not do what it was asked to, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// It could not be done there.
    #[error("{0}")]
    Failed(String),
    /// The host can do nothing any more: the run ends, and resumes with another one.
    #[error("{0}")]
    Lost(String),
}

impl From<SystemError> for HostError {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => HostError::Interrupted,
            error => HostError::Failed(error.to_string()),
        }
    }
}

/// A running system of a variant. Dropping it kills it.
pub(crate) struct RunningSystem {
    name: String,
    is_container: bool,
    runs: Runs,
}

enum Runs {
    Here(Box<Running>),
    Elsewhere(Box<dyn SystemElsewhere>),
}

impl RunningSystem {
    /// A system on another host, by its name in the study.
    pub(crate) fn elsewhere(name: &str, is_container: bool, system: Box<dyn SystemElsewhere>) -> RunningSystem {
        RunningSystem { name: name.to_owned(), is_container, runs: Runs::Elsewhere(system) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// False for containers whose processes this machine does not see: their use cannot be told from that of others.
    pub(crate) fn is_seen(&self) -> bool {
        match &self.runs {
            Runs::Here(running) => running.services().iter().all(|service| !service.is_elsewhere),
            Runs::Elsewhere(_) => true,
        }
    }

    pub(crate) fn is_container(&self) -> bool {
        self.is_container
    }

    /// The system, if it runs on this machine.
    pub(crate) fn here(&self) -> Option<&Running> {
        match &self.runs {
            Runs::Here(running) => Some(running),
            Runs::Elsewhere(_) => None,
        }
    }

    pub(crate) fn wait_ready(&mut self, interrupt: &Interrupt) -> Result<Duration, HostError> {
        match &mut self.runs {
            Runs::Here(running) => Ok(running.wait_ready(interrupt)?),
            Runs::Elsewhere(system) => system.wait_ready(interrupt),
        }
    }

    /// Fails if it has ended by itself.
    pub(crate) fn check(&self) -> Result<(), HostError> {
        match &self.runs {
            Runs::Here(running) => Ok(running.check()?),
            Runs::Elsewhere(system) => system.check(),
        }
    }

    /// The file that its first process runs; `version` is what it says of itself, where that is known.
    pub(crate) fn executable(&self, version: Option<String>) -> Option<Executable> {
        let system = self.name().to_owned();
        match &self.runs {
            Runs::Here(running) => Some(Executable { system, file: running.executable()?, sha256: None, version }),
            Runs::Elsewhere(elsewhere) => {
                let (file, sha256) = elsewhere.executable()?;
                Some(Executable { system, file, sha256, version })
            }
        }
    }

    pub(crate) fn versions_of_containers(&self) -> Vec<Version> {
        match &self.runs {
            Runs::Here(running) => running.versions_of_containers(),
            Runs::Elsewhere(system) => system.versions_of_containers(),
        }
    }

    pub(crate) fn stop(self) -> Result<Stopped, HostError> {
        match self.runs {
            Runs::Here(running) => Ok(running.stop()?),
            Runs::Elsewhere(system) => system.stop(),
        }
    }
}

impl From<Running> for RunningSystem {
    fn from(running: Running) -> Self {
        let (name, is_container) = (running.name().to_owned(), running.spec().containers.is_some());
        RunningSystem { name, is_container, runs: Runs::Here(Box::new(running)) }
    }
}
