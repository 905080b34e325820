//! Findings about databases: violated conditions, settings that give up safety or differ by
//! accident, a closed load without think time, data in memory.

mod cache;
mod counters;
mod data;
mod load;
mod settings;
#[cfg(test)]
mod tests;

use super::{Context, Finding};
use crate::measure::TrialReader;
use plimsoll_model::database::DatabaseFacts;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let Some(report) = &context.analysis.database else { return Vec::new() };
    [
        data::violated_conditions(context, report),
        load::failing_transactions(context, report),
        data::unchecked_conditions(context, report),
        load::wrong_mix(context, report),
        settings::safety_for_speed(report),
        settings::unequal_settings(context, report),
        load::shared_processors(context, report),
        settings::best_settings_disagree(context, report),
        load::closed_load(context, report),
        cache::in_memory(context, report),
        counters::counters_reported_late(context, report),
        data::grown_data(context),
        load::terminals(context),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The trials that count whose load is SQL, with the database that it works on.
fn sql_trials<'a>(context: &'a Context<'_>) -> impl Iterator<Item = (&'a TrialReader<'a>, &'a DatabaseFacts)> {
    context.counted().filter_map(|reader| {
        let databases = &reader.trial().databases();
        Some((reader, databases.iter().find(|facts| !facts.work.workload.is_empty())?))
    })
}

/// The number of warehouses in `TPC-C, 2 warehouses, …`.
fn warehouses(workload: &str) -> Option<f64> {
    let part = workload.strip_prefix("TPC-C")?.split(',').find(|part| part.contains("warehouse"))?;
    part.split_whitespace().find_map(|word| word.parse().ok())
}
