//! The connections of one thread: each belongs to a user, and carries requests of HTTP one after the other, or what a
//! user holds for longer.

use super::client_session::ClientSession;
use super::exchange::{ConnectionFacts, Http, PendingRequest};
use super::origin::OriginId;
use super::tls::Configuration;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::transport::{Broken, Transport};
use plimsoll_javascript::OpId;
use plimsoll_model::units::{Instant, Nanos};
use std::net::SocketAddr;

/// The most bytes of room that a connection keeps for its next request.
const MOST_KEPT: usize = 16 * 1024;

/// A connection, as its number on this thread.
pub(super) type ConnectionId = u32;

/// A connection, being made or in use.
pub(super) struct Connection {
    pub(super) user: u32,
    pub(super) origin: OriginId,
    pub(super) stage: Stage,
    /// None until it is known where to.
    pub(super) transport: Option<Transport>,
    pub(super) out: Vec<u8>,
    pub(super) traffic: Traffic,
    pub(super) connected: ConnectionFacts,
    /// When it began to connect.
    pub(super) dialled: Instant,
    /// When the present stage began.
    since: Instant,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The name of the host is looked up.
    Resolving,
    /// TCP is connecting.
    Connecting,
    /// TLS greets.
    Handshaking,
    /// What it is for can go.
    Open,
}

/// What a connection is for.
pub(super) enum Traffic {
    /// Requests; the first one while the connection is being made.
    Http { http: Http, first: Option<Box<PendingRequest>> },
    /// What a user holds for longer.
    Session { session: Box<dyn ClientSession>, tls: Configuration },
}

impl Traffic {
    /// When it takes too long to make the connection; none where whoever pending gives it up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Traffic::Http { first, .. } => first.as_ref().map(|pending| pending.deadline()),
            Traffic::Session { .. } => None,
        }
    }
}

impl Connection {
    /// One that is not made yet, pending for at this instant.
    pub(super) fn new(user: u32, origin: OriginId, traffic: Traffic, requested: Instant) -> Connection {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let none = Nanos(0);
        let connected =
            ConnectionFacts { looked_up: none, connecting: none, tls_handshaking: none, remote: nowhere, tls: None };
        let (stage, transport, out) = (Stage::Resolving, None, Vec::new());
        Connection { user, origin, stage, transport, out, traffic, connected, dialled: requested, since: requested }
    }

    /// The time that the present stage took.
    pub(super) fn next_stage(&mut self, stage: Stage, now: Instant) -> Nanos {
        self.stage = stage;
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// The transport of one that is past [`Stage::Resolving`].
    pub(super) fn transport(&mut self) -> &mut Transport {
        self.transport.as_mut().expect("a connection that has events has a socket")
    }

    /// Sends the request that was written; when that was done.
    pub(super) fn depart(&mut self, now: Instant, clock: &Clock) -> Result<Instant, Broken> {
        if let Traffic::Http { http, .. } = &mut self.traffic {
            http.departs(now);
        }
        self.flush(clock)?;
        let gone = if let Traffic::Http { http, .. } = &self.traffic { http.departed() } else { None };
        Ok(gone.unwrap_or(now))
    }

    /// Sends what was written, as far as the kernel takes it.
    pub(super) fn flush(&mut self, clock: &Clock) -> Result<(), Broken> {
        let Some(transport) = self.transport.as_mut().filter(|_| self.stage >= Stage::Handshaking) else {
            return Ok(());
        };
        if self.out.is_empty() && !transport.speaks_for_itself() {
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

    /// The bytes out and in that nobody has been charged with yet.
    pub(super) fn take_bytes(&mut self) -> (u64, u64) {
        self.transport.as_mut().map_or((0, 0), |transport| {
            (std::mem::take(&mut transport.bytes_out), std::mem::take(&mut transport.bytes_in))
        })
    }

    /// Takes the request off that is on it, or that it is being made for.
    pub(super) fn take_request(&mut self) -> Option<Box<PendingRequest>> {
        match &mut self.traffic {
            Traffic::Http { http, first } => http.pending.take().or_else(|| first.take()),
            Traffic::Session { .. } => None,
        }
    }

    fn pending(&self) -> Option<&PendingRequest> {
        match &self.traffic {
            Traffic::Http { http, first } => http.pending.as_deref().or(first.as_deref()),
            Traffic::Session { .. } => None,
        }
    }

    /// Whether this operation is on it, or has opened it.
    pub(super) fn carries(&self, id: OpId) -> bool {
        match &self.traffic {
            Traffic::Http { .. } => self.pending().is_some_and(|pending| pending.id == id),
            Traffic::Session { session, .. } => session.knows(id),
        }
    }

    /// How long the request on it may take.
    pub(super) fn timeout(&self) -> Nanos {
        self.pending().map_or(Nanos(0), |pending| pending.timeout)
    }

    /// Whether it waits for a request to carry.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Open && matches!(&self.traffic, Traffic::Http { http, .. } if http.pending.is_none())
    }
}
