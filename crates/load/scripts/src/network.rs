//! The network operations of one thread's users: each gets a connection, reused or new, and a result.

mod bytes;
mod reach;

use super::Allowed;
use super::blocked::Blocked;
use super::client_session::{self, ClientSession, EndedExchange, Io, Outbox, Record};
use super::connection::{Connection, ConnectionId, Kept, Traffic};
use super::exchange::{CUT_OFF, Fault, Http, PendingRequest};
use super::hosts::Hosts;
use super::origin::Origins;
use super::rate_limit::RateLimit;
use super::resolver::{KnownAddresses, Resolver};
use super::systems::Systems;
use super::tls::TlsConfigurations;
use plimsoll_engine::event_loop::context::LoopContext;
use plimsoll_engine::pool::ConnectionPool;
use plimsoll_engine::recorder::{CONNECT, SubjectIndex};
use plimsoll_engine::timers::Alarm;
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{Event, HttpFaultKind, Op};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, RecordedPhase, Subject};
use plimsoll_model::units::{Instant, Nanos};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Bytes read from a socket at once.
const READ_SIZE: usize = 64 * 1024;

/// The key of events of the thread's [`Resolver`].
const RESOLVER: u64 = u64::MAX;

/// How many names of requests are cached here; the recorder keeps fewer of them apart.
const KNOWN_NAMES: usize = 1000;

/// What the networks of all threads share.
pub(super) struct Shared {
    pub(super) allowed: Allowed,
    pub(super) blocked: Blocked,
    pub(super) hosts: Hosts,
    pub(super) known: KnownAddresses,
    pub(super) rate_limit: RateLimit,
    pub(super) tls: TlsConfigurations,
    pub(super) reuse: Reuse,
    /// The largest body that a user may keep.
    pub(super) largest_body: usize,
    /// The longest time-out of a request, whatever the script sets.
    pub(super) longest: Nanos,
    /// The systems by which requests are named in a study.
    pub(super) systems: Systems,
    /// How many requests were sent again on another connection.
    pub(super) repeated: AtomicU64,
}

/// How long a connection can be reused by its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// As long as both sides keep it open.
    Always,
    /// Until the end of an iteration.
    WithinIterations,
    /// Never.
    Never,
}

/// An event for a user of this thread.
pub(super) struct UserEvent {
    pub(super) user: u32,
    pub(super) id: OpId,
    pub(super) event: Event,
}

/// The network, as one thread sees it.
pub(super) struct Network {
    shared: Arc<Shared>,
    resolver: Resolver,
    origins: Origins,
    connections: ConnectionPool<Box<Connection>>,
    users: Vec<UserConnections>,
    events: VecDeque<UserEvent>,
    /// Keys of connections on which a request is written but not sent.
    departing: Vec<u64>,
    /// The output of sessions that is not passed on yet.
    outbox: Outbox,
    subjects: HashMap<Rc<str>, SubjectIndex>,
    raw: Vec<u8>,
    plain: Vec<u8>,
}

/// The connections and waiting requests of a user.
struct UserConnections {
    /// The phase under which its exchanges are recorded.
    phase: RecordedPhase,
    /// How the last exchange of its present iteration failed that failed.
    failed: Option<ErrorKind>,
    connections: Vec<ConnectionId>,
    /// Requests that the rate limit holds back.
    held_back: Vec<PendingRequest>,
    sent: u64,
    received: u64,
}

impl Network {
    /// The network of `users` users. Its events go to the loop of `context`.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(shared: Arc<Shared>, users: usize, context: &LoopContext<'_>) -> Result<Network, Errno> {
        let resolver = Resolver::new(Arc::clone(&shared.known))?;
        epoll::add(&context.epoll, resolver.notifier(), EventData::new_u64(RESOLVER), EventFlags::IN)?;
        let phase = RecordedPhase::Measure;
        let own = || UserConnections {
            phase,
            failed: None,
            connections: Vec::new(),
            held_back: Vec::new(),
            sent: 0,
            received: 0,
        };
        Ok(Network {
            shared,
            resolver,
            origins: Origins::default(),
            connections: ConnectionPool::default(),
            users: (0..users).map(|_| own()).collect(),
            events: VecDeque::new(),
            departing: Vec::new(),
            outbox: Outbox::default(),
            subjects: HashMap::new(),
            raw: vec![0; READ_SIZE],
            plain: Vec::new(),
        })
    }

    /// Hands the connections of a user that rests to another one, which goes on as the same client.
    pub(super) fn hand_over(&mut self, from: u32, to: u32) {
        let connections = mem::take(&mut self.users[from as usize].connections);
        connections.iter().for_each(|id| self.connections.connection(*id).user = to);
        self.users[to as usize].connections = connections;
    }

    /// Operations from now on belong to an iteration of this phase.
    pub(super) fn begin_iteration(&mut self, user: u32, phase: RecordedPhase) {
        let own = &mut self.users[user as usize];
        (own.phase, own.failed) = (phase, None);
    }

    /// Notes that an exchange of the user's present iteration failed.
    pub(super) fn exchange_failed(&mut self, user: u32, kind: ErrorKind) {
        self.users[user as usize].failed = Some(kind);
    }

    /// How the last exchange failed that failed in the user's present iteration.
    pub(super) fn failed_exchange(&self, user: u32) -> Option<ErrorKind> {
        self.users[user as usize].failed
    }

    /// Ends an iteration. Returns the bytes sent and received since the last one.
    pub(super) fn end_iteration(&mut self, context: &mut LoopContext<'_>, user: u32) -> (u64, u64) {
        for at in (0..self.users[user as usize].connections.len()).rev() {
            let connection = self.users[user as usize].connections[at];
            if self.shared.reuse == Reuse::WithinIterations && self.connections.connection(connection).is_idle() {
                self.hang_up(context, connection);
            } else {
                self.add_bytes(context, connection);
            }
        }
        let own = &mut self.users[user as usize];
        (mem::take(&mut own.sent), mem::take(&mut own.received))
    }

    /// Takes the next event for a user of this thread.
    pub(super) fn next_event(&mut self) -> Option<UserEvent> {
        self.events.pop_front()
    }

    /// Takes back an event that [`Network::next_event`] gave too early.
    pub(super) fn pass_back(&mut self, event: UserEvent) {
        self.events.push_back(event);
    }

    /// Begins an operation. If `due` is set, it is recorded from then on.
    pub(super) fn start(&mut self, context: &mut LoopContext<'_>, user: u32, id: OpId, op: Op, due: Option<Instant>) {
        let now = context.clock.now();
        match op {
            Op::Http(request, memory) => {
                let turn = self.shared.rate_limit.turn_of(&request, now);
                let pending = PendingRequest::new(id, request, memory, self.shared.longest, due.unwrap_or(now), turn);
                if pending.requested > now {
                    context.timers.set(pending.requested, Alarm::Operation { user, id });
                    self.users[user as usize].held_back.push(pending);
                } else {
                    self.carry(context, user, Box::new(pending), now);
                }
            }
            other => match client_session::open(id, other, now) {
                Ok((session, wants, memory)) => {
                    let origin = self.origins.of(&wants.url);
                    let (tls, kept) = (self.shared.tls.configuration(&wants), Kept::within(&memory));
                    self.make(context, user, origin, Traffic::Session { session, tls, kept }, now);
                }
                Err(other) => self.tell(context, user, id, other),
            },
        }
    }

    /// Sends a request that the rate limit has held back. Returns false if there is none of that number.
    pub(super) fn turn(&mut self, context: &mut LoopContext<'_>, user: u32, id: OpId) -> bool {
        let held_back = &mut self.users[user as usize].held_back;
        let Some(at) = held_back.iter().position(|pending| pending.id == id) else { return false };
        let pending = held_back.remove(at);
        self.carry(context, user, Box::new(pending), context.clock.now());
        true
    }

    /// Cancels an operation.
    pub(super) fn cancel(&mut self, context: &mut LoopContext<'_>, user: u32, id: OpId) {
        self.users[user as usize].held_back.retain(|pending| pending.id != id);
        let Some(connection) = self.connection_of(user, id) else { return };
        match &self.connections.connection(connection).traffic {
            Traffic::Session { .. } => self.with_session(context, connection, |session, io| session.cancel(id, io)),
            // HTTP/1.1 cannot cancel a request: its response may still arrive.
            Traffic::Http { .. } => {
                if let Some(subject) =
                    self.connections.connection(connection).take_request().and_then(|pending| pending.counted)
                {
                    count_abandoned(context, subject);
                }
                self.hang_up(context, connection);
            }
        }
    }

    /// Gives up everything that is under way for the user: nobody waits for it any longer.
    pub(super) fn give_up(&mut self, context: &mut LoopContext<'_>, user: u32) {
        self.users[user as usize].held_back.clear();
        let keeps = context.recorder.keeps_exchanges();
        for connection in mem::take(&mut self.users[user as usize].connections) {
            let mut exchanges = Vec::new();
            if keeps {
                self.exchanges_on(context, connection, &mut exchanges);
            }
            exchanges.into_iter().for_each(|subject| count_abandoned(context, subject));
            self.hang_up(context, connection);
        }
    }

    /// Cancels all operations of the user, which have timed out. Returns true if a request was among them.
    pub(super) fn cut_off(&mut self, context: &mut LoopContext<'_>, user: u32) -> bool {
        let now = context.clock.now();
        self.users[user as usize].held_back.clear();
        let mut had_any = false;
        for connection in mem::take(&mut self.users[user as usize].connections) {
            had_any |= self.cut_off_session(context, connection);
            if let Some(pending) = self.connections.connection(connection).take_request() {
                had_any = true;
                let (_, bytes) = self.take_bytes(connection);
                let exchange = pending.record(now, Outcome::Failed(ErrorKind::Timeout), bytes);
                self.file_request(context, user, &pending, &exchange, || CUT_OFF.to_owned());
            }
            self.hang_up(context, connection);
        }
        had_any
    }

    /// Ends what is under way in the session of a connection. Returns true if something waited for the peer.
    fn cut_off_session(&mut self, context: &mut LoopContext<'_>, id: ConnectionId) -> bool {
        let connection = self.connections.connection(id);
        let (user, Traffic::Session { session, .. }) = (connection.user, &mut connection.traffic) else { return false };
        let was_waiting = session.is_waiting();
        session.cut_off(&mut Io { now: context.clock.now(), out: &mut connection.out, outbox: &mut self.outbox });
        self.pass_on(context, user);
        was_waiting
    }

    /// Adds the subject of each exchange that was sent and has not ended, and of each attempt to connect that has not
    /// ended.
    pub(super) fn under_way(&mut self, context: &mut LoopContext<'_>, found: &mut Vec<SubjectIndex>) {
        for connection in self.connections.occupied() {
            found.extend(self.connections.connection(connection).is_being_made().then_some(CONNECT));
            if context.recorder.keeps_exchanges() {
                self.exchanges_on(context, connection, found);
            }
        }
    }

    /// Adds the subject of each exchange on a connection that was sent and has not ended.
    fn exchanges_on(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, found: &mut Vec<SubjectIndex>) {
        let mut names = Vec::new();
        match &self.connections.connection(id).traffic {
            Traffic::Http { http, .. } => found.extend(http.pending.as_ref().and_then(|pending| pending.counted)),
            Traffic::Session { session, .. } => session.under_way(&mut names),
        }
        found.extend(names.iter().map(|name| self.subject(context, name)));
    }

    /// True if requests are under way, or connections are being made.
    pub(super) fn has_exchanges(&mut self) -> bool {
        self.connections.connections().any(|connection| connection.is_waiting())
    }

    /// True if a request of the user is under way, or a connection for it is being made.
    pub(super) fn waits(&self, user: u32) -> bool {
        let is_waiting =
            |id: &ConnectionId| self.connections.get(*id).is_some_and(|connection| connection.is_waiting());
        self.users[user as usize].connections.iter().any(is_waiting)
    }

    /// Prepares for the records of another load. For users it begins where the last one ended: all instants move by `by`
    /// nanoseconds.
    pub(super) fn go_on(&mut self, by: i64) {
        self.subjects.clear();
        let shift = |pending: &mut PendingRequest| pending.shift(by);
        self.users.iter_mut().flat_map(|user| &mut user.held_back).for_each(shift);
        self.connections.connections().for_each(|connection| connection.shift(by));
    }

    /// Closes everything.
    pub(super) fn close(&mut self, context: &mut LoopContext<'_>) {
        self.connections.occupied().into_iter().for_each(|connection| self.hang_up(context, connection));
    }

    /// Sends a request on an idle connection of the user, or on a new one.
    fn carry(&mut self, context: &mut LoopContext<'_>, user: u32, pending: Box<PendingRequest>, now: Instant) {
        let origin = self.origins.of(&pending.request.url);
        let kept = self.users[user as usize].connections.iter().copied().find(|connection| {
            self.connections
                .get(*connection)
                .is_some_and(|connection| connection.origin == origin && connection.is_idle())
        });
        match kept {
            Some(connection) => self.send(context, connection, pending, None),
            None => {
                let traffic = Traffic::Http { http: Http::default(), first: Some(pending) };
                self.make(context, user, origin, traffic, now);
            }
        }
    }

    /// The connection that carries this operation, or was made for it.
    fn connection_of(&self, user: u32, id: OpId) -> Option<ConnectionId> {
        let has = |connection: &&ConnectionId| {
            self.connections.get(**connection).is_some_and(|connection| connection.carries(id))
        };
        self.users[user as usize].connections.iter().find(has).copied()
    }

    /// Passes an operation to the session that it belongs to.
    fn tell(&mut self, context: &mut LoopContext<'_>, user: u32, id: OpId, op: Op) {
        match client_session::addressee(&op).and_then(|of| self.connection_of(user, of)) {
            Some(connection) => {
                let (key, size) = (self.connections.key(connection), client_session::size(&op));
                self.with_session(context, connection, |session, io| session.tell(id, op, io));
                self.bound_session(context, key, size);
            }
            None => self.events.extend(client_session::session_ended(&op).map(|event| UserEvent { user, id, event })),
        }
    }

    /// Ends a connection, if it is still there, whose session keeps too much after `moved` more bytes came in or out.
    fn bound_session(&mut self, context: &mut LoopContext<'_>, key: u64, moved: usize) {
        let Some(id) = self.connections.of_key(key) else { return };
        if let Err(detail) = self.connections.connection(id).count_kept(moved, self.shared.largest_body) {
            self.lose(context, id, Fault::new(ErrorKind::Protocol, HttpFaultKind::Other, detail));
        }
    }

    /// Lets the session on a connection act, then sends its output, passes on its events, and closes the connection if
    /// the session is over. Does nothing if the connection carries requests of HTTP.
    fn with_session(
        &mut self,
        context: &mut LoopContext<'_>,
        id: ConnectionId,
        act: impl FnOnce(&mut dyn ClientSession, &mut Io<'_>),
    ) {
        let connection = self.connections.connection(id);
        let (user, Traffic::Session { session, .. }) = (connection.user, &mut connection.traffic) else { return };
        let now = context.clock.now();
        act(&mut **session, &mut Io { now, out: &mut connection.out, outbox: &mut self.outbox });
        let is_over = session.is_over();
        let flushed = connection.flush(&context.clock);
        self.pass_on(context, user);
        match flushed {
            Err(broken) => self.lose(context, id, broken.into()),
            // Its remaining output is sent first.
            Ok(()) if is_over && self.connections.connection(id).out.is_empty() => self.hang_up(context, id),
            Ok(()) => {}
        }
    }

    /// Passes on events and records of sessions.
    fn pass_on(&mut self, context: &mut LoopContext<'_>, user: u32) {
        self.events.extend(self.outbox.events.drain(..).map(|(id, event)| UserEvent { user, id, event }));
        let mut records = mem::take(&mut self.outbox.records);
        if context.recorder.keeps_exchanges() {
            records.drain(..).for_each(|record| self.file_of_session(context, user, record));
        }
        records.clear();
        self.outbox.records = records;
    }

    fn file_of_session(&mut self, context: &mut LoopContext<'_>, user: u32, record: Record) {
        let (Record::Sent(name)
        | Record::Abandoned(name)
        | Record::Ended(EndedExchange { name, .. })
        | Record::Unsent(EndedExchange { name, .. })) = &record;
        let subject = self.subject(context, name);
        match record {
            Record::Sent(_) => count_sent(context, subject),
            Record::Abandoned(_) => count_abandoned(context, subject),
            Record::Ended(EndedExchange { exchange, detail, .. }) => {
                self.file(context, user, (subject, true), &exchange, || detail);
            }
            Record::Unsent(EndedExchange { exchange, detail, .. }) => {
                self.file(context, user, (subject, false), &exchange, || detail);
            }
        }
    }

    /// Counts a request that is about to be handed over to the socket.
    fn count_departing(&mut self, context: &mut LoopContext<'_>, id: ConnectionId) {
        if !context.recorder.keeps_exchanges() {
            return;
        }
        let Some(name) = self.connections.connection(id).written().map(|pending| Rc::clone(&pending.request.name))
        else {
            return;
        };
        let subject = self.subject(context, &name);
        count_sent(context, subject);
        self.connections.connection(id).written().expect("it has a name").counted = Some(subject);
    }

    /// Files a request of HTTP, which may have failed before it was sent.
    fn file_request(
        &mut self,
        context: &mut LoopContext<'_>,
        user: u32,
        pending: &PendingRequest,
        exchange: &Exchange,
        detail: impl FnOnce() -> String,
    ) {
        if !context.recorder.keeps_exchanges() {
            return;
        }
        let subject = pending.counted.unwrap_or_else(|| self.subject(context, &pending.request.name));
        self.file(context, user, (subject, pending.counted.is_some()), exchange, detail);
    }

    fn file(
        &mut self,
        context: &mut LoopContext<'_>,
        user: u32,
        (subject, was_sent): (SubjectIndex, bool),
        exchange: &Exchange,
        detail: impl FnOnce() -> String,
    ) {
        if let Outcome::Failed(kind) = exchange.outcome {
            context.recorder.keep_example(subject, kind, detail());
            self.exchange_failed(user, kind);
        }
        let phase = context.phase_of_exchange(self.users[user as usize].phase, exchange.scheduled);
        if was_sent {
            context.recorder.generator.in_flight -= 1;
            context.recorder.record(subject, phase, exchange);
        } else {
            context.recorder.record_unsent(subject, phase, exchange);
        }
    }

    /// Takes the bytes of a connection since the last call, and adds them to those of its user.
    fn take_bytes(&mut self, connection: ConnectionId) -> (u32, (u64, u64)) {
        let connection = self.connections.connection(connection);
        let (user, bytes) = (connection.user, connection.take_bytes());
        let own = &mut self.users[user as usize];
        (own.sent, own.received) = (own.sent + bytes.0, own.received + bytes.1);
        (user, bytes)
    }

    /// Files bytes that belong to no exchange.
    fn add_bytes(&mut self, context: &mut LoopContext<'_>, connection: ConnectionId) {
        let (user, (bytes_out, bytes_in)) = self.take_bytes(connection);
        if bytes_out > 0 || bytes_in > 0 {
            context.recorder.add_bytes(self.users[user as usize].phase, bytes_out, bytes_in);
        }
    }

    fn subject(&mut self, context: &mut LoopContext<'_>, name: &Rc<str>) -> SubjectIndex {
        if let Some(subject) = self.subjects.get(name) {
            return *subject;
        }
        let mut is_known = true;
        let named = self.shared.systems.named(name, |host, port| {
            let resolved = || Some(SocketAddr::new(self.resolver.known(host)?, port));
            let address = self.shared.hosts.get(host, port).or_else(resolved);
            is_known = address.is_some();
            address
        });
        let subject = context.recorder.subject(&Subject::Request(named));
        // A host that could not be looked up may be one of a system.
        if is_known && self.subjects.len() < KNOWN_NAMES {
            self.subjects.insert(Rc::clone(name), subject);
        }
        subject
    }
}

/// Counts an exchange that is sent.
fn count_sent(context: &mut LoopContext<'_>, subject: SubjectIndex) {
    context.recorder.count_sent(subject, 1);
    context.recorder.generator.in_flight += 1;
}

/// Counts an exchange that was sent and whose end nobody waits for.
fn count_abandoned(context: &mut LoopContext<'_>, subject: SubjectIndex) {
    context.recorder.count_abandoned(subject);
    context.recorder.generator.in_flight -= 1;
}
