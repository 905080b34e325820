//! What runs on the fibre of a user: its runtime, its modules, then one task after the other.

use super::{Call, End, Limit, Limits, Parked, PlaceFinder, ResultFormat, Setup, Shared, Task};
use crate::binary::binary;
use crate::commonjs::Loaded;
use crate::event_loop::Operations;
use crate::exception;
use crate::fault::Exception;
use crate::fibre::park;
use crate::globals::{self, ParsedArguments};
use crate::held::{self, HeldMemory};
use crate::program::Program;
use rquickjs::context::intrinsic;
use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Atom, CaughtError, Context, Ctx, Error, IntoJs, Object, Promise, Runtime, Value, qjs};
use std::cell::{Cell, RefCell};
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

/// The code on the fibre of a user. Rare paths are not inlined: a touched page of the stack stays with the user.
pub(super) struct Body<P: Operations> {
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
    pub(super) fn new(program: Arc<Program>, shared: Rc<Shared<P>>) -> Self {
        Body { program, shared, is_half_loaded: Cell::default() }
    }

    pub(super) fn run(self, setup: Setup) {
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
        let value = match promise.map(Promise::result) {
            None => returned,
            Some(None) => return Ok(None),
            Some(Some(settled)) => settled.map_err(|error| self.failure(ctx, error))?,
        };
        if call.result == ResultFormat::JsonWithBytes {
            let value = with_bytes(ctx, value).map_err(|error| self.failure(ctx, error))?;
            return self.json(ctx, value);
        }
        self.json(ctx, value)
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
            Some(reason) => {
                let exception = exception::of_value(ctx, &self.program, &reason);
                Err(self.failure_of(ctx, exception, reason.is_null()))
            }
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
        let error = CaughtError::from_error(ctx, error);
        let is_null = matches!(&error, CaughtError::Value(value) if value.is_null());
        self.failure_of(ctx, exception::of_caught(ctx, &self.program, error), is_null)
    }

    /// The failure of an uncaught exception; the end of the user, if a stop or a limit caused it. `is_null` is true if
    /// null was thrown.
    #[cold]
    #[inline(never)]
    fn failure_of(&self, ctx: &Ctx<'_>, exception: Exception, is_null: bool) -> Failure {
        let limit = match (self.end().map(|end| *end), exception.message.as_str()) {
            (Some(End::Limit(limit, place)), _) => {
                return Failure::End(Box::new(End::Limit(limit, exception.place.or(place))));
            }
            (Some(end), _) => return Failure::End(Box::new(end)),
            (None, "InternalError: out of memory") => Limit::Memory,
            (None, _) if is_null && self.is_null_of_engine(ctx) => Limit::Memory,
            (None, "RangeError: Maximum call stack size exceeded") => Limit::Stack,
            (None, message) if message.strip_prefix("InternalError: ") == Some(held::EXCEEDED) => Limit::Held,
            (None, _) => return Failure::Threw(Box::new(exception)),
        };
        Failure::End(Box::new(End::Limit(limit, exception.place)))
    }

    /// True if a thrown null is the engine's, which throws it if not even the error of an exhausted memory fits. A null
    /// of the script looks the same, so it counts as the engine's unless the script has one to throw and memory was
    /// left.
    fn is_null_of_engine(&self, ctx: &Ctx<'_>) -> bool {
        !self.program.throws_null() || collects_at(ctx) >= self.shared.memory / 8 * 7
    }
}

/// The size of the heap, in bytes, at which the engine next collects garbage. It grows with the heap, and stays when
/// memory is freed: so it tells of a heap that was full before the exception unwound the stack.
fn collects_at(ctx: &Ctx<'_>) -> usize {
    #[expect(unsafe_code, reason = "the bindings have no name for it")]
    // SAFETY: the context is alive, and with it its runtime, of which a number is read.
    unsafe {
        qjs::JS_GetGCThreshold(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) as usize
    }
}

/// The value with its members in the form of [`ResultFormat::JsonWithBytes`].
fn with_bytes<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    let Some(given) = value.as_object().filter(|_| !value.is_array() && !value.is_function()) else { return Ok(value) };
    let members = Object::new(ctx.clone())?;
    for member in given.props::<String, Value<'js>>() {
        let (name, member) = member?;
        match binary(&member)? {
            Some(bytes) => {
                let text: String = bytes.into_iter().map(char::from).collect();
                let buffer = Object::new(ctx.clone())?;
                buffer.set("bytes", text)?;
                members.set(name, buffer)?;
            }
            None => members.set(name, member)?,
        }
    }
    Ok(members.into_value())
}

/// The names of the members that are functions.
fn functions(exports: &Object<'_>) -> rquickjs::Result<Vec<String>> {
    let members = exports.props::<String, Value<'_>>().collect::<rquickjs::Result<Vec<_>>>()?;
    Ok(members.into_iter().filter(|(_, member)| member.is_function()).map(|(name, _)| name).collect())
}
