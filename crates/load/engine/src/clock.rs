//! The generator's clock: monotonic nanoseconds around the start of the measure phase.

use plimsoll_model::units::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads instants of one trial. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: std::time::Instant,
    /// The same moment in nanoseconds since 1970.
    started_unix: i64,
    /// When the measure phase starts, by the kernel's own count: most readings are of nothing else.
    zero: i64,
    warmup: i64,
}

impl Clock {
    /// A clock whose warm-up starts now and whose measure phase starts `warmup` later.
    pub fn start(warmup: Duration) -> Clock {
        let started_unix = nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let (started, warmup) = (std::time::Instant::now(), nanos(warmup));
        Clock { started, started_unix, zero: monotonic() + warmup, warmup }
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

    /// The start of the measure phase on the system's monotonic clock.
    pub fn zero(&self) -> std::time::Instant {
        self.at(Instant(0))
    }

    /// An instant in nanoseconds since 1970, whatever is done to the machine's own date meanwhile.
    #[inline]
    pub fn unix(&self, instant: Instant) -> i64 {
        self.started_unix + self.warmup + instant.0
    }

    /// An instant from the start of warm-up on, on the system's monotonic clock.
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

/// A span in nanoseconds; `i64::MAX`, about 292 years, where it is longer.
#[inline]
pub fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
