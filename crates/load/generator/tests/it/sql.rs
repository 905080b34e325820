//! SQL workloads on servers of PostgreSQL, MariaDB and MySQL.

use crate::support::{Outcome, closed, each, open, run_prepared, run_watched};
use plimsoll_generator::{Prepared, check};
use plimsoll_model::database::{Dataset, Endpoint, Engine, SqlFacts, StatementFacts};
use plimsoll_model::job::{JobRecord, WorkFacts};
use plimsoll_model::load::{Arrivals, LoadProfile, Stop};
use plimsoll_model::record::{ErrorKind, Interval};
use plimsoll_model::sql::{
    Distribution, Isolation, Oltp, OltpTest, OwnStatement, Parameter, Retry, Sql, SqlWork, Transaction, Transport,
};
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_sql::{CallLimits, Connection};
use plimsoll_testkit::database::{Database, mariadb, mysql, postgresql};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Runs a test on each server.
fn on_each(test: impl Fn(Engine, Database)) {
    let servers = [(Engine::Postgresql, postgresql()), (Engine::Mariadb, mariadb()), (Engine::Mysql, mysql())];
    for (engine, server) in servers {
        if let Some(server) = server {
            test(engine, server);
        }
    }
}

fn sql(endpoint: Endpoint, work: SqlWork) -> Sql {
    Sql {
        database: "db".to_owned(),
        endpoint: Some(endpoint),
        transport: Transport::Unix,
        isolation: None,
        retry: Retry::default(),
        work,
        check_within: Duration::ZERO,
    }
}

fn workload(sql: Sql) -> Workload {
    let steps = Steps::Sql(Box::new(sql));
    Workload { target: None, connect: Connect::PerUser, timeout: Duration::from_secs(10), steps }
}

fn run(sql: Sql, load: &LoadProfile) -> Outcome {
    let prepared = Prepared::new(&workload(sql), None).expect("the workload is in order");
    run_prepared(&prepared, load, 1, &AtomicBool::new(false))
}

/// Updates one row, then another: users with the same two rows in another order deadlock.
fn transfer() -> SqlWork {
    let account = Parameter::Number { low: 1, high: 3, distribution: Distribution::Uniform };
    let amount = Parameter::Number { low: 1, high: 10, distribution: Distribution::Uniform };
    let statement = |sql: &str, parameters: Vec<Parameter>| {
        let rows = Some(1);
        OwnStatement { sql: sql.to_owned(), parameters, rows }
    };
    let statements = vec![
        statement("UPDATE account SET balance = balance - ? WHERE id = ?", vec![amount, account.clone()]),
        statement("UPDATE account SET balance = balance + ? WHERE id = ?", vec![Parameter::Same(1), account]),
    ];
    SqlWork::Own(vec![Transaction { name: "transfer".to_owned(), weight: 1, atomic: true, statements }])
}

/// Three accounts with 1,000 each.
fn make_accounts(endpoint: &Endpoint) {
    let directory = tempfile::tempdir().expect("a folder");
    let files = [
        ("schema.sql", "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL); -- and no more\n"),
        ("rows.sql", "INSERT INTO account VALUES (1, 1000);\nINSERT INTO account VALUES (2, 1000), (3, 1000);\n"),
    ];
    let write = |(name, text): (&str, &str)| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let scripts = Dataset::Scripts(files.map(write).to_vec());
    plimsoll_oltp::load(&scripts, endpoint, &AtomicBool::new(false), &mut |_, _| ()).expect("the scripts run");
}

fn one_cell(endpoint: &Endpoint, query: &str) -> String {
    let mut connection =
        Connection::open(endpoint, CallLimits::timeout(Duration::from_secs(10))).expect("a connection");
    let mut rows = connection.query(query).expect("rows").rows;
    rows.remove(0).remove(0).expect("a value")
}

fn sql_facts(record: &JobRecord) -> &SqlFacts {
    match &record.facts {
        WorkFacts::Sql(facts) => facts,
        other => panic!("it was SQL: {other:?}"),
    }
}

fn statement<'a>(outcome: &'a Outcome, name: &str) -> &'a StatementFacts {
    let facts = sql_facts(&outcome.record);
    facts.statements.iter().find(|one| one.statement == name).unwrap_or_else(|| panic!("{:?}", facts.statements))
}

#[test]
fn transactions_that_meet_in_a_circle_are_tried_again_and_nothing_is_lost() {
    on_each(|engine, server| {
        let endpoint = server.unix();
        make_accounts(&endpoint);
        let retry = Retry { on: vec![ErrorKind::Deadlock], attempts: 1_000 };
        if engine == Engine::Postgresql {
            // The server looks for deadlocks only after a second of waiting.
            let mut connection =
                Connection::open(&endpoint, CallLimits::timeout(Duration::from_secs(10))).expect("a connection");
            connection.batch("ALTER ROLE tester SET deadlock_timeout = '10ms'").expect("a setting");
        }
        let outcome = run(Sql { retry, ..sql(endpoint.clone(), transfer()) }, &closed(4, each(300)));
        let facts = sql_facts(&outcome.record);
        assert_eq!((outcome.requests("transfer").count(), outcome.errors("transfer")), (1_200, vec![]), "{engine}");
        let retries = facts.retries.get(&ErrorKind::Deadlock).copied().unwrap_or_default();
        assert!(retries > 0, "{engine}: nobody met in a circle");
        assert_eq!(one_cell(&endpoint, "SELECT SUM(balance) FROM account"), "3000", "{engine}");
        assert_eq!(statement(&outcome, "begin").runs, 1_200 + retries, "{engine}");
        assert_eq!((statement(&outcome, "commit").runs, facts.connections), (1_200, 4), "{engine}");
        let failed: u64 = facts.statements.iter().map(|one| one.failed).sum();
        assert_eq!(failed, retries, "{engine}");
        assert!(outcome.requests("transfer").bytes_out > 0 && outcome.requests("transfer").bytes_in > 0);
    });
}

#[test]
fn without_retries_deadlocks_are_errors_of_their_own_kind() {
    on_each(|engine, server| {
        let endpoint = server.unix();
        make_accounts(&endpoint);
        let mut connection =
            Connection::open(&endpoint, CallLimits::timeout(Duration::from_secs(10))).expect("a connection");
        if engine == Engine::Postgresql {
            connection.batch("ALTER ROLE tester SET deadlock_timeout = '10ms'").expect("a setting");
        }
        let outcome = run(sql(endpoint.clone(), transfer()), &closed(4, each(300)));
        let errors = outcome.errors("transfer");
        assert!(matches!(errors[..], [(ErrorKind::Deadlock, 1..)]), "{engine}: {errors:?}");
        assert_eq!(outcome.requests("transfer").count(), 1_200);
        assert_eq!(one_cell(&endpoint, "SELECT SUM(balance) FROM account"), "3000", "{engine}");
    });
}

#[test]
fn rows_that_are_not_as_expected_are_a_wrong_answer() {
    on_each(|engine, server| {
        make_accounts(&server.unix());
        let statements = vec![
            OwnStatement {
                sql: "UPDATE account SET balance = balance + 1 WHERE id = ?".to_owned(),
                parameters: vec![Parameter::Constant("1".to_owned())],
                rows: Some(1),
            },
            OwnStatement {
                sql: "SELECT id FROM account WHERE id >= ?".to_owned(),
                parameters: vec![Parameter::Constant("2".to_owned())],
                rows: Some(3),
            },
        ];
        let work = SqlWork::Own(vec![Transaction { name: "odd".to_owned(), weight: 1, atomic: true, statements }]);
        let outcome = run(sql(server.tcp(), work), &closed(1, each(3)));
        assert_eq!(outcome.errors("odd"), [(ErrorKind::Check, 3)], "{engine}");
        let example = outcome.example("odd", ErrorKind::Check);
        assert_eq!(example, "expected 3 rows, found 2: `SELECT id FROM account WHERE id >= ?`");
        let sum = one_cell(&server.unix(), "SELECT SUM(balance) FROM account");
        assert_eq!(sum, "3000", "{engine}: what came before was taken back");
    });
}

#[test]
fn the_isolation_level_is_set_and_read_back() {
    on_each(|engine, server| {
        make_accounts(&server.unix());
        for (isolation, expected) in [
            (Some(Isolation::Serializable), "SERIALIZABLE"),
            (Some(Isolation::ReadCommitted), "READ COMMITTED"),
            (None, if engine == Engine::Postgresql { "READ COMMITTED" } else { "REPEATABLE READ" }),
        ] {
            let outcome = run(Sql { isolation, ..sql(server.unix(), transfer()) }, &closed(1, each(1)));
            assert_eq!(sql_facts(&outcome.record).isolation, expected, "{engine}");
        }
    });
}

#[test]
fn arrivals_that_wait_for_a_user_say_so_in_their_response_time() {
    on_each(|engine, server| {
        let pause = match engine {
            Engine::Postgresql => "SELECT pg_sleep(0.02)",
            Engine::Mariadb | Engine::Mysql => "SELECT SLEEP(0.02)",
        };
        let statements = vec![OwnStatement { sql: pause.to_owned(), parameters: Vec::new(), rows: Some(1) }];
        let work = SqlWork::Own(vec![Transaction { name: "pause".to_owned(), weight: 1, atomic: false, statements }]);
        let outcome = run(sql(server.unix(), work), &open(100.0, Arrivals::Constant, 1, 0.5));
        let pauses = outcome.requests("pause");
        assert_eq!((pauses.count(), pauses.failed()), (50, 0), "{engine}");
        // An arrival every 10 ms that takes 20 ms: the last of 50 waits for 490 ms.
        assert!(pauses.response.max() >= 490_000_000, "{engine}: {}", pauses.response.max());
        assert!(pauses.service.max() < pauses.response.max());
    });
}

/// Sessions that are in the midst of a long statement.
fn at_work(endpoint: &Endpoint) -> String {
    let query = match endpoint.engine {
        Engine::Postgresql => "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        Engine::Mariadb | Engine::Mysql => {
            "SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'"
        }
    };
    one_cell(endpoint, query)
}

#[test]
fn what_nobody_waits_for_any_more_is_ended_on_the_server() {
    on_each(|engine, server| {
        make_accounts(&server.unix());
        let sleep = match engine {
            Engine::Postgresql => "SELECT pg_sleep(600)",
            Engine::Mariadb | Engine::Mysql => "SELECT SLEEP(600)",
        };
        let statement = |sql: &str| OwnStatement { sql: sql.to_owned(), parameters: Vec::new(), rows: None };
        let statements = vec![statement("UPDATE account SET balance = 0 WHERE id = 1"), statement(sleep)];
        let work = SqlWork::Own(vec![Transaction { name: "long".to_owned(), weight: 1, atomic: true, statements }]);
        // Long enough that it ends in the sleep, and not before it, where the machine is busy.
        let workload = Workload { timeout: Duration::from_secs(3), ..workload(sql(server.tcp(), work)) };
        let prepared = Prepared::new(&workload, None).expect("the workload is in order");
        let outcome = run_prepared(&prepared, &closed(1, each(2)), 1, &AtomicBool::new(false));
        assert_eq!(outcome.errors("long"), [(ErrorKind::Timeout, 2)], "{engine}");
        let facts = sql_facts(&outcome.record);
        assert_eq!((facts.cancels, facts.cancels_failed), (2, 0), "{engine}");
        let begin = Instant::now();
        while at_work(&server.unix()) != "0" {
            assert!(begin.elapsed() < Duration::from_secs(60), "{engine}: the server goes on for nobody");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(one_cell(&server.unix(), "SELECT balance FROM account WHERE id = 1"), "1000", "{engine}");
    });
}

#[test]
fn a_server_that_is_killed_ends_in_errors_and_not_in_a_wait() {
    on_each(|engine, server| {
        let endpoint = server.unix();
        make_accounts(&endpoint);
        let load = LoadProfile { drain: Duration::from_secs(30), ..closed(4, Stop::After(Duration::from_secs(5))) };
        let retry = Retry { on: vec![ErrorKind::Deadlock], attempts: 1_000 };
        let work = workload(Sql { retry, ..sql(endpoint, transfer()) });
        let prepared = Prepared::new(&work, None).expect("the workload is in order");
        let begun = Instant::now();
        let server = Mutex::new(server);
        let kill = |second: &Interval| {
            if second.second == 0 {
                server.lock().expect("nobody else has it").kill();
            }
        };
        let outcome = run_watched(&prepared, &load, 1, &AtomicBool::new(false), &kill);
        let errors = outcome.errors("transfer");
        assert!(errors.iter().any(|(kind, _)| *kind == ErrorKind::Connect), "{engine}: {errors:?}");
        assert!(
            errors.iter().all(|(kind, _)| matches!(
                kind,
                ErrorKind::Connect | ErrorKind::Closed | ErrorKind::Sql | ErrorKind::Denied
            )),
            "{engine}: {errors:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(30), "{engine}: nothing was left to wait for");
        assert!(outcome.record.faults.is_empty(), "{:?}", outcome.record.faults);
    });
}

#[test]
fn what_cannot_work_is_said_before_the_load() {
    let oltp = |rows| Oltp { test: OltpTest::PointSelect, tables: 1, rows, distribution: Distribution::Uniform };
    on_each(|engine, server| {
        let dataset = Dataset::Sbtest { tables: 1, rows: 100, seed: 1 };
        plimsoll_oltp::load(&dataset, &server.unix(), &AtomicBool::new(false), &mut |_, _| ()).expect("rows");
        for (endpoint, rows, expected) in [
            (server.unix(), 200, "expected 200 rows in `sbtest1`, found 100"),
            (Endpoint { database: "nowhere".to_owned(), ..server.unix() }, 100, "nowhere"),
            (Endpoint { password: None, ..server.tcp() }, 100, "password"),
        ] {
            let prepared = Prepared::new(&workload(sql(endpoint, SqlWork::Oltp(oltp(rows)))), None).expect("in order");
            let load = closed(2, each(1));
            let error = prepared
                .run(&crate::support::job(&load, 1), &AtomicBool::new(false), &mut |_| ())
                .expect_err("it cannot work")
                .to_string();
            assert!(error.contains(expected), "{engine}: {error}");
        }
    });
}

#[test]
fn a_workload_is_checked_without_a_server() {
    let nowhere = Sql { endpoint: None, ..sql_without_server(transfer()) };
    assert_eq!(check(&workload(nowhere)), Ok(()));
    let SqlWork::Own(mut transactions) = transfer() else { unreachable!("transfers are the study's own") };
    transactions[0].statements[0].parameters.pop();
    let faults = check(&workload(sql_without_server(SqlWork::Own(transactions)))).expect_err("a parameter is missing");
    assert!(faults[0].what.contains("transaction `transfer`, statement 1"), "{faults:?}");
}

fn sql_without_server(work: SqlWork) -> Sql {
    let address = plimsoll_model::database::Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 };
    let (user, database) = ("nobody".to_owned(), "none".to_owned());
    Sql { endpoint: None, ..sql(Endpoint { engine: Engine::Mariadb, address, user, password: None, database }, work) }
}
