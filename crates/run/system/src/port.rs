//! Finds free ports, and the process that holds a port in use.

use crate::error::SystemError;
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process, all_processes};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ports among which a free one is searched.
const CANDIDATES: RangeInclusive<u16> = 10_000..=60_999;

/// Finds a port that nobody listens on. Two calls in one process return different ports.
///
/// It is outside the range from which the kernel takes the ports of outgoing connections. The generator
/// itself could take a port of that range before the system listens on it.
pub fn free_port() -> Result<u16, SystemError> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let outgoing = outgoing_ports();
    let candidates: Vec<u16> = CANDIDATES.filter(|port| !outgoing.contains(port)).collect();
    // If the kernel uses all of them, take any.
    let candidates = if candidates.is_empty() { CANDIDATES.collect() } else { candidates };
    let tries = u32::try_from(candidates.len()).expect("there are fewer than 65,536 ports");
    // Runs that begin at the same time start their search at different ports.
    let start = std::process::id().wrapping_mul(97);
    for _ in 0..tries {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let port = candidates[(start.wrapping_add(call) % tries) as usize];
        if check_port_free(port).is_ok() {
            return Ok(port);
        }
    }
    Err(SystemError::NoFreePort { tried: tries })
}

/// Fails if `port` is in use. The error names the process that holds it.
pub fn check_port_free(port: u16) -> Result<(), SystemError> {
    match TcpListener::bind(("0.0.0.0", port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Err(SystemError::PortInUse { port, holder: holder(port).unwrap_or_else(unknown) })
        }
        Err(source) => Err(SystemError::PortRefused { port, source }),
    }
}

fn unknown() -> String {
    "a process that cannot be seen from here (of another user, or outside the container)".to_owned()
}

/// The process that listens on `port`, if it is known.
pub(crate) fn listener(port: u16) -> Option<i32> {
    Some(listening(port)?.pid())
}

fn listening(port: u16) -> Option<Process> {
    let listening = sockets_at(port).into_iter().find(|entry| entry.state == TcpState::Listen)?;
    process_with(listening.inode)
}

/// The process that listens on `port`, in words, if it is known and none of `own`.
pub(crate) fn foreign_listener(port: u16, own: &[i32]) -> Option<String> {
    let process = listening(port)?;
    (!own.contains(&process.pid())).then(|| in_words(&process))
}

/// `process 4242 (postgres)`, as far as `/proc` lets itself be read.
fn holder(port: u16) -> Option<String> {
    let sockets = sockets_at(port);
    let listening = sockets.iter().find(|entry| entry.state == TcpState::Listen);
    let inode = listening.or(sockets.first())?.inode;
    if inode == 0 {
        return Some("connections of an ended process, which the kernel closes within minutes".to_owned());
    }
    process_with(inode).map(|process| in_words(&process))
}

fn sockets_at(port: u16) -> Vec<TcpNetEntry> {
    let all = procfs::net::tcp().into_iter().chain(procfs::net::tcp6()).flatten();
    all.filter(|entry| entry.local_address.port() == port).collect()
}

fn process_with(inode: u64) -> Option<Process> {
    let holds = |process: &Process| {
        let mut files = process.fd().into_iter().flatten().flatten();
        files.any(|file| matches!(file.target, FDTarget::Socket(socket) if socket == inode))
    };
    all_processes().ok()?.flatten().find(holds)
}

fn in_words(process: &Process) -> String {
    let name = process.stat().map(|stat| stat.comm).unwrap_or_default();
    format!("process {} ({name})", process.pid())
}

fn outgoing_ports() -> RangeInclusive<u16> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut bounds = text.split_whitespace().filter_map(|bound| bound.parse().ok());
    match (bounds.next(), bounds.next()) {
        (Some(first), Some(last)) => first..=last,
        _ => 32_768..=60_999, // the kernel's default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_listened_on_and_is_not_given_twice() {
        let first = free_port().unwrap();
        let second = free_port().unwrap();
        assert_ne!(first, second);
        TcpListener::bind(("127.0.0.1", first)).unwrap();
        assert!(!outgoing_ports().contains(&second), "{second}");
    }

    #[test]
    fn a_port_in_use_is_named_with_its_holder() {
        for address in ["127.0.0.1", "::1", "::"] {
            // One that the kernel does not give to another process's connection in the meantime.
            let port = free_port().unwrap();
            let Ok(_listener) = TcpListener::bind((address, port)) else { continue }; // no IPv6 here
            let taken = check_port_free(port);
            if address == "::1" {
                assert!(taken.is_ok(), "the IPv4 port is free");
                continue;
            }
            let message = taken.unwrap_err().to_string();
            assert!(
                message.contains(&format!("port {port} is in use by process {} (", std::process::id())),
                "{message}"
            );
        }
    }
}
