//! Calls of gRPC: what scripts ask, and what comes of it. Messages are bytes here; what they mean is the matter of the
//! natives.

use super::HttpFault;
use plimsoll_grpc::status;
use plimsoll_javascript::OpId;
use plimsoll_model::units::Nanos;
use plimsoll_web::Url;
use std::net::SocketAddr;
use std::rc::Rc;

/// Names in lower case with their values, in the order in which they are sent; those of binary ones (`…-bin`) in
/// base64.
pub type Metadata = Vec<(String, String)>;

/// A connection to be made, over which calls can go then. It lives until it is closed or its user ends, whatever
/// iterations there are.
#[derive(Clone, Debug)]
pub struct GrpcConnect {
    /// Where it leads: `http` for a plain one, `https` for TLS. It has no path.
    pub url: Url,
    /// What calls name as their authority; None for host and port.
    pub authority: Option<String>,
    /// What `user-agent` says.
    pub user_agent: String,
    /// Authorities that may vouch for the server, in PEM; empty for those of the system.
    pub authorities: Vec<String>,
    /// The client's own certificate and its key, in PEM.
    pub identity: Option<(String, String)>,
    /// Bytes of the largest message that is taken.
    pub largest_message: usize,
}

/// A call to be made.
#[derive(Debug)]
pub struct GrpcCall {
    /// The operation that made the connection.
    pub connection: OpId,
    /// `/package.Service/Method`
    pub path: String,
    /// What the script gives along.
    pub metadata: Metadata,
    /// What the server is told of how long it may take. (Whoever asks gives it up.)
    pub timeout: Option<Nanos>,
    /// The only message; None where messages follow, with [`super::Op::GrpcSend`].
    pub message: Option<Vec<u8>>,
    /// What it is recorded under.
    pub name: Rc<str>,
}

/// What comes of a connection or of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcEvent {
    /// The connection can be used. The only answer.
    Connected(SocketAddr),
    /// There is none. The only answer.
    NotConnected(HttpFault),
    /// How the server's answer begins. A call that fails at once may have none.
    Headers(Metadata),
    /// A message.
    Message(Vec<u8>),
    /// The call is over, and no other event follows.
    Ended(GrpcEnd),
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcEnd {
    /// The status of gRPC: 0 is OK.
    pub status: u16,
    /// What the server says to it, or why there was no answer.
    pub message: String,
    /// What the server says behind its messages, without status and message.
    pub trailers: Metadata,
    /// From when it was asked.
    pub took: Nanos,
    /// Whether no server has begun with it, because its connection had ended before or was about to: it can be made
    /// again.
    pub unsent: bool,
}

impl GrpcEnd {
    /// That of a call which no server has begun with.
    #[must_use]
    pub fn unsent(why: &str) -> GrpcEnd {
        GrpcEnd { status: status::UNAVAILABLE, message: why.to_owned(), unsent: true, ..GrpcEnd::default() }
    }
}
