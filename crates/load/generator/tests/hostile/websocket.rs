//! WebSockets of scripts and of flows.

use crate::cases::{Case, FINE, alone, cuts, hold};
use crate::drive::{OVER, flow_socket, many_sockets, socket, talking_socket};
use crate::http::{answers, heard};
use crate::peer::Act;
use plimsoll_testkit::websocket::accept;

/// The response that opens a socket, with more headers.
fn opening(request: &[u8], more: &str) -> Vec<u8> {
    let accept = accept(&String::from_utf8_lossy(request));
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade";
    format!("{head}\r\nSec-WebSocket-Accept: {accept}\r\n{more}\r\n").into_bytes()
}

/// A server that opens the socket.
pub(crate) fn opens() -> [Act; 2] {
    [heard(), Act::Answer(|request| opening(request, ""))]
}

/// A frame of a server: not masked.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = match payload.len() {
        short @ 0..=125 => vec![short as u8],
        middle @ 126..=0xffff => [&[126][..], &(middle as u16).to_be_bytes()].concat(),
        long => [&[127][..], &(long as u64).to_be_bytes()].concat(),
    };
    [&[first], &length[..], payload].concat()
}

const CONTINUES: u8 = 0x80;
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const LAST: u8 = 0x80;

/// A closing frame in order.
fn close() -> Vec<u8> {
    frame(CLOSE, &[3, 232])
}

fn after_opening(bytes: Vec<u8>, then: impl IntoIterator<Item = Act>) -> Vec<Act> {
    opens().into_iter().chain([Act::Send(bytes)]).chain(then).collect()
}

/// Frames that are in order.
fn frames_in_order() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("no message", vec![]),
        ("a text", frame(TEXT, b"hello")),
        ("bytes", frame(BINARY, &[0, 255])),
        ("an empty message", frame(TEXT, b"")),
        ("fragments", [frame(TEXT & !LAST, b"he"), frame(0, b"ll"), frame(CONTINUES, b"o")].concat()),
        (
            "a ping between fragments",
            [frame(TEXT & !LAST, b"he"), frame(PING, b"p"), frame(CONTINUES, b"llo")].concat(),
        ),
        ("a character in two fragments", [frame(TEXT & !LAST, &[0xc3]), frame(CONTINUES, &[0xbc])].concat()),
        ("a ping with 125 bytes", frame(PING, &[7; 125])),
        ("a pong that nobody asked for", frame(PONG, b"x")),
        ("a message of 126 bytes", frame(BINARY, &[0; 126])),
        ("a message of 65,536 bytes", frame(BINARY, &[0; 65_536])),
        ("a short message with a long length", [&[BINARY, 127, 0, 0, 0, 0, 0, 0, 0, 1, 7][..]].concat()),
        ("ten thousand messages", frame(TEXT, b"x").repeat(10_000)),
        ("a thousand pings", frame(PING, b"x").repeat(1000)),
    ]
}

/// Frames that no server may send.
fn broken_frames() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a masked frame", vec![TEXT, 0x82, 1, 2, 3, 4, b'h', b'i']),
        ("an unknown type", frame(LAST | 3, b"")),
        ("an unknown control frame", frame(LAST | 11, b"")),
        ("reserved bits", frame(TEXT | 0x20, b"")),
        ("compression that nobody agreed on", frame(TEXT | 0x40, b"")),
        ("a text that is no UTF-8", frame(TEXT, &[0xff, 0xfe])),
        ("a continuation of nothing", frame(CONTINUES, b"x")),
        ("a message inside of another", [frame(TEXT & !LAST, b"a"), frame(TEXT, b"b")].concat()),
        ("a ping in fragments", frame(PING & !LAST, b"x")),
        ("a ping of 126 bytes", frame(PING, &[0; 126])),
        ("a closing frame of one byte", frame(CLOSE, &[3])),
        ("a code that nobody may send", frame(CLOSE, &[3, 237])),
        ("a reason that is no UTF-8", frame(CLOSE, &[3, 232, 0xff])),
        ("a message of 2^63 bytes", [&[BINARY, 127][..], &[0x7f; 8]].concat()),
        ("a message of 65 MiB", [&[BINARY, 127, 0, 0, 0, 0, 4, 16, 0, 0][..]].concat()),
    ]
}

/// Frames, followed by `last` and then `act` where they are in order, and the end of a client that is sent broken ones.
fn frames(last: &[u8], act: Option<&Act>, end: &'static str) -> Vec<Case> {
    let fine = frames_in_order().into_iter();
    let fine = fine.map(|(name, bytes)| Case::new(name, after_opening([&bytes, last].concat(), act.cloned()), FINE));
    let broken = broken_frames().into_iter().map(|(name, bytes)| Case::new(name, after_opening(bytes, []), end));
    fine.chain(broken).collect()
}

/// Servers that open no socket, open another than was asked for, or do not go on, and the end of their client.
fn openings(end: &'static str) -> Vec<Case> {
    let mut cases: Vec<Case> = REFUSALS.map(|(name, bytes)| Case::new(name, answers(bytes.as_bytes(), []), end)).into();
    let answered = |name: &str, answer: fn(&[u8]) -> Vec<u8>| Case::new(name, vec![heard(), Act::Answer(answer)], end);
    cases.extend([
        answered("a subprotocol that nobody asked for", |request| opening(request, "Sec-WebSocket-Protocol: chat\r\n")),
        answered("an extension that nobody asked for", |request| {
            opening(request, "Sec-WebSocket-Extensions: permessage-deflate\r\n")
        }),
        answered("a head of 70 KB", |request| opening(request, &format!("A: {}\r\n", "b".repeat(70_000)))),
        answered("101 headers", |request| opening(request, &"A: b\r\n".repeat(101))),
        Case::new("nothing", vec![heard()], end),
        Case::new("a reset", vec![heard(), Act::Reset], end),
        Case::new("silence after opening", after_opening(vec![], [Act::Hold]), end),
        Case::new("a message that stops", after_opening(vec![TEXT, 5, b'h'], [Act::Hold]), end),
        Case::new("an end without closing", after_opening(vec![], []), end),
        Case::new("a reset after opening", after_opening(vec![], [Act::Reset]), end),
    ]);
    cases
}

/// Responses that open no socket.
const REFUSALS: [(&str, &str); 14] = [
    ("not found", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"),
    ("an error in chunks", "HTTP/1.1 502 Bad\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"),
    ("a page", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("a redirect", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    ("no hash", "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
    (
        "a wrong hash",
        "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n",
    ),
    ("no upgrade", "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n"),
    ("another upgrade", "HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n"),
    ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n"),
    ("an alert of TLS", "\x15\x03\x01\0\x02\x02\x46"),
    ("frames at once", "\u{81}\x02hi"),
    ("a head that stops", "HTTP/1.1 101 Switching"),
    ("a NUL", "HTTP/1.1 101 S\r\nA: \0\r\n\r\n"),
    ("a refusal that stops", "HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nno"),
];

#[test]
fn a_socket_of_a_script_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let mut cases = frames(&close(), None, "Script");
    cases.extend(openings("Script"));
    cases.extend([
        Case::new("byte by byte", after_opening(vec![], [Act::Drip([frame(TEXT, b"hello"), close()].concat())]), FINE),
        Case::new("frames after closing", after_opening([close(), frame(TEXT, b"x").repeat(9)].concat(), []), FINE),
    ]);
    let whole =
        [frame(TEXT, b"hello"), frame(PING, b"p"), frame(TEXT & !LAST, b"a"), frame(CONTINUES, b"b"), close()].concat();
    cases.extend(cuts("frames", &opens(), &whole, 1..whole.len(), &[], "Script"));
    hold(&alone, &cases, socket);
}

#[test]
fn a_socket_of_a_flow_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    // A socket that is closed when its message is awaited has none, so it stays open until the client leaves.
    let (over, stays) = (frame(TEXT, OVER), Act::Hear(|_| false));
    let mut cases = frames(&over, Some(&stays), "Iteration");
    cases.extend(openings("Iteration"));
    let after = |bytes: &[u8]| after_opening([bytes, &over].concat(), [stays.clone()]);
    cases.extend([
        Case::new("byte by byte", after_opening(vec![], [Act::Drip(over.clone()), stays.clone()]), FINE),
        Case::new("closed instead", after_opening(close(), []), "Iteration"),
        Case::new("closed before it", after_opening([close(), over.clone()].concat(), []), "Iteration"),
        Case::new("broken JSON", after(&frame(TEXT, b"{\"over\": ")), FINE),
        Case::new("deep JSON", after(&frame(TEXT, &[b'['; 100_000])), FINE),
        Case::new("another value", after_opening(frame(TEXT, b"{\"over\": 1}"), [Act::Hold]), "Iteration"),
    ]);
    let whole = [frame(TEXT, b"hello"), frame(PING, b"p"), frame(TEXT & !LAST, b"a"), frame(CONTINUES, b"b")].concat();
    cases.extend(cuts("frames", &opens(), &whole, 1..whole.len(), &[], "Iteration"));
    hold(&alone, &cases, flow_socket);
}

#[test]
fn a_socket_whose_server_does_not_read_ends_before_what_waits_is_large() {
    let alone = alone();
    let cases = [Case::new("silence instead of reading", after_opening(vec![], [Act::Ignore]), FINE).keeping(128)];
    hold(&alone, &cases, talking_socket);
}

#[test]
fn sockets_of_one_user_end_before_what_they_keep_is_large_together() {
    let alone = alone();
    // 60 MiB are announced on each, far more than a user with 8 MiB may hold.
    let long = [BINARY, 127, 0, 0, 0, 0, 3, 192, 0, 0].to_vec();
    let cases = [Case::new("long messages", after_opening(long, [Act::Flood(vec![b'x'])]), FINE).keeping(64)];
    hold(&alone, &cases, many_sockets);
}
