//! Users of a line protocol against a server that records what each connection sends.

use super::context::LoopContext;
use super::*;
use crate::clock::Clock;
use crate::offer::{Offer, Offering, SharedQuota};
use crate::protocol::{Failure, Next, Protocol, Reply, Sending, Signal, Violation};
use crate::recorder::{Findings, Recorder, ThreadReport};
use crate::schedule::ThreadShare;
use crate::transport::Dialer;
use plimsoll_model::load::WHOLE;
use plimsoll_model::load::{Arrivals, LoadModel, Overflow, Profile, Stop, Think};
use plimsoll_model::record::{Account, ErrorKind, RecordedPhase, Subject, Tally};
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Connect;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// A line protocol: users send lines one after the other, and the server echoes each.
struct Lines {
    on_start: Vec<Next>,
    steps: Vec<Next>,
    on_stop: Vec<Next>,
    /// Iterations after which a user has nothing more to do.
    most: usize,
}

const NAMES: [&str; 4] = ["hello", "first", "second", "bye"];

fn say(name: &str) -> Next {
    Next::Exchange(NAMES.iter().position(|known| *known == name).expect("a name"))
}

fn pause() -> Next {
    Next::Pause(Nanos(1_000_000))
}

#[derive(Default)]
struct Speaker {
    has_begun: bool,
    iterations: usize,
    /// Its remaining steps, the last one first.
    rest: Vec<Next>,
}

impl Speaker {
    fn follow(&mut self, mut parts: Vec<Next>) -> Next {
        parts.reverse();
        self.rest = parts;
        self.rest.pop().unwrap_or(Next::Done)
    }
}

impl Protocol for Lines {
    type Connection = Option<u32>;
    type User = Speaker;

    fn user(&self, _number: u64, _seed: u64) -> Speaker {
        Speaker::default()
    }

    fn begin(&self, user: &mut Speaker) -> Next {
        if user.iterations == self.most {
            return Next::Stop;
        }
        user.iterations += 1;
        if std::mem::replace(&mut user.has_begun, true) {
            return user.follow(self.steps.clone());
        }
        user.follow([&self.on_start[..], &[Next::Begun], &self.steps].concat())
    }

    fn next(&self, user: &mut Speaker) -> Next {
        user.rest.pop().unwrap_or(Next::Done)
    }

    fn retires(&self) -> bool {
        true
    }

    fn first_step(&self) -> Option<usize> {
        Some(1)
    }

    fn retire(&self, user: &mut Speaker) -> Next {
        if !std::mem::replace(&mut user.has_begun, false) {
            return Next::Done;
        }
        user.follow(self.on_stop.clone())
    }

    fn open(&self, _out: &mut Vec<u8>) -> Option<u32> {
        None
    }

    fn capacity(&self, connection: &Option<u32>) -> usize {
        usize::from(connection.is_none())
    }

    fn is_reusable(&self, _connection: &Option<u32>) -> bool {
        true
    }

    fn send(&self, connection: &mut Option<u32>, _user: &mut Speaker, request: Sending, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{}\n", NAMES[request.step]).as_bytes());
        *connection = Some(request.ticket);
    }

    fn receive(
        &self,
        connection: &mut Option<u32>,
        input: &[u8],
        _out: &mut Vec<u8>,
        signals: &mut Vec<Signal>,
    ) -> Result<(), Violation> {
        if input.contains(&b'\n') {
            let ticket = connection.take().ok_or_else(|| Violation::new("expected silence"))?;
            signals.push(Signal::Done { ticket, reply: Reply::Expected { number: None } });
        }
        Ok(())
    }

    fn end_of_input(&self, _connection: &mut Option<u32>, _signals: &mut Vec<Signal>) {}

    fn cancel(&self, _connection: &mut Option<u32>, _ticket: u32, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn close(&self, _connection: &mut Option<u32>, _out: &mut Vec<u8>) {}
}

/// A server that echoes and records what it receives, one connection after the other.
struct Echo {
    address: SocketAddr,
    received: JoinHandle<Vec<Vec<String>>>,
}

impl Echo {
    /// Starts a server that ends after this many connections.
    fn start(connections: usize) -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = std::thread::spawn(move || {
            let serve = |_| {
                let (stream, _) = listener.accept().expect("a connection");
                std::thread::spawn(move || listen(&stream))
            };
            let serving: Vec<_> = (0..connections).map(serve).collect();
            serving.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        Echo { address, received }
    }
}

fn listen(mut stream: &TcpStream) -> Vec<String> {
    let mut received = Vec::new();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if stream.write_all(format!("{line}\n").as_bytes()).is_err() {
            break;
        }
        received.push(line);
    }
    received
}

/// The result of a run.
struct RunResult {
    tallies: BTreeMap<(RecordedPhase, Subject), Tally>,
    findings: Findings,
    /// What each connection received.
    received: Vec<String>,
}

impl RunResult {
    fn count(&self, subject: &Subject) -> (u64, u64) {
        let tally = self.tallies.get(&(RecordedPhase::Measure, subject.clone()));
        tally.map_or((0, 0), |tally| (tally.count(), tally.failed()))
    }

    fn request(&self, name: &str) -> (u64, u64) {
        self.count(&Subject::Request(name.to_owned()))
    }
}

fn closed(users: f64) -> LoadModel {
    LoadModel::Closed { users: Profile::constant(users), think: Think::Constant(Duration::from_millis(1)) }
}

fn offering(model: LoadModel, stop: Stop) -> Offering {
    let (warmup, drain) = (Duration::ZERO, Duration::from_secs(10));
    Offering {
        model,
        stop,
        start: Instant(0),
        warmup,
        drain,
        graceful_ramp_down: None,
        k6_arrivals: None,
        steering: None,
        seed: 1,
    }
}

fn per_user(count: u64) -> Stop {
    Stop::IterationsPerUser { count, limit: Duration::from_secs(60) }
}

/// Runs the offerings, on this many connections.
fn run_lines(lines: &Lines, offerings: &[Offering], connections: usize) -> RunResult {
    let echo = Echo::start(connections);
    let part = ThreadShare { machine: WHOLE, thread: 0, threads: 1 };
    let (clock, interrupted) = (Clock::start(Duration::ZERO), AtomicBool::new(false));
    let task = Task {
        protocol: lines,
        connect: Connect::PerUser,
        connect_timeout: Nanos(60_000_000_000),
        timeouts: vec![Nanos(60_000_000_000); NAMES.len()],
        dialer: Dialer { address: echo.address, tls: None },
        share: WHOLE,
        seed: 1,
    };
    let (sender, receiver) = channel();
    let recorder = Recorder::new(&NAMES, false, clock.first(), Instant(i64::MAX), 0, sender);
    let offers =
        offerings.iter().map(|offering| Offer::new(offering, &SharedQuota::of(offering, WHOLE), part)).collect();
    let mut context = LoopContext::new(clock, recorder, offers, &interrupted).expect("an epoll");
    let mut users = Users::new(task, context.users());
    run(&mut context, &mut users).expect("the loop runs to its end");
    let mut result = RunResult { tallies: BTreeMap::new(), findings: Findings::default(), received: Vec::new() };
    for report in receiver {
        match report {
            ThreadReport::Interval(_, interval) => {
                interval
                    .tallies
                    .into_iter()
                    .for_each(|(key, tally)| result.tallies.entry(key).or_default().merge(&tally));
            }
            ThreadReport::Finished(_, findings) => result.findings = *findings,
        }
    }
    assert!(result.findings.accounts.values().all(Account::holds), "{:?}", result.findings.accounts);
    result.received = echo.received.join().expect("no panic").into_iter().map(|received| received.join(" ")).collect();
    result
}

fn lines() -> Lines {
    let steps = vec![say("first"), pause(), say("second")];
    Lines { on_start: vec![say("hello")], steps, on_stop: vec![pause(), say("bye")], most: usize::MAX }
}

#[test]
fn users_start_once_iterate_and_stop_in_the_end() {
    let result = run_lines(&lines(), &[offering(closed(3.0), per_user(2))], 3);
    assert_eq!(result.received, ["hello first second first second bye"; 3]);
    let answered = |name: &str| result.findings.accounts[name].answered;
    assert_eq!((answered("connect"), answered("request:hello"), answered("request:first")), (3, 3, 6));
    assert_eq!(
        (result.count(&Subject::Iteration), result.request("hello"), result.request("bye")),
        ((6, 0), (3, 0), (3, 0))
    );
}

#[test]
fn what_users_do_to_stop_after_the_end_of_a_load_is_not_measured() {
    let lines = Lines { on_stop: vec![say("bye")], ..lines() };
    let result = run_lines(&lines, &[offering(closed(2.0), Stop::After(Duration::from_millis(100)))], 2);
    assert!(result.received.iter().all(|received| received.ends_with(" bye")), "{:?}", result.received);
    assert_eq!(result.request("bye"), (0, 0));
    assert_eq!(result.findings.accounts["request:bye"].answered, 2);
}

#[test]
fn several_offers_have_users_of_their_own() {
    let later = Offering { start: Instant(20_000_000), ..offering(closed(2.0), per_user(1)) };
    let result = run_lines(&lines(), &[offering(closed(1.0), per_user(3)), later], 3);
    let mut received = result.received.clone();
    received.sort_by_key(String::len);
    let [short, long] = ["hello first second bye", "hello first second first second first second bye"];
    assert_eq!(received, [short, short, long]);
}

#[test]
fn a_user_with_nothing_more_to_do_stops_and_its_last_iteration_is_none() {
    let lines = Lines { most: 2, ..lines() };
    let result = run_lines(&lines, &[offering(closed(2.0), Stop::After(Duration::from_secs(60)))], 2);
    assert_eq!(result.received, ["hello first second first second bye"; 2]);
    assert_eq!(result.count(&Subject::Iteration), (4, 0));
}

#[test]
fn an_arrival_whose_user_has_nothing_more_to_do_goes_to_another() {
    let arrivals = Arrivals::Constant;
    let model = LoadModel::Open { rate: Profile::constant(500.0), arrivals, max_users: 2, overflow: Overflow::Wait };
    let lines = Lines { most: 3, ..lines() };
    let result = run_lines(&lines, &[offering(model, Stop::After(Duration::from_millis(100)))], 2);
    let first = result.received.iter().map(|received| received.matches("first").count()).sum::<usize>();
    assert_eq!((first, result.count(&Subject::Iteration), result.request("first")), (6, (6, 0), (6, 0)));
    assert!(result.findings.all_stopped, "so the last one that came is nobody's");
}

#[test]
fn what_cannot_be_sent_fails_under_its_step_and_a_start_that_fails_comes_again() {
    let failure = |detail: &str| Failure::new(ErrorKind::Capture, detail);
    let refused = Lines { steps: vec![say("first"), Next::Refused(2, failure("no such value"))], ..lines() };
    let result = run_lines(&refused, &[offering(closed(1.0), per_user(3))], 1);
    assert_eq!(result.received, ["hello first first first bye"]);
    assert_eq!((result.request("second"), result.count(&Subject::Iteration)), ((3, 3), (3, 3)));
    assert_eq!(result.findings.examples["request:second"][&ErrorKind::Capture], "no such value");

    let endless = Lines { steps: vec![Next::Failed(failure("it goes round and round"))], ..lines() };
    let result = run_lines(&endless, &[offering(closed(1.0), per_user(3))], 1);
    assert_eq!(result.received, ["hello bye"]);
    assert_eq!(result.count(&Subject::Iteration), (3, 3));
    assert_eq!(result.findings.examples["iteration"][&ErrorKind::Capture], "it goes round and round");
}

#[test]
fn a_pause_and_a_start_are_no_part_of_an_iteration() {
    let long = Next::Pause(Nanos(1_000_000_000));
    let lines = Lines { on_start: vec![long.clone()], steps: vec![long, say("first")], on_stop: vec![], most: 1 };
    let result = run_lines(&lines, &[offering(closed(1.0), per_user(1))], 1);
    let took = result.tallies[&(RecordedPhase::Measure, Subject::Iteration)].service.max();
    assert!(took < 1_000_000_000, "the iteration took {took} ns");
}

#[test]
fn an_iteration_that_pauses_at_the_end_of_the_drain_neither_ended_nor_failed() {
    let lines = Lines { steps: vec![say("first"), Next::Pause(Nanos(u64::MAX / 4))], ..lines() };
    let stop = Stop::After(Duration::from_secs(2));
    let short = Offering { drain: Duration::from_millis(50), ..offering(closed(2.0), stop) };
    let result = run_lines(&lines, &[short], 2);
    assert_eq!(result.received, ["hello first"; 2]);
    assert_eq!((result.request("first"), result.count(&Subject::Iteration)), ((2, 0), (0, 0)));
}
