//! A prepared workload: compiled once, then run by the engine, in one job or in several with the same users.

use crate::protocol_users::ProtocolUsers;
use plimsoll_engine::blocking::BlockingUsers;
use plimsoll_engine::diagnostic::WorkloadDiagnostic;
use plimsoll_engine::job::{Jobs, LocalJob, Steering};
use plimsoll_engine::threads::allow_descriptors;
use plimsoll_engine::tls;
use plimsoll_engine::transport::Dialer;
use plimsoll_model::job::{Job, JobError, JobRecord, Report, WorkFacts};
use plimsoll_model::workload::{GrpcSchema, Steps, Target, Workload};
use plimsoll_protocols::flow::{CompiledFlow, Flows, UnreachedSteps};
use plimsoll_protocols::grpc::Grpc;
use plimsoll_protocols::http::Http;
use plimsoll_scripts::study::CompiledScript;
use plimsoll_sql_users::CompiledSql;
use plimsoll_storage::CompiledStorage;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// A workload that is ready to be run.
pub struct Prepared {
    workload: Workload,
    compiled: Compiled,
}

enum Compiled {
    Http(Http, Dialer),
    Grpc(Grpc, Dialer),
    Flow(Box<CompiledFlow>, Dialer),
    Script(Box<CompiledScript>),
    Storage(CompiledStorage),
    Sql(CompiledSql),
}

/// One job and no other.
struct OnlyJob<'a> {
    job: Option<Job>,
    reports: &'a mut dyn FnMut(Report),
    record: Option<JobRecord>,
}

impl Jobs for OnlyJob<'_> {
    fn next(&mut self) -> Option<Job> {
        self.job.take()
    }

    fn report(&mut self, report: Report) {
        (self.reports)(report);
    }

    fn ended(&mut self, record: JobRecord) {
        self.record = Some(record);
    }
}

/// Why a workload cannot be run: every reason that could be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct PrepareError(pub Vec<String>);

impl PrepareError {
    fn of(faults: Vec<WorkloadDiagnostic>) -> PrepareError {
        PrepareError(faults.into_iter().map(|fault| fault.what).collect())
    }
}

/// Finds what is wrong with a workload before its system runs. With server reflection this finds nothing: only the
/// system knows the message types.
///
/// # Errors
/// Every fault that [`Prepared::new`] would find.
pub fn check(workload: &Workload) -> Result<(), Vec<WorkloadDiagnostic>> {
    if matches!(workload.steps, Steps::Grpc { schema: GrpcSchema::Reflection, .. }) {
        return Ok(());
    }
    if let (Steps::Flow(flow), Some(target)) = (&workload.steps, &workload.target) {
        CompiledFlow::new(flow, target)?;
    }
    if let Steps::Script(script) = &workload.steps {
        return CompiledScript::new(script, workload.timeout).map(|_| ());
    }
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let prepared = Prepared::new(workload, workload.target.as_ref().map(|_| nowhere));
    let diagnostics = |faults: Vec<String>| faults.into_iter().map(WorkloadDiagnostic::new).collect();
    prepared.map(|_| ()).map_err(|PrepareError(faults)| diagnostics(faults))
}

impl Prepared {
    /// Compiles the workload for a system at `address`, where it has a target. With gRPC and server reflection this asks
    /// the server for its message types; otherwise nothing is sent.
    ///
    /// # Errors
    /// Everything that is wrong with the workload: files, names, messages, certificates.
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
            Steps::Flow(flow) => {
                let (target, address) = to_server()?;
                let flow = CompiledFlow::new(flow, target).map_err(PrepareError::of)?;
                Compiled::Flow(Box::new(flow), dialer(target, address, b"http/1.1")?)
            }
            Steps::Script(script) => {
                let script = CompiledScript::new(script, workload.timeout).map_err(PrepareError::of)?;
                Compiled::Script(Box::new(script))
            }
            Steps::Storage(storage) => {
                let storage = CompiledStorage::new(storage, address, workload.timeout);
                Compiled::Storage(storage.map_err(PrepareError)?)
            }
            Steps::Sql(sql) => {
                let sql = CompiledSql::new(sql, workload.timeout);
                Compiled::Sql(sql.map_err(|fault| PrepareError(vec![fault]))?)
            }
        };
        Ok(Prepared { workload: workload.clone(), compiled })
    }

    /// Offers the load of one job, until it is over or `interrupted` is set. Each second is reported when all threads
    /// have passed it, in order of time.
    ///
    /// # Errors
    /// The machine does not allow what the load needs.
    pub fn run(
        &self,
        job: &Job,
        interrupted: &AtomicBool,
        reports: &mut dyn FnMut(Report),
    ) -> Result<JobRecord, JobError> {
        let mut only = OnlyJob { job: Some(job.clone()), reports, record: None };
        self.run_all(&mut only, interrupted)?;
        only.record.ok_or_else(|| JobError::Loop("the job ended without a record".to_owned()))
    }

    /// Offers the loads of jobs, one after the other, until there are no more, or one has users that do not stay.
    ///
    /// # Errors
    /// The machine does not allow what a load needs. No further job is run.
    pub fn run_all(&self, jobs: &mut dyn Jobs, interrupted: &AtomicBool) -> Result<(), JobError> {
        let Some(job) = jobs.next() else { return Ok(()) };
        let users = ProtocolUsers { workload: &self.workload, job: &job, interrupted };
        allow_descriptors(users.most_descriptors())?;
        let as_it_is = |_: &Job, record| record;
        match &self.compiled {
            Compiled::Http(http, dialer) => users.run::<Http, _>(|_, _| http, dialer, jobs, as_it_is),
            Compiled::Grpc(grpc, dialer) => users.run::<Grpc, _>(|_, _| grpc, dialer, jobs, as_it_is),
            Compiled::Flow(flow, dialer) => run_flow(flow, dialer, users, jobs),
            Compiled::Sql(sql) => self.run_sql(sql, job, jobs, interrupted),
            Compiled::Script(script) => script.run(&job, jobs, interrupted),
            Compiled::Storage(storage) => {
                in_turn(job, jobs, interrupted, |local, reports| self.run_storage(storage, local, reports))
            }
        }
    }

    /// Runs one job with new users, because those of storage do not stay.
    fn run_storage(
        &self,
        storage: &CompiledStorage,
        local: LocalJob<'_>,
        reports: &mut dyn FnMut(Report),
    ) -> Result<JobRecord, JobError> {
        let job = local.job;
        let users = storage.users(job.seed, job.users()).map_err(|failure| JobError::Users(failure.detail))?;
        reports(Report::ObjectsPlaced(users.place()));
        let mut threads = BlockingUsers::new(&users, &self.workload, job);
        let run = threads.run(local, reports);
        // Users let go of their files before the objects are removed.
        drop(threads);
        // A run that failed leaves objects too.
        let facts = users.finish();
        let (findings, clock) = run?;
        let facts = WorkFacts::Storage(Box::new(facts));
        Ok(JobRecord { facts, ..local.record(findings, &self.workload.steps, clock) })
    }

    fn run_sql(
        &self,
        sql: &CompiledSql,
        first: Job,
        jobs: &mut dyn Jobs,
        interrupted: &AtomicBool,
    ) -> Result<(), JobError> {
        let workload = sql.users(first.seed, first.share).map_err(JobError::Users)?;
        let mut users = BlockingUsers::new(&workload, &self.workload, &first);
        let (steps, has_others) = (&self.workload.steps, first.share.of > 1);
        in_turn(first, jobs, interrupted, |local, reports| {
            let (findings, clock) = users.run(local, reports)?;
            let facts = WorkFacts::Sql(Box::new(workload.facts(&steps.names(), has_others)));
            Ok(JobRecord { facts, ..local.record(findings, steps, clock) })
        })
    }
}

/// Runs the first job and those that follow it, until there are no more, or one has users that do not stay.
fn in_turn(
    first: Job,
    jobs: &mut dyn Jobs,
    interrupted: &AtomicBool,
    mut run: impl FnMut(LocalJob<'_>, &mut dyn FnMut(Report)) -> Result<JobRecord, JobError>,
) -> Result<(), JobError> {
    let mut next = Some(first);
    while let Some(job) = next {
        let local = LocalJob { job: &job, steering: &jobs.steering(), interrupted };
        let record = run(local, &mut |report| jobs.report(report))?;
        jobs.ended(record);
        next = if job.stays { jobs.next() } else { None };
    }
    Ok(())
}

fn run_flow(
    flow: &CompiledFlow,
    dialer: &Dialer,
    users: ProtocolUsers<'_>,
    jobs: &mut dyn Jobs,
) -> Result<(), JobError> {
    let seed = users.job.seed;
    let flows = |share, clock| Flows::new(flow, share, clock, seed);
    let unreached = RefCell::new(UnreachedSteps::of(&users.workload.steps));
    let mut observed = ObservedJobs { jobs, unreached: &unreached };
    users.run::<Flows<'_>, _>(flows, dialer, &mut observed, |job, mut record| {
        record.stopped = flow.stopped();
        record.warnings.extend(flow.take_warnings());
        // Users that stay may reach a step later.
        record.warnings.extend(unreached.borrow().warning().filter(|_| !job.stays));
        record
    })
}

/// Jobs of a flow, whose steps are watched.
struct ObservedJobs<'a, 'b> {
    jobs: &'a mut dyn Jobs,
    unreached: &'a RefCell<UnreachedSteps<'b>>,
}

impl Jobs for ObservedJobs<'_, '_> {
    fn next(&mut self) -> Option<Job> {
        self.jobs.next()
    }

    fn report(&mut self, report: Report) {
        if let Report::Second { interval, .. } = &report {
            self.unreached.borrow_mut().observe(interval);
        }
        self.jobs.report(report);
    }

    fn ended(&mut self, record: JobRecord) {
        self.jobs.ended(record);
    }

    fn steering(&self) -> Steering {
        self.jobs.steering()
    }
}

/// Makes connections to `address`, with the target's encryption.
fn dialer(target: &Target, address: SocketAddr, application: &[u8]) -> Result<Dialer, PrepareError> {
    let tls = target.tls.as_ref().map(|tls| tls::configure(target, tls, &[application]));
    let tls = tls.transpose().map_err(|fault| PrepareError(vec![fault]))?;
    Ok(Dialer { address, tls })
}
