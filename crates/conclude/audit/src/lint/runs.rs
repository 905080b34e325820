//! Two runs of one variant that differ by as much as what a table says of two variants.
//!
//! They are the only measure of chance that most tables have. Where they differ by more than the usual variance that the
//! table states, or by as much as a change that it claims of the same measure, that change may be chance as well. Of three
//! runs or more the spread is known, which says more.

use super::Context;
use crate::cell::Claim;
use crate::compare::{Comparison, groups, variants};
use crate::finding::{Evidence, Finding};
use crate::quantity::Quantity;
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::percent;
use std::collections::BTreeSet;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let groups = groups(context.rows);
    let evidence: Vec<Evidence> = groups.iter().flat_map(|group| of_group(context, group)).collect();
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Problem,
        topic: "runs that differ",
        sentence:
            "Two runs of one variant differ by more than the usual variance, or by as much as a change that is claimed."
                .to_owned(),
        evidence,
        advice: "Find out why the runs differ, and repeat each variant until an interval excludes a change of zero.",
    }]
}

fn of_group(context: &Context<'_>, group: &[&Row]) -> Vec<Evidence> {
    let lines: BTreeSet<u64> = group.iter().map(|row| row.line).collect();
    let of_group = |one: &&Comparison<'_>| one.lines.iter().any(|line| lines.contains(line));
    let comparisons: Vec<&Comparison<'_>> = context.comparisons.iter().filter(of_group).collect();
    let differing = |(name, rows): (&str, Vec<&Row>)| {
        let (least, most) = two_runs(&rows)?;
        let apart = most.value / least.value - 1.0;
        let said = [beyond_variance(&rows, apart), as_much_as_claimed(&comparisons, apart)];
        let why: Vec<String> = said.into_iter().flatten().collect();
        let lines: Vec<u64> = rows.iter().map(|row| row.line).collect();
        let text =
            format!("{name}: {} and {}, {} apart: {}", least.text, most.text, percent(apart), why.join(", and "));
        (!why.is_empty()).then(|| Evidence::new(lines, text))
    };
    variants(group).into_iter().filter_map(differing).collect()
}

/// The numbers of two runs that were set up in the same way, the smaller one first.
fn two_runs<'a>(rows: &[&'a Row]) -> Option<(&'a Quantity, &'a Quantity)> {
    let [one, other] = rows else { return None };
    let single = [one, other].iter().all(|row| row.runs.is_none_or(|runs| runs == 1));
    let (first, second) = one.centre().zip(other.centre()).filter(|_| single && one.setup() == other.setup())?;
    let sound = |number: &Quantity| number.value > 0.0 && !number.bound;
    let comparable = sound(first) && sound(second) && first.unit == second.unit;
    comparable.then_some(if first.value <= second.value { (first, second) } else { (second, first) })
}

fn beyond_variance(rows: &[&Row], apart: f64) -> Option<String> {
    // 100 and 105 are 5 % apart, and a hair more in binary numbers.
    let usual = rows.iter().find_map(|row| row.variance).filter(|usual| apart > *usual + 1e-9)?;
    Some(format!("the usual variance is ±{}", percent(usual)))
}

fn as_much_as_claimed(comparisons: &[&Comparison<'_>], apart: f64) -> Option<String> {
    let claimed = comparisons.iter().filter(|one| one.claim.is_some_and(|claim| claim != Claim::Same));
    let size = |one: &Comparison<'_>| one.change.as_ref().map(|change| change.low.abs().min(change.high.abs()));
    let largest = claimed.filter(|one| size(one).is_some_and(|size| size <= apart));
    let largest = largest.max_by(|one, other| size(one).unwrap_or(0.0).total_cmp(&size(other).unwrap_or(0.0)))?;
    Some(format!("{} is {}", largest.change.as_ref()?.text, largest.claim?.called()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::evidence;

    #[test]
    fn runs_of_one_release_are_held_against_what_is_claimed() {
        let table = "# usual variance: ±5 %\nmeasure,version,value,claim\nusers,v9.11,\"17,273\",\nusers,v9.11,\"15,936\",\n\
                     users,v10.0,\"16,900\",same\n";
        assert_eq!(evidence(lint, table), ["v9.11: 15,936 and 17,273, 8.4 % apart: the usual variance is ±5 %"]);
        let table = "measure,version,value,claim\nusers,a,100,\nusers,a,110,\nusers,b,112,improvement\n";
        assert_eq!(evidence(lint, table), ["a: 100 and 110, 10 % apart: +6.7 % is called an improvement"]);
    }

    #[test]
    fn runs_that_agree_and_runs_whose_spread_is_known_pass() {
        for table in [
            "# usual variance: ±5 %\nmeasure,version,value\nusers,a,100\nusers,a,103\nusers,b,120\n",
            "# usual variance: ±5 %\nmeasure,version,value\nusers,a,100\nusers,a,105\nusers,b,120\n",
            "# usual variance: ±5 %\nmeasure,version,mode,mean\nread,a,cold,10 s\nread,a,warm,1 s\nread,b,cold,9 s\n",
            "measure,version,value,claim\nusers,a,100,\nusers,a,101,\nusers,b,150,improvement\n",
            "measure,version,value,claim\nusers,a,100,\nusers,a,110,\nusers,a,105,\nusers,b,150,improvement\nusers,b,158,\nusers,b,161,\n",
            "# usual variance: ±5 %\nmeasure,version,value\nusers,a,100\nusers,a,110\nusers,a,105\nusers,b,120\n",
            "version,settings,value\na,t=0,10/s\na,t=8,5/s\nb,t=0,10/s\nb,t=8,7/s\n",
        ] {
            assert_eq!(evidence(lint, table), Vec::<String>::new(), "{table}");
        }
    }
}
