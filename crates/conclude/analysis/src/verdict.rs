//! Verdicts: decisions in words, in terms of better and worse.

use crate::decide::{self, Basis, Decision, Doubt, EndDoubt, HiddenBy, InfluenceDoubt, MAX_FORECAST_REPEATS};
use crate::effect::{additive_margin, ends, natural, natural_interval, shown};
use crate::estimate::too_few;
use crate::quantity::{grouped, margin as margin_in_words, p_value, significant};
use crate::reason::OrReason;
use crate::turns::InfluenceKind;
use plimsoll_model::measure::{Direction, Measure};
use plimsoll_statistics::Interval;
use std::fmt;
use std::time::Duration;

/// The verdict on a variant compared with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The verdict in a word.
    pub outcome: Outcome,
    /// For a difference: true if it is larger than the margin, false if its size is uncertain.
    pub material: Option<bool>,
    /// The smallest difference that matters, as in
    /// [`Decision::margin`](plimsoll_model::study::Decision::margin).
    pub margin: f64,
    /// The reason in words, and what would decide.
    pub reason: String,
    /// What speaks against a verdict that the interval alone would give, or may: the other comparisons, the ranks, the
    /// noise floor.
    pub objection: Option<String>,
    /// Holm's adjusted p-value of the null hypothesis of no difference, over all comparisons that
    /// decide.
    pub adjusted_p: Option<f64>,
    /// For an inconclusive verdict: the total number of repeats that would probably decide it.
    pub needed: Option<usize>,
    /// True if the variant is shown to be non-inferior to the baseline by the margin.
    pub not_inferior: bool,
    /// The doubt that keeps it from passing the gate, where the interval alone would let it pass.
    pub gate_objection: Option<&'static str>,
    /// True if what slices do to others leaves the verdict open.
    pub withheld_by_influence: bool,
    /// True if doubt about the noise floor leaves the verdict open.
    pub blocked_by_floor: bool,
    /// True if the noise floor leaves the verdict open although the difference lies beyond the
    /// floor.
    pub exceeds_floor: bool,
    /// True if it is equivalent although the noise floor excludes zero, because it is so with each copy of the baseline.
    pub holds_despite_floor: bool,
    /// True if it is reached whatever the other comparisons that decide will show.
    pub for_good: bool,
}

/// A verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The variant is worse than the baseline: a regression.
    Worse,
    /// The variant is better than the baseline: an improvement.
    Better,
    /// The difference, if there is one, is smaller than the margin.
    Equivalent,
    /// The data do not decide.
    Inconclusive,
    /// There are no data to decide with.
    Void,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Worse => "worse",
            Outcome::Better => "better",
            Outcome::Equivalent => "equivalent",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Void => "void",
        })
    }
}

impl Verdict {
    /// A void verdict, with the reason.
    pub(crate) fn void(margin: f64, reason: String) -> Verdict {
        Verdict {
            outcome: Outcome::Void,
            material: None,
            margin,
            reason,
            objection: None,
            adjusted_p: None,
            needed: None,
            not_inferior: false,
            gate_objection: None,
            withheld_by_influence: false,
            blocked_by_floor: false,
            exceeds_floor: false,
            holds_despite_floor: false,
            for_good: false,
        }
    }

    /// The outcome, with the certainty of its size: `worse`, `worse, size uncertain`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let uncertain = if self.material == Some(false) { ", size uncertain" } else { "" };
        format!("{}{uncertain}", self.outcome)
    }
}

/// What else is known of a comparison when its verdict is put into words.
#[derive(Debug, Default)]
pub(crate) struct Circumstances {
    /// A reason that makes the verdict void whatever the numbers are.
    pub(crate) why_void: Option<&'static str>,
    /// What became of its trials, where so many do not count that too few pairs are left.
    pub(crate) losses: Option<String>,
    /// The time that one more repeat takes.
    pub(crate) per_repeat: Option<Duration>,
    /// The repeats in which both were loaded, whether their pair counts or not. As many as pairs, if it is less.
    pub(crate) repeats: usize,
}

/// The verdict on a comparison in `measure` over `n` repeats, or a void one with the reason.
pub(crate) fn verdict(
    measure: &Measure,
    n: OrReason<usize>,
    decision: &Decision,
    margin: f64,
    circumstances: &Circumstances,
) -> Verdict {
    match (n, circumstances.why_void) {
        (Err(reason), _) => Verdict::void(margin, circumstances.losses.clone().unwrap_or(reason)),
        (Ok(_), Some(reason)) => Verdict::void(margin, reason.to_owned()),
        (Ok(n), None) => under(circumstances, measure, n, decision, margin),
    }
}

/// The verdict that follows from a decision about `measure` with this margin over `n` repeats.
#[must_use]
pub fn of_decision(measure: &Measure, n: usize, decision: &Decision, margin: f64) -> Verdict {
    under(&Circumstances::default(), measure, n, decision, margin)
}

fn under(circumstances: &Circumstances, measure: &Measure, n: usize, decision: &Decision, margin: f64) -> Verdict {
    let reason = Reason { measure, n, margin, decision, circumstances };
    let (why, next) = (reason.why(), reason.next());
    // "Worse" lies above zero where less is better, and below it where more is better.
    let (above, below) = match measure.direction() {
        Direction::Lower => (Outcome::Worse, Outcome::Better),
        Direction::Higher => (Outcome::Better, Outcome::Worse),
    };
    let is_inside = not_inferior(measure, decision, margin);
    let gate_objection = end_in_doubt(measure, decision).filter(|_| is_inside);
    let outcome = match decision.outcome {
        decide::Outcome::Above => above,
        decide::Outcome::Below => below,
        decide::Outcome::Equivalent => Outcome::Equivalent,
        decide::Outcome::Open => Outcome::Inconclusive,
    };
    Verdict {
        outcome,
        material: match decision.basis {
            Basis::Shown { material } => Some(material),
            _ => None,
        },
        margin,
        reason: [Some(why.clone()), next].into_iter().flatten().collect::<Vec<String>>().join("; "),
        objection: matches!(
            decision.basis,
            Basis::OneOfMany { .. }
                | Basis::OutlierSensitive { .. }
                | Basis::NoiseFloor { .. }
                | Basis::Influence { .. }
                | Basis::MayHide(_)
        )
        .then_some(why),
        adjusted_p: decision.adjusted_p,
        needed: reason.in_repeats(needed(&decision.basis)),
        not_inferior: is_inside && gate_objection.is_none(),
        gate_objection,
        withheld_by_influence: matches!(decision.basis, Basis::Influence { .. } | Basis::MayHide(_)),
        blocked_by_floor: matches!(decision.basis, Basis::NoiseFloor { .. }),
        exceeds_floor: matches!(decision.basis, Basis::NoiseFloor { beyond: true, .. }),
        holds_despite_floor: matches!(decision.basis, Basis::Inside { despite: Some(_), .. }),
        for_good: decision.for_good,
    }
}

fn needed(basis: &Basis) -> Option<usize> {
    match basis {
        Basis::Unclear { needed }
        | Basis::OneOfMany { needed, .. }
        | Basis::NoiseFloor { needed, .. }
        | Basis::Influence { needed, .. } => *needed,
        _ => None,
    }
}

/// Non-inferiority: the worse end of the interval lies inside the margin, and the decision was not
/// withdrawn. Where a change for the worse is shown in place of an *equivalent* that was withdrawn,
/// what speaks against that speaks against the margin.
fn not_inferior(measure: &Measure, decision: &Decision, margin: f64) -> bool {
    let margin = additive_margin(measure.effect(), margin);
    let worse = match measure.direction() {
        Direction::Lower => decide::Outcome::Above,
        Direction::Higher => decide::Outcome::Below,
    };
    let taken_back = matches!(
        decision.basis,
        Basis::OutlierSensitive { .. }
            | Basis::NoiseFloor { .. }
            | Basis::Influence { .. }
            | Basis::MayHide(_)
            | Basis::TooFew
    ) || (decision.equivalence_withdrawn && decision.outcome == worse);
    !taken_back
        && decision.interval.is_some_and(|interval| match measure.direction() {
            Direction::Lower => interval.high < margin,
            Direction::Higher => interval.low > -margin,
        })
}

/// The doubt about the worse end of an interval that decides nothing, in words.
fn end_in_doubt(measure: &Measure, decision: &Decision) -> Option<&'static str> {
    let [above, below] = decision.end_in_doubt;
    let worse = match measure.direction() {
        Direction::Lower => above,
        Direction::Higher => below,
    };
    worse.map(|doubt| match doubt {
        EndDoubt::NoiseFloor => "the noise floor is in doubt",
        EndDoubt::Influence => "slices may change one another",
        EndDoubt::MayHide => "a larger difference may be hidden",
    })
}

/// Writes the reason of a decision.
struct Reason<'a> {
    measure: &'a Measure,
    n: usize,
    margin: f64,
    decision: &'a Decision,
    circumstances: &'a Circumstances,
}

impl Reason<'_> {
    /// The reason itself.
    fn why(&self) -> String {
        let margin = margin_in_words(self.margin, self.measure);
        match &self.decision.basis {
            Basis::Inside { measurable, despite } => {
                let rest = match despite {
                    Some(floor) => {
                        format!(", also with each copy of the baseline alone, which differ by {}", self.ends(*floor))
                    }
                    None if *measurable => "; a difference is there, and smaller than that".to_owned(),
                    None => String::new(),
                };
                format!("the interval lies within the margin of {margin}{rest}")
            }
            Basis::Shown { material } => {
                let size = if *material { "and it is larger than" } else { "but it may be smaller than" };
                format!("a difference is shown, {size} the margin of {margin}")
            }
            Basis::Unclear { .. } => format!(
                "the interval reaches {}: neither a difference nor its absence within {margin} is shown",
                self.reach(self.decision.interval),
            ),
            Basis::OneOfMany { family, .. } => format!(
                "by itself the interval excludes zero, but so it may by chance in one of {family} comparisons ({} after \
                 Holm's adjustment)",
                p_value(self.decision.adjusted_p.unwrap_or(1.0)),
            ),
            Basis::OutlierSensitive { typical: Some(typical), .. } => format!(
                "outlier-sensitive: by ranks, which single values hardly move, the difference is {}, outside the margin of \
                 {margin}",
                shown(natural(self.measure.effect(), *typical), self.measure)
            ),
            Basis::OutlierSensitive { ranked, typical: None } => format!(
                "outlier-sensitive: by ranks, which single values hardly move, the interval reaches {} and decides otherwise",
                self.reach(Some(*ranked))
            ),
            Basis::NoiseFloor { doubt, floor, beyond, .. } => {
                let in_doubt = match doubt {
                    Doubt::NotZero => "excludes a change of zero".to_owned(),
                    Doubt::Wide => format!("is wider than the margin of {margin}"),
                };
                let itself = match self.decision.interval {
                    Some(itself) if *beyond => {
                        format!("; the difference itself, {}, lies beyond it", self.ends(itself))
                    }
                    _ => String::new(),
                };
                format!("the noise floor ({}) {in_doubt}{itself}", self.ends(*floor))
            }
            Basis::Influence { kind, doubt: InfluenceDoubt::Shown, influence, .. } => {
                let differs = match kind {
                    InfluenceKind::CarryOver => {
                        "carry-over: right after a slice of the variant the same system differs from its other slices"
                    }
                    InfluenceKind::Interference => {
                        "interference: beside the variant the baseline differs from what it is beside its duplicate"
                    }
                };
                format!("{differs} by {}, which reaches half the margin of {margin}", self.ends(*influence))
            }
            Basis::Influence { kind, doubt: InfluenceDoubt::Hides, without, .. } => {
                let what = match kind {
                    InfluenceKind::CarryOver => "what slices may leave to the next ones",
                    InfluenceKind::Interference => "what the variant may do to the baseline beside it",
                };
                format!(
                    "the interval lies within the margin of {margin}, but with {what} taken out it reaches {}",
                    self.reach(Some(*without))
                )
            }
            Basis::MayHide(by) => {
                let why = match by {
                    HiddenBy::SharedProcessors => "both ran at the same time on the same processors".to_owned(),
                    HiddenBy::IdleWork { variant, baseline } => format!(
                        "between its slices the variant uses {} processors and the baseline {}, so that one slows the \
                         other down",
                        significant(*variant),
                        significant(*baseline)
                    ),
                };
                format!(
                    "the interval lies within the margin of {margin}, but {why}, which draws them towards one another: a \
                     larger difference may be hidden"
                )
            }
            Basis::TooFew => self.circumstances.losses.clone().unwrap_or_else(|| too_few(self.n)),
        }
    }

    /// The repeats that bring so many pairs, where as many of them count as until now; none above [`MAX_FORECAST_REPEATS`].
    fn in_repeats(&self, pairs: Option<usize>) -> Option<usize> {
        let repeats = self.circumstances.repeats.max(self.n);
        let needed = (pairs? * repeats).div_ceil(self.n.max(1));
        (needed <= MAX_FORECAST_REPEATS).then_some(needed)
    }

    /// What would decide, for an open verdict.
    fn next(&self) -> Option<String> {
        match &self.decision.basis {
            Basis::Inside { .. } | Basis::Shown { .. } | Basis::TooFew => None,
            Basis::Unclear { needed } | Basis::OneOfMany { needed, .. } => Some(self.forecast(self.in_repeats(*needed))),
            Basis::OutlierSensitive { .. } => Some("look at them".to_owned()),
            Basis::Influence { kind, doubt: InfluenceDoubt::Shown, .. } => Some(match kind {
                InfluenceKind::CarryOver => "a longer `settle` or `design = \"trials\"` helps, more repeats do not".to_owned(),
                InfluenceKind::Interference => "`design = \"turns\"` helps, more repeats do not".to_owned(),
            }),
            Basis::MayHide(HiddenBy::SharedProcessors) => Some(
                "`design = \"turns\"` can show that there is none, and so can processors of their own (`cpus = \"own\"`)"
                    .to_owned(),
            ),
            Basis::MayHide(HiddenBy::IdleWork { .. }) => Some(
                "`design = \"trials\"` can show that there is none, and so can processors of their own (`cpus = \"own\"`)"
                    .to_owned(),
            ),
            Basis::Influence { doubt: InfluenceDoubt::Hides, needed, .. } => Some(self.forecast(self.in_repeats(*needed))),
            Basis::NoiseFloor { doubt, beyond, needed, .. } => {
                Some(self.next_over_floor(*doubt, *beyond, self.in_repeats(*needed)))
            }
        }
    }

    /// `37 repeats in all (1 h 20 min)`.
    fn repeats(&self, needed: usize) -> String {
        let time = self.circumstances.per_repeat.map(|one| time_of(needed, one));
        format!("{} repeats in all{}", roughly(needed), time.map(|time| format!(" ({time})")).unwrap_or_default())
    }

    fn forecast(&self, needed: Option<usize>) -> String {
        match needed {
            Some(needed) => format!("about {} would probably decide", self.repeats(needed)),
            None => format!(
                "more than {} repeats would be needed: a quieter machine, longer loads or a larger margin instead",
                grouped(MAX_FORECAST_REPEATS as f64)
            ),
        }
    }

    /// Advice about a noise floor in doubt. It names the milder rule where that rule would let the
    /// difference stand.
    fn next_over_floor(&self, doubt: Doubt, beyond: bool, needed: Option<usize>) -> String {
        const MILDER: &str = "`noise_floor = \"beyond\"`";
        if doubt == Doubt::NotZero {
            if needed.is_some() {
                return self.forecast(needed);
            }
            let or = if beyond { format!(", or declare {MILDER}") } else { String::new() };
            return format!("let `plimsoll doctor --aa` tell whether that was chance{or}");
        }
        let ways = if beyond { format!(", a wider margin or {MILDER}") } else { " or a wider margin".to_owned() };
        match needed {
            Some(needed) => format!("to decide: about {}, a quieter machine{ways}", self.repeats(needed)),
            None => format!(
                "to decide: longer loads, a quieter machine{ways}, because it would take more than {} repeats",
                grouped(MAX_FORECAST_REPEATS as f64)
            ),
        }
    }

    /// `from −4.0 % to +8.1 %`.
    fn reach(&self, interval: Option<Interval>) -> String {
        interval.map_or("nowhere".to_owned(), |interval| format!("from {}", self.ends(interval)))
    }

    /// `−4.0 % to +8.1 %`.
    fn ends(&self, interval: Interval) -> String {
        ends(natural_interval(self.measure.effect(), interval), self.measure).join(" to ")
    }
}

/// A forecast in two digits, which is all that a few repeats support: `37`, `250`.
#[must_use]
pub fn roughly(repeats: usize) -> String {
    let rounded = if repeats < 100 { repeats } else { repeats.next_multiple_of(10) };
    grouped(rounded as f64)
}

/// The time that so many repeats take, in words: `1 h 20 min`.
#[must_use]
pub fn time_of(repeats: usize, one: Duration) -> String {
    crate::words::span(one * u32::try_from(repeats).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
