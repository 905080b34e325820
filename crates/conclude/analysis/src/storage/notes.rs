//! Puts the cells into words: the fastest and the steadiest back end over ranges of sizes, cells
//! whose mean and median are apart and why, cells that measure a cache. Nothing is claimed where
//! intervals overlap.

use super::cell::OUTLYING;
use super::{Cell, Row, StorageTrial, Table};
use crate::distinct::distinct;
use crate::estimate::Interval;
use crate::extremes::{Extremes, extremes, runs};
use crate::input::Input;
use crate::order;
use crate::quantity::{grouped, multiple, percent, show, size_of_change};
use crate::reason::OrReason;
use crate::words::{self, counted};
use plimsoll_model::measure::Unit;
use plimsoll_model::words::and_list;
use std::ops::Range;

/// A cell with fewer operations has no quantile besides the median.
const MIN_OPERATIONS_FOR_QUANTILES: u64 = 20;

/// Why a note may claim what a verdict does not.
const CLAIMS_REST_ON_INTERVALS: &str = "Who is fastest, slowest or steadiest is said of means whose 95 % intervals do not overlap. Verdicts \
    ask for more: they allow for several comparisons and for the noise floor.";

/// The notes of a table.
pub(super) fn of_table(input: &Input, table: &Table) -> Vec<String> {
    let notes = Notes { input, table };
    let several = (0..input.plan.variants.len()).filter(|variant| notes.is_known(*variant)).count() > 1;
    let compared = if several { [notes.fastest(), notes.steadiest()].concat() } else { Vec::new() };
    [compared, notes.means_and_medians(), notes.caches()].concat()
}

/// The notes about all tables.
pub(super) fn of_study(input: &Input, places: &[StorageTrial<'_>], tables: &[Table]) -> Vec<String> {
    let rows = || tables.iter().flat_map(|table| &table.rows);
    let sizes = distinct(rows().map(|row| format!("{} is {} bytes", row.label, grouped(row.size as f64))));
    let few = rows().flat_map(Row::known).filter(|(_, cell)| cell.operations < MIN_OPERATIONS_FOR_QUANTILES).count();
    let few = (few > 0).then(|| {
        let cells = counted(few, "cell");
        format!(
            "{cells} of {} with fewer than {MIN_OPERATIONS_FOR_QUANTILES} operations: the median alone stands beside the mean.",
            rows().flat_map(Row::known).count()
        )
    });
    let silent = (0..input.plan.conditions.len())
        .filter(|condition| !places.iter().any(|place| place.reader.trial().condition() == *condition))
        .map(|condition| {
            let condition = words::condition_in(&input.plan, condition);
            format!("Of {condition} there is no row: no trial there came so far as to store anything.")
        });
    let ranked = (input.plan.variants.len() > 1).then(|| CLAIMS_REST_ON_INTERVALS.to_owned());
    [format!("Sizes: {}.", sizes.join(", "))].into_iter().chain(ranked).chain(few).chain(silent).collect()
}

struct Notes<'a> {
    input: &'a Input,
    table: &'a Table,
}

impl Notes<'_> {
    fn name(&self, variant: usize) -> String {
        self.input.plan.label(variant)
    }

    fn names(&self, variants: &[usize]) -> String {
        and_list(variants.iter().map(|variant| self.name(*variant)).collect::<Vec<_>>())
    }

    fn is_known(&self, variant: usize) -> bool {
        self.table.rows.iter().any(|row| row.cells[variant].is_ok())
    }

    fn cell(&self, row: usize, variant: usize) -> Option<&Cell> {
        self.table.rows[row].cells[variant].as_ref().ok()
    }

    /// A range of rows, as in a sentence: `at 1MB`, `from 1MB to 100MB`, `at all sizes`.
    fn at(&self, rows: &Range<usize>) -> String {
        let label = |row: usize| &self.table.rows[row].label;
        match rows.len() {
            1 => format!("at {}", label(rows.start)),
            all if all == self.table.rows.len() => "at all sizes".to_owned(),
            _ => format!("from {} to {}", label(rows.start), label(rows.end - 1)),
        }
    }

    /// The lowest and the highest in each row, by the intervals that `of` gives.
    fn extremes_by_row(&self, of: impl Fn(&Cell) -> OrReason<Interval>) -> Vec<OrReason<Extremes>> {
        let interval = |variant: usize, cell: &OrReason<Cell>| {
            let cell = cell.as_ref().map_err(|reason| format!("{} has no result ({reason})", self.name(variant)))?;
            of(cell).map_err(|reason| format!("{} has no interval ({reason})", self.name(variant)))
        };
        let in_row = |row: &Row| {
            if self.is_sequential(row) {
                return Err("variants did not take turns".to_owned());
            }
            extremes(row.cells.iter().enumerate().map(|(variant, cell)| interval(variant, cell)))
        };
        self.table.rows.iter().map(in_row).collect()
    }

    fn is_sequential(&self, row: &Row) -> bool {
        let variants = 1..self.input.plan.variants.len();
        row.conditions
            .iter()
            .any(|condition| variants.clone().any(|variant| order::sequential(self.input, *condition, variant)))
    }

    fn fastest(&self) -> Vec<String> {
        let extremes_by_row = self.extremes_by_row(|cell| cell.interval.clone());
        let runs_of_first = runs(extremes_by_row.iter().map(|one| one.as_ref().map(|extremes| &extremes.first)));
        let first = runs_of_first.iter().map(|(rows, first)| match first {
            Err(reason) => format!("Who is the fastest {} cannot be said: {reason}.", self.at(rows)),
            Ok(first) => self.lead(rows, first),
        });
        let alone: Vec<(&Range<usize>, usize)> = runs_of_first
            .iter()
            .filter_map(|(rows, first)| match first.as_ref().ok()?[..] {
                [only] => Some((rows, only)),
                _ => None,
            })
            .collect();
        let crossovers =
            alone.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| self.crossover(pair[0], pair[1]));
        first.chain(crossovers).chain(self.slowest(&extremes_by_row)).collect()
    }

    fn lead(&self, rows: &Range<usize>, first: &[usize]) -> String {
        let (at, names) = (self.at(rows), self.names(first));
        match *first {
            [only] => {
                let cached = rows.clone().any(|row| self.cell(row, only).is_some_and(Cell::is_cache));
                let from_cache = if cached { " (from the page cache, not from storage)" } else { "" };
                let ends = distinct([rows.start, rows.end - 1]);
                let next: Vec<String> = ends.into_iter().filter_map(|row| self.next(row, only)).collect();
                format!("{names} is the fastest {at}{from_cache}: the next takes {}.", next.join(", "))
            }
            _ if first.len() == self.table.rows[rows.start].cells.len() => {
                format!("Nobody is shown to be the fastest {at}: the intervals of {names} overlap.")
            }
            _ => {
                format!("{names} are ahead {at}; their intervals overlap, so none of them is shown to be the fastest.")
            }
        }
    }

    /// The lead over the second: `3 times as long at 1MB (nfs)`.
    fn next(&self, row: usize, fastest: usize) -> Option<String> {
        let least = self.cell(row, fastest)?.centre();
        let others = self.table.rows[row].known().filter(|(variant, _)| *variant != fastest);
        let (variant, next) = others.min_by(|one, other| one.1.centre().total_cmp(&other.1.centre()))?;
        let ratio = next.centre() / least;
        // Up to here a percentage is clearer than a multiple.
        let longer = if ratio < 1.95 {
            format!("{} longer", size_of_change(ratio))
        } else {
            format!("{} times as long", multiple(ratio))
        };
        Some(format!("{longer} at {} ({})", self.table.rows[row].label, self.name(variant)))
    }

    fn crossover(&self, (before, first): (&Range<usize>, usize), (after, then): (&Range<usize>, usize)) -> String {
        let label = |row: usize| &self.table.rows[row].label;
        let (before, after) = (label(before.end - 1), label(after.start));
        let (first, then) = (self.name(first), self.name(then));
        format!("A crossover lies between {before}, where {first} is the fastest, and {after}, where {then} is.")
    }

    /// The slowest back ends. Between two back ends, the fastest implies the slowest.
    fn slowest(&self, extremes_by_row: &[OrReason<Extremes>]) -> Vec<String> {
        let last = extremes_by_row.iter().map(|one| one.as_ref().ok().and_then(|extremes| extremes.last));
        runs(last)
            .into_iter()
            .filter(|_| self.input.plan.variants.len() > 2)
            .filter_map(|(rows, last)| Some(format!("{} is the slowest {}.", self.name(last?), self.at(&rows))))
            .collect()
    }

    fn steadiest(&self) -> Vec<String> {
        let extremes_by_row = self.extremes_by_row(|cell| Ok(cell.spread.clone()?.interval));
        let steadiest: Vec<String> =
            runs(extremes_by_row.iter().map(|one| one.as_ref().ok().map(|extremes| &extremes.first)))
                .iter()
                .filter_map(|(rows, first)| match first.as_ref()?[..] {
                    [only] => self.steady(rows, only),
                    _ => None,
                })
                .collect();
        match extremes_by_row.iter().find_map(|one| one.as_ref().err()) {
            _ if !steadiest.is_empty() => steadiest,
            Some(reason) if extremes_by_row.iter().all(Result::is_err) => {
                vec![format!("Who is the steadiest cannot be said: {reason}.")]
            }
            _ => vec!["Nobody is shown to be the steadiest at any size.".to_owned()],
        }
    }

    fn steady(&self, rows: &Range<usize>, steadiest: usize) -> Option<String> {
        let spread = |cell: &Cell| Some(cell.spread.as_ref().ok()?.centre);
        let row = rows.start;
        let least = spread(self.cell(row, steadiest)?)?;
        let others = self.table.rows[row].known().filter(|(variant, _)| *variant != steadiest);
        let spreads = others.filter_map(|(variant, cell)| Some((variant, spread(cell)?)));
        let (variant, next) = spreads.min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(format!(
            "{} is the steadiest {}: the operations of a trial differ by ±{} (standard deviation over mean) at {}, those of \
             the next by ±{} ({}).",
            self.name(steadiest),
            self.at(rows),
            percent(least),
            self.table.rows[row].label,
            percent(next),
            self.name(variant)
        ))
    }

    /// Cells whose mean says little about most operations.
    fn means_and_medians(&self) -> Vec<String> {
        let cells = self.table.rows.iter().flat_map(|row| row.known().map(move |(variant, cell)| (row, variant, cell)));
        cells.filter_map(|(row, variant, cell)| self.mean_and_median(row, variant, cell)).collect()
    }

    fn mean_and_median(&self, row: &Row, variant: usize, cell: &Cell) -> Option<String> {
        let outliers = cell.outliers.as_ref()?;
        let seconds = |value: f64| show(value, Unit::Seconds);
        let sd = cell.sd.map(|sd| format!(", standard deviation {}", seconds(sd))).unwrap_or_default();
        let why = if outliers.count == 0 {
            "The times lie far apart; none is more than 5 times the median.".to_owned()
        } else {
            format!(
                "{} of {} operations took more than {OUTLYING} times the median, and {} of all the time; without, the mean is \
                 {}.",
                grouped(outliers.count as f64),
                grouped(cell.operations as f64),
                percent(outliers.share_of_time),
                seconds(outliers.mean_without)
            )
        };
        let whose = if outliers.count == 1 { "It was" } else { "All of them were" };
        let only = outliers.only_in.map(|trial| format!(" {whose} in trial {trial}.")).unwrap_or_default();
        let (mean, median) = (seconds(cell.mean), seconds(cell.quantiles.p50));
        Some(format!("{} at {}: mean {mean}, median {median}{sd}. {why}{only}", self.name(variant), row.label))
    }

    /// Cells that measure memory.
    fn caches(&self) -> Vec<String> {
        let variants = 0..self.input.plan.variants.len();
        variants.flat_map(|variant| self.caches_of(variant)).collect()
    }

    fn caches_of(&self, variant: usize) -> Vec<String> {
        let cached = |row: usize| self.cell(row, variant).filter(|cell| cell.is_cache())?.cached;
        let is_cache = runs((0..self.table.rows.len()).map(|row| cached(row).is_some()));
        let tell = |rows: Range<usize>| {
            let least = rows.clone().filter_map(cached).fold(1.0, f64::min);
            let share = if least < 0.9995 { format!("{} or more", percent(least)) } else { "all".to_owned() };
            let (name, at) = (self.name(variant), self.at(&rows));
            format!(
                "{name} {at}: {share} of what was read lay in the page cache. That is the speed of memory, not of storage."
            )
        };
        is_cache.into_iter().filter(|(_, is_cache)| *is_cache).map(|(rows, _)| tell(rows)).collect()
    }
}
