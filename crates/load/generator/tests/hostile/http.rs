//! Responses of HTTP/1.1, for plain requests, flows and scripts.

use crate::cases::{Case, FINE, alone, cuts, hold};
use crate::drive::{flow, request, scripted_request};
use crate::peer::Act;

/// Waits for a request.
pub(crate) fn heard() -> Act {
    Act::Hear(|bytes| bytes.windows(4).any(|four| four == b"\r\n\r\n"))
}

/// A server that answers with these bytes, then does something else.
pub(crate) fn answers(bytes: &[u8], then: impl IntoIterator<Item = Act>) -> Vec<Act> {
    [heard(), Act::Send(bytes.to_vec())].into_iter().chain(then).collect()
}

const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\": 1}";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\n{\"a\":\r\n3\r\n 1}\r\n0\r\nX-Sum: 1\r\n\r\n";

/// Responses that are whole, and how they end.
const WHOLE: [(&str, &str, &str); 46] = [
    ("a length", SIZED, FINE),
    ("chunks", CHUNKED, FINE),
    ("no body", "HTTP/1.1 204 No Content\r\n\r\n", FINE),
    ("an empty body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", FINE),
    ("not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", FINE),
    ("no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", FINE),
    (
        "interim responses",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        FINE,
    ),
    ("lines that end in LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", FINE),
    ("an empty line before", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", FINE),
    ("the length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nhi", FINE),
    ("a coding beside chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n", FINE),
    (
        "chunks and a length",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n0\r\n\r\n",
        FINE,
    ),
    (
        "a chunk size with zeros",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n000002\r\nhi\r\n000\r\n\r\n",
        FINE,
    ),
    ("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", FINE),
    ("a value in Latin-1", "HTTP/1.1 200 OK\r\nA: \u{fc}\r\nContent-Length: 0\r\n\r\n", FINE),
    ("an empty value", "HTTP/1.1 200 OK\r\nA:\r\nContent-Length: 0\r\n\r\n", FINE),
    (
        "many cookies",
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nSet-Cookie: =\r\nSet-Cookie: ;;;\r\nContent-Length: 0\r\n\r\n",
        FINE,
    ),
    ("not found", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "Status"),
    ("an error with a body", "HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno", "Status"),
    ("an unknown status", "HTTP/1.1 799 Odd\r\nContent-Length: 0\r\n\r\n", "Status"),
    ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", "Protocol"),
    ("HTTP/2", "\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", "Protocol"),
    ("an alert of TLS", "\x15\x03\x01\0\x02\x02\x46", "Protocol"),
    ("HTTP/0.9", "<html>hello</html>", "Protocol"),
    ("HTTP/3", "HTTP/3.0 200 OK\r\n\r\n", "Protocol"),
    ("lower case", "http/1.1 200 OK\r\n\r\n", "Protocol"),
    ("a switch of protocols", "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", "Protocol"),
    ("a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "Protocol"),
    ("a status in letters", "HTTP/1.1 two OK\r\n\r\n", "Protocol"),
    ("no colon", "HTTP/1.1 200 OK\r\nContent-Length 0\r\n\r\n", "Protocol"),
    ("a space in a name", "HTTP/1.1 200 OK\r\nContent Length: 0\r\n\r\n", "Protocol"),
    ("a NUL in a value", "HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 0\r\n\r\n", "Protocol"),
    ("a NUL in a name", "HTTP/1.1 200 OK\r\nA\0: b\r\nContent-Length: 0\r\n\r\n", "Protocol"),
    ("no name", "HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 0\r\n\r\n", "Protocol"),
    ("a length in words", "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", "Protocol"),
    ("a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "Protocol"),
    ("a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", "Protocol"),
    ("a length beyond 64 bits", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nhello", "Protocol"),
    ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "Protocol"),
    ("more than the length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", "Protocol"),
    ("no size of a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhi", "Protocol"),
    ("a chunk size in words", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "Protocol"),
    (
        "a chunk size beyond 64 bits",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "Protocol",
    ),
    ("a negative chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "Protocol"),
    ("a chunk without its end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi0\r\n\r\n", "Protocol"),
    (
        "a second response",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "Protocol",
    ),
];

fn whole() -> Vec<Case> {
    let case = |(name, bytes, end): &(&str, &str, &'static str)| Case::new(*name, answers(bytes.as_bytes(), []), end);
    WHOLE.iter().map(case).collect()
}

/// What is too long for a table.
fn long() -> Vec<Case> {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n").into_bytes();
    let chunked = |chunks: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}").into_bytes();
    let of = |name: &str, bytes: &[u8], expected| Case::new(name, answers(bytes, []), expected);
    vec![
        of("99 fields", &head(&"A: b\r\n".repeat(99)), FINE),
        of("101 fields", &head(&"A: b\r\n".repeat(101)), "Protocol"),
        of("a value of 60 KB", &head(&format!("A: {}\r\n", "b".repeat(60_000))), FINE),
        of("a name of 60 KB", &head(&format!("{}: b\r\n", "a".repeat(60_000))), FINE),
        of("a value without an end", &head("A: ")[..19], "Closed"),
        of("a head of a megabyte", &head(&format!("A: {}\r\n", "b".repeat(1_000_000)))[..900_000], "Protocol"),
        of("an extension of 9 KB", &chunked(&format!("0;{}\r\n\r\n", "x".repeat(9_000))), "Protocol"),
        of("a trailer of 9 KB", &chunked(&format!("0\r\nA: {}\r\n\r\n", "x".repeat(9_000))), "Protocol"),
        of("ten thousand trailers", &chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(10_000))), FINE),
        of("ten thousand chunks of a byte", &chunked(&format!("{}0\r\n\r\n", "1\r\n7\r\n".repeat(10_000))), FINE),
        of(
            "a thousand interim responses",
            &["HTTP/1.1 100 C\r\n\r\n".repeat(1000).into_bytes(), head("")].concat(),
            FINE,
        ),
    ]
}

/// Connections that end, stay open or trickle where they should not.
fn endings() -> Vec<Case> {
    let until_end = b"HTTP/1.1 200 OK\r\n\r\n7";
    let mut cases = vec![
        Case::new("a body up to the end", answers(until_end, []), FINE),
        Case::new("nothing", vec![heard()], "Closed"),
        Case::new("an end before the request", vec![], "Closed"),
        Case::new("silence", vec![heard(), Act::Hold], "Timeout"),
        Case::new("a body up to an end that does not come", answers(until_end, [Act::Hold]), "Timeout"),
        Case::new("byte by byte", vec![heard(), Act::Drip(CHUNKED.into())], FINE),
        Case::new("a reset at once", vec![heard(), Act::Reset], "Closed"),
        Case::new("a reset in the head", answers(b"HTTP/1.1 200", [Act::Reset]), "Closed"),
        Case::new("a reset in the body", answers(&SIZED.as_bytes()[..SIZED.len() - 1], [Act::Reset]), "Closed"),
    ];
    for whole in [SIZED, CHUNKED] {
        let places = (1..whole.len()).step_by(9);
        cases.extend(cuts("a response that stops", &[heard()], whole.as_bytes(), places, &[Act::Hold], "Timeout"));
    }
    cases
}

#[test]
fn a_plain_request_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let mut cases: Vec<Case> = whole().into_iter().chain(long()).chain(endings()).collect();
    for whole in [SIZED, CHUNKED] {
        cases.extend(cuts("a response", &[heard()], whole.as_bytes(), 1..whole.len(), &[], "Closed"));
    }
    hold(&alone, &cases, request);
}

#[test]
fn a_step_of_a_flow_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let cases: Vec<Case> = whole().into_iter().chain(long()).chain(endings()).collect();
    hold(&alone, &cases, flow);
}

#[test]
fn a_request_of_a_script_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let as_script = |case: Case| {
        // A script gets the response with its status, and does not hear of what comes behind it.
        let is_fine = case.expects(FINE) || case.expects("Status");
        let goes_on = ["more than the length", "a second response"].contains(&case.name.as_str());
        // What fails throws.
        case.expecting(if is_fine || goes_on { FINE } else { "Script" })
    };
    hold(
        &alone,
        &whole().into_iter().chain(long()).chain(endings()).map(as_script).collect::<Vec<_>>(),
        scripted_request,
    );
}
