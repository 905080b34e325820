//! The change of the baseline between two runs, where no known difference explains it.

use super::answer::sizes;
use super::rows::RunPair;
use super::{Basis, Change, Row, is_shown};
use crate::distinct::distinct;
use crate::effect::no_change;
use crate::verdict::Outcome;
use crate::words;

/// The change of the baseline in a measure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Movement {
    Shown,
    WithinMargin,
    Open,
}

/// Sentences about the baseline. None where a known difference may have changed it.
pub(super) fn drift(rows: &[Row], pair: &RunPair<'_>) -> Vec<String> {
    if !pair.nothing_differs && pair.basis == Basis::Values {
        return Vec::new();
    }
    let of_baseline: Vec<&Row> = rows.iter().filter(|row| row.is_baseline && row.change.is_ok()).collect();
    let parts: Vec<(Movement, String, String)> = distinct(of_baseline.iter().map(|row| &row.measure))
        .into_iter()
        .map(|measure| {
            let rows: Vec<&Row> = of_baseline.iter().copied().filter(|row| row.measure == *measure).collect();
            let changes: Vec<&Change> = rows.iter().filter_map(|row| row.change.as_ref().ok()).collect();
            (movement(&rows), words::measure(measure), sizes(&changes, measure))
        })
        .collect();
    let of = |wanted: Movement, tell: fn(&str, &str) -> String| -> Vec<String> {
        let wanted = parts.iter().filter(|(movement, ..)| *movement == wanted);
        wanted.map(|(_, name, sizes)| tell(name, sizes)).collect()
    };
    let shown = of(Movement::Shown, |name, sizes| format!("by {sizes} in {name}"));
    let within = of(Movement::WithinMargin, |name, sizes| format!("{name} ({sizes})"));
    let open = of(Movement::Open, |name, sizes| format!("by {sizes} in {name}"));
    let what = if pair.pinned { "that is drift" } else { "that is drift, or something that is not recorded" };
    let mut sentences = Vec::new();
    if !shown.is_empty() {
        sentences.push(format!("The baseline itself moved {}: {what}.", shown.join(" and ")));
    }
    if !within.is_empty() {
        sentences.push(format!("The baseline itself stayed within the margin in {}.", within.join(" and in ")));
    }
    if !open.is_empty() {
        sentences.push(format!("The baseline itself moved {}, which may be chance.", open.join(" and ")));
    }
    sentences
}

/// The change of the baseline in a measure, from the rows of all conditions.
fn movement(rows: &[&Row]) -> Movement {
    if rows.iter().any(|row| has_moved(row)) {
        Movement::Shown
    } else if rows.iter().all(|row| row.verdict.as_ref().is_some_and(|one| one.outcome == Outcome::Equivalent)) {
        Movement::WithinMargin
    } else {
        Movement::Open
    }
}

/// True if the row changed: by its verdict, or without one by its interval.
fn has_moved(row: &Row) -> bool {
    match (&row.verdict, &row.change) {
        (Some(verdict), _) => is_shown(verdict),
        (None, Ok(Change { interval: Ok(interval), .. })) => {
            let unmoved = no_change(row.measure.effect());
            interval.low > unmoved || interval.high < unmoved
        }
        (None, _) => false,
    }
}
