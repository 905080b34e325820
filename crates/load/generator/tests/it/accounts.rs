//! Accounts of what was sent, held against the servers' own. That every account adds up is asserted for each run of
//! every test in this binary (`support::assert_accounts_hold`).

use crate::job::{JobsInTurn, lasting};
use crate::script::study::{study, workload};
use crate::support::{Outcome, closed, each, get, http, open, run};
use plimsoll_generator::Prepared;
use plimsoll_model::load::{Arrivals, LoadProfile, Stop};
use plimsoll_model::record::{Account, ErrorKind, Tally};
use plimsoll_model::workload::Connect;
use plimsoll_testkit::grpc::{Counter, Mode, ReplyMode};
use plimsoll_testkit::http::{Behaviour, Server};
use plimsoll_testkit::websocket;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A server that closes kept connections without notice: some right after a reply, some when the next request has come.
/// It counts what it received and what it answered.
struct Fickle {
    address: SocketAddr,
    received: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
}

impl Fickle {
    fn start() -> Fickle {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (received, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counters = (Arc::clone(&received), Arc::clone(&answered));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let counters = (Arc::clone(&counters.0), Arc::clone(&counters.1));
                std::thread::spawn(move || serve_some(stream, number, &counters));
            }
        });
        Fickle { address, received, answered }
    }
}

/// Answers one to three requests. Every other connection receives one more, and is closed then.
fn serve_some(mut stream: TcpStream, number: usize, (received, answered): &(Arc<AtomicU64>, Arc<AtomicU64>)) {
    let receive = |stream: &mut TcpStream| {
        let is_there = stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0);
        received.fetch_add(u64::from(is_there), Ordering::Relaxed);
        is_there
    };
    for _ in 0..=number % 3 {
        if !receive(&mut stream) {
            return;
        }
        // Counted before it is sent: the load may be over as soon as the last reply is there.
        answered.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").is_err() {
            return;
        }
    }
    if number.is_multiple_of(2) {
        receive(&mut stream);
    }
}

fn assert_agree(outcome: &Outcome, name: &str, server: &Fickle) {
    let account = outcome.account(name);
    let (received, answered) = (server.received.load(Ordering::Relaxed), server.answered.load(Ordering::Relaxed));
    let lost = account.failed.get(&ErrorKind::Closed).copied().unwrap_or_default();
    assert_eq!(account.answered, answered, "{account}");
    assert_eq!(account.sent, answered + lost, "each other one was lost with its connection: {account}");
    assert!((received..=received + lost).contains(&account.sent), "{received} came: {account}");
    assert!(lost > 0, "{account}");
}

#[test]
fn requests_that_leave_into_a_connection_just_closed_are_counted() {
    for connect in [Connect::PerUser, Connect::Shared(2)] {
        let server = Fickle::start();
        let workload = http(server.address, connect, vec![get("page", "/")]);
        let outcome = run(&workload, server.address, &closed(4, each(50)), 2);
        assert_agree(&outcome, "page", &server);
    }
    let server = Fickle::start();
    let text = "import http from 'k6/http'; export default function () { http.get(__ENV.TARGET); }";
    let outcome = study(text, &format!("http://{}", server.address), &closed(4, each(50)), 2);
    assert_agree(&outcome, "web", &server);
}

fn failed(kind: ErrorKind, count: u64) -> BTreeMap<ErrorKind, u64> {
    BTreeMap::from([(kind, count)])
}

#[test]
fn what_was_never_sent_is_in_no_account() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let outcome = run(&http(gone, Connect::PerUser, vec![get("page", "/")]), gone, &closed(2, each(3)), 1);
    assert_eq!((outcome.requests("page").count(), outcome.account("page")), (6, Account::default()));
    let attempts = Account { sent: 6, failed: failed(ErrorKind::Connect, 6), ..Account::default() };
    assert_eq!(outcome.record.accounts["connect"], attempts);

    // One user waits for its reply; the other arrivals have nobody.
    let server = Server::start(Behaviour::never()).expect("a port");
    let workload = http(server.address(), Connect::PerUser, vec![get("page", "/")]);
    let load = LoadProfile { drain: Duration::from_millis(100), ..open(50.0, Arrivals::Constant, 1, 0.3) };
    let outcome = run(&workload, server.address(), &load, 1);
    assert_eq!(outcome.requests("page").errors[&ErrorKind::Unsent], 14);
    let account = Account { sent: 1, failed: failed(ErrorKind::Timeout, 1), ..Account::default() };
    assert_eq!(outcome.account("page"), account);
}

#[test]
fn exchanges_of_a_script_end_in_its_accounts_however_they_end() {
    let (never, sockets) = (Server::start(Behaviour::never()).expect("a port"), websocket::Server::start());
    let silent = Counter::builder(Mode::Mutex).reply_mode(ReplyMode::Never).start().expect("a port");
    let grpc = Counter::start(Mode::Mutex).expect("a port");
    let (sockets, http) = (sockets.expect("a port"), format!("http://{}", never.address()));
    let one = |account: Account| Account { sent: 1, ..account };
    let timed_out = || one(Account { failed: failed(ErrorKind::Timeout, 1), ..Account::default() });
    let abandoned = || one(Account { abandoned: 1, ..Account::default() });
    let answered = || one(Account { answered: 1, ..Account::default() });
    let connect = "const client = new grpc.Client();
        export default function () {
            client.connect(__ENV.TARGET, { plaintext: true, reflect: true });";
    let cases = [
        (http.clone(), "export default function () { http.get(__ENV.TARGET, { tags: { name: 'it' } }); }", timed_out()),
        (
            http.clone(),
            "export default function () {
                http.asyncRequest('GET', __ENV.TARGET, null, { tags: { name: 'it' } });
                setTimeout(() => { throw new Error('enough'); }, 50);
            }",
            abandoned(),
        ),
        (
            sockets.address().to_string(),
            "export default function () {
                ws.connect(`ws://${__ENV.TARGET}/echo`, { tags: { name: 'it' } }, (socket) => socket.close());
            }",
            answered(),
        ),
        (
            never.address().to_string(),
            "export default function () { ws.connect(`ws://${__ENV.TARGET}/`, { tags: { name: 'it' } }, () => {}); }",
            timed_out(),
        ),
        (
            grpc.address().to_string(),
            "CONNECT const stream = new grpc.Stream(client, 'talk.Talk/Chat', { tags: { name: 'it' } });
                stream.write({ text: 'a' });
                stream.on('data', () => { throw new Error('enough'); });
            }",
            abandoned(),
        ),
        (
            silent.address().to_string(),
            "CONNECT client.invoke('counter.incrementCounter/increment', {}, { tags: { name: 'it' } }); }",
            timed_out(),
        ),
    ];
    for (target, script, expected) in cases {
        let imports = "import http from 'k6/http'; import ws from 'k6/ws'; import grpc from 'k6/net/grpc';";
        let text = format!("{imports} {}", script.replace("CONNECT", connect));
        let load = LoadProfile { drain: Duration::from_secs(1), ..closed(1, each(1)) };
        let load = LoadProfile { stop: Stop::IterationsPerUser { count: 1, limit: Duration::from_secs(1) }, ..load };
        let outcome = study(&text, &target, &load, 1);
        assert_eq!(outcome.account("it"), expected, "{script}: {:?}", outcome.record.error_examples);
        let attempts = &outcome.record.accounts["connect"];
        assert_eq!((attempts.sent, attempts.answered), (1, 1), "{script}");
    }
}

#[test]
fn streams_that_users_keep_from_load_to_load_are_carried_over() {
    let server = Counter::start(Mode::Mutex).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let text = "import grpc from 'k6/net/grpc';
        const client = new grpc.Client();
        export default function () {
            client.connect(__ENV.TARGET, { plaintext: true, reflect: true });
            const stream = new grpc.Stream(client, 'talk.Talk/Chat', { tags: { name: 'chat' } });
            stream.write({ text: 'a' });
            setTimeout(() => stream.end(), 500);
        }";
    let workload = workload(folder.path(), text, &server.address().to_string());
    let prepared = Prepared::new(&workload, None).expect("the script is in order");
    let jobs = JobsInTurn::run(&prepared, &lasting(2, 300), 10, Duration::ZERO);
    let accounts: Vec<Account> =
        jobs.records.iter().map(|record| record.accounts.get("request:chat").cloned().unwrap_or_default()).collect();
    assert!(accounts.iter().any(|account| account.in_flight == 2), "{accounts:?}");
    for pair in accounts.windows(2) {
        assert_eq!(pair[0].in_flight, pair[1].carried, "{accounts:?}");
    }
    assert!(accounts.iter().map(|account| account.answered).sum::<u64>() >= 2, "{accounts:?}");
}

#[test]
fn requests_of_scripts_are_in_flight_until_their_replies_come() {
    let (users, length) = (3, Duration::from_secs(2));
    let server = Server::start(Behaviour::never()).expect("a port");
    let text = "import http from 'k6/http'; export default function () { http.get(__ENV.TARGET); }";
    let load = LoadProfile { drain: Duration::from_millis(100), ..closed(users, Stop::After(length)) };
    let outcome = study(text, &format!("http://{}", server.address()), &load, 1);
    let seen: Vec<u64> = outcome.generator().map(|second| second.in_flight).collect();
    assert_eq!(seen[..2], [u64::from(users); 2], "{seen:?}");
    assert_eq!(seen.last(), Some(&0), "{seen:?}");
}

#[test]
fn requests_of_iterations_that_began_in_warm_up_count_from_the_measure_phase_on() {
    let server = crate::http::quick_server();
    let text = "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { for (;;) { http.get(__ENV.TARGET); sleep(0.02); } }";
    let load = LoadProfile { warmup: Duration::from_millis(200), ..closed(2, Stop::After(Duration::from_millis(500))) };
    let load = LoadProfile { drain: Duration::from_millis(100), ..load };
    let outcome = study(text, &format!("http://{}", server.address()), &load, 1);
    let (measured, warmup) = (outcome.requests("web").count(), outcome.warmup.clone());
    assert!(measured >= 2, "{measured} requests in the measure phase");
    assert!(warmup.values().map(Tally::count).sum::<u64>() >= 2);
    let others = outcome.account("web").sent - measured;
    assert!(others > 0, "those of warm-up and drain are no part of the results");
}
