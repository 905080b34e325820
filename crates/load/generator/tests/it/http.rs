//! HTTP/1.1: counts, connections, phases, and every way to fail.

use crate::support::{closed, each, get, http, iterations, run, run_prepared};
use plimsoll_generator::Prepared;
use plimsoll_model::load::{LoadModel, LoadProfile, Profile, Shape, Stage, Stop, Think};
use plimsoll_model::record::{ErrorKind, RecordedPhase, Subject, Tally};
use plimsoll_model::workload::{Connect, HttpStep, Tls, Workload};
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn quick_server() -> Server {
    Server::start(Behaviour::at_once(Reply::of_size(20))).expect("a port")
}

#[test]
fn iterations_in_all_are_exact_on_any_number_of_threads() {
    for threads in [1, 2, 3] {
        let server = quick_server();
        let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
        let outcome = run(&workload, server.address(), &closed(10, iterations(1001)), threads);
        assert_eq!(outcome.iterations().count(), 1001);
        assert_eq!(outcome.requests("page").count(), 1001);
        assert_eq!(server.record().requests(), 1001, "as the server saw them, with {threads} threads");
        assert_eq!(server.record().connections(), 10, "one for each user");
    }
}

#[test]
fn ticks_have_every_iteration_with_the_time_that_it_took() {
    for threads in [1, 2] {
        let server = quick_server();
        let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
        let load = LoadProfile { warmup: Duration::from_millis(150), ..closed(8, iterations(2000)) };
        let outcome = run(&workload, server.address(), &load, threads);
        let ticks = || outcome.intervals.iter().flat_map(|interval| interval.ticks);
        let warmup = outcome.warmup.get(&Subject::Iteration).map_or(0, Tally::count);
        assert_eq!(ticks().map(|tick| tick.iterations).sum::<u64>(), warmup + 2000, "{threads} threads");
        let (total, mean) = (ticks().map(|tick| tick.total).sum::<u64>() as f64, outcome.iterations().service.mean());
        assert!(total >= mean * 2000.0 * 0.99, "{total} ns are less than 2,000 times {mean} ns");
    }
}

#[test]
fn iterations_per_user_are_exact() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let outcome = run(&workload, server.address(), &closed(7, each(30)), 2);
    assert_eq!((outcome.iterations().count(), server.record().requests()), (210, 210));
    assert!(outcome.record.window.0 < 60_000_000_000, "it ends when the work is done");
}

#[test]
fn steps_follow_one_another_on_the_wire_as_written() {
    let server = quick_server();
    let post = HttpStep {
        method: "POST".to_owned(),
        headers: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
        body: b"hello".to_vec(),
        ..get("second", "/b?x=1")
    };
    let workload = http(server.address(), Connect::PerUser, vec![get("first", "/a"), post]);
    run(&workload, server.address(), &closed(1, each(2)), 1);
    let seen = server.record().first_requests();
    let lines: Vec<(&str, &str)> =
        seen.iter().map(|request| (request.method.as_str(), request.path.as_str())).collect();
    assert_eq!(lines, [("GET", "/a"), ("POST", "/b?x=1"), ("GET", "/a"), ("POST", "/b?x=1")]);
    assert_eq!(seen[1].body, b"hello");
    assert_eq!(seen[1].header("content-type"), Some("text/plain"));
    assert_eq!(seen[1].header("host"), Some(server.address().to_string().as_str()));
}

#[test]
fn a_connection_for_each_iteration_is_made_and_timed_apart() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerIteration, vec![get("a", "/a"), get("b", "/b")]);
    let outcome = run(&workload, server.address(), &closed(5, iterations(200)), 2);
    assert_eq!(server.record().connections(), 200);
    assert_eq!(
        (outcome.connects().count(), outcome.requests("a").count(), outcome.requests("b").count()),
        (200, 200, 200)
    );
    let seen = server.record().first_requests();
    let on = |number: u64| seen.iter().filter(|request| request.connection == number).count();
    let counts: Vec<usize> = (1..=200).map(on).collect();
    assert!(counts.iter().all(|count| *count == 2), "requests by connection: {counts:?}");
    let parts = outcome.connects().service.mean() + 2.0 * outcome.requests("a").service.min() as f64;
    assert!(outcome.iterations().service.mean() >= parts, "connecting is part of the iteration");
}

#[test]
fn an_iteration_that_loses_its_connection_between_steps_fails() {
    let server = Server::start(Behaviour::at_once(Reply::of_size(1).closing())).expect("a port");
    let workload = http(server.address(), Connect::PerIteration, vec![get("a", "/a"), get("b", "/b")]);
    let outcome = run(&workload, server.address(), &closed(2, iterations(10)), 1);
    assert!(outcome.errors("a").is_empty());
    assert_eq!(outcome.errors("b"), [(ErrorKind::Closed, 10)]);
    assert_eq!(outcome.iterations().failed(), 10);
}

#[test]
fn shared_connections_are_as_many_as_asked_for() {
    let server = Server::start(Behaviour::after(Duration::from_millis(1), Reply::of_size(1))).expect("a port");
    let workload = http(server.address(), Connect::Shared(3), vec![get("page", "/")]);
    let outcome = run(&workload, server.address(), &closed(20, iterations(300)), 2);
    assert_eq!((outcome.iterations().count(), server.record().connections()), (300, 3));
    assert!(outcome.requests("page").errors.is_empty());
}

#[test]
fn a_server_that_closes_after_each_reply_is_connected_to_again() {
    let server = Server::start(Behaviour::at_once(Reply::of_size(5).closing())).expect("a port");
    for connect in [Connect::PerUser, Connect::Shared(2)] {
        let workload = http(server.address(), connect, vec![get("page", "/")]);
        let outcome = run(&workload, server.address(), &closed(4, iterations(100)), 1);
        assert_eq!(outcome.requests("page").count(), 100);
        assert!(outcome.requests("page").errors.is_empty(), "{:?}", outcome.errors("page"));
    }
}

#[test]
fn every_legal_form_of_a_response_is_a_success() {
    let replies = [
        Reply::of_size(100_000),
        Reply::of_size(0),
        Reply::of_size(70_000).chunked(1000),
        // Without a body to end, only this header tells a HEAD request that the connection does.
        Reply::of_size(500).until_close().header("Connection", "close"),
        Reply::of_size(10).after_interim(2),
        Reply::of_size(10).status(204),
        Reply::of_size(10).status(304),
        Reply::of_size(30).trickled(3, Duration::from_millis(1)),
    ];
    for reply in replies {
        for method in ["GET", "HEAD"] {
            let server = Server::start(Behaviour::at_once(reply.clone())).expect("a port");
            let step = HttpStep { method: method.to_owned(), ..get("page", "/") };
            let workload = http(server.address(), Connect::PerUser, vec![step]);
            let outcome = run(&workload, server.address(), &closed(3, iterations(12)), 1);
            assert_eq!(outcome.requests("page").count(), 12, "{method} {reply:?}");
            assert!(outcome.errors("page").is_empty(), "{method} {reply:?}: {:?}", outcome.record.error_examples);
        }
    }
}

#[test]
fn every_way_to_fail_is_counted_by_its_kind() {
    let cases = [
        (Behaviour::at_once(Reply::of_size(1).status(500)), ErrorKind::Status, "found 500"),
        (Behaviour::at_once(Reply::of_size(100).cut_after(50)), ErrorKind::Closed, "closed the connection"),
        (Behaviour::at_once(Reply::garbage(*b"SSH-2.0-x\r\n")), ErrorKind::Protocol, "SSH-2.0"),
        (Behaviour::never(), ErrorKind::Timeout, "no reply within 0.2 s"),
    ];
    for (behaviour, kind, words) in cases {
        let server = Server::start(behaviour).expect("a port");
        let mut workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
        if kind == ErrorKind::Timeout {
            workload.timeout = Duration::from_millis(200);
        }
        let outcome = run(&workload, server.address(), &closed(2, each(3)), 1);
        assert_eq!(outcome.errors("page"), [(kind, 6)]);
        assert_eq!(outcome.requests("page").count(), 6, "errors stay in the record of durations");
        assert_eq!(outcome.iterations().errors, BTreeMap::from([(kind, 6)]));
        let example = outcome.example("page", kind);
        assert!(example.contains(words), "expected `{words}`, found `{example}`");
    }
}

#[test]
fn a_timeout_counts_at_its_limit() {
    let server = Server::start(Behaviour::never()).expect("a port");
    let mut workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    workload.timeout = Duration::from_millis(150);
    let outcome = run(&workload, server.address(), &closed(3, each(2)), 1);
    let service = outcome.requests("page").service;
    assert!(service.equivalent(service.min(), 150_000_000) && service.equivalent(service.max(), 150_000_000));
}

/// A socket with a port on which it does not listen: connections are refused, and nobody else can have the port.
fn bound() -> TcpListener {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    TcpListener::from(socket)
}

#[test]
fn a_refused_connection_fails_the_request_and_does_not_spin() {
    let bound = bound();
    let address = bound.local_addr().expect("an address");
    for connect in [Connect::PerUser, Connect::PerIteration, Connect::Shared(1)] {
        let workload = http(address, connect, vec![get("page", "/")]);
        let outcome = run(&workload, address, &closed(1, Stop::After(Duration::from_millis(500))), 1);
        let failed = outcome.errors("page");
        assert!(matches!(failed[..], [(ErrorKind::Connect, 1..=60)]), "{connect:?}: {failed:?}");
        assert!(outcome.example("page", ErrorKind::Connect).contains("refused"));
    }
}

/// The address of a server that closes each connection as soon as it has accepted it.
fn closing_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().for_each(drop));
    address
}

#[test]
fn a_connection_that_ends_in_its_handshake_fails_the_request_and_does_not_spin() {
    let address = closing_server();
    for connect in [Connect::PerUser, Connect::PerIteration, Connect::Shared(1)] {
        let workload = over_tls(http(address, connect, vec![get("page", "/")]), insecure());
        let outcome = run(&workload, address, &closed(1, Stop::After(Duration::from_millis(500))), 1);
        let failed = outcome.requests("page").failed();
        assert!((1..=60).contains(&failed), "{connect:?}: {failed}, {:?}", outcome.record.error_examples);
    }
}

#[test]
fn a_shared_connection_that_ends_before_its_first_request_does_not_spin() {
    let address = closing_server();
    let workload = http(address, Connect::Shared(1), vec![get("page", "/")]);
    // After its first request the user needs no connection.
    let think = Think::Constant(Duration::from_secs(60));
    let model = LoadModel::Closed { users: Profile::constant(1.0), think };
    let load = LoadProfile { model, ..closed(1, Stop::After(Duration::from_millis(500))) };
    let made = run(&workload, address, &load, 1).connects().count();
    assert!((2..=60).contains(&made), "{made} connections");
}

#[test]
fn a_server_that_never_accepts_times_the_connection_out() {
    // A backlog of one that is full: the kernel leaves further connections unanswered.
    let listener = bound();
    rustix::net::listen(&listener, 0).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let _queued = TcpStream::connect(address).expect("the first one fits");
    let mut workload = http(address, Connect::PerUser, vec![get("page", "/")]);
    workload.timeout = Duration::from_millis(200);
    let outcome = run(&workload, address, &closed(1, each(2)), 1);
    assert_eq!(outcome.errors("page"), [(ErrorKind::Timeout, 2)]);
    assert_eq!(outcome.connects().errors, BTreeMap::from([(ErrorKind::Timeout, 2)]));
}

#[test]
fn what_is_under_way_at_the_end_of_the_drain_is_a_timeout_and_counted() {
    let server = Server::start(Behaviour::never()).expect("a port");
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let mut load = closed(4, Stop::After(Duration::from_millis(500)));
    load.drain = Duration::from_millis(200);
    let outcome = run(&workload, server.address(), &load, 2);
    assert_eq!(outcome.errors("page"), [(ErrorKind::Timeout, 4)]);
    // Whenever they began in the measure phase, they lasted as long as the drain.
    assert!(outcome.iterations().service.min() >= 199_000_000);
    assert_eq!(outcome.iterations().count(), 4);
}

#[test]
fn warm_up_measure_and_drain_are_told_apart() {
    let server = Server::start(Behaviour::after(Duration::from_millis(100), Reply::of_size(1))).expect("a port");
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let mut load = closed(2, Stop::After(Duration::from_millis(1250)));
    load.warmup = Duration::from_millis(1000);
    let outcome = run(&workload, server.address(), &load, 1);
    let name = Subject::Request("page".to_owned());
    let total = outcome.warmup[&name].count() + outcome.measure[&name].count();
    assert_eq!(total, server.record().requests(), "every request is in one phase");
    let seconds: Vec<i64> = outcome.intervals.iter().map(|interval| interval.second).collect();
    assert_eq!(seconds, [-1, 0, 1, 2], "the rest of second 1 after the window is filed under 2");
    assert_eq!(outcome.intervals[2].length.0, 250_000_000);
    let drained = &outcome.intervals[3].tallies;
    assert!(drained.contains_key(&(RecordedPhase::Measure, name)), "what was under way finishes in the drain");
    assert_eq!(outcome.record.window.0, 1_250_000_000);
}

#[test]
fn ramps_let_users_come_and_go() {
    let server = Server::start(Behaviour::after(Duration::from_millis(20), Reply::of_size(1))).expect("a port");
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let stage = |halves, shape, target| Stage { length: Duration::from_millis(500) * halves, target, shape };
    let stages = vec![stage(1, Shape::Ramp, 10.0), stage(1, Shape::Hold, 10.0), stage(4, Shape::Hold, 4.0)];
    let users = Profile { start: 0.0, stages, joining: None };
    let mut load = closed(1, Stop::After(Duration::from_secs(3)));
    load.model = LoadModel::Closed { users, think: Think::Constant(Duration::ZERO) };
    let outcome = run(&workload, server.address(), &load, 2);
    assert_eq!(server.record().connections(), 10);
    let users: Vec<u64> = outcome.generator().map(|second| second.users).collect();
    assert_eq!(users[1], 4, "after the step down: {users:?}");
}

#[test]
fn bytes_are_counted_as_they_cross_the_socket() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let outcome = run(&workload, server.address(), &closed(1, each(10)), 1);
    let requests = outcome.requests("page");
    assert_eq!(requests.bytes_out % 10, 0);
    assert!(requests.bytes_out / 10 > 40 && requests.bytes_in / 10 > 40, "{requests:?}");
}

#[test]
fn interrupting_ends_the_run_soon() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let interrupted = AtomicBool::new(false);
    let began = Instant::now();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupted.store(true, Ordering::Relaxed);
        });
        run_prepared(&prepared, &closed(5, Stop::After(Duration::from_secs(60))), 2, &interrupted)
    });
    assert!(outcome.record.interrupted && began.elapsed() < Duration::from_secs(30));
}

fn over_tls(mut workload: Workload, tls: Tls) -> Workload {
    workload.target.as_mut().expect("a target").tls = Some(tls);
    workload
}

fn insecure() -> Tls {
    Tls { ca: None, server_name: None, insecure: true }
}

fn tls_workload(server: &Server, tls: Tls) -> Workload {
    over_tls(http(server.address(), Connect::PerIteration, vec![get("page", "/")]), tls)
}

fn ca_file(server: &Server) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(server.ca_pem().expect("TLS").as_bytes()).expect("written");
    file
}

#[test]
fn tls_checks_certificates_unless_told_otherwise() {
    let server = Server::builder(Behaviour::at_once(Reply::of_size(40_000))).tls().start().expect("a port");
    let ca = ca_file(&server);
    let trusted = Tls { ca: Some(ca.path().to_owned()), server_name: None, insecure: false };
    let outcome = run(&tls_workload(&server, trusted.clone()), server.address(), &closed(2, each(5)), 1);
    assert!(outcome.errors("page").is_empty(), "{:?}", outcome.record.error_examples);
    assert_eq!(outcome.requests("page").count(), 10);

    let other_name = Tls { server_name: Some("other.example".to_owned()), ..trusted };
    let outcome = run(&tls_workload(&server, other_name.clone()), server.address(), &closed(1, each(2)), 1);
    assert_eq!(outcome.errors("page"), [(ErrorKind::Tls, 2)], "a certificate for another name");

    let unknown = Server::builder(Behaviour::at_once(Reply::of_size(1))).tls().start().expect("a port");
    let stranger = Tls { ca: Some(ca.path().to_owned()), server_name: None, insecure: false };
    let outcome = run(&tls_workload(&unknown, stranger), unknown.address(), &closed(1, each(2)), 1);
    assert_eq!(outcome.errors("page"), [(ErrorKind::Tls, 2)], "a certificate of another authority");

    let insecure = Tls { insecure: true, ..other_name };
    let outcome = run(&tls_workload(&unknown, insecure), unknown.address(), &closed(1, each(2)), 1);
    assert!(outcome.errors("page").is_empty(), "{:?}", outcome.record.error_examples);
}

/// The address of a proxy that passes on the bytes of one connection. Once the server has received its second request,
/// the proxy sends the client a record that nobody can decrypt.
fn breaking_proxy(server: &Arc<Server>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = Arc::clone(server);
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a connection");
        let upstream = TcpStream::connect(server.address()).expect("a connection");
        for (from, to) in [(&client, &upstream), (&upstream, &client)] {
            let (mut from, mut to) = (from.try_clone().expect("a descriptor"), to.try_clone().expect("a descriptor"));
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
        while server.record().requests() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Application data of TLS 1.2 or 1.3, 30 bytes long.
        let mut record = [0_u8; 35];
        record[..5].copy_from_slice(&[23, 3, 3, 0, 30]);
        let _ = client.write_all(&record);
    });
    address
}

#[test]
fn a_record_that_breaks_an_open_connection_is_no_failed_handshake() {
    let server = Server::builder(Behaviour::at_once(Reply::of_size(20))).at("/never", Behaviour::never()).tls();
    let server = Arc::new(server.start().expect("a port"));
    let address = breaking_proxy(&server);
    let steps = vec![get("first", "/"), get("second", "/never")];
    let workload = over_tls(http(address, Connect::PerUser, steps), insecure());
    let outcome = run(&workload, address, &closed(1, each(1)), 1);
    assert_eq!((outcome.errors("first"), outcome.errors("second")), (vec![], vec![(ErrorKind::Closed, 1)]));
    let example = outcome.example("second", ErrorKind::Closed);
    assert!(example.starts_with("the connection broke: ") && !example.contains("handshake"), "{example}");
}

#[test]
fn a_ca_file_that_is_none_is_refused_before_any_load() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut workload = http(([127, 0, 0, 1], 1).into(), Connect::PerUser, vec![get("page", "/")]);
    workload.target.as_mut().expect("a target").tls =
        Some(Tls { ca: Some(file.path().to_owned()), server_name: None, insecure: false });
    let Err(error) = Prepared::new(&workload, Some(([127, 0, 0, 1], 1).into())) else {
        panic!("an empty file is no authority")
    };
    assert!(error.to_string().contains("expected PEM certificates"), "{error}");
}

#[test]
fn more_connections_than_descriptors_are_refused_before_any_load() {
    let server = quick_server();
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
    let error = prepared
        .run(&crate::support::job(&closed(u32::MAX, each(1)), 1), &AtomicBool::new(false), &mut |_| {})
        .expect_err("nobody has four billion descriptors");
    assert!(error.to_string().contains("open files"), "{error}");
    assert_eq!(server.record().connections(), 0);
}
