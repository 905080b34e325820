//! A plan that grows during the run, and a run that ends before its last repeat.

use crate::given::{self, named};
use plimsoll_bundle::{BundleError, BundleWriter, read};
use plimsoll_model::result::FinishedStart;
use plimsoll_model::start::Start;
use std::fs;
use std::path::Path;

/// The block of the first two starts again, as starts 5 and 6 of a plan of four.
fn again() -> Vec<Start> {
    [1, 2].map(|number| given::start(number).again(number + 4, 3, true)).to_vec()
}

/// Adds the starts of a block that runs again.
fn decide(bundle: &mut BundleWriter, starts: &[Start]) {
    starts.iter().for_each(|start| given::decide(bundle, start));
}

/// Runs a start that was decided on.
fn seal_decided(bundle: &mut BundleWriter, start: &Start) {
    given::begin_start(bundle, start);
    let mut loads = given::finished(1).loads;
    loads[0].load.variant = start.variants[0];
    given::seal_start(bundle, &FinishedStart { summary: given::start_summary(start.clone()), loads });
}

/// Four starts, then the first block again.
fn grown(folder: &Path) -> BundleWriter {
    let mut bundle = given::create(folder, 4);
    given::tell_versions(&mut bundle, &given::versions());
    (1..=4).for_each(|number| given::seal(&mut bundle, number));
    decide(&mut bundle, &again());
    again().iter().for_each(|start| seal_decided(&mut bundle, start));
    bundle
}

#[test]
fn a_reader_knows_the_starts_that_were_decided_on() {
    let folder = tempfile::tempdir().expect("a folder");
    given::end(&mut grown(folder.path()), None);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!(contents.plan.starts, [given::plan(4).starts, again()].concat());
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4, 5, 6]);
    assert!(contents.plan.is_superseded(&given::start(1)) && !contents.plan.is_superseded(&given::start(3)));
}

#[test]
fn starts_that_were_decided_on_and_did_not_run_are_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    (1..=4).for_each(|number| given::seal(&mut bundle, number));
    decide(&mut bundle, &again());
    let contents = read(folder.path()).expect("a bundle");
    assert!(named(&contents.problems, "2 of 6 trials are missing"), "{contents:?}");
}

#[test]
fn a_start_that_was_decided_on_twice_stands_there_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    (1..=4).for_each(|number| given::seal(&mut bundle, number));
    decide(&mut bundle, &again());
    given::begin_start(&mut bundle, &again()[0]);
    drop(bundle);
    // The first one never finished, and the resumed run decides otherwise.
    let mut bundle = given::resume(folder.path(), 4);
    let otherwise = Start { extended: false, ..again()[0].clone() };
    given::decide(&mut bundle, &otherwise);
    given::decide(&mut bundle, &otherwise);
    let expected = [again()[1].clone(), otherwise.clone()];
    assert_eq!(bundle.recorded().decided, expected);
    expected.iter().for_each(|start| seal_decided(&mut bundle, start));
    drop(bundle);
    assert_eq!(given::resume(folder.path(), 4).recorded().decided, expected);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.plan.starts, [given::plan(4).starts, expected.to_vec()].concat());
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4, 5, 6]);
    let manifest = fs::read_to_string(folder.path().join("manifest.jsonl")).expect("a manifest");
    assert_eq!(manifest.matches("{\"decided\"").count(), 3, "what is known already is not written again");
}

/// The run resumes from what is left of the manifest, and comes to the same end.
fn goes_on(folder: &Path) {
    let mut bundle = given::resume(folder, 4);
    given::tell_versions(&mut bundle, &given::versions());
    let left = |bundle: &BundleWriter, number: u32| !bundle.recorded().starts.contains_key(&number);
    for number in (1..=4).filter(|number| left(&bundle, *number)).collect::<Vec<_>>() {
        given::seal(&mut bundle, number);
    }
    decide(&mut bundle, &again());
    assert_eq!(bundle.recorded().decided, again());
    for start in again().iter().filter(|start| left(&bundle, start.number)).collect::<Vec<_>>() {
        seal_decided(&mut bundle, start);
    }
    given::end(&mut bundle, None);
    drop(bundle);
    let contents = read(folder).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_run_that_died_at_any_line_of_its_manifest_goes_on() {
    const LINES: usize = 11;
    for (whole, torn) in (1..=LINES).flat_map(|whole| [(whole, 0), (whole, 9)]) {
        let folder = tempfile::tempdir().expect("a folder");
        drop(grown(folder.path()));
        let path = folder.path().join("manifest.jsonl");
        let text = fs::read_to_string(&path).expect("a manifest");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!(lines.len(), LINES, "format, study, versions, six starts, and two that were decided on");
        let rest = lines.get(whole).map_or("", |next| &next[..torn]);
        fs::write(&path, lines[..whole].concat() + rest).expect("a file");
        let contents = read(folder.path()).expect("a bundle");
        assert!(!contents.complete && given::numbers(&contents).len() <= 6, "{contents:?}");
        goes_on(folder.path());
    }
}

#[test]
fn a_damaged_line_of_a_decided_start_costs_that_only() {
    let folder = tempfile::tempdir().expect("a folder");
    given::end(&mut grown(folder.path()), None);
    let path = folder.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    fs::write(&path, text.replacen("{\"decided\"", "{\"decided", 1)).expect("a file");
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(given::numbers(&contents), [1, 2, 3, 4, 6]);
    assert!(named(&contents.problems, "is damaged or cut off"), "{contents:?}");
    assert!(named(&contents.problems, "trial 5 is not in the plan"), "{contents:?}");
}

#[test]
fn decided_starts_that_no_variant_or_condition_fits_are_left_out() {
    for strange in [Start { variants: vec![0, 7], ..again()[0].clone() }, Start { condition: 7, ..again()[0].clone() }]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), 4);
        given::decide(&mut bundle, &strange);
        let contents = read(folder.path()).expect("a bundle");
        assert_eq!(contents.plan.starts.len(), 4);
        assert!(named(&contents.problems, "trial 5 was added to another plan"), "{contents:?}");
    }
}

#[test]
fn after_an_early_end_later_repeats_are_not_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 4);
    given::tell_versions(&mut bundle, &given::versions());
    (1..=2).for_each(|number| given::seal(&mut bundle, number));
    decide(&mut bundle, &again());
    again().iter().for_each(|start| seal_decided(&mut bundle, start));
    given::end(&mut bundle, Some(1));
    drop(bundle);
    let contents = read(folder.path()).expect("a bundle");
    assert!(contents.complete);
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!((contents.plan.repeats, contents.plan.starts.len()), (1, 4));
    assert_eq!(given::numbers(&contents), [1, 2, 5, 6]);
    let refused = BundleWriter::resume(folder.path(), given::STUDY, &given::facts(), &given::plan(4));
    assert!(matches!(refused, Err(BundleError::Complete(_))), "{refused:?}");
}
