//! The driver against a real server, and against one that breaks the rules.

mod script;

use super::*;
use plimsoll_model::record::{Outcome, Part};
use plimsoll_model::storage::{Credentials, KeyPair, Payload, Secret, Store as StoreSpec};
use plimsoll_model::workload::{Target, Tls};
use plimsoll_testkit::s3::{ACCESS_KEY, SECRET_KEY, Server};
use script::{Exchange, Script, Then};
use std::path::{Path, PathBuf};

const BUCKET: &str = "bench-bucket";
const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

fn settings(address: SocketAddr) -> S3 {
    S3 {
        endpoint: Target { host: address.ip().to_string(), port: address.port(), tls: None },
        bucket: BUCKET.to_owned(),
        region: "us-east-1".to_owned(),
        style: BucketStyle::Path,
        credentials: keys(ACCESS_KEY, SECRET_KEY),
        upload: Upload::Single,
        part_size: 5 * MIB,
        range: None,
        signed_payload: false,
        retries: 0,
    }
}

fn keys(access_key: &str, secret: &str) -> Credentials {
    Credentials::Generated(KeyPair { access_key: access_key.to_owned(), secret: Secret(secret.to_owned()) })
}

fn storage(s3: &S3, size: u64) -> Storage {
    Storage {
        name: "bucket".to_owned(),
        store: StoreSpec::S3(Box::new(s3.clone())),
        mode: Mode::App,
        sync_directory: true,
        payload: Payload::Random,
        size,
        block: 256 << 10,
        objects: 4,
        overwrite: false,
        verify: true,
        actions: Vec::new(),
        steps: Vec::new(),
    }
}

fn content() -> Arc<Content> {
    Arc::new(Content::new(Payload::Random, 256 << 10, 1))
}

fn store(s3: &S3, size: u64) -> S3Store {
    store_within(s3, size, PATIENCE)
}

fn store_within(s3: &S3, size: u64, timeout: Duration) -> S3Store {
    let address = SocketAddr::new("127.0.0.1".parse().expect("an address"), s3.endpoint.port);
    let tls = s3.endpoint.tls.as_ref().map(|tls| plimsoll_engine::tls::configure(&s3.endpoint, tls, &[b"http/1.1"]));
    let tls = tls.transpose().expect("the authority can be read");
    S3Store::new(&storage(s3, size), s3, address, tls, timeout, content()).expect("the settings fit")
}

fn object(number: u64, size: u64) -> Object {
    Object { name: format!("object-{number}"), number, size }
}

/// What becomes of one call, and of each of its requests.
fn call(work: impl FnOnce(&mut Call) -> Result<(), Failure>) -> (Result<(), Failure>, Vec<Outcome>) {
    let mut call = Call::untimed(PATIENCE);
    let result = work(&mut call);
    (result, call.outcomes(Part::Subrequest))
}

/// A bucket on a real server.
struct Bucket {
    _server: Server,
    address: SocketAddr,
    directory: tempfile::TempDir,
    ca: Option<PathBuf>,
}

impl Bucket {
    fn start(begin: impl FnOnce(&Path) -> std::io::Result<Server>) -> Bucket {
        let directory = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(directory.path().join("served").join(BUCKET)).expect("a bucket");
        let server = begin(&directory.path().join("served")).expect("a server");
        let ca = server.ca_pem().map(|pem| {
            let file = directory.path().join("ca.pem");
            std::fs::write(&file, pem).expect("a file");
            file
        });
        Bucket { address: server.address(), _server: server, directory, ca }
    }

    fn settings(&self) -> S3 {
        settings(self.address)
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.path().join("served").join(BUCKET).join(key)
    }

    /// The files of the bucket, and those of unfinished uploads beside it.
    fn files(&self) -> Vec<String> {
        let root = self.directory.path().join("served");
        let beside = std::fs::read_dir(&root).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> = beside.filter(|path| path.to_string_lossy().contains("upload")).collect();
        let mut folders = vec![root.join(BUCKET)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.iter().map(|path| path.strip_prefix(&root).expect("below it").display().to_string()).collect()
    }
}

/// Writes, reads, lists and deletes, and leaves nothing; the number of requests of each.
fn round_trip(bucket: &Bucket, s3: &S3, size: u64) -> [usize; 4] {
    let store = store(s3, size);
    store.prepare().expect("the bucket is there");
    let mut session = store.session(3).expect("the server takes connections");
    let (first, second) = (object(1, size), object(2, size));
    let (written, writes) = call(|call| session.write(&first, call));
    assert_eq!(written, Ok(()));
    session.write(&second, &mut Call::untimed(PATIENCE)).expect("it can be written");

    let path = bucket.file(&format!("{}/user-3/object-1", store.bucket.folder));
    let bytes = std::fs::read(path).expect("the server keeps it as a file");
    assert_eq!((bytes.len() as u64, content().first_difference(1, 0, &bytes)), (size, None));

    let (read, reads) = call(|call| session.read(&first, call));
    assert_eq!(read, Ok(()));
    let (listed, lists) = call(|call| session.list(&(2..=2), call));
    assert_eq!(listed, Ok(()));
    let (deleted, deletes) = call(|call| session.delete(&first, call));
    assert_eq!(deleted, Ok(()));
    let (listed, _) = call(|call| session.list(&(2..=2), call));
    assert_eq!(listed.map_err(|failure| failure.kind), Err(ErrorKind::Check));
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
    [writes, reads, lists, deletes].map(|outcomes| {
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Ok));
        outcomes.len()
    })
}

#[test]
fn objects_come_back_as_they_were_written_and_nothing_is_left() {
    let bucket = Bucket::start(Server::start);
    std::fs::write(bucket.file("not ours"), "stays").expect("a file");
    let parts = |at_once| S3 { upload: Upload::Multipart(at_once), ..bucket.settings() };
    let ranges = S3 { range: Some(MIB), ..bucket.settings() };
    for (s3, size, writes, reads) in [
        (bucket.settings(), 0, 1, 1),
        (bucket.settings(), 1, 1, 1),
        (bucket.settings(), 100_000, 1, 1),
        (bucket.settings(), 12 * MIB + 1, 1, 1),
        (ranges.clone(), 0, 1, 1),
        (ranges.clone(), MIB, 1, 1),
        (ranges, 3 * MIB + 7, 1, 4),
        (parts(1), 100_000, 3, 1),
        (parts(1), 12 * MIB, 5, 1),
        (parts(3), 12 * MIB + 5, 5, 1),
        (parts(8), 10 * MIB, 4, 1),
    ] {
        for signed_payload in [false, true] {
            let s3 = S3 { signed_payload, ..s3.clone() };
            assert_eq!(round_trip(&bucket, &s3, size), [writes, reads, 1, 1], "{size} bytes with {s3:?}");
        }
    }
    assert_eq!(bucket.files(), [format!("{BUCKET}/not ours")]);
}

#[test]
fn objects_cross_tls_whole() {
    let bucket = Bucket::start(Server::start_tls);
    let tls = Tls { ca: bucket.ca.clone(), server_name: None, insecure: false };
    let mut s3 = bucket.settings();
    s3.endpoint.tls = Some(tls);
    assert_eq!(round_trip(&bucket, &s3, 3 * MIB + 1), [1, 1, 1, 1]);
    s3.upload = Upload::Multipart(2);
    assert_eq!(round_trip(&bucket, &s3, 11 * MIB), [5, 1, 1, 1]);

    s3.endpoint.tls = Some(Tls { ca: bucket.ca.clone(), server_name: Some("elsewhere".to_owned()), insecure: false });
    assert_eq!(store(&s3, 1).prepare().unwrap_err().kind, ErrorKind::Tls);
}

#[test]
fn whatever_crosses_the_socket_is_counted() {
    let bucket = Bucket::start(Server::start);
    let store = store(&bucket.settings(), 100_000);
    let mut session = store.session(0).expect("the server takes connections");
    let mut write = Call::untimed(PATIENCE);
    session.write(&object(1, 100_000), &mut write).expect("it can be written");
    let mut read = Call::untimed(PATIENCE);
    session.read(&object(1, 100_000), &mut read).expect("it can be read");
    for (large, small) in [write.bytes(), (read.bytes().1, read.bytes().0)] {
        assert!((100_100..102_000).contains(&large) && (100..2_000).contains(&small), "{large} and {small}");
    }
    assert!(write.has_first_byte() && read.has_first_byte());
    assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
}

#[test]
fn wrong_keys_and_missing_buckets_are_named_before_the_load() {
    let bucket = Bucket::start(Server::start);
    let secret = "not-the-secret-of-this-key";
    let missing = S3 { bucket: "no-such-bucket".to_owned(), ..bucket.settings() };
    for (s3, kind, text) in [
        (S3 { credentials: keys(ACCESS_KEY, secret), ..bucket.settings() }, ErrorKind::Denied, "SignatureDoesNotMatch"),
        (S3 { credentials: keys("nobody", secret), ..bucket.settings() }, ErrorKind::Denied, "check the keys"),
        (S3 { credentials: Credentials::Anonymous, ..bucket.settings() }, ErrorKind::Denied, "AccessDenied"),
        (missing, ErrorKind::Status, "NoSuchBucket"),
    ] {
        let store = store(&s3, 10);
        let failure = store.prepare().unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.detail);
        assert!(failure.detail.contains(text), "{}", failure.detail);
        let mut session = store.session(0).expect("the server takes connections");
        let failed = session.read(&object(1, 10), &mut Call::untimed(PATIENCE)).unwrap_err();
        let mut facts = StorageFacts::default();
        store.describe(&mut facts);
        let texts = format!("{failure:?} {failed:?} {:?} {facts:?}", store.clean_up(&Cleaning::default()));
        assert!(!texts.contains(secret) && !texts.contains(SECRET_KEY) && !texts.contains("Signature="), "{texts}");
    }
}

#[test]
fn facts_say_how_objects_move() {
    let address = "127.0.0.1:9000".parse().expect("an address");
    let s3 = S3 { upload: Upload::Multipart(4), part_size: 8 * MIB, retries: 2, ..settings(address) };
    let store = store(&s3, 100 * MIB);
    let mut facts = StorageFacts::default();
    store.describe(&mut facts);
    assert_eq!(facts.kind, "S3");
    assert_eq!(facts.place, format!("http://127.0.0.1:9000/{BUCKET}/{}", store.bucket.folder));
    assert!(facts.on_this_machine && !facts.page_cache);
    assert!(facts.details.contains(&"written in parts of 8 MiB, 4 at a time".to_owned()), "{:?}", facts.details);
}

#[test]
fn the_bucket_stands_in_the_host_where_the_study_says_so() {
    let script = Script::start(|exchange| exchange.answer("200 OK", "", b""));
    let mut s3 = S3 { style: BucketStyle::VirtualHost, ..settings(script.address) };
    s3.endpoint.host = "storage.test".to_owned();
    let store = store(&s3, 10);
    let mut session = store.session(0).expect("the server takes connections");
    session.write(&object(1, 10), &mut Call::untimed(PATIENCE)).expect("it can be written");
    let head = &script.heads()[0];
    assert!(head.starts_with(&format!("PUT /{}/user-0/object-1 HTTP/1.1\r\n", store.bucket.folder)), "{head}");
    assert!(head.contains(&format!("\r\nhost: {BUCKET}.storage.test:{}\r\n", script.address.port())), "{head}");
    assert!(head.contains("\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"), "{head}");
}

#[test]
fn settings_that_no_server_takes_are_refused_at_once() {
    let address = "127.0.0.1:9000".parse().expect("an address");
    let refusal = |s3: &S3, size| S3Store::new(&storage(s3, size), s3, address, None, PATIENCE, content()).err();
    let parts = |part_size| S3 { upload: Upload::Multipart(1), part_size, ..settings(address) };
    assert_eq!(refusal(&parts(MIB), MIB), None, "a single part may be small");
    assert!(refusal(&parts(MIB), 2 * MIB).expect("parts are too small").contains("at least 5242880 bytes"));
    let fitting = refusal(&parts(5 * MIB), 50_001 * 5 * MIB).expect("there are too many parts");
    assert!(fitting.contains("parts of 26214925 bytes or more would fit"), "{fitting}");
    let host = S3 { style: BucketStyle::VirtualHost, ..settings(address) };
    assert!(refusal(&host, 1).expect("an address has no room for a bucket").contains("127.0.0.1"));
}

/// The write of a small object against a script, and how often the server was asked.
fn write_against(
    retries: u32,
    play: impl Fn(&mut Exchange<'_>) -> Then + Sync + Send + 'static,
) -> (Result<(), Failure>, Vec<Outcome>) {
    let script = Script::start(play);
    let store = store(&S3 { retries, ..settings(script.address) }, 1000);
    let mut session = store.session(0).expect("the server takes connections");
    let (result, outcomes) = call(|call| session.write(&object(1, 1000), call));
    assert_eq!(script.heads().len(), outcomes.len(), "every attempt is recorded");
    (result, outcomes)
}

const BUSY: &[u8] = b"<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Please wait</Message></Error>";

#[test]
fn a_busy_server_is_asked_again_only_if_the_study_says_so() {
    let failed = Outcome::Failed(ErrorKind::Status);
    let busy_once = |exchange: &mut Exchange<'_>| match exchange.number {
        0 => exchange.answer("503 Busy", "Retry-After: 0\r\n", BUSY),
        _ => exchange.answer("200 OK", "", b""),
    };
    let (result, outcomes) = write_against(0, busy_once);
    let failure = result.unwrap_err();
    assert_eq!((failure.kind, outcomes), (ErrorKind::Status, vec![failed]));
    assert!(
        failure.detail.contains("status 503, SlowDown: Please wait; the server asks to wait 0 s"),
        "{}",
        failure.detail
    );
    assert_eq!(write_against(1, busy_once), (Ok(()), vec![failed, Outcome::Ok]));
    let always = |exchange: &mut Exchange<'_>| exchange.answer("500 Internal", "", b"no XML");
    assert_eq!(write_against(2, always).1, [failed; 3]);
    let missing = |exchange: &mut Exchange<'_>| exchange.answer("404 Not Found", "", b"");
    assert_eq!(write_against(2, missing).1, [failed], "what is not there will not be there");
}

#[test]
fn a_wait_that_the_server_asks_for_ends_with_the_call() {
    let script = Script::start(|exchange| exchange.answer("503 Busy", "Retry-After: 3600\r\n", BUSY));
    let store = store(&S3 { retries: 1, ..settings(script.address) }, 10);
    let mut session = store.session(0).expect("the server takes connections");
    let failure = session.write(&object(1, 10), &mut Call::untimed(Duration::from_secs(3))).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert!(failure.detail.contains("SlowDown"), "{}", failure.detail);
}

#[test]
fn lost_connections_are_named() {
    let closed = Outcome::Failed(ErrorKind::Closed);
    let (result, outcomes) = write_against(0, |_| Then::Close);
    assert_eq!((result.unwrap_err().kind, outcomes), (ErrorKind::Closed, vec![closed]));
    let first_is_lost = |exchange: &mut Exchange<'_>| match exchange.number {
        0 => Then::Close,
        _ => exchange.answer("200 OK", "", b""),
    };
    assert_eq!(write_against(1, first_is_lost), (Ok(()), vec![closed, Outcome::Ok]));

    // In the middle of an upload that is larger than all buffers on the way.
    let script = Script::start(|_| Then::Close);
    let store = store(&settings(script.address), 64 * MIB);
    let mut session = store.session(0).expect("the server takes connections");
    let (result, _) = call(|call| session.write(&object(1, 64 * MIB), call));
    assert_eq!(result.unwrap_err().kind, ErrorKind::Closed);
}

#[test]
fn an_answer_that_comes_before_the_upload_is_over_is_heard() {
    let script = Script::start(|exchange| {
        exchange.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        exchange.take_body();
        Then::Close
    });
    let store = store(&settings(script.address), 8 * MIB);
    let mut session = store.session(0).expect("the server takes connections");
    let (result, _) = call(|call| session.write(&object(1, 8 * MIB), call));
    assert_eq!(result.unwrap_err().kind, ErrorKind::Denied);
}

/// The read of an object of 1000 bytes from a server that answers with `answer` and hangs up.
fn read_of(s3: impl Fn(S3) -> S3, verify: bool, answer: Vec<u8>) -> Result<(), Failure> {
    let script = Script::start(move |exchange| {
        exchange.send(&answer);
        Then::Close
    });
    let s3 = s3(settings(script.address));
    let storage = Storage { verify, ..storage(&s3, 1000) };
    let store = S3Store::new(&storage, &s3, script.address, None, PATIENCE, content()).expect("the settings fit");
    let mut session = store.session(0).expect("the server takes connections");
    session.read(&object(1, 1000), &mut Call::untimed(PATIENCE))
}

#[test]
fn what_is_not_the_object_is_no_success() {
    let content = content();
    let bytes = content.slice(1, 0, 1000);
    let answer = |length: usize, body: &[u8]| {
        [format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes(), body].concat()
    };
    let mut changed = bytes.to_vec();
    changed[777] ^= 1;
    let longer = [bytes, b"x"].concat();
    let chunked = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3E8\r\n", bytes, b"\r\n0\r\n\r\n"].concat();
    let read = |answer: Vec<u8>| read_of(|s3| s3, true, answer);
    assert_eq!(read(answer(1000, bytes)), Ok(()));
    assert_eq!(read(chunked), Ok(()));
    for (answer, kind, text) in [
        (answer(1000, &bytes[..600]), ErrorKind::Closed, "ended after 600 of 1000 bytes"),
        (answer(999, &bytes[..999]), ErrorKind::Check, "expected 1000 bytes, found 999"),
        (answer(1001, &longer), ErrorKind::Check, "expected 1000 bytes, found more"),
        (answer(1000, &changed), ErrorKind::Check, "differs from what was written at byte 777"),
        (b"nonsense\r\n\r\n".to_vec(), ErrorKind::Protocol, "expected an HTTP/1.1 response"),
        (Vec::new(), ErrorKind::Closed, "before an answer came"),
    ] {
        let failure = read(answer).unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.detail);
        assert!(failure.detail.contains(text), "{}", failure.detail);
    }
    assert_eq!(read_of(|s3| s3, false, answer(1000, &changed)), Ok(()), "nobody asked to look");
    let whole = read_of(|s3| S3 { range: Some(1000), ..s3 }, true, answer(1000, bytes)).unwrap_err();
    assert!(whole.detail.contains("status 206"), "{}", whole.detail);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let script = Script::start(|exchange| {
        exchange.take_body();
        // Until the client hangs up.
        let _ = std::io::Read::read(exchange.stream, &mut [0]);
        Then::Close
    });
    let store = store_within(&settings(script.address), 10, Duration::from_millis(150));
    assert_eq!(store.prepare().unwrap_err().kind, ErrorKind::Timeout);
    let mut session = store.session(0).expect("the server takes connections");
    let failure = session.write(&object(1, 10), &mut Call::untimed(Duration::from_millis(150))).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert_eq!(store.clean_up(&Cleaning::default()).len(), 1, "what cannot be looked at is told");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let address = Script::start(|_| Then::Close).address;
    let store = store(&settings(address), 10);
    for failure in [store.prepare().err(), store.session(0).err()] {
        assert_eq!(failure.expect("nobody listens").kind, ErrorKind::Connect);
    }
}

#[test]
fn connections_are_kept_and_made_again_when_the_server_ends_them() {
    let kept = Script::start(|exchange| exchange.answer("200 OK", "", b""));
    let ended = Script::start(|exchange| {
        exchange.answer("200 OK", "", b"");
        Then::Close
    });
    for (script, connections) in [(kept, 1), (ended, 5)] {
        let store = store(&settings(script.address), 10);
        let mut session = store.session(0).expect("the server takes connections");
        for number in 0..5 {
            let (result, outcomes) = call(|call| session.write(&object(number, 10), call));
            assert_eq!((result, outcomes), (Ok(()), vec![Outcome::Ok]));
            // The end of the connection, if it ends, is on its way.
            std::thread::sleep(Duration::from_millis(if connections == 1 { 0 } else { 200 }));
        }
        assert_eq!(script.connections(), connections);
    }
}

const BEGUN: &[u8] =
    b"<InitiateMultipartUploadResult><UploadId>up &amp; away</UploadId></InitiateMultipartUploadResult>";

/// A server of uploads: `part` answers parts, `completion` their completion.
fn uploads(part: impl Fn(&mut Exchange<'_>) -> Then + Sync + Send + 'static, completion: &'static [u8]) -> Script {
    Script::start(move |exchange| {
        let is_begin = exchange.is("POST") && exchange.head.contains("?uploads=");
        match exchange.head.split(' ').next() {
            Some("POST") if is_begin => exchange.answer("200 OK", "", BEGUN),
            Some("POST") => exchange.answer("200 OK", "", completion),
            Some("PUT") => part(exchange),
            _ => exchange.answer("204 No Content", "", b""),
        }
    })
}

/// The methods of the requests, in order.
fn methods(script: &Script) -> String {
    let heads = script.heads();
    heads.iter().map(|head| head.split(' ').next().expect("a method")).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_upload_that_fails_is_aborted() {
    let tagged = |exchange: &mut Exchange<'_>| exchange.answer("200 OK", "ETag: \"tag\"\r\n", b"");
    let second_fails = move |exchange: &mut Exchange<'_>| match exchange.head.contains("partNumber=2&") {
        true => exchange.answer("500 Internal", "", b""),
        false => tagged(exchange),
    };
    let untagged = |exchange: &mut Exchange<'_>| exchange.answer("200 OK", "", b"");
    let error: &[u8] = b"<?xml version=\"1.0\"?>\n <Error><Code>InternalError</Code><Message>sorry</Message></Error>";
    for (script, kind, expected) in [
        (uploads(second_fails, b""), ErrorKind::Status, "POST PUT PUT DELETE"),
        (uploads(untagged, b""), ErrorKind::Protocol, "POST PUT DELETE"),
        (uploads(tagged, error), ErrorKind::Status, "POST PUT PUT PUT POST DELETE"),
    ] {
        let store = store(&S3 { upload: Upload::Multipart(1), ..settings(script.address) }, 15 * MIB);
        let mut session = store.session(0).expect("the server takes connections");
        let (result, _) = call(|call| session.write(&object(1, 15 * MIB), call));
        let failure = result.unwrap_err();
        assert_eq!((failure.kind, methods(&script).as_str()), (kind, expected), "{}", failure.detail);
        let last = script.heads().pop().expect("there are requests");
        assert!(last.contains("?uploadId=up%20%26%20away "), "{last}");
        assert!(store.bucket.open_uploads.lock().expect("nothing panics").is_empty());
    }
}

#[test]
fn an_upload_that_runs_out_of_time_is_aborted_with_the_trial() {
    let script = uploads(
        |exchange| {
            exchange.take_body();
            let _ = std::io::Read::read(exchange.stream, &mut [0]);
            Then::Close
        },
        b"",
    );
    let store = store(&S3 { upload: Upload::Multipart(2), ..settings(script.address) }, 10 * MIB);
    let mut session = store.session(0).expect("the server takes connections");
    let failure = session.write(&object(1, 10 * MIB), &mut Call::untimed(Duration::from_secs(3))).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert_eq!(store.bucket.open_uploads.lock().expect("nothing panics").len(), 1);
    store.clean_up(&Cleaning::default());
    assert!(methods(&script).contains("DELETE"), "{}", methods(&script));
}

/// A server that does not answer the first beginning of an upload. `listed` answers the list of uploads.
fn forgetful(listed: impl Fn(&mut Exchange<'_>) -> Then + Sync + Send + 'static) -> Script {
    Script::start(move |exchange| match exchange.head.split(' ').next() {
        Some("POST") if exchange.number == 0 => Then::Close,
        Some("POST") if exchange.head.contains("?uploads=") => exchange.answer("200 OK", "", BEGUN),
        Some("PUT") => exchange.answer("200 OK", "ETag: \"tag\"\r\n", b""),
        Some("GET") if exchange.head.contains("&uploads=") => listed(exchange),
        Some("GET") => exchange.answer("200 OK", "", b"<ListBucketResult/>"),
        _ => exchange.answer("204 No Content", "", b""),
    })
}

#[test]
fn an_upload_whose_beginning_was_not_answered_is_found_and_aborted_with_the_trial() {
    // A retry begins another upload, which comes to its end.
    for (retries, expected) in [(0, "POST GET DELETE GET GET"), (1, "POST POST PUT POST GET DELETE GET GET")] {
        let script = forgetful(|exchange| {
            let prefix = exchange.head.split("prefix=").nth(1).and_then(|rest| rest.split('&').next());
            let key = prefix.expect("a prefix").replace("%2F", "/");
            let upload = |key: &str, id: &str| format!("<Upload><Key>{key}</Key><UploadId>{id}</UploadId></Upload>");
            let uploads = upload(&key, "lost") + &upload(&format!("{key}0"), "another");
            let text = format!("<ListMultipartUploadsResult xmlns=\"x\">{uploads}</ListMultipartUploadsResult>");
            exchange.answer("200 OK", "", text.as_bytes())
        });
        let store = store(&S3 { upload: Upload::Multipart(1), retries, ..settings(script.address) }, 10);
        let mut session = store.session(0).expect("the server takes connections");
        let (result, _) = call(|call| session.write(&object(1, 10), call));
        assert_eq!(result.map_err(|failure| failure.kind), if retries == 0 { Err(ErrorKind::Closed) } else { Ok(()) });
        assert_eq!(store.clean_up(&Cleaning::default()), Vec::<String>::new());
        assert_eq!(methods(&script), expected);
        let heads = script.heads();
        let aborted = heads.iter().find(|head| head.starts_with("DELETE")).expect("it aborts one");
        let expected = format!("/{BUCKET}/{}/user-0/object-1?uploadId=lost ", store.bucket.folder);
        assert!(aborted.contains(&expected), "{aborted}");
    }
}

#[test]
fn an_upload_that_no_list_tells_of_is_told() {
    let script = forgetful(|exchange| exchange.answer("501 Not Implemented", "", b""));
    let store = store(&S3 { upload: Upload::Multipart(1), ..settings(script.address) }, 10);
    let mut session = store.session(0).expect("the server takes connections");
    session.write(&object(1, 10), &mut Call::untimed(PATIENCE)).expect_err("its beginning is not answered");
    let left = store.clean_up(&Cleaning::default());
    let [told] = left.as_slice() else { panic!("{left:?}") };
    let expected = format!("perhaps unfinished uploads below {}/: GET /{BUCKET}: ", store.bucket.folder);
    assert!(told.starts_with(&expected) && told.contains("status 501"), "{told}");
}

#[test]
fn lists_are_followed_to_their_last_page() {
    let script = Script::start(|exchange| {
        let page = |keys: &str, rest: &str| format!("<ListBucketResult xmlns=\"x\">{keys}{rest}</ListBucketResult>");
        let key = |key: &str| format!("<Contents><Key>{key}</Key></Contents>");
        let text = match exchange.head.contains("continuation-token=a%2Fb%3D") {
            false => page(
                &(key("one") + &key("two")),
                "<IsTruncated>true</IsTruncated><NextContinuationToken>a/b=</NextContinuationToken>",
            ),
            true => page(&key("three"), "<IsTruncated>false</IsTruncated>"),
        };
        exchange.answer("200 OK", "", text.as_bytes())
    });
    let store = store(&settings(script.address), 10);
    let mut session = store.session(0).expect("the server takes connections");
    assert_eq!(call(|call| session.list(&(3..=3), call)), (Ok(()), vec![Outcome::Ok; 2]));
    let failure = call(|call| session.list(&(2..=2), call)).0.unwrap_err();
    assert!(failure.detail.contains("expected 2 objects") && failure.detail.contains("found 3"), "{}", failure.detail);
}
