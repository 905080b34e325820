//! Equal numbers: measured numbers with five digits hardly ever occur twice, so one of them was
//! probably copied. The row over all requests in Locust's table repeats the extremes of others.

use super::Context;
use crate::column::Statistic;
use crate::finding::{Evidence, Finding};
use crate::lint::impossible::name;
use crate::locust::is_aggregated;
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use std::collections::BTreeMap;

/// Numbers with this many digits are checked.
const DIGITS: usize = 5;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let mut seen: BTreeMap<(String, u64), &Row> = BTreeMap::new();
    let mut evidence = Vec::new();
    for row in context.rows.iter().filter(|row| !is_aggregated(row)) {
        for (statistic, number) in &row.statistics {
            if *statistic == Statistic::Value || number.digits < DIGITS {
                continue;
            }
            let name = name(*statistic);
            let first = *seen.entry((name.clone(), number.value.to_bits())).or_insert(row);
            if first.line != row.line {
                let text = format!("{name} {} stands at {} and at {}", number.text, first.name(), row.name());
                evidence.push(Evidence::new([first.line, row.line], text));
            }
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Caution,
        topic: "repeated number",
        sentence: "The same number stands in two places, to the last digit: one of them was probably copied."
            .to_owned(),
        evidence,
        advice: "Look both up in the raw values.",
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::evidence;

    #[test]
    fn numbers_with_many_digits_do_not_repeat() {
        let table = "variant,mean,sd\nS3,469.29 ms,166.32 ms\nEFS,390.87 ms,166.32 ms\nLocal,1.05 ms,1.05 ms\nother,1.05 ms,2 ms\n";
        assert_eq!(evidence(lint, table), ["sd 166.32 ms stands at S3 and at EFS"]);
    }

    #[test]
    fn the_row_over_all_requests_repeats_the_extremes_of_others() {
        let table = "Type,Name,Request Count,Failure Count,Median Response Time,Min Response Time,Max Response Time\n\
                     GET,/,100,0,5,1.2345,98.765\nPUT,/,100,0,5,1.5432,87.654\n,Aggregated,200,0,5,1.2345,98.765\n";
        assert_eq!(evidence(lint, table), Vec::<String>::new());
    }
}
