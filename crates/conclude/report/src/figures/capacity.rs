//! The chart of a search for the capacity: what loads showed, over the load.

use super::variants;
use crate::chart::{Axis, Figure, Line, Panel, Point, Style};
use crate::text;
use plimsoll_analysis::capacity::{CapacityCell, CapacityReport, LevelOfLoad};
use plimsoll_analysis::{Input, words};
use plimsoll_model::measure::Unit;

/// A chart for each condition.
pub(crate) fn of_capacity(input: &Input, report: &CapacityReport) -> Vec<Figure> {
    let conditions = 0..input.plan.conditions.len();
    conditions.filter_map(|condition| figure(input, report, condition)).collect()
}

fn figure(input: &Input, report: &CapacityReport, condition: usize) -> Option<Figure> {
    let cells: Vec<&CapacityCell> = report.cells.iter().filter(|cell| cell.condition == condition).collect();
    let levels = || cells.iter().flat_map(|cell| &cell.levels);
    let axis = || Axis::of_loads(report.noun(), levels().flat_map(|level| [level.levels.low, level.levels.high]));
    let panel = |title: String, unit: Unit, of: fn(&LevelOfLoad) -> Option<f64>| {
        let point = |level: &LevelOfLoad| {
            let value = of(level)?;
            let x = (level.levels.low * level.levels.high).sqrt();
            Some(Point { x, centre: value, values: vec![value] })
        };
        let line = |cell: &&CapacityCell| Line {
            variant: cell.variant,
            style: Style::Joined,
            points: cell.levels.iter().filter_map(point).collect(),
        };
        Panel::new(title, axis(), unit, cells.iter().map(line).collect())
    };
    let limit = report.objective.limits.first()?;
    let duration = panel(words::measure(&limit.measure), Unit::Seconds, |level| level.duration);
    let panels: Vec<Panel> = [
        duration.map(|panel| panel.with_limit(limit.at_most)),
        panel("iterations per second".to_owned(), Unit::PerSecond, |level| level.throughput),
        panel("CPU of the systems, cores".to_owned(), Unit::Cores, |level| level.cpu),
    ]
    .into_iter()
    .flatten()
    .collect();
    let place = words::conditions(&input.plan, &[condition]);
    (!panels.is_empty()).then(|| Figure {
        name: text::slug(&format!("capacity{place}")),
        title: format!("What each load showed{place}"),
        caption: format!(
            "Each dot: the median of the loads of about that many {}, over all starts. Grey line: the limit of the objective.",
            report.noun()
        ),
        variants: variants(input),
        panels,
    })
}
