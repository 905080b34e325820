//! The records of the agents of a load, merged into that of one generator, and how each agent did.

use crate::seconds::SecondOfAgent;
use hdrhistogram::Histogram;
use plimsoll_model::agent::AgentRecord;
use plimsoll_model::database::{MixLine, SqlFacts, StatementFacts};
use plimsoll_model::job::{JobRecord, WorkFacts};
use plimsoll_model::record::{Durations, histogram};
use plimsoll_model::result::Headroom;
use plimsoll_model::script::ScriptFacts;
use plimsoll_model::storage::{Residency, StorageFacts};
use plimsoll_model::units::Nanos;

/// An agent under a load, observed through its seconds.
#[derive(Debug)]
pub(crate) struct AgentWatch {
    /// The seconds of the measure phase: those from 0 to below this number.
    seconds: i64,
    busiest: Nanos,
    cpu: Nanos,
    lateness: Histogram<u64>,
    stall: Nanos,
    users: u64,
}

impl AgentWatch {
    /// Watches a load with a measure phase of at most this length.
    pub(crate) fn new(limit: Nanos) -> AgentWatch {
        AgentWatch {
            seconds: limit.0.div_ceil(1_000_000_000) as i64,
            busiest: Nanos(0),
            cpu: Nanos(0),
            lateness: histogram(),
            stall: Nanos(0),
            users: 0,
        }
    }

    pub(crate) fn observe(&mut self, second: &SecondOfAgent) {
        let SecondOfAgent { second, generator } = second;
        self.users = self.users.max(generator.users);
        if (0..self.seconds).contains(second) {
            self.busiest.0 += generator.cpu_busiest.0;
            self.cpu.0 += generator.cpu.0;
            self.lateness.add(&generator.lateness).expect("a growing histogram takes what an equal one holds");
            self.stall = self.stall.max(generator.stall);
        }
    }

    /// Adds what was observed to the record of the agent, over a measure phase of this length.
    pub(crate) fn record(&self, window: Nanos, agent: AgentRecord) -> AgentRecord {
        let cores = |spent: Nanos| if window.0 == 0 { 0.0 } else { spent.seconds() / window.seconds() };
        let lateness = Nanos(self.lateness.value_at_quantile(0.99));
        AgentRecord {
            users: self.users,
            headroom: Headroom { busiest: cores(self.busiest), lateness },
            cpu: cores(self.cpu),
            stall: self.stall,
            ..agent
        }
    }
}

/// Merges the records of agents, each with the agent's name, into that of the whole load.
pub(crate) fn merge(records: Vec<(&str, JobRecord)>) -> JobRecord {
    let mut whole = JobRecord::default();
    for (index, (name, record)) in records.into_iter().enumerate() {
        let JobRecord { zero, window, numbers, error_examples, accounts, .. } = record;
        whole.zero = zero;
        whole.window = whole.window.max(window);
        for (request, numbers) in numbers {
            whole.numbers.entry(request).or_default().merge(&numbers);
        }
        // A single agent has the whole load, and the check of it.
        whole.sequences.extend(record.sequences);
        for (subject, kinds) in error_examples {
            let known = whole.error_examples.entry(subject).or_default();
            kinds.into_iter().for_each(|(kind, text)| {
                known.entry(kind).or_insert(text);
            });
        }
        for (subject, account) in accounts {
            whole.accounts.entry(subject).or_default().merge(&account);
        }
        whole.faults.extend(record.faults.into_iter().map(|fault| format!("agent `{name}`: {fault}")));
        for (known, new) in [(&mut whole.broken, record.broken), (&mut whole.warnings, record.warnings)] {
            for text in new {
                if !known.contains(&text) {
                    known.push(text);
                }
            }
        }
        whole.stopped = whole.stopped.or(record.stopped);
        whole.interrupted |= record.interrupted;
        whole.facts = if index == 0 { record.facts } else { merge_facts(whole.facts, record.facts) };
    }
    if let WorkFacts::Sql(sql) = &mut whole.facts {
        sql.statements.iter_mut().for_each(|statement| statement.durations = None);
    }
    for (request, numbers) in std::mem::take(&mut whole.numbers) {
        whole.sequences.insert(request, numbers.check());
    }
    whole
}

fn merge_facts(one: WorkFacts, other: WorkFacts) -> WorkFacts {
    match (one, other) {
        (WorkFacts::Script(one), WorkFacts::Script(other)) => WorkFacts::Script(ScriptFacts {
            times: one.times.into_iter().chain(other.times).collect(),
            console: one.console + other.console,
            left_out: one.left_out + other.left_out,
            own_load: one.own_load.into_iter().chain(other.own_load).collect(),
        }),
        (WorkFacts::Storage(one), WorkFacts::Storage(other)) => {
            let both = |one: Residency, other: Residency| Residency {
                pages: one.pages + other.pages,
                cached: one.cached + other.cached,
            };
            let residency = one.residency.zip(other.residency).map(|(one, other)| both(one, other));
            let residency = residency.or(one.residency).or(other.residency);
            let left_behind = [one.left_behind.clone(), other.left_behind].concat();
            WorkFacts::Storage(Box::new(StorageFacts { residency, left_behind, ..*one }))
        }
        (WorkFacts::Sql(one), WorkFacts::Sql(other)) => WorkFacts::Sql(Box::new(merge_sql(*one, *other))),
        (one, _) => one,
    }
}

fn merge_sql(one: SqlFacts, other: SqlFacts) -> SqlFacts {
    let mut retries = one.retries;
    other.retries.into_iter().for_each(|(kind, count)| *retries.entry(kind).or_default() += count);
    SqlFacts {
        connections: one.connections + other.connections,
        statements: one.statements.into_iter().zip(other.statements).map(merge_statements).collect(),
        retries,
        cancels: one.cancels + other.cancels,
        cancels_failed: one.cancels_failed + other.cancels_failed,
        mix: one.mix.into_iter().zip(other.mix).map(merge_mix).collect(),
        ..one
    }
}

fn merge_statements((one, other): (StatementFacts, StatementFacts)) -> StatementFacts {
    let durations = one.durations.clone().zip(other.durations).and_then(|(Durations(mut all), Durations(more))| {
        all.add(&more).ok()?;
        Some(all)
    });
    let whole = StatementFacts {
        runs: one.runs + other.runs,
        measured: one.measured + other.measured,
        total: one.total + other.total,
        longest: one.longest.max(other.longest),
        failed: one.failed + other.failed,
        p50: None,
        p95: None,
        p99: None,
        durations: None,
        ..one
    };
    let Some(durations) = durations else { return whole };
    StatementFacts { durations: Some(Durations(durations.clone())), ..whole.of_durations(&durations) }
}

/// Shares and means are weighted by what they cover; the mix is right if it is for each agent.
fn merge_mix((one, other): (MixLine, MixLine)) -> MixLine {
    let n = one.n + other.n;
    let sum = one.found * one.n as f64 + other.found * other.n as f64;
    MixLine { n, found: if n == 0 { 0.0 } else { sum / n as f64 }, holds: one.holds && other.holds, ..one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::{Account, ErrorKind, SequenceRecorder};
    use std::collections::BTreeMap;

    fn record(sent: u64, faults: &[&str], warnings: &[&str]) -> JobRecord {
        let account = Account { sent, answered: sent, ..Account::default() };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let examples = BTreeMap::from([(ErrorKind::Status, format!("{sent} were sent"))]);
        JobRecord {
            window: Nanos(sent),
            accounts: BTreeMap::from([("request:a".to_owned(), account)]),
            error_examples: BTreeMap::from([("request:a".to_owned(), examples)]),
            faults: texts(faults),
            warnings: texts(warnings),
            facts: WorkFacts::Script(ScriptFacts { console: sent, ..ScriptFacts::default() }),
            ..JobRecord::default()
        }
    }

    #[test]
    fn records_of_agents_add_up_and_faults_name_their_agent() {
        let whole = merge(vec![("a", record(3, &[], &["the same"])), ("b", record(4, &["it broke"], &["the same"]))]);
        assert_eq!((whole.accounts["request:a"].sent, whole.window), (7, Nanos(4)));
        assert_eq!(whole.error_examples["request:a"][&ErrorKind::Status], "3 were sent");
        assert_eq!(whole.faults, ["agent `b`: it broke"]);
        assert_eq!(whole.warnings, ["the same"]);
        assert_eq!(whole.facts, WorkFacts::Script(ScriptFacts { console: 7, ..ScriptFacts::default() }));
    }

    #[test]
    fn percentiles_of_a_statement_are_of_its_durations_on_all_agents() {
        let of = |milliseconds: &[u64]| {
            let mut durations = histogram();
            milliseconds.iter().for_each(|took| durations.record(took * 1_000_000).expect("in range"));
            let statement = StatementFacts { runs: milliseconds.len() as u64, ..StatementFacts::default() };
            let statement = statement.of_durations(&durations);
            let statements = vec![StatementFacts { durations: Some(Durations(durations)), ..statement }];
            let facts = WorkFacts::Sql(Box::new(SqlFacts { statements, ..SqlFacts::default() }));
            JobRecord { facts, ..JobRecord::default() }
        };
        let statement = |records| match merge(records).facts {
            WorkFacts::Sql(facts) => facts.statements[0].clone(),
            other => panic!("{other:?}"),
        };
        let whole = statement(vec![("a", of(&[1, 2, 3])), ("b", of(&[50])), ("c", of(&[2]))]);
        let near = |found: Option<u64>, wanted: u64| found.is_some_and(|found| found.abs_diff(wanted) < wanted / 500);
        assert!(near(whole.p50, 2_000_000) && near(whole.p99, 50_000_000) && whole.runs == 5, "{whole:?}");
        assert_eq!(whole.durations, None);
        assert_eq!(statement(vec![("a", of(&[1]))]).durations, None);
    }

    #[test]
    fn a_sequence_is_checked_over_the_numbers_of_all_agents() {
        let of = |seen: &[u64]| {
            let mut numbers = SequenceRecorder::default();
            seen.iter().for_each(|number| numbers.saw(Some(*number)));
            let sequences = BTreeMap::from([("a".to_owned(), numbers.check())]);
            JobRecord { sequences, numbers: BTreeMap::from([("a".to_owned(), numbers)]), ..JobRecord::default() }
        };
        let whole = merge(vec![("a", of(&[1, 4, 5])), ("b", of(&[2, 3]))]);
        assert!(whole.sequences["a"].holds() && whole.sequences["a"].replies == 5);
        assert!(whole.numbers.is_empty());
        let twice = merge(vec![("a", of(&[1, 2])), ("b", of(&[2, 3]))]);
        assert_eq!(twice.sequences["a"].repeated, 1);
    }

    #[test]
    fn a_single_record_stays_as_it_is() {
        let alone = record(3, &[], &["a warning"]);
        assert_eq!(merge(vec![("a", alone.clone())]), alone);
    }
}
