//! Compares each variant with the baseline: pairs by block, and the effect over the pairs.
//!
//! The trials of a block run close together in time, so slow drift cancels out of the difference of
//! two of them. Most measures are compared by their ratio: `exp` of the mean of the pairs' log
//! ratios, which is the ratio of geometric means. Where zero is a common value, as with errors, the
//! difference takes its place.

mod format;
#[cfg(test)]
mod tests;

pub use format::notation;

use crate::decide::{
    ComparisonToDecide, Decision, Doubt, Evidence, Floor, HiddenBy, InfluenceDoubt, decide, doubt_by_influence,
    doubt_of,
};
use crate::effect::{additive_margin, natural, natural_interval};
use crate::estimate::{CONFIDENCE, MIN_REPEATS, centre, too_few};
use crate::idle_work::{self, IDLE_WORK};
use crate::input::Input;
use crate::measure::TrialReader;
use crate::order;
use crate::reason::OrReason;
use crate::turns::{self, Before, InTurns, Influence, InfluenceKind, InfluenceOfStart, StartRatio, TurnOfDuplicates};
use crate::values::{SliceValue, Values};
use crate::verdict::{self, Circumstances, Verdict};
use crate::words;
use plimsoll_model::measure::{Effect, Measure, Series, Statistic, Unit};
use plimsoll_model::record::Metric;
use plimsoll_model::result::{StartResult, TrialResult};
use plimsoll_model::start::{Design, Plan, Validity};
use plimsoll_statistics::{Interval, StartOfTurns, TwoLevels, benjamini_hochberg, smallest_detectable};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A variant compared with the baseline under a condition, in one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// Index into the plan's variants, never the baseline's; or the plan's duplicate, for a noise
    /// floor.
    pub variant: usize,
    /// The measure.
    pub measure: Measure,
    /// The blocks in which both trials count and gave a value.
    pub pairs: Vec<Pair>,
    /// The blocks that are left out.
    pub dropped: Vec<DroppedBlock>,
    /// The size of the difference, or the reason why it is unknown.
    pub contrast: OrReason<Contrast>,
    /// The verdict, for the measures that decide.
    pub verdict: Option<Verdict>,
    /// The exploratory result, for the measures that do not decide.
    pub exploratory: Option<Exploratory>,
    /// What the turns of the starts show, where variants took turns and the measure has a value in each slice.
    pub in_turns: Option<InTurns>,
}

/// The values of the two trials of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The block.
    pub block: u32,
    /// The baseline's value.
    pub baseline: f64,
    /// The variant's value.
    pub variant: f64,
}

/// A block that is left out of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedBlock {
    /// The block.
    pub block: u32,
    /// The reason.
    pub reason: String,
}

/// The size of a difference: a ratio, or a difference in the measure's unit (see
/// [`Measure::effect`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// The ratio of geometric means, or the mean difference.
    pub value: f64,
    /// Number of pairs.
    pub n: usize,
    /// The smallest and the largest contrast of a pair.
    pub range: Interval,
    /// Its confidence interval, or the reason why there is none.
    pub interval: OrReason<Interval>,
    /// The Hodges–Lehmann estimate, which is robust to a few outliers, with its interval.
    pub ranked: Option<Ranked>,
    /// The unadjusted p-value of the null hypothesis of no difference.
    pub p: Option<f64>,
    /// The smallest change that this many pairs with this spread detect with a power of [`POWER`]:
    /// a ratio above 1, or a difference above 0.
    pub detectable: Option<f64>,
}

/// A rank-based contrast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The median of the means of all pairs of differences.
    pub value: f64,
    /// Its confidence interval, if there are enough pairs.
    pub interval: Option<Interval>,
}

/// The result of a comparison that does not decide, among all such comparisons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exploratory {
    /// Benjamini and Hochberg's adjusted p-value.
    pub adjusted_p: f64,
    /// True if the adjusted p-value is at most [`FALSE_DISCOVERIES`].
    pub stands_out: bool,
}

/// The power with which a change that is called detectable would have been found.
pub const POWER: f64 = 0.8;

/// The false discovery rate of the comparisons that stand out.
pub const FALSE_DISCOVERIES: f64 = 0.1;

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

/// The two-sided significance level of the comparisons of a plan: 5 %, spread over its looks as by
/// Pocock (1977) where the run may end at any of them.
#[must_use]
pub fn level(plan: &Plan) -> f64 {
    plimsoll_statistics::pocock(plan.looks.len().max(1)).unwrap_or(1.0 - CONFIDENCE)
}

/// All comparisons of a study, and its noise floors.
pub(crate) struct Comparisons {
    /// By condition, variant, and measure.
    pub(crate) comparisons: Vec<Comparison>,
    /// The duplicate compared with the baseline, by condition, in each measure that decides.
    pub(crate) floors: Vec<Comparison>,
}

/// Compares every variant and the duplicate with the baseline, at the two-sided level `alpha`.
pub(crate) fn comparisons(input: &Input, values: &Values<'_>, alpha: f64) -> Comparisons {
    let under_conditions =
        || (0..input.plan.conditions.len()).map(|condition| UnderCondition { input, values, condition, alpha });
    let floors = input.plan.duplicate().map_or(Vec::new(), |duplicate| {
        let decides = |under: &UnderCondition<'_>, measure: usize| under.margin(measure).is_some();
        under_conditions().flat_map(|under| under.all(duplicate, decides)).collect()
    });
    let mut drafts: Vec<DraftComparison> = under_conditions()
        .flat_map(|under| (1..input.plan.variants.len()).flat_map(move |variant| under.all(variant, |_, _| true)))
        .collect();
    judge(input, &mut drafts, &floors, alpha);
    explore(&mut drafts);
    let plain = |drafts: Vec<DraftComparison>| drafts.into_iter().map(|one| one.comparison).collect();
    Comparisons { comparisons: plain(drafts), floors: plain(floors) }
}

/// A comparison before its verdict, with the evidence for it.
struct DraftComparison {
    comparison: Comparison,
    evidence: Option<Evidence>,
    /// The margin, if the measure decides.
    margin: Option<f64>,
}

/// Makes the comparisons under one condition.
#[derive(Clone, Copy)]
struct UnderCondition<'a> {
    input: &'a Input,
    values: &'a Values<'a>,
    condition: usize,
    alpha: f64,
}

impl UnderCondition<'_> {
    fn all(&self, variant: usize, wanted: impl Fn(&Self, usize) -> bool) -> Vec<DraftComparison> {
        let measures = (0..self.values.measures().len()).filter(|measure| wanted(self, *measure));
        measures.map(|measure| self.draft(variant, measure)).collect()
    }

    /// The margin of the measure at this index, if it decides.
    fn margin(&self, measure: usize) -> Option<f64> {
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
        DraftComparison { comparison, evidence, margin: self.margin(index) }
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

    /// The duplicate, where it is part of what `variant` is compared with: in turns it is alive and loaded like the
    /// baseline, and tells as much about it as the baseline's own slices.
    fn second_baseline(&self, variant: usize) -> Option<usize> {
        let takes_turns = matches!(self.input.plan.design, Design::Turns(_));
        self.input.plan.duplicate().filter(|duplicate| takes_turns && *duplicate != variant)
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

impl Pair {
    /// The ratio of the pair, or its difference.
    #[must_use]
    pub fn contrast(&self, effect: Effect) -> f64 {
        match effect {
            Effect::Ratio => self.variant / self.baseline,
            Effect::Difference => self.variant - self.baseline,
        }
    }

    /// The difference of the pair on the additive scale of [`decide`](crate::decide).
    #[must_use]
    pub fn difference(&self, effect: Effect) -> f64 {
        match effect {
            Effect::Ratio => self.variant.ln() - self.baseline.ln(),
            Effect::Difference => self.variant - self.baseline,
        }
    }
}

/// The standard deviation that rounding gives to a difference on the additive scale; `requests`
/// is the smallest number of requests of a trial, or of what else a share or a count is one of.
pub(crate) fn resolution(measure: &Measure, requests: f64) -> f64 {
    match (&measure.series, measure.statistic, measure.unit()) {
        // Half a request more or less: where none failed, the interval then reaches at least as far as
        // the rule of three, 3 / (n · requests), whatever n is.
        (.., Statistic::Ratio, _) => 0.5 / requests.max(1.0),
        (Series::Errors | Series::FailedIterations, ..) => 0.5,
        (Series::Iterations | Series::Requests | Series::NewOrders | Series::Custom(Metric::Counter, _), ..) => {
            RESOLUTION_OF_COUNTS / requests.max(1.0)
        }
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

/// What may hide a difference of a variant from the baseline. Where both need processors that they or the generator
/// share, at the same time or between their slices, one slows the other down, which draws their values towards one
/// another.
pub(crate) fn hidden_by(input: &Input, condition: usize, variant: usize) -> Option<HiddenBy> {
    let is_counted = |start: &&StartResult| start.summary.start.condition == condition && start.validity().counts();
    let starts: Vec<&StartResult> = input.starts.iter().filter(is_counted).collect();
    if input.plan.design.is_trials() || starts.iter().all(|start| have_own_processors(input, start, variant)) {
        return None;
    }
    if input.plan.design.is_side_by_side() {
        return Some(HiddenBy::SharedProcessors);
    }
    let between_slices = |variant| idle_work::between_slices(starts.iter().copied(), variant);
    let (variant, baseline) = (between_slices(variant)?, between_slices(0)?);
    ((variant - baseline).abs() >= IDLE_WORK).then_some(HiddenBy::IdleWork { variant, baseline })
}

/// True if the baseline, the variant and the generator were bound to processors of which none is another's.
fn have_own_processors(input: &Input, start: &StartResult, variant: usize) -> bool {
    let of = |variant| start.summary.systems.iter().find(|one| one.variant == variant)?.processors.as_ref();
    let all = [of(0), of(variant), input.facts.generator.cpus.as_ref()].into_iter().collect::<Option<Vec<_>>>();
    let all: Option<Vec<usize>> = all.map(|all| all.into_iter().flat_map(|one| one.0.iter().copied()).collect());
    all.is_some_and(|all| all.iter().collect::<BTreeSet<_>>().len() == all.len())
}

/// Sets the verdicts on the measures that decide: one family over all conditions, variants and
/// measures.
fn judge(input: &Input, drafts: &mut [DraftComparison], floors: &[DraftComparison], alpha: f64) {
    let rule = input.facts.floor_rule;
    let to_decide = |one: &DraftComparison| {
        let effect = one.comparison.measure.effect();
        let same = |floor: &&DraftComparison| {
            (floor.comparison.condition, &floor.comparison.measure)
                == (one.comparison.condition, &one.comparison.measure)
        };
        Some(ComparisonToDecide {
            evidence: one.evidence.clone(),
            margin: additive_margin(effect, one.margin?),
            floor: floors
                .iter()
                .find(same)
                .and_then(|floor| floor.evidence.clone())
                .map(|evidence| Floor { evidence, rule }),
            influence: one.comparison.in_turns.as_ref().and_then(|turns| turns.influence),
            hidden_by: hidden_by(input, one.comparison.condition, one.comparison.variant),
        })
    };
    let to_decide: Vec<ComparisonToDecide> = drafts.iter().filter_map(to_decide).collect();
    let decisions: Vec<Decision> = decide(&to_decide, alpha);
    let per_repeat = time_per_repeat(input);
    let decisive = drafts.iter_mut().filter_map(|one| Some((one.margin?, &mut one.comparison)));
    for ((margin, comparison), decision) in decisive.zip(&decisions) {
        let circumstances =
            Circumstances { why_void: why_void(input, comparison), losses: losses(input, comparison), per_repeat };
        let n = comparison.contrast.as_ref().map(|contrast| contrast.n).map_err(Clone::clone);
        comparison.verdict = Some(verdict::verdict(&comparison.measure, n, decision, margin, &circumstances));
    }
}

/// The time that one more repeat takes, under all conditions: what those that ran took on average, from the start of
/// systems to their end, without attempts that did not count. None where nothing ran.
#[must_use]
pub fn time_per_repeat(input: &Input) -> Option<Duration> {
    let stand = || input.starts.iter().map(|start| &start.summary).filter(|one| !input.plan.is_superseded(&one.start));
    let repeats: BTreeSet<u32> = stand().map(|one| one.start.repeat).collect();
    let took: Duration = stand().map(|one| Duration::from_nanos(one.timing.took.0)).sum();
    (!repeats.is_empty() && !took.is_zero()).then(|| took / repeats.len() as u32)
}

/// What became of the trials of a comparison, where some do not count and fewer pairs are left than an interval takes:
/// `9 of 10 trials void, one pair left; an interval takes 3`.
fn losses(input: &Input, comparison: &Comparison) -> Option<String> {
    if comparison.pairs.len() >= MIN_REPEATS {
        return None;
    }
    let is_of = |variant: usize| variant == 0 || variant == comparison.variant;
    let planned = input.plan.starts.iter().filter(|start| start.condition == comparison.condition);
    let planned = planned.filter(|start| !input.plan.is_superseded(start));
    let all: usize = planned.map(|start| start.variants.iter().filter(|variant| is_of(**variant)).count()).sum();
    let ran = input.trials().filter(|trial| {
        trial.condition() == comparison.condition
            && is_of(trial.variant())
            && !input.plan.is_superseded(trial.identity())
    });
    let ran: Vec<TrialResult<'_>> = ran.collect();
    let counting = |variant: usize| -> BTreeSet<u32> {
        let of_variant = ran.iter().filter(|trial| trial.variant() == variant && trial.counts());
        of_variant.map(|trial| trial.identity().block).collect()
    };
    // Where both count and yet make no pair, it is for lack of values, which has its own reason.
    if counting(0).intersection(&counting(comparison.variant)).count() > comparison.pairs.len() {
        return None;
    }
    let validities: Vec<Validity> = ran.iter().map(TrialResult::validity).collect();
    let count = |is: fn(&Validity) -> bool| validities.iter().filter(|validity| is(validity)).count();
    let counts = [
        (count(|validity| matches!(validity, Validity::Void(_))), "void"),
        (count(|validity| matches!(validity, Validity::Failed(_))), "failed"),
        (all.saturating_sub(validities.len()), "did not run"),
    ];
    let mut lost = counts.into_iter().filter(|(count, _)| *count > 0);
    let (first, what) = lost.next()?;
    let further: String = lost.map(|(count, what)| format!(" and {count} {what}")).collect();
    let unit = words::load_unit(&input.plan);
    let what = format!("{first} of {all} {unit}s {what}{further}");
    let left = match comparison.pairs.len() {
        0 => "no pair".to_owned(),
        1 => "one pair".to_owned(),
        several => format!("{several} pairs"),
    };
    Some(format!("{what}, {left} left; an interval takes {MIN_REPEATS}"))
}

/// The reason why there can be no verdict, whatever the numbers are.
fn why_void(input: &Input, comparison: &Comparison) -> Option<&'static str> {
    if !input.declared {
        Some("what the study declared was changed after the run, and with it margins or order")
    } else if order::sequential(input, comparison.condition, comparison.variant) {
        Some(
            "all trials of one variant ran before those of the other, so a machine that changed cannot be told from a \
             difference",
        )
    } else {
        None
    }
}

/// Marks the comparisons that stand out among those that do not decide, as one family.
fn explore(drafts: &mut [DraftComparison]) {
    // In windows of equal length a count says the same as its rate.
    let is_rate_again = |measure: &Measure| {
        measure.statistic == Statistic::Count && !matches!(measure.series, Series::Errors | Series::FailedIterations)
    };
    let p = |one: &DraftComparison| {
        let explored = one.margin.is_none() && !is_rate_again(&one.comparison.measure);
        one.comparison.contrast.as_ref().ok()?.p.filter(|_| explored)
    };
    let adjusted = benjamini_hochberg(&drafts.iter().filter_map(p).collect::<Vec<f64>>());
    for (one, adjusted_p) in drafts.iter_mut().filter(|one| p(one).is_some()).zip(adjusted) {
        one.comparison.exploratory = Some(Exploratory { adjusted_p, stands_out: adjusted_p <= FALSE_DISCOVERIES });
    }
}

impl Comparison {
    /// The two values that the change is made of, baseline first, in the unit of the measure: the geometric means over
    /// the pairs, whose ratio is the change; the arithmetic ones where the change is a difference. None without pairs.
    /// A variant's estimate over all its trials is another number, where a trial has lost its partner.
    #[must_use]
    pub fn values(&self) -> Option<[f64; 2]> {
        self.contrast.as_ref().ok()?;
        let sides: [fn(&Pair) -> f64; 2] = [|pair| pair.baseline, |pair| pair.variant];
        let [baseline, variant] = sides.map(|side| {
            let values: Vec<f64> = self.pairs.iter().map(side).collect();
            centre(&values, self.measure.effect())
        });
        Some([baseline?, variant?])
    }

    /// True if carry-over leaves its verdict open.
    pub(crate) fn has_influence_verdict(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.withheld_by_influence)
    }

    /// The doubt about this noise floor for a margin.
    #[must_use]
    pub fn doubt(&self, margin: f64) -> Option<Doubt> {
        let effect = self.measure.effect();
        let Interval { low, high } = *self.contrast.as_ref().ok()?.interval.as_ref().ok()?;
        let additive = match effect {
            Effect::Ratio => Interval { low: low.ln(), high: high.ln() },
            Effect::Difference => Interval { low, high },
        };
        doubt_of(additive, additive_margin(effect, margin))
    }

    /// True if carry-over is shown that reaches half this margin.
    #[must_use]
    pub fn has_influence(&self, margin: f64) -> bool {
        self.doubt_by_influence(margin) == Some(InfluenceDoubt::Shown)
    }

    /// True if the interval lies inside this margin.
    #[must_use]
    pub fn is_inside(&self, margin: f64) -> bool {
        let effect = self.measure.effect();
        let within = natural_interval(
            effect,
            Interval { low: -additive_margin(effect, margin), high: additive_margin(effect, margin) },
        );
        let interval = self.contrast.as_ref().ok().and_then(|contrast| contrast.interval.as_ref().ok());
        interval.is_some_and(|interval| interval.low >= within.low && interval.high <= within.high)
    }

    fn doubt_by_influence(&self, margin: f64) -> Option<InfluenceDoubt> {
        let influence = self.in_turns.as_ref()?.influence?;
        doubt_by_influence(&influence, additive_margin(self.measure.effect(), margin))
    }
}
