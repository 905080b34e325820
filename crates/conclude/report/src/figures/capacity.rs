//! The charts of a search for the capacity: what loads showed over the load, what they used of each resource, and the loads of a
//! start over its time.

use super::{variants, with_names_of_their_own};
use crate::chart::{Axis, Figure, Line, Panel, Point, Style};
use crate::text;
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport, LevelOfLoad, ResourceUse, Use};
use plimsoll_analysis::{Input, words};
use plimsoll_model::measure::Unit;

/// The most resources in a chart.
const MOST_RESOURCES: usize = 5;

/// The points of a curve.
const POINTS: usize = 40;

/// For each condition a chart of what loads showed, for each variant under it one of what they used, and a chart of the loads over
/// the time of a start.
pub(crate) fn of_capacity(input: &Input, report: &CapacityReport) -> Vec<Figure> {
    let of_condition = |condition: usize| {
        let cells = report.cells.iter().filter(move |cell| cell.condition == condition);
        let of_resources = cells.filter_map(|cell| of_resources(input, report, cell));
        over_loads(input, report, condition).into_iter().chain(of_resources).chain(over_time(input, report, condition))
    };
    with_names_of_their_own((0..input.plan.conditions.len()).flat_map(of_condition).collect())
}

/// What loads of a variant used of each resource, the most used first.
fn of_resources(input: &Input, report: &CapacityReport, cell: &CapacityCell) -> Option<Figure> {
    let resources = &cell.gave_out.as_ref()?.resources;
    let resources: Vec<&ResourceUse> =
        resources.iter().filter(|one| one.at_most.is_some() && !one.resource.is_wait()).take(MOST_RESOURCES).collect();
    let loads = || resources.iter().flat_map(|one| one.levels.iter().map(|(level, _)| *level));
    let point = |(x, used): &(f64, Use)| Point { x: *x, centre: used.share(), values: vec![used.share()] };
    let line = |(place, one): (usize, &&ResourceUse)| Line {
        variant: place,
        style: Style::Joined,
        points: one.levels.iter().map(point).collect(),
    };
    let lines: Vec<Line> = resources.iter().enumerate().map(line).collect();
    let shares: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.centre)).collect();
    let mut panel = Panel::new("share in use".to_owned(), Axis::of_loads(report.noun(), loads()), Unit::Share, lines)?;
    // Numbers of two sources may give a little more than all of it, for which the axis need not reach further.
    let shares = shares.into_iter().map(|share| if share < 1.05 { share.min(1.0) } else { share });
    panel.y = Axis::of_values(Unit::Share, shares.chain([0.0, 1.0]));
    let place = words::conditions(&input.plan, &[cell.condition]);
    let variant = input.plan.label(cell.variant);
    let of_variant = if input.plan.describes() { String::new() } else { format!(" of {variant}") };
    Some(Figure {
        name: text::slug(&format!("resources{of_variant}{place}")),
        title: format!("What loads used{of_variant}{place}"),
        caption: "Each dot: the median of the loads of about that size, over all starts.".to_owned(),
        variants: resources.iter().map(|one| one.resource.to_string()).collect(),
        panels: vec![panel],
    })
}

pub(super) fn over_loads(input: &Input, report: &CapacityReport, condition: usize) -> Option<Figure> {
    let cells: Vec<&CapacityCell> = report.cells.iter().filter(|cell| cell.condition == condition).collect();
    let levels = cells.iter().flat_map(|cell| &cell.levels);
    let axis = Axis::of_loads(report.noun(), levels.flat_map(|level| [level.levels.low, level.levels.high]));
    let mut panels = panels(report, &axis, &cells, by_level)?;
    let laws = cells.iter().filter_map(|cell| law(cell));
    let iterations = lines(&cells, by_level, |level| level.throughput).into_iter().chain(laws).collect();
    let iterations = Panel::new("iterations per second".to_owned(), axis, Unit::PerSecond, iterations);
    iterations.into_iter().for_each(|panel| panels.insert(panels.len().min(1), panel));
    let place = words::conditions(&input.plan, &[condition]);
    let dashed = if cells.iter().any(|cell| law(cell).is_some()) {
        " Dashed: the Universal Scalability Law that is nearest to them, which describes and does not explain."
    } else {
        ""
    };
    (!panels.is_empty()).then(|| Figure {
        name: text::slug(&format!("capacity{place}")),
        title: format!("What each load showed{place}"),
        caption: format!(
            "Each dot: the median of the loads of about that many {}, over all starts. Grey line: the limit of the \
             objective.{dashed}",
            report.noun()
        ),
        variants: variants(input),
        panels,
    })
}

/// The loads of the first start, one after the other.
fn over_time(input: &Input, report: &CapacityReport, condition: usize) -> Option<Figure> {
    let cells: Vec<&CapacityCell> = report.cells.iter().filter(|cell| cell.condition == condition).collect();
    let last = cells.iter().flat_map(|cell| in_order(cell)).map(|(at, _)| at).fold(1.0, f64::max);
    let mut axis = Axis::of_seconds(0.0, last);
    "seconds since the first load".clone_into(&mut axis.label);
    let offered = lines(&cells, in_order, |level| Some(level.middle()));
    let offered = Panel::new(report.noun().to_owned(), axis.clone(), Unit::Count, offered);
    let panels: Vec<Panel> = offered.into_iter().chain(panels(report, &axis, &cells, in_order)?).collect();
    let place = words::conditions(&input.plan, &[condition]);
    (!panels.is_empty()).then(|| Figure {
        name: text::slug(&format!("capacity-over-time{place}")),
        title: format!("The loads of the first start, one after the other{place}"),
        caption: "Each dot: a load, at the middle of its measure phase. Grey line: the limit of the objective."
            .to_owned(),
        variants: variants(input),
        panels,
    })
}

/// The loads of a cell, each with its place on the horizontal axis.
type Loads = fn(&CapacityCell) -> Vec<(f64, &LevelOfLoad)>;

fn by_level(cell: &CapacityCell) -> Vec<(f64, &LevelOfLoad)> {
    cell.levels.iter().map(|level| (level.middle(), level)).collect()
}

fn in_order(cell: &CapacityCell) -> Vec<(f64, &LevelOfLoad)> {
    cell.of_first_start.iter().map(|timed| (timed.at, &timed.load)).collect()
}

/// A line for each variant.
fn lines(cells: &[&CapacityCell], loads: Loads, of: fn(&LevelOfLoad) -> Option<f64>) -> Vec<Line> {
    let point = |(x, level): (f64, &LevelOfLoad)| {
        let value = of(level)?;
        Some(Point { x, centre: value, values: vec![value] })
    };
    let line = |cell: &&CapacityCell| Line {
        variant: cell.variant,
        style: Style::Joined,
        points: loads(cell).into_iter().filter_map(point).collect(),
    };
    cells.iter().map(line).collect()
}

/// What loads showed, a panel for each kind of it. None without a limit of a duration.
fn panels(report: &CapacityReport, axis: &Axis, cells: &[&CapacityCell], loads: Loads) -> Option<Vec<Panel>> {
    let limit = report.objective.limits.first()?;
    let panel = |title: &str, unit: Unit, of: fn(&LevelOfLoad) -> Option<f64>| {
        Panel::new(title.to_owned(), axis.clone(), unit, lines(cells, loads, of))
    };
    let duration = panel(&words::measure(&limit.measure), Unit::Seconds, |level| level.duration);
    let all = [
        duration.map(|panel| panel.with_limit(limit.at_most)),
        panel("requests per second", Unit::PerSecond, |level| level.requests),
        panel("errors", Unit::Share, |level| level.errors),
        panel("CPU of the systems, cores", Unit::Cores, |level| level.cpu),
        panel("memory of the systems", Unit::Bytes, |level| level.memory),
    ];
    Some(all.into_iter().flatten().collect())
}

/// The scalability law of a variant, over the loads that were offered.
fn law(cell: &CapacityCell) -> Option<Line> {
    let law = cell.range.as_ref()?.law?;
    let (least, most) = (cell.levels.first()?.middle(), cell.levels.last()?.middle());
    let at = |place: usize| {
        let x = least * (most / least).powf(place as f64 / (POINTS - 1) as f64);
        Point { x, centre: law.at(x), values: Vec::new() }
    };
    Some(Line { variant: cell.variant, style: Style::Dashed, points: (0..POINTS).map(at).collect() })
}
