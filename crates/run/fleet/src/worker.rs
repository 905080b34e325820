//! The work of an agent for a run: it compiles workloads, and runs jobs with the threads of this process.

use crate::files;
use crate::message::{Answer, HostDuring, Order};
use crate::permit::Permits;
use crate::seconds;
use bytes::Bytes;
use plimsoll_model::job::{Job, Report};
use plimsoll_model::storage::Secret;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::{Steps, Workload};
use plimsoll_runner::generator::{Generator, JobMessage, JobUnderWay, LocalThreads, PreparedWorkload};
use plimsoll_telemetry::tcp_sockets;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// An order is taken after at most this time while jobs run.
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Attempts to measure how far the system is, and how long each may take.
const ROUND_TRIPS: usize = 3;
const ROUND_TRIP_WITHIN: Duration = Duration::from_secs(1);

/// The worker of one engagement.
pub(crate) struct Worker {
    pub(crate) permits: Permits,
    /// Threads that generate load.
    pub(crate) threads: usize,
    /// The files of workloads lie below it.
    pub(crate) folder: PathBuf,
    pub(crate) answers: UnboundedSender<Bytes>,
}

/// A workload that is compiled, and how long its system took to accept a connection.
struct Compiled {
    prepared: Box<dyn PreparedWorkload>,
    round_trip: Option<Nanos>,
}

struct RunningJob {
    number: u32,
    round_trip: Option<Nanos>,
    job: Box<dyn JobUnderWay>,
    /// TCP segments that the host had sent again when the job began.
    retransmitted: Option<u64>,
}

impl Worker {
    /// Follows orders until nobody gives any more. Then all jobs and users end.
    pub(crate) fn run(self, orders: &Receiver<Order>) {
        let mut workloads: BTreeMap<u32, Compiled> = BTreeMap::new();
        // Jobs end before the users of their workloads do.
        let mut jobs: Vec<RunningJob> = Vec::new();
        loop {
            let order =
                if jobs.is_empty() { orders.recv().map_err(|_| TryRecvError::Disconnected) } else { orders.try_recv() };
            match order {
                Ok(order) => {
                    self.follow(order, &mut workloads, &mut jobs);
                    continue;
                }
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            let wait = POLL_EVERY / jobs.len() as u32;
            jobs.retain_mut(|running| self.report(running, wait));
        }
        jobs.clear();
        workloads.clear();
    }

    fn answer(&self, answer: &Answer) {
        // If nobody takes it, nobody waits for it.
        let _ = self.answers.send(answer.to_bytes());
    }

    fn follow(&self, order: Order, workloads: &mut BTreeMap<u32, Compiled>, jobs: &mut Vec<RunningJob>) {
        match order {
            Order::Prepare { workload, what, address, secrets, .. } => {
                let compiled = self.prepare(*what, address, secrets).map_err(|why| self.without_folder(&why));
                let result = compiled.map(|compiled| drop(workloads.insert(workload, compiled)));
                self.answer(&Answer::Prepared { workload, result });
            }
            Order::Begin { job, workload, what } => {
                let Some(compiled) = workloads.get_mut(&workload) else { return };
                // Threads and processors of the study are those of the run's own machine.
                let generator = GeneratorSpec { threads: self.threads, cpus: None, ..what.generator.clone() };
                let retransmitted = tcp_sockets().retransmitted;
                let (round_trip, begun) = (compiled.round_trip, compiled.prepared.begin(Job { generator, ..*what }));
                jobs.push(RunningJob { number: job, round_trip, job: begun, retransmitted });
            }
            Order::Go { job, at } => {
                if let Some(running) = running(jobs, job) {
                    running.job.begin_at(at);
                }
            }
            Order::SetUsers { job, users } => {
                if let Some(running) = running(jobs, job) {
                    running.job.set_users(users);
                }
            }
            Order::End { job } => {
                if let Some(running) = running(jobs, job) {
                    running.job.end();
                }
            }
            Order::Stop { job } => {
                if let Some(running) = running(jobs, job) {
                    running.job.stop();
                }
            }
            Order::OthersEnded { job } => {
                if let Some(running) = running(jobs, job) {
                    running.job.others_ended();
                }
            }
            Order::Forget { workload } => drop(workloads.remove(&workload)),
            // These are for what runs systems.
            Order::Host { .. } | Order::Interrupt | Order::Release => {}
        }
    }

    fn prepare(
        &self,
        mut workload: Workload,
        address: Option<SocketAddr>,
        secrets: Vec<String>,
    ) -> Result<Compiled, String> {
        self.permits.check(&workload, address)?;
        if let Steps::Script(script) = &workload.steps
            && let Some(own_load) = &script.own_load
            && own_load.threads > self.threads
        {
            let (wanted, threads) = (own_load.threads, self.threads);
            return Err(format!(
                "the run asks for {wanted} threads, and this agent has {threads}: ask for fewer (`--threads`)"
            ));
        }
        files::relocate(&mut workload, &self.folder)?;
        for (place, secret) in workload.secrets_mut().into_iter().zip(secrets) {
            *place = Secret(secret);
        }
        let prepared = LocalThreads.prepare(&workload, address).map_err(|error| error.to_string())?;
        Ok(Compiled { prepared, round_trip: address.and_then(round_trip) })
    }

    /// A text with the paths of files as they are where the run was begun: here they lie below a folder of the agent's own.
    fn without_folder(&self, text: &str) -> String {
        text.replace(&*self.folder.to_string_lossy(), "")
    }

    /// Passes on what a job says within `wait`. Returns false if that was the last.
    fn report(&self, running: &mut RunningJob, wait: Duration) -> bool {
        let job = running.number;
        let answer = match running.job.next(wait) {
            None => return true,
            Some(JobMessage::Ready) => Answer::Ready { job, round_trip: running.round_trip },
            Some(JobMessage::Report(Report::ObjectsPlaced(place))) => Answer::ObjectsPlaced { job, place },
            Some(JobMessage::Report(Report::Console(lines))) => {
                Answer::Console { job, lines: self.without_folder(&lines) }
            }
            Some(JobMessage::Report(Report::SetUp(data))) => Answer::SetUp { job, data },
            Some(JobMessage::Report(Report::OwnLoad(report))) => Answer::OwnLoad { job, report },
            Some(JobMessage::Report(Report::Second { interval, .. })) => {
                Answer::Second { job, bytes: seconds::encode(&interval).into() }
            }
            Some(JobMessage::Ended(mut result)) => {
                if let Ok(record) = &mut result {
                    let examples = record.error_examples.values_mut().flat_map(BTreeMap::values_mut);
                    let texts = [&mut record.faults, &mut record.broken, &mut record.warnings];
                    let texts = texts.into_iter().flatten().chain(examples);
                    texts.for_each(|text| *text = self.without_folder(text));
                }
                let now = tcp_sockets();
                let retransmitted =
                    now.retransmitted.zip(running.retransmitted).map(|(now, before)| now.saturating_sub(before));
                Answer::Ended { job, result, host: HostDuring { retransmitted, sockets: now.in_use } }
            }
        };
        let goes_on = !matches!(answer, Answer::Ended { .. });
        self.answer(&answer);
        goes_on
    }
}

fn running(jobs: &mut [RunningJob], number: u32) -> Option<&mut RunningJob> {
    jobs.iter_mut().find(|job| job.number == number)
}

/// The time in which the system accepts a connection: the least of several attempts.
fn round_trip(address: SocketAddr) -> Option<Nanos> {
    let attempt = |_| {
        let begun = Instant::now();
        TcpStream::connect_timeout(&address, ROUND_TRIP_WITHIN).ok()?;
        Some(Nanos::from(begun.elapsed()))
    };
    // A system that does not answer is not asked again.
    (0..ROUND_TRIPS).map_while(attempt).min()
}
