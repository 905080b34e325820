//! Parses units as people write them.

use plimsoll_model::measure::Unit;

/// Seconds in each unit of time.
const TIMES: [(&str, f64); 30] = [
    ("ns", 1e-9),
    ("nsec", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("usec", 1e-6),
    ("microseconds", 1e-6),
    ("ms", 1e-3),
    ("msec", 1e-3),
    ("millis", 1e-3),
    ("millisecond", 1e-3),
    ("milliseconds", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("secs", 1.0),
    ("second", 1.0),
    ("seconds", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("mins", 60.0),
    ("minute", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hr", 3600.0),
    ("hrs", 3600.0),
    ("hour", 3600.0),
    ("hours", 3600.0),
    ("d", 86_400.0),
    ("day", 86_400.0),
    ("days", 86_400.0),
];

/// Bytes in each unit of size. As in published tables, `KB` is 1,000 and `KiB` 1,024.
const SIZES: [(&str, f64); 14] = [
    ("b", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("tib", 1_099_511_627_776.0),
    ("kbyte", 1e3),
    ("mbyte", 1e6),
    ("gbyte", 1e9),
];

/// Bytes per second in each unit of bits per second.
const BIT_RATES: [(&str, f64); 6] =
    [("kbit/s", 125.0), ("mbit/s", 125e3), ("gbit/s", 125e6), ("kbps", 125.0), ("mbps", 125e3), ("gbps", 125e6)];

/// Names of rates per second, and per minute.
const PER_SECOND: [&str; 6] = ["rps", "qps", "tps", "iops", "eps", "hz"];
const PER_MINUTE: [&str; 5] = ["notpm", "nopm", "tpm", "tpmc", "rpm"];

/// Multipliers of plain numbers: `12M posts`.
const MULTIPLIERS: [(&str, f64); 7] =
    [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("B", 1e9), ("thousand", 1e3), ("million", 1e6)];

/// Words for countable things.
const THINGS: [&str; 47] = [
    "agents",
    "allocs",
    "calls",
    "clients",
    "commits",
    "connections",
    "documents",
    "errors",
    "events",
    "exchanges",
    "failures",
    "files",
    "goroutines",
    "instances",
    "it",
    "items",
    "iterations",
    "messages",
    "objects",
    "op",
    "operations",
    "ops",
    "orders",
    "pages",
    "plans",
    "pods",
    "points",
    "posts",
    "processes",
    "queries",
    "records",
    "repeats",
    "replies",
    "req",
    "reqs",
    "request",
    "requests",
    "rows",
    "runs",
    "samples",
    "sessions",
    "tasks",
    "threads",
    "times",
    "transactions",
    "users",
    "vus",
];

/// The size of a unit in base units, and that base unit. An empty text is a plain number.
pub(crate) fn unit(text: &str) -> Option<(f64, Unit)> {
    let text = text.trim();
    let lower = text.to_lowercase();
    // As in Go's benchmarks: `ns/op`, `B/op`, `allocs/op`.
    if let Some(one) = lower.strip_suffix("/op").filter(|one| !one.is_empty()) {
        return unit(one);
    }
    if text.is_empty() || is_thing(&lower) {
        return Some((1.0, Unit::Count));
    }
    if matches!(lower.as_str(), "%" | "percent" | "per cent" | "pct") {
        return Some((0.01, Unit::Share));
    }
    if matches!(lower.as_str(), "core" | "cores" | "cpus") {
        return Some((1.0, Unit::Cores));
    }
    find(&TIMES, &lower)
        .filter(|_| text != "M" && text != "D")
        .map(|scale| (scale, Unit::Seconds))
        .or_else(|| rate_by_case(text))
        .or_else(|| rate(&lower))
        .or_else(|| find(&SIZES, &lower).map(|scale| (scale, Unit::Bytes)))
        .or_else(|| multiplied(text))
}

/// `Gb/s` are bits and `MBps` bytes. In one case throughout, as in `mb/s` and `mbps`, the `b` tells nothing, and the
/// usual meaning holds.
fn rate_by_case(text: &str) -> Option<(f64, Unit)> {
    if let Some(prefix) = text.strip_suffix("Bps") {
        return Some((find(&SIZES, &format!("{prefix}b").to_lowercase())?, Unit::BytesPerSecond));
    }
    let (what, time) = text.split_once('/').or_else(|| text.split_once(" per "))?;
    let bits = what.trim().strip_suffix('b').filter(|prefix| prefix.starts_with(char::is_uppercase))?;
    let size = find(&SIZES, &format!("{bits}b").to_lowercase())?;
    Some((size / 8.0 / find(&TIMES, &time.trim().to_lowercase())?, Unit::BytesPerSecond))
}

/// `MB/s`, `/s`, `requests/s`, `it/min`, `rps`, `NOTPM`.
fn rate(lower: &str) -> Option<(f64, Unit)> {
    if PER_SECOND.contains(&lower) {
        return Some((1.0, Unit::PerSecond));
    }
    if PER_MINUTE.contains(&lower) {
        return Some((1.0 / 60.0, Unit::PerSecond));
    }
    if let Some(scale) = find(&BIT_RATES, lower) {
        return Some((scale, Unit::BytesPerSecond));
    }
    let (what, time) = lower
        .split_once('/')
        .or_else(|| lower.split_once(" per "))
        .or_else(|| Some(("", lower.strip_prefix("per ")?)))?;
    let seconds = find(&TIMES, time.trim())?;
    let what = what.trim();
    if let Some(size) = find(&SIZES, what) {
        return Some((size / seconds, Unit::BytesPerSecond));
    }
    let scale = if what.is_empty() || is_thing(what) { 1.0 } else { multiplied(what)?.0 };
    Some((scale / seconds, Unit::PerSecond))
}

/// `k`, `M posts`.
fn multiplied(text: &str) -> Option<(f64, Unit)> {
    let (multiplier, thing) = text.split_once(' ').unwrap_or((text, ""));
    let (_, scale) = MULTIPLIERS.iter().find(|(name, _)| *name == multiplier)?;
    (thing.is_empty() || is_thing(&thing.trim().to_lowercase())).then_some((*scale, Unit::Count))
}

fn is_thing(lower: &str) -> bool {
    THINGS.contains(&lower) || THINGS.iter().any(|thing| thing.strip_suffix('s') == Some(lower))
}

fn find(table: &[(&str, f64)], name: &str) -> Option<f64> {
    table.iter().find(|(known, _)| *known == name).map(|(_, scale)| *scale)
}

/// The known unit that `text` may be a typo of.
pub(crate) fn nearest(text: &str) -> Option<&'static str> {
    let names = TIMES.iter().chain(&SIZES).chain(&BIT_RATES).map(|(name, _)| *name);
    crate::fault::nearest(text.trim(), names.chain(PER_SECOND).chain(PER_MINUTE).chain(THINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_as_people_write_them() {
        for (text, expected) in [
            ("", Some((1.0, Unit::Count))),
            ("ms", Some((1e-3, Unit::Seconds))),
            ("µs", Some((1e-6, Unit::Seconds))),
            ("m", Some((60.0, Unit::Seconds))),
            ("M", Some((1e6, Unit::Count))),
            ("M posts", Some((1e6, Unit::Count))),
            ("plan", Some((1.0, Unit::Count))),
            ("KB", Some((1e3, Unit::Bytes))),
            ("MiB", Some((1_048_576.0, Unit::Bytes))),
            ("MB/s", Some((1e6, Unit::BytesPerSecond))),
            ("mb/s", Some((1e6, Unit::BytesPerSecond))),
            ("MBps", Some((1e6, Unit::BytesPerSecond))),
            ("Gbit/s", Some((125e6, Unit::BytesPerSecond))),
            ("Gb/s", Some((125e6, Unit::BytesPerSecond))),
            ("Mb per second", Some((125e3, Unit::BytesPerSecond))),
            ("Mbps", Some((125e3, Unit::BytesPerSecond))),
            ("/s", Some((1.0, Unit::PerSecond))),
            ("requests/s", Some((1.0, Unit::PerSecond))),
            ("per second", Some((1.0, Unit::PerSecond))),
            ("k req/s", Some((1e3, Unit::PerSecond))),
            ("/min", Some((1.0 / 60.0, Unit::PerSecond))),
            ("%", Some((0.01, Unit::Share))),
            ("cores", Some((1.0, Unit::Cores))),
            ("ns/op", Some((1e-9, Unit::Seconds))),
            ("allocs/op", Some((1.0, Unit::Count))),
            ("/op", None),
            ("sek", None),
            ("MB/x", None),
        ] {
            assert_eq!(unit(text), expected, "{text}");
        }
        assert_eq!(nearest("secnds"), Some("seconds"));
    }
}
