//! The direction that is better, by the name of a measure.

use plimsoll_model::measure::Direction;

/// Words in names of measures of which less is better. They are searched first: an error rate is no
/// rate.
const LOWER: [&str; 40] = [
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

/// Words for what failed. Less of it is better, whatever it is.
const FAILED: [&str; 7] = ["error", "errors", "failed", "failures", "misses", "retries", "timeouts"];

/// Words that make the word behind them one of which less is better: dropped iterations, a miss rate, slow queries.
const UNWANTED: [&str; 17] = [
    "abort",
    "aborted",
    "drop",
    "dropped",
    "failure",
    "fault",
    "loss",
    "lost",
    "miss",
    "missed",
    "reject",
    "rejected",
    "rejection",
    "retried",
    "retry",
    "slow",
    "timeout",
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

/// Words of [`HIGHER`] that decide against words of [`LOWER`] before them: the throughput of a queue, the bandwidth of
/// memory.
const RATES: [&str; 17] = [
    "bandwidth",
    "goodput",
    "iops",
    "nopm",
    "notpm",
    "ops",
    "qps",
    "rate",
    "req/s",
    "requests/s",
    "requests/second",
    "rps",
    "score",
    "speed",
    "throughput",
    "tpm",
    "tps",
];

/// Words before `rate` that make it a rate of work, and not of stalls or allocations.
const WORK: [&str; 16] = [
    "commit",
    "delivery",
    "hit",
    "ingest",
    "ingestion",
    "insert",
    "insertion",
    "message",
    "query",
    "read",
    "request",
    "success",
    "transaction",
    "transfer",
    "update",
    "write",
];

/// Words of what is measured beside a rate: their measure is no rate, whatever its name ends with.
const SPANS: [&str; 7] = ["cpu", "delay", "duration", "elapsed", "latency", "response", "usage"];

/// Last words of names of limits. More is better, whatever it is that happens at the limit.
const LIMITS: [&str; 3] = ["capacity", "knee", "threshold"];

/// Words before the conditions of a measure: latency at peak throughput is a latency.
const CONDITIONS: [&str; 9] =
    [" at ", " before ", " during ", " for ", " per ", " to ", " under ", " until ", " without "];

/// Text before the details of a measure.
const DETAILS: [&str; 9] = [" of ", " with ", " - ", "(", "[", ",", ":", ";", "@"];

/// The direction that is better, if the name of the measure implies it.
pub(crate) fn of(measure: &str) -> Option<Direction> {
    let name = measure.to_lowercase().replace('_', " ");
    let head = before(&name, &CONDITIONS);
    let numbered = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let subject: Vec<&str> = words(before(head, &DETAILS)).into_iter().take_while(|word| !numbered(word)).collect();
    by_grammar(&words(head), &subject).or_else(|| by_any_word(&subject)).or_else(|| by_any_word(&words(&name)))
}

/// The direction by the place of words in a name: its words before any condition, and those before any detail.
fn by_grammar(head: &[&str], subject: &[&str]) -> Option<Direction> {
    // The users of a limit are its unit.
    if subject.iter().rev().find(|word| **word != "users").is_some_and(|last| LIMITS.contains(last)) {
        return Some(Direction::Higher);
    }
    if head.iter().any(|word| FAILED.contains(word)) {
        return Some(Direction::Lower);
    }
    let at = subject.iter().rposition(|word| LOWER.contains(word) || HIGHER.contains(word))?;
    let (last, previous) = (subject[at], subject[..at].last());
    if previous.is_some_and(|word| UNWANTED.contains(word)) {
        return Some(Direction::Lower);
    }
    // A rate of things: the throughput of a queue. A duration at a rate stays one.
    let of_things = !subject[..at].iter().any(|word| SPANS.contains(word));
    let works = last != "rate" || previous.is_some_and(|word| WORK.contains(word));
    (works && of_things && RATES.contains(&last)).then_some(Direction::Higher)
}

fn by_any_word(words: &[&str]) -> Option<Direction> {
    let has = |names: &[&str]| names.iter().any(|name| words.contains(name));
    if has(&LOWER) {
        Some(Direction::Lower)
    } else if has(&HIGHER) {
        Some(Direction::Higher)
    } else {
        None
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '/')).filter(|word| !word.is_empty()).collect()
}

/// The text before the first of some separators.
fn before<'a>(text: &'a str, separators: &[&str]) -> &'a str {
    let end = separators.iter().filter_map(|separator| text.find(*separator)).min();
    end.map_or(text, |end| &text[..end])
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
            ("failure rate", Some(Direction::Lower)),
            ("cache miss rate", Some(Direction::Lower)),
            ("timeout rate", Some(Direction::Lower)),
            ("failed request rate", Some(Direction::Lower)),
            ("dropped_iterations", Some(Direction::Lower)),
            ("slow queries", Some(Direction::Lower)),
            ("requests with errors", Some(Direction::Lower)),
            ("GC pause rate", Some(Direction::Lower)),
            ("memory allocation rate", Some(Direction::Lower)),
            ("latency at peak throughput", Some(Direction::Lower)),
            ("p95 latency (100 users)", Some(Direction::Lower)),
            ("latency read operations", Some(Direction::Lower)),
            ("latency 1000 rps", Some(Direction::Lower)),
            ("Failure Threshold (users)", Some(Direction::Higher)),
            ("users at 200 ms response time", Some(Direction::Higher)),
            ("message queue throughput", Some(Direction::Higher)),
            ("memory bandwidth", Some(Direction::Higher)),
            ("GC throughput", Some(Direction::Higher)),
            ("time series insert rate", Some(Direction::Higher)),
            ("throughput on a slow network", Some(Direction::Higher)),
            ("response time max throughput", Some(Direction::Lower)),
            ("CPU usage full throughput", Some(Direction::Lower)),
            ("timeout", None),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }
}
