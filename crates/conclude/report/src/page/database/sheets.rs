//! The tables: possible limits of cells, DBT-2's summary, latencies, statements, statistics,
//! settings, checks.

use super::{Column, DatabaseTables, Sheet, dash, numbers_in, words_in};
use plimsoll_analysis::database::{
    CancelledStatements, Cell, Check, MixCheck, PossibleLimit, SettingValue, Statement, Statistic, Transaction,
};
use plimsoll_analysis::quantity::{grouped, percent, show, significant};
use plimsoll_analysis::words::{self, counted};
use plimsoll_model::measure::{self, Measure, Series, Unit};
use plimsoll_model::record::ErrorKind;
use std::collections::BTreeMap;

/// A table with at least this many rows is folded at first.
const LONG: usize = 12;

/// The most statements of a variant in the first table.
const MOST: usize = 6;

/// Quantiles of a latency.
const QUANTILES: [(&str, measure::Statistic); 5] = [
    ("p50", measure::Statistic::Med),
    ("p90", measure::Statistic::Percentile(90.0)),
    ("p95", measure::Statistic::Percentile(95.0)),
    ("p99", measure::Statistic::Percentile(99.0)),
    ("max", measure::Statistic::Max),
];

const LATENCY: &str = "Geometric means of the trials' percentiles, failed transactions included; –: a trial has too few \
                       for it. max: the longest of all trials.";

impl DatabaseTables<'_> {
    /// The possible limits of the cells.
    pub(super) fn limits(&self) -> Option<Sheet> {
        let row = |cell: &Cell, suspect: &PossibleLimit| {
            let place = [self.condition(cell.condition), self.variant(cell.variant)];
            place.into_iter().chain([suspect.what.to_owned(), suspect.evidence.clone()]).collect()
        };
        let rows: Vec<Vec<String>> =
            self.measured().flat_map(|cell| cell.possible_limits.iter().map(move |one| row(cell, one))).collect();
        let silent: Vec<String> = self
            .measured()
            .filter(|cell| cell.possible_limits.is_empty())
            .map(|cell| format!("{}, {}", self.condition(cell.condition), self.variant(cell.variant)))
            .collect();
        let mut below = self.report.not_counted.clone();
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

    /// The cells with trials under the condition that comes first.
    fn first_cells(&self) -> impl Iterator<Item = &Cell> {
        self.report.at(self.report.shown).filter(|cell| !cell.trials.is_empty())
    }

    /// DBT-2's summary of each variant; then, where there are other conditions, of all cells.
    pub(super) fn summaries(&self) -> Vec<Sheet> {
        let first = self.first_cells().filter(|cell| !cell.transactions.is_empty());
        let others = (self.input.plan.conditions.len() > 1).then(|| self.all_transactions());
        first.map(|cell| self.summary(cell)).chain(others.filter(|sheet| !sheet.rows.is_empty())).collect()
    }

    fn all_transactions(&self) -> Sheet {
        let row = |cell: &Cell, one: &Transaction| {
            let place = [self.condition(cell.condition), self.variant(cell.variant)];
            place.into_iter().chain(transaction(one)).collect()
        };
        let rows = self.measured().flat_map(|cell| cell.transactions.iter().map(move |one| row(cell, one))).collect();
        let is_tpcc = self.measured().any(Cell::is_tpcc);
        let columns = ["condition", "variant"].map(words_in).into_iter().chain(of_transactions(is_tpcc)).collect();
        let sheet = Sheet::new("Transactions under all conditions", "", columns, rows);
        Sheet { open: false, page_only: true, ..sheet }
    }

    fn summary(&self, cell: &Cell) -> Sheet {
        let is_tpcc = cell.is_tpcc();
        let columns = of_transactions(is_tpcc).collect();
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
            .chain(ended(cell.cancels))
            .collect()
    }

    /// Quantiles of all transactions under the condition that comes first; then, where there are
    /// others, a table for each transaction over all cells.
    pub(super) fn latencies(&self) -> Vec<Sheet> {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for one in self.report.cells.iter().flat_map(|cell| &cell.transactions) {
            if !names.contains(&(&one.name, &one.title)) {
                names.push((&one.name, &one.title));
            }
        }
        let several = names.len() > 1;
        let series = |name: &str| Series::RequestDuration(several.then(|| name.to_owned()));
        let row = |(name, title): &(&str, &str), cell: &Cell| {
            let start = [(*title).to_owned(), self.variant(cell.variant)];
            start.into_iter().chain(self.quantiles(cell, &series(name))).collect()
        };
        let rows = names.iter().flat_map(|name| self.first_cells().map(move |cell| row(name, cell))).collect();
        let columns = [words_in("transaction"), words_in("variant")].into_iter();
        let columns = columns.chain(QUANTILES.map(|(name, _)| numbers_in(name))).collect();
        let first = Sheet::new(format!("Latency of transactions, {}", self.shown()), LATENCY, columns, rows);
        let is_all = self.input.plan.conditions.len() == 1;
        let over_all = names.iter().filter(|_| !is_all).map(|(name, title)| self.latency(&series(name), title));
        [first].into_iter().filter(|sheet| !sheet.rows.is_empty()).chain(over_all).collect()
    }

    fn latency(&self, series: &Series, title: &str) -> Sheet {
        let row = |cell: &Cell| {
            let start = [self.condition(cell.condition), self.variant(cell.variant)];
            start.into_iter().chain(self.quantiles(cell, series)).collect()
        };
        let columns = [words_in("condition"), words_in("variant")].into_iter();
        let columns = columns.chain(QUANTILES.map(|(name, _)| numbers_in(name))).collect();
        let sheet = Sheet::new(format!("Latency of {title}"), "", columns, self.measured().map(row).collect());
        Sheet { open: false, page_only: true, ..sheet }
    }

    fn quantiles(&self, cell: &Cell, series: &Series) -> [String; QUANTILES.len()] {
        QUANTILES.map(|(_, statistic)| {
            let measure = Measure::new(series.clone(), statistic);
            let estimate = self.analysis.estimate(cell.condition, cell.variant, &measure);
            let summary = estimate.and_then(|one| one.summary.as_ref().ok());
            let largest = statistic == measure::Statistic::Max;
            summary.map_or_else(dash, |one| show(if largest { one.max } else { one.centre }, Unit::Seconds))
        })
    }

    /// The statements of all variants under the condition that comes first: those that take most of
    /// the time, then, where there are more, those of each transaction.
    pub(super) fn statements(&self) -> Vec<Sheet> {
        let most = self.first_cells().flat_map(|cell| {
            let mut statements: Vec<&Statement> = cell.statements.iter().collect();
            if statements.len() > MOST {
                statements.sort_by(|one, other| time(other).total_cmp(&time(one)));
            }
            let start = |one: &Statement| [self.variant(cell.variant), one.transaction.clone(), one.statement.clone()];
            statements.into_iter().take(MOST).map(|one| statement(&start(one), one)).collect::<Vec<_>>()
        });
        let note = format!(
            "The {MOST} of each variant that took most time in all. p50 to p99: geometric means of the trials' percentiles; –: a \
             trial has too few runs for it. Share: of all the time of the transaction; what is missing passed between \
             statements. Failed: in whole trials. database.csv has every statement under every condition."
        );
        let title = format!("Statements that take most time, {}", self.shown());
        let first = of_statements(title, note, &["variant", "transaction", "statement"], most.collect());
        let is_all = self.first_cells().all(|cell| cell.statements.len() <= MOST);
        let mut transactions: Vec<&str> = Vec::new();
        for one in self.first_cells().flat_map(|cell| &cell.statements).filter(|_| !is_all) {
            if !transactions.contains(&one.transaction.as_str()) {
                transactions.push(&one.transaction);
            }
        }
        let each = transactions.into_iter().map(|transaction| self.statements_of(transaction));
        [first].into_iter().chain(each).filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    /// All statements of a transaction, each with its variants below one another.
    fn statements_of(&self, transaction: &str) -> Sheet {
        let of_cell = |cell: &'_ Cell| {
            let these = cell.statements.iter().filter(|one| one.transaction == transaction).enumerate();
            let variant = self.variant(cell.variant);
            these
                .map(|(at, one)| (at, statement(&[one.statement.clone(), variant.clone()], one)))
                .collect::<Vec<(usize, Vec<String>)>>()
        };
        let mut rows: Vec<(usize, Vec<String>)> = self.first_cells().flat_map(of_cell).collect();
        rows.sort_by_key(|(at, _)| *at);
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        let title = format!("Statements of {transaction}, {}", self.shown());
        Sheet { open: false, ..of_statements(title, String::new(), &["statement", "variant"], rows) }
    }

    /// The counters: under the condition that comes first a row for each number, then all cells.
    pub(super) fn statistics(&self) -> Vec<Sheet> {
        let mut kinds: Vec<(&str, &str)> = Vec::new();
        for one in self.report.cells.iter().flat_map(|cell| &cell.statistics).filter(|one| !one.own_name) {
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

    /// A row for each number under each condition; none for numbers that are zero everywhere.
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
                value.requested.clone().unwrap_or_else(dash),
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
        let checks = &self.report.checks;
        let columns = vec![
            words_in("condition on the data"),
            words_in("after the load"),
            numbers_in("trials after which it held"),
            numbers_in("did not hold"),
            numbers_in("was not looked at"),
            words_in("why"),
        ];
        let is_tpcc = self.report.cells.iter().any(Cell::is_tpcc);
        let note = if is_tpcc {
            "After every trial, those that do not count included, while its server still runs; and once when the data was \
             loaded, before any trial."
        } else {
            "After every trial, those that do not count included, while its server still runs."
        };
        let below = match checks.iter().filter(|check| check.is_of_load_alone()).count() {
            _ if !is_tpcc => None,
            0 => Some(
                "Not looked at: condition 11 of TPC-C, which holds only of data as it was loaded. Either Plimsoll did not \
                 load it, or an older one did.",
            ),
            all if all == checks.len() => Some("None was looked at after a trial."),
            _ => Some("Without a trial: what holds only as long as nothing was ordered or delivered."),
        };
        let sheet = Sheet::new("Whether the data is right", note, columns, checks.iter().map(check).collect());
        (!checks.is_empty())
            .then(|| Sheet { below: below.map(str::to_owned).into_iter().collect(), ..sheet.without_empty() })
    }

    pub(super) fn mix(&self) -> Option<Sheet> {
        let both = |mix: &MixCheck, (low, high): (f64, f64)| format!("{} … {}", mix.show(low), mix.show(high));
        let rows: Vec<Vec<String>> = self
            .report
            .mix
            .iter()
            .map(|mix| {
                let wrong = if mix.outside.is_empty() {
                    "yes".to_owned()
                } else {
                    format!("not in {}", counted(mix.outside.len(), "trial"))
                };
                vec![mix.name.clone(), mix.trials.to_string(), both(mix, mix.observed), both(mix, mix.allowed), wrong]
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

fn check(check: &Check) -> Vec<String> {
    let loaded = check.loaded.as_ref().map_or_else(dash, |loaded| match loaded {
        Ok(()) => "held".to_owned(),
        Err(why) => format!("not looked at: {why}"),
    });
    let number = |count: usize| if check.is_of_load_alone() { dash() } else { count.to_string() };
    let broken = check.violated.iter().map(|(trial, found)| format!("trial {trial}: {found}"));
    let unseen = check.not_checked.first().map(|(_, why)| format!("not looked at: {why}"));
    let why = broken.chain(unseen).collect::<Vec<String>>().join("; ");
    let counts = [check.passed, check.violated.len(), check.not_checked.len()].map(number);
    [check.name.clone(), loaded].into_iter().chain(counts).chain([why]).collect()
}

/// The total time of a statement.
fn time(one: &Statement) -> f64 {
    one.mean * one.runs as f64
}

/// A table of statements, whose rows start with these columns.
fn of_statements(title: String, note: String, start: &[&str], rows: Vec<Vec<String>>) -> Sheet {
    let start = start.iter().copied().map(words_in);
    let numbers = ["runs each", "mean", "p50", "p95", "p99", "longest", "share of its time", "failed"];
    Sheet::new(title, note, start.chain(numbers.map(numbers_in)).collect(), rows).without_empty()
}

fn statement(start: &[String], one: &Statement) -> Vec<String> {
    let time = |seconds| show(seconds, Unit::Seconds);
    let start = start.iter().cloned().chain([one.per_transaction.map_or_else(dash, significant), time(one.mean)]);
    let percentiles = one.percentiles.map(|percentile| percentile.map_or_else(dash, time));
    let end = [time(one.longest), one.share.map_or_else(dash, percent), grouped(one.failed as f64)];
    start.chain(percentiles).chain(end).collect()
}

/// DBT-2's columns.
fn of_transactions(is_tpcc: bool) -> impl Iterator<Item = Column> {
    let numbers = ["%", "Average", "90th %", "Total", "Rollbacks", "%", "Failed"].map(numbers_in);
    let limit = is_tpcc.then(|| words_in("90th % within the limit"));
    [words_in("Transaction")].into_iter().chain(numbers).chain(limit)
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

/// The number of statements that the server was asked to cancel.
fn ended(CancelledStatements { requested: asked, failed }: CancelledStatements) -> Option<String> {
    let unheard = if failed > 0 {
        format!("; {} not heard, whose statements may have gone on", grouped(failed as f64))
    } else {
        String::new()
    };
    (asked > 0).then(|| {
        format!("Asked to end a statement whose time was up: {} times, in whole trials{unheard}", grouped(asked as f64))
    })
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
