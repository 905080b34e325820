//! Messages between coordinator and agents, and their form on the wire: MessagePack, which keeps floating-point numbers
//! as they are, so that all generators compute the same schedule.

use crate::permit::Permits;
use bytes::{BufMut, Bytes, BytesMut};
use plimsoll_database::DatabaseError;
use plimsoll_model::database::{Condition, Database, DatabaseFacts, Endpoint};
use plimsoll_model::event::Event;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::job::{Job, JobError, JobRecord};
use plimsoll_model::sample::{DatabaseSample, Samples};
use plimsoll_model::script::Packed;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::SystemSpec;
use plimsoll_model::units::{Nanos, UnixTime};
use plimsoll_model::workload::Workload;
use plimsoll_system::{Stopped, SystemError};
use plimsoll_telemetry::UseByOthers;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The form of the messages. Programs of another form do not work together.
pub(crate) const FORM: u32 = 3;

/// An agent's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Its name: that of its host, unless it was given one.
    pub name: String,
    /// A text that no other agent has.
    pub id: String,
    /// The version of Plimsoll.
    pub version: String,
    /// The form of its messages.
    pub form: u32,
    /// Words from whoever started it, such as the rack that it stands in.
    pub labels: BTreeSet<String>,
    /// Processors that it may use.
    pub processors: usize,
    /// Threads that generate load.
    pub threads: usize,
    /// The hosts and folders that it may use.
    pub permits: Permits,
    /// Bytes of memory that are available to it, where that is known.
    pub memory: Option<u64>,
    /// The most files and sockets that it may open; none for any number.
    pub open_files: Option<u64>,
    /// A text that is the same for all whose loopback is the same; none where that is not known.
    pub network: Option<String>,
    /// True while it works for a run.
    pub is_busy: bool,
    /// Where systems run there; none for an agent that only generates load.
    pub systems: Option<PlaceForSystems>,
}

/// The place for systems on an agent's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceForSystems {
    /// The address at which others reach the host.
    pub address: IpAddr,
    /// The folder that stands for those of studies.
    pub folder: PathBuf,
    /// The agent's own program.
    pub program: PathBuf,
    /// The processors that systems may use.
    pub processors: Vec<usize>,
}

/// Asks an agent to work for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Engagement {
    /// A text that no other engagement has: part of the subjects of its messages.
    pub(crate) session: String,
    /// The run, for people.
    pub(crate) run: String,
}

/// An order of the coordinator to an agent.
#[derive(PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
pub(crate) enum Order {
    /// Compile a workload for the system at an address.
    Prepare {
        workload: u32,
        what: Box<Workload>,
        address: Option<SocketAddr>,
        files: Vec<SentFile>,
        /// The bucket of the object store that has the files.
        bucket: String,
        /// The secrets of the workload, in the order of [`Workload::secrets_mut`]: nothing writes them with it.
        secrets: Vec<String>,
    },
    /// Get the users of a job ready.
    Begin { job: u32, workload: u32, what: Box<Job> },
    /// Begin its load at an instant of the agent's clock.
    Go { job: u32, at: UnixTime },
    /// From now on so many users are to be at work.
    SetUsers { job: u32, users: u32 },
    /// No more iterations begin.
    End { job: u32 },
    /// Stop the job early.
    Stop { job: u32 },
    /// The users of all other agents have ended: a script may be torn down.
    OthersEnded { job: u32 },
    /// The workload is not needed any more: its users end.
    Forget { workload: u32 },
    /// Do something for systems. `about` is the number of a build, a system or a sampling, which answers have too.
    Host { about: u32, what: HostOrder },
    /// The run is interrupted: whatever systems wait for ends.
    Interrupt,
    /// The run is over: the agent is free.
    Release,
}

/// An order about systems on the agent's host.
#[derive(PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
pub(crate) enum HostOrder {
    /// Describe the host.
    Describe,
    /// Find a port that nobody listens on.
    FreePort,
    /// Take the name of the run, and end what an earlier part of it has left: processes, and containers of these systems.
    EndLeftOver { run: String, systems: Vec<SystemSpec> },
    /// Find what would keep a system from starting; its services are those that are measured.
    Check { system: Box<SystemSpec>, services: Vec<String> },
    /// Run the build command of a system.
    Build(Box<SystemSpec>),
    /// Find what would keep a database from starting.
    CheckDatabase(Box<SentDatabase>),
    /// Make the data of a database of a variant, restore it, start its server, and wait until it is ready.
    StartDatabase { variant: usize, what: Box<SentDatabase> },
    /// Ask the database of this number something.
    Database { of: u32, what: DatabaseOrder },
    /// Describe the program of a system.
    Version(Box<SystemSpec>),
    /// Describe the arguments of its start command that are files.
    Arguments(Box<SystemSpec>),
    /// Start a system of a variant.
    Start { variant: usize, what: Box<SystemSpec> },
    /// Wait until the system is ready.
    WaitReady,
    /// Stop the system.
    Stop,
    /// Kill the system, if it is still there. There is no reply.
    Kill,
    /// Sample the host, and all systems that run by now.
    Sample,
    /// End sampling.
    StopSampling,
}

/// A question to a database on the agent's host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum DatabaseOrder {
    Facts,
    /// Check that the server takes the connections of so many users.
    CheckConnections(u32),
    /// Start to sample its counters.
    Sample,
    /// End that. The measure phase began at `zero` of the agent's clock, and was so long.
    StopSampling {
        zero: UnixTime,
        window: Duration,
    },
    CheckExpected,
    /// The conditions of its data: those of the workload, which take so long at most, and those of the study.
    Conditions(Option<Duration>),
    RefusedLogin,
}

/// A database, with its secrets, which nothing writes with it, in the order of [`Database::secrets_mut`].
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct SentDatabase {
    database: Database,
    secrets: Vec<String>,
}

impl SentDatabase {
    pub(crate) fn new(database: &Database) -> SentDatabase {
        let mut database = database.clone();
        let secrets = database.secrets_mut().into_iter().map(|secret| secret.0.clone()).collect();
        SentDatabase { database, secrets }
    }

    pub(crate) fn unpack(self) -> Database {
        let SentDatabase { mut database, secrets } = self;
        for (place, secret) in database.secrets_mut().into_iter().zip(secrets) {
            *place = Secret(secret);
        }
        database
    }
}

/// A file, or a folder, that a workload needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentFile {
    /// Its absolute path on the coordinator's machine.
    pub(crate) path: PathBuf,
    /// The SHA-256 of its content in hexadecimal digits; none for a folder.
    pub(crate) sha256: Option<String>,
}

/// An agent's answer to orders.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// A workload is compiled, or cannot be.
    Prepared { workload: u32, result: Result<(), String> },
    /// The users of a job are ready, and the system answers to a new connection after this time.
    Ready { job: u32, round_trip: Option<Nanos> },
    /// The place of the objects of a storage workload.
    ObjectsPlaced { job: u32, place: String },
    /// Lines that scripts wrote to their console.
    Console { job: u32, lines: String },
    /// The result of a script's `setup`.
    SetUp { job: u32, data: Option<String> },
    /// The progress of a load that a script's own options describe.
    OwnLoad { job: u32, report: Packed },
    /// A second, as [`seconds`](crate::seconds) writes it.
    #[serde(skip)]
    Second { job: u32, bytes: Bytes },
    /// A job is over.
    Ended { job: u32, result: Result<Box<JobRecord>, JobError>, host: HostDuring },
    /// About systems on the agent's host.
    Host { about: u32, what: FromHost },
    /// The agent was told to end, and does no more for the run.
    Leaves,
}

/// A message about a build, a system or a sampling on the agent's host.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromHost {
    /// The reply to an order.
    Reply(Result<Reply, Refusal>),
    /// Output of a command or a system since the last message.
    Output(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The system has ended by itself.
    Ended(String),
    /// The data of a database is being made.
    Data(Box<Event>),
    /// The password of the load's user of a database that is about to start.
    Password(String),
    /// The samples since the last message.
    Samples(Samples),
}

/// A reply to an order about systems.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    Host(Box<Host>),
    Ended {
        processes: usize,
        /// Starts of systems whose containers were removed.
        containers: usize,
    },
    Port(u16),
    Faults(Vec<String>),
    Built {
        took: Duration,
    },
    Versions(Vec<Version>),
    Started,
    Ready {
        after: Duration,
        /// The file that the system's first process runs, and its SHA-256.
        executable: Option<(PathBuf, Option<String>)>,
        of_containers: Vec<Version>,
    },
    DatabaseReady {
        after: Duration,
        executable: Option<(PathBuf, Option<String>)>,
        /// The endpoint for other hosts, without the password.
        endpoint: Box<Endpoint>,
        /// The output of its migration.
        #[serde(with = "serde_bytes")]
        migration: Vec<u8>,
    },
    DatabaseFacts(Box<DatabaseFacts>),
    Counters {
        samples: Vec<DatabaseSample>,
        session_lost: bool,
    },
    Conditions(Vec<Condition>),
    RefusedLogin(Option<String>),
    /// It is done, or holds.
    Done,
    Stopped(Stopped),
    /// Sampling has begun. The instants of samples count from this one of the agent's clock.
    Sampling {
        since: UnixTime,
    },
    Sampled {
        samples: Samples,
        /// The use of the processors by others than the agent and its systems, on the same clock as the samples.
        others: UseByOthers,
        complaints: Vec<String>,
    },
}

/// The reason why an order about systems was not carried out.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    Interrupted,
    Failed(String),
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Interrupted => Refusal::Interrupted,
            DatabaseError::Failed(reason) => Refusal::Failed(reason),
        }
    }
}

impl From<SystemError> for Refusal {
    fn from(error: SystemError) -> Self {
        match error {
            SystemError::Interrupted { .. } => Refusal::Interrupted,
            error => Refusal::Failed(error.to_string()),
        }
    }
}

/// The agent's host while a job ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostDuring {
    /// TCP segments that were sent again.
    pub(crate) retransmitted: Option<u64>,
    /// TCP sockets in use at the end.
    pub(crate) sockets: Option<u64>,
}

/// A sign of life of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) sent: UnixTime,
    /// The frame up to which the coordinator has all.
    pub(crate) confirmed: u64,
}

/// The agent's answer to a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pulse {
    pub(crate) beat: UnixTime,
    pub(crate) received: UnixTime,
    pub(crate) answered: UnixTime,
    /// The frame up to which the agent has all.
    pub(crate) confirmed: u64,
}

/// A message on the subjects of an engagement: a frame of [`delivery`](crate::delivery), or a sign of life.
#[derive(Debug, PartialEq)]
pub(crate) enum Line<T> {
    Frame(Bytes),
    Sign(T),
}

const FRAME: u8 = b'F';
const SIGN: u8 = b'S';

impl<T: Serialize + DeserializeOwned> Line<T> {
    pub(crate) fn to_bytes(&self) -> Bytes {
        let (tag, body) = match self {
            Line::Frame(frame) => (FRAME, frame.clone()),
            Line::Sign(sign) => (SIGN, to_bytes(sign)),
        };
        tagged(tag, &body)
    }

    /// None for what no program of this form sends.
    pub(crate) fn read(bytes: &Bytes) -> Option<Line<T>> {
        match *bytes.first()? {
            FRAME => Some(Line::Frame(bytes.slice(1..))),
            SIGN => from_bytes(&bytes[1..]).map(Line::Sign),
            _ => None,
        }
    }
}

/// An answer as a message. Seconds are the bulk of all messages, and are not written twice.
const SECOND: u8 = b'2';
const OTHER: u8 = b'A';

impl Answer {
    pub(crate) fn to_bytes(&self) -> Bytes {
        let Answer::Second { job, bytes } = self else { return tagged(OTHER, &to_bytes(self)) };
        let mut message = BytesMut::with_capacity(5 + bytes.len());
        message.put_u8(SECOND);
        message.put_u32(*job);
        message.extend_from_slice(bytes);
        message.freeze()
    }

    /// None for what no program of this form sends.
    pub(crate) fn read(message: &Bytes) -> Option<Answer> {
        match *message.first()? {
            OTHER => from_bytes(&message[1..]),
            SECOND => {
                let job = u32::from_be_bytes(message.get(1..5)?.try_into().ok()?);
                Some(Answer::Second { job, bytes: message.slice(5..) })
            }
            _ => None,
        }
    }
}

fn tagged(tag: u8, body: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(1 + body.len());
    message.put_u8(tag);
    message.extend_from_slice(body);
    message.freeze()
}

/// Writes a message.
pub(crate) fn to_bytes<T: Serialize>(message: &T) -> Bytes {
    rmp_serde::to_vec_named(message).expect("plain data in memory").into()
}

/// Reads a message; none if it is another, or none at all.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    rmp_serde::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::job::{Begin, SetUp};
    use plimsoll_model::load::{Arrivals, LoadModel, LoadProfile, Overflow, Profile, Share, Stop};
    use plimsoll_model::study::GeneratorSpec;
    use plimsoll_model::workload::{Connect, GrpcSchema, GrpcStep, Steps};
    use std::time::Duration;

    #[test]
    fn an_order_crosses_with_every_digit() {
        // A third has no end in any base of a computer.
        let rate = Profile::constant(1000.0 / 3.0);
        let model = LoadModel::Open { rate, arrivals: Arrivals::Poisson, max_users: 7, overflow: Overflow::Wait };
        let job = Job {
            load: LoadProfile {
                model,
                warmup: Duration::from_secs(1),
                stop: Stop::After(Duration::from_secs(2)),
                drain: Duration::from_millis(3),
            },
            generator: GeneratorSpec { threads: 2, cpus: None, max_cpu: 0.7, max_lateness: Duration::from_millis(5) },
            seed: u64::MAX,
            share: Share { index: 1, of: 3 },
            begin: Begin::WhenTold,
            set_up: SetUp::Here,
            stays: false,
        };
        let call = GrpcStep {
            name: "a".to_owned(),
            call: "a.B/C".to_owned(),
            message: serde_json::json!({"number": 0.1, "large": u64::MAX, "list": [null, true]}),
            metadata: Vec::new(),
            deadline: None,
            status: 0,
            sequence: None,
        };
        let workload = Workload {
            target: None,
            connect: Connect::Shared(3),
            timeout: Duration::from_secs(1),
            steps: Steps::Grpc { schema: GrpcSchema::Reflection, calls: vec![call] },
        };
        let sent_file = SentFile { path: "/a/b.proto".into(), sha256: Some("00".to_owned()) };
        for order in [
            Order::Begin { job: 1, workload: 2, what: Box::new(job) },
            Order::Prepare {
                workload: 2,
                what: Box::new(workload),
                address: Some(([127, 0, 0, 1], 80).into()),
                files: vec![sent_file],
                bucket: "a".to_owned(),
                secrets: vec!["hidden".to_owned()],
            },
            Order::Go { job: 1, at: UnixTime(i64::MAX) },
        ] {
            assert_eq!(from_bytes::<Order>(&to_bytes(&order)), Some(order));
        }
    }

    #[test]
    fn an_answer_crosses() {
        let record = Box::new(JobRecord { window: Nanos(3), ..JobRecord::default() });
        for answer in [
            Answer::Second { job: 7, bytes: Bytes::from_static(b"a second") },
            Answer::Ended { job: 7, result: Ok(record), host: HostDuring::default() },
            Answer::Ended { job: 7, result: Err(JobError::Late(Nanos(5))), host: HostDuring::default() },
        ] {
            assert_eq!(Answer::read(&answer.to_bytes()), Some(answer));
        }
        assert_eq!(Answer::read(&Bytes::from_static(b"2ab")), None);
        assert_eq!(Answer::read(&Bytes::new()), None);
    }

    #[test]
    fn signs_of_life_and_frames_are_told_apart() {
        let beat = Beat { sent: UnixTime(5), confirmed: 7 };
        for line in [Line::Sign(beat), Line::Frame(Bytes::from_static(b"S"))] {
            assert_eq!(Line::<Beat>::read(&line.to_bytes()), Some(line));
        }
        assert_eq!(Line::<Beat>::read(&Bytes::from_static(b"other")), None);
    }
}
