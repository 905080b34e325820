//! The run: carries out one step of the plan's strategy after another.

use crate::databases;
use crate::ending::{Ending, RunError, Stop};
use crate::generator::Generator;
use crate::host::{Host, HostError};
use crate::keys::{Keys, without_secrets};
use crate::outcome::{Machine, others_in_void_loads, outcome, shown};
use crate::preflight;
use crate::programs::Programs;
use crate::scripts::MissingNames;
use crate::start::{EndedStart, RunningStart};
use plimsoll_bundle::{BundleError, RunFolder};
use plimsoll_database::Databases;
use plimsoll_model::event::Event;
use plimsoll_model::look::Look;
use plimsoll_model::objective::{Condition, Passed};
use plimsoll_model::plan::Plan;
use plimsoll_model::result::{FinishedStart, LoadSummary, RecordedRun};
use plimsoll_model::start::{Start, Validity};
use plimsoll_model::study::StudyFacts;
use plimsoll_plan::{MOST_DISTURBED, Outcome, Outcomes, Step, left_out, next, remaining};
use plimsoll_study::{Place, Study};
use plimsoll_system::{Interrupt, Launcher};
use plimsoll_telemetry::other_processes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The parameters of a run.
pub struct Run<'a> {
    /// The study.
    pub study: &'a Study,
    /// Its plan.
    pub plan: &'a Plan,
    /// The launcher that starts systems.
    pub launcher: &'a Launcher,
    /// What `{plimsoll}` stands for in the study.
    pub program: &'a Path,
    /// The load generator.
    pub generator: &'a dyn Generator,
    /// The other hosts on which systems run, by the labels of the study.
    pub hosts: &'a BTreeMap<String, Box<dyn Host>>,
    /// Where systems, builds and databases put their files.
    pub folder: &'a RunFolder,
    /// The part of the run that the bundle has already.
    pub recorded: &'a RecordedRun,
    /// The caller sets this to stop the run.
    pub interrupted: &'a Interrupt,
    /// For how long the machine is observed before the first start, to see who else uses it; zero for not at all.
    pub observe: Duration,
    /// True if the run goes on where others use so much of the processors that loads do not count.
    pub keep_going: bool,
    /// The number of starts after which the run pauses; none for a run to its end.
    pub pause_after: Option<u32>,
}

/// Passes an event to the subscribers. The bundle is the first of them; its error ends the run.
pub type EventSink<'a> = dyn FnMut(&Event) -> Result<(), BundleError> + 'a;

/// Looks at the verdicts after so many repeats.
pub type LookAt<'a> = dyn FnMut(u32) -> Look + 'a;

/// The context of every start.
pub(crate) struct Context<'a> {
    pub(crate) study: &'a Study,
    pub(crate) facts: &'a StudyFacts,
    /// The plan as it was made, without the blocks that run again.
    pub(crate) plan: &'a Plan,
    pub(crate) launcher: &'a Launcher,
    pub(crate) program: &'a Path,
    pub(crate) generator: &'a dyn Generator,
    pub(crate) hosts: &'a BTreeMap<String, Box<dyn Host>>,
    pub(crate) folder: &'a RunFolder,
    pub(crate) keys: &'a Keys,
    pub(crate) interrupted: &'a Interrupt,
    /// The processors of this machine.
    pub(crate) processors: usize,
    pub(crate) observe: Duration,
    pub(crate) keep_going: bool,
    pub(crate) pause_after: Option<u32>,
}

/// Runs the starts that the bundle does not have yet.
///
/// If the plan has looks, `look` is called at each of them but the last, with the number of repeats so far. Where it finds
/// every verdict reached, the run ends; conditions under which all are reached run no further. `tell` receives every event.
///
/// # Errors
/// A system does not start at all, or the bundle cannot be written. In either case everything that was started
/// has been stopped.
pub fn run(run: &Run<'_>, look: &mut LookAt<'_>, tell: &mut EventSink<'_>) -> Result<Ending, RunError> {
    let facts = run.study.facts();
    let used = preflight::databases(run.study, run.plan, run.program);
    let of_users = preflight::secret_variables(run.study, run.plan, run.program);
    let keys = Keys::generate(run.study, &used, of_users)
        .map_err(|error| RunError::System(format!("failed to make keys: {error}")))?;
    let mut tell = |event: &Event| match keys.masked(event) {
        Some(masked) => tell(&masked),
        None => tell(event),
    };
    let context = Context {
        study: run.study,
        facts: &facts,
        plan: run.plan,
        launcher: run.launcher,
        program: run.program,
        generator: run.generator,
        hosts: run.hosts,
        folder: run.folder,
        keys: &keys,
        interrupted: run.interrupted,
        processors: plimsoll_telemetry::processors(),
        observe: run.observe,
        keep_going: run.keep_going,
        pause_after: run.pause_after,
    };
    let mut databases = Databases::new(run.launcher, run.folder.path());
    databases::note_data_folder(&databases, &used, run.folder, &mut tell)?;
    let ending = walk(&context, run.recorded, &mut databases, look, &mut tell);
    let secrets = keys.secrets(&databases);
    // The data of databases is removed, however the run has ended.
    drop(databases);
    run.folder.data_note().remove()?;
    secrets.iter().try_for_each(|secret| run.folder.conceal(secret))?;
    ending.map_err(|error| match error {
        RunError::System(text) => RunError::System(keys.without_secrets(&text)),
        error => error,
    })
}

/// Runs the steps of the plan, to its end or until a step fails.
fn walk(
    context: &Context<'_>,
    recorded: &RecordedRun,
    databases: &mut Databases,
    look: &mut LookAt<'_>,
    tell: &mut EventSink<'_>,
) -> Result<Ending, RunError> {
    let mut walk = Walk::new(context, recorded.clone(), tell);
    walk.tell_start()?;
    let ended = walk.observe_machine().and_then(|()| walk.until_the_end(databases, look));
    for path in context.folder.files_that_hold(&context.keys.secrets(databases))? {
        let message = format!(
            "{} holds a secret of the study or of the environment: take it out before anybody else gets the bundle",
            context.folder.path().join(path).display()
        );
        walk.tell(&Event::Warning { message })?;
    }
    match ended {
        Ok(decided_after) => {
            walk.tell(&Event::RunFinished { complete: true, decided_after })?;
            Ok(Ending::Complete)
        }
        Err(stop) => {
            walk.tell(&Event::RunFinished { complete: false, decided_after: None })?;
            match stop {
                Stop::Interrupted => Ok(Ending::Interrupted),
                Stop::BrokenOff => Ok(Ending::BrokenOff),
                Stop::Paused => Ok(Ending::Paused),
                Stop::Abort(error) => Err(error),
            }
        }
    }
}

impl<'a> Context<'a> {
    /// The host with the agent of this label.
    pub(crate) fn host(&self, label: &str) -> Result<&'a dyn Host, HostError> {
        let host = self.hosts.get(label).map(|host| &**host);
        host.ok_or_else(|| HostError::Failed(format!("no agent with the label `{label}` works for this run")))
    }

    /// The places of systems on other hosts, of each of which the label is known. `files` is the folder for the files of these
    /// systems.
    pub(crate) fn places(
        &self,
        hosts: &BTreeMap<String, String>,
        files: &Path,
    ) -> Result<BTreeMap<String, Place>, HostError> {
        hosts.iter().map(|(system, label)| Ok((system.clone(), self.host(label)?.place(files)))).collect()
    }
}

/// What became of a variant on a start.
#[derive(Clone, Copy, Debug, Default)]
struct Worked {
    /// True if its systems answered as expected under one of its loads.
    once: bool,
    /// True if one of its systems ended before anything was measured.
    ended_early: bool,
}

/// A run under way, which walks through the steps of the plan.
struct Walk<'a> {
    context: &'a Context<'a>,
    outcomes: Outcomes,
    recorded: RecordedRun,
    tell: &'a mut EventSink<'a>,
    programs: Programs,
    /// The variants that worked at least once. The duplicate counts as the baseline.
    working: BTreeSet<usize>,
    /// The variants of which a system ended once before anything was measured.
    ended_early: BTreeSet<usize>,
    /// Checks the names that scripts have recorded in the first block.
    missing_names: MissingNames,
    /// The blocks for which a warning has said that they do not run again.
    left_out: BTreeSet<u32>,
    /// The start that began last.
    begun: Option<u32>,
    /// The starts that have ended since the run began or resumed.
    ended_now: u32,
    machine: Machine,
    /// The blocks of starts that were disturbed since then, with the cores that others used.
    disturbed: Vec<(u32, f64)>,
    /// What was said of systems that take long to stop.
    slow_to_stop: BTreeSet<String>,
}

impl<'a> Walk<'a> {
    fn new(context: &'a Context<'a>, recorded: RecordedRun, tell: &'a mut EventSink<'a>) -> Walk<'a> {
        let machine = Machine { limits: context.facts.generator.clone(), processors: context.processors };
        let outcomes = outcomes(context.plan, &recorded, &machine);
        // A resumed run has been checked before.
        let first_block = if recorded.starts.is_empty() { context.plan.starts_in_block() } else { 0 };
        let missing_names = MissingNames::new(context.facts, first_block);
        let (programs, working, left_out) = (Programs::default(), BTreeSet::new(), BTreeSet::new());
        let mut walk = Walk {
            context,
            outcomes,
            recorded,
            tell,
            programs,
            working,
            ended_early: BTreeSet::new(),
            missing_names,
            left_out,
            begun: None,
            ended_now: 0,
            machine,
            disturbed: Vec::new(),
            slow_to_stop: BTreeSet::new(),
        };
        walk.working = walk.finished().flat_map(worked_on).map(|variant| walk.program_of(variant)).collect();
        walk
    }

    fn tell(&mut self, event: &Event) -> Result<(), BundleError> {
        (self.tell)(event)
    }

    fn tell_start(&mut self) -> Result<(), BundleError> {
        let (left, plan) = (remaining(self.context.plan, &self.outcomes), self.context.plan);
        let done = self.finished().count();
        let event = Event::RunStarted {
            starts: (done + left.len()) as u32,
            already_done: done as u32,
            time_under_load: plan.time_under_load(&left),
        };
        self.tell(&event)
    }

    /// Looks at who else uses the machine, before anything of this run does.
    fn observe_machine(&mut self) -> Result<(), Stop> {
        let (span, interrupted) = (self.context.observe, self.context.interrupted);
        if !span.is_zero()
            && next(self.context.plan, &self.outcomes).is_some()
            && let Some(others) = other_processes(span, &|| interrupted.is_set())
        {
            self.tell(&Event::MachineObserved { span, others })?;
        }
        Ok(())
    }

    /// Runs all steps, and removes secrets from the output of a start that was cut off. Returns after how many repeats
    /// every verdict was reached, if that was before the last.
    fn until_the_end(&mut self, databases: &mut Databases, look: &mut LookAt<'_>) -> Result<Option<u32>, Stop> {
        let result = self.carry_out(databases, look);
        if let (Err(_), Some(start)) = (&result, self.begun) {
            // The systems of the start have ended.
            let secrets = self.context.keys.secrets(databases);
            secrets.iter().try_for_each(|secret| self.context.folder.conceal_in_start(start, secret))?;
        }
        result
    }

    fn carry_out(&mut self, databases: &mut Databases, look: &mut LookAt<'_>) -> Result<Option<u32>, Stop> {
        let (context, mut running) = (self.context, None);
        while let Some(step) = next(context.plan, &self.outcomes) {
            match step {
                Step::Start(_) if self.context.pause_after == Some(self.ended_now) => return Err(Stop::Paused),
                Step::Start(start) => running = Some(self.begin(databases, start)?),
                Step::Loads(loads) => {
                    let running = running.as_mut().expect("a load is on a start");
                    running.load(context, &loads, self.tell)?;
                    for load in loads {
                        self.outcomes.loaded(load, running.summary(load).and_then(shown));
                    }
                }
                Step::Stop => self.end(databases, running.take().expect("only a start is stopped"))?,
                Step::BreakOff => self.break_off()?,
                Step::Look { repeats } => {
                    self.tell_left_out(repeats)?;
                    if self.look(look(repeats))? {
                        return Ok(Some(repeats));
                    }
                }
            }
        }
        self.tell_left_out(context.plan.repeats)?;
        // A run that was interrupted between its last look and its end has nothing left to do.
        Ok(self.recorded.looks.iter().find(|look| look.decided).map(|look| look.repeats))
    }

    /// Breaks the run off, unless it was asked to go on.
    fn break_off(&mut self) -> Result<(), Stop> {
        let goes_on = self.context.keep_going;
        let mut blocks: Vec<u32> = self.disturbed.iter().map(|(block, _)| *block).collect();
        blocks.dedup();
        let last = &blocks[blocks.len().saturating_sub(MOST_DISTURBED)..];
        let in_last = self.disturbed.iter().filter(|(block, _)| last.contains(block));
        let others = plimsoll_statistics::mean(&in_last.map(|(_, cores)| *cores).collect::<Vec<f64>>()).unwrap_or(0.0);
        self.disturbed.clear();
        self.tell(&Event::TooDisturbed { blocks: MOST_DISTURBED as u32, others, goes_on })?;
        self.outcomes.went_on();
        if goes_on { Ok(()) } else { Err(Stop::BrokenOff) }
    }

    /// Records a look. Returns true if every verdict is reached.
    fn look(&mut self, look: Look) -> Result<bool, Stop> {
        let plan = self.context.plan;
        let before = remaining(plan, &self.outcomes);
        let spared: Vec<&Start> = before.iter().filter(|start| look.spares(start)).collect();
        let time_spared = plan.time_under_load(spared.iter().copied());
        self.tell(&Event::LookTaken { look: look.clone(), spared: spared.len() as u32, time_spared })?;
        let decided = look.decided;
        self.outcomes.looked(look);
        Ok(decided)
    }

    /// Builds what a start needs, and starts its systems.
    fn begin(&mut self, databases: &mut Databases, start: Start) -> Result<RunningStart, Stop> {
        let context = self.context;
        self.decide(&start)?;
        // All planned systems are built before anything runs.
        let ahead = remaining(context.plan, &self.outcomes);
        self.programs.make_ready(context, ahead.iter().chain([&start]), self.tell)?;
        if context.interrupted.is_set() {
            return Err(Stop::Interrupted);
        }
        let variants = context.plan.start_label(&start);
        let condition = context.plan.conditions[start.condition].to_string();
        let (number, left) = (start.number, context.folder.objects_left(start.number));
        self.tell(&Event::StartBegun { start: start.clone(), variants, condition })?;
        self.begun = Some(number);
        if let Some(place) = left {
            let message = format!("trial {number} was broken off and left objects in {place}: remove them by hand");
            self.tell(&Event::Warning { message })?;
        }
        let running = RunningStart::begin(context, databases, &start, self.tell)?;
        self.outcomes.started(start);
        Ok(running)
    }

    /// Records a start that was not planned. If it is the first of a block that runs again, emits an event for that
    /// block.
    fn decide(&mut self, start: &Start) -> Result<(), BundleError> {
        if self.context.plan.starts.contains(start) || self.recorded.decided.contains(start) {
            return Ok(());
        }
        self.tell(&Event::StartDecided { start: start.clone() })?;
        self.recorded.decided.push(start.clone());
        let is_first_of_block = start.position == 1 && start.attempt > 1;
        if is_first_of_block { self.tell_block_repeated(start) } else { Ok(()) }
    }

    fn tell_block_repeated(&mut self, first: &Start) -> Result<(), BundleError> {
        let plan = self.context.plan;
        let place = |start: &&Start| (start.condition, start.repeat) == (first.condition, first.repeat);
        let block: Vec<Start> =
            plan.starts.iter().filter(place).map(|start| start.again(0, 0, first.extended)).collect();
        let before = self.finished().map(|finished| &finished.summary.start).filter(place);
        let of = before.max_by_key(|start| start.attempt).map_or(0, |start| start.block);
        let reasons = self.reasons(of);
        self.tell(&Event::BlockRepeated {
            of,
            block: first.block,
            attempt: first.attempt,
            extended: first.extended,
            starts: block.len() as u32,
            time_under_load: plan.time_under_load(&block),
            reasons,
        })
    }

    /// Warns, once for each block, that it should run again but does not, and why.
    fn tell_left_out(&mut self, repeats: u32) -> Result<(), BundleError> {
        let none_at_all = self.context.plan.spare_blocks == 0;
        let spare = if none_at_all { "the study has no spare blocks" } else { "no spare block is left" };
        for block in left_out(self.context.plan, &self.outcomes, repeats) {
            if self.left_out.insert(block) {
                let reasons = self.reasons(block).join("; ");
                let message =
                    format!("block {block} is not run again, though not all of it counts ({spare}): {reasons}");
                self.tell(&Event::Warning { message })?;
            }
        }
        Ok(())
    }

    /// Why starts of a block do not count, each reason once.
    fn reasons(&self, block: u32) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for finished in self.finished().filter(|finished| finished.summary.start.block == block) {
            for reason in finished.validity().reasons() {
                if !reasons.contains(reason) {
                    reasons.push(reason.clone());
                }
            }
        }
        reasons
    }

    /// Stops the systems of a start, and seals it in the bundle.
    fn end(&mut self, databases: &Databases, running: RunningStart) -> Result<(), Stop> {
        let ended = running.stop(self.context, self.tell);
        // The systems have ended by now, even if the start failed.
        let secrets = self.context.keys.secrets(databases);
        let EndedStart { finished, outcomes, executables, of_containers, slow_to_stop, to_blame } = ended?;
        let number = finished.summary.start.number;
        secrets.iter().try_for_each(|secret| self.context.folder.conceal_in_start(number, secret))?;
        let finished = without_secrets(&secrets, finished);
        self.tell(&Event::ResultsComplete(Box::new(finished.clone())))?;
        self.recorded.starts.insert(number, finished.clone());
        let start = finished.summary.start.clone();
        self.tell(&Event::StartFinished {
            start: number,
            validity: finished.validity(),
            iterations: outcomes.iter().map(|load| load.iterations).sum(),
            errors: outcomes.iter().map(|load| load.errors).sum(),
            others: others_in_void_loads(&finished),
        })?;
        self.ended_now += 1;
        for message in slow_to_stop {
            if self.slow_to_stop.insert(message.clone()) {
                self.tell(&Event::Warning { message })?;
            }
        }
        let outcome = outcome(&finished, &self.machine);
        if let (Outcome::Disturbed, Some(cores)) = (outcome, others_in_void_loads(&finished)) {
            self.disturbed.push((start.block, cores));
        }
        self.outcomes.stopped(start.clone(), outcome);
        self.programs.add_executables(&executables, self.tell)?;
        self.programs.add_of_containers(of_containers, self.tell)?;
        for message in self.missing_names.observe(outcomes.iter().flat_map(|load| load.subjects.clone()).collect()) {
            self.tell(&Event::Warning { message })?;
        }
        let mut worked: BTreeMap<usize, Worked> = BTreeMap::new();
        for (load, outcome) in finished.loads.iter().zip(&outcomes) {
            let of_variant = worked.entry(load.load.variant).or_default();
            of_variant.once |= outcome.worked && !outcome.ended_early;
            of_variant.ended_early |= outcome.ended_early;
        }
        self.break_off_what_never_works(&start, worked, to_blame)
    }

    /// Ends the run if a variant never started, or never gave a right answer: it would not do so the next time either.
    /// A variant that has worked before is tried again, and its failed start is in the report. So is, once, one whose system
    /// ended before anything was measured.
    fn break_off_what_never_works(
        &mut self,
        start: &Start,
        worked: BTreeMap<usize, Worked>,
        to_blame: Option<usize>,
    ) -> Result<(), Stop> {
        for (variant, worked) in worked {
            let program = self.program_of(variant);
            if worked.once {
                self.working.insert(program);
                continue;
            }
            // Where loads were not offered because of one variant, the others had none, and may well work.
            if to_blame.is_some_and(|to_blame| to_blame != variant) {
                continue;
            }
            let is_by_chance = worked.ended_early && self.ended_early.insert(program);
            if !self.working.contains(&program) && !is_by_chance {
                let plan = self.context.plan;
                let what = if plan.design.is_trials() { "trial" } else { "start" };
                let (start, variant) = (format!("{what} {}", start.number), plan.label(program));
                return Err(Stop::Abort(RunError::NeverWorked { start, variant }));
            }
        }
        self.all_starts_failed().map_or(Ok(()), |trials| Err(Stop::Abort(RunError::NeverRight { trials })))
    }

    /// The number of starts, if all of them failed and they are at least a whole block. A single start may fail by
    /// chance. One on which a search asked too much of the systems is no such start: the search goes on from there.
    fn all_starts_failed(&self) -> Option<usize> {
        let done = self.finished().count();
        let all_failed = self.finished().all(|finished| has_failed(finished) && !ended_under_load(finished));
        (all_failed && done >= self.context.plan.starts_in_block().max(2)).then_some(done)
    }

    /// The starts that the bundle has, both planned ones and those that the run decided on. A recorded start that
    /// merely has the number of one of these is left out.
    fn finished(&self) -> impl Iterator<Item = &FinishedStart> {
        finished(self.context.plan, &self.recorded)
    }

    /// The variant whose programs `variant` runs: for the duplicate, the baseline.
    fn program_of(&self, variant: usize) -> usize {
        if variant < self.context.plan.variants.len() { variant } else { 0 }
    }
}

fn finished<'b>(plan: &'b Plan, recorded: &'b RecordedRun) -> impl Iterator<Item = &'b FinishedStart> {
    let is_known = |start: &Start| plan.starts.contains(start) || recorded.decided.contains(start);
    recorded.starts.values().filter(move |finished| is_known(&finished.summary.start))
}

/// The outcomes of the starts that a bundle has of an interrupted run.
fn outcomes(plan: &Plan, recorded: &RecordedRun, machine: &Machine) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for known in finished(plan, recorded) {
        outcomes.started(known.summary.start.clone());
        known.loads.iter().for_each(|load| outcomes.loaded(load.load, shown(load)));
        outcomes.stopped(known.summary.start.clone(), outcome(known, machine));
    }
    outcomes.went_on();
    recorded.looks.iter().for_each(|look| outcomes.looked(look.clone()));
    outcomes
}

fn has_failed(finished: &FinishedStart) -> bool {
    matches!(finished.validity(), Validity::Failed(_))
}

/// True if systems have carried a load of a search, and one has ended under another.
fn ended_under_load(finished: &FinishedStart) -> bool {
    let mut judged = finished.loads.iter().filter_map(|load| load.objective.as_ref());
    finished.loads.iter().any(has_passed) && judged.any(|judged| judged.broke(&Condition::Alive))
}

/// The variants that worked on a start: all of one that did not fail, else those that a load passed for.
fn worked_on(finished: &FinishedStart) -> Vec<usize> {
    if has_failed(finished) {
        finished.loads.iter().filter(|load| has_passed(load)).map(|load| load.load.variant).collect()
    } else {
        finished.summary.start.variants.clone()
    }
}

/// True if a load of a search met the objective.
fn has_passed(load: &LoadSummary) -> bool {
    load.validity.counts() && load.objective.as_ref().is_some_and(|judged| judged.passed == Passed::Yes)
}
