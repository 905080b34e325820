//! The events of a run. The runner emits each event once; the bundle, the terminal and any other subscriber receive the
//! same stream. Everything that a bundle records of a run comes from these events.

use crate::host::{OtherProcesses, Version};
use crate::look::Look;
use crate::record::{Interval, Subject, Tally};
use crate::result::{FinishedStart, GeneratorRow, LoadSecond};
use crate::sample::Samples;
use crate::start::{Load, Phase, Start, Validity};
use crate::units::{Instant, Nanos};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins, or resumes after an interruption.
    RunStarted {
        /// Starts in all, as far as is known.
        starts: u32,
        /// Starts that an earlier, interrupted run has left in the bundle.
        already_done: u32,
        /// Time under load of the starts that remain.
        time_under_load: Duration,
    },
    /// The machine was observed before the first start, to see who else uses it.
    MachineObserved {
        /// For how long.
        span: Duration,
        /// Others.
        others: OtherProcesses,
    },
    /// The programs and files that the run uses, as far as they are known by now.
    VersionsFound {
        /// All of them.
        versions: Vec<Version>,
    },
    /// The plan's strategy decided on a start that was not planned.
    StartDecided {
        /// Which.
        start: Start,
    },
    /// A build command begins.
    BuildStarted {
        /// The system.
        system: String,
        /// The command.
        command: String,
    },
    /// It ended well.
    BuildFinished {
        /// The system.
        system: String,
        /// How long it took.
        took: Duration,
    },
    /// The data of a database is being made: it is initialised, or rows are loaded.
    DataProgress {
        /// The database.
        database: String,
        /// What is done: `loading order_line`.
        doing: String,
        /// Share of the whole that is done, 0 to 1.
        done: f64,
    },
    /// The data of a database is ready to be restored before trials.
    DataReady {
        /// The database.
        database: String,
        /// Whether it was kept from an earlier run.
        kept: bool,
        /// How long it took.
        took: Duration,
        /// Bytes on disk.
        size: u64,
    },
    /// A start begins: its systems come up.
    StartBegun {
        /// Which.
        start: Start,
        /// The names of its variants, as in reports.
        variants: String,
        /// The name of its condition, as in reports.
        condition: String,
    },
    /// A load on the start under way begins.
    LoadBegun {
        /// Number of the start.
        start: u32,
        /// Which.
        load: Load,
    },
    /// A phase of the start, or of the load under way on it, begins.
    PhaseStarted {
        /// Number of the start.
        start: u32,
        /// Which phase.
        phase: Phase,
        /// How long it will take, where that is known.
        length: Option<Duration>,
    },
    /// Objects of a storage workload lie in a place, from now until the load is over.
    ObjectsPlaced {
        /// Number of the start.
        start: u32,
        /// The place.
        place: String,
    },
    /// One second of load is over.
    SecondPassed(Box<Second>),
    /// Scripts wrote lines to their console.
    ConsoleWritten {
        /// Number of the start.
        start: u32,
        /// Number of the load on it.
        load: u32,
        /// The lines, each with its end.
        lines: String,
    },
    /// A load is over, and its objects have been removed.
    LoadFinished {
        /// Number of the start.
        start: u32,
        /// Number of the load on it.
        load: u32,
    },
    /// Samples that belong to no second of load: of databases, when a load is over, and of systems and machines,
    /// after the last second of the last load.
    Sampled {
        /// Number of the start.
        start: u32,
        /// The samples, on the clock of the start.
        samples: Samples,
    },
    /// The results of a start are complete.
    ResultsComplete(Box<FinishedStart>),
    /// A start is over, and in the bundle.
    StartFinished {
        /// Number of the start.
        start: u32,
        /// Whether it counts with all of its loads.
        validity: Validity,
        /// Iterations in the measure phases of its loads.
        iterations: u64,
        /// Exchanges that failed in those.
        errors: u64,
        /// CPU that others used under those of its loads that do not count, in cores; none where all count, or where
        /// that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<f64>,
    },
    /// A block runs again as a whole, because a load in it did not count.
    BlockRepeated {
        /// The block that did not count.
        of: u32,
        /// The number of the new block.
        block: u32,
        /// The number of this attempt, from 2.
        attempt: u32,
        /// True if its loads get a longer warm-up.
        extended: bool,
        /// The number of its starts.
        starts: u32,
        /// Their time under load.
        time_under_load: Duration,
        /// Why loads of the earlier block do not count, each reason once.
        reasons: Vec<String>,
    },
    /// Others used so much of the processors that loads did not count in several blocks, one after the other.
    TooDisturbed {
        /// The number of blocks.
        blocks: u32,
        /// CPU that others used under the loads of these blocks that do not count, in cores.
        others: f64,
        /// True if the run goes on nevertheless, because it was asked to.
        goes_on: bool,
    },
    /// The verdicts so far were computed, to find out whether the run can end.
    LookTaken {
        /// What was found.
        look: Look,
        /// The starts that are left out because of it.
        spared: u32,
        /// Their time under load.
        time_spared: Duration,
    },
    /// Something that a reader of the report should know.
    Warning {
        /// What.
        message: String,
    },
    /// The run is over.
    RunFinished {
        /// True if everything ran that was needed.
        complete: bool,
        /// After how many repeats every verdict was reached, where that was before the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_after: Option<u32>,
    },
}

impl Event {
    /// The event for the log: without rows, samples and results, which have files of their own. None if nothing
    /// remains.
    #[must_use]
    pub fn in_short(&self) -> Option<Event> {
        match self {
            Event::VersionsFound { .. }
            | Event::StartDecided { .. }
            | Event::ObjectsPlaced { .. }
            | Event::ConsoleWritten { .. }
            | Event::Sampled { .. }
            | Event::ResultsComplete(_) => None,
            Event::SecondPassed(second) => Some(Event::SecondPassed(Box::new(second.in_short()))),
            event => Some(event.clone()),
        }
    }
}

/// One second of load, as the rows that the bundle gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Number of the start.
    pub start: u32,
    /// Number of the load on it.
    pub load: u32,
    /// The begin of the load's measure phase, on the clock of the start.
    pub zero: Instant,
    /// The second, counted from there.
    pub second: i64,
    /// What ended in it, by subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<LoadSecond>,
    /// Iterations that ended in it.
    pub iterations: u64,
    /// Exchanges of requests that failed in it.
    pub errors: u64,
    /// Median service time of the exchanges of requests that ended in it, in seconds.
    pub median: Option<f64>,
    /// How the generator did.
    pub generator: GeneratorRow,
    /// What telemetry sampled since the second before, on the clock of the start.
    #[serde(default, skip_serializing_if = "Samples::is_empty")]
    pub samples: Samples,
    /// What the generator recorded, with histograms.
    #[serde(default, skip_serializing_if = "Interval::is_empty")]
    pub recorded: Interval,
}

impl Second {
    /// The rows of what a generator recorded under `load` of a start.
    #[must_use]
    pub fn of(start: u32, load: u32, zero: Instant, recorded: Interval) -> Second {
        let by_subject = recorded.by_subject();
        let mut requests = Tally::default();
        let of_requests = by_subject.iter().filter(|(subject, _)| matches!(subject, Subject::Request(_)));
        of_requests.for_each(|(_, tally)| requests.merge(tally));
        let row = |(subject, tally): (&&Subject, &Tally)| LoadSecond::of(load, recorded.second, subject, tally);
        Second {
            start,
            load,
            zero,
            second: recorded.second,
            ended: by_subject.iter().map(row).collect(),
            iterations: by_subject.get(&Subject::Iteration).map_or(0, Tally::count),
            errors: requests.failed(),
            median: (requests.count() > 0).then(|| Nanos(requests.service.value_at_quantile(0.5)).seconds()),
            generator: GeneratorRow::of(load, &recorded),
            samples: Samples::default(),
            recorded,
        }
    }

    /// This second without rows, samples and histograms.
    fn in_short(&self) -> Second {
        let generator = self.generator.clone();
        Second { ended: Vec::new(), generator, samples: Samples::default(), recorded: Interval::default(), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ErrorKind, RecordedPhase};

    #[test]
    fn a_second_has_its_rows_and_is_told_in_short_without_them() {
        let mut recorded = Interval { second: 4, length: Nanos(1_000_000_000), ..Interval::default() };
        for (subject, times) in [(Subject::Request("a".to_owned()), 3), (Subject::Iteration, 2)] {
            let mut tally = Tally::default();
            (0..times).for_each(|_| tally.service.record(2_000_000).expect("in range"));
            tally.errors.insert(ErrorKind::Status, 1);
            recorded.tallies.insert((RecordedPhase::Measure, subject), tally);
        }
        let second = Second::of(1, 2, Instant(5), recorded);
        assert_eq!((second.iterations, second.errors, second.ended.len()), (2, 1, 2));
        assert!((second.median.expect("requests ended") - 0.002).abs() < 1e-5);
        let event = Event::SecondPassed(Box::new(second));
        let Some(Event::SecondPassed(short)) = event.in_short() else { panic!("it is told") };
        assert_eq!((short.iterations, short.ended.len(), short.recorded.is_empty()), (2, 0, true));
    }
}
