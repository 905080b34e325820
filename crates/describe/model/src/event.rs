//! What happens in a run, told once and consumed by many: bundle, terminal, later a web page.

use crate::result::{GeneratorRow, LoadSecond};
use crate::start::{Load, Phase, Start, Validity};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins, or goes on after a stop.
    RunStarted {
        /// Starts in all, as far as is known.
        starts: u32,
        /// Starts that an earlier, interrupted run has left in the bundle.
        already_done: u32,
        /// Time under load of what is left.
        time_under_load: Duration,
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
        /// Its variants, as in reports.
        variants: String,
        /// Its condition, as in reports.
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
    /// One second of load is over.
    SecondPassed(Box<Second>),
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
    },
    /// A load of a block did not count, so that the block runs again as a whole.
    BlockRepeated {
        /// The block that did not count.
        of: u32,
        /// The block that it is run again as.
        block: u32,
        /// The number of this attempt, from 2.
        attempt: u32,
        /// True if its loads get a longer warm-up.
        extended: bool,
        /// The number of its starts.
        starts: u32,
        /// Their time under load.
        time_under_load: Duration,
        /// Why loads of the earlier one do not count, each reason once.
        reasons: Vec<String>,
    },
    /// The verdicts were looked at, to find out whether the run can end.
    LookTaken {
        /// After how many repeats.
        repeats: u32,
        /// True if every verdict is reached.
        decided: bool,
    },
    /// Something that a reader of the report should know.
    Warning {
        /// What.
        message: String,
    },
    /// The run is over.
    RunFinished {
        /// True if everything ran that the plan asks for.
        complete: bool,
    },
}

/// One second of load: the rows of load and generator that the bundle gets. Telemetry has no part in it yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Number of the start.
    pub start: u32,
    /// Number of the load on it.
    pub load: u32,
    /// The second, from the begin of the load's measure phase.
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
}

impl Second {
    /// The same without the rows that tables have.
    #[must_use]
    pub fn without_rows(&self) -> Second {
        Second { ended: Vec::new(), generator: self.generator.clone(), ..*self }
    }
}
