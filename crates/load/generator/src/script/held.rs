//! Connections that a user holds for longer than one exchange: sockets of WebSocket, connections of gRPC.

use super::exchange::{Connected, Fault};
use super::grpc::Channel;
use super::websocket::WebSocket;
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{Event, GrpcEnd, GrpcEvent, Op};
use plimsoll_model::record::Exchange;
use plimsoll_model::units::Instant;
use plimsoll_web::Url;
use std::rc::Rc;

/// One of them, as a state machine without a socket. It is made when its operation begins, and opened when there is a
/// connection.
pub(super) trait Held {
    /// The connection stands, with its encryption.
    fn open(&mut self, connected: &Connected, io: &mut Io<'_>);

    /// Whether an operation is its own: the one that it was made for, or a call that is open on it.
    fn knows(&self, id: OpId) -> bool;

    /// An operation, whose number is `id`, for one that it knows ([`addressee`]).
    fn tell(&mut self, id: OpId, op: Op, io: &mut Io<'_>);

    /// Nobody waits for this operation any more, which it knows.
    fn cancel(&mut self, id: OpId, io: &mut Io<'_>);

    /// Takes bytes that came.
    fn receive(&mut self, input: &[u8], io: &mut Io<'_>);

    /// The connection could not be made or broke; without a fault, the peer has ended its side. It is over then.
    fn end(&mut self, fault: Option<&Fault>, io: &mut Io<'_>);

    /// Whether nothing more comes of it: it is closed when what it wrote is sent.
    fn is_over(&self) -> bool;
}

/// What a connection sees of the world, and where it puts what it has to say.
pub(super) struct Io<'a> {
    pub(super) now: Instant,
    /// What is to be sent.
    pub(super) out: &'a mut Vec<u8>,
    pub(super) told: &'a mut Told,
}

/// What has come of connections.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// For scripts.
    pub(super) answers: Vec<(OpId, Event)>,
    pub(super) records: Vec<Record>,
}

impl Io<'_> {
    /// Tells the script.
    pub(super) fn answer(&mut self, id: OpId, event: Event) {
        self.told.answers.push((id, event));
    }
}

/// An exchange that has ended, for the record. Its bytes are not counted yet.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Rc<str>,
    pub(super) exchange: Exchange,
    /// Of a failed one, what came back.
    pub(super) detail: String,
}

/// What kind of connection is to be made.
#[derive(Debug)]
pub(super) struct Wants {
    pub(super) url: Url,
    /// What is offered in the handshake of TLS.
    pub(super) alpn: &'static [&'static [u8]],
    /// How TLS differs from that of the other connections.
    pub(super) tls: Option<OwnTls>,
}

/// TLS of one client.
#[derive(Clone, Debug)]
pub(super) struct OwnTls {
    /// Authorities in PEM; none for those of the system.
    pub(super) authorities: Vec<String>,
    /// A certificate and its key, in PEM.
    pub(super) identity: Option<(String, String)>,
}

/// What an operation opens, and what it wants for that.
///
/// # Errors
/// It opens none, and is given back.
pub(super) fn held(id: OpId, op: Op, now: Instant) -> Result<(Box<dyn Held>, Wants), Op> {
    match op {
        Op::Socket(request) => {
            let wants = Wants { url: request.url.clone(), alpn: &[b"http/1.1"], tls: None };
            Ok((Box::new(WebSocket::new(id, request, now)), wants))
        }
        Op::GrpcConnect(connect) => {
            let tls = OwnTls { authorities: connect.authorities.clone(), identity: connect.identity.clone() };
            let is_own = !tls.authorities.is_empty() || tls.identity.is_some();
            let wants = Wants { url: connect.url.clone(), alpn: &[b"h2"], tls: is_own.then_some(tls) };
            Ok((Box::new(Channel::new(id, connect)), wants))
        }
        other => Err(other),
    }
}

/// For which operation one is that opens no connection.
pub(super) fn addressee(op: &Op) -> Option<OpId> {
    match op {
        Op::SocketSend(id, _) | Op::GrpcSend(id, _) | Op::GrpcEnd(id) | Op::GrpcClose(id) => Some(*id),
        Op::GrpcCall(call) => Some(call.connection),
        Op::Http(_) | Op::Socket(_) | Op::GrpcConnect(_) => None,
    }
}

/// What an operation is answered whose connection is gone.
pub(super) fn nobody(op: &Op) -> Option<Event> {
    let Op::GrpcCall(_) = op else { return None };
    Some(Event::Grpc(Box::new(GrpcEvent::Ended(GrpcEnd::unsent("the connection has ended")))))
}
