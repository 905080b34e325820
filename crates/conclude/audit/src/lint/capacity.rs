//! A capacity is an interval from several searches on restored data, with a steady state at each
//! step.
//!
//! One ramp gives one number that nobody can reproduce: the load never stays long enough to settle,
//! earlier load remains in the data, and the bend of the curve is read off by eye. The largest load
//! that was tried is no failure threshold but a lower bound.

use super::Context;
use crate::cell::grows;
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_model::measure::Direction;

/// Words in names of measures of capacity.
const CAPACITY: [&str; 14] = [
    "capacity",
    "failure",
    "knee",
    "limit",
    "max",
    "maximum",
    "optimal",
    "peak",
    "rps",
    "saturation",
    "supported",
    "threshold",
    "throughput",
    "users",
];

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let ramps: Vec<&Row> =
        context.rows.iter().filter(|row| is_capacity(row) && from_one_ramp(row, context.rows)).collect();
    let growing: Vec<&Row> = context.rows.iter().filter(|row| row.data.as_deref().is_some_and(grows)).collect();
    let mut evidence: Vec<Evidence> =
        ramps.iter().map(|row| Evidence::of(row, numbers(row, runs(row, context.rows)))).collect();
    evidence.extend(ramps.iter().filter(|row| bound(row)).map(|row| {
        Evidence::of(
            row,
            "this is the largest load that was tried: a bound, and the same for every variant that held out",
        )
    }));
    if let Some(first) = growing.first() {
        let lines: Vec<u64> = growing.iter().map(|row| row.line).collect();
        let data = first.data.clone().unwrap_or_default();
        evidence.push(Evidence::new(lines, format!("the data set grows while it is measured: {data}")));
    }
    let (severity, topic, sentence) = match (ramps.is_empty(), growing.is_empty()) {
        (true, true) => return Vec::new(),
        (false, true) => (
            Severity::Problem,
            "capacity from one ramp",
            "A capacity is read off one ramp: no step is steady, and no interval says how sure the number is.",
        ),
        (false, false) => (
            Severity::Problem,
            "capacity from one ramp",
            "A capacity is read off one ramp while the data set grows: no step is steady, load and data rise together, and no \
             interval says how sure the number is.",
        ),
        (true, false) => (
            Severity::Caution,
            "growing data",
            "The data set grows while it is measured: later numbers are those of a larger data set.",
        ),
    };
    vec![Finding {
        severity,
        topic,
        sentence: sentence.to_owned(),
        evidence,
        advice: "Hold the load at steps until each is steady, restore the data before each, search several times, and give \
                 the capacity as an interval.",
    }]
}

fn from_one_ramp(row: &Row, all: &[Row]) -> bool {
    let ramp = row.method.as_deref().is_some_and(|method| method.to_lowercase().contains("ramp"));
    ramp && runs(row, all).is_none_or(|runs| runs < 3)
}

/// The number of runs behind a row and those that are equal to it but for their numbers.
fn runs(row: &Row, all: &[Row]) -> Option<u64> {
    let of_variant = all.iter().filter(|other| other.variant == row.variant && other.group() == row.group());
    let alike = of_variant.filter(|other| other.setup() == row.setup());
    crate::compare::runs(&alike.collect::<Vec<&Row>>())
}

/// True if the name is that of a capacity, and not of something of which less is better: `errors at 950 users`.
fn is_capacity(row: &Row) -> bool {
    let name = row.measure.clone().unwrap_or_default().to_lowercase();
    let named = name.split(|c: char| !c.is_alphanumeric()).any(|word| CAPACITY.contains(&word));
    named && crate::direction::of(&name) != Some(Direction::Lower)
}

fn bound(row: &Row) -> bool {
    row.baseline.as_ref().or(row.centre()).is_some_and(|number| number.bound)
}

fn numbers(row: &Row, runs: Option<u64>) -> String {
    let runs = runs.map_or("n not stated".to_owned(), |runs| format!("n = {runs}"));
    let ends = match (&row.baseline, row.centre()) {
        (Some(from), Some(to)) => format!("{} → {}", from.text, to.text),
        (_, Some(to)) => to.text.clone(),
        _ => "no number".to_owned(),
    };
    format!("{ends}, {}, {runs}", row.method.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn one_ramp_is_no_search() {
        let table = "# method: ramp\n# data: 0 -> 2500 plans\nmeasure,baseline,value\nOptimal Users,950,1300\nCPU,13%,20%\n\
            Failure threshold,\"2,500+\",\"2,500+\"\n";
        let findings = found(lint, table);
        assert_eq!((findings[0].severity, findings[0].topic), (Severity::Problem, "capacity from one ramp"));
        assert!(findings[0].sentence.contains("while the data set grows"), "{findings:?}");
        let lines: Vec<&[u64]> = findings[0].evidence.iter().map(|one| one.lines.as_slice()).collect();
        assert_eq!(lines, [&[4][..], &[6], &[6], &[4, 5, 6]]);
    }

    #[test]
    fn repeated_searches_and_steps_pass() {
        assert!(found(lint, "# method: ramp\nmeasure,n,value\nusers,5,950\n").is_empty());
        assert!(found(lint, "# method: steps\nmeasure,n,value\nusers,1,950\n").is_empty());
        assert!(found(lint, "# method: ramp\nmeasure,value\nusers,950\nusers,930\nusers,990\n").is_empty());
        assert!(found(lint, "# method: ramp\nmeasure,n,value\nerrors at 950 users,1,4\n").is_empty());
        let targets = "# method: ramp\nmeasure,target,value\nusers,host a,950\nusers,host b,930\nusers,host c,990\n";
        assert_eq!(found(lint, targets)[0].topic, "capacity from one ramp", "each host has one ramp");
        assert_eq!(found(lint, "measure,data,value\nlatency,1 -> 9 rows,3 ms\n")[0].topic, "growing data");
    }
}
