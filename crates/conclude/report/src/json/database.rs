//! The JSON of databases: seconds, bytes, shares.

use super::{ends, levels};
use plimsoll_analysis::database::{Best, BestRatio, BestRow, Cell, DatabaseReport, Ratio};
use plimsoll_analysis::{Input, OrReason};
use plimsoll_model::measure::Unit;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct Database<'a> {
    servers: BTreeMap<&'a str, &'a [String]>,
    throughput: String,
    axis: Option<&'a str>,
    settings_of_grid: Vec<&'a str>,
    best: Vec<BestEntry<'a>>,
    ahead: &'a [String],
    cells: Vec<CellEntry<'a>>,
    settings: Vec<SettingEntry<'a>>,
    conditions: Vec<CheckEntry<'a>>,
    mix: Vec<MixEntry<'a>>,
}

#[derive(Serialize)]
struct BestEntry<'a> {
    level: String,
    best: Vec<Setting<'a>>,
    ratios: Vec<RatioEntry<'a>>,
}

#[derive(Serialize)]
struct Setting<'a> {
    variant: String,
    setting: Option<&'a str>,
    throughput: Option<f64>,
    interval: Option<[f64; 2]>,
    better_than_all_others: bool,
}

#[derive(Serialize)]
struct RatioEntry<'a> {
    variant: String,
    best: RatioRow,
    picked_by_other_repeats: RatioRow,
    same_setting: BTreeMap<&'a str, RatioRow>,
}

#[derive(Serialize)]
struct RatioRow {
    value: Option<f64>,
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

#[derive(Serialize)]
struct CellEntry<'a> {
    condition: Value,
    variant: String,
    trials: &'a [u32],
    seconds: f64,
    transactions: Vec<TransactionEntry<'a>>,
    errors: BTreeMap<&'static str, u64>,
    retries: BTreeMap<&'static str, u64>,
    cancels: u64,
    cancels_failed: u64,
    statements: Vec<StatementEntry<'a>>,
    statistics: Vec<StatisticEntry<'a>>,
    consistent_with: BTreeMap<&'static str, &'a str>,
}

#[derive(Serialize)]
struct TransactionEntry<'a> {
    name: &'a str,
    total: u64,
    share: f64,
    mean: f64,
    p90: Option<f64>,
    failed: u64,
    rollbacks: u64,
    limit: Option<f64>,
    within_limit: Option<bool>,
}

#[derive(Serialize)]
struct StatementEntry<'a> {
    transaction: &'a str,
    statement: &'a str,
    runs: u64,
    runs_per_transaction: Option<f64>,
    mean: f64,
    percentiles: BTreeMap<&'static str, Option<f64>>,
    longest: f64,
    share: Option<f64>,
    failed: u64,
}

#[derive(Serialize)]
struct StatisticEntry<'a> {
    of: &'a str,
    name: &'a str,
    unit: Unit,
    mean: f64,
    sd: Option<f64>,
    n: usize,
}

#[derive(Serialize)]
struct SettingEntry<'a> {
    database: &'a str,
    name: &'a str,
    place: &'a str,
    asked: Option<&'a str>,
    in_force: &'a str,
    risk: Option<&'a str>,
}

#[derive(Serialize)]
struct CheckEntry<'a> {
    name: &'a str,
    held_after_load: Option<bool>,
    not_looked_at_after_load: Option<&'a str>,
    held: usize,
    broken: BTreeMap<u32, &'a str>,
    not_looked_at: BTreeMap<u32, &'a str>,
}

#[derive(Serialize)]
struct MixEntry<'a> {
    name: &'a str,
    trials: usize,
    found: [f64; 2],
    right: [f64; 2],
    wrong: &'a [u32],
}

pub(super) fn database<'a>(input: &Input, report: &'a DatabaseReport) -> Database<'a> {
    let settings = report.settings.iter().flat_map(|row| {
        row.values.iter().map(|value| SettingEntry {
            database: &row.database,
            name: &row.name,
            place: &value.place,
            asked: value.requested.as_deref(),
            in_force: &value.in_force,
            risk: value.risk.as_deref(),
        })
    });
    let checks = report.checks.iter().map(|check| CheckEntry {
        name: &check.name,
        held_after_load: check.loaded.as_ref().and_then(|loaded| loaded.as_ref().ok()).map(|()| true),
        not_looked_at_after_load: check.loaded.as_ref().and_then(|loaded| loaded.as_ref().err()).map(String::as_str),
        held: check.passed,
        broken: by_trial(&check.violated),
        not_looked_at: by_trial(&check.not_checked),
    });
    let mix = report.mix.iter().map(|one| MixEntry {
        name: &one.name,
        trials: one.trials,
        found: one.observed.into(),
        right: one.allowed.into(),
        wrong: &one.outside,
    });
    Database {
        servers: report.servers.iter().map(|one| (one.name.as_str(), one.facts.as_slice())).collect(),
        throughput: report.throughput.to_string(),
        axis: report.grid.axis.as_deref(),
        settings_of_grid: report.grid.rows.iter().map(|row| row.label.as_str()).collect(),
        best: report.best.iter().flat_map(|best| &best.rows).map(|row| best(input, report, row)).collect(),
        ahead: &report.ahead,
        cells: report.cells.iter().map(|one| cell(input, one)).collect(),
        settings: settings.collect(),
        conditions: checks.collect(),
        mix: mix.collect(),
    }
}

fn by_trial(told: &[(u32, String)]) -> BTreeMap<u32, &str> {
    told.iter().map(|(trial, text)| (*trial, text.as_str())).collect()
}

fn best<'a>(input: &Input, report: &'a DatabaseReport, row: &'a BestRow) -> BestEntry<'a> {
    let setting = |(variant, best): (usize, &OrReason<Best>)| {
        let best = best.as_ref().ok();
        Setting {
            variant: input.plan.label(variant),
            setting: best.map(|best| report.grid.rows[best.setting].label.as_str()),
            throughput: best.map(|best| best.centre),
            interval: best.and_then(|best| ends(&best.interval).0),
            better_than_all_others: best.is_some_and(|best| best.better_than_all_others),
        }
    };
    let entry = |one: &'a BestRatio| RatioEntry {
        variant: input.plan.label(one.variant),
        best: ratio(&one.best),
        picked_by_other_repeats: ratio(&one.leave_one_out),
        same_setting: report
            .grid
            .rows
            .iter()
            .map(|row| row.label.as_str())
            .zip(one.same_setting.iter().map(ratio))
            .collect(),
    };
    BestEntry {
        level: report.grid.level(row.level),
        best: row.best.iter().enumerate().map(setting).collect(),
        ratios: row.ratios.iter().map(entry).collect(),
    }
}

fn ratio(ratio: &OrReason<Ratio>) -> RatioRow {
    match ratio {
        Ok(Ratio { value, interval }) => {
            let (interval, missing) = ends(interval);
            RatioRow { value: Some(*value), interval, missing }
        }
        Err(reason) => RatioRow { value: None, interval: None, missing: Some(reason.clone()) },
    }
}

fn cell<'a>(input: &Input, cell: &'a Cell) -> CellEntry<'a> {
    let transactions = cell.transactions.iter().map(|one| TransactionEntry {
        name: &one.name,
        total: one.total,
        share: one.share,
        mean: one.mean,
        p90: one.p90,
        failed: one.failed,
        rollbacks: one.rollbacks,
        limit: one.limit.map(|limit| limit.seconds),
        within_limit: one.limit.and_then(|limit| limit.holds),
    });
    let statements = cell.statements.iter().map(|one| StatementEntry {
        transaction: &one.transaction,
        statement: &one.statement,
        runs: one.runs,
        runs_per_transaction: one.per_transaction,
        mean: one.mean,
        percentiles: one.named_percentiles().collect(),
        longest: one.longest,
        share: one.share,
        failed: one.failed,
    });
    let statistics = cell.statistics.iter().map(|one| StatisticEntry {
        of: &one.of,
        name: &one.name,
        unit: one.unit,
        mean: one.mean,
        sd: one.sd,
        n: one.n,
    });
    CellEntry {
        condition: levels(&input.plan.conditions[cell.condition]),
        variant: input.plan.label(cell.variant),
        trials: &cell.trials,
        seconds: cell.seconds,
        transactions: transactions.collect(),
        errors: cell.errors.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        retries: cell.retries.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        cancels: cell.cancels.requested,
        cancels_failed: cell.cancels.failed,
        statements: statements.collect(),
        statistics: statistics.collect(),
        consistent_with: cell.possible_limits.iter().map(|one| (one.what, one.evidence.as_str())).collect(),
    }
}
