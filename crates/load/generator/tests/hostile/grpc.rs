//! HTTP/2 as gRPC uses it, for calls of studies and of scripts.

use crate::cases::{Case, FINE, alone, cuts, hold};
use crate::drive::{call, scripted_call, talking_stream};
use crate::peer::Act;

/// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Settings of a server that change nothing.
pub(crate) fn settings() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[])
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

/// A field that goes into no table.
fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

/// Status 200 and the type of gRPC.
fn head() -> Vec<u8> {
    [vec![0x88], field("content-type", "application/grpc")].concat()
}

fn trailers(status: &str) -> Vec<u8> {
    field("grpc-status", status)
}

/// A message of no bytes.
const EMPTY: [u8; 5] = [0; 5];

/// The frames of a whole reply.
fn reply() -> [Vec<u8>; 3] {
    [
        frame(HEADERS, END_HEADERS, 1, &head()),
        frame(DATA, 0, 1, &EMPTY),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers("0")),
    ]
}

/// Waits until a request is whole: the preface, then frames up to one that ends a stream.
pub(crate) fn called() -> Act {
    Act::Hear(|bytes| {
        let mut rest = bytes.get(24..).unwrap_or_default();
        while let Some((header, behind)) = rest.split_at_checked(9) {
            let length = usize::from(header[1]) << 8 | usize::from(header[2]);
            if header[3] == DATA && header[4] & END_STREAM != 0 && behind.len() >= length {
                return true;
            }
            rest = behind.get(length..).unwrap_or_default();
        }
        false
    })
}

/// Waits for the preface.
fn greeted() -> Act {
    Act::Hear(|bytes| bytes.len() >= 24)
}

/// A server that sends its settings, and these frames after a call.
fn answers(frames: &[Vec<u8>], then: impl IntoIterator<Item = Act>) -> Vec<Act> {
    [greeted(), Act::Send(settings()), called(), Act::Send(frames.concat())].into_iter().chain(then).collect()
}

/// Replies that come to a status of gRPC, or to none.
fn replies() -> Vec<Case> {
    let [head_frame, data, end] = reply();
    let with_head = |frames: &[Vec<u8>]| [std::slice::from_ref(&head_frame), frames].concat();
    let ends = |block: &[u8]| frame(HEADERS, END_HEADERS | END_STREAM, 1, block);
    let status = |status: &str| with_head(&[ends(&trailers(status))]);
    let padded = |kind, flags, content: &[u8]| frame(kind, flags | PADDED, 1, &[&[3][..], content, &[0; 3]].concat());
    let with_priority = frame(HEADERS, END_HEADERS | PRIORITY, 1, &[&[0, 0, 0, 0, 16][..], &head()].concat());
    let in_parts: Vec<Vec<u8>> = vec![
        frame(HEADERS, 0, 1, &head()[..3]),
        frame(CONTINUATION, 0, 1, &[]),
        frame(CONTINUATION, END_HEADERS, 1, &head()[3..]),
    ];
    let cases: Vec<(&str, Vec<Vec<u8>>, &'static str)> = vec![
        ("a whole reply", reply().to_vec(), FINE),
        ("padding", vec![padded(HEADERS, END_HEADERS, &head()), padded(DATA, 0, &EMPTY), end.clone()], FINE),
        ("a priority", vec![with_priority, data.clone(), end.clone()], FINE),
        ("headers in parts", [&in_parts[..], &[data.clone(), end.clone()]].concat(), FINE),
        ("a message in parts", with_head(&[frame(DATA, 0, 1, &[0; 2]), frame(DATA, 0, 1, &[0; 3]), end.clone()]), FINE),
        ("empty data", with_head(&[frame(DATA, 0, 1, &[]), data.clone(), end.clone()]), FINE),
        ("a ping in between", with_head(&[frame(PING, 0, 0, &[7; 8]), data.clone(), end.clone()]), FINE),
        ("settings in between", with_head(&[setting(4, 100), data.clone(), end.clone()]), FINE),
        ("an unknown frame", with_head(&[frame(99, 255, 77, &[1, 2]), data.clone(), end.clone()]), FINE),
        ("another stream", with_head(&[frame(DATA, 0, 999, &[1]), data.clone(), end.clone()]), FINE),
        (
            "a table of no size",
            vec![frame(HEADERS, END_HEADERS, 1, &[&[0x20][..], &head()].concat()), data.clone(), end.clone()],
            FINE,
        ),
        (
            "a status in the table",
            with_head(&[data.clone(), ends(&[&[0x40, 11][..], b"grpc-status", &[1], b"0", &[0xbe]].concat())]),
            FINE,
        ),
        ("going away after it", [&reply()[..], &[frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])]].concat(), FINE),
        ("a status other than OK", status("5"), "Status"),
        ("an unknown status", status("99"), "Status"),
        ("a deadline of the server's", status("4"), "Timeout"),
        ("HTTP status 503", vec![ends(&[field(":status", "503")].concat())], "Status"),
        ("no status of gRPC", with_head(&[data.clone(), ends(&[])]), "Protocol"),
        ("a status in words", status("fine"), "Protocol"),
        ("no message", status("0"), "Protocol"),
        ("trailers alone", vec![ends(&[head(), trailers("0")].concat())], "Protocol"),
        ("two messages", with_head(&[data.clone(), data.clone(), end.clone()]), "Protocol"),
        ("a message cut short", with_head(&[frame(DATA, 0, 1, &[0, 0, 0, 0, 9, 1]), end.clone()]), "Protocol"),
        ("a compressed message", with_head(&[frame(DATA, 0, 1, &[1, 0, 0, 0, 0]), end.clone()]), "Protocol"),
        ("a message of 4 GB", with_head(&[frame(DATA, 0, 1, &[0, 255, 255, 255, 255]), end]), "Protocol"),
        ("a reset", vec![frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])], "Closed"),
        ("a reset in the reply", with_head(&[data, frame(RST_STREAM, 0, 1, &[0, 0, 0, 2])]), "Closed"),
        ("going away before it", vec![frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11])], "Closed"),
    ];
    cases.into_iter().map(|(name, frames, end)| Case::new(name, answers(&frames, []), end)).collect()
}

/// Frames that break HTTP/2.
fn broken() -> Vec<Case> {
    let block = |bytes: &[u8]| vec![frame(HEADERS, END_HEADERS, 1, bytes)];
    let [head_frame, data, _] = reply();
    let large = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'b'; 4000]].concat();
    let bomb = [large, vec![0xbe; 12_000]].concat();
    let continued = std::iter::once(frame(HEADERS, 0, 1, &head()))
        .chain(std::iter::repeat_with(|| frame(CONTINUATION, 0, 1, &[0x88; 16_384])).take(17))
        .collect();
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("a frame of 16 MB", vec![vec![255, 255, 255, DATA, 0, 0, 0, 0, 1]]),
        ("a frame of 16,385 bytes", vec![frame(DATA, 0, 1, &[0; 16_385])]),
        ("HTTP/1.1", vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]),
        ("an alert of TLS", vec![b"\x15\x03\x01\0\x02\x02\x46".to_vec(), vec![0; 9]]),
        ("a pushed stream", vec![frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])]),
        ("a continuation of nothing", vec![frame(CONTINUATION, END_HEADERS, 1, &[])]),
        ("data inside of a header block", vec![frame(HEADERS, 0, 1, &head()), data]),
        ("a continuation of another stream", vec![frame(HEADERS, 0, 1, &head()), frame(CONTINUATION, 4, 3, &[])]),
        ("headers inside of a header block", vec![frame(HEADERS, 0, 1, &head()), head_frame]),
        ("padding longer than its frame", vec![frame(DATA, PADDED, 1, &[9, 1, 2])]),
        ("padding without its length", vec![frame(DATA, PADDED, 1, &[])]),
        ("a priority cut short", vec![frame(HEADERS, END_HEADERS | PRIORITY, 1, &[0; 4])]),
        ("a ping of 7 bytes", vec![frame(PING, 0, 0, &[0; 7])]),
        ("a window update of 3 bytes", vec![frame(WINDOW_UPDATE, 0, 0, &[0; 3])]),
        ("settings of 5 bytes", vec![frame(SETTINGS, 0, 0, &[0; 5])]),
        ("settings of a stream", vec![frame(SETTINGS, 0, 1, &[])]),
        ("a reset of 3 bytes", vec![frame(RST_STREAM, 0, 1, &[0; 3])]),
        ("going away in 4 bytes", vec![frame(GOAWAY, 0, 0, &[0; 4])]),
        ("frames of 100 bytes at most", vec![setting(5, 100)]),
        ("frames of 4 GB at most", vec![setting(5, u32::MAX)]),
        ("index 0", block(&[0x80])),
        ("an index of nothing", block(&[0xbe])),
        ("an index without an end", block(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])),
        ("a name beyond the block", block(&[0x40, 0x50, b'a'])),
        ("a value beyond the block", block(&[0x40, 1, b'a', 0x7f, 0xff, 0x7f])),
        ("a block that stops in a field", block(&[0x40])),
        ("a table beyond its limit", block(&[0x3f, 0xff, 0x7f])),
        ("a code of Huffman's that stops", block(&[0x40, 0x82, 0xff, 0xff, 0])),
        ("a list of fields of 48 MB", block(&bomb)),
        ("a header block of 272 KB", continued),
    ];
    cases.into_iter().map(|(name, frames)| Case::new(name, answers(&frames, []), "Protocol").keeping(2)).collect()
}

/// Connections that end, stay open or trickle where they should not.
fn endings() -> Vec<Case> {
    let whole = reply().concat();
    let opening = [greeted(), Act::Send(settings()), called()];
    let mut cases = vec![
        Case::new("an end before settings", vec![greeted()], "Closed"),
        Case::new("no settings", vec![greeted(), Act::Hold], "Timeout"),
        Case::new("an end after settings", opening.to_vec(), "Closed"),
        Case::new("silence after settings", [&opening[..], &[Act::Hold]].concat(), "Timeout"),
        Case::new("data before settings", vec![greeted(), Act::Send(frame(DATA, 0, 1, &[]))], "Protocol"),
        Case::new("no streams allowed", vec![greeted(), Act::Send(setting(3, 0)), Act::Hold], "Timeout"),
        Case::new("no window", vec![greeted(), Act::Send(setting(4, 0)), Act::Hold], "Timeout"),
        Case::new("byte by byte", [&opening[..], &[Act::Drip(whole.clone())]].concat(), FINE),
        Case::new("a reset after settings", [&opening[..], &[Act::Reset]].concat(), "Closed"),
        Case::new("a reset in a frame", answers(&[whole[..4].to_vec()], [Act::Reset]), "Closed"),
    ];
    cases.extend(cuts("a reply that stops", &opening, &whole, (1..whole.len()).step_by(9), &[Act::Hold], "Timeout"));
    cases
}

#[test]
fn a_call_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let whole = reply().concat();
    let opening = [greeted(), Act::Send(settings()), called()];
    let mut cases: Vec<Case> = replies().into_iter().chain(broken()).chain(endings()).collect();
    cases.extend(cuts("a reply", &opening, &whole, 1..whole.len(), &[], "Closed"));
    hold(&alone, &cases, call);
}

#[test]
fn a_call_of_a_script_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    // What fails throws.
    let throws = |case: Case| if case.expects(FINE) { case } else { case.expecting("Script") };
    hold(
        &alone,
        &replies().into_iter().chain(broken()).chain(endings()).map(throws).collect::<Vec<_>>(),
        scripted_call,
    );
}

#[test]
fn a_stream_whose_server_does_not_read_ends_before_what_waits_is_large() {
    let alone = alone();
    let part = vec![greeted(), Act::Send(settings()), Act::Ignore];
    hold(&alone, &[Case::new("silence instead of reading", part, FINE).keeping(192)], talking_stream);
}
