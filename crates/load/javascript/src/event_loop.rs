//! What a user of a script waits for: the operations that it has asked for, and what happens when one is answered.
//!
//! The crate knows no protocol: what an operation is and what answers it are types of whoever runs the script
//! ([`Operations`]). So the crate that names the protocols has their types, the compiler holds both ends to them, and
//! this one need not change for another protocol.

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

/// What scripts ask of whoever runs them, and what is answered.
pub trait Operations: 'static {
    /// What is asked: send this request, open that stream.
    type Op: 'static;
    /// What is answered: a response, a message of a stream, an error.
    type Event: 'static;
}

/// What a user asks, in the order in which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<O> {
    /// Begin an operation.
    Start(OpId, O),
    /// Answer [`Event::Due`] at this instant.
    Timer(OpId, Instant),
    /// Nobody waits for this one any more. What it answers is ignored.
    Cancel(OpId),
}

/// What a user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<E> {
    /// The instant of a timer has come.
    Due,
    /// An operation has answered; streams answer more than once.
    Answer(E),
}

/// How loud a line of the console is.
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

/// What a user may have at once, without parking.
pub trait Host {
    /// What time it is. Timers count from it, and so does the limit on running without a break.
    fn now(&self) -> Instant;

    /// A script wrote a line. It is no operation: a script that does nothing but write would pile them up.
    fn console(&self, level: Level, line: &str);
}

/// What becomes of an operation whose answer was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is over.
    Done,
    /// It will answer again.
    Open,
    /// It is a timer, and due again.
    At(Instant),
}

/// Called with each answer of an operation. What it keeps of the engine, it keeps as [`Persistent`].
pub type Handler<E> = Box<dyn for<'js> FnMut(&Ctx<'js>, Event<E>) -> Result<Then>>;

/// The operations of one user.
pub struct EventLoop<P: Operations> {
    host: Rc<dyn Host>,
    requests: RefCell<Queue<Request<P::Op>>>,
    events: RefCell<Queue<(OpId, Event<P::Event>)>>,
    open: RefCell<Opened<P::Event>>,
    last: Cell<OpId>,
    loading: Cell<bool>,
    stopped: Cell<bool>,
    rejected: RefCell<Vec<Rejected>>,
}

/// An operation that may still answer.
enum Open<E> {
    /// A native takes its answers itself.
    Awaited,
    Handled(Handler<E>),
    /// A timer of the script.
    Timed(Handler<E>),
    /// Its handler runs.
    Running,
}

/// A queue of which most often there is one, which needs no memory elsewhere.
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

    /// Takes out the first that is wanted.
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

/// Operations that may still answer. Numbers ascend, so what is opened goes to the end, and most often leaves from
/// there: for one operation at a time nothing is moved and no memory is asked for.
struct Opened<E>(Vec<(OpId, Open<E>)>);

impl<E> Opened<E> {
    fn insert(&mut self, id: OpId, how: Open<E>) {
        // Numbers begin anew after four thousand million.
        let at = self.0.partition_point(|(known, _)| *known < id);
        self.0.insert(at, (id, how));
    }

    fn place(&self, id: OpId) -> Option<usize> {
        self.0.binary_search_by_key(&id, |(known, _)| *known).ok()
    }

    fn get_mut(&mut self, id: OpId) -> Option<&mut Open<E>> {
        self.place(id).map(|at| &mut self.0[at].1)
    }

    fn remove(&mut self, id: OpId) -> Option<Open<E>> {
        self.place(id).map(|at| self.0.remove(at).1)
    }
}

impl<E> Default for Opened<E> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A promise that was rejected while nobody handled it, and with what.
struct Rejected {
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

/// Where natives find the event loop of the user that calls them.
#[derive(JsLifetime)]
struct Seat(Rc<dyn Any>);

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
        let seat = Seat(Rc::clone(self) as Rc<dyn Any>);
        assert!(ctx.store_userdata(seat).is_ok(), "nobody holds userdata of a context that is being made");
    }

    /// That of the user whose native runs.
    ///
    /// # Errors
    /// The runtime is one for other operations.
    pub fn of(ctx: &Ctx<'_>) -> Result<Rc<Self>> {
        let found = ctx.userdata::<Seat>().and_then(|seat| Rc::clone(&seat.0).downcast::<Self>().ok());
        found.ok_or_else(|| Exception::throw_internal(ctx, "this native is for another kind of user"))
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// Whether the script is still being loaded: its modules run, and none of its functions was called yet.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loading.get()
    }

    pub(crate) fn host(&self) -> &Rc<dyn Host> {
        &self.host
    }

    /// Asks for an operation and parks until it has answered.
    ///
    /// Nothing else of the user runs meanwhile: what other operations answer waits.
    ///
    /// # Errors
    /// The user is stopped: to be handed on at once.
    pub fn call(&self, ctx: &Ctx<'_>, op: P::Op) -> Result<P::Event> {
        let id = self.start(op);
        loop {
            // Only timers are due, and this is none.
            if let (_, Event::Answer(event)) = self.next(ctx, &[id])? {
                self.finish(id);
                return Ok(event);
            }
        }
    }

    /// Parks for a span of time.
    ///
    /// # Errors
    /// The user is stopped: to be handed on at once.
    pub fn sleep(&self, ctx: &Ctx<'_>, span: Nanos) -> Result<()> {
        let id = self.start_timer(self.now().after(span));
        self.next(ctx, &[id])?;
        self.finish(id);
        Ok(())
    }

    /// Asks for an operation whose answers the same native then takes with [`Self::next`].
    pub fn start(&self, op: P::Op) -> OpId {
        let id = self.open(Open::Awaited);
        self.ask(Request::Start(id, op));
        id
    }

    /// As [`Self::start`], for a timer.
    pub fn start_timer(&self, due: Instant) -> OpId {
        let id = self.open(Open::Awaited);
        self.ask(Request::Timer(id, due));
        id
    }

    /// Parks until one of several operations that were started has answered. It may answer again, until
    /// [`Self::finish`] or [`Self::cancel`].
    ///
    /// # Errors
    /// The user is stopped: to be handed on at once.
    pub fn next(&self, ctx: &Ctx<'_>, ids: &[OpId]) -> Result<(OpId, Event<P::Event>)> {
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

    /// An operation has given its last answer.
    pub fn finish(&self, id: OpId) {
        self.open.borrow_mut().remove(id);
    }

    /// Asks for something that has no answer.
    pub fn tell(&self, op: P::Op) {
        let id = self.number();
        self.ask(Request::Start(id, op));
    }

    /// Asks for an operation and goes on; `handler` is called with each of its answers, one after the other, when
    /// nothing else of the user runs.
    pub fn subscribe(&self, op: P::Op, handler: Handler<P::Event>) -> OpId {
        let id = self.open(Open::Handled(handler));
        self.ask(Request::Start(id, op));
        id
    }

    /// As [`Self::subscribe`], for a timer.
    pub fn at(&self, due: Instant, handler: Handler<P::Event>) -> OpId {
        let id = self.open(Open::Timed(handler));
        self.ask(Request::Timer(id, due));
        id
    }

    /// Asks for an operation and goes on with a promise of what `convert` makes of its answer. An exception in
    /// `convert` rejects it.
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
        let handler = move |ctx: &Ctx<'_>, event: Event<P::Event>| {
            if let (Event::Answer(event), Some(((resolve, reject), convert))) = (event, pending.take()) {
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

    /// Gives an operation up, also from its own handler. Unknown ones are none.
    pub fn cancel(&self, id: OpId) {
        let closed = self.open.borrow_mut().remove(id);
        if closed.is_some() {
            self.ask(Request::Cancel(id));
        }
    }

    /// Gives a timer up. Scripts name timers by number, and may get it wrong: other operations are not touched.
    pub(crate) fn cancel_timer(&self, id: OpId) {
        let is_timer = matches!(self.open.borrow_mut().get_mut(id), Some(Open::Timed(_) | Open::Running));
        if is_timer {
            self.cancel(id);
        }
    }

    fn number(&self) -> OpId {
        let id = self.last.get().wrapping_add(1);
        self.last.set(id);
        id
    }

    fn open(&self, how: Open<P::Event>) -> OpId {
        let id = self.number();
        self.open.borrow_mut().insert(id, how);
        id
    }

    fn ask(&self, request: Request<P::Op>) {
        self.requests.borrow_mut().push(request);
    }

    /// The next request, for whoever runs the user.
    pub(crate) fn next_request(&self) -> Option<Request<P::Op>> {
        self.requests.borrow_mut().pop()
    }

    /// Takes an answer in. False where nobody waits for it any more.
    pub(crate) fn deliver(&self, id: OpId, event: Event<P::Event>) -> bool {
        let is_open = self.open.borrow().place(id).is_some();
        if is_open {
            self.events.borrow_mut().push((id, event));
        }
        is_open
    }

    pub(crate) fn next_event(&self) -> Option<(OpId, Event<P::Event>)> {
        self.events.borrow_mut().pop()
    }

    /// Whether a handler waits for an answer: then the user's loop is not over.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.borrow().0.iter().any(|(_, open)| matches!(open, Open::Handled(_) | Open::Timed(_)))
    }

    /// Calls the handler of an operation that has answered.
    pub(crate) fn handle(&self, ctx: &Ctx<'_>, id: OpId, event: Event<P::Event>) -> Result<()> {
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
                self.ask(Request::Timer(id, due));
            }
        }
        Ok(())
    }

    /// The handler of an operation. One whose answers a native should have taken has none, and is over.
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

    /// Gives up whatever is still open. On the user's fibre, where handlers let go of what they keep of the engine.
    pub(crate) fn close(&self) {
        if !self.open.borrow().0.is_empty() {
            let open = mem::take(&mut *self.open.borrow_mut());
            open.0.iter().for_each(|(id, _)| self.ask(Request::Cancel(*id)));
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

    /// What the engine says of a promise: that it was rejected with nobody to handle that, or later that somebody does.
    pub(crate) fn track<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        let promise = Persistent::save(ctx, promise);
        let mut rejected = self.rejected.borrow_mut();
        rejected.retain(|known| known.promise != promise);
        if !is_handled {
            rejected.push(Rejected { promise, reason: Persistent::save(ctx, reason) });
        }
    }

    /// With what a promise was rejected that nobody has handled since.
    pub(crate) fn unhandled<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let rejected = mem::take(&mut *self.rejected.borrow_mut());
        rejected.into_iter().find_map(|one| one.reason.restore(ctx).ok())
    }
}

/// An error that neither `catch` nor `finally` sees: it ends the script, whatever that would do.
///
/// In an `async` function its promise stays pending for ever, with no job left that could settle it: whether a user
/// was stopped is asked of the event loop, never of a promise.
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
