//! The running systems of a variant on a start: how they are started, asked, and stopped.

use crate::databases::{self, RunningDatabase};
use crate::generator::PreparedWorkload;
use crate::host::{HostError, RunningSystem};
use crate::run::{Context, EventSink};
use crate::sampled;
use crate::start::Fault;
use crate::written_files::FilesOfSystem;
use plimsoll_database::Databases;
use plimsoll_model::database::{DatabaseFacts, Origin};
use plimsoll_model::result::VariantSystems;
use plimsoll_model::start::Start;
use plimsoll_model::units::Processors;
use plimsoll_study::{Bindings, PortChoice, TrialSpec};
use plimsoll_system::{Stopped, free_port};
use plimsoll_telemetry::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that the first process of a system ran.
pub(crate) struct Executable {
    /// The system's name.
    pub(crate) system: String,
    pub(crate) file: PathBuf,
    /// The SHA-256 of a file on another host, in hexadecimal digits.
    pub(crate) sha256: Option<String>,
    /// Its version as it reports it, if it was asked.
    pub(crate) version: Option<String>,
}

/// The running systems of a variant. Its fields are dropped in this order: users that stay end before the servers, and
/// servers before the data and the files are removed that they serve.
pub(crate) struct RunningVariant {
    pub(crate) variant: usize,
    pub(crate) spec: TrialSpec,
    /// The workload, compiled for the systems; none before the first load.
    pub(crate) prepared: Option<Box<dyn PreparedWorkload>>,
    pub(crate) systems: Vec<RunningSystem>,
    pub(crate) databases: Vec<RunningDatabase>,
    /// The files of the systems' own.
    files: Vec<FilesOfSystem>,
    pub(crate) ready_after: Duration,
    /// Facts about the databases.
    pub(crate) facts: Vec<DatabaseFacts>,
    /// The largest number in the replies to each request that is checked for a sequence.
    pub(crate) largest: BTreeMap<String, u64>,
}

/// The names of the files for the output of systems.
pub(crate) struct OutputNames<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) start: u32,
    /// The variant, if several are alive on the start.
    pub(crate) variant: Option<usize>,
}

impl OutputNames<'_> {
    fn path(&self, system: &str) -> PathBuf {
        match self.variant {
            None => self.context.folder.output(self.start, system),
            Some(variant) => self.context.folder.output(self.start, &format!("{variant}-{system}")),
        }
    }
}

impl RunningVariant {
    /// True if one of its systems has ended.
    pub(crate) fn has_lost_a_system(&self) -> bool {
        self.systems.iter().any(|system| system.check().is_err())
    }

    /// Starts the databases, then the systems, each when the one before it is ready.
    pub(crate) fn start(
        context: &Context<'_>,
        databases: &mut Databases,
        variant: usize,
        spec: TrialSpec,
        outputs: &OutputNames<'_>,
        tell: &mut EventSink<'_>,
    ) -> Result<RunningVariant, Fault> {
        let mut running = RunningVariant {
            variant,
            spec,
            systems: Vec::new(),
            databases: Vec::new(),
            files: Vec::new(),
            ready_after: Duration::ZERO,
            facts: Vec::new(),
            prepared: None,
            largest: BTreeMap::new(),
        };
        for database in &running.spec.databases {
            // No system has a dot in its name.
            let (output, migration) =
                (outputs.path(&database.name), outputs.path(&format!("{}.migrate", database.name)));
            let (running_database, server, ready_after) =
                databases::start(context, databases, database, variant, [&output, &migration], tell)?;
            running.databases.push(running_database);
            running.systems.extend(server);
            running.ready_after += ready_after;
        }
        for system in &running.spec.systems {
            let output = outputs.path(&system.name);
            let mut started = match &system.on {
                Some(label) => {
                    let host = context.host(label)?;
                    let started = host.start(system, variant, &output, context.interrupted)?;
                    RunningSystem::elsewhere(&system.name, system.containers.is_some(), started)
                }
                None => {
                    if let Some(files) = &system.files {
                        running.files.push(FilesOfSystem::write(&system.name, files).map_err(Fault::Failed)?);
                    }
                    context.launcher.start(system, &output)?.into()
                }
            };
            let ready = started.wait_ready(context.interrupted);
            running.ready_after += ready.map_err(|error| running.with_refused_login(&system.name, error.into()))?;
            running.systems.push(started);
        }
        Ok(running)
    }

    /// Puts before a failure of a system to start that a database refused a login, if one did.
    fn with_refused_login(&self, system: &str, fault: Fault) -> Fault {
        let Fault::Failed(reason) = fault else { return fault };
        let refused = self.databases.iter().find_map(|database| {
            let server = self.systems.iter().find(|server| server.name() == database.name())?;
            Some((database.name(), database.refused_login(server)?))
        });
        Fault::Failed(match refused {
            Some((database, refusal)) => {
                format!("`{system}` did not start, and the database `{database}` refused a login: {refusal}\n{reason}")
            }
            None => reason,
        })
    }

    /// The processes of this machine that telemetry samples.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        self.systems.iter().filter_map(|system| Some(sampled::target(system.here()?, self.variant)))
    }

    /// The files that the first processes of systems run.
    pub(crate) fn executables(&self) -> Vec<Executable> {
        let known = |name: &str| self.facts.iter().find(|facts| facts.name == name);
        let version = |system: &RunningSystem| known(system.name()).map(|facts| facts.version.clone());
        self.systems.iter().filter_map(|system| system.executable(version(system))).collect()
    }

    /// Its systems, each with the processors that it may use; none if it may use all, or is not started by this run.
    fn bindings(&self) -> impl Iterator<Item = (&str, Option<&Processors>)> {
        let of_databases = self.spec.databases.iter().map(|database| match &database.origin {
            Origin::Started(server) => (database.name.as_str(), server.cpus.as_ref()),
            Origin::External(_) => (database.name.as_str(), None),
        });
        of_databases.chain(self.spec.systems.iter().map(|system| (system.name.as_str(), system.cpus.as_ref())))
    }

    /// The processors that its systems may use; none if one may use all of them, or is not started by this run.
    fn processors(&self) -> Option<Processors> {
        let all: Option<Vec<&Processors>> = self.bindings().map(|(_, bound)| bound).collect();
        let used: BTreeSet<usize> = all?.into_iter().flat_map(|one| one.0.iter().copied()).collect();
        (!used.is_empty()).then(|| Processors(used.into_iter().collect()))
    }

    /// Stops the systems in the opposite order.
    pub(crate) fn stop(self) -> StoppedVariant {
        let processors = self.processors();
        let bound_to = self.bindings().filter_map(|(name, bound)| Some((name.to_owned(), bound?.clone()))).collect();
        // A server may wait for its clients to leave.
        drop(self.prepared);
        let (mut stopped, mut slow) = (Ok(()), Vec::new());
        for system in self.systems.into_iter().rev() {
            let (name, is_container) = (system.name().to_owned(), system.is_container());
            match system.stop() {
                Ok(after) => slow.extend(slow_to_stop(&name, is_container, &after)),
                Err(error) => stopped = stopped.and(Err(error)),
            }
        }
        // The servers have ended, so their data may be removed.
        drop(self.databases);
        let ready_after = self.ready_after.into();
        StoppedVariant {
            summary: VariantSystems { variant: self.variant, ready_after, processors, bound_to, databases: self.facts },
            stopped,
            slow,
        }
    }
}

/// A variant whose systems have ended.
pub(crate) struct StoppedVariant {
    pub(crate) summary: VariantSystems,
    /// The error names the first system that had died by itself.
    pub(crate) stopped: Result<(), HostError>,
    /// A sentence for each system that took long to stop.
    pub(crate) slow: Vec<String>,
}

/// Stopping a system costs this much of a run before it is worth a word.
const SLOW_STOP: Duration = Duration::from_secs(2);

/// What to say of a system that took long to stop. It is the same for each start on which that takes about as long, so
/// that a report says it once.
fn slow_to_stop(name: &str, is_container: bool, stopped: &Stopped) -> Option<String> {
    let seconds = stopped.took.as_secs_f64().round();
    (stopped.took > SLOW_STOP).then(|| match stopped.killed {
        0 => format!("stopping `{name}` takes {seconds:.0} s on each start, which the time under load leaves out"),
        _ if is_container => format!(
            "stopping `{name}` takes {seconds:.0} s on each start, which the time under load leaves out: a container does not \
             end when it is asked to, and is killed; a program that is the first in a container ignores SIGTERM unless it \
             handles it, which `init: true` in the Compose file or `--init` among the options mends"
        ),
        _ => format!(
            "stopping `{name}` takes {seconds:.0} s on each start, which the time under load leaves out: it does not end \
             after its stop signal and is killed; let it end, or set `stop` of the system to another signal or a shorter \
             wait"
        ),
    })
}

/// The specification of a variant on this start, with ports that are free now.
pub(crate) fn resolve(context: &Context<'_>, start: &Start, variant: usize) -> Result<TrialSpec, Fault> {
    let assignment = context.plan.assignment(variant, start.condition);
    let hosts: BTreeMap<String, String> = context.study.system_hosts(&assignment).into_iter().collect();
    let mut ports = BTreeMap::new();
    for (name, choice) in context.study.system_ports(&assignment) {
        let port = match (choice, hosts.get(&name)) {
            (PortChoice::Fixed(port), _) => port,
            (PortChoice::Free, None) => free_port()?,
            (PortChoice::Free, Some(label)) => context.host(label)?.free_port(context.interrupted)?,
        };
        ports.insert(name, port);
    }
    let plimsoll = context.program.to_owned();
    // In the order in which they start, which is another one on each start: no variant keeps the better processors.
    let place = start.variants.iter().position(|one| *one == variant).unwrap_or_default();
    let mut files = context.folder.files_of_systems(start.number);
    if start.variants.len() > 1 {
        files.push(variant.to_string());
    }
    let places = context.places(&hosts, Path::new(&variant.to_string()))?;
    let place = (place, start.variants.len());
    let bindings = Bindings { ports, plimsoll, files, place, places, ..context.keys.bindings() };
    context.study.resolve(&assignment, &bindings).map_err(|diagnostics| {
        Fault::Failed(diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}
