//! Telemetry on the clock of one load: the samples of its start, relative to its measure phase.

use crate::input::Input;
use plimsoll_model::exposed::MetricSample;
use plimsoll_model::host::{LOCAL, is_local};
use plimsoll_model::result::{LoadSummary, RungResult, Slice, TrialResult};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample, is_part_of};
use plimsoll_model::start::RungPart;
use plimsoll_statistics::mean;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The samples of the processes of the variant under load. Each comes with the end of its span, in
/// seconds from the start of the load's measure phase.
pub fn processes<'a>(trial: TrialResult<'a>) -> impl Iterator<Item = (f64, &'a ProcessSample)> {
    of_all_variants(trial).filter(move |(_, sample)| sample.variant == trial.variant())
}

/// The samples of the processes of all variants that were alive on the start.
fn of_all_variants<'a>(trial: TrialResult<'a>) -> impl Iterator<Item = (f64, &'a ProcessSample)> {
    trial.start.processes.iter().map(move |sample| (sample.at - measure_phase_begin(trial), sample))
}

/// The samples of the machine that Plimsoll itself runs on, each with the end of its span as in [`processes`].
pub fn host<'a>(trial: TrialResult<'a>) -> impl Iterator<Item = (f64, &'a HostSample)> {
    let local = trial.start.host.iter().filter(|sample| is_local(&sample.machine));
    local.map(move |sample| (sample.at - measure_phase_begin(trial), sample))
}

/// The counters of the variant's databases, each with the end of its span as in [`processes`].
pub fn databases<'a>(trial: TrialResult<'a>) -> impl Iterator<Item = (f64, &'a DatabaseSample)> {
    let of_variant = trial.start.databases.iter().filter(move |sample| sample.variant == trial.variant());
    of_variant.map(move |sample| (sample.at - measure_phase_begin(trial), sample))
}

/// The answers of the variant's systems that expose metrics, each with its instant in seconds from the start of the load's
/// measure phase.
pub(crate) fn metrics<'a>(trial: TrialResult<'a>) -> impl Iterator<Item = (f64, &'a MetricSample)> {
    let of_variant = trial.start.metrics.iter().filter(move |sample| sample.variant == trial.variant());
    of_variant.map(move |sample| (sample.at - measure_phase_begin(trial), sample))
}

/// The names under which CPU and memory are told, where there are several: those of systems and of their instances and
/// services, and before parts that of all of them together. A system that is the only one has no line of its own before its
/// services.
#[must_use]
pub fn names_of_systems(input: &Input) -> Vec<String> {
    let sampled: BTreeSet<&str> =
        input.starts.iter().flat_map(|start| &start.processes).map(|sample| sample.system.as_str()).collect();
    let systems = input.facts.names_of_systems();
    let mut names = Vec::new();
    for system in &systems {
        let services: Vec<String> = sampled
            .iter()
            .filter(|name| name.split_once('/').is_some_and(|(of, _)| of == system))
            .map(|name| (*name).to_owned())
            .collect();
        if systems.len() > 1 || services.is_empty() {
            names.push(system.clone());
        }
        names.extend(services);
    }
    names
}

/// The beginning of the load's measure phase on the clock of its start, in seconds.
fn measure_phase_begin(trial: TrialResult<'_>) -> f64 {
    trial.load.summary.timing.zero.0 as f64 / 1e9
}

/// The value of `of` for each second of the measure phase: the sum over the variant's systems, or
/// `system` alone, or all of its instances and services.
#[must_use]
pub fn by_second(
    trial: TrialResult<'_>,
    system: Option<&str>,
    of: impl Fn(&ProcessSample) -> f64,
) -> BTreeMap<i64, f64> {
    // The name of a system with several instances or services is that of none of them.
    let is_one = |name: &str| processes(trial).any(|(_, sample)| sample.system == name);
    let named = system.map(|name| (name, is_one(name)));
    let is_meant = |sample: &ProcessSample| match named {
        None => true,
        Some((name, true)) => sample.system == name,
        Some((name, false)) => is_part_of(&sample.system, name),
    };
    sums(trial, processes(trial).filter(|(_, sample)| is_meant(sample)), of)
}

/// The same sum over the systems of all variants that were alive on the start.
pub(crate) fn of_all_systems(trial: TrialResult<'_>, of: impl Fn(&ProcessSample) -> f64) -> BTreeMap<i64, f64> {
    sums(trial, of_all_variants(trial), of)
}

/// Sums over systems, second by second.
///
/// A sample covers the second that ends with it, so its middle must lie in the window. If a system
/// has several samples in one second, the one nearest to the end of that second is used: a load
/// that ends between two seconds has a last sample close behind the one before.
fn sums<'a>(
    trial: TrialResult<'_>,
    samples: impl Iterator<Item = (f64, &'a ProcessSample)>,
    of: impl Fn(&ProcessSample) -> f64,
) -> BTreeMap<i64, f64> {
    let windows = windows(trial);
    let mut nearest: BTreeMap<(i64, usize, &str), (f64, &ProcessSample)> = BTreeMap::new();
    let is_measured = |middle: f64| windows.iter().any(|window| window.contains(&middle));
    for (at, sample) in samples.filter(|(at, _)| is_measured(at - 0.5)) {
        let second = (at - 0.5).floor() as i64;
        let from_end = (at - (second + 1) as f64).abs();
        let known = nearest.entry((second, sample.variant, &sample.system)).or_insert((from_end, sample));
        if from_end < known.0 {
            *known = (from_end, sample);
        }
    }
    let mut sums = BTreeMap::new();
    for ((second, ..), (_, sample)) in nearest {
        *sums.entry(second).or_default() += of(sample);
    }
    sums
}

/// When the load was measured, on its own clock: its measure phase, or of a search those of the loads near the capacity.
fn windows(trial: TrialResult<'_>) -> Vec<Range<f64>> {
    let ladder = |rung: &&RungResult| rung.rung.part == RungPart::Ladder && rung.summary.validity.counts();
    let of_rung = |rung: &RungResult| window_of(trial, &rung.summary);
    match trial.load.rungs.iter().filter(ladder).map(of_rung).collect::<Vec<_>>() {
        none if none.is_empty() => std::iter::once(0.0..trial.load.span().seconds()).collect(),
        windows => windows,
    }
}

/// The mean of `of` over the measure phase of one load of the variant on the start, summed over its systems; none without a
/// sample in it.
pub(crate) fn mean_during(
    trial: TrialResult<'_>,
    load: &LoadSummary,
    of: impl Fn(&ProcessSample) -> f64,
) -> Option<f64> {
    let means = systems_during(trial, load, |sample| Some(of(sample)));
    (!means.is_empty()).then(|| means.values().sum())
}

/// The same for each system alone.
pub(crate) fn systems_during<'a>(
    trial: TrialResult<'a>,
    load: &LoadSummary,
    of: impl Fn(&ProcessSample) -> Option<f64>,
) -> BTreeMap<&'a str, f64> {
    let window = window(load);
    let measured = trial.start.processes.iter().filter(|sample| sample.variant == trial.variant());
    let measured = measured.filter(|sample| window.contains(&(sample.at - 0.5)));
    means(measured.filter_map(|sample| Some((sample.system.as_str(), of(sample)?))))
}

/// The machine that all systems of the variant run on; that of Plimsoll itself where they run on several.
pub(crate) fn machine_of_systems<'a>(trial: TrialResult<'a>) -> &'a str {
    let mut machines = processes(trial).map(|(_, sample)| sample.machine.as_str());
    let first = machines.next().unwrap_or(LOCAL);
    if machines.all(|machine| machine == first) { first } else { LOCAL }
}

/// True if two names are those of one machine.
pub(crate) fn is_same_machine(one: &str, other: &str) -> bool {
    one == other || (is_local(one) && is_local(other))
}

/// The mean of what is sampled of a machine over the measure phase of one load.
pub(crate) fn host_during(
    trial: TrialResult<'_>,
    load: &LoadSummary,
    machine: &str,
    of: impl Fn(&HostSample) -> Option<f64>,
) -> Option<f64> {
    let window = window(load);
    let of_machine = trial.start.host.iter().filter(|sample| is_same_machine(&sample.machine, machine));
    let measured = of_machine.filter(|sample| window.contains(&(sample.at - 0.5)));
    mean(&measured.filter_map(of).collect::<Vec<f64>>())
}

/// The mean of a counter over the measure phase of one load, by database of the variant.
pub(crate) fn databases_during<'a>(
    trial: TrialResult<'a>,
    load: &LoadSummary,
    counter: &str,
) -> BTreeMap<&'a str, f64> {
    let window = window(load);
    let of_variant = trial.start.databases.iter().filter(|sample| sample.variant == trial.variant());
    let measured = of_variant.filter(|sample| sample.counter == counter && window.contains(&(sample.at - 0.5)));
    means(measured.map(|sample| (sample.database.as_str(), sample.value)))
}

/// Lines that said that something waited, per second of the measure phase of one load: by system of the variant, and by what
/// it waited for.
pub(crate) fn waits_during<'a>(trial: TrialResult<'a>, load: &LoadSummary) -> BTreeMap<(&'a str, &'a str), f64> {
    let window = window(load);
    let of_variant = trial.start.waits.iter().filter(|sample| sample.variant == trial.variant());
    let mut lines: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for sample in of_variant.filter(|sample| window.contains(&(sample.at - 0.5))) {
        *lines.entry((&sample.system, &sample.wait)).or_default() += sample.lines as f64;
    }
    let seconds = load.timing.window.seconds();
    lines.retain(|_, lines| {
        *lines /= seconds;
        lines.is_finite()
    });
    lines
}

/// When a load was measured, on the clock of its start.
fn window(load: &LoadSummary) -> Range<f64> {
    let begin = load.timing.zero.0 as f64 / 1e9;
    begin..begin + load.timing.window.seconds()
}

/// When one load of a search was measured, on the clock of the trial.
pub(crate) fn window_of(trial: TrialResult<'_>, load: &LoadSummary) -> Range<f64> {
    let Range { start, end } = window(load);
    let begin = measure_phase_begin(trial);
    start - begin..end - begin
}

/// When the load was measured and counts, on its own clock: from the cut on, or of a search as a whole.
pub(crate) fn counted_windows(trial: TrialResult<'_>) -> Vec<Range<f64>> {
    let is_whole = !trial.load.rungs.is_empty() || !trial.load.slices.is_empty();
    let cut = if is_whole { 0.0 } else { trial.load.cut as f64 };
    windows(trial).into_iter().map(|window| window.start + cut..window.end).collect()
}

/// The slices of the variant on the clock of its load; none where variants do not take turns.
pub(crate) fn slices(trial: TrialResult<'_>) -> Vec<Range<f64>> {
    let zero = trial.load.summary.timing.zero;
    let span = |slice: &Slice| {
        let begin = slice.zero.since(zero).seconds();
        begin..begin + slice.length.seconds()
    };
    trial.load.slices.iter().map(span).collect()
}

fn means<'a>(values: impl Iterator<Item = (&'a str, f64)>) -> BTreeMap<&'a str, f64> {
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    values.for_each(|(name, value)| by_name.entry(name).or_default().push(value));
    by_name.into_iter().filter_map(|(name, values)| Some((name, mean(&values)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{input, only_trial, start, two_variants_on_one_start};
    use plimsoll_model::measure::Measure;

    fn sample(at: f64, system: &str, cpu_cores: f64) -> ProcessSample {
        ProcessSample { at, system: system.to_owned(), cpu_cores, ..ProcessSample::default() }
    }

    #[test]
    fn a_sample_tells_of_the_second_that_ends_with_it() {
        let mut start = start(1.0); // a window of 2 s
        start.processes = vec![sample(0.4, "web", 8.0), sample(1.02, "web", 1.0), sample(1.1, "web", 9.0)];
        start.processes.extend([sample(2.01, "web", 2.0), sample(2.0, "db", 4.0), sample(2.9, "web", 8.0)]);
        let trial = only_trial(&start);
        assert_eq!(by_second(trial, None, |one| one.cpu_cores), BTreeMap::from([(0, 1.0), (1, 6.0)]));
        assert_eq!(by_second(trial, Some("db"), |one| one.cpu_cores), BTreeMap::from([(1, 4.0)]));
    }

    #[test]
    fn services_are_told_after_their_system_and_add_up_to_it() {
        let mut start = start(1.0);
        start.processes = vec![sample(1.0, "web/app", 1.0), sample(1.0, "web/db", 2.0)];
        assert_eq!(by_second(only_trial(&start), Some("web"), |one| one.cpu_cores), BTreeMap::from([(0, 3.0)]));
        assert_eq!(by_second(only_trial(&start), Some("web/db"), |one| one.cpu_cores), BTreeMap::from([(0, 2.0)]));
        let mut input = input(1, |_| start.clone());
        assert_eq!(names_of_systems(&input), ["web/app", "web/db"]);
        input.facts.systems.push("cache".to_owned());
        assert_eq!(names_of_systems(&input), ["web", "web/app", "web/db", "cache"]);
        input.starts.clear();
        assert_eq!(names_of_systems(&input), ["web", "cache"]);
    }

    #[test]
    fn a_load_sees_samples_of_its_variant_on_its_own_clock() {
        let mut start = two_variants_on_one_start(10);
        for at in [1.0, 2.0, 11.0, 12.0] {
            for (variant, cores) in [(0, 0.25), (1, 0.5)] {
                start.processes.push(ProcessSample { variant, ..sample(at, "web", cores + at) });
            }
            start.host.push(HostSample { at, ..HostSample::default() });
            let counter = "commits".to_owned();
            start.databases.push(DatabaseSample { at, variant: 1, counter, value: at, ..DatabaseSample::default() });
        }
        let trials: Vec<TrialResult<'_>> = start.trials().collect();
        let cores = |trial| by_second(trial, None, |one| one.cpu_cores);
        assert_eq!(cores(trials[0]), BTreeMap::from([(0, 1.25), (1, 2.25)]));
        assert_eq!(cores(trials[1]), BTreeMap::from([(0, 11.5), (1, 12.5)]));
        assert_eq!(of_all_systems(trials[1], |one| one.cpu_cores), BTreeMap::from([(0, 22.75), (1, 24.75)]));
        assert_eq!(host(trials[1]).map(|(at, _)| at).collect::<Vec<f64>>(), [-9.0, -8.0, 1.0, 2.0]);
        assert_eq!((databases(trials[0]).count(), databases(trials[1]).count()), (0, 4));
        let peak: Measure = "cpu.max".parse().expect("a measure");
        assert_eq!(crate::measure::TrialReader::new(trials[0]).value(&peak), Ok(2.25));
    }
}
