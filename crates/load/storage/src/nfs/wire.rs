//! A blocking socket below a client that is written for asynchronous ones.
//!
//! Its futures never wait: the socket does, on the thread of the user. So each of them is done when
//! it is polled for the first time, and no runtime is needed.

use nfs3_client::io::{AsyncRead, AsyncWrite};
use nfs3_client::net::Connector;
use plimsoll_engine::blocking::Call;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How soon a socket that waits notices that its call is to give up.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Ports to connect from where that is permitted: servers take them as a sign that the client is
/// the system's own, and many answer no other. Those that the client of Linux uses.
const RESERVED_PORTS: RangeInclusive<u16> = 665..=1023;

/// The outcome of a future that does not wait.
pub(super) fn ready<T, E: From<io::Error>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(io::Error::other("the client waits for something else than its socket").into()),
    }
}

/// Makes connections that all give up when the same call does.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    call: Arc<Mutex<Call>>,
}

impl Dial {
    pub(super) fn new(call: &Call) -> Dial {
        Dial { call: Arc::new(Mutex::new(call.branch())) }
    }

    /// From now on it is this call that says when to give up.
    pub(super) fn serve(&self, call: &Call) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = call.branch();
    }

    /// Connects from a reserved port, and from any other where those are not permitted or all taken.
    pub(super) fn reach(&self, server: SocketAddr) -> io::Result<Wire> {
        for port in RESERVED_PORTS.rev() {
            match self.open(server, Some(port)) {
                Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => break,
                outcome => return outcome,
            }
        }
        self.open(server, None)
    }

    fn open(&self, server: SocketAddr, local_port: Option<u16>) -> io::Result<Wire> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{server}: {error}"));
        let stream = self.connected(server, local_port).map_err(named)?;
        Ok(Wire { stream, dial: self.clone() })
    }

    fn connected(&self, server: SocketAddr, local_port: Option<u16>) -> io::Result<TcpStream> {
        let (family, any): (_, IpAddr) = match server {
            SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let stream = TcpStream::from(socket);
        if let Some(port) = local_port {
            rustix::net::bind(&stream, &SocketAddr::new(any, port))?;
        }
        // The kernel ends a connect by the time-out of writes.
        stream.set_write_timeout(Some(self.remaining()))?;
        rustix::net::connect(&stream, &server).map_err(|error| match error {
            rustix::io::Errno::INPROGRESS => ErrorKind::TimedOut.into(),
            error => io::Error::from(error),
        })?;
        stream.set_write_timeout(Some(LOOK_EVERY))?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn remaining(&self) -> Duration {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).remaining()
    }

    fn go_on(&self) -> io::Result<()> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        call.go_on().map_err(|failure| io::Error::new(ErrorKind::TimedOut, failure.detail))
    }
}

impl Connector for Dial {
    type Connection = Wire;

    async fn connect(&self, server: SocketAddr) -> io::Result<Wire> {
        self.reach(server)
    }

    async fn connect_with_port(&self, server: SocketAddr, local_port: u16) -> io::Result<Wire> {
        self.open(server, Some(local_port))
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    dial: Dial,
}

impl Wire {
    /// Moves bytes, and waits for that as long as the call may take. None moved is an error: the
    /// client would ask for more for ever.
    fn insist(&mut self, mut moved: impl FnMut(&mut TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match moved(&mut self.stream) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    self.dial.go_on()?;
                }
                outcome => return outcome,
            }
        }
    }
}

impl AsyncRead for Wire {
    async fn async_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.insist(|stream| stream.read(into))
    }
}

impl AsyncWrite for Wire {
    async fn async_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.insist(|stream| stream.write(bytes))
    }
}
