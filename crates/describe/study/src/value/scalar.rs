//! Values that are written as a text, a number or a boolean.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, did_you_mean, level_in_words};
use plimsoll_model::factor::Level;
use serde_json::Value;

/// A kind of value that is written as a text, a number or a boolean.
pub(crate) trait Scalar: Clone + std::fmt::Debug {
    /// What is expected, to follow "must be".
    const EXPECTED: &'static str;

    /// Takes the value from what the study has, or from what a placeholder gave.
    fn from_level(level: &Level) -> Result<Self, Problem>;

    /// How an editor checks it.
    fn schema() -> Value;
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
        Problem::unexpected(T::EXPECTED, level)
    }

    fn unexpected(expected: &str, level: &Level) -> Problem {
        Problem::new(format!("must be {expected}, not {}", level_in_words(level)))
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
    match named {
        Some((_, value)) => Ok(value.clone()),
        None => Err(unknown_word(level, T::EXPECTED, &mut words.iter().map(|(word, _)| *word))),
    }
}

fn unknown_word(level: &Level, expected: &str, words: &mut dyn Iterator<Item = &str>) -> Problem {
    Problem::unexpected(expected, level).maybe_help(did_you_mean(&level.to_string(), words))
}

/// The number above 0 in `word 0.5`.
pub(crate) fn number_after(word: &str, text: &str) -> Option<f64> {
    let number: f64 = text.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// The value of `node`, or a fault that says why it has none.
pub(crate) fn read_scalar<T: Scalar>(node: &Node<'_>, faults: &mut Faults) -> Option<T> {
    let level = scalar_of(node, T::EXPECTED, faults)?;
    read_level(&level, node, faults)
}

/// The text, number or boolean of `node`, or a fault that says what is expected.
pub(super) fn scalar_of(node: &Node<'_>, expected: &str, faults: &mut Faults) -> Option<Level> {
    let level = node.scalar();
    if level.is_none() {
        faults.add(node.wrong_type(expected));
    }
    level
}

/// The value that `level` stands for at `node`, or a fault that says why there is none.
pub(super) fn read_level<T: Scalar>(level: &Level, node: &Node<'_>, faults: &mut Faults) -> Option<T> {
    match T::from_level(level) {
        Ok(value) => Some(value),
        Err(problem) => {
            report(problem, node, faults);
            None
        }
    }
}

fn report(problem: Problem, node: &Node<'_>, faults: &mut Faults) {
    let label = node.scalar().as_ref().map(level_in_words).unwrap_or_default();
    faults.add(problem.fault(&node.span, &node.path).label(label));
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
        let value = read_scalar(node, faults)?;
        Some(Literal { value, span: node.span.clone(), path: node.path.clone() })
    }

    fn json_schema(_: &mut Schemas) -> Value {
        T::schema()
    }
}
