//! The action items that are drafted: what verdicts and differences ask for.

use super::comments::{lines, with_outcome};
use super::tables::{Fate, badness, only_in_some, standing_out};
use super::{Case, Part, names};
use crate::text;
use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::verdict::Outcome;

pub(super) fn action_items(parts: &[Part], cases: &[Case<'_>]) -> Vec<String> {
    let interrupted = parts.iter().zip(names(parts)).filter(|(part, _)| !part.input.complete);
    let resume = interrupted.map(|(_, name)| format!("Resume the run of {name} first: it did not come to its end."));
    let worse = cases.iter().filter_map(|case| {
        let worse: Vec<&Comparison> = with_outcome(case, Outcome::Worse).collect();
        let found = (!worse.is_empty()).then(|| lines(case, &worse).join("; "))?;
        Some(format!("Find the cause before the release. {}: {found}.", case.title))
    });
    let further = cases.iter().filter_map(|case| {
        let worse: Vec<&Comparison> = standing_out(case).into_iter().filter(|one| badness(one) > 0.0).collect();
        let found = (!worse.is_empty()).then(|| lines(case, &worse).join("; "))?;
        Some(format!("Look at what became slower and does not decide. {}: {found}.", case.title))
    });
    let gone = cases.iter().flat_map(|case| {
        let vanished = only_in_some(case).into_iter().filter(|only| only.fate == Fate::Vanished);
        vanished.map(|only| format!("See whether it is gone on purpose. {}: {}.", case.title, only.line))
    });
    let open = parts.iter().zip(names(parts)).filter_map(|(part, name)| {
        let next = part.analysis.next.as_ref()?;
        Some(format!("Decide what is open. {name}: {next}"))
    });
    let complete = parts.iter().zip(names(parts)).filter(|(part, _)| part.input.complete);
    let unsound = complete.flat_map(|(part, name)| {
        let problems = part.analysis.findings.iter().filter(|finding| finding.severity == Severity::Problem);
        problems
            .map(move |found| format!("Mend what can overturn the answer. {name}, {}: {}", found.topic, found.sentence))
    });
    let mut items: Vec<String> = resume.chain(worse).chain(further).chain(gone).chain(open).chain(unsound).collect();
    if parts.iter().all(is_sound) && cases.iter().all(is_no_worse) {
        items.insert(0, "The release can go on: in nothing that decides is it worse, and nothing is open.".to_owned());
    }
    items.iter().map(|item| text::unbroken(item)).collect()
}

/// True if a release can rest on the verdicts of the bundle: the run came to its end, it was more than a first look,
/// and no finding can overturn the answer.
fn is_sound(part: &Part) -> bool {
    let has_problem = part.analysis.findings.iter().any(|finding| finding.severity == Severity::Problem);
    part.input.complete && !part.input.facts.quick && !has_problem
}

/// True if each comparison of the case that decides is better or equivalent, and there is one.
fn is_no_worse(case: &Case<'_>) -> bool {
    let count = |outcome| with_outcome(case, outcome).count();
    let open = count(Outcome::Worse) + count(Outcome::Inconclusive) + count(Outcome::Void);
    open == 0 && count(Outcome::Better) + count(Outcome::Equivalent) > 0
}
