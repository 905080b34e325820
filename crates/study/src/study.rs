//! A study that has been read: what it is about, and what each of its trials is.

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::faults::Faults;
use crate::quick;
use crate::scope::{Bindings, Scope};
use crate::table::load::LoadTable;
use crate::table::store::StoreTable;
use crate::table::system::SystemTable;
use crate::table::target::is_loopback;
use crate::table::workload::WorkloadTable;
use plimsoll_model::database::Database;
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::load::LoadProfile;
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, ReportSpec, StudyFacts};
use plimsoll_model::system::SystemSpec;
use plimsoll_model::trial::TrialLength;
use plimsoll_model::workload::{Steps, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

/// A study without faults.
#[derive(Clone, Debug)]
pub struct Study {
    /// What it is about, in one line.
    pub title: String,
    /// The question that it answers.
    pub question: String,
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
    pub(crate) generator: GeneratorSpec,
    pub(crate) decide: Vec<Decision>,
    pub(crate) report: ReportSpec,
    pub(crate) parts: Parts,
    /// Whether every target is this machine by its very name.
    pub(crate) loopback: bool,
    /// The profile that it was read with.
    pub(crate) profile: Option<String>,
    pub(crate) quick: bool,
}

/// The parts that become something else in each trial.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) systems: Vec<(String, SystemTable)>,
    pub(crate) stores: Vec<(String, StoreTable)>,
    pub(crate) workload: WorkloadTable,
    pub(crate) load: LoadTable,
    /// The systems that have a port.
    pub(crate) listening: BTreeSet<String>,
    pub(crate) dir: PathBuf,
    pub(crate) processors: Vec<usize>,
    pub(crate) source: Source,
}

/// Everything that one trial needs, with every placeholder filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSpec {
    /// The systems that run in it, in the order in which they start.
    pub systems: Vec<SystemSpec>,
    /// The databases of the trial, in the order of the file. Those that the run starts, it starts
    /// before the systems.
    pub databases: Vec<Database>,
    /// What a user does.
    pub workload: Workload,
    /// How load is offered.
    pub load: LoadProfile,
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
    /// The systems that have a port in a trial with these levels, and how they come to it. A
    /// system that is never told a port is not among them, nor is one that does not run.
    #[must_use]
    pub fn system_ports(&self, assignment: &Assignment) -> Vec<(String, PortChoice)> {
        let mut unheard = Faults::new(self.parts.source.clone()); // reported by `resolve`
        self.parts.ports(assignment, &mut unheard)
    }

    /// A key pair that nobody is to believe, for checking the study: one for each store whose
    /// credentials are generated.
    #[must_use]
    pub fn stand_in_keys(&self) -> BTreeMap<String, KeyPair> {
        self.parts.stand_in_keys()
    }

    /// What the trial with these levels is. `bindings` has the port of each system that has one,
    /// and the key pairs of stores; ports that the study fixes may be left out.
    ///
    /// # Errors
    ///
    /// What the placeholders make of the study cannot be run. [`read`](crate::read) has tried
    /// every combination of levels, so this happens only when `bindings` lack something.
    pub fn resolve(&self, assignment: &Assignment, bindings: &Bindings) -> Result<TrialSpec, Vec<Diagnostic>> {
        let mut faults = Faults::new(self.parts.source.clone());
        match self.parts.resolve(assignment, bindings, &mut faults) {
            Some(spec) if self.quick => Ok(TrialSpec { load: quick::shortened(spec.load), ..spec }),
            Some(spec) => Ok(spec),
            None => Err(faults.into_diagnostics()),
        }
    }

    /// How long the phases of a trial take under a condition: the same for every variant.
    #[must_use]
    pub fn trial_length(&self, condition: &Assignment) -> TrialLength {
        let baseline = combinations(self.factors.iter().filter(|factor| factor.is_compared())).swap_remove(0);
        let mut unheard = Faults::new(self.parts.source.clone());
        let load =
            self.parts.load(&baseline.and(condition), &mut unheard).expect("a study that has been read resolves");
        length_of(&if self.quick { quick::shortened(load) } else { load })
    }

    /// Whether the study may load `host`, which resolves to `addresses`: always if they are this
    /// machine's loopback, otherwise only if `[targets] allow` lists the host or every address.
    #[must_use]
    pub fn may_load(&self, host: &str, addresses: &[IpAddr]) -> bool {
        may_load(&self.targets_allow, host, addresses)
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
            protocol: self.parts.workload.protocol().to_owned(),
            open_load: self.parts.load.is_open(),
            load: self.parts.load.in_words(),
            mean_think: self.parts.load.mean_think(),
            workload: self.parts.workload.in_words(),
            generator: self.generator.clone(),
            systems: self.parts.systems.iter().map(|(name, _)| name.clone()).collect(),
            commands: self.commands(),
            loopback: self.loopback,
            profile: self.profile.clone(),
            quick: self.quick,
        }
    }

    /// What starts the systems of each variant.
    fn commands(&self) -> Vec<Vec<String>> {
        let variants = combinations(self.factors.iter().filter(|factor| factor.is_compared()));
        let of = |levels: &Assignment| {
            let systems = self.parts.running(levels);
            systems.flat_map(|(name, table)| table.shown(name, levels)).collect()
        };
        variants.iter().map(of).collect()
    }
}

impl Parts {
    pub(crate) fn resolve(
        &self,
        assignment: &Assignment,
        bindings: &Bindings,
        faults: &mut Faults,
    ) -> Option<TrialSpec> {
        let bindings = self.with_fixed_ports(assignment, bindings, faults);
        let resting = self.resting(assignment);
        let scope = Scope { resting: &resting, ..self.scope(assignment, &bindings) };
        let systems: Vec<Option<SystemSpec>> =
            self.running(assignment).map(|(name, table)| table.resolve(name, &scope.inside(name), faults)).collect();
        let workload = self.workload.resolve(&scope, &self.stores, faults);
        let load = self.load.resolve(&scope, faults);
        Some(TrialSpec {
            systems: systems.into_iter().collect::<Option<_>>()?,
            databases: Vec::new(),
            workload: workload?,
            load: load?,
        })
    }

    pub(crate) fn load(&self, assignment: &Assignment, faults: &mut Faults) -> Option<LoadProfile> {
        let bindings = self.stand_ins(assignment, faults);
        self.load.resolve(&self.scope(assignment, &bindings), faults)
    }

    /// The systems that run in trials with these levels.
    pub(crate) fn running(&self, levels: &Assignment) -> impl Iterator<Item = &(String, SystemTable)> {
        self.systems.iter().filter(|(_, table)| table.runs(levels))
    }

    /// The names of those that do not.
    fn resting(&self, levels: &Assignment) -> Vec<&str> {
        self.systems.iter().filter(|(_, table)| !table.runs(levels)).map(|(name, _)| name.as_str()).collect()
    }

    fn stand_in_keys(&self) -> BTreeMap<String, KeyPair> {
        let pair = || KeyPair { access_key: "access-key".to_owned(), secret: Secret("secret-key".to_owned()) };
        let keyed = self.stores.iter().filter(|(_, table)| table.is_keyed());
        keyed.map(|(name, _)| (name.clone(), pair())).collect()
    }

    /// Bindings for checking, when nothing runs yet: port 1 for every system that has no other.
    /// Even for those that are never told a port: that has been reported.
    pub(crate) fn stand_ins(&self, assignment: &Assignment, faults: &mut Faults) -> Bindings {
        let mut ports: BTreeMap<String, u16> = self.running(assignment).map(|(name, _)| (name.clone(), 1)).collect();
        for (name, choice) in self.ports(assignment, faults) {
            if let PortChoice::Fixed(port) = choice {
                ports.insert(name, port);
            }
        }
        Bindings { ports, plimsoll: PathBuf::from("plimsoll"), keys: self.stand_in_keys() }
    }

    pub(crate) fn ports(&self, assignment: &Assignment, faults: &mut Faults) -> Vec<(String, PortChoice)> {
        // No port can depend on another one.
        let none = Bindings::default();
        let scope = self.scope(assignment, &none);
        let mut choices = Vec::new();
        for (name, table) in self.running(assignment).filter(|(name, _)| self.listening.contains(name)) {
            let choice = match &table.port {
                Some(port) => port.resolve(&scope.inside(name), faults).map(|port| PortChoice::Fixed(port.u16())),
                None => Some(PortChoice::Free),
            };
            choices.extend(choice.map(|choice| (name.clone(), choice)));
        }
        choices
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
        Scope { assignment, bindings, resting: &[], system: None, dir: &self.dir, processors: &self.processors }
    }

    /// Where the study says where `workload` goes.
    pub(crate) fn target_span(&self, workload: &Workload) -> &Span {
        let store = match &workload.steps {
            Steps::Storage(storage) => self.stores.iter().find(|(name, _)| *name == storage.name),
            Steps::Http(_) | Steps::Grpc { .. } | Steps::Sql(_) => None,
        };
        store.map_or_else(|| self.workload.target_span(), |(_, store)| store.target_span())
    }
}

/// Whether load may go to `host` when `allow` lists hosts and addresses besides this machine's.
pub(crate) fn may_load(allow: &[String], host: &str, addresses: &[IpAddr]) -> bool {
    let listed = |name: &str| allow.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    let own = |address: &IpAddr| address.to_canonical().is_loopback() || listed(&address.to_string());
    listed(host) || (!addresses.is_empty() && addresses.iter().all(own))
}

/// What warm-up, measure and drain of `load` take.
pub(crate) fn length_of(load: &LoadProfile) -> TrialLength {
    TrialLength { warmup: load.warmup, measure: load.stop.limit(), drain: load.drain }
}

/// Whether the target of `workload` is this machine by its very name, or there is none.
pub(crate) fn stays_here(workload: &Workload) -> bool {
    workload.target.as_ref().is_none_or(|target| is_loopback(&target.host))
}
