//! Scripts as the load of a study, which decides which users begin iterations, and when.

use super::alone::{self, Inspected};
use super::console::KeptConsole;
use super::network;
use super::own_load::{self, OwnLoadPart};
use super::systems::Systems;
use super::threads::{Ids, Load, ScenarioUsers, allow_users};
use super::{Allowed, Console, Limits, Part, Run};
use plimsoll_engine::diagnostic::WorkloadDiagnostic;
use plimsoll_engine::job::{Jobs, LocalJob};
use plimsoll_engine::offer::Offering;
use plimsoll_javascript::{
    Copies, Entry, FOLDER_OF_COPIES, Files, HASHES_OF_COPIES, Program, ResultFormat, project_of,
};
use plimsoll_k6::user::Purpose;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::metrics::{Contains, Metric};
use plimsoll_k6_run::options::{Options, no_such_function};
use plimsoll_k6_run::scenario::{Executor, Scenario};
use plimsoll_model::flow::WorkloadPart;
use plimsoll_model::job::{Job, JobError, JobRecord, Report, SetUp, WorkFacts};
use plimsoll_model::load::LoadProfile;
use plimsoll_model::record;
use plimsoll_model::script::{Script, ScriptFacts};
use plimsoll_model::shell;
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::{Steps, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A script that was loaded for a study.
pub struct CompiledScript {
    program: Arc<Program>,
    inspected: Inspected,
    options: Options,
    script: Script,
    /// The longest that a request may take.
    timeout: Duration,
    /// Notes about options of the script that have no effect.
    notes: Vec<String>,
}

impl CompiledScript {
    /// Reads a script, and loads it for its options and metrics.
    ///
    /// # Errors
    /// Everything that is wrong with it, with its places.
    pub fn new(script: &Script, timeout: Duration) -> Result<CompiledScript, Vec<WorkloadDiagnostic>> {
        let fault = |text: String| vec![WorkloadDiagnostic::new(text)];
        let folder = script.entry.parent().filter(|folder| !folder.as_os_str().is_empty());
        let project = project_of(folder.unwrap_or(Path::new(".")));
        let folders = script.files.iter().map(PathBuf::as_path).chain([project.as_path()]);
        let opened_by = if script.own_load.is_some() { "`--files DIR`" } else { "`files` of the workload" };
        let files = Files::within(folders).map_err(|error| fault(error.to_string()))?.opened_by(opened_by);
        let taken_by = format!("plimsoll script vendor {}", shell::word(&script.entry.display()));
        let copies = Copies::within(project.join(FOLDER_OF_COPIES), taken_by);
        let files = files.with_copies(copies.map_err(|error| fault(error.to_string()))?);
        let program = Program::load(Entry::File(&script.entry), files, plimsoll_k6::natives())
            .map_err(|faults| faults.iter().map(|fault| WorkloadDiagnostic::new(fault.render())).collect::<Vec<_>>())?;
        let env = script.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let inspected = alone::inspect(&program, env, own_load::secrets(script), limits(script), &silent())
            .map_err(|why| fault(format!("failed to load `{}`: {why}", script.entry.display())))?;
        if !program.exports().contains(&script.exec) {
            let why = no_such_function(&script.exec, program.exports().iter().map(String::as_str));
            let what = format!("{}: {why}", script.entry.display());
            return Err(vec![WorkloadDiagnostic::of(WorkloadPart::Function, what)]);
        }
        let (options, mut notes) = options(&inspected, script)?;
        if program.exports().iter().any(|export| export == "handleSummary") {
            notes.push("the script's `handleSummary` is not called: a study has a report".to_owned());
        }
        Ok(CompiledScript { program, inspected, options, script: script.clone(), timeout, notes })
    }

    /// Offers the loads of a study's jobs, one after the other and with the same users, until there are no more, or one
    /// has users that do not stay. `setup` is called before the first, `teardown` after the last.
    ///
    /// # Errors
    /// `setup` fails, users cannot be made, or the machine does not allow what the loop needs.
    pub fn run(&self, first: &Job, jobs: &mut dyn Jobs, interrupted: &AtomicBool) -> Result<(), JobError> {
        if let Some(own_load) = &self.script.own_load {
            let (program, inspected, script) = (&self.program, &self.inspected, &self.script);
            let part = OwnLoadPart { program, inspected, script, own_load, limits: limits(script) };
            return part.run(first, jobs, interrupted);
        }
        let console = KeptConsole::default();
        let result = self.run_with(&console, first, jobs, interrupted);
        // A script that failed may have written why to its console.
        console.take().into_iter().for_each(|lines| jobs.report(Report::Console(lines)));
        result
    }

    fn run_with(
        &self,
        console: &KeptConsole,
        first: &Job,
        jobs: &mut dyn Jobs,
        interrupted: &AtomicBool,
    ) -> Result<(), JobError> {
        let users = first.users();
        allow_users(users)?;
        let plan = Arc::new(self.plan(&first.load).of_share(first.share));
        let run = Run {
            program: &self.program,
            plan: &plan,
            limits: limits(&self.script),
            allowed: Allowed::loopback_and(&self.script.allowed, "add it to `allow` under `[targets]` of the study"),
            threads: first.generator.threads.min(usize::try_from(users).unwrap_or(usize::MAX)).max(1),
            cpus: first.generator.cpus.as_ref(),
            seed: first.seed,
            console: console.console(),
            interrupted,
            part: Part::default(),
        };
        let network = run.network()?;
        let systems = Systems::of(&self.script);
        let network = Arc::new(network::Shared { longest: self.timeout.into(), systems, ..network });
        let data = match &first.set_up {
            SetUp::Elsewhere(data) => data.clone(),
            SetUp::Here => self.set_up(&run, &network, interrupted)?,
        };
        if first.share.of > 1 && first.set_up == SetUp::Here {
            jobs.report(Report::SetUp(data.clone()));
        }
        let halt = AtomicBool::new(false);
        let common = run.common(&network, interrupted, &halt);
        let common = super::RunContext { purpose: Purpose::Study, least_iteration: Nanos(0), ..common };
        let scenarios = [self.scenario_users(first, data.clone())];
        let (threads, cpus, share) = (run.threads, run.cpus, first.share);
        let load = Load { common: &common, scenarios: &scenarios, share, threads, cpus, copies: None };
        let steps = Steps::Script(Box::new(self.script.clone()));
        let calls_teardown = first.set_up == SetUp::Here;
        let mut torn_down = None;
        // A user that was stopped for good is missing in every later load.
        let mut broken = Vec::new();
        let ran = load.run_series(|series| {
            let mut next = Some(first.clone());
            while let Some(job) = next {
                let steering = jobs.steering();
                let offering = Offering::of(&job).steered(steering.clone());
                let mut with_console = |report: Report| {
                    jobs.report(report);
                    console.take().into_iter().for_each(|lines| jobs.report(Report::Console(lines)));
                };
                let when = (job.begin, steering.clone());
                let Some((findings, clock)) = series.run(vec![offering], when, job.stays, &mut with_console) else {
                    return;
                };
                let mut record =
                    LocalJob { job: &job, steering: &steering, interrupted }.record(findings, &steps, clock);
                if !job.stays && calls_teardown {
                    if job.share.of > 1 {
                        steering.wait_for_others(interrupted);
                    }
                    match torn_down.insert(self.tear_down(&run, &network, data.clone())) {
                        Ok(unended) => record.warnings.extend(unended.take()),
                        Err(_) => return,
                    }
                }
                let counts = console.end_load();
                console.take().into_iter().for_each(|lines| jobs.report(Report::Console(lines)));
                let facts = ScriptFacts {
                    times: self.times(),
                    console: counts.lines,
                    left_out: counts.left_out,
                    own_load: Vec::new(),
                };
                broken.extend(common.take_broken());
                jobs.ended(JobRecord { broken: broken.clone(), facts: WorkFacts::Script(facts), ..record });
                next = if job.stays { jobs.next() } else { None };
            }
        });
        if matches!(ran, Err(JobError::Late(_))) && calls_teardown {
            // It was set up, and its users were ready.
            let _ = self.tear_down(&run, &network, data.clone());
        }
        ran?;
        if torn_down.is_none() && calls_teardown {
            self.tear_down(&run, &network, data)?;
        }
        torn_down.unwrap_or(Ok(None)).map(drop)
    }

    fn set_up(
        &self,
        run: &Run<'_>,
        network: &Arc<network::Shared>,
        interrupted: &AtomicBool,
    ) -> Result<Option<String>, JobError> {
        if !self.exports("setup") {
            return Ok(None);
        }
        let timeout = self.options.setup_timeout.unwrap_or(Duration::MAX);
        let result = alone::call(run, network, "setup", Vec::new(), timeout, interrupted)?;
        let failed = |why| JobError::Users(format!("`setup` of the script failed: {why}"));
        result.called.map_err(failed)
    }

    /// Calls `teardown`, after the load. Returns why it failed, if it did.
    fn tear_down(
        &self,
        run: &Run<'_>,
        network: &Arc<network::Shared>,
        data: Option<String>,
    ) -> Result<Option<String>, JobError> {
        if !self.exports("teardown") {
            return Ok(None);
        }
        let timeout = self.options.teardown_timeout.unwrap_or(Duration::MAX);
        let arguments = data.into_iter().collect();
        let result = alone::call(run, network, "teardown", arguments, timeout, run.until_interrupted())?;
        Ok(result.called.err().map(|why| format!("`teardown` of the script failed: {why}")))
    }

    /// The script's own metrics.
    fn metrics(&self) -> impl Iterator<Item = &Metric> {
        let registry = &self.inspected.registry;
        registry.iter().filter(|(id, _)| registry.is_custom(*id)).map(|(_, metric)| metric)
    }

    /// The names of the script's own metrics that hold times.
    fn times(&self) -> BTreeSet<String> {
        self.metrics().filter(|metric| metric.contains == Contains::Time).map(|metric| metric.name.clone()).collect()
    }

    fn exports(&self, name: &str) -> bool {
        self.program.exports().iter().any(|export| export == name)
    }

    /// The study's load as users see it: one scenario.
    fn plan(&self, load: &LoadProfile) -> RunState {
        let executor = Executor::ConstantVus { vus: u64::from(load.most_users()), duration: load.stop.limit() };
        let scenario = Scenario {
            name: "default".to_owned(),
            executor,
            start_time: Duration::ZERO,
            graceful_stop: load.drain,
            exec: self.script.exec.clone(),
            env: Vec::new(),
            tags: Vec::new(),
        };
        self.inspected.plan.configured(self.options.clone(), vec![scenario], self.inspected.registry.clone())
    }

    fn scenario_users(&self, job: &Job, data: Option<String>) -> ScenarioUsers {
        ScenarioUsers {
            offering: Offering::of(job),
            function: self.script.exec.clone(),
            arguments: data.into_iter().collect(),
            result: ResultFormat::Nothing,
            scenario: Some(0),
            ids: Ids::From(1),
            made_before: u64::from(job.load.most_users()),
        }
    }
}

/// Notes about settings of a script that have no effect in a study, a line each: its load, thresholds and summary.
#[must_use]
pub fn notes(workload: &Workload) -> Vec<String> {
    loaded(workload).map_or_else(Vec::new, |plan| plan.notes)
}

/// The files that a workload's script reads before it runs: its modules, and the files that they open.
#[must_use]
pub fn sources(workload: &Workload) -> Vec<PathBuf> {
    let read = |plan: CompiledScript| plan.program.files().all_read().into_iter().map(|(path, _)| path).collect();
    loaded(workload).map_or_else(Vec::new, read)
}

/// The folder of the project to which a workload's script belongs; none if the workload is not a script.
#[must_use]
pub fn project(workload: &Workload) -> Option<PathBuf> {
    let Steps::Script(script) = &workload.steps else { return None };
    let folder = script.entry.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(project_of(folder.unwrap_or(Path::new("."))))
}

/// The file with the hashes of remote modules that were copied into a script's project; none if there is no such file.
#[must_use]
pub fn hashes_of_copies(workload: &Workload) -> Option<PathBuf> {
    let file = project(workload)?.join(FOLDER_OF_COPIES).join(HASHES_OF_COPIES);
    Some(file).filter(|file| file.is_file())
}

/// The metrics that a workload's script defines; none if the workload is not a script, or if the script cannot be
/// loaded.
#[must_use]
pub fn metrics(workload: &Workload) -> Option<BTreeMap<String, record::Metric>> {
    let plan = loaded(workload)?;
    Some(plan.metrics().map(|metric| (metric.name.clone(), metric.kind.into())).collect())
}

fn loaded(workload: &Workload) -> Option<CompiledScript> {
    match &workload.steps {
        Steps::Script(script) => CompiledScript::new(script, workload.timeout).ok(),
        _ => None,
    }
}

/// The options that have an effect in a study, and notes about the others.
fn options(inspected: &Inspected, script: &Script) -> Result<(Options, Vec<String>), Vec<WorkloadDiagnostic>> {
    let json = inspected.options.as_deref().map(serde_json::from_str).transpose();
    let json =
        json.map_err(|error| vec![WorkloadDiagnostic::new(format!("failed to read the script's options: {error}"))])?;
    let read = json.map(|json| Options::read(&json)).unwrap_or_default();
    if !read.faults.is_empty() {
        return Err(read.faults.iter().map(|fault| WorkloadDiagnostic::new(fault.to_string())).collect());
    }
    let mut options = read.options;
    let mut notes: Vec<String> = read.ignored.iter().map(|ignored| format!("{ignored}; it is left aside")).collect();
    let (load, thresholds) = take_options_of_load(&mut options);
    if !load.is_empty() {
        let named = load.join("`, `");
        notes.push(format!(
            "the script's own `{named}` are left aside: `[load]` of the study says how much load there is"
        ));
    }
    if thresholds {
        notes.push("the script's `thresholds` are left aside: `[decide]` of the study says what counts".to_owned());
    }
    if options.http_debug.take().is_some() {
        notes.push("the script's `httpDebug` is left aside: to show a request takes longer than to send it".to_owned());
    }
    let own = script.tags.iter().map(|(name, value)| (name.clone(), value.clone()));
    options.tags.get_or_insert_default().extend(own);
    Ok((options.over(Options::defaults()), notes))
}

/// Removes the options that the study decides. Returns the names of the removed options of load, and true if there were
/// thresholds.
fn take_options_of_load(options: &mut Options) -> (Vec<&'static str>, bool) {
    let present = [
        (options.vus.take().is_some(), "vus"),
        (options.duration.take().is_some(), "duration"),
        (options.iterations.take().is_some(), "iterations"),
        (options.stages.take().is_some(), "stages"),
        (options.scenarios.take().is_some(), "scenarios"),
        (options.rps.take().is_some(), "rps"),
        (options.min_iteration_duration.take().is_some(), "minIterationDuration"),
    ];
    let load = present.into_iter().filter(|(present, _)| *present).map(|(_, name)| name).collect();
    (load, options.thresholds.take().is_some())
}

fn limits(script: &Script) -> Limits {
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let limits = script.limits;
    let vm = plimsoll_javascript::Limits {
        memory: bytes(limits.memory),
        stack: bytes(limits.stack),
        busy: limits.busy.into(),
    };
    Limits { vm, iteration: limits.iteration, ..Limits::default() }
}

/// A console that discards everything: what a script writes while it is inspected, it writes again when it runs.
fn silent() -> Console {
    Arc::new(|_, _, _| ())
}
