//! Finds everything that would go wrong, before anything is started.

use crate::databases::{may_load, starts_here};
use crate::disk_space;
use crate::keys;
use crate::sampled::PORT_FORWARDER;
use crate::scripts;
use crate::target;
use plimsoll_generator::WorkloadDiagnostic;
use plimsoll_model::database::{Database, Origin};
use plimsoll_model::factor::Assignment;
use plimsoll_model::flow::{Auth, Password};
use plimsoll_model::load::LoadProfile;
use plimsoll_model::measure::{Measure, Series};
use plimsoll_model::plan::Plan;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::Processors;
use plimsoll_model::words::and_list;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::{Bindings, Diagnostic, Place, PortChoice, Severity, Study, TrialSpec};
use plimsoll_system::{check_commands, check_containers, check_port_free};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A placeholder for a free port, which is chosen only when its system starts: the last port, which no message has for
/// another reason.
pub(crate) const STAND_IN: u16 = u16::MAX;

/// What messages say in its place.
const A_PORT: &str = "{port}";

/// A fault that would make the study fail.
#[derive(Clone, Debug)]
pub enum PreflightFault {
    /// A fault at a place in the study file.
    InStudy(Diagnostic),
    /// Any other, in words.
    Elsewhere(String),
}

impl std::fmt::Display for PreflightFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PreflightFault::InStudy(diagnostic) => diagnostic.fmt(f),
            PreflightFault::Elsewhere(text) => f.write_str(text),
        }
    }
}

/// Finds what would go wrong, each fault once: programs that are not found, ports in use, targets that the study may
/// not load, folders that hold no data of Plimsoll's, `.proto` files that do not compile, calls and messages that do
/// not fit, measures of metrics that scripts do not make, secrets that are not there. Empty when the study can start. A run
/// that `resumes` first ends what the interrupted one has left, which may still have ports.
#[must_use]
pub fn preflight(study: &Study, plan: &Plan, program: &Path, resumes: bool) -> Vec<PreflightFault> {
    let mut faults: Vec<PreflightFault> = Vec::new();
    let mut texts = BTreeSet::new();
    let of_trials = assignments(plan).into_iter().flat_map(|assignment| {
        let of_ports = if resumes { Vec::new() } else { faults_of_ports(study, &assignment) };
        [of_ports, faults_of(study, &assignment, program)].concat()
    });
    let of_databases = faults_of_databases(study, plan, program).into_iter().map(PreflightFault::Elsewhere);
    let of_containers = faults_of_containers(study, plan, program).into_iter().map(PreflightFault::Elsewhere);
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    let of_secrets = keys::read_secrets(study).err().unwrap_or_default().into_iter().map(PreflightFault::Elsewhere);
    let scripts = scripts::metrics(study, specs.map(|spec| spec.workload));
    let of_measures = study.check_metrics(&scripts).into_iter().map(PreflightFault::InStudy);
    for fault in of_trials.chain(of_databases).chain(of_containers).chain(of_secrets).chain(of_measures) {
        if texts.insert(fault.to_string()) {
            faults.push(fault);
        }
    }
    faults
}

/// The databases that trials use, each distinct one once, with placeholders for ports.
#[must_use]
pub fn databases(study: &Study, plan: &Plan, program: &Path) -> Vec<Database> {
    distinct(study, plan, program, |spec| spec.databases)
}

/// The parts of all trials, each distinct one once, with placeholders for ports.
fn distinct<T: PartialEq>(study: &Study, plan: &Plan, program: &Path, parts: impl Fn(TrialSpec) -> Vec<T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for spec in assignments(plan).iter().filter_map(|assignment| stand_in(study, assignment, program).ok()) {
        for part in parts(spec) {
            if !found.contains(&part) {
                found.push(part);
            }
        }
    }
    found
}

/// The labels of the agents on whose hosts systems run.
#[must_use]
pub fn hosts(study: &Study, plan: &Plan) -> BTreeSet<String> {
    let of_trials = assignments(plan).into_iter().flat_map(|assignment| study.system_hosts(&assignment));
    of_trials.map(|(_, label)| label).collect()
}

/// The workloads of all trials, before systems have ports.
#[must_use]
pub fn workloads(study: &Study, plan: &Plan, program: &Path) -> Vec<Workload> {
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    specs.map(|spec| spec.workload).collect()
}

/// The environment variables from which users take their passwords and tokens.
pub(crate) fn secret_variables(study: &Study, plan: &Plan, program: &Path) -> Vec<String> {
    let mut variables = BTreeSet::new();
    for spec in assignments(plan).iter().filter_map(|assignment| stand_in(study, assignment, program).ok()) {
        let Steps::Flow(flow) = &spec.workload.steps else { continue };
        variables.extend(flow.requests.iter().filter_map(|request| variable_of(request.auth.as_ref()?)));
    }
    variables.into_iter().collect()
}

fn variable_of(auth: &Auth) -> Option<String> {
    match auth {
        Auth::BearerOf(variable) | Auth::Basic { password: Password::Environment(variable), .. } => {
            Some(variable.clone())
        }
        Auth::Basic { .. } | Auth::Bearer(_) => None,
    }
}

/// Warnings about the workload for the author of the study, each once: scripts may set things that the study sets too,
/// feeds may have too few rows, this machine too few files for the connections, and systems may inherit secrets.
#[must_use]
pub fn notes(study: &Study, plan: &Plan, program: &Path) -> Vec<Diagnostic> {
    let mut notes: Vec<Diagnostic> = Vec::new();
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    let mut known: Vec<(Workload, LoadProfile)> = Vec::new();
    for pair in specs.map(|spec| (spec.workload.clone(), spec.largest_load())) {
        if !known.contains(&pair) {
            let of_script = plimsoll_generator::notes(&pair.0).into_iter();
            notes.extend(of_script.map(|note| study.warning_of_workload(&note)));
            let of_flow = plimsoll_generator::diagnostics(&pair.0, &pair.1);
            notes.extend(of_flow.iter().filter_map(|remark| in_study(study, Severity::Warning, remark)));
            let most = plimsoll_telemetry::most_open_files();
            let of_machine = too_few_files(&pair.0, &pair.1, variants_with_users(plan), most);
            notes.extend(of_machine.map(|note| study.warning_of_workload(&note)));
            known.push(pair);
        }
    }
    notes.extend(inherited_secrets(study, plan, program));
    notes.extend(shared_processors(study, plan, program));
    let mut texts = BTreeSet::new();
    notes.retain(|note| texts.insert(note.to_string()));
    notes
}

/// Warnings about systems that get secrets of the environment, because the study does not say which variables they get.
fn inherited_secrets(study: &Study, plan: &Plan, program: &Path) -> Vec<Diagnostic> {
    let secrets: Vec<String> = keys::probable_secrets().into_keys().collect();
    if secrets.is_empty() {
        return Vec::new();
    }
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    // One on another host gets the environment of its agent.
    let systems = specs.flat_map(|spec| spec.systems).filter(|system| system.inherit.is_none() && system.on.is_none());
    let warning = |system: String| {
        let message =
            format!("`{system}` gets the whole environment, with what looks like secrets: {}", and_list(&secrets));
        study.warning_of_system(&system, &message, "name the variables that it needs: `inherit = [\"PATH\", \"HOME\"]`")
    };
    systems.filter_map(|system| warning(system.name)).collect()
}

/// The warning about variants that are loaded at the same time and have no processors of their own: what they do to each
/// other may hide a difference, so that nothing can be shown to be no worse.
fn shared_processors(study: &Study, plan: &Plan, program: &Path) -> Option<Diagnostic> {
    if !plan.design.is_side_by_side() {
        return None;
    }
    let of_generator = study.facts().generator.cpus;
    let condition = plan.conditions.first()?;
    let mut taken: BTreeSet<usize> = of_generator.iter().flat_map(|cpus| cpus.0.iter().copied()).collect();
    let mut is_shared = of_generator.is_none();
    for place in 0..plan.block_size() {
        let assignment = plan.variant(place).and(condition);
        let place = (place, plan.block_size());
        let spec = stand_in_at(study, &assignment, program, place, BTreeMap::new()).ok()?;
        let here = spec.systems.iter().filter(|system| system.on.is_none());
        let of_systems = here.map(|system| system.cpus.clone());
        let here = spec.databases.iter().filter(|database| database.on().is_none());
        let of_databases = here.map(|database| match &database.origin {
            Origin::Started(server) => server.cpus.clone(),
            _ => None,
        });
        let all: Vec<Option<Processors>> = of_systems.chain(of_databases).collect();
        let known: BTreeSet<usize> = all.iter().flatten().flat_map(|cpus| cpus.0.iter().copied()).collect();
        is_shared |= all.contains(&None) || !known.is_disjoint(&taken);
        taken.extend(known);
    }
    let message = "side by side, systems and generator share processors here: that may hide a difference, so nothing is \
                   called equivalent, and `--gate` passes only what is better";
    let help = "use `design = \"turns\"`, or give each processors of its own: `cpus = \"own\"`";
    if is_shared { study.warning_of_design(message, help) } else { None }
}

/// Files that Plimsoll opens beside connections.
const OTHER_FILES: u64 = 100;

/// The number of variants whose users have connections at the same time: in turns and side by side they keep them from
/// slice to slice, but not from load to load of a search.
fn variants_with_users(plan: &Plan) -> usize {
    if plan.design.is_trials() || plan.searches() { 1 } else { plan.block_size() }
}

/// The warning about a load of so many variants that takes more connections than this machine lets Plimsoll open.
fn too_few_files(workload: &Workload, load: &LoadProfile, variants: usize, most: Option<u64>) -> Option<String> {
    let users = load.most_users();
    let connections = workload.most_connections(users.into(), u64::from).saturating_mul(variants as u64);
    let most = most.filter(|most| workload.target.is_some() && connections.saturating_add(OTHER_FILES) > *most)?;
    let who = match variants {
        1 => format!("{users} users"),
        _ => format!("{users} users of each of {variants} variants, which are alive at the same time,"),
    };
    Some(format!(
        "{who} take {connections} connections, and on this machine a process opens {most} files at most: a run here \
         fails; raise the hard limit (`ulimit -Hn`), name fewer users, or let them share connections (`connect`)"
    ))
}

/// Converts a remark on a part of the workload to a diagnostic with its place in the study.
fn in_study(study: &Study, severity: Severity, remark: &WorkloadDiagnostic) -> Option<Diagnostic> {
    study.diagnostic_of_part(severity, remark.part?, &remark.what, &remark.known)
}

fn assignments(plan: &Plan) -> Vec<Assignment> {
    let pairs = plan.conditions.iter().flat_map(|condition| plan.variants.iter().map(|variant| variant.and(condition)));
    pairs.collect()
}

/// A message in which ports that are not chosen yet have no number.
pub(crate) fn with_words_for_ports(message: &str) -> String {
    message.replace(&STAND_IN.to_string(), A_PORT)
}

/// The specification of a trial before its ports are known, with placeholders for them.
pub(crate) fn stand_in(study: &Study, assignment: &Assignment, program: &Path) -> Result<TrialSpec, Vec<Diagnostic>> {
    stand_in_at(study, assignment, program, (0, 1), BTreeMap::new())
}

/// The same, of a variant at a place among those that are alive at the same time, and with the places of systems on other
/// hosts.
pub(crate) fn stand_in_at(
    study: &Study,
    assignment: &Assignment,
    program: &Path,
    place: (usize, usize),
    places: BTreeMap<String, Place>,
) -> Result<TrialSpec, Vec<Diagnostic>> {
    let port = |choice| match choice {
        PortChoice::Fixed(port) => port,
        PortChoice::Free => STAND_IN,
    };
    let ports = study.system_ports(assignment).into_iter().map(|(name, choice)| (name, port(choice))).collect();
    // The versions of programs are recorded, and must not contain the keys and secrets of the run.
    let bindings = Bindings { ports, plimsoll: program.to_owned(), place, places, ..study.stand_ins() };
    study.resolve(assignment, &bindings)
}

/// The ports that the study fixes and that are in use. Other hosts are asked when the run has them.
fn faults_of_ports(study: &Study, assignment: &Assignment) -> Vec<PreflightFault> {
    let elsewhere: BTreeMap<String, String> = study.system_hosts(assignment).into_iter().collect();
    let here = study.system_ports(assignment).into_iter().filter(|(name, _)| !elsewhere.contains_key(name));
    let in_use = here.filter_map(|(_, choice)| match choice {
        PortChoice::Fixed(port) => check_port_free(port).err(),
        _ => None,
    });
    in_use.map(|error| PreflightFault::Elsewhere(error.to_string())).collect()
}

fn faults_of(study: &Study, assignment: &Assignment, program: &Path) -> Vec<PreflightFault> {
    let mut faults: Vec<String> = Vec::new();
    let spec = match stand_in(study, assignment, program) {
        Ok(spec) => spec,
        Err(diagnostics) => {
            let diagnostics = diagnostics.into_iter().map(PreflightFault::InStudy);
            return faults.into_iter().map(PreflightFault::Elsewhere).chain(diagnostics).collect();
        }
    };
    let of_commands = spec.systems.iter().filter(|system| system.on.is_none()).flat_map(check_commands);
    faults.extend(of_commands.map(|error| with_words_for_ports(&error.to_string())));
    faults.extend(spec.databases.iter().filter_map(|database| may_load(study, database).err()));
    faults.extend(spec.workload.target.iter().filter_map(|target| target::address(study, target, &[]).err()));
    faults.extend(disk_space::check(&spec));
    let of_workload = plimsoll_generator::check(&spec.workload).err().unwrap_or_default();
    let placed = |remark: WorkloadDiagnostic| {
        in_study(study, Severity::Error, &remark)
            .map_or_else(|| PreflightFault::Elsewhere(remark.what), PreflightFault::InStudy)
    };
    faults.into_iter().map(PreflightFault::Elsewhere).chain(of_workload.into_iter().map(placed)).collect()
}

/// The systems of this machine that are containers, each distinct one once, with placeholders for ports.
#[must_use]
pub fn systems_of_containers(study: &Study, plan: &Plan, program: &Path) -> Vec<SystemSpec> {
    distinct(study, plan, program, |spec| {
        spec.systems.into_iter().filter(|system| system.containers.is_some() && system.on.is_none()).collect()
    })
}

/// The systems that run on the host of the agent with this label, each distinct one once, with placeholders for ports.
#[must_use]
pub fn systems_on(label: &str, study: &Study, plan: &Plan, program: &Path) -> Vec<SystemSpec> {
    distinct(study, plan, program, |spec| {
        spec.systems.into_iter().filter(|system| system.on.as_deref() == Some(label)).collect()
    })
}

/// Checks the containers of each system once: asking their engine takes a moment.
fn faults_of_containers(study: &Study, plan: &Plan, program: &Path) -> Vec<String> {
    let faults = systems_of_containers(study, plan, program).into_iter().filter_map(|system| {
        let services = measured_services(study, &system.name);
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        // A program that is not there has been named already.
        check_commands(&system).is_empty().then(|| check_containers(&system, &services)).flatten()
    });
    faults.map(|fault| fault.to_string()).collect()
}

/// The services of a system whose CPU or memory decides.
pub(crate) fn measured_services(study: &Study, system: &str) -> Vec<String> {
    let decide = study.facts().decide;
    let measured = decide.iter().filter_map(|decision| system_of(&decision.measure));
    let services = measured.filter_map(|name| name.strip_prefix(system)?.strip_prefix('/'));
    services.filter(|service| *service != PORT_FORWARDER).map(str::to_owned).collect()
}

/// The system, or a part of one, whose CPU or memory is measured.
fn system_of(measure: &Measure) -> Option<&str> {
    match &measure.series {
        Series::Cpu(system) | Series::Memory(system) => system.as_deref(),
        _ => None,
    }
}

/// Checks each database once, however many trials use it, and the space for all that are alive at the same time.
fn faults_of_databases(study: &Study, plan: &Plan, program: &Path) -> Vec<String> {
    let mut here = databases(study, plan, program);
    here.retain(is_here);
    let faults = here.iter().flat_map(plimsoll_database::check);
    let starts = databases_of_starts(study, plan, program);
    faults.chain(plimsoll_database::check_disk_space_of_starts(&starts)).collect()
}

/// True for a database of this machine. Other hosts are asked when the run has them.
fn is_here(database: &Database) -> bool {
    database.on().is_none()
}

/// The databases of this machine that are alive at the same time, once for each start of a block: those of one variant
/// in trials, and those of all variants where these share a start.
fn databases_of_starts(study: &Study, plan: &Plan, program: &Path) -> Vec<Vec<Database>> {
    let of_variant = |variant: usize, condition: &Assignment| {
        let spec = stand_in(study, &plan.variant(variant).and(condition), program).ok();
        let mut databases = spec.map(|spec| spec.databases).unwrap_or_default();
        databases.retain(is_here);
        databases
    };
    let starts = plan.conditions.iter().flat_map(|condition| {
        let of_variants = (0..plan.block_size()).map(|variant| of_variant(variant, condition));
        let of_variants: Vec<Vec<Database>> = of_variants.collect();
        if plan.design.is_trials() { of_variants } else { vec![of_variants.concat()] }
    });
    starts.collect()
}

/// Removes what killed runs have left of databases, if the study starts any on this machine: it takes the space that
/// they need. Living runs keep what they have.
pub fn remove_left_over_data(study: &Study, plan: &Plan, program: &Path) {
    if databases(study, plan, program).iter().any(starts_here) {
        plimsoll_database::remove_all_leftovers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load::{LoadModel, Profile, Stop, Think};
    use plimsoll_model::search::SearchRange;
    use plimsoll_model::workload::{Connect, Target};
    use std::time::Duration;

    #[test]
    fn connections_beyond_the_machines_limit_are_warned_of() {
        let target = Target { host: "127.0.0.1".to_owned(), port: 80, tls: None };
        let workload = |connect| Workload {
            target: Some(target.clone()),
            connect,
            timeout: Duration::from_secs(1),
            steps: Steps::Http(Vec::new()),
        };
        let second = Duration::from_secs(1);
        let load = LoadProfile {
            model: LoadModel::Closed { users: Profile::constant(30_000.0), think: Think::Constant(second) },
            warmup: second,
            stop: Stop::After(second),
            drain: second,
        };
        let said = |connect, most| too_few_files(&workload(connect), &load, 1, most);
        let warning = said(Connect::PerUser, Some(20_000)).expect("a warning");
        assert!(warning.starts_with("30000 users take 30000 connections"), "{warning}");
        for (connect, most) in
            [(Connect::PerUser, Some(524_288)), (Connect::PerUser, None), (Connect::Shared(100), Some(20_000))]
        {
            assert_eq!(said(connect, most), None);
        }
        let of_three = |most| too_few_files(&workload(Connect::PerUser), &load, 3, Some(most));
        let warning = of_three(65_536).expect("enough for the users of one variant");
        let says = "30000 users of each of 3 variants, which are alive at the same time, take 90000 connections";
        assert!(warning.starts_with(says), "{warning}");
        assert_eq!(of_three(524_288), None);
    }

    const DATABASE_STUDY: &str = r#"title    = "tiny"
question = "What does safety cost?"
DESIGN
repeats  = 2
noise_floor = false

[factors]
commit = { levels = ["on", "off"], compare = true, baseline = "on" }

[database.db]
server   = "postgresql"
settings = { synchronous_commit = "{commit}" }

[workload]
protocol = "sql"
database = "db"
oltp     = { test = "point_select", rows = 1000 }

[load]
users    = 2
think    = "5ms"
warmup   = "200ms"
duration = "1s"
"#;

    const IN_TURNS: &str = "design = \"turns\"\nturns = { count = 4, slice = \"1s\" }";

    /// The study in a design, with its plan.
    fn planned(design: &str) -> (Study, Plan) {
        let text = DATABASE_STUDY.replace("DESIGN", design);
        let (study, faults) = plimsoll_study::read("study.toml", &text, None, Path::new("/"), &[0]);
        let study = study.unwrap_or_else(|| panic!("{faults:?}"));
        let options = plimsoll_plan::Options {
            repeats: study.repeats,
            seed: study.seed,
            duplicate: study.noise_floor.is_some(),
            spare_blocks: study.spare_blocks,
            looks: Vec::new(),
            design: study.design(),
        };
        let plan = plimsoll_plan::plan(&study.factors, &options, |condition| study.phase_lengths(condition));
        (study, plan)
    }

    #[test]
    fn in_turns_the_databases_of_all_variants_are_alive_at_the_same_time() {
        let numbers = |design: &str| {
            let (study, plan) = planned(design);
            let starts = databases_of_starts(&study, &plan, Path::new("plimsoll"));
            starts.iter().map(Vec::len).collect::<Vec<usize>>()
        };
        assert_eq!(numbers("design = \"trials\""), [1, 1]);
        assert_eq!(numbers(IN_TURNS), [2]);
    }

    #[test]
    fn in_turns_the_users_of_all_variants_keep_their_connections() {
        let (_, trials) = planned("design = \"trials\"");
        let (_, turns) = planned(IN_TURNS);
        assert_eq!([&trials, &turns].map(variants_with_users), [1, 2]);
        let range = SearchRange {
            first: 2.0,
            most: 8.0,
            of_users: true,
            confirm: Duration::ZERO,
            step: None,
            new_users: None,
            recover: Duration::ZERO,
            longest: Duration::ZERO,
        };
        let search = Plan { searches: vec![plimsoll_plan::search(range)], ..turns };
        assert_eq!(variants_with_users(&search), 1, "each load of a search has users of its own");
    }
}
