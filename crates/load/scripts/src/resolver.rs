//! Resolves the addresses of hosts, each once in a run. It uses threads beside the loop, so that no user waits for
//! another.

use plimsoll_k6::operations::{HttpFault, HttpFaultKind};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The addresses that were resolved, for all threads.
pub(super) type KnownAddresses = Arc<Mutex<HashMap<String, IpAddr>>>;

/// A host, and its address or why it has none.
pub(super) type Resolved = (String, Result<IpAddr, HttpFault>);

/// Looks up hosts for one thread of the generator.
pub(super) struct Resolver {
    known: KnownAddresses,
    sender: Sender<Resolved>,
    receiver: Receiver<Resolved>,
    /// Readable when a name was resolved.
    notifier: Arc<OwnedFd>,
}

impl Resolver {
    /// A resolver that shares the resolved addresses.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(known: KnownAddresses) -> rustix::io::Result<Resolver> {
        let (sender, receiver) = channel();
        let notifier = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Resolver { known, sender, receiver, notifier })
    }

    /// Becomes readable when a name was resolved.
    pub(super) fn notifier(&self) -> BorrowedFd<'_> {
        self.notifier.as_fd()
    }

    /// The address of a host, if the host is an address itself or was resolved before.
    pub(super) fn known(&self, host: &str) -> Option<IpAddr> {
        let plain = host.trim_matches(['[', ']']);
        plain.parse().ok().or_else(|| self.known.lock().unwrap_or_else(PoisonError::into_inner).get(host).copied())
    }

    /// Requests the address of a host, which [`Self::take_resolved`] returns later.
    pub(super) fn ask(&self, host: &str) {
        let (asked, known, notifier) = (host.to_owned(), Arc::clone(&self.known), Arc::clone(&self.notifier));
        let sender = self.sender.clone();
        let lookup = move || {
            let found = look_up(&asked);
            if let Ok(address) = found {
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(asked.clone(), address);
            }
            // The receiver may be gone already.
            let _ = sender.send((asked, found));
            let _ = rustix::io::write(&notifier, &1_u64.to_ne_bytes());
        };
        // This thread is never joined: the system may take half a minute to fail.
        let spawned = std::thread::Builder::new().name("lookup".to_owned()).spawn(lookup);
        if let Err(error) = spawned {
            let _ = self.sender.send((host.to_owned(), Err(fault(host, HttpFaultKind::Lookup, &error))));
            let _ = rustix::io::write(&self.notifier, &1_u64.to_ne_bytes());
        }
    }

    /// Takes the results since the last call.
    pub(super) fn take_resolved(&self) -> Vec<Resolved> {
        let _ = rustix::io::read(&self.notifier, &mut [0; 8]);
        self.receiver.try_iter().collect()
    }
}

/// The first address of a host. IPv4 is preferred, as in k6.
fn look_up(host: &str) -> Result<IpAddr, HttpFault> {
    let found = (host, 0).to_socket_addrs().map_err(|error| {
        let unknown = error.to_string().contains("not known");
        fault(host, if unknown { HttpFaultKind::NoAddress } else { HttpFaultKind::Lookup }, &error)
    })?;
    let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| fault(host, HttpFaultKind::NoAddress, &io::Error::other("it has no address")))
}

fn fault(host: &str, kind: HttpFaultKind, error: &io::Error) -> HttpFault {
    HttpFault { kind, detail: format!("failed to look up `{host}`: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn wait(names: &Resolver) -> Vec<Resolved> {
        let notifier = names.notifier();
        poll(&mut [PollFd::new(&notifier, PollFlags::IN)], None).expect("it rings");
        names.take_resolved()
    }

    #[test]
    fn addresses_are_known_and_names_are_looked_up_once_for_all() {
        let known = KnownAddresses::default();
        let (one, other) =
            (Resolver::new(Arc::clone(&known)).expect("a notifier"), Resolver::new(known).expect("a notifier"));
        assert_eq!(one.known("[::1]"), "::1".parse().ok());
        assert_eq!(one.known("localhost"), None);
        one.ask("localhost");
        let found = wait(&one);
        let [(host, Ok(address))] = found.as_slice() else { panic!("{found:?}") };
        assert!(host == "localhost" && address.is_loopback());
        assert_eq!(other.known("localhost"), Some(*address));
        assert!(one.take_resolved().is_empty());
    }

    #[test]
    fn a_host_without_an_address_is_told_by_name() {
        let names = Resolver::new(KnownAddresses::default()).expect("a notifier");
        names.ask("not a host");
        let found = wait(&names);
        let [(_, Err(fault))] = found.as_slice() else { panic!("{found:?}") };
        assert!(fault.detail.contains("`not a host`"), "{fault:?}");
    }
}
