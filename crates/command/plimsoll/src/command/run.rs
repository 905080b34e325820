//! `plimsoll run`: from a study file to a bundle and its report.

use super::interrupt::{Listener, Words};
use super::plan;
use super::report::{self, Judge};
use super::study::{self, Extent, Source};
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::forecast::{self, Forecaster};
use crate::progress::Progress;
use crate::say;
use plimsoll_analysis::{Goal, analyse};
use plimsoll_bundle::{BundleError, BundleWriter};
use plimsoll_fleet::{AgentFacts, Fleet, FleetError, Wanted};
use plimsoll_model::event::Event;
use plimsoll_model::host::LOCAL;
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::shell;
use plimsoll_model::system::SystemSpec;
use plimsoll_runner::generator::{Generator, LocalThreads};
use plimsoll_runner::host::Host;
use plimsoll_runner::{Ending, Run, RunError};
use plimsoll_study::Study;
use plimsoll_system::Launcher;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) fn run(arguments: &arguments::Run) -> Result<Exit, Failure> {
    let signals = Listener::start(Exit::Interrupted as i32)?;
    let file = &arguments.file;
    let source = study::read(&file.study, file.profile.as_deref())?;
    let extent = Extent::of(arguments.quick, arguments.until_decided, arguments.time);
    study::check_extent(&source.study, extent)?;
    study::must_compare(source.study.compares() || !arguments.gate, "--gate", report::WHAT_A_GATE_DOES)?;
    let name = file.study.display().to_string();
    let stem = file.study.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let named_by = if stem == "study" { folder_name(&file.study).unwrap_or(stem) } else { stem };
    let out = arguments.output.out.clone().unwrap_or_else(|| new_folder(&named_by));
    let resume_command = format!(
        "plimsoll run {}{}{}{}{}{} --resume --out {}",
        shell::word(&name),
        file.flag(),
        extent.flag(),
        if arguments.gate { " --gate" } else { "" },
        if arguments.keep_going { " --keep-going" } else { "" },
        arguments.fleet.flags(),
        shell::word(&out.display())
    );
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
        keep_going: arguments.keep_going,
        fleet: Some(&arguments.fleet),
        signals: &signals,
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
    /// True if the run goes on where the machine is too busy for loads to count.
    pub(super) keep_going: bool,
    /// The agents that generate the load, if the arguments ask for any.
    pub(super) fleet: Option<&'a arguments::Fleet>,
    /// What interrupts the run.
    pub(super) signals: &'a Listener,
}

/// How long the machine is observed before a run: a tenth of the time under load, and within these limits.
const OBSERVATION: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];

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
    let (study, plan) = study::plan(as_it_began(task), task.extent)?;
    plimsoll_runner::remove_left_over_data(&study, &plan, &study::this_program()?);
    study::check_before_start(task.name, &study, &plan, task.resume)?;
    task.signals.say(words_of_signals(task));
    let mut broken_off = false;
    // Without agents there is no new bundle either; a bundle to go on with may be complete.
    let fleet = if task.resume { None } else { gather_agents(task, &study, &plan)? };
    match open_bundle(task, &study, &plan) {
        Ok(bundle) => match carry_out(task, &study, &plan, fleet, bundle)? {
            Ending::Interrupted => {
                tell_interrupted(task);
                return Ok(Exit::Interrupted);
            }
            Ending::BrokenOff => broken_off = true,
            Ending::Complete | Ending::Paused => {}
        },
        Err(complete @ BundleError::Complete(_)) => say::note(&complete.to_string()),
        Err(error) => return Err(Failure::new(Exit::Usage, error)),
    }
    let written = report::write(task.out, &task.out.join("report"), task.judge.gate())?;
    if task.prints_answer {
        report::print_summary(&written)?;
    }
    if broken_off {
        if let Some(how) = &task.resume_command {
            say::note(&format!("\ngo on:  {how}"));
        }
        return Ok(Exit::Open);
    }
    written.judged(task.judge)
}

/// Runs what the bundle does not have yet.
fn carry_out(
    task: &Task<'_>,
    study: &Study,
    plan: &Plan,
    fleet: Option<Fleet>,
    mut bundle: BundleWriter,
) -> Result<Ending, Failure> {
    must_go_on_alike(task, &bundle)?;
    let fleet = if fleet.is_some() { fleet } else { gather_agents(task, study, plan)? };
    let mut progress = Progress::new(study, task.out, plan, task.resume_command.is_some());
    let mut forecaster = Forecaster::new(plan, &bundle.recorded().looks);
    if !plan.looks.is_empty() {
        say::note(&format!("looks   {}", plan::looks(plan, task.judge.goal())));
    }
    let launcher = Launcher::of_this_program(&[super::WARDEN]).of_run(bundle.run_name());
    // This run holds the bundle, so whatever an earlier one has started is nobody's any more.
    match launcher.end_left_over() {
        0 => {}
        left => say::note(&format!("ended what the interrupted run had left ({left} of its processes)")),
    }
    let program = study::this_program()?;
    for system in plimsoll_runner::systems_of_containers(study, plan, &program) {
        match launcher.remove_left_over(&system).map_err(|error| Failure::new(Exit::SystemFailed, error))? {
            0 => {}
            left => say::note(&format!(
                "removed the containers that the interrupted run had left (those of {left} starts of systems)"
            )),
        }
    }
    let hosts = fleet.as_ref().map(Fleet::hosts).unwrap_or_default();
    let loading = fleet.as_ref().filter(|fleet| fleet.agents().next().is_some());
    end_left_over_elsewhere(task, study, plan, &hosts, bundle.run_name())?;
    let generator: &dyn Generator = loading.map_or(&LocalThreads as &dyn Generator, |fleet| fleet);
    let run = Run {
        study,
        plan,
        launcher: &launcher,
        program: &program,
        generator,
        hosts: &hosts,
        folder: &bundle.folder(),
        recorded: &bundle.recorded().clone(),
        interrupted: task.signals.interrupt(),
        observe: (plan.time_under_load(&plan.starts) / 10).clamp(OBSERVATION[0], OBSERVATION[1]),
        keep_going: task.keep_going,
        pause_after: None,
    };
    let mut look = |repeats| {
        look(task.out, repeats, task.judge.goal()).unwrap_or_else(|error| {
            say::note(&format!("the verdicts after {repeats} repeats cannot be told, so the run goes on: {error:#}"));
            Look::open(repeats)
        })
    };
    let mut tell = |event: &Event| {
        // The bundle gets the event first, so that everything shown is in the bundle.
        bundle.on_event(event)?;
        progress.show(event);
        if let Some(repeats) = forecaster.repeats_after(event) {
            let began = Instant::now();
            if let Ok(Some(text)) = forecast_after(task, repeats, &forecaster) {
                progress.forecast(text);
            }
            forecaster.spend(began.elapsed());
        }
        Ok(())
    };
    let result = plimsoll_runner::run(&run, &mut look, &mut tell);
    progress.finish();
    result.map_err(|error| match (&error, &task.resume_command) {
        // A disk that was full, say: what had ended is in the bundle.
        (RunError::Bundle(_), Some(how)) => {
            let kept = format!("the trials that had ended are kept; with the cause removed, go on:  {how}");
            Failure::new(Exit::Usage, anyhow::anyhow!("{error}\n{kept}"))
        }
        (RunError::Agents(_), Some(how)) => {
            let kept = format!("the trials that had ended are kept; with agents that work, go on:  {how}");
            Failure::new(Exit::SystemFailed, anyhow::anyhow!("{error}\n{kept}"))
        }
        _ => failure(error),
    })
}

/// Ends what an interrupted run has left on other hosts.
fn end_left_over_elsewhere(
    task: &Task<'_>,
    study: &Study,
    plan: &Plan,
    hosts: &BTreeMap<String, Box<dyn Host>>,
    run: &str,
) -> Result<(), Failure> {
    let program = study::this_program()?;
    for (label, host) in hosts {
        let systems = plimsoll_runner::systems_on(label, study, plan, &program);
        let containers: Vec<SystemSpec> = systems.into_iter().filter(|system| system.containers.is_some()).collect();
        let ended = host.end_left_over(run, &containers, task.signals.interrupt());
        let (processes, containers) = ended.map_err(|error| Failure::new(Exit::SystemFailed, error))?;
        if processes + containers > 0 {
            say::note(&format!(
                "ended what the interrupted run had left on the host of agent `{}` ({processes} processes, and the \
                 containers of {containers} starts of systems)",
                host.name()
            ));
        }
    }
    Ok(())
}

/// Refuses to go on with load from elsewhere: agents, or this process, for the whole of a run.
fn must_go_on_alike(task: &Task<'_>, bundle: &BundleWriter) -> Result<(), Failure> {
    let loads = || bundle.recorded().starts.values().flat_map(|start| &start.loads);
    let (had_agents, has_agents) =
        (loads().any(|load| !load.agents.is_empty()), task.fleet.is_some_and(|fleet| fleet.agents() > 0));
    if loads().next().is_none() || had_agents == has_agents {
        return Ok(());
    }
    let (was, remedy) = match had_agents {
        true => ("agents", "name the broker and their number again (`--nats`, `--agents`)"),
        false => ("this machine", "leave `--agents` out"),
    };
    let text = format!(
        "the load of the trials in {} came from {was}, and so must that of the others: {remedy}",
        task.out.display()
    );
    Err(Failure::new(Exit::Usage, anyhow::anyhow!(text)))
}

/// Waits for the agents that the arguments and the study ask for, if they ask for any.
fn gather_agents(task: &Task<'_>, study: &Study, plan: &Plan) -> Result<Option<Fleet>, Failure> {
    let hosts = plimsoll_runner::hosts(study, plan);
    let Some((arguments, broker)) = task.fleet.and_then(|fleet| Some((fleet, fleet.broker()?))) else {
        let Some(label) = hosts.first() else { return Ok(None) };
        if task.fleet.is_none() {
            let text = format!(
                "a system of the study runs on the host of an agent (`on = \"{label}\"`), and this command starts systems on \
                 this machine alone: leave `on` out"
            );
            return Err(Failure::new(Exit::Usage, anyhow::anyhow!(text)));
        }
        let text = format!(
            "a system of the study runs on the host of an agent (`on = \"{label}\"`): name the broker where the agent waits \
             (`plimsoll run --nats URL`), and start it there with `plimsoll agent --nats URL --label {} --systems \
             FOLDER`",
            shell::word(label)
        );
        return Err(Failure::new(Exit::Usage, anyhow::anyhow!(text)));
    };
    let (agents, when_lost) = (arguments.agents(), study.lost_agent);
    if agents == 0 && hosts.is_empty() {
        let text = "nothing of this run takes an agent: say how many are to generate the load (`--agents N`), name one for a \
                    system (`on`), or leave `--nats` out";
        return Err(Failure::new(Exit::Usage, anyhow::anyhow!(text)));
    }
    let (labels, wait, run) = (arguments.labels(), arguments.wait(), task.out.display().to_string());
    let wanted = Wanted { agents, labels, hosts, wait, when_lost, run };
    let fleet = Fleet::gather(&broker, &wanted, task.signals.interrupt(), &mut say::note);
    let fleet = fleet.map_err(|error| match error {
        FleetError::Interrupted => Failure::new(Exit::Interrupted, error),
        error => Failure::new(Exit::Usage, error),
    })?;
    let agent = |(name, facts): (&str, &AgentFacts)| format!("{name} ({} processors)", facts.processors);
    if agents > 0 {
        say::note(&format!("agents  {}", fleet.agents().map(agent).collect::<Vec<String>>().join(", ")));
    }
    // Before anything has started.
    let program = study::this_program()?;
    if let Some(why) = plimsoll_runner::workloads(study, plan, &program).iter().find_map(|one| fleet.refusal(one)) {
        return Err(Failure::new(Exit::Usage, anyhow::anyhow!(why)));
    }
    for (label, host) in fleet.hosts() {
        say::note(&format!("host    {label}: agent `{}`", host.name()));
    }
    Ok(Some(fleet))
}

/// The failure of a run that ended early.
pub(super) fn failure(error: RunError) -> Failure {
    let exit = match error {
        RunError::System(_) | RunError::NeverWorked { .. } | RunError::NeverRight { .. } | RunError::Agents(_) => {
            Exit::SystemFailed
        }
        RunError::Bundle(_) => Exit::Usage,
    };
    Failure::new(exit, error)
}

fn tell_interrupted(task: &Task<'_>) {
    say::note(&format!("interrupted; what had ended is in {}", task.out.display()));
    tell_how_to_go_on(task);
}

fn tell_how_to_go_on(task: &Task<'_>) {
    if let Some(how) = &task.resume_command {
        say::note(&format!("  go on:  {how}"));
    }
    say::note(&format!("  report: plimsoll report {}", shell::word(&task.out.display())));
}

/// What is said when a signal comes: what happens now, and what to do afterwards.
fn words_of_signals(task: &Task<'_>) -> Words {
    let how = task.resume_command.as_ref().map_or(String::new(), |how| format!("\n  go on:  {how}"));
    Words {
        first: Some("interrupted: stopping what runs (once more ends the program at once)".to_owned()),
        second: Some(format!("ended at once; what had ended is in {}{how}", task.out.display())),
    }
}

/// The forecast after so many repeats of a run that is not over yet.
fn forecast_after(task: &Task<'_>, repeats: u32, forecaster: &Forecaster) -> anyhow::Result<Option<String>> {
    let mut contents = plimsoll_bundle::read(task.out)?;
    let plan = contents.plan.clone();
    let done = repeats.min(plan.repeats);
    contents.plan = contents.plan.up_to(done);
    let analysis = analyse(&report::input_of(contents));
    Ok(forecast::in_words((&analysis, task.judge.goal()), &plan, done, forecaster.time_of_repeat()))
}

/// A look after `repeats` repeats of a run that is not over yet.
fn look(bundle: &Path, repeats: u32, goal: Goal) -> anyhow::Result<Look> {
    let mut contents = plimsoll_bundle::read(bundle)?;
    contents.plan = contents.plan.up_to(repeats);
    contents.starts.retain(|start| start.summary.start.repeat <= repeats);
    Ok(analyse(&report::input_of(contents)).look(repeats, goal))
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
