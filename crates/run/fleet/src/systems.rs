//! The systems that an agent runs on its host for a run. They end with the engagement, however that ends: with its thread, and
//! if the agent is killed, by their wardens.

use crate::message::{Answer, FromHost, HostOrder, Refusal, Reply};
use bytes::Bytes;
use plimsoll_model::sample::Samples;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::UnixTime;
use plimsoll_runner::{FilesOfSystem, programs_of, target};
use plimsoll_system::{Interrupt, Launcher, Running, check_commands, check_containers, free_port, sha256};
use plimsoll_telemetry::{Sampler, host_facts};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc::UnboundedSender;

/// The time after which systems, their output and samples are looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The most bytes of output that are sent in one message.
const MOST_OUTPUT: u64 = 256 << 10;

/// What runs the systems of one engagement.
pub(crate) struct Systems {
    /// The agent's name in samples.
    pub(crate) name: String,
    pub(crate) launcher: Launcher,
    /// Outputs lie here until they are sent.
    pub(crate) folder: PathBuf,
    pub(crate) answers: UnboundedSender<Bytes>,
    /// Ends all waiting.
    pub(crate) interrupt: Interrupt,
}

/// A system that runs. Its fields are dropped in this order: it ends before its files are removed.
struct Carried {
    running: Running,
    _files: Option<FilesOfSystem>,
    variant: usize,
    output: Tail,
    /// True if its end was told.
    has_ended: bool,
}

/// Sampling under way, whose instants count from `zero`.
struct Sampling {
    number: u32,
    sampler: Sampler,
    zero: Instant,
}

/// What runs and is sampled by now.
#[derive(Default)]
struct State {
    systems: BTreeMap<u32, Carried>,
    sampling: Option<Sampling>,
    /// The hashes of programs, by file.
    hashes: BTreeMap<PathBuf, Option<String>>,
}

impl Systems {
    /// Follows orders until nobody gives any more. Then all systems are killed.
    pub(crate) fn run(self, orders: &Receiver<(u32, HostOrder)>) {
        let mut state = State::default();
        loop {
            match orders.recv_timeout(LOOK_EVERY) {
                Ok((about, order)) => {
                    if let Some(result) = self.follow(about, order, &mut state) {
                        self.tell(about, FromHost::Reply(result));
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.look(&mut state),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn tell(&self, about: u32, what: FromHost) {
        // If nobody takes it, nobody waits for it.
        let _ = self.answers.send(Answer::Host { about, what }.to_bytes());
    }

    /// Carries out an order. None where there is no reply.
    fn follow(&self, about: u32, order: HostOrder, state: &mut State) -> Option<Result<Reply, Refusal>> {
        let reply = match order {
            HostOrder::Describe => Ok(Reply::Host(Box::new(host_facts(&self.name)))),
            HostOrder::FreePort => free_port().map(Reply::Port).map_err(Refusal::from),
            HostOrder::Check(system) => Ok(Reply::Faults(faults(&system))),
            HostOrder::Build(system) => self.build(about, &system),
            HostOrder::Versions(system) => {
                programs_of(&self.launcher, &system, &self.interrupt).map(Reply::Versions).map_err(Refusal::from)
            }
            HostOrder::Start { variant, what } => self.start(about, variant, &what, state),
            HostOrder::WaitReady => self.wait_ready(about, state),
            HostOrder::Stop => self.stop(about, state),
            HostOrder::Kill => {
                state.systems.remove(&about);
                return None;
            }
            HostOrder::Sample => self.sample(about, state),
            HostOrder::StopSampling => Ok(stop_sampling(state)),
        };
        Some(reply)
    }

    fn build(&self, about: u32, system: &SystemSpec) -> Result<Reply, Refusal> {
        let log = self.folder.join(format!("build-{about}.log"));
        let built = self.launcher.build(system, &log, &self.interrupt);
        let mut output = Tail { file: log, sent: 0 };
        self.forward(about, &mut output);
        Ok(Reply::Built { took: built? })
    }

    fn start(&self, about: u32, variant: usize, system: &SystemSpec, state: &mut State) -> Result<Reply, Refusal> {
        let files = system.files.as_ref().map(|files| FilesOfSystem::write(&system.name, files));
        let files = files.transpose().map_err(Refusal::Failed)?;
        let file = self.folder.join(format!("output-{about}.log"));
        let mut output = Tail { file: file.clone(), sent: 0 };
        let started = self.launcher.start(system, &file);
        let running = started.inspect_err(|_| self.forward(about, &mut output))?;
        state.systems.insert(about, Carried { running, _files: files, variant, output, has_ended: false });
        Ok(Reply::Started)
    }

    fn wait_ready(&self, about: u32, state: &mut State) -> Result<Reply, Refusal> {
        let State { systems, hashes, .. } = state;
        let carried = systems.get_mut(&about).ok_or_else(|| not_there("wait for"))?;
        let ready = carried.running.wait_ready(&self.interrupt);
        self.forward(about, &mut carried.output);
        let after = ready?;
        let hash = |file: PathBuf| {
            let hash = hashes.entry(file.clone()).or_insert_with(|| sha256(&file).ok());
            (file, hash.clone())
        };
        Ok(Reply::Ready {
            after,
            executable: carried.running.executable().map(hash),
            of_containers: carried.running.versions_of_containers(),
        })
    }

    fn stop(&self, about: u32, state: &mut State) -> Result<Reply, Refusal> {
        let carried = state.systems.remove(&about).ok_or_else(|| not_there("stop"))?;
        let Carried { running, _files, mut output, .. } = carried;
        let stopped = running.stop();
        self.forward(about, &mut output);
        output.remove();
        Ok(Reply::Stopped(stopped?))
    }

    fn sample(&self, about: u32, state: &mut State) -> Result<Reply, Refusal> {
        let targets = state.systems.values().map(|carried| target(&carried.running, carried.variant)).collect();
        let (zero, since) = (Instant::now(), UnixTime::of(SystemTime::now()));
        let started = Sampler::start(&self.name, targets, &|| self.interrupt.is_set());
        let sampler = started.map_err(|error| match error.kind() {
            ErrorKind::Interrupted => Refusal::Interrupted,
            _ => Refusal::Failed(error.to_string()),
        })?;
        state.sampling = Some(Sampling { number: about, sampler, zero });
        Ok(Reply::Sampling { since })
    }

    /// Passes on what is new: output, samples, and systems that have ended.
    fn look(&self, state: &mut State) {
        for (about, carried) in &mut state.systems {
            self.forward(*about, &mut carried.output);
            if !carried.has_ended
                && let Err(error) = carried.running.check()
            {
                carried.has_ended = true;
                self.tell(*about, FromHost::Ended(error.to_string()));
            }
        }
        if let Some(sampling) = &state.sampling {
            let samples = sampling.sampler.take(sampling.zero);
            if !samples.is_empty() {
                self.tell(sampling.number, FromHost::Samples(samples));
            }
        }
    }

    fn forward(&self, about: u32, output: &mut Tail) {
        // What cannot be read does not keep the system from its work.
        while let Ok(Some(bytes)) = output.next() {
            self.tell(about, FromHost::Output(bytes));
        }
    }
}

fn stop_sampling(state: &mut State) -> Reply {
    let Some(Sampling { sampler, zero, .. }) = state.sampling.take() else {
        return Reply::Sampled { samples: Samples::default(), complaints: Vec::new() };
    };
    let last = sampler.stop(zero);
    Reply::Sampled { samples: last.samples, complaints: last.complaints }
}

/// What would keep a system from starting here.
fn faults(system: &SystemSpec) -> Vec<String> {
    let mut faults: Vec<String> = check_commands(system).iter().map(ToString::to_string).collect();
    if faults.is_empty() && system.containers.is_some() {
        faults.extend(check_containers(system, &[]).map(|fault| fault.to_string()));
    }
    faults
}

fn not_there(what: &str) -> Refusal {
    Refusal::Failed(format!("there is no system to {what}"))
}

/// A file that grows, and how much of it was sent.
struct Tail {
    file: PathBuf,
    sent: u64,
}

impl Tail {
    /// The next bytes that were not sent; none if there are none by now.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.sent))?;
        let mut bytes = Vec::new();
        let read = file.take(MOST_OUTPUT).read_to_end(&mut bytes)? as u64;
        self.sent += read;
        Ok((read > 0).then_some(bytes))
    }

    /// Removes the file, whose system has ended: an engagement may start many.
    fn remove(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
