//! The databases of a trial: readied and started before the other systems, looked at while load
//! runs, held to their conditions before they are stopped.
//!
//! What is done once, initialising and loading their data, is remembered by
//! [`Databases`](plimsoll_database::Databases): it belongs to the run, and each trial is lent it.
//! What belongs to a trial is [`Served`].

use crate::run::{Context, Tell};
use crate::start::{Broken, Fault};
use crate::target;
use plimsoll_bundle::{BundleError, RunFolder};
use plimsoll_database::{
    CounterSampler, DatabaseError, Databases, PreparedDatabase, check_connections, evaluate_conditions,
    remove_leftovers, risky_settings_of_load,
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

/// A database that serves a trial. Dropped, it removes the trial's copy of the data: its server must
/// have ended by then.
pub(crate) struct Served {
    database: Database,
    staged: PreparedDatabase,
}

impl From<DatabaseError> for Fault {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Interrupted => Fault::Broken(Broken::Interrupted),
            DatabaseError::Failed(reason) => Fault::Failed(reason),
        }
    }
}

/// Removes what a run left that was killed, and notes where this one keeps data that it will remove.
pub(crate) fn note_place(
    databases: &Databases,
    used: &[Database],
    folder: &RunFolder,
    tell: &mut Tell<'_>,
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

/// Brings a database into the state before a start, and starts its server, which writes to `output`,
/// if it is the study's own. Gives also how long the server took until it was ready.
pub(crate) fn serve(
    context: &Context<'_>,
    databases: &mut Databases,
    database: &Database,
    output: &Path,
    tell: &mut Tell<'_>,
) -> Result<(Served, Option<Running>, Duration), Fault> {
    may_load(context.study, database).map_err(Fault::Failed)?;
    let staged = stage(context, databases, database, tell)?;
    let began = Instant::now();
    let start = |system| context.launcher.start(system, output);
    let running = staged.system.as_ref().map(start).transpose()?;
    if let Some(running) = &running {
        running.wait_ready(context.interrupted)?;
    }
    staged.wait_ready(running.as_ref(), context.interrupted)?;
    Ok((Served { database: database.clone(), staged }, running, began.elapsed()))
}

fn stage(
    context: &Context<'_>,
    databases: &mut Databases,
    database: &Database,
    tell: &mut Tell<'_>,
) -> Result<PreparedDatabase, Fault> {
    let mut untold = None;
    let mut on_data = |event: &Event| {
        if let Err(error) = tell(event) {
            untold.get_or_insert(error);
        }
    };
    let staged = databases.prepare(database, context.interrupted, &mut on_data);
    match untold {
        Some(error) => Err(Fault::Broken(Broken::Bundle(error))),
        None => Ok(staged?),
    }
}

/// Whether the study may load a database: a server that it starts always, another one like any
/// target.
pub(crate) fn may_load(study: &Study, database: &Database) -> Result<(), String> {
    let Origin::External(external) = &database.origin else { return Ok(()) };
    let Address::Tcp { host, port } = &external.endpoint.address else { return Ok(()) };
    target::address(study, &Target { host: host.clone(), port: *port, tls: None }).map(|_| ())
}

/// The workload with the place of the database that it loads.
pub(crate) fn placed(workload: &Workload, served: &[Served]) -> Result<Workload, String> {
    let mut workload = workload.clone();
    if let Steps::Sql(sql) = &mut workload.steps {
        let loaded = served.iter().find(|served| served.database.name == sql.database);
        let endpoint = loaded.map(|served| served.staged.endpoint(sql.transport));
        sql.endpoint = Some(endpoint.ok_or_else(|| format!("the database `{}` cannot be reached", sql.database))?);
    }
    Ok(workload)
}

/// What is known of the databases before the load: a server may not live to tell it afterwards.
pub(crate) fn facts(served: &[Served], steps: &Steps) -> Result<Vec<DatabaseFacts>, Fault> {
    let facts = |Served { database, staged }: &Served| {
        let load = load_on(steps, &database.name);
        let transport = load.map_or(Transport::Unix, |sql| sql.transport);
        let mut facts = plimsoll_database::facts(database, staged, transport)?;
        let set = load.map(|sql| risky_settings_of_load(database.engine, &sql.work, &facts.settings));
        facts.settings.extend(set.unwrap_or_default());
        Ok(facts)
    };
    served.iter().map(facts).collect()
}

/// Starts to sample the counters of all of them.
pub(crate) fn sample(served: &[Served]) -> Result<Vec<CounterSampler>, Fault> {
    let samplers = served.iter().map(|served| CounterSampler::start(&served.database, &served.staged));
    Ok(samplers.collect::<Result<_, DatabaseError>>()?)
}

/// Fails if a server takes fewer connections than the load has users.
pub(crate) fn check_users(served: &[Served], steps: &Steps, users: u32) -> Result<(), Fault> {
    for Served { database, staged } in served.iter().filter(|one| load_on(steps, &one.database.name).is_some()) {
        check_connections(database, staged, users)?;
    }
    Ok(())
}

/// Stops sampling. Returns the samples until the end of the measure phase, which began at `zero`, in order of time; and
/// which databases ended their sessions meanwhile, as failures of the trial.
pub(crate) fn stop_sampling(
    samplers: Vec<CounterSampler>,
    served: &[Served],
    zero: Instant,
    window: Nanos,
) -> (Vec<DatabaseSample>, Vec<String>) {
    let (mut samples, mut lost) = (Vec::new(), Vec::new());
    for (sampler, Served { database, .. }) in samplers.into_iter().zip(served) {
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

/// Adds to the facts what users did.
pub(crate) fn add_work(facts: &mut [DatabaseFacts], steps: &Steps, work: SqlFacts) {
    if let Some(facts) = facts.iter_mut().find(|facts| load_on(steps, &facts.name).is_some()) {
        facts.isolation.clone_from(&work.isolation);
        facts.work = work;
    }
}

/// Adds to the facts whether what must hold of the data does: while the servers still run, for as
/// long as the workload allows.
pub(crate) fn add_conditions(
    context: &Context<'_>,
    facts: &mut [DatabaseFacts],
    served: &[Served],
    steps: &Steps,
) -> Result<(), String> {
    for (facts, Served { database, staged }) in facts.iter_mut().zip(served) {
        let Some(sql) = load_on(steps, &database.name).filter(|sql| !sql.check_within.is_zero()) else { continue };
        facts.conditions =
            evaluate_conditions(database, staged, sql.check_within, context.interrupted).map_err(|error| {
                format!("the data of `{}` could not be looked at after the load: {error}", database.name)
            })?;
    }
    Ok(())
}

/// The load on the database `name`, if it is that one's.
fn load_on<'a>(steps: &'a Steps, name: &str) -> Option<&'a Sql> {
    match steps {
        Steps::Sql(sql) if sql.database == name => Some(sql),
        _ => None,
    }
}
