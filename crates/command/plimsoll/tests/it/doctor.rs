//! `plimsoll doctor`: the machine, and a system against itself.

use crate::common::{Place, Started, TINY, edited};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

#[test]
fn the_machine_is_looked_at() {
    // Whether this machine is fit is not for a test to say.
    let ended = Place::empty().plimsoll(&["doctor"]);
    for check in
        ["processors", "frequency", "load by others", "clock", "kernel", "timer lateness", "open files", "ports"]
    {
        assert!(ended.stdout.contains(check), "{check} is not in:\n{}", ended.stdout);
    }
    ended.prints(&["This machine", "plimsoll doctor --aa [STUDY]"]);
}

#[test]
fn a_system_is_held_against_itself() {
    // A mean is there even where a busy machine leaves time for a few iterations.
    let place = Place::with_study(&edited(TINY, "iteration_duration.p50", "iteration_duration.avg"));
    let ended = place.plimsoll(&["doctor", "--aa", "study.toml", "--blocks", "4", "--out", "bundle"]);
    let ended = ended.prints(&[
        "Noise floor: mutex against itself, 2 users, 4 pairs of 300 ms",
        "the same system differs by",
        "a study of 5 repeats sees",
        "a study of 10 repeats sees",
    ]);
    assert!(!ended.stdout.contains("NaN"), "{}", ended.stdout);
    // Its own answer and nothing else: not that of the study, which was not run.
    assert!(ended.stdout.starts_with("Noise floor"), "{}", ended.stdout);
    for other in ["first look", "one variant only", "report.html"] {
        assert!(!ended.stdout.contains(other), "{other} is in:\n{}", ended.stdout);
    }
    let plan = place.read("bundle/plan.json");
    assert!(plan.contains("\"with_duplicate\":true") || plan.contains("\"with_duplicate\": true"), "{plan}");
    place.plimsoll(&["report", "bundle"]);
}

#[test]
fn loads_that_end_after_iterations_are_not_held_against_themselves() {
    let counted = edited(TINY, "duration = \"300ms\"", "duration = \"1m\"\niterations = 5000");
    let place = Place::with_study(&counted);
    let refused =
        "`doctor --aa` loads a system for 3 s at a time, and a load of this study takes as long as its iterations";
    place.plimsoll(&["doctor", "--aa", "study.toml", "--out", "bundle"]).with(2).says(&[refused]);
    assert!(!place.has("bundle"), "nothing half-written is left");
}

#[test]
fn a_second_signal_leaves_no_folder_of_the_noise() {
    let place = Place::empty();
    fs::create_dir(place.path("tmp")).unwrap();
    let mut command = place.command(&["doctor", "--noise"]);
    command.env("TMPDIR", place.path("tmp"));
    let mut noise = Started::new(command);
    let servers = || {
        let all = place.processes().into_iter().filter(|process| process.command.contains("demo-server"));
        all.map(|process| Pid::from_raw(process.pid).unwrap()).collect::<Vec<_>>()
    };
    let folders = || {
        let entries = fs::read_dir(place.path("tmp")).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().starts_with("plimsoll-noise-")).count()
    };
    noise.wait_until("a server", |_| !servers().is_empty());
    // They do not end their servers when they are asked to, so that the first signal does not end the command within seconds.
    let of_wardens = place.processes().into_iter().filter(|process| process.name == "warden");
    let wardens: Vec<Pid> = of_wardens.map(|warden| Pid::from_raw(warden.pid).unwrap()).collect();
    assert!(!wardens.is_empty());
    wardens.iter().for_each(|warden| kill_process(*warden, Signal::STOP).unwrap());
    assert_eq!(folders(), 1);
    noise.signal(Signal::INT);
    noise.wait_until("the answer to the first signal", |noise| noise.stderr().contains("interrupted"));
    noise.signal(Signal::INT);
    noise.end().with(130).says(&["once more ends the program at once", "ended at once; nothing is kept"]);
    assert_eq!(folders(), 0);
    wardens.iter().for_each(|warden| kill_process(*warden, Signal::CONT).unwrap());
    place.wait_for_silence();
}

#[test]
fn wrong_arguments_say_what_is_missing() {
    let place = Place::with_study("title = 1");
    place.plimsoll(&["doctor", "--blocks", "5"]).with(2).says(&["--aa"]);
    place.plimsoll(&["doctor", "--aa", "study.toml", "--blocks", "2"]).with(2).says(&["2 is not in 3..=1000"]);
    place.plimsoll(&["doctor", "--aa", "study.toml"]).with(2).says(&["nothing was started"]);
    place.plimsoll(&["doctor", "--aa", "nowhere.toml"]).with(2).says(&["failed to read the study nowhere.toml"]);
}
