//! What virtual users do: iterations of steps, pauses between them, and their records.

use super::{Engine, Source};
use crate::clock::nanos;
use crate::protocol::{Protocol, Reply};
use crate::recorder::{ITERATION, request};
use crate::schedule::think_time;
use crate::timers::{Alarm, Deadline};
use plimsoll_model::load::AFTER_FAILURE;
use plimsoll_model::record::{ErrorKind, Exchange, Outcome};
use plimsoll_model::units::{Instant, Nanos};

/// A virtual user.
#[derive(Debug)]
pub(super) struct User {
    activity: Activity,
    /// The connection that carries its present exchange.
    pub(super) slot: Option<u32>,
    step: usize,
    iteration: Instant,
    scheduled: Instant,
    sent: Instant,
    first_byte: Option<Instant>,
    deadline: Deadline,
    /// Iterations of the measure phase that it may still start.
    quota: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// It has nothing to do.
    Parked,
    /// It pauses between two iterations.
    Thinking,
    /// It waits for a connection that can take its request.
    Waiting,
    /// Its request is under way.
    Exchanging,
}

impl User {
    pub(super) fn new(quota: u64) -> User {
        User {
            activity: Activity::Parked,
            slot: None,
            step: 0,
            iteration: Instant(0),
            scheduled: Instant(0),
            sent: Instant(0),
            first_byte: None,
            deadline: Deadline::default(),
            quota,
        }
    }

    pub(super) fn is_parked(&self) -> bool {
        self.activity == Activity::Parked
    }

    pub(super) fn is_past_first_step(&self) -> bool {
        self.step > 0
    }

    pub(super) fn is_exchanging(&self) -> bool {
        self.activity == Activity::Exchanging
    }

    pub(super) fn has_quota(&self) -> bool {
        self.quota > 0
    }

    pub(super) fn saw_first_byte(&mut self, at: Instant) {
        self.first_byte.get_or_insert(at);
    }
}

impl<P: Protocol> Engine<'_, P> {
    /// Starts an iteration that was due at `due`, unless the user is to stop.
    pub(super) fn begin_iteration(&mut self, index: u32, due: Instant) {
        if !self.takes_quota(index, due) {
            self.park(index);
            return;
        }
        let user = &mut self.users[index as usize];
        user.step = 0;
        user.iteration = due;
        self.iterating += 1;
        self.begin_step(index, due);
    }

    fn takes_quota(&mut self, index: u32, due: Instant) -> bool {
        let user = &mut self.users[index as usize];
        if due >= self.window_end || self.quota == 0 || user.quota == 0 {
            return false;
        }
        if due.0 >= 0 {
            self.quota -= u64::from(self.quota != u64::MAX);
            user.quota -= u64::from(user.quota != u64::MAX);
        }
        true
    }

    fn park(&mut self, index: u32) {
        self.users[index as usize].activity = Activity::Parked;
        if let Source::Open { free_since, .. } = &mut self.source {
            if self.free.is_empty() {
                *free_since = self.task.clock.now();
            }
            self.free.push(index);
        }
    }

    /// The user's next request is due: it is sent as soon as a connection can carry it.
    fn begin_step(&mut self, index: u32, due: Instant) {
        let user = &mut self.users[index as usize];
        user.scheduled = due;
        user.first_byte = None;
        user.activity = Activity::Waiting;
        self.recorder.generator.in_flight += 1;
        self.find_connection(index);
    }

    /// Sends the user's request on a connection that has room for it.
    pub(super) fn send_request(&mut self, index: u32, slot: u32) {
        let now = self.task.clock.now();
        let user = &mut self.users[index as usize];
        user.activity = Activity::Exchanging;
        user.slot = Some(slot);
        user.sent = now;
        // In closed load a request is due when it can be sent; only arrivals have a schedule.
        if matches!(self.source, Source::Closed { .. }) {
            user.scheduled = now;
        }
        let step = user.step;
        user.deadline.set(now.after(self.task.timeouts[step]), Alarm::UserDeadline(index), &mut self.timers);
        self.pool.connection(slot).send(self.task.protocol, step, index);
    }

    /// The reply has come, good or bad.
    pub(super) fn end_exchange(&mut self, index: u32, reply: Reply, now: Instant) {
        let (outcome, step) = (outcome_of(&reply), self.users[index as usize].step);
        match reply {
            Reply::Expected { number } => self.recorder.findings.sequences[step].saw(number),
            Reply::Failed { kind, detail } => {
                self.recorder.findings.sequences[step].missed();
                self.recorder.keep_example(request(step), kind, detail);
            }
        }
        self.record_exchange(index, outcome, now);
        let slot = self.users[index as usize].slot.take().expect("an exchange has a connection");
        match outcome {
            Outcome::Ok if step + 1 < self.task.timeouts.len() => {
                self.users[index as usize].step += 1;
                self.release(slot);
                self.begin_step(index, now);
            }
            _ => {
                self.release_for_good(slot);
                self.end_iteration(index, outcome, self.task.clock.now());
            }
        }
    }

    /// No request could be sent: the step fails with what went wrong, timed from when it was due.
    pub(super) fn fail_unsent(&mut self, index: u32, kind: ErrorKind, detail: String, now: Instant) {
        let user = &mut self.users[index as usize];
        user.sent = user.scheduled;
        user.slot = None;
        let step = user.step;
        self.recorder.keep_example(request(step), kind, detail);
        self.record_exchange(index, Outcome::Failed(kind), now);
        self.end_iteration(index, Outcome::Failed(kind), now);
    }

    fn record_exchange(&mut self, index: u32, outcome: Outcome, done: Instant) {
        self.recorder.generator.in_flight -= 1;
        let user = &mut self.users[index as usize];
        user.deadline.clear();
        let (bytes_out, bytes_in) = user.slot.map_or((0, 0), |slot| self.pool.connection(slot).take_bytes());
        let done = self.at_most_timeout(index, outcome, done);
        let user = &self.users[index as usize];
        let exchange = Exchange {
            scheduled: user.scheduled,
            sent: user.sent,
            first_byte: user.first_byte,
            done,
            bytes_out,
            bytes_in,
            outcome,
        };
        self.recorder.record(request(user.step), Self::phase(user.iteration), &exchange);
    }

    /// A time-out counts at its limit, not at the moment at which the loop came to look.
    fn at_most_timeout(&self, index: u32, outcome: Outcome, done: Instant) -> Instant {
        let user = &self.users[index as usize];
        match outcome {
            Outcome::Failed(ErrorKind::Timeout) => done.min(user.sent.after(self.task.timeouts[user.step])),
            _ => done,
        }
    }

    fn end_iteration(&mut self, index: u32, outcome: Outcome, now: Instant) {
        self.iterating -= 1;
        self.record_iteration(index, outcome, now);
        match self.source {
            Source::Open { .. } => self.park(index),
            Source::Closed { .. } if index as usize >= self.active => self.park(index),
            Source::Closed { think, .. } => {
                let refused = matches!(outcome, Outcome::Failed(ErrorKind::Connect | ErrorKind::Tls));
                let least = if refused { nanos(AFTER_FAILURE) } else { 0 };
                let pause = think_time(think, &mut self.random).max(least);
                if pause > 0 {
                    self.users[index as usize].activity = Activity::Thinking;
                    self.timers.set(now.after(Nanos(pause as u64)), Alarm::Wake(index));
                } else {
                    self.begin_iteration(index, now);
                }
            }
        }
    }

    fn record_iteration(&mut self, index: u32, outcome: Outcome, done: Instant) {
        let begun = self.users[index as usize].iteration;
        let exchange =
            Exchange { scheduled: begun, sent: begun, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome };
        self.recorder.record(ITERATION, Self::phase(begun), &exchange);
    }

    /// A pause is over.
    pub(super) fn wake(&mut self, index: u32, due: Instant) {
        if index as usize >= self.active {
            self.park(index);
            return;
        }
        let now = self.task.clock.now();
        self.recorder.record_lateness(now.since(due));
        self.begin_iteration(index, now);
    }

    pub(super) fn check_user_deadline(&mut self, index: u32, now: Instant) {
        let user = &mut self.users[index as usize];
        if !user.deadline.strikes(now, Alarm::UserDeadline(index), &mut self.timers) {
            return;
        }
        let slot = user.slot.expect("only an exchange has a deadline");
        let limit = self.task.timeouts[user.step].seconds();
        let reply = Reply::Failed { kind: ErrorKind::Timeout, detail: format!("no reply within {limit} s") };
        let stays = self.pool.connection(slot).cancel(self.task.protocol, index);
        if stays {
            self.send_out(slot);
        } else {
            self.pool.connection(slot).give_up();
        }
        self.end_exchange(index, reply, now);
    }

    /// At the end of the drain: what is still under way has taken at least this long.
    pub(super) fn cut_off_iterations(&mut self, now: Instant) {
        for index in 0..self.users.len() as u32 {
            let user = &mut self.users[index as usize];
            let step = user.step;
            match user.activity {
                Activity::Parked | Activity::Thinking => continue,
                Activity::Waiting => user.sent = user.scheduled,
                Activity::Exchanging => self.recorder.findings.sequences[step].missed(),
            }
            let outcome = Outcome::Failed(ErrorKind::Timeout);
            let detail = "still under way at the end of the drain".to_owned();
            self.recorder.keep_example(request(step), ErrorKind::Timeout, detail);
            self.record_exchange(index, outcome, now);
            self.record_iteration(index, outcome, now);
        }
    }

    /// Arrivals that were due but for which no user ever became free: they waited until now.
    pub(super) fn count_unsent(&mut self, now: Instant) {
        let Source::Open { arrivals, .. } = &mut self.source else { return };
        let outcome = Outcome::Failed(ErrorKind::Unsent);
        while let Some(due) = arrivals.next_if(|due| *due < self.window_end && self.quota > 0) {
            self.quota -= u64::from(self.quota != u64::MAX);
            let exchange =
                Exchange { scheduled: due, sent: due, first_byte: None, done: now, bytes_out: 0, bytes_in: 0, outcome };
            for subject in [request(0), ITERATION] {
                self.recorder.record(subject, Self::phase(due), &exchange);
            }
            let detail = "no user was free for it: the study's `max_users` were all waiting for replies".to_owned();
            self.recorder.keep_example(request(0), ErrorKind::Unsent, detail);
        }
    }
}

fn outcome_of(reply: &Reply) -> Outcome {
    match reply {
        Reply::Expected { .. } => Outcome::Ok,
        Reply::Failed { kind, .. } => Outcome::Failed(*kind),
    }
}
