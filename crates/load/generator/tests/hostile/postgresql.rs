//! Sessions with a PostgreSQL that is none.

use crate::cases::{Case, FINE, alone, cuts, hold};
use crate::drive::postgresql;
use crate::peer::Act;

/// A message with its tag and length.
pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// Waits for the first message, of start-up.
pub(crate) fn heard() -> Act {
    Act::Hear(|bytes| bytes.len() >= 8)
}

/// Waits for a statement: a reset may take with it what was sent before.
pub(crate) fn asked() -> Act {
    Act::Hear(|bytes| bytes.windows(6).any(|six| six == b"SELECT"))
}

/// A server accepts anybody.
pub(crate) fn start() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'S', b"server_version\x0015.4\0"), message(b'K', &[0; 8]), ready()].concat()
}

/// The columns of a result: an integer and a text.
fn columns() -> Vec<u8> {
    let column = |name: u8, oid: u8| {
        [&[name, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, oid, 255, 255, 255, 255, 255, 255, 0, 0][..]].concat()
    };
    message(b'T', &[&[0, 2][..], &column(b'a', 23), &column(b'b', 25)].concat())
}

fn prepared() -> Vec<u8> {
    [message(b'1', b""), message(b't', &[0, 1, 0, 0, 0, 23]), columns(), ready()].concat()
}

pub(crate) fn row(a: &[u8], b: &[u8]) -> Vec<u8> {
    let cell = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    message(b'D', &[&[0, 2][..], &cell(a), &cell(b)].concat())
}

fn done(tag: &str) -> Vec<u8> {
    [message(b'C', format!("{tag}\0").as_bytes()), ready()].concat()
}

fn executed() -> Vec<u8> {
    [
        message(b'2', b""),
        row(&[0, 0, 0, 7], b"text"),
        message(b'D', &[0, 2, 255, 255, 255, 255, 255, 255, 255, 255]),
        done("SELECT 2"),
    ]
    .concat()
}

fn queried() -> Vec<u8> {
    [columns(), row(b"7", b"text"), done("SELECT 1")].concat()
}

/// Everything that a client of these cases wants to hear.
fn session() -> Vec<u8> {
    [start(), prepared(), executed(), queried()].concat()
}

fn error(fields: &[&str]) -> Vec<u8> {
    let fields: String = fields.iter().map(|field| format!("{field}\0")).collect();
    message(b'E', format!("{fields}\0").as_bytes())
}

fn sends(bytes: &[u8], then: impl IntoIterator<Item = Act>) -> Vec<Act> {
    [heard(), Act::Send(bytes.to_vec())].into_iter().chain(then).collect()
}

/// What comes in the place of the whole session, and how that ends.
fn sessions() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let after_start = |bytes: &[u8]| [&start()[..], bytes].concat();
    let after_prepared = |bytes: &[u8]| [&start()[..], &prepared(), bytes].concat();
    let notice = message(b'N', b"SNOTICE\0Mhello\0\0");
    let password =
        |method: u8, more: &[u8]| [message(b'R', &[&[0, 0, 0, method][..], more].concat()), session()].concat();
    let failed = error(&["SERROR", "VERROR", "C42P01", "Mno such table"]);
    vec![
        ("a whole session", session(), FINE),
        (
            "notices in between",
            [start(), notice.repeat(100), prepared(), notice.repeat(100), executed(), notice, queried()].concat(),
            FINE,
        ),
        (
            "a notification",
            [start(), message(b'A', b"\0\0\0\x01a\0b\0"), prepared(), executed(), queried()].concat(),
            FINE,
        ),
        ("MD5", password(5, b"salt"), FINE),
        (
            "an unknown message of a capital",
            [start(), prepared(), message(b'Y', b""), executed(), queried()].concat(),
            FINE,
        ),
        ("no rows", [start(), prepared(), message(b'2', b""), done("SELECT 0"), queried()].concat(), FINE),
        (
            "a tag of a huge number",
            [start(), prepared(), message(b'2', b""), done("UPDATE 99999999999999999999999"), queried()].concat(),
            FINE,
        ),
        ("a password in clear text", password(3, b""), "Denied"),
        ("Kerberos", password(7, b""), "Denied"),
        ("SASL without SCRAM", password(10, b"PLAIN\0\0"), "Denied"),
        (
            "SCRAM that proves nothing",
            [message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), message(b'R', b"\0\0\0\x0br=x,s=AAAA,i=1")].concat(),
            "Denied",
        ),
        ("SCRAM out of turn", password(11, b"r=x,s=AAAA,i=1"), "Protocol"),
        (
            "SCRAM with too many rounds",
            [message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), message(b'R', b"\0\0\0\x0br=x,s=AAAA,i=4294967295")]
                .concat(),
            "Denied",
        ),
        ("a user that may not", error(&["SFATAL", "VFATAL", "C28000", "Mno"]), "Denied"),
        ("too many connections", error(&["SFATAL", "VFATAL", "C53300", "Mno"]), "Connect"),
        ("a table that is missing", after_start(&[failed.clone(), ready()].concat()), "Sql"),
        ("an error without fields", after_start(&[error(&[]), ready()].concat()), "Sql"),
        ("a deadlock", after_prepared(&[error(&["VERROR", "C40P01", "Mno"]), ready()].concat()), "Deadlock"),
        ("a shutdown", after_prepared(&error(&["SFATAL", "VFATAL", "C57P01", "Mno"])), "Closed"),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "Protocol"),
        ("an alert of TLS", b"\x15\x03\x01\0\x02\x02\x46".to_vec(), "Protocol"),
        ("a greeting of MySQL", b"\x4a\0\0\0\x0a5.7.0\0".to_vec(), "Protocol"),
        ("zeros", vec![0; 64], "Protocol"),
        ("a message of 3 bytes", after_start(b"Z\0\0\0\x03"), "Protocol"),
        ("a message of 4 GB", after_start(b"D\xff\xff\xff\xff"), "Protocol"),
        ("an error that is cut off inside", after_start(&message(b'E', b"SERROR")), "Protocol"),
        ("columns that are cut off inside", after_start(&message(b'T', b"\0\x02a")), "Protocol"),
        ("parameters that are cut off inside", after_start(&message(b't', b"\0\x09\0")), "Protocol"),
        ("a row before its columns", after_start(&[message(b'1', b""), row(b"1", b"2"), ready()].concat()), "Sql"),
        (
            "a row with a column less",
            after_prepared(&[message(b'D', &[0, 1, 255, 255, 255, 255]), done("SELECT 1")].concat()),
            "Protocol",
        ),
        (
            "a row with a column more",
            after_prepared(&[message(b'D', &[&[0, 3][..], &[255; 12]].concat()), done("SELECT 1")].concat()),
            "Protocol",
        ),
        ("a cell longer than its row", after_prepared(&message(b'D', b"\0\x02\0\0\x03\xe8ab")), "Protocol"),
        ("a cell of 2 GB", after_prepared(&message(b'D', b"\0\x02\x7f\xff\xff\xffab")), "Protocol"),
        ("an empty row", after_prepared(&message(b'D', b"")), "Protocol"),
        (
            "a copy that nobody asked for",
            [start(), prepared(), message(b'G', b"\0\0\0"), failed, ready()].concat(),
            "Sql",
        ),
        ("a parameter less", [start(), message(b'1', b""), message(b't', b"\0\0"), columns(), ready()].concat(), "Sql"),
        (
            "a number that is a text",
            [start(), prepared(), message(b'2', b""), row(b"seven", b"\xff\xfe"), done("SELECT 1"), queried()].concat(),
            FINE,
        ),
    ]
}

#[test]
fn a_session_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let of = |(name, bytes, end): (&str, Vec<u8>, &'static str)| Case::new(name, sends(&bytes, []), end);
    let mut cases: Vec<Case> = sessions().into_iter().map(of).collect();
    let whole = session();
    cases.extend([
        Case::new("nothing", vec![heard()], "Connect"),
        Case::new("silence", vec![heard(), Act::Hold], "Timeout"),
        Case::new("a reset", vec![heard(), Act::Reset], "Connect"),
        Case::new("a reset after start-up", sends(&start(), [asked(), Act::Reset]), "Closed"),
        Case::new("byte by byte", vec![heard(), Act::Drip(whole.clone())], FINE),
        Case::new(
            "an answer of 63 MiB",
            sends(
                &[start(), prepared(), row(&[0; 4], &vec![b'x'; 63 << 20]), done("SELECT 1"), queried()].concat(),
                [],
            ),
            FINE,
        )
        .keeping(256),
        Case::new(
            "an answer of 65 MiB",
            sends(&[start(), prepared(), row(&[0; 4], &vec![b'x'; 65 << 20]), done("SELECT 1")].concat(), []),
            "Protocol",
        )
        .keeping(256),
        Case::new(
            "five million cells",
            sends(
                &[
                    start(),
                    prepared(),
                    message(b'D', &[0, 2, 255, 255, 255, 255, 255, 255, 255, 255]).repeat(2_500_000),
                ]
                .concat(),
                [],
            ),
            "Protocol",
        )
        .keeping(256),
    ]);
    let beginning = start().len();
    cases.extend(cuts("start-up", &[heard()], &whole, (1..beginning).step_by(7), &[], "Connect"));
    cases.extend(cuts("a session", &[heard()], &whole, (beginning..whole.len()).step_by(7), &[], "Closed"));
    cases.extend(cuts(
        "a session that stops",
        &[heard()],
        &whole,
        (1..whole.len()).step_by(41),
        &[Act::Hold],
        "Timeout",
    ));
    hold(&alone, &cases, postgresql);
}
