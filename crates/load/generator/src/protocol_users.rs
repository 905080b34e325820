//! Users of a protocol, on the threads of the event loop.

use plimsoll_engine::clock::Clock;
use plimsoll_engine::event_loop::context::{LaterLoad, LoopContext};
use plimsoll_engine::event_loop::{self, Task, Users};
use plimsoll_engine::job::{Jobs, LocalJob};
use plimsoll_engine::offer::{Offer, Offering, SharedQuota};
use plimsoll_engine::protocol::Protocol;
use plimsoll_engine::recorder::{Recorder, ThreadReport};
use plimsoll_engine::schedule::ThreadShare;
use plimsoll_engine::threads::{ThreadLoad, ThreadSeries, on_threads_in_series};
use plimsoll_engine::transport::Dialer;
use plimsoll_model::job::{Job, JobError, JobRecord, Report};
use plimsoll_model::load::{LoadModel, Share};
use plimsoll_model::record::Interval;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::{Connect, Steps, Workload};
use rustix::io::Errno;
use std::borrow::Borrow;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};

/// Users that follow a workload under the loads of jobs.
#[derive(Clone, Copy)]
pub(crate) struct ProtocolUsers<'a> {
    pub(crate) workload: &'a Workload,
    /// The first job.
    pub(crate) job: &'a Job,
    pub(crate) interrupted: &'a AtomicBool,
}

/// What the threads of the generator are told of a job.
#[derive(Clone)]
struct Load {
    offering: Offering,
    quota: SharedQuota,
    clock: Clock,
    stays: bool,
}

impl Load {
    fn of(local: LocalJob<'_>) -> Result<Load, JobError> {
        let LocalJob { job, steering, interrupted } = local;
        let offering = Offering::of(job).steered(steering.clone());
        let quota = SharedQuota::of(&offering, job.share);
        let clock = Clock::when_ready(job.begin, steering, job.load.warmup, interrupted)?;
        Ok(Load { offering, quota, clock, stays: job.stays })
    }

    fn recorder(&self, names: &[&str], thread: usize, reports: Sender<ThreadReport>) -> Recorder {
        let is_open = matches!(self.offering.model, LoadModel::Open { .. });
        let window_end = self.offering.start.after(self.offering.stop.limit().into());
        Recorder::new(names, is_open, self.clock.first(), window_end, thread, reports)
    }
}

impl ProtocolUsers<'_> {
    /// Runs the jobs. `protocol` makes the users' protocol on each thread, for its share of the load. Each record goes
    /// through `finish`.
    pub(crate) fn run<P: Protocol, B: Borrow<P>>(
        self,
        protocol: impl Fn(Share, Clock) -> B + Sync,
        dialer: &Dialer,
        jobs: &mut dyn Jobs,
        finish: impl Fn(&Job, JobRecord) -> JobRecord,
    ) -> Result<(), JobError> {
        let ProtocolUsers { workload, job, interrupted } = self;
        let names = workload.steps.names();
        let broke = |error: Errno| JobError::Loop(error.to_string());
        let follow = |part: ThreadShare, loads: Receiver<ThreadLoad<Load>>| {
            let Ok(ThreadLoad { load, reports }) = loads.recv() else { return Ok(()) };
            let share = part.share();
            let protocol = protocol(share, load.clock);
            let offer = Offer::new(&load.offering, &load.quota, part);
            let recorder = load.recorder(&names, part.thread, reports);
            let context = LoopContext::new(load.clock, recorder, vec![offer], interrupted).map_err(broke)?;
            let mut context = context.staying(load.stays);
            let mut users = Users::new(task(workload, protocol.borrow(), dialer, share, job.seed), context.users());
            event_loop::run(&mut context, &mut users).map_err(broke)?;
            for ThreadLoad { load, reports } in loads {
                let recorder = load.recorder(&names, part.thread, reports);
                let Load { offering, quota, clock, stays } = &load;
                let (clock, stays) = (*clock, *stays);
                context.go_on(LaterLoad { clock, recorder, offering, quota, part, stays }, &mut users);
                event_loop::run(&mut context, &mut users).map_err(broke)?;
            }
            Ok(())
        };
        let mut late = None;
        let lead = |series: &ThreadSeries<Load>| {
            let mut next = Some(job.clone());
            while let Some(job) = next {
                let local = LocalJob { job: &job, steering: &jobs.steering(), interrupted };
                let load = match Load::of(local) {
                    Ok(load) => load,
                    Err(error) => return late = Some(error),
                };
                let zero = load.clock.unix(Instant(0));
                let on_interval =
                    &mut |interval: Interval| jobs.report(Report::Second { zero, interval: Box::new(interval) });
                let Some(findings) = series.offer(&load, on_interval) else { return };
                jobs.ended(finish(&job, local.record(findings, &workload.steps, load.clock)));
                next = if job.stays { jobs.next() } else { None };
            }
        };
        on_threads_in_series(job.share, self.threads(), job.generator.cpus.as_ref(), follow, lead)?;
        late.map_or(Ok(()), Err)
    }

    /// Threads to run on: with more threads than users or connections, some would have no work.
    fn threads(self) -> usize {
        let useful = self.job.users().min(self.most_connections());
        self.job.generator.threads.min(usize::try_from(useful).unwrap_or(usize::MAX)).max(1)
    }

    /// The connections that this machine's share of the load can have at once, without sockets.
    fn most_connections(self) -> u64 {
        match self.workload.connect {
            Connect::PerUser | Connect::PerIteration => self.job.users(),
            Connect::Shared(count) => self.job.share.of_first(u64::from(count)),
        }
    }

    /// The descriptors that it needs, for sockets too.
    pub(crate) fn most_descriptors(self) -> u64 {
        self.workload.most_connections(self.job.users(), |count| self.job.share.of_first(u64::from(count)))
    }
}

fn task<'a, P: Protocol>(
    workload: &Workload,
    protocol: &'a P,
    dialer: &Dialer,
    share: Share,
    seed: u64,
) -> Task<'a, P> {
    Task {
        protocol,
        connect: workload.connect,
        connect_timeout: workload.timeout.into(),
        timeouts: timeouts(workload),
        dialer: dialer.clone(),
        share,
        seed,
    }
}

/// The longest that an exchange of each step may take: a gRPC deadline can be shorter than the
/// workload's time-out.
fn timeouts(workload: &Workload) -> Vec<Nanos> {
    match &workload.steps {
        Steps::Grpc { calls, .. } => {
            calls.iter().map(|call| call.deadline.unwrap_or(workload.timeout).min(workload.timeout).into()).collect()
        }
        steps => steps.names().iter().map(|_| workload.timeout.into()).collect(),
    }
}
