//! Units that must not be confused: instants and spans in nanoseconds, bytes, rates, processors.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds on the monotonic clock: an instant, counted from the start of a trial's measure
/// phase. Negative before it, so warm-up instants sort first and second 0 is the first measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant(pub i64);

impl Instant {
    /// The span from `earlier` to `self`; zero when `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: Instant) -> Nanos {
        Nanos(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// The instant `span` later.
    #[must_use]
    pub fn after(self, span: Nanos) -> Instant {
        Instant(self.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }

    /// The instant `by` nanoseconds later, or earlier if that is negative.
    #[must_use]
    pub fn shifted(self, by: i64) -> Instant {
        Instant(self.0.saturating_add(by))
    }

    /// The whole second this instant lies in: 0 is the first second of the measure phase.
    #[must_use]
    pub fn second(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }
}

/// Nanoseconds since 1970, UTC: an instant that means the same on every machine, as far as their clocks agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(pub i64);

impl UnixTime {
    /// Converts the time that a machine's clock has read. A time before 1970 becomes 0.
    #[must_use]
    pub fn of(time: SystemTime) -> UnixTime {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixTime(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    /// The span from `earlier` to `self`; zero when `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: UnixTime) -> Nanos {
        Nanos(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The span in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Duration::from_nanos(span.0)
    }
}

/// A set of processors by number, written as in `taskset`: `0-2,5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Processors(pub Vec<usize>);

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_instants_lie_in_negative_seconds() {
        assert_eq!(Instant(-1).second(), -1);
        assert_eq!(Instant(0).second(), 0);
        assert_eq!(Instant(1_999_999_999).second(), 1);
    }

    #[test]
    fn a_span_is_never_negative() {
        assert_eq!(Instant(5).since(Instant(9)), Nanos(0));
        assert_eq!(Instant(-5).after(Nanos(7)), Instant(2));
    }
}
