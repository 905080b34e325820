//! The work of the warden: starts the command, watches it and the control channel, and kills what is left.

use super::STEP_IN;
use super::bounded_output::BoundedOutput;
use super::signals::Signals;
use super::step_in::Role;
use crate::containers::Project;
use crate::control_channel::{
    Cleanup, ControlChannel, LaunchOrder, Received, StopRequest, WardenReport, wait_readable,
};
use crate::exit::Exit;
use crate::tree::{KILL_LIMIT, descendants, kill};
use plimsoll_model::system::{StopPolicy, StopSignal};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, setsid, wait};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often the warden checks if a command that was asked to end has done so. It gets no signal for the end
/// of processes that are not its own children.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How often the warden looks at the size of the output.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(500);

/// How long a command whose containers have ended may take to pass on their last output and end.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// Runs one command, from the order on the control channel to the end of its last descendant.
pub(super) fn guard() -> io::Result<()> {
    setsid()?; // a terminal's Ctrl-C and hang-up are Plimsoll's to handle
    rustix::thread::set_name(c"warden")?;
    set_child_subreaper(Some(getpid()))?;
    let signals = Signals::catch()?;
    let mut channel = ControlChannel::of_standard_input()?;
    let Received::Message(order) = channel.receive::<LaunchOrder>(None)? else { return Ok(()) };
    let output = BoundedOutput::of_standard_output()?;
    match start(&order) {
        Ok(root) => {
            let project = order.project;
            let mut guard =
                Guard { channel, signals, output, root, project, exit: None, stopping_until: None, killed: 0 };
            // Kill all processes, even if watching failed.
            let watched = guard.channel.send(&WardenReport::Started).and_then(|()| guard.watch());
            let gone = guard.kill_all();
            // The command is gone, and asks the engine for nothing more.
            let containers_left = guard.project.as_ref().and_then(|project| project.remove().err());
            guard.channel.send(&WardenReport::Cleanup(Cleanup { containers_left, ..gone? }))?;
            watched
        }
        Err(reason) => channel.send(&WardenReport::Refused(reason)),
    }
}

/// Starts the command in a process group of its own, and waits until its program is executed.
fn start(order: &LaunchOrder) -> Result<Pid, String> {
    let (own, theirs) = UnixStream::pair().map_err(|error| format!("no socket pair to start it with: {error}"))?;
    let child = Command::new("/proc/self/exe") // the same file, even if it was replaced meanwhile
        .arg0("warden")
        .args(&order.launcher)
        .arg(STEP_IN)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()
        .map_err(|error| format!("no process to start it in: {error}"))?;
    let mut channel = ControlChannel::new(own);
    let role = Role { warden: getpid().as_raw_nonzero().get(), order: order.clone() };
    let answer = channel.send(&role).and_then(|()| channel.receive::<String>(None));
    match answer {
        Ok(Received::Message(reason)) => Err(reason),
        Ok(Received::Closed | Received::Timeout) => Ok(Pid::from_child(&child)),
        Err(error) => Err(format!("the process that was to become it died: {error}")),
    }
}

/// A running command and what is known of it.
struct Guard {
    channel: ControlChannel,
    signals: Signals,
    output: BoundedOutput,
    /// The command's own process, and its process group.
    root: Pid,
    /// The containers that the command has asked an engine for.
    project: Option<Project>,
    exit: Option<Exit>,
    /// The end of the grace period, once the command was asked to stop.
    stopping_until: Option<Instant>,
    /// The number of containers that were killed, because they had not ended within the grace period.
    killed: usize,
}

impl Guard {
    /// Returns when the remaining processes must be killed.
    fn watch(&mut self) -> io::Result<()> {
        loop {
            self.signals.clear_children()?;
            self.reap()?;
            self.output.bound()?;
            if self.stopping_until.is_some_and(|until| self.stop_is_over(until)) {
                return Ok(());
            }
            let [child, end] = self.signals.sources();
            let look_again = if self.stopping_until.is_some() { POLL_INTERVAL } else { OUTPUT_INTERVAL };
            wait_readable(&[self.channel.as_fd(), child, end], Some(look_again))?;
            if self.signals.end_asked()? {
                return Ok(());
            }
            match self.channel.receive::<StopRequest>(Some(Duration::ZERO))? {
                Received::Message(StopRequest(policy)) => self.ask_to_stop(&policy),
                Received::Timeout => {}
                Received::Closed => return Ok(()),
            }
        }
    }

    /// True if the whole process group has ended, or its grace period is over.
    fn stop_is_over(&self, until: Instant) -> bool {
        let group = self.root.as_raw_nonzero().get();
        Instant::now() >= until || !descendants(own_pid()).iter().any(|entry| entry.group == group)
    }

    fn ask_to_stop(&mut self, policy: &StopPolicy) {
        if let Some(project) = &self.project {
            // The engine asks them. What it refuses is removed below.
            self.killed = project.stop(policy.grace).unwrap_or_default();
            self.stopping_until = Some(Instant::now() + LAST_OUTPUT);
            return;
        }
        self.stopping_until = Some(Instant::now() + policy.grace);
        let signal = match policy.signal {
            StopSignal::Term => Signal::TERM,
            StopSignal::Int => Signal::INT,
            StopSignal::Quit => Signal::QUIT,
            StopSignal::Kill => Signal::KILL,
        };
        // A group that is gone already needs no signal.
        let _ = kill_process_group(self.root, signal);
    }

    /// Reaps all children that have ended, adopted ones included. Returns true if any child is left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.root => {
                    self.exit = Exit::of(status);
                    if let (Some(exit), None) = (self.exit, self.stopping_until) {
                        self.channel.send(&WardenReport::Ended(exit))?;
                    }
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Ok(true),
                Err(rustix::io::Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills until no child is left. Every orphan below the warden becomes its child, so then no descendant is
    /// left.
    fn kill_all(&mut self) -> io::Result<Cleanup> {
        let deadline = Instant::now() + KILL_LIMIT;
        let mut killed = BTreeSet::new();
        while self.reap()? {
            let living = descendants(own_pid());
            if Instant::now() > deadline {
                let left = living.iter().map(|entry| entry.pid).collect();
                return Ok(Cleanup { left, ..self.cleanup(killed.len()) });
            }
            for entry in living {
                killed.insert(entry.pid);
                kill(entry.pid);
            }
            let [child, _] = self.signals.sources();
            wait_readable(&[child], Some(POLL_INTERVAL))?;
            self.signals.clear_children()?;
        }
        Ok(self.cleanup(killed.len()))
    }

    /// The report of a cleanup in which `killed` processes were killed. Of a system of containers, containers count instead:
    /// the client of an engine has nothing to end in order.
    fn cleanup(&self, killed: usize) -> Cleanup {
        let killed = if self.project.is_some() { self.killed } else { killed };
        Cleanup { exit: self.exit, killed, left: Vec::new(), containers_left: None }
    }
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}
