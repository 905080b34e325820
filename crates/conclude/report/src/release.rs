//! The report of a release, in the form in which teams publish them: comments, action items, setup, supported users, and for
//! each case graphs with all versions in one and tables sorted by change. It is drafted from one bundle or several of the same
//! release, as of bounded and of unbounded load; what people wrote in the study file stands first.

mod action_items;
mod comments;
mod graphs;
mod outside;
mod setup;
mod tables;
mod users;

use crate::documents::filters;
use crate::figures;
use crate::page::ChartView;
use crate::page::facts::Fact;
use crate::text::{self, Names};
use crate::{Document, tables as csv};
use askama::Template;
use graphs::Graph;
pub use outside::release_of_outside;
use plimsoll_analysis::{Analysis, Input, distinct, words};
use tables::ChangeTable;
use users::SupportedUsers;

/// The begin of the title of each such report, by which a folder is known to have one.
pub const TITLE: &str = "Performance comparison";

/// A bundle of the release, with its analysis.
#[derive(Debug)]
pub struct Part {
    /// The contents of the bundle.
    pub input: Input,
    /// What follows from them.
    pub analysis: Analysis,
    /// The version of Plimsoll that wrote it.
    pub plimsoll: String,
}

/// Why bundles do not make one release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRelease {
    /// A bundle compares nothing.
    #[error("`{0}` compares nothing, and a release is compared with another one: give a factor `compare = true`")]
    NothingCompared(String),
    /// Bundles compare different variants.
    #[error("bundles of one release compare the same variants; found {first} in one and {other} in another")]
    OtherVariants {
        /// The variants of the first bundle.
        first: String,
        /// The variants of another bundle.
        other: String,
    },
}

/// The report of the release that these bundles are of, in a fixed order: `README.md`, `index.html`, graphs, and their data.
///
/// # Errors
/// Why they do not make one.
pub fn release(parts: &[Part]) -> Result<Vec<Document>, NoRelease> {
    check(parts)?;
    let cases = cases(parts);
    let graphs = graphs::with_names_of_their_own(cases.iter().map(graphs::of_case).collect(), &[]);
    let page = ReleasePage::new(parts, &cases, &graphs);
    let mut documents = page.documents();
    documents.extend(results(parts));
    documents.extend(graphs.iter().flatten().flat_map(Graph::documents));
    Ok(documents)
}

fn check(parts: &[Part]) -> Result<(), NoRelease> {
    let variants = |part: &Part| figures::variants(&part.input).join(", ");
    if let Some(part) = parts.iter().find(|part| part.input.plan.describes()) {
        return Err(NoRelease::NothingCompared(part.input.facts.title.clone()));
    }
    let first = parts.first().map(variants).unwrap_or_default();
    match parts.iter().map(variants).find(|of| *of != first) {
        Some(other) => Err(NoRelease::OtherVariants { first, other }),
        None => Ok(()),
    }
}

/// A condition of a bundle.
pub(crate) struct Case<'a> {
    part: &'a Part,
    condition: usize,
    /// `Bounded, engine = postgresql, 200 users`.
    title: String,
}

/// True if the number of users was not given: it was searched for, or a control loop changed it.
fn is_unbounded(part: &Part) -> bool {
    part.input.plan.searches() || part.analysis.feedback.is_some()
}

/// The names of the bundles: `Bounded` or `Unbounded`, whether their load was given or searched for; numbered where several are
/// the same.
fn names(parts: &[Part]) -> Vec<String> {
    let kind = |part: &Part| if is_unbounded(part) { "Unbounded" } else { "Bounded" };
    let same = |parts: &[Part], of: &Part| parts.iter().filter(|other| kind(other) == kind(of)).count();
    let name = |(place, part): (usize, &Part)| match same(parts, part) {
        1 => kind(part).to_owned(),
        _ => format!("{} {}", kind(part), same(&parts[..=place], part)),
    };
    parts.iter().enumerate().map(name).collect()
}

fn cases(parts: &[Part]) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for (part, name) in parts.iter().zip(names(parts)) {
        let plan = &part.input.plan;
        for (condition, levels) in plan.conditions.iter().enumerate() {
            let levels = if levels.0.is_empty() { String::new() } else { format!(", {}", words::condition(levels)) };
            cases.push(Case { part, condition, title: format!("{name}{levels}") });
        }
    }
    cases
}

/// The content of the report as texts: the one source of both templates.
struct ReleasePage {
    title: String,
    /// The sentences of people, then those that are drafted.
    comments: Vec<String>,
    drafted: Vec<String>,
    action_items: Vec<String>,
    drafted_items: Vec<String>,
    setup: Vec<Fact>,
    users: Option<SupportedUsers>,
    cases: Vec<CaseView>,
    /// What cannot be concluded from results of other tools.
    cannot: Vec<String>,
}

struct CaseView {
    title: String,
    /// The place of the case in the document, for links.
    anchor: String,
    graphs: Vec<ChartView>,
    /// The meaning of their lines and dots.
    marks: String,
    tables: Vec<ChangeTable>,
    /// Names that not all versions expose.
    only: Vec<String>,
}

#[derive(Template)]
#[template(path = "release.md")]
struct Markdown<'a> {
    page: &'a ReleasePage,
}

#[derive(Template)]
#[template(path = "release.html")]
struct Html<'a> {
    page: &'a ReleasePage,
}

impl ReleasePage {
    fn new(parts: &[Part], cases: &[Case<'_>], graphs: &[Vec<Graph>]) -> ReleasePage {
        let variants = cases.first().map(|case| figures::variants(&case.part.input)).unwrap_or_default();
        let (baseline, others) = variants.split_first().expect("a plan has a variant");
        let mut anchors = Names::default();
        let view = |(case, graphs): (&Case<'_>, &Vec<Graph>)| CaseView {
            title: case.title.clone(),
            anchor: anchors.of_its_own(&text::slug(&case.title)),
            graphs: graphs.iter().map(Graph::view).collect(),
            marks: figures::marks_of_release(&case.part.analysis),
            tables: tables::of_case(case),
            only: tables::only_in_some(case).into_iter().map(|only| only.line).collect(),
        };
        let written = |part: &Part| part.input.facts.report.comments.clone();
        let paragraphs = |text: String| text.split("\n\n").map(|one| one.trim().to_owned()).collect::<Vec<String>>();
        let items = parts.iter().flat_map(|part| part.input.facts.report.action_items.clone());
        ReleasePage {
            title: format!("{TITLE}: {} against {baseline}", others.join(", ")),
            comments: distinct(parts.iter().filter_map(written).flat_map(paragraphs)),
            drafted: comments::comments(parts, cases),
            action_items: distinct(items),
            drafted_items: action_items::action_items(parts, cases),
            setup: setup::setup(parts),
            users: users::supported_users(parts),
            cases: cases.iter().zip(graphs).map(view).collect(),
            cannot: Vec::new(),
        }
    }

    fn documents(&self) -> Vec<Document> {
        vec![
            document("README.md", Markdown { page: self }.render().expect("a string takes what is written")),
            document("index.html", Html { page: self }.render().expect("a string takes what is written")),
        ]
    }
}

/// The values of each start and the comparisons of each bundle.
fn results(parts: &[Part]) -> impl Iterator<Item = Document> {
    parts.iter().enumerate().flat_map(|(place, part)| {
        let name = if parts.len() == 1 { String::new() } else { format!("-{}", place + 1) };
        [
            document(&format!("data/results{name}.csv"), csv::results(&part.input, &part.analysis)),
            document(&format!("data/comparisons{name}.csv"), csv::comparisons(&part.input, &part.analysis)),
        ]
    })
}

fn document(path: &str, text: String) -> Document {
    Document { path: path.to_owned(), bytes: text.into_bytes() }
}
