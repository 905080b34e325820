//! Studies of scripts: what is found before they run, and what is kept and told of them.

use crate::common::Place;
use plimsoll_model::record::{ErrorKind, Subject};
use plimsoll_testkit::http::{Behaviour, Reply, Server};

/// A study of `shop.js`, whose variants differ in a variable, with these tables.
fn study(server: &Server, tables: &str) -> String {
    format!(
        "title = 'scripts'\nquestion = 'q'\nrepeats = 2\n\
         [factors]\nrev = {{ levels = ['1', '2'], compare = true, baseline = '1' }}\n\
         [workload]\nscript = 'shop.js'\nenv = {{ BASE = 'http://{}', REV = '{{rev}}' }}\n\
         [generator]\nmax_cpu = '100%'\nmax_lateness = '10s'\n\
         [load]\nusers = 2\nthink = '5ms'\nwarmup = '50ms'\nduration = '400ms'\n{tables}",
        server.address()
    )
}

const SCRIPT: &str = "import http from 'k6/http';\nimport { check } from 'k6';\n\
    import { Counter, Trend } from 'k6/metrics';\n\
    const lock = new Trend('lock', true);\nconst depth = new Trend('depth');\nconst orders = new Counter('orders');\n\
    export default function () {\n\
      const reply = http.get(`${__ENV.BASE}/cart`);\n\
      check(reply, { 'is fine': (r) => r.body === 'fine' });\n\
      lock.add(2.5);\n      depth.add(1.25);\n      orders.add(1);\n      console.log('bought');\n    }\n";

fn place(script: &str, tables: &str) -> (Place, Server) {
    let server = Server::start(Behaviour::at_once(Reply::ok("fine"))).unwrap();
    let place = Place::with_study(&study(&server, tables));
    place.write("shop.js", script);
    (place, server)
}

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

#[test]
fn metrics_that_no_script_makes_are_refused_with_what_was_meant() {
    let tables = "[decide]\nmeasures = ['trend:lok.p90', 'checks.ratio']\n\
                  [report]\nmeasures = ['gauge:orders.max', 'trend:http_req_waiting.med']\n";
    let (place, server) = place(SCRIPT, tables);
    place.plimsoll(&["check", "study.toml"]).with(2).says(&["did you mean `time_to_first_byte.med`?"]);
    place.write("study.toml", place.read("study.toml").replace(", 'trend:http_req_waiting.med'", ""));
    for command in [&["check", "study.toml"][..], &RUN] {
        place.plimsoll(command).with(2).says(&[
            "`shop.js` has no trend `lok`",
            "did you mean `trend:lock.p90`?",
            "measure `counter:orders.count`",
            "[study.toml:18:14]",
        ]);
    }
    assert_eq!(server.record().requests(), 0);
}

#[test]
fn a_setup_that_throws_is_told_of_its_variant() {
    let throws = "export function setup() { if (__ENV.REV === '2') { throw new Error('no token'); } }\n";
    let (place, _server) = place(&format!("{SCRIPT}{throws}"), "");
    place.plimsoll(&RUN).with(3).says(&[
        "failed: rev = 2: ",
        "no token",
        "start 1 failed, and so would another of `rev = 2`, so the run was broken off",
    ]);
}

#[test]
fn what_scripts_measure_and_write_is_kept_and_told() {
    let tables =
        "[decide]\nmeasure = 'trend:lock.med'\n[report]\nmeasures = ['checks:is fin.ratio', 'trend:depth.avg']\n";
    let (place, _server) = place(SCRIPT, tables);
    let told = "no trial of the first block has a value for `checks:is fin.ratio`: there is `check:is fine`";
    place.plimsoll(&RUN).says(&[told]).prints(&["rev = 2"]);
    let report = place.read("bundle/report/report.md");
    let unknown = ["The study names `checks:is fin.ratio`", "there is `is fine`"];
    for text in ["2.50 ms", "1.25", "`starts/0001/console.log`"].iter().chain(&unknown) {
        assert!(report.contains(text), "`{text}` is not in:\n{report}");
    }
    let console = place.read("bundle/starts/0001/console.log");
    assert!(console.starts_with("info bought\n") && console.contains("lines more are not kept"), "{console}");
    assert_eq!(console.matches("info bought").count(), 10);
    let contents = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert_eq!(contents.problems, Vec::<String>::new());
    let script = contents.starts[0].loads[0].summary.work.script().expect("a script ran");
    assert!(script.console > 10 && script.times.contains("lock") && !script.times.contains("depth"), "{script:?}");
}

#[test]
fn a_request_of_what_is_no_url_fails_with_its_reason() {
    let script = "import http from 'k6/http';\nexport default function () {\n\
                  const reply = http.get(__ENV.BSAE + '/cart');\n  reply.json();\n}\n";
    let (place, _server) = place(script, "");
    place.plimsoll(&RUN).with(3);
    let contents = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let trial = &contents.starts[0];
    let reasons = trial.validity().reasons().join("; ");
    assert!(reasons.contains("\"undefined/cart\": unsupported protocol scheme"), "{reasons}");
    assert!(reasons.contains("a variable that `env` of the workload does not name"), "{reasons}");
    let unsent = &trial.loads[0].tallies[&Subject::Request("(not sent)".to_owned())];
    assert_eq!(unsent.failed(), unsent.count());
    let examples = &trial.loads[0].summary.replies.error_examples["iteration"];
    // A request that fails and makes the script throw is one error, of the kind of the request.
    let thrown = examples.get(&ErrorKind::Connect).is_some_and(|text| text.contains("the body is null"));
    assert!(thrown, "{examples:?}");
    assert!(place.read("bundle/starts/0001/console.log").contains("Request Failed"));
}

#[test]
fn a_user_that_breaks_a_limit_of_the_script_breaks_off_the_run() {
    let script = "export default function () {\n  if (__VU === 2) { for (;;) {} }\n}\n";
    let (place, _server) = place(script, "");
    let limited = place.read("study.toml").replace("[generator]", "limits = { busy = '100ms' }\n[generator]");
    place.write("study.toml", limited);
    let told = ["user 2 was stopped for good: it ran for more than 0.1 s", "shop.js:2:", "so the run was broken off"];
    place.plimsoll(&RUN).with(3).says(&told);
    assert_eq!(plimsoll_bundle::read(&place.path("bundle")).unwrap().starts.len(), 1);
}

#[test]
fn a_function_that_the_script_does_not_export_is_marked_where_the_study_names_it() {
    let (place, _server) = place(SCRIPT, "");
    place.write("study.toml", place.read("study.toml").replace("[generator]", "exec = 'defalt'\n[generator]"));
    let told = ["expected the script to export the function `defalt`", "did you mean `default`?", "[study.toml:9:8]"];
    place.plimsoll(&["check", "study.toml"]).with(2).says(&told);
}
