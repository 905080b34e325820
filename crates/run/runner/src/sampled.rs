//! What telemetry samples of a running system: its processes, as a whole or by service, and the waits that it writes of.

use plimsoll_model::sample::name_of_service;
use plimsoll_system::{Running, Service};
use plimsoll_telemetry::{Roots, SystemPart, Target, Waits};

/// What is sampled of a system of a variant.
#[must_use]
pub fn target(system: &Running, variant: usize) -> Target {
    Target {
        system: system.name().to_owned(),
        variant,
        parts: parts(system),
        waits: waits(system),
        metrics: system.spec().metrics.clone(),
        complaints: elsewhere(system).into_iter().collect(),
    }
}

/// A sentence about a system of containers whose processes are not on the machine that starts it.
fn elsewhere(system: &Running) -> Option<String> {
    system.services().iter().any(|service| service.is_elsewhere).then(|| {
        format!(
            "the processes of the containers of `{}` cannot be seen, because their engine runs in a virtual machine, \
             as Docker Desktop does, or on another host: their CPU, memory and IO are not measured",
            system.name()
        )
    })
}

/// The name beside those of services, none of which has a space, of what forwards the system's port to one of them.
pub(crate) const PORT_FORWARDER: &str = "port forwarder";

/// The parts of a system whose use is told: its services, where it has several, and what forwards its port to one of them.
fn parts(system: &Running) -> Vec<SystemPart> {
    let whole = |roots| vec![SystemPart { name: system.name().to_owned(), roots }];
    let part = |name: &str, roots| SystemPart { name: name_of_service(system.name(), name), roots };
    match system.services().as_slice() {
        [] => whole(Roots::Warden(system.warden())),
        // Of processes that are not seen there is a gap, not zero.
        [one] if one.first.is_empty() => Vec::new(),
        [one] => whole(Roots::Containers { first: one.first.clone(), forwarder: system.forwarder() }),
        several => {
            let of_service =
                |one: &Service| part(&one.name, Roots::Containers { first: one.first.clone(), forwarder: None });
            let forwarder = system.forwarder().map(|forwarder| {
                part(PORT_FORWARDER, Roots::Containers { first: Vec::new(), forwarder: Some(forwarder) })
            });
            several.iter().filter(|one| !one.first.is_empty()).map(of_service).chain(forwarder).collect()
        }
    }
}

/// The waits that are counted in the output of a system; none where its table names none.
fn waits(system: &Running) -> Option<Waits> {
    let patterns: Vec<(String, String)> = system.spec().waits.clone().into_iter().collect();
    let (output, from) = system.output();
    (!patterns.is_empty()).then(|| Waits { output: output.to_owned(), from, patterns })
}
