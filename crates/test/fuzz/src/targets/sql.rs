//! The protocols of databases. Their clients block, so a thread sends the input as a server.

use super::chosen;
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_model::storage::Secret;
use plimsoll_sql::{CallLimits, Connection, Rows, SqlError, TextRows, Value};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Far longer than anything takes: the input ends, and with it every call.
const LONG: Duration = Duration::from_secs(60);

/// The most bytes of all cells of an answer, for a byte of the input: a replaced byte takes three, a double in words up to
/// 330 for eight.
const GROWTH: usize = 50;

/// Reads the input as all that a PostgreSQL ever sends.
pub(super) fn postgresql(input: &[u8]) {
    converse(Engine::Postgresql, input);
}

/// Reads the input as all that a MySQL or MariaDB ever sends.
pub(super) fn mysql(input: &[u8]) {
    converse(Engine::Mysql, input);
}

fn converse(engine: Engine, input: &[u8]) {
    let (way, bytes) = chosen(input);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("plimsoll-fuzz-{}-{number}", std::process::id()));
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().expect("the client connects");
            std::fs::remove_file(&path).expect("the socket is there");
            send(stream, bytes);
        });
        let _ = client(engine, &path, way & 1 != 0, bytes.len());
    });
}

/// Sends everything, then waits until the client has gone: bytes that it sends must not break the connection.
fn send(mut stream: UnixStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
}

/// Goes through everything that a client can do, up to its first error.
fn client(engine: Engine, path: &Path, with_password: bool, sent: usize) -> Result<(), SqlError> {
    let endpoint = Endpoint {
        engine,
        address: Address::Unix(path.to_owned()),
        user: "tester".to_owned(),
        password: with_password.then(|| Secret("secret".to_owned())),
        database: "test".to_owned(),
    };
    let mut connection = Connection::open(&endpoint, CallLimits::timeout(LONG))?;
    let _ = (connection.version(), connection.session());
    let none = connection.prepare("SELECT 1")?;
    check_rows(&connection.execute(none, &[])?, sent);
    check_text(&connection.query("SELECT 1")?, sent);
    connection.batch("BEGIN")?;
    let one = connection.prepare("SELECT ?")?;
    for value in [Value::Int(7), Value::Text("a"), Value::Null] {
        check_rows(&connection.execute(one, &[value])?, sent);
    }
    check_text(&connection.query("SELECT 1")?, sent);
    Ok(())
}

fn check_rows(rows: &Rows<'_>, sent: usize) {
    let mut bytes = 0;
    for row in 0..rows.len().min(10_000) {
        for column in 0.. {
            let (text, number) = (rows.text(row, column), rows.decimal(row, column, 2));
            bytes += text.as_ref().ok().copied().flatten().map_or(0, str::len);
            if text.is_err() && number.is_err() {
                break;
            }
        }
    }
    assert!(bytes <= GROWTH * sent, "expected at most {GROWTH} bytes for each of {sent}, found {bytes}");
}

fn check_text(rows: &TextRows, sent: usize) {
    let cells = rows.rows.iter().flatten().flatten();
    let bytes: usize = cells.chain(&rows.columns).map(String::len).sum();
    assert!(bytes <= GROWTH * sent, "expected at most {GROWTH} bytes for each of {sent}, found {bytes}");
}
