//! The hosts that the load of a study goes to, and those that it may go to.

use crate::trial_spec::TrialSpec;
use plimsoll_model::database::{Address, Database, Origin};
use std::net::IpAddr;

/// True if load may go to `host` where `allow` lists hosts and addresses besides this machine's. `addresses` are those of the host,
/// as far as they are known.
#[must_use]
pub fn may_load(allow: &[String], host: &str, addresses: &[IpAddr]) -> bool {
    let listed = |name: &str| allow.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    let own = |address: &IpAddr| address.to_canonical().is_loopback() || listed(&address.to_string());
    listed(host) || (!addresses.is_empty() && addresses.iter().all(own))
}

/// The hosts that a trial connects to, but for those that it starts itself.
pub(crate) fn hosts(spec: &TrialSpec) -> impl Iterator<Item = &str> {
    let target = spec.workload.target.iter().map(|target| target.host.as_str());
    target.chain(spec.databases.iter().filter_map(host_of))
}

/// The host of a database that runs already, if it is reached by TCP.
pub(crate) fn host_of(database: &Database) -> Option<&str> {
    match &database.origin {
        Origin::External(external) => match &external.endpoint.address {
            Address::Tcp { host, .. } => Some(host),
            Address::Unix(_) => None,
        },
        Origin::Started(_) => None,
    }
}
