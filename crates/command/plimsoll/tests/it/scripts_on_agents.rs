//! `plimsoll script run` with agents: together they do what one process does, and end together.

use crate::agents::Given;
use crate::common::{Ended, Place, TINY};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;

/// Scenarios of several kinds, the last of which has the users of the first.
const SCENARIOS: &str = "
import { check } from 'k6';
import exec from 'k6/execution';
import secrets from 'k6/secrets';
import { Trend } from 'k6/metrics';
import { answer } from './lib.js';

const number = new Trend('number');
const rows = JSON.parse(open('./rows.json'));

export const options = {
    scenarios: {
        shared: { executor: 'shared-iterations', vus: 3, iterations: 31, gracefulStop: '0s', maxDuration: '2s' },
        each: { executor: 'per-vu-iterations', vus: 4, iterations: 3 },
        arrivals: { executor: 'constant-arrival-rate', rate: 50, duration: '2s', preAllocatedVUs: 4 },
        one: { executor: 'shared-iterations', vus: 1, iterations: 7 },
        later: { executor: 'per-vu-iterations', vus: 3, iterations: 2, startTime: '2s' },
    },
    thresholds: { checks: ['rate==1'], 'number{scenario:each}': ['max<12'] },
};

export function setup() {
    console.log('set up');
    return { rows: rows.length };
}

export default async function (data) {
    const token = await secrets.get('token');
    const { idInTest } = exec.vu;
    const { name, iterationInTest } = exec.scenario;
    console.log(`did ${name} ${idInTest} ${iterationInTest} ${token}`);
    number.add(iterationInTest);
    check(data, { 'what was set up is here': ({ rows }) => rows === 2 && answer === 42 });
}

export function teardown(data) {
    console.log(`torn down after ${data.rows} rows`);
}
";

/// A script that goes on until something ends it.
const ENDLESS: &str = "
import { sleep } from 'k6';
import exec from 'k6/execution';

export const options = { vus: 4, duration: '120s' };

export default function () {
    sleep(0.05);
    if (exec.vu.idInTest === Number(__ENV.ENDS) && exec.vu.iterationInScenario === 20) {
        exec.test.abort('enough');
    }
    console.log(`user ${exec.vu.idInTest}`);
}

export function teardown() {
    console.log('torn down');
}
";

impl Given {
    fn with_scripts() -> Option<Given> {
        let given = Given::new(TINY)?;
        given.place.write("scenarios.js", SCENARIOS);
        given.place.write("lib.js", "export const answer = 42;");
        given.place.write("rows.json", "[1, 2]");
        given.place.write("endless.js", ENDLESS);
        Some(given)
    }

    fn script<'a>(&'a self, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["script", "run", "--nats", url, "--agents", "2"], more].concat()
    }
}

/// The iterations that a run tells: by scenario the users, and by scenario the numbers, each in order.
fn told(ended: &Ended) -> [BTreeMap<String, Vec<u64>>; 2] {
    let mut all: [BTreeMap<String, Vec<u64>>; 2] = Default::default();
    for line in ended.stderr.lines() {
        let Some((_, words)) = line.split_once("did ") else { continue };
        let words: Vec<&str> = words.split_whitespace().collect();
        let [name, user, iteration, ..] = words.as_slice() else { panic!("{line}") };
        all[0].entry((*name).to_owned()).or_default().push(user.parse().expect("a number"));
        all[1].entry((*name).to_owned()).or_default().push(iteration.parse().expect("a number"));
    }
    all.iter_mut().flat_map(BTreeMap::values_mut).for_each(|numbers| numbers.sort_unstable());
    all
}

#[test]
fn scenarios_on_two_agents_are_those_of_one_process() {
    let Some(given) = Given::with_scripts() else { return };
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    let flags = |summary| ["--secret-source", "mock=token=abcdefgh", "--summary-export", summary, "scenarios.js"];
    let here = given.place.plimsoll(&[&["script", "run"], flags("here.json").as_slice()].concat()).with(0);
    let there = given.place.plimsoll(&given.script(&url, &flags("there.json"))).with(0);
    let there = there.says(&["agents     one (", "two (", "agent `one`: 7 VUs, ", "agent `two`: 5 VUs, "]);
    for ended in [&here, &there] {
        let times = |text| ended.stderr.matches(text).count();
        assert_eq!((times("set up"), times("torn down after 2 rows")), (1, 1), "{}", ended.stderr);
        assert!(
            !ended.stderr.contains("abcdefgh") && ended.stderr.contains("***SECRET_REDACTED***"),
            "{}",
            ended.stderr
        );
    }
    // Which users do the iterations that all share is chance.
    let ([mut users_here, mut numbers_here], [mut users_there, mut numbers_there]) = (told(&here), told(&there));
    // One agent has twice as many users of it as the other: their numbers are unique, and some are left out.
    let (_, mut later) = (numbers_here.remove("later"), numbers_there.remove("later").expect("it ran"));
    later.dedup();
    assert_eq!(later.len(), 6);
    assert_eq!(numbers_here, numbers_there);
    assert_eq!(numbers_there["shared"], (0..31).collect::<Vec<u64>>());
    assert_eq!(numbers_there["arrivals"], (0..100).collect::<Vec<u64>>());
    for name in ["shared", "arrivals"] {
        let of = |users: &mut BTreeMap<String, Vec<u64>>| {
            let mut users = users.remove(name).expect("it ran");
            users.dedup();
            users
        };
        let (here, there) = (of(&mut users_here), of(&mut users_there));
        assert!(there.len() > 1 && there.iter().all(|user| (1..=15).contains(user)), "{here:?}, {there:?}");
    }
    assert_eq!(users_here, users_there);
    let summary = |name: &str| -> Value { serde_json::from_str(&given.place.read(name)).expect("JSON") };
    let (here, there) = (summary("here.json"), summary("there.json"));
    for metric in ["number{scenario:each}", "checks"] {
        assert_eq!(here["metrics"][metric], there["metrics"][metric], "{metric}");
    }
    assert_eq!(here["metrics"]["iterations"]["count"], there["metrics"]["iterations"]["count"]);
    assert_eq!(here["root_group"], there["root_group"]);
    assert_eq!(there["setup_data"]["rows"], 2);
}

#[test]
fn an_agent_without_users_keeps_nobody_waiting_and_lines_come_as_they_were_written() {
    let Some(given) = Given::with_scripts() else { return };
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    let text = "import exec from 'k6/execution';
                export default function () {
                    console.log('the first line\\nand the second');
                    console.log(`progress ${exec.scenario.progress}`);
                    throw new Error('no more');
                }";
    given.place.write("once.js", text);
    let ended = given.place.plimsoll(&given.script(&url, &["--console-output", "console.log", "once.js"])).with(0);
    let ended = ended.says(&["Error: no more (once.js:5:", "| "]);
    assert!(!ended.stderr.contains("the first line"), "{}", ended.stderr);
    let console = given.place.read("console.log");
    assert!(console.contains("the first line\nand the second") && console.contains("progress 0"), "{console}");
    assert!(!console.contains("no more"), "{console}");
}

#[test]
fn a_script_that_ends_the_run_on_one_agent_ends_it_on_all() {
    let Some(given) = Given::with_scripts() else { return };
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    for user in ["ENDS=1", "ENDS=2"] {
        let ended = given.place.plimsoll(&given.script(&url, &["-e", user, "endless.js"])).with(108);
        ended.says(&["the script ended the run: enough", "torn down"]).prints(&["iterations"]);
    }
}

#[test]
fn a_threshold_is_held_against_the_samples_of_all_agents() {
    let Some(given) = Given::with_scripts() else { return };
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    // One agent alone has half of them in this time.
    let text = "import { sleep } from 'k6';
                export const options = { vus: 4, duration: '120s', thresholds: {
                    iterations: [{ threshold: 'count<100', abortOnFail: true }] } };
                export default function () { sleep(0.05); }";
    given.place.write("threshold.js", text);
    let ended = given.place.plimsoll(&given.script(&url, &["threshold.js"])).with(99);
    ended.says(&["thresholds on `iterations` do not hold, and one of them ends the run"]);
}

#[test]
fn a_signal_ends_all_agents_work_and_the_summary_is_shown() {
    let Some(given) = Given::with_scripts() else { return };
    let (mut one, mut two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    let mut run = given.place.start(&given.script(&url, &["endless.js"]));
    run.wait_until("users of both agents", |run| ["user 1", "user 2"].iter().all(|user| run.stderr().contains(user)));
    run.signal(Signal::INT);
    run.end().with(105).prints(&["TOTAL RESULTS", "iterations"]).says(&["torn down"]);
    crate::agents::says(&mut one, "free again: the run is over");
    crate::agents::says(&mut two, "free again: the run is over");
}

#[test]
fn a_run_that_loses_an_agent_has_no_result() {
    for (signal, why) in [(Signal::KILL, "nothing was heard of it for 4 s"), (Signal::TERM, "it was told to end")] {
        let Some(given) = Given::with_scripts() else { return };
        let (mut one, two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
        let mut run = given.place.start(&given.script(&url, &["endless.js"]));
        run.wait_until("users of both agents", |run| {
            ["user 1", "user 2"].iter().all(|user| run.stderr().contains(user))
        });
        two.signal(signal);
        let ended = run.end().with(1).says(&["the run has no result: agent `two`: it was lost: ", why]);
        assert!(!ended.stdout.contains("TOTAL RESULTS"), "{}", ended.stdout);
        crate::agents::says(&mut one, "free again: the run is over");
    }
}

#[test]
fn what_agents_cannot_do_for_a_script_is_refused_before_they_are_asked() {
    let Some(given) = Given::with_scripts() else { return };
    let url = given.broker.url();
    let refused = |flags: &[&str], why: &str| {
        let words = [&["script", "run", "--nats", &url], flags].concat();
        given.place.plimsoll(&words).with(104).says(&[why]);
    };
    refused(&["endless.js"], "say how many agents are to run the script (`--agents N`)");
    refused(&["--agents", "2", "-o", "csv=out.csv", "endless.js"], "leave `--out` out");
    refused(&["--agents", "2", "--vendor", "elsewhere", "endless.js"], "leave `--vendor` out");
    let (_one, _two) = (given.agent("one"), given.agent("two"));
    refused(&["--agents", "2", "--rps", "1", "endless.js"], "each of 2 agents needs one");
    let words = given.script(&url, &["--allow", "shop.test", "endless.js"]);
    given.place.plimsoll(&words).with(1).says(&["it may not load `shop.test`: start it with `--allow shop.test`"]);
}

#[test]
fn an_output_that_is_refused_leaves_its_file_as_it_is() {
    let place = Place::empty();
    place.write("a.js", "export default function () {}");
    place.write("samples.csv", "earlier");
    let words = ["script", "run", "--nats", "nats://127.0.0.1:1", "--agents", "1", "-o", "csv=samples.csv", "a.js"];
    place.plimsoll(&words).with(104).says(&["leave `--out` out"]);
    assert_eq!(place.read("samples.csv"), "earlier");
}
