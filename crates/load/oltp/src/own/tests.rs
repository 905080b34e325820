use super::*;
use parameter::Values;
use plimsoll_feed::SeededRandom;
use plimsoll_model::load::Share;
use plimsoll_model::sql::{Distribution, OwnStatement, Parameter};
use plimsoll_sql::Value;
use std::fs;

fn transaction(name: &str, weight: u32, statements: &[(&str, Vec<Parameter>)]) -> Transaction {
    let statements = statements.iter().map(|(sql, parameters)| OwnStatement {
        sql: (*sql).to_owned(),
        parameters: parameters.clone(),
        rows: None,
    });
    Transaction { name: name.to_owned(), weight, atomic: true, statements: statements.collect() }
}

fn number(low: i64, high: i64) -> Parameter {
    Parameter::Number { low, high, distribution: Distribution::Uniform }
}

fn feed(file: &std::path::Path, column: &str) -> Parameter {
    Parameter::Feed { file: file.to_owned(), column: column.to_owned() }
}

/// The values of the next transaction, as text.
fn next(transactions: &CompiledTransactions, values: &mut Values) -> Vec<String> {
    let sources = &transactions.transactions[0].sources;
    values.draw(sources, &transactions.feeds, &mut SeededRandom::new(5));
    (0..sources.len()).map(|at| values.get(at, sources, &transactions.feeds).to_string()).collect()
}

#[test]
fn a_feed_is_taken_row_by_row_by_all_users_together_and_then_again() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("people.csv");
    fs::write(&file, "id,name\n1,\"Ada, L.\"\n2,Bob\n").expect("a file");
    let parameters = vec![feed(&file, "name"), Parameter::Constant("x".to_owned()), feed(&file, "id")];
    let transactions =
        CompiledTransactions::new(&[transaction("t", 1, &[("INSERT INTO a VALUES (?, ?, ?)", parameters)])], None)
            .expect("compiled");
    let (mut one, mut other) = (Values::default(), Values::default());
    assert_eq!(next(&transactions, &mut one), ["Ada, L.", "x", "1"]);
    assert_eq!(next(&transactions, &mut other), ["Bob", "x", "2"]);
    assert_eq!(next(&transactions, &mut one), ["Ada, L.", "x", "1"]);
}

#[test]
fn generators_of_several_shares_take_every_row_once() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("numbers.csv");
    fs::write(&file, "id\n0\n1\n2\n3\n4\n").expect("a file");
    let mut taken = Vec::new();
    for index in 0..2 {
        let statement = ("INSERT INTO a VALUES (?)", vec![feed(&file, "id")]);
        let mut compiled = CompiledTransactions::new(&[transaction("t", 1, &[statement])], None).expect("compiled");
        compiled.feeds.iter_mut().for_each(|feed| feed.set_share(Share { index, of: 2 }));
        let mut values = Values::default();
        taken.extend((0..3 - index).flat_map(|_| next(&compiled, &mut values)));
    }
    assert_eq!(taken, ["0", "2", "4", "1", "3"]);
}

#[test]
fn the_same_value_can_be_used_in_a_later_statement() {
    let statements = [
        ("UPDATE a SET x = ? WHERE id = ?", vec![Parameter::Text(8), number(1, 1_000_000)]),
        ("SELECT x FROM a WHERE id = ?", vec![Parameter::Same(2)]),
    ];
    let transactions = CompiledTransactions::new(&[transaction("t", 1, &statements)], None).expect("compiled");
    let mut values = Values::default();
    let found = next(&transactions, &mut values);
    assert_eq!(found[1], found[2]);
    assert!(found[0].len() == 8 && found[0].chars().all(|letter| letter.is_ascii_alphanumeric()), "{found:?}");
    assert!(matches!(
        values.get(2, &transactions.transactions[0].sources, &transactions.feeds),
        Value::Int(1..=1_000_000)
    ));
}

#[test]
fn transactions_come_as_often_as_their_weights_say() {
    let empty = [("SELECT 1", Vec::new())];
    let transactions =
        [transaction("never", 0, &empty), transaction("one", 1, &empty), transaction("three", 3, &empty)];
    let transactions = CompiledTransactions::new(&transactions, None).expect("compiled");
    let mut random = SeededRandom::new(5);
    let mut counts = [0; 3];
    (0..10_000).for_each(|_| counts[transactions.draw(&mut random)] += 1);
    assert_eq!(counts[0], 0);
    assert!((2_300..2_700).contains(&counts[1]), "{counts:?}");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let directory = tempfile::tempdir().expect("a folder");
    let (file, empty) = (directory.path().join("a.csv"), directory.path().join("empty.csv"));
    fs::write(&file, "id\n1\n").expect("a file");
    fs::write(&empty, "id\n").expect("a file");
    let missing = directory.path().join("missing.csv");
    let select = "SELECT ?";
    for (sql, parameters, expected) in [
        (select, vec![], "transaction `t`, statement 1: expected a parameter for each of its 1 placeholders, found 0"),
        ("SELECT 1", vec![Parameter::Text(1)], "for each of its 0 placeholders, found 1"),
        (select, vec![number(2, 1)], "parameter 1: expected a range from the smaller number"),
        (select, vec![number(i64::MIN, i64::MAX)], "expected a range from the smaller number"),
        (select, vec![Parameter::Same(1)], "expected one of the 0 parameters before it, found number 1"),
        (select, vec![feed(&file, "name")], "expected a column `name`, found `id`"),
        (select, vec![feed(&empty, "id")], "expected rows below the names of the columns, found none"),
        (select, vec![feed(&missing, "id")], "missing.csv`: failed to read it"),
    ] {
        let fault = CompiledTransactions::new(&[transaction("t", 1, &[(sql, parameters)])], Some(Engine::Postgresql))
            .err()
            .expect("a fault");
        assert!(fault.contains(expected), "{fault}");
    }
    assert!(CompiledTransactions::new(&[transaction("t", 0, &[("SELECT 1", vec![])])], None).is_err());
}

#[test]
fn statements_are_named_by_number_and_begin() {
    assert_eq!(short_name(2, "SELECT\n  1"), "2: SELECT 1");
    let long = short_name(1, &format!("SELECT {}", "ü".repeat(60)));
    assert!(long.ends_with("ü…") && long.chars().count() == 3 + NAME_LENGTH + 1, "{long}");
}
