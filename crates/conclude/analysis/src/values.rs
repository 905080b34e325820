//! A table of the values of every measure in every trial.

use crate::input::Input;
use crate::measure::TrialReader;
use crate::reason::OrReason;
use crate::search;
use crate::words;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::result::{Slice, TrialResult};
use plimsoll_model::start::Turns;
use std::collections::BTreeMap;

/// The values of all trials, and the index from places in the plan to trials.
pub(crate) struct Values<'a> {
    input: &'a Input,
    readers: &'a [TrialReader<'a>],
    measures: &'a [Measure],
    /// By trial, then by measure; in the order of readers and measures.
    rows: Vec<Vec<OrReason<f64>>>,
    /// Index of the trial of each condition, variant and block. In turns, a trial is what a variant did on a start.
    places: BTreeMap<(usize, usize, u32), usize>,
    /// By trial: its slices, by turn and by the variant that was loaded at the same time. None for a trial without turns.
    slices: Vec<BTreeMap<(u32, Option<usize>), SliceValues>>,
}

/// The values of all measures in a slice.
struct SliceValues {
    /// The variant that had the slice before.
    after: Option<usize>,
    values: Vec<OrReason<f64>>,
}

/// The value of a measure in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceValue {
    pub(crate) turn: u32,
    /// The variant that had the slice before.
    pub(crate) after: Option<usize>,
    pub(crate) value: f64,
}

impl<'a> Values<'a> {
    /// Reads all `measures` of all trials in `readers`. Trials of blocks that were run again must
    /// be left out before.
    pub(crate) fn new(input: &'a Input, readers: &'a [TrialReader<'a>], measures: &'a [Measure]) -> Values<'a> {
        let row = |reader: &TrialReader<'_>| measures.iter().map(|measure| reader.value(measure)).collect();
        let place = |(index, reader): (usize, &TrialReader<'_>)| {
            let trial = reader.trial();
            ((trial.condition(), trial.variant(), trial.identity().block), index)
        };
        Values {
            input,
            readers,
            measures,
            rows: readers.iter().map(row).collect(),
            places: readers.iter().enumerate().map(place).collect(),
            slices: readers.iter().map(|reader| slices_by_turn(reader, measures)).collect(),
        }
    }

    /// The slices of two variants in the turns of a block in which both have one; side by side, those that ran at the
    /// same time. None without turns, and where a slice lacks the values that a percentile takes: those of the whole start
    /// stand then.
    pub(crate) fn in_turns(
        &self,
        condition: usize,
        (one, other): (usize, usize),
        block: u32,
        measure: usize,
    ) -> Option<Vec<[SliceValue; 2]>> {
        let is_paired = self.input.plan.design.is_side_by_side();
        let beside = |variant| is_paired.then_some(variant);
        self.same_turns(condition, [(one, beside(other)), (other, beside(one))], block, measure)
    }

    /// The values of the baseline beside each of two variants, in the turns of a block. None but side by side.
    pub(crate) fn of_baseline_beside(
        &self,
        condition: usize,
        (one, other): (usize, usize),
        block: u32,
        measure: usize,
    ) -> Option<Vec<[SliceValue; 2]>> {
        self.same_turns(condition, [one, other].map(|variant| (0, Some(variant))), block, measure)
    }

    /// Two slices of each turn, each of a variant, and beside another one.
    fn same_turns(
        &self,
        condition: usize,
        [one, other]: [(usize, Option<usize>); 2],
        block: u32,
        measure: usize,
    ) -> Option<Vec<[SliceValue; 2]>> {
        let of = |variant: usize| self.places.get(&(condition, variant, block)).map(|index| &self.slices[*index]);
        let (of_one, of_other) = (of(one.0)?, of(other.0)?);
        let value = |turn: u32, slice: &SliceValues| {
            let value = *slice.values[measure].as_ref().ok()?;
            Some(SliceValue { turn, after: slice.after, value })
        };
        let in_pair = of_one.iter().filter(|((_, beside), _)| *beside == one.1);
        let common = in_pair.filter_map(|((turn, _), slice)| Some((*turn, slice, of_other.get(&(*turn, other.1))?)));
        let pairs: Option<Vec<[SliceValue; 2]>> =
            common.map(|(turn, one, other)| Some([value(turn, one)?, value(turn, other)?])).collect();
        pairs.filter(|pairs| pairs.len() >= Turns::LEAST as usize)
    }

    pub(crate) fn measures(&self) -> &'a [Measure] {
        self.measures
    }

    /// The trials of a variant under a condition that count, with their value of the measure at
    /// this index.
    pub(crate) fn of_cell(
        &self,
        condition: usize,
        variant: usize,
        measure: usize,
    ) -> impl Iterator<Item = (&TrialReader<'a>, &OrReason<f64>)> {
        self.readers
            .iter()
            .zip(&self.rows)
            .filter(move |(reader, _)| reader.is_of(condition, variant) && reader.counts())
            .map(move |(reader, row)| (reader, &row[measure]))
    }

    /// The reason why a percentile is withheld from a cell although some of its trials have it. All
    /// trials of a cell need it, or none gets it: the trials with too few values are the slow ones,
    /// and the p99 of the others may lie below the p95 of all. So it is with a capacity of which some trials have
    /// a bound alone: those that found it are the slow ones, or the fast.
    pub(crate) fn why_withheld(&self, (condition, variant): (usize, usize), measure: usize) -> Option<String> {
        let of_cell: Vec<(&TrialReader<'_>, &OrReason<f64>)> = self.of_cell(condition, variant, measure).collect();
        let Measure { series, statistic, .. } = &self.measures[measure];
        let is_capacity = *series == Series::Capacity;
        let missing: Vec<(u32, &String)> = of_cell
            .iter()
            .filter(|(reader, _)| !is_capacity || search::is_bound(reader.load()))
            .filter_map(|(reader, value)| Some((reader.trial().number(), value.as_ref().err()?)))
            .collect();
        let (trial, reason) = missing.first().filter(|_| of_cell.iter().any(|(_, value)| value.is_ok()))?;
        let (without, all) = (missing.len(), of_cell.len());
        let (unit, loads) = (words::unit(&self.input.plan), words::load_unit(&self.input.plan));
        let example = format!("({unit} {trial}: {reason})");
        match statistic {
            _ if is_capacity => Some(format!(
                "a capacity is that of all {loads}s or none, and of {without} of {all} it is a bound {example}"
            )),
            Statistic::Percentile(_) => Some(format!(
                "a percentile is that of all {loads}s or none, and {without} of {all} have none {example}"
            )),
            _ => None,
        }
    }

    /// The trial of a variant in a block with its value, if it counts and has one.
    pub(crate) fn in_block(
        &self,
        (condition, variant, block): (usize, usize, u32),
        measure: usize,
    ) -> OrReason<(&TrialReader<'a>, f64)> {
        let name = || self.input.plan.label(variant);
        let index = self
            .places
            .get(&(condition, variant, block))
            .ok_or_else(|| format!("the {} of {} did not run", words::load_unit(&self.input.plan), name()))?;
        let reader = &self.readers[*index];
        let validity = reader.trial().validity();
        if !validity.counts() {
            let (number, verb) = (reader.trial().number(), words::validity_verb(&validity));
            let unit = words::unit(&self.input.plan);
            return Err(format!("{unit} {number} ({}) {verb}: {}", name(), validity.reasons().join("; ")));
        }
        match &self.rows[*index][measure] {
            Ok(value) => Ok((reader, *value)),
            Err(reason) => Err(format!("{} has no value: {reason}", name())),
        }
    }
}

fn slices_by_turn(reader: &TrialReader<'_>, measures: &[Measure]) -> BTreeMap<(u32, Option<usize>), SliceValues> {
    let values = |slice: &Slice| {
        let load = reader.load().slice(slice);
        let of_slice = TrialReader::of_slice(TrialResult { load: &load, ..reader.trial() });
        let values = measures.iter().map(|measure| value_of_slice(&of_slice, measure)).collect();
        SliceValues { after: slice.after, values }
    };
    reader.load().slices.iter().map(|slice| ((slice.turn, slice.beside), values(slice))).collect()
}

/// The value of a measure in a slice. Systems are sampled once a second, which is too coarse for slices.
fn value_of_slice(slice: &TrialReader<'_>, measure: &Measure) -> OrReason<f64> {
    match measure.series {
        Series::Cpu(_) | Series::Memory(_) | Series::Exposed(_) => Err("systems are sampled once a second".to_owned()),
        _ => slice.value(measure),
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::{input, start};
    use plimsoll_model::measure::Measure;

    #[test]
    fn a_percentile_is_that_of_all_trials_or_of_none() {
        // Start 3, of the baseline, has 250 calls that take ten times as long: enough for p95 alone.
        let input = input(3, |number| {
            let mut result = start(1.0 + f64::from(number) / 100.0);
            for tally in result.loads[0].tallies.values_mut().filter(|_| number == 3) {
                tally.service.clear();
                tally.service.record_n(1_000_000_000, 250).expect("in range");
            }
            result
        });
        let analysis = analyse(&input);
        let of = |text: &str, variant| {
            let measure: Measure = text.parse().expect("a measure");
            analysis.estimate(0, variant, &measure).expect("an estimate").summary.clone()
        };
        assert!(of("request_duration.p95", 0).expect("all have it").centre > 0.2);
        let withheld = of("request_duration.p99", 0).expect_err("one has too few");
        assert_eq!(
            withheld,
            "a percentile is that of all trials or none, and 1 of 3 have none (trial 3: p99 takes 1,000 requests, found 250)"
        );
        assert!(of("request_duration.p99", 1).is_ok(), "the other variant has it");
        let compared = analysis.comparison(0, 1, &"request_duration.p99".parse().expect("a measure"));
        assert!(compared.expect("a comparison").contrast.as_ref().is_err_and(|reason| reason.contains(&withheld)));
    }
}
