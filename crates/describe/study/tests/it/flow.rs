//! Studies of flows and of scripts: what they become.

use crate::{read_text, study};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::flow::{
    Auth, Block, Body, Condition, Flow, Instruction, JsonPiece, Lifetime, Piece, Reference, Test, Text, ValueId,
};
use plimsoll_model::script::{Script, ScriptLimits};
use plimsoll_model::workload::{Protocol, Steps, Workload};
use plimsoll_study::Bindings;
use std::path::Path;
use std::time::Duration;

/// Users that log in, branch and wait.
pub(crate) const FLOW: &str = include_str!("flow.toml");

/// Users that run a script.
pub(crate) const SCRIPT: &str = include_str!("script.toml");

fn levels() -> Assignment {
    Assignment(vec![("version".to_owned(), Level::Text("2".to_owned())), ("users".to_owned(), Level::Integer(100))])
}

fn workload(text: &str) -> Workload {
    let bindings = Bindings { ports: [("api".to_owned(), 4321)].into(), ..Bindings::default() };
    study(text).resolve(&levels(), &bindings).expect("a trial").workload
}

fn flow(text: &str) -> Flow {
    let Steps::Flow(flow) = workload(text).steps else { panic!("a flow") };
    *flow
}

fn script(text: &str) -> Script {
    let Steps::Script(script) = workload(text).steps else { panic!("a script") };
    *script
}

/// The text as a study would write it.
fn written(flow: &Flow, text: &Text) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Value { value: Reference::Value(id), .. } => format!("{{${}}}", flow.values[usize::from(id.0)]),
        Piece::Value { value, .. } => format!("{{${value:?}}}"),
    };
    text.0.iter().map(piece).collect()
}

#[test]
fn a_flow_has_values_by_number_and_what_holds_for_all_requests_in_each() {
    let flow = flow(FLOW);
    assert_eq!(flow.values, ["page", "account.key", "account.name", "token", "plan", "ids", "next", "id"]);
    assert_eq!(
        flow.names(),
        [
            "log in",
            "POST /plan",
            "GET /plans?page={$page}",
            "GET /plan/{$plan}",
            "PUT /item/{$next}",
            "GET /item/{$id}",
            "POST /form",
            "DELETE /plan/{$plan}"
        ]
    );
    let [log_in, make, ..] = flow.requests.as_slice() else { panic!("requests") };
    assert_eq!(log_in.auth, None, "made as nobody");
    assert_eq!(
        make.auth,
        Some(Auth::Bearer(Text(vec![Piece::Value { value: Reference::Value(ValueId(3)), raw: false }])))
    );
    assert_eq!(written(&flow, &make.headers[1].1), "100", "a factor in a header of all requests");
    let Body::Json(json) = &log_in.body else { panic!("JSON") };
    let literal = |text: &str| JsonPiece::Literal(text.to_owned());
    let key = JsonPiece::Whole(Reference::Value(ValueId(1)));
    assert_eq!(json.0, [literal("{\"key\":"), key, literal(",\"tries\":1}")]);
    let Body::Json(json) = &make.body else { panic!("JSON") };
    let name = JsonPiece::Inside(Reference::Value(ValueId(2)));
    let uuid = JsonPiece::Whole(Reference::Uuid);
    assert_eq!(json.0, [literal("{\"id\":"), uuid, literal(",\"user\":\"u-"), name, literal("\"}")]);
    assert_eq!((flow.cookies, flow.redirects, flow.lifetime), (true, 5, Lifetime::Trial));
    assert_eq!(flow.feeds[0].file, Path::new("/study/accounts.csv"));
    assert_eq!(flow.feeds[0].columns, [(ValueId(1), "key".to_owned()), (ValueId(2), "name".to_owned())]);
    assert!(flow.pauses());
    let passing: Vec<&str> =
        flow.iteration_values().into_iter().map(|value| flow.values[usize::from(value.0)].as_str()).collect();
    assert_eq!(passing, ["ids", "next", "id"], "what only iterations capture ends with them");
}

#[test]
fn branches_and_loops_are_blocks() {
    let flow = flow(FLOW);
    let [browse, work] = flow.actions.as_slice() else { panic!("two actions") };
    assert_eq!(((browse.name.as_str(), browse.weight), (work.name.as_str(), work.weight)), (("browse", 1), ("2", 4)));
    let [Instruction::Request(3), Instruction::When { conditions, then, otherwise }, each, repeat] =
        work.steps.0.as_slice()
    else {
        panic!("{:?}", work.steps)
    };
    let [Condition { value: Reference::Value(ValueId(6)), test: Test::Compare { with, .. } }] = conditions.as_slice()
    else {
        panic!("{conditions:?}")
    };
    assert_eq!(with, &Text::default(), "an empty text stands in quotes");
    assert_eq!((then.0.len(), otherwise.0.len()), (1, 1));
    let Instruction::Each { list: ValueId(5), item: ValueId(7), at_most: 20, steps: Block(inside) } = each else {
        panic!("{each:?}")
    };
    assert!(matches!(&inside[..], [Instruction::When { .. }]), "the condition of a request is one around it");
    assert!(matches!(repeat, Instruction::Repeat { times: 3, .. }));
}

#[test]
fn one_of_several_choices_is_drawn() {
    let choose = |choices: &str| {
        FLOW.replace("repeat = 3, steps = [", &format!("choose = [{choices}{{ name = 'form', weight = 4, steps = ["))
            .replace("b = \"{$next}\" } }]", "b = \"{$next}\" } }] }]")
    };
    let with_two = choose("{ steps = [{ get = '/plan/{$plan}', capture = { seen = { header = 'x' } } }] }, ");
    let flow = flow(&with_two);
    let Some(Instruction::Choose(choices)) = flow.actions[1].steps.0.last() else { panic!("{:?}", flow.actions[1]) };
    let named: Vec<_> =
        choices.iter().map(|choice| (choice.name.as_str(), choice.weight, choice.steps.0.len())).collect();
    assert_eq!(named, [("1", 1, 1), ("form", 4, 1)]);
    let facts = study(&with_two).facts();
    let told = "then one of (GET /plan/{$plan} (weight 1) or form (weight 4)) (weight 4)";
    assert!(facts.workload.contains(told), "{}", facts.workload);
    let doubted = with_two.replace("on_stop     = [", "on_stop     = [{ get = '/{$seen}' }, ");
    let (_, said) = read_text(&doubted);
    assert!(said.iter().any(|one| one.to_string().contains("`seen` may not be known here")), "{said:?}");
}

#[test]
fn a_flow_says_what_it_is_about() {
    let facts = study(FLOW).facts();
    assert_eq!(
        facts.workload,
        "HTTP/1.1 to {api.address}: browse (weight 1) or GET /plan/{$plan}, then if next != '' (PUT /item/{$next}), else (a \
         pause (10s)), then for each of ids (if id matches ^[a-z] (GET /item/{$id})), then 3 times (POST /form) (weight 4); before \
         that log in, then POST /plan; at the end DELETE /plan/{$plan}; cookies kept; 5 redirects followed, each an exchange \
         of its own; compressed by gzip or br; feeds account of accounts.csv (per user); one connection per user; time-out 10s"
    );
    assert_eq!((facts.protocol, facts.mean_think), (Protocol::Http, None), "nobody knows how long users pause");
    assert_eq!(facts.load, "closed loop, {users} users, pauses as the workload has them");
    let polls = FLOW.replace("repeat = 3", "while = { next = 'busy', plan = '!= 1' }, at_most = 5");
    let facts = study(&polls).facts();
    let told = "while next is busy and plan != 1, at most 5 times (POST /form)";
    assert!(facts.workload.contains(told), "{}", facts.workload);
}

#[test]
fn without_any_key_of_a_flow_it_is_none() {
    let plain = FLOW.split("cookies").next().expect("a start").to_owned()
        + "steps = [{ get = '/{version}', headers = { a = '{users}' }, expect = { status = 200 } }]\n\
           [load]\nusers = '{users}'\nduration = '30s'\n";
    let Steps::Http(steps) = workload(&plain).steps else { panic!("plain requests") };
    assert_eq!((steps[0].path.as_str(), steps[0].status), ("/2", Some(200)));
    assert_eq!(steps[0].headers, [("a".to_owned(), "100".to_owned())]);
    for key in
        ["capture = { a = { header = 'b' } }", "json = []", "expect = { within = '1s' }", "headers = { a = '{$user}' }"]
    {
        let text = plain
            .replace("headers = { a = '{users}' }, expect = { status = 200 }", key)
            .replace("'/{version}'", "'/{version}/{users}'");
        assert!(matches!(workload(&text).steps, Steps::Flow(_)), "{key}");
    }
}

#[test]
fn values_that_are_known_on_some_ways_only_are_warnings() {
    // Otherwise it ends with its iteration, and no other one ever knows it.
    let kept = FLOW.replacen("default = \"\"", "default = \"\", keep = true", 1);
    let said = |old: &str, new: &str| {
        assert!(kept.contains(old), "`{old}` is not in the study");
        let (study, said) = read_text(&kept.replacen(old, new, 1));
        assert!(study.is_some(), "{said:?}");
        said.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (old, new) in [
        ("/plans?page={$page}", "/plans?page={$page}&next={$next}"),
        ("b = \"{$next}\"", "b = '{$id}'"),
        ("get     = \"/plan/{$plan}\",", "get = \"/plan/{$plan}\", when = { plan = 'x' },"),
        ("get     = \"/plan/{$plan}\",", "get = \"/plan/{$next}\","),
    ] {
        let said = said(old, new);
        assert!(!said.is_empty() && said.iter().all(|one| one.contains("may not be known here")), "{new}: {said:?}");
    }
    let asked = said("{ get = \"/plans?page={$page}\" }", "{ get = '/{$next}/{$page}', when = { next = 'exists' } }");
    assert!(asked.is_empty(), "{asked:?}");
    let asked = said("/plans?page={$page}", "/plans?page={$page}&a={$user}{$iteration}{$now}");
    assert!(asked.is_empty(), "{asked:?}");
    let doubted = said("\"!= ''\"", "'contain x'");
    assert!(doubted[0].ends_with("did you mean `contains`? if not, write `== contain x`"), "{doubted:?}");
}

#[test]
fn a_script_is_told_what_the_study_says_and_nothing_else() {
    let script = script(SCRIPT);
    assert_eq!((script.entry.as_path(), script.exec.as_str()), (Path::new("/study/load-2.js"), "main"));
    assert_eq!(script.env, [("TARGET".to_owned(), "http://127.0.0.1:4321".to_owned())].into());
    assert_eq!(script.files, [Path::new("/study/../data")]);
    let limits = ScriptLimits { memory: 32 << 20, iteration: Some(Duration::from_secs(5)), ..ScriptLimits::default() };
    assert_eq!((script.limits, script.allowed.as_slice()), (limits, &[][..]));
    let allowing = format!("{SCRIPT}\n[targets]\nallow = ['staging.example.org']\n");
    assert_eq!(self::script(&allowing).allowed, ["staging.example.org"]);
    assert!(study(SCRIPT).facts().loopback && !study(&allowing).facts().loopback);
}

#[test]
fn a_script_says_what_it_is_about() {
    let facts = study(SCRIPT).facts();
    assert_eq!(
        facts.workload,
        "the script load-{version}.js, function main, with TARGET=http://{api.address}; time-out 60s where it says nothing else"
    );
    assert_eq!((facts.protocol, facts.mean_think), (Protocol::Script, None));
}

/// Users that hold a socket.
const SOCKET: &str = include_str!("socket.toml");

#[test]
fn a_socket_has_its_opening_behind_all_requests_and_its_messages_in_order() {
    let flow = flow(SOCKET);
    assert_eq!(flow.names(), ["log in", "post", "open socket", "status", "hello"]);
    let socket = flow.socket.as_ref().expect("a socket");
    let opening = &flow.requests[socket.opening];
    assert_eq!(
        (opening.name.as_str(), written(&flow, &opening.path)),
        ("open socket", "/websocket?user={$User}".to_owned())
    );
    assert!(matches!(opening.auth, Some(Auth::Bearer(_))), "as the workload says");
    let waits = socket.reconnect.expect("it is opened again");
    assert_eq!((waits.first, waits.most), (Duration::from_secs(1), Duration::from_secs(30)));
    assert_eq!((socket.ping, socket.compression), (Some(Duration::from_secs(30)), false));
    let deliveries = socket.deliveries.as_ref().expect("they are looked at");
    assert_eq!(
        (flow.values[usize::from(deliveries.listens_to.0)].as_str(), deliveries.within),
        ("channels", Duration::from_secs(10))
    );
    assert_eq!(flow.requests[1].delivers_to.as_ref().map(|topic| written(&flow, topic)), Some("{$channel}".to_owned()));
    let [typing, status, hello] = socket.messages.as_slice() else { panic!("{:?}", socket.messages) };
    assert!(typing.awaits.is_none() && matches!(&typing.send, Some(Body::Text(_))));
    assert!(status.awaits.as_ref().is_some_and(|awaited| awaited.captures.len() == 1));
    assert!(hello.send.is_none() && hello.awaits.is_some());
}

#[test]
fn exchanges_have_the_names_that_the_study_writes() {
    let text = SOCKET
        .replace("name = \"post\"", "name = \"post by {version}\"")
        .replace("name = \"status\"", "name = \"status of {version}\"")
        .replace("[workload.socket]", "[workload.socket]\nname = \"open {version}\"");
    let written = ["log in", "post by {version}", "open {version}", "status of {version}", "hello"];
    assert_eq!(flow(&text).names(), written);
    let deciding =
        |name: &str| text.replace("[load]", &format!("[decide]\nmeasures = [\"request_duration:{name}.med\"]\n[load]"));
    for name in written {
        let decide = study(&deciding(name)).facts().decide;
        assert_eq!(decide[0].measure.to_string(), format!("request_duration:{name}.med"));
    }
    assert!(crate::faults_of(&deciding("post by 2")).contains("no step is named `post by 2`"));
    let Steps::Http(steps) = workload(PLAIN).steps else { panic!("plain steps") };
    assert_eq!(steps[0].name, "get {version}");
}

/// Requests alone, one of them with a name that has a placeholder.
const PLAIN: &str = r#"
title    = "plain"
question = "?"
factors  = { version = ["1", "2"], users = [100] }
system   = { api = { start = "api-{version} {address}" } }
workload = { protocol = "http", target = "{api.address}", steps = [{ name = "get {version}", get = "/" }] }
load     = { users = "{users}", duration = "1m" }
decide   = { measures = ["request_duration:get {version}.med"] }
"#;

#[test]
fn what_is_wrong_with_a_socket_is_told_with_what_to_do() {
    let without = |part: &str, with: &str| {
        assert!(SOCKET.contains(part), "{part}");
        SOCKET.replacen(part, with, 1)
    };
    let (table, _) = SOCKET.split_once("[workload.socket.deliveries]").expect("both");
    for (text, says) in [
        (without("{ socket = \"open\" },", ""), "no step opens the socket"),
        (without(", delivers_to = \"{$channel}\"", ""), "no request says to whom it delivers"),
        (without("hello {$message}", "hello"), "nothing in the request tells its deliveries from others"),
        (table.to_owned(), "the workload does not say who listens"),
        (without("listens_to = \"channels\"", "listens_to = \"chanels\""), "nothing gives a value named `chanels`"),
        (
            without("of         = { json = { \"$.event\" = \"posted\" } }", "of = {}"),
            "it does not say what the message holds",
        ),
        (without("protocol = \"http\"", "protocol = \"http\"\nstate = \"every iteration\""), "hold no socket"),
        (
            without("capture = { status = { json = \"$.status\" } }", "capture = { status = { header = \"X\" } }"),
            "has no headers",
        ),
        (
            without("await = { contains = \"hello\" }", "capture = { x = { json = \"$.x\" } }, send = \"x\""),
            "awaits nothing",
        ),
        (
            without("{ send = \"typing\" }", "{ send = \"typing\", get = \"/\" }"),
            "a step does one thing, not `send` and `get`",
        ),
        (
            without("ping       = \"30s\"", "reconnect = { first = \"2s\", most = \"1s\" }"),
            "`most`, is shorter than the `first`",
        ),
        (without("\"$.event\" = \"posted\"", "\"event\" = \"posted\""), "a path starts at the root"),
        (
            without("[load]", "[decide]\nmeasures = [\"delivery_duration:posts.p95\"]\n[load]"),
            "no step is named `posts`",
        ),
        (without("{ socket = \"open\" }", "{ socket = \"opens\" }"), "must be \"open\" or \"close\""),
    ] {
        let faults = crate::faults_of(&text);
        assert!(faults.contains(says), "expected {says} in {faults}");
    }
}

#[test]
fn steps_on_a_socket_that_there_is_not_are_told() {
    let text = r#"
        question = "?"
        [system.api]
        start = "api {address}"
        [workload]
        protocol = "http"
        target = "{api.address}"
        steps = [{ get = "/" }, { socket = "open" }, { send = "x" }]
        [load]
        users = 1
        duration = "1s"
    "#;
    let faults = crate::faults_of(text);
    for says in ["the workload has no socket to open or close", "the workload has no socket for messages"] {
        assert!(faults.contains(says), "expected {says} in {faults}");
    }
    let faults = crate::faults_of(
        &text
            .replace(", { socket = \"open\" }, { send = \"x\" }", "")
            .replace("[load]", "[decide]\nmeasures = [\"deliveries.rate\"]\n[load]"),
    );
    assert!(faults.contains("`deliveries` is of deliveries, which this workload does not look at"), "{faults}");
}
