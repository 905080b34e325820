//! Makes the data of a database: initialises it, loads it, and brings it to rest.

use crate::engine::{self, Installation, Place, USER, first_database};
use crate::error::DatabaseError;
use crate::ready::{ReadyWait, connect, limits};
use crate::{data_folder, disk};
use plimsoll_model::database::{Address, Condition, Database, Dataset, Endpoint, Server};
use plimsoll_model::event::Event;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, SystemSpec};
use plimsoll_sql::{Connection, SqlError};
use plimsoll_system::{Exit, Interrupt, Launcher, Running};
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time for a server to end after a load, when it writes all changes that it has kept in memory.
const STOP_GRACE: Duration = Duration::from_secs(1800);
/// The time for a server to get ready.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// The timeout of one statement that brings loaded data to rest.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// The shortest time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// A disk with less free bytes is full: servers keep files of this size.
const FULL: u64 = 16 << 20;

/// Makes the data of one database.
pub(crate) struct DataBuilder<'a> {
    pub(crate) launcher: &'a Launcher,
    pub(crate) logs: &'a Path,
    pub(crate) database: &'a Database,
    pub(crate) server: &'a Server,
    pub(crate) installation: &'a Installation,
    pub(crate) interrupt: &'a Interrupt,
}

impl DataBuilder<'_> {
    /// Makes the data in `folder`, which Plimsoll has marked, and returns the password of its user.
    pub(crate) fn make(
        &self,
        folder: &Path,
        sockets: &Path,
        on_data: &mut dyn FnMut(&Event),
    ) -> Result<Secret, DatabaseError> {
        let user = &self.installation.user;
        let data = data_folder::snapshot_in(folder);
        user.make_folder(&data, 0o700).map_err(DatabaseError::io("make", &data))?;
        user.check_can_enter(&data).map_err(DatabaseError::Failed)?;
        let place =
            Place { data, sockets: sockets.to_owned(), listen: Ipv4Addr::LOCALHOST.into(), port: self.server.port };
        let password = engine::new_password()?;
        let first = InitFile::write(sockets, &self.installation.init_file_content(&password), self.installation)?;
        self.report("initialising", 0.0, on_data);
        self.initialise(&place, &first.0).map_err(|error| self.explain_full_disk(error, folder))?;
        let held =
            self.load(&place, first, &password, on_data).map_err(|error| self.explain_full_disk(error, folder))?;
        data_folder::write_conditions(folder, &held)?;
        engine::tidy(self.database.engine, &place.data);
        Ok(password)
    }

    fn initialise(&self, place: &Place, first: &Path) -> Result<(), DatabaseError> {
        let spec = self.spec(place, self.installation.initialise(place, first));
        // What earlier data, or the server that loaded it, has written before is no reason.
        let before = fs::metadata(self.log()).map_or(0, |log| log.len());
        let ended = self.launcher.run(&spec, "initialising", &spec.start, None, &self.log(), self.interrupt);
        ended.map(drop).map_err(|error| match self.first_error_in_log(before) {
            // The last lines only advise how to start servers by hand.
            Some(line) => DatabaseError::from(error).with_prefix(&line),
            None => error.into(),
        })
    }

    /// The first line with an error behind the first `before` bytes of the log.
    fn first_error_in_log(&self, before: u64) -> Option<String> {
        let log = fs::read(self.log()).ok()?;
        let log = String::from_utf8_lossy(log.get(before as usize..)?);
        Some(log.lines().find(|line| line.contains("ERROR"))?.trim().to_owned())
    }

    fn load(
        &self,
        place: &Place,
        first: InitFile,
        password: &Secret,
        on_data: &mut dyn FnMut(&Event),
    ) -> Result<Vec<Condition>, DatabaseError> {
        let spec = self.spec(place, self.installation.serve_to_load(place, &first.0));
        let running = self.launcher.start(&spec, &self.log())?;
        let endpoint = |database: &str| endpoint(self.database, place, password, database);
        let waiting = ReadyWait { running: Some(&running), within: READY_WITHIN, interrupt: self.interrupt };
        let mut connection = connect(&endpoint(first_database(self.database.engine)), &waiting)?;
        drop(first); // the server has read it before it accepts connections
        let failed = |action| DatabaseError::sql(&self.database.name, action);
        // Nobody is told this password: each start gives the roles another one.
        let unknown = engine::new_password()?;
        let made = engine::make_databases(&mut connection, &self.server.databases)
            .and_then(|()| engine::let_in(&mut connection, &self.server.roles, &unknown));
        if self.interrupt.is_set() {
            return Err(DatabaseError::Interrupted);
        }
        made.map_err(failed("ready the server"))?;
        drop(connection);
        let loaded = endpoint(&self.server.databases[0]);
        let held = self.fill(&loaded, &running, on_data)?;
        self.report("bringing to rest", 1.0, on_data);
        self.settle(&loaded).map_err(|error| self.with_server(&error, "bring the data to rest", &running))?;
        if self.interrupt.is_set() {
            return Err(DatabaseError::Interrupted);
        }
        self.stop(running)?;
        Ok(held)
    }

    fn fill(
        &self,
        endpoint: &Endpoint,
        running: &Running,
        on_data: &mut dyn FnMut(&Event),
    ) -> Result<Vec<Condition>, DatabaseError> {
        let mut reported = Instant::now();
        let of = match &self.database.dataset {
            Dataset::Scripts(_) | Dataset::Empty => String::new(), // the progress names the file
            tables => format!(", {tables}"),
        };
        let mut progress = |doing: &str, done: f64| {
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                self.report(&format!("{doing}{of}"), done, on_data);
            }
        };
        let loaded = plimsoll_oltp::load(&self.database.dataset, endpoint, self.interrupt.flag(), &mut progress);
        loaded.map_err(|error| self.with_server(&error, "load the data", running))
    }

    fn settle(&self, endpoint: &Endpoint) -> Result<(), SqlError> {
        let limits = limits(SETTLE_TIMEOUT, self.interrupt);
        engine::settle(&mut Connection::open(endpoint, limits)?)
    }

    fn stop(&self, running: Running) -> Result<(), DatabaseError> {
        let last = running.last_output();
        let stopped = running.stop()?;
        if stopped.exit == Some(Exit::Code(0)) && stopped.killed == 0 {
            return Ok(());
        }
        Err(DatabaseError::Failed(format!(
            "the server of the database `{}` did not end in order after its data was loaded; {last}",
            self.database.name
        )))
    }

    /// The error of the client, and how the server ended if it did.
    fn with_server(&self, error: &SqlError, action: &str, running: &Running) -> DatabaseError {
        if self.interrupt.is_set() {
            return DatabaseError::Interrupted;
        }
        let ended = running.check().err().map(|ended| format!("; {ended}")).unwrap_or_default();
        DatabaseError::Failed(format!("failed to {action} of the database `{}`: {error}{ended}", self.database.name))
    }

    /// Adds to a failure that the disk was full, if it was.
    fn explain_full_disk(&self, error: DatabaseError, folder: &Path) -> DatabaseError {
        let free = disk::free_bytes(folder).unwrap_or(u64::MAX);
        let text = error.to_string();
        let full = [
            "No space left",
            "Disk full",
            "SQLSTATE 53100",
            "is full",
            "rrcode: 28",
            "errno: 28",
            "error number 28",
            "with error 28",
        ];
        if free > FULL && !full.iter().any(|words| text.contains(words)) {
            return error;
        }
        error.with_prefix(&format!(
            "no space: the disk of {} is full while the data of the database `{}` is made; free some of it, or let \
             `data` name a folder on another disk",
            folder.display(),
            self.database.name
        ))
    }

    fn spec(&self, place: &Place, command: Vec<String>) -> SystemSpec {
        SystemSpec {
            name: self.database.name.clone(),
            on: None,
            dir: place.sockets.clone(),
            build: None,
            start: CommandLine(command),
            containers: None,
            inherit: None,
            env: BTreeMap::new(),
            ready: Ready { probe: Probe::Started, within: READY_WITHIN },
            stop: StopPolicy { signal: engine::stop_signal(self.database.engine), grace: STOP_GRACE },
            cpus: None,
            version: None,
            port: Some(place.port),
            waits: BTreeMap::new(),
            metrics: None,
            files: None,
        }
    }

    fn log(&self) -> PathBuf {
        self.logs.join(format!("data-{}.log", self.database.name))
    }

    fn report(&self, doing: &str, done: f64, on_data: &mut dyn FnMut(&Event)) {
        on_data(&Event::DataProgress { database: self.database.name.clone(), doing: doing.to_owned(), done });
    }
}

/// The endpoint of the server at `place` by its UNIX socket.
pub(crate) fn endpoint(database: &Database, place: &Place, password: &Secret, name: &str) -> Endpoint {
    Endpoint {
        engine: database.engine,
        address: Address::Unix(engine::socket(database.engine, place)),
        user: USER.to_owned(),
        password: Some(password.clone()),
        database: name.to_owned(),
    }
}

/// The file with the password that a server reads at its first start. It is removed when dropped.
struct InitFile(PathBuf);

impl InitFile {
    fn write(folder: &Path, words: &str, installation: &Installation) -> Result<InitFile, DatabaseError> {
        let first = InitFile(folder.join("first"));
        engine::write_secret(&first.0, words, Some(&installation.user))?;
        Ok(first)
    }
}

impl Drop for InitFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // it is removed with its folder at the latest
    }
}
