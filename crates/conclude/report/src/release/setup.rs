//! The setup of the measurement as a table: what is the same in all bundles once, and what differs for each.

use super::{Part, names};
use crate::page::facts::{self, Fact, fact};
use plimsoll_analysis::distinct;
use plimsoll_model::host::WORKLOAD;

pub(super) fn setup(parts: &[Part]) -> Vec<Fact> {
    let names_of_parts = names(parts);
    let of: Vec<Vec<Fact>> = parts.iter().map(of_part).collect();
    let settings = distinct(of.iter().flatten().map(|fact| fact.name.clone()));
    let rows = |name: String| {
        let values: Vec<String> = of.iter().map(|facts| value(facts, &name)).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            return vec![fact(name, values[0].clone())];
        }
        let with_value = names_of_parts.iter().zip(values).filter(|(_, value)| !value.is_empty());
        with_value.map(|(part, value)| fact(format!("{name}, {part}"), value)).collect()
    };
    settings.into_iter().flat_map(rows).collect()
}

/// The values of a name, each once; empty where there is none.
fn value(facts: &[Fact], name: &str) -> String {
    let values = facts.iter().filter(|fact| fact.name == name).map(|fact| fact.value.clone());
    distinct(values).join("; ")
}

fn of_part(part: &Part) -> Vec<Fact> {
    let Part { input, analysis, plimsoll } = part;
    let has_limits = analysis.capacity.is_some() || analysis.feedback.is_some();
    let objective = input.facts.objective.as_ref().filter(|_| has_limits);
    let objective =
        objective.map(|one| fact("Objective", crate::page::capacity::objective(one, input.facts.open_load)));
    let versions = facts::versions(&input.versions).into_iter().filter(|version| version.name != WORKLOAD);
    let mut setup =
        vec![fact("Load-test version", format!("Plimsoll {plimsoll}")), fact("Study", input.facts.title.clone())];
    setup.extend(facts::facts(input, analysis).into_iter().filter(|fact| fact.name != "Variants"));
    setup.extend(objective);
    setup.push(fact("Systems", input.facts.systems.join(", ")));
    setup.extend(versions.map(|version| fact("Programs", version.value)));
    setup
}
