//! gRPC: connections and calls, and their events. Messages are bytes here; the module `k6/net/grpc` encodes them.

use super::HttpFault;
use plimsoll_grpc::status;
use plimsoll_javascript::OpId;
use plimsoll_model::units::Nanos;
use plimsoll_web::Url;
use std::net::SocketAddr;
use std::rc::Rc;

/// Names in lower case with their values, in the order in which they are sent; binary values (`…-bin`) in base64.
pub type Metadata = Vec<(String, String)>;

/// A connection to open, for calls. It lives until it is closed or its user ends, across iterations.
#[derive(Clone, Debug)]
pub struct GrpcConnect {
    /// Its URL without a path: `http` for a plain connection, `https` for TLS.
    pub url: Url,
    /// The authority of calls; None for host and port.
    pub authority: Option<String>,
    /// The header `user-agent`.
    pub user_agent: String,
    /// Certificate authorities of the server in PEM; empty for those of the system.
    pub authorities: Vec<String>,
    /// The client's own certificate and its key, in PEM.
    pub identity: Option<(String, String)>,
    /// The most bytes of a received message.
    pub largest_message: usize,
}

/// A call to begin.
#[derive(Debug)]
pub struct GrpcCall {
    /// The operation that opened the connection.
    pub connection: OpId,
    /// `/package.Service/Method`
    pub path: String,
    /// The metadata of the script.
    pub metadata: Metadata,
    /// The timeout that is sent to the server. (The module cancels the operation.)
    pub timeout: Option<Nanos>,
    /// The only message; None if messages follow with [`super::Op::GrpcSend`].
    pub message: Option<Vec<u8>>,
    /// The name under which it is recorded.
    pub name: Rc<str>,
}

/// An event of a connection or of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcEvent {
    /// The connection is open. Its only event.
    Connected(SocketAddr),
    /// The connection was not opened. Its only event.
    NotConnected(HttpFault),
    /// The metadata before the messages. A call that fails at once may have none.
    Headers(Metadata),
    /// A message.
    Message(Vec<u8>),
    /// The call has ended. Its last event.
    Ended(GrpcEnd),
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcEnd {
    /// The status of gRPC: 0 is OK.
    pub status: u16,
    /// The message of the server, or why there was no reply.
    pub message: String,
    /// The metadata after the messages, without status and message.
    pub trailers: Metadata,
    /// The time since the call began.
    pub took: Nanos,
    /// True if no server has processed the call, because its connection had ended or was ending: it can be repeated.
    pub unsent: bool,
}

impl GrpcEnd {
    /// The end of a call that no server has processed.
    #[must_use]
    pub fn unsent(why: &str) -> GrpcEnd {
        GrpcEnd { status: status::UNAVAILABLE, message: why.to_owned(), unsent: true, ..GrpcEnd::default() }
    }
}
