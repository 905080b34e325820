//! A request as a script makes it, before its first exchange.

use super::fault::Fault;
use super::headers::Headers;
use crate::operations::{HttpRequest, Statuses};
use plimsoll_javascript::HeldBytes;
use plimsoll_model::units::Nanos;
use plimsoll_web::{Jar, UnixSeconds, Url};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A request as a script makes it. All redirects that follow belong to it.
#[derive(Debug)]
pub(crate) struct ScriptRequest {
    pub(crate) method: Cow<'static, str>,
    pub(crate) target: Rc<Target>,
    /// The tag `name` of its samples, if the script sets it.
    pub(crate) name: Option<String>,
    /// All headers but those that follow from the rest: `Host`, `Content-Length`, and the jar's part of `Cookie`.
    pub(crate) headers: Rc<Headers>,
    /// The script's own `Host`.
    pub(crate) host: Option<String>,
    pub(crate) body: Rc<HeldBytes>,
    /// Cookies of this request alone.
    pub(crate) cookies: Vec<RequestCookie>,
    /// A jar in place of the user's.
    pub(crate) jar: Option<Rc<RefCell<Jar>>>,
    pub(crate) login: AuthScheme,
    /// The timeout of all its exchanges together.
    pub(crate) timeout: Nanos,
    /// The most redirects that are followed.
    pub(crate) redirects: u64,
    pub(crate) response_type: ResponseType,
    pub(crate) expected: Option<Rc<Statuses>>,
    pub(crate) tags: Vec<(String, String)>,
    /// True if a request without a reply throws.
    pub(crate) throws: bool,
    /// Its first exchange, if no cookie is part of it: built once, and sent each time that the script makes this request.
    pub(crate) first_exchange: OnceCell<Rc<HttpRequest>>,
}

/// A URL that a script wrote, parsed once.
#[derive(Debug)]
pub(crate) struct Target {
    /// The script's text.
    pub(crate) written: Rc<str>,
    /// The URL, or why it leads nowhere.
    pub(crate) url: Result<Rc<Url>, Fault>,
}

/// A cookie of a single request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestCookie {
    pub(crate) name: String,
    pub(crate) value: String,
    /// True if it replaces a cookie of that name from the jar.
    pub(crate) replaces: bool,
}

/// How the user and password of a URL are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthScheme {
    Basic,
    Digest,
}

/// The form in which a script gets a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseType {
    Text,
    Binary,
    None,
}

impl ScriptRequest {
    /// The header `Cookie`: the script's own, then the cookies of the request, then those of the jar.
    pub(super) fn cookie(&self, jar: &Jar, url: &Url, written: Option<&str>) -> Option<String> {
        if jar.is_empty() && self.cookies.is_empty() {
            return written.map(str::to_owned);
        }
        let own = self.cookies.iter().map(|cookie| (cookie.name.as_str(), cookie.value.as_str()));
        let replaced = |name: &str| self.cookies.iter().any(|cookie| cookie.replaces && cookie.name == name);
        let kept = jar.cookies(url.place(), unix_time()).into_iter().filter(|(name, _)| !replaced(name));
        let pairs =
            own.chain(kept).map(|(name, value)| format!("{}={}", name.replace(['\r', '\n'], "-"), cookie_value(value)));
        let all: Vec<String> = written.map(str::to_owned).into_iter().chain(pairs).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The time of day, for cookies.
pub(crate) fn unix_time() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// A value as Go, which k6 is written in, puts it into `Cookie`: RFC 6265, section 4.1.1.
fn cookie_value(value: &str) -> String {
    let kept: String = value.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | ';' | '\\')).collect();
    if kept.contains([' ', ',']) { format!("\"{kept}\"") } else { kept }
}
