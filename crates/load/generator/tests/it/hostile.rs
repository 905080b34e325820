//! Servers that never stop sending: time-outs, the end of a load and an interruption hold all the same.

use crate::script::Trial;
use crate::support::{closed, each, get, http, run, run_prepared};
use plimsoll_generator::Prepared;
use plimsoll_model::load::Stop;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::Connect;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a server sends after a request: once, then again and again, as fast as its socket takes it.
const FLOODS: [(&str, &str, &str); 5] = [
    ("trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "a: b\r\n"),
    ("chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "2\r\nab\r\n"),
    ("interim responses", "", "HTTP/1.1 100 Continue\r\n\r\n"),
    ("a body without an end", "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", "x"),
    ("a long body", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n", "x"),
];

/// Bytes that are written at once, and that the kernel takes at once: far more than the generator reads at once.
const AT_ONCE: usize = 4 * 1024 * 1024;

/// Threads that write on one connection what may be cut anywhere: while one waits for a processor, another one writes.
const WRITERS: usize = 4;

/// A server that floods all its connections.
struct Flood {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(first: &'static str, again: &str) -> Flood {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, again) = (Arc::new(AtomicBool::new(false)), again.repeat(AT_ONCE / again.len()));
        let stopping = Arc::clone(&stop);
        let accepting = std::thread::spawn(move || {
            let flood = |stream| {
                let (again, stop) = (again.clone(), Arc::clone(&stopping));
                std::thread::spawn(move || flood(stream, first, &again, &stop))
            };
            let connections = listener.incoming().flatten().take_while(|_| !stopping.load(Ordering::Relaxed));
            let threads: Vec<_> = connections.map(flood).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
        Flood { address, stop, accepting: Some(accepting) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

/// Sends until the peer hangs up, or the test is over.
fn flood(mut stream: TcpStream, first: &str, again: &str, stop: &AtomicBool) {
    let patience = Some(Duration::from_millis(200));
    rustix::net::sockopt::set_socket_send_buffer_size(&stream, AT_ONCE).expect("a buffer");
    stream.set_read_timeout(patience).and_then(|()| stream.set_write_timeout(patience)).expect("time-outs");
    if !stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) || stream.write_all(first.as_bytes()).is_err() {
        return;
    }
    let may_be_cut = again.bytes().all(|byte| byte == b'x');
    std::thread::scope(|scope| {
        for _ in 0..if may_be_cut { WRITERS } else { 1 } {
            let mut stream = stream.try_clone().expect("a descriptor");
            scope.spawn(move || while !stop.load(Ordering::Relaxed) && stream.write_all(again.as_bytes()).is_ok() {});
        }
    });
}

/// Far above what each test needs on a busy machine, and far below a loop without an end.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_time_out_holds_while_the_server_keeps_the_socket_full() {
    for (name, first, again) in FLOODS {
        let server = Flood::start(first, again);
        let mut workload = http(server.address, Connect::PerUser, vec![get("page", "/")]);
        workload.timeout = Duration::from_millis(100);
        let begun = Instant::now();
        let outcome = run(&workload, server.address, &closed(2, each(2)), 1);
        assert_eq!(outcome.errors("page"), [(ErrorKind::Timeout, 4)], "{name}");
        assert!(begun.elapsed() < SOON, "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn a_load_ends_while_the_server_keeps_the_socket_full() {
    for (name, first, again) in FLOODS {
        let server = Flood::start(first, again);
        let mut workload = http(server.address, Connect::PerUser, vec![get("page", "/")]);
        workload.timeout = Duration::from_secs(60);
        let mut load = closed(2, Stop::After(Duration::from_millis(200)));
        load.drain = Duration::from_millis(100);
        let begun = Instant::now();
        let outcome = run(&workload, server.address, &load, 1);
        assert_eq!(outcome.iterations().failed(), 2, "{name}");
        assert!(begun.elapsed() < SOON, "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn an_interruption_ends_a_load_while_the_server_keeps_the_socket_full() {
    let (_, first, again) = FLOODS[0];
    let server = Flood::start(first, again);
    let mut workload = http(server.address, Connect::PerUser, vec![get("page", "/")]);
    workload.timeout = Duration::from_secs(60);
    let prepared = Prepared::new(&workload, Some(server.address)).expect("in order");
    let interrupted = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupted.store(true, Ordering::Relaxed);
        });
        run_prepared(&prepared, &closed(2, Stop::After(Duration::from_secs(60))), 1, &interrupted);
    });
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
}

#[test]
fn a_time_out_of_a_script_holds_while_the_server_keeps_the_socket_full() {
    let text = "import http from 'k6/http'; import { check } from 'k6';
        export const options = { vus: 2, iterations: 2 };
        export default function () {
            const res = http.get(__ENV.TARGET, { timeout: '100ms', responseType: 'none' });
            check(res, { 'failed': (r) => r.status === 0 && r.error_code === 1050 });
        }";
    for (name, first, again) in FLOODS {
        let server = Flood::start(first, again);
        let begun = Instant::now();
        let outcome = Trial::of(text, &format!("http://{}", server.address)).run();
        assert_eq!(outcome.checks(), [("failed", 2, 0)], "{name}: {:?}", outcome.console_lines());
        assert!(begun.elapsed() < SOON, "{name} took {:?}", begun.elapsed());
    }
}
