//! A request of a script, from its first exchange with a server to the last: cookies, redirects, authentication and
//! content codings. It touches neither a socket nor the JavaScript engine: whoever has those sends the exchanges.

pub(crate) mod cache;
mod digest;
pub(crate) mod fault;
pub(crate) mod headers;
pub(crate) mod request;

use crate::hex::hex;
use crate::operations::{
    BodyWanted, HttpFault, HttpFaultKind, HttpReply, HttpRequest, HttpResponse, HttpTimings, TlsFacts,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use digest::{Challenge, Login};
use fault::Fault;
use headers::Headers;
use percent_encoding::percent_decode_str;
use plimsoll_javascript::HeldBytes;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::{Coding, Jar, Scheme, Url, coding};
use request::{AuthScheme, ResponseType, ScriptRequest, unix_time};
use std::borrow::Cow;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// The most bytes that a decoded body may have: as many as the script of a user may hold by default.
const LARGEST_BODY: usize = 64 << 20;

/// A request under way.
pub(crate) struct Fetch {
    request: Rc<ScriptRequest>,
    /// The URL of the first exchange.
    url: Rc<Url>,
    jar: Rc<RefCell<Jar>>,
    /// The header `Cookie` of the first exchange.
    cookie: Option<String>,
    /// The time that is left of its timeout.
    left: Nanos,
    /// The present exchange, where a redirect or a login made it another one than the script's.
    moved: Option<Box<Hop>>,
    /// The number of redirects that were followed.
    hops: u64,
}

/// An exchange that follows from the reply to another one.
struct Hop {
    method: Cow<'static, str>,
    url: Rc<Url>,
    headers: Rc<Headers>,
    host: Option<String>,
    body: Rc<HeldBytes>,
    /// True if it answers the challenge of a login.
    has_login: bool,
}

/// One finished exchange, for samples.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a str,
    /// User and password are concealed.
    pub(crate) url: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) tags: &'a [(String, String)],
    /// 0 without a reply.
    pub(crate) status: u16,
    pub(crate) fault: Option<&'a Fault>,
    pub(crate) tls: Option<TlsFacts>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) timings: HttpTimings,
    /// True if the script expects such a status; none if it expects nothing.
    pub(crate) expected: Option<bool>,
}

/// The result of a request.
pub(crate) struct FetchResult {
    pub(crate) request: Rc<ScriptRequest>,
    /// The header `Cookie` of the first exchange.
    pub(crate) cookie: Option<String>,
    /// The URL of the last exchange, where that is another one than the script's.
    pub(crate) moved_to: Option<String>,
    /// The last exchange, with its body decoded.
    pub(crate) response: Box<HttpResponse>,
    /// The reason if there is no reply.
    pub(crate) fault: Option<Box<Fault>>,
}

/// The next exchange after a response: none after the last one, a fault where the request fails. Boxed, because most
/// responses are the last one.
type Step = Result<Option<Box<Hop>>, Box<Fault>>;

/// The state of a request after an exchange.
pub(crate) enum Progress {
    /// Another exchange follows.
    Exchange(Fetch),
    /// That was the last exchange.
    Done(FetchResult),
}

impl FetchResult {
    /// The result of a request whose URL leads nowhere. `note` is called as for any other exchange.
    #[inline(never)]
    pub(crate) fn unsent(
        request: Rc<ScriptRequest>,
        fault: Fault,
        now: Instant,
        note: impl FnOnce(&Exchange<'_>),
    ) -> FetchResult {
        let timings = HttpTimings::default();
        note(&Exchange {
            method: &request.method,
            url: &request.target.written,
            name: request.name.as_deref(),
            tags: &request.tags,
            status: 0,
            fault: Some(&fault),
            tls: None,
            remote: None,
            timings,
            expected: request.expected.as_ref().map(|expected| expected.contain(0)),
        });
        let outcome = Err(HttpFault { kind: HttpFaultKind::Other, detail: fault.detail.clone() });
        let response = Box::new(HttpResponse { outcome, remote: None, tls: None, timings, done: now });
        FetchResult { request, cookie: None, moved_to: None, response, fault: Some(Box::new(fault)) }
    }

    /// The last reply; none after a fault.
    pub(crate) fn reply(&self) -> Option<&HttpReply> {
        self.response.outcome.as_ref().ok().filter(|_| self.fault.is_none())
    }

    /// The URL of the last exchange.
    pub(crate) fn url(&self) -> &str {
        self.moved_to.as_deref().unwrap_or(&self.request.target.written)
    }
}

impl Fetch {
    /// A request before its first exchange. Takes cookies from the jar now; its timeout counts from the first exchange.
    /// A fault if its URL leads nowhere.
    pub(crate) fn new(request: Rc<ScriptRequest>, jar: &Rc<RefCell<Jar>>) -> Result<Fetch, Fault> {
        let url = request.target.url.clone()?;
        let jar = Rc::clone(request.jar.as_ref().unwrap_or(jar));
        let cookie = request.cookie(&jar.borrow(), &url, request.headers.get("Cookie"));
        Ok(Fetch { cookie, left: request.timeout, moved: None, hops: 0, url, jar, request })
    }

    /// Host and port of the next exchange.
    pub(crate) fn authority(&self) -> String {
        self.url().authority()
    }

    fn method(&self) -> &Cow<'static, str> {
        self.moved.as_ref().map_or(&self.request.method, |hop| &hop.method)
    }

    fn url(&self) -> &Rc<Url> {
        self.moved.as_ref().map_or(&self.url, |hop| &hop.url)
    }

    fn body(&self) -> &Rc<HeldBytes> {
        self.moved.as_ref().map_or(&self.request.body, |hop| &hop.body)
    }

    fn has_login(&self) -> bool {
        self.moved.as_ref().is_some_and(|hop| hop.has_login)
    }

    /// The present exchange.
    fn hop(&self) -> Hop {
        let (headers, host) = match &self.moved {
            Some(hop) => (&hop.headers, &hop.host),
            None => (&self.request.headers, &self.request.host),
        };
        Hop {
            method: self.method().clone(),
            url: Rc::clone(self.url()),
            headers: Rc::clone(headers),
            host: host.clone(),
            body: Rc::clone(self.body()),
            has_login: self.has_login(),
        }
    }

    /// The next exchange, to be sent.
    pub(crate) fn next_exchange(&self) -> Rc<HttpRequest> {
        if self.moved.is_none() && self.cookie.is_none() {
            return Rc::clone(self.request.first_exchange.get_or_init(|| Rc::new(self.build_exchange())));
        }
        Rc::new(self.build_exchange())
    }

    fn build_exchange(&self) -> HttpRequest {
        let discarded = self.request.response_type == ResponseType::None;
        HttpRequest {
            method: self.method().clone(),
            url: Rc::clone(self.url()),
            headers: self.headers(),
            body: Rc::clone(self.body()),
            timeout: self.left,
            body_wanted: if discarded { BodyWanted::Discarded } else { BodyWanted::Kept },
            name: self.name(),
            expected: self.request.expected.clone(),
            follows: self.moved.is_some(),
        }
    }

    fn name(&self) -> Rc<str> {
        match (&self.request.name, self.shown_url()) {
            (Some(name), _) => name.as_str().into(),
            (None, Cow::Borrowed(_)) => Rc::clone(&self.request.target.written),
            (None, Cow::Owned(url)) => url.into(),
        }
    }

    /// The headers of the next exchange, as lines.
    fn headers(&self) -> String {
        let Hop { method, url, headers, host, body, .. } = self.hop();
        let mut headers = Headers::clone(&headers);
        headers.set("Host", host.unwrap_or_else(|| url.authority()));
        let is_basic = self.request.login == AuthScheme::Basic && headers.get("Authorization").is_none();
        if let Some(userinfo) = url.userinfo().filter(|_| is_basic) {
            let (user, password) = login(userinfo);
            headers.set("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
        }
        if !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&&*method) {
            headers.set("Content-Length", body.len().to_string());
        }
        let cookie =
            if self.hops == 0 { self.cookie.clone() } else { self.request.cookie(&self.jar.borrow(), &url, None) };
        if let Some(cookie) = cookie {
            headers.set("Cookie", cookie);
        }
        headers.into_wire().iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
    }

    /// The URL of the present exchange as samples show it: as the script wrote it, or that of the redirect, with user and
    /// password concealed.
    fn shown_url(&self) -> Cow<'_, str> {
        let written = Cow::Borrowed(&*self.request.target.written);
        let text = if self.hops == 0 { written } else { self.url().to_string().into() };
        match self.url().userinfo() {
            Some(userinfo) => concealed(&text, userinfo.contains(':')).into(),
            None => text,
        }
    }

    /// Takes the outcome of the present exchange. Calls `note` with it.
    pub(crate) fn receive(mut self, mut response: Box<HttpResponse>, note: impl FnOnce(&Exchange<'_>)) -> Progress {
        let answered = response.outcome.as_ref().map_or(0, HttpReply::status);
        let step = self.step(&mut response);
        let fault = step.as_ref().err().map(|fault| &**fault);
        let status = if fault.is_some() { 0 } else { answered };
        let HttpResponse { tls, remote, timings, .. } = *response;
        note(&Exchange {
            method: self.method(),
            url: &self.shown_url(),
            name: self.request.name.as_deref(),
            tags: &self.request.tags,
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
                self.hops += u64::from(!hop.has_login);
                self.moved = Some(hop);
                return Progress::Exchange(self);
            }
            Ok(None) => None,
            Err(fault) => Some(fault),
        };
        let moved_to = match fault {
            Some(_) => None,
            None if self.has_login() => Some(without_userinfo(self.url())),
            None => (self.hops > 0).then(|| self.url().to_string()),
        };
        Progress::Done(FetchResult { request: self.request, cookie: self.cookie, moved_to, response, fault })
    }

    /// The exchange that follows a response. Decodes the body of the last one.
    fn step(&self, response: &mut HttpResponse) -> Step {
        match &mut response.outcome {
            Ok(reply) if reply.head.is_special || reply.status() >= 300 => self.step_of(reply),
            Ok(_) => Ok(None),
            Err(fault) => Err(Box::new(Fault::from(fault.clone()))),
        }
    }

    /// A function of its own, because plain replies do not need its stack.
    #[inline(never)]
    fn step_of(&self, reply: &mut HttpReply) -> Step {
        if let Some(hop) = self.with_login(reply) {
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
        reply.values("Set-Cookie").for_each(|header| jar.receive(header, from, unix_time()));
    }

    /// True if the script expects this status. With a digest login, the first exchange expects to be refused.
    fn expected(&self, status: u16) -> Option<bool> {
        let expected = self.request.expected.as_ref()?;
        let is_first = self.request.login == AuthScheme::Digest && !self.has_login();
        Some(if is_first { status == 401 } else { expected.contain(status) })
    }

    /// The same exchange with a digest login, if the server asks for one.
    fn with_login(&self, reply: &HttpReply) -> Option<Hop> {
        if reply.status() != 401 || self.request.login != AuthScheme::Digest || self.has_login() {
            return None;
        }
        let challenge = reply.values("WWW-Authenticate").find_map(Challenge::read)?;
        let (user, password) = login(self.url().userinfo().unwrap_or_default());
        let target = self.url().target();
        let login = Login { user: &user, password: &password, method: self.method(), target: &target };
        let mut hop = Hop { has_login: true, ..self.hop() };
        Rc::make_mut(&mut hop.headers).set("Authorization", challenge.response(login, &cnonce())?);
        Some(hop)
    }

    /// The exchange to which a redirect leads. None for other replies, and after the most redirects that may be followed.
    fn redirected(&self, reply: &HttpReply) -> Result<Option<Hop>, Fault> {
        let Some(location) = location(reply) else { return Ok(None) };
        // It may lead to an app, or anywhere else that the script looks at itself.
        if self.hops >= self.request.redirects {
            return Ok(None);
        }
        let url = self.url().resolve(location);
        let url = url.map_err(|why| Fault::other(format!("the server sent it on to what is no URL: {why}")))?;
        if !matches!(url.scheme(), Scheme::Http | Scheme::Https) {
            return Err(Fault::of_scheme(url.scheme().name()));
        }
        let mut hop = Hop { has_login: false, ..self.hop() };
        if ![307, 308].contains(&reply.status()) {
            hop.drop_body();
        }
        self.adapt_headers(&mut hop.headers, &url);
        // A `Host` of the script's own is kept only by a redirect to a path.
        hop.host = hop.host.filter(|_| !location.contains("://"));
        hop.url = Rc::new(url);
        Ok(Some(hop))
    }

    /// Changes headers for a redirect to another URL.
    fn adapt_headers(&self, headers: &mut Rc<Headers>, to: &Url) {
        let headers = Rc::make_mut(headers);
        headers.drop(&["Cookie"]);
        if self.has_login() || !is_below(to.host(), self.url.host()) {
            headers.drop(&["Authorization", "Www-Authenticate", "Cookie2"]);
        }
        if self.request.headers.get("Referer").is_some() {
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
    /// Makes it a GET without a body, as most redirects ask for (RFC 9110, section 15.4, and what clients always did).
    fn drop_body(&mut self) {
        if self.method != "HEAD" {
            self.method = "GET".into();
        }
        self.body = Rc::default();
        let of_body = ["Content-Encoding", "Content-Language", "Content-Location", "Content-Type"];
        Rc::make_mut(&mut self.headers).drop(&of_body);
    }
}

/// Undoes those codings of a body that are known here.
fn decode(reply: &mut HttpReply) -> Result<(), Fault> {
    if reply.header("Content-Encoding").is_none() {
        return Ok(());
    }
    let names = reply.values("Content-Encoding").flat_map(|value| value.split(','));
    let codings: Vec<Coding> = names.filter_map(|name| Coding::named(name.trim())).collect();
    let body = coding::decode(reply.body.take(), &codings, LARGEST_BODY);
    reply.body.replace(body.map_err(|why| Fault::of_coding(&why))?);
    Ok(())
}

/// The `Location` of a redirect.
fn location(reply: &HttpReply) -> Option<&str> {
    let found = [301, 302, 303, 307, 308].contains(&reply.status()).then(|| reply.values("Location").next());
    found.flatten().filter(|location| !location.is_empty())
}

/// True if a host is `other` or lies below it: it may then get a password that is meant for `other`.
fn is_below(host: &str, other: &str) -> bool {
    host == other || host.strip_suffix(other).is_some_and(|rest| rest.ends_with('.'))
}

/// User and password of a URL, decoded.
fn login(userinfo: &str) -> (String, String) {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    (decoded(user), decoded(password))
}

/// A URL with stars for user and password.
fn concealed(url: &str, has_password: bool) -> String {
    let Some((before, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    // A password may have `@` as it is, and so may a path.
    let Some(end) = authority.rfind('@') else { return url.to_owned() };
    let stars = if has_password { "****:****" } else { "****" };
    format!("{before}://{stars}{}", &rest[end..])
}

fn without_userinfo(url: &Url) -> String {
    let text = url.to_string();
    match url.userinfo() {
        Some(userinfo) => text.replacen(&format!("{userinfo}@"), "", 1),
        None => text,
    }
}

/// A random nonce of the client, for a digest login.
fn cnonce() -> String {
    let mut bytes = [0; 8];
    // Without random bytes it is no worse than a client that sends the same every time.
    let _ = getrandom::fill(&mut bytes);
    hex(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_concealed_up_to_the_last_at_sign_of_the_authority() {
        for (url, has_password, shown) in [
            ("http://bob:p@ss@h/?to=a@b", true, "http://****:****@h/?to=a@b"),
            ("http://bob@h?to=a@b", false, "http://****@h?to=a@b"),
            ("http://bob:pass@h", true, "http://****:****@h"),
            ("http://h/#a@b", false, "http://h/#a@b"),
        ] {
            assert_eq!(concealed(url, has_password), shown);
        }
    }
}
