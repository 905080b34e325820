//! A WebSocket of a script.

use super::client_session::{ClientSession, EndedExchange, Io, Record};
use super::exchange::{CUT_OFF, ConnectionFacts, Fault};
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{
    Event, HttpFaultKind, HttpReply, Op, SocketClosed, SocketCommand, SocketEvent, SocketOpened, SocketRefused,
    SocketRequest,
};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::Instant;
use plimsoll_protocols::websocket::{Event as What, Handshake, HandshakeResponse, Socket};
use std::rc::Rc;

/// The close code of a socket whose user goes away.
const GOING_AWAY: u16 = 1001;

/// The close code for a socket whose connection breaks.
const ABNORMAL: u16 = 1006;

pub(super) struct WebSocket {
    id: OpId,
    request: Box<SocketRequest>,
    requested: Instant,
    /// None until the connection is established.
    socket: Option<Socket>,
    connected: Option<ConnectionFacts>,
    /// When the opening request was written.
    sent: Instant,
    is_open: bool,
    is_over: bool,
}

impl WebSocket {
    pub(super) fn new(id: OpId, request: Box<SocketRequest>, requested: Instant) -> WebSocket {
        let (socket, connected) = (None, None);
        WebSocket { id, request, requested, socket, connected, sent: requested, is_open: false, is_over: false }
    }

    fn answer(&mut self, what: What, io: &mut Io<'_>) {
        let event = match what {
            What::Opened(answer) => self.opened(answer, io),
            What::Refused(answer, why) => {
                let kind = if answer.is_some() { ErrorKind::Status } else { ErrorKind::Protocol };
                self.refused(answer, &Fault::new(kind, HttpFaultKind::Other, why), io)
            }
            What::Text(text) => SocketEvent::Text(text),
            What::Binary(bytes) => SocketEvent::Binary(bytes),
            What::Ping => SocketEvent::Ping,
            What::Pong(payload) => SocketEvent::Pong { payload, at: io.now },
            What::Closed { code, reason } => self.closed(code, reason, None),
            What::Broken(fault) => self.closed(ABNORMAL, String::new(), Some(fault)),
        };
        io.answer(self.id, Event::Socket(Box::new(event)));
    }

    fn opened(&mut self, answer: HandshakeResponse, io: &mut Io<'_>) -> SocketEvent {
        self.is_open = true;
        self.record(Outcome::Ok, String::new(), io);
        let connected = self.connected.as_ref().expect("it was opened on a connection");
        let (remote, tls) = (connected.remote, connected.tls);
        SocketEvent::Opened(SocketOpened { reply: reply(answer), remote, tls, took: io.now.since(self.requested) })
    }

    fn refused(&mut self, answer: Option<HandshakeResponse>, fault: &Fault, io: &mut Io<'_>) -> SocketEvent {
        self.is_over = true;
        self.record(Outcome::Failed(fault.kind), fault.http.detail.clone(), io);
        let remote = self.connected.as_ref().map(|connected| connected.remote);
        let (reply, took) = (answer.map(reply), io.now.since(self.requested));
        SocketEvent::Refused(SocketRefused { reply, fault: fault.http.clone(), remote, took })
    }

    fn closed(&mut self, code: u16, reason: String, fault: Option<String>) -> SocketEvent {
        self.is_over = true;
        SocketEvent::Closed(SocketClosed { code, reason, fault })
    }

    /// Records the opening handshake as an exchange; later messages are not exchanges.
    fn record(&self, outcome: Outcome, detail: String, io: &mut Io<'_>) {
        let (scheduled, done) = (self.requested, io.now);
        let first_byte = (outcome == Outcome::Ok).then_some(done);
        let exchange = Exchange { scheduled, sent: self.sent, first_byte, done, bytes_out: 0, bytes_in: 0, outcome };
        let ended = EndedExchange { name: self.request.name.clone(), exchange, detail };
        io.outbox.records.push(if self.socket.is_some() { Record::Ended(ended) } else { Record::Unsent(ended) });
    }

    /// True if the opening request was sent and not answered.
    fn is_opening(&self) -> bool {
        self.socket.is_some() && self.is_waiting()
    }

    /// Passes on the events in the peer's bytes.
    fn answer_all(&mut self, events: Vec<What>, io: &mut Io<'_>) {
        for event in events {
            self.answer(event, io);
        }
    }
}

impl ClientSession for WebSocket {
    fn open(&mut self, connected: &ConnectionFacts, io: &mut Io<'_>) {
        let target = self.request.url.target();
        let (headers, subprotocols) = (&self.request.headers, &self.request.subprotocols);
        let opening = Handshake { target: &target, headers, subprotocols, deflate: self.request.deflate };
        // The seed is different for each socket of a user, and most likely for each user.
        let seed = (io.now.0 as u64) ^ (u64::from(self.id) << 40);
        self.socket = Some(Socket::open(&opening, seed, io.out));
        self.connected = Some(connected.clone());
        self.sent = io.now;
        io.outbox.records.push(Record::Sent(self.request.name.clone()));
    }

    fn knows(&self, id: OpId) -> bool {
        id == self.id
    }

    fn tell(&mut self, _id: OpId, op: Op, io: &mut Io<'_>) {
        let (Op::SocketSend(_, command), Some(socket)) = (op, &mut self.socket) else { return };
        match command {
            SocketCommand::Text(text) => socket.send_text(&text, io.out),
            SocketCommand::Binary(bytes) => socket.send_binary(&bytes, io.out),
            SocketCommand::Ping(payload) => socket.ping(&payload, io.out),
            SocketCommand::Close { code, reason } => socket.close(code, &reason, io.out),
        }
    }

    fn cancel(&mut self, _id: OpId, io: &mut Io<'_>) {
        if self.is_opening() {
            io.outbox.records.push(Record::Abandoned(self.request.name.clone()));
        }
        if let Some(socket) = &mut self.socket {
            socket.close(GOING_AWAY, "", io.out);
        }
        self.is_over = true;
    }

    fn cut_off(&mut self, io: &mut Io<'_>) {
        if self.is_waiting() {
            self.record(Outcome::Failed(ErrorKind::Timeout), CUT_OFF.to_owned(), io);
        }
        self.is_over = true;
    }

    fn under_way(&self, found: &mut Vec<Rc<str>>) {
        found.extend(self.is_opening().then(|| self.request.name.clone()));
    }

    fn receive(&mut self, input: &[u8], io: &mut Io<'_>) {
        let Some(socket) = &mut self.socket else { return };
        let mut events = Vec::new();
        socket.receive(input, io.out, &mut events);
        self.answer_all(events, io);
    }

    fn end(&mut self, fault: Option<&Fault>, io: &mut Io<'_>) {
        match (fault, &mut self.socket) {
            (None, Some(socket)) => {
                let mut events = Vec::new();
                socket.end_of_input(&mut events);
                self.answer_all(events, io);
            }
            (Some(_), _) if self.is_over => {}
            (Some(fault), _) => {
                let event = match self.is_open {
                    true => self.closed(ABNORMAL, String::new(), Some(fault.http.detail.clone())),
                    false => self.refused(None, fault, io),
                };
                io.answer(self.id, Event::Socket(Box::new(event)));
            }
            (None, None) => {}
        }
        self.is_over = true;
    }

    fn is_waiting(&self) -> bool {
        !self.is_open && !self.is_over
    }

    fn unfinished(&self) -> usize {
        self.socket.as_ref().map_or(0, Socket::unfinished)
    }

    fn shift(&mut self, by: i64) {
        (self.requested, self.sent) = (self.requested.shifted(by), self.sent.shifted(by));
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

fn reply(answer: HandshakeResponse) -> HttpReply {
    let HandshakeResponse { status, reason, headers, body } = answer;
    HttpReply::new(status, &reason, &headers, body)
}
