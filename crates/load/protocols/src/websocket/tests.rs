//! The socket fed with a server's bytes: whole, in pieces, and broken.

use super::*;
use plimsoll_testkit::websocket::{Server, SocketEvent};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const ASKED: Handshake<'_> = Handshake { target: "/chat?room=1", headers: &[], subprotocols: &[], deflate: false };

/// A frame as a server sends it: not masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        0..=125 => bytes.push(payload.len() as u8),
        126..=0xffff => bytes.extend([&[126][..], &(payload.len() as u16).to_be_bytes()].concat()),
        _ => bytes.extend([&[127][..], &(payload.len() as u64).to_be_bytes()].concat()),
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// Unmasks the frames of a client: the first byte of each frame, and its payload.
fn sent(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [first, second, rest @ ..] = bytes {
        assert!(second & 0x80 != 0, "a client masks");
        let (length, behind) = match second & 0x7f {
            126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), 2),
            127 => (u64::from_be_bytes(*rest.first_chunk().expect("a length")) as usize, 8),
            short => (usize::from(short), 0),
        };
        let (mask, rest) = rest[behind..].split_at(4);
        let payload = rest[..length].iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]);
        frames.push((*first, payload.collect()));
        bytes = &rest[length..];
    }
    frames
}

/// The value of a header in a request.
fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The response of a server that accepts the handshake.
fn response(request: &[u8], more: &str) -> Vec<u8> {
    let request = std::str::from_utf8(request).expect("a text");
    let accept = handshake::accept(header(request, "Sec-WebSocket-Key").expect("a key"));
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade";
    format!("{head}\r\nSec-WebSocket-Accept: {accept}\r\n{more}\r\n").into_bytes()
}

/// Opens a socket with the response to its request, and returns the events.
fn open(handshake: &Handshake<'_>, response: impl Fn(&[u8]) -> Vec<u8>, piece: usize) -> (Socket, Vec<Event>) {
    let (mut out, mut events) = (Vec::new(), Vec::new());
    let mut socket = Socket::open(handshake, 7, &mut out);
    for bytes in response(&out).chunks(piece) {
        socket.receive(bytes, &mut Vec::new(), &mut events);
    }
    (socket, events)
}

fn opened() -> Socket {
    let (socket, events) = open(&ASKED, |request| response(request, ""), usize::MAX);
    assert!(matches!(events[..], [Event::Opened(_)]), "{events:?}");
    socket
}

/// Receives the bytes of a server, and returns the events and the bytes sent in return.
fn receive(socket: &mut Socket, bytes: &[u8], piece: usize) -> (Vec<Event>, Vec<(u8, Vec<u8>)>) {
    let (mut out, mut events) = (Vec::new(), Vec::new());
    bytes.chunks(piece.max(1)).for_each(|bytes| socket.receive(bytes, &mut out, &mut events));
    (events, sent(&out))
}

fn text(text: &str) -> Event {
    Event::Text(text.to_owned())
}

#[test]
fn the_request_asks_for_a_socket() {
    let headers = [("Host".to_owned(), "127.0.0.1:80".to_owned())];
    let subprotocols = ["a".to_owned(), "b".to_owned()];
    let mut out = Vec::new();
    let opening = Handshake { headers: &headers, subprotocols: &subprotocols, deflate: true, ..ASKED };
    Socket::open(&opening, 7, &mut out);
    let request = String::from_utf8(out).expect("a text");
    let key = header(&request, "Sec-WebSocket-Key").expect("a key");
    assert_eq!(key.len(), 24, "16 bytes in base64");
    let expected = format!(
        "GET /chat?room=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: a, b\r\n\
         Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n\r\n"
    );
    assert_eq!(request, expected);
}

#[test]
fn an_answer_opens_the_socket_and_what_follows_it_is_a_message() {
    for piece in [usize::MAX, 1, 3, 50] {
        let with_message = |request: &[u8]| [response(request, "Server: x\r\n"), frame(0x81, b"at once")].concat();
        let (mut socket, events) = open(&ASKED, with_message, piece);
        let [Event::Opened(response), message] = &events[..] else { panic!("{events:?}") };
        assert_eq!((response.status, response.header("server"), message), (101, Some("x"), &text("at once")));
        assert_eq!(receive(&mut socket, &frame(0x81, b"later"), piece).0, [text("later")], "in pieces of {piece}");
    }
}

#[test]
fn answers_that_open_nothing_are_refused_by_name() {
    let cases: [(Handshake<'_>, &str, &str); 7] = [
        (ASKED, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n", "belongs to our key"),
        (ASKED, "Connection: Upgrade\r\n", "`Upgrade: websocket`"),
        (ASKED, "+Sec-WebSocket-Protocol: chat\r\n", "instead of `chat`"),
        (
            ASKED,
            "+Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n",
            "as they were offered",
        ),
        (
            Handshake { deflate: true, ..ASKED },
            "+Sec-WebSocket-Extensions: permessage-deflate\r\n",
            "as they were offered",
        ),
        (Handshake { deflate: true, ..ASKED }, "+Sec-WebSocket-Extensions: brotli\r\n", "as they were offered"),
        (
            Handshake { deflate: true, ..ASKED },
            "+Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_max_window_bits=12\r\n",
            "as they were offered",
        ),
    ];
    for (opening, headers, words) in cases {
        let (socket, events) = open(
            &opening,
            |request| match headers.strip_prefix('+') {
                Some(more) => response(request, more),
                None => format!("HTTP/1.1 101 Switching Protocols\r\n{headers}\r\n").into_bytes(),
            },
            usize::MAX,
        );
        let [Event::Refused(Some(_), why)] = &events[..] else { panic!("{headers}: {events:?}") };
        assert!(why.contains(words) && socket.is_closed(), "expected `{words}`, found: {why}");
    }
}

#[test]
fn another_answer_is_handed_over_with_its_body() {
    let no = "HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nContent-Length: 9\r\n\r\nstay away";
    for piece in [usize::MAX, 1, 7] {
        let (socket, events) = open(&ASKED, |_| no.as_bytes().to_vec(), piece);
        let [Event::Refused(Some(response), why)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(
            (response.status, response.header("x-why"), &response.body[..]),
            (403, Some("no"), &b"stay away"[..])
        );
        assert_eq!(why, "websocket: bad handshake: expected status 101, found 403");
        assert!(socket.is_closed());
    }
}

#[test]
fn a_refusal_without_end_ends_after_a_kilobyte_or_with_the_connection() {
    let head = b"HTTP/1.1 500 Oh\r\nConnection: close\r\n\r\n";
    let endless = |_: &[u8]| [&head[..], &[b'x'; 3000]].concat();
    let (_, events) = open(&ASKED, endless, 100);
    assert!(matches!(&events[..], [Event::Refused(Some(response), _)] if response.body.len() == 1024), "{events:?}");
    let (mut socket, mut events) = open(&ASKED, |_| [&head[..], b"short"].concat(), 100);
    assert_eq!(events, []);
    socket.end_of_input(&mut events);
    assert!(matches!(&events[..], [Event::Refused(Some(response), _)] if response.body == b"short"), "{events:?}");
}

#[test]
fn what_is_no_answer_is_refused() {
    let (_, events) = open(&ASKED, |_| b"SSH-2.0-OpenSSH\r\n".to_vec(), usize::MAX);
    assert!(matches!(&events[..], [Event::Refused(None, _)]), "{events:?}");
    let (mut socket, mut events) = open(&ASKED, |_| b"HTTP/1.1 101".to_vec(), usize::MAX);
    socket.end_of_input(&mut events);
    assert!(matches!(&events[..], [Event::Refused(None, why)] if why.contains("end of the connection")), "{events:?}");
}

#[test]
fn messages_of_every_length_come_in_any_pieces() {
    for length in [0, 1, 125, 126, 65_535, 65_536, 200_000] {
        let bytes = vec![b'x'; length];
        let both = [frame(0x81, &bytes), frame(0x82, &bytes)].concat();
        for piece in [both.len(), 1, 4096] {
            if piece == 1 && length > 1000 {
                continue;
            }
            let (events, out) = receive(&mut opened(), &both, piece);
            assert_eq!(events, [Event::Text("x".repeat(length)), Event::Binary(bytes.clone())], "{length} by {piece}");
            assert_eq!(out, []);
        }
    }
}

#[test]
fn fragments_are_put_together_with_pings_in_between() {
    // The umlaut is cut in two.
    let fragments = [
        frame(0x01, b"Gr\xc3"),
        frame(0x89, b"are you there"),
        frame(0x00, b"\xbc"),
        frame(0x8a, b"yes"),
        frame(0x80, b"\xc3\x9fe"),
    ];
    for piece in [1, 5, 1000] {
        let (events, out) = receive(&mut opened(), &fragments.concat(), piece);
        assert_eq!(events, [Event::Ping, Event::Pong(b"yes".to_vec()), text("Grüße")]);
        assert_eq!(out, [(0x8a, b"are you there".to_vec())], "the ping is answered");
    }
}

#[test]
fn a_server_that_pings_and_does_not_read_is_left() {
    let (mut socket, mut events, mut out) = (opened(), Vec::new(), Vec::new());
    for bytes in frame(0x89, b"").repeat(200_000).chunks(1000) {
        socket.receive(bytes, &mut out, &mut events);
    }
    assert!(matches!(events.last(), Some(Event::Broken(why)) if why.contains("reads what it asks for")));
    assert!(socket.is_closed() && out.len() <= 1024 * 1024 + 8, "{} bytes wait", out.len());
}

#[test]
fn messages_are_sent_masked() {
    let mut socket = opened();
    let mut out = Vec::new();
    socket.send_text("hello", &mut out);
    socket.send_binary(&[7; 300], &mut out);
    socket.send_binary(&[8; 70_000], &mut out);
    socket.ping(b"1", &mut out);
    assert!(!out.windows(5).any(|window| window == b"hello"));
    let frames = [(0x81, b"hello".to_vec()), (0x82, vec![7; 300]), (0x82, vec![8; 70_000]), (0x89, b"1".to_vec())];
    assert_eq!(sent(&out), frames);
}

#[test]
fn a_peer_that_closes_is_answered_and_heard_no_more() {
    for (payload, code, reason) in
        [(&b"\x03\xe8"[..], 1000, ""), (b"\x0f\xa0see you", 4000, "see you"), (b"", 1005, "")]
    {
        let mut socket = opened();
        let bytes = [frame(0x88, payload), frame(0x81, b"too late")].concat();
        let (events, out) = receive(&mut socket, &bytes, usize::MAX);
        assert_eq!(events, [Event::Closed { code, reason: reason.to_owned() }]);
        assert_eq!(out, [(0x88, payload[..payload.len().min(2)].to_vec())]);
        assert!(socket.is_closed());
        let mut late = Vec::new();
        socket.send_text("too late", &mut late);
        assert!(late.is_empty(), "{late:?}");
    }
}

#[test]
fn our_own_farewell_is_the_last_that_we_send() {
    let mut socket = opened();
    let mut out = Vec::new();
    socket.close(1000, "done", &mut out);
    socket.send_text("too late", &mut out);
    socket.close(1001, "again", &mut out);
    assert_eq!(sent(&out), [(0x88, b"\x03\xe8done".to_vec())]);
    let bytes = [frame(0x81, b"still under way"), frame(0x89, b""), frame(0x88, b"\x03\xe8")].concat();
    let (events, out) = receive(&mut socket, &bytes, usize::MAX);
    assert_eq!(events, [text("still under way"), Event::Ping, Event::Closed { code: 1000, reason: String::new() }]);
    assert_eq!(out, []);
}

#[test]
fn reasons_are_cut_between_characters() {
    let mut out = Vec::new();
    opened().close(3000, &"ü".repeat(100), &mut out);
    assert_eq!(sent(&out)[0].1.len(), 2 + 122);
}

#[test]
fn a_connection_that_ends_without_a_word_is_closed_abnormally() {
    let mut socket = opened();
    let mut events = Vec::new();
    socket.end_of_input(&mut events);
    socket.end_of_input(&mut events);
    assert_eq!(events, [Event::Closed { code: 1006, reason: "unexpected EOF".to_owned() }]);
}

#[test]
fn what_breaks_the_protocol_ends_the_socket_and_is_told() {
    let cases: [(Vec<u8>, u16, &str); 16] = [
        (vec![0x81, 0x85, 1, 2, 3, 4], 1002, "masked"),
        (frame(0xc1, b"x"), 1002, "RSV1"),
        (frame(0xa1, b"x"), 1002, "0xa1"),
        (frame(0x83, b"x"), 1002, "0x83"),
        (frame(0x8b, b"x"), 1002, "0x8b"),
        (frame(0x80, b"x"), 1002, "continuation"),
        ([frame(0x01, b"x"), frame(0x81, b"y")].concat(), 1002, "the rest"),
        (frame(0x09, b"x"), 1002, "one piece"),
        (frame(0x89, &[0; 126]), 1002, "125 bytes"),
        (frame(0x88, b"\x03"), 1002, "two bytes"),
        (frame(0x88, b"\x03\xed"), 1002, "1005"),
        (frame(0x88, b"\x00\x00"), 1002, "found 0"),
        (frame(0x88, b"\x03\xe8\xff"), 1007, "UTF-8"),
        (frame(0x81, b"\xc3\x28"), 1007, "UTF-8"),
        ([frame(0x01, b"\xc3"), frame(0x80, b"")].concat(), 1007, "UTF-8"),
        (vec![0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0], 1009, "at most"),
    ];
    for (bytes, code, words) in cases {
        let mut socket = opened();
        let (events, out) = receive(&mut socket, &bytes, usize::MAX);
        let [Event::Broken(why)] = &events[..] else { panic!("expected `{words}`, found {events:?}") };
        assert!(why.contains(words), "expected `{words}`, found: {why}");
        assert_eq!(out, [(0x88, code.to_be_bytes().to_vec())], "{words}");
        assert!(socket.is_closed());
    }
}

#[test]
fn messages_are_compressed_where_both_sides_want_it() {
    let opening = Handshake { deflate: true, ..ASKED };
    let extension =
        "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; server_max_window_bits=12\r\n";
    let (mut socket, _) = open(&opening, |request| response(request, extension), usize::MAX);
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    // The second message is the same in two fragments; the third one is not compressed.
    let bytes = [frame(0xc1, &hello), frame(0x41, &hello[..3]), frame(0x80, &hello[3..]), frame(0x81, b"plain")];
    let (events, _) = receive(&mut socket, &bytes.concat(), 4);
    assert_eq!(events, [text("Hello"), text("Hello"), text("plain")]);
    let mut out = Vec::new();
    socket.send_text(&"long ".repeat(1000), &mut out);
    assert!(sent(&out)[0].0 == 0xc1 && out.len() < 100, "{} bytes", out.len());
    let (events, out) = receive(&mut socket, &frame(0xc2, &[0xff; 9]), usize::MAX);
    assert!(matches!(&events[..], [Event::Broken(_)]) && out[0].1 == 1002_u16.to_be_bytes(), "{events:?}");
}

#[test]
fn many_messages_in_one_read_are_all_taken() {
    let bytes = frame(0x89, b"1234").repeat(1_000_000);
    let mut socket = opened();
    let (mut out, mut events, mut sent) = (Vec::new(), Vec::new(), 0);
    for bytes in bytes.chunks(64 << 10) {
        socket.receive(bytes, &mut out, &mut events);
        sent += std::mem::take(&mut out).len();
    }
    assert_eq!(events.len(), 1_000_000);
    assert_eq!(sent, 1_000_000 * (2 + 4 + 4));
}

proptest! {
    #[test]
    fn messages_come_as_they_were_cut(
        messages in prop::collection::vec((any::<bool>(), prop::collection::vec("[a-zß-ÿ]{0,200}", 1..4)), 1..8),
        piece in 1_usize..400,
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (is_text, fragments) in &messages {
            for (at, fragment) in fragments.iter().enumerate() {
                let kind = if at > 0 { 0 } else if *is_text { 1 } else { 2 };
                let last = if at + 1 == fragments.len() { 0x80 } else { 0 };
                bytes.extend(frame(last | kind, fragment.as_bytes()));
            }
            let whole = fragments.concat();
            expected.push(if *is_text { Event::Text(whole) } else { Event::Binary(whole.into_bytes()) });
        }
        prop_assert_eq!(receive(&mut opened(), &bytes, piece).0, expected);
    }

    #[test]
    fn any_bytes_are_taken_or_refused_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        let _ = receive(&mut opened(), &bytes, piece);
        let _ = open(&ASKED, |_| bytes.clone(), piece);
        let _ = open(&ASKED, |request| [response(request, ""), bytes.clone()].concat(), piece);
    }
}

/// A socket over TCP, to a server on another library.
struct Wired {
    stream: TcpStream,
    socket: Socket,
    events: VecDeque<Event>,
}

impl Wired {
    fn open(server: &Server, opening: Handshake<'_>) -> Wired {
        let host = [("Host".to_owned(), server.address().to_string())];
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("it takes one");
        let mut out = Vec::new();
        let socket = Socket::open(&Handshake { headers: &host, ..opening }, 7, &mut out);
        stream.write_all(&out).expect("a request");
        Wired { stream, socket, events: VecDeque::new() }
    }

    fn at(server: &Server, target: &str) -> Wired {
        let mut wired = Wired::open(server, Handshake { target, ..ASKED });
        assert!(matches!(wired.next(), Event::Opened(_)), "{target}");
        wired
    }

    fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let (mut bytes, mut out, mut events) = ([0; 4096], Vec::new(), Vec::new());
            match self.stream.read(&mut bytes).expect("bytes") {
                0 => self.socket.end_of_input(&mut events),
                count => self.socket.receive(&bytes[..count], &mut out, &mut events),
            }
            self.stream.write_all(&out).expect("written");
            self.events.extend(events);
        }
    }

    fn send(&mut self, write: impl FnOnce(&mut Socket, &mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut self.socket, &mut out);
        self.stream.write_all(&out).expect("it goes");
    }
}

fn closed(code: u16, reason: &str) -> Event {
    Event::Closed { code, reason: reason.to_owned() }
}

#[test]
fn another_library_understands_us_and_is_understood() {
    let server = Server::start().expect("a server");
    let mut wired = Wired::at(&server, "/echo");
    let long = "ß".repeat(100_000);
    for message in ["", "hello", &long] {
        wired.send(|socket, out| socket.send_text(message, out));
        assert_eq!(wired.next(), text(message));
        wired.send(|socket, out| socket.send_binary(message.as_bytes(), out));
        assert_eq!(wired.next(), Event::Binary(message.as_bytes().to_vec()));
    }
    wired.send(|socket, out| socket.ping(b"7", out));
    assert_eq!(wired.next(), Event::Pong(b"7".to_vec()));
    wired.send(|socket, out| socket.close(4001, "enough", out));
    assert_eq!(wired.next(), closed(4001, "enough"));
    assert_eq!(server.received().last().map(|message| message.event.clone()), Some(SocketEvent::Close(Some(4001))));
}

#[test]
fn another_library_pushes_pings_closes_and_refuses() {
    let server = Server::start().expect("a server");
    let mut wired = Wired::at(&server, "/push/3");
    let all: Vec<Event> = (0..4).map(|_| wired.next()).collect();
    assert_eq!(all, [text("1"), text("2"), text("3"), closed(1000, "")]);
    let mut wired = Wired::at(&server, "/ping");
    assert_eq!((wired.next(), wired.next()), (Event::Ping, text("you are there")));
    assert_eq!(Wired::at(&server, "/close/4000/why").next(), closed(4000, "why"));
    let mut wired = Wired::at(&server, "/cut");
    wired.send(|socket, out| socket.send_text("x", out));
    assert_eq!(wired.next(), closed(1006, "unexpected EOF"));
    let refused = Wired::open(&server, Handshake { target: "/nothing", ..ASKED }).next();
    let Event::Refused(Some(response), _) = refused else { panic!("{refused:?}") };
    assert_eq!((response.status, response.body), (404, b"nothing at /nothing".to_vec()));
}

#[test]
fn a_subprotocol_is_chosen_by_another_library() {
    let server = Server::start().expect("a server");
    let subprotocols = ["chat".to_owned(), "superchat".to_owned()];
    let opening = Handshake { target: "/echo", subprotocols: &subprotocols, deflate: true, ..ASKED };
    let Event::Opened(response) = Wired::open(&server, opening).next() else { panic!("it is opened") };
    assert_eq!(response.header("sec-websocket-protocol"), Some("chat"));
}
