//! A folder with a study, the command run in it, and a look at the processes that it left.

use plimsoll_bundle::Contents;
use plimsoll_model::result::StartResult;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Long enough for anything that must happen, on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// The environment variable by which a test knows the processes that it caused.
const MARK: &str = "PLIMSOLL_TEST_PLACE";

/// Two ways to count, twice each: 4 trials of 0.3 s. The generator is not held to its limits,
/// which a machine that does other things as well would break; and it is the median that decides,
/// because such a machine does too little in 0.3 s for the usual p95.
pub(crate) const TINY: &str = r#"title    = "tiny"
question = "Does a channel cost more than a mutex?"
design   = "trials"
repeats  = 2

[factors]
mode  = { levels = ["mutex", "inputQ"], compare = true, baseline = "mutex" }
users = [2]

[system.counter]
start = "'{plimsoll}' demo-server --mode {mode} --listen {address}"

[workload]
protocol   = "grpc"
target     = "{counter.address}"
reflection = true
steps      = [
    {
        call    = "counter.incrementCounter/increment",
        message = { value = 1 },
        expect  = { sequence = { field = "message", after = "Incremented value is " } },
    },
]

[load]
users    = "{users}"
think    = "1ms"
warmup   = "50ms"
duration = "300ms"

[generator]
max_cpu      = "100%"
max_lateness = "10s"

[decide]
measure = "iteration_duration.p50"
"#;

/// How the system of [`TINY`] is started.
pub(crate) const START: &str = r#"start = "'{plimsoll}' demo-server --mode {mode} --listen {address}""#;

/// Waits in a shell until both users of [`TINY`] are connected to the server at `$1`.
pub(crate) const WAIT_FOR_USERS: &str = r#"
wait_for_users() {
    at=:$(printf %04X "${1##*:}")
    until [ "$(awk -v at="$at" '$4 == "01" && $2 ~ at "$"' /proc/net/tcp | wc -l)" -ge 2 ]; do sleep 0.05; done
}
"#;

/// A folder for one test, with the study `study.toml`. Every process that comes of a command run
/// in it carries the folder's name in its environment.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn empty() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn with_study(study: &str) -> Place {
        let place = Place::empty();
        place.write("study.toml", study);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Copies a file to this place in the folder.
    pub(crate) fn copy(&self, file: &Path, name: &str) {
        let copy = self.path(name);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(file, copy).unwrap();
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The command, to be run in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        ignore_no_signals();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(arguments).current_dir(self.folder.path()).env(MARK, self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn plimsoll(&self, arguments: &[&str]) -> Ended {
        Started::new(self.command(arguments)).end()
    }

    /// Runs the command to its end, with these variables in its environment.
    pub(crate) fn plimsoll_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        Started::new(command).end()
    }

    /// Starts the command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        Started::new(self.command(arguments))
    }

    /// Starts the command with nobody at the other end of its standard output and error.
    pub(crate) fn start_unheard(&self, arguments: &[&str]) -> Started {
        let (_, stdout) = std::io::pipe().unwrap();
        let mut command = self.command(arguments);
        command.stderr(stdout.try_clone().unwrap()).stdout(stdout);
        Started { child: command.spawn().unwrap(), output: output_files().0 }
    }

    /// Starts the command and waits until a process with `words` in its command line came of it.
    pub(crate) fn start_until_it_runs(&self, arguments: &[&str], words: &str) -> Started {
        let mut started = self.start(arguments);
        started.wait_until(&format!("a process with `{words}`"), |_| {
            self.processes().iter().any(|process| process.command.contains(words))
        });
        started
    }

    /// The processes that commands in this folder have left or still have, by name.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let marked = |folder: &Path| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        entries.filter(|folder| marked(folder)).filter_map(|folder| Process::read(&folder)).collect()
    }

    /// Waits until nothing is left of what was started.
    pub(crate) fn wait_for_silence(&self) {
        wait_until("the end of every process", || self.processes().is_empty());
    }

    /// Fails if anything still runs.
    pub(crate) fn nothing_runs(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "still there: {left:?}");
    }
}

/// A process as `/proc` shows it.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its process id.
    pub(crate) pid: i32,
    /// What a process list calls it.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) command: String,
}

impl Process {
    fn read(folder: &Path) -> Option<Process> {
        let pid = folder.file_name()?.to_str()?.parse().ok()?;
        let name = fs::read_to_string(folder.join("comm")).ok()?.trim_end().to_owned();
        let command = String::from_utf8_lossy(&fs::read(folder.join("cmdline")).ok()?).replace('\0', " ");
        Some(Process { pid, name, command })
    }
}

/// A command under way. Its output goes to files, so that it never waits for a reader.
pub(crate) struct Started {
    child: Child,
    output: TempDir,
}

impl Started {
    pub(crate) fn new(mut command: Command) -> Started {
        let (output, [stdout, stderr]) = output_files();
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Started { child, output }
    }

    /// What it has written to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.output.path().join("stderr")).unwrap()
    }

    /// Waits until something has happened, which must be before it ends.
    pub(crate) fn wait_until(&mut self, what: &str, happened: impl Fn(&Started) -> bool) {
        wait_until(what, || {
            let over = self.child.try_wait().unwrap();
            let happened = happened(self);
            assert!(happened || over.is_none(), "it ended before: {what}\n{}", self.stderr());
            happened
        });
    }

    /// Sends it a signal, and nobody else.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The names of its threads.
    pub(crate) fn threads(&self) -> Vec<String> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    /// Waits until a second of load on this start has passed.
    pub(crate) fn wait_for_load(&mut self, place: &Place, start: u32) {
        let second = format!("\"event\":\"second_passed\",\"start\":{start},");
        self.wait_until("a second of load", |_| {
            place.has("bundle/events.jsonl") && place.read("bundle/events.jsonl").contains(&second)
        });
    }

    /// Ends it at once, if it has not ended.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                panic!("the command did not end; it wrote:\n{}", self.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: fs::read_to_string(self.output.path().join("stdout")).unwrap(),
            stderr: self.stderr(),
        }
    }
}

/// A folder with the files for what a command writes.
fn output_files() -> (TempDir, [File; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let files = ["stdout", "stderr"].map(|name| File::create(folder.path().join(name)).unwrap());
    (folder, files)
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The exit code; none after a signal.
    pub(crate) fn code(&self) -> Option<i32> {
        self.code
    }

    /// Fails if it ended otherwise than with this exit code.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Ended {
        let Ended { code: found, signal, stdout, stderr } = &self;
        assert_eq!(*found, Some(code), "the exit code (signal {signal:?})\n-- stdout\n{stdout}\n-- stderr\n{stderr}");
        self
    }

    /// Fails if it did not come to its end. What its verdicts are is another matter: of trials this
    /// short, nobody knows.
    #[track_caller]
    pub(crate) fn with_any_verdict(self) -> Ended {
        const VERDICTS: [i32; 3] = [0, 1, 4];
        let code = self.code.filter(|code| VERDICTS.contains(code)).unwrap_or(VERDICTS[0]);
        self.with(code)
    }

    /// Fails unless standard error has every one of these texts. Where its lines were wrapped does
    /// not matter.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Ended {
        for text in texts {
            assert!(flat(&self.stderr).contains(&flat(text)), "expected `{text}` in:\n{}", self.stderr);
        }
        self
    }

    /// Fails unless standard output has every one of these texts, however wrapped.
    #[track_caller]
    pub(crate) fn prints(self, texts: &[&str]) -> Ended {
        for text in texts {
            assert!(flat(&self.stdout).contains(&flat(text)), "expected `{text}` in:\n{}", self.stdout);
        }
        self
    }
}

/// A text with every run of white space as one space.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asks until the answer is yes; fails the test if it never is.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A study with one text in place of another, which it must have.
#[track_caller]
pub(crate) fn edited(study: &str, from: &str, to: &str) -> String {
    assert!(study.contains(from), "the study has no `{from}`");
    study.replacen(from, to, 1)
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Fails if a file below `folder` holds the secret.
#[track_caller]
pub(crate) fn is_nowhere(secret: &str, folder: &Path) {
    let found: Vec<_> = files(folder)
        .into_iter()
        .filter(|path| fs::read(path).unwrap().windows(secret.len()).any(|part| part == secret.as_bytes()))
        .collect();
    assert!(found.is_empty(), "the secret stands in {found:?}");
}

/// The trials that no later attempt replaces. On a busy machine a short trial may not count, so that its block runs
/// again.
pub(crate) fn standing(bundle: &Contents) -> Vec<&StartResult> {
    bundle.starts.iter().filter(|trial| !bundle.plan.is_superseded(&trial.summary.start)).collect()
}

/// Catches the signals that this process ignores, as in the background of a script or under `nohup`. The programs that it
/// starts would ignore them too; of a caught signal they have the default.
fn ignore_no_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").expect("a process has a status");
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("signals that it ignores");
        let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            if (ignored >> (signal - 1)) & 1 == 1 {
                signal_hook::flag::register(signal, Arc::default()).expect("a signal that can be caught");
            }
        }
    });
}
