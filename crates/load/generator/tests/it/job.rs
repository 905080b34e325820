//! What passes between a run and a generator: shares, a common begin, and users that stay for the next job.

use crate::http::quick_server;
use crate::support::{assert_accounts_hold, closed, get, http, iterations, job, open};
use plimsoll_generator::{Jobs, Prepared, Steering};
use plimsoll_model::job::{Begin, Job, JobError, JobRecord, Report};
use plimsoll_model::load::{Arrivals, LoadProfile, Share, Stop};
use plimsoll_model::record::{ErrorKind, RecordedPhase, Subject, Tally};
use plimsoll_model::units::UnixTime;
use plimsoll_model::workload::Connect;
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

/// A job that begins when it is told, with its record and the iterations of its measure phase.
struct ToldJob {
    job: Option<Job>,
    steering: Steering,
    record: Option<JobRecord>,
    iterations: u64,
}

impl ToldJob {
    /// Runs it to its end. `ready` is called when its users are ready, with what tells the begin.
    fn run(
        prepared: &Prepared,
        job: Job,
        ready: impl Fn(&Steering) + Send + Sync + 'static,
    ) -> Result<(JobRecord, u64), JobError> {
        let steering = Arc::new_cyclic(|itself: &Weak<Steering>| {
            let itself = Weak::clone(itself);
            Steering::awaiting(move || ready(&itself.upgrade().expect("its job runs")))
        });
        let job = Some(Job { begin: Begin::WhenTold, ..job });
        let mut told = ToldJob { job, steering: Steering::clone(&steering), record: None, iterations: 0 };
        prepared.run_all(&mut told, &AtomicBool::new(false))?;
        Ok((told.record.expect("it has ended"), told.iterations))
    }
}

impl Jobs for ToldJob {
    fn next(&mut self) -> Option<Job> {
        self.job.take()
    }

    fn report(&mut self, report: Report) {
        let Report::Second { interval, .. } = report else { return };
        let tally = interval.tallies.get(&(RecordedPhase::Measure, Subject::Iteration));
        self.iterations += tally.map_or(0, Tally::count);
    }

    fn ended(&mut self, record: JobRecord) {
        self.record = Some(record);
    }

    fn steering(&self) -> Steering {
        self.steering.clone()
    }
}

#[test]
fn two_generators_share_a_load_and_begin_together() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let load = LoadProfile { warmup: Duration::from_millis(100), ..closed(3, iterations(30)) };
    let (tell, ready) = channel::<Steering>();
    let run = |index| {
        let job = Job { share: Share { index, of: 2 }, ..job(&load, 1) };
        let tell = tell.clone();
        let told = ToldJob::run(&prepared, job, move |steering| tell.send(steering.clone()).expect("someone waits"));
        told.expect("told in time")
    };
    let (begin, [first, second]) = std::thread::scope(|scope| {
        let generators = [0, 1].map(|index| {
            scope.spawn({
                let run = &run;
                move || run(index)
            })
        });
        let both: Vec<Steering> = ready.iter().take(2).collect();
        let begin = UnixTime::of(SystemTime::now() + Duration::from_secs(3));
        both.iter().for_each(|one| one.begin_at(begin));
        (begin, generators.map(|one| one.join().expect("a generator does not panic")))
    });
    let zero = UnixTime(begin.0 + 100_000_000);
    for (record, _) in [&first, &second] {
        assert_eq!(record.zero, zero);
    }
    assert_eq!(first.1 + second.1, 30);
}

#[test]
fn a_job_that_is_told_too_late_is_refused() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let told = ToldJob::run(&prepared, job(&closed(1, iterations(1)), 1), |steering| steering.begin_at(UnixTime(0)));
    assert!(matches!(told, Err(JobError::Late(_))));
    assert_eq!(server.record().connections(), 0);
}

/// Jobs one after the other, with a break between them, and the records of their seconds.
pub(crate) struct JobsInTurn {
    jobs: VecDeque<Job>,
    pause: Duration,
    /// For each job, what it has recorded in the measure phase and in all.
    pub(crate) recorded: Vec<[BTreeMap<Subject, Tally>; 2]>,
    pub(crate) records: Vec<JobRecord>,
}

impl JobsInTurn {
    pub(crate) fn run(prepared: &Prepared, load: &LoadProfile, count: usize, pause: Duration) -> JobsInTurn {
        let stays = |index| index + 1 < count;
        let jobs = (0..count).map(|index| Job { stays: stays(index), seed: index as u64, ..job(load, 1) });
        JobsInTurn::of(prepared, jobs.collect(), pause)
    }

    pub(crate) fn of(prepared: &Prepared, jobs: VecDeque<Job>, pause: Duration) -> JobsInTurn {
        let count = jobs.len();
        let mut all = JobsInTurn { jobs, pause, recorded: Vec::new(), records: Vec::new() };
        prepared.run_all(&mut all, &AtomicBool::new(false)).expect("the machine allows it");
        assert_eq!(all.records.len(), count);
        all
    }

    /// Exchanges of the request in all jobs together, and those of them that failed.
    pub(crate) fn requests(&self, name: &str) -> (u64, u64) {
        let subject = Subject::Request(name.to_owned());
        let tallies = self.recorded.iter().filter_map(|[_, all]| all.get(&subject));
        tallies.fold((0, 0), |(made, failed), tally| (made + tally.count(), failed + tally.failed()))
    }
}

impl Jobs for JobsInTurn {
    fn next(&mut self) -> Option<Job> {
        if !self.records.is_empty() {
            std::thread::sleep(self.pause);
        }
        self.recorded.push(Default::default());
        self.jobs.pop_front()
    }

    fn report(&mut self, report: Report) {
        let Report::Second { interval, .. } = report else { return };
        let [measured, all] = self.recorded.last_mut().expect("a job runs");
        for ((phase, subject), tally) in interval.tallies {
            all.entry(subject.clone()).or_default().merge(&tally);
            if phase == RecordedPhase::Measure {
                measured.entry(subject).or_default().merge(&tally);
            }
        }
    }

    fn ended(&mut self, record: JobRecord) {
        assert_accounts_hold(&record);
        self.records.push(record);
    }
}

/// Asks until the answer is yes; fails the test if it never is.
fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn lasting(users: u32, milliseconds: u64) -> LoadProfile {
    let warmup = Duration::from_millis(20);
    LoadProfile { warmup, ..closed(users, Stop::After(Duration::from_millis(milliseconds))) }
}

#[test]
fn users_that_stay_keep_their_connections_and_go_on_where_they_were() {
    // An iteration takes longer than a job.
    let slow = Behaviour::after(Duration::from_millis(100), Reply::of_size(10));
    let server = Server::start(slow).expect("a port");
    let names = ["a", "b", "c", "d", "e"];
    let steps = names.map(|name| get(name, &format!("/{name}"))).to_vec();
    let prepared = Prepared::new(&http(server.address(), Connect::PerUser, steps), Some(server.address()));
    let jobs = JobsInTurn::run(&prepared.expect("in order"), &lasting(4, 300), 16, Duration::from_millis(20));
    assert_eq!(server.record().connections(), 4);
    let requests = server.record().first_requests();
    for connection in 1..=4 {
        let paths: Vec<&str> = requests
            .iter()
            .filter(|request| request.connection == connection)
            .map(|request| request.path.trim_start_matches('/'))
            .collect();
        let expected: Vec<&str> = names.iter().copied().cycle().take(paths.len()).collect();
        assert!(paths.len() > names.len(), "{paths:?}");
        assert_eq!(paths, expected, "each goes on with the step that is next");
    }
    let recorded: Vec<(u64, u64)> = names.iter().map(|name| jobs.requests(name)).collect();
    assert_eq!(recorded.iter().map(|(made, _)| made).sum::<u64>(), requests.len() as u64);
    assert!(recorded.iter().all(|(made, failed)| *made > 0 && *failed == 0), "{recorded:?}");
    let [measured, _] = &jobs.recorded[1];
    assert!(measured.keys().any(|subject| matches!(subject, Subject::Request(_))), "{measured:?}");
    // For the users no time passes between two jobs, of which an iteration has seen at least one.
    let durations = jobs.recorded.iter().filter_map(|[_, all]| all.get(&Subject::Iteration));
    let shortest = durations.map(|tally| tally.service.min()).min().expect("iterations have ended");
    assert!(shortest >= 500_000_000, "five replies take 500 ms, found {shortest} ns");
}

#[test]
fn arrivals_for_which_no_user_was_free_wait_for_the_next_job() {
    let server = Server::start(Behaviour::after(Duration::from_millis(20), Reply::of_size(10))).expect("a port");
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let load = LoadProfile { drain: Duration::from_millis(10), ..open(200.0, Arrivals::Constant, 1, 0.1) };
    let jobs = JobsInTurn::run(&prepared, &load, 3, Duration::from_millis(10));
    let unsent: Vec<u64> = jobs
        .recorded
        .iter()
        .map(|[_, all]| {
            let page = all.get(&Subject::Request("page".to_owned()));
            page.and_then(|page| page.errors.get(&ErrorKind::Unsent)).copied().unwrap_or(0)
        })
        .collect();
    // Twenty arrive in each job.
    let accounts = jobs.records.iter().filter_map(|record| record.accounts.get("request:page"));
    let sent = accounts.map(|account| account.sent).sum::<u64>();
    wait_until("the last request at the server", || server.record().requests() == sent);
    assert_eq!(unsent, [0, 0, 60 - sent]);
    assert!(sent < 40, "a user sends 5 in 100 ms, and one in the drain; found {sent}");
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_is_opened_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = |mut stream: TcpStream| {
        let mut input = [0; 1024];
        stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a time-out");
        while stream.read(&mut input).is_ok_and(|read| read > 0) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    };
    let server = std::thread::spawn(move || {
        let serve = |stream| std::thread::spawn(move || serve(stream));
        let connections: Vec<_> = listener.incoming().take(4).flatten().map(serve).collect();
        connections.into_iter().for_each(|one| one.join().expect("no panic"));
    });
    let workload = http(address, Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(address)).expect("in order");
    let jobs = JobsInTurn::run(&prepared, &lasting(2, 50), 2, Duration::from_secs(5));
    let (made, failed) = jobs.requests("page");
    assert!(made > 0 && failed == 0, "{failed} of {made} failed: {:?}", jobs.records[1].error_examples);
    server.join().expect("two connections of each job came");
}
