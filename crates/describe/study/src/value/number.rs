//! Numbers between bounds.

use super::scalar::{Problem, Scalar};
use plimsoll_model::factor::Level;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// A whole number between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeNumber<const FROM: i64, const TO: i64>(pub(crate) i64);

/// Blocks per condition.
pub(crate) type Repeats = WholeNumber<1, 1000>;
/// Turns of a start: with fewer than four, trimming leaves nothing.
pub(crate) type TurnCount = WholeNumber<4, 1000>;
/// Repeats after which a run may end: fewer give no verdict.
pub(crate) type InterimLook = WholeNumber<3, 1000>;
/// Blocks that may be run again.
pub(crate) type SpareBlocks = WholeNumber<0, 1_000_000>;
/// Virtual users.
pub(crate) type Users = WholeNumber<1, 1_000_000>;
/// Iterations.
pub(crate) type Iterations = WholeNumber<1, { i64::MAX }>;
/// Objects that a user keeps.
pub(crate) type Objects = WholeNumber<1, 1_000_000>;
/// How often an action is drawn, beside others.
pub(crate) type Weight = WholeNumber<1, 1_000_000>;
/// How often a request is sent again.
pub(crate) type Retries = WholeNumber<0, 100>;
/// A seed.
pub(crate) type Seed = WholeNumber<0, { i64::MAX }>;
/// Threads of the generator.
pub(crate) type Threads = WholeNumber<1, 1024>;
/// Instances of a system.
pub(crate) type Instances = WholeNumber<2, 100>;
/// A TCP port.
pub(crate) type Port = WholeNumber<1, 65535>;
/// An HTTP status.
pub(crate) type HttpStatus = WholeNumber<100, 599>;

impl<const FROM: i64, const TO: i64> WholeNumber<FROM, TO> {
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

impl<const FROM: i64, const TO: i64> Scalar for WholeNumber<FROM, TO> {
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
        Ok(WholeNumber(number))
    }

    fn schema() -> Value {
        let mut schema = json!({ "type": "integer", "minimum": FROM });
        if TO != i64::MAX {
            schema["maximum"] = TO.into();
        }
        schema
    }
}

/// Users or arrivals per second at the end of a stage; may be zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NonNegativeNumber(pub(crate) f64);

impl Scalar for NonNegativeNumber {
    const EXPECTED: &'static str = "a number";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        number_between::<Self>(level, 0.0..=1e9).map(NonNegativeNumber)
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0 })
    }
}

/// Arrivals per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub(crate) f64);

impl Scalar for Rate {
    const EXPECTED: &'static str = "a number of arrivals per second";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match number_between::<Self>(level, 0.0..=1e9)? {
            0.0 => Err(Problem::new("must be above 0: with none a second there would be no load")),
            rate => Ok(Rate(rate)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0 })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_keep_to_their_bounds() {
        assert_eq!(Users::from_level(&Level::Text("1_000".to_owned())).expect("a number").0, 1000);
        for wrong in [
            Level::Integer(0),
            Level::Integer(-3),
            Level::Integer(1_000_001),
            Level::Number(2.0),
            Level::Bool(true),
            Level::Text("ten".to_owned()),
        ] {
            assert!(Users::from_level(&wrong).is_err(), "{wrong}");
        }
    }
}
