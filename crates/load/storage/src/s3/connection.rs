//! A blocking socket, plain or with TLS, that stops waiting when its call ends.
//!
//! The socket has a short timeout of its own, set once. A waiting call is checked at each timeout; a call that
//! does not wait pays nothing for that.

use crate::connect::connect;
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_engine::tls::Encryption;
use plimsoll_model::record::ErrorKind;
use rustix::net::RecvFlags;
use rustls::{ClientConnection, Stream};
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The size of a read for TLS, in bytes. rustls itself would read 4 KiB.
const TLS_READ: usize = 256 << 10;

/// A connection.
pub(super) struct Connection {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Connection {
    /// Connects, the TLS handshake included.
    pub(super) fn dial(address: SocketAddr, tls: Option<&Encryption>, call: &Call) -> Result<Connection, Failure> {
        let doing = format!("connect to {address}");
        let go_on = || call.go_on().map_err(|failure| io::Error::new(io::ErrorKind::TimedOut, failure.detail));
        let stream = connect(address, None, &go_on).map_err(|error| broken(&doing, &error))?;
        let mut connection = Connection { socket: Socket::new(stream, tls.is_some()), tls: None };
        if let Some((config, name)) = tls {
            let tls = ClientConnection::new(config.clone(), name.clone())
                .map_err(|error| Failure::new(ErrorKind::Tls, format!("failed to {doing}: {error}")))?;
            connection.handshake(tls, &doing, call)?;
        }
        Ok(connection)
    }

    fn handshake(&mut self, mut tls: ClientConnection, doing: &str, call: &Call) -> Result<(), Failure> {
        while tls.is_handshaking() {
            call.go_on()?;
            match tls.complete_io(&mut self.socket) {
                Err(error) if !is_wait(&error) => return Err(broken(doing, &error)),
                _ => {}
            }
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Sends all of `slices`, in one write if possible.
    pub(super) fn send(&mut self, mut slices: &mut [IoSlice<'_>], call: &Call) -> Result<(), Failure> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            call.go_on()?;
            let written = match &mut self.tls {
                None => self.socket.write_vectored(slices),
                Some(tls) => Stream::new(&mut **tls, &mut self.socket).write_vectored(slices),
            };
            match written {
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(broken("send a request", &error)),
            }
        }
        Ok(())
    }

    /// Sends the bytes that TLS has buffered.
    pub(super) fn flush(&mut self, call: &Call) -> Result<(), Failure> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        loop {
            call.go_on()?;
            match Stream::new(&mut **tls, &mut self.socket).flush() {
                Err(error) if is_wait(&error) => {}
                flushed => return flushed.map_err(|error| broken("send a request", &error)),
            }
        }
    }

    /// Waits for bytes and reads them. Returns 0 at the end of the connection.
    pub(super) fn receive(&mut self, buffer: &mut [u8], call: &Call) -> Result<usize, Failure> {
        loop {
            call.go_on()?;
            let read = match &mut self.tls {
                None => self.socket.read(buffer),
                Some(tls) => Stream::new(&mut **tls, &mut self.socket).read(buffer),
            };
            match read {
                Ok(count) => return Ok(count),
                // A TLS connection may end without close_notify.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(broken("receive an answer", &error)),
            }
        }
    }

    /// True if another request may be sent: the server has neither closed the connection nor sent
    /// unexpected bytes.
    pub(super) fn is_usable(&mut self) -> bool {
        let Some(tls) = &mut self.tls else { return self.socket.waiting() == Waiting::Nothing };
        // Session tickets, or close_notify.
        while self.socket.waiting() == Waiting::Bytes {
            let read = tls.read_tls(&mut self.socket).is_ok();
            if !read || !tls.process_new_packets().is_ok_and(|state| !state.peer_has_closed()) {
                return false;
            }
        }
        self.socket.waiting() == Waiting::Nothing
    }

    /// Records the bytes of the socket since the last time in `call`.
    pub(super) fn record_bytes(&mut self, call: &mut Call) {
        call.sent(std::mem::take(&mut self.socket.bytes_out));
        call.received(std::mem::take(&mut self.socket.bytes_in));
    }
}

/// A socket that counts bytes.
struct Socket {
    stream: BufReader<TcpStream>,
    bytes_out: usize,
    bytes_in: usize,
}

/// What a read of the socket would find.
#[derive(PartialEq, Eq)]
enum Waiting {
    Nothing,
    Bytes,
    End,
}

impl Socket {
    fn new(stream: TcpStream, is_buffered: bool) -> Socket {
        let capacity = if is_buffered { TLS_READ } else { 0 };
        Socket { stream: BufReader::with_capacity(capacity, stream), bytes_out: 0, bytes_in: 0 }
    }

    fn waiting(&self) -> Waiting {
        if !self.stream.buffer().is_empty() {
            return Waiting::Bytes;
        }
        match rustix::net::recv(self.stream.get_ref(), &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(rustix::io::Errno::AGAIN) => Waiting::Nothing,
            Ok((_, 1)) => Waiting::Bytes,
            _ => Waiting::End,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.bytes_in += count;
        Ok(count)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = self.stream.get_mut().write_vectored(slices)?;
        self.bytes_out += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// True if the socket is only not ready yet.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Maps an error to a failure. rustls wraps its errors in those of the operating system.
fn broken(doing: &str, error: &io::Error) -> Failure {
    match error.get_ref() {
        Some(inner) if inner.is::<rustls::Error>() => {
            Failure::new(ErrorKind::Tls, format!("failed to {doing}: {error}"))
        }
        _ => Failure::io(doing, error),
    }
}
