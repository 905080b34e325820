//! The client of a user: sends requests, blocking or with a promise.

use super::arguments::{Arguments, RequestError};
use super::debug::HttpDebug;
use super::response::Response;
use super::samples::{self, WantedTags};
use crate::fetch::cache::RequestCache;
use crate::fetch::fault::Fault;
use crate::fetch::request::ScriptRequest;
use crate::fetch::{Fetch, FetchResult, Progress};
use crate::operations::{Event, K6, Op, Statuses};
use crate::user::{SampleLabels, User, warn_of_kind};
use crate::value::{settle, thrown};
use plimsoll_javascript::{EventLoop, HeldMemory, OpId, Then, Wakeup};
use rquickjs::{Class, Ctx, Exception, Function, JsLifetime, Object, Persistent, Promise, Result};
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// The state of the module for a user.
pub(crate) struct Client {
    pub(crate) user: Rc<User>,
    /// Bodies of its requests and responses.
    pub(crate) memory: Rc<HeldMemory>,
    /// The default expected statuses of requests.
    pub(crate) expected: RefCell<Option<Rc<Statuses>>>,
    events: Rc<EventLoop<K6>>,
    wanted_tags: WantedTags,
    debug: HttpDebug,
    /// Owned by [`CurrentClient`] alone. Other owners of the client, such as functions of the module, may be freed during a
    /// garbage collection, when the engine cannot free values.
    prototype: Weak<ResponsePrototype>,
    /// The last request with nothing but its URL.
    last: RefCell<Option<Rc<ScriptRequest>>>,
}

/// The userdata of a runtime by which natives find the client.
#[derive(JsLifetime)]
struct CurrentClient {
    client: Rc<Client>,
    _model: Rc<ResponsePrototype>,
}

/// The response as a script sees it.
pub(crate) type ResponseObject<'js> = Class<'js, Response<'js>>;

type RequestResult = std::result::Result<Rc<ScriptRequest>, RequestError>;

impl Client {
    /// Makes the client of a runtime.
    pub(crate) fn install(ctx: &Ctx<'_>) -> Result<Rc<Client>> {
        let user = User::of(ctx)?;
        let (wanted_tags, kept) = (WantedTags::by(&user), Rc::new(ResponsePrototype::new(ctx)?));
        let (events, memory) = (EventLoop::of(ctx)?, HeldMemory::of(ctx)?);
        let (last, debug) = (RefCell::default(), HttpDebug::of(&user));
        let expected = RefCell::new(Some(Rc::clone(&user.recording().requests().expected)));
        let prototype = Rc::downgrade(&kept);
        let client = Rc::new(Client { user, memory, expected, events, wanted_tags, debug, prototype, last });
        let current = CurrentClient { client: Rc::clone(&client), _model: kept };
        ctx.store_userdata(current).map_err(|_| Exception::throw_internal(ctx, "the client is in use"))?;
        Ok(client)
    }

    /// The client of the runtime.
    pub(crate) fn of(ctx: &Ctx<'_>) -> Result<Rc<Client>> {
        let found = ctx.userdata::<CurrentClient>().map(|current| Rc::clone(&current.client));
        found.ok_or_else(|| Exception::throw_internal(ctx, "the module `k6/http` was not loaded"))
    }

    /// The request cache of the thread.
    pub(crate) fn requests(&self) -> &RequestCache {
        self.user.recording().requests()
    }

    /// The cached request of a method and URL, if it was made before.
    pub(crate) fn again(&self, method: &str, written: &[u8]) -> Option<Rc<ScriptRequest>> {
        let mut last = self.last.borrow_mut();
        let is_it =
            |request: &Rc<ScriptRequest>| request.method == method && request.expected == *self.expected.borrow();
        if let Some(request) =
            last.as_ref().filter(|request| request.target.written.as_bytes() == written && is_it(request))
        {
            return Some(Rc::clone(request));
        }
        let request = self.requests().url_only(std::str::from_utf8(written).ok()?).filter(is_it)?;
        last.replace(Rc::clone(&request));
        Some(request)
    }

    /// Makes the request of a call, and parks the user until its end.
    pub(crate) fn request<'js>(
        &self,
        ctx: &Ctx<'js>,
        call: &str,
        arguments: Arguments<'js>,
    ) -> Result<ResponseObject<'js>> {
        if self.events.is_loading() {
            User::running(ctx, call)?;
        }
        self.send(ctx, arguments.read(ctx, self))
    }

    /// Begins a request. One whose URL leads nowhere is done at once.
    fn begin(&self, request: Rc<ScriptRequest>) -> Progress {
        match Fetch::new(Rc::clone(&request), &self.user.jar) {
            Ok(fetch) => Progress::Exchange(fetch),
            Err(fault) => Progress::Done(self.nowhere(request, fault)),
        }
    }

    #[inline(never)]
    fn nowhere(&self, request: Rc<ScriptRequest>, fault: Fault) -> FetchResult {
        self.user.record_unsent_request(&format!("\"{}\": {}", request.target.written, fault.detail));
        let now = self.events.now();
        FetchResult::unsent(request, fault, now, |exchange| {
            samples::add((&self.user, None), self.wanted_tags, now, exchange);
        })
    }

    /// Makes a request, and parks the user until its end.
    pub(crate) fn send<'js>(&self, ctx: &Ctx<'js>, request: RequestResult) -> Result<ResponseObject<'js>> {
        let request = match request {
            Ok(request) => request,
            Err(wrong) => return self.refused(ctx, wrong),
        };
        let mut progress = self.begin(request);
        loop {
            match progress {
                Progress::Exchange(fetch) => {
                    let event = self.events.call(ctx, self.next_exchange(ctx, &fetch)?)?;
                    progress = self.receive(ctx, fetch, event, None)?;
                }
                Progress::Done(answer) => return self.response(ctx, answer),
            }
        }
    }

    /// Makes a request, and returns a promise of its response.
    pub(crate) fn promise<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, request: RequestResult) -> Result<Promise<'js>> {
        let (promise, resolve, reject) = ctx.promise()?;
        match request {
            Ok(request) => {
                let settle = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
                self.pursue(ctx, self.begin(request), settle, self.user.labels())?;
            }
            Err(wrong) => settle(ctx, &resolve, &reject, self.refused(ctx, wrong).map(Class::into_value))?,
        }
        Ok(promise)
    }

    /// Makes the next exchange, and the one after its reply, up to the last. Their samples have these labels.
    fn pursue(self: &Rc<Self>, ctx: &Ctx<'_>, progress: Progress, promise: Settle, labels: SampleLabels) -> Result<()> {
        let fetch = match progress {
            Progress::Exchange(fetch) => fetch,
            Progress::Done(answer) => {
                let made = self.response(ctx, answer).map(Class::into_value);
                return settle(ctx, &promise.0.restore(ctx)?, &promise.1.restore(ctx)?, made);
            }
        };
        let exchange = self.next_exchange(ctx, &fetch)?;
        let client = Rc::clone(self);
        let mut pending = Some((fetch, promise, labels));
        let handler = move |ctx: &Ctx<'_>, event: Wakeup<Event>| {
            if let (Wakeup::Operation(event), Some((fetch, promise, labels))) = (event, pending.take()) {
                let progress = client.receive(ctx, fetch, event, Some(&labels))?;
                client.pursue(ctx, progress, promise, labels)?;
            }
            Ok(Then::Done)
        };
        self.events.subscribe(exchange, Box::new(handler));
        Ok(())
    }

    /// Makes several requests, as many at once as the options allow.
    pub(crate) fn batch<'js>(&self, ctx: &Ctx<'js>, all: Vec<Rc<ScriptRequest>>) -> Result<Vec<ResponseObject<'js>>> {
        let (events, options) = (&self.events, self.user.options());
        let limits = (options.batch.unwrap_or(20), options.batch_per_host.unwrap_or(6));
        let mut answers: Vec<Option<FetchResult>> = all.iter().map(|_| None).collect();
        let mut waiting = Vec::new();
        for (index, request) in all.into_iter().enumerate() {
            match self.begin(request) {
                Progress::Exchange(fetch) => waiting.push((index, fetch)),
                Progress::Done(answer) => answers[index] = Some(answer),
            }
        }
        let mut open: Vec<Open> = Vec::new();
        while !waiting.is_empty() || !open.is_empty() {
            while let Some(at) = next_of_batch(&waiting, &open, limits) {
                let (index, fetch) = waiting.remove(at);
                open.push(self.open(ctx, index, fetch)?);
            }
            let ids: Vec<OpId> = open.iter().map(|open| open.id).collect();
            let (id, Wakeup::Operation(event)) = events.next(ctx, &ids)? else { continue };
            events.finish(id);
            let at = ids.iter().position(|open| *open == id).expect("it is one of those waited for");
            let Open { index, fetch, .. } = open.swap_remove(at);
            match self.receive(ctx, fetch, event, None)? {
                Progress::Exchange(next) => open.push(self.open(ctx, index, next)?),
                Progress::Done(answer) => answers[index] = Some(answer),
            }
        }
        answers.into_iter().flatten().map(|answer| self.response(ctx, answer)).collect()
    }

    /// Begins an exchange of a batch.
    fn open(&self, ctx: &Ctx<'_>, index: usize, fetch: Fetch) -> Result<Open> {
        Ok(Open { id: self.events.start(self.next_exchange(ctx, &fetch)?), index, fetch })
    }

    /// The next exchange of a request, to be sent now.
    fn next_exchange(&self, ctx: &Ctx<'_>, fetch: &Fetch) -> Result<Op> {
        let exchange = fetch.next_exchange();
        if self.debug != HttpDebug::Nothing {
            self.debug.show_request(ctx, &exchange)?;
        }
        Ok(Op::Http(exchange, Rc::clone(&self.memory)))
    }

    /// Takes the response of an exchange, and adds its samples, with these labels or those of now.
    fn receive(&self, ctx: &Ctx<'_>, fetch: Fetch, event: Event, labels: Option<&SampleLabels>) -> Result<Progress> {
        let Event::Http(response) = event else {
            return Err(Exception::throw_internal(ctx, "a request was answered with something else"));
        };
        if let (HttpDebug::Heads | HttpDebug::All, Ok(reply)) = (self.debug, &response.outcome) {
            self.debug.show_reply(ctx, reply)?;
        }
        let done = response.done;
        Ok(fetch.receive(response, |exchange| samples::add((&self.user, labels), self.wanted_tags, done, exchange)))
    }

    /// The response for the script; an exception if there is no reply and the script wants one.
    fn response<'js>(&self, ctx: &Ctx<'js>, answer: FetchResult) -> Result<ResponseObject<'js>> {
        self.memory.look(ctx)?;
        if let Some(fault) = &answer.fault {
            let what = format!("{} \"{}\": {}", answer.request.method, answer.request.target.written, fault.detail);
            if answer.request.throws {
                return Err(thrown(ctx, what));
            }
            warn_of_kind(ctx, &fault.detail, &format!("Request Failed: {what}"))?;
        }
        self.made(ctx, Response::of(answer))
    }

    /// The response for a request that was not made because of another one.
    pub(crate) fn unsent<'js>(&self, ctx: &Ctx<'js>) -> Result<ResponseObject<'js>> {
        self.made(ctx, Response::refused(Fault { code: 0, ..Fault::other("") }))
    }

    /// The response for a request that cannot be made.
    pub(crate) fn refused<'js>(&self, ctx: &Ctx<'js>, wrong: RequestError) -> Result<ResponseObject<'js>> {
        let fault: Fault = match wrong {
            RequestError::Thrown(error) => return Err(error),
            RequestError::Refused(fault) => fault,
        };
        self.user.record_unsent_request(&fault.detail);
        if self.user.options().throw == Some(true) {
            return Err(thrown(ctx, fault.detail));
        }
        warn_of_kind(ctx, &fault.detail, &format!("Request Failed: {}", fault.detail))?;
        self.made(ctx, Response::refused(fault))
    }

    fn made<'js>(&self, ctx: &Ctx<'js>, response: Response<'js>) -> Result<ResponseObject<'js>> {
        self.prototype.upgrade().ok_or(rquickjs::Error::Unknown)?.make(ctx, response)
    }
}

/// The prototype of all responses. The engine frees the shape of an object with the last object of that shape, so one
/// response is kept: making shape and prototype anew costs as much as a response.
struct ResponsePrototype {
    prototype: Persistent<Object<'static>>,
    _kept: Persistent<Class<'static, Response<'static>>>,
}

impl ResponsePrototype {
    fn new<'js>(ctx: &Ctx<'js>) -> Result<ResponsePrototype> {
        let nothing = Class::instance(ctx.clone(), Response::refused(Fault::other("")))?;
        let prototype = nothing.get_prototype().ok_or(rquickjs::Error::Unknown)?;
        Ok(ResponsePrototype { prototype: Persistent::save(ctx, prototype), _kept: Persistent::save(ctx, nothing) })
    }

    fn make<'js>(&self, ctx: &Ctx<'js>, response: Response<'js>) -> Result<ResponseObject<'js>> {
        Class::instance_proto(response, self.prototype.clone().restore(ctx)?)
    }
}

/// The functions that resolve and reject a promise.
type Settle = (Persistent<Function<'static>>, Persistent<Function<'static>>);

/// A request of a batch that is under way.
struct Open {
    id: OpId,
    /// Its index in the batch.
    index: usize,
    fetch: Fetch,
}

/// The waiting request that may begin: the first whose host has room. A limit of 0 is no limit.
fn next_of_batch(waiting: &[(usize, Fetch)], open: &[Open], (most, most_of_host): (u64, u64)) -> Option<usize> {
    let is_below = |count: usize, limit: u64| limit == 0 || (count as u64) < limit;
    if !is_below(open.len(), most) {
        return None;
    }
    let has_room =
        |host: &str| is_below(open.iter().filter(|open| open.fetch.authority() == host).count(), most_of_host);
    waiting.iter().position(|(_, fetch)| has_room(&fetch.authority()))
}
