//! Flows without sockets: what they are compiled to, and users that are driven by byte strings.

mod compiled;
mod driven;
mod faults;

use super::*;
use plimsoll_engine::protocol::Reply as Verdict;
use plimsoll_model::flow::{
    Block, Body, Capture, Checks, Flow, FlowAction, FlowRequest, Instruction, JsonPiece, JsonText, Lifetime, Pick,
    Piece, Reference, Source, Text, ValueId,
};
use plimsoll_model::units::Nanos;
use plimsoll_model::workload::Target;
use std::time::Duration;

/// The values of all flows in these tests.
const VALUES: [&str; 8] = ["a", "b", "c", "list", "item", "account.name", "account.key", "page"];

fn id(name: &str) -> ValueId {
    ValueId(VALUES.iter().position(|value| *value == name).expect("a known value") as u16)
}

fn reference(name: &str) -> Reference {
    match name {
        "$user" => Reference::User,
        "$iteration" => Reference::Iteration,
        "$uuid" => Reference::Uuid,
        "$now" => Reference::Now,
        name => Reference::Value(id(name)),
    }
}

/// `{name}` and `{name|raw}` are values.
fn pieces(template: &str) -> Vec<(String, Option<String>)> {
    let mut parts = template.split('{');
    let mut all = vec![(parts.next().unwrap_or_default().to_owned(), None)];
    for part in parts {
        let (value, literal) = part.split_once('}').expect("a closing brace");
        all.last_mut().expect("a first").1 = Some(value.to_owned());
        all.push((literal.to_owned(), None));
    }
    all
}

fn text(template: &str) -> Text {
    let mut text = Vec::new();
    for (literal, value) in pieces(template) {
        text.extend((!literal.is_empty()).then_some(Piece::Literal(literal)));
        text.extend(value.map(|value| Piece::Value {
            raw: value.ends_with("|raw"),
            value: reference(value.trim_end_matches("|raw")),
        }));
    }
    Text(text)
}

/// JSON with `<name>` for a value that stands alone and `<<name>>` for one inside of a string.
fn json(template: &str) -> JsonText {
    let template = template.replace("<<", "{inside ").replace(">>", "}");
    let mut literal = String::new();
    let mut json = Vec::new();
    let mut rest = template.as_str();
    while let Some(start) = rest.find('<').into_iter().chain(rest.find("{inside ")).min() {
        literal.push_str(&rest[..start]);
        let inside = rest[start..].starts_with('{');
        let end = start + rest[start..].find(if inside { '}' } else { '>' }).expect("an end");
        let name = if inside { &rest[start + "{inside ".len()..end] } else { &rest[start + 1..end] };
        json.push(JsonPiece::Literal(std::mem::take(&mut literal)));
        json.push(if inside { JsonPiece::Inside(reference(name)) } else { JsonPiece::Whole(reference(name)) });
        rest = &rest[end + 1..];
    }
    json.push(JsonPiece::Literal(literal + rest));
    JsonText(json)
}

fn request(method: &str, path: &str) -> FlowRequest {
    FlowRequest {
        name: format!("{method} {path}"),
        method: method.to_owned(),
        path: text(path),
        headers: Vec::new(),
        body: Body::None,
        auth: None,
        captures: Vec::new(),
        checks: Checks::default(),
        delivers_to: None,
    }
}

fn capture(into: &str, from: Source) -> Capture {
    Capture { into: id(into), from, pick: Pick::First, default: None, keep: false }
}

fn json_at(path: &str) -> Source {
    Source::Json(path.to_owned())
}

fn capturing(request: FlowRequest, captures: impl IntoIterator<Item = Capture>) -> FlowRequest {
    FlowRequest { captures: captures.into_iter().collect(), ..request }
}

fn all(count: usize) -> Block {
    Block((0..count).map(Instruction::Request).collect())
}

/// What may be drawn, with its weight.
fn choice(weight: u32, steps: Block) -> FlowAction {
    FlowAction { name: String::new(), weight, steps }
}

/// One action of all requests in a row.
fn flow(requests: Vec<FlowRequest>) -> Flow {
    let steps = all(requests.len());
    with_steps(requests, steps.0)
}

/// One action of these steps.
fn with_steps(requests: Vec<FlowRequest>, steps: Vec<Instruction>) -> Flow {
    Flow {
        requests,
        actions: vec![FlowAction { name: "act".to_owned(), weight: 1, steps: Block(steps) }],
        on_start: Block::default(),
        on_stop: Block::default(),
        values: VALUES.map(str::to_owned).to_vec(),
        draws: Vec::new(),
        feeds: Vec::new(),
        cookies: false,
        redirects: 0,
        compression: Vec::new(),
        lifetime: Lifetime::Trial,
        socket: None,
    }
}

fn target() -> Target {
    Target { host: "127.0.0.1".to_owned(), port: 8080, tls: None }
}

fn compiled(flow: &Flow) -> CompiledFlow {
    CompiledFlow::new(flow, &target()).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// A reply with a body.
fn ok(body: &str) -> Vec<u8> {
    reply("200 OK", "", body.as_bytes())
}

fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A user with a connection, and what came of driving it.
struct Driven<'a> {
    flows: Flows<'a>,
    user: User,
    connection: Connection,
    /// The requests that it made, as they went out.
    sent: Vec<String>,
    pauses: Vec<Nanos>,
}

impl<'a> Driven<'a> {
    fn new(compiled: &'a CompiledFlow) -> Driven<'a> {
        Driven::numbered(compiled, 0)
    }

    fn numbered(compiled: &'a CompiledFlow, number: u64) -> Driven<'a> {
        Driven::on_thread(compiled, Share { index: 0, of: 1 }, number)
    }

    fn on_thread(compiled: &'a CompiledFlow, share: Share, number: u64) -> Driven<'a> {
        let flows = Flows::new(compiled, share, Clock::start(Duration::ZERO), 7);
        let (user, connection) = (flows.user(number, 7), flows.open(&mut Vec::new()));
        Driven { flows, user, connection, sent: Vec::new(), pauses: Vec::new() }
    }

    /// Does an iteration, each request of which is answered by `answer`.
    fn iterate(&mut self, mut answer: impl FnMut(&str) -> Vec<u8>) -> Result<(), Failure> {
        let next = self.flows.begin(&mut self.user);
        self.go_on(next, &mut answer)
    }

    fn retire(&mut self, mut answer: impl FnMut(&str) -> Vec<u8>) -> Result<(), Failure> {
        let next = self.flows.retire(&mut self.user);
        self.go_on(next, &mut answer)
    }

    fn go_on(&mut self, mut next: Next, answer: &mut dyn FnMut(&str) -> Vec<u8>) -> Result<(), Failure> {
        loop {
            match next {
                Next::Exchange(step) => self.exchange(step, answer)?,
                Next::Pause(pause) => self.pauses.push(pause),
                Next::Begun => self.sent.push("begun".to_owned()),
                Next::Socket(_) => unreachable!("these users hold no socket"),
                Next::Done => return Ok(()),
                Next::Stop => {
                    self.sent.push("stop".to_owned());
                    return Ok(());
                }
                Next::Failed(failure) | Next::Refused(_, failure) => return Err(failure),
            }
            next = self.flows.next(&mut self.user);
        }
    }

    fn exchange(&mut self, step: usize, answer: &mut dyn FnMut(&str) -> Vec<u8>) -> Result<(), Failure> {
        let (mut out, mut signals) = (Vec::new(), Vec::new());
        let now = Instant(1_000_000_000);
        self.flows.send(&mut self.connection, &mut self.user, Sending { step, ticket: 3, now }, &mut out);
        let sent = String::from_utf8(out).expect("requests of tests are text");
        let answer = answer(&sent);
        self.sent.push(sent);
        for piece in answer.chunks(7) {
            let read = self.flows.receive(&mut self.connection, piece, &mut Vec::new(), &mut signals);
            read.expect("the answer is HTTP");
        }
        let came = ReceivedReply { step, now, took: Nanos(5_000_000) };
        let verdict = Verdict::Expected { number: None };
        assert_eq!(signals.pop(), Some(Signal::Done { ticket: 3, reply: verdict.clone() }));
        match self.flows.conclude(&mut self.connection, &mut self.user, came, verdict) {
            Verdict::Expected { .. } => Ok(()),
            Verdict::Failed(failure) => Err(failure),
        }
    }

    /// The first lines of the requests.
    fn lines(&self) -> Vec<&str> {
        self.sent.iter().map(|sent| sent.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")).collect()
    }

    /// What a value is.
    fn value(&self, name: &str) -> String {
        self.user.values[id(name).0 as usize].view().text().into_owned()
    }
}

#[test]
fn an_idle_user_takes_little() {
    let before = size_of::<User>() + VALUES.len() * size_of::<value::Value>() + size_of::<Connection>();
    assert!(before < 1024, "{before} bytes besides what it captured");
    let compiled = compiled(&flow(vec![capturing(request("GET", "/"), [capture("a", json_at("$.a"))])]));
    let mut driven = Driven::new(&compiled);
    let body = format!("{{\"a\": 1, \"rest\": \"{}\"}}", "x".repeat(1 << 20));
    driven.iterate(|_| ok(&body)).expect("it is right");
    assert!(
        matches!(driven.connection.0, Link::Http { reply: None, .. }),
        "a connection keeps nothing between exchanges"
    );
    let spare = driven.flows.spare.borrow();
    assert!(spare.len() == 1 && spare[0].body.capacity() <= 16 << 10, "{} bytes", spare[0].body.capacity());
}
