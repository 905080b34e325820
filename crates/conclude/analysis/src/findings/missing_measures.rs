//! Findings about measures that the study names and no trial has: the name is misspelt, or nothing
//! of the kind was recorded.

use super::{Context, Finding, Severity};
use plimsoll_model::measure::{Measure, Series};
use plimsoll_model::words::and_list;
use std::collections::BTreeSet;

/// The largest number of recorded names in the finding.
const MOST_NAMES: usize = 8;

/// Measures without a value. The names in scripts are unknown before the run, so only the run can
/// report this, before anything else.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let facts = &context.input.facts;
    let named = crate::catalogue::decisions(facts).into_iter().map(|decision| decision.measure);
    let mut missing: Vec<(Measure, String)> = Vec::new();
    for measure in named.chain(facts.report.measures.iter().cloned()) {
        let known = missing.iter().any(|(known, _)| *known == measure);
        if let Some(reason) = reason(context, &measure).filter(|_| !known) {
            missing.push((measure, reason));
        }
    }
    let names: Vec<String> = missing.iter().map(|(measure, _)| format!("`{measure}`")).collect();
    let lines = missing.iter().map(|(measure, reason)| format!("{measure}: {reason}"));
    let (sentence, evidence) = match missing.as_slice() {
        [] => return Vec::new(),
        [(_, reason)] => {
            (format!("The study names {}, and no trial has a value for it: {reason}.", names[0]), Vec::new())
        }
        _ => {
            (format!("The study names measures for which no trial has a value: {}.", and_list(&names)), lines.collect())
        }
    };
    vec![Finding { severity: Severity::Problem, topic: "measures without a value", sentence, evidence }]
}

/// The reason why no trial that counts has a value; none where one has a value, or merely too few
/// requests.
fn reason(context: &Context<'_>, measure: &Measure) -> Option<String> {
    let mut first = None;
    for reader in context.counted() {
        match reader.value(measure) {
            Err(reason) if reader.shortage(measure).is_none() => first = first.or(Some(reason)),
            _ => return None,
        }
    }
    first.map(|reason| reason + &instead(context, &measure.series).unwrap_or_default())
}

/// The names that were recorded of the kind of the series.
fn instead(context: &Context<'_>, series: &Series) -> Option<String> {
    let wanted = series.named_subject()?;
    let recorded = context.counted().flat_map(|reader| &reader.load().tallies);
    let alike = recorded.map(|(subject, _)| subject).filter(|subject| subject.is_like(&wanted));
    let names: BTreeSet<String> =
        alike.filter_map(|subject| Some(subject.to_string().split_once(':')?.1.to_owned())).collect();
    let lines: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    Some(match names.len() {
        0 => "; there was none at all".to_owned(),
        count if count > MOST_NAMES => format!("; there are {}, and {} others", lines.join(", "), count - MOST_NAMES),
        1 => format!("; there is {}", lines[0]),
        _ => format!("; there are {}", and_list(&lines)),
    })
}
