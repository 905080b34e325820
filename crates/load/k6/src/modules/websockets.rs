//! The module `k6/websockets`: sockets with the API of browsers. Their events come when nothing else of the user runs.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]
#![expect(elided_lifetimes_in_paths, reason = "what the bindings derive names types without their lifetimes")]

mod blob;

use crate::modules::listeners::Listeners;
use crate::modules::socket_session::{LONGEST_OPENING, NORMAL, Parameters, Session, fault_of, url_of};
use crate::operations::{Event, K6, Op, SocketClosed, SocketCommand, SocketEvent, SocketOpened, SocketRefused};
use crate::user::User;
use crate::value::{binary, buffer, non_null, text, thrown};
use blob::Blob;
use plimsoll_javascript::{EventLoop, HeldMemory, NativeModule, OpId, Then};
use plimsoll_k6_run::metrics::{MetricId, builtin};
use plimsoll_web::Url;
use rquickjs::class::{Class, JsClass, Trace};
use rquickjs::function::{Opt, This};
use rquickjs::object::{Accessor, Property};
use rquickjs::{Coerced, Ctx, Function, IntoJs, JsLifetime, Object, Persistent, Result, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// See the module.
pub(crate) struct WebSockets;

/// The states of a socket, as scripts name them.
const STATES: [(&str, ReadyState); 4] = [
    ("CONNECTING", ReadyState::Connecting),
    ("OPEN", ReadyState::Open),
    ("CLOSING", ReadyState::Closing),
    ("CLOSED", ReadyState::Closed),
];

/// The events of a socket.
const EVENTS: [&str; 6] = ["open", "message", "close", "error", "ping", "pong"];

impl NativeModule for WebSockets {
    const NAME: &'static str = "k6/websockets";
    const EXPORTS: &'static [&'static str] = &["default", "Blob", "WebSocket"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.set(Blob::NAME, Class::<Blob>::create_constructor(ctx)?)?;
        module.set(WebSocket::NAME, constructor(ctx)?)?;
        Ok(module)
    }
}

/// The constructor `WebSocket`, with its constants and event properties.
fn constructor<'js>(ctx: &Ctx<'js>) -> Result<Value<'js>> {
    let constructor = Class::<WebSocket<'js>>::create_constructor(ctx)?.into_js(ctx)?;
    let prototype = Class::<WebSocket<'js>>::prototype(ctx)?.into_js(ctx)?;
    for object in [&constructor, &prototype].into_iter().filter_map(Value::as_object) {
        for (name, state) in STATES {
            object.prop(name, Property::from(state as u8).enumerable())?;
        }
    }
    if let Some(prototype) = prototype.as_object() {
        for event in EVENTS {
            let get = move |this: This<Class<'js, WebSocket<'js>>>| this.0.borrow().handler(event);
            let set = move |ctx: Ctx<'js>, this: This<Class<'js, WebSocket<'js>>>, value: Value<'js>| {
                this.0.borrow().set_handler(&ctx, event, value)
            };
            prototype.prop(format!("on{event}"), Accessor::new(get, set).enumerable())?;
        }
    }
    Ok(constructor)
}

/// The state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadyState {
    Connecting,
    Open,
    Closing,
    Closed,
}

/// The type of binary messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BinaryType {
    Blob,
    ArrayBuffer,
}

/// The socket object of scripts.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
struct WebSocket<'js> {
    listeners: Listeners<'js>,
    /// The functions of `onopen` and other event properties.
    handlers: Object<'js>,
    #[qjs(skip_trace)]
    link: Rc<Link>,
}

/// The state of a socket outside the engine.
struct Link {
    id: Cell<OpId>,
    url: Url,
    params: Parameters,
    session: Session,
    state: Cell<ReadyState>,
    binary_type: Cell<BinaryType>,
    protocol: RefCell<String>,
    extensions: RefCell<Vec<String>>,
    /// The close, from either side.
    close: RefCell<Option<(u16, String)>>,
    /// The timer that cancels a socket which does not open.
    timer: Cell<Option<OpId>>,
}

#[rquickjs::methods(rename_all = "camelCase")]
impl<'js> WebSocket<'js> {
    #[qjs(constructor)]
    fn new(
        ctx: Ctx<'js>,
        url: Opt<Value<'js>>,
        protocols: Opt<Value<'js>>,
        params: Opt<Value<'js>>,
    ) -> Result<Class<'js, Self>> {
        let user = User::running(&ctx, "WebSocket")?;
        let Some(url) = non_null(url.0) else { return Err(thrown(&ctx, "WebSocket requires a url")) };
        let written = text(&ctx, url)?;
        let url = url_of(&ctx, &written)?;
        if let Some(fragment) = url.fragment() {
            return Err(thrown(&ctx, format!("WebSocket requires no url fragment, but got \"{fragment}\"")));
        }
        let params = Parameters::read(&ctx, &user, params.0)?;
        params.refuse_unknown(&ctx)?;
        let request = params.request(&ctx, &url, subprotocols(&ctx, protocols.0)?)?;
        let now = EventLoop::<K6>::of(&ctx)?.now();
        let link = Rc::new(Link::new(url, Session::new(&user, now, &written, &params), params));
        let socket =
            WebSocket { listeners: Listeners::new(&ctx)?, handlers: Object::new(ctx.clone())?, link: Rc::clone(&link) };
        let socket = Class::instance(ctx.clone(), socket)?;
        link.open(&ctx, &socket, Op::Socket(Box::new(request), HeldMemory::of(&ctx)?))?;
        Ok(socket)
    }

    #[qjs(get)]
    fn url(&self) -> String {
        self.link.url.to_string()
    }

    #[qjs(get)]
    fn ready_state(&self) -> u8 {
        self.link.state.get() as u8
    }

    /// Always 0: messages are sent at once.
    #[qjs(get)]
    fn buffered_amount(&self) -> u32 {
        0
    }

    #[qjs(get)]
    fn protocol(&self) -> String {
        self.link.protocol.borrow().clone()
    }

    #[qjs(get)]
    fn extensions(&self) -> Vec<String> {
        self.link.extensions.borrow().clone()
    }

    #[qjs(get, rename = "binaryType")]
    fn binary_type(&self) -> &'static str {
        match self.link.binary_type.get() {
            BinaryType::Blob => "blob",
            BinaryType::ArrayBuffer => "arraybuffer",
        }
    }

    #[qjs(set, rename = "binaryType")]
    fn set_binary_type(&self, ctx: Ctx<'js>, name: Coerced<String>) -> Result<()> {
        self.link.binary_type.set(match name.0.as_str() {
            "blob" => BinaryType::Blob,
            "arraybuffer" => BinaryType::ArrayBuffer,
            other => {
                let what = format!("unknown binaryType {other}, the supported ones are \"blob\" and \"arraybuffer\"");
                return Err(thrown(&ctx, what));
            }
        });
        Ok(())
    }

    fn add_event_listener(&self, event: String, listener: Opt<Value<'js>>) -> Result<()> {
        self.listeners.register(&EVENTS, &event, listener.0)
    }

    fn send(&self, ctx: Ctx<'js>, message: Value<'js>) -> Result<()> {
        self.must_be_open(&ctx)?;
        let message = if let Some(string) = message.as_string() {
            SocketCommand::Text(string.to_string()?)
        } else if let Some(bytes) = bytes_of(&message)? {
            SocketCommand::Binary(bytes)
        } else {
            return Err(thrown(&ctx, format!("unsupported send type {}", message.type_name())));
        };
        self.link.send(&ctx, message)?;
        self.link.add(&ctx, builtin::WS_MSGS_SENT)
    }

    fn ping(&self, ctx: Ctx<'js>) -> Result<()> {
        self.must_be_open(&ctx)?;
        let payload = self.link.session.ping(EventLoop::<K6>::of(&ctx)?.now());
        self.link.send(&ctx, SocketCommand::Ping(payload))?;
        self.link.add(&ctx, builtin::WS_MSGS_SENT)
    }

    fn close(&self, ctx: Ctx<'js>, code: Opt<Value<'js>>, reason: Opt<Value<'js>>) -> Result<()> {
        let was = self.link.state.get();
        if matches!(was, ReadyState::Closing | ReadyState::Closed) {
            return Ok(());
        }
        let code = non_null(code.0).and_then(|code| code.as_number()).filter(|code| *code != 0.0);
        if let Some(code) = code.filter(|code| *code != 1000.0 && !(3000.0..5000.0).contains(code)) {
            let what = format!(
                "InvalidAccessError: Failed to execute 'close' on 'WebSocket': \
                 The close code must be either 1000, or between 3000 and 4999. {code} is neither"
            );
            return Err(thrown(&ctx, what));
        }
        let reason = non_null(reason.0).map(|reason| text(&ctx, reason)).transpose()?.unwrap_or_default();
        if reason.len() > 123 {
            let what = "SyntaxError: Failed to execute 'close' on 'WebSocket': \
                        The message must not be greater than 123 bytes";
            return Err(thrown(&ctx, what));
        }
        let code = code.map_or(NORMAL, |code| code as u16);
        self.link.state.set(ReadyState::Closing);
        self.link.close.replace(Some((code, String::new())));
        self.link.send(&ctx, SocketCommand::Close { code, reason })?;
        // k6 counts it as a message.
        self.link.add(&ctx, builtin::WS_MSGS_SENT)
    }
}

/// `"one"` or `["one", "two"]`.
fn subprotocols<'js>(ctx: &Ctx<'js>, value: Option<Value<'js>>) -> Result<Vec<String>> {
    let Some(value) = non_null(value) else { return Ok(Vec::new()) };
    match value.as_array() {
        Some(names) => names.iter::<Value<'js>>().map(|name| text(ctx, name?)).collect(),
        None if value.is_string() => Ok(vec![text(ctx, value)?]),
        None => Ok(Vec::new()),
    }
}

/// The bytes of a buffer, a view or a blob.
fn bytes_of(value: &Value<'_>) -> Result<Option<Vec<u8>>> {
    if let Some(blob) = value.as_object().and_then(Class::<Blob>::from_object) {
        return Ok(Some(blob.borrow().bytes().to_vec()));
    }
    // For other values the engine sets an exception, which is cleared.
    value.ctx().catch();
    binary(value)
}

impl<'js> WebSocket<'js> {
    fn must_be_open(&self, ctx: &Ctx<'js>) -> Result<()> {
        if self.link.state.get() == ReadyState::Open { Ok(()) } else { Err(thrown(ctx, "InvalidStateError")) }
    }

    fn handler(&self, event: &str) -> Result<Value<'js>> {
        self.handlers.get(event)
    }

    fn set_handler(&self, ctx: &Ctx<'js>, event: &str, value: Value<'js>) -> Result<()> {
        if non_null(Some(value.clone())).is_none() {
            return self.handlers.remove(event);
        }
        if !value.is_function() {
            return Err(thrown(ctx, format!("a value for 'on{event}' should be callable")));
        }
        self.handlers.set(event, value)
    }

    /// The functions that an event calls: the event property first, then the listeners.
    fn listeners(&self, event: &str) -> Result<Vec<Function<'js>>> {
        let handler = self.handlers.get::<_, Option<Function<'js>>>(event)?;
        Ok(handler.into_iter().chain(self.listeners.of(event)?).collect())
    }
}

impl Link {
    fn new(url: Url, session: Session, params: Parameters) -> Link {
        Link {
            id: Cell::default(),
            url,
            params,
            session,
            state: Cell::new(ReadyState::Connecting),
            binary_type: Cell::new(BinaryType::Blob),
            protocol: RefCell::default(),
            extensions: RefCell::default(),
            close: RefCell::default(),
            timer: Cell::default(),
        }
    }

    /// Opens the socket. Its events go to `socket`.
    fn open<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, socket: &Class<'js, WebSocket<'js>>, op: Op) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        let target = Persistent::save(ctx, socket.clone().into_inner());
        let (link, late) = (Rc::clone(self), target.clone());
        let handler = move |ctx: &Ctx<'_>, event: plimsoll_javascript::Wakeup<Event>| match event {
            plimsoll_javascript::Wakeup::Operation(Event::Socket(event)) => {
                link.take(ctx, target.clone().restore(ctx)?, *event)
            }
            _ => Ok(Then::Open),
        };
        self.id.set(events.subscribe(op, Box::new(handler)));
        let link = Rc::clone(self);
        let give_up = move |ctx: &Ctx<'_>, _: plimsoll_javascript::Wakeup<Event>| {
            EventLoop::<K6>::of(ctx)?.cancel(link.id.get());
            let refused = SocketEvent::Refused(SocketRefused::late(LONGEST_OPENING));
            link.take(ctx, late.clone().restore(ctx)?, refused)
        };
        self.timer.set(Some(events.at(events.now().after(LONGEST_OPENING), Box::new(give_up))));
        Ok(())
    }

    fn send(&self, ctx: &Ctx<'_>, command: SocketCommand) -> Result<()> {
        EventLoop::<K6>::of(ctx)?.send(Op::SocketSend(self.id.get(), command));
        Ok(())
    }

    fn add(&self, ctx: &Ctx<'_>, metric: MetricId) -> Result<()> {
        self.session.add(EventLoop::<K6>::of(ctx)?.now(), &[(metric, 1.0)]);
        Ok(())
    }

    fn take<'js>(&self, ctx: &Ctx<'js>, socket: Object<'js>, event: SocketEvent) -> Result<Then> {
        match event {
            SocketEvent::Opened(opened) => self.take_opened(ctx, &socket, &opened)?,
            SocketEvent::Refused(refused) => {
                self.take_refused(ctx, &socket, &refused)?;
                return Ok(Then::Done);
            }
            SocketEvent::Closed(closed) => {
                self.take_closed(ctx, &socket, &closed)?;
                return Ok(Then::Done);
            }
            SocketEvent::Text(message) => {
                let data = message.into_js(ctx)?;
                self.take_message(ctx, &socket, data)?;
            }
            SocketEvent::Binary(message) => {
                let data = match self.binary_type.get() {
                    BinaryType::Blob => Class::instance(ctx.clone(), Blob::of(ctx, message)?)?.into_js(ctx)?,
                    BinaryType::ArrayBuffer => buffer(ctx, message)?,
                };
                self.take_message(ctx, &socket, data)?;
            }
            SocketEvent::Ping => emit(ctx, &socket, "ping", &[])?,
            SocketEvent::Pong { payload, at } => {
                self.session.pong(&payload, at);
                emit(ctx, &socket, "pong", &[])?;
            }
        }
        Ok(Then::Open)
    }

    fn take_opened<'js>(&self, ctx: &Ctx<'js>, socket: &Object<'js>, opened: &SocketOpened) -> Result<()> {
        self.settle(ctx)?;
        self.session.connected(opened.took, Some(&opened.reply), Some(opened.remote));
        self.params.take_cookies(&self.url, &opened.reply);
        self.protocol.replace(opened.reply.header("sec-websocket-protocol").unwrap_or_default().to_owned());
        let extensions = opened.reply.header("sec-websocket-extensions").map(str::to_owned);
        self.extensions.replace(extensions.into_iter().collect());
        // The borrow ends before a listener runs: one may close the socket.
        let close = self.close.borrow().clone();
        match close {
            // It was closed before it was open.
            Some((code, reason)) => self.send(ctx, SocketCommand::Close { code, reason }),
            None => {
                self.state.set(ReadyState::Open);
                emit(ctx, socket, "open", &[])
            }
        }
    }

    fn take_refused<'js>(&self, ctx: &Ctx<'js>, socket: &Object<'js>, refused: &SocketRefused) -> Result<()> {
        self.settle(ctx)?;
        self.session.connected(refused.took, refused.reply.as_ref(), refused.remote);
        self.closed(ctx, socket, Some(&refused.fault.detail))
    }

    fn take_message<'js>(&self, ctx: &Ctx<'js>, socket: &Object<'js>, data: Value<'js>) -> Result<()> {
        if self.state.get() != ReadyState::Open {
            return Ok(());
        }
        self.add(ctx, builtin::WS_MSGS_RECEIVED)?;
        let origin = self.url.to_string().into_js(ctx)?;
        emit(ctx, socket, "message", &[("data", data), ("origin", origin)])
    }

    fn take_closed<'js>(&self, ctx: &Ctx<'js>, socket: &Object<'js>, closed: &SocketClosed) -> Result<()> {
        self.session.end(EventLoop::<K6>::of(ctx)?.now());
        self.close.replace(Some((closed.code, closed.reason.clone())));
        self.closed(ctx, socket, fault_of(closed).as_deref())
    }

    fn closed<'js>(&self, ctx: &Ctx<'js>, socket: &Object<'js>, fault: Option<&str>) -> Result<()> {
        self.state.set(ReadyState::Closed);
        if let Some(fault) = fault {
            emit(ctx, socket, "error", &[("error", fault.into_js(ctx)?)])?;
        }
        let (code, reason) = self.close.borrow().clone().unzip();
        let mut properties = vec![("reason", reason.unwrap_or_default().into_js(ctx)?)];
        properties.extend(code.map(|code| code.into_js(ctx)).transpose()?.map(|code| ("code", code)));
        emit(ctx, socket, "close", &properties)
    }

    /// The socket is open or refused.
    fn settle(&self, ctx: &Ctx<'_>) -> Result<()> {
        if let Some(timer) = self.timer.take() {
            EventLoop::<K6>::of(ctx)?.cancel(timer);
        }
        Ok(())
    }
}

/// Calls the listeners of a socket with an event that has these additional properties.
fn emit<'js>(ctx: &Ctx<'js>, socket: &Object<'js>, name: &str, properties: &[(&str, Value<'js>)]) -> Result<()> {
    let Some(class) = Class::<WebSocket<'js>>::from_object(socket) else { return Ok(()) };
    let listeners = class.borrow().listeners(name)?;
    if listeners.is_empty() {
        return Ok(());
    }
    let event = Object::new(ctx.clone())?;
    event.set("type", name)?;
    event.set("target", socket.clone())?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    event.set("timestamp", since_1970.as_secs_f64() * 1e3)?;
    properties.iter().try_for_each(|(name, value)| event.set(*name, value.clone()))?;
    listeners.into_iter().try_for_each(|listener| listener.call::<_, Value<'_>>((event.clone(),)).map(drop))
}
