use super::cache::bytes;
use super::*;
use crate::Input;
use crate::analyse;
use crate::database::testing::{change_facts, grid, study};
use crate::finding::Severity;
use plimsoll_model::database::{Condition, MixLine};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::start::{Design, Turns};
use plimsoll_model::units::Nanos;
use std::time::Duration;

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
    assert!(found.evidence[0].contains(" at the best settings, +39.6 % with concurrency = 8"), "{:?}", found.evidence);
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
    let mut in_turns = postgresql();
    let turns = Turns { count: 20, settle: Duration::from_millis(100), slice: Duration::from_millis(500) };
    in_turns.plan.design = Design::Turns(turns);
    let found = finding(&in_turns, "counters that come late").expect("a finding");
    assert!(
        found.sentence.contains("by 100 % or more here, where 0.5 s were measured at a time."),
        "{}",
        found.sentence
    );
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
