//! One start: sets up the systems of its variants, offers the loads, stops the systems, and summarises the results.

use crate::databases;
use crate::generator::NotReady;
use crate::host::{HostError, RunningSystem};
use crate::load::{LoadFault, LoadOutcome, NextLoad, offer};
use crate::memory::MemoryOfVariants;
use crate::run::{Context, EventSink};
use crate::running_variant::{Executable, OutputNames, RunningVariant, StoppedVariant, resolve};
use crate::samplers::{Samplers, hosts_of};
use crate::validity;
use plimsoll_database::Databases;
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host as HostFacts, Version};
use plimsoll_model::result::{FinishedStart, LoadSummary, StartSummary, StartTiming};
use plimsoll_model::start::{Load, Phase, Start, Validity};
use plimsoll_system::SystemError;
use plimsoll_telemetry::{LastSamples, memory_available};
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
    /// The variant because of which loads were not offered: its systems did not come up or have ended, or its load could not
    /// be prepared.
    pub(crate) to_blame: Option<usize>,
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
    /// The variant because of which the start has failed: its systems did not come up or have ended, or its load could not be
    /// prepared.
    to_blame: Option<usize>,
    /// True if a system has ended.
    has_ended: bool,
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
            to_blame: None,
            has_ended: false,
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
            self.bring_up(context, databases, variant, tell).map_err(|fault| self.blame(context, variant, fault))?;
            memory.started(memory_available());
        }
        let hosts = hosts_of(context, &self.variants)?;
        let facts = hosts.iter().map(|host| host.describe(context.interrupted));
        self.hosts = facts.collect::<Result<_, HostError>>()?;
        self.sampler = Some(Samplers::start(context, &self.variants, &hosts)?);
        Ok(())
    }

    /// Notes of which variant a fault is, and names it in the fault if it is one of several.
    fn blame(&mut self, context: &Context<'_>, variant: usize, fault: Fault) -> Fault {
        self.to_blame = Some(variant);
        match fault {
            Fault::Failed(reason) if self.start.variants.len() > 1 => {
                Fault::Failed(format!("{}: {reason}", context.plan.label(variant)))
            }
            fault => fault,
        }
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
        // Where a system of one variant has ended, the start has failed, and more turns of the others change nothing.
        if !context.plan.searches() && self.failures.is_empty() {
            self.look_for_ends();
        }
        if self.has_ended || !self.failures.is_empty() {
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
            Err(LoadFault { fault, variant }) => {
                self.look_for_ends();
                self.add_not_offered(loads);
                let fault = match variant {
                    Some(variant) => self.blame(context, variant, fault),
                    None => fault,
                };
                self.note(context, Err(fault))
            }
        }
    }

    /// The summary of a load that has ended.
    pub(crate) fn summary(&self, load: Load) -> Option<&LoadSummary> {
        self.summaries.iter().find(|summary| summary.load == load)
    }

    /// Looks for a variant of which a system has ended.
    fn look_for_ends(&mut self) {
        if !self.has_ended
            && let Some(ended) = self.variants.iter().find(|running| running.has_lost_a_system())
        {
            (self.has_ended, self.to_blame) = (true, Some(ended.variant));
        }
    }

    fn add_not_offered(&mut self, loads: &[Load]) {
        for load in loads {
            let outcome = LoadOutcome { ended_early: self.has_ended, ..LoadOutcome::default() };
            self.add(LoadSummary::not_offered(*load), outcome);
        }
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
            if running.has_lost_a_system() {
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
        let (outcomes, to_blame) = (self.outcomes, self.to_blame);
        Ok(EndedStart { finished, outcomes, executables, of_containers, slow_to_stop, to_blame })
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

pub(crate) fn phase(start: &Start, phase: Phase, length: Option<Duration>) -> Event {
    Event::PhaseStarted { start: start.number, phase, length }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
