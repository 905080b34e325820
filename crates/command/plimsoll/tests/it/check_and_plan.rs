//! `check` and `plan`: what they say, and that they start nothing.

use crate::common::{Place, START, TINY, edited};
use std::path::Path;

/// A study whose commands would leave a file behind.
fn telltale() -> String {
    let commands = r#"build   = "touch built"
version = "touch versioned"
start   = "touch started-{mode}""#;
    edited(TINY, START, commands).replace("{counter.address}", "127.0.0.1:1")
}

#[test]
fn check_and_plan_start_nothing() {
    let place = Place::with_study(&telltale());
    place
        .plimsoll(&["check", "study.toml"])
        .with(0)
        .prints(&["study.toml: no errors; 6 trials, 2 of them of mutex (duplicate), 2.1 s under load"]);
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&[
        "6 trials, 2 of them of mutex (duplicate), 2.1 s under load",
        "up to 3 more trials if some do not count",
    ]);
    place.plimsoll(&["plan", "study.toml", "--quick"]).with(0);
    let left: Vec<_> = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["study.toml"], "nothing but the study is there");
}

#[test]
fn check_says_with_its_place_what_a_trial_cannot_have() {
    let study = edited(&telltale(), "\"1ms\"", "\"20ms\"");
    let study = edited(&study, "iteration_duration.p50", "request_duration.p95");
    let place = Place::with_study(&study);
    place.plimsoll(&["check", "study.toml"]).with(0).prints(&["no errors"]).says(&[
        "p95 takes 200 requests; 2 users with 20 ms of thinking do at most 30 in 300 ms",
        "study.toml:31:12",
        "duration = \"300ms\"",
    ]);
}

#[test]
fn the_plan_names_every_trial_in_order() {
    let study = edited(TINY, "users = [2]", "users = [2, 10]");
    let place = Place::with_study(&edited(&study, "repeats  = 2", "repeats  = 3"));
    let plan = place.plimsoll(&["plan", "study.toml"]).with(0);
    insta::assert_snapshot!("plan", plan.stdout);
    assert_eq!(place.plimsoll(&["plan", "study.toml"]).stdout, plan.stdout, "the same seed gives the same order");
}

#[test]
fn the_plan_of_a_run_that_may_end_early_names_its_looks() {
    let place = Place::with_study(TINY);
    let plan = |arguments: &[&str]| place.plimsoll(&[&["plan", "study.toml"], arguments].concat());
    plan(&["--until-decided"]).with(0).prints(&[
        "repeats 10",
        "looks after 5, 7 and 10 repeats; the run ends at the first at which every verdict is reached",
        "30 trials, 10 of them of mutex (duplicate), 10.5 s under load",
    ]);
    assert!(!plan(&[]).stdout.contains("looks"), "a run of all repeats has none");
    plan(&["--until-decided", "--quick"]).with(2).says(&["cannot be used with"]);
    let own = edited(&edited(TINY, "repeats  = 2\n", ""), "question", "looks = [6, 8]\nquestion");
    place.write("study.toml", own);
    plan(&["--until-decided"]).with(0).prints(&["repeats 8", "looks after 6 and 8 repeats"]);
    plan(&[]).with(0).prints(&["repeats 8"]);
}

#[test]
fn without_a_noise_floor_the_baseline_runs_once_in_each_block() {
    let place = Place::with_study(&edited(TINY, "question", "noise_floor = false\nspare_blocks = 0\nquestion"));
    let plan = place.plimsoll(&["plan", "study.toml"]).with(0).prints(&["4 trials, 1.4 s under load"]);
    assert!(!plan.stdout.contains("duplicate") && !plan.stdout.contains("more trials"), "{}", plan.stdout);
}

#[test]
fn a_time_with_room_for_millions_of_starts_is_refused() {
    let place = Place::with_study(TINY);
    let plan = |time: &str| place.plimsoll(&["plan", "study.toml", "--for", time]);
    plan("100000d").with(2).says(&["`--for` 2400000h0m0s has room for", "repeats of this study", "give less time"]);
    plan("1m").with(0);
}

#[test]
fn the_run_follows_the_plan_that_was_printed() {
    let place = Place::with_study(TINY);
    let plan = place.plimsoll(&["plan", "study.toml"]).with(0).stdout;
    let run = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict().stderr;
    let planned: Vec<&str> = plan.lines().filter(|line| line.ends_with("ms + 300 ms")).collect();
    assert_eq!(planned.len(), 6);
    for (number, row) in (1..).zip(planned) {
        let mode = ["mutex (duplicate)", "mutex", "inputQ"].into_iter().find(|mode| row.contains(mode)).unwrap();
        assert!(run.contains(&format!("{number}/6 {mode} ·")), "trial {number} was to be {mode}:\n{run}");
    }
}

/// The studies of this repository, which `check` must find in order. It looks for the programs
/// that they need: Go, servers of databases.
#[test]
fn the_studies_of_the_repository_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
    let folders = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let studies = files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let place = Place::empty();
    let mut checked = 0;
    for study in studies {
        let study = study.to_str().unwrap();
        let ended = place.plimsoll(&["check", study]);
        checked += 1;
        if ["the program `go`", "was not found: looked for"].iter().any(|missing| ended.stderr.contains(missing)) {
            eprintln!("SKIPPED: {study} needs a program that is not there: {}", ended.stderr);
            continue;
        }
        ended.with(0).prints(&["no errors"]);
    }
    assert!(checked >= 2, "found {checked} studies");
}
