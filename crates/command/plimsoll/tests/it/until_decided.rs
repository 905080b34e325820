//! `run --until-decided`: the run ends at the first look at which every verdict is reached.

use crate::common::{Place, TINY, edited};
use rustix::process::Signal;

const RUN: [&str; 5] = ["run", "study.toml", "--until-decided", "--out", "bundle"];

/// A study with looks after 3 and 4 repeats.
fn with_looks(study: &str) -> String {
    let study = edited(study, "repeats  = 2\n", "looks = [3, 4]\n");
    edited(&study, "question", "spare_blocks = 0\nquestion")
}

/// Every trial has as many iterations as any other, which decides at once.
fn decidable() -> String {
    let study = edited(&with_looks(TINY), "duration = \"300ms\"", "duration = \"10s\"\niterations_per_user = 20")
        .replace("\"50ms\"", "\"0s\"");
    edited(&study, "iteration_duration.p50", "iterations.count")
}

#[test]
fn a_run_ends_when_every_verdict_is_reached() {
    let place = Place::with_study(&decidable());
    place
        .plimsoll(&RUN)
        .with(0)
        .says(&[
            "looks after 3 and 4 repeats; the run ends at the first at which every verdict is reached",
            "12 trials",
            "after 3 repeats everything is decided: the run ends here",
        ])
        .prints(&["Does a channel cost more than a mutex?", "equivalent"]);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert!(bundle.complete);
    assert_eq!(bundle.problems, Vec::<String>::new());
    assert_eq!((bundle.plan.repeats, bundle.plan.starts.len(), bundle.starts.len()), (3, 9, 9));
    assert_eq!(bundle.plan.looks, [3, 4]);
    place.plimsoll(&["report", "bundle"]).with(0).prints(&["equivalent"]);
    let resume = [&RUN[..], &["--resume"]].concat();
    place.plimsoll(&resume).with(0).says(&["bundle is complete: there is nothing left to run"]);
}

#[test]
fn without_the_flag_all_repeats_run() {
    let place = Place::with_study(&decidable());
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(0).says(&["12/12"]);
    assert!(!ended.stderr.contains("verdict is reached"), "{}", ended.stderr);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert_eq!((bundle.plan.repeats, bundle.plan.looks.len(), bundle.starts.len()), (4, 0, 12));
}

#[test]
fn a_run_in_which_nothing_can_be_decided_goes_on_to_its_last_repeat() {
    let study = edited(&with_looks(TINY), "max_cpu      = \"100%\"", "max_cpu      = \"0.0001%\"");
    let place = Place::with_study(&study);
    // A machine that is busy with other tests would end it before.
    let run = [&RUN[..], &["--keep-going"]].concat();
    place.plimsoll(&run).with(4).says(&["after 3 repeats not everything is decided: the run goes on", "12/12"]);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert_eq!((bundle.complete, bundle.plan.repeats, bundle.starts.len()), (true, 4, 12));
}

#[test]
fn the_message_after_an_interruption_names_the_flags_of_the_run() {
    for flag in ["--quick", "--until-decided"] {
        let place = Place::with_study(&edited(TINY, "\"300ms\"", "\"2s\""));
        let run = place.start_until_it_runs(&["run", "study.toml", flag, "--out", "bundle"], "demo-server");
        run.signal(Signal::INT);
        let go_on = format!("go on: plimsoll run study.toml {flag} --resume --out bundle");
        run.end().with(130).says(&["interrupted", &go_on]);
        // Without the flag, it would be another plan.
        place.plimsoll(&["run", "study.toml", "--resume", "--out", "bundle"]).with(2).says(&["differs"]);
        place.wait_for_silence();
    }
}

#[test]
fn a_first_look_has_no_looks() {
    let place = Place::with_study(&decidable());
    place.plimsoll(&[&RUN[..], &["--quick"]].concat()).with(2).says(&["cannot be used with"]);
}
