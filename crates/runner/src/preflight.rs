//! Everything that can be known to go wrong before anything is started.

use crate::target;
use plimsoll_model::factor::Assignment;
use plimsoll_model::trial::Plan;
use plimsoll_study::{Bindings, PortChoice, Study};
use plimsoll_system::{check_commands, check_port_free};
use std::collections::BTreeSet;
use std::path::Path;

/// A port that stands in for a free one, which is picked only when its system starts.
const STAND_IN: u16 = 1;

/// What would go wrong, each fault once: programs that are not found, ports in use, targets that
/// the study may not load, `.proto` files that do not compile, calls and messages that do not fit.
/// Empty when the study can start.
#[must_use]
pub fn preflight(study: &Study, plan: &Plan, program: &Path) -> Vec<String> {
    let mut faults: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for fault in assignments(plan).iter().flat_map(|assignment| faults_of(study, assignment, program)) {
        if seen.insert(fault.clone()) {
            faults.push(fault);
        }
    }
    faults
}

fn assignments(plan: &Plan) -> Vec<Assignment> {
    let pairs = plan.conditions.iter().flat_map(|condition| plan.variants.iter().map(|variant| variant.and(condition)));
    pairs.collect()
}

fn faults_of(study: &Study, assignment: &Assignment, program: &Path) -> Vec<String> {
    let choices = study.system_ports(assignment);
    let mut faults = Vec::new();
    for (_, choice) in &choices {
        if let PortChoice::Fixed(port) = choice {
            faults.extend(check_port_free(*port).err().map(|error| error.to_string()));
        }
    }
    let ports = choices.into_iter().map(|(name, _)| (name, STAND_IN)).collect();
    let spec = match study
        .resolve(assignment, &Bindings { ports, plimsoll: program.to_owned(), keys: study.stand_in_keys() })
    {
        Ok(spec) => spec,
        Err(diagnostics) => {
            faults.extend(diagnostics.iter().map(ToString::to_string));
            return faults;
        }
    };
    faults.extend(spec.systems.iter().flat_map(check_commands).map(|error| error.to_string()));
    faults.extend(spec.workload.target.iter().filter_map(|target| target::address(study, target).err()));
    if let Err(error) = plimsoll_load::check(&spec.workload) {
        faults.extend(error.0);
    }
    faults
}
