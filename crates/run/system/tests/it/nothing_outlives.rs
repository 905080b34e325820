//! Nothing outlives the run, however it ends.

use crate::common::{FIXTURE, Place, launcher, wait_until};
use plimsoll_system::{Interrupt, SystemError};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Processes of [`tree`].
const TREE_SIZE: usize = 6;

/// A system whose processes try to get away: a child, one in its own session, a daemon by double
/// fork with a child of its own, and one in its own process group whose parent has ended.
fn tree() -> String {
    format!(
        "sleep 1000 &
         setsid sleep 1000 &
         (setsid sh -c 'sleep 1000 & exec sleep 1000' &)
         '{FIXTURE}' move-away
         wait"
    )
}

/// Waits until every process is where it wants to be: all but the root have become `sleep`.
fn wait_for_tree(place: &Place) {
    wait_until("the whole tree", || place.alive().iter().filter(|pid| is_sleep(pid)).count() == TREE_SIZE - 1);
}

fn is_sleep(pid: &i32) -> bool {
    let stat = procfs::process::Process::new(*pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| stat.comm == "sleep")
}

/// A stand-in for Plimsoll with that system, in a process group of its own as a shell starts it.
fn plimsoll(place: &Place) -> Child {
    let child = plimsoll_with(place, &tree());
    wait_for_tree(place);
    child
}

fn plimsoll_with(place: &Place, script: &str) -> Child {
    let mut program = Command::new(FIXTURE);
    program.arg("run").arg(place.folder.path()).arg(script).env("TREE", &place.mark);
    program.process_group(0).stdin(Stdio::piped()).spawn().unwrap()
}

fn pid(raw: i32) -> Pid {
    Pid::from_raw(raw).unwrap()
}

#[test]
fn after_stop() {
    let place = Place::new();
    let system = launcher().start(&place.system(&tree()), &place.output()).unwrap();
    wait_for_tree(&place);
    // A shell that starts a program is two processes for a moment.
    wait_until("the tree and nothing else", || system.processes().len() == TREE_SIZE);
    let stopped = system.stop().unwrap();
    assert_eq!(place.alive(), [0; 0], "nothing is left when `stop` comes back");
    assert_eq!(stopped.killed, 4, "what had left the group was not asked but killed: {stopped:?}");
}

#[test]
fn after_drop() {
    let place = Place::new();
    let system = launcher().start(&place.system(&tree()), &place.output()).unwrap();
    wait_for_tree(&place);
    drop(system);
    assert_eq!(place.alive(), [0; 0]);
}

#[test]
fn after_a_panic() {
    let place = Place::new();
    let spec = place.system(&tree());
    let panicked = std::panic::catch_unwind(|| {
        let _system = launcher().start(&spec, &place.output()).unwrap();
        wait_for_tree(&place);
        std::panic::resume_unwind(Box::new("a fault in Plimsoll"));
    });
    assert!(panicked.is_err());
    assert_eq!(place.alive(), [0; 0]);
}

#[test]
fn after_kill_9_of_plimsoll() {
    let place = Place::new();
    let mut plimsoll = plimsoll(&place);
    kill_process(Pid::from_child(&plimsoll), Signal::KILL).unwrap();
    plimsoll.wait().unwrap();
    place.wait_for_alive(0);
}

#[test]
fn after_kill_9_of_plimsoll_while_it_waits_for_the_system_to_end() {
    let place = Place::new();
    let script = "trap 'echo asked' TERM; echo up; while :; do sleep 0.01; done";
    let mut plimsoll = plimsoll_with(&place, script);
    let wrote = |word: &str| std::fs::read_to_string(place.output()).is_ok_and(|output| output.contains(word));
    wait_until("the trap", || wrote("up"));
    plimsoll.stdin.as_mut().unwrap().write_all(b"stop\n").unwrap();
    wait_until("the stop", || wrote("asked"));
    assert!(!place.alive().is_empty(), "it has a thousand seconds to end");
    kill_process(Pid::from_child(&plimsoll), Signal::KILL).unwrap();
    plimsoll.wait().unwrap();
    place.wait_for_alive(0);
}

#[test]
fn after_ctrl_c_in_the_terminal() {
    let place = Place::new();
    let mut plimsoll = plimsoll(&place);
    kill_process_group(Pid::from_child(&plimsoll), Signal::INT).unwrap(); // what the terminal does
    plimsoll.wait().unwrap();
    place.wait_for_alive(0);
}

#[test]
fn a_system_can_be_asked_to_end_though_plimsoll_ignores_signals() {
    let place = Place::new();
    let mut shell = Command::new("sh");
    let script = "trap '' HUP INT QUIT TERM; exec \"$0\" run \"$1\" 'sleep 1000'";
    shell.args(["-c", script, FIXTURE]).arg(place.folder.path()).env("TREE", &place.mark).stdin(Stdio::piped());
    let mut plimsoll = shell.spawn().unwrap();
    wait_until("the command itself", || place.alive().iter().any(is_sleep));
    let system = place.alive().into_iter().find(is_sleep).unwrap();
    let ignored = procfs::process::Process::new(system).unwrap().status().unwrap().sigign;
    let of = |signal: Signal| 1_u64 << (signal.as_raw() - 1);
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        assert_eq!(ignored & of(signal), 0, "{signal:?} is ignored");
    }
    plimsoll.kill().unwrap();
    plimsoll.wait().unwrap();
    place.wait_for_alive(0);
}

#[test]
fn after_the_build_too() {
    let place = Place::new();
    let mut spec = place.system("true");
    spec.build = Some(crate::common::command(&["sh", "-c", &tree().replace("wait", "exit 0")]));
    launcher().build(&spec, &place.output(), &Interrupt::new()).unwrap();
    assert_eq!(place.alive(), [0; 0]);
}

#[test]
fn an_interrupted_build_is_gone() {
    let place = Place::new();
    let mut spec = place.system("true");
    spec.build = Some(crate::common::command(&["sh", "-c", &tree()]));
    let interrupt = Interrupt::new();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            place.wait_for_alive(TREE_SIZE);
            interrupt.set();
        });
        launcher().build(&spec, &place.output(), &interrupt).unwrap_err()
    });
    assert!(matches!(error, SystemError::Interrupted { .. }), "{error}");
    assert_eq!(place.alive(), [0; 0]);
}

#[test]
fn the_command_dies_with_its_warden_and_plimsoll_clears_the_rest() {
    let place = Place::new();
    let system = launcher().start(&place.system(&tree()), &place.output()).unwrap();
    wait_for_tree(&place);
    kill_process(pid(system.warden()), Signal::KILL).unwrap();
    place.wait_for_alive(TREE_SIZE - 1); // by PR_SET_PDEATHSIG, before Plimsoll looks
    let error = system.stop().unwrap_err();
    assert!(matches!(error, SystemError::WardenLost { .. }), "{error}");
    assert_eq!(place.alive(), [0; 0]);
}

#[test]
fn a_warden_that_is_asked_to_end_cleans_up_first() {
    let place = Place::new();
    let system = launcher().start(&place.system(&tree()), &place.output()).unwrap();
    wait_for_tree(&place);
    kill_process(pid(system.warden()), Signal::TERM).unwrap();
    place.wait_for_alive(0);
    wait_until("the end of the warden, which outlives the last process", || system.check().is_err());
}

#[test]
fn a_killed_plimsoll_leaves_no_warden_either() {
    let place = Place::new();
    let mut plimsoll = plimsoll(&place);
    let wardens = || {
        let processes = procfs::process::all_processes().unwrap().flatten();
        let environment = |process: &procfs::process::Process| process.environ().unwrap_or_default();
        let ours = |process: &procfs::process::Process| {
            environment(process)
                .get("TREE".as_ref() as &std::ffi::OsStr)
                .is_some_and(|value| value == place.mark.as_str())
        };
        processes.filter(ours).filter(|process| process.stat().is_ok_and(|stat| stat.comm == "warden")).count()
    };
    assert_eq!(wardens(), 1);
    kill_process(Pid::from_child(&plimsoll), Signal::KILL).unwrap();
    plimsoll.wait().unwrap();
    wait_until("the warden to end", || wardens() == 0);
}
