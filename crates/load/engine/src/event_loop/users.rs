//! Virtual users of a protocol: iterations of steps, pauses within them, and their records.

use super::connections::{Connections, Scratch};
use super::context::{AfterIteration, EndedIteration, LoopContext};
use super::held_sockets::HeldSockets;
use super::work::Work;
use crate::clock::nanos;
use crate::protocol::{Failure, Next, Protocol, ReceivedReply, Reply, Sending, Signal};
use crate::recorder::{ITERATION, SubjectIndex, request};
use crate::timers::{Alarm, Deadline};
use crate::transport::Dialer;
use plimsoll_model::load::AFTER_FAILURE;
use plimsoll_model::load::Share;
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, RecordedPhase};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Connect;
use rustix::event::epoll::EventFlags;

/// Why an exchange failed that was still under way when the drain was over.
const CUT_OFF: &str = "still under way at the end of the drain";

/// The task of the users of one thread.
pub struct Task<'a, P: Protocol> {
    /// The protocol that they speak, with their steps.
    pub protocol: &'a P,
    /// Which users share a connection, and for how long.
    pub connect: Connect,
    /// The longest that a connection attempt may take.
    pub connect_timeout: Nanos,
    /// The longest that an exchange may take, for each step.
    pub timeouts: Vec<Nanos>,
    /// Opens their connections.
    pub dialer: Dialer,
    /// The share of the load that this thread carries.
    pub share: Share,
    /// Seed of the users' random values.
    pub seed: u64,
}

/// The users of one thread, and their connections.
pub struct Users<'a, P: Protocol> {
    pub(super) task: Task<'a, P>,
    pub(super) users: Vec<User<P::User>>,
    pub(super) connections: Connections<P::Connection>,
    pub(super) signals: Vec<Signal>,
    pub(super) scratch: Scratch,
    pub(super) held_sockets: HeldSockets,
}

/// A virtual user.
#[derive(Debug)]
pub(super) struct User<U> {
    pub(super) activity: Activity,
    /// True if it runs its steps for stopping, and is not in an iteration.
    is_retiring: bool,
    /// True if its present iteration has had an exchange, on whatever connection.
    has_exchanged: bool,
    /// True if it has had one on a connection that is not its socket.
    had_connection: bool,
    /// True if a connection that its present iteration waited for could not be made.
    pub(super) connection_failed: bool,
    /// The connection that carries its present exchange.
    pub(super) slot: Option<u32>,
    step: usize,
    /// When its iteration was due, when it turned to it, its phase, and how much of the time since then is not part of it.
    begun: Instant,
    started: Instant,
    phase: RecordedPhase,
    paused: Nanos,
    /// When its exchange was due, or its pause began.
    scheduled: Instant,
    sent: Instant,
    first_byte: Option<Instant>,
    deadline: Deadline,
    /// Its next action, which was due after the end of a load.
    held: Option<Next>,
    pub(super) program: U,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It has nothing to do in an iteration.
    Resting,
    /// It pauses within an iteration, or until the next load.
    Pausing,
    /// It waits for a connection that can take its request.
    Waiting,
    /// Its request is under way.
    Exchanging,
    /// It waits until its socket is ready.
    OpeningSocket,
    /// It has nothing more to do, and waits for what is under way to its socket.
    Leaving,
}

impl<U> User<U> {
    fn new(program: U) -> User<U> {
        User {
            activity: Activity::Resting,
            is_retiring: false,
            has_exchanged: false,
            had_connection: false,
            connection_failed: false,
            slot: None,
            step: 0,
            begun: Instant(0),
            started: Instant(0),
            phase: RecordedPhase::Warmup,
            paused: Nanos(0),
            scheduled: Instant(0),
            sent: Instant(0),
            first_byte: None,
            deadline: Deadline::default(),
            held: None,
            program,
        }
    }

    fn shift(&mut self, by: i64) {
        for instant in [&mut self.begun, &mut self.started, &mut self.scheduled, &mut self.sent] {
            *instant = instant.shifted(by);
        }
        self.deadline.shift(by);
    }

    pub(super) fn had_connection(&self) -> bool {
        self.had_connection
    }

    pub(super) fn is_exchanging(&self) -> bool {
        self.activity == Activity::Exchanging
    }

    pub(super) fn saw_first_byte(&mut self, at: Instant) {
        self.first_byte.get_or_insert(at);
    }
}

impl<P: Protocol> Work for Users<'_, P> {
    fn start(&mut self, context: &mut LoopContext<'_>) {
        self.dial_shared(context);
    }

    fn begin(&mut self, context: &mut LoopContext<'_>, user: u32, due: Instant) {
        self.begin_iteration(context, user, due);
    }

    fn alarm(&mut self, context: &mut LoopContext<'_>, alarm: Alarm, due: Instant) {
        match alarm {
            Alarm::Pause(user) => self.end_pause(context, user, due),
            Alarm::UserDeadline(user) => self.check_user_deadline(context, user),
            Alarm::ConnectDeadline(slot) => self.check_connect_deadline(context, slot),
            Alarm::Wake(_) | Alarm::Operation { .. } => unreachable!("users of a protocol set no such alarm"),
        }
    }

    fn event(&mut self, context: &mut LoopContext<'_>, data: u64, flags: EventFlags) {
        self.handle(context, data, flags);
    }

    fn after_events(&mut self, context: &mut LoopContext<'_>) {
        self.look_after_deliveries(context);
    }

    fn unsent(&mut self, context: &mut LoopContext<'_>, _offer: usize, due: Instant, now: Instant) {
        let outcome = Outcome::Failed(ErrorKind::Unsent);
        let exchange =
            Exchange { scheduled: due, sent: due, first_byte: None, done: now, bytes_out: 0, bytes_in: 0, outcome };
        let step = self.task.protocol.first_step().map(request);
        for subject in step.into_iter().chain([ITERATION]) {
            context.recorder.record_unsent(subject, context.phase_of_arrival(due), &exchange);
        }
        let detail = "no user was free for it: the study's `max_users` were all waiting for replies".to_owned();
        context.recorder.keep_example(step.unwrap_or(ITERATION), ErrorKind::Unsent, detail);
    }

    fn retires(&self) -> bool {
        // A user that leaves closes its socket.
        self.task.protocol.retires() || self.task.protocol.sockets().is_some()
    }

    fn retire(&mut self, context: &mut LoopContext<'_>, index: u32) {
        let user = &mut self.users[index as usize];
        (user.is_retiring, user.has_exchanged, user.had_connection) = (true, false, false);
        user.connection_failed = false;
        let next = self.task.protocol.retire(&mut user.program);
        let now = context.clock.now();
        self.proceed(context, index, next, now);
    }

    fn cut_off(&mut self, context: &mut LoopContext<'_>, user: u32, now: Instant) {
        self.cut_off_iteration(context, user, now);
    }

    fn under_way(&mut self, _context: &mut LoopContext<'_>, found: &mut Vec<SubjectIndex>) {
        let exchanging = self.users.iter().filter(|user| user.is_exchanging());
        found.extend(exchanging.map(|user| request(user.step)));
        found.extend(self.connections.being_made().map(|slot| self.subject_of(slot)));
    }

    fn has_exchanges(&mut self, context: &LoopContext<'_>) -> bool {
        context.recorder.generator.in_flight > 0 || self.awaits_deliveries(context)
    }

    fn openings(&self) -> Option<SubjectIndex> {
        self.task.protocol.sockets().map(|sockets| request(sockets.step()))
    }

    fn sockets(&self) -> u64 {
        self.held_sockets.open()
    }

    fn ends(&mut self, context: &mut LoopContext<'_>) {
        self.close_deliveries(context);
    }

    fn shift(&mut self, context: &mut LoopContext<'_>, by: i64) {
        self.users.iter_mut().for_each(|user| user.shift(by));
        self.connections.shift(by);
        self.held_sockets.go_on();
        self.task.protocol.set_clock(context.clock);
    }

    fn close(&mut self, context: &mut LoopContext<'_>) {
        // A later load of the same flow has users of its own.
        if let Some(sockets) = self.task.protocol.sockets() {
            self.users.iter_mut().for_each(|user| sockets.forget_listener(&mut user.program));
        }
        self.close_all(context);
    }
}

impl<'a, P: Protocol> Users<'a, P> {
    /// This many users, none of them at work yet.
    pub fn new(task: Task<'a, P>, users: usize) -> Users<'a, P> {
        let number = |place: usize| (task.share.index + place * task.share.of) as u64;
        let made = (0..users).map(|place| User::new(task.protocol.user(number(place), task.seed))).collect();
        let sockets = task.protocol.sockets().is_some();
        let connections = Connections::new(task.connect, users, task.share, sockets);
        let held_sockets = HeldSockets::of(if sockets { users } else { 0 });
        Users { users: made, connections, signals: Vec::new(), scratch: Scratch::default(), held_sockets, task }
    }

    fn begin_iteration(&mut self, context: &mut LoopContext<'_>, index: u32, due: Instant) {
        let user = &mut self.users[index as usize];
        (user.is_retiring, user.has_exchanged, user.had_connection) = (false, false, false);
        user.connection_failed = false;
        (user.begun, user.phase, user.paused) = (due, context.phase_of_arrival(due), Nanos(0));
        // An arrival may have waited for the user, which is a part of the iteration.
        user.started = if context.is_open(index) { context.clock.now() } else { due };
        let next = self.task.protocol.begin(&mut user.program);
        self.proceed(context, index, next, due);
    }

    /// Lets the user do its next action, due at `due`.
    pub(super) fn proceed(&mut self, context: &mut LoopContext<'_>, index: u32, mut next: Next, mut due: Instant) {
        let mut at = due;
        if matches!(next, Next::Begun) {
            let user = &mut self.users[index as usize];
            // What came before is no part of the iteration.
            at = context.clock.now();
            user.paused = at.since(user.started);
            due = user.begun.after(user.paused);
            next = self.task.protocol.next(&mut user.program);
        }
        match next {
            Next::Exchange(_) | Next::Refused(..) if context.stands_still(at) => self.hold(context, index, next, due),
            Next::Exchange(step) => self.begin_step(context, index, step, due),
            Next::Refused(step, failure) => self.refuse_step(context, index, step, due, failure),
            Next::Pause(span) => self.begin_pause(context, index, span),
            Next::Socket(_) if context.stands_still(at) => self.hold(context, index, next, due),
            Next::Socket(action) => self.act_on_socket(context, index, action, due),
            Next::Done => self.end_iteration(context, index, Outcome::Ok),
            Next::Failed(Failure { kind, detail }) => {
                context.recorder.keep_example(ITERATION, kind, detail);
                self.end_iteration(context, index, Outcome::Failed(kind));
            }
            Next::Stop => {
                // It may come from an exchange that has just ended.
                self.users[index as usize].activity = Activity::Resting;
                self.close_socket(context, index);
                context.stopped(index, self.users[index as usize].begun);
            }
            Next::Begun => unreachable!("an iteration begins once"),
        }
    }

    /// Leaves the user's next action to the next load.
    fn hold(&mut self, context: &mut LoopContext<'_>, index: u32, next: Next, due: Instant) {
        let user = &mut self.users[index as usize];
        (user.activity, user.held, user.scheduled) = (Activity::Pausing, Some(next), due);
        context.timers.set(due, Alarm::Pause(index));
    }

    /// The user's next request is due: it is sent as soon as a connection can carry it.
    fn begin_step(&mut self, context: &mut LoopContext<'_>, index: u32, step: usize, due: Instant) {
        self.prepare_exchange(context, index, step, due);
        self.find_connection(context, index);
    }

    /// The exchange of a step begins; what it is sent on is not known yet.
    pub(super) fn prepare_exchange(&mut self, context: &mut LoopContext<'_>, index: u32, step: usize, due: Instant) {
        let user = &mut self.users[index as usize];
        user.step = step;
        user.scheduled = due;
        user.first_byte = None;
        user.activity = Activity::Waiting;
        context.recorder.generator.in_flight += 1;
    }

    /// The user's next request is due, but cannot be made.
    pub(super) fn refuse_step(
        &mut self,
        context: &mut LoopContext<'_>,
        index: u32,
        step: usize,
        due: Instant,
        failure: Failure,
    ) {
        let user = &mut self.users[index as usize];
        (user.step, user.scheduled, user.first_byte) = (step, due, None);
        context.recorder.generator.in_flight += 1;
        let now = context.clock.now();
        self.fail_unsent(context, index, failure, now);
    }

    pub(super) fn begin_pause(&mut self, context: &mut LoopContext<'_>, index: u32, span: Nanos) {
        let now = context.clock.now();
        let user = &mut self.users[index as usize];
        (user.activity, user.scheduled) = (Activity::Pausing, now);
        context.timers.set(now.after(span), Alarm::Pause(index));
    }

    fn end_pause(&mut self, context: &mut LoopContext<'_>, index: u32, due: Instant) {
        let user = &mut self.users[index as usize];
        if user.activity != Activity::Pausing {
            return;
        }
        user.activity = Activity::Resting;
        if let Some(next) = user.held.take() {
            return self.proceed(context, index, next, due);
        }
        let now = context.clock.now();
        context.recorder.record_lateness(now.since(due));
        user.paused.0 += now.since(user.scheduled).0;
        let next = self.task.protocol.next(&mut user.program);
        self.proceed(context, index, next, due);
    }

    /// Sends the user's request on a connection that has capacity for it.
    pub(super) fn send_request(&mut self, context: &mut LoopContext<'_>, index: u32, slot: u32) {
        let now = context.clock.now();
        let user = &mut self.users[index as usize];
        user.activity = Activity::Exchanging;
        user.has_exchanged = true;
        user.had_connection |= self.connections.user_of_socket(slot).is_none();
        user.slot = Some(slot);
        user.sent = now;
        // In closed load a request is due when it can be sent; only arrivals have a schedule.
        if !context.is_open(index) {
            user.scheduled = now;
        }
        let step = user.step;
        user.deadline.set(now.after(self.task.timeouts[step]), Alarm::UserDeadline(index), &mut context.timers);
        context.recorder.count_sent(request(step), 1);
        let request = Sending { step, ticket: index, now };
        self.connections.connection(slot).send(self.task.protocol, &mut user.program, request);
    }

    /// A reply has come.
    pub(super) fn conclude(&mut self, context: &mut LoopContext<'_>, index: u32, reply: Reply, now: Instant) {
        let user = &mut self.users[index as usize];
        let slot = user.slot.expect("an exchange has a connection");
        let received = ReceivedReply { step: user.step, now, took: now.since(user.sent) };
        let reply = self.connections.connection(slot).conclude(self.task.protocol, &mut user.program, received, reply);
        self.end_exchange(context, index, reply, now);
    }

    /// Ends an exchange: its reply has come, good or bad, or will not come any more.
    pub(super) fn end_exchange(&mut self, context: &mut LoopContext<'_>, index: u32, reply: Reply, now: Instant) {
        let (outcome, step) = (outcome_of(&reply), self.users[index as usize].step);
        match reply {
            Reply::Expected { number } => context.recorder.findings.sequences[step].saw(number),
            Reply::Failed(Failure { kind, detail }) => {
                context.recorder.findings.sequences[step].missed();
                context.recorder.keep_example(request(step), kind, detail);
            }
        }
        self.record_exchange(context, index, outcome, now);
        let slot = self.users[index as usize].slot.take().expect("an exchange has a connection");
        self.release(context, slot);
        match outcome {
            Outcome::Ok => {
                let next = self.task.protocol.next(&mut self.users[index as usize].program);
                self.proceed(context, index, next, now);
            }
            Outcome::Failed(_) => self.end_iteration(context, index, outcome),
        }
    }

    /// No request could be sent: the step fails with what went wrong, timed from when it was due.
    pub(super) fn fail_unsent(&mut self, context: &mut LoopContext<'_>, index: u32, failure: Failure, now: Instant) {
        let Failure { kind, detail } = failure;
        let user = &mut self.users[index as usize];
        user.sent = user.scheduled;
        user.slot = None;
        let step = user.step;
        context.recorder.keep_example(request(step), kind, detail);
        self.record_exchange(context, index, Outcome::Failed(kind), now);
        self.end_iteration(context, index, Outcome::Failed(kind));
    }

    fn record_exchange(&mut self, context: &mut LoopContext<'_>, index: u32, outcome: Outcome, done: Instant) {
        context.recorder.generator.in_flight -= 1;
        let user = &mut self.users[index as usize];
        user.deadline.clear();
        let (bytes_out, bytes_in) = user.slot.map_or((0, 0), |slot| self.connections.connection(slot).take_bytes());
        let done = self.at_most_timeout(index, outcome, done);
        let user = &self.users[index as usize];
        let phase = match user.is_retiring {
            true => context.phase_of_stopping(user.scheduled),
            false => context.phase_of_exchange(user.phase, user.scheduled),
        };
        let exchange = Exchange {
            scheduled: user.scheduled,
            sent: user.sent,
            first_byte: user.first_byte,
            done,
            bytes_out,
            bytes_in,
            outcome,
        };
        match user.slot {
            Some(_) => context.recorder.record(request(user.step), phase, &exchange),
            None => context.recorder.record_unsent(request(user.step), phase, &exchange),
        }
    }

    /// A time-out counts with its limit, not with the time at which the loop noticed it.
    fn at_most_timeout(&self, index: u32, outcome: Outcome, done: Instant) -> Instant {
        let user = &self.users[index as usize];
        match outcome {
            Outcome::Failed(ErrorKind::Timeout) => done.min(user.sent.after(self.task.timeouts[user.step])),
            _ => done,
        }
    }

    pub(super) fn end_iteration(&mut self, context: &mut LoopContext<'_>, index: u32, outcome: Outcome) {
        self.release_for_good(context, index);
        let user = &mut self.users[index as usize];
        user.activity = Activity::Resting;
        if user.is_retiring {
            return self.leave(context, index);
        }
        let pauses = user.connection_failed || !user.has_exchanged && context.is_at_once(user.begun);
        let least = Nanos(if pauses { nanos(AFTER_FAILURE).unsigned_abs() } else { 0 });
        let done = context.clock.now();
        let User { begun, phase, paused, .. } = *user;
        let ended = EndedIteration { begun, phase, paused, outcome, done, least };
        if let AfterIteration::Begin(due) = context.iteration_ended(index, ended) {
            self.begin_iteration(context, index, due);
        }
    }

    fn check_user_deadline(&mut self, context: &mut LoopContext<'_>, index: u32) {
        let now = context.clock.now();
        let user = &mut self.users[index as usize];
        if !user.deadline.has_passed(now, Alarm::UserDeadline(index), &mut context.timers) {
            return;
        }
        let limit = self.task.timeouts[user.step].seconds();
        let failure = Failure::new(ErrorKind::Timeout, format!("no reply within {limit} s"));
        self.give_up_exchange(context, index, failure, now);
    }

    /// Ends an exchange whose reply is not waited for any longer.
    fn give_up_exchange(&mut self, context: &mut LoopContext<'_>, index: u32, failure: Failure, now: Instant) {
        let slot = self.users[index as usize].slot.expect("an exchange has a connection");
        let stays = self.connections.connection(slot).cancel(self.task.protocol, index);
        if stays {
            self.send_out(context, slot);
        } else {
            self.connections.connection(slot).give_up();
        }
        self.end_exchange(context, index, Reply::Failed(failure), now);
    }

    /// Cuts off an iteration at the end of the drain. An exchange that is still under way is recorded as a time-out
    /// with the time that it has taken; an iteration that pauses counts neither as ended nor as failed. The connection
    /// is left as it is, because all are closed soon.
    fn cut_off_iteration(&mut self, context: &mut LoopContext<'_>, index: u32, now: Instant) {
        if context.stands_still(now) {
            return self.cut_off_exchange(context, index, now);
        }
        let user = &mut self.users[index as usize];
        let User { step, begun, phase, paused, is_retiring, .. } = *user;
        match std::mem::replace(&mut user.activity, Activity::Resting) {
            Activity::Resting => return,
            // What is under way to it is counted so at the end of the load, and its socket is closed with all others.
            Activity::Leaving => return context.retired(index),
            Activity::Pausing | Activity::OpeningSocket if is_retiring => return context.retired(index),
            Activity::Pausing | Activity::OpeningSocket => {
                context.iteration_interrupted(index, begun, now);
                return;
            }
            Activity::Waiting => user.sent = user.scheduled,
            Activity::Exchanging => context.recorder.findings.sequences[step].missed(),
        }
        let outcome = Outcome::Failed(ErrorKind::Timeout);
        context.recorder.keep_example(request(step), ErrorKind::Timeout, CUT_OFF.to_owned());
        self.record_exchange(context, index, outcome, now);
        if is_retiring {
            return context.retired(index);
        }
        context.iteration_ended(index, EndedIteration { begun, phase, paused, outcome, done: now, least: Nanos(0) });
    }

    /// Cuts off the exchange of a user that stays for the next load: it fails, and its connection carries no other. A
    /// user that pauses goes on then.
    fn cut_off_exchange(&mut self, context: &mut LoopContext<'_>, index: u32, now: Instant) {
        let failure = Failure::new(ErrorKind::Timeout, CUT_OFF);
        match self.users[index as usize].activity {
            Activity::Resting | Activity::Pausing | Activity::OpeningSocket | Activity::Leaving => {}
            Activity::Waiting => {
                self.stop_waiting(context, index);
                self.fail_unsent(context, index, failure, now);
            }
            Activity::Exchanging => self.give_up_exchange(context, index, failure, now),
        }
    }
}

fn outcome_of(reply: &Reply) -> Outcome {
    match reply {
        Reply::Expected { .. } => Outcome::Ok,
        Reply::Failed(failure) => Outcome::Failed(failure.kind),
    }
}
