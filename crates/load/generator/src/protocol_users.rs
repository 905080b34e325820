//! Users of a protocol, on the threads of the event loop.

use plimsoll_engine::clock::Clock;
use plimsoll_engine::event_loop::context::LoopContext;
use plimsoll_engine::event_loop::{self, Task, Users};
use plimsoll_engine::job::LocalJob;
use plimsoll_engine::offer::{Offer, Offering, SharedQuota};
use plimsoll_engine::protocol::Protocol;
use plimsoll_engine::recorder::Recorder;
use plimsoll_engine::threads::on_threads;
use plimsoll_engine::transport::Dialer;
use plimsoll_model::job::{JobError, JobRecord, Report};
use plimsoll_model::load::Share;
use plimsoll_model::record::Interval;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::{Connect, Steps, Workload};
use rustix::io::Errno;
use std::borrow::Borrow;

/// Users that follow a workload under the load of a job.
#[derive(Clone, Copy)]
pub(crate) struct ProtocolUsers<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) local: LocalJob<'a>,
}

impl ProtocolUsers<'_> {
    /// Runs the users. `protocol` makes their protocol on each thread, for its share of the load.
    pub(crate) fn run<P: Protocol, B: Borrow<P>>(
        self,
        protocol: impl Fn(Share, Clock) -> B + Sync,
        dialer: &Dialer,
        reports: &mut dyn FnMut(Report),
    ) -> Result<JobRecord, JobError> {
        let ProtocolUsers { workload, local } = self;
        let LocalJob { job, interrupted } = local;
        let names = workload.steps.names();
        let offering = Offering::of(job);
        let quota = SharedQuota::of(&offering, job.share);
        let window_end = offering.start.after(offering.stop.limit().into());
        let clock = Clock::start_at(job.begin, job.load.warmup, interrupted)?;
        let (cpus, seed, zero) = (job.generator.cpus.as_ref(), job.seed, clock.unix(Instant(0)));
        let on_interval = &mut |interval: Interval| reports(Report::Second { zero, interval: Box::new(interval) });
        let findings = on_threads(job.share, self.threads(), cpus, on_interval, |part, report| {
            let share = part.share();
            let protocol = protocol(share, clock);
            let offer = Offer::new(&offering, &quota, part);
            let recorder = Recorder::new(&names, offer.is_open(), clock.first(), window_end, part.thread, report);
            let broke = |error: Errno| JobError::Loop(error.to_string());
            let context = LoopContext::new(clock, recorder, vec![offer], interrupted).map_err(broke)?;
            let mut users = Users::new(task(workload, protocol.borrow(), dialer, share, seed), context.users());
            event_loop::run(context, &mut users).map_err(broke)
        })?;
        Ok(local.record(findings, &workload.steps, clock))
    }

    /// Threads to run on: with more threads than users or connections, some would have no work.
    fn threads(self) -> usize {
        let useful = self.local.job.users().min(self.most_connections());
        self.local.job.generator.threads.min(usize::try_from(useful).unwrap_or(usize::MAX)).max(1)
    }

    /// The connections that this machine's share of the load can have at once.
    pub(crate) fn most_connections(self) -> u64 {
        match self.workload.connect {
            Connect::PerUser | Connect::PerIteration => self.local.job.users(),
            Connect::Shared(count) => self.local.job.share.of_first(u64::from(count)),
        }
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
