//! Finds the place where a missing name was used, if there is only one. The engine (0.15.1) remembers the places of calls
//! but not those of variables and properties: for `undefined.x` it gives the place of an earlier call.

use oxc_ast::ast::{
    ArrowFunctionExpression, ComputedMemberExpression, Expression, Function, IdentifierName, IdentifierReference,
    PropertyKey, StringLiteral,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

/// The name in a message of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'n> {
    Property(&'n str),
    Variable(&'n str),
}

/// The name in a message of the engine, if the message has one.
pub(crate) fn name_in(message: &str) -> Option<Name<'_>> {
    let of_property = ["TypeError: cannot read property '", "TypeError: cannot set property '"];
    let of_property = of_property.iter().find_map(|start| message.strip_prefix(start)?.rsplit_once("' of "));
    let of_variable = || message.strip_prefix("ReferenceError: ")?.strip_suffix(" is not defined");
    of_property.map(|(name, _)| Name::Property(name)).or_else(|| of_variable().map(Name::Variable))
}

/// Finds uses of a name in the function around the engine's place, and in the functions inside it: for a function without
/// a call, the engine gives only its first line.
pub(crate) struct Uses<'n> {
    name: Name<'n>,
    at: u32,
    /// The innermost function around the place.
    function: Span,
    /// The offsets of the name.
    found: Vec<u32>,
    /// The offsets of properties whose name is computed.
    computed: Vec<u32>,
}

impl<'n> Uses<'n> {
    pub(crate) fn new(name: Name<'n>, at: usize, program: Span) -> Uses<'n> {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        Uses { name, at, function: program, found: Vec::new(), computed: Vec::new() }
    }

    /// The only place where the name can have been used; none if there are several.
    pub(crate) fn only(self) -> Option<usize> {
        let inside = self.function.start..self.function.end;
        let mut here = self.found.iter().filter(|place| inside.contains(place));
        let (Some(place), None) = (here.next(), here.next()) else { return None };
        let is_sure = *place >= self.at && !self.computed.iter().any(|offset| inside.contains(offset));
        is_sure.then_some(*place as usize)
    }

    fn note_function(&mut self, span: Span) {
        if (span.start..span.end).contains(&self.at) {
            self.function = span;
        }
    }

    fn note(&mut self, name: Name<'_>, span: Span) {
        if name == self.name {
            self.found.push(span.start);
        }
    }
}

impl<'a> Visit<'a> for Uses<'_> {
    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.note_function(it.span);
        walk::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.note_function(it.span);
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_identifier_name(&mut self, it: &IdentifierName<'a>) {
        self.note(Name::Property(&it.name), it.span);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.note(Name::Variable(&it.name), it.span);
    }

    fn visit_string_literal(&mut self, it: &StringLiteral<'a>) {
        self.note(Name::Property(&it.value), it.span);
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if !matches!(it.expression, Expression::StringLiteral(_) | Expression::NumericLiteral(_)) {
            self.computed.push(it.span.start);
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_property_key(&mut self, it: &PropertyKey<'a>) {
        if it.as_expression().is_some_and(|key| !key.is_literal()) {
            self.computed.push(it.span().start);
        }
        walk::walk_property_key(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_messages() {
        for (message, name) in [
            ("TypeError: cannot read property 'y' of undefined", Some(Name::Property("y"))),
            ("TypeError: cannot set property 'a b' of null", Some(Name::Property("a b"))),
            ("ReferenceError: nope is not defined", Some(Name::Variable("nope"))),
            ("TypeError: not a function", None),
        ] {
            assert_eq!(name_in(message), name, "{message}");
        }
    }
}
