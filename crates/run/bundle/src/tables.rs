//! The tables of a start: rows of CSV files, read and written by name of column.

use plimsoll_model::record::{ErrorKind, Interval, RecordedPhase, Subject, TICKS, Tally};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The number of a start's only load: the default for rows that were written before a start could have several.
fn first_load() -> u32 {
    1
}

/// A row of `errors.csv`: how many errors of a kind ended in a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorRow {
    #[serde(default = "first_load")]
    pub(crate) load: u32,
    pub(crate) phase: RecordedPhase,
    pub(crate) second: i64,
    pub(crate) subject: String,
    pub(crate) kind: ErrorKind,
    pub(crate) count: u64,
}

/// A row of `totals.csv`: counts that a histogram cannot hold, over a whole phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TotalRow {
    #[serde(default = "first_load")]
    pub(crate) load: u32,
    pub(crate) phase: RecordedPhase,
    pub(crate) subject: String,
    pub(crate) count: u64,
    pub(crate) failed: u64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) saturated: u64,
}

impl TotalRow {
    pub(crate) fn new(load: u32, phase: RecordedPhase, subject: &Subject) -> TotalRow {
        let subject = subject.to_string();
        TotalRow { load, phase, subject, count: 0, failed: 0, bytes_out: 0, bytes_in: 0, saturated: 0 }
    }

    pub(crate) fn add(&mut self, tally: &Tally) {
        self.count += tally.count();
        self.failed += tally.failed();
        self.bytes_out += tally.bytes_out;
        self.bytes_in += tally.bytes_in;
        self.saturated += tally.saturated;
    }
}

/// A row of `ticks.csv`: the iterations that ended in a tenth of a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TickRow {
    #[serde(default = "first_load")]
    pub(crate) load: u32,
    /// Counted from the start of the measure phase.
    pub(crate) tick: i64,
    pub(crate) iterations: u64,
    pub(crate) total: u64,
}

/// The rows of `ticks.csv` for a second: none for a tick in which nothing ended.
pub(crate) fn tick_rows(load: u32, interval: &Interval) -> impl Iterator<Item = TickRow> {
    let first = interval.second * TICKS as i64;
    (first..).zip(&interval.ticks).filter(|(_, ticked)| ticked.iterations > 0).map(move |(tick, ticked)| TickRow {
        load,
        tick,
        iterations: ticked.iterations,
        total: ticked.total,
    })
}

/// Formats a table.
pub(crate) fn to_csv<R: Serialize>(rows: &[R]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().for_each(|row| writer.serialize(row).expect("rows are flat, and memory takes them"));
    writer.into_inner().expect("memory takes everything")
}

/// Reads a table. The error says in words what is wrong.
pub(crate) fn read_csv<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>, String> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| error.to_string())?;
    reader.deserialize().collect::<Result<Vec<R>, _>>().map_err(|error| error.to_string())
}
