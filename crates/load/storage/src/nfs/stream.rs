//! A blocking socket for a client that is written for asynchronous ones.
//!
//! The socket waits on the thread of the user, so the client's futures never do. Each future is ready at its
//! first poll, and no runtime is needed.

use crate::connect::connect;
use nfs3_client::io::{AsyncRead, AsyncWrite};
use nfs3_client::net::Connector;
use plimsoll_engine::blocking::Call;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The longest reply that is taken, in bytes: twice the data that is asked for at most.
const LONGEST_REPLY: usize = 2 * super::LONGEST as usize;

/// Local ports to connect from, if permitted. Many servers accept only these, as a sign that the client is
/// the system's own. The Linux client uses the same range.
const RESERVED_PORTS: RangeInclusive<u16> = 665..=1023;

/// Polls a future that does not wait, and returns its output.
pub(super) fn poll_ready<T, E: From<io::Error>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(io::Error::other("the client waits for something else than its socket").into()),
    }
}

/// Makes connections that all stop waiting when the same call ends.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    call: Arc<Mutex<Call>>,
}

impl Dialer {
    pub(super) fn new(call: &Call) -> Dialer {
        Dialer { call: Arc::new(Mutex::new(call.branch())) }
    }

    /// Sets the call whose end stops the waiting of all connections.
    pub(super) fn set_call(&self, call: &Call) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = call.branch();
    }

    /// Connects from a reserved port, or from any port if those are not permitted or all taken.
    pub(super) fn connect_to(&self, server: SocketAddr) -> io::Result<BlockingStream> {
        for port in RESERVED_PORTS.rev() {
            match self.open(server, Some(port)) {
                Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => break,
                outcome => return outcome,
            }
        }
        self.open(server, None)
    }

    fn open(&self, server: SocketAddr, local_port: Option<u16>) -> io::Result<BlockingStream> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{server}: {error}"));
        let stream = connect(server, local_port, &|| self.go_on()).map_err(named)?;
        Ok(BlockingStream { stream, dialer: self.clone() })
    }

    fn go_on(&self) -> io::Result<()> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        call.go_on().map_err(|failure| io::Error::new(ErrorKind::TimedOut, failure.detail))
    }
}

impl Connector for Dialer {
    type Connection = BlockingStream;

    async fn connect(&self, server: SocketAddr) -> io::Result<BlockingStream> {
        self.connect_to(server)
    }

    async fn connect_with_port(&self, server: SocketAddr, local_port: u16) -> io::Result<BlockingStream> {
        self.open(server, Some(local_port))
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct BlockingStream {
    stream: TcpStream,
    dialer: Dialer,
}

impl BlockingStream {
    /// Transfers bytes, and waits until the call ends. Zero bytes are an error, or the client would retry for
    /// ever.
    fn wait_for(&mut self, mut transfer: impl FnMut(&mut TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            // Checked before each transfer: with a server that sends byte by byte, the socket never times out.
            self.dialer.go_on()?;
            match transfer(&mut self.stream) {
                Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                outcome => return outcome,
            }
        }
    }
}

impl AsyncRead for BlockingStream {
    async fn async_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.len() > LONGEST_REPLY {
            let text = format!("expected a reply of at most {LONGEST_REPLY} bytes, found one of {}", into.len());
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        self.wait_for(|stream| stream.read(into))
    }
}

impl AsyncWrite for BlockingStream {
    async fn async_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_for(|stream| stream.write(bytes))
    }
}
