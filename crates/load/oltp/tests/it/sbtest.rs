//! sysbench's tests on both servers: what is loaded, and what each transaction sends.

use plimsoll_feed::SeededRandom;
use plimsoll_model::database::{Dataset, Endpoint, Engine};
use plimsoll_model::load::WHOLE;
use plimsoll_model::sql::{Distribution, Oltp, OltpTest, Retry, Sql, SqlWork, Transport};
use plimsoll_oltp::{SqlUser, SqlWorkload, StatementObserver, TransactionEnd, compile, load, tables};
use plimsoll_sql::{CallLimits, Connection, SqlError};
use plimsoll_testkit::database::{Database, mariadb, mysql, postgresql};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Rows of each of two tables: more than one connection loads at once.
const ROWS: u64 = 25_000;
const DATASET: Dataset = Dataset::Sbtest { tables: 2, rows: ROWS, seed: 3 };

/// Transactions of each test.
const TRANSACTIONS: u64 = 20;

/// Counts statements by their number.
#[derive(Default)]
struct Counts(BTreeMap<usize, u64>);

impl StatementObserver for Counts {
    fn statement(&mut self, statement: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError> {
        *self.0.entry(statement).or_default() += 1;
        work()
    }
}

fn connect(endpoint: &Endpoint) -> Connection {
    Connection::open(endpoint, CallLimits::timeout(Duration::from_secs(20))).expect("a connection")
}

fn number(connection: &mut Connection, query: &str) -> u64 {
    let rows = connection.query(query).expect(query).rows;
    rows[0][0].as_deref().expect("a value").parse().expect("a number")
}

fn test_of(test: OltpTest, endpoint: &Endpoint) -> Box<dyn SqlWorkload> {
    let oltp = Oltp { test, tables: 2, rows: ROWS, distribution: Distribution::Special };
    let sql = Sql {
        database: "db".to_owned(),
        endpoint: Some(endpoint.clone()),
        transport: Transport::Unix,
        isolation: None,
        retry: Retry::default(),
        work: SqlWork::Oltp(oltp),
        check_within: Duration::ZERO,
    };
    compile(&sql, 1, WHOLE).expect("a workload")
}

/// Runs transactions of a test; gives the user, and its statements by name.
fn run(test: OltpTest, endpoint: &Endpoint) -> (Box<dyn SqlUser>, BTreeMap<String, u64>) {
    let workload = test_of(test, endpoint);
    let mut user = workload.user(0, connect(endpoint)).expect("a user");
    let (mut random, mut counts) = (SeededRandom::new(9), Counts::default());
    for _ in 0..TRANSACTIONS {
        assert_eq!(user.draw_transaction(&mut random), 0);
        assert_eq!(
            user.run_transaction(&mut counts).expect("no failure"),
            TransactionEnd::Committed,
            "{}",
            test.name()
        );
    }
    let names = workload.statements();
    (user, counts.0.into_iter().map(|(number, count)| (names[number].name.clone(), count)).collect())
}

fn loaded(server: Option<Database>) -> Option<Database> {
    let server = server?;
    let mut last = 0.0;
    let mut progress = |_: &str, share: f64| {
        assert!(share >= last, "{share} after {last}");
        last = share;
    };
    load(&DATASET, &server.unix(), &AtomicBool::new(false), &mut progress).expect("the tables are loaded");
    assert_eq!(last, 1.0);
    Some(server)
}

#[test]
fn tables_are_those_of_sysbench() {
    for server in [loaded(postgresql()), loaded(mariadb()), loaded(mysql())].into_iter().flatten() {
        let mut connection = connect(&server.unix());
        assert_eq!(tables(&DATASET), ["sbtest1", "sbtest2"]);
        for table in tables(&DATASET) {
            for (what, expected) in [
                ("COUNT(*)", ROWS),
                ("MIN(id)", 1),
                ("MAX(id)", ROWS),
                ("MIN(LENGTH(c))", 119),
                ("MAX(LENGTH(pad))", 59),
                ("SUM(CASE WHEN k BETWEEN 1 AND 25000 THEN 1 ELSE 0 END)", ROWS),
                ("SUM(CASE WHEN k BETWEEN 12375 AND 12624 THEN 1 ELSE 0 END) / 2500", 7),
            ] {
                let query = format!("SELECT CAST(FLOOR({what}) AS DECIMAL(20)) FROM {table}");
                assert_eq!(number(&mut connection, &query), expected, "{query}");
            }
        }
        let next = if connection.engine() == Engine::Postgresql {
            "SELECT nextval('sbtest2_id_seq')"
        } else {
            "SELECT auto_increment FROM information_schema.tables WHERE table_name = 'sbtest2'"
        };
        assert!(number(&mut connection, next) > ROWS);
    }
}

#[test]
fn every_test_sends_what_sysbench_sends() {
    let reads =
        [("select row", 10), ("select range", 1), ("sum of range", 1), ("ordered range", 1), ("distinct range", 1)];
    let writes = [("update index", 1), ("update non-index", 1), ("delete", 1), ("insert", 1)];
    let ends = [("begin", 1), ("commit", 1)];
    for server in [loaded(postgresql()), loaded(mariadb()), loaded(mysql())].into_iter().flatten() {
        for (test, expected) in [
            (OltpTest::PointSelect, vec![("select row", 1)]),
            (OltpTest::ReadOnly, [&ends[..], &reads].concat()),
            (OltpTest::ReadWrite, [&ends[..], &reads, &writes].concat()),
            (OltpTest::WriteOnly, [&ends[..], &writes].concat()),
            (OltpTest::UpdateIndex, vec![("update index", 1)]),
            (OltpTest::UpdateNonIndex, vec![("update non-index", 1)]),
            (OltpTest::Insert, vec![("insert", 1)]),
            (OltpTest::Delete, vec![("delete", 1)]),
        ] {
            let (mut user, found) = run(test, &server.unix());
            let expected: BTreeMap<String, u64> =
                expected.iter().map(|(name, count)| ((*name).to_owned(), count * TRANSACTIONS)).collect();
            assert_eq!(found, expected, "{}", test.name());
            match user.connection().engine() {
                Engine::Postgresql => agrees_with_postgresql(test, &found, user.connection()),
                Engine::Mariadb | Engine::Mysql => agrees_with_mariadb(test, &found, user.connection()),
            }
        }
        let mut connection = connect(&server.unix());
        let rows: u64 = tables(&DATASET)
            .iter()
            .map(|table| number(&mut connection, &format!("SELECT COUNT(*) FROM {table}")))
            .sum();
        // The same row is not deleted twice, so there may be more than the deletes have left.
        assert!((2 * ROWS..2 * ROWS + TRANSACTIONS).contains(&rows), "{rows}");
    }
}

/// How many statements of these names were sent.
fn count(sent: &BTreeMap<String, u64>, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| sent.get(*name)).sum()
}

/// What PostgreSQL has counted of the connection's prepared statements is what was sent.
fn agrees_with_postgresql(test: OltpTest, sent: &BTreeMap<String, u64>, connection: &mut Connection) {
    for (verb, names) in [
        ("SELECT", &["select row", "select range", "sum of range", "ordered range", "distinct range"][..]),
        ("UPDATE", &["update index", "update non-index"]),
        ("DELETE", &["delete"]),
        ("INSERT", &["insert"]),
    ] {
        let runs = "SELECT COALESCE(SUM(generic_plans + custom_plans), 0) FROM pg_prepared_statements";
        let found = number(connection, &format!("{runs} WHERE statement LIKE '{verb} %'"));
        assert_eq!(found, count(sent, names), "{}: {verb}", test.name());
    }
}

/// What MariaDB has counted on the connection is what was sent.
fn agrees_with_mariadb(test: OltpTest, sent: &BTreeMap<String, u64>, connection: &mut Connection) {
    let count = |names: &[&str]| count(sent, names);
    for (counter, expected) in [
        ("Com_begin", count(&["begin"])),
        ("Com_commit", count(&["commit"])),
        // And one for each of the tables, to see how many rows there are.
        ("Com_select", count(&["select row", "select range", "sum of range", "ordered range", "distinct range"]) + 2),
        ("Com_update", count(&["update index", "update non-index"])),
        ("Com_delete", count(&["delete"])),
        ("Com_insert", count(&["insert"])),
        ("Com_rollback", 0),
    ] {
        let found =
            connection.query(&format!("SHOW SESSION STATUS WHERE Variable_name = '{counter}'")).expect("a counter");
        assert_eq!(found.rows[0][1].as_deref(), Some(expected.to_string().as_str()), "{}: {counter}", test.name());
    }
}
