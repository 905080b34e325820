//! A database from its making to the end of the run, trial by trial.

use crate::common::{
    NEVER, PATIENCE, Place, accounts, connect, files_with, launcher, processes_with, ready_events, server, settings,
    start,
};
use plimsoll_database::{
    CounterSampler, CounterSeries, Databases, PreparedDatabase, check, check_expected, evaluate_conditions,
    evaluate_expected, facts,
};
use plimsoll_model::database::{Database, Dataset, Endpoint, Engine, ExpectedRow, External, Origin, Snapshot};
use plimsoll_model::event::Event;
use plimsoll_model::sql::Transport;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::CommandLine;
use plimsoll_sql::Connection;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn postgresql_is_loaded_once_and_each_trial_finds_what_was_loaded() {
    live(
        Engine::Postgresql,
        &[("shared_buffers", "64MB"), ("synchronous_commit", "off"), ("checkpoint-timeout", "10min")],
        ("synchronous_commit", "off", "lose the last committed transactions"),
    );
}

#[test]
fn mariadb_is_loaded_once_and_each_trial_finds_what_was_loaded() {
    live(
        Engine::Mariadb,
        &[("innodb_buffer_pool_size", "64M"), ("innodb-doublewrite", "0"), ("max_connections", "50")],
        ("innodb_doublewrite", "OFF", "half old, half new"),
    );
}

#[test]
fn mysql_is_loaded_once_and_each_trial_finds_what_was_loaded() {
    live(
        Engine::Mysql,
        &[("innodb_buffer_pool_size", "64M"), ("innodb-doublewrite", "0"), ("max_connections", "50")],
        ("innodb_doublewrite", "OFF", "half old, half new"),
    );
}

fn live(engine: Engine, asked: &[(&str, &str)], risky: (&str, &str, &str)) {
    let place = Place::new();
    let Some(mut database) = place.database(engine, "") else { return };
    database.settings = settings(asked);
    let mut databases = place.databases();
    let mut events = Vec::new();
    a_trial_changes_the_data(&place, &mut databases, &database, risky, &mut events);
    a_trial_with_a_killed_server_fails(&place, &mut databases, &database, &mut events);
    the_next_finds_what_was_loaded(&place, &mut databases, &database, &mut events);
    assert_eq!(ready_events(&events), [false], "its data is made once: {events:?}");
    a_setting_that_is_unknown_is_named(&place, &mut databases, &database);
    a_setting_that_is_not_in_force_is_named(&place, &mut databases, &database);
    a_server_that_runs_already_is_left_alone(&place, &mut databases, &database);

    let run = databases.scratch_folder().to_owned();
    let passwords = databases.secrets();
    assert!(!passwords.is_empty());
    for password in &passwords {
        assert_eq!(files_with(&place.path("logs"), &password.0), Vec::<PathBuf>::new());
        assert_eq!(processes_with(&password.0), Vec::<String>::new());
    }
    assert!(run.is_dir());
    drop(databases);
    assert!(!run.exists());
    assert_eq!(processes_with(&run.display().to_string()), Vec::<String>::new());
}

fn a_trial_changes_the_data(
    place: &Place,
    databases: &mut Databases,
    database: &Database,
    risky: (&str, &str, &str),
    events: &mut Vec<Event>,
) {
    let prepared = databases.prepare(database, &NEVER, &mut |event| events.push(event.clone())).unwrap();
    assert_eq!(prepared.data_origin, "initialised and loaded by the run");
    assert!(["copied", "copied (reflink)"].contains(&prepared.restored.how.as_str()), "{:?}", prepared.restored);
    let running = start(&prepared, place).unwrap();
    assert_eq!(accounts(&prepared), [(1, 10), (2, 20), (3, 30)]);
    for password in databases.secrets() {
        assert_eq!(processes_with(&password.0), Vec::<String>::new());
    }

    let sampler = CounterSampler::start(database, &prepared).unwrap();
    let mut connection = connect(&prepared);
    for amount in 0..50 {
        connection.batch(&format!("UPDATE account SET amount = {amount} WHERE id = 1")).unwrap();
    }
    connection.batch("DELETE FROM account WHERE id = 3").unwrap();
    std::thread::sleep(Duration::from_millis(1500)); // PostgreSQL's sessions tell what they did once a second
    connection.batch("DELETE FROM account WHERE id = 4").unwrap();
    std::thread::sleep(Duration::from_millis(1200)); // to the next whole second
    let CounterSeries { samples, session_lost } = sampler.stop(Instant::now(), Duration::ZERO);
    assert!(!session_lost);
    let sum = |counter: &str| -> f64 {
        let of = samples.iter().filter(|sample| sample.counter == counter && sample.database == "db");
        of.map(|sample| sample.value).sum()
    };
    assert!(sum("rows_written") > 10.0, "{samples:?}");
    assert!(sum("log_bytes") > 1000.0, "{samples:?}");
    // Nobody has said COMMIT, and MariaDB and MySQL count nothing else.
    let counts_commits = samples.iter().any(|sample| sample.counter == "commits");
    assert_eq!(counts_commits, database.engine == Engine::Postgresql, "{samples:?}");
    assert!(samples.iter().any(|sample| sample.counter == "lock_waits" && sample.value == 0.0), "{samples:?}");
    assert!(samples.iter().any(|sample| sample.counter == "connections" && sample.value == 1.0), "{samples:?}");
    assert!(samples.iter().all(|sample| (-60.0..1.0).contains(&sample.at)), "{samples:?}");

    a_session_that_the_server_ends_is_noticed(database, &prepared, &mut connection);

    let facts = facts(database, &prepared, Transport::Tcp).unwrap();
    assert!(facts.version.starts_with(&database.engine.to_string()), "{facts:?}");
    assert!(facts.transport.starts_with("TCP to 127.0.0.1:"), "{facts:?}");
    assert!(["READ COMMITTED", "REPEATABLE READ"].contains(&facts.isolation.as_str()), "{facts:?}");
    let asked: Vec<&str> = facts.settings.iter().filter_map(|setting| setting.asked.as_deref()).collect();
    assert_eq!(asked, database.settings.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>());
    let (name, value, lost) = risky;
    let setting = facts.settings.iter().find(|setting| setting.name == name).unwrap();
    assert_eq!(setting.in_force, value);
    assert!(setting.risk.as_ref().unwrap().contains(lost), "{setting:?}");
    assert_eq!(evaluate_conditions(database, &prepared, PATIENCE, &NEVER).unwrap(), []);

    let stopped = running.stop().unwrap();
    assert!(stopped.exit.unwrap().is_success() && stopped.killed == 0, "{stopped:?}");
}

fn a_session_that_the_server_ends_is_noticed(
    database: &Database,
    prepared: &PreparedDatabase,
    connection: &mut Connection,
) {
    let sampler = CounterSampler::start(database, prepared).unwrap();
    let (others, end) = match database.engine {
        Engine::Postgresql => (
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
            "SELECT pg_terminate_backend",
        ),
        Engine::Mariadb | Engine::Mysql => {
            ("SELECT id FROM information_schema.processlist WHERE user = 'plimsoll' AND id <> connection_id()", "KILL ")
        }
    };
    for other in connection.query(others).unwrap().rows.into_iter().flatten().flatten() {
        connection.batch(&format!("{end}({other})")).unwrap();
    }
    assert!(sampler.stop(Instant::now(), Duration::ZERO).session_lost);
}

fn a_trial_with_a_killed_server_fails(
    place: &Place,
    databases: &mut Databases,
    database: &Database,
    events: &mut Vec<Event>,
) {
    let prepared = databases.prepare(database, &NEVER, &mut |event| events.push(event.clone())).unwrap();
    let running = start(&prepared, place).unwrap();
    let first = running.processes().into_iter().min().unwrap();
    let data = std::fs::read_link(format!("/proc/{first}/cwd")).unwrap();
    let shared = std::fs::read_to_string(data.join("plimsoll-shared-memory")).unwrap_or_default();
    let shared: Vec<PathBuf> = shared.lines().map(|name| Path::new("/dev/shm").join(name)).collect();
    kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
    let begin = Instant::now();
    while running.check().is_ok() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = prepared.wait_ready(Some(&running), Path::new("/dev/null"), &NEVER).unwrap_err().to_string();
    assert!(said.contains("ended by itself") && said.contains("signal 9"), "{said}");
    assert!(!said.contains("--datadir") && !said.contains(" -D "), "the command is not the study's: {said}");
    if database.engine == Engine::Postgresql {
        assert_eq!((segments_of(first), shared.iter().any(|file| file.exists())), (1, true), "{shared:?}");
    }
    drop((running, prepared));
    assert_eq!(segments_of(first), 0, "what a killed server left goes with its data");
    assert!(shared.iter().all(|file| !file.exists()), "{shared:?}");
}

/// Segments of System V's memory that a process made.
fn segments_of(process: i32) -> usize {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    segments.lines().filter(|line| line.split_whitespace().nth(4) == Some(&process.to_string())).count()
}

fn the_next_finds_what_was_loaded(
    place: &Place,
    databases: &mut Databases,
    database: &Database,
    events: &mut Vec<Event>,
) {
    let prepared = databases.prepare(database, &NEVER, &mut |event| events.push(event.clone())).unwrap();
    let running = start(&prepared, place).unwrap();
    assert_eq!(accounts(&prepared), [(1, 10), (2, 20), (3, 30)]);
    let home = prepared.system.as_ref().unwrap().dir.clone();
    let copies = || {
        let names = crate::common::names_in(&home);
        names.into_iter().filter(|name| name.starts_with("trial-")).count()
    };
    assert_eq!(copies(), 1);
    running.stop().unwrap();
    drop(prepared);
    assert_eq!(copies(), 0);
}

fn a_setting_that_is_unknown_is_named(place: &Place, databases: &mut Databases, database: &Database) {
    let database = Database { settings: settings(&[("no_such_setting", "1")]), ..database.clone() };
    let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
    let said = start(&prepared, place).unwrap_err().to_string();
    let expected = match database.engine {
        Engine::Postgresql => "FATAL:  unrecognized configuration parameter \"no_such_setting\"",
        Engine::Mariadb | Engine::Mysql => "unknown variable 'no-such-setting=1'",
    };
    assert!(said.contains("does not start with the setting `no_such_setting` = `1`: "), "{said}");
    assert!(said.contains(expected), "{said}");
}

fn a_setting_that_is_not_in_force_is_named(place: &Place, databases: &mut Databases, database: &Database) {
    let (asked, expected) = match database.engine {
        // A smaller one is taken.
        Engine::Mariadb | Engine::Mysql => (("table_definition_cache", "100"), "is to be `100`, and `400` is in force"),
        Engine::Postgresql => (("work_mem", "4MB"), "is to be `4MB`, and `5MB` is in force"),
    };
    let mut database = database.clone();
    database.settings = settings(&[asked]);
    let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
    if database.engine == Engine::Postgresql {
        let plain = Database { settings: Vec::new(), ..database.clone() };
        let before = databases.prepare(&plain, &NEVER, &mut |_| ()).unwrap();
        drop(before);
        let spec = prepared.system.as_ref().unwrap();
        let running = launcher().start(spec, &place.path("logs/db.log")).unwrap();
        prepared.wait_ready(Some(&running), Path::new("/dev/null"), &NEVER).unwrap();
        connect(&prepared).batch("ALTER DATABASE plimsoll SET work_mem = '5MB'").unwrap();
        let said = prepared.wait_ready(Some(&running), Path::new("/dev/null"), &NEVER).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
        return;
    }
    let said = start(&prepared, place).unwrap_err().to_string();
    assert!(said.contains("the setting `table_definition_cache`") && said.contains(expected), "{said}");
    // A setting that this version knows only to say that it does nothing.
    let ignored = Database { settings: settings(&[("innodb_thread_concurrency", "8")]), ..database };
    let prepared = databases.prepare(&ignored, &NEVER, &mut |_| ()).unwrap();
    if let Err(error) = start(&prepared, place) {
        let said = error.to_string();
        assert!(said.contains("the setting `innodb_thread_concurrency` is not known to MariaDB"), "{said}");
        assert!(said.contains("does nothing"), "{said}");
    }
}

fn a_server_that_runs_already_is_left_alone(place: &Place, databases: &mut Databases, database: &Database) {
    let plain = Database { settings: Vec::new(), ..database.clone() };
    let own = databases.prepare(&plain, &NEVER, &mut |_| ()).unwrap();
    let running = start(&own, place).unwrap();
    let mut external = External {
        endpoint: own.endpoint(Transport::Tcp),
        password_variable: None,
        may_write: false,
        restore: Some(CommandLine(["sh", "-c", "echo restored > restored"].map(str::to_owned).to_vec())),
        dir: place.folder.path().to_owned(),
    };
    let of = |external: &External, asked: &[(&str, &str)]| Database {
        origin: Origin::External(external.clone()),
        settings: settings(asked),
        dataset: Dataset::Empty,
        warm: false,
        ..database.clone()
    };
    let fitting =
        of(&external, &[("max_connections", if database.engine == Engine::Postgresql { "100" } else { "151" })]);
    let prepared = databases.prepare(&fitting, &NEVER, &mut |_| panic!("nothing is made")).unwrap();
    assert!(prepared.system.is_none());
    assert_eq!((prepared.data_origin.as_str(), prepared.restored.how.contains("echo restored")), ("external", true));
    assert!(place.path("restored").exists());
    prepared.wait_ready(None, Path::new("/dev/null"), &NEVER).unwrap();
    assert_eq!(facts(&fitting, &prepared, Transport::Unix).unwrap().restored, prepared.restored.how);
    assert_eq!(accounts(&prepared), [(1, 10), (2, 20), (3, 30)]);

    let other = of(&external, &[("max_connections", "7")]);
    let prepared = databases.prepare(&other, &NEVER, &mut |_| ()).unwrap();
    let said = prepared.wait_ready(None, Path::new("/dev/null"), &NEVER).unwrap_err().to_string();
    assert!(said.contains("the setting `max_connections` is to be `7`"), "{said}");

    external.restore = Some(CommandLine(["sh", "-c", "echo no dump; exit 3"].map(str::to_owned).to_vec()));
    let said = databases.prepare(&of(&external, &[]), &NEVER, &mut |_| ()).unwrap_err().to_string();
    assert!(
        said.contains("the restore command `sh -c echo no dump; exit 3`") && said.contains("exit code 3"),
        "{said}"
    );

    external.password_variable = Some("PLIMSOLL_NO_SUCH_VARIABLE".to_owned());
    let said = check(&of(&external, &[])).join("; ");
    assert!(said.contains("PLIMSOLL_NO_SUCH_VARIABLE of the environment, which is not set"), "{said}");
    running.stop().unwrap();
}

#[test]
fn a_template_is_copied_by_the_server_itself() {
    let place = Place::new();
    let Some(mut database) = place.database(Engine::Postgresql, "") else { return };
    server(&mut database).snapshot = Snapshot::Template;
    let mut databases = place.databases();
    for _trial in 0..2 {
        let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
        let running = start(&prepared, &place).unwrap();
        assert_eq!(prepared.endpoint(Transport::Unix).database, "run");
        assert_eq!(accounts(&prepared), [(1, 10), (2, 20), (3, 30)]);
        connect(&prepared).batch("DELETE FROM account").unwrap();
        let facts = facts(&database, &prepared, Transport::Unix).unwrap();
        assert_eq!((facts.restored.as_str(), facts.transport.as_str()), ("template database", "UNIX socket"));
        assert!(facts.restore_seconds > 0.0);
        running.stop().unwrap();
    }
}

#[test]
fn nobody_enters_mariadb_without_a_password() {
    nobody_enters_without_a_password(Engine::Mariadb, &["PUBLIC", "mariadb.sys", "plimsoll", "service"]);
}

#[test]
fn nobody_enters_mysql_without_a_password() {
    nobody_enters_without_a_password(
        Engine::Mysql,
        &["mysql.infoschema", "mysql.session", "mysql.sys", "plimsoll", "service"],
    );
}

fn nobody_enters_without_a_password(engine: Engine, may_stay: &[&str]) {
    let place = Place::new();
    let Some(database) = place.database(engine, "") else { return };
    let mut databases = place.databases();
    let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
    let running = start(&prepared, &place).unwrap();
    let users = connect(&prepared).query("SELECT DISTINCT user FROM mysql.user ORDER BY user").unwrap();
    let users: Vec<String> = users.rows.into_iter().flatten().flatten().collect();
    assert!(users.iter().all(|user| may_stay.contains(&user.as_str())), "{users:?}");
    let mut endpoint = prepared.endpoint(Transport::Unix);
    for user in ["root", "nobody", "service", ""] {
        (endpoint.user, endpoint.password) = (user.to_owned(), None);
        let refused = Connection::open(&endpoint, plimsoll_sql::CallLimits::timeout(PATIENCE));
        assert!(refused.is_err(), "`{user}` enters");
    }
    running.stop().unwrap();
}

#[test]
fn systems_log_in_to_postgresql_with_the_password_of_the_start() {
    systems_log_in(Engine::Postgresql, "GRANT SELECT ON account TO reader;\n");
}

#[test]
fn systems_log_in_to_mariadb_with_the_password_of_the_start() {
    systems_log_in(Engine::Mariadb, "GRANT SELECT ON account TO reader;\n");
}

#[test]
fn systems_log_in_to_mysql_with_the_password_of_the_start() {
    systems_log_in(Engine::Mysql, "GRANT SELECT ON account TO reader;\n");
}

fn systems_log_in(engine: Engine, grant: &str) {
    let place = Place::new();
    let Some(mut database) = place.database(engine, grant) else { return };
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let mut databases = place.databases();
    for (password, other) in
        [("of-the-first-start", "of-the-second-start"), ("of-the-second-start", "of-the-first-start")]
    {
        let server = server(&mut database);
        server.databases = names(["shop", "audit"]);
        server.roles = names(["clerk", "reader"]);
        server.password = Some(Secret(password.to_owned()));
        let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
        let running = start(&prepared, &place).unwrap();
        let log_in = |user: &str, password: &str, database: &str| {
            let endpoint = Endpoint {
                user: user.to_owned(),
                password: Some(Secret(password.to_owned())),
                database: database.to_owned(),
                ..prepared.endpoint(Transport::Tcp)
            };
            Connection::open(&endpoint, plimsoll_sql::CallLimits::timeout(PATIENCE))
        };
        assert_eq!(accounts(&prepared).len(), 3, "the first database is loaded");
        log_in("clerk", password, "audit").unwrap().batch("CREATE TABLE kept (id INT)").unwrap();
        log_in("clerk", password, "shop").unwrap().batch("DELETE FROM account WHERE id = 1").unwrap();
        let mut reader = log_in("reader", password, "shop").unwrap();
        assert_eq!(reader.query("SELECT id FROM account").unwrap().rows.len(), 2);
        assert!(reader.batch("DELETE FROM account").is_err(), "the reader writes");
        assert!(log_in("clerk", other, "shop").is_err(), "the password of another start lets in");
        what_is_expected_is_asked_without_writing(&mut database.clone(), &prepared);
        running.stop().unwrap();
    }
}

#[test]
fn every_database_of_a_server_is_warmed_counted_and_looked_at() {
    let place = Place::new();
    let Some(mut database) = place.database(Engine::Postgresql, "") else { return };
    server(&mut database).databases = ["shop", "audit"].map(str::to_owned).to_vec();
    let mut databases = place.databases();
    let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
    let running = start(&prepared, &place).unwrap();
    let endpoint = Endpoint { database: "audit".to_owned(), ..prepared.endpoint(Transport::Unix) };
    let mut audit = Connection::open(&endpoint, plimsoll_sql::CallLimits::timeout(PATIENCE)).unwrap();
    audit.batch("CREATE UNLOGGED TABLE entry (id INT)").unwrap();
    let facts = facts(&database, &prepared, Transport::Unix).unwrap();
    let tables = facts.settings.iter().find(|setting| setting.name == "tables of the kind UNLOGGED").unwrap();
    assert_eq!(tables.in_force, "audit.entry");
    let prewarm = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_prewarm'";
    let [of_audit, of_shop] = [&mut audit, &mut connect(&prepared)].map(|one| one.query(prewarm).unwrap().rows);
    assert_eq!(of_audit, of_shop, "both are warmed alike");

    let sampler = CounterSampler::start(&database, &prepared).unwrap();
    audit.batch("INSERT INTO entry SELECT generate_series(1, 1000)").unwrap();
    std::thread::sleep(Duration::from_millis(1500)); // its session tells what it did once a second
    audit.batch("DELETE FROM entry WHERE id = 0").unwrap();
    std::thread::sleep(Duration::from_millis(1200)); // to the next whole second
    let CounterSeries { samples, .. } = sampler.stop(Instant::now(), Duration::ZERO);
    let written = samples.iter().filter(|sample| sample.counter == "rows_written");
    assert!(written.map(|sample| sample.value).sum::<f64>() > 100.0, "{samples:?}");
    assert!(samples.iter().any(|sample| sample.counter == "connections" && sample.value == 1.0), "{samples:?}");
    running.stop().unwrap();
}

fn what_is_expected_is_asked_without_writing(database: &mut Database, prepared: &PreparedDatabase) {
    let mut found = |query: &str| {
        let expected = ExpectedRow { query: query.to_owned(), equals: "2".to_owned(), database: None };
        database.expected = vec![expected];
        evaluate_expected(database, prepared, &NEVER).map(|conditions| conditions[0].holds == Some(true))
    };
    assert!(found("SELECT count(*) FROM account").unwrap());
    assert!(!found("SELECT count(*) FROM account WHERE id > 2").unwrap());
    for writing in
        ["SELECT 2; DELETE FROM account", "DELETE FROM account", "WITH d AS (DELETE FROM account RETURNING 1) SELECT 2"]
    {
        assert!(found(writing).is_err(), "{writing}");
    }
    assert!(found("SELECT count(*) FROM account").unwrap(), "nothing was deleted");
    let mut read = |query: &str| {
        database.expected = vec![ExpectedRow { query: query.to_owned(), equals: "2".to_owned(), database: None }];
        check_expected(database, prepared, &NEVER).map_err(|error| error.to_string())
    };
    assert_eq!(read("SELECT count(*) FROM account WHERE id > 2"), Ok(()), "whatever it gives");
    for mistake in ["SELECT count(*) FROM acount", "SELECT cuont(*) FORM account", "SELECT 2; SELECT 2"] {
        assert!(read(mistake).is_err_and(|error| error.contains(mistake)), "{mistake}");
    }
}
