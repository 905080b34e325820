//! Finished starts with their loads, as a bundle stores them and as analysis reads them.

mod load;
mod rungs;
mod second;
mod summary;

use crate::database::DatabaseFacts;
use crate::exposed::MetricSample;
use crate::look::Look;
use crate::sample::{DatabaseSample, HostSample, ProcessSample, WaitSample};
use crate::start::{Start, Validity};
use crate::units::Nanos;
use std::collections::BTreeMap;

pub use load::{LeftOutSlice, LoadResult, PooledLoads, Slice};
pub use rungs::{PooledRungs, RungResult};
pub use second::{GeneratorRow, LoadSecond};
pub use summary::{
    FinishedStart, Headroom, LoadSummary, LoadTiming, Replies, StartSummary, StartTiming, Steadiness, VariantSystems,
    Work, common_cuts, validity_of_loads, whole_turns,
};

/// What a bundle has recorded of a run so far. From it, a resumed run comes to the same next step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// The starts that are complete, by their numbers.
    pub starts: BTreeMap<u32, FinishedStart>,
    /// The starts that the plan's strategy decided on beside those of the plan, in order.
    pub decided: Vec<Start>,
    /// The looks at the verdicts that were taken.
    pub looks: Vec<Look>,
}

/// Everything that was recorded of a start.
#[derive(Clone, Debug)]
pub struct StartResult {
    /// The folder of its files, relative to that of the bundle: `starts/0001`.
    pub folder: String,
    /// The short facts.
    pub summary: StartSummary,
    /// Its loads, in order.
    pub loads: Vec<LoadResult>,
    /// The processes of its systems, second by second and system by system.
    pub processes: Vec<ProcessSample>,
    /// The machine, second by second.
    pub host: Vec<HostSample>,
    /// What databases counted, second by second.
    pub databases: Vec<DatabaseSample>,
    /// The waits that systems wrote of, second by second.
    pub waits: Vec<WaitSample>,
    /// The metrics that systems expose, second by second.
    pub metrics: Vec<MetricSample>,
}

impl StartResult {
    /// The validity of the start with all of its loads.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.summary.validity_with(self.loads.iter().map(|load| &load.summary))
    }

    /// Its loads, each with the start.
    pub fn trials(&self) -> impl Iterator<Item = TrialResult<'_>> {
        self.loads.iter().map(move |load| TrialResult { start: self, load })
    }
}

/// A load together with the start that it ran on: where the value of a measure comes from.
#[derive(Clone, Copy, Debug)]
pub struct TrialResult<'a> {
    /// The start.
    pub start: &'a StartResult,
    /// One of its loads.
    pub load: &'a LoadResult,
}

impl<'a> TrialResult<'a> {
    /// Which start.
    #[must_use]
    pub fn identity(&self) -> &'a Start {
        &self.start.summary.start
    }

    /// The number of the start.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.identity().number
    }

    /// The variant that took the load.
    #[must_use]
    pub fn variant(&self) -> usize {
        self.load.summary.load.variant
    }

    /// The condition, as an index into the plan's.
    #[must_use]
    pub fn condition(&self) -> usize {
        self.identity().condition
    }

    /// The validity of start and load together.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.start.summary.validity.and(&self.load.summary.validity)
    }

    /// True if start and load count.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.start.summary.validity.counts() && self.load.summary.validity.counts()
    }

    /// The warnings of the load, then those of the start.
    pub fn warnings(&self) -> impl Iterator<Item = &'a String> {
        self.load.summary.warnings.iter().chain(&self.start.summary.warnings)
    }

    /// The systems of the variant that took the load.
    #[must_use]
    pub fn systems(&self) -> Option<&'a VariantSystems> {
        self.start.summary.systems.iter().find(|systems| systems.variant == self.variant())
    }

    /// The databases of the variant that took the load.
    #[must_use]
    pub fn databases(&self) -> &'a [DatabaseFacts] {
        self.systems().map_or(&[], |systems| &systems.databases)
    }

    /// From the start of the variant's first system to the readiness of its last.
    #[must_use]
    pub fn ready_after(&self) -> Nanos {
        self.systems().map_or(Nanos(0), |systems| systems.ready_after)
    }
}
