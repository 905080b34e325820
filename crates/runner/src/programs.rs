//! The programs of the systems: each is built and described once in a run, before the first trial
//! that needs it.

use crate::run::{Context, Stop};
use plimsoll_bundle::{BundleError, BundleWriter};
use plimsoll_model::event::Event;
use plimsoll_model::factor::Assignment;
use plimsoll_model::host::Version;
use plimsoll_model::system::{CommandLine, SystemSpec};
use plimsoll_model::trial::Trial;
use plimsoll_study::{Bindings, PortChoice};
use plimsoll_system::sha256;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Hears what happens, once the bundle has it.
pub(crate) type OnEvent<'a> = dyn FnMut(&Event) + 'a;

/// First the bundle, then everybody else.
pub(crate) fn tell(bundle: &mut BundleWriter, on_event: &mut OnEvent<'_>, event: &Event) -> Result<(), BundleError> {
    bundle.event(event)?;
    on_event(event);
    Ok(())
}

/// What has been built and described so far.
#[derive(Default)]
pub(crate) struct Programs {
    systems: Vec<SystemSpec>,
    built: Vec<(CommandLine, PathBuf)>,
    versions: Vec<Version>,
    /// Whether the bundle has a list of versions, were it an empty one.
    listed: bool,
    executables: BTreeSet<(String, PathBuf)>,
}

impl Programs {
    /// Builds and describes what `trials` need and no earlier trial did.
    pub(crate) fn make_ready<'t>(
        &mut self,
        context: &Context<'_>,
        trials: impl IntoIterator<Item = &'t Trial>,
        bundle: &mut BundleWriter,
        on_event: &mut OnEvent<'_>,
    ) -> Result<(), Stop> {
        let new = self.unknown_systems(context, trials);
        if new.is_empty() && self.listed {
            return Ok(());
        }
        self.build(context, &new, bundle, on_event)?;
        for system in &new {
            let version = context.launcher.version_of(system)?;
            if !self.versions.contains(&version) {
                self.versions.push(version);
            }
        }
        self.systems.extend(new);
        self.listed = true;
        Ok(bundle.versions(&self.versions)?)
    }

    /// Adds the files that systems really ran, where they are not the ones that were started: behind
    /// a wrapper script there is another program.
    pub(crate) fn add_executables(
        &mut self,
        executables: &[(String, PathBuf)],
        bundle: &mut BundleWriter,
    ) -> Result<(), BundleError> {
        let before = self.versions.len();
        for (name, file) in executables {
            if !self.executables.insert((name.clone(), file.clone())) {
                continue;
            }
            let (name, sha256) = (name.clone(), sha256(file).ok());
            if !self.versions.iter().any(|known| known.name == name && known.sha256 == sha256) {
                self.versions.push(Version { name, program: file.display().to_string(), version: None, sha256 });
            }
        }
        if self.versions.len() > before { bundle.versions(&self.versions) } else { Ok(()) }
    }

    /// The systems of `trials` that are not known yet, each program once.
    fn unknown_systems<'t>(
        &self,
        context: &Context<'_>,
        trials: impl IntoIterator<Item = &'t Trial>,
    ) -> Vec<SystemSpec> {
        let mut new: Vec<SystemSpec> = Vec::new();
        let mut seen = BTreeSet::new();
        for trial in trials {
            if !seen.insert((trial.variant, trial.condition)) {
                continue;
            }
            for system in stand_in_systems(context, &context.plan.assignment(trial)) {
                if !self.systems.iter().chain(&new).any(|known| is_same_program(known, &system)) {
                    new.push(system);
                }
            }
        }
        new
    }

    /// Runs every distinct build command once.
    fn build(
        &mut self,
        context: &Context<'_>,
        systems: &[SystemSpec],
        bundle: &mut BundleWriter,
        on_event: &mut OnEvent<'_>,
    ) -> Result<(), Stop> {
        for system in systems {
            let Some(command) = &system.build else { continue };
            let built = (command.clone(), system.dir.clone());
            if self.built.contains(&built) {
                continue;
            }
            self.built.push(built);
            let (name, shown) = (system.name.clone(), command.to_string());
            tell(bundle, on_event, &Event::BuildStarted { system: name.clone(), command: shown })?;
            let interrupted = || context.interrupted.load(Ordering::Relaxed);
            let took = context.launcher.build(system, &bundle.build_log(&name), &interrupted)?;
            tell(bundle, on_event, &Event::BuildFinished { system: name, took })?;
        }
        Ok(())
    }
}

/// Whether two systems are built, found and described alike, however they are started.
fn is_same_program(one: &SystemSpec, other: &SystemSpec) -> bool {
    let program = |system: &SystemSpec| system.start.program().to_owned();
    let parts = |system: &SystemSpec| (system.build.clone(), program(system), system.version.clone());
    one.name == other.name && one.dir == other.dir && one.env == other.env && parts(one) == parts(other)
}

/// The systems of a trial as they are before their ports are known.
fn stand_in_systems(context: &Context<'_>, assignment: &Assignment) -> Vec<SystemSpec> {
    let ports = context.study.system_ports(assignment).into_iter().map(|(name, choice)| match choice {
        PortChoice::Fixed(port) => (name, port),
        PortChoice::Free => (name, 1),
    });
    let plimsoll = context.program.to_owned();
    // What is recorded of programs must not hold the keys of the run.
    let bindings = Bindings { ports: ports.collect(), plimsoll, keys: context.study.stand_in_keys() };
    context.study.resolve(assignment, &bindings).map(|spec| spec.systems).unwrap_or_default()
}
