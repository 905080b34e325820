//! Scripts against real servers: what crosses the wire, and what becomes of users.

use crate::support::{self, closed, iterations};
use plimsoll_k6::metrics::Aggregation;
use plimsoll_k6::options::Options;
use plimsoll_k6::plan::Plan;
use plimsoll_load::script::{Allowed, Console, End, Go, Limits, Ran, Run, Why, inspect, run};
use plimsoll_load::{PrepareError, Prepared, check, notes, sources};
use plimsoll_model::load::{LoadModel, LoadProfile, Stop, Think};
use plimsoll_model::record::{ErrorKind, Metric, Subject};
use plimsoll_model::script::{Script, ScriptLimits};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_script::{Entry, Files, Level, Program};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A script, and all that a run of it has to do with.
pub(crate) struct Trial {
    program: Arc<Program>,
    plan: Arc<Plan>,
    limits: Limits,
    threads: usize,
    lines: Arc<Mutex<Vec<(Level, String)>>>,
    interrupted: AtomicBool,
}

/// What came of it.
pub(crate) struct Outcome {
    ran: Ran,
    lines: Vec<(Level, String)>,
    plan: Arc<Plan>,
}

impl Trial {
    /// The script `text`, whose `TARGET` is this address.
    pub(crate) fn of(text: &str, target: &str) -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::within([folder.path()]).expect("the folder is there");
        let program = Program::load(Entry::Text { name: "load.js", text }, files, plimsoll_k6::natives());
        let program = program.unwrap_or_else(|faults| panic!("{faults:?}"));
        let env = vec![("TARGET".to_owned(), target.to_owned())];
        let lines = Arc::default();
        let inspected = inspect(&program, env, Limits::default(), &console(&lines)).expect("it can be loaded");
        let json = inspected.options.as_deref().unwrap_or("{}");
        let read = Options::read(&serde_json::from_str(json).expect("JSON"));
        assert_eq!((read.faults, read.ignored), (Vec::new(), Vec::new()));
        let options = read.options.over(Options::defaults());
        let exports: Vec<&str> = program.exports().iter().map(String::as_str).collect();
        let scenarios = options.scenarios(&exports).expect("scenarios").scenarios;
        let plan = Arc::new(inspected.plan.settled(options, scenarios, inspected.registry));
        let (limits, interrupted) = (Limits::default(), AtomicBool::new(false));
        Trial { program, plan, limits, threads: 1, lines, interrupted }
    }

    fn on(self, threads: usize) -> Trial {
        Trial { threads, ..self }
    }

    fn limited(self, limits: Limits) -> Trial {
        Trial { limits, ..self }
    }

    pub(crate) fn run(self) -> Outcome {
        self.watched(|_| Go::On)
    }

    fn watched(self, mut on_tick: impl FnMut(&AtomicBool) -> Go) -> Outcome {
        let job = Run {
            program: &self.program,
            plan: &self.plan,
            limits: self.limits,
            allowed: Allowed::loopback_and(&[], "name it with `--allow`"),
            threads: self.threads,
            cpus: None,
            seed: 7,
            console: console(&self.lines),
            interrupted: &self.interrupted,
        };
        let ran = run(&job, &mut |_| on_tick(&self.interrupted)).expect("the machine allows it");
        let lines = self.lines.lock().expect("nobody panicked").clone();
        Outcome { ran, lines, plan: self.plan }
    }
}

fn console(lines: &Arc<Mutex<Vec<(Level, String)>>>) -> Console {
    let lines = Arc::clone(lines);
    Arc::new(move |level, line| lines.lock().expect("nobody panicked").push((level, line.to_owned())))
}

impl Outcome {
    fn metric(&self, name: &str, what: Aggregation) -> f64 {
        let id = self.plan.registry.id(name).expect("there is such a metric");
        self.ran.sinks.get(id, None).get(what, self.ran.elapsed).expect("it has such a thing")
    }

    pub(crate) fn count(&self, name: &str) -> f64 {
        self.metric(name, Aggregation::Count)
    }

    /// All checks, with how often they passed and failed.
    pub(crate) fn checks(&self) -> Vec<(&str, u64, u64)> {
        self.ran.checks.all().iter().map(|check| (check.name.as_str(), check.passes, check.fails)).collect()
    }

    /// What was written, without its levels.
    pub(crate) fn said(&self) -> Vec<&str> {
        self.lines.iter().map(|(_, line)| line.as_str()).collect()
    }
}

fn server(behaviour: Behaviour) -> (Server, String) {
    let server = Server::start(behaviour).expect("a port");
    let target = format!("http://{}", server.address());
    (server, target)
}

fn quick() -> (Server, String) {
    server(Behaviour::at_once(Reply::ok("hello")))
}

#[test]
fn iterations_are_exact_on_any_number_of_threads_and_each_user_keeps_its_connection() {
    for threads in [1, 2, 3] {
        let (server, target) = quick();
        let text = "import http from 'k6/http'; import { check } from 'k6';
            export const options = { vus: 7, iterations: 101 };
            export default function () {
                const res = http.get(`${__ENV.TARGET}/a?b=c`);
                check(res, { 'is whole': (r) => r.status === 200 && r.body === 'hello' && r.remote_port > 0 });
            }";
        let outcome = Trial::of(text, &target).on(threads).run();
        assert_eq!(outcome.said(), [""; 0]);
        assert_eq!(outcome.ran.end, End::Finished);
        assert_eq!(outcome.checks(), [("is whole", 101, 0)]);
        assert_eq!((outcome.count("iterations"), outcome.count("http_reqs")), (101.0, 101.0));
        assert_eq!((server.record().requests(), server.record().connections()), (101, 7), "with {threads} threads");
        assert!(outcome.count("data_sent") > 101.0 * 50.0, "{} bytes", outcome.count("data_sent"));
        assert!(outcome.count("data_received") > 101.0 * 30.0, "{} bytes", outcome.count("data_received"));
    }
}

#[test]
fn connections_are_kept_as_long_as_options_say() {
    for (option, connections) in [("noConnectionReuse", 12), ("noVUConnectionReuse", 6), ("throw", 2)] {
        let (server, target) = quick();
        let text = "import http from 'k6/http';
            export const options = { vus: 2, iterations: 6, OPTION: true };
            export default function () { http.get(__ENV.TARGET); http.get(__ENV.TARGET); }";
        let outcome = Trial::of(&text.replace("OPTION", option), &target).run();
        assert_eq!(outcome.said(), [""; 0]);
        assert_eq!((server.record().requests(), server.record().connections()), (12, connections), "{option}");
        let closing = server.record().first_requests().iter().all(|one| one.header("connection") == Some("close"));
        assert_eq!(closing, option == "noConnectionReuse");
    }
}

#[test]
fn a_kept_connection_that_the_server_has_closed_is_made_anew() {
    let (server, target) = server(Behaviour::at_once(Reply::ok("bye").closing()));
    let text = "import http from 'k6/http'; import { check } from 'k6';
        export const options = { vus: 1, iterations: 20 };
        export default function () { check(http.get(__ENV.TARGET), { fine: (r) => r.body === 'bye' }); }";
    let outcome = Trial::of(text, &target).run();
    assert_eq!((outcome.checks(), outcome.said()), (vec![("fine", 20, 0)], vec![]));
    assert_eq!(server.record().connections(), 20);
}

#[test]
fn bodies_of_all_kinds_arrive_whole_and_timed() {
    let big = Reply::of_size(3_000_000);
    for reply in [big.clone(), big.clone().chunked(1000), big.clone().until_close(), big.after_interim(2)] {
        let (_server, target) = server(Behaviour::at_once(reply));
        let text = "import http from 'k6/http'; import { check } from 'k6';
            export default function () {
                const res = http.post(__ENV.TARGET, 'x'.repeat(500000));
                check(res, {
                    whole: (r) => r.body.length === 3000000,
                    timed: ({ timings: t }) => t.duration > 0 && t.receiving > 0 && t.connecting > 0 && t.blocked >= t.connecting
                        && Math.abs(t.duration - t.sending - t.waiting - t.receiving) < 1e-6 && t.tls_handshaking === 0,
                });
            }";
        assert_eq!(Trial::of(text, &target).run().checks(), [("whole", 1, 0), ("timed", 1, 0)]);
    }
}

#[test]
fn requests_of_a_batch_go_at_once() {
    let (server, target) = server(Behaviour::after(Duration::from_millis(50), Reply::ok("hello")));
    let text = "import http from 'k6/http'; import { check } from 'k6';
        export const options = { iterations: 2 };
        export default function () {
            const all = http.batch(Array(12).fill(__ENV.TARGET));
            check(all, { 'all of them': (a) => a.length === 12 && a.every((r) => r.status === 200) });
        }";
    let outcome = Trial::of(text, &target).run();
    assert_eq!(outcome.checks(), [("all of them", 2, 0)]);
    assert_eq!((server.record().requests(), server.record().connections()), (24, 6), "six of them at once");
}

#[test]
fn requests_go_on_while_the_script_does_something_else() {
    let (_server, target) = server(Behaviour::after(Duration::from_millis(20), Reply::ok("hello")));
    let text = "import http from 'k6/http'; import { check, sleep } from 'k6';
        export default async function () {
            const both = [http.asyncRequest('GET', __ENV.TARGET), http.asyncRequest('GET', __ENV.TARGET)];
            sleep(0.1);
            const ticked = new Promise((done) => setTimeout(done, 5, 'tick'));
            const [first, second] = await Promise.all(both);
            check(await ticked, { ticked: (text) => text === 'tick' && first.body + second.body === 'hellohello' });
        }";
    let outcome = Trial::of(text, &target).run();
    assert_eq!((outcome.checks(), outcome.said()), (vec![("ticked", 1, 0)], vec![]));
}

/// What a script is told of requests that come to nothing: error code and message, a line each.
fn told_of(target: &str, params: &str) -> Vec<(Level, String)> {
    let text = "import http from 'k6/http';
        export const options = { iterations: 2 };
        export default function () {
            const res = http.get(__ENV.TARGET, PARAMS);
            console.log(`${res.status} ${res.error_code} ${res.error}`);
        }";
    Trial::of(&text.replace("PARAMS", params), target).run().lines
}

#[test]
fn requests_that_fail_say_why_and_the_user_goes_on() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one");
    let (_silent, never) = server(Behaviour::never());
    let (_cutting, cut) = server(Behaviour::at_once(Reply::of_size(100).cut_after(10)));
    let (_babbling, garbage) = server(Behaviour::at_once(Reply::garbage("SSH-2.0-x\r\n\r\n")));
    let tls = Server::builder(Behaviour::at_once(Reply::ok("x"))).tls().start().expect("a port");
    let cases = [
        (format!("http://{closed}"), "{}", "0 1212 ", "refused"),
        (never, "{ timeout: '100ms' }", "0 1050 ", "timeout"),
        (cut, "{}", "0 1000 ", "EOF"),
        (garbage, "{}", "0 1000 ", "SSH-2.0-x"),
        (format!("https://{}", tls.address()), "{}", "0 1310 ", "authority"),
        ("http://192.0.2.1".to_owned(), "{}", "0 1110 ", "`--allow`"),
        ("http://a..b".to_owned(), "{ timeout: '20s' }", "0 110", "lookup"),
    ];
    for (target, params, begin, part) in cases {
        let lines = told_of(&target, params);
        let told: Vec<&String> =
            lines.iter().filter(|(level, _)| *level == Level::Info).map(|(_, line)| line).collect();
        assert_eq!(told.len(), 2, "{target}: {lines:?}");
        assert!(told.iter().all(|line| line.starts_with(begin) && line.contains(part)), "{target}: {told:?}");
    }
}

#[test]
fn tls_is_spoken_and_timed() {
    let server = Server::builder(Behaviour::at_once(Reply::of_size(100_000))).tls().start().expect("a port");
    let text = "import http from 'k6/http'; import { check } from 'k6';
        export const options = { vus: 3, iterations: 9, insecureSkipTLSVerify: true };
        export default function () {
            check(http.post(__ENV.TARGET, 'x'.repeat(100000)), {
                whole: (r) => r.body.length === 100000 && r.tls_version === 'tls1.3' && r.tls_cipher_suite.startsWith('TLS_'),
                'shakes hands once': (r) => (r.timings.tls_handshaking > 0) === (__ITER === 0),
            });
        }";
    let outcome = Trial::of(text, &format!("https://localhost:{}", server.address().port())).run();
    assert_eq!(outcome.checks(), [("whole", 9, 0), ("shakes hands once", 9, 0)], "{:?}", outcome.said());
    assert_eq!(server.record().connections(), 3);
}

#[test]
fn names_stand_for_addresses() {
    let (server, _) = quick();
    let port = server.address().port();
    let text = format!(
        "import http from 'k6/http'; import {{ check }} from 'k6';
        export const options = {{ vus: 5, iterations: 10, hosts: {{ 'shop.example': '127.0.0.1:{port}' }} }};
        export default function () {{
            const all = [http.get('http://shop.example/'), http.get('http://localhost:{port}/')];
            check(all, {{ fine: ([a, b]) => a.body + b.body === 'hellohello' && a.remote_ip === '127.0.0.1' }});
        }}"
    );
    let outcome = Trial::of(&text, "").run();
    assert_eq!((outcome.checks(), outcome.said()), (vec![("fine", 10, 0)], vec![]));
    let hosts: Vec<String> = server.record().first_requests()[..2]
        .iter()
        .map(|request| request.header("host").expect("it has one").to_owned())
        .collect();
    assert!(hosts.contains(&"shop.example".to_owned()), "{hosts:?}");
}

#[test]
fn setup_hands_its_data_to_users_and_teardown() {
    let (server, target) = quick();
    let text = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { vus: 2, iterations: 4 };
        export function setup() { sleep(0.01); return { status: http.get(__ENV.TARGET).status, vu: __VU }; }
        export default function (data) { console.log(`user ${data.status} ${data.vu}`); data.status = 0; data.status = 200; }
        export function teardown(data) { console.log(`teardown ${data.status} ${http.get(__ENV.TARGET).body}`); }";
    let outcome = Trial::of(text, &target).on(2).run();
    assert_eq!(outcome.said(), ["user 200 0", "user 200 0", "user 200 0", "user 200 0", "teardown 200 hello"]);
    assert_eq!(outcome.ran.setup_data.as_deref(), Some(r#"{"status":200,"vu":0}"#));
    assert_eq!((outcome.count("http_reqs"), server.record().requests()), (2.0, 2));
    assert_eq!(outcome.count("iterations"), 4.0);
}

#[test]
fn a_setup_that_fails_lets_nothing_follow() {
    let ended = |setup: &str| {
        let text = format!(
            "import {{ sleep }} from 'k6'; import exec from 'k6/execution';
            export const options = {{ setupTimeout: '100ms' }};
            export function setup() {{ {setup} }}
            export default function () {{ console.log('iteration'); }}
            export function teardown() {{ console.log('teardown'); }}"
        );
        let outcome = Trial::of(&text, "").run();
        assert!(!outcome.said().contains(&"iteration") && !outcome.said().contains(&"teardown"), "{setup}");
        outcome.ran.end
    };
    let End::Setup(Why::Threw(exception)) = ended("throw new Error('no data')") else { panic!("it throws") };
    assert!(exception.message.contains("no data"), "{exception}");
    assert_eq!(ended("sleep(10)"), End::Setup(Why::TimedOut));
    assert_eq!(ended("exec.test.abort('enough')"), End::Aborted("enough".to_owned()));
    assert!(matches!(ended("for (;;) {}"), End::Setup(Why::Broke(_))));
}

#[test]
fn a_user_that_throws_goes_on() {
    let text = "export const options = { iterations: 3 };
        export default function () { if (__ITER < 2) { throw new Error(`no ${__ITER}`); } console.log('fine'); }";
    let outcome = Trial::of(text, "").run();
    let said = outcome.said();
    assert!(said[0].contains("Error: no 0 (load.js:2:") && said[1].contains("no 1") && said[2] == "fine", "{said:?}");
    assert_eq!(outcome.count("iterations"), 3.0);
    assert_eq!(outcome.ran.end, End::Finished);
}

#[test]
fn a_user_that_breaks_a_limit_is_stopped_for_good_and_the_others_go_on() {
    let cases = [
        ("for (;;) { try { for (;;) {} } catch (e) {} }", "without waiting"),
        ("let all = []; for (;;) { all.push('x'.repeat(100000) + all.length); }", "of memory"),
        ("(function deeper() { deeper(); })();", "of stack"),
        ("sleep(100);", "its iteration took more than 0.2 s"),
    ];
    for (code, part) in cases {
        let text = format!(
            "import {{ sleep }} from 'k6';
            export const options = {{ scenarios: {{ all: {{ executor: 'per-vu-iterations', vus: 4, iterations: 5 }} }} }};
            export default function () {{ if (__VU === 2 && __ITER === 1) {{ {code} }} }}"
        );
        let vm = plimsoll_script::Limits { busy: Nanos(300_000_000), memory: 16 << 20, ..Default::default() };
        let limits = Limits { vm, iteration: Some(Duration::from_millis(200)).filter(|_| code.starts_with("sleep")) };
        let outcome = Trial::of(&text, "").limited(limits).run();
        assert_eq!(outcome.ran.end, End::Finished, "{code}");
        let [broken] = outcome.ran.broken.as_slice() else { panic!("{code}: {:?}", outcome.ran.broken) };
        assert!(broken.starts_with("user 2 ") && broken.contains(part), "{broken}");
        assert_eq!(outcome.count("iterations"), 16.0, "one of user 2, five of each other");
    }
}

#[test]
fn iterations_that_take_longer_than_they_may_are_interrupted() {
    let text = "import { sleep } from 'k6';
        export const options = { scenarios: { s: {
            executor: 'constant-vus', vus: 3, duration: '1s', gracefulStop: '100ms' } } };
        export default function () { try { if (__VU > 1) sleep(60); sleep(0.3); } finally { console.log('over'); } }";
    let outcome = Trial::of(text, "").run();
    assert_eq!(outcome.ran.end, End::Finished);
    assert_eq!(outcome.plan.counts.interrupted.load(Relaxed), 2 + u64::from(outcome.count("iterations") == 3.0));
    assert!(outcome.ran.elapsed < Duration::from_secs(30));
}

#[test]
fn users_that_a_ramp_asks_for_no_more_are_interrupted() {
    let text = "import { sleep } from 'k6';
        export const options = { scenarios: { s: { executor: 'ramping-vus', startVUs: 3, gracefulRampDown: '0s',
            gracefulStop: '0s', stages: [{ duration: '200ms', target: 1 }, { duration: '200ms', target: 1 }] } } };
        export default function () { sleep(60); }";
    let outcome = Trial::of(text, "").run();
    assert_eq!((outcome.count("iterations"), outcome.plan.counts.interrupted.load(Relaxed)), (0.0, 3));
}

#[test]
fn a_script_ends_the_run() {
    let text = "import exec from 'k6/execution'; import { sleep } from 'k6';
        export const options = { vus: 4, duration: '1m' };
        export default function () { if (__VU === 3) { exec.test.abort('that will do'); } sleep(60); }
        export function teardown() { console.log('teardown'); }";
    let outcome = Trial::of(text, "").on(2).run();
    assert_eq!(outcome.ran.end, End::Aborted("that will do".to_owned()));
    assert_eq!(outcome.said(), ["teardown"]);
    assert_eq!(outcome.count("iterations"), 1.0, "k6 counts the one that ended it");
}

#[test]
fn a_run_is_broken_off_from_outside() {
    let text = "import { sleep } from 'k6';
        export const options = { vus: 2, duration: '1m' };
        export default function () { sleep(60); }
        export function teardown() { console.log('teardown'); }";
    let interrupted = Trial::of(text, "").watched(|interrupted| {
        interrupted.store(true, Relaxed);
        Go::On
    });
    assert_eq!((&interrupted.ran.end, interrupted.said()), (&End::Interrupted, vec!["teardown"]));
    let aborted = Trial::of(text, "").watched(|_| Go::Abort);
    assert_eq!((&aborted.ran.end, aborted.said()), (&End::Stopped, vec!["teardown"]));
}

#[test]
fn no_more_requests_begin_in_a_second_than_they_may() {
    let (server, target) = quick();
    let text = "import http from 'k6/http';
        export const options = { vus: 10, iterations: 21, rps: 50 };
        export default function () { http.get(__ENV.TARGET); }";
    let outcome = Trial::of(text, &target).on(2).run();
    assert_eq!((server.record().requests(), outcome.count("iterations")), (21, 21.0));
    assert!(outcome.ran.elapsed >= Duration::from_millis(400), "20 gaps of 20 ms are {:?}", outcome.ran.elapsed);
}

#[test]
fn iterations_that_find_no_user_are_dropped() {
    let text = "import { sleep } from 'k6';
        export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: 20, timeUnit: '1s',
            duration: '1s', preAllocatedVUs: 1, maxVUs: 2, gracefulStop: '0s' } } };
        export default function () { sleep(60); }";
    let outcome = Trial::of(text, "").run();
    assert_eq!(outcome.plan.counts.interrupted.load(Relaxed), 2);
    assert_eq!(outcome.plan.counts.users_made.load(Relaxed), 2);
    assert_eq!(outcome.count("dropped_iterations"), 18.0);
}

#[test]
fn iterations_last_as_long_as_they_must() {
    let text = "export const options = { iterations: 3, minIterationDuration: '100ms' };
        export default function () {}";
    let outcome = Trial::of(text, "").run();
    assert!(outcome.ran.elapsed >= Duration::from_millis(200), "{:?}", outcome.ran.elapsed);
    assert!(outcome.metric("iteration_duration", Aggregation::Max) < 100.0, "the pause is none of it");
}

/// A workload that is a script, in a folder of its own.
fn workload(folder: &Path, text: &str, target: &str) -> Workload {
    let entry = folder.join("load.js");
    std::fs::write(&entry, text).expect("a file");
    let script = Script {
        entry,
        exec: "default".to_owned(),
        env: BTreeMap::from([("TARGET".to_owned(), target.to_owned())]),
        files: Vec::new(),
        limits: ScriptLimits::default(),
        tags: BTreeMap::new(),
        allowed: Vec::new(),
        sources: Vec::new(),
    };
    let timeout = Duration::from_secs(10);
    Workload { target: None, connect: Connect::PerUser, timeout, steps: Steps::Script(Box::new(script)) }
}

/// What came of a study's load of this script.
fn study(text: &str, target: &str, load: &LoadProfile, threads: usize) -> support::Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let prepared = Prepared::new(&workload(folder.path(), text, target), None).expect("the script is in order");
    support::run_prepared(&prepared, load, threads, &AtomicBool::new(false))
}

#[test]
fn a_study_records_requests_by_name_and_checks_and_own_metrics() {
    let (server, target) = quick();
    let text =
        "import http from 'k6/http'; import { check } from 'k6'; import { Trend, Rate, Counter } from 'k6/metrics';
        const size = new Trend('size'), even = new Rate('even'), bytes = new Counter('bytes');
        export const options = { vus: 1000, duration: '1h', thresholds: { http_reqs: ['count<1'] } };
        export function setup() { return { name: http.get(__ENV.TARGET).body }; }
        export default function ({ name }) {
            const res = http.get(`${__ENV.TARGET}/${__ITER}`, { tags: { name } });
            check(res, { 'is even': () => __ITER % 2 === 0 });
            size.add(res.body.length); even.add(__ITER % 2 === 0); bytes.add(5);
            http.get(__ENV.TARGET);
        }";
    for threads in [1, 2] {
        let before = server.record().requests();
        let outcome = study(text, &target, &closed(4, support::each(10)), threads);
        assert_eq!(outcome.iterations().count(), 40);
        assert_eq!(outcome.requests("hello").count(), 40, "{:?}", outcome.measure.keys().collect::<Vec<_>>());
        assert_eq!(outcome.requests(&target).count(), 40, "that of setup is none");
        assert_eq!(server.record().requests() - before, 81);
        let checks = outcome.subject(&Subject::Check("is even".to_owned()));
        assert_eq!((checks.count(), checks.failed()), (40, 20));
        let custom = |metric, name: &str| outcome.subject(&Subject::Custom(metric, name.to_owned()));
        assert_eq!(custom(Metric::Trend, "size").service.max() / 1_000_000, 5);
        assert_eq!(custom(Metric::Rate, "even").failed(), 20);
        assert_eq!(custom(Metric::Counter, "bytes").count(), 40);
        assert_eq!(outcome.connects().count(), 4);
        assert!(outcome.requests("hello").bytes_in > 40 * 30 && outcome.requests("hello").first_byte.len() == 40);
        assert_eq!((outcome.record.faults, outcome.record.warnings), (vec![], Vec::<String>::new()));
    }
}

#[test]
fn in_a_study_what_throws_and_what_breaks_limits_is_told() {
    let text = "export default function () {
            if (__VU === 1 && __ITER === 2) { for (;;) {} }
            if (__ITER === 1) { throw new Error('not the second'); }
        }";
    let outcome = study(text, "", &closed(3, support::each(4)), 1);
    let errors: Vec<_> = outcome.iterations().errors.into_iter().collect();
    assert_eq!(errors, [(ErrorKind::Script, 3), (ErrorKind::Limit, 1)]);
    assert_eq!(outcome.iterations().count(), 3 + 4 + 4);
    let examples = &outcome.record.error_examples["iteration"];
    assert!(examples[&ErrorKind::Script].contains("not the second"), "{examples:?}");
    assert!(examples[&ErrorKind::Limit].contains("user 1 was stopped for good"), "{examples:?}");
    assert_eq!(outcome.record.warnings.len(), 1, "{:?}", outcome.record.warnings);
}

#[test]
fn in_a_study_a_request_that_hangs_is_a_timeout_at_the_end_of_the_drain_and_a_sleep_is_nothing() {
    let (_server, target) = server(Behaviour::never());
    let text = "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { if (__VU === 1) { http.get(__ENV.TARGET); } sleep(60); }";
    let load = LoadProfile { drain: Duration::from_millis(50), ..closed(2, Stop::After(Duration::from_millis(300))) };
    let outcome = study(text, &target, &load, 1);
    assert_eq!(outcome.errors(&target), [(ErrorKind::Timeout, 1)]);
    let errors: Vec<_> = outcome.iterations().errors.into_iter().collect();
    assert_eq!(errors, [(ErrorKind::Timeout, 1)]);
}

#[test]
fn users_of_a_study_think_between_iterations() {
    let load = closed(2, support::each(3));
    let LoadModel::Closed { users, .. } = load.model else { unreachable!("it is closed") };
    let think = Think::Constant(Duration::from_millis(100));
    let load = LoadProfile { model: LoadModel::Closed { users, think }, ..load };
    let outcome = study("export default function () {}", "", &load, 1);
    assert_eq!(outcome.iterations().count(), 6);
    assert!(outcome.record.window >= Nanos(200_000_000), "{:?}", outcome.record.window);
}

#[test]
fn a_setup_that_fails_fails_the_trial() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "export function setup() { throw new Error('no data'); } export default function () {}";
    let prepared = Prepared::new(&workload(folder.path(), text, ""), None).expect("the script is in order");
    let generator = support::generator(1);
    let (load, interrupted) = (closed(1, iterations(1)), AtomicBool::new(false));
    let job = plimsoll_load::Job {
        load: &load,
        generator: &generator,
        seed: 7,
        interrupted: &interrupted,
        on_place: &|_| (),
    };
    let error = prepared.run(&job, &mut |_| ()).expect_err("it throws");
    assert!(error.to_string().contains("`setup` of the script failed: Error: no data"), "{error}");
}

#[test]
fn what_is_wrong_with_a_script_is_found_before_any_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = |text: &str| match check(&workload(folder.path(), text, "")) {
        Err(PrepareError(faults)) => faults.join("\n"),
        Ok(()) => panic!("{text}: it is found"),
    };
    let cases = [
        ("export default function () {\n  let x = ;\n}", "load.js:2:11"),
        ("import x from 'k6/browser'; export default function () {}", "`k6/browser` is not supported"),
        ("import './gone.js'; export default function () {}", "gone.js"),
        ("throw new Error('at once'); export default function () {}", "at once"),
        ("export function other() {}", "`default`"),
        ("export const options = { batch: 'many' }; export default function () {}", "batch"),
        ("open('/etc/passwd'); export default function () {}", "outside"),
        ("for (;;) {} export default function () {}", "without waiting"),
    ];
    for (text, part) in cases {
        let told = faults(text);
        assert!(told.contains(part), "{text}: {told}");
    }
}

#[test]
fn what_of_a_script_counts_and_what_it_reads_is_known_before_any_load() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("data.csv"), "a,b").expect("a file");
    let text = "const data = open('data.csv');
        export const options = { vus: 3, stages: [], thresholds: { checks: ['rate>0.9'] }, unheardOf: 1 };
        export default function () {}";
    let workload = workload(folder.path(), text, "");
    let told = notes(&workload);
    assert!(told.iter().any(|line| line.contains("`vus`, `stages`") && line.contains("[load]")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("`thresholds`")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("unheardOf")), "{told:?}");
    let read: Vec<String> = sources(&workload)
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(read, ["data.csv", "load.js"]);
}
