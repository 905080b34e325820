//! The charts of a release under one condition, each with a single panel: over time, or where the capacity was searched for over
//! the loads.

use super::capacity::over_loads;
use super::over_time::{OverTime, REPEATS, exposed, of_durations, panel};
use super::variants;
use crate::chart::{Axis, Figure, Line, Panel, Point, Style};
use crate::text;
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport, LevelOfLoad};
use plimsoll_analysis::estimate::summarise;
use plimsoll_analysis::exposed::{Came, Exposed};
use plimsoll_analysis::grid::Grid;
use plimsoll_analysis::{Analysis, Input};
use plimsoll_model::exposed::ExposedSeries;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::result::{RungResult, TrialResult};

/// The statistics of a metric that is split by a label, over all values of it.
const OF_ALL_LABELS: [Statistic; 2] = [Statistic::Avg, Statistic::Percentile(99.0)];

/// Of the metrics that every process has, those that are shown.
const SHOWN: [&str; 3] = ["goroutines", "Go heap in use", "Go stacks in use"];

/// What comes of each metric that is split by a label, durations, CPU, requests, and what systems say of themselves.
pub(crate) fn of_release(input: &Input, analysis: &Analysis, condition: usize) -> Vec<Figure> {
    match &analysis.capacity {
        Some(report) => of_loads(input, report, condition),
        None => of_time(input, condition),
    }
}

/// The meaning of lines and dots in these charts, where a caption says nothing else.
pub(crate) fn marks_of_release(analysis: &Analysis) -> String {
    match &analysis.capacity {
        Some(report) => format!(
            "Each dot: the median of the loads of about that many {}, over all starts. Grey line: the limit of the objective; \
             dashed: the Universal Scalability Law that is nearest. There are no tables by change: each version was measured \
             around its own capacity, so under another load.",
            report.noun()
        ),
        None if analysis.feedback.is_some() => {
            format!("{REPEATS} There are no tables by change: each version had other numbers of users.")
        }
        None => REPEATS.to_owned(),
    }
}

/// The metrics that are split by a label.
pub(crate) fn split_series(input: &Input) -> Vec<ExposedSeries> {
    input.facts.metrics.iter().filter(|series| series.by.is_some()).cloned().collect()
}

fn of_time(input: &Input, condition: usize) -> Vec<Figure> {
    let others = of_durations(input).into_iter().chain([OverTime::Cpu, OverTime::Requests, OverTime::Sockets]);
    let by_control_loop = input.trials().any(|trial| trial.load.summary.feedback.is_some());
    let users = by_control_loop.then_some(OverTime::Users);
    let kinds = users.into_iter().chain(of_all_labels(input)).chain(others).chain(of_systems(input));
    let grid = Grid { axis: None, ..Grid::new(&input.facts, &input.plan) };
    let figure = |kind: OverTime| {
        let (name, title) = kind.name_and_title();
        let title = title.replace(" over time", "");
        let panel = Panel { title: String::new(), ..panel(input, &grid, (0, condition), &kind)? };
        Some(Figure {
            name: text::slug(name.trim_start_matches("over-time-")),
            title,
            caption: kind.caption(input).trim_end().to_owned(),
            variants: variants(input),
            panels: vec![panel],
        })
    };
    kinds.filter_map(figure).collect()
}

fn of_all_labels(input: &Input) -> impl Iterator<Item = OverTime> {
    split_series(input)
        .into_iter()
        .flat_map(|series| OF_ALL_LABELS.map(|statistic| OverTime::All { series: series.clone(), statistic }))
}

fn of_systems(input: &Input) -> impl Iterator<Item = OverTime> {
    exposed(input).filter(|kind| match kind {
        OverTime::Exposed { measure: Measure { series: Series::Exposed(name), .. }, .. } => {
            SHOWN.contains(&name.as_str()) || !ExposedSeries::usual().any(|usual| usual.name == *name)
        }
        _ => true,
    })
}

fn of_loads(input: &Input, report: &CapacityReport, condition: usize) -> Vec<Figure> {
    let cells: Vec<&CapacityCell> = report.cells.iter().filter(|cell| cell.condition == condition).collect();
    let levels = cells.iter().flat_map(|cell| &cell.levels).flat_map(|level| [level.levels.low, level.levels.high]);
    let axis = Axis::of_loads(report.noun(), levels);
    let of_metric = |kind: OverTime| {
        let line = |cell: &&CapacityCell| Line {
            variant: cell.variant,
            style: Style::Joined,
            points: cell.levels.iter().filter_map(|level| point(input, cell, level, &kind)).collect(),
        };
        let (_, title) = kind.name_and_title();
        let title = title.replace(" over time", "");
        Panel::new(title, axis.clone(), kind.unit(), cells.iter().map(line).collect())
    };
    let metrics: Vec<Panel> = of_all_labels(input).chain(of_systems(input)).filter_map(of_metric).collect();
    let loads = over_loads(input, report, condition).map(|figure| figure.panels).unwrap_or_default();
    let figure = |mut panel: Panel| {
        let title = std::mem::take(&mut panel.title);
        Figure {
            name: text::slug(&title),
            caption: String::new(),
            variants: variants(input),
            panels: vec![panel],
            title,
        }
    };
    let split = metrics.len().min(2 * split_series(input).len());
    let (first, last) = metrics.split_at(split);
    first.iter().cloned().chain(loads).chain(last.iter().cloned()).map(figure).collect()
}

/// What the loads of a level showed of a metric.
fn point(input: &Input, cell: &CapacityCell, level: &LevelOfLoad, kind: &OverTime) -> Option<Point> {
    let is_of_cell = |trial: &TrialResult<'_>| (trial.condition(), trial.variant()) == (cell.condition, cell.variant);
    let of_level = |rung: &&RungResult| {
        let at = rung.rung.level;
        rung.summary.validity.counts() && (level.levels.low..=level.levels.high).contains(&at)
    };
    let trials = input.trials().filter(|trial| is_of_cell(trial) && input.counts(*trial));
    let loads = trials.flat_map(|trial| trial.load.rungs.iter().filter(of_level).map(move |rung| (trial, rung)));
    let centre = match kind {
        OverTime::All { series, statistic } => {
            let mut all = Came::default();
            for (trial, rung) in loads {
                let came = Exposed::only_during(trial, &rung.summary, &series.name).came_by_second();
                came.into_values().for_each(|came| all.add(came));
            }
            match statistic {
                Statistic::Percentile(p) => all.percentile(*p)?,
                _ => all.mean()?,
            }
        }
        OverTime::Exposed { measure: Measure { series: Series::Exposed(name), statistic, .. }, .. } => {
            let value = |(trial, rung): (TrialResult<'_>, &RungResult)| {
                Exposed::only_during(trial, &rung.summary, name).value(name, *statistic).ok()
            };
            summarise(&loads.filter_map(value).collect::<Vec<f64>>())?.median
        }
        _ => return None,
    };
    Some(Point { x: level.middle(), centre, values: vec![centre] })
}
