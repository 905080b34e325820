//! The module `k6/ws`: a socket that blocks the script until it is closed.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]

use crate::fetch::headers::canonical;
use crate::modules::listeners::Listeners;
use crate::modules::socket_session::{GOING_AWAY, LONGEST_OPENING, Parameters, Session, fault_of, url_of};
use crate::native::Native;
use crate::operations::{Event, HttpReply, K6, Op, SocketClosed, SocketCommand, SocketEvent, SocketRefused};
use crate::user::User;
use crate::value::{binary, buffer, thrown, wrong};
use plimsoll_javascript::{EventLoop, HeldMemory, NativeModule, OpId};
use plimsoll_k6_run::metrics::builtin;
use plimsoll_model::units::{Instant, Nanos};
use rquickjs::class::{Class, Trace};
use rquickjs::function::{Opt, Rest};
use rquickjs::{Coerced, Ctx, Exception, Function, JsLifetime, Object, Result, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The status of a response that agrees to a socket.
const SWITCHING_PROTOCOLS: u16 = 101;

/// See the module.
pub(crate) struct Ws;

impl NativeModule for Ws {
    const NAME: &'static str = "k6/ws";
    const EXPORTS: &'static [&'static str] = &["default", "connect"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.native("connect", connect)?;
        Ok(module)
    }
}

/// `connect(url, params, function)`: opens a socket, passes it to the function, and handles its events until it is closed.
fn connect<'js>(ctx: Ctx<'js>, written: Coerced<String>, arguments: Rest<Value<'js>>) -> Result<Object<'js>> {
    let user = User::running(&ctx, "ws.connect()")?;
    let mut arguments = arguments.0.into_iter();
    let (params, function) = match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(function), None, _) => (None, function),
        (Some(params), Some(function), None) => (Some(params), function),
        _ => return Err(thrown(&ctx, "invalid number of arguments to ws.connect")),
    };
    let Some(function) = function.into_function() else {
        return Err(thrown(&ctx, "last argument to ws.connect must be a function"));
    };
    let params = Parameters::read(&ctx, &user, params)?;
    let url = url_of(&ctx, &written.0)?;
    let request = params.request(&ctx, &url, Vec::new())?;
    let events = EventLoop::<K6>::of(&ctx)?;
    let session = Session::new(&user, events.now(), &written.0, &params);
    let id = events.start(Op::Socket(Box::new(request), HeldMemory::of(&ctx)?));
    match opened(&ctx, &events, id)? {
        SocketEvent::Opened(opened) => {
            session.connected(opened.took, Some(&opened.reply), Some(opened.remote));
            params.take_cookies(&url, &opened.reply);
            let link = Rc::new(Link::new(id, session));
            let attended = attend(&ctx, &events, &link, function);
            link.finish(&events);
            attended?;
            response(&ctx, &written.0, Some(&opened.reply), "")
        }
        SocketEvent::Refused(refused) => {
            session.connected(refused.took, refused.reply.as_ref(), refused.remote);
            session.end(events.now());
            let SocketRefused { reply, fault, .. } = refused;
            if user.options().throw == Some(true) {
                return Err(thrown(&ctx, fault.detail));
            }
            // Another status says what is wrong by itself.
            let says_why = reply.as_ref().is_some_and(|reply| reply.status() != SWITCHING_PROTOCOLS);
            let error = if says_why { "" } else { &fault.detail };
            response(&ctx, &written.0, reply.as_ref(), error)
        }
        _ => Err(Exception::throw_internal(&ctx, "a socket said something before it was open")),
    }
}

/// The first event of a socket; a refusal after the timeout.
fn opened(ctx: &Ctx<'_>, events: &EventLoop<K6>, id: OpId) -> Result<SocketEvent> {
    let timer = events.start_timer(events.now().after(LONGEST_OPENING));
    let event = match events.next(ctx, &[id, timer])? {
        (_, plimsoll_javascript::Wakeup::Operation(Event::Socket(event))) => *event,
        _ => SocketEvent::Refused(SocketRefused::late(LONGEST_OPENING)),
    };
    events.cancel(timer);
    match &event {
        SocketEvent::Opened(_) => {}
        _ => events.cancel(id),
    }
    Ok(event)
}

/// The result of `connect`.
fn response<'js>(ctx: &Ctx<'js>, url: &str, reply: Option<&HttpReply>, error: &str) -> Result<Object<'js>> {
    let response = Object::new(ctx.clone())?;
    let headers = Object::new(ctx.clone())?;
    for (name, value) in reply.into_iter().flat_map(HttpReply::headers) {
        let name = canonical(name);
        let before = headers.get::<_, Option<String>>(&*name)?;
        headers.set(&*name, before.map_or_else(|| value.to_owned(), |before| format!("{before}, {value}")))?;
    }
    response.set("url", url)?;
    response.set("status", reply.map_or(0, HttpReply::status))?;
    response.set("headers", headers)?;
    response.set("body", reply.map_or_else(String::new, |reply| String::from_utf8_lossy(&reply.body).into_owned()))?;
    response.set("error", error)?;
    Ok(response)
}

/// The state of an open socket outside the engine.
struct Link {
    id: OpId,
    session: Session,
    timers: RefCell<Vec<Timer>>,
    is_closed: Cell<bool>,
    /// True if the peer has ended it.
    has_ended: Cell<bool>,
}

#[derive(Clone, Copy)]
struct Timer {
    id: OpId,
    /// The id of its first timer, which names its function.
    name: OpId,
    due: Instant,
    /// Of an interval.
    period: Option<Nanos>,
}

/// When an interval that was due is due again: whole periods after the first time, however late a call was, as Go's
/// tickers. Those that are over by now are left out.
fn due_again(due: Instant, period: Nanos, now: Instant) -> Instant {
    let periods = now.since(due).0 / period.0.max(1) + 1;
    due.after(Nanos(periods.saturating_mul(period.0)))
}

impl Link {
    fn new(id: OpId, session: Session) -> Link {
        Link { id, session, timers: RefCell::default(), is_closed: Cell::default(), has_ended: Cell::default() }
    }

    fn send(&self, events: &EventLoop<K6>, command: SocketCommand) {
        events.send(Op::SocketSend(self.id, command));
    }

    /// Cancels its timers, and the socket if it is still open.
    fn finish(&self, events: &EventLoop<K6>) {
        self.timers.take().into_iter().for_each(|timer| events.cancel(timer.id));
        match self.has_ended.get() {
            true => events.finish(self.id),
            false => events.cancel(self.id),
        }
        self.session.end(events.now());
    }
}

/// Calls the script's function, then its listeners for each event, until the socket is closed.
fn attend<'js>(ctx: &Ctx<'js>, events: &EventLoop<K6>, link: &Rc<Link>, function: Function<'js>) -> Result<()> {
    let (listeners, timed) = (Listeners::new(ctx)?, Object::new(ctx.clone())?);
    let socket = Socket { listeners, timed, link: Rc::clone(link) };
    function.call::<_, Value<'_>>((Class::instance(ctx.clone(), socket.clone())?,))?;
    socket.listeners.call("open", ())?;
    while !link.is_closed.get() {
        let timers: Vec<OpId> = link.timers.borrow().iter().map(|timer| timer.id).collect();
        match events.next(ctx, &[&[link.id], &timers[..]].concat())? {
            (id, plimsoll_javascript::Wakeup::Timer) => socket.due(events, id)?,
            (_, plimsoll_javascript::Wakeup::Operation(Event::Socket(event))) => socket.take(ctx, *event)?,
            _ => {}
        }
    }
    Ok(())
}

/// The socket object of scripts.
#[derive(Clone, Trace, JsLifetime)]
#[rquickjs::class]
struct Socket<'js> {
    listeners: Listeners<'js>,
    /// The functions of timers, by the name of the timer.
    timed: Object<'js>,
    #[qjs(skip_trace)]
    link: Rc<Link>,
}

#[rquickjs::methods(rename_all = "camelCase")]
impl<'js> Socket<'js> {
    fn on(&self, event: String, listener: Value<'js>) -> Result<()> {
        match listener.into_function() {
            Some(listener) => self.listeners.add(&event, listener),
            None => Ok(()),
        }
    }

    fn send(&self, ctx: Ctx<'js>, message: Coerced<String>) -> Result<()> {
        self.send_message(&ctx, SocketCommand::Text(message.0))
    }

    fn send_binary(&self, ctx: Ctx<'js>, message: Opt<Value<'js>>) -> Result<()> {
        let Some(message) = message.0 else {
            return Err(thrown(&ctx, "missing argument, expected ArrayBuffer"));
        };
        let Some(bytes) = binary(&message)? else { return Err(wrong(&ctx, "ArrayBuffer as argument", &message)) };
        self.send_message(&ctx, SocketCommand::Binary(bytes))
    }

    fn ping(&self, ctx: Ctx<'js>) -> Result<()> {
        if self.link.is_closed.get() {
            return self.fail(&ctx, "websocket: close sent");
        }
        let events = EventLoop::<K6>::of(&ctx)?;
        let payload = self.link.session.ping(events.now());
        self.link.send(&events, SocketCommand::Ping(payload));
        Ok(())
    }

    fn set_timeout(&self, ctx: Ctx<'js>, function: Function<'js>, milliseconds: Coerced<f64>) -> Result<()> {
        self.start_timer(&ctx, function, milliseconds.0, false)
    }

    fn set_interval(&self, ctx: Ctx<'js>, function: Function<'js>, milliseconds: Coerced<f64>) -> Result<()> {
        self.start_timer(&ctx, function, milliseconds.0, true)
    }

    fn close(&self, ctx: Ctx<'js>, code: Opt<Coerced<i32>>) -> Result<()> {
        let code = code.0.map_or(GOING_AWAY, |code| u16::try_from(code.0).unwrap_or(GOING_AWAY));
        if !self.link.is_closed.get() {
            let events = EventLoop::<K6>::of(&ctx)?;
            self.link.send(&events, SocketCommand::Close { code, reason: String::new() });
        }
        self.closed(code)
    }
}

impl<'js> Socket<'js> {
    /// Calls the listeners of an error: as in k6, with an object whose `error()` returns the text.
    fn fail(&self, ctx: &Ctx<'js>, message: &str) -> Result<()> {
        let error = Exception::from_message(ctx.clone(), message)?.into_object();
        let text = message.to_owned();
        error.native("error", move || text.clone())?;
        self.listeners.call("error", (error,))
    }

    fn send_message(&self, ctx: &Ctx<'js>, message: SocketCommand) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        if self.link.is_closed.get() {
            self.fail(ctx, "websocket: close sent")?;
        } else {
            self.link.send(&events, message);
        }
        self.link.session.add(events.now(), &[(builtin::WS_MSGS_SENT, 1.0)]);
        Ok(())
    }

    /// Notes that the socket is closed, from either side. Only the first time counts.
    fn closed(&self, code: u16) -> Result<()> {
        if self.link.is_closed.replace(true) { Ok(()) } else { self.listeners.call("close", (code,)) }
    }

    fn start_timer(&self, ctx: &Ctx<'js>, function: Function<'js>, milliseconds: f64, again: bool) -> Result<()> {
        if milliseconds.is_nan() || milliseconds <= 0.0 {
            let call = if again { "setInterval" } else { "setTimeout" };
            let what = format!("{call} requires a >0 timeout parameter, received {milliseconds:.2}");
            return Err(thrown(ctx, what));
        }
        let events = EventLoop::<K6>::of(ctx)?;
        let span = Nanos((milliseconds * 1e6) as u64);
        let due = events.now().after(span);
        let id = events.start_timer(due);
        self.timed.set(id.to_string(), function)?;
        self.link.timers.borrow_mut().push(Timer { id, name: id, due, period: again.then_some(span) });
        Ok(())
    }

    fn due(&self, events: &EventLoop<K6>, id: OpId) -> Result<()> {
        events.finish(id);
        let place = self.link.timers.borrow().iter().position(|timer| timer.id == id);
        let Some(timer) = place.map(|place| self.link.timers.borrow_mut().swap_remove(place)) else { return Ok(()) };
        let name = timer.name.to_string();
        let function: Function<'js> = self.timed.get(&*name)?;
        match timer.period {
            None => self.timed.remove(&*name)?,
            Some(period) => {
                let due = due_again(timer.due, period, events.now());
                let id = events.start_timer(due);
                self.link.timers.borrow_mut().push(Timer { id, due, ..timer });
            }
        }
        function.call::<_, Value<'_>>(()).map(drop)
    }

    fn take(&self, ctx: &Ctx<'js>, event: SocketEvent) -> Result<()> {
        let received = || -> Result<()> {
            let now = EventLoop::<K6>::of(ctx)?.now();
            self.link.session.add(now, &[(builtin::WS_MSGS_RECEIVED, 1.0)]);
            Ok(())
        };
        match event {
            SocketEvent::Text(message) => {
                received()?;
                self.listeners.call("message", (message,))
            }
            SocketEvent::Binary(message) => {
                received()?;
                self.listeners.call("binaryMessage", (buffer(ctx, message)?,))
            }
            SocketEvent::Ping => self.listeners.call("ping", ()),
            SocketEvent::Pong { payload, at } => {
                self.link.session.pong(&payload, at);
                self.listeners.call("pong", ())
            }
            SocketEvent::Closed(closed) => self.take_closed(ctx, &closed),
            SocketEvent::Opened(_) | SocketEvent::Refused(_) => Ok(()),
        }
    }

    fn take_closed(&self, ctx: &Ctx<'js>, closed: &SocketClosed) -> Result<()> {
        self.link.has_ended.set(true);
        if let Some(fault) = fault_of(closed) {
            self.fail(ctx, &fault)?;
        }
        self.closed(closed.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_keeps_its_beat_and_leaves_out_what_is_over() {
        for (due, now, again) in [(1000, 1000, 2000), (1000, 1400, 2000), (1000, 2000, 3000), (1000, 4700, 5000)] {
            assert_eq!(due_again(Instant(due), Nanos(1000), Instant(now)), Instant(again), "{due}, {now}");
        }
        assert_eq!(due_again(Instant(5), Nanos(0), Instant(9)), Instant(5), "at once");
        assert_eq!(due_again(Instant(5), Nanos(u64::MAX), Instant(9)), Instant(i64::MAX), "never");
    }
}
