//! The systems that an agent runs on its host for a run. They end with the engagement, however that ends: with its thread, and
//! if the agent is killed, by their wardens.

use crate::clock::instant_of;
use crate::message::{Answer, DatabaseOrder, FromHost, HostOrder, Refusal, Reply};
use bytes::Bytes;
use plimsoll_database::{CounterSampler, CounterSeries, Databases, PreparedDatabase, check_disk_space_of_starts};
use plimsoll_model::database::{Database, Origin};
use plimsoll_model::event::Event;
use plimsoll_model::sample::Samples;
use plimsoll_model::sql::Transport;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::UnixTime;
use plimsoll_runner::{FilesOfSystem, arguments, target};
use plimsoll_system::{
    Interrupt, Launcher, Running, check_commands, check_containers, check_port_free, free_port, sha256,
};
use plimsoll_telemetry::{LastSamples, Sampler, host_facts};
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

/// The most messages with output of a system that are sent at each look: others wait meanwhile.
const MOST_MESSAGES: usize = 4;

/// The last bytes of a file whose middle was left out, with the line that says so.
const END: u64 = 66 << 10;

/// The runner of the systems of one engagement.
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

/// A system that runs, or the server of a database. Its fields are dropped in this order: it ends before its data and its files
/// are removed.
struct Carried {
    /// The sampler of a database's counters, while load runs.
    counters: Option<CounterSampler>,
    running: Running,
    database: Option<(Database, PreparedDatabase)>,
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

/// The systems that run by now, and their sampling.
#[derive(Default)]
struct State {
    systems: BTreeMap<u32, Carried>,
    sampling: Option<Sampling>,
    /// The data of databases; none before the first.
    databases: Option<Databases>,
    /// The databases whose data the disks were found to have room for, and that are not made yet.
    checked: Vec<Database>,
}

impl Systems {
    /// Follows orders until nobody gives any more. Then all systems are killed.
    pub(crate) fn run(mut self, orders: &Receiver<(u32, HostOrder)>) {
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
    fn follow(&mut self, about: u32, order: HostOrder, state: &mut State) -> Option<Result<Reply, Refusal>> {
        let reply = match order {
            HostOrder::Describe => Ok(Reply::Host(Box::new(host_facts(&self.name)))),
            HostOrder::FreePort => free_port().map(Reply::Port).map_err(Refusal::from),
            HostOrder::EndLeftOver { run, systems } => self.end_left_over(&run, &systems),
            HostOrder::Check { system, services } => Ok(Reply::Faults(faults(&system, &services))),
            HostOrder::Build(system) => self.build(about, &system),
            HostOrder::CheckDatabase(database) => {
                Ok(Reply::Faults(faults_of_database(database.unpack(), &mut state.checked)))
            }
            HostOrder::StartDatabase { variant, what } => self.start_database(about, variant, what.unpack(), state),
            HostOrder::Database { of, what } => self.ask_database(of, what, state),
            HostOrder::Version(system) => {
                let version = self.launcher.version_of(&system, &self.interrupt);
                version.map(|version| Reply::Versions(version.into_iter().collect())).map_err(Refusal::from)
            }
            HostOrder::Arguments(system) => Ok(Reply::Versions(arguments(&system))),
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

    /// Ends what an earlier part of the same run has left here.
    fn end_left_over(&mut self, run: &str, systems: &[SystemSpec]) -> Result<Reply, Refusal> {
        self.launcher = self.launcher.clone().of_run(run);
        let processes = self.launcher.end_left_over();
        let containers = systems.iter().map(|system| self.launcher.remove_left_over(system));
        let containers = containers.sum::<Result<usize, _>>()?;
        Ok(Reply::Ended { processes, containers })
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
        let (counters, database) = (None, None);
        let carried = Carried { counters, running, database, _files: files, variant, output, has_ended: false };
        state.systems.insert(about, carried);
        Ok(Reply::Started)
    }

    fn start_database(
        &self,
        about: u32,
        variant: usize,
        database: Database,
        state: &mut State,
    ) -> Result<Reply, Refusal> {
        // Data that is made from here on is no longer part of the free space.
        state.checked.clear();
        let databases = state.databases.get_or_insert_with(|| Databases::new(&self.launcher, &self.folder));
        let mut on_data = |event: &Event| self.tell(about, FromHost::Data(Box::new(event.clone())));
        let prepared = databases.prepare(&database, &self.interrupt, &mut on_data)?;
        let endpoint = prepared.endpoint(Transport::Tcp);
        if let Some(password) = &endpoint.password {
            self.tell(about, FromHost::Password(password.0.clone()));
        }
        let began = Instant::now();
        let file = self.folder.join(format!("output-{about}.log"));
        let migration = self.folder.join(format!("migrate-{about}.log"));
        let mut output = Tail { file: file.clone(), sent: 0 };
        let system = prepared.system.as_ref().ok_or_else(|| not_there("start"))?;
        let started = self.launcher.start(system, &file);
        let running = started.inspect_err(|_| self.forward(about, &mut output))?;
        let ready = running
            .wait_ready(&self.interrupt)
            .map_err(Refusal::from)
            .and_then(|_| Ok(prepared.wait_ready(Some(&running), &migration, &self.interrupt)?));
        self.forward(about, &mut output);
        if ready.is_err() {
            // It may be the migration that has failed.
            self.forward(about, &mut Tail { file: migration.clone(), sent: 0 });
            output.remove();
            let _ = std::fs::remove_file(&migration);
        }
        ready?;
        let after = began.elapsed();
        let reply = Reply::DatabaseReady {
            after,
            executable: executable(&running),
            endpoint: Box::new(endpoint),
            migration: std::fs::read(&migration).unwrap_or_default(),
        };
        let _ = std::fs::remove_file(&migration);
        let (counters, database) = (None, Some((database, prepared)));
        let carried = Carried { counters, running, database, _files: None, variant, output, has_ended: false };
        state.systems.insert(about, carried);
        Ok(reply)
    }

    fn ask_database(&self, of: u32, what: DatabaseOrder, state: &mut State) -> Result<Reply, Refusal> {
        let carried = state.systems.get_mut(&of).ok_or_else(|| not_there("ask"))?;
        let Carried { counters, running, database, .. } = carried;
        let (database, prepared) = database.as_ref().ok_or_else(|| not_there("ask"))?;
        Ok(match what {
            DatabaseOrder::Facts => {
                Reply::DatabaseFacts(Box::new(plimsoll_database::facts(database, prepared, Transport::Tcp)?))
            }
            DatabaseOrder::CheckConnections(users) => {
                plimsoll_database::check_connections(database, prepared, users)?;
                Reply::Done
            }
            DatabaseOrder::Sample => {
                *counters = Some(CounterSampler::start(database, prepared)?);
                Reply::Done
            }
            DatabaseOrder::StopSampling { zero, window } => {
                let series = counters.take().map(|counters| counters.stop(instant_of(zero), window));
                let CounterSeries { samples, session_lost } = series.unwrap_or_default();
                Reply::Counters { samples, session_lost }
            }
            DatabaseOrder::CheckExpected => {
                plimsoll_database::check_expected(database, prepared, &self.interrupt)?;
                Reply::Done
            }
            DatabaseOrder::Conditions(of_workload) => {
                Reply::Conditions(plimsoll_database::conditions(database, prepared, of_workload, &self.interrupt)?)
            }
            DatabaseOrder::RefusedLogin => {
                Reply::RefusedLogin(plimsoll_database::refused_login(database.engine, running))
            }
        })
    }

    fn wait_ready(&self, about: u32, state: &mut State) -> Result<Reply, Refusal> {
        let carried = state.systems.get_mut(&about).ok_or_else(|| not_there("wait for"))?;
        let ready = carried.running.wait_ready(&self.interrupt);
        self.forward(about, &mut carried.output);
        let after = ready?;
        Ok(Reply::Ready {
            after,
            executable: executable(&carried.running),
            of_containers: carried.running.versions_of_containers(),
        })
    }

    fn stop(&self, about: u32, state: &mut State) -> Result<Reply, Refusal> {
        let carried = state.systems.remove(&about).ok_or_else(|| not_there("stop"))?;
        let Carried { counters, running, database: _database, _files, mut output, .. } = carried;
        drop(counters);
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
            self.forward_some(*about, &mut carried.output, MOST_MESSAGES);
            if !carried.has_ended
                && let Err(error) = carried.running.check()
            {
                carried.has_ended = true;
                self.forward(*about, &mut carried.output);
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

    /// Passes on what was written by now: the file may grow meanwhile.
    fn forward(&self, about: u32, output: &mut Tail) {
        let messages = output.length().div_ceil(MOST_OUTPUT) as usize;
        self.forward_some(about, output, messages);
    }

    fn forward_some(&self, about: u32, output: &mut Tail, messages: usize) {
        for _ in 0..messages {
            // What cannot be read does not keep the system from its work.
            let Ok(Some(bytes)) = output.next() else { return };
            self.tell(about, FromHost::Output(bytes));
        }
    }
}

fn stop_sampling(state: &mut State) -> Reply {
    let Some(Sampling { sampler, zero, .. }) = state.sampling.take() else {
        return Reply::Sampled { samples: Samples::default(), others: Default::default(), complaints: Vec::new() };
    };
    let LastSamples { samples, others, complaints } = sampler.stop(zero);
    Reply::Sampled { samples, others, complaints }
}

/// The faults that would keep a database from starting here, beside those that were `checked` before it.
fn faults_of_database(database: Database, checked: &mut Vec<Database>) -> Vec<String> {
    let port = match &database.origin {
        Origin::Started(server) if server.port != 0 => Some(server.port),
        _ => None,
    };
    let mut faults = plimsoll_database::check(&database);
    faults.extend(faults_of_disks(database, checked));
    faults.extend(port.and_then(|port| check_port_free(port).err()).map(|fault| fault.to_string()));
    faults
}

/// The faults of disks that lack the room for a database beside those that were `checked` before it. A run keeps the
/// data of all of them. Their copies may come one after the other: only the largest is counted, because an agent is
/// not told which databases are alive at the same time.
fn faults_of_disks(database: Database, checked: &mut Vec<Database>) -> Vec<String> {
    checked.push(database);
    let starts: Vec<Vec<Database>> = checked.iter().map(|database| vec![database.clone()]).collect();
    let faults = check_disk_space_of_starts(&starts);
    if !faults.is_empty() {
        // The disk may have room for the next one.
        checked.pop();
    }
    faults
}

/// The file that the first process of a system runs, with its SHA-256.
fn executable(running: &Running) -> Option<(PathBuf, Option<String>)> {
    let file = running.executable()?;
    let hash = sha256(&file).ok();
    Some((file, hash))
}

/// The faults that would keep a system from starting here; `services` are those of its containers that are measured.
fn faults(system: &SystemSpec, services: &[String]) -> Vec<String> {
    let mut faults: Vec<String> = check_commands(system).iter().map(ToString::to_string).collect();
    if faults.is_empty() && system.containers.is_some() {
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        faults.extend(check_containers(system, &services).map(|fault| fault.to_string()));
    }
    faults.extend(system.port.and_then(|port| check_port_free(port).err()).map(|fault| fault.to_string()));
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
    /// The bytes of the file by now.
    fn length(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    /// The next bytes that were not sent; none if there are none by now.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut file = File::open(&self.file)?;
        let length = file.metadata()?.len();
        if length < self.sent {
            // It had grown too long, and its middle was left out.
            self.sent = length.saturating_sub(END);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::{Dataset, Engine, LOADED, SERVICE, Server, Snapshot};
    use plimsoll_system::free_space;
    use std::fs;
    use std::net::Ipv4Addr;
    use std::path::Path;

    /// A database with so many rows in a folder, with a copy that takes space on every disk.
    fn database(name: &str, data: &Path, rows: u64) -> Database {
        let server = Server {
            on: None,
            programs: None,
            user: None,
            init: Vec::new(),
            data: Some(data.to_owned()),
            snapshot: Snapshot::Template,
            databases: vec![LOADED.to_owned()],
            roles: vec![SERVICE.to_owned()],
            password: None,
            migrate: None,
            listen: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            cpus: None,
            ready_within: Duration::ZERO,
            stop_grace: Duration::ZERO,
        };
        Database {
            name: name.to_owned(),
            engine: Engine::Postgresql,
            origin: Origin::Started(Box::new(server)),
            settings: Vec::new(),
            dataset: Dataset::Sbtest { tables: 1, rows, seed: 1 },
            warm: false,
            expected: Vec::new(),
        }
    }

    #[test]
    fn databases_that_fit_on_a_disk_singly_but_not_together_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: &str, rows| database(name, &folder.path().join(name), rows);
        // A row takes 260 bytes: data and its copy take 0.8 of the space, and the data of another 0.4 more.
        let rows = free_space(folder.path()).expect("a disk") * 2 / 5 / 260;
        let (one, other, small) = (make("one", rows), make("other", rows), make("small", 1));
        let (mut checked, nothing) = (Vec::new(), Vec::<String>::new());
        assert_eq!(faults_of_disks(other.clone(), &mut Vec::new()), nothing, "alone it fits");
        assert_eq!(faults_of_disks(one.clone(), &mut checked), nothing);
        assert_eq!(faults_of_disks(one.clone(), &mut checked), nothing, "another user of the same data");
        let said = faults_of_disks(other, &mut checked).join("; ");
        assert!(said.starts_with("no space: data and the copy for a trial take about "), "{said}");
        assert!(said.contains("`one`, ") && said.contains("`other`, "), "{said}");
        assert_eq!(faults_of_disks(small, &mut checked), nothing, "a small one still fits beside the first");
        assert_eq!(checked.len(), 3);
    }

    #[test]
    fn what_is_written_is_sent_once_and_the_end_of_what_was_cut_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("output.log");
        let mut tail = Tail { file: file.clone(), sent: 0 };
        assert!(tail.next().is_err() && tail.length() == 0, "nothing is there yet");
        fs::write(&file, "one\n").expect("a disk");
        assert_eq!(tail.next().expect("a file").as_deref(), Some(b"one\n".as_slice()));
        assert_eq!(tail.next().expect("a file"), None);
        fs::write(&file, vec![b'x'; 3 * END as usize]).expect("a disk");
        while tail.next().expect("a file").is_some() {}
        // As a warden leaves it: a beginning, a line about what is left out, and the end.
        fs::write(&file, [vec![b'x'; END as usize], vec![b'y'; END as usize]].concat()).expect("a disk");
        assert_eq!(tail.next().expect("a file"), Some(vec![b'y'; END as usize]));
        assert_eq!(tail.next().expect("a file"), None);
    }
}
