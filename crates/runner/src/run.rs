//! The run: builds once, then every trial of the plan in its order.

use crate::trial::{Broken, Finished, run_trial};
use plimsoll_bundle::{BundleError, BundleWriter};
use plimsoll_model::event::Event;
use plimsoll_model::factor::Assignment;
use plimsoll_model::host::Version;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::system::{CommandLine, SystemSpec};
use plimsoll_model::trial::{Plan, Trial, TrialLength};
use plimsoll_study::{Bindings, PortChoice, Study};
use plimsoll_system::{Launcher, SystemError, sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is to be run, and with what.
pub struct Run<'a> {
    /// The study.
    pub study: &'a Study,
    /// Its plan.
    pub plan: &'a Plan,
    /// Starts systems.
    pub launcher: &'a Launcher,
    /// What `{plimsoll}` stands for in the study.
    pub program: &'a Path,
    /// Set from outside to stop.
    pub interrupted: &'a AtomicBool,
}

/// What every trial needs to know.
pub(crate) struct Context<'a> {
    pub(crate) study: &'a Study,
    pub(crate) facts: &'a StudyFacts,
    pub(crate) plan: &'a Plan,
    pub(crate) launcher: &'a Launcher,
    pub(crate) program: &'a Path,
    pub(crate) interrupted: &'a AtomicBool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every trial ran; whether it counts stands in its summary.
    Complete,
    /// It was stopped from outside; what had ended is in the bundle.
    Interrupted,
}

/// Why a run broke off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A system could not be built or described.
    #[error("{0}")]
    System(String),
    /// The first trial of a variant could not begin, or all its exchanges failed, for the reason that
    /// its summary gives.
    #[error(
        "trial {trial} gave nothing, nor would another of `{variant}`, so the run was broken off; correct that, and run \
         the study into a new folder"
    )]
    NeverWorked {
        /// The trial's number.
        trial: u32,
        /// The variant, as in reports.
        variant: String,
    },
    /// The results cannot be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Runs what the bundle does not have yet. `on_event` hears everything that happens, after the
/// bundle has it.
///
/// # Errors
/// A system does not come up at all, or the bundle cannot be written. Nothing that was started is
/// left in either case.
pub fn run(run: &Run<'_>, bundle: &mut BundleWriter, on_event: &mut dyn FnMut(&Event)) -> Result<Ending, RunError> {
    let facts = run.study.facts();
    let context = Context {
        study: run.study,
        facts: &facts,
        plan: run.plan,
        launcher: run.launcher,
        program: run.program,
        interrupted: run.interrupted,
    };
    let done: BTreeSet<u32> = bundle.sealed_trials().clone();
    let left: Vec<&Trial> = run.plan.trials.iter().filter(|trial| !done.contains(&trial.number)).collect();
    tell(
        bundle,
        on_event,
        &Event::RunStarted {
            trials: run.plan.trials.len() as u32,
            already_done: done.len() as u32,
            time_under_load: time_under_load(run.plan, &left),
        },
    )?;
    let ending = match carry_out(&context, &left, bundle, on_event) {
        Ok(()) => Ending::Complete,
        Err(Stop::Interrupted) => Ending::Interrupted,
        Err(Stop::Broken(error)) => {
            tell(bundle, on_event, &Event::RunFinished { complete: false })?;
            return Err(error);
        }
    };
    tell(bundle, on_event, &Event::RunFinished { complete: ending == Ending::Complete })?;
    if ending == Ending::Complete {
        bundle.complete()?;
    }
    Ok(ending)
}

/// Why not everything was carried out.
enum Stop {
    Interrupted,
    Broken(RunError),
}

impl From<BundleError> for Stop {
    fn from(error: BundleError) -> Self {
        Stop::Broken(error.into())
    }
}

impl From<SystemError> for Stop {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => Stop::Interrupted,
            error => Stop::Broken(RunError::System(error.to_string())),
        }
    }
}

fn carry_out(
    context: &Context<'_>,
    trials: &[&Trial],
    bundle: &mut BundleWriter,
    on_event: &mut dyn FnMut(&Event),
) -> Result<(), Stop> {
    let systems = distinct_systems(context, trials);
    build(context, &systems, bundle, on_event)?;
    let mut versions = versions(context, &systems)?;
    bundle.versions(&versions)?;
    let (mut working, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for trial in trials {
        let finished = run_one(context, trial, bundle, on_event)?;
        if add_executables(&finished.executables, &mut seen, &mut versions) {
            bundle.versions(&versions)?;
        }
        // A variant that never came up, or never gave a right answer, will not do so the next time;
        // one that has before is worth another try, and its failed trial stands in the report.
        if finished.worked {
            working.insert(trial.variant);
        } else if !working.contains(&trial.variant) {
            let variant = context.plan.variants[trial.variant].label();
            return Err(Stop::Broken(RunError::NeverWorked { trial: trial.number, variant }));
        }
    }
    Ok(())
}

fn run_one(
    context: &Context<'_>,
    trial: &Trial,
    bundle: &mut BundleWriter,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Finished, Stop> {
    if context.interrupted.load(Ordering::Relaxed) {
        return Err(Stop::Interrupted);
    }
    let started = Event::TrialStarted {
        trial: *trial,
        variant: context.plan.variants[trial.variant].label(),
        condition: context.plan.conditions[trial.condition].to_string(),
    };
    tell(bundle, on_event, &started)?;
    let mut writer = bundle.begin_trial(trial)?;
    let outcome = run_trial(context, trial, &mut writer, &mut |event| tell(bundle, on_event, event));
    let finished = match outcome {
        Ok(finished) => finished,
        Err(Broken::Interrupted) => return Err(Stop::Interrupted),
        Err(Broken::Bundle(error)) => return Err(error.into()),
    };
    bundle.seal_trial(writer, &finished.summary, &finished.processes, &finished.host)?;
    let over = Event::TrialFinished {
        trial: trial.number,
        validity: finished.summary.validity.clone(),
        iterations: finished.iterations,
        errors: finished.errors,
    };
    tell(bundle, on_event, &over)?;
    Ok(finished)
}

/// First the bundle, then everybody else.
fn tell(bundle: &mut BundleWriter, on_event: &mut dyn FnMut(&Event), event: &Event) -> Result<(), BundleError> {
    bundle.event(event)?;
    on_event(event);
    Ok(())
}

fn time_under_load(plan: &Plan, trials: &[&Trial]) -> Duration {
    trials.iter().map(|trial| TrialLength::load(plan.lengths[trial.condition])).sum()
}

/// The systems of all trials, each program once.
fn distinct_systems(context: &Context<'_>, trials: &[&Trial]) -> Vec<SystemSpec> {
    let mut distinct: Vec<SystemSpec> = Vec::new();
    for assignment in trials.iter().map(|trial| context.plan.assignment(trial)) {
        for system in stand_in_systems(context, &assignment) {
            if !distinct.iter().any(|known| is_same_program(known, &system)) {
                distinct.push(system);
            }
        }
    }
    distinct
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
    let bindings = Bindings { ports: ports.collect(), plimsoll: context.program.to_owned() };
    context.study.resolve(assignment, &bindings).map(|spec| spec.systems).unwrap_or_default()
}

/// Runs every distinct build command once.
fn build(
    context: &Context<'_>,
    systems: &[SystemSpec],
    bundle: &mut BundleWriter,
    on_event: &mut dyn FnMut(&Event),
) -> Result<(), Stop> {
    let mut built: Vec<(&CommandLine, &PathBuf)> = Vec::new();
    for system in systems {
        let Some(command) = &system.build else { continue };
        if built.contains(&(command, &system.dir)) {
            continue;
        }
        built.push((command, &system.dir));
        let (name, shown) = (system.name.clone(), command.to_string());
        tell(bundle, on_event, &Event::BuildStarted { system: name.clone(), command: shown })?;
        let interrupted = || context.interrupted.load(Ordering::Relaxed);
        let took = context.launcher.build(system, &bundle.build_log(&name), &interrupted)?;
        tell(bundle, on_event, &Event::BuildFinished { system: name, took })?;
    }
    Ok(())
}

fn versions(context: &Context<'_>, systems: &[SystemSpec]) -> Result<Vec<Version>, Stop> {
    let mut versions = Vec::new();
    for system in systems {
        let version = context.launcher.version_of(system)?;
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}

/// Adds the files that systems really ran, where they are not the ones that were started: behind
/// a wrapper script there is another program. Returns whether there were any.
fn add_executables(
    executables: &[(String, PathBuf)],
    seen: &mut BTreeSet<(String, PathBuf)>,
    versions: &mut Vec<Version>,
) -> bool {
    let before = versions.len();
    for (name, file) in executables {
        if !seen.insert((name.clone(), file.clone())) {
            continue;
        }
        let sha256 = sha256(file).ok();
        if !versions.iter().any(|known| known.name == *name && known.sha256 == sha256) {
            versions.push(Version { name: name.clone(), program: file.display().to_string(), version: None, sha256 });
        }
    }
    versions.len() > before
}
