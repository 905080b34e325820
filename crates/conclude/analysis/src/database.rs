//! Databases: the throughput of each setting, the durations of transactions and their statements,
//! the counters of the server, its settings, and the checks of its data.
//!
//! A cell is a variant under a condition, over the trials that count. Settings and checks cover all
//! trials, including those that do not count: a violated condition is a reason not to count.

mod best;
mod bottleneck;
mod cell;
mod checks;
mod leaders;
mod server;
mod settings;
mod statements;
mod statistics;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transactions;

pub use best::{Best, BestOfGrid, BestRatio, BestRow, Ratio};
pub use bottleneck::PossibleLimit;
pub use cell::{CancelledStatements, Cell};
pub use checks::{Check, MixCheck};
pub use server::Server;
pub use settings::{SettingRow, SettingValue};
pub use statements::Statement;
pub use statistics::Statistic;
pub use transactions::{Limit, Transaction};

use crate::distinct::distinct;
use crate::grid::Grid;
use crate::input::Input;
use crate::measure::TrialReader;
use crate::numbers::Numbers;
use crate::words;
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::measure::{self, Measure, Series};
use plimsoll_model::record::Subject;
use plimsoll_model::sql::NEW_ORDER;

/// The results about the databases of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseReport {
    /// The known facts about each server.
    pub servers: Vec<Server>,
    /// The names of the databases.
    pub databases: Vec<String>,
    /// True if the load is SQL; otherwise the databases stand behind something else.
    pub is_sql: bool,
    /// The measure of throughput: new orders per minute, or iterations per second.
    pub throughput: Measure,
    /// The conditions along an axis: the combinations of the other factors are the settings.
    pub grid: Grid,
    /// Each variant at its best setting, where there are two settings or more.
    pub best: Option<BestOfGrid>,
    /// The variant with the highest throughput, and where that changes, in words.
    pub ahead: Vec<String>,
    /// The doubt about the noise floor of throughput, in words; none where there is no doubt.
    pub doubt: Option<String>,
    /// By condition, then by variant.
    pub cells: Vec<Cell>,
    /// The condition under which the baseline has the highest throughput: its tables come first.
    pub shown: usize,
    /// Counters that the rules for limits need and no server provides, in words.
    pub not_counted: Vec<String>,
    /// The settings in force.
    pub settings: Vec<SettingRow>,
    /// The conditions that the data must meet.
    pub checks: Vec<Check>,
    /// The checks of the input mix.
    pub mix: Vec<MixCheck>,
}

impl DatabaseReport {
    /// The cells of a condition, by variant.
    pub fn at(&self, condition: usize) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.condition == condition)
    }
}

/// The database report; none where the study has no databases. It uses the estimates and
/// comparisons that are known already.
pub(crate) fn report(input: &Input, readers: &[TrialReader<'_>], numbers: Numbers<'_>) -> Option<DatabaseReport> {
    all(readers).next()?;
    let is_sql = readers.iter().any(|reader| work(reader).is_some());
    let grid = Grid::new(&input.facts, &input.plan);
    let throughput = throughput(readers);
    let context = ReportContext { input, readers, numbers, grid: &grid, throughput: &throughput };
    let databases = distinct(all(readers).map(|facts| facts.name.clone()));
    let cells = cell::cells(&context);
    Some(DatabaseReport {
        servers: server::servers(&context),
        not_counted: bottleneck::not_counted(&cells, &databases),
        databases,
        is_sql,
        best: is_sql.then(|| best::best(&context)).flatten(),
        doubt: is_sql.then(|| doubt(&context)).flatten(),
        ahead: if is_sql { leaders::sentences(&context) } else { Vec::new() },
        cells,
        shown: shown(&context),
        settings: settings::settings(&context),
        checks: checks::checks(readers),
        mix: checks::mix(readers),
        throughput: throughput.clone(),
        grid: grid.clone(),
    })
}

/// The facts about databases from all trials.
fn all<'a>(readers: &'a [TrialReader<'_>]) -> impl Iterator<Item = &'a DatabaseFacts> {
    readers.iter().flat_map(|reader| reader.trial().databases())
}

/// The inputs of every part of the report.
struct ReportContext<'a> {
    input: &'a Input,
    /// The trials whose block was not run again.
    readers: &'a [TrialReader<'a>],
    numbers: Numbers<'a>,
    grid: &'a Grid,
    throughput: &'a Measure,
}

impl<'a> ReportContext<'a> {
    /// The trials of a cell that count.
    fn counted(&self, condition: usize, variant: usize) -> Vec<&'a TrialReader<'a>> {
        self.readers.iter().filter(|reader| reader.is_of(condition, variant) && reader.counts()).collect()
    }

    /// The throughput of a cell, if it has any.
    fn centre(&self, condition: usize, variant: usize) -> Option<f64> {
        let estimate = self.numbers.estimate(condition, variant, self.throughput)?;
        Some(estimate.summary.as_ref().ok()?.centre)
    }

    fn variants(&self) -> std::ops::Range<usize> {
        0..self.input.plan.variants.len()
    }
}

/// The database that the load works on, if the load is SQL.
fn work<'a>(reader: &TrialReader<'a>) -> Option<&'a DatabaseFacts> {
    reader.trial().databases().iter().find(|facts| !facts.work.workload.is_empty())
}

fn throughput(readers: &[TrialReader<'_>]) -> Measure {
    let new_order = Subject::Request(NEW_ORDER.to_owned());
    let is_tpcc = readers.iter().any(|reader| reader.tally(&new_order).is_some());
    let series = if is_tpcc { Series::NewOrders } else { Series::Iterations };
    Measure::new(series, measure::Statistic::Rate)
}

/// The doubt about the noise floor. A system that differs from itself leaves no verdict, so the
/// text beside the verdicts says so as well.
fn doubt(context: &ReportContext<'_>) -> Option<String> {
    let margin = crate::catalogue::margin(&context.input.facts, context.throughput)?;
    let floors = context.numbers.floors.iter().filter(|floor| floor.measure == *context.throughput);
    let doubtful: Vec<usize> = floors
        .filter(|floor| floor.doubt(&context.input.plan, margin).is_some())
        .map(|floor| floor.condition)
        .collect();
    (!doubtful.is_empty()).then(|| {
        format!(
            "The noise floor of throughput is in doubt{}: differences there may be the machine's.",
            words::conditions(&context.input.plan, &doubtful)
        )
    })
}

fn shown(context: &ReportContext<'_>) -> usize {
    let conditions = 0..context.input.plan.conditions.len();
    let known = conditions.filter_map(|condition| Some((condition, context.centre(condition, 0)?)));
    known.max_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(condition, _)| condition)
}
