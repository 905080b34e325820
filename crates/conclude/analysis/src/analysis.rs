//! The results of a study, as reports show them.

use crate::answer::Answer;
use crate::capacity::CapacityReport;
use crate::compare::Comparison;
use crate::database::DatabaseReport;
use crate::description::DescribedValue;
use crate::estimate::Estimate;
use crate::excluded::ExcludedLoad;
use crate::feedback::FeedbackReport;
use crate::finding::Finding;
use crate::lengths::Lengths;
use crate::next_step::NextStep;
use crate::numbers::{Cell, Numbers};
use crate::sensitivity::Sensitivity;
use crate::soak::SoakReport;
use crate::storage::StorageReport;
use plimsoll_model::measure::{Measure, Series, Statistic};

/// The results of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The two-sided level of every comparison: 0.05, or less where the run may have ended early.
    pub alpha: f64,
    /// The measures; those that decide come first.
    pub measures: Vec<Measure>,
    /// One cell for each variant under each condition: by condition, then by variant.
    pub cells: Vec<Cell>,
    /// The values that a report shows first where nothing is compared; empty elsewhere.
    pub described: Vec<DescribedValue>,
    /// The comparisons with the baseline: of each other variant, under each condition, in each
    /// measure.
    pub comparisons: Vec<Comparison>,
    /// The noise floor: the duplicate of the baseline against the baseline, under each condition in
    /// each measure that decides. Empty where the study has no duplicate.
    pub floors: Vec<Comparison>,
    /// The smallest changes that the study could have detected, in each measure that decides.
    pub sensitivities: Vec<Sensitivity>,
    /// How many turns a start should have, where variants took turns.
    pub lengths: Option<Lengths>,
    /// The capacity of the systems, where it was searched for.
    pub capacity: Option<CapacityReport>,
    /// The changes over the time of each load, where the study is to show them.
    pub soak: Option<SoakReport>,
    /// The control loops that changed the number of users, where there were any.
    pub feedback: Option<FeedbackReport>,
    /// The durations of operations on objects, where the workload was storage.
    pub storage: Option<StorageReport>,
    /// The results of the databases, where there were any.
    pub database: Option<DatabaseReport>,
    /// The loads that do not count.
    pub excluded: Vec<ExcludedLoad>,
    /// The answer to the study's question.
    pub answer: Answer,
    /// What to do next, where a verdict is open.
    pub next: Option<NextStep>,
    /// Findings that a reader should know beside the answer, the most severe first.
    pub findings: Vec<Finding>,
}

impl Analysis {
    /// The measure of a series and statistic, with what is known of the values of the series.
    #[must_use]
    pub fn measure(&self, series: &Series, statistic: Statistic) -> Measure {
        let noted = self.measures.iter().find(|known| known.series == *series).and_then(|known| known.noted);
        Measure { noted, ..Measure::new(series.clone(), statistic) }
    }

    /// The estimate of `measure` for a variant under a condition.
    #[must_use]
    pub fn estimate(&self, condition: usize, variant: usize, measure: &Measure) -> Option<&Estimate> {
        self.numbers().estimate(condition, variant, measure)
    }

    /// The comparison of a variant with the baseline under a condition.
    #[must_use]
    pub fn comparison(&self, condition: usize, variant: usize, measure: &Measure) -> Option<&Comparison> {
        self.numbers().comparison(condition, variant, measure)
    }

    /// The noise floor under a condition.
    #[must_use]
    pub fn floor(&self, condition: usize, measure: &Measure) -> Option<&Comparison> {
        self.floors.iter().find(|one| one.condition == condition && &one.measure == measure)
    }

    fn numbers(&self) -> Numbers<'_> {
        Numbers { cells: &self.cells, comparisons: &self.comparisons, floors: &self.floors }
    }
}
