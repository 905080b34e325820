//! Storage: the durations of operations on objects of each size, on each back end.
//!
//! A table covers one timed operation under one combination of the conditions besides size; its
//! rows are the sizes, its columns the variants. A cell covers all operations of the trials that
//! count, and its interval is over trials, as everywhere. Notes put the cells into words, and claim
//! nothing that their intervals do not support.

mod back_end;
mod cell;
mod distribution;
mod notes;
mod sizes;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use back_end::BackEnd;
pub(crate) use back_end::{LOOPBACK, is_loopback};
pub use cell::{Cell, Outliers, Quantiles, Spread, Subrequests, TrialTiming};

use crate::distinct::distinct;
use crate::input::Input;
use crate::measure::TrialReader;
use crate::reason::OrReason;
use crate::words;
use plimsoll_model::factor::Assignment;
use plimsoll_model::storage::{StorageFacts, StorageStep};
use sizes::Sizes;
use std::collections::BTreeSet;

/// The results of a storage study.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageReport {
    /// The known facts about each variant's back end, in the order of the variants.
    pub back_ends: Vec<BackEnd>,
    /// By operation, then by the conditions besides size.
    pub tables: Vec<Table>,
    /// Notes about all tables.
    pub notes: Vec<String>,
}

/// A timed operation under one combination of the conditions besides size.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The operation.
    pub step: StorageStep,
    /// The levels of the conditions besides size.
    pub under: Assignment,
    /// One for each size, ascending.
    pub rows: Vec<Row>,
    /// Notes about the cells.
    pub notes: Vec<String>,
}

/// Objects of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Bytes of an object.
    pub size: u64,
    /// The size as the study writes it.
    pub label: String,
    /// Indices of the plan's conditions with this size.
    pub conditions: Vec<usize>,
    /// One cell for each variant, or the reason why there is none.
    pub cells: Vec<OrReason<Cell>>,
}

impl Table {
    /// The operation with its conditions: `write, 10 users`.
    #[must_use]
    pub fn title(&self) -> String {
        let StorageStep { name, .. } = &self.step;
        if self.under.0.is_empty() { name.clone() } else { format!("{name}, {}", words::condition(&self.under)) }
    }
}

impl Row {
    /// The cells that exist, with the indices of their variants.
    pub fn known(&self) -> impl Iterator<Item = (usize, &Cell)> {
        self.cells.iter().enumerate().filter_map(|(variant, cell)| Some((variant, cell.as_ref().ok()?)))
    }
}

/// A trial with the facts about its storage.
#[derive(Clone, Copy)]
struct StorageTrial<'a> {
    reader: &'a TrialReader<'a>,
    facts: &'a StorageFacts,
}

/// The storage report; none where the trials have no facts about storage.
pub(crate) fn report(input: &Input, readers: &[TrialReader<'_>]) -> Option<StorageReport> {
    let places: Vec<StorageTrial<'_>> = readers.iter().filter_map(|reader| place(input, reader)).collect();
    let tables = Tables { input, sizes: Sizes::new(input, &places), places: &places }.all();
    (!places.is_empty()).then(|| StorageReport {
        back_ends: back_end::back_ends(input, &places),
        notes: notes::of_study(input, &places, &tables),
        tables,
    })
}

/// The duplicate of the baseline is no back end.
fn place<'a>(input: &Input, reader: &'a TrialReader<'a>) -> Option<StorageTrial<'a>> {
    let facts = reader.load().summary.work.storage()?;
    (reader.trial().variant() < input.plan.variants.len()).then_some(StorageTrial { reader, facts })
}

/// Builds the tables.
struct Tables<'a> {
    input: &'a Input,
    sizes: Sizes,
    places: &'a [StorageTrial<'a>],
}

impl Tables<'_> {
    fn all(&self) -> Vec<Table> {
        let steps = distinct(self.places.iter().flat_map(|place| &place.facts.steps).cloned());
        let unders = distinct(self.input.plan.conditions.iter().map(|condition| self.sizes.without(condition)));
        let tables = steps.iter().flat_map(|step| unders.iter().map(move |under| self.table(step, under)));
        tables.filter(|table| !table.rows.is_empty()).collect()
    }

    fn table(&self, step: &StorageStep, under: &Assignment) -> Table {
        let condition = |place: &StorageTrial<'_>| &self.input.plan.conditions[place.reader.trial().condition()];
        let here: Vec<StorageTrial<'_>> =
            self.places.iter().filter(|place| self.sizes.without(condition(place)) == *under).copied().collect();
        let sizes: BTreeSet<u64> = here.iter().map(|place| place.facts.size).collect();
        let rows = sizes.into_iter().map(|size| self.row(step, &here, size)).collect();
        let mut table = Table { step: step.clone(), under: under.clone(), rows, notes: Vec::new() };
        table.notes = notes::of_table(self.input, &table);
        table
    }

    fn row(&self, step: &StorageStep, here: &[StorageTrial<'_>], size: u64) -> Row {
        let here: Vec<StorageTrial<'_>> = here.iter().filter(|place| place.facts.size == size).copied().collect();
        let conditions: BTreeSet<usize> = here.iter().map(|place| place.reader.trial().condition()).collect();
        let cell = |variant: usize| {
            let trials: Vec<StorageTrial<'_>> =
                here.iter().filter(|place| place.reader.trial().variant() == variant).copied().collect();
            cell::cell(&trials, step)
        };
        Row {
            size,
            label: self.sizes.label(size),
            conditions: conditions.into_iter().collect(),
            cells: (0..self.input.plan.variants.len()).map(cell).collect(),
        }
    }
}
