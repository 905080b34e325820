//! The databases of a run, on the disk.

use crate::data_builder::{DataBuilder, endpoint};
use crate::data_folder::{Claim, Copy, DataFolder, check as check_folder, claim, made_from, release};
use crate::engine::{self, Installation, LOADED, RUN, first_database};
use crate::error::DatabaseError;
use crate::ready::{ReadyWait, connect};
use crate::rejected_settings::rejected_settings;
use crate::scratch::Scratch;
use crate::{external, settings, shared_memory, tables};
use plimsoll_model::database::{Address, Condition, Database, Endpoint, External, Origin, Server, Snapshot};
use plimsoll_model::event::Event;
use plimsoll_model::sql::Transport;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, SystemSpec};
use plimsoll_system::{Interrupt, Launcher, Running};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long an external server may take to answer.
const EXTERNAL_WITHIN: Duration = Duration::from_secs(10);

/// Receives the events of data that is being made: progress, and when it is ready.
pub type OnDataEvent<'a> = dyn FnMut(&Event) + 'a;

/// The databases of a run. Whatever was made for it, and is not to be kept, is removed when this is
/// dropped.
#[derive(Debug)]
pub struct Databases {
    launcher: Launcher,
    logs: PathBuf,
    scratch: Scratch,
    /// The data that is there, by the name of its database and what it was made from.
    homes: BTreeMap<(String, String), Arc<DataFolder>>,
    /// Passwords of external ones.
    passwords: Vec<Secret>,
}

impl Databases {
    /// For a run that starts servers with `launcher`, and writes what they print into files of
    /// `logs`.
    #[must_use]
    pub fn new(launcher: &Launcher, logs: &Path) -> Databases {
        Databases {
            launcher: launcher.clone(),
            logs: logs.to_owned(),
            scratch: Scratch::new(),
            homes: BTreeMap::new(),
            passwords: Vec::new(),
        }
    }

    /// The folder of everything that the run makes and does not keep. It exists once a database was
    /// prepared. [`remove_leftovers`](crate::remove_leftovers) removes it after a run that was killed.
    #[must_use]
    pub fn scratch_folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Passwords of the databases, which a bundle must not contain.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        self.homes.values().map(|home| home.password.clone()).chain(self.passwords.iter().cloned()).collect()
    }

    /// Prepares a database for a start. The first time, initialises and loads its data. Then restores
    /// the data, and composes the command that starts the server. Of an external server, only runs the
    /// study's restore command.
    ///
    /// # Errors
    /// Programs are missing, the folder is not Plimsoll's, the disk is full, a snapshot does not fit
    /// the study, …
    pub fn prepare(
        &mut self,
        database: &Database,
        interrupt: &Interrupt,
        on_data: &mut OnDataEvent<'_>,
    ) -> Result<PreparedDatabase, DatabaseError> {
        match &database.origin {
            Origin::Started(server) => self.prepare_started(database, server, interrupt, on_data),
            Origin::External(external) => self.prepare_external(database, external, interrupt),
        }
    }

    fn prepare_started(
        &mut self,
        database: &Database,
        server: &Server,
        interrupt: &Interrupt,
        on_data: &mut OnDataEvent<'_>,
    ) -> Result<PreparedDatabase, DatabaseError> {
        let first = |faults: Vec<String>| DatabaseError::failed(faults.join("; "));
        let installation = Installation::find(database.engine, server).map_err(first)?;
        let faults = engine::check_asked(database, server);
        if !faults.is_empty() {
            return Err(first(faults));
        }
        let making = DataBuilder {
            launcher: &self.launcher,
            logs: &self.logs,
            database,
            server,
            installation: &installation,
            interrupt,
        };
        let home = data_folder_of(&mut self.homes, &mut self.scratch, &making, on_data)?;
        if interrupt.is_set() {
            return Err(DatabaseError::Interrupted);
        }
        let begin = Instant::now();
        let (data, copy, how) = match server.snapshot {
            Snapshot::Copy => {
                let (copy, method) = home.copy(&installation)?;
                (copy.0.clone(), Some(copy), method.in_words())
            }
            Snapshot::Template => (home.snapshot(), None, "template database"),
        };
        let place = home.place(data, server.port);
        Ok(PreparedDatabase {
            system: Some(system(
                database,
                server,
                &installation,
                &home,
                installation.serve(&place, &database.settings),
            )),
            restored: Restored { how: how.to_owned(), seconds: begin.elapsed().as_secs_f64() },
            data_origin: if home.kept { "kept from an earlier run" } else { "initialised and loaded by the run" }
                .to_owned(),
            size: Some(home.size),
            database: database.clone(),
            endpoint: endpoint(database, &place, &home.password, if copy.is_some() { LOADED } else { RUN }),
            started: Some(StartedServer {
                port: server.port,
                data: place.data.clone(),
                within: server.ready_within,
                version: installation.number(),
                template_took: OnceLock::new(),
                _copy: copy,
                home,
            }),
        })
    }

    fn prepare_external(
        &mut self,
        database: &Database,
        external: &External,
        interrupt: &Interrupt,
    ) -> Result<PreparedDatabase, DatabaseError> {
        let password = external::password(database, external).map_err(DatabaseError::Failed)?;
        if let Some(password) = password.as_ref().filter(|password| !self.passwords.contains(password)) {
            self.passwords.push(password.clone());
        }
        let log = self.logs.join(format!("data-{}.log", database.name));
        let restored = external::restore(&self.launcher, database, external, &log, interrupt)?;
        Ok(PreparedDatabase {
            system: None,
            restored,
            data_origin: "external".to_owned(),
            size: None,
            database: database.clone(),
            endpoint: Endpoint { password, ..external.endpoint.clone() },
            started: None,
        })
    }
}

/// What would go wrong with a database, as far as can be told without starting a server or touching
/// any file: programs, the user of the operating system, the folder of its data, and settings that
/// the server does not take.
#[must_use]
pub fn check(database: &Database) -> Vec<String> {
    match &database.origin {
        Origin::Started(server) => {
            let mut faults = engine::check_asked(database, server);
            match Installation::find(database.engine, server) {
                Ok(installation) => {
                    faults.extend(check_data(database, server, &installation).err());
                    faults.extend(rejected_settings(database, &installation));
                }
                Err(found) => faults.extend(found),
            }
            faults
        }
        Origin::External(external) => external::password(database, external).err().into_iter().collect(),
    }
}

fn check_data(database: &Database, server: &Server, installation: &Installation) -> Result<(), String> {
    let made_from = made_from(installation, server, &database.dataset).map_err(|error| error.to_string())?;
    let Some(folder) = &server.data else { return Ok(()) };
    check_folder(folder, &made_from).map_err(|error| error.to_string())?;
    installation.user.check_can_enter(folder) // whose is another's is not to be opened to it
}

/// The data of a database: what the run has, what an earlier one has kept, or what is made now.
fn data_folder_of(
    homes: &mut BTreeMap<(String, String), Arc<DataFolder>>,
    scratch: &mut Scratch,
    making: &DataBuilder<'_>,
    on_data: &mut OnDataEvent<'_>,
) -> Result<Arc<DataFolder>, DatabaseError> {
    let (database, server) = (making.database, making.server);
    let made_from = made_from(making.installation, server, &database.dataset)?;
    let key = (database.name.clone(), format!("{:?} {:?} {made_from:?}", server.data, making.installation.programs));
    if let Some(home) = homes.get(&key) {
        return Ok(Arc::clone(home));
    }
    let begin = Instant::now();
    let own = scratch.folder()?;
    let sockets = own.join("s");
    making.installation.user.make_folder(&sockets, 0o755).map_err(DatabaseError::io("make", &sockets))?;
    let (folder, claim) = match &server.data {
        Some(data) => {
            let data = std::path::absolute(data).map_err(DatabaseError::io("find", data))?;
            let claim = claim(&data, &made_from)?;
            (data, claim)
        }
        None => (own, Claim::Empty { lock: None, made: true }),
    };
    let home = match claim {
        Claim::Kept { lock, size, password } => DataFolder::kept(folder, sockets, lock, size, password),
        Claim::Empty { lock, made } => {
            let data = making.make(&folder, &sockets, on_data);
            let home = data.and_then(|password| DataFolder::made(folder.clone(), sockets, lock, password, made_from));
            home.inspect_err(|_| release(&folder, made))?
        }
    };
    on_data(&Event::DataReady {
        database: database.name.clone(),
        kept: home.kept,
        took: begin.elapsed(),
        size: home.size,
    });
    let home = Arc::new(home);
    homes.insert(key, Arc::clone(&home));
    Ok(home)
}

fn system(
    database: &Database,
    server: &Server,
    installation: &Installation,
    home: &DataFolder,
    start: Vec<String>,
) -> SystemSpec {
    let version = vec![installation.programs.server.display().to_string(), "--version".to_owned()];
    SystemSpec {
        name: database.name.clone(),
        dir: home.folder().to_owned(),
        build: None,
        start: CommandLine(start),
        env: BTreeMap::new(),
        // That it answers is asked in its own language, by `PreparedDatabase::wait_ready`.
        ready: Ready { probe: Probe::Started, within: server.ready_within },
        stop: StopPolicy { signal: engine::stop_signal(database.engine), grace: server.stop_grace },
        cpus: server.cpus.clone(),
        version: Some(CommandLine(version)),
        port: Some(server.port),
    }
}

/// A database whose data is in the state before a start, and how to start and reach its server.
/// Dropping it removes the copy of the data.
#[derive(Debug)]
pub struct PreparedDatabase {
    /// The command that starts the server; none for an external one.
    pub system: Option<SystemSpec>,
    /// How its data was restored.
    pub restored: Restored,
    /// Where the data comes from: `initialised and loaded by the run`, `kept from an earlier run`, `external`.
    pub data_origin: String,
    /// Bytes of the data, where that is known.
    pub size: Option<u64>,
    database: Database,
    /// By its UNIX socket, if the run starts it.
    endpoint: Endpoint,
    started: Option<StartedServer>,
}

/// How the data of a database was restored.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// In words: `copied`, `template database`, the command of an external server.
    pub how: String,
    /// How long that took, in seconds.
    pub seconds: f64,
}

/// What only a server that the run starts has.
#[derive(Debug)]
struct StartedServer {
    port: u16,
    data: PathBuf,
    within: Duration,
    version: [u32; 3],
    /// How long copying the template took, in seconds.
    template_took: OnceLock<f64>,
    /// Removed before the folder that it lies in.
    _copy: Option<Copy>,
    home: Arc<DataFolder>,
}

impl PreparedDatabase {
    /// The endpoint of the database. That of an external one is its URL, whatever the transport.
    #[must_use]
    pub fn endpoint(&self, transport: Transport) -> Endpoint {
        let tcp = |started: &StartedServer| Address::Tcp { host: "127.0.0.1".to_owned(), port: started.port };
        match (&self.started, transport) {
            (Some(started), Transport::Tcp) => Endpoint { address: tcp(started), ..self.endpoint.clone() },
            _ => self.endpoint.clone(),
        }
    }

    /// Waits until the server answers, compares the settings in force with those that the study asks
    /// for, and warms the cache if the study says so.
    ///
    /// # Errors
    /// The server ends, is not ready in time, or has another value of a setting in force.
    pub fn wait_ready(&self, running: Option<&Running>, interrupt: &Interrupt) -> Result<(), DatabaseError> {
        let within = self.started.as_ref().map_or(EXTERNAL_WITHIN, |started| started.within);
        let waiting = ReadyWait { running, within, interrupt };
        let ready = self.ready(&waiting).map_err(|error| settings::explained(error, &self.database, running));
        if interrupt.is_set() { Err(DatabaseError::Interrupted) } else { ready }
    }

    fn ready(&self, waiting: &ReadyWait<'_>) -> Result<(), DatabaseError> {
        let failed = |action| DatabaseError::sql(&self.database.name, action);
        if let Some(started) = self.started.as_ref().filter(|_| self.endpoint.database == RUN) {
            let mut connection = connect(&self.service_endpoint(), waiting)?;
            let begin = Instant::now();
            engine::copy_template(&mut connection, started.version).map_err(failed("copy the template"))?;
            let _ = started.template_took.set(begin.elapsed().as_secs_f64());
        }
        let mut connection = connect(&self.endpoint, waiting)?;
        if let (Some(started), Some(running)) = (&self.started, waiting.running) {
            shared_memory::note(&started.data, &running.processes());
        }
        settings::check(&mut connection, &self.database, waiting.running)?;
        if self.started.is_none() {
            tables::check(&mut connection, &self.database)?;
        }
        if self.database.warm {
            engine::warm(&mut connection, self.started.is_some()).map_err(failed("read the tables"))?;
        }
        if self.started.is_some() {
            engine::rest(&mut connection).map_err(failed("write what is new"))?;
        }
        Ok(())
    }

    /// The endpoint for queries that must not count as use of the measured database.
    pub(crate) fn service_endpoint(&self) -> Endpoint {
        let database = match self.started {
            Some(_) => first_database(self.database.engine).to_owned(),
            None => self.endpoint.database.clone(),
        };
        Endpoint { database, ..self.endpoint.clone() }
    }

    /// The conditions of the data right after it was loaded; empty where the run did not load it.
    pub(crate) fn conditions_when_loaded(&self) -> Vec<Condition> {
        self.started.as_ref().map(|started| started.home.conditions()).unwrap_or_default()
    }

    /// How long restoring took, in seconds.
    pub(crate) fn restore_seconds(&self) -> f64 {
        let template = self.started.as_ref().and_then(|started| started.template_took.get());
        template.copied().unwrap_or(self.restored.seconds)
    }
}
