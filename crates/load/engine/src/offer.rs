//! Who begins an iteration, and when: the users of a closed loop, or arrivals. It has neither clock nor sockets: it is
//! told what happens, and says what is due.
//!
//! [`Offer`] is for threads whose users take turns, in the event loop. Users that each have a thread of their own need
//! only parts of it: the [`Quota`], the [`Arrivals`] and the [`Offering`] that both follow.

mod arrivals;
mod quota;
mod source;

pub(crate) use arrivals::Arrivals;
pub(crate) use quota::Quota;
pub use quota::SharedQuota;

use crate::schedule::{ThreadShare, users_at};
use plimsoll_model::job::Job;
use plimsoll_model::load::WHOLE;
use plimsoll_model::load::{LoadModel, LoadProfile, Profile, Stop};
use plimsoll_model::units::{Instant, Nanos};
use source::Source;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// A load to offer: profile, stop rule and phases.
#[derive(Clone, Debug)]
pub struct Offering {
    /// Users of a closed loop, or arrivals.
    pub model: LoadModel,
    /// When no more iterations begin.
    pub stop: Stop,
    /// Where second 0 of its profile lies.
    pub start: Instant,
    /// Load before that, at the profile's first value.
    pub warmup: Duration,
    /// How long iterations may go on that are under way when no more begin.
    pub drain: Duration,
    /// How long a user may go on with its iteration that a ramp no longer asks for; as long as it
    /// takes, where there is none.
    pub leave: Option<Duration>,
    /// Set if arrivals follow the rules of k6.
    pub k6_arrivals: Option<K6Arrivals>,
    /// Seed of arrivals and think times.
    pub seed: u64,
}

/// How arrivals of k6 differ from those of a study.
#[derive(Clone, Copy, Debug)]
pub struct K6Arrivals {
    /// So many users take turns. In a study, whoever became free last is taken first: few of them stay warm rather
    /// than many cold.
    pub in_turn: u64,
    /// The first arrival comes where one is expected, and not at the start: see `ArrivalTimes::after_a_gap`.
    pub after_a_gap: bool,
}

/// One thread's share of an offering. Its users have places from 0.
#[derive(Debug)]
pub struct Offer {
    source: Source,
    users: Vec<UserState>,
    /// Iterations after the start that all users together may still begin.
    quota: Quota,
    /// The same for each user; empty where users have no quota of their own.
    quotas: Vec<u64>,
    /// Users whose own quota is used up.
    spent: usize,
    /// Users that had nothing more to do.
    stopped: usize,
    /// Users in an iteration.
    iterating: usize,
    /// Users that do what they do when they stop.
    retiring: usize,
    /// Users that are to do that next, where users do such a thing.
    retirees: Option<Vec<u32>>,
    /// True if those were called up that have nothing to do when no more iterations begin.
    called_up: bool,
    /// When users are to be gone that a ramp no longer asks for, in order of time.
    leaving: VecDeque<(Instant, u32)>,
    leave: Option<Nanos>,
    /// From where on iterations count, and from where on none begins.
    window: Range<Instant>,
    drain_end: Instant,
    /// True if what was under way at the end of the drain was cut off.
    cut_off: bool,
}

/// What a user is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserState {
    /// Nothing.
    Idle,
    /// It pauses between two iterations.
    Thinking,
    /// An iteration.
    Iterating,
    /// What it does when it stops.
    Retiring,
    /// Nothing, after that.
    Retired,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This user begins, if it still may: ask [`Offer::begin`].
    User(u32),
    /// An arrival, for this user.
    Arrival {
        /// The user.
        user: u32,
        /// When the iteration was due.
        due: Instant,
        /// True if the user was free all the time since then.
        was_free: bool,
    },
    /// An arrival that no user is free for, and that is dropped.
    Dropped(Instant),
}

impl Offering {
    /// The load of a job.
    #[must_use]
    pub fn of(job: &Job) -> Offering {
        let LoadProfile { model, warmup, stop, drain } = job.load.clone();
        Offering { model, stop, start: Instant(0), warmup, drain, leave: None, k6_arrivals: None, seed: job.seed }
    }

    /// From where on iterations count, and from where on none begins.
    pub(crate) fn window(&self) -> Range<Instant> {
        self.start..self.start.after(self.stop.limit().into())
    }

    /// The iterations that each user may begin; `u64::MAX` for any number.
    pub(crate) fn quota_of_user(&self) -> u64 {
        if let Stop::IterationsPerUser { count, .. } = self.stop { count } else { u64::MAX }
    }

    /// The most users that are at work at once, on all threads.
    fn users(&self) -> usize {
        match &self.model {
            LoadModel::Closed { users, .. } => users_at(&Profile::constant(users.peak()), Instant(0), WHOLE),
            LoadModel::Open { max_users, .. } => *max_users as usize,
        }
    }
}

impl Offer {
    /// The part of a thread. A thread beyond the last user has no part in the load.
    #[must_use]
    pub fn new(offering: &Offering, shared: &SharedQuota, part: ThreadShare) -> Offer {
        let users_here = part.machine.of_first(offering.users() as u64);
        let taking_part = part.among(usize::try_from(users_here).unwrap_or(usize::MAX).clamp(1, part.threads));
        let share = taking_part.unwrap_or(part).share();
        let (source, users) = Source::new(offering, share);
        let quota = taking_part.map_or(Quota::Own(0), |_| Quota::of(offering, shared, share));
        let quotas = match offering.stop {
            Stop::IterationsPerUser { count, .. } => vec![count; users],
            _ => Vec::new(),
        };
        let window = offering.window();
        Offer {
            source,
            users: vec![UserState::Idle; users],
            quota,
            spent: quotas.iter().filter(|quota| **quota == 0).count(),
            quotas,
            stopped: 0,
            iterating: 0,
            retiring: 0,
            retirees: None,
            called_up: false,
            leaving: VecDeque::new(),
            leave: offering.leave.map(Nanos::from),
            drain_end: window.end.after(offering.drain.into()),
            window,
            cut_off: false,
        }
    }

    /// Users do something when they stop: [`Offer::next_retiree`] says who, and when.
    pub(crate) fn keep_retirees(&mut self) {
        self.retirees = Some(Vec::new());
    }

    /// How many users it has.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "an offer is no collection of users")]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// True if iterations arrive.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    /// Users at work: those that are meant to be, or in open load and at the end those in an iteration.
    pub(crate) fn users(&mut self, now: Instant) -> usize {
        match &self.source {
            Source::Closed(closed) => {
                let active = closed.active.min(self.iterating.max(self.users.len() - self.spent));
                if self.offers_more(now) { active } else { self.iterating }
            }
            Source::Open(_) => self.iterating,
        }
    }

    /// What is due at `now`, one after the other.
    pub(crate) fn next_start(&mut self, now: Instant) -> Option<Start> {
        self.follow_the_profile(now);
        let users = &self.users;
        match &mut self.source {
            Source::Closed(closed) => {
                closed.asked.find(|place| users[*place].is_idle()).map(|place| Start::User(place as u32))
            }
            Source::Open(open) if self.quota.has_any() => open.next_start(now, self.window.end),
            Source::Open(_) => None,
        }
    }

    /// Lets as many closed-loop users work as the profile asks for.
    fn follow_the_profile(&mut self, now: Instant) {
        let Source::Closed(closed) = &mut self.source else { return };
        if now >= self.window.end || !closed.follow(now, self.users.len()) {
            return;
        }
        if let Some(leave) = self.leave {
            let active = closed.active;
            self.leaving.retain(|(_, user)| *user as usize >= active);
            let dismissed = closed.dismissed.clone().filter(|place| self.users[*place] == UserState::Iterating);
            self.leaving.extend(dismissed.map(|place| (now.after(leave), place as u32)));
        }
    }

    /// Begins an iteration that was due at `due`, unless the user is to stop: then it has nothing to
    /// do from now on.
    #[inline]
    pub(crate) fn begin(&mut self, user: u32, due: Instant) -> bool {
        if !self.takes_quota(user, due) {
            self.quota.close_if_empty();
            self.park(user, due);
            return false;
        }
        self.users[user as usize] = UserState::Iterating;
        self.iterating += 1;
        true
    }

    fn takes_quota(&mut self, user: u32, due: Instant) -> bool {
        let mut endless = u64::MAX;
        let of_user = self.quotas.get_mut(user as usize).unwrap_or(&mut endless);
        let had_any = *of_user > 0;
        let admitted = self.quota.admit(due, &self.window, of_user);
        self.spent += usize::from(had_any && *of_user == 0);
        admitted
    }

    fn may_begin(&self, user: u32, due: Instant) -> bool {
        due < self.window.end && self.quota.has_any() && self.quotas.get(user as usize).is_none_or(|quota| *quota > 0)
    }

    /// An iteration is over. Comes with how long the user thinks before its next one, or nothing
    /// where it has nothing to do; `least` is the shortest pause.
    pub(crate) fn iteration_ended(&mut self, user: u32, least: Nanos, now: Instant) -> Option<Nanos> {
        self.iterating -= 1;
        match &mut self.source {
            Source::Closed(closed) if closed.asks_for(user) && !self.called_up => Some(closed.think().max(least)),
            _ => {
                self.park(user, now);
                None
            }
        }
    }

    /// The user begins no further iteration, whatever becomes of the one it is in.
    pub(crate) fn lose(&mut self, user: u32) {
        self.quotas.resize(self.users.len(), u64::MAX);
        let left = std::mem::replace(&mut self.quotas[user as usize], 0);
        self.spent += usize::from(left > 0);
    }

    /// The user has nothing more to do: its iteration is none, and it begins no other.
    pub(crate) fn stop(&mut self, user: u32, due: Instant, now: Instant) {
        self.lose(user);
        self.stopped += 1;
        self.iterating -= 1;
        if due >= self.window.start {
            self.quota.give_back();
        }
        if let Source::Open(open) = &mut self.source {
            open.arrivals.give_back(due);
        }
        self.park(user, now);
    }

    /// True if every user had nothing more to do.
    pub(crate) fn all_stopped(&self) -> bool {
        self.stopped == self.users.len()
    }

    /// The user pauses before its next iteration.
    pub(crate) fn think(&mut self, user: u32) {
        self.users[user as usize] = UserState::Thinking;
    }

    /// Its pause is over. Returns whether it is still meant to work.
    pub(crate) fn wake(&mut self, user: u32, now: Instant) -> bool {
        if self.users[user as usize] != UserState::Thinking {
            return false;
        }
        let is_active = self.asks_for(user);
        if !is_active {
            self.park(user, now);
        }
        is_active
    }

    fn park(&mut self, user: u32, now: Instant) {
        let is_retired = self.users[user as usize] == UserState::Retired;
        if !is_retired {
            self.users[user as usize] = UserState::Idle;
        }
        match &mut self.source {
            Source::Open(open) if self.quotas.get(user as usize).is_none_or(|quota| *quota > 0) => open.free(user, now),
            Source::Open(_) | Source::Closed(_) => {}
        }
        let called_up = self.called_up || !self.is_open();
        if let Some(retirees) = self.retirees.as_mut().filter(|_| called_up && !is_retired) {
            retirees.push(user);
        }
    }

    /// The next user that is to do what it does when it stops; then [`Offer::retired`].
    pub(crate) fn next_retiree(&mut self, now: Instant) -> Option<u32> {
        self.retirees.as_ref()?;
        if !self.called_up && !self.offers_more(now) {
            self.called_up = true;
            let idle = |place: &u32| matches!(self.users[*place as usize], UserState::Idle | UserState::Thinking);
            self.retirees = Some((0..self.users.len() as u32).filter(idle).collect());
        }
        while let Some(user) = self.retirees.as_mut()?.pop() {
            let state = self.users[user as usize];
            // A ramp may have asked for it again.
            if state == UserState::Idle || self.called_up && state == UserState::Thinking {
                self.users[user as usize] = UserState::Retiring;
                self.retiring += 1;
                return Some(user);
            }
        }
        None
    }

    /// A user has done what it does when it stops. Returns whether a ramp asks for it again.
    pub(crate) fn retired(&mut self, user: u32, now: Instant) -> bool {
        self.retiring -= 1;
        self.users[user as usize] = UserState::Retired;
        self.asks_for(user) && self.may_begin(user, now)
    }

    fn asks_for(&self, user: u32) -> bool {
        matches!(&self.source, Source::Closed(closed) if closed.asks_for(user))
    }

    /// The users that are to break off what they do: at the end of the drain, or because a ramp has
    /// not asked for them any more for long enough.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Vec<u32> {
        if now >= self.drain_end && !self.cut_off {
            self.cut_off = true;
            let busy = |place: &u32| matches!(self.users[*place as usize], UserState::Iterating | UserState::Retiring);
            return (0..self.users.len() as u32).filter(busy).collect();
        }
        let due = self.leaving.partition_point(|(at, _)| *at <= now);
        let left = self.leaving.drain(..due).map(|(_, user)| user);
        left.filter(|user| self.users[*user as usize] == UserState::Iterating).collect()
    }

    /// The next arrival that was due but for which no user ever became free.
    pub(crate) fn next_unsent(&mut self, now: Instant) -> Option<Instant> {
        // Nobody was to take it.
        if self.all_stopped() {
            return None;
        }
        let Source::Open(open) = &mut self.source else { return None };
        let due = open.arrivals.next_if(|due| due <= now && due < self.window.end && self.quota.has_any())?;
        self.quota.take();
        Some(due)
    }

    /// Arrivals that are due and that no user was free for.
    pub(crate) fn backlog(&mut self, now: Instant) -> u64 {
        match &mut self.source {
            Source::Open(open) if self.quota.has_any() => open.arrivals.backlog(now, self.window.end),
            Source::Open(_) | Source::Closed(_) => 0,
        }
    }

    /// True if iterations may still begin.
    fn offers_more(&mut self, now: Instant) -> bool {
        let all_spent = self.spent > 0 && self.spent == self.users.len();
        self.quota.has_any()
            && !all_spent
            && match &mut self.source {
                Source::Closed(_) => now < self.window.end,
                // Where time alone ends it, it lasts that long, also after the last arrival.
                Source::Open(_) if self.quota.is_endless() && now < self.window.end => true,
                Source::Open(open) => open.arrivals.peek().is_some_and(|due| due < self.window.end),
            }
    }

    /// True if nothing is left to do, or no time to do it in.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let none_busy = self.iterating == 0 && self.retiring == 0 && self.retirees.as_ref().is_none_or(Vec::is_empty);
        now >= self.drain_end || none_busy && now >= self.window.start && !self.offers_more(now)
    }

    /// When something is due that it does by itself.
    pub(crate) fn next_due(&mut self, now: Instant) -> Instant {
        let next_start = match &mut self.source {
            Source::Closed(closed) => closed.follow_at.filter(|_| now < self.window.end),
            // A user that becomes free is an event of a socket, or a time-out.
            Source::Open(open) if open.waits_for_users() || !self.quota.has_any() => None,
            Source::Open(open) => open.arrivals.peek(),
        };
        let next_start = next_start.filter(|due| *due < self.window.end);
        let next_end = if now < self.window.end { self.window.end } else { self.drain_end };
        let leaving = self.leaving.front().map(|(at, _)| *at);
        [next_start, leaving].into_iter().flatten().fold(next_end, Instant::min)
    }
}

impl UserState {
    fn is_idle(self) -> bool {
        matches!(self, UserState::Idle | UserState::Retired)
    }
}

#[cfg(test)]
mod tests;
