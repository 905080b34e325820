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
    place.plimsoll(&["check", "study.toml"]).with(0).prints(&["study.toml: no errors; 4 trials"]);
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&["4 trials, 1.4 s under load"]);
    place.plimsoll(&["plan", "study.toml", "--quick"]).with(0);
    let left: Vec<_> = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["study.toml"], "nothing but the study is there");
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
fn the_run_follows_the_plan_that_was_printed() {
    let place = Place::with_study(TINY);
    let plan = place.plimsoll(&["plan", "study.toml"]).with(0).stdout;
    let run = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(0).stderr;
    let planned: Vec<&str> = plan.lines().filter(|line| line.ends_with("ms + 300 ms")).collect();
    assert_eq!(planned.len(), 4);
    for (number, row) in (1..).zip(planned) {
        let mode = if row.contains("mutex") { "mutex" } else { "inputQ" };
        assert!(run.contains(&format!("{number}/4 {mode} ")), "trial {number} was to be {mode}:\n{run}");
    }
}

/// The studies of this repository, which `check` must find in order. It looks for the programs
/// that they need, Go among them.
#[test]
fn the_studies_of_the_repository_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let folders = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let studies = files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let place = Place::empty();
    let mut checked = 0;
    for study in studies {
        let study = study.to_str().unwrap();
        let ended = place.plimsoll(&["check", study]);
        checked += 1;
        if ended.stderr.contains("the program `go`") {
            eprintln!("SKIPPED: {study} needs Go");
            continue;
        }
        ended.with(0).prints(&["no errors"]);
    }
    assert!(checked >= 2, "found {checked} studies");
}
