//! A non-blocking socket, plain or with TLS, that counts its bytes.

use crate::ports;
use crate::tls::{Encryption, is_of_an_authority};
use plimsoll_model::record::ErrorKind;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use rustls::{CipherSuite, ClientConnection, ProtocolVersion};
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Opens the sockets of a trial.
#[derive(Clone, Debug)]
pub struct Dialer {
    /// The address of the server.
    pub address: SocketAddr,
    /// Encryption, if any.
    pub tls: Option<Encryption>,
}

/// A socket with its encryption and its byte counts.
pub struct Transport {
    socket: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    /// Bytes that were sent on the socket and are not recorded yet.
    pub bytes_out: u64,
    /// Bytes that were received on the socket and are not recorded yet.
    pub bytes_in: u64,
}

/// An error that makes a transport unusable.
#[derive(Debug)]
pub struct TransportError {
    /// What kind of failure it is for the exchanges on it.
    pub kind: ErrorKind,
    /// In words.
    pub detail: String,
    /// The cause, as far as it is known.
    pub cause: Cause,
}

/// The causes of an error that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This machine, not the peer, ran out of a resource.
    Local,
    /// Nobody listens at that port.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer had closed the connection before a write.
    BrokenPipe,
    /// The peer does not speak TLS.
    NotTls,
    /// The certificate is from an unknown authority.
    UnknownAuthority,
    /// The certificate is for another host.
    WrongHost,
    /// Anything else.
    Other,
}

/// The result of a read.
pub enum Chunk<'a> {
    /// Bytes for the protocol (none if they were only for TLS), and whether more may be waiting.
    Bytes(&'a [u8], bool),
    /// Nothing is waiting.
    Empty,
    /// The peer has ended its side.
    End,
}

impl Dialer {
    /// Starts to connect.
    pub fn dial(&self) -> Result<Transport, TransportError> {
        let family = if self.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).map_err(failed_to_connect)?;
        // Requests are written completely at once, so Nagle's algorithm would only delay them.
        sockopt::set_tcp_nodelay(&socket, true).map_err(failed_to_connect)?;
        ports::use_all(socket.as_fd());
        match rustix::net::connect(&socket, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(failed_to_connect(error)),
        }
        let tls = match &self.tls {
            None => None,
            Some((config, name)) => {
                Some(Box::new(ClientConnection::new(config.clone(), name.clone()).map_err(|error| tls_failed(&error))?))
            }
        };
        Ok(Transport { socket, tls, bytes_out: 0, bytes_in: 0 })
    }
}

impl Transport {
    /// Returns an error if the TCP connection could not be made.
    #[inline]
    pub fn connected(&self) -> Result<(), TransportError> {
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) | Err(error) => Err(failed_to_connect(error)),
        }
    }

    /// Version and cipher suite of TLS, after its handshake.
    pub fn tls(&self) -> Option<(ProtocolVersion, CipherSuite)> {
        let tls = self.tls.as_ref()?;
        Some((tls.protocol_version()?, tls.negotiated_cipher_suite()?.suite()))
    }

    /// True if the protocol may send: at once without TLS, after the handshake with TLS.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
    }

    /// True if the transport may have bytes of its own to send, as TLS has.
    #[inline]
    pub fn speaks_for_itself(&self) -> bool {
        self.tls.is_some()
    }

    /// Sends as much of `out` as the kernel accepts, and removes that from `out`. The rest is sent when the socket
    /// becomes writable again.
    pub fn send(&mut self, out: &mut Vec<u8>) -> Result<(), TransportError> {
        match &mut self.tls {
            None => {
                let sent = write_some(self.socket.as_fd(), out, &mut self.bytes_out)?;
                discard(out, sent);
                Ok(())
            }
            Some(tls) => {
                let mut socket = CountingWriter { socket: self.socket.as_fd(), bytes: &mut self.bytes_out };
                let sent = encrypt(tls, out, &mut socket)?;
                discard(out, sent);
                Ok(())
            }
        }
    }

    /// Reads once. `raw` and `plain` are scratch space of the thread.
    pub fn receive<'a>(&mut self, raw: &'a mut [u8], plain: &'a mut Vec<u8>) -> Result<Chunk<'a>, TransportError> {
        let count = match rustix::net::recv(&self.socket, &mut *raw, RecvFlags::empty()).map(|(count, _)| count) {
            Ok(0) => return Ok(Chunk::End),
            Ok(count) => count,
            Err(Errno::AGAIN) => return Ok(Chunk::Empty),
            Err(Errno::INTR) => return Ok(Chunk::Bytes(&[], true)),
            Err(error) => return Err(broke(error)),
        };
        self.bytes_in += count as u64;
        let more = count == raw.len();
        match &mut self.tls {
            None => Ok(Chunk::Bytes(&raw[..count], more)),
            Some(tls) => {
                plain.clear();
                decrypt(tls, &raw[..count], plain)?;
                Ok(Chunk::Bytes(plain, more))
            }
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Passes as much of `plain` to TLS as it buffers and the kernel accepts. Returns how much that was.
fn encrypt(tls: &mut ClientConnection, plain: &[u8], socket: &mut impl Write) -> Result<usize, TransportError> {
    let mut taken = 0;
    loop {
        if !tls.is_handshaking() {
            taken += tls.writer().write(&plain[taken..]).map_err(|error| closed(error.to_string()))?;
        }
        if !tls.wants_write() {
            return Ok(taken);
        }
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == IoErrorKind::WouldBlock => return Ok(taken),
            Err(error) => return Err(closed(error.to_string())),
        }
    }
}

fn decrypt(tls: &mut ClientConnection, mut raw: &[u8], plain: &mut Vec<u8>) -> Result<(), TransportError> {
    while !raw.is_empty() {
        // Reading from a slice cannot fail.
        tls.read_tls(&mut raw).map_err(|error| closed(error.to_string()))?;
        let was_handshaking = tls.is_handshaking();
        tls.process_new_packets().map_err(|error| match was_handshaking || refuses_client(&error) {
            true => tls_failed(&error),
            false => closed(format!("the connection broke: {error}")),
        })?;
        match tls.reader().read_to_end(plain) {
            Ok(_) => {}
            Err(error) if error.kind() == IoErrorKind::WouldBlock => {}
            Err(error) => return Err(closed(error.to_string())),
        }
    }
    Ok(())
}

/// True if the server does not take the client's certificate, or wants one. In TLS 1.3 it says so after the client's
/// handshake (RFC 8446, section 4.4.2.4).
fn refuses_client(error: &rustls::Error) -> bool {
    use rustls::AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked, CertificateUnknown,
        UnknownCA, UnsupportedCertificate,
    };
    let rustls::Error::AlertReceived(alert) = error else { return false };
    matches!(
        alert,
        AccessDenied
            | BadCertificate
            | CertificateExpired
            | CertificateRequired
            | CertificateRevoked
            | CertificateUnknown
            | UnknownCA
            | UnsupportedCertificate
    )
}

fn write_some(socket: BorrowedFd<'_>, bytes: &[u8], count: &mut u64) -> Result<usize, TransportError> {
    let mut sent = 0;
    while sent < bytes.len() {
        match rustix::net::send(socket, &bytes[sent..], SendFlags::NOSIGNAL) {
            Ok(written) => sent += written,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(broke(error)),
        }
    }
    *count += sent as u64;
    Ok(sent)
}

#[inline]
fn discard(out: &mut Vec<u8>, sent: usize) {
    if sent == out.len() {
        out.clear();
    } else {
        out.drain(..sent);
    }
}

struct CountingWriter<'a> {
    socket: BorrowedFd<'a>,
    bytes: &'a mut u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = rustix::io::write(self.socket, bytes)?;
        *self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn failed_to_connect(error: Errno) -> TransportError {
    let cause = match error {
        // No free port, no free descriptor, no memory: the generator, not the peer, cannot go on.
        Errno::ADDRNOTAVAIL | Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Cause::Local,
        Errno::CONNREFUSED => Cause::Refused,
        _ => Cause::Other,
    };
    TransportError { kind: ErrorKind::Connect, detail: format!("failed to connect: {error}"), cause }
}

fn tls_failed(error: &rustls::Error) -> TransportError {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext, Other, UnknownIssuer};
    use rustls::InvalidMessage;
    let signs_itself = matches!(error, rustls::Error::InvalidCertificate(Other(why)) if is_of_an_authority(why));
    let cause = match error {
        _ if signs_itself => Cause::UnknownAuthority,
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Cause::NotTls,
        rustls::Error::InvalidCertificate(UnknownIssuer) => Cause::UnknownAuthority,
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => Cause::WrongHost,
        _ => Cause::Other,
    };
    let why = match cause {
        _ if signs_itself => {
            "the server's certificate is that of an authority, and was not named as one to trust".to_owned()
        }
        Cause::NotTls => "the peer does not speak TLS".to_owned(),
        _ => error.to_string(),
    };
    TransportError { kind: ErrorKind::Tls, detail: format!("the TLS handshake failed: {why}"), cause }
}

fn broke(error: Errno) -> TransportError {
    let cause = match error {
        Errno::CONNRESET => Cause::Reset,
        Errno::PIPE => Cause::BrokenPipe,
        _ => Cause::Other,
    };
    TransportError { cause, ..closed(format!("the connection broke: {error}")) }
}

fn closed(detail: String) -> TransportError {
    TransportError { kind: ErrorKind::Closed, detail, cause: Cause::Other }
}
