//! A run that was broken off goes on where it was.

use crate::common::{Place, TINY, edited};
use plimsoll_model::start::Start;
use rustix::process::Signal;
use std::fs;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];
const RESUME: [&str; 5] = ["run", "study.toml", "--resume", "--out", "bundle"];

/// Breaks a run off in its second trial or soon after; gives the whole lines of its manifest.
fn broken_off_by(signal: Signal) -> (Place, String) {
    let place = Place::with_study(&edited(TINY, "\"300ms\"", "\"800ms\""));
    let mut run = place.start(&RUN);
    run.wait_until("the end of the first trial", |run| run.stderr().contains("1/6 mutex"));
    run.signal(signal);
    run.end();
    place.wait_for_silence();
    let manifest = place.read("bundle/manifest.jsonl");
    let whole = manifest.rfind('\n').map_or(0, |end| end + 1);
    assert!(!manifest.contains("complete"), "the run had ended already");
    assert!(manifest.contains("\"start 1\""), "{manifest}");
    (place, manifest[..whole].to_owned())
}

/// Goes on, and looks at the bundle.
fn goes_on(place: &Place, before: &str) {
    place
        .plimsoll(&RESUME)
        .with_any_verdict()
        .says(&["6 trials, ", " of them done before"])
        .prints(&["Does a channel cost more than a mutex?"]);
    place.nothing_runs();
    let manifest = place.read("bundle/manifest.jsonl");
    assert!(manifest.starts_with(before), "sealed trials stay as they were:\n{before}\nis now\n{manifest}");
    for number in 1..=6 {
        assert_eq!(manifest.matches(&format!("\"start {number}\"")).count(), 1, "trial {number} is sealed once");
    }
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert!(bundle.complete);
    assert_eq!(bundle.problems, Vec::<String>::new());
    let ran: Vec<Start> = bundle.starts.iter().map(|trial| trial.summary.start.clone()).collect();
    assert_eq!(ran, bundle.plan.starts);
}

#[test]
fn an_interrupted_run_goes_on() {
    let (place, before) = broken_off_by(Signal::INT);
    goes_on(&place, &before);
}

#[test]
fn a_killed_run_goes_on() {
    let (place, before) = broken_off_by(Signal::KILL);
    goes_on(&place, &before);
}

#[test]
fn an_interrupted_run_has_a_report_of_what_had_ended() {
    let (place, _) = broken_off_by(Signal::INT);
    place
        .plimsoll(&["report", "bundle"])
        .with(0)
        .says(&["bundle: the run did not come to its end"])
        .prints(&["bundle/report/report.html"]);
}

#[test]
fn a_run_does_not_go_on_with_another_study() {
    let (place, before) = broken_off_by(Signal::INT);
    let study = place.read("study.toml");
    place.write("study.toml", edited(&study, "think    = \"1ms\"", "think    = \"2ms\""));
    place.plimsoll(&RESUME).with(2).says(&["cannot go on with bundle", "study differs", "start a new bundle"]);
    place.write("study.toml", &study);
    place.plimsoll(&[&RESUME[..], &["--quick"]].concat()).with(2).says(&["cannot go on with bundle", "differs"]);
    assert_eq!(place.read("bundle/manifest.jsonl"), before, "the bundle is as it was");
}

#[test]
fn a_complete_run_is_judged_again_and_stays_as_it_is() {
    let place = Place::with_study(TINY);
    place.plimsoll(&RUN).with_any_verdict();
    let (before, events) = (place.read("bundle/manifest.jsonl"), place.read("bundle/events.jsonl"));
    place.plimsoll(&RESUME).with_any_verdict().says(&["bundle is complete: there is nothing left to run"]);
    // Two repeats prove nothing.
    place.plimsoll(&[&RESUME[..], &["--gate"]].concat()).with(5).prints(&["gate    not passed"]);
    place.plimsoll(&["report", "bundle", "--gate"]).with(5).prints(&["gate    not passed"]);
    place.plimsoll(&["report", "bundle"]).with(0);
    assert_eq!((place.read("bundle/manifest.jsonl"), place.read("bundle/events.jsonl")), (before, events));
    place.write("study.toml", edited(TINY, "think    = \"1ms\"", "think    = \"2ms\""));
    place.plimsoll(&RESUME).with(2).says(&["its study differs"]);
}

#[test]
fn a_complete_run_whose_report_cannot_be_written_says_that_it_is_complete() {
    let place = Place::with_study(TINY);
    place.plimsoll(&RUN).with_any_verdict();
    fs::remove_dir_all(place.path("bundle/report")).unwrap();
    place.write("bundle/report", "in the way");
    let before = place.read("bundle/manifest.jsonl");
    // As on a read-only disk: nobody may write the bundle, and no report fits into it.
    let locked = fs::File::open(place.path("bundle/manifest.jsonl")).unwrap();
    locked.try_lock().unwrap();
    place.plimsoll(&RESUME).with(2).says(&[
        "bundle is complete: there is nothing left to run",
        "failed to make the folder bundle/report",
        "for a report elsewhere: plimsoll report bundle --out DIR",
    ]);
    place.plimsoll(&["report", "bundle", "--out", "elsewhere"]).with(0).prints(&["elsewhere/report.html"]);
    assert_eq!(place.read("bundle/manifest.jsonl"), before);
}

#[test]
fn a_run_that_was_broken_off_does_not_pass_the_gate() {
    let (place, _) = broken_off_by(Signal::INT);
    place.plimsoll(&["report", "bundle", "--gate"]).with(5).prints(&["the run did not come to its end"]);
}

#[test]
fn two_runs_do_not_write_one_bundle() {
    let place = Place::with_study(&edited(TINY, "\"300ms\"", "\"60s\""));
    let run = place.start_until_it_runs(&RUN, "demo-server");
    place.plimsoll(&RESUME).with(2).says(&["bundle is being written by another run"]);
    run.signal(Signal::INT);
    run.end().with(130);
}

#[test]
fn a_damaged_bundle_is_named_and_the_rest_is_reported() {
    let place = Place::with_study(TINY);
    place.plimsoll(&RUN).with_any_verdict();
    let path = place.path("bundle/starts/0002/load.csv");
    let table = fs::read_to_string(&path).unwrap();
    fs::write(&path, table.replacen("increment", "excrement", 1)).unwrap();
    fs::remove_file(place.path("bundle/starts/0003/totals.csv")).unwrap();
    place
        .plimsoll(&["report", "bundle"])
        .with(0)
        .says(&[
            "starts/0002/load.csv was changed after the run",
            "trial 2 is left out",
            "starts/0003/totals.csv cannot be read",
            "trial 3 is left out",
        ])
        .prints(&["Does a channel cost more than a mutex?"]);
    fs::write(place.path("bundle/plan.json"), "{").unwrap();
    place.plimsoll(&["report", "bundle"]).with(2).says(&["bundle/plan.json is damaged"]);
    place.plimsoll(&["report", "nowhere"]).with(2).says(&["expected a bundle, found no manifest.jsonl in nowhere"]);
}
