//! The databases of a trial. They are prepared and started before the other systems, sampled while load runs, and
//! checked for consistency before they are stopped.
//!
//! Initialising and loading their data happens once in a run; [`Databases`](plimsoll_database::Databases) remembers it.
//! A [`RunningDatabase`] belongs to one trial.

use crate::run::{Context, EventSink};
use crate::start::{Abort, Fault};
use crate::target;
use plimsoll_bundle::{BundleError, RunFolder};
use plimsoll_database::{
    CounterSampler, DatabaseError, Databases, PreparedDatabase, check_connections, evaluate_conditions,
    evaluate_expected, refused_login, remove_leftovers, risky_settings_of_load,
};
use plimsoll_model::database::{Address, Database, DatabaseFacts, Origin, SqlFacts};
use plimsoll_model::event::Event;
use plimsoll_model::sample::DatabaseSample;
use plimsoll_model::sql::{Sql, Transport};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::{Steps, Target, Workload};
use plimsoll_study::Study;
use plimsoll_system::Running;
use std::path::Path;
use std::time::{Duration, Instant};

/// A database that serves a trial. Dropping it removes the trial's copy of the data; its server must have ended by
/// then.
pub(crate) struct RunningDatabase {
    database: Database,
    prepared: PreparedDatabase,
}

impl RunningDatabase {
    pub(crate) fn name(&self) -> &str {
        &self.database.name
    }

    /// The message of its server about the last login that it refused.
    pub(crate) fn refused_login(&self, server: &Running) -> Option<String> {
        refused_login(self.database.engine, server)
    }
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
    let starts_any = used.iter().any(|database| matches!(database.origin, Origin::Started(_)));
    if starts_any { note.write(&databases.scratch_folder().to_string_lossy()) } else { note.remove() }
}

/// Restores a database to the state before a start. If the study starts its server, starts that too; the server's
/// output goes to the first of `outputs`, that of the study's migration to the second. Also returns how long the server took
/// until it was ready.
pub(crate) fn start(
    context: &Context<'_>,
    databases: &mut Databases,
    database: &Database,
    outputs: [&Path; 2],
    tell: &mut EventSink<'_>,
) -> Result<(RunningDatabase, Option<Running>, Duration), Fault> {
    may_load(context.study, database).map_err(Fault::Failed)?;
    let prepared = prepare(context, databases, database, tell)?;
    let began = Instant::now();
    let [output, migration] = outputs;
    let start = |system| context.launcher.start(system, output);
    let running = prepared.system.as_ref().map(start).transpose()?;
    if let Some(running) = &running {
        running.wait_ready(context.interrupted)?;
    }
    prepared.wait_ready(running.as_ref(), migration, context.interrupted)?;
    Ok((RunningDatabase { database: database.clone(), prepared }, running, began.elapsed()))
}

fn prepare(
    context: &Context<'_>,
    databases: &mut Databases,
    database: &Database,
    tell: &mut EventSink<'_>,
) -> Result<PreparedDatabase, Fault> {
    let mut first_error = None;
    let mut on_data = |event: &Event| {
        if let Err(error) = tell(event) {
            first_error.get_or_insert(error);
        }
    };
    let prepared = databases.prepare(database, context.interrupted, &mut on_data);
    match first_error {
        Some(error) => Err(Fault::Abort(Abort::Bundle(error))),
        None => Ok(prepared?),
    }
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
        let endpoint = loaded.map(|running| running.prepared.endpoint(sql.transport));
        sql.endpoint = Some(endpoint.ok_or_else(|| format!("the database `{}` cannot be reached", sql.database))?);
    }
    Ok(workload)
}

/// The facts about the databases before the load: a server may not survive to give them afterwards.
pub(crate) fn facts(running: &[RunningDatabase], steps: &Steps) -> Result<Vec<DatabaseFacts>, Fault> {
    let facts = |RunningDatabase { database, prepared }: &RunningDatabase| {
        let load = load_on(steps, &database.name);
        let transport = load.map_or(Transport::Unix, |sql| sql.transport);
        let mut facts = plimsoll_database::facts(database, prepared, transport)?;
        let set = load.map(|sql| risky_settings_of_load(database.engine, &sql.work, &facts.settings));
        facts.settings.extend(set.unwrap_or_default());
        Ok(facts)
    };
    running.iter().map(facts).collect()
}

/// Starts to sample the counters of all of them.
pub(crate) fn sample(running: &[RunningDatabase]) -> Result<Vec<CounterSampler>, Fault> {
    let samplers = running.iter().map(|running| CounterSampler::start(&running.database, &running.prepared));
    Ok(samplers.collect::<Result<_, DatabaseError>>()?)
}

/// Fails if a server takes fewer connections than the load has users.
pub(crate) fn check_users(running: &[RunningDatabase], steps: &Steps, users: u32) -> Result<(), Fault> {
    for RunningDatabase { database, prepared } in
        running.iter().filter(|one| load_on(steps, &one.database.name).is_some())
    {
        check_connections(database, prepared, users)?;
    }
    Ok(())
}

/// Stops sampling. Returns the samples until the end of the measure phase, which began at `zero`, in order of time; and
/// which databases ended their sessions meanwhile, as failures of the trial.
pub(crate) fn stop_sampling(
    samplers: Vec<CounterSampler>,
    running: &[RunningDatabase],
    zero: Instant,
    window: Nanos,
) -> (Vec<DatabaseSample>, Vec<String>) {
    let (mut samples, mut lost) = (Vec::new(), Vec::new());
    for (sampler, RunningDatabase { database, .. }) in samplers.into_iter().zip(running) {
        let series = sampler.stop(zero, window.into());
        samples.extend(series.samples);
        if series.session_lost {
            let name = &database.name;
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
    for RunningDatabase { database, prepared } in running {
        plimsoll_database::check_expected(database, prepared, context.interrupted).map_err(|error| {
            format!(
                "what `expect` asks of `{}` after the load cannot be asked: {error}; tables must be there when systems are ready \
                 (`load`, `migrate`)",
                database.name
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
    for (facts, RunningDatabase { database, prepared }) in facts.iter_mut().zip(running) {
        let of_workload = load_on(steps, &database.name).filter(|sql| !sql.check_within.is_zero());
        let evaluate = || {
            let of_workload =
                of_workload.map(|sql| evaluate_conditions(database, prepared, sql.check_within, context.interrupted));
            let expected = evaluate_expected(database, prepared, context.interrupted)?;
            Ok([of_workload.transpose()?.unwrap_or_default(), expected].concat())
        };
        facts.conditions = evaluate().map_err(|error: DatabaseError| {
            format!("the data of `{}` could not be looked at after the load: {error}", database.name)
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
