//! A study that has been read: what it is about, and what each of its trials is.

use crate::document::{Diagnostic, Fault, Faults, Severity, did_you_mean};
use crate::hosts::may_load;
use crate::quick_load::{first_look, shortened};
use crate::sample_size;
use crate::table::design::DesignSpec;
use crate::table::generator::LostAgent;
use crate::table::metrics::first_of_each_name;
use crate::table::secret::{SecretSource, SecretTable};
use crate::trial_spec::TrialSpec;
use crate::trial_tables::{PortChoice, TrialTables};
use crate::value::Bindings;
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::flow::WorkloadPart;
use plimsoll_model::load::LoadProfile;
use plimsoll_model::objective::Objective;
use plimsoll_model::search::SearchRange;
use plimsoll_model::start::{Design, PhaseLengths};
use plimsoll_model::study::{Decision, FloorRule, GeneratorSpec, ReportSpec, StudyFacts};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

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
            Some(spec) if self.quick => Ok(first_look(spec)),
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
        // The databases of variants may allow for different numbers of users: all go as far as the one that allows for fewest.
        let compared = combinations(self.factors.iter().filter(|factor| factor.is_compared()));
        let most =
            compared.iter().filter_map(|variant| Some(self.tables.search(&variant.and(condition), &mut ignored)?.most));
        let most = most.fold(f64::INFINITY, f64::min);
        let search = self.tables.search(&self.baseline_under(condition), &mut ignored)?;
        let search = SearchRange { most: search.most.min(most), ..search };
        // A first look has no time for a minute.
        let most = self.phase_lengths(condition).measure * 3;
        let [confirm, recover] = [search.confirm, search.recover].map(|time| time.min(most));
        let quick = SearchRange { confirm, recover, longest: std::time::Duration::ZERO, new_users: None, ..search };
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

    /// The same study with the loads of a first look, and no more turns than these have room for.
    pub(crate) fn in_short_loads(mut self) -> Study {
        self.quick = true;
        if let Some(count) = self.design.count.take_if(|_| !self.design.has_begun) {
            let by_length = self.design().turns().map_or(count, |turns| turns.count);
            self.design.count = Some(count.min(by_length));
        }
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

/// What warm-up, measure and drain of `load` take.
pub(crate) fn length_of(load: &LoadProfile) -> PhaseLengths {
    PhaseLengths { warmup: load.warmup, measure: load.stop.limit(), drain: load.drain }
}
