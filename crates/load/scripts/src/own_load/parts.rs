//! All parts of a load, put together by the caller as they report.

use super::{Counts, PartEnd, PartProgress, PartResult, unpacked};
use crate::console::word;
use crate::run::{End, Progress, RunOutcome};
use crate::{Console, Refused};
use plimsoll_javascript::Level;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::metrics::{Registry, Sinks};
use plimsoll_model::job::{JobRecord, WorkFacts};
use plimsoll_model::script::Packed;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

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
    /// A run of this number of parts, none of which has reported yet.
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
        // Only the part that called `setup` has any.
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
