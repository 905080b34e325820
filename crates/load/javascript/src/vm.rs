//! One user of a script: a runtime of the engine on its own fibre, run from outside a step at a time.
//!
//! Rules, and their reasons:
//! - **The runtime is made on its fibre.** The engine counts the depth of its stack from where the runtime was made,
//!   and one made elsewhere throws at once, or never.
//! - **All access to the runtime happens on its fibre**, within one `Context::with`: a parked fibre keeps the runtime
//!   borrowed, so access from outside panics. Limits and hooks are set before, and a call from outside is a task that the
//!   fibre takes when it is resumed.
//! - **Persistent values are dropped before the runtime**, as the engine demands: [`EventLoop::close`].
//! - **A runtime whose modules still wait at an `await` is leaked.** The engine (0.15.1) frees a module before the
//!   continuation that waits for it, and then writes to freed memory.
//! - **Freed memory stays with the allocator.** Memory that a process keeps after its users have ended is no leak.

mod body;

use crate::busy::{self, Watched};
use crate::event_loop::{EventLoop, Host, OpId, Operations, Request, Wakeup};
use crate::fault::{Exception, Place};
use crate::fibre::{Fibre, park};
use crate::globals::Argument;
use crate::program::Program;
use body::Body;
use plimsoll_model::units::{Instant, Nanos};
use rquickjs::Ctx;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// The stack of natives, below that of scripts. The engine checks its limit only at calls, and needs some of this to
/// throw. Untouched, it takes no memory.
const NATIVE_STACK: usize = 256 * 1024;

/// The limits of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of its script, in bytes.
    pub memory: usize,
    /// Stack for the calls of its script, in bytes; a call takes some 640.
    pub stack: usize,
    /// The longest time that it may run without parking.
    pub busy: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 64 << 20, stack: 1 << 20, busy: Nanos(1_000_000_000) }
    }
}

/// A limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::memory`]
    Memory,
    /// [`HELD_OF_MEMORY`](crate::HELD_OF_MEMORY) times [`Limits::memory`], by what natives hold.
    Held,
    /// [`Limits::stack`]
    Stack,
    /// [`Limits::busy`]
    Busy,
}

/// The setup of a user: what differs between users of one program.
pub struct Setup {
    /// Its limits.
    pub limits: Limits,
    /// Time and console.
    pub host: Rc<dyn Host>,
    /// Global variables, before any module runs: `__VU`, `__ENV`.
    pub globals: Vec<(Rc<str>, Argument)>,
    /// Prepares the runtime before any module runs: userdata and global objects of natives.
    pub prepare: Option<Prepare>,
}

/// See [`Setup::prepare`].
pub type Prepare = Box<dyn for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<()>>;

/// A call of a function that the script exports.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub function: Rc<str>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Global variables to set before: `__ITER`.
    pub globals: Vec<(Rc<str>, Argument)>,
    /// Whether its result is returned.
    pub result: ResultFormat,
}

/// The form in which a call returns its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultFormat {
    /// Not at all. (JSON of a large response that nobody reads is expensive.)
    Nothing,
    /// As JSON. Of a promise, the value to which it resolves.
    Json,
    /// As JSON in which a member of the result that is a buffer, or a view of one, is `{ "bytes": … }`: a text whose
    /// characters, up to U+00FF, are its bytes.
    JsonWithBytes,
}

/// The state in which a user gave the thread back.
#[derive(Clone, Debug, PartialEq)]
pub enum Parked {
    /// It waits for events of its requests, or for a call.
    Waiting,
    /// Its call has ended, and everything that the call started: with its result as JSON, if that was wanted and is not
    /// undefined; or with the exception that it threw. The user can be called again.
    Over(Result<Option<String>, Exception>),
    /// It has ended for good.
    Ended(End),
}

/// How a user has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It was stopped from outside.
    Stopped,
    /// It exceeded a limit; with the place, if known.
    Limit(Limit, Option<Place>),
    /// Its modules threw while they were loaded.
    NotLoaded(Exception),
}

/// A user of a script. It runs only in [`Vm::load`], [`Vm::call`], [`Vm::read`], [`Vm::wake`] and [`Vm::stop`], until
/// it parks. Then [`Vm::next_request`] has its requests and cancellations, also after the end of a call.
///
/// One that has ended stays so: each call then returns [`End::Stopped`]. A user is stopped before it is dropped.
pub struct Vm<P: Operations> {
    fibre: Fibre,
    shared: Rc<Shared<P>>,
}

/// The state that the fibre and the outside share.
struct Shared<P: Operations> {
    events: Rc<EventLoop<P>>,
    task: RefCell<Option<Task>>,
    parked: RefCell<Option<Parked>>,
    /// True if it is loaded and no call is under way.
    is_idle: Cell<bool>,
    /// The first instant at which the interrupt handler saw it run since it was resumed.
    running_since: Cell<Option<Instant>>,
    /// [`Limits::memory`]
    memory: usize,
    busy: Nanos,
    exceeded_busy: Cell<bool>,
    /// The place in the script where it exceeded that limit.
    exceeded_at: RefCell<Option<Place>>,
    /// True if it had time left, but the process was asked to end.
    is_hurried: Cell<bool>,
    /// True if it was stopped inside a native, from where it never goes on.
    is_abandoned: Cell<bool>,
    /// Finds the place in the script at which the fibre stands.
    place: RefCell<Option<PlaceFinder>>,
}

type PlaceFinder = Box<dyn Fn() -> Option<Place>>;

impl<P: Operations> Shared<P> {
    /// Notes that it runs, and returns true if it has run for too long.
    fn runs_too_long(&self) -> bool {
        let now = self.events.now();
        let since = self.running_since.get().unwrap_or(now);
        self.running_since.set(Some(since));
        let ran_for = now.since(since);
        let is_exceeded = ran_for > busy::limit(self.busy);
        // Where the limit was exceeded is known only now: promises may swallow the exception that follows.
        if is_exceeded && !self.exceeded_busy.replace(true) {
            let place = self.place.borrow().as_ref().and_then(|place| place());
            self.exceeded_at.replace(place);
            self.is_hurried.set(ran_for <= self.busy);
        }
        is_exceeded
    }

    /// The end of a user that has run for too long.
    fn end_of_time(&self) -> End {
        match self.is_hurried.get() {
            true => End::Stopped,
            false => End::Limit(Limit::Busy, self.exceeded_at.borrow().clone()),
        }
    }
}

impl<P: Operations> Watched for Shared<P> {
    fn look(&self) {
        if !self.runs_too_long() {
            return;
        }
        self.parked.replace(Some(Parked::Ended(self.end_of_time())));
        self.is_abandoned.set(true);
        loop {
            park();
        }
    }
}

enum Task {
    Call(Call),
    Read(Rc<str>),
    ListFunctions,
}

impl<P: Operations> Vm<P> {
    /// A new user. Loading it allocates its memory.
    ///
    /// # Errors
    /// No memory for its stack: see [`crate::fibre::most`].
    pub fn new(program: &Arc<Program>, setup: Setup) -> io::Result<Self> {
        let shared = Rc::new(Shared {
            events: Rc::new(EventLoop::new(Rc::clone(&setup.host))),
            task: RefCell::default(),
            parked: RefCell::default(),
            is_idle: Cell::default(),
            running_since: Cell::default(),
            memory: setup.limits.memory,
            busy: setup.limits.busy,
            exceeded_busy: Cell::default(),
            exceeded_at: RefCell::default(),
            is_hurried: Cell::default(),
            is_abandoned: Cell::default(),
            place: RefCell::default(),
        });
        let stack = setup.limits.stack + NATIVE_STACK;
        let body = Body::new(Arc::clone(program), Rc::clone(&shared));
        let fibre = Fibre::new(stack, move || body.run(setup))?;
        Ok(Self { fibre, shared })
    }

    /// Makes its runtime and runs its modules. [`Parked::Over`] at their end.
    pub fn load(&mut self) -> Parked {
        self.resume()
    }

    /// Calls a function.
    ///
    /// # Panics
    /// It is not loaded, or another call is under way.
    pub fn call(&mut self, call: Call) -> Parked {
        self.begin(Task::Call(call))
    }

    /// Reads an export of the script as JSON; None if there is none of that name, or a function.
    ///
    /// # Panics
    /// It is not loaded, or a call is under way.
    pub fn read(&mut self, name: &str) -> Parked {
        self.begin(Task::Read(name.into()))
    }

    /// Lists the exports that are functions: their names as a JSON array.
    ///
    /// # Panics
    /// It is not loaded, or a call is under way.
    pub fn functions(&mut self) -> Parked {
        self.begin(Task::ListFunctions)
    }

    /// Passes it an event of an operation or timer.
    pub fn wake(&mut self, id: OpId, event: Wakeup<P::Event>) -> Parked {
        if self.shared.events.deliver(id, event) { self.resume() } else { Parked::Waiting }
    }

    /// Ends it, whatever it does. Neither `catch` nor `finally` sees this.
    pub fn stop(&mut self) -> Parked {
        self.shared.events.stop();
        self.resume()
    }

    /// Its next request, in order.
    pub fn next_request(&mut self) -> Option<Request<P::Op>> {
        self.shared.events.next_request()
    }

    /// True if it has ended for good.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.fibre.has_ended() || self.shared.is_abandoned.get()
    }

    fn begin(&mut self, task: Task) -> Parked {
        let was_idle = self.shared.is_idle.replace(false);
        assert!(was_idle || self.has_ended(), "a user is loaded first, and makes one call at a time");
        self.shared.task.replace(Some(task));
        self.resume()
    }

    fn resume(&mut self) -> Parked {
        if self.has_ended() {
            return Parked::Ended(End::Stopped);
        }
        self.shared.running_since.set(None);
        let _watched = busy::watch(Rc::clone(&self.shared) as Rc<dyn Watched>);
        self.fibre.resume();
        self.shared.parked.take().unwrap_or(Parked::Waiting)
    }
}

impl<P: Operations> Drop for Vm<P> {
    fn drop(&mut self) {
        // If it does not end (after a panic, or inside a native), its fibre is leaked.
        if !std::thread::panicking() && self.fibre.has_begun() {
            self.stop();
        }
    }
}
