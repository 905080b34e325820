//! The tables of a trial: rows of CSV files, read and written by name of column.

use plimsoll_model::record::{ErrorKind, GeneratorSecond, Interval, RecordedPhase, Subject, TICKS, Tally};
use plimsoll_model::result::{GeneratorRow, LoadSecond};
use plimsoll_model::units::Nanos;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A row of `errors.csv`: how many errors of a kind ended in a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorRow {
    pub(crate) phase: RecordedPhase,
    pub(crate) second: i64,
    pub(crate) subject: String,
    pub(crate) kind: ErrorKind,
    pub(crate) count: u64,
}

/// A row of `totals.csv`: what a histogram cannot hold, over a whole phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TotalRow {
    pub(crate) phase: RecordedPhase,
    pub(crate) subject: String,
    pub(crate) count: u64,
    pub(crate) failed: u64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) saturated: u64,
}

impl TotalRow {
    pub(crate) fn new(phase: RecordedPhase, subject: &Subject) -> TotalRow {
        let subject = subject.to_string();
        TotalRow { phase, subject, count: 0, failed: 0, bytes_out: 0, bytes_in: 0, saturated: 0 }
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
    /// Counted from the start of the measure phase.
    pub(crate) tick: i64,
    pub(crate) iterations: u64,
    pub(crate) total: u64,
}

/// The rows of `ticks.csv` for a second: none for a tick in which nothing ended.
pub(crate) fn tick_rows(interval: &Interval) -> impl Iterator<Item = TickRow> {
    let first = interval.second * TICKS as i64;
    (first..).zip(&interval.ticks).filter(|(_, ticked)| ticked.iterations > 0).map(|(tick, ticked)| TickRow {
        tick,
        iterations: ticked.iterations,
        total: ticked.total,
    })
}

/// The row of `load.csv` for what ended in a second.
pub(crate) fn load_second(second: i64, subject: &Subject, tally: &Tally) -> LoadSecond {
    let at = |quantile| tally.service.value_at_quantile(quantile);
    LoadSecond {
        second,
        subject: subject.clone(),
        count: tally.count(),
        failed: tally.failed(),
        bytes_out: tally.bytes_out,
        bytes_in: tally.bytes_in,
        mean: tally.service.mean(),
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        max: tally.service.max(),
        response_p95: tally.response.value_at_quantile(0.95),
    }
}

/// The row of `generator.csv` for a second of this length.
pub(crate) fn generator_row(second: i64, length: Nanos, generator: &GeneratorSecond) -> GeneratorRow {
    let cores = |cpu: Nanos| if length.0 == 0 { 0.0 } else { cpu.seconds() / length.seconds() };
    GeneratorRow {
        second,
        cpu_cores: cores(generator.cpu),
        cpu_busiest: cores(generator.cpu_busiest),
        users: generator.users,
        in_flight: generator.in_flight,
        backlog: generator.backlog,
        lateness_p99: generator.lateness.value_at_quantile(0.99),
        lateness_max: generator.lateness.max(),
        stall: generator.stall.0,
    }
}

/// The text of a table.
pub(crate) fn to_csv<R: Serialize>(rows: &[R]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().for_each(|row| writer.serialize(row).expect("rows are flat, and memory takes them"));
    writer.into_inner().expect("memory takes everything")
}

/// Reads a table; what is wrong is told in words.
pub(crate) fn read_csv<R: DeserializeOwned>(path: &Path) -> Result<Vec<R>, String> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| error.to_string())?;
    reader.deserialize().collect::<Result<Vec<R>, _>>().map_err(|error| error.to_string())
}
