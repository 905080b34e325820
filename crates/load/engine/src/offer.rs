//! Decides which user begins an iteration, and when: the users of a closed loop, or arrivals. It has neither clock nor
//! sockets: callers report what happens, and ask what is due.
//!
//! [`Offer`] is for threads of the event loop, on which many users take turns. Users that each have a thread of their
//! own need only parts of it: the [`Quota`], the [`Arrivals`] and the [`Offering`] that both follow.

mod arrivals;
mod quota;
mod source;

pub(crate) use arrivals::Arrivals;
pub(crate) use quota::Quota;
pub use quota::SharedQuota;

use crate::job::Steering;
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
    /// The instant of second 0 of its profile.
    pub start: Instant,
    /// The time before that with load at the profile's first value.
    pub warmup: Duration,
    /// How long iterations under way may go on after the last one has begun.
    pub drain: Duration,
    /// How long a user that a ramp removes may go on with its iteration; unlimited when there is none.
    pub graceful_ramp_down: Option<Duration>,
    /// Set if arrivals follow the rules of k6.
    pub k6_arrivals: Option<K6Arrivals>,
    /// The number of users, if a control loop changes it while the load runs.
    pub steering: Option<Steering>,
    /// Seed of arrivals and think times.
    pub seed: u64,
}

/// The rules by which k6's arrivals differ from those of a study.
#[derive(Clone, Copy, Debug)]
pub struct K6Arrivals {
    /// The number of users that take arrivals in turn. In a study, the user that became free last is taken first, so
    /// that few users stay warm rather than many cold.
    pub in_turn: u64,
    /// True if the first arrival comes one gap after the start, and not at the start: see `ArrivalTimes::after_a_gap`.
    pub after_a_gap: bool,
}

/// One thread's share of an offering. Its users are numbered from 0.
#[derive(Debug)]
pub struct Offer {
    source: Source,
    users: Vec<UserState>,
    /// The iterations after the start that all users together may still begin.
    quota: Quota,
    /// The same for each user; empty where users have no quota of their own.
    quotas: Vec<u64>,
    /// The number of users whose own quota is used up.
    without_quota: usize,
    /// The number of users that had nothing more to do.
    stopped: usize,
    /// The number of users in an iteration.
    iterating: usize,
    /// The number of users that run their steps for stopping.
    retiring: usize,
    /// Users that must run their steps for stopping next; none if users have no such steps.
    retirees: Option<Vec<u32>>,
    /// True once no more iterations begin, so that idle users were added to `retirees`.
    retires_all: bool,
    /// Users that a ramp has removed, with the instant by which they must stop, in order of time.
    leaving: VecDeque<(Instant, u32)>,
    graceful_ramp_down: Option<Nanos>,
    /// From where on iterations count, and from where on none begins.
    window: Range<Instant>,
    drain_end: Instant,
    /// True once iterations under way were cut off at the end of the drain.
    cut_off: bool,
}

/// Arrivals that the end of the load finds waiting for the loop may begin for this long, if they are not too many.
const LATE: Nanos = Nanos(500_000_000);

/// The state of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserState {
    /// It has nothing to do.
    Idle,
    /// It pauses between two iterations.
    Thinking,
    /// It is in an iteration.
    Iterating,
    /// It runs its steps for stopping.
    Retiring,
    /// It has run them.
    Retired,
}

/// Work that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This user begins an iteration, if [`Offer::begin`] still admits it.
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
    /// An arrival for which no user is free, and which is dropped.
    Dropped(Instant),
}

impl Offering {
    /// The load of a job.
    #[must_use]
    pub fn of(job: &Job) -> Offering {
        let LoadProfile { model, warmup, stop, drain } = job.load.clone();
        Offering {
            model,
            stop,
            start: Instant(0),
            warmup,
            drain,
            graceful_ramp_down: None,
            k6_arrivals: None,
            steering: None,
            seed: job.seed,
        }
    }

    /// The same, with the number of users from `steering` if a control loop changes it.
    #[must_use]
    pub fn steered(self, steering: Steering) -> Offering {
        let is_steered = self.stop.feedback().is_some();
        Offering { steering: is_steered.then_some(steering), ..self }
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
            LoadModel::Closed { users, .. } => {
                let planned = users_at(&Profile::constant(users.peak()), Instant(0), WHOLE);
                self.stop.feedback().map_or(planned, |rules| planned.max(rules.most as usize))
            }
            LoadModel::Open { max_users, .. } => *max_users as usize,
        }
    }
}

impl Offer {
    /// The offer of one thread. A thread beyond the last user has no part in the load.
    #[must_use]
    pub fn new(offering: &Offering, shared: &SharedQuota, part: ThreadShare) -> Offer {
        let users_here = part.machine.of_first(offering.users() as u64);
        let taking_part = part.among(usize::try_from(users_here).unwrap_or(usize::MAX).clamp(1, part.threads));
        let share = taking_part.unwrap_or(part).share();
        let (source, users) = Source::new(offering, share);
        // Without users there is nothing to wait for.
        let has_part = taking_part.is_some() && (users > 0 || offering.quota_of_user() == u64::MAX);
        let quota = if has_part { Quota::of(offering, shared, share) } else { Quota::Own(0) };
        let quotas = match offering.stop {
            Stop::IterationsPerUser { count, .. } => vec![count; users],
            _ => Vec::new(),
        };
        let window = offering.window();
        Offer {
            source,
            users: vec![UserState::Idle; users],
            quota,
            without_quota: quotas.iter().filter(|quota| **quota == 0).count(),
            quotas,
            stopped: 0,
            iterating: 0,
            retiring: 0,
            retirees: None,
            retires_all: false,
            leaving: VecDeque::new(),
            graceful_ramp_down: offering.graceful_ramp_down.map(Nanos::from),
            drain_end: window.end.after(offering.drain.into()),
            window,
            cut_off: false,
        }
    }

    /// Offers another load of the same model to the same users. For them it begins where the last one ended: all
    /// instants move by `by`. Arrivals that no user has begun come first.
    pub(crate) fn go_on(&mut self, offering: &Offering, shared: &SharedQuota, part: ThreadShare, by: i64) {
        let next = Offer::new(offering, shared, part);
        debug_assert_eq!(next.users.len(), self.users.len(), "the same users");
        let waiting = self.source.take_waiting(self.window.end);
        self.source.go_on(next.source, waiting.into_iter().map(|due| due.shifted(by)));
        (self.quota, self.window, self.drain_end) = (next.quota, next.window, next.drain_end);
        self.cut_off = false;
    }

    /// When no more iterations begin.
    #[inline]
    pub(crate) fn load_end(&self) -> Instant {
        self.window.end
    }

    /// When iterations under way are cut off.
    pub(crate) fn drain_end(&self) -> Instant {
        self.drain_end
    }

    /// Declares that users have steps for stopping: [`Offer::next_retiree`] then returns the users that must run them.
    pub(crate) fn keep_retirees(&mut self) {
        self.retirees = Some(Vec::new());
    }

    /// How many users it has.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "an offer is no collection of users")]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// True if the load is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    /// The number of users at work: in closed load those that the profile asks for; in open load, and at the end, those
    /// in an iteration.
    pub(crate) fn users(&mut self, now: Instant) -> usize {
        match &self.source {
            Source::Closed(closed) => {
                let active = closed.active.min(self.iterating.max(self.users.len() - self.without_quota));
                if self.offers_more(now) { active } else { self.iterating }
            }
            Source::Open(_) => self.iterating,
        }
    }

    /// The next work that is due at `now`.
    pub(crate) fn next_start(&mut self, now: Instant) -> Option<Start> {
        self.follow_the_profile(now);
        let users = &self.users;
        match &mut self.source {
            Source::Closed(closed) => {
                closed.added.find(|place| users[*place].is_idle()).map(|place| Start::User(place as u32))
            }
            Source::Open(open) if self.quota.has_any() => open.next_start(now, self.window.end),
            Source::Open(_) => None,
        }
    }

    /// Drops arrivals that are due, if there are more than a turn of the loop can begin: those for which no user is free,
    /// and all of them once the load has been over for so long that it would go on for ever. Returns how many. Only
    /// offers that drop arrivals at all do so.
    pub(crate) fn drop_overdue(&mut self, now: Instant) -> u64 {
        let Source::Open(open) = &mut self.source else { return 0 };
        let is_late = now >= self.window.end.after(LATE);
        open.drop_overdue(now.min(Instant(self.window.end.0 - 1)), is_late)
    }

    /// Lets as many closed-loop users work as the profile or a control loop asks for.
    fn follow_the_profile(&mut self, now: Instant) {
        let Source::Closed(closed) = &mut self.source else { return };
        if now >= self.window.end {
            return;
        }
        if closed.has_been_ended() {
            let drain = self.drain_end.since(self.window.end);
            (self.window.end, self.drain_end) = (now, now.after(drain));
            return;
        }
        if !closed.follow(now, self.users.len()) {
            return;
        }
        if let Some(grace) = self.graceful_ramp_down {
            let active = closed.active;
            self.leaving.retain(|(_, user)| *user as usize >= active);
            let removed = closed.removed.clone().filter(|place| self.users[*place] == UserState::Iterating);
            self.leaving.extend(removed.map(|place| (now.after(grace), place as u32)));
        }
    }

    /// Begins an iteration that was due at `due`, if a quota and the time allow it. Otherwise the user becomes idle.
    #[inline]
    pub(crate) fn begin(&mut self, user: u32, due: Instant) -> bool {
        if !self.takes_quota(user, due) {
            self.quota.close_if_empty();
            self.make_idle(user, due);
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
        self.without_quota += usize::from(had_any && *of_user == 0);
        admitted
    }

    fn may_begin(&self, user: u32, due: Instant) -> bool {
        due < self.window.end && self.quota.has_any() && self.quotas.get(user as usize).is_none_or(|quota| *quota > 0)
    }

    /// Ends an iteration. Returns how long the user thinks before its next one, at least `least`; none if the user
    /// becomes idle.
    pub(crate) fn iteration_ended(&mut self, user: u32, least: Nanos, now: Instant) -> Option<Nanos> {
        self.iterating -= 1;
        match &mut self.source {
            Source::Closed(closed) if closed.asks_for(user) && !self.retires_all => Some(closed.think().max(least)),
            _ => {
                self.make_idle(user, now);
                None
            }
        }
    }

    /// Lets the user begin no further iteration. Its present iteration goes on.
    pub(crate) fn withdraw(&mut self, user: u32) {
        self.quotas.resize(self.users.len(), u64::MAX);
        let left = std::mem::replace(&mut self.quotas[user as usize], 0);
        self.without_quota += usize::from(left > 0);
    }

    /// Stops a user that has nothing more to do: its present iteration does not count, and it begins no other.
    pub(crate) fn stop(&mut self, user: u32, due: Instant, now: Instant) {
        self.withdraw(user);
        self.stopped += 1;
        self.iterating -= 1;
        if due >= self.window.start {
            self.quota.give_back();
        }
        if let Source::Open(open) = &mut self.source {
            open.arrivals.give_back(due);
        }
        self.make_idle(user, now);
    }

    /// True if every user had nothing more to do.
    pub(crate) fn all_stopped(&self) -> bool {
        self.stopped == self.users.len()
    }

    /// The user pauses before its next iteration.
    pub(crate) fn think(&mut self, user: u32) {
        self.users[user as usize] = UserState::Thinking;
    }

    /// The user's pause is over. Returns true if the user is still meant to work.
    pub(crate) fn wake(&mut self, user: u32, now: Instant) -> bool {
        if self.users[user as usize] != UserState::Thinking {
            return false;
        }
        let is_active = self.asks_for(user);
        if !is_active {
            self.make_idle(user, now);
        }
        is_active
    }

    fn make_idle(&mut self, user: u32, now: Instant) {
        let is_retired = self.users[user as usize] == UserState::Retired;
        if !is_retired {
            self.users[user as usize] = UserState::Idle;
        }
        match &mut self.source {
            Source::Open(open) if self.quotas.get(user as usize).is_none_or(|quota| *quota > 0) => open.free(user, now),
            Source::Open(_) | Source::Closed(_) => {}
        }
        // Whom a control loop takes away rests, and may come again.
        let retires_at_once = matches!(&self.source, Source::Closed(closed) if !closed.is_steered());
        let retires_all = self.retires_all || retires_at_once;
        if let Some(retirees) = self.retirees.as_mut().filter(|_| retires_all && !is_retired) {
            retirees.push(user);
        }
    }

    /// The next user that must run its steps for stopping; call [`Offer::retired`] at their end.
    pub(crate) fn next_retiree(&mut self, now: Instant) -> Option<u32> {
        self.retirees.as_ref()?;
        if !self.retires_all && !self.offers_more(now) {
            self.retires_all = true;
            let idle = |place: &u32| matches!(self.users[*place as usize], UserState::Idle | UserState::Thinking);
            self.retirees = Some((0..self.users.len() as u32).filter(idle).collect());
        }
        while let Some(user) = self.retirees.as_mut()?.pop() {
            let state = self.users[user as usize];
            // A ramp may have asked for it again.
            if state == UserState::Idle || self.retires_all && state == UserState::Thinking {
                self.users[user as usize] = UserState::Retiring;
                self.retiring += 1;
                return Some(user);
            }
        }
        None
    }

    /// A user has run its steps for stopping. Returns true if a ramp asks for it again.
    pub(crate) fn retired(&mut self, user: u32, now: Instant) -> bool {
        self.retiring -= 1;
        self.users[user as usize] = UserState::Retired;
        self.asks_for(user) && self.may_begin(user, now)
    }

    fn asks_for(&self, user: u32) -> bool {
        matches!(&self.source, Source::Closed(closed) if closed.asks_for(user))
    }

    /// The users that must stop now: at the end of the drain, or because the time is up that a ramp leaves to users
    /// that it removes.
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
        // No user was left to take it.
        if self.all_stopped() {
            return None;
        }
        let Source::Open(open) = &mut self.source else { return None };
        let due = open.arrivals.next_if(|due| due <= now && due < self.window.end && self.quota.has_any())?;
        self.quota.take();
        Some(due)
    }

    /// Takes the iterations of a closed loop that no user has begun when its time is over. Where threads share them, the first
    /// one takes all.
    pub(crate) fn take_rest(&mut self, now: Instant) -> u64 {
        if self.is_open() || now < self.window.end {
            return 0;
        }
        let of_users = self.quotas.drain(..).filter(|quota| *quota != u64::MAX).fold(0, u64::saturating_add);
        of_users.saturating_add(self.quota.take_all())
    }

    /// The number of arrivals that are due and for which no user was free.
    pub(crate) fn backlog(&mut self, now: Instant) -> u64 {
        match &mut self.source {
            Source::Open(open) if self.quota.has_any() => open.arrivals.backlog(now, self.window.end),
            Source::Open(_) | Source::Closed(_) => 0,
        }
    }

    /// True if iterations may still begin.
    fn offers_more(&mut self, now: Instant) -> bool {
        let all_spent = self.without_quota > 0 && self.without_quota == self.users.len();
        self.quota.has_any()
            && !all_spent
            && match &mut self.source {
                Source::Closed(_) => now < self.window.end,
                // A load that time alone ends lasts that long, also after the last arrival.
                Source::Open(_) if self.quota.is_endless() && now < self.window.end => true,
                Source::Open(open) => open.arrivals.peek().is_some_and(|due| due < self.window.end),
            }
    }

    /// True if nothing is left to do, or no time to do it in.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let none_busy = self.iterating == 0 && self.retiring == 0 && self.retirees.as_ref().is_none_or(Vec::is_empty);
        now >= self.drain_end || none_busy && now >= self.window.start && !self.offers_more(now)
    }

    /// When this offer next has work that is due, apart from events.
    pub(crate) fn next_due(&mut self, now: Instant) -> Instant {
        let next_start = match &mut self.source {
            Source::Closed(closed) => closed.follow_at.filter(|_| now < self.window.end),
            // A user becomes free by an event of a socket or by a time-out.
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
