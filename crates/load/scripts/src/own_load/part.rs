//! The part of one generator: runs it, and reports what it does.

use super::{Counts, Line, PartEnd, PartProgress, PartResult, packed};
use crate::alone::Inspected;
use crate::console::{KeptConsole, KeptLine, word};
use crate::run::{self, End, Go, Observer, Part, Progress, Run, RunOutcome};
use crate::{Allowed, Knobs, Limits, LineSource, Refused};
use plimsoll_engine::job::Jobs;
use plimsoll_javascript::{Level, Program};
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::metrics::Sinks;
use plimsoll_k6_run::options::Options;
use plimsoll_model::event::Event;
use plimsoll_model::job::{Job, JobError, JobRecord, Report, SetUp, WorkFacts};
use plimsoll_model::load::Share;
use plimsoll_model::record::Interval;
use plimsoll_model::script::{OwnLoad, Script, ScriptFacts};
use plimsoll_model::start::Phase;
use plimsoll_model::units::{Nanos, UnixTime};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// The part of this process in a script's own load.
pub(crate) struct OwnLoadPart<'a> {
    pub(crate) program: &'a Arc<Program>,
    pub(crate) inspected: &'a Inspected,
    pub(crate) script: &'a Script,
    pub(crate) own_load: &'a OwnLoad,
    pub(crate) limits: Limits,
}

impl OwnLoadPart<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The options are not those of this script, or the machine does not allow what the run needs.
    pub(crate) fn run(&self, job: &Job, jobs: &mut dyn Jobs, interrupted: &AtomicBool) -> Result<(), JobError> {
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

/// The form of texts for the machine where the run was begun.
pub(super) struct Words {
    secrets: Arc<Secrets>,
    /// The beginnings of paths that only this process has, and of those below the folder where the run was begun.
    left_off: Vec<String>,
}

impl Words {
    /// A text with paths as they are there, and without secrets.
    pub(super) fn there(&self, text: &str) -> String {
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
    /// The time for which scenarios have run.
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
