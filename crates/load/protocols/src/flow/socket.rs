//! The WebSocket that a user of a flow holds: what it is compiled to, and its state on a connection.

use super::capture::{Capture, InspectedReply};
use super::check::{Checks, ExpectedMessage};
use super::compile::Compiler;
use super::deliveries::{Deliveries, Delivery};
use super::reply::{LARGEST_BODY, Reply};
use super::template::{Draft, Template, TemplateContext, ValueRef};
use super::user::User;
use super::{Connection, Flows, Link};
use crate::websocket::{Event, Socket, Upgrade};
use plimsoll_engine::protocol::{Failure, Next, Reply as Verdict, Sending, Signal};
use plimsoll_engine::sockets::{MessageCounts, SocketAction, SocketEnd, Sockets};
use plimsoll_model::flow::{AwaitedMessage, Backoff, Body, FlowMessage, FlowSocket, Reference, WorkloadPart};
use plimsoll_model::record::{ErrorKind, Outcome};
use plimsoll_model::units::{Instant, Nanos};
use std::collections::VecDeque;

/// The most messages that are kept for a step that may await them, and the most bytes of them.
const MOST_RECENT: usize = 32;
const LARGEST_RECENT: usize = 256 << 10;

/// The sockets of a flow, compiled.
pub(super) struct CompiledSocket {
    /// The request that opens it.
    opening: u32,
    subprotocols: Vec<String>,
    compression: bool,
    greeting: Option<Template>,
    ready: Option<Checks>,
    ping: Option<Nanos>,
    reconnect: Option<Backoff>,
    pub(super) deliveries: Option<CompiledDeliveries>,
    pub(super) messages: Vec<Message>,
    /// True if a step awaits what nothing asked for: it may have come before the step.
    keeps_recent: bool,
}

/// The deliveries of a flow, compiled.
pub(super) struct CompiledDeliveries {
    listens_to: ValueRef,
    of: Checks,
    pub(super) within: Nanos,
    pub(super) account: Deliveries,
}

/// A message of the flow, compiled.
pub(super) struct Message {
    send: Option<Template>,
    awaits: Option<Awaited>,
}

struct Awaited {
    step: usize,
    checks: Checks,
    captures: Vec<Capture>,
}

impl Compiler<'_> {
    /// Compiles the socket; `None` if it has faults.
    pub(super) fn socket(&mut self, socket: &FlowSocket) -> Option<CompiledSocket> {
        let of = Some(WorkloadPart::Request(socket.opening));
        let greeting = self.message_text(socket.greeting.as_ref());
        let ready = socket.ready.as_ref().map(|ready| self.checks(ready, of));
        let deliveries = socket.deliveries.as_ref().map(|deliveries| {
            Some(CompiledDeliveries {
                listens_to: self.value_ref(Reference::Value(deliveries.listens_to)),
                of: self.checks(&deliveries.of, of)?,
                within: deliveries.within.into(),
                account: Deliveries::default(),
            })
        });
        let messages: Vec<Option<Message>> =
            socket.messages.iter().enumerate().map(|(number, message)| self.message(number, message)).collect();
        let unasked = |message: &FlowMessage| message.awaits.is_some() && message.send.is_none();
        Some(CompiledSocket {
            opening: socket.opening as u32,
            subprotocols: socket.subprotocols.clone(),
            compression: socket.compression,
            greeting,
            ready: ready.map_or(Some(None), |ready| ready.map(Some))?,
            ping: socket.ping.map(Into::into),
            reconnect: socket.reconnect,
            deliveries: deliveries.map_or(Some(None), |deliveries| deliveries.map(Some))?,
            messages: messages.into_iter().collect::<Option<_>>()?,
            keeps_recent: socket.messages.iter().any(unasked),
        })
    }

    fn message(&mut self, number: usize, message: &FlowMessage) -> Option<Message> {
        let send = self.message_text(message.send.as_ref());
        let awaits = match &message.awaits {
            Some(awaited) => Some(self.awaited(number, &message.name, awaited)?),
            None => None,
        };
        Some(Message { send, awaits })
    }

    fn awaited(&mut self, number: usize, name: &str, awaited: &AwaitedMessage) -> Option<Awaited> {
        let of = Some(WorkloadPart::Message(number));
        let captures = awaited.captures.iter().map(|capture| self.or_fault(of, Capture::new(capture)));
        let captures: Vec<Option<Capture>> = captures.collect();
        let checks = self.checks(&awaited.checks, of);
        let step = self.steps.iter().position(|known| *known == name).unwrap_or_default();
        Some(Awaited { step, checks: checks?, captures: captures.into_iter().collect::<Option<_>>()? })
    }

    /// The text of a message. What else a request may carry, no message does.
    fn message_text(&mut self, body: Option<&Body>) -> Option<Template> {
        let mut draft = Draft::default();
        self.body(body?, None, &mut draft)?;
        Some(draft.finish(&mut self.pool))
    }
}

impl CompiledSocket {
    /// The warning about deliveries since the last call, if there is one.
    pub(super) fn take_warning(&self) -> Option<String> {
        let repeated = self.deliveries.as_ref()?.account.take_repeated();
        (repeated > 0).then(|| {
            let times = if repeated == 1 { "once".to_owned() } else { format!("{repeated} times") };
            format!("a delivery came to the same user again: {times}; each is counted as one delivery")
        })
    }
}

/// A socket of a user, from its first byte on.
pub(super) struct SocketSession {
    socket: Socket,
    user: u64,
    stage: Stage,
    /// The message that is sent when it is open.
    greeting: Option<String>,
    /// The message with which it is ready then.
    ready: Option<ExpectedMessage>,
    /// The contents of a delivery, beside its number.
    of: Option<ExpectedMessage>,
    awaited: Option<AwaitedNow>,
    /// The message that was awaited, until its user takes it.
    arrived: Option<Box<Reply>>,
    /// The last messages, each with its place among all steps and messages.
    recent: VecDeque<(u64, Vec<u8>)>,
    /// True if anything came since the last ping.
    heard: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The handshake is under way.
    Opening,
    /// The message with which the socket is ready has not come.
    Greeting,
    Ready,
    /// Nothing more can be sent.
    Over,
}

/// A message that a user awaits.
struct AwaitedNow {
    ticket: u32,
    message: u32,
    expected: ExpectedMessage,
}

impl SocketSession {
    pub(super) fn capacity(&self) -> usize {
        usize::from(self.stage == Stage::Ready)
    }

    pub(super) fn is_reusable(&self) -> bool {
        self.stage != Stage::Over
    }

    /// Nobody waits for a message any more. One that comes later is taken by the next step if it fits that one: only the
    /// study knows what tells its answers apart.
    pub(super) fn cancel(&mut self) {
        self.awaited = None;
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        self.socket.close(NORMAL_CLOSURE, "", out);
    }

    pub(super) fn take_arrived(&mut self) -> Option<Box<Reply>> {
        self.arrived.take()
    }

    /// Keeps a message for a step to come.
    fn keep(&mut self, place: u64, message: Vec<u8>) {
        let size = |recent: &VecDeque<(u64, Vec<u8>)>| recent.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.recent.push_back((place, message));
        while self.recent.len() > MOST_RECENT || size(&self.recent) > LARGEST_RECENT {
            self.recent.pop_front();
        }
    }
}

/// RFC 6455, 7.4.1.
const NORMAL_CLOSURE: u16 = 1000;

impl Flows<'_> {
    /// The socket of the flow. Only users that hold one ask.
    fn own_socket(&self) -> &CompiledSocket {
        self.flow.socket.as_ref().expect("a flow whose users act on sockets has one")
    }

    fn message_of(&self, user: &User) -> &Message {
        &self.own_socket().messages[user.message as usize]
    }

    /// The next action of a user whose step is a message.
    pub(super) fn exchange_message(&self, user: &User) -> Next {
        let message = self.message_of(user);
        let Some(awaited) = &message.awaits else { return Next::Socket(SocketAction::Send) };
        let context = user.context(self);
        let sendable = message.send.as_ref().map_or(Ok(()), |send| context.check(send));
        match sendable.and_then(|()| awaited.checks.check_values(&context)) {
            Ok(()) => Next::Socket(SocketAction::Exchange(awaited.step)),
            Err(failure) => Next::Refused(awaited.step, failure),
        }
    }

    /// Sends the message of a step, if it has one, and awaits another.
    pub(super) fn send_on_socket(
        &self,
        session: &mut SocketSession,
        user: &mut User,
        sending: Sending,
        out: &mut Vec<u8>,
    ) {
        user.now = self.unix_millis(sending.now);
        let message = self.message_of(user);
        let mut context = user.context(self);
        let Some(expected) =
            message.awaits.as_ref().and_then(|awaited| awaited.checks.expected_message(&mut context).ok())
        else {
            return;
        };
        if let Some(text) = message.send.as_ref().and_then(|send| rendered(send, &mut context).ok()) {
            self.send_text(session, &text, out);
        }
        session.arrived = None;
        session.awaited = Some(AwaitedNow { ticket: sending.ticket, message: user.message, expected });
        self.look_at_recent(session, user, message);
        user.last_step = self.next_place();
    }

    /// Looks for the message among those that came since the step before.
    fn look_at_recent(&self, session: &mut SocketSession, user: &User, message: &Message) {
        let recent = std::mem::take(&mut session.recent);
        if message.send.is_some() {
            return;
        }
        let mut later = recent.into_iter().skip_while(|(place, _)| *place < user.last_step);
        while session.arrived.is_none() {
            let Some((_, bytes)) = later.next() else { return };
            self.compare(session, Reply::of_message(bytes));
        }
        session.recent = later.collect();
    }

    /// Takes the message if it is awaited, and returns it if not.
    fn compare(&self, session: &mut SocketSession, message: Reply) -> Option<Reply> {
        let Some(awaited) = &session.awaited else { return Some(message) };
        let checks = self.own_socket().messages[awaited.message as usize].awaits.as_ref().map(|awaits| &awaits.checks);
        if !checks.is_some_and(|checks| checks.fit(&awaited.expected, &InspectedReply::new(&message))) {
            return Some(message);
        }
        session.arrived = Some(Box::new(message));
        None
    }

    fn send_text(&self, session: &mut SocketSession, text: &str, out: &mut Vec<u8>) {
        session.socket.send_text(text, out);
        self.counts.set(MessageCounts { sent: self.counts.get().sent + 1, ..self.counts.get() });
    }

    /// Takes bytes that were read from a socket.
    pub(super) fn receive_on_socket(
        &self,
        session: &mut SocketSession,
        input: &[u8],
        out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) {
        // Parts of a long message are a sign of life as well.
        session.heard |= !input.is_empty();
        let mut events = self.events.take();
        session.socket.receive(input, out, &mut events);
        events.drain(..).for_each(|event| self.handle_event(session, event, out, signals));
        self.events.replace(events);
    }

    /// The peer has ended its side of a socket.
    pub(super) fn end_of_socket(&self, session: &mut SocketSession, signals: &mut Vec<Signal>) {
        let mut events = Vec::new();
        session.socket.end_of_input(&mut events);
        events.into_iter().for_each(|event| self.handle_event(session, event, &mut Vec::new(), signals));
    }

    fn handle_event(&self, session: &mut SocketSession, event: Event, out: &mut Vec<u8>, signals: &mut Vec<Signal>) {
        session.heard = true;
        let lost = |kind, detail: String| Signal::Lost(Failure::new(kind, detail));
        match event {
            Event::Opened(_) => {
                session.stage = if session.ready.is_some() { Stage::Greeting } else { Stage::Ready };
                if let Some(greeting) = session.greeting.take() {
                    self.send_text(session, &greeting, out);
                }
            }
            Event::Text(text) => self.handle_message(session, Reply::of_message(text.into_bytes()), signals),
            Event::Binary(bytes) => self.handle_message(session, Reply::of_message(bytes), signals),
            Event::Ping | Event::Pong(_) => {}
            Event::Refused(response, why) => {
                session.stage = Stage::Over;
                let kind = if response.is_some() { ErrorKind::Status } else { ErrorKind::Protocol };
                let body = response.map(|response| response.body).filter(|body| !body.is_empty());
                let body = body.map(|body| format!(" with `{}`", super::excerpt(&body))).unwrap_or_default();
                signals.push(lost(kind, why + &body));
            }
            Event::Closed { code, reason } => {
                session.stage = Stage::Over;
                let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
                signals.push(lost(ErrorKind::Closed, format!("the server closed the socket: {code}{reason}")));
            }
            Event::Broken(why) => {
                session.stage = Stage::Over;
                signals.push(lost(ErrorKind::Protocol, why));
            }
        }
    }

    fn handle_message(&self, session: &mut SocketSession, message: Reply, signals: &mut Vec<Signal>) {
        self.counts.set(MessageCounts { received: self.counts.get().received + 1, ..self.counts.get() });
        self.look_for_deliveries(session, &message, signals);
        if session.stage == Stage::Greeting {
            let own = self.own_socket();
            if let (Some(checks), Some(expected)) = (&own.ready, &session.ready)
                && checks.fit(expected, &InspectedReply::new(&message))
            {
                session.stage = Stage::Ready;
                session.ready = None;
            }
            return;
        }
        // A second message of the kind is not the answer to the same step.
        let is_waiting = session.awaited.is_some() && session.arrived.is_none();
        let left = if is_waiting { self.compare(session, message) } else { Some(message) };
        match left {
            None => self.finish_exchange(session, signals),
            Some(message) if self.own_socket().keeps_recent => session.keep(self.next_place(), message.body),
            Some(_) => {}
        }
    }

    /// Ends the exchange whose message has arrived.
    fn finish_exchange(&self, session: &mut SocketSession, signals: &mut Vec<Signal>) {
        if session.arrived.is_some()
            && let Some(awaited) = session.awaited.take()
        {
            signals.push(Signal::Done { ticket: awaited.ticket, reply: Verdict::Expected { number: None } });
        }
    }

    fn look_for_deliveries(&self, session: &SocketSession, message: &Reply, signals: &mut Vec<Signal>) {
        let Some(deliveries) = &self.own_socket().deliveries else { return };
        let numbers = self.numbers.find(&message.body);
        let is_delivery = |of| deliveries.of.fit(of, &InspectedReply::new(message));
        if numbers.is_empty() || !session.of.as_ref().is_none_or(is_delivery) {
            return;
        }
        let done = self.clock.get().now();
        for number in numbers {
            if let Some(Delivery { step, sent }) = deliveries.account.arrive(number, session.user) {
                let due = sent.after(deliveries.within);
                let is_late = done > due;
                let outcome = if is_late { Outcome::Failed(ErrorKind::Timeout) } else { Outcome::Ok };
                signals.push(Signal::Delivery { step, sent, done: done.min(due), outcome });
            }
        }
    }

    /// Takes the captures of the message that has arrived.
    pub(super) fn take_message(&self, user: &mut User, message: &Reply) -> Result<(), Failure> {
        let inspected = InspectedReply::new(message);
        let awaits = self.message_of(user).awaits.as_ref();
        for capture in awaits.map_or(&[][..], |awaited| &awaited.captures) {
            let name = &self.flow.names[capture.into as usize];
            user.values[capture.into as usize] = capture.extract(name, &inspected, &mut user.random, |_| None)?;
        }
        Ok(())
    }

    /// Begins the delivery of what a request carries to those who listen.
    pub(super) fn begin_delivery(&self, user: &mut User, topic: &Template, step: usize, sent: Instant) {
        let Some(deliveries) = self.flow.socket.as_ref().and_then(|socket| socket.deliveries.as_ref()) else { return };
        let (message, mut context) = (user.message_number(self), user.context(self));
        let Ok(topic) = rendered(topic, &mut context) else { return };
        deliveries.account.begin(message, user.number(), &topic, Delivery { step, sent });
        user.posted = Some(message);
        self.own_deliveries.borrow_mut().add(message, sent, deliveries.within);
    }

    /// The request failed: what it carried, if anything, is not delivered.
    pub(super) fn cancel_delivery(&self, user: &mut User) {
        let deliveries = self.flow.socket.as_ref().and_then(|socket| socket.deliveries.as_ref());
        if let (Some(deliveries), Some(posted)) = (deliveries, user.posted.take()) {
            deliveries.account.cancel(posted);
        }
    }

    /// The place of the next step or message of this thread.
    pub(super) fn next_place(&self) -> u64 {
        self.places.set(self.places.get() + 1);
        self.places.get()
    }

    /// The topics of a user: the items of a list, or one text.
    fn topics(&self, deliveries: &CompiledDeliveries, user: &User) -> Vec<Box<str>> {
        let context = user.context(self);
        let view = context.view(deliveries.listens_to);
        match view.items() {
            Some(items) => items.iter().map(|item| item.view().text().into()).collect(),
            None if view.is_present() => vec![view.text().into()],
            None => Vec::new(),
        }
    }
}

fn rendered(template: &Template, context: &mut TemplateContext<'_>) -> Result<String, Failure> {
    context.render(template).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn lost_deliveries(lost: Vec<Delivery>, done: impl Fn(&Delivery) -> Instant, kind: ErrorKind) -> Vec<Signal> {
    let signal = |delivery: Delivery| Signal::Delivery {
        step: delivery.step,
        sent: delivery.sent,
        done: done(&delivery),
        outcome: Outcome::Failed(kind),
    };
    lost.into_iter().map(signal).collect()
}

impl Sockets<Connection, User> for Flows<'_> {
    fn step(&self) -> usize {
        self.flow.requests[self.own_socket().opening as usize].step
    }

    fn name(&self, step: usize) -> &str {
        &self.flow.steps[step]
    }

    fn ping_every(&self) -> Option<Nanos> {
        self.own_socket().ping
    }

    fn wait_before_attempt(&self, user: &mut User, failed: u32) -> Option<Nanos> {
        let Backoff { first, most } = self.own_socket().reconnect?;
        let longest = first.saturating_mul(2_u32.saturating_pow(failed)).min(most);
        Some(longest.mul_f64(0.5 + 0.5 * user.random.unit()).into())
    }

    fn open_socket(&self, user: &mut User, now: Instant, out: &mut Vec<u8>) -> Result<Connection, Failure> {
        let own = self.own_socket();
        let request = &self.flow.requests[own.opening as usize];
        user.now = self.unix_millis(now);
        user.count_exchange();
        let mut context = user.context(self);
        request.check(&mut context, self.flow)?;
        let greeting = own.greeting.as_ref().map(|greeting| rendered(greeting, &mut context)).transpose()?;
        let mut expected =
            |checks: Option<&Checks>| checks.map(|checks| checks.expected_message(&mut context)).transpose();
        let ready = expected(own.ready.as_ref())?;
        let of = expected(own.deliveries.as_ref().map(|deliveries| &deliveries.of))?;
        let scratch = &mut *self.scratch.borrow_mut();
        let mut state = super::request::WriteState { flow: self.flow, jar: &user.jar, redirect: None, scratch };
        request.write(&mut context, &mut state, out);
        // The head goes on with the lines of the handshake.
        out.truncate(out.len() - "\r\n".len());
        let upgrade = Upgrade { subprotocols: &own.subprotocols, deflate: own.compression };
        let socket = Socket::upgrade(upgrade, user.message_number(self).bits(), LARGEST_BODY, out);
        let (stage, recent) = (Stage::Opening, VecDeque::new());
        let (awaited, arrived, heard, user) = (None, None, true, user.number());
        let session = SocketSession { socket, user, stage, greeting, ready, of, awaited, arrived, recent, heard };
        Ok(Connection(Link::Socket(Box::new(session))))
    }

    fn opened(&self, user: &mut User) {
        if let Some(deliveries) = &self.own_socket().deliveries {
            deliveries.account.listen(user.number(), self.topics(deliveries, user));
        }
    }

    fn send_message(
        &self,
        socket: &mut Connection,
        user: &mut User,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Link::Socket(session) = &mut socket.0 else { return Ok(()) };
        user.now = self.unix_millis(now);
        if let Some(send) = &self.message_of(user).send {
            let text = rendered(send, &mut user.context(self))?;
            self.send_text(session, &text, out);
        }
        user.last_step = self.next_place();
        Ok(())
    }

    fn settle(&self, socket: &mut Connection, signals: &mut Vec<Signal>) {
        if let Link::Socket(session) = &mut socket.0 {
            self.finish_exchange(session, signals);
        }
    }

    fn ping(&self, socket: &mut Connection, out: &mut Vec<u8>) -> bool {
        let Link::Socket(session) = &mut socket.0 else { return true };
        let heard = std::mem::take(&mut session.heard);
        if heard {
            session.socket.ping(b"", out);
        }
        heard
    }

    fn ended(&self, user: &mut User, end: SocketEnd, now: Instant, signals: &mut Vec<Signal>) {
        if let Some(deliveries) = &self.own_socket().deliveries {
            let lost = deliveries.account.leave(user.number(), end);
            signals.extend(lost_deliveries(lost, |_| now, ErrorKind::Closed));
        }
    }

    fn give_up_overdue(&self, now: Instant, signals: &mut Vec<Signal>) {
        let Some(deliveries) = &self.own_socket().deliveries else { return };
        let overdue = self.own_deliveries.borrow_mut().take_overdue(now);
        if !overdue.is_empty() {
            let lost = deliveries.account.end(overdue);
            let end = |delivery: &Delivery| delivery.sent.after(deliveries.within);
            signals.extend(lost_deliveries(lost, end, ErrorKind::Timeout));
        }
    }

    fn stop_listening(&self, user: &mut User) -> bool {
        let Some(deliveries) = &self.own_socket().deliveries else { return false };
        deliveries.account.stop_listening(user.number());
        deliveries.account.is_awaited(user.number())
    }

    fn forget_listener(&self, user: &mut User) {
        if let Some(deliveries) = &self.own_socket().deliveries {
            deliveries.account.stop_listening(user.number());
        }
    }

    fn is_awaited(&self, user: &User) -> bool {
        self.own_socket().deliveries.as_ref().is_some_and(|deliveries| deliveries.account.is_awaited(user.number()))
    }

    fn has_deliveries(&self) -> bool {
        self.own_socket().deliveries.as_ref().is_some_and(|deliveries| deliveries.account.has_any_awaited())
    }

    fn take_counts(&self) -> MessageCounts {
        self.counts.take()
    }

    fn forget_deliveries(&self) -> Vec<usize> {
        let Some(deliveries) = &self.own_socket().deliveries else { return Vec::new() };
        let own = self.own_deliveries.borrow_mut().take_all();
        deliveries.account.end(own).into_iter().map(|delivery| delivery.step).collect()
    }
}
