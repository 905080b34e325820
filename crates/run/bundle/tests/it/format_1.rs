//! Bundles of format 1, as an earlier version of the program wrote them: no trial ran again.

use crate::{fixture, given};
use plimsoll_bundle::read;
use plimsoll_model::result::{StartResult, TrialResult};

#[test]
fn a_bundle_of_format_1_reads() {
    let contents = read(&fixture::folder("format_1")).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert!(contents.complete);
    assert_eq!(given::numbers(&contents), [1, 2]);
    let plan = &contents.plan;
    assert_eq!((plan.duplicate(), plan.spare_blocks, plan.looks.len()), (None, 0, 0));
    assert_eq!(plan.starts, given::plan(2).starts, "each trial was the first attempt");
    assert_eq!(contents.facts.mean_think, None);
    let trials: Vec<TrialResult<'_>> = contents.starts.iter().flat_map(StartResult::trials).collect();
    assert_eq!(trials.len(), 2, "a trial was one load");
    assert!(trials.iter().all(|trial| trial.counts() && trial.load.summary.steadiness.from.is_none()));
    assert!(trials.iter().all(|trial| trial.databases().is_empty() && trial.start.databases.is_empty()));
    (1..).zip(&trials).for_each(|(number, trial)| given::assert_load(trial.load, number));
}
