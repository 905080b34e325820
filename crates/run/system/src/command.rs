//! One command under its warden, seen from Plimsoll.

use crate::containers::{Project, REMOVAL_LIMIT};
use crate::control_channel::{Cleanup, ControlChannel, LaunchOrder, Received, StopRequest, WardenReport};
use crate::error::SystemError;
use crate::exit::Exit;
use crate::launcher::Launcher;
use crate::program::check_command;
use crate::tree::{KILL_LIMIT, MARK, kill_marked};
use plimsoll_model::system::{CommandLine, StopPolicy, StopSignal, SystemSpec};
use plimsoll_model::units::Processors;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time that a warden may take beyond its limit before it counts as stuck.
const WARDEN_SLACK: Duration = Duration::from_secs(5);

/// How long a warden may take to start its command.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Kills at once, without a grace period.
pub(crate) const AT_ONCE: StopPolicy = StopPolicy { signal: StopSignal::Kill, grace: Duration::ZERO };

/// What to run, and where its output goes.
pub(crate) struct Task<'a> {
    pub(crate) spec: &'a SystemSpec,
    pub(crate) command: &'a CommandLine,
    pub(crate) cpus: Option<&'a Processors>,
    /// The containers that the command asks an engine for.
    pub(crate) project: Option<&'a Project>,
    pub(crate) output: File,
}

/// A running command. Dropping it kills everything that it started.
#[derive(Debug)]
pub(crate) struct Supervised {
    system: String,
    mark: String,
    warden: Child,
    channel: ControlChannel,
    project: Option<Project>,
    exit: Option<Exit>,
    /// True once all processes below the warden are gone.
    all_gone: bool,
}

impl Supervised {
    /// Starts the command, and returns when it runs.
    pub(crate) fn start(launcher: &Launcher, task: Task<'_>) -> Result<Supervised, SystemError> {
        let Task { spec, command, cpus, project, output } = task;
        let mark = new_mark(&launcher.run);
        let mut env = spec.env.clone();
        env.insert(MARK.to_owned(), mark.clone());
        let order = LaunchOrder {
            launcher: launcher.arguments.clone(),
            program: check_command(command, spec)?,
            command: command.clone(),
            dir: spec.dir.clone(),
            inherit: spec.inherit.clone(),
            env,
            cpus: cpus.cloned(),
            open_files: open_files_before_loads(),
            project: project.cloned(),
        };
        let start = || -> io::Result<(Child, ControlChannel)> {
            let (own, theirs) = UnixStream::pair()?;
            Ok((spawn_warden(launcher, theirs, output)?, ControlChannel::new(own)))
        };
        let (warden, channel) = start().map_err(SystemError::io(&spec.name, "start a warden"))?;
        let system = spec.name.clone();
        let mut started =
            Supervised { system, mark, warden, channel, project: project.cloned(), exit: None, all_gone: false };
        let refused = |reason| {
            let (system, dir) = (spec.name.clone(), spec.dir.clone());
            SystemError::Refused { system, command: command.clone(), dir, reason }
        };
        let warden = launcher.program.display();
        let answer = started.channel.send(&order).and_then(|()| started.channel.receive(Some(ANSWER_LIMIT)));
        match answer {
            Ok(Received::Message(WardenReport::Started)) => Ok(started),
            Ok(Received::Message(WardenReport::Refused(reason))) => Err(refused(reason)),
            Ok(Received::Timeout) => Err(refused(format!("its warden, {warden}, does not answer"))),
            Ok(_) => Err(refused(format!("its warden, {warden}, ended before the command began"))),
            Err(error) => Err(refused(format!("its warden, {warden}, cannot be talked to: {error}"))),
        }
    }

    /// The process id of the warden.
    pub(crate) fn warden(&self) -> i32 {
        i32::try_from(self.warden.id()).expect("process numbers are below 2^22")
    }

    /// Waits until the command ends by itself, `within` at most.
    pub(crate) fn ended(&mut self, within: Duration) -> Result<Option<Exit>, SystemError> {
        if self.exit.is_some() {
            return Ok(self.exit);
        }
        match self.channel.receive(Some(within)) {
            Ok(Received::Timeout) => Ok(None),
            Ok(Received::Message(WardenReport::Ended(exit))) => {
                self.exit = Some(exit);
                Ok(self.exit)
            }
            Ok(_) => Err(self.lost()),
            Err(error) => Err(SystemError::io(&self.system, "talk to its warden")(error)),
        }
    }

    /// Stops the command and all processes that it started, and returns when all of them are gone.
    pub(crate) fn stop(&mut self, policy: &StopPolicy) -> Result<Cleanup, SystemError> {
        if self.all_gone {
            return Err(SystemError::WardenLost { system: self.system.clone() });
        }
        let of_containers = self.project.as_ref().map_or(Duration::ZERO, |_| REMOVAL_LIMIT + policy.grace);
        let patience = policy.grace + KILL_LIMIT + of_containers + WARDEN_SLACK;
        let told = self.channel.send(&StopRequest(policy.clone())).and_then(|()| self.last_report(patience));
        let Ok(Some(gone)) = told else { return Err(self.lost()) };
        self.all_gone = true;
        let _ = self.warden.wait(); // it has sent its last message, so it ends at once
        if let Some(reason) = gone.containers_left {
            return Err(self.containers_left(reason));
        }
        if gone.left.is_empty() { Ok(gone) } else { Err(self.survivors(gone.left)) }
    }

    /// The warden's last message; `None` if it ended or hung without one.
    fn last_report(&mut self, patience: Duration) -> io::Result<Option<Cleanup>> {
        let deadline = Instant::now() + patience;
        loop {
            match self.channel.receive(Some(deadline.saturating_duration_since(Instant::now())))? {
                Received::Message(WardenReport::Cleanup(gone)) => return Ok(Some(gone)),
                Received::Message(_) => {} // sent before it received the stop request
                Received::Timeout | Received::Closed => return Ok(None),
            }
        }
    }

    /// Kills the processes of a warden that is dead or stuck.
    fn lost(&mut self) -> SystemError {
        self.all_gone = true;
        let _ = self.warden.kill(); // does nothing if it is dead and was waited for
        let _ = self.warden.wait();
        let left = kill_marked(&self.mark).left;
        if let Some(reason) = self.project.as_ref().and_then(|project| project.remove().err()) {
            return self.containers_left(reason);
        }
        match left {
            left if left.is_empty() => SystemError::WardenLost { system: self.system.clone() },
            left => self.survivors(left),
        }
    }

    fn containers_left(&self, reason: String) -> SystemError {
        SystemError::ContainersLeft { system: self.system.clone(), reason }
    }

    fn survivors(&self, left: Vec<i32>) -> SystemError {
        SystemError::Survivors { system: self.system.clone(), left }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.all_gone {
            let _ = self.stop(&AT_ONCE); // callers who need the result call `stop`
        }
    }
}

/// The warden takes its control channel as standard input, and hands its output on to the command.
fn spawn_warden(launcher: &Launcher, channel: UnixStream, output: File) -> io::Result<Child> {
    let errors = output.try_clone()?;
    Command::new(&launcher.program)
        .arg0("warden")
        .args(&launcher.arguments)
        .stdin(Stdio::from(OwnedFd::from(channel)))
        .stdout(output)
        .stderr(errors)
        .spawn()
}

/// The soft limit of open files that this process had when this was called first; none where there is no limit. Loads
/// raise it for their connections, and systems must not get more on later starts than on the first.
pub(crate) fn open_files_before_loads() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| getrlimit(Resource::Nofile).current)
}

/// What the marks of all commands of a run begin with.
pub(crate) fn mark_of_run(run: &str) -> String {
    format!("{run}/")
}

/// A value that no other command on this machine has, and that none other begins with.
fn new_mark(run: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}{}-{now}-{count}/", mark_of_run(run), std::process::id())
}
