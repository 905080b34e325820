//! What is wrong with a flow, and what may go wrong with a reply.

use super::*;
use plimsoll_model::flow::{Auth, Condition, Feed, FeedEnd, FeedOrder, MultipartPart, PartContent, Password, Test};
use plimsoll_model::sql::{Distribution, Parameter};
use std::fs;

fn faults(flow: &Flow) -> Vec<String> {
    let faults = CompiledFlow::new(flow, &target()).err().expect("something is wrong");
    faults.into_iter().map(|fault| fault.what).collect()
}

#[test]
fn everything_wrong_with_a_flow_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("empty.csv"), "name,key\n").expect("written");
    fs::write(path("lacks.csv"), "name,id\nx,1\n").expect("written");
    let feed = |file: &str| Feed {
        name: "account".to_owned(),
        file: path(file),
        order: FeedOrder::InOrder,
        at_end: FeedEnd::StartOver,
        columns: vec![(id("account.key"), "key".to_owned())],
    };
    let pattern = |pattern: &str, group| Source::Regex { pattern: pattern.to_owned(), group };
    let captures = [capture("a", json_at("$.[")), capture("b", pattern("(", 0)), capture("c", pattern("(a)", 2))];
    let checks =
        Checks { matches: vec!["[".to_owned()], json: vec![("$$".to_owned(), json("1"))], ..Checks::default() };
    let password = Password::Environment("PLIMSOLL_TEST_NOT_SET".to_owned());
    let part = MultipartPart { name: "f".to_owned(), content: PartContent::File(path("none.bin")), content_type: None };
    let requests = vec![
        FlowRequest { checks, ..capturing(request("GET", "/captures"), captures) },
        FlowRequest { auth: Some(Auth::Basic { user: text("bob"), password }), ..request("GET", "/basic") },
        FlowRequest { body: Body::File(path("none.txt")), ..request("PUT", "/file") },
        FlowRequest { body: Body::Multipart(vec![part]), ..request("POST", "/parts") },
    ];
    let deep = (0..5).fold(all(1), |steps, _| Block(vec![Instruction::Repeat { times: 2, steps }]));
    let when = Instruction::When {
        conditions: vec![Condition { value: reference("a"), test: Test::Matches("*".to_owned()) }],
        then: deep,
        otherwise: Block::default(),
    };
    let mut flow = with_steps(requests, vec![when]);
    flow.feeds = vec![feed("none.csv"), feed("empty.csv"), feed("lacks.csv")];
    flow.draws = vec![(id("page"), Parameter::Number { low: 2, high: 1, distribution: Distribution::Uniform })];
    flow.actions[0].weight = 0;
    let found = faults(&flow).join("\n").replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(found);
}

/// What a user says of the reply to a request with this capture or check.
fn failure(request: FlowRequest, reply: &[u8]) -> (ErrorKind, String) {
    let compiled = compiled(&flow(vec![request]));
    let failure = Driven::new(&compiled).iterate(|_| reply.to_vec()).expect_err("it is wrong");
    (failure.kind, failure.detail)
}

#[test]
fn a_capture_without_a_match_fails_the_step_with_a_sample_of_the_body() {
    let with = |source| capturing(request("GET", "/"), [capture("a", source)]);
    let page = ok("<html>\n\"no\"</html>");
    for (request, reply, expected) in [
        (with(json_at("$.id")), &page, "expected JSON to find `$.id` in, found `<html>\\n\"no\"</html>`"),
        (with(json_at("$.id[*]")), &page, "expected JSON to find `$.id[*]` in, found `<html>\\n\"no\"</html>`"),
        (with(json_at("$.id")), &ok(""), "expected JSON to find `$.id` in, found an empty body"),
        (with(json_at("$.id")), &ok("{\"id\": tru}"), "expected JSON to find `$.id` in, found `{\"id\": tru}`"),
        (
            with(json_at("$.id")),
            &ok("{\"name\": 1}"),
            "expected a value under `$.id` for `{$a}`, found none in `{\"name\": 1}`",
        ),
        (
            with(Source::Regex { pattern: "id=(\\d+)".to_owned(), group: 1 }),
            &ok("id=x"),
            "expected a match of `id=(\\d+)` for `{$a}`, found none in `id=x`",
        ),
        (
            with(Source::Header("X-Id".to_owned())),
            &ok("body"),
            "expected a header `X-Id` for `{$a}`, found none in the reply",
        ),
        (
            with(Source::Cookie("sid".to_owned())),
            &reply("200 OK", "Set-Cookie: other=1\r\n", b""),
            "expected a cookie `sid` for `{$a}`, found none in the reply",
        ),
    ] {
        assert_eq!(failure(request, reply), (ErrorKind::Capture, expected.to_owned()));
    }
    let (_, long) = failure(with(json_at("$.id")), &ok(&"ü".repeat(5000)));
    assert!(long.len() < 700 && long.ends_with("…`"), "{long}");
    let (kind, large) = failure(with(json_at("$.id")), &ok(&format!("{{\"id\": \"{}\"}}", "x".repeat(70_000))));
    assert_eq!((kind, large.as_str()), (ErrorKind::Capture, "expected at most 65536 bytes for `{$a}`, found 70000"));
}

#[test]
fn a_reply_that_is_not_as_expected_says_why() {
    let with = |checks| FlowRequest { checks, ..request("GET", "/") };
    let default = Checks::default;
    let reply = reply("202 Accepted", "X-State: a\r\n", b"{\"ok\": false, \"n\": [1, 2]}");
    let sample = "`{\"ok\": false, \"n\": [1, 2]}`";
    for (checks, kind, expected) in [
        (
            Checks { status: vec![200, 201], ..default() },
            ErrorKind::Status,
            "expected status 200 or 201, found 202".to_owned(),
        ),
        (
            Checks { within: Some(Duration::from_millis(4)), ..default() },
            ErrorKind::Check,
            "expected the reply within 4 ms, found it after 5.0 ms".to_owned(),
        ),
        (
            Checks { header: vec![("x-state".to_owned(), text("b"))], ..default() },
            ErrorKind::Check,
            "expected the header `x-state` to be `b`, found `a`".to_owned(),
        ),
        (
            Checks { header: vec![("x-none".to_owned(), text("b"))], ..default() },
            ErrorKind::Check,
            "expected the header `x-none` to be `b`, found none".to_owned(),
        ),
        (
            Checks { json: vec![("$.ok".to_owned(), json("true"))], ..default() },
            ErrorKind::Check,
            format!("expected `$.ok` to be `true`, found `false` in {sample}"),
        ),
        (
            Checks { json: vec![("$.none".to_owned(), json("null"))], ..default() },
            ErrorKind::Check,
            format!("expected `$.none` to be `null`, found none in {sample}"),
        ),
        (
            Checks { contains: vec![text("no")], ..default() },
            ErrorKind::Check,
            format!("expected a body that contains `no`, found {sample}"),
        ),
        (
            Checks { matches: vec!["^no".to_owned()], ..default() },
            ErrorKind::Check,
            format!("expected a body that matches `^no`, found {sample}"),
        ),
    ] {
        assert_eq!(failure(with(checks), &reply), (kind, expected));
    }
    let right = Checks {
        status: vec![202],
        within: Some(Duration::from_millis(5)),
        header: vec![("X-State".to_owned(), text("a"))],
        json: vec![("$.ok".to_owned(), json("false")), ("$.n".to_owned(), json("[1,2]"))],
        contains: vec![text("ok")],
        matches: vec!["n.*2".to_owned()],
    };
    let compiled = compiled(&flow(vec![with(right)]));
    assert_eq!(Driven::new(&compiled).iterate(|_| reply.clone()), Ok(()));
}

#[test]
fn a_request_that_cannot_be_made_is_refused() {
    let first = || capturing(request("GET", "/"), [capture("a", json_at("$"))]);
    let bearer = FlowRequest { auth: Some(Auth::Bearer(text("{a}"))), ..request("GET", "/b") };
    let basic = Some(Auth::Basic { user: text("x"), password: Password::Value(id("b")) });
    for (second, body, kind, expected) in [
        (request("GET", "/{b}"), "1", ErrorKind::Capture, "expected a value for `{$b}`, found none captured so far"),
        (
            FlowRequest { auth: basic, ..request("GET", "/") },
            "1",
            ErrorKind::Capture,
            "expected a value for `{$b}`, found none captured so far",
        ),
        (
            bearer,
            "\"one\\r\\ntwo\"",
            ErrorKind::Capture,
            "expected `{$a}` to be one line, as it is part of a header, found `one\\r\\ntwo`",
        ),
        (
            request("GET", "{a|raw}"),
            "\"/a b\"",
            ErrorKind::Capture,
            "expected `{$a}` to be a link without spaces, control characters and letters beyond ASCII, found `/a b`",
        ),
        (
            request("GET", "{a|raw}"),
            "\"http://elsewhere/x\"",
            ErrorKind::Redirect,
            "expected a link to the same server, found `http://elsewhere/x`: flows go to the workload's target alone",
        ),
    ] {
        let compiled = compiled(&flow(vec![first(), second]));
        let mut driven = Driven::new(&compiled);
        let failure = driven.iterate(|_| ok(body)).expect_err("it cannot be made");
        assert_eq!((failure.kind, failure.detail.as_str()), (kind, expected));
        assert_eq!(driven.sent.len(), 1, "nothing of it is sent");
    }
}

#[test]
fn redirects_that_lead_nowhere_are_failures() {
    let mut flow = flow(vec![request("GET", "/")]);
    flow.redirects = 2;
    let compiled = compiled(&flow);
    for (location, requests, expected) in [
        ("/again", 3, "expected at most 2 redirects in a row, found another one to `/again`"),
        (
            "https://127.0.0.1:8080/x",
            1,
            "expected a link to the same server, found `https://127.0.0.1:8080/x`: flows go to the workload's target alone",
        ),
        (
            "http://[x]/",
            1,
            "expected a URL such as `https://example.com/path`, found `http://[x]/`: `[x]` is no IPv6 address in brackets",
        ),
    ] {
        let mut driven = Driven::new(&compiled);
        let location = format!("Location: {location}\r\n");
        let failure = driven.iterate(|_| reply("302 Found", &location, b"")).expect_err("it leads nowhere");
        assert_eq!((failure.kind, failure.detail.as_str()), (ErrorKind::Redirect, expected));
        assert_eq!(driven.sent.len(), requests);
    }
}

#[test]
fn loops_end() {
    let forever = |steps| Instruction::While {
        conditions: vec![Condition { value: Reference::User, test: Test::Exists }],
        at_most: 2_000_000,
        steps,
    };
    let mut flow = with_steps(vec![request("GET", "/")], vec![forever(Block::default())]);
    let idle = compiled(&flow);
    let failure = Driven::new(&idle).iterate(|_| ok("")).expect_err("it does nothing");
    assert_eq!(
        (failure.kind, failure.detail.as_str()),
        (ErrorKind::Check, "expected a request or a pause in the loops of the flow, found none in a million rounds")
    );
    let Instruction::While { at_most, steps, .. } = &mut flow.actions[0].steps.0[0] else { panic!("a loop") };
    (*at_most, *steps) = (3, all(1));
    let bounded = compiled(&flow);
    let mut driven = Driven::new(&bounded);
    let failure = driven.iterate(|_| ok("")).expect_err("it goes on");
    assert_eq!(failure.detail, "expected a loop to end after at most 3 rounds, found `{$user}` to be `1`");
    assert_eq!(driven.sent.len(), 3);
}

#[test]
fn only_lists_have_items() {
    let first = capturing(request("GET", "/"), [capture("list", json_at("$"))]);
    let each = Instruction::Each { list: id("list"), item: id("item"), at_most: 9, steps: all(1) };
    let compiled = compiled(&with_steps(vec![first], vec![Instruction::Request(0), each]));
    let failure = Driven::new(&compiled).iterate(|_| ok("{\"a\": 1}")).expect_err("it is an object");
    assert_eq!(failure.detail, "expected a list in `{$list}`, found `{\"a\": 1}`");
    assert_eq!(Driven::new(&compiled).iterate(|_| ok("null")), Ok(()), "nothing is an empty list");
}
