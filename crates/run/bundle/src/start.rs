//! Writes one start with its loads, second by second, with bounded memory.

use crate::conceal;
use crate::error::BundleError;
use crate::files::{self, partial_folder, plain};
use crate::interval_log::IntervalLog;
use crate::note::Note;
use crate::tables::{ErrorRow, TotalRow, generator_row, load_second, tick_rows, to_csv};
use plimsoll_model::record::{Interval, RecordedPhase, Subject, Tally};
use plimsoll_model::result::FinishedStart;
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample};
use plimsoll_model::start::Start;
use plimsoll_model::units::Instant;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A start that is being written. Dropped without being sealed, it leaves a folder that readers
/// name as unfinished and a resumed run removes.
pub struct StartWriter {
    folder: PathBuf,
    number: u32,
    /// Where an attempt that was broken off kept its objects.
    left_at: Option<String>,
    load: csv::Writer<File>,
    errors: csv::Writer<File>,
    ticks: csv::Writer<File>,
    generator: csv::Writer<File>,
    logs: Option<Logs>,
    totals: BTreeMap<(u32, RecordedPhase, Subject), TotalRow>,
    /// The number of the load under way.
    current: u32,
    /// The begin of its measure phase in seconds, on the clock of the start.
    zero: f64,
}

/// What was sampled on a start, about once a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Series<'a> {
    /// The processes of the systems.
    pub processes: &'a [ProcessSample],
    /// The machine.
    pub host: &'a [HostSample],
    /// What databases counted.
    pub databases: &'a [DatabaseSample],
}

/// The interval logs, which begin with the first interval of the first load.
struct Logs {
    measure: IntervalLog<BufWriter<File>>,
    warmup: IntervalLog<BufWriter<File>>,
    /// The second on the clock of the start that the logs count from.
    first_second: i64,
}

impl StartWriter {
    pub(crate) fn begin(bundle: &Path, start: &Start) -> Result<StartWriter, BundleError> {
        let folder = partial_folder(bundle, start.number);
        let left_at = Note::at(folder.join(files::OBJECTS)).read();
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(BundleError::io("remove the unfinished", &folder))?;
        }
        fs::create_dir_all(&folder).map_err(BundleError::io("make the folder", &folder))?;
        let table = |name: &str| {
            let path = folder.join(name);
            let file = File::create(&path).map_err(BundleError::io("create", &path))?;
            Ok(csv::Writer::from_writer(file))
        };
        Ok(StartWriter {
            load: table(files::LOAD)?,
            errors: table(files::ERRORS)?,
            ticks: table(files::TICKS)?,
            generator: table(files::GENERATOR)?,
            logs: None,
            totals: BTreeMap::new(),
            current: 1,
            zero: 0.0,
            number: start.number,
            left_at,
            folder,
        })
    }

    /// The number of the start.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Where an attempt at this start that was broken off kept objects that nobody has removed.
    #[must_use]
    pub fn left_at(&self) -> Option<&str> {
        self.left_at.as_deref()
    }

    /// Takes note of where a load keeps objects, as long as the start is under way.
    #[must_use]
    pub fn objects_note(&self) -> Note {
        Note::at(self.folder.join(files::OBJECTS))
    }

    /// The file for what the system `name` writes.
    #[must_use]
    pub fn output_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("output-{}.log", plain(name)))
    }

    /// The file for what a script writes to its console during the load `number`.
    #[must_use]
    pub fn console_path(&self, number: u32) -> PathBuf {
        self.folder.join(if number == 1 { "console.log".to_owned() } else { format!("console-{number}.log") })
    }

    /// Writes asterisks over `secret` wherever the systems have written it. To be called
    /// when they have ended.
    ///
    /// # Errors
    /// Their output cannot be read or written.
    pub fn conceal(&self, secret: &str) -> Result<(), BundleError> {
        conceal::conceal_in_logs(&self.folder, secret)
    }

    /// Begins the load `number`, whose measure phase begins at `zero` on the clock of the start.
    pub fn begin_load(&mut self, number: u32, zero: Instant) {
        self.current = number;
        self.zero = zero.0 as f64 / 1e9;
    }

    /// Adds a second of the load under way. Seconds come in order.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), BundleError> {
        self.write_interval(interval).map_err(BundleError::io("write to", &self.folder))
    }

    fn write_interval(&mut self, interval: &Interval) -> io::Result<()> {
        if self.logs.is_none() {
            self.logs = Some(Logs::begin(&self.folder, interval)?);
        }
        let logs = self.logs.as_mut().expect("they have just begun");
        let (load, zero) = (self.current, self.zero);
        for ((phase, subject), tally) in &interval.tallies {
            logs.write(load, *phase, subject, tally, zero, interval)?;
            let key = (load, *phase, subject.clone());
            self.totals.entry(key).or_insert_with(|| TotalRow::new(load, *phase, subject)).add(tally);
            for (kind, count) in &tally.errors {
                let subject = subject.to_string();
                let row =
                    ErrorRow { load, phase: *phase, second: interval.second, subject, kind: *kind, count: *count };
                self.errors.serialize(row)?;
            }
        }
        for (subject, tally) in by_subject(interval) {
            self.load.serialize(load_second(load, interval.second, subject, &tally))?;
        }
        for row in tick_rows(load, interval) {
            self.ticks.serialize(row)?;
        }
        self.generator.serialize(generator_row(load, interval.second, interval.length, &interval.generator))?;
        Ok(())
    }

    /// Writes the rest. Returns the folder, whose files are yet to be synced.
    pub(crate) fn finish(self, finished: &FinishedStart, series: &Series<'_>) -> Result<PathBuf, BundleError> {
        let StartWriter { folder, load, errors, ticks, generator, logs, totals, .. } = self;
        let logs = match logs {
            Some(logs) => logs,
            // A start without load has empty logs.
            None => Logs::begin(&folder, &Interval::default()).map_err(BundleError::io("write to", &folder))?,
        };
        let end = || -> io::Result<()> {
            for table in [load, errors, ticks, generator] {
                table.into_inner().map_err(csv::IntoInnerError::into_error)?;
            }
            for log in [logs.measure, logs.warmup] {
                log.finish().into_inner().map_err(io::IntoInnerError::into_error)?;
            }
            Ok(())
        };
        end().map_err(BundleError::io("write to", &folder))?;
        let totals: Vec<TotalRow> = totals.into_values().collect();
        write_table(&folder, files::TOTALS, &totals)?;
        write_table(&folder, files::PROCESSES, series.processes)?;
        write_table(&folder, files::HOST_SERIES, series.host)?;
        write_table(&folder, files::DATABASES, series.databases)?;
        files::write_json(&folder.join(files::SUMMARY), finished)?;
        Ok(folder)
    }
}

fn write_table<R: Serialize>(folder: &Path, name: &str, rows: &[R]) -> Result<(), BundleError> {
    files::write(&folder.join(name), &to_csv(rows))
}

/// What ended in the interval for each subject, whatever phase scheduled it.
fn by_subject(interval: &Interval) -> BTreeMap<&Subject, Tally> {
    let mut tallies: BTreeMap<&Subject, Tally> = BTreeMap::new();
    for ((_, subject), tally) in &interval.tallies {
        tallies.entry(subject).or_default().merge(tally);
    }
    tallies
}

impl Logs {
    fn begin(folder: &Path, first: &Interval) -> io::Result<Logs> {
        let base = SystemTime::now() - Duration::from(first.length);
        let log = |name: &str| IntervalLog::begin(BufWriter::new(File::create(folder.join(name))?), base);
        Ok(Logs { measure: log(files::MEASURE_LOG)?, warmup: log(files::WARMUP_LOG)?, first_second: first.second })
    }

    fn write(
        &mut self,
        load: u32,
        phase: RecordedPhase,
        subject: &Subject,
        tally: &Tally,
        zero: f64,
        interval: &Interval,
    ) -> io::Result<()> {
        let log = match phase {
            RecordedPhase::Measure => &mut self.measure,
            RecordedPhase::Warmup => &mut self.warmup,
        };
        let start = zero + (interval.second - self.first_second) as f64;
        log.write(load, subject, tally, start, interval.length.seconds())
    }
}
