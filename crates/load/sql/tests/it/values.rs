//! Parameters and rows as the servers understand them.

use crate::{make, on_each, run};
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::{Connection, Decimal, Value};

const COLUMNS: &str = "small SMALLINT, whole INT, big BIGINT, price DECIMAL(16,4), fixed CHAR(8), free VARCHAR(30), \
                       long TEXT, moment TIMESTAMP NULL, day DATE";

#[test]
fn what_goes_in_comes_out() {
    on_each(|connection| {
        make(connection, "everything", COLUMNS.replace("long TEXT", "longer TEXT").as_str());
        let insert = connection.prepare("INSERT INTO everything VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)").unwrap();
        let select = connection.prepare("SELECT * FROM everything").unwrap();
        let price = Value::Decimal(Decimal { unscaled: -1_234_567_890_123, scale: 4 });
        let values = [
            Value::Int(-32768),
            Value::Int(i32::MAX.into()),
            Value::Int(i64::MIN),
            price,
            Value::Text("ab"),
            Value::Text("ü 'q' \\ \" \n"),
            Value::Text(""),
            Value::Text("2026-11-22 12:00:01"),
            Value::Text("2026-11-22"),
        ];
        connection.execute(insert, &values).unwrap();
        let rows = connection.execute(select, &[]).unwrap();
        assert_eq!(rows.int(0, 0), Ok(Some(-32768)));
        assert_eq!(rows.int(0, 1), Ok(Some(i32::MAX.into())));
        assert_eq!(rows.int(0, 2), Ok(Some(i64::MIN)));
        assert_eq!(rows.decimal(0, 3, 4), Ok(Some(-1_234_567_890_123)));
        let texts: Vec<_> = (4..9).map(|column| rows.text(0, column).unwrap().unwrap()).collect();
        assert_eq!(texts, ["ab", "ü 'q' \\ \" \n", "", "2026-11-22 12:00:01", "2026-11-22"]);
    });
}

#[test]
fn every_column_can_be_null() {
    on_each(|connection| {
        make(connection, "nothing", COLUMNS.replace("long TEXT", "longer TEXT").as_str());
        run(connection, "INSERT INTO nothing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", &[Value::Null; 9]).unwrap();
        let rows = run(connection, "SELECT * FROM nothing", &[]).unwrap();
        for column in 0..9 {
            assert_eq!((rows.int(0, column), rows.text(0, column)), (Ok(None), Ok(None)), "column {column}");
        }
    });
}

#[test]
fn numbers_fit_whatever_type_the_server_gives_them() {
    on_each(|connection| {
        make(connection, "sums", "small SMALLINT, whole INT, big BIGINT, price DECIMAL(12,2)");
        let insert = connection.prepare("INSERT INTO sums VALUES (?, ?, ?, ?)").unwrap();
        for number in 1..=3 {
            let price = Value::Decimal(Decimal { unscaled: -number * 1050, scale: 2 });
            let number = Value::Int(number);
            connection.execute(insert, &[number, number, number, price]).unwrap();
        }
        let sql = "SELECT SUM(small), SUM(whole), SUM(big), SUM(price), COUNT(*), MAX(price) FROM sums WHERE whole < ?";
        let select = connection.prepare(sql).unwrap();
        let rows = connection.execute(select, &[Value::Int(1000)]).unwrap();
        let sums: Vec<_> = (0..3).map(|column| rows.int(0, column).unwrap().unwrap()).collect();
        assert_eq!(sums, [6, 6, 6]);
        assert_eq!((rows.decimal(0, 3, 2), rows.decimal(0, 3, 4)), (Ok(Some(-6300)), Ok(Some(-630_000))));
        assert_eq!((rows.int(0, 3), rows.int(0, 4)), (Ok(Some(-63)), Ok(Some(3))));
        assert_eq!(rows.decimal(0, 5, 1), Ok(Some(-105)));
        assert_eq!(rows.decimal(0, 5, 0).unwrap_err().kind, ErrorKind::Sql);
        assert!(connection.execute(select, &[Value::Int(0)]).unwrap().int(0, 0).unwrap().is_none());
    });
}

#[test]
fn parameters_are_taken_for_what_the_column_is() {
    on_each(|connection| {
        make(connection, "converted", "whole INT, price DECIMAL(12,2), letters VARCHAR(20)");
        let values = [Value::Text("12"), Value::Int(7), Value::Int(-5)];
        run(connection, "INSERT INTO converted VALUES (?, ?, ?)", &values).unwrap();
        let rows = run(connection, "SELECT whole, price, letters FROM converted", &[]).unwrap();
        let found = (rows.int(0, 0), rows.decimal(0, 1, 2), rows.text(0, 2));
        assert_eq!(found, (Ok(Some(12)), Ok(Some(700)), Ok(Some("-5"))));
    });
}

#[test]
fn parameters_may_change_their_type_from_one_execution_to_the_next() {
    on_each(|connection| {
        make(connection, "retyped", "id INT PRIMARY KEY, letters VARCHAR(20)");
        let insert = connection.prepare("INSERT INTO retyped (id, letters) VALUES (?, ?)").unwrap();
        let insert_all = |connection: &mut Connection, values: &[[Value<'_>; 2]]| {
            for row in values {
                assert_eq!(connection.execute(insert, row).map(|rows| rows.affected()), Ok(1), "{row:?}");
            }
        };
        let (one, two) = ([Value::Int(1), Value::Null], [Value::Int(2), Value::Text("two")]);
        insert_all(connection, &[one, two, [Value::Text("3"), Value::Int(-3)]]);
        assert_eq!(connection.execute(insert, &two).unwrap_err().kind, ErrorKind::Constraint);
        insert_all(connection, &[[Value::Int(4), Value::Text("four")]]);
        // The server prepares it again by itself.
        connection.batch("ALTER TABLE retyped ADD COLUMN more INT").unwrap();
        insert_all(connection, &[[Value::Int(5), Value::Text("five")], [Value::Int(6), Value::Null]]);
        let found = connection.query("SELECT id, letters FROM retyped ORDER BY id").unwrap();
        let found: Vec<[Option<&str>; 2]> =
            found.rows.iter().map(|row| [row[0].as_deref(), row[1].as_deref()]).collect();
        let expected = [None, Some("two"), Some("-3"), Some("four"), Some("five"), None];
        let ids = ["1", "2", "3", "4", "5", "6"].map(Some);
        assert_eq!(found, std::array::from_fn::<_, 6, _>(|row| [ids[row], expected[row]]));
    });
}

#[test]
fn blanks_at_the_end_of_a_char_column_are_left_out() {
    on_each(|connection| {
        make(connection, "blanks", "fixed CHAR(10), free VARCHAR(10)");
        let blanks = Value::Text(" a b  ");
        run(connection, "INSERT INTO blanks VALUES (?, ?)", &[blanks, blanks]).unwrap();
        let rows = run(connection, "SELECT fixed, free FROM blanks", &[]).unwrap();
        assert_eq!((rows.text(0, 0), rows.text(0, 1)), (Ok(Some(" a b")), Ok(Some(" a b  "))));
    });
}

#[test]
fn a_megabyte_goes_both_ways() {
    on_each(|connection| {
        make(connection, "large", "id INT, body TEXT".replace("TEXT", wide(connection)).as_str());
        let body: String = (0..1 << 20).map(|number: u32| char::from(b'a' + (number % 23) as u8)).collect();
        let insert = connection.prepare("INSERT INTO large VALUES (?, ?)").unwrap();
        for id in 0..3 {
            connection.execute(insert, &[Value::Int(id), Value::Text(&body)]).unwrap();
        }
        let rows = run(connection, "SELECT body, id FROM large ORDER BY id", &[]).unwrap();
        for row in 0..3 {
            assert!(rows.text(row, 0).unwrap() == Some(body.as_str()), "row {row}");
            assert_eq!(rows.int(row, 1), Ok(Some(row as i64)));
        }
        let table = connection.query("SELECT body FROM large").unwrap();
        assert!(table.rows.len() == 3 && table.rows[2][0].as_deref() == Some(body.as_str()));
    });
}

pub(crate) fn wide(connection: &plimsoll_sql::Connection) -> &'static str {
    match connection.engine() {
        plimsoll_model::database::Engine::Postgresql => "TEXT",
        _ => "LONGTEXT",
    }
}

#[test]
fn placeholders_in_strings_and_comments_are_none() {
    on_each(|connection| {
        let sql = "SELECT '?', /* ? */ CAST(? AS CHAR(3)), 'it''s ?' -- ?\n";
        let rows = run(connection, sql, &[Value::Text("abc")]).unwrap();
        let found = (rows.text(0, 0), rows.text(0, 1), rows.text(0, 2));
        assert_eq!(found, (Ok(Some("?")), Ok(Some("abc")), Ok(Some("it's ?"))));
    });
}

#[test]
fn what_a_column_is_not_is_an_error_and_the_connection_goes_on() {
    on_each(|connection| {
        let rows = run(connection, "SELECT 'abc', 1", &[]).unwrap();
        assert_eq!(rows.int(0, 0).unwrap_err().kind, ErrorKind::Sql);
        assert_eq!(rows.text(0, 1).unwrap_err().kind, ErrorKind::Sql);
        assert_eq!(rows.int(0, 1), Ok(Some(1)));
    });
}
