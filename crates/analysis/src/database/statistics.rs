//! What databases, generator and machine counted over the measure phase: a mean for each trial, and
//! the mean and spread of those.

use super::distinct;
use crate::measure::{Reader, samples_by_second};
use plimsoll_model::measure::Unit;
use plimsoll_model::sample::{DATABASE_COUNTERS, HostSample, ProcessSample};
use plimsoll_statistics::{mean, standard_deviation};

/// Something that was counted, over the trials of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// Whose it is: a database, [`GENERATOR`] or [`HOST`].
    pub of: String,
    /// What is counted.
    pub name: String,
    /// Whether that is a server's own name, which means nothing on another.
    pub own: bool,
    /// What in.
    pub unit: Unit,
    /// Mean of the trials' means.
    pub mean: f64,
    /// Standard deviation of the trials' means; none for one trial.
    pub sd: Option<f64>,
    /// Trials that have it.
    pub n: usize,
}

pub(super) const GENERATOR: &str = "generator";
pub(super) const HOST: &str = "host";

/// Names of what is not counted but follows from counts, or from what the kernel says.
pub(super) const HIT_RATIO: &str = "hit ratio";
pub(super) const SYNCS_PER_COMMIT: &str = "log syncs per commit";
pub(super) const CPU: &str = "CPU";
pub(super) const IO_WAIT: &str = "waiting for IO";
pub(super) const READ: &str = "read from storage";
pub(super) const WRITTEN: &str = "written to storage";

/// A mean of one trial, before trials are put together.
struct Value {
    of: String,
    name: String,
    own: bool,
    unit: Unit,
    value: f64,
}

/// Everything that the trials counted, in a fixed order.
pub(super) fn statistics(readers: &[&Reader<'_>]) -> Vec<Statistic> {
    let all: Vec<Value> = readers.iter().flat_map(|reader| of_trial(reader)).collect();
    let places = distinct(all.iter().map(|one| (&one.of, &one.name, one.unit)));
    let statistic = |(of, name, unit): (&String, &String, Unit)| {
        let values: Vec<f64> =
            all.iter().filter(|one| (&one.of, &one.name) == (of, name)).map(|one| one.value).collect();
        let sd = standard_deviation(&values);
        let own = all.iter().any(|one| (&one.of, &one.name) == (of, name) && one.own);
        Some(Statistic { of: of.clone(), name: name.clone(), own, unit, mean: mean(&values)?, sd, n: values.len() })
    };
    places.into_iter().filter_map(statistic).collect()
}

fn of_trial(reader: &Reader<'_>) -> Vec<Value> {
    let databases = distinct(reader.result().summary.databases.iter().map(|facts| facts.name.as_str()));
    let of_databases = databases.into_iter().flat_map(|name| of_database(reader, name));
    of_databases.chain(of_machine(reader)).collect()
}

fn of_database(reader: &Reader<'_>, database: &str) -> Vec<Value> {
    let counter = |name: &str| counter(reader, database, name);
    let value = |name: &str, unit, value: Option<f64>| {
        Some(Value { of: database.to_owned(), name: name.to_owned(), own: false, unit, value: value? })
    };
    let ratio = |of: Option<f64>, to: Option<f64>| of.zip(to).filter(|(_, to)| *to > 0.0).map(|(of, to)| of / to);
    let mut values = Vec::new();
    for (name, unit, _) in DATABASE_COUNTERS {
        values.push(value(name, unit_of(unit), counter(name)));
        match name {
            "page_reads" => {
                let (hits, reads) = (counter("page_hits"), counter(name));
                let all = hits.zip(reads).map(|(hits, reads)| hits + reads);
                values.push(value(HIT_RATIO, Unit::Share, ratio(hits, all)));
            }
            "log_syncs" => values.push(value(SYNCS_PER_COMMIT, Unit::Count, ratio(counter(name), counter("commits")))),
            _ => {}
        }
    }
    for name in own_counters(reader, database) {
        let own = value(name, Unit::Count, counter(name));
        values.push(own.map(|own| Value { own: true, ..own }));
    }
    let process = |of: fn(&ProcessSample) -> f64| {
        let seconds = samples_by_second(reader.result(), Some(database), of);
        let counted = seconds.iter().filter(|(second, _)| reader.result().counts_second(**second));
        mean(&counted.map(|(_, value)| *value).collect::<Vec<_>>())
    };
    values.push(value(CPU, Unit::Cores, process(|sample| sample.cpu_cores)));
    values.push(value(READ, Unit::BytesPerSecond, process(|sample| sample.read_bytes as f64)));
    values.push(value(WRITTEN, Unit::BytesPerSecond, process(|sample| sample.written_bytes as f64)));
    values.into_iter().flatten().filter(|one| one.value.is_finite()).collect()
}

/// The mean of a counter over what counts of the measure phase. A sample tells of the second that
/// ends with it.
fn counter(reader: &Reader<'_>, database: &str, name: &str) -> Option<f64> {
    let counts = |at: f64| reader.result().counts_second((at - 0.5).floor() as i64);
    let samples = reader.result().databases.iter().filter(|sample| sample.database == database);
    let values: Vec<f64> =
        samples.filter(|sample| sample.counter == name && counts(sample.at)).map(|sample| sample.value).collect();
    mean(&values)
}

/// What a server counts by a name of its own.
fn own_counters<'a>(reader: &Reader<'a>, database: &str) -> Vec<&'a str> {
    let is_own = |name: &str| !DATABASE_COUNTERS.iter().any(|(known, ..)| *known == name);
    let samples = reader.result().databases.iter().filter(|sample| sample.database == database);
    let mut names = distinct(samples.map(|sample| sample.counter.as_str()).filter(|name| is_own(name)));
    names.sort_unstable();
    names
}

fn of_machine(reader: &Reader<'_>) -> Vec<Value> {
    let result = reader.result();
    let rows = result.generator.iter().filter(|row| result.counts_second(row.second));
    let generator: Vec<f64> = rows.map(|row| row.cpu_cores).collect();
    let host = |of: fn(&HostSample) -> f64| {
        let samples = result.host.iter().filter(|sample| result.counts_second((sample.at - 0.5).floor() as i64));
        mean(&samples.map(of).collect::<Vec<_>>())
    };
    [
        (GENERATOR, CPU, mean(&generator)),
        (HOST, CPU, host(|sample| sample.cpu_cores)),
        (HOST, IO_WAIT, host(|sample| sample.iowait_cores)),
    ]
    .into_iter()
    .filter_map(|(of, name, value)| {
        Some(Value { of: of.to_owned(), name: name.to_owned(), own: false, unit: Unit::Cores, value: value? })
    })
    .collect()
}

fn unit_of(unit: &str) -> Unit {
    match unit {
        "/s" => Unit::PerSecond,
        "B/s" => Unit::BytesPerSecond,
        _ => Unit::Count,
    }
}
