//! The known facts about each server: version, connection, origin of its data.

use super::{ReportContext, all};
use crate::distinct::distinct;
use crate::measure::TrialReader;
use crate::quantity::show;
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::measure::Unit;
use plimsoll_model::words::and_list;
use plimsoll_statistics::median;

/// A server, or several with the same facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name, with the variants that have these facts where variants differ.
    pub name: String,
    /// The facts in words.
    pub facts: Vec<String>,
}

pub(super) fn servers(context: &ReportContext<'_>) -> Vec<Server> {
    distinct(all(context.readers).map(|facts| &facts.name))
        .into_iter()
        .flat_map(|name| of_name(context, name))
        .collect()
}

fn of_name(context: &ReportContext<'_>, name: &str) -> Vec<Server> {
    let mut groups: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for variant in context.variants() {
        let of_variant = context.readers.iter().filter(|reader| reader.trial().variant() == variant);
        let known: Vec<&DatabaseFacts> = of_variant.filter_map(|reader| facts_of(reader, name)).collect();
        let Some(first) = known.first() else { continue };
        let facts = in_words(first);
        let label = context.input.plan.label(variant);
        match groups.iter_mut().find(|(known, _)| *known == facts) {
            Some((_, labels)) => labels.push(label),
            None => groups.push((facts, vec![label])),
        }
    }
    let one = groups.len() == 1;
    let named = |labels: &[String]| if one { name.to_owned() } else { format!("{name}, {}", and_list(labels)) };
    let restored = restored(context, name);
    groups
        .into_iter()
        .map(|(facts, labels)| Server {
            name: named(&labels),
            facts: facts.into_iter().chain(restored.clone()).collect(),
        })
        .collect()
}

fn facts_of<'a>(reader: &TrialReader<'a>, name: &str) -> Option<&'a DatabaseFacts> {
    reader.trial().databases().iter().find(|facts| facts.name == name)
}

fn in_words(facts: &DatabaseFacts) -> Vec<String> {
    // Where users do not work with it themselves, a system does, by a transport and in an isolation of its own choice.
    let is_behind_a_system = facts.work.workload.is_empty();
    let transport = if is_behind_a_system { String::new() } else { facts.transport.clone() };
    let isolation = match facts.work.isolation.as_str() {
        _ if is_behind_a_system && !facts.isolation.is_empty() => format!("{} by default", facts.isolation),
        "" => facts.isolation.clone(),
        of_work => of_work.to_owned(),
    };
    let size = facts.size.map(|bytes| format!("{} of data before a trial", show(bytes as f64, Unit::Bytes)));
    let data = if facts.data.is_empty() { String::new() } else { format!("data {}", facts.data) };
    [facts.version.clone(), facts.work.workload.clone(), transport, isolation, data]
        .into_iter()
        .chain(size)
        .filter(|fact| !fact.is_empty())
        .collect()
}

/// The method of restoring the data, and the time that it took.
fn restored(context: &ReportContext<'_>, name: &str) -> Option<String> {
    let all: Vec<&DatabaseFacts> = context.readers.iter().filter_map(|reader| facts_of(reader, name)).collect();
    let how = distinct(all.iter().map(|facts| facts.restored.as_str()).filter(|how| !how.is_empty()));
    let seconds: Vec<f64> = all.iter().map(|facts| facts.restore_seconds).collect();
    let median = median(&seconds)?;
    let largest = seconds.iter().copied().fold(0.0, f64::max);
    let time = |seconds: f64| show(seconds, Unit::Seconds);
    (!how.is_empty()).then(|| {
        format!("restored before each trial: {} (median {}, at most {})", and_list(&how), time(median), time(largest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::SqlFacts;

    #[test]
    fn how_a_system_connects_is_not_known() {
        let facts = |workload: &str, of_work: &str| DatabaseFacts {
            version: "PostgreSQL 15.18".to_owned(),
            transport: "UNIX socket".to_owned(),
            isolation: "READ COMMITTED".to_owned(),
            work: SqlFacts { workload: workload.to_owned(), isolation: of_work.to_owned(), ..SqlFacts::default() },
            ..DatabaseFacts::default()
        };
        assert_eq!(in_words(&facts("", "")), ["PostgreSQL 15.18", "READ COMMITTED by default"]);
        let of_users = ["PostgreSQL 15.18", "TPC-C", "UNIX socket", "SERIALIZABLE"];
        assert_eq!(in_words(&facts("TPC-C", "SERIALIZABLE")), of_users);
    }
}
