//! Shared by both test binaries: workloads, loads, and the results of running them.

#![allow(dead_code, reason = "each of the two binaries uses its part")]

use plimsoll_generator::Prepared;
use plimsoll_model::job::{Begin, Job, JobRecord, Report, SetUp};
use plimsoll_model::load::{Arrivals, LoadModel, LoadProfile, Overflow, Profile, Stop, Think, WHOLE};
use plimsoll_model::record::{Account, ErrorKind, GeneratorSecond, Interval, RecordedPhase, Subject, Tally};
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::workload::{Connect, HttpStep, Steps, Target, Workload};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The results of a run, with warm-up and measure phase separate.
pub(crate) struct Outcome {
    pub(crate) record: JobRecord,
    pub(crate) warmup: BTreeMap<Subject, Tally>,
    pub(crate) measure: BTreeMap<Subject, Tally>,
    pub(crate) intervals: Vec<Interval>,
}

impl Outcome {
    pub(crate) fn subject(&self, subject: &Subject) -> Tally {
        self.measure.get(subject).cloned().unwrap_or_default()
    }

    pub(crate) fn iterations(&self) -> Tally {
        self.subject(&Subject::Iteration)
    }

    pub(crate) fn connects(&self) -> Tally {
        self.subject(&Subject::Connect)
    }

    pub(crate) fn requests(&self, name: &str) -> Tally {
        self.subject(&Subject::Request(name.to_owned()))
    }

    /// The errors of the request `name`, by kind.
    pub(crate) fn errors(&self, name: &str) -> Vec<(ErrorKind, u64)> {
        self.requests(name).errors.into_iter().collect()
    }

    /// What became of the requests of this name that were sent.
    pub(crate) fn account(&self, name: &str) -> Account {
        self.record.accounts.get(&format!("request:{name}")).cloned().unwrap_or_default()
    }

    /// The text that came with an error of the request `name`.
    pub(crate) fn example(&self, name: &str, kind: ErrorKind) -> &str {
        &self.record.error_examples[&format!("request:{name}")][&kind]
    }

    pub(crate) fn generator(&self) -> impl Iterator<Item = &GeneratorSecond> {
        self.intervals.iter().map(|interval| &interval.generator)
    }
}

pub(crate) fn run(workload: &Workload, address: SocketAddr, load: &LoadProfile, threads: usize) -> Outcome {
    let prepared = Prepared::new(workload, Some(address)).expect("the workload is in order");
    run_prepared(&prepared, load, threads, &AtomicBool::new(false))
}

pub(crate) fn run_prepared(
    prepared: &Prepared,
    load: &LoadProfile,
    threads: usize,
    interrupted: &AtomicBool,
) -> Outcome {
    run_watched(prepared, load, threads, interrupted, &|_| ())
}

/// The same; `on_second` is called for each second that is over.
pub(crate) fn run_watched(
    prepared: &Prepared,
    load: &LoadProfile,
    threads: usize,
    interrupted: &AtomicBool,
    on_second: &dyn Fn(&Interval),
) -> Outcome {
    let mut intervals: Vec<Interval> = Vec::new();
    let reports = &mut |report| {
        if let Report::Second { interval, .. } = report {
            on_second(&interval);
            intervals.push(*interval);
        }
    };
    let record = prepared.run(&job(load, threads), interrupted, reports).expect("the machine allows it");
    assert_accounts_hold(&record);
    let (mut warmup, mut measure) = (BTreeMap::new(), BTreeMap::new());
    for ((phase, subject), tally) in intervals.iter().flat_map(|interval| &interval.tallies) {
        let into = match phase {
            RecordedPhase::Warmup => &mut warmup,
            RecordedPhase::Measure => &mut measure,
        };
        into.entry(subject.clone()).or_insert_with(Tally::default).merge(tally);
    }
    Outcome { record, warmup, measure, intervals }
}

/// Everything that was sent has one end, whatever the servers of a test do.
pub(crate) fn assert_accounts_hold(record: &JobRecord) {
    for (subject, account) in &record.accounts {
        assert!(account.holds(), "{subject}: {account}");
    }
    let wrong: Vec<&String> = record.faults.iter().filter(|fault| fault.contains("does not add up")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The whole of a load, as a job.
pub(crate) fn job(load: &LoadProfile, threads: usize) -> Job {
    Job {
        load: load.clone(),
        generator: generator(threads),
        seed: 7,
        share: WHOLE,
        begin: Begin::WhenReady,
        set_up: SetUp::Here,
        stays: false,
    }
}

pub(crate) fn generator(threads: usize) -> GeneratorSpec {
    GeneratorSpec { threads, cpus: None, max_cpu: 0.7, max_lateness: Duration::from_millis(5) }
}

pub(crate) fn target(address: SocketAddr) -> Target {
    Target { host: address.ip().to_string(), port: address.port(), tls: None }
}

pub(crate) fn get(name: &str, path: &str) -> HttpStep {
    HttpStep {
        name: name.to_owned(),
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        status: None,
    }
}

pub(crate) fn http(address: SocketAddr, connect: Connect, steps: Vec<HttpStep>) -> Workload {
    Workload { target: Some(target(address)), connect, timeout: Duration::from_secs(10), steps: Steps::Http(steps) }
}

/// A number of users without think time.
pub(crate) fn closed(users: u32, stop: Stop) -> LoadProfile {
    LoadProfile {
        model: LoadModel::Closed { users: Profile::constant(f64::from(users)), think: Think::Constant(Duration::ZERO) },
        warmup: Duration::ZERO,
        stop,
        drain: Duration::from_secs(5),
    }
}

/// A number of arrivals per second for `seconds`.
pub(crate) fn open(rate: f64, arrivals: Arrivals, max_users: u32, seconds: f64) -> LoadProfile {
    LoadProfile {
        model: LoadModel::Open { rate: Profile::constant(rate), arrivals, max_users, overflow: Overflow::Wait },
        warmup: Duration::ZERO,
        stop: Stop::After(Duration::from_secs_f64(seconds)),
        drain: Duration::from_secs(5),
    }
}

/// A number of iterations in all, with enough time.
pub(crate) fn iterations(count: u64) -> Stop {
    Stop::Iterations { count, limit: Duration::from_secs(60) }
}

pub(crate) fn each(count: u64) -> Stop {
    Stop::IterationsPerUser { count, limit: Duration::from_secs(60) }
}
