//! One user of a script: its fibre, its state for native functions, and its present activity.

use super::{Console, Limits, LineSource, RunContext};
use plimsoll_engine::clock::Clock;
use plimsoll_javascript::{
    Argument, Call, Exception, HELD_OF_MEMORY, Host, Level, Limit, Place, ResultFormat, Setup, Vm,
};
use plimsoll_k6::operations::K6;
use plimsoll_k6::user::User;
use plimsoll_model::record::RecordedPhase;
use plimsoll_model::units::Instant;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The function that the users of an offer call.
#[derive(Clone)]
pub(super) struct CalledFunction {
    pub(super) function: Rc<str>,
    pub(super) arguments: Vec<Argument>,
    pub(super) result: ResultFormat,
    /// None for a function that runs before or after all scenarios.
    pub(super) scenario: Option<usize>,
}

/// A user.
pub(super) struct ScriptUser {
    /// None until it is needed, and after it was cut off.
    pub(super) vm: Option<Vm<K6>>,
    pub(super) user: Rc<User>,
    pub(super) activity: Activity,
    /// When its iteration was due, and when it began.
    pub(super) due: Instant,
    pub(super) began: Instant,
    /// When its first operation was due: with its iteration.
    pub(super) first_due: Option<Instant>,
    /// The phase that its iteration belongs to.
    pub(super) phase: RecordedPhase,
    pub(super) offer: usize,
    /// True if it is the user of an earlier scenario too.
    pub(super) is_shared: bool,
}

/// The present activity of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Nothing,
    /// Its modules run, before its first iteration.
    Loading,
    Iterating,
    /// It was stopped for good.
    Gone,
}

/// Time and console of all users of a thread.
pub(super) struct ThreadHost {
    pub(super) clock: Cell<Clock>,
    /// Scripts see the time of the loop later by so many nanoseconds: for them it goes on from load to load.
    ahead: Cell<i64>,
    pub(super) console: Console,
}

impl ThreadHost {
    pub(super) fn new(console: &Console) -> ThreadHost {
        ThreadHost { clock: Cell::new(Clock::start(Duration::ZERO)), ahead: Cell::new(0), console: Arc::clone(console) }
    }

    /// Goes on with the clock of another load, on which the instants that are kept are later by `by` nanoseconds.
    pub(super) fn go_on(&self, clock: Clock, by: i64) {
        self.clock.set(clock);
        self.ahead.set(self.ahead.get() - by);
    }

    /// An instant of the loop as scripts see it.
    pub(super) fn seen(&self, at: Instant) -> Instant {
        at.shifted(self.ahead.get())
    }

    /// The instant of the loop that scripts see as `at`.
    pub(super) fn of_loop(&self, at: Instant) -> Instant {
        at.shifted(-self.ahead.get())
    }
}

impl Host for ThreadHost {
    fn now(&self) -> Instant {
        self.seen(self.clock.get().now())
    }

    fn console(&self, level: Level, line: &str) {
        (self.console)(LineSource::Script, level, line);
    }

    fn log(&self, level: Level, line: &str) {
        (self.console)(LineSource::Run, level, line);
    }
}

impl ScriptUser {
    pub(super) fn new(user: Rc<User>, offer: usize, is_shared: bool) -> ScriptUser {
        let (due, began) = (Instant(0), Instant(0));
        let (activity, phase) = (Activity::Nothing, RecordedPhase::Warmup);
        ScriptUser { vm: None, user, activity, due, began, first_due: None, phase, offer, is_shared }
    }

    /// Moves all instants by `by` nanoseconds.
    pub(super) fn shift(&mut self, by: i64) {
        for instant in [&mut self.due, &mut self.began].into_iter().chain(&mut self.first_due) {
            *instant = instant.shifted(by);
        }
    }

    /// Gives the user a new fibre.
    ///
    /// # Errors
    /// There is no memory for its stack.
    pub(super) fn make(&mut self, common: &RunContext<'_>, host: &Rc<ThreadHost>) -> io::Result<&mut Vm<K6>> {
        let setup = Setup {
            limits: common.limits.vm,
            host: Rc::clone(host) as Rc<dyn Host>,
            globals: self.user.globals(),
            prepare: Some(plimsoll_k6::prepare(&self.user)),
        };
        let vm = Vm::new(common.program, setup)?;
        self.user.count_as_made();
        Ok(self.vm.insert(vm))
    }

    /// The call that is an iteration.
    pub(super) fn call(&self, calls: &CalledFunction, now: Instant) -> Call {
        let globals = match calls.scenario {
            Some(scenario) => self.user.begin(scenario, now),
            None => {
                self.user.begin_outside_scenarios(&calls.function, now);
                Vec::new()
            }
        };
        let (function, arguments) = (Rc::clone(&calls.function), calls.arguments.clone());
        Call { function, arguments, globals, result: calls.result }
    }
}

/// The result of a call as JSON, or why it failed.
pub(super) type Called = Result<Option<String>, CallError>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// The script threw.
    Threw(Exception),
    /// It took longer than it may.
    TimedOut,
    /// It exceeded a limit.
    LimitExceeded(ExceededLimit),
    /// The script ended the run, with this message.
    Aborted(String),
    /// It was interrupted, or waited for an event that never comes.
    Stopped,
    /// The call could not start, because the machine refused a resource.
    NotStarted(String),
    /// It failed in another process.
    Elsewhere {
        /// Why, with the line of the script.
        why: String,
        /// True if it took too long.
        took_too_long: bool,
    },
}

/// A limit that a user has exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceededLimit {
    what: String,
    place: Option<Place>,
    /// The name of the setting for it.
    knob: &'static str,
    /// True if it is a limit of time.
    took_too_long: bool,
}

impl fmt::Display for ExceededLimit {
    /// In one line: `it took more than 64 MiB of memory (load.js:3:7); the limit is --user-memory`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.place.iter().try_for_each(|place| write!(f, " ({place})"))?;
        write!(f, "; the limit is {}", self.knob)
    }
}

impl ExceededLimit {
    /// The same, with the line of the script below.
    pub(super) fn render(&self) -> String {
        let drawn = self.place.as_ref().map(Place::drawn).unwrap_or_default();
        format!("{self}\n{drawn}").trim_end().to_owned()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Threw(exception) => exception.fmt(f),
            CallError::TimedOut => f.write_str("it took longer than it may"),
            CallError::LimitExceeded(broken) => broken.fmt(f),
            CallError::Stopped => f.write_str("it was broken off"),
            CallError::Aborted(text) | CallError::NotStarted(text) | CallError::Elsewhere { why: text, .. } => {
                f.write_str(text)
            }
        }
    }
}

impl CallError {
    /// True if the call took too long.
    #[must_use]
    pub fn took_too_long(&self) -> bool {
        match self {
            CallError::LimitExceeded(ExceededLimit { took_too_long, .. })
            | CallError::Elsewhere { took_too_long, .. } => *took_too_long,
            other => *other == CallError::TimedOut,
        }
    }

    /// Formats the error with the line of the script that it concerns.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            CallError::Threw(exception) => exception.render(),
            CallError::LimitExceeded(broken) => broken.render(),
            other => other.to_string(),
        }
    }
}

impl Limits {
    /// The limit that a user has exceeded, and the place in its script.
    pub(super) fn exceeded(&self, limit: Limit, place: Option<Place>) -> ExceededLimit {
        let (what, knob) = match limit {
            Limit::Memory => (format!("it took more than {} MiB of memory", self.vm.memory >> 20), self.knobs.memory),
            Limit::Held => {
                let most = self.vm.memory.saturating_mul(HELD_OF_MEMORY);
                (
                    format!(
                        "it held more than {} MiB of bodies, pages and messages, {HELD_OF_MEMORY} times its memory",
                        most >> 20
                    ),
                    self.knobs.memory,
                )
            }
            Limit::Stack => (format!("it took more than {} KiB of stack", self.vm.stack >> 10), self.knobs.stack),
            Limit::Busy => {
                let seconds = self.vm.busy.seconds();
                let what = format!(
                    "it ran for more than {seconds} s without waiting for anything, and no other user of its thread \
                     could run meanwhile"
                );
                (what, self.knobs.busy)
            }
        };
        ExceededLimit { what, place, knob, took_too_long: limit == Limit::Busy }
    }

    /// The limit of a user whose iteration takes too long.
    pub(super) fn exceeded_time(&self, limit: Duration) -> ExceededLimit {
        let what = format!("its iteration took more than {} s", limit.as_secs_f64());
        ExceededLimit { what, place: None, knob: self.knobs.iteration, took_too_long: true }
    }
}
