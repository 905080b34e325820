//! The timers of one thread of the engine.
//!
//! Deadlines that hardly ever pass (a time-out for each exchange) must not cost a heap operation each. [`Deadline`]
//! keeps one entry in the heap and compares the real deadline only when that entry is due.

use plimsoll_model::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A user's pause between two iterations ends.
    Wake(u32),
    /// A user's pause within an iteration ends.
    Pause(u32),
    /// A user's exchange may have timed out.
    UserDeadline(u32),
    /// A connection attempt may have timed out.
    ConnectDeadline(u32),
    /// An operation of a script's user is due.
    Operation {
        /// The user.
        user: u32,
        /// The number of the operation.
        id: u32,
    },
}

/// Alarms in the order in which they are due.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<(Instant, Alarm)>>);

impl Timers {
    /// Adds an alarm.
    #[inline]
    pub fn set(&mut self, at: Instant, alarm: Alarm) {
        self.0.push(Reverse((at, alarm)));
    }

    /// When the next alarm is due.
    #[inline]
    pub fn next_due(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Moves all alarms later by `by`, or earlier if it is negative.
    pub(crate) fn shift(&mut self, by: i64) {
        let entries = std::mem::take(&mut self.0).into_vec();
        self.0 = entries.into_iter().map(|Reverse((at, alarm))| Reverse((at.shifted(by), alarm))).collect();
    }

    /// Takes the next alarm that is due at `now`, with the instant at which it was due.
    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, Alarm)> {
        if self.next_due()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }
}

/// A deadline that moves often and passes rarely.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    at: Option<Instant>,
    /// When the earliest entry in the heap is due.
    armed: Option<Instant>,
}

impl Deadline {
    /// Moves the deadline to `at`. Moving it later costs nothing; only a deadline before every entry in the heap needs
    /// a new entry.
    #[inline]
    pub fn set(&mut self, at: Instant, alarm: Alarm, timers: &mut Timers) {
        self.at = Some(at);
        if self.armed.is_none_or(|armed| at < armed) {
            self.armed = Some(at);
            timers.set(at, alarm);
        }
    }

    /// Removes the deadline. Its entry stays in the heap and is ignored when it is due.
    #[inline]
    pub fn clear(&mut self) {
        self.at = None;
    }

    /// Moves the deadline together with [`Timers::shift`].
    pub(crate) fn shift(&mut self, by: i64) {
        for at in [&mut self.at, &mut self.armed].into_iter().flatten() {
            *at = at.shifted(by);
        }
    }

    /// Handles an entry that is due: returns true if the deadline has really passed.
    #[inline]
    pub fn has_passed(&mut self, now: Instant, alarm: Alarm, timers: &mut Timers) -> bool {
        self.armed = self.armed.filter(|armed| *armed > now);
        match self.at {
            None => false,
            Some(at) if at <= now => {
                self.at = None;
                true
            }
            Some(at) => {
                self.set(at, alarm, timers);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_come_in_order_and_only_when_due() {
        let mut timers = Timers::default();
        timers.set(Instant(30), Alarm::Wake(1));
        timers.set(Instant(10), Alarm::Wake(2));
        assert_eq!(timers.next_due(), Some(Instant(10)));
        assert_eq!(timers.pop_due(Instant(5)), None);
        assert_eq!(timers.pop_due(Instant(20)), Some((Instant(10), Alarm::Wake(2))));
        assert_eq!(timers.pop_due(Instant(20)), None);
    }

    #[test]
    fn a_deadline_that_moves_takes_one_entry_and_strikes_once() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        let alarm = Alarm::UserDeadline(0);
        for at in [10, 20, 30] {
            deadline.set(Instant(at), alarm, &mut timers);
        }
        assert_eq!(timers.pop_due(Instant(10)), Some((Instant(10), alarm)));
        assert!(!deadline.has_passed(Instant(10), alarm, &mut timers), "it has moved to 30");
        assert_eq!(timers.pop_due(Instant(30)), Some((Instant(30), alarm)));
        assert!(deadline.has_passed(Instant(30), alarm, &mut timers));
        assert_eq!(timers.next_due(), None);
    }

    #[test]
    fn a_deadline_that_moves_forward_strikes_in_time_and_only_once() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        let alarm = Alarm::ConnectDeadline(0);
        deadline.set(Instant(100), alarm, &mut timers);
        deadline.set(Instant(10), alarm, &mut timers);
        assert_eq!(timers.pop_due(Instant(10)), Some((Instant(10), alarm)));
        assert!(deadline.has_passed(Instant(10), alarm, &mut timers));
        assert_eq!(timers.pop_due(Instant(100)), Some((Instant(100), alarm)), "the old entry is still there");
        assert!(!deadline.has_passed(Instant(100), alarm, &mut timers));
    }

    #[test]
    fn a_cleared_deadline_does_not_strike() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        let alarm = Alarm::ConnectDeadline(3);
        deadline.set(Instant(10), alarm, &mut timers);
        deadline.clear();
        timers.pop_due(Instant(10)).expect("the entry is still there");
        assert!(!deadline.has_passed(Instant(10), alarm, &mut timers));
    }
}
