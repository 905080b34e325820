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

use crate::busy::{self, Watched};
use crate::commonjs::Loaded;
use crate::event_loop::{EventLoop, Host, OpId, Operations, Request, Wakeup};
use crate::exception;
use crate::fault::{Exception, Place};
use crate::fibre::{Fibre, park};
use crate::globals::{self, Argument, ParsedArguments};
use crate::held::{self, HeldMemory};
use crate::program::Program;
use plimsoll_model::units::{Instant, Nanos};
use rquickjs::context::intrinsic;
use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Atom, Context, Ctx, Error, IntoJs, Object, Promise, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

/// The parts of the language that scripts get: all but `performance`, a clock other than the host's, and `atob`.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::Proxy,
    intrinsic::WeakRef,
);

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
            busy: setup.limits.busy,
            exceeded_busy: Cell::default(),
            exceeded_at: RefCell::default(),
            is_hurried: Cell::default(),
            is_abandoned: Cell::default(),
            place: RefCell::default(),
        });
        let stack = setup.limits.stack + NATIVE_STACK;
        let body = Body { program: Arc::clone(program), shared: Rc::clone(&shared), is_half_loaded: Cell::default() };
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

/// The code on the fibre of a user. Rare paths are not inlined: a touched page of the stack stays with the user.
struct Body<P: Operations> {
    program: Arc<Program>,
    shared: Rc<Shared<P>>,
    /// True while its modules wait at an `await`.
    is_half_loaded: Cell<bool>,
}

/// A script that was loaded.
struct Script<'js> {
    exports: Object<'js>,
    parsed: ParsedArguments<'js>,
    /// The name of the last called function, and its atom in the engine.
    last: RefCell<Option<(Rc<str>, Atom<'js>)>>,
}

impl<'js> Script<'js> {
    /// An export. Keeps the atom of the name, because most calls have the same one.
    fn export(&self, ctx: &Ctx<'js>, name: &Rc<str>) -> rquickjs::Result<Value<'js>> {
        let mut last = self.last.borrow_mut();
        if let Some((known, atom)) = &*last
            && Rc::ptr_eq(known, name)
        {
            return self.exports.get(atom.clone());
        }
        let atom = Atom::from_str(ctx.clone(), name)?;
        last.replace((Rc::clone(name), atom.clone()));
        self.exports.get(atom)
    }
}

/// Why a task has no result. Boxed, because it is rare and lies on the stack of every user.
enum Failure {
    Threw(Box<Exception>),
    End(Box<End>),
}

impl<P: Operations> Body<P> {
    fn run(self, setup: Setup) {
        let end = match self.end() {
            Some(end) => *end,
            None => self.live(setup).unwrap_or(End::Limit(Limit::Memory, None)),
        };
        self.shared.parked.replace(Some(Parked::Ended(end)));
    }

    /// The whole life of a user. It is dropped in this order: values of handlers, context, runtime.
    fn live(&self, setup: Setup) -> rquickjs::Result<End> {
        let runtime = self.runtime(&setup.limits)?;
        // A panic leaks it, because values of it may be anywhere.
        let engine = ManuallyDrop::new((Context::custom::<Intrinsics>(&runtime)?, runtime));
        let end = engine.0.with(|ctx| {
            self.shared.place.replace(Some(self.place_finder(&ctx)));
            let end = self.serve(&ctx, setup);
            self.shared.events.close();
            self.shared.place.take();
            end
        });
        if !self.is_half_loaded.get() {
            drop(ManuallyDrop::into_inner(engine));
        }
        Ok(end)
    }

    /// See [`Shared::place`].
    fn place_finder(&self, ctx: &Ctx<'_>) -> PlaceFinder {
        let (raw, program) = (ctx.as_raw(), Arc::clone(&self.program));
        Box::new(move || {
            #[expect(unsafe_code, reason = "a native without a context of its own finds the one that it runs in")]
            // SAFETY: it is called by the running fibre, which holds the lock of the runtime until it has dropped this
            // closure, and so keeps the context alive.
            let ctx = unsafe { Ctx::from_raw(raw) };
            exception::here(&ctx, &program)
        })
    }

    fn runtime(&self, limits: &Limits) -> rquickjs::Result<Runtime> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        self.program.provide(&runtime);
        let shared = Rc::clone(&self.shared);
        // The engine calls it after a number of calls and turns of loops, whatever their duration.
        runtime.set_interrupt_handler(Some(Box::new(move || shared.runs_too_long())));
        let events = Rc::clone(&self.shared.events);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
            events.track(&ctx, promise, reason, is_handled);
        })));
        Ok(runtime)
    }

    fn serve(&self, ctx: &Ctx<'_>, setup: Setup) -> End {
        let script = match self.load(ctx, setup) {
            Ok(exports) => Script { exports, parsed: ParsedArguments::default(), last: RefCell::default() },
            Err(Failure::Threw(exception)) => {
                return End::NotLoaded(exception::with_imports(&self.program, *exception));
            }
            Err(Failure::End(end)) => return *end,
        };
        let mut result = Ok(None);
        loop {
            self.shared.events.close();
            self.shared.parked.replace(Some(Parked::Over(result)));
            self.shared.is_idle.set(true);
            let Some(task) = self.next_task() else { return End::Stopped };
            result = match self.perform(ctx, &script, task) {
                Ok(json) => Ok(json),
                Err(Failure::Threw(exception)) => Err(*exception),
                Err(Failure::End(end)) => return *end,
            };
            if result.is_err()
                && let Some(end) = self.run_leftover_jobs(ctx)
            {
                return end;
            }
        }
    }

    /// Runs the jobs that an exception left, so that the next call does not run them.
    #[inline(never)]
    fn run_leftover_jobs(&self, ctx: &Ctx<'_>) -> Option<End> {
        self.shared.events.close();
        while self.end().is_none() && ctx.execute_pending_job() {
            if ctx.has_exception() {
                ctx.catch();
            }
        }
        self.end().map(|end| *end)
    }

    /// Parks until there is a task; None if the user is stopped.
    fn next_task(&self) -> Option<Task> {
        loop {
            park();
            if self.shared.events.is_stopped() {
                return None;
            }
            if let Some(task) = self.shared.task.take() {
                return Some(task);
            }
        }
    }

    #[inline(never)]
    fn load<'js>(&self, ctx: &Ctx<'js>, setup: Setup) -> Result<Object<'js>, Failure> {
        self.shared.events.install(ctx);
        Program::install(&self.program, ctx);
        HeldMemory::beside(setup.limits.memory).install(ctx);
        let begin = || {
            self.program.bounds().install(ctx)?;
            globals::install::<P>(ctx, &self.program)?;
            globals::set(ctx, &ParsedArguments::default(), &setup.globals)?;
            setup.prepare.map_or(Ok(()), |prepare| prepare(ctx))?;
            self.program.import(ctx)
        };
        let loaded: Promise<'js> = begin().map_err(|error| self.failure(ctx, error))?;
        let mut pumped = self.pump(ctx, Some(&loaded));
        self.is_half_loaded.set(loaded.state() == PromiseState::Pending);
        // If the modules ran for too long, their promise soon knows in which line.
        for _ in 0..8 {
            if pumped.is_ok() || loaded.state() != PromiseState::Pending || !ctx.execute_pending_job() {
                break;
            }
        }
        if let Err(Failure::End(end)) = &mut pumped
            && let End::Limit(_, place @ None) = &mut **end
            && let Some(Err(error)) = loaded.result::<Value<'js>>()
        {
            *place = exception::caught(ctx, &self.program, error).place;
        }
        pumped?;
        self.shared.events.set_loaded();
        Loaded::forget(ctx);
        let Some(exports) = loaded.result::<Object<'js>>() else {
            let message = "the script waits for a promise that nothing settles, and so is never loaded".to_owned();
            return Err(Failure::Threw(Box::new(Exception { message, place: None, stack: String::new() })));
        };
        exports.and_then(|exports| self.program.exported(exports)).map_err(|error| self.failure(ctx, error))
    }

    fn perform<'js>(&self, ctx: &Ctx<'js>, script: &Script<'js>, task: Task) -> Result<Option<String>, Failure> {
        match task {
            Task::Call(call) => self.call(ctx, script, &call),
            Task::Read(name) => {
                let value: Value<'js> = script.exports.get(&*name).map_err(|error| self.failure(ctx, error))?;
                self.json(ctx, value)
            }
            Task::ListFunctions => {
                let names = functions(&script.exports).map_err(|error| self.failure(ctx, error))?;
                let names = names.into_js(ctx).map_err(|error| self.failure(ctx, error))?;
                self.json(ctx, names)
            }
        }
    }

    fn call<'js>(&self, ctx: &Ctx<'js>, script: &Script<'js>, call: &Call) -> Result<Option<String>, Failure> {
        let begin = || {
            if !call.globals.is_empty() {
                globals::set(ctx, &script.parsed, &call.globals)?;
            }
            let Some(function) = script.export(ctx, &call.function)?.into_function() else {
                let message = format!("the script exports no function `{}`", call.function);
                return Err(rquickjs::Exception::throw_type(ctx, &message));
            };
            let mut arguments = Args::new(ctx.clone(), call.arguments.len());
            call.arguments.iter().try_for_each(|data| arguments.push_arg(script.parsed.value(ctx, data)?))?;
            function.call_arg(arguments)
        };
        let returned: Value<'js> = begin().map_err(|error| self.failure(ctx, error))?;
        let promise = returned.as_promise();
        self.pump(ctx, promise)?;
        if call.result == ResultFormat::Nothing {
            return Ok(None);
        }
        match promise.map(Promise::result) {
            None => self.json(ctx, returned),
            Some(None) => Ok(None),
            Some(Some(settled)) => self.json(ctx, settled.map_err(|error| self.failure(ctx, error))?),
        }
    }

    #[inline(never)]
    fn json<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<Option<String>, Failure> {
        let text = || ctx.json_stringify(value)?.map(|json| json.to_string()).transpose();
        text().map_err(|error| self.failure(ctx, error))
    }

    /// Runs the user's event loop until neither jobs of promises nor events are left. A rejection without a handler at
    /// the end of a turn is an exception.
    fn pump(&self, ctx: &Ctx<'_>, promise: Option<&Promise<'_>>) -> Result<(), Failure> {
        let events = &self.shared.events;
        loop {
            self.run_jobs(ctx)?;
            if promise.is_some_and(|promise| promise.state() == PromiseState::Rejected) || !events.is_waiting() {
                break;
            }
            match events.next_event() {
                Some((id, event)) => events.handle(ctx, id, event).map_err(|error| self.failure(ctx, error))?,
                None => park(),
            }
        }
        match promise.and_then(Promise::result::<Value<'_>>) {
            Some(Err(error)) => Err(self.failure(ctx, error)),
            _ => Ok(()),
        }
    }

    fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), Failure> {
        loop {
            if let Some(end) = self.end() {
                return Err(Failure::End(end));
            }
            if !ctx.execute_pending_job() {
                break;
            }
            if ctx.has_exception() {
                return Err(self.failure(ctx, Error::Exception));
            }
        }
        match self.shared.events.unhandled(ctx) {
            Some(reason) => Err(self.failure_of(exception::of_value(ctx, &self.program, &reason))),
            None => Ok(()),
        }
    }

    /// The reason if the user is to end now.
    fn end(&self) -> Option<Box<End>> {
        if self.shared.events.is_stopped() {
            return Some(Box::new(End::Stopped));
        }
        self.shared.exceeded_busy.get().then(|| Box::new(self.shared.end_of_time()))
    }

    #[cold]
    #[inline(never)]
    fn failure(&self, ctx: &Ctx<'_>, error: Error) -> Failure {
        self.failure_of(exception::caught(ctx, &self.program, error))
    }

    /// The failure of an uncaught exception; the end of the user, if a stop or a limit caused it. The engine throws `null`
    /// if not even the error of an exhausted memory fits: a script that throws `null` itself looks the same.
    #[cold]
    #[inline(never)]
    fn failure_of(&self, exception: Exception) -> Failure {
        let limit = match (self.end().map(|end| *end), exception.message.as_str()) {
            (Some(End::Limit(limit, place)), _) => {
                return Failure::End(Box::new(End::Limit(limit, exception.place.or(place))));
            }
            (Some(end), _) => return Failure::End(Box::new(end)),
            (None, "InternalError: out of memory" | "null") => Limit::Memory,
            (None, "RangeError: Maximum call stack size exceeded") => Limit::Stack,
            (None, message) if message.strip_prefix("InternalError: ") == Some(held::EXCEEDED) => Limit::Held,
            (None, _) => return Failure::Threw(Box::new(exception)),
        };
        Failure::End(Box::new(End::Limit(limit, exception.place)))
    }
}

/// The names of the members that are functions.
fn functions(exports: &Object<'_>) -> rquickjs::Result<Vec<String>> {
    let members = exports.props::<String, Value<'_>>().collect::<rquickjs::Result<Vec<_>>>()?;
    Ok(members.into_iter().filter(|(_, member)| member.is_function()).map(|(name, _)| name).collect())
}
