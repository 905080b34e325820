//! Values that placeholders fill in for each trial.

use super::scalar::{Problem, Scalar, read_scalar};
use super::scope::Scope;
use super::template::Template;
use super::user_values::misplaced_value;
use crate::document::{Faults, FromToml, Node, Span, level_in_words};
use plimsoll_model::factor::{Assignment, Level};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A value whose text may hold placeholders, which are filled in for each trial.
#[derive(Clone, Debug)]
pub(crate) struct Templated<T> {
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

impl<T: Scalar> Templated<T> {
    /// The value for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<T> {
        match &self.filling {
            Filling::Fixed(value) => Some(value.clone()),
            Filling::Template(template) => {
                let level = scope.fill(template, &self.span, faults)?;
                let becomes = || format!("becomes {}", level_in_words(&level));
                let fault = |problem: Problem| problem.fault(&self.span, &self.path).label(becomes());
                // Where a text is wanted, a level that is a number does as well: `{n}` as `v{n}`.
                let as_text = || T::from_level(&Level::Text(level.to_string())).ok();
                let taken = T::from_level(&level).or_else(|problem| as_text().ok_or(problem));
                taken.map_err(|problem| faults.add(fault(problem))).ok()
            }
        }
    }

    /// The value, if it has no placeholders.
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

impl<T: Scalar> FromToml for Templated<T> {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let templated =
            |filling, written| Templated { span: node.span.clone(), path: node.path.clone(), filling, written };
        let Some(Level::Text(text)) = node.scalar() else {
            let value = read_scalar(node, faults, T::from_level)?;
            let written = node.scalar().as_ref().map(Level::to_string).unwrap_or_default();
            return Some(templated(Filling::Fixed(value), written));
        };
        // A stray brace has been reported where all placeholders are looked at.
        let template = Template::parse(&text).ok()?;
        if let Some(value) = template.values().next() {
            faults.add(misplaced_value(value, &node.span, faults));
            return None;
        }
        if template.names().next().is_some() {
            return Some(templated(Filling::Template(template), text));
        }
        let value = read_scalar(node, faults, |_| T::from_level(&template.fill(|_| None).expect("no placeholder")))?;
        Some(templated(Filling::Fixed(value), text))
    }
}

/// Resolves a value that the study may leave out: `Some(None)` if it does, `None` if it is wrong.
pub(crate) fn resolve_optional<T, U>(values: Option<&T>, resolve: impl FnOnce(&T) -> Option<U>) -> Option<Option<U>> {
    match values {
        None => Some(None),
        Some(values) => resolve(values).map(Some),
    }
}

/// Resolves all of `values`, so that all faults are reported; `None` if one is wrong.
pub(crate) fn resolve_all<T, U>(values: &[T], resolve: impl FnMut(&T) -> Option<U>) -> Option<Vec<U>> {
    let resolved: Vec<Option<U>> = values.iter().map(resolve).collect();
    resolved.into_iter().collect()
}

/// A value as the study has it, or its default.
pub(crate) fn written_or<'a, T: Scalar>(templated: Option<&'a Templated<T>>, default: &'a str) -> &'a str {
    templated.map_or(default, Templated::as_written)
}

impl<T: Scalar> JsonSchema for Templated<T> {
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
