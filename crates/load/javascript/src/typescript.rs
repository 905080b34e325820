//! Strips the types of TypeScript: spaces take their place, so every line and column stays the same. Enums and parameter
//! properties are compiled, with code between that of the source, whose lines stay. Namespaces with values and decorators
//! are refused.

mod edits;
mod enums;
mod parameters;

pub(crate) use edits::{Inserted, Stripped};

use edits::Edits;
use enums::Enums;
use oxc_ast::ast::{
    ArrowFunctionExpression, Class, ClassElement, Declaration, Decorator, ExportAllDeclaration,
    ExportDefaultDeclaration, ExportDefaultDeclarationKind, ExportNamedDeclaration, FormalParameter, Function,
    IdentifierReference, ImportDeclaration, ImportDeclarationSpecifier, MethodDefinition, MethodDefinitionType,
    Program, PropertyDefinition, PropertyDefinitionType, Statement, TSAsExpression, TSClassImplements,
    TSEnumDeclaration, TSExportAssignment, TSGlobalDeclaration, TSImportEqualsDeclaration, TSIndexSignature,
    TSInterfaceDeclaration, TSModuleDeclaration, TSModuleReference, TSNamespaceExportDeclaration, TSNonNullExpression,
    TSSatisfiesExpression, TSThisParameter, TSTypeAliasDeclaration, TSTypeAnnotation, TSTypeAssertion,
    TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclaration, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;
use std::collections::HashSet;

/// Syntax that cannot be stripped.
pub(crate) struct Refused {
    pub(crate) offset: usize,
    pub(crate) what: &'static str,
    pub(crate) instead: &'static str,
}

/// Returns the text of `program` as JavaScript, every line in its place.
pub(crate) fn strip(program: &Program<'_>) -> Result<Stripped, Vec<Refused>> {
    let edits = Edits::new(program.source_text);
    let only_types = names_of_types(program);
    let mut types = Types { edits, enums: Enums::default(), only_types, used: HashSet::new(), refused: Vec::new() };
    types.visit_program(program);
    types.imports(program);
    if types.refused.is_empty() { Ok(types.edits.stripped()) } else { Err(types.refused) }
}

struct Types<'a> {
    edits: Edits<'a>,
    enums: Enums<'a>,
    /// Names of the module that stand for nothing but types.
    only_types: HashSet<&'a str>,
    /// The names that are used as values.
    used: HashSet<&'a str>,
    refused: Vec<Refused>,
}

impl<'a> Types<'a> {
    fn refuse(&mut self, span: Span, what: &'static str, instead: &'static str) {
        self.refused.push(Refused { offset: span.start as usize, what, instead });
    }

    /// Removes modifiers before the key of a member.
    fn blank_modifiers(&mut self, member: Span, key: Span) {
        for word in ["public", "private", "protected", "readonly", "override", "abstract"] {
            self.edits.blank_word(member.start, key.start, word);
        }
    }

    /// Removes imports of names that are nowhere used as values: TypeScript takes them for types.
    fn imports(&mut self, program: &Program<'a>) {
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(import) => self.import(import),
                Statement::TSImportEqualsDeclaration(import) => self.import_by_require(import),
                _ => {}
            }
        }
    }

    /// `import a = require('a')`, which becomes `const  a = require('a')`.
    fn import_by_require(&mut self, import: &TSImportEqualsDeclaration<'a>) {
        let is_require = matches!(import.module_reference, TSModuleReference::ExternalModuleReference(_));
        if import.import_kind.is_type() || (is_require && !self.used.contains(import.id.name.as_str())) {
            self.edits.blank_statement(import.span);
        } else if is_require {
            (import.span.start..).zip(*b"const ").for_each(|(at, letter)| self.edits.replace(at, letter));
        } else {
            self.refuse(import.span, "an `import … =` of a namespace", "write a constant");
        }
    }

    fn import(&mut self, import: &ImportDeclaration<'a>) {
        let Some(specifiers) = &import.specifiers else { return };
        let is_value = |specifier: &&ImportDeclarationSpecifier<'a>| {
            let of_type =
                matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(one) if one.import_kind.is_type());
            !of_type && self.used.contains(specifier.local().name.as_str())
        };
        let (values, types): (Vec<_>, Vec<_>) = specifiers.iter().partition(is_value);
        if import.import_kind.is_type() || (values.is_empty() && !types.is_empty()) {
            return self.edits.blank_statement(import.span);
        }
        for specifier in types {
            if let ImportDeclarationSpecifier::ImportNamespaceSpecifier(all) = specifier {
                // `import value, * as types`: the comma before it goes as well.
                self.edits.blank_word(import.span.start, all.span.start, ",");
            }
            self.edits.blank_item(specifier.span());
        }
    }
}

impl<'a> Visit<'a> for Types<'a> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.used.insert(it.name.as_str());
        if let Some(of) = self.enums.of_member(&it.name) {
            self.edits.insert(it.span.start, &format!("{of}."));
        }
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_ts_type_alias_declaration(&mut self, it: &TSTypeAliasDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_interface_declaration(&mut self, it: &TSInterfaceDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        if it.declare { self.edits.blank_statement(it.span) } else { self.compile_enum(it) }
    }

    fn visit_ts_module_declaration(&mut self, it: &TSModuleDeclaration<'a>) {
        if it.declare {
            self.edits.blank_statement(it.span);
        } else {
            self.refuse(it.span, "a namespace", "write a module of its own");
        }
    }

    fn visit_ts_global_declaration(&mut self, it: &TSGlobalDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_namespace_export_declaration(&mut self, it: &TSNamespaceExportDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    /// Left to `imports`, which runs when all names are known.
    fn visit_ts_import_equals_declaration(&mut self, _: &TSImportEqualsDeclaration<'a>) {}

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.refuse(it.span, "an `export =`", "write `module.exports =`, or `export default`");
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(it.span, "a decorator", "call the function yourself");
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.edits.blank_after(it.expression.span(), it.span);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.edits.blank_after(it.expression.span(), it.span);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.edits.blank(Span::new(it.span.end - 1, it.span.end));
        self.visit_expression(&it.expression);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.edits.blank(Span::new(it.span.start, it.expression.span().start));
        self.visit_expression(&it.expression);
    }

    /// Left to `imports`, which runs when all names are known.
    fn visit_import_declaration(&mut self, _: &ImportDeclaration<'a>) {}

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        if it.export_kind.is_type() {
            self.edits.blank_statement(it.span);
        }
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        if it.export_kind.is_type() || it.declaration.as_ref().is_some_and(is_of_types) {
            return self.edits.blank_statement(it.span);
        }
        for specifier in &it.specifiers {
            let is_local_type = it.source.is_none() && self.only_types.contains(specifier.local.name().as_str());
            if specifier.export_kind.is_type() || is_local_type {
                self.edits.blank_item(specifier.span);
            }
        }
        walk::walk_export_named_declaration(self, it);
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        let of_types = match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_none(),
            _ => false,
        };
        if of_types { self.edits.blank_statement(it.span) } else { walk::walk_export_default_declaration(self, it) }
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if parameters::is_property(it) {
            self.blank_modifiers(it.span, it.pattern.span());
        }
        if it.pattern.optional {
            let annotation = it.pattern.type_annotation.as_ref().map(|annotation| annotation.span.start);
            // The pattern itself ends after the mark, and no `?` but that can stand right before its type.
            let end = annotation.unwrap_or(it.span.end);
            if let Some(at) = self.edits.between(it.span.start, end).rfind('?') {
                let mark = it.span.start + at as u32;
                self.edits.blank(Span::new(mark, mark + 1));
            }
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if it.body.is_none() { self.edits.blank_statement(it.span) } else { walk::walk_function(self, it, flags) }
    }

    /// A line break between `)` and `=>` is no JavaScript: where the type of the result has one, the `)` moves behind it.
    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        walk::walk_arrow_function_expression(self, it);
        if let Some(result) = &it.return_type
            && self.edits.between(result.span.start, result.span.end).contains('\n')
        {
            self.edits.replace(it.params.span.end - 1, b' ');
            self.edits.replace(result.span.end - 1, b')');
        }
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.edits.blank_item(it.span);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.declare { self.edits.blank_statement(it.span) } else { walk::walk_variable_declaration(self, it) }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite
            && let Some(annotation) = &it.id.type_annotation
        {
            self.edits.blank_word(it.span.start, annotation.span.start, "!");
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.declare {
            return self.edits.blank_statement(it.span);
        }
        if it.r#abstract {
            self.edits.blank_word(it.span.start, it.body.span.start, "abstract");
        }
        if let Some(first) = it.implements.first()
            && let Some(at) = self.edits.between(it.span.start, first.span.start).rfind("implements")
        {
            self.edits.blank(Span::new(it.span.start + at as u32, it.body.span.start));
        }
        self.compile_parameter_properties(it);
        walk::walk_class(self, it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        let of_types = match it {
            ClassElement::MethodDefinition(method) => {
                method.r#type == MethodDefinitionType::TSAbstractMethodDefinition || method.value.body.is_none()
            }
            ClassElement::PropertyDefinition(property) => {
                property.declare || property.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
            }
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::StaticBlock(_) | ClassElement::AccessorProperty(_) => false,
        };
        if of_types { self.edits.blank_statement(it.span()) } else { walk::walk_class_element(self, it) }
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        let key = it.key.span();
        self.blank_modifiers(it.span, key);
        if it.optional {
            self.edits.blank_word(key.end, it.value.params.span.start, "?");
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        let key = it.key.span();
        self.blank_modifiers(it.span, key);
        let end = it.type_annotation.as_ref().map(|annotation| annotation.span.start);
        let end = end.or(it.value.as_ref().map(|value| value.span().start)).unwrap_or(it.span.end);
        if it.optional {
            self.edits.blank_word(key.end, end, "?");
        }
        if it.definite {
            self.edits.blank_word(key.end, end, "!");
        }
        walk::walk_property_definition(self, it);
    }
}

/// The names that a module declares as types, and not as values too.
fn names_of_types<'a>(program: &Program<'a>) -> HashSet<&'a str> {
    let (mut types, mut values) = (HashSet::new(), HashSet::new());
    for statement in &program.body {
        let declaration = match statement {
            Statement::ExportNamedDeclaration(export) => export.declaration.as_ref(),
            other => other.as_declaration(),
        };
        match declaration {
            Some(Declaration::TSInterfaceDeclaration(it)) => types.extend([it.id.name.as_str()]),
            Some(Declaration::TSTypeAliasDeclaration(it)) => types.extend([it.id.name.as_str()]),
            Some(Declaration::FunctionDeclaration(it)) => values.extend(it.id.as_ref().map(|id| id.name.as_str())),
            Some(Declaration::ClassDeclaration(it)) => values.extend(it.id.as_ref().map(|id| id.name.as_str())),
            Some(Declaration::TSEnumDeclaration(it)) => values.extend([it.id.name.as_str()]),
            Some(Declaration::VariableDeclaration(it)) => {
                values.extend(
                    it.declarations.iter().flat_map(|one| one.id.get_binding_identifiers()).map(|id| id.name.as_str()),
                );
            }
            _ => {}
        }
    }
    &types - &values
}

/// True if nothing of a declaration is left at run time.
fn is_of_types(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::FunctionDeclaration(function) => function.body.is_none(),
        Declaration::VariableDeclaration(variables) => variables.declare,
        Declaration::ClassDeclaration(class) => class.declare,
        Declaration::TSEnumDeclaration(constants) => constants.declare,
        Declaration::TSModuleDeclaration(module) => module.declare,
        Declaration::TSGlobalDeclaration(_) => true,
        Declaration::TSImportEqualsDeclaration(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::module::Module;

    /// A module as JavaScript, which the parser has taken. Every character stands where it stood.
    fn stripped(source: &str) -> String {
        let module = match Module::parse("load.ts", source.to_owned()) {
            Ok(module) => module,
            Err(faults) => panic!("{source}\n{}", faults.iter().map(crate::fault::Fault::render).collect::<String>()),
        };
        let widths = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        assert_eq!(widths(source), widths(&module.code), "{source}\n{}", module.code);
        module.code
    }

    #[test]
    fn types_are_removed_and_values_stay() {
        let cases = [
            ("let a: number = 1;", "let a = 1;"),
            ("let a!: number, b: string | null = null;", "let a , b = null;"),
            ("function f(a: A, b?: B, ...c: C[]): asserts a is D {}", "function f(a , b , ...c ) {}"),
            ("function f(this: Window, a: A) {}", "function f( a ) {}"),
            ("function f(this: Window) {}", "function f( ) {}"),
            ("function f<T extends U = V>(a: T) { return g<T>(a); }", "function f (a ) { return g (a); }"),
            ("function f(a: string): string; function f(a: any) { return a; }", "; function f(a ) { return a; }"),
            ("const f = async <T,>(a: T): Promise<T> => a;", "const f = async (a ) => a;"),
            ("const f = (a): {\n x: 1;\n} => a;", "const f = (a ) => a;"),
            ("const a = <any>b as unknown as C;", "const a = b ;"),
            ("const a = { b: 1 } satisfies C;", "const a = { b: 1 } ;"),
            ("const a = b!.c![0]!;", "const a = b .c [0] ;"),
            ("const a = [1, 2] as const\n;(b as any).c()", "const a = [1, 2] ;(b ).c()"),
            ("const a = b as any\n(c as any).d()", "const a = b ; (c ).d()"),
            ("type A = { b: string }", ";"),
            ("let a = 1\ntype B = C\n(a as any).b", "let a = 1 ; (a ).b"),
            ("interface A extends B { c(): void }", ";"),
            ("declare const a: number; declare function b(): void; declare module 'c' { }", "; ; ;"),
            ("declare global { interface A {} }", ";"),
            ("declare enum A { B }", ";"),
            ("export type { A } from './a'; export type B = C; export interface D {}", "; ; ;"),
            ("export { type A, b } from 'b';", "export { b } from 'b';"),
            ("interface A {} type B = A; class C {} export { A, C, B };", "; ; class C {} export { C, };"),
            ("interface A {} const A = 1; export { A };", "; const A = 1; export { A };"),
            (
                "interface A {} export { A }; export { A as B } from './b';",
                "; export { }; export { A as B } from './b';",
            ),
            ("export type * from './a';", ";"),
            ("export default interface A {}", ";"),
            ("export declare const a: number;", ";"),
            ("import type { A } from './a'; import type B from './b';", "; ;"),
            ("import { type A, b, type C } from 'd'; b();", "import { b, } from 'd'; b();"),
            ("import { A, b } from 'c'; let a: A = b;", "import { b } from 'c'; let a = b;"),
            ("import A, { b } from 'c'; let a: A = b;", "import { b } from 'c'; let a = b;"),
            ("import a, * as B from 'c'; let d: B.D = a;", "import a from 'c'; let d = a;"),
            ("import { A } from './a'; let a: A;", "; let a ;"),
            ("import './a'; import {} from './b';", "import './a'; import {} from './b';"),
            ("import { A } from './a'; class B implements A {}", "; class B {}"),
            ("import { A } from './a'; class B extends A<C> {}", "import { A } from './a'; class B extends A {}"),
            ("abstract class A { abstract b(): void; abstract c: number; d = 1 }", "class A { ; ; d = 1 }"),
            ("export abstract class A {}", "export class A {}"),
            ("export default abstract class A {}", "export default class A {}"),
            (
                "class A<T> extends B<T> implements C, D<T> { private readonly a?: T; static b!: T; #c: T; [d: string]: T; declare e: T }",
                "class A extends B { a ; static b ; #c ; ; ; }",
            ),
            (
                "class A { private constructor(a: A); private constructor(a: any) {} protected static async b?(): Promise<void> {} public get c(): C { return 1 } override d() {} }",
                "class A { ; constructor(a ) {} static async b () {} get c() { return 1 } d() {} }",
            ),
            (
                "class A { readonly = 1; private = 2; static static = 3 }",
                "class A { readonly = 1; private = 2; static static = 3 }",
            ),
            ("try {} catch (e: unknown) {}", "try {} catch (e ) {}"),
            ("for (const a of b as C[]) {}", "for (const a of b ) {}"),
            ("const a = b ? (c) : (d): e => f;", "const a = b ? (c) : (d) => f;"),
            ("new Map<string, Set<number>>(); a<b>`c`; const d = e<f>;", "new Map (); a `c`; const d = e ;"),
            ("const größe: 'ü' = 'ü' as 'ü';", "const größe = 'ü' ;"),
            ("let a = b < c, d = e > (f);", "let a = b < c, d = e > (f);"),
            ("let a: typeof b[number]; let c: import('./d').E;", "let a ; let c ;"),
            ("import a = require('a'); a();", "const a = require('a'); a();"),
            ("import a = require('a'); let b: a.C; import type d = require('d');", "; let b ; ;"),
        ];
        for (source, expected) in cases {
            let words: Vec<String> = stripped(source).split_whitespace().map(str::to_owned).collect();
            assert_eq!(words.join(" "), expected, "{source}");
        }
    }

    #[test]
    fn enums_and_parameter_properties_are_compiled() {
        let cases = [
            (
                "export enum A { B, C = 2, D }",
                r#"export var A = ((A) => { A[A["B"] = 0] = "B"; A[A["C"] = 2] = "C"; A[A["D"] = A["C"] + 1] = "D"; return A })(A || {});"#,
            ),
            (
                "const enum A { 'b-c' = 'x', ['d'] = `y`, E = 'x' + F, G = E, H = 1 << 2, I = H | 1, }",
                r#"var A = ((A) => { A['b-c'] = 'x'; A['d'] = `y`; A["E"] = 'x' + F; A["G"] = A.E; A[A["H"] = 1 << 2] = "H"; A[A["I"] = A.H | 1] = "I"; return A })(A || {});"#,
            ),
            ("enum A {}", "var A = ((A) => { return A })(A || {});"),
            (
                "enum A { B = <number>c! } enum A { D = B }",
                r#"var A = ((A) => { A[A["B"] = c ] = "B"; return A })(A || {}); var A = ((A) => { A[A["D"] = A.B] = "D"; return A })(A || {});"#,
            ),
            (
                "class A { constructor(private a: B, readonly c?: D, e = 1, public override f: G = 2) { go(); } }",
                "class A { constructor( a , c , e = 1, f = 2) { this.a = a; this.c = c; this.f = f; go(); } }",
            ),
            (
                "class A extends B { constructor(public a: C) { go(); super(a); then(); } }",
                "class A extends B { constructor( a ) { go(); super(a); this.a = a; then(); } }",
            ),
            (
                "class A { constructor(private a: B); constructor(private a: any) {} }",
                "class A { ; constructor( a ) { this.a = a;} }",
            ),
        ];
        for (source, expected) in cases {
            let module =
                Module::parse("load.ts", source.to_owned()).unwrap_or_else(|faults| panic!("{source}: {}", faults[0]));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
            assert_eq!(words(&module.code), expected, "{source}");
        }
    }

    #[test]
    fn what_is_compiled_moves_nothing_of_the_source() {
        let source =
            "enum A { B, C = B } let größe = A.C;\nclass D { constructor(private e: A) { e.f; } } let g = e;\nlet h;";
        let module = Module::parse("load.ts", source.to_owned()).unwrap_or_else(|faults| panic!("{}", faults[0]));
        for sought in ["größe", "A.C;", "e.f;", "let g", "let h"] {
            let in_code = module.place(module.code.find(sought).expect(sought));
            let in_source = crate::fault::Place::in_text("load.ts", source, source.find(sought).expect(sought));
            assert_eq!(in_code, in_source, "{sought}");
        }
        let inserted = module.place(module.code.find("this.e").expect("it is there"));
        assert_eq!((inserted.line, inserted.column), (2, 38));
    }

    #[test]
    fn syntax_with_effects_at_run_time_is_refused_with_its_place() {
        let cases = [
            ("enum A { B = 'b', C }", "1:19: a member without a value behind a text"),
            ("namespace A { export const b = 1; }", "1:1: a namespace"),
            (
                "class A extends B { constructor(private b: number) { const x = super(); } }",
                "1:33: a parameter property of a constructor that does not call `super` in a statement of its own",
            ),
            ("@a class A {}", "1:1: a decorator"),
            ("class A { @a b() {} }", "1:11: a decorator"),
            ("import a = B.c;", "1:1: an `import … =` of a namespace"),
            ("export = a;", "1:1: an `export =`"),
        ];
        for (source, expected) in cases {
            let faults = Module::parse("load.ts", source.to_owned()).err().expect("it is refused");
            let expected = format!("load.ts:{expected} is not supported");
            assert!(faults[0].to_string().starts_with(&expected), "{source}: {}", faults[0]);
        }
    }

    #[test]
    fn a_fault_has_its_place_behind_letters_that_are_longer_than_one_byte() {
        let faults = Module::parse("load.ts", "let a: 'üüü' = 1; let a = 2;".to_owned()).err().expect("it has a fault");
        let place = faults[0].place.as_ref().expect("it has a place");
        assert_eq!((place.column, place.text.as_str()), (23, "let a: 'üüü' = 1; let a = 2;"));
    }
}
