//! A module of a script as a text: its code without types, its imports and exports with their places, and its faults.
//!
//! A module that has no import, no export and no `await` outside of functions is one of CommonJS, as in k6.
//!
//! The parser is not the engine's, which stops at the first fault of the first file, counts columns wrongly, and gives no
//! place for a missing module or export.

use crate::access::{Name, Uses};
use crate::fault::{Fault, Place};
use crate::native::Natives;
use crate::nesting::{self, on_stack, stack_for};
use crate::scan::Scan;
use crate::typescript::{self, Inserted, Stripped};
use oxc_allocator::Allocator;
use oxc_ast::ast::{ImportDeclarationSpecifier, Program, Statement};
use oxc_ast_visit::Visit;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::module_record::{DynamicImport, ExportExportName, ExportImportName, ImportImportName, ModuleRecord};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// A module that can be compiled.
pub(crate) struct Module {
    pub(crate) name: String,
    /// The text of its file.
    pub(crate) source: String,
    /// The same as JavaScript, with spaces in place of types.
    pub(crate) code: String,
    /// What of the code is not in the source.
    inserted: Vec<Inserted>,
    pub(crate) kind: Kind,
    pub(crate) names: Names,
}

/// How a module exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By `export`.
    Ecma,
    /// By `module.exports`.
    CommonJs,
}

impl Kind {
    /// What the code of a module stands behind, on its first line, when the engine compiles it: a module of CommonJS is
    /// the body of a function, which the engine gets as the default export. It is strict code, as in k6. The function
    /// has no name, so that stacks do not show one.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Ecma => "",
            Self::CommonJs => "export default (0, function (module, exports) {",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Ecma => "",
            Self::CommonJs => "\n});",
        }
    }
}

/// What a module imports and exports.
pub(crate) struct Names {
    /// The specifiers of the modules that it imports, with the offset of the first import.
    pub(crate) requests: BTreeMap<String, usize>,
    /// The names that it imports from other modules.
    pub(crate) imports: Vec<ImportedName>,
    /// The names that it exports, re-exports included.
    pub(crate) exports: Vec<String>,
    /// The specifiers of modules that it re-exports as a whole, `export * from`, with the offset of the statement.
    pub(crate) star_exports: Vec<(String, usize)>,
    /// The modules that it holds in a variable or export: `import * as`, `export * as`.
    pub(crate) namespaces: Vec<Namespace>,
    /// The specifiers of modules that it requires whenever it is evaluated, with their offsets.
    pub(crate) required: Vec<(String, usize)>,
    /// The same of those that it may require.
    pub(crate) maybe_required: Vec<(String, usize)>,
    /// True if it calls `require`, or hands it on.
    pub(crate) uses_require: bool,
    /// True if it has an `import.meta`.
    pub(crate) uses_import_meta: bool,
    /// True if it has a `throw null`, or rejects a promise with null.
    pub(crate) throws_null: bool,
}

/// A module that is imported or exported as a whole.
pub(crate) struct Namespace {
    pub(crate) request: String,
    /// The name of its variable or export, as it is written.
    pub(crate) name: String,
    /// The place of `* as name` in the code.
    span: Span,
}

/// A name that a module imports.
pub(crate) struct ImportedName {
    pub(crate) request: String,
    pub(crate) name: String,
    pub(crate) offset: usize,
}

impl Module {
    /// Reads the text of a module.
    pub(crate) fn parse(name: &str, source: String) -> Result<Self, Vec<Fault>> {
        let text = Text::of(name, &source);
        let fault = |place, message| vec![Fault::new(place, message)];
        if let Some(offset) = nesting::too_deep(&source) {
            let message = format!("expected at most {} brackets inside one another, found more", nesting::DEEPEST);
            return Err(fault(Some(text.place(offset)), message));
        }
        match on_stack(stack_for(&source), || Self::read(name, source)) {
            Ok(read) => read,
            Err(error) => Err(fault(None, format!("`{name}` is too large to be read: {error}"))),
        }
    }

    fn read(name: &str, source: String) -> Result<Self, Vec<Fault>> {
        let Stripped { code, inserted } = if is_typescript(name) {
            strip(name, &source)?
        } else {
            Stripped { code: source.clone(), inserted: Vec::new() }
        };
        let (kind, names) = Text { code: &code, inserted: &inserted, ..Text::of(name, &source) }.names()?;
        Ok(Self { name: name.to_owned(), source, code, inserted, kind, names })
    }

    /// The text that the engine compiles. `is_common_js` says of an import whether it leads to a module of CommonJS. Such
    /// a module has no namespace before it is evaluated: its facade exports it under the name that the importing module
    /// gives to it. `import * as all from` is `import {all} from` then, in as many characters.
    pub(crate) fn engine_code(&self, is_common_js: impl Fn(&str) -> bool) -> String {
        let code = match (self.kind, self.code.strip_prefix("#!")) {
            // Inside a function, that is no syntax.
            (Kind::CommonJs, Some(rest)) => Cow::Owned(format!("//{rest}")),
            _ => Cow::Borrowed(&self.code),
        };
        let mut code = format!("{}{code}{}", self.kind.prefix(), self.kind.suffix());
        for Namespace { name, span, .. } in self.names.namespaces.iter().filter(|all| is_common_js(&all.request)) {
            let replaced = span.start as usize..span.end as usize;
            let named = format!("{{{name}}}");
            let blank = code[replaced.start..replaced.end - named.len()].chars();
            let blank: String = blank.map(|char| if char == '\n' { '\n' } else { ' ' }).collect();
            code.replace_range(replaced, &format!("{blank}{named}"));
        }
        code
    }

    /// The place of a byte of the code.
    pub(crate) fn place(&self, offset: usize) -> Place {
        self.text().place(offset)
    }

    pub(crate) fn text(&self) -> Text<'_> {
        Text { code: &self.code, inserted: &self.inserted, kind: self.kind, ..Text::of(&self.name, &self.source) }
    }
}

impl Names {
    /// Notes the imports of modules in Rust.
    pub(crate) fn note_imports(&self, natives: &mut Natives) {
        for import in &self.imports {
            natives.import(&import.request, |name| name == import.name);
        }
        let namespaces = self.namespaces.iter().map(|namespace| &namespace.request);
        for module in namespaces.chain(self.star_exports.iter().map(|(module, _)| module)) {
            natives.import(module, |_| true);
        }
    }

    fn of(program: &Program<'_>, record: &ModuleRecord<'_>, scan: Scan) -> Self {
        let requests = record.requested_modules.iter().filter_map(|(request, places)| {
            let first = places.iter().map(|place| place.span.start).min()?;
            Some((request.to_string(), first as usize))
        });
        let export_name = |name: &ExportExportName<'_>| match name {
            ExportExportName::Name(name) => Some(name.name.to_string()),
            ExportExportName::Default(_) => Some("default".to_owned()),
            ExportExportName::Null => None,
        };
        let exports = record.local_export_entries.iter().chain(&record.indirect_export_entries);
        let stars = record.star_export_entries.iter().filter_map(|entry| {
            Some((entry.module_request.as_ref()?.name.to_string(), entry.statement_span.start as usize))
        });
        Self {
            requests: requests.collect(),
            imports: imports(record),
            exports: exports.filter_map(|entry| export_name(&entry.export_name)).collect(),
            star_exports: stars.collect(),
            namespaces: namespaces(program),
            required: scan.required,
            maybe_required: scan.maybe_required,
            uses_require: scan.uses_require,
            uses_import_meta: scan.uses_import_meta,
            throws_null: scan.throws_null,
        }
    }
}

/// All names that are imported from other modules, with their offsets.
fn imports(record: &ModuleRecord<'_>) -> Vec<ImportedName> {
    let imported = record.import_entries.iter().filter_map(|entry| {
        let (name, span) = match &entry.import_name {
            ImportImportName::Name(name) => (name.name.to_string(), name.span),
            ImportImportName::Default(span) => ("default".to_owned(), *span),
            ImportImportName::NamespaceObject => return None,
        };
        Some(ImportedName { request: entry.module_request.name.to_string(), name, offset: span.start as usize })
    });
    let re_exported = record.indirect_export_entries.iter().filter_map(|entry| {
        let ExportImportName::Name(name) = &entry.import_name else { return None };
        let request = entry.module_request.as_ref()?.name.to_string();
        Some(ImportedName { request, name: name.name.to_string(), offset: name.span.start as usize })
    });
    imported.chain(re_exported).collect()
}

/// The modules of `import * as …` and of `export * as …`.
fn namespaces(program: &Program<'_>) -> Vec<Namespace> {
    let mut found = Vec::new();
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(import) => {
                for specifier in import.specifiers.iter().flatten() {
                    if let ImportDeclarationSpecifier::ImportNamespaceSpecifier(all) = specifier {
                        let request = import.source.value.to_string();
                        found.push(Namespace { request, name: all.local.name.to_string(), span: all.span });
                    }
                }
            }
            Statement::ExportAllDeclaration(export) => {
                if let Some(exported) = &export.exported {
                    let start = export.span.start + "export".len() as u32;
                    let (request, span) = (export.source.value.to_string(), Span::new(start, exported.span().end));
                    found.push(Namespace {
                        request,
                        name: exported.span().source_text(program.source_text).to_owned(),
                        span,
                    });
                }
            }
            _ => {}
        }
    }
    found
}

/// The text of a module with and without types. Characters keep their line and column, bytes may not keep their offset.
pub(crate) struct Text<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
    pub(crate) code: &'a str,
    inserted: &'a [Inserted],
    pub(crate) kind: Kind,
}

impl<'a> Text<'a> {
    /// A text without types.
    fn of(name: &'a str, source: &'a str) -> Self {
        Self { name, source, code: source, inserted: &[], kind: Kind::Ecma }
    }

    /// The offset of a place of the engine (0.15.1), whose columns are bytes, counted from 0 on the first line.
    pub(crate) fn engine_offset(&self, line: usize, column: usize) -> Option<usize> {
        let before: usize = self.code.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
        let ahead = if line == 1 && column > 1 { column } else { column.saturating_sub(1) };
        let prefix = if line == 1 { self.kind.prefix().len() } else { 0 };
        Some(before + ahead.saturating_sub(prefix))
    }

    /// The offset at which a name was used in the function around the engine's place; none if there are several.
    pub(crate) fn use_of(&self, name: Name<'_>, at: usize) -> Option<usize> {
        let find = || {
            let allocator = Allocator::default();
            let program = parse(&allocator, self.code, SourceType::mjs(), self.kind).program;
            let mut uses = Uses::new(name, at, program.span);
            uses.visit_program(&program);
            uses.only()
        };
        on_stack(stack_for(self.code), find).ok().flatten()
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        let place = Place::in_text(self.name, self.code, offset);
        let text = self.source.lines().nth(place.line - 1).unwrap_or_default();
        Place { text: text.to_owned(), column: place.column - self.inserted_before(offset), ..place }
    }

    /// How many characters of the line before an offset of the code are not in the source.
    fn inserted_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.code.len());
        let line = self.code.as_bytes()[..offset].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let before = self.inserted.iter().filter(|piece| (line..offset).contains(&piece.at));
        let texts = before.filter_map(|piece| self.code.get(piece.at..(piece.at + piece.length).min(offset)));
        texts.map(|text| text.chars().count()).sum()
    }

    /// The kind of the module with its imports and exports, or its faults.
    fn names(&self) -> Result<(Kind, Names), Vec<Fault>> {
        let allocator = Allocator::default();
        let parsed = parse(&allocator, self.code, SourceType::mjs(), Kind::Ecma);
        if parsed.errors.is_empty() {
            return self.checked(&parsed);
        }
        // Only a `return` outside of functions is syntax of CommonJS alone.
        let again = parse(&allocator, self.code, SourceType::mjs(), Kind::CommonJs);
        match self.checked(&again) {
            Ok((Kind::CommonJs, names)) if again.errors.is_empty() => Ok((Kind::CommonJs, names)),
            _ => Err(parsed.errors.iter().map(|error| self.fault(error)).collect()),
        }
    }

    /// The same, of what the parser found no fault in. What remains are those of scopes (a name declared twice) and
    /// `import()`.
    fn checked(&self, parsed: &ParserReturn<'_>) -> Result<(Kind, Names), Vec<Fault>> {
        let checked = SemanticBuilder::new().with_check_syntax_error(true).build(&parsed.program);
        let dynamic = parsed.module_record.dynamic_imports.iter().map(|import| self.dynamic_import(import));
        let faults: Vec<Fault> = checked.errors.iter().map(|error| self.fault(error)).chain(dynamic).collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let scan = Scan::of(&parsed.program);
        let is_ecma = parsed.module_record.has_module_syntax || scan.awaits;
        let kind = if is_ecma { Kind::Ecma } else { Kind::CommonJs };
        Ok((kind, Names::of(&parsed.program, &parsed.module_record, scan)))
    }

    /// The fault of `import()`, which would load a module in the middle of a measurement.
    fn dynamic_import(&self, import: &DynamicImport) -> Fault {
        let place = self.place(import.span.start as usize);
        let help = Some("write `import … from` at the top".to_owned());
        Fault { help, ..Fault::new(Some(place), "`import()` is not supported".to_owned()) }
    }

    fn fault(&self, error: &OxcDiagnostic) -> Fault {
        // Of several places the last one is the fault; the others are what it collides with.
        let label = error.labels.as_ref().and_then(|labels| labels.iter().max_by_key(|label| label.offset()));
        let message = lower(&error.message);
        // Some texts repeat the message.
        let is_new = |text: &String| !text.is_empty() && !message.contains(text.trim_end_matches(" expected"));
        let text = label.and_then(|label| label.label()).map(lower);
        let help = [error.help.as_deref().map(lower), text].into_iter().flatten().find(is_new);
        Fault { help, ..Fault::new(label.map(|label| self.place(label.offset())), message) }
    }
}

fn is_typescript(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "ts" || extension == "mts")
}

/// The text of a TypeScript module as JavaScript.
fn strip(name: &str, source: &str) -> Result<Stripped, Vec<Fault>> {
    let allocator = Allocator::default();
    let text = Text::of(name, source);
    let parsed = parse(&allocator, source, SourceType::ts(), Kind::CommonJs);
    if !parsed.errors.is_empty() {
        return Err(parsed.errors.iter().map(|error| text.fault(error)).collect());
    }
    typescript::strip(&parsed.program).map_err(|refused| {
        let faults = refused.iter().map(|refused| Fault {
            help: Some(refused.instead.to_owned()),
            ..Fault::new(Some(text.place(refused.offset)), format!("{} is not supported", refused.what))
        });
        faults.collect()
    })
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str, language: SourceType, kind: Kind) -> ParserReturn<'a> {
    let options = ParseOptions {
        parse_regular_expression: true,
        allow_return_outside_function: kind == Kind::CommonJs,
        ..ParseOptions::default()
    };
    Parser::new(allocator, source, language).with_options(options).parse()
}

/// A sentence as the fragment that follows a place: `Unexpected token.` is `unexpected token`.
fn lower(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
