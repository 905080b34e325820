//! Texts of a flow, which factors fill in for each trial, and values of users for each request.

use super::scalar::{Problem, Scalar, read_level, scalar_of};
use super::scope::Scope;
use super::template::{FilledSegment, Template, UserValue};
use super::user_values::{ValueNames, ValueUse};
use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, level_in_words};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Piece, Text};
use serde_json::Value;
use std::marker::PhantomData;

/// A text that users fill in with their values at run time. Its literals are checked as a `T`.
#[derive(Clone, Debug)]
pub(crate) struct UserTemplate<T> {
    pub(crate) span: Span,
    path: String,
    template: Template,
    written: String,
    kind: PhantomData<T>,
}

impl<T: Scalar> UserTemplate<T> {
    /// The text for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Text> {
        let filled = scope.filled(&self.template, &self.span, faults)?;
        if self.template.names().next().is_some() {
            let level = sample(&filled);
            let fault = |problem| self.fault(problem).label(format!("becomes {}", level_in_words(&level)));
            T::from_level(&level).map_err(|problem| faults.add(fault(problem))).ok()?;
        }
        let pieces: Option<Vec<Piece>> = filled.into_iter().map(|part| piece(part, values)).collect();
        pieces.map(Text)
    }

    /// The values in it.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        ValueUse::all_in(&self.template, &self.span)
    }

    /// The fault for what it comes to.
    pub(crate) fn fault(&self, problem: Problem) -> Fault {
        problem.fault(&self.span, &self.path)
    }

    /// The text as the study has it, placeholders and all.
    pub(crate) fn as_written(&self) -> &str {
        &self.written
    }

    /// The name of the value that is the whole text.
    pub(crate) fn single_value(&self) -> Option<&str> {
        let mut values = self.template.values();
        let only = values.next().filter(|value| value.to_string() == self.written)?;
        Some(&only.name)
    }
}

fn piece(part: FilledSegment, values: &ValueNames) -> Option<Piece> {
    Some(match part {
        FilledSegment::Literal(text) => Piece::Literal(text),
        FilledSegment::Value(UserValue { name, raw }) => Piece::Value { value: values.reference(&name)?, raw },
    })
}

/// The text with the names of its values, as far as they can stand in any text, for their contents. A
/// link that is left as it is begins as a path does.
fn sample(filled: &[FilledSegment]) -> Level {
    let name = |value: &UserValue| value.to_string().replace(|c: char| !c.is_ascii_graphic(), "_");
    let begins_raw = matches!(filled.first(), Some(FilledSegment::Value(UserValue { raw: true, .. })));
    let mut text = if begins_raw { "/".to_owned() } else { String::new() };
    for part in filled {
        match part {
            FilledSegment::Literal(literal) => text.push_str(literal),
            FilledSegment::Value(value) => text.push_str(&name(value)),
        }
    }
    Level::Text(text)
}

/// The text of a request that has no values.
pub(crate) fn literal(text: Text) -> String {
    let literals = text.0.into_iter().filter_map(|piece| match piece {
        Piece::Literal(text) => Some(text),
        Piece::Value { .. } => None,
    });
    literals.collect()
}

impl<T: Scalar> FromToml for UserTemplate<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let level = scalar_of(node, T::EXPECTED, faults)?;
        if !matches!(level, Level::Text(_)) {
            read_level::<T>(&level, node, faults)?;
        }
        // A number or a boolean as a text has no braces.
        let text = level.to_string();
        // A stray brace has been reported where all placeholders are looked at.
        let template = Template::parse(&text).ok()?;
        if template.names().next().is_none() {
            let filled = template.filled(&|_| None).expect("no placeholder");
            read_level::<T>(&sample(&filled), node, faults)?;
        }
        let (span, path) = (node.span.clone(), node.path.clone());
        Some(UserTemplate { span, path, template, written: text, kind: PhantomData })
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        <crate::value::Templated<T>>::json_schema(schemas)
    }
}
