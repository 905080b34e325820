//! Moves bytes: handles events of connections, and their effects on requests and sessions.

use super::{Network, RESOLVER, UserEvent};
use crate::client_session::Io;
use crate::connection::{ConnectionId, Stage, Traffic};
use crate::exchange::{ConnectionFacts, Fault, PendingRequest, ResponseProgress};
use crate::network::Reuse;
use plimsoll_engine::event_loop::context::{LoopContext, MOST_READS};
use plimsoll_engine::transport::Chunk;
use plimsoll_k6::operations::{Event, HttpFaultKind};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Instant;
use rustix::event::epoll::EventFlags;
use std::mem;

impl Network {
    /// Handles an event of a descriptor.
    pub(crate) fn event(&mut self, context: &mut LoopContext<'_>, key: u64, flags: EventFlags) {
        if key == RESOLVER {
            self.names_resolved(context);
            return;
        }
        let Some(connection) = self.connections.of_key(key) else { return };
        if let Err(fault) = self.move_bytes(context, connection, flags)
            && self.connections.of_key(key).is_some()
        {
            self.lose(context, connection, fault);
        }
    }

    /// Handles the alarm of a connection's deadline.
    pub(crate) fn deadline(&mut self, context: &mut LoopContext<'_>, connection: ConnectionId) {
        let now = context.clock.now();
        if self.connections.has_passed(connection, now, &mut context.timers)
            && self.connections.get(connection).is_some()
        {
            let limit = self.connections.connection(connection).timeout().seconds();
            let detail = format!("request timeout: no answer within {limit} s");
            self.lose(context, connection, Fault::new(ErrorKind::Timeout, HttpFaultKind::Timeout, detail));
        }
    }

    /// Writes a request to an idle connection. `made` has the facts of the connection if this is its first request. The
    /// next [`Network::send_out`] sends it.
    pub(super) fn send(
        &mut self,
        context: &mut LoopContext<'_>,
        id: ConnectionId,
        pending: Box<PendingRequest>,
        made: Option<ConnectionFacts>,
    ) {
        self.connections.set_deadline(id, pending.deadline(), &mut context.timers);
        let connection = self.connections.connection(id);
        let Traffic::Http { http, .. } = &mut connection.traffic else { return };
        http.send(pending, made, self.shared.reuse == Reuse::Never, &mut connection.out);
        self.departing.push(self.connections.key(id));
    }

    /// Sends all requests that were written to connections, one right after the other. Returns true if there were any.
    /// Sending each between the work of users would wake the server for each, only to leave it idle a moment later.
    pub(crate) fn send_out(&mut self, context: &mut LoopContext<'_>) -> bool {
        if self.departing.is_empty() {
            return false;
        }
        let mut now = context.clock.now();
        let mut departing = mem::take(&mut self.departing);
        for key in departing.drain(..) {
            // The request may have been cancelled meanwhile.
            let Some(id) = self.connections.of_key(key) else { continue };
            self.count_departing(context, id);
            match self.connections.connection(id).depart(now, &context.clock) {
                Ok(gone) => now = gone,
                Err(broken) => self.lose(context, id, broken.into()),
            }
        }
        if self.departing.is_empty() {
            self.departing = departing;
        }
        true
    }

    fn move_bytes(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, flags: EventFlags) -> Result<(), Fault> {
        let key = self.connections.key(id);
        let connection = self.connections.connection(id);
        if connection.stage == Stage::Connecting {
            connection.transport().connected()?;
            connection.connected.connecting = connection.next_stage(Stage::Handshaking, context.clock.now());
        }
        if flags.contains(EventFlags::OUT) {
            connection.flush(&context.clock)?;
            self.with_session(context, id, |_, _| ());
        }
        if self.connections.of_key(key).is_some() {
            self.open_if_secure(context, id);
        }
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if !ended && !flags.contains(EventFlags::IN) {
            return Ok(());
        }
        for _ in 0..MOST_READS {
            if self.connections.of_key(key).is_none() || !self.read(context, id, ended)? {
                return Ok(());
            }
        }
        context.read_on(key, ended);
        Ok(())
    }

    fn open_if_secure(&mut self, context: &mut LoopContext<'_>, id: ConnectionId) {
        let connection = self.connections.connection(id);
        if connection.stage == Stage::Handshaking && connection.transport().is_open() {
            self.open(context, id, context.clock.now());
        }
    }

    /// Reads once. Returns true if more may be waiting, which includes the end of a connection that has `ended`. The
    /// bytes may themselves have ended the connection.
    fn read(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, ended: bool) -> Result<bool, Fault> {
        let key = self.connections.key(id);
        let connection = self.connections.connection(id);
        let transport = connection.transport.as_mut().expect("a connection that has events has a socket");
        let (bytes, more) = match transport.receive(&mut self.raw, &mut self.plain)? {
            Chunk::Empty => return Ok(false),
            Chunk::End => return self.end_of_input(context, id).map(|()| false),
            Chunk::Bytes(bytes, more) => (bytes, more),
        };
        let now = context.clock.now();
        match &mut connection.traffic {
            _ if bytes.is_empty() => {}
            Traffic::Http { http, .. } => {
                if let ResponseProgress::Whole { reusable } = http.receive(bytes, self.shared.largest_body, now)? {
                    self.finish(context, id, reusable, now);
                }
            }
            Traffic::Session { session, .. } => {
                let length = bytes.len();
                session.receive(bytes, &mut Io { now, out: &mut connection.out, outbox: &mut self.outbox });
                self.with_session(context, id, |_, _| ());
                self.bound_session(context, key, length);
            }
        }
        if self.connections.of_key(key).is_some() {
            // TLS may have bytes of its own to send.
            self.connections.connection(id).flush(&context.clock)?;
            self.open_if_secure(context, id);
        }
        Ok(more || ended)
    }

    /// The peer has ended its side.
    fn end_of_input(&mut self, context: &mut LoopContext<'_>, id: ConnectionId) -> Result<(), Fault> {
        let connection = self.connections.connection(id);
        match &connection.traffic {
            Traffic::Session { .. } if connection.stage == Stage::Open => self.end_session(context, id, None),
            Traffic::Http { http, .. } if http.end_of_input() => self.finish(context, id, false, context.clock.now()),
            Traffic::Http { .. } | Traffic::Session { .. } => {
                let detail = "the server closed the connection (EOF)";
                return Err(Fault::new(ErrorKind::Closed, HttpFaultKind::Other, detail));
            }
        }
        Ok(())
    }

    /// A response is complete.
    fn finish(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, reusable: bool, now: Instant) {
        let Some(pending) = self.connections.connection(id).take_request() else { return };
        self.connections.clear_deadline(id);
        let (user, bytes) = self.take_bytes(id);
        let exchange = pending.record(now, pending.outcome(), bytes);
        self.file_request(context, user, &pending, &exchange, || pending.refusal());
        let ticket = pending.id;
        let response = pending.into_response(now, None, &self.connections.connection(id).connected);
        self.events.push_back(UserEvent { user, id: ticket, event: Event::Http(Box::new(response)) });
        if !reusable || self.shared.reuse == Reuse::Never {
            self.hang_up(context, id);
        }
    }
}
