//! A request of a script, from its first exchange with a server to the answer that the script gets: cookies,
//! redirects, authentication and content codings, without sockets and without the engine.

use super::digest::{Challenge, Login};
use super::fault::Fault;
use super::headers::Headers;
use crate::operations::{
    BodyWanted, HttpFault, HttpFaultKind, HttpReply, HttpRequest, HttpResponse, HttpTimings, Statuses, TlsFacts,
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
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Cow<'static, str>,
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
    /// Where they are kept, if not where all cookies of the user are.
    pub(crate) jar: Option<Rc<RefCell<Jar>>>,
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
    /// Its first exchange, where that depends on no cookies: the same one each time that this is asked for.
    pub(crate) first: OnceCell<Rc<HttpRequest>>,
}

/// A URL that a script has asked for, taken apart once.
#[derive(Debug)]
pub(crate) struct Target {
    /// As the script has it.
    pub(crate) written: Rc<str>,
    /// Whom it asks; a fault where it leads nowhere.
    pub(crate) url: Result<Rc<Url>, Fault>,
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
    asked: Rc<Asked>,
    /// That which the script asked for.
    url: Rc<Url>,
    jar: Rc<RefCell<Jar>>,
    /// What the first exchange said in `Cookie`.
    cookie: Option<String>,
    /// How long it may still take.
    left: Nanos,
    /// What the exchange is about, where that is another one than the script asked for.
    moved: Option<Box<Hop>>,
    /// How many redirects were followed.
    hops: u64,
}

/// What an exchange is about.
struct Hop {
    method: Cow<'static, str>,
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
pub(crate) struct Answer {
    pub(crate) asked: Rc<Asked>,
    /// What the first exchange said in `Cookie`.
    pub(crate) cookie: Option<String>,
    /// Where it was answered, if not where it was asked.
    pub(crate) moved_to: Option<String>,
    /// The last exchange; its body has no codings any more.
    pub(crate) response: Box<HttpResponse>,
    /// Why there is no reply.
    pub(crate) fault: Option<Box<Fault>>,
}

/// Where a response leads: to another exchange, to nothing more, or to nothing at all. In boxes, because most lead to
/// nothing more.
type Step = Result<Option<Box<Hop>>, Box<Fault>>;

/// What an exchange leads to.
pub(crate) enum Turn {
    /// Another exchange.
    Next(Fetch),
    /// The end.
    Over(Answer),
}

impl Answer {
    /// That to a request whose URL leads nowhere, of which `note` hears like of any other exchange.
    #[inline(never)]
    pub(crate) fn unsent(asked: Rc<Asked>, fault: Fault, now: Instant, note: impl FnOnce(&Exchange<'_>)) -> Answer {
        let timings = HttpTimings::default();
        note(&Exchange {
            method: &asked.method,
            url: &asked.target.written,
            name: asked.name.as_deref(),
            tags: &asked.tags,
            status: 0,
            fault: Some(&fault),
            tls: None,
            remote: None,
            timings,
            expected: asked.expected.as_ref().map(|expected| expected.contain(0)),
        });
        let outcome = Err(HttpFault { kind: HttpFaultKind::Other, detail: fault.detail.clone() });
        let response = Box::new(HttpResponse { outcome, remote: None, tls: None, timings, done: now });
        Answer { asked, cookie: None, moved_to: None, response, fault: Some(Box::new(fault)) }
    }

    /// What was answered.
    pub(crate) fn reply(&self) -> Option<&HttpReply> {
        self.response.outcome.as_ref().ok().filter(|_| self.fault.is_none())
    }

    /// Where it came from.
    pub(crate) fn url(&self) -> &str {
        self.moved_to.as_deref().unwrap_or(&self.asked.target.written)
    }
}

impl Fetch {
    /// A request that has not begun: cookies are taken from the jar now, time counts from the first exchange. A fault
    /// where its URL leads nowhere.
    pub(crate) fn new(asked: Rc<Asked>, jar: &Rc<RefCell<Jar>>) -> Result<Fetch, Fault> {
        let url = asked.target.url.clone()?;
        let jar = Rc::clone(asked.jar.as_ref().unwrap_or(jar));
        let cookie = asked.cookie(&jar.borrow(), &url, asked.headers.get("Cookie"));
        Ok(Fetch { cookie, left: asked.timeout, moved: None, hops: 0, url, jar, asked })
    }

    /// The host to which the next exchange goes.
    pub(crate) fn authority(&self) -> String {
        self.url().authority()
    }

    fn method(&self) -> &Cow<'static, str> {
        self.moved.as_ref().map_or(&self.asked.method, |hop| &hop.method)
    }

    fn url(&self) -> &Rc<Url> {
        self.moved.as_ref().map_or(&self.url, |hop| &hop.url)
    }

    fn body(&self) -> &Rc<Vec<u8>> {
        self.moved.as_ref().map_or(&self.asked.body, |hop| &hop.body)
    }

    fn is_solved(&self) -> bool {
        self.moved.as_ref().is_some_and(|hop| hop.is_solved)
    }

    /// What the present exchange is about.
    fn hop(&self) -> Hop {
        let (headers, host) = match &self.moved {
            Some(hop) => (&hop.headers, &hop.host),
            None => (&self.asked.headers, &self.asked.host),
        };
        Hop {
            method: self.method().clone(),
            url: Rc::clone(self.url()),
            headers: Rc::clone(headers),
            host: host.clone(),
            body: Rc::clone(self.body()),
            is_solved: self.is_solved(),
        }
    }

    /// The next exchange.
    pub(crate) fn request(&self) -> Rc<HttpRequest> {
        if self.moved.is_none() && self.cookie.is_none() {
            return Rc::clone(self.asked.first.get_or_init(|| Rc::new(self.made_request())));
        }
        Rc::new(self.made_request())
    }

    fn made_request(&self) -> HttpRequest {
        let discarded = self.asked.response_type == ResponseType::None;
        HttpRequest {
            method: self.method().clone(),
            url: Rc::clone(self.url()),
            headers: self.headers(),
            body: Rc::clone(self.body()),
            timeout: self.left,
            body_wanted: if discarded { BodyWanted::Discarded } else { BodyWanted::Kept },
            name: self.name(),
            expected: self.asked.expected.clone(),
        }
    }

    fn name(&self) -> Rc<str> {
        match (&self.asked.name, self.shown_url()) {
            (Some(name), _) => name.as_str().into(),
            (None, Cow::Borrowed(_)) => Rc::clone(&self.asked.target.written),
            (None, Cow::Owned(url)) => url.into(),
        }
    }

    /// The headers of the next exchange, as lines.
    fn headers(&self) -> String {
        let Hop { method, url, headers, host, body, .. } = self.hop();
        let mut headers = Headers::clone(&headers);
        headers.set("Host", host.unwrap_or_else(|| url.authority()));
        let is_basic = self.asked.login == LoginKind::Basic && headers.get("Authorization").is_none();
        if let Some(userinfo) = url.userinfo().filter(|_| is_basic) {
            let (user, password) = login(userinfo);
            headers.set("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
        }
        if !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&&*method) {
            headers.set("Content-Length", body.len().to_string());
        }
        let cookie =
            if self.hops == 0 { self.cookie.clone() } else { self.asked.cookie(&self.jar.borrow(), &url, None) };
        if let Some(cookie) = cookie {
            headers.set("Cookie", cookie);
        }
        headers.into_wire().iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
    }

    /// The URL of the exchange, without password: as the script wrote it, or where it was sent on to.
    fn shown_url(&self) -> Cow<'_, str> {
        let written = Cow::Borrowed(&*self.asked.target.written);
        let text = if self.hops == 0 { written } else { self.url().to_string().into() };
        match self.url().userinfo() {
            Some(userinfo) => concealed(&text, userinfo.contains(':')).into(),
            None => text,
        }
    }

    /// Takes what an exchange came to, which `note` hears about.
    pub(crate) fn take(mut self, mut response: Box<HttpResponse>, note: impl FnOnce(&Exchange<'_>)) -> Turn {
        let answered = response.outcome.as_ref().map_or(0, HttpReply::status);
        let step = self.step(&mut response);
        let fault = step.as_ref().err().map(|fault| &**fault);
        let status = if fault.is_some() { 0 } else { answered };
        let HttpResponse { tls, remote, timings, .. } = *response;
        note(&Exchange {
            method: self.method(),
            url: &self.shown_url(),
            name: self.asked.name.as_deref(),
            tags: &self.asked.tags,
            status,
            fault,
            tls,
            remote,
            timings,
            expected: self.expected(status),
        });
        let fault = match step {
            Ok(Some(hop)) => {
                let spent = timings.blocked.0 + timings.duration().0;
                self.left = Nanos(self.left.0.saturating_sub(spent));
                self.hops += u64::from(!hop.is_solved);
                self.moved = Some(hop);
                return Turn::Next(self);
            }
            Ok(None) => None,
            Err(fault) => Some(fault),
        };
        let moved_to = match fault {
            Some(_) => None,
            None if self.is_solved() => Some(without_userinfo(self.url())),
            None => (self.hops > 0).then(|| self.url().to_string()),
        };
        Turn::Over(Answer { asked: self.asked, cookie: self.cookie, moved_to, response, fault })
    }

    /// Where a response leads, if it is not the last one: that is without its codings then.
    fn step(&self, response: &mut HttpResponse) -> Step {
        match &mut response.outcome {
            Ok(reply) if reply.head.is_special || reply.status() >= 300 => self.step_of(reply),
            Ok(_) => Ok(None),
            Err(fault) => Err(Box::new(Fault::from(fault.clone()))),
        }
    }

    /// Apart from the above, so that what it needs of the stack is not taken for each request.
    #[inline(never)]
    fn step_of(&self, reply: &mut HttpReply) -> Step {
        if let Some(hop) = self.solved(reply) {
            return Ok(Some(Box::new(hop)));
        }
        self.keep_cookies(reply);
        if let Some(hop) = self.redirected(reply)? {
            return Ok(Some(Box::new(hop)));
        }
        decode(reply)?;
        Ok(None)
    }

    fn keep_cookies(&self, reply: &HttpReply) {
        let (mut jar, from) = (self.jar.borrow_mut(), self.url().place());
        reply.values("Set-Cookie").for_each(|header| jar.receive(header, from, calendar()));
    }

    /// With a login by digest, the first exchange is there to be refused.
    fn expected(&self, status: u16) -> Option<bool> {
        let expected = self.asked.expected.as_ref()?;
        let is_first = self.asked.login == LoginKind::Digest && !self.is_solved();
        Some(if is_first { status == 401 } else { expected.contain(status) })
    }

    /// The same exchange with a login, where the server asks for it.
    fn solved(&self, reply: &HttpReply) -> Option<Hop> {
        if reply.status() != 401 || self.asked.login != LoginKind::Digest || self.is_solved() {
            return None;
        }
        let challenge = reply.values("WWW-Authenticate").find_map(Challenge::read)?;
        let (user, password) = login(self.url().userinfo().unwrap_or_default());
        let target = self.url().target();
        let login = Login { user: &user, password: &password, method: self.method(), target: &target };
        let mut hop = Hop { is_solved: true, ..self.hop() };
        Rc::make_mut(&mut hop.headers).set("Authorization", challenge.solved(login, &cnonce())?);
        Some(hop)
    }

    /// The exchange to which a redirect leads; None for other replies, and where it is not to be followed.
    fn redirected(&self, reply: &HttpReply) -> Result<Option<Hop>, Fault> {
        let Some(location) = location(reply) else { return Ok(None) };
        let url = self.url().resolve(location);
        let url = url.map_err(|why| Fault::other(format!("the server sent it on to what is no URL: {why}")))?;
        if !matches!(url.scheme(), Scheme::Http | Scheme::Https) {
            return Err(Fault::of_scheme(url.scheme().name()));
        }
        if self.hops >= self.asked.redirects {
            return Ok(None);
        }
        let mut hop = Hop { is_solved: false, ..self.hop() };
        if ![307, 308].contains(&reply.status()) {
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
        if self.is_solved() || !is_below(to.host(), self.url.host()) {
            headers.drop(&["Authorization", "Www-Authenticate", "Cookie2"]);
        }
        if self.asked.headers.get("Referer").is_some() {
            return;
        }
        headers.drop(&["Referer"]);
        let from = self.url();
        if to.scheme().is_secure() || !from.scheme().is_secure() {
            headers.set("Referer", without_userinfo(from));
        }
    }
}

impl Hop {
    /// What most redirects ask for (RFC 9110, section 15.4, and what clients have always done).
    fn drop_body(&mut self) {
        if self.method != "HEAD" {
            self.method = "GET".into();
        }
        self.body = Rc::default();
        let of_body = ["Content-Encoding", "Content-Language", "Content-Location", "Content-Type"];
        Rc::make_mut(&mut self.headers).drop(&of_body);
    }
}

impl Asked {
    /// What goes into `Cookie`: what the script wrote there, its own cookies, those of the jar.
    fn cookie(&self, jar: &Jar, url: &Url, written: Option<&str>) -> Option<String> {
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
}

/// Undoes the codings of a body that are known here.
fn decode(reply: &mut HttpReply) -> Result<(), Fault> {
    if reply.header("Content-Encoding").is_none() {
        return Ok(());
    }
    let names = reply.values("Content-Encoding").flat_map(|value| value.split(','));
    let codings: Vec<Coding> = names.filter_map(|name| Coding::named(name.trim())).collect();
    let body = coding::decode(mem::take(&mut reply.body), &codings, LARGEST_BODY);
    reply.body = body.map_err(|why| Fault::of_coding(&why))?;
    Ok(())
}

/// What time it is, for cookies.
pub(crate) fn calendar() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Where a reply sends on to.
fn location(reply: &HttpReply) -> Option<&str> {
    let found = [301, 302, 303, 307, 308].contains(&reply.status()).then(|| reply.values("Location").next());
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
