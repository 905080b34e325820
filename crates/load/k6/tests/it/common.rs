//! A user of a script whose operations the test answers, and whose clock goes on when nothing else is left.

use plimsoll_javascript::{
    Call, Entry, Files, Host, Level, Limits, OpId, Parked, Program, Request, ResultFormat, Setup, Vm, Wakeup,
};
use plimsoll_k6::operations::{Event, K6, Op};
use plimsoll_k6::user::RunState;
use plimsoll_k6::user::User;
use plimsoll_k6::user::{Purpose, Recording};
use plimsoll_k6_run::metrics::Sink;
use plimsoll_k6_run::options::Options;
use plimsoll_model::units::Instant;
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// What an operation is answered, in this order; to which operation, stands beside it.
pub(crate) type Answers = Vec<(OpId, Event)>;

pub(crate) struct Script {
    vm: Vm<K6>,
    recording: Rc<Recording>,
    host: Rc<Wound>,
    timers: BTreeSet<(Instant, OpId)>,
    /// What was given up.
    pub(crate) cancelled: Vec<OpId>,
}

#[derive(Default)]
struct Wound {
    now: Cell<i64>,
}

impl Host for Wound {
    fn now(&self) -> Instant {
        Instant(self.now.get())
    }

    fn console(&self, _: Level, _: &str) {}
}

impl Script {
    /// A script of this text that may read the files beside it in `home`, loaded.
    pub(crate) fn within(home: &Path, text: &str) -> Script {
        Script::with_options(home, text, Options::defaults())
    }

    pub(crate) fn with_options(home: &Path, text: &str, options: Options) -> Script {
        let files = Files::within([home]).expect("the folder is there");
        let name = home.join("load.js");
        let entry = Entry::Text { name: name.to_str().expect("a path in UTF-8"), text };
        let program = Program::load(entry, files, plimsoll_k6::natives());
        let program = program.unwrap_or_else(|faults| panic!("{faults:?}"));
        let before = RunState::for_loading(Vec::new());
        let run = Arc::new(before.configured(options, Vec::new(), before.registry.as_ref().clone()));
        let recording = Recording::new(&run, Purpose::Run);
        let user = User::new(&recording, 1, 7);
        let host = Rc::new(Wound::default());
        let globals = user.globals();
        let setup = Setup {
            limits: Limits::default(),
            host: host.clone(),
            globals,
            prepare: Some(plimsoll_k6::prepare(&user)),
        };
        let vm = Vm::new(&program, setup).expect("there is room for a stack");
        let mut script = Script { vm, recording, host, timers: BTreeSet::new(), cancelled: Vec::new() };
        assert_eq!(script.vm.load(), Parked::Over(Ok(None)));
        script
    }

    pub(crate) fn new(text: &str) -> Script {
        let nowhere = tempfile::tempdir().expect("a folder");
        Script::within(nowhere.path(), text)
    }

    /// Calls the default function, where `serve` answers what it asks: what that returns, as JSON, or throws.
    pub(crate) fn run(&mut self, mut serve: impl FnMut(OpId, Op) -> Answers) -> Result<String, String> {
        let call = Call { function: "default".into(), arguments: vec![], globals: vec![], result: ResultFormat::Json };
        let mut parked = self.vm.call(call);
        let mut answers = VecDeque::new();
        loop {
            self.take_requests(&mut serve, &mut answers);
            match parked {
                Parked::Waiting => {}
                Parked::Over(Ok(json)) => return Ok(json.unwrap_or_default()),
                Parked::Over(Err(exception)) => return Err(exception.message),
                Parked::Ended(end) => panic!("{end:?}"),
            }
            parked = if let Some((id, event)) = answers.pop_front() {
                self.vm.wake(id, Wakeup::Operation(event))
            } else {
                let (due, id) = self.timers.pop_first().expect("it waits for nothing that could come");
                self.host.now.set(due.0);
                self.vm.wake(id, Wakeup::Timer)
            };
        }
    }

    fn take_requests(&mut self, serve: &mut impl FnMut(OpId, Op) -> Answers, answers: &mut VecDeque<(OpId, Event)>) {
        while let Some(request) = self.vm.next_request() {
            match request {
                Request::Start(id, op) => answers.extend(serve(id, op)),
                Request::Timer(id, due) => {
                    self.timers.insert((due, id));
                }
                Request::Cancel(id) => {
                    self.timers.retain(|(_, timer)| *timer != id);
                    answers.retain(|(open, _)| *open != id);
                    self.cancelled.push(id);
                }
            }
        }
    }

    /// What has come of a metric.
    pub(crate) fn sink(&self, metric: &str) -> Sink {
        let id = self.recording.run().registry.id(metric).expect("there is such a metric");
        self.recording.copy().get(id, None).clone()
    }

    /// How many samples a metric has got.
    pub(crate) fn samples(&self, metric: &str) -> u64 {
        self.sink(metric).samples()
    }
}
