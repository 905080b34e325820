//! Everything that can be known to go wrong before anything is started.

use crate::databases::may_load;
use crate::room;
use crate::target;
use plimsoll_model::database::Database;
use plimsoll_model::factor::Assignment;
use plimsoll_model::flow::{Auth, Password};
use plimsoll_model::trial::Plan;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::{Bindings, Diagnostic, PortChoice, Study, TrialSpec};
use plimsoll_system::{check_commands, check_port_free};
use std::collections::BTreeSet;
use std::path::Path;

/// A port that stands in for a free one, which is picked only when its system starts.
const STAND_IN: u16 = 1;

/// What would go wrong, each fault once: programs that are not found, ports in use, targets that
/// the study may not load, folders that hold no data of Plimsoll's, `.proto` files that do not
/// compile, calls and messages that do not fit.
/// Empty when the study can start.
#[must_use]
pub fn preflight(study: &Study, plan: &Plan, program: &Path) -> Vec<String> {
    let mut faults: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    let of_trials = assignments(plan).into_iter().flat_map(|assignment| faults_of(study, &assignment, program));
    for fault in of_trials.chain(faults_of_databases(&databases(study, plan, program))) {
        if seen.insert(fault.clone()) {
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
/// study says too.
#[must_use]
pub fn notes(study: &Study, plan: &Plan, program: &Path) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let specs = assignments(plan).into_iter().filter_map(|assignment| stand_in(study, &assignment, program).ok());
    let mut seen: Vec<Workload> = Vec::new();
    for workload in specs.map(|spec| spec.workload) {
        if !seen.contains(&workload) {
            notes.extend(plimsoll_load::notes(&workload));
            seen.push(workload);
        }
    }
    let mut told = BTreeSet::new();
    notes.retain(|note| told.insert(note.clone()));
    notes
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

fn faults_of(study: &Study, assignment: &Assignment, program: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for (_, choice) in study.system_ports(assignment) {
        if let PortChoice::Fixed(port) = choice {
            faults.extend(check_port_free(port).err().map(|error| error.to_string()));
        }
    }
    let spec = match stand_in(study, assignment, program) {
        Ok(spec) => spec,
        Err(diagnostics) => {
            faults.extend(diagnostics.iter().map(ToString::to_string));
            return faults;
        }
    };
    faults.extend(spec.systems.iter().flat_map(check_commands).map(|error| error.to_string()));
    faults.extend(spec.databases.iter().filter_map(|database| may_load(study, database).err()));
    faults.extend(spec.workload.target.iter().filter_map(|target| target::address(study, target).err()));
    faults.extend(room::check(&spec));
    if let Err(error) = plimsoll_load::check(&spec.workload) {
        faults.extend(error.0);
    }
    faults
}

/// Each is looked at once, however many trials use it.
fn faults_of_databases(databases: &[Database]) -> Vec<String> {
    let faults = databases.iter().flat_map(plimsoll_database::check);
    faults.chain(plimsoll_database::check_room(databases)).collect()
}
