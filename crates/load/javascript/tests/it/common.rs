//! A user of a script whose operations are texts, answered from a table, and whose clock the test winds.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use plimsoll_javascript::rquickjs::function::{Opt, Rest};
use plimsoll_javascript::rquickjs::{Array, Ctx, Function, IntoJs, Object, Persistent, Promise, Result, Value};
use plimsoll_javascript::{
    Argument, Call, Entry, EventLoop, Fault, Files, Host, Level, Limits, NativeModule, Natives, OpId, Operations,
    Parked, Program, Request, ResultFormat, Setup, Then, Vm, Wakeup, busy,
};
use plimsoll_model::units::{Instant, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Operations that are texts, and answered with texts.
pub(crate) struct Wire;

impl Operations for Wire {
    type Op = String;
    type Event = String;
}

impl NativeModule for Wire {
    const NAME: &'static str = "wire";
    const EXPORTS: &'static [&'static str] =
        &["default", "ask", "askAll", "askLater", "attend", "labour", "listen", "sleep"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        module.set("ask", Function::new(ctx.clone(), ask)?)?;
        module.set("askAll", Function::new(ctx.clone(), ask_all)?)?;
        module.set("askLater", Function::new(ctx.clone(), ask_later)?)?;
        module.set("attend", Function::new(ctx.clone(), attend)?)?;
        module.set("labour", Function::new(ctx.clone(), labour)?)?;
        module.set("listen", Function::new(ctx.clone(), listen)?)?;
        module.set("sleep", Function::new(ctx.clone(), sleep)?)?;
        Ok(module)
    }
}

fn ask(ctx: Ctx<'_>, question: String) -> Result<String> {
    EventLoop::<Wire>::of(&ctx)?.call(&ctx, question)
}

/// Asks several at once; the answers in the order of the questions.
fn ask_all<'js>(ctx: Ctx<'js>, questions: Rest<String>) -> Result<Array<'js>> {
    let events = EventLoop::<Wire>::of(&ctx)?;
    let ids: Vec<OpId> = questions.0.into_iter().map(|question| events.start(question)).collect();
    let mut open = ids.clone();
    let answers = Array::new(ctx.clone())?;
    while !open.is_empty() {
        let (id, Wakeup::Operation(answer)) = events.next(&ctx, &open)? else { continue };
        events.finish(id);
        open.retain(|other| *other != id);
        let at = ids.iter().position(|other| *other == id).expect("it was asked");
        answers.set(at, answer)?;
    }
    Ok(answers)
}

/// Blocks, calling a function with each answer and every ten seconds with a tick, until one is `end`.
fn attend<'js>(ctx: Ctx<'js>, question: String, function: Function<'js>) -> Result<()> {
    let events = EventLoop::<Wire>::of(&ctx)?;
    let stream = events.start(question);
    let mut timer = events.start_timer(events.now().after(Nanos(10_000_000_000)));
    loop {
        match events.next(&ctx, &[stream, timer])? {
            (_, Wakeup::Timer) => {
                events.finish(timer);
                timer = events.start_timer(events.now().after(Nanos(10_000_000_000)));
                function.call::<_, Value<'_>>(("tick",))?;
            }
            (_, Wakeup::Operation(answer)) if answer == "end" => break,
            (_, Wakeup::Operation(answer)) => drop(function.call::<_, Value<'_>>((answer,))?),
        }
    }
    events.cancel(timer);
    events.finish(stream);
    Ok(())
}

/// A promise of an answer; rejected where that starts with `!`.
fn ask_later<'js>(ctx: Ctx<'js>, question: String) -> Result<Promise<'js>> {
    EventLoop::<Wire>::of(&ctx)?.promise(&ctx, question, |ctx, answer| match answer.strip_prefix('!') {
        Some(fault) => Err(plimsoll_javascript::rquickjs::Exception::throw_message(ctx, fault)),
        None => answer.into_js(ctx),
    })
}

/// Calls a function with each answer until that is `end`.
fn listen<'js>(ctx: Ctx<'js>, question: String, function: Function<'js>) -> Result<OpId> {
    let function = Persistent::save(&ctx, function);
    let handler = move |ctx: &Ctx<'_>, event: Wakeup<String>| {
        let Wakeup::Operation(answer) = event else { return Ok(Then::Open) };
        let then = if answer == "end" { Then::Done } else { Then::Open };
        let function: Function<'_> = function.clone().restore(ctx)?;
        function.call::<_, Value<'_>>((answer,))?;
        Ok(then)
    };
    Ok(EventLoop::<Wire>::of(&ctx)?.subscribe(question, Box::new(handler)))
}

/// Works without an end, and calls a function before.
fn labour(function: Opt<Function<'_>>) -> Result<()> {
    if let Some(function) = function.0 {
        function.call::<_, ()>(())?;
    }
    loop {
        busy::spend(1);
    }
}

fn sleep(ctx: Ctx<'_>, seconds: Opt<f64>) -> Result<()> {
    let span = Nanos((seconds.0.unwrap_or(1.0) * 1e9) as u64);
    EventLoop::<Wire>::of(&ctx)?.sleep(&ctx, span)
}

/// A clock that goes on by `step` whenever it is looked at, and what was written to the console.
#[derive(Default)]
pub(crate) struct Wound {
    pub(crate) now: Cell<i64>,
    pub(crate) step: Cell<i64>,
    pub(crate) lines: RefCell<Vec<(Level, String)>>,
}

impl Host for Wound {
    fn now(&self) -> Instant {
        self.now.set(self.now.get() + self.step.get());
        Instant(self.now.get())
    }

    fn console(&self, level: Level, line: &str) {
        self.lines.borrow_mut().push((level, line.to_owned()));
    }
}

/// A user, with what answers it.
pub(crate) struct User {
    pub(crate) vm: Vm<Wire>,
    pub(crate) host: Rc<Wound>,
    timers: BTreeSet<(Instant, OpId)>,
    /// The answers to a question, in the order in which they come.
    pub(crate) answers: BTreeMap<&'static str, Vec<&'static str>>,
    /// What was asked, with what was given up as `cancel`.
    pub(crate) asked: Vec<String>,
}

impl User {
    pub(crate) fn of(program: &Arc<Program>) -> User {
        Self::limited(program, Limits::default())
    }

    pub(crate) fn limited(program: &Arc<Program>, limits: Limits) -> User {
        let globals = vec![
            ("__ENV".into(), Argument::Json(r#"{"TARGET": "here"}"#.into())),
            ("__VU".into(), Argument::Number(7.0)),
        ];
        Self::new(program, limits, globals)
    }

    pub(crate) fn with_globals(program: &Arc<Program>, globals: Vec<(Rc<str>, Argument)>) -> User {
        Self::new(program, Limits::default(), globals)
    }

    fn new(program: &Arc<Program>, limits: Limits, globals: Vec<(Rc<str>, Argument)>) -> User {
        let host = Rc::new(Wound::default());
        let setup = Setup { limits, host: Rc::clone(&host) as Rc<dyn Host>, globals, prepare: None };
        let vm = Vm::new(program, setup).expect("there is room for a stack");
        User { vm, host, timers: BTreeSet::new(), answers: BTreeMap::new(), asked: Vec::new() }
    }

    /// A user of the script `text`, loaded.
    pub(crate) fn loaded(text: &str) -> User {
        let mut user = User::of(&program(text));
        assert_eq!(user.load(), Parked::Over(Ok(None)));
        user
    }

    pub(crate) fn load(&mut self) -> Parked {
        let parked = self.vm.load();
        self.settle(parked)
    }

    /// Calls the default function and answers until that is over, or nothing is left to answer.
    pub(crate) fn iterate(&mut self) -> Parked {
        let parked = self.begin();
        self.settle(parked)
    }

    /// Calls the default function, and answers nothing yet.
    pub(crate) fn begin(&mut self) -> Parked {
        let globals = vec![("__ITER".into(), Argument::Number(3.0))];
        self.vm.call(Call { function: "default".into(), arguments: vec![], globals, result: ResultFormat::Json })
    }

    /// What the default function returns, as JSON.
    pub(crate) fn returned(&mut self) -> String {
        match self.iterate() {
            Parked::Over(Ok(Some(json))) => json,
            other => panic!("{other:?}"),
        }
    }

    /// What the default function throws, in one line.
    pub(crate) fn thrown(&mut self) -> String {
        match self.iterate() {
            Parked::Over(Err(exception)) => exception.to_string(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn settle(&mut self, mut parked: Parked) -> Parked {
        let mut waiting: Vec<(OpId, &'static str)> = Vec::new();
        while parked == Parked::Waiting {
            self.take_requests(&mut waiting);
            parked = if !waiting.is_empty() {
                let (id, answer) = waiting.remove(0);
                self.vm.wake(id, Wakeup::Operation(answer.to_owned()))
            } else if let Some((due, id)) = self.timers.pop_first() {
                self.host.now.set(self.host.now.get().max(due.0));
                self.vm.wake(id, Wakeup::Timer)
            } else {
                return Parked::Waiting;
            };
        }
        self.take_requests(&mut waiting);
        parked
    }

    fn take_requests(&mut self, waiting: &mut Vec<(OpId, &'static str)>) {
        while let Some(request) = self.vm.next_request() {
            match request {
                Request::Start(id, question) => {
                    let answers = self.answers.get(question.as_str()).cloned().unwrap_or_default();
                    waiting.extend(answers.into_iter().map(|answer| (id, answer)));
                    self.asked.push(question);
                }
                Request::Timer(id, due) => {
                    self.timers.insert((due, id));
                }
                Request::Cancel(id) => {
                    self.timers.retain(|(_, timer)| *timer != id);
                    waiting.retain(|(open, _)| *open != id);
                    self.asked.push("cancel".to_owned());
                }
            }
        }
    }
}

pub(crate) fn natives() -> Natives {
    Natives::default().with::<Wire>().refusing(|name| {
        (name == "wire/browser").then(|| "`wire/browser` is not supported: there is no browser here".to_owned())
    })
}

/// The script `text`, whose name is `load.js`.
pub(crate) fn program(text: &str) -> Arc<Program> {
    let nowhere = tempfile::tempdir().expect("a folder");
    let files = Files::within([nowhere.path()]).expect("the folder is there");
    let entry = Entry::Text { name: "load.js", text };
    Program::load(entry, files, natives()).unwrap_or_else(|faults| panic!("{}", listed(&faults)))
}

/// A folder with files in it.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    home
}

/// Loads a script from a folder, of which it may read `allowed`.
pub(crate) fn load(home: &Path, entry: &str, allowed: &str) -> std::result::Result<Arc<Program>, Vec<Fault>> {
    let files = Files::within([home.join(allowed)]).expect("the folder is there");
    Program::load(Entry::File(&home.join(entry)), files, natives())
}

/// Faults, a line each.
pub(crate) fn listed(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}
