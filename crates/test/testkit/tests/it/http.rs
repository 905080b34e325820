//! The HTTP server, asked over plain sockets.

use plimsoll_testkit::http::{Behaviour, Reply, Server, Service};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Sends `request` on a new connection and reads until the server closes it.
fn last_exchange(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

/// A connection that is kept, and the size of the replies to expect on it.
struct Kept {
    stream: TcpStream,
    reply: usize,
}

impl Kept {
    /// A connection to a server that replies with two bytes of body.
    fn to(address: SocketAddr) -> Kept {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Kept { stream, reply: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab".len() }
    }

    fn ask(&mut self) {
        self.stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut reply = vec![0; self.reply];
        self.stream.read_exact(&mut reply).unwrap();
        String::from_utf8(reply).unwrap()
    }

    fn exchange(&mut self) -> Duration {
        let begin = Instant::now();
        self.ask();
        assert!(self.hear().ends_with("\r\n\r\nab"));
        begin.elapsed()
    }
}

#[test]
fn every_reply_is_sent_as_described() {
    let reply = || Reply::ok("hello");
    let server = Server::builder(Behaviour::at_once(reply().closing()))
        .at("/chunked", Behaviour::at_once(reply().chunked(3).closing()))
        .at("/close", Behaviour::at_once(reply().until_close()))
        .at("/cut", Behaviour::at_once(reply().cut_after(2)))
        .at("/garbage", Behaviour::at_once(Reply::garbage("\0\r\nnothing")))
        .at("/none", Behaviour::at_once(Reply::of_size(0).status(204).closing()))
        .at("/interim", Behaviour::at_once(reply().after_interim(2).closing()))
        .at("/missing", Behaviour::at_once(reply().status(404).header("X-Why", "so").closing()))
        .start()
        .unwrap();
    let cases = [
        ("/", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
        (
            "/chunked?x=1",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ),
        ("/close", "HTTP/1.1 200 OK\r\n\r\nhello"),
        ("/cut", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"),
        ("/garbage", "\0\r\nnothing"),
        ("/none", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
        (
            "/interim",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        ),
        ("/missing", "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nX-Why: so\r\nConnection: close\r\n\r\nhello"),
    ];
    for (path, expected) in cases {
        let reply = last_exchange(server.address(), &format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n")).unwrap();
        assert_eq!(reply, expected, "GET {path}");
    }
    let head = last_exchange(server.address(), "HEAD / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    assert_eq!(head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
}

#[test]
fn what_was_asked_is_recorded() {
    let server = Server::start(Behaviour::at_once(Reply::of_size(2).closing())).unwrap();
    last_exchange(server.address(), "POST /a?b HTTP/1.1\r\nX-One: 1\r\ncontent-length: 4\r\n\r\nbody").unwrap();
    last_exchange(server.address(), "GET /b HTTP/1.1\r\n\r\n").unwrap();
    let refusal = last_exchange(server.address(), "\u{1}\u{2}\r\n\r\n").unwrap();
    assert!(refusal.starts_with("HTTP/1.1 400 "), "{refusal}");

    let record = server.record();
    assert_eq!((record.connections(), record.requests(), record.refused()), (3, 2, 1));
    let first = &record.first_requests()[0];
    assert_eq!((first.method.as_str(), first.path.as_str(), first.connection), ("POST", "/a?b", 1));
    assert_eq!((first.header("x-one"), first.body.as_slice()), (Some("1"), b"body".as_slice()));
}

#[test]
fn a_connection_is_kept_and_delays_are_kept_to() {
    let delay = Duration::from_millis(15);
    let server = Server::start(Behaviour::after(delay, Reply::of_size(2))).unwrap();
    let mut client = Kept::to(server.address());
    for _ in 0..10 {
        let took = client.exchange();
        assert!(took >= delay, "{took:?}");
    }
    drop(client);
    assert_eq!((server.record().connections(), server.record().requests()), (1, 10));
    for sojourn in server.sojourns() {
        assert_eq!(sojourn.due - sojourn.arrived, delay);
        assert!(sojourn.answered >= sojourn.due, "{sojourn:?}");
    }
}

#[test]
fn a_stall_holds_every_request_in_it() {
    let (at, length) = (Duration::from_millis(50), Duration::from_millis(1500));
    let server = Server::start(Behaviour::stalling(at, length, Reply::of_size(2))).unwrap();
    let mut clients: Vec<Kept> = (0..3).map(|_| Kept::to(server.address())).collect();
    clients[0].exchange();
    std::thread::sleep(at + Duration::from_millis(50));
    clients.iter_mut().for_each(Kept::ask);
    clients.iter_mut().for_each(|client| drop(client.hear()));

    let sojourns = server.sojourns();
    let end = sojourns[0].arrived + at + length;
    let held: Vec<_> = sojourns.iter().filter(|sojourn| sojourn.due > sojourn.arrived).collect();
    assert!(!held.is_empty(), "three requests were sent in the middle of the stall: {sojourns:?}");
    assert!(held.iter().all(|sojourn| sojourn.due == end && sojourn.answered >= end), "{sojourns:?}");
}

#[test]
fn a_queue_serves_requests_one_by_one_with_the_mean_it_was_given() {
    let mean = Duration::from_micros(200);
    let service = Service::Exponential { mean, seed: 3 };
    let server = Server::start(Behaviour::queue(service, Reply::of_size(2))).unwrap();
    let mut clients: Vec<Kept> = (0..4).map(|_| Kept::to(server.address())).collect();
    for _ in 0..500 {
        clients.iter_mut().for_each(Kept::ask);
        clients.iter_mut().for_each(|client| drop(client.hear()));
    }
    drop(clients);
    let sojourns = server.sojourns();
    assert_eq!(sojourns.len(), 2_000);
    let drawn = sojourns.iter().map(|sojourn| sojourn.service.as_secs_f64()).sum::<f64>() / 2_000.0;
    assert!((drawn / mean.as_secs_f64() - 1.0).abs() < 0.1, "mean service {drawn} s");
    for pair in sojourns.windows(2) {
        assert_eq!(pair[1].due, pair[1].arrived.max(pair[0].due) + pair[1].service, "{pair:?}");
    }
}

#[test]
fn a_saturated_server_lets_no_more_through_than_its_rate() {
    let server = Server::start(Behaviour::saturating_at(100.0, Reply::of_size(2))).unwrap();
    let mut clients: Vec<Kept> = (0..21).map(|_| Kept::to(server.address())).collect();
    let begin = Instant::now();
    clients.iter_mut().for_each(Kept::ask);
    clients.iter_mut().for_each(|client| drop(client.hear()));
    assert!(begin.elapsed() >= Duration::from_millis(210), "{:?}", begin.elapsed());
}

#[test]
fn a_trickle_comes_slowly_and_a_silent_server_says_nothing() {
    let trickle = Reply::of_size(50).closing().trickled(10, Duration::from_millis(10));
    let server = Server::builder(Behaviour::at_once(trickle)).at("/never", Behaviour::never()).start().unwrap();
    let begin = Instant::now();
    let reply = last_exchange(server.address(), "GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(reply.ends_with("wx") && begin.elapsed() >= Duration::from_millis(80), "{reply} {:?}", begin.elapsed());

    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /never HTTP/1.1\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let silence = stream.read(&mut [0; 16]).unwrap_err();
    assert!(matches!(silence.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{silence}");
    drop(server);
    assert!(matches!(stream.read(&mut [0; 16]), Ok(0) | Err(_)), "dropping the server ends its connections");
}

#[test]
fn tls_holds_for_who_trusts_the_authority() {
    let server = Server::builder(Behaviour::at_once(Reply::ok("hello").closing())).tls().start().unwrap();
    let reply = super::grpc::over_tls(server.address(), server.ca_pem().unwrap(), "localhost", &[], |mut stream| {
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut reply = Vec::new();
        let _ended_without_notice = stream.read_to_end(&mut reply);
        String::from_utf8(reply).unwrap()
    });
    assert!(reply.unwrap().ends_with("hello"));
    let elsewhere =
        Server::builder(Behaviour::at_once(Reply::ok("hello"))).tls_for(&["elsewhere.test"]).start().unwrap();
    let refused = super::grpc::over_tls(elsewhere.address(), elsewhere.ca_pem().unwrap(), "localhost", &[], |_| ());
    assert!(refused.is_err(), "the certificate is for another name");
}
