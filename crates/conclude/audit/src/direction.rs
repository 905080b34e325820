//! The direction that is better, by the name of a measure.

use plimsoll_model::measure::Direction;

/// Words in names of measures of which less is better. They are searched first: an error rate is no
/// rate.
const LOWER: [&str; 41] = [
    "allocations",
    "allocs",
    "cpu",
    "delay",
    "duration",
    "elapsed",
    "energy",
    "error",
    "errors",
    "failed",
    "failures",
    "gc",
    "goroutines",
    "heap",
    "lag",
    "latency",
    "lateness",
    "memory",
    "misses",
    "overhead",
    "page faults",
    "pause",
    "power",
    "queue",
    "ram",
    "response",
    "retries",
    "rss",
    "runtime",
    "size",
    "stack",
    "stall",
    "startup",
    "time",
    "timeouts",
    "times",
    "ttfb",
    "usage",
    "wait",
    "waits",
    "ms",
];

/// Words in names of measures of which more is better.
const HIGHER: [&str; 29] = [
    "bandwidth",
    "capacity",
    "clients",
    "goodput",
    "hits",
    "iops",
    "iterations",
    "knee",
    "nopm",
    "notpm",
    "operations",
    "ops",
    "orders",
    "qps",
    "queries",
    "rate",
    "req/s",
    "requests",
    "requests/s",
    "requests/second",
    "rps",
    "score",
    "speed",
    "threshold",
    "throughput",
    "tpm",
    "tps",
    "transactions",
    "users",
];

/// The direction that is better, if the name of the measure implies it.
pub(crate) fn of(measure: &str) -> Option<Direction> {
    let lower = measure.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !(c.is_alphanumeric() || c == '/')).collect();
    let has = |names: &[&str]| names.iter().any(|name| words.contains(name));
    if has(&LOWER) {
        Some(Direction::Lower)
    } else if has(&HIGHER) {
        Some(Direction::Higher)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_known_by_their_words() {
        for (name, expected) in [
            ("Fletcher CPU", Some(Direction::Lower)),
            ("Fletcher Memory", Some(Direction::Lower)),
            ("iteration_duration", Some(Direction::Lower)),
            ("error rate", Some(Direction::Lower)),
            ("response time", Some(Direction::Lower)),
            ("Peak RPS", Some(Direction::Higher)),
            ("Peak Requests/Second", Some(Direction::Higher)),
            ("supported users", Some(Direction::Higher)),
            ("throughput", Some(Direction::Higher)),
            ("colour", None),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }
}
