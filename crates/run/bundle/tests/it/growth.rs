//! A plan that grows while the run goes on, and a run that ends before its last repeat.

use crate::given::{self, named};
use plimsoll_bundle::{BundleError, BundleWriter, Series, read};
use plimsoll_model::trial::Trial;
use std::fs;
use std::path::Path;

/// The block of the first two trials again, as trials 5 and 6 of a plan of four.
fn again() -> Vec<Trial> {
    let anew = |trial: Trial| Trial { number: trial.number + 4, block: 3, attempt: 2, extended: true, ..trial };
    [1, 2].map(|number| anew(given::trial(number))).to_vec()
}

/// Runs a trial that was added.
fn seal_added(bundle: &mut BundleWriter, trial: &Trial) {
    let writer = bundle.begin_trial(trial).expect("a folder");
    let summary = plimsoll_model::result::TrialSummary { trial: *trial, ..given::summary(1) };
    bundle.seal_trial(writer, &summary, &Series::default()).expect("disk");
}

/// Four trials, then the first block again.
fn grown(folder: &Path) -> BundleWriter {
    let mut bundle = given::create(folder, 4);
    bundle.versions(&given::versions()).expect("disk");
    (1..=4).for_each(|number| given::seal(&mut bundle, number));
    bundle.add_trials(&again()).expect("disk");
    again().iter().for_each(|trial| seal_added(&mut bundle, trial));
    bundle
}

#[test]
fn a_reader_knows_the_trials_that_were_added() {
    let folder = tempfile::tempdir().expect("a folder");
    grown(folder.path()).complete().expect("disk");
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!(contents.plan.trials, [given::plan(4).trials, again()].concat());
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4, 5, 6]);
    assert!(contents.plan.is_superseded(&given::trial(1)) && !contents.plan.is_superseded(&given::trial(3)));
}

#[test]
fn trials_that_were_added_and_did_not_run_are_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    (1..=4).for_each(|number| given::seal(&mut bundle, number));
    bundle.add_trials(&again()).expect("disk");
    let contents = read(folder.path()).expect("a bundle");
    assert!(named(&contents.problems, "2 of 6 trials are missing"), "{contents:?}");
}

/// The run goes on from whatever is left of the manifest, and comes to the same end.
fn goes_on(folder: &Path) {
    let mut bundle = given::resume(folder, 4);
    bundle.versions(&given::versions()).expect("disk");
    let left = |bundle: &BundleWriter, number: u32| !bundle.sealed_trials().contains_key(&number);
    for number in (1..=4).filter(|number| left(&bundle, *number)).collect::<Vec<_>>() {
        given::seal(&mut bundle, number);
    }
    if bundle.added_trials().is_empty() {
        bundle.add_trials(&again()).expect("disk");
    }
    assert_eq!(bundle.added_trials(), again());
    for trial in again().iter().filter(|trial| left(&bundle, trial.number)).collect::<Vec<_>>() {
        seal_added(&mut bundle, trial);
    }
    bundle.complete().expect("disk");
    drop(bundle);
    let contents = read(folder).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_run_that_died_at_any_line_of_its_manifest_goes_on() {
    const LINES: usize = 10;
    for (whole, torn) in (1..=LINES).flat_map(|whole| [(whole, 0), (whole, 9)]) {
        let folder = tempfile::tempdir().expect("a folder");
        drop(grown(folder.path()));
        let path = folder.path().join("manifest.jsonl");
        let text = fs::read_to_string(&path).expect("a manifest");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!(lines.len(), LINES, "format, study, versions, six trials, and what was added");
        let rest = lines.get(whole).map_or("", |next| &next[..torn]);
        fs::write(&path, lines[..whole].concat() + rest).expect("a file");
        let contents = read(folder.path()).expect("a bundle");
        assert!(!contents.complete && given::numbers(&contents).len() <= 6, "{contents:?}");
        goes_on(folder.path());
    }
}

#[test]
fn a_damaged_line_of_added_trials_costs_those_only() {
    let folder = tempfile::tempdir().expect("a folder");
    grown(folder.path()).complete().expect("disk");
    let path = folder.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    fs::write(&path, text.replacen("{\"added\"", "{\"added", 1)).expect("a file");
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4]);
    assert!(named(&contents.problems, "is damaged or cut off"), "{contents:?}");
    assert!(named(&contents.problems, "trial 5 is not in the plan"), "{contents:?}");
}

#[test]
fn added_trials_that_no_variant_or_condition_fits_are_left_out() {
    for strange in [Trial { variant: 7, ..again()[0] }, Trial { condition: 7, ..again()[0] }] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), 4);
        bundle.add_trials(&[strange]).expect("disk");
        let contents = read(folder.path()).expect("a bundle");
        assert_eq!(contents.plan.trials.len(), 4);
        assert!(named(&contents.problems, "trial 5 was added to another plan"), "{contents:?}");
    }
}

#[test]
fn after_an_early_end_later_repeats_are_not_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    bundle.versions(&given::versions()).expect("disk");
    (1..=2).for_each(|number| given::seal(&mut bundle, number));
    bundle.add_trials(&again()).expect("disk");
    again().iter().for_each(|trial| seal_added(&mut bundle, trial));
    bundle.complete_after(1).expect("disk");
    drop(bundle);
    let contents = read(folder.path()).expect("a bundle");
    assert!(contents.complete);
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!((contents.plan.repeats, contents.plan.trials.len()), (1, 4));
    assert_eq!(given::numbers(&contents), [1, 2, 5, 6]);
    let refused = BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(4));
    assert!(matches!(refused, Err(BundleError::Complete(_))), "{refused:?}");
}
