//! The samples and checks of the users of one thread.

use super::run::RunState;
use crate::fetch::cache::RequestCache;
use plimsoll_k6_run::checks::Checks;
use plimsoll_k6_run::metrics::{Contains, Kind, Metric, MetricId, NameFault, Registry, Sinks, TagSet};
use plimsoll_k6_run::output::ThreadOutputs;
use plimsoll_model::units::Instant;
use std::cell::{Ref, RefCell};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The purpose for which a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find its options and metrics. Only then may it define metrics.
    Loading,
    /// A run of its own.
    Run,
    /// As the load of a study, which takes checks and samples of the script's own metrics one by one.
    Study,
}

/// Samples and checks of one thread.
#[derive(Debug)]
pub struct Recording {
    run: Arc<RunState>,
    purpose: Purpose,
    /// True if samples have the tag `group`.
    tags_groups: bool,
    registry: RefCell<Arc<Registry>>,
    sinks: RefCell<Sinks>,
    checks: RefCell<Checks>,
    outputs: RefCell<ThreadOutputs>,
    /// What a study has not taken yet.
    pending: RefCell<Vec<Pending>>,
    /// The tags of all samples of each scenario.
    tags: Vec<Rc<Tags>>,
    requests: RequestCache,
}

/// Names and values.
pub(crate) type Tags = Vec<(String, String)>;

/// A record that a study has not taken yet.
#[derive(Debug)]
enum Pending {
    /// A check, by its index among all, and its outcome.
    Check(usize, bool),
    Sample(MetricId, f64),
    /// The reason why a request was not sent.
    UnsentRequest(String),
}

/// A record of a script for the study that it is the load of.
#[derive(Clone, Copy, Debug)]
pub enum ScriptRecord<'a> {
    /// A check was made.
    Check {
        /// Its name.
        name: &'a str,
        /// True if it passed.
        passed: bool,
    },
    /// A sample of one of the script's own metrics.
    Sample {
        /// The metric.
        metric: &'a Metric,
        /// The value.
        value: f64,
    },
    /// A request was not sent, because its URL is none. k6 does not count such a request.
    UnsentRequest {
        /// The reason.
        why: &'a str,
    },
}

impl Recording {
    /// For a thread of a run.
    #[must_use]
    pub fn new(run: &Arc<RunState>, purpose: Purpose) -> Rc<Recording> {
        Rc::new(Recording {
            run: Arc::clone(run),
            purpose,
            tags_groups: has_system_tag(run, "group"),
            registry: RefCell::new(Arc::clone(&run.registry)),
            sinks: RefCell::new(run.sinks()),
            checks: RefCell::default(),
            outputs: RefCell::new(ThreadOutputs::new(&run.outputs)),
            pending: RefCell::default(),
            tags: (0..run.scenarios.len()).map(|scenario| Rc::new(tags_of(run, Some(scenario)))).collect(),
            requests: RequestCache::new(run.options.user_agent.as_deref()),
        })
    }

    /// The run that it belongs to.
    #[must_use]
    pub fn run(&self) -> &Arc<RunState> {
        &self.run
    }

    /// The metrics, with those that the script has defined so far.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.borrow())
    }

    /// Defines a metric of the script. Users after the first get the same one.
    ///
    /// # Errors
    /// The name or kind is not possible, or the metric was not defined when the script was first loaded.
    pub fn register(&self, name: &str, kind: Kind, contains: Contains) -> Result<MetricId, NameFault> {
        let mut registry = self.registry.borrow_mut();
        if self.purpose != Purpose::Loading && registry.id(name).is_none() {
            return Err(NameFault::Late(name.to_owned()));
        }
        Arc::make_mut(&mut registry).register(name, kind, contains)
    }

    /// Adds samples of one instant with the same tags. For a study, only those of the script's own metrics count: it
    /// records exchanges itself.
    pub fn add(&self, at: Instant, samples: &[(MetricId, f64)], tags: &TagSet<'_>) {
        let registry = self.registry.borrow();
        if self.purpose == Purpose::Study {
            let own = samples.iter().filter(|(metric, _)| registry.is_custom(*metric));
            self.pending.borrow_mut().extend(own.map(|(metric, value)| Pending::Sample(*metric, *value)));
            return;
        }
        // Each part of the run has a clock of its own.
        let since_start = self.run.finished_parts() + Duration::from_nanos(u64::try_from(at.0).unwrap_or_default());
        self.sinks.borrow_mut().add(&registry, samples, tags, since_start);
        self.outputs.borrow_mut().add(&registry, samples, tags);
    }

    /// Adds samples that belong to a scenario and to no user.
    pub fn add_of_scenario(&self, at: Instant, scenario: usize, samples: &[(MetricId, f64)]) {
        self.add(at, samples, &TagSet { user: &self.tags_of(Some(scenario)), ..TagSet::default() });
    }

    /// The tags that all samples of a scenario have, or those of what runs before and after all scenarios.
    pub(crate) fn tags_of(&self, scenario: Option<usize>) -> Rc<Tags> {
        scenario.map_or_else(|| Rc::new(tags_of(&self.run, None)), |scenario| Rc::clone(&self.tags[scenario]))
    }

    /// The request cache of this thread's users.
    pub(crate) fn requests(&self) -> &RequestCache {
        &self.requests
    }

    /// The name of a scenario; empty outside of scenarios.
    fn name_of(&self, scenario: Option<usize>) -> &str {
        scenario.map_or("", |index| &self.run.scenarios[index].name)
    }

    /// True if samples have the tag `group`.
    pub(crate) fn tags_groups(&self) -> bool {
        self.tags_groups
    }

    /// True if samples get this system tag.
    #[must_use]
    pub fn has_system_tag(&self, name: &str) -> bool {
        has_system_tag(&self.run, name)
    }

    pub(crate) fn enter_group(&self, scenario: Option<usize>, path: &str) {
        self.checks.borrow_mut().enter(self.name_of(scenario), path);
    }

    pub(crate) fn check(&self, scenario: Option<usize>, group: &str, name: &str, passed: bool) {
        let index = self.checks.borrow_mut().record(self.name_of(scenario), group, name, passed);
        if self.purpose == Purpose::Study {
            self.pending.borrow_mut().push(Pending::Check(index, passed));
        }
    }

    /// Records that a request was not sent.
    pub(crate) fn unsent_request(&self, why: &str) {
        if self.purpose == Purpose::Study {
            self.pending.borrow_mut().push(Pending::UnsentRequest(why.to_owned()));
        }
    }

    /// A copy of the samples so far. Hands over the lines of the outputs.
    #[must_use]
    pub fn copy(&self) -> Sinks {
        self.outputs.borrow_mut().send_lines();
        self.sinks.borrow().clone()
    }

    /// The checks so far.
    #[must_use]
    pub fn checks(&self) -> Ref<'_, Checks> {
        self.checks.borrow()
    }

    /// Takes all samples and checks, at the end of the thread.
    #[must_use]
    pub fn take(&self) -> (Sinks, Checks) {
        self.outputs.borrow_mut().send_lines();
        (self.sinks.replace(self.run.sinks()), self.checks.take())
    }

    /// Passes the records since the last call to `take`.
    pub fn drain(&self, mut take: impl FnMut(ScriptRecord<'_>)) {
        let pending = mem::take(&mut *self.pending.borrow_mut());
        let (registry, checks) = (self.registry.borrow(), self.checks.borrow());
        for record in &pending {
            take(match record {
                Pending::Check(index, passed) => {
                    ScriptRecord::Check { name: &checks.all()[*index].name, passed: *passed }
                }
                Pending::Sample(metric, value) => {
                    ScriptRecord::Sample { metric: registry.metric(*metric), value: *value }
                }
                Pending::UnsentRequest(why) => ScriptRecord::UnsentRequest { why },
            });
        }
    }
}

fn has_system_tag(run: &RunState, name: &str) -> bool {
    run.options.system_tags.iter().flatten().any(|tag| tag == name)
}

fn tags_of(run: &RunState, scenario: Option<usize>) -> Tags {
    let mut tags = run.options.tags.clone().unwrap_or_default();
    if let Some(scenario) = scenario.map(|index| &run.scenarios[index]) {
        tags.retain(|(name, _)| scenario.tags.iter().all(|(other, _)| other != name));
        tags.extend(scenario.tags.iter().cloned());
        if has_system_tag(run, "scenario") {
            tags.push(("scenario".to_owned(), scenario.name.clone()));
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_k6_run::metrics::builtin;
    use plimsoll_k6_run::options::Options;

    #[test]
    fn a_study_takes_checks_and_the_scripts_own_samples_once() {
        let mut registry = Registry::default();
        let own = registry.register("queue", Kind::Gauge, Contains::Default).expect("a name");
        let run = Arc::new(RunState::new(Options::defaults(), Vec::new(), registry, Vec::new()));
        let recording = Recording::new(&run, Purpose::Study);
        recording.check(None, "::a", "is fine", false);
        recording.add(Instant(-5), &[(own, 2.5), (builtin::HTTP_REQS, 1.0)], &TagSet::default());
        recording.unsent_request("no URL");
        let mut records = Vec::new();
        let mut drained = || {
            records.clear();
            recording.drain(|record| {
                records.push(match record {
                    ScriptRecord::Check { name, passed } => format!("{name} {passed}"),
                    ScriptRecord::Sample { metric, value } => format!("{} {value}", metric.name),
                    ScriptRecord::UnsentRequest { why } => why.to_owned(),
                });
            });
            records.clone()
        };
        assert_eq!(drained(), ["is fine false", "queue 2.5", "no URL"]);
        assert!(drained().is_empty());
    }

    #[test]
    fn metrics_are_defined_while_the_script_is_first_loaded() {
        let loading = Recording::new(&Arc::new(RunState::for_loading(Vec::new())), Purpose::Loading);
        let id = loading.register("queue", Kind::Gauge, Contains::Default).expect("a name");
        let registry = Arc::unwrap_or_clone(loading.registry());
        let run = Arc::new(RunState::new(Options::defaults(), Vec::new(), registry, Vec::new()));
        let recording = Recording::new(&run, Purpose::Run);
        assert_eq!(recording.register("queue", Kind::Gauge, Contains::Default), Ok(id));
        let late = recording.register("late", Kind::Gauge, Contains::Default).expect_err("it was not there");
        assert!(late.to_string().contains("`late`"), "{late}");
    }
}
