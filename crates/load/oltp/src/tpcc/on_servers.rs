//! TPC-C on real servers, from the load to conditions that are broken on purpose. One load of one
//! warehouse serves all checks, so there is one test for each server.

use super::input::{
    Customer, CustomerKey, Delivery, Home, Input, Line, NewOrder, OrderStatus, Payment, StockLevel, UNUSED_ITEM,
};
use super::mix::Mix;
use super::random::Random;
use super::{conditions, load, loader, schema, workload};
use crate::workload::{StatementObserver, TransactionEnd};
use plimsoll_model::database::{Condition, Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{Tpcc, Waits};
use plimsoll_sql::{CallLimits, Connection, SqlError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const SEED: u64 = 11;

const TPCC: Tpcc =
    Tpcc { warehouses: 1, waits: Waits::Zero, mix: [45.0, 43.0, 4.0, 4.0, 4.0], sorted_lines: true, data_seed: SEED };

/// The errors that concurrent transactions may cause in one another.
const RETRIED: [ErrorKind; 3] = [ErrorKind::Deadlock, ErrorKind::Serialization, ErrorKind::LockTimeout];

/// Counts statements.
#[derive(Default)]
struct Count(u64);

impl StatementObserver for Count {
    fn statement(&mut self, _number: usize, work: &mut dyn FnMut() -> Result<(), SqlError>) -> Result<(), SqlError> {
        self.0 += 1;
        work()
    }
}

#[test]
fn postgresql_holds_what_tpcc_promises() {
    if let Some(server) = plimsoll_testkit::database::postgresql() {
        holds_what_it_promises(&server.unix());
    }
}

#[test]
fn mariadb_holds_what_tpcc_promises() {
    if let Some(server) = plimsoll_testkit::database::mariadb() {
        holds_what_it_promises(&server.unix());
    }
}

#[test]
fn mysql_holds_what_tpcc_promises() {
    if let Some(server) = plimsoll_testkit::database::mysql() {
        holds_what_it_promises(&server.unix());
    }
}

fn holds_what_it_promises(endpoint: &Endpoint) {
    let again = Endpoint { database: "again".to_owned(), ..endpoint.clone() };
    let mut connection = open(endpoint);
    connection.batch("CREATE DATABASE again").expect("the user may");
    fill(endpoint);
    fill(&again);
    assert_eq!(checksums(&mut connection), checksums(&mut open(&again)), "two loads of a seed are equal");

    assert_eq!(broken(&mut connection, true), [""; 0]);
    a_load_is_interrupted(&again);
    another_number_of_warehouses_is_refused(endpoint);
    the_server_counts_the_statements_of_the_specification(endpoint);
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        many_transactions_end_well(endpoint, isolation);
    }
    assert_eq!(broken(&mut connection, false), [""; 0]);
    what_is_broken_on_purpose_is_found(&mut connection);
    the_time_for_conditions_ends(&mut connection);
}

fn open(endpoint: &Endpoint) -> Connection {
    Connection::open(endpoint, CallLimits::timeout(Duration::from_secs(60))).expect("the server is ready")
}

fn fill(endpoint: &Endpoint) {
    let mut told = Vec::new();
    let mut progress = |what: &str, done: f64| told.push((what.to_owned(), done));
    load(1, SEED, endpoint, &AtomicBool::new(false), &mut progress).expect("the database is empty");
    assert!(told.is_sorted_by_key(|(_, done)| *done) && told.iter().all(|(_, done)| *done <= 1.0), "{told:?}");
    // Which tables a report names depends on when they are asked for.
    assert!(told.iter().any(|(what, _)| what.starts_with("loading ")), "{told:?}");
}

/// A checksum of each table, independent of the order of rows.
fn checksums(connection: &mut Connection) -> Vec<(&'static str, Option<String>)> {
    let engine = connection.engine();
    let mut sum = |name| {
        let (query, column) = match engine {
            Engine::Postgresql => (format!("SELECT SUM(hashtext(t::text)::bigint) FROM {name} AS t"), 0),
            Engine::Mariadb | Engine::Mysql => (format!("CHECKSUM TABLE {name}"), 1),
        };
        connection.query(&query).expect("the table is there").rows[0][column].clone()
    };
    schema::TABLES.map(|table| (table.name, sum(table.name))).to_vec()
}

/// The numbers of the conditions that do not hold.
fn broken(connection: &mut Connection, after_load: bool) -> Vec<String> {
    let conditions = conditions(connection, after_load, Duration::from_secs(60)).expect("the server is there");
    assert_eq!(conditions.len(), if after_load { 12 } else { 11 });
    let broken = conditions.into_iter().filter(|condition| condition.holds != Some(true));
    broken
        .map(|Condition { name, detail, .. }| {
            assert_ne!(detail, "", "what breaks condition {name} is named");
            name.split(':').next().unwrap_or_default().to_owned()
        })
        .collect()
}

/// Interrupts a load under way: three warehouses take longer than the first report of progress.
fn a_load_is_interrupted(endpoint: &Endpoint) {
    let mut connection = open(endpoint);
    for table in schema::TABLES {
        connection.batch(&format!("DROP TABLE {}", table.name)).expect("it was loaded");
    }
    let interrupted = AtomicBool::new(false);
    let error = loader::load(3, SEED, endpoint, &interrupted, &mut |_, _| interrupted.store(true, Relaxed));
    assert_eq!(error.expect_err("it is interrupted").kind, ErrorKind::Timeout);
}

fn another_number_of_warehouses_is_refused(endpoint: &Endpoint) {
    let workload = workload::workload(&Tpcc { warehouses: 2, ..TPCC }, 1);
    let Err(error) = workload.user(0, open(endpoint)) else { panic!("there is one warehouse") };
    assert!(error.detail.starts_with("expected 2 warehouses, found 1"), "{error}");
}

/// Runs each transaction, and compares the number of statements between BEGIN and the end with the
/// specification.
fn the_server_counts_the_statements_of_the_specification(endpoint: &Endpoint) {
    let home = Home { warehouse: 1, district: 1 };
    let customer = |by| Customer { warehouse: 1, district: 1, by };
    let (by_number, by_name) =
        (customer(CustomerKey::Number(1)), customer(CustomerKey::LastName("BARBARBAR".to_owned())));
    let payment = |customer| Input::Payment(Payment { home, customer, amount: 100 });
    let cases = [
        (order(5, false), 6 + 4 * 5, TransactionEnd::Committed),
        (order(15, false), 6 + 4 * 15, TransactionEnd::Committed),
        // All lines but the last, of which only the item is looked for.
        (order(7, true), 6 + 4 * 6 + 1, TransactionEnd::RolledBack),
        (payment(by_number.clone()), 7, TransactionEnd::Committed),
        (payment(by_name.clone()), 8, TransactionEnd::Committed),
        (Input::OrderStatus(OrderStatus { customer: by_number }), 3, TransactionEnd::Committed),
        (Input::OrderStatus(OrderStatus { customer: by_name }), 4, TransactionEnd::Committed),
        (Input::Delivery(Delivery { warehouse: 1, carrier: 3 }), 7 * 10, TransactionEnd::Committed),
        (Input::StockLevel(StockLevel { home, threshold: 15 }), 2, TransactionEnd::Committed),
    ];
    let mut connection = open(endpoint);
    let prepared = workload::prepare(&mut connection).expect("the tables are there");
    for (input, statements, ended) in cases {
        let (before, mut observed) = (executed(&mut connection), Count::default());
        let found = workload::run(&input, &mut connection, &prepared, &mut observed, &Mix::default());
        assert_eq!(found, Ok(ended), "{input:?}");
        assert_eq!(executed(&mut connection) - before, statements, "{input:?}");
        assert_eq!(observed.0, statements + 2, "{input:?}");
    }
}

fn order(lines: i64, is_unused: bool) -> Input {
    let line = |item| Line { item, supply: 1, quantity: 3 };
    let mut lines: Vec<Line> = (1..=lines).map(line).collect();
    if is_unused {
        *lines.last_mut().expect("an order has lines") = line(UNUSED_ITEM);
    }
    Input::NewOrder(NewOrder { warehouse: 1, district: 1, customer: 1, lines })
}

/// How many prepared statements the server has run for a connection, as it says itself.
fn executed(connection: &mut Connection) -> u64 {
    let (query, column) = match connection.engine() {
        Engine::Postgresql => ("SELECT SUM(generic_plans + custom_plans) FROM pg_prepared_statements", 0),
        Engine::Mariadb | Engine::Mysql => ("SHOW SESSION STATUS LIKE 'Com_stmt_execute'", 1),
    };
    let counted = connection.query(query).expect("the server counts");
    counted.rows[0][column].as_deref().and_then(|count| count.parse().ok()).expect("a number")
}

/// Four terminals, side by side.
fn many_transactions_end_well(endpoint: &Endpoint, isolation: &str) {
    const EACH: u64 = 150;
    let workload = workload::workload(&TPCC, 5);
    let rolled_back = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for index in 0..4 {
            let (workload, rolled_back) = (&workload, &rolled_back);
            scope.spawn(move || {
                let mut user = workload.user(index, isolated(endpoint, isolation)).expect("one warehouse is there");
                let mut random = Random::of(5, &[u64::from(index)]);
                for _ in 0..EACH {
                    let step = user.draw_transaction(&mut random);
                    let ended = loop {
                        match user.run_transaction(&mut Count::default()) {
                            Ok(ended) => break ended,
                            Err(error) => assert!(RETRIED.contains(&error.kind), "{isolation}: {error}"),
                        }
                    };
                    assert_eq!(ended == TransactionEnd::RolledBack, step == 5);
                    rolled_back.fetch_add(u64::from(step == 5), Relaxed);
                }
            });
        }
    });
    let mix = workload.mix();
    assert!(mix.iter().all(|line| line.holds), "{mix:?}");
    assert_eq!(mix[..5].iter().map(|line| (line.found * line.n as f64).round() as u64).sum::<u64>(), 4 * EACH);
    assert!(rolled_back.into_inner() > 0, "one new order in a hundred is rolled back");
}

/// A connection with this isolation level.
fn isolated(endpoint: &Endpoint, isolation: &str) -> Connection {
    let mut connection = open(endpoint);
    let characteristics = match endpoint.engine {
        Engine::Postgresql => "SESSION CHARACTERISTICS AS TRANSACTION",
        Engine::Mariadb | Engine::Mysql => "SESSION TRANSACTION",
    };
    connection.batch(&format!("SET {characteristics} ISOLATION LEVEL {isolation}")).expect("every server knows it");
    connection
}

/// Each statement breaks what it breaks, and nothing else.
fn what_is_broken_on_purpose_is_found(connection: &mut Connection) {
    let cases: [(&str, &[&str]); 9] = [
        ("UPDATE district SET d_ytd = d_ytd + 1", &["1", "9"]),
        ("UPDATE warehouse SET w_ytd = w_ytd + 0.01", &["1", "8"]),
        ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3", &["2"]),
        ("DELETE FROM new_order WHERE no_d_id = 2 AND no_o_id = 2500", &["3", "5"]),
        ("DELETE FROM order_line WHERE ol_d_id = 2 AND ol_o_id = 2500 AND ol_number = 1", &["4", "6"]),
        ("UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 4 AND o_id = 1", &["5", "7"]),
        ("UPDATE history SET h_amount = h_amount + 1 WHERE h_c_id = 7 AND h_d_id = 1", &["8", "9", "10"]),
        ("UPDATE customer SET c_balance = c_balance - 1 WHERE c_d_id = 1 AND c_id = 7", &["10", "12"]),
        ("UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 7", &["12"]),
    ];
    for (statement, expected) in cases {
        connection.batch("BEGIN").expect("a transaction");
        connection.batch(statement).expect("the table is there");
        assert_eq!(broken(connection, false), expected, "{statement}");
        connection.batch("ROLLBACK").expect("the transaction ends");
    }
}

fn the_time_for_conditions_ends(connection: &mut Connection) {
    let none = conditions(connection, true, Duration::ZERO).expect("the server is there");
    assert!(none.iter().all(|condition| condition.holds.is_none()));
    // Less than any query over all lines takes; the connection stays usable.
    let some = conditions(connection, true, Duration::from_millis(5)).expect("the server is there");
    assert_eq!(some.last().and_then(|condition| condition.holds), None);
    connection.query("SELECT 1").expect("the connection is whole");
}
