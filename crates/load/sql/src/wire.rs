//! A socket with what has come in by it, and the patience of its calls.

use crate::{Patience, SqlError};
use plimsoll_model::database::Address;
use plimsoll_model::record::ErrorKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the socket waits before the patience of the call is looked at.
const TICK: Duration = Duration::from_millis(100);

/// What one answer may have in all: places in it are kept in 32 bits.
const LARGEST: usize = u32::MAX as usize;

/// What the input has room for at first.
const ROOM: usize = 16 * 1024;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket. What has come in is kept until the next call begins, so that rows can point to it.
pub(crate) struct Wire {
    stream: Stream,
    patience: Patience,
    /// When the call under way began, as far as that has mattered yet.
    began: Option<Instant>,
    /// How often the call under way has waited for the socket.
    reads: u32,
    input: Vec<u8>,
    /// Up to here it was looked at.
    at: usize,
    /// Up to here it is filled.
    end: usize,
    sent: u64,
    received: u64,
}

impl Wire {
    pub(crate) fn open(address: &Address, patience: Patience) -> Result<Wire, SqlError> {
        let stream =
            connect(address, &patience).map_err(|error| SqlError::new(ErrorKind::Connect, error.to_string()))?;
        let wire =
            Wire { stream, patience, began: None, reads: 0, input: vec![0; ROOM], at: 0, end: 0, sent: 0, received: 0 };
        Ok(wire)
    }

    /// Whether nobody elsewhere can listen in, or take the server's place.
    pub(crate) fn is_local(&self) -> bool {
        match &self.stream {
            Stream::Unix(_) => true,
            Stream::Tcp(stream) => stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback()),
        }
    }

    pub(crate) fn until(&mut self, instant: Option<Instant>) {
        self.patience.until = instant;
    }

    /// Bytes out and in.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// A new call begins: what the last one has brought is no longer needed.
    pub(crate) fn begin(&mut self) {
        self.input.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        (self.began, self.reads) = (None, 0);
    }

    /// Everything that has come in since the call began.
    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    /// The place of the next so many bytes, which are taken. Waits for them.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<usize, SqlError> {
        self.wait_for(length)?;
        let start = self.at;
        self.at += length;
        Ok(start)
    }

    /// The next bytes, which stay.
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
        self.make_room(length)?;
        if self.reads > 0 {
            self.still_patient(Duration::ZERO)?;
        }
        self.reads += 1;
        loop {
            let room = &mut self.input[self.end..];
            let done = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(room),
                Stream::Unix(stream) => wait_until_readable(stream).and_then(|()| stream.read(room)),
            };
            match done {
                Ok(0) => return Err(gone("the server closed the connection")),
                Ok(read) => {
                    self.end += read;
                    self.received += read as u64;
                    return Ok(());
                }
                Err(error) => self.wait_on(&error)?,
            }
        }
    }

    /// Room for what comes next. It grows with what has come, not with what was announced: that may
    /// be nonsense from a server of another kind.
    fn make_room(&mut self, length: usize) -> Result<(), SqlError> {
        if self.at.saturating_add(length) > LARGEST {
            let detail = format!("the answer has more than {LARGEST} bytes; ask for less at once");
            return Err(SqlError::new(ErrorKind::Protocol, detail));
        }
        if self.input.len() == self.end {
            self.input.resize((self.end * 2).min(LARGEST), 0);
        }
        Ok(())
    }

    /// Hands everything over to the kernel.
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
                }
                Err(error) => self.wait_on(&error)?,
            }
        }
        Ok(())
    }

    /// Goes on after an error that means nothing but that nothing has happened yet.
    fn wait_on(&mut self, error: &io::Error) -> Result<(), SqlError> {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.still_patient(TICK),
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(gone(&format!("the connection broke: {error}"))),
        }
    }

    /// Looks whether the call may go on, which began at least `waited` ago.
    fn still_patient(&mut self, waited: Duration) -> Result<(), SqlError> {
        let now = Instant::now();
        let began = *self.began.get_or_insert_with(|| now.checked_sub(waited).unwrap_or(now));
        let fault = if self.patience.over.load(Ordering::Relaxed) {
            "no answer before everything was to end".to_owned()
        } else if self.patience.until.is_some_and(|until| now >= until) {
            "no answer in the time that was left".to_owned()
        } else if now - began >= self.patience.timeout {
            format!("no answer within {:?}", self.patience.timeout)
        } else {
            return Ok(());
        };
        Err(SqlError::new(ErrorKind::Timeout, fault))
    }
}

/// Waits until something can be read, at most a tick. A read that blocks on a UNIX socket is also woken
/// when the server takes what was sent, for nothing: that costs both sides more than one call more.
fn wait_until_readable(stream: &UnixStream) -> io::Result<()> {
    let tick = Timespec::try_from(TICK).expect("a tick is short");
    match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&tick))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

fn gone(how: &str) -> SqlError {
    SqlError::new(ErrorKind::Closed, how)
}

fn connect(address: &Address, patience: &Patience) -> io::Result<Stream> {
    let tick = patience.timeout.clamp(Duration::from_millis(1), TICK);
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(tick))?;
            stream.set_write_timeout(Some(tick))?;
            Ok(Stream::Unix(stream))
        }
        Address::Tcp { host, port } => {
            let stream = connect_tcp(host, *port, patience.timeout)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(tick))?;
            stream.set_write_timeout(Some(tick))?;
            Ok(Stream::Tcp(stream))
        }
    }
}

/// To the first of the host's addresses that answers.
fn connect_tcp(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// A wire and its other end.
    fn pair(patience: Patience) -> (Wire, UnixStream) {
        let path = std::env::temp_dir().join(format!("wire-{:x}-{:p}", std::process::id(), &patience));
        let listener = UnixListener::bind(&path).unwrap();
        let wire = Wire::open(&Address::Unix(path.clone()), patience).unwrap();
        std::fs::remove_file(path).unwrap();
        (wire, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_come_in_their_order_however_they_are_cut() {
        let (mut wire, mut other) = pair(Patience::of(Duration::from_secs(10)));
        let all: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let expected = all.clone();
        let writer = std::thread::spawn(move || all.chunks(777).for_each(|chunk| other.write_all(chunk).unwrap()));
        wire.begin();
        let mut taken = Vec::new();
        for length in (1..400).cycle() {
            let length = length.min(expected.len() - taken.len());
            let start = wire.take(length).unwrap();
            taken.extend_from_slice(&wire.input()[start..start + length]);
            if length % 7 == 0 {
                wire.begin();
            }
            if taken.len() == expected.len() {
                break;
            }
        }
        writer.join().unwrap();
        assert!(taken == expected);
        assert_eq!(wire.bytes(), (0, 100_000));
    }

    #[test]
    fn what_is_only_announced_takes_no_memory() {
        let (mut wire, mut other) = pair(Patience::of(Duration::from_secs(1000)));
        other.write_all(&[0; 100]).unwrap();
        drop(other);
        wire.begin();
        assert_eq!(wire.take(1 << 31).unwrap_err().kind, ErrorKind::Closed);
        assert_eq!(wire.input().len(), ROOM);
        assert_eq!(wire.take(LARGEST + 1).unwrap_err().kind, ErrorKind::Protocol);
    }

    #[test]
    fn a_call_ends_at_its_time_out() {
        let (mut wire, _other) = pair(Patience::of(Duration::from_millis(150)));
        wire.begin();
        assert_eq!(wire.take(1).unwrap_err().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_call_ends_when_everything_is_over_or_its_time_has_come() {
        let patience = Patience { over: Arc::new(AtomicBool::new(true)), ..Patience::of(Duration::from_secs(1000)) };
        let (mut wire, _other) = pair(patience);
        wire.begin();
        assert_eq!(wire.take(1).unwrap_err().kind, ErrorKind::Timeout);
        let (mut wire, _other) = pair(Patience::of(Duration::from_secs(1000)));
        wire.until(Some(Instant::now()));
        wire.begin();
        assert_eq!(wire.take(1).unwrap_err().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_call_that_cannot_send_ends_too() {
        let (mut wire, _other) = pair(Patience::of(Duration::from_millis(150)));
        wire.begin();
        assert_eq!(wire.send(&vec![0; 100_000_000]).unwrap_err().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_closed_socket_is_told_from_a_slow_one() {
        let (mut wire, other) = pair(Patience::of(Duration::from_secs(1000)));
        drop(other);
        wire.begin();
        assert_eq!(wire.take(1).unwrap_err().kind, ErrorKind::Closed);
        assert_eq!(wire.send(b"x").unwrap_err().kind, ErrorKind::Closed);
    }
}
