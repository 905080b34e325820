//! What all users of a run share: its settings, its progress, and what was loaded once for all.

use super::shared_arrays::SharedArrays;
use crate::schema::Schemas;
use crate::secrets::Secrets;
use plimsoll_k6_run::log_limit::LogLimit;
use plimsoll_k6_run::metrics::{Registry, Sinks};
use plimsoll_k6_run::options::Options;
use plimsoll_k6_run::output::Output;
use plimsoll_k6_run::scenario::{Executor, Scenario};
use plimsoll_model::load::{Share, WHOLE};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A run of a script, shared by all threads and users.
#[derive(Debug)]
pub struct RunState {
    /// The options, with all defaults.
    pub options: Options,
    /// The scenarios; others refer to them by their index.
    pub scenarios: Vec<Scenario>,
    /// The metrics.
    pub registry: Arc<Registry>,
    /// `__ENV`.
    pub env: Vec<(String, String)>,
    /// Outputs that get each sample.
    pub outputs: Vec<Output>,
    /// True if samples are also kept by scenario and group.
    pub by_group: bool,
    /// The arrays that all users share.
    pub shared_arrays: SharedArrays,
    /// Definitions of gRPC services that were loaded.
    pub schemas: Schemas,
    /// The secrets that the script may read.
    pub secrets: Arc<Secrets>,
    /// Users and iterations so far.
    pub counts: Counts,
    /// The share of all users that this process has.
    pub share: Share,
    /// Limits how often a line is written to the console.
    pub log_limit: LogLimit,
    /// Set when the script aborts the run: the message of the script.
    pub abort: OnceLock<String>,
    /// Set when the script marks the run as failed: the message of the script.
    pub failure: OnceLock<String>,
}

/// Users and iterations of a run so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// Users that are part of a scenario now.
    pub users: AtomicU64,
    /// Users that were made.
    pub users_made: AtomicU64,
    /// Iterations that are complete.
    pub iterations: AtomicU64,
    /// Iterations that were interrupted.
    pub interrupted: AtomicU64,
    /// The duration of finished parts of the run in nanoseconds: `setup`, and later all scenarios.
    pub finished_parts: AtomicU64,
    /// The iterations of each scenario.
    pub scenarios: Vec<ScenarioCounts>,
}

/// Iterations of a scenario so far.
#[derive(Debug, Default)]
pub struct ScenarioCounts {
    /// Iterations that have begun.
    pub begun: AtomicU64,
    /// Iterations that have ended, complete or interrupted.
    pub ended: AtomicU64,
}

impl RunState {
    /// A run that has not begun. `options` have their defaults.
    #[must_use]
    pub fn new(options: Options, scenarios: Vec<Scenario>, registry: Registry, env: Vec<(String, String)>) -> RunState {
        let counts =
            Counts { scenarios: scenarios.iter().map(|_| ScenarioCounts::default()).collect(), ..Counts::default() };
        RunState {
            options,
            scenarios,
            registry: Arc::new(registry),
            env,
            outputs: Vec::new(),
            by_group: false,
            shared_arrays: SharedArrays::default(),
            schemas: Schemas::default(),
            secrets: Arc::default(),
            counts,
            share: WHOLE,
            log_limit: LogLimit::default(),
            abort: OnceLock::new(),
            failure: OnceLock::new(),
        }
    }

    /// The run in which a script is first loaded, to find its options and metrics.
    #[must_use]
    pub fn for_loading(env: Vec<(String, String)>) -> RunState {
        RunState::new(Options::defaults(), Vec::new(), Registry::default(), env)
    }

    /// The run that follows once the options are known. It shares what was loaded in this one.
    #[must_use]
    pub fn configured(&self, options: Options, scenarios: Vec<Scenario>, registry: Registry) -> RunState {
        let (shared_arrays, schemas) = (self.shared_arrays.clone(), self.schemas.clone());
        let secrets = Arc::clone(&self.secrets);
        RunState { shared_arrays, schemas, secrets, ..RunState::new(options, scenarios, registry, self.env.clone()) }
    }

    /// This run for a share of all users: those of other shares are in other processes.
    #[must_use]
    pub fn of_share(self, share: Share) -> RunState {
        RunState { share, ..self }
    }

    /// Sinks for the samples of a thread.
    pub(super) fn sinks(&self) -> Sinks {
        if self.by_group { Sinks::by_group(&self.registry) } else { Sinks::new(&self.registry) }
    }

    /// The duration of the parts of the run that are over.
    #[must_use]
    pub fn finished_parts(&self) -> Duration {
        Duration::from_nanos(self.counts.finished_parts.load(Relaxed))
    }

    /// The processes that have users of a scenario, of those that divide the run among themselves.
    pub(crate) fn with_users(&self, scenario: usize) -> u64 {
        self.share.among_those_with(self.scenarios[scenario].executor.most_vus()).of as u64
    }

    /// The progress of a scenario from 0 to 1: by iterations where their number is fixed, else by time.
    #[must_use]
    pub fn progress(&self, scenario: usize, elapsed: Duration) -> f64 {
        let ended = self.counts.scenarios[scenario].ended.load(Relaxed) as f64;
        let with_users = self.with_users(scenario) as f64;
        let scenario = &self.scenarios[scenario];
        let (done, total) = match scenario.executor {
            Executor::SharedIterations { iterations, .. } => (ended, (iterations as f64 / with_users).ceil()),
            Executor::PerVuIterations { vus, iterations, .. } => {
                (ended, (self.share.of_first(vus) * iterations) as f64)
            }
            _ => {
                let since_start = elapsed.saturating_sub(scenario.start_time);
                (since_start.as_secs_f64(), scenario.executor.window().as_secs_f64())
            }
        };
        if total > 0.0 { (done / total).min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_is_by_iterations_or_by_time() {
        let of = |options: serde_json::Value, ended, seconds| {
            let derived = Options::read(&options).options.scenarios(&["default"]).expect("fine options");
            let run = RunState::new(Options::defaults(), derived.scenarios, Registry::default(), Vec::new());
            run.counts.scenarios[0].ended.store(ended, Relaxed);
            run.progress(0, Duration::from_secs(seconds))
        };
        assert_eq!(of(json!({ "vus": 2, "iterations": 10 }), 5, 99), 0.5);
        assert_eq!(of(json!({ "vus": 2, "duration": "20s" }), 99, 5), 0.25);
        assert_eq!(of(json!({ "vus": 2, "duration": "20s" }), 0, 25), 1.0);
    }
}
