//! Scripts as the load of a study.

use super::{quick, server};
use crate::job::{JobsInTurn, lasting};
use crate::support::{self, closed, iterations};
use plimsoll_generator::{Prepared, check, notes, sources};
use plimsoll_model::load::{LoadModel, LoadProfile, Stop, Think};
use plimsoll_model::record::{ErrorKind, Metric, Subject};
use plimsoll_model::script::{Script, ScriptLimits};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_testkit::http::{Behaviour, Reply};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A workload that is a script, in a folder of its own.
pub(crate) fn workload(folder: &Path, text: &str, target: &str) -> Workload {
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
        systems: address_of(target).map(|address| (address, "web".to_owned())).into_iter().collect(),
        sources: Vec::new(),
        own_load: None,
    };
    let timeout = Duration::from_secs(10);
    Workload { target: None, connect: Connect::PerUser, timeout, steps: Steps::Script(Box::new(script)) }
}

/// The address in a URL such as `http://127.0.0.1:8080`.
fn address_of(target: &str) -> Option<SocketAddr> {
    target.rsplit("//").next()?.parse().ok()
}

/// The result of a study's load of this script.
pub(crate) fn study(text: &str, target: &str, load: &LoadProfile, threads: usize) -> support::Outcome {
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
        assert_eq!(outcome.requests("web").count(), 40, "by the system that it goes to; that of setup is none");
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
    assert_eq!(outcome.record.broken.len(), 1, "the load is one user less: {:?}", outcome.record.broken);
}

#[test]
fn a_failed_request_that_makes_a_script_throw_is_one_error() {
    let behaviour = Behaviour::at_once(Reply::of_size(5).status(500));
    let (_server, target) = server(behaviour);
    let text = "import http from 'k6/http';
        export default function () {
            if (__ITER === 2) { throw new Error('for another reason'); }
            if (__ITER === 3) { http.get('undefined/page', { throw: true }); }
            if (http.get(__ENV.TARGET).status !== 200) { throw new Error('no page'); }
        }";
    let outcome = study(text, &target, &closed(1, support::each(4)), 1);
    assert_eq!(outcome.errors("web"), [(ErrorKind::Status, 2)]);
    let errors: Vec<_> = outcome.iterations().errors.into_iter().collect();
    assert_eq!(errors, [(ErrorKind::Connect, 1), (ErrorKind::Status, 2), (ErrorKind::Script, 1)]);
    assert!(outcome.record.error_examples["iteration"][&ErrorKind::Status].contains("no page"));
}

#[test]
fn in_a_study_a_request_that_hangs_is_a_timeout_at_the_end_of_the_drain_and_a_sleep_is_nothing() {
    let (_server, target) = server(Behaviour::never());
    let text = "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { if (__VU === 1) { http.get(__ENV.TARGET); } sleep(60); }";
    let load = LoadProfile { drain: Duration::from_millis(50), ..closed(2, Stop::After(Duration::from_millis(300))) };
    let outcome = study(text, &target, &load, 1);
    assert_eq!(outcome.errors("web"), [(ErrorKind::Timeout, 1)]);
    let errors: Vec<_> = outcome.iterations().errors.into_iter().collect();
    assert_eq!(errors, [(ErrorKind::Timeout, 1)]);
}

/// Answers the first request of each connection, and closes it without a reply when the second one comes. Returns its
/// URL, and the number of requests that it received.
pub(crate) fn closing_on_the_second_request() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = format!("http://{}", listener.local_addr().expect("an address"));
    let received = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&received);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            for reply in ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", ""] {
                if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                    counter.fetch_add(1, Ordering::Relaxed);
                    let _ = stream.write_all(reply.as_bytes());
                }
            }
        }
    });
    (target, received)
}

#[test]
fn a_request_that_is_sent_again_is_a_failed_exchange_and_a_new_one() {
    let (target, received) = closing_on_the_second_request();
    let text = "import http from 'k6/http'; import { check } from 'k6';
        export default function () { check(http.METHOD(__ENV.TARGET), { fine: (r) => r.body === 'hi' }); }";
    let outcome = study(&text.replace("METHOD", "get"), &target, &closed(1, support::each(10)), 1);
    assert_eq!(outcome.errors("web"), [(ErrorKind::Closed, 9)]);
    assert_eq!((outcome.requests("web").count(), received.load(Ordering::Relaxed)), (19, 19));
    assert_eq!(outcome.subject(&Subject::Check("fine".to_owned())).failed(), 0, "the script sees the second reply");
    assert!(outcome.record.error_examples["request:web"][&ErrorKind::Closed].contains("it was sent again"));

    // What may have an effect is not sent again.
    let outcome = study(&text.replace("METHOD", "post"), &target, &closed(1, support::each(10)), 1);
    assert_eq!(outcome.errors("web"), [(ErrorKind::Closed, 5)]);
    assert_eq!((outcome.requests("web").count(), received.load(Ordering::Relaxed)), (10, 29));
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
    let load = closed(1, iterations(1));
    let error = prepared.run(&support::job(&load, 1), &AtomicBool::new(false), &mut |_| ()).expect_err("it throws");
    assert!(error.to_string().contains("`setup` of the script failed: Error: no data"), "{error}");
}

#[test]
fn what_is_wrong_with_a_script_is_found_before_any_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = |text: &str| match check(&workload(folder.path(), text, "")) {
        Err(faults) => faults.into_iter().map(|fault| fault.what).collect::<Vec<_>>().join("\n"),
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
        let faults = faults(text);
        assert!(faults.contains(part), "{text}: {faults}");
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
    let notes = notes(&workload);
    assert!(notes.iter().any(|line| line.contains("`vus`, `stages`") && line.contains("[load]")), "{notes:?}");
    assert!(notes.iter().any(|line| line.contains("`thresholds`")), "{notes:?}");
    assert!(notes.iter().any(|line| line.contains("unheardOf")), "{notes:?}");
    let read: Vec<String> = sources(&workload)
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(read, ["data.csv", "load.js"]);
}

/// An iteration takes longer than a job: two replies of 30 ms, and a pause of 50 ms.
const LONG: &str = "import http from 'k6/http'; import { sleep } from 'k6'; import { Trend } from 'k6/metrics';
    const slept = new Trend('slept');
    let iteration = 0;
    export function setup() { http.get(`${__ENV.TARGET}/setup`); }
    export default function () {
        iteration += 1;
        http.get(`${__ENV.TARGET}/first/${iteration}`, { tags: { name: 'first' } });
        const from = Date.now();
        sleep(0.05);
        slept.add(Date.now() - from);
        http.get(`${__ENV.TARGET}/second/${iteration}`, { tags: { name: 'second' } });
    }
    export function teardown() { http.get(`${__ENV.TARGET}/teardown`); }";

#[test]
fn users_of_a_script_that_stay_go_on_in_the_middle_of_an_iteration() {
    let (server, target) = server(Behaviour::after(Duration::from_millis(30), Reply::of_size(10)));
    let folder = tempfile::tempdir().expect("a folder");
    let prepared = Prepared::new(&workload(folder.path(), LONG, &target), None).expect("the script is in order");
    let jobs = JobsInTurn::run(&prepared, &lasting(3, 60), 16, Duration::from_millis(20));
    let requests = server.record().first_requests();
    let of = |connection| {
        let paths = requests.iter().filter(move |request| request.connection == connection);
        paths.map(|request| request.path.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(server.record().connections(), 5, "three users, `setup` and `teardown`");
    assert_eq!((of(1), of(5)), (vec!["/setup"], vec!["/teardown"]), "once for all jobs");
    for connection in 2..=4 {
        let paths = of(connection);
        let both = |number| [format!("/first/{number}"), format!("/second/{number}")];
        let expected: Vec<String> = (1..).flat_map(both).take(paths.len()).collect();
        assert!(paths.len() > 6, "{paths:?}");
        assert_eq!(paths, expected, "each goes on where it was");
    }
    let recorded = ["first", "second"].map(|name| jobs.requests(name));
    assert_eq!(recorded[0].0 + recorded[1].0, requests.len() as u64 - 2, "each is recorded once: {recorded:?}");
    assert!(recorded.iter().all(|(_, failed)| *failed == 0), "{recorded:?}");
    let ended = |record: &plimsoll_model::job::JobRecord| (record.faults.clone(), record.warnings.clone());
    assert!(jobs.records.iter().map(ended).all(|found| found == (vec![], vec![])));
    // For the users no time passes between two jobs, of which an iteration has seen at least one.
    let durations = jobs.recorded.iter().filter_map(|[_, all]| all.get(&Subject::Iteration));
    let (shortest, longest) = durations
        .fold((u64::MAX, 0), |(least, most), tally| (least.min(tally.service.min()), most.max(tally.service.max())));
    assert!(shortest >= 110_000_000, "two replies and a pause take 110 ms, found {shortest} ns");
    assert!(longest < 2_000_000_000, "jobs end long before a user has waited for seconds, found {longest} ns");
}

#[test]
fn requests_count_for_the_load_in_which_they_were_made_whenever_their_iteration_began() {
    let (server, target) = server(Behaviour::after(Duration::from_millis(5), Reply::of_size(10)));
    let folder = tempfile::tempdir().expect("a folder");
    let text = "import http from 'k6/http';
        export default function () { for (let n = 0; n < 1000; n++) { http.get(__ENV.TARGET); } }";
    let prepared = Prepared::new(&workload(folder.path(), text, &target), None).expect("the script is in order");
    // Long enough that users begin in it where the machine is busy.
    let load = LoadProfile { warmup: Duration::from_millis(500), ..lasting(2, 500) };
    let jobs = JobsInTurn::run(&prepared, &load, 4, Duration::ZERO);
    // The iterations that began in the warm-up of the first job are still under way in the last one.
    let measured = jobs.recorded.iter().map(|[measured, _]| {
        measured.get(&Subject::Request("web".to_owned())).map_or(0, plimsoll_model::record::Tally::count)
    });
    let measured: Vec<u64> = measured.collect();
    assert!(measured.iter().all(|count| *count > 0), "{measured:?}");
    assert!(jobs.recorded.iter().all(|[measured, _]| !measured.contains_key(&Subject::Iteration)));
    assert!(server.record().requests() > 20);
}

#[test]
fn a_user_that_was_stopped_for_good_is_missing_in_every_later_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "import { sleep } from 'k6';
        export default function () { if (__VU === 2) { for (;;) {} } sleep(0.01); }";
    let Workload { steps: Steps::Script(mut script), .. } = workload(folder.path(), text, "") else { unreachable!() };
    script.limits.busy = Duration::from_millis(20);
    let workload = Workload { steps: Steps::Script(script), ..workload(folder.path(), text, "") };
    let prepared = Prepared::new(&workload, None).expect("the script is in order");
    let jobs = JobsInTurn::run(&prepared, &lasting(2, 60), 3, Duration::ZERO);
    let told: Vec<usize> = jobs.records.iter().map(|record| record.broken.len()).collect();
    assert_eq!(told, [1, 1, 1], "each load lacks the user");
}

#[test]
fn at_the_end_of_a_drain_only_those_are_cut_off_that_wait_for_the_system() {
    let (_server, target) = server(Behaviour::never());
    let folder = tempfile::tempdir().expect("a folder");
    let text = "import http from 'k6/http'; import { sleep } from 'k6'; import { Counter } from 'k6/metrics';
        const woken = new Counter('woken');
        export default function () {
            if (__VU === 1) { http.get(__ENV.TARGET); } else { sleep(0.3); woken.add(1); }
        }";
    let prepared = Prepared::new(&workload(folder.path(), text, &target), None).expect("the script is in order");
    let load = LoadProfile { drain: Duration::from_millis(30), ..lasting(2, 60) };
    let jobs = JobsInTurn::run(&prepared, &load, 8, Duration::ZERO);
    let (made, failed) = jobs.requests("web");
    assert!(made == failed && made >= 7, "each job cuts its request off: {failed} of {made}");
    let woken = Subject::Custom(Metric::Counter, "woken".to_owned());
    assert!(jobs.recorded.iter().any(|[_, all]| all.contains_key(&woken)), "the other sleeps for longer than a job");
}
