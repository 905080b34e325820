//! Sensitivity: the smallest change that the repeats of a study and their spread could show.

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
    /// In the most sensitive comparison.
    pub least: f64,
    /// In the median comparison.
    pub median: f64,
    /// In the least sensitive comparison.
    pub most: f64,
    /// Number of comparisons with an interval.
    pub comparisons: usize,
}

/// The sensitivity in each measure that decides.
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
