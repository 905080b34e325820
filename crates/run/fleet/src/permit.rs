//! The limits that an agent keeps: it loads only its own loopback, and the hosts that whoever started it has listed.

use plimsoll_model::database::Address;
use plimsoll_model::sql::Transport;
use plimsoll_model::storage::Store;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_study::may_load;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// The hosts and folders that an agent may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permits {
    /// Hosts that it may load besides its own loopback: names or addresses.
    pub allow: Vec<String>,
    /// Folders in which users of storage workloads may keep objects.
    pub folders: Vec<std::path::PathBuf>,
}

impl Permits {
    /// Refuses a workload that goes elsewhere.
    ///
    /// # Errors
    /// Says what would have to be allowed, and how.
    pub(crate) fn check(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<(), String> {
        // What the coordinator resolved is what users connect to, whatever the name says.
        if let Some(address) = address {
            let host = workload.target.as_ref().map_or_else(|| address.ip().to_string(), |target| target.host.clone());
            self.check_host(&host, Some(address.ip()))?;
        }
        match &workload.steps {
            Steps::Script(script) => script.allowed.iter().try_for_each(|host| self.check_host(host, None)),
            Steps::Sql(sql) => match sql.endpoint.as_ref().map(|endpoint| &endpoint.address) {
                None if sql.transport == Transport::Unix => {
                    Err("the database is to be reached by its UNIX socket, which only its own machine has: write \
                     `transport = \"tcp\"` in `[workload]`"
                        .to_owned())
                }
                None => Ok(()),
                Some(Address::Tcp { host, .. }) => self.check_host(host, None),
                Some(Address::Unix(path)) => Err(format!(
                    "the database is reached by the socket {}, which only its own machine has: let users connect by TCP",
                    path.display()
                )),
            },
            Steps::Storage(storage) => match &storage.store {
                Store::Directory(folder) => self.check_folder(folder),
                Store::Nfs(nfs) => self.check_host(&nfs.host, address.map(|address| address.ip())),
                Store::S3(s3) => self.check_host(&s3.endpoint.host, address.map(|address| address.ip())),
            },
            Steps::Http(_) | Steps::Grpc { .. } | Steps::Flow(_) => Ok(()),
        }
    }

    fn check_host(&self, host: &str, address: Option<IpAddr>) -> Result<(), String> {
        let listed = may_load(&self.allow, host, &[]);
        let address = address.or_else(|| host.trim_matches(['[', ']']).parse().ok());
        let is_allowed = match address {
            Some(address) => {
                may_load(&self.allow, &address.to_string(), &[address]) || (listed && names(host, address)?)
            }
            // Users look it up here, and go to no other.
            None => host.eq_ignore_ascii_case("localhost") || listed,
        };
        if is_allowed {
            return Ok(());
        }
        Err(format!("it may not load `{host}`: start it with `--allow {host}`, if that is yours to load"))
    }

    fn check_folder(&self, folder: &Path) -> Result<(), String> {
        let plain = !folder.components().any(|part| part.as_os_str() == "..");
        if plain && self.folders.iter().any(|allowed| folder.starts_with(allowed)) {
            return Ok(());
        }
        let shown = folder.display();
        Err(format!(
            "it may not keep objects in {shown}: start it with `--allow-folder {shown}`, if they may lie there"
        ))
    }
}

/// True if a listed name has this address here. The run looked it up too, but whoever speaks at the broker may say anything.
fn names(host: &str, address: IpAddr) -> Result<bool, String> {
    let found = (host, 0).to_socket_addrs();
    let mut found = found.map_err(|error| format!("it may load `{host}`, but cannot look it up: {error}"))?;
    if found.any(|one| one.ip().to_canonical() == address.to_canonical()) {
        return Ok(true);
    }
    Err(format!(
        "it may load `{host}`, which has not the address {address} here: allow that too, if it is yours to load"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::workload::{Connect, Target};
    use std::time::Duration;

    fn http(host: &str) -> Workload {
        let target = Some(Target { host: host.to_owned(), port: 80, tls: None });
        Workload { target, connect: Connect::PerUser, timeout: Duration::from_secs(1), steps: Steps::Http(Vec::new()) }
    }

    #[test]
    fn only_the_loopback_and_listed_hosts_are_loaded() {
        let permits =
            Permits { allow: ["10.0.0.5", "Shop.test", "LocalHost"].map(str::to_owned).into(), folders: Vec::new() };
        for (host, address, allowed) in [
            ("localhost", "127.0.0.1:80", true),
            ("any.name", "[::1]:80", true),
            ("any.name", "[::ffff:127.0.0.1]:80", true),
            ("10.0.0.5", "10.0.0.5:80", true),
            // A name that says one thing does not make an address that is another.
            ("shop.test", "192.0.2.7:80", false),
            ("localhost", "192.0.2.8:80", false),
            ("localhost", "192.0.2.7:80", false),
            ("10.0.0.6", "10.0.0.6:80", false),
        ] {
            let checked = permits.check(&http(host), Some(address.parse().expect("an address")));
            assert_eq!(checked.is_ok(), allowed, "{host} at {address}: {checked:?}");
        }
    }

    #[test]
    fn objects_are_kept_only_in_listed_folders() {
        let permits = Permits { allow: Vec::new(), folders: vec!["/data/load".into()] };
        for (folder, allowed) in [("/data/load/a", true), ("/data/loads", false), ("/data/load/../x", false)] {
            assert_eq!(permits.check_folder(Path::new(folder)).is_ok(), allowed, "{folder}");
        }
    }
}
