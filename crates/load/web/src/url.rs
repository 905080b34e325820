//! URLs of HTTP and WebSocket, and the resolution of references.

mod reference;
#[cfg(test)]
mod tests;

pub use reference::Parts;

use crate::percent;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An absolute URL of a request. All its parts may be sent as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    scheme: Scheme,
    userinfo: Option<String>,
    host: String,
    port: u16,
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

/// The parts of a URL that decide about cookies (RFC 6265).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// True if nobody can listen on the way: over TLS, or on this machine.
    pub secure: bool,
    /// The host in lower case, IPv6 addresses in brackets.
    pub host: &'a str,
    /// The path, without a query.
    pub path: &'a str,
}

/// Why a text is no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a URL such as `https://example.com/path`, found `{text}`: {why}")]
pub struct UrlFault {
    /// The text, cut where it is long.
    pub text: String,
    /// The reason.
    pub why: String,
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Http, Scheme::Https, Scheme::Ws, Scheme::Wss];

    /// Its text before the colon.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
        }
    }

    /// True for TLS.
    #[must_use]
    pub fn is_secure(self) -> bool {
        matches!(self, Scheme::Https | Scheme::Wss)
    }

    /// The port of URLs without one.
    #[must_use]
    pub fn default_port(self) -> u16 {
        if self.is_secure() { 443 } else { 80 }
    }
}

impl Url {
    /// Parses an absolute URL. Ignores whitespace around it. Characters that are not allowed in a URL
    /// but often occur, such as a space or an umlaut in a path, are percent-encoded.
    pub fn parse(text: &str) -> Result<Url, UrlFault> {
        let text = trimmed(text);
        Url::from_parts(&Parts::split(text)).map_err(|why| UrlFault { text: shortened(text), why })
    }

    /// Resolves a reference against this URL (RFC 3986, section 5.2). A reference without a fragment
    /// results in none, as in the RFC.
    pub fn resolve(&self, reference: &str) -> Result<Url, UrlFault> {
        let base = self.to_string();
        Url::parse(&Parts::split(trimmed(reference)).resolved(&Parts::split(&base)))
    }

    fn from_parts(parts: &Parts<'_>) -> Result<Url, String> {
        let found = parts.scheme.ok_or("it names no scheme")?;
        let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(found));
        let scheme = scheme.ok_or_else(|| format!("`{found}` is none of `http`, `https`, `ws`, `wss`"))?;
        let authority = parts.authority.ok_or_else(|| format!("`//` and a host must follow `{found}:`"))?;
        let (userinfo, address) = match authority.rsplit_once('@') {
            Some((userinfo, address)) => (Some(percent::repaired(userinfo)?), address),
            None => (None, authority),
        };
        let (host, port) = host_and_port(address)?;
        let port = port.unwrap_or(scheme.default_port());
        let path = if parts.path.is_empty() { "/".to_owned() } else { percent::repaired(parts.path)? };
        let query = parts.query.map(percent::repaired).transpose()?;
        let fragment = parts.fragment.map(percent::repaired).transpose()?;
        Ok(Url { scheme, userinfo, host, port, path, query, fragment })
    }

    /// Its scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The text before `@`, percent-encoded: a user, or a user, a colon and a password.
    #[must_use]
    pub fn userinfo(&self) -> Option<&str> {
        self.userinfo.as_deref()
    }

    /// The host in lower case, IPv6 addresses in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, which may follow from the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, which begins with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text behind `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The text behind `#`, which is not sent.
    #[must_use]
    pub fn fragment(&self) -> Option<&str> {
        self.fragment.as_deref()
    }

    /// Path and query, as in the request line.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Host and port, as in the header `Host`: without the default port.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// True if scheme, host and port are equal
    /// (RFC 6454, section 5).
    #[must_use]
    pub fn is_same_origin(&self, other: &Url) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// The parts that decide about cookies. On this machine a plain connection is as secure as TLS, as in
    /// browsers (Secure Contexts, section 3.1).
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        let secure = self.scheme.is_secure() || is_this_machine(&self.host);
        Place { secure, host: &self.host, path: &self.path }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.name())?;
        if let Some(userinfo) = &self.userinfo {
            write!(f, "{userinfo}@")?;
        }
        write!(f, "{}{}", self.authority(), self.target())?;
        self.fragment.iter().try_for_each(|fragment| write!(f, "#{fragment}"))
    }
}

fn is_this_machine(host: &str) -> bool {
    let is_name = host == "localhost" || host.ends_with(".localhost");
    is_name || host == "[::1]" || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace())
}

/// The beginning of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn host_and_port(address: &str) -> Result<(String, Option<u16>), String> {
    // The colons inside of brackets belong to an IPv6 address.
    let behind_host = address.rfind(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match address[behind_host..].find(':') {
        Some(colon) => (&address[..behind_host + colon], &address[behind_host + colon + 1..]),
        None => (address, ""),
    };
    check_host(host)?;
    // RFC 3986, section 3.2.3: a colon without a port is as good as none.
    let port = match port {
        "" => None,
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| format!("the port `{digits}` is above 65535"))?)
        }
        other => return Err(format!("the port `{other}` is no number")),
    };
    Ok((host.to_ascii_lowercase(), port))
}

fn check_host(host: &str) -> Result<(), String> {
    if host.is_empty() {
        return Err("it names no host".to_owned());
    }
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
        return address.map(|_| ()).ok_or_else(|| format!("`{host}` is no IPv6 address in brackets"));
    }
    let strange = host.chars().find(|c| !(c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(*c)));
    match strange {
        None => Ok(()),
        Some(c) if c.is_ascii() => Err(format!("the host `{host}` has the character {c:?}")),
        Some(_) => Err(format!("the host `{host}` is not in ASCII: write its name as `xn--…`")),
    }
}
