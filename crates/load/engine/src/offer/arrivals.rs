//! The arrivals of an open load: when the next iteration is due.

use super::Offering;
use crate::clock::nanos;
use crate::schedule::ArrivalTimes;
use plimsoll_model::load::Share;
use plimsoll_model::load::{self, Profile};
use plimsoll_model::units::Instant;
use std::collections::VecDeque;

/// A share of the arrivals of an open load, in order of time.
#[derive(Debug)]
pub(crate) struct Arrivals {
    rate: Profile,
    /// Instants counted from `start`.
    times: ArrivalTimes,
    /// The next of them, if it is known already.
    next: Option<Instant>,
    start: Instant,
    /// Arrivals that were given back, because their user had nothing more to do. They are taken first.
    returned: VecDeque<Instant>,
    share: Share,
}

impl Arrivals {
    /// The arrivals of `share` at this rate.
    pub(crate) fn new(rate: &Profile, arrivals: load::Arrivals, offering: &Offering, share: Share) -> Arrivals {
        let first = Instant(-nanos(offering.warmup));
        let times = ArrivalTimes::new(rate, arrivals, first, offering.seed, share);
        let after_a_gap = offering.k6_arrivals.is_some_and(|k6| k6.after_a_gap);
        let times = if after_a_gap { times.after_a_gap() } else { times };
        let (rate, start) = (rate.clone(), offering.start);
        Arrivals { rate, times, next: None, start, returned: VecDeque::new(), share }
    }

    /// When the next iteration arrives.
    pub(crate) fn peek(&mut self) -> Option<Instant> {
        if let Some(returned) = self.returned.front() {
            return Some(*returned);
        }
        if self.next.is_none() {
            self.next = self.times.next();
        }
        self.next.map(|into| Instant(self.start.0 + into.0))
    }

    /// Takes the next arrival if `is_wanted` says so.
    pub(crate) fn next_if(&mut self, is_wanted: impl Fn(Instant) -> bool) -> Option<Instant> {
        let due = self.peek().filter(|due| is_wanted(*due))?;
        if self.returned.pop_front().is_none() {
            self.next = None;
        }
        Some(due)
    }

    /// Drops most arrivals until an instant, however many they are. Returns how many it has dropped.
    pub(crate) fn drop_until(&mut self, until: Instant) -> u64 {
        let skipped = self.times.skip_until(Instant(until.0 - self.start.0));
        let returned = self.returned.len() as u64;
        self.returned.clear();
        skipped + returned
    }

    /// Gives back an arrival whose user did not begin. It is the next one to be taken.
    pub(crate) fn give_back(&mut self, due: Instant) {
        self.returned.push_back(due);
    }

    /// The number of arrivals that are due: an estimate from the present rate, because the exact number would require
    /// drawing them.
    pub(crate) fn backlog(&mut self, now: Instant, window_end: Instant) -> u64 {
        let Some(first) = self.peek().filter(|due| *due <= now && *due < window_end) else { return 0 };
        let rate = self.rate.at((now.0 - self.start.0) as f64 / 1e9);
        1 + (now.since(first).seconds() * rate / self.share.of as f64) as u64
    }
}
