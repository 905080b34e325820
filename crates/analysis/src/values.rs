//! Every measure of every trial, read once.

use crate::measure::Reader;
use crate::{Input, OrReason, words};
use plimsoll_model::measure::Measure;
use std::collections::BTreeMap;

/// What each trial gave for each measure, and where to find a trial by its place in the plan.
pub(crate) struct Values<'a> {
    input: &'a Input,
    readers: &'a [Reader<'a>],
    measures: &'a [Measure],
    /// By trial, then by measure; in the order of readers and measures.
    rows: Vec<Vec<OrReason<f64>>>,
    /// By condition, variant and block.
    places: BTreeMap<(usize, usize, u32), usize>,
}

impl<'a> Values<'a> {
    /// `readers` are those of trials whose block was not run again.
    pub(crate) fn new(input: &'a Input, readers: &'a [Reader<'a>], measures: &'a [Measure]) -> Values<'a> {
        let row = |reader: &Reader<'_>| measures.iter().map(|measure| reader.value(measure)).collect();
        let place = |(index, reader): (usize, &Reader<'_>)| {
            let trial = reader.trial();
            ((trial.condition, trial.variant, trial.block), index)
        };
        Values {
            input,
            readers,
            measures,
            rows: readers.iter().map(row).collect(),
            places: readers.iter().enumerate().map(place).collect(),
        }
    }

    pub(crate) fn measures(&self) -> &'a [Measure] {
        self.measures
    }

    /// The trials of a variant under a condition that count, with what they gave for the measure
    /// at this index.
    pub(crate) fn of_cell(
        &self,
        condition: usize,
        variant: usize,
        measure: usize,
    ) -> impl Iterator<Item = (&Reader<'a>, &OrReason<f64>)> {
        self.readers
            .iter()
            .zip(&self.rows)
            .filter(move |(reader, _)| reader.is_of(condition, variant) && reader.counts())
            .map(move |(reader, row)| (reader, &row[measure]))
    }

    /// The trial of a variant in a block, if it counts and gave a value.
    pub(crate) fn in_block(
        &self,
        (condition, variant, block): (usize, usize, u32),
        measure: usize,
    ) -> OrReason<(&Reader<'a>, f64)> {
        let name = || self.input.plan.label(variant);
        let index = self
            .places
            .get(&(condition, variant, block))
            .ok_or_else(|| format!("the trial of {} did not run", name()))?;
        let reader = &self.readers[*index];
        let validity = &reader.result().summary.validity;
        if !validity.counts() {
            let (number, verb) = (reader.trial().number, words::validity_verb(validity));
            return Err(format!("trial {number} ({}) {verb}: {}", name(), validity.reasons().join("; ")));
        }
        match &self.rows[*index][measure] {
            Ok(value) => Ok((reader, *value)),
            Err(reason) => Err(format!("{} has no value: {reason}", name())),
        }
    }
}
