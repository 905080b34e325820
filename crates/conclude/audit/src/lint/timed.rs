//! The timed span must be the compared span.
//!
//! Where an iteration also connects, waits or logs, its duration and the throughput compare all of
//! that. The share of the intended part in the whole shows how much of the number is about it.

use super::Context;
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::percent;

/// Below this share the compared part is not the main part of the timed span, as in Plimsoll's own
/// reports.
const MAIN_SHARE: f64 = 0.8;

/// Below this share the number says next to nothing about the compared part.
const NEGLIGIBLE_SHARE: f64 = 0.1;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let shares: Vec<(f64, &Row)> = context.rows.iter().filter_map(|row| Some((share(row)?, row))).collect();
    let small: Vec<&(f64, &Row)> = shares.iter().filter(|(share, _)| *share < MAIN_SHARE).collect();
    let least = small.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let most = small.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((least, most)) = least.zip(most) else { return Vec::new() };
    let range = if least.1.line == most.1.line {
        format!("{} of the time", percent(least.0))
    } else {
        format!("{} ({}) to {} ({}) of the time", percent(least.0), place(least.1), percent(most.0), place(most.1))
    };
    vec![Finding {
        severity: if least.0 < NEGLIGIBLE_SHARE { Severity::Problem } else { Severity::Caution },
        topic: "what is timed",
        sentence: format!(
            "The call that is compared takes {range} of an iteration: throughput and iteration durations compare what else an \
             iteration does, such as connecting."
        ),
        evidence: small.iter().map(|(share, row)| Evidence::of(row, sentence(*share, row))).collect(),
        advice: "Compare the duration of the call itself, or keep connections open; split connect, send, wait and receive.",
    }]
}

fn share(row: &Row) -> Option<f64> {
    let (call, whole) = (row.call.as_ref()?, row.mean_duration()?);
    (whole.value > 0.0).then(|| call.value / whole.value)
}

/// The place of a row, as short as possible.
fn place(row: &Row) -> String {
    match row.users {
        Some(users) => format!("{} users", plimsoll_analysis::quantity::grouped(users)),
        None => row.name(),
    }
}

fn sentence(share: f64, row: &Row) -> String {
    let text =
        |number: Option<&crate::quantity::Quantity>| number.map(|number| number.text.clone()).unwrap_or_default();
    format!("the call takes {} of {}, {}", text(row.call.as_ref()), text(row.mean_duration()), percent(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn a_small_share_of_the_iteration_is_found() {
        let table = "variant,users,call,iteration\na,10,719.94µs,2.19ms\na,1000,2.31ms,91.98ms\n";
        let findings = found(lint, table);
        assert_eq!(findings[0].severity, Severity::Problem);
        assert!(
            findings[0]
                .sentence
                .starts_with("The call that is compared takes 2.5 % (1,000 users) to 33 % (10 users) of the time"),
            "{findings:?}"
        );
        assert_eq!(findings[0].evidence[0].text, "a, 10 users: the call takes 719.94µs of 2.19ms, 33 %");
    }

    #[test]
    fn a_call_that_is_mainly_timed_passes() {
        assert!(found(lint, "variant,call,duration\na,9 ms,10 ms\nb,,10 ms\n").is_empty());
        assert_eq!(found(lint, "variant,call,duration\na,5 ms,10 ms\n")[0].severity, Severity::Caution);
    }
}
