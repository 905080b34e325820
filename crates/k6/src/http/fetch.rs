//! A request of a script, from its first exchange with a server to the answer that the script gets: cookies,
//! redirects, authentication and content codings, without sockets and without the engine.

use super::digest::{Challenge, Login};
use super::fault::Fault;
use super::headers::Headers;
use crate::operations::{
    BodyWanted, HttpOutcome, HttpReply, HttpRequest, HttpResponse, HttpTimings, Statuses, TlsFacts,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::{Coding, Jar, Scheme, UnixSeconds, Url, coding};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many bytes a body may have when its coding is undone: what a user may hold at all, unless it is told otherwise.
const LARGEST_BODY: usize = 64 << 20;

/// What a script asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: Rc<Target>,
    /// What its samples are named, where the script says so.
    pub(crate) name: Option<String>,
    /// All of them but those that follow from the rest: `Host`, `Content-Length`, and `Cookie` beside what the script
    /// wrote there.
    pub(crate) headers: Rc<Headers>,
    /// What `Host` is to say, if not the host.
    pub(crate) host: Option<String>,
    pub(crate) body: Rc<Vec<u8>>,
    /// Cookies beside those of the jar.
    pub(crate) cookies: Vec<OwnCookie>,
    pub(crate) jar: Rc<RefCell<Jar>>,
    pub(crate) login: LoginKind,
    /// How long all its exchanges may take.
    pub(crate) timeout: Nanos,
    /// How many redirects are followed.
    pub(crate) redirects: u64,
    pub(crate) response_type: ResponseType,
    pub(crate) expected: Option<Rc<Statuses>>,
    pub(crate) tags: Vec<(String, String)>,
    /// Whether it is an exception when nothing is answered.
    pub(crate) throws: bool,
    /// Whether its headers are those that every request has.
    pub(crate) is_plain: bool,
}

/// A URL that a script has asked for, taken apart once.
#[derive(Debug)]
pub(crate) struct Target {
    /// As the script has it.
    pub(crate) written: Rc<str>,
    pub(crate) url: Rc<Url>,
    /// The headers of a request that has none of its own.
    pub(crate) headers: OnceCell<Rc<Vec<(String, String)>>>,
}

/// A cookie of a single request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnCookie {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether it goes in place of one of that name in the jar.
    pub(crate) replaces: bool,
}

/// How a user and password in a URL are told to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginKind {
    Basic,
    Digest,
}

/// What the script gets of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseType {
    Text,
    Binary,
    None,
}

/// A request under way.
pub(crate) struct Fetch {
    asked: Box<Asked>,
    /// What the first exchange said in `Cookie`.
    cookie: Option<String>,
    /// By when all exchanges must be over; None before the first.
    deadline: Option<Instant>,
    hop: Hop,
    hops: u64,
}

/// What the next exchange is about.
#[derive(Clone)]
struct Hop {
    method: String,
    url: Rc<Url>,
    headers: Rc<Headers>,
    host: Option<String>,
    body: Rc<Vec<u8>>,
    /// Whether it answers a challenge.
    is_solved: bool,
}

/// What samples are made of: one exchange.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a str,
    /// Without password.
    pub(crate) url: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) tags: &'a [(String, String)],
    /// 0 where nothing was answered.
    pub(crate) status: u16,
    pub(crate) fault: Option<&'a Fault>,
    pub(crate) tls: Option<TlsFacts>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) timings: HttpTimings,
    /// Whether such an answer was expected, where the script has any expectation.
    pub(crate) expected: Option<bool>,
}

/// What a script gets.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) asked: Box<Asked>,
    /// What the first exchange said in `Cookie`.
    pub(crate) cookie: Option<String>,
    /// Where it was answered.
    pub(crate) url: String,
    /// With a body whose codings are undone.
    pub(crate) reply: Result<HttpReply, Fault>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) tls: Option<TlsFacts>,
    pub(crate) timings: HttpTimings,
}

/// What an exchange leads to.
pub(crate) enum Turn {
    /// Another exchange.
    Next(Box<Fetch>),
    /// The end.
    Over(Box<Answer>),
}

/// See [`Turn`], before samples were made of it.
enum Step {
    Next(Hop),
    Last(HttpReply),
}

impl Fetch {
    /// A request that has not begun: cookies are taken from the jar now, time counts from the first exchange.
    pub(crate) fn new(asked: Box<Asked>) -> Fetch {
        let hop = Hop {
            method: asked.method.clone(),
            url: Rc::clone(&asked.target.url),
            headers: Rc::clone(&asked.headers),
            host: asked.host.clone(),
            body: Rc::clone(&asked.body),
            is_solved: false,
        };
        let cookie = asked.cookie(&hop.url, asked.headers.get("Cookie"));
        Fetch { cookie, deadline: None, hop, hops: 0, asked }
    }

    /// The host to which the next exchange goes.
    pub(crate) fn authority(&self) -> String {
        self.hop.url.authority()
    }

    /// The next exchange.
    pub(crate) fn request(&mut self, now: Instant) -> HttpRequest {
        let deadline = *self.deadline.get_or_insert(now.after(self.asked.timeout));
        let discarded = self.asked.response_type == ResponseType::None;
        HttpRequest {
            method: self.hop.method.clone(),
            url: Rc::clone(&self.hop.url),
            headers: self.headers(),
            body: Rc::clone(&self.hop.body),
            timeout: deadline.since(now),
            body_wanted: if discarded { BodyWanted::Discarded } else { BodyWanted::Kept },
            name: self.name(),
            expected: self.asked.expected.clone(),
        }
    }

    fn name(&self) -> Rc<str> {
        match (&self.asked.name, self.url()) {
            (Some(name), _) => name.as_str().into(),
            (None, Cow::Borrowed(_)) => Rc::clone(&self.asked.target.written),
            (None, Cow::Owned(url)) => url.into(),
        }
    }

    /// The headers of the next exchange; the same ones again, where nothing is special about it.
    fn headers(&self) -> Rc<Vec<(String, String)>> {
        let has_length = !self.hop.body.is_empty() || ["POST", "PUT", "PATCH"].contains(&self.hop.method.as_str());
        let cookie = if self.hops == 0 { self.cookie.clone() } else { self.asked.cookie(&self.hop.url, None) };
        let is_usual = !has_length && cookie.is_none() && self.hop.url.userinfo().is_none();
        if is_usual && self.asked.is_plain && self.hops == 0 {
            return Rc::clone(self.asked.target.headers.get_or_init(|| Rc::new(self.own_headers().into_wire())));
        }
        let mut headers = self.own_headers();
        if has_length {
            headers.set("Content-Length", self.hop.body.len().to_string());
        }
        if let Some(cookie) = cookie {
            headers.set("Cookie", cookie);
        }
        Rc::new(headers.into_wire())
    }

    /// Those that do not depend on body and cookies.
    fn own_headers(&self) -> Headers {
        let Hop { url, headers, host, .. } = &self.hop;
        let mut headers = Headers::clone(headers);
        headers.set("Host", host.clone().unwrap_or_else(|| url.authority()));
        let is_basic = self.asked.login == LoginKind::Basic && headers.get("Authorization").is_none();
        if let Some(userinfo) = url.userinfo().filter(|_| is_basic) {
            let (user, password) = login(userinfo);
            headers.set("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
        }
        headers
    }

    /// The URL of the exchange, without password: as the script wrote it, or where it was sent on to.
    fn url(&self) -> Cow<'_, str> {
        let written = Cow::Borrowed(&*self.asked.target.written);
        let text = if self.hops == 0 { written } else { self.hop.url.to_string().into() };
        match self.hop.url.userinfo() {
            Some(userinfo) => concealed(&text, userinfo.contains(':')).into(),
            None => text,
        }
    }

    /// Takes what an exchange came to, which `note` hears about.
    pub(crate) fn take(mut self, response: HttpResponse, note: impl FnOnce(&Exchange<'_>)) -> Turn {
        let HttpResponse { outcome, remote, tls, timings } = response;
        let answered = outcome.as_ref().map_or(0, |reply| reply.status);
        let step = self.step(outcome);
        let fault = step.as_ref().err();
        let status = if fault.is_some() { 0 } else { answered };
        note(&Exchange {
            method: &self.hop.method,
            url: &self.url(),
            name: self.asked.name.as_deref(),
            tags: &self.asked.tags,
            status,
            fault,
            tls,
            remote,
            timings,
            expected: self.expected(status),
        });
        let reply = match step {
            Ok(Step::Next(hop)) => return Turn::Next(Box::new(self.moved(hop))),
            Ok(Step::Last(reply)) => Ok(reply),
            Err(fault) => Err(fault),
        };
        let url = match reply {
            Ok(_) if self.hop.is_solved => without_userinfo(&self.hop.url),
            Ok(_) if self.hops > 0 => self.hop.url.to_string(),
            _ => self.asked.target.written.to_string(),
        };
        Turn::Over(Box::new(Answer { asked: self.asked, cookie: self.cookie, url, reply, remote, tls, timings }))
    }

    fn moved(self, hop: Hop) -> Fetch {
        Fetch { hops: self.hops + u64::from(!hop.is_solved), hop, ..self }
    }

    /// Where a reply leads.
    fn step(&mut self, outcome: HttpOutcome) -> Result<Step, Fault> {
        let reply = outcome.map_err(Fault::from)?;
        if let Some(hop) = self.solved(&reply) {
            return Ok(Step::Next(hop));
        }
        self.asked.keep_cookies(&reply, &self.hop.url);
        if let Some(hop) = self.redirected(&reply)? {
            return Ok(Step::Next(hop));
        }
        self.asked.decoded(reply).map(Step::Last)
    }

    /// With a login by digest, the first exchange is there to be refused.
    fn expected(&self, status: u16) -> Option<bool> {
        let expected = self.asked.expected.as_ref()?;
        let is_first = self.asked.login == LoginKind::Digest && !self.hop.is_solved;
        Some(if is_first { status == 401 } else { expected.contain(status) })
    }

    /// The same exchange with a login, where the server asks for it.
    fn solved(&self, reply: &HttpReply) -> Option<Hop> {
        if reply.status != 401 || self.asked.login != LoginKind::Digest || self.hop.is_solved {
            return None;
        }
        let challenge = reply.values("WWW-Authenticate").find_map(Challenge::read)?;
        let (user, password) = login(self.hop.url.userinfo().unwrap_or_default());
        let target = self.hop.url.target();
        let login = Login { user: &user, password: &password, method: &self.hop.method, target: &target };
        let mut hop = Hop { is_solved: true, ..self.hop.clone() };
        Rc::make_mut(&mut hop.headers).set("Authorization", challenge.solved(login, &cnonce())?);
        Some(hop)
    }

    /// The exchange to which a redirect leads; None for other replies, and where it is not to be followed.
    fn redirected(&self, reply: &HttpReply) -> Result<Option<Hop>, Fault> {
        let Some(location) = location(reply) else { return Ok(None) };
        let url = self.hop.url.resolve(location);
        let url = url.map_err(|why| Fault::other(format!("the server sent it on to what is no URL: {why}")))?;
        if !matches!(url.scheme(), Scheme::Http | Scheme::Https) {
            return Err(Fault::of_scheme(url.scheme().name()));
        }
        if self.hops >= self.asked.redirects {
            return Ok(None);
        }
        let mut hop = Hop { is_solved: false, ..self.hop.clone() };
        if ![307, 308].contains(&reply.status) {
            hop.drop_body();
        }
        self.send_on(&mut hop.headers, &url);
        // Another name for the host goes on only within it.
        hop.host = hop.host.filter(|_| !location.contains("://"));
        hop.url = Rc::new(url);
        Ok(Some(hop))
    }

    /// The headers with which a redirect is followed.
    fn send_on(&self, headers: &mut Rc<Headers>, to: &Url) {
        let headers = Rc::make_mut(headers);
        headers.drop(&["Cookie"]);
        if self.hop.is_solved || !is_below(to.host(), self.asked.target.url.host()) {
            headers.drop(&["Authorization", "Www-Authenticate", "Cookie2"]);
        }
        if self.asked.headers.get("Referer").is_some() {
            return;
        }
        headers.drop(&["Referer"]);
        let from = &self.hop.url;
        if to.scheme().is_secure() || !from.scheme().is_secure() {
            headers.set("Referer", without_userinfo(from));
        }
    }
}

impl Hop {
    /// What most redirects ask for (RFC 9110, section 15.4, and what clients have always done).
    fn drop_body(&mut self) {
        if self.method != "HEAD" {
            "GET".clone_into(&mut self.method);
        }
        self.body = Rc::default();
        let of_body = ["Content-Encoding", "Content-Language", "Content-Location", "Content-Type"];
        Rc::make_mut(&mut self.headers).drop(&of_body);
    }
}

impl Asked {
    /// What goes into `Cookie`: what the script wrote there, its own cookies, those of the jar.
    fn cookie(&self, url: &Url, written: Option<&str>) -> Option<String> {
        let jar = self.jar.borrow();
        if jar.is_empty() && self.cookies.is_empty() {
            return written.map(str::to_owned);
        }
        let own = self.cookies.iter().map(|cookie| (cookie.name.as_str(), cookie.value.as_str()));
        let replaced = |name: &str| self.cookies.iter().any(|cookie| cookie.replaces && cookie.name == name);
        let kept = jar.cookies(url.place(), calendar()).into_iter().filter(|(name, _)| !replaced(name));
        let pairs =
            own.chain(kept).map(|(name, value)| format!("{}={}", name.replace(['\r', '\n'], "-"), cookie_value(value)));
        let all: Vec<String> = written.map(str::to_owned).into_iter().chain(pairs).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn keep_cookies(&self, reply: &HttpReply, from: &Url) {
        let mut jar = self.jar.borrow_mut();
        reply.values("Set-Cookie").for_each(|header| jar.receive(header, from.place(), calendar()));
    }

    /// A reply as the script gets it: without the codings of its body that are known here.
    fn decoded(&self, mut reply: HttpReply) -> Result<HttpReply, Fault> {
        if reply.values("Content-Encoding").next().is_none() {
            return Ok(reply);
        }
        let names = reply.values("Content-Encoding").flat_map(|value| value.split(','));
        let codings: Vec<Coding> = names.filter_map(|name| Coding::named(name.trim())).collect();
        let body = coding::decode(mem::take(&mut reply.body), &codings, LARGEST_BODY);
        reply.body = body.map_err(|why| Fault::of_coding(&why))?;
        Ok(reply)
    }
}

impl HttpReply {
    /// The values of all headers of this name.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = move |(header, _): &&(String, String)| header.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| value.as_str())
    }
}

/// What time it is, for cookies.
pub(crate) fn calendar() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Where a reply sends on to.
fn location(reply: &HttpReply) -> Option<&str> {
    let found = [301, 302, 303, 307, 308].contains(&reply.status).then(|| reply.values("Location").next());
    found.flatten().filter(|location| !location.is_empty())
}

/// Whether a host is another one or lies below it: who may be told a password meant for that.
fn is_below(host: &str, other: &str) -> bool {
    host == other || host.strip_suffix(other).is_some_and(|rest| rest.ends_with('.'))
}

/// User and password of a URL.
fn login(userinfo: &str) -> (String, String) {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    (decoded(user), decoded(password))
}

/// A value as Go, which k6 is written in, puts it into `Cookie`: RFC 6265, section 4.1.1.
fn cookie_value(value: &str) -> String {
    let kept: String = value.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | ';' | '\\')).collect();
    if kept.contains([' ', ',']) { format!("\"{kept}\"") } else { kept }
}

/// A URL with stars for user and password.
fn concealed(url: &str, has_password: bool) -> String {
    let (Some(begin), Some(end)) = (url.find("://").map(|at| at + 3), url.find('@')) else { return url.to_owned() };
    let stars = if has_password { "****:****" } else { "****" };
    format!("{}{stars}{}", &url[..begin], &url[end..])
}

fn without_userinfo(url: &Url) -> String {
    let text = url.to_string();
    match url.userinfo() {
        Some(userinfo) => text.replacen(&format!("{userinfo}@"), "", 1),
        None => text,
    }
}

/// The client's part of a login by digest.
fn cnonce() -> String {
    let mut bytes = [0; 8];
    // Without random bytes it is no worse than a client that sends the same every time.
    let _ = getrandom::fill(&mut bytes);
    crate::crypto::hex(&bytes)
}
