//! Bundles of format 2, as an earlier version of the program wrote them: a start and its only load were one trial with
//! one set of facts.

use crate::fixture;
use crate::given::{self, SECOND, named};
use plimsoll_bundle::{BundleError, BundleWriter, Contents, read};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::Subject;
use plimsoll_model::result::{StartResult, VariantSystems};
use plimsoll_model::start::{Start, Validity};
use plimsoll_model::study::{Origin, StudyFacts};
use plimsoll_model::units::{Instant, Nanos};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The trials of the bundle: two of the plan, and a block that ran again.
const TRIALS: [u32; 4] = [1, 2, 5, 6];

fn contents() -> Contents {
    read(&fixture::folder("format_2")).expect("a bundle")
}

/// The plan that the run of the bundle began with.
fn plan() -> Plan {
    Plan { with_duplicate: true, looks: vec![1, 2], ..given::plan(4) }
}

/// The block that ran again: the baseline and its duplicate.
fn again() -> [Start; 2] {
    let first = given::start(1).again(5, 3, true);
    let duplicate = Start { number: 6, position: 2, variants: vec![2], ..first.clone() };
    [first, duplicate]
}

/// The file `trial.json` of a trial.
fn written(number: u32) -> Value {
    let path = fixture::folder("format_2").join(format!("trials/{number:04}/trial.json"));
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// What `trial.json` said, put together from where it stands now.
fn as_trial(result: &StartResult) -> Value {
    let [load] = &result.loads[..] else { panic!("a trial is one load: {result:?}") };
    let (start, load) = (&result.summary, &load.summary);
    let [systems] = &start.systems[..] else { panic!("a trial is of one variant: {result:?}") };
    let Start { number, block, repeat, attempt, extended, position, condition, .. } = start.start;
    json!({
        "trial": {
            "number": number,
            "block": block,
            "repeat": repeat,
            "attempt": attempt,
            "extended": extended,
            "position": position,
            "variant": load.load.variant,
            "condition": condition,
        },
        "validity": load.validity,
        "warnings": load.warnings,
        "started_unix_ms": start.timing.started_unix_ms,
        "took": start.timing.took,
        "ready_after": systems.ready_after,
        "window": load.timing.window,
        "steady_from": load.steadiness.from,
        "unsteady": load.steadiness.unsteady,
        "unjudged": load.steadiness.unjudged,
        "headroom": load.headroom,
        "open_load": load.replies.open_load,
        "sequences": load.replies.sequences,
        "error_examples": load.replies.error_examples,
        "storage": load.work.storage(),
        "databases": systems.databases,
        "script": load.work.script(),
    })
}

#[test]
fn a_bundle_of_format_2_reads() {
    let contents = contents();
    assert_eq!(contents.problems, Vec::<String>::new());
    assert!(contents.complete && contents.declared);
    assert_eq!(contents.origin, Origin::Measured);
    let without_file = StudyFacts { file: String::new(), ..given::facts() };
    assert_eq!((contents.study.as_str(), &contents.facts), (given::STUDY, &without_file));
    assert_eq!((contents.host, contents.versions), (given::host(), given::versions()));
    assert_eq!(contents.starts.iter().map(|start| start.summary.start.number).collect::<Vec<_>>(), TRIALS);
}

#[test]
fn a_trial_of_the_plan_is_a_start_of_one_variant() {
    let starts = [&plan().starts[..2], &again()].concat();
    let carried_out = Plan { starts: starts.clone(), repeats: 1, ..plan() };
    let contents = contents();
    assert_eq!(contents.plan, carried_out, "with the block that ran again, without the repeat after the end");
    assert!(contents.starts.iter().map(|start| &start.summary.start).eq(&starts));
}

#[test]
fn every_fact_of_a_trial_has_its_place() {
    for (number, start) in TRIALS.into_iter().zip(&contents().starts) {
        assert_eq!(as_trial(start), written(number), "trial {number}");
    }
}

#[test]
fn what_a_trial_did_not_say_follows_from_what_it_was() {
    for start in &contents().starts {
        let (summary, load) = (&start.summary, &start.loads[0].summary);
        // The format does not record which reasons concern the start alone.
        assert_eq!((&summary.validity, summary.warnings.len()), (&Validity::Valid, 0));
        assert_eq!((load.load.number, load.timing.zero), (1, Instant(0)));
        assert_eq!(Some(load.load.variant), summary.start.only_variant());
        assert_eq!(load.load.lengths, plan().lengths(&summary.start, 1), "longer by the measure phase where extended");
        let VariantSystems { variant, .. } = summary.systems[0];
        assert_eq!(variant, load.load.variant);
    }
}

#[test]
fn the_tables_of_a_trial_are_those_of_its_load() {
    for start in &contents().starts {
        let (number, load) = (start.summary.start.number, &start.loads[0]);
        assert_eq!((load.seconds.len(), load.generator.len()), (6, 3));
        assert!(load.seconds.iter().all(|row| row.load == 1) && load.generator.iter().all(|row| row.load == 1));
        // Trial 5 was steady some time into its first second, so that second is cut from all.
        assert_eq!((load.cut, load.summary.timing.window), (1, Nanos(2 * SECOND.0)));
        for tally in load.tallies.values() {
            assert!(tally.service.equivalent(tally.service.max(), 1_000_000 * u64::from(number)));
        }
        let iterations = &load.tallies[&Subject::Iteration];
        assert_eq!((iterations.count(), iterations.failed(), iterations.bytes_in), (3, 1, 300));
    }
}

#[test]
fn the_samples_of_a_trial_are_of_its_variant() {
    for start in &contents().starts {
        let variant = start.summary.start.variants[0];
        let (mut processes, mut counters) = (given::processes(), given::counters());
        processes.iter_mut().for_each(|sample| sample.variant = variant);
        counters.iter_mut().for_each(|sample| sample.variant = variant);
        assert_eq!((&start.processes, &start.databases), (&processes, &counters));
        assert_eq!(start.host, given::host_series());
    }
}

#[test]
fn damage_is_named_by_the_paths_of_the_format() {
    let bundle = fixture::copy("format_2");
    fs::write(bundle.path().join("trials/0002/load.csv"), "").expect("a file");
    fs::rename(bundle.path().join("trials/0006"), bundle.path().join("trials/0007")).expect("a folder");
    let contents = read(bundle.path()).expect("a bundle");
    assert_eq!(given::numbers(&contents), [1, 5]);
    for word in [
        "trials/0002/load.csv was changed after the run",
        "trial 2 is left out",
        "trials/0006/trial.json cannot be read",
        "trials/0007 is not in the manifest and is left out",
    ] {
        assert!(named(&contents.problems, word), "{word}: {contents:?}");
    }
}

fn resume(bundle: &Path) -> BundleError {
    let refused = BundleWriter::resume(bundle, given::STUDY, &given::facts(), &plan());
    refused.expect_err("nothing is added to a bundle of an earlier format")
}

#[test]
fn a_run_of_format_2_does_not_go_on_and_is_told_what_to_do() {
    let bundle = fixture::copy("format_2");
    let path = bundle.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    let interrupted = &text[..text.find("{\"complete\"").expect("it is complete")];
    fs::write(&path, interrupted).expect("a file");
    let refused = resume(bundle.path());
    assert!(matches!(&refused, BundleError::Earlier { found: 2, .. }), "{refused}");
    let refused = refused.to_string();
    for word in ["has format 2", "this program writes 3", "go on with the version that began it", "start a new bundle"]
    {
        assert!(refused.contains(word), "{refused}");
    }
    assert_eq!(fs::read_to_string(&path).expect("a manifest"), interrupted, "it is left as it was");
}

#[test]
fn a_run_of_format_2_that_is_complete_has_nothing_left_to_run() {
    let refused = resume(&fixture::folder("format_2"));
    assert!(matches!(refused, BundleError::Complete(_)), "{refused}");
}
