//! Servers of PostgreSQL, MariaDB and MySQL, each with data of its own in a folder of its own.
//!
//! They listen on a UNIX socket and on `127.0.0.1`, have one user, and sync nothing to disk. PostgreSQL
//! requires the password by TCP only, the others always. MySQL is taken from the folder that
//! `PLIMSOLL_MYSQL` names, or from the search path.
//!
//! ```no_run
//! // None, with a line `SKIPPED`, if the programs are not installed.
//! if let Some(server) = plimsoll_testkit::database::postgresql() {
//!     let (_by_socket, _by_tcp) = (server.unix(), server.tcp());
//! }
//! ```

use crate::port::ReservedPort;
use crate::skip::skipped;
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_model::storage::Secret;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// The user of all servers.
pub const USER: &str = "tester";

/// The user's password.
pub const PASSWORD: &str = "correct horse";

/// The timeout for starting a server, long enough for a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(20);

/// The folders of PostgreSQL's programs in distributions, newest first, beside the search path.
const POSTGRESQL: [&str; 6] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/14/bin",
    "/usr/bin",
];

/// The same for MariaDB.
const MARIADB: [&str; 3] = ["/usr/sbin", "/usr/libexec", "/usr/bin"];

/// The variable that names the folder of a MySQL.
const MYSQL: &str = "PLIMSOLL_MYSQL";

/// The SQL files of the system tables for a MySQL that does not create them itself.
const SYSTEM_TABLES: [&str; 2] = ["share/mysql_system_tables.sql", "share/mysql_system_tables_data.sql"];

/// A running server. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Database {
    engine: Engine,
    folder: Folder,
    port: ReservedPort,
    child: Child,
}

/// A new PostgreSQL server.
#[must_use]
pub fn postgresql() -> Option<Database> {
    start(Engine::Postgresql)
}

/// A new MariaDB server.
#[must_use]
pub fn mariadb() -> Option<Database> {
    start(Engine::Mariadb)
}

/// A new MySQL server.
#[must_use]
pub fn mysql() -> Option<Database> {
    start(Engine::Mysql)
}

/// The folder of the MySQL for tests.
#[must_use]
pub fn mysql_folder() -> Option<PathBuf> {
    mysql_server().ok().map(|server| base(&server).to_owned())
}

/// A server that all tests running at the same time share.
#[must_use]
pub fn shared(engine: Engine) -> Option<Arc<Database>> {
    static SHARED: [Mutex<Weak<Database>>; 3] = [const { Mutex::new(Weak::new()) }; 3];
    // A test that panicked while it started a server must not fail the others by the poisoned lock.
    let mut shared = SHARED[engine as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    shared.upgrade().or_else(|| {
        let server = Arc::new(start(engine)?);
        *shared = Arc::downgrade(&server);
        Some(server)
    })
}

fn start(engine: Engine) -> Option<Database> {
    match Programs::find(engine) {
        Ok(programs) => Some(Database::start(engine, &programs).unwrap_or_else(|reason| panic!("{engine}: {reason}"))),
        Err(reason) => {
            skipped(reason);
            None
        }
    }
}

impl Database {
    /// The endpoint of its UNIX socket.
    #[must_use]
    pub fn unix(&self) -> Endpoint {
        let name = match self.engine {
            Engine::Postgresql => format!(".s.PGSQL.{}", self.port.number()),
            Engine::Mariadb | Engine::Mysql => "socket".to_owned(),
        };
        self.endpoint(Address::Unix(self.folder.0.join(name)))
    }

    /// The endpoint of its TCP port.
    #[must_use]
    pub fn tcp(&self) -> Endpoint {
        self.endpoint(Address::Tcp { host: "127.0.0.1".to_owned(), port: self.port.number() })
    }

    /// The process of the server.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server like a crash, and waits for its end.
    pub fn kill(&mut self) {
        // SIGKILL would leave the children of PostgreSQL to notice it by themselves.
        let signal = match self.engine {
            Engine::Postgresql => Signal::QUIT,
            Engine::Mariadb | Engine::Mysql => Signal::KILL,
        };
        if let (Ok(None), Some(process)) = (self.child.try_wait(), Pid::from_raw(self.child.id() as i32)) {
            // It may have ended by itself.
            let _ = kill_process(process, signal);
        }
        let _ = self.child.wait();
    }

    fn endpoint(&self, address: Address) -> Endpoint {
        let database = match self.engine {
            Engine::Postgresql => "postgres",
            Engine::Mariadb | Engine::Mysql => "test",
        };
        Endpoint {
            engine: self.engine,
            address,
            user: USER.to_owned(),
            password: Some(Secret(PASSWORD.to_owned())),
            database: database.to_owned(),
        }
    }

    fn start(engine: Engine, programs: &Programs) -> Result<Database, String> {
        let folder = Folder::new(programs.user).map_err(|error| format!("no folder for its data: {error}"))?;
        programs.initialise(&folder.0)?;
        let port = ReservedPort::new().map_err(|error| format!("no port: {error}"))?;
        let child = programs.serve(&folder.0, port.number())?;
        let mut server = Database { engine, folder, port, child };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        while !self.is_ready() {
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || begin.elapsed() > START_TIMEOUT {
                return Err(format!("is not ready; it said: {}", self.folder.said()));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        match self.engine {
            Engine::Postgresql => {
                let state = fs::read_to_string(self.folder.0.join("data/postmaster.pid")).unwrap_or_default();
                state.lines().nth(7).is_some_and(|line| line.trim() == "ready")
            }
            // It greets clients only after it has run the file with the first statements.
            Engine::Mariadb | Engine::Mysql => UnixStream::connect(self.folder.0.join("socket"))
                .is_ok_and(|mut stream| stream.read_exact(&mut [0; 5]).is_ok()),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder that is removed when dropped.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new(user: Option<User>) -> io::Result<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("database-{:x}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let folder = Folder(folder);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755))?;
        if let Some(user) = user {
            chown(&folder.0, Some(user.id), Some(user.group))?;
        }
        Ok(folder)
    }

    /// The end of what the server printed.
    fn said(&self) -> String {
        let said = fs::read_to_string(self.0.join("said")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        // MySQL lists some twenty parts that it ends after it has said why.
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let gone = fs::remove_dir_all(&self.0);
        assert!(gone.is_ok() || std::thread::panicking(), "{} stays: {gone:?}", self.0.display());
    }
}

/// The user who runs a server in place of root.
#[derive(Clone, Copy, Debug)]
struct User {
    id: u32,
    group: u32,
}

impl User {
    /// `nobody` if root runs the tests; `None` for anybody else.
    fn of_server() -> Result<Option<User>, String> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let id = |of: &str| {
            let output = Command::new("id").args([of, "nobody"]).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        };
        match (id("-u"), id("-g")) {
            (Some(id), Some(group)) => Ok(Some(User { id, group })),
            _ => Err("there is no user `nobody` who could run a database for root".to_owned()),
        }
    }
}

/// The programs of a server, and who runs them.
struct Programs {
    initialise: PathBuf,
    serve: PathBuf,
    engine: Engine,
    user: Option<User>,
}

impl Programs {
    fn find(engine: Engine) -> Result<Programs, String> {
        let find = |name: &str, folders: &[&str]| {
            let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
            found.ok_or_else(|| format!("no {name} in {}: {engine} is not installed", folders.join(", ")))
        };
        let (initialise, serve) = match engine {
            Engine::Postgresql => (find("initdb", &POSTGRESQL)?, find("postgres", &POSTGRESQL)?),
            Engine::Mariadb => (find("mariadb-install-db", &["/usr/bin"])?, find("mariadbd", &MARIADB)?),
            Engine::Mysql => mysql_server().map(|server| (server.clone(), server))?,
        };
        Ok(Programs { initialise, serve, engine, user: User::of_server()? })
    }

    fn command(&self, program: &Path, folder: &Path) -> Result<Command, String> {
        let said = File::options().create(true).append(true).open(folder.join("said"));
        let said = said.map_err(|error| format!("no file for what it says: {error}"))?;
        let errors = said.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.current_dir(folder).stdin(Stdio::null()).stdout(said).stderr(errors);
        // MariaDB removes the temporary tables of other servers in the same folder.
        command.env("TMPDIR", folder);
        if let Some(user) = self.user {
            command.uid(user.id).gid(user.group);
        }
        Ok(command)
    }

    fn initialise(&self, folder: &Path) -> Result<(), String> {
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).map_err(|error| error.to_string());
        let mut command = self.command(&self.initialise, folder)?;
        match self.engine {
            Engine::Postgresql => {
                write("password", PASSWORD)?;
                command.args(["--pgdata=data", "--username", USER, "--pwfile=password", "--no-sync", "--no-locale"]);
                command.args(["--encoding=UTF8", "--auth-local=trust", "--auth-host=scram-sha-256"]);
            }
            Engine::Mysql => {
                write("first.sql", &first_statements())?;
                self.make_data(&mut command, folder)?;
            }
            Engine::Mariadb => {
                write("first.sql", &first_statements())?;
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.arg(format!("--datadir={}", folder.join("data").display()));
                command.arg("--innodb-log-file-size=16M");
            }
        }
        let status = command.status().map_err(|error| format!("{} does not start: {error}", self.initialise.display()));
        if status?.success() {
            return Ok(());
        }
        let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
        Err(format!("{} fails: {said}", self.initialise.display()))
    }

    /// Creates the data of MySQL. Since 5.7 the server does that itself; before, it reads SQL files.
    fn make_data(&self, command: &mut Command, folder: &Path) -> Result<(), String> {
        let base = base(&self.serve);
        command.args(["--no-defaults", "--loose-innodb-log-file-size=16M"]);
        command.args([format!("--basedir={}", base.display()), format!("--datadir={}", folder.join("data").display())]);
        let output = Command::new(&self.serve).arg("--version").output().map_err(|error| error.to_string())?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        if !version.contains("Ver 5.5.") && !version.contains("Ver 5.6.") {
            command.arg("--initialize-insecure");
            return Ok(());
        }
        let tables = SYSTEM_TABLES.map(|file| fs::read_to_string(base.join(file)));
        let [tables, rows] = tables.map(|sql| sql.map_err(|error| format!("no SQL of the system: {error}")));
        let sql = folder.join("system.sql");
        let make = || {
            fs::write(&sql, ["USE mysql;\n", &tables?, &rows?].concat()).map_err(|error| error.to_string())?;
            for made in ["data", "data/mysql"].map(|name| folder.join(name)) {
                fs::create_dir(&made).map_err(|error| error.to_string())?;
                self.user
                    .map_or(Ok(()), |user| chown(&made, Some(user.id), Some(user.group)))
                    .map_err(|error| error.to_string())?;
            }
            File::open(&sql).map_err(|error| error.to_string())
        };
        command.arg("--bootstrap").stdin(make()?);
        Ok(())
    }

    fn serve(&self, folder: &Path, port: u16) -> Result<Child, String> {
        let mut command = self.command(&self.serve, folder)?;
        let path = |name: &str| folder.join(name).display().to_string();
        match self.engine {
            Engine::Postgresql => {
                let sockets = format!("unix_socket_directories={}", folder.display());
                command.args(["-D", "data", "-p", &port.to_string(), "-c", &sockets]);
                for setting in ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=64MB"] {
                    command.args(["-c", setting]);
                }
            }
            Engine::Mariadb | Engine::Mysql => {
                command.args(["--no-defaults", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M"]);
                command.args([
                    "--loose-innodb-log-file-size=16M",
                    "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-doublewrite=0",
                ]);
                if self.engine == Engine::Mysql {
                    command.arg(format!("--basedir={}", base(&self.serve).display()));
                    command.args([
                        "--loose-mysqlx=OFF",
                        "--secure-file-priv=",
                        "--max-allowed-packet=16M",
                        "--skip-log-bin",
                    ]);
                }
                command.args([format!("--datadir={}", path("data")), format!("--socket={}", path("socket"))]);
                command.args([format!("--port={port}"), format!("--init-file={}", path("first.sql"))]);
                command.arg(format!("--pid-file={}", path("process")));
            }
        }
        command.spawn().map_err(|error| format!("{} does not start: {error}", self.serve.display()))
    }
}

/// The database and the user of MariaDB and MySQL, each statement in a line of its own.
fn first_statements() -> String {
    format!(
        "CREATE DATABASE IF NOT EXISTS test;\n\
         CREATE USER '{USER}'@'localhost' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO '{USER}'@'localhost' WITH GRANT OPTION;\n"
    )
}

/// The program of the MySQL server for tests.
fn mysql_server() -> Result<PathBuf, String> {
    let named = std::env::var_os(MYSQL);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = match &named {
        Some(folder) => vec![Path::new(folder).join("bin")],
        None => std::env::split_paths(&path).chain(MARIADB.map(PathBuf::from)).collect(),
    };
    let servers = folders.iter().map(|folder| folder.join("mysqld"));
    // MariaDB has a program of this name too, and another user cannot run a program that only root may enter.
    let mut servers = servers.filter(|server| {
        server.canonicalize().is_ok_and(|file| !file.ends_with("mariadbd") && file.ancestors().all(is_open))
    });
    servers.next().ok_or_else(|| {
        let place = named.map_or("the search path".to_owned(), |folder| folder.display().to_string());
        format!("no mysqld of MySQL in {place} that everybody may run: {MYSQL} can name the folder of one")
    })
}

/// True if everybody may enter this folder, or run this file.
fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
}

/// The folder of a whole server.
fn base(server: &Path) -> &Path {
    server.ancestors().nth(2).unwrap_or(server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn starts_and_leaves_nothing(server: Option<Database>) {
        let Some(server) = server else { return };
        let (Address::Unix(path), Address::Tcp { host, port }) = (server.unix().address, server.tcp().address) else {
            panic!("the addresses are of another kind");
        };
        assert!(UnixStream::connect(&path).is_ok(), "nobody answers at {}", path.display());
        assert!(TcpStream::connect((host.as_str(), port)).is_ok(), "nobody answers at {host}:{port}");
        drop(server);
        assert!(!path.exists(), "{} is still there", path.display());
        assert!(TcpStream::connect((host.as_str(), port)).is_err(), "{host}:{port} still answers");
    }

    #[test]
    fn postgresql_starts_and_leaves_nothing() {
        starts_and_leaves_nothing(postgresql());
    }

    #[test]
    fn mariadb_starts_and_leaves_nothing() {
        starts_and_leaves_nothing(mariadb());
    }

    #[test]
    fn mysql_starts_and_leaves_nothing() {
        starts_and_leaves_nothing(mysql());
    }

    #[test]
    fn tests_at_the_same_time_share_a_server() {
        let Some(first) = shared(Engine::Mariadb) else { return };
        let second = shared(Engine::Mariadb).expect("the first is there");
        assert_eq!(first.process(), second.process());
    }
}
