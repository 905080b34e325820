//! Requests on the wire, and their results for scripts.

use super::study::closing_on_the_second_request;
use super::{Trial, quick, server};
use plimsoll_generator::script::End;
use plimsoll_javascript::Level;
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
        assert_eq!(outcome.console_lines(), [""; 0]);
        assert_eq!(outcome.result.end, End::Finished);
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
        assert_eq!(outcome.console_lines(), [""; 0]);
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
    assert_eq!((outcome.checks(), outcome.console_lines()), (vec![("fine", 20, 0)], vec![]));
    assert_eq!(server.record().connections(), 20);
}

#[test]
fn a_run_says_how_many_requests_were_sent_again() {
    let (target, received) = closing_on_the_second_request();
    let text = "import http from 'k6/http'; export const options = { vus: 1, iterations: 10 };
        export default function () { http.get(__ENV.TARGET); }";
    let outcome = Trial::of(text, &target).run();
    assert_eq!((outcome.count("http_reqs"), received.load(Ordering::Relaxed)), (10.0, 19));
    let [(Level::Warn, line)] = &outcome.lines[..] else { panic!("{:?}", outcome.lines) };
    assert!(line.contains("sent again") && line.contains("9 requests"), "{line}");
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
    assert_eq!((outcome.checks(), outcome.console_lines()), (vec![("ticked", 1, 0)], vec![]));
}

/// The results of failed requests for a script: error code and message, a line each.
fn errors_of(target: &str, params: &str) -> Vec<(Level, String)> {
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
        // No name that is not allowed is looked up.
        ("http://a..b".to_owned(), "{}", "0 1110 ", "`--allow`"),
    ];
    for (target, params, begin, part) in cases {
        let lines = errors_of(&target, params);
        let lines_for_script: Vec<&String> =
            lines.iter().filter(|(level, _)| *level == Level::Info).map(|(_, line)| line).collect();
        assert_eq!(lines_for_script.len(), 2, "{target}: {lines:?}");
        assert!(
            lines_for_script.iter().all(|line| line.starts_with(begin) && line.contains(part)),
            "{target}: {lines_for_script:?}"
        );
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
    assert_eq!(outcome.checks(), [("whole", 9, 0), ("shakes hands once", 9, 0)], "{:?}", outcome.console_lines());
    assert_eq!(server.record().connections(), 3);
}

#[test]
fn a_script_may_say_which_versions_of_tls_are_offered() {
    let server = Server::builder(Behaviour::at_once(Reply::ok("hello"))).tls().start().expect("a port");
    for (option, version) in
        [("'tls1.2'", "tls1.2"), ("{ min: 'tls1.0', max: 'tls1.2' }", "tls1.2"), ("'tls1.3'", "tls1.3")]
    {
        let text = format!(
            "import http from 'k6/http'; import {{ check }} from 'k6';
            export const options = {{ iterations: 1, insecureSkipTLSVerify: true, tlsVersion: {option} }};
            export default function () {{
                check(http.get(__ENV.TARGET), {{ offered: (r) => r.tls_version === '{version}' }});
            }}"
        );
        let outcome = Trial::of(&text, &format!("https://localhost:{}", server.address().port())).run();
        assert_eq!(outcome.checks(), [("offered", 1, 0)], "{option}");
    }
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
    assert_eq!((outcome.checks(), outcome.console_lines()), (vec![("fine", 10, 0)], vec![]));
    let hosts: Vec<String> = server.record().first_requests()[..2]
        .iter()
        .map(|request| request.header("host").expect("it has one").to_owned())
        .collect();
    assert!(hosts.contains(&"shop.example".to_owned()), "{hosts:?}");
}

#[test]
fn blocked_hosts_get_nothing() {
    let (server, target) = quick();
    let text = "import http from 'k6/http';
        export const options = {
            iterations: 1, hosts: { 'shop.test': TARGET }, blockHostnames: ['*.test'], blacklistIPs: ['127.0.0.2/32'],
        };
        export default function () {
            for (const url of ['http://shop.test/', 'http://127.0.0.2:1/', __ENV.TARGET]) {
                console.log(http.get(url).error_code);
            }
        }";
    let address = format!("'{}'", server.address());
    let outcome = Trial::of(&text.replace("TARGET }", &format!("{address} }}")), &target).run();
    let codes: Vec<&str> =
        outcome.lines.iter().filter(|(level, _)| *level == Level::Info).map(|(_, line)| line.as_str()).collect();
    assert_eq!((codes, server.record().requests()), (vec!["1111", "1110", "0"], 1));
}

#[test]
fn no_more_requests_begin_in_a_second_than_they_may() {
    let (server, target) = quick();
    let text = "import http from 'k6/http';
        export const options = { vus: 10, iterations: 21, rps: 50 };
        export default function () { http.get(__ENV.TARGET); }";
    let outcome = Trial::of(text, &target).on(2).run();
    assert_eq!((server.record().requests(), outcome.count("iterations")), (21, 21.0));
    assert!(outcome.result.elapsed >= Duration::from_millis(400), "20 gaps of 20 ms are {:?}", outcome.result.elapsed);
}
