//! Enums of TypeScript: the declaration becomes a variable with an object, as compilers write it.
//!
//! `enum A { B, C = 2 }` becomes `var A = ((A) => { A[A["B"] = 0] = "B"; A[A["C"] = 2] = "C"; return A })(A || {});`.

use super::Types;
use oxc_ast::ast::{BinaryExpression, Expression, TSEnumDeclaration, TSEnumMember, TSEnumMemberName};
use oxc_ast_visit::Visit;
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::BinaryOperator;
use std::collections::BTreeMap;

/// The enums of a module by name, with their members so far: declarations of the same name add to one another.
#[derive(Default)]
pub(super) struct Enums<'a> {
    members: BTreeMap<&'a str, BTreeMap<String, Value>>,
    /// The enum whose member is initialised.
    current: Option<&'a str>,
}

/// What a member holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Objects have its name under the number, too.
    Number,
    Text,
}

impl<'a> Enums<'a> {
    /// The enum whose member a name in an initialiser is.
    pub(super) fn of_member(&self, name: &str) -> Option<&'a str> {
        self.current.filter(|current| self.members.get(current).is_some_and(|members| members.contains_key(name)))
    }

    fn value(&self, expression: &Expression<'a>) -> Value {
        let is_text = match expression.get_inner_expression() {
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => true,
            Expression::BinaryExpression(sum) => self.is_text_sum(sum),
            Expression::Identifier(name) => {
                self.current.is_some_and(|own| self.member(own, &name.name) == Some(Value::Text))
            }
            Expression::StaticMemberExpression(member) => match &member.object {
                Expression::Identifier(of) => self.member(&of.name, &member.property.name) == Some(Value::Text),
                _ => false,
            },
            _ => false,
        };
        if is_text { Value::Text } else { Value::Number }
    }

    fn is_text_sum(&self, sum: &BinaryExpression<'a>) -> bool {
        let texts = [&sum.left, &sum.right].map(|side| self.value(side) == Value::Text);
        sum.operator == BinaryOperator::Addition && texts.contains(&true)
    }

    fn member(&self, of: &str, name: &str) -> Option<Value> {
        self.members.get(of)?.get(name).copied()
    }
}

impl<'a> Types<'a> {
    pub(super) fn compile_enum(&mut self, it: &TSEnumDeclaration<'a>) {
        let (name, body) = (it.id.name.as_str(), it.body.span);
        self.edits.blank(Span::new(it.span.start, it.id.span.start));
        for (at, letter) in (it.span.start..).zip(*b"var") {
            self.edits.replace(at, letter);
        }
        self.edits.insert(it.id.span.end, &format!(" = (({name}) => "));
        self.enums.members.entry(name).or_default();
        let around = self.enums.current.replace(name);
        let mut before = None;
        for member in &it.body.members {
            before = Some(self.compile_member(name, member, before));
        }
        self.enums.current = around;
        self.edits.insert(body.end - 1, &format!(" return {name} "));
        self.edits.insert(body.end, &format!(")({name} || {{}});"));
    }

    /// Writes a member as an assignment. Returns its name and value, which the next member goes on from.
    fn compile_member(
        &mut self,
        of: &'a str,
        member: &TSEnumMember<'a>,
        before: Option<(String, Value)>,
    ) -> (String, Value) {
        let (name, id, whole) = (name_of(&member.id), member.id.span(), member.span);
        let value = member.initializer.as_ref().map_or(Value::Number, |initializer| self.enums.value(initializer));
        let (open, close) = match &member.id {
            TSEnumMemberName::Identifier(_) => ("[\"", "\"]"),
            TSEnumMemberName::String(_) => ("[", "]"),
            // The brackets are there.
            TSEnumMemberName::ComputedString(_) | TSEnumMemberName::ComputedTemplateString(_) => ("", ""),
        };
        let reversed = if value == Value::Number { format!("{of}[") } else { String::new() };
        self.edits.insert(whole.start, &format!("{reversed}{of}{open}"));
        self.edits.insert(id.end, close);
        match (&member.initializer, before) {
            (Some(initializer), _) => self.visit_expression(initializer),
            (None, None) => self.edits.insert(whole.end, " = 0"),
            (None, Some((before, Value::Number))) => {
                self.edits.insert(whole.end, &format!(" = {of}[{before:?}] + 1"));
            }
            (None, Some((_, Value::Text))) => {
                self.refuse(id, "a member without a value behind a text", "write `= ` and its value");
            }
        }
        let end = if value == Value::Number { format!("] = {name:?};") } else { ";".to_owned() };
        self.edits.insert(whole.end, &end);
        if let Some(comma) = self.edits.comma_behind(whole.end) {
            self.edits.replace(comma, b' ');
        }
        self.enums.members.entry(of).or_default().insert(name.clone(), value);
        (name, value)
    }
}

fn name_of(id: &TSEnumMemberName<'_>) -> String {
    match id {
        TSEnumMemberName::Identifier(name) => name.name.to_string(),
        TSEnumMemberName::String(text) | TSEnumMemberName::ComputedString(text) => text.value.to_string(),
        TSEnumMemberName::ComputedTemplateString(text) => {
            text.single_quasi().map(|text| text.to_string()).unwrap_or_default()
        }
    }
}
