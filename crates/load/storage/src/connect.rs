//! Connects a socket, and looks meanwhile whether the call goes on: a server that hangs may take the connection only minutes
//! later.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The longest wait of a socket before it looks whether its call has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Connects to a server, from a port of this machine if one is named, for as long as `go_on` does not fail. The socket waits for a
/// tenth of a second at a time.
pub(crate) fn connect(
    server: SocketAddr,
    local_port: Option<u16>,
    go_on: &dyn Fn() -> io::Result<()>,
) -> io::Result<TcpStream> {
    let (family, any): (_, IpAddr) = match server {
        SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let stream = TcpStream::from(socket);
    if let Some(port) = local_port {
        rustix::net::bind(&stream, &SocketAddr::new(any, port))?;
    }
    // The write timeout also limits the connect.
    stream.set_write_timeout(Some(POLL_INTERVAL))?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    loop {
        match rustix::net::connect(&stream, &server) {
            Ok(()) | Err(Errno::ISCONN) => break,
            Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => go_on()?,
            Err(error) => return Err(error.into()),
        }
    }
    // Requests are written whole: waiting for more to send would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}
