//! Operations: what scripts start, and the events that these bring. This is the seam between modules and sockets.
//!
//! An operation of HTTP is one exchange with one server. Redirects, cookies, authentication, content codings and batches
//! need no socket: `fetch` and the module `k6/http` do them.

mod grpc;
mod http;
mod socket;

pub use grpc::{GrpcCall, GrpcConnect, GrpcEnd, GrpcEvent, Metadata};
pub use http::{
    BodyWanted, HttpFault, HttpFaultKind, HttpHead, HttpOutcome, HttpReply, HttpRequest, HttpResponse, HttpTimings,
    Statuses, TlsFacts,
};
pub use socket::{SocketClosed, SocketCommand, SocketEvent, SocketOpened, SocketRefused, SocketRequest};

use plimsoll_javascript::{HeldMemory, OpId, Operations};
use std::rc::Rc;

/// The operations of scripts for k6.
pub struct K6;

impl Operations for K6 {
    type Op = Op;
    type Event = Event;
}

/// An operation of a script.
#[derive(Debug)]
pub enum Op {
    /// Send a request. One event: [`Event::Http`]. The body of its reply is held in this memory.
    Http(Rc<HttpRequest>, Rc<HeldMemory>),
    /// Open a socket. Events: [`Event::Socket`], until it is closed or refused. What waits on it is held in this memory.
    Socket(Box<SocketRequest>, Rc<HeldMemory>),
    /// Send a command to the socket of this operation. No event; ignored if the socket has ended.
    SocketSend(OpId, SocketCommand),
    /// Open a connection. One event: [`Event::Grpc`]. Its id names the connection from then on. What waits on it is held in
    /// this memory.
    GrpcConnect(Box<GrpcConnect>, Rc<HeldMemory>),
    /// Begin a call. Events: [`Event::Grpc`], until the call has ended.
    GrpcCall(Box<GrpcCall>),
    /// Send a further message of a call. No event; ignored if the call has ended.
    GrpcSend(OpId, Vec<u8>),
    /// End the messages of a call. No event; ignored if the call has ended.
    GrpcEnd(OpId),
    /// Close a connection: open calls on it end. No event.
    GrpcClose(OpId),
}

/// An event of an operation.
#[derive(Debug)]
pub enum Event {
    /// Of [`Op::Http`].
    Http(Box<HttpResponse>),
    /// Of [`Op::Socket`].
    Socket(Box<SocketEvent>),
    /// Of [`Op::GrpcConnect`] and [`Op::GrpcCall`].
    Grpc(Box<GrpcEvent>),
}
