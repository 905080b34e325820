//! `plimsoll run`: from a study file to a bundle and its report.

use super::report;
use super::study::{self, Source};
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::say;
use anyhow::Context;
use plimsoll_bundle::BundleWriter;
use plimsoll_model::event::Event;
use plimsoll_model::trial::{Plan, Validity};
use plimsoll_runner::{Ending, Run, RunError};
use plimsoll_system::Launcher;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn run(arguments: &arguments::Run) -> Result<Exit, Failure> {
    let mut source = study::read(&arguments.study)?;
    if arguments.quick {
        source.study = plimsoll_study::quick(source.study);
    }
    let name = arguments.study.display().to_string();
    let stem = arguments.study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let named_by = if stem == "study" { folder_name(&arguments.study).unwrap_or(stem) } else { stem };
    let out = arguments.output.out.clone().unwrap_or_else(|| new_folder(&named_by));
    let quick = if arguments.quick { " --quick" } else { "" };
    let go_on = format!("plimsoll run {name}{quick} --resume --out {}", out.display());
    run_study(&Task { name: &name, source: &source, out: &out, resume: arguments.resume, go_on: Some(go_on) })
}

/// A study to be run into a bundle.
pub(super) struct Task<'a> {
    /// The study's file, as shown to people.
    pub(super) name: &'a str,
    pub(super) source: &'a Source,
    /// The bundle.
    pub(super) out: &'a Path,
    /// Whether the bundle is there already, to be gone on with.
    pub(super) resume: bool,
    /// The command that goes on after an interruption, if one can.
    pub(super) go_on: Option<String>,
}

/// The name of the folder in which the study lies.
fn folder_name(study: &Path) -> Option<String> {
    let folder = std::path::absolute(study).ok()?.parent()?.file_name()?.to_string_lossy().into_owned();
    Some(folder)
}

/// A folder named by study and time.
pub(super) fn new_folder(name: &str) -> PathBuf {
    let now = plimsoll_bundle::folder_time();
    Path::new("plimsoll-runs").join(format!("{name}-{now}"))
}

/// Runs the study and writes its report into the bundle.
pub(super) fn run_study(task: &Task<'_>) -> Result<Exit, Failure> {
    let Task { name, source, out, resume, go_on } = task;
    let plan = study::plan(&source.study);
    study::check_before_start(name, &source.study, &plan)?;
    let mut bundle = open_bundle(source, &plan, out, *resume)?;
    let interrupted = interruptible()?;
    let mut progress = Progress::new(&source.study.title, out);
    let run = Run {
        study: &source.study,
        plan: &plan,
        launcher: &Launcher::of_this_program(&[super::WARDEN]),
        program: &study::this_program()?,
        interrupted: &interrupted,
    };
    let result = plimsoll_runner::run(&run, &mut bundle, &mut |event: &Event| progress.show(event));
    progress.finish();
    let ending = match result {
        Ok(ending) => ending,
        Err(error @ (RunError::System(_) | RunError::NeverWorked { .. })) => {
            return Err(Failure::new(Exit::SystemFailed, error));
        }
        Err(error @ RunError::Bundle(_)) => return Err(Failure::new(Exit::Usage, error)),
    };
    drop(bundle);
    if ending == Ending::Interrupted {
        let shown = out.display();
        say::note(&format!("interrupted; what had ended is in {shown}"));
        if let Some(go_on) = go_on {
            say::note(&format!("  go on:  {go_on}"));
        }
        say::note(&format!("  report: plimsoll report {shown}"));
        return Ok(Exit::Interrupted);
    }
    let written = report::write(out, &out.join("report"))?;
    report::print_summary(&written)?;
    Ok(exit_of(&written.validities))
}

fn open_bundle(source: &Source, plan: &Plan, out: &Path, resume: bool) -> Result<BundleWriter, Failure> {
    let opened = if resume {
        BundleWriter::resume(out, &source.text, &source.study.facts(), plan)
    } else {
        let host = plimsoll_telemetry::host_facts();
        BundleWriter::create(out, &source.text, &source.study.facts(), plan, &host)
    };
    opened.map_err(|error| Failure::new(Exit::Usage, error))
}

/// A flag that the first signal sets; the second one ends the program at once, and the wardens
/// clean up behind it.
fn interruptible() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, interrupted.clone())
            .and_then(|_| signal_hook::flag::register(signal, interrupted.clone()))
            .context("failed to listen for signals")?;
    }
    Ok(interrupted)
}

/// A failed trial outweighs void ones, and one that counts is enough for an answer.
fn exit_of(trials: &[Validity]) -> Exit {
    if trials.iter().any(|validity| matches!(validity, Validity::Failed(_))) {
        Exit::SystemFailed
    } else if trials.iter().any(Validity::counts) {
        Exit::Fine
    } else {
        Exit::Void
    }
}
