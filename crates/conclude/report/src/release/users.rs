//! The table of supported users: what each version carries in the searches for its capacity, or by a control loop.

use super::Part;
use crate::page::capacity::{found, limited_by};
use crate::{figures, text};
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport};
use plimsoll_analysis::feedback::{self, FeedbackReport, FeedbackRow};
use plimsoll_analysis::quantity::show;
use plimsoll_analysis::words;
use plimsoll_model::measure::{Measure, Unit};

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

/// None where no bundle searched for a capacity, by loads of their own or by a control loop.
pub(super) fn supported_users(parts: &[Part]) -> Option<SupportedUsers> {
    let searches = || parts.iter().filter_map(|part| Some((part, part.analysis.capacity.as_ref()?)));
    let loops = || parts.iter().filter_map(|part| Some((part, part.analysis.feedback.as_ref()?)));
    let of_loops = loops().next().map(|(part, _)| (part, "users"));
    let (first, noun) = searches().next().map(|(part, report)| (part, report.noun())).or(of_loops)?;
    let rows = searches().flat_map(|(part, report)| rows(part, report));
    Some(SupportedUsers {
        noun,
        variants: figures::variants(&first.input),
        rows: rows.chain(loops().flat_map(|(part, report)| rows_of_loops(part, report))).collect(),
    })
}

/// The rows of a control loop, each with its name: its users are not those of a search.
fn rows_of_loops(part: &Part, report: &FeedbackReport) -> Vec<UsersRow> {
    let row = |condition: usize| {
        let variants = 0..figures::variants(&part.input).len();
        let of = |variant: usize| -> Vec<&FeedbackRow> {
            report.rows.iter().filter(|row| (row.condition, row.variant) == (condition, variant)).collect()
        };
        let carried = |variant: usize| {
            let estimate = part.analysis.estimate(condition, variant, &report.measure);
            let Some(summary) = estimate.and_then(|one| one.summary.as_ref().ok()) else { return "–".to_owned() };
            let users = |users: f64| show(users, Unit::Count);
            match estimate.and_then(|one| one.interval.as_ref().ok()) {
                Some(interval) => {
                    format!("{} ({} … {})", users(summary.centre), users(interval.low), users(interval.high))
                }
                None => format!("{} (n = {})", users(summary.centre), summary.n),
            }
        };
        let limits = |variant: usize| feedback::limited_by(&of(variant)).unwrap_or_else(|| "no limit".to_owned());
        UsersRow {
            condition: format!("{} (control loop)", words::condition_in(&part.input.plan, condition)),
            carried: variants.clone().map(carried).collect(),
            changes: variants.clone().skip(1).map(|one| change(part, &report.measure, (condition, one))).collect(),
            limits: variants.map(limits).collect(),
        }
    };
    (0..part.input.plan.conditions.len()).map(row).collect()
}

fn rows(part: &Part, report: &CapacityReport) -> Vec<UsersRow> {
    let row = |condition: usize| {
        let cells = || report.cells.iter().filter(move |cell| cell.condition == condition);
        let carried = |cell: &CapacityCell| {
            let (found, interval) = found(&cell.found, &report.measure);
            if interval.is_empty() { found } else { format!("{found} ({interval})") }
        };
        let changes =
            (1..part.input.plan.variants.len()).map(|variant| change(part, &report.measure, (condition, variant)));
        UsersRow {
            condition: words::condition_in(&part.input.plan, condition),
            carried: cells().map(carried).collect(),
            changes: changes.collect(),
            limits: cells().map(limited_by).collect(),
        }
    };
    (0..part.input.plan.conditions.len()).map(row).collect()
}

fn change(part: &Part, measure: &Measure, (condition, variant): (usize, usize)) -> [String; 2] {
    let Some(one) = part.analysis.comparison(condition, variant, measure) else {
        return ["–".to_owned(), String::new()];
    };
    let notation = one.notation();
    let verdict = one.verdict.as_ref().map(|verdict| verdict.outcome.to_string()).unwrap_or_default();
    match one.change(notation) {
        Ok(change) => [format!("{change} ({})", text::interval(one, notation)), verdict],
        Err(_) => ["–".to_owned(), verdict],
    }
}
