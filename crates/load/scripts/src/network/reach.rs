//! Opens connections: resolves their addresses, checks that these are allowed, and handles failures.

use super::{Network, UserEvent};
use crate::client_session::Io;
use crate::connection::{Connection, ConnectionId, Stage, Traffic};
use crate::exchange::{Fault, PendingRequest};
use crate::origin::OriginId;
use plimsoll_engine::event_loop::context::LoopContext;
use plimsoll_engine::recorder::CONNECT;
use plimsoll_engine::transport::Dialer;
use plimsoll_k6::operations::{Event, HttpFault, HttpFaultKind, TlsFacts};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::{Instant, Nanos};
use rustls::{CipherSuite, ProtocolVersion};
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

impl Network {
    /// Opens a connection.
    pub(super) fn make(
        &mut self,
        context: &mut LoopContext<'_>,
        user: u32,
        origin: OriginId,
        traffic: Traffic,
        requested: Instant,
    ) {
        let deadline = traffic.deadline();
        let connection = self.connections.insert(Box::new(Connection::new(user, origin, traffic, requested)));
        self.users[user as usize].connections.push(connection);
        if let Some(deadline) = deadline {
            self.connections.set_deadline(connection, deadline, &mut context.timers);
        }
        let found = &self.origins.get(origin);
        if let Some(address) = found.address {
            self.dial(context, connection, address);
        } else if let Err(fault) = self.shared.blocked.check_host(&found.host) {
            self.address_resolved(context, origin, Some(connection), Err(fault));
        } else if let Some(address) = self.shared.hosts.get(&found.host, found.port) {
            // It is the script that says so: that its name may be loaded does not make the address one that may.
            let ip = address.ip();
            let allowed = self.shared.allowed.check(&ip.to_string(), ip).map_err(not_allowed);
            self.address_resolved(context, origin, Some(connection), allowed.map(|()| address));
        } else if let Some(ip) = self.resolver.known(&found.host) {
            let address = SocketAddr::new(ip, found.port);
            self.address_resolved(context, origin, Some(connection), Ok(address));
        } else if let Err(detail) = self.shared.allowed.check_name(&found.host) {
            self.address_resolved(context, origin, Some(connection), Err(not_allowed(detail)));
        } else {
            let is_first = found.waiting.is_empty();
            self.origins.get_mut(origin).waiting.push(connection);
            if is_first {
                self.resolver.ask(&self.origins.get(origin).host);
            }
        }
    }

    /// Handles names that were resolved.
    pub(super) fn names_resolved(&mut self, context: &mut LoopContext<'_>) {
        for (host, found) in self.resolver.take_resolved() {
            for origin in self.origins.of_host(&host) {
                let port = self.origins.get(origin).port;
                let found = found.clone().map(|ip: IpAddr| SocketAddr::new(ip, port));
                let found = found.map_err(|http| {
                    let http = HttpFault { detail: self.shared.allowed.unknown(&host, http.detail), ..http };
                    Fault { kind: ErrorKind::Connect, http, is_local: false }
                });
                self.address_resolved(context, origin, None, found);
            }
        }
    }

    /// The address of an origin was resolved, or could not be: continues the connections that wait for it, if the
    /// address is allowed.
    fn address_resolved(
        &mut self,
        context: &mut LoopContext<'_>,
        origin: OriginId,
        asking: Option<ConnectionId>,
        found: Result<SocketAddr, Fault>,
    ) {
        let host = &self.origins.get(origin).host;
        let found = found.and_then(|address| {
            self.shared.blocked.check_address(address.ip())?;
            self.shared.allowed.check(host, address.ip()).map_err(not_allowed)?;
            Ok(address)
        });
        self.origins.get_mut(origin).address = found.as_ref().ok().copied();
        let waiting = mem::take(&mut self.origins.get_mut(origin).waiting);
        for connection in waiting.into_iter().chain(asking) {
            // The connection may have been closed meanwhile, and its number reused.
            if self
                .connections
                .get(connection)
                .is_some_and(|connection| connection.stage == Stage::Resolving && connection.origin == origin)
            {
                match &found {
                    Ok(address) => self.dial(context, connection, *address),
                    Err(fault) => self.lose(context, connection, fault.clone()),
                }
            }
        }
    }

    fn dial(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, address: SocketAddr) {
        let key = self.connections.key(id);
        let connection = self.connections.connection(id);
        let now = context.clock.now();
        connection.connected.looked_up = connection.next_stage(Stage::Connecting, now);
        connection.dialled = now;
        context.recorder.count_sent(CONNECT, 1);
        connection.connected.remote = address;
        let configuration = match &connection.traffic {
            Traffic::Session { tls, .. } => tls,
            Traffic::Http { .. } => self.shared.tls.http(),
        };
        let encryption = self.origins.get(connection.origin).encryption(configuration);
        let dialled = encryption.and_then(|tls| Ok(context.dial(&Dialer { address, tls }, key)?));
        match dialled {
            Ok(transport) => connection.transport = Some(transport),
            Err(fault) => self.lose(context, id, fault),
        }
    }

    /// The connection is established: records it, and starts its request or session.
    pub(super) fn open(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, now: Instant) {
        let connection = self.connections.connection(id);
        connection.connected.tls_handshaking = connection.next_stage(Stage::Open, now);
        connection.connected.tls = connection.transport().tls().map(tls_facts);
        if connection.connected.tls.is_none() {
            connection.connected.tls_handshaking = Nanos(0);
        }
        self.record_connect(context, id, now, Outcome::Ok);
        let connection = self.connections.connection(id);
        let connected = connection.connected.clone();
        match &mut connection.traffic {
            Traffic::Http { first, .. } => {
                let first = first.take().expect("a connection is made for a request");
                self.send(context, id, first, Some(connected));
            }
            Traffic::Session { .. } => self.with_session(context, id, |session, io| session.open(&connected, io)),
        }
    }

    fn record_connect(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, done: Instant, outcome: Outcome) {
        let (user, (bytes_out, bytes_in)) = self.take_bytes(id);
        let begun = self.connections.connection(id).dialled;
        let exchange = Exchange { scheduled: begun, sent: begun, first_byte: None, done, bytes_out, bytes_in, outcome };
        context.recorder.record(CONNECT, self.users[user as usize].phase, &exchange);
    }

    /// The connection could not be made, or broke: its request or session fails.
    pub(super) fn lose(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, fault: Fault) {
        let now = context.clock.now();
        let connection = self.connections.connection(id);
        if connection.is_being_made() {
            connection.has_failed = true;
            self.record_connect(context, id, now, Outcome::Failed(fault.kind));
            context.recorder.keep_example(CONNECT, fault.kind, fault.http.detail.clone());
            if fault.is_local && context.recorder.findings.faults.is_empty() {
                context.recorder.findings.faults.push(fault.http.detail.clone());
            }
        }
        if let Traffic::Session { .. } = &self.connections.connection(id).traffic {
            return self.end_session(context, id, Some(&fault));
        }
        let (user, bytes) = self.take_bytes(id);
        let mut connection = self.forget(id);
        match connection.take_request() {
            // The script sees one request, as in k6; the record has both exchanges, as the server has.
            Some(pending) if pending.may_be_repeated() && fault.kind == ErrorKind::Closed => {
                let exchange = pending.record(now, Outcome::Failed(fault.kind), bytes);
                let detail = || format!("{}; it was sent again on another connection", fault.http.detail);
                let failed = self.users[user as usize].failed;
                self.file_request(context, user, &pending, &exchange, detail);
                // The script does not see this exchange.
                self.users[user as usize].failed = failed;
                self.shared.repeated.fetch_add(1, Relaxed);
                self.carry(context, user, pending.again(), now);
            }
            Some(pending) => self.fail(context, pending, fault, bytes, &connection),
            None => context.recorder.add_bytes(self.users[user as usize].phase, bytes.0, bytes.1),
        }
    }

    /// Ends the session of a connection that has ended. Without a fault, the peer has ended its side.
    pub(super) fn end_session(&mut self, context: &mut LoopContext<'_>, id: ConnectionId, fault: Option<&Fault>) {
        let now = context.clock.now();
        let connection = self.connections.connection(id);
        let user = connection.user;
        if let Traffic::Session { session, .. } = &mut connection.traffic {
            session.end(fault, &mut Io { now, out: &mut connection.out, outbox: &mut self.outbox });
        }
        self.pass_on(context, user);
        self.hang_up(context, id);
    }

    fn fail(
        &mut self,
        context: &mut LoopContext<'_>,
        pending: Box<PendingRequest>,
        fault: Fault,
        bytes: (u64, u64),
        connection: &Connection,
    ) {
        let (now, user, id) = (context.clock.now(), connection.user, pending.id);
        let exchange = pending.record(now, Outcome::Failed(fault.kind), bytes);
        self.file_request(context, user, &pending, &exchange, || fault.http.detail.clone());
        let response = match connection.stage {
            Stage::Resolving => pending.unsent(now, fault.http),
            _ => pending.into_response(now, Some(fault.http), &connection.connected),
        };
        self.events.push_back(UserEvent { user, id, event: Event::Http(Box::new(response)) });
    }

    /// Closes a connection on which nothing is under way.
    pub(super) fn hang_up(&mut self, context: &mut LoopContext<'_>, id: ConnectionId) {
        self.add_bytes(context, id);
        if self.connections.connection(id).is_being_made() {
            context.recorder.count_abandoned(CONNECT);
        }
        self.forget(id);
    }

    fn forget(&mut self, id: ConnectionId) -> Box<Connection> {
        let connection = self.connections.remove(id).expect("the connection is there");
        self.users[connection.user as usize].connections.retain(|other| *other != id);
        connection
    }
}

fn not_allowed(detail: String) -> Fault {
    Fault::new(ErrorKind::Connect, HttpFaultKind::AddressNotAllowed, detail)
}

/// The names that k6 uses for them.
fn tls_facts((version, suite): (ProtocolVersion, CipherSuite)) -> TlsFacts {
    let version = if version == ProtocolVersion::TLSv1_2 { "tls1.2" } else { "tls1.3" };
    let cipher_suite = match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or_default(),
    };
    TlsFacts { version, cipher_suite }
}
