//! A claim must follow from the spread of its own runs.
//!
//! Where both sides give mean, sd and number of runs, or a row for each run, the difference of the
//! means has an interval (Welch's t, 95 %). A change is shown where the interval excludes zero;
//! equality is shown where all of it lies within a margin, and not where a test merely found no
//! difference. The sd counts as that of runs where no number of requests is given.

use super::Context;
use crate::cell::Claim;
use crate::compare::Comparison;
use crate::finding::{Evidence, Finding};
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{change, percent};

/// The margin for a claim of equality, where the table gives none.
const MARGIN: f64 = 0.05;

const CONFIDENCE: f64 = 0.95;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut changes = Vec::new();
    let mut same = Vec::new();
    for comparison in &context.comparisons {
        let Some((claim, [low, high])) = comparison.claim.zip(interval(comparison)) else { continue };
        let text = format!(
            "{}, {}; the 95 % interval is {} to {}",
            comparison.text(),
            claim.called(),
            change(1.0 + low),
            change(1.0 + high)
        );
        let evidence = Evidence::new(comparison.lines.clone(), text);
        match claim {
            Claim::Same if low < -MARGIN || high > MARGIN => same.push(evidence),
            Claim::Improvement | Claim::Regression if low <= 0.0 && high >= 0.0 => changes.push(evidence),
            _ => {}
        }
    }
    let changes = (!changes.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "claim not borne out",
        sentence: "By the spread of its own runs, a change that is claimed may be none.".to_owned(),
        evidence: changes,
        advice: "Call it inconclusive, and repeat the runs until the interval excludes a change of zero.",
    });
    let same = (!same.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "claim not borne out",
        sentence: format!(
            "What is called the same may differ by more than {}: that no difference was found does not show that there is none.",
            percent(MARGIN)
        ),
        evidence: same,
        advice: "Say which difference matters, and repeat the runs until the interval lies within it.",
    });
    changes.into_iter().chain(same).collect()
}

/// The interval of the change, as shares of the baseline's mean.
fn interval(comparison: &Comparison<'_>) -> Option<[f64; 2]> {
    let [from, to] = comparison.spread.as_ref()?;
    let interval = to.welch(from)?.interval(CONFIDENCE);
    let ends = [interval.low / from.mean, interval.high / from.mean];
    (from.mean > 0.0 && ends.iter().all(|end| end.is_finite())).then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn claims_are_held_against_the_spread_of_their_runs() {
        let table = |sd: &str, mean: &str, claim: &str| {
            format!("variant,n,mean,sd,claim\na,5,100 ms,{sd},\nb,5,{mean},{sd},{claim}\n")
        };
        for (sd, mean, claim, expected) in [
            ("2 ms", "90 ms", "improvement", None),
            ("10 ms", "95 ms", "improvement", Some(Severity::Problem)),
            ("10 ms", "105 ms", "worse", Some(Severity::Problem)),
            ("1 ms", "101 ms", "same", None),
            ("10 ms", "101 ms", "same", Some(Severity::Caution)),
            ("10 ms", "95 ms", "", None),
        ] {
            let findings = found(lint, &table(sd, mean, claim));
            assert_eq!(
                findings.first().map(|finding| finding.severity),
                expected,
                "{sd}, {mean}, {claim}: {findings:?}"
            );
        }
    }

    #[test]
    fn single_runs_have_a_spread_as_well() {
        let table = "variant,value,claim\na,10 ms,\na,12 ms,\na,11 ms,\nb,10 ms,better\nb,11 ms,\nb,11 ms,\n";
        let findings = found(lint, table);
        assert_eq!(findings[0].evidence[0].lines, [2, 3, 4, 5, 6, 7]);
        assert!(
            found(lint, "variant,n,requests,mean,sd,claim\na,5,1000,10 ms,9 ms,\nb,5,1000,9 ms,9 ms,better\n")
                .is_empty()
        );
    }
}
