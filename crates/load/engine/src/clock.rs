//! The generator's clock: monotonic nanoseconds around the start of the measure phase.

use crate::job::Steering;
use plimsoll_model::job::{Begin, JobError};
use plimsoll_model::record::RecordedPhase;
use plimsoll_model::units::{Instant, Nanos, UnixTime};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// How soon an interruption is noticed while a load waits for its begin.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// The clock of one trial. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: std::time::Instant,
    /// The same instant by the machine's date.
    started_unix: UnixTime,
    /// The start of the measure phase on the kernel's monotonic clock, so that a reading is one subtraction.
    zero: i64,
    warmup: i64,
}

impl Clock {
    /// A clock whose warm-up starts now and whose measure phase starts `warmup` later.
    pub fn start(warmup: Duration) -> Clock {
        Clock::starting_at(UnixTime::of(SystemTime::now()), Nanos(0), warmup)
    }

    /// The clock of a load whose users are ready: its warm-up starts now, or at the instant that is told. This waits until
    /// then, unless interrupted.
    ///
    /// # Errors
    /// That instant has passed.
    pub fn when_ready(
        begin: Begin,
        steering: &Steering,
        warmup: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Clock, JobError> {
        let told = match begin {
            Begin::WhenReady => None,
            Begin::WhenTold => steering.ready(interrupted),
        };
        told.map_or_else(|| Ok(Clock::start(warmup)), |begin| Clock::start_at(begin, warmup, interrupted))
    }

    /// Waits until `begin`, unless interrupted, and returns a clock whose warm-up starts then.
    fn start_at(begin: UnixTime, warmup: Duration, interrupted: &AtomicBool) -> Result<Clock, JobError> {
        let now = UnixTime::of(SystemTime::now());
        if begin < now {
            return Err(JobError::Late(now.since(begin)));
        }
        let clock = Clock::starting_at(begin, begin.since(now), warmup);
        while !interrupted.load(Ordering::Relaxed) {
            let left = clock.first().since(clock.now());
            if left == Nanos(0) {
                break;
            }
            std::thread::sleep(Duration::from(left).min(POLL_EVERY));
        }
        Ok(clock)
    }

    /// A clock whose warm-up starts at `started_unix`, which is `wait` from now.
    fn starting_at(started_unix: UnixTime, wait: Nanos, warmup: Duration) -> Clock {
        let (started, warmup) = (std::time::Instant::now() + Duration::from(wait), nanos(warmup));
        Clock { started, started_unix, zero: monotonic() + nanos(wait.into()) + warmup, warmup }
    }

    /// The present instant.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant(monotonic() - self.zero)
    }

    /// The instant at which warm-up started.
    pub fn first(&self) -> Instant {
        Instant(-self.warmup)
    }

    /// The phase of what arrived at `due`, in a load whose measure phase ends at `end`. Where users stay, loads follow one another
    /// without a gap, and an arrival from before this one keeps the phase of its time. All loads are taken to be as long as this
    /// one: the longer warm-up of the first is not known here.
    #[inline]
    pub fn phase_of_arrival(&self, due: Instant, end: Instant) -> RecordedPhase {
        let (first, length) = (self.first(), end.0 + self.warmup);
        // On this clock the measure phase of an earlier load ends where the warm-up of the one after it begins.
        let is_measured = if due < first && length > 0 { due.0.rem_euclid(length) < end.0 } else { due.0 >= 0 };
        if is_measured { RecordedPhase::Measure } else { RecordedPhase::Warmup }
    }

    /// The start of the measure phase on the system's monotonic clock.
    pub fn zero(&self) -> std::time::Instant {
        self.at(Instant(0))
    }

    /// Converts an instant to a date, independently of changes to the machine's own date meanwhile.
    #[inline]
    pub fn unix(&self, instant: Instant) -> UnixTime {
        UnixTime(self.started_unix.0 + self.warmup + instant.0)
    }

    /// Converts an instant, from the start of warm-up on, to the system's monotonic clock.
    pub fn at(&self, instant: Instant) -> std::time::Instant {
        self.started + Duration::from_nanos(instant.since(self.first()).0)
    }
}

/// Nanoseconds since the machine was started.
#[inline]
fn monotonic() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// A span in nanoseconds; at most `i64::MAX`, about 292 years.
#[inline]
pub fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_since_an_earlier_load_has_the_phase_that_there_was_then() {
        // Loads of 50 ns of warm-up and 100 ns that are measured.
        let clock = Clock::start(Duration::from_nanos(50));
        let phase = |due| clock.phase_of_arrival(Instant(due), Instant(100));
        for (due, expected) in [
            (0, RecordedPhase::Measure),
            (-1, RecordedPhase::Warmup),
            (-50, RecordedPhase::Warmup),
            (-51, RecordedPhase::Measure),
            (-150, RecordedPhase::Measure),
            (-151, RecordedPhase::Warmup),
            (-201, RecordedPhase::Measure),
        ] {
            assert_eq!(phase(due), expected, "{due}");
        }
    }
}
