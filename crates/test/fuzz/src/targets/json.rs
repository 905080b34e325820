//! Paths into JSON: JSONPath of flows, and GJSON's of scripts. The first line of an input is the path.

use super::{chosen, first_line, text};
use plimsoll_engine::clock::Clock;
use plimsoll_engine::protocol::{Next, Protocol, ReceivedReply, Reply, Sending};
use plimsoll_model::flow::{
    Block, Body, Capture, Checks, Flow, FlowAction, FlowRequest, Instruction, Lifetime, Pick, Piece, Source, Text,
    ValueId,
};
use plimsoll_model::load::WHOLE;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_model::workload::Target;
use plimsoll_protocols::flow::{CompiledFlow, Flows};
use std::time::Duration;

/// Takes the value at a JSONPath out of the body of a reply.
pub(super) fn json_path(input: &[u8]) {
    let (way, input) = chosen(input);
    let text = text(input);
    let (path, body) = first_line(&text);
    let pick = [Pick::First, Pick::Last, Pick::Random, Pick::All][usize::from(way % 4)];
    let target = Target { host: "127.0.0.1".to_owned(), port: 80, tls: None };
    let Ok(compiled) = CompiledFlow::new(&capturing(path, pick), &target) else { return };
    let flows = Flows::new(&compiled, WHOLE, Clock::start(Duration::ZERO), 7);
    let (mut user, mut connection) = (flows.user(0, 7), flows.open(&mut Vec::new()));
    assert_eq!(flows.begin(&mut user), Next::Exchange(0), "expected a request");
    let now = Instant(0);
    flows.send(&mut connection, &mut user, Sending { step: 0, ticket: 1, now }, &mut Vec::new());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    for piece in [head.as_bytes(), body.as_bytes()] {
        flows.receive(&mut connection, piece, &mut Vec::new(), &mut Vec::new()).expect("it is HTTP");
    }
    let received = ReceivedReply { step: 0, now, took: Nanos(1) };
    flows.conclude(&mut connection, &mut user, received, Reply::Expected { number: None });
}

/// A flow with one request, which captures the value at a path.
fn capturing(path: &str, pick: Pick) -> Flow {
    let from = Source::Json(path.to_owned());
    let request = FlowRequest {
        name: "get".to_owned(),
        method: "GET".to_owned(),
        path: Text(vec![Piece::Literal("/".to_owned())]),
        headers: Vec::new(),
        body: Body::None,
        auth: None,
        captures: vec![Capture { into: ValueId(0), from, pick, default: None, keep: false }],
        checks: Checks::default(),
        delivers_to: None,
    };
    Flow {
        requests: vec![request],
        actions: vec![FlowAction { name: "act".to_owned(), weight: 1, steps: Block(vec![Instruction::Request(0)]) }],
        on_start: Block::default(),
        on_stop: Block::default(),
        values: vec!["value".to_owned()],
        draws: Vec::new(),
        feeds: Vec::new(),
        cookies: false,
        redirects: 0,
        compression: Vec::new(),
        lifetime: Lifetime::Trial,
        socket: None,
    }
}

/// Takes the value at a path of GJSON.
pub(super) fn gjson(input: &[u8]) {
    let text = text(input);
    let (path, json) = first_line(&text);
    if let Ok(Some(found)) = plimsoll_k6::gjson::get(json, path) {
        plimsoll_k6::gjson::get(&found, "0").expect("what is found is JSON");
    }
}
