//! `[generator]` and `[targets]`: what sends the load, its own limits, and where it may go.

use super::objective::ObjectiveTable;
use crate::document::{Faults, table};
use crate::value::{
    CpuSet, Literal, PositiveTimeSpan, Problem, Scalar, Share, Text, Threads, Usable, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::study::GeneratorSpec;
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// The generator of load and its own limits.
    struct GeneratorTable {
        /// Threads that send load. Default: one for each of `cpus`; without `cpus`, one for every two processors.
        threads: Option<Literal<Threads>>,
        /// Processors they are bound to: "0-2,5", "lower half" or "upper half". Default: all.
        cpus: Option<Literal<CpuSet>>,
        /// Share of a processor above which the generator's busiest thread counts as the limit, which makes a trial void. Default: 0.7.
        max_cpu: Option<Literal<Share>>,
        /// Lateness at the 99th percentile above which the schedule counts as missed, which makes a trial void. Default: "5ms"; with an `[objective]`, a tenth of its shortest limit, from 5 ms to 50 ms.
        max_lateness: Option<Literal<PositiveTimeSpan>>,
        /// The consequence of an agent that is lost under a load, in a run with agents: the load does not count, and "repeat" has its block run again with the agents that are left, while "stop" ends the run, which can be resumed. Default: "repeat".
        lost_agent: Option<Literal<LostAgent>>,
    }
}

/// The consequence of an agent that is lost under a load, which does not count then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostAgent {
    /// Its block runs again with the agents that are left.
    #[default]
    Repeat,
    /// The run ends, and can be resumed.
    Stop,
}

impl Scalar for LostAgent {
    const EXPECTED: &'static str = "\"repeat\" or \"stop\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "repeat" => Ok(LostAgent::Repeat),
            Level::Text(text) if text == "stop" => Ok(LostAgent::Stop),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["repeat", "stop"] })
    }
}

impl GeneratorTable {
    pub(crate) fn lost_agent(&self) -> LostAgent {
        self.lost_agent.as_ref().map_or_else(LostAgent::default, |lost| lost.value)
    }
}

table! {
    /// Where load may go, besides this machine.
    struct TargetsTable {
        /// Host names and addresses, besides this machine's own, that the study may load. Name only hosts that are yours to load. Default: none.
        allow: Option<Vec<Literal<Text>>>,
    }
}

impl TargetsTable {
    pub(crate) fn allowed(&self) -> Vec<String> {
        self.allow.iter().flatten().map(|host| host.value.0.clone()).collect()
    }
}

/// The lateness above which the schedule counts as missed, unless the study says it.
const MAX_LATENESS: Duration = Duration::from_millis(5);

/// The most of it where it follows from the limits of an objective.
const MOST_LATENESS: Duration = Duration::from_millis(50);

/// The generator as the study asks for it; `table` is missing when it says nothing. `objective` are the limits of a search.
pub(crate) fn spec(
    table: Option<&GeneratorTable>,
    objective: Option<&ObjectiveTable>,
    processors: &[usize],
    faults: &mut Faults,
) -> Option<GeneratorSpec> {
    let cpus = resolve_optional(table.and_then(|table| table.cpus.as_ref()), |cpus| {
        if cpus.value == CpuSet::Own {
            let problem = Problem::new("cannot be \"own\", which is for systems and databases");
            faults.add(
                problem.help("name them: \"upper half\", or numbers such as \"2,3\"").fault(&cpus.span, &cpus.path),
            );
            return None;
        }
        let among = cpus.value.among(Usable::all(processors));
        among.map_err(|problem| faults.add(problem.fault(&cpus.span, &cpus.path))).ok()
    })?;
    let threads = table.and_then(|table| table.threads.as_ref()).map(|threads| threads.value.u32() as usize);
    let default_threads = cpus.as_ref().map_or(processors.len() / 2, |cpus| cpus.0.len()).max(1);
    let max_cpu = table.and_then(|table| table.max_cpu.as_ref()).map_or(0.7, |share| share.value.0);
    let max_lateness = table.and_then(|table| table.max_lateness.as_ref());
    Some(GeneratorSpec {
        threads: threads.unwrap_or(default_threads),
        cpus,
        max_cpu,
        max_lateness: max_lateness.map_or_else(|| default_lateness(objective), |length| length.value.0),
    })
}

/// A load that is too much for systems on this machine takes processors from the generator as well, which is then late. Of 1 %
/// of the work that is late by a tenth of a limit, a percentile that is held against the limit hardly moves.
fn default_lateness(objective: Option<&ObjectiveTable>) -> Duration {
    let shortest = objective.and_then(|objective| objective.limits().min());
    shortest.map_or(MAX_LATENESS, |shortest| (shortest / 10).clamp(MAX_LATENESS, MOST_LATENESS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, read_table};

    fn read(text: &str) -> GeneratorSpec {
        let table: GeneratorTable = read_table(text);
        spec(Some(&table), None, &[0, 1, 2, 3], &mut crate::table::testing::no_faults()).expect("a generator")
    }

    #[test]
    fn the_generator_has_defaults() {
        let spec = spec(None, None, &[0, 1, 2, 3], &mut crate::table::testing::no_faults()).expect("a generator");
        assert_eq!((spec.threads, spec.cpus, spec.max_cpu), (2, None, 0.7));
        assert_eq!(spec.max_lateness, Duration::from_millis(5));
    }

    #[test]
    fn lateness_may_be_a_tenth_of_what_is_held_against_a_limit() {
        let lateness = |text: &str, limits: &str| {
            let table: GeneratorTable = read_table(text);
            let objective: ObjectiveTable = read_table(limits);
            let faults = &mut crate::table::testing::no_faults();
            spec(Some(&table), Some(&objective), &[0, 1], faults).expect("a generator").max_lateness.as_millis()
        };
        let two = "limits = { 'request_duration.p95' = '200ms', 'request_duration.p99' = '1s' }";
        assert_eq!(lateness("", two), 20);
        assert_eq!(lateness("", "limits = { 'request_duration.p95' = '30ms' }"), 5);
        assert_eq!(lateness("", "limits = { 'iteration_duration.p95' = '60s' }"), 50);
        assert_eq!(lateness("max_lateness = '2ms'", two), 2);
    }

    #[test]
    fn threads_follow_the_processors() {
        assert_eq!(read("cpus = '1-3'").threads, 3);
        assert_eq!(read("cpus = '1-3'\nthreads = 1").threads, 1);
        assert_eq!(read("max_cpu = '90%'").max_cpu, 0.9);
    }

    #[test]
    fn wrong_values_are_named() {
        let faults = faults_of::<GeneratorTable>("threads = 0\nmax_cpu = 70\nmax_lateness = '0s'\ncpu = '0'");
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults[0].contains("at least 1"), "{faults:?}");
        assert!(faults[1].contains("\"70%\""), "{faults:?}");
    }
}
