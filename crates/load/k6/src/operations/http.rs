//! HTTP exchanges: a request and its response.

use plimsoll_javascript::HeldBytes;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::Url;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// One request, ready to be sent.
#[derive(Debug)]
pub struct HttpRequest {
    /// The method, any token: `GET`.
    pub method: Cow<'static, str>,
    /// Its URL. Neither userinfo nor fragment is sent.
    pub url: Rc<Url>,
    /// All headers as lines in the order in which they are sent, `Host` and `Content-Length` included. Only
    /// `Connection` is added by the owner of the connections.
    pub headers: String,
    /// The body; empty for none.
    pub body: Rc<HeldBytes>,
    /// The timeout, from now to the last byte of the reply.
    pub timeout: Nanos,
    /// Whether the body of the answer is wanted.
    pub body_wanted: BodyWanted,
    /// The name under which it is recorded: the tag `name`, or the URL.
    pub name: Rc<str>,
    /// The expected statuses; None if the script expects nothing.
    pub expected: Option<Rc<Statuses>>,
    /// True if it follows from the response to another exchange of the same request: a redirect, or a login.
    pub follows: bool,
}

/// Whether the body of a reply is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyWanted {
    /// It is returned.
    Kept,
    /// It is received and dropped.
    Discarded,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The reply, or why there is none.
    pub outcome: HttpOutcome,
    /// The address of the server, if a connection was made.
    pub remote: Option<SocketAddr>,
    /// How the connection is secured, if it is.
    pub tls: Option<TlsFacts>,
    /// The durations of its phases.
    pub timings: HttpTimings,
    /// Its end.
    pub done: Instant,
}

/// See [`HttpResponse::outcome`].
pub type HttpOutcome = Result<HttpReply, HttpFault>;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The head. Replies with equal heads may share it.
    pub head: Rc<HttpHead>,
    /// The body in its content codings; empty if it was discarded.
    pub body: HeldBytes,
}

/// The head of a reply as it was received: few scripts read all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// `200`
    pub status: u16,
    /// The status line and the header lines; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// True if it has headers on which the client acts: cookies or content codings.
    pub is_special: bool,
}

impl HttpHead {
    /// A head with these lines, whose headers have these names.
    pub fn new<'a>(status: u16, text: String, names: impl IntoIterator<Item = &'a str>) -> HttpHead {
        HttpHead { status, text, is_special: names.into_iter().any(is_special) }
    }
}

/// True if the client acts on headers of this name.
fn is_special(name: &str) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case("Set-Cookie"),
        16 => name.eq_ignore_ascii_case("Content-Encoding"),
        _ => false,
    }
}

impl HttpReply {
    /// A reply from a parsed head.
    #[must_use]
    pub fn new(status: u16, reason: &str, headers: &[(String, String)], body: Vec<u8>) -> HttpReply {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let names = headers.iter().map(|(name, _)| name.as_str());
        let head = HttpHead::new(status, format!("HTTP/1.1 {status} {reason}\r\n{lines}"), names);
        HttpReply { head: Rc::new(head), body: body.into() }
    }

    /// `200`
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The reason phrase: `OK`.
    #[must_use]
    pub fn reason(&self) -> &str {
        let line = self.head.text.lines().next().unwrap_or_default();
        line.splitn(3, ' ').nth(2).unwrap_or_default()
    }

    /// Its headers, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        fields(self.head.text.split_once('\n').map_or("", |(_, lines)| lines))
    }

    /// The values of all headers of this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers().filter(move |(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value of a header; the first if there are several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl HttpRequest {
    /// Its headers, in the order in which they are sent.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        fields(&self.headers)
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(header, _)| *header == name).map(|(_, value)| value)
    }
}

/// Names and values of lines such as `Name: value`.
fn fields(lines: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = lines.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name, value.trim_matches([' ', '\t'])))
}

/// The TLS parameters of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `tls1.3`, as k6's constants name it.
    pub version: &'static str,
    /// `TLS_AES_128_GCM_SHA256`.
    pub cipher_suite: &'static str,
}

/// The durations of the phases of a request. A reused connection neither connects nor shakes hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpTimings {
    /// Until a connection was free or could be opened: waiting for a connection, for the limit on requests a second, and
    /// for the DNS.
    pub blocked: Nanos,
    /// The DNS lookup.
    pub looking_up: Nanos,
    /// Connecting.
    pub connecting: Nanos,
    /// The handshake of TLS.
    pub tls_handshaking: Nanos,
    /// Writing the request.
    pub sending: Nanos,
    /// From the last byte of the request to the first of the reply.
    pub waiting: Nanos,
    /// From the first byte of the reply to the last.
    pub receiving: Nanos,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFault {
    /// The kind, as scripts distinguish it.
    pub kind: HttpFaultKind,
    /// The whole reason, as a fragment: `connection refused by 127.0.0.1:80`.
    pub detail: String,
}

/// The kind of a fault, as k6 numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFaultKind {
    /// Faults without a number: a malformed reply, a connection closed before the reply.
    Other,
    /// The request took too long.
    Timeout,
    /// The name of the host could not be looked up.
    Lookup,
    /// The host has no address.
    NoAddress,
    /// The address is not allowed.
    AddressNotAllowed,
    /// The host is not allowed.
    HostNotAllowed,
    /// An error of TCP.
    Tcp,
    /// The server closed the connection during a write.
    BrokenPipe,
    /// The connection could not be made.
    Dial,
    /// The connection was not made in time.
    DialTimeout,
    /// Nobody listens on the port.
    Refused,
    /// The server reset the connection.
    Reset,
    /// An error of TLS.
    Tls,
    /// The server does not speak TLS.
    NotTls,
    /// The certificate authority is unknown.
    UnknownAuthority,
    /// The certificate is for another host.
    WrongHost,
}

impl HttpFaultKind {
    /// `error_code` in scripts.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            HttpFaultKind::Other => 1000,
            HttpFaultKind::Timeout => 1050,
            HttpFaultKind::Lookup => 1100,
            HttpFaultKind::NoAddress => 1101,
            HttpFaultKind::AddressNotAllowed => 1110,
            HttpFaultKind::HostNotAllowed => 1111,
            HttpFaultKind::Tcp => 1200,
            HttpFaultKind::BrokenPipe => 1201,
            HttpFaultKind::Dial => 1210,
            HttpFaultKind::DialTimeout => 1211,
            HttpFaultKind::Refused => 1212,
            HttpFaultKind::Reset => 1220,
            HttpFaultKind::Tls => 1300,
            HttpFaultKind::NotTls => 1301,
            HttpFaultKind::UnknownAuthority => 1310,
            HttpFaultKind::WrongHost => 1311,
        }
    }
}

impl HttpTimings {
    /// `http_req_duration`: sending, waiting and receiving.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        Nanos(self.sending.0 + self.waiting.0 + self.receiving.0)
    }
}

/// Expected statuses, as ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(pub Vec<RangeInclusive<u16>>);

impl Statuses {
    /// True if a status is expected.
    #[must_use]
    pub fn contain(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

impl Default for Statuses {
    fn default() -> Self {
        Statuses(vec![200..=399])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_reply_is_parsed_on_demand() {
        let reply = |head: &str| {
            let head = HttpHead::new(404, head.to_owned(), []);
            HttpReply { head: Rc::new(head), body: HeldBytes::default() }
        };
        let first = reply("HTTP/1.1 404 Gone fishing\r\nX: 1\r\nx:2\t\nEmpty:\r\nLocation:  http://a:1/b \r\n\r\n");
        let headers: Vec<_> = first.headers().collect();
        assert_eq!(headers, [("X", "1"), ("x", "2"), ("Empty", ""), ("Location", "http://a:1/b")]);
        assert_eq!((first.reason(), first.header("location")), ("Gone fishing", Some("http://a:1/b")));
        assert_eq!(first.values("X").collect::<Vec<_>>(), ["1", "2"]);
        for empty in ["", "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n"] {
            let reply = reply(empty);
            assert_eq!((reply.reason(), reply.headers().count()), ("", 0), "{empty:?}");
        }
    }

    #[test]
    fn heads_with_cookies_or_codings_are_marked() {
        let special = |name: &str| {
            let reply = HttpReply::new(200, "", &[(name.to_owned(), "x".to_owned())], Vec::new());
            reply.head.is_special
        };
        assert!(special("set-cookie") && special("CONTENT-ENCODING"));
        assert!(!special("Set-Cookies") && !special("Connection") && !special("Content-Language"));
    }
}
