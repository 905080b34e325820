//! Systems never outlive the run, however it ends.

use crate::common::{Ended, Place, START, Started, TINY, edited, wait_until};
use rustix::process::{Pid, Signal, kill_process};

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

/// A system that also leaves a process behind in a session of its own, and trials long enough to
/// be broken off.
fn long_study() -> String {
    let start = r#"start = "sh -c 'setsid sleep 1000 & exec \"$0\" demo-server --mode {mode} --listen {address}' '{plimsoll}'""#;
    let study = edited(TINY, START, start);
    edited(&study, "\"300ms\"", "\"60s\"")
}

/// Starts the study and waits until load runs.
fn under_load(place: &Place) -> Started {
    let mut run = place.start(&RUN);
    wait_for_load(place, &mut run);
    run
}

fn wait_for_load(place: &Place, run: &mut Started) {
    run.wait_until("a second of load", |_| {
        place.has("bundle/events.jsonl") && place.read("bundle/events.jsonl").contains("second_passed")
    });
}

fn broken_off_by(signal: Signal) -> (Place, Ended) {
    let place = Place::with_study(&long_study());
    let run = under_load(&place);
    run.signal(signal);
    let ended = run.end();
    (place, ended)
}

#[test]
fn nothing_is_left_after_success() {
    let place = Place::with_study(&edited(&long_study(), "\"60s\"", "\"300ms\""));
    place.plimsoll(&RUN).with_any_verdict();
    place.nothing_runs();
}

#[test]
fn nothing_is_left_after_an_interrupt() {
    let (place, ended) = broken_off_by(Signal::INT);
    place.nothing_runs();
    ended.with(130).says(&[
        "interrupted; what had ended is in bundle",
        "go on: plimsoll run study.toml --resume --out bundle",
        "report: plimsoll report bundle",
    ]);
}

/// With its warden killed as well, nobody is left to end a process in a session of its own.
#[test]
fn what_a_killed_run_and_its_wardens_left_is_ended_by_the_run_that_goes_on() {
    let place = Place::with_study(&edited(&long_study(), "\"60s\"", "\"2s\""));
    let run = under_load(&place);
    // Stopped, it cannot see that its wardens are gone.
    run.signal(Signal::STOP);
    for warden in place.processes().iter().filter(|process| process.name == "warden") {
        kill_process(Pid::from_raw(warden.pid).unwrap(), Signal::KILL).unwrap();
    }
    run.signal(Signal::KILL);
    run.end();
    wait_until("the end of all others", || place.processes().iter().all(|process| process.name == "sleep"));
    assert_eq!(place.processes().len(), 1, "{:?}", place.processes());
    place
        .plimsoll(&[&RUN[..], &["--resume"]].concat())
        .with_any_verdict()
        .says(&["ended what the interrupted run had left (1 of its processes)"]);
    place.nothing_runs();
}

/// Ctrl-C reaches everything in the terminal's foreground, and `tee` behind a pipe dies of it first.
#[test]
fn an_interrupt_is_carried_out_though_nobody_reads_what_is_said() {
    let place = Place::with_study(&long_study());
    let mut run = place.start_unheard(&RUN);
    wait_for_load(&place, &mut run);
    run.signal(Signal::INT);
    run.end().with(130);
    place.nothing_runs();
}

#[test]
fn nothing_is_left_after_termination() {
    let (place, ended) = broken_off_by(Signal::TERM);
    place.nothing_runs();
    ended.with(130).says(&["interrupted"]);
}

#[test]
fn nothing_is_left_after_the_terminal_is_gone() {
    let (place, ended) = broken_off_by(Signal::HUP);
    place.nothing_runs();
    ended.with(130);
}

#[test]
fn nothing_is_left_after_kill_9() {
    let (place, _killed) = broken_off_by(Signal::KILL);
    place.wait_for_silence();
}

#[test]
fn a_system_that_does_not_listen_does_not_hold_up_an_interrupt() {
    let stubborn = r#"stop = { signal = "TERM", grace = "1000s" }
start = "sh -c 'trap : TERM; \"$0\" demo-server --mode {mode} --listen {address} & while :; do sleep 1000; done' '{plimsoll}'""#;
    let place = Place::with_study(&edited(&edited(TINY, START, stubborn), "\"300ms\"", "\"60s\""));
    let run = under_load(&place);
    run.signal(Signal::INT);
    run.end().with(130);
    place.nothing_runs();
}

#[test]
fn nothing_is_left_after_two_interrupts() {
    let place = Place::with_study(&long_study());
    let run = under_load(&place);
    run.signal(Signal::INT);
    run.signal(Signal::INT);
    // Where the run had stopped in order before the second one came, it says how to go on as well.
    run.end().with(130).says(&["once more ends the program at once", "go on:", "--resume"]);
    place.wait_for_silence();
}

#[test]
fn an_interrupt_before_anything_ran_leaves_nothing() {
    let place = Place::with_study(&long_study());
    for pause in [5, 20, 50, 100] {
        let run = place.start(&RUN);
        std::thread::sleep(std::time::Duration::from_millis(pause));
        run.signal(Signal::INT);
        let ended = run.end();
        // Before the program itself runs, the signal ends it; from then on it says how it ended.
        assert!(ended.code.is_none_or(|code| code == 130), "after {pause} ms: {}", ended.stderr);
        assert!(!ended.stderr.contains("found files"), "one that left nothing begins anew: {}", ended.stderr);
        place.nothing_runs();
        if place.has("bundle/manifest.jsonl") {
            std::fs::remove_dir_all(place.path("bundle")).unwrap();
        }
    }
}

#[test]
fn an_interrupt_while_a_system_starts_is_heard() {
    let never =
        "start = \"sh -c 'echo {mode} {address}; sleep 1000'\"\nready = { log = \"never said\", within = \"100s\" }";
    let place = Place::with_study(&edited(TINY, START, never));
    let run = place.start_until_it_runs(&RUN, "sleep 1000");
    run.signal(Signal::INT);
    run.end().with(130).says(&["go on:"]);
    place.nothing_runs();
}

#[test]
fn an_interrupt_while_a_build_runs_is_heard() {
    let study = edited(TINY, "[system.counter]\n", "[system.counter]\nbuild = \"sleep 1000\"\n");
    let place = Place::with_study(&study);
    let run = place.start_until_it_runs(&RUN, "sleep 1000");
    run.signal(Signal::INT);
    run.end().with(130);
    place.nothing_runs();
}

/// So that `pkill plimsoll` does not take the one that cleans up.
#[test]
fn a_process_list_shows_the_warden_by_that_name() {
    let place = Place::with_study(&long_study());
    let run = under_load(&place);
    let processes = place.processes();
    run.signal(Signal::KILL);
    run.end();
    place.wait_for_silence();
    assert!(
        processes.iter().any(|process| process.name == "warden" && process.command.starts_with("warden")),
        "{processes:?}"
    );
    let named = |name: &str| processes.iter().filter(|process| process.name == name).count();
    assert_eq!(named("sleep"), 1, "{processes:?}");
}
