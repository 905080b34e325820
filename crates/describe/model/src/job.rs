//! What passes between a run and the generators that load its systems: a [`Job`] goes out, [`Report`]s come
//! back while it runs, and a [`JobRecord`] ends it. All of it is plain data that serialises, so that a generator may
//! be threads of this process or an agent on another machine.

use crate::agent::AgentRecord;
use crate::database::SqlFacts;
use crate::load::{LoadProfile, Share};
use crate::record::{Account, ErrorKind, Interval, SequenceCheck, SequenceRecorder};
use crate::result::Work;
use crate::script::{Packed, ScriptFacts};
use crate::storage::StorageFacts;
use crate::study::GeneratorSpec;
use crate::units::{Nanos, UnixTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A load that a generator is to offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Users or arrivals over time, warm-up and drain.
    pub load: LoadProfile,
    /// Threads and their processors.
    pub generator: GeneratorSpec,
    /// Seed of arrivals, think times and everything else that users draw.
    pub seed: u64,
    /// The share of users and arrivals that this generator carries; its threads divide it.
    pub share: Share,
    /// When warm-up begins.
    pub begin: Begin,
    /// The generator that calls `setup` and `teardown` of a script.
    pub set_up: SetUp,
    /// True if the users stay for the next job of the same prepared workload, with their connections and values. That
    /// job has the same load, apart from its lengths. For the users no time passes between the two: pauses go on where
    /// they were. Workloads whose users cannot stay begin anew with each job.
    pub stays: bool,
}

impl Job {
    /// The most users of this generator's share that work at the same time.
    #[must_use]
    pub fn users(&self) -> u64 {
        self.share.of_first(u64::from(self.load.most_users()))
    }
}

/// When the warm-up of a job begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// As soon as the users are ready.
    #[default]
    WhenReady,
    /// At the instant that is told when the users are ready, so that several generators begin together.
    WhenTold,
}

/// The generator that calls `setup` and `teardown` of a script, which are called once for all users of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetUp {
    /// This generator: `setup` before its users are made, and `teardown` when the users of all generators have ended.
    #[default]
    Here,
    /// Another one, whose `setup` has returned this, as JSON; none if it returned nothing.
    Elsewhere(Option<String>),
}

/// What a generator reports while a job runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The place of the objects of a storage workload, reported before the first object is made: if the run is killed,
    /// a later one can still remove them.
    ObjectsPlaced(String),
    /// A second that is over for all threads of the generator. Seconds come in order.
    Second {
        /// The begin of the measure phase: second 0 begins there.
        zero: UnixTime,
        /// The records of this second.
        interval: Box<Interval>,
    },
    /// Lines that scripts wrote to their console, each with its end.
    Console(String),
    /// The result of a script's `setup` as JSON, where other generators have shares of the load: they need it.
    SetUp(Option<String>),
    /// The progress of a load that a script's own options describe.
    OwnLoad(Packed),
}

/// The result of a job, beside its seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// The begin of the measure phase.
    pub zero: UnixTime,
    /// The actual length of the measure phase.
    pub window: Nanos,
    /// Results of the checks over all replies, by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// The numbers that these checks are about, where this is the record of a share of the load: those of all shares together
    /// are checked.
    #[serde(default)]
    pub numbers: BTreeMap<String, SequenceRecorder>,
    /// The first text that came with each kind of error, by subject.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What became of everything that was sent, by request name and for connections (`connect`).
    pub accounts: BTreeMap<String, Account>,
    /// Faults of the generator itself: such a load is void.
    pub faults: Vec<String>,
    /// What users did that exceeded a limit of their script, and were stopped for it: such a load has failed.
    pub broken: Vec<String>,
    /// Remarks for the reader of the results.
    pub warnings: Vec<String>,
    /// Why users stopped before the load was over, if they did: a feed had no more rows.
    pub stopped: Option<String>,
    /// True if the job was stopped from outside.
    pub interrupted: bool,
    /// Facts about the kind of work that the users did.
    pub facts: WorkFacts,
    /// The agents that generated the load; empty where this process did.
    #[serde(default)]
    pub agents: Vec<AgentRecord>,
}

/// Facts of a job that only one kind of work has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkFacts {
    /// Requests, calls and flows have none.
    #[default]
    None,
    /// The back end of a storage workload.
    Storage(Box<StorageFacts>),
    /// Statements and transactions of an SQL workload.
    Sql(Box<SqlFacts>),
    /// The script.
    Script(ScriptFacts),
}

impl From<WorkFacts> for Work {
    /// The kind of work in a load's result. The facts of SQL are kept with those of the database instead.
    fn from(facts: WorkFacts) -> Work {
        match facts {
            WorkFacts::None | WorkFacts::Sql(_) => Work::Steps,
            WorkFacts::Storage(facts) => Work::Storage(facts),
            WorkFacts::Script(facts) => Work::Script(facts),
        }
    }
}

/// Why a job broke off, or never began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum JobError {
    /// The machine allows fewer open files than the connections that the load needs.
    #[error(
        "the load needs {needed} open files, but the limit is {limit}; raise it (`ulimit -n {needed}`) or use fewer users"
    )]
    TooFewDescriptors {
        /// Descriptors needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The generator is to run on a processor that does not exist.
    #[error("failed to bind a generator thread to processor {processor}: {error}")]
    Pinning {
        /// The processor.
        processor: usize,
        /// The kernel's message.
        error: String,
    },
    /// The kernel refused a resource that the event loop needs.
    #[error("the generator's loop broke off: {0}")]
    Loop(String),
    /// Users could not get ready for the load.
    #[error("{0}")]
    Users(String),
    /// The script threw or broke a limit while a user loaded it.
    #[error("{0}")]
    Script(String),
    /// An agent was lost that the load needs: the run ends, and resumes with others.
    #[error("{0}")]
    Lost(String),
    /// The instant at which the load was to begin had passed when it was told.
    #[error("the load was to begin {} s before the generator was told so", .0.seconds())]
    Late(Nanos),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{LoadModel, Profile, Stop, Think};
    use crate::record::{GeneratorSecond, RecordedPhase, Subject, TICKS, Tally, Tick};
    use std::time::Duration;

    /// Serialises a value and reads it back, as between two machines.
    fn crossed<T: Serialize + for<'a> Deserialize<'a>>(value: &T) -> T {
        serde_json::from_str(&serde_json::to_string(value).expect("plain data")).expect("its own text")
    }

    #[test]
    fn a_job_and_its_record_cross_as_text() {
        let think = Think::Constant(Duration::from_millis(10));
        let job = Job {
            load: LoadProfile {
                model: LoadModel::Closed { users: Profile::constant(5.0), think },
                warmup: Duration::from_secs(1),
                stop: Stop::After(Duration::from_secs(3)),
                drain: Duration::ZERO,
            },
            generator: GeneratorSpec { threads: 2, cpus: None, max_cpu: 0.7, max_lateness: Duration::from_millis(5) },
            seed: 7,
            share: Share { index: 1, of: 2 },
            begin: Begin::WhenTold,
            set_up: SetUp::Elsewhere(Some("1".to_owned())),
            stays: true,
        };
        assert_eq!(crossed(&job), job);
        assert_eq!(job.users(), 2);
        let examples = BTreeMap::from([(ErrorKind::Status, "404".to_owned())]);
        let record = JobRecord {
            zero: UnixTime(5),
            window: Nanos(3),
            error_examples: BTreeMap::from([("request:a".to_owned(), examples)]),
            facts: WorkFacts::Script(ScriptFacts { left_out: 3, ..ScriptFacts::default() }),
            ..JobRecord::default()
        };
        assert_eq!(crossed(&record), record);
        assert_eq!(crossed(&JobError::Late(Nanos(5))), JobError::Late(Nanos(5)));
    }

    #[test]
    fn a_second_crosses_as_text_with_its_histograms() {
        let mut tally = Tally { bytes_in: 9, ..Tally::default() };
        for value in [1, 1000, 5_000_000, 3_600_000_000_000] {
            tally.service.record(value).expect("in range");
        }
        tally.errors.insert(ErrorKind::Timeout, 2);
        let mut interval = Interval { second: -3, length: Nanos(1_000_000_000), ..Interval::default() };
        let key = (RecordedPhase::Warmup, Subject::Request("a:b".to_owned()));
        interval.tallies.insert(key.clone(), tally.clone());
        interval.ticks[TICKS - 1] = Tick { iterations: 4, total: 12 };
        interval.generator = GeneratorSecond { users: 5, ..GeneratorSecond::default() };
        interval.generator.lateness.record(77).expect("in range");
        let report = Report::Second { zero: UnixTime(8), interval: Box::new(interval.clone()) };
        let Report::Second { zero: UnixTime(8), interval: mut read } = crossed(&report) else {
            panic!("another report");
        };
        assert_eq!(*read, interval);
        // It grows and merges like a histogram that was never serialised.
        read.merge(&interval);
        assert_eq!((read.tallies[&key].count(), read.tallies[&key].failed()), (8, 4));
    }
}
