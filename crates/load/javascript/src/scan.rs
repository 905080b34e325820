//! Finds in the tree of a module what decides how it is loaded: its calls of `require`, and `await` outside of functions.
//! Beside that, it finds whether the module throws null.

use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, AwaitExpression, BindingIdentifier, CallExpression, ConditionalExpression,
    DoWhileStatement, Expression, ForInStatement, ForOfStatement, ForStatement, Function, IdentifierReference,
    IfStatement, LogicalExpression, MetaProperty, Program, SwitchCase, ThrowStatement, TryStatement, UnaryExpression,
    WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::operator::UnaryOperator;
use oxc_syntax::scope::ScopeFlags;

/// What was found.
#[derive(Default)]
pub(crate) struct Scan {
    /// The modules that are required whenever the module is evaluated, with the offset of their specifiers.
    pub(crate) required: Vec<(String, usize)>,
    /// The same of those that may be required.
    pub(crate) maybe_required: Vec<(String, usize)>,
    /// True if the module calls `require`, or hands it on.
    pub(crate) uses_require: bool,
    /// True if it has an `import.meta`.
    pub(crate) uses_import_meta: bool,
    /// True if it has an `await` outside of functions.
    pub(crate) awaits: bool,
    /// True if it has a `throw null`, or rejects a promise with null.
    pub(crate) throws_null: bool,
    /// How many functions, branches and loops there are around the present node: what is inside may never run.
    conditions: usize,
    functions: usize,
    /// True if the module has a variable `require` of its own, as modules in a bundle do.
    shadows_require: bool,
}

impl Scan {
    pub(crate) fn of(program: &Program<'_>) -> Self {
        let mut scan = Self::default();
        scan.visit_program(program);
        if scan.shadows_require {
            scan.required.clear();
            scan.maybe_required.clear();
        }
        scan
    }

    fn conditionally(&mut self, visit: impl FnOnce(&mut Self)) {
        self.conditions += 1;
        visit(self);
        self.conditions -= 1;
    }

    fn in_function(&mut self, visit: impl FnOnce(&mut Self)) {
        self.functions += 1;
        self.conditionally(visit);
        self.functions -= 1;
    }
}

impl<'a> Visit<'a> for Scan {
    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.throws_null |= rejects_with_null(it);
        match it.callee.get_inner_expression() {
            // A function that is called where it stands: what is in it runs.
            Expression::FunctionExpression(function) if !function.r#async && !function.generator => {
                walk::walk_function(self, function, ScopeFlags::Function);
                self.visit_arguments(&it.arguments);
            }
            Expression::ArrowFunctionExpression(function) if !function.r#async => {
                walk::walk_arrow_function_expression(self, function);
                self.visit_arguments(&it.arguments);
            }
            Expression::Identifier(callee) if callee.name == "require" => {
                if let Some(Argument::StringLiteral(request)) = it.arguments.first() {
                    let found = if self.conditions == 0 { &mut self.required } else { &mut self.maybe_required };
                    found.push((request.value.to_string(), request.span.start as usize));
                }
                walk::walk_call_expression(self, it);
            }
            _ => walk::walk_call_expression(self, it),
        }
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.uses_require |= it.name == "require";
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.shadows_require |= it.name == "require";
    }

    /// Whether there is a `require` is asked by modules that run elsewhere too.
    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if it.operator != UnaryOperator::Typeof || !it.argument.is_specific_id("require") {
            walk::walk_unary_expression(self, it);
        }
    }

    fn visit_meta_property(&mut self, it: &MetaProperty<'a>) {
        self.uses_import_meta |= it.meta.name == "import";
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        self.awaits |= self.functions == 0;
        walk::walk_await_expression(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.in_function(|scan| walk::walk_function(scan, it, flags));
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.in_function(|scan| walk::walk_arrow_function_expression(scan, it));
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.visit_expression(&it.test);
        self.conditionally(|scan| {
            scan.visit_statement(&it.consequent);
            it.alternate.iter().for_each(|alternate| scan.visit_statement(alternate));
        });
    }

    fn visit_conditional_expression(&mut self, it: &ConditionalExpression<'a>) {
        self.visit_expression(&it.test);
        self.conditionally(|scan| {
            scan.visit_expression(&it.consequent);
            scan.visit_expression(&it.alternate);
        });
    }

    fn visit_logical_expression(&mut self, it: &LogicalExpression<'a>) {
        self.visit_expression(&it.left);
        self.conditionally(|scan| scan.visit_expression(&it.right));
    }

    fn visit_throw_statement(&mut self, it: &ThrowStatement<'a>) {
        self.throws_null |= matches!(it.argument.get_inner_expression(), Expression::NullLiteral(_));
        walk::walk_throw_statement(self, it);
    }

    fn visit_try_statement(&mut self, it: &TryStatement<'a>) {
        self.conditionally(|scan| walk::walk_try_statement(scan, it));
    }

    fn visit_switch_case(&mut self, it: &SwitchCase<'a>) {
        self.conditionally(|scan| walk::walk_switch_case(scan, it));
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        self.conditionally(|scan| walk::walk_for_statement(scan, it));
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        self.conditionally(|scan| walk::walk_for_in_statement(scan, it));
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.awaits |= it.r#await && self.functions == 0;
        self.conditionally(|scan| walk::walk_for_of_statement(scan, it));
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.conditionally(|scan| walk::walk_while_statement(scan, it));
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.conditionally(|scan| walk::walk_do_while_statement(scan, it));
    }
}

/// True for `Promise.reject(null)`, and for `reject(null)`.
fn rejects_with_null(call: &CallExpression<'_>) -> bool {
    call.callee_name() == Some("reject") && matches!(call.arguments.first(), Some(Argument::NullLiteral(_)))
}

#[cfg(test)]
mod tests {
    use crate::module::Module;

    #[test]
    fn only_what_surely_runs_is_required() {
        let cases = [
            ("const a = require('a'); const { b } = require(\"b\").c;", vec!["a", "b"]),
            ("(function () { require('a'); })(); (() => require('b'))();", vec!["a", "b"]),
            ("require('a') || require('b'); if (require('c')) require('d'); else require('e');", vec!["a", "c"]),
            ("require('a') ? require('b') : require('c');", vec!["a"]),
            ("try { require('a'); } catch (e) { require('b'); }", vec![]),
            ("for (;;) { require('a'); } while (x) require('b'); switch (x) { case 1: require('c'); }", vec![]),
            ("function f() { require('a'); } const g = () => require('b'); async () => require('c');", vec![]),
            ("require(name); require(`a`); load(require); x.require('b');", vec![]),
            ("(function (require) { require('a'); })(load);", vec![]),
        ];
        for (text, expected) in cases {
            let module = Module::parse("load.js", text.to_owned()).unwrap_or_else(|faults| panic!("{}", faults[0]));
            let found: Vec<&str> = module.names.required.iter().map(|(request, _)| request.as_str()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn asking_whether_there_is_a_require_is_no_use_of_it() {
        for (text, expected) in [
            ("typeof require === 'function'", false),
            ("typeof (require)", false),
            ("typeof require === 'function' && require('a')", true),
            ("const load = require;", true),
            ("x.require('a'); ({ require: 1 });", false),
        ] {
            let module = Module::parse("load.js", text.to_owned()).unwrap_or_else(|faults| panic!("{}", faults[0]));
            assert_eq!(module.names.uses_require, expected, "{text}");
        }
    }

    #[test]
    fn a_null_that_is_thrown_is_found_anywhere() {
        for (text, expected) in [
            ("throw null;", true),
            ("function f() { if (g()) { throw (null); } }", true),
            ("const f = () => Promise.reject(null);", true),
            ("new Promise((resolve, reject) => reject(null));", true),
            ("throw new Error(null); throw 'null'; f(null); reject(g(null));", false),
        ] {
            let module = Module::parse("load.js", text.to_owned()).unwrap_or_else(|faults| panic!("{}", faults[0]));
            assert_eq!(module.names.throws_null, expected, "{text}");
        }
    }
}
