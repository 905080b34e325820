//! Flows: HTTP users that keep what they were told, branch, and wait.
//!
//! A flow is compiled once: requests into pieces of bytes with values between them, steps into a
//! program. A user is where it stands in the program and what it knows; nothing else of it is kept
//! while it waits. A request without values that nobody looks into costs what it costs the bare
//! driver.

mod capture;
mod check;
mod compile;
mod diagnostics;
mod feeds;
mod json_path;
mod program;
mod redirect;
mod reply;
mod request;
mod steps_not_made;
mod template;
mod user;
mod value;

pub use compile::CompiledFlow;
pub use diagnostics::diagnostics;
pub use steps_not_made::StepsNotMade;
pub use template::sample;

use crate::http::wire::Wire;
use capture::Seen;
use feeds::Cursors;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::protocol::{Failure, Next, Protocol, ReceivedReply, Sending, Signal, Violation};
use plimsoll_model::load::Share;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Instant;
use plimsoll_web::{Coding, Jar, UnixSeconds};
use redirect::Hop;
use reply::{LARGEST_BODY, Reply};
use request::Request;
use std::cell::RefCell;
use user::User;

/// How much space for replies a thread keeps that are not under way.
const MOST_SPARE: usize = 256;

/// The flow on one thread.
pub struct Flows<'a> {
    plan: &'a CompiledFlow,
    clock: Clock,
    cursors: Cursors,
    /// When the trial's clock was started, in nanoseconds since 1970.
    born: u64,
    /// Space for bodies of requests.
    scratch: RefCell<Vec<u8>>,
    /// Space for replies, used again.
    #[allow(clippy::vec_box, reason = "a box goes from here to a connection and back; idle connections have none")]
    spare: RefCell<Vec<Box<Reply>>>,
}

/// One connection.
pub struct Connection {
    wire: Wire,
    /// While an exchange is under way.
    reply: Option<Box<Reply>>,
}

impl<'a> Flows<'a> {
    /// The flow on the thread that carries this share.
    pub fn new(plan: &'a CompiledFlow, share: Share, clock: Clock, seed: u64) -> Flows<'a> {
        Flows {
            plan,
            clock,
            cursors: plan.feeds.cursors(seed, share),
            born: clock.unix(clock.first()).0.unsigned_abs(),
            scratch: RefCell::default(),
            spare: RefCell::default(),
        }
    }

    /// An instant in milliseconds since 1970.
    fn unix_millis(&self, instant: Instant) -> i64 {
        self.clock.unix(instant).0 / 1_000_000
    }

    fn give_back(&self, mut reply: Box<Reply>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < MOST_SPARE {
            reply.shrink();
            spare.push(reply);
        }
    }

    fn request_of(&self, user: &User) -> &'a Request {
        &self.plan.requests[user.request as usize]
    }

    /// Looks at a reply: cookies, redirects, what it must be, what is taken from it.
    fn look_at(&self, user: &mut User, reply: &mut Reply) -> Result<(), Failure> {
        let request = self.request_of(user);
        if self.plan.cookies {
            self.keep_cookies(&mut user.jar, reply, user.now);
        }
        let before = user.hop.take();
        if let Some(hop) = Hop::after(self.plan, request, before.as_deref(), reply)? {
            user.hop = Some(Box::new(hop));
            return Ok(());
        }
        if request.keep.body {
            make_readable(reply)?;
        }
        let seen = Seen::new(reply);
        request.checks.status(&seen)?;
        request.checks.rest(&seen, &mut user.known(self), user.spent)?;
        for capture in &request.captures {
            let name = &self.plan.names[capture.into as usize];
            let kept = |cookie: &str| self.kept_cookie(&user.jar, cookie, reply, user.now);
            user.values[capture.into as usize] = capture.take(name, &seen, &mut user.random, kept)?;
        }
        Ok(())
    }

    fn keep_cookies(&self, jar: &mut Jar, reply: &Reply, now: i64) {
        let place = redirect::place(&self.plan.origin, &reply.target);
        for cookie in reply.header("set-cookie").filter_map(|cookie| std::str::from_utf8(cookie).ok()) {
            jar.receive(cookie, place, UnixSeconds(now / 1000));
        }
    }

    fn kept_cookie(&self, jar: &Jar, wanted: &str, reply: &Reply, now: i64) -> Option<String> {
        let place = redirect::place(&self.plan.origin, &reply.target);
        let cookies = jar.cookies(place, UnixSeconds(now / 1000));
        cookies.into_iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
    }
}

/// Undoes the codings of a body that somebody looks into.
fn make_readable(reply: &mut Reply) -> Result<(), Failure> {
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

    #[inline]
    fn begin(&self, user: &mut User) -> Next {
        self.begin_iteration(user)
    }

    #[inline]
    fn next(&self, user: &mut User) -> Next {
        self.follow(user)
    }

    fn retires(&self) -> bool {
        !self.plan.program.is_empty_at(self.plan.program.on_stop)
    }

    fn retire(&self, user: &mut User) -> Next {
        self.begin_to_stop(user)
    }

    fn first_step(&self) -> Option<usize> {
        self.plan.first_step
    }

    fn open(&self, _out: &mut Vec<u8>) -> Connection {
        Connection { wire: Wire::default(), reply: None }
    }

    #[inline]
    fn capacity(&self, connection: &Connection) -> usize {
        usize::from(connection.wire.is_reusable())
    }

    #[inline]
    fn is_reusable(&self, connection: &Connection) -> bool {
        connection.wire.is_reusable()
    }

    fn send(&self, connection: &mut Connection, user: &mut User, sending: Sending, out: &mut Vec<u8>) {
        user.now = self.unix_millis(sending.now);
        let request = self.request_of(user);
        let scratch = &mut *self.scratch.borrow_mut();
        let mut with = request::Sending { plan: self.plan, jar: &user.jar, hop: user.hop.as_deref(), scratch };
        let target = request.write(&mut user.known(self), &mut with, out);
        let mut reply = self.spare.borrow_mut().pop().unwrap_or_default();
        reply.expect(request.keep, &out[target]);
        connection.reply = Some(reply);
        connection.wire.send(sending.ticket, &*request.method == "HEAD");
    }

    fn receive(
        &self,
        connection: &mut Connection,
        input: &[u8],
        _out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation> {
        match &mut connection.reply {
            Some(reply) => connection.wire.receive(input, &mut **reply, signals, whole),
            None => connection.wire.receive(input, &mut (), signals, whole),
        }
    }

    fn end_of_input(&self, connection: &mut Connection, signals: &mut Vec<Signal>) {
        connection.wire.end_of_input(signals, whole);
    }

    fn conclude(
        &self,
        connection: &mut Connection,
        user: &mut User,
        received: ReceivedReply,
        reply: plimsoll_engine::protocol::Reply,
    ) -> plimsoll_engine::protocol::Reply {
        let Some(mut kept) = connection.reply.take() else { return reply };
        user.now = self.unix_millis(received.now);
        user.spent.0 += received.took.0;
        let looked_at = self.look_at(user, &mut kept);
        self.give_back(kept);
        match looked_at {
            Ok(()) => reply,
            Err(failure) => plimsoll_engine::protocol::Reply::Failed(failure),
        }
    }

    fn cancel(&self, connection: &mut Connection, _ticket: u32, _out: &mut Vec<u8>) -> bool {
        connection.wire.give_up();
        false
    }

    fn close(&self, _connection: &mut Connection, _out: &mut Vec<u8>) {}
}

/// That a reply is whole; whether it is right is seen when its user looks at it.
fn whole(_status: u16) -> plimsoll_engine::protocol::Reply {
    plimsoll_engine::protocol::Reply::Expected { number: None }
}

#[cfg(test)]
mod tests;
