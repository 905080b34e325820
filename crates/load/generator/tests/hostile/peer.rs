//! A server that plays a part: bytes and pauses, written down beforehand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a server does next on a connection. At the end of its part it closes the connection.
#[derive(Clone)]
pub(crate) enum Act {
    /// Waits until what the client has sent so far is enough.
    Hear(fn(&[u8]) -> bool),
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends what follows from all that the client has sent.
    Answer(fn(&[u8]) -> Vec<u8>),
    /// Sends each byte in a packet of its own.
    Drip(Vec<u8>),
    /// Sends the same again and again, as fast as the socket takes it, until the client hangs up.
    Flood(Vec<u8>),
    /// Sends the same again and again, a byte each millisecond, until the client hangs up.
    Trickle(Vec<u8>),
    /// Says nothing more, until the client hangs up.
    Hold,
    /// Neither reads nor says anything, until the test is over.
    Ignore,
    /// Resets the connection.
    Reset,
}

/// Bytes that are written at once, and that the kernel takes at once: far more than a client reads at once.
const AT_ONCE: usize = 4 * 1024 * 1024;

/// Threads that write on one connection what may be cut anywhere: while one waits for a processor, another one writes.
const WRITERS: usize = 4;

/// How soon a server notices that its test is over.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long a server goes on at most. A client that it holds for so long has failed, and the test says so.
const LONGEST: Duration = Duration::from_secs(90);

/// A running server. Every connection gets the same part.
pub(crate) struct Peer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Peer {
    pub(crate) fn start(part: Arc<Vec<Act>>) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let accepting = std::thread::spawn(move || {
            let play = |stream: TcpStream| {
                let (part, stop) = (Arc::clone(&part), Arc::clone(&stopping));
                std::thread::spawn(move || {
                    Connection { stream, heard: Vec::new(), stop: &stop, begun: Instant::now() }.play(&part);
                })
            };
            let connections = listener.incoming().flatten().take_while(|_| !stopping.load(Ordering::Relaxed));
            let threads: Vec<_> = connections.map(play).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
        Peer { address, stop, accepting: Some(accepting) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

struct Connection<'a> {
    stream: TcpStream,
    heard: Vec<u8>,
    stop: &'a AtomicBool,
    begun: Instant,
}

impl Connection<'_> {
    /// True if the test is over, or has failed.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.begun.elapsed() > LONGEST
    }

    fn play(&mut self, part: &[Act]) {
        let patience = Some(PATIENCE);
        self.stream
            .set_read_timeout(patience)
            .and_then(|()| self.stream.set_write_timeout(patience))
            .expect("time-outs");
        self.stream.set_nodelay(true).expect("an option");
        for act in part {
            let goes_on = match act {
                Act::Hear(is_enough) => self.hear(*is_enough),
                Act::Send(bytes) => self.send(bytes),
                Act::Answer(answer) => self.send(&answer(&self.heard)),
                Act::Drip(bytes) => bytes.chunks(1).all(|byte| self.send(byte)),
                Act::Flood(again) => self.flood(again),
                Act::Trickle(again) => self.trickle(again),
                Act::Hold => self.hear(|_| false),
                Act::Ignore => self.ignore(),
                Act::Reset => return reset(&self.stream),
            };
            if !goes_on {
                return;
            }
        }
        // A close with unread bytes would be a reset.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        self.hear(|_| false);
    }

    /// Writes all of it, also where the client reads nothing for a while. Returns false if it has hung up, or the test is
    /// over.
    fn send(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() && !self.is_over() {
            match (&self.stream).write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
        }
        bytes.is_empty()
    }

    /// Reads until it is enough. Returns false if the client has hung up, or the test is over.
    fn hear(&mut self, is_enough: fn(&[u8]) -> bool) -> bool {
        let mut bytes = [0; 16 * 1024];
        while !is_enough(&self.heard) {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => self.heard.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
            if self.is_over() {
                return false;
            }
        }
        true
    }

    /// Returns false: the test is over.
    fn ignore(&self) -> bool {
        while !self.is_over() {
            std::thread::sleep(PATIENCE);
        }
        false
    }

    /// Returns false: the client has hung up, or the test is over.
    fn trickle(&mut self, again: &[u8]) -> bool {
        for byte in again.iter().cycle() {
            std::thread::sleep(Duration::from_millis(1));
            if !self.send(&[*byte]) {
                break;
            }
        }
        false
    }

    /// Returns false: the client has hung up, or the test is over.
    fn flood(&self, again: &[u8]) -> bool {
        rustix::net::sockopt::set_socket_send_buffer_size(&self.stream, AT_ONCE).expect("a buffer");
        let many = again.repeat(AT_ONCE / again.len());
        let may_be_cut = again.iter().all(|byte| *byte == again[0]);
        std::thread::scope(|scope| {
            for _ in 0..if may_be_cut { WRITERS } else { 1 } {
                scope.spawn(|| while self.send(&many) {});
            }
        });
        false
    }
}

/// Ends a connection as a machine does that has forgotten it.
fn reset(stream: &TcpStream) {
    let at_once = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(stream, at_once).expect("an option");
}
