//! An agent as a host on which systems run, seen from the coordinator. What a system writes there comes into a file here.

use crate::clock::{date_of, instant_of};
use crate::coordinator::Shared;
use crate::member::{FromAgent, Member, Topic};
use crate::message::{Answer, DatabaseOrder, FromHost, HostOrder, Order, Refusal, Reply, SentDatabase};
use plimsoll_database::CounterSeries;
use plimsoll_model::database::{Condition, Database, DatabaseFacts, Endpoint};
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host as HostFacts, Version};
use plimsoll_model::sample::{Samples, signed_seconds};
use plimsoll_model::storage::Secret;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::UnixTime;
use plimsoll_runner::host::{DatabaseElsewhere, Host, HostError, SamplerElsewhere, StartedDatabase, SystemElsewhere};
use plimsoll_study::Place;
use plimsoll_system::{BoundedOutput, Interrupt, Stopped};
use plimsoll_telemetry::{LastSamples, UseByOthers};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// An interruption is noticed after at most this time.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The longest for which the end of what was interrupted is waited for.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(10);

/// The host of an agent.
pub(crate) struct AgentHost {
    pub(crate) shared: Arc<Shared>,
    /// The place of the agent among those that run systems.
    pub(crate) index: usize,
}

impl AgentHost {
    fn agent(&self) -> &Member {
        &self.shared.hosts[self.index].member
    }

    /// Gives an order that begins something new, and waits for the reply. What comes of it later is in the conversation.
    fn begin(
        &self,
        order: HostOrder,
        output: Option<Output>,
        interrupt: &Interrupt,
    ) -> Result<(Conversation, Reply), HostError> {
        let conversation = Conversation::begin(&self.shared, self.index, output);
        let reply = conversation.ask(order, Some(interrupt))?;
        Ok((conversation, reply))
    }

    fn ask(&self, order: HostOrder, interrupt: &Interrupt) -> Result<Reply, HostError> {
        self.begin(order, None, interrupt).map(|(_, reply)| reply)
    }
}

impl Host for AgentHost {
    fn name(&self) -> &str {
        &self.agent().name
    }

    fn place(&self, files: &Path) -> Place {
        let host = &self.shared.hosts[self.index];
        let there = host.member.facts.systems.as_ref().expect("only an agent that runs systems is such a host");
        Place {
            address: there.address,
            folder: there.folder.clone(),
            plimsoll: there.program.clone(),
            files: host.folder.join("files").join(files),
            processors: there.processors.clone(),
        }
    }

    fn describe(&self, interrupt: &Interrupt) -> Result<HostFacts, HostError> {
        match self.ask(HostOrder::Describe, interrupt)? {
            // Two agents of one host have names of their own.
            Reply::Host(facts) => Ok(HostFacts { machine: self.name().to_owned(), ..*facts }),
            _ => Err(self.strange()),
        }
    }

    fn free_port(&self, interrupt: &Interrupt) -> Result<u16, HostError> {
        match self.ask(HostOrder::FreePort, interrupt)? {
            Reply::Port(port) => Ok(port),
            _ => Err(self.strange()),
        }
    }

    fn end_left_over(
        &self,
        run: &str,
        systems: &[SystemSpec],
        interrupt: &Interrupt,
    ) -> Result<(usize, usize), HostError> {
        let order = HostOrder::EndLeftOver { run: run.to_owned(), systems: systems.to_vec() };
        match self.ask(order, interrupt)? {
            Reply::Ended { processes, containers } => Ok((processes, containers)),
            _ => Err(self.strange()),
        }
    }

    fn check(&self, system: &SystemSpec, services: &[String], interrupt: &Interrupt) -> Result<Vec<String>, HostError> {
        let order = HostOrder::Check { system: Box::new(system.clone()), services: services.to_vec() };
        match self.ask(order, interrupt)? {
            Reply::Faults(faults) => Ok(faults),
            _ => Err(self.strange()),
        }
    }

    fn build(&self, system: &SystemSpec, log: &Path, interrupt: &Interrupt) -> Result<Duration, HostError> {
        let order = HostOrder::Build(Box::new(system.clone()));
        match self.begin(order, Some(Output::open("build", log)?), interrupt)? {
            (_, Reply::Built { took }) => Ok(took),
            _ => Err(self.strange()),
        }
    }

    fn check_database(&self, database: &Database, interrupt: &Interrupt) -> Result<Vec<String>, HostError> {
        match self.ask(HostOrder::CheckDatabase(Box::new(SentDatabase::new(database))), interrupt)? {
            Reply::Faults(faults) => Ok(faults),
            _ => Err(self.strange()),
        }
    }

    fn start_database(
        &self,
        database: &Database,
        variant: usize,
        outputs: [&Path; 2],
        on_data: &mut dyn FnMut(&Event),
        on_secret: &mut dyn FnMut(&Secret),
        interrupt: &Interrupt,
    ) -> Result<StartedDatabase, HostError> {
        let [output, of_migration] = outputs;
        let conversation = Conversation::begin(&self.shared, self.index, Some(Output::open("output", output)?));
        let order = HostOrder::StartDatabase { variant, what: Box::new(SentDatabase::new(database)) };
        let mut password = None;
        let mut tell = |what: FromHost| match what {
            FromHost::Data(event) => on_data(&event),
            FromHost::Password(text) => {
                let secret = Secret(text);
                on_secret(&secret);
                password = Some(secret);
            }
            _ => {}
        };
        let reply = conversation.ask_telling(order, Some(interrupt), &mut tell)?;
        let (shared, index, of) = (Arc::clone(&self.shared), self.index, conversation.number);
        // From here on the server is killed with this.
        let mut server =
            RemoteSystem { name: database.name.clone(), conversation, facts: (None, Vec::new()), is_stopped: false };
        let Reply::DatabaseReady { after, executable, endpoint, migration } = reply else {
            return Err(self.strange());
        };
        server.facts.0 = executable;
        if !migration.is_empty() {
            let write = Output::open(OF_MIGRATION, of_migration)?.write(&migration);
            write.map_err(|error| HostError::Failed(format!("failed to write {}: {error}", of_migration.display())))?;
        }
        let endpoint = Endpoint { password, ..*endpoint };
        Ok(StartedDatabase {
            database: Box::new(RemoteDatabase { host: AgentHost { shared, index }, of, endpoint }),
            server: Box::new(server),
            ready_after: after,
        })
    }

    fn version(&self, system: &SystemSpec, interrupt: &Interrupt) -> Result<Vec<Version>, HostError> {
        match self.ask(HostOrder::Version(Box::new(system.clone())), interrupt)? {
            Reply::Versions(versions) => Ok(versions),
            _ => Err(self.strange()),
        }
    }

    fn arguments(&self, system: &SystemSpec, interrupt: &Interrupt) -> Result<Vec<Version>, HostError> {
        match self.ask(HostOrder::Arguments(Box::new(system.clone())), interrupt)? {
            Reply::Versions(versions) => Ok(versions),
            _ => Err(self.strange()),
        }
    }

    fn start(
        &self,
        system: &SystemSpec,
        variant: usize,
        output: &Path,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn SystemElsewhere>, HostError> {
        let order = HostOrder::Start { variant, what: Box::new(system.clone()) };
        match self.begin(order, Some(Output::open("output", output)?), interrupt)? {
            (conversation, Reply::Started) => {
                let facts = (None, Vec::new());
                Ok(Box::new(RemoteSystem { name: system.name.clone(), conversation, facts, is_stopped: false }))
            }
            _ => Err(self.strange()),
        }
    }

    fn sample(&self, interrupt: &Interrupt) -> Result<Box<dyn SamplerElsewhere>, HostError> {
        let (conversation, reply) = self.begin(HostOrder::Sample, None, interrupt)?;
        let Reply::Sampling { since } = reply else { return Err(self.strange()) };
        Ok(Box::new(RemoteSampler { conversation, since }))
    }
}

impl AgentHost {
    fn strange(&self) -> HostError {
        HostError::Failed(format!("agent `{}` answered something else than it was asked", self.name()))
    }
}

/// The beginning of the name of the file there with the output of a migration. Where that fails, it comes with that of the server.
const OF_MIGRATION: &str = "migrate";

/// The file here for what is written there.
struct Output {
    /// The beginning of the name of the file there.
    name: &'static str,
    path: PathBuf,
    file: File,
    /// That file again, kept from filling the disk: the agent is not relied on for that.
    bounded: BoundedOutput,
}

impl Output {
    fn open(name: &'static str, path: &Path) -> Result<Output, HostError> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let opened = opened.and_then(|file| Ok((BoundedOutput::of(file.try_clone()?), file)));
        let (bounded, file) =
            opened.map_err(|error| HostError::Failed(format!("failed to open {}: {error}", path.display())))?;
        Ok(Output { name, path: path.to_owned(), file, bounded })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bounded.bound()
    }
}

/// What is said about a build, a system or a sampling on an agent's host.
struct Conversation {
    shared: Arc<Shared>,
    index: usize,
    number: u32,
    answers: Receiver<(usize, FromAgent)>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    output: Option<Output>,
    /// What became of the system, if it has ended by itself.
    ended: Option<String>,
    samples: Samples,
    /// Why output could not be written.
    unwritten: Option<io::Error>,
}

impl Conversation {
    fn begin(shared: &Arc<Shared>, index: usize, output: Option<Output>) -> Conversation {
        let (number, (sender, answers)) = (shared.next_number(), channel());
        shared.hosts[index].desk.listen(Topic::Host(number), sender);
        let state = RefCell::new(State { output, ..State::default() });
        Conversation { shared: Arc::clone(shared), index, number, answers, state }
    }

    fn order(&self, what: HostOrder) {
        self.agent().order(&Order::Host { about: self.number, what });
    }

    fn agent(&self) -> &Member {
        &self.shared.hosts[self.index].member
    }

    /// Gives an order and waits for the reply. With an `interrupt`, the order is one that an interruption ends.
    fn ask(&self, order: HostOrder, interrupt: Option<&Interrupt>) -> Result<Reply, HostError> {
        self.ask_telling(order, interrupt, &mut |_| ())
    }

    /// The same; `tell` gets what comes meanwhile about a database that gets ready.
    fn ask_telling(
        &self,
        order: HostOrder,
        interrupt: Option<&Interrupt>,
        tell: &mut dyn FnMut(FromHost),
    ) -> Result<Reply, HostError> {
        self.check_agent()?;
        self.order(order);
        let mut interrupted: Option<Instant> = None;
        loop {
            match self.answers.recv_timeout(POLL_EVERY) {
                Ok((
                    _,
                    FromAgent::Answer(Answer::Host {
                        what: what @ (FromHost::Data(_) | FromHost::Password(_)), ..
                    }),
                )) => tell(what),
                Ok((_, message)) => {
                    if let Some(reply) = self.take(message)? {
                        return reply.map_err(|refusal| match refusal {
                            Refusal::Interrupted => HostError::Interrupted,
                            Refusal::Failed(reason) => HostError::Failed(self.at_agent(&reason)),
                        });
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.check_agent()?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost("its line is closed")),
            }
            if interrupt.is_some_and(Interrupt::is_set) {
                let since = *interrupted.get_or_insert_with(|| {
                    self.agent().order(&Order::Interrupt);
                    Instant::now()
                });
                if since.elapsed() > INTERRUPTED_WITHIN {
                    return Err(HostError::Interrupted);
                }
            }
        }
    }

    /// Takes a message; returns a reply, if it is one.
    fn take(&self, message: FromAgent) -> Result<Option<Result<Reply, Refusal>>, HostError> {
        let mut state = self.state.borrow_mut();
        match message {
            FromAgent::Lost(why) => return Err(self.lost(&why)),
            FromAgent::Answer(Answer::Host { what: FromHost::Reply(reply), .. }) => return Ok(Some(reply)),
            FromAgent::Answer(Answer::Host { what: FromHost::Output(bytes), .. }) => {
                if let Some(output) = &mut state.output
                    && let Err(error) = output.write(&bytes)
                {
                    state.unwritten.get_or_insert(error);
                }
            }
            FromAgent::Answer(Answer::Host { what: FromHost::Ended(why), .. }) => state.ended = Some(why),
            FromAgent::Answer(Answer::Host { what: FromHost::Samples(samples), .. }) => state.samples.extend(samples),
            FromAgent::Answer(_) => {}
        }
        Ok(None)
    }

    /// Takes what has come.
    fn take_all(&self) -> Result<(), HostError> {
        while let Ok((_, message)) = self.answers.try_recv() {
            self.take(message)?;
        }
        self.check_agent()
    }

    fn check_agent(&self) -> Result<(), HostError> {
        self.agent().lost().map_or(Ok(()), |why| Err(self.lost(&why)))
    }

    fn lost(&self, why: &str) -> HostError {
        let agent = &self.agent().name;
        HostError::Lost(format!("agent `{agent}`, on whose host systems run, was lost: {why}"))
    }

    /// A message from there, which names the file here in the place of the one there.
    fn at_agent(&self, reason: &str) -> String {
        let mut reason = reason.to_owned();
        if let Some(output) = &self.state.borrow().output {
            for name in [output.name, OF_MIGRATION] {
                let there = self.shared.hosts[self.index].folder.join(format!("{name}-{}.log", self.number));
                reason = reason.replace(&*there.to_string_lossy(), &output.path.to_string_lossy());
            }
        }
        format!("on the host of agent `{}`: {reason}", self.agent().name)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.shared.hosts[self.index].desk.leave(Topic::Host(self.number));
    }
}

struct RemoteSystem {
    name: String,
    conversation: Conversation,
    /// The file that its first process runs, and the images of its containers.
    facts: (Option<(PathBuf, Option<String>)>, Vec<Version>),
    is_stopped: bool,
}

impl SystemElsewhere for RemoteSystem {
    fn wait_ready(&mut self, interrupt: &Interrupt) -> Result<Duration, HostError> {
        match self.conversation.ask(HostOrder::WaitReady, Some(interrupt))? {
            Reply::Ready { after, executable, of_containers } => {
                self.facts = (executable, of_containers);
                Ok(after)
            }
            _ => Err(HostError::Failed(format!("nothing is known of `{}`", self.name))),
        }
    }

    fn check(&self) -> Result<(), HostError> {
        self.conversation.take_all()?;
        let state = self.conversation.state.borrow();
        match (&state.ended, &state.unwritten) {
            (Some(why), _) => Err(HostError::Failed(self.conversation.at_agent(why))),
            (None, Some(error)) => {
                Err(HostError::Failed(format!("failed to write the output of `{}`: {error}", self.name)))
            }
            (None, None) => Ok(()),
        }
    }

    fn executable(&self) -> Option<(PathBuf, Option<String>)> {
        self.facts.0.clone()
    }

    fn versions_of_containers(&self) -> Vec<Version> {
        self.facts.1.clone()
    }

    fn stop(mut self: Box<Self>) -> Result<Stopped, HostError> {
        self.is_stopped = true;
        match self.conversation.ask(HostOrder::Stop, None)? {
            Reply::Stopped(stopped) => Ok(stopped),
            _ => Err(HostError::Failed(format!("nothing is known of `{}`", self.name))),
        }
    }
}

impl Drop for RemoteSystem {
    fn drop(&mut self) {
        if !self.is_stopped {
            self.conversation.order(HostOrder::Kill);
        }
    }
}

struct RemoteDatabase {
    host: AgentHost,
    /// Its number there.
    of: u32,
    endpoint: Endpoint,
}

impl RemoteDatabase {
    fn ask(&self, what: DatabaseOrder, interrupt: Option<&Interrupt>) -> Result<Reply, HostError> {
        let conversation = Conversation::begin(&self.host.shared, self.host.index, None);
        conversation.ask(HostOrder::Database { of: self.of, what }, interrupt)
    }

    fn ask_whether(&self, what: DatabaseOrder, interrupt: Option<&Interrupt>) -> Result<(), HostError> {
        match self.ask(what, interrupt)? {
            Reply::Done => Ok(()),
            _ => Err(self.host.strange()),
        }
    }
}

impl DatabaseElsewhere for RemoteDatabase {
    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn facts(&self) -> Result<DatabaseFacts, HostError> {
        match self.ask(DatabaseOrder::Facts, None)? {
            Reply::DatabaseFacts(facts) => Ok(*facts),
            _ => Err(self.host.strange()),
        }
    }

    fn check_connections(&self, users: u32) -> Result<(), HostError> {
        self.ask_whether(DatabaseOrder::CheckConnections(users), None)
    }

    fn sample(&self) -> Result<(), HostError> {
        self.ask_whether(DatabaseOrder::Sample, None)
    }

    fn stop_sampling(&self, zero: Instant, window: Duration) -> Result<CounterSeries, HostError> {
        let offset = self.host.agent().offset().unwrap_or_default();
        let zero = offset.on_agent(date_of(zero));
        match self.ask(DatabaseOrder::StopSampling { zero, window }, None)? {
            Reply::Counters { samples, session_lost } => Ok(CounterSeries { samples, session_lost }),
            _ => Err(self.host.strange()),
        }
    }

    fn check_expected(&self, interrupt: &Interrupt) -> Result<(), HostError> {
        self.ask_whether(DatabaseOrder::CheckExpected, Some(interrupt))
    }

    fn conditions(&self, of_workload: Option<Duration>, interrupt: &Interrupt) -> Result<Vec<Condition>, HostError> {
        match self.ask(DatabaseOrder::Conditions(of_workload), Some(interrupt))? {
            Reply::Conditions(conditions) => Ok(conditions),
            _ => Err(self.host.strange()),
        }
    }

    fn refused_login(&self) -> Option<String> {
        match self.ask(DatabaseOrder::RefusedLogin, None) {
            Ok(Reply::RefusedLogin(said)) => said,
            _ => None,
        }
    }
}

struct RemoteSampler {
    conversation: Conversation,
    /// What the instants of samples count from, on the agent's clock.
    since: UnixTime,
}

impl RemoteSampler {
    /// Seconds from what the instants of samples count from to `zero`.
    fn shift(&self, zero: Instant) -> f64 {
        // The clocks may drift apart.
        let ahead = self.conversation.agent().offset().map_or(0, |offset| offset.ahead);
        signed_seconds(instant_of(UnixTime(self.since.0 - ahead)), zero)
    }

    fn from(&self, zero: Instant, mut samples: Samples) -> Samples {
        samples.shift(self.shift(zero));
        // Here the agent may have another name than it has there.
        let name = &self.conversation.agent().name;
        samples.processes.iter_mut().for_each(|sample| sample.machine.clone_from(name));
        samples.host.iter_mut().for_each(|sample| sample.machine.clone_from(name));
        samples
    }
}

impl Drop for RemoteSampler {
    fn drop(&mut self) {
        // Nobody waits for the reply, and a second order changes nothing.
        self.conversation.order(HostOrder::StopSampling);
    }
}

impl SamplerElsewhere for RemoteSampler {
    fn take(&self, zero: Instant) -> Samples {
        // A host that is lost is noticed by its systems.
        let _ = self.conversation.take_all();
        let samples = std::mem::take(&mut self.conversation.state.borrow_mut().samples);
        self.from(zero, samples)
    }

    fn stop(self: Box<Self>, zero: Instant) -> LastSamples {
        let reply = self.conversation.ask(HostOrder::StopSampling, None);
        let mut samples = std::mem::take(&mut self.conversation.state.borrow_mut().samples);
        let (mut others, complaints) = match reply {
            Ok(Reply::Sampled { samples: last, others, complaints }) => {
                samples.extend(last);
                (others, complaints)
            }
            Ok(_) | Err(HostError::Interrupted) => Default::default(),
            Err(error) => (UseByOthers::default(), vec![format!("the last samples of a host are missing: {error}")]),
        };
        // Samples are moved to an earlier instant by so much, and this to a later one.
        others.shift(-self.shift(zero));
        LastSamples { samples: self.from(zero, samples), others, complaints }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_from_another_host_keeps_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output.log");
        let mut output = Output::open("output", &path).expect("a file");
        let bytes = vec![b'x'; 1 << 20];
        (0..66).for_each(|_| output.write(&bytes).expect("a disk"));
        let length = std::fs::metadata(&path).expect("a file").len();
        assert!((32 << 20..64 << 20).contains(&length), "{length} bytes");
    }
}
