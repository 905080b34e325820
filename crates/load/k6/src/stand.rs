//! For tests: a user of a script, whose requests are answered from a table and whose clock stands still between them.

use crate::metrics::{Aggregation, Registry};
use crate::operations::{Event, HttpReply, HttpRequest, HttpResponse, HttpTimings, K6, Op};
use crate::options::Options;
use crate::plan::Plan;
use crate::recording::{Purpose, Recording};
use crate::user::{Ending, User};
use plimsoll_javascript::{
    Call, Entry, Event as Came, Exception, Files, Host, Level, Limits, OpId, Parked, Program, Request, Setup, Vm,
    Wanted,
};
use plimsoll_model::units::{Instant, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long each exchange takes.
pub(crate) const TIMINGS: HttpTimings = HttpTimings {
    blocked: Nanos(1_000_000),
    looking_up: Nanos(0),
    connecting: Nanos(500_000),
    tls_handshaking: Nanos(0),
    sending: Nanos(2_000_000),
    waiting: Nanos(3_000_000),
    receiving: Nanos(4_000_000),
};

/// What answers a request.
pub(crate) type Answering = Box<dyn FnMut(&HttpRequest) -> HttpResponse>;

/// A user, with what answers it.
pub(crate) struct Stand {
    vm: Vm<K6>,
    host: Rc<Still>,
    user: Rc<User>,
    recording: Rc<Recording>,
    answer: Answering,
    /// What was asked, in order.
    pub(crate) asked: Vec<Rc<HttpRequest>>,
    /// How many requests were under way at once at most.
    pub(crate) most_open: usize,
}

/// A clock, and what was written to the console.
#[derive(Default)]
struct Still {
    now: Cell<i64>,
    lines: RefCell<Vec<String>>,
}

impl Host for Still {
    fn now(&self) -> Instant {
        Instant(self.now.get())
    }

    fn console(&self, _: Level, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }
}

/// An answer with this status, these headers and this body.
pub(crate) fn reply(status: u16, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    HttpResponse {
        outcome: Ok(HttpReply::new(status, "Reason", &headers, body.to_vec())),
        remote: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 80))),
        tls: None,
        timings: TIMINGS,
        done: Instant::default(),
    }
}

impl Stand {
    /// A user of this script, loaded; its requests are answered with `{}`.
    pub(crate) fn of(text: &str) -> Stand {
        Stand::with(text, Options::defaults())
    }

    pub(crate) fn with(text: &str, options: Options) -> Stand {
        Stand::sharing(text, &measuring(options, &[]))
    }

    /// A user of a plan.
    pub(crate) fn sharing(text: &str, plan: &Arc<Plan>) -> Stand {
        let files = Files::within([Path::new(".")]).expect("the folder is there");
        let program = Program::load(Entry::Text { name: "load.js", text }, files, crate::natives());
        let program = program.unwrap_or_else(|faults| panic!("{faults:?}"));
        let recording = Recording::new(plan, Purpose::Run);
        let user = User::new(&recording, 1, 7);
        let host = Rc::new(Still::default());
        let setup = Setup {
            limits: Limits::default(),
            host: Rc::clone(&host) as Rc<dyn Host>,
            globals: user.globals(),
            prepare: Some(user.prepare()),
        };
        let mut vm = Vm::new(&program, setup).expect("there is room for a stack");
        assert_eq!(vm.load(), Parked::Over(Ok(None)));
        let answer: Answering = Box::new(|_| reply(200, &[("Content-Type", "application/json")], b"{}"));
        Stand { vm, host, user, recording, answer, asked: Vec::new(), most_open: 0 }
    }

    pub(crate) fn answering(mut self, answer: impl FnMut(&HttpRequest) -> HttpResponse + 'static) -> Stand {
        self.answer = Box::new(answer);
        self
    }

    /// What the default function returns, as JSON.
    pub(crate) fn returned(&mut self) -> String {
        match self.iterate() {
            Ok(json) => json.unwrap_or_default(),
            Err(exception) => panic!("{exception}"),
        }
    }

    /// What the default function throws.
    pub(crate) fn thrown(&mut self) -> String {
        match self.iterate() {
            Ok(json) => panic!("{json:?}"),
            Err(exception) => exception.message,
        }
    }

    /// Calls the default function, and answers what it asks, first things first.
    pub(crate) fn iterate(&mut self) -> Result<Option<String>, Exception> {
        let globals = self.user.begin(0, self.host.now());
        let call = Call { function: "default".into(), arguments: vec![], globals, result: Wanted::Json };
        let mut parked = self.vm.call(call);
        let mut open = VecDeque::new();
        loop {
            self.take_requests(&mut open);
            match parked {
                Parked::Over(result) => {
                    self.user.end(self.host.now(), Ending::Whole, 0, 0);
                    return result;
                }
                Parked::Waiting => {}
                Parked::Ended(end) => panic!("{end:?}"),
            }
            let (id, request) = open.pop_front().expect("it waits for what it asked");
            self.host.now.set(self.host.now.get() + 10_000_000);
            let response = (self.answer)(&request);
            self.asked.push(request);
            parked = self.vm.wake(id, Came::Answer(Event::Http(Box::new(response))));
        }
    }

    fn take_requests(&mut self, open: &mut VecDeque<(OpId, Rc<HttpRequest>)>) {
        while let Some(request) = self.vm.next_request() {
            match request {
                Request::Start(id, Op::Http(request)) => open.push_back((id, request)),
                Request::Start(_, other) => panic!("{other:?}"),
                Request::Timer(..) => panic!("nothing here waits for a timer"),
                Request::Cancel(id) => open.retain(|(other, _)| *other != id),
            }
        }
        self.most_open = self.most_open.max(open.len());
    }

    /// What was asked, a line each: `GET http://host/path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked.iter().map(|request| format!("{} {}", request.method, request.url)).collect()
    }

    /// What was written to the console.
    pub(crate) fn console(&self) -> Vec<String> {
        self.host.lines.borrow().clone()
    }

    /// What the samples of a metric or submetric come to.
    pub(crate) fn measured(&self, selector: &str, what: Aggregation) -> Option<f64> {
        let registry = &self.user.plan().registry;
        let name = selector.split('{').next().unwrap_or_default();
        let id = registry.id(name).expect("a metric");
        let part = registry.metric(id).submetrics.iter().position(|part| part.name == selector);
        assert!(part.is_some() || name == selector, "nobody has selected {selector}");
        self.recording.copy().get(id, part).get(what, Duration::from_secs(1))
    }

    /// How many samples a counter or a part of it has.
    pub(crate) fn count(&self, selector: &str) -> f64 {
        self.measured(selector, Aggregation::Count).unwrap_or_default()
    }
}

/// A plan in which these submetrics have sinks of their own.
pub(crate) fn measuring(options: Options, selectors: &[&str]) -> Arc<Plan> {
    let mut registry = Registry::default();
    for selector in selectors {
        registry.select(selector).expect("a selector");
    }
    let scenarios = options.scenarios(&["default"]).expect("they are right").scenarios;
    Arc::new(Plan::new(options, scenarios, registry, Vec::new()))
}
