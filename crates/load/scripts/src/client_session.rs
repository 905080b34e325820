//! Sessions of a user that last longer than one exchange: sockets of WebSocket, connections of gRPC.

use super::exchange::{ConnectionFacts, Fault};
use super::grpc::Channel;
use super::websocket::WebSocket;
use plimsoll_javascript::{HeldMemory, OpId};
use plimsoll_k6::operations::{Event, GrpcEnd, GrpcEvent, Op, SocketCommand};
use plimsoll_model::record::Exchange;
use plimsoll_model::units::Instant;
use plimsoll_web::Url;
use std::rc::Rc;

/// A session as a state machine without a socket. It is made when its operation begins, and opened when its connection
/// is established.
pub(super) trait ClientSession {
    /// The connection is established, encryption included.
    fn open(&mut self, connected: &ConnectionFacts, io: &mut Io<'_>);

    /// True if an operation belongs to the session: the one that opened it, or a call that is open on it.
    fn knows(&self, id: OpId) -> bool;

    /// Handles an operation, numbered `id`, that belongs to the session ([`addressee`]).
    fn tell(&mut self, id: OpId, op: Op, io: &mut Io<'_>);

    /// Cancels an operation that belongs to the session.
    fn cancel(&mut self, id: OpId, io: &mut Io<'_>);

    /// Takes bytes that were received.
    fn receive(&mut self, input: &[u8], io: &mut Io<'_>);

    /// Ends what is under way, because the time of the user is up: what the session waits for has timed out, and streams
    /// are abandoned.
    fn cut_off(&mut self, io: &mut Io<'_>);

    /// Adds the name of each exchange that was sent and has not ended.
    fn under_way(&self, found: &mut Vec<Rc<str>>);

    /// Ends the session: its connection could not be made or broke, or, without a fault, the peer has ended its side.
    fn end(&mut self, fault: Option<&Fault>, io: &mut Io<'_>);

    /// True if it waits for the peer: to be opened, or for the end of a call that has sent all of its messages.
    fn is_waiting(&self) -> bool;

    /// Bytes that it keeps until the peer has room for them.
    fn unsent(&self) -> usize {
        0
    }

    /// Bytes of messages that have not arrived as a whole.
    fn unfinished(&self) -> usize;

    /// Moves all instants by `by` nanoseconds.
    fn shift(&mut self, by: i64);

    /// True if the session is over. The connection is closed when its output is sent.
    fn is_over(&self) -> bool;
}

/// The present instant, and the buffers for a session's output.
pub(super) struct Io<'a> {
    pub(super) now: Instant,
    /// Bytes to be sent.
    pub(super) out: &'a mut Vec<u8>,
    pub(super) outbox: &'a mut Outbox,
}

/// Events and records of sessions that are not passed on yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Events for scripts.
    pub(super) events: Vec<(OpId, Event)>,
    pub(super) records: Vec<Record>,
}

/// A step in the life of an exchange, by the name of the exchange.
#[derive(Debug)]
pub(super) enum Record {
    /// It was sent.
    Sent(Rc<str>),
    /// It ended.
    Ended(EndedExchange),
    /// It failed before it was sent.
    Unsent(EndedExchange),
    /// It was sent, and nobody waits for its end any longer.
    Abandoned(Rc<str>),
}

impl Io<'_> {
    /// Adds an event for the script.
    pub(super) fn answer(&mut self, id: OpId, event: Event) {
        self.outbox.events.push((id, event));
    }
}

/// An exchange that has ended and is to be recorded. Its bytes are not counted yet.
#[derive(Debug)]
pub(super) struct EndedExchange {
    pub(super) name: Rc<str>,
    pub(super) exchange: Exchange,
    /// Why it failed, if it did.
    pub(super) detail: String,
}

/// The connection that a session needs.
#[derive(Debug)]
pub(super) struct ConnectionRequest {
    pub(super) url: Url,
    /// The protocols to offer in the handshake of TLS (ALPN).
    pub(super) alpn: &'static [&'static [u8]],
    /// The session's own authorities and identity, if it has any.
    pub(super) tls: Option<ClientTls>,
}

/// Authorities and identity of one client.
#[derive(Clone, Debug)]
pub(super) struct ClientTls {
    /// Authorities in PEM; none for those of the system.
    pub(super) authorities: Vec<String>,
    /// A certificate and its key, in PEM.
    pub(super) identity: Option<(String, String)>,
}

/// A session that an operation opens, the connection that it needs, and the memory of its user.
pub(super) type Opened = (Box<dyn ClientSession>, ConnectionRequest, Rc<HeldMemory>);

/// The session that an operation opens.
///
/// # Errors
/// The operation opens no session; the error returns it.
pub(super) fn open(id: OpId, op: Op, now: Instant) -> Result<Opened, Op> {
    match op {
        Op::Socket(request, memory) => {
            let wants = ConnectionRequest { url: request.url.clone(), alpn: &[b"http/1.1"], tls: None };
            Ok((Box::new(WebSocket::new(id, request, now)), wants, memory))
        }
        Op::GrpcConnect(connect, memory) => {
            let tls = ClientTls { authorities: connect.authorities.clone(), identity: connect.identity.clone() };
            let is_own = !tls.authorities.is_empty() || tls.identity.is_some();
            let wants = ConnectionRequest { url: connect.url.clone(), alpn: &[b"h2"], tls: is_own.then_some(tls) };
            Ok((Box::new(Channel::new(id, connect)), wants, memory))
        }
        other => Err(other),
    }
}

/// The operation that opened the session to which this one belongs.
pub(super) fn addressee(op: &Op) -> Option<OpId> {
    match op {
        Op::SocketSend(id, _) | Op::GrpcSend(id, _) | Op::GrpcEnd(id) | Op::GrpcClose(id) => Some(*id),
        Op::GrpcCall(call) => Some(call.connection),
        Op::Http(..) | Op::Socket(..) | Op::GrpcConnect(..) => None,
    }
}

/// How many bytes an operation hands to its session.
pub(super) fn size(op: &Op) -> usize {
    match op {
        Op::SocketSend(_, SocketCommand::Text(text)) => text.len(),
        Op::SocketSend(_, SocketCommand::Binary(bytes)) | Op::GrpcSend(_, bytes) => bytes.len(),
        Op::GrpcCall(call) => call.message.as_ref().map_or(0, Vec::len),
        _ => 0,
    }
}

/// The event for an operation whose session has ended.
pub(super) fn session_ended(op: &Op) -> Option<Event> {
    let Op::GrpcCall(_) = op else { return None };
    Some(Event::Grpc(Box::new(GrpcEvent::Ended(GrpcEnd::unsent("the connection has ended")))))
}
