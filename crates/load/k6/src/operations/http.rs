//! Exchanges of HTTP: a request, and what was answered.

use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::Url;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// One request, to be sent as it stands here.
#[derive(Debug)]
pub struct HttpRequest {
    /// Any token: `GET`.
    pub method: Cow<'static, str>,
    /// Where it goes. Neither its userinfo nor its fragment is sent.
    pub url: Rc<Url>,
    /// All headers as lines in the order in which they are sent, `Host` and `Content-Length` among them. Only
    /// `Connection` is left to the one who holds the connections.
    pub headers: String,
    /// The body; empty for none.
    pub body: Rc<Vec<u8>>,
    /// How long it may take, from now to the last byte of the answer.
    pub timeout: Nanos,
    /// Whether the body of the answer is wanted.
    pub body_wanted: BodyWanted,
    /// What it is recorded under: its tag `name`, or else its URL.
    pub name: Rc<str>,
    /// Which answers are none of a failure; None where the script says that none is.
    pub expected: Option<Rc<Statuses>>,
}

/// What becomes of the body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyWanted {
    /// It is handed over.
    Kept,
    /// It is received and left aside.
    Discarded,
}

/// What became of a request.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// What was answered, or why nothing was.
    pub outcome: HttpOutcome,
    /// Whom it was asked of, where a connection was made.
    pub remote: Option<SocketAddr>,
    /// Where it went over TLS.
    pub tls: Option<TlsFacts>,
    /// What took how long.
    pub timings: HttpTimings,
    /// When it was over.
    pub done: Instant,
}

/// See [`HttpResponse::outcome`].
pub type HttpOutcome = Result<HttpReply, HttpFault>;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// What came before the body. Answers that began alike may have the same one.
    pub head: Rc<HttpHead>,
    /// As it was sent, content codings and all; empty where it was discarded.
    pub body: Vec<u8>,
}

/// What comes before a body, kept as it came: hardly any script looks at all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// `200`
    pub status: u16,
    /// The line with the status, and those of the headers; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Whether it has headers that the client acts upon by itself: cookies, or codings of the body.
    pub is_special: bool,
}

impl HttpHead {
    /// That with these lines, among them headers of these names.
    pub fn new<'a>(status: u16, text: String, names: impl IntoIterator<Item = &'a str>) -> HttpHead {
        HttpHead { status, text, is_special: names.into_iter().any(is_special) }
    }
}

/// Whether the client acts upon headers of this name by itself.
fn is_special(name: &str) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case("Set-Cookie"),
        16 => name.eq_ignore_ascii_case("Content-Encoding"),
        _ => false,
    }
}

impl HttpReply {
    /// One whose head was read already.
    #[must_use]
    pub fn new(status: u16, reason: &str, headers: &[(String, String)], body: Vec<u8>) -> HttpReply {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let names = headers.iter().map(|(name, _)| name.as_str());
        let head = HttpHead::new(status, format!("HTTP/1.1 {status} {reason}\r\n{lines}"), names);
        HttpReply { head: Rc::new(head), body }
    }

    /// `200`
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// What stood behind the status: `OK`.
    #[must_use]
    pub fn reason(&self) -> &str {
        let line = self.head.text.lines().next().unwrap_or_default();
        line.splitn(3, ' ').nth(2).unwrap_or_default()
    }

    /// Its headers, in the order in which they came.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        fields(self.head.text.split_once('\n').map_or("", |(_, lines)| lines))
    }

    /// The values of all headers of this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers().filter(move |(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value of a header; where there are several, of the first.
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

/// How a connection was secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `tls1.3`, as k6's constants name it.
    pub version: &'static str,
    /// `TLS_AES_128_GCM_SHA256`.
    pub cipher_suite: &'static str,
}

/// What took how long. A reused connection neither connects nor shakes hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpTimings {
    /// Until a connection was there to be used, or could begin to be made: waiting for one, for the limit on requests a
    /// second, for the name to be looked up.
    pub blocked: Nanos,
    /// Looking up the name of the host.
    pub looking_up: Nanos,
    /// Connecting.
    pub connecting: Nanos,
    /// The handshake of TLS.
    pub tls_handshaking: Nanos,
    /// Writing the request.
    pub sending: Nanos,
    /// From the last byte of the request to the first of the answer.
    pub waiting: Nanos,
    /// From the first byte of the answer to its last.
    pub receiving: Nanos,
}

/// Why nothing was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFault {
    /// What went wrong, of what scripts tell apart.
    pub kind: HttpFaultKind,
    /// The whole of it, as a fragment: `connection refused by 127.0.0.1:80`.
    pub detail: String,
}

/// What went wrong, as k6 numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFaultKind {
    /// Whatever has no number of its own: an answer that is none, a connection closed before it.
    Other,
    /// The request took too long.
    Timeout,
    /// The name of the host could not be looked up.
    Lookup,
    /// The host has no address.
    NoAddress,
    /// The address may not be asked.
    AddressNotAllowed,
    /// The host may not be asked.
    HostNotAllowed,
    /// An error of TCP.
    Tcp,
    /// The server closed what was written to.
    BrokenPipe,
    /// The connection could not be made.
    Dial,
    /// It was not made in time.
    DialTimeout,
    /// There is nobody at that port.
    Refused,
    /// The server reset the connection.
    Reset,
    /// An error of TLS.
    Tls,
    /// The certificate is from somebody unknown.
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
            HttpFaultKind::UnknownAuthority => 1310,
            HttpFaultKind::WrongHost => 1311,
        }
    }
}

impl HttpTimings {
    /// `http_req_duration`: how long the server was busy with it, connections apart.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        Nanos(self.sending.0 + self.waiting.0 + self.receiving.0)
    }
}

/// Statuses that are no failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(pub Vec<RangeInclusive<u16>>);

impl Statuses {
    /// Whether a status is one of them.
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
    fn the_head_of_a_reply_is_read_when_somebody_looks() {
        let reply = |head: &str| {
            let head = HttpHead::new(404, head.to_owned(), []);
            HttpReply { head: Rc::new(head), body: Vec::new() }
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
    fn what_the_client_acts_upon_is_marked() {
        let special = |name: &str| {
            let reply = HttpReply::new(200, "", &[(name.to_owned(), "x".to_owned())], Vec::new());
            reply.head.is_special
        };
        assert!(special("set-cookie") && special("CONTENT-ENCODING"));
        assert!(!special("Set-Cookies") && !special("Connection") && !special("Content-Language"));
    }
}
