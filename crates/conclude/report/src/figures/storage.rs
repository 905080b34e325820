//! The charts of storage: the duration of an operation by size, on two logarithmic axes.

use super::variants;
use crate::chart::{Axis, Figure, Line, Panel, Point, Style, share_logarithmic_axis};
use crate::text;
use plimsoll_analysis::Input;
use plimsoll_analysis::storage::{Cell, Quantiles, Row, Table};
use plimsoll_model::measure::Unit;

/// The chart of a table; none where it has no number.
pub(crate) fn of_storage(input: &Input, table: &Table) -> Option<Figure> {
    let panels = [("mean", Style::Intervals), ("distribution", Style::Boxes)];
    let mut panels: Vec<Panel> =
        panels.into_iter().filter_map(|(title, style)| panel(input, table, title, style)).collect();
    share_logarithmic_axis(&mut panels, Unit::Seconds);
    (!panels.is_empty()).then(|| Figure {
        name: text::slug(&format!("storage {}", table.title())),
        title: format!("{}: time by size", table.title()),
        caption:
            "Mean: that of all operations, with its 95 % interval over trials. Distribution: bars are medians, boxes \
                  reach from the 25th to the 75th percentile, lines from the 5th to the 95th, where there are enough \
                  operations for them; small dots are the shortest and the longest."
                .to_owned(),
        variants: variants(input),
        panels,
    })
}

fn panel(input: &Input, table: &Table, title: &str, style: Style) -> Option<Panel> {
    let line = |variant: usize| {
        let cells = table.rows.iter().filter_map(|row| Some((row, row.cells[variant].as_ref().ok()?)));
        Line { variant, style, points: cells.map(|(row, cell)| point(row, cell, style)).collect() }
    };
    let sizes = table.rows.iter().map(|row| (row.size as f64, row.label.clone())).collect();
    let lines = (0..input.plan.variants.len()).map(line).collect();
    Panel::new(title.to_owned(), Axis::of_sizes(sizes), Unit::Seconds, lines)
}

fn point(row: &Row, cell: &Cell, style: Style) -> Point {
    let x = row.size as f64;
    match style {
        Style::Boxes => Point { x, centre: cell.quantiles.p50, values: pairs(&cell.quantiles) },
        _ => Point {
            x,
            centre: cell.mean,
            values: cell.interval.iter().flat_map(|interval| [interval.low, interval.high]).collect(),
        },
    }
}

/// The values for [`Style::Boxes`]; the 5th and the 95th percentile need more operations than
/// quartiles.
fn pairs(quantiles: &Quantiles) -> Vec<f64> {
    let known = [quantiles.p25.zip(quantiles.p75), quantiles.p5.zip(quantiles.p95)];
    let ends = Some((quantiles.least, quantiles.largest));
    [ends].into_iter().chain(known).flatten().flat_map(|(low, high)| [low, high]).collect()
}
