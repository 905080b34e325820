//! Where a name was used that was not there, where that is sure. The engine (0.15.1) remembers the places of calls and
//! not those of variables and properties: of `undefined.x` it tells the place of a call before it.

use oxc_ast::ast::{
    ArrowFunctionExpression, ComputedMemberExpression, Expression, Function, IdentifierName, IdentifierReference,
    PropertyKey, StringLiteral,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

/// What a message of the engine is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'n> {
    Property(&'n str),
    Variable(&'n str),
}

/// The name that a message of the engine is about.
pub(crate) fn name_in(message: &str) -> Option<Name<'_>> {
    let of_property = ["TypeError: cannot read property '", "TypeError: cannot set property '"];
    let of_property = of_property.iter().find_map(|start| message.strip_prefix(start)?.rsplit_once("' of "));
    let of_variable = || message.strip_prefix("ReferenceError: ")?.strip_suffix(" is not defined");
    of_property.map(|(name, _)| Name::Property(name)).or_else(|| of_variable().map(Name::Variable))
}

/// Looks for a name in the function around a place that the engine tells, and in the functions in that: of a function
/// without a call the engine tells only the line in which it begins.
pub(crate) struct Uses<'n> {
    name: Name<'n>,
    at: u32,
    /// The innermost function around the place.
    function: Span,
    /// Where the name stands.
    found: Vec<u32>,
    /// Where a property may have any name.
    open: Vec<u32>,
}

impl<'n> Uses<'n> {
    pub(crate) fn new(name: Name<'n>, at: usize, program: Span) -> Uses<'n> {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        Uses { name, at, function: program, found: Vec::new(), open: Vec::new() }
    }

    /// The one place where the name can have been used; none where there are several.
    pub(crate) fn only(self) -> Option<usize> {
        let inside = self.function.start..self.function.end;
        let mut here = self.found.iter().filter(|place| inside.contains(place));
        let (Some(place), None) = (here.next(), here.next()) else { return None };
        let is_sure = *place >= self.at && !self.open.iter().any(|open| inside.contains(open));
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
            self.open.push(it.span.start);
        }
        walk::walk_computed_member_expression(self, it);
    }

    fn visit_property_key(&mut self, it: &PropertyKey<'a>) {
        if it.as_expression().is_some_and(|key| !key.is_literal()) {
            self.open.push(it.span().start);
        }
        walk::walk_property_key(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_they_are_about() {
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
