//! Moving bytes: what the kernel has to say of a connection, and what that means to whoever is on it.

use super::{Answered, NAMES, Network};
use crate::exchange::{Answer, Asked, Connected, Fault};
use crate::held::Io;
use crate::line::{LineId, Load, Stage};
use crate::network::Reuse;
use plimsoll_engine::event_loop::core::Core;
use plimsoll_engine::transport::Chunk;
use plimsoll_k6::operations::{Event, HttpFaultKind};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::units::Instant;
use rustix::event::epoll::EventFlags;
use std::mem;

impl Network {
    /// The kernel has news.
    pub(crate) fn event(&mut self, core: &mut Core<'_>, key: u64, flags: EventFlags) {
        if key == NAMES {
            self.names_found(core);
            return;
        }
        let Some(line) = self.lines.of_key(key) else { return };
        if let Err(fault) = self.move_bytes(core, line, flags)
            && self.lines.of_key(key).is_some()
        {
            self.lose(core, line, fault);
        }
    }

    /// The time of a connection may be up.
    pub(crate) fn deadline(&mut self, core: &mut Core<'_>, line: LineId) {
        let now = core.clock.now();
        if self.lines.strikes(line, now, &mut core.timers) && self.lines.get(line).is_some() {
            let limit = self.lines.connection(line).timeout().seconds();
            let detail = format!("request timeout: no answer within {limit} s");
            self.lose(core, line, Fault::new(ErrorKind::Timeout, HttpFaultKind::Timeout, detail));
        }
    }

    /// Puts a request on a connection that is free for it, and `made` for it where it is the first. It goes with the
    /// next [`Network::send_out`].
    pub(super) fn send(
        &mut self,
        core: &mut Core<'_>,
        id: LineId,
        asked: Box<Asked>,
        made: Option<Connected>,
        now: Instant,
    ) {
        self.lines.set_deadline(id, asked.deadline(), &mut core.timers);
        let line = self.lines.connection(id);
        let Load::Http { http, .. } = &mut line.load else { return };
        http.send(asked, made, self.shared.reuse == Reuse::Never, now, &mut line.out);
        self.departing.push(self.lines.key(id));
    }

    /// Sends all requests that were put on connections, one right after the other; whether there were any. To send them
    /// between the work of users would wake the server for each, only for it to have nothing to do a moment later.
    pub(crate) fn send_out(&mut self, core: &mut Core<'_>) -> bool {
        if self.departing.is_empty() {
            return false;
        }
        let mut now = core.clock.now();
        let mut departing = mem::take(&mut self.departing);
        for key in departing.drain(..) {
            // It may have been given up meanwhile.
            let Some(id) = self.lines.of_key(key) else { continue };
            match self.lines.connection(id).depart(now, &core.clock) {
                Ok(gone) => now = gone,
                Err(broken) => self.lose(core, id, broken.into()),
            }
        }
        if self.departing.is_empty() {
            self.departing = departing;
        }
        true
    }

    fn move_bytes(&mut self, core: &mut Core<'_>, id: LineId, flags: EventFlags) -> Result<(), Fault> {
        let key = self.lines.key(id);
        let line = self.lines.connection(id);
        if line.stage == Stage::Connecting {
            line.transport().connected()?;
            line.connected.connecting = line.next_stage(Stage::Securing, core.clock.now());
        }
        if flags.contains(EventFlags::OUT) {
            line.flush(&core.clock)?;
            self.with_held(core, id, |_, _| ());
        }
        if self.lines.of_key(key).is_some() {
            self.open_if_secure(core, id);
        }
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let mut more = ended || flags.contains(EventFlags::IN);
        while more && self.lines.of_key(key).is_some() {
            more = self.read(core, id, ended)?;
        }
        Ok(())
    }

    fn open_if_secure(&mut self, core: &mut Core<'_>, id: LineId) {
        let line = self.lines.connection(id);
        if line.stage == Stage::Securing && line.transport().is_open() {
            self.open(core, id, core.clock.now());
        }
    }

    /// Reads once; whether more may be waiting, as the end of one that has `ended`. What came may have ended it, too.
    fn read(&mut self, core: &mut Core<'_>, id: LineId, ended: bool) -> Result<bool, Fault> {
        let key = self.lines.key(id);
        let line = self.lines.connection(id);
        let transport = line.transport.as_mut().expect("a connection that has events has a socket");
        let (bytes, more) = match transport.receive(&mut self.raw, &mut self.plain)? {
            Chunk::Empty => return Ok(false),
            Chunk::End => return self.end_of_input(core, id).map(|()| false),
            Chunk::Bytes(bytes, more) => (bytes, more),
        };
        let now = core.clock.now();
        match &mut line.load {
            _ if bytes.is_empty() => {}
            Load::Http { http, .. } => {
                if let Answer::Whole { reusable } = http.receive(bytes, self.shared.largest_body, now)? {
                    self.finish(core, id, reusable, now);
                }
            }
            Load::Held { held, .. } => {
                held.receive(bytes, &mut Io { now, out: &mut line.out, told: &mut self.told });
                self.with_held(core, id, |_, _| ());
            }
        }
        if self.lines.of_key(key).is_some() {
            // TLS may have something to say of its own.
            self.lines.connection(id).flush(&core.clock)?;
            self.open_if_secure(core, id);
        }
        Ok(more || ended)
    }

    /// The peer has ended its side.
    fn end_of_input(&mut self, core: &mut Core<'_>, id: LineId) -> Result<(), Fault> {
        match &self.lines.connection(id).load {
            Load::Held { .. } => self.end_held(core, id, None),
            Load::Http { http, .. } if http.end_of_input() => self.finish(core, id, false, core.clock.now()),
            Load::Http { .. } => {
                let detail = "the server closed the connection (EOF)";
                return Err(Fault::new(ErrorKind::Closed, HttpFaultKind::Other, detail));
            }
        }
        Ok(())
    }

    /// An answer is whole.
    fn finish(&mut self, core: &mut Core<'_>, id: LineId, reusable: bool, now: Instant) {
        let Some(asked) = self.lines.connection(id).take_asked() else { return };
        self.lines.clear_deadline(id);
        let (user, bytes) = self.take_bytes(id);
        let detail = || asked.refusal();
        self.file(core, user, &asked.request.name, &asked.record(now, asked.outcome(), bytes), detail);
        let ticket = asked.id;
        let response = asked.into_response(now, None, &self.lines.connection(id).connected);
        self.answers.push_back(Answered { user, id: ticket, event: Event::Http(Box::new(response)) });
        if !reusable || self.shared.reuse == Reuse::Never {
            self.hang_up(core, id);
        }
    }
}
