//! Users whose calls block: files, and clients that know no other way. Each is a thread of its own.
//!
//! What is timed is the call itself, on the thread that makes it, with nothing between: no queue,
//! no hop to a pool. Users only note what they did; beside them one thread files it, keeps the
//! seconds, and notices what no longer comes back. A thread that hangs in the kernel cannot be ended; it is left behind, and the trial
//! is void.

mod book;
mod call;
mod keeper;
mod member;

pub use crate::protocol::Failure;
pub use call::Call;

use crate::clock::{Clock, nanos};
use crate::job::{Job, RunError};
use crate::recorder::{Findings, Handover, Recorder};
use crate::schedule::{ArrivalTimes, Random, Share};
use book::{Book, Ledger};
use keeper::Keeper;
use member::Member;
use plimsoll_model::load::{LoadModel, Profile, Stop, Think};
use plimsoll_model::record::Interval;
use plimsoll_model::units::Instant;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How soon an interruption is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The whole load, for the functions that share it out: users are not divided among threads.
const WHOLE: Share = Share { index: 0, of: 1 };

/// What users do, one call at a time.
pub trait Calls: Send + Sync + 'static {
    /// What one user works with.
    type User: Send;

    /// Makes a user ready, on its own thread and before the clock starts.
    /// `over` is set when nothing is to go on.
    fn enlist(&self, user: u32, over: &Arc<AtomicBool>) -> Result<Self::User, Failure>;

    /// The steps of the next iteration.
    fn begin_iteration(&self, user: &mut Self::User, random: &mut Random) -> Range<usize>;

    /// How long the user waits before what was drawn, and after it: neither is part of it. Where
    /// iterations arrive, it is they who say when.
    fn waits(&self, _user: &Self::User) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }

    /// What a step needs before its call, untimed.
    fn before_call(&self, user: &mut Self::User, step: usize) -> Result<(), Failure>;

    /// The call of a step.
    fn call(&self, user: &mut Self::User, step: usize, call: &mut Call) -> Result<(), Failure>;

    /// What follows an iteration, untimed.
    fn end_iteration(&self, user: &mut Self::User);
}

/// What is to be run.
pub struct Crew<'a, C> {
    /// What users do.
    pub calls: Arc<C>,
    /// The names of the steps.
    pub names: Vec<&'a str>,
    /// The longest that a call may take.
    pub timeout: Duration,
    /// How long a call may take to come back after it was told to give up, before it counts as hung.
    pub grace: Duration,
    /// Users that can be at work at once.
    pub users: usize,
}

/// What the threads of a run share.
struct Shared {
    /// Set when everybody is ready: then the load begins.
    clock: OnceLock<Clock>,
    source: Source,
    /// Iterations of the measure phase that may still start, by anybody.
    quota: AtomicU64,
    /// Iterations of the measure phase that each user may start.
    quota_of_user: u64,
    steps: usize,
    timeout: Duration,
    window_end: Instant,
    /// Set when no call is to go on.
    over: Arc<AtomicBool>,
    seed: u64,
    books: Vec<Mutex<Book>>,
    /// None before the load, and after the books are closed.
    ledger: Mutex<Option<Ledger>>,
}

/// What offers iterations.
enum Source {
    /// Users start the next one themselves.
    Closed { users: Profile, think: Think },
    /// They arrive; whoever is free takes the next.
    Open(Mutex<Peekable<ArrivalTimes>>),
}

/// Runs the crew, handing each second over to `on_interval`.
pub fn run<C: Calls>(
    crew: &Crew<'_, C>,
    job: &Job<'_>,
    on_interval: &mut dyn FnMut(Interval),
) -> Result<(Vec<Findings>, Clock), RunError> {
    let shared = Arc::new(Shared::new(crew, job));
    let (ready, enlisted) = channel();
    let threads: Vec<_> = (0..crew.users)
        .map(|index| {
            let member = Member::new(index, Arc::clone(&crew.calls), Arc::clone(&shared));
            let (ready, cpus) = (ready.clone(), job.generator.cpus.clone());
            std::thread::spawn(move || member.serve(cpus.as_ref(), &ready))
        })
        .collect();
    drop(ready);
    if let Err(error) = all_enlisted(&enlisted, threads.len(), crew.timeout + crew.grace, job.interrupted) {
        shared.over.store(true, Ordering::Relaxed);
        threads.iter().for_each(|thread| thread.thread().unpark());
        return Err(error);
    }
    let clock = Clock::start(job.load.warmup);
    let receiver = shared.open_books(&crew.names, clock);
    shared.clock.set(clock).expect("the clock starts once");
    threads.iter().for_each(|thread| thread.thread().unpark());
    Ok((Keeper::new(&shared, crew, job, clock, receiver, threads).keep(on_interval), clock))
}

/// Waits until every user is ready.
fn all_enlisted(
    enlisted: &Receiver<Result<(), RunError>>,
    users: usize,
    patience: Duration,
    interrupted: &AtomicBool,
) -> Result<(), RunError> {
    let mut waited = Duration::ZERO;
    let mut ready = 0;
    while ready < users && !interrupted.load(Ordering::Relaxed) {
        match enlisted.recv_timeout(LOOK_EVERY) {
            Ok(result) => {
                result?;
                (ready, waited) = (ready + 1, Duration::ZERO);
            }
            Err(_) if waited > patience => {
                let seconds = waited.as_secs();
                return Err(RunError::Users(format!(
                    "nothing came back from it for {seconds} s while users got ready"
                )));
            }
            Err(_) => waited += LOOK_EVERY,
        }
    }
    Ok(())
}

impl Shared {
    fn new<C>(crew: &Crew<'_, C>, job: &Job<'_>) -> Shared {
        let load = job.load;
        let source = match &load.model {
            LoadModel::Closed { users, think } => Source::Closed { users: users.clone(), think: *think },
            LoadModel::Open { rate, arrivals, .. } => {
                let first = Instant(-nanos(load.warmup));
                Source::Open(Mutex::new(ArrivalTimes::new(rate, *arrivals, first, job.seed, WHOLE).peekable()))
            }
        };
        let (quota, quota_of_user) = match load.stop {
            Stop::After(_) => (u64::MAX, u64::MAX),
            Stop::Iterations { count, .. } => (count, u64::MAX),
            Stop::IterationsPerUser { count, .. } => (u64::MAX, count),
        };
        Shared {
            clock: OnceLock::new(),
            source,
            quota: AtomicU64::new(quota),
            quota_of_user,
            steps: crew.names.len(),
            timeout: crew.timeout,
            window_end: Instant(nanos(load.stop.limit())),
            over: Arc::new(AtomicBool::new(false)),
            seed: job.seed,
            books: (0..crew.users).map(|_| Mutex::default()).collect(),
            ledger: Mutex::default(),
        }
    }

    /// From now on what users note counts; seconds that are full come out of the receiver.
    fn open_books(&self, names: &[&str], clock: Clock) -> Receiver<Handover> {
        let mut threads = vec![own_thread()];
        for index in 0..self.books.len() {
            let mut book = self.book(index);
            book.is_open = true;
            threads.extend(book.thread);
        }
        let (sender, receiver) = channel();
        let open_load = matches!(self.source, Source::Open(_));
        let recorder = Recorder::new(names, open_load, clock.first(), self.window_end, 0, sender);
        *self.ledger() = Some(Ledger::new(recorder.of_blocking_users(threads)));
        receiver
    }

    fn ledger(&self) -> MutexGuard<'_, Option<Ledger>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files what a user has noted, where that has become much. It does not wait for others that file:
    /// there will be more next time.
    #[inline]
    fn relieve(&self, book: &mut Book) {
        if book.is_full()
            && let Ok(mut ledger) = self.ledger.try_lock()
            && let Some(ledger) = &mut *ledger
        {
            ledger.relieve(book);
        }
    }

    #[inline]
    fn book(&self, index: usize) -> MutexGuard<'_, Book> {
        // A user that panicked has taken its records along; the others still count.
        self.books[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether an iteration may start that is due at `due`; `left` is what the user itself may still
    /// start. Only the measure phase has a quota.
    #[inline]
    fn takes_quota(&self, due: Instant, left: &mut u64) -> bool {
        if due >= self.window_end || *left == 0 {
            return false;
        }
        if due.0 < 0 {
            return self.quota.load(Ordering::Relaxed) > 0;
        }
        // Where there is no quota, users share nothing that they write.
        let is_taken = self.quota.load(Ordering::Relaxed) == u64::MAX
            || self.quota.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |quota| quota.checked_sub(1)).is_ok();
        *left -= u64::from(*left != u64::MAX && is_taken);
        is_taken
    }
}

/// The calling thread, as the kernel numbers it.
fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests;
