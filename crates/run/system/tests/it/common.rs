//! A folder, a system in it, and a look at which of its processes are alive.

use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, StopSignal, SystemSpec};
use plimsoll_system::Launcher;
use procfs::process::all_processes;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program that has the hidden subcommand.
pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_system-fixture");

/// Long enough for anything that must happen, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for one test, and a mark that every process of its system carries.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) mark: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().to_string_lossy().into_owned();
        Place { folder, mark }
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.folder.path().join("output.log")
    }

    /// A system that is a shell script, and ready as soon as it runs.
    pub(crate) fn system(&self, script: &str) -> SystemSpec {
        SystemSpec {
            name: "counter".to_owned(),
            on: None,
            dir: self.folder.path().to_owned(),
            build: None,
            start: command(&["sh", "-c", script]),
            containers: None,
            inherit: None,
            env: [("TREE".to_owned(), self.mark.clone())].into(),
            ready: Ready { probe: Probe::Started, within: PATIENCE },
            stop: StopPolicy { signal: StopSignal::Term, grace: PATIENCE },
            cpus: None,
            version: None,
            port: None,
            waits: Default::default(),
            metrics: None,
            files: None,
        }
    }

    /// Processes of the system that are alive.
    pub(crate) fn alive(&self) -> Vec<i32> {
        let marked = |process: &procfs::process::Process| {
            let environment = process.environ().unwrap_or_default();
            environment.get(OsStr::new("TREE")).is_some_and(|value| value == OsStr::new(&self.mark))
        };
        // `comm` of a process between fork and exec is still the parent's.
        let outsider = |process: &procfs::process::Process| {
            process.stat().map_or(true, |stat| stat.comm == "warden" || stat.comm.starts_with("system-fixture"))
        };
        let processes = all_processes().unwrap().flatten();
        processes.filter(|process| marked(process) && !outsider(process)).map(|process| process.pid()).collect()
    }

    /// Waits for so many processes of the system, and returns them: while one executes another program it has no environment,
    /// so that it may not be among those of the next look.
    pub(crate) fn wait_for_alive(&self, count: usize) -> Vec<i32> {
        let mut alive = Vec::new();
        wait_until(&format!("{count} processes of the system"), || {
            alive = self.alive();
            alive.len() == count
        });
        alive
    }
}

pub(crate) fn launcher() -> Launcher {
    Launcher { program: PathBuf::from(FIXTURE), arguments: vec!["warden".to_owned()], run: String::new() }
}

pub(crate) fn command(words: &[&str]) -> CommandLine {
    CommandLine(words.iter().map(|&word| word.to_owned()).collect())
}

/// Asks until the answer is yes; fails the test if it never is.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
