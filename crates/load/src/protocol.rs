//! The seam between the engine and the protocols: sans-IO state machines, bytes in, bytes out.
//!
//! A protocol never touches a socket, a clock, or a timer. The engine gives it what was read and
//! sends what it leaves in `out`; whoever waits for a reply is known to it only by a ticket.

use plimsoll_model::record::ErrorKind;

/// A wire protocol with its requests, compiled once and shared read-only by all connections.
pub trait Protocol: Sync {
    /// The state of one connection.
    type Connection;

    /// A new connection, not yet ready; writes what opens it to `out`.
    fn open(&self, out: &mut Vec<u8>) -> Self::Connection;

    /// How many exchanges the connection can carry at once: 0 until it is ready, and again once
    /// it takes no further exchange (ask [`Protocol::is_reusable`]).
    fn capacity(&self, connection: &Self::Connection) -> usize;

    /// Whether the connection will take another exchange, now or when it is ready.
    fn is_reusable(&self, connection: &Self::Connection) -> bool;

    /// Writes the request of `step` to `out`; its reply will carry `ticket`.
    fn send(&self, connection: &mut Self::Connection, step: usize, ticket: u32, out: &mut Vec<u8>);

    /// Takes bytes that were read, in any pieces. What they complete is told in `signals`;
    /// answers that the protocol itself demands go to `out`.
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

    /// The peer has ended its side. Where that completes a reply, `signals` says so; whatever is
    /// still open after it was cut short.
    fn end_of_input(&self, connection: &mut Self::Connection, signals: &mut Vec<Signal>);

    /// Gives up waiting for `ticket`. Returns whether the connection can go on without it.
    fn cancel(&self, connection: &mut Self::Connection, ticket: u32, out: &mut Vec<u8>) -> bool;

    /// Writes the farewell of a connection that is about to be closed, if the protocol has one.
    fn close(&self, connection: &mut Self::Connection, out: &mut Vec<u8>);
}

/// What happened to an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The first byte of its response has come.
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
}

/// How an exchange ended, as far as the protocol can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// As the study expects.
    Expected {
        /// The number in the reply, where the study checks a sequence of them and there is one.
        number: Option<u64>,
    },
    /// Otherwise.
    Failed {
        /// What kind of failure.
        kind: ErrorKind,
        /// What came back, in words.
        detail: String,
    },
}

/// A peer that breaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

impl Violation {
    /// From a text that says what was expected and what was found.
    pub(crate) fn new(text: impl Into<String>) -> Violation {
        Violation(text.into())
    }
}
