//! Flows: HTTP users that keep values from replies, branch, and wait, and may hold a WebSocket.
//!
//! A flow is compiled once: requests into pieces of bytes with values between them, steps into a
//! program. A waiting user is only an address in the program and its values. A request without
//! values, checks and captures costs as much as with the plain HTTP driver.

mod capture;
mod check;
mod compile;
mod deliveries;
mod diagnostics;
mod feeds;
mod json_path;
mod program;
mod redirect;
mod reply;
mod request;
mod socket;
mod template;
mod unreached_steps;
mod user;
mod uuid;
mod value;

pub use compile::CompiledFlow;
pub use diagnostics::diagnostics;
pub use template::excerpt;
pub use unreached_steps::UnreachedSteps;

use crate::http::exchange::ExchangeState;
use crate::websocket::Event;
use capture::InspectedReply;
use deliveries::OwnDeliveries;
use feeds::Cursors;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::protocol::{Failure, Next, Protocol, ReceivedReply, Sending, Signal, Violation};
use plimsoll_engine::sockets::{MessageCounts, Sockets};
use plimsoll_model::load::Share;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Instant;
use plimsoll_web::{Coding, Jar, UnixSeconds};
use redirect::Redirect;
use reply::{LARGEST_BODY, Reply};
use request::Request;
use socket::SocketSession;
use std::cell::{Cell, RefCell};
use user::User;
use uuid::NumberFinder;

/// The most unused reply buffers that a thread keeps.
const MOST_SPARE: usize = 256;

/// The flow on one thread.
pub struct Flows<'a> {
    flow: &'a CompiledFlow,
    clock: Cell<Clock>,
    cursors: Cursors,
    /// The start of the load's clock, in nanoseconds since 1970.
    started_unix_nanos: u64,
    /// A buffer for the bodies of requests.
    scratch: RefCell<Vec<u8>>,
    /// Unused reply buffers.
    #[allow(clippy::vec_box, reason = "a box goes from here to a connection and back; idle connections have none")]
    spare: RefCell<Vec<Box<Reply>>>,
    /// Finds what requests of this run carry in messages.
    numbers: NumberFinder,
    own_deliveries: RefCell<OwnDeliveries>,
    /// Messages since they were last counted.
    counts: Cell<MessageCounts>,
    /// How many steps and messages there were so far.
    places: Cell<u64>,
    /// A buffer for the events of a socket.
    events: RefCell<Vec<Event>>,
}

/// One connection.
pub struct Connection(Link);

enum Link {
    /// It carries requests.
    Http {
        exchange: ExchangeState,
        /// The reply of the exchange under way.
        reply: Option<Box<Reply>>,
    },
    /// It is the socket of a user.
    Socket(Box<SocketSession>),
}

impl<'a> Flows<'a> {
    /// The flow on the thread that carries this share.
    pub fn new(flow: &'a CompiledFlow, share: Share, clock: Clock, seed: u64) -> Flows<'a> {
        let started_unix_nanos = clock.unix(clock.first()).0.unsigned_abs();
        Flows {
            flow,
            clock: Cell::new(clock),
            cursors: flow.feeds.cursors(seed, share),
            started_unix_nanos,
            scratch: RefCell::default(),
            spare: RefCell::default(),
            numbers: NumberFinder::new(started_unix_nanos),
            own_deliveries: RefCell::default(),
            counts: Cell::default(),
            places: Cell::default(),
            events: RefCell::default(),
        }
    }

    /// An instant in milliseconds since 1970.
    fn unix_millis(&self, instant: Instant) -> i64 {
        self.clock.get().unix(instant).0 / 1_000_000
    }

    fn give_back(&self, mut reply: Box<Reply>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < MOST_SPARE {
            reply.shrink();
            spare.push(reply);
        }
    }

    fn request_of(&self, user: &User) -> &'a Request {
        &self.flow.requests[user.request as usize]
    }

    /// Processes a reply: keeps cookies, follows redirects, runs checks, and takes captures.
    fn process_reply(&self, user: &mut User, reply: &mut Reply) -> Result<(), Failure> {
        let request = self.request_of(user);
        if self.flow.cookies {
            self.keep_cookies(&mut user.jar, reply, user.now);
        }
        let before = user.redirect.take();
        if let Some(redirect) = Redirect::after(self.flow, request, before.as_deref(), reply)? {
            user.redirect = Some(Box::new(redirect));
            return Ok(());
        }
        if request.keep.body {
            decode_body(reply)?;
        }
        let inspected = InspectedReply::new(reply);
        request.checks.check_status(&inspected)?;
        request.checks.check_rest(&inspected, &mut user.context(self), user.elapsed)?;
        for capture in &request.captures {
            let name = &self.flow.names[capture.into as usize];
            let kept = |cookie: &str| self.kept_cookie(&user.jar, cookie, reply, user.now);
            user.values[capture.into as usize] = capture.extract(name, &inspected, &mut user.random, kept)?;
        }
        Ok(())
    }

    fn keep_cookies(&self, jar: &mut Jar, reply: &Reply, now: i64) {
        let place = redirect::place(&self.flow.origin, &reply.target);
        for cookie in reply.header("set-cookie").filter_map(|cookie| std::str::from_utf8(cookie).ok()) {
            jar.receive(cookie, place, UnixSeconds(now / 1000));
        }
    }

    fn kept_cookie(&self, jar: &Jar, wanted: &str, reply: &Reply, now: i64) -> Option<String> {
        let place = redirect::place(&self.flow.origin, &reply.target);
        let cookies = jar.cookies(place, UnixSeconds(now / 1000));
        cookies.into_iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
    }
}

/// Undoes the content codings of a body that checks or captures need.
fn decode_body(reply: &mut Reply) -> Result<(), Failure> {
    if reply.is_cut {
        let detail = format!("expected a body of at most {LARGEST_BODY} bytes to look into, found a larger one");
        return Err(Failure::new(ErrorKind::Check, detail));
    }
    let mut codings = Vec::new();
    let damaged = |fault: plimsoll_web::CodingFault| Failure::new(ErrorKind::Protocol, fault.to_string());
    for header in reply.header("content-encoding") {
        codings.extend(Coding::read_list(&String::from_utf8_lossy(header)).map_err(damaged)?);
    }
    if !codings.is_empty() {
        let body = std::mem::take(&mut reply.body);
        reply.body = plimsoll_web::coding::decode(body, &codings, LARGEST_BODY).map_err(damaged)?;
    }
    Ok(())
}

impl Protocol for Flows<'_> {
    type Connection = Connection;
    type User = User;

    fn user(&self, number: u64, seed: u64) -> User {
        self.new_user(number, seed)
    }

    fn set_clock(&self, clock: Clock) {
        self.clock.set(clock);
    }

    #[inline]
    fn begin(&self, user: &mut User) -> Next {
        self.begin_iteration(user)
    }

    #[inline]
    fn next(&self, user: &mut User) -> Next {
        self.follow(user)
    }

    fn retires(&self) -> bool {
        !self.flow.program.is_empty_at(self.flow.program.on_stop)
    }

    fn retire(&self, user: &mut User) -> Next {
        self.begin_on_stop(user)
    }

    fn first_step(&self) -> Option<usize> {
        self.flow.first_step
    }

    fn open(&self, _out: &mut Vec<u8>) -> Connection {
        Connection(Link::Http { exchange: ExchangeState::default(), reply: None })
    }

    #[inline]
    fn capacity(&self, connection: &Connection) -> usize {
        match &connection.0 {
            Link::Http { exchange, .. } => usize::from(exchange.is_reusable()),
            Link::Socket(session) => session.capacity(),
        }
    }

    #[inline]
    fn is_reusable(&self, connection: &Connection) -> bool {
        match &connection.0 {
            Link::Http { exchange, .. } => exchange.is_reusable(),
            Link::Socket(session) => session.is_reusable(),
        }
    }

    fn send(&self, connection: &mut Connection, user: &mut User, sending: Sending, out: &mut Vec<u8>) {
        let (exchange, kept) = match &mut connection.0 {
            Link::Http { exchange, reply } => (exchange, reply),
            Link::Socket(session) => return self.send_on_socket(session, user, sending, out),
        };
        user.now = self.unix_millis(sending.now);
        let request = self.request_of(user);
        let scratch = &mut *self.scratch.borrow_mut();
        let mut state =
            request::WriteState { flow: self.flow, jar: &user.jar, redirect: user.redirect.as_deref(), scratch };
        let target = request.write(&mut user.context(self), &mut state, out);
        let mut reply = self.spare.borrow_mut().pop().unwrap_or_default();
        reply.expect(request.keep, &out[target]);
        *kept = Some(reply);
        exchange.send(sending.ticket, &*request.method == "HEAD");
        if self.flow.socket.is_some() && user.redirect.is_none() {
            (user.last_step, user.posted) = (self.next_place(), None);
            if let Some(topic) = &request.delivers_to {
                self.begin_delivery(user, topic, request.step, sending.now);
            }
        }
    }

    fn receive(
        &self,
        connection: &mut Connection,
        input: &[u8],
        out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation> {
        match &mut connection.0 {
            Link::Http { exchange, reply: Some(reply) } => exchange.receive(input, &mut **reply, signals, any_status),
            Link::Http { exchange, reply: None } => exchange.receive(input, &mut (), signals, any_status),
            Link::Socket(session) => {
                self.receive_on_socket(session, input, out, signals);
                Ok(())
            }
        }
    }

    fn end_of_input(&self, connection: &mut Connection, signals: &mut Vec<Signal>) {
        match &mut connection.0 {
            Link::Http { exchange, .. } => exchange.end_of_input(signals, any_status),
            Link::Socket(session) => self.end_of_socket(session, signals),
        }
    }

    fn conclude(
        &self,
        connection: &mut Connection,
        user: &mut User,
        received: ReceivedReply,
        reply: plimsoll_engine::protocol::Reply,
    ) -> plimsoll_engine::protocol::Reply {
        user.now = self.unix_millis(received.now);
        user.elapsed.0 += received.took.0;
        let processed = match &mut connection.0 {
            Link::Http { reply: kept, .. } => {
                let Some(mut buffer) = kept.take() else { return reply };
                let processed = self.process_reply(user, &mut buffer);
                self.give_back(buffer);
                if processed.is_err() {
                    self.cancel_delivery(user);
                }
                processed
            }
            Link::Socket(session) => session.take_arrived().map_or(Ok(()), |message| self.take_message(user, &message)),
        };
        match processed {
            Ok(()) => reply,
            Err(failure) => plimsoll_engine::protocol::Reply::Failed(failure),
        }
    }

    fn cancel(&self, connection: &mut Connection, _ticket: u32, _out: &mut Vec<u8>) -> bool {
        match &mut connection.0 {
            Link::Http { exchange, .. } => {
                exchange.abandon();
                false
            }
            Link::Socket(session) => {
                session.cancel();
                true
            }
        }
    }

    fn close(&self, connection: &mut Connection, out: &mut Vec<u8>) {
        if let Link::Socket(session) = &mut connection.0 {
            session.close(out);
        }
    }

    fn sockets(&self) -> Option<&dyn Sockets<Connection, User>> {
        self.flow.socket.as_ref().map(|_| self as &dyn Sockets<Connection, User>)
    }
}

/// Accepts a complete reply of any status. Its user checks it in [`Protocol::conclude`].
fn any_status(_status: u16) -> plimsoll_engine::protocol::Reply {
    plimsoll_engine::protocol::Reply::Expected { number: None }
}

#[cfg(test)]
mod tests;
