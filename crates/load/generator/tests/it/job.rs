//! What passes between a run and a generator: shares, a common begin, and the lines of scripts.

use crate::http::quick_server;
use crate::support::{closed, get, http, iterations, job};
use plimsoll_generator::Prepared;
use plimsoll_model::job::{Job, JobError, JobRecord, Report};
use plimsoll_model::load::{LoadProfile, Share};
use plimsoll_model::record::{RecordedPhase, Subject, Tally};
use plimsoll_model::units::UnixTime;
use plimsoll_model::workload::Connect;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// Runs a job, and counts the iterations of the measure phase.
fn counted(prepared: &Prepared, job: &Job) -> Result<(JobRecord, u64), JobError> {
    let mut iterations = 0;
    let record = prepared.run(job, &AtomicBool::new(false), &mut |report| {
        let Report::Second { interval, .. } = report else { return };
        let tally = interval.tallies.get(&(RecordedPhase::Measure, Subject::Iteration));
        iterations += tally.map_or(0, Tally::count);
    })?;
    Ok((record, iterations))
}

fn in_half_a_second() -> UnixTime {
    UnixTime::of(SystemTime::now() + Duration::from_millis(500))
}

#[test]
fn two_generators_share_a_load_and_begin_together() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let load = LoadProfile { warmup: Duration::from_millis(100), ..closed(3, iterations(30)) };
    let begin = in_half_a_second();
    let [first, second] = [0, 1].map(|index| {
        let job = Job { share: Share { index, of: 2 }, begin: Some(begin), ..job(&load, 1) };
        let prepared = &prepared;
        move || counted(prepared, &job)
    });
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(second);
        (first().expect("in time"), second.join().expect("a generator does not panic").expect("in time"))
    });
    let zero = UnixTime(begin.0 + 100_000_000);
    for (record, _) in [&first, &second] {
        assert_eq!(record.zero, zero);
    }
    assert_eq!(first.1 + second.1, 30);
}

#[test]
fn a_job_that_comes_too_late_is_refused() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let job = Job { begin: Some(UnixTime(0)), ..job(&closed(1, iterations(1)), 1) };
    assert!(matches!(counted(&prepared, &job), Err(JobError::Late(_))));
    assert_eq!(server.record().connections(), 0);
}
