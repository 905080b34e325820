//! Values that are written as a text, a number or a boolean.

use crate::document::{Fault, Faults, FromToml, Node, Span, did_you_mean, level_in_words};
use plimsoll_model::factor::Level;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// A kind of value that is written as a text, a number or a boolean.
pub(crate) trait Scalar: Clone + std::fmt::Debug {
    /// What is expected, to follow "must be".
    const EXPECTED: &'static str;

    /// Takes the value from what the study has, or from what a placeholder gave.
    fn from_level(level: &Level) -> Result<Self, Problem>;

    /// How an editor checks it.
    fn schema() -> Schema;
}

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// To follow the name of the value: `must be at least 1`.
    message: String,
    help: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), help: None }
    }

    /// A value of another kind than `T`.
    pub(crate) fn wrong<T: Scalar>(level: &Level) -> Problem {
        Problem::new(format!("must be {}, not {}", T::EXPECTED, level_in_words(level)))
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(help.into()), ..self }
    }

    pub(crate) fn maybe_help(self, help: Option<String>) -> Problem {
        Problem { help, ..self }
    }

    pub(crate) fn fault(self, span: &Span, path: &str) -> Fault {
        Fault::error(span, format!("`{path}` {}", self.message)).maybe_help(self.help)
    }
}

/// The value that `level` names, if it is one of `words`.
pub(crate) fn keyword<T: Scalar>(level: &Level, words: &[(&str, T)]) -> Result<T, Problem> {
    let named = words.iter().find(|(word, _)| matches!(level, Level::Text(text) if text == word));
    let wrong = || {
        let near = did_you_mean(&level.to_string(), words.iter().map(|(word, _)| *word));
        Problem::wrong::<T>(level).maybe_help(near)
    };
    named.map(|(_, value)| value.clone()).ok_or_else(wrong)
}

/// The number above 0 in `word 0.5`.
pub(crate) fn number_after(word: &str, text: &str) -> Option<f64> {
    let number: f64 = text.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// The value of `node`, or a fault that says why it has none.
pub(crate) fn read_scalar<T: Scalar>(
    node: &Node<'_>,
    faults: &mut Faults,
    take: impl Fn(&Level) -> Result<T, Problem>,
) -> Option<T> {
    let Some(level) = node.scalar() else {
        faults.add(node.wrong_type(T::EXPECTED));
        return None;
    };
    let fault = |problem: Problem| problem.fault(&node.span, &node.path).label(level_in_words(&level));
    take(&level).map_err(|problem| faults.add(fault(problem))).ok()
}

/// A value that stands in the study as it is, without placeholders: the same for every trial.
#[derive(Clone, Debug)]
pub(crate) struct Literal<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
    pub(crate) path: String,
}

impl<T: Scalar> FromToml for Literal<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let value = read_scalar(node, faults, T::from_level)?;
        Some(Literal { value, span: node.span.clone(), path: node.path.clone() })
    }
}

impl<T: Scalar> JsonSchema for Literal<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::EXPECTED.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}
