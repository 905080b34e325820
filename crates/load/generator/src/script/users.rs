//! The users of one thread, as the work of its loop: each runs until it waits for something.

use super::Common;
use super::member::{Broken, Called, Calls, Doing, Member, Surroundings, Why};
use super::network::{Answered, Network};
use super::threads::Copied;
use crate::engine::core::{Core, Ended, What};
use crate::engine::work::Work;
use crate::recorder::ITERATION;
use crate::timers::Alarm;
use plimsoll_javascript::{End, Exception, Level, OpId, Parked, Request, Wakeup};
use plimsoll_k6::user::IterationEnd;
use plimsoll_k6::user::{Purpose, Recording, ScriptRecord};
use plimsoll_k6_run::metrics::Kind;
use plimsoll_k6_run::metrics::builtin::DROPPED_ITERATIONS;
use plimsoll_model::record::{ErrorKind, Exchange, Outcome, Subject};
use plimsoll_model::units::{Instant, Nanos};
use rustix::event::epoll::EventFlags;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

/// The operation of no script: its alarm looks whether an iteration takes too long.
const ITERATION_LIMIT: OpId = 0;

/// The user of the alarm that comes round whatever users do.
const NOBODY: u32 = u32::MAX;

/// How requests are called that could not be made: what they were asked of is no URL, and may be anything.
const UNMADE: &str = "(not sent)";

/// How often it is looked whether somebody breaks the run off.
const LOOK_EVERY: Nanos = Nanos(50_000_000);

/// How often samples are handed over where a threshold may end the run: so that they are there when a second is over.
const COPY_EVERY: Nanos = Nanos(1_900_000_000);

/// The users of one thread.
pub(super) struct Users<'a> {
    pub(super) common: &'a Common<'a>,
    pub(super) host: Rc<Surroundings>,
    pub(super) recording: Rc<Recording>,
    pub(super) network: Network,
    pub(super) members: Vec<Member>,
    /// What they call, by offer.
    pub(super) calls: Vec<Calls>,
    /// Iterations that are to begin, and when they were due.
    pub(super) ready: VecDeque<(u32, Instant)>,
    /// Who hears of samples while the run goes on.
    pub(super) copies: Option<(usize, Sender<Copied>)>,
    /// What came of a call that is none of a scenario.
    pub(super) result: Option<Called>,
    /// What is said of users that broke a limit.
    pub(super) broken: Vec<String>,
    /// When samples were last handed over.
    pub(super) copied: Instant,
    /// Whether the script had ended the run before these began.
    pub(super) was_aborted: bool,
    /// How many users the plan was told that work.
    pub(super) counted: u64,
}

impl Work for Users<'_> {
    fn start(&mut self, core: &mut Core<'_>) {
        self.copied = core.clock.now();
        self.look_around(core);
    }

    fn begin(&mut self, core: &mut Core<'_>, user: u32, due: Instant) {
        self.ready.push_back((user, due));
        self.go_on(core);
    }

    fn alarm(&mut self, core: &mut Core<'_>, alarm: Alarm, due: Instant) {
        match alarm {
            Alarm::Operation { user: NOBODY, .. } => self.look_around(core),
            Alarm::Operation { user, id: ITERATION_LIMIT } => self.check_iteration(core, user, due),
            Alarm::Operation { user, id } => {
                if !self.network.turn(core, user, id) {
                    self.wake(core, user, id, due);
                }
            }
            Alarm::ConnectDeadline(line) => self.network.deadline(core, line),
            Alarm::Wake(_) | Alarm::Pause(_) | Alarm::UserDeadline(_) => {}
        }
        self.go_on(core);
    }

    /// What came is read first, whoever it is for, and only then do users go on: none of them stands in the way of
    /// another's instants.
    fn event(&mut self, core: &mut Core<'_>, data: u64, flags: EventFlags) {
        self.network.event(core, data, flags);
    }

    /// Lets users go on that have been answered, or begin what is due, until all of them wait; then what they ask for
    /// is sent.
    fn go_on(&mut self, core: &mut Core<'_>) {
        loop {
            if let Some(Answered { user, id, event }) = self.network.next_answer() {
                if let Some(vm) = &mut self.members[user as usize].vm {
                    let parked = vm.wake(id, Wakeup::Operation(event));
                    self.parked(core, user, parked);
                }
            } else if let Some((user, due)) = self.ready.pop_front() {
                let now = core.clock.now();
                self.begin_iteration(core, user, due, now);
            } else if !self.network.send_out(core) {
                break;
            }
        }
        self.count_users(core.recorder.generator.users);
    }

    fn cut_off(&mut self, core: &mut Core<'_>, user: u32, now: Instant) {
        let member = &mut self.members[user as usize];
        if !matches!(member.doing, Doing::Loading | Doing::Iterating) {
            return;
        }
        member.vm = None;
        let (doing, due) = (std::mem::replace(&mut member.doing, Doing::Nothing), member.due);
        let had_request = self.network.abandon(core, user);
        self.end_interrupted(core, user, doing, now);
        self.result = Some(Err(Why::TimedOut));
        // A study counts what took too long; k6 forgets it.
        let what = if had_request && self.common.purpose == Purpose::Study {
            let outcome = Outcome::Failed(ErrorKind::Timeout);
            core.iteration_ended(user, ended(due, outcome, now))
        } else {
            core.iteration_interrupted(user, due, now)
        };
        self.follow(user, what);
    }

    fn unsent(&mut self, core: &mut Core<'_>, offer: usize, due: Instant, now: Instant) {
        if let (Purpose::Run, Some(scenario)) = (self.common.purpose, self.calls[offer].scenario) {
            self.recording.add_of_scenario(now, scenario, &[(DROPPED_ITERATIONS, 1.0)]);
            return;
        }
        core.recorder.record(ITERATION, Core::phase(due), &without_reply(due, now, ErrorKind::Unsent));
        let detail = "no user was free for it: the study's `max_users` were all busy".to_owned();
        core.recorder.keep_example(ITERATION, ErrorKind::Unsent, detail);
    }

    fn close(&mut self, core: &mut Core<'_>) {
        let now = core.clock.now();
        for user in 0..self.members.len() {
            let member = &mut self.members[user];
            member.vm = None;
            let doing = std::mem::replace(&mut member.doing, Doing::Nothing);
            self.end_interrupted(core, user as u32, doing, now);
        }
        self.network.close(core);
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

    fn begin_iteration(&mut self, core: &mut Core<'_>, user: u32, due: Instant, now: Instant) {
        self.network.begin_iteration(user, Core::phase(due));
        let member = &mut self.members[user as usize];
        (member.due, member.first_due) = (due, None);
        if member.vm.is_some() {
            self.call(core, user, now);
            return;
        }
        member.doing = Doing::Loading;
        match member.make(self.common, &self.host).map(plimsoll_javascript::Vm::load) {
            Ok(parked) => self.parked(core, user, parked),
            Err(error) => {
                core.recorder.findings.faults.push(format!("failed to make another user: {error}"));
                self.lose(core, user, ErrorKind::Script, error.to_string());
            }
        }
    }

    /// Calls the function that is an iteration.
    fn call(&mut self, core: &mut Core<'_>, user: u32, now: Instant) {
        let member = &mut self.members[user as usize];
        (member.doing, member.began) = (Doing::Iterating, now);
        member.first_due = core.is_open(user).then_some(member.due);
        if let Some(limit) = self.common.limits.iteration {
            core.timers.set(now.after(limit.into()), Alarm::Operation { user, id: ITERATION_LIMIT });
        }
        let call = member.call(&self.calls[member.offer], now);
        let vm = member.vm.as_mut().expect("it was made before");
        let parked = vm.call(call);
        self.parked(core, user, parked);
    }

    /// A timer of the script is due.
    fn wake(&mut self, core: &mut Core<'_>, user: u32, id: OpId, due: Instant) {
        if let Some(vm) = &mut self.members[user as usize].vm {
            core.recorder.record_lateness(core.clock.now().since(due));
            let parked = vm.wake(id, Wakeup::Timer);
            self.parked(core, user, parked);
        }
    }

    /// A user has given the thread back.
    fn parked(&mut self, core: &mut Core<'_>, user: u32, parked: Parked) {
        self.take_requests(core, user);
        if self.common.purpose == Purpose::Study {
            self.record_news(core, user);
        }
        match (parked, self.members[user as usize].doing) {
            (Parked::Over(Ok(_)), Doing::Loading) => {
                let now = core.clock.now();
                self.call(core, user, now);
            }
            (Parked::Over(result), Doing::Iterating) => self.over(core, user, result),
            (Parked::Ended(End::Limit(limit, place)), _) => {
                self.broke(core, user, self.common.limits.broken(limit, place));
            }
            (Parked::Ended(End::NotLoaded(exception)), _) => {
                self.complain(user, &exception);
                self.result = Some(Err(Why::Threw(exception.clone())));
                self.lose(core, user, ErrorKind::Script, exception.to_string());
            }
            _ => {}
        }
        // `teardown` runs after a run that was ended as well.
        if self.common.plan.abort.get().is_some() && !self.was_aborted {
            self.common.halt.store(true, Relaxed);
        }
    }

    fn take_requests(&mut self, core: &mut Core<'_>, user: u32) {
        loop {
            let member = &mut self.members[user as usize];
            let Some(request) = member.vm.as_mut().and_then(plimsoll_javascript::Vm::next_request) else { return };
            let first_due = member.first_due.take();
            match request {
                Request::Start(id, op) => self.network.start(core, user, id, op, first_due),
                Request::Timer(id, due) => core.timers.set(due, Alarm::Operation { user, id }),
                Request::Cancel(id) => self.network.cancel(core, user, id),
            }
        }
    }

    /// An iteration has come to its end.
    fn over(&mut self, core: &mut Core<'_>, user: u32, result: Result<Option<String>, Exception>) {
        let now = core.clock.now();
        let (sent, received) = self.network.end_iteration(core, user);
        let member = &mut self.members[user as usize];
        member.doing = Doing::Nothing;
        member.user.end(now, IterationEnd::Complete, sent, received);
        let (due, took) = (member.due, now.since(member.began));
        let mut outcome = Outcome::Ok;
        if let Err(exception) = &result {
            self.complain(user, exception);
            core.recorder.keep_example(ITERATION, ErrorKind::Script, exception.to_string());
            outcome = Outcome::Failed(ErrorKind::Script);
        }
        if !self.is_of_scenario(user) {
            self.result = Some(result.map_err(Why::Threw));
        }
        let least = Nanos(self.common.least_iteration.0.saturating_sub(took.0));
        // The next one begins in the instant in which this one ended: the clock need not be asked twice.
        if let What::Begin(due) = core.iteration_ended(user, Ended { least, ..ended(due, outcome, now) }) {
            self.begin_iteration(core, user, due, now);
        }
    }

    fn follow(&mut self, user: u32, what: What) {
        if let What::Begin(due) = what {
            self.ready.push_back((user, due));
        }
    }

    /// An iteration may take too long.
    fn check_iteration(&mut self, core: &mut Core<'_>, user: u32, due: Instant) {
        let member = &self.members[user as usize];
        if let Some(limit) = self.common.limits.iteration
            && member.doing == Doing::Iterating
            && member.began.after(limit.into()) <= due
        {
            self.broke(core, user, self.common.limits.too_long(limit));
        }
    }

    /// A user broke a limit: it is stopped for good, and the others go on.
    fn broke(&mut self, core: &mut Core<'_>, user: u32, broken: Broken) {
        let id = self.members[user as usize].user.id;
        let text = format!("user {id} was stopped for good: {broken}");
        if self.is_of_scenario(user) {
            (self.host.console)(Level::Error, &format!("user {id} was stopped for good: {}", broken.render()));
        }
        self.broken.push(text.clone());
        self.result = Some(Err(Why::Broke(broken)));
        self.lose(core, user, ErrorKind::Limit, text);
    }

    fn lose(&mut self, core: &mut Core<'_>, user: u32, kind: ErrorKind, detail: String) {
        let now = core.clock.now();
        let member = &mut self.members[user as usize];
        member.vm = None;
        let (doing, due) = (std::mem::replace(&mut member.doing, Doing::Gone), member.due);
        self.network.abandon(core, user);
        self.end_interrupted(core, user, doing, now);
        core.recorder.keep_example(ITERATION, kind, detail);
        core.lost(user);
        let what = core.iteration_ended(user, ended(due, Outcome::Failed(kind), now));
        self.follow(user, what);
    }

    /// What was under way is none of k6's iterations.
    fn end_interrupted(&mut self, core: &mut Core<'_>, user: u32, doing: Doing, now: Instant) {
        if doing == Doing::Iterating {
            let (sent, received) = self.network.end_iteration(core, user);
            self.members[user as usize].user.end(now, IterationEnd::Interrupted, sent, received);
        }
    }

    /// Whether it is a user of a scenario: of `setup` and its like, whoever calls them tells what became of them.
    fn is_of_scenario(&self, user: u32) -> bool {
        self.calls[self.members[user as usize].offer].scenario.is_some()
    }

    fn complain(&self, user: u32, exception: &Exception) {
        let kind = exception.to_string();
        if self.is_of_scenario(user)
            && let Some(more) = self.common.plan.log_limit.admit(&kind)
        {
            (self.host.console)(Level::Error, &format!("{}{more}", exception.render()));
        }
    }

    /// Files checks and samples of the script's own, which no exchange has.
    fn record_news(&mut self, core: &mut Core<'_>, user: u32) {
        let (phase, at) = (Core::phase(self.members[user as usize].due), core.clock.now());
        let recorder = &mut core.recorder;
        self.recording.drain(|news| match news {
            ScriptRecord::UnsentRequest { why } => {
                let subject = recorder.subject(&Subject::Request(UNMADE.to_owned()));
                recorder.record(subject, phase, &without_reply(at, at, ErrorKind::Connect));
                recorder.keep_example(subject, ErrorKind::Connect, told_of_unmade(why));
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

    /// What comes round whatever users do: somebody may want to break off, or to hear of samples.
    fn look_around(&mut self, core: &mut Core<'_>) {
        let now = core.clock.now();
        if self.common.interrupted.load(Relaxed) {
            self.common.halt.store(true, Relaxed);
        }
        if now >= self.copied.after(COPY_EVERY) {
            self.hand_copy_over(core);
        }
        core.timers.set(now.after(LOOK_EVERY), Alarm::Operation { user: NOBODY, id: 0 });
    }

    fn hand_copy_over(&mut self, core: &mut Core<'_>) {
        let Some((thread, copies)) = &self.copies else { return };
        // Nobody may listen any more.
        let _ = copies.send(Copied { thread: *thread, sinks: self.recording.copy() });
        self.copied = core.clock.now();
    }
}

/// Why a request could not be made, with the likeliest reason for it.
fn told_of_unmade(why: &str) -> String {
    match why.starts_with("\"undefined") {
        true => format!("{why} (a variable that `env` of the workload does not name is `undefined` in the script)"),
        false => why.to_owned(),
    }
}

/// What never crossed a socket.
fn without_reply(due: Instant, done: Instant, kind: ErrorKind) -> Exchange {
    let outcome = Outcome::Failed(kind);
    Exchange { scheduled: due, sent: due, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome }
}

/// An iteration that is over.
fn ended(begun: Instant, outcome: Outcome, done: Instant) -> Ended {
    Ended { begun, paused: Nanos(0), outcome, done, least: Nanos(0) }
}
