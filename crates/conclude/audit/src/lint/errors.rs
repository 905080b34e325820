//! Failed requests must be part of the durations, time-outs at their limit: without them, a system
//! looks faster the more requests it drops. A percentile is arbitrary once more requests failed
//! than lie beyond it. Of an upper bound, such as `< 6 %`, it is not known whether as many failed, or any.

use super::Context;
use crate::cell::Errors;
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::lint::impossible::name;
use crate::quantity::Bound;
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{grouped, percent};
use plimsoll_model::measure::Unit;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let found: Vec<(&Row, (Severity, Evidence))> =
        context.rows.iter().filter_map(|row| Some((row, check(row)?))).collect();
    let Some(severity) = found.iter().map(|(_, (severity, _))| *severity).min() else { return Vec::new() };
    let sentence = if severity == Severity::Problem {
        "So many requests failed that a percentile shown depends on whether they are counted in it."
    } else if found.iter().all(|(row, _)| row.errors_bound == Some(Bound::Upper)) {
        "Requests may have failed, and the table does not say whether durations count them, time-outs at their limit."
    } else {
        "Requests failed, and the table does not say whether the durations count them, time-outs at their limit."
    };
    vec![Finding {
        severity,
        topic: "errors",
        sentence: sentence.to_owned(),
        evidence: found.into_iter().map(|(_, (_, evidence))| evidence).collect(),
        advice: "Count failed requests in the durations, time-outs at their limit, and give their share beside each number.",
    }]
}

fn check(row: &Row) -> Option<(Severity, Evidence)> {
    let none_failed = matches!(row.errors?, Errors::Count(0.0) | Errors::Share(0.0));
    let about = match row.errors_bound {
        // `> 0`
        Some(Bound::Lower) if none_failed => "more than ",
        _ if none_failed => return None,
        Some(Bound::Upper) => "at most ",
        Some(Bound::Lower) => "at least ",
        None => "",
    };
    let (share, told) = match row.errors? {
        Errors::Share(share) => (Some(share), format!("{about}{} of requests failed", percent(share))),
        Errors::Count(failed) => match row.exact_requests().filter(|requests| *requests > 0.0) {
            Some(requests) => {
                let share = failed / requests;
                (
                    Some(share),
                    format!("{about}{} of {} requests failed ({})", grouped(failed), grouped(requests), percent(share)),
                )
            }
            None => (None, format!("{about}{} requests failed", grouped(failed))),
        },
    };
    let timed = row.statistics.iter().any(|(_, number)| number.unit == Unit::Seconds) || row.duration.is_some();
    let highest = row.percentiles().pop();
    // Fewer than an upper bound may have failed, and at least a lower one has.
    let failed = share.filter(|_| row.errors_bound != Some(Bound::Upper));
    let depends = highest.filter(|(p, _)| failed.is_some_and(|share| share >= 1.0 - p / 100.0 && *p < 100.0));
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

    #[test]
    fn a_bound_of_errors_is_no_number_of_them() {
        for (errors, requests, expected) in [
            ("< 6 %", "", (Severity::Caution, "at most 6 % of requests failed")),
            ("<12", "100", (Severity::Caution, "at most 12 of 100 requests failed (12 %)")),
            ("≤ 12", "", (Severity::Caution, "at most 12 requests failed")),
            ("> 6 %", "", (Severity::Problem, "at least 6 % of requests failed, and p95 is given as 3 ms")),
            ("12+", "100", (Severity::Problem, "at least 12 of 100 requests failed (12 %), and p95 is given as 3 ms")),
            ("> 1 %", "", (Severity::Caution, "at least 1 % of requests failed")),
        ] {
            let findings = found(lint, &format!("variant,errors,requests,p95\na,{errors},{requests},3 ms\n"));
            let text = findings[0].evidence[0].text.as_str();
            assert_eq!((findings[0].severity, text), (expected.0, format!("a: {}", expected.1).as_str()), "{errors}");
        }
        let begins = |errors: &str| found(lint, &format!("errors (%),p99.9\n{errors}\n"))[0].sentence.clone();
        assert!(begins("< 0.1,3 ms").starts_with("Requests may have failed, and the table does not say whether"));
        assert!(begins("< 0.1,3 ms\n0.01,3 ms").starts_with("Requests failed, and the table does not say whether"));
    }
}
