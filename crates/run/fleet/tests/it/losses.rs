//! Agents, lines and brokers that are lost under a load: it is void, by name, and never a part of itself.

use crate::given::{Ended, Given, RunningAgent};
use crate::given::{Nats, PATIENCE, agent, closed, fleet, get, job, prepare, quick_server, run, run_when_ready};
use plimsoll_fleet::{Agent, Broker, Permits};
use plimsoll_model::load::Stop;
use plimsoll_model::record::Subject;
use plimsoll_model::storage::{Action, Mode, Operation, Payload, Storage, StorageStep, Store};
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_runner::generator::{Generator, NotReady};
use plimsoll_testkit::proxy::Proxy;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

fn long() -> Stop {
    Stop::After(PATIENCE)
}

/// The reason why an agent that was told to end is lost.
const TOLD: &str = "it was told to end";

/// The faults of a load that ended without an agent.
fn assert_lost(ended: &Ended, name: &str, why: &str) {
    let [fault] = ended.record().faults.as_slice() else { panic!("{:?}", ended.record().faults) };
    assert_eq!(*fault, format!("agent `{name}`: it was lost: {why}"));
    let lost = ended.record().agents.iter().filter(|agent| agent.lost.is_some()).map(|agent| agent.name.as_str());
    assert_eq!(lost.collect::<Vec<_>>(), [name]);
}

#[test]
fn a_load_without_one_of_its_agents_is_void_and_the_next_runs_on_those_left() {
    let Some(mut given) = Given::with_agents(2) else { return };
    let mut prepared = given.prepare();
    let mut last = given.agents.pop();
    let begun = Instant::now();
    let ended = run(prepared.as_mut(), job(closed(4, long())), |_| drop(last.take()));
    assert_lost(&ended, "b", TOLD);
    assert!(begun.elapsed() < PATIENCE / 2, "the other stops too");
    drop(prepared);
    let mut prepared = given.prepare();
    let stop = Stop::Iterations { count: 50, limit: PATIENCE };
    let ended = run(prepared.as_mut(), job(closed(4, stop)), |_| ());
    assert_eq!(ended.measured(&Subject::Iteration).count(), 50, "all of the load on the one that is left");
    assert_eq!(ended.record().agents.len(), 1);
    drop(prepared);
    given.agents.clear();
    let address = given.server.address();
    let Err(error) = given.fleet.prepare(&get(address), Some(address)) else { panic!("none is left") };
    let NotReady::Generator(text) = error else { panic!("{error}") };
    assert!(text.starts_with("no agent is left (`a`: it was told to end; `b`: it was told to end)"), "{text}");
}

/// An agent behind a line of its own, beside one that the broker reaches directly.
fn behind(nats: &Nats) -> (Proxy, Vec<RunningAgent>) {
    let line = Proxy::start(nats.server.address()).expect("a port");
    let far = Broker { url: format!("nats://{}", line.address()), ..Broker::default() };
    let agents = vec![RunningAgent::start(&nats.broker(), agent("near")), RunningAgent::start(&far, agent("far"))];
    (line, agents)
}

#[test]
fn an_agent_that_is_cut_off_stops_its_load_and_is_free_when_the_line_is_back() {
    let Some(nats) = Nats::start() else { return };
    let (line, _agents) = behind(&nats);
    let server = quick_server();
    let fleet = fleet(&nats.broker(), 2);
    let mut prepared = prepare(&fleet, &get(server.address()), server.address());
    let ended = run(prepared.as_mut(), job(closed(4, long())), |_| line.hold(true));
    assert_lost(&ended, "far", "nothing was heard of it for 4 s");
    // It has stopped before it was given up: no request comes any more.
    let requests = server.record().requests();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(server.record().requests(), requests);
    drop((prepared, fleet));
    line.hold(false);
    fleet_again(&nats, 2);
}

fn fleet_again(nats: &Nats, agents: usize) {
    drop(fleet(&nats.broker(), agents));
}

#[test]
fn a_line_that_loses_everything_for_a_moment_costs_nothing() {
    let Some(nats) = Nats::start() else { return };
    let (line, _agents) = behind(&nats);
    let server = quick_server();
    let fleet = fleet(&nats.broker(), 2);
    let mut prepared = prepare(&fleet, &get(server.address()), server.address());
    let mut cut = false;
    let ended = run(prepared.as_mut(), job(closed(4, Stop::After(Duration::from_secs(4)))), |second| {
        if second == 1 && !cut {
            line.cut();
            cut = true;
        }
    });
    assert!(cut && ended.record().faults.is_empty(), "{:?}", ended.record().faults);
    let seconds: Vec<i64> = ended.intervals.iter().map(|interval| interval.second).collect();
    assert!(seconds.starts_with(&[0, 1, 2, 3]), "{seconds:?}");
    assert_eq!(ended.accounts()["request:page"].0, server.record().requests(), "no second is missing");
}

#[test]
fn a_line_that_is_slow_delays_the_begin_and_not_the_load() {
    let Some(nats) = Nats::start() else { return };
    let (line, _agents) = behind(&nats);
    line.delay(Duration::from_millis(40));
    let server = quick_server();
    let fleet = fleet(&nats.broker(), 2);
    let mut prepared = prepare(&fleet, &get(server.address()), server.address());
    for _ in 0..2 {
        let stop = Stop::Iterations { count: 100, limit: PATIENCE };
        let ended = run_when_ready(prepared.as_mut(), &job(closed(4, stop)));
        assert!(ended.record().faults.is_empty(), "{:?}", ended.record().faults);
        assert_eq!(ended.measured(&Subject::Iteration).count(), 100);
        let far = &ended.record().agents[0];
        assert!(far.name == "far" && far.clock_error.0 >= 40_000_000, "{far:?}");
    }
}

#[test]
fn a_broker_that_restarts_is_survived() {
    let Some(mut given) = Given::with_agents(2) else { return };
    let mut prepared = given.prepare();
    let mut restarted = false;
    let ended = run(prepared.as_mut(), job(closed(4, Stop::After(Duration::from_secs(4)))), |second| {
        if second == 0 && !restarted {
            given.nats.server.restart().expect("it starts again");
            restarted = true;
        }
    });
    assert!(restarted && ended.record().faults.is_empty(), "{:?}", ended.record().faults);
    assert_eq!(ended.accounts()["request:page"].0, given.server.record().requests(), "no second is missing");
}

#[test]
fn a_broker_that_stays_away_voids_the_load_and_agents_stop() {
    let Some(mut given) = Given::with_agents(2) else { return };
    let mut prepared = given.prepare();
    let ended = run(prepared.as_mut(), job(closed(4, long())), |_| given.nats.server.kill());
    assert_eq!(ended.record().faults.len(), 2, "{:?}", ended.record().faults);
    let requests = given.server.record().requests();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(given.server.record().requests(), requests);
}

#[test]
fn an_agent_that_is_told_to_end_while_the_broker_is_away_does_so() {
    let Some(mut given) = Given::with_agents(1) else { return };
    given.nats.server.kill();
    // It knows that its broker is away, and has not given up its run.
    std::thread::sleep(Duration::from_millis(300));
    let agents = std::mem::take(&mut given.agents);
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        drop(agents);
        let _ = sender.send(());
    });
    assert!(ended.recv_timeout(Duration::from_secs(10)).is_ok(), "it waits for its broker");
}

/// Users that write objects below a folder.
fn objects(folder: &Path) -> Workload {
    let storage = Storage {
        name: "local".to_owned(),
        store: Store::Directory(folder.to_owned()),
        mode: Mode::App,
        sync_directory: true,
        payload: Payload::Random,
        size: 10_000,
        block: 64 << 10,
        objects: 3,
        overwrite: false,
        verify: false,
        actions: vec![Action { weight: 1, steps: 0..1 }],
        steps: vec![StorageStep { name: "write".to_owned(), operation: Operation::Write }],
    };
    let (timeout, steps) = (Duration::from_secs(10), Steps::Storage(Box::new(storage)));
    Workload { target: None, connect: Connect::PerUser, timeout, steps }
}

#[test]
fn a_load_tells_where_an_agent_that_was_lost_kept_its_objects() {
    let Some(nats) = Nats::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let permits = Permits { folders: vec![folder.path().to_owned()], ..Permits::default() };
    let start = |name: &str| RunningAgent::start(&nats.broker(), Agent { permits: permits.clone(), ..agent(name) });
    let (_stays, mut leaves) = (start("a"), Some(start("b")));
    let fleet = fleet(&nats.broker(), 2);
    let mut prepared = fleet.prepare(&objects(folder.path()), None).unwrap_or_else(|error| panic!("{error}"));
    let ended = run(prepared.as_mut(), job(closed(2, long())), |_| drop(leaves.take()));
    assert_lost(&ended, "b", TOLD);
    let left = ended.record().warnings.iter().filter(|warning| warning.starts_with("left behind: "));
    let left: Vec<&String> = left.collect();
    let expected = format!("left behind: maybe what agent `b` kept in {}", folder.path().display());
    assert!(left.len() == 1 && left[0].starts_with(&expected), "{:?}", ended.record().warnings);
}

/// The first to be lost is not the last that a load would begin on: those that begin after it stop too.
#[test]
fn a_load_that_begins_without_the_second_of_three_agents_ends_at_once() {
    let Some(mut given) = Given::with_agents(3) else { return };
    let mut prepared = given.prepare();
    drop(given.agents.remove(1));
    std::thread::sleep(Duration::from_secs(5));
    let ended = run(prepared.as_mut(), job(closed(3, long())), |_| ());
    assert_lost(&ended, "b", TOLD);
    drop(prepared);
    let stop = Stop::Iterations { count: 30, limit: PATIENCE };
    let ended = run(given.prepare().as_mut(), job(closed(3, stop)), |_| ());
    assert_eq!(ended.measured(&Subject::Iteration).count(), 30);
    let told = "agent `b` was lost before this load";
    assert!(!ended.record().warnings.iter().any(|warning| warning.starts_with(told)), "a load has said so before");
}
