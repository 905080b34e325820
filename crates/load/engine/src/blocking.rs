//! Users whose calls block: file operations, and clients without a non-blocking interface. Each user is a thread of its
//! own.
//!
//! A call is timed on the thread that makes it, without a queue or a thread pool between. Each user ([`user`]) writes
//! its calls into a log ([`log`]). One more thread, the [`supervisor`], files the logs, ends the seconds, and notices
//! calls that hang. A thread that hangs in the kernel cannot be ended: it is left behind, and the trial is void.
//!
//! Users that stay from job to job get a new thread for each: their state between two jobs is a [`KeptUser`].

mod call;
mod log;
mod supervisor;
mod user;

pub use crate::protocol::Failure;
pub use call::Call;

use crate::clock::{Clock, nanos};
use crate::job::LocalJob;
use crate::offer::{Arrivals, Offering, Quota, SharedQuota};
use crate::recorder::{Findings, Recorder, ThreadReport};
use crate::schedule::Random;
use log::{SharedLog, SharedRecorder, UserLog};
use plimsoll_model::job::{Job, JobError, Report};
use plimsoll_model::load::{LoadModel, Profile, Share, Think};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Workload;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use supervisor::Supervisor;
use user::{KeptUser, UserThread};

/// How long a call may take to return after its time is up, before it counts as hung.
const GRACE: Duration = Duration::from_secs(5);

/// How often users check for an interruption.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// The work of blocking users, one call at a time.
pub trait BlockingWorkload: Send + Sync + 'static {
    /// The state of one user.
    type User: Send + 'static;

    /// Makes the user of this number, from 0 among all users of the load, on the user's own thread and before the clock
    /// starts. `over` is set when all calls must stop.
    ///
    /// # Errors
    /// The user cannot be made ready.
    fn user(&self, number: u32, over: &Arc<AtomicBool>) -> Result<Self::User, Failure>;

    /// The progress of users that are getting ready: a number that grows. Users that take longer than a time-out need it.
    fn readied(&self) -> u64 {
        0
    }

    /// Begins an iteration. Returns its steps.
    fn begin_iteration(&self, user: &mut Self::User, random: &mut Random) -> Range<usize>;

    /// The pauses of the user before the iteration that it has begun, and after it. Neither is part of the iteration.
    /// In open load they are ignored, because arrivals alone determine when iterations begin.
    fn pauses(&self, _user: &Self::User) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }

    /// Prepares the call of a step, untimed.
    ///
    /// # Errors
    /// The call cannot be made: the step fails.
    fn before_call(&self, user: &mut Self::User, step: usize) -> Result<(), Failure>;

    /// Makes the call of a step.
    ///
    /// # Errors
    /// The step fails.
    fn call(&self, user: &mut Self::User, step: usize, call: &mut Call) -> Result<(), Failure>;

    /// Ends an iteration, untimed.
    fn end_iteration(&self, user: &mut Self::User);

    /// The load is over. The user may stay for the next one.
    fn load_ended(&self, _user: &mut Self::User) {}
}

/// Users whose calls block, each on a thread of its own.
pub struct BlockingUsers<'a, W: BlockingWorkload> {
    /// The work that they do.
    pub workload: Arc<W>,
    /// The names of the steps.
    pub names: Vec<&'a str>,
    /// The longest that a call may take.
    pub timeout: Duration,
    /// How long a call may take to return after its time is up, before it counts as hung.
    pub grace: Duration,
    /// Set when all calls must stop. Users that stay keep it.
    over: Arc<AtomicBool>,
    /// The users of this machine, by their index. None if one has no state yet: its thread makes it.
    users: Vec<Option<KeptUser<W::User>>>,
    /// Arrivals that no user began before the end of the last load: how long before that end they were due.
    waiting: Vec<Nanos>,
}

/// The state that the threads of a run share.
struct Shared {
    /// Set when every user is ready: then the load begins.
    clock: OnceLock<Clock>,
    source: Source,
    quota: Quota,
    /// Iterations that each user may begin; `u64::MAX` for no limit.
    quota_of_user: u64,
    /// Iterations count from the start of this span; none begins after its end.
    window: Range<Instant>,
    share: Share,
    /// True if the users stay for another load.
    stays: bool,
    steps: usize,
    timeout: Duration,
    /// Set when all calls must stop.
    over: Arc<AtomicBool>,
    seed: u64,
    logs: Vec<SharedLog>,
    /// None before the load, and after the last record is filed.
    recorder: Mutex<Option<SharedRecorder>>,
}

/// The source of iterations.
enum Source {
    /// Users start the next one themselves.
    Closed { users: Profile, think: Think },
    /// Iterations arrive; any free user takes the next one.
    Open(Mutex<Arrivals>),
}

impl<'a, W: BlockingWorkload> BlockingUsers<'a, W> {
    /// The users of a job, with the steps of `of`.
    #[must_use]
    pub fn new(workload: &Arc<W>, of: &'a Workload, job: &Job) -> BlockingUsers<'a, W> {
        BlockingUsers {
            workload: Arc::clone(workload),
            names: of.steps.names(),
            timeout: of.timeout,
            grace: GRACE,
            over: Arc::default(),
            users: (0..job.users()).map(|_| None).collect(),
            waiting: Vec::new(),
        }
    }

    /// Runs the users, reporting each second. If the job stays, they go on with the next one where they were.
    ///
    /// # Errors
    /// Users cannot get ready.
    pub fn run(
        &mut self,
        local: LocalJob<'_>,
        reports: &mut dyn FnMut(Report),
    ) -> Result<(Vec<Findings>, Clock), JobError> {
        let LocalJob { job, steering, interrupted } = local;
        self.over.store(false, Ordering::Relaxed);
        let shared = Arc::new(Shared::new(self, job));
        let (ready, readiness) = channel();
        let threads: Vec<_> = self
            .users
            .iter_mut()
            .enumerate()
            .map(|(index, kept)| {
                let (workload, shared) = (Arc::clone(&self.workload), Arc::clone(&shared));
                let user = UserThread { index, workload, shared, kept: kept.take() };
                let (ready, cpus) = (ready.clone(), job.generator.cpus.clone());
                std::thread::spawn(move || user.run(cpus.as_ref(), &ready))
            })
            .collect();
        drop(ready);
        let patience = self.timeout + self.grace;
        let readied = || self.workload.readied();
        let ready = wait_until_ready(&readiness, threads.len(), (patience, &readied), interrupted);
        let start = |()| Clock::when_ready(job.begin, steering, job.load.warmup, interrupted);
        let clock = ready.and_then(start);
        let clock = clock.inspect_err(|_| {
            shared.over.store(true, Ordering::Relaxed);
            threads.iter().for_each(|thread| thread.thread().unpark());
            // Whatever they write after the clean-up would be left behind.
            wait_for_threads(&threads, self.grace);
        })?;
        let receiver = shared.open_logs(&self.names, clock);
        shared.clock.set(clock).expect("the clock starts once");
        threads.iter().for_each(|thread| thread.thread().unpark());
        let ended =
            Supervisor { shared: &shared, job: local, names: &self.names, grace: self.grace, clock, receiver, threads }
                .run(reports);
        (self.users, self.waiting) = (ended.users, ended.waiting);
        Ok((ended.findings, clock))
    }
}

/// Waits until all threads have ended, or the grace is over.
fn wait_for_threads<T>(threads: &[JoinHandle<T>], grace: Duration) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < grace && !threads.iter().all(JoinHandle::is_finished) {
        std::thread::sleep(POLL_EVERY);
    }
}

/// Waits until every user is ready, for as long as they get on with it.
fn wait_until_ready(
    readiness: &Receiver<Result<(), JobError>>,
    users: usize,
    (patience, readied): (Duration, &dyn Fn() -> u64),
    interrupted: &AtomicBool,
) -> Result<(), JobError> {
    let mut waited = Duration::ZERO;
    let (mut ready, mut before) = (0, 0);
    while ready < users && !interrupted.load(Ordering::Relaxed) {
        match readiness.recv_timeout(POLL_EVERY) {
            Ok(result) => {
                result?;
                (ready, waited) = (ready + 1, Duration::ZERO);
            }
            Err(_) if readied() != before => (before, waited) = (readied(), Duration::ZERO),
            Err(_) if waited > patience => {
                let seconds = waited.as_secs();
                return Err(JobError::Users(format!(
                    "nothing came back from it for {seconds} s while users got ready"
                )));
            }
            Err(_) => waited += POLL_EVERY,
        }
    }
    Ok(())
}

impl Shared {
    fn new<W: BlockingWorkload>(users: &BlockingUsers<'_, W>, job: &Job) -> Shared {
        let offering = Offering::of(job);
        let source = match &offering.model {
            LoadModel::Closed { users, think } => Source::Closed { users: users.clone(), think: *think },
            LoadModel::Open { rate, arrivals, .. } => {
                let mut arrivals = Arrivals::new(rate, *arrivals, &offering, job.share);
                // For users that stayed, this load begins where the last one ended.
                let begin = Instant(-nanos(offering.warmup));
                users.waiting.iter().for_each(|ago| arrivals.give_back(begin.shifted(-nanos((*ago).into()))));
                Source::Open(Mutex::new(arrivals))
            }
        };
        Shared {
            clock: OnceLock::new(),
            source,
            quota: Quota::common(&offering, &SharedQuota::of(&offering, job.share)),
            quota_of_user: offering.quota_of_user(),
            window: offering.window(),
            share: job.share,
            stays: job.stays,
            steps: users.names.len(),
            timeout: users.timeout,
            over: Arc::clone(&users.over),
            seed: job.seed,
            logs: users.users.iter().map(|_| SharedLog::new(users.names.len())).collect(),
            recorder: Mutex::default(),
        }
    }

    /// Converts the index of a user on this machine to its number among all users of the load.
    fn number(&self, index: usize) -> usize {
        self.share.index + index * self.share.of
    }

    /// Opens the logs: from now on calls are recorded. The receiver gets the seconds that are over.
    fn open_logs(&self, names: &[&str], clock: Clock) -> Receiver<ThreadReport> {
        let mut threads = vec![own_thread()];
        for index in 0..self.logs.len() {
            let mut log = self.log(index);
            log.is_open = true;
            threads.extend(log.thread);
        }
        let (sender, receiver) = channel();
        let open_load = matches!(self.source, Source::Open(_));
        let recorder = Recorder::new(names, open_load, clock.first(), self.window.end, 0, sender);
        *self.recorder() = Some(SharedRecorder::new(recorder.of_blocking_users(threads)));
        receiver
    }

    fn recorder(&self) -> MutexGuard<'_, Option<SharedRecorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files the log of a user if it is long. Does nothing while another thread is filing: the user will try again.
    #[inline]
    fn file_if_long(&self, log: &mut UserLog) {
        if log.is_long()
            && let Ok(mut recorder) = self.recorder.try_lock()
            && let Some(recorder) = &mut *recorder
        {
            recorder.file_log(log);
        }
    }

    #[inline]
    fn log(&self, index: usize) -> MutexGuard<'_, UserLog> {
        self.logs[index].lock()
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The kernel's number of the calling thread.
fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests;
