//! A study that goes well: what it prints and what its bundle holds.

use crate::common::{Place, START, TINY, edited};
use plimsoll_bundle::Contents;
use plimsoll_model::start::Start;

fn bundle(place: &Place, name: &str) -> Contents {
    plimsoll_bundle::read(&place.path(name)).unwrap()
}

#[test]
fn a_study_runs_from_its_file_to_the_answer() {
    let place = Place::with_study(TINY);
    place
        .plimsoll(&["run", "study.toml", "--out", "bundle"])
        .with_any_verdict()
        .says(&["tiny", "6 trials, 2.1 s under load", "6/6", "mutex (duplicate)"])
        .prints(&[
            "Does a channel cost more than a mutex?",
            "inputQ against mutex",
            "report",
            "bundle/report/report.md",
        ]);
    place.nothing_runs();
    assert!(place.has("bundle/report/report.html") && place.has("bundle/report/report.md"));

    let bundle = bundle(&place, "bundle");
    assert_eq!(bundle.problems, Vec::<String>::new());
    assert!(bundle.complete);
    assert_eq!(bundle.study, TINY, "the study is kept as written");
    let ran: Vec<Start> = bundle.starts.iter().map(|trial| trial.summary.start.clone()).collect();
    assert_eq!(ran, bundle.plan.starts, "every trial of the plan ran, in its order");
    for trial in &bundle.starts {
        let number = trial.summary.start.number;
        assert!(trial.validity().counts(), "trial {number}: {:?}", trial.validity());
        let check = &trial.loads[0].summary.replies.sequences["increment"];
        assert!(check.holds() && check.replies > 0, "trial {number}: {check:?}");
        assert!(trial.loads[0].tallies.values().all(|tally| tally.failed() == 0), "trial {number} has errors");
        assert!(trial.processes.iter().any(|row| row.system == "counter" && row.processes >= 1), "trial {number}");
        assert!(!trial.host.is_empty() && !trial.loads[0].generator.is_empty(), "trial {number} lacks telemetry");
        assert!(place.has(&format!("bundle/starts/{number:04}/output-counter.log")), "trial {number}");
    }
}

#[test]
fn the_program_under_test_is_known_by_its_hash_and_by_what_it_says_of_itself() {
    let version = "[system.counter]\nversion = \"'{plimsoll}' --version\"\n";
    let place = Place::with_study(&edited(TINY, "[system.counter]\n", version));
    place.plimsoll(&["run", "study.toml", "--out", "bundle", "--quick"]).with(0);
    let versions = bundle(&place, "bundle").versions;
    let [version] = versions.as_slice() else { panic!("expected one program, found {versions:?}") };
    assert_eq!(version.name, "counter");
    let printed = format!("plimsoll {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.version.as_deref(), Some(printed.as_str()));
    let hash = version.sha256.as_deref().unwrap_or_default();
    assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash:?}");
}

#[test]
fn what_a_build_and_a_system_write_is_kept() {
    let commands = r#"build = "sh -c 'echo building once >> builds; cat builds'"
start = "sh -c 'echo serving {mode}; exec \"$0\" demo-server --mode {mode} --listen {address}' '{plimsoll}'""#;
    let place = Place::with_study(&edited(TINY, START, commands));
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict().says(&["built counter"]);
    assert_eq!(place.read("bundle/build-counter.log"), "building once\n", "one build for all trials");
    for trial in bundle(&place, "bundle").starts.iter().map(|trial| &trial.summary.start) {
        let mode = if trial.variants == [1] { "inputQ" } else { "mutex" };
        let output = place.read(&format!("bundle/starts/{:04}/output-counter.log", trial.number));
        assert!(output.starts_with(&format!("serving {mode}\n")), "trial {}: {output}", trial.number);
    }
}

#[test]
fn behind_a_wrapper_the_program_that_really_ran_is_known_too() {
    let wrapped = r#"start = "sh -c 'exec \"$0\" demo-server --mode {mode} --listen {address}' '{plimsoll}'""#;
    let place = Place::with_study(&edited(TINY, START, wrapped));
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    let bundle = bundle(&place, "bundle");
    assert_eq!(bundle.problems, Vec::<String>::new());
    let versions = bundle.versions;
    let [shell, server] = versions.as_slice() else { panic!("expected two programs, found {versions:?}") };
    assert_eq!((shell.name.as_str(), shell.program.as_str()), ("counter", "sh"));
    assert_eq!(server.name, "counter");
    assert!(server.program.ends_with("/plimsoll"), "{server:?}");
    assert_ne!(shell.sha256, server.sha256);
}

#[test]
fn without_out_the_bundle_is_named_by_study_and_time() {
    let place = Place::with_study(TINY);
    std::fs::rename(place.path("study.toml"), place.path("counting.toml")).unwrap();
    place.plimsoll(&["run", "counting.toml", "--quick"]).with(0).says(&["bundle plimsoll-runs/counting-"]);
    assert_eq!(std::fs::read_dir(place.path("plimsoll-runs")).unwrap().count(), 1);
}

#[test]
fn a_generator_at_its_limit_makes_trials_void_and_the_run_inconclusive() {
    let busy = edited(TINY, "think    = \"1ms\"\n", "");
    // Of a short load a busy machine may leave the generator nothing, which is then not at its limit.
    let busy = edited(&busy, "\"300ms\"", "\"1s\"");
    let place = Place::with_study(&edited(&busy, "\"100%\"", "0.01"));
    // Where other tests use the processors meanwhile, the run would break off.
    place
        .plimsoll(&["run", "study.toml", "--keep-going", "--out", "bundle"])
        .with(4)
        .says(&["void: the generator was the limit: its busiest thread used", "above 1 %"])
        .prints(&["the generator was the limit"]);
    let trials = bundle(&place, "bundle").starts;
    assert_eq!(trials.len(), 6 + 3, "a void trial does not end the run, and one block is spare");
    let counting: Vec<_> =
        trials.iter().filter(|trial| trial.validity().counts()).map(|one| &one.loads[0].summary).collect();
    assert!(counting.is_empty(), "{counting:#?}");
}

#[test]
fn a_report_removes_no_charts_but_those_of_an_earlier_one() {
    let place = Place::with_study(TINY);
    place.plimsoll(&["run", "study.toml", "--quick", "--out", "bundle"]).with_any_verdict();
    let report = |out: &str| place.plimsoll(&["report", "bundle", "--out", out]);
    report("site").with(0);
    place.write("site/charts/mine.svg", "mine");
    place.write("site/charts/old.png", "a chart of the earlier report");
    let earlier = place.read("site/report.md");
    place.write("site/report.md", format!("{earlier}\n![old](charts/old.png)\n"));
    report("site").with(0);
    assert_eq!(place.read("site/charts/mine.svg"), "mine");
    assert!(place.has("site/charts/answer.png") && !place.has("site/charts/old.png"));
}
