//! Scripts on several agents: set up once, torn down once, and every number once.

use crate::given::{Ended, Nats, PATIENCE, agents, closed, fleet, follow, job, run};
use plimsoll_model::job::{Begin, Job};
use plimsoll_model::load::Stop;
use plimsoll_model::record::Subject;
use plimsoll_model::script::{Script, ScriptLimits};
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_runner::generator::{Generator, JobMessage};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const SCRIPT: &str = r#"
import http from "k6/http";
import exec from "k6/execution";
import { prefix } from "./lib/names.js";
const cities = JSON.parse(open("./data/cities.json"));

export function setup() {
    http.get(`${__ENV.TARGET}/setup`);
    console.log(new Error("here").stack);
    return { token: "abc" };
}

export default function (data) {
    const { vu, scenario } = exec;
    const city = cities[vu.idInTest % cities.length];
    const numbers = [vu.idInTest, __VU, scenario.iterationInTest, scenario.iterationInInstance].join("-");
    http.get(`${__ENV.TARGET}/${prefix}/${numbers}/${city}/${data.token}`, { tags: { name: "visit" } });
}

export function teardown(data) {
    http.get(`${__ENV.TARGET}/teardown/${data.token}`);
}
"#;

/// The script in a folder, with what it imports and opens.
fn script(folder: &Path, target: &str) -> Workload {
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("in the folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    };
    // The project begins above the script.
    write("package.json", "{}");
    write("load/visit.js", SCRIPT);
    write("load/lib/names.js", "export const prefix = \"visit\";");
    write("load/data/cities.json", r#"["rome", "oslo"]"#);
    let script = Script {
        entry: folder.join("load/visit.js"),
        exec: "default".to_owned(),
        env: BTreeMap::from([("TARGET".to_owned(), target.to_owned())]),
        files: Vec::new(),
        limits: ScriptLimits::default(),
        tags: BTreeMap::new(),
        allowed: Vec::new(),
        systems: BTreeMap::new(),
        sources: Vec::new(),
        own_load: None,
    };
    Workload {
        target: None,
        connect: Connect::PerUser,
        timeout: Duration::from_secs(10),
        steps: Steps::Script(Box::new(script)),
    }
}

/// Runs the script with 5 users and 60 iterations on so many agents; gives what the server was asked, in order.
fn visits(agents_wanted: usize) -> Option<(Vec<String>, Ended)> {
    let nats = Nats::start()?;
    let broker = nats.broker();
    let _agents = agents(&broker, agents_wanted);
    let server = Server::start(Behaviour::at_once(Reply::of_size(2))).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    // With several agents the project lies behind a link.
    let (links, real) = (tempfile::tempdir().expect("a folder"), folder.path());
    let link = links.path().join("project");
    std::os::unix::fs::symlink(real, &link).expect("a link");
    let project = if agents_wanted > 1 { link.as_path() } else { real };
    let workload = script(project, &format!("http://{}", server.address()));
    let fleet = fleet(&broker, agents_wanted);
    let mut prepared = fleet.prepare(&workload, None).unwrap_or_else(|error| panic!("{error}"));
    // The agents have files of their own.
    drop(folder);
    let ended = run(prepared.as_mut(), job(closed(5, Stop::Iterations { count: 60, limit: PATIENCE })), |_| ());
    let paths = server.record().first_requests().into_iter().map(|request| request.path).collect();
    Some((paths, ended))
}

#[test]
fn a_script_is_set_up_once_and_its_numbers_are_those_of_one_generator() {
    let Some((paths, ended)) = visits(3) else { return };
    assert!(ended.record().faults.is_empty(), "{:?}", ended.record().faults);
    assert_eq!(ended.measured(&Subject::Request("visit".to_owned())).count(), 60);
    assert_eq!(paths.first().map(String::as_str), Some("/setup"));
    assert_eq!(paths.last().map(String::as_str), Some("/teardown/abc"), "when all users have ended");
    // Paths are those of the run.
    assert!(
        ended.console.contains("/load/visit.js:") && !ended.console.contains("plimsoll-agent"),
        "{}",
        ended.console
    );
    let visits: Vec<Vec<&str>> =
        paths[1..paths.len() - 1].iter().map(|path| path.split('/').skip(1).collect()).collect();
    assert_eq!(visits.len(), 60);
    let (mut users, mut iterations, mut of_agents) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for visit in &visits {
        let [prefix, numbers, city, token] = visit.as_slice() else { panic!("{visit:?}") };
        assert_eq!((*prefix, *token), ("visit", "abc"));
        let numbers: Vec<u64> = numbers.split('-').map(|number| number.parse().expect("a number")).collect();
        let [user, vu, in_test, in_instance] = numbers[..] else { panic!("{numbers:?}") };
        assert_eq!((user, *city), (vu, ["rome", "oslo"][user as usize % 2]));
        users.insert(user);
        iterations.insert(in_test);
        of_agents.push(in_instance);
    }
    assert_eq!(users, (1..=5).collect());
    assert_eq!(iterations, (0..60).collect(), "each iteration has a number of its own");
    of_agents.sort_unstable();
    assert_eq!(of_agents, (0..20).flat_map(|number| [number; 3]).collect::<Vec<u64>>(), "each agent counts its own");
}

#[test]
fn a_script_runs_on_a_single_agent_too() {
    let Some((paths, ended)) = visits(1) else { return };
    assert!(ended.record().faults.is_empty(), "{:?}", ended.record().faults);
    assert_eq!(paths.len(), 62);
    assert_eq!(paths.last().map(String::as_str), Some("/teardown/abc"));
}

#[test]
fn files_that_a_broker_has_lost_are_sent_anew() {
    let Some(mut nats) = Nats::start() else { return };
    let broker = nats.broker();
    let _agents = agents(&broker, 2);
    let server = Server::start(Behaviour::at_once(Reply::of_size(2))).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let workload = script(folder.path(), &format!("http://{}", server.address()));
    let fleet = fleet(&broker, 2);
    drop(fleet.prepare(&workload, None).unwrap_or_else(|error| panic!("{error}")));
    nats.server.restart().expect("it starts again");
    drop(fleet.prepare(&workload, None).unwrap_or_else(|error| panic!("{error}")));
}

/// The script of the others is set up on the first agent meanwhile, and ends with an error when it is told to stop.
#[test]
fn an_agent_that_is_lost_while_a_script_is_set_up_makes_the_load_void_by_name() {
    let Some(nats) = Nats::start() else { return };
    let broker = nats.broker();
    let mut agents = agents(&broker, 2);
    let folder = tempfile::tempdir().expect("a folder");
    let workload = script(folder.path(), "");
    let slow = "import { sleep } from \"k6\";\nexport function setup() { sleep(20); }\nexport default function () {}\n";
    fs::write(folder.path().join("load/visit.js"), slow).expect("a file");
    let fleet = fleet(&broker, 2);
    let mut prepared = fleet.prepare(&workload, None).unwrap_or_else(|error| panic!("{error}"));
    let mut under_way = prepared.begin(Job { begin: Begin::WhenReady, ..job(closed(4, Stop::After(PATIENCE))) });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        let message = under_way.next(Duration::from_millis(50));
        assert!(!matches!(message, Some(JobMessage::Ended(_))), "it is set up");
    }
    drop(agents.pop());
    let ended = follow(under_way.as_mut(), &mut |_| ());
    assert_eq!(ended.record().faults, ["agent `b`: it was lost: it was told to end"]);
}
