//! What happens in a run, told once and consumed by many: bundle, terminal, later a web page.

use crate::trial::{Phase, Trial, Validity};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins, or goes on after a stop.
    RunStarted {
        /// Trials in all, as far as is known.
        trials: u32,
        /// Trials that an earlier, interrupted run has left in the bundle.
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
    /// A trial begins.
    TrialStarted {
        /// Which.
        trial: Trial,
        /// Its variant, as in reports.
        variant: String,
        /// Its condition, as in reports.
        condition: String,
    },
    /// A phase of the trial begins.
    PhaseStarted {
        /// Number of the trial.
        trial: u32,
        /// Which phase.
        phase: Phase,
        /// How long it will take, where that is known.
        length: Option<Duration>,
    },
    /// One second of load is over.
    SecondPassed {
        /// Number of the trial.
        trial: u32,
        /// The second.
        second: i64,
        /// Iterations that ended in it.
        iterations: u64,
        /// Exchanges that failed in it.
        errors: u64,
        /// Median service time of the exchanges that ended in it, in seconds.
        median: Option<f64>,
        /// Users at work.
        users: u64,
    },
    /// A trial is over, and in the bundle.
    TrialFinished {
        /// Number of the trial.
        trial: u32,
        /// Whether it counts.
        validity: Validity,
        /// Iterations in its measure phase.
        iterations: u64,
        /// Exchanges that failed in its measure phase.
        errors: u64,
    },
    /// A trial of a block did not count, so that the block runs again as a whole.
    BlockRepeated {
        /// The block that did not count.
        of: u32,
        /// The block that it is run again as.
        block: u32,
        /// Which attempt this is, from 2.
        attempt: u32,
        /// Whether its trials get a longer warm-up.
        extended: bool,
        /// How many trials it has.
        trials: u32,
        /// Their time under load.
        time_under_load: Duration,
        /// Why trials of the earlier one do not count, each reason once.
        reasons: Vec<String>,
    },
    /// The verdicts were looked at, to find out whether the run can end.
    LookTaken {
        /// After how many repeats.
        repeats: u32,
        /// Whether every verdict is reached.
        decided: bool,
    },
    /// Something that a reader of the report should know.
    Warning {
        /// What.
        message: String,
    },
    /// The run is over.
    RunFinished {
        /// Whether every trial ran.
        complete: bool,
    },
}
