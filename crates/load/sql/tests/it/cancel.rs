//! Ending what a server does for a caller who has given up.

use crate::{LONG, cell, on_each_server, open};
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_model::record::ErrorKind;
use std::time::{Duration, Instant};

/// Sleeps ten times as long as anybody waits for an answer, and where the server tells who does.
fn sleep(engine: Engine) -> (&'static str, &'static str) {
    match engine {
        Engine::Postgresql => {
            ("SELECT pg_sleep(600)", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        }
        Engine::Mariadb | Engine::Mysql => {
            ("SELECT SLEEP(600)", "SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'")
        }
    }
}

#[test]
fn a_statement_that_runs_is_ended_and_its_session_goes_on() {
    on_each_server(|server| {
        for endpoint in [server.unix(), server.tcp()] {
            let (long, sleepers) = sleep(endpoint.engine);
            let (mut watching, mut connection) = (open(&endpoint), open(&endpoint));
            let session = connection.session().expect("servers name their sessions");
            let sleeping = std::thread::spawn(move || {
                let ended = connection.batch(long).map_err(|error| error.kind);
                (ended, connection)
            });
            let begin = Instant::now();
            while cell(&mut watching, sleepers) == "0" {
                assert!(begin.elapsed() < LONG, "nobody sleeps");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(session.cancel(&endpoint, LONG), Ok(()));
            let (ended, mut connection) = sleeping.join().unwrap();
            assert_ne!(ended, Err(ErrorKind::Timeout), "it was ended before anybody gave up");
            assert_eq!(cell(&mut connection, "SELECT 5"), "5");
        }
    });
}

#[test]
fn nothing_happens_where_nothing_runs() {
    on_each_server(|server| {
        let mut connection = open(&server.unix());
        let session = connection.session().expect("servers name their sessions");
        assert_eq!(session.cancel(&server.unix(), LONG), Ok(()));
        // MariaDB ends the next statement where it was told while none ran.
        let _ = connection.batch("SELECT 1");
        assert_eq!(cell(&mut connection, "SELECT 5"), "5");
        drop(connection);
        assert_eq!(session.cancel(&server.unix(), LONG), Ok(()));
    });
}

#[test]
fn a_server_that_cannot_be_asked_is_told() {
    on_each_server(|server| {
        let session = open(&server.unix()).session().expect("servers name their sessions");
        let nowhere = Endpoint { address: Address::Unix("/no/such/socket".into()), ..server.unix() };
        let error = session.cancel(&nowhere, LONG).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect, "{error}");
        assert!(error.detail.starts_with("cannot have the server end a statement"), "{error}");
    });
}
