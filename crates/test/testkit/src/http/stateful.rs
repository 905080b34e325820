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
//! counted, its reason is kept, and the answer is 409.

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
    account: Arc<Mutex<Account>>,
}

/// What the server has seen.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// All requests.
    pub requests: u64,
    /// Those that came as they should.
    pub right: u64,
    /// How often each user has logged in.
    pub logins: HashMap<String, u64>,
    /// Sessions that were ended.
    pub logouts: u64,
    /// Why requests were wrong, the first hundred of them.
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
    /// It was sent on to another place for its item.
    SentOn,
    /// It has this item to do.
    Doing(u64),
}

struct Answer {
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
        let account = Arc::new(Mutex::new(Account::default()));
        let served = Arc::clone(&account);
        let running = Running::start("stateful-server", 1, |listener| serve(listener, served))?;
        Ok(Stateful { running, account })
    }

    /// Where it listens: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// What it has seen.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account.lock().expect("no holder of this lock panics").clone()
    }
}

async fn serve(listener: TcpListener, account: Arc<Mutex<Account>>) {
    loop {
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(converse(stream, Arc::clone(&account)));
    }
}

/// Serves a connection to its end. How it ends is the client's affair.
async fn converse(mut stream: TcpStream, account: Arc<Mutex<Account>>) -> io::Result<()> {
    let mut input = Vec::with_capacity(4096);
    while let Some(request) = read_request(&mut stream, &mut input, 0).await? {
        let answer = account.lock().expect("no holder of this lock panics").answer(&request);
        let Answer { status, headers, body } = answer;
        let reply = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(reply.as_bytes()).await?;
    }
    Ok(())
}

impl Account {
    /// How many requests were wrong.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.requests - self.right
    }

    fn answer(&mut self, request: &Request) -> Answer {
        self.requests += 1;
        match self.take(request) {
            Ok(answer) => {
                self.right += 1;
                answer
            }
            Err(reason) => {
                if self.reasons.len() < 100 {
                    self.reasons.push(format!("{} {}: {reason}", request.method, request.path));
                }
                Answer { status: "409 Conflict", headers: String::new(), body: format!("{{\"error\": {reason:?}}}") }
            }
        }
    }

    fn take(&mut self, request: &Request) -> Result<Answer, String> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match (request.method.as_str(), path) {
            ("POST", "/login") => self.log_in(request),
            ("DELETE", "/login") => {
                let token = self.session(request)?.token.clone();
                self.sessions.remove(&token);
                self.logouts += 1;
                Ok(answer("204 No Content", String::new(), String::new()))
            }
            ("POST", "/orders") => self.order(request),
            ("GET", "/next" | "/moved/next") => self.next(request, path, query),
            ("PUT", path) if path.starts_with("/items/") => self.finish(request, path),
            _ => Err("no such place".to_owned()),
        }
    }

    fn log_in(&mut self, request: &Request) -> Result<Answer, String> {
        is_equal("content type", request.header("content-type"), Some("application/json"))?;
        let user = text_of(&request.body, "user")?;
        is_equal("password", Some(&*text_of(&request.body, "password")?), Some(&*format!("secret-{user}")))?;
        *self.logins.entry(user).or_default() += 1;
        let (token, cookie) = (self.name("token"), self.name("session"));
        let session =
            Session { token: token.clone(), cookie: cookie.clone(), ticket: String::new(), stage: Stage::LoggedIn };
        self.sessions.insert(token.clone(), session);
        let body = format!("{{\"user\": {{\"roles\": [\"a\", \"b\"]}}, \"access\": {{\"token\": \"{token}\"}}}}");
        Ok(answer("200 OK", format!("Set-Cookie: session={cookie}; Path=/; HttpOnly\r\n"), body))
    }

    fn order(&mut self, request: &Request) -> Result<Answer, String> {
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
        Ok(answer("201 Created", String::new(), format!("[{{\"ticket\": \"{ticket}\", \"left\": 7}}]")))
    }

    fn next(&mut self, request: &Request, path: &str, query: &str) -> Result<Answer, String> {
        let (item, cookie) = (self.made + 1, self.name("session"));
        let session = self.session(request)?;
        is_equal("ticket", Some(&*decoded(query)), Some(&*format!("ticket={}", session.ticket)))?;
        match (&session.stage, path) {
            (Stage::Ordered, "/next") if item % 3 == 0 => {
                session.stage = Stage::SentOn;
                return Ok(answer("302 Found", format!("Location: /moved/next?{query}\r\n"), String::new()));
            }
            (Stage::Ordered, "/next") | (Stage::SentOn, "/moved/next") => {}
            (stage, _) => return Err(format!("not now, in stage {stage:?}")),
        }
        (session.stage, session.cookie) = (Stage::Doing(item), cookie.clone());
        let body = format!("<html><a href=\"/items/{item}\">item no. {item}</a></html>");
        Ok(answer("200 OK", format!("Set-Cookie: session={cookie}; Path=/\r\n"), body))
    }

    fn finish(&mut self, request: &Request, path: &str) -> Result<Answer, String> {
        is_equal("content type", request.header("content-type"), Some("application/x-www-form-urlencoded"))?;
        let ticket = self.name("ticket %");
        let session = self.session(request)?;
        let Stage::Doing(item) = session.stage else { return Err(format!("not now, in stage {:?}", session.stage)) };
        is_equal("item", Some(path), Some(&*format!("/items/{item}")))?;
        let fields = decoded(&String::from_utf8_lossy(&request.body));
        is_equal("form", Some(&*fields), Some(&*format!("state=done&ticket={}", session.ticket)))?;
        (session.stage, session.ticket) = (Stage::Ordered, ticket.clone());
        Ok(answer("200 OK", format!("X-Ticket: {ticket}\r\n"), "{\"ok\": true}".to_owned()))
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

fn answer(status: &'static str, headers: String, body: String) -> Answer {
    Answer { status, headers, body }
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
