//! WebSocket: commands to sockets, and their events.

use super::{HttpFault, HttpFaultKind, HttpReply, TlsFacts};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_web::Url;
use std::net::SocketAddr;
use std::rc::Rc;

/// A socket to open. There is no timeout: the module cancels the operation.
#[derive(Debug)]
pub struct SocketRequest {
    /// Its URL, of the scheme `ws` or `wss`.
    pub url: Url,
    /// Headers of the opening request in order, `Host` included. The sender adds those of the handshake (`Upgrade`,
    /// `Connection`, `Sec-WebSocket-…`).
    pub headers: Vec<(String, String)>,
    /// The subprotocols that are offered.
    pub subprotocols: Vec<String>,
    /// True to offer `permessage-deflate` (RFC 7692), without context takeover.
    pub deflate: bool,
    /// The name under which the opening is recorded: the tag `name`, or the URL.
    pub name: Rc<str>,
}

/// A command to an open socket. It brings no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketCommand {
    /// Sends a message of text.
    Text(String),
    /// Sends a message of bytes.
    Binary(Vec<u8>),
    /// Sends a ping with up to 125 bytes.
    Ping(Vec<u8>),
    /// Begins to close: the socket ends with the peer's reply, or when it is cancelled.
    Close {
        /// The status code.
        code: u16,
        /// The reason, of up to 123 bytes.
        reason: String,
    },
}

/// An event of a socket. The first is `Opened` and the last `Closed`, or the only one is `Refused`.
#[derive(Clone, Debug)]
pub enum SocketEvent {
    /// The socket is open.
    Opened(SocketOpened),
    /// The socket was not opened. The last event.
    Refused(SocketRefused),
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping, which already has its pong.
    Ping,
    /// A pong, as a reply to a ping or unsolicited.
    Pong {
        /// The payload of the ping.
        payload: Vec<u8>,
        /// Its arrival.
        at: Instant,
    },
    /// The socket has ended. The last event.
    Closed(SocketClosed),
}

/// An opened socket.
#[derive(Clone, Debug)]
pub struct SocketOpened {
    /// The reply to the opening request; it has no body.
    pub reply: HttpReply,
    /// The address of the peer.
    pub remote: SocketAddr,
    /// How it is secured, if it is.
    pub tls: Option<TlsFacts>,
    /// The time since it was requested.
    pub took: Nanos,
}

/// Why a socket was not opened.
#[derive(Clone, Debug)]
pub struct SocketRefused {
    /// The reply to the opening request, if any, with up to a kilobyte of its body.
    pub reply: Option<HttpReply>,
    /// The reason.
    pub fault: HttpFault,
    /// The address of the peer, if a connection was made.
    pub remote: Option<SocketAddr>,
    /// The time since it was requested.
    pub took: Nanos,
}

/// How a socket ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketClosed {
    /// The status code of the peer; 1005 if it sent none, 1006 if the connection ended without a close.
    pub code: u16,
    /// The peer's reason.
    pub reason: String,
    /// The fault, if it did not end properly.
    pub fault: Option<String>,
}

impl SocketRefused {
    /// The refusal of a socket that took too long to open.
    #[must_use]
    pub fn late(took: Nanos) -> SocketRefused {
        let detail = format!("the socket did not open within {} s", took.seconds());
        let fault = HttpFault { kind: HttpFaultKind::DialTimeout, detail };
        SocketRefused { reply: None, fault, remote: None, took }
    }
}
