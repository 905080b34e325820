//! Reports on studies whose truth is known.

use super::testing::{change_facts, grid, record, study};
use super::*;
use crate::analyse;
use plimsoll_model::record::{ErrorKind, Subject, Tally};
use plimsoll_model::result::LoadSecond;
use plimsoll_model::start::Validity;
use proptest::prelude::*;

fn report(input: &Input) -> DatabaseReport {
    analyse(input).database.expect("a report")
}

/// A little more or less in each repeat.
fn around(rate: f64, repeat: u32) -> f64 {
    rate * (1.0 + f64::from(repeat % 3) / 100.0)
}

#[test]
fn a_study_without_databases_has_no_report() {
    assert_eq!(analyse(&crate::testing::input(2, |_| crate::testing::start(1.0))).database, None);
}

#[test]
fn transactions_stand_in_the_order_of_dbt2_with_rollbacks_apart() {
    let report = report(&study()); // 101 new orders a second on average, over 3 trials of 2 s
    let cell = &report.cells[0];
    let titles: Vec<&str> = cell.transactions.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(titles, ["Delivery", "New Order", "Order Status", "Payment", "Stock Level"]);
    let new_order = &cell.transactions[1];
    assert_eq!((new_order.total, new_order.rollbacks, new_order.failed), (612, 6, 0));
    assert!((new_order.rolled_back() - 6.0 / 612.0).abs() < 1e-12);
    assert!((new_order.mean - 0.010).abs() < 1e-5 && (new_order.p90.expect("612 of them") - 0.010).abs() < 1e-5);
    let shares: f64 = cell.transactions.iter().map(|one| one.share).sum();
    assert!((shares - 1.0).abs() < 1e-12, "{shares}");
    let holds: Vec<Option<bool>> = cell.transactions.iter().map(|one| one.limit.expect("a limit").holds).collect();
    assert_eq!(holds, [None, Some(true), None, Some(true), None], "60 transactions are too few for a 90th percentile");
    assert_eq!(cell.transactions[0].p90, None);
    assert_eq!((cell.trials.len(), cell.seconds), (3, 6.0));
    assert_eq!(report.throughput.to_string(), "new_orders.rate");
}

#[test]
fn a_slow_transaction_breaks_its_own_limit_only() {
    let mut input = study();
    for result in &mut input.starts {
        record(&mut result.loads[0], "payment", 100, 6_000);
        record(&mut result.loads[0], "stock_level", 100, 6_000);
    }
    let violated: Vec<String> = report(&input).cells[0]
        .transactions
        .iter()
        .filter(|one| one.limit.is_some_and(|limit| limit.holds == Some(false)))
        .map(|one| one.name.clone())
        .collect();
    assert_eq!(violated, ["payment"]);
}

#[test]
fn errors_and_retries_stand_apart_from_rollbacks() {
    let mut input = change_facts(study(), |_, facts| facts.work.retries = [(ErrorKind::Deadlock, 4)].into());
    for result in &mut input.starts {
        let tally = result.loads[0].tallies.get_mut(&Subject::Request("payment".to_owned())).expect("payments");
        tally.errors.insert(ErrorKind::LockTimeout, 2);
    }
    let report = report(&input);
    let cell = &report.cells[0];
    assert_eq!((cell.errors[&ErrorKind::LockTimeout], cell.failed(), cell.retries[&ErrorKind::Deadlock]), (6, 6, 12));
    assert_eq!(cell.transactions[1].rollbacks, 6);
    assert_eq!(cell.transactions[3].failed, 6);
}

#[test]
fn a_workload_of_another_kind_has_its_own_names_and_no_limits() {
    let mut input = study();
    for result in &mut input.starts {
        result.loads[0].tallies.clear();
        record(&mut result.loads[0], "read_write", 500, 3);
    }
    let report = report(&input);
    let rows: Vec<(&str, bool)> =
        report.cells[0].transactions.iter().map(|one| (one.title.as_str(), one.limit.is_some())).collect();
    assert_eq!(rows, [("read_write", false)]);
    assert_eq!(report.throughput.to_string(), "iterations.rate");
}

#[test]
fn statements_are_held_against_their_transactions() {
    let report = report(&study());
    let statements = &report.cells[0].statements;
    let item = &statements[0];
    // Ten for each new order that was committed; those that were rolled back count as well.
    assert!((item.per_transaction.expect("transactions") - 10.0 * 606.0 / 612.0).abs() < 0.01, "{item:?}");
    assert!((item.mean - 0.0004).abs() < 1e-9 && (item.longest - 0.09).abs() < 1e-9);
    // 4 of 10 ms, and 2.
    assert!((item.share.expect("time") - 0.4).abs() < 0.01 && (statements[1].share.expect("time") - 0.2).abs() < 0.01);
}

proptest! {
    /// Also of transactions that lie over an edge of the measure phase: statements are those of what began in it.
    #[test]
    fn a_statement_takes_a_part_of_its_transactions_and_never_more(
        transactions in prop::collection::vec((-900..2000_i64, 1..900_i64), 1..30),
        part in 0.01..=1.0_f64,
        cut in 0..2_i64,
    ) {
        let (mut tally, mut seconds, mut total) = (Tally::default(), Vec::new(), 0);
        for (began, took) in transactions {
            let nanos = took as u64 * 1_000_000;
            if began >= 0 {
                tally.service.record(nanos).expect("in range");
                total += (nanos as f64 * part) as u64;
            }
            let (second, subject) = ((began + took).div_euclid(1000), Subject::Request(NEW_ORDER.to_owned()));
            seconds.push(LoadSecond { count: 1, mean: nanos as f64, ..LoadSecond::empty(second, subject) });
        }
        let mut input = change_facts(study(), |_, facts| {
            facts.work.statements.truncate(1);
            (facts.work.statements[0].measured, facts.work.statements[0].total) = (tally.count(), total);
        });
        for result in &mut input.starts {
            result.loads[0].cut = cut;
            result.loads[0].tallies.remove(&Subject::Request("new_order_rollback".to_owned()));
            result.loads[0].tallies.insert(Subject::Request("new_order".to_owned()), tally.clone());
            result.loads[0].seconds.clone_from(&seconds);
        }
        for share in report(&input).cells[0].statements.iter().filter_map(|one| one.share) {
            prop_assert!(share <= 1.0 && share <= part + 0.002, "{share} is more than {part}");
            prop_assert!(cut > 0 || share >= part - 0.002, "{share} is not {part}");
        }
    }
}

#[test]
fn percentiles_of_statements_are_of_all_trials_or_none() {
    let of_first = |input: &Input| report(input).cells[0].statements[0].percentiles;
    let near = |found: [Option<f64>; 3], expected: [Option<f64>; 3]| {
        let same = |(one, other): (Option<f64>, Option<f64>)| match (one, other) {
            (Some(one), Some(other)) => (one / other - 1.0).abs() < 1e-9,
            (one, other) => one == other,
        };
        assert!(found.into_iter().zip(expected).all(same), "{found:?} is not {expected:?}");
    };
    near(of_first(&study()), [Some(0.0003), Some(0.002), Some(0.009)]);
    let one = report(&study()).cells[0].trials[1];
    let slower = change_facts(study(), |trial, facts| {
        if trial.number == one {
            facts.work.statements[0].p95 = Some(16_000_000);
        }
    });
    near(of_first(&slower), [Some(0.0003), Some(0.004), Some(0.009)]);
    let few = |measured: u64| {
        change_facts(study(), |trial, facts| {
            if trial.number == one {
                facts.work.statements[0].measured = measured;
            }
        })
    };
    near(of_first(&few(999)), [Some(0.0003), Some(0.002), None]);
    near(of_first(&few(199)), [Some(0.0003), None, None]);
    let old = change_facts(study(), |_, facts| facts.work.statements[0].p50 = None);
    near(of_first(&old), [None, Some(0.002), Some(0.009)]);
}

#[test]
fn what_servers_were_asked_to_end_is_added_up() {
    let input = change_facts(study(), |_, facts| (facts.work.cancels, facts.work.cancels_failed) = (3, 1));
    assert_eq!(report(&input).cells[0].cancels, CancelledStatements { requested: 9, failed: 3 });
}

#[test]
fn counters_are_means_over_the_measure_phase_with_their_spread() {
    let mut input = study();
    // Neither warm-up nor what comes after counts.
    for result in &mut input.starts {
        for at in [0.0, 3.0] {
            let sample = result.databases[0].clone();
            result.databases.push(plimsoll_model::sample::DatabaseSample { at, value: 1e9, ..sample });
        }
    }
    let report = report(&input);
    let commits = report.cells[0].statistic("db", "commits").expect("commits");
    assert!((commits.mean - 2.3 * 101.0).abs() < 1e-6, "{commits:?}");
    assert!((commits.sd.expect("three trials") - 2.3).abs() < 1e-6 && commits.n == 3);
    let ratio = |name: &str| report.cells[0].statistic("db", name).expect(name).mean;
    assert!((ratio("hit ratio") - 0.99).abs() < 1e-12 && (ratio("log syncs per commit") - 0.5).abs() < 1e-12);
    assert!((report.cells[0].statistic("db", "CPU").expect("samples").mean - 0.8).abs() < 1e-12);
}

#[test]
fn the_cpu_of_a_generator_that_was_not_measured_is_not_told() {
    let mut input = study();
    let cpu = |input: &Input| report(input).cells[0].statistic("generator", "CPU").is_some();
    assert!(cpu(&input));
    input.origin = plimsoll_model::study::Origin::Imported { tool: "sysbench".to_owned(), version: None };
    assert!(!cpu(&input));
}

#[test]
fn what_is_counted_when_sessions_end_is_none_of_the_measure_phase() {
    let mut input = study();
    for result in &mut input.starts {
        let commits = |at: f64, value: f64| plimsoll_model::sample::DatabaseSample {
            at,
            database: "db".to_owned(),
            counter: "commits".to_owned(),
            value,
            variant: result.summary.start.variants[0],
        };
        // Spans of 1 s and 0.5 s; the last sample is taken after the measure phase of 2 s.
        result.databases = vec![commits(1.0, 100.0), commits(1.5, 400.0), commits(2.3, 9_000.0)];
    }
    let commits = report(&input).cells[0].statistic("db", "commits").expect("commits").mean;
    assert!((commits - 300.0 / 1.5).abs() < 1e-9, "{commits}");
}

#[test]
fn what_a_server_does_not_count_is_told() {
    assert!(report(&study()).not_counted.is_empty());
    let mut blind = study();
    for result in &mut blind.starts {
        result.databases.retain(|sample| sample.counter != "log_syncs");
    }
    let not_counted = report(&blind).not_counted;
    assert_eq!(not_counted.len(), 1);
    assert!(
        not_counted[0].starts_with("db does not count the syncs of its log, so whether they are the limit"),
        "{not_counted:?}"
    );
}

#[test]
fn each_trial_is_held_against_its_own_mix_and_the_widest_is_told() {
    let input = change_facts(study(), |trial, facts| {
        let slack = if trial.number == 2 { 0.03 } else { 0.01 };
        facts.work.mix = vec![plimsoll_model::database::MixLine {
            name: "stock level".to_owned(),
            n: 1000,
            found: if trial.number == 2 { 0.015 } else { 0.04 },
            low: 0.04 - slack,
            high: 0.04 + slack,
            holds: true,
        }];
    });
    let mix = &report(&input).mix[0];
    assert!(mix.allowed.0 <= mix.observed.0 && mix.observed.1 <= mix.allowed.1, "{mix:?}");
    assert_eq!([mix.show(mix.observed.0), mix.show(mix.allowed.0)], ["1.50 %", "1.00 %"]);
    assert!(mix.outside.is_empty());
    let wide = MixCheck { observed: (0.4, 0.8), allowed: (-0.1, 1.3), ..mix.clone() };
    assert_eq!([wide.show(0.4), wide.show(wide.allowed.1)], ["40.00 %", "100.00 %"], "a share is never more than all");
}

#[test]
fn trials_that_do_not_count_are_in_no_cell_but_in_the_checks() {
    let mut input = change_facts(study(), |trial, facts| {
        let (name, detail) = ("1: w_ytd = sum(d_ytd)".to_owned(), String::new());
        facts.conditions = vec![plimsoll_model::database::Condition { name, holds: Some(trial.number != 1), detail }];
    });
    input.starts[0].summary.validity = Validity::Failed(vec!["a condition does not hold".to_owned()]);
    let report = report(&input);
    assert_eq!(report.cells[0].trials.len(), 2);
    assert_eq!((report.checks[0].passed, report.checks[0].violated.len()), (17, 1));
}

#[test]
fn lines_cross_only_where_intervals_lie_apart() {
    let rate = |faster_from: i64| {
        move |trial_place: testing::TrialPlace| {
            let gain = if trial_place.threads >= faster_from { 1.5 } else { 0.7 };
            around(if trial_place.version == 1 { 1000.0 * gain } else { 1000.0 }, trial_place.repeat)
        }
    };
    let notes = report(&grid(&[8], &[4, 16, 64], 3, rate(16))).ahead;
    assert_eq!(
        notes,
        [
            "5.0 carries most at 4 threads: 42.9 % more than 5.1 at 4 threads (60,598 /min against 42,419 /min).",
            "5.1 carries most from 16 threads to 64 threads: 50.0 % more than 5.0 at 16 threads (90,897 /min against \
             60,598 /min), 50.0 % more than 5.0 at 64 threads (90,897 /min against 60,598 /min).",
            "The lines of 5.0 and 5.1 cross between 4 threads, where 5.0 carries more, and 16 threads, where 5.1 does.",
        ]
    );
    let far =
        report(&grid(&[8], &[4], 3, |place| around(if place.version == 1 { 620.0 } else { 100.0 }, place.repeat)))
            .ahead;
    assert!(far[0].contains("6.2 times as much as 5.0 at 4 threads ("), "{far:?}");
    let close =
        report(&grid(&[8], &[4, 16], 3, |trial_place| around(100.0, trial_place.repeat + trial_place.version as u32)))
            .ahead;
    assert_eq!(close, ["The intervals of 5.0 and 5.1 overlap at every load: none of them is shown to carry most."]);
}

/// 5.1 gains 40 % with concurrency 8; without a limit both are the same, and faster.
fn seed() -> Input {
    grid(&[8, 0], &[4, 16], 3, |trial_place| {
        let rate = match (trial_place.setting, trial_place.version) {
            (0, 0) => 100.0,
            (0, _) => 140.0,
            _ => 200.0,
        };
        around(rate, trial_place.repeat + trial_place.version as u32)
    })
}

#[test]
fn the_best_settings_can_be_alike_where_the_same_setting_is_not() {
    let best = report(&seed()).best.expect("two settings");
    assert_eq!(best.rows.len(), 2);
    let row = &best.rows[1];
    let baseline = row.best[0].as_ref().expect("trials");
    assert_eq!((baseline.setting, baseline.better_than_all_others), (1, true));
    let ratio = &row.ratios[0];
    let best = ratio.best.as_ref().expect("repeats");
    let interval = best.interval.as_ref().expect("three repeats");
    assert!(interval.low < 1.0 && interval.high > 1.0 && (best.value - 1.0).abs() < 0.02, "{best:?}");
    assert!((ratio.leave_one_out.as_ref().expect("repeats").value - 1.0).abs() < 0.02);
    let same_setting: Vec<f64> = ratio.same_setting.iter().map(|one| one.as_ref().expect("blocks").value).collect();
    assert!((same_setting[0] - 1.4).abs() < 0.02 && (same_setting[1] - 1.0).abs() < 0.02, "{same_setting:?}");
}

#[test]
fn a_best_that_chance_picked_is_not_confirmed() {
    // One repeat of one setting is an outlier: the largest mean has it, the other repeats do not pick it.
    let input = grid(&[8, 16], &[4, 16], 3, |trial_place| {
        match (trial_place.version, trial_place.setting, trial_place.repeat) {
            (1, 0, 2) => 200.0,
            (_, 0, repeat) => around(100.0, repeat),
            (_, _, repeat) => around(105.0, repeat),
        }
    });
    let report = report(&input);
    let row = &report.best.as_ref().expect("two settings").rows[0];
    assert_eq!(
        (row.best[0].as_ref().map(|best| best.setting), row.best[1].as_ref().map(|best| best.setting)),
        (Ok(1), Ok(0))
    );
    let (best, leave_one_out) =
        (row.ratios[0].best.as_ref().expect("repeats"), row.ratios[0].leave_one_out.as_ref().expect("repeats"));
    assert!(best.value > 1.15 && leave_one_out.value < 1.01, "{best:?} {leave_one_out:?}");
    assert!(!row.best[1].as_ref().expect("a best").better_than_all_others);
}

#[test]
fn with_one_setting_there_is_no_best_of_grid() {
    assert_eq!(report(&study()).best, None);
}

#[test]
fn a_setting_is_told_by_the_factor_that_changes_it() {
    let input = grid(&[8, 16], &[4, 16], 2, |trial_place| around(100.0, trial_place.repeat));
    let input = change_facts(input, |trial, facts| {
        let value = ["8", "16"][trial.condition / 2].to_owned();
        facts.settings.push(plimsoll_model::database::Setting {
            name: "innodb_thread_concurrency".to_owned(),
            asked: Some(value.clone()),
            in_force: value,
            risk: None,
        });
    });
    let settings = report(&input).settings;
    let row = settings.iter().find(|row| row.name == "innodb_thread_concurrency").expect("a row");
    let values: Vec<(&str, &str)> =
        row.values.iter().map(|value| (value.place.as_str(), value.in_force.as_str())).collect();
    assert_eq!(values, [("concurrency = 8", "8"), ("concurrency = 16", "16")]);
    assert!(row.unequal().is_empty());
    assert_eq!(settings[0].values[0].place, "all trials");
}

#[test]
fn a_database_behind_a_service_has_statistics_and_no_transactions() {
    let input = change_facts(study(), |_, facts| facts.work = plimsoll_model::database::SqlFacts::default());
    let report = report(&input);
    assert!(!report.is_sql && report.best.is_none() && report.ahead.is_empty());
    assert!(report.cells.iter().all(|cell| cell.transactions.is_empty() && cell.statistic("db", "commits").is_some()));
}

#[test]
fn the_condition_that_is_shown_is_the_one_that_carries_most() {
    let input = grid(&[8], &[4, 16, 64], 3, |trial_place| {
        around(if trial_place.threads == 16 { 300.0 } else { 100.0 }, trial_place.repeat)
    });
    assert_eq!(report(&input).shown, 1);
}
