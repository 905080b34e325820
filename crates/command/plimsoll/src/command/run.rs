//! `plimsoll run`: from a study file to a bundle and its report.

use super::interrupt::interruptible;
use super::plan;
use super::report::{self, Judge};
use super::study::{self, Extent, Source};
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::say;
use plimsoll_analysis::analyse;
use plimsoll_bundle::{BundleError, BundleWriter};
use plimsoll_model::event::Event;
use plimsoll_model::host::LOCAL;
use plimsoll_model::start::Plan;
use plimsoll_runner::generator::LocalThreads;
use plimsoll_runner::{Ending, Run, RunError};
use plimsoll_study::Study;
use plimsoll_system::Launcher;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &arguments::Run) -> Result<Exit, Failure> {
    let file = &arguments.file;
    let source = study::read(&file.study, file.profile.as_deref())?;
    let extent = Extent::of(arguments.quick, arguments.until_decided);
    study::check_extent(&source.study, extent)?;
    study::must_compare(source.study.compares() || !arguments.gate, "--gate", report::WHAT_A_GATE_DOES)?;
    let name = file.study.display().to_string();
    let stem = file.study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let named_by = if stem == "study" { folder_name(&file.study).unwrap_or(stem) } else { stem };
    let out = arguments.output.out.clone().unwrap_or_else(|| new_folder(&named_by));
    let resume_command =
        format!("plimsoll run {name}{}{} --resume --out {}", file.flag(), extent.flag(), out.display());
    let judge = match () {
        () if arguments.quick => Judge::Nothing,
        () if arguments.gate => Judge::Gate,
        () => Judge::Verdicts,
    };
    run_study(&Task {
        name: &name,
        source,
        extent,
        out: &out,
        resume: arguments.resume,
        resume_command: Some(resume_command),
        judge,
        prints_answer: true,
    })
}

/// A study to be run into a bundle.
pub(super) struct Task<'a> {
    /// The study's file, as shown to people.
    pub(super) name: &'a str,
    pub(super) source: Source,
    /// How much of the study is run.
    pub(super) extent: Extent,
    /// The bundle.
    pub(super) out: &'a Path,
    /// True if the bundle exists already and its run resumes.
    pub(super) resume: bool,
    /// The command that resumes the run after an interruption; none if it cannot resume.
    pub(super) resume_command: Option<String>,
    /// What the exit code depends on.
    pub(super) judge: Judge,
    /// Whether the answer is printed when the run has ended.
    pub(super) prints_answer: bool,
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
    let (study, plan) = study::plan(as_it_began(task), task.extent);
    study::check_before_start(task.name, &study, &plan)?;
    match open_bundle(task, &study, &plan) {
        Ok(bundle) => {
            if carry_out(task, &study, &plan, bundle)? == Ending::Interrupted {
                tell_interrupted(task);
                return Ok(Exit::Interrupted);
            }
        }
        Err(complete @ BundleError::Complete(_)) => say::note(&complete.to_string()),
        Err(error) => return Err(Failure::new(Exit::Usage, error)),
    }
    let written = report::write(task.out, &task.out.join("report"), task.judge.gate())?;
    if task.prints_answer {
        report::print_summary(&written)?;
    }
    written.judged(task.judge)
}

/// Runs what the bundle does not have yet.
fn carry_out(task: &Task<'_>, study: &Study, plan: &Plan, mut bundle: BundleWriter) -> Result<Ending, Failure> {
    let interrupted = interruptible(Exit::Interrupted as i32)?;
    let mut progress = Progress::new(&study.title, task.out);
    if !plan.looks.is_empty() {
        say::note(&format!("looks   {}", plan::looks(plan)));
    }
    let run = Run {
        study,
        plan,
        launcher: &Launcher::of_this_program(&[super::WARDEN]),
        program: &study::this_program()?,
        generator: &LocalThreads,
        folder: &bundle.folder(),
        recorded: &bundle.recorded().clone(),
        interrupted: &interrupted,
    };
    let mut decided = |repeats| {
        decided(task.out, repeats).unwrap_or_else(|error| {
            say::note(&format!("the verdicts after {repeats} repeats cannot be told, so the run goes on: {error:#}"));
            false
        })
    };
    let mut tell = |event: &Event| {
        // The bundle gets the event first, so that everything shown is in the bundle.
        bundle.on_event(event)?;
        progress.show(event);
        Ok(())
    };
    let result = plimsoll_runner::run(&run, &mut decided, &mut tell);
    progress.finish();
    result.map_err(|error| {
        let exit = match error {
            RunError::System(_) | RunError::NeverWorked { .. } | RunError::NeverRight { .. } => Exit::SystemFailed,
            RunError::Bundle(_) => Exit::Usage,
        };
        Failure::new(exit, error)
    })
}

fn tell_interrupted(task: &Task<'_>) {
    let shown = task.out.display();
    say::note(&format!("interrupted; what had ended is in {shown}"));
    if let Some(resume_command) = &task.resume_command {
        say::note(&format!("  go on:  {resume_command}"));
    }
    say::note(&format!("  report: plimsoll report {shown}"));
}

/// Whether every verdict is reached after `repeats` repeats of a run that is not over yet.
fn decided(bundle: &Path, repeats: u32) -> anyhow::Result<bool> {
    let mut contents = plimsoll_bundle::read(bundle)?;
    contents.plan = contents.plan.up_to(repeats);
    contents.starts.retain(|start| start.summary.start.repeat <= repeats);
    let analysis = analyse(&report::input_of(contents));
    Ok(analysis.verdicts().next().is_some() && analysis.is_decided())
}

/// A study without a design of its own goes on as its run began, whatever the default is by now.
fn as_it_began(task: &Task<'_>) -> Study {
    let study = task.source.study.clone();
    match plimsoll_bundle::design_of(task.out) {
        Ok(design) if task.resume && !study.names_design() => study.begun_as(design),
        // What is wrong with the bundle is told when it is opened.
        _ => study,
    }
}

fn open_bundle(task: &Task<'_>, study: &Study, plan: &Plan) -> Result<BundleWriter, BundleError> {
    let (text, facts) = (&task.source.text, study.facts());
    if task.resume {
        BundleWriter::resume(task.out, text, &facts, plan)
    } else {
        BundleWriter::create(task.out, text, &facts, plan, &plimsoll_telemetry::host_facts(LOCAL))
    }
}
