//! The source of iterations: users that start the next one themselves, or arrivals.

use super::arrivals::Arrivals;
use super::{Offering, Start};
use crate::clock::nanos;
use crate::job::Steering;
use crate::schedule::{Random, is_settled, think_time, users_at};
use plimsoll_model::load::Share;
use plimsoll_model::load::{LoadModel, Overflow, Profile, Think};
use plimsoll_model::units::{Instant, Nanos};
use std::collections::VecDeque;
use std::ops::Range;

/// How often the number of users is adjusted to a ramp.
const RAMP_STEP: Nanos = Nanos(10_000_000);

#[derive(Debug)]
pub(super) enum Source {
    /// Users start the next one themselves.
    Closed(Closed),
    /// Iterations arrive.
    Open(Box<Open>),
}

/// Users of a closed loop.
#[derive(Debug)]
pub(super) struct Closed {
    users: Profile,
    think: Think,
    random: Random,
    share: Share,
    start: Instant,
    /// The number of users, if a control loop changes it.
    steering: Option<Steering>,
    pub(super) follow_at: Option<Instant>,
    /// The number of users that are meant to work: those with smaller numbers.
    pub(super) active: usize,
    /// The users that the last change of the profile has added, and those that it has removed.
    pub(super) added: Range<usize>,
    pub(super) removed: Range<usize>,
}

/// Arrivals, and the users that are free for them.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) arrivals: Arrivals,
    /// Users without work. The first one takes the next arrival.
    free: VecDeque<u32>,
    /// Users that have done nothing yet. They are taken only if no other is free.
    unused: Range<u32>,
    /// True if users go to the end of `free`.
    in_turn: bool,
    free_since: Instant,
    overflow: Overflow,
}

impl Source {
    /// The source of a share of an offering, and the number of users that it needs.
    pub(super) fn new(offering: &Offering, share: Share) -> (Source, usize) {
        let Offering { model, start, seed, .. } = offering;
        let warmup = nanos(offering.warmup);
        let first = Instant(start.0 - warmup);
        match model {
            LoadModel::Closed { users, think } => {
                let most = share.of_first(offering.users() as u64) as usize;
                let random = Random::seeded(*seed, 1000 + share.index as u64);
                let (users, think, start, steering) = (users.clone(), *think, *start, offering.steering.clone());
                // A constant profile is evaluated once, a varying one repeatedly.
                let follow_at = Some(first);
                let (active, added, removed) = (0, 0..0, 0..0);
                let closed = Closed { users, think, random, share, start, steering, follow_at, active, added, removed };
                (Source::Closed(closed), most)
            }
            LoadModel::Open { rate, arrivals, max_users, overflow } => {
                let users = share.of_first(u64::from(*max_users)) as usize;
                let arrivals = Arrivals::new(rate, *arrivals, offering, share);
                let in_turn = share.of_first(offering.k6_arrivals.map_or(0, |k6| k6.in_turn)) as u32;
                let open = Open {
                    arrivals,
                    free: (0..in_turn).collect(),
                    unused: in_turn..users as u32,
                    in_turn: offering.k6_arrivals.is_some(),
                    free_since: first,
                    overflow: *overflow,
                };
                (Source::Open(Box::new(open)), users)
            }
        }
    }
}

impl Source {
    /// Takes the arrivals before `end` that no user has begun.
    pub(super) fn take_waiting(&mut self, end: Instant) -> Vec<Instant> {
        match self {
            Source::Closed(_) => Vec::new(),
            Source::Open(open) => std::iter::from_fn(|| open.arrivals.next_if(|due| due < end)).collect(),
        }
    }

    /// Goes on with the source `next`, after arrivals that waited. Which users are free stays as it is.
    pub(super) fn go_on(&mut self, next: Source, waiting: impl Iterator<Item = Instant>) {
        match (self, next) {
            (Source::Open(open), Source::Open(next)) => {
                (open.arrivals, open.free_since) = (next.arrivals, next.free_since);
                waiting.for_each(|due| open.arrivals.give_back(due));
            }
            (source, next) => *source = next,
        }
    }
}

impl Closed {
    /// True if a control loop changes the number of users.
    pub(super) fn is_steered(&self) -> bool {
        self.steering.is_some()
    }

    /// Evaluates how many of `users` users the profile asks for, if that is due. Returns true if it was due.
    pub(super) fn follow(&mut self, now: Instant, users: usize) -> bool {
        if self.follow_at.is_none_or(|at| now < at) {
            return false;
        }
        let into = Instant(now.0 - self.start.0);
        self.follow_at = (!is_settled(&self.users, into) || self.steering.is_some()).then(|| now.after(RAMP_STEP));
        let asked = match self.steering.as_ref().and_then(Steering::users) {
            Some(users) => usize::try_from(self.share.of_first(users)).unwrap_or(usize::MAX),
            None => users_at(&self.users, into, self.share),
        };
        let active = asked.min(users);
        let before = std::mem::replace(&mut self.active, active);
        (self.added, self.removed) = (before..active.max(before), active..before.max(active));
        true
    }

    /// True if the control loop has ended the load.
    pub(super) fn has_been_ended(&self) -> bool {
        self.steering.as_ref().is_some_and(|steering| steering.users().is_none())
    }

    pub(super) fn asks_for(&self, user: u32) -> bool {
        (user as usize) < self.active
    }

    /// Draws a pause.
    pub(super) fn think(&mut self) -> Nanos {
        Nanos(u64::try_from(think_time(self.think, &mut self.random)).unwrap_or(0))
    }
}

impl Open {
    pub(super) fn next_start(&mut self, now: Instant, window_end: Instant) -> Option<Start> {
        if self.waits_for_users() {
            return None;
        }
        let due = self.arrivals.next_if(|due| due <= now && due < window_end)?;
        let Some(user) = self.free.pop_front().or_else(|| self.unused.next()) else { return Some(Start::Dropped(due)) };
        Some(Start::Arrival { user, due, was_free: due >= self.free_since })
    }

    /// See [`Offer::drop_overdue`](super::Offer::drop_overdue).
    pub(super) fn drop_overdue(&mut self, until: Instant, is_late: bool) -> u64 {
        let drops = self.overflow == Overflow::Drop && (is_late || self.nobody_is_free());
        if drops { self.arrivals.drop_until(until) } else { 0 }
    }

    /// True if no arrival can begin, however many are due.
    pub(super) fn waits_for_users(&self) -> bool {
        self.nobody_is_free() && self.overflow == Overflow::Wait
    }

    fn nobody_is_free(&self) -> bool {
        self.free.is_empty() && self.unused.is_empty()
    }

    pub(super) fn free(&mut self, user: u32, now: Instant) {
        if self.nobody_is_free() {
            self.free_since = now;
        }
        if self.in_turn {
            self.free.push_back(user);
        } else {
            self.free.push_front(user);
        }
    }
}
