//! The table of supported users: what each version carries in the searches for its capacity.

use super::Part;
use crate::page::capacity::{found, limited_by};
use crate::{figures, text};
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport};
use plimsoll_analysis::words;

pub(super) struct SupportedUsers {
    /// The noun for loads: `users`.
    pub(super) noun: &'static str,
    /// The names of the versions, the baseline first.
    pub(super) variants: Vec<String>,
    pub(super) rows: Vec<UsersRow>,
}

/// What the versions carry under a condition.
pub(super) struct UsersRow {
    pub(super) condition: String,
    /// For each version: how many, with the interval.
    pub(super) carried: Vec<String>,
    /// For each version but the baseline: the change with its interval, and the verdict.
    pub(super) changes: Vec<[String; 2]>,
    /// For each version: what limited it.
    pub(super) limits: Vec<String>,
}

/// None where no bundle searched for a capacity.
pub(super) fn supported_users(parts: &[Part]) -> Option<SupportedUsers> {
    let searches = || parts.iter().filter_map(|part| Some((part, part.analysis.capacity.as_ref()?)));
    let (first, report) = searches().next()?;
    Some(SupportedUsers {
        noun: report.noun(),
        variants: figures::variants(&first.input),
        rows: searches().flat_map(|(part, report)| rows(part, report)).collect(),
    })
}

fn rows(part: &Part, report: &CapacityReport) -> Vec<UsersRow> {
    let row = |condition: usize| {
        let cells = || report.cells.iter().filter(move |cell| cell.condition == condition);
        let carried = |cell: &CapacityCell| {
            let (found, interval) = found(&cell.found, &report.measure);
            if interval.is_empty() { found } else { format!("{found} ({interval})") }
        };
        let changes = (1..part.input.plan.variants.len()).map(|variant| change(part, report, (condition, variant)));
        UsersRow {
            condition: words::condition_in(&part.input.plan, condition),
            carried: cells().map(carried).collect(),
            changes: changes.collect(),
            limits: cells().map(limited_by).collect(),
        }
    };
    (0..part.input.plan.conditions.len()).map(row).collect()
}

fn change(part: &Part, report: &CapacityReport, (condition, variant): (usize, usize)) -> [String; 2] {
    let Some(one) = part.analysis.comparison(condition, variant, &report.measure) else {
        return ["–".to_owned(), String::new()];
    };
    let notation = one.notation();
    let verdict = one.verdict.as_ref().map(|verdict| verdict.outcome.to_string()).unwrap_or_default();
    match one.change(notation) {
        Ok(change) => [format!("{change} ({})", text::interval(one, notation)), verdict],
        Err(_) => ["–".to_owned(), verdict],
    }
}
