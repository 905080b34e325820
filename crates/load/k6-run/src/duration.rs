//! Durations as scripts and flags write them: `1m30s`, `500ms`, `1d`, or a number of milliseconds.

use std::time::Duration;

/// Units and their nanoseconds; longer names first.
const UNITS: [(&str, f64); 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
];

/// Reads a duration with its units; `0` alone needs none.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut total) = (text.strip_prefix('+').unwrap_or(text), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.').map_or(rest.len(), |end| digits + end);
        total += number * UNITS.iter().find(|(name, _)| *name == &rest[digits..unit])?.1;
        rest = &rest[unit..];
    }
    from_nanoseconds(total)
}

/// A number of milliseconds, if it is one that a clock can wait for.
#[must_use]
pub fn from_milliseconds(number: f64) -> Option<Duration> {
    from_nanoseconds(number * 1e6)
}

/// Up to the 292 years that k6 can count.
fn from_nanoseconds(number: f64) -> Option<Duration> {
    (0.0..9.2e18).contains(&number).then(|| Duration::from_nanos(number.round() as u64))
}

/// A duration as k6 writes it: `10m0s`, `1.5s`, `500ms`.
#[must_use]
pub fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => format!("{}µs", nanoseconds as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{}ms", nanoseconds as f64 / 1e6),
        _ => {
            let minutes = duration.as_secs() / 60;
            let seconds = (duration - Duration::from_secs(minutes * 60)).as_nanos() as f64 / 1e9;
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_as_k6_does() {
        let cases = [
            ("10s", 10_000.0, "10s"),
            ("1m30s", 90_000.0, "1m30s"),
            ("10m", 600_000.0, "10m0s"),
            ("1h0m5.5s", 3_605_500.0, "1h0m5.5s"),
            ("1d2h", 93_600_000.0, "26h0m0s"),
            ("500ms", 500.0, "500ms"),
            ("1.5ms", 1.5, "1.5ms"),
            ("20µs", 0.02, "20µs"),
            ("7ns", 0.000_007, "7ns"),
            (".5s", 500.0, "500ms"),
            ("+1s", 1000.0, "1s"),
            ("0", 0.0, "0s"),
        ];
        for (text, milliseconds, written) in cases {
            assert_eq!(parse(text), from_milliseconds(milliseconds), "{text}");
            assert_eq!(format(parse(text).expect(text)), written, "{text}");
        }
        for text in ["", "5", "abc", "-1s", "1x", "s", "1..5s", "1 s", "999999999d"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
