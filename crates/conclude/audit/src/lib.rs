//! Audits a published table of results: from a blog post, a release report, or the README of a
//! benchmark.
//!
//! A table is CSV whose columns are known by their names; `docs/audit.md` describes it. The steps
//! are: text to rows, with all faults at once; rows to comparisons; both to findings, by lints that
//! each have a file of their own. Everything is a pure function of the text.
//!
//! ```
//! let table = "metric,baseline,value,improvement\nCPU,13%,20%,+54%\n";
//! let audit = plimsoll_audit::audit(table).expect("a sound table");
//! assert_eq!(audit.findings[0].topic, "wrong direction");
//! ```

mod cell;
mod column;
mod compare;
mod direction;
mod fault;
mod finding;
mod json;
mod lint;
mod locust;
mod quantity;
mod quote;
mod row;
mod summary;
mod table;
mod terminal;
mod unit;

pub use fault::Fault;
pub use finding::{Evidence, Finding};
pub use json::json;
pub use plimsoll_analysis::finding::Severity;
pub use terminal::terminal;

/// The result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// The sources of the numbers, from the table's `# source:` lines.
    pub sources: Vec<String>,
    /// Number of rows.
    pub rows: usize,
    /// Number of comparisons.
    pub comparisons: usize,
    /// The findings, the most severe first.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Number of findings of this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Audits a table.
///
/// # Errors
///
/// Every fault that keeps the table from being read, by line.
pub fn audit(text: &str) -> Result<Audit, Vec<Fault>> {
    let table = table::read(text)?;
    let mut findings = lint::findings(&table.rows);
    let comparisons = compare::comparisons(&table.rows).len();
    findings.extend(likely_typos(&table));
    findings.extend(nothing_compared(&table, comparisons));
    Ok(Audit { sources: table.sources, rows: table.rows.len(), comparisons, findings })
}

/// A finding about a table that compares nothing: it may have unusual headings for variants.
fn nothing_compared(table: &table::Table, comparisons: usize) -> Option<Finding> {
    if comparisons > 0 || table.rows.len() < 2 {
        return None;
    }
    let labels = table.rows.first().map(|row| row.labels.as_slice()).unwrap_or_default();
    let evidence = labels.iter().map(|(heading, text)| {
        let what = if quantity::quantity(text).is_ok() { "holds numbers" } else { "names rows" };
        Evidence { lines: Vec::new(), text: format!("the column `{heading}` is not known and {what}") }
    });
    Some(Finding {
        severity: Severity::Note,
        topic: "nothing compared",
        sentence: "Nothing in the table is compared with anything else, so no claim or difference could be checked."
            .to_owned(),
        evidence: evidence.collect(),
        advice: "Name what is compared: a row for each in a column `variant`, or the two numbers in `baseline` and `value`.",
    })
}

/// A finding about unknown columns that look like typos; other unknown columns are labels.
fn likely_typos(table: &table::Table) -> Option<Finding> {
    let evidence: Vec<Evidence> = table
        .likely_typos
        .iter()
        .map(|(line, heading, near)| Evidence::new([*line], format!("`{heading}`: did you mean `{near}`?")))
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "unknown name",
        sentence: "A name is not known: as a heading it is taken for a label of rows, in a comment it is left alone."
            .to_owned(),
        evidence,
        advice: "Correct the name if it was meant as a known column.",
    })
}
