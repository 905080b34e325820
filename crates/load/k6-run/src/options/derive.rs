//! The scenarios that options describe.

use super::{OptionFault, Options};
use crate::duration;
use crate::scenario::{Executor, GRACEFUL_STOP, MAX_DURATION, Scenario};
use plimsoll_model::suggestion::did_you_mean;
use std::time::Duration;

/// The scenarios of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The scenarios, in the order of their start.
    pub scenarios: Vec<Scenario>,
    /// Options without effect.
    pub warnings: Vec<String>,
}

/// The message for a script that does not export the function of an iteration.
#[must_use]
pub fn no_such_function<'a>(wanted: &str, exports: impl Iterator<Item = &'a str>) -> String {
    // Exports with a meaning of their own are no iterations.
    let found: Vec<&str> =
        exports.filter(|name| !["options", "setup", "teardown", "handleSummary"].contains(name)).collect();
    let others = if found.is_empty() { "none".to_owned() } else { format!("only `{}`", found.join("`, `")) };
    let help = did_you_mean(wanted, found.iter().copied()).map(|help| format!("; {help}")).unwrap_or_default();
    format!("expected the script to export the function `{wanted}`, found {others}{help}")
}

impl Options {
    /// The scenarios of these options. `exports` are the exported functions of the script.
    pub fn scenarios(&self, exports: &[&str]) -> Result<Derived, Vec<OptionFault>> {
        let mut faults = self.contradictions();
        let mut warnings = Vec::new();
        let mut scenarios = match &self.scenarios {
            Some(scenarios) if !scenarios.is_empty() => scenarios.clone(),
            explicit => {
                if explicit.is_some() {
                    warnings.push("`scenarios` is empty: one user does one iteration".to_owned());
                }
                vec![named_default(self.executor(&mut warnings, &mut faults))]
            }
        };
        scenarios.sort_by_key(|scenario| scenario.start_time);
        faults.extend(scenarios.iter().filter(|scenario| !exports.contains(&scenario.exec.as_str())).map(|scenario| {
            let what = no_such_function(&scenario.exec, exports.iter().copied());
            OptionFault { option: format!("scenarios.{}.exec", scenario.name), what }
        }));
        if faults.is_empty() {
            let empty = scenarios.iter().filter(|scenario| scenario.executor.most_vus() == 0);
            faults.extend(empty.map(|scenario| OptionFault {
                option: format!("scenarios.{}", scenario.name),
                what: "expected at least one VU at some time, found none".to_owned(),
            }));
        }
        if faults.is_empty() { Ok(Derived { scenarios, warnings }) } else { Err(faults) }
    }

    /// Faults of options that contradict each other on the load.
    fn contradictions(&self) -> Vec<OptionFault> {
        let stages = self.stages.as_ref().is_some_and(|stages| !stages.is_empty());
        let scenarios = self.scenarios.is_some();
        let (duration, iterations) = (self.duration.is_some(), self.iterations.is_some());
        let pairs = [
            (iterations && stages, "iterations", "stages"),
            (duration && stages && !iterations, "duration", "stages"),
            (iterations && scenarios, "iterations", "scenarios"),
            (duration && scenarios && !iterations, "duration", "scenarios"),
            (stages && scenarios, "stages", "scenarios"),
        ];
        let found = pairs.into_iter().filter(|(both, ..)| *both);
        let fault = |(_, one, other): (bool, &str, &str)| OptionFault {
            option: one.to_owned(),
            what: format!("expected it or `{other}`, found both"),
        };
        found.map(fault).collect()
    }

    /// The executor of `vus`, `duration`, `iterations` and `stages`.
    fn executor(&self, warnings: &mut Vec<String>, faults: &mut Vec<OptionFault>) -> Executor {
        let vus = self.vus.unwrap_or(1);
        let mut fault = |option: &str, what: String| faults.push(OptionFault { option: option.to_owned(), what });
        let stages = self.stages.clone().unwrap_or_default();
        let says_load = self.iterations.is_some() || self.duration.is_some() || !stages.is_empty();
        if vus == 0 && says_load && stages.is_empty() {
            fault("vus", "expected at least 1, found 0".to_owned());
        }
        match (self.iterations, self.duration) {
            (Some(iterations), max_duration) => {
                if iterations < vus {
                    fault("iterations", format!("expected at least one for each of {vus} VUs, found {iterations}"));
                }
                Executor::SharedIterations { vus, iterations, max_duration: max_duration.unwrap_or(MAX_DURATION) }
            }
            (None, Some(duration)) => {
                if duration < Duration::from_secs(1) {
                    let found = duration::format(duration);
                    fault("duration", format!("expected at least `1s`, found `{found}`"));
                }
                Executor::ConstantVus { vus, duration }
            }
            (None, None) if !stages.is_empty() => {
                Executor::RampingVus { start_vus: vus, stages, graceful_ramp_down: GRACEFUL_STOP }
            }
            (None, None) => {
                if self.vus.is_some() {
                    let what = "it needs `iterations`, `duration` or `stages`";
                    warnings.push(format!("`vus = {vus}` has no effect: {what}"));
                }
                Executor::PerVuIterations { vus: 1, iterations: 1, max_duration: MAX_DURATION }
            }
        }
    }
}

fn named_default(executor: Executor) -> Scenario {
    Scenario {
        name: "default".to_owned(),
        executor,
        start_time: Duration::ZERO,
        graceful_stop: GRACEFUL_STOP,
        exec: "default".to_owned(),
        env: Vec::new(),
        tags: Vec::new(),
    }
}
