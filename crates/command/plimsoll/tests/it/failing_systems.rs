//! Systems that do not come up, die under load, or reply wrongly: exit code 3, and why.

use crate::common::{Place, START, TINY, WAIT_FOR_USERS, edited};
use plimsoll_model::start::Validity;

/// Serves until it is stopped; in the mode `dying` until it has users.
const SERVER: &str = r#"
"$1" demo-server --mode mutex --listen "$3" &
server=$!
if [ "$2" = dying ]; then
    wait_for_users "$3"
    sleep 0.2
    echo "fatal: out of memory"
    kill -9 $server
    exit 7
fi
wait
"#;

fn validities(place: &Place) -> Vec<(usize, Validity)> {
    let trials = plimsoll_bundle::read(&place.path("bundle")).unwrap().starts;
    trials.into_iter().map(|trial| (trial.summary.start.variants[0], trial.validity())).collect()
}

#[test]
fn a_system_that_dies_under_load_fails_its_trials_and_no_others() {
    let study = edited(TINY, START, "start = \"sh '../server.sh' '{plimsoll}' {mode} {address}\"\ndir = \"work\"");
    let study = study.replace("\"inputQ\"", "\"dying\"").replace("\"300ms\"", "\"2s\"");
    let place = Place::with_study(&edited(&study, "repeats  = 2", "repeats  = 1"));
    place.write("server.sh", [WAIT_FOR_USERS, SERVER].concat());
    std::fs::create_dir(place.path("work")).unwrap();
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[
        "dying · users = 2 · failed: the system `counter` ended by itself",
        "exit code 7",
        "fatal: out of memory",
    ]);
    place.nothing_runs();
    for (variant, validity) in validities(&place) {
        match (variant, validity) {
            (0 | 2, validity) => assert!(validity.counts(), "{validity:?}\n{}", ended.stderr),
            (_, Validity::Failed(reasons)) => assert!(reasons[0].contains("out of memory"), "{reasons:?}"),
            (_, validity) => panic!("a trial whose system died is {validity:?}"),
        }
    }
    let named = ended.stderr.split("all of it in ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    assert!(place.has(named), "the message names {named}, which is not there");
}

#[test]
fn a_run_in_which_all_of_a_block_has_failed_does_not_go_on() {
    let study = edited(TINY, START, "start = \"sh server.sh '{plimsoll}' {mode} {address}\"");
    let place = Place::with_study(&edited(&study, "\"300ms\"", "\"2s\""));
    place.write("server.sh", [WAIT_FOR_USERS, &SERVER.replace("\"$2\" = dying", "true")].concat());
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3);
    ended.says(&["6 trials", "3/6", "all 3 trials failed, and so would others, so the run was broken off"]);
    place.nothing_runs();
    assert_eq!(validities(&place).len(), 3, "each variant had its chance");
}

#[test]
fn wrong_replies_fail_a_trial() {
    let study = TINY.replace("\"inputQ\"", "\"racy\"").replace("users = [2]", "users = [64]");
    // A busy machine may answer none of so many users within less than a second.
    let place = Place::with_study(&edited(&edited(&study, "think    = \"1ms\"\n", ""), "\"300ms\"", "\"1s\""));
    place
        .plimsoll(&["run", "study.toml", "--out", "bundle"])
        .with(3)
        .says(&["failed: wrong replies to `increment`: expected the numbers 1 to", "once each"]);
    for (variant, validity) in validities(&place) {
        // A race is a matter of chance: not every trial of the racy mode need have one.
        assert!(validity.counts() || variant == 1, "{validity:?}");
    }
}

#[test]
fn a_system_that_never_gets_ready_ends_the_run_with_its_last_output() {
    let start = "start = \"sh -c 'echo still warming {mode}; sleep 1000 & sleep 1000'\"\n\
                 ready = { tcp = \"{address}\", within = \"1s\" }";
    let place = Place::with_study(&edited(TINY, START, start));
    let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[
        "the system `counter` was not ready within 1.0 s",
        "expected a connection to 127.0.0.1:",
        "found Connection refused",
        "still warming mutex",
        "trial 1 failed, and so would another of `mutex`, so the run was broken off",
    ]);
    place.nothing_runs();
    assert_eq!(ended.stderr.matches("was not ready").count(), 1, "it is said once:\n{}", ended.stderr);
    assert_eq!(validities(&place).len(), 1, "what never came up is not tried again and again");
    let named = ended.stderr.split("all of it in ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    assert!(place.has(named), "the message names {named}, which is not there");
}

#[test]
fn in_turns_it_is_the_variant_that_does_not_come_up_which_is_named() {
    let start = "start = \"sh -c '[ {mode} = mutex ] || exit 1; exec \\\"$0\\\" demo-server --mode {mode} --listen {address}' \
                 '{plimsoll}'\"";
    let study = edited(TINY, START, start).replace("design   = \"trials\"", "design   = \"turns\"");
    let place = Place::with_study(&study);
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[
        "failed: inputQ: the system `counter` ended by itself",
        "start 1 failed, and so would another of `inputQ`, so the run was broken off",
    ]);
    place.nothing_runs();
}

#[test]
fn in_turns_it_is_the_variant_whose_load_cannot_be_offered_which_is_named() {
    let study = TINY
        .replace(
            "[\"mutex\", \"inputQ\"], compare = true, baseline = \"mutex\"",
            "[\"increment\", \"vanish\"], compare = true, baseline = \"increment\"",
        )
        .replace("--mode {mode}", "--mode mutex")
        .replace(
            "call    = \"counter.incrementCounter/increment\"",
            "name = \"call\", call = \"counter.incrementCounter/{mode}\"",
        )
        .replace("design   = \"trials\"", "design   = \"turns\"");
    let place = Place::with_study(&study);
    place
        .plimsoll(&["run", "study.toml", "--out", "bundle"])
        .with(3)
        .says(&["failed: vanish: ", "start 1 failed, and so would another of `vanish`, so the run was broken off"]);
    place.nothing_runs();
}

#[test]
fn a_system_that_dies_before_anything_is_measured_is_tried_once_more() {
    let study = edited(TINY, START, "start = \"sh server.sh '{plimsoll}' {mode} {address}\"");
    let study = study.replace("\"inputQ\"", "\"dying\"").replace("\"50ms\"", "\"3s\"");
    for (design, what) in [("trials", "trial "), ("turns", "start 2")] {
        let place = Place::with_study(&study.replace("\"trials\"", &format!("\"{design}\"")));
        place.write("server.sh", [WAIT_FOR_USERS, SERVER].concat());
        let ended = place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3);
        ended.says(&[what, " failed, and so would another of `dying`, so the run was broken off"]);
        place.nothing_runs();
    }
}

#[test]
fn a_build_that_fails_ends_the_run_with_its_last_output() {
    let build = format!("build = \"sh -c 'echo undefined: counter; exit 2'\"\n{START}");
    let place = Place::with_study(&edited(TINY, START, &build));
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[
        "the build command `sh -c echo undefined: counter; exit 2` of the system `counter` failed with exit code 2",
        "undefined: counter",
    ]);
    assert_eq!(validities(&place), []);
}

#[test]
fn a_version_command_that_fails_ends_the_run() {
    let version = format!("version = \"sh -c 'echo no such flag; exit 64'\"\n{START}");
    let place = Place::with_study(&edited(TINY, START, &version));
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[
        "the version command",
        "of the system `counter` failed with exit code 64",
        "no such flag",
    ]);
    assert_eq!(validities(&place), []);
}

#[test]
fn a_system_that_does_not_come_up_takes_the_others_with_it() {
    let second =
        "[system.proxy]\nstart = \"sh -c 'echo no backend; exit 1'\"\nready = { log = \"ready\" }\n\n[workload]";
    let place = Place::with_study(&edited(TINY, "[workload]", second));
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[
        "the system `proxy` ended by itself",
        "exit code 1",
        "no backend",
    ]);
    place.nothing_runs();
    assert!(place.has("bundle/starts/0001/output-counter.log"), "the other one had been started");
}

#[test]
fn what_reflection_does_not_know_ends_the_run_before_any_load() {
    for (from, to, says) in [
        ("/increment\"", "/decrement\"", "no method `decrement` in service `counter.incrementCounter`"),
        ("{ value = 1 }", "{ valeu = 1 }", "unrecognized field name 'valeu' (its fields: `value`)"),
    ] {
        let place = Place::with_study(&edited(TINY, from, to));
        place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(3).says(&[says]);
        place.nothing_runs();
        assert_eq!(validities(&place).len(), 1, "one trial is enough to know that");
    }
}
