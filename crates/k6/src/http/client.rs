//! The client of a user: it sends what scripts ask for, blocking them or not.

use super::arguments::Wrong;
use super::fault::Fault;
use super::fetch::{Answer, Asked, Fetch, Target, Turn};
use super::headers::Headers;
use super::response::Response;
use super::samples::{self, Wanted};
use crate::module::warn;
use crate::operations::{Event as Answered, HttpResponse, K6, Op, Statuses};
use crate::user::User;
use crate::value::{settle, thrown};
use plimsoll_script::{Event, EventLoop, OpId, Then};
use plimsoll_web::{Url, UrlFault};
use rquickjs::{Class, Ctx, Exception, Function, JsLifetime, Persistent, Promise, Result};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// What the module keeps for a user.
pub(crate) struct Client {
    pub(crate) user: Rc<User>,
    /// Which statuses are none of a failure, unless a request says otherwise.
    pub(crate) expected: RefCell<Option<Rc<Statuses>>>,
    /// The headers of every request.
    pub(crate) headers: Rc<Headers>,
    wanted: Wanted,
    targets: RefCell<Targets>,
}

/// URLs that were asked for lately, so that each is taken apart once.
#[derive(Default)]
struct Targets {
    known: Vec<Rc<Target>>,
    /// Which of them the next one replaces.
    next: usize,
}

/// How many URLs a user remembers.
const TARGETS: usize = 8;

/// What servers are told, unless the options say otherwise.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Where natives find the client of their user.
#[derive(JsLifetime)]
struct Seat(Rc<Client>);

/// What a script gets for a request.
pub(crate) type Outcome<'js> = Class<'js, Response<'js>>;

impl Client {
    /// Makes that of the user whose module is being loaded.
    pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
        let user = User::of(ctx)?;
        let wanted = Wanted::by(&user);
        let mut headers = Headers::default();
        headers.set("User-Agent", user.options().user_agent.as_deref().unwrap_or(USER_AGENT));
        let (expected, headers) = (RefCell::new(Some(Rc::default())), Rc::new(headers));
        let seat = Seat(Rc::new(Client { user, expected, headers, wanted, targets: RefCell::default() }));
        ctx.store_userdata(seat).map_err(|_| Exception::throw_internal(ctx, "the client is in use"))?;
        Ok(())
    }

    /// That of the user whose native runs.
    pub(crate) fn of(ctx: &Ctx<'_>) -> Result<Rc<Client>> {
        let found = ctx.userdata::<Seat>().map(|seat| Rc::clone(&seat.0));
        found.ok_or_else(|| Exception::throw_internal(ctx, "the module `k6/http` was not loaded"))
    }

    /// A URL, taken apart.
    pub(crate) fn target(&self, written: &str) -> std::result::Result<Rc<Target>, UrlFault> {
        let mut targets = self.targets.borrow_mut();
        if let Some(known) = targets.known.iter().find(|known| &*known.written == written) {
            return Ok(Rc::clone(known));
        }
        let url = Rc::new(Url::parse(written)?);
        let target = Rc::new(Target { written: written.into(), url, headers: OnceCell::new() });
        targets.keep(Rc::clone(&target));
        Ok(target)
    }

    /// Makes a request, and parks the user until it is over.
    pub(crate) fn send<'js>(
        &self,
        ctx: &Ctx<'js>,
        asked: std::result::Result<Box<Asked>, Wrong>,
    ) -> Result<Outcome<'js>> {
        let asked = match asked {
            Ok(asked) => asked,
            Err(wrong) => return self.refused(ctx, wrong),
        };
        let events = EventLoop::<K6>::of(ctx)?;
        let mut fetch = Fetch::new(asked);
        loop {
            let request = fetch.request(events.now());
            let event = events.call(ctx, Op::Http(Box::new(request)))?;
            match self.take(ctx, fetch, event)? {
                Turn::Next(next) => fetch = *next,
                Turn::Over(answer) => return self.response(ctx, answer),
            }
        }
    }

    /// Makes a request, and goes on with a promise of its response.
    pub(crate) fn promise<'js>(
        self: &Rc<Self>,
        ctx: &Ctx<'js>,
        asked: std::result::Result<Box<Asked>, Wrong>,
    ) -> Result<Promise<'js>> {
        let (promise, resolve, reject) = ctx.promise()?;
        match asked {
            Ok(asked) => {
                let settle = (Persistent::save(ctx, resolve), Persistent::save(ctx, reject));
                self.pursue(ctx, Fetch::new(asked), settle)?;
            }
            Err(wrong) => settle(ctx, &resolve, &reject, self.refused(ctx, wrong).map(Class::into_value))?,
        }
        Ok(promise)
    }

    /// Makes the next exchange, and with its answer the one after that, up to the end.
    fn pursue(self: &Rc<Self>, ctx: &Ctx<'_>, mut fetch: Fetch, promise: Settle) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        let request = fetch.request(events.now());
        let client = Rc::clone(self);
        let mut pending = Some((fetch, promise));
        let handler = move |ctx: &Ctx<'_>, event: Event<Answered>| {
            if let (Event::Answer(event), Some((fetch, promise))) = (event, pending.take()) {
                match client.take(ctx, fetch, event)? {
                    Turn::Next(next) => client.pursue(ctx, *next, promise)?,
                    Turn::Over(answer) => {
                        let made = client.response(ctx, answer).map(Class::into_value);
                        settle(ctx, &promise.0.restore(ctx)?, &promise.1.restore(ctx)?, made)?;
                    }
                }
            }
            Ok(Then::Done)
        };
        events.subscribe(Op::Http(Box::new(request)), Box::new(handler));
        Ok(())
    }

    /// Makes several requests, of which so many are under way at once as the options say.
    pub(crate) fn batch<'js>(&self, ctx: &Ctx<'js>, fetches: Vec<Fetch>) -> Result<Vec<Outcome<'js>>> {
        let events = EventLoop::<K6>::of(ctx)?;
        let options = self.user.options();
        let limits = (options.batch.unwrap_or(20), options.batch_per_host.unwrap_or(6));
        let mut answers: Vec<Option<Box<Answer>>> = fetches.iter().map(|_| None).collect();
        let mut waiting: Vec<_> = fetches.into_iter().enumerate().collect();
        let mut open: Vec<Open> = Vec::new();
        while !waiting.is_empty() || !open.is_empty() {
            while let Some(at) = next_of_batch(&waiting, &open, limits) {
                let (index, fetch) = waiting.remove(at);
                open.push(Open::start(&events, index, fetch));
            }
            let ids: Vec<OpId> = open.iter().map(|open| open.id).collect();
            let (id, Event::Answer(event)) = events.next(ctx, &ids)? else { continue };
            events.finish(id);
            let at = ids.iter().position(|open| *open == id).expect("it is one of those waited for");
            let Open { index, fetch, .. } = open.swap_remove(at);
            match self.take(ctx, fetch, event)? {
                Turn::Next(next) => open.push(Open::start(&events, index, *next)),
                Turn::Over(answer) => answers[index] = Some(answer),
            }
        }
        answers.into_iter().flatten().map(|answer| self.response(ctx, answer)).collect()
    }

    /// Takes the answer to an exchange, and adds its samples.
    fn take(&self, ctx: &Ctx<'_>, fetch: Fetch, event: Answered) -> Result<Turn> {
        let response = http_response(ctx, event)?;
        let now = EventLoop::<K6>::of(ctx)?.now();
        Ok(fetch.take(response, |exchange| samples::add(&self.user, self.wanted, now, exchange)))
    }

    /// What the script gets; an exception where it wants one for what has no answer.
    fn response<'js>(&self, ctx: &Ctx<'js>, answer: Box<Answer>) -> Result<Outcome<'js>> {
        if let Err(fault) = &answer.reply {
            let what = format!("{} \"{}\": {}", answer.asked.method, answer.asked.target.written, fault.detail);
            if answer.asked.throws {
                return Err(thrown(ctx, what));
            }
            warn(ctx, &format!("Request Failed: {what}"))?;
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
        if self.user.options().throw == Some(true) {
            return Err(thrown(ctx, fault.detail));
        }
        warn(ctx, &format!("Request Failed: {}", fault.detail))?;
        Class::instance(ctx.clone(), Response::refused(fault))
    }
}

impl Targets {
    fn keep(&mut self, target: Rc<Target>) {
        if self.known.len() < TARGETS {
            return self.known.push(target);
        }
        self.known[self.next] = target;
        self.next = (self.next + 1) % TARGETS;
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
    fn start(events: &EventLoop<K6>, index: usize, mut fetch: Fetch) -> Open {
        let request = fetch.request(events.now());
        Open { id: events.start(Op::Http(Box::new(request))), index, fetch }
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

fn http_response(ctx: &Ctx<'_>, event: Answered) -> Result<HttpResponse> {
    match event {
        Answered::Http(response) => Ok(*response),
        _ => Err(Exception::throw_internal(ctx, "a request was answered with something else")),
    }
}
