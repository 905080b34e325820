//! A server that does with each request what a test says, by the rules of HTTP or against them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A server under way, on a free port of the loopback. It ends when dropped, after its clients.
pub(super) struct Script {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    heads: Mutex<Vec<String>>,
    connections: AtomicUsize,
    stop: AtomicBool,
}

/// A request whose head has come.
pub(super) struct Exchange<'a> {
    /// Counted from 0, over all connections.
    pub(super) number: usize,
    pub(super) head: &'a str,
    pub(super) stream: &'a mut BufReader<TcpStream>,
}

/// What becomes of the connection.
#[derive(PartialEq, Eq)]
pub(super) enum Then {
    Keep,
    Close,
}

impl Script {
    pub(super) fn start(play: impl Fn(&mut Exchange<'_>) -> Then + Sync + Send + 'static) -> Script {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            std::thread::scope(|scope| {
                for stream in listener.incoming().take_while(|_| !served.stop.load(Ordering::SeqCst)) {
                    let (stream, served, play) = (stream.expect("a connection"), &*served, &play);
                    served.connections.fetch_add(1, Ordering::SeqCst);
                    scope.spawn(move || serve(BufReader::new(stream), served, play));
                }
            });
        });
        Script { address, shared, thread: Some(thread) }
    }

    /// The heads of all requests.
    pub(super) fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().expect("no thread panics with it").clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _wakes_it = TcpStream::connect(self.address);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it ran").expect("the script does not panic");
        }
    }
}

fn serve(mut stream: BufReader<TcpStream>, shared: &Shared, play: impl Fn(&mut Exchange<'_>) -> Then) {
    while let Some(head) = read_head(&mut stream) {
        let number = {
            let mut heads = shared.heads.lock().expect("no thread panics with it");
            heads.push(head.clone());
            heads.len() - 1
        };
        if play(&mut Exchange { number, head: &head, stream: &mut stream }) == Then::Close {
            return;
        }
    }
}

fn read_head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

impl Exchange<'_> {
    /// True if the request line starts like this.
    pub(super) fn is(&self, start: &str) -> bool {
        self.head.starts_with(start)
    }

    /// Reads the body to its end.
    pub(super) fn take_body(&mut self) {
        let length = self.head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        // The client may hang up.
        let _ = self.stream.read_exact(&mut body);
    }

    /// Answers with `status` and `headers`, each of which ends its line.
    pub(super) fn answer(&mut self, status: &str, headers: &str, body: &[u8]) -> Then {
        self.take_body();
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
        self.send(&[head.as_bytes(), body].concat())
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Then {
        match self.stream.get_mut().write_all(bytes) {
            Ok(()) => Then::Keep,
            Err(_) => Then::Close,
        }
    }
}
