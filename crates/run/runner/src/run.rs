//! The run: every trial of the plan in its order, blocks that did not count again, and an early end
//! where every verdict is reached.

use crate::databases;
use crate::keys::{Keys, hidden};
use crate::preflight;
use crate::programs::{OnEvent, Programs, tell};
use crate::scripts::FirstLook;
use crate::trial::{Broken, Finished, run_trial};
use plimsoll_bundle::{BundleError, BundleWriter, Series};
use plimsoll_database::Databases;
use plimsoll_model::event::Event;
use plimsoll_model::result::TrialSummary;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::trial::{Plan, Trial, Validity};
use plimsoll_plan::{Again, Outcome, again, due, left_out};
use plimsoll_study::Study;
use plimsoll_system::{Launcher, SystemError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// As it was made: without the blocks that are run again.
    pub(crate) plan: &'a Plan,
    pub(crate) launcher: &'a Launcher,
    pub(crate) program: &'a Path,
    pub(crate) keys: &'a Keys,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Context<'_> {
    /// Asks whether the run is to stop.
    pub(crate) fn is_interrupted(&self) -> impl Fn() -> bool {
        || self.interrupted.load(Ordering::Relaxed)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every trial ran that was needed; whether it counts stands in its summary.
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
/// number, whether every verdict is reached; if so, the run ends there. `on_event` hears everything
/// that happens, after the bundle has it.
///
/// # Errors
/// A system does not come up at all, or the bundle cannot be written. Nothing that was started is
/// left in either case.
pub fn run(
    run: &Run<'_>,
    bundle: &mut BundleWriter,
    decided: &mut dyn FnMut(u32) -> bool,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Ending, RunError> {
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
        keys: &keys,
        interrupted: run.interrupted,
    };
    let mut databases = Databases::new(run.launcher, bundle.folder());
    databases::note_place(&databases, &used, bundle, on_event)?;
    let ending = walk(&context, &mut databases, bundle, decided, on_event);
    let secrets = keys.secrets(&databases);
    // Their data goes, however the run has ended.
    drop(databases);
    bundle.data_note().remove()?;
    secrets.iter().try_for_each(|secret| bundle.conceal(secret))?;
    ending
}

/// Walks the plan to its end, or as far as it goes.
fn walk(
    context: &Context<'_>,
    databases: &mut Databases,
    bundle: &mut BundleWriter,
    decided: &mut dyn FnMut(u32) -> bool,
    on_event: &mut OnEvent<'_>,
) -> Result<Ending, RunError> {
    let mut walk = Walk::new(context, databases, bundle, on_event);
    walk.tell_start()?;
    match walk.until_the_end(decided) {
        Ok(decided_after) => {
            walk.tell(&Event::RunFinished { complete: true })?;
            match decided_after {
                Some(repeats) => bundle.complete_after(repeats)?,
                None => bundle.complete()?,
            }
            Ok(Ending::Complete)
        }
        Err(stop) => {
            walk.tell(&Event::RunFinished { complete: false })?;
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
    databases: &'a mut Databases,
    /// The plan with the blocks that are run again.
    plan: Plan,
    bundle: &'a mut BundleWriter,
    on_event: &'a mut OnEvent<'a>,
    programs: Programs,
    /// The variants that worked at least once, the duplicate being the baseline.
    working: BTreeSet<usize>,
    /// What scripts have measured in the first block.
    look: FirstLook,
    /// The blocks of which was told that they are not run again.
    left_out: BTreeSet<u32>,
}

impl<'a> Walk<'a> {
    fn new(
        context: &'a Context<'a>,
        databases: &'a mut Databases,
        bundle: &'a mut BundleWriter,
        on_event: &'a mut OnEvent<'a>,
    ) -> Walk<'a> {
        let mut plan = context.plan.clone();
        plan.trials.extend(bundle.added_trials());
        let (programs, working, left_out) = (Programs::default(), BTreeSet::new(), BTreeSet::new());
        // A run that goes on was looked at before.
        let look = FirstLook::new(context.facts, if bundle.sealed_trials().is_empty() { plan.block_size() } else { 0 });
        let mut walk = Walk { context, databases, plan, bundle, on_event, programs, working, look, left_out };
        let done =
            walk.plan.trials.iter().filter(|trial| walk.summary(trial).is_some_and(|summary| !has_failed(summary)));
        walk.working = done.map(|trial| walk.program_of(trial)).collect();
        walk
    }

    fn tell(&mut self, event: &Event) -> Result<(), BundleError> {
        tell(self.bundle, self.on_event, event)
    }

    fn tell_start(&mut self) -> Result<(), BundleError> {
        let left = self.left(self.plan.repeats);
        let event = Event::RunStarted {
            trials: self.plan.trials.len() as u32,
            already_done: (self.plan.trials.len() - left.len()) as u32,
            time_under_load: left.iter().map(|trial| self.plan.length(trial).load()).sum(),
        };
        self.tell(&event)
    }

    /// Runs look by look. Returns after how many repeats every verdict was reached, if that was
    /// before the last.
    fn until_the_end(&mut self, decided: &mut dyn FnMut(u32) -> bool) -> Result<Option<u32>, Stop> {
        let looks = self.plan.looks.iter().copied().filter(|look| *look < self.plan.repeats).collect::<Vec<u32>>();
        for repeats in looks {
            self.run_up_to(repeats)?;
            // An earlier, interrupted run that went on had looked before.
            let went_on = self.plan.trials.iter().any(|trial| trial.repeat > repeats && self.summary(trial).is_some());
            if !went_on {
                let decided = decided(repeats);
                self.tell(&Event::LookTaken { repeats, decided })?;
                if decided {
                    return Ok(Some(repeats));
                }
            }
        }
        self.run_up_to(self.plan.repeats)?;
        Ok(None)
    }

    /// Runs what is left of the first `repeats` repeats, then blocks of them again as long as any is
    /// due.
    fn run_up_to(&mut self, repeats: u32) -> Result<(), Stop> {
        self.run_all(&self.left(repeats))?;
        while let Some(next) = due(&self.plan, &self.outcomes(), repeats) {
            let trials = again(&self.plan, next);
            self.bundle.add_trials(&trials)?;
            self.tell_again(next, &trials)?;
            self.plan.trials.extend(&trials);
            self.run_all(&trials)?;
        }
        Ok(self.tell_left_out(repeats)?)
    }

    /// Says once of each block that it would have been run again, and why it is not.
    fn tell_left_out(&mut self, repeats: u32) -> Result<(), BundleError> {
        let spare =
            if self.plan.spare_blocks == 0 { "the study has no spare blocks" } else { "no spare block is left" };
        for block in left_out(&self.plan, &self.outcomes(), repeats) {
            if self.left_out.insert(block) {
                let reasons = self.reasons(block).join("; ");
                let message = format!("block {block} is not run again: {spare}; it does not count whole: {reasons}");
                self.tell(&Event::Warning { message })?;
            }
        }
        Ok(())
    }

    /// Why trials of a block do not count, each reason once.
    fn reasons(&self, block: u32) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for trial in self.plan.trials.iter().filter(|trial| trial.block == block) {
            for reason in self.summary(trial).map_or(&[][..], |summary| summary.validity.reasons()) {
                if !reasons.contains(reason) {
                    reasons.push(reason.clone());
                }
            }
        }
        reasons
    }

    fn tell_again(&mut self, again: Again, trials: &[Trial]) -> Result<(), BundleError> {
        let reasons = self.reasons(again.block);
        self.tell(&Event::BlockRepeated {
            of: again.block,
            block: trials[0].block,
            attempt: trials[0].attempt,
            extended: again.extended,
            trials: trials.len() as u32,
            time_under_load: trials.iter().map(|trial| self.plan.length(trial).load()).sum(),
            reasons,
        })
    }

    fn run_all(&mut self, trials: &[Trial]) -> Result<(), Stop> {
        self.programs.make_ready(self.context, trials, self.bundle, self.on_event)?;
        for trial in trials {
            let finished = self.run_one(trial)?;
            self.programs.add_executables(&finished.executables, self.bundle)?;
            for message in self.look.see(finished.subjects) {
                self.tell(&Event::Warning { message })?;
            }
            // A variant that never came up, or never gave a right answer, will not do so the next time;
            // one that has before is worth another try, and its failed trial stands in the report.
            if finished.worked {
                self.working.insert(self.program_of(trial));
            } else if !self.working.contains(&self.program_of(trial)) {
                let variant = self.plan.label(self.program_of(trial));
                return Err(Stop::Broken(RunError::NeverWorked { trial: trial.number, variant }));
            }
            if let Some(trials) = self.never_right() {
                return Err(Stop::Broken(RunError::NeverRight { trials }));
            }
        }
        Ok(())
    }

    /// How many trials failed, where that is all of a whole block and none has ever done otherwise. A single one may
    /// have failed by chance.
    fn never_right(&self) -> Option<usize> {
        let done: Vec<&TrialSummary> = self.plan.trials.iter().filter_map(|trial| self.summary(trial)).collect();
        let all_failed = done.iter().all(|summary| has_failed(summary));
        (all_failed && done.len() >= self.plan.block_size().max(2)).then_some(done.len())
    }

    fn run_one(&mut self, trial: &Trial) -> Result<Finished, Stop> {
        if self.context.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let started = Event::TrialStarted {
            trial: *trial,
            variant: self.plan.label(trial.variant),
            condition: self.plan.conditions[trial.condition].to_string(),
        };
        self.tell(&started)?;
        let mut writer = self.bundle.begin_trial(trial)?;
        if let Some(place) = writer.left_at() {
            let number = trial.number;
            let message = format!("trial {number} was broken off and left objects in {place}: remove them by hand");
            self.tell(&Event::Warning { message })?;
        }
        let mut hear = |event: &Event| tell(self.bundle, self.on_event, event);
        let outcome = run_trial(self.context, self.databases, trial, &mut writer, &mut hear);
        // The systems have ended, however the trial did.
        let secrets = self.context.keys.secrets(self.databases);
        secrets.iter().try_for_each(|secret| writer.conceal(secret))?;
        let finished = match outcome {
            Ok(finished) => Finished { summary: hidden(&secrets, finished.summary), ..finished },
            Err(Broken::Interrupted) => return Err(Stop::Interrupted),
            Err(Broken::Bundle(error)) => return Err(error.into()),
        };
        let series = Series { processes: &finished.processes, host: &finished.host, databases: &finished.databases };
        self.bundle.seal_trial(writer, &finished.summary, &series)?;
        let over = Event::TrialFinished {
            trial: trial.number,
            validity: finished.summary.validity.clone(),
            iterations: finished.iterations,
            errors: finished.errors,
        };
        self.tell(&over)?;
        Ok(finished)
    }

    /// The trials of the first `repeats` repeats that are not in the bundle.
    fn left(&self, repeats: u32) -> Vec<Trial> {
        let trials = self.plan.trials.iter().filter(|trial| trial.repeat <= repeats);
        trials.filter(|trial| self.summary(trial).is_none()).copied().collect()
    }

    /// What the bundle has of a trial. What it has of another with the same number is none of it.
    fn summary(&self, trial: &Trial) -> Option<&TrialSummary> {
        self.bundle.sealed_trials().get(&trial.number).filter(|summary| summary.trial == *trial)
    }

    fn outcomes(&self) -> BTreeMap<u32, Outcome> {
        let known = self.plan.trials.iter().filter_map(|trial| Some((trial.number, outcome(self.summary(trial)?))));
        known.collect()
    }

    /// The variant whose programs a trial runs.
    fn program_of(&self, trial: &Trial) -> usize {
        if trial.variant < self.plan.variants.len() { trial.variant } else { 0 }
    }
}

fn has_failed(summary: &TrialSummary) -> bool {
    matches!(summary.validity, Validity::Failed(_))
}

fn outcome(summary: &TrialSummary) -> Outcome {
    match summary.validity {
        Validity::Valid => Outcome::Counts,
        _ if summary.unsteady => Outcome::Unsteady,
        Validity::Void(_) | Validity::Failed(_) => Outcome::DoesNotCount,
    }
}
