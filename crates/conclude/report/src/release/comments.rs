//! The comments that are drafted: the verdicts of each case, the noise floor they stand on, what moved besides, what appeared
//! and vanished, and the problems of the measurement.

use super::tables::{Fate, in_a_line, only_in_some, rows_compared, standing_out};
use super::{Case, Part, names};
use crate::{method, text};
use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::verdict::Outcome;
use plimsoll_analysis::words::{self, counted};
use plimsoll_model::words::and_list;

/// Names in a sentence, at most; tables have all.
const NAMED: usize = 6;

pub(super) fn comments(parts: &[Part], cases: &[Case<'_>]) -> Vec<String> {
    let of_cases = cases.iter().flat_map(|case| {
        let only = only_in_some(case).into_iter().filter(|only| only.fate != Fate::Rare);
        let only = only.map(|only| format!("{}: {}.", case.title, only.line));
        [Some(verdicts(case)), moved(case)].into_iter().flatten().chain(only).collect::<Vec<String>>()
    });
    let of_parts = parts.iter().zip(names(parts)).flat_map(|(part, name)| of_part(part, &name));
    of_cases.chain(of_parts).map(|comment| text::unbroken(&comment)).collect()
}

/// `Bounded, 200 users: of 3 comparisons that decide 1 is worse (requests, p95: +8 % (+6 … +10 %)) and 2 are equivalent.`
fn verdicts(case: &Case<'_>) -> String {
    let of = |outcome: Outcome| -> Vec<&Comparison> { with_outcome(case, outcome).collect() };
    let outcomes = [Outcome::Worse, Outcome::Better, Outcome::Equivalent, Outcome::Inconclusive, Outcome::Void];
    let counts: Vec<String> = outcomes
        .into_iter()
        .map(|outcome| (outcome, of(outcome)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(outcome, found)| {
            let is = if found.len() == 1 { "is" } else { "are" };
            let named = match outcome {
                // Nothing that was measured stands behind those.
                Outcome::Void => found.iter().map(|one| words::measure(&one.measure)).collect(),
                _ => lines(case, &found),
            };
            format!("{} {is} {outcome} ({})", found.len(), named.join("; "))
        })
        .collect();
    let all = outcomes.into_iter().map(|outcome| of(outcome).len()).sum();
    let decide = if all == 1 { "decides" } else { "decide" };
    format!("{}: of {} that {decide} {}.", case.title, counted(all, "comparison"), and_list(&counts))
}

/// The comparisons of a case with this verdict.
pub(super) fn with_outcome<'a>(case: &'a Case<'_>, outcome: Outcome) -> impl Iterator<Item = &'a Comparison> {
    let here = case.part.analysis.comparisons.iter().filter(|one| one.condition == case.condition);
    here.filter(move |one| one.verdict.as_ref().is_some_and(|verdict| verdict.outcome == outcome))
}

/// Comparisons in words, each with its variant where there are several.
pub(super) fn lines(case: &Case<'_>, comparisons: &[&Comparison]) -> Vec<String> {
    let plan = &case.part.input.plan;
    let line = |one: &&Comparison| match plan.variants.len() {
        0..=2 => in_a_line(one),
        _ => format!("{} of {}", in_a_line(one), plan.label(one.variant)),
    };
    let mut lines: Vec<String> = comparisons.iter().take(NAMED).map(line).collect();
    let more = comparisons.len().saturating_sub(NAMED);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

/// The rows of tables that stand out; none where there are no rows.
fn moved(case: &Case<'_>) -> Option<String> {
    let (all, moved) = (rows_compared(case), standing_out(case));
    let rest = all.saturating_sub(moved.len());
    match (all, moved.len()) {
        (0, _) => None,
        (_, 0) => Some(format!("{}: none of {all} further means by name stands out.", case.title)),
        (_, count) => Some(format!(
            "{}: {count} of {all} further means by name {} out ({}){}.",
            case.title,
            if count == 1 { "stands" } else { "stand" },
            lines(case, &moved).join("; "),
            match rest {
                0 => String::new(),
                1 => "; 1 does not".to_owned(),
                rest => format!("; {rest} do not"),
            }
        )),
    }
}

/// The noise floor, and what is wrong with the measurement.
fn of_part(part: &Part, name: &str) -> Vec<String> {
    let Part { input, analysis, .. } = part;
    let floor = method::noise_floor(input, analysis);
    let floor = (!floor.is_empty()).then(|| format!("{name}, noise floor: {floor}."));
    let problems = analysis.findings.iter().filter(|finding| finding.severity == Severity::Problem);
    let problems = problems.map(|finding| format!("{name}, {}: {}", finding.topic, finding.sentence));
    floor.into_iter().chain(problems).collect()
}
