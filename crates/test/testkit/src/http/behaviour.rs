//! The behaviour of a server on a path: when it replies, and with what.

use super::reply::Reply;
use std::time::Duration;

/// When a server replies to a request, and with what.
#[derive(Clone, Debug)]
pub struct Behaviour {
    pub(super) timing: Timing,
    pub(super) reply: Reply,
}

/// When a reply leaves, counted from the instant at which the request was completely read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timing {
    /// After a fixed time, however many wait; zero for at once.
    After(Duration),
    /// At once, except during a stall that begins `at` after the first request. Replies to requests in the
    /// stall leave at its end, in order.
    Stalling { at: Duration, length: Duration },
    /// After `slow` at first, and after `settled` once this time has passed since the first request.
    Settling { slow: Duration, settled: Duration, after: Duration },
    /// After `from`, plus `more` for each second since the first request.
    Slowing { from: Duration, more: Duration },
    /// One server, first come, first served.
    Queue(Service),
    /// Never.
    Never,
}

/// The service time of the one server of a queue.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// Always the same.
    Constant(Duration),
    /// Exponentially distributed, independent: with Poisson arrivals this is M/M/1.
    Exponential {
        /// The mean.
        mean: Duration,
        /// Seed of the times.
        seed: u64,
    },
}

impl Behaviour {
    /// Replies at once.
    #[must_use]
    pub fn at_once(reply: Reply) -> Behaviour {
        Behaviour::after(Duration::ZERO, reply)
    }

    /// Replies `delay` after the request was read, however many requests wait at the same time.
    #[must_use]
    pub fn after(delay: Duration, reply: Reply) -> Behaviour {
        Behaviour { timing: Timing::After(delay), reply }
    }

    /// Replies at once, except for a stall that begins `at` after the first request and lasts
    /// `length`: requests read in it are answered at its end, in order. A request that is read
    /// `x` before the end of the stall therefore waits exactly `x`.
    #[must_use]
    pub fn stalling(at: Duration, length: Duration, reply: Reply) -> Behaviour {
        Behaviour { timing: Timing::Stalling { at, length }, reply }
    }

    /// Replies after `slow` for the time `after` that begins with the first request, and then after
    /// `settled`: a system that warms up.
    #[must_use]
    pub fn settling(slow: Duration, settled: Duration, after: Duration, reply: Reply) -> Behaviour {
        Behaviour { timing: Timing::Settling { slow, settled, after }, reply }
    }

    /// Replies after `from`, and later by `more` for each second since the first request: a system
    /// that never becomes steady.
    #[must_use]
    pub fn slowing(from: Duration, more: Duration, reply: Reply) -> Behaviour {
        Behaviour { timing: Timing::Slowing { from, more }, reply }
    }

    /// Replies as a queue with one server, first come, first served.
    #[must_use]
    pub fn queue(service: Service, reply: Reply) -> Behaviour {
        Behaviour { timing: Timing::Queue(service), reply }
    }

    /// Replies to at most `rate` requests per second: a queue in which each takes 1/`rate`.
    ///
    /// # Panics
    /// When `rate` is not above zero.
    #[must_use]
    pub fn saturating_at(rate: f64, reply: Reply) -> Behaviour {
        Behaviour::queue(Service::Constant(Duration::from_secs_f64(1.0 / rate)), reply)
    }

    /// Reads the request and never replies; the connection stays open.
    #[must_use]
    pub fn never() -> Behaviour {
        Behaviour { timing: Timing::Never, reply: Reply::of_size(0) }
    }
}
