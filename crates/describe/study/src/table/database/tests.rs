//! How databases of a study are read and resolved.

use super::*;
use crate::table::testing::{faults_of, no_faults, read_table};
use crate::value::{Bindings, NO_LOGINS};
use plimsoll_model::database::ExpectedRow;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::CommandLine;
use plimsoll_model::units::Processors;
use std::path::Path;

fn resolve(text: &str, faults: &mut Faults) -> Option<Database> {
    let bindings = Bindings { ports: [("db".to_owned(), 5433)].into(), ..Bindings::default() };
    let levels = [("version", Level::Text("15".to_owned())), ("on", Level::Bool(true)), ("n", Level::Integer(8))];
    let assignment = Assignment(levels.map(|(name, level)| (name.to_owned(), level)).into());
    let scope = Scope {
        assignment: &assignment,
        bindings: &bindings,
        not_running: &[],
        elsewhere: &[],
        logins: &NO_LOGINS,
        is_trusted: false,
        system: None,
        dir: Path::new("/study"),
        processors: &[0, 1],
        of_generator: None,
    };
    let table = read_table::<DatabaseTable>(text);
    let login = table.login("db", &scope, &mut no_faults());
    let logins = login.into_iter().map(|login| ("db".to_owned(), login)).collect();
    table.resolve("db", &Scope { logins: &logins, ..scope }, faults)
}

fn resolved(text: &str) -> Database {
    resolve(text, &mut no_faults()).expect(text)
}

fn server(text: &str) -> Server {
    let Origin::Started(server) = resolved(text).origin else { panic!("a server") };
    *server
}

fn external(text: &str) -> External {
    let Origin::External(external) = resolved(text).origin else { panic!("an external one") };
    external
}

#[test]
fn a_server_has_defaults() {
    let expected = Server {
        on: None,
        listen: std::net::Ipv4Addr::LOCALHOST.into(),
        programs: None,
        user: None,
        init: Vec::new(),
        data: None,
        snapshot: Snapshot::Copy,
        databases: vec!["plimsoll".to_owned()],
        roles: vec!["service".to_owned()],
        password: None,
        migrate: None,
        port: 5433,
        cpus: None,
        ready_within: MINUTE,
        stop_grace: MINUTE,
    };
    assert_eq!(server("server = 'mariadb'"), expected);
    let database = resolved("server = 'mariadb'");
    assert_eq!((database.engine, database.dataset, database.warm), (Engine::Mariadb, Dataset::Empty, false));
}

#[test]
fn every_key_of_a_server_is_resolved() {
    const TEXT: &str = "server = 'postgresql'\nprograms = '/opt/pg{version}/bin'\nuser = 'nobody'\n\
         init = ['--data-checksums', '--wal-segsize={n}']\ndata = 'data/{version}'\nsnapshot = 'template'\n\
         load = ['schema.sql', '/a/{version}.sql']\nwarm = true\ncpus = 'upper half'\nport = 5433\n\
         ready_within = '5m'\nstop_grace = '1s'\ndatabases = ['shop']\nroles = ['owner', 'reader']\n\
         migrate = './migrate {db.url}'\nexpect = [{ query = 'select {n}', equals = '{n}' }]\n\
         settings = { fsync = false, jit = '{on}', max_connections = 100, work_mem = '{n}MB', 'auto_explain.x' = 0.5 }";
    let database = resolved(TEXT);
    let settings: Vec<String> = database.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(settings, ["fsync=off", "jit=on", "max_connections=100", "work_mem=8MB", "auto_explain.x=0.5"]);
    assert_eq!(database.dataset, Dataset::Scripts(vec!["/study/schema.sql".into(), "/a/15.sql".into()]));
    assert!(database.warm);
    let row = ExpectedRow { query: "select 8".to_owned(), equals: "8".to_owned(), database: None };
    assert_eq!(database.expected, [row]);
    let expected = Server {
        on: None,
        listen: std::net::Ipv4Addr::LOCALHOST.into(),
        programs: Some("/opt/pg15/bin".into()),
        user: Some("nobody".to_owned()),
        init: ["--data-checksums", "--wal-segsize=8"].map(str::to_owned).into(),
        data: Some("/study/data/15".into()),
        snapshot: Snapshot::Template,
        databases: vec!["shop".to_owned()],
        roles: vec!["owner".to_owned(), "reader".to_owned()],
        password: None,
        migrate: Some(Migration {
            command: CommandLine(["./migrate", "postgresql://owner@127.0.0.1:5433/run"].map(str::to_owned).into()),
            dir: "/study".into(),
            url: Secret("postgresql://owner@127.0.0.1:5433/run".to_owned()),
        }),
        port: 5433,
        cpus: Some(Processors(vec![1])),
        ready_within: Duration::from_secs(300),
        stop_grace: Duration::from_secs(1),
    };
    assert_eq!(server(TEXT), expected);
}

#[test]
fn a_server_that_runs_already_is_reached_as_its_url_says() {
    let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
    for (url, engine, address) in [
        ("postgresql://me@127.0.0.1:5433/shop", Engine::Postgresql, tcp("127.0.0.1", 5433)),
        ("postgres://me@[::1]/shop", Engine::Postgresql, tcp("::1", 5432)),
        ("mysql://me@localhost/shop", Engine::Mysql, tcp("localhost", 3306)),
        ("mariadb://me@/shop?socket=/run/my.sock", Engine::Mariadb, Address::Unix("/run/my.sock".into())),
    ] {
        let endpoint = external(&format!("url = '{url}'")).endpoint;
        assert_eq!((endpoint.engine, endpoint.address), (engine, address), "{url}");
        assert_eq!((endpoint.user.as_str(), endpoint.database.as_str()), ("me", "shop"), "{url}");
    }
    let text =
        "url = 'mysql://me@localhost/shop'\npassword_env = 'DB_PASSWORD'\nrestore = './restore {n}'\nwarm = true";
    let external = external(text);
    assert_eq!(external.password_variable.as_deref(), Some("DB_PASSWORD"));
    assert_eq!(external.restore, Some(CommandLine(["./restore", "8"].map(str::to_owned).into())));
    assert_eq!(external.dir, PathBuf::from("/study"));
    assert!(resolved(text).warm);
}

#[test]
fn settings_of_a_server_that_runs_already_may_follow_from_what_is_done_to_it() {
    for rest in ["url = 'mysql://a@localhost:{n}/b'", "url = 'mysql://a@localhost/b'\nrestore = './restore {n}'"] {
        let database = resolved(&format!("{rest}\nsettings = {{ max_connections = '{{n}}' }}"));
        assert_eq!(database.settings, [("max_connections".to_owned(), "8".to_owned())]);
    }
}

#[test]
fn a_database_is_told_in_words() {
    let table: DatabaseTable = read_table("server = 'mariadb'\nprograms = '/opt/{v}'\nsettings = { a = '{n}', b = 1 }");
    let levels = Assignment(vec![("n".to_owned(), Level::Integer(8))]);
    assert_eq!(table.shown("db", &levels), ["db: MariaDB of /opt/{v}", "db: with a=8", "db: with b=1"]);
}

#[test]
fn wrong_databases_are_named_when_read() {
    for (text, what) in [
        ("", "does not say what it is"),
        ("sever = 'mariadb'", "did you mean `server`?"),
        ("server = 'mariadb'\nurl = 'mysql://a@localhost/b'", "is started and runs already"),
        ("server = 'postgres'", "did you mean `postgresql`?"),
        ("server = 'oracle'", "\"postgresql\", \"mariadb\" or \"mysql\""),
        ("url = 'mysql://a@localhost/b'\nport = 5", "`port` belongs in"),
        ("url = 'mysql://a:secret@localhost/b'", "`table.url` must not hold a password"),
        ("url = 'postgresql://a@localhost/b?password=x'", "password_env = \"NAME\""),
        ("url = 'postgresql://localhost/b'", "USER@HOST:PORT/DATABASE"),
        ("url = 'postgresql://a@localhost'", "USER@HOST:PORT/DATABASE"),
        ("url = 'postgresql://a@localhost/b?sslmode=require'", "must not ask for `sslmode`"),
        ("url = 'mysql://a@localhost/b?ssl-mode=REQUIRED'", "spoken to without TLS"),
        ("url = 'postgresql://a@/b?socket=relative'", "USER@HOST:PORT/DATABASE"),
        ("url = 'oracle://a@localhost/b'", "USER@HOST:PORT/DATABASE"),
        ("url = 'mysql://a@localhost/b'\npassword_env = 'my password'", "a variable of the environment"),
        ("server = 'mariadb'\nsettings = { bind-address = '::' }", "the setting `bind-address` is given by Plimsoll"),
        ("server = 'mariadb'\nsettings = { port = 1 }", "its key `port`"),
        ("server = 'postgresql'\nsettings = { data_directory = '/x' }", "the key `data` keeps it"),
        ("server = 'postgresql'\nsettings = { 'a b' = 1 }", "`a b` cannot be the name of a setting"),
        ("server = 'postgresql'\nsettings = { a = [1] }", "a text, a number or a boolean"),
        ("server = 'postgresql'\nsnapshot = 'clone'", "\"copy\" or \"template\""),
        ("server = 'postgresql'\nready_within = '0s'", "above zero"),
        ("server = 'postgresql'\ndatabases = ['a b']", "a name of at most 32 letters"),
        (
            "server = 'postgresql'\ndatabases = ['a', 'a']",
            "`a` cannot be one of `databases`: it stands in the list twice",
        ),
        ("server = 'mariadb'\ndatabases = ['mysql']", "servers, or Plimsoll, have one of this name"),
        ("server = 'postgresql'\nroles = ['plimsoll']", "`plimsoll` cannot be one of `roles`"),
        ("server = 'postgresql'\nroles = ['pg_monitor']", "servers, or Plimsoll, have one of this name"),
        (
            "server = 'postgresql'\ndatabases = ['shop', 'log']\nexpect = [{ query = 'select 1', equals = 1, database = 'lag' }]",
            "did you mean `log`?",
        ),
        ("server = 'postgresql'\nexpect = [{ query = 'select 1' }]", "`equals`"),
        ("server = 'postgresql'\nroles = []", "`roles` is empty"),
    ] {
        let faults = faults_of::<DatabaseTable>(text);
        assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
    }
}

#[test]
fn wrong_databases_are_named_when_resolved() {
    for (text, what) in [
        ("server = 'mariadb'\nsnapshot = 'template'", "MariaDB has no template databases"),
        ("server = 'mysql'\nsnapshot = 'template'", "MySQL has no template databases"),
        ("server = 'mariadb'\nsettings = { a = \"x\\ny\" }", "must be one line of text"),
        ("server = 'mariadb'\ncpus = '7'", "names processor 7"),
        (
            "server = 'postgresql'\nsnapshot = 'template'\ndatabases = ['a', 'b']",
            "one database is made from a template",
        ),
        (
            "server = 'mariadb'\nexpect = [{ query = 'delete from a', equals = 1 }]",
            "`delete …` is no query that only reads",
        ),
        (
            "url = 'mysql://a@localhost/b'\nsettings = { max_connections = '{n}' }",
            "`n` changes nothing: the setting `max_connections` of a server that runs already is only read",
        ),
    ] {
        let mut faults = no_faults();
        assert_eq!(resolve(text, &mut faults), None, "{text}");
        let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
        assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
    }
}
