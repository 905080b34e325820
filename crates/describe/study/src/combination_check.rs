//! Checks that look at all trials of a study: every combination of levels resolves, and what the trials
//! need of one another holds.

use crate::document::{Fault, Faults, Span};
use crate::hosts::{host_of, hosts, may_load};
use crate::study::{Study, length_of};
use crate::table::database::{DatabaseTables, kept_data};
use crate::table::design::{DesignSpec, respect_fixed_port, respect_restored_data, respect_shared_data};
use crate::table::factors::{Factors, NamedFactor};
use crate::table::store::Stores;
use crate::table::target::is_loopback;
use crate::trial_spec::TrialSpec;
use crate::trial_tables::{PortChoice, TrialTables};
use crate::value::Literal;
use plimsoll_model::database::Database;
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::load::LoadModel;
use plimsoll_model::measure::{Measure, Series};
use plimsoll_model::start::PhaseLengths;
use plimsoll_model::system::{CommandLine, SystemSpec};
use plimsoll_model::workload::{Connect, Steps};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

/// The most variants that a study can compare: what a reader can still hold against one another,
/// and a block that is over before the machine has changed.
const MOST_VARIANTS: usize = 40;

/// Refuses a study with more variants than that.
pub(crate) fn check_variants(factors: &Factors, faults: &mut Faults) -> Option<()> {
    let compared: Vec<(&NamedFactor, usize)> = factors
        .0
        .iter()
        .filter_map(|named| Some((named, named.factor.as_ref().filter(|factor| factor.is_compared())?.levels.len())))
        .collect();
    let variants = compared.iter().try_fold(1_usize, |count, (_, levels)| count.checked_mul(*levels));
    if variants.is_some_and(|variants| variants <= MOST_VARIANTS) {
        return Some(());
    }
    let place = compared.iter().max_by_key(|(_, levels)| levels).map_or(0..0, |(named, _)| named.place.clone());
    let message = match variants {
        Some(variants) => format!("the study compares {variants} variants; {MOST_VARIANTS} are the most"),
        None => format!("the study compares more than {MOST_VARIANTS} variants"),
    };
    let help =
        "compare fewer levels, or make a condition of a factor whose levels need not be held against one another";
    faults.add(Fault::error(&place, message).help(help));
    None
}

/// The most combinations of levels that a study can have: at a second each, hours of trials.
const MOST_COMBINATIONS: usize = 10_000;

/// Refuses a study with more combinations of levels than that.
pub(crate) fn check_number(factors: &[Factor], faults: &mut Faults) -> Option<()> {
    let count = factors.iter().try_fold(1_usize, |count, factor| count.checked_mul(factor.levels.len()));
    if count.is_some_and(|count| count <= MOST_COMBINATIONS) {
        return Some(());
    }
    let message = format!("the levels make more than {MOST_COMBINATIONS} combinations");
    faults.add(Fault::error(&(0..0), message).help("name fewer levels, or make two studies of it"));
    None
}

/// What is known of all trials of a study together.
pub(crate) struct AllTrials {
    /// Whether all targets are this machine.
    pub(crate) loopback: bool,
    /// The stores that objects go to.
    stores: BTreeSet<String>,
    /// The databases that run in trials whose users work with another one.
    idle_databases: BTreeSet<String>,
    /// The data of databases that is kept, by its folder.
    kept: KeptData,
    /// True if in all trials users connect before the measure phase, and keep their connections.
    keeps_connections: bool,
}

/// Resolves every trial of a study whose number of combinations has been checked. `None` when one cannot be
/// resolved; the faults say why.
pub(crate) fn resolve_every_combination(
    factors: &[Factor],
    tables: &TrialTables,
    faults: &mut Faults,
) -> Option<AllTrials> {
    let variants = combinations(factors.iter().filter(|factor| factor.is_compared()));
    let (mut fine, mut beyond_machines, mut builds) = (true, None, Builds::new());
    let mut trials = AllTrials {
        loopback: true,
        stores: BTreeSet::new(),
        idle_databases: BTreeSet::new(),
        kept: BTreeMap::new(),
        keeps_connections: true,
    };
    for condition in combinations(factors.iter().filter(|factor| !factor.is_compared())) {
        let mut lengths: Vec<PhaseLengths> = Vec::new();
        for variant in &variants {
            let assignment = variant.and(&condition);
            check_ports(tables, &assignment, faults);
            let bindings = tables.stand_in_bindings(&assignment, faults);
            match tables.resolve(&assignment, &bindings, faults) {
                Some(spec) => {
                    // A script says only when it runs where it goes.
                    let at_home =
                        hosts(&spec).all(is_loopback) && (!tables.workload.is_script() || tables.allowed.is_empty());
                    let at_home = at_home
                        && spec.systems.iter().all(|system| system.on.is_none())
                        && spec.databases.iter().all(|database| database.on().is_none());
                    trials.loopback &= at_home;
                    match &spec.workload.steps {
                        Steps::Storage(storage) => drop(trials.stores.insert(storage.name.clone())),
                        Steps::Sql(sql) => trials.idle_databases.extend(spec.databases_beside(&sql.database)),
                        Steps::Http(_) | Steps::Grpc { .. } | Steps::Flow(_) | Steps::Script(_) => {}
                    }
                    trials.keeps_connections &= keeps_connections(&spec);
                    check_targets(&spec, tables, faults);
                    beyond_machines = beyond_machines.or_else(|| beyond_any_machine(&spec, tables));
                    check_kept_data(&spec, tables, &mut trials.kept, faults);
                    check_builds(&spec, tables, &mut builds, faults);
                    lengths.push(length_of(&spec.load));
                }
                None => fine = false,
            }
        }
        if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
            let fault = Fault::error(
                &tables.load.length_span(),
                "the variants would be measured for different lengths of time",
            );
            faults.add(fault.help("let the lengths in `load` depend on conditions only, not on a compared factor"));
        }
    }
    if let Some(fault) = beyond_machines {
        faults.add(fault);
    }
    fine.then_some(trials)
}

/// The connections that one address can have to another: one for each port that is not reserved.
pub(crate) const MOST_CONNECTIONS: u32 = 65_535 - 1_023;

/// Iterations per second that no processor starts: the cheapest exchange takes 2.5 µs of one (bench/RESULTS.md), and half
/// of that leaves room for faster ones.
const MOST_RATE_OF_A_PROCESSOR: f64 = 800_000.0;

/// More arrivals per second than a machine with so many processors can start.
pub(crate) fn most_rate(processors: usize) -> f64 {
    MOST_RATE_OF_A_PROCESSOR * processors.max(1) as f64
}

/// The fault of a load that no machine of this kind can offer; what depends on the limits of a machine is told where
/// these are known.
fn beyond_any_machine(spec: &TrialSpec, tables: &TrialTables) -> Option<Fault> {
    let largest = spec.largest_load();
    let users = largest.most_users();
    if spec.has_connections_of_users() && users > MOST_CONNECTIONS {
        let message = format!(
            "{users} users with a connection each are too many: an address has {MOST_CONNECTIONS} ports for connections to \
             another one"
        );
        let has_most = spec.search.is_some() || largest.stop.feedback().is_some();
        let fewer = if has_most { "write a smaller `most`" } else { "name fewer users" };
        let help = format!("{fewer}, or let them share connections: `connect = \"shared 1000\"`");
        return Some(Fault::error(tables.load.most_users_span(), message).help(help));
    }
    let LoadModel::Open { rate, .. } = &largest.model else { return None };
    let most = most_rate(tables.processors.len());
    (rate.peak() > most).then(|| {
        let message = format!(
            "{} iterations per second are too many: {} processors start {most} at most, however little an iteration does",
            rate.peak(),
            tables.processors.len().max(1)
        );
        Fault::error(tables.load.rate_span(), message).help("name a lower rate; a tenth of that is much for one machine")
    })
}

impl AllTrials {
    /// Warns of stores and databases that no trial uses.
    pub(crate) fn warn_of_unused(&self, stores: &Stores, databases: &DatabaseTables, faults: &mut Faults) {
        warn_of_unused_stores(stores, &self.stores, faults);
        warn_of_idle_databases(databases, &self.idle_databases, faults);
    }

    /// Warns of measures of connecting where only a server that closes connections makes users connect while it is
    /// measured.
    pub(crate) fn warn_of_connecting<'a>(
        &self,
        measures: impl Iterator<Item = &'a Literal<Measure>>,
        faults: &mut Faults,
    ) {
        for measure in measures.filter(|one| self.keeps_connections && one.value.series == Series::ConnectDuration) {
            let message = format!(
                "`{}` has values only where the server closes connections: users connect before a load is measured",
                measure.value
            );
            let help = "let users connect while they are measured: `connect = \"every iteration\"`";
            faults.add(Fault::warning(&measure.span, message).help(help));
        }
    }
}

/// True if users connect before the measure phase, and keep their connections.
fn keeps_connections(spec: &TrialSpec) -> bool {
    let is_kept = spec.workload.target.is_some() && spec.workload.connect != Connect::PerIteration;
    // Users that come with a stage connect in it.
    let are_there = matches!(&spec.load.model, LoadModel::Closed { users, .. } if users.peak() <= users.start);
    is_kept && are_there && !spec.load.warmup.is_zero()
}

fn warn_of_unused_stores(stores: &Stores, used: &BTreeSet<String>, faults: &mut Faults) {
    for (name, place, _) in stores.0.iter().filter(|(name, ..)| !used.contains(name)) {
        let fault = Fault::warning(place, format!("store `{name}` is used in no trial"));
        faults.add(fault.help(format!("storage workloads name it: `store = \"{name}\"`, or a level of a factor")));
    }
}

/// A database that users do not work with takes memory and processors all the same, unless something
/// that names it works with it.
fn warn_of_idle_databases(databases: &DatabaseTables, idle: &BTreeSet<String>, faults: &mut Faults) {
    for (name, place, _) in databases.0.iter().filter(|(name, ..)| idle.contains(name)) {
        if !faults.source().text().contains(&format!("{{{name}.")) {
            let fault = Fault::warning(place, format!("database `{name}` runs in trials that do not use it"));
            faults.add(fault.help("give it `only = { FACTOR = \"LEVEL\" }` with the trials that do"));
        }
    }
}

/// Variants that take turns listen at the same time, and serve their data. Where they cannot, trials are left. That is
/// decided before any is resolved: the processors that are a variant's own depend on how many variants are alive.
pub(crate) fn check_what_is_shared_in_turns(
    design: &mut DesignSpec,
    factors: &[Factor],
    tables: &TrialTables,
    faults: &mut Faults,
) {
    let mut ignored = Faults::new(faults.source().clone()); // reported where trials are resolved
    let (mut shared, mut fixed): (BTreeSet<String>, BTreeMap<String, u16>) = (BTreeSet::new(), BTreeMap::new());
    for assignment in combinations(factors) {
        shared.extend(tables.databases_with_shared_data(&assignment, &mut ignored));
        fixed.extend(tables.ports(&assignment, &mut ignored).into_iter().filter_map(|(name, choice)| match choice {
            PortChoice::Fixed(port) => Some((name, port)),
            PortChoice::Free => None,
        }));
    }
    // One that does not use `{port}` may still listen on one that its command names.
    fixed.extend(tables.ports_of_commands(faults));
    for database in shared {
        respect_shared_data(design, &database, faults);
    }
    let compared: Vec<&str> = factors.iter().filter(|one| one.is_compared()).map(|one| one.name.as_str()).collect();
    for database in tables.databases_restored_by(&compared) {
        respect_restored_data(design, database, faults);
    }
    for (system, port) in fixed {
        respect_fixed_port(design, &system, port, faults);
    }
}

/// A month: whoever wants to wait longer than that should know it.
const LONG: f64 = 30.0 * DAY;
const DAY: f64 = 86_400.0;

/// Warns of a study that takes longer than that under load.
pub(crate) fn warn_of_long_study(study: &Study, faults: &mut Faults) {
    let variants: usize =
        study.factors.iter().filter(|factor| factor.is_compared()).map(|factor| factor.levels.len()).product();
    let conditions = combinations(study.factors.iter().filter(|factor| !factor.is_compared()));
    let once: f64 = conditions
        .iter()
        .map(|condition| {
            let length = study.phase_lengths(condition);
            (length.warmup + length.measure).as_secs_f64()
        })
        .sum();
    let in_block = variants + usize::from(study.noise_floor.is_some());
    let total = once * in_block as f64 * f64::from(study.repeats);
    if total > LONG {
        let message = format!("the trials take {} under load", long_span(total));
        let fault = Fault::warning(&study.tables.load.length_span(), message);
        faults
            .add(fault.help(
                "shorten `duration`, or name fewer levels or repeats; `plimsoll plan` shows what they add up to",
            ));
    }
}

/// Days or years, as people say them.
fn long_span(seconds: f64) -> String {
    let days = seconds / DAY;
    if days < 2.0 * 365.0 { format!("{days:.0} days") } else { format!("{:.0} years", days / 365.0) }
}

fn check_targets(spec: &TrialSpec, tables: &TrialTables, faults: &mut Faults) {
    let allow = &tables.allowed;
    if let Some(target) = &spec.workload.target {
        check_target(&target.host, tables.target_span(&spec.workload), allow, faults);
    }
    for (database, host) in spec.databases.iter().filter_map(|database| Some((database, host_of(database)?))) {
        check_target(host, tables.span_of_database(&database.name), allow, faults);
    }
}

/// A target that is an address can be judged at once. So can a name, and before anybody is asked for
/// its addresses, unless the study lists addresses: then all of the name's may be among them.
fn check_target(host: &str, span: &Span, allow: &[String], faults: &mut Faults) {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let refused = match host.parse::<IpAddr>() {
        Ok(address) => !may_load(allow, host, &[address]),
        Err(_) => !is_loopback(host) && !may_load(allow, host, &[]) && !allow.iter().any(|allowed| is_address(allowed)),
    };
    if refused {
        let message = format!("load may not go to {host}, which is not this machine");
        let help = format!("if that host is yours to load, say so: `[targets]` with `allow = [\"{host}\"]`");
        faults.add(Fault::error(span, message).help(help));
    }
}

/// The builds of systems, by all else of a trial but its load.
type Builds = BTreeMap<String, CommandLine>;

/// Trials between which nothing but a build differs run the same: all builds run before the first start. Where anything else
/// differs, that may choose what was built.
fn check_builds(spec: &TrialSpec, tables: &TrialTables, seen: &mut Builds, faults: &mut Faults) {
    for system in spec.systems.iter().filter(|system| system.containers.is_none()) {
        let Some(build) = &system.build else { continue };
        let name = &system.name;
        let unbuilt: Vec<SystemSpec> =
            spec.systems.iter().map(|system| SystemSpec { build: None, cpus: None, ..system.clone() }).collect();
        let all_else = format!("{:?}", (name, unbuilt, &spec.databases, &spec.workload));
        if seen.entry(all_else).or_insert_with(|| build.clone()) != build {
            let message = format!(
                "`{name}` is built in different ways, and nothing else differs: whichever is built last would run as all"
            );
            let help = "let each have a file of its own, as in `build = \"go build -tags {version} -o shop-{version}\"` and \
                        `start = \"./shop-{version}\"`";
            faults.add(Fault::error(&tables.span_of_build(name), message).help(help));
        }
    }
}

/// What is kept, by the label of the agent on whose host it is, and the folder.
type KeptData = BTreeMap<(Option<String>, PathBuf), Database>;

/// A folder can keep the data of all trials only if it is the same in all of them.
fn check_kept_data(spec: &TrialSpec, tables: &TrialTables, seen: &mut KeptData, faults: &mut Faults) {
    let kept = spec.databases.iter().filter_map(|database| Some((database.on(), kept_data(database)?)));
    for (on, (folder, database)) in kept {
        let place = (on.map(str::to_owned), folder);
        let known = seen.entry(place).or_insert_with(|| database.clone());
        if *known != database {
            let message = format!("`database.{}.data` would keep different data in different trials", database.name);
            let help = "let the name of the folder depend on what differs, as in \"data/{FACTOR}\"";
            faults.add(Fault::error(tables.span_of_data(&database.name), message).help(help));
        }
    }
}

fn check_ports(tables: &TrialTables, assignment: &Assignment, faults: &mut Faults) {
    let hosts: BTreeMap<String, String> = tables.hosts(assignment, faults).into_iter().collect();
    let mut taken: Vec<(u16, String)> = Vec::new();
    for (name, choice) in tables.ports(assignment, faults) {
        let PortChoice::Fixed(port) = choice else { continue };
        let is_same = |other: &str| hosts.get(other) == hosts.get(&name);
        if let Some((_, other)) = taken.iter().find(|(known, other)| *known == port && is_same(other)) {
            let span = tables.port_of(&name).map_or(0..0, |port| port.span.clone());
            let fault = Fault::error(&span, format!("`{other}` and `{name}` both have port {port}"));
            faults.add(fault.help("give them different ports, or leave `port` out and let Plimsoll pick free ones"));
        }
        taken.push((port, name));
    }
}
