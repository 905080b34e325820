//! Writes one start with its loads, second by second, with bounded memory.

use crate::error::BundleError;
use crate::files::{self, partial_folder};
use crate::interval_log::IntervalLog;
use crate::note::Note;
use crate::tables::{ErrorRow, TotalRow, tick_rows, to_csv};
use plimsoll_model::event::{Event, Second};
use plimsoll_model::record::{Interval, RecordedPhase, Subject, Tally};
use plimsoll_model::result::FinishedStart;
use plimsoll_model::sample::Samples;
use plimsoll_model::start::Start;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A start that is being written. If it is dropped without being sealed, its folder stays; readers report it as
/// unfinished, and a resumed run removes it.
pub(crate) struct StartWriter {
    folder: PathBuf,
    number: u32,
    load: csv::Writer<File>,
    errors: csv::Writer<File>,
    ticks: csv::Writer<File>,
    generator: csv::Writer<File>,
    processes: csv::Writer<File>,
    host: csv::Writer<File>,
    databases: csv::Writer<File>,
    waits: csv::Writer<File>,
    metrics: csv::Writer<File>,
    logs: Option<Logs>,
    totals: BTreeMap<(u32, RecordedPhase, Subject), TotalRow>,
}

/// The interval logs. They begin with the first interval of the first load.
struct Logs {
    measure: IntervalLog<BufWriter<File>>,
    warmup: IntervalLog<BufWriter<File>>,
    /// The second on the clock of the start that the logs count from.
    first_second: i64,
}

impl fmt::Debug for StartWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartWriter").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl StartWriter {
    pub(crate) fn begin(bundle: &Path, start: &Start) -> Result<StartWriter, BundleError> {
        let folder = partial_folder(bundle, start.number);
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
            processes: table(files::PROCESSES)?,
            host: table(files::HOST_SERIES)?,
            databases: table(files::DATABASES)?,
            waits: table(files::WAITS)?,
            metrics: table(files::METRICS)?,
            logs: None,
            totals: BTreeMap::new(),
            number: start.number,
            folder,
        })
    }

    /// The number of the start.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The note of where a load keeps objects. It exists while the start is under way.
    fn objects_note(&self) -> Note {
        Note::at(self.folder.join(files::OBJECTS))
    }

    /// Writes the data of an event about this start.
    pub(crate) fn on_event(&mut self, event: &Event) -> Result<(), BundleError> {
        match event {
            Event::SecondPassed(second) => self.second(second),
            Event::Sampled { samples, .. } => self.samples(samples),
            Event::ConsoleWritten { load, lines, .. } => self.console(*load, lines),
            Event::ObjectsPlaced { place, .. } => self.objects_note().write(place),
            Event::LoadFinished { .. } => self.objects_note().remove(),
            _ => Ok(()),
        }
    }

    /// Adds lines that scripts wrote to their console during the load of this number.
    ///
    /// # Errors
    /// The disk does not accept them.
    fn console(&self, load: u32, lines: &str) -> Result<(), BundleError> {
        let name = if load == 1 { "console.log".to_owned() } else { format!("console-{load}.log") };
        let path = self.folder.join(name);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        file.and_then(|mut file| file.write_all(lines.as_bytes())).map_err(BundleError::io("write to", &path))
    }

    /// Adds a second of the load under way. Seconds come in order.
    ///
    /// # Errors
    /// The disk does not accept it.
    fn second(&mut self, second: &Second) -> Result<(), BundleError> {
        self.write_second(second).map_err(BundleError::io("write to", &self.folder))?;
        self.samples(&second.samples)
    }

    /// Adds samples, which come in order of time for each table.
    ///
    /// # Errors
    /// The disk does not accept them.
    fn samples(&mut self, samples: &Samples) -> Result<(), BundleError> {
        let mut write = || -> csv::Result<()> {
            samples.processes.iter().try_for_each(|sample| self.processes.serialize(sample))?;
            samples.host.iter().try_for_each(|sample| self.host.serialize(sample))?;
            samples.databases.iter().try_for_each(|sample| self.databases.serialize(sample))?;
            samples.waits.iter().try_for_each(|sample| self.waits.serialize(sample))?;
            samples.metrics.iter().try_for_each(|sample| self.metrics.serialize(sample))
        };
        write().map_err(io::Error::from).map_err(BundleError::io("write to", &self.folder))
    }

    fn write_second(&mut self, second: &Second) -> io::Result<()> {
        let (load, interval) = (second.load, &second.recorded);
        if self.logs.is_none() {
            self.logs = Some(Logs::begin(&self.folder, interval)?);
        }
        let logs = self.logs.as_mut().expect("they have just begun");
        for ((phase, subject), tally) in &interval.tallies {
            logs.write(second, *phase, subject, tally)?;
            let key = (load, *phase, subject.clone());
            self.totals.entry(key).or_insert_with(|| TotalRow::new(load, *phase, subject)).add(tally);
            for (kind, count) in &tally.errors {
                let subject = subject.to_string();
                let row =
                    ErrorRow { load, phase: *phase, second: interval.second, subject, kind: *kind, count: *count };
                self.errors.serialize(row)?;
            }
        }
        second.ended.iter().try_for_each(|row| self.load.serialize(row))?;
        tick_rows(load, interval).try_for_each(|row| self.ticks.serialize(row))?;
        self.generator.serialize(&second.generator)?;
        Ok(())
    }

    /// Writes the remaining files. Returns the folder, whose files must still be synced.
    pub(crate) fn finish(self, finished: &FinishedStart) -> Result<PathBuf, BundleError> {
        let StartWriter { folder, logs, totals, .. } = self;
        let logs = match logs {
            Some(logs) => logs,
            // A start without load has empty logs.
            None => Logs::begin(&folder, &Interval::default()).map_err(BundleError::io("write to", &folder))?,
        };
        let end = || -> io::Result<()> {
            let of_load = [self.load, self.errors, self.ticks, self.generator];
            let of_samples = [self.processes, self.host, self.databases, self.waits, self.metrics];
            for table in of_load.into_iter().chain(of_samples) {
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
        files::write_json(&folder.join(files::SUMMARY), finished)?;
        Ok(folder)
    }
}

fn write_table<R: Serialize>(folder: &Path, name: &str, rows: &[R]) -> Result<(), BundleError> {
    files::write(&folder.join(name), &to_csv(rows))
}

impl Logs {
    fn begin(folder: &Path, first: &Interval) -> io::Result<Logs> {
        let base = SystemTime::now() - Duration::from(first.length);
        let log = |name: &str| IntervalLog::begin(BufWriter::new(File::create(folder.join(name))?), base);
        Ok(Logs { measure: log(files::MEASURE_LOG)?, warmup: log(files::WARMUP_LOG)?, first_second: first.second })
    }

    fn write(&mut self, second: &Second, phase: RecordedPhase, subject: &Subject, tally: &Tally) -> io::Result<()> {
        let log = match phase {
            RecordedPhase::Measure => &mut self.measure,
            RecordedPhase::Warmup => &mut self.warmup,
        };
        let start = second.zero.0 as f64 / 1e9 + (second.second - self.first_second) as f64;
        log.write(second.load, subject, tally, start, second.recorded.length.seconds())
    }
}
