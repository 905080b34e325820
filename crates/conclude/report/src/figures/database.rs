//! The charts of databases: throughput by load, a panel for each setting; and the counters of one
//! trial's server, second by second.

use super::{axis_of, variants};
use crate::chart::{Axis, Figure, Line, Panel, Point, Style, position, share_axes};
use plimsoll_analysis::database::DatabaseReport;
use plimsoll_analysis::grid::Row;
use plimsoll_analysis::{Analysis, Input, samples, words};
use plimsoll_model::measure::Unit;
use plimsoll_model::result::TrialResult;

/// The throughput chart; none where the load is not SQL, or nothing was measured.
pub(crate) fn of_database(input: &Input, analysis: &Analysis, report: &DatabaseReport) -> Option<Figure> {
    let throughput = words::measure(&report.throughput);
    let panel = |row: &Row| {
        let style = if report.grid.is_numeric() { Style::Intervals } else { Style::Apart };
        let line = |variant: usize| Line { variant, style, points: points(analysis, report, row, variant) };
        let title = if row.label.is_empty() { throughput.clone() } else { row.label.clone() };
        let lines = (0..input.plan.variants.len()).map(line).collect();
        Panel::new(title, axis_of(&report.grid), report.throughput.unit(), lines)
    };
    let mut panels: Vec<Panel> = report.grid.rows.iter().filter(|_| report.is_sql).filter_map(panel).collect();
    share_axes(&mut panels);
    let of_axis = report.grid.axis.as_ref().map(|factor| format!(", by {factor}")).unwrap_or_default();
    (!panels.is_empty()).then(|| Figure {
        name: "database-throughput".to_owned(),
        title: format!("Throughput: {throughput}{of_axis}"),
        caption: format!(
            "Dots: geometric mean of the repeats, with its 95 % interval where there is one.{}",
            if panels.len() > 1 { " All panels have the same scale." } else { "" }
        ),
        variants: variants(input),
        panels,
    })
}

fn points(analysis: &Analysis, report: &DatabaseReport, row: &Row, variant: usize) -> Vec<Point> {
    let point = |(level, condition): &(usize, usize)| {
        let estimate = analysis.estimate(*condition, variant, &report.throughput)?;
        let ends = estimate.interval.iter().flat_map(|interval| [interval.low, interval.high]);
        Some(Point {
            x: position(&report.grid.levels, *level),
            centre: estimate.summary.as_ref().ok()?.centre,
            values: ends.collect(),
        })
    };
    row.places.iter().filter_map(point).collect()
}

/// The counters of one trial of each variant: the trial with the median throughput under the
/// condition that comes first.
pub(crate) fn over_one_trial(input: &Input, analysis: &Analysis, report: &DatabaseReport) -> Option<Figure> {
    let trials: Vec<(usize, TrialResult<'_>)> = (0..input.plan.variants.len())
        .filter_map(|variant| Some((variant, median_trial(input, analysis, report, variant)?)))
        // In turns, a variant is under load for a small part of the time shown.
        .filter(|(_, trial)| trial.load.slices.is_empty())
        .collect();
    let counters = [
        ("commits", "commits per second", Unit::PerSecond),
        ("log_syncs", "syncs of the log per second", Unit::PerSecond),
        ("log_bytes", "bytes to the log per second", Unit::BytesPerSecond),
        ("page_reads", "pages asked of the kernel per second", Unit::PerSecond),
        ("lock_waits", "sessions that wait for a lock", Unit::Count),
    ];
    let of_counter =
        |(counter, title, unit): (&str, &str, Unit)| panel(title, unit, &trials, |trial| counted(trial, counter));
    let cpu = panel("CPU of the databases, cores", Unit::Cores, &trials, cpu_of_databases);
    let panels: Vec<Panel> = counters.into_iter().filter_map(of_counter).chain(cpu).collect();
    let numbers: Vec<String> = trials.iter().map(|(_, trial)| trial.number().to_string()).collect();
    (!panels.is_empty()).then(|| Figure {
        name: "database-over-time".to_owned(),
        title: format!("What the server did, {}", words::condition_in(&input.plan, report.shown)),
        caption: format!(
            "One trial of each variant, that of the median throughput: {}. By the server's own account, and the kernel's.",
            numbers.join(", ")
        ),
        variants: variants(input),
        panels,
    })
}

fn median_trial<'a>(
    input: &'a Input,
    analysis: &Analysis,
    report: &DatabaseReport,
    variant: usize,
) -> Option<TrialResult<'a>> {
    let mut values = analysis.estimate(report.shown, variant, &report.throughput)?.values.clone();
    values.sort_by(|one, other| one.value.total_cmp(&other.value));
    let median = values.get(values.len().checked_sub(1)? / 2)?;
    input.trials().find(|trial| (trial.number(), trial.variant()) == (median.trial, variant))
}

/// A panel; none where all values are zero.
fn panel<'a>(
    title: &str,
    unit: Unit,
    trials: &[(usize, TrialResult<'a>)],
    of: impl Fn(TrialResult<'a>) -> Vec<(f64, f64)>,
) -> Option<Panel> {
    let line = |(variant, trial): &(usize, TrialResult<'a>)| {
        let window = trial.load.summary.timing.window.seconds();
        let inside = of(*trial).into_iter().filter(|(at, _)| *at > 0.0 && *at < window + 0.05);
        let points = inside.map(|(x, value)| Point { x, centre: value, values: vec![value] });
        Line { variant: *variant, style: Style::Band, points: points.collect() }
    };
    let lines: Vec<Line> = trials.iter().map(line).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|point| point.x).fold(1.0, f64::max);
    let something = points().any(|point| point.centre > 0.0);
    if something { Panel::new(title.to_owned(), Axis::of_seconds(0.0, last), unit, lines) } else { None }
}

/// The sum over all databases, where there are several.
fn counted(trial: TrialResult<'_>, counter: &str) -> Vec<(f64, f64)> {
    let mut seconds: Vec<(f64, f64)> = Vec::new();
    for (at, sample) in samples::databases(trial).filter(|(_, sample)| sample.counter == counter) {
        match seconds.iter_mut().find(|(known, _)| (known - at).abs() < 0.5) {
            Some((_, value)) if trial.databases().len() > 1 => *value += sample.value,
            _ => seconds.push((at, sample.value)),
        }
    }
    seconds
}

fn cpu_of_databases(trial: TrialResult<'_>) -> Vec<(f64, f64)> {
    let mut seconds: std::collections::BTreeMap<i64, f64> = std::collections::BTreeMap::new();
    for facts in trial.databases() {
        for (second, cores) in samples::by_second(trial, Some(&facts.name), |sample| sample.cpu_cores) {
            *seconds.entry(second).or_default() += cores;
        }
    }
    seconds.into_iter().map(|(second, cores)| ((second + 1) as f64, cores)).collect()
}
