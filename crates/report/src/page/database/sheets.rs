//! The tables: what limits cells, DBT-2's summary, latencies, statements, statistics, settings,
//! checks.

use super::{Column, Scene, Sheet, dash, numbers_in, words_in};
use plimsoll_analysis::database::{Cell, MixCheck, SettingValue, Statement, Statistic, Suspect, Transaction};
use plimsoll_analysis::quantity::{grouped, percent, show, significant};
use plimsoll_analysis::words::{self, counted};
use plimsoll_model::measure::{self, Measure, Series, Unit};
use plimsoll_model::record::ErrorKind;
use std::collections::BTreeMap;

/// Rows from which on a table is closed until it is asked for.
const LONG: usize = 12;

/// Statements of a variant that are shown first.
const MOST: usize = 6;

/// Quantiles of a latency.
const QUANTILES: [(&str, measure::Statistic); 5] = [
    ("p50", measure::Statistic::Med),
    ("p90", measure::Statistic::Percentile(90.0)),
    ("p95", measure::Statistic::Percentile(95.0)),
    ("p99", measure::Statistic::Percentile(99.0)),
    ("max", measure::Statistic::Max),
];

impl Scene<'_> {
    /// What the cells are consistent with as their limit.
    pub(super) fn limits(&self) -> Option<Sheet> {
        let row = |cell: &Cell, suspect: &Suspect| {
            let place = [self.condition(cell.condition), self.variant(cell.variant)];
            place.into_iter().chain([suspect.what.to_owned(), suspect.evidence.clone()]).collect()
        };
        let rows: Vec<Vec<String>> =
            self.measured().flat_map(|cell| cell.suspects.iter().map(move |one| row(cell, one))).collect();
        let silent: Vec<String> = self
            .measured()
            .filter(|cell| cell.suspects.is_empty())
            .map(|cell| format!("{}, {}", self.condition(cell.condition), self.variant(cell.variant)))
            .collect();
        let mut below = self.report.unseen.clone();
        below.extend(match silent.len() {
            0 => None,
            many if many > LONG => Some(format!("Not shown by the evidence: what limits {many} other cells.")),
            _ => Some(format!("Not shown by the evidence: what limits {}.", silent.join("; "))),
        });
        let columns = ["condition", "variant", "consistent with this limit", "numbers"].map(words_in).into();
        let note = "What throughput may be limited by, by fixed rules on means over the measure phase. None of it is proof: \
                    other causes can look the same.";
        let open = rows.len() <= LONG;
        let any = self.measured().next().is_some();
        any.then(|| Sheet { open, below, ..Sheet::new("What limits throughput", note, columns, rows) })
    }

    /// The cells that have trials.
    fn measured(&self) -> impl Iterator<Item = &Cell> {
        self.report.cells.iter().filter(|cell| !cell.trials.is_empty())
    }

    /// The cells with trials under the condition that is shown.
    fn first_cells(&self) -> impl Iterator<Item = &Cell> {
        self.report.at(self.report.shown).filter(|cell| !cell.trials.is_empty())
    }

    /// DBT-2's summary of each variant.
    pub(super) fn summaries(&self) -> Vec<Sheet> {
        let cells = self.first_cells().filter(|cell| !cell.transactions.is_empty());
        cells.map(|cell| self.summary(cell)).collect()
    }

    fn summary(&self, cell: &Cell) -> Sheet {
        let is_tpcc = cell.transactions.iter().any(|one| one.limit.is_some());
        let mut columns = vec![words_in("Transaction")];
        columns.extend(["%", "Average", "90th %", "Total", "Rollbacks", "%", "Failed"].map(numbers_in));
        columns.extend(is_tpcc.then(|| words_in("90th % within the limit")));
        let rows = cell.transactions.iter().map(transaction).collect();
        let title = format!("Transactions of {}, {}", self.variant(cell.variant), self.shown());
        let few = cell.transactions.iter().any(|one| one.p90.is_none());
        let note = format!(
            "All transactions of {} together, those that began in the measure phase; throughput counts what ended in it.{}{}",
            counted(cell.trials.len(), "trial"),
            if is_tpcc { " Rollbacks are those that TPC-C asks for, one in a hundred new orders." } else { "" },
            if few { " A 90th percentile takes 100 of them." } else { "" }
        );
        Sheet { below: self.below(cell), open: cell.variant < 2, ..Sheet::new(title, note, columns, rows) }
    }

    /// Throughput, duration, errors and retries, as DBT-2 lists them below its table.
    fn below(&self, cell: &Cell) -> Vec<String> {
        let estimate = self.analysis.estimate(cell.condition, cell.variant, &self.report.throughput);
        let unit = self.report.throughput.unit();
        let throughput = estimate.and_then(|one| one.summary.as_ref().ok()).map(|summary| {
            let interval = estimate.and_then(|one| one.interval.as_ref().ok());
            let interval = interval
                .map(|one| format!(", 95 % interval {} … {}", show(one.low, unit), show(one.high, unit)))
                .unwrap_or_default();
            let what = words::measure(&self.report.throughput);
            format!(
                "Throughput: {} {what} in the geometric mean of the trials, as in charts and comparisons{interval}; {} in \
                 their arithmetic mean, which is that of all trials together",
                grouped(summary.centre.round()),
                grouped(summary.mean.round())
            )
        });
        let trials = cell.trials.len();
        let warmup = self.input.plan.lengths[cell.condition].warmup.as_secs_f64();
        let measured = span(cell.seconds / trials.max(1) as f64);
        throughput
            .into_iter()
            .chain([
                format!("Duration: {measured} measured in each of {}", counted(trials, "trial")),
                format!("Ramp up: {} of warm-up before", span(warmup)),
                format!("Failed transactions: {}", kinds(&cell.errors)),
                format!("Retries, in whole trials: {}", kinds(&cell.retries)),
            ])
            .collect()
    }

    /// A table of quantiles for each transaction, over all cells.
    pub(super) fn latencies(&self) -> Vec<Sheet> {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for one in self.report.cells.iter().flat_map(|cell| &cell.transactions) {
            if !names.contains(&(&one.name, &one.title)) {
                names.push((&one.name, &one.title));
            }
        }
        let several = names.len() > 1;
        names.iter().map(|(name, title)| self.latency(several.then(|| (*name).to_owned()), title)).collect()
    }

    fn latency(&self, name: Option<String>, title: &str) -> Sheet {
        let series = Series::RequestDuration(name);
        let value = |cell: &Cell, statistic| {
            let measure = Measure::new(series.clone(), statistic);
            let estimate = self.analysis.estimate(cell.condition, cell.variant, &measure);
            let summary = estimate.and_then(|one| one.summary.as_ref().ok());
            let largest = statistic == measure::Statistic::Max;
            summary.map_or_else(dash, |one| show(if largest { one.max } else { one.centre }, Unit::Seconds))
        };
        let row = |cell: &Cell| {
            let start = [self.condition(cell.condition), self.variant(cell.variant)];
            start.into_iter().chain(QUANTILES.map(|(_, statistic)| value(cell, statistic))).collect()
        };
        let columns = [words_in("condition"), words_in("variant")];
        Sheet {
            open: false,
            page_only: true,
            ..Sheet::new(
                format!("Latency of {title}"),
                "Geometric means of the trials' percentiles, failed transactions included; –: a trial has too few for it. max: \
                 the longest of all trials.",
                columns.into_iter().chain(QUANTILES.map(|(name, _)| numbers_in(name))).collect(),
                self.measured().map(row).collect(),
            )
        }
    }

    /// The statements of all variants under the condition that is shown: first those that take most of
    /// the time, then all.
    pub(super) fn statements(&self) -> Vec<Sheet> {
        let rows = |most: usize| -> Vec<Vec<String>> {
            let of_cell = |cell: &Cell| {
                let mut statements: Vec<&Statement> = cell.statements.iter().collect();
                if statements.len() > most {
                    statements.sort_by(|one, other| time(other).total_cmp(&time(one)));
                }
                let name = self.variant(cell.variant);
                statements.into_iter().take(most).map(|one| statement(&name, one)).collect::<Vec<_>>()
            };
            self.first_cells().flat_map(of_cell).collect()
        };
        let columns = || {
            let columns = ["variant", "transaction", "statement"].map(words_in).into_iter();
            columns.chain(["runs each", "mean", "longest", "share of its time", "failed"].map(numbers_in)).collect()
        };
        let (most, all) = (rows(MOST), rows(usize::MAX));
        let shown = self.shown();
        let note = format!(
            "The {MOST} of each variant that took most time in all. Share: of all the time of the transaction; what is missing \
             passed between statements. Failed: in whole trials. database.csv has every statement under every condition."
        );
        let sheet = |title: String, note: String, rows| Sheet::new(title, note, columns(), rows).without_empty();
        let first = sheet(format!("Statements that take most time, {shown}"), note, most);
        let every = sheet(format!("All statements, {shown}"), String::new(), all);
        let every = Sheet { open: false, page_only: true, ..every };
        [first, every].into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    /// What was counted: under the condition that is shown a row for each number, then all cells.
    pub(super) fn statistics(&self) -> Vec<Sheet> {
        let mut kinds: Vec<(&str, &str)> = Vec::new();
        for one in self.report.cells.iter().flat_map(|cell| &cell.statistics).filter(|one| !one.own) {
            if !kinds.contains(&(&one.of, &one.name)) {
                kinds.push((&one.of, &one.name));
            }
        }
        if kinds.is_empty() {
            return Vec::new();
        }
        let note = "By the server's own account and the kernel's. Means over the measure phase, and arithmetic means over \
                    the trials, so that they add up (throughput in charts and comparisons is a geometric mean); ± the \
                    standard deviation between trials. Made dirty in the page cache: the kernel counts whole blocks of \
                    pages there, however little was written to one, so this may be many times what reaches the disk.";
        let value = |cell: &Cell, (of, name): (&str, &str)| cell.statistic(of, name).map_or_else(dash, counted_in);
        let first: Vec<&Cell> = self.first_cells().collect();
        let columns = [words_in("")].into_iter().chain(first.iter().map(|cell| numbers_in(self.variant(cell.variant))));
        let rows = kinds
            .iter()
            .map(|kind| [self.counter(*kind)].into_iter().chain(first.iter().map(|cell| value(cell, *kind))).collect());
        let title = format!("Statistics, {}", self.shown());
        let at_first = Sheet::new(title, note, columns.collect(), rows.collect());
        let all = Sheet::new("Statistics under all conditions", "", self.by_condition(), self.of_kinds(&kinds));
        vec![at_first, Sheet { open: false, page_only: true, ..all }]
    }

    fn by_condition(&self) -> Vec<Column> {
        let variants = (0..self.input.plan.variants.len()).map(|variant| numbers_in(self.variant(variant)));
        [words_in(""), words_in("condition")].into_iter().chain(variants).collect()
    }

    /// A row for each number under each condition; none for what was zero everywhere.
    fn of_kinds(&self, kinds: &[(&str, &str)]) -> Vec<Vec<String>> {
        let row = |kind: (&str, &str), condition: usize| {
            let values =
                self.report.at(condition).map(|cell| cell.statistic(kind.0, kind.1).map_or_else(dash, counted_in));
            [self.counter(kind), self.condition(condition)].into_iter().chain(values).collect::<Vec<String>>()
        };
        let counted = |kind: &&(&str, &str)| {
            self.measured().any(|cell| cell.statistic(kind.0, kind.1).is_some_and(|one| one.mean > 0.0))
        };
        let conditions = 0..self.input.plan.conditions.len();
        kinds
            .iter()
            .filter(counted)
            .flat_map(|kind| conditions.clone().map(|condition| row(*kind, condition)))
            .collect()
    }

    /// `commits`, `CPU of host`: of several databases, whose commits.
    fn counter(&self, (of, name): (&str, &str)) -> String {
        let words = name.replace('_', " ");
        let is_only = self.report.databases.len() == 1 && self.report.databases[0] == of && name != "CPU";
        if is_only { words } else { format!("{words} of {of}") }
    }

    pub(super) fn settings(&self) -> Option<Sheet> {
        let row = |database: &str, name: &str, value: &SettingValue| {
            vec![
                database.to_owned(),
                name.to_owned(),
                value.asked.clone().unwrap_or_else(dash),
                value.in_force.clone(),
                value.place.clone(),
                value.risk.clone().unwrap_or_default(),
            ]
        };
        let rows: Vec<Vec<String>> = self
            .report
            .settings
            .iter()
            .flat_map(|one| one.values.iter().map(move |value| row(&one.database, &one.name, value)))
            .collect();
        let columns = ["database", "setting", "asked", "in force", "where", "what can be lost"].map(words_in).into();
        let note =
            "Those that the study asks for, and those that trade safety for speed, as the server says them itself.";
        (!rows.is_empty()).then(|| Sheet::new("Settings", note, columns, rows).without_empty())
    }

    pub(super) fn checks(&self) -> Option<Sheet> {
        let rows: Vec<Vec<String>> = self
            .report
            .checks
            .iter()
            .map(|check| {
                let broken = check.broken.iter().map(|(trial, found)| format!("trial {trial}: {found}"));
                let unseen = check.unseen.first().map(|(_, why)| format!("not looked at: {why}"));
                vec![
                    check.name.clone(),
                    check.held.to_string(),
                    check.broken.len().to_string(),
                    check.unseen.len().to_string(),
                    broken.chain(unseen).collect::<Vec<String>>().join("; "),
                ]
            })
            .collect();
        let columns = vec![
            words_in("condition on the data"),
            numbers_in("trials after which it held"),
            numbers_in("did not hold"),
            numbers_in("was not looked at"),
            words_in("why"),
        ];
        let note = "After every trial, those that do not count included, while its server still runs.";
        (!rows.is_empty()).then(|| Sheet::new("Whether the data is right", note, columns, rows).without_empty())
    }

    pub(super) fn mix(&self) -> Option<Sheet> {
        let both = |mix: &MixCheck, (low, high): (f64, f64)| format!("{} … {}", mix.show(low), mix.show(high));
        let rows: Vec<Vec<String>> = self
            .report
            .mix
            .iter()
            .map(|mix| {
                let wrong = if mix.wrong.is_empty() {
                    "yes".to_owned()
                } else {
                    format!("not in {}", counted(mix.wrong.len(), "trial"))
                };
                vec![mix.name.clone(), mix.trials.to_string(), both(mix, mix.found), both(mix, mix.right), wrong]
            })
            .collect();
        let columns = vec![
            words_in("input"),
            numbers_in("trials"),
            numbers_in("found"),
            numbers_in("allowed"),
            words_in("holds"),
        ];
        let note = "What users were given to do, as shares or means of a trial: the least and the largest. Allowed: what TPC-C \
                    tolerates and chance makes of a trial, most in the one with the fewest inputs; each trial is held \
                    against its own.";
        (!rows.is_empty()).then(|| Sheet {
            open: false,
            ..Sheet::new("Whether the input is mixed as it should be", note, columns, rows)
        })
    }
}

/// What a statement took in all.
fn time(one: &Statement) -> f64 {
    one.mean * one.runs as f64
}

fn statement(variant: &str, one: &Statement) -> Vec<String> {
    vec![
        variant.to_owned(),
        one.transaction.clone(),
        one.statement.clone(),
        one.per_transaction.map_or_else(dash, significant),
        show(one.mean, Unit::Seconds),
        show(one.longest, Unit::Seconds),
        one.share.map_or_else(dash, percent),
        grouped(one.failed as f64),
    ]
}

fn transaction(one: &Transaction) -> Vec<String> {
    let limit = one.limit.map(|limit| {
        let holds = limit.holds.map_or("–", |holds| if holds { "yes" } else { "no" });
        format!("{holds} ({} s)", limit.seconds)
    });
    [
        one.title.clone(),
        format!("{:.2}", one.share * 100.0),
        show(one.mean, Unit::Seconds),
        one.p90.map_or_else(dash, |p90| show(p90, Unit::Seconds)),
        grouped(one.total as f64),
        grouped(one.rollbacks as f64),
        format!("{:.2}", one.rolled_back() * 100.0),
        grouped(one.failed as f64),
    ]
    .into_iter()
    .chain(limit)
    .collect()
}

/// A length of time: `3 s`, `15 minutes`.
fn span(seconds: f64) -> String {
    let (length, unit) = if seconds < 120.0 { (seconds, "s") } else { (seconds / 60.0, "minutes") };
    format!("{} {unit}", (length * 10.0).round() / 10.0)
}

/// `0`, or `6 (deadlock 4, lock_timeout 2)`.
fn kinds(counts: &BTreeMap<ErrorKind, u64>) -> String {
    let all: u64 = counts.values().sum();
    let kinds: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{kind} {}", grouped(*count as f64)))
        .collect();
    if kinds.is_empty() { "0".to_owned() } else { format!("{} ({})", grouped(all as f64), kinds.join(", ")) }
}

fn counted_in(one: &Statistic) -> String {
    let value = match one.unit {
        Unit::Count if one.mean > 0.0 && one.mean < 0.0995 => format!("{:.3}", one.mean),
        Unit::Count => significant(one.mean),
        Unit::Share => hundredths(one.mean),
        unit => show(one.mean, unit),
    };
    match one.sd.filter(|sd| *sd > 0.0 && one.mean > 0.0) {
        Some(sd) => format!("{value} ± {}", percent(sd / one.mean)),
        None => value,
    }
}

/// A share that may be close to all: `99.61 %`.
fn hundredths(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
