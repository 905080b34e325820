//! A study that compares nothing: it describes one system, and two of its bundles can be compared.

use crate::common::{Place, START, TINY, edited};

/// The mutex alone, at two numbers of users, in three trials each. Its mean is there even where a busy machine leaves
/// time for a few iterations.
fn alone() -> String {
    let study =
        edited(TINY, "mode  = { levels = [\"mutex\", \"inputQ\"], compare = true, baseline = \"mutex\" }\n", "");
    let study = edited(&study, "--mode {mode}", "--mode mutex");
    let study = edited(&study, "iteration_duration.p50", "iteration_duration.avg");
    edited(&edited(&study, "users = [2]", "users = [2, 3]"), "repeats  = 2", "repeats  = 3")
}

/// Its system with a variable in its environment, as a later version of it would have one.
fn later() -> String {
    let start = START.replace("--mode {mode}", "--mode mutex");
    edited(&alone(), &start, &format!("{start}\nenv = {{ POOL = \"30\" }}"))
}

#[test]
fn one_system_is_described_and_judged_by_nobody() {
    let place = Place::with_study(&alone());
    place.plimsoll(&["check", "study.toml"]).with(0).prints(&["6 trials of one system, nothing compared"]);
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&["one system; nothing is compared"]);
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(0).says(&["6/6"]).prints(&[
        "Iterations, mean: ",
        " at 2 users, ",
        "(n = 3 under each)",
        "95 % interval",
        "iterations per second",
    ]);
    for word in ["verdict", "undecided", "baseline", "gate"] {
        assert!(!ended.stdout.contains(word), "{word} in:\n{}", ended.stdout);
    }
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert_eq!((bundle.problems.len(), bundle.plan.starts.len(), bundle.plan.describes()), (0, 6, true));
    for text in ["## Values", "| iterations, mean | 2 users |", "nothing compared: n = 3 trials"] {
        assert!(place.read("bundle/report/report.md").contains(text), "{text}");
    }
    assert!(!place.has("bundle/report/comparisons.csv") && place.has("bundle/report/results.csv"));
    place.plimsoll(&["report", "bundle"]).with(0).prints(&["Iterations, mean: "]);
    place.plimsoll(&["report", "bundle", "--gate"]).with(2).says(&["`--gate` passes where the verdicts show"]);
}

#[test]
fn what_takes_verdicts_is_refused_before_anything_starts() {
    let place = Place::with_study(&alone());
    let why = "this study reaches none: it compares nothing, and describes one system";
    for arguments in
        [&["run", "study.toml", "--until-decided", "--out", "bundle"][..], &["plan", "study.toml", "--until-decided"]]
    {
        place.plimsoll(arguments).with(2).says(&["`--until-decided` ends a run when every verdict is reached", why]);
    }
    place.plimsoll(&["run", "study.toml", "--gate", "--out", "bundle"]).with(2).says(&["`--gate` passes", why]);
    assert!(!place.has("bundle"));
}

#[test]
fn two_bundles_of_one_system_are_compared() {
    let place = Place::with_study(&alone());
    place.write("later.toml", later());
    for (study, out) in [("study.toml", "first"), ("study.toml", "again"), ("later.toml", "later")] {
        place.plimsoll(&["run", study, "--out", out]).with(0);
    }
    let ended = place.plimsoll(&["compare", "first", "later"]).with_any_verdict().prints(&[
        "One thing differs, and the comparison is about it: variable POOL of counter: none in the first, 30 in the second",
        "for the system",
        "the system at 2 users",
        "Iterations, mean: ",
    ]);
    assert!(!ended.stdout.contains("baseline") && !ended.stdout.contains("noise floor"), "{}", ended.stdout);
    let verdict = |line: &str| ["better", "worse", "equivalent", "inconclusive"].iter().any(|word| line.contains(word));
    let judged = ended.stdout.lines().filter(|line| line.starts_with("the system at") && verdict(line)).count();
    assert_eq!(judged, 2, "a verdict under each condition:\n{}", ended.stdout);

    let ended = place.plimsoll(&["compare", "first", "again"]).prints(&["Nothing differs that the bundles know of"]);
    assert!([Some(0), Some(4)].contains(&ended.code()), "nothing known differs, so nothing is worse: {ended:?}");
    assert!(!ended.stdout.contains("baseline"), "{}", ended.stdout);
}

#[test]
fn a_machine_is_measured_with_a_study_of_one_system() {
    let place = Place::with_study(&alone());
    let ended = place.plimsoll(&["doctor", "--aa", "study.toml", "--blocks", "3", "--out", "bundle"]);
    assert!([Some(0), Some(1), Some(4)].contains(&ended.code()), "{ended:?}");
    ended.prints(&["Noise floor: the system against itself, 2 users, 3 pairs"]);
}

#[test]
fn a_study_of_one_system_to_start_from_has_no_faults() {
    let place = Place::empty();
    place.plimsoll(&["init", "--describe", "web"]).with(0).prints(&["wrote web/study.toml"]);
    place.plimsoll(&["check", "web/study.toml"]).with(0).prints(&["10 trials of one system, nothing compared"]);
}
