//! What a flow is compiled to.

use super::*;
use crate::flow::program::Op;
use crate::flow::template::{self, Template};
use plimsoll_model::flow::{Auth, Comparison, Condition, ContentCoding, MultipartPart, PartContent, Password, Test};
use plimsoll_model::load::Think;
use std::fmt::Write as _;

fn shown(template: &Template, compiled: &CompiledFlow) -> String {
    let pieces = template.0.iter().map(|piece| match piece {
        template::Piece::Bytes(range) => {
            format!("[{}]", String::from_utf8_lossy(&compiled.pool[range.clone()]).escape_debug())
        }
        template::Piece::Value(place, encoding) => format!("{{{place:?} as {encoding:?}}}"),
        other => format!("{{{other:?}}}"),
    });
    pieces.collect::<Vec<_>>().join(" ")
}

fn requests(compiled: &CompiledFlow) -> String {
    let mut all = String::new();
    for request in &compiled.requests {
        let whole = if request.whole.is_some() { ", one piece" } else { "" };
        let (target, head, content, body) = (&request.target, &request.head, &request.content, &request.body);
        writeln!(all, "step {} keeps {:?}{whole}", request.step, request.keep).expect("text");
        for (name, part) in [("target", target), ("head", head), ("content", content), ("body", body)] {
            if !part.0.is_empty() {
                writeln!(all, "  {name}: {}", shown(part, compiled)).expect("text");
            }
        }
    }
    all.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn requests_become_pieces() {
    let plain = FlowRequest { headers: vec![("Accept".to_owned(), text("text/plain"))], ..request("GET", "/a?b=c") };
    let templated = FlowRequest {
        name: "GET /a?b=c".to_owned(),
        headers: vec![("X-A".to_owned(), text("{a}-{b}")), ("Content-Language".to_owned(), text("en"))],
        auth: Some(Auth::Bearer(text("{b}"))),
        ..request("GET", "/plans/{a}?page={page}&user={$user}")
    };
    let form = FlowRequest {
        body: Body::Form(vec![(text("a b"), text("1 {c}")), (text("d"), text("&"))]),
        auth: Some(Auth::Basic { user: text("{a}"), password: Password::Value(id("b")) }),
        ..request("POST", "/form")
    };
    let whole = FlowRequest {
        body: Body::Json(json("{\"id\": <a>, \"note\": \"no. <<b>>\", \"on\": true}")),
        ..capturing(request("PUT", "/json"), [capture("c", Source::Header("X-C".to_owned()))])
    };
    let part = |name: &str, content: &str| MultipartPart {
        name: name.to_owned(),
        content: PartContent::Text(text(content)),
        content_type: None,
    };
    let multipart = FlowRequest {
        body: Body::Multipart(vec![part("one", "1"), part("two", "{$uuid}")]),
        ..request("POST", "/parts")
    };
    // A variable that is always set.
    let secret = std::env::var("PATH").expect("a path");
    let auth = Some(Auth::BearerOf("PATH".to_owned()));
    let empty = FlowRequest { auth, ..request("POST", "/empty") };
    let link = FlowRequest { body: Body::Text(text("plain {a}")), ..request("PATCH", "{c|raw}") };
    let mut flow = flow(vec![plain, templated, form, whole, multipart, empty, link]);
    flow.compression = vec![ContentCoding::Gzip, ContentCoding::Brotli];
    insta::assert_snapshot!(requests(&compiled(&flow)).replace(&secret, "SECRET"));
    flow.cookies = true;
    let kept = compiled(&flow);
    assert!(kept.requests.iter().all(|request| request.keep.headers && request.whole.is_none()));
}

#[test]
fn a_request_without_values_is_one_piece_and_keeps_nothing() {
    let compiled = compiled(&flow(vec![request("GET", "/")]));
    assert!(compiled.requests[0].whole.is_some());
    assert_eq!(compiled.requests[0].keep, reply::KeptParts::default());
    let bare = crate::http::Http::new(
        &target(),
        &[plimsoll_model::workload::HttpStep {
            name: String::new(),
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            status: None,
        }],
    );
    let mut out = Vec::new();
    let mut connection = bare.open(&mut Vec::new());
    let sending = Sending { step: 0, ticket: 0, now: Instant(0) };
    bare.send(&mut connection, &mut bare.user(0, 0), sending, &mut out);
    let mut driven = Driven::new(&compiled);
    driven.iterate(|_| ok("")).expect("it is right");
    assert_eq!(driven.sent, [String::from_utf8(out).expect("text")], "the bytes of the bare driver");
}

fn condition(value: &str, test: Test) -> Condition {
    Condition { value: reference(value), test }
}

#[test]
fn blocks_become_a_list_of_operations() {
    let exists = || condition("a", Test::Exists);
    let less = Test::Compare { comparison: Comparison::Less, with: text("3") };
    let pause = Instruction::Pause(Think::Constant(Duration::from_secs(1)));
    let steps = vec![
        Instruction::When {
            conditions: vec![exists(), condition("b", Test::Absent)],
            then: all(1),
            otherwise: Block(vec![pause]),
        },
        Instruction::When { conditions: vec![exists()], then: all(1), otherwise: Block::default() },
        Instruction::Each {
            list: id("list"),
            item: id("item"),
            at_most: 9,
            steps: Block(vec![Instruction::Repeat { times: 2, steps: all(1) }]),
        },
        Instruction::While { conditions: vec![condition("c", less)], at_most: 5, steps: all(2) },
        Instruction::Choose(vec![choice(1, all(1)), choice(4, all(2))]),
    ];
    let mut flow = with_steps(vec![request("GET", "/a"), request("GET", "/b")], steps);
    flow.on_stop = all(1);
    let compiled = compiled(&flow);
    let mut all = String::new();
    for (at, op) in compiled.program.ops.iter().enumerate() {
        writeln!(all, "{at:2} {op:?}").expect("text");
    }
    let program = &compiled.program;
    writeln!(
        all,
        "start {}, stop {}, actions {:?}",
        program.on_start,
        program.on_stop,
        program.choices(program.actions)
    )
    .expect("text");
    insta::assert_snapshot!(all);
    assert!(matches!(program.ops[0], Op::End));
}
