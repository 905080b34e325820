//! One trial: start databases and systems, offer the load, watch all of them, look at the data, stop
//! the systems, judge.

use crate::databases::{self, Served};
use crate::run::Context;
use crate::target;
use crate::validity::{self, Watch};
use plimsoll_bundle::TrialWriter;
use plimsoll_database::Databases;
use plimsoll_generator::{Job, Prepared, RunRecord};
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::event::Event;
use plimsoll_model::load::LoadModel;
use plimsoll_model::record::{Interval, Subject, Tally};
use plimsoll_model::result::{Headroom, TrialSummary};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample};
use plimsoll_model::storage::StorageFacts;
use plimsoll_model::trial::{Phase, Trial, Validity};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::Steps;
use plimsoll_study::{Bindings, PortChoice, TrialSpec};
use plimsoll_system::{Running, SystemError, free_port};
use plimsoll_telemetry::{Sampler, Target};
use std::collections::{BTreeMap, BTreeSet};
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
    pub(crate) databases: Vec<DatabaseSample>,
    pub(crate) iterations: u64,
    pub(crate) errors: u64,
    pub(crate) executables: Vec<Executable>,
    /// Whether the systems came up and answered at least one request as expected.
    pub(crate) worked: bool,
    /// What a script has measured.
    pub(crate) subjects: BTreeSet<Subject>,
}

/// The file that the first process of a system ran.
pub(crate) struct Executable {
    /// The system's name.
    pub(crate) system: String,
    pub(crate) file: PathBuf,
    /// What it says it is, where it was asked.
    pub(crate) version: Option<String>,
}

/// Why a trial cannot begin, or its load broke off.
pub(crate) enum Fault {
    /// There is no trial.
    Broken(Broken),
    /// It has failed for this reason.
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
    databases: &mut Databases,
    trial: &Trial,
    writer: &mut TrialWriter,
    tell: &mut Tell<'_>,
) -> Result<Finished, Broken> {
    let began = Instant::now();
    let started_unix_ms = unix_ms();
    tell(&phase(trial, Phase::Setup, None)).map_err(Broken::Bundle)?;
    let ready = match set_up(context, databases, trial, writer, tell) {
        Ok(ready) => ready,
        Err(Fault::Broken(broken)) => return Err(broken),
        Err(Fault::Failed(reason)) => {
            return Ok(not_started(trial, as_sealed(&reason, writer), started_unix_ms, began.elapsed()));
        }
    };
    let loaded = match offer_load(context, trial, &ready, writer, tell) {
        Ok(loaded) => loaded,
        Err(Fault::Broken(broken)) => return Err(broken),
        Err(Fault::Failed(reason)) => {
            return Ok(not_started(trial, as_sealed(&reason, writer), started_unix_ms, began.elapsed()));
        }
    };
    tell(&phase(trial, Phase::Teardown, None)).map_err(Broken::Bundle)?;
    let Loaded { mut record, watch, processes, host, counters, lost, mut facts } = loaded;
    let unchecked = look_at_data(context, &ready, &mut record, &mut facts);
    let executables = executables(&ready.systems, &facts);
    let Ready { spec, systems, databases, ready_after } = ready;
    let stopped = stop_all(systems);
    drop(databases);
    if context.interrupted.load(Ordering::Relaxed) {
        return Err(Broken::Interrupted);
    }
    let window = record.window;
    let found = validity::Record {
        faults: &record.faults,
        broken: &record.broken,
        sequences: &record.sequences,
        examples: &record.error_examples,
        stopped: record.stopped.as_deref(),
        databases: &facts,
    };
    let judged = watch.judge(window, &context.facts.generator, &found);
    // Another trial would come to the same end.
    let worked = watch.worked() && record.broken.is_empty() && (record.stopped.is_none() || !watch.measured_nothing());
    record.warnings.extend(record.stopped.take().filter(|_| !watch.measured_nothing()));
    let warnings =
        [watch.warnings(), record.warnings, validity::not_looked_at(&facts), left_behind(record.storage.as_ref())]
            .concat();
    // Of a server that has died it needs no saying that it ended its sessions.
    let lost = if stopped.is_ok() { lost } else { Vec::new() };
    let broken_off = [stopped.err().map(|died| as_sealed(&died, writer)), unchecked];
    let judged = judged.failed_also(broken_off.into_iter().flatten().chain(lost).collect());
    let summary = TrialSummary {
        trial: *trial,
        validity: judged.validity,
        warnings,
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
        databases: facts,
        script: record.script,
    };
    Ok(Finished {
        summary,
        processes,
        host,
        databases: counters,
        iterations: watch.iterations,
        errors: watch.errors,
        executables,
        worked,
        subjects: watch.subjects,
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
        script: None,
    };
    Finished {
        summary,
        processes: Vec::new(),
        host: Vec::new(),
        databases: Vec::new(),
        iterations: 0,
        errors: 0,
        executables: Vec::new(),
        worked: false,
        subjects: BTreeSet::new(),
    }
}

/// A trial that can begin. Its fields are dropped in this order: what runs ends before the data goes
/// that it serves.
struct Ready {
    spec: TrialSpec,
    systems: Vec<Running>,
    databases: Vec<Served>,
    ready_after: Duration,
}

/// Starts the databases, then the systems, each when the one before it is ready.
fn set_up(
    context: &Context<'_>,
    databases: &mut Databases,
    trial: &Trial,
    writer: &TrialWriter,
    tell: &mut Tell<'_>,
) -> Result<Ready, Fault> {
    let spec = resolve(context, trial)?;
    let mut ready = Ready { systems: Vec::new(), databases: Vec::new(), ready_after: Duration::ZERO, spec };
    for database in &ready.spec.databases {
        let (served, server, ready_after) = databases::serve(context, databases, database, writer, tell)?;
        ready.databases.push(served);
        ready.systems.extend(server);
        ready.ready_after += ready_after;
    }
    for system in &ready.spec.systems {
        let started = context.launcher.start(system, &writer.output_path(&system.name))?;
        ready.ready_after += started.wait_ready(&context.is_interrupted())?;
        ready.systems.push(started);
    }
    Ok(ready)
}

/// What the trial is, with ports that are free now.
fn resolve(context: &Context<'_>, trial: &Trial) -> Result<TrialSpec, Fault> {
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
        Fault::Failed(diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    if trial.extended {
        spec.load.warmup = context.plan.length(trial).warmup;
    }
    Ok(spec)
}

/// What the load left.
struct Loaded {
    record: RunRecord,
    watch: Watch,
    processes: Vec<ProcessSample>,
    host: Vec<HostSample>,
    counters: Vec<DatabaseSample>,
    /// Which databases ended their sessions under load, as failures.
    lost: Vec<String>,
    facts: Vec<DatabaseFacts>,
}

fn offer_load(
    context: &Context<'_>,
    trial: &Trial,
    ready: &Ready,
    writer: &mut TrialWriter,
    tell: &mut Tell<'_>,
) -> Result<Loaded, Fault> {
    let Ready { spec, systems, databases, .. } = ready;
    let target = spec.workload.target.as_ref();
    let address = target.map(|target| target::address(context.study, target)).transpose().map_err(Fault::Failed)?;
    let workload = databases::placed(&spec.workload, databases).map_err(Fault::Failed)?;
    let prepared = Prepared::new(&workload, address).map_err(|error| Fault::Failed(error.to_string()))?;
    databases::check_users(databases, &spec.workload.steps, spec.load.most_users())?;
    let facts = databases::facts(databases, &spec.workload.steps)?;
    let targets = systems.iter().map(|system| Target { system: system.name().to_owned(), root: system.warden() });
    let sampler = Sampler::start(targets.collect()).map_err(|error| Fault::Failed(error.to_string()))?;
    let looks = databases::look(databases)?;
    let is_script = matches!(spec.workload.steps, Steps::Script(_));
    let mut watch = Watch::new(&spec.load, trial.extended).of_script(is_script);
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
            share: plimsoll_generator::WHOLE,
            interrupted: &stop,
            on_place: &|place| {
                if let Err(error) = note.write(place) {
                    unnoted.replace(Some(error));
                }
            },
            console: Some(writer.console_path()),
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
        return Err(Fault::Broken(Broken::Bundle(error)));
    }
    if context.interrupted.load(Ordering::Relaxed) {
        return Err(Fault::Broken(Broken::Interrupted));
    }
    let record = run.map_err(|error| Fault::Failed(error.to_string()))?;
    let (processes, host) = sampler.stop(record.zero);
    let (counters, lost) = databases::seen(looks, databases, &record);
    Ok(Loaded { record, watch, processes, host, counters, lost, facts })
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

/// Adds to what is known of databases what users did and whether their data is as it must be. Where
/// a system has died there is nobody to ask. Gives why the data could not be looked at.
fn look_at_data(
    context: &Context<'_>,
    ready: &Ready,
    record: &mut RunRecord,
    facts: &mut [DatabaseFacts],
) -> Option<String> {
    let steps = &ready.spec.workload.steps;
    if let Some(work) = record.sql.take() {
        databases::add_work(facts, steps, work);
    }
    if ready.systems.iter().any(|system| system.check().is_err()) {
        return None;
    }
    databases::add_conditions(context, facts, &ready.databases, steps).err()
}

/// The files that the first processes of systems run.
fn executables(systems: &[Running], facts: &[DatabaseFacts]) -> Vec<Executable> {
    let version = |name: &str| facts.iter().find(|facts| facts.name == name).map(|facts| facts.version.clone());
    let executable = |system: &Running| {
        Some(Executable {
            system: system.name().to_owned(),
            file: system.executable()?,
            version: version(system.name()),
        })
    };
    systems.iter().filter_map(executable).collect()
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
            Subject::Connect | Subject::Part(..) | Subject::Check(_) | Subject::Custom(..) => {}
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
