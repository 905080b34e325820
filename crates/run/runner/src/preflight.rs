//! Everything that can be known to go wrong before anything is started.

use crate::databases::may_load;
use crate::room;
use crate::scripts;
use crate::target;
use plimsoll_generator::WorkloadDiagnostic;
use plimsoll_model::database::Database;
use plimsoll_model::factor::Assignment;
use plimsoll_model::flow::{Auth, Password};
use plimsoll_model::load::LoadProfile;
use plimsoll_model::start::Plan;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::{Bindings, Diagnostic, PortChoice, Severity, Study, TrialSpec};
use plimsoll_system::{check_commands, check_port_free};
use std::collections::BTreeSet;
use std::path::Path;

/// A port that stands in for a free one, which is picked only when its system starts.
const STAND_IN: u16 = 1;

/// What would go wrong.
#[derive(Clone, Debug)]
pub enum Found {
    /// A fault that has its place in the study.
    InStudy(Diagnostic),
    /// Any other, in words.
    Elsewhere(String),
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Found::InStudy(diagnostic) => diagnostic.fmt(f),
            Found::Elsewhere(text) => f.write_str(text),
        }
    }
}

/// What would go wrong, each fault once: programs that are not found, ports in use, targets that
/// the study may not load, folders that hold no data of Plimsoll's, `.proto` files that do not
/// compile, calls and messages that do not fit, measures of metrics that scripts do not make.
/// Empty when the study can start.
#[must_use]
pub fn preflight(study: &Study, plan: &Plan, program: &Path) -> Vec<Found> {
    let mut faults: Vec<Found> = Vec::new();
    let mut seen = BTreeSet::new();
    let of_trials = assignments(plan).into_iter().flat_map(|assignment| faults_of(study, &assignment, program));
    let of_databases = faults_of_databases(&databases(study, plan, program)).into_iter().map(Found::Elsewhere);
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    let scripts = scripts::metrics(study, specs.map(|spec| spec.workload));
    let of_measures = study.check_metrics(&scripts).into_iter().map(Found::InStudy);
    for fault in of_trials.chain(of_databases).chain(of_measures) {
        if seen.insert(fault.to_string()) {
            faults.push(fault);
        }
    }
    faults
}

/// The databases that trials use, each as it is in the first trial that uses it so; ports stand in.
#[must_use]
pub fn databases(study: &Study, plan: &Plan, program: &Path) -> Vec<Database> {
    let mut databases: Vec<Database> = Vec::new();
    for spec in assignments(plan).iter().filter_map(|assignment| stand_in(study, assignment, program).ok()) {
        for database in spec.databases {
            if !databases.contains(&database) {
                databases.push(database);
            }
        }
    }
    databases
}

/// The variables of the environment from which users have their passwords and tokens.
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

/// What the author of the study should know of what its users do, each once: scripts say things that a
/// study says too, and feeds may have too few rows.
#[must_use]
pub fn notes(study: &Study, plan: &Plan, program: &Path) -> Vec<Diagnostic> {
    let mut notes: Vec<Diagnostic> = Vec::new();
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    let mut seen: Vec<(Workload, LoadProfile)> = Vec::new();
    for known in specs.map(|spec| (spec.workload, spec.load)) {
        if !seen.contains(&known) {
            let of_script = plimsoll_generator::notes(&known.0).into_iter();
            notes.extend(of_script.map(|note| study.warning_of_workload(&note)));
            let of_flow = plimsoll_generator::diagnostics(&known.0, &known.1);
            notes.extend(of_flow.iter().filter_map(|remark| in_study(study, Severity::Warning, remark)));
            seen.push(known);
        }
    }
    let mut told = BTreeSet::new();
    notes.retain(|note| told.insert(note.to_string()));
    notes
}

/// What is said of a part of the workload, with its place.
fn in_study(study: &Study, severity: Severity, remark: &WorkloadDiagnostic) -> Option<Diagnostic> {
    study.diagnostic_of_part(severity, remark.part?, &remark.what, &remark.known)
}

fn assignments(plan: &Plan) -> Vec<Assignment> {
    let pairs = plan.conditions.iter().flat_map(|condition| plan.variants.iter().map(|variant| variant.and(condition)));
    pairs.collect()
}

/// What a trial is before its ports are known.
pub(crate) fn stand_in(study: &Study, assignment: &Assignment, program: &Path) -> Result<TrialSpec, Vec<Diagnostic>> {
    let port = |choice| match choice {
        PortChoice::Fixed(port) => port,
        PortChoice::Free => STAND_IN,
    };
    let ports = study.system_ports(assignment).into_iter().map(|(name, choice)| (name, port(choice))).collect();
    // What is found of programs is recorded, and must not hold the keys of the run.
    let bindings = Bindings { ports, plimsoll: program.to_owned(), keys: study.stand_in_keys() };
    study.resolve(assignment, &bindings)
}

fn faults_of(study: &Study, assignment: &Assignment, program: &Path) -> Vec<Found> {
    let mut faults: Vec<String> = Vec::new();
    for (_, choice) in study.system_ports(assignment) {
        if let PortChoice::Fixed(port) = choice {
            faults.extend(check_port_free(port).err().map(|error| error.to_string()));
        }
    }
    let spec = match stand_in(study, assignment, program) {
        Ok(spec) => spec,
        Err(diagnostics) => {
            let diagnostics = diagnostics.into_iter().map(Found::InStudy);
            return faults.into_iter().map(Found::Elsewhere).chain(diagnostics).collect();
        }
    };
    faults.extend(spec.systems.iter().flat_map(check_commands).map(|error| error.to_string()));
    faults.extend(spec.databases.iter().filter_map(|database| may_load(study, database).err()));
    faults.extend(spec.workload.target.iter().filter_map(|target| target::address(study, target).err()));
    faults.extend(room::check(&spec));
    let of_workload = plimsoll_generator::check(&spec.workload).err().unwrap_or_default();
    let placed = |remark: WorkloadDiagnostic| {
        in_study(study, Severity::Error, &remark).map_or_else(|| Found::Elsewhere(remark.what), Found::InStudy)
    };
    faults.into_iter().map(Found::Elsewhere).chain(of_workload.into_iter().map(placed)).collect()
}

/// Each is looked at once, however many trials use it.
fn faults_of_databases(databases: &[Database]) -> Vec<String> {
    let faults = databases.iter().flat_map(plimsoll_database::check);
    faults.chain(plimsoll_database::check_disk_space(databases)).collect()
}
