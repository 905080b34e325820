//! One user: waits until an iteration is due, makes its calls, and records them.

use super::call::PartOfCall;
use super::log::{Entry, PendingCall};
use super::{BlockingWorkload, Call, Failure, POLL_EVERY, Shared, Source, own_thread};
use crate::clock::{Clock, nanos};
use crate::offer::{Arrivals, Quota};
use crate::recorder::{ITERATION, part, request};
use crate::schedule::{Random, is_settled, think_time, users_at};
use crate::threads::configure_thread;
use plimsoll_model::job::JobError;
use plimsoll_model::load::{AFTER_FAILURE, Profile};
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, RecordedPhase};
use plimsoll_model::units::{Instant, Nanos, Processors};
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How exactly users follow a ramp, in nanoseconds.
const RAMP_STEP: u64 = 10_000_000;

/// The number of such steps that a user without work looks ahead, so that thousands of idle users do not wake all the
/// time.
const STEPS_AHEAD: u64 = 100;

/// A virtual user, before it runs.
pub(super) struct UserThread<W: BlockingWorkload> {
    /// Its number on this machine.
    pub(super) index: usize,
    pub(super) workload: Arc<W>,
    pub(super) shared: Arc<Shared>,
    /// Its state from the load before; none for a new user.
    pub(super) kept: Option<KeptUser<W::User>>,
}

/// The state of a user between two loads. For it no time passes between them.
pub(super) struct KeptUser<U> {
    user: U,
    random: Random,
    interrupted: Interrupted,
}

/// The action of a user that the end of a load interrupted.
enum Interrupted {
    /// Nothing: the user had ended an iteration.
    Nothing,
    /// A pause, of which so much was left.
    Pause(Nanos),
    /// The wait before an iteration with these steps, of which so much was left.
    Wait(Range<usize>, Nanos),
}

/// A virtual user at work.
struct ActiveUser<'a, W: BlockingWorkload> {
    index: usize,
    workload: &'a W,
    shared: &'a Shared,
    clock: Clock,
    user: W::User,
    /// The call under way. It is reused, so that a call allocates nothing.
    call: Call,
    random: Random,
    /// Iterations that all users may still begin.
    quota: Quota,
    /// Iterations that this user may still begin; `u64::MAX` for no limit.
    own_quota: u64,
    /// True while the profile of a closed loop wants this user to work.
    is_active: bool,
    /// True once that stays so for the rest of the load, so that it need not be worked out for each iteration.
    stays_active: bool,
    interrupted: Interrupted,
    /// When the user turned to the current iteration: in closed load before its own pause, in open load once it was free.
    begun: Instant,
    /// How long the calls of the current iteration have been prepared for.
    prepared: Nanos,
}

impl<W: BlockingWorkload> UserThread<W> {
    /// Makes the user ready, reports that, waits for the clock, and works until nothing is due any more. Returns what the
    /// user keeps if it stays.
    pub(super) fn run(
        mut self,
        cpus: Option<&Processors>,
        ready: &Sender<Result<(), JobError>>,
    ) -> Option<KeptUser<W::User>> {
        let kept = match configure_thread(cpus, self.index).and_then(|()| self.user()) {
            Ok(kept) => kept,
            Err(error) => {
                // The receiver may be gone already.
                let _ = ready.send(Err(error));
                return None;
            }
        };
        self.shared.log(self.index).thread = Some(own_thread());
        let _ = ready.send(Ok(()));
        let clock = self.wait_for_the_clock()?;
        let mut user = ActiveUser {
            index: self.index,
            workload: &*self.workload,
            shared: &self.shared,
            clock,
            user: kept.user,
            call: Call::new(clock, self.shared.timeout, Arc::clone(&self.shared.over)),
            random: kept.random,
            quota: self.shared.quota.clone(),
            own_quota: self.shared.quota_of_user,
            is_active: false,
            stays_active: false,
            interrupted: kept.interrupted,
            begun: clock.first(),
            prepared: Nanos(0),
        };
        user.run();
        self.workload.load_ended(&mut user.user);
        let ActiveUser { user, random, interrupted, .. } = user;
        self.shared.stays.then_some(KeptUser { user, random, interrupted })
    }

    /// The user that stayed, or a new one.
    fn user(&mut self) -> Result<KeptUser<W::User>, JobError> {
        if let Some(kept) = self.kept.take() {
            return Ok(kept);
        }
        let number = self.shared.number(self.index);
        let user = self.workload.user(number as u32, &self.shared.over);
        let user = user.map_err(|failure| JobError::Users(failure.detail))?;
        let random = Random::seeded(self.shared.seed, 1000 + number as u64);
        Ok(KeptUser { user, random, interrupted: Interrupted::Nothing })
    }

    fn wait_for_the_clock(&self) -> Option<Clock> {
        loop {
            if self.shared.is_over() {
                return None;
            }
            if let Some(clock) = self.shared.clock.get() {
                return Some(*clock);
            }
            std::thread::park_timeout(POLL_EVERY);
        }
    }
}

impl<W: BlockingWorkload> ActiveUser<'_, W> {
    fn run(&mut self) {
        let Some(mut begun) = self.resume() else { return self.become_inactive() };
        while let Some((steps, due)) = begun.take().or_else(|| self.begin_next()) {
            if !self.submit(&steps, due) {
                break;
            }
            let (_, after) = self.workload.pauses(&self.user);
            let outcome = self.iterate(due, steps);
            if !self.rest(outcome, after) {
                break;
            }
        }
        self.become_inactive();
    }

    /// Goes on with what the end of the last load interrupted. Returns the iteration that was begun, if there is one, and
    /// when it is due; none if this load, too, ends before.
    fn resume(&mut self) -> Option<Option<(Range<usize>, Instant)>> {
        match std::mem::replace(&mut self.interrupted, Interrupted::Nothing) {
            Interrupted::Nothing => Some(None),
            Interrupted::Wait(steps, left) => Some(Some((steps, self.clock.first().after(left)))),
            Interrupted::Pause(left) => {
                self.follow(true);
                self.pause_until(self.clock.first().after(left)).then_some(None)
            }
        }
    }

    /// Waits until an iteration is due, and begins it. Returns its steps, and when its calls are due: in closed load after
    /// the user's own pause. None when there is no iteration left.
    fn begin_next(&mut self) -> Option<(Range<usize>, Instant)> {
        let due = self.next_due()?;
        self.begun = if self.is_open() { self.clock.now() } else { due };
        let steps = self.workload.begin_iteration(&mut self.user, &mut self.random);
        let (before, _) = self.workload.pauses(&self.user);
        let due = if self.is_open() { due } else { due.after(before.into()) };
        Some((steps, due))
    }

    /// The phase to which an iteration belongs that was due at `due`.
    fn phase(&self, due: Instant) -> RecordedPhase {
        self.clock.phase_of_arrival(due, self.shared.window.end)
    }

    /// True in open load, where arrivals have a schedule.
    fn is_open(&self) -> bool {
        matches!(self.shared.source, Source::Open(_))
    }

    fn follow(&mut self, is_active: bool) {
        if is_active != self.is_active {
            self.is_active = is_active;
            self.shared.log(self.index).is_active = is_active;
        }
    }

    fn become_inactive(&mut self) {
        self.shared.log(self.index).is_active = false;
    }

    /// Waits until the next iteration is due; none when there is none left.
    fn next_due(&mut self) -> Option<Instant> {
        match &self.shared.source {
            Source::Closed { users, .. } => loop {
                let now = self.clock.now();
                if self.shared.is_over() || now >= self.shared.window.end {
                    return None;
                }
                let is_active = self.stays_active || self.index < users_at(users, now, self.shared.share);
                self.stays_active = is_active && (self.stays_active || is_settled(users, now));
                self.follow(is_active);
                if is_active {
                    return Some(now);
                }
                self.sleep_until(self.next_active(users, now));
            },
            Source::Open(arrivals) => {
                let Some(due) = self.take_arrival(arrivals) else {
                    self.wait_for_the_end();
                    return None;
                };
                let waited_for = self.clock.now() < due;
                self.sleep_until(due).then_some(())?;
                if waited_for {
                    self.log_lateness(due);
                }
                Some(due)
            }
        }
    }

    /// Takes the next arrival; none if this user begins no other in this load. If users stay, arrivals that wait when
    /// the load is over are left to the next one.
    fn take_arrival(&mut self, arrivals: &Mutex<Arrivals>) -> Option<Instant> {
        let window = &self.shared.window;
        let mut arrivals = arrivals.lock().expect("no user panics with the arrivals in its hands");
        if self.shared.stays && self.clock.now() >= window.end {
            return None;
        }
        let due = arrivals.next_if(|due| due < window.end)?;
        if !self.quota.admit(due, window, &mut self.own_quota) {
            return None;
        }
        // Closing takes the remaining arrivals before it takes the logs, so that each arrival is in one of the two.
        self.shared.log(self.index).take(due);
        Some(due)
    }

    /// Waits for the end of a load that time alone ends: it lasts that long, also after the last arrival.
    fn wait_for_the_end(&self) {
        if self.quota.is_endless() && self.own_quota == u64::MAX {
            self.sleep_until(self.shared.window.end);
        }
    }

    /// The instant at which the profile wants this user to work, or at which to look again.
    fn next_active(&self, users: &Profile, now: Instant) -> Instant {
        let at = |step| now.after(Nanos(step * RAMP_STEP));
        let step = (1..STEPS_AHEAD).find(|step| self.index < users_at(users, at(*step), self.shared.share));
        at(step.unwrap_or(STEPS_AHEAD)).min(self.shared.window.end)
    }

    /// Waits until the iteration is due, which in closed load may be too late for the load. Returns true if it may go on.
    fn submit(&mut self, steps: &Range<usize>, due: Instant) -> bool {
        if self.is_open() {
            return true;
        }
        if due >= self.shared.window.end {
            self.interrupted = Interrupted::Wait(steps.clone(), due.since(self.shared.window.end));
            self.sleep_until(self.shared.window.end);
            return false;
        }
        // Without a pause before it, it is due already.
        if due > self.begun && self.clock.now() < due {
            if !self.sleep_until(due) {
                return false;
            }
            self.log_lateness(due);
        }
        self.quota.admit(due, &self.shared.window, &mut self.own_quota)
    }

    fn iterate(&mut self, due: Instant, steps: Range<usize>) -> Outcome {
        let (mut outcome, mut took) = (Outcome::Ok, Nanos(0));
        self.prepared = Nanos(0);
        for step in steps {
            let is_first = took == Nanos(0);
            let (result, duration) = self.step(step, is_first, due);
            took.0 += duration.0;
            if let Err(kind) = result {
                outcome = Outcome::Failed(kind);
                break;
            }
        }
        self.end(due, took, outcome);
        self.workload.end_iteration(&mut self.user);
        self.note_between_calls(None);
        outcome
    }

    /// Makes the call of a step and records it. Returns its result and duration.
    fn step(&mut self, step: usize, is_first: bool, iteration: Instant) -> (Result<(), ErrorKind>, Nanos) {
        let asked = self.clock.now();
        self.note_between_calls(Some(asked));
        let before = self.workload.before_call(&mut self.user, step);
        let ready = self.clock.now();
        let sent = match before {
            Ok(()) => ready,
            // A call that could not be made lasts as long as the attempt: to connect, for example.
            Err(_) if is_first => self.begun.max(iteration),
            Err(_) => asked,
        };
        self.call.begin(sent, self.phase(iteration));
        // Only arrivals have a schedule, and the preparation of a call is not part of its duration.
        if before.is_ok() {
            self.prepared.0 += ready.since(asked).0;
        }
        let scheduled = if self.is_open() && is_first { iteration.after(self.prepared).min(sent) } else { sent };
        {
            let mut log = self.shared.log(self.index);
            log.is_active = true;
            if before.is_ok() && !log.begin(PendingCall { step, iteration, scheduled, sent }) {
                return (Err(ErrorKind::Timeout), Nanos(0));
            }
        }
        let was_made = before.is_ok();
        let result = before.and_then(|()| self.workload.call(&mut self.user, step, &mut self.call));
        let done = self.clock.now();
        let Call { bytes_out, bytes_in, first_byte, .. } = self.call;
        let outcome = result.as_ref().map_or_else(|failure| Outcome::Failed(failure.kind), |()| Outcome::Ok);
        let exchange = Exchange { scheduled, sent, first_byte, done, bytes_out, bytes_in, outcome };
        let exchange = Exchange { done: self.at_most_timeout(&exchange), ..exchange };
        let (subject, phase) = (request(step), self.phase(iteration));
        let entry = match was_made {
            true => Entry::Exchange(subject, phase, exchange),
            false => Entry::Unsent(subject, phase, exchange),
        };
        self.log(step, (phase, done), entry, result.err());
        let kind = match outcome {
            Outcome::Ok => Ok(()),
            Outcome::Failed(kind) => Err(kind),
        };
        (kind, done.since(sent))
    }

    fn note_between_calls(&self, begun: Option<Instant>) {
        self.shared.logs[self.index].set_between_calls(begun);
    }

    /// A time-out counts with its limit, not with the time at which the call returned.
    fn at_most_timeout(&self, exchange: &Exchange) -> Instant {
        match exchange.outcome {
            Outcome::Failed(ErrorKind::Timeout) => exchange.done.min(exchange.sent.after(self.shared.timeout.into())),
            _ => exchange.done,
        }
    }

    /// Logs how the call of a step ended, with its parts.
    fn log(&mut self, step: usize, (phase, ended): (RecordedPhase, Instant), entry: Entry, failure: Option<Failure>) {
        let mut log = self.shared.log(self.index);
        self.note_between_calls(Some(ended));
        log.pending = None;
        log.add(entry);
        for made in self.call.parts.drain(..) {
            let scheduled = made.sent;
            let PartOfCall { part: taken, sent, first_byte, done, outcome } = made;
            let exchange = Exchange { scheduled, sent, first_byte, done, bytes_out: 0, bytes_in: 0, outcome };
            log.add(Entry::Exchange(part(step, self.shared.steps, taken), phase, exchange));
        }
        if let Some(Failure { kind, detail }) = failure {
            log.add(Entry::Failure(request(step), kind, detail));
        }
        self.shared.file_if_long(&mut log);
    }

    /// Records an iteration. Its duration is that of its calls, without the time between them.
    fn end(&self, due: Instant, took: Nanos, outcome: Outcome) {
        let done = self.clock.now();
        let sent = Instant(done.0 - took.0 as i64);
        let scheduled = due.after(self.prepared).min(sent);
        let exchange = Exchange { scheduled, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome };
        let mut log = self.shared.log(self.index);
        log.arrival = None;
        log.is_active = !self.is_open();
        log.add(Entry::Exchange(ITERATION, self.phase(due), exchange));
    }

    /// Pauses between two iterations: for the think time of the study and the user's own pause. Returns true if the
    /// user goes on.
    fn rest(&mut self, outcome: Outcome, after: Duration) -> bool {
        let least = match outcome {
            Outcome::Failed(kind) if !kind.is_conflict() => nanos(AFTER_FAILURE),
            _ => 0,
        };
        let Source::Closed { think, .. } = &self.shared.source else { return !self.shared.is_over() };
        let pause = (think_time(*think, &mut self.random) + nanos(after)).max(least);
        if pause == 0 {
            return !self.shared.is_over();
        }
        self.pause_until(self.clock.now().after(Nanos(pause.unsigned_abs())))
    }

    /// Pauses until `due`. Returns false if the load ends before.
    fn pause_until(&mut self, due: Instant) -> bool {
        if due >= self.shared.window.end {
            self.interrupted = Interrupted::Pause(due.since(self.shared.window.end));
            // No iteration follows, but the user stays connected for as long as the others work.
            self.sleep_until(self.shared.window.end);
            return false;
        }
        let goes_on = self.sleep_until(due);
        self.log_lateness(due);
        goes_on
    }

    /// Sleeps until `due`. Returns false if the load ends before, which wakes the user.
    fn sleep_until(&self, due: Instant) -> bool {
        loop {
            let left = due.since(self.clock.now()).0;
            if left == 0 || self.shared.is_over() {
                return !self.shared.is_over();
            }
            std::thread::park_timeout(Duration::from_nanos(left));
        }
    }

    /// Logs how late it is for work that was due.
    fn log_lateness(&self, due: Instant) {
        let now = self.clock.now();
        self.shared.log(self.index).add(Entry::Late(now, now.since(due)));
    }
}
