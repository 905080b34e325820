//! A study of databases for tests: versions 5.0 and 5.1 under settings and loads, with results that
//! each test makes up.

use crate::input::Input;
use crate::testing::{blocks, input, placed, start};
use plimsoll_model::database::{DatabaseFacts, Setting, SqlFacts, StatementFacts};
use plimsoll_model::factor::{Assignment, Factor, Level, Role, combinations};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{Subject, Tally};
use plimsoll_model::result::{GeneratorRow, LoadResult, LoadSecond, StartResult, StartSummary};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample};
use plimsoll_model::start::Start;
use plimsoll_model::workload::Protocol;

/// The place of a trial in the study.
#[derive(Clone, Copy)]
pub(crate) struct TrialPlace {
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
    grid(&[8], &[4, 16, 64], 3, |trial_place| 100.0 + f64::from(trial_place.repeat))
}

/// A study over concurrencies and loads; `rate` gives new orders per second.
pub(crate) fn grid(settings: &[i64], loads: &[i64], repeats: u32, rate: impl Fn(TrialPlace) -> f64) -> Input {
    let numbers = |levels: &[i64]| levels.iter().copied().map(Level::Integer).collect::<Vec<_>>();
    let mut input = input(repeats, |_| start(1.0));
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
    let starts = blocks(2, conditions.len(), repeats);
    let trial_place = |place: &Start| TrialPlace {
        version: place.variants[0],
        setting: place.condition / loads.len(),
        threads: loads[place.condition % loads.len()],
        repeat: place.repeat - 1,
    };
    input.starts =
        starts.iter().map(|place| placed(result(trial_place(place), rate(trial_place(place))), place)).collect();
    input.plan = Plan {
        variants: ["5.0", "5.1"]
            .map(|version| Assignment(vec![("version".to_owned(), Level::Text(version.to_owned()))]))
            .into(),
        lengths: vec![input.plan.lengths[0]; conditions.len()],
        conditions,
        starts,
        ..input.plan
    };
    input
}

fn result(trial_place: TrialPlace, rate: f64) -> StartResult {
    let mut result = start(1.0);
    let load = &mut result.loads[0];
    load.tallies.clear();
    load.seconds.clear();
    let orders = (rate * SECONDS as f64) as u64;
    for (step, count, milliseconds) in [
        ("new_order", orders, 10),
        ("new_order_rollback", orders / 100, 10),
        ("payment", orders, 5),
        ("order_status", orders / 10, 2),
        ("delivery", orders / 10, 40),
        ("stock_level", orders / 10, 8),
    ] {
        record(load, step, count, milliseconds);
    }
    load.generator = (0..SECONDS as i64)
        .map(|second| GeneratorRow {
            second,
            users: trial_place.threads as u64,
            cpu_cores: 0.3,
            ..GeneratorRow::default()
        })
        .collect();
    for at in [1.0, 2.0] {
        for (counter, value) in
            [("commits", 2.3 * rate), ("log_syncs", 1.15 * rate), ("page_hits", 990.0), ("page_reads", 10.0)]
        {
            let (database, counter) = ("db".to_owned(), counter.to_owned());
            result.databases.push(DatabaseSample { at, database, counter, value, variant: 0 });
        }
        let cpu_cores = 0.8;
        result.processes.push(ProcessSample { at, system: "db".to_owned(), cpu_cores, ..ProcessSample::default() });
        result.host.push(HostSample { at, cpu_cores: 1.2, ..HostSample::default() });
    }
    result.summary.systems[0].databases = vec![facts(orders)];
    result
}

/// `count` transactions of this step that took so many milliseconds each, in two seconds.
pub(crate) fn record(load: &mut LoadResult, step: &str, count: u64, milliseconds: u64) {
    let mut tally = Tally::default();
    tally.service.record_n(milliseconds * 1_000_000, count).expect("in range");
    load.tallies.entry(Subject::Iteration).or_default().merge(&tally);
    load.tallies.insert(Subject::Request(step.to_owned()), tally);
    for second in 0..SECONDS as i64 {
        let subject = Subject::Request(step.to_owned());
        let (count, mean) = (count / SECONDS, milliseconds as f64 * 1e6);
        load.seconds.push(LoadSecond { count, mean, ..LoadSecond::empty(second, subject) });
    }
}

fn facts(orders: u64) -> DatabaseFacts {
    let setting = |name: &str, requested: Option<&str>, in_force: &str, risk: Option<&str>| Setting {
        name: name.to_owned(),
        asked: requested.map(str::to_owned),
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
        durations: None,
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

/// The same study with other facts; `change` gets the start that they are of.
pub(crate) fn change_facts(mut input: Input, change: impl Fn(&Start, &mut DatabaseFacts)) -> Input {
    for StartSummary { start, systems, .. } in input.starts.iter_mut().map(|result| &mut result.summary) {
        systems.iter_mut().flat_map(|one| &mut one.databases).for_each(|facts| change(start, facts));
    }
    input
}
