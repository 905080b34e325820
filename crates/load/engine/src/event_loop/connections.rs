//! The connections of one thread: assigns them to users, opens and closes them, and moves their bytes.

use super::context::{LoopContext, MOST_READS};
use super::users::{Activity, Users};
use crate::pool::ConnectionPool;
use crate::protocol::{Failure, Protocol, ReceivedReply, Reply, Sending, Signal};
use crate::recorder::{CONNECT, SubjectIndex, request};
use crate::transport::{Cause, Chunk, Transport, TransportError};
use plimsoll_model::load::Share;
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::Instant;
use plimsoll_model::workload::Connect;
use rustix::event::epoll;
use std::collections::VecDeque;

/// Bytes read from a socket at once.
const READ_SIZE: usize = 64 * 1024;

/// A shared connection that could not be made, or that ended before its first exchange, is made again after this time.
const RETRY_AFTER: i64 = 10_000_000;

/// Buffers that all reads of the thread share.
pub(super) struct Scratch {
    raw: Vec<u8>,
    plain: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { raw: vec![0; READ_SIZE], plain: Vec::new() }
    }
}

/// The connections of a thread. With a connection per user or per iteration, the slot of a connection is the number of
/// its user. Shared connections have slots of their own, and users wait for them in a queue. The sockets of users have the
/// slots behind all of these, one for each user.
pub(super) struct Connections<C> {
    policy: Connect,
    pub(super) pool: ConnectionPool<Connection<C>>,
    /// The slot of the first user's socket.
    first_socket: u32,
    /// The state of each slot, with or without a connection.
    slots: Vec<Slot>,
    /// Shared connections: slots that can carry one more exchange, each once, used in turn.
    available: VecDeque<u32>,
    /// Shared connections: users that wait for such a slot.
    queue: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// True if the slot is in `available`.
    listed: bool,
    /// Exchanges under way on the connection.
    exchanges: u32,
}

/// A connection, being made or in use.
pub(super) struct Connection<C> {
    pub(super) transport: Transport,
    pub(super) protocol: C,
    pub(super) out: Vec<u8>,
    stage: Stage,
    begun: Instant,
    given_up: bool,
    /// True once an exchange was sent on it.
    was_used: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// TCP is connecting.
    Connecting,
    /// The handshake of TLS or of the protocol is under way.
    Greeting,
    /// Exchanges can be sent.
    Ready,
}

impl<C> Connections<C> {
    /// Slots for the connections of so many users, and for their sockets if they hold some.
    pub(super) fn new(policy: Connect, users: usize, share: Share, sockets: bool) -> Connections<C> {
        let slots = match policy {
            Connect::PerUser | Connect::PerIteration => users,
            Connect::Shared(count) => share.of_first(u64::from(count)) as usize,
        };
        let (available, queue) = (VecDeque::new(), VecDeque::new());
        let all = slots + if sockets { users } else { 0 };
        Connections {
            policy,
            pool: ConnectionPool::with_slots(all),
            first_socket: slots as u32,
            slots: vec![Slot::default(); all],
            available,
            queue,
        }
    }

    /// The slot of a user's socket.
    pub(super) fn socket_of(&self, user: u32) -> u32 {
        self.first_socket + user
    }

    /// The user whose socket has this slot; none if it is the slot of a connection.
    pub(super) fn user_of_socket(&self, slot: u32) -> Option<u32> {
        slot.checked_sub(self.first_socket)
    }

    /// The connection in a slot that is known to have one.
    pub(super) fn connection(&mut self, slot: u32) -> &mut Connection<C> {
        self.pool.connection(slot)
    }

    /// True if the connection in `slot` can carry one more exchange now.
    pub(super) fn can_send<P: Protocol<Connection = C>>(&self, slot: u32, protocol: &P) -> bool {
        let exchanges = self.slots[slot as usize].exchanges as usize;
        self.pool.get(slot).is_some_and(|connection| connection.free_capacity(protocol) > exchanges)
    }

    /// Moves all instants by `by` nanoseconds.
    pub(super) fn shift(&mut self, by: i64) {
        self.pool.shift_deadlines(by);
        self.pool.connections().for_each(|connection| connection.begun = connection.begun.shifted(by));
    }

    /// The slots of those that are being made.
    pub(super) fn being_made(&self) -> impl Iterator<Item = u32> {
        let is_being_made = |slot: &u32| self.pool.get(*slot).is_some_and(Connection::is_being_made);
        (0..self.pool.len()).filter(is_being_made)
    }

    fn is_shared(&self) -> bool {
        matches!(self.policy, Connect::Shared(_))
    }

    fn list<P: Protocol<Connection = C>>(&mut self, slot: u32, protocol: &P) {
        if !self.slots[slot as usize].listed && self.can_send(slot, protocol) {
            self.slots[slot as usize].listed = true;
            self.available.push_back(slot);
        }
    }
}

impl<C> Connection<C> {
    fn free_capacity<P: Protocol<Connection = C>>(&self, protocol: &P) -> usize {
        if self.stage == Stage::Ready && !self.given_up { protocol.capacity(&self.protocol) } else { 0 }
    }

    fn is_reusable<P: Protocol<Connection = C>>(&self, protocol: &P) -> bool {
        !self.given_up && protocol.is_reusable(&self.protocol)
    }

    /// Lets the protocol write a request; it is sent with the next [`Users::send_out`].
    pub(super) fn send<P: Protocol<Connection = C>>(&mut self, protocol: &P, user: &mut P::User, request: Sending) {
        self.was_used = true;
        protocol.send(&mut self.protocol, user, request, &mut self.out);
    }

    /// Lets the protocol give a reply to its user.
    pub(super) fn conclude<P>(
        &mut self,
        protocol: &P,
        user: &mut P::User,
        received: ReceivedReply,
        reply: Reply,
    ) -> Reply
    where
        P: Protocol<Connection = C>,
    {
        protocol.conclude(&mut self.protocol, user, received, reply)
    }

    /// Gives up one exchange; returns whether the connection can go on.
    pub(super) fn cancel<P: Protocol<Connection = C>>(&mut self, protocol: &P, ticket: u32) -> bool {
        protocol.cancel(&mut self.protocol, ticket, &mut self.out)
    }

    /// True until it is ready, or an attempt to make it has failed.
    pub(super) fn is_being_made(&self) -> bool {
        self.stage != Stage::Ready && !self.given_up
    }

    /// True if exchanges can be sent on it, or one is under way.
    pub(super) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready && !self.given_up
    }

    /// Marks the connection so that no exchange follows on it.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Takes the bytes out and in that are not recorded yet.
    pub(super) fn take_bytes(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.transport.bytes_out), std::mem::take(&mut self.transport.bytes_in))
    }
}

impl<P: Protocol> Users<'_, P> {
    /// Makes the shared connections, before the first request needs them.
    pub(super) fn dial_shared(&mut self, context: &mut LoopContext<'_>) {
        if self.connections.is_shared() {
            (0..self.connections.first_socket).for_each(|slot| self.dial(context, slot));
        }
    }

    /// Sends the user's request on a connection: at once, or when one has capacity for it.
    pub(super) fn find_connection(&mut self, context: &mut LoopContext<'_>, user: u32) {
        if self.connections.is_shared() {
            self.connections.queue.push_back(user);
            self.serve_queue(context);
        } else if self.connections.can_send(user, self.task.protocol) {
            self.take(context, user, user);
        } else if self.connections.policy == Connect::PerIteration && self.users[user as usize].had_connection() {
            let detail = "the connection of the iteration ended before its next step";
            let now = context.clock.now();
            self.fail_unsent(context, user, Failure::new(ErrorKind::Closed, detail), now);
        } else {
            self.hang_up(context, user);
            self.dial(context, user);
        }
    }

    /// Sends the requests of waiting users as long as shared connections have capacity.
    fn serve_queue(&mut self, context: &mut LoopContext<'_>) {
        while !self.connections.queue.is_empty() {
            let Some(slot) = self.connections.available.pop_front() else { return };
            self.connections.slots[slot as usize].listed = false;
            if self.connections.can_send(slot, self.task.protocol) {
                let user = self.connections.queue.pop_front().expect("the queue is not empty");
                self.take(context, user, slot);
                self.connections.list(slot, self.task.protocol);
            }
        }
    }

    /// Sends the request of a user on a connection that can carry it.
    pub(super) fn take(&mut self, context: &mut LoopContext<'_>, user: u32, slot: u32) {
        self.connections.slots[slot as usize].exchanges += 1;
        self.send_request(context, user, slot);
        self.send_out(context, slot);
    }

    /// A user gives up waiting for a connection.
    pub(super) fn stop_waiting(&mut self, context: &mut LoopContext<'_>, user: u32) {
        if self.connections.is_shared() {
            self.connections.queue.retain(|waiting| *waiting != user);
        } else {
            self.hang_up(context, user);
        }
    }

    /// Releases the connection after an exchange; the user will need one for the next.
    pub(super) fn release(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        self.connections.slots[slot as usize].exchanges -= 1;
        if self.connections.user_of_socket(slot).is_some() {
            return;
        }
        if !self.connections.connection(slot).is_reusable(self.task.protocol) {
            self.lose_if_unused(context, slot);
        }
        if self.connections.is_shared() {
            self.connections.list(slot, self.task.protocol);
            self.serve_queue(context);
        }
    }

    /// Releases the user's own connection at the end of an iteration, if it is closed then.
    pub(super) fn release_for_good(&mut self, context: &mut LoopContext<'_>, user: u32) {
        if self.connections.policy == Connect::PerIteration {
            self.hang_up(context, user);
        }
    }

    /// A connection that takes no more exchanges is closed once the last one on it is over. A shared one is made again:
    /// a little later if it had none, or a server that closes each at once would keep the loop busy.
    fn lose_if_unused(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        if self.connections.slots[slot as usize].exchanges > 0 {
            return;
        }
        let was_used = self.connections.pool.get(slot).is_some_and(|connection| connection.was_used);
        self.hang_up(context, slot);
        if !self.connections.is_shared() {
            return;
        }
        if was_used {
            self.dial(context, slot);
        } else {
            let now = context.clock.now();
            self.dial_later(context, slot, now);
        }
    }

    /// Lets the deadline of an empty slot dial it.
    fn dial_later(&mut self, context: &mut LoopContext<'_>, slot: u32, now: Instant) {
        let retry = Instant(now.0 + RETRY_AFTER);
        self.connections.pool.set_deadline(slot, retry, &mut context.timers);
    }

    /// Starts to connect the slot of a connection.
    fn dial(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        let mut out = Vec::new();
        let protocol = self.task.protocol.open(&mut out);
        self.dial_for(context, slot, protocol, out);
    }

    /// Starts to connect a slot, for a connection that begins with these bytes.
    pub(super) fn dial_for(&mut self, context: &mut LoopContext<'_>, slot: u32, protocol: P::Connection, out: Vec<u8>) {
        let now = context.clock.now();
        let key = self.connections.pool.renew(slot);
        match context.dial(&self.task.dialer, key) {
            Ok(transport) => {
                context.recorder.count_sent(self.subject_of(slot), 1);
                let stage = Stage::Connecting;
                let connection =
                    Connection { transport, protocol, out, stage, begun: now, given_up: false, was_used: false };
                let pool = &mut self.connections.pool;
                pool.put(slot, connection);
                pool.set_deadline(slot, now.after(self.task.connect_timeout), &mut context.timers);
            }
            Err(broken) => self.fail_to_connect(context, slot, now, broken),
        }
    }

    /// The series under which the making of a slot's connections is recorded.
    pub(super) fn subject_of(&self, slot: u32) -> SubjectIndex {
        match (self.connections.user_of_socket(slot), self.task.protocol.sockets()) {
            (Some(_), Some(sockets)) => request(sockets.step()),
            _ => CONNECT,
        }
    }

    /// Closes the slot's connection, if it has one.
    pub(super) fn hang_up(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        self.connections.slots[slot as usize].exchanges = 0;
        let subject = self.subject_of(slot);
        let Some(mut connection) = self.connections.pool.take(slot) else { return };
        if connection.stage == Stage::Ready {
            self.task.protocol.close(&mut connection.protocol, &mut connection.out);
            // The connection is closed anyway, so it does not matter if this cannot be sent.
            let _ = connection.transport.send(&mut connection.out);
        } else if connection.is_being_made() {
            context.recorder.count_abandoned(subject);
        }
        let (bytes_out, bytes_in) = connection.take_bytes();
        context.recorder.add_bytes(LoopContext::phase(connection.begun), bytes_out, bytes_in);
    }

    /// Closes everything at the end.
    pub(super) fn close_all(&mut self, context: &mut LoopContext<'_>) {
        (0..self.connections.pool.len()).for_each(|slot| self.hang_up(context, slot));
    }

    pub(super) fn check_connect_deadline(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        let now = context.clock.now();
        if self.connections.pool.has_passed(slot, now, &mut context.timers) {
            let is_made = !self.connections.pool.get(slot).is_some_and(Connection::is_being_made);
            if let Some(user) = self.connections.user_of_socket(slot).filter(|_| is_made) {
                return self.tend_socket(context, user, now);
            }
            if self.connections.pool.get(slot).is_none() {
                // A shared connection that was refused, or closed before its first exchange, is tried again.
                self.dial(context, slot);
                return;
            }
            let detail = format!("no connection within {} s", self.task.connect_timeout.seconds());
            self.fail_to_connect(
                context,
                slot,
                now,
                TransportError { kind: ErrorKind::Timeout, detail, cause: Cause::Other },
            );
        }
    }

    /// Sends the protocol's output, as far as the kernel accepts it.
    pub(super) fn send_out(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        let connection = self.connections.connection(slot);
        if connection.out.is_empty() || !connection.transport.is_open() {
            return;
        }
        // The next event would show the failure as well, but with less detail.
        if let Err(broken) = connection.transport.send(&mut connection.out) {
            connection.give_up();
            connection.out.clear();
            context.recorder.keep_example(self.subject_of(slot), broken.kind, broken.detail);
        }
    }

    /// Handles an event of a connection.
    pub(super) fn handle(&mut self, context: &mut LoopContext<'_>, data: u64, flags: epoll::EventFlags) {
        let Some(slot) = self.connections.pool.of_key(data) else { return };
        // The bytes that were read may have ended the connection, and even opened the next one.
        if let Err(broken) = self.move_bytes(context, slot, flags)
            && self.connections.pool.of_key(data).is_some()
        {
            self.lose(context, slot, broken);
        }
    }

    fn move_bytes(
        &mut self,
        context: &mut LoopContext<'_>,
        slot: u32,
        flags: epoll::EventFlags,
    ) -> Result<(), TransportError> {
        let connection = self.connections.connection(slot);
        if connection.stage == Stage::Connecting {
            connection.transport.connected()?;
            connection.stage = Stage::Greeting;
        }
        if flags.contains(epoll::EventFlags::OUT) {
            connection.transport.send(&mut connection.out)?;
        }
        self.become_ready(context, slot);
        let ended = flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        if ended || flags.contains(epoll::EventFlags::IN) {
            self.read(context, slot, ended)?;
        }
        Ok(())
    }

    fn read(&mut self, context: &mut LoopContext<'_>, slot: u32, ended: bool) -> Result<(), TransportError> {
        let key = self.connections.pool.key(slot);
        for _ in 0..MOST_READS {
            let connection = self.connections.connection(slot);
            let (bytes, more) = match connection.transport.receive(&mut self.scratch.raw, &mut self.scratch.plain)? {
                Chunk::Empty => return Ok(()),
                Chunk::End => {
                    self.task.protocol.end_of_input(&mut connection.protocol, &mut self.signals);
                    connection.give_up();
                    self.pass_signals_on(context, key);
                    return Err(TransportError {
                        kind: ErrorKind::Closed,
                        detail: "the server closed the connection".to_owned(),
                        cause: Cause::Other,
                    });
                }
                Chunk::Bytes(bytes, more) => (bytes, more),
            };
            let received =
                self.task.protocol.receive(&mut connection.protocol, bytes, &mut connection.out, &mut self.signals);
            let sent = connection.transport.send(&mut connection.out);
            self.become_ready(context, slot);
            // Also where nothing can be sent any more: signals that stay would be taken for those of another connection.
            self.pass_signals_on(context, key);
            sent?;
            received.map_err(|violation| TransportError {
                kind: ErrorKind::Protocol,
                detail: violation.to_string(),
                cause: Cause::Other,
            })?;
            if !(more || ended) || self.connections.pool.of_key(key).is_none() {
                return Ok(());
            }
        }
        context.read_on(key, ended);
        Ok(())
    }

    /// Passes the protocol's signals on to users. They may start new exchanges at once.
    pub(super) fn pass_signals_on(&mut self, context: &mut LoopContext<'_>, key: u64) {
        if self.signals.is_empty() {
            return;
        }
        let now = context.clock.now();
        let mut signals = std::mem::take(&mut self.signals);
        for signal in signals.drain(..) {
            match signal {
                Signal::FirstByte { ticket } => self.users[ticket as usize].saw_first_byte(now),
                Signal::Done { ticket, reply } => self.conclude(context, ticket, reply, now),
                Signal::Delivery { step, sent, done, outcome } => {
                    self.record_delivery(context, step, sent, done, outcome);
                }
                Signal::Lost(Failure { kind, detail }) => {
                    if let Some(slot) = self.connections.pool.of_key(key) {
                        self.lose(context, slot, TransportError { kind, detail, cause: Cause::Other });
                    }
                }
            }
        }
        self.signals = signals;
        if let Some(slot) = self.connections.pool.of_key(key) {
            self.send_out(context, slot);
        }
    }

    /// If the handshake is over, records the connection and serves waiting users.
    fn become_ready(&mut self, context: &mut LoopContext<'_>, slot: u32) {
        let connection = self.connections.connection(slot);
        let greets = connection.stage == Stage::Greeting;
        if !greets || !connection.transport.is_open() || self.task.protocol.capacity(&connection.protocol) == 0 {
            return;
        }
        connection.stage = Stage::Ready;
        self.record_connect(context, slot, Outcome::Ok);
        self.connections.pool.clear_deadline(slot);
        if let Some(user) = self.connections.user_of_socket(slot) {
            return self.socket_is_ready(context, user);
        }
        if self.connections.is_shared() {
            self.connections.list(slot, self.task.protocol);
            self.serve_queue(context);
        } else {
            self.take(context, slot, slot);
        }
    }

    fn record_connect(&mut self, context: &mut LoopContext<'_>, slot: u32, outcome: Outcome) {
        let done = context.clock.now();
        let connection = self.connections.connection(slot);
        let (bytes_out, bytes_in) = connection.take_bytes();
        let begun = connection.begun;
        let done = if outcome == Outcome::Failed(ErrorKind::Timeout) {
            done.min(begun.after(self.task.connect_timeout))
        } else {
            done
        };
        let exchange = Exchange { scheduled: begun, sent: begun, first_byte: None, done, bytes_out, bytes_in, outcome };
        let phase = LoopContext::phase(begun);
        context.recorder.record(self.subject_of(slot), phase, &exchange);
    }

    /// The connection broke: all exchanges on it fail.
    pub(super) fn lose(&mut self, context: &mut LoopContext<'_>, slot: u32, broken: TransportError) {
        let now = context.clock.now();
        if self.connections.connection(slot).stage != Stage::Ready {
            self.fail_to_connect(context, slot, now, broken);
            return;
        }
        self.connections.connection(slot).give_up();
        if let Some(user) = self.connections.user_of_socket(slot) {
            return self.lose_socket(context, user, broken, now);
        }
        let on_it: Vec<u32> = match self.connections.policy {
            Connect::Shared(_) => (0..self.users.len() as u32).collect(),
            Connect::PerUser | Connect::PerIteration => vec![slot],
        };
        for user in on_it {
            if self.users[user as usize].is_exchanging() && self.users[user as usize].slot == Some(slot) {
                // TLS 1.3 lets a request leave before the server has refused the client.
                self.users[user as usize].connection_failed |= broken.kind == ErrorKind::Tls;
                let reply = Reply::Failed(Failure::new(broken.kind, broken.detail.clone()));
                self.end_exchange(context, user, reply, now);
            }
        }
        // The connection was idle; the next request will open a new one.
        let is_unused = self.connections.slots[slot as usize].exchanges == 0;
        if is_unused && self.connections.pool.get(slot).is_some_and(|connection| connection.given_up) {
            self.lose_if_unused(context, slot);
        }
    }

    /// The connection could not be made: the users that wait for it fail.
    fn fail_to_connect(&mut self, context: &mut LoopContext<'_>, slot: u32, now: Instant, broken: TransportError) {
        if broken.cause == Cause::Local && context.recorder.findings.faults.is_empty() {
            context.recorder.findings.faults.push(broken.detail.clone());
        }
        if self.connections.pool.get(slot).is_some() {
            self.record_connect(context, slot, Outcome::Failed(broken.kind));
            self.connections.connection(slot).give_up();
        }
        context.recorder.keep_example(self.subject_of(slot), broken.kind, broken.detail.clone());
        self.hang_up(context, slot);
        if let Some(user) = self.connections.user_of_socket(slot) {
            let user_of_socket = &mut self.users[user as usize];
            user_of_socket.connection_failed |= user_of_socket.activity == Activity::OpeningSocket;
            return self.socket_is_refused(context, user, Failure::new(broken.kind, broken.detail), now);
        }
        if !self.connections.is_shared() {
            self.users[slot as usize].connection_failed = true;
            self.fail_unsent(context, slot, Failure::new(broken.kind, broken.detail), now);
            return;
        }
        self.dial_later(context, slot, now);
        if (0..self.connections.first_socket).all(|slot| self.connections.pool.get(slot).is_none()) {
            for user in std::mem::take(&mut self.connections.queue) {
                self.users[user as usize].connection_failed = true;
                self.fail_unsent(context, user, Failure::new(broken.kind, broken.detail.clone()), now);
            }
        }
    }
}
