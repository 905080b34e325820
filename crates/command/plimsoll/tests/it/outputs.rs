//! `script run --out` with servers that take metrics: what arrives there, and what becomes of a run whose receiver is
//! away, broken or stuck.

mod receiver;

use crate::common::{Ended, Place, wait_until};
use plimsoll_telemetry::exposition::{Line, lines};
use plimsoll_testkit::grpc::{Counter, Mode, ReplyMode};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use receiver::{prometheus, victoria_metrics};
use std::time::{Duration, Instant};

/// Four iterations, each with a request, two checks and a sample of each kind of metric.
const SCRIPT: &str = "import http from 'k6/http'; import { check } from 'k6'; import exec from 'k6/execution';
    import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
    const orders = new Counter('orders'); const queue = new Gauge('queue');
    const paid = new Rate('paid'); const price = new Trend('price'); const wait = new Trend('wait', true);
    export const options = { vus: 2, iterations: 4, tags: { team: 'a\"b\\\\c' } };
    export default function () {
        const number = exec.scenario.iterationInTest;
        http.get(`${__ENV.URL}/page`, { tags: { name: 'page', 'odd-tag': 'x' } });
        check(number, { 'is even': (number) => number % 2 === 0, 'is there': (number) => number !== undefined });
        orders.add(2.5); paid.add(number < 3); price.add(number * 10, { size: 'large' }); wait.add(250);
        queue.add(7);
    }";

/// The same metrics, in the names of remote write.
const REMOTE_WRITE: [(&str, f64); 16] = [
    ("k6_iterations_total", 4.0),
    (r#"k6_http_reqs_total{name="page",status="200",method="GET",odd_tag="x",expected_response="true"}"#, 4.0),
    (r#"k6_http_req_failed_rate{name="page"}"#, 0.0),
    (r#"k6_http_req_duration_p99{name="page"} > bool 0"#, 1.0),
    (r#"k6_checks_rate{check="is even"}"#, 0.5),
    (r#"k6_checks_rate{check="is there"}"#, 1.0),
    (r#"k6_orders_total{team="a\"b\\c",scenario="default"}"#, 10.0),
    ("k6_queue", 7.0),
    ("k6_paid_rate", 0.75),
    (r#"k6_price_p99{size="large"}"#, 29.7),
    ("k6_price_med", 15.0),
    ("k6_price_count", 4.0),
    ("k6_price_sum", 60.0),
    ("k6_price_max", 30.0),
    // Times are in seconds.
    ("k6_wait_avg", 0.25),
    ("k6_wait_count", 4.0),
];

fn pages() -> Server {
    Server::start(Behaviour::at_once(Reply::ok("hello"))).expect("a server")
}

fn url(server: &Server) -> String {
    format!("URL=http://{}", server.address())
}

#[test]
fn remote_write_brings_every_metric_to_prometheus() {
    let Some(receiver) = prometheus() else { return };
    let (place, pages) = (Place::empty(), pages());
    place.write("a.js", SCRIPT);
    let out = format!("experimental-prometheus-rw={}", receiver.url("/api/v1/write"));
    let stats = ("K6_PROMETHEUS_RW_TREND_STATS", "p(99),med,count,sum,avg,max");
    let ended = place.plimsoll_with(&[stats], &["script", "run", "-e", &url(&pages), "-o", &out, "a.js"]).with(0);
    assert!(!ended.stderr.contains("pushes failed"), "{}", ended.stderr);
    for (expression, expected) in REMOTE_WRITE {
        let found = receiver.value(expression);
        assert!((found - expected).abs() <= expected * 0.001, "{expression}: {found} instead of {expected}");
    }
}

#[test]
fn series_are_marked_as_ended_where_that_is_asked_for() {
    let Some(receiver) = prometheus() else { return };
    let place = Place::empty();
    place.write("a.js", "export default function () {}");
    let (url, run) = (receiver.url("/api/v1/write"), ["script", "run", "-o", "experimental-prometheus-rw", "a.js"]);
    let variables = [("K6_PROMETHEUS_RW_SERVER_URL", url.as_str()), ("K6_PROMETHEUS_RW_STALE_MARKERS", "true")];
    place.plimsoll_with(&variables, &run).with(0);
    assert_eq!(receiver.query("k6_iterations_total"), [], "it has ended");
    assert_eq!(receiver.value("count_over_time(k6_iterations_total[5m])"), 1.0, "it was there");
}

#[test]
fn otlp_brings_every_metric_to_a_receiver() {
    let Some(receiver) = victoria_metrics() else { return };
    let (place, pages) = (Place::empty(), pages());
    place.write("a.js", SCRIPT);
    let out = format!("opentelemetry={}", receiver.url("/opentelemetry/v1/metrics"));
    let variables = [("K6_OTEL_METRIC_PREFIX", "k6_"), ("K6_OTEL_SERVICE_NAME", "shop")];
    let ended = place.plimsoll_with(&variables, &["script", "run", "-e", &url(&pages), "-o", &out, "a.js"]).with(0);
    assert!(!ended.stderr.contains("pushes failed"), "{}", ended.stderr);
    ureq::get(receiver.url("/internal/force_flush")).call().expect("it files what it got");
    // A query is for a whole second, and does not see what came later in it.
    wait_until("the metrics can be seen", || !receiver.query("k6_iterations_total").is_empty());
    for (expression, expected) in [
        (r#"k6_iterations_total{service_name="shop"}"#, 4.0),
        (r#"k6_http_reqs_total{name="page",status="200",odd_tag="x"}"#, 4.0),
        (r#"k6_checks_total{check="is even",condition="nonzero"}"#, 2.0),
        (r#"k6_checks_total{check="is even",condition="zero"}"#, 2.0),
        ("k6_orders_total", 10.0),
        ("k6_queue", 7.0),
        (r#"k6_price_count{size="large"}"#, 4.0),
        ("k6_price_sum", 60.0),
        (r#"k6_price_bucket{le="10"}"#, 2.0),
        // The unit is a part of the name there.
        ("k6_wait_milliseconds_sum", 1000.0),
        ("k6_data_sent_bytes_total > bool 0", 1.0),
    ] {
        assert_eq!(receiver.value(expression), expected, "{expression}");
    }
}

/// A run whose metrics go to a receiver by gRPC, with or without TLS.
fn run_by_grpc(receiver: &Counter) -> Ended {
    let place = Place::empty();
    place.write("a.js", SCRIPT);
    place.write("ca.pem", receiver.ca_pem().unwrap_or_default());
    let (pages, endpoint) = (pages(), receiver.address().to_string());
    let mut variables = vec![
        ("K6_OTEL_GRPC_EXPORTER_ENDPOINT", endpoint.as_str()),
        ("K6_OTEL_HEADERS", "Api-Key=a%20b"),
        ("K6_OTEL_METRIC_PREFIX", "k6_"),
    ];
    variables.push(match receiver.ca_pem() {
        Some(_) => ("K6_OTEL_TLS_CERTIFICATE", "ca.pem"),
        None => ("K6_OTEL_GRPC_EXPORTER_INSECURE", "true"),
    });
    place.plimsoll_with(&variables, &["script", "run", "-e", &url(&pages), "-o", "opentelemetry", "a.js"]).with(0)
}

#[test]
fn otlp_goes_by_grpc_as_well() {
    for builder in [Counter::builder(Mode::Mutex), Counter::builder(Mode::Mutex).tls()] {
        let receiver = builder.start().expect("a receiver");
        let ended = run_by_grpc(&receiver);
        assert!(!ended.stderr.contains("failed to send"), "{}", ended.stderr);
        let requests = receiver.record().first_requests();
        let last = requests.last().expect("the metrics came");
        assert_eq!(last.header("api-key"), Some("a b"));
        let has = |name: &str| last.body.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        for name in ["k6_iterations", "k6_http_req_duration", "k6_checks.total", "k6_orders", "k6_price", "odd-tag"] {
            assert!(has(name), "{name} in {} bytes", last.body.len());
        }
    }
    let refuses = ReplyMode::Refuse { code: 14, message: "out of disk".to_owned() };
    let receiver = Counter::builder(Mode::Mutex).reply_mode(refuses).start().expect("a receiver");
    run_by_grpc(&receiver).says(&["failed to send metrics: gRPC status UNAVAILABLE: out of disk", "pushes failed"]);
}

/// Runs a script whose metrics go to a URL that does not take them. They are lost, and nothing else.
fn run_without_receiver(out: &str, why: &str) {
    let place = Place::empty();
    place.write("a.js", "export default function () {}");
    let variables = [("K6_PROMETHEUS_RW_PUSH_INTERVAL", "100ms"), ("K6_OTEL_EXPORT_INTERVAL", "100ms")];
    let begun = Instant::now();
    let words = ["script", "run", "-u", "2", "-d", "1s", "-o", out, "a.js"];
    let ended = place.plimsoll_with(&variables, &words).with(0);
    ended.says(&["failed to send metrics", why, "pushes failed", "series were not received"]).prints(&["iterations"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "nobody waits for a receiver for long");
}

#[test]
fn a_receiver_that_is_away_or_broken_costs_metrics_and_nothing_else() {
    let broken = Server::start(Behaviour::at_once(Reply::ok("out of disk").status(500))).expect("a server");
    let elsewhere = Server::start(Behaviour::at_once(Reply::ok("").status(307).header("Location", "/other")));
    let elsewhere = elsewhere.expect("a server");
    for name in ["experimental-prometheus-rw", "opentelemetry"] {
        run_without_receiver(&format!("{name}=http://127.0.0.1:9/"), "refused");
        run_without_receiver(&format!("{name}=http://{}/", broken.address()), "status 500: out of disk");
        run_without_receiver(&format!("{name}=http://{}/", elsewhere.address()), "status 307");
    }
    let paths = elsewhere.record().first_requests();
    assert!(paths.iter().all(|request| request.path == "/"), "no redirect is followed");
}

#[test]
fn a_receiver_that_hangs_delays_neither_load_nor_end_for_long() {
    let stuck = Server::start(Behaviour::never()).expect("a server");
    run_without_receiver(&format!("experimental-prometheus-rw=http://{}/", stuck.address()), "timeout");
    let stuck = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Never).start().expect("a server");
    let (place, endpoint) = (Place::empty(), stuck.address().to_string());
    place.write("a.js", "export default function () {}");
    let variables = [("K6_OTEL_GRPC_EXPORTER_ENDPOINT", endpoint.as_str()), ("K6_OTEL_GRPC_EXPORTER_INSECURE", "true")];
    place.plimsoll_with(&variables, &["script", "run", "-o", "opentelemetry", "a.js"]).with(0).says(&["timeout"]);
}

#[test]
fn settings_of_outputs_that_are_not_supported_are_refused_before_anything_runs() {
    let place = Place::empty();
    place.write("a.js", "export default function () { console.log('it ran'); }");
    for (variable, value, out, why) in [
        ("K6_OTEL_EXPORTER_PROTOCOL", "http/json", "opentelemetry", "expected `grpc` or `http/protobuf`"),
        ("K6_PROMETHEUS_RW_SIGV4_REGION", "eu", "experimental-prometheus-rw", "requests are not signed"),
        ("K6_OUT_OF_PLACE", "", "influxdb", "expected `json=FILE`"),
    ] {
        let ended = place.plimsoll_with(&[(variable, value)], &["script", "run", "-o", out, "a.js"]).with(104);
        assert!(!ended.says(&[why]).stderr.contains("it ran"));
    }
}

#[test]
fn what_these_servers_expose_of_themselves_is_read() {
    for receiver in [prometheus(), victoria_metrics()].into_iter().flatten() {
        for accepts in ["text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"] {
            let mut answer = ureq::get(receiver.url("/metrics")).header("accept", accepts).call().unwrap();
            let text = answer.body_mut().read_to_string().unwrap();
            let lines: Vec<Line<'_>> = lines(&text).collect::<Result<_, _>>().expect(accepts);
            let has = |name: &str| {
                lines
                    .iter()
                    .any(|line| matches!(line, Line::Sample(sample) if sample.name == name && sample.value > 0.0))
            };
            assert!(has("go_goroutines") && has("process_resident_memory_bytes"), "{accepts}: {text}");
        }
    }
}
