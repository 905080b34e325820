//! What a study could have seen: the smallest change that its repeats and their spread show.

use crate::compare::Comparison;
use crate::input::Input;
use crate::verdict::Outcome;
use plimsoll_model::measure::Measure;

/// The smallest changes that the comparisons in a measure could have shown, with the power
/// [`POWER`](crate::compare::POWER): ratios above 1, or differences above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The measure.
    pub measure: Measure,
    /// Of the comparison that saw best.
    pub least: f64,
    /// Of the one in the middle.
    pub median: f64,
    /// Of the one that saw worst.
    pub most: f64,
    /// Comparisons with an interval.
    pub comparisons: usize,
}

/// For each measure that decides.
pub(crate) fn sensitivities(input: &Input, comparisons: &[Comparison]) -> Vec<Sensitivity> {
    crate::catalogue::decisions(&input.facts).iter().filter_map(|decision| of(&decision.measure, comparisons)).collect()
}

fn of(measure: &Measure, comparisons: &[Comparison]) -> Option<Sensitivity> {
    let is_void = |one: &Comparison| one.verdict.as_ref().is_some_and(|verdict| verdict.outcome == Outcome::Void);
    let mut changes: Vec<f64> = comparisons
        .iter()
        .filter(|one| &one.measure == measure && !is_void(one))
        .filter_map(|one| one.contrast.as_ref().ok()?.detectable)
        .collect();
    changes.sort_by(f64::total_cmp);
    let (least, most) = (*changes.first()?, *changes.last()?);
    let median = plimsoll_statistics::median(&changes)?;
    Some(Sensitivity { measure: measure.clone(), least, median, most, comparisons: changes.len() })
}
