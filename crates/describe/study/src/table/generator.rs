//! `[generator]` and `[targets]`: what sends the load, its own limits, and where it may go.

use crate::document::{Faults, table};
use crate::value::{CpuSet, Literal, PositiveTimeSpan, Share, Text, Threads, Usable, resolve_optional};
use plimsoll_model::study::GeneratorSpec;
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
        /// Lateness at the 99th percentile above which the schedule counts as missed, which makes a trial void. Default: "5ms".
        max_lateness: Option<Literal<PositiveTimeSpan>>,
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

/// The generator as the study asks for it; `table` is missing when it says nothing.
pub(crate) fn spec(table: Option<&GeneratorTable>, processors: &[usize], faults: &mut Faults) -> Option<GeneratorSpec> {
    let cpus = resolve_optional(table.and_then(|table| table.cpus.as_ref()), |cpus| {
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
        max_lateness: max_lateness.map_or(Duration::from_millis(5), |length| length.value.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, read_table};

    fn read(text: &str) -> GeneratorSpec {
        let table: GeneratorTable = read_table(text);
        spec(Some(&table), &[0, 1, 2, 3], &mut crate::table::testing::no_faults()).expect("a generator")
    }

    #[test]
    fn the_generator_has_defaults() {
        let spec = spec(None, &[0, 1, 2, 3], &mut crate::table::testing::no_faults()).expect("a generator");
        assert_eq!((spec.threads, spec.cpus, spec.max_cpu), (2, None, 0.7));
        assert_eq!(spec.max_lateness, Duration::from_millis(5));
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
