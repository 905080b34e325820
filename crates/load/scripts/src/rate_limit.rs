//! The most requests that all users together begin in a second.

use plimsoll_model::units::{Instant, Nanos};
use std::sync::atomic::{AtomicI64, Ordering};

/// Spaces the requests of all threads evenly, or not at all without a limit.
pub(super) struct RateLimit {
    gap: Option<Nanos>,
    /// When the next request may go.
    next: AtomicI64,
}

impl RateLimit {
    /// A limit of `most` requests a second; none for no limit.
    pub(super) fn new(most: Option<u64>) -> RateLimit {
        let gap = most.filter(|most| *most > 0).map(|most| Nanos(1_000_000_000 / most));
        RateLimit { gap, next: AtomicI64::new(i64::MIN) }
    }

    /// Reserves the next instant at which a request may go.
    pub(super) fn take(&self, now: Instant) -> Instant {
        let Some(gap) = self.gap else { return now };
        let later = |next: i64| Some(Instant(next.max(now.0)).after(gap).0);
        let before = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        Instant(before.unwrap_or_else(|unchanged| unchanged).max(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_evenly_and_time_that_passed_unused_is_lost() {
        let rate_limit = RateLimit::new(Some(10));
        let ms = |milliseconds: i64| Instant(milliseconds * 1_000_000);
        let taken = [0, 0, 10, 500, 500].map(|at| rate_limit.take(ms(at)));
        assert_eq!(taken, [0, 100, 200, 500, 600].map(ms));
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        for rate_limit in [RateLimit::new(None), RateLimit::new(Some(0))] {
            assert_eq!([rate_limit.take(Instant(7)), rate_limit.take(Instant(7))], [Instant(7); 2]);
        }
    }
}
