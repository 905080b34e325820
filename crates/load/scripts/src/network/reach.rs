//! Making connections: where to, whether that is allowed, and what becomes of those that cannot be made.

use super::{Answered, Network};
use crate::exchange::{Asked, Fault};
use crate::held::Io;
use crate::line::{Line, LineId, Load, Stage};
use crate::origin::OriginId;
use plimsoll_engine::event_loop::core::Core;
use plimsoll_engine::recorder::CONNECT;
use plimsoll_engine::transport::Dialer;
use plimsoll_k6::operations::{Event, HttpFault, HttpFaultKind, TlsFacts};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::{Instant, Nanos};
use rustls::{CipherSuite, ProtocolVersion};
use std::mem;
use std::net::{IpAddr, SocketAddr};

impl Network {
    /// Makes a connection.
    pub(super) fn make(&mut self, core: &mut Core<'_>, user: u32, origin: OriginId, load: Load, asked: Instant) {
        let deadline = load.deadline();
        let line = self.lines.insert(Box::new(Line::new(user, origin, load, asked)));
        self.users[user as usize].lines.push(line);
        if let Some(deadline) = deadline {
            self.lines.set_deadline(line, deadline, &mut core.timers);
        }
        let found = &self.origins.get(origin);
        if let Some(address) = found.address {
            self.dial(core, line, address);
        } else if let Some(address) = self.shared.hosts.get(&found.host, found.port) {
            self.settle(core, origin, Some(line), Ok(address));
        } else if let Some(ip) = self.names.known(&found.host) {
            let address = SocketAddr::new(ip, found.port);
            self.settle(core, origin, Some(line), Ok(address));
        } else {
            let is_first = found.waiting.is_empty();
            self.origins.get_mut(origin).waiting.push(line);
            if is_first {
                self.names.ask(&self.origins.get(origin).host);
            }
        }
    }

    /// Names were looked up.
    pub(super) fn names_found(&mut self, core: &mut Core<'_>) {
        for (host, found) in self.names.found() {
            for origin in self.origins.of_host(&host) {
                let port = self.origins.get(origin).port;
                let found = found.clone().map(|ip: IpAddr| SocketAddr::new(ip, port));
                let found = found.map_err(|http| {
                    let http = HttpFault { detail: self.shared.allowed.unknown(&host, http.detail), ..http };
                    Fault { kind: ErrorKind::Connect, http, is_ours: false }
                });
                self.settle(core, origin, None, found);
            }
        }
    }

    /// It is known where an origin is, or that nobody knows: those who waited for that go on, if they may.
    fn settle(
        &mut self,
        core: &mut Core<'_>,
        origin: OriginId,
        asking: Option<LineId>,
        found: Result<SocketAddr, Fault>,
    ) {
        let host = &self.origins.get(origin).host;
        let found = found.and_then(|address| match self.shared.allowed.check(host, address.ip()) {
            Ok(()) => Ok(address),
            Err(detail) => Err(Fault::new(ErrorKind::Connect, HttpFaultKind::AddressNotAllowed, detail)),
        });
        self.origins.get_mut(origin).address = found.as_ref().ok().copied();
        let waiting = mem::take(&mut self.origins.get_mut(origin).waiting);
        for line in waiting.into_iter().chain(asking) {
            // It may have been given up meanwhile, and its number taken by another.
            if self.lines.get(line).is_some_and(|line| line.stage == Stage::Naming && line.origin == origin) {
                match &found {
                    Ok(address) => self.dial(core, line, *address),
                    Err(fault) => self.lose(core, line, fault.clone()),
                }
            }
        }
    }

    fn dial(&mut self, core: &mut Core<'_>, id: LineId, address: SocketAddr) {
        let key = self.lines.key(id);
        let line = self.lines.connection(id);
        let now = core.clock.now();
        line.connected.looked_up = line.next_stage(Stage::Connecting, now);
        line.dialled = now;
        line.connected.remote = address;
        let configuration = match &line.load {
            Load::Held { secure, .. } => secure,
            Load::Http { .. } => self.shared.secure.http(),
        };
        let encryption = self.origins.get(line.origin).encryption(configuration);
        let dialled = encryption.and_then(|tls| Ok(core.dial(&Dialer { address, tls }, key)?));
        match dialled {
            Ok(transport) => line.transport = Some(transport),
            Err(fault) => self.lose(core, id, fault),
        }
    }

    /// The connection stands: it is counted, and what it is for goes over it.
    pub(super) fn open(&mut self, core: &mut Core<'_>, id: LineId, now: Instant) {
        let line = self.lines.connection(id);
        line.connected.tls_handshaking = line.next_stage(Stage::Open, now);
        line.connected.tls = line.transport().tls().map(tls_facts);
        if line.connected.tls.is_none() {
            line.connected.tls_handshaking = Nanos(0);
        }
        self.record_connect(core, id, now, Outcome::Ok);
        let line = self.lines.connection(id);
        let connected = line.connected.clone();
        match &mut line.load {
            Load::Http { first, .. } => {
                let first = first.take().expect("a connection is made for a request");
                self.send(core, id, first, Some(connected), now);
            }
            Load::Held { .. } => self.with_held(core, id, |held, io| held.open(&connected, io)),
        }
    }

    fn record_connect(&mut self, core: &mut Core<'_>, id: LineId, done: Instant, outcome: Outcome) {
        let (user, (bytes_out, bytes_in)) = self.take_bytes(id);
        let begun = self.lines.connection(id).dialled;
        let exchange = Exchange { scheduled: begun, sent: begun, first_byte: None, done, bytes_out, bytes_in, outcome };
        core.recorder.record(CONNECT, self.users[user as usize].phase, &exchange);
    }

    /// The connection came to nothing, or broke: and so did what was on it.
    pub(super) fn lose(&mut self, core: &mut Core<'_>, id: LineId, fault: Fault) {
        let now = core.clock.now();
        let line = self.lines.connection(id);
        if matches!(line.stage, Stage::Connecting | Stage::Securing) {
            self.record_connect(core, id, now, Outcome::Failed(fault.kind));
            core.recorder.keep_example(CONNECT, fault.kind, fault.http.detail.clone());
            if fault.is_ours && core.recorder.findings.faults.is_empty() {
                core.recorder.findings.faults.push(fault.http.detail.clone());
            }
        }
        if let Load::Held { .. } = &self.lines.connection(id).load {
            return self.end_held(core, id, Some(&fault));
        }
        let (user, bytes) = self.take_bytes(id);
        let mut line = self.forget(id);
        match line.take_asked() {
            Some(asked) if asked.may_be_repeated() && fault.kind == ErrorKind::Closed => {
                self.carry(core, user, asked, now);
            }
            Some(asked) => self.fail(core, asked, fault, bytes, &line),
            None => core.recorder.add_bytes(self.users[user as usize].phase, bytes.0, bytes.1),
        }
    }

    /// What is held on a connection ends with it; without a fault, because the peer has ended its side.
    pub(super) fn end_held(&mut self, core: &mut Core<'_>, id: LineId, fault: Option<&Fault>) {
        let now = core.clock.now();
        let line = self.lines.connection(id);
        let user = line.user;
        if let Load::Held { held, .. } = &mut line.load {
            held.end(fault, &mut Io { now, out: &mut line.out, told: &mut self.told });
        }
        self.pass_on(core, user);
        self.hang_up(core, id);
    }

    fn fail(&mut self, core: &mut Core<'_>, asked: Box<Asked>, fault: Fault, bytes: (u64, u64), line: &Line) {
        let (now, user, id) = (core.clock.now(), line.user, asked.id);
        let exchange = asked.record(now, Outcome::Failed(fault.kind), bytes);
        self.file(core, user, &asked.request.name, &exchange, || fault.http.detail.clone());
        let response = match line.stage {
            Stage::Naming => asked.unsent(now, fault.http),
            _ => asked.into_response(now, Some(fault.http), &line.connected),
        };
        self.answers.push_back(Answered { user, id, event: Event::Http(Box::new(response)) });
    }

    /// Closes a connection on which nothing is under way.
    pub(super) fn hang_up(&mut self, core: &mut Core<'_>, id: LineId) {
        self.add_bytes(core, id);
        self.forget(id);
    }

    fn forget(&mut self, id: LineId) -> Box<Line> {
        let line = self.lines.remove(id).expect("the connection is there");
        self.users[line.user as usize].lines.retain(|other| *other != id);
        line
    }
}

/// As k6 names them.
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
