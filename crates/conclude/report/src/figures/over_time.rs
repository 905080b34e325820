//! Charts over the seconds of the measure phase: durations, requests, users, what the systems used, and what they say of
//! themselves.

use super::{titled, variants, with_names_of_their_own};
use crate::chart::{Axis, Figure, Line, Panel, Point, Style, share_axes};
use crate::text;
use plimsoll_analysis::exposed::{Came, Exposed};
use plimsoll_analysis::grid::{Grid, Row};
use plimsoll_analysis::{Input, decisions, estimate, samples, words};
use plimsoll_model::exposed::{ExposedSeries, MetricKind};
use plimsoll_model::measure::{Measure, Series, Statistic, Unit};
use plimsoll_model::record::Subject;
use plimsoll_model::result::{GeneratorRow, LoadResult, LoadSecond, TrialResult};
use plimsoll_model::words::and_list;
use plimsoll_model::workload::Protocol;
use std::collections::{BTreeMap, BTreeSet};

/// Charts of durations, at most: of the measures that decide, in their order.
const SERIES: usize = 3;

/// The meaning of lines and bands.
pub(super) const REPEATS: &str = "Lines: median over the repeats; bands: from the least to the largest repeat.";

/// The number of users over time, where it changes.
pub(crate) fn users_over_time(input: &Input) -> Vec<Figure> {
    let grid = Grid::new(&input.facts, &input.plan);
    with_names_of_their_own(grid.rows.iter().filter_map(|row| figure(input, &grid, row, &OverTime::Users)).collect())
}

/// The charts of each row of the grid. That of users is among them unless `without_users`, because it stands elsewhere.
pub(crate) fn over_time(input: &Input, without_users: bool) -> Vec<Figure> {
    // The loads of a search are short, and each has a level of its own.
    if input.plan.searches() {
        return Vec::new();
    }
    let grid = Grid::new(&input.facts, &input.plan);
    let others = [OverTime::Requests, OverTime::Users, OverTime::Sockets, OverTime::Cpu, OverTime::Memory];
    let others = others.into_iter().filter(|kind| !(without_users && matches!(kind, OverTime::Users)));
    let kinds: Vec<OverTime> = of_durations(input).into_iter().chain(others).chain(exposed(input)).collect();
    let of_row = |row| kinds.iter().filter_map(|kind| figure(input, &grid, row, kind)).collect::<Vec<Figure>>();
    with_names_of_their_own(grid.rows.iter().flat_map(of_row).collect())
}

/// The durations that decide.
pub(super) fn of_durations(input: &Input) -> Vec<OverTime> {
    let of = |series: Series| OverTime::Durations { has_percentiles: has_one_subject(&series, input), series };
    deciding_durations(input).into_iter().map(of).collect()
}

/// The series of durations that decide and are recorded second by second. Where there is none it is iterations; of a
/// script, which sleeps in its iterations, it is requests.
fn deciding_durations(input: &Input) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for series in decisions(&input.facts).into_iter().map(|decision| decision.measure.series) {
        let is_recorded = matches!(series, Series::IterationDuration | Series::RequestDuration(_));
        if is_recorded && !all.contains(&series) && all.len() < SERIES {
            all.push(series);
        }
    }
    let usual = match input.facts.protocol {
        Protocol::Script => Series::RequestDuration(None),
        _ => Series::IterationDuration,
    };
    if all.is_empty() { vec![usual] } else { all }
}

/// The metrics that systems expose and that are not split by a label, of which there may be hundreds.
pub(super) fn exposed(input: &Input) -> impl Iterator<Item = OverTime> {
    let mut kinds: BTreeMap<&str, MetricKind> = BTreeMap::new();
    for sample in input.trials().flat_map(|trial| &trial.start.metrics).filter(|sample| sample.label.is_empty()) {
        kinds.entry(&sample.series).or_insert(sample.kind);
    }
    kinds.into_iter().map(|(name, kind)| {
        let statistic = if kind == MetricKind::Counter { Statistic::Rate } else { Statistic::Avg };
        OverTime::Exposed { measure: input.noted(Measure::new(Series::Exposed(name.to_owned()), statistic)), kind }
    })
}

/// The subject of a chart.
pub(super) enum OverTime {
    /// The durations of a series: their percentiles, or their means where those are not known second by second.
    Durations { series: Series, has_percentiles: bool },
    /// Requests that ended, per second.
    Requests,
    /// Users at work, where their number changes.
    Users,
    /// The sockets that users hold open, where they hold any.
    Sockets,
    /// The CPU of the systems of the variant.
    Cpu,
    /// Their memory.
    Memory,
    /// A metric that they expose, with the statistic of each second.
    Exposed { measure: Measure, kind: MetricKind },
    /// A metric that is split by a label, over all values of it: the mean or a percentile of what came.
    All { series: ExposedSeries, statistic: Statistic },
}

impl OverTime {
    pub(super) fn unit(&self) -> Unit {
        match self {
            OverTime::Durations { .. } => Unit::Seconds,
            OverTime::Requests => Unit::PerSecond,
            OverTime::Users | OverTime::Sockets => Unit::Count,
            OverTime::Cpu => Unit::Cores,
            OverTime::Memory => Unit::Bytes,
            OverTime::Exposed { measure, .. } => measure.unit(),
            OverTime::All { series, .. } => series.noted().unit.unwrap_or(Unit::Count),
        }
    }

    /// The name of its file, and its title.
    pub(super) fn name_and_title(&self) -> (String, String) {
        match self {
            OverTime::Durations { series, .. } => {
                (format!("over-time-{series}"), format!("{} over time", words::series_at_start(series)))
            }
            OverTime::Requests => ("over-time-requests".to_owned(), "Requests per second over time".to_owned()),
            OverTime::Users => ("over-time-users".to_owned(), "Users over time".to_owned()),
            OverTime::Sockets => ("over-time-sockets".to_owned(), "Open WebSockets over time".to_owned()),
            OverTime::Cpu => ("over-time-cpu".to_owned(), "CPU of the system over time, cores".to_owned()),
            OverTime::Memory => ("over-time-memory".to_owned(), "Memory of the system over time".to_owned()),
            OverTime::Exposed { measure, .. } => {
                (format!("over-time-{}", measure.series), format!("{} over time", words::measure_at_start(measure)))
            }
            OverTime::All { series, statistic } => (
                format!("over-time-{}-{statistic}", series.name),
                format!("{}, {}", series.name, if *statistic == Statistic::Avg { "mean" } else { "99th percentile" }),
            ),
        }
    }

    /// The meaning of its lines and its values, where it is not that of all charts.
    pub(super) fn caption(&self, input: &Input) -> String {
        let systems = &input.facts.systems;
        match self {
            OverTime::Durations { has_percentiles: true, .. } => {
                "Solid: p95 of each second; dashed: median of each second. ".to_owned()
            }
            OverTime::Durations { .. } => "The mean of each second, over requests of all names. ".to_owned(),
            OverTime::Cpu | OverTime::Memory if systems.len() > 1 => format!("{} together. ", and_list(systems)),
            OverTime::Exposed { kind: MetricKind::Gauge, .. } => "As the systems say themselves. ".to_owned(),
            OverTime::Exposed { kind: MetricKind::Counter, .. } => {
                "What came in each second, as the systems say themselves. ".to_owned()
            }
            OverTime::Exposed { .. } => {
                "The mean of what came in each second, as the systems say themselves. ".to_owned()
            }
            OverTime::All { series, statistic } => {
                let labels = format!("Over all values of `{}`. ", series.by.as_deref().unwrap_or_default());
                match statistic {
                    Statistic::Avg => format!("{labels}The mean of what came in each second. "),
                    _ => format!(
                        "{labels}All repeats together, over times in which enough came; interpolated within its bucket. "
                    ),
                }
            }
            OverTime::Requests | OverTime::Users | OverTime::Sockets | OverTime::Cpu | OverTime::Memory => {
                String::new()
            }
        }
    }

    /// The lines of a variant: what its trials have in common.
    fn lines(&self, variant: usize, trials: &[TrialResult<'_>]) -> Vec<Line> {
        let line = |style, points| Line { variant, style, points };
        match self {
            OverTime::Durations { series, has_percentiles: true } => {
                let of = |value: fn(&LoadSecond) -> u64| by_second(trials, |trial| durations(trial, series, value));
                vec![line(Style::Band, of(|row| row.p95)), line(Style::Dashed, of(|row| row.p50))]
            }
            OverTime::Durations { series, .. } => {
                vec![line(Style::Band, by_second(trials, |trial| means(trial, series)))]
            }
            OverTime::Requests => vec![line(Style::Band, by_second(trials, requests))],
            OverTime::Users if !trials.iter().any(|trial| changes_its_users(*trial)) => Vec::new(),
            OverTime::Users => vec![line(Style::Band, by_second(trials, users))],
            OverTime::Sockets if !trials.iter().any(|trial| holds_sockets(*trial)) => Vec::new(),
            OverTime::Sockets => vec![line(Style::Band, by_second(trials, sockets))],
            OverTime::Cpu => {
                let cores = |trial| samples::by_second(trial, None, |one| one.cpu_cores);
                vec![line(Style::Band, by_second(trials, cores))]
            }
            OverTime::Memory => {
                let resident = |trial| samples::by_second(trial, None, |one| one.resident as f64);
                vec![line(Style::Band, by_second(trials, resident))]
            }
            OverTime::Exposed { measure, .. } => {
                let Series::Exposed(name) = &measure.series else { return Vec::new() };
                let of = |trial| Exposed::only(trial, name).by_second(name);
                vec![line(Style::Band, by_second(trials, of))]
            }
            OverTime::All { series, statistic: Statistic::Percentile(p) } => {
                vec![line(Style::Band, percentiles(trials, &series.name, *p))]
            }
            OverTime::All { series, .. } => {
                let means = |trial| {
                    let came = Exposed::only(trial, &series.name).came_by_second();
                    came.into_iter().filter_map(|(second, came)| Some((second, came.mean()?))).collect()
                };
                vec![line(Style::Band, by_second(trials, means))]
            }
        }
    }
}

/// Lengths over which percentiles are taken, in seconds: the first in which enough values come.
const SPANS: [i64; 8] = [1, 2, 5, 10, 30, 60, 120, 300];

/// The percentiles of what came in all trials together, over spans in which enough came. None where no span is long enough, or
/// a single one would be left.
fn percentiles(trials: &[TrialResult<'_>], series: &str, p: f64) -> Vec<Point> {
    let mut seconds: BTreeMap<i64, Came> = BTreeMap::new();
    for (second, came) in trials.iter().flat_map(|trial| Exposed::only(*trial, series).came_by_second()) {
        seconds.entry(second).or_default().add(came);
    }
    let Some(last) = seconds.keys().last() else { return Vec::new() };
    let over = |span: i64| {
        let mut spans: BTreeMap<i64, Came> = BTreeMap::new();
        // The last span, where it is cut short, is left out.
        for (second, came) in seconds.iter().filter(|(second, _)| **second / span < (last + 1) / span) {
            spans.entry(second / span).or_default().add(came.clone());
        }
        let value = |(place, came): (i64, Came)| {
            let centre = came.percentile(p)?;
            Some(Point { x: ((place + 1) * span) as f64, centre, values: vec![centre] })
        };
        let points: Option<Vec<Point>> = spans.into_iter().map(value).collect();
        points.filter(|points| points.len() > 1)
    };
    SPANS.into_iter().find_map(over).unwrap_or_default()
}

/// A panel for each level on the axis, over the seconds of the measure phase.
fn figure(input: &Input, grid: &Grid, row: &Row, kind: &OverTime) -> Option<Figure> {
    let places = row.places.iter();
    let mut panels: Vec<Panel> = places.filter_map(|place| panel(input, grid, *place, kind)).collect();
    if panels.is_empty() {
        return None;
    }
    share_axes(&mut panels);
    let (name, title) = kind.name_and_title();
    let what = kind.caption(input);
    let shaded = if panels.iter().any(|panel| panel.cut.is_some()) { " Shaded: left out, not steady yet." } else { "" };
    Some(Figure {
        name: text::slug(&format!("{name} {}", row.label)),
        title: titled(&title, row),
        caption: format!("{what}{REPEATS}{shaded}"),
        variants: variants(input),
        panels,
    })
}

pub(super) fn panel(input: &Input, grid: &Grid, (level, condition): (usize, usize), kind: &OverTime) -> Option<Panel> {
    let of_condition = || input.trials().filter(|trial| trial.condition() == condition);
    let of_variant = |variant: usize| {
        let counting = of_condition().filter(|trial| trial.variant() == variant && input.counts(*trial));
        kind.lines(variant, &counting.collect::<Vec<TrialResult<'_>>>())
    };
    let lines: Vec<Line> = (0..input.plan.variants.len()).flat_map(of_variant).collect();
    let last = lines.iter().flat_map(|line| &line.points).map(|point| point.x).fold(0.0, f64::max);
    let title = match &grid.axis {
        Some(factor) => words::of_factor(factor, &grid.levels[level]),
        None => format!("all {}s", words::unit(&input.plan)),
    };
    let cut = of_condition().map(|trial| trial.load.cut).max().filter(|cut| *cut > 0);
    let panel = Panel::new(title, Axis::of_seconds(0.0, last.max(1.0)), kind.unit(), lines)?;
    Some(Panel { cut: cut.map(|cut| cut as f64), ..panel })
}

/// The median over trials of what each has second by second.
fn by_second<'a>(trials: &[TrialResult<'a>], of: impl Fn(TrialResult<'a>) -> BTreeMap<i64, f64>) -> Vec<Point> {
    medians(trials.iter().map(|trial| (trial.load.span().seconds(), of(*trial))).collect())
}

/// The median over trials, each with its length in seconds, up to the end of the shortest: behind it ever fewer of them
/// would have a say. A second is drawn at its end.
fn medians(trials: Vec<(f64, BTreeMap<i64, f64>)>) -> Vec<Point> {
    let shortest = trials.iter().map(|(length, _)| *length).fold(f64::INFINITY, f64::min);
    let mut seconds: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (second, value) in trials.into_iter().flat_map(|(_, values)| values) {
        if (second as f64) < shortest {
            seconds.entry(second).or_default().push(value);
        }
    }
    let point = |(second, values): (i64, Vec<f64>)| {
        let centre = estimate::summarise(&values)?.median;
        Some(Point { x: (second + 1) as f64, centre, values })
    };
    seconds.into_iter().filter_map(point).collect()
}

/// True if the series is of one subject in all trials, so that its percentiles are known second by second.
fn has_one_subject(series: &Series, input: &Input) -> bool {
    let rows = input.trials().flat_map(measured).map(|(_, _, row)| row);
    let subjects: BTreeSet<&Subject> = rows.filter(|row| is_of(series, row)).map(|row| &row.subject).collect();
    subjects.len() <= 1
}

fn is_of(series: &Series, row: &LoadSecond) -> bool {
    match series {
        Series::RequestDuration(None) => row.subject.is_request(),
        Series::RequestDuration(Some(name)) => row.subject.is_request_named(name),
        _ => row.subject == Subject::Iteration,
    }
}

/// The rows of the measure phase, each with its second and the length that it covers, in seconds.
fn measured<'a>(trial: TrialResult<'a>) -> impl Iterator<Item = (i64, f64, &'a LoadSecond)> {
    let load = trial.load;
    load.seconds.iter().filter_map(move |row| {
        let (second, length) = place(load, row.second)?;
        Some((second, length, row))
    })
}

/// The second of a row with this number and the length that it covers, in seconds; none outside of the measure phase.
/// In turns a row is a slice, in the second of the load in which it began.
fn place(load: &LoadResult, row: i64) -> Option<(i64, f64)> {
    let timing = &load.summary.timing;
    match load.slices.get(usize::try_from(row).ok()?) {
        Some(slice) => Some((slice.zero.since(timing.zero).seconds() as i64, slice.length.seconds())),
        None if !load.slices.is_empty() => None,
        None => {
            let left = timing.window.seconds() - row as f64;
            (left > 0.0).then_some((row, left.min(1.0)))
        }
    }
}

/// A value of the durations of a series, in seconds.
fn durations(trial: TrialResult<'_>, series: &Series, value: fn(&LoadSecond) -> u64) -> BTreeMap<i64, f64> {
    let rows = measured(trial).filter(|(.., row)| is_of(series, row) && row.count > 0);
    rows.map(|(second, _, row)| (second, value(row) as f64 / 1e9)).collect()
}

/// The means of the durations of a series, over all its subjects, in seconds.
fn means(trial: TrialResult<'_>, series: &Series) -> BTreeMap<i64, f64> {
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (second, _, row) in measured(trial).filter(|(.., row)| is_of(series, row) && row.count > 0) {
        let (total, count) = sums.entry(second).or_default();
        *total += row.mean * row.count as f64;
        *count += row.count as f64;
    }
    sums.into_iter().map(|(second, (total, count))| (second, total / count / 1e9)).collect()
}

/// How many requests ended per second.
fn requests(trial: TrialResult<'_>) -> BTreeMap<i64, f64> {
    // By the row's own number first: two short slices may begin in one second, and each has its length once.
    let mut spans: BTreeMap<i64, (i64, f64, u64)> = nothing_ended(trial.load);
    for (second, length, row) in measured(trial) {
        let span = spans.entry(row.second).or_insert((second, length, 0));
        span.2 += if row.subject.is_request() { row.count } else { 0 };
    }
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (second, length, count) in spans.into_values() {
        let (lengths, ended) = sums.entry(second).or_default();
        *lengths += length;
        *ended += count as f64;
    }
    sums.into_iter().map(|(second, (lengths, ended))| (second, ended / lengths)).collect()
}

/// The seconds of the measure phase, or its slices, as if nothing had ended in them, by the numbers of their rows.
/// While a system stalls, a load has no rows; its generator has one for each second. None where results tell no seconds.
fn nothing_ended(load: &LoadResult) -> BTreeMap<i64, (i64, f64, u64)> {
    if load.seconds.is_empty() {
        return BTreeMap::new();
    }
    // A last second that is cut short may be too short for anything to end in it.
    let is_whole = |length: f64| if load.slices.is_empty() { length >= 1.0 } else { length > 0.0 };
    let span = |row: &GeneratorRow| {
        let (second, length) = place(load, row.second).filter(|(_, length)| is_whole(*length))?;
        Some((row.second, (second, length, 0)))
    };
    load.generator.iter().filter_map(span).collect()
}

/// Users at work at the end of each second.
fn users(trial: TrialResult<'_>) -> BTreeMap<i64, f64> {
    let window = trial.load.summary.timing.window.seconds();
    // A load that a control loop has ended is without users at the end of its last second.
    let end = if trial.load.summary.feedback.is_some() { window.floor() } else { window };
    let is_measured = |row: &&GeneratorRow| row.second >= 0 && (row.second as f64) < end;
    trial.load.generator.iter().filter(is_measured).map(|row| (row.second, row.users as f64)).collect()
}

fn holds_sockets(trial: TrialResult<'_>) -> bool {
    trial.load.generator.iter().any(|row| row.sockets > 0)
}

/// Sockets that users hold open at the end of each second; in turns at the end of each slice.
fn sockets(trial: TrialResult<'_>) -> BTreeMap<i64, f64> {
    let load = trial.load;
    let timing = &load.summary.timing;
    let second = |row: &GeneratorRow| match load.slices.get(usize::try_from(row.second).ok()?) {
        Some(slice) => Some(slice.zero.since(timing.zero).seconds() as i64),
        None => (load.slices.is_empty() && (row.second as f64) < timing.window.seconds()).then_some(row.second),
    };
    load.generator
        .iter()
        .filter_map(|row| Some((second(row).filter(|second| *second >= 0)?, row.sockets as f64)))
        .collect()
}

/// True if the number of users is not the same in all whole seconds. In turns it is.
fn changes_its_users(trial: TrialResult<'_>) -> bool {
    let users: Vec<f64> = users(trial).into_values().collect();
    // At the end of the last second users have ended.
    let whole = &users[..users.len().saturating_sub(1)];
    trial.load.slices.is_empty() && whole.windows(2).any(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_the_shortest_trial() {
        let trial = |length: f64, values: &[f64]| (length, (0..).zip(values.iter().copied()).collect());
        let points = medians(vec![
            trial(4.0, &[1.0, 1.0, 1.0, 9.0]),
            trial(2.5, &[2.0, 3.0, 3.0]),
            trial(4.0, &[3.0, 5.0, 7.0, 9.0]),
        ]);
        let drawn: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.centre)).collect();
        assert_eq!(drawn, [(1.0, 2.0), (2.0, 3.0), (3.0, 3.0)]);
        assert_eq!(points[2].values, [1.0, 3.0, 7.0]);
        assert!(medians(Vec::new()).is_empty());
    }
}
