//! Sockets of WebSocket: what scripts ask of them, and what comes of it.

use super::{HttpFault, HttpFaultKind, HttpReply, TlsFacts};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::Url;
use std::net::SocketAddr;
use std::rc::Rc;

/// A socket to be opened. Nothing limits how long that takes: whoever asks gives it up.
#[derive(Debug)]
pub struct SocketRequest {
    /// Of the scheme `ws` or `wss`.
    pub url: Url,
    /// Headers of the opening request in their order, `Host` among them. Those that make it one (`Upgrade`,
    /// `Connection`, `Sec-WebSocket-…`) are left to the one who sends it.
    pub headers: Vec<(String, String)>,
    /// What is to be spoken over it: one of these, or anything where there is none.
    pub subprotocols: Vec<String>,
    /// Whether `permessage-deflate` is offered (RFC 7692), without context takeover.
    pub deflate: bool,
    /// What the opening is recorded under: its tag `name`, or else its URL.
    pub name: Rc<str>,
}

/// What a script tells an open socket; none of it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketCommand {
    /// Sends a message of text.
    Text(String),
    /// Sends a message of bytes.
    Binary(Vec<u8>),
    /// Sends a ping with up to 125 bytes.
    Ping(Vec<u8>),
    /// Begins to close: the socket ends when the peer has answered, or when it is given up.
    Close {
        /// Why, as a number.
        code: u16,
        /// Why, in up to 123 bytes.
        reason: String,
    },
}

/// What comes of a socket: first that it is open, last that it is closed. Or only that it was refused.
#[derive(Clone, Debug)]
pub enum SocketEvent {
    /// Messages go both ways now.
    Opened(SocketOpened),
    /// There is none, and no other event follows.
    Refused(SocketRefused),
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping, which was answered.
    Ping,
    /// The answer to a ping, or a greeting that nobody asked for.
    Pong {
        /// What the ping said.
        payload: Vec<u8>,
        /// When it came.
        at: Instant,
    },
    /// The socket has ended, and no other event follows.
    Closed(SocketClosed),
}

/// How a socket was opened.
#[derive(Clone, Debug)]
pub struct SocketOpened {
    /// The answer to the opening request; it has no body.
    pub reply: HttpReply,
    /// Whom it leads to.
    pub remote: SocketAddr,
    /// Where it goes over TLS.
    pub tls: Option<TlsFacts>,
    /// From when it was asked for.
    pub took: Nanos,
}

/// Why a socket was not opened.
#[derive(Clone, Debug)]
pub struct SocketRefused {
    /// The answer to the opening request, where there was one; up to a kilobyte of its body.
    pub reply: Option<HttpReply>,
    /// In words.
    pub fault: HttpFault,
    /// Whom it was asked of, where a connection was made.
    pub remote: Option<SocketAddr>,
    /// From when it was asked for.
    pub took: Nanos,
}

/// How a socket ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketClosed {
    /// What the peer said; 1005 where it said nothing, 1006 where the connection ended without a word.
    pub code: u16,
    /// What it said in words.
    pub reason: String,
    /// What broke, where it did not end as it should.
    pub fault: Option<String>,
}

impl SocketRefused {
    /// That of a socket which took too long to open.
    #[must_use]
    pub fn late(took: Nanos) -> SocketRefused {
        let detail = format!("the socket did not open within {} s", took.seconds());
        let fault = HttpFault { kind: HttpFaultKind::DialTimeout, detail };
        SocketRefused { reply: None, fault, remote: None, took }
    }
}
