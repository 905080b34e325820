//! Findings about the data: violated and unchecked conditions, growth in a trial.

use super::{sql_trials, warehouses};
use crate::database::{Check, DatabaseReport};
use crate::findings::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::{grouped, percent};
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::sql::NEW_ORDER;

/// Orders in a warehouse of TPC-C before a trial.
const ORDERS_OF_WAREHOUSE: f64 = 30_000.0;

/// Share by which orders may grow in a trial before it is reported.
const MAX_GROWTH: f64 = 0.1;

pub(super) fn violated_conditions(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let evidence: Vec<String> = report
        .checks
        .iter()
        .flat_map(|check| {
            context.merge_equal_lines(
                check.violated.iter().map(|(trial, found)| (*trial, format!("{}: {found}", check.name))),
            )
        })
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "data that is not right",
        sentence:
            "After some trials a condition on the data did not hold: the database lost or doubled work that it had \
                   acknowledged, or the transactions are wrong. Their numbers are worth nothing."
                .to_owned(),
        evidence,
    })
}

pub(super) fn unchecked_conditions(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let after_load = |check: &Check| {
        let why = check.loaded.as_ref()?.as_ref().err()?;
        Some(format!("{}, after the load: {why}", check.name))
    };
    let after_trials = |check: &Check| {
        let trials: Vec<u32> = check.not_checked.iter().map(|(trial, _)| *trial).collect();
        let (_, why) = check.not_checked.first()?;
        Some(format!("{}, after {}: {why}", check.name, context.list_of_trials(&trials)))
    };
    let without = sql_trials(context).filter(|(_, facts)| warehouses(&facts.work.workload).is_some());
    let without = without.filter(|(_, facts)| facts.conditions.is_empty());
    let without: Vec<u32> = without.map(|(reader, _)| reader.trial().number()).collect();
    let none = (!without.is_empty())
        .then(|| format!("all of them, after {}: the study gives them no time", context.list_of_trials(&without)));
    let of_checks = report.checks.iter().flat_map(|check| [after_load(check), after_trials(check)]).flatten();
    let evidence: Vec<String> = none.into_iter().chain(of_checks).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "conditions not looked at",
        sentence: "Some conditions on the data were not looked at, so that nothing is known of them there. A longer \
                   `check_within` helps where the time was up after trials; after a load they have a minute."
            .to_owned(),
        evidence,
    })
}

/// Orders that a trial adds: the data at its end differs from that at its start.
pub(super) fn grown_data(context: &Context<'_>) -> Option<Finding> {
    let growth = |reader: &TrialReader<'_>, facts: &DatabaseFacts| {
        let warehouses = warehouses(&facts.work.workload)?;
        let seconds = reader.load().seconds.iter().filter(|second| second.subject.is_request_named(NEW_ORDER));
        let orders: u64 = seconds.map(|second| second.count.saturating_sub(second.failed)).sum();
        Some((orders as f64 / (ORDERS_OF_WAREHOUSE * warehouses), orders as f64, reader.trial().number()))
    };
    let most = sql_trials(context)
        .filter_map(|(reader, facts)| growth(reader, facts))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    (most.0 > MAX_GROWTH).then(|| Finding {
        severity: Severity::Note,
        topic: "data that grew",
        sentence: format!(
            "Orders grew by up to {} in a trial: a faster variant works on more data towards its end, and the first \
             seconds of a trial are not like its last. Every trial begins with the same data again.",
            percent(most.0)
        ),
        evidence: vec![format!("trial {}: {} orders were added", most.2, grouped(most.1))],
    })
}
