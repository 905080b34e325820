//! Turns starts with their loads into estimates, comparisons and findings.
//!
//! Everything here is a pure function of an [`Input`], which holds what a bundle holds: the same
//! input gives the same [`Analysis`]. A load with its start is a trial. The steps are:
//!
//! 1. [`measure`]: one number per trial and measure, from the records of the generator and from
//!    [`samples`] of the systems and what they [expose](exposed);
//! 2. [`estimate`]: those numbers over the repeats of a variant under a condition;
//! 3. [`compare`]: each variant against the baseline, block by block; [`decide`]: the decisions, on
//!    numbers alone; [`verdict`]: the decisions in words;
//!    [`description`]: where nothing is compared, the values of the one system;
//! 4. [`turns`]: the same where variants took turns, with what slices leave to the next ones;
//!    [`lengths`]: how many turns and starts would do;
//! 5. [`soak`]: for a load of hours, what changes over its time;
//!    [`feedback`]: for a control loop over the number of users, its answer and how much the users moved;
//! 6. [`storage`]: for storage, the durations of operations on objects of each size;
//! 7. [`database`]: for databases, the throughput of each setting and its cost;
//! 8. [`answer`], [`finding`], [`next_step`] and [`conclusion`]: the answer, what limits it, what to do where it is
//!    open, and the exit code.
//!
//! [`forecast`] says, while a run is under way, when it will probably decide.
//!
//! [`cross_run`] compares two bundles of one study; [`noise`] computes from a machine's noise floor
//! how small a change later studies can detect.
//!
//! A value that is missing carries the reason: see [`OrReason`].

mod analysis;
pub mod answer;
pub mod capacity;
mod catalogue;
pub mod compare;
pub mod conclusion;
pub mod cross_run;
pub mod database;
pub mod decide;
pub mod description;
mod distinct;
pub mod durability;
pub mod effect;
pub mod estimate;
mod excluded;
pub mod exposed;
mod extremes;
pub mod feedback;
pub mod finding;
mod findings;
pub mod forecast;
pub mod grid;
mod idle_work;
mod input;
pub mod lengths;
pub mod measure;
pub mod next_step;
pub mod noise;
mod numbers;
mod once;
mod order;
pub mod quantity;
mod reason;
pub mod samples;
mod search;
pub mod sensitivity;
pub mod soak;
pub mod storage;
#[cfg(test)]
mod testing;
pub mod turns;
mod values;
pub mod verdict;
pub mod words;

pub use analysis::Analysis;
pub use catalogue::{decisions, headline};
pub use compare::level;
pub use conclusion::{Conclusion, Goal};
pub use distinct::distinct;
pub use excluded::{ExcludedLoad, NOT_RUN, RUN_AGAIN};
pub use input::Input;
pub use numbers::Cell;
pub use reason::OrReason;

use measure::TrialReader;
use numbers::Numbers;
use values::Values;

/// Computes every estimate, comparison, verdict and finding of `input`.
#[must_use]
pub fn analyse(input: &Input) -> Analysis {
    let trials = input.trials().filter(|trial| !input.plan.is_superseded(trial.identity()));
    let readers: Vec<TrialReader<'_>> = trials.map(TrialReader::new).collect();
    let measures = catalogue::measures(input, &readers);
    let values = Values::new(input, &readers, &measures);
    let cells = numbers::cells(input, &values);
    let alpha = level(&input.plan);
    let compare::Comparisons { comparisons, floors } = compare::comparisons(input, &values, alpha);
    let described = description::described(input, &cells);
    let numbers = Numbers { cells: &cells, comparisons: &comparisons, floors: &floors };
    let mut analysis = Analysis {
        alpha,
        answer: match input.plan.describes() {
            true => description::answer(input, &described),
            false => answer::answer(input, &comparisons, alpha),
        },
        sensitivities: sensitivity::sensitivities(input, &comparisons),
        lengths: lengths::lengths(input, &comparisons, alpha),
        capacity: capacity::report(input, &readers, &cells, &comparisons),
        soak: soak::report(input, &readers),
        feedback: feedback::report(input),
        storage: storage::report(input, &readers),
        database: database::report(input, &readers, numbers),
        excluded: excluded::excluded(input),
        findings: Vec::new(),
        measures: measures.clone(),
        next: None,
        cells,
        described,
        comparisons,
        floors,
    };
    if let Some(report) = &analysis.capacity {
        analysis.answer = analysis.answer.with_capacity(capacity::sentences(input, report), input.plan.describes());
    }
    analysis.answer = analysis.answer.with_accounts(once::sentences(input), input.plan.describes());
    if let Some(report) = &analysis.soak {
        analysis.answer = analysis.answer.with_soak(soak::sentences(input, report), input.plan.describes());
    }
    if let Some(report) = &analysis.feedback {
        let sentences = feedback::sentences(input, report, &analysis.cells);
        analysis.answer = analysis.answer.with_capacity(sentences, input.plan.describes());
    }
    analysis.findings = findings::findings(input, &readers, &analysis);
    analysis.next = next_step::next_step(input, &analysis);
    analysis
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, start, two_variants_on_one_start};
    use plimsoll_model::start::{Start, Validity};

    #[test]
    fn a_void_trial_is_listed_and_takes_its_pair_with_it() {
        let mut input = input(4, |trial_number| start(if trial_number % 2 == 1 { 1.0 } else { 1.1 }));
        input.starts[3].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        let analysis = analyse(&input);
        assert_eq!(analysis.excluded.len(), 1);
        assert_eq!((analysis.excluded[0].trial, analysis.excluded[0].what), (4, "void"));
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
        let numbers: Vec<u32> = analysis.excluded.iter().map(|one| one.trial).collect();
        assert_eq!(numbers, [5, 6]);
        assert!(analysis.excluded.iter().all(|one| one.what == "did not run"));
    }

    #[test]
    fn each_load_of_a_start_counts_by_itself() {
        let mut input = input(3, |_| start(1.0));
        input.plan.starts = (1..=3).map(|number| input.plan.starts[number as usize * 2 - 1].clone()).collect();
        for (number, place) in (1..).zip(&mut input.plan.starts) {
            (place.number, place.variants) = (number, vec![0, 1]);
        }
        let of_both = |place: &Start| {
            let mut result = two_variants_on_one_start(5);
            result.summary.start = place.clone();
            result
        };
        input.starts = input.plan.starts[..2].iter().map(of_both).collect();
        input.starts[1].loads[1].summary.validity = Validity::Void(vec!["a stall".to_owned()]);
        let analysis = analyse(&input);
        let statuses: Vec<(u32, &str)> = analysis.excluded.iter().map(|one| (one.trial, one.what)).collect();
        assert_eq!(statuses, [(2, "void"), (3, "did not run"), (3, "did not run")]);
        let values = |variant| {
            let estimate = analysis.estimate(0, variant, &headline(&input.facts).measure).expect("an estimate");
            estimate.values.len()
        };
        assert_eq!((values(0), values(1)), (2, 1));
        let finding = analysis.findings.iter().find(|one| one.topic == "trials that do not count").expect("a finding");
        assert!(finding.sentence.starts_with("Of 6 trials, 2 did not run, and 1 ran"), "{finding:?}");
    }

    #[test]
    fn loads_of_a_start_that_failed_have_failed() {
        let mut input = input(3, |_| start(1.0));
        input.starts[2].summary.validity = Validity::Failed(vec!["the system died".to_owned()]);
        input.starts[3].summary.validity = Validity::Failed(vec!["it was never ready".to_owned()]);
        input.starts[3].loads.clear();
        let excluded = analyse(&input).excluded;
        let statuses: Vec<(u32, &str)> = excluded.iter().map(|one| (one.trial, one.what)).collect();
        assert_eq!(statuses, [(3, "failed"), (4, "failed")]);
        assert_eq!(excluded[1].reasons, ["it was never ready"]);
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
        assert_eq!(analysis.excluded.len(), 4);
        assert!(analysis.cells.iter().flat_map(|cell| &cell.estimates).all(|estimate| estimate.summary.is_err()));
    }
}
