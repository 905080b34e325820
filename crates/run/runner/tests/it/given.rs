//! A study of a server that runs already, its plan, and runs of it that can be interrupted.

use plimsoll_bundle::{BundleWriter, Contents};
use plimsoll_model::event::Event;
use plimsoll_model::host::Host;
use plimsoll_model::plan::Plan;
use plimsoll_plan::Options;
use plimsoll_runner::generator::LocalThreads;
use plimsoll_runner::{Ending, LookAt, Run};
use plimsoll_study::Study;
use plimsoll_system::{Interrupt, Launcher};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Two variants and the duplicate, twice: six trials that count.
pub(crate) const STUDY: &str = r#"title    = "two paths"
question = "Which is faster?"
design   = "trials"
repeats  = 2

[factors]
path = { levels = ["a", "b"], compare = true, baseline = "a" }

[workload]
protocol = "http"
target   = "TARGET"
steps    = [{ get = "/{path}" }]

[load]
users    = 1
think    = "1ms"
warmup   = "0s"
duration = "20s"
iterations = 5

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

/// The same study, in which no trial counts, because no generator can keep within its limit.
pub(crate) fn in_vain() -> String {
    STUDY.replace("\"100%\"", "\"0.0001%\"")
}

/// A study and the server that it loads, with a folder for the bundle.
pub(crate) struct Given {
    text: String,
    study: Study,
    pub(crate) plan: Plan,
    folder: TempDir,
    _server: Server,
}

/// The result of a run, with its events.
pub(crate) struct Ran {
    pub(crate) ending: Ending,
    pub(crate) events: Vec<Event>,
}

impl Given {
    pub(crate) fn new(text: &str, looks: &[u32]) -> Given {
        let server = Server::start(Behaviour::at_once(Reply::of_size(2))).expect("a port");
        let text = text.replace("TARGET", &server.address().to_string());
        let (study, faults) = plimsoll_study::read("study.toml", &text, None, Path::new("/"), &[0]);
        let study = study.unwrap_or_else(|| panic!("{faults:?}"));
        let options = Options {
            repeats: looks.last().copied().unwrap_or(study.repeats),
            seed: study.seed,
            duplicate: study.noise_floor.is_some(),
            spare_blocks: study.spare_blocks,
            looks: looks.to_vec(),
            design: study.design(),
        };
        let plan = plimsoll_plan::plan(&study.factors, &options, |condition| study.phase_lengths(condition));
        let folder = tempfile::tempdir().expect("a folder");
        Given { text, study, plan, folder, _server: server }
    }

    pub(crate) fn bundle(&self) -> std::path::PathBuf {
        self.folder.path().join("bundle")
    }

    pub(crate) fn contents(&self) -> Contents {
        plimsoll_bundle::read(&self.bundle()).expect("a bundle")
    }

    /// Runs the study, or the starts that remain. The run is interrupted at the first event for which `stop` returns
    /// true.
    pub(crate) fn run(&self, look: &mut LookAt<'_>, stop: &mut dyn FnMut(&Event) -> bool) -> Ran {
        self.run_some(None, look, stop)
    }

    /// The same, which pauses after so many starts.
    pub(crate) fn run_some(
        &self,
        pause_after: Option<u32>,
        look: &mut LookAt<'_>,
        stop: &mut dyn FnMut(&Event) -> bool,
    ) -> Ran {
        let (path, facts) = (self.bundle(), self.study.facts());
        let mut bundle = if path.exists() {
            BundleWriter::resume(&path, &self.text, &facts, &self.plan).expect("a bundle to go on with")
        } else {
            BundleWriter::create(&path, &self.text, &facts, &self.plan, &Host::default()).expect("a new folder")
        };
        let interrupted = Interrupt::new();
        let run = Run {
            study: &self.study,
            plan: &self.plan,
            launcher: &Launcher::of_this_program(&["warden"]),
            program: Path::new("plimsoll"),
            generator: &LocalThreads,
            hosts: &BTreeMap::new(),
            folder: &bundle.folder(),
            recorded: &bundle.recorded().clone(),
            interrupted: &interrupted,
            observe: Duration::from_millis(20),
            keep_going: false,
            pause_after,
        };
        let mut events = Vec::new();
        let mut tell = |event: &Event| {
            bundle.on_event(event)?;
            events.push(event.clone());
            if stop(event) {
                interrupted.set();
            }
            Ok(())
        };
        let ending = plimsoll_runner::run(&run, look, &mut tell).expect("a run");
        Ran { ending, events }
    }
}
