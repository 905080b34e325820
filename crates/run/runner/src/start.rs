//! One start: sets up the systems of its variants, offers the loads, stops the systems, and summarises the results.

use crate::databases::{self, RunningDatabase};
use crate::generator::{NotReady, PreparedWorkload};
use crate::host::{HostError, RunningSystem};
use crate::load::{LoadOutcome, NextLoad, offer};
use crate::memory::MemoryOfVariants;
use crate::run::{Context, EventSink};
use crate::sampled;
use crate::samplers::{Samplers, hosts_of};
use crate::validity;
use crate::written_files::FilesOfSystem;
use plimsoll_database::Databases;
use plimsoll_model::database::{DatabaseFacts, Origin};
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host as HostFacts, Version};
use plimsoll_model::result::{FinishedStart, LoadSummary, StartSummary, StartTiming, VariantSystems};
use plimsoll_model::start::{Load, Phase, Start, Validity};
use plimsoll_model::units::Processors;
use plimsoll_study::{Bindings, PortChoice, TrialSpec};
use plimsoll_system::{Stopped, SystemError, free_port};
use plimsoll_telemetry::{LastSamples, Target, memory_available};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The results of a start, ready for the bundle.
pub(crate) struct EndedStart {
    pub(crate) finished: FinishedStart,
    /// The counts of each load, in the order of the loads.
    pub(crate) outcomes: Vec<LoadOutcome>,
    pub(crate) executables: Vec<Executable>,
    /// The images that containers were made of, and their engines.
    pub(crate) of_containers: Vec<Version>,
    /// A sentence for each system that took long to stop. They are among the warnings of the start too.
    pub(crate) slow_to_stop: Vec<String>,
    /// The variant whose systems did not come up, so that none was loaded.
    pub(crate) not_up: Option<usize>,
}

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

/// Why a start cannot begin, or why a load on it ended early.
pub(crate) enum Fault {
    /// The run cannot go on.
    Abort(Abort),
    /// The start has failed for this reason.
    Failed(String),
}

impl From<NotReady> for Fault {
    fn from(error: NotReady) -> Self {
        match error {
            NotReady::Workload(reason) => Fault::Failed(reason),
            NotReady::Interrupted => Fault::Abort(Abort::Interrupted),
            NotReady::Generator(reason) => Fault::Abort(Abort::Agents(reason)),
        }
    }
}

impl From<HostError> for Fault {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Interrupted => Fault::Abort(Abort::Interrupted),
            HostError::Failed(reason) => Fault::Failed(reason),
            HostError::Lost(reason) => Fault::Abort(Abort::Agents(reason)),
        }
    }
}

impl From<SystemError> for Fault {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => Fault::Abort(Abort::Interrupted),
            error => Fault::Failed(error.to_string()),
        }
    }
}

impl From<plimsoll_bundle::BundleError> for Fault {
    fn from(error: plimsoll_bundle::BundleError) -> Self {
        Fault::Abort(Abort::Bundle(error))
    }
}

/// Why a run cannot go on.
#[derive(Debug)]
pub(crate) enum Abort {
    /// It was interrupted.
    Interrupted,
    /// Its results cannot be written.
    Bundle(plimsoll_bundle::BundleError),
    /// The agents that the run needs are lost, or some of them.
    Agents(String),
}

impl From<plimsoll_bundle::BundleError> for Abort {
    fn from(error: plimsoll_bundle::BundleError) -> Self {
        Abort::Bundle(error)
    }
}

/// A start under way. Dropping it ends everything that it started.
pub(crate) struct RunningStart {
    start: Start,
    began: Instant,
    started_unix_ms: i64,
    /// The variants whose systems are running.
    variants: Vec<RunningVariant>,
    sampler: Option<Samplers>,
    /// The other hosts on which systems run.
    hosts: Vec<HostFacts>,
    summaries: Vec<LoadSummary>,
    outcomes: Vec<LoadOutcome>,
    /// The begin of the first load's measure phase: what the samples of the start are counted from.
    zero: Option<Instant>,
    /// Why the start has failed.
    failures: Vec<String>,
    /// Warnings for the reader of the report.
    warnings: Vec<String>,
    /// A failure for each database that ended its sessions under load.
    lost: Vec<String>,
    /// The variant whose systems did not come up, if that is why the start has failed.
    not_up: Option<usize>,
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

impl RunningStart {
    /// Starts the systems of all variants of `start`, in order. If they do not start, the start has failed, and its
    /// loads are not offered.
    pub(crate) fn begin(
        context: &Context<'_>,
        databases: &mut Databases,
        start: &Start,
        tell: &mut EventSink<'_>,
    ) -> Result<RunningStart, Abort> {
        let mut running = RunningStart {
            start: start.clone(),
            began: Instant::now(),
            started_unix_ms: unix_ms(),
            variants: Vec::new(),
            sampler: None,
            hosts: Vec::new(),
            summaries: Vec::new(),
            outcomes: Vec::new(),
            zero: None,
            failures: Vec::new(),
            warnings: Vec::new(),
            lost: Vec::new(),
            not_up: None,
        };
        tell(&phase(start, Phase::Setup, None))?;
        let set_up = running.set_up(context, databases, tell);
        running.note(context, set_up)?;
        Ok(running)
    }

    fn set_up(
        &mut self,
        context: &Context<'_>,
        databases: &mut Databases,
        tell: &mut EventSink<'_>,
    ) -> Result<(), Fault> {
        let mut memory = MemoryOfVariants::new(memory_available());
        for variant in self.start.variants.clone() {
            memory.check().map_err(Fault::Failed)?;
            self.bring_up(context, databases, variant, tell).map_err(|fault| {
                self.not_up = Some(variant);
                match fault {
                    Fault::Failed(reason) if self.start.variants.len() > 1 => {
                        Fault::Failed(format!("{}: {reason}", context.plan.label(variant)))
                    }
                    fault => fault,
                }
            })?;
            memory.started(memory_available());
        }
        let hosts = hosts_of(context, &self.variants)?;
        let facts = hosts.iter().map(|host| host.describe(context.interrupted));
        self.hosts = facts.collect::<Result<_, HostError>>()?;
        self.sampler = Some(Samplers::start(context, &self.variants, &hosts)?);
        Ok(())
    }

    /// Starts the systems of a variant.
    fn bring_up(
        &mut self,
        context: &Context<'_>,
        databases: &mut Databases,
        variant: usize,
        tell: &mut EventSink<'_>,
    ) -> Result<(), Fault> {
        let several = self.start.variants.len() > 1;
        let outputs = OutputNames { context, start: self.start.number, variant: several.then_some(variant) };
        let spec = resolve(context, &self.start, variant)?;
        let running = RunningVariant::start(context, databases, variant, spec, &outputs, tell)?;
        let checked = databases::check_expected(context, &running.databases);
        self.variants.push(running);
        checked.map_err(Fault::Failed)
    }

    /// Offers loads at the same time, each to the systems of its variant, unless the start has failed.
    pub(crate) fn load(
        &mut self,
        context: &Context<'_>,
        loads: &[Load],
        tell: &mut EventSink<'_>,
    ) -> Result<(), Abort> {
        if !self.failures.is_empty() {
            self.add_not_offered(loads);
            return Ok(());
        }
        for load in loads {
            tell(&Event::LoadBegun { start: self.start.number, load: *load })?;
        }
        let sampler = self.sampler.as_ref().expect("a start whose systems are up is sampled");
        let later = plimsoll_plan::loads(context.plan, &self.start);
        let next = |load| NextLoad {
            start: &self.start,
            load,
            first_zero: self.zero,
            stays: !context.plan.searches()
                && later.iter().any(|later| later.variant == load.variant && later.number > load.number),
            sampler,
        };
        let mut variants: Vec<Option<&mut RunningVariant>> = self.variants.iter_mut().map(Some).collect();
        let mut of = |load: &Load| {
            let running = variants.iter_mut().find(|one| one.as_ref().is_some_and(|one| one.variant == load.variant));
            running.and_then(Option::take).expect("a load is for a variant of its start, which has one at a time")
        };
        let loads_of_variants = loads.iter().map(|load| (next(load), of(load))).collect();
        match offer(context, loads_of_variants, tell) {
            Ok(finished) => {
                for load in finished {
                    self.zero.get_or_insert(load.zero);
                    self.lost.extend(load.lost);
                    self.add(load.summary, load.outcome);
                }
                Ok(())
            }
            Err(fault) => {
                self.add_not_offered(loads);
                self.note(context, Err(fault))
            }
        }
    }

    /// The summary of a load that has ended.
    pub(crate) fn summary(&self, load: Load) -> Option<&LoadSummary> {
        self.summaries.iter().find(|summary| summary.load == load)
    }

    fn add_not_offered(&mut self, loads: &[Load]) {
        loads.iter().for_each(|load| self.add(LoadSummary::not_offered(*load), LoadOutcome::default()));
    }

    fn add(&mut self, summary: LoadSummary, outcome: LoadOutcome) {
        self.summaries.push(summary);
        self.outcomes.push(outcome);
    }

    /// Records a failure of the start; returns what ends the run.
    fn note(&mut self, context: &Context<'_>, result: Result<(), Fault>) -> Result<(), Abort> {
        match result {
            Ok(()) => Ok(()),
            Err(Fault::Failed(reason)) => {
                self.failures.push(context.folder.as_sealed(&reason, self.start.number));
                Ok(())
            }
            Err(Fault::Abort(abort)) => Err(abort),
        }
    }

    /// Checks the consistency of the databases' data, except for variants of which a system has died.
    fn check_data(&mut self, context: &Context<'_>) {
        for running in &mut self.variants {
            if running.systems.iter().any(|system| system.check().is_err()) {
                continue;
            }
            let steps = &running.spec.workload.steps;
            let checked = databases::add_conditions(context, &mut running.facts, &running.databases, steps);
            self.failures.extend(checked.err());
            self.failures.extend(running.facts.iter().flat_map(validity::wrong_data));
            self.warnings.extend(validity::not_looked_at(&running.facts));
        }
    }

    /// Stops the systems, and summarises the start.
    pub(crate) fn stop(mut self, context: &Context<'_>, tell: &mut EventSink<'_>) -> Result<EndedStart, Abort> {
        tell(&phase(&self.start, Phase::Teardown, None))?;
        if let (Some(sampler), Some(zero)) = (self.sampler.take(), self.zero) {
            let (LastSamples { samples, others, complaints }, of_hosts) = sampler.stop(zero);
            if self.knows_all_systems() {
                self.note_others(|load, from, to| load.others = others.between(from, to));
            }
            for (host, LastSamples { samples, others, complaints }) in of_hosts {
                tell(&Event::Sampled { start: self.start.number, samples })?;
                self.warnings.extend(complaints);
                self.note_others(|load, from, to| {
                    load.others_elsewhere.extend(others.between(from, to).map(|cores| (host.clone(), cores)));
                });
            }
            self.warnings.extend(complaints);
            tell(&Event::Sampled { start: self.start.number, samples })?;
        }
        if self.zero.is_some() {
            self.check_data(context);
        }
        let executables = self.variants.iter().flat_map(RunningVariant::executables).collect();
        let systems = self.variants.iter().flat_map(|running| &running.systems);
        let of_containers = systems.flat_map(RunningSystem::versions_of_containers).collect();
        let (mut systems, mut died, mut slow_to_stop) = (Vec::new(), Vec::new(), Vec::new());
        let mut lost_host = None;
        // In the opposite order of starting.
        for running in self.variants.drain(..).rev() {
            let StoppedVariant { summary, stopped, slow } = running.stop();
            systems.push(summary);
            slow_to_stop.extend(slow);
            match stopped {
                Ok(()) => {}
                Err(HostError::Lost(reason)) => lost_host = Some(reason),
                Err(error) => died.push(context.folder.as_sealed(&error.to_string(), self.start.number)),
            }
        }
        systems.reverse();
        if context.interrupted.is_set() {
            return Err(Abort::Interrupted);
        }
        // Its systems ended before the loss was noticed: the start is run again.
        if let Some(reason) = lost_host {
            return Err(Abort::Agents(reason));
        }
        // If a server has died, the report need not add that it ended its sessions.
        let lost = if died.is_empty() { self.lost } else { Vec::new() };
        let failures = [died, self.failures, lost].concat();
        let summary = StartSummary {
            start: self.start,
            validity: if failures.is_empty() { Validity::Valid } else { Validity::Failed(failures) },
            warnings: [self.warnings, slow_to_stop.clone()].concat(),
            timing: StartTiming { started_unix_ms: self.started_unix_ms, took: self.began.elapsed().into() },
            systems,
            hosts: self.hosts,
        };
        let finished = FinishedStart { summary, loads: self.summaries };
        let (outcomes, not_up) = (self.outcomes, self.not_up);
        Ok(EndedStart { finished, outcomes, executables, of_containers, slow_to_stop, not_up })
    }

    /// True if every server that the loads go to was started by this run and is seen, so that what is left of the machine's
    /// use belongs to others.
    fn knows_all_systems(&self) -> bool {
        let started = |running: &RunningVariant| running.systems.iter().filter(|system| system.is_seen()).count();
        let used = |running: &RunningVariant| running.spec.systems.len() + running.databases.len();
        self.variants.iter().all(|running| started(running) > 0 && started(running) == used(running))
    }

    /// Adds to each load what others used while it ran: `note` gets its begin and its end.
    fn note_others(&mut self, note: impl Fn(&mut LoadSummary, f64, f64)) {
        for load in self.summaries.iter_mut().filter(|load| load.timing.window.0 > 0) {
            let zero = load.timing.zero.0 as f64 / 1e9;
            let from = zero - load.load.lengths.warmup.as_secs_f64();
            let to = zero + load.timing.window.seconds();
            note(load, from, to);
        }
    }
}

/// The names of the files for the output of systems.
struct OutputNames<'a> {
    context: &'a Context<'a>,
    start: u32,
    /// The variant, if several are alive on the start.
    variant: Option<usize>,
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
    /// Starts the databases, then the systems, each when the one before it is ready.
    fn start(
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
    fn executables(&self) -> Vec<Executable> {
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
    fn stop(self) -> StoppedVariant {
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
struct StoppedVariant {
    summary: VariantSystems,
    /// The error names the first system that had died by itself.
    stopped: Result<(), HostError>,
    /// A sentence for each system that took long to stop.
    slow: Vec<String>,
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
fn resolve(context: &Context<'_>, start: &Start, variant: usize) -> Result<TrialSpec, Fault> {
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

pub(crate) fn phase(start: &Start, phase: Phase, length: Option<Duration>) -> Event {
    Event::PhaseStarted { start: start.number, phase, length }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
