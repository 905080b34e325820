//! Containers, which an engine starts: found by a label of their own, listed, and removed.
//!
//! They are not children of the command that asks for them, so that ending that command ends none of them. Each start
//! of a system has a *project*, a name that no other has. Compose labels containers, networks and volumes with it, and
//! a single container gets a label of ours. What has the label is removed when the system stops, by its warden when
//! Plimsoll dies, and by the next run where the warden died as well.

use crate::error::SystemError;
use crate::program::{check_command, set_environment};
use plimsoll_model::system::{CommandLine, Containers, ContainersOf, SystemSpec};
use plimsoll_model::words::and_list;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The label with which Compose marks what belongs to a project (Compose Specification, "Project name").
const OF_COMPOSE: &str = "com.docker.compose.project";
/// The label of a container that is started alone.
const ALONE: &str = "plimsoll.project";
/// How long a request to an engine may take, beyond what it is asked to wait.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// How long removing all of a project may take, beyond the grace of its containers.
pub(crate) const REMOVAL_LIMIT: Duration = Duration::from_secs(60);
/// An engine may still carry out a request of a client that was killed.
const SECOND_LOOK: Duration = Duration::from_millis(200);
/// How often the end of a request is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The period of a limit on processors where none is said, in microseconds.
const CPU_PERIOD: u64 = 100_000;
const MEBIBYTE: f64 = (1_u64 << 20) as f64;
/// The exit code of a container that was ended by SIGKILL.
const KILLED: i32 = 128 + 9;

/// The client of an engine: its program, and where and with which environment it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Engine {
    program: PathBuf,
    dir: PathBuf,
    inherit: Option<Vec<String>>,
    env: BTreeMap<String, String>,
}

/// Everything that one start of a system has of an engine: containers, networks, volumes, images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Project {
    engine: Engine,
    name: String,
    /// The name of its label.
    label: String,
}

/// A container of a project.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Container {
    pub(crate) name: String,
    /// Its name for people: that of its service, where Compose started it.
    pub(crate) shown: String,
    /// The image as it was asked for.
    pub(crate) image: String,
    /// The hash of the image.
    pub(crate) image_id: String,
    pub(crate) limits: Limits,
    pub(crate) state: ContainerState,
}

/// The limits of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Of processors in use; none if it may use all.
    processors: Option<f64>,
    /// Of memory, in bytes; none if it may use all.
    memory: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContainerState {
    /// The number of its first process, as this machine has it.
    Running(i32),
    Ended {
        exit_code: i32,
        out_of_memory: bool,
    },
    /// `created`, `restarting`, …
    Other(String),
}

/// The output of a client that succeeded.
struct Answer {
    output: String,
    errors: String,
}

impl Engine {
    fn of(spec: &SystemSpec, containers: &Containers) -> Result<Engine, SystemError> {
        let program = check_command(&CommandLine(vec![containers.engine.clone()]), spec)?;
        let (dir, inherit, env) = (spec.dir.clone(), spec.inherit.clone(), spec.env.clone());
        Ok(Engine { program, dir, inherit, env })
    }

    /// The answer of the engine. An error has the command and the first line of what came instead.
    fn ask(&self, arguments: &[&str], limit: Duration) -> Result<String, String> {
        Ok(self.run(&self.program, arguments, limit)?.output)
    }

    fn run(&self, program: &Path, arguments: &[&str], limit: Duration) -> Result<Answer, String> {
        let name = program.file_name().unwrap_or_default().display();
        let what = || format!("`{name} {}`", arguments.join(" "));
        let mut command = Command::new(program);
        set_environment(&mut command, self.inherit.as_deref(), &self.env);
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        let mut run = || -> io::Result<(Option<bool>, String, String)> {
            let (output, errors) = (in_memory()?, in_memory()?);
            let mut child = command.stdout(output.try_clone()?).stderr(errors.try_clone()?).spawn()?;
            let deadline = Instant::now() + limit;
            let succeeded = loop {
                match child.try_wait()? {
                    Some(status) => break Some(status.success()),
                    None if Instant::now() > deadline => break None,
                    None => sleep(POLL_INTERVAL),
                }
            };
            if succeeded.is_none() {
                child.kill()?;
                child.wait()?;
            }
            Ok((succeeded, read(output)?, read(errors)?))
        };
        match run() {
            Ok((Some(true), output, errors)) => Ok(Answer { output, errors }),
            Ok((Some(false), output, errors)) => {
                let said = if errors.trim().is_empty() { output } else { errors };
                Err(format!("{} failed: {}", what(), said.trim().lines().next().unwrap_or("it wrote nothing")))
            }
            Ok((None, ..)) => Err(format!("{} did not answer within {limit:?}", what())),
            Err(error) => Err(format!("{} cannot be run: {error}", what())),
        }
    }

    /// The projects with this label whose names begin with `prefix`.
    fn projects(&self, label: &str, prefix: &str) -> Result<BTreeSet<String>, String> {
        let filter = format!("label={label}");
        let format = format!("{{{{.Label \"{label}\"}}}}");
        let mut projects = BTreeSet::new();
        for kind in [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]] {
            let listed = self.ask(&[kind, &["--filter", &filter, "--format", &format]].concat(), REQUEST_LIMIT);
            // Not every engine can print labels of networks and volumes.
            let listed = if kind[0] == "ps" { listed? } else { listed.unwrap_or_default() };
            projects.extend(listed.lines().map(str::to_owned).filter(|name| name.starts_with(prefix)));
        }
        Ok(projects)
    }
}

impl Project {
    /// The project of a start of `spec`, by a name that no other has; none where the system has no containers.
    pub(crate) fn of(spec: &SystemSpec, run: &str) -> Result<Option<Project>, SystemError> {
        let Some(containers) = &spec.containers else { return Ok(None) };
        let label = match containers.origin {
            ContainersOf::Compose(_) => OF_COMPOSE,
            ContainersOf::Image(_) => ALONE,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{}{}-{now:x}", prefix_of_run(run), plain(&spec.name));
        Ok(Some(Project { engine: Engine::of(spec, containers)?, name, label: label.to_owned() }))
    }

    /// True where Compose makes its containers.
    pub(crate) fn is_of_compose(&self) -> bool {
        self.label == OF_COMPOSE
    }

    /// The start command with the name of the project in it.
    pub(crate) fn command(&self, start: &CommandLine) -> CommandLine {
        let mut words = start.0.clone();
        if self.is_of_compose() {
            let place = words.iter().position(|word| word == "--file").unwrap_or(1);
            words.splice(place..place, ["--project-name".to_owned(), self.name.clone()]);
        } else {
            // Behind `docker run`.
            let named = [format!("--name={}", self.name), format!("--label={}={}", self.label, self.name)];
            words.splice(2..2, named);
        }
        CommandLine(words)
    }

    /// Its containers, ended ones included.
    pub(crate) fn containers(&self) -> Result<Vec<Container>, String> {
        let list = || self.ids(&["ps", "--all", "--no-trunc"]);
        let mut ids = list()?;
        loop {
            let found = self.states(&ids);
            if found.is_ok() {
                return found;
            }
            // Of one that has gone meanwhile nothing can be asked, which is no fault of the engine.
            let before = std::mem::replace(&mut ids, list()?);
            if ids == before {
                return found;
            }
        }
    }

    fn states(&self, ids: &[String]) -> Result<Vec<Container>, String> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let format = "{{.State.Status}}\t{{.State.Pid}}\t{{.State.ExitCode}}\t{{.State.OOMKilled}}\t{{.Image}}\t\
                      {{.Config.Image}}\t{{.Name}}\t{{index .Config.Labels \"com.docker.compose.service\"}}\t\
                      {{.HostConfig.NanoCpus}}\t{{.HostConfig.CpuQuota}}\t{{.HostConfig.CpuPeriod}}\t{{.HostConfig.Memory}}";
        let question = [&["container", "inspect", "--format", format][..], &as_texts(ids)].concat();
        let answer = self.engine.ask(&question, REQUEST_LIMIT)?;
        answer.lines().map(|line| container(line).ok_or_else(|| format!("unexpected state: {line}"))).collect()
    }

    /// The version of the engine; of one without a server, that of its client.
    pub(crate) fn engine_version(&self) -> Option<String> {
        let of = |part: &str| {
            let answer = self.engine.ask(&["version", "--format", &format!("{{{{.{part}.Version}}}}")], REQUEST_LIMIT);
            answer.ok().map(|answer| answer.trim().to_owned()).filter(|version| !version.is_empty())
        };
        of("Server").or_else(|| of("Client"))
    }

    /// The name of the program that asks the engine.
    pub(crate) fn engine(&self) -> String {
        self.engine.program.file_name().unwrap_or_default().display().to_string()
    }

    /// Asks its containers to end, and kills them after `grace`. Returns how many had to be killed.
    pub(crate) fn stop(&self, grace: Duration) -> Result<usize, String> {
        let ids = self.ids(&["ps"])?;
        if ids.is_empty() {
            return Ok(0);
        }
        let began = Instant::now();
        let seconds = grace.as_secs_f64().ceil().to_string();
        self.engine.ask(&[&["stop", "-t", &seconds][..], &as_texts(&ids)].concat(), grace + REQUEST_LIMIT)?;
        // One whose own signal to stop is SIGKILL ends with the same code, but does not take that long.
        if began.elapsed() < grace {
            return Ok(0);
        }
        let killed = |one: &Container| matches!(one.state, ContainerState::Ended { exit_code: KILLED, .. });
        Ok(self.containers()?.iter().filter(|one| killed(one)).count())
    }

    /// Removes its containers, networks and volumes, and the images that Compose has built for it under its name, until
    /// there is none.
    pub(crate) fn remove(&self) -> Result<(), String> {
        let deadline = Instant::now() + REMOVAL_LIMIT;
        loop {
            let found = self.remove_what_is_there();
            match found {
                Ok(0) => return Ok(()),
                Ok(left) if Instant::now() > deadline => return Err(format!("{left} of them come again and again")),
                Err(reason) if Instant::now() > deadline => return Err(reason),
                Ok(_) | Err(_) => sleep(SECOND_LOOK),
            }
        }
    }

    /// Returns how many there were.
    fn remove_what_is_there(&self) -> Result<usize, String> {
        let mut removed = 0;
        let mut remove = |ids: Vec<String>, how: &[&str]| {
            removed += ids.len();
            if ids.is_empty() {
                Ok(())
            } else {
                self.engine.ask(&[how, &as_texts(&ids)].concat(), REQUEST_LIMIT).map(|_| ())
            }
        };
        remove(self.ids(&["ps", "--all"])?, &["rm", "--force", "--volumes"])?;
        if self.is_of_compose() {
            remove(self.ids(&["network", "ls"])?, &["network", "rm"])?;
            remove(self.ids(&["volume", "ls"])?, &["volume", "rm", "--force"])?;
            remove(self.images()?, &["image", "rm", "--force"])?;
        }
        Ok(removed)
    }

    /// The ids of what has its label.
    fn ids(&self, list: &[&str]) -> Result<Vec<String>, String> {
        let filter = format!("label={}={}", self.label, self.name);
        let listed = self.engine.ask(&[list, &["--quiet", "--filter", &filter]].concat(), REQUEST_LIMIT)?;
        Ok(listed.split_whitespace().map(str::to_owned).collect())
    }

    /// The images that Compose names after the project, which it does where a service is built and names none.
    fn images(&self) -> Result<Vec<String>, String> {
        let references = ['-', '_'].map(|between| format!("reference={}{between}*", self.name));
        let [first, second] = references.each_ref().map(String::as_str);
        let format = "{{.Repository}}:{{.Tag}}";
        let list = ["images", "--filter", first, "--filter", second, "--format", format];
        Ok(self.engine.ask(&list, REQUEST_LIMIT)?.split_whitespace().map(str::to_owned).collect())
    }
}

/// Removes what an earlier process of this run has left of the containers of `spec`. Returns how many of its projects
/// there were.
pub(crate) fn remove_left_over(spec: &SystemSpec, run: &str) -> Result<usize, SystemError> {
    let Some(containers) = &spec.containers else { return Ok(0) };
    let failed = |reason| SystemError::Engine { system: spec.name.clone(), reason };
    let engine = Engine::of(spec, containers)?;
    let mut removed = 0;
    for label in [OF_COMPOSE, ALONE] {
        for name in engine.projects(label, &prefix_of_run(run)).map_err(failed)? {
            Project { engine: engine.clone(), name, label: label.to_owned() }.remove().map_err(failed)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Checks that the Compose file is there, in order, and has the services that are `measured`, and that the programs that
/// start the containers of a system answer.
#[must_use]
pub fn check_containers(spec: &SystemSpec, measured: &[&str]) -> Option<SystemError> {
    let containers = spec.containers.as_ref()?;
    let written = spec.files.as_ref().map(|files| files.folder.as_path());
    if let ContainersOf::Compose(file) = &containers.origin {
        let path = spec.dir.join(file);
        if !path.is_file() && !written.is_some_and(|folder| path.starts_with(folder)) {
            return Some(SystemError::NoComposeFile { system: spec.name.clone(), file: path });
        }
    }
    let answers = || -> Result<(), SystemError> {
        let failed = |reason| SystemError::Engine { system: spec.name.clone(), reason };
        let engine = Engine::of(spec, containers)?;
        engine.ask(&["ps", "--quiet"], REQUEST_LIMIT).map_err(failed)?;
        if let ContainersOf::Compose(file) = &containers.origin {
            let program = check_command(&spec.start, spec)?;
            let words: Vec<&str> =
                spec.start.0.iter().skip(1).take_while(|word| *word != "--file").map(String::as_str).collect();
            let compose =
                |words_after: &[&str]| engine.run(&program, &[&words[..], words_after].concat(), REQUEST_LIMIT);
            compose(&["version"]).map_err(failed)?;
            let file = file.to_string_lossy();
            // A file that the study writes is not there yet, and Podman's Compose cannot check one.
            if containers.engine != "docker" || !spec.dir.join(&*file).is_file() {
                return Ok(());
            }
            let bad = |reason| SystemError::BadComposeFile { system: spec.name.clone(), reason };
            let Answer { errors, .. } = compose(&["--file", &file, "config", "--quiet"]).map_err(bad)?;
            if let Some(unset) = errors.lines().find(|line| line.contains("variable is not set")) {
                return Err(bad(unset.trim().to_owned()));
            }
            if !measured.is_empty() {
                let answer = compose(&["--file", &file, "config", "--services"]).map_err(bad)?;
                let services: BTreeSet<&str> = answer.output.split_whitespace().collect();
                let known = |service: &&&str| services.len() > 1 && services.contains(*service);
                if let Some(service) = measured.iter().find(|service| !known(service)) {
                    return Err(no_service(&spec.name, service, &services.into_iter().collect::<Vec<&str>>()));
                }
            }
        }
        Ok(())
    };
    answers().err()
}

fn no_service(system: &str, service: &str, services: &[&str]) -> SystemError {
    let known = match services {
        [one] => format!("it has `{one}` alone, so measure `cpu:{system}.avg` or `memory:{system}.max`"),
        several => {
            format!("it has {}; measure one of them, as in `cpu:{system}/{}.avg`", and_list(several), several[0])
        }
    };
    SystemError::NoService { system: system.to_owned(), service: service.to_owned(), known }
}

/// The beginning of the names of all projects of a run.
fn prefix_of_run(run: &str) -> String {
    format!("plimsoll-{}-", plain(run))
}

/// A text as a part of a project's name, which has small letters, digits, `-` and `_`.
fn plain(text: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}

/// A container, from a line of twelve fields.
fn container(line: &str) -> Option<Container> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [status, pid, exit_code, out_of_memory, image_id, image, name, service, limits @ ..] = fields.as_slice() else {
        return None;
    };
    let state = match *status {
        "running" => ContainerState::Running(pid.parse().ok()?),
        "exited" | "dead" | "stopped" => {
            ContainerState::Ended { exit_code: exit_code.parse().ok()?, out_of_memory: *out_of_memory == "true" }
        }
        other => ContainerState::Other(other.to_owned()),
    };
    let name = name.trim_start_matches('/');
    let shown = if matches!(*service, "" | "<no value>") { name } else { service };
    Some(Container {
        name: name.to_owned(),
        shown: shown.to_owned(),
        image: (*image).to_owned(),
        image_id: image_id.trim_start_matches("sha256:").to_owned(),
        limits: limits_of(limits.try_into().ok()?),
        state,
    })
}

/// The limits of a container, from billionths of a processor, microseconds of processors in a period of so many, and bytes.
/// Zero is none, and so is what an engine does not tell.
fn limits_of(fields: &[&str; 4]) -> Limits {
    let positive = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let [billionths, quota, period, memory] = fields.map(positive);
    let of_period = quota.map(|quota| quota as f64 / period.unwrap_or(CPU_PERIOD) as f64);
    Limits { processors: billionths.map(|billionths| billionths as f64 / 1e9).or(of_period), memory }
}

impl fmt::Display for Limits {
    /// `, at most 0.5 processors and 512 MiB of memory`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processors = self.processors.map(|processors| format!("{processors} processors"));
        let memory = self.memory.map(|bytes| format!("{} MiB of memory", (bytes as f64 / MEBIBYTE).round()));
        let limits: Vec<String> = processors.into_iter().chain(memory).collect();
        if limits.is_empty() { Ok(()) } else { write!(f, ", at most {}", limits.join(" and ")) }
    }
}

fn as_texts(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

fn in_memory() -> io::Result<File> {
    Ok(File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?))
}

fn read(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn project(label: &str) -> Project {
        let engine = Engine { program: "docker".into(), dir: "/".into(), inherit: None, env: BTreeMap::new() };
        Project { engine, name: "plimsoll-x".to_owned(), label: label.to_owned() }
    }

    fn command(text: &str) -> CommandLine {
        CommandLine(text.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn the_project_is_named_where_each_tool_takes_it() {
        let named = |label, text| project(label).command(&command(text)).to_string();
        assert_eq!(
            named(OF_COMPOSE, "docker compose --file c.yaml up"),
            "docker compose --project-name plimsoll-x --file c.yaml up"
        );
        assert_eq!(
            named(OF_COMPOSE, "docker-compose --file c.yaml up"),
            "docker-compose --project-name plimsoll-x --file c.yaml up"
        );
        assert_eq!(
            named(ALONE, "podman run -p 80:80 nginx"),
            "podman run --name=plimsoll-x --label=plimsoll.project=plimsoll-x -p 80:80 nginx"
        );
    }

    #[test]
    fn a_container_that_goes_between_two_questions_is_no_fault_of_the_engine() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("engine");
        let engine_that = |inspects: &str| {
            // It has two containers when it is asked first, and one from then on.
            let script = format!(
                "#!/bin/sh\ncase \"$1\" in\nps) echo a; [ -e asked ] || echo b; touch asked;;\ncontainer) {inspects};;\nesac\n"
            );
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let mut project = project(ALONE);
            (project.engine.program, project.engine.dir) = (program.clone(), place.path().to_owned());
            project
        };
        let state = "printf 'running\\t42\\t0\\tfalse\\tsha256:ab\\tnginx\\t/web\\t\\t0\\t0\\t0\\t0\\n'";
        let gone = engine_that(&format!("case \"$*\" in *b) echo No such container >&2; exit 1;; *) {state};; esac"));
        let found = gone.containers().unwrap();
        assert_eq!(found.iter().map(|one| &one.state).collect::<Vec<_>>(), [&ContainerState::Running(42)]);
        let broken = engine_that("echo no such engine >&2; exit 1");
        assert!(broken.containers().is_err_and(|reason| reason.contains("no such engine")));
    }

    #[test]
    fn the_state_of_a_container_is_read() {
        let line = |line: &str| format!("{}\t\t0\t0\t0\t0", line.replace(' ', "\t"));
        let read = |text: &str| container(&line(text)).expect("a container").state;
        assert_eq!(read("running 42 0 false sha256:ab nginx /web"), ContainerState::Running(42));
        let ended = ContainerState::Ended { exit_code: 137, out_of_memory: true };
        assert_eq!(read("exited 0 137 true sha256:ab nginx /web"), ended);
        assert_eq!(read("created 0 0 false sha256:ab nginx /web"), ContainerState::Other("created".to_owned()));
        assert_eq!(container("running"), None);
    }

    #[test]
    fn limits_are_told_where_there_are_some() {
        let told = |line: &str| {
            let fields: Vec<&str> = line.split(' ').collect();
            limits_of(fields.as_slice().try_into().unwrap()).to_string()
        };
        assert_eq!(told("0 0 0 0"), "");
        assert_eq!(told("1500000000 0 0 0"), ", at most 1.5 processors");
        assert_eq!(told("0 50000 0 0"), ", at most 0.5 processors");
        assert_eq!(told("0 50000 25000 0"), ", at most 2 processors");
        assert_eq!(told("500000000 0 100000 536870912"), ", at most 0.5 processors and 512 MiB of memory");
        assert_eq!(told("<no -1 value> 268435456"), ", at most 256 MiB of memory");
    }

    #[test]
    fn names_of_projects_have_no_capitals_colons_or_dots() {
        assert_eq!(prefix_of_run("2026-11-27T03:30:33.5Z"), "plimsoll-2026-11-27t03-30-33-5z-");
    }
}
