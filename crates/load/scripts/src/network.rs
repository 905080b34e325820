//! What the users of one thread ask of the network: it finds or makes a connection for each operation, and answers.

mod bytes;
mod reach;

use super::Allowed;
use super::exchange::{Asked, Http};
use super::held::{self, Held, Io, Record, Told};
use super::hosts::Hosts;
use super::line::{Line, LineId, Load};
use super::names::{Known, Names};
use super::origin::Origins;
use super::pace::Pace;
use super::secure::Secure;
use super::systems::Systems;
use plimsoll_engine::event_loop::core::Core;
use plimsoll_engine::pool::ConnectionPool;
use plimsoll_engine::recorder::SubjectIndex;
use plimsoll_engine::timers::Alarm;
use plimsoll_javascript::OpId;
use plimsoll_k6::operations::{Event, Op};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, RecordedPhase, Subject};
use plimsoll_model::units::{Instant, Nanos};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes read from a socket at once.
const READ_SIZE: usize = 64 * 1024;

/// What the event of the thread's [`Names`] carries.
const NAMES: u64 = u64::MAX;

/// How many names of requests are looked up here; the recorder keeps fewer of them apart.
const KNOWN_NAMES: usize = 1000;

/// What the networks of all threads share.
pub(super) struct Shared {
    pub(super) allowed: Allowed,
    pub(super) hosts: Hosts,
    pub(super) known: Known,
    pub(super) pace: Pace,
    pub(super) secure: Secure,
    pub(super) reuse: Reuse,
    /// The largest body that a user may keep.
    pub(super) largest_body: usize,
    /// The longest that a request may take, whatever the script says.
    pub(super) longest: Nanos,
    /// By which requests are named, in a study.
    pub(super) systems: Systems,
}

/// How long a connection is kept for the user's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// As long as both sides like.
    Always,
    /// Until the end of an iteration.
    WithinIterations,
    /// Not at all.
    Never,
}

/// An answer for a user of this thread.
pub(super) struct Answered {
    pub(super) user: u32,
    pub(super) id: OpId,
    pub(super) event: Event,
}

/// The network, as one thread sees it.
pub(super) struct Network {
    shared: Arc<Shared>,
    names: Names,
    origins: Origins,
    lines: ConnectionPool<Box<Line>>,
    users: Vec<Own>,
    answers: VecDeque<Answered>,
    /// Connections, by key, on which a request lies that is to go.
    departing: Vec<u64>,
    /// What held connections have told and nobody has heard yet.
    told: Told,
    subjects: HashMap<Rc<str>, SubjectIndex>,
    raw: Vec<u8>,
    plain: Vec<u8>,
}

/// What a user has of it.
struct Own {
    /// Under which its exchanges are recorded.
    phase: RecordedPhase,
    lines: Vec<LineId>,
    /// Requests that wait for their turn.
    held_back: Vec<Asked>,
    sent: u64,
    received: u64,
}

impl Network {
    /// One for so many users, whose news come to the loop of `core`.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(shared: Arc<Shared>, users: usize, core: &Core<'_>) -> Result<Network, Errno> {
        let names = Names::new(Arc::clone(&shared.known))?;
        epoll::add(&core.epoll, names.bell(), EventData::new_u64(NAMES), EventFlags::IN)?;
        let phase = RecordedPhase::Measure;
        let own = || Own { phase, lines: Vec::new(), held_back: Vec::new(), sent: 0, received: 0 };
        Ok(Network {
            shared,
            names,
            origins: Origins::default(),
            lines: ConnectionPool::default(),
            users: (0..users).map(|_| own()).collect(),
            answers: VecDeque::new(),
            departing: Vec::new(),
            told: Told::default(),
            subjects: HashMap::new(),
            raw: vec![0; READ_SIZE],
            plain: Vec::new(),
        })
    }

    /// What is asked from now on belongs to an iteration of this phase.
    pub(super) fn begin_iteration(&mut self, user: u32, phase: RecordedPhase) {
        self.users[user as usize].phase = phase;
    }

    /// The bytes out and in since this was last asked.
    pub(super) fn end_iteration(&mut self, core: &mut Core<'_>, user: u32) -> (u64, u64) {
        for at in (0..self.users[user as usize].lines.len()).rev() {
            let line = self.users[user as usize].lines[at];
            if self.shared.reuse == Reuse::WithinIterations && self.lines.connection(line).is_idle() {
                self.hang_up(core, line);
            } else {
                self.add_bytes(core, line);
            }
        }
        let own = &mut self.users[user as usize];
        (mem::take(&mut own.sent), mem::take(&mut own.received))
    }

    /// The next answer for a user of this thread.
    pub(super) fn next_answer(&mut self) -> Option<Answered> {
        self.answers.pop_front()
    }

    /// Begins an operation; one that was due before now is recorded from then on.
    pub(super) fn start(&mut self, core: &mut Core<'_>, user: u32, id: OpId, op: Op, due: Option<Instant>) {
        let now = core.clock.now();
        match op {
            Op::Http(request) => {
                let turn = self.shared.pace.take(now);
                let asked = Asked::new(id, request, self.shared.longest, due.unwrap_or(now), turn);
                if asked.asked > now {
                    core.timers.set(asked.asked, Alarm::Operation { user, id });
                    self.users[user as usize].held_back.push(asked);
                } else {
                    self.carry(core, user, Box::new(asked), now);
                }
            }
            other => match held::held(id, other, now) {
                Ok((held, wants)) => {
                    let origin = self.origins.of(&wants.url);
                    let secure = self.shared.secure.configuration(&wants);
                    self.make(core, user, origin, Load::Held { held, secure }, now);
                }
                Err(other) => self.tell(core, user, id, other),
            },
        }
    }

    /// The turn of a request that was held back has come. False where there is none of that number.
    pub(super) fn turn(&mut self, core: &mut Core<'_>, user: u32, id: OpId) -> bool {
        let held_back = &mut self.users[user as usize].held_back;
        let Some(at) = held_back.iter().position(|asked| asked.id == id) else { return false };
        let asked = held_back.remove(at);
        self.carry(core, user, Box::new(asked), core.clock.now());
        true
    }

    /// Nobody waits for this operation any more.
    pub(super) fn cancel(&mut self, core: &mut Core<'_>, user: u32, id: OpId) {
        self.users[user as usize].held_back.retain(|asked| asked.id != id);
        let Some(line) = self.line_of(user, id) else { return };
        match &self.lines.connection(line).load {
            Load::Held { .. } => self.with_held(core, line, |held, io| held.cancel(id, io)),
            // HTTP/1.1 has no way to take a request back: its answer may still come.
            Load::Http { .. } => self.hang_up(core, line),
        }
    }

    /// The user's iteration is over before its time: so is whatever it had under way. Whether that was any request.
    pub(super) fn abandon(&mut self, core: &mut Core<'_>, user: u32) -> bool {
        let now = core.clock.now();
        self.users[user as usize].held_back.clear();
        let mut had_any = false;
        for line in mem::take(&mut self.users[user as usize].lines) {
            if let Some(asked) = self.lines.connection(line).take_asked() {
                had_any = true;
                let (_, bytes) = self.take_bytes(line);
                let exchange = asked.record(now, Outcome::Failed(ErrorKind::Timeout), bytes);
                let detail = || "still under way at the end of the drain".to_owned();
                self.file(core, user, &asked.request.name, &exchange, detail);
            }
            self.hang_up(core, line);
        }
        had_any
    }

    /// Closes everything.
    pub(super) fn close(&mut self, core: &mut Core<'_>) {
        self.lines.taken().into_iter().for_each(|line| self.hang_up(core, line));
    }

    /// Gets a request onto a connection: one that the user has, or a new one.
    fn carry(&mut self, core: &mut Core<'_>, user: u32, asked: Box<Asked>, now: Instant) {
        let origin = self.origins.of(&asked.request.url);
        let kept = self.users[user as usize]
            .lines
            .iter()
            .copied()
            .find(|line| self.lines.get(*line).is_some_and(|line| line.origin == origin && line.is_idle()));
        match kept {
            Some(line) => self.send(core, line, asked, None, now),
            None => {
                let load = Load::Http { http: Http::default(), first: Some(asked) };
                self.make(core, user, origin, load, now);
            }
        }
    }

    /// The connection that this operation is on, or has opened.
    fn line_of(&self, user: u32, id: OpId) -> Option<LineId> {
        let has = |line: &&LineId| self.lines.get(**line).is_some_and(|line| line.carries(id));
        self.users[user as usize].lines.iter().find(has).copied()
    }

    /// Hands an operation to the connection that it is for.
    fn tell(&mut self, core: &mut Core<'_>, user: u32, id: OpId, op: Op) {
        match held::addressee(&op).and_then(|of| self.line_of(user, of)) {
            Some(line) => self.with_held(core, line, |held, io| held.tell(id, op, io)),
            None => self.answers.extend(held::nobody(&op).map(|event| Answered { user, id, event })),
        }
    }

    /// Lets what is held on a connection do something, and sees to what it wrote, answered, recorded, and whether it
    /// has ended. Nothing where the connection carries requests.
    fn with_held(&mut self, core: &mut Core<'_>, id: LineId, act: impl FnOnce(&mut dyn Held, &mut Io<'_>)) {
        let line = self.lines.connection(id);
        let (user, Load::Held { held, .. }) = (line.user, &mut line.load) else { return };
        let now = core.clock.now();
        act(&mut **held, &mut Io { now, out: &mut line.out, told: &mut self.told });
        let is_over = held.is_over();
        let flushed = line.flush(&core.clock);
        self.pass_on(core, user);
        match flushed {
            Err(broken) => self.lose(core, id, broken.into()),
            // What it has still to send goes first.
            Ok(()) if is_over && self.lines.connection(id).out.is_empty() => self.hang_up(core, id),
            Ok(()) => {}
        }
    }

    /// Answers and files what a held connection has told.
    fn pass_on(&mut self, core: &mut Core<'_>, user: u32) {
        self.answers.extend(self.told.answers.drain(..).map(|(id, event)| Answered { user, id, event }));
        for Record { name, exchange, detail } in mem::take(&mut self.told.records) {
            self.file(core, user, &name, &exchange, || detail);
        }
    }

    fn file(
        &mut self,
        core: &mut Core<'_>,
        user: u32,
        name: &Rc<str>,
        exchange: &Exchange,
        detail: impl FnOnce() -> String,
    ) {
        if !core.recorder.keeps_exchanges() {
            return;
        }
        let subject = self.subject(core, name);
        if let Outcome::Failed(kind) = exchange.outcome {
            core.recorder.keep_example(subject, kind, detail());
        }
        core.recorder.record(subject, self.users[user as usize].phase, exchange);
    }

    /// The bytes that crossed a connection since this was last asked; its user is charged with them.
    fn take_bytes(&mut self, line: LineId) -> (u32, (u64, u64)) {
        let line = self.lines.connection(line);
        let (user, bytes) = (line.user, line.take_bytes());
        let own = &mut self.users[user as usize];
        (own.sent, own.received) = (own.sent + bytes.0, own.received + bytes.1);
        (user, bytes)
    }

    /// Files bytes that belong to no exchange.
    fn add_bytes(&mut self, core: &mut Core<'_>, line: LineId) {
        let (user, (bytes_out, bytes_in)) = self.take_bytes(line);
        if bytes_out > 0 || bytes_in > 0 {
            core.recorder.add_bytes(self.users[user as usize].phase, bytes_out, bytes_in);
        }
    }

    fn subject(&mut self, core: &mut Core<'_>, name: &Rc<str>) -> SubjectIndex {
        if let Some(subject) = self.subjects.get(name) {
            return *subject;
        }
        let subject = core.recorder.subject(&Subject::Request(self.shared.systems.named(name)));
        if self.subjects.len() < KNOWN_NAMES {
            self.subjects.insert(Rc::clone(name), subject);
        }
        subject
    }
}
