//! Servers that never stop sending: time-outs, the end of a load and an interruption hold all the same, and nothing
//! grows.

use crate::cases::{Case, End, FINE, SOON, alone, hold};
use crate::drive;
use crate::grpc::{called, frame, settings};
use crate::http::answers;
use crate::peer::{Act, Peer};
use crate::support::{closed, each, get, http, run, run_prepared};
use crate::{mysql, postgresql, websocket};
use plimsoll_generator::Prepared;
use plimsoll_model::load::{LoadProfile, Stop};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::Connect;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a server sends after a request of HTTP/1.1: once, then again and again.
const HTTP: [(&str, &str, &str); 7] = [
    ("trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "a: b\r\n"),
    ("chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "2\r\nab\r\n"),
    ("chunks of 15 digits", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "000000000000001\r\na\r\n"),
    ("interim responses", "", "HTTP/1.1 100 Continue\r\n\r\n"),
    ("interim responses with fields", "", "HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n"),
    ("a body without an end", "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", "x"),
    ("a long body", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n", "x"),
];

/// Both ways to send without an end: faster than anybody reads, and one byte after the other.
fn endless(again: &[u8]) -> [(&'static str, Act); 2] {
    [("a flood of", Act::Flood(again.to_vec())), ("a trickle of", Act::Trickle(again.to_vec()))]
}

/// Cases of endless sending after a beginning.
fn cases(name: &str, begin: &[Act], again: &[u8], expected: &'static str) -> Vec<Case> {
    endless(again).map(|(way, act)| Case::new(format!("{way} {name}"), [begin, &[act]].concat(), expected)).into()
}

fn http_cases() -> Vec<Case> {
    HTTP.iter()
        .flat_map(|(name, first, again)| cases(name, &answers(first.as_bytes(), []), again.as_bytes(), "Timeout"))
        .collect()
}

#[test]
fn a_time_out_holds_while_a_server_of_http_keeps_sending() {
    let alone = alone();
    hold(&alone, &http_cases(), drive::request);
}

#[test]
fn a_time_out_of_a_flow_holds_while_a_server_of_http_keeps_sending() {
    let alone = alone();
    // A flow keeps 16 MiB of a body.
    let cases: Vec<Case> = http_cases().into_iter().map(|case| case.keeping(48)).collect();
    hold(&alone, &cases, drive::flow);
}

#[test]
fn a_time_out_of_a_script_holds_while_a_server_of_http_keeps_sending() {
    let alone = alone();
    // A script keeps 64 MiB of a body.
    let cases: Vec<Case> = http_cases().into_iter().map(|case| case.keeping(192).expecting("Script")).collect();
    hold(&alone, &cases, drive::scripted_request);
}

/// Frames without an end after a call of gRPC, and how it ends: where replies to them or what is kept has a bound, before
/// its time-out.
fn grpc_cases() -> Vec<Case> {
    let begin = [Act::Hear(|bytes| bytes.len() >= 24), Act::Send(settings()), called()];
    let opened = [&begin[..], &[Act::Send(frame(1, 0, 1, &[0x88]))]].concat();
    let mut all = cases("pings", &begin, &frame(6, 0, 0, &[0; 8]), "");
    all.extend(cases("settings", &begin, &settings(), ""));
    all.extend(cases("acknowledged pings", &begin, &frame(6, 1, 0, &[0; 8]), "Timeout"));
    all.extend(cases("acknowledged settings", &begin, &frame(4, 1, 0, &[]), "Timeout"));
    all.extend(cases("unknown frames", &begin, &frame(99, 0, 0, &[]), "Timeout"));
    all.extend(cases("empty data", &begin, &frame(0, 0, 1, &[]), "Timeout"));
    all.extend(cases("data of another stream", &begin, &frame(0, 0, 77, &[7; 16]), "Timeout"));
    all.extend(cases("window updates", &begin, &frame(8, 0, 0, &[0, 0, 0, 1]), "Timeout"));
    all.extend(cases("resets of other streams", &begin, &frame(3, 0, 77, &[0; 4]), "Timeout"));
    all.extend(cases("empty continuations", &opened, &frame(9, 0, 1, &[]), "Timeout"));
    all.extend(cases("header blocks", &begin, &frame(1, 4, 1, &[0x88, 0x88]), ""));
    all.extend(cases("header blocks of another stream", &begin, &frame(1, 4, 77, &[0x88]), "Timeout"));
    all
}

/// Any failure: whether a bound or the time-out comes first is a matter of how fast the machine is.
fn failed(end: End) -> End {
    if end == FINE { format!("expected a failure, found {FINE}") } else { end }
}

#[test]
fn a_time_out_holds_while_a_server_of_grpc_keeps_sending() {
    let alone = alone();
    hold(&alone, &grpc_cases(), |address, timeout| failed(drive::call(address, timeout)));
}

#[test]
fn a_time_out_of_a_script_holds_while_a_server_of_grpc_keeps_sending() {
    let alone = alone();
    let cases: Vec<Case> = grpc_cases().into_iter().map(|case| case.expecting("Script")).collect();
    hold(&alone, &cases, drive::scripted_call);
}

/// Servers that open a WebSocket and then send without an end, and the end of their client.
fn socket_cases(expected: &'static str) -> Vec<Case> {
    let begin = websocket::opens();
    let begun = |bytes: &[u8]| [&begin[..], &[Act::Send(bytes.to_vec())]].concat();
    let mut all = cases("pings", &begin, &websocket::frame(0x89, b"p"), expected);
    all.extend(cases("pongs", &begin, &websocket::frame(0x8a, b""), expected));
    all.extend(cases("empty messages", &begin, &websocket::frame(0x81, b""), expected));
    all.extend(cases("short messages", &begin, &websocket::frame(0x81, b"x"), expected));
    all.extend(cases("long messages", &begin, &websocket::frame(0x82, &[0; 65_536]), expected));
    all.extend(cases("empty fragments", &begun(&[1, 1, b'a']), &websocket::frame(0, b""), expected));
    all.extend(cases("a long message", &begun(&[0x82, 127, 0, 0, 0, 0, 3, 255, 255, 255]), b"x", expected));
    all.into_iter().map(|case| case.keeping(256)).collect()
}

#[test]
fn a_socket_of_a_script_ends_in_time_while_the_server_keeps_sending() {
    let alone = alone();
    hold(&alone, &socket_cases("Script"), drive::socket);
}

#[test]
fn a_socket_of_a_flow_ends_in_time_while_the_server_keeps_sending() {
    let alone = alone();
    hold(&alone, &socket_cases("Iteration"), drive::flow_socket);
}

#[test]
fn a_call_of_a_database_ends_in_time_while_the_server_keeps_sending() {
    let alone = alone();
    let heard = postgresql::heard();
    let begun = [heard.clone(), Act::Send(postgresql::start())];
    let notice = postgresql::message(b'N', b"SNOTICE\0Mhello\0\0");
    let mut all = cases("notices at the start", &[heard], &notice, "");
    all.extend(cases("notices", &begun, &notice, ""));
    all.extend(cases("rows", &begun, &postgresql::row(b"1", b"2"), ""));
    all.extend(cases("a cell", &[&begun[..], &[Act::Send(b"D\x7f\xff\xff\xff".to_vec())]].concat(), b"x", ""));
    let all: Vec<Case> = all.into_iter().map(|case| case.keeping(256)).collect();
    hold(&alone, &all, |address, timeout| failed(drive::postgresql(address, timeout)));

    let begun = [Act::Send([mysql::start(), mysql::prepared()].concat())];
    let mut all = cases("results", &begun, &mysql::packet(1, &[0, 0, 0, 10, 0, 0, 0]), "");
    all.extend(cases(
        "columns",
        &[&begun[..], &[Act::Send(mysql::packet(1, b"\xfd\xff\xff\xff"))]].concat(),
        &mysql::packet(1, &[0; 20]),
        "",
    ));
    all.extend(cases("empty packets at the start", &[], &mysql::packet(0, &[]), ""));
    all.extend(cases("a packet", &[&begun[..], &[Act::Send(vec![0xfe, 0xff, 0xff, 1])]].concat(), b"x", ""));
    let all: Vec<Case> = all.into_iter().map(|case| case.keeping(256)).collect();
    hold(&alone, &all, |address, timeout| failed(drive::mysql(address, timeout)));
}

/// A flood of plain requests, whose own time-out is far away.
fn endless_requests(flood: (&str, &str, &str), load: &LoadProfile, interrupt_after: Option<Duration>) -> End {
    let (_, first, again) = flood;
    let peer = Peer::start(Arc::new(answers(first.as_bytes(), [Act::Flood(again.as_bytes().to_vec())])));
    let mut workload = http(peer.address(), Connect::PerUser, vec![get("page", "/")]);
    workload.timeout = SOON * 3;
    let prepared = Prepared::new(&workload, Some(peer.address())).expect("in order");
    let interrupted = AtomicBool::new(false);
    let begun = Instant::now();
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(after) = interrupt_after {
                std::thread::sleep(after);
                interrupted.store(true, Ordering::Relaxed);
            }
        });
        run_prepared(&prepared, load, 1, &interrupted).iterations().failed()
    });
    assert!(begun.elapsed() < SOON, "{flood:?} took {:?}", begun.elapsed());
    format!("{failed} failed")
}

#[test]
fn a_load_ends_while_the_server_keeps_sending() {
    let _alone = alone();
    let mut load = closed(2, Stop::After(Duration::from_millis(200)));
    load.drain = Duration::from_millis(100);
    for flood in HTTP {
        assert_eq!(endless_requests(flood, &load, None), "2 failed", "{flood:?}");
    }
}

#[test]
fn an_interruption_ends_a_load_while_the_server_keeps_sending() {
    let _alone = alone();
    let load = closed(2, Stop::After(SOON * 3));
    endless_requests(HTTP[0], &load, Some(Duration::from_millis(200)));
}

/// A time-out counts for each request, not for the first alone.
#[test]
fn every_request_of_flooded_users_times_out() {
    let _alone = alone();
    let (_, first, again) = HTTP[0];
    let peer = Peer::start(Arc::new(answers(first.as_bytes(), [Act::Flood(again.as_bytes().to_vec())])));
    let mut workload = http(peer.address(), Connect::PerUser, vec![get("page", "/")]);
    workload.timeout = Duration::from_millis(100);
    let outcome = run(&workload, peer.address(), &closed(2, each(2)), 1);
    assert_eq!(outcome.errors("page"), [(ErrorKind::Timeout, 4)]);
}
