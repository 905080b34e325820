//! The tables of a study that each trial resolves by its levels: systems, databases, stores, secrets, workload and load.

use crate::combination_check::{MOST_CONNECTIONS, most_rate};
use crate::document::{Fault, Faults, Source, Span};
use crate::table::database::{DatabaseTable, check_connections, may_have_other_connections, most_users};
use crate::table::load::LoadTable;
use crate::table::secret::SecretTable;
use crate::table::sql;
use crate::table::store::StoreTable;
use crate::table::system::SystemTable;
use crate::table::workload::{StudyContext, WorkloadTable};
use crate::trial_spec::TrialSpec;
use crate::value::{Bindings, Login, NO_LOGINS, Port, Scope, Templated};
use plimsoll_model::database::{Database, Snapshot};
use plimsoll_model::factor::Assignment;
use plimsoll_model::load::{LoadModel, LoadProfile, Stop};
use plimsoll_model::search::SearchRange;
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::Processors;
use plimsoll_model::workload::{Steps, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The tables of the file that are resolved for each trial.
#[derive(Clone, Debug)]
pub(crate) struct TrialTables {
    pub(crate) systems: Vec<(String, SystemTable)>,
    pub(crate) databases: Vec<(String, DatabaseTable)>,
    pub(crate) stores: Vec<(String, StoreTable)>,
    pub(crate) secrets: Vec<(String, SecretTable)>,
    pub(crate) workload: WorkloadTable,
    pub(crate) load: LoadTable,
    /// The systems that have a port.
    pub(crate) listening: BTreeSet<String>,
    /// The study's, from which the content of databases follows.
    pub(crate) seed: u64,
    /// Hosts and addresses besides this machine that the study may load.
    pub(crate) allowed: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) processors: Vec<usize>,
    /// The processors of the generator; none where it may use all.
    pub(crate) of_generator: Option<Processors>,
    /// How many variants are alive at the same time, the duplicate included.
    pub(crate) alive: usize,
    pub(crate) source: Source,
}

/// How a system comes to its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The study says which.
    Fixed(u16),
    /// The runner picks a free one.
    Free,
}

impl TrialTables {
    pub(crate) fn resolve(
        &self,
        assignment: &Assignment,
        bindings: &Bindings,
        faults: &mut Faults,
    ) -> Option<TrialSpec> {
        let bindings = self.with_fixed_ports(assignment, bindings, faults);
        let not_running = self.not_running(assignment);
        let logins = self.logins(assignment, &bindings);
        let elsewhere = self.hosts(assignment, faults);
        let scope = Scope {
            not_running: &not_running,
            elsewhere: &elsewhere,
            logins: &logins,
            ..self.scope(assignment, &bindings)
        };
        let systems: Vec<Option<SystemSpec>> = self
            .running_systems(assignment)
            .map(|(name, table)| table.resolve(name, &scope.inside(name), faults))
            .collect();
        let databases: Vec<Option<Database>> =
            self.databases_in(assignment).map(|(name, table)| table.resolve(name, &scope, faults)).collect();
        let context =
            StudyContext { stores: &self.stores, databases: &self.databases, seed: self.seed, allowed: &self.allowed };
        let workload = self.workload.resolve(&scope, context, faults);
        let load = self.load.resolve(&scope, faults);
        let search = match (self.load.search_span(), &load) {
            (Some(_), Some(load)) => Some(self.load.search(&load.model, &scope, faults)?),
            _ => None,
        };
        let mut spec = TrialSpec {
            systems: systems.into_iter().collect::<Option<_>>()?,
            databases: databases.into_iter().collect::<Option<_>>()?,
            workload: workload?,
            load: load?,
            search,
        };
        self.limit_default(&mut spec, faults);
        self.prepare_workload_database(&mut spec, faults)?;
        Some(spec)
    }

    /// How systems log in to the databases of a trial; none for one that is reached by its UNIX socket.
    fn logins(&self, assignment: &Assignment, bindings: &Bindings) -> BTreeMap<String, Login> {
        let scope = self.scope(assignment, bindings);
        let mut ignored = Faults::new(self.source.clone()); // reported where the database is resolved
        let logins = self
            .databases_in(assignment)
            .filter_map(|(name, table)| Some((name.clone(), table.login(name, &scope, &mut ignored)?)));
        logins.collect()
    }

    /// Lets a search or a control loop whose largest load the study does not name end where a machine or the server
    /// does: at the connections of the database that users work with, at those that one address can have to another,
    /// and at the arrivals that processors can start.
    fn limit_default(&self, spec: &mut TrialSpec, faults: &mut Faults) {
        if self.load.names_most() {
            return;
        }
        let database = match &spec.workload.steps {
            Steps::Sql(sql) => spec.databases.iter().find(|one| one.name == sql.database),
            _ => None,
        };
        let of_connections = spec.has_connections_of_users().then_some(MOST_CONNECTIONS);
        let of_users = database.and_then(most_users).or(of_connections);
        if let (Stop::Feedback { rules, .. }, LoadModel::Closed { users, .. }, Some(most)) =
            (&mut spec.load.stop, &spec.load.model, of_users)
        {
            // A study that begins with more users is refused for these.
            rules.most = rules.most.min(most.max(users.start as u32));
        }
        let Some(range) = &mut spec.search else { return };
        let most = if range.of_users { of_users.map(f64::from) } else { Some(most_rate(self.processors.len())) };
        let most = most.unwrap_or(f64::INFINITY).max(range.first);
        if most >= range.most {
            return;
        }
        range.most = most;
        if let Some(database) = database.filter(|database| range.of_users && may_have_other_connections(database)) {
            let message = format!(
                "the search ends at {most} users, as many as {} takes by default: the study names no `most`",
                database.engine
            );
            let help = "write `most` in `[load]`, or `max_connections` in the `settings` of the database";
            faults.add(Fault::warning(self.load.users_span(), message).help(help));
        }
    }

    /// Gives the database of a SQL workload the data that this workload needs, and checks that the
    /// load fits.
    fn prepare_workload_database(&self, spec: &mut TrialSpec, faults: &mut Faults) -> Option<()> {
        let (Steps::Sql(sql), Some(table)) = (&spec.workload.steps, self.workload.sql()) else { return Some(()) };
        table.check_load(sql, &spec.load, faults)?;
        let largest = spec.largest_load();
        let database = spec.databases.iter_mut().find(|database| database.name == sql.database)?;
        let span = self.span_of_database(&sql.database);
        check_connections(database, &largest, span, faults)?;
        sql::check_writes(sql, database, span, faults);
        let Some(dataset) = sql::dataset(sql, self.seed) else { return Some(()) };
        if let Some(span) = self.database(&sql.database).and_then(DatabaseTable::load_span) {
            let fault = Fault::error(span, format!("the data of `{}` is made by the workload", sql.database));
            faults.add(fault.help("leave `load` out: it is for `transactions` of your own"));
            return None;
        }
        database.dataset = dataset;
        Some(())
    }

    pub(crate) fn load(&self, assignment: &Assignment, faults: &mut Faults) -> Option<LoadProfile> {
        let bindings = self.stand_in_bindings(assignment, faults);
        self.load.resolve(&self.scope(assignment, &bindings), faults)
    }

    /// The search for the capacity, or the stress test, with these levels; none where the study names its loads, or where it is wrong.
    pub(crate) fn search(&self, assignment: &Assignment, faults: &mut Faults) -> Option<SearchRange> {
        self.load.search_span()?;
        let bindings = self.stand_in_bindings(assignment, faults);
        self.resolve(assignment, &bindings, faults)?.search
    }

    /// The systems that run in trials with these levels.
    pub(crate) fn running_systems(&self, levels: &Assignment) -> impl Iterator<Item = &(String, SystemTable)> {
        self.systems.iter().filter(|(_, table)| table.runs(levels))
    }

    /// The databases that run in trials with these levels, whoever starts them.
    pub(crate) fn databases_in(&self, levels: &Assignment) -> impl Iterator<Item = &(String, DatabaseTable)> {
        self.databases.iter().filter(|(_, table)| table.runs(levels))
    }

    /// The databases whose servers would serve one folder of data, where several of them are alive.
    pub(crate) fn databases_with_shared_data(&self, levels: &Assignment, faults: &mut Faults) -> Vec<String> {
        // The kind of a snapshot depends on no port or secret.
        let none = Bindings::default();
        let scope = self.scope(levels, &none);
        let mut shares = |table: &DatabaseTable| {
            let snapshot = table.started().and_then(|table| table.snapshot.as_ref()?.resolve(&scope, faults));
            snapshot == Some(Snapshot::Template)
        };
        self.databases_in(levels).filter(|(_, table)| shares(table)).map(|(name, _)| name.clone()).collect()
    }

    /// The servers that run already and whose `restore` depends on one of these factors, while `url` does not.
    pub(crate) fn databases_restored_by(&self, factors: &[&str]) -> impl Iterator<Item = &str> {
        let differs = |table: &DatabaseTable| factors.iter().any(|factor| table.is_restored_by(factor));
        self.databases.iter().filter(move |(_, table)| differs(table)).map(|(name, _)| name.as_str())
    }

    /// The databases that a run starts.
    fn started(&self) -> impl Iterator<Item = &(String, DatabaseTable)> {
        self.databases.iter().filter(|(_, table)| table.started().is_some())
    }

    /// The names of all that trials start: first databases, then systems.
    pub(crate) fn names_of_started(&self) -> Vec<String> {
        let systems = self.systems.iter().map(|(name, _)| name);
        self.started().map(|(name, _)| name).chain(systems).cloned().collect()
    }

    fn database(&self, name: &str) -> Option<&DatabaseTable> {
        self.databases.iter().find(|(known, _)| known == name).map(|(_, table)| table)
    }

    /// The systems and databases that do not run.
    fn not_running(&self, levels: &Assignment) -> Vec<(&str, &str)> {
        let systems = self.systems.iter().filter(|(_, table)| !table.runs(levels));
        let databases = self.databases.iter().filter(|(_, table)| !table.runs(levels));
        let systems = systems.map(|(name, _)| ("system", name.as_str()));
        systems.chain(databases.map(|(name, _)| ("database", name.as_str()))).collect()
    }

    /// Bindings for checking, when nothing runs yet: port 1 for every system and database that has no
    /// other. Even for those that are never told a port: that has been reported.
    pub(crate) fn stand_in_bindings(&self, assignment: &Assignment, faults: &mut Faults) -> Bindings {
        let systems = self.running_systems(assignment).map(|(name, _)| name);
        let databases = self.started().filter(|(_, table)| table.runs(assignment)).map(|(name, _)| name);
        let mut ports: BTreeMap<String, u16> = systems.chain(databases).map(|name| (name.clone(), 1)).collect();
        for (name, choice) in self.ports(assignment, faults) {
            if let PortChoice::Fixed(port) = choice {
                ports.insert(name, port);
            }
        }
        Bindings { ports, plimsoll: PathBuf::from("plimsoll"), place: (0, self.alive), ..self.stand_ins() }
    }

    /// Keys, passwords and secrets that nobody is to believe.
    pub(crate) fn stand_ins(&self) -> Bindings {
        let pair = || KeyPair { access_key: "access-key".to_owned(), secret: Secret("secret-key".to_owned()) };
        let keyed = self.stores.iter().filter(|(_, table)| table.is_keyed());
        let password = |name: &String| Secret(format!("password-{name}"));
        let secret = |name: &String| Secret(format!("secret-{name}"));
        Bindings {
            keys: keyed.map(|(name, _)| (name.clone(), pair())).collect(),
            passwords: self.databases.iter().map(|(name, _)| (name.clone(), password(name))).collect(),
            secrets: self.secrets.iter().map(|(name, _)| (name.clone(), secret(name))).collect(),
            ..Bindings::default()
        }
    }

    pub(crate) fn ports(&self, assignment: &Assignment, faults: &mut Faults) -> Vec<(String, PortChoice)> {
        // No port can depend on another one.
        let none = Bindings::default();
        let scope = self.scope(assignment, &none);
        let systems = self.running_systems(assignment).filter(|(name, _)| self.listening.contains(name));
        let databases = self.started().filter(|(_, table)| table.runs(assignment));
        let mut choices = Vec::new();
        for name in systems.map(|(name, _)| name).chain(databases.map(|(name, _)| name)) {
            let choice = match self.port_of(name) {
                Some(port) => port.resolve(&scope.inside(name), faults).map(|port| PortChoice::Fixed(port.u16())),
                None => Some(PortChoice::Free),
            };
            choices.extend(choice.map(|choice| (name.clone(), choice)));
        }
        choices
    }

    /// Where the study says how a system is built.
    pub(crate) fn span_of_build(&self, system: &str) -> Span {
        let table = self.systems.iter().find(|(name, _)| name == system).map(|(_, table)| table);
        table.and_then(|table| table.build.as_ref()).map_or(0..0, |build| build.span.clone())
    }

    /// The ports of systems without `{port}` that their commands name, and to which users or probes go.
    pub(crate) fn ports_of_commands(&self, faults: &Faults) -> Vec<(String, u16)> {
        let port_of = |(name, table): &(String, SystemTable)| {
            let (port, _) = table.start.as_command()?.literal_port(faults)?;
            let is_used = self.workload.goes_to(port) || table.ready.as_ref().is_some_and(|ready| ready.goes_to(port));
            is_used.then(|| (name.clone(), port))
        };
        self.systems.iter().filter(|(name, _)| !self.listening.contains(name)).filter_map(port_of).collect()
    }

    pub(crate) fn hosts(&self, assignment: &Assignment, faults: &mut Faults) -> Vec<(String, String)> {
        // No label can depend on a port or a secret.
        let none = Bindings::default();
        let scope = self.scope(assignment, &none);
        let systems = self.running_systems(assignment);
        let mut hosts: Vec<(String, String)> = systems
            .filter_map(|(name, table)| Some((name.clone(), table.host(&scope.inside(name), faults)?)))
            .collect();
        let databases = self.databases_in(assignment);
        hosts.extend(databases.filter_map(|(name, table)| Some((name.clone(), table.host(&scope, faults)?))));
        hosts
    }

    /// The port that the study gives a system or a database.
    pub(crate) fn port_of(&self, name: &str) -> Option<&Templated<Port>> {
        let system = || self.systems.iter().find(|(known, _)| known == name)?.1.port.as_ref();
        self.database(name).map_or_else(system, |table| table.started()?.port.as_ref())
    }

    fn with_fixed_ports(&self, assignment: &Assignment, bindings: &Bindings, faults: &mut Faults) -> Bindings {
        let mut bindings = bindings.clone();
        for (name, choice) in self.ports(assignment, faults) {
            if let PortChoice::Fixed(port) = choice {
                bindings.ports.insert(name, port);
            }
        }
        bindings
    }

    fn scope<'a>(&'a self, assignment: &'a Assignment, bindings: &'a Bindings) -> Scope<'a> {
        Scope {
            assignment,
            bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            system: None,
            is_trusted: false,
            dir: &self.dir,
            processors: &self.processors,
            of_generator: self.of_generator.as_ref(),
        }
    }

    /// Where the study says where `workload` goes.
    pub(crate) fn target_span(&self, workload: &Workload) -> &Span {
        let store = |wanted: &str| self.stores.iter().find(|(name, _)| name == wanted);
        match &workload.steps {
            Steps::Storage(storage) => {
                store(&storage.name).map_or_else(|| self.workload.target_span(), |(_, store)| store.target_span())
            }
            Steps::Sql(sql) => self.span_of_database(&sql.database),
            Steps::Http(_) | Steps::Grpc { .. } | Steps::Flow(_) | Steps::Script(_) => self.workload.target_span(),
        }
    }

    /// Where the study says in which folder the data of this database is kept.
    pub(crate) fn span_of_data(&self, name: &str) -> &Span {
        let data = self.database(name).and_then(|table| table.started()?.data.as_ref());
        data.map_or_else(|| self.span_of_database(name), |data| &data.span)
    }

    /// Where the study says what the database of this name is.
    pub(crate) fn span_of_database(&self, name: &str) -> &Span {
        self.database(name).map_or_else(|| self.workload.target_span(), DatabaseTable::target_span)
    }
}
