//! A study's own SQL on each server.

use plimsoll_feed::RandomSource;
use plimsoll_model::database::{Dataset, Endpoint, Engine};
use plimsoll_model::load::WHOLE;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{Distribution, OwnStatement, Parameter, Retry, Sql, SqlWork, Transaction, Transport};
use plimsoll_oltp::{StatementObserver, TransactionEnd, compile, load};
use plimsoll_sql::{CallLimits, Connection, SqlError};
use plimsoll_testkit::database::{Database, mariadb, mysql, postgresql};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A source that always gives the middle.
struct Half;

impl RandomSource for Half {
    fn unit(&mut self) -> f64 {
        0.5
    }
}

struct Unobserved;

impl StatementObserver for Unobserved {
    fn statement(&mut self, _: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError> {
        work()
    }
}

fn servers() -> impl Iterator<Item = Database> {
    [postgresql(), mariadb(), mysql()].into_iter().flatten()
}

fn connect(endpoint: &Endpoint) -> Connection {
    Connection::open(endpoint, CallLimits::timeout(Duration::from_secs(20))).expect("a connection")
}

fn run_script(script: &Path, endpoint: &Endpoint) -> Result<(), SqlError> {
    load(&Dataset::Scripts(vec![script.to_owned()]), endpoint, &AtomicBool::new(false), &mut |_, _| ()).map(drop)
}

/// A transaction of one statement.
fn own(endpoint: &Endpoint, sql: &str, parameters: Vec<Parameter>) -> Sql {
    let statements = vec![OwnStatement { sql: sql.to_owned(), parameters, rows: Some(1) }];
    let transaction = Transaction { name: "only".to_owned(), weight: 1, atomic: true, statements };
    Sql {
        database: "db".to_owned(),
        endpoint: Some(endpoint.clone()),
        transport: Transport::Unix,
        isolation: None,
        retry: Retry::default(),
        work: SqlWork::Own(vec![transaction]),
        check_within: Duration::ZERO,
    }
}

#[test]
fn values_go_into_columns_of_every_type() {
    let directory = tempfile::tempdir().expect("a folder");
    let (script, feed) = (directory.path().join("a.sql"), directory.path().join("a.csv"));
    let columns = "id INTEGER PRIMARY KEY, price NUMERIC(8,2), day DATE, code CHAR(5), note VARCHAR(20), big BIGINT";
    std::fs::write(&script, format!("CREATE TABLE sale ({columns});")).expect("a file");
    std::fs::write(&feed, "id,price,day,code\n7,12.50,2026-11-22,01234\n8,-0.05,2024-02-29,x'; y\n").expect("a file");
    let column = |name: &str| Parameter::Feed { file: feed.clone(), column: name.to_owned() };
    let number = Parameter::Number { low: 1, high: 9, distribution: Distribution::Uniform };
    let constant = Parameter::Constant("5000000000".to_owned());
    let parameters = vec![column("id"), column("price"), column("day"), column("code"), number, constant];
    for server in servers() {
        let endpoint = server.unix();
        run_script(&script, &endpoint).expect("a table");
        let workload =
            compile(&own(&endpoint, "INSERT INTO sale VALUES (?, ?, ?, ?, ?, ?)", parameters.clone()), 1, WHOLE);
        let mut user = workload.expect("a workload").user(0, connect(&endpoint)).expect("a user");
        for _ in 0..2 {
            user.draw_transaction(&mut Half);
            assert_eq!(user.run_transaction(&mut Unobserved).expect("no failure"), TransactionEnd::Committed);
        }
        let found = connect(&endpoint).query("SELECT * FROM sale ORDER BY id").expect("rows").rows;
        let found: Vec<Vec<String>> = found.into_iter().map(|row| row.into_iter().flatten().collect()).collect();
        assert_eq!(found[0], ["7", "12.50", "2026-11-22", "01234", "5", "5000000000"]);
        assert_eq!(found[1][..4], ["8", "-0.05", "2024-02-29", "x'; y"]);
        // From the start again, where the keys are taken: the user goes on after the failure.
        user.draw_transaction(&mut Half);
        assert_eq!(user.run_transaction(&mut Unobserved).unwrap_err().kind, ErrorKind::Constraint);
        assert_eq!(
            user.connection().query("SELECT COUNT(*) FROM sale").expect("rows").rows[0][0].as_deref(),
            Some("2")
        );
    }
}

#[test]
fn a_script_that_the_server_refuses_is_named() {
    let directory = tempfile::tempdir().expect("a folder");
    let script = directory.path().join("broken.sql");
    std::fs::write(&script, "CREATE TABLE fine (id INTEGER);\nCREATE TABEL broken (id INTEGER);").expect("a file");
    for server in servers() {
        let error = run_script(&script, &server.unix()).expect_err("it is broken").to_string();
        assert!(error.contains("broken.sql") && error.contains("TABEL"), "{error}");
        let missing = run_script(&directory.path().join("missing.sql"), &server.unix()).expect_err("it is missing");
        assert_eq!(missing.kind, ErrorKind::Io);
    }
}

#[test]
fn a_load_that_is_interrupted_ends_soon() {
    let directory = tempfile::tempdir().expect("a folder");
    let script = directory.path().join("slow.sql");
    for server in servers() {
        let sleep = match server.unix().engine {
            Engine::Postgresql => "SELECT pg_sleep(60)",
            Engine::Mariadb | Engine::Mysql => "DO SLEEP(60)",
        };
        std::fs::write(&script, sleep).expect("a file");
        let interrupted = AtomicBool::new(true);
        let dataset = Dataset::Scripts(vec![script.clone()]);
        let begun = std::time::Instant::now();
        assert!(load(&dataset, &server.unix(), &interrupted, &mut |_, _| ()).is_err());
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
