//! The numbers as CSV, for other programs: tidy, in base units, unrounded.

use plimsoll_analysis::database::{Cell as DatabaseCell, DatabaseReport};
use plimsoll_analysis::estimate::CONFIDENCE;
use plimsoll_analysis::measure::TrialReader;
use plimsoll_analysis::storage::{Cell, StorageReport};
use plimsoll_analysis::{Analysis, Input, OrReason};
use plimsoll_model::factor::Assignment;
use plimsoll_model::measure::{Effect, Unit};
use plimsoll_model::objective::Condition;
use plimsoll_model::record::Part;
use plimsoll_model::result::RungResult;
use plimsoll_model::start::{Start, Validity};
use serde::Serialize;

/// A row for each trial and measure; the levels of the factors have columns of their own.
pub(crate) fn results(input: &Input, analysis: &Analysis) -> String {
    let mut table = Table::default();
    let factors = factors(input);
    table.row(
        ["trial", "block", "repeat", "attempt", "position", "variant", "started_utc"]
            .into_iter()
            .map(str::to_owned)
            .chain(factors.iter().cloned())
            .chain(["validity", "measure", "unit", "value", "missing"].map(str::to_owned)),
    );
    for trial in input.trials() {
        let reader = TrialReader::new(trial);
        let assignment = input.plan.assignment(trial.variant(), trial.condition());
        let Start { number: start, block, repeat, attempt, position, .. } = *trial.identity();
        let started = crate::text::utc(trial.start.summary.timing.started_unix_ms);
        for measure in &analysis.measures {
            let value = reader.value(measure);
            let identity = [start, block, repeat, attempt, position];
            table.row(
                identity
                    .iter()
                    .map(u32::to_string)
                    .chain([input.plan.label(trial.variant()), started.clone()])
                    .chain(factors.iter().map(|name| level(&assignment, name)))
                    .chain([crate::text::validity(input, trial).to_owned(), measure.to_string()])
                    .chain([unit(measure.unit())])
                    .chain([number(value.as_ref().ok().copied()), value.err().unwrap_or_default()]),
            );
        }
    }
    table.text()
}

/// A row for each condition, variant and measure; the noise floors last.
pub(crate) fn comparisons(input: &Input, analysis: &Analysis) -> String {
    let mut table = Table::default();
    table.row(COMPARISON.map(str::to_owned));
    for one in analysis.comparisons.iter().chain(&analysis.floors) {
        let contrast = one.contrast.as_ref().ok();
        let interval = contrast.and_then(|contrast| contrast.interval.clone().ok());
        let no_interval = contrast.and_then(|contrast| contrast.interval.clone().err());
        let missing = one.contrast.clone().err().or(no_interval).unwrap_or_default();
        let ranked = contrast.and_then(|contrast| contrast.ranked);
        let verdict = one.verdict.as_ref();
        let [of_baseline, of_variant] = one.values().map_or([None, None], |values| values.map(Some));
        table.row([
            input.plan.conditions[one.condition].to_string(),
            input.plan.label(one.variant),
            input.plan.label(0),
            one.measure.to_string(),
            match one.measure.effect() {
                Effect::Ratio => "ratio".to_owned(),
                Effect::Difference => "difference".to_owned(),
            },
            one.pairs.len().to_string(),
            number(contrast.map(|contrast| contrast.value)),
            number(interval.map(|interval| interval.low)),
            number(interval.map(|interval| interval.high)),
            (1.0 - analysis.alpha).to_string(),
            number(contrast.map(|contrast| contrast.range.low)),
            number(contrast.map(|contrast| contrast.range.high)),
            number(ranked.map(|ranked| ranked.value)),
            number(ranked.and_then(|ranked| Some(ranked.interval?.low))),
            number(ranked.and_then(|ranked| Some(ranked.interval?.high))),
            number(contrast.and_then(|contrast| contrast.p)),
            number(
                verdict
                    .and_then(|verdict| verdict.adjusted_p)
                    .or(one.exploratory.map(|exploratory| exploratory.adjusted_p)),
            ),
            number(contrast.and_then(|contrast| contrast.detectable)),
            number(verdict.map(|verdict| verdict.margin)),
            verdict.map(|verdict| verdict.outcome.to_string()).unwrap_or_default(),
            verdict.and_then(|verdict| verdict.material).map(|material| material.to_string()).unwrap_or_default(),
            verdict.and_then(|verdict| verdict.needed).map(|needed| needed.to_string()).unwrap_or_default(),
            one.exploratory.map(|exploratory| exploratory.stands_out.to_string()).unwrap_or_default(),
            verdict.map_or(missing, |verdict| verdict.reason.clone()),
            one.dropped.len().to_string(),
            number(of_baseline),
            number(of_variant),
        ]);
    }
    table.text()
}

/// A row for each load of each search, in the order in which they ran; durations in seconds.
pub(crate) fn capacity(input: &Input) -> String {
    let mut table = Table::default();
    let limits = input.facts.objective.iter().flat_map(|objective| &objective.limits);
    let limits: Vec<Condition> = limits.map(|limit| Condition::Duration(limit.measure.clone())).collect();
    let conditions = [limits.as_slice(), &[Condition::Errors, Condition::Achieved]].concat();
    let name = |condition: &Condition| match condition {
        Condition::Duration(measure) => measure.to_string(),
        Condition::Errors => "errors.ratio".to_owned(),
        _ => "achieved".to_owned(),
    };
    table.row(
        ["start", "condition", "variant", "load", "part", "level", "seconds", "validity", "passed"]
            .map(str::to_owned)
            .into_iter()
            .chain(conditions.iter().map(name))
            .chain(["reasons".to_owned()]),
    );
    for trial in input.trials() {
        let mut loads: Vec<&RungResult> = trial.load.rungs.iter().chain(&trial.load.recoveries).collect();
        loads.sort_by_key(|load| load.summary.load.number);
        for rung in loads {
            let summary = &rung.summary;
            let judged = summary.objective.as_ref();
            let reading = |condition: &Condition| {
                let reading = judged?.readings.iter().find(|reading| reading.condition == *condition)?;
                reading.value
            };
            let reasons = judged.map(|judged| judged.reasons.as_slice()).unwrap_or_default();
            table.row(
                [
                    trial.number().to_string(),
                    input.plan.conditions[trial.condition()].to_string(),
                    input.plan.label(trial.variant()),
                    summary.load.number.to_string(),
                    word(rung.rung.part),
                    rung.rung.level.to_string(),
                    number(Some(summary.timing.window.seconds())),
                    match summary.validity {
                        Validity::Valid => "valid",
                        Validity::Void(_) => "void",
                        Validity::Failed(_) => "failed",
                    }
                    .to_owned(),
                    judged.map(|judged| word(judged.passed)).unwrap_or_default(),
                ]
                .into_iter()
                .chain(conditions.iter().map(|condition| number(reading(condition))))
                .chain([[reasons, summary.validity.reasons()].concat().join("; ")]),
            );
        }
    }
    table.text()
}

/// The word by which a value is stored.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A row for each operation, size and variant of a storage study; durations in seconds.
pub(crate) fn storage(input: &Input, report: &StorageReport) -> String {
    let mut table = Table::default();
    table.row(STORAGE.map(str::to_owned));
    for of_step in &report.tables {
        for row in &of_step.rows {
            for (variant, cell) in row.cells.iter().enumerate() {
                let place = [of_step.step.name.clone(), of_step.step.operation.to_string(), of_step.under.to_string()];
                let size = [row.label.clone(), row.size.to_string(), input.plan.label(variant)];
                table.row(place.into_iter().chain(size).chain(storage_cell(cell)));
            }
        }
    }
    table.text()
}

/// The columns of storage.
const STORAGE: [&str; 34] = [
    "step",
    "operation",
    "condition",
    "size",
    "bytes",
    "variant",
    "operations",
    "trials",
    "failed",
    "mean",
    "sd",
    "low",
    "high",
    "confidence",
    "least",
    "p5",
    "p25",
    "p50",
    "p75",
    "p95",
    "p99",
    "largest",
    "bytes_per_second",
    "first_byte",
    "open",
    "data",
    "sync",
    "close",
    "subrequests",
    "failed_subrequests",
    "mode",
    "cached",
    "not_durable",
    "missing",
];

/// The twenty-eight cells that follow step, condition, size and variant.
fn storage_cell(cell: &OrReason<Cell>) -> Vec<String> {
    let Ok(cell) = cell else {
        let empty = STORAGE.len() - 7;
        return vec![String::new(); empty].into_iter().chain(cell.as_ref().err().cloned()).collect();
    };
    let interval = cell.interval.as_ref().ok();
    let quantiles = &cell.quantiles;
    let part = |part: Part| cell.parts.iter().find(|(one, _)| *one == part).map(|(_, median)| *median);
    let counts = [cell.operations, cell.trials.len() as u64, cell.failed].map(|count| count.to_string());
    let numbers = [
        Some(cell.mean),
        cell.sd,
        interval.map(|interval| interval.low),
        interval.map(|interval| interval.high),
        interval.map(|_| CONFIDENCE),
        Some(quantiles.least),
        quantiles.p5,
        quantiles.p25,
        Some(quantiles.p50),
        quantiles.p75,
        quantiles.p95,
        quantiles.p99,
        Some(quantiles.largest),
        cell.bytes_per_second,
        cell.first_byte,
        part(Part::Open),
        part(Part::Data),
        part(Part::Sync),
        part(Part::Close),
        cell.subrequests.map(|requests| requests.count as f64),
        cell.subrequests.map(|requests| requests.failed as f64),
    ];
    let why = cell.interval.as_ref().err().cloned().unwrap_or_default();
    let last = [cell.mode.clone(), number(cell.cached), cell.not_durable.to_string(), why];
    counts.into_iter().chain(numbers.map(number)).chain(last).collect()
}

/// The columns of databases.
const DATABASE: [&str; 10] = ["condition", "variant", "kind", "of", "name", "quantity", "unit", "value", "sd", "n"];

/// A row for each number of each cell, then the settings in force; durations in seconds.
pub(crate) fn database(input: &Input, report: &DatabaseReport) -> String {
    let mut table = Table::default();
    table.row(DATABASE.map(str::to_owned));
    for cell in &report.cells {
        let place = [input.plan.conditions[cell.condition].to_string(), input.plan.label(cell.variant)];
        let rows = [transactions(cell), attempts(cell), statements(cell), statistics(cell)].concat();
        rows.into_iter().for_each(|row| table.row(place.iter().cloned().chain(row)));
    }
    for row in &report.settings {
        for value in &row.values {
            let asked = value.requested.clone().map(|asked| ("asked", asked));
            for (quantity, text) in [("in_force", value.in_force.clone())].into_iter().chain(asked) {
                let start = [&value.place, "", "setting", &row.database, &row.name, quantity, "", &text, "", ""];
                table.row(start.map(str::to_owned));
            }
        }
    }
    table.text()
}

/// The columns that follow condition and variant.
type QuantityColumns = [String; 8];

fn quantity_columns(
    (kind, of, name): (&str, &str, &str),
    quantity: &str,
    of_unit: &str,
    value: &dyn ToString,
    n: usize,
) -> QuantityColumns {
    let value = value.to_string();
    [kind, of, name, quantity, of_unit, &value, "", &n.to_string()].map(str::to_owned)
}

fn transactions(cell: &DatabaseCell) -> Vec<QuantityColumns> {
    let n = cell.trials.len();
    let of = |one: &plimsoll_analysis::database::Transaction| {
        let place = ("transaction", "", one.name.as_str());
        let mut rows = vec![
            quantity_columns(place, "total", "count", &one.total, n),
            quantity_columns(place, "share", "share", &one.share, n),
            quantity_columns(place, "mean", "seconds", &one.mean, n),
            quantity_columns(place, "p90", "seconds", &number(one.p90), n),
            quantity_columns(place, "rollbacks", "count", &one.rollbacks, n),
            quantity_columns(place, "failed", "count", &one.failed, n),
        ];
        rows.extend(one.limit.map(|limit| quantity_columns(place, "limit", "seconds", &limit.seconds, n)));
        rows.extend(one.limit.map(|limit| {
            quantity_columns(
                place,
                "within_limit",
                "",
                &limit.holds.map(|holds| holds.to_string()).unwrap_or_default(),
                n,
            )
        }));
        rows
    };
    cell.transactions.iter().flat_map(of).collect()
}

fn attempts(cell: &DatabaseCell) -> Vec<QuantityColumns> {
    let kinds = cell.errors.iter().map(|one| ("error", one)).chain(cell.retries.iter().map(|one| ("retry", one)));
    let kinds = kinds.map(|(what, (kind, count))| (what, kind.name(), *count));
    let cancels = [("cancel", "asked", cell.cancels.requested), ("cancel", "failed", cell.cancels.failed)];
    kinds
        .chain(cancels.into_iter().filter(|(.., count)| *count > 0))
        .map(|(what, name, count)| quantity_columns((what, "", name), "total", "count", &count, cell.trials.len()))
        .collect()
}

fn statements(cell: &DatabaseCell) -> Vec<QuantityColumns> {
    let n = cell.trials.len();
    let of = |one: &plimsoll_analysis::database::Statement| {
        let place = ("statement", one.transaction.as_str(), one.statement.as_str());
        let mut rows = vec![
            quantity_columns(place, "runs", "count", &one.runs, n),
            quantity_columns(place, "runs_per_transaction", "count", &number(one.per_transaction), n),
            quantity_columns(place, "mean", "seconds", &one.mean, n),
            quantity_columns(place, "longest", "seconds", &one.longest, n),
            quantity_columns(place, "share", "share", &number(one.share), n),
            quantity_columns(place, "failed", "count", &one.failed, n),
        ];
        let percentiles = one.named_percentiles();
        rows.extend(percentiles.map(|(name, value)| quantity_columns(place, name, "seconds", &number(value), n)));
        rows
    };
    cell.statements.iter().flat_map(of).collect()
}

fn statistics(cell: &DatabaseCell) -> Vec<QuantityColumns> {
    let of = |one: &plimsoll_analysis::database::Statistic| {
        let mut row = quantity_columns(("statistic", &one.of, &one.name), "mean", &unit(one.unit), &one.mean, one.n);
        row[6] = number(one.sd);
        row
    };
    cell.statistics.iter().map(of).collect()
}

/// The columns of the comparisons.
const COMPARISON: [&str; 27] = [
    "condition",
    "variant",
    "baseline",
    "measure",
    "effect",
    "n",
    "value",
    "low",
    "high",
    "confidence",
    "least",
    "largest",
    "ranked",
    "ranked_low",
    "ranked_high",
    "p",
    "adjusted_p",
    "detectable",
    "margin",
    "verdict",
    "material",
    "needed",
    "stands_out",
    "reason",
    "dropped",
    "value_baseline",
    "value_variant",
];

fn factors(input: &Input) -> Vec<String> {
    let first = input.plan.variants.iter().zip(&input.plan.conditions).next();
    first
        .map(|(variant, condition)| variant.and(condition).0.into_iter().map(|(name, _)| name).collect())
        .unwrap_or_default()
}

fn level(assignment: &Assignment, factor: &str) -> String {
    assignment.get(factor).map(ToString::to_string).unwrap_or_default()
}

/// The unit as in the JSON: `seconds`, `per_second`.
fn unit(unit: Unit) -> String {
    let name = serde_json::to_value(unit).expect("a unit is a plain name");
    name.as_str().expect("a unit is a plain name").to_owned()
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// CSV in memory.
struct Table(csv::Writer<Vec<u8>>);

impl Default for Table {
    fn default() -> Self {
        Table(csv::Writer::from_writer(Vec::new()))
    }
}

impl Table {
    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.write_record(cells).expect("memory takes every row, and rows are equally long");
    }

    fn text(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every row");
        String::from_utf8(bytes).expect("cells are text")
    }
}
