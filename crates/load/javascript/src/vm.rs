//! One user of a script: a runtime of the engine on its own fibre, run from outside a step at a time.
//!
//! What has to be so, and why:
//! - **The runtime is made on its fibre.** The engine counts the depth of its stack from where the runtime was made,
//!   and one made elsewhere throws at once, or never.
//! - **Whatever touches the runtime happens on its fibre**, within one `Context::with`: while the fibre is parked there
//!   the runtime is borrowed, and to ask it anything from outside panics. So limits and hooks are set before, and what
//!   the outside wants is a task that the fibre finds when it goes on.
//! - **Persistent values go before the runtime**, whose end would find them otherwise: [`EventLoop::close`].
//! - **A runtime whose modules are still at an `await` is leaked.** The engine (0.15.1) frees a module before what
//!   waits for it, and writes where it was.
//! - **Freed memory stays with the allocator.** What a process holds after its users have ended is no leak.

use crate::event_loop::{Event, EventLoop, Host, OpId, Operations, Request};
use crate::exception;
use crate::fault::{Exception, Place};
use crate::fibre::{Fibre, park};
use crate::globals::{self, Data, Kept};
use crate::program::Program;
use plimsoll_model::units::{Instant, Nanos};
use rquickjs::context::intrinsic;
use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Atom, Context, Ctx, Error, Module, Object, Promise, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

/// What of the language a script has: all but `performance`, which would be another clock than the host's, and `atob`.
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

/// What natives have of the stack below where scripts end. The engine looks at its limit only when it calls, and
/// needs some of this to throw. Not touched, it takes no memory.
const BELOW: usize = 256 * 1024;

/// What a user may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of what its script holds.
    pub memory: usize,
    /// Bytes of stack for the calls of its script; a call takes some 640.
    pub stack: usize,
    /// How long it may run without parking.
    pub busy: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 64 << 20, stack: 1 << 20, busy: Nanos(1_000_000_000) }
    }
}

/// A limit that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::memory`]
    Memory,
    /// [`Limits::stack`]
    Stack,
    /// [`Limits::busy`]
    Busy,
}

/// What makes a user different from others of the same program.
pub struct Setup {
    /// What it may take.
    pub limits: Limits,
    /// Time and console.
    pub host: Rc<dyn Host>,
    /// Global variables, before any module runs: `__VU`, `__ENV`.
    pub globals: Vec<(Rc<str>, Data)>,
    /// What natives need, before any module runs: userdata, global objects.
    pub prepare: Option<Prepare>,
}

/// See [`Setup::prepare`].
pub type Prepare = Box<dyn for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<()>>;

/// A call of a function that the script exports.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub function: Rc<str>,
    /// What it is called with.
    pub arguments: Vec<Data>,
    /// Global variables to be set before: `__ITER`.
    pub globals: Vec<(Rc<str>, Data)>,
    /// Whether what it returns is wanted.
    pub result: Wanted,
}

/// What a call is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// What it does.
    Nothing,
    /// What it returns, or its promise resolves to. (To turn a large response into JSON that nobody reads is dear.)
    Json,
}

/// Why a user gave the thread back.
#[derive(Clone, Debug, PartialEq)]
pub enum Parked {
    /// It waits for what it has requested, or for a call.
    Waiting,
    /// Its call is over, and everything that the call began: with what it returned, as JSON, where that was wanted and
    /// is anything; or with what it threw. The user can be called again.
    Over(Result<Option<String>, Exception>),
    /// It has ended for good.
    Ended(End),
}

/// How a user has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It was stopped from outside.
    Stopped,
    /// It broke a limit, and where, as far as that is known.
    Limit(Limit, Option<Place>),
    /// Its modules threw while they were loaded.
    NotLoaded(Exception),
}

/// A user of a script. It runs only in [`Vm::load`], [`Vm::call`], [`Vm::read`], [`Vm::wake`] and [`Vm::stop`], until
/// it parks; what it wants lies in [`Vm::next_request`] then, and what it has given up, also when a call is over.
///
/// One that has ended stays so, and is [`End::Stopped`] whatever is asked of it. Dropped, it is stopped first.
pub struct Vm<P: Operations> {
    fibre: Fibre,
    shared: Rc<Shared<P>>,
}

/// What fibre and outside hand each other.
struct Shared<P: Operations> {
    events: Rc<EventLoop<P>>,
    task: RefCell<Option<Task>>,
    parked: RefCell<Option<Parked>>,
    /// Whether it is loaded and no call is under way.
    is_idle: Cell<bool>,
    /// Since when it is known to run: that is looked at only where it runs for long.
    running_since: Cell<Option<Instant>>,
    was_too_long: Cell<bool>,
}

enum Task {
    Call(Call),
    Read(Rc<str>),
}

impl<P: Operations> Vm<P> {
    /// A user that has not begun. Its memory is taken when it is loaded.
    ///
    /// # Errors
    /// There is no room for its stack: see [`crate::fibre::most`].
    pub fn new(program: &Arc<Program>, setup: Setup) -> io::Result<Self> {
        let shared = Rc::new(Shared {
            events: Rc::new(EventLoop::new(Rc::clone(&setup.host))),
            task: RefCell::default(),
            parked: RefCell::default(),
            is_idle: Cell::default(),
            running_since: Cell::default(),
            was_too_long: Cell::default(),
        });
        let stack = setup.limits.stack + BELOW;
        let body = Body { program: Arc::clone(program), shared: Rc::clone(&shared), is_half_loaded: Cell::default() };
        let fibre = Fibre::new(stack, move || body.run(setup))?;
        Ok(Self { fibre, shared })
    }

    /// Makes its runtime and runs its modules; [`Parked::Over`] when that is done.
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

    /// What the script exports under a name, as JSON; None where there is nothing of that name, or a function.
    ///
    /// # Panics
    /// It is not loaded, or a call is under way.
    pub fn read(&mut self, name: &str) -> Parked {
        self.begin(Task::Read(name.into()))
    }

    /// Tells it that an operation has answered.
    pub fn wake(&mut self, id: OpId, event: Event<P::Event>) -> Parked {
        if self.shared.events.deliver(id, event) { self.resume() } else { Parked::Waiting }
    }

    /// Ends it, whatever it does: neither `catch` nor `finally` sees it.
    pub fn stop(&mut self) -> Parked {
        self.shared.events.stop();
        self.resume()
    }

    /// What it wants next, in the order in which it wanted it.
    pub fn next_request(&mut self) -> Option<Request<P::Op>> {
        self.shared.events.next_request()
    }

    /// Whether it has ended for good.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.fibre.has_ended()
    }

    fn begin(&mut self, task: Task) -> Parked {
        let was_idle = self.shared.is_idle.replace(false);
        assert!(was_idle || self.has_ended(), "a user is loaded first, and makes one call at a time");
        self.shared.task.replace(Some(task));
        self.resume()
    }

    fn resume(&mut self) -> Parked {
        if self.fibre.has_ended() {
            return Parked::Ended(End::Stopped);
        }
        self.shared.running_since.set(None);
        self.fibre.resume();
        self.shared.parked.take().unwrap_or(Parked::Waiting)
    }
}

impl<P: Operations> Drop for Vm<P> {
    fn drop(&mut self) {
        // Where it does not end (after a panic), its fibre is leaked.
        if !std::thread::panicking() && self.fibre.has_begun() {
            self.stop();
        }
    }
}

/// What runs on the fibre of a user. Of what happens seldom, nothing is inlined: a page of the stack that was touched
/// once stays with the user.
struct Body<P: Operations> {
    program: Arc<Program>,
    shared: Rc<Shared<P>>,
    /// Whether its modules are at an `await` that has not come back.
    is_half_loaded: Cell<bool>,
}

/// A script that was loaded.
struct Script<'js> {
    exports: Object<'js>,
    kept: Kept<'js>,
    /// The function that was called last, by name, and its name as the engine has it.
    last: RefCell<Option<(Rc<str>, Atom<'js>)>>,
}

impl<'js> Script<'js> {
    /// What it exports under a name; most often that is the same name again and again.
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

/// Why a task did not come to its result. In boxes, because it stands on the stack of every user, and comes up seldom.
enum Break {
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

    /// The whole life of a user. What is left of it goes in this order: what handlers keep, context, runtime.
    fn live(&self, setup: Setup) -> rquickjs::Result<End> {
        let runtime = self.runtime(&setup.limits)?;
        // Leaked by a panic, which leaves anything of it anywhere.
        let engine = ManuallyDrop::new((Context::custom::<Intrinsics>(&runtime)?, runtime));
        let end = engine.0.with(|ctx| {
            let end = self.serve(&ctx, setup);
            self.shared.events.close();
            end
        });
        if !self.is_half_loaded.get() {
            drop(ManuallyDrop::into_inner(engine));
        }
        Ok(end)
    }

    fn runtime(&self, limits: &Limits) -> rquickjs::Result<Runtime> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        self.program.provide(&runtime);
        let (shared, busy) = (Rc::clone(&self.shared), limits.busy);
        // Called after so and so many calls and turns of loops, whatever time they took.
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let now = shared.events.now();
            let since = shared.running_since.get().unwrap_or(now);
            shared.running_since.set(Some(since));
            let too_long = now.since(since) > busy;
            shared.was_too_long.set(too_long);
            too_long
        })));
        let events = Rc::clone(&self.shared.events);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
            events.track(&ctx, promise, reason, is_handled);
        })));
        Ok(runtime)
    }

    fn serve(&self, ctx: &Ctx<'_>, setup: Setup) -> End {
        let script = match self.load(ctx, setup) {
            Ok(exports) => Script { exports, kept: Kept::default(), last: RefCell::default() },
            Err(Break::Threw(exception)) => return End::NotLoaded(*exception),
            Err(Break::End(end)) => return *end,
        };
        let mut result = Ok(None);
        loop {
            self.shared.events.close();
            self.shared.parked.replace(Some(Parked::Over(result)));
            self.shared.is_idle.set(true);
            let Some(task) = self.next_task() else { return End::Stopped };
            result = match self.perform(ctx, &script, task) {
                Ok(json) => Ok(json),
                Err(Break::Threw(exception)) => Err(*exception),
                Err(Break::End(end)) => return *end,
            };
            if result.is_err()
                && let Some(end) = self.run_out(ctx)
            {
                return end;
            }
        }
    }

    /// Lets jobs go by that an exception left, so that they are none of the next call's.
    #[inline(never)]
    fn run_out(&self, ctx: &Ctx<'_>) -> Option<End> {
        self.shared.events.close();
        while self.end().is_none() && ctx.execute_pending_job() {
            if ctx.has_exception() {
                ctx.catch();
            }
        }
        self.end().map(|end| *end)
    }

    /// Parks until there is something to do; None when it is to end.
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
    fn load<'js>(&self, ctx: &Ctx<'js>, setup: Setup) -> Result<Object<'js>, Break> {
        self.shared.events.install(ctx);
        Program::install(&self.program, ctx);
        let begin = || {
            globals::install::<P>(ctx, &self.program)?;
            globals::set(ctx, &Kept::default(), &setup.globals)?;
            setup.prepare.map_or(Ok(()), |prepare| prepare(ctx))?;
            Module::import(ctx, self.program.entry())
        };
        let loaded: Promise<'js> = begin().map_err(|error| self.broken(ctx, error))?;
        let mut pumped = self.pump(ctx, Some(&loaded));
        self.is_half_loaded.set(loaded.state() == PromiseState::Pending);
        // Where the modules ran for too long, their promise will know in which line.
        for _ in 0..8 {
            if pumped.is_ok() || loaded.state() != PromiseState::Pending || !ctx.execute_pending_job() {
                break;
            }
        }
        if let Err(Break::End(end)) = &mut pumped
            && let End::Limit(_, place @ None) = &mut **end
            && let Some(Err(error)) = loaded.result::<Value<'js>>()
        {
            *place = exception::caught(ctx, &self.program, error).place;
        }
        pumped?;
        self.shared.events.set_loaded();
        let Some(exports) = loaded.result::<Object<'js>>() else {
            let message = "the script waits for a promise that nothing settles, and so is never loaded".to_owned();
            return Err(Break::Threw(Box::new(Exception { message, place: None, stack: String::new() })));
        };
        exports.map_err(|error| self.broken(ctx, error))
    }

    fn perform<'js>(&self, ctx: &Ctx<'js>, script: &Script<'js>, task: Task) -> Result<Option<String>, Break> {
        match task {
            Task::Call(call) => self.call(ctx, script, &call),
            Task::Read(name) => {
                let value: Value<'js> = script.exports.get(&*name).map_err(|error| self.broken(ctx, error))?;
                self.json(ctx, value)
            }
        }
    }

    fn call<'js>(&self, ctx: &Ctx<'js>, script: &Script<'js>, call: &Call) -> Result<Option<String>, Break> {
        let begin = || {
            if !call.globals.is_empty() {
                globals::set(ctx, &script.kept, &call.globals)?;
            }
            let Some(function) = script.export(ctx, &call.function)?.into_function() else {
                let message = format!("the script exports no function `{}`", call.function);
                return Err(rquickjs::Exception::throw_type(ctx, &message));
            };
            let mut arguments = Args::new(ctx.clone(), call.arguments.len());
            call.arguments.iter().try_for_each(|data| arguments.push_arg(script.kept.value(ctx, data)?))?;
            function.call_arg(arguments)
        };
        let returned: Value<'js> = begin().map_err(|error| self.broken(ctx, error))?;
        let promise = returned.as_promise();
        self.pump(ctx, promise)?;
        if call.result == Wanted::Nothing {
            return Ok(None);
        }
        match promise.map(Promise::result) {
            None => self.json(ctx, returned),
            Some(None) => Ok(None),
            Some(Some(settled)) => self.json(ctx, settled.map_err(|error| self.broken(ctx, error))?),
        }
    }

    #[inline(never)]
    fn json<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<Option<String>, Break> {
        let text = || ctx.json_stringify(value)?.map(|json| json.to_string()).transpose();
        text().map_err(|error| self.broken(ctx, error))
    }

    /// Runs the user's loop until nothing is left that could go on: jobs of promises, answers to come. A rejection
    /// that nobody has handled by the end of a turn is an exception.
    fn pump(&self, ctx: &Ctx<'_>, promise: Option<&Promise<'_>>) -> Result<(), Break> {
        let events = &self.shared.events;
        loop {
            self.run_jobs(ctx)?;
            if promise.is_some_and(|promise| promise.state() == PromiseState::Rejected) || !events.is_waiting() {
                break;
            }
            match events.next_event() {
                Some((id, event)) => events.handle(ctx, id, event).map_err(|error| self.broken(ctx, error))?,
                None => park(),
            }
        }
        match promise.and_then(Promise::result::<Value<'_>>) {
            Some(Err(error)) => Err(self.broken(ctx, error)),
            _ => Ok(()),
        }
    }

    fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), Break> {
        loop {
            if let Some(end) = self.end() {
                return Err(Break::End(end));
            }
            if !ctx.execute_pending_job() {
                break;
            }
            if ctx.has_exception() {
                return Err(self.broken(ctx, Error::Exception));
            }
        }
        match self.shared.events.unhandled(ctx) {
            Some(reason) => Err(self.threw(exception::of_value(ctx, &self.program, &reason))),
            None => Ok(()),
        }
    }

    /// Why the user ends now, if it does.
    fn end(&self) -> Option<Box<End>> {
        if self.shared.events.is_stopped() {
            return Some(Box::new(End::Stopped));
        }
        self.shared.was_too_long.get().then(|| Box::new(End::Limit(Limit::Busy, None)))
    }

    #[cold]
    #[inline(never)]
    fn broken(&self, ctx: &Ctx<'_>, error: Error) -> Break {
        self.threw(exception::caught(ctx, &self.program, error))
    }

    /// An exception that nobody caught; of a stop or a limit, it is the end. Where there is no memory left for the
    /// error that says so, the engine throws `null`: a script that does that itself is taken for one.
    #[cold]
    #[inline(never)]
    fn threw(&self, exception: Exception) -> Break {
        let limit = match (self.end().map(|end| *end), exception.message.as_str()) {
            (Some(End::Limit(limit, _)), _) => limit,
            (Some(end), _) => return Break::End(Box::new(end)),
            (None, "InternalError: out of memory" | "null") => Limit::Memory,
            (None, "RangeError: Maximum call stack size exceeded") => Limit::Stack,
            (None, _) => return Break::Threw(Box::new(exception)),
        };
        Break::End(Box::new(End::Limit(limit, exception.place)))
    }
}
