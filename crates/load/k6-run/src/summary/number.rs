//! Numbers as k6 shows them: it rounds plain ones, and cuts off durations and shares.

use crate::metrics::Contains;
use crate::options::TimeUnit;

/// A value of a metric that holds these.
pub(super) fn value(value: f64, contains: Contains, unit: Option<TimeUnit>) -> String {
    match contains {
        Contains::Default => rounded(value),
        Contains::Data => bytes(value),
        Contains::Time => match unit {
            None => time(value),
            Some(TimeUnit::Seconds) => format!("{:.2}s", value / 1e3),
            Some(TimeUnit::Milliseconds) => format!("{value:.2}ms"),
            Some(TimeUnit::Microseconds) => format!("{:.2}µs", value * 1e3),
        },
    }
}

/// A share, in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}%", truncated(share * 100.0, 2))
}

/// Milliseconds in the unit that suits them.
fn time(milliseconds: f64) -> String {
    let size = milliseconds.abs();
    let seconds = (milliseconds / 1e3).trunc();
    match size {
        0.0 => "0s".to_owned(),
        _ if size < 1e-3 => format!("{}ns", (milliseconds * 1e6).trunc()),
        _ if size < 1.0 => format!("{}µs", cut(milliseconds * 1e3, 2)),
        _ if size < 1e3 => format!("{}ms", cut(milliseconds, 2)),
        _ if size < 60e3 => format!("{}s", cut(milliseconds / 1e3, 2)),
        _ if size < 3_600e3 => format!("{}m{}s", (seconds / 60.0).trunc(), seconds.abs() % 60.0),
        _ => {
            let minutes = (seconds / 60.0).trunc();
            format!("{}h{}m{}s", (minutes / 60.0).trunc(), minutes.abs() % 60.0, seconds.abs() % 60.0)
        }
    }
}

/// Bytes by powers of 1000.
fn bytes(bytes: f64) -> String {
    let mut rest = bytes;
    let mut units = ["B", "kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while rest.abs() >= 1000.0
        && let Some(next) = units.next()
    {
        (rest, unit) = (rest / 1000.0, next);
    }
    match unit {
        "B" if rest.abs() < 10.0 => format!("{} B", rounded(rest)),
        _ if rest.abs() < 10.0 => format!("{rest:.1} {unit}"),
        _ => format!("{rest:.0} {unit}"),
    }
}

/// A number with at most six digits behind the point, and no zeros at its end.
fn rounded(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A number without what stands behind so many digits.
fn cut(value: f64, digits: u32) -> String {
    truncated(value, digits).to_string()
}

fn truncated(value: f64, digits: u32) -> f64 {
    let scale = 10_f64.powi(digits as i32);
    let scaled = value * scale;
    // Beyond this, all digits stand before the point.
    if scaled.abs() < 9e15 { scaled.trunc() / scale } else { value }
}

/// A number in JSON: a whole one without a point.
pub(crate) fn json(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return serde_json::Value::from(value as i64);
    }
    serde_json::Value::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_k6() {
        let times = [
            (0.0, "0s"),
            (0.0005, "500ns"),
            (0.004, "4µs"),
            (0.06402, "64.02µs"),
            (1.966_666, "1.96ms"),
            (999.999, "999.99ms"),
            (1500.5, "1.5s"),
            (30_617.5, "30.61s"),
            (61_234.5, "1m1s"),
            (930_617.25, "15m30s"),
            (3_661_234.0, "1h1m1s"),
            (1_049_195_000.0, "291h26m35s"),
        ];
        for (number, expected) in times {
            assert_eq!(value(number, Contains::Time, None), expected);
        }
        let numbers =
            [(0.000_123_45, "0.000123"), (3.0, "3"), (52_949.274_594_9, "52949.274595"), (-2.5, "-2.5"), (-1e-9, "0")];
        for (number, expected) in numbers {
            assert_eq!(value(number, Contains::Default, None), expected);
        }
        let sizes = [
            (0.0, "0 B"),
            (2.5, "2.5 B"),
            (927.4, "927 B"),
            (1234.0, "1.2 kB"),
            (11_000.0, "11 kB"),
            (2.5e9, "2.5 GB"),
        ];
        for (number, expected) in sizes {
            assert_eq!(value(number, Contains::Data, None), expected);
        }
        for (unit, expected) in [
            (TimeUnit::Seconds, "1.50s"),
            (TimeUnit::Milliseconds, "1500.50ms"),
            (TimeUnit::Microseconds, "1500500.00µs"),
        ] {
            assert_eq!(value(1500.5, Contains::Time, Some(unit)), expected);
        }
        assert_eq!([2.0 / 3.0, 0.0, 1.0].map(percent), ["66.66%", "0.00%", "100.00%"]);
    }
}
