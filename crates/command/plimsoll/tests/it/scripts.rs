//! `plimsoll script run` with the scripts of `corpus/`, each of which says what is to come of it; and the same scripts
//! in k6, where that is installed.

mod corpus;
mod peer;
mod wire;

use crate::common::{Ended, Place, Started};
use corpus::{Case, cases};
use peer::K6;
use rustix::process::Signal;
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::{Servers, Wire};

/// How many scripts run at once: most of them wait.
const AT_ONCE: usize = 4;

/// What came of a script.
struct Outcome {
    ended: Ended,
    wire: Wire,
    /// What `--summary-export` wrote.
    summary: Option<Value>,
}

fn run(case: &Case) -> Outcome {
    let (place, servers) = (Place::empty(), Servers::start());
    place.copy_of(&corpus::folder());
    let variables = servers.variables();
    let fixed = ["script", "run", "--summary-export", "summary.json"];
    let variables = variables.iter().flat_map(|variable| ["-e", variable]);
    let flags = fixed.into_iter().chain(variables).chain(case.flags.split_whitespace()).chain([case.file.as_str()]);
    let ended = place.plimsoll(&flags.collect::<Vec<_>>());
    let summary = place.has("summary.json").then(|| serde_json::from_str(&place.read("summary.json")).expect("JSON"));
    Outcome { ended, wire: servers.seen(), summary }
}

/// How often checks passed and failed.
fn checks(summary: Option<&Value>) -> Option<(u64, u64)> {
    let checks = &summary?["metrics"]["checks"];
    Some((checks["passes"].as_u64()?, checks["fails"].as_u64()?))
}

/// What is not as the script says.
fn faults(case: &Case, outcome: &Outcome) -> Vec<String> {
    let Outcome { ended, wire, summary } = outcome;
    let found = checks(summary.as_ref()).map_or((0, 0), |(passes, fails)| (passes, passes + fails));
    let differs = [
        (ended.code() != Some(case.exit)).then(|| format!("exit {:?} instead of {}", ended.code(), case.exit)),
        case.requests
            .filter(|count| *count != wire.requests.len())
            .map(|count| format!("not {count} requests: {wire:#?}")),
        case.checks.filter(|checks| *checks != found).map(|checks| format!("checks {found:?} instead of {checks:?}")),
        (!case.says.iter().all(|text| ended.stderr.contains(text)))
            .then(|| format!("it says not all of {:?}", case.says)),
        (!case.prints(&ended.stdout)).then(|| format!("it prints not all of {:?}", case.prints)),
    ];
    differs.into_iter().flatten().collect()
}

/// Does something for each script, several at once; gives what is wrong with any.
fn for_each(cases: &[Case], look: impl Fn(&Case) -> Vec<String> + Sync) -> Vec<String> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let faults = look(case);
                    wrong.lock().unwrap().extend(faults.iter().map(|fault| format!("{}: {fault}", case.file)));
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn scripts_do_what_they_say() {
    let wrong = for_each(&cases(), |case| {
        let outcome = run(case);
        let mut faults = faults(case, &outcome);
        if let Some(last) = faults.last_mut() {
            *last += &format!("\n-- stdout\n{}\n-- stderr\n{}", outcome.ended.stdout, outcome.ended.stderr);
        }
        faults
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn scripts_do_what_they_do_in_k6() {
    let Some(k6) = K6::find() else { return };
    let comparable: Vec<Case> = cases().into_iter().filter(|case| !case.only_here).collect();
    let wrong = for_each(&comparable, |case| peer::differences(&run(case), &k6.run(case)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_signal_ends_the_run_and_its_summary_is_still_shown() {
    let place = Place::empty();
    let text = "import { sleep } from 'k6';
                export default function () { sleep(0.05); console.log('one more'); }
                export function teardown() { console.log('torn down'); }";
    place.write("long.js", text);
    let mut started = place.start(&["script", "run", "-d", "60s", "-u", "2", "long.js"]);
    started.wait_until("some iterations", |started| started.stderr().contains("one more"));
    started.signal(Signal::INT);
    started.end().with(105).prints(&["TOTAL RESULTS", "iterations"]).says(&["torn down"]);
}

#[test]
fn a_script_may_come_from_standard_input() {
    let place = Place::empty();
    place.write("in.js", "export default function () { console.log('from there'); }");
    let mut command = place.command(&["script", "run", "-"]);
    command.stdin(std::fs::File::open(place.path("in.js")).unwrap());
    Started::new(command).end().with(0).says(&["from there"]);
}

#[test]
fn options_come_from_the_environment_below_the_command_line() {
    let place = Place::empty();
    place.write("a.js", "export const options = { iterations: 2 }; export default function () {}");
    let count = |arguments: &[&str]| {
        let words = [&["script", "run", "--summary-export", "out.json"], arguments, &["a.js"]].concat();
        let mut command = place.command(&words);
        Started::new({
            command.env("K6_ITERATIONS", "3");
            command
        })
        .end()
        .with(0);
        let summary: Value = serde_json::from_str(&place.read("out.json")).unwrap();
        summary["metrics"]["iterations"]["count"].as_u64()
    };
    assert_eq!((count(&[]), count(&["-i", "4"])), (Some(3), Some(4)));
}

#[test]
fn samples_are_written_one_by_one() {
    let (place, servers) = (Place::empty(), Servers::start());
    place.copy_of(&corpus::folder());
    let [url, ..] = servers.variables();
    let flags = "--tag team=x -o json=samples.json -o csv=samples.csv";
    let words: Vec<&str> = ["script", "run", "-e", &url, "outputs.js"].into_iter().chain(flags.split(' ')).collect();
    place.plimsoll(&words).with(0);
    let json = place.read("samples.json");
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place_of = |kind: &str| lines.iter().position(|line| line["type"] == kind && line["metric"] == "http_reqs");
    assert!(place_of("Metric") < place_of("Point") && place_of("Point").is_some(), "{json}");
    let point = &lines[place_of("Point").unwrap()]["data"];
    let tags = ["method", "status", "scenario", "team", "group"].map(|tag| point["tags"][tag].as_str());
    assert_eq!(tags, [Some("GET"), Some("200"), Some("default"), Some("x"), Some("")], "{point}");
    let csv = place.read("samples.csv");
    assert!(csv.starts_with("metric_name,timestamp,metric_value,check,"), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("http_reqs,") && line.contains("team=x")), "{csv}");
}

#[test]
fn what_k6_has_and_plimsoll_has_not_is_refused_by_name() {
    let place = Place::empty();
    place.write("a.js", "export default function () {}");
    place.plimsoll(&["script", "run", "--paused", "a.js"]).with(104).says(&["`--paused` is not supported"]);
    place.plimsoll(&["script", "run", "-o", "influxdb=http://x", "a.js"]).with(104).says(&["`influxdb`"]);
    place.plimsoll(&["script", "run", "none.js"]).with(107).says(&["none.js"]);
}

#[test]
fn copies_of_remote_modules_are_taken_by_hand_and_used_as_they_were_taken() {
    let place = Place::empty();
    let save = |name: &str, text: &str| {
        std::fs::create_dir_all(place.path("vendor/jslib.example")).unwrap();
        place.write(&format!("vendor/jslib.example/{name}"), text);
    };
    let (vendor, run) = (["script", "vendor", "load.js"], ["script", "run", "-q", "load.js"]);
    let text = "import { greet } from 'https://jslib.example/greet.js';
                export default function () { console.log(greet()); }";
    place.write("load.js", text);
    let missing = ["missing  https://jslib.example/greet.js", "save it as vendor/jslib.example/greet.js"];
    place.plimsoll(&vendor).with(1).prints(&missing).says(&["1 of 1 is missing: save it"]);
    place.plimsoll(&run).with(107).says(&["is not fetched; save it as `vendor/jslib.example/greet.js`"]);
    save("greet.js", "const { name } = require('./name.js'); exports.greet = () => 'hello ' + name;");
    let untaken =
        ["was not taken yet; look at `vendor/jslib.example/greet.js`, then run `plimsoll script vendor load.js`"];
    place.plimsoll(&run).with(107).says(&untaken);
    let some = ["taken    https://jslib.example/greet.js", "missing  https://jslib.example/name.js"];
    place.plimsoll(&vendor).with(1).prints(&some).says(&["1 of 2 is missing"]);
    save("name.js", "exports.name = 'world';");
    let all = ["known    https://jslib.example/greet.js", "taken    https://jslib.example/name.js"];
    place.plimsoll(&vendor).with(0).prints(&all);
    place.plimsoll(&run).with(0).says(&["hello world"]);
    save("name.js", "exports.name = 'moon';");
    place.plimsoll(&run).with(107).says(&["https://jslib.example/name.js", "has changed since it was taken"]);
    place.plimsoll(&vendor).with(0).prints(&["changed  https://jslib.example/name.js"]);
    place.plimsoll(&run).with(0).says(&["hello moon"]);
    place.write("plain.js", "export default function () {}");
    place.plimsoll(&["script", "vendor", "plain.js"]).with(0).prints(&["plain.js has no remote imports"]);
    place.write("broken.js", "import 'https://jslib.example/greet.js'; import './none.js';");
    place
        .plimsoll(&["script", "vendor", "broken.js"])
        .with(107)
        .prints(&["known"])
        .says(&["broken.js:1:49", "none.js"]);
}

#[test]
fn copies_may_be_in_another_folder() {
    let place = Place::empty();
    std::fs::create_dir_all(place.path("copies/jslib.example")).unwrap();
    place.write("copies/jslib.example/greet.js", "exports.greet = () => 'hello';");
    let text = "const { greet } = require('https://jslib.example/greet.js');
                exports.default = () => console.log(greet());";
    place.write("load.js", text);
    let run = ["script", "run", "-q", "--vendor", "copies", "load.js"];
    place.plimsoll(&run).with(107).says(&["then run `plimsoll script vendor load.js --out copies`"]);
    place.plimsoll(&["script", "vendor", "load.js", "--out", "copies"]).with(0).prints(&["taken"]);
    place.plimsoll(&run).with(0).says(&["hello"]);
}

#[test]
fn what_setup_throws_is_told_once() {
    let place = Place::empty();
    place.write("a.js", "export function setup() { throw new Error('no token'); }\nexport default function () {}");
    let ended =
        place.plimsoll(&["script", "run", "a.js"]).with(107).says(&["`setup` failed: Error: no token (a.js:1:"]);
    assert_eq!(ended.stderr.matches("no token (a.js").count(), 1, "{}", ended.stderr);
}

#[test]
fn what_teardown_throws_is_told_also_where_something_else_ended_the_run() {
    let place = Place::empty();
    let text = "import exec from 'k6/execution';
                export default function () { exec.test.abort('enough'); }
                export function teardown() { throw new Error('still there'); }";
    place.write("a.js", text);
    place.plimsoll(&["script", "run", "a.js"]).with(108).says(&["enough", "`teardown` failed: Error: still there"]);
}
