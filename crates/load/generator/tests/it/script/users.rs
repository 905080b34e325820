//! How iterations, runs and users end.

use super::{Trial, quick};
use plimsoll_generator::script::{CallError, End, Go, Limits};
use plimsoll_k6_run::metrics::Aggregation;
use plimsoll_model::event::Event;
use plimsoll_model::start::Phase;
use plimsoll_model::units::Nanos;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[test]
fn setup_hands_its_data_to_users_and_teardown() {
    let (server, target) = quick();
    let text = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { vus: 2, iterations: 4 };
        export function setup() { sleep(0.01); return { status: http.get(__ENV.TARGET).status, vu: __VU }; }
        export default function (data) { console.log(`user ${data.status} ${data.vu}`); data.status = 0; data.status = 200; }
        export function teardown(data) { console.log(`teardown ${data.status} ${http.get(__ENV.TARGET).body}`); }";
    let outcome = Trial::of(text, &target).on(2).run();
    assert_eq!(outcome.console_lines(), ["user 200 0", "user 200 0", "user 200 0", "user 200 0", "teardown 200 hello"]);
    assert_eq!(outcome.result.setup_data.as_deref(), Some(r#"{"status":200,"vu":0}"#));
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
        assert!(
            !outcome.console_lines().contains(&"iteration") && !outcome.console_lines().contains(&"teardown"),
            "{setup}"
        );
        outcome.result.end
    };
    let End::Setup(CallError::Threw(exception)) = ended("throw new Error('no data')") else { panic!("it throws") };
    assert!(exception.message.contains("no data"), "{exception}");
    assert_eq!(ended("sleep(10)"), End::Setup(CallError::TimedOut));
    assert_eq!(ended("exec.test.abort('enough')"), End::Aborted("enough".to_owned()));
    assert!(matches!(ended("for (;;) {}"), End::Setup(CallError::LimitExceeded(_))));
}

#[test]
fn a_user_that_throws_goes_on() {
    let text = "export const options = { iterations: 3 };
        export default function () { if (__ITER < 2) { throw new Error(`no ${__ITER}`); } console.log('fine'); }";
    let outcome = Trial::of(text, "").run();
    let said = outcome.console_lines();
    assert!(said[0].contains("Error: no 0 (load.js:2:") && said[1].contains("no 1") && said[2] == "fine", "{said:?}");
    assert_eq!(outcome.count("iterations"), 3.0);
    assert_eq!(outcome.result.end, End::Finished);
}

#[test]
fn a_user_that_breaks_a_limit_is_stopped_for_good_and_the_others_go_on() {
    let cases = [
        ("for (;;) { try { for (;;) {} } catch (e) {} }", "without waiting"),
        ("let all = []; for (;;) { all.push('x'.repeat(10000) + all.length); }", "of memory"),
        (
            "let all = []; for (;;) { all.push(http.post('http://127.0.0.1:1/', 'x'.repeat(1 << 18))); }",
            "16 MiB of bodies",
        ),
        ("(function deeper() { deeper(); })();", "of stack"),
        ("sleep(100);", "its iteration took more than 0.2 s"),
    ];
    for (code, part) in cases {
        let text = format!(
            "import {{ sleep }} from 'k6';
            import http from 'k6/http';
            export const options = {{ scenarios: {{ all: {{ executor: 'per-vu-iterations', vus: 4, iterations: 5 }} }} }};
            export default function () {{ if (__VU === 2 && __ITER === 1) {{ {code} }} }}"
        );
        let vm = plimsoll_javascript::Limits { busy: Nanos(300_000_000), memory: 4 << 20, ..Default::default() };
        let iteration = Some(Duration::from_millis(200)).filter(|_| code.starts_with("sleep"));
        let limits = Limits { vm, iteration, ..Limits::default() };
        let outcome = Trial::of(&text, "").limited(limits).run();
        assert_eq!(outcome.result.end, End::Finished, "{code}");
        let [broken] = outcome.result.broken.as_slice() else { panic!("{code}: {:?}", outcome.result.broken) };
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
    assert_eq!(outcome.result.end, End::Finished);
    assert_eq!(outcome.plan.counts.interrupted.load(Relaxed), 2 + u64::from(outcome.count("iterations") == 3.0));
    assert!(outcome.result.elapsed < Duration::from_secs(30));
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
    assert_eq!(outcome.result.end, End::Aborted("that will do".to_owned()));
    assert_eq!(outcome.console_lines(), ["teardown"]);
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
    assert_eq!((&interrupted.result.end, interrupted.console_lines()), (&End::Interrupted, vec!["teardown"]));
    let aborted = Trial::of(text, "").watched(|_| Go::Abort);
    assert_eq!((&aborted.result.end, aborted.console_lines()), (&End::Stopped, vec!["teardown"]));
}

#[test]
fn a_run_tells_of_its_phases_and_seconds() {
    let text = "import { sleep } from 'k6';
        export const options = { vus: 2, iterations: 6 };
        export function setup() {}
        export default function () { sleep(0.01); }
        export function teardown() {}";
    let events = Trial::of(text, "").run().events;
    let phase = |event: &Event| match event {
        Event::PhaseStarted { phase, .. } => Some(*phase),
        _ => None,
    };
    let phases: Vec<Phase> = events.iter().filter_map(phase).collect();
    assert_eq!(phases, [Phase::Setup, Phase::Measure, Phase::Teardown]);
    let iterations = |event: &Event| match event {
        Event::SecondPassed(second) => second.iterations,
        _ => 0,
    };
    assert_eq!(events.iter().map(iterations).sum::<u64>(), 6);
    assert!(matches!(events.first(), Some(Event::RunStarted { starts: 1, .. })), "{events:?}");
    assert!(matches!(events.last(), Some(Event::RunFinished { complete: true, .. })), "{events:?}");
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
fn iterations_for_which_there_is_no_time_are_dropped() {
    for executor in ["executor: 'shared-iterations', iterations: 10", "executor: 'per-vu-iterations', iterations: 5"] {
        let text = format!(
            "import {{ sleep }} from 'k6';
            export const options = {{ scenarios: {{ s: {{ {executor}, vus: 2, maxDuration: '500ms' }} }} }};
            export default function () {{ sleep(0.3); }}"
        );
        let outcome = Trial::of(&text, "").on(2).run();
        let dropped = outcome.count("dropped_iterations");
        assert!(dropped >= 6.0, "{executor}: {dropped}");
        assert_eq!(outcome.count("iterations") + dropped, 10.0, "{executor}");
    }
}

#[test]
fn a_user_that_was_interrupted_begins_anew() {
    let text = "import { sleep } from 'k6';
        export const options = { scenarios: { s: { executor: 'ramping-vus', startVUs: 1, gracefulRampDown: '0s',
            gracefulStop: '0s', stages: [{ duration: '200ms', target: 0 }, { duration: '100ms', target: 0 },
                { duration: '100ms', target: 1 }, { duration: '400ms', target: 1 }] } } };
        let token;
        export default function () { if (__ITER === 0) token = 'a token'; console.log(String(token)); sleep(60); }";
    assert_eq!(Trial::of(text, "").run().console_lines(), ["a token", "a token"]);
}

#[test]
fn a_gauge_has_the_value_that_was_added_last_in_the_whole_run() {
    let text = "import { sleep } from 'k6'; import { Gauge } from 'k6/metrics';
        const depth = new Gauge('depth');
        export const options = { iterations: 1 };
        export function setup() { sleep(0.5); depth.add(7); }
        export default function () { depth.add(5); sleep(0.2); }
        export function teardown() { depth.add(3); }";
    assert_eq!(Trial::of(text, "").run().metric("depth", Aggregation::Value), 3.0);
    let without_teardown = text.split("export function teardown").next().expect("a part");
    assert_eq!(Trial::of(without_teardown, "").run().metric("depth", Aggregation::Value), 5.0);
}

#[test]
fn iterations_last_as_long_as_they_must() {
    let text = "export const options = { iterations: 3, minIterationDuration: '100ms' };
        export default function () {}";
    let outcome = Trial::of(text, "").run();
    assert!(outcome.result.elapsed >= Duration::from_millis(200), "{:?}", outcome.result.elapsed);
    assert!(outcome.metric("iteration_duration", Aggregation::Max) < 100.0, "the pause is none of it");
}
