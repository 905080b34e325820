//! A user of a script for unit tests: a function of the test answers its requests, and its clock goes on with each.

use crate::operations::{Event, HttpReply, HttpRequest, HttpResponse, HttpTimings, K6, Op};
use crate::user::{IterationEnd, Purpose, Recording, RunState, User};
use plimsoll_javascript::{
    Call, End, Entry, Exception, Files, HeldBytes, HeldMemory, Host, Level, Limit, Limits, OpId, Parked, Program,
    Request, ResultFormat, Setup, Vm, Wakeup,
};
use plimsoll_k6_run::metrics::{Aggregation, Registry};
use plimsoll_k6_run::options::Options;
use plimsoll_model::units::{Instant, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The timings of each exchange.
pub(crate) const TIMINGS: HttpTimings = HttpTimings {
    blocked: Nanos(1_000_000),
    looking_up: Nanos(0),
    connecting: Nanos(500_000),
    tls_handshaking: Nanos(0),
    sending: Nanos(2_000_000),
    waiting: Nanos(3_000_000),
    receiving: Nanos(4_000_000),
};

/// The function that answers requests.
pub(crate) type Responder = Box<dyn FnMut(&HttpRequest) -> HttpResponse>;

/// A user whose requests a function answers.
pub(crate) struct TestUser {
    vm: Vm<K6>,
    host: Rc<TestHost>,
    user: Rc<User>,
    recording: Rc<Recording>,
    responder: Responder,
    /// The requests so far.
    pub(crate) requests: Vec<Rc<HttpRequest>>,
    /// The most requests that were under way at once.
    pub(crate) most_open: usize,
}

/// A clock and a console.
#[derive(Default)]
struct TestHost {
    now: Cell<i64>,
    lines: RefCell<Vec<String>>,
}

impl Host for TestHost {
    fn now(&self) -> Instant {
        Instant(self.now.get())
    }

    fn console(&self, _: Level, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }
}

/// A response with this status, these headers and this body.
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

/// Checks that users who run the `harmless` functions hold no more than they may, and that the `greedy` ones end for it.
pub(crate) fn check_held(user: impl Fn(&str) -> TestUser, harmless: &[&str], greedy: &[&str]) {
    for body in harmless {
        assert!(user(body).iterate().is_ok(), "{body}");
    }
    for body in greedy {
        let ended = user(body).iterate_or_end();
        assert!(matches!(ended, Err(End::Limit(Limit::Held, _))), "{body}: {ended:?}");
    }
}

impl TestUser {
    /// A user that has loaded this script. The response to its requests is `{}`.
    pub(crate) fn of(text: &str) -> TestUser {
        TestUser::with(text, Options::defaults())
    }

    pub(crate) fn with(text: &str, options: Options) -> TestUser {
        TestUser::sharing(text, &measuring(options, &[]))
    }

    /// A user of a run.
    pub(crate) fn sharing(text: &str, run: &Arc<RunState>) -> TestUser {
        TestUser::limited(text, run, Limits::default())
    }

    /// A user whose script may take so many bytes of memory.
    pub(crate) fn within(text: &str, memory: usize) -> TestUser {
        let limits = Limits { memory, ..Limits::default() };
        TestUser::limited(text, &measuring(Options::defaults(), &[]), limits)
    }

    fn limited(text: &str, run: &Arc<RunState>, limits: Limits) -> TestUser {
        let files = Files::within([Path::new(".")]).expect("the folder is there");
        let program = Program::load(Entry::Text { name: "load.js", text }, files, crate::natives());
        let program = program.unwrap_or_else(|faults| panic!("{faults:?}"));
        let recording = Recording::new(run, Purpose::Run);
        let user = User::new(&recording, 1, 7);
        let host = Rc::new(TestHost::default());
        let setup = Setup {
            limits,
            host: Rc::clone(&host) as Rc<dyn Host>,
            globals: user.globals(),
            prepare: Some(crate::prepare(&user)),
        };
        let mut vm = Vm::new(&program, setup).expect("there is room for a stack");
        assert_eq!(vm.load(), Parked::Over(Ok(None)));
        let responder: Responder = Box::new(|_| reply(200, &[("Content-Type", "application/json")], b"{}"));
        TestUser { vm, host, user, recording, responder, requests: Vec::new(), most_open: 0 }
    }

    pub(crate) fn answering(mut self, responder: impl FnMut(&HttpRequest) -> HttpResponse + 'static) -> TestUser {
        self.responder = Box::new(responder);
        self
    }

    /// The result of the default function as JSON.
    pub(crate) fn returned(&mut self) -> String {
        match self.iterate() {
            Ok(json) => json.unwrap_or_default(),
            Err(exception) => panic!("{exception}"),
        }
    }

    /// The message of the exception that the default function throws.
    pub(crate) fn thrown(&mut self) -> String {
        match self.iterate() {
            Ok(json) => panic!("{json:?}"),
            Err(exception) => exception.message,
        }
    }

    /// Calls the default function, and answers its requests in order.
    pub(crate) fn iterate(&mut self) -> Result<Option<String>, Exception> {
        self.iterate_or_end().unwrap_or_else(|end| panic!("{end:?}"))
    }

    /// As [`Self::iterate`]; an error if the user ends for good.
    fn iterate_or_end(&mut self) -> Result<Result<Option<String>, Exception>, End> {
        let globals = self.user.begin(0, self.host.now());
        let call = Call { function: "default".into(), arguments: vec![], globals, result: ResultFormat::Json };
        let mut parked = self.vm.call(call);
        let mut open = VecDeque::new();
        loop {
            self.take_requests(&mut open);
            match parked {
                Parked::Over(result) => {
                    self.user.end(self.host.now(), IterationEnd::Complete, 0, 0);
                    return Ok(result);
                }
                Parked::Waiting => {}
                Parked::Ended(end) => return Err(end),
            }
            let (id, request, memory) = open.pop_front().expect("it waits for a response");
            self.host.now.set(self.host.now.get() + 10_000_000);
            let mut response = (self.responder)(&request);
            if let Ok(reply) = &mut response.outcome {
                reply.body = HeldBytes::new(reply.body.take(), &memory);
            }
            self.requests.push(request);
            parked = self.vm.wake(id, Wakeup::Operation(Event::Http(Box::new(response))));
        }
    }

    fn take_requests(&mut self, open: &mut VecDeque<(OpId, Rc<HttpRequest>, Rc<HeldMemory>)>) {
        while let Some(request) = self.vm.next_request() {
            match request {
                Request::Start(id, Op::Http(request, memory)) => open.push_back((id, request, memory)),
                Request::Start(_, other) => panic!("{other:?}"),
                Request::Timer(..) => panic!("nothing here waits for a timer"),
                Request::Cancel(id) => open.retain(|(other, ..)| *other != id),
            }
        }
        self.most_open = self.most_open.max(open.len());
    }

    /// The requests so far, a line each: `GET http://host/path`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests.iter().map(|request| format!("{} {}", request.method, request.url)).collect()
    }

    /// The lines of the console.
    pub(crate) fn console(&self) -> Vec<String> {
        self.host.lines.borrow().clone()
    }

    /// An aggregation of the samples of a metric or submetric.
    pub(crate) fn measured(&self, selector: &str, what: Aggregation) -> Option<f64> {
        let registry = &self.user.run().registry;
        let name = selector.split('{').next().unwrap_or_default();
        let id = registry.id(name).expect("a metric");
        let part = registry.metric(id).submetrics.iter().position(|part| part.name == selector);
        assert!(part.is_some() || name == selector, "no sink for {selector}");
        self.recording.copy().get(id, part).get(what, Duration::from_secs(1))
    }

    /// The number of samples of a counter or submetric.
    pub(crate) fn count(&self, selector: &str) -> f64 {
        self.measured(selector, Aggregation::Count).unwrap_or_default()
    }
}

/// A plan in which these submetrics have sinks of their own.
pub(crate) fn measuring(options: Options, selectors: &[&str]) -> Arc<RunState> {
    let mut registry = Registry::default();
    for selector in selectors {
        registry.select(selector).expect("a selector");
    }
    let scenarios = options.scenarios(&["default"]).expect("they are right").scenarios;
    Arc::new(RunState::new(options, scenarios, registry, Vec::new()))
}
