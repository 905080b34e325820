//! What scripts for k6 ask of whoever runs them, and what they are answered: the seam between natives and sockets.
//!
//! An operation of HTTP is one exchange with one server. Redirects, cookies, authentication, content codings, and how
//! many requests of a batch go at once are the matter of the natives (`http`), which need no socket for them.

mod grpc;
mod http;
mod socket;

pub use grpc::{GrpcCall, GrpcConnect, GrpcEnd, GrpcEvent, Metadata};
pub use http::{
    BodyWanted, HttpFault, HttpFaultKind, HttpHead, HttpOutcome, HttpReply, HttpRequest, HttpResponse, HttpTimings,
    Statuses, TlsFacts,
};
pub use socket::{SocketClosed, SocketCommand, SocketEvent, SocketOpened, SocketRefused, SocketRequest};

use plimsoll_javascript::{OpId, Operations};
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
    Http(Rc<HttpRequest>),
    /// Answered with [`Event::Socket`] until it is closed or refused.
    Socket(Box<SocketRequest>),
    /// What the socket of this operation is told. Not answered; nothing, where it has ended.
    SocketSend(OpId, SocketCommand),
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
