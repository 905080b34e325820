//! A blocking socket with an input buffer, and with limits on how long its calls wait.

use crate::{CallLimits, SqlError};
use plimsoll_model::database::Address;
use plimsoll_model::record::ErrorKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The longest wait for the socket before the limits of the call are checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The most bytes of one response, with all that the server sends along: notices, columns, further results. It is kept until
/// the next call, by each connection.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;

/// The largest buffer that a connection keeps for its next response, in bytes.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Initial size of the input buffer, in bytes.
const INITIAL_CAPACITY: usize = 16 * 1024;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket. The response is kept until the next call begins, so that rows can borrow from it.
pub(crate) struct Socket {
    stream: Stream,
    limits: CallLimits,
    /// The start of the call under way; none until a limit was checked.
    began: Option<Instant>,
    /// The number of reads of the call under way.
    reads: u32,
    input: Vec<u8>,
    /// The end of the taken bytes of `input`.
    at: usize,
    /// The end of the received bytes of `input`.
    end: usize,
    sent: u64,
    received: u64,
}

impl Socket {
    pub(crate) fn open(address: &Address, limits: CallLimits) -> Result<Socket, SqlError> {
        let stream = connect(address, &limits).map_err(|error| SqlError::new(ErrorKind::Connect, error.to_string()))?;
        let socket = Socket {
            stream,
            limits,
            began: None,
            reads: 0,
            input: vec![0; INITIAL_CAPACITY],
            at: 0,
            end: 0,
            sent: 0,
            received: 0,
        };
        Ok(socket)
    }

    /// True if the connection stays on this machine, where nobody can read it or impersonate the server.
    pub(crate) fn is_local(&self) -> bool {
        match &self.stream {
            Stream::Unix(_) => true,
            Stream::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback()),
        }
    }

    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.limits.deadline = deadline;
    }

    /// Bytes sent and received.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Begins a call, and drops the response of the last one.
    pub(crate) fn begin(&mut self) {
        self.input.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        if self.input.len() > KEPT_CAPACITY && self.end <= KEPT_CAPACITY {
            self.input.truncate(KEPT_CAPACITY);
            self.input.shrink_to_fit();
        }
        (self.began, self.reads) = (None, 0);
    }

    /// Everything received since the call began.
    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Takes the next `length` bytes, waiting for them; returns their offset in the input.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<usize, SqlError> {
        self.wait_for(length)?;
        let start = self.at;
        self.at += length;
        Ok(start)
    }

    /// Copies the next `N` bytes without taking them.
    #[inline]
    pub(crate) fn peek<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        self.wait_for(N)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.input[self.at..self.at + N]);
        Ok(bytes)
    }

    #[inline]
    fn wait_for(&mut self, length: usize) -> Result<(), SqlError> {
        while self.end - self.at < length {
            self.read(length)?;
        }
        Ok(())
    }

    fn read(&mut self, length: usize) -> Result<(), SqlError> {
        self.reserve(length)?;
        if self.reads > 0 {
            self.check_limits(Duration::ZERO)?;
        }
        self.reads += 1;
        loop {
            let room = &mut self.input[self.end..];
            let done = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(room),
                Stream::Unix(stream) => wait_until_readable(stream).and_then(|()| stream.read(room)),
            };
            match done {
                Ok(0) => return Err(closed("the server closed the connection")),
                Ok(read) => {
                    self.end += read;
                    self.received += read as u64;
                    return Ok(());
                }
                Err(error) => self.wait_on(&error)?,
            }
        }
    }

    /// Reserves space for the next read. The buffer grows with the received bytes, not with the announced length:
    /// from a server of another protocol, that is no length at all.
    fn reserve(&mut self, length: usize) -> Result<(), SqlError> {
        if self.at.saturating_add(length) > MAX_RESPONSE {
            let detail = format!("the answer has more than {MAX_RESPONSE} bytes; ask for less at once");
            return Err(SqlError::new(ErrorKind::Protocol, detail));
        }
        if self.input.len() == self.end {
            self.input.resize((self.end * 2).min(MAX_RESPONSE), 0);
        }
        Ok(())
    }

    /// Sends all bytes.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        let mut left = bytes;
        while !left.is_empty() {
            let done = match &mut self.stream {
                Stream::Tcp(stream) => stream.write(left),
                Stream::Unix(stream) => stream.write(left),
            };
            match done {
                Ok(written) => {
                    self.sent += written as u64;
                    left = &left[written..];
                    if !left.is_empty() {
                        self.check_limits(Duration::ZERO)?;
                    }
                }
                Err(error) => self.wait_on(&error)?,
            }
        }
        Ok(())
    }

    /// Ignores errors of a socket that is not ready yet, as long as the limits allow.
    fn wait_on(&mut self, error: &io::Error) -> Result<(), SqlError> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.check_limits(POLL_INTERVAL),
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(closed(&format!("the connection broke: {error}"))),
        }
    }

    /// Fails if a limit of the call is reached. The call began at least `waited` ago.
    fn check_limits(&mut self, waited: Duration) -> Result<(), SqlError> {
        let now = Instant::now();
        let began = *self.began.get_or_insert_with(|| now.checked_sub(waited).unwrap_or(now));
        match self.limits.reached(began) {
            Some(reached) => Err(SqlError::new(ErrorKind::Timeout, format!("no answer {reached}"))),
            None => Ok(()),
        }
    }
}

/// Waits until bytes can be read, for one interval at most. A blocking read of a UNIX socket wakes up without
/// bytes when the server receives what was sent, which costs both sides more than this call.
fn wait_until_readable(stream: &UnixStream) -> io::Result<()> {
    let tick = Timespec::try_from(POLL_INTERVAL).expect("a tick is short");
    match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&tick))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

fn closed(how: &str) -> SqlError {
    SqlError::new(ErrorKind::Closed, how)
}

fn connect(address: &Address, limits: &CallLimits) -> io::Result<Stream> {
    let tick = limits.timeout.clamp(Duration::from_millis(1), POLL_INTERVAL);
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::from(new_socket(AddressFamily::UNIX)?);
            stream.set_read_timeout(Some(tick))?;
            stream.set_write_timeout(Some(tick))?;
            until_connected(&stream, &SocketAddrUnix::new(path)?, limits)?;
            Ok(Stream::Unix(stream))
        }
        Address::Tcp { host, port } => connect_tcp((host, *port), tick, limits).map(Stream::Tcp),
    }
}

/// Connects to the first address of the host that accepts.
fn connect_tcp((host, port): (&str, u16), tick: Duration, limits: &CallLimits) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
    for address in (host, port).to_socket_addrs()? {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let stream = TcpStream::from(new_socket(family)?);
        stream.set_read_timeout(Some(tick))?;
        stream.set_write_timeout(Some(tick))?;
        match until_connected(&stream, &address, limits) {
            Ok(()) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn new_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Connects a socket with a write time-out, which limits each attempt. A server that hangs leaves its queue full, and a UNIX socket
/// without a time-out would then wait for ever.
fn until_connected(socket: impl AsFd, address: &impl SocketAddrArg, limits: &CallLimits) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match rustix::net::connect(&socket, address) {
            Ok(()) | Err(Errno::ISCONN) => return Ok(()),
            Err(Errno::AGAIN | Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => {
                if let Some(reached) = limits.reached(began) {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection {reached}")));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// A socket and its other end.
    fn pair(limits: CallLimits) -> (Socket, UnixStream) {
        let path = std::env::temp_dir().join(format!("socket-{:x}-{:p}", std::process::id(), &limits));
        let listener = UnixListener::bind(&path).unwrap();
        let socket = Socket::open(&Address::Unix(path.clone()), limits).unwrap();
        std::fs::remove_file(path).unwrap();
        (socket, listener.accept().unwrap().0)
    }

    #[test]
    fn a_server_that_takes_no_connections_from_its_queue_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("full-{:x}", std::process::id()));
        let listener = new_socket(AddressFamily::UNIX).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let limits = CallLimits::timeout(Duration::from_millis(300));
        let opened: Vec<Result<Socket, SqlError>> =
            (0..3).map(|_| Socket::open(&Address::Unix(path.clone()), limits.clone())).collect();
        std::fs::remove_file(path).unwrap();
        let refused = opened.last().unwrap().as_ref().err().expect("its queue has room for one");
        assert_eq!(refused.kind, ErrorKind::Connect);
        assert_eq!(refused.detail, "no connection within 300ms");
    }

    #[test]
    fn bytes_come_in_their_order_however_they_are_cut() {
        let (mut socket, mut other) = pair(CallLimits::timeout(Duration::from_secs(10)));
        let all: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let expected = all.clone();
        let writer = std::thread::spawn(move || all.chunks(777).for_each(|chunk| other.write_all(chunk).unwrap()));
        socket.begin();
        let mut taken = Vec::new();
        for length in (1..400).cycle() {
            let length = length.min(expected.len() - taken.len());
            let start = socket.take(length).unwrap();
            taken.extend_from_slice(&socket.input()[start..start + length]);
            if length % 7 == 0 {
                socket.begin();
            }
            if taken.len() == expected.len() {
                break;
            }
        }
        writer.join().unwrap();
        assert!(taken == expected);
        assert_eq!(socket.bytes(), (0, 100_000));
    }

    #[test]
    fn what_is_only_announced_takes_no_memory() {
        let (mut socket, mut other) = pair(CallLimits::timeout(Duration::from_secs(1000)));
        other.write_all(&[0; 100]).unwrap();
        drop(other);
        socket.begin();
        assert_eq!(socket.take(MAX_RESPONSE).unwrap_err().kind, ErrorKind::Closed);
        assert_eq!(socket.input().len(), INITIAL_CAPACITY);
        assert_eq!(socket.take(MAX_RESPONSE + 1).unwrap_err().kind, ErrorKind::Protocol);
    }

    #[test]
    fn a_response_without_an_end_is_refused_and_its_memory_given_back() {
        let (mut socket, mut other) = pair(CallLimits::timeout(Duration::from_secs(1000)));
        let writer = std::thread::spawn(move || while other.write_all(&[0; 64 * 1024]).is_ok() {});
        socket.begin();
        let refused = loop {
            if let Err(error) = socket.take(1000) {
                break error;
            }
        };
        assert_eq!(refused.kind, ErrorKind::Protocol);
        assert!(refused.detail.contains("more than 67108864 bytes"), "{}", refused.detail);
        assert!(socket.input().len() <= MAX_RESPONSE);
        socket.begin();
        assert!(socket.input().len() <= KEPT_CAPACITY, "{} bytes are kept", socket.input().len());
        drop(socket);
        writer.join().unwrap();
    }

    #[test]
    fn a_call_ends_at_its_time_out() {
        let (mut socket, _other) = pair(CallLimits::timeout(Duration::from_millis(150)));
        socket.begin();
        assert_eq!(socket.take(1).unwrap_err().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_call_ends_when_everything_is_over_or_its_time_has_come() {
        let limits =
            CallLimits { cancelled: Arc::new(AtomicBool::new(true)), ..CallLimits::timeout(Duration::from_secs(1000)) };
        let (mut socket, _other) = pair(limits);
        socket.begin();
        assert_eq!(socket.take(1).unwrap_err().kind, ErrorKind::Timeout);
        let (mut socket, _other) = pair(CallLimits::timeout(Duration::from_secs(1000)));
        socket.set_deadline(Some(Instant::now()));
        socket.begin();
        assert_eq!(socket.take(1).unwrap_err().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_call_that_cannot_send_ends_too() {
        let (mut socket, _other) = pair(CallLimits::timeout(Duration::from_millis(150)));
        socket.begin();
        assert_eq!(socket.send(&vec![0; 100_000_000]).unwrap_err().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_closed_socket_is_told_from_a_slow_one() {
        let (mut socket, other) = pair(CallLimits::timeout(Duration::from_secs(1000)));
        drop(other);
        socket.begin();
        assert_eq!(socket.take(1).unwrap_err().kind, ErrorKind::Closed);
        assert_eq!(socket.send(b"x").unwrap_err().kind, ErrorKind::Closed);
    }
}
