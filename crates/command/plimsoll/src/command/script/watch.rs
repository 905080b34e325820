//! Observes a run: counts users, evaluates thresholds that may end it, and shows its progress.

use super::terminal::Terminal;
use plimsoll_generator::script::{Go, Observer, Progress};
use plimsoll_k6::user::RunState;
use plimsoll_k6::user::{Purpose, Recording};
use plimsoll_k6_run::duration;
use plimsoll_k6_run::metrics::{Sinks, TagSet, builtin};
use plimsoll_k6_run::scenario;
use plimsoll_k6_run::threshold::Limits;
use plimsoll_model::event::{Event, Second};
use plimsoll_model::units::Instant;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often users are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// An observer of a run.
pub(super) struct Watch<'a> {
    plan: &'a Arc<RunState>,
    /// Thresholds that may end it.
    limits: Vec<&'a Limits>,
    terminal: &'a Terminal,
    recording: Rc<Recording>,
    /// When users are counted next.
    count_at: Duration,
    longest: Duration,
}

impl<'a> Watch<'a> {
    pub(super) fn new(plan: &'a Arc<RunState>, limits: &'a [Limits], terminal: &'a Terminal) -> Watch<'a> {
        let may_end = |limits: &&Limits| limits.thresholds.iter().any(|threshold| threshold.abort_on_fail);
        Watch {
            plan,
            limits: limits.iter().filter(may_end).collect(),
            terminal,
            recording: Recording::new(plan, Purpose::Run),
            count_at: COUNT_EVERY,
            longest: scenario::longest(&plan.scenarios),
        }
    }

    fn ends(&self, sinks: &Sinks, elapsed: Duration) -> bool {
        let mut sinks = sinks.clone();
        sinks.merge(&self.recording.copy());
        // `setup` is a part of the run.
        let elapsed = self.plan.finished_parts() + elapsed;
        self.limits.iter().any(|limits| limits.aborts(&sinks, elapsed))
    }

    fn show(&self, second: &Second) {
        let elapsed = Duration::from_secs(second.second.unsigned_abs()) + Duration::from(second.recorded.length);
        let counts = &self.plan.counts;
        let [users, users_made, iterations, interrupted] =
            [&counts.users, &counts.users_made, &counts.iterations, &counts.interrupted]
                .map(|count| count.load(Relaxed));
        let whole = Duration::from_millis((elapsed.as_millis() / 100 * 100) as u64);
        let line = format!(
            "running {}, {users}/{users_made} VUs, {iterations} complete and {interrupted} interrupted iterations",
            duration::format(whole)
        );
        let parts = (0..self.plan.scenarios.len()).map(|index| self.plan.progress(index, elapsed));
        let part = parts.fold(1.0, f64::min).max(elapsed.as_secs_f64() / self.longest.as_secs_f64().max(1e-9));
        self.terminal.progress(&line, part.min(1.0));
    }

    /// The samples of counted users.
    pub(super) fn sinks(&self) -> Sinks {
        self.recording.take().0
    }
}

impl Observer for Watch<'_> {
    fn on_event(&mut self, event: &Event) {
        if let Event::SecondPassed(second) = event {
            self.show(second);
        }
    }

    fn check(&mut self, progress: &Progress) -> Go {
        let Progress { elapsed, sinks, users, users_made } = progress;
        if *elapsed >= self.count_at {
            self.count_at += COUNT_EVERY;
            let at = Instant(i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX));
            let users = [(builtin::VUS, *users as f64), (builtin::VUS_MAX, *users_made as f64)];
            let tags = self.plan.options.tags.as_deref().unwrap_or_default();
            self.recording.add(at, &users, &TagSet { user: tags, ..TagSet::default() });
        }
        let ends = sinks.as_ref().is_some_and(|sinks| self.ends(sinks, *elapsed));
        if ends { Go::Abort } else { Go::On }
    }
}
