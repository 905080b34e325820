//! From a workload to its records: prepared once, then run on as many threads as it is given.

use crate::blocking::{self, Crew};
use crate::clock::{Clock, nanos};
use crate::engine::core::Core;
use crate::engine::offer::{Offer, Offering, Pot};
use crate::engine::{self, Task, Users};
use crate::flow::{Flows, Plan, Remark, Unmade};
use crate::grpc::Grpc;
use crate::http::Http;
use crate::protocol::Protocol;
use crate::recorder::{Findings, Handover, Recorder};
use crate::schedule::Share;
use crate::script::study::ScriptPlan;
use crate::sql::SqlPlan;
use crate::storage::StoragePlan;
use crate::tls;
use crate::transport::Dialer;
use plimsoll_model::database::SqlFacts;
use plimsoll_model::load::{LoadModel, LoadProfile, Stop};
use plimsoll_model::record::{ErrorKind, Interval, SequenceCheck};
use plimsoll_model::script::ScriptFacts;
use plimsoll_model::storage::StorageFacts;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::{Instant, Nanos, Processors};
use plimsoll_model::workload::{Connect, GrpcSchema, Steps, Target, Workload};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Descriptors that the generator needs beside its connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// How long a call that blocks may take to come back after it was told to give up, before it counts
/// as hung.
const GRACE: Duration = Duration::from_secs(5);

/// A workload that is ready to be run.
pub struct Prepared {
    workload: Workload,
    compiled: Compiled,
}

enum Compiled {
    Http(Http, Dialer),
    Grpc(Grpc, Dialer),
    Storage(StoragePlan),
    Sql(SqlPlan),
    Flow(Box<Plan>, Dialer),
    Script(Box<ScriptPlan>),
}

/// Why a workload cannot be run: every reason that could be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct PrepareError(pub Vec<String>);

impl PrepareError {
    fn of(faults: Vec<Remark>) -> PrepareError {
        PrepareError(faults.into_iter().map(|fault| fault.what).collect())
    }
}

/// Why a run broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The machine allows fewer open files than the connections that the load needs.
    #[error(
        "the load needs {needed} open files, but the limit is {limit}; raise it (`ulimit -n {needed}`) or use fewer users"
    )]
    TooFewDescriptors {
        /// Descriptors needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// A processor that the generator is to run on is not there.
    #[error("failed to bind a generator thread to processor {processor}: {error}")]
    Pinning {
        /// The processor.
        processor: usize,
        /// What the kernel said.
        error: String,
    },
    /// The kernel refused what the loop needs.
    #[error("the generator's loop broke off: {0}")]
    Loop(String),
    /// Users could not get ready for the load.
    #[error("{0}")]
    Users(String),
}

/// Finds what is wrong with a workload before its system runs. With server reflection the message
/// types are known only then, so this finds nothing.
///
/// # Errors
/// Whatever [`Prepared::new`] would find.
pub fn check(workload: &Workload) -> Result<(), Vec<Remark>> {
    if matches!(workload.steps, Steps::Grpc { schema: GrpcSchema::Reflection, .. }) {
        return Ok(());
    }
    if let (Steps::Flow(flow), Some(target)) = (&workload.steps, &workload.target) {
        Plan::new(flow, target)?;
    }
    if let Steps::Script(script) = &workload.steps {
        return ScriptPlan::new(script, workload.timeout).map(|_| ());
    }
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let prepared = Prepared::new(workload, workload.target.as_ref().map(|_| nowhere));
    prepared.map(|_| ()).map_err(|PrepareError(faults)| faults.into_iter().map(Remark::new).collect())
}

/// How to offer load.
pub struct Job<'a> {
    /// The profile.
    pub load: &'a LoadProfile,
    /// Threads and their processors.
    pub generator: &'a GeneratorSpec,
    /// Seed of arrivals and think times.
    pub seed: u64,
    /// Set from outside to break off.
    pub interrupted: &'a AtomicBool,
    /// Hears where a storage workload keeps its objects, before it has any: should nobody be left
    /// to remove them, it is known where they are.
    pub on_place: &'a dyn Fn(&str),
    /// The file for the first of what scripts write to their console; without one nothing is kept.
    pub console: Option<PathBuf>,
}

/// What is known at the end, beside the intervals.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The start of the measure phase on the system's monotonic clock.
    pub zero: std::time::Instant,
    /// Length of the measure phase as it was.
    pub window: Nanos,
    /// Results of the checks over all replies, by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// The first text that came with each kind of error, by subject.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What kept the generator from doing its work: such a trial is void.
    pub faults: Vec<String>,
    /// Users that broke a limit of their script, and were stopped for good: such a trial has failed.
    pub broken: Vec<String>,
    /// What whoever reads the results should know.
    pub warnings: Vec<String>,
    /// Why users stopped before the load was over, if they did: a feed had no more rows.
    pub stopped: Option<String>,
    /// Whether it was broken off from outside.
    pub interrupted: bool,
    /// What is known of the back end, where the workload is storage.
    pub storage: Option<StorageFacts>,
    /// What users did, where the workload is SQL.
    pub sql: Option<SqlFacts>,
    /// What is known of the script, where the workload is one.
    pub script: Option<ScriptFacts>,
}

impl Prepared {
    /// Compiles the workload for a system at `address`, where it has a target. With gRPC and server reflection this asks
    /// the server for its message types; otherwise nothing is sent.
    ///
    /// # Errors
    /// Whatever is wrong with the workload: files, names, messages, certificates.
    pub fn new(workload: &Workload, address: Option<SocketAddr>) -> Result<Prepared, PrepareError> {
        let reached = workload.target.as_ref().zip(address);
        let to_server = || reached.ok_or_else(|| PrepareError(vec!["the workload has no target".to_owned()]));
        let compiled = match &workload.steps {
            Steps::Http(steps) => {
                let (target, address) = to_server()?;
                Compiled::Http(Http::new(target, steps), dialer(target, address, b"http/1.1")?)
            }
            Steps::Grpc { schema, calls } => {
                let (target, address) = to_server()?;
                let dialer = dialer(target, address, b"h2")?;
                let grpc = Grpc::new(target, schema, calls, &dialer, workload.timeout).map_err(PrepareError)?;
                Compiled::Grpc(grpc, dialer)
            }
            Steps::Storage(storage) => {
                let plan = StoragePlan::new(storage, address, workload.timeout);
                Compiled::Storage(plan.map_err(PrepareError)?)
            }
            Steps::Sql(sql) => {
                let plan = SqlPlan::new(sql, workload.timeout);
                Compiled::Sql(plan.map_err(|fault| PrepareError(vec![fault]))?)
            }
            Steps::Flow(flow) => {
                let (target, address) = to_server()?;
                let plan = Plan::new(flow, target);
                let plan = plan.map_err(PrepareError::of)?;
                Compiled::Flow(Box::new(plan), dialer(target, address, b"http/1.1")?)
            }
            Steps::Script(script) => {
                let plan = ScriptPlan::new(script, workload.timeout);
                Compiled::Script(Box::new(plan.map_err(PrepareError::of)?))
            }
        };
        Ok(Prepared { workload: workload.clone(), compiled })
    }

    /// Offers the load, handing each second over to `on_interval` when all threads have passed
    /// it, in order of time.
    ///
    /// # Errors
    /// The machine does not allow what the load needs.
    pub fn run(&self, job: &Job<'_>, on_interval: &mut dyn FnMut(Interval)) -> Result<RunRecord, RunError> {
        allow_descriptors(most_connections(&self.workload, job.load))?;
        match &self.compiled {
            Compiled::Http(http, dialer) => self.run_on_threads::<Http, _>(|_, _| http, dialer, job, on_interval),
            Compiled::Grpc(grpc, dialer) => self.run_on_threads::<Grpc, _>(|_, _| grpc, dialer, job, on_interval),
            Compiled::Storage(plan) => self.run_on_storage(plan, job, on_interval),
            Compiled::Sql(plan) => self.run_on_sql(plan, job, on_interval),
            Compiled::Flow(plan, dialer) => {
                let seed = job.seed;
                let flows = |share, clock| Flows::new(plan, share, clock, seed);
                let mut unmade = Unmade::of(&self.workload.steps);
                let mut hear = |interval: Interval| {
                    unmade.see(&interval);
                    on_interval(interval);
                };
                let mut record = self.run_on_threads::<Flows<'_>, _>(flows, dialer, job, &mut hear)?;
                record.stopped = plan.stopped();
                record.warnings.extend(unmade.warning());
                Ok(record)
            }
            Compiled::Script(plan) => plan.run(job, on_interval),
        }
    }

    /// Runs users of a back end that each have a thread.
    fn run_on_storage(
        &self,
        plan: &StoragePlan,
        job: &Job<'_>,
        on_interval: &mut dyn FnMut(Interval),
    ) -> Result<RunRecord, RunError> {
        let users = usize::try_from(most_users(job.load)).unwrap_or(usize::MAX);
        let storage = plan.crew(job.seed, users).map_err(|failure| RunError::Users(failure.detail))?;
        (job.on_place)(&storage.place());
        let run = blocking::run(&self.crew_of(&storage, users), job, on_interval);
        // Also what failed leaves objects behind.
        let facts = storage.finish();
        let (findings, clock) = run?;
        Ok(RunRecord { storage: Some(facts), ..record(findings, &self.workload.steps, job, clock) })
    }

    /// Runs users that each have a thread and a connection.
    fn run_on_sql(
        &self,
        plan: &SqlPlan,
        job: &Job<'_>,
        on_interval: &mut dyn FnMut(Interval),
    ) -> Result<RunRecord, RunError> {
        let users = usize::try_from(most_users(job.load)).unwrap_or(usize::MAX);
        let sql = plan.crew(job.seed, users).map_err(RunError::Users)?;
        let (findings, clock) = blocking::run(&self.crew_of(&sql, users), job, on_interval)?;
        let facts = sql.facts(&self.workload.steps.names());
        Ok(RunRecord { sql: Some(facts), ..record(findings, &self.workload.steps, job, clock) })
    }

    fn crew_of<C>(&self, calls: &Arc<C>, users: usize) -> Crew<'_, C> {
        let (names, timeout) = (self.workload.steps.names(), self.workload.timeout);
        Crew { calls: Arc::clone(calls), names, timeout, grace: GRACE, users }
    }

    /// Runs users of a protocol, made for each thread on that thread.
    fn run_on_threads<P: Protocol, B: Borrow<P>>(
        &self,
        protocol: impl Fn(Share, Clock) -> B + Sync,
        dialer: &Dialer,
        job: &Job<'_>,
        on_interval: &mut dyn FnMut(Interval),
    ) -> Result<RunRecord, RunError> {
        let names = self.workload.steps.names();
        let threads = job.generator.threads.min(most_threads(&self.workload, job.load)).max(1);
        let (offering, interrupted) = (offering(job), job.interrupted);
        let pot = Pot::of(&offering);
        let window_end = Instant(nanos(job.load.stop.limit()));
        let clock = Clock::start(job.load.warmup);
        let findings = on_threads(threads, job.generator.cpus.as_ref(), on_interval, |share, handover| {
            let protocol = protocol(share, clock);
            let offer = Offer::new(&offering, &pot, share);
            let task = self.task(protocol.borrow(), dialer, share, offering.seed);
            let recorder = Recorder::new(&names, offer.is_open(), clock.first(), window_end, share.index, handover);
            let broke = |error: Errno| RunError::Loop(error.to_string());
            let core = Core::new(clock, recorder, vec![offer], interrupted).map_err(broke)?;
            let mut users = Users::new(task, core.users());
            engine::run(core, &mut users).map_err(broke)
        })?;
        Ok(record(findings, &self.workload.steps, job, clock))
    }

    fn task<'a, P: Protocol>(&self, protocol: &'a P, dialer: &Dialer, share: Share, seed: u64) -> Task<'a, P> {
        Task {
            protocol,
            connect: self.workload.connect,
            connect_timeout: self.workload.timeout.into(),
            timeouts: timeouts(&self.workload),
            dialer: dialer.clone(),
            share,
            seed,
        }
    }
}

/// Runs a part of the load on each of so many threads, and gathers what they hand over.
pub(crate) fn on_threads(
    threads: usize,
    cpus: Option<&Processors>,
    on_interval: &mut dyn FnMut(Interval),
    generate: impl Fn(Share, Sender<Handover>) -> Result<(), RunError> + Sync,
) -> Result<Vec<Findings>, RunError> {
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                let (sender, generate) = (sender.clone(), &generate);
                scope.spawn(move || {
                    settle(cpus, index)?;
                    generate(Share { index, of: threads }, sender)
                })
            })
            .collect();
        drop(sender);
        let mut collector = Collector::new(threads);
        receiver.into_iter().for_each(|handover| collector.take(handover, on_interval));
        let findings = collector.finish(on_interval);
        let results = handles.into_iter().map(|thread| thread.join().expect("a generator thread does not panic"));
        results.collect::<Result<Vec<()>, RunError>>().map(|_| findings)
    })
}

/// A study's load, as one offer.
fn offering(job: &Job<'_>) -> Offering {
    let LoadProfile { model, warmup, stop, drain } = job.load.clone();
    Offering { model, stop, start: Instant(0), warmup, drain, leave: None, as_k6: None, seed: job.seed }
}

/// What makes connections to `address`, with the target's encryption.
fn dialer(target: &Target, address: SocketAddr, application: &[u8]) -> Result<Dialer, PrepareError> {
    let tls = target.tls.as_ref().map(|tls| tls::configure(target, tls, &[application]));
    let tls = tls.transpose().map_err(|fault| PrepareError(vec![fault]))?;
    Ok(Dialer { address, tls })
}

/// The longest that an exchange of each step may take: a gRPC deadline can be shorter than the
/// workload's time-out.
fn timeouts(workload: &Workload) -> Vec<Nanos> {
    match &workload.steps {
        Steps::Http(steps) => steps.iter().map(|_| workload.timeout.into()).collect(),
        Steps::Grpc { calls, .. } => {
            calls.iter().map(|call| call.deadline.unwrap_or(workload.timeout).min(workload.timeout).into()).collect()
        }
        Steps::Storage(_) | Steps::Sql(_) | Steps::Flow(_) | Steps::Script(_) => {
            workload.steps.names().iter().map(|_| workload.timeout.into()).collect()
        }
    }
}

/// Users that can be at work at once.
fn most_users(load: &LoadProfile) -> u64 {
    match &load.model {
        LoadModel::Closed { users, .. } => users.peak().ceil() as u64,
        LoadModel::Open { max_users, .. } => u64::from(*max_users),
    }
}

fn most_connections(workload: &Workload, load: &LoadProfile) -> u64 {
    match workload.connect {
        Connect::PerUser | Connect::PerIteration => most_users(load),
        Connect::Shared(count) => u64::from(count),
    }
}

/// More threads than users or connections would leave some without work.
fn most_threads(workload: &Workload, load: &LoadProfile) -> usize {
    usize::try_from(most_users(load).min(most_connections(workload, load))).unwrap_or(usize::MAX)
}

/// Raises the soft limit of open files as far as the load needs and the hard limit allows.
pub(crate) fn allow_descriptors(connections: u64) -> Result<(), RunError> {
    let needed = connections + SPARE_DESCRIPTORS;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(maximum) = limit.maximum
        && maximum < needed
    {
        return Err(RunError::TooFewDescriptors { needed, limit: maximum });
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|error| RunError::Loop(error.to_string()))
}

/// Binds the thread to its processor and asks for wake-ups as exact as the kernel has them.
pub(crate) fn settle(cpus: Option<&Processors>, index: usize) -> Result<(), RunError> {
    // The default slack lets the kernel wake the thread 50 µs late to save a wake-up.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(|error| RunError::Loop(error.to_string()))?;
    let Some(Processors(cpus)) = cpus.filter(|cpus| !cpus.0.is_empty()) else { return Ok(()) };
    let processor = cpus[index % cpus.len()];
    let mut set = rustix::thread::CpuSet::new();
    let bound = if processor < rustix::thread::CpuSet::MAX_CPU {
        set.set(processor);
        rustix::thread::sched_setaffinity(None, &set)
    } else {
        Err(rustix::io::Errno::INVAL)
    };
    bound.map_err(|error| RunError::Pinning { processor, error: error.to_string() })
}

/// Merges the seconds of all threads, and hands each on when the last thread has passed it.
pub(crate) struct Collector {
    pending: BTreeMap<i64, Interval>,
    /// The last second that each thread has passed.
    passed: Vec<i64>,
    findings: Vec<Findings>,
}

impl Collector {
    pub(crate) fn new(threads: usize) -> Collector {
        Collector { pending: BTreeMap::new(), passed: vec![i64::MIN; threads], findings: Vec::new() }
    }

    /// Takes what a thread hands over.
    pub(crate) fn take(&mut self, handover: Handover, on_interval: &mut dyn FnMut(Interval)) {
        match handover {
            Handover::Interval(thread, interval) => {
                let second = interval.second;
                self.passed[thread] = second;
                let merged = self.pending.entry(second).or_insert_with(|| Interval { second, ..Interval::default() });
                merged.merge(&interval);
            }
            Handover::Finished(thread, found) => {
                self.passed[thread] = i64::MAX;
                self.findings.push(*found);
            }
        }
        let all_passed = self.passed.iter().copied().min().unwrap_or(i64::MAX);
        while let Some(entry) = self.pending.first_entry()
            && *entry.key() <= all_passed
        {
            on_interval(entry.remove());
        }
    }

    /// A thread that broke off leaves seconds behind that the others have finished.
    pub(crate) fn finish(self, on_interval: &mut dyn FnMut(Interval)) -> Vec<Findings> {
        self.pending.into_values().for_each(on_interval);
        self.findings
    }
}

pub(crate) fn record(findings: Vec<Findings>, steps: &Steps, job: &Job<'_>, clock: Clock) -> RunRecord {
    let limit = nanos(job.load.stop.limit());
    let last_done = findings.iter().filter_map(|found| found.last_done).max();
    let all_stopped = findings.iter().all(|found| found.all_stopped);
    let window = match job.load.stop {
        Stop::After(_) if !all_stopped => limit,
        // The phase ends with the last iteration, unless time ran out first.
        _ => last_done.map_or(limit, |at| at.0.clamp(1, limit)),
    };
    let mut examples: BTreeMap<String, BTreeMap<ErrorKind, String>> = BTreeMap::new();
    for (subject, kinds) in findings.iter().flat_map(|found| &found.examples) {
        let known = examples.entry(subject.clone()).or_default();
        kinds.iter().for_each(|(kind, text)| {
            known.entry(*kind).or_insert_with(|| text.clone());
        });
    }
    let interrupted = job.interrupted.load(Ordering::Relaxed);
    // Threads may have found the same.
    let warnings: BTreeSet<&String> = findings.iter().flat_map(|found| &found.warnings).collect();
    let warnings = warnings.into_iter().cloned().collect();
    RunRecord {
        zero: clock.zero(),
        window: Nanos(window.unsigned_abs()),
        sequences: sequences(&findings, steps),
        error_examples: examples,
        faults: findings.into_iter().flat_map(|found| found.faults).collect(),
        broken: Vec::new(),
        warnings,
        stopped: None,
        interrupted,
        storage: None,
        sql: None,
        script: None,
    }
}

fn sequences(findings: &[Findings], steps: &Steps) -> BTreeMap<String, SequenceCheck> {
    let Steps::Grpc { calls, .. } = steps else { return BTreeMap::new() };
    let checked = calls.iter().enumerate().filter(|(_, call)| call.sequence.is_some());
    checked
        .map(|(step, call)| {
            let mut whole = crate::sequence::SequenceRecorder::default();
            findings.iter().for_each(|found| whole.merge(&found.sequences[step]));
            (call.name.clone(), whole.check())
        })
        .collect()
}
