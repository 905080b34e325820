//! The users of one thread, as the work of its loop: each runs until it waits for something.

use super::RunContext;
use super::network::{Network, UserEvent};
use super::threads::SampleCopy;
use super::user::{Activity, CallError, Called, CalledFunction, ExceededLimit, ScriptUser, ThreadHost};
use plimsoll_engine::event_loop::context::{AfterIteration, EndedIteration, LoopContext};
use plimsoll_engine::event_loop::work::Work;
use plimsoll_engine::recorder::{ITERATION, SubjectIndex};
use plimsoll_engine::timers::Alarm;
use plimsoll_javascript::{End, Exception, Host, Level, OpId, Parked, Request, Wakeup};
use plimsoll_k6::user::IterationEnd;
use plimsoll_k6::user::{Purpose, Recording, ScriptRecord};
use plimsoll_k6_run::metrics::Kind;
use plimsoll_k6_run::metrics::builtin::DROPPED_ITERATIONS;
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, Subject};
use plimsoll_model::units::{Instant, Nanos};
use rustix::event::epoll::EventFlags;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

/// The operation whose alarm checks if an iteration takes too long. Scripts have no operation of this number.
const ITERATION_LIMIT: OpId = 0;

/// The user number of the alarm that is due regularly.
const NO_USER: u32 = u32::MAX;

/// The name of requests that could not be made. Their own text is not a URL, and may be anything.
const UNMADE: &str = "(not sent)";

/// How often the regular alarm checks if the run must stop.
const CHECK_EVERY: Nanos = Nanos(50_000_000);

/// How often samples are copied if a threshold may end the run; slightly below two seconds, so that they have arrived
/// when a second is over.
const COPY_EVERY: Nanos = Nanos(1_900_000_000);

/// The users of one thread.
pub(super) struct Users<'a> {
    pub(super) common: &'a RunContext<'a>,
    pub(super) host: Rc<ThreadHost>,
    pub(super) recording: Rc<Recording>,
    pub(super) network: Network,
    pub(super) users: Vec<ScriptUser>,
    /// The function that users call, by offer.
    pub(super) calls: Vec<CalledFunction>,
    /// Iterations that are to begin, and when they were due.
    pub(super) ready: VecDeque<(u32, Instant)>,
    /// Events that came for users after the end of a load, and wait for the next one.
    pub(super) held: VecDeque<UserEvent>,
    /// Receives copies of samples during the run, with the number of the thread.
    pub(super) copies: Option<(usize, Sender<SampleCopy>)>,
    /// The result of a call outside of all scenarios.
    pub(super) result: Option<Called>,
    /// When samples were last copied.
    pub(super) copied: Instant,
    /// True if the script had ended the run before these began.
    pub(super) was_aborted: bool,
    /// The number of active users that was last added to the plan's count.
    pub(super) counted: u64,
}

impl Work for Users<'_> {
    fn start(&mut self, context: &mut LoopContext<'_>) {
        self.copied = context.clock.now();
        self.check_regularly(context);
    }

    fn begin(&mut self, context: &mut LoopContext<'_>, user: u32, due: Instant) {
        self.ready.push_back((user, due));
        self.after_events(context);
    }

    fn alarm(&mut self, context: &mut LoopContext<'_>, alarm: Alarm, due: Instant) {
        match alarm {
            Alarm::Operation { user: NO_USER, .. } => self.check_regularly(context),
            Alarm::Operation { user, id: ITERATION_LIMIT } => self.check_iteration(context, user, due),
            Alarm::Operation { user, id } => {
                if !self.take_held(user, id) && !self.network.turn(context, user, id) {
                    self.wake(context, user, id, due);
                }
            }
            Alarm::ConnectDeadline(line) => self.network.deadline(context, line),
            Alarm::Wake(_) | Alarm::Pause(_) | Alarm::UserDeadline(_) => {}
        }
        self.after_events(context);
    }

    /// All bytes are read first, for every user, and only then do users go on: so the work of one user does not delay
    /// the timing of another.
    fn event(&mut self, context: &mut LoopContext<'_>, data: u64, flags: EventFlags) {
        self.network.event(context, data, flags);
    }

    /// Resumes users whose operations have results, and begins iterations that are due, until all users wait. Then
    /// sends their requests.
    fn after_events(&mut self, context: &mut LoopContext<'_>) {
        if context.stands_still_now() {
            self.hold_events(context);
            self.network.send_out(context);
            return;
        }
        loop {
            if let Some(UserEvent { user, id, event }) = self.network.next_event() {
                if let Some(vm) = &mut self.users[user as usize].vm {
                    let parked = vm.wake(id, Wakeup::Operation(event));
                    self.parked(context, user, parked);
                }
            } else if let Some((user, due)) = self.ready.pop_front() {
                let now = context.clock.now();
                self.begin_iteration(context, user, due, now);
            } else if !self.network.send_out(context) {
                break;
            }
        }
        self.count_users(context.recorder.generator.users);
    }

    fn cut_off(&mut self, context: &mut LoopContext<'_>, user: u32, now: Instant) {
        if context.stands_still_now() && !self.network.waits(user) {
            // It goes on with the next load.
            return;
        }
        self.held.retain(|held| held.user != user);
        let script_user = &mut self.users[user as usize];
        if !matches!(script_user.activity, Activity::Loading | Activity::Iterating) {
            return;
        }
        script_user.vm = None;
        let (activity, due) = (std::mem::replace(&mut script_user.activity, Activity::Nothing), script_user.due);
        let had_request = self.network.cut_off(context, user);
        self.end_interrupted(context, user, activity, now);
        // Its next runtime begins with a first iteration, which may be the one that logs in.
        self.users[user as usize].user.begin_anew();
        self.result = Some(Err(CallError::TimedOut));
        // A study counts an iteration that took too long; k6 drops it.
        let what = if had_request && self.common.purpose == Purpose::Study {
            let outcome = Outcome::Failed(ErrorKind::Timeout);
            context.iteration_ended(user, self.ended(user, outcome, now))
        } else {
            context.iteration_interrupted(user, due, now)
        };
        self.follow(user, what);
    }

    fn unsent(&mut self, context: &mut LoopContext<'_>, offer: usize, due: Instant, now: Instant) {
        if let (Purpose::Run, Some(scenario)) = (self.common.purpose, self.calls[offer].scenario) {
            self.recording.add_of_scenario(now, scenario, &[(DROPPED_ITERATIONS, 1.0)]);
            return;
        }
        context.recorder.record_unsent(
            ITERATION,
            context.phase_of_arrival(due),
            &without_reply(due, now, ErrorKind::Unsent),
        );
        let detail = "no user was free for it: the study's `max_users` were all busy".to_owned();
        context.recorder.keep_example(ITERATION, ErrorKind::Unsent, detail);
    }

    fn dropped(&mut self, _context: &mut LoopContext<'_>, offer: usize, arrivals: u64, now: Instant) {
        if let Some(scenario) = self.calls[offer].scenario {
            self.recording.add_of_scenario(now, scenario, &[(DROPPED_ITERATIONS, arrivals as f64)]);
        }
    }

    fn left_over(&mut self, context: &mut LoopContext<'_>, offer: usize, iterations: u64, now: Instant) {
        if self.common.purpose == Purpose::Run {
            self.dropped(context, offer, iterations, now);
        }
    }

    fn has_exchanges(&mut self, _context: &LoopContext<'_>) -> bool {
        self.network.has_exchanges()
    }

    fn under_way(&mut self, context: &mut LoopContext<'_>, found: &mut Vec<SubjectIndex>) {
        self.network.under_way(context, found);
    }

    fn shift(&mut self, context: &mut LoopContext<'_>, by: i64) {
        self.host.go_on(context.clock, by);
        self.users.iter_mut().for_each(|user| user.shift(by));
        self.network.go_on(by);
        self.copied = self.copied.shifted(by);
    }

    fn close(&mut self, context: &mut LoopContext<'_>) {
        let now = context.clock.now();
        for user in 0..self.users.len() {
            let script_user = &mut self.users[user];
            script_user.vm = None;
            let activity = std::mem::replace(&mut script_user.activity, Activity::Nothing);
            self.end_interrupted(context, user as u32, activity, now);
        }
        self.network.close(context);
        self.count_users(0);
    }
}

impl Users<'_> {
    fn count_users(&mut self, now: u64) {
        let counts = &self.common.plan.counts;
        let before = std::mem::replace(&mut self.counted, now);
        if now > before {
            counts.users.fetch_add(now - before, Relaxed);
        } else if now < before {
            counts.users.fetch_sub(before - now, Relaxed);
        }
    }

    /// Keeps events for the next load. Each reaches its user as long after the begin of that load as it came after the end
    /// of this one.
    fn hold_events(&mut self, context: &mut LoopContext<'_>) {
        let now = context.clock.now();
        while let Some(event) = self.network.next_event() {
            context.timers.set(now, Alarm::Operation { user: event.user, id: event.id });
            self.held.push_back(event);
        }
    }

    /// Passes on an event that was held. Returns false if there is none for this operation.
    fn take_held(&mut self, user: u32, id: OpId) -> bool {
        let Some(place) = self.held.iter().position(|held| (held.user, held.id) == (user, id)) else { return false };
        self.network.pass_back(self.held.remove(place).expect("it is there"));
        true
    }

    fn begin_iteration(&mut self, context: &mut LoopContext<'_>, user: u32, due: Instant, now: Instant) {
        let phase = context.phase_of_arrival(due);
        self.network.begin_iteration(user, phase);
        let script_user = &mut self.users[user as usize];
        (script_user.due, script_user.first_due, script_user.phase) = (due, None, phase);
        if script_user.vm.is_some() || self.take_over(context, user, now) {
            self.call(context, user, now);
            return;
        }
        let script_user = &mut self.users[user as usize];
        script_user.activity = Activity::Loading;
        match script_user.make(self.common, &self.host).map(plimsoll_javascript::Vm::load) {
            Ok(parked) => self.parked(context, user, parked),
            Err(error) => {
                context.recorder.findings.faults.push(format!("failed to make another user: {error}"));
                self.remove_user(context, user, ErrorKind::Script, error.to_string());
            }
        }
    }

    /// Goes on as the user of the same number in an earlier scenario, with its runtime and connections. Returns false if
    /// there is none.
    fn take_over(&mut self, context: &mut LoopContext<'_>, user: u32, now: Instant) -> bool {
        let ScriptUser { user: own, is_shared: true, .. } = &self.users[user as usize] else { return false };
        let has_it = |other: &ScriptUser| Rc::ptr_eq(&other.user, own) && other.vm.is_some();
        let Some(before) = self.users.iter().position(has_it) else { return false };
        // That scenario is over: the loop would break off in this turn what is still under way.
        self.cut_off(context, before as u32, now);
        let vm = self.users[before].vm.take();
        self.network.hand_over(before as u32, user);
        self.users[user as usize].vm = vm;
        self.users[user as usize].vm.is_some()
    }

    /// Calls the function that is an iteration.
    fn call(&mut self, context: &mut LoopContext<'_>, user: u32, now: Instant) {
        let script_user = &mut self.users[user as usize];
        (script_user.activity, script_user.began) = (Activity::Iterating, now);
        script_user.first_due = context.is_open(user).then_some(script_user.due);
        if let Some(limit) = self.common.limits.iteration {
            context.timers.set(now.after(limit.into()), Alarm::Operation { user, id: ITERATION_LIMIT });
        }
        let call = script_user.call(&self.calls[script_user.offer], self.host.seen(now));
        let vm = script_user.vm.as_mut().expect("it was made before");
        let parked = vm.call(call);
        self.parked(context, user, parked);
    }

    /// A timer of the script is due.
    fn wake(&mut self, context: &mut LoopContext<'_>, user: u32, id: OpId, due: Instant) {
        if let Some(vm) = &mut self.users[user as usize].vm {
            context.recorder.record_lateness(context.clock.now().since(due));
            let parked = vm.wake(id, Wakeup::Timer);
            self.parked(context, user, parked);
        }
    }

    /// A user has parked, and so returned control to the thread.
    fn parked(&mut self, context: &mut LoopContext<'_>, user: u32, parked: Parked) {
        self.take_requests(context, user);
        if self.common.purpose == Purpose::Study {
            self.record_own_samples(context, user);
        }
        match (parked, self.users[user as usize].activity) {
            (Parked::Over(Ok(_)), Activity::Loading) => {
                let now = context.clock.now();
                self.call(context, user, now);
            }
            (Parked::Over(result), Activity::Iterating) => self.iteration_returned(context, user, result),
            (Parked::Ended(End::Limit(limit, place)), _) => {
                self.stop_for_limit(context, user, self.common.limits.exceeded(limit, place));
            }
            (Parked::Ended(End::Stopped), Activity::Loading | Activity::Iterating) => {
                self.result = Some(Err(CallError::Stopped));
                self.remove_user(context, user, ErrorKind::Script, CallError::Stopped.to_string());
            }
            (Parked::Ended(End::NotLoaded(exception)), _) => {
                self.complain(user, &exception);
                self.result = Some(Err(CallError::Threw(exception.clone())));
                self.remove_user(context, user, ErrorKind::Script, exception.to_string());
            }
            _ => {}
        }
        // `teardown` also runs after a run that the script has ended.
        if self.common.plan.abort.get().is_some() && !self.was_aborted {
            self.common.halt.store(true, Relaxed);
        }
    }

    fn take_requests(&mut self, context: &mut LoopContext<'_>, user: u32) {
        loop {
            let script_user = &mut self.users[user as usize];
            let Some(request) = script_user.vm.as_mut().and_then(plimsoll_javascript::Vm::next_request) else { return };
            let first_due = script_user.first_due.take();
            match request {
                Request::Start(id, op) => self.network.start(context, user, id, op, first_due),
                Request::Timer(id, due) => context.timers.set(self.host.of_loop(due), Alarm::Operation { user, id }),
                Request::Cancel(id) => self.network.cancel(context, user, id),
            }
        }
    }

    /// An iteration has come to its end.
    fn iteration_returned(
        &mut self,
        context: &mut LoopContext<'_>,
        user: u32,
        result: Result<Option<String>, Exception>,
    ) {
        let now = context.clock.now();
        let (sent, received) = self.network.end_iteration(context, user);
        let script_user = &mut self.users[user as usize];
        script_user.activity = Activity::Nothing;
        script_user.user.end(self.host.seen(now), IterationEnd::Complete, sent, received);
        let took = now.since(script_user.began);
        let mut outcome = Outcome::Ok;
        if let Err(exception) = &result {
            self.complain(user, exception);
            // One error, not two: most scripts throw because of the exchange that failed.
            let kind = self.network.failed_exchange(user).unwrap_or(ErrorKind::Script);
            context.recorder.keep_example(ITERATION, kind, exception.to_string());
            outcome = Outcome::Failed(kind);
        }
        if !self.is_of_scenario(user) {
            self.result = Some(result.map_err(CallError::Threw));
        }
        let least = Nanos(self.common.least_iteration.0.saturating_sub(took.0));
        // The next iteration begins at the instant at which this one ended, so the clock need not be read twice.
        if let AfterIteration::Begin(due) =
            context.iteration_ended(user, EndedIteration { least, ..self.ended(user, outcome, now) })
        {
            self.begin_iteration(context, user, due, now);
        }
    }

    fn follow(&mut self, user: u32, what: AfterIteration) {
        if let AfterIteration::Begin(due) = what {
            self.ready.push_back((user, due));
        }
    }

    /// Stops a user whose iteration takes too long.
    fn check_iteration(&mut self, context: &mut LoopContext<'_>, user: u32, due: Instant) {
        let script_user = &self.users[user as usize];
        if let Some(limit) = self.common.limits.iteration
            && script_user.activity == Activity::Iterating
            && script_user.began.after(limit.into()) <= due
        {
            self.stop_for_limit(context, user, self.common.limits.exceeded_time(limit));
        }
    }

    /// Stops a user that exceeded a limit for good; the others go on.
    fn stop_for_limit(&mut self, context: &mut LoopContext<'_>, user: u32, broken: ExceededLimit) {
        let id = self.users[user as usize].user.id;
        let text = format!("user {id} was stopped for good: {broken}");
        if self.is_of_scenario(user) {
            self.host.log(Level::Error, &format!("user {id} was stopped for good: {}", broken.render()));
        }
        self.common.broken.lock().unwrap_or_else(PoisonError::into_inner).push(text.clone());
        self.result = Some(Err(CallError::LimitExceeded(broken)));
        self.remove_user(context, user, ErrorKind::Limit, text);
    }

    fn remove_user(&mut self, context: &mut LoopContext<'_>, user: u32, kind: ErrorKind, detail: String) {
        let now = context.clock.now();
        let script_user = &mut self.users[user as usize];
        script_user.vm = None;
        let activity = std::mem::replace(&mut script_user.activity, Activity::Gone);
        self.network.give_up(context, user);
        self.end_interrupted(context, user, activity, now);
        context.recorder.keep_example(ITERATION, kind, detail);
        context.withdraw(user);
        let what = context.iteration_ended(user, self.ended(user, Outcome::Failed(kind), now));
        self.follow(user, what);
    }

    /// Ends an iteration that was cut off, which k6 counts as interrupted.
    fn end_interrupted(&mut self, context: &mut LoopContext<'_>, user: u32, activity: Activity, now: Instant) {
        if activity == Activity::Iterating {
            let (sent, received) = self.network.end_iteration(context, user);
            self.users[user as usize].user.end(self.host.seen(now), IterationEnd::Interrupted, sent, received);
        }
    }

    /// The present iteration of a user, which is over.
    fn ended(&self, user: u32, outcome: Outcome, done: Instant) -> EndedIteration {
        let script_user = &self.users[user as usize];
        let (begun, phase) = (script_user.due, script_user.phase);
        EndedIteration { begun, phase, paused: Nanos(0), outcome, done, least: Nanos(0) }
    }

    /// True if it is a user of a scenario. For `setup` and similar functions, their caller reports the result.
    fn is_of_scenario(&self, user: u32) -> bool {
        self.calls[self.users[user as usize].offer].scenario.is_some()
    }

    fn complain(&self, user: u32, exception: &Exception) {
        let kind = exception.to_string();
        if self.is_of_scenario(user)
            && let Some(more) = self.common.plan.log_limit.admit(&kind)
        {
            self.host.log(Level::Error, &format!("{}{more}", exception.render()));
        }
    }

    /// Records the script's own checks and samples, which belong to no exchange.
    fn record_own_samples(&mut self, context: &mut LoopContext<'_>, user: u32) {
        let at = context.clock.now();
        let phase = context.phase_of_exchange(self.users[user as usize].phase, at);
        let (recorder, network) = (&mut context.recorder, &mut self.network);
        self.recording.drain(|record| match record {
            ScriptRecord::UnsentRequest { why } => {
                network.exchange_failed(user, ErrorKind::Connect);
                let subject = recorder.subject(&Subject::Request(UNMADE.to_owned()));
                recorder.record_unsent(subject, phase, &without_reply(at, at, ErrorKind::Connect));
                recorder.keep_example(subject, ErrorKind::Connect, unmade_request_error(why));
            }
            ScriptRecord::Check { name, passed } => {
                let subject = recorder.subject(&Subject::Check(name.to_owned()));
                recorder.record_check(subject, phase, passed, at);
            }
            ScriptRecord::Sample { metric, value } => {
                let subject = recorder.subject(&Subject::Custom(metric.kind.into(), metric.name.clone()));
                match metric.kind {
                    Kind::Rate => recorder.record_check(subject, phase, value != 0.0, at),
                    _ => recorder.record_value(subject, phase, value, at),
                }
            }
        });
    }

    /// Handles the regular alarm: checks for an interruption, and copies samples.
    fn check_regularly(&mut self, context: &mut LoopContext<'_>) {
        let now = context.clock.now();
        if self.common.interrupted.load(Relaxed) || self.common.steering.is_over() {
            self.common.halt.store(true, Relaxed);
        }
        if now >= self.copied.after(COPY_EVERY) {
            self.send_sample_copy(context);
        }
        context.timers.set(now.after(CHECK_EVERY), Alarm::Operation { user: NO_USER, id: 0 });
    }

    fn send_sample_copy(&mut self, context: &mut LoopContext<'_>) {
        let Some((thread, copies)) = &self.copies else { return };
        // The receiver may be gone already.
        let _ = copies.send(SampleCopy { thread: *thread, sinks: self.recording.copy() });
        self.copied = context.clock.now();
    }
}

/// Why a request could not be made, with the likeliest reason for it.
fn unmade_request_error(why: &str) -> String {
    match why.starts_with("\"undefined") {
        true => format!("{why} (a variable that `env` of the workload does not name is `undefined` in the script)"),
        false => why.to_owned(),
    }
}

/// The record of a request that was never sent.
fn without_reply(due: Instant, done: Instant, kind: ErrorKind) -> Exchange {
    let outcome = Outcome::Failed(kind);
    Exchange { scheduled: due, sent: due, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome }
}
