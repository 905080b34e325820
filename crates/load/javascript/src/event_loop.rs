//! The event loop of a user: its open operations and timers, and the handlers of their events.
//!
//! The crate knows no protocol. The types of operations and events are defined by the caller that runs the script
//! ([`Operations`]), so another protocol does not change this crate.

use crate::fibre;
use plimsoll_model::units::{Instant, Nanos};
use rquickjs::{Ctx, Error, Exception, Function, JsLifetime, Persistent, Promise, Result, Value};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

/// The number of an operation, unlike any other of the same user.
pub type OpId = u32;

/// The types of the operations that scripts start and of the events that these bring.
pub trait Operations: 'static {
    /// An operation: send this request, open that stream.
    type Op: 'static;
    /// An event of an operation: a response, a message of a stream, an error.
    type Event: 'static;
}

/// A request of a user to the thread that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<O> {
    /// Start an operation.
    Start(OpId, O),
    /// Wake the user with [`Wakeup::Timer`] at this instant.
    Timer(OpId, Instant),
    /// Cancel an operation or timer. Its further events are ignored.
    Cancel(OpId),
}

/// The reason why a user is woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakeup<E> {
    /// A timer is due.
    Timer,
    /// An event of an operation; streams bring more than one.
    Operation(E),
}

/// The level of a line on the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `console.debug`
    Debug,
    /// `console.log`, `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}

/// What a user gets at once, without parking.
pub trait Host {
    /// The present instant, for timers and for the limit on running without a break.
    fn now(&self) -> Instant;

    /// Takes a line of the console. This is no operation: a script that only writes would pile them up.
    fn console(&self, level: Level, line: &str);

    /// Takes a line that is about the script, and not written by it, such as a warning.
    fn log(&self, level: Level, line: &str) {
        self.console(level, line);
    }
}

/// The state of an operation after its handler has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It has ended.
    Done,
    /// More events may follow.
    Open,
    /// It is a timer, and due again at this instant.
    At(Instant),
}

/// A handler of the events of an operation. It keeps values of the engine as [`Persistent`].
pub type Handler<E> = Box<dyn for<'js> FnMut(&Ctx<'js>, Wakeup<E>) -> Result<Then>>;

/// The event loop of one user.
pub struct EventLoop<P: Operations> {
    host: Rc<dyn Host>,
    requests: RefCell<Queue<Request<P::Op>>>,
    events: RefCell<Queue<(OpId, Wakeup<P::Event>)>>,
    open: RefCell<OpenOperations<P::Event>>,
    last: Cell<OpId>,
    loading: Cell<bool>,
    stopped: Cell<bool>,
    rejected: RefCell<Vec<Rejected>>,
}

/// An operation that may still bring events.
enum Open<E> {
    /// A native takes its events itself.
    Awaited,
    Handled(Handler<E>),
    /// A timer of the script.
    Timed(Handler<E>),
    /// Its handler is running.
    Running,
}

/// A queue that mostly has one element, which it holds in place.
struct Queue<T> {
    first: Option<T>,
    others: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { first: None, others: VecDeque::new() }
    }
}

impl<T> Queue<T> {
    fn push(&mut self, one: T) {
        if self.first.is_none() && self.others.is_empty() {
            self.first = Some(one);
        } else {
            self.others.push_back(one);
        }
    }

    fn pop(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.others.pop_front())
    }

    /// Removes the first element that is wanted.
    fn take(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        if let Some(first) = self.first.take_if(|first| is_wanted(first)) {
            return Some(first);
        }
        let at = self.others.iter().position(is_wanted)?;
        self.others.remove(at)
    }

    fn clear(&mut self) {
        self.first = None;
        self.others.clear();
    }
}

/// Operations that may still bring events, by ascending number. A new one goes to the end and mostly leaves from there, so
/// one operation at a time moves nothing and allocates nothing.
struct OpenOperations<E>(Vec<(OpId, Open<E>)>);

impl<E> OpenOperations<E> {
    fn insert(&mut self, id: OpId, how: Open<E>) {
        // Numbers start again after four thousand million.
        let at = self.0.partition_point(|(known, _)| *known < id);
        self.0.insert(at, (id, how));
    }

    fn index_of(&self, id: OpId) -> Option<usize> {
        self.0.binary_search_by_key(&id, |(known, _)| *known).ok()
    }

    fn get_mut(&mut self, id: OpId) -> Option<&mut Open<E>> {
        self.index_of(id).map(|at| &mut self.0[at].1)
    }

    fn remove(&mut self, id: OpId) -> Option<Open<E>> {
        self.index_of(id).map(|at| self.0.remove(at).1)
    }
}

impl<E> Default for OpenOperations<E> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A promise that was rejected without a handler, and its reason.
struct Rejected {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

/// The userdata of a runtime by which natives find its event loop.
#[derive(JsLifetime)]
struct CurrentLoop(Rc<dyn Any>);

impl<P: Operations> EventLoop<P> {
    pub(crate) fn new(host: Rc<dyn Host>) -> Self {
        Self {
            host,
            requests: RefCell::default(),
            events: RefCell::default(),
            open: RefCell::default(),
            last: Cell::default(),
            loading: Cell::new(true),
            stopped: Cell::default(),
            rejected: RefCell::default(),
        }
    }

    pub(crate) fn install(self: &Rc<Self>, ctx: &Ctx<'_>) {
        let events = CurrentLoop(Rc::clone(self) as Rc<dyn Any>);
        assert!(ctx.store_userdata(events).is_ok(), "nobody holds userdata of a context that is being made");
    }

    /// The event loop of the runtime.
    ///
    /// # Errors
    /// The runtime is for other operations.
    pub fn of(ctx: &Ctx<'_>) -> Result<Rc<Self>> {
        let found = ctx.userdata::<CurrentLoop>().and_then(|events| Rc::clone(&events.0).downcast::<Self>().ok());
        found.ok_or_else(|| Exception::throw_internal(ctx, "this native is for another kind of user"))
    }

    /// The present instant.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// Logs a line about the script, which it has not written itself.
    pub fn log(&self, level: Level, line: &str) {
        self.host.log(level, line);
    }

    /// True while the script is loaded: its modules run, and none of its functions was called yet.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loading.get()
    }

    pub(crate) fn host(&self) -> &Rc<dyn Host> {
        &self.host
    }

    /// Starts an operation and parks until its event.
    ///
    /// Nothing else of the user runs meanwhile: events of other operations wait.
    ///
    /// # Errors
    /// The user is stopped: return the error at once.
    pub fn call(&self, ctx: &Ctx<'_>, op: P::Op) -> Result<P::Event> {
        let id = self.start(op);
        loop {
            if let (_, Wakeup::Operation(event)) = self.next(ctx, &[id])? {
                self.finish(id);
                return Ok(event);
            }
        }
    }

    /// Parks for a span of time.
    ///
    /// # Errors
    /// The user is stopped: return the error at once.
    pub fn sleep(&self, ctx: &Ctx<'_>, span: Nanos) -> Result<()> {
        let id = self.start_timer(self.now().after(span));
        self.next(ctx, &[id])?;
        self.finish(id);
        Ok(())
    }

    /// Starts an operation whose events the same native takes with [`Self::next`].
    pub fn start(&self, op: P::Op) -> OpId {
        let id = self.open(Open::Awaited);
        self.request(Request::Start(id, op));
        id
    }

    /// As [`Self::start`], for a timer.
    pub fn start_timer(&self, due: Instant) -> OpId {
        let id = self.open(Open::Awaited);
        self.request(Request::Timer(id, due));
        id
    }

    /// Parks until an event of one of these operations. More may follow, until [`Self::finish`] or [`Self::cancel`].
    ///
    /// # Errors
    /// The user is stopped: return the error at once.
    pub fn next(&self, ctx: &Ctx<'_>, ids: &[OpId]) -> Result<(OpId, Wakeup<P::Event>)> {
        loop {
            if self.stopped.get() {
                return Err(stopped(ctx));
            }
            if let Some(event) = self.events.borrow_mut().take(|(id, _)| ids.contains(id)) {
                return Ok(event);
            }
            fibre::park();
        }
    }

    /// Ends an operation after its last event.
    pub fn finish(&self, id: OpId) {
        self.open.borrow_mut().remove(id);
    }

    /// Starts an operation that brings no event.
    pub fn send(&self, op: P::Op) {
        let id = self.next_id();
        self.request(Request::Start(id, op));
    }

    /// Starts an operation and goes on. `handler` is called with each of its events, when nothing else of the user runs.
    pub fn subscribe(&self, op: P::Op, handler: Handler<P::Event>) -> OpId {
        let id = self.open(Open::Handled(handler));
        self.request(Request::Start(id, op));
        id
    }

    /// As [`Self::subscribe`], for a timer.
    pub fn at(&self, due: Instant, handler: Handler<P::Event>) -> OpId {
        let id = self.open(Open::Timed(handler));
        self.request(Request::Timer(id, due));
        id
    }

    /// Starts an operation and returns a promise of its event, as `convert` converts it. An exception in `convert`
    /// rejects the promise.
    ///
    /// # Errors
    /// The engine has no room for a promise.
    pub fn promise<'js, F>(&self, ctx: &Ctx<'js>, op: P::Op, convert: F) -> Result<Promise<'js>>
    where
        F: for<'to> FnOnce(&Ctx<'to>, P::Event) -> Result<Value<'to>> + 'static,
    {
        let (promise, resolve, reject) = ctx.promise()?;
        let settle = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
        let mut pending = Some((settle, convert));
        let handler = move |ctx: &Ctx<'_>, event: Wakeup<P::Event>| {
            if let (Wakeup::Operation(event), Some(((resolve, reject), convert))) = (event, pending.take()) {
                let (settle, value) = match convert(ctx, event) {
                    Ok(value) => (resolve, value),
                    Err(Error::Exception) => (reject, ctx.catch()),
                    Err(other) => {
                        let error = Exception::from_message(ctx.clone(), &other.to_string())?;
                        (reject, error.into_object().into_value())
                    }
                };
                let settle: Function<'_> = settle.restore(ctx)?;
                settle.call::<_, ()>((value,))?;
            }
            Ok(Then::Done)
        };
        self.subscribe(op, Box::new(handler));
        Ok(promise)
    }

    /// Cancels an operation, also from its own handler. Ignores unknown ones.
    pub fn cancel(&self, id: OpId) {
        let closed = self.open.borrow_mut().remove(id);
        if closed.is_some() {
            self.request(Request::Cancel(id));
        }
    }

    /// Cancels a timer. Scripts name timers by number and may get it wrong: other operations go on.
    pub(crate) fn cancel_timer(&self, id: OpId) {
        let is_timer = matches!(self.open.borrow_mut().get_mut(id), Some(Open::Timed(_) | Open::Running));
        if is_timer {
            self.cancel(id);
        }
    }

    fn next_id(&self) -> OpId {
        let id = self.last.get().wrapping_add(1);
        self.last.set(id);
        id
    }

    fn open(&self, how: Open<P::Event>) -> OpId {
        let id = self.next_id();
        self.open.borrow_mut().insert(id, how);
        id
    }

    fn request(&self, request: Request<P::Op>) {
        self.requests.borrow_mut().push(request);
    }

    /// The next request, for the thread that runs the user.
    pub(crate) fn next_request(&self) -> Option<Request<P::Op>> {
        self.requests.borrow_mut().pop()
    }

    /// Takes an event. False if nobody waits for it any more.
    pub(crate) fn deliver(&self, id: OpId, event: Wakeup<P::Event>) -> bool {
        let is_open = self.open.borrow().index_of(id).is_some();
        if is_open {
            self.events.borrow_mut().push((id, event));
        }
        is_open
    }

    pub(crate) fn next_event(&self) -> Option<(OpId, Wakeup<P::Event>)> {
        self.events.borrow_mut().pop()
    }

    /// True if a handler waits for an event: then the loop goes on.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.borrow().0.iter().any(|(_, open)| matches!(open, Open::Handled(_) | Open::Timed(_)))
    }

    /// Calls the handler of an operation with an event.
    pub(crate) fn handle(&self, ctx: &Ctx<'_>, id: OpId, event: Wakeup<P::Event>) -> Result<()> {
        let Some(mut handler) = self.begin_handling(id) else { return Ok(()) };
        let then = handler(ctx, event)?;
        let mut open = self.open.borrow_mut();
        // It may have been cancelled by its own handler.
        let Some(slot) = open.get_mut(id) else { return Ok(()) };
        match then {
            Then::Done => drop(open.remove(id)),
            Then::Open => *slot = Open::Handled(handler),
            Then::At(due) => {
                *slot = Open::Timed(handler);
                self.request(Request::Timer(id, due));
            }
        }
        Ok(())
    }

    /// Takes the handler of an operation. One whose events a native should have taken has none, and ends.
    fn begin_handling(&self, id: OpId) -> Option<Handler<P::Event>> {
        let mut open = self.open.borrow_mut();
        match mem::replace(open.get_mut(id)?, Open::Running) {
            Open::Handled(handler) | Open::Timed(handler) => Some(handler),
            Open::Awaited | Open::Running => {
                open.remove(id);
                None
            }
        }
    }

    /// Cancels all open operations. Runs on the user's fibre, where handlers may drop values of the engine.
    pub(crate) fn close(&self) {
        if !self.open.borrow().0.is_empty() {
            let open = mem::take(&mut *self.open.borrow_mut());
            open.0.iter().for_each(|(id, _)| self.request(Request::Cancel(*id)));
        }
        self.events.borrow_mut().clear();
        self.rejected.borrow_mut().clear();
    }

    pub(crate) fn set_loaded(&self) {
        self.loading.set(false);
    }

    pub(crate) fn stop(&self) {
        self.stopped.set(true);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Notes that a promise was rejected without a handler, or later got one.
    pub(crate) fn track<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        let promise = Persistent::save(ctx, promise);
        let mut rejected = self.rejected.borrow_mut();
        rejected.retain(|known| known.promise != promise);
        if !is_handled {
            rejected.push(Rejected { promise, reason: Persistent::save(ctx, reason) });
        }
    }

    /// The reason of a rejected promise that still has no handler.
    pub(crate) fn unhandled<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let rejected = mem::take(&mut *self.rejected.borrow_mut());
        rejected.into_iter().find_map(|one| one.reason.restore(ctx).ok())
    }
}

/// An error that neither `catch` nor `finally` sees: it ends the script.
///
/// The promise of an `async` function then stays pending forever. So the event loop knows whether a user was stopped, not
/// a promise.
pub(crate) fn stopped(ctx: &Ctx<'_>) -> Error {
    let Ok(error) = Exception::from_message(ctx.clone(), "stopped") else { return Error::Exception };
    let value = error.into_object().into_value();
    #[expect(unsafe_code, reason = "the bindings have no name for it")]
    // SAFETY: the value is an Error object of this context, and lives until after the call.
    unsafe {
        rquickjs::qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw());
    }
    ctx.throw(value)
}
