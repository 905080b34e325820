//! From numbers to decisions: what a family of comparisons shows, each on its own numbers.
//!
//! Everything here is on an additive scale, on which no difference is 0 and a margin reaches as far
//! down as up: logarithms of ratios, or plain differences. What is better or worse, and every word
//! about it, comes later, in [`verdict`](crate::verdict); so simulations can ask exactly what the
//! product asks.
//!
//! The rules, in their order (docs/method.md has the reasons and the simulations):
//!
//! 1. An interval inside the margin is *equivalent*, even where it leaves out 0.
//! 2. An interval that leaves out 0 shows a *difference*, if the test still does so after Holm's
//!    adjustment for all comparisons of the family. It is material if the interval lies beyond the
//!    margin.
//! 3. All else is *open*, with the number of repeats that would probably decide it.
//!
//! Two things take a decision back: a rank-based interval of the same numbers that decides
//! otherwise, and a noise floor that is wider than the margin or leaves out 0. By the strict rule
//! such a floor comes first, and leaves everything open.

use plimsoll_model::study::FloorRule;
use plimsoll_statistics::{HodgesLehmann, Interval, TTest, hodges_lehmann, holm, one_sample, repeats_needed, welch};

/// Fewest repeats for an interval: with two, Student's factor is 12.7 and says nothing.
pub const LEAST: usize = 3;

/// Fewest repeats for the rank-based interval beside Student's: below six pairs, ranks cannot
/// reach 95 %.
pub const LEAST_RANKED: usize = 6;

/// Fewest repeats with which ranks can take a decision back. With six, 95 % by ranks takes all six
/// pairs, so that a third of all right decisions would be lost to a second opinion that says
/// nothing.
pub const LEAST_SECOND_OPINION: usize = 7;

/// More repeats than this are not forecast.
pub const MOST_FORECAST: usize = 1000;

/// What the values of a comparison say.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Student's test of the mean difference.
    pub test: TTest,
    /// Repeats: pairs, or trials of the smaller side.
    pub n: usize,
    /// The Hodges–Lehmann shift, from [`LEAST_RANKED`] pairs.
    pub shift: Option<HodgesLehmann>,
}

impl Evidence {
    /// Of the differences of pairs. `resolution` is the standard deviation that rounding alone
    /// gives a difference: the spread is never taken to be smaller, so that values that agree to
    /// the last digit are not taken for certainty. None for fewer than two pairs.
    #[must_use]
    pub fn paired(differences: &[f64], resolution: f64, alpha: f64) -> Option<Evidence> {
        let test = one_sample(differences)?;
        let n = differences.len();
        let shift = (n >= LEAST_RANKED).then(|| hodges_lehmann(differences, 1.0 - alpha)).flatten();
        Some(Evidence { test: resolved(test, resolution, n), n, shift })
    }

    /// Of two sets of values that are not paired: `values` less `baseline`. None where one has
    /// fewer than two.
    #[must_use]
    pub fn unpaired(values: &[f64], baseline: &[f64], resolution: f64) -> Option<Evidence> {
        let n = values.len().min(baseline.len());
        let test = welch(values, baseline)?;
        Some(Evidence { test: resolved(test, resolution, n), n, shift: None })
    }

    /// The standard deviation of a single repeat's difference.
    #[must_use]
    pub fn sd(&self) -> f64 {
        self.test.standard_error * (self.n as f64).sqrt()
    }
}

fn resolved(test: TTest, resolution: f64, n: usize) -> TTest {
    TTest { standard_error: test.standard_error.max(resolution / (n as f64).sqrt()), ..test }
}

/// One comparison that is to be decided.
#[derive(Clone, Debug)]
pub struct Question {
    /// What its values say; none where too few values are left.
    pub evidence: Option<Evidence>,
    /// The smallest difference that matters; above 0.
    pub margin: f64,
    /// The noise floor under the same condition; none where there is no duplicate.
    pub floor: Option<Floor>,
}

/// A noise floor, and what it does where it is in doubt.
#[derive(Clone, Debug)]
pub struct Floor {
    /// What the baseline against its duplicate says.
    pub evidence: Evidence,
    /// What a doubt takes back.
    pub rule: FloorRule,
}

/// What is decided, by the mean difference on the additive scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is above 0.
    Above,
    /// It is below 0.
    Below,
    /// If there is one, it lies inside the margin.
    Equivalent,
    /// The values do not decide.
    Open,
}

/// A decision and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is decided.
    pub outcome: Outcome,
    /// Why.
    pub basis: Basis,
    /// The interval at `1 - alpha`; none below [`LEAST`] repeats.
    pub interval: Option<Interval>,
    /// Holm's adjusted p-value of no difference.
    pub adjusted_p: Option<f64>,
}

/// Why a decision is as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// The interval lies inside the margin.
    Inside {
        /// It leaves out 0 nevertheless.
        measurable: bool,
    },
    /// A difference is shown.
    Shown {
        /// It is larger than the margin.
        material: bool,
    },
    /// The interval holds both 0, or nearly, and differences that matter.
    Unclear {
        /// Repeats in all that would probably decide; none above [`MOST_FORECAST`].
        needed: Option<usize>,
    },
    /// The interval leaves out 0, but among so many comparisons one will by chance.
    OneOfMany {
        /// Comparisons in the family.
        family: usize,
        /// As above.
        needed: Option<usize>,
    },
    /// Ranks decide otherwise: a few values carry the result.
    OutlierSensitive {
        /// The interval by ranks.
        ranked: Interval,
    },
    /// The same system, measured twice, differs too much.
    NoiseFloor {
        /// How.
        doubt: Doubt,
        /// The interval of the baseline against its duplicate.
        floor: Interval,
        /// Repeats in all that would probably narrow it enough.
        needed: Option<usize>,
    },
    /// Fewer than [`LEAST`] repeats are left.
    TooFew,
}

/// What is wrong with a noise floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The baseline differs from itself.
    NotZero,
    /// It might differ from itself by more than the margin.
    Wide,
}

/// Decides a family of comparisons at the two-sided level `alpha`.
#[must_use]
pub fn decide(questions: &[Question], alpha: f64) -> Vec<Decision> {
    let tested: Vec<Option<f64>> =
        questions.iter().map(|question| Some(enough(question)?.test.p_two_sided(0.0))).collect();
    let mut adjusted = holm(&tested.iter().flatten().copied().collect::<Vec<f64>>()).into_iter();
    let family = tested.iter().flatten().count();
    questions
        .iter()
        .zip(tested)
        .map(|(question, p)| match (enough(question), p.and_then(|p| Some((p, adjusted.next()?)))) {
            (Some(evidence), Some((p, adjusted_p))) => {
                let one = One { evidence, margin: question.margin, alpha, family, p, adjusted_p };
                let interval = Some(one.interval());
                let (outcome, basis) = one.decision(question.floor.as_ref());
                Decision { outcome, basis, interval, adjusted_p: Some(adjusted_p) }
            }
            _ => Decision { outcome: Outcome::Open, basis: Basis::TooFew, interval: None, adjusted_p: None },
        })
        .collect()
}

fn enough(question: &Question) -> Option<&Evidence> {
    question.evidence.as_ref().filter(|evidence| evidence.n >= LEAST)
}

/// The doubt about a noise floor at the level `alpha`, if there is one.
#[must_use]
pub(crate) fn doubt(floor: &Evidence, margin: f64, alpha: f64) -> Option<Doubt> {
    (floor.n >= LEAST).then(|| doubt_of(floor.test.interval(1.0 - alpha), margin)).flatten()
}

/// The doubt about the interval of a noise floor, if there is one.
#[must_use]
pub(crate) fn doubt_of(interval: Interval, margin: f64) -> Option<Doubt> {
    if interval.contains(0.0) { (interval.half_width() > margin).then_some(Doubt::Wide) } else { Some(Doubt::NotZero) }
}

/// One comparison of a family.
struct One<'a> {
    evidence: &'a Evidence,
    margin: f64,
    alpha: f64,
    family: usize,
    p: f64,
    adjusted_p: f64,
}

impl One<'_> {
    fn interval(&self) -> Interval {
        self.evidence.test.interval(1.0 - self.alpha)
    }

    fn decision(&self, floor: Option<&Floor>) -> (Outcome, Basis) {
        let interval = self.interval();
        let (outcome, basis) = self.by(interval, self.adjusted_p <= self.alpha);
        if let Some(basis) = floor.and_then(|floor| self.left_open(&basis, floor)) {
            return (Outcome::Open, basis);
        }
        let floor = floor.map(|floor| &floor.evidence);
        if outcome == Outcome::Open {
            return (outcome, self.with_floor_to_come(basis, floor));
        }
        let has_a_say = self.evidence.n >= LEAST_SECOND_OPINION;
        let ranked = self.evidence.shift.as_ref().filter(|_| has_a_say).and_then(|shift| shift.interval);
        if let Some(ranked) = ranked.filter(|ranked| self.by(*ranked, true).0 != outcome) {
            return (Outcome::Open, Basis::OutlierSensitive { ranked });
        }
        match floor.and_then(|floor| self.taken_back(outcome, interval, floor)) {
            Some(basis) => (Outcome::Open, basis),
            None => (outcome, basis),
        }
    }

    /// What an interval says; a difference only where it is `significant` in its family.
    fn by(&self, Interval { low, high }: Interval, significant: bool) -> (Outcome, Basis) {
        let margin = self.margin;
        let leaves_out_zero = low > 0.0 || high < 0.0;
        if -margin <= low && high <= margin {
            (Outcome::Equivalent, Basis::Inside { measurable: leaves_out_zero })
        } else if !leaves_out_zero {
            (Outcome::Open, Basis::Unclear { needed: self.needed() })
        } else if !significant {
            (Outcome::Open, Basis::OneOfMany { family: self.family, needed: self.needed() })
        } else if low > 0.0 {
            (Outcome::Above, Basis::Shown { material: low > margin })
        } else {
            (Outcome::Below, Basis::Shown { material: high < -margin })
        }
    }

    /// Why nothing is decided over this noise floor, if the rule is strict and the floor in doubt:
    /// it must come to fit into the margin, whatever the comparison itself says.
    fn left_open(&self, basis: &Basis, Floor { evidence, rule }: &Floor) -> Option<Basis> {
        let doubt = doubt(evidence, self.margin, self.alpha).filter(|_| *rule == FloorRule::Strict)?;
        let of_its_own = match basis {
            Basis::Unclear { needed } | Basis::OneOfMany { needed, .. } => *needed,
            _ => Some(self.evidence.n),
        };
        let narrowed = narrowed(evidence, self.margin, self.alpha).filter(|_| doubt == Doubt::Wide);
        let needed = of_its_own.zip(narrowed).map(|(one, other)| one.max(other));
        Some(Basis::NoiseFloor { doubt, floor: evidence.test.interval(1.0 - self.alpha), needed })
    }

    /// Why a decision cannot stand on this noise floor. A difference does, whatever the floor,
    /// where its whole interval lies beyond all that the baseline may differ from itself.
    fn taken_back(&self, outcome: Outcome, interval: Interval, floor: &Evidence) -> Option<Basis> {
        let doubt = doubt(floor, self.margin, self.alpha)?;
        let of_floor = floor.test.interval(1.0 - self.alpha);
        let reach = of_floor.low.abs().max(of_floor.high.abs());
        let stands = match outcome {
            Outcome::Above => interval.low > reach,
            Outcome::Below => interval.high < -reach,
            Outcome::Equivalent | Outcome::Open => false,
        };
        let narrowed = narrowed(floor, self.margin, self.alpha).filter(|_| doubt == Doubt::Wide);
        let beyond = (outcome != Outcome::Equivalent).then(|| self.beyond(floor)).flatten();
        let needed = narrowed.into_iter().chain(beyond).min();
        (!stands).then_some(Basis::NoiseFloor { doubt, floor: of_floor, needed })
    }

    /// The repeats after which one of the two claims would probably hold, if the difference is
    /// what it seems to be: that it is none that matters, or that there is one.
    fn needed(&self) -> Option<usize> {
        let size = self.evidence.test.estimate.abs();
        let repeats = |target: f64, alpha: f64| {
            let needed = repeats_needed(self.evidence.sd(), self.evidence.n, target, alpha, MOST_FORECAST)?;
            Some(needed.max(self.evidence.n + 1))
        };
        let equivalence = (size < self.margin).then(|| repeats(self.margin - size, self.alpha)).flatten();
        let direction = (size > 0.0).then(|| repeats(size, self.alpha * self.share())).flatten();
        equivalence.into_iter().chain(direction).min()
    }

    /// The repeats after which the difference would probably lie beyond whatever the noise floor
    /// explains, should it never become narrow: both intervals shrink, and must not meet.
    fn beyond(&self, floor: &Evidence) -> Option<usize> {
        let gap = self.evidence.test.estimate.abs() - floor.test.estimate.abs();
        let spread = self.evidence.sd() + floor.sd();
        let needed = repeats_needed(spread, self.evidence.n, gap, self.alpha * self.share(), MOST_FORECAST);
        Some(needed?.max(self.evidence.n + 1))
    }

    /// What Holm asks of this comparison, given how the others did: a share of the level.
    fn share(&self) -> f64 {
        if self.adjusted_p > 0.0 { (self.p / self.adjusted_p).clamp(1e-6, 1.0) } else { 1.0 }
    }

    /// The forecast of an open comparison must also bring the noise floor inside the margin, or the
    /// difference beyond it.
    fn with_floor_to_come(&self, basis: Basis, floor: Option<&Evidence>) -> Basis {
        let Some(floor) = floor.filter(|floor| doubt(floor, self.margin, self.alpha) == Some(Doubt::Wide)) else {
            return basis;
        };
        let both = |needed: Option<usize>| {
            let narrow = needed.zip(narrowed(floor, self.margin, self.alpha)).map(|(one, other)| one.max(other));
            narrow.into_iter().chain(self.beyond(floor)).min()
        };
        match basis {
            Basis::Unclear { needed } => Basis::Unclear { needed: both(needed) },
            Basis::OneOfMany { family, needed } => Basis::OneOfMany { family, needed: both(needed) },
            basis => basis,
        }
    }
}

/// The repeats after which a noise floor would probably be narrower than the margin.
fn narrowed(floor: &Evidence, margin: f64, alpha: f64) -> Option<usize> {
    let needed = repeats_needed(floor.sd(), floor.n, margin, alpha, MOST_FORECAST)?;
    Some(needed.max(floor.n + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALPHA: f64 = 0.05;

    fn evidence(differences: &[f64]) -> Option<Evidence> {
        Evidence::paired(differences, 1e-9, ALPHA)
    }

    fn question(differences: &[f64]) -> Question {
        Question { evidence: evidence(differences), margin: 0.05, floor: None }
    }

    fn over(differences: &[f64], floor: &[f64], rule: FloorRule) -> Question {
        Question { floor: evidence(floor).map(|evidence| Floor { evidence, rule }), ..question(differences) }
    }

    /// `n` differences around `centre` whose interval reaches `half` to both sides.
    fn around(centre: f64, half: f64, n: usize) -> Vec<f64> {
        let raw: Vec<f64> = (0..n).map(|index| index as f64 - (n - 1) as f64 / 2.0).collect();
        let test = one_sample(&raw).expect("several values");
        let scale = half / test.interval(0.95).half_width();
        raw.iter().map(|value| centre + value * scale).collect()
    }

    fn one(differences: &[f64]) -> Decision {
        decide(&[question(differences)], ALPHA).remove(0)
    }

    #[test]
    fn the_interval_decides_against_the_margin() {
        for (centre, half, outcome, basis) in [
            (0.0, 0.04, Outcome::Equivalent, Basis::Inside { measurable: false }),
            (0.03, 0.015, Outcome::Equivalent, Basis::Inside { measurable: true }),
            (0.05, 0.03, Outcome::Above, Basis::Shown { material: false }),
            (0.10, 0.03, Outcome::Above, Basis::Shown { material: true }),
            (-0.05, 0.03, Outcome::Below, Basis::Shown { material: false }),
            (-0.10, 0.03, Outcome::Below, Basis::Shown { material: true }),
        ] {
            let decision = one(&around(centre, half, 5));
            assert_eq!((decision.outcome, decision.basis), (outcome, basis), "{centre} ± {half}");
        }
        let open = one(&around(0.02, 0.06, 5));
        assert_eq!(open.outcome, Outcome::Open);
        assert!(matches!(open.basis, Basis::Unclear { needed: Some(needed) } if needed > 5), "{open:?}");
    }

    #[test]
    fn fewer_than_three_repeats_decide_nothing() {
        for differences in [&[][..], &[0.5], &[0.5, 0.5]] {
            let decision = one(differences);
            assert_eq!((decision.outcome, decision.basis), (Outcome::Open, Basis::TooFew));
            assert_eq!(decision.interval, None);
        }
    }

    #[test]
    fn values_that_agree_are_not_taken_for_certainty() {
        let coarse = Question { evidence: Evidence::paired(&[0.0; 3], 0.03, ALPHA), margin: 0.05, floor: None };
        assert_eq!(decide(&[coarse], ALPHA)[0].outcome, Outcome::Open, "0 ± 0.0745");
        assert_eq!(one(&[0.0; 3]).outcome, Outcome::Equivalent, "exact values");
        assert_eq!(one(&[0.2; 3]).outcome, Outcome::Above, "exact values");
    }

    #[test]
    fn one_of_many_needs_more_than_its_own_interval() {
        let weak = around(0.10, 0.095, 5);
        assert_eq!(one(&weak).outcome, Outcome::Above);
        let noise = around(0.0, 0.10, 5);
        let family: Vec<Question> = [&weak, &noise, &noise, &noise].map(|values| question(values)).into();
        let decisions = decide(&family, ALPHA);
        assert!(matches!(decisions[0].basis, Basis::OneOfMany { family: 4, needed: Some(_) }), "{:?}", decisions[0]);
    }

    #[test]
    fn equivalence_needs_no_adjustment() {
        let family: Vec<Question> = (0..20).map(|_| question(&around(0.01, 0.03, 5))).collect();
        assert!(decide(&family, ALPHA).iter().all(|decision| decision.outcome == Outcome::Equivalent));
    }

    #[test]
    fn ranks_that_disagree_take_a_decision_back() {
        // The t interval lies wholly above 0; of the seven values two are below it.
        let values = [0.30, 0.31, 0.29, 0.30, 0.32, -0.01, -0.02];
        let test = evidence(&values).expect("values").test;
        assert!(test.interval(0.95).low > 0.0);
        let decision = one(&values);
        assert!(matches!(decision.basis, Basis::OutlierSensitive { .. }), "{decision:?}");
    }

    #[test]
    fn a_noise_floor_in_doubt_takes_decisions_back_that_it_could_explain() {
        let with = |differences: &[f64], floor: &[f64]| {
            decide(&[over(differences, floor, FloorRule::Explains)], ALPHA).remove(0)
        };
        let (quiet, biased, wide) = (around(0.0, 0.02, 5), around(0.03, 0.01, 5), around(0.0, 0.08, 5));
        let (small, large, same) = (around(0.06, 0.03, 5), around(0.5, 0.1, 5), around(0.0, 0.03, 5));
        for (differences, floor, outcome) in [
            (&small, &quiet, Outcome::Above),
            (&same, &quiet, Outcome::Equivalent),
            (&small, &biased, Outcome::Open),
            (&same, &biased, Outcome::Open),
            (&large, &biased, Outcome::Above),
            (&small, &wide, Outcome::Open),
            (&same, &wide, Outcome::Open),
            (&large, &wide, Outcome::Above),
        ] {
            assert_eq!(with(differences, floor).outcome, outcome, "{differences:?} over {floor:?}");
        }
        let Basis::NoiseFloor { doubt, needed, .. } = with(&same, &biased).basis else { panic!("not the floor") };
        assert_eq!((doubt, needed), (Doubt::NotZero, None), "more repeats do not help against a bias");
        let Basis::NoiseFloor { doubt, needed, .. } = with(&same, &wide).basis else { panic!("not the floor") };
        assert!(doubt == Doubt::Wide && needed.is_some_and(|needed| needed > 5));
    }

    #[test]
    fn by_the_strict_rule_a_noise_floor_in_doubt_leaves_everything_open() {
        let (quiet, biased, wide) = (around(0.0, 0.02, 5), around(0.03, 0.01, 5), around(0.0, 0.08, 5));
        let (twentyfold, same, unclear) = (around(3.0, 0.01, 5), around(0.0, 0.03, 5), around(0.02, 0.06, 5));
        let with =
            |differences: &[f64], floor: &[f64], rule| decide(&[over(differences, floor, rule)], ALPHA).remove(0);
        for (floor, doubt) in [(&biased, Doubt::NotZero), (&wide, Doubt::Wide)] {
            assert_eq!(with(&twentyfold, floor, FloorRule::Explains).outcome, Outcome::Above);
            for differences in [&twentyfold, &same, &unclear] {
                let strict = with(differences, floor, FloorRule::Strict);
                assert_eq!(strict.outcome, Outcome::Open, "{differences:?}");
                let Basis::NoiseFloor { doubt: found, needed, .. } = strict.basis else { panic!("{strict:?}") };
                assert_eq!((found, needed.is_some()), (doubt, doubt == Doubt::Wide), "{differences:?}");
            }
        }
        for differences in [&twentyfold, &same, &unclear] {
            assert_eq!(
                with(differences, &quiet, FloorRule::Strict),
                one(differences),
                "a floor that holds does nothing"
            );
        }
    }

    #[test]
    fn by_the_strict_rule_only_a_narrow_floor_decides() {
        let wide = around(0.0, 2.0, 5);
        let large = around(3.0, 2.5, 5);
        let needed = |rule| match decide(&[over(&large, &wide, rule)], ALPHA).remove(0).basis {
            Basis::NoiseFloor { needed, .. } => needed,
            other => panic!("{other:?}"),
        };
        assert!(needed(FloorRule::Explains).is_some_and(|needed| needed < 50), "beyond the floor");
        assert_eq!(needed(FloorRule::Strict), None, "so wide a floor does not fit into the margin");
    }

    #[test]
    fn a_floor_of_too_few_repeats_raises_no_doubt() {
        for rule in [FloorRule::Explains, FloorRule::Strict] {
            let question = over(&around(0.0, 0.03, 5), &[0.3, 0.5], rule);
            assert_eq!(decide(&[question], ALPHA)[0].outcome, Outcome::Equivalent, "{rule:?}");
        }
    }

    proptest! {
        #[test]
        fn turning_all_signs_turns_the_outcome(values in prop::collection::vec(-1.0..1.0_f64, 0..9)) {
            let negated: Vec<f64> = values.iter().map(|value| -value).collect();
            let turned = match one(&values).outcome {
                Outcome::Above => Outcome::Below,
                Outcome::Below => Outcome::Above,
                outcome => outcome,
            };
            prop_assert_eq!(one(&negated).outcome, turned);
        }

        #[test]
        fn whatever_the_values_nothing_is_nan(
            values in prop::collection::vec(prop_oneof![Just(0.0), -1e3..1e3_f64, Just(1e-300)], 0..12),
            floor in prop::collection::vec(-1e3..1e3_f64, 0..12),
            margin in 1e-6..10.0_f64,
            rule in prop_oneof![Just(FloorRule::Explains), Just(FloorRule::Strict)],
        ) {
            let question = Question { margin, ..over(&values, &floor, rule) };
            for decision in decide(&[question.clone(), question], ALPHA) {
                prop_assert!(decision.interval.is_none_or(|one| one.low.is_finite() && one.high.is_finite()));
                prop_assert!(decision.adjusted_p.is_none_or(|p| (0.0..=1.0).contains(&p)));
            }
        }
    }
}
