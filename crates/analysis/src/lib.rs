//! Trials to estimates, comparisons and findings.
//!
//! Everything here is a pure function of an [`Input`], which is what a bundle holds: the same
//! input gives the same [`Analysis`]. The trial is the unit of replication, so the path is:
//!
//! 1. [`measure`]: the one number that each trial gives for each measure;
//! 2. [`estimate`]: those numbers over the repeats of a variant under a condition;
//! 3. [`compare`]: each variant against the baseline, block by block, and the [`verdict`] on it;
//! 4. [`answer`] and [`findings`]: what that means, in sentences.
//!
//! Whatever has no value carries the reason why: see [`OrReason`].

pub mod answer;
mod catalogue;
pub mod compare;
pub mod estimate;
pub mod findings;
pub mod measure;
pub mod quantity;
mod student;
#[cfg(test)]
mod testing;
pub mod verdict;
pub mod words;

pub use catalogue::headline;

use answer::Answer;
use compare::Comparison;
use estimate::Estimate;
use findings::Finding;
use measure::Reader;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::measure::Measure;
use plimsoll_model::result::TrialResult;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::trial::Plan;

/// A value, or a short text that says why there is none.
pub type OrReason<T> = Result<T, String>;

/// What a bundle holds, as far as it could be read.
#[derive(Debug)]
pub struct Input {
    /// The study.
    pub facts: StudyFacts,
    /// The plan, with trials that did not run as well.
    pub plan: Plan,
    /// The trials that ran, in the order in which they did.
    pub trials: Vec<TrialResult>,
    /// The machine.
    pub host: Host,
    /// What was run.
    pub versions: Vec<Version>,
    /// What was found damaged, changed or missing while reading.
    pub problems: Vec<String>,
    /// Whether the run came to its end.
    pub complete: bool,
}

/// What the trials say.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The measures, those that decide first.
    pub measures: Vec<Measure>,
    /// One for each variant under each condition: by condition, then by variant.
    pub cells: Vec<Cell>,
    /// Each variant but the baseline under each condition in each measure.
    pub comparisons: Vec<Comparison>,
    /// The trials that do not count.
    pub uncounted: Vec<Uncounted>,
    /// The answer to the study's question.
    pub answer: Answer,
    /// What a reader should know beside it, the gravest first.
    pub findings: Vec<Finding>,
}

/// A variant under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants.
    pub variant: usize,
    /// One for each of the analysis's measures.
    pub estimates: Vec<Estimate>,
}

/// What is with a trial that is in the plan and not among the trials.
pub const NOT_RUN: &str = "did not run";

/// A trial that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// Number of the trial.
    pub trial: u32,
    /// `void`, `failed` or [`NOT_RUN`].
    pub what: &'static str,
    /// Why.
    pub reasons: Vec<String>,
}

impl Analysis {
    /// The estimate of `measure` for a variant under a condition.
    #[must_use]
    pub fn estimate(&self, condition: usize, variant: usize, measure: &Measure) -> Option<&Estimate> {
        let cell = self.cells.iter().find(|cell| (cell.condition, cell.variant) == (condition, variant))?;
        cell.estimates.iter().find(|estimate| &estimate.measure == measure)
    }

    /// The comparison of a variant with the baseline under a condition.
    #[must_use]
    pub fn comparison(&self, condition: usize, variant: usize, measure: &Measure) -> Option<&Comparison> {
        self.comparisons
            .iter()
            .find(|one| (one.condition, one.variant) == (condition, variant) && &one.measure == measure)
    }
}

/// Everything that the trials of `input` say.
#[must_use]
pub fn analyse(input: &Input) -> Analysis {
    let readers: Vec<Reader<'_>> = input.trials.iter().map(Reader::new).collect();
    let measures = catalogue::measures(input, &readers);
    let mut cells = Vec::new();
    for condition in 0..input.plan.conditions.len() {
        for variant in 0..input.plan.variants.len() {
            let counted: Vec<&Reader<'_>> =
                readers.iter().filter(|reader| reader.is_of(condition, variant) && reader.counts()).collect();
            let estimates = measures.iter().map(|measure| estimate::estimate(measure, &counted)).collect();
            cells.push(Cell { condition, variant, estimates });
        }
    }
    let comparisons = compare::comparisons(input, &readers, &measures);
    let mut analysis = Analysis {
        answer: answer::answer(input, &comparisons),
        measures,
        cells,
        comparisons,
        uncounted: uncounted(input),
        findings: Vec::new(),
    };
    analysis.findings = findings::findings(input, &readers, &analysis);
    analysis
}

fn uncounted(input: &Input) -> Vec<Uncounted> {
    let mut uncounted = Vec::new();
    for trial in &input.plan.trials {
        let result = input.trials.iter().find(|result| result.summary.trial.number == trial.number);
        let (what, reasons) = match result {
            Some(result) if result.summary.validity.counts() => continue,
            Some(result) => (words::validity(&result.summary.validity), result.summary.validity.reasons().to_vec()),
            None => (NOT_RUN, vec!["it is not in the bundle".to_owned()]),
        };
        uncounted.push(Uncounted { trial: trial.number, what, reasons });
    }
    uncounted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, trial};
    use plimsoll_model::trial::Validity;

    #[test]
    fn a_void_trial_is_listed_and_takes_its_pair_with_it() {
        let mut input = input(4, |trial_number| trial(if trial_number % 2 == 1 { 1.0 } else { 1.1 }));
        input.trials[3].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        let analysis = analyse(&input);
        assert_eq!(analysis.uncounted.len(), 1);
        assert_eq!((analysis.uncounted[0].trial, analysis.uncounted[0].what), (4, "void"));
        let headline = headline(&input.facts);
        let comparison = analysis.comparison(0, 1, &headline.measure).expect("a comparison");
        assert_eq!(comparison.pairs.len(), 3);
        assert_eq!(comparison.dropped.len(), 1);
        assert_eq!(analysis.estimate(0, 1, &headline.measure).expect("an estimate").values.len(), 3);
        assert_eq!(analysis.estimate(0, 0, &headline.measure).expect("an estimate").values.len(), 4);
    }

    #[test]
    fn a_trial_that_never_ran_is_listed() {
        let mut input = input(3, |_| trial(1.0));
        input.trials.truncate(4);
        let analysis = analyse(&input);
        let numbers: Vec<u32> = analysis.uncounted.iter().map(|one| one.trial).collect();
        assert_eq!(numbers, [5, 6]);
        assert!(analysis.uncounted.iter().all(|one| one.what == "did not run"));
    }

    #[test]
    fn the_same_input_gives_the_same_analysis() {
        let make = || input(3, |trial_number| trial(1.0 + f64::from(trial_number) / 50.0));
        assert_eq!(analyse(&make()), analyse(&make()));
    }

    #[test]
    fn an_input_without_trials_is_analysed() {
        let mut input = input(2, |_| trial(1.0));
        input.trials.clear();
        input.complete = false;
        let analysis = analyse(&input);
        assert_eq!(analysis.uncounted.len(), 4);
        assert!(analysis.cells.iter().flat_map(|cell| &cell.estimates).all(|estimate| estimate.summary.is_err()));
    }
}
