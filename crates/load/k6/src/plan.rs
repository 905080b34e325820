//! What all users of a run share: what was settled before it began, and how far it is.

use crate::data::Shared;
use crate::grpc::Schemas;
use crate::metrics::{Registry, Sinks};
use crate::options::Options;
use crate::output::Output;
use crate::repeats::Repeats;
use crate::scenario::{Executor, Scenario};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A run, as all its threads see it.
#[derive(Debug)]
pub struct Plan {
    /// The options, with all defaults.
    pub options: Options,
    /// The scenarios; others refer to them by their index.
    pub scenarios: Vec<Scenario>,
    /// The metrics.
    pub registry: Arc<Registry>,
    /// `__ENV`.
    pub env: Vec<(String, String)>,
    /// Where samples go one by one.
    pub outputs: Vec<Output>,
    /// Whether samples are kept by scenario and group as well.
    pub by_group: bool,
    /// Arrays that all users share.
    pub shared: Shared,
    /// Definitions of gRPC that were loaded.
    pub schemas: Schemas,
    /// How far it is.
    pub counts: Counts,
    /// What is said again and again.
    pub repeats: Repeats,
    /// Set when the script ends the run: with what it said.
    pub abort: OnceLock<String>,
    /// Set when the script calls the run a failure: with what it said.
    pub failure: OnceLock<String>,
}

/// How far a run is.
#[derive(Debug, Default)]
pub struct Counts {
    /// Users that are part of a scenario now.
    pub users: AtomicU64,
    /// Users that were made.
    pub users_made: AtomicU64,
    /// Iterations that came to their end.
    pub iterations: AtomicU64,
    /// Iterations that were cut off.
    pub interrupted: AtomicU64,
    /// Nanoseconds that the parts took which are over: `setup`, and then all scenarios.
    pub earlier: AtomicU64,
    /// Those of each scenario.
    pub scenarios: Vec<ScenarioCounts>,
}

/// How far a scenario is.
#[derive(Debug, Default)]
pub struct ScenarioCounts {
    /// Iterations that have begun.
    pub begun: AtomicU64,
    /// Iterations that are over, however they ended.
    pub ended: AtomicU64,
}

impl Plan {
    /// A run that has not begun. `options` have their defaults.
    #[must_use]
    pub fn new(options: Options, scenarios: Vec<Scenario>, registry: Registry, env: Vec<(String, String)>) -> Plan {
        let counts =
            Counts { scenarios: scenarios.iter().map(|_| ScenarioCounts::default()).collect(), ..Counts::default() };
        Plan {
            options,
            scenarios,
            registry: Arc::new(registry),
            env,
            outputs: Vec::new(),
            by_group: false,
            shared: Shared::default(),
            schemas: Schemas::default(),
            counts,
            repeats: Repeats::default(),
            abort: OnceLock::new(),
            failure: OnceLock::new(),
        }
    }

    /// What a script sees that is being loaded for its options and metrics.
    #[must_use]
    pub fn before(env: Vec<(String, String)>) -> Plan {
        Plan::new(Options::defaults(), Vec::new(), Registry::default(), env)
    }

    /// The run of a script that was loaded with this plan.
    #[must_use]
    pub fn settled(&self, options: Options, scenarios: Vec<Scenario>, registry: Registry) -> Plan {
        let (shared, schemas) = (self.shared.clone(), self.schemas.clone());
        Plan { shared, schemas, ..Plan::new(options, scenarios, registry, self.env.clone()) }
    }

    /// Sinks for the samples of a thread.
    pub(crate) fn sinks(&self) -> Sinks {
        if self.by_group { Sinks::by_group(&self.registry) } else { Sinks::new(&self.registry) }
    }

    /// How long the parts took that are over.
    #[must_use]
    pub fn earlier(&self) -> Duration {
        Duration::from_nanos(self.counts.earlier.load(Relaxed))
    }

    /// How much of a scenario is over, from 0 to 1: of its iterations, where they are a number, and else of its time.
    #[must_use]
    pub fn progress(&self, scenario: usize, elapsed: Duration) -> f64 {
        let ended = self.counts.scenarios[scenario].ended.load(Relaxed) as f64;
        let scenario = &self.scenarios[scenario];
        let (part, whole) = match scenario.executor {
            Executor::SharedIterations { iterations, .. } => (ended, iterations as f64),
            Executor::PerVuIterations { vus, iterations, .. } => (ended, (vus * iterations) as f64),
            _ => {
                let since_start = elapsed.saturating_sub(scenario.start_time);
                (since_start.as_secs_f64(), scenario.executor.window().as_secs_f64())
            }
        };
        if whole > 0.0 { (part / whole).min(1.0) } else { 1.0 }
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
            let plan = Plan::new(Options::defaults(), derived.scenarios, Registry::default(), Vec::new());
            plan.counts.scenarios[0].ended.store(ended, Relaxed);
            plan.progress(0, Duration::from_secs(seconds))
        };
        assert_eq!(of(json!({ "vus": 2, "iterations": 10 }), 5, 99), 0.5);
        assert_eq!(of(json!({ "vus": 2, "duration": "20s" }), 99, 5), 0.25);
        assert_eq!(of(json!({ "vus": 2, "duration": "20s" }), 0, 25), 1.0);
    }
}
