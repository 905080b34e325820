//! The run: carries out one step of the plan's strategy after the other.

use crate::databases;
use crate::generator::Generator;
use crate::keys::{Keys, hidden};
use crate::preflight;
use crate::programs::Programs;
use crate::scripts::FirstLook;
use crate::start::{Broken, EndedStart, RunningStart};
use plimsoll_bundle::{BundleError, RunFolder};
use plimsoll_database::Databases;
use plimsoll_model::event::Event;
use plimsoll_model::result::{FinishedStart, RecordedRun};
use plimsoll_model::start::{Plan, Start, Validity};
use plimsoll_model::study::StudyFacts;
use plimsoll_plan::{Look, Outcome, Outcomes, Step, left_out, next, remaining};
use plimsoll_study::Study;
use plimsoll_system::{Interrupt, Launcher, SystemError};
use std::collections::BTreeSet;
use std::path::Path;

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
    /// Generates the load.
    pub generator: &'a dyn Generator,
    /// Where systems, builds and databases put their files.
    pub folder: &'a RunFolder,
    /// What the bundle has of the run already.
    pub recorded: &'a RecordedRun,
    /// Set from outside to stop.
    pub interrupted: &'a Interrupt,
}

/// Tells subscribers of an event. The bundle is the first of them: what it cannot write breaks the run off.
pub type Tell<'a> = dyn FnMut(&Event) -> Result<(), BundleError> + 'a;

/// What every start needs to know.
pub(crate) struct Context<'a> {
    pub(crate) study: &'a Study,
    pub(crate) facts: &'a StudyFacts,
    /// As it was made: without the blocks that run again.
    pub(crate) plan: &'a Plan,
    pub(crate) launcher: &'a Launcher,
    pub(crate) program: &'a Path,
    pub(crate) generator: &'a dyn Generator,
    pub(crate) folder: &'a RunFolder,
    pub(crate) keys: &'a Keys,
    pub(crate) interrupted: &'a Interrupt,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every start ran that was needed; whether it counts stands in its summary.
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
        "trial {trial} failed, and so would another of `{variant}`, so the run was broken off; correct that, and run \
         the study into a new folder"
    )]
    NeverWorked {
        /// The trial's number.
        trial: u32,
        /// The variant, as in reports.
        variant: String,
    },
    /// Every trial of a whole block failed, though systems answered, and no trial went right before.
    #[error(
        "all {trials} trials failed, and so would others, so the run was broken off; correct that, and run the study into a \
         new folder"
    )]
    NeverRight {
        /// How many there were.
        trials: usize,
    },
    /// The results cannot be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Runs what the bundle does not have yet.
///
/// Where the plan has looks, `decided` is asked after the repeats of each but the last, with their
/// number, whether every verdict is reached; if so, the run ends there. `tell` hears everything
/// that happens.
///
/// # Errors
/// A system does not come up at all, or the bundle cannot be written. Nothing that was started is
/// left in either case.
pub fn run(run: &Run<'_>, decided: &mut dyn FnMut(u32) -> bool, tell: &mut Tell<'_>) -> Result<Ending, RunError> {
    let facts = run.study.facts();
    let used = preflight::databases(run.study, run.plan, run.program);
    let of_users = preflight::secret_variables(run.study, run.plan, run.program);
    let keys = Keys::generate(run.study, &used, of_users)
        .map_err(|error| RunError::System(format!("failed to make keys: {error}")))?;
    let context = Context {
        study: run.study,
        facts: &facts,
        plan: run.plan,
        launcher: run.launcher,
        program: run.program,
        generator: run.generator,
        folder: run.folder,
        keys: &keys,
        interrupted: run.interrupted,
    };
    let mut databases = Databases::new(run.launcher, run.folder.path());
    databases::note_place(&databases, &used, run.folder, tell)?;
    let ending = walk(&context, run.recorded, &mut databases, decided, tell);
    let secrets = keys.secrets(&databases);
    // Their data goes, however the run has ended.
    drop(databases);
    run.folder.data_note().remove()?;
    secrets.iter().try_for_each(|secret| run.folder.conceal(secret))?;
    ending
}

/// Walks the plan to its end, or as far as it goes.
fn walk(
    context: &Context<'_>,
    recorded: &RecordedRun,
    databases: &mut Databases,
    decided: &mut dyn FnMut(u32) -> bool,
    tell: &mut Tell<'_>,
) -> Result<Ending, RunError> {
    let mut walk = Walk::new(context, recorded.clone(), tell);
    walk.tell_start()?;
    match walk.until_the_end(databases, decided) {
        Ok(decided_after) => {
            walk.tell(&Event::RunFinished { complete: true, decided_after })?;
            Ok(Ending::Complete)
        }
        Err(stop) => {
            walk.tell(&Event::RunFinished { complete: false, decided_after: None })?;
            match stop {
                Stop::Interrupted => Ok(Ending::Interrupted),
                Stop::Broken(error) => Err(error),
            }
        }
    }
}

/// Why not everything was carried out.
pub(crate) enum Stop {
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

/// A run under way.
struct Walk<'a> {
    context: &'a Context<'a>,
    outcomes: Outcomes,
    recorded: RecordedRun,
    tell: &'a mut Tell<'a>,
    programs: Programs,
    /// The variants that worked at least once, the duplicate being the baseline.
    working: BTreeSet<usize>,
    /// What scripts have measured in the first block.
    look: FirstLook,
    /// The blocks of which was told that they do not run again.
    left_out: BTreeSet<u32>,
    /// The start that began last.
    begun: Option<u32>,
}

impl<'a> Walk<'a> {
    fn new(context: &'a Context<'a>, recorded: RecordedRun, tell: &'a mut Tell<'a>) -> Walk<'a> {
        let outcomes = outcomes(context.plan, &recorded);
        // A run that goes on was looked at before.
        let first_block = if recorded.starts.is_empty() { context.plan.block_size() } else { 0 };
        let look = FirstLook::new(context.facts, first_block);
        let (programs, working, left_out) = (Programs::default(), BTreeSet::new(), BTreeSet::new());
        let begun = None;
        let mut walk = Walk { context, outcomes, recorded, tell, programs, working, look, left_out, begun };
        let worked = walk.finished().filter(|finished| !has_failed(finished));
        walk.working =
            worked.flat_map(|finished| &finished.summary.start.variants).map(|one| walk.program_of(*one)).collect();
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

    /// Carries out all steps. Returns after how many repeats every verdict was reached, if that was
    /// before the last.
    fn until_the_end(
        &mut self,
        databases: &mut Databases,
        decided: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Option<u32>, Stop> {
        let result = self.carry_out(databases, decided);
        if let (Err(_), Some(start)) = (&result, self.begun) {
            // Its systems have ended.
            let secrets = self.context.keys.secrets(databases);
            secrets.iter().try_for_each(|secret| self.context.folder.conceal_in_start(start, secret))?;
        }
        result
    }

    fn carry_out(
        &mut self,
        databases: &mut Databases,
        decided: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Option<u32>, Stop> {
        let (context, mut running) = (self.context, None);
        while let Some(step) = next(context.plan, &self.outcomes) {
            match step {
                Step::Start(start) => running = Some(self.begin(databases, start)?),
                Step::Load(load) => {
                    let running = running.as_mut().expect("a load is on a start");
                    running.load(context, &load, self.tell)?;
                    self.outcomes.loaded(load);
                }
                Step::Stop => self.end(databases, running.take().expect("only a start is stopped"))?,
                Step::Look { repeats } => {
                    self.tell_left_out(repeats)?;
                    if self.look(repeats, decided)? {
                        return Ok(Some(repeats));
                    }
                }
            }
        }
        self.tell_left_out(context.plan.repeats)?;
        Ok(None)
    }

    /// Asks whether every verdict is reached after so many repeats.
    fn look(&mut self, repeats: u32, decided: &mut dyn FnMut(u32) -> bool) -> Result<bool, Stop> {
        let decided = decided(repeats);
        self.tell(&Event::LookTaken { repeats, decided })?;
        self.outcomes.looked(Look { repeats, decided });
        Ok(decided)
    }

    /// Builds what a start needs, and starts its systems.
    fn begin(&mut self, databases: &mut Databases, start: Start) -> Result<RunningStart, Stop> {
        let context = self.context;
        self.decide(&start)?;
        // All that is planned is built before anything runs.
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

    /// Enters a start that was not planned, and tells of the block that runs again with it.
    fn decide(&mut self, start: &Start) -> Result<(), BundleError> {
        if self.context.plan.starts.contains(start) || self.recorded.decided.contains(start) {
            return Ok(());
        }
        self.tell(&Event::StartDecided { start: start.clone() })?;
        self.recorded.decided.push(start.clone());
        if start.position == 1 { self.tell_again(start) } else { Ok(()) }
    }

    fn tell_again(&mut self, first: &Start) -> Result<(), BundleError> {
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

    /// Says once of each block that it would have run again, and why it does not.
    fn tell_left_out(&mut self, repeats: u32) -> Result<(), BundleError> {
        let none_at_all = self.context.plan.spare_blocks == 0;
        let spare = if none_at_all { "the study has no spare blocks" } else { "no spare block is left" };
        for block in left_out(self.context.plan, &self.outcomes, repeats) {
            if self.left_out.insert(block) {
                let reasons = self.reasons(block).join("; ");
                let message = format!("block {block} is not run again: {spare}; it does not count whole: {reasons}");
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
        // The systems have ended, however the start did.
        let secrets = self.context.keys.secrets(databases);
        let EndedStart { finished, outcomes, executables } = ended?;
        let number = finished.summary.start.number;
        secrets.iter().try_for_each(|secret| self.context.folder.conceal_in_start(number, secret))?;
        let finished = hidden(&secrets, finished);
        self.tell(&Event::ResultsComplete(Box::new(finished.clone())))?;
        self.recorded.starts.insert(number, finished.clone());
        let start = finished.summary.start.clone();
        self.tell(&Event::StartFinished {
            start: number,
            validity: finished.validity(),
            iterations: outcomes.iter().map(|load| load.iterations).sum(),
            errors: outcomes.iter().map(|load| load.errors).sum(),
        })?;
        self.outcomes.stopped(start.clone(), outcome(&finished));
        self.programs.add_executables(&executables, self.tell)?;
        for message in self.look.see(outcomes.iter().flat_map(|load| load.subjects.clone()).collect()) {
            self.tell(&Event::Warning { message })?;
        }
        let worked = finished.loads.iter().zip(&outcomes).map(|(load, outcome)| (load.load.variant, outcome.worked));
        self.break_off_what_never_works(&start, worked.collect())
    }

    /// A variant that never came up, or never gave a right answer, will not do so the next time; one
    /// that has before is worth another try, and its failed start stands in the report.
    fn break_off_what_never_works(&mut self, start: &Start, worked: Vec<(usize, bool)>) -> Result<(), Stop> {
        for (variant, worked) in worked {
            let program = self.program_of(variant);
            if worked {
                self.working.insert(program);
            } else if !self.working.contains(&program) {
                let variant = self.context.plan.label(program);
                return Err(Stop::Broken(RunError::NeverWorked { trial: start.number, variant }));
            }
        }
        self.never_right().map_or(Ok(()), |trials| Err(Stop::Broken(RunError::NeverRight { trials })))
    }

    /// The number of starts that failed, where that is all of a whole block and none has ever done
    /// otherwise. A single one may have failed by chance.
    fn never_right(&self) -> Option<usize> {
        let done = self.finished().count();
        let all_failed = self.finished().all(has_failed);
        (all_failed && done >= self.context.plan.block_size().max(2)).then_some(done)
    }

    /// The starts that the bundle has, of the plan and of what the run decided on. What it has of
    /// another with the same number is none of them.
    fn finished(&self) -> impl Iterator<Item = &FinishedStart> {
        finished(self.context.plan, &self.recorded)
    }

    /// The variant whose programs `variant` runs: that of the duplicate is the baseline.
    fn program_of(&self, variant: usize) -> usize {
        if variant < self.context.plan.variants.len() { variant } else { 0 }
    }
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Interrupted => Stop::Interrupted,
            Broken::Bundle(error) => error.into(),
        }
    }
}

fn finished<'b>(plan: &'b Plan, recorded: &'b RecordedRun) -> impl Iterator<Item = &'b FinishedStart> {
    let is_known = |start: &Start| plan.starts.contains(start) || recorded.decided.contains(start);
    recorded.starts.values().filter(move |finished| is_known(&finished.summary.start))
}

/// What a bundle has of a run that was interrupted.
fn outcomes(plan: &Plan, recorded: &RecordedRun) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for known in finished(plan, recorded) {
        outcomes.stopped(known.summary.start.clone(), outcome(known));
    }
    for (repeats, decided) in &recorded.looks {
        outcomes.looked(Look { repeats: *repeats, decided: *decided });
    }
    outcomes
}

fn has_failed(finished: &FinishedStart) -> bool {
    matches!(finished.validity(), Validity::Failed(_))
}

fn outcome(finished: &FinishedStart) -> Outcome {
    let bad = finished.loads.iter().filter(|load| !load.validity.counts());
    let unsteady = finished.summary.validity.counts() && bad.clone().all(|load| load.steadiness.unsteady);
    match finished.validity() {
        Validity::Valid => Outcome::Counts,
        _ if unsteady => Outcome::Unsteady,
        Validity::Void(_) | Validity::Failed(_) => Outcome::DoesNotCount,
    }
}
