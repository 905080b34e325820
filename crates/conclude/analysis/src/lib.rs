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

mod analysis;
pub mod answer;
pub mod between;
mod catalogue;
pub mod compare;
pub mod conclusion;
pub mod database;
pub mod decide;
pub mod durability;
pub mod estimate;
pub mod finding;
mod findings;
pub mod grid;
mod input;
pub mod measure;
pub mod noise;
mod numbers;
mod order;
pub mod quantity;
mod ranks;
mod reason;
pub mod samples;
pub mod sensitivity;
pub mod storage;
#[cfg(test)]
mod testing;
mod uncounted;
mod values;
pub mod verdict;
pub mod words;

pub use analysis::Analysis;
pub use catalogue::{decisions, headline};
pub use compare::level;
pub use conclusion::Conclusion;
pub use input::Input;
pub use numbers::Cell;
pub use reason::OrReason;
pub use uncounted::{NOT_RUN, RUN_AGAIN, Uncounted};

use measure::Reader;
use numbers::Numbers;
use values::Values;

/// Everything that the loads of `input` say.
#[must_use]
pub fn analyse(input: &Input) -> Analysis {
    let trials = input.trials().filter(|trial| !input.plan.is_superseded(trial.identity()));
    let readers: Vec<Reader<'_>> = trials.map(Reader::new).collect();
    let measures = catalogue::measures(input, &readers);
    let values = Values::new(input, &readers, &measures);
    let cells = numbers::cells(input, &values);
    let alpha = level(&input.plan);
    let compare::Comparisons { comparisons, floors } = compare::comparisons(input, &values, alpha);
    let numbers = Numbers { cells: &cells, comparisons: &comparisons, floors: &floors };
    let mut analysis = Analysis {
        alpha,
        answer: answer::answer(input, &comparisons, alpha),
        sensitivities: sensitivity::sensitivities(input, &comparisons),
        storage: storage::report(input, &readers),
        database: database::report(input, &readers, numbers),
        uncounted: uncounted::uncounted(input),
        findings: Vec::new(),
        measures: measures.clone(),
        cells,
        comparisons,
        floors,
    };
    analysis.findings = findings::findings(input, &readers, &analysis);
    analysis
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, start};
    use plimsoll_model::start::Validity;

    #[test]
    fn a_void_trial_is_listed_and_takes_its_pair_with_it() {
        let mut input = input(4, |trial_number| start(if trial_number % 2 == 1 { 1.0 } else { 1.1 }));
        input.starts[3].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
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
        let mut input = input(3, |_| start(1.0));
        input.starts.truncate(4);
        let analysis = analyse(&input);
        let numbers: Vec<u32> = analysis.uncounted.iter().map(|one| one.trial).collect();
        assert_eq!(numbers, [5, 6]);
        assert!(analysis.uncounted.iter().all(|one| one.what == "did not run"));
    }

    #[test]
    fn the_same_input_gives_the_same_analysis() {
        let make = || input(3, |trial_number| start(1.0 + f64::from(trial_number) / 50.0));
        assert_eq!(analyse(&make()), analyse(&make()));
    }

    #[test]
    fn an_input_without_trials_is_analysed() {
        let mut input = input(2, |_| start(1.0));
        input.starts.clear();
        input.complete = false;
        let analysis = analyse(&input);
        assert_eq!(analysis.uncounted.len(), 4);
        assert!(analysis.cells.iter().flat_map(|cell| &cell.estimates).all(|estimate| estimate.summary.is_err()));
    }
}
