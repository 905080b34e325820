//! Many rows at once.

use crate::{cell, make, on_each};
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Decimal, Value};

#[test]
fn a_hundred_thousand_rows_arrive_as_they_are() {
    on_each(|connection| {
        make(connection, "many", "id INT PRIMARY KEY, price DECIMAL(12,2), name VARCHAR(40), note TEXT");
        let mut bulk = connection.bulk("many", &["id", "name", "price"]).unwrap();
        for id in 0..100_000 {
            let name = format!("it's\t{id}\\n\n'");
            let name = if id % 10 == 0 { Value::Null } else { Value::Text(&name) };
            bulk.row(&[Value::Int(id), name, Value::Decimal(Decimal { unscaled: -id, scale: 2 })]).unwrap();
        }
        assert_eq!(bulk.finish(), Ok(100_000));
        assert_eq!(cell(connection, "SELECT COUNT(*) FROM many"), "100000");
        assert_eq!(cell(connection, "SELECT SUM(price) FROM many"), "-49999500.00");
        assert_eq!(cell(connection, "SELECT COUNT(*) FROM many WHERE name IS NULL AND note IS NULL"), "10000");
        assert_eq!(cell(connection, "SELECT name FROM many WHERE id = 99999"), "it's\t99999\\n\n'");
    });
}

#[test]
fn no_row_is_a_load_too() {
    on_each(|connection| {
        make(connection, "few", "id INT");
        assert_eq!(connection.bulk("few", &["id"]).unwrap().finish(), Ok(0));
        let mut bulk = connection.bulk("few", &["id"]).unwrap();
        bulk.row(&[Value::Int(1)]).unwrap();
        assert_eq!(bulk.finish(), Ok(1));
        assert_eq!(cell(connection, "SELECT COUNT(*) FROM few"), "1");
    });
}

#[test]
fn a_row_larger_than_a_piece_arrives() {
    on_each(|connection| {
        make(connection, "wide", "id INT, body TEXT".replace("TEXT", crate::values::wide(connection)).as_str());
        let body = "é".repeat(1 << 20);
        let mut bulk = connection.bulk("wide", &["id", "body"]).unwrap();
        for id in 0..3 {
            bulk.row(&[Value::Int(id), Value::Text(if id == 1 { &body } else { "small" })]).unwrap();
        }
        assert_eq!(bulk.finish(), Ok(3));
        assert_eq!(cell(connection, "SELECT SUM(CHAR_LENGTH(body)) FROM wide"), (10 + (1 << 20)).to_string());
    });
}

#[test]
fn a_fault_in_the_middle_ends_the_load_and_not_the_connection() {
    on_each(|connection| {
        make(connection, "faulty", "id INT PRIMARY KEY, name VARCHAR(20)");
        let mut bulk = connection.bulk("faulty", &["id", "name"]).unwrap();
        let done = (0..100_000).try_for_each(|id| bulk.row(&[Value::Int(id % 70_000), Value::Text("a name")]));
        let error = done.and_then(|()| bulk.finish().map(drop)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
        assert!(error.detail.starts_with("cannot load rows into `faulty`: "), "{error}");
        assert_eq!(cell(connection, "SELECT 1"), "1");
        assert_eq!(connection.bulk("missing", &["id"]).map(drop).err().map(|error| error.kind), missing(connection));
        assert_eq!(cell(connection, "SELECT 2"), "2");
    });
}

/// MariaDB is told of the table with the first rows.
fn missing(connection: &plimsoll_sql::Connection) -> Option<ErrorKind> {
    (connection.engine() == plimsoll_model::database::Engine::Postgresql).then_some(ErrorKind::Sql)
}

#[test]
fn a_load_that_is_given_up_leaves_the_connection_usable() {
    on_each(|connection| {
        make(connection, "given_up", "id INT");
        connection.batch("BEGIN").unwrap();
        let mut bulk = connection.bulk("given_up", &["id"]).unwrap();
        for id in 0..100 {
            bulk.row(&[Value::Int(id)]).unwrap();
        }
        assert_eq!(bulk.row(&[]).unwrap_err().kind, ErrorKind::Sql);
        drop(bulk);
        connection.batch("ROLLBACK").unwrap();
        assert_eq!(cell(connection, "SELECT COUNT(*) FROM given_up"), "0");
    });
}
