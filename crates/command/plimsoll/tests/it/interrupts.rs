//! One signal begins the end of a run in every state, a second one ends it at once, and both say so.

use crate::common::{Place, START, Started, TINY, edited};
use rustix::process::Signal;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Far more than the end of a run takes on a busy machine, and far less than what the scripts of these tests would take.
const SOON: Duration = Duration::from_secs(30);

/// A script that only a signal ends within a thousand seconds: in this state it writes `now`.
struct State {
    name: &'static str,
    script: &'static str,
    /// True if the run has begun, so that it ends in order, and with a summary.
    has_begun: bool,
}

const fn state(name: &'static str, script: &'static str, has_begun: bool) -> State {
    State { name, script, has_begun }
}

const STATES: [State; 10] = [
    state("loading", "console.log('now'); for (;;) {}", false),
    state("waiting while loading", "console.log('now'); await new Promise((go) => setTimeout(go, 1e6));", false),
    state(
        "setup, waiting",
        "export function setup() { console.log('now'); sleep(1000); } export default function () {}",
        true,
    ),
    state(
        "setup, busy",
        "export function setup() { console.log('now'); for (;;) {} } export default function () {}",
        true,
    ),
    state(
        "iterating, waiting",
        "export const options = { duration: '1000s' };
            export default function () { console.log('now'); sleep(1000); }",
        true,
    ),
    state(
        "iterating, busy",
        "export const options = { duration: '1000s' };
            export default function () { console.log('now'); for (;;) {} }",
        true,
    ),
    state(
        "waiting for a reply",
        "export const options = { duration: '1000s' };
            export default function () { console.log('now'); http.get(__ENV.TARGET, { timeout: '1000s' }); }",
        true,
    ),
    state(
        "a native at work",
        "export const options = { duration: '1000s' };
            export default function () {
                const page = parseHTML('<div>'.repeat(20000));
                console.log('now');
                for (;;) { page.find('*').find('div'); }
            }",
        true,
    ),
    state(
        "teardown",
        "export default function () {}
            export function teardown() { console.log('now'); sleep(1000); }",
        true,
    ),
    state(
        "handleSummary",
        "export default function () {}
            export function handleSummary() { console.log('now'); for (;;) {} }",
        true,
    ),
];

/// A run of a script in one of its states.
fn in_state(place: &Place, state: &State, target: &str) -> Started {
    let imports = "import http from 'k6/http'; import { sleep } from 'k6'; import { parseHTML } from 'k6/html';";
    place.write("it.js", format!("{imports}\n{}", state.script));
    let limits = ["script", "run", "--user-busy", "1000s", "-e", target, "it.js"];
    let mut run = place.start(&limits);
    run.wait_until(state.name, |run| run.stderr().contains("now"));
    run
}

#[test]
fn a_signal_ends_a_script_in_every_state() {
    // It accepts connections, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("TARGET=http://{}", silent.local_addr().unwrap());
    let place = Place::empty();
    for state in &STATES {
        let run = in_state(&place, state, &target);
        let begun = Instant::now();
        run.signal(Signal::INT);
        let ended = run.end();
        assert!(begun.elapsed() < SOON, "{}: {:?}", state.name, begun.elapsed());
        let says = if state.has_begun { "interrupted: no iteration begins" } else { "nothing was started" };
        let ended = ended.with(105).says(&[says]);
        assert_eq!(ended.stdout.contains("TOTAL RESULTS"), state.has_begun, "{}: {}", state.name, ended.stdout);
    }
}

#[test]
fn a_second_signal_ends_a_script_at_once_and_says_so() {
    let script = "export const options = { duration: '1000s' };
        export default function () { console.log('now'); sleep(1000); }
        export function teardown() { console.log('tearing down'); sleep(1000); }";
    let place = Place::empty();
    let mut run = in_state(&place, &state("twice", script, true), "TARGET=");
    run.signal(Signal::INT);
    run.wait_until("teardown", |run| run.stderr().contains("tearing down"));
    run.signal(Signal::INT);
    run.end().with(105).says(&["once more ends the program at once", "ended at once", "there is no summary"]);
}

#[test]
fn a_signal_ends_a_script_that_waits_for_its_text() {
    let place = Place::empty();
    let (read, _write) = std::io::pipe().unwrap();
    let mut command = place.command(&["script", "run", "-"]);
    command.stdin(read);
    let mut run = Started::new(command);
    run.wait_until("its thread for signals", |run| run.threads().iter().any(|name| name == "signals"));
    run.signal(Signal::INT);
    run.end().with(105).says(&["nothing was started"]);
}

#[test]
fn a_hang_up_that_is_ignored_stays_so() {
    let place = Place::empty();
    let script = "import { sleep } from 'k6'; export const options = { duration: '1000s' };
        export default function () { console.log('now'); sleep(0.1); }";
    place.write("it.js", script);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" script run it.js", env!("CARGO_BIN_EXE_plimsoll")]);
    command.current_dir(place.path(".")).stdin(Stdio::null());
    let mut run = Started::new(command);
    run.wait_until("the first iteration", |run| run.stderr().contains("now"));
    run.signal(Signal::HUP);
    let before = run.stderr().matches("now").count();
    run.wait_until("further iterations", |run| run.stderr().matches("now").count() > before + 5);
    assert!(!run.stderr().contains("interrupted"), "{}", run.stderr());
    run.signal(Signal::INT);
    run.end().with(105).says(&["interrupted: no iteration begins"]);
}

#[test]
fn a_signal_ends_a_study_in_every_state() {
    let run = ["run", "study.toml", "--out", "bundle"];
    let system = "[system.counter]\n";
    let slow = |what: &str| edited(TINY, system, &format!("{system}{what}\n"));
    let cases = [
        ("building", slow("build = \"sleep 1000\"")),
        ("asking for a version", slow("version = \"sleep 1000\"")),
        (
            "starting",
            edited(
                TINY,
                START,
                "start = \"sh -c 'echo {mode} {address}; sleep 1000'\"\nready = { log = \"never\", within = \"1000s\" }",
            ),
        ),
        (
            "probing",
            edited(
                TINY,
                START,
                "start = \"sh -c 'echo {mode} {address}; sleep 999'\"\nready = { command = \"sleep 1000\", within = \"1000s\" }",
            ),
        ),
    ];
    for (name, study) in cases {
        let place = Place::with_study(&study);
        let run = place.start_until_it_runs(&run, "sleep 1000");
        let begun = Instant::now();
        run.signal(Signal::INT);
        let ended = run.end();
        assert!(begun.elapsed() < SOON, "{name}: {:?}", begun.elapsed());
        ended.with(130).says(&["interrupted"]);
        place.wait_for_silence();
    }
}
