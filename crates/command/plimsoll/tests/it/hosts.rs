//! Runs whose systems agents start on their hosts: each agent is a process, at a real broker.

use crate::agents::{Agent, Given, TWO_HOSTS, network_can_be_made, says};
use crate::common::{Place, START, Started, TINY, edited, wait_until};
use crate::databases;
use plimsoll_bundle::Contents;
use plimsoll_model::record::Subject;
use plimsoll_testkit::skipped;
use rustix::process::Signal;
use std::process::Command;

/// The study with its system on the host of an agent.
fn elsewhere(study: &str) -> String {
    edited(study, "[system.counter]", "[system.counter]\non    = \"servers\"")
}

/// A study of one block, whose three trials last long enough for something to happen in one.
fn longer() -> String {
    elsewhere(&edited(&edited(TINY, "\"300ms\"", "\"3s\""), "repeats  = 2", "repeats  = 1"))
}

impl Given {
    /// Starts an agent that runs systems, whose folder for them is `there` in that of the test.
    fn host(&self, name: &str) -> Agent {
        std::fs::create_dir_all(self.place.path("there")).expect("a disk");
        self.agent_with(name, &["--label", "servers", "--systems", "there"])
    }

    /// Runs the study with load from here.
    fn run_here(&self, more: &[&str]) -> Started {
        let url = self.broker.url();
        self.place.start(&[&["run", "study.toml", "--out", "bundle", "--nats", &url], more].concat())
    }

    fn bundle(&self) -> Contents {
        let bundle = plimsoll_bundle::read(&self.place.path("bundle")).unwrap();
        assert!(bundle.problems.is_empty(), "{:?}", bundle.problems);
        bundle
    }
}

/// True if a process of the test runs whose command line has this text.
fn runs(given: &Given, text: &str) -> bool {
    given.place.processes().iter().any(|process| process.command.contains(text))
}

fn nothing_runs(given: &Given, text: &str) {
    assert!(!runs(given, text), "still there: {:?}", given.place.processes());
}

#[test]
fn systems_run_where_their_agent_is_and_the_bundle_has_what_it_has_of_those_here() {
    // Hosts are sampled once a second: a shorter load may lie between two samples. Sampling begins with the warm-up, long before
    // the instant from which the seconds of a load count.
    let study = edited(&elsewhere(TINY), "warmup   = \"50ms\"", "warmup   = \"3s\"");
    let study = edited(&study, "duration = \"300ms\"", "duration = \"1s\"");
    let study = edited(
        &study,
        START,
        "start = \"sh run.sh '{plimsoll}' {mode} {address} {files}/note\"\nbuild = \"sh build.sh\"\nversion = \"cat version\"\n\
         files = { note = \"to {mode} at {address}\" }",
    );
    let Some(given) = Given::new(&study) else { return };
    let mut host = given.host("far");
    given.place.write("there/build.sh", "echo building; echo 1.2.3 > version");
    given.place.write("there/run.sh", "cat $4; echo; pwd; exec $1 demo-server --mode $2 --listen $3");
    given.run_here(&[]).end().with_any_verdict().says(&["host servers: agent `far`"]);
    let bundle = given.bundle();
    assert!(bundle.complete);
    for start in &bundle.starts {
        let [load] = start.loads.as_slice() else { panic!("a trial has one load") };
        assert!(load.summary.validity.counts() && load.summary.agents.is_empty(), "{:?}", load.summary.validity);
        // The run is one of them, with its load.
        let others = load.summary.others_elsewhere.get("far");
        assert!(others.is_some_and(|cores| *cores > 0.0), "{:?}", load.summary.others_elsewhere);
        let there = |machine: &str| start.host.iter().filter(|sample| sample.machine == machine).count();
        assert!(there("far") > 0 && there("local") > 0, "both machines are sampled");
        assert!(!start.processes.is_empty() && start.processes.iter().all(|sample| sample.machine == "far"));
        let output = given.place.read(&format!("bundle/starts/{:04}/output-counter.log", start.summary.start.number));
        assert!(output.contains(" at 127.0.0.1:") && output.contains("/there\n"), "{output}");
    }
    assert_eq!(given.place.read("bundle/build-counter.log"), "building\n");
    let report = given.place.read("bundle/report/report.md");
    assert!(report.contains("counter on `servers`: ") && report.contains("Host far"), "{report}");
    assert!(report.contains("plimsoll run study.toml --nats URL\n"), "{report}");
    let versions: Vec<_> = bundle.versions.iter().filter(|version| version.name == "counter").collect();
    assert!(versions.iter().any(|version| version.version.as_deref() == Some("1.2.3")), "{versions:?}");
    assert!(versions.iter().any(|version| version.program.ends_with("/there/run.sh")), "{versions:?}");
    says(&mut host, "free again: the run is over");
    host.signal(Signal::TERM);
    assert_eq!(host.end().code(), Some(0));
    given.place.nothing_runs();
}

/// A call has its path for a name. This one gets the name of a request by HTTP, which is its URL.
const SCRIPT: &str = "
import grpc from 'k6/net/grpc';
const client = new grpc.Client();

export default function () {
    if (__ITER === 0) {
        client.connect(__ENV.ADDRESS, { plaintext: true, reflect: true });
    }
    client.invoke('counter.incrementCounter/increment', { value: 1 }, { tags: { name: `http://${__ENV.ADDRESS}/add` } });
}
";

#[test]
fn requests_of_a_script_to_a_system_on_another_host_are_named_after_it_in_every_trial() {
    let (before, rest) = TINY.split_once("[workload]").expect("it has a workload");
    let (_, after) = rest.split_once("[load]").expect("it has a load");
    let workload = "[workload]\nscript = \"add.js\"\nenv = { ADDRESS = \"{counter.address}\" }\n\n[load]";
    let Some(given) = Given::new(&elsewhere(&format!("{before}{workload}{after}"))) else { return };
    given.place.write("add.js", SCRIPT);
    std::fs::create_dir_all(given.place.path("there")).expect("a disk");
    let arguments = ["--label", "servers", "--systems", "there", "--address", "127.0.0.2"];
    let _host = given.agent_with("far", &arguments);
    given.run_here(&[]).end().with_any_verdict();
    let bundle = given.bundle();
    assert!(bundle.starts.len() >= 4, "{} starts", bundle.starts.len());
    for start in &bundle.starts {
        let subjects = start.loads[0].tallies.keys();
        let calls = subjects.filter(|subject| matches!(subject, Subject::Request(name) if name.ends_with("/add")));
        assert_eq!(calls.collect::<Vec<_>>(), [&Subject::Request("counter/add".to_owned())]);
    }
}

#[test]
fn variants_take_turns_on_another_host_under_the_load_of_agents() {
    let study = edited(
        &edited(TINY, "design   = \"trials\"", "design   = \"turns\""),
        "[load]",
        "[turns]\ncount = 8\n\n[load]",
    );
    let Some(given) = Given::new(&elsewhere(&study)) else { return };
    let (_host, _load) = (given.host("far"), given.agent("load"));
    given.run_here(&["--agents", "1"]).end().with_any_verdict();
    let bundle = given.bundle();
    let loads: Vec<_> = bundle.starts.iter().flat_map(|start| &start.loads).collect();
    assert!(bundle.complete && !loads.is_empty());
    assert!(loads.iter().all(|load| load.summary.agents[0].name == "load"));
    nothing_runs(&given, "demo-server");
}

#[test]
fn a_host_that_is_lost_stops_the_run_which_goes_on_with_another_and_leaves_nothing() {
    let Some(given) = Given::new(&longer()) else { return };
    let host = given.host("first");
    let mut run = given.run_here(&[]);
    // The load of the second trial ends before it is noticed that the agent is lost.
    run.wait_for_load(&given.place, 2);
    host.signal(Signal::KILL);
    host.end();
    run.end().with(3).says(&[
        "agent `first`, on whose host systems run, was lost: nothing was heard of it for 4 s",
        "the trials that had ended are kept; with agents that work, go on: plimsoll run study.toml --nats nats://127.0.0.1:",
    ]);
    wait_until("the end of the systems", || !runs(&given, "demo-server"));
    let _other = given.host("second");
    given.run_here(&["--resume"]).end().with_any_verdict().says(&["done before"]);
    let bundle = given.bundle();
    assert!(bundle.complete);
    let machines = |number: usize| bundle.starts[number].processes.iter().map(|sample| sample.machine.as_str());
    assert!(machines(0).all(|machine| machine == "first") && machines(1).all(|machine| machine == "second"));
}

#[test]
fn systems_on_another_host_end_when_the_run_is_killed_or_cannot_be_heard() {
    let Some(mut given) = Given::new(&longer()) else { return };
    let mut host = given.host("far");
    let mut run = given.run_here(&[]);
    run.wait_until("the end of the first trial", |run| run.stderr().contains("1/3 "));
    run.signal(Signal::KILL);
    run.end();
    says(&mut host, "free again: its coordinator is not heard any more");
    nothing_runs(&given, "demo-server");

    let mut run = given.run_here(&["--resume"]);
    run.wait_until("the system", |_| runs(&given, "demo-server"));
    given.broker.kill();
    run.end().with(3).says(&["agent `far`, on whose host systems run, was lost: nothing was heard of it for 4 s"]);
    // The agent gives up by itself.
    wait_until("the end of the systems", || !runs(&given, "demo-server"));
    given.broker.restart().expect("it starts");
    given.run_here(&["--resume"]).end().with_any_verdict();
    assert!(given.bundle().complete);
}

#[test]
fn an_interrupted_run_waits_for_nothing_on_another_host() {
    let study = edited(
        &elsewhere(TINY),
        START,
        "start = \"sh -c 'sleep 600' {mode} {address}\"\nready = { log = \"never\", within = \"500s\" }",
    );
    let Some(given) = Given::new(&study) else { return };
    let mut host = given.host("far");
    let mut run = given.run_here(&[]);
    run.wait_until("the system", |_| runs(&given, "sleep 600"));
    run.signal(Signal::INT);
    run.end().with(130);
    says(&mut host, "free again: the run is over");
    nothing_runs(&given, "sleep 600");
}

#[test]
fn what_goes_wrong_on_another_host_is_said_with_its_name() {
    for (start, said) in [
        (
            "start = \"./none {mode} {address}\"",
            vec![
                "on the host of agent `far`: the program `./none` of the system `counter` was not found: looked for",
                "{port}",
            ],
        ),
        (
            "start = \"sh -c 'echo no room; exit 7' {mode} {address}\"",
            vec!["on the host of agent `far`: ", "exit code 7", "no room"],
        ),
        (
            "start = \"true {mode} {address}\"\nbuild = \"sh -c 'echo no compiler; exit 1'\"",
            vec!["on the host of agent `far`: ", "no compiler"],
        ),
    ] {
        let Some(given) = Given::new(&edited(&elsewhere(TINY), START, start)) else { return };
        let _host = given.host("far");
        given.run_here(&[]).end().with(3).says(&said);
    }
    // One that dies under load fails its trial.
    let dies = "start = \"sh -c \\\"'{plimsoll}' demo-server --mode {mode} --listen {address} & sleep 1; kill -9 $!; exit 9\\\"\"";
    let Some(given) = Given::new(&edited(&longer(), START, dies)) else { return };
    let _host = given.host("far");
    given.run_here(&[]).end().with(3).says(&["on the host of agent `far`: ", "exit code 9"]);
}

#[test]
fn a_run_without_the_host_of_a_system_says_what_to_start() {
    let Some(given) = Given::new(&elsewhere(TINY)) else { return };
    for command in ["check", "plan"] {
        given.place.plimsoll(&[command, "study.toml"]).with(0).prints(&["hosts `servers`: run it with `--nats URL`"]);
    }
    given.place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(2).says(&[
        "a system of the study runs on the host of an agent (`on = \"servers\"`): name the broker where the agent waits",
        "plimsoll agent --nats URL --label servers --systems FOLDER",
    ]);
    let (_load, _labelled) = (given.agent("load"), given.agent_with("labelled", &["--label", "servers"]));
    given.run_here(&["--wait", "5s"]).end().with(2).says(&[
        "waiting for an agent with the label `servers` that runs systems",
        "expected an agent with the label `servers` that runs systems (`on`), found none after 5 s",
        "`labelled` runs no systems: start it with `--systems FOLDER`",
        "`load` has no label `servers`",
    ]);
    assert!(!given.place.has("bundle"));
    given.place.write("study.toml", TINY);
    given.run_here(&[]).end().with(2).says(&["nothing of this run takes an agent", "`--agents N`"]);
    let agent = ["agent", "--nats", &given.broker.url(), "--systems", "nowhere"];
    given.place.plimsoll(&agent).with(2).says(&["failed to find the folder nowhere of `--systems`"]);
}

#[test]
fn what_a_system_elsewhere_cannot_have_is_named_before_anything_starts() {
    let study = elsewhere(TINY);
    let here = "[system.here]\nstart = \"true {address}\"\n\n[system.counter]";
    for (study, said) in [
        (
            edited(&edited(&study, "[system.counter]", here), "--mode {mode}", "--mode {mode} --to {here.address}"),
            "`here` listens on the loopback of the machine of the run",
        ),
        (
            edited(
                &edited(&study, "[load]", "[database.db]\nserver = \"postgresql\"\n\n[load]"),
                START,
                &format!("{START}\nenv = {{ URL = \"{{db.url}}\" }}"),
            ),
            "`db` listens on the loopback of the machine of the run",
        ),
        (edited(&study, "\"servers\"", "\"servers-{port}\""), "`port`"),
    ] {
        Place::with_study(&study).plimsoll(&["check", "study.toml"]).with(2).says(&[said]);
    }
    // The processors are those of that host, and a port is taken on one host.
    let processors = edited(&study, "[workload]", "cpus = \"200-203\"\nport = 8080\n\n[workload]");
    let other = "[system.here]\nstart = \"true\"\nport = 8080\n\n[system.counter]";
    let place = Place::with_study(&edited(&processors, "[system.counter]", other));
    place.plimsoll(&["check", "study.toml"]).with(0);
    let place = Place::with_study(&study);
    place
        .plimsoll(&["doctor", "--aa", "study.toml"])
        .with(2)
        .says(&["this command starts systems on this machine alone"]);
    let named = ["agent", "--nats", "nats://127.0.0.1:1", "--name", "local"];
    place.plimsoll(&named).with(2).says(&["`local` is the name of the machine of a run"]);
}

/// An agent on the second host that runs systems, and a run with its load on the first.
const SYSTEMS_ELSEWHERE: &str = r#"nsenter -t $host -n "$PLIMSOLL" agent --nats nats://10.9.0.1:4222 --name far --label servers --systems . 2>agent.log &
until grep -q 'waits for runs' agent.log; do sleep 0.05; done
"$PLIMSOLL" run study.toml --nats nats://10.9.0.1:4222 --out bundle 2>run.log && code=0 || code=$?
echo "ended $code"
"#;

#[test]
fn load_and_system_need_not_share_a_machine() {
    let Some(nats) = plimsoll_testkit::nats::program().filter(|_| network_can_be_made()) else {
        return skipped("there is no `nats-server`, or no network can be made (root, `unshare`, `nsenter`, `ip`)");
    };
    // Nobody has to allow the address of a system that the run starts itself.
    let place = Place::with_study(&elsewhere(TINY));
    let mut command = Command::new("unshare");
    command.args(["--net", "bash", "-c", &format!("{TWO_HOSTS}{SYSTEMS_ELSEWHERE}")]).current_dir(place.path("."));
    command.env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll")).env("NATS", nats);
    let ended = Started::new(command).end();
    let log = place.read("run.log");
    assert!(
        ["ended 0\n", "ended 1\n", "ended 4\n"].iter().any(|end| ended.stdout.ends_with(end)),
        "{}\n{log}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("from the same machine"), "{}", ended.stdout);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert!(bundle.complete && bundle.problems.is_empty(), "{:?}", bundle.problems);
    let loads = bundle.starts.iter().flat_map(|start| &start.loads);
    assert!(loads.into_iter().all(|load| load.summary.validity.counts()));
}

#[test]
fn a_database_on_another_host_is_loaded_through_the_network() {
    let Some(nats) = plimsoll_testkit::nats::program().filter(|_| network_can_be_made()) else {
        return skipped("there is no `nats-server`, or no network can be made (root, `unshare`, `nsenter`, `ip`)");
    };
    for server in databases::SERVERS.iter().chain([&databases::MYSQL]) {
        if databases::place(&databases::study(server)).is_none() {
            continue;
        }
        let there =
            Place::with_study(&edited(&databases::study(server), "[database.db]", "[database.db]\non = \"servers\""));
        let mut command = Command::new("unshare");
        command.args(["--net", "bash", "-c", &format!("{TWO_HOSTS}{SYSTEMS_ELSEWHERE}")]).current_dir(there.path("."));
        command.env("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll")).env("NATS", &nats);
        let ended = Started::new(command).end();
        let log = there.read("run.log");
        assert!(!ended.stdout.contains("ended 2\n") && !ended.stdout.contains("ended 3\n"), "{}\n{log}", ended.stdout);
        let bundle = plimsoll_bundle::read(&there.path("bundle")).unwrap();
        assert!(bundle.complete && bundle.problems.is_empty(), "{log}");
        for start in &bundle.starts {
            let facts = &start.summary.systems[0].databases[0];
            assert!(
                facts.transport.starts_with("TCP to 10.9.0.2:") && facts.version.starts_with(server.shown),
                "{facts:?}"
            );
            assert!(facts.settings.iter().any(|setting| setting.name == server.setting), "{facts:?}");
            assert!(facts.work.workload.contains("read_write"), "{:?}", facts.work);
            let commits = start.databases.iter().filter(|sample| sample.counter == "commits" && sample.value > 0.0);
            assert!(commits.count() > 0, "counters come from there");
            assert!(start.loads.iter().all(|load| load.summary.validity.counts()));
        }
    }
}
