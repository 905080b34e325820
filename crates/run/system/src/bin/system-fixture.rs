//! What the integration tests of this crate run: a warden, a stand-in for Plimsoll that can be
//! killed, and a process that leaves its process group.

use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, StopSignal, SystemSpec};
use plimsoll_system::{Launcher, warden};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{env, io, thread};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["warden", rest @ ..] => warden::main(rest.iter().map(Into::into)),
        ["run", dir, script] => run(Path::new(dir), script),
        ["move-away"] => move_away(),
        other => {
            eprintln!("expected `warden`, `run DIR SCRIPT` or `move-away`, found {other:?}");
            ExitCode::from(2)
        }
    }
}

/// Starts a system as Plimsoll does, and stops it when a line is read; at the end of the input, does
/// nothing until it is killed.
fn run(dir: &Path, script: &str) -> ExitCode {
    // As Plimsoll does: the tests may themselves run where this signal is ignored.
    let at_once = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGINT, 130, at_once)
        .expect("a known signal");
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let spec = SystemSpec {
        name: "tree".to_owned(),
        on: None,
        dir: PathBuf::from(dir),
        build: None,
        start: CommandLine(command),
        containers: None,
        inherit: None,
        env: [("TREE".to_owned(), env::var("TREE").unwrap_or_default())].into(),
        ready: Ready { probe: Probe::Started, within: Duration::from_secs(10) },
        stop: StopPolicy { signal: StopSignal::Term, grace: Duration::from_secs(1000) },
        cpus: None,
        version: None,
        port: None,
        waits: Default::default(),
        metrics: None,
        files: None,
    };
    let started = Launcher::of_this_program(&["warden"]).start(&spec, &dir.join("output.log"));
    let stopped = started.and_then(|running| {
        while !matches!(io::stdin().read_line(&mut String::new()), Ok(1..)) {
            thread::park();
        }
        running.stop()
    });
    match stopped {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Leaves a child in a process group of its own.
fn move_away() -> ExitCode {
    match Command::new("sleep").arg("1000").process_group(0).spawn() {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
