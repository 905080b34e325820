//! Shares, and margins, which are shares or numbers.

use super::scalar::{Problem, Scalar};
use plimsoll_model::factor::Level;
use serde_json::{Value, json};

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

    fn schema() -> Value {
        json!({ "anyOf": [
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

    fn schema() -> Value {
        json!({ "anyOf": [
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
}
