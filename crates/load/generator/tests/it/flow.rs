//! Flows against a server that insists on tokens, cookies and the order of steps.

use crate::job::{JobsInTurn, lasting};
use crate::support::{closed, each, get, http, iterations, open, run, run_prepared, target};
use plimsoll_generator::{Prepared, check};
use plimsoll_model::flow::{
    Auth, Block, Body, Capture, Checks, Feed, FeedEnd, FeedOrder, Flow, FlowAction, FlowRequest, Instruction,
    JsonPiece, JsonText, Lifetime, Pick, Piece, Reference, Source, Text, ValueId, WorkloadPart,
};
use plimsoll_model::load::{Arrivals, Stop, Think};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_testkit::http::{Behaviour, Reply, Server, Stateful};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const TOKEN: ValueId = ValueId(0);
const TICKET: ValueId = ValueId(1);
const ITEM: ValueId = ValueId(2);
const NAME: ValueId = ValueId(3);
const PASSWORD: ValueId = ValueId(4);

fn literal(text: &str) -> Piece {
    Piece::Literal(text.to_owned())
}

fn value(value: ValueId) -> Piece {
    Piece::Value { value: Reference::Value(value), raw: false }
}

fn json(pieces: &[Result<&str, Reference>]) -> Body {
    let piece = |piece: &Result<&str, Reference>| match piece {
        Ok(text) => JsonPiece::Literal((*text).to_owned()),
        Err(value) => JsonPiece::Whole(*value),
    };
    Body::Json(JsonText(pieces.iter().map(piece).collect()))
}

fn capture(into: ValueId, from: Source) -> Capture {
    Capture { into, from, pick: Pick::First, default: None, keep: false }
}

fn request(name: &str, method: &str, path: Vec<Piece>) -> FlowRequest {
    FlowRequest {
        name: name.to_owned(),
        method: method.to_owned(),
        path: Text(path),
        headers: Vec::new(),
        body: Body::None,
        auth: Some(Auth::Bearer(Text(vec![value(TOKEN)]))),
        captures: Vec::new(),
        checks: Checks::default(),
        delivers_to: None,
    }
}

/// What the server of these tests asks for: log in, order, then items one after the other.
fn requests() -> Vec<FlowRequest> {
    let fed = |id| Err(Reference::Value(id));
    let log_in = FlowRequest {
        auth: None,
        body: json(&[Ok("{\"user\": "), fed(NAME), Ok(", \"password\": "), fed(PASSWORD), Ok("}")]),
        captures: vec![capture(TOKEN, Source::Json("$.access.token".to_owned()))],
        ..request("log in", "POST", vec![literal("/login")])
    };
    let order = FlowRequest {
        body: json(&[Ok("{\"id\": "), Err(Reference::Uuid), Ok(", \"note\": \"a\\\"b\"}")]),
        captures: vec![capture(TICKET, Source::Json("$[0].ticket".to_owned()))],
        checks: Checks { status: vec![201], ..Checks::default() },
        delivers_to: None,
        ..request("order", "POST", vec![literal("/orders")])
    };
    let next = FlowRequest {
        captures: vec![capture(ITEM, Source::Regex { pattern: r"item no\. (\d+)".to_owned(), group: 1 })],
        ..request("next", "GET", vec![literal("/next?ticket="), value(TICKET)])
    };
    let finish = FlowRequest {
        body: Body::Form(vec![
            (Text(vec![literal("state")]), Text(vec![literal("done")])),
            (Text(vec![literal("ticket")]), Text(vec![value(TICKET)])),
        ]),
        captures: vec![capture(TICKET, Source::Header("X-Ticket".to_owned()))],
        checks: Checks {
            json: vec![("$.ok".to_owned(), JsonText(vec![JsonPiece::Literal("true".to_owned())]))],
            ..Checks::default()
        },
        delivers_to: None,
        ..request("finish", "PUT", vec![literal("/items/"), value(ITEM)])
    };
    let log_out = request("log out", "DELETE", vec![literal("/login")]);
    vec![log_in, order, next, finish, log_out]
}

fn steps(requests: impl IntoIterator<Item = usize>) -> Block {
    Block(requests.into_iter().map(Instruction::Request).collect())
}

/// Users with accounts of their own, from a file in `folder`.
fn flow(folder: &Path, accounts: usize, order: FeedOrder, at_end: FeedEnd) -> Flow {
    let file = folder.join("accounts.csv");
    let rows: String = (0..accounts).map(|user| format!("user{user},secret-user{user}\n")).collect();
    fs::write(&file, format!("name,password\n{rows}")).expect("written");
    let columns = vec![(NAME, "name".to_owned()), (PASSWORD, "password".to_owned())];
    let values = ["token", "ticket", "item", "account.name", "account.password"];
    Flow {
        requests: requests(),
        actions: vec![FlowAction { name: "work".to_owned(), weight: 1, steps: steps([2, 3]) }],
        on_start: steps([0, 1]),
        on_stop: steps([4]),
        values: values.map(str::to_owned).to_vec(),
        draws: Vec::new(),
        feeds: vec![Feed { name: "account".to_owned(), file, order, at_end, columns }],
        cookies: true,
        redirects: 3,
        compression: Vec::new(),
        lifetime: Lifetime::Trial,
        socket: None,
    }
}

fn workload(address: SocketAddr, flow: Flow) -> Workload {
    let steps = Steps::Flow(Box::new(flow));
    Workload { target: Some(target(address)), connect: Connect::PerUser, timeout: Duration::from_secs(10), steps }
}

#[test]
fn in_a_hundred_thousand_requests_none_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Stateful::start().expect("a port");
    let flow = flow(folder.path(), 50, FeedOrder::PerUser, FeedEnd::StartOver);
    let outcome = run(&workload(server.address(), flow), server.address(), &closed(50, iterations(43_000)), 2);
    let record = server.record();
    assert_eq!((record.wrong(), &record.reasons), (0, &vec![]));
    assert!(record.requests >= 100_000, "{} requests", record.requests);
    assert_eq!(outcome.iterations().count(), 43_000);
    assert!(outcome.iterations().errors.is_empty(), "{:?}", outcome.record.error_examples);
    // Every third answer is a redirect, which is an exchange of the same request.
    let counts = ["log in", "order", "next", "finish", "log out"].map(|name| outcome.requests(name).count());
    assert_eq!([counts[0], counts[1], counts[3], counts[4]], [50, 50, 43_000, 50]);
    assert_eq!(counts.iter().sum::<u64>(), record.requests);
    assert_eq!((record.logins.len(), record.logouts), (50, 50));
    assert!(record.logins.values().all(|logins| *logins == 1), "each user has its own account: {:?}", record.logins);
}

#[test]
fn a_user_for_each_iteration_starts_and_stops_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Stateful::start().expect("a port");
    let mut flow = flow(folder.path(), 3, FeedOrder::InOrder, FeedEnd::StartOver);
    flow.lifetime = Lifetime::Iteration;
    let outcome = run(&workload(server.address(), flow), server.address(), &closed(4, each(6)), 2);
    let record = server.record();
    assert_eq!((record.wrong(), &record.reasons), (0, &vec![]));
    assert_eq!((outcome.iterations().count(), record.logouts), (24, 24));
    assert_eq!(record.logins, ["user0", "user1", "user2"].map(|name| (name.to_owned(), 8)).into());
}

#[test]
fn rows_that_are_unique_end_the_load_when_each_was_used_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for threads in [1, 2, 3] {
        let server = Stateful::start().expect("a port");
        let mut flow = flow(folder.path(), 101, FeedOrder::Unique, FeedEnd::Stop);
        flow.lifetime = Lifetime::Iteration;
        let load = closed(6, Stop::Iterations { count: 1000, limit: Duration::from_secs(60) });
        let outcome = run(&workload(server.address(), flow), server.address(), &load, threads);
        let record = server.record();
        assert_eq!((record.wrong(), &record.reasons), (0, &vec![]));
        assert_eq!(outcome.iterations().count(), 101, "{threads} threads");
        assert_eq!(record.logins.len(), 101);
        assert!(record.logins.values().all(|logins| *logins == 1), "{:?}", record.logins);
    }
}

/// An iteration takes longer than a job. It begins with the steps for stopping of the user before it.
#[test]
fn users_that_stay_and_find_no_row_left_stop_and_each_job_ends() {
    let slow = Behaviour::after(Duration::from_millis(30), Reply::of_size(10));
    let server = Server::start(slow).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let mut flow = flow(folder.path(), 4, FeedOrder::Unique, FeedEnd::Stop);
    let bare = |name: &str| FlowRequest { auth: None, ..request(name, "GET", vec![literal("/")]) };
    (flow.requests, flow.lifetime) = (vec![bare("page"), bare("log out")], Lifetime::Iteration);
    (flow.on_start, flow.on_stop) = (Block::default(), steps([1]));
    flow.actions[0].steps = steps([0, 0, 0, 0]);
    let prepared = Prepared::new(&workload(server.address(), flow), Some(server.address())).expect("in order");
    // For the four rows the two users have time enough in six jobs. In those after, nobody has anything to do.
    let jobs = JobsInTurn::run(&prepared, &lasting(2, 60), 24, Duration::from_millis(10));
    assert_eq!((jobs.requests("page"), jobs.requests("log out")), ((16, 0), (4, 0)));
    assert_eq!(server.record().requests(), 20);
}

#[test]
fn a_step_that_fails_ends_its_iteration_and_says_why() {
    let server = Server::start(Behaviour::at_once(Reply::of_size(20))).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let mut flow = flow(folder.path(), 1, FeedOrder::PerUser, FeedEnd::StartOver);
    flow.on_start = Block::default();
    flow.on_stop = Block::default();
    flow.requests[2].path = Text(vec![literal("/next")]);
    flow.requests[2].auth = None;
    let outcome = run(&workload(server.address(), flow), server.address(), &closed(2, each(5)), 1);
    assert_eq!(outcome.errors("next"), [(ErrorKind::Capture, 10)]);
    assert_eq!(outcome.requests("finish").count(), 0, "what follows is not done");
    assert_eq!(outcome.iterations().errors.into_iter().collect::<Vec<_>>(), [(ErrorKind::Capture, 10)]);
    let example = outcome.record.error_examples["request:next"][&ErrorKind::Capture].as_str();
    assert!(example.starts_with("expected a match of `item no\\. (\\d+)` for `{$item}`, found none in `"), "{example}");
}

#[test]
fn what_a_user_does_not_know_is_not_sent() {
    let server = Server::start(Behaviour::at_once(Reply::of_size(20))).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let mut flow = flow(folder.path(), 1, FeedOrder::PerUser, FeedEnd::StartOver);
    flow.on_start = Block::default();
    flow.on_stop = Block::default();
    let outcome = run(&workload(server.address(), flow), server.address(), &closed(1, each(3)), 1);
    assert_eq!(outcome.errors("next"), [(ErrorKind::Capture, 3)]);
    assert_eq!(server.record().requests(), 0);
    assert!(outcome.example("next", ErrorKind::Capture).contains("expected a value for `{$ticket}`"));
}

#[test]
fn pauses_are_no_part_of_an_iteration() {
    let server = Server::start(Behaviour::at_once(Reply::of_size(20))).expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let mut flow = flow(folder.path(), 1, FeedOrder::PerUser, FeedEnd::StartOver);
    flow.requests = vec![FlowRequest { auth: None, ..request("page", "GET", vec![literal("/")]) }];
    flow.on_start = Block::default();
    flow.on_stop = Block::default();
    let pause = Instruction::Pause(Think::Constant(Duration::from_millis(300)));
    let page = || Instruction::Request(0);
    flow.actions[0].steps = Block(vec![page(), pause, page()]);
    let begun = std::time::Instant::now();
    let outcome = run(&workload(server.address(), flow), server.address(), &closed(3, each(2)), 1);
    assert!(begun.elapsed() >= Duration::from_millis(600), "two pauses, one after the other");
    assert_eq!((outcome.iterations().count(), outcome.requests("page").count()), (6, 12));
    let (iterations, pages) = (outcome.iterations().service.mean(), outcome.requests("page").service.mean());
    assert!(iterations < 2.0 * pages + 100e6, "{iterations} ns for two pages of {pages} ns each");
}

#[test]
fn arrivals_find_users_that_log_in_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Stateful::start().expect("a port");
    let flow = flow(folder.path(), 8, FeedOrder::PerUser, FeedEnd::StartOver);
    let load = open(400.0, Arrivals::Constant, 8, 1.0);
    let outcome = run(&workload(server.address(), flow), server.address(), &load, 2);
    let record = server.record();
    assert_eq!((record.wrong(), &record.reasons), (0, &vec![]));
    assert_eq!(outcome.iterations().count(), 400);
    let logins: u64 = record.logins.values().sum();
    assert!(logins == record.logins.len() as u64 && record.logouts == logins, "{:?}", record.logins);
}

#[test]
fn a_flow_without_values_sends_what_the_bare_driver_sends() {
    let sent = |workload: &dyn Fn(SocketAddr) -> Workload| {
        let server = Server::start(Behaviour::at_once(Reply::of_size(20))).expect("a port");
        let workload = workload(server.address());
        let prepared = Prepared::new(&workload, Some(server.address())).expect("in order");
        run_prepared(&prepared, &closed(1, each(2)), 1, &AtomicBool::new(false));
        let port = server.address().port().to_string();
        let mut requests = server.record().first_requests();
        for (_, value) in requests.iter_mut().flat_map(|request| &mut request.headers) {
            *value = value.replace(&port, "PORT");
        }
        requests
    };
    let folder = tempfile::tempdir().expect("a folder");
    let bare = sent(&|address| http(address, Connect::PerUser, vec![get("page", "/a?b")]));
    let flowing = sent(&|address| {
        let mut flow = flow(folder.path(), 1, FeedOrder::PerUser, FeedEnd::StartOver);
        flow.requests = vec![FlowRequest { auth: None, ..request("page", "GET", vec![literal("/a?b")]) }];
        (flow.on_start, flow.on_stop) = (Block::default(), Block::default());
        (flow.cookies, flow.actions[0].steps) = (false, steps([0]));
        workload(address, flow)
    });
    assert_eq!(flowing, bare);
}

#[test]
fn a_flow_is_checked_before_its_system_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let right = flow(folder.path(), 1, FeedOrder::PerUser, FeedEnd::StartOver);
    assert_eq!(check(&workload(address, right.clone())), Ok(()));
    let mut wrong = right;
    wrong.feeds[0].columns[1].1 = "pasword".to_owned();
    wrong.requests[2].captures[0].from = Source::Json("$.[".to_owned());
    let faults = check(&workload(address, wrong)).expect_err("two things are wrong");
    let [column, path] = &faults[..] else { panic!("{faults:?}") };
    assert!(column.what.contains("accounts.csv`: expected a column `pasword`, found `name`, `password`"), "{faults:?}");
    assert_eq!((column.part, &column.known[1]), (Some(WorkloadPart::Value(PASSWORD)), &"account.password".to_owned()));
    assert!(path.what.starts_with("step `next`: expected a JSONPath, found `$.[`"), "{faults:?}");
    assert_eq!(path.part, Some(WorkloadPart::Request(2)));
}

#[test]
fn a_row_without_a_column_is_the_fault_of_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut lacking = flow(folder.path(), 1, FeedOrder::PerUser, FeedEnd::StartOver);
    lacking.feeds[0].file = folder.path().join("accounts.json");
    let rows = "[{\"name\": \"a\", \"password\": \"b\"},\n {\"name\": \"c\"}]";
    std::fs::write(&lacking.feeds[0].file, rows).expect("written");
    let faults = check(&workload(address, lacking)).expect_err("a row lacks its password");
    let [row] = &faults[..] else { panic!("{faults:?}") };
    let expected = "line 2, column 2: expected a value for `password` in each object, found one without";
    assert!(row.what.ends_with(expected), "{row:?}");
    assert_eq!((row.part, &row.known[..]), (Some(WorkloadPart::Feed(0)), &[][..]));
}
