//! The load that a script's own options describe, divided among generators on several machines: the part of one of them, and
//! how the caller puts what they report together again.

use super::alone::Inspected;
use super::console::{KeptConsole, KeptLine, word};
use super::run::{self, End, Go, Observer, Part, Progress, Run, RunOutcome};
use super::user::CallError;
use super::{Allowed, Console, Knobs, Limits, LineSource, Refused};
use plimsoll_engine::job::Jobs;
use plimsoll_javascript::{Level, Program};
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::checks::Checks;
use plimsoll_k6_run::metrics::{Registry, Sinks};
use plimsoll_k6_run::options::Options;
use plimsoll_k6_run::scenario::Executor;
use plimsoll_model::event::Event;
use plimsoll_model::job::{Job, JobError, JobRecord, Report, SetUp, WorkFacts};
use plimsoll_model::load::Share;
use plimsoll_model::record::Interval;
use plimsoll_model::script::{OwnLoad, Packed, Script, ScriptFacts};
use plimsoll_model::start::Phase;
use plimsoll_model::storage::Secret;
use plimsoll_model::units::{Nanos, UnixTime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The progress of a part, each second and at the end of its scenarios.
#[derive(Serialize, Deserialize)]
struct PartProgress {
    /// The index of the part.
    part: usize,
    counts: Counts,
    /// All samples so far, every two seconds, if a threshold may end the run.
    sinks: Option<Sinks>,
    /// What the script and its users wrote since the last report.
    lines: Vec<Line>,
    /// How its scenarios ended, once they have.
    end: Option<PartEnd>,
}

/// A line of the console, or of the run.
#[derive(Serialize, Deserialize)]
struct Line {
    source: LineSource,
    /// The name of its level.
    level: String,
    text: String,
}

/// Users and iterations of a part so far.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Counts {
    users: u64,
    users_made: u64,
    iterations: u64,
    interrupted: u64,
    /// Nanoseconds of what came before the scenarios: `setup`.
    finished_parts: u64,
    /// Iterations of each scenario that have ended.
    ended: Vec<u64>,
}

/// The result of a part.
#[derive(Serialize, Deserialize)]
struct PartResult {
    sinks: Sinks,
    checks: Checks,
    elapsed: Duration,
    in_scenarios: Duration,
    /// What `setup` returned, as JSON; none where another part has called it.
    setup_data: Option<String>,
    end: PartEnd,
    /// The message of the script that called the run a failure.
    failure: Option<String>,
    /// Hosts that it was not allowed to load.
    refused: Vec<String>,
    /// True if it has tried others.
    any_allowed: bool,
}

/// How a part ended, in words where the cause is on its machine.
#[derive(Serialize, Deserialize)]
enum PartEnd {
    Finished,
    Aborted(String),
    /// The caller ended it.
    Stopped,
    NotLoaded(String),
    Setup(FailedCall),
    Teardown(FailedCall),
}

#[derive(Serialize, Deserialize)]
enum FailedCall {
    TimedOut,
    Failed { why: String, took_too_long: bool },
}

/// The load of a script's own options, as they are settled. The caller adds paths, threads and whether it wants all lines.
///
/// # Errors
/// An option that generators on several machines cannot share, with what to change.
pub fn own_load(plan: &RunState, generators: usize) -> Result<OwnLoad, String> {
    let with_users = run::with_users(&plan.scenarios, generators) as u64;
    if let Some(most) = plan.options.rps.filter(|most| (1..with_users).contains(most)) {
        return Err(format!(
            "`rps` allows {most} requests a second, and each of {with_users} agents needs one: use fewer agents, or allow more"
        ));
    }
    let generators = generators as u64;
    for scenario in &plan.scenarios {
        let is_open =
            matches!(scenario.executor, Executor::ConstantArrivalRate { .. } | Executor::RampingArrivalRate { .. });
        let users = scenario.executor.most_vus();
        if is_open && users < generators {
            return Err(format!(
                "the scenario `{}` has at most {users} VUs, and each of {generators} agents needs one for its arrivals: use \
                 fewer agents, or raise `maxVUs`",
                scenario.name
            ));
        }
    }
    let submetrics = plan.registry.iter().flat_map(|(_, metric)| &metric.submetrics);
    let secret = |(name, value): (&String, &String)| (name.clone(), Secret(value.clone()));
    let source =
        |(name, source): (&str, &BTreeMap<String, String>)| (name.to_owned(), source.iter().map(secret).collect());
    Ok(OwnLoad {
        options: plan.options.to_json().to_string(),
        submetrics: submetrics.map(|submetric| submetric.name.clone()).collect(),
        by_group: plan.by_group,
        secrets: plan.secrets.sources().map(source).collect(),
        ..OwnLoad::default()
    })
}

/// The secrets that a script with its own load may read.
pub(super) fn secrets(script: &Script) -> Arc<Secrets> {
    let Some(own_load) = &script.own_load else { return Arc::default() };
    let secret = |(name, Secret(value)): (&String, &Secret)| (name.clone(), value.clone());
    let source =
        |(name, source): (&String, &BTreeMap<String, Secret>)| (name.clone(), source.iter().map(secret).collect());
    Arc::new(Secrets::of(own_load.secrets.iter().map(source)))
}

/// The part of this process in a script's own load.
pub(super) struct OwnLoadPart<'a> {
    pub(super) program: &'a Arc<Program>,
    pub(super) inspected: &'a Inspected,
    pub(super) script: &'a Script,
    pub(super) own_load: &'a OwnLoad,
    pub(super) limits: Limits,
}

impl OwnLoadPart<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The options are not those of this script, or the machine does not allow what the run needs.
    pub(super) fn run(&self, job: &Job, jobs: &mut dyn Jobs, interrupted: &AtomicBool) -> Result<(), JobError> {
        let plan = Arc::new(self.plan(job.share).map_err(JobError::Users)?);
        let kept = KeptConsole::default();
        let knobs =
            Knobs { memory: "`--user-memory`", stack: "`--user-stack`", busy: "`--user-busy`", ..Knobs::default() };
        let words = Arc::new(self.words(&plan));
        let console = {
            let (write, words) = (kept.console(), Arc::clone(&words));
            let least = if self.own_load.verbose { Level::Debug } else { Level::Info };
            move |source, level, text: &str| {
                if level >= least {
                    write(source, level, &words.there(text));
                }
            }
        };
        let (begin, steering, set_up) = (job.begin, jobs.steering(), job.set_up.clone());
        let has_set_up = set_up == SetUp::Here;
        let run = Run {
            program: self.program,
            plan: &plan,
            limits: Limits { knobs, ..self.limits },
            allowed: Allowed::loopback_and(&self.script.allowed, "name it with `--allow`"),
            threads: self.own_load.threads,
            cpus: None,
            seed: job.seed,
            console: Arc::new(console),
            interrupted,
            part: Part { share: job.share, begin, steering, set_up },
        };
        let mut reporter = Reporter {
            jobs,
            plan: &plan,
            words: &words,
            kept: &kept,
            part: job.share.index,
            before: 0,
            second: None,
            window: Nanos(0),
        };
        let ran = run::run(&run, &mut reporter);
        for (kind, count) in plan.log_limit.suppressed() {
            (run.console)(LineSource::Run, Level::Warn, &format!("{count} more of: {kind}"));
        }
        let counts = kept.end_load();
        if counts.left_out > 0 {
            let text = format!("{} lines of the console are left out", counts.left_out);
            (run.console)(LineSource::Run, Level::Warn, &text);
        }
        reporter.progress(None, None);
        let window = reporter.window;
        let RunOutcome { sinks, checks, elapsed, in_scenarios, setup_data, end, broken, faults } = ran?;
        let (setup_data, failure) = (setup_data.filter(|_| has_set_up), plan.failure.get().cloned());
        let (Refused { hosts: refused, .. }, any_allowed) = (run.allowed.refused(), run.allowed.any_allowed());
        let end = PartEnd::of(&end, &words);
        let failure = failure.map(|text| words.there(&text));
        let result =
            PartResult { sinks, checks, elapsed, in_scenarios, setup_data, end, failure, refused, any_allowed };
        let own_load = vec![packed(&result)];
        let facts =
            ScriptFacts { console: counts.lines, left_out: counts.left_out, own_load, ..ScriptFacts::default() };
        let broken = broken.iter().map(|text| words.there(text)).collect();
        let facts = WorkFacts::Script(facts);
        jobs.ended(JobRecord { window, broken, faults, facts, ..JobRecord::default() });
        Ok(())
    }

    fn words(&self, plan: &RunState) -> Words {
        let (here, there) = (self.script.entry.to_string_lossy(), self.own_load.entry.to_string_lossy());
        let folder = here.strip_suffix(&*there).unwrap_or_default();
        let project = format!("{folder}{}/", self.own_load.folder.display());
        let left_off = [project, folder.to_owned()].into_iter().filter(|text| !text.is_empty()).collect();
        Words { secrets: Arc::clone(&plan.secrets), left_off }
    }

    fn plan(&self, share: Share) -> Result<RunState, String> {
        let OwnLoad { options, submetrics, by_group, .. } = self.own_load;
        let read = serde_json::from_str(options).map(|json| Options::read(&json));
        let read = read.map_err(|error| format!("the run's options cannot be read: {error}"))?;
        if let Some(fault) = read.faults.first() {
            return Err(fault.to_string());
        }
        let mut registry = self.inspected.registry.clone();
        for selector in submetrics {
            registry.select(selector).map_err(|fault| format!("the threshold of `{selector}`: {fault}"))?;
        }
        let scenarios = read.options.scenarios.clone().unwrap_or_default();
        let plan = self.inspected.plan.configured(read.options, scenarios, registry);
        Ok(RunState { by_group: *by_group, ..plan }.of_share(share))
    }
}

/// How texts are shown where the run was begun.
struct Words {
    secrets: Arc<Secrets>,
    /// The beginnings of paths that only this process has, and of those below the folder where the run was begun.
    left_off: Vec<String>,
}

impl Words {
    /// A text with paths as they are there, and without secrets.
    fn there(&self, text: &str) -> String {
        let shown = |text: String, left_off: &String| text.replace(left_off.as_str(), "");
        self.left_off.iter().fold(self.secrets.masked(text).into_owned(), shown)
    }
}

/// Reports what a part does.
struct Reporter<'a, 'b> {
    jobs: &'b mut dyn Jobs,
    plan: &'a Arc<RunState>,
    words: &'a Words,
    kept: &'a KeptConsole,
    part: usize,
    /// Nanoseconds of what came before the scenarios.
    before: u64,
    /// The second that has just passed.
    second: Option<Box<Interval>>,
    /// How long scenarios have run.
    window: Nanos,
}

impl Reporter<'_, '_> {
    fn progress(&mut self, sinks: Option<Sinks>, end: Option<PartEnd>) {
        let all = &self.plan.counts;
        let counts = Counts {
            users: all.users.load(Relaxed),
            users_made: all.users_made.load(Relaxed),
            iterations: all.iterations.load(Relaxed),
            interrupted: all.interrupted.load(Relaxed),
            finished_parts: self.before,
            ended: all.scenarios.iter().map(|scenario| scenario.ended.load(Relaxed)).collect(),
        };
        let line = |KeptLine { source, level, text }| Line { source, level: word(level).to_owned(), text };
        let lines = self.kept.take_lines().into_iter().map(line).collect();
        let progress = PartProgress { part: self.part, counts, sinks, lines, end };
        self.jobs.report(Report::OwnLoad(packed(&progress)));
    }
}

impl Observer for Reporter<'_, '_> {
    fn on_event(&mut self, event: &Event) {
        match event {
            Event::SecondPassed(second) => self.second = Some(Box::new(second.recorded.clone())),
            Event::PhaseStarted { phase: Phase::Measure, .. } => {
                self.before = self.plan.counts.finished_parts.load(Relaxed);
            }
            _ => {}
        }
    }

    fn check(&mut self, progress: &Progress) -> Go {
        self.window = progress.elapsed.into();
        self.progress(progress.sinks.clone(), None);
        // When a second is over on all machines, the caller has the counts of all.
        if let Some(interval) = self.second.take() {
            self.jobs.report(Report::Second { zero: UnixTime::default(), interval });
        }
        Go::On
    }

    fn on_set_up(&mut self, data: Option<&str>) {
        self.jobs.report(Report::SetUp(data.map(str::to_owned)));
    }

    fn on_scenarios_ended(&mut self, end: &End) {
        let end = PartEnd::of(end, self.words);
        self.progress(None, Some(end));
    }
}

impl PartEnd {
    fn of(end: &End, words: &Words) -> PartEnd {
        let failed = |error: &CallError| match error {
            CallError::TimedOut => FailedCall::TimedOut,
            error => FailedCall::Failed { why: words.there(&error.render()), took_too_long: error.took_too_long() },
        };
        match end {
            End::Finished => PartEnd::Finished,
            End::Aborted(message) => PartEnd::Aborted(words.there(message)),
            End::Stopped | End::Interrupted => PartEnd::Stopped,
            End::NotLoaded(why) => PartEnd::NotLoaded(words.there(why)),
            End::Setup(error) => PartEnd::Setup(failed(error)),
            End::Teardown(error) => PartEnd::Teardown(failed(error)),
        }
    }

    /// How the run ended, as far as this part knows.
    fn whole(self) -> End {
        let failed = |call| match call {
            FailedCall::TimedOut => CallError::TimedOut,
            FailedCall::Failed { why, took_too_long } => CallError::Elsewhere { why, took_too_long },
        };
        match self {
            PartEnd::Finished | PartEnd::Stopped => End::Finished,
            PartEnd::Aborted(message) => End::Aborted(message),
            PartEnd::NotLoaded(why) => End::NotLoaded(why),
            PartEnd::Setup(call) => End::Setup(failed(call)),
            PartEnd::Teardown(call) => End::Teardown(failed(call)),
        }
    }
}

/// The parts of a script's own load, put together by the caller as they report.
pub struct Parts<'a> {
    /// The caller's plan of the whole run, whose counts are those of all parts.
    plan: &'a RunState,
    /// Receives the lines of all parts.
    console: Console,
    counts: Vec<Counts>,
    sinks: Vec<Option<Sinks>>,
    has_new_sinks: bool,
    must_end: bool,
}

impl<'a> Parts<'a> {
    /// So many parts of a run, of which none has reported yet.
    #[must_use]
    pub fn new(plan: &'a RunState, parts: usize, console: Console) -> Parts<'a> {
        let (counts, sinks) = (vec![Counts::default(); parts], vec![None; parts]);
        Parts { plan, console, counts, sinks, has_new_sinks: false, must_end: false }
    }

    /// Takes what a part reports.
    ///
    /// # Errors
    /// It is not what a part of this run reports.
    pub fn take(&mut self, report: &Packed) -> Result<(), String> {
        let PartProgress { part, counts, sinks, lines, end } = unpacked(report)?;
        lines.iter().for_each(|line| (self.console)(line.source, level(&line.level), &line.text));
        let of_part = self.counts.get_mut(part).ok_or_else(|| format!("there is no part {part} of the load"))?;
        *of_part = counts;
        if let Some(sinks) = sinks {
            self.sinks[part] = Some(of_this_script(sinks, self.plan)?);
            self.has_new_sinks = true;
        }
        self.must_end |= end.is_some_and(|end| !matches!(end, PartEnd::Finished));
        let sum = |count: fn(&Counts) -> u64| self.counts.iter().map(count).sum();
        let all = &self.plan.counts;
        all.users.store(sum(|counts| counts.users), Relaxed);
        all.users_made.store(sum(|counts| counts.users_made), Relaxed);
        all.iterations.store(sum(|counts| counts.iterations), Relaxed);
        all.interrupted.store(sum(|counts| counts.interrupted), Relaxed);
        // That of the part that called `setup`.
        all.finished_parts.store(sum(|counts| counts.finished_parts), Relaxed);
        for (scenario, all) in all.scenarios.iter().enumerate() {
            let ended = self.counts.iter().filter_map(|counts| counts.ended.get(scenario));
            all.ended.store(ended.sum(), Relaxed);
        }
        Ok(())
    }

    /// True once a part has ended early, so that all others must end too.
    #[must_use]
    pub fn must_end(&self) -> bool {
        self.must_end
    }

    /// The progress of the whole run, after scenarios have run for this long.
    pub fn progress(&mut self, elapsed: Duration) -> Progress {
        let has_new = std::mem::take(&mut self.has_new_sinks);
        let sinks = has_new.then(|| merged(&self.plan.registry, self.sinks.iter().flatten()));
        let [users, users_made] =
            [&self.plan.counts.users, &self.plan.counts.users_made].map(|count| count.load(Relaxed));
        Progress { elapsed, sinks, users, users_made }
    }

    /// The outcome of the whole run, and the hosts that it was not allowed to load. `asked` is how the caller ended it;
    /// [`End::Finished`] if it did not.
    ///
    /// # Errors
    /// A part has no result, or one that is not of this run.
    pub fn outcome(self, record: JobRecord, asked: End) -> Result<(RunOutcome, Refused), String> {
        let WorkFacts::Script(facts) = record.facts else { return Err("no part of the load has a result".to_owned()) };
        let results: Vec<PartResult> = facts.own_load.iter().map(unpacked).collect::<Result<_, _>>()?;
        let mut outcome = RunOutcome::new(self.plan);
        let mut ends = Vec::new();
        let (mut refused, mut any_allowed, mut beside) = (BTreeSet::new(), false, Duration::ZERO);
        for result in results {
            outcome.sinks.merge(&of_this_script(result.sinks, self.plan)?);
            outcome.checks.merge(&result.checks);
            outcome.in_scenarios = outcome.in_scenarios.max(result.in_scenarios);
            // One of them has called `setup` and `teardown`.
            beside += result.elapsed.saturating_sub(result.in_scenarios);
            outcome.setup_data = outcome.setup_data.or(result.setup_data);
            ends.push(result.end.whole());
            if let Some(message) = result.failure {
                let _ = self.plan.failure.set(message);
            }
            any_allowed |= result.any_allowed;
            refused.extend(result.refused);
        }
        outcome.elapsed = outcome.in_scenarios + beside;
        outcome.broken = record.broken;
        let refused = Refused { all: !refused.is_empty() && !any_allowed, hosts: refused.into_iter().collect() };
        // What the script says of the run comes before what the caller does, and that before what failed meanwhile.
        let aborted = ends.iter().find(|end| matches!(end, End::Aborted(_))).cloned();
        let failed = ends.into_iter().find(|end| *end != End::Finished);
        let asked = Some(asked).filter(|asked| *asked != End::Finished);
        outcome.end = aborted.or(asked).or(failed).unwrap_or(End::Finished);
        Ok((outcome, refused))
    }
}

/// The level of this name.
fn level(name: &str) -> Level {
    let all = [Level::Debug, Level::Info, Level::Warn, Level::Error];
    all.into_iter().find(|level| word(*level) == name).unwrap_or(Level::Info)
}

/// Samples of the script of a plan.
fn of_this_script(sinks: Sinks, plan: &RunState) -> Result<Sinks, String> {
    if sinks.are_of(&plan.registry) {
        return Ok(sinks);
    }
    Err("the script has other metrics there than here: let it define the same ones wherever it is loaded".to_owned())
}

fn merged<'s>(registry: &Registry, all: impl Iterator<Item = &'s Sinks>) -> Sinks {
    let mut merged = Sinks::new(registry);
    all.for_each(|sinks| merged.merge(sinks));
    merged
}

fn packed<T: Serialize>(value: &T) -> Packed {
    Packed(rmp_serde::to_vec_named(value).expect("plain data in memory"))
}

fn unpacked<T: DeserializeOwned>(Packed(bytes): &Packed) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| format!("the report of a part cannot be read: {error}"))
}
