//! Trials to estimates, comparisons and findings.
//!
//! Everything here is a pure function of an [`Input`], which is what a bundle holds: the same
//! input gives the same [`Analysis`]. The trial is the unit of replication, so the path is:
//!
//! 1. [`measure`]: the one number that each trial gives for each measure;
//! 2. [`estimate`]: those numbers over the repeats of a variant under a condition;
//! 3. [`compare`]: each variant against the baseline, block by block; [`decide`]: what that shows,
//!    on numbers alone; [`verdict`]: the same in words;
//! 4. [`storage`]: for storage, what operations on objects of each size take;
//! 5. [`database`]: for databases, what settings carry and at what cost;
//! 6. [`answer`], [`findings`] and [`conclusion`]: what it means.
//!
//! Two bundles of one study are held against each other by [`between`]; [`noise`] tells what a
//! machine's noise floor means for studies to come.
//!
//! Whatever has no value carries the reason why: see [`OrReason`].

pub mod answer;
pub mod between;
mod catalogue;
pub mod compare;
pub mod conclusion;
pub mod database;
pub mod decide;
pub mod durability;
pub mod estimate;
pub mod findings;
pub mod grid;
pub mod measure;
pub mod noise;
mod order;
pub mod quantity;
mod ranks;
pub mod sensitivity;
pub mod storage;
#[cfg(test)]
mod testing;
mod values;
pub mod verdict;
pub mod words;

pub use catalogue::{decisions, headline};
pub use conclusion::Conclusion;

use answer::Answer;
use catalogue::margin;
use compare::Comparison;
use database::DatabaseReport;
use estimate::Estimate;
use findings::Finding;
use measure::Reader;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::result::TrialResult;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::trial::Plan;
use sensitivity::Sensitivity;
use std::collections::BTreeSet;
use storage::StorageReport;
use values::Values;

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
    /// Whether margins and order are those that were declared before the run.
    pub declared: bool,
}

impl Input {
    /// The same, once it is known of the measures that the study names whether they are times: of a script's own metrics,
    /// the trials alone know.
    #[must_use]
    pub fn with_times_noted(mut self) -> Input {
        let times = self.times();
        let decide = self.facts.decide.iter_mut().map(|decision| &mut decision.measure);
        decide.chain(&mut self.facts.report.measures).for_each(|measure| measure.note_times(&times));
        self
    }

    /// The scripts' own metrics that hold times.
    fn times(&self) -> BTreeSet<String> {
        let scripts = self.trials.iter().filter_map(|trial| trial.summary.script.as_ref());
        scripts.flat_map(|script| script.times.iter().cloned()).collect()
    }

    /// Whether a trial is part of the results: it counts, and its block was not run again.
    #[must_use]
    pub fn counts(&self, result: &TrialResult) -> bool {
        result.summary.validity.counts() && !self.plan.is_superseded(&result.summary.trial)
    }
}

/// What the trials say.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The two-sided level of every comparison: 0.05, or less where the run may have ended early.
    pub alpha: f64,
    /// The measures, those that decide first.
    pub measures: Vec<Measure>,
    /// One for each variant under each condition: by condition, then by variant.
    pub cells: Vec<Cell>,
    /// Each variant but the baseline under each condition in each measure.
    pub comparisons: Vec<Comparison>,
    /// The noise floor: the duplicate of the baseline against the baseline, under each condition in
    /// each measure that decides. Empty where the study has no duplicate.
    pub floors: Vec<Comparison>,
    /// The smallest changes that the study could have seen, in each measure that decides.
    pub sensitivities: Vec<Sensitivity>,
    /// What operations on objects take, where the workload was storage.
    pub storage: Option<StorageReport>,
    /// What databases did, where there were any.
    pub database: Option<DatabaseReport>,
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

/// What is with a trial that counts by itself, in a block in which another does not.
pub const RUN_AGAIN: &str = "run again";

/// A trial that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// Number of the trial.
    pub trial: u32,
    /// `void`, `failed`, [`RUN_AGAIN`] or [`NOT_RUN`].
    pub what: &'static str,
    /// Why.
    pub reasons: Vec<String>,
}

impl Analysis {
    /// A measure, with what is known of its series.
    #[must_use]
    pub fn measure(&self, series: &Series, statistic: Statistic) -> Measure {
        let timed = self.measures.iter().any(|known| known.series == *series && known.timed);
        Measure { timed, ..Measure::new(series.clone(), statistic) }
    }

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

    /// The noise floor under a condition.
    #[must_use]
    pub fn floor(&self, condition: usize, measure: &Measure) -> Option<&Comparison> {
        self.floors.iter().find(|one| one.condition == condition && &one.measure == measure)
    }
}

/// The two-sided level of the comparisons of a plan: 5 %, shared by its looks as Pocock (1977)
/// does where the run may end at any of them.
#[must_use]
pub fn level(plan: &Plan) -> f64 {
    plimsoll_statistics::pocock(plan.looks.len().max(1)).unwrap_or(1.0 - estimate::CONFIDENCE)
}

/// Everything that the trials of `input` say.
#[must_use]
pub fn analyse(input: &Input) -> Analysis {
    let stand = input.trials.iter().filter(|result| !input.plan.is_superseded(&result.summary.trial));
    let readers: Vec<Reader<'_>> = stand.map(Reader::new).collect();
    let measures = catalogue::measures(input, &readers);
    let values = Values::new(input, &readers, &measures);
    let cells = cells(input, &values);
    let alpha = level(&input.plan);
    let compare::Comparisons { comparisons, floors } = compare::comparisons(input, &values, alpha);
    let mut analysis = Analysis {
        alpha,
        answer: answer::answer(input, &comparisons, alpha),
        sensitivities: sensitivity::sensitivities(input, &comparisons),
        cells,
        comparisons,
        floors,
        storage: storage::report(input, &readers),
        database: None,
        uncounted: uncounted(input),
        findings: Vec::new(),
        measures: measures.clone(),
    };
    analysis.database = database::report(input, &readers, &analysis);
    analysis.findings = findings::findings(input, &readers, &analysis);
    analysis
}

fn cells(input: &Input, values: &Values<'_>) -> Vec<Cell> {
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

fn uncounted(input: &Input) -> Vec<Uncounted> {
    let mut uncounted = Vec::new();
    for trial in &input.plan.trials {
        let result = input.trials.iter().find(|result| result.summary.trial.number == trial.number);
        let again = input.plan.is_superseded(trial);
        let (what, mut reasons) = match result.map(|result| &result.summary.validity) {
            Some(validity) if validity.counts() && again => (RUN_AGAIN, Vec::new()),
            Some(validity) if validity.counts() => continue,
            Some(validity) => (words::validity(validity), validity.reasons().to_vec()),
            None => (NOT_RUN, vec!["it is not in the bundle".to_owned()]),
        };
        if again {
            reasons.push("its block was run again".to_owned());
        }
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
