//! Texts of a flow: factors fill them in for each trial, and values of its users for each request.

use crate::diagnostic::{Fault, Span};
use crate::faults::Faults;
use crate::node::{FromToml, Node, in_words};
use crate::scope::{Scope, place_of};
use crate::template::{Filled, Template, Value};
use crate::value::{Problem, Scalar, scalar};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Piece, Reference, Text, ValueId};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;
use std::marker::PhantomData;

/// What every user knows without being told.
pub(crate) const BUILT_IN: [&str; 4] = ["user", "iteration", "uuid", "now"];

/// The names of the values of a flow, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueNames(pub(crate) Vec<String>);

impl ValueNames {
    /// What a name stands for; none where a fault says that nothing has it.
    pub(crate) fn reference(&self, name: &str) -> Option<Reference> {
        Some(match name {
            "user" => Reference::User,
            "iteration" => Reference::Iteration,
            "uuid" => Reference::Uuid,
            "now" => Reference::Now,
            _ => Reference::Value(self.id(name)?),
        })
    }

    /// The number of a value that is not built in.
    pub(crate) fn id(&self, name: &str) -> Option<ValueId> {
        let place = self.0.iter().position(|known| known == name)?;
        u16::try_from(place).ok().map(ValueId)
    }

    /// Adds a name, once.
    pub(crate) fn add(&mut self, name: &str) {
        if !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }
}

/// A value in the text at `span`.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

impl Use {
    pub(crate) fn all_in(template: &Template, span: &Span) -> Vec<Use> {
        template.values().map(|value| Use { value: value.clone(), span: span.clone() }).collect()
    }

    /// Where the value itself stands.
    pub(crate) fn place(&self, faults: &Faults) -> Span {
        place_of(&self.value.to_string(), &self.span, faults)
    }
}

/// The fault for a value of a user in the text at `span`, which is the same for all of them.
pub(crate) fn misplaced(value: &Value, span: &Span, faults: &Faults) -> Fault {
    let message = format!("`{value}` cannot stand here");
    let help = "values of users stand in the paths, headers, bodies, conditions and checks of an HTTP workload; for a \
                factor write its name without `$`";
    Fault::error(&place_of(&value.to_string(), span, faults), message).label("the same for all users").help(help)
}

/// A text with values of users in it. What is checked of a `T` holds for its literals.
#[derive(Clone, Debug)]
pub(crate) struct Flowing<T> {
    pub(crate) span: Span,
    path: String,
    template: Template,
    written: String,
    kind: PhantomData<T>,
}

impl<T: Scalar> Flowing<T> {
    /// The text for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Text> {
        let filled = scope.filled(&self.template, &self.span, faults)?;
        if self.template.names().next().is_some() {
            let level = sample(&filled);
            let fault = |problem| self.fault(problem).label(format!("becomes {}", in_words(&level)));
            T::from_level(&level).map_err(|problem| faults.add(fault(problem))).ok()?;
        }
        let pieces: Option<Vec<Piece>> = filled.into_iter().map(|part| piece(part, values)).collect();
        pieces.map(Text)
    }

    /// The values in it.
    pub(crate) fn uses(&self) -> Vec<Use> {
        Use::all_in(&self.template, &self.span)
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

fn piece(part: Filled, values: &ValueNames) -> Option<Piece> {
    Some(match part {
        Filled::Literal(text) => Piece::Literal(text),
        Filled::Value(Value { name, raw }) => Piece::Value { value: values.reference(&name)?, raw },
    })
}

/// The text with the names of its values, as far as they can stand in any text, for their contents. A
/// link that is left as it is begins as a path does.
fn sample(filled: &[Filled]) -> Level {
    let name = |value: &Value| value.to_string().replace(|c: char| !c.is_ascii_graphic(), "_");
    let begins_raw = matches!(filled.first(), Some(Filled::Value(Value { raw: true, .. })));
    let mut text = if begins_raw { "/".to_owned() } else { String::new() };
    for part in filled {
        match part {
            Filled::Literal(literal) => text.push_str(literal),
            Filled::Value(value) => text.push_str(&name(value)),
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

impl<T: Scalar> FromToml for Flowing<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let text = match node.scalar() {
            Some(Level::Text(text)) => text,
            _ => {
                scalar(node, faults, T::from_level)?;
                // A number or a boolean as a text has no braces.
                node.scalar()?.to_string()
            }
        };
        // A stray brace has been reported where all placeholders are looked at.
        let template = Template::parse(&text).ok()?;
        if template.names().next().is_none() {
            let filled = template.filled(|_| None).expect("no placeholder");
            scalar(node, faults, |_| T::from_level(&sample(&filled)))?;
        }
        let (span, path) = (node.span.clone(), node.path.clone());
        Some(Flowing { span, path, template, written: text, kind: PhantomData })
    }
}

impl<T: Scalar> JsonSchema for Flowing<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::EXPECTED.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<crate::value::Slot<T>>()
    }
}
