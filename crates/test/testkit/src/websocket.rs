//! A WebSocket server on a library that the generator does not use. The path of a request selects its behaviour:
//!
//! - `/echo` sends back each message;
//! - `/push/N` sends the texts `1` to `N`, then closes in order;
//! - `/close/CODE/REASON` closes at once with that;
//! - `/closed-after-one/CODE` closes with that after it has received a message;
//! - `/ping` sends a ping, a text after the pong, then behaves like `/echo`;
//! - `/cut` ends the connection without a closing frame after it has received a message;
//! - `/cookies` sets the cookie `socket=open`, and sends the value of the header `Cookie`;
//! - `/silent` never responds to the handshake;
//! - any other path gets a 404 with a body.
//!
//! It chooses the first of the subprotocols that a client requests.

use crate::record::{Record, Request as Seen};
use crate::tls::{Identity, LOOPBACK_NAMES};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::http::{HeaderMap, HeaderValue, StatusCode};
use tungstenite::protocol::CloseFrame;
use tungstenite::{Error, Message, WebSocket, accept_hdr};

/// The value of `Sec-WebSocket-Accept` by which a server accepts a request; empty for one without a key.
#[must_use]
pub fn accept(request: &str) -> String {
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    key.map(|key| tungstenite::handshake::derive_accept_key(key.as_bytes())).unwrap_or_default()
}

/// A running server. Dropping it closes its sockets and frees its port.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The state that all threads of a server share.
#[derive(Debug)]
struct Shared {
    record: Record,
    messages: Mutex<Vec<Received>>,
    stopped: AtomicBool,
    sockets: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
    tls: Option<Arc<ServerConfig>>,
}

/// An event that a server has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The connection it came on, from 1 in the order of accepting.
    pub connection: u64,
    /// The event.
    pub event: SocketEvent,
}

/// An event of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// A ping.
    Ping(Vec<u8>),
    /// The answer to a ping.
    Pong(Vec<u8>),
    /// The client has closed the socket, with this code if it sent one.
    Close(Option<u16>),
    /// The connection has ended without a closing frame.
    Cut,
}

impl Server {
    /// A server on a free port of `127.0.0.1`.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start() -> io::Result<Server> {
        Server::start_with(None)
    }

    /// A server that speaks TLS, with a certificate for `localhost` and `127.0.0.1` of an unknown authority.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start_tls() -> io::Result<Server> {
        let identity = Identity::for_names(&LOOPBACK_NAMES.map(str::to_owned), &[b"http/1.1"])?;
        Server::start_with(Some(Arc::clone(identity.acceptor.config())))
    }

    fn start_with(tls: Option<Arc<ServerConfig>>) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            record: Record::keeping(Record::KEPT),
            messages: Mutex::default(),
            stopped: AtomicBool::new(false),
            sockets: Mutex::default(),
            tls,
        });
        let accepting = Arc::clone(&shared);
        let accept = move || accept_all(&listener, &accepting);
        let thread = std::thread::Builder::new().name("websocket-server".to_owned()).spawn(accept)?;
        Ok(Server { address, shared, thread: Some(thread) })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The record of its handshake requests.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.shared.record
    }

    /// Waits until the connections so far have ended. A client may be gone before its last frame is read here.
    ///
    /// # Panics
    /// When the thread of a connection has panicked.
    pub fn wait_for_ends(&self) {
        let sockets = std::mem::take(&mut *self.shared.sockets.lock().expect("no holder of this lock panics"));
        for (_, thread) in sockets {
            thread.join().expect("no connection panics");
        }
    }

    /// The events so far, those of each connection in order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.shared.messages.lock().expect("no holder of this lock panics").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Connect once, so that the accepting thread wakes up and sees the flag.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed by then, and must not become an abort here.
            let _ = thread.join();
        }
        let sockets = std::mem::take(&mut *self.shared.sockets.lock().expect("no holder of this lock panics"));
        for (socket, thread) in sockets {
            // It may have ended already.
            let _ = socket.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

fn accept_all(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        // An accept fails when the peer has gone already: the next may do better.
        let Ok((socket, handle)) = socket.and_then(|socket| Ok((socket.try_clone()?, socket))) else { continue };
        let number = shared.record.connected();
        let serving = Arc::clone(shared);
        let thread = std::thread::spawn(move || {
            // Replies are small, and each is to leave at once.
            let _ = handle.set_nodelay(true);
            serve(&serving, number, &handle);
        });
        shared.sockets.lock().expect("no holder of this lock panics").push((socket, thread));
    }
}

/// Serves a connection to its end, and ignores errors of the client.
fn serve(shared: &Shared, connection: u64, stream: &TcpStream) {
    match shared.tls.clone().map(ServerConnection::new) {
        None => converse(shared, connection, stream),
        Some(Ok(tls)) => converse(shared, connection, StreamOwned::new(tls, stream)),
        Some(Err(_)) => shared.record.refuse(),
    }
    // The handle by which the server ends its sockets would keep it open. It may have ended already.
    let _ = stream.shutdown(Shutdown::Both);
}

fn converse(shared: &Shared, connection: u64, stream: impl Read + Write) {
    let mut asked = None;
    let opening = HandshakeCallback { shared, connection, asked: &mut asked };
    let opened = accept_hdr(stream, opening).ok();
    match (opened, asked) {
        (Some(socket), Some(asked)) => {
            let mut served = OpenSocket { shared, connection, socket };
            if let Err(Error::Io(_) | Error::Protocol(_)) = served.follow(&asked) {
                served.record(SocketEvent::Cut);
            }
        }
        _ => shared.record.refuse(),
    }
}

/// The parts of a handshake request that select the behaviour.
struct HandshakeRequest {
    path: String,
    cookies: String,
}

struct HandshakeCallback<'a> {
    shared: &'a Shared,
    connection: u64,
    asked: &'a mut Option<HandshakeRequest>,
}

impl Callback for HandshakeCallback<'_> {
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        let path = request.uri().path().to_owned();
        let headers = texts(request.headers());
        self.shared.record.requested(|| Seen {
            connection: self.connection,
            method: request.method().to_string(),
            path: request.uri().to_string(),
            headers,
            body: Vec::new(),
        });
        let known = ["echo", "push", "close", "closed-after-one", "ping", "cut", "cookies", "silent"];
        if !known.contains(&path.split('/').nth(1).unwrap_or_default()) {
            let mut refusal = ErrorResponse::new(Some(format!("nothing at {path}")));
            *refusal.status_mut() = StatusCode::NOT_FOUND;
            return Err(refusal);
        }
        let asked = request.headers().get("sec-websocket-protocol").and_then(|names| names.to_str().ok());
        if let Some(first) = asked.and_then(|names| names.split(',').next()).map(str::trim) {
            let first = HeaderValue::from_str(first).expect("it came as the value of a header");
            response.headers_mut().insert("sec-websocket-protocol", first);
        }
        if path == "/cookies" {
            response.headers_mut().insert("set-cookie", HeaderValue::from_static("socket=open"));
        }
        let cookies =
            request.headers().get("cookie").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        while path == "/silent" && !self.shared.stopped.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        *self.asked = Some(HandshakeRequest { path, cookies: cookies.unwrap_or_default() });
        Ok(response)
    }
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// An open socket.
struct OpenSocket<'a, S> {
    shared: &'a Shared,
    connection: u64,
    socket: WebSocket<S>,
}

impl<S: Read + Write> OpenSocket<'_, S> {
    fn follow(&mut self, asked: &HandshakeRequest) -> Result<(), Error> {
        let mut parts = asked.path.split('/').skip(1);
        match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
            ("push", count, _) => {
                let count: u64 = count.parse().unwrap_or_default();
                (1..=count).try_for_each(|number| self.socket.send(Message::text(number.to_string())))?;
                self.close(1000, "")
            }
            ("close", code, reason) => self.close(code.parse().unwrap_or(1000), reason),
            ("closed-after-one", code, _) => {
                self.read()?;
                self.close(code.parse().unwrap_or(1000), "")
            }
            ("cut", ..) => self.read().map(drop),
            ("ping", ..) => {
                self.socket.send(Message::Ping(b"are you there".as_slice().into()))?;
                while self.read()? != SocketEvent::Pong(b"are you there".to_vec()) {}
                self.socket.send(Message::text("you are there"))?;
                self.echo()
            }
            ("cookies", ..) => {
                self.socket.send(Message::text(asked.cookies.clone()))?;
                self.echo()
            }
            _ => self.echo(),
        }
    }

    fn echo(&mut self) -> Result<(), Error> {
        loop {
            match self.read()? {
                SocketEvent::Text(text) => self.socket.send(Message::text(text))?,
                SocketEvent::Binary(bytes) => self.socket.send(Message::binary(bytes))?,
                _ => {}
            }
        }
    }

    /// Sends a closing frame, and reads until the client closes too.
    fn close(&mut self, code: u16, reason: &str) -> Result<(), Error> {
        self.socket.close(Some(CloseFrame { code: code.into(), reason: reason.to_owned().into() }))?;
        loop {
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<SocketEvent, Error> {
        let event = match self.socket.read()? {
            Message::Text(text) => SocketEvent::Text(text.to_string()),
            Message::Binary(bytes) => SocketEvent::Binary(bytes.to_vec()),
            Message::Ping(bytes) => SocketEvent::Ping(bytes.to_vec()),
            Message::Pong(bytes) => SocketEvent::Pong(bytes.to_vec()),
            Message::Close(frame) => SocketEvent::Close(frame.map(|frame| frame.code.into())),
            Message::Frame(_) => unreachable!("the library hands over whole messages"),
        };
        self.record(event.clone());
        Ok(event)
    }

    fn record(&self, event: SocketEvent) {
        let received = Received { connection: self.connection, event };
        self.shared.messages.lock().expect("no holder of this lock panics").push(received);
    }
}
