//! A study that has been read: what it is about, and what each of its trials is.

use crate::combination_check::MOST_CONNECTIONS;
use crate::document::{Diagnostic, Fault, Faults, Severity, Source, Span, did_you_mean};
use crate::hosts::may_load;
use crate::quick_load::shortened;
use crate::sample_size;
use crate::table::database::{DatabaseTable, check_connections, most_users};
use crate::table::design::DesignSpec;
use crate::table::generator::LostAgent;
use crate::table::load::LoadTable;
use crate::table::metrics::first_of_each_name;
use crate::table::secret::{SecretSource, SecretTable};
use crate::table::sql;
use crate::table::store::StoreTable;
use crate::table::system::SystemTable;
use crate::table::workload::{StudyContext, WorkloadTable};
use crate::trial_spec::TrialSpec;
use crate::value::{Bindings, Login, NO_LOGINS, Port, Scope, Templated};
use plimsoll_model::database::Database;
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::flow::WorkloadPart;
use plimsoll_model::load::LoadProfile;
use plimsoll_model::objective::Objective;
use plimsoll_model::search::SearchRange;
use plimsoll_model::start::{Design, PhaseLengths};
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, ReportSpec, StudyFacts};
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::Processors;
use plimsoll_model::workload::{Steps, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A study without faults.
#[derive(Clone, Debug)]
pub struct Study {
    /// What it is about, in one line.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// How the variants share time.
    pub(crate) design: DesignSpec,
    /// Blocks per condition.
    pub repeats: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// What the noise floor does where it is in doubt; none where no block holds the baseline a second time.
    pub noise_floor: Option<FloorRule>,
    /// How many blocks may be run again because a trial in them did not count; none for the
    /// plan's own choice.
    pub spare_blocks: Option<u32>,
    /// The repeats after which a run that may end early looks at the verdicts, ascending, the last
    /// one being `repeats`; empty when the study names none.
    pub looks: Vec<u32>,
    /// What it varies, in the order of the file.
    pub factors: Vec<Factor>,
    /// Hosts and addresses that it may load besides this machine.
    pub targets_allow: Vec<String>,
    /// The consequence of an agent that is lost under a load.
    pub lost_agent: LostAgent,
    pub(crate) generator: GeneratorSpec,
    pub(crate) decide: Vec<Decision>,
    pub(crate) objective: Option<Objective>,
    pub(crate) report: ReportSpec,
    pub(crate) tables: TrialTables,
    /// Whether every target is this machine by its very name.
    pub(crate) loopback: bool,
    /// The name of its file.
    pub(crate) file: String,
    /// The profile that it was read with.
    pub(crate) profile: Option<String>,
    pub(crate) quick: bool,
}

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
    /// Those of the generator; none where it may use all.
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

impl Study {
    /// True if variants are compared; otherwise the study describes one system.
    #[must_use]
    pub fn compares(&self) -> bool {
        self.factors.iter().any(Factor::is_compared)
    }

    /// The systems and databases that have a port in a trial with these levels, and how they come to
    /// it. A system that is never told a port is not among them, nor is what does not run, or runs
    /// already.
    #[must_use]
    pub fn system_ports(&self, assignment: &Assignment) -> Vec<(String, PortChoice)> {
        let mut ignored = Faults::new(self.tables.source.clone()); // reported by `resolve`
        self.tables.ports(assignment, &mut ignored)
    }

    /// The systems and databases of the trial with these levels that run on other hosts, each with the label of the agent
    /// there.
    #[must_use]
    pub fn system_hosts(&self, assignment: &Assignment) -> Vec<(String, String)> {
        let mut ignored = Faults::new(self.tables.source.clone()); // reported by `resolve`
        self.tables.hosts(assignment, &mut ignored)
    }

    /// Where the secrets of the study come from, by their names.
    #[must_use]
    pub fn secrets(&self) -> BTreeMap<String, SecretSource> {
        let source = |(name, table): &(String, SecretTable)| (name.clone(), table.source(&self.tables.dir));
        self.tables.secrets.iter().map(source).collect()
    }

    /// Bindings for checking the study: keys, passwords and secrets that nobody is to believe, one for each that the
    /// study needs, and no ports.
    #[must_use]
    pub fn stand_ins(&self) -> Bindings {
        self.tables.stand_ins()
    }

    /// What the trial with these levels is. `bindings` has the port of each system that has one,
    /// and the key pairs of stores; ports that the study fixes may be left out.
    ///
    /// # Errors
    ///
    /// What the placeholders make of the study cannot be run. [`read`](crate::read) has tried
    /// every combination of levels, so this happens only when `bindings` lack something.
    pub fn resolve(&self, assignment: &Assignment, bindings: &Bindings) -> Result<TrialSpec, Vec<Diagnostic>> {
        let mut faults = Faults::new(self.tables.source.clone());
        match self.tables.resolve(assignment, bindings, &mut faults) {
            Some(spec) if self.quick => Ok(TrialSpec { load: shortened(spec.load), ..spec }),
            Some(spec) => Ok(spec),
            None => Err(faults.into_diagnostics()),
        }
    }

    /// How long the phases of a trial take under a condition: the same for every variant.
    #[must_use]
    pub fn phase_lengths(&self, condition: &Assignment) -> PhaseLengths {
        let mut ignored = Faults::new(self.tables.source.clone());
        let load = self
            .tables
            .load(&self.baseline_under(condition), &mut ignored)
            .expect("a study that has been read resolves");
        length_of(&if self.quick { shortened(load) } else { load })
    }

    /// The search for the capacity under a condition, the same for every variant; none where the study names its loads.
    #[must_use]
    pub fn search(&self, condition: &Assignment) -> Option<SearchRange> {
        let mut ignored = Faults::new(self.tables.source.clone());
        let search = self.tables.search(&self.baseline_under(condition), &mut ignored)?;
        // A first look has no time for a minute.
        let most = self.phase_lengths(condition).measure * 3;
        let [confirm, recover] = [search.confirm, search.recover].map(|time| time.min(most));
        let quick = SearchRange { confirm, recover, longest: std::time::Duration::ZERO, ..search };
        Some(if self.quick { quick } else { search })
    }

    /// True if the capacity is searched for.
    #[must_use]
    pub fn searches(&self) -> bool {
        self.tables.load.search_span().is_some()
    }

    /// True if loads are to show what changes over their time.
    #[must_use]
    pub fn is_soak(&self) -> bool {
        self.tables.load.is_soak()
    }

    /// True if a control loop changes the number of users, and ends each trial.
    #[must_use]
    pub fn is_feedback(&self) -> bool {
        self.tables.load.is_feedback()
    }

    /// True if a number of iterations ends each trial.
    #[must_use]
    pub fn ends_after_iterations(&self) -> bool {
        self.tables.load.ends_after_iterations()
    }

    /// The levels of the baseline under a condition.
    fn baseline_under(&self, condition: &Assignment) -> Assignment {
        let baseline = combinations(self.factors.iter().filter(|factor| factor.is_compared())).swap_remove(0);
        baseline.and(condition)
    }

    /// How the variants share time. The number of turns is the same under all conditions.
    #[must_use]
    pub fn design(&self) -> Design {
        let conditions = combinations(self.factors.iter().filter(|factor| !factor.is_compared()));
        let measure = conditions.iter().map(|condition| self.phase_lengths(condition).measure).max();
        self.design.of(measure.unwrap_or_default(), sample_size::time_needed(self))
    }

    /// True if the study names its design, and not Plimsoll.
    #[must_use]
    pub fn names_design(&self) -> bool {
        self.design.is_named()
    }

    /// The same study in the design with which a run of it began. Defaults may have changed since then.
    #[must_use]
    pub fn begun_as(self, design: Design) -> Study {
        Study { design: self.design.begun_as(design), ..self }
    }

    /// True if the study says how many turns a start has.
    #[must_use]
    pub fn names_turns(&self) -> bool {
        self.design.count.is_some()
    }

    /// The same study with so many turns on a start.
    #[must_use]
    pub fn with_turns(mut self, count: u32) -> Study {
        self.design.count = Some(count);
        self
    }

    /// Why the study has its design, in words that follow the design's name.
    #[must_use]
    pub fn reason_of_design(&self) -> &str {
        &self.design.reason
    }

    /// Whether the study may load `host`, which resolves to `addresses`: always if they are this
    /// machine's loopback, otherwise only if `[targets] allow` lists the host or every address.
    #[must_use]
    pub fn may_load(&self, host: &str, addresses: &[IpAddr]) -> bool {
        may_load(&self.targets_allow, host, addresses)
    }

    /// The folder of the study, to which the paths in it are relative.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.tables.dir
    }

    /// A warning with the place where the study says where load goes, or which script sends it.
    #[must_use]
    pub fn warning_of_workload(&self, message: &str) -> Diagnostic {
        self.tables.source.diagnostic(Fault::warning(self.tables.workload.target_span(), message))
    }

    /// A warning about the design, with the place that names it; none where the study does not name one.
    #[must_use]
    pub fn warning_of_design(&self, message: &str, help: &str) -> Option<Diagnostic> {
        let place = self.design.place.as_ref()?;
        Some(self.tables.source.diagnostic(Fault::warning(place, message).help(help)))
    }

    /// A warning about a system, with the place of the command that starts it; none for a name that no system has.
    #[must_use]
    pub fn warning_of_system(&self, system: &str, message: &str, help: &str) -> Option<Diagnostic> {
        let (_, table) = self.tables.systems.iter().find(|(name, _)| name == system)?;
        Some(self.tables.source.diagnostic(Fault::warning(table.start_span(), message).help(help)))
    }

    /// What is wrong with, or to be known of, a part of the workload, with its place in the study. `known` is what
    /// there is, where a name was not found.
    #[must_use]
    pub fn diagnostic_of_part(
        &self,
        severity: Severity,
        part: WorkloadPart,
        message: &str,
        known: &[String],
    ) -> Option<Diagnostic> {
        let place = self.tables.workload.place_of(part, &Faults::new(self.tables.source.clone()))?;
        let wanted = self.tables.source.text().get(place.clone()).unwrap_or_default();
        let wanted = wanted.trim_start_matches("{$").trim_end_matches('}');
        let fault = match severity {
            Severity::Warning => Fault::warning(&place, message),
            Severity::Error => Fault::error(&place, message),
        };
        let help = did_you_mean(wanted, known.iter().map(String::as_str));
        Some(self.tables.source.diagnostic(fault.maybe_help(help)))
    }

    /// What a report needs to know.
    #[must_use]
    pub fn facts(&self) -> StudyFacts {
        StudyFacts {
            title: self.title.clone(),
            question: self.question.clone(),
            factors: self.factors.clone(),
            decide: self.decide.clone(),
            floor_rule: self.noise_floor.unwrap_or_default(),
            report: self.report.clone(),
            protocol: self.tables.workload.protocol(),
            open_load: self.tables.load.is_open(),
            load: self.tables.load.in_words(self.has_waits()),
            mean_think: self.tables.load.mean_think().filter(|_| !self.has_waits()),
            workload: self.tables.workload.in_words(),
            generator: self.generator.clone(),
            systems: self.tables.names_of_started(),
            metrics: first_of_each_name(self.tables.systems.iter().flat_map(|(_, table)| table.series())),
            commands: self.commands(),
            loopback: self.loopback,
            file: self.file.clone(),
            profile: self.profile.clone(),
            quick: self.quick,
            design_reason: self.design.reason.clone(),
            can_take_turns: self.design.can_take_turns,
            soak: self.tables.load.is_soak(),
            objective: self.objective.clone(),
        }
    }

    /// Whether users may pause between iterations because the workload says so, not the load.
    fn has_waits(&self) -> bool {
        self.tables.workload.has_waits()
    }

    /// What the databases of each variant are, and what starts its systems.
    fn commands(&self) -> Vec<Vec<String>> {
        let variants = combinations(self.factors.iter().filter(|factor| factor.is_compared()));
        let of = |levels: &Assignment| {
            let databases = self.tables.databases_in(levels).flat_map(|(name, table)| table.shown(name, levels));
            let systems = self.tables.running_systems(levels).flat_map(|(name, table)| table.shown(name, levels));
            databases.chain(systems).collect()
        };
        variants.iter().map(of).collect()
    }
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
        self.limit_search(&mut spec);
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

    /// Lets a search whose largest load the study does not name end where connections do: those of the database that users work
    /// with, and those that one address can have to another.
    fn limit_search(&self, spec: &mut TrialSpec) {
        let of_database = match &spec.workload.steps {
            Steps::Sql(sql) => spec.databases.iter().find(|one| one.name == sql.database).and_then(most_users),
            _ => spec.has_connections_of_users().then_some(MOST_CONNECTIONS),
        };
        if let (Some(range), Some(most)) = (&mut spec.search, of_database)
            && !self.load.names_most()
            && range.of_users
        {
            range.most = range.most.min(f64::from(most)).max(range.first);
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
    fn databases_in(&self, levels: &Assignment) -> impl Iterator<Item = &(String, DatabaseTable)> {
        self.databases.iter().filter(|(_, table)| table.runs(levels))
    }

    /// The databases that a run starts.
    fn started(&self) -> impl Iterator<Item = &(String, DatabaseTable)> {
        self.databases.iter().filter(|(_, table)| table.started().is_some())
    }

    /// The names of all that trials start: first databases, then systems.
    fn names_of_started(&self) -> Vec<String> {
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
    fn stand_ins(&self) -> Bindings {
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

/// What warm-up, measure and drain of `load` take.
pub(crate) fn length_of(load: &LoadProfile) -> PhaseLengths {
    PhaseLengths { warmup: load.warmup, measure: load.stop.limit(), drain: load.drain }
}
