//! Decides what a family of comparisons shows, each from its own numbers.
//!
//! Everything here is on an additive scale, on which no difference is 0 and a margin reaches
//! equally far down and up: logarithms of ratios, or plain differences. Better and worse, and all
//! wording, follow later in [`verdict`](crate::verdict), so that simulations call exactly the rules
//! of the product.
//!
//! The rules, in their order (docs/method.md has the reasons and the simulations):
//!
//! 1. An interval inside the margin is *equivalent*, even where it excludes 0.
//! 2. An interval that excludes 0 shows a *difference*, if the test is still significant after
//!    Holm's adjustment for all comparisons of the family. The difference is material if the
//!    interval lies beyond the margin.
//! 3. Everything else is *open*, with the number of repeats that would probably decide it.
//!
//! Four things withdraw a decision: ranks of the same numbers that contradict it, a noise floor
//! that excludes 0 or is wider than it may be, the margin or a little more, the influence of slices on
//! others (carry-over in turns, interference side by side), and whatever may hide a difference:
//! processors that were shared at the same time, or systems that work while they are not loaded.
//! Such a floor leaves everything open; by a milder rule, everything but differences that lie beyond
//! it, and, over a floor that excludes 0, equivalence with each copy of the baseline alone. Influence
//! that reaches half the margin leaves differences that lie beyond it; and what an interval inside
//! the margin shows must hold with the influence taken out, shown or not. What hides differences
//! draws values towards one another, so that it leaves everything but *equivalent*.
//!
//! An interval may show more than one thing: inside the margin and beyond 0, that the difference is
//! small and that there is one. Where the stronger claim is withdrawn, the weaker one stands if
//! nothing withdraws that.

mod evidence;

pub use evidence::Evidence;
pub(crate) use evidence::both;

use crate::estimate::MIN_REPEATS;
use crate::turns::{Influence, InfluenceKind};
use plimsoll_model::study::FloorRule;
use plimsoll_statistics::{Interval, holm, repeats_needed};

/// Fewest repeats for the rank-based interval beside Student's: below six pairs, ranks cannot reach
/// 95 %.
pub const MIN_REPEATS_FOR_RANKS: usize = 6;

/// Fewest repeats with which ranks can withdraw a decision. With six, 95 % by ranks takes all six
/// pairs, so that a third of all right decisions would be lost to a second opinion that says
/// nothing.
pub const MIN_REPEATS_FOR_SECOND_OPINION: usize = 7;

/// Forecasts end at this number of repeats.
pub const MAX_FORECAST_REPEATS: usize = 1000;

/// A comparison before it is decided.
#[derive(Clone, Debug)]
pub struct ComparisonToDecide {
    /// The evidence in its values; none where too few values are left.
    pub evidence: Option<Evidence>,
    /// The smallest difference that matters; above 0.
    pub margin: f64,
    /// The noise floor under the same condition; none where there is no duplicate.
    pub floor: Option<Floor>,
    /// What slices of the variant do to others, at the same level; none where that is unknown.
    pub influence: Option<Influence>,
    /// What may hide a difference; none where nothing does.
    pub hidden_by: Option<HiddenBy>,
}

/// What draws the values of two variants towards one another, so that a difference may be hidden.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HiddenBy {
    /// The two ran at the same time on the same processors.
    SharedProcessors,
    /// The systems of one of them use more of the processors while they are not loaded, and so slow the other one down.
    IdleWork {
        /// What those of the variant use between its slices, in cores.
        variant: f64,
        /// The same of the baseline.
        baseline: f64,
    },
}

/// A noise floor, and the rule for a floor in doubt.
#[derive(Clone, Debug)]
pub struct Floor {
    /// The evidence in the baseline and its duplicate.
    pub evidence: Evidence,
    /// The decisions that a floor in doubt withdraws.
    pub rule: FloorRule,
    /// The largest half-width with which it is not in doubt, in margins.
    pub widest_in_margins: f64,
    /// The evidence of the same comparison with one copy of the baseline alone: with the baseline, and with its duplicate.
    /// None where that is unknown.
    pub with_each_copy: Option<[Evidence; 2]>,
}

/// A decision about the mean difference on the additive scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The difference is above 0.
    Above,
    /// The difference is below 0.
    Below,
    /// The difference, if there is one, lies inside the margin.
    Equivalent,
    /// The values do not decide.
    Open,
}

/// A decision and its basis.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The decision.
    pub outcome: Outcome,
    /// The basis of the decision.
    pub basis: Basis,
    /// The interval at `1 - alpha`; none below [`MIN_REPEATS`] repeats.
    pub interval: Option<Interval>,
    /// Holm's adjusted p-value of the null hypothesis of no difference.
    pub adjusted_p: Option<f64>,
    /// True if it is reached whatever the other comparisons of the family will show: equivalence does not depend on them,
    /// and a difference does not where it holds after Bonferroni's adjustment, which Holm's never exceeds.
    pub for_good: bool,
    /// True if the interval lies inside the margin, and something speaks against *equivalent*.
    pub equivalence_withdrawn: bool,
    /// Doubts about the upper and the lower end of the interval, where nothing is decided.
    pub end_in_doubt: [Option<EndDoubt>; 2],
}

/// A doubt about one end of an interval that decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndDoubt {
    /// The noise floor is in doubt, and the end does not stay inside the margin with each copy of the baseline alone.
    NoiseFloor,
    /// Slices change one another; or they may, and with that taken out the end lies beyond the margin.
    Influence,
    /// A larger difference may be hidden.
    MayHide,
}

/// The basis of a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// The interval lies inside the margin.
    Inside {
        /// True if the interval excludes 0 nevertheless, over a noise floor that is not in doubt.
        measurable: bool,
        /// The interval of a noise floor that excludes 0, where the difference from each copy of the baseline alone lies
        /// inside the margin as well.
        despite: Option<Interval>,
    },
    /// A difference is shown.
    Shown {
        /// True if the difference is larger than the margin.
        material: bool,
    },
    /// The interval contains both 0, or nearly, and differences that matter.
    Unclear {
        /// Total repeats that would probably decide; none above [`MAX_FORECAST_REPEATS`].
        needed: Option<usize>,
    },
    /// The interval excludes 0, but among this many comparisons one does so by chance.
    OneOfMany {
        /// Number of comparisons in the family.
        family: usize,
        /// As in [`Basis::Unclear`].
        needed: Option<usize>,
    },
    /// Ranks speak against it: a few values dominate the result.
    OutlierSensitive {
        /// The rank-based interval.
        ranked: Interval,
        /// The rank-based estimate, where it lies outside the margin and Student's interval inside.
        typical: Option<f64>,
    },
    /// Two measurements of the same system differ too much.
    NoiseFloor {
        /// The kind of doubt.
        doubt: Doubt,
        /// The interval of the baseline against its duplicate.
        floor: Interval,
        /// True if a difference is shown that lies beyond the largest difference of the baseline
        /// from itself.
        beyond: bool,
        /// Total repeats that would probably decide over a narrower floor.
        needed: Option<usize>,
    },
    /// The interval lies inside the margin, but a larger difference may be hidden.
    MayHide(HiddenBy),
    /// A slice of the variant changes others.
    Influence {
        /// What it does.
        kind: InfluenceKind,
        /// The kind of doubt.
        doubt: InfluenceDoubt,
        /// The interval of how much.
        influence: Interval,
        /// The interval of the difference with that taken out.
        without: Interval,
        /// Total repeats that would probably decide; none where repeats do not help, or above
        /// [`MAX_FORECAST_REPEATS`].
        needed: Option<usize>,
    },
    /// Fewer than [`MIN_REPEATS`] repeats are left.
    TooFew,
}

/// A doubt about what slices do to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfluenceDoubt {
    /// They change others, and it may be by half the margin or more.
    Shown,
    /// With what they may do taken out, the difference may be larger than the margin.
    Hides,
}

/// A doubt about a noise floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The interval excludes 0: the baseline differs from itself.
    NotZero,
    /// The interval is wider than [`Floor::widest_in_margins`]: the baseline may differ from itself by
    /// more than that.
    Wide,
}

/// Decides a family of comparisons at the two-sided level `alpha`.
#[must_use]
pub fn decide(comparisons: &[ComparisonToDecide], alpha: f64) -> Vec<Decision> {
    let tested: Vec<Option<f64>> =
        comparisons.iter().map(|comparison| Some(sufficient_evidence(comparison)?.test.p_two_sided(0.0))).collect();
    let mut adjusted = holm(&tested.iter().flatten().copied().collect::<Vec<f64>>()).into_iter();
    let family = tested.iter().flatten().count();
    comparisons
        .iter()
        .zip(tested)
        .map(|(comparison, p)| match (sufficient_evidence(comparison), p.and_then(|p| Some((p, adjusted.next()?)))) {
            (Some(evidence), Some((p, adjusted_p))) => {
                let (margin, all) = (comparison.margin, comparisons.len());
                let member = FamilyMember { evidence, margin, alpha, family, comparisons: all, p, adjusted_p };
                let (outcome, basis) = member.decision(comparison);
                let interval = member.interval();
                Decision {
                    outcome,
                    basis,
                    interval: Some(interval),
                    adjusted_p: Some(adjusted_p),
                    for_good: member.is_for_good(outcome),
                    equivalence_withdrawn: member.is_inside(interval) && outcome != Outcome::Equivalent,
                    end_in_doubt: match outcome {
                        Outcome::Open => {
                            [Outcome::Above, Outcome::Below].map(|side| member.end_in_doubt(side, comparison))
                        }
                        _ => [None; 2],
                    },
                }
            }
            _ => {
                let (outcome, basis) = (Outcome::Open, Basis::TooFew);
                Decision {
                    outcome,
                    basis,
                    interval: None,
                    adjusted_p: None,
                    for_good: false,
                    equivalence_withdrawn: false,
                    end_in_doubt: [None; 2],
                }
            }
        })
        .collect()
}

fn sufficient_evidence(comparison: &ComparisonToDecide) -> Option<&Evidence> {
    comparison.evidence.as_ref().filter(|evidence| evidence.n >= MIN_REPEATS)
}

/// The doubt about a noise floor at the level `alpha`, if there is one.
#[must_use]
pub(crate) fn doubt(floor: &Evidence, widest: f64, alpha: f64) -> Option<Doubt> {
    (floor.n >= MIN_REPEATS).then(|| doubt_of(floor.test.interval(1.0 - alpha), widest)).flatten()
}

/// The doubt about the interval of a noise floor whose half-width may be `widest`, if there is one.
#[must_use]
pub(crate) fn doubt_of(interval: Interval, widest: f64) -> Option<Doubt> {
    if interval.contains(0.0) { (interval.half_width() > widest).then_some(Doubt::Wide) } else { Some(Doubt::NotZero) }
}

/// The doubt that the influence of slices raises about a comparison, if there is one.
#[must_use]
pub fn doubt_by_influence(influence: &Influence, margin: f64) -> Option<InfluenceDoubt> {
    let (interval, without) = (influence.interval?, influence.without?);
    if !interval.contains(0.0) && reach(interval) >= margin / 2.0 {
        Some(InfluenceDoubt::Shown)
    } else {
        (reach(without) > margin).then_some(InfluenceDoubt::Hides)
    }
}

/// One comparison of a family, with its p-values.
struct FamilyMember<'a> {
    evidence: &'a Evidence,
    margin: f64,
    alpha: f64,
    /// The comparisons of the family that have enough repeats, and all of them.
    family: usize,
    comparisons: usize,
    p: f64,
    adjusted_p: f64,
}

impl FamilyMember<'_> {
    fn interval(&self) -> Interval {
        self.evidence.test.interval(1.0 - self.alpha)
    }

    /// The strongest claim of the interval that nothing withdraws; if there is none, why the strongest is withdrawn.
    fn decision(&self, comparison: &ComparisonToDecide) -> (Outcome, Basis) {
        let mut claims = self.claims().into_iter().map(|claim| self.unless_withdrawn(claim, comparison));
        let first = claims.next().expect("an interval shows something, or leaves it open");
        if first.0 != Outcome::Open {
            return first;
        }
        claims.find(|(outcome, _)| *outcome != Outcome::Open).unwrap_or(first)
    }

    fn is_for_good(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Above | Outcome::Below => self.p * self.comparisons as f64 <= self.alpha,
            Outcome::Equivalent => true,
            Outcome::Open => false,
        }
    }

    /// What Student's interval shows, the strongest claim first; if nothing, that it is open.
    fn claims(&self) -> Vec<(Outcome, Basis)> {
        let interval = self.interval();
        let side = side_of(interval);
        let mut claims = Vec::new();
        if self.is_inside(interval) {
            claims.push((Outcome::Equivalent, Basis::Inside { measurable: side.is_some(), despite: None }));
        }
        if let Some(side) = side.filter(|_| self.adjusted_p <= self.alpha) {
            if interval.low.abs().min(interval.high.abs()) > self.margin {
                claims.push((side, Basis::Shown { material: true }));
            }
            claims.push((side, Basis::Shown { material: false }));
        }
        if claims.is_empty() {
            let needed = self.needed();
            let many = Basis::OneOfMany { family: self.family, needed };
            claims.push((Outcome::Open, if side.is_some() { many } else { Basis::Unclear { needed } }));
        }
        claims
    }

    /// A claim, unless ranks, the noise floor, the influence of slices, or what may hide a difference withdraw it.
    fn unless_withdrawn(&self, claim: (Outcome, Basis), comparison: &ComparisonToDecide) -> (Outcome, Basis) {
        let mut decided = self.unless_ranks_object(claim);
        if let Some(floor) = &comparison.floor {
            decided = self.with_floor(floor, decided);
        }
        match (self.with_influence(comparison.influence.as_ref(), decided), comparison.hidden_by) {
            ((Outcome::Equivalent, _), Some(by)) => (Outcome::Open, Basis::MayHide(by)),
            (decided, _) => decided,
        }
    }

    /// The doubt about one end of the interval, if there is one: the same that withdraws *equivalent*, which needs both ends.
    fn end_in_doubt(&self, side: Outcome, comparison: &ComparisonToDecide) -> Option<EndDoubt> {
        let end = |interval: Interval| if side == Outcome::Above { interval.high } else { -interval.low };
        let floor = comparison.floor.as_ref().and_then(|of_study| {
            let doubt = doubt(&of_study.evidence, of_study.widest_in_margins * self.margin, self.alpha)?;
            let holds = doubt == Doubt::NotZero
                && of_study.rule == FloorRule::Beyond
                && self.holds_with_each_copy(of_study, |interval| end(interval) <= self.margin);
            (!holds).then_some(EndDoubt::NoiseFloor)
        });
        let influence = comparison.influence.as_ref().and_then(|found| {
            let is_shown = doubt_by_influence(found, self.margin)? == InfluenceDoubt::Shown;
            (is_shown || end(found.without?) > self.margin).then_some(EndDoubt::Influence)
        });
        floor.or(influence).or(comparison.hidden_by.map(|_| EndDoubt::MayHide))
    }

    fn unless_ranks_object(&self, (outcome, basis): (Outcome, Basis)) -> (Outcome, Basis) {
        let may_object = outcome != Outcome::Open && self.evidence.n >= MIN_REPEATS_FOR_SECOND_OPINION;
        let shift = self.evidence.shift.as_ref().filter(|_| may_object);
        let Some((typical, ranked)) = shift.and_then(|shift| Some((shift.estimate, shift.interval?))) else {
            return (outcome, basis);
        };
        // One to three outliers widen Student's interval by more than they move it, so that they never bring it inside the
        // margin. More of them, all on one side, can.
        let typical = (outcome == Outcome::Equivalent && typical.abs() > self.margin).then_some(typical);
        let objects = match (outcome, &basis) {
            (Outcome::Equivalent, _) => typical.is_some(),
            (side, Basis::Shown { material: true }) => side_of(ranked) != Some(side) || self.is_inside(ranked),
            (side, _) => side_of(ranked) != Some(side),
        };
        if objects { (Outcome::Open, Basis::OutlierSensitive { ranked, typical }) } else { (outcome, basis) }
    }

    fn is_inside(&self, interval: Interval) -> bool {
        reach(interval) <= self.margin
    }

    /// The decision after the noise floor is taken into account.
    fn with_floor(&self, of_study: &Floor, (outcome, basis): (Outcome, Basis)) -> (Outcome, Basis) {
        let (floor, rule) = (&of_study.evidence, of_study.rule);
        let widest = of_study.widest_in_margins * self.margin;
        let Some(doubt) = doubt(floor, widest, self.alpha) else { return (outcome, basis) };
        let of_floor = floor.test.interval(1.0 - self.alpha);
        let beyond = lies_beyond(of_floor, outcome, self.interval());
        let is_inside_each = self.holds_with_each_copy(of_study, |interval| self.is_inside(interval));
        let repeats_until_narrow = repeats_until_narrow(floor, widest, self.alpha).filter(|_| doubt == Doubt::Wide);
        let needed = match (rule, outcome) {
            (FloorRule::Strict, _) => {
                self.repeats_needed_for(&basis).zip(repeats_until_narrow).map(|(member, other)| member.max(other))
            }
            (FloorRule::Beyond, Outcome::Open) if doubt == Doubt::Wide => {
                return (outcome, self.forecast_with_floor(basis, floor, widest));
            }
            (FloorRule::Beyond, _) if beyond || outcome == Outcome::Open => return (outcome, basis),
            (FloorRule::Beyond, Outcome::Equivalent) if doubt == Doubt::NotZero && is_inside_each => {
                return (outcome, Basis::Inside { measurable: false, despite: Some(of_floor) });
            }
            (FloorRule::Beyond, Outcome::Equivalent) if doubt == Doubt::NotZero => {
                self.repeats_needed_with_each_copy(of_study)
            }
            (FloorRule::Beyond, Outcome::Equivalent) => repeats_until_narrow,
            (FloorRule::Beyond, _) => repeats_until_narrow.into_iter().chain(self.repeats_needed_beyond(floor)).min(),
        };
        (Outcome::Open, Basis::NoiseFloor { doubt, floor: of_floor, beyond, needed })
    }

    /// True if `is_so` of the interval of the difference from each copy of the baseline alone.
    fn holds_with_each_copy(&self, of_study: &Floor, is_so: impl Fn(Interval) -> bool) -> bool {
        let holds = |copy: &Evidence| copy.n >= MIN_REPEATS && is_so(copy.test.interval(1.0 - self.alpha));
        of_study.with_each_copy.as_ref().is_some_and(|copies| copies.iter().all(holds))
    }

    /// The repeats after which the difference from each copy of the baseline alone would probably lie inside the margin.
    fn repeats_needed_with_each_copy(&self, of_study: &Floor) -> Option<usize> {
        let needed = |copy: &Evidence| {
            let room = self.margin - copy.test.estimate.abs();
            repeats_needed(copy.sd(), copy.n, room, self.alpha, MAX_FORECAST_REPEATS)
        };
        let [one, other] = of_study.with_each_copy.as_ref()?.each_ref().map(needed);
        Some(one?.max(other?).max(self.evidence.n + 1))
    }

    /// The decision after the influence of slices is taken into account. Carry-over reaches at most half of the
    /// slices compared with, and so shifts the difference by at most half of itself; interference shifts it by itself. So
    /// a difference that lies beyond it stands. More repeats do not help against an influence that is shown. What an
    /// interval inside the margin shows must hold with the influence taken out as well.
    fn with_influence(&self, influence: Option<&Influence>, (outcome, basis): (Outcome, Basis)) -> (Outcome, Basis) {
        let doubt = influence.and_then(|influence| doubt_by_influence(influence, self.margin));
        let known = influence.and_then(|found| Some((found, found.interval?, found.without?)));
        let (Some(doubt), Some((found, influence, without))) = (doubt, known) else { return (outcome, basis) };
        let (withdrawn, needed) = match doubt {
            InfluenceDoubt::Shown => (!lies_beyond(influence, outcome, self.interval()), None),
            InfluenceDoubt::Hides => {
                let is_claim_inside = outcome != Outcome::Open && self.is_inside(self.interval());
                let holds_without = side_of(without) == Some(outcome);
                (is_claim_inside && !holds_without, self.repeats_needed_without(found, without))
            }
        };
        if withdrawn {
            (Outcome::Open, Basis::Influence { kind: found.kind, doubt, influence, without, needed })
        } else {
            (outcome, basis)
        }
    }

    /// The repeats after which the difference would probably lie inside the margin with the influence taken out.
    fn repeats_needed_without(&self, influence: &Influence, without: Interval) -> Option<usize> {
        let size = f64::midpoint(without.low, without.high).abs();
        let (sd, n) = (influence.sd_without, influence.starts);
        let needed = repeats_needed(sd, n, self.margin - size, self.alpha, MAX_FORECAST_REPEATS)?;
        Some(needed.max(self.evidence.n + 1))
    }

    /// The repeats that this basis asks for; where the values have decided, the repeats at hand.
    fn repeats_needed_for(&self, basis: &Basis) -> Option<usize> {
        match basis {
            Basis::Unclear { needed } | Basis::OneOfMany { needed, .. } => *needed,
            _ => Some(self.evidence.n),
        }
    }

    /// The repeats after which one of the two claims would probably hold, if the difference is as
    /// large as it seems: equivalence, or a difference.
    fn needed(&self) -> Option<usize> {
        let size = self.evidence.test.estimate.abs();
        let repeats = |target: f64, alpha: f64| {
            let needed = repeats_needed(self.evidence.sd(), self.evidence.n, target, alpha, MAX_FORECAST_REPEATS)?;
            Some(needed.max(self.evidence.n + 1))
        };
        let equivalence = (size < self.margin).then(|| repeats(self.margin - size, self.alpha)).flatten();
        let direction = (size > 0.0).then(|| repeats(size, self.alpha * self.holm_share())).flatten();
        equivalence.into_iter().chain(direction).min()
    }

    /// The repeats after which the difference would probably lie beyond the noise floor, should the
    /// floor never become narrow: both intervals shrink until they no longer meet.
    fn repeats_needed_beyond(&self, floor: &Evidence) -> Option<usize> {
        let gap = self.evidence.test.estimate.abs() - floor.test.estimate.abs();
        let spread = self.evidence.sd() + floor.sd();
        let needed = repeats_needed(spread, self.evidence.n, gap, self.alpha * self.holm_share(), MAX_FORECAST_REPEATS);
        Some(needed?.max(self.evidence.n + 1))
    }

    /// The share of the level that Holm's procedure leaves to this comparison, given the others.
    fn holm_share(&self) -> f64 {
        if self.adjusted_p > 0.0 { (self.p / self.adjusted_p).clamp(1e-6, 1.0) } else { 1.0 }
    }

    /// By the milder rule, the forecast of an open comparison must also bring the noise floor
    /// inside the margin, or the difference beyond it.
    fn forecast_with_floor(&self, basis: Basis, floor: &Evidence, widest: f64) -> Basis {
        let both = |needed: Option<usize>| {
            let narrow =
                needed.zip(repeats_until_narrow(floor, widest, self.alpha)).map(|(member, other)| member.max(other));
            narrow.into_iter().chain(self.repeats_needed_beyond(floor)).min()
        };
        match basis {
            Basis::Unclear { needed } => Basis::Unclear { needed: both(needed) },
            Basis::OneOfMany { family, needed } => Basis::OneOfMany { family, needed: both(needed) },
            basis => basis,
        }
    }
}

/// The side of zero on which an interval lies as a whole.
fn side_of(Interval { low, high }: Interval) -> Option<Outcome> {
    if low > 0.0 {
        Some(Outcome::Above)
    } else if high < 0.0 {
        Some(Outcome::Below)
    } else {
        None
    }
}

/// The end of the interval that is further from zero.
fn reach(interval: Interval) -> f64 {
    interval.low.abs().max(interval.high.abs())
}

/// True if the interval behind this outcome lies wholly beyond either end of another, such as that of the largest
/// difference of the baseline from itself.
fn lies_beyond(other: Interval, outcome: Outcome, interval: Interval) -> bool {
    let reach = reach(other);
    match outcome {
        Outcome::Above => interval.low > reach,
        Outcome::Below => interval.high < -reach,
        Outcome::Equivalent | Outcome::Open => false,
    }
}

/// The repeats after which the half-width of a noise floor would probably be at most `widest`.
fn repeats_until_narrow(floor: &Evidence, widest: f64, alpha: f64) -> Option<usize> {
    let needed = repeats_needed(floor.sd(), floor.n, widest, alpha, MAX_FORECAST_REPEATS)?;
    Some(needed.max(floor.n + 1))
}

#[cfg(test)]
mod tests;
