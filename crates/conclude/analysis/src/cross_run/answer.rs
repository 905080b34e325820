//! The answer of a cross-run comparison: a sentence for each measure that decides and each outcome.
//! The tables give the reasons.

use super::rows::RunPair;
use super::{Basis, Change, Row};
use crate::distinct::distinct;
use crate::effect::{ends, shown};
use crate::estimate::Interval;
use crate::verdict::Outcome;
use crate::words;
use plimsoll_model::factor::Assignment;
use plimsoll_model::measure::{Effect, Measure};
use plimsoll_model::plan::Plan;

/// Outcomes that share a sentence, and its phrase.
type OutcomePhrase = (&'static [Outcome], &'static str);

/// The phrases, the worst outcome first.
const PHRASES: [OutcomePhrase; 5] = [
    (&[Outcome::Worse], "the second is worse for"),
    (&[Outcome::Better], "the second is better for"),
    (&[Outcome::Equivalent], "both are equivalent for"),
    (&[Outcome::Inconclusive], "it is undecided for"),
    (&[Outcome::Void], "nothing can be said of"),
];

/// The phrases where nothing known differs, so that nothing can be better or worse.
const PHRASES_WITHOUT_CAUSE: [OutcomePhrase; 4] = [
    (&[Outcome::Worse, Outcome::Better], "the second moved, although nothing known differs, for"),
    (&[Outcome::Equivalent], "both are equivalent for"),
    (&[Outcome::Inconclusive], "it is undecided for"),
    (&[Outcome::Void], "nothing can be said of"),
];

/// The sentences, by measure. `plan` has only the conditions that both bundles have. Where nothing
/// differs, the baseline's change is part of the drift and not of the answer.
pub(super) fn answer(rows: &[Row], pair: &RunPair<'_>, plan: &Plan) -> Vec<String> {
    let has_sentence = |row: &&Row| row.verdict.is_some() && !(pair.nothing_differs && row.is_baseline);
    let rows: Vec<&Row> = rows.iter().filter(has_sentence).collect();
    let measures = distinct(rows.iter().map(|row| &row.measure));
    let sentences_of = Sentences { rows, basis: pair.basis, plan };
    let phrases: &[OutcomePhrase] = if pair.nothing_differs { &PHRASES_WITHOUT_CAUSE } else { &PHRASES };
    let on = |measure: &Measure| {
        let name = words::measure_at_start(measure);
        let name = match pair.basis {
            Basis::Values => name,
            Basis::RatiosToBaseline => format!("{name}, as ratio to the baseline"),
        };
        let sentences = phrases.iter().filter_map(|(outcomes, phrase)| sentences_of.clause(measure, outcomes, phrase));
        sentences.map(|clause| format!("{name}: {clause}.")).collect::<Vec<_>>()
    };
    measures.into_iter().flat_map(on).collect()
}

struct Sentences<'a> {
    rows: Vec<&'a Row>,
    basis: Basis,
    plan: &'a Plan,
}

impl Sentences<'_> {
    /// `the second is worse for mutex under all 6 conditions (+20.2 % to +20.4 %)`.
    fn clause(&self, measure: &Measure, outcomes: &[Outcome], phrase: &str) -> Option<String> {
        let is_of = |row: &&Row| {
            row.measure == *measure && row.verdict.as_ref().is_some_and(|verdict| outcomes.contains(&verdict.outcome))
        };
        let rows: Vec<&Row> = self.rows.iter().copied().filter(is_of).collect();
        let variants = distinct(rows.iter().map(|row| &row.variant));
        let clauses: Vec<String> = variants.into_iter().map(|variant| self.variant(variant, &rows)).collect();
        (!clauses.is_empty()).then(|| format!("{phrase} {}", clauses.join(", and for ")))
    }

    /// A variant with its conditions and the sizes of its changes.
    fn variant(&self, variant: &Assignment, rows: &[&Row]) -> String {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.variant == *variant).collect();
        let index = |row: &&Row| self.plan.conditions.iter().position(|condition| *condition == row.condition);
        let indices: Vec<usize> = rows.iter().filter_map(index).collect();
        let place = words::conditions(self.plan, &indices);
        let changes: Vec<&Change> = rows.iter().filter_map(|row| row.judged(self.basis).as_ref().ok()).collect();
        let sizes = sizes(&changes, &rows[0].measure);
        let sizes = if sizes.is_empty() { sizes } else { format!(" ({sizes})") };
        format!("{}{place}{sizes}", variant.label())
    }
}

/// The only change with its interval, or the range from the smallest to the largest.
pub(super) fn sizes(changes: &[&Change], measure: &Measure) -> String {
    let size = |change: &&&Change| match measure.effect() {
        Effect::Ratio => change.value.ln(),
        Effect::Difference => change.value,
    };
    let least = changes.iter().min_by(|one, other| size(one).total_cmp(&size(other)));
    let most = changes.iter().max_by(|one, other| size(one).total_cmp(&size(other)));
    match (changes, least, most) {
        ([one], ..) => match one.ends(measure) {
            Ok(ends) => format!("{}, interval {}", one.shown(measure), ends.join(" … ")),
            Err(_) => one.shown(measure),
        },
        (_, Some(least), Some(most)) => {
            let [low, high] = ends(Interval { low: least.value, high: most.value }, measure);
            if low == high { shown(most.value, measure) } else { format!("{low} to {high}") }
        }
        _ => String::new(),
    }
}
