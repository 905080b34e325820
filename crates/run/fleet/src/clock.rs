//! The clock of an agent against that of the coordinator: their difference and its error, from beats that the agent answers.
//!
//! As in NTP (RFC 5905, section 8): a beat leaves at `t1` and arrives at `t2`, its answer leaves at `t3` and arrives at `t4`.
//! The difference is `((t2 − t1) + (t3 − t4)) / 2`, and the truth is within half of the time on the way,
//! `((t4 − t1) − (t3 − t2)) / 2`. The answer that was shortest on its way is the one to believe.

use plimsoll_model::units::{Nanos, UnixTime};
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

/// The answers that are kept: those of the last few seconds. Clocks drift apart by some microseconds in that time.
const KEPT: usize = 32;

/// Two clocks do not drift apart by more than this while answers are kept.
const DRIFT: Nanos = Nanos(5_000_000);

/// The instants of a beat and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// When it left, on the coordinator's clock.
    pub(crate) sent: UnixTime,
    /// When it arrived, on the agent's clock.
    pub(crate) received: UnixTime,
    /// When the answer left, on the agent's clock.
    pub(crate) answered: UnixTime,
    /// When the answer arrived, on the coordinator's clock.
    pub(crate) returned: UnixTime,
}

/// The lead of an agent's clock over the coordinator's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Nanoseconds by which it is ahead; below zero if it is behind.
    pub(crate) ahead: i64,
    /// The most by which that may be wrong.
    pub(crate) error: Nanos,
}

impl Offset {
    /// Whether both can be right.
    fn agrees_with(self, other: Offset) -> bool {
        (self.ahead - other.ahead).unsigned_abs() <= self.error.0 + other.error.0 + DRIFT.0
    }

    /// The instant on the agent's clock that is `instant` on the coordinator's.
    pub(crate) fn on_agent(self, instant: UnixTime) -> UnixTime {
        UnixTime(instant.0 + self.ahead)
    }
}

/// A date that has passed, on the monotonic clock of this host.
pub(crate) fn instant_of(date: UnixTime) -> Instant {
    let (now, today) = (Instant::now(), UnixTime::of(SystemTime::now()));
    now.checked_sub(Duration::from(today.since(date))).unwrap_or(now)
}

/// The date of an instant that has passed.
pub(crate) fn date_of(instant: Instant) -> UnixTime {
    let passed = Nanos::from(instant.elapsed());
    UnixTime(UnixTime::of(SystemTime::now()).0 - passed.0 as i64)
}

/// The last answers of an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    kept: VecDeque<Offset>,
}

impl Clock {
    /// Takes a beat that was answered.
    pub(crate) fn take(&mut self, beat: Beat) {
        let Beat { sent, received, answered, returned } = beat;
        let ahead = ((received.0 - sent.0) + (answered.0 - returned.0)) / 2;
        let way = (returned.0 - sent.0) - (answered.0 - received.0);
        let found = Offset { ahead, error: Nanos(way.max(0).unsigned_abs() / 2) };
        // A clock that was set is another one: what was known of it is wrong, however sure it was.
        if self.offset().is_some_and(|known| !known.agrees_with(found)) {
            self.kept.clear();
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(found);
    }

    /// The difference; none before the first answer.
    pub(crate) fn offset(&self) -> Option<Offset> {
        self.kept.iter().copied().min_by_key(|offset| offset.error)
    }

    /// The longest of the last ways to the agent and back.
    pub(crate) fn longest_way(&self) -> Nanos {
        Nanos(self.kept.iter().map(|offset| offset.error.0 * 2).max().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_difference_is_within_the_error(
            ahead in -1_000_000_000_i64..1_000_000_000,
            ways in prop::collection::vec((0_i64..50_000_000, 0_i64..50_000_000, 0_i64..1_000_000), 1..60),
        ) {
            let mut clock = Clock::default();
            let mut now = 1_700_000_000_000_000_000;
            for (there, thought, back) in ways {
                let sent = UnixTime(now);
                let received = UnixTime(now + there + ahead);
                let answered = UnixTime(received.0 + thought);
                let returned = UnixTime(answered.0 - ahead + back);
                clock.take(Beat { sent, received, answered, returned });
                now += 250_000_000;
            }
            let offset = clock.offset().expect("it was answered");
            prop_assert!((offset.ahead - ahead).unsigned_abs() <= offset.error.0 + 1);
            prop_assert!(offset.error.0 * 2 <= clock.longest_way().0 + 1);
        }
    }

    #[test]
    fn a_clock_that_was_set_is_another_one() {
        let beat = |at: i64, ahead: i64, way: i64| Beat {
            sent: UnixTime(at),
            received: UnixTime(at + way + ahead),
            answered: UnixTime(at + way + ahead),
            returned: UnixTime(at + 2 * way),
        };
        let mut clock = Clock::default();
        (0..8).for_each(|number| clock.take(beat(number * 1_000_000, 7_000, 20_000)));
        // The next answer takes longer, and is right all the same.
        clock.take(beat(9_000_000, 3_600_000_000_000, 900_000));
        assert_eq!(clock.offset(), Some(Offset { ahead: 3_600_000_000_000, error: Nanos(900_000) }));
        clock.take(beat(10_000_000, 3_600_000_000_000, 100_000));
        assert_eq!(clock.offset().map(|offset| offset.error), Some(Nanos(100_000)));
    }

    #[test]
    fn an_instant_is_converted_to_the_agents_clock() {
        let offset = Offset { ahead: -5, error: Nanos(1) };
        assert_eq!(offset.on_agent(UnixTime(100)), UnixTime(95));
    }
}
