//! The kinds of value that a study is written in: texts, numbers, durations, shares, words.

use crate::faults::did_you_mean;
use crate::value::{Problem, Scalar};
use plimsoll_model::factor::Level;
use plimsoll_model::measure::{FORMS, Measure, PERCENTILES};
use plimsoll_model::study::FloorRule;
use schemars::{Schema, json_schema};
use std::ops::RangeInclusive;
use std::time::Duration;

impl Scalar for Level {
    const EXPECTED: &'static str = "a text, a number or a boolean";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Number(number) if !number.is_finite() => Err(Problem::new("must be a finite number")),
            _ => Ok(level.clone()),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl Scalar for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Bool(value) => Ok(*value),
            Level::Text(text) if text == "true" => Ok(true),
            Level::Text(text) if text == "false" => Ok(false),
            _ => Err(Problem::wrong::<bool>(level)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// Whether a study has a noise floor, and by which rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoiseFloor(pub(crate) Option<FloorRule>);

impl Scalar for NoiseFloor {
    const EXPECTED: &'static str = "true, false or \"beyond\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        if matches!(level, Level::Text(text) if text == "beyond") {
            return Ok(NoiseFloor(Some(FloorRule::Beyond)));
        }
        let wrong = || Problem::wrong::<Self>(level).maybe_help(did_you_mean(&level.to_string(), ["beyond"]));
        let measured = bool::from_level(level).map_err(|_| wrong())?;
        Ok(NoiseFloor(measured.then(FloorRule::default)))
    }

    fn schema() -> Schema {
        json_schema!({ "enum": [true, false, "beyond"] })
    }
}

/// A text that is not empty.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

impl Scalar for Text {
    const EXPECTED: &'static str = "a text";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text.trim().is_empty() => Err(Problem::new("must not be empty")),
            Level::Text(text) => Ok(Text(text.clone())),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Any value, as text; may be empty.
#[derive(Clone, Debug)]
pub(crate) struct Word(pub(crate) String);

impl From<Word> for String {
    fn from(word: Word) -> String {
        word.0
    }
}

impl Scalar for Word {
    const EXPECTED: &'static str = "a text, a number or a boolean";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        Ok(Word(level.to_string()))
    }

    fn schema() -> Schema {
        Level::schema()
    }
}

/// A whole number between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<const FROM: i64, const TO: i64>(pub(crate) i64);

/// Blocks per condition.
pub(crate) type Repeats = Whole<1, 1000>;
/// Repeats after which a run may end: fewer give no verdict.
pub(crate) type Look = Whole<3, 1000>;
/// Blocks that may be run again.
pub(crate) type SpareBlocks = Whole<0, 1_000_000>;
/// Virtual users.
pub(crate) type Users = Whole<1, 1_000_000>;
/// Iterations.
pub(crate) type Iterations = Whole<1, { i64::MAX }>;
/// Objects that a user keeps.
pub(crate) type Objects = Whole<1, 1_000_000>;
/// How often an action is drawn, beside others.
pub(crate) type Weight = Whole<1, 1_000_000>;
/// How often a request is sent again.
pub(crate) type Retries = Whole<0, 100>;
/// A seed.
pub(crate) type Seed = Whole<0, { i64::MAX }>;
/// Threads of the generator.
pub(crate) type Threads = Whole<1, 1024>;
/// A TCP port.
pub(crate) type Port = Whole<1, 65535>;
/// An HTTP status.
pub(crate) type HttpStatus = Whole<100, 599>;

impl<const FROM: i64, const TO: i64> Whole<FROM, TO> {
    pub(crate) fn u64(self) -> u64 {
        self.0.unsigned_abs()
    }

    /// The number, where `TO` fits.
    pub(crate) fn u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// The number, where `TO` fits.
    pub(crate) fn u16(self) -> u16 {
        u16::try_from(self.0).unwrap_or(u16::MAX)
    }
}

impl<const FROM: i64, const TO: i64> Scalar for Whole<FROM, TO> {
    const EXPECTED: &'static str = "a whole number";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let number = match level {
            Level::Integer(number) => Some(*number),
            Level::Text(text) => text.replace('_', "").parse().ok(),
            Level::Bool(_) | Level::Number(_) => None,
        };
        let number = number.ok_or_else(|| Problem::wrong::<Self>(level))?;
        if number < FROM {
            return Err(Problem::new(format!("must be at least {FROM}, not {number}")));
        }
        if number > TO {
            return Err(Problem::new(format!("must be at most {TO}, not {number}")));
        }
        Ok(Whole(number))
    }

    fn schema() -> Schema {
        let mut schema = json_schema!({ "type": "integer", "minimum": FROM });
        if TO != i64::MAX {
            schema.insert("maximum".to_owned(), TO.into());
        }
        schema
    }
}

/// Users or arrivals per second at the end of a stage; may be zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount(pub(crate) f64);

impl Scalar for Amount {
    const EXPECTED: &'static str = "a number";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        number_between::<Self>(level, 0.0..=1e9).map(Amount)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// Arrivals per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub(crate) f64);

impl Scalar for Rate {
    const EXPECTED: &'static str = "a number of arrivals per second";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match number_between::<Self>(level, 0.0..=1e9)? {
            0.0 => Err(Problem::new("must be above 0: no arrivals would be no load")),
            rate => Ok(Rate(rate)),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0 })
    }
}

fn number_between<T: Scalar>(level: &Level, range: RangeInclusive<f64>) -> Result<f64, Problem> {
    let number = match level {
        Level::Integer(number) => Some(*number as f64),
        Level::Number(number) => Some(*number),
        Level::Text(text) => text.parse().ok(),
        Level::Bool(_) => None,
    };
    let number = number.filter(|number| number.is_finite()).ok_or_else(|| Problem::wrong::<T>(level))?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (from, to) = range.into_inner();
    Err(Problem::new(format!("must be from {from} to {to}, not {number}")))
}

/// A share: above 0, and below or at most 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(pub(crate) f64);

impl Scalar for Share {
    const EXPECTED: &'static str = "a share such as \"5%\" or 0.05";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let share = match level {
            Level::Text(text) => percentage(text),
            Level::Number(number) => Some(*number),
            Level::Integer(number) => Some(*number as f64),
            Level::Bool(_) => None,
        };
        let share = share.filter(|share| share.is_finite()).ok_or_else(|| Problem::wrong::<Self>(level))?;
        if share > 0.0 && share <= 1.0 {
            return Ok(Share(share));
        }
        let problem = Problem::new(format!("must be above 0 and at most 1 (\"100%\"), not {level}"));
        let bare = !level.to_string().ends_with('%');
        Err(if bare && share > 1.0 && share <= 100.0 {
            problem.help(format!("for {level} per cent write \"{level}%\""))
        } else {
            problem
        })
    }

    fn schema() -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0, "maximum": 1 },
            { "type": "string", "pattern": "^[0-9.]+ ?%$" },
        ] })
    }
}

/// The smallest difference that matters: a share, or a number of errors. Which of the two depends
/// on the measure that it is for.
#[derive(Clone, Debug)]
pub(crate) struct Margin {
    level: Level,
    /// 0.05 for "5%".
    value: f64,
}

impl Margin {
    /// As a share.
    pub(crate) fn share(&self) -> Result<f64, Problem> {
        Share::from_level(&self.level).map(|share| share.0)
    }

    /// As the study has it.
    pub(crate) fn as_written(&self) -> &Level {
        &self.level
    }

    /// As a number of things.
    pub(crate) fn number(&self) -> Result<f64, Problem> {
        match &self.level {
            Level::Text(text) if text.ends_with('%') => {
                Err(Problem::new(format!("must be a number of errors, not the text \"{text}\"")))
            }
            _ => Ok(self.value),
        }
    }
}

impl Scalar for Margin {
    const EXPECTED: &'static str = Share::EXPECTED;

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let value = match level {
            Level::Text(text) => percentage(text),
            Level::Number(number) => Some(*number),
            Level::Integer(number) => Some(*number as f64),
            Level::Bool(_) => None,
        };
        let value = value.filter(|value| value.is_finite()).ok_or_else(|| Problem::wrong::<Self>(level))?;
        if value <= 0.0 {
            let problem = Problem::new(format!("must be above 0, not {level}"));
            return Err(
                problem.help("without a margin, two variants could never be equivalent, however alike they are")
            );
        }
        Ok(Margin { level: level.clone(), value })
    }

    fn schema() -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": "^[0-9.]+ ?%$" },
        ] })
    }
}

fn percentage(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(number) => Some(number.trim().parse::<f64>().ok()? / 100.0),
        None => text.parse().ok(),
    }
}

/// A span of time; may be zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length(pub(crate) Duration);

/// A span of time above zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositiveLength(pub(crate) Duration);

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
            Level::Integer(number) if *number >= 0 => Err(wrong().help(format!("for seconds write \"{number}s\""))),
            _ => Err(wrong()),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^([0-9.]+ ?(ns|us|µs|ms|s|m|h) ?)+$" })
    }
}

impl Scalar for PositiveLength {
    const EXPECTED: &'static str = Length::EXPECTED;

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match Length::from_level(level)?.0 {
            Duration::ZERO => Err(Problem::new(format!("must be above zero, but is \"{level}\""))),
            length => Ok(PositiveLength(length)),
        }
    }

    fn schema() -> Schema {
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

impl Scalar for Measure {
    const EXPECTED: &'static str = "a measure such as \"iteration_duration.p95\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        text.parse().map_err(|_| {
            let problem = Problem::new(format!("must be a measure, which \"{text}\" is not"));
            let meant = common_measure(text).or_else(|| nearest_measure(text));
            problem.help(meant.unwrap_or_else(|| format!("measures are {FORMS}")))
        })
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "description": FORMS, "pattern": "^[a-z_]+(:.+)?\\.(avg|min|med|max|count|rate|ratio|p[0-9.]+)$" })
    }
}

/// The measure that was meant by words that other tools, or people, use for it.
fn common_measure(text: &str) -> Option<String> {
    let (series, statistic) = text.split_once('.').unwrap_or((text, "p95"));
    let series = match series.to_lowercase().as_str() {
        "throughput" | "rps" | "qps" | "tps" => return Some("did you mean `iterations.rate`?".to_owned()),
        "notpm" | "tpmc" => return Some("did you mean `new_orders.rate`?".to_owned()),
        "latency" | "latencies" => "request_duration".to_owned(),
        known => known.to_owned(),
    };
    let statistic = match statistic.to_lowercase().as_str() {
        "mean" | "average" => "avg".to_owned(),
        "median" => "med".to_owned(),
        other => known_percentile(other).unwrap_or_else(|| other.to_owned()),
    };
    let meant = format!("{series}.{statistic}");
    meant.parse::<Measure>().ok().map(|_| format!("did you mean `{meant}`?"))
}

/// The statistic nearest to `95th`, `95%` or `p99.999`.
fn known_percentile(text: &str) -> Option<String> {
    let number: f64 = text.trim_start_matches('p').trim_end_matches("th").trim_end_matches('%').parse().ok()?;
    match number {
        0.0 => Some("min".to_owned()),
        100.0 => Some("max".to_owned()),
        _ => (0.0..100.0)
            .contains(&number)
            .then(|| format!("p{}", number.clamp(*PERCENTILES.start(), *PERCENTILES.end()))),
    }
}

/// The measure that was meant, when its series is misspelt or its statistic fits another.
fn nearest_measure(text: &str) -> Option<String> {
    const SERIES: [&str; 22] = [
        "iteration_duration",
        "request_duration",
        "grpc_req_duration",
        "http_req_duration",
        "response_time",
        "time_to_first_byte",
        "connect_duration",
        "open_duration",
        "data_duration",
        "sync_duration",
        "close_duration",
        "subrequest_duration",
        "iterations",
        "requests",
        "subrequests",
        "new_orders",
        "data_received",
        "data_sent",
        "errors",
        "checks",
        "cpu",
        "memory",
    ];
    const STATISTICS: [&str; 11] = ["avg", "min", "med", "max", "p90", "p95", "p99", "p99.9", "count", "rate", "ratio"];
    let (series, statistic) = text.split_once('.').unwrap_or((text, "p95"));
    let all = SERIES.iter().flat_map(|series| STATISTICS.iter().map(move |statistic| format!("{series}.{statistic}")));
    let all: Vec<String> = all.filter(|measure| measure.parse::<Measure>().is_ok()).collect();
    let same_statistic = all.iter().filter(|measure| measure.ends_with(&format!(".{statistic}")));
    let same_series = all.iter().filter(|measure| measure.starts_with(&format!("{series}.")));
    let near = did_you_mean(&format!("{series}.{statistic}"), same_statistic.map(String::as_str));
    near.or_else(|| same_series.map(|measure| format!("did you mean `{measure}`?")).next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::Level::{Bool, Integer, Number, Text as T};
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
        assert!(PositiveLength::from_level(&text("0ms")).is_err());
    }

    #[test]
    fn shares_are_percentages_or_fractions() {
        for (level, share) in [(text("5%"), 0.05), (text("12.5 %"), 0.125), (Number(0.7), 0.7), (Integer(1), 1.0)] {
            assert!((Share::from_level(&level).expect("a share").0 - share).abs() < 1e-12, "{level}");
        }
        for wrong in [Integer(5), Number(-0.1), text("0%"), text("101%"), text("NaN"), text("five"), Bool(true)] {
            assert!(Share::from_level(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn margins_are_shares_or_numbers_and_never_zero() {
        let margin = |level: Level| Margin::from_level(&level).expect("a margin");
        assert_eq!(margin(text("0.1%")).share(), Ok(0.001));
        assert_eq!((margin(Integer(5)).number(), margin(Number(0.05)).share()), (Ok(5.0), Ok(0.05)));
        assert!(margin(Integer(5)).share().is_err(), "more than the whole");
        assert!(margin(text("101%")).share().is_err() && margin(text("5%")).number().is_err());
        for wrong in [Integer(0), text("0%"), Number(-0.1), text("-5%"), text("NaN"), text("inf"), text("much")] {
            assert!(Margin::from_level(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_numbers_keep_to_their_bounds() {
        assert_eq!(Users::from_level(&text("1_000")).expect("a number").0, 1000);
        for wrong in [Integer(0), Integer(-3), Integer(1_000_001), Number(2.0), Bool(true), text("ten")] {
            assert!(Users::from_level(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_misspelt_measure_finds_its_neighbour() {
        for (wrong, near) in [
            ("iteration_duratoin.p95", "iteration_duration.p95"),
            ("iterations.p95", "iterations.count"),
            ("iteration_duration", "iteration_duration.p95"),
            ("cpu.rate", "cpu.avg"),
        ] {
            assert!(nearest_measure(wrong).expect(wrong).contains(near), "{wrong}: {:?}", nearest_measure(wrong));
        }
        assert_eq!(nearest_measure("beauty.most"), None);
    }

    #[test]
    fn a_measure_by_a_common_name_is_recognised() {
        for (common, ours) in [
            ("request_duration.95th", "request_duration.p95"),
            ("request_duration.p99.999", "request_duration.p99.99"),
            ("request_duration.p100", "request_duration.max"),
            ("throughput", "iterations.rate"),
            ("rps", "iterations.rate"),
            ("latency", "request_duration.p95"),
            ("latency.median", "request_duration.med"),
        ] {
            assert_eq!(common_measure(common), Some(format!("did you mean `{ours}`?")), "{common}");
        }
        for other in ["beauty", "iterations.p95", "request_duration.infth", "request_duration.-5th"] {
            assert_eq!(common_measure(other), None, "{other}");
        }
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

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,12}") {
            let level = T(text);
            let _ = (Length::from_level(&level), Share::from_level(&level), Measure::from_level(&level));
            let _ = Margin::from_level(&level).map(|margin| (margin.share(), margin.number()));
            let _ = (Users::from_level(&level), Rate::from_level(&level), bool::from_level(&level));
        }
    }
}
