//! A block in which a trial does not count runs again as a whole, also after `kill -9`.

use crate::common::{Place, START, Started, TINY, WAIT_FOR_USERS, edited, standing};
use plimsoll_bundle::Contents;
use rustix::process::Signal;

/// Serves until it is stopped; in its third start it dies under load.
const SERVER: &str = r#"
echo >> starts
"$1" demo-server --mode "$2" --listen "$3" &
server=$!
if [ "$(wc -l < starts)" -eq 3 ]; then
    wait_for_users "$3"
    sleep 0.2
    kill -9 $server
    exit 7
fi
wait
"#;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

fn place() -> Place {
    let study = edited(TINY, START, "start = \"sh server.sh '{plimsoll}' {mode} {address}\"");
    let place = Place::with_study(&edited(&study, "\"300ms\"", "\"2s\""));
    place.write("server.sh", [WAIT_FOR_USERS, SERVER].concat());
    place
}

fn bundle(place: &Place) -> Contents {
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert!(bundle.complete);
    assert_eq!(bundle.problems, Vec::<String>::new());
    bundle
}

/// Six trials as planned, and the first block once more.
fn ran_again(bundle: &Contents) {
    let plan = &bundle.plan;
    assert_eq!(bundle.starts.len(), 9);
    for (first, second) in plan.starts[..3].iter().zip(&plan.starts[6..]) {
        assert_eq!((&first.variants, first.position), (&second.variants, second.position), "in the same order");
        assert_eq!((second.repeat, second.attempt, second.block), (1, 2, 3));
    }
    let standing = standing(bundle);
    assert!(standing.iter().all(|trial| trial.validity().counts()), "one attempt was enough");
    assert_eq!(standing.len(), 6);
}

#[test]
fn a_block_with_a_trial_that_failed_runs_again_whole() {
    let place = place();
    let ended = place
        .plimsoll(&RUN)
        .says(&["6 trials", "3/6", "failed", "block 1 does not count and runs again: 3 more trials", "9/9"])
        .prints(&["Does a channel cost more than a mutex?", "bundle/report/report.html"]);
    assert_eq!(ended.stderr.matches("runs again").count(), 1, "{}", ended.stderr);
    place.nothing_runs();
    ran_again(&bundle(&place));
    assert!(place.read("bundle/events.jsonl").contains("\"event\":\"block_repeated\""));
}

/// Waits until a line says so, then ends the run with a signal that it cannot see coming.
fn killed_after(place: &Place, line: &str) {
    let mut run: Started = place.start(&RUN);
    run.wait_until(line, |run| run.stderr().contains(line));
    run.signal(Signal::KILL);
    run.end();
    place.wait_for_silence();
}

#[test]
fn a_run_that_was_killed_amid_a_block_that_runs_again_goes_on_with_it() {
    for line in ["runs again", "7/9"] {
        let place = place();
        killed_after(&place, line);
        let before = place.read("bundle/manifest.jsonl");
        let decided = |manifest: &str| manifest.matches("{\"decided\":").count();
        assert!((1..=2).contains(&decided(&before)), "{before}");
        let ended = place.plimsoll(&[&RUN[..], &["--resume"]].concat()).says(&["9 trials, ", "of them done before"]);
        assert!(!ended.stderr.contains("runs again"), "it had begun to already:\n{}", ended.stderr);
        let after = place.read("bundle/manifest.jsonl");
        assert!(after.starts_with(&before[..before.rfind('\n').unwrap()]), "{before}\nis now\n{after}");
        assert_eq!(decided(&after), 3, "each start of the block once: {after}");
        ran_again(&bundle(&place));
    }
}

#[test]
fn a_trial_whose_files_changed_is_named_before_a_run_goes_on() {
    let place = place();
    killed_after(&place, "4/6");
    let path = "bundle/starts/0002/load.csv";
    let table = place.read(path);
    place.write(path, table.replacen("iteration", "irritation", 1));
    let resume = [&RUN[..], &["--resume"]].concat();
    place.plimsoll(&resume).with(2).says(&[
        "cannot go on with bundle",
        "starts/0002/load.csv was changed after the run",
        "delete the folder of its trial, to have that run again",
    ]);
    std::fs::remove_dir_all(place.path("bundle/starts/0002")).unwrap();
    place.plimsoll(&resume).says(&["done before"]);
    assert_eq!(bundle(&place).starts.len(), 9);
}
