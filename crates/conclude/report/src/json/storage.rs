//! The JSON of storage: bytes, seconds, bytes per second.

use super::{ends, levels};
use plimsoll_analysis::storage::{Cell, Outliers, Quantiles, Row, StorageReport, Subrequests, Table};
use plimsoll_analysis::{Input, OrReason};
use plimsoll_model::storage::Operation;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct Storage<'a> {
    back_ends: BTreeMap<&'a str, &'a [String]>,
    tables: Vec<TableRow<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct TableRow<'a> {
    step: &'a str,
    operation: Operation,
    under: Value,
    sizes: Vec<SizeRow<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct SizeRow<'a> {
    size: &'a str,
    bytes: u64,
    cells: Vec<CellRow<'a>>,
}

#[derive(Serialize)]
struct CellRow<'a> {
    variant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultRow<'a>>,
}

#[derive(Serialize)]
struct ResultRow<'a> {
    operations: u64,
    failed: u64,
    mean: f64,
    sd: Option<f64>,
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_interval: Option<String>,
    quantiles: QuantileRow,
    relative_sd: Option<f64>,
    relative_sd_interval: Option<[f64; 2]>,
    bytes_per_second: Option<f64>,
    first_byte: Option<f64>,
    parts: BTreeMap<&'a str, f64>,
    subrequests: Option<SubrequestRow>,
    mode: &'a str,
    cached: Option<f64>,
    not_durable: bool,
    outliers: Option<OutlierRow>,
    trials: Vec<TrialRow>,
}

#[derive(Serialize)]
struct QuantileRow {
    least: f64,
    p5: Option<f64>,
    p25: Option<f64>,
    p50: f64,
    p75: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    largest: f64,
}

#[derive(Serialize)]
struct SubrequestRow {
    count: u64,
    failed: u64,
    per_operation: f64,
}

#[derive(Serialize)]
struct OutlierRow {
    count: u64,
    share_of_time: f64,
    mean_without: f64,
    only_in_trial: Option<u32>,
}

#[derive(Serialize)]
struct TrialRow {
    trial: u32,
    operations: u64,
    mean: f64,
}

pub(super) fn storage<'a>(input: &Input, report: &'a StorageReport) -> Storage<'a> {
    Storage {
        back_ends: report.back_ends.iter().map(|one| (one.name.as_str(), one.facts.as_slice())).collect(),
        tables: report.tables.iter().map(|table| table_row(input, table)).collect(),
        notes: &report.notes,
    }
}

fn table_row<'a>(input: &Input, table: &'a Table) -> TableRow<'a> {
    TableRow {
        step: &table.step.name,
        operation: table.step.operation,
        under: levels(&table.under),
        sizes: table.rows.iter().map(|row| size_row(input, row)).collect(),
        notes: &table.notes,
    }
}

fn size_row<'a>(input: &Input, row: &'a Row) -> SizeRow<'a> {
    let cells = row.cells.iter().enumerate().map(|(variant, cell): (usize, &OrReason<Cell>)| CellRow {
        variant: input.plan.label(variant),
        missing: cell.as_ref().err().map(String::as_str),
        result: cell.as_ref().ok().map(result_row),
    });
    SizeRow { size: &row.label, bytes: row.size, cells: cells.collect() }
}

fn result_row(cell: &Cell) -> ResultRow<'_> {
    let (interval, no_interval) = ends(&cell.interval);
    let spread = cell.spread.as_ref().ok();
    ResultRow {
        operations: cell.operations,
        failed: cell.failed,
        mean: cell.mean,
        sd: cell.sd,
        interval,
        no_interval,
        quantiles: quantile_row(&cell.quantiles),
        relative_sd: spread.map(|spread| spread.centre),
        relative_sd_interval: spread.map(|spread| [spread.interval.low, spread.interval.high]),
        bytes_per_second: cell.bytes_per_second,
        first_byte: cell.first_byte,
        parts: cell.parts.iter().map(|(part, median)| (part.name(), *median)).collect(),
        subrequests: cell.subrequests.map(|Subrequests { count, failed, per_operation }| SubrequestRow {
            count,
            failed,
            per_operation,
        }),
        mode: &cell.mode,
        cached: cell.cached,
        not_durable: cell.not_durable,
        outliers: cell.outliers.map(|Outliers { count, share_of_time, mean_without, only_in }| OutlierRow {
            count,
            share_of_time,
            mean_without,
            only_in_trial: only_in,
        }),
        trials: cell
            .trials
            .iter()
            .map(|one| TrialRow { trial: one.trial, operations: one.operations, mean: one.mean })
            .collect(),
    }
}

fn quantile_row(quantiles: &Quantiles) -> QuantileRow {
    let Quantiles { least, p5, p25, p50, p75, p95, p99, largest } = *quantiles;
    QuantileRow { least, p5, p25, p50, p75, p95, p99, largest }
}
