//! Loads of several agents are those of one generator.

use crate::given::{Given, PATIENCE, RunningAgent};
use crate::given::{Nats, agent, agents, closed, fleet, follow, get, job, open, prepare, quick_server, run, wanted};
use plimsoll_fleet::{Agent, Fleet, FleetError};
use plimsoll_model::job::{Begin, Job, JobError};
use plimsoll_model::load::{Arrivals, LoadModel, Stop};
use plimsoll_model::record::Subject;
use plimsoll_model::units::UnixTime;
use plimsoll_model::workload::{Connect, Target, Workload};
use plimsoll_runner::generator::{Generator, JobMessage, LocalThreads, NotReady};
use plimsoll_system::Interrupt;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The generator of this process, and fleets of 1, 2, 4 and 8 agents, offer the same arrivals: the schedule is one, and so
/// every number that follows from it is the same.
#[test]
fn any_number_of_agents_offers_the_same_arrivals() {
    let Some(nats) = Nats::start() else { return };
    let broker = nats.broker();
    let _agents = agents(&broker, 8);
    let server = quick_server();
    let workload = get(server.address());
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let load = open(1000.0 / 3.0, arrivals, Duration::from_millis(1500));
        let mut alone = prepare(&LocalThreads, &workload, server.address());
        let expected = run(alone.as_mut(), job(load.clone()), |_| ());
        let arrived = expected.measured(&Subject::Iteration).count();
        assert!(arrived > 400, "{arrived} arrivals");
        for count in [1, 2, 4, 8] {
            let fleet = fleet(&broker, count);
            let mut together = prepare(&fleet, &workload, server.address());
            let ended = run(together.as_mut(), job(load.clone()), |_| ());
            assert_eq!(ended.measured(&Subject::Iteration).count(), arrived, "{count} agents, {arrivals:?}");
            assert_eq!(ended.accounts()["request:page"], expected.accounts()["request:page"]);
            let record = ended.record();
            assert!(record.faults.is_empty(), "{:?}", record.faults);
            let names: Vec<&str> = record.agents.iter().map(|agent| agent.name.as_str()).collect();
            assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h"][..count]);
            assert!(record.agents.iter().all(|agent| agent.round_trip.is_some() && agent.reported > 0));
        }
    }
}

#[test]
fn iterations_that_users_share_are_as_many_as_with_one_generator() {
    let Some(given) = Given::with_agents(3) else { return };
    let mut prepared = given.prepare();
    let stop = Stop::Iterations { count: 1000, limit: PATIENCE };
    let ended = run(prepared.as_mut(), job(closed(7, stop)), |_| ());
    assert_eq!(ended.measured(&Subject::Iteration).count(), 1000);
    assert_eq!(ended.accounts()["request:page"], (1000, 1000));
    assert_eq!(
        given.server.record().connections() as usize,
        7 + 3 * 3,
        "those of users, and three to measure each agent's way"
    );
}

#[test]
fn users_that_stay_keep_their_connections_from_load_to_load() {
    let Some(given) = Given::with_agents(2) else { return };
    let mut prepared = given.prepare();
    let load = closed(4, Stop::After(Duration::from_secs(1)));
    for stays in [true, true, false] {
        let ended = run(prepared.as_mut(), Job { stays, ..job(load.clone()) }, |_| ());
        assert!(ended.measured(&Subject::Iteration).count() > 0);
        assert!(ended.record().faults.is_empty());
    }
    assert_eq!(given.server.record().connections(), 4 + 2 * 3);
}

#[test]
fn a_load_that_is_told_too_late_ends_and_the_next_has_new_users() {
    let server = quick_server();
    let mut prepared = prepare(&LocalThreads, &get(server.address()), server.address());
    let stop = Stop::Iterations { count: 20, limit: PATIENCE };
    let told = Job { begin: Begin::WhenTold, stays: true, ..job(closed(2, stop)) };
    let mut late = prepared.begin(told.clone());
    assert!(matches!(late.next(PATIENCE), Some(JobMessage::Ready)));
    late.begin_at(UnixTime(0));
    let ended = follow(late.as_mut(), &mut |_| ());
    assert!(matches!(ended.result, Some(Err(JobError::Late(_)))), "{:?}", ended.result);
    drop(late);
    let ended = run(prepared.as_mut(), Job { begin: Begin::WhenReady, stays: false, ..told }, |_| ());
    assert_eq!(ended.measured(&Subject::Iteration).count(), 20);
}

#[test]
fn a_load_that_is_stopped_ends_on_every_agent() {
    let Some(given) = Given::with_agents(2) else { return };
    let mut prepared = given.prepare();
    let mut under_way = prepared.begin(Job { begin: Begin::WhenReady, ..job(closed(2, Stop::After(PATIENCE))) });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        under_way.next(Duration::from_millis(50));
    }
    under_way.stop();
    let ended = follow(under_way.as_mut(), &mut |_| ());
    assert!(ended.record().interrupted);
    assert!(begun.elapsed() < PATIENCE / 2);
}

#[test]
fn a_workload_for_a_host_that_an_agent_may_not_load_is_refused_by_name() {
    let Some(given) = Given::with_agents(1) else { return };
    let elsewhere = "192.0.2.7:80".parse().expect("an address");
    let Err(error) = given.fleet.prepare(&get(elsewhere), Some(elsewhere)) else { panic!("it was not refused") };
    let expected = "agent `a` cannot do this work: it may not load `192.0.2.7`: start it with `--allow 192.0.2.7`, if that is \
                    yours to load";
    assert_eq!(error, NotReady::Workload(expected.to_owned()));
}

#[test]
fn a_target_by_name_that_an_agent_may_not_load_is_refused_before_anything_starts() {
    let Some(given) = Given::with_agents(1) else { return };
    let refusal = |host: &str| {
        let target = Some(Target { host: host.to_owned(), port: 80, tls: None });
        given.fleet.refusal(&Workload { target, ..get(given.server.address()) })
    };
    // An old way to write 192.0.2.7. To us it is a name, which resolvers know without asking anybody.
    let expected = "agent `a` cannot do this work: it may not load `192.0.519`: start it with `--allow 192.0.519`, if that is \
                    yours to load";
    assert_eq!(refusal("192.0.519").as_deref(), Some(expected));
    assert_eq!(refusal("localhost"), None);
    assert_eq!(refusal(&"x".repeat(300)), None, "nobody knows it yet");
}

#[test]
fn agents_are_taken_by_label_and_those_that_are_busy_are_named() {
    let Some(nats) = Nats::start() else { return };
    let broker = nats.broker();
    let labelled = Agent { labels: BTreeSet::from(["east".to_owned()]), ..agent("far") };
    let _agents = (agents(&broker, 1), RunningAgent::start(&broker, labelled));
    let mut request = wanted(1);
    request.labels.insert("east".to_owned());
    let busy = Fleet::gather(&broker, &request, &Interrupt::new(), &mut |_| ()).expect("it is there");
    assert_eq!(busy.agents().map(|(name, _)| name).collect::<Vec<_>>(), ["far"]);
    let mut said = Vec::new();
    request.wait = Duration::from_secs(2);
    let gathered = Fleet::gather(&broker, &request, &Interrupt::new(), &mut |text| said.push(text.to_owned()));
    let Err(FleetError::TooFew(text)) = gathered else { panic!("an agent works for two runs") };
    assert!(text.starts_with("expected 1 agent, found 0 after 2 s; "), "{text}");
    assert!(text.contains("`a` has no label `east`") && text.contains("`far` works for another run"), "{text}");
    assert_eq!(said, ["waiting for agents: 0 of 1 are there"]);
    drop(busy);
    request.wait = PATIENCE;
    Fleet::gather(&broker, &request, &Interrupt::new(), &mut |_| ()).expect("it is free again");
}

#[test]
fn a_broker_that_is_not_there_is_named_without_its_password() {
    let broker = plimsoll_fleet::Broker { url: "nats://me:secret@127.0.0.1:9".to_owned(), ..Default::default() };
    let Err(error) = Fleet::gather(&broker, &wanted(1), &Interrupt::new(), &mut |_| ()) else { panic!("no broker") };
    let text = error.to_string();
    assert!(text.starts_with("failed to connect to NATS at nats://127.0.0.1:9: "), "{text}");
}

#[test]
fn fewer_connections_or_users_than_agents_are_refused() {
    let Some(given) = Given::with_agents(2) else { return };
    let address = given.server.address();
    let shared = Workload { connect: Connect::Shared(1), ..get(address) };
    let Err(error) = given.fleet.prepare(&shared, Some(address)) else { panic!("an agent has no connection") };
    let expected = "the users share 1 connections, and each of 2 agents needs one of its own";
    assert!(error.to_string().starts_with(expected), "{error}");
    let mut load = open(100.0, Arrivals::Constant, Duration::from_millis(200));
    let LoadModel::Open { max_users, .. } = &mut load.model else { panic!("it is open") };
    *max_users = 1;
    let ended = run(given.prepare().as_mut(), job(load), |_| ());
    let faults = &ended.record().faults;
    assert!(faults[0].starts_with("`max_users` is 1, and each of 2 agents needs a user"), "{faults:?}");
}
