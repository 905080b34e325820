//! Diagnostics: what is wrong in a study file, where, and what to write instead.

use super::redact::masked;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A place in the study's text, in bytes.
pub type Span = Range<usize>;

/// Whether a study can be run in spite of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can, but its author should know.
    Warning,
    /// It cannot.
    Error,
}

/// How a diagnostic is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without colours, for files and pipes.
    Plain,
    /// With colours, for a terminal.
    Coloured,
}

/// One thing that is wrong, or doubtful, in a study file.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Whether the study can be run all the same.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What stands at the place, in few words; drawn under it.
    pub label: Option<String>,
    /// What to write instead.
    pub help: Option<String>,
    /// The file, as its reader named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The place in the text.
    pub span: Span,
    source: Arc<NamedSource<String>>,
}

impl Diagnostic {
    /// The diagnostic with a pointer into the text, several lines long.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let theme = match style {
            Style::Plain => GraphicalTheme::unicode_nocolor(),
            Style::Coloured => GraphicalTheme::unicode(),
        };
        let mut drawn = String::new();
        let drawer = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
        match drawer.render_report(&mut drawn, &Drawing(self)) {
            Ok(()) => drawn,
            Err(fmt::Error) => format!("{self}\n"),
        }
    }
}

/// All diagnostics, drawn one under the other.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], style: Style) -> String {
    let drawn: Vec<String> = diagnostics.iter().map(|diagnostic| diagnostic.render(style)).collect();
    drawn.join("\n")
}

impl fmt::Display for Diagnostic {
    /// One line: `study.toml:3:7: error: …; help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{}:{}:{}: {severity}: {}", self.file, self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// A diagnostic as it is drawn: place and help stand apart from the message.
#[derive(Debug)]
struct Drawing<'a>(&'a Diagnostic);

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Drawing<'_> {}

impl miette::Diagnostic for Drawing<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.0.severity {
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display + 'a>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.0.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(self.0.label.clone(), self.0.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// The study's text as it is shown, which knows its lines.
#[derive(Clone, Debug)]
pub(crate) struct Source(Arc<NamedSource<String>>);

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Source {
        Source(Arc::new(NamedSource::new(name, masked(text))))
    }

    pub(crate) fn text(&self) -> &str {
        self.0.inner()
    }

    pub(crate) fn diagnostic(&self, fault: Fault) -> Diagnostic {
        let (line, column) = self.position(fault.span.start);
        Diagnostic {
            severity: fault.severity,
            message: masked(&fault.message),
            label: fault.label.map(|label| masked(&label)),
            help: fault.help,
            file: self.0.name().to_owned(),
            line,
            column,
            span: fault.span,
            source: Arc::clone(&self.0),
        }
    }

    /// Line and column of a byte, both from 1.
    fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text().get(..at).unwrap_or(self.text());
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// A diagnostic that does not know its text yet.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) severity: Severity,
    pub(crate) span: Span,
    pub(crate) message: String,
    label: Option<String>,
    help: Option<String>,
}

impl Fault {
    pub(crate) fn error(span: &Span, message: impl Into<String>) -> Fault {
        Fault { severity: Severity::Error, span: span.clone(), message: message.into(), label: None, help: None }
    }

    pub(crate) fn warning(span: &Span, message: impl Into<String>) -> Fault {
        Fault { severity: Severity::Warning, ..Fault::error(span, message) }
    }

    pub(crate) fn label(self, label: impl Into<String>) -> Fault {
        Fault { label: Some(label.into()), ..self }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Fault {
        Fault { help: Some(help.into()), ..self }
    }

    /// Help that may be missing.
    pub(crate) fn maybe_help(self, help: Option<String>) -> Fault {
        Fault { help, ..self }
    }
}
