//! The comparisons under one condition, before their verdicts: pairs by block, and the effect over them.

use super::{Comparison, Contrast, DroppedBlock, Pair, Ranked, Reference};
use crate::decide::Evidence;
use crate::effect::{natural, natural_interval};
use crate::estimate::{MIN_REPEATS, too_few};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::reason::OrReason;
use crate::turns::{self, Before, InTurns, Influence, InfluenceKind, InfluenceOfStart, StartRatio, TurnOfDuplicates};
use crate::values::{SliceValue, Values};
use crate::words;
use plimsoll_model::measure::{Effect, Measure, Series, Statistic, Unit};
use plimsoll_model::record::Metric;
use plimsoll_statistics::{Interval, StartOfTurns, TwoLevels, smallest_detectable};
use std::collections::BTreeMap;

/// The power with which a change that is called detectable would have been found.
pub const POWER: f64 = 0.8;

/// The standard deviation that the resolution of a histogram gives to a log ratio: durations are
/// kept to three digits, so each is off by up to 1/1000, evenly spread (sd 1/√12 of that), and two
/// of them make a ratio.
const RESOLUTION_OF_DURATIONS: f64 = 0.000_41;

/// The standard deviation that whole numbers give to a log ratio of two counts, times the count: at
/// either end of the measure phase one more or less may have ended, evenly spread, and two counts
/// make a ratio.
const RESOLUTION_OF_COUNTS: f64 = 0.41;

/// The standard deviation for numbers that are kept exactly.
const RESOLUTION_OF_EXACT_NUMBERS: f64 = 1e-9;

/// A comparison before its verdict, with the evidence for it.
pub(super) struct DraftComparison {
    pub(super) comparison: Comparison,
    pub(super) evidence: Option<Evidence>,
    /// The standard deviation that rounding alone gives a difference of its pairs.
    pub(super) resolution: f64,
    /// The margin, if the measure decides.
    pub(super) margin: Option<f64>,
}

/// Makes the comparisons under one condition.
#[derive(Clone, Copy)]
pub(super) struct UnderCondition<'a> {
    pub(super) input: &'a Input,
    pub(super) values: &'a Values<'a>,
    pub(super) condition: usize,
    pub(super) alpha: f64,
}

impl UnderCondition<'_> {
    pub(super) fn all(&self, variant: usize, wanted: impl Fn(&Self, usize) -> bool) -> Vec<DraftComparison> {
        let measures = (0..self.values.measures().len()).filter(|measure| wanted(self, *measure));
        measures.map(|measure| self.draft(variant, measure)).collect()
    }

    /// The margin of the measure at this index, if it decides.
    pub(super) fn margin(&self, measure: usize) -> Option<f64> {
        crate::catalogue::margin(&self.input.facts, &self.values.measures()[measure])
    }

    fn draft(&self, variant: usize, index: usize) -> DraftComparison {
        let measure = &self.values.measures()[index];
        let mut pairs = Vec::new();
        let mut dropped = Vec::new();
        let mut of_turns = Vec::new();
        let mut requests = f64::INFINITY;
        let withheld = self.why_withheld(variant, index);
        for block in self.blocks() {
            match withheld.clone().map_or_else(|| self.pair(variant, block, index), Err) {
                Ok(found) => {
                    pairs.push(found.pair);
                    of_turns.extend(found.of_turns);
                    requests = requests.min(found.requests);
                }
                Err(reason) => dropped.push(DroppedBlock { block, reason }),
            }
        }
        let differences: Vec<f64> = pairs.iter().map(|pair| pair.difference(measure.effect())).collect();
        // A floor compares a system with itself: no error on either side raises no doubt about the
        // machine.
        let is_floor = Some(variant) == self.input.plan.duplicate() && measure.effect() == Effect::Difference;
        let resolution = if is_floor { RESOLUTION_OF_EXACT_NUMBERS } else { resolution(measure, requests) };
        let evidence = Evidence::paired(&differences, resolution, self.alpha);
        let contrast = match (pairs.is_empty(), dropped.first()) {
            (true, Some(first)) => Err(format!("no pair is left, because {}", first.reason)),
            (true, None) => Err("no pair is left".to_owned()),
            (false, _) => contrast(&differences, evidence.as_ref(), measure.effect(), self.alpha)
                .ok_or_else(|| "the values are too far apart for a number".to_owned()),
        };
        let in_turns = (!of_turns.is_empty()).then(|| InTurns {
            levels: TwoLevels::of(&of_turns),
            influence: self.influence(variant, &pairs, index, resolution),
        });
        let (condition, measure) = (self.condition, measure.clone());
        let (verdict, exploratory) = (None, None);
        let comparison =
            Comparison { condition, variant, measure, pairs, dropped, contrast, verdict, exploratory, in_turns };
        DraftComparison { comparison, evidence, resolution, margin: self.margin(index) }
    }

    /// The reason why the two are not compared, although some pairs of trials may have values.
    fn why_withheld(&self, variant: usize, index: usize) -> Option<String> {
        [0, variant].into_iter().find_map(|one| {
            let reason = self.values.why_withheld((self.condition, one), index)?;
            Some(format!("{} has no value: {reason}", self.input.plan.label(one)))
        })
    }

    /// The blocks of the condition that were not run again, in the order of the plan.
    fn blocks(&self) -> Vec<u32> {
        let plan = &self.input.plan;
        let mut blocks: Vec<u32> = plan
            .starts
            .iter()
            .filter(|start| start.condition == self.condition && !plan.is_superseded(start))
            .map(|start| start.block)
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    fn pair(&self, variant: usize, block: u32, measure: usize) -> OrReason<PairOfBlock> {
        let of = |variant| self.values.in_block((self.condition, variant, block), measure);
        let ((base, baseline), (other, value)) = (of(0)?, of(variant)?);
        if self.values.measures()[measure].effect() == Effect::Ratio {
            for (variant, reader, value) in [(0, base, baseline), (variant, other, value)] {
                if value <= 0.0 || !value.is_finite() {
                    let (name, number) = (self.input.plan.label(variant), reader.trial().number());
                    let given = if value == 0.0 { "0".to_owned() } else { value.to_string() };
                    let unit = words::unit(&self.input.plan);
                    return Err(format!("{name} gave {given} in {unit} {number}, which has no ratio"));
                }
            }
        }
        let of = |reader: &TrialReader<'_>| reader.denominator(&self.values.measures()[measure].series);
        let requests = of(base).min(of(other)) as f64;
        Ok(match self.of_turns(variant, block, measure) {
            Some(StartRatio { baseline, variant, of_turns }) => {
                PairOfBlock { pair: Pair { block, baseline, variant }, requests, of_turns }
            }
            None => {
                let copy = self
                    .second_baseline(variant)
                    .and_then(|copy| Some(self.values.in_block((self.condition, copy, block), measure).ok()?.1));
                let baseline = copy.map_or(baseline, |copy| self.both(measure, baseline, copy));
                PairOfBlock { pair: Pair { block, baseline, variant: value }, requests, of_turns: None }
            }
        })
    }

    /// The duplicate, where it is part of what `variant` is compared with.
    fn second_baseline(&self, variant: usize) -> Option<usize> {
        let plan = &self.input.plan;
        plan.duplicate().filter(|duplicate| Reference::of(plan) == Reference::BothCopies && *duplicate != variant)
    }

    /// The mean of the baseline and its duplicate, on the scale on which the measure is compared.
    fn both(&self, measure: usize, baseline: f64, copy: f64) -> f64 {
        match self.values.measures()[measure].effect() {
            Effect::Ratio if copy > 0.0 && copy.is_finite() => (baseline * copy).sqrt(),
            Effect::Ratio => baseline,
            Effect::Difference => f64::midpoint(baseline, copy),
        }
    }
}

/// What a block gives a comparison.
struct PairOfBlock {
    pair: Pair,
    /// The number of requests of the trial that had fewer.
    requests: f64,
    /// The ratio with the error that it has from its turns.
    of_turns: Option<StartOfTurns>,
}

impl UnderCondition<'_> {
    /// The ratio of a start on which variants took turns. None where there are no turns, and for what is compared by
    /// differences.
    fn of_turns(&self, variant: usize, block: u32, measure: usize) -> Option<StartRatio> {
        if self.values.measures()[measure].effect() != Effect::Ratio {
            return None;
        }
        let slices = self.values.in_turns(self.condition, (0, variant), block, measure)?;
        let copies = self
            .second_baseline(variant)
            .and_then(|copy| self.values.in_turns(self.condition, (0, copy), block, measure))
            .unwrap_or_default();
        let copies: BTreeMap<u32, f64> = copies.iter().map(|[_, copy]| (copy.turn, copy.value)).collect();
        let of_three =
            |[baseline, variant]: &[SliceValue; 2]| Some([baseline.value, *copies.get(&baseline.turn)?, variant.value]);
        if let Some(of_both) = slices.iter().map(of_three).collect::<Option<Vec<[f64; 3]>>>() {
            return turns::ratio_to_both(&of_both);
        }
        turns::ratio(&slices.iter().map(|[baseline, variant]| (baseline.value, variant.value)).collect::<Vec<_>>())
    }

    /// What slices of the variant do to those of others, over the starts of these pairs.
    fn influence(&self, variant: usize, pairs: &[Pair], measure: usize, resolution: f64) -> Option<Influence> {
        let duplicate = self.input.plan.duplicate().filter(|duplicate| *duplicate != variant)?;
        let is_paired = self.input.plan.design.is_side_by_side();
        let kind = if is_paired { InfluenceKind::Interference } else { InfluenceKind::CarryOver };
        let of_start = |pair: &Pair| {
            let found = match kind {
                InfluenceKind::CarryOver => self.carry_over(variant, duplicate, pair.block, measure),
                InfluenceKind::Interference => self.interference(variant, duplicate, pair.block, measure),
            };
            Some((pair.difference(Effect::Ratio), found?))
        };
        let of_starts: Vec<(f64, InfluenceOfStart)> = pairs.iter().filter_map(of_start).collect();
        turns::influence(kind, &of_starts, resolution, self.alpha)
    }

    /// What the variant beside it does to the baseline, on one start.
    fn interference(&self, variant: usize, duplicate: usize, block: u32, measure: usize) -> Option<InfluenceOfStart> {
        let slices = self.values.of_baseline_beside(self.condition, (variant, duplicate), block, measure)?;
        let values: Vec<(f64, f64)> = slices.iter().map(|[one, other]| (one.value, other.value)).collect();
        turns::interference_of_start(&values)
    }

    /// What slices of the variant leave to the next ones, on one start.
    fn carry_over(&self, variant: usize, duplicate: usize, block: u32, measure: usize) -> Option<InfluenceOfStart> {
        let slices = self.values.in_turns(self.condition, (0, duplicate), block, measure)?;
        let before = |own: usize, slice: &SliceValue| match slice.after {
            Some(after) if after == variant => Before::Variant,
            Some(after) if after == own => Before::Itself,
            _ => Before::Other,
        };
        // The first turn settles for longer: it has the warm-up.
        let later = slices.iter().filter(|[baseline, _]| baseline.turn > 1);
        let turns: Vec<TurnOfDuplicates> = later
            .map(|[baseline, copy]| TurnOfDuplicates {
                before_baseline: before(0, baseline),
                before_duplicate: before(duplicate, copy),
                difference: baseline.value.ln() - copy.value.ln(),
            })
            .filter(|turn| turn.difference.is_finite())
            .collect();
        turns::carry_over_of_start(&turns)
    }
}

/// The standard deviation that rounding gives to a difference on the additive scale; `requests`
/// is the smallest number of requests of a trial, or of what else a share or a count is one of.
pub(crate) fn resolution(measure: &Measure, requests: f64) -> f64 {
    match (&measure.series, measure.statistic, measure.unit()) {
        // Half a request more or less: where none failed, the interval then reaches at least as far as
        // the rule of three, 3 / (n · requests), whatever n is.
        (.., Statistic::Ratio, _) => 0.5 / requests.max(1.0),
        (Series::Errors | Series::FailedIterations | Series::LostDeliveries, ..) => 0.5,
        (
            Series::Iterations
            | Series::Requests
            | Series::Deliveries
            | Series::NewOrders
            | Series::Custom(Metric::Counter, _),
            ..,
        ) => RESOLUTION_OF_COUNTS / requests.max(1.0),
        (Series::Custom(Metric::Gauge | Metric::Trend, _), ..) | (.., Unit::Seconds) => RESOLUTION_OF_DURATIONS,
        _ => RESOLUTION_OF_EXACT_NUMBERS,
    }
}

/// The contrast of differences on the additive scale; none if it is not finite.
fn contrast(differences: &[f64], evidence: Option<&Evidence>, effect: Effect, alpha: f64) -> Option<Contrast> {
    let n = differences.len();
    let low = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let high = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let evidence = evidence.filter(|evidence| evidence.n >= MIN_REPEATS);
    let ranked = evidence.and_then(|evidence| evidence.shift.as_ref()).map(|shift| Ranked {
        value: natural(effect, shift.estimate),
        interval: shift.interval.map(|interval| natural_interval(effect, interval)),
    });
    let detectable = evidence.and_then(|evidence| smallest_detectable(evidence.sd(), n, alpha, POWER));
    let value = natural(effect, plimsoll_statistics::mean(differences)?);
    value.is_finite().then(|| Contrast {
        value,
        n,
        range: natural_interval(effect, Interval { low, high }),
        interval: match evidence {
            Some(evidence) => Ok(natural_interval(effect, evidence.test.interval(1.0 - alpha))),
            None => Err(too_few(n)),
        },
        ranked,
        p: evidence.map(|evidence| evidence.test.p_two_sided(0.0)),
        detectable: detectable.map(|change| natural(effect, change)),
    })
}
