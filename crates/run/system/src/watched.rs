//! The containers of a running system: found when it is ready, and watched from then on.

use crate::containers::{Container, ContainerState, Project};
use crate::tree::started;
use plimsoll_model::host::Version;
use procfs::ProcResult;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The containers of a system. There are none until they are found.
#[derive(Debug)]
pub(crate) struct WatchedContainers {
    project: Project,
    /// When the warden was started, in ticks since the machine was.
    since: Option<u64>,
    watched: Vec<Watched>,
    /// The services that had done their work when the others were found.
    ended: Vec<String>,
    /// The names of those that were there, and since when there have been no others.
    unchanged: Option<(Vec<String>, Instant)>,
}

/// Compose makes the containers of a project one after the other: for so long, there must be no more of them.
const SETTLED: Duration = Duration::from_millis(300);

/// The time in which an engine notices that the process of a container has ended.
const UNNOTICED: Duration = Duration::from_secs(5);

/// A container that is to run as long as its system.
#[derive(Debug)]
struct Watched {
    container: Container,
    /// Its first process.
    pid: i32,
    /// When that was started, in ticks since the machine was: numbers of processes are used again. None where it cannot be
    /// seen, because the engine runs in a virtual machine or on another host.
    started: Option<u64>,
}

/// A service of a Compose file, or the only container of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name in the Compose file.
    pub name: String,
    /// The first process of each of its containers, as far as they are on this machine; none of one that had done its work
    /// before the system was ready.
    pub first: Vec<i32>,
    /// True if it has containers whose processes are not on this machine.
    pub is_elsewhere: bool,
}

/// The result of looking for containers.
#[derive(Debug)]
pub(crate) enum Found {
    /// All run, or have done their work.
    AllRun,
    /// One has not started yet, in words.
    NotYet(String),
    Ended(EndedContainer),
}

/// A container that should still run.
#[derive(Debug)]
pub(crate) struct EndedContainer {
    pub(crate) name: String,
    /// Its end, in words.
    pub(crate) what: String,
}

impl WatchedContainers {
    /// The containers of a system whose warden was started at `since`, in ticks since the machine was.
    pub(crate) fn new(project: Project, since: Option<u64>) -> WatchedContainers {
        WatchedContainers { project, since, watched: Vec::new(), ended: Vec::new(), unchanged: None }
    }

    /// Finds the containers. An error is what the engine says.
    pub(crate) fn find(&mut self) -> Result<Found, String> {
        let listed = self.project.containers()?;
        let (mut watched, mut ended_services) = (Vec::new(), Vec::new());
        for container in listed.clone() {
            match &container.state {
                ContainerState::Running(pid) => {
                    let pid = *pid;
                    let started = match self.started(pid) {
                        Ok(started) => started,
                        Err(error) => return Ok(Found::NotYet(format!("that process {pid} cannot be read: {error}"))),
                    };
                    watched.push(Watched { container, pid, started });
                }
                // One that has done its work, such as a migration.
                ContainerState::Ended { exit_code: 0, .. } => ended_services.push(container.shown),
                ContainerState::Ended { .. } => return Ok(Found::Ended(ended(&container))),
                ContainerState::Other(state) => {
                    return Ok(Found::NotYet(format!("that the container `{}` is {state}", container.shown)));
                }
            }
        }
        if watched.is_empty() {
            return Ok(Found::NotYet("no container that runs".to_owned()));
        }
        // One whose process is not seen may have ended since.
        if watched.iter().any(|one| one.started.is_none()) && self.project.containers()? != listed {
            return Ok(Found::NotYet("containers that come and go".to_owned()));
        }
        if self.project.is_of_compose()
            && !self.is_settled(listed.into_iter().map(|container| container.name).collect())
        {
            return Ok(Found::NotYet("containers that come and go".to_owned()));
        }
        (self.watched, self.ended) = (watched, ended_services);
        Ok(Found::AllRun)
    }

    /// When the first process of a container was started; none if it is not on this machine.
    fn started(&self, pid: i32) -> ProcResult<Option<u64>> {
        // One that is older than the system is another process: the engine is elsewhere, and has numbers of its own.
        let is_its_own = |started: &u64| self.since.is_none_or(|since| *started >= since);
        Ok(started(pid)?.filter(is_its_own))
    }

    fn is_settled(&mut self, names: Vec<String>) -> bool {
        match &self.unchanged {
            Some((known, since)) if *known == names => since.elapsed() >= SETTLED,
            _ => {
                self.unchanged = Some((names, Instant::now()));
                false
            }
        }
    }

    /// A container that has ended since it was found, whatever its exit code. Processes alone are looked at as long as they
    /// are there: asking the engine each time would cost more than it is worth.
    pub(crate) fn check(&self) -> Option<EndedContainer> {
        let Watched { container, pid, .. } = self.watched.iter().find(|one| one.is_gone())?;
        let given_up = Instant::now() + UNNOTICED;
        let state = loop {
            let now = self.project.containers().unwrap_or_default();
            let same = now.into_iter().find(|one| one.name == container.name);
            match same.map(|same| same.state) {
                // Its process has ended, and the engine has not noticed.
                Some(ContainerState::Running(same)) if same == *pid && Instant::now() < given_up => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                state => break state.unwrap_or_else(|| ContainerState::Other("gone".to_owned())),
            }
        };
        Some(ended(&Container { state, ..container.clone() }))
    }

    /// A container that has failed, be it one that was not found; and one whose process is not seen, if it is no longer the
    /// one that was found.
    pub(crate) fn failed(&self) -> Option<EndedContainer> {
        let all = self.project.containers().ok()?;
        let has_failed =
            |one: &&Container| matches!(one.state, ContainerState::Ended { exit_code, .. } if exit_code != 0);
        let mut unseen = self.watched.iter().filter(|one| one.started.is_none());
        all.iter().find(has_failed).map(ended).or_else(|| unseen.find_map(|one| one.changed(&all)))
    }

    /// Their services, in the order of their names.
    pub(crate) fn services(&self) -> Vec<Service> {
        let empty = |name: &str| Service { name: name.to_owned(), first: Vec::new(), is_elsewhere: false };
        let mut services: BTreeMap<&str, Service> =
            self.ended.iter().map(|ended| (ended.as_str(), empty(ended.as_str()))).collect();
        for Watched { container, pid, started } in &self.watched {
            let service = services.entry(&container.shown).or_insert_with(|| empty(&container.shown));
            match started {
                Some(_) => service.first.push(*pid),
                None => service.is_elsewhere = true,
            }
        }
        services.into_values().collect()
    }

    /// Their images, and the engine that runs them, as programs of the system.
    pub(crate) fn versions(&self, system: &str) -> Vec<Version> {
        let mut versions: Vec<Version> = Vec::new();
        for Watched { container, .. } in &self.watched {
            let (name, program) = (system.to_owned(), container.image.clone());
            let version = Some(format!("image of `{}`{}", container.shown, container.limits));
            let sha256 = Some(container.image_id.clone());
            let image = Version { name, program, path: None, version, sha256 };
            if !versions.contains(&image) {
                versions.push(image);
            }
        }
        versions.extend(self.project.engine_version().map(|version| Version {
            name: system.to_owned(),
            program: self.project.engine(),
            path: None,
            version: Some(format!("engine {version}")),
            sha256: None,
        }));
        versions
    }
}

impl Watched {
    fn is_gone(&self) -> bool {
        has_gone(self.started, started(self.pid))
    }

    /// Its end, if among all containers of now there is none of its name that runs as it did.
    fn changed(&self, all: &[Container]) -> Option<EndedContainer> {
        let now = all.iter().find(|one| one.name == self.container.name);
        let state = now.map_or_else(|| ContainerState::Other("gone".to_owned()), |now| now.state.clone());
        (state != ContainerState::Running(self.pid)).then(|| ended(&Container { state, ..self.container.clone() }))
    }
}

/// True if a process that was started at `then` has ended. A look that fails says nothing about that.
fn has_gone(then: Option<u64>, now: ProcResult<Option<u64>>) -> bool {
    then.is_some() && now.is_ok_and(|now| now != then)
}

fn ended(container: &Container) -> EndedContainer {
    let what = match &container.state {
        ContainerState::Ended { out_of_memory: true, .. } => "was killed, because its memory was used up,".to_owned(),
        ContainerState::Ended { exit_code, .. } => format!("ended by itself, with exit code {exit_code},"),
        ContainerState::Running(_) => "ended by itself, and was started again,".to_owned(),
        ContainerState::Other(state) => format!("ended by itself, and is {state},"),
    };
    EndedContainer { name: container.shown.clone(), what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::containers::Limits;
    use procfs::ProcError;
    use rustix::io::Errno;
    use std::io;

    #[test]
    fn a_container_whose_process_is_not_seen_has_to_be_as_it_was() {
        let in_state = |state: ContainerState| Container {
            name: "shop-web-1".to_owned(),
            shown: "web".to_owned(),
            image: "web:1".to_owned(),
            image_id: String::new(),
            limits: Limits::default(),
            state,
        };
        let watched = Watched { container: in_state(ContainerState::Running(7)), pid: 7, started: None };
        let what = |all: &[Container]| watched.changed(all).map(|ended| ended.what);
        assert_eq!(what(&[in_state(ContainerState::Running(7))]), None);
        let again = what(&[in_state(ContainerState::Running(8))]);
        assert_eq!(again.as_deref(), Some("ended by itself, and was started again,"));
        let done = ContainerState::Ended { exit_code: 0, out_of_memory: false };
        assert_eq!(what(&[in_state(done)]).as_deref(), Some("ended by itself, with exit code 0,"));
        assert_eq!(what(&[]).as_deref(), Some("ended by itself, and is gone,"));
    }

    #[test]
    fn a_process_has_gone_if_it_is_not_found_or_another_has_its_number() {
        let no_descriptor = || ProcError::from(io::Error::from(Errno::MFILE));
        for (then, now, gone) in [
            (Some(7), Ok(Some(7)), false),
            (Some(7), Ok(Some(8)), true),
            (Some(7), Ok(None), true),
            (Some(7), Err(no_descriptor()), false),
            (None, Ok(None), false),
        ] {
            let case = format!("{then:?} {now:?}");
            assert_eq!(has_gone(then, now), gone, "{case}");
        }
        assert_eq!(started(i32::MAX).expect("/proc"), None);
        assert!(started(std::process::id() as i32).is_ok_and(|own| own.is_some()));
    }
}
