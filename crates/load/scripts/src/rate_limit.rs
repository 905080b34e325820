//! The most requests that all users together begin in a second.

use plimsoll_k6::operations::HttpRequest;
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

    /// Reserves an instant for a request. As in k6, the limit is on requests of scripts: redirects and logins that
    /// follow from one go at once.
    pub(super) fn turn_of(&self, request: &HttpRequest, now: Instant) -> Instant {
        if request.follows { now } else { self.take(now) }
    }

    /// Reserves the next instant at which a request may go.
    fn take(&self, now: Instant) -> Instant {
        let Some(gap) = self.gap else { return now };
        let later = |next: i64| Some(Instant(next.max(now.0)).after(gap).0);
        let before = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        Instant(before.unwrap_or_else(|unchanged| unchanged).max(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_k6::operations::BodyWanted;
    use plimsoll_web::Url;
    use std::rc::Rc;

    #[test]
    fn requests_go_evenly_and_time_that_passed_unused_is_lost() {
        let rate_limit = RateLimit::new(Some(10));
        let ms = |milliseconds: i64| Instant(milliseconds * 1_000_000);
        let taken = [0, 0, 10, 500, 500].map(|at| rate_limit.take(ms(at)));
        assert_eq!(taken, [0, 100, 200, 500, 600].map(ms));
    }

    #[test]
    fn a_request_counts_once_however_many_exchanges_it_takes() {
        let rate_limit = RateLimit::new(Some(10));
        let exchange = |follows| HttpRequest {
            method: "GET".into(),
            url: Rc::new(Url::parse("http://here/").expect("a URL")),
            headers: String::new(),
            body: Rc::default(),
            timeout: Nanos(1000),
            body_wanted: BodyWanted::Kept,
            name: "a".into(),
            expected: None,
            follows,
        };
        let ms = |milliseconds: i64| Instant(milliseconds * 1_000_000);
        let turns = [(false, 0), (true, 20), (true, 40), (false, 60), (true, 120)]
            .map(|(follows, at)| rate_limit.turn_of(&exchange(follows), ms(at)));
        assert_eq!(turns, [0, 20, 40, 100, 120].map(ms));
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        for rate_limit in [RateLimit::new(None), RateLimit::new(Some(0))] {
            assert_eq!([rate_limit.take(Instant(7)), rate_limit.take(Instant(7))], [Instant(7); 2]);
        }
    }
}
