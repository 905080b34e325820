//! Counters of databases, other systems, generator and machine over the measure phase: a mean per trial, and the
//! mean and spread of those.

use crate::distinct::distinct;
use crate::input::Input;
use crate::measure::{TrialReader, share_of_time};
use crate::samples;
use plimsoll_model::measure::{self, Measure, Series, Unit};
use plimsoll_model::result::LoadResult;
use plimsoll_model::sample::{DATABASE_COUNTERS, HostSample, ProcessSample};
use plimsoll_statistics::{mean, standard_deviation};

/// A counter over the trials of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// Its source: a database or another system, [`GENERATOR`] or [`HOST`].
    pub of: String,
    /// Its name.
    pub name: String,
    /// True if the name is a server's own, which means nothing on another server.
    pub own_name: bool,
    /// Its unit.
    pub unit: Unit,
    /// Arithmetic mean of the trials' means, so that counters add up.
    pub mean: f64,
    /// Standard deviation of the trials' means; none for one trial.
    pub sd: Option<f64>,
    /// Number of trials that have it.
    pub n: usize,
}

/// How long after the measure phase its last sample may be taken, in seconds.
const MAX_LATENESS: f64 = 0.05;

pub(super) const GENERATOR: &str = "generator";
pub(super) const HOST: &str = "host";

/// Names of derived values, and of values from the kernel.
pub(super) const HIT_RATIO: &str = "hit ratio";
pub(super) const SYNCS_PER_COMMIT: &str = "log syncs per commit";
pub(super) const CPU: &str = "CPU";
pub(super) const IO_WAIT: &str = "waiting for IO";
pub(super) const READ: &str = "read from storage";
/// The kernel counts what a process makes dirty in the page cache, by the folio: a write of 8 kB
/// into a folio of 128 kB counts as 128 kB. Less reaches the disk.
pub(super) const WRITTEN: &str = "made dirty in the page cache";
pub(super) const ITERATIONS: &str = "iterations";

/// A mean of one trial.
struct Value {
    of: String,
    name: String,
    own_name: bool,
    unit: Unit,
    value: f64,
}

/// All counters of the trials, in a fixed order.
pub(super) fn statistics(input: &Input, readers: &[&TrialReader<'_>]) -> Vec<Statistic> {
    let all: Vec<Value> = readers.iter().flat_map(|reader| of_trial(input, reader)).collect();
    let places = distinct(all.iter().map(|one| (&one.of, &one.name, one.unit)));
    let statistic = |(of, name, unit): (&String, &String, Unit)| {
        let values: Vec<f64> =
            all.iter().filter(|one| (&one.of, &one.name) == (of, name)).map(|one| one.value).collect();
        let sd = standard_deviation(&values);
        let own_name = all.iter().any(|one| (&one.of, &one.name) == (of, name) && one.own_name);
        Some(Statistic {
            of: of.clone(),
            name: name.clone(),
            own_name,
            unit,
            mean: mean(&values)?,
            sd,
            n: values.len(),
        })
    };
    places.into_iter().filter_map(statistic).collect()
}

fn of_trial(input: &Input, reader: &TrialReader<'_>) -> Vec<Value> {
    let databases = distinct(reader.trial().databases().iter().map(|facts| facts.name.as_str()));
    let others = input.facts.systems.iter().map(String::as_str).filter(|name| !databases.contains(name));
    let of_others: Vec<Value> = others.filter_map(|name| cpu_of(reader, name)).collect();
    let of_databases = databases.into_iter().flat_map(|name| of_database(reader, name));
    of_databases.chain(of_others).chain(of_machine(input, reader)).collect()
}

/// What a system used of the processors.
fn cpu_of(reader: &TrialReader<'_>, system: &str) -> Option<Value> {
    let value = process(reader, system, |sample| sample.cpu_cores).filter(|cores| cores.is_finite())?;
    Some(Value { of: system.to_owned(), name: CPU.to_owned(), own_name: false, unit: Unit::Cores, value })
}

/// The mean of what is sampled of a system over the seconds that count: in turns, of those in which it was under load.
fn process(reader: &TrialReader<'_>, system: &str, of: fn(&ProcessSample) -> f64) -> Option<f64> {
    let seconds = samples::by_second(reader.trial(), Some(system), of);
    let counted = seconds.iter().filter(|(second, _)| reader.load().counts_second(**second));
    let mean = mean(&counted.map(|(_, value)| *value).collect::<Vec<_>>())?;
    Some(mean / share_of_time(reader.trial()))
}

fn of_database(reader: &TrialReader<'_>, database: &str) -> Vec<Value> {
    let counter = |name: &str| counter(reader, database, name);
    let value = |name: &str, unit, value: Option<f64>| {
        Some(Value { of: database.to_owned(), name: name.to_owned(), own_name: false, unit, value: value? })
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
        let own_name = value(name, Unit::Count, counter(name));
        values.push(own_name.map(|own_name| Value { own_name: true, ..own_name }));
    }
    let process = |of| process(reader, database, of);
    values.push(value(CPU, Unit::Cores, process(|sample| sample.cpu_cores)));
    values.push(value(READ, Unit::BytesPerSecond, process(|sample| sample.read_bytes as f64)));
    values.push(value(WRITTEN, Unit::BytesPerSecond, process(|sample| sample.written_bytes as f64)));
    values.into_iter().flatten().filter(|one| one.value.is_finite()).collect()
}

/// The mean rate of a counter over the counted part of the measure phase: the total increase over
/// the total time. The span of a sample starts at the one before it, and the last one may be short.
/// In turns it is the mean of what was sampled in slices, or at their ends.
fn counter(reader: &TrialReader<'_>, database: &str, name: &str) -> Option<f64> {
    let samples = samples::databases(reader.trial());
    let samples = samples.filter(|(_, one)| one.database == database && one.counter == name);
    let mut samples: Vec<(f64, f64)> = samples.map(|(at, sample)| (at, sample.value)).collect();
    let slices = samples::slices(reader.trial());
    if !slices.is_empty() {
        samples.retain(|(at, _)| slices.iter().any(|slice| slice.start < *at && *at <= slice.end + MAX_LATENESS));
        return mean(&samples.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
    }
    samples.sort_by(|one, other| one.0.total_cmp(&other.0));
    let before = [None].into_iter().chain(samples.iter().map(|sample| Some(sample.0)));
    let spans =
        samples.iter().zip(before).map(|((at, value), before)| (*at, *value, before.map_or(1.0, |before| at - before)));
    let counted = spans.filter(|(at, ..)| tells_of_measure_phase(reader.load(), *at));
    let (amount, span) =
        counted.fold((0.0, 0.0), |(amount, all), (_, value, span)| (amount + value * span, all + span));
    (span > 0.0).then(|| amount / span)
}

/// True if the sample at this instant covers seconds that count. A sample that ends after the
/// measure phase does not: some servers report the counts of a session only when it ends.
fn tells_of_measure_phase(load: &LoadResult, at: f64) -> bool {
    at <= load.summary.timing.window.seconds() + MAX_LATENESS && load.counts_second((at - 0.5).floor() as i64)
}

/// The names of counters that only this server has.
fn own_counters<'a>(reader: &TrialReader<'a>, database: &str) -> Vec<&'a str> {
    let is_own = |name: &str| !DATABASE_COUNTERS.iter().any(|(known, ..)| *known == name);
    let samples = samples::databases(reader.trial()).filter(|(_, sample)| sample.database == database);
    let mut names = distinct(samples.map(|(_, sample)| sample.counter.as_str()).filter(|name| is_own(name)));
    names.sort_unstable();
    names
}

fn of_machine(input: &Input, reader: &TrialReader<'_>) -> Vec<Value> {
    let load = reader.load();
    let rows = load.generator.iter().filter(|row| load.counts_second(row.second));
    let generator: Vec<f64> = rows.map(|row| row.cpu_cores).collect();
    // In turns a second of the machine is that of several variants.
    let host = |of: fn(&HostSample) -> f64| {
        let samples = samples::host(reader.trial());
        let samples = samples.filter(|(at, _)| load.slices.is_empty() && tells_of_measure_phase(load, *at));
        mean(&samples.map(|(_, sample)| of(sample)).collect::<Vec<_>>())
    };
    let iterations = reader.value(&Measure::new(Series::Iterations, measure::Statistic::Rate)).ok();
    [
        (GENERATOR, ITERATIONS, Unit::PerSecond, iterations),
        (GENERATOR, CPU, Unit::Cores, mean(&generator).filter(|_| input.is_measured())),
        (HOST, CPU, Unit::Cores, host(|sample| sample.cpu_cores)),
        (HOST, IO_WAIT, Unit::Cores, host(|sample| sample.iowait_cores)),
    ]
    .into_iter()
    .filter_map(|(of, name, unit, value)| {
        Some(Value { of: of.to_owned(), name: name.to_owned(), own_name: false, unit, value: value? })
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
