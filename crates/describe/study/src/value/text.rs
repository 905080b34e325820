//! Texts, words and booleans.

use super::scalar::{Problem, Scalar};
use plimsoll_model::factor::Level;
use serde_json::{Value, json};

impl Scalar for Level {
    const EXPECTED: &'static str = "a text, a number or a boolean";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Number(number) if !number.is_finite() => Err(Problem::new("must be a finite number")),
            _ => Ok(level.clone()),
        }
    }

    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean"] })
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

    fn schema() -> Value {
        json!({ "type": "boolean" })
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

    fn schema() -> Value {
        json!({ "type": "string" })
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

    fn schema() -> Value {
        Level::schema()
    }
}
