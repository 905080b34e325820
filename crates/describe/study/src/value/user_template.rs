//! Texts of a flow, which factors fill in for each trial, and values of users for each request.

use super::scalar::{Problem, Scalar, read_scalar};
use super::scope::Scope;
use super::template::{FilledSegment, Template, UserValue};
use super::user_values::{ValueNames, ValueUse};
use crate::document::{Fault, Faults, FromToml, Node, Span, level_in_words};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Piece, Text};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;
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
        let text = match node.scalar() {
            Some(Level::Text(text)) => text,
            _ => {
                read_scalar(node, faults, T::from_level)?;
                // A number or a boolean as a text has no braces.
                node.scalar()?.to_string()
            }
        };
        // A stray brace has been reported where all placeholders are looked at.
        let template = Template::parse(&text).ok()?;
        if template.names().next().is_none() {
            let filled = template.filled(|_| None).expect("no placeholder");
            read_scalar(node, faults, |_| T::from_level(&sample(&filled)))?;
        }
        let (span, path) = (node.span.clone(), node.path.clone());
        Some(UserTemplate { span, path, template, written: text, kind: PhantomData })
    }
}

impl<T: Scalar> JsonSchema for UserTemplate<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::EXPECTED.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<crate::value::Templated<T>>()
    }
}
