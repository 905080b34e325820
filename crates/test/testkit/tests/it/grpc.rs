//! The counter, asked with h2's client.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use plimsoll_demo::serve;
use plimsoll_testkit::grpc::{Counter, Mode, ReplyMode};
use prost::Message;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const INCREMENT: &str = "/counter.incrementCounter/increment";

#[derive(Clone, PartialEq, Message)]
struct IncrementBy {
    #[prost(int32, tag = "1")]
    value: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "1")]
    message: String,
}

/// What came back: the messages, and the headers or trailers with the status.
struct Reply {
    messages: Vec<u8>,
    status: HeaderMap,
    trailers_only: bool,
}

impl Reply {
    fn code(&self) -> &str {
        self.status["grpc-status"].to_str().unwrap()
    }

    fn text(&self) -> String {
        Status::decode(&self.messages[5..]).unwrap().message
    }

    fn number(&self) -> u64 {
        self.text().strip_prefix("Incremented value is ").unwrap().parse().unwrap()
    }
}

/// Runs `client` with a connection to `address`.
fn connected<T, F: Future<Output = T>>(address: SocketAddr, client: impl FnOnce(SendRequest<Bytes>) -> F) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        // Hundreds of small replies that arrive together are more than h2 accepts unasked.
        let mut builder = h2::client::Builder::new();
        let (sender, connection) = builder.data_frame_budget(1 << 24).handshake(stream).await.unwrap();
        let _driving = tokio::spawn(connection);
        client(sender).await
    })
}

async fn call(sender: SendRequest<Bytes>, path: &str, message: &impl Message) -> Result<Reply, h2::Error> {
    let request = Request::post(format!("http://here{path}")).header("content-type", "application/grpc");
    let request = request.header("te", "trailers").header("x-mine", "1").body(()).unwrap();
    let mut sender = sender.ready().await?;
    let (response, mut body) = sender.send_request(request, false)?;
    let encoded = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend(u32::try_from(encoded.len()).unwrap().to_be_bytes());
    framed.extend(encoded);
    body.send_data(framed.into(), true)?;
    let response = response.await?;
    let trailers_only = response.headers().contains_key("grpc-status");
    let headers = response.headers().clone();
    let mut stream = response.into_body();
    let mut messages = Vec::new();
    while let Some(part) = stream.data().await {
        messages.extend(part?);
    }
    let status = stream.trailers().await?.unwrap_or(headers);
    Ok(Reply { messages, status, trailers_only })
}

async fn increment(sender: &SendRequest<Bytes>, value: i32) -> Result<Reply, h2::Error> {
    call(sender.clone(), INCREMENT, &IncrementBy { value }).await
}

/// The numbers that `calls` calls get which are under way at the same time.
async fn numbers_of_concurrent(sender: SendRequest<Bytes>, calls: usize) -> Vec<u64> {
    let tasks: Vec<_> = (0..calls)
        .map(|_| {
            let sender = sender.clone();
            tokio::spawn(async move { increment(&sender, 1).await.unwrap().number() })
        })
        .collect();
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.push(task.await.unwrap());
    }
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_correct_counter_gives_each_number_once() {
    for (mode, workers) in [(Mode::Mutex, 1), (Mode::Mutex, 2), (Mode::InputQ, 1), (Mode::InputQ, 2)] {
        let counter = Counter::builder(mode).workers(workers).start().unwrap();
        let numbers = connected(counter.address(), |sender| numbers_of_concurrent(sender, 300));
        assert_eq!(numbers, (1..=300).collect::<Vec<u64>>(), "{mode} with {workers} workers");
        assert_eq!((counter.record().connections(), counter.record().requests()), (1, 300));
    }
}

#[test]
fn a_counter_serves_in_the_foreground_too() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // It never returns: the thread ends with the tests.
    let _serving = std::thread::spawn(move || serve(free, Mode::InputQ, 2));
    let patience = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(free).is_err() {
        assert!(Instant::now() < patience, "nothing listens at {free}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let numbers = connected(free, |sender| numbers_of_concurrent(sender, 50));
    assert_eq!(numbers, (1..=50).collect::<Vec<u64>>());
    assert!(serve(free, Mode::Mutex, 1).is_err(), "the address is taken");
}

#[test]
fn the_racy_counter_gives_a_number_twice() {
    let counter = Counter::start(Mode::Racy).unwrap();
    let numbers = connected(counter.address(), |sender| numbers_of_concurrent(sender, 300));
    let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
    assert!(distinct.len() < numbers.len(), "300 calls at once got 300 different numbers");
}

#[test]
fn statuses_are_those_of_the_study() {
    let counter = Counter::start(Mode::Mutex).unwrap();
    connected(counter.address(), |sender| async move {
        let sum = increment(&sender, 41).await.unwrap();
        assert_eq!((sum.code(), sum.text().as_str(), sum.trailers_only), ("0", "Incremented value is 41", false));
        let nothing = increment(&sender, 0).await.unwrap();
        assert_eq!(nothing.number(), 41, "an empty message adds zero");
        let negative = increment(&sender, -1).await.unwrap();
        assert_eq!((negative.code(), negative.trailers_only), ("3", true));
        assert_eq!(negative.status["grpc-message"], "Value cannot be negative");
        let unknown = call(sender.clone(), "/counter.incrementCounter/decrement", &IncrementBy { value: 1 }).await;
        assert_eq!(unknown.unwrap().code(), "12");
        assert_eq!(increment(&sender, 1).await.unwrap().number(), 42, "refused calls do not count");
    });
    let first = &counter.record().first_requests()[0];
    assert_eq!((first.path.as_str(), first.header("x-mine")), (INCREMENT, Some("1")));
    assert_eq!(first.body, [0, 0, 0, 0, 2, 8, 41]);
}

#[test]
fn answers_come_late_wrong_or_never_as_asked() {
    let delay = Duration::from_millis(30);
    let late = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::After(delay)).start().unwrap();
    let begin = Instant::now();
    connected(late.address(), |sender| async move { increment(&sender, 1).await.unwrap() });
    assert!(begin.elapsed() >= delay, "{:?}", begin.elapsed());

    let refusal = ReplyMode::Refuse { code: 14, message: "go away".to_owned() };
    let refusing = Counter::builder(Mode::Mutex).reply_mode(refusal).start().unwrap();
    let reply = connected(refusing.address(), |sender| async move { increment(&sender, 1).await.unwrap() });
    assert_eq!((reply.code(), reply.trailers_only), ("14", true));

    let silent = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Never).start().unwrap();
    let waited = connected(silent.address(), |sender| async move {
        tokio::time::timeout(Duration::from_millis(100), increment(&sender, 1)).await.is_err()
    });
    assert!(waited);
}

#[test]
fn a_connection_ends_after_the_calls_it_was_given() {
    let counter = Counter::builder(Mode::Mutex).goaway_after(3).start().unwrap();
    connected(counter.address(), |sender| async move {
        for expected in 1..=3 {
            assert_eq!(increment(&sender, 1).await.unwrap().number(), expected);
        }
        let mut answered = 0;
        while increment(&sender, 1).await.is_ok() {
            answered += 1;
            assert!(answered < 1000, "the connection never ended");
        }
    });
}

#[test]
fn a_limit_of_streams_is_announced() {
    let counter = Counter::builder(Mode::Mutex).max_concurrent_streams(2).start().unwrap();
    connected(counter.address(), |sender| async move {
        increment(&sender, 1).await.unwrap();
        assert_eq!(sender.current_max_send_streams(), 2);
    });
}

#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    services: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Told {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<Fault>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes, repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Fault {
    #[prost(int32, tag = "1")]
    code: i32,
}

#[test]
fn reflection_tells_the_service() {
    const PATH: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let counter = Counter::start(Mode::Mutex).unwrap();
    let ask = |question: Question| {
        let reply = connected(counter.address(), |sender| async move { call(sender, PATH, &question).await.unwrap() });
        assert_eq!(reply.code(), "0");
        Told::decode(&reply.messages[5..]).unwrap()
    };
    let list = ask(Question { symbol: None, services: Some(String::new()) }).services.unwrap();
    assert!(list.services.iter().any(|service| service.message == "counter.incrementCounter"), "{list:?}");

    let symbol = |name: &str| ask(Question { symbol: Some(name.to_owned()), services: None });
    let files = symbol("counter.incrementCounter").files.unwrap().files;
    let text = String::from_utf8_lossy(&files[0]).into_owned();
    assert!(text.contains("counter.proto") && text.contains("incrementBy"), "{text}");
    assert_eq!(symbol("counter.nothing").error.unwrap().code, 5);
}

/// Runs `client` over TLS to `address`, trusting the authority `ca_pem` for `name` alone.
pub(crate) fn over_tls<T>(
    address: SocketAddr,
    ca_pem: &str,
    name: &str,
    protocols: &[&[u8]],
    client: impl FnOnce(StreamOwned<ClientConnection, TcpStream>) -> T,
) -> io::Result<T> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(address)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(client(StreamOwned::new(connection, stream)))
}

#[test]
fn tls_agrees_on_h2() {
    let counter = Counter::builder(Mode::Mutex).tls().start().unwrap();
    let agreed = over_tls(counter.address(), counter.ca_pem().unwrap(), "localhost", &[b"h2"], |stream| {
        stream.conn.alpn_protocol().map(<[u8]>::to_vec)
    });
    assert_eq!(agreed.unwrap(), Some(b"h2".to_vec()));
}
