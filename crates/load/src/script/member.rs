//! One user of a script: its fibre, what natives know of it, and what it is doing.

use super::{Common, Console, Limits};
use crate::clock::Clock;
use plimsoll_k6::operations::K6;
use plimsoll_k6::user::User;
use plimsoll_model::units::Instant;
use plimsoll_script::{Call, Data, Exception, Host, Level, Limit, Setup, Vm, Wanted};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What the users of an offer call.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) function: Rc<str>,
    pub(super) arguments: Vec<Data>,
    pub(super) result: Wanted,
    /// None for what runs before and after all scenarios.
    pub(super) scenario: Option<usize>,
}

/// A user.
pub(super) struct Member {
    /// None until it is needed, and when it was cut off.
    pub(super) vm: Option<Vm<K6>>,
    pub(super) user: Rc<User>,
    pub(super) doing: Doing,
    /// When its iteration was due, and when it began.
    pub(super) due: Instant,
    pub(super) began: Instant,
    /// When its first operation was due: as soon as its iteration.
    pub(super) first_due: Option<Instant>,
    pub(super) offer: usize,
}

/// What a user is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    /// Its modules run, for the first iteration.
    Loading,
    Iterating,
    /// It was stopped for good.
    Gone,
}

/// Time and console of all users of a thread.
pub(super) struct Surroundings {
    pub(super) clock: Cell<Clock>,
    pub(super) console: Console,
}

impl Surroundings {
    pub(super) fn new(console: &Console) -> Surroundings {
        Surroundings { clock: Cell::new(Clock::start(Duration::ZERO)), console: Arc::clone(console) }
    }
}

impl Host for Surroundings {
    fn now(&self) -> Instant {
        self.clock.get().now()
    }

    fn console(&self, level: Level, line: &str) {
        (self.console)(level, line);
    }
}

impl Member {
    pub(super) fn new(user: Rc<User>, offer: usize) -> Member {
        let (due, began) = (Instant(0), Instant(0));
        Member { vm: None, user, doing: Doing::Nothing, due, began, first_due: None, offer }
    }

    /// Gives it a fibre on which nothing has run.
    ///
    /// # Errors
    /// There is no room for its stack.
    pub(super) fn make(&mut self, common: &Common<'_>, host: &Rc<Surroundings>) -> io::Result<&mut Vm<K6>> {
        let setup = Setup {
            limits: common.limits.vm,
            host: Rc::clone(host) as Rc<dyn Host>,
            globals: self.user.globals(),
            prepare: Some(self.user.prepare()),
        };
        let vm = Vm::new(common.program, setup)?;
        common.plan.counts.users_made.fetch_add(1, Relaxed);
        Ok(self.vm.insert(vm))
    }

    /// The call that is an iteration.
    pub(super) fn call(&self, calls: &Calls, now: Instant) -> Call {
        let globals = match calls.scenario {
            Some(scenario) => self.user.begin(scenario, now),
            None => {
                self.user.begin_alone(&calls.function, now);
                Vec::new()
            }
        };
        let (function, arguments) = (Rc::clone(&calls.function), calls.arguments.clone());
        Call { function, arguments, globals, result: calls.result }
    }
}

/// What a call returned, as JSON, or why it did not.
pub(super) type Called = Result<Option<String>, Why>;

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The script threw.
    Threw(Exception),
    /// It took longer than it may.
    TimedOut,
    /// It broke a limit.
    Broke(Broken),
    /// The script ended the run, with what it said.
    Aborted(String),
    /// It was broken off from outside, or waited for what never comes.
    Stopped,
    /// The machine did not allow it.
    Unmade(String),
}

/// A limit that a user has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// One of what its script may take.
    Limit(Limit, plimsoll_script::Limits),
    /// How long an iteration may take.
    Iteration(Duration),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Limit(Limit::Memory, limits) => {
                write!(f, "it took more than {} MiB of memory", limits.memory >> 20)
            }
            Broken::Limit(Limit::Stack, limits) => write!(f, "it took more than {} KiB of stack", limits.stack >> 10),
            Broken::Limit(Limit::Busy, limits) => {
                write!(f, "it ran for more than {} s without waiting for anything", limits.busy.seconds())
            }
            Broken::Iteration(limit) => write!(f, "its iteration took more than {} s", limit.as_secs_f64()),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Threw(exception) => exception.fmt(f),
            Why::TimedOut => f.write_str("it took longer than it may"),
            Why::Broke(broken) => broken.fmt(f),
            Why::Stopped => f.write_str("it was broken off"),
            Why::Aborted(text) | Why::Unmade(text) => f.write_str(text),
        }
    }
}

impl Limits {
    /// What a user broke.
    pub(super) fn broken(&self, limit: Limit) -> Broken {
        Broken::Limit(limit, self.vm)
    }
}
