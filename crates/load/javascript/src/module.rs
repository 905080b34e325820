//! A module of a script as a text: its code without types, its imports and exports with their places, and its faults.
//!
//! The parser is not the engine's, which stops at the first fault of the first file, counts columns wrongly, and gives no
//! place for a missing module or export.

use crate::access::{Name, Uses};
use crate::fault::{Fault, Place};
use crate::native::Natives;
use crate::nesting::{self, on_stack, stack_for};
use crate::typescript;
use oxc_allocator::Allocator;
use oxc_ast_visit::Visit;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_syntax::module_record::{DynamicImport, ExportExportName, ExportImportName, ImportImportName, ModuleRecord};
use std::collections::BTreeMap;
use std::path::Path;

/// A module that can be compiled.
pub(crate) struct Module {
    pub(crate) name: String,
    /// The text of its file.
    pub(crate) source: String,
    /// The text for the engine: the same, with spaces in place of types.
    pub(crate) code: String,
    pub(crate) names: Names,
}

/// What a module imports and exports.
pub(crate) struct Names {
    /// The specifiers of the modules that it imports, with the offset of the first import.
    pub(crate) requests: BTreeMap<String, usize>,
    /// The names that it imports from other modules.
    pub(crate) imports: Vec<ImportedName>,
    /// The names that it exports, re-exports included.
    pub(crate) exports: Vec<String>,
    /// The specifiers of modules that it re-exports as a whole: `export * from`.
    pub(crate) star_exports: Vec<String>,
    /// The specifiers of modules that it holds in a variable: `import * as`.
    pub(crate) namespaces: Vec<String>,
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
        let text = Text { name, source: &source, code: &source };
        let fault = |place, message| vec![Fault { place, message, help: None }];
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
        let code = if is_typescript(name) { strip(name, &source)? } else { source.clone() };
        let names = Text { name, source: &source, code: &code }.names()?;
        Ok(Self { name: name.to_owned(), source, code, names })
    }

    /// The place of a byte of the code.
    pub(crate) fn place(&self, offset: usize) -> Place {
        self.text().place(offset)
    }

    pub(crate) fn text(&self) -> Text<'_> {
        Text { name: &self.name, source: &self.source, code: &self.code }
    }
}

impl Names {
    /// Notes the imports of modules in Rust.
    pub(crate) fn note_imports(&self, natives: &mut Natives) {
        for import in &self.imports {
            natives.import(&import.request, |name| name == import.name);
        }
        for module in self.namespaces.iter().chain(&self.star_exports) {
            natives.import(module, |_| true);
        }
    }

    fn of(record: &ModuleRecord<'_>) -> Self {
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
        let stars = record.star_export_entries.iter();
        Self {
            requests: requests.collect(),
            imports: imports(record),
            exports: exports.filter_map(|entry| export_name(&entry.export_name)).collect(),
            star_exports: stars.filter_map(|entry| Some(entry.module_request.as_ref()?.name.to_string())).collect(),
            namespaces: namespaces(record),
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
fn namespaces(record: &ModuleRecord<'_>) -> Vec<String> {
    let imports = record.import_entries.iter().filter(|entry| entry.import_name.is_namespace_object());
    let exports = record.indirect_export_entries.iter().filter(|entry| entry.import_name.is_all());
    let exports = exports.filter_map(|entry| Some(entry.module_request.as_ref()?.name.to_string()));
    imports.map(|entry| entry.module_request.name.to_string()).chain(exports).collect()
}

/// The text of a module with and without types. Characters keep their line and column, bytes may not keep their offset.
pub(crate) struct Text<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
    pub(crate) code: &'a str,
}

impl Text<'_> {
    /// The offset of a place of the engine (0.15.1), whose columns are bytes, counted from 0 on the first line.
    pub(crate) fn engine_offset(&self, line: usize, column: usize) -> Option<usize> {
        let before: usize = self.code.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
        let ahead = if line == 1 && column > 1 { column } else { column.saturating_sub(1) };
        Some(before + ahead)
    }

    /// The offset at which a name was used in the function around the engine's place; none if there are several.
    pub(crate) fn use_of(&self, name: Name<'_>, at: usize) -> Option<usize> {
        let find = || {
            let allocator = Allocator::default();
            let program = parse(&allocator, self.code, SourceType::mjs()).program;
            let mut uses = Uses::new(name, at, program.span);
            uses.visit_program(&program);
            uses.only()
        };
        on_stack(stack_for(self.code), find).ok().flatten()
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        let place = Place::in_text(self.name, self.code, offset);
        let text = self.source.lines().nth(place.line - 1).unwrap_or_default();
        Place { text: text.to_owned(), ..place }
    }

    /// The imports and exports of the module, or its faults.
    fn names(&self) -> Result<Names, Vec<Fault>> {
        let allocator = Allocator::default();
        let parsed = parse(&allocator, self.code, SourceType::mjs());
        let faults = self.faults(&parsed);
        if faults.is_empty() { Ok(Names::of(&parsed.module_record)) } else { Err(faults) }
    }

    /// The faults of a module: those of the parser, or else those of scopes (a name declared twice) and of `import()`.
    fn faults(&self, parsed: &ParserReturn<'_>) -> Vec<Fault> {
        let fault = |error: &OxcDiagnostic| self.fault(error);
        if !parsed.errors.is_empty() {
            return parsed.errors.iter().map(fault).collect();
        }
        let checked = SemanticBuilder::new().with_check_syntax_error(true).build(&parsed.program);
        let dynamic = parsed.module_record.dynamic_imports.iter().map(|import| self.dynamic_import(import));
        checked.errors.iter().map(fault).chain(dynamic).collect()
    }

    /// The fault of `import()`, which would load a module in the middle of a measurement.
    fn dynamic_import(&self, import: &DynamicImport) -> Fault {
        Fault {
            place: Some(self.place(import.span.start as usize)),
            message: "`import()` is not supported".to_owned(),
            help: Some("write `import … from` at the top".to_owned()),
        }
    }

    fn fault(&self, error: &OxcDiagnostic) -> Fault {
        // Of several places the last one is the fault; the others are what it collides with.
        let label = error.labels.as_ref().and_then(|labels| labels.iter().max_by_key(|label| label.offset()));
        let message = lower(&error.message);
        // Some texts repeat the message.
        let is_new = |text: &String| !text.is_empty() && !message.contains(text.trim_end_matches(" expected"));
        let text = label.and_then(|label| label.label()).map(lower);
        let help = [error.help.as_deref().map(lower), text].into_iter().flatten().find(is_new);
        Fault { place: label.map(|label| self.place(label.offset())), message, help }
    }
}

fn is_typescript(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "ts" || extension == "mts")
}

/// The text of a TypeScript module as JavaScript.
fn strip(name: &str, source: &str) -> Result<String, Vec<Fault>> {
    let allocator = Allocator::default();
    let text = Text { name, source, code: source };
    let parsed = parse(&allocator, source, SourceType::ts());
    if !parsed.errors.is_empty() {
        return Err(parsed.errors.iter().map(|error| text.fault(error)).collect());
    }
    typescript::strip(&parsed.program).map_err(|refused| {
        let faults = refused.iter().map(|refused| Fault {
            place: Some(text.place(refused.offset)),
            message: format!("{} cannot be run: types are stripped, not compiled", refused.what),
            help: Some(refused.instead.to_owned()),
        });
        faults.collect()
    })
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str, kind: SourceType) -> ParserReturn<'a> {
    let options = ParseOptions { parse_regular_expression: true, ..ParseOptions::default() };
    Parser::new(allocator, source, kind).with_options(options).parse()
}

/// A sentence as the fragment that follows a place: `Unexpected token.` is `unexpected token`.
fn lower(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
