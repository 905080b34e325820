//! Runs whose load agents generate: each agent is a process, at a real broker.

use crate::common::{Ended, Place, START, Started, TINY, edited};
use plimsoll_testkit::nats::Server;
use plimsoll_testkit::skipped;
use rustix::process::Signal;
use std::process::Command;
use std::time::Duration;

/// A place with a broker. None, and a line that says so, where there is no `nats-server`.
pub(crate) struct Given {
    pub(crate) place: Place,
    pub(crate) broker: Server,
}

impl Given {
    pub(crate) fn new(study: &str) -> Option<Given> {
        let place = Place::with_study(study);
        let broker = Server::start(&place.path("."), "").expect("a broker");
        if broker.is_none() {
            skipped("there is no `nats-server`");
        }
        Some(Given { place, broker: broker? })
    }

    /// Starts an agent of this name, and waits until it is at the broker.
    pub(crate) fn agent(&self, name: &str) -> Agent {
        self.agent_with(name, &[])
    }

    /// The same, with more arguments.
    pub(crate) fn agent_with(&self, name: &str, more: &[&str]) -> Agent {
        let url = self.broker.url();
        let mut agent = self.place.start(&[&["agent", "--nats", &url, "--name", name], more].concat());
        agent.wait_until("an agent at the broker", |agent| agent.stderr().contains("waits for runs"));
        Agent(Some(agent))
    }

    /// The arguments of a run with so many agents.
    fn run<'a>(&'a self, url: &'a str, agents: &'a str) -> [&'a str; 8] {
        ["run", "study.toml", "--out", "bundle", "--nats", url, "--agents", agents]
    }

    fn resume<'a>(&'a self, url: &'a str, agents: &'a str) -> [&'a str; 9] {
        ["run", "study.toml", "--out", "bundle", "--nats", url, "--agents", agents, "--resume"]
    }
}

/// An agent, which ends with its test.
pub(crate) struct Agent(Option<Started>);

impl Agent {
    pub(crate) fn signal(&self, signal: Signal) {
        self.0.as_ref().expect("it runs").signal(signal);
    }

    pub(crate) fn end(mut self) -> Ended {
        self.0.take().expect("it runs").end()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(agent) = &mut self.0 {
            agent.kill();
        }
    }
}

/// A study of one block, whose three trials last long enough to lose an agent in one.
fn longer() -> String {
    edited(&edited(TINY, "\"300ms\"", "\"3s\""), "repeats  = 2", "repeats  = 1")
}

pub(crate) fn says(agent: &mut Agent, text: &str) {
    agent.0.as_mut().expect("it runs").wait_until(text, |agent| agent.stderr().contains(text));
}

#[test]
fn agents_generate_the_load_of_a_study_and_the_report_has_a_row_for_each() {
    let Some(given) = Given::new(TINY) else { return };
    let (mut east, mut west, url) = (given.agent("east"), given.agent("west"), given.broker.url());
    let ran = given.place.plimsoll(&given.run(&url, "2")).with_any_verdict();
    ran.says(&["agents east (", "west ("]);
    says(&mut east, "working for bundle");
    says(&mut west, "free again: the run is over");
    let report = given.place.read("bundle/report/report.md");
    assert!(report.contains("## Agents") && report.contains("\n| east | 1 |") && report.contains("\n| west | 1 |"));
    assert!(report.contains("2 agents, each with threads of its own"));
    // The counter's replies are checked over those to both agents.
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
    for start in &bundle.starts {
        let [load] = start.loads.as_slice() else { panic!("a trial has one load") };
        let check = load.summary.replies.sequences.values().next().expect("the study checks a sequence");
        assert!(check.holds() && check.replies > 0, "{check:?}");
        let shares: Vec<usize> = load.summary.agents.iter().map(|agent| agent.share.index).collect();
        assert_eq!(shares, [0, 1]);
    }
    east.signal(Signal::TERM);
    assert_eq!(east.end().code(), Some(0));
    west.signal(Signal::TERM);
    west.end();
    given.place.nothing_runs();
}

#[test]
fn variants_take_turns_on_agents_too() {
    let study = edited(
        &edited(TINY, "design   = \"trials\"", "design   = \"turns\""),
        "[load]",
        "[turns]\ncount = 8\n\n[load]",
    );
    let Some(given) = Given::new(&study) else { return };
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    given.place.plimsoll(&given.run(&url, "2")).with_any_verdict();
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
    let loads: usize = bundle.starts.iter().map(|start| start.loads.len()).sum();
    assert!(loads > 0, "no slice");
}

/// Runs a study, and does something to the second of two agents in the second trial.
fn lost_in_the_second_trial(study: &str, signal: Signal) -> Option<(Given, Agent, Agent, Ended)> {
    let given = Given::new(study)?;
    let (first, second, url) = (given.agent("first"), given.agent("second"), given.broker.url());
    let mut run = given.place.start(&given.run(&url, "2"));
    run.wait_for_load(&given.place, 2);
    second.signal(signal);
    let ended = run.end();
    Some((given, first, second, ended))
}

#[test]
fn an_agent_that_is_killed_costs_a_block_which_runs_again_on_the_one_that_is_left() {
    let Some((given, _first, _second, ended)) = lost_in_the_second_trial(&longer(), Signal::KILL) else { return };
    ended.with_any_verdict();
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
    let loads = || bundle.starts.iter().flat_map(|start| &start.loads).map(|load| &load.summary);
    let void: Vec<_> = loads().filter(|load| !load.validity.counts()).collect();
    assert!(!void.is_empty(), "no load is void");
    for load in &void {
        let reasons = load.validity.reasons().join("; ");
        assert!(reasons.contains("agent `second`: it was lost: nothing was heard of it for 4 s"), "{reasons}");
    }
    let agents = |wanted: usize| loads().filter(|load| load.validity.counts() && load.agents.len() == wanted).count();
    assert!(agents(2) >= 1, "the first trial had both");
    assert!(agents(1) >= 3, "the block that ran again had one");
    let report = given.place.read("bundle/report/report.md");
    assert!(report.contains("| lost: nothing was heard of it for 4 s |"), "{report}");
}

#[test]
fn an_agent_that_is_slowed_voids_the_load_by_name() {
    let study = edited(&edited(&longer(), "\"1ms\"", "\"20ms\""), "max_lateness = \"10s\"", "max_lateness = \"200ms\"");
    let Some(given) = Given::new(&study) else { return };
    let (_first, second, url) = (given.agent("first"), given.agent("second"), given.broker.url());
    let mut run = given.place.start(&given.run(&url, "2"));
    run.wait_until("the end of the first trial", |run| run.stderr().contains("1/3 "));
    // Every few iterations of its user begin late, in all of the second trial.
    for _ in 0..12 {
        second.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(300));
        second.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(100));
    }
    run.end().with_any_verdict();
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    let loads = bundle.starts.iter().flat_map(|start| &start.loads).map(|load| &load.summary);
    let void: Vec<String> =
        loads.map(|load| load.validity.reasons().join("; ")).filter(|why| !why.is_empty()).collect();
    assert!(void.iter().any(|why| why.contains("agent `second` missed its schedule")), "{void:?}");
}

#[test]
fn an_agent_that_stood_still_lets_go_when_it_goes_on() {
    let Some((given, mut first, mut second, ended)) = lost_in_the_second_trial(&longer(), Signal::STOP) else {
        return;
    };
    ended.with_any_verdict();
    second.signal(Signal::CONT);
    says(&mut second, "free again: its coordinator is not heard any more");
    says(&mut first, "free again: the run is over");
    // Both work for the next run.
    let url = given.broker.url();
    let again = ["run", "study.toml", "--quick", "--out", "again", "--nats", &url, "--agents", "2"];
    given.place.plimsoll(&again).with(0);
}

#[test]
fn a_run_stops_when_an_agent_is_lost_if_its_study_says_so_and_goes_on_with_others() {
    let study = edited(&longer(), "[generator]", "[generator]\nlost_agent   = \"stop\"");
    let Some((given, _first, _second, ended)) = lost_in_the_second_trial(&study, Signal::KILL) else { return };
    ended.with(3).says(&[
        "agent `second` was lost (nothing was heard of it for 4 s), and the study says that the run stops then",
        "the trials that had ended are kept; with agents that work, go on: plimsoll run study.toml --nats nats://127.0.0.1:",
        "--agents 2 --resume --out bundle",
    ]);
    let (_third, url) = (given.agent("third"), given.broker.url());
    given.place.plimsoll(&given.resume(&url, "2")).with_any_verdict();
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
}

#[test]
fn agents_of_a_run_that_is_killed_are_free_and_the_run_goes_on() {
    let Some(given) = Given::new(&longer()) else { return };
    let (mut one, mut two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    let mut run = given.place.start(&given.run(&url, "2"));
    run.wait_until("the end of the first trial", |run| run.stderr().contains("1/3 "));
    run.signal(Signal::KILL);
    run.end();
    says(&mut one, "free again: its coordinator is not heard any more");
    says(&mut two, "free again: its coordinator is not heard any more");
    given
        .place
        .plimsoll(&["run", "study.toml", "--out", "bundle", "--resume"])
        .with(2)
        .says(&["the load of the trials in bundle came from agents, and so must that of the others"]);
    given.place.plimsoll(&given.resume(&url, "2")).with_any_verdict().says(&["done before"]);
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
}

/// A script with two hosts: a network namespace with a broker, and one that is entered by `nsenter -t $host -n`, joined by a cable.
pub(crate) const TWO_HOSTS: &str = r#"
set -eu
ip link set lo up
ip link add here type veth peer name there
unshare --net sleep 600 &
host=$!
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
until [ "$(readlink /proc/$host/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link set there netns $host
ip addr add 10.9.0.1/24 dev here
ip link set here up
nsenter -t $host -n ip addr add 10.9.0.2/24 dev there
nsenter -t $host -n ip link set there up
nsenter -t $host -n ip link set lo up
"$NATS" -js -sd jetstream -a 10.9.0.1 -p 4222 >/dev/null 2>&1 &
"#;

/// An agent on the second host, and runs with their systems on the first.
const AGENT_ELSEWHERE: &str = r#"nsenter -t $host -n "$PLIMSOLL" agent --nats nats://10.9.0.1:4222 --name far --allow 10.9.0.1 2>agent.log &
until grep -q 'waits for runs' agent.log; do sleep 0.05; done
for study in loopback network; do
    "$PLIMSOLL" run $study.toml --nats nats://10.9.0.1:4222 --agents 1 --out $study 2>$study.log && code=0 || code=$?
    echo "$study $code"
done
"#;

/// True if a test may make networks of its own.
pub(crate) fn network_can_be_made() -> bool {
    let is_there = |program: &&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        found.is_ok_and(|found| found.status.success())
    };
    rustix::process::geteuid().is_root() && ["unshare", "nsenter", "ip"].iter().all(is_there)
}

#[test]
fn an_agent_on_another_host_loads_what_it_reaches_and_the_loopback_of_the_run_is_refused() {
    let Some(nats) = plimsoll_testkit::nats::program().filter(|_| network_can_be_made()) else {
        return skipped("there is no `nats-server`, or no network can be made (root, `unshare`, `nsenter`, `ip`)");
    };
    let place = Place::empty();
    place.write("loopback.toml", TINY);
    let start = START.replace("{address}", "10.9.0.1:{port}");
    let there = edited(&edited(TINY, START, &start), "\"{counter.address}\"", "\"10.9.0.1:{counter.port}\"");
    let there = edited(
        &there,
        "[workload]",
        "ready = { tcp = \"10.9.0.1:{port}\" }\n\n[targets]\nallow = [\"10.9.0.1\"]\n\n[workload]",
    );
    place.write("network.toml", there);
    let mut command = Command::new("unshare");
    command.args(["--net", "bash", "-c", &format!("{TWO_HOSTS}{AGENT_ELSEWHERE}")]).current_dir(place.path("."));
    command.env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll")).env("NATS", nats);
    let ended = Started::new(command).end();
    let log = |name: &str| place.read(&format!("{name}.log"));
    assert!(ended.stdout.contains("loopback 3\n"), "{}\n{}\n{}", ended.stdout, ended.stderr, log("loopback"));
    assert!(
        log("loopback")
            .contains("the target is at 127.0.0.1, the loopback of this machine, and agent `far` is on another")
    );
    assert!(
        !ended.stdout.contains("network 3\n") && !ended.stdout.contains("network 2\n"),
        "{}\n{}",
        ended.stdout,
        log("network")
    );
    let bundle = plimsoll_bundle::read(&place.path("network")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
    let loads = bundle.starts.iter().flat_map(|start| &start.loads);
    for load in loads {
        assert!(load.summary.validity.counts(), "{:?}", load.summary.validity);
        assert!(load.summary.agents[0].round_trip.is_some());
    }
}

#[test]
fn a_run_without_its_agents_leaves_no_bundle_and_says_who_was_there() {
    let Some(given) = Given::new(TINY) else { return };
    let (_one, url) = (given.agent("one"), given.broker.url());
    let arguments = [given.run(&url, "2").as_slice(), &["--wait", "5s"]].concat();
    given.place.plimsoll(&arguments).with(2).says(&[
        "waiting for agents: 1 of 2 are there",
        "expected 2 agents, found 1 (`one`) after 5 s; start more with `plimsoll agent --nats URL`",
    ]);
    assert!(!given.place.has("bundle"));
    given.place.plimsoll(&["run", "study.toml", "--agents", "2"]).with(2).says(&["--nats <URL>"]);
}

#[test]
fn an_agent_that_may_not_load_the_target_is_told_before_anything_starts() {
    let study = edited(TINY, "\"{counter.address}\"", "\"10.9.9.9:80\"");
    let study = edited(&study, "[workload]", "[targets]\nallow = [\"10.9.9.9\"]\n\n[workload]");
    let Some(given) = Given::new(&study) else { return };
    let (_one, url) = (given.agent("one"), given.broker.url());
    given
        .place
        .plimsoll(&given.run(&url, "1"))
        .with(2)
        .says(&["agent `one` cannot do this work: it may not load `10.9.9.9`: start it with `--allow 10.9.9.9`"]);
    assert!(!given.place.has("bundle"));
}

#[test]
fn an_agent_waits_for_a_broker_that_comes_later() {
    let Some(mut given) = Given::new(TINY) else { return };
    given.broker.kill();
    let mut agent = Agent(Some(given.place.start(&["agent", "--nats", &given.broker.url(), "--name", "early"])));
    says(&mut agent, "trying again every second");
    given.broker.restart().expect("it starts");
    says(&mut agent, "agent `early` waits for runs at nats://127.0.0.1:");
    agent.signal(Signal::INT);
    assert_eq!(agent.end().code(), Some(0));
}
