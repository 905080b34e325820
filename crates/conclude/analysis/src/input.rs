//! The input of the analysis.

use plimsoll_model::exposed::ExposedSeries;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::measure::{Measure, Noted, Series};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::Metric;
use plimsoll_model::result::{StartResult, TrialResult};
use plimsoll_model::shell;
use plimsoll_model::study::{Origin, StudyFacts};
use std::collections::BTreeSet;
use std::time::Duration;

/// The contents of a bundle, as far as they could be read.
#[derive(Debug)]
pub struct Input {
    /// The study.
    pub facts: StudyFacts,
    /// The plan, including starts that did not run.
    pub plan: Plan,
    /// The starts that ran, in the order in which they ran.
    pub starts: Vec<StartResult>,
    /// The origin of the results: measured by Plimsoll, or taken from another tool.
    pub origin: Origin,
    /// The machine.
    pub host: Host,
    /// The versions of the programs that ran.
    pub versions: Vec<Version>,
    /// Damage, changes and gaps found while reading the bundle.
    pub problems: Vec<String>,
    /// True if the run reached its end.
    pub complete: bool,
    /// True if margins and order are those declared before the run.
    pub declared: bool,
}

impl Input {
    /// The loads of all starts, each with its start, in the order in which they ran.
    pub fn trials(&self) -> impl Iterator<Item = TrialResult<'_>> {
        self.starts.iter().flat_map(StartResult::trials)
    }

    /// The start with this number, if it ran.
    #[must_use]
    pub fn start(&self, number: u32) -> Option<&StartResult> {
        self.starts.iter().find(|start| start.summary.start.number == number)
    }

    /// Notes in measures what their values are counted in, where their names do not say it.
    #[must_use]
    pub fn with_units_noted(mut self) -> Input {
        let notes = self.notes();
        let decide = self.facts.decide.iter_mut().map(|decision| &mut decision.measure);
        decide.chain(&mut self.facts.report.measures).for_each(|measure| notes.note(measure));
        self
    }

    /// A measure with what its values are counted in, where its name does not say it.
    #[must_use]
    pub fn noted(&self, mut measure: Measure) -> Measure {
        self.notes().note(&mut measure);
        measure
    }

    /// Units and directions of metrics that Plimsoll does not make. For a script's own metrics, only the recorded loads
    /// say so.
    pub(crate) fn notes(&self) -> Notes {
        let scripts = self.trials().filter_map(|trial| trial.load.summary.work.script());
        Notes {
            times: scripts.flat_map(|script| script.times.iter().cloned()).collect(),
            exposed: self.facts.metrics.clone(),
        }
    }

    /// True if a load counts: it counts with its start, and its block was not run again.
    #[must_use]
    pub fn counts(&self, trial: TrialResult<'_>) -> bool {
        trial.counts() && !self.plan.is_superseded(trial.identity())
    }

    /// The command that runs the study again: for so much time under load if it is given, and otherwise until all is
    /// decided if the run could end early. It names the agents and the broker that the run had.
    #[must_use]
    pub fn command_to_run(&self, time: Option<Duration>) -> String {
        let quick = if self.facts.quick { " --quick" } else { "" };
        let profile = self
            .facts
            .profile
            .as_ref()
            .map_or_else(String::new, |profile| format!(" --profile {}", shell::word(profile)));
        let extent = match time {
            Some(time) => format!(" --for {}", in_whole_units(time)),
            // A plan has looks only where it was asked to end at one.
            None if !self.plan.looks.is_empty() => " --until-decided".to_owned(),
            None => String::new(),
        };
        // Old bundles do not tell the name; each keeps the file under this one.
        let file = if self.facts.file.is_empty() { "study.toml" } else { &self.facts.file };
        let loads = self.starts.iter().flat_map(|start| &start.loads);
        let agents = loads.map(|load| load.summary.agents.len()).max().unwrap_or(0);
        let has_other_hosts = self.starts.iter().any(|start| !start.summary.hosts.is_empty());
        let broker = if agents > 0 || has_other_hosts { " --nats URL" } else { "" };
        let agents = if agents > 0 { format!(" --agents {agents}") } else { String::new() };
        format!("plimsoll run{quick}{profile}{extent} {}{broker}{agents}", shell::word(&file))
    }

    /// True if Plimsoll's own generator made the load, so that its limits are known.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.origin == Origin::Measured
    }
}

/// Units and directions of the metrics that scripts and systems make.
pub(crate) struct Notes {
    /// The names of the scripts' own metrics that hold times.
    times: BTreeSet<String>,
    /// The series of systems.
    exposed: Vec<ExposedSeries>,
}

impl Notes {
    /// Notes it in a measure of such a metric.
    pub(crate) fn note(&self, measure: &mut Measure) {
        match &measure.series {
            Series::Custom(Metric::Gauge | Metric::Trend, name) => {
                let is_time = self.times.contains(name);
                measure.noted = is_time.then_some(Noted::TIMES);
            }
            Series::Exposed(name) => {
                measure.noted = self.exposed.iter().find(|series| series.is_named(name)).map(ExposedSeries::noted);
            }
            _ => {}
        }
    }
}

/// A time as a command takes it, in whole seconds: `90s`, `12m`, `2h14m`.
fn in_whole_units(time: Duration) -> String {
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    match (minutes / 60, minutes % 60) {
        _ if seconds > 0 => format!("{}s", time.as_secs()),
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, start};
    use plimsoll_model::agent::AgentRecord;

    #[test]
    fn a_run_that_could_end_early_is_run_again_until_it_is_decided() {
        let mut study = input(10, |_| start(1.0));
        assert_eq!(study.command_to_run(None), "plimsoll run study.toml");
        study.plan.looks = vec![5, 7, 10];
        assert_eq!(study.command_to_run(None), "plimsoll run --until-decided study.toml");
        let for_a_time = study.command_to_run(Some(Duration::from_secs(90)));
        assert_eq!(for_a_time, "plimsoll run --for 90s study.toml", "its number of repeats is fixed before the run");
    }

    #[test]
    fn the_command_to_run_again_names_agents_and_broker() {
        let mut study = input(10, |_| start(1.0));
        study.starts[0].loads[0].summary.agents = vec![AgentRecord::default(), AgentRecord::default()];
        assert_eq!(study.command_to_run(None), "plimsoll run study.toml --nats URL --agents 2");
    }

    #[test]
    fn times_are_written_as_commands_take_them() {
        for (seconds, expected) in [(90, "90s"), (720, "12m"), (3600, "1h"), (8040, "2h14m"), (3601, "3601s")] {
            assert_eq!(in_whole_units(Duration::from_secs(seconds)), expected);
        }
    }
}
