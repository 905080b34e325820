//! Findings about databases: violated conditions, settings that give up safety or differ by
//! accident, a closed load without think time, data in memory.

use super::{Context, Finding, Severity, list_of_trials, merge_equal_lines};
use crate::database::{
    BestRatio, BestRow, Cell, Check, DatabaseReport, MixCheck, Ratio, SettingRow, SettingValue, Statistic,
};
use crate::measure::TrialReader;
use crate::quantity::{Notation, grouped, percent, show};
use crate::reason::OrReason;
use crate::words::counted;
use plimsoll_model::database::DatabaseFacts;
use plimsoll_model::measure::{Series, Unit};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::NEW_ORDER;
use plimsoll_model::words::and_list;
use std::collections::{BTreeMap, BTreeSet};

/// Orders in a warehouse of TPC-C before a trial.
const ORDERS_OF_WAREHOUSE: f64 = 30_000.0;

/// Terminals of a warehouse of TPC-C.
const TERMINALS_OF_WAREHOUSE: f64 = 10.0;

/// Share by which orders may grow in a trial before it is reported.
const MAX_GROWTH: f64 = 0.1;

/// Share of the used processor time that the generator may take before it is reported.
const MAX_GENERATOR_SHARE: f64 = 0.1;

/// Hit ratio from which on the data counts as being in memory.
const IN_MEMORY_HIT_RATIO: f64 = 0.995;

/// Share of a trial's transactions from which on their failures are a problem.
const MAX_FAILED_SHARE: f64 = 0.1;

/// The interval at which a session of PostgreSQL reports its counters, in seconds.
const POSTGRESQL_REPORT_INTERVAL: f64 = 1.0;

/// Share by which a server's rate may be off before it is reported.
const MAX_RATE_ERROR: f64 = 0.1;

/// The settings for the size of the server's own cache.
const CACHE_SIZE_SETTINGS: [&str; 2] = ["innodb_buffer_pool_size", "shared_buffers"];

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let Some(report) = &context.analysis.database else { return Vec::new() };
    [
        violated_conditions(report),
        failing_transactions(context, report),
        unchecked_conditions(context, report),
        wrong_mix(report),
        safety_for_speed(report),
        unequal_settings(context, report),
        shared_processors(context, report),
        best_settings_disagree(context, report),
        closed_load(context, report),
        in_memory(context, report),
        counters_reported_late(context, report),
        grown_data(context),
        terminals(context),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn violated_conditions(report: &DatabaseReport) -> Option<Finding> {
    let evidence: Vec<String> = report
        .checks
        .iter()
        .flat_map(|check| {
            merge_equal_lines(check.violated.iter().map(|(trial, found)| (*trial, format!("{}: {found}", check.name))))
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

/// Trials with so many failed transactions that their numbers describe failures.
fn failing_transactions(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let mut trials: Vec<(f64, String)> = context
        .counted()
        .filter_map(|reader| {
            let (failed, all) = (reader.requests().failed(), reader.requests().count());
            let share = failed as f64 / all.max(1) as f64;
            let kinds: Vec<String> =
                reader.requests().errors.iter().map(|(kind, count)| of_kind(*kind, *count)).collect();
            let (failed, all) = (grouped(failed as f64), grouped(all as f64));
            let text = format!(
                "{}: {failed} of {all} failed ({}): {}",
                context.trial(reader),
                percent(share),
                kinds.join(", ")
            );
            (report.is_sql && share >= MAX_FAILED_SHARE).then_some((share, text))
        })
        .collect();
    trials.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (most, _) = trials.first()?;
    let counted_alone = match report.throughput.series {
        Series::NewOrders => "NOTPM counts only those that succeeded, while durations count all",
        _ => "durations and iterations per second count them like the others, commits do not",
    };
    Some(Finding {
        severity: Severity::Problem,
        topic: "transactions that fail",
        sentence: format!(
            "In {} {} or more of the transactions failed, up to {}: {counted_alone}. Such a trial measures failing as much as \
             working; retries (`retry`), fewer users or another isolation level change that.",
            counted(trials.len(), "trial"),
            percent(MAX_FAILED_SHARE),
            percent(*most)
        ),
        evidence: trials.into_iter().map(|(_, text)| text).collect(),
    })
}

fn of_kind(kind: ErrorKind, count: u64) -> String {
    format!("{kind} {}", grouped(count as f64))
}

fn unchecked_conditions(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let after_load = |check: &Check| {
        let why = check.loaded.as_ref()?.as_ref().err()?;
        Some(format!("{}, after the load: {why}", check.name))
    };
    let after_trials = |check: &Check| {
        let trials: Vec<u32> = check.not_checked.iter().map(|(trial, _)| *trial).collect();
        let (_, why) = check.not_checked.first()?;
        Some(format!("{}, after {}: {why}", check.name, list_of_trials(&trials)))
    };
    let without = sql_trials(context).filter(|(_, facts)| warehouses(&facts.work.workload).is_some());
    let without = without.filter(|(_, facts)| facts.conditions.is_empty());
    let without: Vec<u32> = without.map(|(reader, _)| reader.trial().number()).collect();
    let none = (!without.is_empty())
        .then(|| format!("all of them, after {}: the study gives them no time", list_of_trials(&without)));
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

fn wrong_mix(report: &DatabaseReport) -> Option<Finding> {
    let line = |mix: &MixCheck| {
        let ((least, most), (low, high)) = (mix.observed, mix.allowed);
        let [least, most, low, high] = [least, most, low, high].map(|value| mix.show(value));
        format!("{}: {least} to {most}, where {low} to {high} is right, in {}", mix.name, list_of_trials(&mix.outside))
    };
    let evidence: Vec<String> = report.mix.iter().filter(|mix| !mix.outside.is_empty()).map(line).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "another mix",
        sentence: "In some trials users were not given to do what the workload prescribes: their numbers are those of \
                   another mix."
            .to_owned(),
        evidence,
    })
}

/// Settings that trade safety for speed; reported even where all variants share them.
fn safety_for_speed(report: &DatabaseReport) -> Option<Finding> {
    let line = |row: &SettingRow, value: &SettingValue| {
        let risk = value.risk.as_ref()?;
        Some(format!("{} = {} of {} ({}): {risk}", row.name, value.in_force, row.database, value.place))
    };
    let evidence: Vec<String> =
        report.settings.iter().flat_map(|row| row.values.iter().filter_map(move |value| line(row, value))).collect();
    let names: BTreeSet<&str> = report
        .settings
        .iter()
        .filter(|row| row.values.iter().any(|value| value.risk.is_some()))
        .map(|row| row.name.as_str())
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "safety for speed",
        sentence: format!(
            "{} in force {} safety for speed: what a crash or a loss of power can take is told for each. With safe \
             settings the order of variants may be another, also where all of them give up the same.",
            counted(names.len(), "setting"),
            if names.len() == 1 { "trades" } else { "trade" }
        ),
        evidence,
    })
}

fn unequal_settings(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let evidence: Vec<String> = report
        .settings
        .iter()
        .filter_map(|row| {
            let unequal = row.unequal();
            let of = |value: &&SettingValue| {
                let names: Vec<String> = value.variants.iter().map(|variant| context.variant(*variant)).collect();
                format!("{} ({})", value.in_force, and_list(&names))
            };
            let values: Vec<String> = unequal.iter().map(of).collect();
            (!values.is_empty()).then(|| format!("{} of {}: {}", row.name, row.database, values.join(", ")))
        })
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "unequal settings",
        sentence:
            "Variants ran with settings that differ though the study asks for no difference: defaults of another \
                   version, or values that a server rounds. A difference between variants may come of these alone."
                .to_owned(),
        evidence,
    })
}

/// A generator that takes processor time from the server.
fn shared_processors(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    if !context.input.facts.loopback || !report.is_sql {
        return None;
    }
    let cores = |one: &Statistic| show(one.mean, Unit::Cores);
    let mut shares: Vec<(f64, String)> = report
        .cells
        .iter()
        .filter_map(|cell| {
            let (generator, host) = (cell.statistic("generator", "CPU")?, cell.statistic("host", "CPU")?);
            let share = generator.mean / host.mean;
            let place = format!("{}, {}", context.variant(cell.variant), context.condition(cell.condition));
            let text = format!("{place}: {} of {} in use ({})", cores(generator), cores(host), percent(share));
            (share > MAX_GENERATOR_SHARE).then_some((share, text))
        })
        .collect();
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (most, _) = shares.first()?;
    Some(Finding {
        severity: Severity::Note,
        topic: "one machine",
        sentence: format!(
            "Generator and server share {}; the generator takes up to {} of the processor time in use. Where processors \
             are the limit, a server on a machine of its own carries more.",
            counted(context.input.host.processors, "processor"),
            percent(*most)
        ),
        evidence: shares.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Variants that differ at the same setting and not each at its best, or the other way round.
fn best_settings_disagree(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let best = report.best.as_ref()?;
    let line = |row: &BestRow, one: &BestRatio| {
        let (at_best, leave_one_out) = (side(&one.best)?, side(&one.leave_one_out)?);
        let notation = Notation::of(one.same_setting.iter().chain([&one.best]).flatten().map(|ratio| ratio.value));
        let settings = report.grid.rows.iter().zip(&one.same_setting);
        let others: Vec<String> = settings
            .filter(|(_, ratio)| side(ratio).is_some_and(|side| side != 0 && side != at_best))
            .filter_map(|(row, ratio)| {
                Some(format!("{} with {}", notation.show(ratio.as_ref().ok()?.value), row.label))
            })
            .collect();
        let ratio = notation.show(one.best.as_ref().ok()?.value);
        let (level, variant) = (report.grid.level(row.level), context.variant(one.variant));
        let text = format!("{level}, {variant}: {ratio} at the best settings, {}", others.join(", "));
        (!others.is_empty() && leave_one_out == at_best).then_some(text)
    };
    let evidence: Vec<String> =
        best.rows.iter().flat_map(|row| row.ratios.iter().filter_map(move |one| line(row, one))).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "the best settings say otherwise",
        sentence: format!(
            "At the same setting variants differ from {} in a way in which they do not, each at the setting that is best \
             for it: what a setting costs one of them is not what the other is better by. Who tunes the setting meets \
             the second number.",
            context.variant(0)
        ),
        evidence,
    })
}

/// The side of 1 on which an interval lies: 0 where it contains 1.
fn side(ratio: &OrReason<Ratio>) -> Option<i8> {
    let interval = ratio.as_ref().ok()?.interval.as_ref().ok()?;
    Some(if interval.low > 1.0 {
        1
    } else if interval.high < 1.0 {
        -1
    } else {
        0
    })
}

/// Users without think time request as much as the system can do.
fn closed_load(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let closed_load = report.is_sql && !context.input.facts.open_load && context.input.facts.mean_think == Some(0.0);
    closed_load.then(|| Finding {
        severity: Severity::Note,
        topic: "capacity, not response",
        sentence:
            "Users neither type nor think: throughput is the capacity for so many users in a closed loop, and the \
                   time of a transaction is mostly waiting for others. Users who arrive on their own wait otherwise; \
                   Plimsoll's open load (`rate`) measures that."
                .to_owned(),
        evidence: Vec::new(),
    })
}

/// Compares the size of the data with the server's own cache. The files can be larger than the
/// data, because they include logs.
fn in_memory(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let (mut fitting, mut larger) = (Vec::new(), Vec::new());
    for ((database, cache, in_force, size), least) in caches(context, report) {
        let Some(room) = bytes(in_force) else { continue };
        let fits = size as f64 <= room || least.is_some_and(|least| least >= IN_MEMORY_HIT_RATIO);
        let plain = in_force.parse::<u64>().is_ok();
        let shown = if plain { show(room, Unit::Bytes) } else { in_force.to_owned() };
        let hits = least.map(|least| format!("; it answers {:.2} % of page requests, or more", least * 100.0));
        let those = if fits { &mut fitting } else { &mut larger };
        those.push(format!(
            "{database}: {} of files before a trial, logs included; {cache} = {shown}{}",
            show(size as f64, Unit::Bytes),
            hits.unwrap_or_default()
        ));
    }
    let (topic, sentence, evidence) = if larger.is_empty() {
        (
            "data in memory",
            "The server's cache holds the data, or all of it that is asked for: after the first seconds reads come from \
             memory. The numbers tell of processors, locks and the log, not of reading from disks.",
            fitting,
        )
    } else {
        (
            "data larger than the cache",
            "With these settings the data is larger than the server's cache: some reads leave the server, and the page \
             cache of the machine or its disk answers them.",
            larger,
        )
    };
    (!evidence.is_empty()).then(|| Finding { severity: Severity::Note, topic, sentence: sentence.to_owned(), evidence })
}

/// A database with its cache setting, the size of the cache and of the data.
type Cache<'a> = (&'a str, &'a str, &'a str, u64);

/// The caches, each with its lowest hit ratio, where that is known.
fn caches<'a>(context: &'a Context<'_>, report: &DatabaseReport) -> BTreeMap<Cache<'a>, Option<f64>> {
    let mut caches: BTreeMap<Cache<'_>, Option<f64>> = BTreeMap::new();
    for reader in context.counted() {
        let cell = report.cells.iter().find(|cell| reader.is_of(cell.condition, cell.variant));
        for facts in reader.trial().databases() {
            let cache = facts.settings.iter().find(|setting| CACHE_SIZE_SETTINGS.contains(&setting.name.as_str()));
            let Some((cache, size)) = cache.zip(facts.size) else { continue };
            let hits = cell.and_then(|cell| Some(cell.statistic(&facts.name, "hit ratio")?.mean));
            let least = caches.entry((&facts.name, &cache.name, &cache.in_force, size)).or_default();
            *least = [*least, hits].into_iter().flatten().reduce(f64::min);
        }
    }
    caches
}

/// PostgreSQL's sessions keep their own counts and report them later: in a short measure phase a
/// good part is reported after it, or part of the warm-up within it.
fn counters_reported_late(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let reports_late = |facts: &DatabaseFacts| report.is_sql && facts.version.starts_with("PostgreSQL");
    let late: Vec<&TrialReader<'_>> =
        context.counted().filter(|reader| reader.trial().databases().iter().any(reports_late)).collect();
    let shortest = late.iter().map(|reader| reader.load().counted_seconds()).reduce(f64::min)?;
    let off = (POSTGRESQL_REPORT_INTERVAL / shortest).min(1.0);
    let cells =
        report.cells.iter().filter(|cell| late.iter().any(|reader| cell.trials.contains(&reader.trial().number())));
    let line = |cell: &Cell| {
        let [commits, done] = [statistic(cell, "commits")?, statistic(cell, "iterations")?];
        let place = format!("{}, {}", context.variant(cell.variant), context.condition(cell.condition));
        let [commits, done] = [commits, done].map(|rate| show(rate, Unit::PerSecond));
        Some(format!("{place}: {commits} of commits by the server's account, {done} of iterations by the generator's"))
    };
    (off > MAX_RATE_ERROR).then(|| Finding {
        severity: Severity::Caution,
        topic: "counters that come late",
        sentence: format!(
            "PostgreSQL's sessions tell what they have counted once a second at most, so its rates of commits, rows and \
             pages may be off by a second's worth: by {} or more here, where {shortest} s were measured. The generator's \
             numbers and log bytes do not suffer from that, shares such as the hit ratio hardly; longer trials help.",
            percent(off)
        ),
        evidence: cells.filter_map(line).collect(),
    })
}

/// The mean of the counter with this name, from any source.
fn statistic(cell: &Cell, name: &str) -> Option<f64> {
    cell.statistics.iter().find(|one| one.name == name).map(|one| one.mean)
}

/// Orders that a trial adds: the data at its end differs from that at its start.
fn grown_data(context: &Context<'_>) -> Option<Finding> {
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

/// More or fewer users than terminals: TPC-C has ten for each warehouse.
fn terminals(context: &Context<'_>) -> Option<Finding> {
    let of = |reader: &TrialReader<'_>, facts: &DatabaseFacts| {
        let terminals = TERMINALS_OF_WAREHOUSE * warehouses(&facts.work.workload)?;
        let users = reader.load().generator.iter().map(|row| row.users).max()?;
        Some((users as f64 / terminals, format!("{} for {terminals:.0} terminals", counted(users as usize, "user"))))
    };
    let mut seen: Vec<(f64, String)> = sql_trials(context).filter_map(|(reader, facts)| of(reader, facts)).collect();
    seen.sort_by(|one, other| one.0.total_cmp(&other.0));
    seen.dedup();
    let other: Vec<String> = seen.into_iter().filter(|(ratio, _)| *ratio != 1.0).map(|(_, text)| text).collect();
    (!other.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "not TPC-C's terminals",
        sentence:
            "TPC-C has ten terminals for each warehouse, each with its own district; here the number of users is \
                   another. More users meet at the same rows, fewer leave districts idle. The numbers are no tpmC, and \
                   must not be set beside published ones."
                .to_owned(),
        evidence: other,
    })
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

/// Parses bytes as servers write them: `536870912`, `512M`, `128MB`, `16 GB`.
fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let power = match text[end..].trim().trim_end_matches(['b', 'B']).to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(number * 1024_f64.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Input;
    use crate::analyse;
    use crate::database::testing::{change_facts, grid, study};
    use crate::finding::Finding;
    use plimsoll_model::database::{Condition, MixLine};
    use plimsoll_model::units::Nanos;

    fn finding(input: &Input, topic: &str) -> Option<Finding> {
        analyse(input).findings.into_iter().find(|finding| finding.topic == topic)
    }

    #[test]
    fn texts_of_servers_are_read() {
        for (text, expected) in [
            ("536870912", Some(536_870_912.0)),
            ("512M", Some(536_870_912.0)),
            ("128MB", Some(134_217_728.0)),
            ("16 GB", Some(17_179_869_184.0)),
            ("on", None),
            ("10ms", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        assert_eq!(warehouses("TPC-C, 10 warehouses, waits zero"), Some(10.0));
        assert_eq!(warehouses("TPC-C, 1 warehouse, waits zero"), Some(1.0));
        assert_eq!(warehouses("sysbench read_write, 2 tables"), None);
    }

    #[test]
    fn a_condition_that_does_not_hold_is_a_problem() {
        let violated_conditions = |number: u32| Condition {
            name: "1: w_ytd = sum(d_ytd)".to_owned(),
            holds: match number {
                3 => Some(false),
                4 => None,
                _ => Some(true),
            },
            detail: match number {
                3 => "warehouse 1: 300000.00 and 300010.00".to_owned(),
                4 => "the time was up".to_owned(),
                _ => String::new(),
            },
        };
        let input = change_facts(study(), |trial, facts| facts.conditions = vec![violated_conditions(trial.number)]);
        let found = finding(&input, "data that is not right").expect("a finding");
        assert_eq!(found.severity, Severity::Problem);
        assert_eq!(found.evidence, ["trial 3: 1: w_ytd = sum(d_ytd): warehouse 1: 300000.00 and 300010.00"]);
        let unchecked_conditions = finding(&input, "conditions not looked at").expect("a finding");
        assert_eq!(unchecked_conditions.evidence, ["1: w_ytd = sum(d_ytd), after trial 4: the time was up"]);
        assert_eq!(finding(&study(), "data that is not right"), None);
    }

    #[test]
    fn what_was_not_looked_at_is_told_after_the_load_and_where_the_study_gives_no_time() {
        let condition = |name: &str, holds: Option<bool>| Condition {
            name: name.to_owned(),
            holds,
            detail: if holds.is_none() { "the time was up".to_owned() } else { String::new() },
        };
        let input = change_facts(study(), |_, facts| {
            facts.loaded = vec![condition("11: orders", None), condition("1: paid", Some(true))];
            facts.conditions = vec![condition("1: paid", Some(true))];
        });
        let found = finding(&input, "conditions not looked at").expect("a finding");
        assert_eq!(found.evidence, ["11: orders, after the load: the time was up"]);
        let report = analyse(&input).database.expect("a report");
        let checks: Vec<(&str, bool, bool)> = report
            .checks
            .iter()
            .map(|one| (one.name.as_str(), one.loaded == Some(Ok(())), one.is_of_load_alone()))
            .collect();
        assert_eq!(checks, [("1: paid", true, false), ("11: orders", false, true)], "in the order of their numbers");
        let silent = change_facts(input, |trial, facts| {
            if trial.number == 2 {
                facts.conditions = Vec::new();
            }
        });
        let found = finding(&silent, "conditions not looked at").expect("a finding");
        assert_eq!(found.evidence[0], "all of them, after trial 2: the study gives them no time");
    }

    #[test]
    fn safety_that_all_variants_give_up_is_told_as_well() {
        let found = finding(&study(), "safety for speed").expect("a finding");
        assert!(found.sentence.starts_with("1 setting in force trades safety"), "{}", found.sentence);
        assert_eq!(found.evidence, ["innodb_doublewrite = OFF of db (all trials): torn pages cannot be repaired"]);
    }

    #[test]
    fn settings_that_nobody_asked_to_differ_are_unequal() {
        assert_eq!(finding(&study(), "unequal settings"), None, "what the study varies is no such thing");
        let other = change_facts(study(), |trial, facts| {
            let value = if trial.variants == [0] { "5" } else { "6" };
            let setting = plimsoll_model::database::Setting {
                name: "innodb_io_capacity".to_owned(),
                in_force: value.to_owned(),
                ..Default::default()
            };
            facts.settings.push(setting);
        });
        assert_eq!(
            finding(&other, "unequal settings").expect("a finding").evidence,
            ["innodb_io_capacity of db: 5 (5.0), 6 (5.1)"]
        );
    }

    #[test]
    fn the_same_setting_and_the_best_ones_are_held_against_each_other() {
        let seed = |limited: f64| {
            grid(&[8, 0], &[4, 16], 3, move |spot| {
                let rate = match (spot.setting, spot.version) {
                    (0, 0) => 100.0,
                    (0, _) => limited,
                    _ => 200.0,
                };
                rate * (1.0 + f64::from((spot.repeat + spot.version as u32) % 3) / 100.0)
            })
        };
        let found = finding(&seed(140.0), "the best settings say otherwise").expect("a finding");
        assert!(
            found.evidence[0].contains(" at the best settings, +39.6 % with concurrency = 8"),
            "{:?}",
            found.evidence
        );
        assert!(found.evidence[0].starts_with("4 threads, 5.1: "), "{:?}", found.evidence);
        assert_eq!(finding(&seed(100.0), "the best settings say otherwise"), None);
    }

    #[test]
    fn what_a_load_without_waits_means_is_told_once() {
        assert!(finding(&study(), "capacity, not response").is_some());
        let mut waiting = study();
        waiting.facts.mean_think = None;
        assert!(finding(&waiting, "capacity, not response").is_none());
    }

    #[test]
    fn data_is_held_against_the_cache() {
        assert!(finding(&study(), "data in memory").is_some());
        // The study's cache answers 99 % only.
        let larger = change_facts(study(), |_, facts| facts.size = Some(2_000_000_000));
        assert!(finding(&larger, "data in memory").is_none());
        assert!(finding(&larger, "data larger than the cache").is_some());
        let two = change_facts(larger, |trial, facts| {
            if trial.condition == 0 {
                facts.settings[0].in_force = "1G".to_owned();
            }
        });
        let caches = finding(&two, "data larger than the cache").expect("a finding").evidence;
        assert_eq!(caches.len(), 2, "each cache with its own share: {caches:?}");
        let one_holds_it = change_facts(two, |trial, facts| {
            if trial.condition == 0 {
                facts.settings[0].in_force = "2G".to_owned();
            }
        });
        let larger = finding(&one_holds_it, "data larger than the cache").expect("a finding").evidence;
        assert!(larger.len() == 1 && !larger[0].contains("2G"), "only those that are smaller: {larger:?}");
    }

    #[test]
    fn short_trials_of_postgresql_are_told_late_what_its_sessions_count() {
        let postgresql = || change_facts(study(), |_, facts| facts.version = "PostgreSQL 15.18".to_owned());
        let found = finding(&postgresql(), "counters that come late").expect("a finding");
        assert!(found.sentence.contains("by 50 % or more here, where 2 s were measured"), "{}", found.sentence);
        assert!(found.evidence[0].contains(" of commits by the server's account, "), "{:?}", found.evidence);
        assert_eq!(finding(&study(), "counters that come late"), None, "MariaDB tells at once");
        let mut long = postgresql();
        long.starts.iter_mut().for_each(|result| result.loads[0].summary.timing.window = Nanos(10_000_000_000));
        assert_eq!(finding(&long, "counters that come late"), None);
    }

    #[test]
    fn a_trial_whose_transactions_mostly_fail_is_a_problem() {
        let failing_transactions = |share: f64| {
            let mut input = study();
            let tallies = &mut input.starts[1].loads[0].tallies;
            for tally in tallies.iter_mut().filter(|(subject, _)| subject.is_request()).map(|one| one.1) {
                tally.errors = [(ErrorKind::Deadlock, (tally.count() as f64 * share) as u64)].into();
            }
            finding(&input, "transactions that fail")
        };
        let found = failing_transactions(0.7).expect("a finding");
        assert_eq!(found.severity, Severity::Problem);
        assert!(found.sentence.contains("up to 70 %: NOTPM counts only those that succeeded"), "{}", found.sentence);
        assert!(found.evidence[0].contains(" failed (70 %): deadlock "), "{:?}", found.evidence);
        assert_eq!(failing_transactions(0.05), None);
    }

    #[test]
    fn a_wrong_mix_names_its_trials() {
        let line = MixLine {
            name: "remote order lines".to_owned(),
            n: 1000,
            found: 0.05,
            low: 0.0095,
            high: 0.0105,
            holds: false,
        };
        let input = change_facts(study(), |trial, facts| {
            facts.work.mix = vec![MixLine { holds: trial.number != 2, ..line.clone() }];
        });
        let found = finding(&input, "another mix").expect("a finding");
        assert!(found.evidence[0].ends_with("in trial 2"), "{:?}", found.evidence);
    }
}
