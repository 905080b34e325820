//! Resolves the address that a workload loads, and refuses it unless the study may load it.

use plimsoll_model::workload::Target;
use plimsoll_study::Study;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The address of `target`. `own` are addresses of systems that the run has started on other hosts.
///
/// # Errors
/// Its host is not known, or is neither this machine's loopback, nor among these, nor listed by the study.
pub(crate) fn address(study: &Study, target: &Target, own: &[SocketAddr]) -> Result<SocketAddr, String> {
    let host = &target.host;
    let found: Vec<SocketAddr> = (host.as_str(), target.port)
        .to_socket_addrs()
        .map_err(|error| {
            format!(
                "failed to look up the target `{host}`: {error}; load goes to other machines only if `allow` under \
                 `[targets]` lists them"
            )
        })?
        .collect();
    let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    let is_own = !found.is_empty() && found.iter().all(|address| own.contains(address));
    if !is_own && !study.may_load(host, &addresses) {
        return Err(format!(
            "the target `{host}` is not this machine's loopback; load goes elsewhere only if the study lists it: \
             add `\"{host}\"` to `allow` under `[targets]`, if it is yours to load"
        ));
    }
    found.first().copied().ok_or_else(|| format!("the target `{host}` has no address"))
}
