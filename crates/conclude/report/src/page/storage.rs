//! Storage on the page: a table for each operation, sizes down and back ends across.

use super::facts::{Fact, fact};
use super::{ChartView, chart_view};
use crate::{figures, text};
use plimsoll_analysis::quantity::{grouped, multiple, percent, show};
use plimsoll_analysis::storage::{Cell, Row, StorageReport, Table};
use plimsoll_analysis::words::counted;
use plimsoll_analysis::{Input, OrReason};
use plimsoll_model::measure::Unit;

/// The results of a storage study.
pub(crate) struct StorageView {
    pub(crate) back_ends: Vec<Fact>,
    pub(crate) tables: Vec<TableView>,
    pub(crate) notes: Vec<String>,
}

/// An operation.
pub(crate) struct TableView {
    pub(crate) title: String,
    pub(crate) rows: Vec<RowView>,
    pub(crate) notes: Vec<String>,
    pub(crate) chart: Option<ChartView>,
}

/// Objects of one size.
pub(crate) struct RowView {
    pub(crate) size: String,
    pub(crate) cells: Vec<CellView>,
}

/// A back end.
pub(crate) struct CellView {
    pub(crate) mean: String,
    /// Standard deviation and median, in parentheses.
    pub(crate) around: String,
    /// Further lines of the cell.
    pub(crate) lines: Vec<String>,
}

pub(crate) fn storage(input: &Input, report: &StorageReport) -> StorageView {
    StorageView {
        back_ends: report.back_ends.iter().map(|one| fact(one.name.clone(), one.facts.join("; "))).collect(),
        tables: report.tables.iter().map(|table| table_view(input, table)).collect(),
        notes: report.notes.iter().map(|note| text::unbroken(note)).collect(),
    }
}

fn table_view(input: &Input, table: &Table) -> TableView {
    TableView {
        title: table.title(),
        rows: table.rows.iter().map(row_view).collect(),
        notes: table.notes.iter().map(|note| text::unbroken(note)).collect(),
        chart: figures::of_storage(input, table).map(|figure| chart_view(&figure)),
    }
}

fn row_view(row: &Row) -> RowView {
    RowView { size: row.label.clone(), cells: row.cells.iter().map(cell_view).collect() }
}

fn cell_view(cell: &OrReason<Cell>) -> CellView {
    match cell {
        Ok(cell) => CellView {
            mean: seconds(cell.mean),
            around: around(cell),
            lines: [first_line(cell), second_line(cell)].into_iter().filter(|line| !line.is_empty()).collect(),
        },
        Err(reason) => CellView { mean: "–".to_owned(), around: String::new(), lines: vec![reason.clone()] },
    }
}

fn seconds(value: f64) -> String {
    show(value, Unit::Seconds)
}

fn around(cell: &Cell) -> String {
    let sd = cell.sd.map(|sd| format!("±{}, ", seconds(sd))).unwrap_or_default();
    format!("({sd}p50 {})", seconds(cell.quantiles.p50))
}

/// The line that every cell has: interval, n, rate, and the mode.
fn first_line(cell: &Cell) -> String {
    let interval = match &cell.interval {
        Ok(interval) => whole(format!("[{} … {}]", seconds(interval.low), seconds(interval.high))),
        Err(reason) => format!("no interval: {reason}"),
    };
    let n = format!("n = {} in {}", grouped(cell.operations as f64), counted(cell.trials.len(), "trial"));
    let rate = cell.bytes_per_second.map(|rate| show(rate, Unit::BytesPerSecond));
    let cache = cell.cached.filter(|_| cell.is_cache()).map(|share| format!("cache ({})", percent(share)));
    let not_durable = cell.not_durable.then(|| "not durable".to_owned());
    let about = [n].into_iter().chain(rate).chain([cell.mode.clone()]).chain(cache).chain(not_durable).map(whole);
    [interval].into_iter().chain(about).collect::<Vec<_>>().join(" · ")
}

/// The line that some cells have: percentiles, parts, requests, errors.
fn second_line(cell: &Cell) -> String {
    let named = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {}", seconds(value)));
    let quantiles = [("p95", cell.quantiles.p95), ("p99", cell.quantiles.p99), ("first byte", cell.first_byte)];
    let timed = cell.parts.iter().map(|(part, median)| (part.name(), Some(*median)));
    let durations = quantiles.into_iter().chain(timed).filter_map(|(name, value)| named(name, value));
    let requests = cell.subrequests.map(|requests| {
        let (many, s) = (multiple(requests.per_operation), if requests.per_operation == 1.0 { "" } else { "s" });
        format!("{many} request{s} each")
    });
    let errors = (cell.failed > 0).then(|| {
        let share = percent(cell.failed as f64 / cell.operations as f64);
        format!("{} failed ({share})", grouped(cell.failed as f64))
    });
    let cached = cell
        .cached
        .filter(|share| *share > 0.0 && !cell.is_cache())
        .map(|share| format!("{} from the page cache", percent(share)));
    durations.chain(requests).chain(errors).chain(cached).map(whole).collect::<Vec<_>>().join(" · ")
}

/// Makes a text unbreakable.
fn whole(text: impl AsRef<str>) -> String {
    text.as_ref().replace(' ', "\u{a0}")
}
