//! A module as it is written: its text without types, what it imports and exports and where, and its faults.
//!
//! The parser is not the engine's: that one stops at the first fault of the first file, its columns are off, and of a
//! missing module or export it tells no place at all.

use crate::access::{Name, Uses};
use crate::fault::{Fault, Place};
use crate::native::Natives;
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
    /// As it stands in its file.
    pub(crate) source: String,
    /// As the engine gets it: the same, with spaces where types were.
    pub(crate) code: String,
    pub(crate) names: Names,
}

/// What a module imports and exports.
pub(crate) struct Names {
    /// The modules it asks for, by what it calls them, with the first place where it does.
    pub(crate) requests: BTreeMap<String, usize>,
    /// Names that it wants of other modules.
    pub(crate) wants: Vec<Want>,
    /// Names that it exports itself, or hands on one by one.
    pub(crate) exports: Vec<String>,
    /// Modules of which it hands on everything, as it calls them.
    pub(crate) stars: Vec<String>,
    /// Modules that it has as a whole, in a variable.
    pub(crate) wholes: Vec<String>,
}

/// A name that a module imports.
pub(crate) struct Want {
    pub(crate) request: String,
    pub(crate) name: String,
    pub(crate) offset: usize,
}

impl Module {
    /// Reads the text of a module.
    pub(crate) fn parse(name: &str, source: String) -> Result<Self, Vec<Fault>> {
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
    /// Tells modules in Rust what is imported of them.
    pub(crate) fn note_imports(&self, natives: &mut Natives) {
        for want in &self.wants {
            natives.import(&want.request, |name| name == want.name);
        }
        for whole in self.wholes.iter().chain(&self.stars) {
            natives.import(whole, |_| true);
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
            wants: wants(record),
            exports: exports.filter_map(|entry| export_name(&entry.export_name)).collect(),
            stars: stars.filter_map(|entry| Some(entry.module_request.as_ref()?.name.to_string())).collect(),
            wholes: wholes(record),
        }
    }
}

/// Every name that is asked of another module, with its place.
fn wants(record: &ModuleRecord<'_>) -> Vec<Want> {
    let imported = record.import_entries.iter().filter_map(|entry| {
        let (name, span) = match &entry.import_name {
            ImportImportName::Name(name) => (name.name.to_string(), name.span),
            ImportImportName::Default(span) => ("default".to_owned(), *span),
            ImportImportName::NamespaceObject => return None,
        };
        Some(Want { request: entry.module_request.name.to_string(), name, offset: span.start as usize })
    });
    let handed_on = record.indirect_export_entries.iter().filter_map(|entry| {
        let ExportImportName::Name(name) = &entry.import_name else { return None };
        let request = entry.module_request.as_ref()?.name.to_string();
        Some(Want { request, name: name.name.to_string(), offset: name.span.start as usize })
    });
    imported.chain(handed_on).collect()
}

/// The modules of `import * as …` and of `export * as …`.
fn wholes(record: &ModuleRecord<'_>) -> Vec<String> {
    let imports = record.import_entries.iter().filter(|entry| entry.import_name.is_namespace_object());
    let exports = record.indirect_export_entries.iter().filter(|entry| entry.import_name.is_all());
    let exports = exports.filter_map(|entry| Some(entry.module_request.as_ref()?.name.to_string()));
    imports.map(|entry| entry.module_request.name.to_string()).chain(exports).collect()
}

/// A module's text, before and after its types went: characters stand where they stood, bytes may not.
pub(crate) struct Text<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
    pub(crate) code: &'a str,
}

impl Text<'_> {
    /// A place as the engine (0.15.1) tells it, as an offset: columns are bytes, and on the first line they count from 0.
    pub(crate) fn engine_offset(&self, line: usize, column: usize) -> Option<usize> {
        let before: usize = self.code.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
        let ahead = if line == 1 && column > 1 { column } else { column.saturating_sub(1) };
        Some(before + ahead)
    }

    /// Where a name can have been used in the function that the engine was in: none where that is not sure.
    pub(crate) fn use_of(&self, name: Name<'_>, at: usize) -> Option<usize> {
        let allocator = Allocator::default();
        let program = parse(&allocator, self.code, SourceType::mjs()).program;
        let mut uses = Uses::new(name, at, program.span);
        uses.visit_program(&program);
        uses.only()
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        let place = Place::in_text(self.name, self.code, offset);
        let text = self.source.lines().nth(place.line - 1).unwrap_or_default();
        Place { text: text.to_owned(), ..place }
    }

    /// What the module imports and exports, or what is wrong in it.
    fn names(&self) -> Result<Names, Vec<Fault>> {
        let allocator = Allocator::default();
        let parsed = parse(&allocator, self.code, SourceType::mjs());
        let faults = self.faults(&parsed);
        if faults.is_empty() { Ok(Names::of(&parsed.module_record)) } else { Err(faults) }
    }

    /// The faults of a module: those of the parser, or else those of scopes (a name declared twice) and what the
    /// engine cannot be trusted with.
    fn faults(&self, parsed: &ParserReturn<'_>) -> Vec<Fault> {
        let fault = |error: &OxcDiagnostic| self.fault(error);
        if !parsed.errors.is_empty() {
            return parsed.errors.iter().map(fault).collect();
        }
        let checked = SemanticBuilder::new().with_check_syntax_error(true).build(&parsed.program);
        let late = parsed.module_record.dynamic_imports.iter().map(|import| self.late_import(import));
        checked.errors.iter().map(fault).chain(late).collect()
    }

    /// `import()` would load a module in the middle of what is measured.
    fn late_import(&self, import: &DynamicImport) -> Fault {
        Fault {
            place: Some(self.place(import.span.start as usize)),
            message: "`import()` is not supported".to_owned(),
            help: Some("write `import … from` at the top".to_owned()),
        }
    }

    fn fault(&self, error: &OxcDiagnostic) -> Fault {
        // Of several places the last is the fault; those before it say what it collides with.
        let label = error.labels.as_ref().and_then(|labels| labels.iter().max_by_key(|label| label.offset()));
        let message = lower(&error.message);
        // Some say the same again.
        let is_new = |said: &String| !said.is_empty() && !message.contains(said.trim_end_matches(" expected"));
        let said = label.and_then(|label| label.label()).map(lower);
        let help = [error.help.as_deref().map(lower), said].into_iter().flatten().find(is_new);
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
