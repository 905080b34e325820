//! Compares each variant with the baseline: pairs by block, and the effect over the pairs.
//!
//! The trials of a block run close together in time, so slow drift cancels out of the difference of
//! two of them. Most measures are compared by their ratio: `exp` of the mean of the pairs' log
//! ratios, which is the ratio of geometric means. Where zero is a common value, as with errors, the
//! difference takes its place.

mod condition;
mod format;
mod judge;
#[cfg(test)]
mod tests;

pub use condition::POWER;
pub(crate) use condition::resolution;
pub use format::notation;
pub(crate) use judge::hidden_by;
pub use judge::{FALSE_DISCOVERIES, time_per_repeat};

use crate::decide::{Doubt, InfluenceDoubt, doubt_by_influence, doubt_of};
use crate::effect::{additive_margin, natural_interval};
use crate::estimate::{CONFIDENCE, centre};
use crate::input::Input;
use crate::reason::OrReason;
use crate::turns::InTurns;
use crate::values::Values;
use crate::verdict::Verdict;
use condition::{DraftComparison, UnderCondition};
use judge::{explore, judge};
use plimsoll_model::measure::{Effect, Measure};
use plimsoll_model::plan::Plan;
use plimsoll_model::start::Design;
use plimsoll_statistics::Interval;
use std::collections::BTreeMap;

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

/// How many times as wide a noise floor is as a comparison with the baseline and its duplicate, where all slices vary
/// alike: √(2 / 1.5). The floor, the one copy against the other, has the variance of two slices. The comparison has that of
/// one slice and, for the mean of both copies, of half a slice.
pub const FLOOR_OVER_BOTH: f64 = 1.154_700_538_379_251_5;

/// The copies of the baseline that variants are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The baseline alone.
    Baseline,
    /// The mean of the baseline and its duplicate: in turns the duplicate is alive and loaded like the baseline, and tells
    /// as much about it as the baseline's own slices.
    BothCopies,
}

impl Reference {
    /// That of a study of this plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Reference {
        let is_both = plan.with_duplicate && matches!(plan.design, Design::Turns(_));
        if is_both { Reference::BothCopies } else { Reference::Baseline }
    }

    /// The largest half-width with which a noise floor is not in doubt, in margins. Above 1 for both copies: otherwise a
    /// floor would be in doubt though the comparison over it is narrow enough.
    #[must_use]
    pub fn widest_floor(self) -> f64 {
        match self {
            Reference::Baseline => 1.0,
            Reference::BothCopies => FLOOR_OVER_BOTH,
        }
    }

    /// The differences from the baseline alone and from its duplicate alone. `pairs` are differences from this reference,
    /// each with the duplicate's difference from the baseline, all on the additive scale of [`decide`](crate::decide).
    #[must_use]
    pub fn with_each_copy(self, pairs: &[(f64, f64)]) -> [Vec<f64>; 2] {
        let shares = match self {
            Reference::Baseline => [0.0, -1.0],
            Reference::BothCopies => [0.5, -0.5],
        };
        shares.map(|share| pairs.iter().map(|(difference, of_floor)| difference + share * of_floor).collect())
    }
}

/// The largest half-width of a noise floor that is not in doubt, on the additive scale of [`decide`](crate::decide).
pub(crate) fn widest_half_width(plan: &Plan, measure: &Measure, margin: f64) -> f64 {
    Reference::of(plan).widest_floor() * additive_margin(measure.effect(), margin)
}

/// The differences of a comparison's pairs from the baseline alone and from its duplicate alone, over the blocks that its
/// noise floor has as well.
pub(crate) fn with_each_copy(plan: &Plan, comparison: &Comparison, floor: &Comparison) -> [Vec<f64>; 2] {
    let effect = comparison.measure.effect();
    let of_floor: BTreeMap<u32, f64> = floor.pairs.iter().map(|pair| (pair.block, pair.difference(effect))).collect();
    let in_both = |pair: &Pair| Some((pair.difference(effect), *of_floor.get(&pair.block)?));
    Reference::of(plan).with_each_copy(&comparison.pairs.iter().filter_map(in_both).collect::<Vec<_>>())
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

    /// The doubt about this noise floor, of a study of this plan, for a margin.
    #[must_use]
    pub fn doubt(&self, plan: &Plan, margin: f64) -> Option<Doubt> {
        doubt_of(self.additive_interval()?, widest_half_width(plan, &self.measure, margin))
    }

    /// True if the interval has a half-width above this margin.
    #[must_use]
    pub fn is_wider_than(&self, margin: f64) -> bool {
        let margin = additive_margin(self.measure.effect(), margin);
        self.additive_interval().is_some_and(|interval| interval.half_width() > margin)
    }

    /// The interval on the additive scale of [`decide`](crate::decide), if there is one.
    fn additive_interval(&self) -> Option<Interval> {
        let Interval { low, high } = *self.contrast.as_ref().ok()?.interval.as_ref().ok()?;
        Some(match self.measure.effect() {
            Effect::Ratio => Interval { low: low.ln(), high: high.ln() },
            Effect::Difference => Interval { low, high },
        })
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
