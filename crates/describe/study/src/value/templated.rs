//! Values that placeholders fill in for each trial.

use super::scalar::{Scalar, read_level, scalar_of};
use super::scope::Scope;
use super::template::Template;
use super::user_values::misplaced_value;
use crate::document::{Faults, FromToml, Node, Schemas, Span, level_in_words};
use plimsoll_model::factor::{Assignment, Level};
use serde_json::{Value, json};

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
                let problem = match T::from_level(&level) {
                    Ok(value) => return Some(value),
                    Err(problem) => problem,
                };
                // Where a text is wanted, a level that is a number does as well: `{n}` as `v{n}`.
                let value = T::from_level(&Level::Text(level.to_string())).ok();
                if value.is_none() {
                    let label = format!("becomes {}", level_in_words(&level));
                    faults.add(problem.fault(&self.span, &self.path).label(label));
                }
                value
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
        let written = scalar_of(node, T::EXPECTED, faults)?;
        let filling = match fixed_or_template(&written, node, faults)? {
            Filling::Fixed(level) => Filling::Fixed(read_level(&level, node, faults)?),
            Filling::Template(template) => Filling::Template(template),
        };
        Some(Templated { span: node.span.clone(), path: node.path.clone(), filling, written: written.to_string() })
    }

    fn json_schema(_: &mut Schemas) -> Value {
        or_placeholder(T::schema())
    }
}

/// What `written` stands for: a level that is the same for every trial, or a template.
fn fixed_or_template(written: &Level, node: &Node<'_>, faults: &mut Faults) -> Option<Filling<Level>> {
    let Level::Text(text) = written else {
        return Some(Filling::Fixed(written.clone()));
    };
    // A stray brace has been reported where all placeholders are looked at.
    let template = Template::parse(text).ok()?;
    if let Some(value) = template.values().next() {
        faults.add(misplaced_value(value, &node.span, faults));
        return None;
    }
    Some(match template.fill(&|_| None) {
        Ok(level) => Filling::Fixed(level),
        Err(_) => Filling::Template(template),
    })
}

/// The value itself, or a text with a placeholder in it.
fn or_placeholder(own: Value) -> Value {
    let plain = json!({ "type": "string" });
    if own == plain { own } else { json!({ "anyOf": [own, { "type": "string", "pattern": "\\{" }] }) }
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
