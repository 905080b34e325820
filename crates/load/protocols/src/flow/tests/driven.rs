//! Users that are driven by byte strings.

use super::*;
use plimsoll_model::flow::{
    Auth, Comparison, Condition, ContentCoding, Feed, FeedEnd, FeedOrder, MultipartPart, PartContent, Password, Test,
};
use plimsoll_model::load::Think;
use plimsoll_model::sql::{Distribution, Parameter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn value(json: &str) -> serde_json::Value {
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn what_is_captured_goes_into_the_next_request() {
    let first = capturing(
        request("GET", "/first"),
        [
            capture("a", json_at("$.items[1].id")),
            capture("b", Source::Regex { pattern: r"rev=(\d+)".to_owned(), group: 1 }),
            capture("c", Source::Header("X-Csrf".to_owned())),
            Capture { pick: Pick::All, ..capture("list", json_at("$.items[?@.on == true].id")) },
        ],
    );
    let second = FlowRequest {
        headers: vec![("X-Csrf".to_owned(), text("<{c}>"))],
        body: Body::Json(json(
            "{\"a\": <a>, \"b\": <b>, \"list\": <list>, \"text\": \"<<a>>/<<c>>\", \"n\": <$iteration>}",
        )),
        ..request("POST", "/second/{a}?b={b}&c={c}")
    };
    let compiled = compiled(&flow(vec![first, second]));
    let mut driven = Driven::new(&compiled);
    let body = r#"{"rev": "rev=17", "items": [{"id": "x y/\"z\"", "on": true}, {"id": 42, "on": true}, {"id": 9}]}"#;
    driven.iterate(|_| reply("200 OK", "X-CSRF: q=\"1\"&\r\n", body.as_bytes())).expect("it is right");
    assert_eq!(driven.lines()[1], "POST /second/42?b=17&c=q%3D%221%22%26");
    let (head, body) = driven.sent[1].split_once("\r\n\r\n").expect("a body");
    let json = r#"{"a": 42, "b": "17", "list": ["x y/\"z\"",42], "text": "42/q=\"1\"&", "n": 1}"#;
    assert_eq!(body, json);
    assert!(head.contains("X-Csrf: <q=\"1\"&>\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Type: application/json\r\nContent-Length: {}", json.len())), "{head}");
}

#[test]
fn one_of_many_matches_is_picked() {
    let picked = |pick, source: Source, body: &str| {
        let request = capturing(request("GET", "/"), [Capture { pick, ..capture("a", source) }]);
        let compiled = compiled(&flow(vec![request]));
        let mut driven = Driven::new(&compiled);
        let mut found = Vec::new();
        for _ in 0..20 {
            driven.iterate(|_| ok(body)).expect("it matches");
            found.push(driven.value("a"));
        }
        found.sort();
        found.dedup();
        found
    };
    let body = r#"{"a": ["x", "y", "z"]}"#;
    let pattern = || Source::Regex { pattern: "[xyz]".to_owned(), group: 0 };
    for source in [pattern, || json_at("$.a[*]")] {
        assert_eq!(picked(Pick::First, source(), body), ["x"]);
        assert_eq!(picked(Pick::Last, source(), body), ["z"]);
        assert_eq!(picked(Pick::Random, source(), body), ["x", "y", "z"]);
        assert_eq!(picked(Pick::All, source(), body), [r#"["x","y","z"]"#]);
    }
    assert_eq!(picked(Pick::First, json_at("$.a"), body), [r#"["x", "y", "z"]"#], "JSON as it stands");
}

#[test]
fn a_default_stands_for_what_is_not_there() {
    let with = |into, default| Capture { default: Some(value(default)), ..capture(into, json_at("$.none")) };
    let request = capturing(request("GET", "/"), [with("a", "\"text\""), with("b", "7"), with("list", "[]")]);
    let compiled = compiled(&flow(vec![request]));
    let mut driven = Driven::new(&compiled);
    driven.iterate(|_| ok("{}")).expect("there are defaults");
    assert_eq!((driven.value("a").as_str(), driven.value("b").as_str()), ("text", "7"));
    assert_eq!(driven.value("list"), "[]");
}

fn compare(value: &str, comparison: Comparison, with: &str) -> Condition {
    Condition { value: reference(value), test: Test::Compare { comparison, with: text(with) } }
}

#[test]
fn conditions_hold_as_people_read_them() {
    use Comparison::{AtLeast, AtMost, Equal, Greater, Less, NotEqual};
    let test = |test| Condition { value: reference("a"), test };
    let holds = |body: Option<&str>, condition: Condition| {
        let first = match body {
            Some(_) => capturing(request("GET", "/"), [capture("a", json_at("$"))]),
            None => request("GET", "/"),
        };
        let when = Instruction::When {
            conditions: vec![condition],
            then: Block(vec![Instruction::Request(1)]),
            otherwise: Block::default(),
        };
        let compiled = compiled(&with_steps(vec![first, request("GET", "/yes")], vec![Instruction::Request(0), when]));
        let mut driven = Driven::new(&compiled);
        driven.iterate(|_| ok(body.unwrap_or_default())).expect("it is right");
        driven.sent.len() == 2
    };
    for (body, condition, expected) in [
        ("10", compare("a", Greater, "9"), true),
        ("\"10\"", compare("a", Less, "9"), false),
        ("1.0", compare("a", Equal, "1"), true),
        ("9007199254740993", compare("a", Equal, "9007199254740992"), false),
        ("\"b\"", compare("a", Greater, "a"), true),
        ("\"10\"", compare("a", Less, "9x"), true),
        ("\"done\"", compare("a", Equal, "done"), true),
        ("\"done\"", compare("a", NotEqual, "done"), false),
        ("3", compare("a", AtMost, "3"), true),
        ("3", compare("a", AtLeast, "{$iteration}"), true),
        ("true", compare("a", Equal, "true"), true),
        ("\"inf\"", compare("a", Greater, "1"), true),
        ("null", test(Test::Exists), false),
        ("null", test(Test::Absent), true),
        ("0", test(Test::Exists), true),
        ("\"\"", test(Test::Exists), true),
        ("\"abc\"", test(Test::Contains(text("bc"))), true),
        ("\"abc\"", test(Test::Contains(text("cb"))), false),
        ("\"abc\"", test(Test::Matches("^a.c$".to_owned())), true),
        ("\"abc\"", test(Test::Matches("^b".to_owned())), false),
    ] {
        assert_eq!(holds(Some(body), condition.clone()), expected, "{body} {condition:?}");
    }
    for (condition, expected) in [
        (test(Test::Exists), false),
        (test(Test::Absent), true),
        (test(Test::Contains(text(""))), false),
        (test(Test::Matches(String::new())), false),
        (compare("a", Equal, ""), false),
        (compare("a", NotEqual, "x"), true),
    ] {
        assert_eq!(holds(None, condition.clone()), expected, "nothing captured: {condition:?}");
    }
}

#[test]
fn blocks_run_as_written() {
    let state = capturing(request("GET", "/state"), [capture("a", json_at("$.state"))]);
    let list = capturing(request("GET", "/list"), [capture("list", json_at("$.ids"))]);
    let item = request("GET", "/items/{item}");
    let steps = vec![
        Instruction::Request(1),
        Instruction::Each {
            list: id("list"),
            item: id("item"),
            at_most: 2,
            steps: Block(vec![Instruction::Repeat { times: 2, steps: Block(vec![Instruction::Request(2)]) }]),
        },
        Instruction::Request(0),
        Instruction::While {
            conditions: vec![compare("a", Comparison::NotEqual, "done")],
            at_most: 5,
            steps: Block(vec![Instruction::Pause(Think::Constant(Duration::from_millis(3))), Instruction::Request(0)]),
        },
        Instruction::When {
            conditions: vec![compare("a", Comparison::Equal, "queued")],
            then: Block(vec![Instruction::Request(1)]),
            otherwise: Block(vec![Instruction::Pause(Think::Constant(Duration::from_millis(9)))]),
        },
    ];
    let compiled = compiled(&with_steps(vec![state, list, item], steps));
    let mut driven = Driven::new(&compiled);
    let mut states = ["queued", "running", "done"].into_iter();
    driven
        .iterate(|sent| match sent {
            sent if sent.contains("/state") => {
                ok(&format!("{{\"state\": \"{}\"}}", states.next().expect("three states")))
            }
            _ => ok("{\"ids\": [\"x\", 7, \"left out\"]}"),
        })
        .expect("it is right");
    let items = ["GET /items/x", "GET /items/x", "GET /items/7", "GET /items/7"];
    let expected = [&["GET /list"], items.as_slice(), &["GET /state"; 3]].concat();
    assert_eq!(driven.lines(), expected);
    assert_eq!(driven.pauses, [3, 3, 9].map(|ms| Nanos(ms * 1_000_000)));
}

#[test]
fn a_user_starts_once_and_stops_once() {
    let login = capturing(request("POST", "/login"), [capture("a", json_at("$"))]);
    let mut flow =
        with_steps(vec![login, request("GET", "/{a}"), request("DELETE", "/{a}")], vec![Instruction::Request(1)]);
    flow.on_start = Block(vec![Instruction::Request(0)]);
    flow.on_stop = Block(vec![Instruction::Request(2)]);
    let kept = compiled(&flow);
    let mut driven = Driven::new(&kept);
    assert_eq!(driven.retire(|_| ok("0")), Ok(()), "who never began has nothing to end");
    let iterations: Result<(), Failure> = (0..2).try_for_each(|_| driven.iterate(|_| ok("1")));
    iterations.and_then(|()| driven.retire(|_| ok(""))).expect("it is right");
    assert_eq!(driven.lines(), ["POST /login", "begun", "GET /1", "GET /1", "DELETE /1"]);
    assert!(driven.flows.retires());
    driven.sent.clear();
    driven.iterate(|_| ok("2")).expect("it begins anew");
    assert_eq!(driven.lines(), ["POST /login", "begun", "GET /2"]);

    flow.lifetime = Lifetime::Iteration;
    let renewed = compiled(&flow);
    let mut driven = Driven::new(&renewed);
    let mut count = 0;
    for _ in 0..2 {
        driven
            .iterate(|sent| {
                count += u32::from(sent.starts_with("POST"));
                ok(&count.to_string())
            })
            .expect("it is right");
    }
    let second = ["DELETE /1", "POST /login", "begun", "GET /2"];
    assert_eq!(driven.lines(), [&["POST /login", "begun", "GET /1"], second.as_slice()].concat());
}

#[test]
fn what_an_iteration_captures_ends_with_it() {
    let kept = Capture { keep: true, ..capture("c", json_at("$")) };
    let requests = vec![
        capturing(request("POST", "/login"), [capture("a", json_at("$"))]),
        request("GET", "/no-b"),
        request("GET", "/no-c"),
        capturing(request("GET", "/{a}"), [capture("a", json_at("$")), capture("b", json_at("$")), kept]),
        request("DELETE", "/{b}"),
    ];
    let where_absent = |value: &str, step| Instruction::When {
        conditions: vec![Condition { value: reference(value), test: Test::Absent }],
        then: Block(vec![Instruction::Request(step)]),
        otherwise: Block::default(),
    };
    let mut flow = with_steps(requests, vec![where_absent("b", 1), where_absent("c", 2), Instruction::Request(3)]);
    flow.on_start = Block(vec![Instruction::Request(0)]);
    flow.on_stop = Block(vec![Instruction::Request(4)]);
    assert_eq!(flow.iteration_values().into_iter().collect::<Vec<_>>(), [id("b")]);
    let compiled = compiled(&flow);
    let mut driven = Driven::new(&compiled);
    let mut count = 0;
    let mut next = |_: &str| {
        count += 1;
        ok(&count.to_string())
    };
    for _ in 0..2 {
        driven.iterate(&mut next).expect("it is right");
    }
    driven.retire(&mut next).expect("it is right");
    let first = ["POST /login", "begun", "GET /no-b", "GET /no-c", "GET /1"];
    assert_eq!(driven.lines(), [first.as_slice(), &["GET /no-b", "GET /4", "DELETE /6"]].concat());
}

#[test]
fn a_user_that_failed_to_start_starts_again() {
    let mut flow = with_steps(vec![request("POST", "/login"), request("GET", "/")], vec![Instruction::Request(1)]);
    flow.on_start = Block(vec![Instruction::Request(0)]);
    let compiled = compiled(&flow);
    let mut driven = Driven::new(&compiled);
    let failure = driven.iterate(|_| reply("503 Busy", "", b"try \"later\"")).expect_err("it is not below 400");
    assert_eq!(
        (failure.kind, failure.detail.as_str()),
        (ErrorKind::Status, "expected a status below 400, found 503 with `try \"later\"`")
    );
    driven.iterate(|_| ok("")).expect("it is right now");
    assert_eq!(driven.lines(), ["POST /login", "POST /login", "begun", "GET /"]);
}

#[test]
fn actions_come_as_often_as_their_weights_say() {
    let mut flow = with_steps(vec![request("GET", "/0"), request("GET", "/1"), request("GET", "/2")], Vec::new());
    flow.actions = [0, 1, 3]
        .into_iter()
        .enumerate()
        .map(|(at, weight)| FlowAction { name: at.to_string(), weight, steps: Block(vec![Instruction::Request(at)]) })
        .collect();
    let compiled = compiled(&flow);
    let mut driven = Driven::new(&compiled);
    (0..2000).for_each(|_| driven.iterate(|_| ok("")).expect("it is right"));
    let mut counts = BTreeMap::new();
    driven.lines().into_iter().for_each(|line| *counts.entry(line).or_insert(0) += 1);
    assert!(!counts.contains_key("GET /0") && (400..600).contains(&counts["GET /1"]), "{counts:?}");
    assert_eq!(driven.flows.first_step(), None);
}

#[test]
fn choices_are_drawn_anew_in_each_round() {
    let one = |request| Block(vec![Instruction::Request(request)]);
    let inner = Instruction::Choose(vec![choice(1, one(1)), choice(1, Block::default())]);
    let choose = Instruction::Choose(vec![choice(1, one(0)), choice(4, Block(vec![inner])), choice(0, one(3))]);
    let steps = Block(vec![choose, Instruction::Request(2)]);
    let requests = ["/0", "/1", "/2", "/3"].map(|path| request("GET", path)).into();
    let compiled = compiled(&with_steps(requests, vec![Instruction::Repeat { times: 2000, steps }]));
    let mut driven = Driven::new(&compiled);
    driven.iterate(|_| ok("")).expect("it is right");
    let count = |line: &str| driven.lines().iter().filter(|sent| **sent == line).count();
    assert_eq!((count("GET /2"), count("GET /3")), (2000, 0));
    assert!((320..480).contains(&count("GET /0")), "a fifth: {}", count("GET /0"));
    assert!((720..880).contains(&count("GET /1")), "half of four fifths: {}", count("GET /1"));
}

#[test]
fn cookies_are_kept_and_sent_back() {
    let mut flow = flow(vec![
        capturing(request("GET", "/a/x"), [capture("a", Source::Cookie("sid".to_owned()))]),
        capturing(request("GET", "/a/y"), [capture("b", Source::Cookie("sid".to_owned()))]),
        request("GET", "/b"),
    ]);
    flow.cookies = true;
    let compiled = compiled(&flow);
    let mut driven = Driven::new(&compiled);
    let set = "Set-Cookie: sid=1; Path=/a\r\nSet-Cookie: all=2; Path=/\r\n";
    driven.iterate(|sent| reply("200 OK", if sent.contains("/a/x") { set } else { "" }, b"")).expect("it is right");
    let cookies = |sent: &String| sent.lines().find_map(|line| line.strip_prefix("Cookie: ")).map(str::to_owned);
    let sent: Vec<Option<String>> = driven.sent.iter().map(cookies).collect();
    assert_eq!(sent, [None, Some("sid=1; all=2".to_owned()), Some("all=2".to_owned())]);
    assert_eq!((driven.value("a").as_str(), driven.value("b").as_str()), ("1", "1"), "set, and kept");
}

#[test]
fn redirects_are_followed_on_the_same_server() {
    let post = FlowRequest {
        body: Body::Json(json("{\"id\": <$uuid>}")),
        ..capturing(request("POST", "/dir/start?x=1"), [capture("a", json_at("$.end"))])
    };
    for (status, second) in
        [("302 Found", "GET"), ("303 See Other", "GET"), ("307 Temporary", "POST"), ("308 Permanent", "POST")]
    {
        let mut flow = flow(vec![post.clone()]);
        flow.redirects = 2;
        let compiled = compiled(&flow);
        let mut driven = Driven::new(&compiled);
        let mut answers = [
            reply(status, "Location: next?y=2\r\n", b""),
            reply("301 Moved", "Location: http://127.0.0.1:8080/end#part\r\n", b""),
            ok("{\"end\": 5}"),
        ]
        .into_iter();
        driven.iterate(|_| answers.next().expect("three requests")).expect("it is right");
        // RFC 9110, section 15.4.2: clients make a GET of a POST after 301.
        assert_eq!(driven.lines(), ["POST /dir/start?x=1", &format!("{second} /dir/next?y=2"), "GET /end"]);
        assert_eq!(driven.value("a"), "5");
        let body = |sent: &String| sent.split_once("\r\n\r\n").expect("a head").1.to_owned();
        let bodies: Vec<String> = driven.sent.iter().map(body).collect();
        assert_eq!((second == "POST").then_some(&bodies[0]), (!bodies[1].is_empty()).then_some(&bodies[1]));
        assert!(!driven.sent[2].contains("Content-"), "{}", driven.sent[2]);
    }
}

#[test]
fn a_redirect_that_is_expected_is_not_followed() {
    let expecting = FlowRequest { checks: Checks { status: vec![302], ..Checks::default() }, ..request("GET", "/") };
    let mut flow = flow(vec![expecting]);
    flow.redirects = 5;
    let compiled = compiled(&flow);
    let mut driven = Driven::new(&compiled);
    driven.iterate(|_| reply("302 Found", "Location: /x\r\n", b"")).expect("it is expected");
    assert_eq!(driven.lines(), ["GET /"]);
}

#[test]
fn links_that_were_captured_are_followed() {
    let first = capturing(request("GET", "/"), [capture("a", json_at("$.next"))]);
    let compiled = compiled(&flow(vec![first, request("GET", "{a|raw}")]));
    for (link, expected) in [
        ("/p?x=%20&y=u".to_owned(), "GET /p?x=%20&y=u"),
        ("http://127.0.0.1:8080/q?z".to_owned(), "GET /q?z"),
        ("r/s".to_owned(), "GET /r/s"),
    ] {
        let mut driven = Driven::new(&compiled);
        driven.iterate(|_| ok(&format!("{{\"next\": \"{link}\"}}"))).expect("it is right");
        assert_eq!(driven.lines()[1], expected);
    }
}

#[test]
fn bodies_are_decoded_before_anybody_looks() {
    let checks = Checks { contains: vec![text("hello")], ..Checks::default() };
    let mut flow = flow(vec![FlowRequest { checks, ..capturing(request("GET", "/"), [capture("a", json_at("$.a"))]) }]);
    flow.compression = vec![ContentCoding::Gzip];
    let compiled = compiled(&flow);
    let mut driven = Driven::new(&compiled);
    let body = plimsoll_web::coding::encode(b"{\"a\": \"hello\"}", Coding::Gzip).expect("gzip");
    driven.iterate(|_| reply("200 OK", "Content-Encoding: gzip\r\n", &body)).expect("it is right");
    assert_eq!(driven.value("a"), "hello");
    assert!(driven.sent[0].contains("Accept-Encoding: gzip\r\n"));
    let failure = driven.iterate(|_| reply("200 OK", "Content-Encoding: gzip\r\n", b"{}")).expect_err("it is no gzip");
    assert_eq!(failure.kind, ErrorKind::Protocol);
}

#[test]
fn users_say_who_they_are() {
    let basic = |password| Some(Auth::Basic { user: text("u{a}"), password });
    let first = capturing(request("GET", "/"), [capture("a", json_at("$"))]);
    let second = FlowRequest { auth: basic(Password::Value(id("a"))), ..request("GET", "/b") };
    let third = FlowRequest { auth: Some(Auth::Bearer(text("{a}"))), ..request("GET", "/c") };
    let compiled = compiled(&flow(vec![first, second, third]));
    let mut driven = Driven::new(&compiled);
    driven.iterate(|_| ok("\"é1\"")).expect("it is right");
    // `ué1:é1` in UTF-8 (RFC 7617, section 2.1).
    assert!(driven.sent[1].contains("\r\nAuthorization: Basic dcOpMTrDqTE=\r\n"), "{}", driven.sent[1]);
    assert!(driven.sent[2].contains("\r\nAuthorization: Bearer é1\r\n"));
}

#[test]
fn forms_and_files_are_sent_as_servers_read_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a doc.bin");
    std::fs::write(&file, "file {a}").expect("written");
    let first = capturing(request("GET", "/"), [capture("a", json_at("$"))]);
    let form = FlowRequest {
        body: Body::Form(vec![(text("x y"), text("{a}&")), (text("n"), text(""))]),
        ..request("POST", "/form")
    };
    let parts = vec![
        MultipartPart { name: "note".to_owned(), content: PartContent::Text(text("-{a}-")), content_type: None },
        MultipartPart {
            name: "doc".to_owned(),
            content: PartContent::File(file.clone()),
            content_type: Some("application/pdf".to_owned()),
        },
    ];
    let multipart = FlowRequest { body: Body::Multipart(parts), ..request("POST", "/parts") };
    let whole = FlowRequest { body: Body::File(file), ..request("PUT", "/file") };
    let compiled = compiled(&flow(vec![first, form, multipart, whole]));
    let mut driven = Driven::new(&compiled);
    driven.iterate(|_| ok("\"1 é\"")).expect("it is right");
    let body = |at: usize| driven.sent[at].split_once("\r\n\r\n").expect("a body");
    assert_eq!(body(1).1, "x+y=1+%C3%A9%26&n=");
    let line = "------plimsoll0000000000000000";
    let expected = format!(
        "{line}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n-1 é-\r\n{line}\r\n\
         Content-Disposition: form-data; name=\"doc\"; filename=\"a doc.bin\"\r\nContent-Type: application/pdf\r\n\r\n\
         file {{a}}\r\n{line}--\r\n"
    );
    assert_eq!(body(2).1, expected);
    assert!(body(2).0.ends_with(&format!(
        "Content-Type: multipart/form-data; boundary=----plimsoll0000000000000000\r\nContent-Length: {}",
        expected.len()
    )));
    assert_eq!(body(3).1, "file {a}");
}

#[test]
fn uuids_are_new_each_time_and_well_formed() {
    let compiled = compiled(&flow(vec![request("GET", "/{$uuid}/{$uuid}")]));
    let mut seen = std::collections::HashSet::new();
    for number in 0..20 {
        let mut driven = Driven::numbered(&compiled, number);
        (0..20).for_each(|_| driven.iterate(|_| ok("")).expect("it is right"));
        for uuid in driven.lines().into_iter().flat_map(|line| line.split('/').skip(1)) {
            let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
            assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
            assert!(seen.insert(uuid.to_owned()), "{uuid} came twice");
        }
    }
}

#[test]
fn values_are_drawn_for_each_iteration_and_follow_from_the_seed() {
    let mut flow = flow(vec![request("GET", "/{page}"), request("GET", "/again/{page}/{a}")]);
    let numbers = Parameter::Number { low: 1, high: 1_000_000, distribution: Distribution::Uniform };
    flow.draws = vec![(id("page"), numbers), (id("a"), Parameter::Text(5))];
    let compiled = compiled(&flow);
    let lines = |number| {
        let mut driven = Driven::numbered(&compiled, number);
        (0..3).for_each(|_| driven.iterate(|_| ok("")).expect("it is right"));
        driven.lines().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let drawn = lines(0);
    let pages: Vec<&str> = drawn.iter().step_by(2).map(|line| line.trim_start_matches("GET /")).collect();
    assert!(drawn[1].starts_with(&format!("GET /again/{}/", pages[0])), "{drawn:?}");
    assert!(pages[0] != pages[1] && pages[1] != pages[2], "{pages:?}");
    assert_eq!(drawn, lines(0));
    assert_ne!(drawn, lines(1));
}

fn feed(file: &Path, order: FeedOrder, at_end: FeedEnd) -> Feed {
    let columns = vec![(id("account.name"), "name".to_owned()), (id("account.key"), "key".to_owned())];
    Feed { name: "account".to_owned(), file: file.to_owned(), order, at_end, columns }
}

fn accounts(folder: &Path) -> PathBuf {
    let file = folder.join("accounts.csv");
    std::fs::write(&file, "key,name\nk0,n0\nk1,n1\nk2,n2\n").expect("written");
    file
}

#[test]
fn users_take_rows_of_feeds() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = accounts(folder.path());
    let rows = |order, at_end| {
        let mut flow = flow(vec![request("GET", "/{account.name}/{account.key}")]);
        flow.feeds = vec![feed(&file, order, at_end)];
        let compiled = compiled(&flow);
        let mut driven = Driven::numbered(&compiled, 1);
        (0..4).for_each(|_| driven.iterate(|_| ok("")).expect("it is right"));
        driven.lines().into_iter().map(|line| line.trim_start_matches("GET /").to_owned()).collect::<Vec<_>>()
    };
    let (over, stop) = (FeedEnd::StartOver, FeedEnd::Stop);
    assert_eq!(rows(FeedOrder::PerUser, over), ["n1/k1"; 4]);
    assert_eq!(rows(FeedOrder::InOrder, over), ["n0/k0", "n1/k1", "n2/k2", "n0/k0"]);
    assert_eq!(rows(FeedOrder::InOrder, stop), ["n0/k0", "n1/k1", "n2/k2", "stop"]);
    assert_eq!(rows(FeedOrder::Unique, over), ["n0/k0", "n1/k1", "n2/k2", "stop"]);
    assert_eq!(rows(FeedOrder::Random, over), rows(FeedOrder::Random, stop));
}

#[test]
fn a_feed_that_is_used_up_is_the_reason_why_users_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = accounts(folder.path());
    let stopped = |order, at_end, user| {
        let mut flow = flow(vec![request("GET", "/{account.name}")]);
        flow.feeds = vec![feed(&file, order, at_end)];
        let compiled = compiled(&flow);
        let mut driven = Driven::numbered(&compiled, user);
        (0..4).for_each(|_| driven.iterate(|_| ok("")).expect("it is right"));
        compiled.stopped()
    };
    let (over, stop) = (FeedEnd::StartOver, FeedEnd::Stop);
    assert_eq!(stopped(FeedOrder::InOrder, over, 0), None);
    assert_eq!(stopped(FeedOrder::PerUser, stop, 2), None);
    let why = stopped(FeedOrder::PerUser, stop, 3).expect("there is no fourth row");
    assert!(why.contains("has a row for each of 3 users"), "{why}");
    let why = stopped(FeedOrder::Unique, stop, 0).expect("there is no fourth row");
    assert!(why.starts_with("all 3 rows of feed `account`") && why.contains("into the measure phase"), "{why}");
}

#[test]
fn threads_together_take_every_row_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ids.csv");
    let ids: Vec<String> = (0..103).map(|id| id.to_string()).collect();
    std::fs::write(&file, format!("name,key\n{}", ids.iter().map(|id| format!("{id},x\n")).collect::<String>()))
        .expect("written");
    let mut flow = flow(vec![request("GET", "/{account.name}")]);
    flow.feeds = vec![feed(&file, FeedOrder::Unique, FeedEnd::Stop)];
    let compiled = compiled(&flow);
    for threads in [1, 2, 3, 8] {
        let mut taken: Vec<String> = Vec::new();
        for index in 0..threads {
            let share = Share { index, of: threads };
            let mut driven = Driven::on_thread(&compiled, share, index as u64);
            while driven.sent.last().is_none_or(|last| last != "stop") {
                driven.iterate(|_| ok("")).expect("it is right");
            }
            taken.extend(driven.lines().iter().filter_map(|line| line.strip_prefix("GET /")).map(str::to_owned));
        }
        taken.sort_by_key(|id| id.parse::<u32>().unwrap_or(u32::MAX));
        assert_eq!(taken, ids, "{threads} threads");
    }
}
