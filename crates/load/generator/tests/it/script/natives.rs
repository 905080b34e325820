//! Natives that would take for ever obey the limit on the time that a user runs without waiting.

use super::{Trial, quick, server};
use plimsoll_generator::script::Limits;
use plimsoll_model::units::Nanos;
use plimsoll_testkit::http::{Behaviour, Reply};
use std::time::{Duration, Instant};

/// Far more than each of them takes on a busy machine, and far less than any would take without a limit.
const SOON: Duration = Duration::from_secs(60);

/// The longest that a user may run.
const BUSY: Nanos = Nanos(1_000_000_000);

/// What a script needs, and what stands in its third line and would not come to an end within minutes.
const NATIVES: [(&str, &str); 10] = [
    ("const page = parseHTML('<div>'.repeat(600)); sleep(0.01);", "for (;;) page.find('div div div')"),
    ("const page = parseHTML('<div>'.repeat(600)); sleep(0.01);", "for (;;) page.find('*').find('*')"),
    ("const page = parseHTML('<div>'.repeat(600)); sleep(0.01);", "for (;;) page.find('*').parents()"),
    ("const page = parseHTML('<div>'.repeat(600)); sleep(0.01);", "for (;;) page.find('*').parentsUntil('body')"),
    ("const page = parseHTML('<p></p>'.repeat(5000)); sleep(0.01);", "page.find('p').siblings()"),
    ("const page = parseHTML('<p></p>'.repeat(5000)); sleep(0.01);", "page.find('p').nextAll()"),
    ("", "parseHTML('<div>'.repeat(2000000))"),
    ("const reply = http.get(__ENV.TARGET); sleep(0.01);", "reply.json('0.'.repeat(40000))"),
    (
        "const headers = {}; for (let n = 0; n < 100000; n++) headers[`x-header-${n}`] = '1'; sleep(0.01);",
        "http.get(__ENV.TARGET, { headers })",
    ),
    ("const all = {}; for (let n = 0; n < 100000; n++) all[`check ${n}`] = true; sleep(0.01);", "check(null, all)"),
];

#[test]
fn natives_that_take_too_long_are_stopped_and_their_line_is_named() {
    let deep = format!("{}{}", "[".repeat(40_000), "]".repeat(40_000));
    let (_server, target) = server(Behaviour::at_once(Reply::ok(deep)));
    for (before, native) in NATIVES {
        let text = format!(
            "import http from 'k6/http'; import {{ check, sleep }} from 'k6'; import {{ parseHTML }} from 'k6/html';
            export default function () {{ {before}
                {native};
            }}"
        );
        let limits = Limits::default();
        let limits = Limits { vm: plimsoll_javascript::Limits { busy: BUSY, ..limits.vm }, ..limits };
        let begun = Instant::now();
        let outcome = Trial::of(&text, &target).limited(limits).run();
        let took = begun.elapsed();
        let [broken] = &outcome.result.broken[..] else { panic!("{native}: {:?}", outcome.result.broken) };
        assert!(broken.contains("without waiting") && broken.contains("(load.js:3:"), "{native}: {broken}");
        assert!(took < SOON, "{native}: {took:?}");
    }
}

#[test]
fn a_rate_that_no_users_can_keep_up_with_ends_when_its_time_is_over() {
    let (_server, target) = quick();
    for body in ["", "sleep(0.1)"] {
        let text = format!(
            "import {{ sleep }} from 'k6';
            export const options = {{ scenarios: {{ s: {{ executor: 'constant-arrival-rate', rate: 1e9, timeUnit: '1s',
                duration: '1s', preAllocatedVUs: 2, maxVUs: 2, gracefulStop: '1s' }} }} }};
            export default function () {{ {body} }}"
        );
        for threads in [1, 2] {
            let begun = Instant::now();
            let outcome = Trial::of(&text, &target).on(threads).run();
            assert!(begun.elapsed() < SOON, "{body}: {:?}", begun.elapsed());
            let began = outcome.count("iterations");
            assert!(began >= 2.0, "{body}: {began} iterations");
            assert_eq!(began + outcome.count("dropped_iterations"), 1e9, "{body}: {began} iterations");
        }
    }
}
