//! One start: set up the systems of its variants, offer the loads, stop the systems, and sum up.

use crate::databases::{self, Served};
use crate::load::{LoadOutcome, NextLoad, offer};
use crate::run::{Context, Tell};
use crate::validity;
use plimsoll_database::Databases;
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::event::Event;
use plimsoll_model::host::LOCAL;
use plimsoll_model::result::{FinishedStart, LoadSummary, StartSummary, StartTiming, VariantSystems};
use plimsoll_model::start::{Load, Phase, Start, Validity};
use plimsoll_study::{Bindings, PortChoice, TrialSpec};
use plimsoll_system::{Running, SystemError, free_port};
use plimsoll_telemetry::{Sampler, Target};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a start left, ready for the bundle.
pub(crate) struct EndedStart {
    pub(crate) finished: FinishedStart,
    /// What was recorded of each load, in the same order.
    pub(crate) outcomes: Vec<LoadOutcome>,
    pub(crate) executables: Vec<Executable>,
}

/// The file that the first process of a system ran.
pub(crate) struct Executable {
    /// The system's name.
    pub(crate) system: String,
    pub(crate) file: PathBuf,
    /// What it says it is, where it was asked.
    pub(crate) version: Option<String>,
}

/// Why a start cannot begin, or a load on it broke off.
pub(crate) enum Fault {
    /// The run cannot go on.
    Broken(Broken),
    /// The start has failed for this reason.
    Failed(String),
}

impl From<SystemError> for Fault {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => Fault::Broken(Broken::Interrupted),
            error => Fault::Failed(error.to_string()),
        }
    }
}

impl From<plimsoll_bundle::BundleError> for Fault {
    fn from(error: plimsoll_bundle::BundleError) -> Self {
        Fault::Broken(Broken::Bundle(error))
    }
}

/// Why a run cannot go on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It is to stop.
    Interrupted,
    /// Its results cannot be written.
    Bundle(plimsoll_bundle::BundleError),
}

impl From<plimsoll_bundle::BundleError> for Broken {
    fn from(error: plimsoll_bundle::BundleError) -> Self {
        Broken::Bundle(error)
    }
}

/// A start under way. Dropped, it ends everything that it started.
pub(crate) struct RunningStart {
    start: Start,
    began: Instant,
    started_unix_ms: i64,
    /// The variants whose systems are up.
    variants: Vec<RunningVariant>,
    sampler: Option<Sampler>,
    summaries: Vec<LoadSummary>,
    outcomes: Vec<LoadOutcome>,
    /// The begin of the first load's measure phase: what the samples of the start are counted from.
    zero: Option<Instant>,
    /// Why the start has failed.
    failures: Vec<String>,
    /// What a reader should know of it.
    warnings: Vec<String>,
    /// The databases that ended their sessions under load, as failures.
    lost: Vec<String>,
}

/// The systems of a variant that are up. Its fields are dropped in this order: what runs ends before
/// the data goes that it serves.
pub(crate) struct RunningVariant {
    pub(crate) variant: usize,
    pub(crate) spec: TrialSpec,
    pub(crate) systems: Vec<Running>,
    pub(crate) databases: Vec<Served>,
    pub(crate) ready_after: Duration,
    /// What is known of the databases.
    pub(crate) facts: Vec<DatabaseFacts>,
}

impl RunningStart {
    /// Starts the systems of all variants of `start`, in order. Where they do not come up, that is
    /// the outcome of the start; its loads are then not offered.
    pub(crate) fn begin(
        context: &Context<'_>,
        databases: &mut Databases,
        start: &Start,
        tell: &mut Tell<'_>,
    ) -> Result<RunningStart, Broken> {
        let mut running = RunningStart {
            start: start.clone(),
            began: Instant::now(),
            started_unix_ms: unix_ms(),
            variants: Vec::new(),
            sampler: None,
            summaries: Vec::new(),
            outcomes: Vec::new(),
            zero: None,
            failures: Vec::new(),
            warnings: Vec::new(),
            lost: Vec::new(),
        };
        tell(&phase(start, Phase::Setup, None))?;
        let set_up = running.set_up(context, databases, tell);
        running.note(context, set_up)?;
        Ok(running)
    }

    fn set_up(&mut self, context: &Context<'_>, databases: &mut Databases, tell: &mut Tell<'_>) -> Result<(), Fault> {
        for variant in self.start.variants.clone() {
            let several = self.start.variants.len() > 1;
            let outputs = OutputNames { context, start: self.start.number, variant: several.then_some(variant) };
            let spec = resolve(context, &self.start, variant)?;
            self.variants.push(RunningVariant::start(context, databases, variant, spec, &outputs, tell)?);
        }
        let targets = self.variants.iter().flat_map(RunningVariant::targets).collect();
        self.sampler = Some(Sampler::start(LOCAL, targets).map_err(|error| Fault::Failed(error.to_string()))?);
        Ok(())
    }

    /// Offers a load to the systems of its variant; where the start has failed, it is not offered.
    pub(crate) fn load(&mut self, context: &Context<'_>, load: &Load, tell: &mut Tell<'_>) -> Result<(), Broken> {
        if !self.failures.is_empty() {
            self.add(LoadSummary::not_offered(*load), LoadOutcome::default());
            return Ok(());
        }
        tell(&Event::LoadBegun { start: self.start.number, load: *load })?;
        let of_load = |running: &&mut RunningVariant| running.variant == load.variant;
        let running = self.variants.iter_mut().find(of_load).expect("a load is for a variant of its start");
        let sampler = self.sampler.as_ref().expect("a start whose systems are up is sampled");
        let next = NextLoad { start: &self.start, load, first_zero: self.zero, sampler };
        match offer(context, next, running, tell) {
            Ok(offered) => {
                self.zero.get_or_insert(offered.zero);
                self.lost.extend(offered.lost);
                self.add(offered.summary, offered.outcome);
                Ok(())
            }
            Err(fault) => {
                self.add(LoadSummary::not_offered(*load), LoadOutcome::default());
                self.note(context, Err(fault))
            }
        }
    }

    fn add(&mut self, summary: LoadSummary, outcome: LoadOutcome) {
        self.summaries.push(summary);
        self.outcomes.push(outcome);
    }

    /// Takes note of a failure; passes on what ends the run.
    fn note(&mut self, context: &Context<'_>, result: Result<(), Fault>) -> Result<(), Broken> {
        match result {
            Ok(()) => Ok(()),
            Err(Fault::Failed(reason)) => {
                self.failures.push(context.folder.as_sealed(&reason, self.start.number));
                Ok(())
            }
            Err(Fault::Broken(broken)) => Err(broken),
        }
    }

    /// Finds out whether the data of the databases is as it must be. Where a system has died there is
    /// nobody to ask.
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

    /// Stops the systems, and sums up.
    pub(crate) fn stop(mut self, context: &Context<'_>, tell: &mut Tell<'_>) -> Result<EndedStart, Broken> {
        tell(&phase(&self.start, Phase::Teardown, None))?;
        if let (Some(sampler), Some(zero)) = (self.sampler.take(), self.zero) {
            tell(&Event::Sampled { start: self.start.number, samples: sampler.stop(zero) })?;
        }
        if self.zero.is_some() {
            self.check_data(context);
        }
        let executables = self.variants.iter().flat_map(RunningVariant::executables).collect();
        let (mut systems, mut died) = (Vec::new(), Vec::new());
        // In the opposite order of starting.
        for running in self.variants.drain(..).rev() {
            let (summary, stopped) = running.stop();
            systems.push(summary);
            died.extend(stopped.err().map(|reason| context.folder.as_sealed(&reason, self.start.number)));
        }
        systems.reverse();
        if context.interrupted.is_set() {
            return Err(Broken::Interrupted);
        }
        // Of a server that has died it needs no saying that it ended its sessions.
        let lost = if died.is_empty() { self.lost } else { Vec::new() };
        let failures = [died, self.failures, lost].concat();
        let summary = StartSummary {
            start: self.start,
            validity: if failures.is_empty() { Validity::Valid } else { Validity::Failed(failures) },
            warnings: self.warnings,
            timing: StartTiming { started_unix_ms: self.started_unix_ms, took: self.began.elapsed().into() },
            systems,
        };
        let finished = FinishedStart { summary, loads: self.summaries };
        Ok(EndedStart { finished, outcomes: self.outcomes, executables })
    }
}

/// The files for what systems write.
struct OutputNames<'a> {
    context: &'a Context<'a>,
    start: u32,
    /// The variant, where several are alive.
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
        tell: &mut Tell<'_>,
    ) -> Result<RunningVariant, Fault> {
        let (systems, served, facts) = (Vec::new(), Vec::new(), Vec::new());
        let mut running =
            RunningVariant { variant, spec, systems, databases: served, ready_after: Duration::ZERO, facts };
        for database in &running.spec.databases {
            let output = outputs.path(&database.name);
            let (served, server, ready_after) = databases::serve(context, databases, database, &output, tell)?;
            running.databases.push(served);
            running.systems.extend(server);
            running.ready_after += ready_after;
        }
        for system in &running.spec.systems {
            let started = context.launcher.start(system, &outputs.path(&system.name))?;
            running.ready_after += started.wait_ready(context.interrupted)?;
            running.systems.push(started);
        }
        Ok(running)
    }

    /// What telemetry watches.
    fn targets(&self) -> impl Iterator<Item = Target> {
        let target = |system: &Running| Target {
            system: system.name().to_owned(),
            variant: self.variant,
            root: system.warden(),
        };
        self.systems.iter().map(target)
    }

    /// The files that the first processes of systems run.
    fn executables(&self) -> Vec<Executable> {
        let known = |name: &str| self.facts.iter().find(|facts| facts.name == name);
        let executable = |system: &Running| {
            Some(Executable {
                system: system.name().to_owned(),
                file: system.executable()?,
                version: known(system.name()).map(|facts| facts.version.clone()),
            })
        };
        self.systems.iter().filter_map(executable).collect()
    }

    /// Stops the systems in the opposite order; the first that had died by itself is told of.
    fn stop(self) -> (VariantSystems, Result<(), String>) {
        let mut result = Ok(());
        for system in self.systems.into_iter().rev() {
            if let Err(error) = system.stop() {
                result = Err(error.to_string());
            }
        }
        // The servers have ended: their data may go.
        drop(self.databases);
        let ready_after = self.ready_after.into();
        (VariantSystems { variant: self.variant, ready_after, databases: self.facts }, result)
    }
}

/// What a variant is on this start, with ports that are free now.
fn resolve(context: &Context<'_>, start: &Start, variant: usize) -> Result<TrialSpec, Fault> {
    let assignment = context.plan.assignment(variant, start.condition);
    let mut ports = BTreeMap::new();
    for (name, choice) in context.study.system_ports(&assignment) {
        let port = match choice {
            PortChoice::Fixed(port) => port,
            PortChoice::Free => free_port()?,
        };
        ports.insert(name, port);
    }
    let plimsoll = context.program.to_owned();
    let bindings = Bindings { ports, plimsoll, keys: context.keys.pairs.clone() };
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
