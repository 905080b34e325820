//! One trial: start the systems, offer the load, watch both, stop the systems, judge.

use crate::run::Context;
use crate::target;
use crate::validity::{self, Judgement, Watch};
use plimsoll_bundle::TrialWriter;
use plimsoll_load::{Job, Prepared, RunRecord};
use plimsoll_model::event::Event;
use plimsoll_model::load::LoadModel;
use plimsoll_model::record::{Interval, Subject, Tally};
use plimsoll_model::result::{Headroom, TrialSummary};
use plimsoll_model::sample::{HostSample, ProcessSample};
use plimsoll_model::storage::StorageFacts;
use plimsoll_model::trial::{Phase, Trial, Validity};
use plimsoll_model::units::Nanos;
use plimsoll_study::{Bindings, PortChoice, TrialSpec};
use plimsoll_system::{Running, SystemError, free_port};
use plimsoll_telemetry::{Sampler, Target};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the systems are looked after while load runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a trial left, ready for the bundle.
pub(crate) struct Finished {
    pub(crate) summary: TrialSummary,
    pub(crate) processes: Vec<ProcessSample>,
    pub(crate) host: Vec<HostSample>,
    pub(crate) iterations: u64,
    pub(crate) errors: u64,
    /// The files that the systems' first processes ran, by the systems' names.
    pub(crate) executables: Vec<(String, PathBuf)>,
    /// Whether the systems came up and answered at least one request as expected.
    pub(crate) worked: bool,
}

/// Why there is no trial.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The run is to stop.
    Interrupted,
    /// Its results cannot be written.
    Bundle(plimsoll_bundle::BundleError),
}

/// Who hears what happens.
pub(crate) type Tell<'a> = dyn FnMut(&Event) -> Result<(), plimsoll_bundle::BundleError> + 'a;

/// Runs a trial; everything that it started is gone when this comes back.
pub(crate) fn run_trial(
    context: &Context<'_>,
    trial: &Trial,
    writer: &mut TrialWriter,
    tell: &mut Tell<'_>,
) -> Result<Finished, Broken> {
    let began = Instant::now();
    let started_unix_ms = unix_ms();
    tell(&phase(trial, Phase::Setup, None)).map_err(Broken::Bundle)?;
    let (spec, systems, ready_after) = match set_up(context, trial, writer) {
        Ok(ready) => ready,
        Err(SetupFault::Interrupted) => return Err(Broken::Interrupted),
        Err(SetupFault::Failed(reason)) => {
            return Ok(not_started(trial, as_sealed(&reason, writer), started_unix_ms, began.elapsed()));
        }
    };
    let loaded = match offer_load(context, trial, &spec, &systems, writer, tell) {
        Ok(loaded) => loaded,
        Err(LoadFault::Broken(broken)) => return Err(broken),
        Err(LoadFault::Failed(reason)) => {
            return Ok(not_started(trial, reason, started_unix_ms, began.elapsed()));
        }
    };
    tell(&phase(trial, Phase::Teardown, None)).map_err(Broken::Bundle)?;
    let running = systems.iter().filter_map(|system| Some((system.name().to_owned(), system.executable()?)));
    let executables = running.collect();
    let stopped = stop_all(systems);
    if context.interrupted.load(Ordering::Relaxed) {
        return Err(Broken::Interrupted);
    }
    let Loaded { record, watch, processes, host } = loaded;
    let window = record.window;
    let found =
        validity::Record { faults: &record.faults, sequences: &record.sequences, examples: &record.error_examples };
    let mut judged = watch.judge(window, &context.facts.generator, &found);
    if let Err(died) = stopped {
        let reasons = [vec![as_sealed(&died, writer)], judged.validity.reasons().to_vec()].concat();
        judged = Judgement { validity: Validity::Failed(reasons), steady_from: None, unsteady: false, ..judged };
    }
    let summary = TrialSummary {
        trial: *trial,
        validity: judged.validity,
        warnings: [watch.warnings(), left_behind(record.storage.as_ref())].concat(),
        started_unix_ms,
        took: began.elapsed().into(),
        ready_after: ready_after.into(),
        window,
        steady_from: judged.steady_from,
        unsteady: judged.unsteady,
        unjudged: judged.unjudged,
        headroom: judged.headroom,
        open_load: matches!(spec.load.model, LoadModel::Open { .. }),
        sequences: record.sequences,
        error_examples: record.error_examples,
        storage: record.storage,
        databases: Vec::new(),
    };
    Ok(Finished {
        summary,
        processes,
        host,
        iterations: watch.iterations,
        errors: watch.errors,
        executables,
        worked: watch.worked(),
    })
}

/// Objects that could not be removed.
fn left_behind(storage: Option<&StorageFacts>) -> Vec<String> {
    let texts = storage.into_iter().flat_map(|storage| &storage.left_behind);
    texts.map(|text| format!("left behind: {text}")).collect()
}

/// A reason as it is read: after the trial was sealed, when its files lie in a folder that is no
/// longer `.partial`.
fn as_sealed(reason: &str, writer: &TrialWriter) -> String {
    let output = writer.output_path("");
    let folder = output.parent().expect("an output lies in the trial's folder");
    reason.replace(&*folder.to_string_lossy(), &folder.with_extension("").to_string_lossy())
}

/// A trial whose systems did not come up, or whose load could not be prepared.
fn not_started(trial: &Trial, reason: String, started_unix_ms: i64, took: Duration) -> Finished {
    let summary = TrialSummary {
        trial: *trial,
        validity: Validity::Failed(vec![reason]),
        warnings: Vec::new(),
        started_unix_ms,
        took: took.into(),
        ready_after: Nanos(0),
        window: Nanos(0),
        steady_from: None,
        unsteady: false,
        unjudged: None,
        headroom: Headroom::default(),
        open_load: false,
        sequences: BTreeMap::new(),
        error_examples: BTreeMap::new(),
        storage: None,
        databases: Vec::new(),
    };
    Finished {
        summary,
        processes: Vec::new(),
        host: Vec::new(),
        iterations: 0,
        errors: 0,
        executables: Vec::new(),
        worked: false,
    }
}

enum SetupFault {
    Interrupted,
    Failed(String),
}

impl From<SystemError> for SetupFault {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => SetupFault::Interrupted,
            error => SetupFault::Failed(error.to_string()),
        }
    }
}

/// Starts the systems one after the other, each when the one before it is ready.
fn set_up(
    context: &Context<'_>,
    trial: &Trial,
    writer: &TrialWriter,
) -> Result<(TrialSpec, Vec<Running>, Duration), SetupFault> {
    let assignment = context.plan.assignment(trial);
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
    let mut spec = context.study.resolve(&assignment, &bindings).map_err(|diagnostics| {
        SetupFault::Failed(diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    if trial.extended {
        spec.load.warmup = context.plan.length(trial).warmup;
    }
    let interrupted = || context.interrupted.load(Ordering::Relaxed);
    let mut running = Vec::new();
    let mut ready_after = Duration::ZERO;
    for system in &spec.systems {
        let started = context.launcher.start(system, &writer.output_path(&system.name))?;
        ready_after += started.wait_ready(&interrupted)?;
        running.push(started);
    }
    Ok((spec, running, ready_after))
}

/// What the load left.
struct Loaded {
    record: RunRecord,
    watch: Watch,
    processes: Vec<ProcessSample>,
    host: Vec<HostSample>,
}

enum LoadFault {
    Broken(Broken),
    Failed(String),
}

fn offer_load(
    context: &Context<'_>,
    trial: &Trial,
    spec: &TrialSpec,
    systems: &[Running],
    writer: &mut TrialWriter,
    tell: &mut Tell<'_>,
) -> Result<Loaded, LoadFault> {
    let target = spec.workload.target.as_ref();
    let address = target.map(|target| target::address(context.study, target)).transpose().map_err(LoadFault::Failed)?;
    let prepared = Prepared::new(&spec.workload, address).map_err(|error| LoadFault::Failed(error.to_string()))?;
    let targets = systems.iter().map(|system| Target { system: system.name().to_owned(), root: system.warden() });
    let sampler = Sampler::start(targets.collect()).map_err(|error| LoadFault::Failed(error.to_string()))?;
    let mut watch = Watch::new(&spec.load, trial.extended);
    let mut trouble = None;
    let mut phases = PhaseTeller::new(trial, spec);
    let note = writer.objects_note();
    let unnoted = std::cell::RefCell::new(None);
    let over = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| look_after(systems, context.interrupted, &stop, &over));
        let job = Job {
            load: &spec.load,
            generator: &context.facts.generator,
            seed: context.plan.seed ^ u64::from(trial.block),
            interrupted: &stop,
            on_place: &|place| {
                if let Err(error) = note.write(place) {
                    unnoted.replace(Some(error));
                }
            },
        };
        let mut on_interval = |interval: Interval| {
            watch.see(&interval);
            let written = writer
                .interval(&interval)
                .and_then(|()| phases.follow(interval.second, tell))
                .and_then(|()| tell(&second_passed(trial, &interval)));
            if let Err(error) = written {
                trouble.get_or_insert(error);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let run = prepared.run(&job, &mut on_interval);
        over.store(true, Ordering::Relaxed);
        run
    });
    let unnoted = unnoted.into_inner().or(note.remove().err());
    if let Some(error) = trouble.or(unnoted) {
        return Err(LoadFault::Broken(Broken::Bundle(error)));
    }
    if context.interrupted.load(Ordering::Relaxed) {
        return Err(LoadFault::Broken(Broken::Interrupted));
    }
    let record = run.map_err(|error| LoadFault::Failed(error.to_string()))?;
    let (processes, host) = sampler.stop(record.zero);
    Ok(Loaded { record, watch, processes, host })
}

/// Breaks the load off when the run is interrupted, or when a system has died: more load would
/// only measure a refusal.
fn look_after(systems: &[Running], interrupted: &AtomicBool, stop: &AtomicBool, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let died = || systems.iter().any(|system| system.check().is_err());
        if interrupted.load(Ordering::Relaxed) || died() {
            stop.store(true, Ordering::Relaxed);
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Stops the systems in the opposite order; the first that had died by itself is told of.
fn stop_all(systems: Vec<Running>) -> Result<(), String> {
    let mut result = Ok(());
    for system in systems.into_iter().rev() {
        if let Err(error) = system.stop() {
            result = Err(error.to_string());
        }
    }
    result
}

/// Tells of the phases of load as their seconds pass.
struct PhaseTeller<'a> {
    trial: &'a Trial,
    /// The phases that have not begun, with their first second and length.
    ahead: Vec<(i64, Phase, Duration)>,
}

impl<'a> PhaseTeller<'a> {
    fn new(trial: &'a Trial, spec: &TrialSpec) -> PhaseTeller<'a> {
        let (warmup, limit) = (spec.load.warmup, spec.load.stop.limit());
        let mut ahead = vec![
            (Nanos::from(limit).0.div_ceil(1_000_000_000) as i64, Phase::Drain, spec.load.drain),
            (0, Phase::Measure, limit),
        ];
        if !warmup.is_zero() {
            ahead.push((i64::MIN, Phase::Warmup, warmup));
        }
        PhaseTeller { trial, ahead }
    }

    fn follow(&mut self, second: i64, tell: &mut Tell<'_>) -> Result<(), plimsoll_bundle::BundleError> {
        while let Some((_, begun, length)) = self.ahead.pop_if(|(first, ..)| *first <= second) {
            tell(&phase(self.trial, begun, Some(length)))?;
        }
        Ok(())
    }
}

fn phase(trial: &Trial, phase: Phase, length: Option<Duration>) -> Event {
    Event::PhaseStarted { trial: trial.number, phase, length }
}

fn second_passed(trial: &Trial, interval: &Interval) -> Event {
    let mut requests = Tally::default();
    let mut iterations = 0;
    for ((_, subject), tally) in &interval.tallies {
        match subject {
            Subject::Iteration => iterations += tally.count(),
            Subject::Request(_) => requests.merge(tally),
            Subject::Connect | Subject::Part(..) => {}
        }
    }
    let median = (requests.count() > 0).then(|| Nanos(requests.service.value_at_quantile(0.5)).seconds());
    Event::SecondPassed {
        trial: trial.number,
        second: interval.second,
        iterations,
        errors: requests.failed(),
        median,
        users: interval.generator.users,
    }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
