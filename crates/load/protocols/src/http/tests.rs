//! The protocol fed with bytes: whole, in pieces, and broken.

use super::*;
use plimsoll_model::units::Instant;
use proptest::prelude::*;

fn target() -> Target {
    Target { host: "127.0.0.1".to_owned(), port: 8080, tls: None }
}

fn step(method: &str, status: Option<u16>) -> HttpStep {
    HttpStep {
        name: "page".to_owned(),
        method: method.to_owned(),
        path: "/a?b=c".to_owned(),
        headers: vec![("Accept".to_owned(), "text/plain".to_owned())],
        body: Vec::new(),
        status,
    }
}

/// Sends one request and feeds `pieces`; then ends the input if `ends`.
fn exchange(step: HttpStep, pieces: &[&[u8]], ends: bool) -> (Vec<Signal>, Result<bool, Violation>) {
    let http = Http::new(&target(), &[step]);
    let (mut out, mut signals) = (Vec::new(), Vec::new());
    let mut connection = http.open(&mut out);
    http.send(&mut connection, &mut InOrder::default(), sending(7), &mut out);
    for piece in pieces {
        if let Err(violation) = http.receive(&mut connection, piece, &mut out, &mut signals) {
            return (signals, Err(violation));
        }
    }
    if ends {
        http.end_of_input(&mut connection, &mut signals);
    }
    let reusable = http.is_reusable(&connection);
    (signals, Ok(reusable))
}

fn sending(ticket: u32) -> Sending {
    Sending { step: 0, ticket, now: Instant(0) }
}

fn ok() -> Vec<Signal> {
    vec![Signal::FirstByte { ticket: 7 }, Signal::Done { ticket: 7, reply: Reply::Expected { number: None } }]
}

#[test]
fn a_request_is_rendered_as_http_demands() {
    let http = Http::new(&target(), &[step("GET", None), HttpStep { body: b"x=1".to_vec(), ..step("POST", None) }]);
    let get = String::from_utf8(http.requests[0].bytes.clone()).expect("text");
    let agent = concat!("User-Agent: plimsoll/", env!("CARGO_PKG_VERSION"), "\r\n");
    assert_eq!(get, format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{agent}Accept: text/plain\r\n\r\n"));
    let post = String::from_utf8(http.requests[1].bytes.clone()).expect("text");
    assert!(post.ends_with("Content-Length: 3\r\n\r\nx=1"), "{post}");
}

/// Responses that are complete without an end of input, and whether the connection stays.
const COMPLETE: [(&str, &str, bool); 10] = [
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nConnection: close\r\n\r\nhi", false),
    ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", false),
    ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nhi", true),
    ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", true),
    ("GET", "HTTP/1.1 204 No Content\r\n\r\n", true),
    ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true),
    (
        "GET",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        true,
    ),
    (
        "GET",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n",
        true,
    ),
];

#[test]
fn complete_responses_are_read_whole_and_byte_by_byte() {
    for (method, response, stays) in COMPLETE {
        assert_eq!(exchange(step(method, None), &[response.as_bytes()], false), (ok(), Ok(stays)), "{response}");
        let bytes: Vec<&[u8]> = response.as_bytes().chunks(1).collect();
        assert_eq!(exchange(step(method, None), &bytes, false), (ok(), Ok(stays)), "byte by byte: {response}");
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let response = b"HTTP/1.1 200 OK\r\n\r\nas much as there is";
    assert_eq!(exchange(step("GET", None), &[response], true), (ok(), Ok(false)));
    let (signals, _) = exchange(step("GET", None), &[response], false);
    assert_eq!(signals.len(), 1, "only the first byte so far");
}

#[test]
fn a_body_cut_short_is_not_done() {
    let (signals, reusable) = exchange(step("GET", None), &[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"], true);
    assert_eq!((signals, reusable), (vec![Signal::FirstByte { ticket: 7 }], Ok(false)));
}

#[test]
fn an_unexpected_status_fails_by_name() {
    let response: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let detail = "expected a status below 400, found 503".to_owned();
    let failed = Signal::Done { ticket: 7, reply: Reply::Failed(Failure { kind: ErrorKind::Status, detail }) };
    assert_eq!(exchange(step("GET", None), &[response], false).0[1], failed);
    assert_eq!(exchange(step("GET", Some(503)), &[response], false).0, ok());
}

#[test]
fn what_is_not_http_is_a_violation() {
    for response in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1111111111111111\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
    ] {
        let (_, result) = exchange(step("GET", None), &[response.as_bytes()], false);
        assert!(result.is_err(), "{response}");
    }
}

#[test]
fn endless_heads_and_lines_are_refused() {
    let head = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(70_000));
    for head in [head.clone(), format!("{head}\r\nContent-Length: 0\r\n\r\n")] {
        assert!(exchange(step("GET", None), &[head.as_bytes()], false).1.is_err());
    }
    let chunk = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "a".repeat(9_000));
    assert!(exchange(step("GET", None), &[chunk.as_bytes()], false).1.is_err());
}

#[test]
fn cancelling_gives_the_connection_up() {
    let http = Http::new(&target(), &[step("GET", None)]);
    let mut out = Vec::new();
    let mut connection = http.open(&mut out);
    http.send(&mut connection, &mut InOrder::default(), sending(1), &mut out);
    assert!(!http.cancel(&mut connection, 1, &mut out));
    assert_eq!(http.capacity(&connection), 0);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0_usize..400) {
        let cut = cut.min(bytes.len());
        let _ = exchange(step("GET", None), &[&bytes[..cut], &bytes[cut..]], true);
    }

    #[test]
    fn where_a_response_is_cut_does_not_matter(which in 0_usize..COMPLETE.len(), cut in 0_usize..400) {
        let (method, response, stays) = COMPLETE[which];
        let bytes = response.as_bytes();
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(exchange(step(method, None), &[left, right], false), (ok(), Ok(stays)));
    }

    #[test]
    fn a_chunked_tail_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = exchange(step("GET", None), &[head, &bytes], true);
    }
}

/// Remembers the head that it was last shown, as whoever is content with that does.
#[derive(Debug, Default)]
struct Content {
    last: Option<Vec<u8>>,
    heads: Vec<(u16, Vec<u8>)>,
    body: Vec<u8>,
    was_content: bool,
}

impl response::Sink for Content {
    fn same_head(&mut self, status: u16) -> bool {
        self.was_content = true;
        self.heads.push((status, self.last.clone().expect("a head was shown")));
        true
    }

    fn head(&mut self, status: u16, _: &[httparse::Header<'_>], bytes: &[u8]) {
        self.last = Some(bytes.to_vec());
        self.heads.push((status, bytes.to_vec()));
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

const ALIKE: [&str; 5] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworld",
    "HTTP/1.1 404 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
];

proptest! {
    #[test]
    fn a_reader_that_knows_the_last_head_reads_as_one_that_knows_none(
        which in prop::collection::vec((0..ALIKE.len(), any::<bool>(), any::<prop::sample::Index>()), 1..12),
    ) {
        let (mut reader, mut sink) = (response::ResponseReader::default(), Content::default());
        for (which, is_head, cut) in which {
            let bytes = ALIKE[which].as_bytes();
            let cut = cut.index(bytes.len());
            let (mut fresh, mut alone) = (response::ResponseReader::default(), Content::default());
            (sink.heads, sink.body) = (Vec::new(), Vec::new());
            for (reader, sink) in [(&mut reader, &mut sink), (&mut fresh, &mut alone)] {
                reader.expect(is_head);
                prop_assert!(reader.read(&bytes[..cut], sink).is_ok());
            }
            let rest = |reader: &mut response::ResponseReader, sink: &mut Content| {
                format!("{:?}", reader.read(&bytes[cut..], sink))
            };
            prop_assert_eq!(rest(&mut reader, &mut sink), rest(&mut fresh, &mut alone));
            prop_assert_eq!((&sink.heads, &sink.body), (&alone.heads, &alone.body));
        }
    }
}

#[test]
fn a_head_that_comes_again_is_not_shown_again() {
    let (mut reader, mut sink) = (response::ResponseReader::default(), Content::default());
    for (bytes, is_known) in [(ALIKE[0], false), (ALIKE[1], true), (ALIKE[2], false), (ALIKE[0], false)] {
        reader.expect(false);
        sink.was_content = false;
        reader.read(bytes.as_bytes(), &mut sink).expect("a response");
        assert_eq!(sink.was_content, is_known, "{bytes}");
    }
    reader.expect(true);
    sink.was_content = false;
    reader.read(ALIKE[0].as_bytes(), &mut sink).expect("a response");
    assert!(!sink.was_content, "what answers HEAD is read in another way");
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {}\r\n\r\n", "x".repeat(5000));
    for _ in 0..2 {
        reader.expect(false);
        reader.read(large.as_bytes(), &mut sink).expect("a response");
        assert!(!sink.was_content, "nobody remembers so much for each connection");
    }
}
