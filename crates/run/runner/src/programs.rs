//! The programs of the systems, and the files that users work with. Each is built and described once in a run, before
//! the first trial that needs it.

use crate::ending::Stop;
use crate::host::{Host, HostError};
use crate::preflight::{STAND_IN, measured_services, stand_in_at, with_words_for_ports};
use crate::run::{Context, EventSink};
use crate::running_variant::Executable;
use plimsoll_bundle::BundleError;
use plimsoll_model::database::{Database, Origin};
use plimsoll_model::event::Event;
use plimsoll_model::flow::{Body, PartContent};
use plimsoll_model::host::{Version, WORKLOAD};
use plimsoll_model::start::Start;
use plimsoll_model::system::{CommandLine, SystemSpec};
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_system::sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The programs and files that have been built and described so far.
#[derive(Default)]
pub(crate) struct Programs {
    systems: Vec<SystemSpec>,
    built: Vec<Build>,
    versions: Vec<Version>,
    /// Whether the bundle has a list of versions already, even an empty one.
    listed: bool,
    /// System, file, and of one on another host its hash.
    executables: BTreeSet<(String, PathBuf, Option<String>)>,
    /// The commands that start the systems of the trials so far.
    commands: Vec<Command>,
    /// The workloads of the trials so far.
    workloads: Vec<Workload>,
    /// The databases on other hosts so far.
    databases: Vec<Database>,
}

/// System, host, folder and command.
type Command = (String, Option<String>, PathBuf, CommandLine);

/// A build command, its host, its folder and its environment: with another one it may build something else.
type Build = (CommandLine, Option<String>, PathBuf, BTreeMap<String, String>);

/// Files among the arguments that are larger than this are data, not programs.
const LARGEST_PROGRAM: u64 = 64 << 20;

impl Programs {
    /// Builds and describes what `starts` need and no earlier start needed.
    pub(crate) fn make_ready<'t>(
        &mut self,
        context: &Context<'_>,
        starts: impl IntoIterator<Item = &'t Start>,
        tell: &mut EventSink<'_>,
    ) -> Result<(), Stop> {
        let before = self.versions.len();
        let New { systems, commands, databases } = self.new_systems(context, starts)?;
        check_elsewhere(context, &systems, &databases)?;
        self.build(context, &systems, tell)?;
        for system in &systems {
            let versions = match &system.on {
                Some(label) => context.host(label)?.version(system, context.interrupted)?,
                None => context.launcher.version_of(system, context.interrupted)?.into_iter().collect(),
            };
            versions.into_iter().for_each(|version| self.add(version));
        }
        for system in &commands {
            let versions = match &system.on {
                Some(label) => context.host(label)?.arguments(system, context.interrupted)?,
                None => arguments(system),
            };
            versions.into_iter().for_each(|version| self.add(version));
        }
        self.systems.extend(systems);
        if self.versions.len() == before && self.listed {
            return Ok(());
        }
        self.listed = true;
        Ok(self.tell_versions(tell)?)
    }

    fn add(&mut self, version: Version) {
        if !self.versions.contains(&version) {
            self.versions.push(version);
        }
    }

    /// Adds the files that systems really ran, if they are not the ones that were started: a wrapper script runs
    /// another program. The server program of a database also becomes known only now.
    pub(crate) fn add_executables(
        &mut self,
        executables: &[Executable],
        tell: &mut EventSink<'_>,
    ) -> Result<(), BundleError> {
        let before = self.versions.len();
        for Executable { system: name, file, sha256: elsewhere, version } in executables {
            if !self.executables.insert((name.clone(), file.clone(), elsewhere.clone())) {
                continue;
            }
            let sha256 = elsewhere.clone().or_else(|| sha256(file).ok());
            if !self.versions.iter().any(|known| known.name == *name && known.sha256 == sha256) {
                let (name, program) = (name.clone(), file.display().to_string());
                self.versions.push(Version { name, program, path: None, version: version.clone(), sha256 });
            }
        }
        if self.versions.len() > before { self.tell_versions(tell) } else { Ok(()) }
    }

    /// Adds the images that containers were made of, and their engines, which are known once those run.
    pub(crate) fn add_of_containers(
        &mut self,
        versions: Vec<Version>,
        tell: &mut EventSink<'_>,
    ) -> Result<(), BundleError> {
        let before = self.versions.len();
        versions.into_iter().for_each(|version| self.add(version));
        if self.versions.len() > before { self.tell_versions(tell) } else { Ok(()) }
    }

    fn tell_versions(&self, tell: &mut EventSink<'_>) -> Result<(), BundleError> {
        tell(&Event::VersionsFound { versions: self.versions.clone() })
    }

    /// What `starts` need and is not known yet. Also adds the files of their workloads.
    fn new_systems<'t>(
        &mut self,
        context: &Context<'_>,
        starts: impl IntoIterator<Item = &'t Start>,
    ) -> Result<New, HostError> {
        let (mut systems, mut commands): (Vec<SystemSpec>, Vec<SystemSpec>) = (Vec::new(), Vec::new());
        let mut databases = Vec::new();
        let mut assignments = BTreeSet::new();
        let pairs =
            starts.into_iter().flat_map(|start| start.variants.iter().map(|variant| (*variant, start.condition)));
        for (variant, condition) in pairs {
            if !assignments.insert((variant, condition)) {
                continue;
            }
            let assignment = context.plan.assignment(variant, condition);
            let hosts = context.study.system_hosts(&assignment).into_iter().collect();
            let places = context.places(&hosts, Path::new(""))?;
            let Ok(spec) = stand_in_at(context.study, &assignment, context.program, (0, 1), places) else { continue };
            self.add_files(context, spec.workload);
            for database in spec.databases.into_iter().filter(|database| database.on().is_some()) {
                if !self.databases.contains(&database) {
                    self.databases.push(database.clone());
                    databases.push(database);
                }
            }
            for system in spec.systems {
                let command = (system.name.clone(), system.on.clone(), system.dir.clone(), system.start.clone());
                let is_new_program = !self.systems.iter().chain(&systems).any(|known| is_same_program(known, &system));
                if system.containers.is_none() && !self.commands.contains(&command) {
                    self.commands.push(command);
                    commands.push(system.clone());
                }
                if is_new_program {
                    systems.push(system);
                }
            }
        }
        Ok(New { systems, commands, databases })
    }

    /// Adds the files that users work with, by their paths in the study.
    fn add_files(&mut self, context: &Context<'_>, workload: Workload) {
        if self.workloads.contains(&workload) {
            return;
        }
        for file in files_of(&workload) {
            let path = file.strip_prefix(context.study.folder()).unwrap_or(&file).display().to_string();
            let (name, sha256) = (WORKLOAD.to_owned(), sha256(&file).ok());
            self.add(Version { name, program: path, path: None, version: None, sha256 });
        }
        self.workloads.push(workload);
    }

    /// Runs every distinct build command once.
    fn build(&mut self, context: &Context<'_>, systems: &[SystemSpec], tell: &mut EventSink<'_>) -> Result<(), Stop> {
        for system in systems {
            let Some(command) = &system.build else { continue };
            let built = (command.clone(), system.on.clone(), system.dir.clone(), system.env.clone());
            if self.built.contains(&built) {
                continue;
            }
            self.built.push(built);
            let (name, shown) = (system.name.clone(), command.to_string());
            tell(&Event::BuildStarted { system: name.clone(), command: shown })?;
            let log = context.folder.build_log(&name);
            let took = match &system.on {
                Some(label) => context.host(label)?.build(system, &log, context.interrupted)?,
                None => context.launcher.build(system, &log, context.interrupted)?,
            };
            tell(&Event::BuildFinished { system: name, took })?;
        }
        Ok(())
    }
}

/// The systems that starts need and that were not known before.
struct New {
    /// Each program once.
    systems: Vec<SystemSpec>,
    /// Each command once.
    commands: Vec<SystemSpec>,
    /// The databases on other hosts, each once.
    databases: Vec<Database>,
}

/// Asks other hosts what would keep systems and databases from starting there: [`preflight`](crate::preflight()) looks at this machine alone.
fn check_elsewhere(context: &Context<'_>, systems: &[SystemSpec], databases: &[Database]) -> Result<(), Stop> {
    let mut faults: Vec<String> = Vec::new();
    let mut add = |host: &dyn Host, found: &[String]| {
        let name = host.name();
        let told = found.iter().map(|fault| format!("on the host of agent `{name}`: {}", with_words_for_ports(fault)));
        faults.extend(told);
    };
    for (database, label) in databases.iter().filter_map(|database| Some((database, database.on()?))) {
        let host = context.host(label)?;
        add(host, &host.check_database(&without_stand_in(database), context.interrupted)?);
    }
    for system in systems {
        // What is built is not there yet.
        let Some(label) = system.on.as_ref().filter(|_| system.build.is_none()) else { continue };
        let host = context.host(label)?;
        let services = measured_services(context.study, &system.name);
        // A port that is not fixed is chosen when it starts.
        let system = SystemSpec { port: system.port.filter(|port| *port != STAND_IN), ..system.clone() };
        let found = host.check(&system, &services, context.interrupted)?;
        add(host, &found);
    }
    if faults.is_empty() { Ok(()) } else { Err(HostError::Failed(faults.join("\n")).into()) }
}

/// A database without the port that stands for one that is chosen when it starts.
fn without_stand_in(database: &Database) -> Database {
    let mut database = database.clone();
    if let Origin::Started(server) = &mut database.origin
        && server.port == STAND_IN
    {
        server.port = 0;
    }
    database
}

/// The files that users work with: the feeds and bodies of a flow, or the files that a script reads before it runs.
fn files_of(workload: &Workload) -> Vec<PathBuf> {
    let Steps::Flow(flow) = &workload.steps else { return plimsoll_generator::sources(workload) };
    let mut files: Vec<PathBuf> = flow.feeds.iter().map(|feed| feed.file.clone()).collect();
    for request in &flow.requests {
        match &request.body {
            Body::File(file) => files.push(file.clone()),
            Body::Multipart(parts) => files.extend(parts.iter().filter_map(|part| match &part.content {
                PartContent::File(file) => Some(file.clone()),
                PartContent::Text(_) => None,
            })),
            Body::None | Body::Text(_) | Body::Json(_) | Body::Form(_) => {}
        }
    }
    files
}

/// The arguments of a command that are files, with their hashes: in `python shop.py` the program is `python`, but what
/// is measured is `shop.py`.
#[must_use]
pub fn arguments(SystemSpec { name, dir, start, .. }: &SystemSpec) -> Vec<Version> {
    let files = start.arguments().iter().filter(|argument| !argument.is_empty()).map(|argument| dir.join(argument));
    let is_program = |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LARGEST_PROGRAM);
    let version = |path: PathBuf| Version {
        name: name.clone(),
        program: path.display().to_string(),
        path: None,
        version: None,
        sha256: sha256(&path).ok(),
    };
    files.filter(is_program).map(version).collect()
}

/// True if two systems are built, found and described in the same way, even if they are started differently.
fn is_same_program(one: &SystemSpec, other: &SystemSpec) -> bool {
    let program = |system: &SystemSpec| system.start.program().to_owned();
    let parts = |system: &SystemSpec| (system.build.clone(), program(system), system.version.clone());
    let environment = |system: &SystemSpec| (system.inherit.clone(), system.env.clone());
    one.name == other.name
        && one.on == other.on
        && one.dir == other.dir
        && one.containers == other.containers
        && environment(one) == environment(other)
        && parts(one) == parts(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::system::{Probe, Ready, StopPolicy, StopSignal};
    use std::time::Duration;

    #[test]
    fn arguments_that_are_files_are_part_of_a_program() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("shop.py"), "serve()").expect("a file");
        std::fs::create_dir(folder.path().join("static")).expect("a folder");
        let command = ["python3", "shop.py", "--port", "8080", "static", "", "none.py"].map(str::to_owned);
        let system = SystemSpec {
            name: "web".to_owned(),
            on: None,
            dir: folder.path().to_owned(),
            build: None,
            start: CommandLine(command.into()),
            containers: None,
            inherit: None,
            env: BTreeMap::new(),
            ready: Ready { probe: Probe::Started, within: Duration::ZERO },
            stop: StopPolicy { signal: StopSignal::Term, grace: Duration::ZERO },
            cpus: None,
            version: None,
            port: None,
            waits: BTreeMap::new(),
            metrics: None,
            files: None,
        };
        let found = arguments(&system);
        let [version] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((version.name.as_str(), version.sha256.is_some()), ("web", true));
        assert!(version.program.ends_with("/shop.py"), "{version:?}");
    }
}
