//! The interface between the engine and the protocols: sans-IO state machines, bytes in, bytes out.
//!
//! A protocol never touches a socket, a clock, or a timer. The engine passes it the bytes that were read and sends what
//! it writes to `out`. The protocol knows a user that waits for a reply only by a ticket. It also determines the steps
//! of its users: the engine asks for the next one, and performs it.

use crate::clock::Clock;
use crate::sockets::{SocketAction, Sockets};
use plimsoll_model::record::{ErrorKind, Outcome};
use plimsoll_model::units::{Instant, Nanos};

/// A wire protocol with its requests, compiled once and shared by all users of a thread.
pub trait Protocol {
    /// The state of one connection.
    type Connection;

    /// The state of one user, with its place in the iteration.
    type User;

    /// The user of this number, from 0, among all users of the load.
    fn user(&self, number: u64, seed: u64) -> Self::User;

    /// The users have another load, on this clock. It is for protocols that need the time.
    fn set_clock(&self, _clock: Clock) {}

    /// Begins an iteration: returns its first step. Steps that a user runs once, before its first iteration, may come
    /// first; [`Next::Begun`] then separates the two.
    fn begin(&self, user: &mut Self::User) -> Next;

    /// The step after an exchange that ended well, or after a pause.
    fn next(&self, user: &mut Self::User) -> Next;

    /// True if users have steps for stopping: only then [`Protocol::retire`] is called.
    fn retires(&self) -> bool {
        false
    }

    /// The first step of a user that begins no further iteration; [`Protocol::next`] gives the others. The user may
    /// have begun no iteration at all, and may begin again later.
    fn retire(&self, _user: &mut Self::User) -> Next {
        Next::Done
    }

    /// The step under which iterations are recorded that could never begin; none if iterations do not all begin with
    /// the same step.
    fn first_step(&self) -> Option<usize> {
        Some(0)
    }

    /// A new connection, not yet ready. Writes its opening bytes to `out`.
    fn open(&self, out: &mut Vec<u8>) -> Self::Connection;

    /// How many exchanges the connection can carry at once: 0 until it is ready, and again once
    /// it takes no further exchange (ask [`Protocol::is_reusable`]).
    fn capacity(&self, connection: &Self::Connection) -> usize;

    /// True if the connection will take another exchange, now or when it is ready.
    fn is_reusable(&self, connection: &Self::Connection) -> bool;

    /// Writes a request to `out`.
    fn send(&self, connection: &mut Self::Connection, user: &mut Self::User, request: Sending, out: &mut Vec<u8>);

    /// Takes bytes that were read, in any pieces. Completed replies go to `signals`; answers that the protocol itself
    /// requires go to `out`.
    ///
    /// # Errors
    /// The peer breaks the protocol: the connection is of no further use.
    fn receive(
        &self,
        connection: &mut Self::Connection,
        input: &[u8],
        out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation>;

    /// The peer has ended its side. If that completes a reply, it goes to `signals`; replies that are still open were
    /// cut short.
    fn end_of_input(&self, connection: &mut Self::Connection, signals: &mut Vec<Signal>);

    /// Passes a reply to its user, which may capture values from it and check it. Called for every reply, good or bad.
    fn conclude(
        &self,
        _: &mut Self::Connection,
        _user: &mut Self::User,
        _received: ReceivedReply,
        reply: Reply,
    ) -> Reply {
        reply
    }

    /// Gives up waiting for `ticket`. Returns true if the connection can still be used.
    fn cancel(&self, connection: &mut Self::Connection, ticket: u32, out: &mut Vec<u8>) -> bool;

    /// Writes the closing message of a connection that is about to be closed, if the protocol has one.
    fn close(&self, connection: &mut Self::Connection, out: &mut Vec<u8>);

    /// The sockets that its users hold beside their connections, if they hold some.
    fn sockets(&self) -> Option<&dyn Sockets<Self::Connection, Self::User>> {
        None
    }
}

/// The next action of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The exchange of a step.
    Exchange(usize),
    /// The exchange of a step that cannot be made: it fails unsent, and the iteration with it.
    Refused(usize, Failure),
    /// A pause of this length, which is not part of the iteration's duration.
    Pause(Nanos),
    /// Something on the user's socket.
    Socket(SocketAction),
    /// The steps before the first iteration are over, and only what follows counts in its duration. The engine asks for
    /// the next action at once.
    Begun,
    /// The iteration is over.
    Done,
    /// It fails without an exchange.
    Failed(Failure),
    /// The user has nothing more to do, and this iteration does not count. Only before [`Next::Begun`].
    Stop,
}

/// The place of a user that makes the same exchanges in every iteration, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct InOrder(u32);

impl InOrder {
    /// Begins an iteration with the first step.
    #[inline]
    pub fn begin(&mut self) -> Next {
        self.0 = 0;
        Next::Exchange(0)
    }

    /// The next of `steps` steps, or the end of the iteration.
    #[inline]
    pub fn next(&mut self, steps: usize) -> Next {
        self.0 += 1;
        if (self.0 as usize) < steps { Next::Exchange(self.0 as usize) } else { Next::Done }
    }
}

/// A request that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The step whose request it is.
    pub step: usize,
    /// The ticket by which its reply is reported.
    pub ticket: u32,
    /// When.
    pub now: Instant,
}

/// A reply that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedReply {
    /// The step whose reply it is.
    pub step: usize,
    /// When.
    pub now: Instant,
    /// How long after the request.
    pub took: Nanos,
}

/// An event of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The first byte of its response has arrived.
    FirstByte {
        /// The exchange.
        ticket: u32,
    },
    /// It has ended.
    Done {
        /// The exchange.
        ticket: u32,
        /// How.
        reply: Reply,
    },
    /// The peer has ended the connection in the way of the protocol. Only sockets send it.
    Lost(Failure),
    /// One user who listens has got what the exchange of a step carried, or will not get it. Only sockets send it.
    Delivery {
        /// The step.
        step: usize,
        /// When the request was sent.
        sent: Instant,
        /// When it came, or was given up.
        done: Instant,
        /// [`Outcome::Ok`] if it came.
        outcome: Outcome,
    },
}

/// How an exchange ended, as the protocol judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// As the study expects.
    Expected {
        /// The number in the reply, if the study checks a sequence of numbers and the reply has one.
        number: Option<u64>,
    },
    /// Otherwise.
    Failed(Failure),
}

/// Why an exchange, a call, or the preparation of one failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What was attempted on what, what was found, and what to do about it.
    pub detail: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Failure {
        Failure { kind, detail: detail.into() }
    }
}

/// A peer that breaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

impl Violation {
    /// A violation with a text that says what was expected and what was found.
    pub fn new(text: impl Into<String>) -> Violation {
        Violation(text.into())
    }
}
