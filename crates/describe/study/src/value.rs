//! Single values of a study: fixed ones, and slots that placeholders fill in for each trial.

use crate::diagnostic::{Fault, Span};
use crate::faults::{Faults, did_you_mean};
use crate::flowing::misplaced;
use crate::node::{FromToml, Node, in_words};
use crate::scope::Scope;
use crate::template::Template;
use plimsoll_model::factor::{Assignment, Level};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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

/// Why a value does not do.
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

    /// The value is not of the kind that `T` is.
    pub(crate) fn wrong<T: Scalar>(level: &Level) -> Problem {
        Problem::new(format!("must be {}, not {}", T::EXPECTED, in_words(level)))
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
pub(crate) fn word<T: Scalar>(level: &Level, words: &[(&str, T)]) -> Result<T, Problem> {
    let named = words.iter().find(|(word, _)| matches!(level, Level::Text(text) if text == word));
    let wrong = || {
        let near = did_you_mean(&level.to_string(), words.iter().map(|(word, _)| *word));
        Problem::wrong::<T>(level).maybe_help(near)
    };
    named.map(|(_, value)| value.clone()).ok_or_else(wrong)
}

/// A value that is the same for every trial.
#[derive(Clone, Debug)]
pub(crate) struct Fixed<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
    pub(crate) path: String,
}

impl<T: Scalar> FromToml for Fixed<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let value = scalar(node, faults, T::from_level)?;
        Some(Fixed { value, span: node.span.clone(), path: node.path.clone() })
    }
}

/// A value that may hold placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Slot<T> {
    pub(crate) span: Span,
    pub(crate) path: String,
    filling: Filling<T>,
    written: String,
}

#[derive(Clone, Debug)]
enum Filling<T> {
    Fixed(T),
    Template(Template),
}

impl<T: Scalar> Slot<T> {
    /// The value for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<T> {
        match &self.filling {
            Filling::Fixed(value) => Some(value.clone()),
            Filling::Template(template) => {
                let level = scope.fill(template, &self.span, faults)?;
                let becomes = || format!("becomes {}", in_words(&level));
                let fault = |problem: Problem| problem.fault(&self.span, &self.path).label(becomes());
                // Where a text is wanted, a level that is a number does as well: `{n}` as `v{n}`.
                let as_text = || T::from_level(&Level::Text(level.to_string())).ok();
                let taken = T::from_level(&level).or_else(|problem| as_text().ok_or(problem));
                taken.map_err(|problem| faults.add(fault(problem))).ok()
            }
        }
    }

    /// The value, if no placeholder is to fill it in.
    pub(crate) fn fixed(&self) -> Option<&T> {
        match &self.filling {
            Filling::Fixed(value) => Some(value),
            Filling::Template(_) => None,
        }
    }

    /// The value for people, with the levels that are known.
    pub(crate) fn shown(&self, levels: &Assignment) -> String {
        match &self.filling {
            Filling::Fixed(_) => self.written.clone(),
            Filling::Template(template) => template.shown(levels),
        }
    }

    /// The value as the study has it, placeholders and all.
    pub(crate) fn as_written(&self) -> &str {
        &self.written
    }
}

impl<T: Scalar> FromToml for Slot<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let slot = |filling, written| Slot { span: node.span.clone(), path: node.path.clone(), filling, written };
        let Some(Level::Text(text)) = node.scalar() else {
            let value = scalar(node, faults, T::from_level)?;
            let written = node.scalar().as_ref().map(Level::to_string).unwrap_or_default();
            return Some(slot(Filling::Fixed(value), written));
        };
        // A stray brace has been reported where all placeholders are looked at.
        let template = Template::parse(&text).ok()?;
        if let Some(value) = template.values().next() {
            faults.add(misplaced(value, &node.span, faults));
            return None;
        }
        if template.names().next().is_some() {
            return Some(slot(Filling::Template(template), text));
        }
        let value = scalar(node, faults, |_| T::from_level(&template.fill(|_| None).expect("no placeholder")))?;
        Some(slot(Filling::Fixed(value), text))
    }
}

/// Resolves what the study may leave out. What is left out is fine, and `Some(None)`; what is there
/// must be fine, too.
pub(crate) fn optional<T, U>(asked: Option<&T>, resolve: impl FnOnce(&T) -> Option<U>) -> Option<Option<U>> {
    match asked {
        None => Some(None),
        Some(asked) => resolve(asked).map(Some),
    }
}

/// Resolves every one of `asked`, so that all faults are named.
pub(crate) fn all<T, U>(asked: &[T], resolve: impl FnMut(&T) -> Option<U>) -> Option<Vec<U>> {
    let resolved: Vec<Option<U>> = asked.iter().map(resolve).collect();
    resolved.into_iter().collect()
}

/// A value as the study has it, or its default.
pub(crate) fn written_or<'a, T: Scalar>(slot: Option<&'a Slot<T>>, default: &'a str) -> &'a str {
    slot.map_or(default, Slot::as_written)
}

/// The number above 0 in `word 0.5`.
pub(crate) fn number_after(word: &str, text: &str) -> Option<f64> {
    let number: f64 = text.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// The value of `node`, or a fault that says why it has none.
pub(crate) fn scalar<T: Scalar>(
    node: &Node<'_>,
    faults: &mut Faults,
    take: impl Fn(&Level) -> Result<T, Problem>,
) -> Option<T> {
    let Some(level) = node.scalar() else {
        faults.add(node.wrong_type(T::EXPECTED));
        return None;
    };
    let fault = |problem: Problem| problem.fault(&node.span, &node.path).label(in_words(&level));
    take(&level).map_err(|problem| faults.add(fault(problem))).ok()
}

impl<T: Scalar> JsonSchema for Fixed<T> {
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

impl<T: Scalar> JsonSchema for Slot<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{} or a placeholder", T::EXPECTED).into()
    }

    /// The value itself, or a text with a placeholder in it.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let plain = json_schema!({ "type": "string" });
        let own = T::schema();
        if own == plain { own } else { json_schema!({ "anyOf": [own, { "type": "string", "pattern": "\\{" }] }) }
    }
}
