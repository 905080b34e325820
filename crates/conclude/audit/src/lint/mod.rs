//! The lints: each is a pure function of the table's rows and comparisons, in a file of its own,
//! with the rule and its source.

mod capacity;
mod change;
mod direction;
mod durability;
mod errors;
mod generator;
mod grid;
mod impossible;
mod little;
mod loopback;
mod order;
mod precision;
mod repeated;
mod repeats;
mod requests;
mod runs;
mod settings;
mod spread;
mod storage;
mod timed;
mod variance;

use crate::compare::{Comparison, comparisons};
use crate::finding::Finding;
use crate::row::Row;

/// The input of a lint.
pub(crate) struct Context<'a> {
    pub(crate) rows: &'a [Row],
    pub(crate) comparisons: Vec<Comparison<'a>>,
}

/// The findings of all lints, the most severe first.
pub(crate) fn findings(rows: &[Row]) -> Vec<Finding> {
    let context = Context { rows, comparisons: comparisons(rows) };
    let lints: [fn(&Context<'_>) -> Vec<Finding>; 21] = [
        impossible::lint,
        change::lint,
        direction::lint,
        repeats::lint,
        variance::lint,
        runs::lint,
        spread::lint,
        order::lint,
        grid::lint,
        capacity::lint,
        storage::lint,
        settings::lint,
        durability::lint,
        timed::lint,
        little::lint,
        errors::lint,
        requests::lint,
        generator::lint,
        repeated::lint,
        loopback::lint,
        precision::lint,
    ];
    let mut findings: Vec<Finding> = lints.iter().flat_map(|lint| lint(&context)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Context, Finding, comparisons};

    /// The findings of a lint for a table.
    pub(crate) fn found(lint: fn(&Context<'_>) -> Vec<Finding>, table: &str) -> Vec<Finding> {
        let table = crate::table::read(table).unwrap_or_else(|faults| panic!("{faults:?}"));
        lint(&Context { rows: &table.rows, comparisons: comparisons(&table.rows) })
    }

    /// The texts of all evidence that a lint has for a table.
    pub(crate) fn evidence(lint: fn(&Context<'_>) -> Vec<Finding>, table: &str) -> Vec<String> {
        found(lint, table).into_iter().flat_map(|finding| finding.evidence).map(|one| one.text).collect()
    }
}
