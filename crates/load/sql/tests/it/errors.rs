//! What goes wrong, and what it is called.

use crate::{LONG, cell, make, on_each, on_each_server, open, run};
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::Secret;
use plimsoll_sql::{CallLimits, Connection, SqlError, Value};
use plimsoll_testkit::database::{mariadb, postgresql};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn refused(endpoint: &Endpoint) -> SqlError {
    Connection::open(endpoint, CallLimits::timeout(LONG)).map(drop).unwrap_err()
}

#[test]
fn a_wrong_password_is_refused_and_not_told() {
    on_each_server(|server| {
        for password in [Some(Secret("wrong horse".to_owned())), None] {
            let error = refused(&Endpoint { password, ..server.tcp() });
            assert_eq!(error.kind, ErrorKind::Denied, "{error}");
            assert!(error.detail.contains("password"), "{error}");
            assert!(!error.detail.contains("horse"), "{error}");
        }
    });
}

/// PostgreSQL has four ways to know who connects by TCP: two are spoken by all other tests.
#[test]
fn old_ways_to_prove_a_password_are_spoken_and_tls_is_not() {
    let Some(server) = postgresql() else { return };
    let mut admin = open(&server.unix());
    let rules = cell(&mut admin, "SHOW hba_file");
    for sql in [
        "SET password_encryption = 'md5'",
        "CREATE ROLE clear LOGIN PASSWORD 'old horse'; CREATE ROLE hashed LOGIN PASSWORD 'old horse'",
        &format!(
            "COPY (VALUES ('local all clear password'), ('host all clear all password'), ('host all hashed all md5'), \
             ('hostssl all all all md5')) TO '{rules}'"
        ),
        "SELECT pg_reload_conf()",
    ] {
        admin.batch(sql).unwrap();
    }
    let of = |user: &str, endpoint: Endpoint| {
        let password = Some(Secret("old horse".to_owned()));
        Connection::open(&Endpoint { user: user.to_owned(), password, ..endpoint }, CallLimits::timeout(LONG)).map(drop)
    };
    let as_user = |user: &str| of(user, server.tcp());
    // Until the rules are in force: with a hash of the old kind, SCRAM cannot succeed.
    let begin = Instant::now();
    while as_user("hashed").is_err() {
        assert!(begin.elapsed() < LONG, "{:?}", as_user("hashed"));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(of("clear", server.unix()), Ok(()));
    let error = as_user("clear").unwrap_err();
    assert!(error.detail.contains("sends the password itself"), "{error}");
    let error = as_user("tester").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(error.detail.contains("TLS"), "{error}");
}

#[test]
fn a_missing_database_and_a_missing_user_are_named() {
    on_each_server(|server| {
        let error = refused(&Endpoint { database: "nowhere".to_owned(), ..server.unix() });
        assert_eq!(error.kind, ErrorKind::Sql, "{error}");
        assert!(error.detail.contains("nowhere") && error.detail.contains("create the database"), "{error}");
        let error = refused(&Endpoint { user: "stranger".to_owned(), ..server.unix() });
        assert_eq!(error.kind, ErrorKind::Denied, "{error}");
        assert!(error.detail.contains("stranger"), "{error}");
    });
}

#[test]
fn a_server_that_is_not_there_cannot_be_connected_to() {
    on_each_server(|server| {
        let nowhere = [Address::Unix("/nonexistent/socket".into()), Address::Tcp { host: "127.0.0.1".into(), port: 1 }];
        for address in nowhere {
            let error = refused(&Endpoint { address, ..server.tcp() });
            assert_eq!(error.kind, ErrorKind::Connect, "{error}");
        }
    });
}

#[test]
fn the_other_server_is_not_taken_for_the_right_one() {
    on_each_server(|server| {
        let mut endpoint = server.tcp();
        endpoint.engine = match endpoint.engine {
            Engine::Postgresql => Engine::Mariadb,
            Engine::Mariadb | Engine::Mysql => Engine::Postgresql,
        };
        let error = Connection::open(&endpoint, CallLimits::timeout(Duration::from_millis(500))).map(drop).unwrap_err();
        assert!(error.is_fatal(), "{error}");
    });
}

#[test]
fn a_statement_that_is_wrong_is_quoted_and_the_connection_goes_on() {
    on_each(|connection| {
        let error = connection.prepare("SELECT x FROM nothing_there").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Sql);
        assert!(error.detail.starts_with("cannot prepare `SELECT x FROM nothing_there`: "), "{error}");
        assert!(!error.code.is_empty());
        assert_eq!(connection.batch("SELEC 1").unwrap_err().kind, ErrorKind::Sql);
        assert_eq!(connection.query("SELECT 1 +").unwrap_err().kind, ErrorKind::Sql);
        assert_eq!(run(connection, "SELECT 1 WHERE 1 = ?", &[]).unwrap_err().kind, ErrorKind::Sql);
        assert_eq!(cell(connection, "SELECT 1"), "1");
    });
}

#[test]
fn after_an_error_a_transaction_is_rolled_back_and_another_begins() {
    on_each(|connection| {
        make(connection, "once", "id INT PRIMARY KEY, x INT NOT NULL");
        let insert = connection.prepare("INSERT INTO once VALUES (?, ?)").unwrap();
        connection.execute(insert, &[Value::Int(1), Value::Int(1)]).unwrap();
        for values in [[Value::Int(1), Value::Int(1)], [Value::Int(2), Value::Null]] {
            connection.batch("BEGIN").unwrap();
            let error = connection.execute(insert, &values).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
            connection.batch("ROLLBACK").unwrap();
        }
        connection.execute(insert, &[Value::Int(2), Value::Int(1)]).unwrap();
        assert_eq!(cell(connection, "SELECT COUNT(*) FROM once"), "2");
    });
}

#[test]
fn what_a_user_may_not_do_is_denied() {
    on_each_server(|server| {
        let mut connection = open(&server.unix());
        make(&mut connection, "guarded", "id INT");
        connection
            .batch(match connection.engine() {
                Engine::Postgresql => "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN",
                Engine::Mariadb | Engine::Mysql => {
                    "CREATE USER guest@localhost; GRANT CREATE ON test.* TO guest@localhost"
                }
            })
            .unwrap();
        let endpoint = Endpoint { user: "guest".to_owned(), password: None, ..server.unix() };
        let error = open(&endpoint).batch("DELETE FROM guarded").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    });
}

/// Two connections which each hold a row and want the other's.
#[test]
fn one_of_two_that_wait_for_one_another_is_ended() {
    on_each_server(|server| {
        make(&mut open(&server.unix()), "crossed", "id INT PRIMARY KEY, x INT");
        open(&server.unix()).batch("INSERT INTO crossed VALUES (1, 0), (2, 0)").unwrap();
        let barrier = std::sync::Barrier::new(2);
        let cross = |first: i64, second: i64| {
            let mut connection = open(&server.unix());
            let update = connection.prepare("UPDATE crossed SET x = x + 1 WHERE id = ?").unwrap();
            connection.batch("BEGIN").unwrap();
            connection.execute(update, &[Value::Int(first)]).unwrap();
            barrier.wait();
            let done = connection.execute(update, &[Value::Int(second)]).map(|rows| rows.affected());
            connection.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).unwrap();
            done
        };
        let ends = std::thread::scope(|scope| {
            let other = scope.spawn(|| cross(2, 1));
            [cross(1, 2), other.join().unwrap()]
        });
        let (well, badly): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
        assert_eq!((well.len(), badly.len()), (1, 1));
        assert_eq!(badly[0].clone().unwrap_err().kind, ErrorKind::Deadlock);
        assert_eq!(cell(&mut open(&server.unix()), "SELECT SUM(x) FROM crossed"), "2");
    });
}

#[test]
fn a_lock_that_is_not_to_be_had_is_told() {
    on_each_server(|server| {
        let (mut holder, mut waiter) = (open(&server.unix()), open(&server.unix()));
        make(&mut holder, "locked", "id INT PRIMARY KEY");
        // Each by itself: PostgreSQL runs a batch in one transaction.
        for sql in ["INSERT INTO locked VALUES (1)", "BEGIN", "DELETE FROM locked"] {
            holder.batch(sql).unwrap();
        }
        waiter
            .batch(match waiter.engine() {
                Engine::Postgresql => "SET lock_timeout = '100ms'",
                Engine::Mariadb | Engine::Mysql => "SET innodb_lock_wait_timeout = 1",
            })
            .unwrap();
        let error = run(&mut waiter, "DELETE FROM locked WHERE id = ?", &[Value::Int(1)]).map(drop).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LockTimeout, "{error}");
        holder.batch("COMMIT").unwrap();
        assert_eq!(cell(&mut waiter, "SELECT COUNT(*) FROM locked"), "0");
    });
}

#[test]
fn transactions_that_cannot_be_put_into_an_order_are_told() {
    on_each_server(|server| {
        let (mut first, mut second) = (open(&server.unix()), open(&server.unix()));
        if first.engine() == Engine::Postgresql {
            make(&mut first, "ordered", "id INT PRIMARY KEY, x INT");
            first.batch("INSERT INTO ordered VALUES (1, 0)").unwrap();
            first.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM ordered").unwrap();
            second.batch("UPDATE ordered SET x = 1").unwrap();
            let error = first.batch("UPDATE ordered SET x = 2").unwrap_err();
            assert_eq!(error.kind, ErrorKind::Serialization, "{error}");
            first.batch("ROLLBACK").unwrap();
        }
    });
}

fn sleep_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "SELECT pg_sleep(30)",
        Engine::Mariadb | Engine::Mysql => "SELECT SLEEP(30)",
    }
}

#[test]
fn a_call_that_takes_too_long_is_given_up_with_its_connection() {
    on_each_server(|server| {
        for endpoint in [server.unix(), server.tcp()] {
            let mut connection = Connection::open(&endpoint, CallLimits::timeout(Duration::from_secs(2))).unwrap();
            connection.batch("SELECT 1").unwrap();
            let sleep = connection.prepare(sleep_of(endpoint.engine)).unwrap();
            connection.set_deadline(Some(Instant::now() + Duration::from_millis(200)));
            let error = connection.execute(sleep, &[]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
            assert!(error.is_fatal());
            let next = connection.batch("SELECT 1").unwrap_err();
            assert_eq!(next.kind, ErrorKind::Closed, "{next}");
        }
    });
}

#[test]
fn nothing_is_waited_for_when_everything_is_over() {
    on_each_server(|server| {
        let over = Arc::new(AtomicBool::new(false));
        let limits = CallLimits { cancelled: Arc::clone(&over), ..CallLimits::timeout(LONG) };
        let mut connection = Connection::open(&server.unix(), limits).unwrap();
        let error = std::thread::scope(|scope| {
            let call = scope.spawn(move || connection.query(sleep_of(connection.engine())).unwrap_err());
            over.store(true, Ordering::Relaxed);
            call.join().unwrap()
        });
        assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    });
}

#[test]
fn a_server_that_dies_ends_the_call() {
    for server in [postgresql(), mariadb()].into_iter().flatten() {
        let mut server = server;
        let (mut idle, mut busy) = (open(&server.unix()), open(&server.tcp()));
        let error = std::thread::scope(|scope| {
            let call = scope.spawn(move || busy.query(sleep_of(busy.engine())).unwrap_err());
            wait_for_sleep(&mut idle);
            server.kill();
            call.join().unwrap()
        });
        assert_eq!(error.kind, ErrorKind::Closed, "{error}");
        assert_eq!(idle.batch("SELECT 1").unwrap_err().kind, ErrorKind::Closed);
        assert_eq!(refused(&server.unix()).kind, ErrorKind::Connect);
    }
}

/// Until the other connection's call is under way.
fn wait_for_sleep(connection: &mut Connection) {
    let sleeping = match connection.engine() {
        Engine::Postgresql => "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        Engine::Mariadb | Engine::Mysql => {
            "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'"
        }
    };
    let begin = Instant::now();
    while cell(connection, sleeping) != "1" {
        assert!(begin.elapsed() < LONG, "nobody sleeps");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_that_is_ended_by_others_is_closed() {
    on_each_server(|server| {
        let (mut killer, mut victim) = (open(&server.unix()), open(&server.unix()));
        match killer.engine() {
            Engine::Postgresql => {
                let id = cell(&mut victim, "SELECT pg_backend_pid()");
                killer.batch(&format!("SELECT pg_terminate_backend({id})")).unwrap();
            }
            Engine::Mariadb | Engine::Mysql => {
                let id = cell(&mut victim, "SELECT CONNECTION_ID()");
                killer.batch(&format!("KILL {id}")).unwrap();
            }
        }
        let error = victim.batch("SELECT 1").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Closed, "{error}");
    });
}

#[test]
fn a_server_without_room_for_more_connections_says_so() {
    for server in [postgresql(), mariadb()].into_iter().flatten() {
        let mut held = Vec::new();
        let error = loop {
            match Connection::open(&server.unix(), CallLimits::timeout(LONG)) {
                Ok(connection) => held.push(connection),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind, ErrorKind::Connect, "{error}");
        assert!(error.detail.contains("max_connections"), "{error}");
    }
}
