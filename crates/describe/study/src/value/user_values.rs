//! Values that users know at run time, by name, and where a study uses them.

use super::scope::place_of;
use super::template::{Template, UserValue};
use crate::document::{Fault, Faults, Span};
use plimsoll_model::flow::{Reference, ValueId};

/// The values that every user knows.
pub(crate) const BUILT_IN: [&str; 5] = ["user", "iteration", "uuid", "now", "message"];

/// The names of the values of a flow, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueNames(pub(crate) Vec<String>);

impl ValueNames {
    /// The value of this name; `None` if there is none, which a fault says.
    pub(crate) fn reference(&self, name: &str) -> Option<Reference> {
        Some(match name {
            "user" => Reference::User,
            "iteration" => Reference::Iteration,
            "uuid" => Reference::Uuid,
            "now" => Reference::Now,
            "message" => Reference::Message,
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

/// A place that uses a value of users.
#[derive(Clone, Debug)]
pub(crate) struct ValueUse {
    pub(crate) value: UserValue,
    pub(crate) span: Span,
}

impl ValueUse {
    pub(crate) fn all_in(template: &Template, span: &Span) -> Vec<ValueUse> {
        template.values().map(|value| ValueUse { value: value.clone(), span: span.clone() }).collect()
    }

    /// The place of the value itself.
    pub(crate) fn place(&self, faults: &Faults) -> Span {
        place_of(&self.value.to_string(), &self.span, faults)
    }
}

/// The fault for a value of users in a text that is the same for all of them.
pub(crate) fn misplaced_value(value: &UserValue, span: &Span, faults: &Faults) -> Fault {
    let message = format!("`{value}` cannot stand here");
    let help = "values of users stand in the paths, headers, bodies, conditions and checks of an HTTP workload; for a \
                factor write its name without `$`";
    Fault::error(&place_of(&value.to_string(), span, faults), message).label("the same for all users").help(help)
}
