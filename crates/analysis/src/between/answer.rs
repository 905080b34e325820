//! What two bundles say, in a sentence for each measure that decides and each outcome.

use super::{Basis, Change, Row};
use crate::compare::{ends, shown};
use crate::estimate::Interval;
use crate::quantity::grouped;
use crate::verdict::{Outcome, Verdict};
use crate::words;
use plimsoll_model::factor::Assignment;
use plimsoll_model::measure::{Effect, Measure};
use plimsoll_model::trial::Plan;

/// The outcomes, the worst first, with what is said of them.
const OUTCOMES: [(Outcome, &str); 5] = [
    (Outcome::Worse, "the second is worse for"),
    (Outcome::Better, "the second is better for"),
    (Outcome::Equivalent, "both are equivalent for"),
    (Outcome::Inconclusive, "it is undecided for"),
    (Outcome::Void, "nothing can be said of"),
];

/// The sentences, by measure. `plan` has the conditions that both bundles have, and no others.
pub(super) fn answer(rows: &[Row], basis: Basis, plan: &Plan, protocol: &str) -> Vec<String> {
    let mut measures: Vec<&Measure> = Vec::new();
    for row in rows.iter().filter(|row| row.verdict.is_some()) {
        if !measures.contains(&&row.measure) {
            measures.push(&row.measure);
        }
    }
    let speaker = Speaker { rows, basis, plan };
    let on = |measure: &Measure| {
        let name = words::measure(measure, protocol);
        let name = match basis {
            Basis::Values => name,
            Basis::RatiosToBaseline => format!("the ratio to the baseline in {name}"),
        };
        let sentences = OUTCOMES.iter().filter_map(|(outcome, verb)| speaker.clause(measure, *outcome, verb));
        sentences.map(|clause| format!("By {name}, {clause}.")).collect::<Vec<_>>()
    };
    measures.into_iter().flat_map(on).collect()
}

struct Speaker<'a> {
    rows: &'a [Row],
    basis: Basis,
    plan: &'a Plan,
}

impl Speaker<'_> {
    /// `the second is worse for mutex under all 6 conditions (+20.2 % to +20.4 %)`.
    fn clause(&self, measure: &Measure, outcome: Outcome, verb: &str) -> Option<String> {
        let is_of = |row: &&Row| {
            row.measure == *measure && row.verdict.as_ref().is_some_and(|verdict| verdict.outcome == outcome)
        };
        let rows: Vec<&Row> = self.rows.iter().filter(is_of).collect();
        let mut variants: Vec<&Assignment> = Vec::new();
        for row in &rows {
            if !variants.contains(&&row.variant) {
                variants.push(&row.variant);
            }
        }
        let mut told: Vec<[String; 2]> = variants.into_iter().map(|variant| self.variant(variant, &rows)).collect();
        // A reason that all share is told once.
        let last = told.last().map(|[_, reason]| reason.clone())?;
        if told.iter().all(|[_, reason]| *reason == last) {
            let count = told.len();
            told[..count - 1].iter_mut().for_each(|[_, reason]| reason.clear());
        }
        let told: Vec<String> = told.into_iter().map(|parts| parts.concat()).collect();
        Some(format!("{verb} {}", told.join(", and for ")))
    }

    /// Where, with the sizes; and what it would take to decide, or why there is no verdict.
    fn variant(&self, variant: &Assignment, rows: &[&Row]) -> [String; 2] {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.variant == *variant).collect();
        let index = |row: &&Row| self.plan.conditions.iter().position(|condition| *condition == row.condition);
        let indices: Vec<usize> = rows.iter().filter_map(index).collect();
        let place = words::conditions(self.plan, &indices);
        let changes: Vec<&Change> = rows.iter().filter_map(|row| row.judged(self.basis).as_ref().ok()).collect();
        let sizes = sizes(&changes, &rows[0].measure);
        let sizes = if sizes.is_empty() { sizes } else { format!(" ({sizes})") };
        [format!("{} {place}{sizes}", variant.label()), undecided(&rows)]
    }
}

/// What would decide rows that are open: the reason where it is one, the repeats where they are
/// several.
fn undecided(rows: &[&Row]) -> String {
    let verdicts: Vec<&Verdict> = rows.iter().filter_map(|row| row.verdict.as_ref()).collect();
    match verdicts[..] {
        [one] if one.outcome == Outcome::Inconclusive => format!("; {}", one.reason),
        [one] if one.outcome == Outcome::Void => format!(": {}", one.reason),
        _ => {
            let needed: Option<Vec<usize>> = verdicts.iter().map(|verdict| verdict.needed).collect();
            let most = needed.and_then(|needed| needed.into_iter().max());
            most.map_or(String::new(), |most| {
                format!("; about {} repeats in all would probably decide", grouped(most as f64))
            })
        }
    }
}

/// The only change with its interval, or the smallest and the largest.
fn sizes(changes: &[&Change], measure: &Measure) -> String {
    let size = |change: &&&Change| match measure.effect() {
        Effect::Ratio => change.value.ln(),
        Effect::Difference => change.value,
    };
    let least = changes.iter().min_by(|one, other| size(one).total_cmp(&size(other)));
    let most = changes.iter().max_by(|one, other| size(one).total_cmp(&size(other)));
    match (changes, least, most) {
        ([one], ..) => match &one.interval {
            Ok(interval) => format!("{}, interval {}", one.shown(measure), ends(*interval, measure).join(" … ")),
            Err(_) => one.shown(measure),
        },
        (_, Some(least), Some(most)) => {
            let [low, high] = ends(Interval { low: least.value, high: most.value }, measure);
            if low == high { shown(most.value, measure) } else { format!("{low} to {high}") }
        }
        _ => String::new(),
    }
}
