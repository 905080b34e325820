//! The differences between engines: command lines, and the preparation of loaded data.

mod mariadb;
mod mysql;
mod postgresql;

use crate::account::Account;
use crate::error::DatabaseError;
use crate::programs::Programs;
use plimsoll_model::database::{Database, Engine, FROM_TEMPLATE, Server};
use plimsoll_model::storage::Secret;
use plimsoll_model::system::StopSignal;
use plimsoll_sql::{Connection, SqlError, TextRows};
use plimsoll_system::random_text;
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// The database user of a run.
pub(crate) const USER: &str = "plimsoll";

/// An installed server, and the user that runs it.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    pub(crate) engine: Engine,
    pub(crate) programs: Programs,
    /// `PostgreSQL 15.18`.
    pub(crate) version: String,
    pub(crate) user: Account,
    /// The study's arguments for initialising the data.
    pub(crate) init: Vec<String>,
}

/// The data folder of a server, and its addresses.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    /// The folder of its UNIX socket.
    pub(crate) sockets: PathBuf,
    /// The address at which it listens by TCP.
    pub(crate) listen: IpAddr,
    pub(crate) port: u16,
}

/// A setting: name and value.
pub(crate) type Setting = (String, String);

impl Installation {
    /// Finds the installation that the study asks for.
    pub(crate) fn find(engine: Engine, server: &Server) -> Result<Installation, Vec<String>> {
        let user = Account::find(server.user.as_deref());
        let programs = Programs::find(engine, server.programs.as_deref());
        let (user, programs) = match (user, programs) {
            (Ok(user), Ok(programs)) => (user, programs),
            (user, programs) => return Err(user.err().into_iter().chain(programs.err()).collect()),
        };
        user.check_can_enter(&programs.server).map_err(|fault| vec![fault])?;
        let version = programs.version(engine).map_err(|fault| vec![fault])?;
        let installation = Installation { engine, programs, version, user, init: server.init.clone() };
        if engine == Engine::Mysql {
            mysql::check(&installation).map_err(|fault| vec![fault])?;
        }
        Ok(installation)
    }

    /// The command that initialises the data in `place`, an empty folder. `password` is the file with the user's
    /// password.
    pub(crate) fn initialise(&self, place: &Place, password: &Path) -> Vec<String> {
        let command = match self.engine {
            Engine::Postgresql => postgresql::initialise(self, place, password),
            Engine::Mariadb => mariadb::initialise(self, place),
            Engine::Mysql => mysql::initialise(self, place),
        };
        self.as_user(command)
    }

    /// The command that serves the data for loading: fast, without any safety. `first` is the file with the
    /// first statements.
    pub(crate) fn serve_to_load(&self, place: &Place, first: &Path) -> Vec<String> {
        self.as_user(match self.engine {
            Engine::Postgresql => postgresql::serve(self, place, &postgresql::settings_to_load(self.number())),
            Engine::Mariadb => mariadb::serve(self, place, &[], &mariadb::settings_to_load(first)),
            Engine::Mysql => mariadb::serve(self, place, mysql::OWN_TO_LOAD, &mariadb::settings_to_load(first)),
        })
    }

    /// The command that serves the data for a trial.
    pub(crate) fn serve(&self, place: &Place, settings: &[Setting]) -> Vec<String> {
        self.as_user(match self.engine {
            Engine::Postgresql => postgresql::serve(self, place, settings),
            Engine::Mariadb => mariadb::serve(self, place, &[], settings),
            Engine::Mysql => mariadb::serve(self, place, mysql::OWN, settings),
        })
    }

    /// A command that reads the settings and ends, without any data.
    pub(crate) fn try_settings(&self, settings: &[Setting]) -> Vec<String> {
        self.as_user(match self.engine {
            Engine::Postgresql => postgresql::try_settings(self, settings),
            Engine::Mariadb => mariadb::try_settings(self, settings),
            Engine::Mysql => mysql::try_settings(self, settings),
        })
    }

    /// The content of the file that [`Installation::initialise`] or [`Installation::serve_to_load`] reads.
    pub(crate) fn init_file_content(&self, password: &Secret) -> String {
        match self.engine {
            Engine::Postgresql => password.0.clone(),
            Engine::Mariadb | Engine::Mysql => mariadb::first_statements(password),
        }
    }

    /// Writes the file that says who may log in from where, if a server at this place takes logins from other hosts and has
    /// such a file.
    pub(crate) fn write_access(&self, place: &Place) -> Result<(), DatabaseError> {
        if self.engine != Engine::Postgresql || place.listen.is_loopback() {
            return Ok(());
        }
        let file = postgresql::access_file(place);
        std::fs::write(&file, postgresql::ACCESS).map_err(DatabaseError::io("write", &file))?;
        self.user.give(&file).map_err(DatabaseError::io("give away", &file))
    }

    fn as_user(&self, command: Vec<String>) -> Vec<String> {
        self.user.prefix().into_iter().chain(command).collect()
    }

    /// 15, 18 and 0 of `PostgreSQL 15.18`.
    pub(crate) fn number(&self) -> [u32; 3] {
        let mut numbers = self.version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
        [(); 3].map(|()| numbers.next().unwrap_or(0))
    }
}

/// The UNIX socket of a server at `place`.
pub(crate) fn socket(engine: Engine, place: &Place) -> PathBuf {
    match engine {
        Engine::Postgresql => place.sockets.join(format!(".s.PGSQL.{}", place.port)),
        Engine::Mariadb | Engine::Mysql => place.sockets.join("socket"),
    }
}

/// The database that every new server has.
pub(crate) fn first_database(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb | Engine::Mysql => "mysql",
    }
}

/// The signal for an orderly shutdown that does not wait for clients.
pub(crate) fn stop_signal(engine: Engine) -> StopSignal {
    match engine {
        // "Fast shutdown". Its backends, each in a session of its own, do not get the signal.
        Engine::Postgresql => StopSignal::Int,
        Engine::Mariadb | Engine::Mysql => StopSignal::Term,
    }
}

/// Makes empty databases for loading, and removes other users and databases of a new server.
pub(crate) fn make_databases(connection: &mut Connection, names: &[String]) -> Result<(), SqlError> {
    match connection.engine() {
        Engine::Postgresql => postgresql::make_databases(connection, names),
        Engine::Mariadb | Engine::Mysql => mariadb::make_databases(connection, names),
    }
}

/// Lets these users log in with the password. Makes those that are missing; the first has all rights, and the others
/// those that the study's SQL grants them.
pub(crate) fn let_in(connection: &mut Connection, roles: &[String], password: &Secret) -> Result<(), SqlError> {
    match connection.engine() {
        Engine::Postgresql => postgresql::let_in(connection, roles, password),
        Engine::Mariadb | Engine::Mysql => mariadb::let_in(connection, roles, password),
    }
}

/// Brings loaded data into the state that it would have after a long idle time.
pub(crate) fn settle(connection: &mut Connection) -> Result<(), SqlError> {
    match connection.engine() {
        Engine::Postgresql => postgresql::settle(connection),
        Engine::Mariadb | Engine::Mysql => mariadb::settle(connection),
    }
}

/// Removes files that would differ between trials, once the loading server has ended.
pub(crate) fn tidy(engine: Engine, data: &Path) {
    if engine != Engine::Postgresql {
        // The list of pages to be read again at the start: trials begin with an empty cache.
        let _ = std::fs::remove_file(data.join("ib_buffer_pool"));
    }
}

/// Copies the trial's database from the template, over a connection to another database.
pub(crate) fn copy_template(connection: &mut Connection, template: &str, version: [u32; 3]) -> Result<(), SqlError> {
    connection.batch(&format!("DROP DATABASE IF EXISTS {FROM_TEMPLATE}"))?;
    // Before 15, files were always copied; since then there are two strategies.
    let strategy = if version >= [15, 0, 0] { " STRATEGY = FILE_COPY" } else { "" };
    connection.batch(&format!("CREATE DATABASE {FROM_TEMPLATE} TEMPLATE \"{template}\"{strategy}"))
}

/// Asks one query in a transaction that cannot write.
pub(crate) fn read_only(connection: &mut Connection, query: &str) -> Result<TextRows, SqlError> {
    // A second statement could end the transaction: servers prepare one alone.
    connection.prepare(query)?;
    match connection.engine() {
        Engine::Postgresql => connection.batch("BEGIN READ ONLY")?,
        Engine::Mariadb | Engine::Mysql => {
            // Before MySQL 5.6.5 there is none, and what is written is taken back.
            let begun = connection.batch("START TRANSACTION READ ONLY");
            begun.or_else(|_| connection.batch("START TRANSACTION"))?;
        }
    }
    let rows = connection.query(query);
    connection.batch("ROLLBACK")?;
    rows
}

/// Reads all tables and their indexes. `may_add` allows adding an extension for that.
pub(crate) fn warm(connection: &mut Connection, may_add: bool) -> Result<(), SqlError> {
    match connection.engine() {
        Engine::Postgresql => postgresql::warm(connection, may_add),
        Engine::Mariadb | Engine::Mysql => mariadb::warm(connection),
    }
}

/// Writes changed pages, so that they are not written during the load.
pub(crate) fn write_changes(connection: &mut Connection) -> Result<(), SqlError> {
    match connection.engine() {
        Engine::Postgresql => connection.batch("CHECKPOINT"),
        Engine::Mariadb | Engine::Mysql => Ok(()), // reading changes no pages
    }
}

/// Faults of settings and arguments that would move the server, or some of its files, out of the folder of the
/// run.
pub(crate) fn check_settings(database: &Database, server: &Server) -> Vec<String> {
    let (settings, arguments, places) = match database.engine {
        Engine::Postgresql => (postgresql::OWN_SETTINGS, postgresql::OWN_ARGUMENTS, postgresql::PLACES),
        Engine::Mariadb | Engine::Mysql => (mariadb::OWN_SETTINGS, mariadb::OWN_ARGUMENTS, mariadb::PLACES),
    };
    let name = &database.name;
    let of_settings = database.settings.iter().filter_map(|(setting, value)| {
        let why = refusal(settings.contains(&plain(setting).as_str()), places, setting, value)?;
        Some(format!("the setting `{setting}` of the database `{name}` {why}"))
    });
    let of_arguments = server.init.iter().filter_map(|argument| {
        let (asked, value) = argument.split_once('=').unwrap_or((argument, ""));
        let is_own = arguments.iter().any(|own| asked == *own || (own.len() == 2 && asked.starts_with(own)));
        let why = refusal(is_own, places, asked.trim_start_matches('-'), value)?;
        Some(format!("the argument `{argument}` in `init` of the database `{name}` {why}"))
    });
    of_settings.chain(of_arguments).collect()
}

/// The reason why a study may not ask for this. `places` are the settings with paths of files.
fn refusal(is_own: bool, places: &[&str], name: &str, value: &str) -> Option<&'static str> {
    if is_own {
        return Some("is Plimsoll's own to choose; leave it out");
    }
    (places.contains(&plain(name).as_str()) && leads_out(value)).then_some(
        "leads out of the folder of its data, to where another server may have files, and where trials would find what \
         others left; leave it out",
    )
}

/// True if a path, or one of a list, is not below the data folder.
fn leads_out(value: &str) -> bool {
    let mut paths = value.split([';', ',']).map(|path| Path::new(path.trim()));
    paths.any(|path| path.is_absolute() || path.components().any(|part| part == Component::ParentDir))
}

/// A setting's name as the server shows it.
pub(crate) fn plain(setting: &str) -> String {
    setting.to_lowercase().replace('-', "_")
}

/// A password that nobody can guess, and that needs no quoting.
pub(crate) fn new_password() -> Result<Secret, DatabaseError> {
    random_text(32).map(Secret).map_err(DatabaseError::io("read", Path::new("/dev/urandom")))
}

/// Writes a file that only its user can read.
pub(crate) fn write_secret(path: &Path, text: &str, user: Option<&Account>) -> Result<(), DatabaseError> {
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        user.map_or(Ok(()), |user| user.give(path))
    };
    write().map_err(DatabaseError::io("write", path))
}

/// The first column of a query: quoted identifiers, or statements.
fn names_of(connection: &mut Connection, sql: &str) -> Result<Vec<String>, SqlError> {
    let rows = connection.query(sql)?.rows;
    Ok(rows.into_iter().filter_map(|mut row| row.swap_remove(0)).collect())
}
