//! The loop of one generator thread: written once, over a schedule, a stop rule, and a protocol.
//!
//! A thread owns its users, their connections, and its records; nothing on the path of a request
//! is shared. It waits in `epoll` until a socket has something or something is due, and pacing is
//! that wait's own time-out in nanoseconds, without a timer wheel between.

mod connections;
mod users;

use crate::clock::{Clock, nanos};
use crate::protocol::{Protocol, Signal};
use crate::recorder::Recorder;
use crate::schedule::{ArrivalTimes, Random, Share, users_at};
use crate::timers::{Alarm, Timers};
use crate::transport::Dialer;
use connections::Pool;
use plimsoll_model::load::{LoadModel, Stop, Think};
use plimsoll_model::record::RecordedPhase;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Connect;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::iter::Peekable;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use users::User;

/// The longest wait in `epoll`: how soon an interruption is noticed.
const LONGEST_WAIT: i64 = 100_000_000;

/// How often the number of users follows a ramp.
const RAMP_STEP: i64 = 10_000_000;

/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// What one thread is to do.
pub(crate) struct Task<'a, P: Protocol> {
    pub(crate) protocol: &'a P,
    pub(crate) connect: Connect,
    /// The longest that a connection attempt may take.
    pub(crate) connect_timeout: Nanos,
    /// The longest that an exchange may take, for each step of an iteration.
    pub(crate) timeouts: Vec<Nanos>,
    pub(crate) dialer: Dialer,
    pub(crate) model: &'a LoadModel,
    pub(crate) stop: Stop,
    pub(crate) drain: Duration,
    pub(crate) share: Share,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) interrupted: &'a AtomicBool,
}

/// What offers iterations.
enum Source<'a> {
    /// Users start the next one themselves.
    Closed { think: Think, users: &'a plimsoll_model::load::Profile, follow_at: Option<Instant> },
    /// They arrive.
    Open { arrivals: Peekable<ArrivalTimes>, free_since: Instant },
}

/// One thread at work.
pub(crate) struct Engine<'a, P: Protocol> {
    task: Task<'a, P>,
    source: Source<'a>,
    users: Vec<User>,
    /// Users without work, in open load.
    free: Vec<u32>,
    /// How many users are meant to work, in closed load: those with a smaller index.
    active: usize,
    /// Users in an iteration.
    iterating: usize,
    pool: Pool<P::Connection>,
    timers: Timers,
    random: Random,
    recorder: Recorder,
    /// Iterations of the measure phase that this thread may still start.
    quota: u64,
    /// After this instant nothing is due any more.
    window_end: Instant,
    epoll: OwnedFd,
    signals: Vec<Signal>,
}

/// Runs the task to its end on the calling thread, handing intervals over through `recorder`.
pub(crate) fn run<P: Protocol>(task: Task<'_, P>, recorder: Recorder) -> Result<(), Errno> {
    let mut engine = Engine::new(task, recorder)?;
    engine.run()?;
    engine.finish();
    Ok(())
}

impl<'a, P: Protocol> Engine<'a, P> {
    fn new(task: Task<'a, P>, recorder: Recorder) -> Result<Self, Errno> {
        let window_end = Instant(nanos(task.stop.limit()));
        let quota = match task.stop {
            Stop::Iterations { count, .. } => task.share.of_first(count),
            Stop::After(_) | Stop::IterationsPerUser { .. } => u64::MAX,
        };
        let (source, users) = match task.model {
            LoadModel::Closed { users, think } => {
                let peak = users_at(&plimsoll_model::load::Profile::constant(users.peak()), Instant(0), task.share);
                // A constant number of users is looked at once, a varying one again and again.
                let follow_at = Some(task.clock.first());
                (Source::Closed { think: *think, users, follow_at }, peak)
            }
            LoadModel::Open { rate, arrivals, max_users } => {
                let arrivals = ArrivalTimes::new(rate, *arrivals, task.clock.first(), task.seed, task.share).peekable();
                let users = task.share.of_first(u64::from(*max_users)) as usize;
                (Source::Open { arrivals, free_since: task.clock.first() }, users)
            }
        };
        let user_quota = match task.stop {
            Stop::IterationsPerUser { count, .. } => count,
            Stop::After(_) | Stop::Iterations { .. } => u64::MAX,
        };
        let open = matches!(source, Source::Open { .. });
        let pool = Pool::new(task.connect, users, task.share);
        let random = Random::seeded(task.seed, 1000 + task.share.index as u64);
        Ok(Engine {
            users: (0..users).map(|_| User::new(user_quota)).collect(),
            // The last free user is taken first: few of them stay warm rather than many cold.
            free: if open { (0..users as u32).rev().collect() } else { Vec::new() },
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            active: 0,
            iterating: 0,
            timers: Timers::default(),
            signals: Vec::new(),
            task,
            source,
            pool,
            random,
            recorder,
            quota,
            window_end,
        })
    }

    fn run(&mut self) -> Result<(), Errno> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let mut scratch = connections::Scratch::default();
        self.dial_shared(self.task.clock.now());
        let mut woken = self.task.clock.now();
        loop {
            let now = self.task.clock.now();
            self.recorder.roll(now);
            self.do_what_is_due(now);
            if self.is_over(now) {
                return Ok(());
            }
            let now = self.task.clock.now();
            self.recorder.generator.stall = self.recorder.generator.stall.max(now.since(woken));
            let wait = self.wait_from(now);
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            woken = self.task.clock.now();
            for event in events.drain(..) {
                self.handle(event.data.u64(), event.flags, &mut scratch);
            }
        }
    }

    /// Starts whatever is due: users of a ramp, arrivals, ends of pauses, time-outs.
    fn do_what_is_due(&mut self, now: Instant) {
        self.follow_the_profile(now);
        self.start_arrivals(now);
        while let Some((due, alarm)) = self.timers.pop_due(now) {
            match alarm {
                Alarm::Wake(user) => self.wake(user, due),
                Alarm::UserDeadline(user) => self.check_user_deadline(user, now),
                Alarm::ConnectDeadline(slot) => self.check_connect_deadline(slot, now),
            }
        }
    }

    /// Lets as many closed-loop users work as the profile asks for.
    fn follow_the_profile(&mut self, now: Instant) {
        let Source::Closed { users, follow_at, .. } = &mut self.source else { return };
        if follow_at.is_none_or(|at| now < at) || now >= self.window_end {
            return;
        }
        let settled = users.stages.is_empty() || now.0 >= nanos(users.length());
        *follow_at = (!settled).then(|| now.after(Nanos(RAMP_STEP as u64)));
        let before = self.active;
        self.active = users_at(users, now, self.task.share).min(self.users.len());
        for user in before..self.active {
            if self.users[user].is_parked() {
                self.begin_iteration(user as u32, self.task.clock.now());
            }
        }
        self.count_users();
    }

    /// Starts the arrivals that are due, as long as users are free for them.
    fn start_arrivals(&mut self, now: Instant) {
        loop {
            let Source::Open { arrivals, free_since } = &mut self.source else { return };
            let free_since = *free_since;
            let Some(due) = arrivals.next_if(|due| *due <= now && *due < self.window_end && !self.free.is_empty())
            else {
                break;
            };
            let user = self.free.pop().expect("a user is free");
            // Waiting for a free user is the system's doing and counts in the response time;
            // being late although one was free is our own.
            if due >= free_since {
                self.recorder.record_lateness(self.task.clock.now().since(due));
            }
            self.begin_iteration(user, due);
        }
        self.count_backlog(now);
    }

    fn count_backlog(&mut self, now: Instant) {
        let Source::Open { arrivals, .. } = &mut self.source else { return };
        let waiting = arrivals.peek().is_some_and(|due| *due <= now && *due < self.window_end);
        if !waiting {
            self.recorder.generator.backlog = 0;
        } else if let LoadModel::Open { rate, .. } = self.task.model {
            // An estimate from the present rate: the exact number would mean to draw them.
            let first = arrivals.peek().map_or(now, |due| *due);
            let expected = now.since(first).seconds() * rate.at(now.0 as f64 / 1e9) / self.task.share.of as f64;
            self.recorder.generator.backlog = 1 + expected as u64;
        }
        self.count_users();
    }

    fn count_users(&mut self) {
        self.recorder.generator.users = match self.source {
            Source::Closed { .. } => self.active as u64,
            Source::Open { .. } => self.iterating as u64,
        };
    }

    /// Whether nothing is left to do, or no time to do it in.
    fn is_over(&mut self, now: Instant) -> bool {
        if self.task.interrupted.load(Ordering::Relaxed) || now >= self.drain_end() {
            return true;
        }
        let offers_more = match &mut self.source {
            Source::Closed { .. } => now < self.window_end && self.quota_is_left(),
            Source::Open { arrivals, .. } => {
                arrivals.peek().is_some_and(|due| *due < self.window_end) && self.quota > 0
            }
        };
        !offers_more && self.iterating == 0 && now.0 >= 0
    }

    fn drain_end(&self) -> Instant {
        self.window_end.after(self.task.drain.into())
    }

    fn quota_is_left(&self) -> bool {
        let users_have = match self.task.stop {
            Stop::IterationsPerUser { .. } => self.users.iter().any(User::has_quota),
            Stop::After(_) | Stop::Iterations { .. } => true,
        };
        self.quota > 0 && users_have
    }

    /// How long to wait in `epoll`.
    fn wait_from(&mut self, now: Instant) -> Timespec {
        let next_source = match &mut self.source {
            Source::Closed { follow_at, .. } => *follow_at,
            // A user that becomes free is an event of a socket, or a time-out.
            Source::Open { .. } if self.free.is_empty() => None,
            Source::Open { arrivals, .. } => arrivals.peek().copied(),
        };
        let next_source = next_source.filter(|due| *due < self.window_end);
        let next_end = if now < self.window_end { self.window_end } else { self.drain_end() };
        let until = [next_source, self.timers.next_due(), Some(next_end), Some(self.recorder.boundary())]
            .into_iter()
            .flatten()
            .fold(Instant(now.0 + LONGEST_WAIT), Instant::min);
        let wait = until.since(now).0 as i64;
        Timespec { tv_sec: wait / 1_000_000_000, tv_nsec: wait % 1_000_000_000 }
    }

    /// Counts what never came to its end, and closes the books.
    fn finish(mut self) {
        let now = self.task.clock.now();
        if !self.task.interrupted.load(Ordering::Relaxed) {
            self.cut_off_iterations(now);
            self.count_unsent(now);
        }
        self.close_all();
        self.recorder.finish(now);
    }

    /// The phase to which an iteration belongs that was scheduled at `scheduled`.
    fn phase(scheduled: Instant) -> RecordedPhase {
        if scheduled.0 < 0 { RecordedPhase::Warmup } else { RecordedPhase::Measure }
    }
}
