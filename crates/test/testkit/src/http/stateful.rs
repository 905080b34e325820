//! A server that insists on the right state: tokens, cookies, the order of steps.
//!
//! What it expects of each user, in this order, and again from the third step on:
//!
//! 1. `POST /login`, JSON `{"user": "NAME", "password": "secret-NAME"}`: gives a token in JSON and
//!    the cookie `session`.
//! 2. `POST /orders` with both, and `{"id": TEXT, "note": "a\"b"}`: takes each id but once, gives
//!    the next ticket.
//! 3. `GET /next?ticket=TICKET`: gives the number of an item, and a new session in a cookie; every
//!    third time by way of a redirect.
//! 4. `PUT /items/ITEM`, form `state=done&ticket=TICKET`: gives the next ticket in a header.
//!
//! `DELETE /login` ends a session at any time. Whatever comes otherwise is a wrong request: it is
//! counted, its reason is kept, and the response is 409.

use super::connection::read_request;
use crate::record::Request;
use crate::running::{Running, accept};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// A server under way, on one thread of its own. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Stateful {
    running: Running,
    record: Arc<Mutex<SessionRecord>>,
}

/// The counts and faults of the requests so far.
#[derive(Clone, Debug, Default)]
pub struct SessionRecord {
    /// All requests.
    pub requests: u64,
    /// The number of correct requests.
    pub correct: u64,
    /// The number of logins of each user.
    pub logins: HashMap<String, u64>,
    /// The number of logouts.
    pub logouts: u64,
    /// The faults of the first hundred wrong requests.
    pub reasons: Vec<String>,
    sessions: HashMap<String, Session>,
    orders: HashSet<String>,
    made: u64,
}

#[derive(Clone, Debug)]
struct Session {
    token: String,
    cookie: String,
    ticket: String,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    LoggedIn,
    Ordered,
    /// It was redirected to another path for its item.
    Redirected,
    /// It has to finish this item.
    HasItem(u64),
}

struct Response {
    status: &'static str,
    headers: String,
    body: String,
}

impl Stateful {
    /// Starts it.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start() -> io::Result<Stateful> {
        let record = Arc::new(Mutex::new(SessionRecord::default()));
        let served = Arc::clone(&record);
        let running = Running::start("stateful-server", 1, |listener| serve(listener, served))?;
        Ok(Stateful { running, record })
    }

    /// Where it listens: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The record of its requests.
    #[must_use]
    pub fn record(&self) -> SessionRecord {
        self.record.lock().expect("no holder of this lock panics").clone()
    }
}

async fn serve(listener: TcpListener, record: Arc<Mutex<SessionRecord>>) {
    loop {
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(converse(stream, Arc::clone(&record)));
    }
}

/// Serves a connection to its end. How it ends is the client's affair.
async fn converse(mut stream: TcpStream, record: Arc<Mutex<SessionRecord>>) -> io::Result<()> {
    let mut input = Vec::with_capacity(4096);
    while let Some(request) = read_request(&mut stream, &mut input, 0).await? {
        let response = record.lock().expect("no holder of this lock panics").response(&request);
        let Response { status, headers, body } = response;
        let reply = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(reply.as_bytes()).await?;
    }
    Ok(())
}

impl SessionRecord {
    /// The number of wrong requests.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.requests - self.correct
    }

    fn response(&mut self, request: &Request) -> Response {
        self.requests += 1;
        match self.handle(request) {
            Ok(response) => {
                self.correct += 1;
                response
            }
            Err(reason) => {
                if self.reasons.len() < 100 {
                    self.reasons.push(format!("{} {}: {reason}", request.method, request.path));
                }
                Response { status: "409 Conflict", headers: String::new(), body: format!("{{\"error\": {reason:?}}}") }
            }
        }
    }

    fn handle(&mut self, request: &Request) -> Result<Response, String> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match (request.method.as_str(), path) {
            ("POST", "/login") => self.log_in(request),
            ("DELETE", "/login") => {
                let token = self.session(request)?.token.clone();
                self.sessions.remove(&token);
                self.logouts += 1;
                Ok(response("204 No Content", String::new(), String::new()))
            }
            ("POST", "/orders") => self.order(request),
            ("GET", "/next" | "/moved/next") => self.next(request, path, query),
            ("PUT", path) if path.starts_with("/items/") => self.finish(request, path),
            _ => Err("no such place".to_owned()),
        }
    }

    fn log_in(&mut self, request: &Request) -> Result<Response, String> {
        is_equal("content type", request.header("content-type"), Some("application/json"))?;
        let user = text_of(&request.body, "user")?;
        is_equal("password", Some(&*text_of(&request.body, "password")?), Some(&*format!("secret-{user}")))?;
        *self.logins.entry(user).or_default() += 1;
        let (token, cookie) = (self.name("token"), self.name("session"));
        let session =
            Session { token: token.clone(), cookie: cookie.clone(), ticket: String::new(), stage: Stage::LoggedIn };
        self.sessions.insert(token.clone(), session);
        let body = format!("{{\"user\": {{\"roles\": [\"a\", \"b\"]}}, \"access\": {{\"token\": \"{token}\"}}}}");
        Ok(response("200 OK", format!("Set-Cookie: session={cookie}; Path=/; HttpOnly\r\n"), body))
    }

    fn order(&mut self, request: &Request) -> Result<Response, String> {
        let body = std::str::from_utf8(&request.body).map_err(|error| error.to_string())?;
        let id = text_of(&request.body, "id")?;
        let is_whole = body.replace(' ', "") == format!("{{\"id\":\"{id}\",\"note\":\"a\\\"b\"}}");
        let ticket = self.name("ticket &=+");
        let is_new = self.orders.insert(id);
        let session = self.session(request)?;
        is_equal("stage", Some(&session.stage), Some(&Stage::LoggedIn))?;
        if !is_whole || !is_new {
            return Err(format!("a new order was expected, found {body}"));
        }
        (session.stage, session.ticket) = (Stage::Ordered, ticket.clone());
        Ok(response("201 Created", String::new(), format!("[{{\"ticket\": \"{ticket}\", \"left\": 7}}]")))
    }

    fn next(&mut self, request: &Request, path: &str, query: &str) -> Result<Response, String> {
        let (item, cookie) = (self.made + 1, self.name("session"));
        let session = self.session(request)?;
        is_equal("ticket", Some(&*decoded(query)), Some(&*format!("ticket={}", session.ticket)))?;
        match (&session.stage, path) {
            (Stage::Ordered, "/next") if item % 3 == 0 => {
                session.stage = Stage::Redirected;
                return Ok(response("302 Found", format!("Location: /moved/next?{query}\r\n"), String::new()));
            }
            (Stage::Ordered, "/next") | (Stage::Redirected, "/moved/next") => {}
            (stage, _) => return Err(format!("not now, in stage {stage:?}")),
        }
        (session.stage, session.cookie) = (Stage::HasItem(item), cookie.clone());
        let body = format!("<html><a href=\"/items/{item}\">item no. {item}</a></html>");
        Ok(response("200 OK", format!("Set-Cookie: session={cookie}; Path=/\r\n"), body))
    }

    fn finish(&mut self, request: &Request, path: &str) -> Result<Response, String> {
        is_equal("content type", request.header("content-type"), Some("application/x-www-form-urlencoded"))?;
        let ticket = self.name("ticket %");
        let session = self.session(request)?;
        let Stage::HasItem(item) = session.stage else { return Err(format!("not now, in stage {:?}", session.stage)) };
        is_equal("item", Some(path), Some(&*format!("/items/{item}")))?;
        let fields = decoded(&String::from_utf8_lossy(&request.body));
        is_equal("form", Some(&*fields), Some(&*format!("state=done&ticket={}", session.ticket)))?;
        (session.stage, session.ticket) = (Stage::Ordered, ticket.clone());
        Ok(response("200 OK", format!("X-Ticket: {ticket}\r\n"), "{\"ok\": true}".to_owned()))
    }

    /// The session that a request names by token and cookie.
    fn session(&mut self, request: &Request) -> Result<&mut Session, String> {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let token = token.ok_or("it has no token")?;
        let session = self.sessions.get_mut(token).ok_or_else(|| format!("there is no session of {token}"))?;
        is_equal("cookie", request.header("cookie"), Some(&*format!("session={}", session.cookie)))?;
        Ok(session)
    }

    fn name(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what} {}", self.made).replace("token ", "token-").replace("session ", "session-")
    }
}

fn response(status: &'static str, headers: String, body: String) -> Response {
    Response { status, headers, body }
}

fn is_equal<T>(what: &str, found: Option<&T>, expected: Option<&T>) -> Result<(), String>
where
    T: PartialEq + fmt::Debug + ?Sized,
{
    if found == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

/// The text under a name in a flat object.
fn text_of(body: &[u8], name: &str) -> Result<String, String> {
    let body = String::from_utf8_lossy(body);
    let behind = [": ", ":"].iter().find_map(|colon| body.split_once(&format!("\"{name}\"{colon}\"")));
    let behind = behind.ok_or_else(|| format!("`{name}` is missing in {body}"))?.1;
    Ok(behind.split('"').next().unwrap_or_default().to_owned())
}

/// A query or a form, without its encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex: Option<u8> = (byte == b'%').then(|| {
            let digits = [rest.next().unwrap_or(b'?'), rest.next().unwrap_or(b'?')];
            u8::from_str_radix(&String::from_utf8_lossy(&digits), 16).unwrap_or(b'?')
        });
        bytes.push(hex.unwrap_or(if byte == b'+' { b' ' } else { byte }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
