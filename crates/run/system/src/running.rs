//! A running system.

use crate::command::Supervised;
use crate::containers::Project;
use crate::error::SystemError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::launcher::Launcher;
use crate::output::{LastOutput, Output};
use crate::port::{foreign_listener, listener};
use crate::ready::Prober;
use crate::tree::{self, descendants};
use crate::watched::{EndedContainer, Found, Service, WatchedContainers};
use plimsoll_model::host::Version;
use plimsoll_model::system::SystemSpec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much earlier than asked for the kernel may end a wait, generously.
const EARLY: Duration = Duration::from_millis(20);

/// How long a system may take to notice that another process listens on its port.
const GRACE: Duration = Duration::from_millis(500);

/// The pause between two looks at a system of containers, each of which may ask an engine.
const ENGINE_PAUSE: Duration = Duration::from_millis(50);

/// A running system. Dropping it kills it with everything that it started.
#[derive(Debug)]
pub struct Running {
    launcher: Launcher,
    spec: SystemSpec,
    output: Output,
    started: Instant,
    warden: i32,
    /// When the warden was started, in ticks since the machine was. No process of this system is older.
    since: Option<u64>,
    command: Mutex<Supervised>,
    containers: Option<Mutex<WatchedContainers>>,
}

/// How a system was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// How the start command ended.
    pub exit: Option<Exit>,
    /// How long stopping took.
    pub took: Duration,
    /// The number of killed processes: those that did not end after the signal, and those that did not get
    /// it because they had left the system's process group.
    pub killed: usize,
}

impl Running {
    pub(crate) fn new(
        launcher: Launcher,
        spec: SystemSpec,
        output: Output,
        started: Instant,
        command: Supervised,
        project: Option<Project>,
    ) -> Running {
        let warden = command.warden();
        let since = tree::started(warden).ok().flatten();
        let containers = project.map(|project| Mutex::new(WatchedContainers::new(project, since)));
        Running { launcher, spec, output, started, warden, since, command: Mutex::new(command), containers }
    }

    /// The description that it was started from.
    #[must_use]
    pub fn spec(&self) -> &SystemSpec {
        &self.spec
    }

    /// The file of its output, and where in it this system began to write.
    #[must_use]
    pub fn output(&self) -> (&Path, u64) {
        self.output.place()
    }

    /// Its name in the study.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The process id of the warden, whose descendants are the system's processes.
    #[must_use]
    pub fn warden(&self) -> i32 {
        self.warden
    }

    /// Its processes at this instant.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        descendants(self.warden).iter().map(|entry| entry.pid).collect()
    }

    /// Its services, whose processes are not below the warden. None before it is ready, and of a system without containers.
    #[must_use]
    pub fn services(&self) -> Vec<Service> {
        self.watched().map(|containers| containers.services()).unwrap_or_default()
    }

    /// The process that forwards connections from its port into a container, if there is one of its own and it can be
    /// found.
    #[must_use]
    pub fn forwarder(&self) -> Option<i32> {
        let port = self.spec.port.filter(|_| self.containers.is_some())?;
        let listener = listener(port)?;
        // One that is older is the engine itself, and forwards for others too: Docker without `userland-proxy`.
        let began = tree::started(listener).ok().flatten()?;
        if self.since.is_some_and(|since| began < since) {
            return None;
        }
        // A service that shares the network of the machine listens itself.
        let group = control_groups(listener);
        let is_service =
            self.services().iter().flat_map(|service| &service.first).any(|one| control_groups(*one) == group);
        (!is_service).then_some(listener)
    }

    /// The images of its containers, and their engine, as programs of the system.
    #[must_use]
    pub fn versions_of_containers(&self) -> Vec<Version> {
        self.watched().map(|containers| containers.versions(&self.spec.name)).unwrap_or_default()
    }

    /// The file that its first process currently runs. It differs from the started file if that is a script, or
    /// a wrapper that has executed another program. None of containers, which have [`Running::versions_of_containers`].
    #[must_use]
    pub fn executable(&self) -> Option<PathBuf> {
        if self.containers.is_some() {
            return None;
        }
        let first = self.processes().into_iter().min()?;
        std::fs::read_link(format!("/proc/{first}/exe")).ok()
    }

    /// The last lines of its output.
    #[must_use]
    pub fn last_output(&self) -> LastOutput {
        self.output.last()
    }

    /// Waits until its probe succeeds, and returns the time from its start to then. Checks
    /// `interrupt` at least once a second.
    ///
    /// # Errors
    /// It ended, or did not become ready in time. If it ended because another process took its port after the port was
    /// found free, the error names that process.
    pub fn wait_ready(&self, interrupt: &Interrupt) -> Result<Duration, SystemError> {
        self.wait_until_probed(interrupt).map_err(|error| match (error, self.foreign_listener()) {
            (SystemError::Died { system, output, .. }, Some((port, holder))) => {
                SystemError::PortTaken { system, port, holder, output }
            }
            (error, _) => error,
        })
    }

    /// Its port with the process that listens there, if that is none of its own.
    fn foreign_listener(&self) -> Option<(u16, String)> {
        // What forwards to containers is none of the system's processes either.
        let port = self.spec.port.filter(|_| self.containers.is_none())?;
        Some((port, foreign_listener(port, &self.processes())?))
    }

    fn wait_until_probed(&self, interrupt: &Interrupt) -> Result<Duration, SystemError> {
        let within = self.spec.ready.within;
        let deadline = self.started + within;
        let mut prober = Prober::new(&self.launcher, &self.spec, &self.output)?;
        let mut found = None;
        loop {
            self.check()?;
            if interrupt.is_set() {
                return Err(SystemError::Interrupted { system: self.spec.name.clone() });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if let (true, Some(found)) = (left.is_zero(), found.take()) {
                return Err(self.not_ready(found));
            }
            let probed = match prober.probe(left, interrupt)? {
                None => self.find_containers()?,
                instead => instead,
            };
            let Some(instead) = probed else {
                let ready_after = self.started.elapsed();
                self.check()?; // the reply may come from another process, or from just before its end
                if self.foreign_listener().is_some() {
                    // Something that forwards to it; or a stranger, and then it is about to end.
                    self.wait_for_end(GRACE)?;
                }
                return Ok(ready_after);
            };
            // A probe that the deadline cut short says less than the one before it. The kernel may end a wait a little early.
            let cut_short = Instant::now() + EARLY >= deadline;
            found = found.filter(|_| cut_short).or(Some(instead));
            let pause = if self.containers.is_some() { ENGINE_PAUSE } else { prober.pause() };
            self.wait_for_end(pause.min(left))?;
        }
    }

    /// Finds the containers of a system whose probe has succeeded. Returns what was found instead if one has not started yet.
    fn find_containers(&self) -> Result<Option<String>, SystemError> {
        let Some(mut containers) = self.watched() else { return Ok(None) };
        match containers.find() {
            Ok(Found::AllRun) => Ok(None),
            Ok(Found::NotYet(instead)) => Ok(Some(instead)),
            Ok(Found::Ended(ended)) => Err(self.container_ended(ended)),
            Err(reason) => Err(SystemError::Engine { system: self.spec.name.clone(), reason }),
        }
    }

    fn container_ended(&self, EndedContainer { name, what }: EndedContainer) -> SystemError {
        let (system, after) = (self.spec.name.clone(), self.started.elapsed());
        SystemError::ContainerEnded { system, container: name, what, after, output: Box::new(self.output.last()) }
    }

    /// How it ended by itself, if it did.
    pub fn has_ended(&self) -> Result<Option<Exit>, SystemError> {
        self.command().ended(Duration::ZERO)
    }

    /// Fails if it has ended by itself, with its last output.
    pub fn check(&self) -> Result<(), SystemError> {
        let ended = self.watched().and_then(|containers| containers.check());
        ended.map_or(Ok(()), |ended| Err(self.container_ended(ended)))?;
        self.wait_for_end(Duration::ZERO)
    }

    /// Stops it: signals its process group, kills the group after the grace period, and kills all processes
    /// that it started elsewhere. Returns when all of them are gone. Fails if it had ended by itself before; the error says
    /// too what of it is left.
    pub fn stop(self) -> Result<Stopped, SystemError> {
        // A container that came late is not watched, but must not have failed either.
        let failed = || self.watched().and_then(|containers| containers.failed());
        let died = self.check().err().or_else(|| failed().map(|failed| self.container_ended(failed)));
        let start = Instant::now();
        let gone = self.command().stop(&self.spec.stop);
        if let Some(died) = died {
            return Err(died.and_left(gone));
        }
        let gone = gone?;
        Ok(Stopped { exit: gone.exit, took: start.elapsed(), killed: gone.killed })
    }

    fn wait_for_end(&self, within: Duration) -> Result<(), SystemError> {
        let Some(exit) = self.command().ended(within)? else { return Ok(()) };
        if let Some(failed) = self.watched().and_then(|containers| containers.failed()) {
            return Err(self.container_ended(failed));
        }
        Err(SystemError::Died {
            system: self.spec.name.clone(),
            command: self.spec.start.clone(),
            exit,
            after: self.started.elapsed(),
            output: Box::new(self.output.last()),
        })
    }

    fn not_ready(&self, found: String) -> SystemError {
        SystemError::NotReady {
            system: self.spec.name.clone(),
            probe: self.spec.ready.probe.clone(),
            found,
            within: self.spec.ready.within,
            advice: if self.containers.is_some() { " and on which ports its containers are reached" } else { "" },
            output: Box::new(self.output.last()),
        }
    }

    // A panic in another thread invalidates neither the control channel nor what is known of containers, so poisoning is
    // ignored.

    fn command(&self) -> MutexGuard<'_, Supervised> {
        self.command.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> Option<MutexGuard<'_, WatchedContainers>> {
        Some(self.containers.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The control groups of a process, a line each; none if it is not there.
fn control_groups(pid: i32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()
}
