//! The common part of `k6/ws` and `k6/websockets`: parameters, the opening request, and samples.

use crate::fetch::headers::Headers;
use crate::fetch::request::unix_time;
use crate::modules::http;
use crate::operations::{HttpReply, SocketClosed, SocketRequest};
use crate::user::{SampleLabels, User, milliseconds, read_tags};
use crate::value::{is_nothing, non_null, text, thrown};
use plimsoll_k6_run::metrics::{MetricId, builtin};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::{Jar, Scheme, Url};
use rquickjs::{Ctx, Result, Value};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// The timeout of opening a socket, as in k6.
pub(crate) const LONGEST_OPENING: Nanos = Nanos(60_000_000_000);

/// The status code of a normal closure.
pub(crate) const NORMAL: u16 = 1000;
/// The status code of a user that goes away.
pub(crate) const GOING_AWAY: u16 = 1001;

/// The parameters of a socket.
pub(crate) struct Parameters {
    headers: Headers,
    jar: Rc<RefCell<Jar>>,
    deflate: bool,
    tags: Vec<(String, String)>,
    /// An unknown parameter.
    unknown: Option<String>,
}

impl Parameters {
    /// Reads `{ headers, tags, jar, compression }`. As in k6, `k6/ws` ignores others.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub(crate) fn read<'js>(ctx: &Ctx<'js>, user: &User, params: Option<Value<'js>>) -> Result<Parameters> {
        let mut headers = Headers::default();
        headers.set("User-Agent", user.user_agent());
        let mut read =
            Parameters { headers, jar: Rc::clone(&user.jar), deflate: false, tags: Vec::new(), unknown: None };
        let Some(params) = non_null(params).and_then(Value::into_object) else { return Ok(read) };
        for param in params.props::<String, Value<'js>>() {
            let (name, value) = param?;
            read.set(ctx, &name, value)?;
        }
        Ok(read)
    }

    fn set<'js>(&mut self, ctx: &Ctx<'js>, name: &str, value: Value<'js>) -> Result<()> {
        match name {
            "headers" if is_nothing(&value) => {}
            "headers" => {
                let Some(headers) = value.as_object() else { return Err(thrown(ctx, "expected an object of headers")) };
                for header in headers.props::<String, Value<'js>>() {
                    let (name, value) = header?;
                    self.headers.set(&name, text(ctx, value)?);
                }
            }
            "tags" => self.tags = read_tags(ctx, Some(value))?,
            "jar" if is_nothing(&value) => {}
            "jar" => match http::jar_of(&value) {
                Some(jar) => self.jar = jar,
                None => return Err(thrown(ctx, "expected a CookieJar as `jar`")),
            },
            "compression" => {
                let algorithm = text(ctx, value)?;
                if !matches!(algorithm.trim(), "deflate" | "") {
                    let what =
                        format!("unsupported compression algorithm '{algorithm}', supported algorithm is 'deflate'");
                    return Err(thrown(ctx, what));
                }
                self.deflate = !algorithm.trim().is_empty();
            }
            other => self.unknown = Some(other.to_owned()),
        }
        Ok(())
    }

    /// Fails if there is an unknown parameter.
    pub(crate) fn refuse_unknown(&self, ctx: &Ctx<'_>) -> Result<()> {
        let fault = self.unknown.as_ref().map(|name| thrown(ctx, format!("unknown WebSocket's option {name}")));
        fault.map_or(Ok(()), Err)
    }

    /// The operation that opens the socket.
    ///
    /// # Errors
    /// A header cannot be sent.
    pub(crate) fn request(&self, ctx: &Ctx<'_>, url: &Url, subprotocols: Vec<String>) -> Result<SocketRequest> {
        let mut headers = self.headers.clone();
        if headers.get("Host").is_none() {
            headers.set("Host", url.authority());
        }
        let mut cookies = Vec::new();
        if self.jar.borrow().write(url.place(), unix_time(), &mut cookies) {
            let own = headers.get("Cookie").map(|own| format!("; {own}")).unwrap_or_default();
            headers.set("Cookie", String::from_utf8_lossy(&cookies).into_owned() + &own);
        }
        if let Some(fault) = headers.fault().or_else(|| ours(&headers)) {
            return Err(thrown(ctx, fault));
        }
        let name =
            self.tags.iter().find(|(tag, _)| tag == "name").map_or_else(|| url.to_string(), |(_, name)| name.clone());
        Ok(SocketRequest {
            url: url.clone(),
            headers: headers.into_wire(),
            subprotocols,
            deflate: self.deflate,
            name: name.into(),
        })
    }

    /// Stores the cookies of the reply.
    pub(crate) fn take_cookies(&self, url: &Url, reply: &HttpReply) {
        let mut jar = self.jar.borrow_mut();
        reply.values("Set-Cookie").for_each(|cookie| jar.receive(cookie, url.place(), unix_time()));
    }
}

/// The fault if the script sets a header of the handshake.
fn ours(headers: &Headers) -> Option<String> {
    let ours = ["Upgrade", "Connection", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions"];
    let found = ours.into_iter().find(|name| headers.get(name).is_some())?;
    Some(format!("websocket: duplicate header not allowed: {found}"))
}

/// Reads the URL of a socket.
///
/// # Errors
/// The text is no URL, or has another scheme.
pub(crate) fn url_of(ctx: &Ctx<'_>, written: &str) -> Result<Url> {
    let url = Url::parse(written).map_err(|fault| thrown(ctx, fault))?;
    match url.scheme() {
        Scheme::Ws | Scheme::Wss => Ok(url),
        other => {
            let what = format!("WebSocket requires url with scheme ws or wss, but got \"{}\"", other.name());
            Err(thrown(ctx, what))
        }
    }
}

/// The samples of a socket, with the labels of when the script asked for it.
pub(crate) struct Session {
    user: Rc<User>,
    labels: SampleLabels,
    began: Instant,
    tags: RefCell<Vec<(String, String)>>,
    /// The send times of pings without a pong, by their payload.
    pings: RefCell<HashMap<String, Instant>>,
    pinged: Cell<u64>,
}

impl Session {
    pub(crate) fn new(user: &Rc<User>, began: Instant, written: &str, params: &Parameters) -> Session {
        let mut tags = params.tags.clone();
        let name = tags.iter().find(|(tag, _)| tag == "name").map_or(written, |(_, name)| name).to_owned();
        let mut system = vec![("url", name.clone())];
        if tags.iter().all(|(tag, _)| tag != "name") {
            system.push(("name", name));
        }
        let system = system.into_iter().filter(|(tag, _)| user.has_system_tag(tag));
        tags.extend(system.map(|(tag, value)| (tag.to_owned(), value)));
        Session {
            user: Rc::clone(user),
            labels: user.labels(),
            began,
            tags: RefCell::new(tags),
            pings: RefCell::default(),
            pinged: Cell::new(0),
        }
    }

    /// Adds the samples of opening the socket, successful or not.
    pub(crate) fn connected(&self, took: Nanos, reply: Option<&HttpReply>, remote: Option<SocketAddr>) {
        let mut tags = Vec::new();
        tags.extend(remote.map(|remote| ("ip", remote.ip().to_string())));
        if let Some(reply) = reply {
            tags.push(("status", reply.status().to_string()));
            tags.push(("subproto", reply.header("sec-websocket-protocol").unwrap_or_default().to_owned()));
        }
        let tags = tags.into_iter().filter(|(tag, _)| self.user.has_system_tag(tag));
        self.tags.borrow_mut().extend(tags.map(|(tag, value)| (tag.to_owned(), value)));
        let connecting = milliseconds(self.began, self.began.after(took));
        self.add(self.began, &[(builtin::WS_SESSIONS, 1.0), (builtin::WS_CONNECTING, connecting)]);
    }

    /// Adds samples.
    pub(crate) fn add(&self, at: Instant, samples: &[(MetricId, f64)]) {
        let tags = self.tags.borrow();
        let tags: Vec<(&str, &str)> = tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.user.add_measured(at, samples, None, (&tags, Some(&self.labels)));
    }

    /// The payload of the next ping.
    pub(crate) fn ping(&self, now: Instant) -> Vec<u8> {
        let name = self.pinged.replace(self.pinged.get() + 1).to_string();
        self.pings.borrow_mut().insert(name.clone(), now);
        name.into_bytes()
    }

    /// Takes a pong. Ignores unsolicited ones.
    pub(crate) fn pong(&self, payload: &[u8], at: Instant) {
        let sent = std::str::from_utf8(payload).ok().and_then(|name| self.pings.borrow_mut().remove(name));
        if let Some(sent) = sent {
            self.add(at, &[(builtin::WS_PING, milliseconds(sent, at))]);
        }
    }

    pub(crate) fn end(&self, now: Instant) {
        self.add(now, &[(builtin::WS_SESSION_DURATION, milliseconds(self.began, now))]);
    }
}

/// The fault of a closed socket in k6's words; none after a normal closure.
pub(crate) fn fault_of(closed: &SocketClosed) -> Option<String> {
    if let Some(fault) = &closed.fault {
        return Some(fault.clone());
    }
    let meaning = match closed.code {
        NORMAL | GOING_AWAY => return None,
        1002 => " (protocol error)",
        1003 => " (unsupported data)",
        1005 => " (no status)",
        1006 => " (abnormal closure)",
        1007 => " (invalid payload data)",
        1008 => " (policy violation)",
        1009 => " (message too big)",
        1010 => " (mandatory extension missing)",
        1011 => " (internal server error)",
        _ => "",
    };
    let reason = if closed.reason.is_empty() { String::new() } else { format!(": {}", closed.reason) };
    Some(format!("websocket: close {}{meaning}{reason}", closed.code))
}
