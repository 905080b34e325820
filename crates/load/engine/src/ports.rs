//! Lets connections use all local ports of the machine, one after the other.
//!
//! By default, Linux gives a connection a port of one parity, and one of the other only if none of the first is free. A
//! port is not free for a second after its connection to the same address was closed (`TIME_WAIT`, with the default
//! `tcp_tw_reuse`). So with 28,232 ports, and users that connect for each iteration, every search went through
//! thousands of ports from 14,000 connections a second on. The search took longer than the exchange, and was a ceiling
//! that looked like the server's. A socket that has a range of its own (`IP_LOCAL_PORT_RANGE`, `ip(7)`, Linux 6.3)
//! takes the next port in it, and that range may be the machine's.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

/// `IP_LOCAL_PORT_RANGE` of `linux/in.h`.
const LOCAL_PORT_RANGE: libc::c_int = 51;

/// Lets a socket take any of the machine's ports, in turn. On a kernel without that option, the socket takes a port by
/// default rules.
pub(crate) fn use_all(socket: BorrowedFd<'_>) {
    static ALL: OnceLock<Option<u32>> = OnceLock::new();
    if let Some(range) = ALL.get_or_init(|| packed(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?))
    {
        set(socket, *range);
    }
}

/// The range as the option takes it: the last port in the upper half, the first in the lower one.
fn packed(text: &str) -> Option<u32> {
    let mut ports = text.split_whitespace().map_while(|port| port.parse::<u16>().ok());
    let (first, last) = (ports.next()?, ports.next()?);
    Some(u32::from(last) << 16 | u32::from(first))
}

/// Returns true if the kernel accepted it.
fn set(socket: BorrowedFd<'_>, range: u32) -> bool {
    #[expect(unsafe_code, reason = "neither std nor rustix has this option")]
    // SAFETY: the kernel reads four bytes of a number that outlives the call.
    let status = unsafe {
        let (value, size) = (std::ptr::from_ref(&range).cast(), size_of::<u32>() as libc::socklen_t);
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, LOCAL_PORT_RANGE, value, size)
    };
    status == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Dialer;
    use plimsoll_testkit::skipped;
    use rustix::net::{SocketAddrAny, getsockname};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn a_range_is_packed() {
        assert_eq!(packed("32768\t60999\n"), Some(60_999 << 16 | 32_768));
        assert_eq!([packed(""), packed("1"), packed("x 2"), packed("1 70000")], [None; 4]);
    }

    #[test]
    fn connections_take_even_and_odd_ports() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let probe = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        if !set(probe.as_fd(), 0) {
            skipped("ports in turn: the kernel knows no range of a socket's own (Linux 6.3)");
            return;
        }
        let dialer = Dialer { address: listener.local_addr().expect("an address"), tls: None };
        let open: Vec<_> = (0..64).map(|_| dialer.dial().unwrap_or_else(|_| panic!("it listens"))).collect();
        let port = |address: SocketAddrAny| SocketAddr::try_from(address).expect("an address of IP").port();
        let ports = open.iter().map(|transport| port(getsockname(transport).expect("a socket")));
        let odd = ports.filter(|port| port % 2 == 1).count();
        assert!((1..64).contains(&odd), "{odd} of 64 are odd");
    }
}
