//! Parameter properties of TypeScript: parameters of a constructor that become properties of the object.
//!
//! `constructor(private a) {` becomes `constructor(a) { this.a = a;`, where there is a superclass behind the call of `super`.

use super::Types;
use oxc_ast::ast::{
    BindingPatternKind, Class, ClassElement, Expression, FormalParameter, FunctionBody, MethodDefinitionKind, Statement,
};
use oxc_span::GetSpan;

impl<'a> Types<'a> {
    /// Has the constructor of a class assign its parameter properties.
    pub(super) fn compile_parameter_properties(&mut self, class: &Class<'a>) {
        for element in &class.body.body {
            let ClassElement::MethodDefinition(method) = element else { continue };
            let Some(body) = &method.value.body else { continue };
            if method.kind != MethodDefinitionKind::Constructor {
                continue;
            }
            let properties = method.value.params.items.iter().filter(|parameter| is_property(parameter));
            let names = properties.clone().filter_map(|parameter| name_of(&parameter.pattern.kind));
            let assignments: String = names.map(|name| format!(" this.{name} = {name};")).collect();
            let Some(first) = properties.clone().next() else { continue };
            let begin = if class.super_class.is_some() { behind_super(body) } else { Some(body.span.start + 1) };
            match begin {
                Some(begin) => self.edits.insert(begin, &assignments),
                None => {
                    let what =
                        "a parameter property of a constructor that does not call `super` in a statement of its own";
                    self.refuse(first.span, what, "call it first, or declare the property and assign it");
                }
            }
        }
    }
}

pub(super) fn is_property(parameter: &FormalParameter<'_>) -> bool {
    parameter.accessibility.is_some() || parameter.readonly || parameter.r#override
}

fn name_of<'a>(pattern: &BindingPatternKind<'a>) -> Option<&'a str> {
    pattern.get_identifier_name().map(|name| name.as_str())
}

/// The offset behind the statement that calls `super`.
fn behind_super(body: &FunctionBody<'_>) -> Option<u32> {
    let calls_super = |statement: &&Statement<'_>| match statement {
        Statement::ExpressionStatement(statement) => match &statement.expression {
            Expression::CallExpression(call) => matches!(call.callee, Expression::Super(_)),
            _ => false,
        },
        _ => false,
    };
    body.statements.iter().find(calls_super).map(|statement| statement.span().end)
}
