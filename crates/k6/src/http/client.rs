//! The client of a user: it sends what scripts ask for, blocking them or not.

use super::arguments::{Arguments, Wrong};
use super::fault::Fault;
use super::fetch::{Answer, Asked, Fetch, Target, Turn};
use super::headers::Headers;
use super::response::Response;
use super::samples::{self, Wanted};
use crate::module::warn_of;
use crate::operations::{Event as Answered, K6, Op, Statuses};
use crate::user::User;
use crate::value::{settle, thrown};
use plimsoll_script::{Event, EventLoop, OpId, Then};
use plimsoll_web::{Url, UrlFault};
use rquickjs::{Class, Ctx, Exception, Function, JsLifetime, Persistent, Promise, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// What the module keeps for a user.
pub(crate) struct Client {
    pub(crate) user: Rc<User>,
    /// Which statuses are none of a failure, unless a request says otherwise.
    pub(crate) expected: RefCell<Option<Rc<Statuses>>>,
    /// The headers of every request.
    pub(crate) headers: Rc<Headers>,
    /// The body of requests that have none.
    pub(crate) no_body: Rc<Vec<u8>>,
    events: Rc<EventLoop<K6>>,
    wanted: Wanted,
    lately: RefCell<Lately>,
}

/// What was asked for lately, so that each URL is taken apart once.
#[derive(Default)]
struct Lately {
    known: Vec<Known>,
    /// Which of them the next one replaces.
    next: usize,
}

/// A URL, and the last request that had nothing else.
struct Known {
    target: Rc<Target>,
    asked: Option<Rc<Asked>>,
}

/// How many URLs a user remembers.
const URLS: usize = 8;

/// What servers are told, unless the options say otherwise.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Where natives find the client of their user.
#[derive(JsLifetime)]
struct Seat(Rc<Client>);

/// What a script gets for a request.
pub(crate) type Outcome<'js> = Class<'js, Response<'js>>;

type Asking = std::result::Result<Rc<Asked>, Wrong>;

impl Client {
    /// Makes that of the user whose module is being loaded.
    pub(crate) fn install(ctx: &Ctx<'_>) -> Result<Rc<Client>> {
        let user = User::of(ctx)?;
        let wanted = Wanted::by(&user);
        let mut headers = Headers::default();
        headers.set("User-Agent", user.options().user_agent.as_deref().unwrap_or(USER_AGENT));
        let (expected, headers) = (RefCell::new(Some(Rc::default())), Rc::new(headers));
        let (no_body, lately, events) = (Rc::default(), RefCell::default(), EventLoop::of(ctx)?);
        let client = Rc::new(Client { user, expected, headers, no_body, events, wanted, lately });
        let seat = Seat(Rc::clone(&client));
        ctx.store_userdata(seat).map_err(|_| Exception::throw_internal(ctx, "the client is in use"))?;
        Ok(client)
    }

    /// That of the user whose native runs.
    pub(crate) fn of(ctx: &Ctx<'_>) -> Result<Rc<Client>> {
        let found = ctx.userdata::<Seat>().map(|seat| Rc::clone(&seat.0));
        found.ok_or_else(|| Exception::throw_internal(ctx, "the module `k6/http` was not loaded"))
    }

    /// A URL, taken apart.
    pub(crate) fn target(&self, written: &str) -> std::result::Result<Rc<Target>, UrlFault> {
        let mut lately = self.lately.borrow_mut();
        if let Some(known) = lately.of(written.as_bytes()) {
            return Ok(Rc::clone(&known.target));
        }
        let url = Rc::new(Url::parse(written)?);
        let target = Rc::new(Target { written: written.into(), url });
        lately.keep(Rc::clone(&target));
        Ok(target)
    }

    /// A request that was kept.
    pub(crate) fn asked_lately(&self, method: &str, written: &[u8]) -> Option<Rc<Asked>> {
        let mut lately = self.lately.borrow_mut();
        lately.of(written)?.asked.as_ref().filter(|asked| asked.method == method).cloned()
    }

    /// Keeps a request that has nothing but its URL.
    pub(crate) fn keep(&self, asked: &Rc<Asked>) {
        if let Some(known) = self.lately.borrow_mut().of(asked.target.written.as_bytes()) {
            known.asked = Some(Rc::clone(asked));
        }
    }

    /// Says which statuses are none of a failure from now on.
    pub(crate) fn expect(&self, expected: Option<Rc<Statuses>>) {
        self.expected.replace(expected);
        self.lately.borrow_mut().known.iter_mut().for_each(|known| known.asked = None);
    }

    /// Makes the request that a function of the module was called for.
    pub(crate) fn request<'js>(&self, ctx: &Ctx<'js>, call: &str, arguments: Arguments<'js>) -> Result<Outcome<'js>> {
        if self.events.is_loading() {
            User::running(ctx, call)?;
        }
        self.send(ctx, arguments.read(ctx, self))
    }

    /// Makes a request, and parks the user until it is over.
    pub(crate) fn send<'js>(&self, ctx: &Ctx<'js>, asking: Asking) -> Result<Outcome<'js>> {
        let asked = match asking {
            Ok(asked) => asked,
            Err(wrong) => return self.refused(ctx, wrong),
        };
        let mut fetch = Fetch::new(asked);
        loop {
            let event = self.events.call(ctx, Op::Http(fetch.request()))?;
            match self.take(ctx, fetch, event)? {
                Turn::Next(next) => fetch = next,
                Turn::Over(answer) => return self.response(ctx, answer),
            }
        }
    }

    /// Makes a request, and goes on with a promise of its response.
    pub(crate) fn promise<'js>(self: &Rc<Self>, ctx: &Ctx<'js>, asking: Asking) -> Result<Promise<'js>> {
        let (promise, resolve, reject) = ctx.promise()?;
        match asking {
            Ok(asked) => {
                let settle = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
                self.pursue(Fetch::new(asked), settle);
            }
            Err(wrong) => settle(ctx, &resolve, &reject, self.refused(ctx, wrong).map(Class::into_value))?,
        }
        Ok(promise)
    }

    /// Makes the next exchange, and with its answer the one after that, up to the end.
    fn pursue(self: &Rc<Self>, fetch: Fetch, promise: Settle) {
        let request = fetch.request();
        let client = Rc::clone(self);
        let mut pending = Some((fetch, promise));
        let handler = move |ctx: &Ctx<'_>, event: Event<Answered>| {
            if let (Event::Answer(event), Some((fetch, promise))) = (event, pending.take()) {
                match client.take(ctx, fetch, event)? {
                    Turn::Next(next) => client.pursue(next, promise),
                    Turn::Over(answer) => {
                        let made = client.response(ctx, answer).map(Class::into_value);
                        settle(ctx, &promise.0.restore(ctx)?, &promise.1.restore(ctx)?, made)?;
                    }
                }
            }
            Ok(Then::Done)
        };
        self.events.subscribe(Op::Http(request), Box::new(handler));
    }

    /// Makes several requests, of which so many are under way at once as the options say.
    pub(crate) fn batch<'js>(&self, ctx: &Ctx<'js>, fetches: Vec<Fetch>) -> Result<Vec<Outcome<'js>>> {
        let (events, options) = (&self.events, self.user.options());
        let limits = (options.batch.unwrap_or(20), options.batch_per_host.unwrap_or(6));
        let mut answers: Vec<Option<Answer>> = fetches.iter().map(|_| None).collect();
        let mut waiting: Vec<_> = fetches.into_iter().enumerate().collect();
        let mut open: Vec<Open> = Vec::new();
        while !waiting.is_empty() || !open.is_empty() {
            while let Some(at) = next_of_batch(&waiting, &open, limits) {
                let (index, fetch) = waiting.remove(at);
                open.push(Open::start(events, index, fetch));
            }
            let ids: Vec<OpId> = open.iter().map(|open| open.id).collect();
            let (id, Event::Answer(event)) = events.next(ctx, &ids)? else { continue };
            events.finish(id);
            let at = ids.iter().position(|open| *open == id).expect("it is one of those waited for");
            let Open { index, fetch, .. } = open.swap_remove(at);
            match self.take(ctx, fetch, event)? {
                Turn::Next(next) => open.push(Open::start(events, index, next)),
                Turn::Over(answer) => answers[index] = Some(answer),
            }
        }
        answers.into_iter().flatten().map(|answer| self.response(ctx, answer)).collect()
    }

    /// Takes the answer to an exchange, and adds its samples.
    fn take(&self, ctx: &Ctx<'_>, fetch: Fetch, event: Answered) -> Result<Turn> {
        let Answered::Http(response) = event else {
            return Err(Exception::throw_internal(ctx, "a request was answered with something else"));
        };
        let done = response.done;
        Ok(fetch.take(response, |exchange| samples::add(&self.user, self.wanted, done, exchange)))
    }

    /// What the script gets; an exception where it wants one for what has no answer.
    fn response<'js>(&self, ctx: &Ctx<'js>, answer: Answer) -> Result<Outcome<'js>> {
        if let Some(fault) = &answer.fault {
            let what = format!("{} \"{}\": {}", answer.asked.method, answer.asked.target.written, fault.detail);
            if answer.asked.throws {
                return Err(thrown(ctx, what));
            }
            warn_of(ctx, &fault.detail, &format!("Request Failed: {what}"))?;
        }
        Class::instance(ctx.clone(), Response::of(answer))
    }

    /// What the script gets for a request that was not made, because of another one.
    pub(crate) fn unsent<'js>(&self, ctx: &Ctx<'js>) -> Result<Outcome<'js>> {
        Class::instance(ctx.clone(), Response::refused(Fault { code: 0, ..Fault::other("") }))
    }

    /// What the script gets for a request that cannot be made.
    pub(crate) fn refused<'js>(&self, ctx: &Ctx<'js>, wrong: Wrong) -> Result<Outcome<'js>> {
        let fault: Fault = match wrong {
            Wrong::Thrown(error) => return Err(error),
            Wrong::Refused(fault) => fault,
        };
        self.user.note_unmade(&fault.detail);
        if self.user.options().throw == Some(true) {
            return Err(thrown(ctx, fault.detail));
        }
        warn_of(ctx, &fault.detail, &format!("Request Failed: {}", fault.detail))?;
        Class::instance(ctx.clone(), Response::refused(fault))
    }
}

impl Lately {
    fn of(&mut self, written: &[u8]) -> Option<&mut Known> {
        self.known.iter_mut().find(|known| known.target.written.as_bytes() == written)
    }

    fn keep(&mut self, target: Rc<Target>) {
        let known = Known { target, asked: None };
        if self.known.len() < URLS {
            return self.known.push(known);
        }
        self.known[self.next] = known;
        self.next = (self.next + 1) % URLS;
    }
}

/// How a promise is settled.
type Settle = (Persistent<Function<'static>>, Persistent<Function<'static>>);

/// A request of a batch that is under way.
struct Open {
    id: OpId,
    /// Which of the batch it is.
    index: usize,
    fetch: Fetch,
}

impl Open {
    fn start(events: &EventLoop<K6>, index: usize, fetch: Fetch) -> Open {
        Open { id: events.start(Op::Http(fetch.request())), index, fetch }
    }
}

/// Which of those that wait may begin: the first whose host has room. A limit of 0 is none.
fn next_of_batch(waiting: &[(usize, Fetch)], open: &[Open], (most, most_of_host): (u64, u64)) -> Option<usize> {
    let is_below = |count: usize, limit: u64| limit == 0 || (count as u64) < limit;
    if !is_below(open.len(), most) {
        return None;
    }
    let has_room =
        |host: &str| is_below(open.iter().filter(|open| open.fetch.authority() == host).count(), most_of_host);
    waiting.iter().position(|(_, fetch)| has_room(&fetch.authority()))
}
