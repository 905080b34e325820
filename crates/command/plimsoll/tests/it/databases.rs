//! Database studies from end to end on servers of this machine, and what goes wrong with them.

use crate::common::{Ended, Place, Started, edited, files, is_nowhere, standing, wait_until};
use plimsoll_bundle::Contents;
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_sql::{CallLimits, Connection};
use plimsoll_testkit::database::{PASSWORD, USER, mysql_folder};
use plimsoll_testkit::{Mounted, skipped};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server that a study starts.
pub(crate) struct Server {
    /// As studies name it.
    name: &'static str,
    /// As reports do.
    pub(crate) shown: &'static str,
    /// Its file.
    program: &'static str,
    /// A setting that trades safety for speed.
    pub(crate) setting: &'static str,
    safe: &'static str,
    unsafe_: &'static str,
}

const POSTGRESQL: Server = Server {
    name: "postgresql",
    shown: "PostgreSQL ",
    program: "/postgres",
    setting: "synchronous_commit",
    safe: "on",
    unsafe_: "off",
};

const MARIADB: Server = Server {
    name: "mariadb",
    shown: "MariaDB ",
    program: "/mariadbd",
    setting: "innodb_flush_log_at_trx_commit",
    safe: "1",
    unsafe_: "0",
};

pub(crate) const MYSQL: Server = Server { name: "mysql", shown: "MySQL ", program: "/mysqld", ..MARIADB };

pub(crate) const SERVERS: [Server; 2] = [POSTGRESQL, MARIADB];

/// What users do in [`study`].
const OLTP: &str = "oltp     = { test = \"read_write\", rows = 1000 }";

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];
const RESUME: [&str; 5] = ["run", "study.toml", "--resume", "--out", "bundle"];

/// Two values of a setting, twice each, under small transactions.
pub(crate) fn study(server: &Server) -> String {
    let Server { name, setting, safe, unsafe_, .. } = server;
    let folder = mysql_folder().filter(|_| *name == MYSQL.name);
    let programs = folder.map(|folder| format!("programs = \"{}\"\n", folder.display())).unwrap_or_default();
    format!(
        r#"title    = "tiny"
question = "What does safety cost?"
design   = "trials"
repeats  = 2
noise_floor = false

[factors]
safety = {{ levels = ["{safe}", "{unsafe_}"], compare = true, baseline = "{safe}" }}

[database.db]
server   = "{name}"
{programs}settings = {{ {setting} = "{{safety}}" }}

[workload]
protocol = "sql"
database = "db"
{OLTP}

[load]
users    = 2
think    = "5ms"
warmup   = "200ms"
duration = "1s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#
    )
}

/// A place with the study, if its server is installed.
pub(crate) fn place(study: &str) -> Option<Place> {
    let place = Place::with_study(study);
    let checked = place.plimsoll(&["check", "study.toml"]);
    if checked.stderr.contains("install the package") {
        skipped(checked.stderr);
        return None;
    }
    Some(place)
}

fn bundle(place: &Place) -> Contents {
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert_eq!(bundle.problems, Vec::<String>::new());
    bundle
}

/// The processes whose working folder is below `folder`, by their ids, the first one first. The
/// children of PostgreSQL write over their environment, so that nothing else tells them.
fn working_in(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut ids: Vec<i32> = ids
        .filter(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|place| place.starts_with(folder)))
        .collect();
    ids.sort_unstable();
    ids
}

/// Where the run under way keeps the data of its databases.
fn data(place: &Place) -> PathBuf {
    PathBuf::from(place.read("bundle/databases.txt"))
}

/// Starts the study and waits for a second of load of trial `number`.
fn under_load(place: &Place, arguments: &[&str], number: u32) -> Started {
    let mut run = place.start(arguments);
    run.wait_for_load(place, number);
    run
}

/// Fails if a server still runs on the data in `folder`, or any of that data is there.
#[track_caller]
fn is_gone(place: &Place, folder: &Path) {
    place.nothing_runs();
    assert_eq!(working_in(folder), [0_i32; 0]);
    assert!(!folder.exists(), "{} is still there", folder.display());
}

#[test]
fn a_study_of_a_setting_runs_from_study_to_report_on_each_server() {
    for server in [POSTGRESQL, MARIADB, MYSQL] {
        let Some(place) = place(&study(&server)) else { continue };
        place.plimsoll(&["plan", "study.toml"]).with(0).prints(&[
            "database db:",
            "with 1 table of 1000 rows (about ",
            "); loaded once, copied before every trial",
        ]);
        let ended = place.plimsoll(&RUN).with_any_verdict();
        ended.says(&["data of db: initialising · 0 %\n", "data of db:", "made in", "4/4"]);
        place.nothing_runs();
        assert!(!place.has("bundle/databases.txt"), "the data is gone, and so is the note of it");
        let report = place.read("bundle/report/report.md");
        for text in [server.shown, server.setting, server.unsafe_] {
            assert!(report.contains(text), "expected `{text}` in:\n{report}");
        }
        assert_whole(&server, &bundle(&place));
    }
}

/// The servers of all variants are alive at the same time, on copies of the same data.
#[test]
fn variants_of_a_database_take_turns() {
    // On a busy machine 300 ms may pass without an exchange.
    const TURNS: &str = "design   = \"turns\"\nturns    = { count = 4, slice = \"1s\" }";
    for server in [POSTGRESQL, MARIADB, MYSQL] {
        let reading = edited(&study(&server), "read_write", "point_select");
        let Some(place) = place(&edited(&reading, "design   = \"trials\"", TURNS)) else { continue };
        place.plimsoll(&RUN).with_any_verdict().says(&["2/2"]);
        place.nothing_runs();
        for start in bundle(&place).starts {
            assert!(start.validity().counts(), "{:?}", start.validity());
            let slices: Vec<usize> = start.loads.iter().map(|load| load.slices.len()).collect();
            assert_eq!(slices, [4, 4], "each variant has its slices");
        }
    }
}

#[test]
fn servers_that_share_their_data_do_not_take_turns() {
    let template = edited(&study(&POSTGRESQL), "settings =", "snapshot = \"template\"\nsettings =");
    let Some(place) = place(&template) else { return };
    for design in ["turns", "side by side"] {
        place.write("study.toml", template.replace("\"trials\"", &format!("\"{design}\"")));
        place
            .plimsoll(&["check", "study.toml"])
            .with(2)
            .says(&["with `snapshot = \"template\"`", "leave `snapshot` out"]);
    }
}

/// Looks at what a bundle has of a study with [`study`]'s four trials.
fn assert_whole(server: &Server, bundle: &Contents) {
    let trials = standing(bundle);
    assert_eq!(trials.len(), 4);
    let version = bundle.versions.iter().find(|version| version.program.ends_with(server.program));
    let version = version.unwrap_or_else(|| panic!("{:?}", bundle.versions));
    assert!(version.sha256.is_some() && version.version.as_ref().is_some_and(|text| text.starts_with(server.shown)));
    for trial in trials {
        let summary = &trial.summary;
        assert!(trial.validity().counts(), "{:?}", trial.validity());
        let databases = &summary.systems[0].databases;
        let [facts] = databases.as_slice() else { panic!("{databases:?}") };
        assert!(facts.version.starts_with(server.shown), "{facts:?}");
        assert!(facts.transport.contains("UNIX") && !facts.isolation.is_empty(), "{facts:?}");
        let setting = facts.settings.iter().find(|setting| setting.name == server.setting).unwrap();
        assert_eq!(setting.asked.as_ref(), Some(&setting.in_force));
        assert_eq!(setting.risk.is_some(), setting.in_force == server.unsafe_, "{setting:?}");
        let runs: u64 = facts.work.statements.iter().map(|statement| statement.runs).sum();
        assert!(runs > 0, "{:?}", facts.work);
        let commits = trial.databases.iter().filter(|sample| sample.counter == "commits");
        assert!(commits.clone().any(|sample| sample.value > 0.0), "{:?}", trial.databases);
        assert!(trial.processes.iter().any(|sample| sample.system == "db" && sample.processes > 0));
    }
}

#[test]
fn tpc_c_is_held_to_its_conditions_and_its_input() {
    for server in SERVERS {
        let tpcc = edited(&study(&server), OLTP, "tpcc = { warehouses = 1 }");
        let tpcc = edited(&edited(&tpcc, "repeats  = 2", "repeats  = 1"), "\"1s\"", "\"3s\"");
        let Some(place) = place(&tpcc) else { continue };
        place.plimsoll(&RUN).with_any_verdict();
        for trial in standing(&bundle(&place)) {
            let facts = &trial.summary.systems[0].databases[0];
            assert!(trial.validity().counts(), "{:?}", trial.validity());
            assert!(facts.conditions.len() >= 11, "{:?}", facts.conditions);
            assert!(facts.conditions.iter().all(|condition| condition.holds == Some(true)), "{:?}", facts.conditions);
            assert!(facts.work.mix.len() >= 5 && facts.work.mix.iter().all(|line| line.holds), "{:?}", facts.work.mix);
        }
    }
}

/// A payment that nobody made, as somebody might who broke in.
#[test]
fn data_that_breaks_a_condition_fails_the_trial_and_the_block_runs_again() {
    let tpcc = edited(&study(&POSTGRESQL), OLTP, "tpcc = { warehouses = 1 }");
    let Some(place) = place(&edited(&edited(&tpcc, "repeats  = 2", "repeats  = 1"), "\"1s\"", "\"5s\"")) else {
        return;
    };
    let run = under_load(&place, &RUN, 1);
    break_in(working_in(&data(&place))[0]).batch("UPDATE warehouse SET w_ytd = w_ytd + 1").unwrap();
    run.end().says(&[
        "1/2",
        "failed: wrong data in `db`: consistency condition 1",
        "block 1 does not count and runs again",
        "4/4",
    ]);
    let counted: Vec<bool> = bundle(&place).starts.iter().map(|trial| trial.validity().counts()).collect();
    assert_eq!(counted, [false, true, true, true], "the data was restored");
}

/// A connection without a password to the data of the PostgreSQL server with this process.
fn break_in(server: i32) -> Connection {
    let folder = PathBuf::from(format!("/proc/{server}/cwd"));
    fs::write(folder.join("pg_hba.conf"), "local all all trust\n").unwrap();
    kill_process(Pid::from_raw(server).unwrap(), Signal::HUP).unwrap();
    let state = fs::read_to_string(folder.join("postmaster.pid")).unwrap();
    let lines: Vec<&str> = state.lines().collect();
    let endpoint = Endpoint {
        engine: Engine::Postgresql,
        address: Address::Unix(Path::new(lines[4]).join(format!(".s.PGSQL.{}", lines[3]))),
        user: "plimsoll".to_owned(),
        password: None,
        database: "plimsoll".to_owned(),
    };
    let open = || Connection::open(&endpoint, CallLimits::timeout(Duration::from_secs(10)));
    wait_until("a way in", || open().is_ok());
    open().unwrap()
}

#[test]
fn a_disk_that_has_no_room_for_the_data_is_named_before_anything_is_made() {
    let Some(disk) = Mounted::new("tmpfs", "size=220m,mode=755") else { return };
    let folder = disk.path().join("data");
    let kept = format!("data     = \"{}\"\nsettings =", folder.display());
    let much = edited(&edited(&study(&POSTGRESQL), "rows = 1000 ", "rows = 2000000 "), "settings =", &kept);
    let Some(place) = place(&much) else { return };
    let says = [
        "no space: data and the copy for a trial take about 1.1 GB",
        &folder.display().to_string(),
        "nothing was started",
    ];
    place.plimsoll(&RUN).with(2).says(&says);
    place.nothing_runs();
    assert_eq!(working_in(disk.path()), [0_i32; 0]);
    assert_eq!(files(disk.path()), [""; 0].map(PathBuf::from));
}

#[test]
fn a_setting_that_the_server_does_not_know_is_named_before_anything_is_made() {
    for server in SERVERS {
        let wrong = edited(&study(&server), "settings = {", "settings = { no_such_setting = 5,");
        let Some(place) = place(&wrong) else { continue };
        let said = place.plimsoll(&["check", "study.toml"]).with(2);
        said.says(&["does not take `no_such_setting = 5`", "correct `settings.no_such_setting` in `[database.db]`"]);
        place.plimsoll(&RUN).with(2).says(&["no_such_setting", "nothing was started"]);
        assert!(!place.has("bundle"));
    }
}

/// MariaDB rounds what it is asked for, and says so to nobody.
#[test]
fn a_setting_that_is_not_in_force_as_asked_is_named() {
    let rounded = edited(&study(&MARIADB), "settings = {", "settings = { innodb_buffer_pool_size = 5300001,");
    let Some(place) = place(&rounded) else { return };
    place.plimsoll(&RUN).with(3).says(&["innodb_buffer_pool_size", "5300001"]);
    place.nothing_runs();
}

#[test]
fn a_server_that_is_killed_fails_its_trial_and_the_block_runs_again() {
    for server in SERVERS {
        let Some(place) = place(&edited(&study(&server), "\"1s\"", "\"3s\"")) else { continue };
        let run = under_load(&place, &RUN, 3);
        let server = working_in(&data(&place))[0];
        kill_process(Pid::from_raw(server).unwrap(), Signal::KILL).unwrap();
        let ended = run.end().says(&[
            "3/4",
            "failed: the system `db` ended by itself",
            "block 2 does not count and runs again",
            "6/6",
        ]);
        let killed = ended.stderr.lines().find(|line| line.contains("ended by itself")).unwrap();
        assert!(killed.starts_with("3/4") && killed.contains("0003/output-db.log): "), "{killed}");
        assert!(!ended.stderr.contains("\n    20"), "what the server wrote is in the bundle: {}", ended.stderr);
        place.nothing_runs();
        let bundle = bundle(&place);
        let failed = |number: u32| {
            let trial = bundle.starts.iter().find(|trial| trial.summary.start.number == number).unwrap();
            (!trial.validity().counts()).then(|| trial.clone())
        };
        assert_eq!([1, 2, 4, 5, 6].map(|number| failed(number).map(|trial| trial.validity())), [const { None }; 5]);
        let killed = failed(3).expect("its server was killed");
        assert!(!killed.summary.systems[0].databases[0].version.is_empty(), "what was known of it before stands there");
        let report = place.read("bundle/report/report.md");
        assert!(report.contains("the system `db` ended by itself"), "{report}");
    }
}

/// As the kernel does where memory is short: the server lives on, and begins anew.
#[test]
fn a_server_that_crashes_and_recovers_fails_its_trial() {
    let Some(place) = place(&edited(&study(&POSTGRESQL), "\"1s\"", "\"3s\"")) else { return };
    let run = under_load(&place, &RUN, 3);
    let newest = *working_in(&data(&place)).last().unwrap();
    kill_process(Pid::from_raw(newest).unwrap(), Signal::KILL).unwrap();
    run.end().says(&[
        "3/4",
        "failed: the server of the database `db` ended its sessions under load",
        "block 2 does not count and runs again",
        "6/6",
    ]);
    place.nothing_runs();
    let counted: Vec<bool> = bundle(&place).starts.iter().map(|trial| trial.validity().counts()).collect();
    assert_eq!(counted, [true, true, false, true, true, true]);
}

#[test]
fn an_interrupt_leaves_no_server_and_no_data() {
    for server in SERVERS {
        let Some(place) = place(&edited(&study(&server), "\"1s\"", "\"60s\"")) else { continue };
        let run = under_load(&place, &RUN, 1);
        let data = data(&place);
        assert!(data.is_dir() && !working_in(&data).is_empty());
        run.signal(Signal::INT);
        run.end().with(130).says(&["go on:"]);
        is_gone(&place, &data);
        assert!(!place.has("bundle/databases.txt"));
    }
}

#[test]
fn an_interrupt_while_data_is_loaded_is_heard() {
    for server in SERVERS {
        let much = edited(&study(&server), "rows = 1000", "rows = 5000000");
        let Some(place) = place(&much) else { continue };
        let mut run = place.start(&RUN);
        run.wait_until("the loading of data", |_| {
            place.has("bundle/events.jsonl") && place.read("bundle/events.jsonl").contains("data_progress")
        });
        let data = data(&place);
        run.signal(Signal::INT);
        run.end().with(130);
        is_gone(&place, &data);
    }
}

#[test]
fn kill_9_leaves_no_server_and_the_run_that_goes_on_removes_the_data() {
    for server in SERVERS {
        let Some(place) = place(&edited(&study(&server), "\"1s\"", "\"3s\"")) else { continue };
        let run = under_load(&place, &RUN, 2);
        let data = data(&place);
        run.signal(Signal::KILL);
        run.end();
        place.wait_for_silence();
        wait_until("the end of every server", || working_in(&data).is_empty());
        assert!(data.is_dir(), "nobody was there to remove it");
        place.plimsoll(&RESUME).with_any_verdict().says(&["1 of them done before", "4/4"]);
        is_gone(&place, &data);
        assert_eq!(standing(&bundle(&place)).len(), 4);
    }
}

#[test]
fn a_folder_that_holds_something_else_is_refused_and_left_alone() {
    for server in SERVERS {
        let kept = edited(&study(&server), "settings =", "data     = \"data\"\nsettings =");
        let Some(place) = place(&kept) else { continue };
        fs::create_dir(place.path("data")).unwrap();
        place.write("data/PG_VERSION", "15\n");
        place.plimsoll(&RUN).with(2).says(&["data", "nothing was started"]);
        assert_eq!(place.read("data/PG_VERSION"), "15\n");
        assert!(!place.has("bundle"));
    }
}

#[test]
fn data_that_is_kept_is_made_once_for_all_runs() {
    for server in SERVERS {
        let kept = edited(&study(&server), "settings =", "data     = \"data\"\nsettings =");
        let Some(place) = place(&kept) else { continue };
        // Whoever runs the server for root must get there.
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        place.plimsoll(&RUN).with_any_verdict().says(&["data of db:", "made in"]);
        let again = place.plimsoll(&["run", "study.toml", "--out", "again"]).with_any_verdict();
        assert!(again.says(&["kept from an earlier run"]).stderr.matches("data of db").count() == 1);
        let other = edited(&kept, "rows = 1000", "rows = 1001");
        place.write("study.toml", other);
        let refused = place.plimsoll(&["run", "study.toml", "--out", "other"]).with(2);
        refused.says(&["rows: it has 1000, the study asks for 1001", "nothing was started"]);
        place.nothing_runs();
    }
}

/// A study of a server that runs already, with a transaction of its own.
fn external(server: &Endpoint, engine: &str, database: &str) -> String {
    let Address::Tcp { host, port } = &server.address else { panic!("{:?} is no TCP address", server.address) };
    let study = study(&POSTGRESQL);
    let study =
        edited(&study, "server   = \"postgresql\"", &format!("url = \"{engine}://{USER}@{host}:{port}/{database}\""));
    let study = edited(&study, "settings = { synchronous_commit = \"{safety}\" }", "password_env = \"TEST_PASSWORD\"");
    let study = edited(&study, OLTP, OWN);
    edited(&study, r#"safety = { levels = ["on", "off"], compare = true, baseline = "on" }"#, FACTOR)
}

const OWN: &str = r#"transactions = [{ name = "add", statements = [{ sql = "SELECT 1 + {value}", rows = 1 }] }]"#;
const FACTOR: &str = "value = { levels = [1, 2], compare = true, baseline = 1 }";

fn run_with_password(place: &Place, password: &str) -> Ended {
    let mut command = place.command(&RUN);
    command.env("TEST_PASSWORD", password);
    Started::new(command).end()
}

#[test]
fn a_server_that_runs_already_is_loaded_and_its_password_stands_nowhere() {
    let Some(server) = plimsoll_testkit::database::postgresql() else { return };
    let chatty = "\n[system.chatty]\nstart = \"sh -c 'echo password $TEST_PASSWORD; exec sleep 60'\"\nready = { log = \"password\" }\n";
    let place = Place::with_study(&(external(&server.tcp(), "postgresql", "postgres") + chatty));
    let ended = run_with_password(&place, PASSWORD).with_any_verdict();
    is_nowhere(PASSWORD, &place.path("bundle"));
    assert!(!format!("{ended:?}").contains(PASSWORD));
    let log = place.read("bundle/starts/0001/output-chatty.log");
    assert_eq!(log, format!("password {}\n", "*".repeat(PASSWORD.len())));
    for trial in bundle(&place).starts {
        assert!(trial.validity().counts(), "{:?}", trial.validity());
        assert!(
            trial.summary.systems[0].databases[0].transport.starts_with("TCP"),
            "{:?}",
            trial.summary.systems[0].databases
        );
    }
}

#[test]
fn a_wrong_password_and_a_missing_database_are_named_and_no_password_told() {
    const WRONG: &str = "incorrect horse";
    let servers =
        [("postgresql", plimsoll_testkit::database::postgresql()), ("mariadb", plimsoll_testkit::database::mariadb())];
    for (engine, server) in servers {
        let Some(server) = server else { continue };
        let name = server.tcp().database;
        for (database, password, says) in
            [(name.as_str(), WRONG, USER), ("no_such_database", PASSWORD, "no_such_database")]
        {
            let place = Place::with_study(&external(&server.tcp(), engine, database));
            let ended = run_with_password(&place, password).with(3).says(&[says]);
            assert!(!format!("{ended:?}").contains(password));
            is_nowhere(password, &place.path("bundle"));
        }
    }
}

#[test]
fn a_database_without_the_tables_of_the_workload_is_told_what_to_do() {
    let servers =
        [("postgresql", plimsoll_testkit::database::postgresql()), ("mariadb", plimsoll_testkit::database::mariadb())];
    for (engine, server) in servers {
        let Some(server) = server else { continue };
        let study = external(&server.tcp(), engine, &server.tcp().database);
        for (work, says) in [
            ("tpcc = { warehouses = \"{value}\" }", "`, which the workload needs (TPC-C of 1 warehouse); fill it"),
            ("oltp = { test = \"read_only\", rows = \"{value}\" }", "has no table `sbtest1`, which the workload needs"),
            (
                "transactions = [{ name = \"a\", statements = [{ sql = \"SELECT {value} FROM nothing\" }] }]",
                "make the table first: `load` names the SQL files",
            ),
        ] {
            let study = edited(&study, "password_env", "may_write = true\npassword_env");
            let place = Place::with_study(&edited(&study, OWN, work));
            run_with_password(&place, PASSWORD).with(3).says(&[says]);
        }
    }
}

#[test]
fn a_password_in_an_address_is_refused_and_shown_nowhere() {
    for url in ["mysql://me:hunter2secret@127.0.0.1/b", "postgresql://me@127.0.0.1/b?password=hunter2secret"] {
        let study = edited(&study(&POSTGRESQL), "server   = \"postgresql\"", &format!("url = \"{url}\""));
        let place = Place::with_study(&study);
        let ended = place.plimsoll(&RUN).with(2).says(&["must not hold a password", "password_env"]);
        assert!(!format!("{ended:?}").contains("hunter2secret"), "{ended:?}");
        assert!(!place.has("bundle"));
    }
}

#[test]
fn more_users_than_a_server_lets_in_are_refused_before_they_connect() {
    let Some(server) = plimsoll_testkit::database::postgresql() else { return };
    let study = external(&server.tcp(), "postgresql", "postgres");
    let open = edited(&study, "users    = 2\nthink    = \"5ms\"", "rate = 10");
    let place = Place::with_study(&open);
    let says = ["1000 users take more than the 100 connections of the database `db`", "max_users"];
    run_with_password(&place, PASSWORD).with(3).says(&says);
    let few = Place::with_study(&edited(&open, "rate = 10", "rate = 10\nmax_users = 5"));
    run_with_password(&few, PASSWORD).with_any_verdict();
}

#[test]
fn a_password_that_is_not_there_is_missed_before_anything_starts() {
    let Some(server) = plimsoll_testkit::database::postgresql() else { return };
    let place = Place::with_study(&external(&server.tcp(), "postgresql", "postgres"));
    place.plimsoll(&RUN).with(2).says(&["TEST_PASSWORD", "nothing was started"]);
    assert!(!place.has("bundle"));
}

#[test]
fn a_server_of_another_machine_is_not_loaded_unless_the_study_lists_it() {
    let study = edited(
        &study(&POSTGRESQL),
        "server   = \"postgresql\"",
        "url = \"postgresql://tester@192.0.2.1:5432/postgres\"",
    );
    let study = edited(&study, "settings = { synchronous_commit = \"{safety}\" }", "");
    let place = Place::with_study(&edited(&study, OLTP, &OWN.replace("1 + {value}", "'{safety}'")));
    place.plimsoll(&RUN).with(2).says(&["192.0.2.1", "[targets]"]);
}

#[test]
fn a_setting_of_a_server_that_runs_already_must_be_in_force() {
    let Some(server) = plimsoll_testkit::database::postgresql() else { return };
    let study = external(&server.tcp(), "postgresql", "postgres");
    let place = Place::with_study(&edited(&study, "password_env", "settings = { fsync = \"on\" }\npassword_env"));
    run_with_password(&place, PASSWORD).with(3).says(&["fsync", "on", "off"]);
}
