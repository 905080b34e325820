//! Failed requests must be part of the durations, time-outs at their limit: without them, a system
//! looks faster the more requests it drops. A percentile is arbitrary once more requests failed
//! than lie beyond it.

use super::Context;
use crate::cell::Errors;
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::lint::impossible::name;
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{grouped, percent};
use plimsoll_model::measure::Unit;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let found: Vec<(Severity, Evidence)> = context.rows.iter().filter_map(check).collect();
    let Some(severity) = found.iter().map(|(severity, _)| *severity).min() else { return Vec::new() };
    let sentence = if severity == Severity::Problem {
        "So many requests failed that a percentile shown depends on whether they are counted in it."
    } else {
        "Requests failed, and the table does not say whether the durations count them, time-outs at their limit."
    };
    vec![Finding {
        severity,
        topic: "errors",
        sentence: sentence.to_owned(),
        evidence: found.into_iter().map(|(_, evidence)| evidence).collect(),
        advice: "Count failed requests in the durations, time-outs at their limit, and give their share beside each number.",
    }]
}

fn check(row: &Row) -> Option<(Severity, Evidence)> {
    let (share, told) = match row.errors? {
        Errors::Count(0.0) => return None,
        Errors::Share(share) if share <= 0.0 => return None,
        Errors::Share(share) => (Some(share), format!("{} of requests failed", percent(share))),
        Errors::Count(failed) => match row.exact_requests().filter(|requests| *requests > 0.0) {
            Some(requests) => {
                let share = failed / requests;
                (
                    Some(share),
                    format!("{} of {} requests failed ({})", grouped(failed), grouped(requests), percent(share)),
                )
            }
            None => (None, format!("{} requests failed", grouped(failed))),
        },
    };
    let timed = row.statistics.iter().any(|(_, number)| number.unit == Unit::Seconds) || row.duration.is_some();
    let highest = row.percentiles().pop();
    let depends = highest.filter(|(p, _)| share.is_some_and(|share| share >= 1.0 - p / 100.0 && *p < 100.0));
    match depends {
        Some((p, number)) => {
            let text = format!("{told}, and {} is given as {}", name(Statistic::Percentile(p)), number.text);
            Some((Severity::Problem, Evidence::of(row, text)))
        }
        None => timed.then(|| (Severity::Caution, Evidence::of(row, told))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn errors_beside_durations_are_found() {
        for (errors, requests, p95, expected) in [
            ("12", "100", "3 ms", Some(Severity::Problem)),
            ("6 %", "", "3 ms", Some(Severity::Problem)),
            ("4", "173901", "3 ms", Some(Severity::Caution)),
            ("4", "", "3 ms", Some(Severity::Caution)),
            ("none", "", "3 ms", None),
            ("0 %", "", "3 ms", None),
            ("", "", "3 ms", None),
        ] {
            let findings = found(lint, &format!("errors,requests,p95\n{errors},{requests},{p95}\n"));
            assert_eq!(findings.first().map(|finding| finding.severity), expected, "{errors} of {requests}");
        }
        assert!(found(lint, "measure,errors,value\nusers,3,10\n").is_empty());
        let findings = found(lint, "requests,errors (%),p95\n1000,6,3 ms\n");
        assert_eq!(findings[0].severity, Severity::Problem, "{findings:?}");
        assert!(found(lint, "errors (/s),p95\n6,3 ms\n").is_empty());
    }
}
