//! A small chat server: users post by HTTP, and what they post comes to the WebSockets of all.
//!
//! - `GET /rooms` gives the names of the rooms, `["town", "market"]` under `rooms`;
//! - `POST /posts/ROOM?from=USER` passes its body on to the sockets of all other users, as `posted`, and gives 201;
//! - `POST /refused/ROOM` gives 500, and passes nothing on;
//! - `/socket?user=USER` is a WebSocket that is in both rooms. It says `hello` first. A message with a `seq` is answered by one with
//!   `seq_reply`; any other is only counted.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use tungstenite::handshake::server::{Request, Response};
use tungstenite::{Error, Message, WebSocket};

/// The mistakes of a server, each after so many deliveries (never where there is no number), and when its clients begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mistakes {
    /// A delivery is left out.
    pub lose_every: Option<u64>,
    /// A delivery comes twice.
    pub repeat_every: Option<u64>,
    /// A socket is cut in place of a delivery.
    pub cut_every: Option<u64>,
    /// A socket is closed as it should be in place of a delivery, and its connection reset at once.
    pub reset_every: Option<u64>,
    /// Every delivery waits for so long.
    pub late: Duration,
    /// It answers no ping, and reads nothing.
    pub deaf: bool,
    /// The number of sockets that must be open before it says `hello` to any.
    pub wait_for: u64,
    /// Every handshake is refused with this status.
    pub refuse: Option<u16>,
}

/// The counts of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Posts that were passed on.
    pub posts: u64,
    /// Deliveries that were made, those that came twice once.
    pub delivered: u64,
    /// Deliveries that were left out.
    pub lost: u64,
    /// Sockets that were cut.
    pub cut: u64,
    /// Sockets that were opened.
    pub opened: u64,
    /// Messages from clients.
    pub messages: u64,
}

/// A running server. Dropping it closes its sockets and frees its port.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    mistakes: Mistakes,
    stopped: AtomicBool,
    connections: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    /// Deliveries so far, with those that were left out.
    attempts: u64,
    /// The open sockets, by the number of their connection.
    sockets: BTreeMap<u64, Arc<Mutex<Outbox>>>,
    /// The user of each.
    users: BTreeMap<u64, String>,
    /// All connections, to end them.
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

/// The sending side of a socket.
#[derive(Debug)]
struct Outbox(WebSocket<TcpStream>);

impl Server {
    /// A server on a free port of `127.0.0.1`.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(mistakes: Mistakes) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (stopped, connections) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = Arc::new(Shared { mistakes, stopped, connections, state: Mutex::default() });
        let accepting = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("chat-server".to_owned())
            .spawn(move || accept_all(&listener, &accepting))?;
        Ok(Server { address, shared, thread: Some(thread) })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.state().counts
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Connect once, so that the accepting thread wakes up and sees the flag.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let (streams, threads) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.streams), std::mem::take(&mut state.threads))
        };
        for stream in streams {
            // It may have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Passes a post on. The lock is held over the whole of it: a socket is either there or not.
    fn deliver(&self, room: &str, from: &str, post: &str) {
        let mut state = self.state();
        std::thread::sleep(self.mistakes.late);
        state.counts.posts += 1;
        let text = format!(r#"{{"event": "posted", "room": "{room}", "post": {post}}}"#);
        for (number, socket) in state.sockets.clone() {
            if state.users.get(&number).is_some_and(|user| user == from) {
                continue;
            }
            state.attempts += 1;
            let is_due = |every: Option<u64>| every.is_some_and(|every| state.attempts.is_multiple_of(every));
            let (lose, cut, repeat) =
                (is_due(self.mistakes.lose_every), is_due(self.mistakes.cut_every), is_due(self.mistakes.repeat_every));
            let reset = is_due(self.mistakes.reset_every);
            let mut socket = socket.lock().expect("no holder of this lock panics");
            if cut || reset {
                if cut {
                    socket.cut();
                } else {
                    socket.close_and_reset();
                }
                state.sockets.remove(&number);
                state.counts.cut += 1;
            } else if lose {
                state.counts.lost += 1;
            } else {
                state.counts.delivered += 1;
                for _ in 0..1 + u64::from(repeat) {
                    let _ = socket.0.send(Message::text(text.clone()));
                }
            }
        }
    }
}

impl Outbox {
    fn cut(&mut self) {
        let _ = self.0.get_ref().shutdown(Shutdown::Both);
    }

    fn close_and_reset(&mut self) {
        let _ = self.0.close(None);
        let _ = self.0.flush();
        let _ = rustix::net::connect_unspec(self.0.get_ref());
    }
}

fn accept_all(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        // An accept fails when the peer has gone already: the next may do better.
        let Ok((stream, handle)) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) else { continue };
        let _ = handle.set_nodelay(true);
        let serving = Arc::clone(shared);
        let thread = std::thread::spawn(move || drop(serve(&serving, handle)));
        let mut state = shared.state();
        state.streams.push(stream);
        state.threads.push(thread);
    }
}

fn serve(shared: &Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let mut start = [0; 11];
    while stream.peek(&mut start)? < start.len() {
        std::thread::sleep(Duration::from_millis(1));
    }
    match &start == b"GET /socket" {
        true if shared.mistakes.refuse.is_none() => hold(shared, stream),
        _ => answer_all(shared, stream),
    }
}

/// Holds a socket until it ends.
#[allow(clippy::result_large_err, reason = "the callback of the library may return such an error")]
fn hold(shared: &Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let reading = stream.try_clone()?;
    let mut user = String::new();
    let see = |request: &Request, response: Response| {
        user = value_of(&request.uri().to_string(), "user");
        Ok(response)
    };
    let socket = tungstenite::accept_hdr(stream, see).map_err(|error| io::Error::other(error.to_string()))?;
    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
    let socket = Arc::new(Mutex::new(Outbox(socket)));
    {
        let mut state = shared.state();
        state.counts.opened += 1;
        state.users.insert(number, user);
        state.sockets.insert(number, Arc::clone(&socket));
    }
    while shared.state().counts.opened < shared.mistakes.wait_for && !shared.stopped.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let hello = Message::text(r#"{"event": "hello"}"#);
    let _ = socket.lock().expect("no holder of this lock panics").0.send(hello);
    let ended = if shared.mistakes.deaf { sleep_until_stopped(shared) } else { read_all(shared, &reading, &socket) };
    shared.state().sockets.remove(&number);
    ended
}

/// What a query says of a name.
fn value_of(target: &str, name: &str) -> String {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().to_owned()
}

fn sleep_until_stopped(shared: &Shared) -> io::Result<()> {
    while !shared.stopped.load(Ordering::SeqCst) {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    Ok(())
}

/// Reads what a client sends. Only while bytes are there does it hold the socket, which others write to.
fn read_all(shared: &Shared, stream: &TcpStream, socket: &Mutex<Outbox>) -> io::Result<()> {
    let outbox = || socket.lock().expect("no holder of this lock panics");
    stream.set_read_timeout(Some(Duration::from_millis(1)))?;
    let mut byte = [0];
    loop {
        let waits = |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        match stream.peek(&mut byte) {
            Ok(0) => return Ok(()),
            Err(error) if !waits(&error) => return Err(error),
            Err(_) => continue,
            Ok(_) => {}
        }
        // Several messages may have come at once. Whoever delivers holds the state, and then a socket: never the other
        // way round.
        loop {
            let read = outbox().0.read();
            match read {
                Ok(Message::Text(text)) => {
                    shared.state().counts.messages += 1;
                    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                    if let Some(seq) = parsed.get("seq") {
                        let answer = format!(r#"{{"seq_reply": {seq}, "status": "OK"}}"#);
                        let _ = outbox().0.send(Message::text(answer));
                    }
                }
                Ok(_) => {}
                Err(Error::Io(error)) if waits(&error) => break,
                Err(Error::Io(error)) => return Err(error),
                Err(_) => return Ok(()),
            }
        }
    }
}

/// Answers the requests of a connection, one after the other.
fn answer_all(shared: &Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut parts = path.split(['/', '?']).skip(1);
        let (status, text) = match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
            ("rooms", _) => ("200 OK".to_owned(), r#"{"rooms": ["town", "market"]}"#.to_owned()),
            ("posts", room) => {
                shared.deliver(room, &value_of(&path, "from"), &String::from_utf8_lossy(&body));
                ("201 Created".to_owned(), "{}".to_owned())
            }
            ("refused", _) => ("500 Internal Server Error".to_owned(), "no".to_owned()),
            _ => match shared.mistakes.refuse {
                Some(status) => (format!("{status} No"), "not today".to_owned()),
                None => ("404 Not Found".to_owned(), String::new()),
            },
        };
        write!(writer, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
    }
}
