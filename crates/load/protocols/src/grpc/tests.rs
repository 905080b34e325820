//! The protocol fed with a server's bytes: whole, in pieces, and broken.

use super::frame::{flag, kind, setting};
use super::hpack::Encoder;
use super::*;
use plimsoll_model::units::Instant;
use proptest::prelude::*;

/// A server that answers on one connection, as far as bytes go.
#[derive(Default)]
struct Server {
    bytes: Vec<u8>,
    encoder: Encoder,
}

const FIELDS: [(&str, &str); 6] = [
    (":status", "200"),
    ("content-type", "application/grpc"),
    ("grpc-status", "0"),
    ("grpc-status", "3"),
    ("grpc-message", "Value cannot be negative%21"),
    (":status", "503"),
];

impl Server {
    /// A server that has sent its settings.
    fn greeting(settings: &[(u16, u32)]) -> Server {
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        Server::default().frame(kind::SETTINGS, 0, 0, &payload)
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Server {
        frame::write(kind, flags, stream, payload, &mut self.bytes);
        self
    }

    fn block(&mut self, numbers: &[usize]) -> Vec<u8> {
        let fields = FIELDS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut block = Vec::new();
        self.encoder.encode(&fields, numbers, &mut block);
        block
    }

    fn headers(mut self, stream: u32, flags: u8, numbers: &[usize]) -> Server {
        let block = self.block(numbers);
        self.frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
    }

    /// A whole reply: headers, message, trailers.
    fn reply(self, stream: u32, message: &[u8]) -> Server {
        self.headers(stream, 0, &[0, 1]).frame(kind::DATA, 0, stream, &prefixed(message)).headers(
            stream,
            flag::END_STREAM,
            &[2],
        )
    }
}

fn grpc() -> Grpc {
    let number = NumberField::new_for_test(1, "is ");
    let fields = vec![(":method".to_owned(), "POST".to_owned()), (":path".to_owned(), "/a.B/c".to_owned())];
    let call =
        |status| Call { fields: vec![0, 1], message: prefixed(b"\x08\x01"), status, number: Some(number.clone()) };
    Grpc { fields, calls: vec![call(0), call(3)] }
}

/// What comes of the server's bytes for requests of `steps`, whose tickets are 100, 101, …
fn exchange(steps: &[usize], bytes: &[u8], piece: usize) -> (Vec<Signal>, Result<(), Violation>, Vec<u8>) {
    let grpc = grpc();
    let (mut out, mut signals) = (Vec::new(), Vec::new());
    let mut connection = grpc.open(&mut out);
    for (index, step) in steps.iter().enumerate() {
        grpc.send(&mut connection, &mut InOrder::default(), sending(*step, 100 + index as u32), &mut out);
    }
    out.clear();
    for bytes in bytes.chunks(piece.max(1)) {
        if let Err(violation) = grpc.receive(&mut connection, bytes, &mut out, &mut signals) {
            return (signals, Err(violation), out);
        }
    }
    (signals, Ok(()), out)
}

const TEXT: &[u8] = b"\x0a\x05is 42";

fn sending(step: usize, ticket: u32) -> Sending {
    Sending { step, ticket, now: Instant(0) }
}

fn done(ticket: u32, number: Option<u64>) -> [Signal; 2] {
    [Signal::FirstByte { ticket }, Signal::Done { ticket, reply: Reply::Expected { number } }]
}

fn failure(signals: &[Signal]) -> (ErrorKind, &str) {
    match signals.last() {
        Some(Signal::Done { reply: Reply::Failed(Failure { kind, detail }), .. }) => (*kind, detail),
        other => panic!("expected a failed exchange, found {other:?}"),
    }
}

#[test]
fn a_connection_is_ready_once_the_server_has_greeted() {
    let grpc = grpc();
    let mut out = Vec::new();
    let mut connection = grpc.open(&mut out);
    assert!(out.starts_with(frame::PREFACE));
    assert_eq!(grpc.capacity(&connection), 0);
    let greeting = Server::greeting(&[(setting::MAX_CONCURRENT_STREAMS, 7)]).bytes;
    grpc.receive(&mut connection, &greeting, &mut out, &mut Vec::new()).expect("a greeting");
    assert_eq!(grpc.capacity(&connection), 7);
}

#[test]
fn a_reply_is_read_whole_and_byte_by_byte() {
    let bytes = Server::greeting(&[]).reply(1, TEXT).bytes;
    for piece in [bytes.len(), 1, 2, 7] {
        let (signals, result, _) = exchange(&[0], &bytes, piece);
        assert_eq!((signals, result), (done(100, Some(42)).to_vec(), Ok(())), "in pieces of {piece}");
    }
}

#[test]
fn replies_come_in_any_order() {
    let bytes = Server::greeting(&[]).reply(3, TEXT).reply(5, TEXT).reply(1, TEXT).bytes;
    let (signals, ..) = exchange(&[0, 0, 0], &bytes, bytes.len());
    assert_eq!(signals, [done(101, Some(42)), done(102, Some(42)), done(100, Some(42))].concat());
}

#[test]
fn padding_priority_and_continuation_are_understood() {
    let mut server = Server::greeting(&[]);
    let block = server.block(&[0, 1]);
    let padded = [&[2, 0, 0, 0, 0, 16][..], &block[..1], &[0, 0]].concat();
    let data = [&[3][..], &prefixed(TEXT), &[0, 0, 0]].concat();
    let bytes = server
        .frame(kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, &padded)
        .frame(kind::CONTINUATION, flag::END_HEADERS, 1, &block[1..])
        .frame(kind::DATA, flag::PADDED, 1, &data)
        .headers(1, flag::END_STREAM, &[2])
        .bytes;
    assert_eq!(exchange(&[0], &bytes, bytes.len()).0, done(100, Some(42)));
}

#[test]
fn an_error_status_fails_with_the_servers_words_unless_it_is_expected() {
    let bytes = Server::greeting(&[]).headers(1, flag::END_STREAM, &[0, 1, 3, 4]).bytes;
    let (signals, ..) = exchange(&[0], &bytes, bytes.len());
    let detail = "expected gRPC status OK, found INVALID_ARGUMENT: Value cannot be negative!";
    assert_eq!(failure(&signals), (ErrorKind::Status, detail));
    assert_eq!(exchange(&[1], &bytes, bytes.len()).0, done(100, None));
}

#[test]
fn replies_that_are_not_grpc_fail_by_name() {
    let cases = [
        (Server::greeting(&[]).headers(1, flag::END_STREAM, &[5]), ErrorKind::Status, "HTTP status 200, found 503"),
        (Server::greeting(&[]).headers(1, flag::END_STREAM, &[0]), ErrorKind::Protocol, "`grpc-status` trailer"),
        (Server::greeting(&[]).headers(1, flag::END_STREAM, &[0, 2]), ErrorKind::Protocol, "one message, found 0"),
        (
            Server::greeting(&[]).headers(1, 0, &[0]).frame(kind::DATA, 0, 1, &[0, 0, 0, 0, 9, 1]).headers(
                1,
                flag::END_STREAM,
                &[2],
            ),
            ErrorKind::Protocol,
            "9 bytes, found 1",
        ),
        (
            Server::greeting(&[]).headers(1, 0, &[0]).frame(kind::DATA, 0, 1, &[1, 0, 0, 0, 0]).headers(
                1,
                flag::END_STREAM,
                &[2],
            ),
            ErrorKind::Protocol,
            "compressed",
        ),
        (
            Server::greeting(&[]).frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 2]),
            ErrorKind::Closed,
            "HTTP/2 error INTERNAL_ERROR",
        ),
        (Server::greeting(&[]).frame(kind::GOAWAY, 0, 0, &[0; 8]), ErrorKind::Closed, "going away"),
    ];
    for (server, kind, words) in cases {
        let (signals, ..) = exchange(&[0], &server.bytes, server.bytes.len());
        let (found, detail) = failure(&signals);
        assert!(found == kind && detail.contains(words), "expected {kind} with `{words}`, found {found}: {detail}");
    }
}

#[test]
fn a_connection_that_goes_away_finishes_what_it_took_and_takes_no_more() {
    let grpc = grpc();
    let (mut out, mut signals) = (Vec::new(), Vec::new());
    let mut connection = grpc.open(&mut out);
    grpc.send(&mut connection, &mut InOrder::default(), sending(0, 100), &mut out);
    let bytes = Server::greeting(&[]).frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]).reply(1, TEXT).bytes;
    grpc.receive(&mut connection, &bytes, &mut out, &mut signals).expect("a reply");
    assert_eq!(signals, done(100, Some(42)));
    assert!(!grpc.is_reusable(&connection) && grpc.capacity(&connection) == 0);
}

#[test]
fn pings_and_settings_are_answered() {
    let bytes = Server::greeting(&[]).frame(kind::PING, 0, 0, b"12345678").bytes;
    let (_, result, out) = exchange(&[], &bytes, bytes.len());
    assert_eq!(result, Ok(()));
    let expected =
        Server::default().frame(kind::SETTINGS, flag::ACK, 0, &[]).frame(kind::PING, flag::ACK, 0, b"12345678");
    assert_eq!(out, expected.bytes);
}

#[test]
fn a_large_message_waits_for_room_in_both_windows() {
    let mut grpc = grpc();
    grpc.calls[0].message = prefixed(&vec![7; 100_000]);
    let (mut out, mut signals) = (Vec::new(), Vec::new());
    let mut connection = grpc.open(&mut out);
    grpc.send(&mut connection, &mut InOrder::default(), sending(0, 100), &mut out);
    let sent = |out: &[u8]| out.iter().filter(|byte| **byte == 7).count();
    assert!(sent(&out) < 66_000, "the first window is 65,535 bytes");
    assert_eq!(connection.session.unsent(), grpc.calls[0].message.len() - 65_535);
    out.clear();
    let more = 50_000_u32.to_be_bytes();
    let room = Server::greeting(&[]).frame(kind::WINDOW_UPDATE, 0, 0, &more).frame(kind::WINDOW_UPDATE, 0, 1, &more);
    grpc.receive(&mut connection, &room.bytes, &mut out, &mut signals).expect("room");
    let rest = Server { bytes: Vec::new(), encoder: room.encoder }.reply(1, TEXT);
    grpc.receive(&mut connection, &rest.bytes, &mut out, &mut signals).expect("a reply");
    assert_eq!(signals, done(100, Some(42)));
    assert_eq!(connection.session.unsent(), 0);
    assert!((34_000..36_000).contains(&sent(&out)), "the rest of the message, found {}", sent(&out));
}

#[test]
fn a_cancelled_call_is_forgotten_but_its_headers_still_count() {
    let grpc = grpc();
    let (mut out, mut signals) = (Vec::new(), Vec::new());
    let mut connection = grpc.open(&mut out);
    grpc.send(&mut connection, &mut InOrder::default(), sending(0, 100), &mut out);
    grpc.send(&mut connection, &mut InOrder::default(), sending(0, 101), &mut out);
    out.clear();
    assert!(grpc.cancel(&mut connection, 100, &mut out));
    assert_eq!(out, Server::default().frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]).bytes);
    // The late reply fills the header table that the next one refers to.
    let bytes = Server::greeting(&[]).reply(1, TEXT).reply(3, TEXT).bytes;
    grpc.receive(&mut connection, &bytes, &mut out, &mut signals).expect("replies");
    assert_eq!(signals, done(101, Some(42)));
}

#[test]
fn what_is_not_http2_is_a_violation() {
    let cases = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        Server::default().frame(kind::PING, 0, 0, &[0; 8]).bytes,
        Server::greeting(&[]).frame(kind::CONTINUATION, 0, 1, &[]).bytes,
        Server::greeting(&[]).frame(kind::HEADERS, 0, 1, &[0x88]).frame(kind::PING, 0, 0, &[0; 8]).bytes,
        Server::greeting(&[]).frame(kind::HEADERS, flag::END_HEADERS, 1, &[0xff]).bytes,
        Server::greeting(&[]).frame(kind::DATA, flag::PADDED, 1, &[9, 0]).bytes,
        Server::greeting(&[]).frame(kind::PUSH_PROMISE, 0, 1, &[0; 8]).bytes,
        Server::greeting(&[]).frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]).bytes,
    ];
    for bytes in cases {
        assert!(exchange(&[0], &bytes, bytes.len()).1.is_err(), "{bytes:x?}");
    }
}

#[test]
fn deadlines_fit_into_eight_digits() {
    assert_eq!(grpc_timeout(Duration::from_millis(1500)), "1500000u");
    assert_eq!(grpc_timeout(Duration::from_secs(3600)), "3600000m");
    assert_eq!(grpc_timeout(Duration::MAX), "99999999m");
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        let _ = exchange(&[0, 1], &bytes, piece);
        let settings_received = [Server::greeting(&[]).bytes, bytes].concat();
        let _ = exchange(&[0, 1], &settings_received, piece);
    }

    #[test]
    fn any_frames_are_taken_or_refused_but_never_panic(
        frames in prop::collection::vec((0_u8..11, any::<u8>(), 0_u32..8, prop::collection::vec(any::<u8>(), 0..40)), 0..12),
        piece in 1_usize..50,
    ) {
        let server = frames.iter().fold(Server::greeting(&[]), |server, (kind, flags, stream, payload)| {
            server.frame(*kind, *flags, *stream, payload)
        });
        let _ = exchange(&[0, 1, 0], &server.bytes, piece);
    }
}

#[test]
fn a_server_that_asks_and_does_not_read_is_left() {
    let ping = Server::default().frame(kind::PING, 0, 0, &[7; 8]).bytes;
    let flood = |frame: &[u8]| [Server::greeting(&[]).bytes, frame.repeat(150_000)].concat();
    for frame in [ping.clone(), Server::greeting(&[]).bytes] {
        let (_, result, out) = exchange(&[0], &flood(&frame), 1000);
        let violation = result.expect_err("nothing of what is written was sent").to_string();
        assert!(violation.contains("a peer that reads what it asks for"), "{violation}");
        assert!(out.len() <= 1024 * 1024, "{} bytes wait", out.len());
    }
    // Whoever reads may ask for ever.
    let (grpc, mut out) = (grpc(), Vec::new());
    let mut connection = grpc.open(&mut out);
    for bytes in flood(&ping).chunks(1000) {
        out.clear();
        grpc.receive(&mut connection, bytes, &mut out, &mut Vec::new()).expect("every reply was read");
    }
}

#[test]
fn a_small_block_that_decodes_to_much_is_refused() {
    // A field of 3,000 bytes for the table (RFC 7541, 6.2.1), and references to it.
    let field = [&[0x40, 1, b'x', 0x7f, 0xb9, 0x16][..], &[b'v'; 3000]].concat();
    let block = |references: usize| [field.clone(), vec![0xbe; references]].concat();
    let headers = |server: Server, references| server.frame(kind::HEADERS, flag::END_HEADERS, 1, &block(references));
    let read = |server: Server| exchange(&[0], &server.bytes, 1 << 20).1;
    assert_eq!(read(headers(Server::greeting(&[]), 300)), Ok(()));
    let at_once = headers(Server::greeting(&[]), 400);
    let in_parts = headers(headers(Server::greeting(&[]), 300), 300);
    for server in [at_once, in_parts] {
        let violation = read(server).expect_err("more than a megabyte").to_string();
        assert!(violation.contains("header fields of at most 1048576 bytes"), "{violation}");
    }
}

#[test]
fn a_frame_size_that_http2_does_not_have_is_refused() {
    for size in [0, 16_383, 1 << 24, u32::MAX] {
        let (_, result, _) = exchange(&[0], &Server::greeting(&[(setting::MAX_FRAME_SIZE, size)]).bytes, 1000);
        assert!(result.expect_err("not a size").to_string().contains("2^14 to 2^24-1"), "{size}");
    }
}
