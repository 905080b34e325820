//! Scripts against real servers: their requests on the wire, and how their users end.

mod natives;
mod requests;
pub(crate) mod study;
mod users;

use plimsoll_generator::script::{Allowed, Console, Go, Limits, Observer, Progress, Run, RunOutcome, inspect, run};
use plimsoll_javascript::{Entry, Files, Level, Program};
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::metrics::Aggregation;
use plimsoll_k6_run::options::Options;
use plimsoll_model::event::Event;
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A script, with everything that a run of it needs.
pub(crate) struct Trial {
    program: Arc<Program>,
    plan: Arc<RunState>,
    limits: Limits,
    threads: usize,
    lines: Arc<Mutex<Vec<(Level, String)>>>,
    interrupted: AtomicBool,
}

/// The result of a run.
pub(crate) struct Outcome {
    result: RunOutcome,
    lines: Vec<(Level, String)>,
    plan: Arc<RunState>,
    events: Vec<Event>,
}

impl Trial {
    /// The script `text`, whose `TARGET` is this address.
    pub(crate) fn of(text: &str, target: &str) -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::within([folder.path()]).expect("the folder is there");
        let program = Program::load(Entry::Text { name: "load.js", text }, files, plimsoll_k6::natives());
        let program = program.unwrap_or_else(|faults| panic!("{faults:?}"));
        let env = vec![("TARGET".to_owned(), target.to_owned())];
        let lines = Arc::default();
        let inspected =
            inspect(&program, env, Arc::default(), Limits::default(), &console(&lines)).expect("it can be loaded");
        let json = inspected.options.as_deref().unwrap_or("{}");
        let read = Options::read(&serde_json::from_str(json).expect("JSON"));
        assert_eq!((read.faults, read.ignored), (Vec::new(), Vec::new()));
        let options = read.options.over(Options::defaults());
        let exports: Vec<&str> = program.exports().iter().map(String::as_str).collect();
        let scenarios = options.scenarios(&exports).expect("scenarios").scenarios;
        let plan = Arc::new(inspected.plan.configured(options, scenarios, inspected.registry));
        let (limits, interrupted) = (Limits::default(), AtomicBool::new(false));
        Trial { program, plan, limits, threads: 1, lines, interrupted }
    }

    fn on(self, threads: usize) -> Trial {
        Trial { threads, ..self }
    }

    fn limited(self, limits: Limits) -> Trial {
        Trial { limits, ..self }
    }

    pub(crate) fn run(self) -> Outcome {
        self.watched(|_| Go::On)
    }

    /// Runs it; `check` decides after each second if it goes on.
    fn watched(self, check: impl FnMut(&AtomicBool) -> Go) -> Outcome {
        let job = Run {
            program: &self.program,
            plan: &self.plan,
            limits: self.limits,
            allowed: Allowed::loopback_and(&[], "name it with `--allow`"),
            threads: self.threads,
            cpus: None,
            seed: 7,
            console: console(&self.lines),
            interrupted: &self.interrupted,
            part: Default::default(),
        };
        let mut watcher = Watcher { check, interrupted: &self.interrupted, events: Vec::new() };
        let result = run(&job, &mut watcher).expect("the machine allows it");
        let events = watcher.events;
        let lines = self.lines.lock().expect("nobody panicked").clone();
        Outcome { result, lines, plan: self.plan, events }
    }
}

struct Watcher<'a, C> {
    check: C,
    interrupted: &'a AtomicBool,
    events: Vec<Event>,
}

impl<C: FnMut(&AtomicBool) -> Go> Observer for Watcher<'_, C> {
    fn on_event(&mut self, event: &Event) {
        self.events.push(event.clone());
    }

    fn check(&mut self, _progress: &Progress) -> Go {
        (self.check)(self.interrupted)
    }
}

fn console(lines: &Arc<Mutex<Vec<(Level, String)>>>) -> Console {
    let lines = Arc::clone(lines);
    Arc::new(move |_, level, line| lines.lock().expect("nobody panicked").push((level, line.to_owned())))
}

impl Outcome {
    fn metric(&self, name: &str, what: Aggregation) -> f64 {
        let id = self.plan.registry.id(name).expect("there is such a metric");
        self.result.sinks.get(id, None).get(what, self.result.elapsed).expect("it has such a thing")
    }

    pub(crate) fn count(&self, name: &str) -> f64 {
        self.metric(name, Aggregation::Count)
    }

    /// All checks, with how often they passed and failed.
    pub(crate) fn checks(&self) -> Vec<(&str, u64, u64)> {
        self.result.checks.all().iter().map(|check| (check.name.as_str(), check.passes, check.fails)).collect()
    }

    /// What was written, without its levels.
    pub(crate) fn console_lines(&self) -> Vec<&str> {
        self.lines.iter().map(|(_, line)| line.as_str()).collect()
    }
}

fn server(behaviour: Behaviour) -> (Server, String) {
    let server = Server::start(behaviour).expect("a port");
    let target = format!("http://{}", server.address());
    (server, target)
}

fn quick() -> (Server, String) {
    server(Behaviour::at_once(Reply::ok("hello")))
}
