//! How calls follow one another.

use crate::{LONG, cell, make, on_each, on_each_server, open, run};
use plimsoll_model::database::{Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::Secret;
use plimsoll_sql::{CallLimits, Connection, Value};

#[test]
fn a_prepared_statement_runs_as_often_as_it_is_called() {
    on_each(|connection| {
        make(connection, "often", "id INT PRIMARY KEY, x INT");
        let insert = connection.prepare("INSERT INTO often (id, x) VALUES (?, ?)").unwrap();
        let select = connection.prepare("SELECT x, id FROM often WHERE id >= ? ORDER BY id").unwrap();
        for id in 0..100 {
            let rows = connection.execute(insert, &[Value::Int(id), Value::Int(-id)]).unwrap();
            assert_eq!((rows.len(), rows.affected()), (0, 1));
        }
        for low in 0..=100 {
            let rows = connection.execute(select, &[Value::Int(low)]).unwrap();
            assert_eq!(rows.len() as i64, 100 - low);
            assert_eq!(rows.affected(), 0);
            for row in 0..rows.len() {
                let id = low + row as i64;
                assert_eq!((rows.int(row, 0), rows.int(row, 1)), (Ok(Some(-id)), Ok(Some(id))));
            }
        }
    });
}

#[test]
fn an_update_counts_the_rows_that_it_finds() {
    on_each(|connection| {
        make(connection, "found", "id INT PRIMARY KEY, x INT");
        connection.batch("INSERT INTO found VALUES (1, 7), (2, 7), (3, 8)").unwrap();
        let update = connection.prepare("UPDATE found SET x = 7 WHERE id <= ?").unwrap();
        assert_eq!(connection.execute(update, &[Value::Int(2)]).unwrap().affected(), 2);
        assert_eq!(connection.execute(update, &[Value::Int(0)]).unwrap().affected(), 0);
        assert_eq!(run(connection, "DELETE FROM found", &[]).unwrap().affected(), 3);
    });
}

#[test]
fn a_transaction_lasts_from_begin_to_its_end() {
    on_each(|connection| {
        make(connection, "kept", "id INT PRIMARY KEY");
        let insert = connection.prepare("INSERT INTO kept VALUES (?)").unwrap();
        for (id, end) in [(1, "COMMIT"), (2, "ROLLBACK")] {
            connection.batch("BEGIN").unwrap();
            connection.execute(insert, &[Value::Int(id)]).unwrap();
            connection.batch(end).unwrap();
        }
        let table = connection.query("SELECT id FROM kept").unwrap();
        assert_eq!(table.rows, [[Some("1".to_owned())]]);
    });
}

#[test]
fn a_batch_may_have_rows_that_nobody_wants() {
    on_each(|connection| {
        connection.batch("SELECT 1; SELECT 2, 3; SELECT 4 FROM (SELECT 1) AS a WHERE 1 = 0").unwrap();
        connection.batch("").or_else(|error| if error.code == "1065" { Ok(()) } else { Err(error) }).unwrap();
        assert_eq!(cell(connection, "SELECT 5"), "5");
    });
}

#[test]
fn a_query_gives_names_and_texts() {
    on_each(|connection| {
        let table = connection.query("SELECT 1 AS a, NULL AS b, 'ü' AS c UNION SELECT 2, 'x', '' ORDER BY 1").unwrap();
        assert_eq!(table.columns, ["a", "b", "c"]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(table.rows, [[text("1"), None, text("ü")], [text("2"), text("x"), text("")]]);
    });
}

#[test]
fn the_server_says_what_it_is() {
    on_each_server(|server| {
        let mut connection = open(&server.unix());
        let number = cell(&mut connection, "SELECT version()");
        let number = number.trim_start_matches("PostgreSQL ").split([' ', '-']).next().unwrap().to_owned();
        assert_eq!(connection.version(), format!("{} {number}", connection.engine()));
    });
}

#[test]
fn bytes_are_counted_both_ways() {
    on_each(|connection| {
        let before = connection.bytes();
        let text = "x".repeat(1000);
        run(connection, "SELECT CONCAT(CAST(? AS CHAR(1000)), 'y')", &[Value::Text(&text)]).unwrap();
        let after = connection.bytes();
        assert!(after.0 - before.0 > 1000 && after.1 - before.1 > 1000, "from {before:?} to {after:?}");
    });
}

#[test]
fn what_the_server_says_unasked_does_no_harm() {
    on_each_server(|server| {
        let mut connection = open(&server.unix());
        if connection.engine() == Engine::Postgresql {
            connection.batch("SET client_min_messages = 'debug5'; LISTEN here").unwrap();
            connection.batch("DO 'BEGIN RAISE NOTICE ''hear''; END'; NOTIFY here, 'hear'").unwrap();
            let select = connection.prepare("SELECT 1 + ?").unwrap();
            connection.batch("SET application_name = 'another'; NOTIFY here, 'hear'").unwrap();
            assert_eq!(connection.execute(select, &[Value::Int(1)]).unwrap().int(0, 0), Ok(Some(2)));
            connection.batch("RESET client_min_messages").unwrap();
        }
    });
}

/// MySQL keeps the proof of who was there before, and wants the password itself of all others.
#[test]
fn a_password_that_the_server_has_not_seen_yet_is_proved_by_every_transport() {
    on_each_server(|server| {
        for endpoint in [server.tcp(), server.unix()] {
            let mut before = open(&server.unix());
            if before.engine() != Engine::Postgresql {
                before.batch("FLUSH PRIVILEGES").unwrap();
            }
            assert_eq!(cell(&mut open(&endpoint), "SELECT 1"), "1");
            let wrong = Endpoint { password: Some(Secret("wrong".to_owned())), ..server.tcp() };
            let error = Connection::open(&wrong, CallLimits::timeout(LONG)).map(drop).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Denied, "{error}");
        }
    });
}

#[test]
fn what_a_procedure_gives_is_its_first_result() {
    on_each_server(|server| {
        let mut connection = open(&server.unix());
        if connection.engine() != Engine::Postgresql {
            connection.batch("DROP PROCEDURE IF EXISTS two").unwrap();
            connection.batch("CREATE PROCEDURE two() BEGIN SELECT 1, 2; SELECT 'x'; END").unwrap();
            let call = connection.prepare("CALL two()").unwrap();
            for _ in 0..2 {
                let rows = connection.execute(call, &[]).unwrap();
                assert_eq!((rows.len(), rows.int(0, 1)), (1, Ok(Some(2))));
            }
        }
    });
}

#[test]
fn columns_may_change_under_a_prepared_statement() {
    on_each(|connection| {
        make(connection, "changing", "id INT");
        connection.batch("INSERT INTO changing VALUES (1)").unwrap();
        let select = connection.prepare("SELECT * FROM changing").unwrap();
        assert_eq!(connection.execute(select, &[]).unwrap().int(0, 0), Ok(Some(1)));
        connection.batch("ALTER TABLE changing ADD COLUMN t VARCHAR(5) DEFAULT 'new'").unwrap();
        let again = connection.execute(select, &[]).map(|rows| rows.text(0, 1).map(|text| text.map(str::to_owned)));
        match connection.engine() {
            Engine::Mariadb | Engine::Mysql => assert_eq!(again, Ok(Ok(Some("new".to_owned())))),
            Engine::Postgresql => assert_eq!(again.unwrap_err().code, "0A000"),
        }
        assert_eq!(cell(connection, "SELECT 1"), "1");
    });
}

#[test]
fn nothing_that_is_printed_has_the_password() {
    on_each_server(|server| {
        let endpoint = server.tcp();
        let password = endpoint.password.clone().unwrap().0;
        let connection = Connection::open(&endpoint, CallLimits::timeout(LONG)).unwrap();
        let printed = format!("{connection:?}");
        assert!(!printed.contains(&password), "{printed}");
        assert!(printed.contains(&connection.version()), "{printed}");
    });
}
