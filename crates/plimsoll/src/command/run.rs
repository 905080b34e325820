//! `plimsoll run`: from a study file to a bundle and its report.

use super::study::{self, Extent, Source};
use super::{plan, report};
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::say;
use anyhow::Context;
use plimsoll_analysis::analyse;
use plimsoll_bundle::BundleWriter;
use plimsoll_model::event::Event;
use plimsoll_model::trial::{Plan, Validity};
use plimsoll_runner::{Ending, Run, RunError};
use plimsoll_study::Study;
use plimsoll_system::Launcher;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn run(arguments: &arguments::Run) -> Result<Exit, Failure> {
    let file = &arguments.file;
    let source = study::read(&file.study, file.profile.as_deref())?;
    let extent = Extent::of(arguments.quick, arguments.until_decided);
    let name = file.study.display().to_string();
    let stem = file.study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let named_by = if stem == "study" { folder_name(&file.study).unwrap_or(stem) } else { stem };
    let out = arguments.output.out.clone().unwrap_or_else(|| new_folder(&named_by));
    let go_on = format!("plimsoll run {name}{}{} --resume --out {}", file.flag(), extent.flag(), out.display());
    let judge = match () {
        () if arguments.quick => Judge::Nothing,
        () if arguments.gate => Judge::Gate,
        () => Judge::Verdicts,
    };
    run_study(Task {
        name: &name,
        source,
        extent,
        out: &out,
        resume: arguments.resume,
        go_on: Some(go_on),
        judge,
        tell: true,
    })
}

/// A study to be run into a bundle.
pub(super) struct Task<'a> {
    /// The study's file, as shown to people.
    pub(super) name: &'a str,
    pub(super) source: Source,
    /// How much of it.
    pub(super) extent: Extent,
    /// The bundle.
    pub(super) out: &'a Path,
    /// Whether the bundle is there already, to be gone on with.
    pub(super) resume: bool,
    /// The command that goes on after an interruption, if one can.
    pub(super) go_on: Option<String>,
    /// What the exit code tells.
    pub(super) judge: Judge,
    /// Whether the answer is printed when the run has ended.
    pub(super) tell: bool,
}

/// What the exit code of a run tells beside whether its trials count.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judge {
    /// Nothing: it is a demonstration, or a first look.
    Nothing,
    /// What the verdicts come to.
    Verdicts,
    /// Whether every variant is shown to be no worse.
    Gate,
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
pub(super) fn run_study(task: Task<'_>) -> Result<Exit, Failure> {
    let Task { name, source, extent, out, resume, go_on, judge, tell } = task;
    let (study, plan) = study::plan(source.study, extent);
    study::check_before_start(name, &study, &plan)?;
    let mut bundle = open_bundle(&source.text, &study, &plan, out, resume)?;
    let interrupted = interruptible()?;
    let mut progress = Progress::new(&study.title, out);
    if !plan.looks.is_empty() {
        say::note(&format!("looks   {}", plan::looks(&plan)));
    }
    let run = Run {
        study: &study,
        plan: &plan,
        launcher: &Launcher::of_this_program(&[super::WARDEN]),
        program: &study::this_program()?,
        interrupted: &interrupted,
    };
    let mut decided = |repeats| {
        decided(out, repeats).unwrap_or_else(|error| {
            say::note(&format!("the verdicts after {repeats} repeats cannot be told, so the run goes on: {error:#}"));
            false
        })
    };
    let result = plimsoll_runner::run(&run, &mut bundle, &mut decided, &mut |event: &Event| progress.show(event));
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
    if tell {
        report::print_summary(&written)?;
    }
    if matches!(judge, Judge::Gate) {
        say::result(&format!("gate    {}", written.gate))?;
    }
    Ok(exit_of(&written, judge))
}

/// Whether every verdict is reached after so many repeats of a run that is not over yet.
fn decided(bundle: &Path, repeats: u32) -> anyhow::Result<bool> {
    let mut contents = plimsoll_bundle::read(bundle)?;
    contents.plan = contents.plan.up_to(repeats);
    contents.trials.retain(|trial| trial.summary.trial.repeat <= repeats);
    let analysis = analyse(&report::input_of(contents));
    Ok(analysis.verdicts().next().is_some() && analysis.is_decided())
}

fn open_bundle(text: &str, study: &Study, plan: &Plan, out: &Path, resume: bool) -> Result<BundleWriter, Failure> {
    let opened = if resume {
        BundleWriter::resume(out, text, &study.facts(), plan)
    } else {
        let host = plimsoll_telemetry::host_facts();
        BundleWriter::create(out, text, &study.facts(), plan, &host)
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

/// A failed trial outweighs any verdict. Where no trial counts, nothing can be concluded.
fn exit_of(written: &report::Written, judge: Judge) -> Exit {
    if written.validities.iter().any(|validity| matches!(validity, Validity::Failed(_))) {
        return Exit::SystemFailed;
    }
    if !written.validities.iter().any(Validity::counts) {
        return Exit::Open;
    }
    match judge {
        Judge::Nothing => Exit::Fine,
        Judge::Verdicts => Exit::of(written.analysis.verdicts(), false),
        Judge::Gate => Exit::of(written.analysis.verdicts(), true),
    }
}
