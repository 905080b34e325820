//! gRPC against a real HTTP/2 server: calls, connections, statuses, reflection, and the check over
//! all replies.

use crate::support::{closed, each, iterations, run, target};
use plimsoll_generator::Prepared;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::{Connect, GrpcSchema, GrpcStep, Sequence, Steps, Tls, Workload};
use plimsoll_testkit::grpc::{Counter, Mode, ReplyMode};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

const CALL: &str = "counter.incrementCounter/increment";

fn proto() -> GrpcSchema {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../command/demo/proto/counter.proto"));
    GrpcSchema::Files { files: vec![file], include: Vec::new() }
}

fn increment() -> GrpcStep {
    let sequence = Sequence { field: "message".to_owned(), after: "Incremented value is ".to_owned() };
    GrpcStep {
        name: "increment".to_owned(),
        call: CALL.to_owned(),
        message: json!({ "value": 1 }),
        metadata: Vec::new(),
        deadline: None,
        status: 0,
        sequence: Some(sequence),
    }
}

fn workload(counter: &Counter, connect: Connect, schema: GrpcSchema, calls: Vec<GrpcStep>) -> Workload {
    let steps = Steps::Grpc { schema, calls };
    Workload { target: Some(target(counter.address())), connect, timeout: Duration::from_secs(10), steps }
}

#[test]
fn a_correct_counter_gives_each_number_once() {
    for mode in [Mode::Mutex, Mode::InputQ] {
        for (connect, connections) in [(Connect::PerUser, 20), (Connect::PerIteration, 2000), (Connect::Shared(3), 3)] {
            let counter = Counter::builder(mode).workers(2).start().expect("a port");
            let work = workload(&counter, connect, proto(), vec![increment()]);
            let outcome = run(&work, counter.address(), &closed(20, iterations(2000)), 2);
            let check = &outcome.record.sequences["increment"];
            assert!(check.holds(), "{mode:?} {connect:?}: {check:?}");
            assert_eq!((check.replies, check.largest), (2000, 2000));
            assert_eq!(counter.record().connections(), connections, "{connect:?}");
            assert!(outcome.errors("increment").is_empty(), "{:?}", outcome.record.error_examples);
        }
    }
}

#[test]
fn a_racy_counter_is_caught() {
    let counter = Counter::builder(Mode::Racy).workers(2).start().expect("a port");
    let work = workload(&counter, Connect::PerUser, proto(), vec![increment()]);
    let outcome = run(&work, counter.address(), &closed(50, iterations(20_000)), 1);
    let check = &outcome.record.sequences["increment"];
    assert!(!check.holds() && check.repeated > 0, "{check:?}");
}

#[test]
fn reflection_replaces_proto_files() {
    let counter = Counter::start(Mode::Mutex).expect("a port");
    let work = workload(&counter, Connect::PerUser, GrpcSchema::Reflection, vec![increment()]);
    let outcome = run(&work, counter.address(), &closed(2, each(10)), 1);
    assert_eq!(outcome.record.sequences["increment"].replies, 20);
}

#[test]
fn metadata_deadline_and_headers_reach_the_server() {
    let counter = Counter::start(Mode::Mutex).expect("a port");
    let call = GrpcStep {
        metadata: vec![("X-Trace".to_owned(), "abc".to_owned())],
        deadline: Some(Duration::from_millis(1500)),
        ..increment()
    };
    let work = workload(&counter, Connect::PerUser, proto(), vec![call]);
    run(&work, counter.address(), &closed(1, each(3)), 1);
    let seen = counter.record().first_requests();
    assert_eq!(seen.len(), 3);
    for request in seen {
        assert_eq!(request.path, format!("/{CALL}"));
        assert_eq!(request.body, [0, 0, 0, 0, 2, 8, 1]);
        let expected = [
            ("x-trace", "abc"),
            ("grpc-timeout", "1500000u"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ];
        for (name, value) in expected {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
    }
}

#[test]
fn statuses_are_judged_by_what_the_study_expects() {
    let counter = Counter::start(Mode::Mutex).expect("a port");
    let negative = GrpcStep { message: json!({ "value": -1 }), sequence: None, ..increment() };
    let work = workload(&counter, Connect::PerUser, proto(), vec![negative.clone()]);
    let outcome = run(&work, counter.address(), &closed(1, each(2)), 1);
    assert_eq!(outcome.errors("increment"), [(ErrorKind::Status, 2)]);
    let example = outcome.example("increment", ErrorKind::Status);
    assert!(example.contains("INVALID_ARGUMENT: Value cannot be negative"), "{example}");

    let expected = GrpcStep { status: 3, ..negative };
    let work = workload(&counter, Connect::PerUser, proto(), vec![expected]);
    assert!(run(&work, counter.address(), &closed(1, each(2)), 1).errors("increment").is_empty());
}

#[test]
fn a_call_that_is_never_answered_times_out_and_the_connection_goes_on() {
    let counter = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Never).start().expect("a port");
    let mut work = workload(&counter, Connect::PerUser, proto(), vec![increment()]);
    work.timeout = Duration::from_millis(400);
    let outcome = run(&work, counter.address(), &closed(2, each(3)), 1);
    assert_eq!(outcome.errors("increment"), [(ErrorKind::Timeout, 6)]);
    assert_eq!(counter.record().connections(), 2, "a call is cancelled, not its connection");
    assert!(outcome.record.sequences["increment"].holds(), "calls without a reply leave gaps, not repeats");
}

#[test]
fn a_deadline_ends_the_call_on_our_side_too() {
    let counter = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Never).start().expect("a port");
    let call = GrpcStep { deadline: Some(Duration::from_millis(50)), ..increment() };
    let work = workload(&counter, Connect::PerUser, proto(), vec![call]);
    let outcome = run(&work, counter.address(), &closed(1, each(2)), 1);
    let service = outcome.requests("increment").service;
    assert!(service.equivalent(service.max(), 50_000_000), "{} ns", service.max());
}

#[test]
fn a_refusal_in_headers_alone_is_understood() {
    let refuse = ReplyMode::Refuse { code: 14, message: "try later".to_owned() };
    let counter = Counter::builder(Mode::Mutex).reply_mode(refuse).start().expect("a port");
    let work = workload(&counter, Connect::PerUser, proto(), vec![increment()]);
    let outcome = run(&work, counter.address(), &closed(1, each(2)), 1);
    assert!(outcome.example("increment", ErrorKind::Status).contains("UNAVAILABLE: try later"));
}

#[test]
fn the_servers_limit_of_streams_is_kept_on_shared_connections() {
    let builder =
        Counter::builder(Mode::Mutex).max_concurrent_streams(4).reply_mode(ReplyMode::After(Duration::from_millis(2)));
    let counter = builder.start().expect("a port");
    let work = workload(&counter, Connect::Shared(1), proto(), vec![increment()]);
    let outcome = run(&work, counter.address(), &closed(30, iterations(300)), 1);
    assert!(outcome.errors("increment").is_empty(), "{:?}", outcome.record.error_examples);
    assert_eq!((outcome.iterations().count(), counter.record().connections()), (300, 1));
    let (service, whole) = (outcome.requests("increment").service.mean(), outcome.iterations().service.mean());
    assert!(service < whole, "waiting is not service: {service} of {whole} ns");
}

#[test]
fn a_server_that_goes_away_is_connected_to_again() {
    let counter = Counter::builder(Mode::Mutex).goaway_after(10).start().expect("a port");
    for connect in [Connect::PerUser, Connect::Shared(2)] {
        let work = workload(&counter, connect, proto(), vec![increment()]);
        let outcome = run(&work, counter.address(), &closed(4, iterations(200)), 1);
        assert_eq!(outcome.requests("increment").count(), 200);
        assert!(outcome.errors("increment").is_empty(), "{connect:?}: {:?}", outcome.record.error_examples);
    }
    assert!(counter.record().connections() >= 20);
}

#[test]
fn grpc_over_tls_works_with_files_and_reflection() {
    let counter = Counter::builder(Mode::Mutex).tls().start().expect("a port");
    let mut ca = tempfile::NamedTempFile::new().expect("a file");
    ca.write_all(counter.ca_pem().expect("TLS").as_bytes()).expect("written");
    for schema in [proto(), GrpcSchema::Reflection] {
        for connect in [Connect::PerUser, Connect::PerIteration] {
            let mut work = workload(&counter, connect, schema.clone(), vec![increment()]);
            work.target.as_mut().expect("a target").tls =
                Some(Tls { ca: Some(ca.path().to_owned()), server_name: None, insecure: false });
            let outcome = run(&work, counter.address(), &closed(3, each(10)), 1);
            assert_eq!(outcome.requests("increment").count(), 30);
            assert!(outcome.errors("increment").is_empty(), "{:?}", outcome.record.error_examples);
        }
    }
}

/// The faults that preparing finds in one call.
fn faults(schema: GrpcSchema, call: GrpcStep) -> String {
    let counter = Counter::start(Mode::Mutex).expect("a port");
    let work = workload(&counter, Connect::PerUser, schema, vec![call]);
    let Err(error) = Prepared::new(&work, Some(counter.address())) else { panic!("expected faults, found none") };
    error.to_string()
}

#[test]
fn what_does_not_fit_the_schema_is_refused_before_any_load() {
    let cases = [
        (
            GrpcStep { call: "counter.nothing/increment".to_owned(), ..increment() },
            "the services are `counter.incrementCounter`",
        ),
        (
            GrpcStep { call: "counter.incrementCounter/decrement".to_owned(), ..increment() },
            "its methods are `increment`",
        ),
        (GrpcStep { call: "increment".to_owned(), ..increment() }, "expected a call as `package.Service/Method`"),
        (GrpcStep { message: json!({ "amount": 1 }), ..increment() }, "(its fields: `value`)"),
        (
            GrpcStep { message: json!({ "value": "one" }), ..increment() },
            "field `counter.incrementBy.value` must be of type int32",
        ),
        (
            GrpcStep { sequence: Some(Sequence { field: "text".to_owned(), after: String::new() }), ..increment() },
            "looks for field `text`, but the fields of `counter.status` are `message`",
        ),
    ];
    for (call, words) in cases {
        let found = faults(proto(), call.clone());
        assert!(found.contains(words), "expected `{words}`, found `{found}`");
    }
    let unknown = GrpcStep { call: "counter.nothing/increment".to_owned(), ..increment() };
    assert!(faults(GrpcSchema::Reflection, unknown).contains("service `counter.nothing` by reflection"));
}

#[test]
fn a_proto_file_that_does_not_parse_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broken.proto");
    std::fs::write(&file, "syntax = \"proto3\";\nmessage Broken { int32 = 1; }\n").expect("written");
    let found = faults(GrpcSchema::Files { files: vec![file], include: Vec::new() }, increment());
    assert!(found.contains("broken.proto") && found.contains("failed to compile"), "{found}");
    let missing = folder.path().join("missing.proto");
    let found = faults(GrpcSchema::Files { files: vec![missing], include: Vec::new() }, increment());
    assert!(found.contains("no .proto file at") && found.contains("missing.proto"), "{found}");
}

#[test]
fn a_server_that_is_no_grpc_server_is_named() {
    use plimsoll_testkit::http::{Behaviour, Reply, Server};
    let server = Server::start(Behaviour::at_once(Reply::of_size(10))).expect("a port");
    let steps = Steps::Grpc { schema: proto(), calls: vec![increment()] };
    let work = Workload {
        target: Some(target(server.address())),
        connect: Connect::PerUser,
        timeout: Duration::from_secs(2),
        steps,
    };
    let outcome = run(&work, server.address(), &closed(1, each(2)), 1);
    assert_eq!(outcome.requests("increment").failed(), 2);
}
