//! The kinds of value that a study is written in: texts, numbers, durations, shares, words.

mod length;
mod measure;

pub(crate) use length::{Length, PositiveLength};

use crate::faults::did_you_mean;
use crate::value::{Problem, Scalar};
use plimsoll_model::factor::Level;
use plimsoll_model::study::FloorRule;
use schemars::{Schema, json_schema};
use std::ops::RangeInclusive;

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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::Level::{Bool, Integer, Number, Text as T};
    use plimsoll_model::measure::Measure;
    use proptest::prelude::*;

    fn text(text: &str) -> Level {
        T(text.to_owned())
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

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,12}") {
            let level = T(text);
            let _ = (Length::from_level(&level), Share::from_level(&level), Measure::from_level(&level));
            let _ = Margin::from_level(&level).map(|margin| (margin.share(), margin.number()));
            let _ = (Users::from_level(&level), Rate::from_level(&level), bool::from_level(&level));
        }
    }
}
