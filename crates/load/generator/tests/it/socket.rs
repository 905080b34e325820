//! Users of flows that hold a WebSocket, against a chat server on another library.

use crate::job::{JobsInTurn, lasting};
use crate::support::{Outcome, closed, each, iterations, job, run, target};
use plimsoll_generator::Prepared;
use plimsoll_model::flow::{
    AwaitedMessage, Backoff, Block, Body, Capture, Checks, Deliveries, Flow, FlowAction, FlowMessage, FlowRequest,
    FlowSocket, Instruction, JsonPiece, JsonText, Lifetime, Pick, Piece, Reference, Source, Text, ValueId,
};
use plimsoll_model::job::Job;
use plimsoll_model::load::{LoadProfile, Think};
use plimsoll_model::record::{ErrorKind, METRIC_SCALE, Metric, Part, Subject, Tally};
use plimsoll_model::workload::{Connect, Steps, Workload};
use plimsoll_testkit::chat::{Mistakes, Server};
use std::net::SocketAddr;
use std::time::Duration;

const ROOMS: ValueId = ValueId(0);
const ANSWER: ValueId = ValueId(1);

fn text(literal: &str) -> Text {
    Text(vec![Piece::Literal(literal.to_owned())])
}

fn with_user(literal: &str) -> Text {
    let user = Piece::Value { value: Reference::User, raw: false };
    Text(vec![Piece::Literal(literal.to_owned()), user])
}

fn request(name: &str, method: &str, path: Text) -> FlowRequest {
    FlowRequest {
        name: name.to_owned(),
        method: method.to_owned(),
        path,
        headers: Vec::new(),
        body: Body::None,
        auth: None,
        captures: Vec::new(),
        checks: Checks::default(),
        delivers_to: None,
    }
}

fn json(literal: &str) -> JsonText {
    JsonText(vec![JsonPiece::Literal(literal.to_owned())])
}

fn holding(path: &str, equals: &str) -> Checks {
    Checks { json: vec![(path.to_owned(), json(equals))], ..Checks::default() }
}

fn capture(into: ValueId, path: &str, pick: Pick) -> Capture {
    Capture { into, from: Source::Json(path.to_owned()), pick, default: None, keep: false }
}

fn pause(milliseconds: u64) -> Instruction {
    Instruction::Pause(Think::Constant(Duration::from_millis(milliseconds)))
}

fn post(to: &str) -> FlowRequest {
    let message = JsonPiece::Inside(Reference::Message);
    let body = [JsonPiece::Literal("{\"id\": \"".to_owned()), message, JsonPiece::Literal("\"}".to_owned())];
    FlowRequest {
        body: Body::Json(JsonText(body.into())),
        delivers_to: Some(text("town")),
        ..request("post", "POST", with_user(to))
    }
}

/// Users that enter the rooms, do this in each iteration, and wait until the others are done too. The server lets them begin
/// together.
fn flow(iteration: Vec<Instruction>, messages: Vec<FlowMessage>) -> Flow {
    let rooms = FlowRequest {
        captures: vec![capture(ROOMS, "$.rooms[*]", Pick::All)],
        ..request("rooms", "GET", text("/rooms"))
    };
    let requests = vec![
        rooms,
        post("/posts/town?from="),
        post("/refused/town?from="),
        request("open socket", "GET", with_user("/socket?user=")),
    ];
    Flow {
        requests,
        actions: vec![FlowAction { name: "act".to_owned(), weight: 1, steps: Block(iteration) }],
        on_start: Block(vec![Instruction::Request(0), Instruction::OpenSocket, pause(300)]),
        on_stop: Block(vec![pause(2_500)]),
        values: vec!["rooms".to_owned(), "answer".to_owned()],
        draws: Vec::new(),
        feeds: Vec::new(),
        cookies: false,
        redirects: 0,
        compression: Vec::new(),
        lifetime: Lifetime::Trial,
        socket: Some(FlowSocket {
            opening: 3,
            subprotocols: Vec::new(),
            compression: false,
            greeting: None,
            ready: Some(holding("$.event", "\"hello\"")),
            ping: None,
            reconnect: Some(Backoff { first: Duration::from_millis(20), most: Duration::from_millis(100) }),
            deliveries: Some(Deliveries {
                listens_to: ROOMS,
                of: holding("$.event", "\"posted\""),
                within: Duration::from_secs(3),
            }),
            messages,
        }),
    }
}

/// Each iteration posts to all others.
fn posting() -> Flow {
    flow(vec![Instruction::Request(1), pause(2)], Vec::new())
}

fn workload(address: SocketAddr, flow: Flow) -> Workload {
    Workload {
        target: Some(target(address)),
        connect: Connect::PerUser,
        timeout: Duration::from_secs(2),
        steps: Steps::Flow(Box::new(flow)),
    }
}

fn run_flow(server: &Server, flow: Flow, load: &LoadProfile) -> Outcome {
    run(&workload(server.address(), flow), server.address(), load, 2)
}

fn deliveries(outcome: &Outcome) -> Tally {
    outcome.subject(&Subject::Part(Part::Delivery, "post".to_owned()))
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    let subject = Subject::Custom(Metric::Counter, name.to_owned());
    let sums = [&outcome.warmup, &outcome.measure].map(|phase| {
        phase.get(&subject).map_or(0.0, |tally| tally.service.mean() * tally.count() as f64 / METRIC_SCALE)
    });
    sums.iter().sum::<f64>().round() as u64
}

/// Ten users with twenty posts each, which nine others are to get.
const USERS: u32 = 10;
const POSTS: u64 = 200;
const EXPECTED: u64 = 1_800;

/// A server without mistakes that lets all users begin together.
fn together() -> Mistakes {
    Mistakes { wait_for: u64::from(USERS), ..Mistakes::default() }
}

fn post_all(server: &Server) -> Outcome {
    run_flow(server, posting(), &closed(USERS, each(POSTS / u64::from(USERS))))
}

#[test]
fn every_post_comes_to_every_other_user_once() {
    let server = Server::start(together()).expect("a port");
    let outcome = post_all(&server);
    let (delivered, counts) = (deliveries(&outcome), server.counts());
    assert_eq!((counts.posts, counts.delivered, counts.opened), (POSTS, EXPECTED, u64::from(USERS)));
    assert_eq!((delivered.count(), delivered.failed()), (EXPECTED, 0));
    assert_eq!(outcome.record.accounts["delivery:post"].answered, EXPECTED);
    assert_eq!(outcome.account("open socket").answered, u64::from(USERS));
    assert_eq!(counter(&outcome, "messages received"), EXPECTED + u64::from(USERS), "with a hello for each");
    assert_eq!((counter(&outcome, "messages sent"), counter(&outcome, "sockets lost")), (0, 0));
    assert_eq!(outcome.record.warnings, Vec::<String>::new());
}

#[test]
fn what_the_server_leaves_out_is_lost_and_nothing_else_is() {
    let server = Server::start(Mistakes { lose_every: Some(7), ..together() }).expect("a port");
    let outcome = post_all(&server);
    let (delivered, lost) = (deliveries(&outcome), server.counts().lost);
    assert_eq!(lost, EXPECTED / 7);
    assert_eq!(delivered.errors.into_iter().collect::<Vec<_>>(), [(ErrorKind::Timeout, lost)]);
    assert_eq!(outcome.record.accounts["delivery:post"].answered, EXPECTED - lost);
}

#[test]
fn users_leave_only_when_what_is_under_way_to_them_has_come_or_is_lost() {
    let server = Server::start(Mistakes { lose_every: Some(10), ..together() }).expect("a port");
    let mut flow = posting();
    flow.on_stop = Block::default();
    let outcome = run_flow(&server, flow, &closed(USERS, each(1)));
    let account = &outcome.record.accounts["delivery:post"];
    // The users who post last may find that others have left already.
    assert!(account.answered > 0 && account.in_flight == 0, "{account}");
    assert_eq!(account.failed.values().sum::<u64>(), account.failed[&ErrorKind::Timeout], "{account}");
}

#[test]
fn what_comes_twice_counts_once_and_is_told() {
    let server = Server::start(Mistakes { repeat_every: Some(100), ..together() }).expect("a port");
    let outcome = post_all(&server);
    assert_eq!((deliveries(&outcome).count(), deliveries(&outcome).failed()), (EXPECTED, 0));
    let told = "a delivery came to the same user again: 18 times; each is counted as one delivery";
    assert_eq!(outcome.record.warnings, [told]);
}

#[test]
fn a_lost_socket_is_opened_again_and_what_was_on_its_way_is_lost() {
    let server = Server::start(Mistakes { cut_every: Some(300), ..together() }).expect("a port");
    let outcome = post_all(&server);
    let counts = server.counts();
    assert!(counts.cut >= 3, "{counts:?}");
    assert_eq!(counter(&outcome, "sockets lost"), counts.cut);
    assert_eq!(outcome.account("open socket").answered, counts.opened);
    assert!(counts.opened > u64::from(USERS), "{counts:?}");
    let lost = deliveries(&outcome).errors;
    assert!(lost.get(&ErrorKind::Closed).is_some_and(|lost| *lost >= counts.cut), "{lost:?}");
    assert!(!outcome.iterations().errors.contains_key(&ErrorKind::Closed), "posts go over other connections");
}

#[test]
fn a_socket_that_is_closed_and_reset_at_once_takes_nothing_else_with_it() {
    let server = Server::start(Mistakes { reset_every: Some(150), ..together() }).expect("a port");
    let outcome = post_all(&server);
    let counts = server.counts();
    assert!(counts.cut >= 5, "{counts:?}");
    assert_eq!(counter(&outcome, "sockets lost"), counts.cut);
    assert_eq!((outcome.iterations().count(), outcome.iterations().failed()), (POSTS, 0));
}

#[test]
fn a_delivery_that_is_late_is_lost_whenever_it_comes() {
    let server =
        Server::start(Mistakes { wait_for: 3, late: Duration::from_millis(120), ..together() }).expect("a port");
    let mut flow = posting();
    let socket = flow.socket.as_mut().expect("a socket");
    socket.deliveries.as_mut().expect("deliveries").within = Duration::from_millis(100);
    let outcome = run_flow(&server, flow, &closed(3, each(3)));
    let delivered = deliveries(&outcome);
    assert_eq!((delivered.count(), server.counts().delivered), (18, 18));
    assert_eq!(delivered.errors.into_iter().collect::<Vec<_>>(), [(ErrorKind::Timeout, 18)]);
}

#[test]
fn users_of_an_earlier_load_get_nothing_of_a_later_one() {
    let server = Server::start(Mistakes { wait_for: 4, ..Mistakes::default() }).expect("a port");
    let mut flow = flow(vec![Instruction::Request(1), pause(20_000)], Vec::new());
    flow.on_stop = Block::default();
    flow.socket.as_mut().expect("a socket").deliveries.as_mut().expect("deliveries").within = Duration::from_secs(2);
    let prepared = Prepared::new(&workload(server.address(), flow), Some(server.address())).expect("in order");
    let subject = Subject::Part(Part::Delivery, "post".to_owned());
    let delivered = [4, 2].map(|users| {
        let load = LoadProfile { drain: Duration::from_millis(100), ..lasting(users, 4500) };
        let jobs = JobsInTurn::run(&prepared, &load, 1, Duration::ZERO);
        jobs.recorded[0][1].get(&subject).map_or((0, 0), |tally| (tally.count(), tally.failed()))
    });
    assert_eq!(delivered, [(12, 0), (2, 0)]);
}

#[test]
fn a_post_that_is_refused_is_waited_for_by_nobody() {
    let server = Server::start(Mistakes::default()).expect("a port");
    let refused = flow(vec![Instruction::Request(2)], Vec::new());
    let outcome = run_flow(&server, refused, &closed(3, each(2)));
    assert_eq!(outcome.errors("post"), [(ErrorKind::Status, 6)]);
    assert_eq!(deliveries(&outcome).count(), 0);
}

#[test]
fn users_that_stay_keep_their_sockets_from_load_to_load() {
    let server = Server::start(Mistakes { wait_for: 4, ..Mistakes::default() }).expect("a port");
    let mut flow = flow(vec![Instruction::Request(1), pause(2)], Vec::new());
    flow.on_stop = Block::default();
    let prepared = Prepared::new(&workload(server.address(), flow), Some(server.address())).expect("in order");
    // Entering takes longer than a load: in the first ones nobody posts.
    let jobs = JobsInTurn::run(&prepared, &lasting(4, 200), 10, Duration::from_millis(30));
    let subject = Subject::Part(Part::Delivery, "post".to_owned());
    let delivered: Vec<u64> = jobs
        .recorded
        .iter()
        .filter_map(|[_, all]| all.get(&subject))
        .map(|tally| tally.count() - tally.failed())
        .collect();
    assert!(delivered.len() >= 5 && delivered.iter().all(|count| *count > 0), "{delivered:?}");
    let (counts, lost) =
        (server.counts(), jobs.recorded.iter().filter_map(|[_, all]| all.get(&subject)).map(Tally::failed));
    assert_eq!((counts.opened, lost.sum::<u64>()), (4, 0));
    let under_way = jobs.records.iter().filter_map(|record| record.accounts.get("delivery:post"));
    assert_eq!(under_way.map(|account| account.in_flight).sum::<u64>(), 0, "a load waits for them");
    assert_eq!(delivered.iter().sum::<u64>(), counts.delivered);
    // What comes within a slice is counted in it, however short it is.
    let messages = Subject::Custom(Metric::Counter, "messages received".to_owned());
    let of_slices = |subject: &Subject, of: fn(&Tally) -> f64| {
        jobs.recorded.iter().filter_map(|[measured, _]| measured.get(subject)).map(of).sum::<f64>()
    };
    let came = of_slices(&messages, |tally| tally.service.mean() * tally.count() as f64 / METRIC_SCALE);
    let sent = of_slices(&subject, |tally| tally.count() as f64);
    assert!((came / sent - 1.0).abs() < 0.2, "{came} {sent}");
}

#[test]
fn a_thread_reads_on_while_others_wait_for_its_users() {
    let server = Server::start(Mistakes { wait_for: 4, ..Mistakes::default() }).expect("a port");
    let mut flow = flow(vec![Instruction::Request(1), pause(2)], Vec::new());
    flow.on_stop = Block::default();
    let prepared = Prepared::new(&workload(server.address(), flow), Some(server.address())).expect("in order");
    let jobs = (0..10).map(|index| Job { stays: index < 9, ..job(&lasting(4, 200), 2) }).collect();
    let jobs = JobsInTurn::of(&prepared, jobs, Duration::from_millis(30));
    let subject = Subject::Part(Part::Delivery, "post".to_owned());
    let all = || jobs.recorded.iter().filter_map(|[_, all]| all.get(&subject));
    let (came, lost) = (all().map(Tally::count).sum::<u64>(), all().map(Tally::failed).sum::<u64>());
    // A post may be sent just after another thread has found nothing under way.
    assert!(came > 500 && lost * 100 <= came, "{lost} of {came}");
}

fn message(name: &str, send: Option<&str>, awaits: Option<AwaitedMessage>) -> FlowMessage {
    FlowMessage { name: name.to_owned(), send: send.map(|text| Body::Json(json(text))), awaits }
}

fn awaiting(path: &str, equals: &str, captures: Vec<Capture>) -> Option<AwaitedMessage> {
    Some(AwaitedMessage { checks: holding(path, equals), captures })
}

#[test]
fn messages_are_sent_answered_and_captured() {
    let server = Server::start(Mistakes::default()).expect("a port");
    let ask = message(
        "ask",
        Some(r#"{"seq": 7, "action": "status"}"#),
        awaiting("$.seq_reply", "7", vec![capture(ANSWER, "$.status", Pick::First)]),
    );
    let type_something = message("typing", Some(r#"{"action": "typing"}"#), None);
    let answered = plimsoll_model::flow::Condition {
        value: Reference::Value(ANSWER),
        test: plimsoll_model::flow::Test::Contains(text("OK")),
    };
    let steps = vec![
        Instruction::Message(1),
        Instruction::Message(0),
        Instruction::When {
            conditions: vec![answered],
            then: Block(vec![Instruction::Message(1)]),
            otherwise: Block::default(),
        },
    ];
    let outcome = run_flow(&server, flow(steps, vec![ask, type_something]), &closed(4, iterations(40)));
    assert_eq!((outcome.iterations().count(), outcome.iterations().failed()), (40, 0));
    assert_eq!((outcome.requests("ask").count(), outcome.requests("ask").failed()), (40, 0));
    assert_eq!(outcome.requests("typing").count(), 0, "nothing answers it");
    assert_eq!((server.counts().messages, counter(&outcome, "messages sent")), (120, 120));
    assert!(outcome.requests("ask").service.min() > 0);
}

#[test]
fn a_question_with_a_number_of_its_own_takes_no_answer_to_another() {
    let server = Server::start(Mistakes::default()).expect("a port");
    let literal = |text: &str| JsonPiece::Literal(text.to_owned());
    let pieces = vec![literal("{\"seq\": "), JsonPiece::Whole(Reference::Message), literal("}")];
    let numbered = Body::Json(JsonText(pieces));
    let own = JsonText(vec![JsonPiece::Whole(Reference::Message)]);
    let checks = Checks { json: vec![("$.seq_reply".to_owned(), own)], ..Checks::default() };
    let awaits = Some(AwaitedMessage { checks, captures: Vec::new() });
    // Nobody waits for the first answer: it comes while the second one is awaited.
    let forgotten = FlowMessage { name: "forgotten".to_owned(), send: Some(numbered.clone()), awaits: None };
    let ask = FlowMessage { name: "ask".to_owned(), send: Some(numbered), awaits };
    let steps = vec![Instruction::Message(0), Instruction::Message(1)];
    let outcome = run_flow(&server, flow(steps, vec![forgotten, ask]), &closed(2, iterations(20)));
    assert_eq!((outcome.requests("ask").count(), outcome.requests("ask").failed()), (20, 0));
    assert_eq!((outcome.iterations().failed(), server.counts().messages), (0, 40));
}

#[test]
fn a_message_that_came_before_it_was_awaited_is_taken() {
    let server = Server::start(Mistakes::default()).expect("a port");
    let hello = message("hello", None, awaiting("$.event", "\"hello\"", Vec::new()));
    let mut flow = flow(vec![pause(1)], vec![hello]);
    flow.socket.as_mut().expect("it has one").ready = None;
    // The pause gives the message time to come first.
    flow.on_start = Block(vec![Instruction::OpenSocket, pause(100), Instruction::Message(0)]);
    flow.socket.as_mut().expect("it has one").deliveries = None;
    let outcome = run_flow(&server, flow, &closed(2, each(1)));
    assert_eq!((outcome.account("hello").answered, outcome.iterations().failed()), (2, 0));
}

#[test]
fn a_message_that_never_comes_times_out_and_the_socket_stays() {
    let server = Server::start(Mistakes::default()).expect("a port");
    let never = message("never", Some("{}"), awaiting("$.event", "\"never\"", Vec::new()));
    let ask = message("ask", Some(r#"{"seq": 1}"#), awaiting("$.seq_reply", "1", Vec::new()));
    let waits = plimsoll_model::flow::Condition { value: Reference::Iteration, test: compare("1") };
    let steps = vec![Instruction::When {
        conditions: vec![waits],
        then: Block(vec![Instruction::Message(0)]),
        otherwise: Block(vec![Instruction::Message(1)]),
    }];
    let outcome = run_flow(&server, flow(steps, vec![never, ask]), &closed(1, each(2)));
    assert_eq!(outcome.errors("never"), [(ErrorKind::Timeout, 1)]);
    assert_eq!((outcome.requests("ask").count(), outcome.requests("ask").failed()), (1, 0));
    assert_eq!((server.counts().opened, counter(&outcome, "sockets lost")), (1, 0));
}

fn compare(with: &str) -> plimsoll_model::flow::Test {
    let comparison = plimsoll_model::flow::Comparison::Equal;
    plimsoll_model::flow::Test::Compare { comparison, with: text(with) }
}

#[test]
fn a_handshake_that_is_refused_fails_the_user_with_the_answer() {
    let server = Server::start(Mistakes { refuse: Some(403), ..Mistakes::default() }).expect("a port");
    let outcome = run_flow(&server, posting(), &closed(2, each(1)));
    assert_eq!(outcome.account("open socket").failed[&ErrorKind::Status], outcome.account("open socket").sent);
    let example = outcome.example("open socket", ErrorKind::Status);
    assert!(example.contains("expected status 101, found 403") && example.contains("not today"), "{example}");
    assert_eq!((outcome.requests("post").count(), server.counts().opened), (0, 0));
}

#[test]
fn a_peer_that_answers_no_ping_is_lost() {
    let server = Server::start(Mistakes { deaf: true, ..Mistakes::default() }).expect("a port");
    let mut flow = flow(vec![pause(700)], Vec::new());
    let socket = flow.socket.as_mut().expect("it has one");
    (socket.ping, socket.reconnect) = (Some(Duration::from_millis(100)), None);
    let outcome = run_flow(&server, flow, &closed(3, each(1)));
    assert_eq!((counter(&outcome, "sockets lost"), server.counts().opened), (3, 3));
    let example = outcome.example("open socket", ErrorKind::Timeout);
    assert_eq!(example, "nothing came within 0.1 s of a ping");
}

#[test]
fn a_step_on_a_closed_socket_fails_and_says_so() {
    let server = Server::start(Mistakes::default()).expect("a port");
    let ask = message("ask", Some(r#"{"seq": 1}"#), awaiting("$.seq_reply", "1", Vec::new()));
    let steps = vec![Instruction::CloseSocket, Instruction::Message(0)];
    let outcome = run_flow(&server, flow(steps, vec![ask]), &closed(1, each(1)));
    assert_eq!(outcome.errors("ask"), [(ErrorKind::Closed, 1)]);
    let example = outcome.example("ask", ErrorKind::Closed);
    assert_eq!(example, "expected the user's socket to be open, found it closed");
    assert_eq!(counter(&outcome, "sockets lost"), 0, "the user has closed it");
}
