//! A connection of a script's user. It carries HTTP requests one after the other, or a session.

use super::client_session::ClientSession;
use super::exchange::{ConnectionFacts, Http, PendingRequest};
use super::origin::OriginId;
use super::tls::Configuration;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::transport::{Transport, TransportError};
use plimsoll_javascript::{Held, HeldMemory, OpId};
use plimsoll_model::units::{Instant, Nanos};
use std::net::SocketAddr;
use std::rc::Rc;

/// The largest send buffer that a connection keeps for its next request, in bytes.
const MOST_KEPT: usize = 16 * 1024;

/// After how many bytes it is counted again what a session keeps.
const COUNT_AFTER: usize = 64 * 1024;

/// The number of a connection on its thread.
pub(super) type ConnectionId = u32;

/// A connection, being made or in use.
pub(super) struct Connection {
    pub(super) user: u32,
    pub(super) origin: OriginId,
    pub(super) stage: Stage,
    /// None until the address is known.
    pub(super) transport: Option<Transport>,
    pub(super) out: Vec<u8>,
    pub(super) traffic: Traffic,
    pub(super) connected: ConnectionFacts,
    /// True if it could not be made.
    pub(super) has_failed: bool,
    /// When it began to connect.
    pub(super) dialled: Instant,
    /// When the present stage began.
    since: Instant,
}

/// How far a connection is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The host's name is being resolved.
    Resolving,
    /// TCP is connecting.
    Connecting,
    /// The TLS handshake is under way.
    Handshaking,
    /// Requests can be sent.
    Open,
}

/// What a connection carries.
pub(super) enum Traffic {
    /// Requests of HTTP; `first` is the request for which the connection is being made.
    Http { http: Http, first: Option<Box<PendingRequest>> },
    /// A session.
    Session { session: Box<dyn ClientSession>, tls: Configuration, kept: Kept },
}

/// What a session keeps, as it was counted last.
pub(super) struct Kept {
    held: Held,
    /// Bytes that have come in or out since.
    moved: usize,
}

impl Kept {
    /// In the memory of the session's user.
    pub(super) fn within(memory: &Rc<HeldMemory>) -> Kept {
        Kept { held: Held::nothing(memory), moved: 0 }
    }
}

impl Traffic {
    /// When the connection must be made; none for a session, which is cancelled by its opener.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Traffic::Http { first, .. } => first.as_ref().map(|pending| pending.deadline()),
            Traffic::Session { .. } => None,
        }
    }
}

impl Connection {
    /// A connection that is not made yet, requested at this instant.
    pub(super) fn new(user: u32, origin: OriginId, traffic: Traffic, requested: Instant) -> Connection {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let none = Nanos(0);
        let connected =
            ConnectionFacts { looked_up: none, connecting: none, tls_handshaking: none, remote: nowhere, tls: None };
        let (stage, transport, out) = (Stage::Resolving, None, Vec::new());
        let (dialled, since, has_failed) = (requested, requested, false);
        Connection { user, origin, stage, transport, out, traffic, connected, has_failed, dialled, since }
    }

    /// Enters the next stage. Returns how long the present one took.
    pub(super) fn next_stage(&mut self, stage: Stage, now: Instant) -> Nanos {
        self.stage = stage;
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// The socket of a connection that is past [`Stage::Resolving`].
    pub(super) fn transport(&mut self) -> &mut Transport {
        self.transport.as_mut().expect("a connection that has events has a socket")
    }

    /// Sends the request that was written. Returns when it was sent.
    pub(super) fn depart(&mut self, now: Instant, clock: &Clock) -> Result<Instant, TransportError> {
        if let Traffic::Http { http, .. } = &mut self.traffic {
            http.departs(now);
        }
        self.flush(clock)?;
        let gone = if let Traffic::Http { http, .. } = &self.traffic { http.departed() } else { None };
        Ok(gone.unwrap_or(now))
    }

    /// Sends the output, as far as the kernel accepts it.
    pub(super) fn flush(&mut self, clock: &Clock) -> Result<(), TransportError> {
        let Some(transport) = self.transport.as_mut().filter(|_| self.stage >= Stage::Handshaking) else {
            return Ok(());
        };
        if self.out.is_empty() && !transport.speaks_for_itself() {
            return Ok(());
        }
        if matches!(&self.traffic, Traffic::Http { http, .. } if http.is_departing()) {
            // It is counted when it departs, at the end of this turn of the loop.
            return Ok(());
        }
        transport.send(&mut self.out)?;
        if self.out.is_empty() {
            if self.out.capacity() > MOST_KEPT {
                self.out = Vec::new();
            }
            if let Traffic::Http { http, .. } = &mut self.traffic {
                http.is_written(clock);
            }
        }
        Ok(())
    }

    /// Takes the bytes sent and received that are not recorded yet.
    pub(super) fn take_bytes(&mut self) -> (u64, u64) {
        self.transport.as_mut().map_or((0, 0), |transport| {
            (std::mem::take(&mut transport.bytes_out), std::mem::take(&mut transport.bytes_in))
        })
    }

    /// Takes the request that is under way on it, or for which it is being made.
    pub(super) fn take_request(&mut self) -> Option<Box<PendingRequest>> {
        match &mut self.traffic {
            Traffic::Http { http, first } => http.pending.take().or_else(|| first.take()),
            Traffic::Session { .. } => None,
        }
    }

    /// The request that is written on it and waits for a response.
    pub(super) fn written(&mut self) -> Option<&mut PendingRequest> {
        match &mut self.traffic {
            Traffic::Http { http, .. } => http.pending.as_deref_mut(),
            Traffic::Session { .. } => None,
        }
    }

    /// True from the first packet until it is open, or could not be made.
    pub(super) fn is_being_made(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Handshaking) && !self.has_failed
    }

    fn pending(&self) -> Option<&PendingRequest> {
        match &self.traffic {
            Traffic::Http { http, first } => http.pending.as_deref().or(first.as_deref()),
            Traffic::Session { .. } => None,
        }
    }

    /// True if it carries this operation, or was made for it.
    pub(super) fn carries(&self, id: OpId) -> bool {
        match &self.traffic {
            Traffic::Http { .. } => self.pending().is_some_and(|pending| pending.id == id),
            Traffic::Session { session, .. } => session.knows(id),
        }
    }

    /// True if something is under way on it that ends by itself: connecting, a request, a call.
    pub(super) fn is_waiting(&self) -> bool {
        match &self.traffic {
            Traffic::Http { .. } => self.pending().is_some(),
            Traffic::Session { session, .. } => session.is_waiting(),
        }
    }

    /// Moves all instants by `by` nanoseconds.
    pub(super) fn shift(&mut self, by: i64) {
        (self.dialled, self.since) = (self.dialled.shifted(by), self.since.shifted(by));
        match &mut self.traffic {
            Traffic::Http { http, first } => http.pending.iter_mut().chain(first).for_each(|pending| pending.shift(by)),
            Traffic::Session { session, .. } => session.shift(by),
        }
    }

    /// How long the request on it may take.
    pub(super) fn timeout(&self) -> Nanos {
        self.pending().map_or(Nanos(0), |pending| pending.timeout)
    }

    /// Counts what its session keeps, after `moved` more bytes came in or out.
    ///
    /// # Errors
    /// More than `most` bytes wait to be sent, or the user holds too much. The error says which.
    pub(super) fn count_kept(&mut self, moved: usize, most: usize) -> Result<(), String> {
        let Traffic::Session { session, kept, .. } = &mut self.traffic else { return Ok(()) };
        kept.moved += moved;
        if kept.moved < COUNT_AFTER {
            return Ok(());
        }
        kept.moved = 0;
        let unsent = self.out.len() + session.unsent();
        kept.held.set(unsent + session.unfinished());
        let memory = kept.held.memory();
        if unsent > most {
            return Err(format!("the server does not read: more than {most} bytes wait to be sent"));
        }
        if memory.is_exceeded() {
            return Err(format!("what the user holds is larger than {} bytes together", memory.most()));
        }
        Ok(())
    }

    /// True if it waits for a request to carry.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Open && matches!(&self.traffic, Traffic::Http { http, .. } if http.pending.is_none())
    }
}
