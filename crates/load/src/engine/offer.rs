//! Who starts iterations, and when: the users of a closed loop, or arrivals. Neither clock nor
//! sockets: it is told what happens, and asked what is due.

use crate::clock::nanos;
use crate::schedule::{ArrivalTimes, Random, Share, think_time, users_at};
use plimsoll_model::load::{LoadModel, Overflow, Profile, Stop, Think};
use plimsoll_model::units::{Instant, Nanos};
use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;
use std::time::Duration;

/// How often the number of users follows a ramp.
const RAMP_STEP: Nanos = Nanos(10_000_000);

/// What an offer follows.
#[derive(Clone, Debug)]
pub(crate) struct Offering {
    pub(crate) model: LoadModel,
    pub(crate) stop: Stop,
    /// Where second 0 of its profile lies.
    pub(crate) start: Instant,
    /// Load before that, at the profile's first value.
    pub(crate) warmup: Duration,
    /// How long iterations may go on that are under way when no more begin.
    pub(crate) drain: Duration,
    /// How long a user may go on with its iteration that a ramp no longer asks for; as long as it
    /// takes, where there is none.
    pub(crate) leave: Option<Duration>,
    pub(crate) seed: u64,
}

/// One thread's share of an offering. Its users have places from 0.
#[derive(Debug)]
pub(crate) struct Offer {
    source: Source,
    stations: Vec<Station>,
    /// Iterations after the start that all users together may still begin.
    quota: u64,
    /// The same for each user; empty where users have no quota of their own.
    quotas: Vec<u64>,
    /// Users whose own quota is used up.
    spent: usize,
    /// Users in an iteration.
    iterating: usize,
    /// Users that do what they do when they stop.
    retiring: usize,
    /// Users that are to do that next, where users do such a thing.
    retirees: Option<Vec<u32>>,
    /// Whether those were called up that have nothing to do when no more iterations begin.
    called_up: bool,
    /// When users are to be gone that a ramp no longer asks for, in order of time.
    leaving: VecDeque<(Instant, u32)>,
    leave: Option<Nanos>,
    start: Instant,
    /// After this instant nothing is due any more.
    window_end: Instant,
    drain_end: Instant,
    /// Whether what was under way at the end of the drain was cut off.
    cut_off: bool,
}

/// What a user is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Station {
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

#[derive(Debug)]
enum Source {
    /// Users start the next one themselves.
    Closed(Closed),
    /// They arrive.
    Open(Box<Open>),
}

#[derive(Debug)]
struct Closed {
    users: Profile,
    think: Think,
    random: Random,
    share: Share,
    follow_at: Option<Instant>,
    /// How many users are meant to work: those with a smaller place.
    active: usize,
    /// Those that have just been asked for.
    asked: Range<usize>,
}

#[derive(Debug)]
struct Open {
    rate: Profile,
    /// Counted from the offer's start.
    arrivals: Peekable<ArrivalTimes>,
    /// Those whose user had nothing more to do.
    returned: VecDeque<Instant>,
    /// Users without work. The last one is taken first: few of them stay warm rather than many cold.
    free: Vec<u32>,
    free_since: Instant,
    overflow: Overflow,
    share: Share,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// This user begins, if it still may: ask [`Offer::begin`].
    User(u32),
    /// An arrival, for this user; `late` where it did not wait for a user.
    Arrival { user: u32, due: Instant, late: bool },
    /// An arrival that no user is free for, and that is dropped.
    Dropped(Instant),
}

impl Offer {
    pub(crate) fn new(offering: &Offering, share: Share) -> Offer {
        let Offering { model, stop, start, warmup, drain, leave, seed } = offering;
        let first = Instant(start.0 - nanos(*warmup));
        let (source, users) = match model {
            LoadModel::Closed { users, think } => {
                let random = Random::seeded(*seed, 1000 + share.index as u64);
                let peak = users_at(&Profile::constant(users.peak()), Instant(0), share);
                // A constant number of users is looked at once, a varying one again and again.
                let follow_at = Some(first);
                let (users, think) = (users.clone(), *think);
                (Source::Closed(Closed { users, think, random, share, follow_at, active: 0, asked: 0..0 }), peak)
            }
            LoadModel::Open { rate, arrivals, max_users, overflow } => {
                let users = share.of_first(u64::from(*max_users)) as usize;
                let arrivals = ArrivalTimes::new(rate, *arrivals, Instant(-nanos(*warmup)), *seed, share).peekable();
                let open = Open {
                    rate: rate.clone(),
                    arrivals,
                    returned: VecDeque::new(),
                    free: (0..users as u32).rev().collect(),
                    free_since: first,
                    overflow: *overflow,
                    share,
                };
                (Source::Open(Box::new(open)), users)
            }
        };
        let (quota, quotas) = match stop {
            Stop::After(_) => (u64::MAX, Vec::new()),
            Stop::Iterations { count, .. } => (share.of_first(*count), Vec::new()),
            Stop::IterationsPerUser { count, .. } => (u64::MAX, vec![*count; users]),
        };
        let window_end = start.after(stop.limit().into());
        Offer {
            source,
            stations: vec![Station::Idle; users],
            quota,
            spent: quotas.iter().filter(|quota| **quota == 0).count(),
            quotas,
            iterating: 0,
            retiring: 0,
            retirees: None,
            called_up: false,
            leaving: VecDeque::new(),
            leave: leave.map(Nanos::from),
            start: *start,
            window_end,
            drain_end: window_end.after((*drain).into()),
            cut_off: false,
        }
    }

    /// Users do something when they stop: [`Offer::next_retiree`] says who, and when.
    pub(super) fn keep_retirees(&mut self) {
        self.retirees = Some(Vec::new());
    }

    /// How many users it has.
    pub(crate) fn len(&self) -> usize {
        self.stations.len()
    }

    /// Whether iterations arrive.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    /// Users at work: those that are meant to be, or in open load those in an iteration.
    pub(super) fn users(&self) -> usize {
        match &self.source {
            Source::Closed(closed) => closed.active,
            Source::Open(_) => self.iterating,
        }
    }

    /// What is due at `now`, one after the other.
    pub(super) fn next_start(&mut self, now: Instant) -> Option<Start> {
        self.follow_the_profile(now);
        let stations = &self.stations;
        match &mut self.source {
            Source::Closed(closed) => {
                closed.asked.find(|place| stations[*place].is_idle()).map(|place| Start::User(place as u32))
            }
            Source::Open(open) if self.quota > 0 => open.next_start(now, self.start, self.window_end),
            Source::Open(_) => None,
        }
    }

    /// Lets as many closed-loop users work as the profile asks for.
    fn follow_the_profile(&mut self, now: Instant) {
        let Source::Closed(closed) = &mut self.source else { return };
        if closed.follow_at.is_none_or(|at| now < at) || now >= self.window_end {
            return;
        }
        let into = Instant(now.0 - self.start.0);
        let settled = closed.users.stages.is_empty() || into.0 >= nanos(closed.users.length());
        closed.follow_at = (!settled).then(|| now.after(RAMP_STEP));
        let active = users_at(&closed.users, into, closed.share).min(self.stations.len());
        let before = std::mem::replace(&mut closed.active, active);
        closed.asked = before..active.max(before);
        if let Some(leave) = self.leave {
            self.leaving.retain(|(_, user)| *user as usize >= active);
            let iterating = (active..before).filter(|place| self.stations[*place] == Station::Iterating);
            self.leaving.extend(iterating.map(|place| (now.after(leave), place as u32)));
        }
    }

    /// Begins an iteration that was due at `due`, unless the user is to stop: then it has nothing to
    /// do from now on.
    pub(super) fn begin(&mut self, user: u32, due: Instant) -> bool {
        if !self.takes_quota(user, due) {
            self.park(user, due);
            return false;
        }
        self.stations[user as usize] = Station::Iterating;
        self.iterating += 1;
        true
    }

    fn takes_quota(&mut self, user: u32, due: Instant) -> bool {
        if !self.may_begin(user, due) {
            return false;
        }
        if due >= self.start {
            self.quota -= u64::from(self.quota != u64::MAX);
            if let Some(quota) = self.quotas.get_mut(user as usize) {
                *quota -= u64::from(*quota != u64::MAX);
                self.spent += usize::from(*quota == 0);
            }
        }
        true
    }

    fn may_begin(&self, user: u32, due: Instant) -> bool {
        due < self.window_end && self.quota > 0 && self.quotas.get(user as usize).is_none_or(|quota| *quota > 0)
    }

    /// An iteration is over. Comes with how long the user thinks before its next one, or nothing
    /// where it has nothing to do; `least` is the shortest pause.
    pub(super) fn iteration_ended(&mut self, user: u32, least: Nanos, now: Instant) -> Option<Nanos> {
        self.iterating -= 1;
        match &mut self.source {
            Source::Closed(closed) if (user as usize) < closed.active && !self.called_up => {
                let pause = u64::try_from(think_time(closed.think, &mut closed.random)).unwrap_or(0);
                Some(Nanos(pause).max(least))
            }
            _ => {
                self.park(user, now);
                None
            }
        }
    }

    /// The user begins no further iteration, whatever becomes of the one it is in.
    pub(super) fn lose(&mut self, user: u32) {
        self.quotas.resize(self.stations.len(), u64::MAX);
        let left = std::mem::replace(&mut self.quotas[user as usize], 0);
        self.spent += usize::from(left > 0);
    }

    /// The user has nothing more to do: its iteration is none, and it begins no other.
    pub(super) fn stop(&mut self, user: u32, due: Instant, now: Instant) {
        self.lose(user);
        self.iterating -= 1;
        if due >= self.start {
            self.quota += u64::from(self.quota != u64::MAX);
        }
        if let Source::Open(open) = &mut self.source {
            open.returned.push_back(due);
        }
        self.park(user, now);
    }

    /// The user pauses before its next iteration.
    pub(super) fn think(&mut self, user: u32) {
        self.stations[user as usize] = Station::Thinking;
    }

    /// Its pause is over. Returns whether it is still meant to work.
    pub(super) fn wake(&mut self, user: u32, now: Instant) -> bool {
        if self.stations[user as usize] != Station::Thinking {
            return false;
        }
        let is_active = matches!(&self.source, Source::Closed(closed) if (user as usize) < closed.active);
        if !is_active {
            self.park(user, now);
        }
        is_active
    }

    fn park(&mut self, user: u32, now: Instant) {
        let is_retired = self.stations[user as usize] == Station::Retired;
        if !is_retired {
            self.stations[user as usize] = Station::Idle;
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
    pub(super) fn next_retiree(&mut self, now: Instant) -> Option<u32> {
        self.retirees.as_ref()?;
        if !self.called_up && !self.offers_more(now) {
            self.called_up = true;
            let idle = |place: &u32| matches!(self.stations[*place as usize], Station::Idle | Station::Thinking);
            self.retirees = Some((0..self.stations.len() as u32).filter(idle).collect());
        }
        while let Some(user) = self.retirees.as_mut()?.pop() {
            // A ramp may have asked for it again.
            if matches!(self.stations[user as usize], Station::Idle | Station::Thinking) {
                self.stations[user as usize] = Station::Retiring;
                self.retiring += 1;
                return Some(user);
            }
        }
        None
    }

    /// A user has done what it does when it stops. Returns whether a ramp asks for it again.
    pub(super) fn retired(&mut self, user: u32, now: Instant) -> bool {
        self.retiring -= 1;
        self.stations[user as usize] = Station::Retired;
        let asked = matches!(&self.source, Source::Closed(closed) if (user as usize) < closed.active);
        asked && self.may_begin(user, now)
    }

    /// The users that are to break off what they do: at the end of the drain, or because a ramp has
    /// not asked for them any more for long enough.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<u32> {
        if now >= self.drain_end && !self.cut_off {
            self.cut_off = true;
            let busy = |place: &u32| matches!(self.stations[*place as usize], Station::Iterating | Station::Retiring);
            return (0..self.stations.len() as u32).filter(busy).collect();
        }
        let due = self.leaving.partition_point(|(at, _)| *at <= now);
        let left = self.leaving.drain(..due).map(|(_, user)| user);
        left.filter(|user| self.stations[*user as usize] == Station::Iterating).collect()
    }

    /// The next arrival that was due but for which no user ever became free.
    pub(super) fn next_unsent(&mut self, now: Instant) -> Option<Instant> {
        let Source::Open(open) = &mut self.source else { return None };
        let due = open.peek(self.start).filter(|due| *due <= now && *due < self.window_end && self.quota > 0)?;
        open.next(self.start);
        self.quota -= u64::from(self.quota != u64::MAX);
        Some(due)
    }

    /// Arrivals that are due and that no user was free for. An estimate from the present rate: the
    /// exact number would mean to draw them.
    pub(super) fn backlog(&mut self, now: Instant) -> u64 {
        let Source::Open(open) = &mut self.source else { return 0 };
        match open.peek(self.start).filter(|due| *due <= now && *due < self.window_end && self.quota > 0) {
            None => 0,
            Some(first) => {
                let rate = open.rate.at((now.0 - self.start.0) as f64 / 1e9);
                1 + (now.since(first).seconds() * rate / open.share.of as f64) as u64
            }
        }
    }

    /// Whether iterations may still begin.
    fn offers_more(&mut self, now: Instant) -> bool {
        let all_spent = self.spent > 0 && self.spent == self.stations.len();
        self.quota > 0
            && !all_spent
            && match &mut self.source {
                Source::Closed(_) => now < self.window_end,
                Source::Open(open) => open.peek(self.start).is_some_and(|due| due < self.window_end),
            }
    }

    /// Whether nothing is left to do, or no time to do it in.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let none_busy = self.iterating == 0 && self.retiring == 0 && self.retirees.as_ref().is_none_or(Vec::is_empty);
        now >= self.drain_end || none_busy && now >= self.start && !self.offers_more(now)
    }

    /// When something is due that it does by itself.
    pub(super) fn next_due(&mut self, now: Instant) -> Instant {
        let next_start = match &mut self.source {
            Source::Closed(closed) => closed.follow_at.filter(|_| now < self.window_end),
            // A user that becomes free is an event of a socket, or a time-out.
            Source::Open(open) if open.free.is_empty() && open.overflow == Overflow::Wait => None,
            Source::Open(open) => open.peek(self.start).filter(|_| self.quota > 0),
        };
        let next_start = next_start.filter(|due| *due < self.window_end);
        let next_end = if now < self.window_end { self.window_end } else { self.drain_end };
        let leaving = self.leaving.front().map(|(at, _)| *at);
        [next_start, leaving].into_iter().flatten().fold(next_end, Instant::min)
    }
}

impl Open {
    fn next_start(&mut self, now: Instant, start: Instant, window_end: Instant) -> Option<Start> {
        let due = self.peek(start).filter(|due| *due <= now && *due < window_end)?;
        if self.free.is_empty() && self.overflow == Overflow::Wait {
            return None;
        }
        self.next(start);
        let Some(user) = self.free.pop() else { return Some(Start::Dropped(due)) };
        // Waiting for a free user is the system's doing and counts in the response time; being late
        // although one was free is our own.
        Some(Start::Arrival { user, due, late: due >= self.free_since })
    }

    /// When the next iteration arrives.
    fn peek(&mut self, start: Instant) -> Option<Instant> {
        let next = || self.arrivals.peek().map(|into| Instant(start.0 + into.0));
        self.returned.front().copied().or_else(next)
    }

    fn next(&mut self, start: Instant) -> Option<Instant> {
        let next = || self.arrivals.next().map(|into| Instant(start.0 + into.0));
        self.returned.pop_front().or_else(next)
    }

    fn free(&mut self, user: u32, now: Instant) {
        if self.free.is_empty() {
            self.free_since = now;
        }
        self.free.push(user);
    }
}

impl Station {
    fn is_idle(self) -> bool {
        matches!(self, Station::Idle | Station::Retired)
    }
}

#[cfg(test)]
mod tests;
