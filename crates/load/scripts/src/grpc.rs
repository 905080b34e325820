//! A gRPC connection of a script, with its calls. Messages are sent and received at any time.

use super::client_session::{ClientSession, EndedExchange, Io, Record, size};
use super::exchange::{CUT_OFF, ConnectionFacts, Fault};
use percent_encoding::percent_decode_str;
use plimsoll_grpc::status;
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{Event, GrpcCall, GrpcConnect, GrpcEnd, GrpcEvent, HttpFault, HttpFaultKind, Op};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::Instant;
use plimsoll_protocols::grpc::Field;
use plimsoll_protocols::grpc::session::{Event as What, Response, Session, StreamError};
use plimsoll_protocols::grpc::status::{of_http, of_reset};
use plimsoll_protocols::grpc::{MESSAGE_PREFIX, grpc_timeout, prefixed};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

pub(super) struct Channel {
    id: OpId,
    connect: Box<GrpcConnect>,
    remote: Option<ConnectionFacts>,
    /// None until the connection is established.
    session: Option<Session>,
    /// True if the handshake is complete, and the script was notified.
    is_ready: bool,
    is_over: bool,
    events: Vec<What>,
    /// Header fields that calls have in common: those of every call, then a path each.
    fields: Vec<Field>,
    calls: Vec<Call>,
    /// Operations that wait until the server accepts another call.
    waiting: VecDeque<(OpId, Op, Instant)>,
}

/// A call that was sent and has not ended.
struct Call {
    id: OpId,
    call: Box<GrpcCall>,
    requested: Instant,
    sent: Instant,
    first_byte: Option<Instant>,
    has_head: bool,
    /// How many messages of the response were passed on.
    messages: u64,
}

/// The number of fields that every call has.
const COMMON: usize = 6;

impl Channel {
    pub(super) fn new(id: OpId, connect: Box<GrpcConnect>) -> Channel {
        Channel {
            id,
            fields: common_fields(&connect),
            connect,
            remote: None,
            session: None,
            is_ready: false,
            is_over: false,
            events: Vec::new(),
            calls: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    fn answer(&self, id: OpId, event: GrpcEvent, io: &mut Io<'_>) {
        io.answer(id, Event::Grpc(Box::new(event)));
    }

    /// Sends a call or a part of one, or queues it.
    fn send(&mut self, id: OpId, op: Op, requested: Instant, io: &mut Io<'_>) {
        let (capacity, takes_more) =
            self.session.as_ref().map_or((0, true), |it| (it.capacity(), it.accepts_requests()));
        let must_wait = match &op {
            Op::GrpcSend(call, _) | Op::GrpcEnd(call) => self.waits(*call),
            _ => self.calls.len() >= capacity,
        };
        match (op, &mut self.session) {
            (Op::GrpcCall(_), _) if !takes_more => {
                let end = GrpcEnd::unsent("the server is going away and takes no further calls");
                self.answer(id, GrpcEvent::Ended(end), io);
            }
            (op, _) if must_wait => self.waiting.push_back((id, op, requested)),
            (Op::GrpcCall(call), _) => self.call(id, call, requested, io),
            (Op::GrpcSend(call, message), Some(session)) => session.send(call, &prefixed(&message), io.out),
            (Op::GrpcEnd(call), Some(session)) => session.finish(call, io.out),
            _ => {}
        }
    }

    fn waits(&self, id: OpId) -> bool {
        self.waiting.iter().any(|(waiting, op, _)| *waiting == id && matches!(op, Op::GrpcCall(_)))
    }

    fn call(&mut self, id: OpId, call: Box<GrpcCall>, requested: Instant, io: &mut Io<'_>) {
        let path = (":path".to_owned(), call.path.clone());
        let number = self.fields.iter().position(|known| *known == path).unwrap_or(self.fields.len());
        if number == self.fields.len() {
            self.fields.push(path);
        }
        // Pseudo-header fields, whose names begin with a colon, come before the others.
        let numbers = [0, 1, 2, number, 3, 4, 5];
        let deadline = call.timeout.map(|span| grpc_timeout(Duration::from_nanos(span.0)));
        let mut passing: Vec<Field> = deadline.into_iter().map(|text| ("grpc-timeout".to_owned(), text)).collect();
        passing.extend(call.metadata.iter().cloned());
        let session = self.session.as_mut().expect("calls go over a session");
        session.begin(&self.fields, &numbers, &passing, id, io.out);
        if let Some(message) = &call.message {
            session.send(id, &prefixed(message), io.out);
            session.finish(id, io.out);
        }
        io.outbox.records.push(Record::Sent(call.name.clone()));
        self.calls.push(Call { id, call, requested, sent: io.now, first_byte: None, has_head: false, messages: 0 });
    }

    /// Sends the queued operations, as far as the server accepts them.
    fn send_waiting(&mut self, io: &mut Io<'_>) {
        for _ in 0..self.waiting.len() {
            if let Some((id, op, requested)) = self.waiting.pop_front() {
                self.send(id, op, requested, io);
            }
        }
    }

    fn take(&mut self, event: What, io: &mut Io<'_>) {
        let (What::FirstByte(id) | What::Progress(id) | What::Complete(id, _) | What::Failed(id, _)) = &event;
        let Some(place) = self.calls.iter().position(|call| call.id == *id) else { return };
        match event {
            What::FirstByte(_) => self.calls[place].first_byte = Some(io.now),
            What::Progress(id) => {
                let Some(response) = self.session.as_mut().and_then(|session| session.response(id)) else { return };
                if let Err(end) = self.calls[place].tell(response, self.connect.largest_message, io) {
                    self.session.as_mut().expect("it has answered").cancel(id, io.out);
                    self.end_call(place, end, io);
                }
            }
            What::Complete(_, mut response) => {
                let told = self.calls[place].tell(&mut response, self.connect.largest_message, io);
                let end = told.err().unwrap_or_else(|| self.calls[place].end_of(response));
                self.end_call(place, end, io);
            }
            What::Failed(_, why) => {
                let end = self.calls[place].end_of_failed(why, io.now);
                self.end_call(place, end, io);
            }
        }
    }

    fn end_call(&mut self, place: usize, end: GrpcEnd, io: &mut Io<'_>) {
        let call = self.calls.swap_remove(place);
        let end = GrpcEnd { took: io.now.since(call.requested), ..end };
        io.outbox.records.push(Record::Ended(call.record(&end, io.now)));
        self.answer(call.id, GrpcEvent::Ended(end), io);
    }

    /// Ends all open calls.
    fn end_all(&mut self, status: u16, why: &str, io: &mut Io<'_>) {
        self.is_over = true;
        while let Some(place) = self.calls.len().checked_sub(1) {
            self.end_call(place, end(status, why.to_owned()), io);
        }
        for (id, op, _) in std::mem::take(&mut self.waiting) {
            if let Op::GrpcCall(_) = op {
                self.answer(id, GrpcEvent::Ended(GrpcEnd::unsent(why)), io);
            }
        }
    }

    fn close(&mut self, io: &mut Io<'_>) {
        if let Some(session) = &mut self.session {
            session.close(io.out);
        }
        self.end_all(status::CANCELLED, "the client has closed the connection", io);
    }
}

impl ClientSession for Channel {
    fn open(&mut self, connected: &ConnectionFacts, io: &mut Io<'_>) {
        self.session = Some(Session::open(io.out));
        self.remote = Some(connected.clone());
    }

    fn knows(&self, id: OpId) -> bool {
        id == self.id || self.calls.iter().any(|call| call.id == id) || self.waits(id)
    }

    fn tell(&mut self, id: OpId, op: Op, io: &mut Io<'_>) {
        match op {
            Op::GrpcClose(_) => self.close(io),
            op => self.send(id, op, io.now, io),
        }
    }

    fn cancel(&mut self, id: OpId, io: &mut Io<'_>) {
        if id == self.id {
            return self.close(io);
        }
        self.waiting.retain(|(waiting, op, _)| match op {
            Op::GrpcSend(call, _) | Op::GrpcEnd(call) => *call != id,
            _ => *waiting != id,
        });
        let Some(place) = self.calls.iter().position(|call| call.id == id) else { return };
        if let Some(session) = &mut self.session {
            session.cancel(id, io.out);
        }
        let call = self.calls.swap_remove(place);
        // Other calls are cancelled with their iteration; how they would have ended is unknown.
        io.outbox.records.push(match call.is_late(io.now) {
            true => Record::Ended(call.record(&late(), io.now)),
            false => Record::Abandoned(call.call.name),
        });
        self.send_waiting(io);
    }

    fn receive(&mut self, input: &[u8], io: &mut Io<'_>) {
        let Some(session) = &mut self.session else { return };
        let mut events = std::mem::take(&mut self.events);
        let received = session.receive(input, io.out, &mut events);
        if !self.is_ready && session.capacity() > 0 {
            self.is_ready = true;
            let remote = self.remote.as_ref().expect("it was opened").remote;
            self.answer(self.id, GrpcEvent::Connected(remote), io);
        }
        for event in events.drain(..) {
            self.take(event, io);
        }
        self.events = events;
        match received {
            Ok(()) => self.send_waiting(io),
            Err(violation) => {
                let fault = Fault::new(ErrorKind::Protocol, HttpFaultKind::Other, violation.to_string());
                self.end(Some(&fault), io);
            }
        }
    }

    fn cut_off(&mut self, io: &mut Io<'_>) {
        self.is_over = true;
        for call in std::mem::take(&mut self.calls) {
            io.outbox.records.push(match call.is_unary() {
                true => Record::Ended(call.record(&end(status::DEADLINE_EXCEEDED, CUT_OFF.to_owned()), io.now)),
                false => Record::Abandoned(call.call.name),
            });
        }
    }

    fn under_way(&self, found: &mut Vec<Rc<str>>) {
        found.extend(self.calls.iter().map(|call| Rc::clone(&call.call.name)));
    }

    fn end(&mut self, fault: Option<&Fault>, io: &mut Io<'_>) {
        let closed = || HttpFault { kind: HttpFaultKind::Other, detail: "the server closed the connection".to_owned() };
        let fault = fault.map_or_else(closed, |fault| fault.http.clone());
        self.end_all(status::UNAVAILABLE, &fault.detail, io);
        if !self.is_ready {
            self.answer(self.id, GrpcEvent::NotConnected(fault), io);
        }
    }

    fn is_waiting(&self) -> bool {
        !self.is_over && (!self.is_ready || self.calls.iter().any(|call| call.call.message.is_some()))
    }

    fn shift(&mut self, by: i64) {
        for Call { requested, sent, first_byte, .. } in &mut self.calls {
            for instant in [requested, sent].into_iter().chain(first_byte) {
                *instant = instant.shifted(by);
            }
        }
        self.waiting.iter_mut().for_each(|(_, _, requested)| *requested = requested.shifted(by));
    }

    fn unsent(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(|(_, op, _)| size(op)).sum();
        waiting + self.session.as_ref().map_or(0, Session::unsent)
    }

    fn unfinished(&self) -> usize {
        self.session.as_ref().map_or(0, Session::unfinished)
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Call {
    /// Passes on the new parts of the response: the head once, and each message.
    fn tell(&mut self, response: &mut Response, largest: usize, io: &mut Io<'_>) -> Result<(), GrpcEnd> {
        let mut answer = |event| io.answer(self.id, Event::Grpc(Box::new(event)));
        let head = response.fields.as_mut().and_then(|fields| fields.head.as_mut());
        if let Some(head) = head.filter(|_| !std::mem::replace(&mut self.has_head, true)) {
            answer(GrpcEvent::Headers(without_pseudo(std::mem::take(head))));
        }
        let mut taken = 0;
        while let Some(message) = next_message(&response.body[taken..], largest)? {
            self.messages += 1;
            if self.is_unary() && self.messages > 1 {
                return Err(end(
                    status::INTERNAL,
                    "expected one message in a unary response, found another".to_owned(),
                ));
            }
            taken += MESSAGE_PREFIX + message.len();
            answer(GrpcEvent::Message(message.to_vec()));
        }
        response.body.drain(..taken);
        Ok(())
    }

    /// How a complete response ends the call.
    fn end_of(&self, response: Response) -> GrpcEnd {
        let found = end_of(response);
        if self.is_unary() && found.status == status::OK && self.messages == 0 {
            return end(status::INTERNAL, "expected one message in a unary response, found none".to_owned());
        }
        found
    }

    /// True if the call sends one message and is to receive one. Scripts open all others as streams.
    fn is_unary(&self) -> bool {
        self.call.message.is_some()
    }

    /// How a call ends whose stream has failed.
    fn end_of_failed(&self, why: StreamError, now: Instant) -> GrpcEnd {
        match why {
            // The call may be sent on another connection.
            StreamError::NotProcessed(_) => GrpcEnd::unsent(&why.to_string()),
            StreamError::Reset(code) => match of_reset(code) {
                // The server noticed the deadline first.
                status::CANCELLED if self.is_late(now) => late(),
                status => end(status, why.to_string()),
            },
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        self.call.timeout.is_some_and(|timeout| now >= self.requested.after(timeout))
    }

    fn record(&self, end: &GrpcEnd, done: Instant) -> EndedExchange {
        let outcome = match end.status {
            status::OK => Outcome::Ok,
            status::DEADLINE_EXCEEDED => Outcome::Failed(ErrorKind::Timeout),
            status::UNAVAILABLE if self.first_byte.is_none() => Outcome::Failed(ErrorKind::Closed),
            _ => Outcome::Failed(ErrorKind::Status),
        };
        let (scheduled, sent, first_byte) = (self.requested, self.sent, self.first_byte);
        let exchange = Exchange { scheduled, sent, first_byte, done, bytes_out: 0, bytes_in: 0, outcome };
        let detail = format!("gRPC status {}: {}", end.status, end.message);
        EndedExchange { name: self.call.name.clone(), exchange, detail }
    }
}

/// The fields that all calls of a connection have, without their paths.
fn common_fields(connect: &GrpcConnect) -> Vec<Field> {
    let authority = connect.authority.clone().unwrap_or_else(|| connect.url.authority());
    let scheme = if connect.url.scheme().is_secure() { "https" } else { "http" };
    let fields: [(&str, &str); COMMON] = [
        (":method", "POST"),
        (":scheme", scheme),
        (":authority", &authority),
        ("content-type", "application/grpc"),
        ("user-agent", &connect.user_agent),
        ("te", "trailers"),
    ];
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// The first complete message in `body`.
fn next_message(body: &[u8], largest: usize) -> Result<Option<&[u8]>, GrpcEnd> {
    let Some((prefix, rest)) = body.split_first_chunk::<MESSAGE_PREFIX>() else { return Ok(None) };
    let [compressed, length @ ..] = *prefix;
    let length = u32::from_be_bytes(length) as usize;
    if compressed != 0 {
        let why = "expected uncompressed messages, found a compressed one";
        return Err(end(status::UNIMPLEMENTED, why.to_owned()));
    }
    if length > largest {
        let why = format!("received message larger than max ({length} vs. {largest})");
        return Err(end(status::RESOURCE_EXHAUSTED, why));
    }
    Ok(rest.get(..length))
}

/// How a complete response ends a call.
fn end_of(response: Response) -> GrpcEnd {
    let trailers = response.fields.map_or_else(Vec::new, |fields| without_pseudo(fields.trailers));
    let (status, message) = match (response.grpc_status, response.status) {
        (Some(status), _) => {
            let text = response.grpc_message.unwrap_or_default();
            (status, percent_decode_str(&text).decode_utf8_lossy().into_owned())
        }
        (None, Some(200)) => (status::UNKNOWN, "expected a `grpc-status` trailer, found none".to_owned()),
        (None, http) => {
            let found = http.map_or_else(|| "none".to_owned(), |http| http.to_string());
            (of_http(http), format!("unexpected HTTP status code received from server: {found}"))
        }
    };
    let cut_short = status == status::OK && !response.body.is_empty();
    match cut_short {
        true => end(status::INTERNAL, format!("expected whole messages, found {} bytes of one", response.body.len())),
        false => GrpcEnd { trailers, ..end(status, message) },
    }
}

fn without_pseudo(mut fields: Vec<Field>) -> Vec<Field> {
    fields.retain(|(name, _)| !name.starts_with(':'));
    fields
}

fn late() -> GrpcEnd {
    end(status::DEADLINE_EXCEEDED, "the call took longer than its time-out".to_owned())
}

fn end(status: u16, message: String) -> GrpcEnd {
    GrpcEnd { status, message, ..GrpcEnd::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_session::Outbox;

    /// How a call ends that sends one message, or a stream of them, and receives these.
    fn ends(sends_one: bool, messages: &[&[u8]]) -> (u16, usize) {
        let call = GrpcCall {
            connection: 1,
            path: "/shop.Shop/Buy".to_owned(),
            metadata: Vec::new(),
            timeout: None,
            message: sends_one.then(Vec::new),
            name: "buy".into(),
        };
        let now = Instant(0);
        let call = Box::new(call);
        let mut call = Call { id: 2, call, requested: now, sent: now, first_byte: None, has_head: false, messages: 0 };
        let body = messages.iter().flat_map(|message| prefixed(message)).collect();
        let mut response = Response { status: Some(200), grpc_status: Some(status::OK), body, ..Response::default() };
        let (mut out, mut outbox) = (Vec::new(), Outbox::default());
        let told = call.tell(&mut response, 1000, &mut Io { now, out: &mut out, outbox: &mut outbox });
        let end = told.err().unwrap_or_else(|| call.end_of(response));
        (end.status, outbox.events.len())
    }

    #[test]
    fn a_unary_response_has_one_message() {
        assert_eq!(ends(true, &[b"one"]), (status::OK, 1));
        assert_eq!(ends(true, &[]), (status::INTERNAL, 0));
        assert_eq!(ends(true, &[b"one", b"two"]), (status::INTERNAL, 1));
        assert_eq!(ends(false, &[b"one", b"two"]), (status::OK, 2));
        assert_eq!(ends(false, &[]), (status::OK, 0));
    }
}
