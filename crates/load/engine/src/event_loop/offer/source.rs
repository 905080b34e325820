//! What offers iterations: users who start the next one themselves, or arrivals.

use super::{Offering, Start};
use crate::clock::nanos;
use crate::schedule::{ArrivalTimes, Random, Share, think_time, users_at};
use plimsoll_model::load::{LoadModel, Overflow, Profile, Think};
use plimsoll_model::units::{Instant, Nanos};
use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;

/// How often the number of users follows a ramp.
const RAMP_STEP: Nanos = Nanos(10_000_000);

#[derive(Debug)]
pub(super) enum Source {
    /// Users start the next one themselves.
    Closed(Closed),
    /// They arrive.
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
    pub(super) follow_at: Option<Instant>,
    /// How many users are meant to work: those with a smaller place.
    pub(super) active: usize,
    /// Those that have just been asked for, and those that no longer are.
    pub(super) asked: Range<usize>,
    pub(super) dismissed: Range<usize>,
}

/// Arrivals, and who is free for them.
#[derive(Debug)]
pub(super) struct Open {
    rate: Profile,
    /// Counted from `start`.
    arrivals: Peekable<ArrivalTimes>,
    start: Instant,
    /// Those whose user had nothing more to do.
    pub(super) returned: VecDeque<Instant>,
    /// Users without work. The first one is taken.
    free: VecDeque<u32>,
    /// Users that are taken only where nobody else is free: they have done nothing yet.
    fresh: Range<u32>,
    /// Whether users go to the end of `free`.
    in_turn: bool,
    free_since: Instant,
    overflow: Overflow,
    share: Share,
}

impl Source {
    /// A share of what an offering asks for, and how many users it takes.
    pub(super) fn new(offering: &Offering, share: Share) -> (Source, usize) {
        let Offering { model, start, seed, .. } = offering;
        let warmup = nanos(offering.warmup);
        let first = Instant(start.0 - warmup);
        match model {
            LoadModel::Closed { users, think } => {
                let most = share.of_first(offering.users() as u64) as usize;
                let random = Random::seeded(*seed, 1000 + share.index as u64);
                let (users, think, start) = (users.clone(), *think, *start);
                // A constant number of users is looked at once, a varying one again and again.
                let follow_at = Some(first);
                let (active, asked, dismissed) = (0, 0..0, 0..0);
                (
                    Source::Closed(Closed { users, think, random, share, start, follow_at, active, asked, dismissed }),
                    most,
                )
            }
            LoadModel::Open { rate, arrivals, max_users, overflow } => {
                let users = share.of_first(u64::from(*max_users)) as usize;
                let arrivals = ArrivalTimes::new(rate, *arrivals, Instant(-warmup), *seed, share);
                let (in_turn, after_a_gap) = offering.as_k6.map_or((0, false), |it| (it.in_turn, it.after_a_gap));
                let arrivals = if after_a_gap { arrivals.after_a_gap() } else { arrivals };
                let in_turn = share.of_first(in_turn) as u32;
                let open = Open {
                    rate: rate.clone(),
                    arrivals: arrivals.peekable(),
                    start: *start,
                    returned: VecDeque::new(),
                    free: (0..in_turn).collect(),
                    fresh: in_turn..users as u32,
                    in_turn: offering.as_k6.is_some(),
                    free_since: first,
                    overflow: *overflow,
                    share,
                };
                (Source::Open(Box::new(open)), users)
            }
        }
    }
}

impl Closed {
    /// Looks how many of so many users the profile asks for, where it is time. Returns whether it was.
    pub(super) fn follow(&mut self, now: Instant, users: usize) -> bool {
        if self.follow_at.is_none_or(|at| now < at) {
            return false;
        }
        let into = Instant(now.0 - self.start.0);
        let settled = self.users.stages.is_empty() || into.0 >= nanos(self.users.length());
        self.follow_at = (!settled).then(|| now.after(RAMP_STEP));
        let active = users_at(&self.users, into, self.share).min(users);
        let before = std::mem::replace(&mut self.active, active);
        (self.asked, self.dismissed) = (before..active.max(before), active..before.max(active));
        true
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
        let due = self.next_if(|due| due <= now && due < window_end)?;
        let Some(user) = self.free.pop_front().or_else(|| self.fresh.next()) else { return Some(Start::Dropped(due)) };
        Some(Start::Arrival { user, due, was_free: due >= self.free_since })
    }

    /// Whether no arrival can begin, however many are due.
    pub(super) fn waits_for_users(&self) -> bool {
        self.nobody_is_free() && self.overflow == Overflow::Wait
    }

    fn nobody_is_free(&self) -> bool {
        self.free.is_empty() && self.fresh.is_empty()
    }

    /// When the next iteration arrives.
    pub(super) fn peek(&mut self) -> Option<Instant> {
        let next = || self.arrivals.peek().map(|into| Instant(self.start.0 + into.0));
        self.returned.front().copied().or_else(next)
    }

    /// Takes the next arrival, where it is as it should be.
    pub(super) fn next_if(&mut self, is_meant: impl Fn(Instant) -> bool) -> Option<Instant> {
        let due = self.peek().filter(|due| is_meant(*due))?;
        if self.returned.pop_front().is_none() {
            self.arrivals.next();
        }
        Some(due)
    }

    /// How many arrivals are due: an estimate from the present rate, for the exact number would mean
    /// to draw them.
    pub(super) fn backlog(&mut self, now: Instant, window_end: Instant) -> u64 {
        let Some(first) = self.peek().filter(|due| *due <= now && *due < window_end) else { return 0 };
        let rate = self.rate.at((now.0 - self.start.0) as f64 / 1e9);
        1 + (now.since(first).seconds() * rate / self.share.of as f64) as u64
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
