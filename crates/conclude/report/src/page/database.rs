//! Databases on the page: blocks from top to bottom, mostly tables.

mod best;
mod sheets;

use super::facts::{Fact, fact};
use super::{ChartView, chart_view};
use crate::{figures, text};
use plimsoll_analysis::database::DatabaseReport;
use plimsoll_analysis::{Analysis, Input, words};

/// A part of the section.
pub(crate) enum Block {
    Facts(Vec<Fact>),
    Notes(Vec<String>),
    Chart(ChartView),
    Sheet(Sheet),
}

/// A table.
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// The explanation of its content.
    pub(crate) note: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<String>>,
    /// The lines below it.
    pub(crate) below: Vec<String>,
    /// True if it is unfolded at first.
    pub(crate) open: bool,
    /// True if only the HTML page has it, because elsewhere it would be too wide or too long.
    pub(crate) page_only: bool,
}

pub(crate) struct Column {
    pub(crate) title: String,
    /// True if it contains words.
    pub(crate) words: bool,
}

impl Sheet {
    fn new(title: impl Into<String>, note: impl Into<String>, columns: Vec<Column>, rows: Vec<Vec<String>>) -> Sheet {
        let (title, note) = (title.into(), note.into());
        Sheet { title, note, columns, rows, below: Vec::new(), open: true, page_only: false }
    }

    /// Removes the columns that are empty in all rows; the first one stays.
    fn without_empty(mut self) -> Sheet {
        let says = |cell: &String| !["", "0", "–"].contains(&cell.as_str());
        let kept: Vec<bool> = (0..self.columns.len())
            .map(|column| column == 0 || self.rows.iter().any(|row| says(&row[column])))
            .collect();
        let keep = |column: &usize| kept[*column];
        self.rows =
            self.rows.iter().map(|row| (0..row.len()).filter(keep).map(|at| row[at].clone()).collect()).collect();
        self.columns = self.columns.into_iter().enumerate().filter(|(at, _)| kept[*at]).map(|(_, one)| one).collect();
        self
    }

    /// True if a narrow page shows each row as lines, because it would be too wide.
    pub(crate) fn is_wide(&self) -> bool {
        self.columns.len() > 8 || self.rows.iter().flatten().any(|cell| cell.chars().count() > 40)
    }
}

fn words_in(title: impl Into<String>) -> Column {
    Column { title: title.into(), words: true }
}

fn numbers_in(title: impl Into<String>) -> Column {
    Column { title: title.into(), words: false }
}

/// All blocks; empty where there are no databases.
pub(crate) fn blocks(input: &Input, analysis: &Analysis) -> Vec<Block> {
    let Some(report) = &analysis.database else { return Vec::new() };
    let tables = DatabaseTables { input, analysis, report };
    let servers = report.servers.iter().map(|one| fact(one.name.clone(), text::unbroken(&one.facts.join("; "))));
    let doubt = report.doubt.iter().filter(|_| !report.ahead.is_empty());
    let ahead: Vec<String> = report.ahead.iter().chain(doubt).map(|note| text::unbroken(note)).collect();
    let chart = |figure: Option<crate::chart::Figure>| figure.map(|figure| Block::Chart(chart_view(&figure)));
    let mut blocks = vec![Block::Facts(servers.collect())];
    blocks.extend(chart(figures::of_database(input, analysis, report)));
    blocks.extend((!ahead.is_empty()).then_some(Block::Notes(ahead)));
    blocks.extend(tables.best().map(Block::Sheet));
    blocks.extend(tables.limits().map(Block::Sheet));
    blocks.extend(tables.summaries().into_iter().map(Block::Sheet));
    blocks.extend(tables.latencies().into_iter().map(Block::Sheet));
    blocks.extend(tables.statements().into_iter().map(Block::Sheet));
    blocks.extend(tables.statistics().into_iter().map(Block::Sheet));
    blocks.extend(chart(figures::over_one_trial(input, analysis, report)));
    blocks.extend([tables.settings(), tables.checks(), tables.mix()].into_iter().flatten().map(Block::Sheet));
    blocks
}

/// Builds the tables.
struct DatabaseTables<'a> {
    input: &'a Input,
    analysis: &'a Analysis,
    report: &'a DatabaseReport,
}

impl DatabaseTables<'_> {
    fn variant(&self, index: usize) -> String {
        self.input.plan.label(index)
    }

    fn condition(&self, index: usize) -> String {
        words::condition_in(&self.input.plan, index)
    }

    /// The condition whose tables come first.
    fn shown(&self) -> String {
        self.condition(self.report.shown)
    }
}

fn dash() -> String {
    "–".to_owned()
}
