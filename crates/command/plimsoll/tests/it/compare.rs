//! `plimsoll compare`: two bundles of the same study.

use crate::common::{Place, START, TINY, edited};

/// The tiny study by its mean, which is there even where a busy machine leaves time for a few iterations.
fn tiny() -> String {
    edited(TINY, "iteration_duration.p50", "iteration_duration.avg")
}

/// A folder with the bundles `first` and `second` of the tiny study.
fn two_runs() -> Place {
    let place = Place::with_study(&tiny());
    for out in ["first", "second"] {
        run(&place, "study.toml", out);
    }
    place
}

/// Runs a study to its end, whatever its verdicts.
fn run(place: &Place, study: &str, out: &str) {
    place.plimsoll(&["run", study, "--out", out]);
    assert!(place.read(&format!("{out}/manifest.jsonl")).contains("\"complete\""), "the run came to its end");
}

#[test]
fn two_runs_are_compared_and_written_in_three_ways() {
    let place = two_runs();
    let ended = place.plimsoll(&["compare", "first", "second", "--out", "compared.md"]).with(4);
    let ended = ended.prints(&[
        "tiny: the second run against the first",
        "Nothing differs that the bundles know of, but the time: whatever is seen is drift of the machine",
        "The baseline itself",
        "2 repeats give a range, not an interval",
        "caution: The second began",
    ]);
    assert!(!ended.stdout.contains("NaN"), "{}", ended.stdout);
    let written = place.read("compared.md");
    for text in ["# tiny: the second run against the first", "## What decides", "## Everything else", "noise floors"] {
        assert!(written.contains(text), "{text} is not in:\n{written}");
    }
    place
        .plimsoll(&["compare", "first", "second", "--json"])
        .with(4)
        .prints(&["\"format\": 1", "\"basis\": \"ratios_to_baseline\""]);
    place.plimsoll(&["compare", "first", "second", "--gate"]).with(5);
}

#[test]
fn what_differs_is_named_and_another_load_is_refused() {
    let place = two_runs();
    let started = "start = \"'{plimsoll}' demo-server --mode '{mode}' --listen {address}\"\nenv = { POOL = \"30\" }";
    place.write("settings.toml", edited(&tiny(), START, started));
    run(&place, "settings.toml", "settings");
    place.plimsoll(&["compare", "first", "settings"]).prints(&[
        "One thing differs, and the comparison is about it",
        "variable POOL of counter: none in the first, 30 in the second",
    ]);
    let started = "start = \"'{plimsoll}' demo-server --listen {address} --mode '{mode}'\"";
    place.write("command.toml", edited(&tiny(), START, started));
    run(&place, "command.toml", "command");
    place.plimsoll(&["compare", "first", "command"]).prints(&["demo-server --listen 127.0.0.1:{port} --mode"]);
    let load = edited(&edited(&tiny(), "think    = \"1ms\"", "think = \"2ms\""), "users = [2]", "users = [2, 3]");
    place.write("load.toml", edited(&load, "duration = \"300ms\"", "duration = \"200ms\""));
    run(&place, "load.toml", "load");
    place.plimsoll(&["compare", "first", "load"]).with(2).says(&[
        "first and load cannot be compared",
        "think time first: 1ms second: 2ms",
        "end of the measure phase first: after 300ms second: after 200ms",
    ]);
}

#[test]
fn damaged_bundles_are_read_as_far_as_they_go() {
    let place = two_runs();
    std::fs::write(place.path("second/starts/0001/start.json"), "{").unwrap();
    std::fs::remove_file(place.path("second/study.toml")).unwrap();
    place.plimsoll(&["compare", "first", "second"]).with(4).prints(&[
        "problem: A bundle is damaged, was changed after the run, or is not complete",
        "trial 1 is left out",
        "Some things could not be held against each other",
    ]);
    std::fs::write(place.path("second/plan.json"), "{").unwrap();
    place.plimsoll(&["compare", "first", "second"]).with(2).says(&["plan.json is damaged"]);
}

#[test]
fn what_was_declared_later_is_not_judged() {
    let place = two_runs();
    for out in ["first", "second"] {
        let study = place.read(&format!("{out}/study.json"));
        std::fs::write(place.path(&format!("{out}/study.json")), edited(&study, "\"margin\":", "\"margin\": "))
            .unwrap();
    }
    place.plimsoll(&["compare", "first", "second"]).with(2).says(&[
        "first/study.json was changed after the run",
        "second/study.json was changed after the run",
        "not those that were declared",
    ]);
}

#[test]
fn what_is_no_pair_of_bundles_is_refused() {
    let place = Place::with_study(TINY);
    place.plimsoll(&["compare", "nowhere", "."]).with(2).says(&[
        "expected a bundle, found no manifest.jsonl in nowhere",
        "expected a bundle, found no manifest.jsonl in .",
    ]);
    run(&place, "study.toml", "first");
    place.plimsoll(&["compare", "first", "./first/"]).with(2).says(&["are the same bundle: name two runs"]);
    std::fs::create_dir(place.path("copy")).unwrap();
    copy(&place.path("first"), &place.path("copy"));
    place.plimsoll(&["compare", "first", "copy"]).with(2).says(&["first and copy are copies of the same run"]);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
