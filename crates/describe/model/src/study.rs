//! What a report needs to know of the study beside its trials.

use crate::exposed::ExposedSeries;
use crate::factor::Factor;
use crate::measure::Measure;
use crate::objective::Objective;
use crate::units::Processors;
use crate::workload::Protocol;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The study, without the parts that vary from trial to trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyFacts {
    /// One line.
    pub title: String,
    /// The question that it asks.
    pub question: String,
    /// What it varies.
    pub factors: Vec<Factor>,
    /// The measures that decide the answer; the first is the headline.
    pub decide: Vec<Decision>,
    /// What a noise floor in doubt does to verdicts.
    #[serde(default)]
    pub floor_rule: FloorRule,
    /// What the report is to show.
    pub report: ReportSpec,
    /// The protocol of its workload.
    pub protocol: Protocol,
    /// Whether load is open.
    pub open_load: bool,
    /// The load in words: `closed loop, {users} users, no think time`.
    pub load: String,
    /// The mean think time in seconds, in closed load, where it is the same in all trials.
    #[serde(default)]
    pub mean_think: Option<f64>,
    /// The workload in words: protocol, connections, steps, time-out.
    pub workload: String,
    /// The generator's own limits.
    pub generator: GeneratorSpec,
    /// Names of the systems that each trial starts, in the order of starting.
    pub systems: Vec<String>,
    /// The series that are kept of the metrics that systems expose, each name once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ExposedSeries>,
    /// The commands that start the systems of each variant, with their environment: `counter: ./counter -mode mutex`.
    /// Placeholders that the variant alone does not fill are left as they are.
    #[serde(default)]
    pub commands: Vec<Vec<String>>,
    /// Whether every target is an address of the machine itself.
    pub loopback: bool,
    /// The name of the study's file, without its folder. Empty in old bundles.
    #[serde(default)]
    pub file: String,
    /// The profile of the study file that was run; none for the study as it stands.
    #[serde(default)]
    pub profile: Option<String>,
    /// True for a quick run, with fewer levels, repeats and seconds than the study asks for.
    pub quick: bool,
    /// Why the variants share time as they do: words that follow the name of the design. Empty in old bundles.
    #[serde(default)]
    pub design_reason: String,
    /// True if variants can take turns, whether they do or not. Old bundles do not tell.
    #[serde(default)]
    pub can_take_turns: bool,
    /// True if each load is to show what changes over its time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub soak: bool,
    /// The objective by which loads are judged, where the study has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
}

impl StudyFacts {
    /// The names under which CPU and memory are told: those of systems, and before instances that of all of them together.
    #[must_use]
    pub fn names_of_systems(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for system in &self.systems {
            let group = system.strip_suffix("-1").filter(|group| {
                let is_known = |name: &str| self.systems.iter().any(|system| system == name);
                is_known(&format!("{group}-2")) && !is_known(group)
            });
            names.extend(group.map(str::to_owned).into_iter().chain([system.clone()]));
        }
        names
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A measure that decides, and what counts as a difference in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The measure.
    pub measure: Measure,
    /// The smallest difference that matters: as a share where variants are compared by their ratio
    /// (0.05 is 5 %), in the measure's own unit where by their difference (see
    /// [`Measure::effect`]).
    pub margin: f64,
}

/// What a noise floor in doubt, one that excludes zero or is too wide for the margin, does to the
/// verdicts of its condition and measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorRule {
    /// It makes all of them inconclusive.
    #[default]
    Strict,
    /// It makes those verdicts inconclusive that the noise could explain; a difference that lies wholly beyond the
    /// floor stands, and so does equivalence within the margin less the floor. Older bundles call this rule `explains`.
    #[serde(alias = "explains")]
    Beyond,
}

/// What the report is to show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportSpec {
    /// Measures shown beside those that decide.
    pub measures: Vec<Measure>,
    /// The factor on the horizontal axis of charts; the last numeric condition when not given.
    pub axis: Option<String>,
    /// Prose of the author: paragraphs.
    pub comments: Option<String>,
    /// What the author wants done.
    pub action_items: Vec<String>,
}

/// The generator's threads and its own limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSpec {
    /// Threads that send load.
    pub threads: usize,
    /// Processors they are bound to; all when there is none.
    pub cpus: Option<Processors>,
    /// Share of a processor, 0 to 1, above which its busiest thread counts as the limit: the
    /// trial is void then.
    pub max_cpu: f64,
    /// Lateness at the 99th percentile above which the schedule counts as missed: the trial is
    /// void then.
    pub max_lateness: Duration,
}

/// Where results come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured by Plimsoll's own generator.
    #[default]
    Measured,
    /// Taken from the results of another tool. Nothing is known about its generator.
    Imported {
        /// The tool: `k6`.
        tool: String,
        /// Its version as it reports it; none if it reports none.
        version: Option<String>,
    },
}
