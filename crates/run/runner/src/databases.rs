//! The databases of a trial. They are prepared and started before the other systems, sampled while load runs, and
//! checked for consistency before they are stopped.
//!
//! Initialising and loading their data happens once in a run; [`Databases`](plimsoll_database::Databases) remembers it.
//! A [`RunningDatabase`] belongs to one trial.

use crate::host::{DatabaseElsewhere, RunningSystem, StartedDatabase};
use crate::run::{Context, EventSink};
use crate::start::{Abort, Fault};
use crate::target;
use plimsoll_bundle::{BundleError, RunFolder};
use plimsoll_database::{
    CounterSampler, CounterSeries, DatabaseError, Databases, OnDataEvent, PreparedDatabase, check_connections,
    refused_login, remove_leftovers, risky_settings_of_load,
};
use plimsoll_model::database::{Address, Condition, Database, DatabaseFacts, Endpoint, Origin, SqlFacts};
use plimsoll_model::event::Event;
use plimsoll_model::sample::DatabaseSample;
use plimsoll_model::sql::{Sql, Transport};
use plimsoll_model::storage::Secret;
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::{Steps, Target, Workload};
use plimsoll_study::Study;
use plimsoll_system::Interrupt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A database that serves a trial. Dropping it removes the trial's copy of the data; its server must have ended by
/// then.
pub(crate) struct RunningDatabase {
    database: Database,
    data: Data,
}

/// The data of a database, on this machine or on another host.
enum Data {
    Here(Box<PreparedDatabase>),
    Elsewhere(Box<dyn DatabaseElsewhere>),
}

impl RunningDatabase {
    pub(crate) fn name(&self) -> &str {
        &self.database.name
    }

    /// The message of its server about the last login that it refused.
    pub(crate) fn refused_login(&self, server: &RunningSystem) -> Option<String> {
        match &self.data {
            Data::Here(_) => refused_login(self.database.engine, server.here()?),
            Data::Elsewhere(elsewhere) => elsewhere.refused_login(),
        }
    }

    fn endpoint(&self, transport: Transport) -> Endpoint {
        match &self.data {
            Data::Here(prepared) => prepared.endpoint(transport),
            Data::Elsewhere(elsewhere) => elsewhere.endpoint(),
        }
    }

    fn facts(&self, transport: Transport) -> Result<DatabaseFacts, Fault> {
        match &self.data {
            Data::Here(prepared) => Ok(plimsoll_database::facts(&self.database, prepared, transport)?),
            Data::Elsewhere(elsewhere) => Ok(elsewhere.facts()?),
        }
    }

    fn check_connections(&self, users: u32) -> Result<(), Fault> {
        match &self.data {
            Data::Here(prepared) => Ok(check_connections(&self.database, prepared, users)?),
            Data::Elsewhere(elsewhere) => Ok(elsewhere.check_connections(users)?),
        }
    }

    fn sample(&self) -> Result<Counters, Fault> {
        match &self.data {
            Data::Here(prepared) => Ok(Counters::Here(CounterSampler::start(&self.database, prepared)?)),
            Data::Elsewhere(elsewhere) => {
                elsewhere.sample()?;
                Ok(Counters::Elsewhere)
            }
        }
    }

    /// Ends sampling. Of a host that is lost there is nothing; its systems say so.
    fn stop_sampling(&self, counters: Counters, zero: Instant, window: Duration) -> CounterSeries {
        match (counters, &self.data) {
            (Counters::Here(sampler), _) => sampler.stop(zero, window),
            (Counters::Elsewhere, Data::Elsewhere(elsewhere)) => {
                elsewhere.stop_sampling(zero, window).unwrap_or_default()
            }
            (Counters::Elsewhere, Data::Here(_)) => CounterSeries::default(),
        }
    }

    fn check_expected(&self, interrupted: &Interrupt) -> Result<(), String> {
        match &self.data {
            Data::Here(prepared) => plimsoll_database::check_expected(&self.database, prepared, interrupted)
                .map_err(|error| error.to_string()),
            Data::Elsewhere(elsewhere) => elsewhere.check_expected(interrupted).map_err(|error| error.to_string()),
        }
    }

    /// The conditions of its data: those of the workload, which take so long at most, if it has any, and those of the study.
    fn conditions(&self, of_workload: Option<Duration>, interrupted: &Interrupt) -> Result<Vec<Condition>, String> {
        match &self.data {
            Data::Here(prepared) => plimsoll_database::conditions(&self.database, prepared, of_workload, interrupted)
                .map_err(|error| error.to_string()),
            Data::Elsewhere(elsewhere) => {
                elsewhere.conditions(of_workload, interrupted).map_err(|error| error.to_string())
            }
        }
    }
}

/// The sampling of a database's counters.
pub(crate) enum Counters {
    Here(CounterSampler),
    /// Its host does.
    Elsewhere,
}

impl From<DatabaseError> for Fault {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Interrupted => Fault::Abort(Abort::Interrupted),
            DatabaseError::Failed(reason) => Fault::Failed(reason),
        }
    }
}

/// Removes the data that a killed run left, and notes where this run keeps data that it must remove.
pub(crate) fn note_data_folder(
    databases: &Databases,
    used: &[Database],
    folder: &RunFolder,
    tell: &mut EventSink<'_>,
) -> Result<(), BundleError> {
    let note = folder.data_note();
    if let Some(left) = note.read()
        && let Err(error) = remove_leftovers(Path::new(&left))
    {
        let message = format!("a run that was killed left data in {left}: {error}");
        tell(&Event::Warning { message })?;
    }
    let starts_any = used.iter().any(starts_here);
    if starts_any { note.write(&databases.scratch_folder().to_string_lossy()) } else { note.remove() }
}

/// True if the run starts the server of a database on this machine.
pub(crate) fn starts_here(database: &Database) -> bool {
    matches!(database.origin, Origin::Started(_)) && database.on().is_none()
}

/// Restores a database to the state before a start. If the study starts its server, starts that too; the server's
/// output goes to the first of `outputs`, that of the study's migration to the second. Also returns how long the server took
/// until it was ready.
pub(crate) fn start(
    context: &Context<'_>,
    databases: &mut Databases,
    database: &Database,
    variant: usize,
    outputs: [&Path; 2],
    tell: &mut EventSink<'_>,
) -> Result<(RunningDatabase, Option<RunningSystem>, Duration), Fault> {
    may_load(context.study, database).map_err(Fault::Failed)?;
    if let Some(label) = database.on() {
        return start_elsewhere(context, databases, (database, label), variant, outputs, tell);
    }
    let prepared = prepare(context, databases, database, tell)?;
    let began = Instant::now();
    let [output, migration] = outputs;
    let start = |system| context.launcher.start(system, output);
    let running = prepared.system.as_ref().map(start).transpose()?;
    if let Some(running) = &running {
        running.wait_ready(context.interrupted)?;
    }
    prepared.wait_ready(running.as_ref(), migration, context.interrupted)?;
    let database = RunningDatabase { database: database.clone(), data: Data::Here(Box::new(prepared)) };
    Ok((database, running.map(RunningSystem::from), began.elapsed()))
}

/// The same on the host of the agent with a label.
fn start_elsewhere(
    context: &Context<'_>,
    databases: &mut Databases,
    (database, label): (&Database, &str),
    variant: usize,
    outputs: [&Path; 2],
    tell: &mut EventSink<'_>,
) -> Result<(RunningDatabase, Option<RunningSystem>, Duration), Fault> {
    let host = context.host(label)?;
    let mut on_secret = |password: &Secret| databases.keep_secret(password);
    let started = telling(tell, |on_data| {
        host.start_database(database, variant, outputs, on_data, &mut on_secret, context.interrupted)
    })?;
    let StartedDatabase { database: elsewhere, server, ready_after } = started?;
    let server = RunningSystem::elsewhere(&database.name, false, server);
    let database = RunningDatabase { database: database.clone(), data: Data::Elsewhere(elsewhere) };
    Ok((database, Some(server), ready_after))
}

fn prepare(
    context: &Context<'_>,
    databases: &mut Databases,
    database: &Database,
    tell: &mut EventSink<'_>,
) -> Result<PreparedDatabase, Fault> {
    Ok(telling(tell, |on_data| databases.prepare(database, context.interrupted, on_data))??)
}

/// Does something that has events of data; the first of them that cannot be recorded is the error.
fn telling<T>(tell: &mut EventSink<'_>, work: impl FnOnce(&mut OnDataEvent<'_>) -> T) -> Result<T, Fault> {
    let mut first_error = None;
    let mut on_data = |event: &Event| {
        if let Err(error) = tell(event) {
            first_error.get_or_insert(error);
        }
    };
    let done = work(&mut on_data);
    first_error.map_or(Ok(done), |error| Err(Fault::Abort(Abort::Bundle(error))))
}

/// Fails if the study may not load a database. It may always load a server that it starts; for any other, the rules of
/// targets apply.
pub(crate) fn may_load(study: &Study, database: &Database) -> Result<(), String> {
    let Origin::External(external) = &database.origin else { return Ok(()) };
    let Address::Tcp { host, port } = &external.endpoint.address else { return Ok(()) };
    target::address(study, &Target { host: host.clone(), port: *port, tls: None }, &[]).map(|_| ())
}

/// The workload with the endpoint of the database that it loads.
pub(crate) fn with_endpoint(workload: &Workload, running: &[RunningDatabase]) -> Result<Workload, String> {
    let mut workload = workload.clone();
    if let Steps::Sql(sql) = &mut workload.steps {
        let loaded = running.iter().find(|running| running.database.name == sql.database);
        let endpoint = loaded.map(|running| running.endpoint(sql.transport));
        sql.endpoint = Some(endpoint.ok_or_else(|| format!("the database `{}` cannot be reached", sql.database))?);
    }
    Ok(workload)
}

/// The facts about the databases before the load: a server may not survive to give them afterwards.
pub(crate) fn facts(running: &[RunningDatabase], steps: &Steps) -> Result<Vec<DatabaseFacts>, Fault> {
    let facts = |running: &RunningDatabase| {
        let database = &running.database;
        let load = load_on(steps, &database.name);
        let mut facts = running.facts(load.map_or(Transport::Unix, |sql| sql.transport))?;
        let set = load.map(|sql| risky_settings_of_load(database.engine, &sql.work, &facts.settings));
        facts.settings.extend(set.unwrap_or_default());
        Ok(facts)
    };
    running.iter().map(facts).collect()
}

/// Starts to sample the counters of all of them.
pub(crate) fn sample(running: &[RunningDatabase]) -> Result<Vec<Counters>, Fault> {
    running.iter().map(RunningDatabase::sample).collect()
}

/// Fails if a server takes fewer connections than the load has users.
pub(crate) fn check_users(running: &[RunningDatabase], steps: &Steps, users: u32) -> Result<(), Fault> {
    for loaded in running.iter().filter(|one| load_on(steps, &one.database.name).is_some()) {
        loaded.check_connections(users)?;
    }
    Ok(())
}

/// Stops sampling. Returns the samples until the end of the measure phase, which began at `zero`, in order of time; and
/// which databases ended their sessions meanwhile, as failures of the trial.
pub(crate) fn stop_sampling(
    samplers: Vec<Counters>,
    running: &[RunningDatabase],
    zero: Instant,
    window: Nanos,
) -> (Vec<DatabaseSample>, Vec<String>) {
    let (mut samples, mut lost) = (Vec::new(), Vec::new());
    for (sampler, running) in samplers.into_iter().zip(running) {
        let series = running.stop_sampling(sampler, zero, window.into());
        samples.extend(series.samples);
        if series.session_lost {
            let name = running.name();
            lost.push(format!(
                "the server of the database `{name}` ended its sessions under load: it was restarted, or crashed and recovered"
            ));
        }
    }
    samples.sort_by(|one, other| one.at.total_cmp(&other.at));
    (samples, lost)
}

/// Adds the work of users to the facts of the database that they loaded.
pub(crate) fn add_work(facts: &mut [DatabaseFacts], steps: &Steps, work: SqlFacts) {
    if let Some(facts) = facts.iter_mut().find(|facts| load_on(steps, &facts.name).is_some()) {
        facts.isolation.clone_from(&work.isolation);
        facts.work = work;
    }
}

/// Lets servers read what the study asks them after the load, so that a mistake in it is not found only then.
pub(crate) fn check_expected(context: &Context<'_>, running: &[RunningDatabase]) -> Result<(), String> {
    for running in running {
        running.check_expected(context.interrupted).map_err(|error| {
            format!(
                "what `expect` asks of `{}` after the load cannot be asked: {error}; tables must be there when systems are ready \
                 (`load`, `migrate`)",
                running.name()
            )
        })?;
    }
    Ok(())
}

/// Checks the data while the servers still run, and adds the result to the facts: its consistency, for as long as the
/// workload allows, and the rows that the study expects.
pub(crate) fn add_conditions(
    context: &Context<'_>,
    facts: &mut [DatabaseFacts],
    running: &[RunningDatabase],
    steps: &Steps,
) -> Result<(), String> {
    for (facts, running) in facts.iter_mut().zip(running) {
        let of_workload = load_on(steps, running.name()).map(|sql| sql.check_within).filter(|within| !within.is_zero());
        facts.conditions = running.conditions(of_workload, context.interrupted).map_err(|error| {
            format!("the data of `{}` could not be looked at after the load: {error}", running.name())
        })?;
    }
    Ok(())
}

/// The SQL workload, if it loads the database `name`.
fn load_on<'a>(steps: &'a Steps, name: &str) -> Option<&'a Sql> {
    match steps {
        Steps::Sql(sql) if sql.database == name => Some(sql),
        _ => None,
    }
}
