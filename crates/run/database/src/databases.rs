//! The databases of a run, and their data on the disk.

use crate::data_builder::{DataBuilder, endpoint};
use crate::data_folder::{Claim, Copy, DataFolder, check as check_folder, claim, made_from, release};
use crate::engine::{self, Installation, USER, first_database};
use crate::error::DatabaseError;
use crate::ready::{ReadyWait, connect};
use crate::rejected_settings::rejected_settings;
use crate::scratch::Scratch;
use crate::study_command::StudyCommand;
use crate::{external, settings, shared_memory, tables};
use plimsoll_model::database::{
    Address, Condition, Database, Endpoint, Engine, External, Migration, Origin, Server, Snapshot,
};
use plimsoll_model::event::Event;
use plimsoll_model::sql::Transport;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, SystemSpec};
use plimsoll_sql::Connection;
use plimsoll_system::{Interrupt, Launcher, Running};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The time for an external server to get ready.
const EXTERNAL_READY_WITHIN: Duration = Duration::from_secs(10);

/// Receives the events of data that is being made: progress, and when it is ready.
pub type OnDataEvent<'a> = dyn FnMut(&Event) + 'a;

/// The databases of a run. Dropping it removes everything that the run made and does not keep.
#[derive(Debug)]
pub struct Databases {
    launcher: Launcher,
    logs: PathBuf,
    scratch: Scratch,
    /// The existing data, by the name of its database and its inputs.
    folders: BTreeMap<(String, String), Arc<DataFolder>>,
    /// Passwords of databases that run already, and of those on other hosts.
    passwords: Vec<Secret>,
}

impl Databases {
    /// Databases of a run that starts servers with `launcher`, and writes their output into files of `logs`.
    #[must_use]
    pub fn new(launcher: &Launcher, logs: &Path) -> Databases {
        Databases {
            launcher: launcher.clone(),
            logs: logs.to_owned(),
            scratch: Scratch::new(),
            folders: BTreeMap::new(),
            passwords: Vec::new(),
        }
    }

    /// Adds the password of a database on another host to the secrets.
    pub fn keep_secret(&mut self, password: &Secret) {
        if !self.passwords.contains(password) {
            self.passwords.push(password.clone());
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
        self.folders
            .values()
            .map(|data_folder| data_folder.password.clone())
            .chain(self.passwords.iter().cloned())
            .collect()
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
        let faults = engine::check_settings(database, server);
        if !faults.is_empty() {
            return Err(first(faults));
        }
        let builder = DataBuilder {
            launcher: &self.launcher,
            logs: &self.logs,
            database,
            server,
            installation: &installation,
            interrupt,
        };
        let data_folder = data_folder_of(&mut self.folders, &mut self.scratch, &builder, on_data)?;
        if interrupt.is_set() {
            return Err(DatabaseError::Interrupted);
        }
        let begin = Instant::now();
        let (data, copy, how) = match server.snapshot {
            Snapshot::Copy => {
                let (copy, method) = data_folder.copy(&installation)?;
                (copy.0.clone(), Some(copy), method.in_words())
            }
            Snapshot::Template => (data_folder.snapshot(), None, "template database"),
        };
        let place = data_folder.place(&installation, data, server.listen, server.port)?;
        Ok(PreparedDatabase {
            system: Some(system(
                database,
                server,
                &installation,
                &data_folder,
                installation.serve(&place, &database.settings),
            )),
            restored: Restored { how: how.to_owned(), seconds: begin.elapsed().as_secs_f64() },
            data_origin: if data_folder.kept {
                "kept from an earlier run"
            } else {
                "initialised and loaded by the run"
            }
            .to_owned(),
            size: Some(data_folder.size),
            database: database.clone(),
            endpoint: endpoint(database, &place, &data_folder.password, server.snapshot.database(&server.databases)),
            started: Some(StartedServer {
                listen: server.listen,
                port: server.port,
                data: place.data.clone(),
                within: server.ready_within,
                version: installation.number(),
                launcher: self.launcher.clone(),
                template_took: OnceLock::new(),
                _copy: copy,
                data_folder,
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
        let restored = external::restore(&self.launcher, database, external, &self.log(database), interrupt)?;
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

    /// The file for the output of everything that makes or changes the data of a database.
    fn log(&self, database: &Database) -> PathBuf {
        self.logs.join(format!("data-{}.log", database.name))
    }
}

/// Checks a database as far as possible without starting a server or changing any file: programs, the
/// operating system user, the folder of its data, and settings that the server would reject. Returns the
/// faults.
#[must_use]
pub fn check(database: &Database) -> Vec<String> {
    match &database.origin {
        Origin::Started(server) => {
            let mut faults = engine::check_settings(database, server);
            faults.extend(migrate_command(database).and_then(|migrate| migrate.check()));
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

/// The study's migration.
fn migrate_command(database: &Database) -> Option<StudyCommand<'_>> {
    let Origin::Started(server) = &database.origin else { return None };
    let Migration { command, dir, url } = server.migrate.as_ref()?;
    Some(StudyCommand {
        database: &database.name,
        purpose: "migrate",
        command,
        dir,
        env: BTreeMap::from([("DATABASE_URL".to_owned(), url.0.clone())]),
        limit: Some(server.ready_within),
    })
}

fn check_data(database: &Database, server: &Server, installation: &Installation) -> Result<(), String> {
    let made_from = made_from(installation, server, &database.dataset).map_err(|error| error.to_string())?;
    let Some(folder) = &server.data else { return Ok(()) };
    check_folder(folder, &made_from).map_err(|error| error.to_string())?;
    installation.user.check_can_enter(folder) // not for a foreign folder, which must not be opened to the user
}

/// The data of a database: that of this run, that kept by an earlier run, or newly made data.
fn data_folder_of(
    folders: &mut BTreeMap<(String, String), Arc<DataFolder>>,
    scratch: &mut Scratch,
    builder: &DataBuilder<'_>,
    on_data: &mut OnDataEvent<'_>,
) -> Result<Arc<DataFolder>, DatabaseError> {
    let (database, server) = (builder.database, builder.server);
    let made_from = made_from(builder.installation, server, &database.dataset)?;
    let key = (database.name.clone(), format!("{:?} {:?} {made_from:?}", server.data, builder.installation.programs));
    if let Some(data_folder) = folders.get(&key) {
        return Ok(Arc::clone(data_folder));
    }
    let begin = Instant::now();
    let own = scratch.folder()?;
    let sockets = own.join("s");
    builder.installation.user.make_folder(&sockets, 0o755).map_err(DatabaseError::io("make", &sockets))?;
    let (folder, claim) = match &server.data {
        Some(data) => {
            let data = std::path::absolute(data).map_err(DatabaseError::io("find", data))?;
            let claim = claim(&data, &made_from)?;
            (data, claim)
        }
        None => (own, Claim::Empty { lock: None, made: true }),
    };
    let data_folder = match claim {
        Claim::Kept { lock, size, password } => DataFolder::kept(folder, sockets, lock, size, password),
        Claim::Empty { lock, made } => {
            let data = builder.make(&folder, &sockets, on_data);
            let data_folder =
                data.and_then(|password| DataFolder::made(folder.clone(), sockets, lock, password, made_from));
            data_folder.inspect_err(|_| release(&folder, made))?
        }
    };
    on_data(&Event::DataReady {
        database: database.name.clone(),
        kept: data_folder.kept,
        took: begin.elapsed(),
        size: data_folder.size,
    });
    let data_folder = Arc::new(data_folder);
    folders.insert(key, Arc::clone(&data_folder));
    Ok(data_folder)
}

fn system(
    database: &Database,
    server: &Server,
    installation: &Installation,
    data_folder: &DataFolder,
    start: Vec<String>,
) -> SystemSpec {
    let version = vec![installation.programs.server.display().to_string(), "--version".to_owned()];
    SystemSpec {
        name: database.name.clone(),
        on: None,
        dir: data_folder.folder().to_owned(),
        build: None,
        start: CommandLine(start),
        containers: None,
        inherit: None,
        env: BTreeMap::new(),
        // `PreparedDatabase::wait_ready` checks by SQL that it is ready.
        ready: Ready { probe: Probe::Started, within: server.ready_within },
        stop: StopPolicy { signal: engine::stop_signal(database.engine), grace: server.stop_grace },
        cpus: server.cpus.clone(),
        version: Some(CommandLine(version)),
        port: Some(server.port),
        waits: BTreeMap::new(),
        metrics: None,
        files: None,
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
    /// The endpoint, by UNIX socket if the run starts the server.
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
    listen: IpAddr,
    port: u16,
    data: PathBuf,
    within: Duration,
    version: [u32; 3],
    /// What runs the study's migration.
    launcher: Launcher,
    /// The duration of copying the template in seconds.
    template_took: OnceLock<f64>,
    /// The copy of the data, which must be removed before the folder that contains it.
    _copy: Option<Copy>,
    data_folder: Arc<DataFolder>,
}

impl PreparedDatabase {
    /// The endpoint of the database. That of an external one is its URL, whatever the transport.
    #[must_use]
    pub fn endpoint(&self, transport: Transport) -> Endpoint {
        let tcp = |started: &StartedServer| Address::Tcp { host: started.listen.to_string(), port: started.port };
        match (&self.started, transport) {
            (Some(started), Transport::Tcp) => Endpoint { address: tcp(started), ..self.endpoint.clone() },
            _ => self.endpoint.clone(),
        }
    }

    /// Waits until the server answers, compares the settings in force with those that the study asks
    /// for, lets systems log in, runs the study's migration with its output in `migration`, and warms
    /// the cache if the study says so.
    ///
    /// # Errors
    /// The server ends, is not ready in time, or has another value of a setting in force; the migration
    /// fails, or takes as long as the server may.
    pub fn wait_ready(
        &self,
        running: Option<&Running>,
        migration: &Path,
        interrupt: &Interrupt,
    ) -> Result<(), DatabaseError> {
        let within = self.started.as_ref().map_or(EXTERNAL_READY_WITHIN, |started| started.within);
        let waiting = ReadyWait { running, within, interrupt };
        let ready = self
            .ready(&waiting, migration)
            .map_err(|error| settings::explain_failed_start(error, &self.database, running));
        if interrupt.is_set() { Err(DatabaseError::Interrupted) } else { ready }
    }

    fn ready(&self, waiting: &ReadyWait<'_>, migration: &Path) -> Result<(), DatabaseError> {
        let failed = |action| DatabaseError::sql(&self.database.name, action);
        if let Some((started, template)) = self.started.as_ref().zip(self.template()) {
            let mut connection = connect(&self.service_endpoint(), waiting)?;
            let begin = Instant::now();
            engine::copy_template(&mut connection, template, started.version).map_err(failed("copy the template"))?;
            let _ = started.template_took.set(begin.elapsed().as_secs_f64());
        }
        let mut connection = connect(&self.endpoint, waiting)?;
        if let (Some(started), Some(running)) = (&self.started, waiting.running) {
            shared_memory::record(&started.data, &running.processes());
        }
        settings::check(&mut connection, &self.database, waiting.running)?;
        match &self.database.origin {
            Origin::Started(server) => self.prepare_for_systems(server, &mut connection, migration, waiting)?,
            Origin::External(_) => tables::check(&mut connection, &self.database)?,
        }
        if self.database.warm {
            // The one that is loaded comes last: what does not fit into the cache is of the others.
            for (_, endpoint) in self.others(Transport::Unix) {
                let mut connection = connect(&endpoint, waiting)?;
                engine::warm(&mut connection, self.started.is_some()).map_err(failed("read the tables"))?;
            }
            engine::warm(&mut connection, self.started.is_some()).map_err(failed("read the tables"))?;
        }
        if self.started.is_some() {
            engine::write_changes(&mut connection).map_err(failed("write what is new"))?;
        }
        Ok(())
    }

    /// Lets systems log in, and runs the study's migration with its output in a file.
    fn prepare_for_systems(
        &self,
        server: &Server,
        connection: &mut Connection,
        output: &Path,
        waiting: &ReadyWait<'_>,
    ) -> Result<(), DatabaseError> {
        if let Some(password) = &server.password {
            let failed = DatabaseError::sql(&self.database.name, "set the passwords of the roles");
            engine::let_in(connection, &server.roles, password).map_err(failed)?;
        }
        // The user of the load. MariaDB and MySQL know where their users come from, which is this host alone otherwise.
        let comes_from_elsewhere = server.listen != Ipv4Addr::LOCALHOST && self.database.engine != Engine::Postgresql;
        if let Some(password) = self.endpoint.password.as_ref().filter(|_| comes_from_elsewhere) {
            let failed = DatabaseError::sql(&self.database.name, "let in users from other hosts");
            engine::let_in(connection, &[USER.to_owned()], password).map_err(failed)?;
        }
        if let (Some(migrate), Some(started)) = (migrate_command(&self.database), &self.started) {
            migrate.run(&started.launcher, output, waiting.interrupt)?;
        }
        Ok(())
    }

    /// The database from which that of the trial is copied, if it is.
    fn template(&self) -> Option<&str> {
        match &self.database.origin {
            Origin::Started(server) if server.snapshot == Snapshot::Template => Some(&server.databases[0]),
            _ => None,
        }
    }

    /// The endpoint for queries that must not count as use of the measured database.
    pub(crate) fn service_endpoint(&self) -> Endpoint {
        let database = match self.started {
            Some(_) => first_database(self.database.engine).to_owned(),
            None => self.endpoint.database.clone(),
        };
        Endpoint { database, ..self.endpoint.clone() }
    }

    /// The databases beside the one that is loaded, which systems may use too: their names and endpoints.
    pub(crate) fn others(&self, transport: Transport) -> Vec<(String, Endpoint)> {
        let Origin::Started(server) = &self.database.origin else { return Vec::new() };
        let endpoint = |name: &String| Endpoint { database: name.clone(), ..self.endpoint(transport) };
        server.databases.iter().skip(1).map(|name| (name.clone(), endpoint(name))).collect()
    }

    /// The names of the databases that are measured together, the loaded one first.
    pub(crate) fn measured(&self) -> Vec<String> {
        let others = self.others(Transport::Unix).into_iter().map(|(name, _)| name);
        std::iter::once(self.endpoint.database.clone()).chain(others).collect()
    }

    /// The conditions of the data right after it was loaded; empty where the run did not load it.
    pub(crate) fn conditions_when_loaded(&self) -> Vec<Condition> {
        self.started.as_ref().map(|started| started.data_folder.conditions()).unwrap_or_default()
    }

    /// The duration of restoring in seconds.
    pub(crate) fn restore_seconds(&self) -> f64 {
        let template = self.started.as_ref().and_then(|started| started.template_took.get());
        template.copied().unwrap_or(self.restored.seconds)
    }
}
