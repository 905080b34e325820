//! The sockets of the users of one thread: opened by steps, kept alive, opened again after they were lost; and what comes
//! on them unasked.

use super::connections::Connection;
use super::context::LoopContext;
use super::users::{Activity, Users};
use crate::protocol::{Failure, Protocol, Reply, Signal};
use crate::recorder::{ITERATION, SubjectIndex};
use crate::sockets::{MessageCounts, SocketAction, SocketEnd, Sockets};
use crate::transport::{Cause, TransportError};
use plimsoll_model::record::{
    ErrorKind, Exchange, MESSAGES_RECEIVED, MESSAGES_SENT, Metric, Outcome, Part, RecordedPhase, SOCKETS_LOST, Subject,
};
use plimsoll_model::units::{Instant, Nanos};
use std::collections::HashMap;

/// The most bytes that wait on a socket for a peer that does not read. More make the step that sends them fail.
const MOST_UNSENT: usize = 1 << 20;

/// The interval at which messages are counted, and overdue deliveries given up.
const EVERY: Nanos = Nanos(200_000_000);

/// The state of the sockets of a thread's users, beside the connections themselves.
#[derive(Debug, Default)]
pub(super) struct HeldSockets {
    /// The attempts to open the socket of each user that have failed since it was lost. Empty where users hold none.
    failed_attempts: Vec<u32>,
    /// The series of the deliveries of each step, in the records of the present load.
    deliveries: HashMap<usize, SubjectIndex>,
    /// When messages are counted next.
    next_count: Instant,
    /// The turn of the loop that last looked whether messages are to be counted.
    last_turn: Instant,
    /// How many are open.
    open: u64,
    /// The users that wait for what is under way to them before they leave.
    leaving: Vec<u32>,
}

impl HeldSockets {
    /// How many are open.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Sockets for so many users.
    pub(super) fn of(users: usize) -> HeldSockets {
        // The clock of a load begins before zero.
        let begin = Instant(i64::MIN);
        HeldSockets { failed_attempts: vec![0; users], next_count: begin, last_turn: begin, ..HeldSockets::default() }
    }

    /// Another load begins, with records and a clock of its own.
    pub(super) fn go_on(&mut self) {
        self.deliveries.clear();
        (self.next_count, self.last_turn) = (Instant(i64::MIN), Instant(i64::MIN));
    }
}

impl<P: Protocol> Users<'_, P> {
    /// Does what a step does with the user's socket. What takes no time goes on in the next turn of the loop, so that no
    /// flow of such steps alone keeps the loop to itself.
    pub(super) fn act_on_socket(
        &mut self,
        context: &mut LoopContext<'_>,
        index: u32,
        action: SocketAction,
        due: Instant,
    ) {
        match action {
            SocketAction::Open => self.open_socket(context, index),
            SocketAction::Send => match self.send_message(context, index) {
                Ok(()) => self.begin_pause(context, index, Nanos(0)),
                Err(Failure { kind, detail }) => {
                    context.recorder.keep_example(ITERATION, kind, detail);
                    self.end_iteration(context, index, Outcome::Failed(kind));
                }
            },
            SocketAction::Exchange(step) => self.exchange_messages(context, index, step, due),
            SocketAction::Close => {
                self.close_socket(context, index);
                self.begin_pause(context, index, Nanos(0));
            }
        }
    }

    fn open_socket(&mut self, context: &mut LoopContext<'_>, index: u32) {
        let slot = self.connections.socket_of(index);
        match self.connections.pool.get(slot) {
            Some(socket) if socket.is_ready() => self.begin_pause(context, index, Nanos(0)),
            Some(socket) if socket.is_being_made() => self.users[index as usize].activity = Activity::OpeningSocket,
            // There is none, or one that is lost.
            _ => {
                self.users[index as usize].activity = Activity::OpeningSocket;
                self.hang_up(context, slot);
                self.dial_socket(context, index);
            }
        }
    }

    fn dial_socket(&mut self, context: &mut LoopContext<'_>, index: u32) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        let now = context.clock.now();
        let mut out = Vec::new();
        match sockets.open_socket(&mut self.users[index as usize].program, now, &mut out) {
            Ok(socket) => self.dial_for(context, self.connections.socket_of(index), socket, out),
            Err(failure) => self.socket_is_refused(context, index, failure, now),
        }
    }

    /// The handshake is over: the user listens, and goes on if it has waited.
    pub(super) fn socket_is_ready(&mut self, context: &mut LoopContext<'_>, index: u32) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        self.held_sockets.failed_attempts[index as usize] = 0;
        self.held_sockets.open += 1;
        context.recorder.generator.sockets = self.held_sockets.open;
        let user = &mut self.users[index as usize];
        sockets.opened(&mut user.program);
        if let Some(every) = sockets.ping_every() {
            let (slot, now) = (self.connections.socket_of(index), context.clock.now());
            self.connections.pool.set_deadline(slot, now.after(every), &mut context.timers);
        }
        if user.activity == Activity::OpeningSocket {
            self.begin_pause(context, index, Nanos(0));
        }
    }

    /// The socket could not be opened. The step that waits for it fails; one that was lost before is tried again.
    pub(super) fn socket_is_refused(
        &mut self,
        context: &mut LoopContext<'_>,
        index: u32,
        failure: Failure,
        now: Instant,
    ) {
        if self.users[index as usize].activity == Activity::OpeningSocket {
            let Failure { kind, detail } = failure;
            context.recorder.keep_example(ITERATION, kind, detail);
            self.end_iteration(context, index, Outcome::Failed(kind));
        } else {
            self.held_sockets.failed_attempts[index as usize] += 1;
            self.wait_for_next_attempt(context, index, now);
        }
    }

    fn wait_for_next_attempt(&mut self, context: &mut LoopContext<'_>, index: u32, now: Instant) {
        let failed = self.held_sockets.failed_attempts[index as usize];
        let user = &mut self.users[index as usize].program;
        let wait = self.task.protocol.sockets().and_then(|sockets| sockets.wait_before_attempt(user, failed));
        if let Some(wait) = wait {
            let slot = self.connections.socket_of(index);
            self.connections.pool.set_deadline(slot, now.after(wait), &mut context.timers);
        }
    }

    /// A socket that was ready has ended: an exchange on it fails, and it is opened again.
    pub(super) fn lose_socket(
        &mut self,
        context: &mut LoopContext<'_>,
        index: u32,
        broken: TransportError,
        now: Instant,
    ) {
        let slot = self.connections.socket_of(index);
        let subject = self.subject_of(slot);
        context.recorder.keep_example(subject, broken.kind, broken.detail.clone());
        let phase = context.phase_of_exchange(LoopContext::phase(now), now);
        self.count(context, SOCKETS_LOST, 1, (phase, now));
        self.end_socket(context, index, SocketEnd::Lost, now);
        let user = &self.users[index as usize];
        if user.is_exchanging() && user.slot == Some(slot) {
            self.end_exchange(context, index, Reply::Failed(Failure::new(broken.kind, broken.detail)), now);
        }
        // The iteration that failed may have opened it again.
        if self.connections.pool.get(slot).is_some_and(|socket| !socket.is_ready() && !socket.is_being_made()) {
            self.hang_up(context, slot);
            self.wait_for_next_attempt(context, index, now);
        }
    }

    /// Closes the user's socket, if it has one, and gives up opening it again.
    pub(super) fn close_socket(&mut self, context: &mut LoopContext<'_>, index: u32) {
        if self.task.protocol.sockets().is_none() {
            return;
        }
        let slot = self.connections.socket_of(index);
        if self.connections.pool.get(slot).is_some_and(Connection::is_ready) {
            let now = context.clock.now();
            self.end_socket(context, index, SocketEnd::Closed, now);
        }
        self.hang_up(context, slot);
        self.connections.pool.clear_deadline(slot);
    }

    /// The user has made its last step. It stays until what is under way to it has come, or is lost, but gets nothing new.
    pub(super) fn leave(&mut self, context: &mut LoopContext<'_>, index: u32) {
        let is_awaited = match self.task.protocol.sockets() {
            Some(sockets) if self.ready_socket(index).is_ok() => {
                sockets.stop_listening(&mut self.users[index as usize].program)
            }
            _ => false,
        };
        if is_awaited {
            self.users[index as usize].activity = Activity::Leaving;
            self.held_sockets.leaving.push(index);
        } else {
            self.close_and_retire(context, index);
        }
    }

    pub(super) fn close_and_retire(&mut self, context: &mut LoopContext<'_>, index: u32) {
        self.close_socket(context, index);
        context.retired(index);
    }

    /// Lets go of users to whom nothing is under way any more.
    fn let_go(&mut self, context: &mut LoopContext<'_>) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        for index in std::mem::take(&mut self.held_sockets.leaving) {
            let user = &mut self.users[index as usize];
            if user.activity != Activity::Leaving {
                continue;
            }
            if sockets.is_awaited(&user.program) {
                self.held_sockets.leaving.push(index);
            } else {
                user.activity = Activity::Resting;
                self.close_and_retire(context, index);
            }
        }
    }

    /// True if deliveries are under way at the end of a load, and there is time to wait for them.
    pub(super) fn awaits_deliveries(&self, context: &LoopContext<'_>) -> bool {
        context.turn < context.drain_end() && self.task.protocol.sockets().is_some_and(Sockets::has_deliveries)
    }

    /// Tells the protocol of the end of a socket that was ready.
    fn end_socket(&mut self, context: &mut LoopContext<'_>, index: u32, end: SocketEnd, now: Instant) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        self.held_sockets.open -= 1;
        context.recorder.generator.sockets = self.held_sockets.open;
        let mut ended = Vec::new();
        sockets.ended(&mut self.users[index as usize].program, end, now, &mut ended);
        self.record_deliveries(context, ended);
    }

    /// A socket needs a ping, or is opened again.
    pub(super) fn tend_socket(&mut self, context: &mut LoopContext<'_>, index: u32, now: Instant) {
        let slot = self.connections.socket_of(index);
        if self.connections.pool.get(slot).is_none() {
            return self.dial_socket(context, index);
        }
        let Some((sockets, every)) =
            self.task.protocol.sockets().and_then(|sockets| Some((sockets, sockets.ping_every()?)))
        else {
            return;
        };
        let Connection { protocol, out, .. } = self.connections.connection(slot);
        if sockets.ping(protocol, out) {
            self.connections.pool.set_deadline(slot, now.after(every), &mut context.timers);
            self.send_out(context, slot);
        } else {
            let detail = format!("nothing came within {} s of a ping", every.seconds());
            let broken = TransportError { kind: ErrorKind::Timeout, detail, cause: Cause::Other };
            self.lose(context, slot, broken);
        }
    }

    fn send_message(&mut self, context: &mut LoopContext<'_>, index: u32) -> Result<(), Failure> {
        let slot = self.ready_socket(index)?;
        let now = context.clock.now();
        if let Some(sockets) = self.task.protocol.sockets() {
            let Connection { protocol, out, .. } = self.connections.connection(slot);
            sockets.send_message(protocol, &mut self.users[index as usize].program, now, out)?;
        }
        self.send_out(context, slot);
        Ok(())
    }

    fn exchange_messages(&mut self, context: &mut LoopContext<'_>, index: u32, step: usize, due: Instant) {
        let slot = match self.ready_socket(index) {
            Ok(slot) => slot,
            Err(failure) => return self.refuse_step(context, index, step, due, failure),
        };
        self.prepare_exchange(context, index, step, due);
        let key = self.connections.pool.key(slot);
        self.take(context, index, slot);
        if let Some(sockets) = self.task.protocol.sockets()
            && self.connections.pool.of_key(key).is_some()
        {
            sockets.settle(&mut self.connections.connection(slot).protocol, &mut self.signals);
            self.pass_signals_on(context, key);
        }
    }

    /// The slot of the user's socket, if messages can go over it.
    fn ready_socket(&self, index: u32) -> Result<u32, Failure> {
        let slot = self.connections.socket_of(index);
        let closed =
            |found: &str| Failure::new(ErrorKind::Closed, format!("expected the user's socket to be open, {found}"));
        match self.connections.pool.get(slot) {
            Some(socket) if !socket.is_ready() => Err(closed("found it being opened")),
            Some(socket) if socket.out.len() > MOST_UNSENT => {
                Err(closed(&format!("found {} bytes that the peer has not read", socket.out.len())))
            }
            Some(_) => Ok(slot),
            None => Err(closed("found it closed")),
        }
    }

    /// Counts messages, and gives up overdue deliveries, now and then.
    pub(super) fn look_after_deliveries(&mut self, context: &mut LoopContext<'_>) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        let now = context.turn;
        let before = std::mem::replace(&mut self.held_sockets.last_turn, now);
        // What came before the measure phase begins or ends is not counted on its other side.
        let edges = [Instant(0), context.load_end()];
        if let Some(edge) = edges.into_iter().find(|edge| before < *edge && *edge <= now) {
            self.count_messages(context, Instant(edge.0 - 1));
        }
        if now < self.held_sockets.next_count {
            return;
        }
        self.held_sockets.next_count = now.after(EVERY);
        let mut overdue = Vec::new();
        sockets.give_up_overdue(now, &mut overdue);
        self.record_deliveries(context, overdue);
        self.count_messages(context, now);
        self.let_go(context);
    }

    /// The load ends: the deliveries that are under way are counted as such.
    pub(super) fn close_deliveries(&mut self, context: &mut LoopContext<'_>) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        for step in sockets.forget_deliveries() {
            let subject = self.delivery_of(context, step);
            context.recorder.count_in_flight(subject, 1);
        }
        let (now, end) = (context.clock.now(), context.load_end());
        // What came since the last turn came within the load, if that did.
        let at = if self.held_sockets.last_turn < end { now.min(Instant(end.0 - 1)) } else { now };
        self.count_messages(context, at);
    }

    fn count_messages(&mut self, context: &mut LoopContext<'_>, now: Instant) {
        let Some(sockets) = self.task.protocol.sockets() else { return };
        let MessageCounts { sent, received } = sockets.take_counts();
        // Their rate is that of the measure phase, however long what is under way goes on after it.
        let phase = if now < context.load_end() { LoopContext::phase(now) } else { RecordedPhase::Warmup };
        self.count(context, MESSAGES_SENT, sent, (phase, now));
        self.count(context, MESSAGES_RECEIVED, received, (phase, now));
    }

    fn count(&self, context: &mut LoopContext<'_>, counter: &str, count: u64, (phase, now): (RecordedPhase, Instant)) {
        if count > 0 && context.recorder.keeps_exchanges() {
            let subject = context.recorder.subject(&Subject::Custom(Metric::Counter, counter.to_owned()));
            context.recorder.record_value(subject, phase, count as f64, now);
        }
    }

    fn record_deliveries(&mut self, context: &mut LoopContext<'_>, signals: Vec<Signal>) {
        for signal in signals {
            if let Signal::Delivery { step, sent, done, outcome } = signal {
                self.record_delivery(context, step, sent, done, outcome);
            }
        }
    }

    /// Records that something was delivered, or was not. It counts as sent only now: whoever waits for it may be on
    /// another thread than the one that has sent it.
    pub(super) fn record_delivery(
        &mut self,
        context: &mut LoopContext<'_>,
        step: usize,
        sent: Instant,
        done: Instant,
        outcome: Outcome,
    ) {
        let subject = self.delivery_of(context, step);
        if let Outcome::Failed(kind) = outcome {
            let detail = match kind {
                ErrorKind::Closed => "the socket was lost before it came".to_owned(),
                _ => format!("it did not come within {} s", done.since(sent).seconds()),
            };
            context.recorder.keep_example(subject, kind, detail);
        }
        let exchange = Exchange { scheduled: sent, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome };
        let phase = context.phase_of_exchange(LoopContext::phase(sent), sent);
        context.recorder.count_sent(subject, 1);
        context.recorder.record(subject, phase, &exchange);
    }

    /// The series of the deliveries of a step.
    fn delivery_of(&mut self, context: &mut LoopContext<'_>, step: usize) -> SubjectIndex {
        let protocol = self.task.protocol;
        *self.held_sockets.deliveries.entry(step).or_insert_with(|| {
            let name = protocol.sockets().map_or("", |sockets| sockets.name(step));
            context.recorder.subject(&Subject::Part(Part::Delivery, name.to_owned()))
        })
    }
}
