//! A study of databases for the tests: versions 5.0 and 5.1 under settings and loads, with results
//! that the test makes up.

use crate::Input;
use crate::testing::{input, trial};
use plimsoll_model::database::{DatabaseFacts, Setting, SqlFacts, StatementFacts};
use plimsoll_model::factor::{Assignment, Factor, Level, Role, combinations};
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::{GeneratorRow, LoadSecond, TrialResult};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample};
use plimsoll_model::trial::{Plan, Trial};
use plimsoll_model::workload::Protocol;

/// Where a trial stands.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    /// 0 is 5.0, 1 is 5.1.
    pub(crate) version: usize,
    /// Index into the concurrencies.
    pub(crate) setting: usize,
    /// Users.
    pub(crate) threads: i64,
    /// From 0.
    pub(crate) repeat: u32,
}

/// Seconds of a trial's measure phase.
const SECONDS: u64 = 2;

/// Two versions, concurrency 8, three loads, three repeats, with the same throughput for all.
pub(crate) fn study() -> Input {
    grid(&[8], &[4, 16, 64], 3, |spot| 100.0 + f64::from(spot.repeat))
}

/// A study over concurrencies and loads; `rate` gives new orders per second.
pub(crate) fn grid(settings: &[i64], loads: &[i64], repeats: u32, rate: impl Fn(Spot) -> f64) -> Input {
    let numbers = |levels: &[i64]| levels.iter().copied().map(Level::Integer).collect::<Vec<_>>();
    let mut input = input(repeats, |_| trial(1.0));
    let versions = ["5.0", "5.1"].map(|version| Level::Text(version.to_owned()));
    input.facts.factors = vec![
        Factor { name: "version".to_owned(), levels: versions.into(), role: Role::Compared { baseline: 0 } },
        Factor { name: "concurrency".to_owned(), levels: numbers(settings), role: Role::Condition },
        Factor { name: "threads".to_owned(), levels: numbers(loads), role: Role::Condition },
    ];
    if settings.len() == 1 {
        input.facts.factors.remove(1);
    }
    input.facts.protocol = Protocol::Sql;
    input.facts.commands = Vec::new();
    let conditions = combinations(&input.facts.factors[1..]);
    let trials = trials(conditions.len(), repeats);
    let spot = |trial: &Trial| Spot {
        version: trial.variant,
        setting: trial.condition / loads.len(),
        threads: loads[trial.condition % loads.len()],
        repeat: trial.repeat - 1,
    };
    input.trials = trials.iter().map(|trial| result(*trial, spot(trial), rate(spot(trial)))).collect();
    input.plan = Plan {
        variants: ["5.0", "5.1"]
            .map(|version| Assignment(vec![("version".to_owned(), Level::Text(version.to_owned()))]))
            .into(),
        lengths: vec![input.plan.lengths[0]; conditions.len()],
        conditions,
        trials,
        ..input.plan
    };
    input
}

/// Every second block runs the other way round.
fn trials(conditions: usize, repeats: u32) -> Vec<Trial> {
    let mut trials = Vec::new();
    for repeat in 1..=repeats {
        for condition in 0..conditions {
            let block = (repeat - 1) * conditions as u32 + condition as u32 + 1;
            for place in 0..2 {
                let variant = if repeat.is_multiple_of(2) { 1 - place } else { place };
                let (number, position) = (trials.len() as u32 + 1, place as u32 + 1);
                trials.push(Trial { number, block, repeat, attempt: 1, extended: false, position, variant, condition });
            }
        }
    }
    trials
}

fn result(place: Trial, spot: Spot, rate: f64) -> TrialResult {
    let mut result = trial(1.0);
    result.summary.trial = place;
    result.summary.started_unix_ms = i64::from(place.number) * 3_000;
    result.tallies.clear();
    result.seconds.clear();
    let orders = (rate * SECONDS as f64) as u64;
    for (step, count, milliseconds) in [
        ("new_order", orders, 10),
        ("new_order_rollback", orders / 100, 10),
        ("payment", orders, 5),
        ("order_status", orders / 10, 2),
        ("delivery", orders / 10, 40),
        ("stock_level", orders / 10, 8),
    ] {
        record(&mut result, step, count, milliseconds);
    }
    result.generator = (0..SECONDS as i64)
        .map(|second| GeneratorRow { second, users: spot.threads as u64, cpu_cores: 0.3, ..GeneratorRow::default() })
        .collect();
    for at in [1.0, 2.0] {
        for (counter, value) in
            [("commits", 2.3 * rate), ("log_syncs", 1.15 * rate), ("page_hits", 990.0), ("page_reads", 10.0)]
        {
            let (database, counter) = ("db".to_owned(), counter.to_owned());
            result.databases.push(DatabaseSample { at, database, counter, value });
        }
        let cpu_cores = 0.8;
        result.processes.push(ProcessSample { at, system: "db".to_owned(), cpu_cores, ..ProcessSample::default() });
        result.host.push(HostSample { at, cpu_cores: 1.2, ..HostSample::default() });
    }
    result.summary.databases = vec![facts(orders)];
    result
}

/// `count` transactions of this step that took so many milliseconds each, in two seconds.
pub(crate) fn record(result: &mut TrialResult, step: &str, count: u64, milliseconds: u64) {
    let mut tally = Tally::default();
    tally.service.record_n(milliseconds * 1_000_000, count).expect("in range");
    result.tallies.entry(Subject::Iteration).or_default().merge(&tally);
    result.tallies.insert(Subject::Request(step.to_owned()), tally);
    for second in 0..SECONDS as i64 {
        let subject = Subject::Request(step.to_owned());
        let (count, mean) = (count / SECONDS, milliseconds as f64 * 1e6);
        result.seconds.push(LoadSecond { count, mean, ..LoadSecond::empty(second, subject) });
    }
}

fn facts(orders: u64) -> DatabaseFacts {
    let setting = |name: &str, asked: Option<&str>, in_force: &str, risk: Option<&str>| Setting {
        name: name.to_owned(),
        asked: asked.map(str::to_owned),
        in_force: in_force.to_owned(),
        risk: risk.map(str::to_owned),
    };
    let statement = |statement: &str, runs: u64, total: u64| StatementFacts {
        transaction: "new_order".to_owned(),
        statement: statement.to_owned(),
        runs: runs * 2,
        measured: runs,
        total,
        longest: 90_000_000,
        p50: Some(300_000),
        p95: Some(2_000_000),
        p99: Some(9_000_000),
        failed: 0,
    };
    DatabaseFacts {
        name: "db".to_owned(),
        version: "MariaDB 10.11.19".to_owned(),
        transport: "UNIX socket".to_owned(),
        data: "initialised and loaded by the run".to_owned(),
        restored: "copied".to_owned(),
        restore_seconds: 0.4,
        size: Some(300_000_000),
        settings: vec![
            setting("innodb_buffer_pool_size", Some("512M"), "536870912", None),
            setting("innodb_doublewrite", Some("0"), "OFF", Some("torn pages cannot be repaired")),
        ],
        work: SqlFacts {
            workload: "TPC-C, 2 warehouses, waits zero".to_owned(),
            isolation: "REPEATABLE READ".to_owned(),
            statements: vec![
                statement("select item", orders * 10, orders * 4_000_000),
                statement("COMMIT", orders, orders * 2_000_000),
            ],
            ..SqlFacts::default()
        },
        ..DatabaseFacts::default()
    }
}

/// The same study with other facts; `change` gets the trial that they are of.
pub(crate) fn change_facts(mut input: Input, change: impl Fn(Trial, &mut DatabaseFacts)) -> Input {
    for result in &mut input.trials {
        let trial = result.summary.trial;
        result.summary.databases.iter_mut().for_each(|facts| change(trial, facts));
    }
    input
}
