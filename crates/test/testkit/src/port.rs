//! Ports for servers that are programs of their own.

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// A port of `127.0.0.1` that the kernel gives to nobody else until the value is dropped.
///
/// A bound socket that does not listen holds it. A server may listen on the port, if it permits the reuse of
/// addresses (`SO_REUSEADDR`) as this socket does. A port that is only looked up may become that of a
/// connection of another test before the server listens.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddrV4,
    _held: OwnedFd,
}

impl ReservedPort {
    /// Reserves a port.
    ///
    /// # Errors
    /// There are no sockets or no ports left.
    pub fn new() -> io::Result<ReservedPort> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddrV4::try_from(getsockname(&socket)?)?;
        Ok(ReservedPort { address, _held: socket })
    }

    /// The address to listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.into()
    }

    /// The number of the port.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.address.port()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_server_may_listen_on_a_reserved_port() {
        let port = ReservedPort::new().unwrap();
        assert!(TcpStream::connect(port.address()).is_err(), "nobody listens yet");
        let _server = TcpListener::bind(port.address()).unwrap();
        assert!(TcpStream::connect(port.address()).is_ok());
    }
}
