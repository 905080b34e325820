//! What the users of one thread leave behind: samples and checks.

use crate::checks::Checks;
use crate::http::Requests;
use crate::metrics::{Contains, Kind, Metric, MetricId, NameFault, Registry, Sinks, TagSet};
use crate::output::Rows;
use crate::plan::Plan;
use plimsoll_model::units::Instant;
use std::cell::{Ref, RefCell};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What a script runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find out which options and metrics it has: it may make metrics.
    Loading,
    /// For its own sake.
    Run,
    /// As the load of a study, which keeps checks and the script's own samples one by one.
    Study,
}

/// Samples and checks of one thread.
#[derive(Debug)]
pub struct Recording {
    plan: Arc<Plan>,
    purpose: Purpose,
    /// Whether samples tell in which group they were taken.
    tags_groups: bool,
    registry: RefCell<Arc<Registry>>,
    sinks: RefCell<Sinks>,
    checks: RefCell<Checks>,
    rows: RefCell<Rows>,
    news: RefCell<Vec<New>>,
    /// The tags of all samples of each scenario.
    tags: Vec<Rc<Tags>>,
    requests: Requests,
}

/// Names and values.
pub(crate) type Tags = Vec<(String, String)>;

/// What a study has not been told yet.
#[derive(Debug)]
enum New {
    /// A check: its place among all.
    Check(usize, bool),
    Sample(MetricId, f64),
    /// A request that could not be made, and why.
    Unmade(String),
}

/// What a study is told.
#[derive(Clone, Copy, Debug)]
pub enum Novelty<'a> {
    /// A check was made.
    Check {
        /// Its name.
        name: &'a str,
        /// Whether it passed.
        passed: bool,
    },
    /// A metric of the script's own got a sample.
    Sample {
        /// The metric.
        metric: &'a Metric,
        /// The value.
        value: f64,
    },
    /// A request could not be made: what was asked for is no URL. k6 counts no such request.
    Unmade {
        /// Why.
        why: &'a str,
    },
}

impl Recording {
    /// For a thread of a run.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, purpose: Purpose) -> Rc<Recording> {
        Rc::new(Recording {
            plan: Arc::clone(plan),
            purpose,
            tags_groups: has_system_tag(plan, "group"),
            registry: RefCell::new(Arc::clone(&plan.registry)),
            sinks: RefCell::new(plan.sinks()),
            checks: RefCell::default(),
            rows: RefCell::new(Rows::new(&plan.outputs)),
            news: RefCell::default(),
            tags: (0..plan.scenarios.len()).map(|scenario| Rc::new(tags_of(plan, Some(scenario)))).collect(),
            requests: Requests::new(plan.options.user_agent.as_deref()),
        })
    }

    /// The run that it belongs to.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The metrics: of a script that was being loaded, with its own.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.borrow())
    }

    /// The metric that a script asks for. Users that come later find those of the first.
    ///
    /// # Errors
    /// It cannot be, or was not there when the script was first loaded.
    pub fn register(&self, name: &str, kind: Kind, contains: Contains) -> Result<MetricId, NameFault> {
        let mut registry = self.registry.borrow_mut();
        if self.purpose != Purpose::Loading && registry.id(name).is_none() {
            return Err(NameFault::Late(name.to_owned()));
        }
        Arc::make_mut(&mut registry).register(name, kind, contains)
    }

    /// Adds samples of one instant with the same tags. A study, which has exchanges from the loop itself, wants only
    /// those of the script's own metrics.
    pub fn add(&self, at: Instant, samples: &[(MetricId, f64)], tags: &TagSet<'_>) {
        let registry = self.registry.borrow();
        if self.purpose == Purpose::Study {
            let own = samples.iter().filter(|(metric, _)| registry.is_custom(*metric));
            self.news.borrow_mut().extend(own.map(|(metric, value)| New::Sample(*metric, *value)));
            return;
        }
        let since_start = Duration::from_nanos(u64::try_from(at.0).unwrap_or_default());
        self.sinks.borrow_mut().add(&registry, samples, tags, since_start);
        self.rows.borrow_mut().add(&registry, samples, tags);
    }

    /// Adds samples that belong to a scenario and to no user.
    pub fn add_of_scenario(&self, at: Instant, scenario: usize, samples: &[(MetricId, f64)]) {
        self.add(at, samples, &TagSet { user: &self.tags_of(Some(scenario)), ..TagSet::default() });
    }

    /// The tags that all samples of a scenario have, or those of what runs before and after all scenarios.
    pub(crate) fn tags_of(&self, scenario: Option<usize>) -> Rc<Tags> {
        scenario.map_or_else(|| Rc::new(tags_of(&self.plan, None)), |scenario| Rc::clone(&self.tags[scenario]))
    }

    /// The requests that users of this thread have in common.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The name of a scenario; empty outside of scenarios.
    fn name_of(&self, scenario: Option<usize>) -> &str {
        scenario.map_or("", |index| &self.plan.scenarios[index].name)
    }

    /// Whether samples tell in which group they were taken.
    pub(crate) fn tags_groups(&self) -> bool {
        self.tags_groups
    }

    /// Whether samples get this tag by themselves.
    #[must_use]
    pub fn has_system_tag(&self, name: &str) -> bool {
        has_system_tag(&self.plan, name)
    }

    pub(crate) fn enter_group(&self, scenario: Option<usize>, path: &str) {
        self.checks.borrow_mut().enter(self.name_of(scenario), path);
    }

    pub(crate) fn check(&self, scenario: Option<usize>, group: &str, name: &str, passed: bool) {
        let index = self.checks.borrow_mut().record(self.name_of(scenario), group, name, passed);
        if self.purpose == Purpose::Study {
            self.news.borrow_mut().push(New::Check(index, passed));
        }
    }

    /// A request could not be made.
    pub(crate) fn unmade(&self, why: &str) {
        if self.purpose == Purpose::Study {
            self.news.borrow_mut().push(New::Unmade(why.to_owned()));
        }
    }

    /// Everything so far, while the thread goes on.
    #[must_use]
    pub fn copy(&self) -> Sinks {
        self.rows.borrow_mut().send();
        self.sinks.borrow().clone()
    }

    /// The checks so far.
    #[must_use]
    pub fn checks(&self) -> Ref<'_, Checks> {
        self.checks.borrow()
    }

    /// Everything, when the thread is done.
    #[must_use]
    pub fn take(&self) -> (Sinks, Checks) {
        self.rows.borrow_mut().send();
        (self.sinks.replace(self.plan.sinks()), self.checks.take())
    }

    /// Tells a study what is new since it was last told.
    pub fn drain(&self, mut tell: impl FnMut(Novelty<'_>)) {
        let news = mem::take(&mut *self.news.borrow_mut());
        let (registry, checks) = (self.registry.borrow(), self.checks.borrow());
        for new in &news {
            tell(match new {
                New::Check(index, passed) => Novelty::Check { name: &checks.all()[*index].name, passed: *passed },
                New::Sample(metric, value) => Novelty::Sample { metric: registry.metric(*metric), value: *value },
                New::Unmade(why) => Novelty::Unmade { why },
            });
        }
    }
}

fn has_system_tag(plan: &Plan, name: &str) -> bool {
    plan.options.system_tags.iter().flatten().any(|tag| tag == name)
}

fn tags_of(plan: &Plan, scenario: Option<usize>) -> Tags {
    let mut tags = plan.options.tags.clone().unwrap_or_default();
    if let Some(scenario) = scenario.map(|index| &plan.scenarios[index]) {
        tags.retain(|(name, _)| scenario.tags.iter().all(|(other, _)| other != name));
        tags.extend(scenario.tags.iter().cloned());
        if has_system_tag(plan, "scenario") {
            tags.push(("scenario".to_owned(), scenario.name.clone()));
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::builtin;
    use crate::options::Options;

    #[test]
    fn a_study_is_told_of_checks_and_of_the_scripts_own_samples_once() {
        let mut registry = Registry::default();
        let own = registry.register("queue", Kind::Gauge, Contains::Default).expect("a name");
        let plan = Arc::new(Plan::new(Options::defaults(), Vec::new(), registry, Vec::new()));
        let recording = Recording::new(&plan, Purpose::Study);
        recording.check(None, "::a", "is fine", false);
        recording.add(Instant(-5), &[(own, 2.5), (builtin::HTTP_REQS, 1.0)], &TagSet::default());
        recording.unmade("no URL");
        let mut told = Vec::new();
        let mut tell = || {
            told.clear();
            recording.drain(|novelty| {
                told.push(match novelty {
                    Novelty::Check { name, passed } => format!("{name} {passed}"),
                    Novelty::Sample { metric, value } => format!("{} {value}", metric.name),
                    Novelty::Unmade { why } => why.to_owned(),
                });
            });
            told.clone()
        };
        assert_eq!(tell(), ["is fine false", "queue 2.5", "no URL"]);
        assert!(tell().is_empty());
    }

    #[test]
    fn metrics_are_made_while_the_script_is_first_loaded() {
        let loading = Recording::new(&Arc::new(Plan::before(Vec::new())), Purpose::Loading);
        let id = loading.register("queue", Kind::Gauge, Contains::Default).expect("a name");
        let registry = Arc::unwrap_or_clone(loading.registry());
        let plan = Arc::new(Plan::new(Options::defaults(), Vec::new(), registry, Vec::new()));
        let recording = Recording::new(&plan, Purpose::Run);
        assert_eq!(recording.register("queue", Kind::Gauge, Contains::Default), Ok(id));
        let late = recording.register("late", Kind::Gauge, Contains::Default).expect_err("it was not there");
        assert!(late.to_string().contains("`late`"), "{late}");
    }
}
