//! What scripts for k6 ask of whoever runs them, and what they are answered: the seam between natives and sockets.
//!
//! An operation of HTTP is one exchange with one server. Redirects, cookies, authentication, content codings, and how
//! many requests of a batch go at once are the matter of the natives (`http`), which need no socket for them.

mod call;
mod socket;

pub use call::{GrpcCall, GrpcConnect, GrpcEnd, GrpcEvent, Metadata};
pub use socket::{SocketClosed, SocketCommand, SocketEvent, SocketOpened, SocketRefused, SocketRequest};

use plimsoll_model::units::Nanos;
use plimsoll_script::{OpId, Operations};
use plimsoll_web::Url;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// The operations of scripts for k6.
pub struct K6;

impl Operations for K6 {
    type Op = Op;
    type Event = Event;
}

/// What a script asks.
#[derive(Debug)]
pub enum Op {
    /// Answered once, with [`Event::Http`].
    Http(Box<HttpRequest>),
    /// Answered with [`Event::Socket`] until it is closed or refused.
    Socket(Box<SocketRequest>),
    /// What the socket of this operation is told. Not answered; nothing, where it has ended.
    TellSocket(OpId, SocketCommand),
    /// Answered once, with [`Event::Grpc`]. Its number names the connection from then on.
    GrpcConnect(Box<GrpcConnect>),
    /// Answered with [`Event::Grpc`] until the call has ended.
    GrpcCall(Box<GrpcCall>),
    /// A further message of a call. Not answered; nothing, where it has ended.
    GrpcSend(OpId, Vec<u8>),
    /// The last message of a call was sent. Not answered; nothing, where it has ended.
    GrpcEnd(OpId),
    /// The connection is not needed any more: calls that are open on it end. Not answered.
    GrpcClose(OpId),
}

/// What a script is answered.
#[derive(Debug)]
pub enum Event {
    /// To [`Op::Http`].
    Http(Box<HttpResponse>),
    /// To [`Op::Socket`].
    Socket(Box<SocketEvent>),
    /// To [`Op::GrpcConnect`] and [`Op::GrpcCall`].
    Grpc(Box<GrpcEvent>),
}

/// One request, to be sent as it stands here.
#[derive(Debug)]
pub struct HttpRequest {
    /// Any token: `GET`.
    pub method: String,
    /// Where it goes. Neither its userinfo nor its fragment is sent.
    pub url: Rc<Url>,
    /// All headers in the order in which they are sent, `Host` and `Content-Length` among them. Only `Connection` is
    /// left to the one who holds the connections.
    pub headers: Rc<Vec<(String, String)>>,
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
}

/// See [`HttpResponse::outcome`].
pub type HttpOutcome = Result<HttpReply, HttpFault>;

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpReply {
    /// `200`
    pub status: u16,
    /// What stood behind it: `OK`.
    pub reason: String,
    /// As they were sent, in their order; bytes that are no UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// As it was sent, content codings and all; empty where it was discarded.
    pub body: Vec<u8>,
}

impl HttpReply {
    /// The value of a header; where there are several, of the first.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
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
