//! A database to be started, a run that starts it, and looks at what is left.

use plimsoll_database::{DatabaseError, Databases, PreparedDatabase, check};
use plimsoll_model::database::{Database, Dataset, Engine, LOADED, Origin, SERVICE, Server, Snapshot};
use plimsoll_model::event::Event;
use plimsoll_model::sql::Transport;
use plimsoll_sql::{CallLimits, Connection};
use plimsoll_system::{Interrupt, Launcher, Running, free_port};
use plimsoll_testkit::database::mysql_folder;
use procfs::process::all_processes;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for anything that must happen, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) static NEVER: LazyLock<Interrupt> = LazyLock::new(Interrupt::new);

/// What the tests load.
const SCRIPT: &str = "CREATE TABLE account (id INT PRIMARY KEY, amount INT NOT NULL);\n\
                      INSERT INTO account VALUES (1, 10), (2, 20), (3, 30);\n";

/// Numbers and amounts of accounts.
pub(crate) type Accounts = Vec<(i64, i64)>;

/// A folder for what servers print and for the study's files.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    /// Where anybody may enter, and paths are short.
    pub(crate) fn new() -> Place {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new().prefix("database-test-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Place { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A run that has yet to begin.
    pub(crate) fn databases(&self) -> Databases {
        Databases::new(&launcher(), &self.path("logs"))
    }

    /// A database with three accounts, loaded by `script` after them; none, said aloud, where its
    /// programs are not installed.
    pub(crate) fn database(&self, engine: Engine, script: &str) -> Option<Database> {
        let file = self.path("load.sql");
        fs::write(&file, format!("{SCRIPT}{script}")).unwrap();
        let server = Server {
            on: None,
            listen: std::net::Ipv4Addr::LOCALHOST.into(),
            programs: if engine == Engine::Mysql { mysql_folder() } else { None },
            user: None,
            init: Vec::new(),
            data: None,
            snapshot: Snapshot::Copy,
            databases: vec![LOADED.to_owned()],
            roles: vec![SERVICE.to_owned()],
            password: None,
            migrate: None,
            port: free_port().unwrap(),
            cpus: None,
            ready_within: PATIENCE,
            stop_grace: PATIENCE,
        };
        let database = Database {
            name: "db".to_owned(),
            engine,
            origin: Origin::Started(Box::new(server)),
            settings: Vec::new(),
            dataset: Dataset::Scripts(vec![file]),
            warm: true,
            expected: Vec::new(),
        };
        match check(&database) {
            none if none.is_empty() => Some(database),
            faults => {
                assert!(faults.iter().all(|fault| fault.contains("was not found")), "{faults:?}");
                plimsoll_testkit::skipped(faults.join("; "));
                None
            }
        }
    }
}

pub(crate) fn launcher() -> Launcher {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_database-fixture"));
    Launcher { program, arguments: vec!["warden".to_owned()], run: String::new() }
}

/// The server of a database that is started.
pub(crate) fn server(database: &mut Database) -> &mut Server {
    match &mut database.origin {
        Origin::Started(server) => server,
        Origin::External(_) => panic!("it is external"),
    }
}

pub(crate) fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Starts what was prepared, and waits until it is ready.
pub(crate) fn start(prepared: &PreparedDatabase, place: &Place) -> Result<Running, DatabaseError> {
    let spec = prepared.system.as_ref().expect("the run starts it");
    let running = launcher().start(spec, &place.path("logs/db.log"))?;
    running.wait_ready(&NEVER)?;
    prepared.wait_ready(Some(&running), &place.path("logs/migrate.log"), &NEVER)?;
    Ok(running)
}

/// The accounts' numbers and amounts.
pub(crate) fn accounts(prepared: &PreparedDatabase) -> Accounts {
    let table = connect(prepared).query("SELECT id, amount FROM account ORDER BY id").unwrap();
    let number = |cell: &Option<String>| cell.as_ref().unwrap().parse().unwrap();
    table.rows.iter().map(|row| (number(&row[0]), number(&row[1]))).collect()
}

pub(crate) fn connect(prepared: &PreparedDatabase) -> Connection {
    Connection::open(&prepared.endpoint(Transport::Unix), CallLimits::timeout(PATIENCE)).unwrap()
}

/// Events that tell of data being made, without those of progress.
pub(crate) fn ready_events(events: &[Event]) -> Vec<bool> {
    let kept = |event: &Event| match event {
        Event::DataReady { kept, .. } => Some(*kept),
        _ => None,
    };
    events.iter().filter_map(kept).collect()
}

/// Command lines of all processes that name `path`.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let lines = all_processes().unwrap().flatten().filter_map(|process| Some(process.cmdline().ok()?.join(" ")));
    lines.filter(|line| line.contains(text)).collect()
}

/// All texts below a folder that have `text`.
pub(crate) fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(text) {
            found.push(path);
        }
    }
    found
}

/// Names of what lies in a folder.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
