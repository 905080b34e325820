//! A change must exceed the usual spread between runs of the same variant.
//!
//! A change within the usual spread means nothing. A change just beyond it occurs by chance in one
//! run of twenty if the spread covers 95 % of runs, and more often among several changes. A change beyond it that is
//! called none, by a table that states the spread itself, is a claim against its own rule.

use super::Context;
use crate::cell::Claim;
use crate::compare::Comparison;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::percent;

/// A change up to this multiple of the usual spread is just beyond it.
const JUST_PAST: f64 = 2.0;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let few = |comparison: &Comparison<'_>| comparison.runs.is_none_or(|runs| runs < 3);
    let mut within = Vec::new();
    let mut past = Vec::new();
    let mut denied = Vec::new();
    for comparison in &context.comparisons {
        let Some((change, usual)) = comparison.change.as_ref().zip(comparison.row.variance) else { continue };
        let size = change.low.abs().min(change.high.abs());
        let text = format!("{}, with a usual variance of ±{}", comparison.text(), percent(usual));
        let evidence = Evidence::new(comparison.lines.clone(), text);
        match comparison.claim {
            // The interval of the runs' own spread says more than a rule.
            Some(Claim::Same) if comparison.spread.is_some() => {}
            Some(Claim::Same) => denied.extend((size - change.half_step > usual).then_some(evidence)),
            _ if !few(comparison) => {}
            Some(_) if size <= usual => within.push(evidence),
            _ if size > usual && size <= usual * JUST_PAST => past.push(evidence),
            _ => {}
        }
    }
    let count = past.len();
    let past = (!past.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "usual variance",
        sentence: format!(
            "{} just past the usual variance. {}",
            if count == 1 { "A change is".to_owned() } else { format!("{count} changes are") },
            "If that is the range of 95 % of runs, one run in twenty lies outside it by chance, and more the more are \
             looked at."
        ),
        evidence: past,
        advice: "Repeat the comparison; an interval from repeats, not one number beside a rule of thumb, tells whether it is there.",
    });
    let within = (!within.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "usual variance",
        sentence: "A change within the usual variance is called one: runs of the same thing differ as much.".to_owned(),
        evidence: within,
        advice: "Call it inconclusive, or repeat the comparison until an interval excludes a change of zero.",
    });
    let denied = (!denied.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "usual variance",
        sentence:
            "What is called the same differs by more than the usual variance: by the table's own rule it has changed."
                .to_owned(),
        evidence: denied,
        advice: "Name the change, or show by repeats that runs of the same thing differ as much.",
    });
    within.into_iter().chain(denied).chain(past).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn changes_are_held_against_the_usual_variance() {
        for (change, claim, expected) in [
            ("+5.66%", "improvement", Some(Severity::Caution)),
            ("-5.66%", "", Some(Severity::Caution)),
            ("+4%", "improvement", Some(Severity::Problem)),
            ("+4%", "same", None),
            ("-10.4%", "same", Some(Severity::Problem)),
            ("-20 %", "same", Some(Severity::Problem)),
            ("+5.4 %", "same", Some(Severity::Problem)),
            ("+5 %", "same", None),
            ("+4%", "", None),
            ("+11%", "improvement", None),
            ("3-30 %", "improvement", Some(Severity::Problem)),
        ] {
            let table = format!("measure,n,change,claim,usual variance\nusers,1,{change},{claim},±5 %\n");
            let findings = found(lint, &table);
            assert_eq!(findings.first().map(|finding| finding.severity), expected, "{table}");
        }
    }
}
