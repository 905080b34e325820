//! Studies of databases: which run in a trial, what lies in them, and where load may go.

use crate::{read_text, study};
use plimsoll_model::database::{Dataset, Engine, Origin};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::sql::SqlWork;
use plimsoll_model::start::Design;
use plimsoll_model::workload::{Protocol, Steps};
use plimsoll_study::{Bindings, PortChoice, TrialSpec};

/// Two databases, one in each variant.
pub(crate) const SQL: &str = include_str!("sql.toml");

fn levels(engine: &str, warehouses: i64) -> Assignment {
    Assignment(vec![
        ("engine".to_owned(), Level::Text(engine.to_owned())),
        ("warehouses".to_owned(), Level::Integer(warehouses)),
        ("users".to_owned(), Level::Integer(8)),
    ])
}

fn resolved(text: &str, engine: &str, warehouses: i64) -> TrialSpec {
    let ports = [("mariadb".to_owned(), 3307), ("postgresql".to_owned(), 5433)].into();
    let bindings = Bindings { ports, ..Bindings::default() };
    study(text).resolve(&levels(engine, warehouses), &bindings).expect("a trial")
}

fn edited(old: &str, new: &str) -> String {
    assert!(SQL.contains(old), "`{old}` is not in the study");
    SQL.replacen(old, new, 1)
}

fn said(text: &str) -> Vec<String> {
    read_text(text).1.iter().map(ToString::to_string).collect()
}

#[test]
fn each_trial_has_the_database_that_it_allows_with_the_data_of_its_workload() {
    let spec = resolved(SQL, "postgresql", 2);
    let [database] = spec.databases.as_slice() else { panic!("one database: {:?}", spec.databases) };
    assert_eq!((database.name.as_str(), database.engine), ("postgresql", Engine::Postgresql));
    assert_eq!(database.dataset, Dataset::Tpcc { warehouses: 2, seed: 7 });
    assert_eq!(database.settings[1], ("synchronous_commit".to_owned(), "on".to_owned()));
    let Origin::Started(server) = &database.origin else { panic!("started") };
    assert_eq!(server.port, 5433);
    let Steps::Sql(sql) = &spec.workload.steps else { panic!("SQL") };
    let SqlWork::Tpcc(tpcc) = &sql.work else { panic!("TPC-C") };
    assert_eq!((sql.database.as_str(), tpcc.warehouses, tpcc.data_seed), ("postgresql", 2, 7));
    assert_eq!(spec.workload.target, None);
}

#[test]
fn a_search_ends_where_the_connections_of_the_database_do() {
    let search = |most: &str| {
        let load = format!("profile = 'capacity'\nusers = '{{users}}'{most}");
        edited("users    = \"{users}\"\nduration = \"20s\"", &load)
            + "\n[objective]\nlimits = { 'request_duration.p95' = '1s' }\n"
    };
    let most = |engine| resolved(&search(""), engine, 1).search.expect("a search").most;
    assert_eq!((most("mariadb"), most("postgresql")), (146.0, 95.0));
    assert_eq!(resolved(&search("\nmost = 40"), "postgresql", 1).search.expect("a search").most, 40.0);
    let said = said(&search("\nmost = 120"));
    assert!(
        said.iter().any(|one| one.contains("120 users take more than the 100 connections of PostgreSQL")),
        "{said:?}"
    );
}

#[test]
fn a_search_on_a_server_that_runs_already_takes_it_for_one_with_its_defaults() {
    let found = |settings: &str, most: &str| {
        let load = format!("profile = 'capacity'\nusers = '{{users}}'{most}");
        let text = edited("users    = \"{users}\"\nduration = \"20s\"", &load)
            .replace("server   = \"mariadb\"", "url = 'mysql://me@localhost/shop'\nmay_write = true")
            .replace("innodb_buffer_pool_size = \"256M\"", settings)
            + "\n[objective]\nlimits = { 'request_duration.p95' = '1s' }\n";
        let (study, told) = read_text(&text);
        let study = study.unwrap_or_else(|| panic!("{told:?}"));
        let spec = study.resolve(&levels("mariadb", 1), &Bindings::default()).expect("a trial");
        let is_told = told.iter().any(|one| one.message.contains("takes by default: the study names no `most`"));
        (spec.search.expect("a search").most, is_told)
    };
    assert_eq!(found("innodb_buffer_pool_size = \"256M\"", ""), (146.0, true));
    assert_eq!(found("max_connections = 500", ""), (495.0, false));
    assert_eq!(found("max_connections = 50", "\nmost = 90"), (90.0, false), "the server is asked");
    assert_eq!(found("innodb_buffer_pool_size = \"256M\"", "\nmost = 90"), (90.0, false));
}

#[test]
fn a_database_that_is_started_always_has_a_port() {
    let ports = |text: &str| study(text).system_ports(&levels("mariadb", 1));
    assert_eq!(ports(SQL), [("mariadb".to_owned(), PortChoice::Free)]);
    let fixed = edited("[database.mariadb]", "[database.mariadb]\nport = 3399");
    assert_eq!(ports(&fixed), [("mariadb".to_owned(), PortChoice::Fixed(3399))]);
    let proxy =
        "[system.proxy]\nstart = 'proxy --to {mariadb.address} {mariadb.port}'\nonly = { engine = 'mariadb' }\n";
    let spec = resolved(&edited("[workload]", &format!("{proxy}[workload]")), "mariadb", 1);
    assert_eq!(spec.systems[0].start.to_string(), "proxy --to 127.0.0.1:3307 3307");
}

#[test]
fn data_is_kept_where_it_is_the_same_in_all_trials() {
    let folder = "server   = \"mariadb\"\ndata = 'data/{warehouses}'";
    study(&edited("server   = \"mariadb\"", folder));
    let said = said(&edited("server   = \"mariadb\"", "server = 'mariadb'\ndata = 'data/{users}'"));
    assert!(matches!(said.as_slice(), [one] if one.contains("different data in different trials")), "{said:?}");
}

#[test]
fn a_study_of_databases_says_what_it_is_about() {
    let facts = study(SQL).facts();
    assert_eq!((facts.protocol, facts.loopback, facts.mean_think), (Protocol::Sql, true, Some(0.0)));
    assert_eq!(facts.systems, ["mariadb", "postgresql"]);
    let started = ["mariadb: MariaDB", "mariadb: with innodb_buffer_pool_size=256M"];
    assert_eq!(facts.commands[0][..2], started);
    assert_eq!(facts.commands[1][0], "postgresql: PostgreSQL");
    let waiting = edited("warehouses = \"{warehouses}\"", "warehouses = \"{warehouses}\", waits = \"spec\"");
    let facts = study(&waiting).facts();
    assert_eq!(facts.mean_think, None, "the pauses are those of the workload");
    assert_eq!(facts.load, "closed loop, {users} users, pauses as the workload has them");
    assert_eq!(study(&waiting).design(), Design::Trials);
    assert!(study(&waiting).reason_of_design().contains("users wait as TPC-C has it"));
}

#[test]
fn files_make_the_data_of_transactions_of_ones_own() {
    let own = "transactions = [{ name = 'look', statements = [{ sql = 'SELECT {warehouses}' }] }]";
    let text = edited("tpcc     = { warehouses = \"{warehouses}\" }", own)
        .replace("new_orders.rate", "iterations.rate")
        .replace("request_duration:payment.p95", "request_duration:look.p95")
        .replace("server   = \"mariadb\"", "server = 'mariadb'\nload = ['schema.sql']");
    let spec = resolved(&text, "mariadb", 2);
    assert_eq!(spec.databases[0].dataset, Dataset::Scripts(vec!["/study/schema.sql".into()]));
    let Steps::Sql(sql) = spec.workload.steps else { panic!("SQL") };
    let SqlWork::Own(transactions) = sql.work else { panic!("own") };
    assert_eq!(transactions[0].statements[0].sql, "SELECT 2");
}

#[test]
fn a_workload_of_another_protocol_may_have_a_database_behind_it() {
    let text = "title = 't'\nquestion = 'q'\nfactors.mode = { levels = ['a', 'b'], compare = true, baseline = 'a' }\n\
                database.db = { server = 'postgresql', load = ['a.sql'] }\n\
                system.web = { start = './web {mode} {db.address} {port}' }\n\
                workload = { protocol = 'http', target = '{web.address}', steps = [{ get = '/' }] }\n\
                load = { users = 1, duration = '9s' }\ndecide = { measures = ['iterations.rate', 'cpu:db.avg'] }";
    assert_eq!(study(text).facts().systems, ["db", "web"]);
}

#[test]
fn more_users_than_the_server_has_connections_are_refused() {
    for (users, says) in [
        ("[1, 151]", "151 users take more than the 151 connections of MariaDB"),
        ("[1, 100]", "100 users take more than the 100 connections of PostgreSQL"),
    ] {
        let found = said(&edited("[1, 8]", users));
        assert!(found.iter().any(|one| one.contains("error: ") && one.contains(says)), "{users}: {found:?}");
    }
    let told = edited("[1, 8]", "[1, 140]").replace("innodb_buffer_pool_size = \"256M\"", "max_connections = 140");
    assert!(
        said(&told).iter().any(|one| one.contains("more than the 140 connections of MariaDB")),
        "{:?}",
        said(&told)
    );
}

#[test]
fn a_load_does_not_write_to_a_database_of_others_unless_the_study_allows_it() {
    let external = "url = 'mysql://me@localhost/shop'";
    let found = said(&edited("server   = \"mariadb\"", external));
    assert!(found.iter().any(|one| one.contains("error: the load writes to")), "{found:?}");
    for allowed in ["may_write = true", "restore = './restore'"] {
        let found = said(&edited("server   = \"mariadb\"", &format!("{external}\n{allowed}")));
        assert!(!found.iter().any(|one| one.contains("error: ")), "{allowed}: {found:?}");
    }
}

#[test]
fn a_statement_that_is_not_known_to_read_is_named() {
    let external = edited("server   = \"mariadb\"", "url = 'mysql://me@localhost/shop'");
    let own = |sql: &str| {
        let own = format!("transactions = [{{ name = 'one', statements = [{{ sql = '{sql}' }}] }}]");
        let text = external.replace("tpcc     = { warehouses = \"{warehouses}\" }", &own);
        assert_ne!(text, external);
        said(&text)
    };
    let found = own("SELEC 1");
    let says = "the load may write to `mariadb` with its statement `SELEC …` (only SELECT is known to read)";
    assert!(found.iter().any(|one| one.contains(says)), "{found:?}");
    assert!(!own("select 1").iter().any(|one| one.contains("may write")));
}

#[test]
fn a_misspelt_test_is_told_all_that_there_are() {
    let found = said(&edited("tpcc     = { warehouses = \"{warehouses}\" }", "oltp = { test = 'pointselect' }"));
    let says = ["did you mean `point_select`? the tests are `", "`write_only`"];
    assert!(found.iter().any(|one| says.iter().all(|part| one.contains(part))), "{found:?}");
}

#[test]
fn what_is_likely_to_go_wrong_is_a_warning() {
    let specified = "warehouses = \"{warehouses}\", waits = \"spec\"";
    let external = "url = 'mysql://me@localhost/shop'\nmay_write = true";
    for (old, new, says) in [
        ("warehouses = \"{warehouses}\"", specified, "11 users are more than the 10 terminals of 1 warehouse"),
        ("server   = \"mariadb\"", external, "nothing restores it"),
        ("only     = { engine = \"mariadb\" }", "", "database `mariadb` runs in trials that do not use it"),
    ] {
        let text = edited(old, new).replace("[1, 8]", "[1, 11]");
        let found = said(&text);
        assert!(found.iter().any(|one| one.contains("warning: ") && one.contains(says)), "{new}: {found:?}");
        assert!(read_text(&text).0.is_some(), "{found:?}");
    }
}
