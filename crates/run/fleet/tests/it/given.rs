//! A broker, agents, and loads on a server with a known answer.

use plimsoll_fleet::{Agent, Broker, Fleet, Permits, Wanted};
use plimsoll_model::job::{Begin, Job, JobError, JobRecord, Report, SetUp};
use plimsoll_model::load::{Arrivals, LoadModel, LoadProfile, Overflow, Profile, Stop, Think, WHOLE};
use plimsoll_model::record::{Interval, RecordedPhase, Subject, Tally};
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::UnixTime;
use plimsoll_model::workload::{Connect, HttpStep, Steps, Target, Workload};
use plimsoll_runner::generator::{Generator, JobMessage, JobUnderWay, PreparedWorkload};
use plimsoll_study::LostAgent;
use plimsoll_system::Interrupt;
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use plimsoll_testkit::{nats, skipped};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Long enough for anything that must happen, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A broker with its files.
pub(crate) struct Nats {
    pub(crate) server: nats::Server,
    _folder: TempDir,
}

impl Nats {
    /// None, and a line that says so, where there is no `nats-server`.
    pub(crate) fn start() -> Option<Nats> {
        Nats::with("")
    }

    pub(crate) fn with(configuration: &str) -> Option<Nats> {
        let folder = tempfile::tempdir().expect("a folder");
        let server = nats::Server::start(folder.path(), configuration).expect("a server");
        if server.is_none() {
            skipped("there is no `nats-server`");
        }
        Some(Nats { server: server?, _folder: folder })
    }

    pub(crate) fn broker(&self) -> Broker {
        Broker { url: self.server.url(), ..Broker::default() }
    }
}

/// An agent on a thread. Dropping it ends it.
pub(crate) struct RunningAgent {
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl RunningAgent {
    pub(crate) fn start(broker: &Broker, agent: Agent) -> RunningAgent {
        let (interrupt, broker) = (Interrupt::new(), broker.clone());
        let stop = interrupt.clone();
        let run = move || agent.run(&broker, &stop, &mut |_| ()).expect("an agent");
        RunningAgent { interrupt, thread: Some(std::thread::spawn(run)) }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.interrupt.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn agent(name: &str) -> Agent {
    Agent { name: name.to_owned(), labels: BTreeSet::new(), permits: Permits::default(), threads: 1, systems: None }
}

/// This number of agents, by the names `a`, `b`, `c` and so on.
pub(crate) fn agents(broker: &Broker, count: usize) -> Vec<RunningAgent> {
    (b'a'..).take(count).map(|letter| RunningAgent::start(broker, agent(&char::from(letter).to_string()))).collect()
}

pub(crate) fn wanted(agents: usize) -> Wanted {
    let (labels, hosts, when_lost) = (BTreeSet::new(), BTreeSet::new(), LostAgent::Repeat);
    Wanted { agents, labels, hosts, wait: PATIENCE, when_lost, run: "a test".to_owned() }
}

pub(crate) fn fleet(broker: &Broker, agents: usize) -> Fleet {
    Fleet::gather(broker, &wanted(agents), &Interrupt::new(), &mut |_| ()).expect("as many agents")
}

/// A broker, agents that work for a run, and a server for them to load.
pub(crate) struct Given {
    pub(crate) fleet: Fleet,
    pub(crate) agents: Vec<RunningAgent>,
    pub(crate) server: Server,
    pub(crate) nats: Nats,
}

impl Given {
    /// A number of agents. None, and a line that says so, where there is no `nats-server`.
    pub(crate) fn with_agents(count: usize) -> Option<Given> {
        let nats = Nats::start()?;
        let agents = agents(&nats.broker(), count);
        let fleet = fleet(&nats.broker(), count);
        Some(Given { fleet, agents, server: quick_server(), nats })
    }

    /// GET requests to the server, compiled by the agents that are left.
    pub(crate) fn prepare(&self) -> Box<dyn PreparedWorkload> {
        prepare(&self.fleet, &get(self.server.address()), self.server.address())
    }
}

pub(crate) fn quick_server() -> Server {
    Server::start(Behaviour::at_once(Reply::of_size(10))).expect("a port")
}

/// GET requests to a server of this machine.
pub(crate) fn get(address: SocketAddr) -> Workload {
    let step = HttpStep {
        name: "page".to_owned(),
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        status: None,
    };
    Workload {
        target: Some(Target { host: address.ip().to_string(), port: address.port(), tls: None }),
        connect: Connect::PerUser,
        timeout: Duration::from_secs(10),
        steps: Steps::Http(vec![step]),
    }
}

/// Arrivals at this rate, for so long.
pub(crate) fn open(rate: f64, arrivals: Arrivals, measure: Duration) -> LoadProfile {
    let model = LoadModel::Open { rate: Profile::constant(rate), arrivals, max_users: 64, overflow: Overflow::Wait };
    LoadProfile { model, warmup: Duration::from_millis(200), stop: Stop::After(measure), drain: Duration::from_secs(5) }
}

/// Users without pauses, with this end.
pub(crate) fn closed(users: u32, stop: Stop) -> LoadProfile {
    let model =
        LoadModel::Closed { users: Profile::constant(f64::from(users)), think: Think::Constant(Duration::ZERO) };
    LoadProfile { model, warmup: Duration::ZERO, stop, drain: Duration::from_secs(5) }
}

/// The time between telling generators when a load begins and its begin: enough for each on a busy machine.
const IN_TIME: Duration = Duration::from_secs(2);

pub(crate) fn job(load: LoadProfile) -> Job {
    let generator = GeneratorSpec { threads: 1, cpus: None, max_cpu: 1.0, max_lateness: Duration::from_secs(10) };
    Job { load, generator, seed: 7, share: WHOLE, begin: Begin::WhenTold, set_up: SetUp::Here, stays: false }
}

/// The reports and the result of a job.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) intervals: Vec<Interval>,
    pub(crate) console: String,
    pub(crate) result: Option<Result<JobRecord, JobError>>,
}

impl Ended {
    pub(crate) fn record(&self) -> &JobRecord {
        self.result.as_ref().expect("it has ended").as_ref().expect("it has a record")
    }

    /// Everything that was measured about a subject.
    pub(crate) fn measured(&self, subject: &Subject) -> Tally {
        let mut all = Tally::default();
        let key = (RecordedPhase::Measure, subject.clone());
        self.intervals.iter().filter_map(|interval| interval.tallies.get(&key)).for_each(|tally| all.merge(tally));
        all
    }

    /// The numbers of requests sent and answered, by name.
    pub(crate) fn accounts(&self) -> BTreeMap<&str, (u64, u64)> {
        let accounts = self.record().accounts.iter();
        accounts.map(|(subject, account)| (subject.as_str(), (account.sent, account.answered))).collect()
    }
}

/// Runs a job to its end. `meanwhile` is called with each second that passes.
pub(crate) fn run(prepared: &mut dyn PreparedWorkload, job: Job, mut meanwhile: impl FnMut(i64)) -> Ended {
    let mut under_way = prepared.begin(job);
    follow(under_way.as_mut(), &mut meanwhile)
}

/// The same for a load that begins as soon as all are ready. Where this machine is so busy that an agent is told of that too
/// late, the load is void, and runs again as in a study.
pub(crate) fn run_when_ready(prepared: &mut dyn PreparedWorkload, job: &Job) -> Ended {
    let is_late = |fault: &String| fault.contains("before the generator was told so");
    for _ in 0..5 {
        let ended = run(prepared, Job { begin: Begin::WhenReady, ..job.clone() }, |_| ());
        if !matches!(&ended.result, Some(Ok(record)) if record.faults.iter().any(is_late)) {
            return ended;
        }
    }
    panic!("an agent was told too late five times");
}

pub(crate) fn follow(under_way: &mut dyn JobUnderWay, meanwhile: &mut dyn FnMut(i64)) -> Ended {
    let mut ended = Ended::default();
    while ended.result.is_none() {
        match under_way.next(PATIENCE).expect("it goes on") {
            JobMessage::Ready => under_way.begin_at(UnixTime::of(SystemTime::now() + IN_TIME)),
            JobMessage::Report(Report::ObjectsPlaced(_) | Report::SetUp(_) | Report::OwnLoad(_)) => {}
            JobMessage::Report(Report::Console(lines)) => ended.console += &lines,
            JobMessage::Report(Report::Second { interval, .. }) => {
                meanwhile(interval.second);
                ended.intervals.push(*interval);
            }
            JobMessage::Ended(result) => ended.result = Some(result.map(|record| *record)),
        }
    }
    ended
}

pub(crate) fn prepare(
    generator: &dyn Generator,
    workload: &Workload,
    address: SocketAddr,
) -> Box<dyn PreparedWorkload> {
    generator.prepare(workload, Some(address)).unwrap_or_else(|error| panic!("{error}"))
}
