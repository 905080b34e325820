//! The files of a report.

use crate::method::Gate;
use crate::page::top;
use crate::page::{Block, Page};
use crate::{figures, json, junit, summary, tables};
use askama::Template;
use plimsoll_analysis::{Analysis, Input};
use plimsoll_drawing::{Drawing, Surface, png, svg};

/// A file of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its path in the report's folder, with `/` between folders.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

#[derive(Template)]
#[template(path = "report.md")]
struct Markdown<'a> {
    page: &'a Page,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Html<'a> {
    page: &'a Page,
}

/// Every file of the report, in a fixed order. It speaks of the gate where that was asked for.
#[must_use]
pub fn render(input: &Input, analysis: &Analysis, gate: Gate) -> Vec<Document> {
    let page = Page::new(input, analysis, gate);
    let mut documents = vec![
        document("report.md", Markdown { page: &page }.render().expect("a string takes what is written")),
        document("report.html", Html { page: &page }.render().expect("a string takes what is written")),
        document("summary.md", summary::summary(input, analysis, gate)),
        document("junit.xml", junit::junit(input, analysis, gate)),
        document("report.json", json::json(input, analysis)),
        document("results.csv", tables::results(input, analysis)),
    ];
    if !input.plan.describes() {
        documents.push(document("comparisons.csv", tables::comparisons(input, analysis)));
    }
    documents.extend(analysis.capacity.iter().map(|_| document("capacity.csv", tables::capacity(input))));
    documents.extend(analysis.storage.iter().map(|report| document("storage.csv", tables::storage(input, report))));
    documents.extend(analysis.database.iter().map(|report| document("database.csv", tables::database(input, report))));
    if let Some(chart) = top::chart(input, analysis) {
        documents.extend(drawn("answer", &chart.title, &chart.draw()));
    }
    for figure in figures::figures(input, analysis) {
        documents.extend(drawn(&figure.name, &figure.title, &figure.draw()));
    }
    for (name, _, forest) in figures::forests(input, analysis) {
        documents.extend(drawn(&name, &forest.title, &forest.draw()));
    }
    documents
}

fn document(path: &str, text: String) -> Document {
    Document { path: path.to_owned(), bytes: text.into_bytes() }
}

fn drawn(name: &str, title: &str, drawing: &Drawing) -> [Document; 2] {
    [
        document(&format!("charts/{name}.svg"), svg(drawing, title, Surface::File)),
        Document { path: format!("charts/{name}.png"), bytes: png(drawing) },
    ]
}

/// Filters for templates.
#[expect(unreachable_pub, reason = "the attribute makes items that are `pub`")]
pub(crate) mod filters {
    use crate::text;
    use std::fmt::Display;

    /// A line of a fenced block of code in Markdown, which it cannot end.
    #[askama::filter_fn]
    pub(crate) fn fenced(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(text.to_string().replace("```", "'''").replace(char::is_control, " "))
    }

    /// A sentence in HTML, with its words between backticks as code.
    #[askama::filter_fn]
    pub(crate) fn sentence(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(text::html_with_code(&text.to_string()))
    }

    /// A number for CSS.
    #[askama::filter_fn]
    pub(crate) fn decimals(number: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(format!("{number:.2}"))
    }
}
