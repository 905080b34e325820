//! Sessions with a MySQL that is none.

use crate::cases::{Case, FINE, alone, cuts, hold};
use crate::drive::mysql;
use crate::peer::Act;
use crate::postgresql::asked;

/// A packet with its length and number.
pub(crate) fn packet(number: u8, content: &[u8]) -> Vec<u8> {
    let [length @ .., _] = (content.len() as u32).to_le_bytes();
    [&length[..], &[number], content].concat()
}

/// Packets with numbers from 1 on.
fn packets(contents: &[&[u8]]) -> Vec<u8> {
    contents.iter().zip(1..).flat_map(|(content, number)| packet(number, content)).collect()
}

const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const END: [u8; 5] = [0xfe, 0, 0, 2, 0];

/// Protocol 4.1, plain authentication, and methods by name.
const CAPABILITIES: u32 = 0x0008_820d;

fn greeting_of(method: &str, capabilities: u32) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let first = [&b"\x0a8.0.30\0\x07\0\0\x0012345678\0"[..], &[a, b, 45, 2, 0, c, d, 21], &[0; 10]].concat();
    packet(0, &[&first[..], b"123456789012\0", method.as_bytes(), b"\0"].concat())
}

/// A server that accepts anybody.
pub(crate) fn start() -> Vec<u8> {
    [greeting_of("mysql_native_password", CAPABILITIES), packet(2, &OK)].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

fn column(name: &str, column_type: u8) -> Vec<u8> {
    let name = text(name.as_bytes());
    [&text(b"def")[..], &[0; 3], &name, &name, &[12, 45, 0, 11, 0, 0, 0, column_type, 0, 0, 0, 0, 0]].concat()
}

const LONG: u8 = 3;
const DOUBLE: u8 = 5;
const VAR_STRING: u8 = 253;

/// A statement with one parameter and columns of these types.
fn prepared_with(types: [u8; 2]) -> Vec<u8> {
    let [a, b] = [column("a", types[0]), column("b", types[1])];
    packets(&[&[0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0], &column("?", VAR_STRING), &END, &a, &b, &END])
}

pub(crate) fn prepared() -> Vec<u8> {
    prepared_with([LONG, VAR_STRING])
}

/// A result with these columns and rows.
fn result(types: [u8; 2], rows: &[&[u8]]) -> Vec<u8> {
    let [a, b] = [column("a", types[0]), column("b", types[1])];
    packets(&[&[&[2][..], &a, &b, &END], rows, &[&END]].concat())
}

/// A row of an integer and a text, in binary.
pub(crate) const ROW: &[u8] = &[0, 0, 7, 0, 0, 0, 4, b't', b'e', b'x', b't'];

const NULLS: &[u8] = &[0, 0b1100];

fn executed() -> Vec<u8> {
    result([LONG, VAR_STRING], &[ROW, NULLS])
}

fn queried() -> Vec<u8> {
    result([LONG, VAR_STRING], &[b"\x017\x04text", b"\xfb\xfb"])
}

/// Everything that a client of these cases wants to hear.
fn session() -> Vec<u8> {
    [start(), prepared(), executed(), queried()].concat()
}

fn error(number: u16, text: &str) -> Vec<u8> {
    [&[0xff][..], &number.to_le_bytes(), b"#HY000", text.as_bytes()].concat()
}

/// What comes in the place of the whole session, and how that ends.
fn sessions() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let native = "mysql_native_password";
    let greeting = || greeting_of(native, CAPABILITIES);
    let after_start = |bytes: &[u8]| [&start()[..], bytes].concat();
    let after_prepared = |bytes: &[u8]| [&start()[..], &prepared(), bytes].concat();
    let rest = || [prepared(), executed(), queried()].concat();
    let asked = |bytes: &[u8]| [greeting(), packet(2, bytes)].concat();
    let with_row = |row: &[u8]| after_prepared(&[result([LONG, VAR_STRING], &[row]), queried()].concat());
    let more_results = {
        let [a, b] = [column("a", LONG), column("b", VAR_STRING)];
        packets(&[&[2], &a, &b, &END, ROW, &[0xfe, 0, 0, 10, 0]])
    };
    vec![
        ("a whole session", session(), FINE),
        (
            "another method",
            [
                asked(&[&b"\xfe"[..], native.as_bytes(), b"\0", b"12345678901234567890\0"].concat()),
                packet(4, &OK),
                rest(),
            ]
            .concat(),
            FINE,
        ),
        (
            "a hash that the server has",
            [greeting_of("caching_sha2_password", CAPABILITIES), packet(2, &[1, 3]), packet(3, &OK), rest()].concat(),
            FINE,
        ),
        ("no rows", [start(), prepared(), result([LONG, VAR_STRING], &[]), queried()].concat(), FINE),
        ("no result", [start(), prepared(), packet(1, &OK), queried()].concat(), FINE),
        (
            "more results",
            [start(), prepared(), more_results.clone(), more_results, executed(), queried()].concat(),
            FINE,
        ),
        ("a method that is not spoken", asked(b"\xfedialog\0abc\0"), "Denied"),
        ("a password that is wrong", asked(&error(1045, "no")), "Denied"),
        ("a database that is missing", asked(&error(1049, "no")), "Sql"),
        ("too many connections", packet(0, &error(1040, "no")), "Connect"),
        ("version 9", packet(0, b"\x093.20\0"), "Protocol"),
        ("version 255 of nothing", packet(0, &[0xff]), "Protocol"),
        ("an older server", greeting_of(native, 1), "Protocol"),
        ("a greeting that is cut off inside", packet(0, b"\x0a8.0\0\x01"), "Protocol"),
        ("a greeting without an end", packet(0, &[10; 300]), "Protocol"),
        ("an empty greeting", packet(0, &[]), "Protocol"),
        ("an unknown answer to authentication", asked(&[0x77]), "Protocol"),
        ("an empty answer to authentication", asked(&[]), "Protocol"),
        (
            "a key that is none",
            [greeting_of("caching_sha2_password", CAPABILITIES), packet(2, b"\x01-----BEGIN PUBLIC KEY-----")].concat(),
            "Protocol",
        ),
        ("HTTP, whose first bytes are a length", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "Connect"),
        ("a table that is missing", after_start(&packet(1, &error(1146, "no"))), "Sql"),
        ("an error of a byte", after_start(&packet(1, &[0xff])), "Protocol"),
        ("a deadlock", after_prepared(&packet(1, &error(1213, "no"))), "Deadlock"),
        ("a lock that takes too long", after_prepared(&packet(1, &error(1205, "no"))), "LockTimeout"),
        ("an empty answer to a statement", after_prepared(&packet(1, &[])), "Protocol"),
        ("a file of the client's", after_prepared(&packet(1, b"\xfb/etc/passwd")), "Protocol"),
        ("a packet of 16 MB", after_prepared(&[255, 255, 255, 1]), "Protocol"),
        ("2^64 columns", after_prepared(&packet(1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff")), "Closed"),
        ("a column that is cut off inside", after_prepared(&packets(&[&[1], b"\x03def"])), "Protocol"),
        ("a column with a name of 16 MB", after_prepared(&packets(&[&[1], b"\xfd\xff\xff\xff"])), "Protocol"),
        ("a row that is cut off inside", with_row(&ROW[..5]), "Protocol"),
        ("a text longer than its row", with_row(&[0, 0, 7, 0, 0, 0, 250, b'x']), "Protocol"),
        ("a text of 2^64 bytes", with_row(b"\0\0\x07\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff"), "Protocol"),
        ("a text of no length", with_row(b"\0\0\x07\0\0\0\xfb"), "Protocol"),
        ("a row without its bitmap", with_row(&[0]), "Protocol"),
        ("an end that is cut off", after_prepared(&packets(&[&[1], &column("a", LONG), &END, &[0xfe]])), "Protocol"),
        ("an error among rows", after_prepared(&packets(&[&[1], &column("a", LONG), &END, &error(1317, "no")])), "Sql"),
        ("a parameter less", [start(), packets(&[&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])].concat(), "Sql"),
        ("a statement that is cut off", after_start(&packets(&[&[0, 1, 0]])), "Protocol"),
    ]
}

fn sends(bytes: &[u8], then: impl IntoIterator<Item = Act>) -> Vec<Act> {
    std::iter::once(Act::Send(bytes.to_vec())).chain(then).collect()
}

#[test]
fn a_session_has_one_end_whatever_the_server_sends() {
    let alone = alone();
    let of = |(name, bytes, end): (&str, Vec<u8>, &'static str)| Case::new(name, sends(&bytes, []), end);
    let mut cases: Vec<Case> = sessions().into_iter().map(of).collect();
    let whole = session();
    let tiny = [&[0, 0][..], &5e-324_f64.to_le_bytes(), &5e-324_f64.to_le_bytes()].concat();
    let doubles = {
        let [a, b] = [column("a", DOUBLE), column("b", DOUBLE)];
        packets(&[&[2], &a, &b, &END])
    };
    cases.extend([
        Case::new("nothing", vec![], "Connect"),
        Case::new("silence", vec![Act::Hold], "Timeout"),
        Case::new("a reset", vec![Act::Reset], "Connect"),
        Case::new("a reset after start-up", sends(&start(), [asked(), Act::Reset]), "Closed"),
        Case::new("byte by byte", vec![Act::Drip(whole.clone())], FINE),
        Case::new(
            "an answer of 65 MiB",
            sends(&[start(), prepared(), doubles.clone(), packet(1, &vec![0; 1 << 20]).repeat(65)].concat(), []),
            "Protocol",
        )
        .keeping(256),
        Case::new(
            "doubles that are long as text",
            sends(&[start(), prepared(), doubles, packet(1, &tiny).repeat(500_000)].concat(), []),
            "Protocol",
        )
        .keeping(256),
        Case::new(
            "columns without an end",
            sends(
                &[
                    start(),
                    prepared(),
                    packet(1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x0f"),
                    packet(1, &column("a", LONG)).repeat(3_000_000),
                ]
                .concat(),
                [],
            ),
            "Protocol",
        )
        .keeping(256),
    ]);
    let beginning = start().len();
    cases.extend(cuts("start-up", &[], &whole, (1..beginning).step_by(7), &[], "Connect"));
    cases.extend(cuts("a session", &[], &whole, (beginning..whole.len()).step_by(7), &[], "Closed"));
    cases.extend(cuts("a session that stops", &[], &whole, (1..whole.len()).step_by(41), &[Act::Hold], "Timeout"));
    hold(&alone, &cases, mysql);
}
