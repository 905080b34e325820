//! `Stream`: a call with any number of messages in both directions.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use super::calls::{error, fields, late, message_of};
use super::client::{Client, PreparedCall};
use crate::modules::listeners::Listeners;
use crate::operations::{Event, GrpcCall, GrpcEnd, GrpcEvent, K6, Op};
use crate::user::User;
use crate::user::warn;
use crate::value::{is_nothing, non_null, text, thrown};
use plimsoll_grpc::status;
use plimsoll_javascript::{EventLoop, OpId, Then, Wakeup};
use plimsoll_k6_run::metrics::{MetricId, builtin};
use rquickjs::class::{Class, Trace};
use rquickjs::function::Opt;
use rquickjs::{Ctx, JsLifetime, Object, Persistent, Result, Value};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The events of a stream.
const EVENTS: [&str; 4] = ["data", "error", "end", "metadata"];

/// See the module.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct Stream<'js> {
    listeners: Listeners<'js>,
    #[qjs(skip_trace)]
    call: Rc<Call>,
}

/// The state of a stream outside the engine.
struct Call {
    prepared: PreparedCall,
    id: Cell<OpId>,
    /// The timer that cancels it.
    timer: Cell<Option<OpId>>,
    /// True if the script sends no more messages.
    is_finished: Cell<bool>,
    is_over: Cell<bool>,
}

#[rquickjs::methods]
impl<'js> Stream<'js> {
    #[qjs(constructor)]
    fn new(
        ctx: Ctx<'js>,
        client: Opt<Value<'js>>,
        method: Opt<Value<'js>>,
        params: Opt<Value<'js>>,
    ) -> Result<Class<'js, Self>> {
        let user = User::running(&ctx, "a gRPC stream")?;
        let client = non_null(client.0).and_then(Value::into_object).as_ref().and_then(Class::<Client>::from_object);
        let Some(client) = client else { return Err(thrown(&ctx, "invalid GRPC Stream's client: not a gRPC client")) };
        let connection = client.borrow().connected(&ctx)?;
        let name = non_null(method.0).map(|name| text(&ctx, name)).transpose()?.unwrap_or_default();
        let method = client.borrow().method(&ctx, &name)?;
        let prepared = PreparedCall::new(&ctx, &user, connection, method, params.0)?;
        let (id, timer) = (Cell::default(), Cell::default());
        let (is_finished, is_over) = (Cell::new(false), Cell::new(false));
        let call = Rc::new(Call { prepared, id, timer, is_finished, is_over });
        let stream = Stream { listeners: Listeners::new(&ctx)?, call: Rc::clone(&call) };
        let stream = Class::instance(ctx.clone(), stream)?;
        call.begin(&ctx, &stream)?;
        Ok(stream)
    }

    fn on(&self, event: String, listener: Opt<Value<'js>>) -> Result<()> {
        self.listeners.register(&EVENTS, &event, listener.0)
    }

    fn write(&self, ctx: Ctx<'js>, message: Value<'js>) -> Result<()> {
        if self.call.is_finished.get() || self.call.is_over.get() {
            return Ok(());
        }
        if is_nothing(&message) {
            return warn(&ctx, "can't send empty message");
        }
        let message = self.call.prepared.encode(&ctx, message)?;
        let events = EventLoop::<K6>::of(&ctx)?;
        events.send(Op::GrpcSend(self.call.id.get(), message));
        self.call.add(&events, builtin::GRPC_STREAMS_MSGS_SENT);
        // A method that takes one message gets its end with it: servers may wait for that.
        if self.call.prepared.method.is_client_streaming() { Ok(()) } else { self.end(ctx) }
    }

    fn end(&self, ctx: Ctx<'js>) -> Result<()> {
        if !self.call.is_finished.replace(true) && !self.call.is_over.get() {
            EventLoop::<K6>::of(&ctx)?.send(Op::GrpcEnd(self.call.id.get()));
        }
        Ok(())
    }
}

impl Call {
    fn begin<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, stream: &Class<'js, Stream<'js>>) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        let params = &self.prepared.params;
        let call = GrpcCall {
            connection: self.prepared.connection.id(),
            path: self.prepared.path.clone(),
            metadata: params.metadata.clone(),
            timeout: params.timeout,
            message: None,
            name: self.prepared.samples.name(&self.prepared.path),
        };
        let target = Persistent::save(ctx, stream.clone().into_inner());
        let (call_of, target_of) = (Rc::clone(self), target.clone());
        let handler = move |ctx: &Ctx<'_>, event: Wakeup<Event>| match event {
            Wakeup::Operation(Event::Grpc(event)) => call_of.take(ctx, &target_of.clone().restore(ctx)?, *event),
            _ => Ok(Then::Open),
        };
        self.id.set(events.subscribe(Op::GrpcCall(Box::new(call)), Box::new(handler)));
        if let Some(timeout) = params.timeout {
            let call = Rc::clone(self);
            let give_up = move |ctx: &Ctx<'_>, _: Wakeup<Event>| {
                EventLoop::<K6>::of(ctx)?.cancel(call.id.get());
                call.over(ctx, &target.clone().restore(ctx)?, &late(timeout))?;
                Ok(Then::Done)
            };
            self.timer.set(Some(events.at(events.now().after(timeout), Box::new(give_up))));
        }
        self.add(&events, builtin::GRPC_STREAMS);
        Ok(())
    }

    fn add(&self, events: &EventLoop<K6>, metric: MetricId) {
        self.prepared.samples.add(events.now(), metric, 1.0, None);
    }

    fn take<'js>(&self, ctx: &Ctx<'js>, stream: &Object<'js>, event: GrpcEvent) -> Result<Then> {
        match event {
            GrpcEvent::Headers(headers) => emit(ctx, stream, "metadata", fields(ctx, &headers)?.into_value())?,
            GrpcEvent::Message(message) => {
                self.add(&*EventLoop::<K6>::of(ctx)?, builtin::GRPC_STREAMS_MSGS_RECEIVED);
                if !self.prepared.params.discard {
                    emit(ctx, stream, "data", message_of(ctx, &self.prepared.method, &message)?)?;
                }
            }
            GrpcEvent::Ended(end) => {
                self.over(ctx, stream, &end)?;
                return Ok(Then::Done);
            }
            GrpcEvent::Connected(_) | GrpcEvent::NotConnected(_) => {}
        }
        Ok(Then::Open)
    }

    /// Ends the stream. An error comes before the end.
    fn over<'js>(&self, ctx: &Ctx<'js>, stream: &Object<'js>, end: &GrpcEnd) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        self.is_over.set(true);
        self.timer.take().into_iter().for_each(|timer| events.cancel(timer));
        self.prepared.ended(events.now(), end);
        if end.status != status::OK {
            emit(ctx, stream, "error", error(ctx, end.status, &end.message)?.into_value())?;
        }
        emit(ctx, stream, "end", Object::new(ctx.clone())?.into_value())
    }
}

/// Calls the listeners of an event, with its value and time.
fn emit<'js>(ctx: &Ctx<'js>, stream: &Object<'js>, event: &str, value: Value<'js>) -> Result<()> {
    let Some(class) = Class::<Stream<'js>>::from_object(stream) else { return Ok(()) };
    let listeners = class.borrow().listeners.clone();
    let when = Object::new(ctx.clone())?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    when.set("ts", since_1970.as_secs() as f64)?;
    listeners.call(event, (value, when))
}
