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
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
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
    let (place, servers) = (case.place(), Servers::start());
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
    let outputs = cases().into_iter().find(|case| case.file == "outputs.js").expect("the script");
    let (place, servers) = (outputs.place(), Servers::start());
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
fn a_handle_summary_that_returns_nothing_leaves_the_summary_as_it_is() {
    let place = Place::empty();
    place.write("a.js", "export default function () {}\nexport function handleSummary() {}");
    let ended = place.plimsoll(&["script", "run", "-q", "a.js"]).with(0).prints(&["TOTAL RESULTS"]);
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_handle_summary_writes_buffers_and_views_as_they_are() {
    let place = Place::empty();
    let text = "export default function () {}
        export function handleSummary() {
            const bytes = new Uint8Array([0, 255, 128, 10]);
            return { 'all.bin': bytes.buffer, 'part.bin': bytes.subarray(1, 3), stdout: 'done' };
        }";
    place.write("a.js", text);
    place.plimsoll(&["script", "run", "-q", "a.js"]).with(0).prints(&["done"]);
    let written = ["all.bin", "part.bin"].map(|file| std::fs::read(place.path(file)).expect("it was written"));
    assert_eq!(written, [vec![0, 255, 128, 10], vec![255, 128]]);
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

#[test]
fn a_secret_that_a_script_has_read_is_in_nothing_that_the_run_writes() {
    let (place, servers) = (Place::empty(), Servers::start());
    let text = "import http from 'k6/http'; import secrets from 'k6/secrets'; import { check } from 'k6';
        export default async function () {
            const token = await secrets.get('token');
            console.log(token, encodeURIComponent(token), JSON.stringify(token));
            http.get(`${__ENV.URL}/text?t=${token}`, { headers: { Authorization: token } });
            check(1, { [`with ${token}`]: true });
            throw new Error(`thrown with ${token}`);
        }
        export function handleSummary(data) { return { stdout: JSON.stringify(data), 'own.txt': JSON.stringify(data) }; }";
    place.write("a.js", text);
    place.write("secrets.txt", "token=hunter2/&\n\n");
    let [url, ..] = servers.variables();
    let flags = "--secret-source file=secrets.txt --http-debug=full --summary-export sum.json --console-output console.log \
                 -o json=samples.json -o csv=samples.csv";
    let words: Vec<&str> = ["script", "run", "-e", &url, "a.js"].into_iter().chain(flags.split_whitespace()).collect();
    let ended = place.plimsoll(&words).with(0);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    let written = ["own.txt", "sum.json", "console.log", "samples.json", "samples.csv"].map(|file| place.read(file));
    for text in [&ended.stdout].into_iter().chain(&written) {
        assert!(text.contains("***SECRET_REDACTED***") && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn sources_of_secrets_that_cannot_be_read_are_refused() {
    let place = Place::empty();
    place.write("a.js", "export default function () {}");
    for (source, why) in [("vault=x", "found `vault`"), ("file=none.txt", "failed to read none.txt")] {
        place.plimsoll(&["script", "run", "--secret-source", source, "a.js"]).with(104).says(&[why]);
    }
}

#[test]
fn log_lines_go_where_the_command_line_says() {
    let place = Place::empty();
    place.write("a.js", "export default function () { console.log('said'); console.warn('warned'); }");
    let run = |flags: &str| {
        let words: Vec<&str> = ["script", "run", "-q", "a.js"].into_iter().chain(flags.split_whitespace()).collect();
        place.plimsoll(&words).with(0)
    };
    assert!(run("").stderr.contains("INFO[0000] said"));
    assert!(run("--log-output stdout --log-format raw").stdout.starts_with("said\nwarned\n"));
    let nothing = run("--log-output none");
    assert!(!nothing.stderr.contains("said") && !nothing.stdout.contains("said"), "{}", nothing.stderr);
    let filed = run("--log-output file=log.txt,level=warn --log-format json");
    let line: Value = serde_json::from_str(place.read("log.txt").trim()).expect("one line");
    assert_eq!(
        (&line["level"], &line["msg"], &line["source"]),
        (&"warning".into(), &"warned".into(), &"console".into())
    );
    assert!(!filed.stderr.contains("warned"), "{}", filed.stderr);
    let words = ["script", "run", "--log-output", "loki=http://127.0.0.1:1", "a.js"];
    place.plimsoll(&words).with(2).says(&["`stderr`, `stdout`, `none` or `file=FILE,level=LEVEL`"]);
}

#[test]
fn files_for_lines_keep_those_that_they_have() {
    let place = Place::empty();
    place.write("a.js", "export default function () { console.log('said'); }");
    for (flag, file) in [("--console-output=console.log", "console.log"), ("--log-output=file=log.txt", "log.txt")] {
        place.write(file, "earlier\n");
        place.plimsoll(&["script", "run", "-q", flag, "a.js"]).with(0);
        let text = place.read(file);
        assert!(text.starts_with("earlier\n") && text.contains("said"), "{flag}: {text}");
    }
}

#[test]
fn variables_mean_what_they_mean_to_k6() {
    let place = Place::empty();
    place.write("a.js", "export default function () {}");
    let run = |name: &str, value: &str| place.plimsoll_with(&[(name, value)], &["script", "run", "a.js"]).with(0);
    for (value, is_shown) in [("1", false), ("true", false), ("0", true), ("false", true)] {
        let stdout = run("K6_NO_SUMMARY", value).stdout;
        assert_eq!(stdout.contains("TOTAL RESULTS"), is_shown, "{value}: {stdout}");
    }
    run("K6_OUT", "");
    run("K6_OUT", "json=a.json,csv=b.csv").says(&["json=a.json, csv=b.csv"]);
    assert!(place.has("a.json") && place.has("b.csv"));
    let mut command = place.command(&["script", "run", "a.js"]);
    command.env("K6_OUT", OsStr::from_bytes(b"json=\xff.json"));
    Started::new(command).end().with(104).says(&["expected UTF-8 text in the variable `K6_OUT`"]);
}

#[test]
fn exceptions_and_warnings_are_no_lines_of_the_console() {
    let place = Place::empty();
    let text = "import http from 'k6/http';
                export default function () {
                    console.log('said');
                    http.get('http://127.0.0.1:1/');
                    throw new Error('thrown');
                }";
    place.write("a.js", text);
    let run = |flags: &[&str]| place.plimsoll(&[&["script", "run", "-q", "a.js"], flags].concat()).with(0);
    let ended = run(&["--console-output", "said.txt"]).says(&["Request Failed", "thrown"]);
    assert!(!ended.stderr.contains("said"), "{}", ended.stderr);
    let said = place.read("said.txt");
    assert!(said.contains("said") && said.lines().count() == 1, "{said}");
    let json = run(&["--log-format", "json"]).stderr;
    let lines = json.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let sources: Vec<bool> = lines.map(|line| line["source"] == "console").collect();
    assert_eq!(sources, [true, false, false], "{json}");
}

#[test]
fn requests_and_responses_are_shown_where_that_is_asked_for() {
    let (place, servers) = (Place::empty(), Servers::start());
    let text = "import http from 'k6/http'; export default function () { http.post(`${__ENV.URL}/text`, 'sent'); }";
    place.write("a.js", text);
    let [url, ..] = servers.variables();
    for (flag, shown, hidden) in [
        ("--http-debug", &["POST /text HTTP/1.1\n", "HTTP/1.1 200"][..], &["\n\nsent", "\n\nhello"][..]),
        ("--http-debug=full", &["POST /text HTTP/1.1\n", "\n\nsent", "\n\nhello"], &[]),
    ] {
        let ended = place.plimsoll(&["script", "run", "-q", "-e", &url, flag, "a.js"]).with(0).says(shown);
        assert!(hidden.iter().all(|text| !ended.stderr.contains(text)), "{flag}: {}", ended.stderr);
    }
}

#[test]
fn a_run_that_lingers_ends_with_a_signal_and_its_own_code() {
    let place = Place::empty();
    place.write(
        "a.js",
        "export const options = { thresholds: { iterations: ['count>5'] } }; export default function () {}",
    );
    let mut started = place.start(&["script", "run", "-q", "--linger", "a.js"]);
    started.wait_until("the end of the run", |started| started.stderr().contains("until a signal comes"));
    started.signal(Signal::INT);
    started.end().with(99).prints(&["TOTAL RESULTS"]);
}

#[test]
fn a_signal_breaks_off_a_summary_that_does_not_end() {
    let place = Place::empty();
    let text = "import { sleep } from 'k6'; export default function () {}
                export function handleSummary() { console.log('begun'); sleep(100); return {}; }";
    place.write("a.js", text);
    let mut started = place.start(&["script", "run", "-q", "a.js"]);
    started.wait_until("the summary", |started| started.stderr().contains("begun"));
    started.signal(Signal::INT);
    started.end().with(105).prints(&["TOTAL RESULTS"]).says(&["`handleSummary` failed"]);
}

#[test]
fn options_are_printed_as_the_script_and_the_command_line_have_them() {
    let place = Place::empty();
    place.write("a.js", "export const options = { vus: 3, duration: '4s' }; export default function () {}");
    let printed = |flags: &[&str]| -> Value {
        let ended = place.plimsoll(&[&["script", "inspect", "a.js"], flags].concat()).with(0);
        serde_json::from_str(&ended.stdout).expect("JSON")
    };
    assert_eq!(printed(&[]), serde_json::json!({ "vus": 3, "duration": "4s" }));
    let all = printed(&["--execution-requirements", "-u", "5"]);
    assert_eq!((&all["maxVUs"], &all["totalDuration"]), (&5.into(), &"34s".into()));
    assert_eq!(all["scenarios"]["default"]["executor"], "constant-vus");
    place.write("b.js", "export default 5;");
    place.plimsoll(&["script", "inspect", "b.js"]).with(255).says(&["exports a function"]);
}

#[test]
fn a_new_script_runs_and_overwrites_nothing() {
    let (place, servers) = (Place::empty(), Servers::start());
    place.plimsoll(&["script", "new"]).with(0).prints(&["script.js"]);
    place.plimsoll(&["script", "new", "own.js", "--template", "protocol"]).with(0);
    for (file, flags) in [("script.js", &["-i", "1", "-u", "1"][..]), ("own.js", &["-i", "1", "-u", "1"])] {
        let [url, ..] = servers.variables();
        place.plimsoll(&[&["script", "run", "-e", &url, file], flags].concat()).with(0).prints(&["✓ status is 200"]);
    }
    place.write("script.js", "mine");
    place.plimsoll(&["script", "new"]).with(1).says(&["script.js is there already", "--force"]);
    assert_eq!(place.read("script.js"), "mine");
    place.plimsoll(&["script", "new", "--force"]).with(0);
    assert!(place.read("script.js").contains("export default function"));
}

#[test]
fn definitions_of_services_are_read_from_folders_that_the_command_line_allows() {
    let (place, other) = (Place::empty(), Place::empty());
    other.write("own.proto", "syntax = \"proto3\"; package own; message A {} service S { rpc Do(A) returns (A); }");
    let folder = other.path(".").canonicalize().unwrap();
    let text = format!(
        "import grpc from 'k6/net/grpc'; new grpc.Client().load(['{}'], 'own.proto');
        export default function () {{}}",
        folder.display()
    );
    place.write("a.js", &text);
    place.plimsoll(&["script", "run", "a.js"]).with(107).says(&["lies outside the folders", "`--files DIR`"]);
    place.plimsoll(&["script", "run", "--files", &folder.to_string_lossy(), "a.js"]).with(0);
}
