//! `Client`: a connection to a server, and calls with one reply.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use super::calls::{CallSamples, LONGEST_CALL, Reply, unary};
use super::params::{CallParams, ConnectParams};
use super::reflection;
use crate::operations::{Event, GrpcEnd, GrpcEvent, K6, Op};
use crate::schema::{Methods, Sources, encode, path_of, script_folder};
use crate::user::User;
use crate::value::{non_null, settle, text, thrown};
use plimsoll_grpc::status;
use plimsoll_javascript::{EventLoop, HeldMemory, OpId, Program, Then, Wakeup};
use plimsoll_model::units::Instant;
use prost::Message;
use prost_reflect::MethodDescriptor;
use rquickjs::class::Trace;
use rquickjs::function::{Opt, Rest};
use rquickjs::{Coerced, Ctx, Function, JsLifetime, Object, Persistent, Promise, Result, Value};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct Client {
    #[qjs(skip_trace)]
    methods_loaded: RefCell<Vec<Arc<Methods>>>,
    #[qjs(skip_trace)]
    connection: RefCell<Option<Rc<Connection>>>,
}

/// An open connection.
pub(super) struct Connection {
    pub(super) address: String,
    params: ConnectParams,
    /// The operation that opened it, and the server's address. Both change if it is opened again.
    made: Cell<(OpId, SocketAddr)>,
    /// True if a call has found it closed.
    has_ended: Cell<bool>,
}

/// A call, ready to be made.
pub(super) struct PreparedCall {
    pub(super) connection: Rc<Connection>,
    pub(super) method: MethodDescriptor,
    pub(super) path: String,
    pub(super) params: CallParams,
    pub(super) samples: CallSamples,
}

#[rquickjs::methods(rename_all = "camelCase")]
impl Client {
    #[qjs(constructor)]
    fn new() -> Self {
        Client { methods_loaded: RefCell::default(), connection: RefCell::default() }
    }

    /// `load(folders, …files)`: the methods that they define.
    fn load<'js>(
        &self,
        ctx: Ctx<'js>,
        folders: Opt<Value<'js>>,
        files: Rest<Coerced<String>>,
    ) -> Result<Vec<Object<'js>>> {
        let program = loading(&ctx, "load")?;
        let folder_of_script = script_folder(&program);
        let mut named: Vec<PathBuf> = Vec::new();
        if let Some(list) = non_null(folders.0).and_then(Value::into_array) {
            for folder in list.iter::<Value<'js>>() {
                let folder = text(&ctx, folder?)?;
                named.push(folder_of_script.join(folder.strip_prefix("file://").unwrap_or(&folder)));
            }
        }
        let folders = if named.is_empty() { vec![folder_of_script] } else { named };
        let files = files.0.into_iter().map(|file| file.0).collect();
        self.add(&ctx, &program, Sources::Files { folders, files })
    }

    /// `loadProtoset(file)`: the methods that it defines.
    fn load_protoset<'js>(&self, ctx: Ctx<'js>, file: Coerced<String>) -> Result<Vec<Object<'js>>> {
        let program = loading(&ctx, "loadProtoset")?;
        let path = script_folder(&program).join(file.0);
        self.add(&ctx, &program, Sources::Set(path))
    }

    /// `connect(address, params)`: true, or an exception.
    fn connect<'js>(&self, ctx: Ctx<'js>, address: Coerced<String>, params: Opt<Value<'js>>) -> Result<bool> {
        let user = User::running(&ctx, "connecting to a gRPC server")?;
        let params = ConnectParams::read(&ctx, &user, &address.0, params.0)?;
        self.close(ctx.clone())?;
        let made = make(&ctx, &params)?.map_err(|why| thrown(&ctx, why))?;
        let (made_by, has_ended) = (made.0, Cell::new(false));
        let connection = Rc::new(Connection { address: address.0, params, made: Cell::new(made), has_ended });
        self.connection.replace(Some(Rc::clone(&connection)));
        if connection.params.reflect {
            let (metadata, timeout) = (&connection.params.reflect_metadata, connection.params.timeout);
            let methods = reflection::ask(&ctx, made_by, metadata, timeout)?.map_err(|why| thrown(&ctx, why))?;
            self.methods_loaded.borrow_mut().push(Arc::new(methods));
        }
        Ok(true)
    }

    /// `invoke(method, message, params)`: the answer.
    fn invoke<'js>(
        &self,
        ctx: Ctx<'js>,
        method: Opt<Value<'js>>,
        message: Opt<Value<'js>>,
        params: Opt<Value<'js>>,
    ) -> Result<Object<'js>> {
        let (prepared, message) = self.prepared(&ctx, method.0, message.0, params.0)?;
        let reply = prepared.make(&ctx, message)?;
        prepared.samples.ended(EventLoop::<K6>::of(&ctx)?.now(), &reply.end);
        reply.into_js(&ctx, &prepared.method, prepared.params.discard)
    }

    /// `asyncInvoke(method, message, params)`: a promise of the answer.
    fn async_invoke<'js>(
        &self,
        ctx: Ctx<'js>,
        method: Opt<Value<'js>>,
        message: Opt<Value<'js>>,
        params: Opt<Value<'js>>,
    ) -> Result<Promise<'js>> {
        let (promise, resolve, reject) = ctx.promise()?;
        match self.prepared(&ctx, method.0, message.0, params.0) {
            Ok((prepared, message)) => prepared.make_later(&ctx, message, resolve, reject)?,
            Err(error) => settle(&ctx, &resolve, &reject, Err(error))?,
        }
        Ok(promise)
    }

    /// `healthCheck(service)`: `{ status }`, or an exception.
    fn health_check<'js>(&self, ctx: Ctx<'js>, service: Opt<Coerced<String>>) -> Result<Object<'js>> {
        let user = User::running(&ctx, "a health check")?;
        let connection = self.connected(&ctx)?;
        let path = "/grpc.health.v1.Health/Check".to_owned();
        let samples = CallSamples::new(&user, &connection.address, connection.made.get().1, &path, Vec::new());
        let service = service.0.map(|service| service.0).unwrap_or_default();
        let params = CallParams::default();
        let reply = connection.call(&ctx, &path, &params, &samples, HealthRequest { service }.encode_to_vec())?;
        samples.ended(EventLoop::<K6>::of(&ctx)?.now(), &reply.end);
        if reply.end.status != status::OK {
            return Err(thrown(&ctx, format!("rpc error: code = {}, desc = {}", reply.end.status, reply.end.message)));
        }
        let answer = HealthAnswer::decode(reply.message.unwrap_or_default().as_slice());
        let answer = answer.map_err(|error| thrown(&ctx, format!("expected an answer to a health check: {error}")))?;
        let object = Object::new(ctx.clone())?;
        object.set("status", answer.status)?;
        Ok(object)
    }

    fn close(&self, ctx: Ctx<'_>) -> Result<()> {
        if let Some(connection) = self.connection.take() {
            EventLoop::<K6>::of(&ctx)?.send(Op::GrpcClose(connection.made.get().0));
        }
        Ok(())
    }
}

/// The messages of a health check; field numbers are the protocol's.
#[derive(Clone, PartialEq, Message)]
struct HealthRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthAnswer {
    #[prost(int32, tag = "1")]
    status: i32,
}

fn loading(ctx: &Ctx<'_>, call: &str) -> Result<Arc<Program>> {
    if !EventLoop::<K6>::of(ctx)?.is_loading() {
        return Err(thrown(ctx, format!("{call} must be called in the init context")));
    }
    Program::of(ctx)
}

impl Client {
    /// Loads definitions. Returns their methods.
    fn add<'js>(&self, ctx: &Ctx<'js>, program: &Arc<Program>, sources: Sources) -> Result<Vec<Object<'js>>> {
        let schemas = User::of(ctx)?.run().schemas.clone();
        let methods = schemas.load(program, sources).map_err(|why| thrown(ctx, why))?;
        let infos = methods.iter().map(|method| method_info(ctx, method)).collect();
        self.methods_loaded.borrow_mut().push(methods);
        infos
    }

    /// Its connection, opened again if it has ended.
    pub(super) fn connected(&self, ctx: &Ctx<'_>) -> Result<Rc<Connection>> {
        let connection = self.connection.borrow().clone();
        let connection = connection.ok_or_else(|| thrown(ctx, "no gRPC connection, you must call connect first"))?;
        connection.renew(ctx)?;
        Ok(connection)
    }

    /// The method of this name.
    pub(super) fn method(&self, ctx: &Ctx<'_>, name: &str) -> Result<MethodDescriptor> {
        if name.is_empty() {
            return Err(thrown(ctx, "method to invoke cannot be empty"));
        }
        let path = if name.starts_with('/') { name.to_owned() } else { format!("/{name}") };
        let methods_loaded = self.methods_loaded.borrow();
        // The definitions that were loaded last count.
        let found = methods_loaded.iter().rev().find_map(|methods| methods.get(&path).cloned());
        found.ok_or_else(|| thrown(ctx, format!("method \"{path}\" not found in file descriptors")))
    }

    fn prepared<'js>(
        &self,
        ctx: &Ctx<'js>,
        method: Option<Value<'js>>,
        message: Option<Value<'js>>,
        params: Option<Value<'js>>,
    ) -> Result<(PreparedCall, Vec<u8>)> {
        let user = User::running(ctx, "invoking RPC methods")?;
        let connection = self.connected(ctx)?;
        let name = non_null(method).map(|name| text(ctx, name)).transpose()?.unwrap_or_default();
        let method = self.method(ctx, &name)?;
        if method.is_client_streaming() || method.is_server_streaming() {
            return Err(thrown(
                ctx,
                format!("`{}` is a streaming call: make it with `new Stream(…)`", path_of(&method)),
            ));
        }
        let prepared = PreparedCall::new(ctx, &user, connection, method, params)?;
        let Some(message) = non_null(message) else { return Err(thrown(ctx, "request cannot be nil")) };
        let message = prepared.encode(ctx, message)?;
        Ok((prepared, message))
    }
}

/// A method as scripts see it.
fn method_info<'js>(ctx: &Ctx<'js>, method: &MethodDescriptor) -> Result<Object<'js>> {
    let info = Object::new(ctx.clone())?;
    info.set("package", method.parent_service().package_name())?;
    info.set("service", method.parent_service().name())?;
    info.set("full_method", path_of(method))?;
    info.set("name", method.name())?;
    info.set("is_client_stream", method.is_client_streaming())?;
    info.set("is_server_stream", method.is_server_streaming())?;
    Ok(info)
}

/// Opens a connection. Returns its operation and the server's address, or why it failed.
fn make(ctx: &Ctx<'_>, params: &ConnectParams) -> Result<std::result::Result<(OpId, SocketAddr), String>> {
    let events = EventLoop::<K6>::of(ctx)?;
    let id = events.start(Op::GrpcConnect(Box::new(params.connect.clone()), HeldMemory::of(ctx)?));
    let timer = events.start_timer(events.now().after(params.timeout));
    let made = match events.next(ctx, &[id, timer])? {
        (_, Wakeup::Operation(Event::Grpc(event))) => match *event {
            GrpcEvent::Connected(remote) => Ok((id, remote)),
            GrpcEvent::NotConnected(fault) => Err(fault.detail),
            _ => Err("a connection said something before it was made".to_owned()),
        },
        _ => Err(format!("context deadline exceeded: no connection within {} s", params.timeout.seconds())),
    };
    events.cancel(timer);
    match &made {
        // It lives on after this iteration.
        Ok(_) => events.finish(id),
        Err(_) => events.cancel(id),
    }
    Ok(made)
}

impl Connection {
    /// Makes a call, and parks until its end. Opens a connection again, once, if it had ended before.
    fn call(
        &self,
        ctx: &Ctx<'_>,
        path: &str,
        params: &CallParams,
        samples: &CallSamples,
        message: Vec<u8>,
    ) -> Result<Reply> {
        let begun = EventLoop::<K6>::of(ctx)?.now();
        let op = |id| unary(id, path.to_owned(), samples.name(path), params, message.clone());
        let timeout = params.timeout.unwrap_or(LONGEST_CALL);
        let reply = await_reply(ctx, op(self.id()), begun.after(timeout))?;
        self.note(&reply.end);
        match self.renew(ctx)? {
            true => await_reply(ctx, op(self.id()), begun.after(timeout)),
            false => Ok(reply),
        }
    }

    /// Notes the end of a call over it.
    fn note(&self, end: &GrpcEnd) {
        self.has_ended.set(self.has_ended.get() || end.unsent);
    }

    /// Opens it again if it has ended. True if it did so.
    fn renew(&self, ctx: &Ctx<'_>) -> Result<bool> {
        if !self.has_ended.get() {
            return Ok(false);
        }
        let made = make(ctx, &self.params)?;
        self.has_ended.set(made.is_err());
        Ok(made.map(|made| self.made.set(made)).is_ok())
    }

    /// The operation that opened it.
    pub(super) fn id(&self) -> OpId {
        self.made.get().0
    }
}

fn await_reply(ctx: &Ctx<'_>, op: Op, until: Instant) -> Result<Reply> {
    let events = EventLoop::<K6>::of(ctx)?;
    let begun = events.now();
    let (id, timer) = (events.start(op), events.start_timer(until));
    let mut reply = Reply::default();
    loop {
        match events.next(ctx, &[id, timer])? {
            (_, Wakeup::Operation(event)) => {
                if reply.take(event) {
                    events.finish(id);
                    break;
                }
            }
            (_, Wakeup::Timer) => {
                events.cancel(id);
                reply.is_late(events.now().since(begun));
                break;
            }
        }
    }
    events.cancel(timer);
    Ok(reply)
}

impl PreparedCall {
    pub(super) fn new<'js>(
        ctx: &Ctx<'js>,
        user: &Rc<User>,
        connection: Rc<Connection>,
        method: MethodDescriptor,
        params: Option<Value<'js>>,
    ) -> Result<PreparedCall> {
        let path = path_of(&method);
        let mut params = CallParams::read(ctx, params)?;
        let tags = std::mem::take(&mut params.tags);
        let samples = CallSamples::new(user, &connection.address, connection.made.get().1, &path, tags);
        Ok(PreparedCall { connection, method, path, params, samples })
    }

    /// Encodes a message of the script.
    pub(super) fn encode<'js>(&self, ctx: &Ctx<'js>, message: Value<'js>) -> Result<Vec<u8>> {
        let json = json_of(ctx, message)?;
        let bytes = encode(&self.method.input(), &json).map_err(|why| thrown(ctx, why))?;
        match self.connection.params.largest_sent {
            Some(most) if bytes.len() > most => {
                Err(thrown(ctx, format!("trying to send message larger than max ({} vs. {most})", bytes.len())))
            }
            _ => Ok(bytes),
        }
    }

    /// Records the end of the call.
    pub(super) fn ended(&self, at: Instant, end: &GrpcEnd) {
        self.samples.ended(at, end);
        self.connection.note(end);
    }

    fn make(&self, ctx: &Ctx<'_>, message: Vec<u8>) -> Result<Reply> {
        self.connection.call(ctx, &self.path, &self.params, &self.samples, message)
    }

    /// Makes the call, and settles a promise at its end.
    fn make_later<'js>(
        self,
        ctx: &Ctx<'js>,
        message: Vec<u8>,
        resolve: Function<'js>,
        reject: Function<'js>,
    ) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        let op = unary(self.connection.id(), self.path.clone(), self.samples.name(&self.path), &self.params, message);
        let timeout = self.params.timeout.unwrap_or(LONGEST_CALL);
        let settle = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
        let later = Rc::new(Later {
            prepared: self,
            reply: RefCell::default(),
            settle: RefCell::new(Some(settle)),
            ids: Cell::default(),
        });
        let pending = Rc::clone(&later);
        let call = events.subscribe(
            op,
            Box::new(move |ctx, event| {
                let Wakeup::Operation(event) = event else { return Ok(Then::Open) };
                let is_whole = pending.reply.borrow_mut().take(event);
                if is_whole { pending.end(ctx) } else { Ok(Then::Open) }
            }),
        );
        let late = Rc::clone(&later);
        let give_up = move |ctx: &Ctx<'_>, _: Wakeup<Event>| {
            late.reply.borrow_mut().is_late(timeout);
            late.end(ctx)
        };
        let timer = events.at(events.now().after(timeout), Box::new(give_up));
        later.ids.set((call, timer));
        Ok(())
    }
}

/// A call with a promise of its reply.
struct Later {
    prepared: PreparedCall,
    reply: RefCell<Reply>,
    settle: RefCell<Option<(Persistent<Function<'static>>, Persistent<Function<'static>>)>>,
    /// The call and its timer.
    ids: Cell<(OpId, OpId)>,
}

impl Later {
    fn end(&self, ctx: &Ctx<'_>) -> Result<Then> {
        let Some((resolve, reject)) = self.settle.take() else { return Ok(Then::Done) };
        let events = EventLoop::<K6>::of(ctx)?;
        let (call, timer) = self.ids.get();
        let reply = self.reply.take();
        self.prepared.ended(events.now(), &reply.end);
        // One of them has ended.
        events.cancel(timer);
        if reply.end.status == status::DEADLINE_EXCEEDED {
            events.cancel(call);
        }
        let response = reply.into_js(ctx, &self.prepared.method, self.prepared.params.discard);
        settle(ctx, &resolve.restore(ctx)?, &reject.restore(ctx)?, response.map(Object::into_value))?;
        Ok(Then::Done)
    }
}

/// A value as JSON. Numbers that JSON lacks are texts, as in protobuf.
fn json_of<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    let replace = |_: Value<'js>, value: Value<'js>| -> Result<Value<'js>> {
        let name = match value.as_number() {
            Some(number) if number.is_nan() => "NaN",
            Some(f64::INFINITY) => "Infinity",
            Some(f64::NEG_INFINITY) => "-Infinity",
            _ => return Ok(value),
        };
        rquickjs::IntoJs::into_js(name, value.ctx())
    };
    let replacer = Function::new(ctx.clone(), replace)?;
    let json = ctx.json_stringify_replacer(value, replacer)?;
    json.map_or_else(|| Err(thrown(ctx, "unable to serialise request object: it is no JSON")), |json| json.to_string())
}
