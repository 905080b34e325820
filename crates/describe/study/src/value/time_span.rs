//! Spans of time, as studies write them: `20s`, `1m30s`.

use super::scalar::{Problem, Scalar};
use plimsoll_model::factor::Level;
use serde_json::{Value, json};
use std::time::Duration;

/// A span of time; may be zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length(pub(crate) Duration);

/// A span of time above zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositiveTimeSpan(pub(crate) Duration);

/// The longest span that a study may ask for: a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

impl Scalar for Length {
    const EXPECTED: &'static str = "a duration such as \"20s\", \"500ms\" or \"1m30s\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let wrong = || Problem::wrong::<Self>(level);
        match level {
            Level::Text(text) if text.trim_start().starts_with('-') => {
                Err(Problem::new(format!("must not be negative, but is \"{text}\"")))
            }
            Level::Text(text) => match seconds(text).map(Duration::try_from_secs_f64) {
                Some(Ok(length)) if length <= LONGEST => Ok(Length(length)),
                Some(_) => Err(Problem::new(format!("must be at most a year (\"8760h\"), but is \"{text}\""))),
                None => Err(wrong().maybe_help(with_known_units(text))),
            },
            Level::Integer(number) if *number >= 0 => {
                Err(wrong().help(format!("write \"{number}ms\" for milliseconds, \"{number}s\" for seconds")))
            }
            _ => Err(wrong()),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^([0-9.]+ ?(ns|us|µs|ms|s|m|h) ?)+$" })
    }
}

impl Scalar for PositiveTimeSpan {
    const EXPECTED: &'static str = Length::EXPECTED;

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match Length::from_level(level)?.0 {
            Duration::ZERO => Err(Problem::new(format!("must be above zero, but is \"{level}\""))),
            length => Ok(PositiveTimeSpan(length)),
        }
    }

    fn schema() -> Value {
        Length::schema()
    }
}

/// The seconds that a text such as `1m30s` stands for.
fn seconds(text: &str) -> Option<f64> {
    numbers_and_units(text)?.into_iter().map(|(number, unit)| Some(number.parse::<f64>().ok()? * unit_of(unit)?)).sum()
}

/// What was meant where units have other names: `1 sec` is `1s`.
fn with_known_units(text: &str) -> Option<String> {
    let known =
        numbers_and_units(text)?.into_iter().map(|(number, unit)| Some(format!("{number}{}", known_unit(unit)?)));
    let meant = known.collect::<Option<String>>()?;
    seconds(&meant).map(|_| format!("did you mean \"{meant}\"?"))
}

/// `1m30s` as `1` and `m`, `30` and `s`; `None` if it is anything else, or nothing.
fn numbers_and_units(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut rest = text.trim();
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        if digits == 0 {
            return None;
        }
        pairs.push((&rest[..digits], &after[..letters]));
        rest = after[letters..].trim_start();
    }
    (!pairs.is_empty()).then_some(pairs)
}

fn unit_of(name: &str) -> Option<f64> {
    Some(match name {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

/// The unit that other tools, or people, write as `name`.
fn known_unit(name: &str) -> Option<&'static str> {
    Some(match name.to_lowercase().as_str() {
        "ns" | "nsec" | "nanosecond" | "nanoseconds" => "ns",
        "us" | "µs" | "μs" | "usec" | "microsecond" | "microseconds" => "us",
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "" | "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::Level::{Integer, Text as T};
    use proptest::prelude::*;

    fn text(text: &str) -> Level {
        T(text.to_owned())
    }

    #[test]
    fn durations_are_written_with_units() {
        for (written, nanos) in [
            ("20s", 20_000_000_000_u128),
            ("500ms", 500_000_000),
            ("1m30s", 90_000_000_000),
            ("1h 2m", 3_720_000_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("7ns", 7),
            ("0s", 0),
        ] {
            assert_eq!(Length::from_level(&text(written)).expect(written).0.as_nanos(), nanos, "{written}");
        }
        for wrong in ["", "s", "20", "20 parsecs", "1..s", "9999999h", "1s-2s", "-1s"] {
            assert!(Length::from_level(&text(wrong)).is_err(), "{wrong}");
        }
        assert!(Length::from_level(&Integer(20)).is_err(), "a number has no unit");
        assert!(PositiveTimeSpan::from_level(&text("0ms")).is_err());
    }

    #[test]
    fn units_by_other_names_are_recognised() {
        for (written, meant) in [("1 sec", "1s"), ("2 Minutes 30", "2m30s"), ("20", "20s"), ("5 msec", "5ms")] {
            assert_eq!(with_known_units(written), Some(format!("did you mean \"{meant}\"?")), "{written}");
        }
        for other in ["", "soon", "20 parsecs", "1..sec", "sec"] {
            assert_eq!(with_known_units(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_whole_nanoseconds_read_back(nanos in 0_u64..1_000_000_000_000) {
            let read = Length::from_level(&T(format!("{nanos}ns"))).expect("a duration").0;
            // Read as seconds in a double: exact to a nanosecond up to some weeks.
            prop_assert!(read.as_nanos().abs_diff(u128::from(nanos)) <= 1);
        }
    }
}
