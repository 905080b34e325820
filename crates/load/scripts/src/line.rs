//! The connections of one thread: each belongs to a user, and carries requests of HTTP one after the other, or what a
//! user holds for longer.

use super::exchange::{Asked, Connected, Http};
use super::held::Held;
use super::origin::OriginId;
use super::secure::Configuration;
use plimsoll_engine::clock::Clock;
use plimsoll_engine::transport::{Broken, Transport};
use plimsoll_javascript::OpId;
use plimsoll_model::units::{Instant, Nanos};
use std::net::SocketAddr;

/// The most bytes of room that a connection keeps for its next request.
const MOST_KEPT: usize = 16 * 1024;

/// A connection, as its number on this thread.
pub(super) type LineId = u32;

/// A connection, being made or in use.
pub(super) struct Line {
    pub(super) user: u32,
    pub(super) origin: OriginId,
    pub(super) stage: Stage,
    /// None until it is known where to.
    pub(super) transport: Option<Transport>,
    pub(super) out: Vec<u8>,
    pub(super) load: Load,
    pub(super) connected: Connected,
    /// When it began to connect.
    pub(super) dialled: Instant,
    /// When the present stage began.
    since: Instant,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The name of the host is looked up.
    Naming,
    /// TCP is connecting.
    Connecting,
    /// TLS greets.
    Securing,
    /// What it is for can go.
    Open,
}

/// What a connection is for.
pub(super) enum Load {
    /// Requests; the first one while the connection is being made.
    Http { http: Http, first: Option<Box<Asked>> },
    /// What a user holds for longer.
    Held { held: Box<dyn Held>, secure: Configuration },
}

impl Load {
    /// When it takes too long to make the connection; none where whoever asked gives it up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Load::Http { first, .. } => first.as_ref().map(|asked| asked.deadline()),
            Load::Held { .. } => None,
        }
    }
}

impl Line {
    /// One that is not made yet, asked for at this instant.
    pub(super) fn new(user: u32, origin: OriginId, load: Load, asked: Instant) -> Line {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let none = Nanos(0);
        let connected =
            Connected { looked_up: none, connecting: none, tls_handshaking: none, remote: nowhere, tls: None };
        let (stage, transport, out) = (Stage::Naming, None, Vec::new());
        Line { user, origin, stage, transport, out, load, connected, dialled: asked, since: asked }
    }

    /// The time that the present stage took.
    pub(super) fn next_stage(&mut self, stage: Stage, now: Instant) -> Nanos {
        self.stage = stage;
        now.since(std::mem::replace(&mut self.since, now))
    }

    /// The transport of one that is past [`Stage::Naming`].
    pub(super) fn transport(&mut self) -> &mut Transport {
        self.transport.as_mut().expect("a connection that has events has a socket")
    }

    /// Sends the request that was written; when that was done.
    pub(super) fn depart(&mut self, now: Instant, clock: &Clock) -> Result<Instant, Broken> {
        if let Load::Http { http, .. } = &mut self.load {
            http.departs(now);
        }
        self.flush(clock)?;
        let gone = if let Load::Http { http, .. } = &self.load { http.departed() } else { None };
        Ok(gone.unwrap_or(now))
    }

    /// Sends what was written, as far as the kernel takes it.
    pub(super) fn flush(&mut self, clock: &Clock) -> Result<(), Broken> {
        let Some(transport) = self.transport.as_mut().filter(|_| self.stage >= Stage::Securing) else { return Ok(()) };
        if self.out.is_empty() && !transport.speaks_for_itself() {
            return Ok(());
        }
        transport.send(&mut self.out)?;
        if self.out.is_empty() {
            if self.out.capacity() > MOST_KEPT {
                self.out = Vec::new();
            }
            if let Load::Http { http, .. } = &mut self.load {
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
    pub(super) fn take_asked(&mut self) -> Option<Box<Asked>> {
        match &mut self.load {
            Load::Http { http, first } => http.asked.take().or_else(|| first.take()),
            Load::Held { .. } => None,
        }
    }

    fn asked(&self) -> Option<&Asked> {
        match &self.load {
            Load::Http { http, first } => http.asked.as_deref().or(first.as_deref()),
            Load::Held { .. } => None,
        }
    }

    /// Whether this operation is on it, or has opened it.
    pub(super) fn carries(&self, id: OpId) -> bool {
        match &self.load {
            Load::Http { .. } => self.asked().is_some_and(|asked| asked.id == id),
            Load::Held { held, .. } => held.knows(id),
        }
    }

    /// How long the request on it may take.
    pub(super) fn timeout(&self) -> Nanos {
        self.asked().map_or(Nanos(0), |asked| asked.timeout)
    }

    /// Whether it waits for a request to carry.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Open && matches!(&self.load, Load::Http { http, .. } if http.asked.is_none())
    }
}
