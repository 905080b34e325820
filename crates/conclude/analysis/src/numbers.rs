//! Estimates and comparisons, looked up by variant, condition and measure.

use crate::compare::Comparison;
use crate::estimate::{self, Estimate};
use crate::input::Input;
use crate::values::Values;
use plimsoll_model::measure::Measure;

/// The estimates of a variant under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants.
    pub variant: usize,
    /// One estimate for each measure of the analysis.
    pub estimates: Vec<Estimate>,
}

/// The cells of a study: by condition, then by variant.
pub(crate) fn cells(input: &Input, values: &Values<'_>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for condition in 0..input.plan.conditions.len() {
        for variant in 0..input.plan.variants.len() {
            let measures = 0..values.measures().len();
            let estimates = measures.map(|measure| estimate::estimate(values, (condition, variant), measure)).collect();
            cells.push(Cell { condition, variant, estimates });
        }
    }
    cells
}

/// All estimates, comparisons and noise floors, before they are put into words.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'a> {
    /// The cells, in the order of [`cells`].
    pub(crate) cells: &'a [Cell],
    /// The comparisons of each other variant with the baseline, under each condition, in each
    /// measure.
    pub(crate) comparisons: &'a [Comparison],
    /// The comparisons of the duplicate with the baseline.
    pub(crate) floors: &'a [Comparison],
}

impl<'a> Numbers<'a> {
    /// The estimate of `measure` for a variant under a condition.
    pub(crate) fn estimate(self, condition: usize, variant: usize, measure: &Measure) -> Option<&'a Estimate> {
        let cell = self.cells.iter().find(|cell| (cell.condition, cell.variant) == (condition, variant))?;
        cell.estimates.iter().find(|estimate| &estimate.measure == measure)
    }

    /// The comparison of a variant with the baseline under a condition.
    pub(crate) fn comparison(self, condition: usize, variant: usize, measure: &Measure) -> Option<&'a Comparison> {
        self.comparisons
            .iter()
            .find(|one| (one.condition, one.variant) == (condition, variant) && &one.measure == measure)
    }
}
