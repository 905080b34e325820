//! From a workload to its records: compiled once, then run by the engine.

use plimsoll_engine::blocking::{self, Crew};
use plimsoll_engine::clock::{Clock, nanos};
use plimsoll_engine::diagnostic::Remark;
use plimsoll_engine::event_loop::core::Core;
use plimsoll_engine::event_loop::offer::{Offer, Offering, Pot};
use plimsoll_engine::event_loop::{self, Task, Users};
use plimsoll_engine::job::{Job, RunError, RunRecord, record};
use plimsoll_engine::protocol::Protocol;
use plimsoll_engine::recorder::Recorder;
use plimsoll_engine::schedule::Share;
use plimsoll_engine::threads::{allow_descriptors, on_threads};
use plimsoll_engine::tls;
use plimsoll_engine::transport::Dialer;
use plimsoll_model::load::{LoadModel, LoadProfile};
use plimsoll_model::record::Interval;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::{Connect, GrpcSchema, Steps, Target, Workload};
use plimsoll_protocols::flow::{Flows, Plan, Unmade};
use plimsoll_protocols::grpc::Grpc;
use plimsoll_protocols::http::Http;
use plimsoll_scripts::study::ScriptPlan;
use plimsoll_storage::StoragePlan;
use plimsoll_terminals::SqlPlan;
use rustix::io::Errno;
use std::borrow::Borrow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
            event_loop::run(core, &mut users).map_err(broke)
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
