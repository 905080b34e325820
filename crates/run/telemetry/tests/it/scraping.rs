//! Metrics of servers that answer well, late, wrongly, and with too much.

use plimsoll_model::exposed::{ExposedMetrics, ExposedSeries, MetricKind, MetricSample};
use plimsoll_telemetry::{LastSamples, Roots, Sampler, SystemPart, Target};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A server whose answer to the question of this number, from 0, is written by `answer`; it serves as long as the test runs.
fn serve(answer: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (Ok(mut stream), answer) = (stream, Arc::clone(&answer)) else { return };
            // A late answer does not delay the next one.
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                answer(number, &mut stream);
            });
        }
    });
    format!("http://{address}/metrics")
}

fn reply(stream: &mut TcpStream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    // The other side may have given up.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn series(metric: &str) -> ExposedSeries {
    ExposedSeries {
        name: metric.to_owned(),
        metric: metric.to_owned(),
        labels: [].into(),
        by: None,
        unit: None,
        better: None,
    }
}

/// What a system without processes exposes at `url`.
fn target(url: &str, metrics: &[&str]) -> Target {
    let metrics = ExposedMetrics { url: url.to_owned(), series: metrics.iter().map(|metric| series(metric)).collect() };
    Target {
        system: "web".to_owned(),
        variant: 1,
        parts: vec![SystemPart { name: "web".to_owned(), roots: Roots::Warden(i32::MAX) }],
        waits: None,
        metrics: Some(metrics),
        complaints: Vec::new(),
    }
}

/// The samples of some seconds, and the complaints.
fn sampled(url: &str, metrics: &[&str], seconds: f64) -> (Vec<MetricSample>, Vec<String>) {
    let zero = Instant::now();
    let sampler = Sampler::start("here", vec![target(url, metrics)], &|| false).unwrap();
    thread::sleep(Duration::from_secs_f64(seconds));
    let LastSamples { samples, complaints, .. } = sampler.stop(zero);
    (samples.metrics, complaints)
}

#[test]
fn series_are_sampled_once_a_second() {
    let url = serve(|number, stream| {
        let body = format!("# TYPE a counter\na {}\n# TYPE b gauge\nb{{c=\"d\"}} 7\nb{{c=\"e\"}} 1\n", 10 * number);
        reply(stream, "200 OK", &body);
    });
    let (samples, complaints) = sampled(&url, &["a", "b"], 2.5);
    let of = |series: &str| samples.iter().filter(|one| one.series == series).collect::<Vec<&MetricSample>>();
    let (counts, levels) = (of("a"), of("b"));
    assert_eq!(counts[0].value, 0.0, "{samples:?}");
    assert!(counts.len() >= 2 && counts.windows(2).all(|pair| pair[1].value == pair[0].value + 10.0), "{samples:?}");
    assert!(
        counts.iter().all(|one| one.kind == MetricKind::Counter && (one.system.as_str(), one.variant) == ("web", 1))
    );
    assert!(counts.windows(2).all(|pair| pair[0].at < pair[1].at), "{samples:?}");
    assert!(levels.iter().all(|one| one.value == 8.0 && one.kind == MetricKind::Gauge), "{samples:?}");
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn what_is_late_fails_or_is_broken_leaves_a_gap() {
    let url = serve(|number, stream| match number {
        1 => reply(stream, "503 Service Unavailable", "a 1\n"),
        2 => thread::sleep(Duration::from_millis(1500)),
        3 => reply(stream, "200 OK", "a 1\na one\n"),
        _ => reply(stream, "200 OK", "a 1\n"),
    });
    let (samples, complaints) = sampled(&url, &["a"], 5.5);
    let [complaint] = &complaints[..] else { panic!("{complaints:?}") };
    let after = |words: &str| -> usize {
        let rest = complaint.split_once(words).expect(words).1;
        rest.split(' ').next().and_then(|number| number.parse().ok()).expect(complaint)
    };
    let (asked, failed) = (after("asked for "), after("times, and "));
    assert!(failed >= 3, "{complaint}");
    assert_eq!(
        samples.len(),
        1 + asked - failed,
        "one before the load, and one for each answer: {complaint}, {samples:?}"
    );
    for what in [
        "the metrics of `web` were asked for ",
        "status 503 (once)",
        "no answer within 0.9 s",
        "line 2: expected a number, found `one` (once)",
    ] {
        assert!(complaint.contains(what), "{what}: {complaint}");
    }
}

#[test]
fn an_answer_without_end_is_given_up() {
    let url = serve(|number, stream| match number {
        1 => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            let line = "b 1\n".repeat(1 << 16);
            while stream.write_all(line.as_bytes()).is_ok() {}
        }
        _ => reply(stream, "200 OK", "a 1\n"),
    });
    let (samples, complaints) = sampled(&url, &["a"], 2.5);
    assert!(!samples.is_empty());
    let [complaint] = &complaints[..] else { panic!("{complaints:?}") };
    let is_bounded = complaint.contains("longer than 16 MiB") || complaint.contains("no answer within 0.9 s");
    assert!(is_bounded, "{complaint}");
}

#[test]
fn a_metric_that_is_missing_vanishes_or_changes_its_type_is_told() {
    let url = serve(|number, stream| match number {
        0 => reply(
            stream,
            "200 OK",
            "# TYPE a counter\na 1\n# TYPE http_requests gauge\nhttp_requests 1\n# TYPE b gauge\nb 1\n",
        ),
        1 | 2 => reply(stream, "200 OK", "# TYPE a gauge\na 5\n"),
        _ => reply(stream, "200 OK", "# TYPE a gauge\na 5\n# TYPE b gauge\nb 1\n"),
    });
    let (samples, complaints) = sampled(&url, &["a", "b", "requests_total"], 4.5);
    let seen: Vec<(&str, f64)> = samples.iter().map(|one| (one.series.as_str(), one.value)).collect();
    assert_eq!(seen[..2], [("a", 1.0), ("b", 1.0)]);
    assert!(seen[2..].iter().all(|one| *one == ("b", 1.0)), "{seen:?}");
    let expected = [
        "the series `requests_total` has no values: `web` exposes no metric `requests_total`, and with names like it there are http_requests",
        "the series `b` of `web` was not in 2 answers after it had been, which leaves gaps",
        "the metric `a` of `web` changed its type, and what came then is left out",
    ];
    assert_eq!(complaints, expected);
}

#[test]
fn a_counter_that_goes_back_is_told() {
    let url = serve(|number, stream| {
        let served = [100, 200, 10, 20][number.min(3)];
        let body = format!(
            "# TYPE a counter\na{{b=\"c\"}} {served}\na{{b=\"d\"}} 5\n# TYPE e gauge\ne {}\n",
            9 - number.min(9)
        );
        reply(stream, "200 OK", &body);
    });
    let (samples, complaints) = sampled(&url, &["a", "e"], 4.5);
    // 200 before it went back, 10 after that, and 5 of the other label set, which did not go back.
    assert!(samples.iter().any(|one| one.series == "a" && one.value == 215.0), "all that comes is kept: {samples:?}");
    let [complaint] = &complaints[..] else { panic!("{complaints:?}") };
    let expected = "the series `a` of `web` went back once, as that of a process which was started again: it counts from zero there";
    assert!(complaint.starts_with(expected), "{complaint}");
}

#[test]
fn a_system_without_metrics_is_an_error_and_interruption_ends_the_wait() {
    let url = serve(|_, stream| reply(stream, "404 Not Found", ""));
    let begun = Instant::now();
    let interrupted =
        Sampler::start("here", vec![target(&url, &["a"])], &|| begun.elapsed() > Duration::from_millis(300));
    assert_eq!(interrupted.unwrap_err().kind(), std::io::ErrorKind::Interrupted);
    let error = Sampler::start("here", vec![target(&url, &["a"])], &|| false).unwrap_err().to_string();
    assert!(error.starts_with("the metrics of `web` cannot be read: GET http://127.0.0.1:"), "{error}");
    assert!(error.ends_with("status 404; correct the `url` of its `metrics`"), "{error}");
}
