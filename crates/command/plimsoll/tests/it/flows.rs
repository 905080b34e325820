//! Studies whose users keep what they are told: from the file to the report, against servers that
//! insist on it.

use crate::common::{Ended, Place, edited};
use plimsoll_bundle::Contents;
use plimsoll_model::record::{ErrorKind, Subject, Tally};
use plimsoll_testkit::http::{Behaviour, Reply, Server, Stateful};
use std::net::SocketAddr;

const GUIDE: &str = include_str!("../../../../../docs/guide.md");

/// Settings that no busy machine breaks, and trials that are short.
const SMALL: &str = "\n[generator]\nmax_cpu = '100%'\nmax_lateness = '10s'\n[load]\nusers = 3\nwarmup = '50ms'\n\
                     duration = '400ms'\n[decide]\nmeasure = 'iteration_duration.med'\n";

/// The study of the guide that has this title, as small as a test wants it, with a server that runs
/// already.
fn of_guide(title: &str, address: SocketAddr) -> String {
    let start = GUIDE.find(&format!("title    = \"{title}")).expect("the guide has this study");
    let study = GUIDE[start..].split("```").next().expect("an end").split("\n[load]").next().expect("a load");
    let (before, system) = study.split_once("[system.orders]").expect("it starts a system");
    let workload = system.split_once("[workload]").expect("a workload").1;
    let workload = workload.replace("{orders.address}", &address.to_string());
    // The version makes no difference to a server that runs already.
    let before = before.replace("question", "repeats = 2\nquestion").replace("users   = [20, 100]\n", "");
    format!("{before}[workload]{workload}{SMALL}")
}

/// The flow of the guide. Its factor stands in a header, because a factor must stand somewhere.
fn flow_of_guide(address: SocketAddr) -> String {
    let study = of_guide("the order service, 2.0", address);
    edited(&study, "cookies   = true", "headers = { X-Version = '{version}' }\ncookies = true")
}

fn accounts(count: usize) -> String {
    let rows = (0..count).map(|user| format!("user{user},secret-user{user}\n"));
    "name,password\n".to_owned() + &rows.collect::<String>()
}

fn bundle(place: &Place, name: &str) -> Contents {
    plimsoll_bundle::read(&place.path(name)).unwrap()
}

/// A study of one request to `address`, with these steps and keys of the workload.
fn study(address: SocketAddr, workload: &str) -> String {
    format!(
        "title = 'flow'\nquestion = 'q'\ndesign = 'trials'\nrepeats = 2\n[factors]\nway = {{ levels = ['a', 'b'], compare = true, baseline = 'a' }}\n\
         [workload]\nprotocol = 'http'\ntarget = '{address}'\nheaders = {{ X-Way = '{{way}}' }}\n{workload}\n{SMALL}"
    )
}

/// A server that says the same to everybody.
fn always(body: &str) -> Server {
    Server::start(Behaviour::at_once(Reply::ok(body))).unwrap()
}

fn run(place: &Place) -> Ended {
    place.plimsoll(&["run", "study.toml", "--out", "bundle"])
}

#[test]
fn the_flow_of_the_guide_runs_from_its_file_to_the_report() {
    let server = Stateful::start().unwrap();
    let place = Place::with_study(&flow_of_guide(server.address()));
    place.write("accounts.csv", accounts(3));
    place.plimsoll(&["check", "study.toml"]).with(0);
    run(&place).with_any_verdict();

    let record = server.record();
    assert_eq!((record.wrong(), record.reasons.len()), (0, 0), "{:?}", record.reasons);
    let users: Vec<&str> = record.logins.keys().map(String::as_str).collect();
    assert_eq!(users.len(), 3, "each user has a row of its own: {users:?}");
    let logins: u64 = record.logins.values().sum();
    assert_eq!((logins, record.logouts), (6 * 3, 6 * 3), "six trials of three users, and each said goodbye");

    let contents = bundle(&place, "bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    for trial in &contents.starts {
        let names: Vec<String> = trial.loads[0].tallies.keys().map(ToString::to_string).collect();
        for name in ["request:GET /next?ticket={$ticket}", "request:finish"] {
            assert!(names.iter().any(|known| known == name), "{names:?}");
        }
        assert!(trial.loads[0].tallies.values().all(|tally| tally.failed() == 0), "{names:?}");
        // The median of the pauses in an iteration alone is 20 ms.
        let iteration = &trial.loads[0].tallies[&Subject::Iteration];
        assert!(iteration.service.value_at_quantile(0.05) < 20_000_000, "pauses are no part of an iteration");
    }
    let report = place.read("bundle/report/report.md");
    for text in [
        "GET /next?ticket={$ticket}, then a pause (log-normal with median 20ms and sigma 0.5), then finish",
        "before that log in, then order; at the end DELETE /login; cookies kept; 3 redirects followed, each an exchange of its own",
        "pauses as the workload has them",
        "| GET /next?ticket={$ticket} | avg ",
        "the workload",
    ] {
        assert!(report.contains(text), "`{text}` is not in:\n{report}");
    }
}

#[test]
fn the_files_that_users_work_with_are_known_by_their_hashes() {
    let server = Stateful::start().unwrap();
    let study = edited(&flow_of_guide(server.address()), "repeats = 2", "repeats = 2\ndesign = 'trials'");
    let place = Place::with_study(&study);
    for (count, out) in [(3, "first"), (3, "second"), (4, "third")] {
        place.write("accounts.csv", accounts(count));
        place.plimsoll(&["run", "study.toml", "--quick", "--out", out]).with(0);
    }
    let [feed] = &bundle(&place, "first").versions[..] else { panic!("one file") };
    assert_eq!((feed.name.as_str(), feed.program.as_str()), ("the workload", "accounts.csv"));
    assert_eq!(feed.sha256.as_ref().map(String::len), Some(64));
    place.plimsoll(&["compare", "first", "second"]).prints(&["Nothing differs that the bundles know of"]);
    place
        .plimsoll(&["compare", "first", "third"])
        .with(2)
        .says(&["cannot be compared", "file of the workload (accounts.csv) first: SHA-256"]);
}

#[test]
fn what_a_flow_needs_is_looked_at_before_anything_starts() {
    let server = always("fine");
    let steps = "steps = [\n\
        { get = '/{$row.id}', capture = { a = { json = '$.a' }, b = { regex = 'b' } } },\n\
        { method = 'PUT', path = '/', body_file = 'nothing.bin' },\n\
        { get = '/{$row.nmae}{$a}{$b}', auth = { bearer_env = 'NO_SUCH_VARIABLE' } },\n\
        ]\n[workload.feeds.row]\nfile = 'rows.csv'";
    let place = Place::with_study(&study(server.address(), steps));
    place.write("rows.csv", "id,name\n1,a\n");
    place.plimsoll(&["check", "study.toml"]).with(2).says(&[
        "nothing.bin",
        "NO_SUCH_VARIABLE",
        "expected a column `nmae`, found `id`, `name`",
        "study.toml:13:",
        "did you mean `row.name`?",
        "nothing was started",
    ]);
    for (rows, told) in [("id,nmae\n", "rows.csv"), ("id,nmae\n1\n", "line 2"), ("", "rows.csv")] {
        place.write("rows.csv", rows);
        place.plimsoll(&["check", "study.toml"]).with(2).says(&[told, "file = 'rows.csv'"]);
    }
    assert_eq!(server.record().requests(), 0);
}

#[test]
fn a_feed_with_fewer_rows_than_users_is_told_where_it_stands() {
    let server = always("fine");
    let steps = "steps = [{ get = '/{$row.id}' }]\n[workload.feeds.row]\nfile = 'rows.csv'";
    let place = Place::with_study(&study(server.address(), steps));
    place.write("rows.csv", "id\n1\n2\n");
    let ended = place.plimsoll(&["check", "study.toml"]).with(0);
    ended.says(&["feed `row` has 2 rows for 3 users: some share a row", "file = 'rows.csv'"]);
    place.write("rows.csv", "id\n1\n2\n3\n");
    let ended = place.plimsoll(&["check", "study.toml"]).with(0);
    assert!(!ended.stderr.contains("feed `row`"), "{}", ended.stderr);
}

#[test]
fn a_step_that_no_iteration_came_to_is_named() {
    let server = always("{\"state\": \"done\"}");
    let steps = "steps = [\n\
        { while = { state = '!= done' }, at_most = 3, steps = [{ get = '/state', capture = { state = { json = '$.state' } } }] },\n\
        { get = '/never', when = { state = 'queued' } },\n\
        ]";
    // All iterations are measured from begin to end.
    let counted = "warmup = '0s'\niterations_per_user = 40\nduration = '30s'";
    let text = edited(&study(server.address(), steps), "warmup = '50ms'\nduration = '400ms'", counted);
    let place = Place::with_study(&text);
    run(&place).with_any_verdict();
    for trial in bundle(&place, "bundle").starts {
        let count = |name: &str| trial.loads[0].tallies.get(&Subject::Request(name.to_owned())).map_or(0, Tally::count);
        let iterations = trial.loads[0].tallies[&Subject::Iteration].count();
        assert_eq!(
            (count("GET /state"), count("GET /never"), iterations),
            (120, 0, 120),
            "the loop goes round in each iteration"
        );
        let warnings = &trial.loads[0].summary.warnings;
        assert!(warnings.iter().any(|warning| warning.contains("`GET /never`")), "{warnings:?}");
    }
    assert!(place.read("bundle/report/report.md").contains("`GET /never`"), "the report names it");
}

#[test]
fn a_run_whose_users_find_no_row_ends_with_the_reason() {
    let server = always("fine");
    let steps = "steps = [{ get = '/{$row.id}' }]\n\
                 [workload.feeds.row]\nfile = 'rows.csv'\norder = 'unique'\nat_end = 'stop'";
    let text = edited(&study(server.address(), steps), "warmup = '50ms'", "warmup = '3s'");
    let place = Place::with_study(&text);
    place.write("rows.csv", "id\n1\n2\n3\n4\n");
    let told = ["nothing was measured: all 4 rows of feed `row`", "before the measure phase", "the run was broken off"];
    run(&place).with(3).says(&told);
    assert_eq!(bundle(&place, "bundle").starts.len(), 1, "the block is not run again in vain");
}

#[test]
fn a_request_that_fails_every_user_is_named() {
    let server = Server::start(Behaviour::at_once(Reply::ok("go away").status(403))).unwrap();
    let steps = "on_start = [{ name = 'log in', get = '/login' }]\nsteps = [{ get = '/' }]";
    let place = Place::with_study(&study(server.address(), steps));
    run(&place).with(3).says(&["exchanges failed, each of `log in`: expected a status below 400, found 403"]);
}

#[test]
fn a_capture_without_a_match_keeps_the_reason_with_what_was_there() {
    let server = always("<html>please log in again</html>");
    let steps = "steps = [{ get = '/', capture = { id = { json = '$.id' } } }, { get = '/{$id}' }]";
    let place = Place::with_study(&study(server.address(), steps));
    run(&place).with(3).says(&["all", "exchanges failed", "please log in again"]);
    let contents = bundle(&place, "bundle");
    let failed = &contents.starts[0];
    assert!(failed.loads[0].tallies[&Subject::Request("GET /".to_owned())].errors.contains_key(&ErrorKind::Capture));
    let example = &failed.loads[0].summary.replies.error_examples["request:GET /"][&ErrorKind::Capture];
    assert!(example.contains("id") && example.contains("please log in again"), "{example}");
}

#[test]
fn users_stop_where_rows_that_are_taken_once_are_used_up() {
    let server = always("fine");
    let steps = "steps = [{ get = '/{$row.id}' }]\n\
                 [workload.feeds.row]\nfile = 'rows.csv'\norder = 'unique'\nat_end = 'stop'";
    let text = edited(&study(server.address(), steps), "users = 3", "users = 3\nthink = '20ms'");
    // Three users come to twelve rows only after the warm-up, and long before the end.
    let place = Place::with_study(&edited(&text, "duration = '400ms'", "duration = '30s'"));
    let rows: String = (0..12).map(|row| format!("{row}\n")).collect();
    place.write("rows.csv", format!("id\n{rows}"));
    run(&place);
    for trial in bundle(&place, "bundle").starts {
        let all: u64 = trial.loads[0]
            .seconds
            .iter()
            .filter(|row| row.subject.is_request_named("GET /{$row.id}"))
            .map(|row| row.count)
            .sum();
        assert_eq!(all, 12, "every row once");
        let warnings = &trial.loads[0].summary.warnings;
        assert!(warnings.iter().any(|warning| warning.contains("all 12 rows of feed `row`")), "{warnings:?}");
        assert!(trial.loads[0].summary.timing.window.seconds() < 30.0, "the phase ends with the last iteration");
    }
}

/// A study of a script that two variants run in two versions.
fn study_of_script(address: SocketAddr) -> String {
    format!(
        "title = 'scripts'\nquestion = 'q'\nrepeats = 2\n[factors]\nversion = {{ levels = ['1', '2'], compare = true, baseline = '1' }}\n\
         [workload]\nscript = 'load-{{version}}.js'\nenv = {{ BASE = 'http://{address}' }}\n{SMALL}"
    )
}

const SCRIPT: &str = "import http from 'k6/http';\nimport { check, sleep } from 'k6';\n\
    import { Counter, Trend } from 'k6/metrics';\nimport { path } from './paths.js';\n\
    export const options = { vus: 50, duration: '1h', thresholds: { checks: ['rate>2'] } };\n\
    const orders = new Counter('orders');\nconst sizes = new Trend('sizes');\n\
    export default function () {\n\
      const reply = http.get(`${__ENV.BASE}${path}`);\n\
      check(reply, { 'is fine': (r) => r.body === 'fine', 'is red': (r) => r.body === 'red' });\n\
      orders.add(2);\n      sizes.add(reply.body.length);\n      sleep(0.01);\n\
      if (__ITER % 5 === 1) { throw new Error('one too many'); }\n    }\n\
    export function handleSummary() { return {}; }\n";

fn with_scripts(address: SocketAddr, script: &str) -> Place {
    let place = Place::with_study(&study_of_script(address));
    for version in ["1", "2"] {
        place.write(&format!("load-{version}.js"), script);
    }
    place.write("paths.js", "export const path = '/items';\n");
    place
}

#[test]
fn a_script_is_what_the_users_of_a_study_do() {
    let server = always("fine");
    let place = with_scripts(server.address(), SCRIPT);
    place.plimsoll(&["check", "study.toml"]).with(0).says(&[
        "the script's own `vus`, `duration` are left aside: `[load]` of the study",
        "`thresholds` are left aside",
        "`handleSummary` is not called",
        "study.toml:7:10",
    ]);
    run(&place).with_any_verdict();
    let contents = bundle(&place, "bundle");
    let files: Vec<&str> = contents.versions.iter().map(|version| version.program.as_str()).collect();
    assert!(["load-1.js", "load-2.js", "paths.js"].iter().all(|file| files.contains(file)), "{files:?}");
    for trial in &contents.starts {
        let tally = |subject: &str| &trial.loads[0].tallies[&subject.parse::<Subject>().unwrap()];
        let iterations = tally("iteration");
        assert!(iterations.service.value_at_quantile(0.5) > 10_000_000, "sleeping is part of an iteration");
        assert!(iterations.errors[&ErrorKind::Script] >= 1, "an exception is counted: {:?}", iterations.errors);
        assert!(iterations.count() > 3 * 2, "and its user goes on: {} iterations", iterations.count());
        assert_eq!(tally("check:is fine").failed(), 0);
        assert_eq!(tally("check:is red").failed(), tally("check:is red").count());
        assert!(tally("counter:orders").count() > 0 && tally("trend:sizes").count() > 0);
    }
    let report = place.read("bundle/report/report.md");
    for text in [
        "the script load-1, 2.js",
        "| check is red | ",
        "| orders",
        "| sizes | avg ",
        "failed by themselves",
        "one too many",
    ] {
        assert!(report.contains(text), "`{text}` is not in:\n{report}");
    }
}

#[test]
fn a_script_that_cannot_be_loaded_is_named_with_its_place_before_anything_starts() {
    let server = always("fine");
    for (script, told) in [
        (
            "import http from 'k6/http';\nexport default function () {\n  http.get(;\n}\n",
            ["load-1.js:3:12", "http.get(;"],
        ),
        ("import { browser } from 'k6/browser';\nexport default function () {}\n", ["load-1.js:1", "k6/browser"]),
        ("export function other() {}\n", ["the function `default`", "[study.toml:7:10]"]),
        ("open('/etc/hostname');\nexport default function () {}\n", ["load-1.js", "/etc/hostname"]),
    ] {
        let place = with_scripts(server.address(), script);
        place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with(2).says(&told);
        assert!(!place.has("bundle"), "nothing was started");
    }
    assert_eq!(server.record().requests(), 0);
}

#[test]
fn secrets_of_the_environment_stand_nowhere() {
    let server = always("fine");
    let steps = "auth = { user = 'bob', password_env = 'FLOW_PASSWORD' }\n\
                 steps = [{ get = '/' }, { get = '/b', auth = { bearer_env = 'FLOW_TOKEN' } }]";
    let place = Place::with_study(&study(server.address(), steps));
    let mut command = place.command(&["run", "study.toml", "--quick", "--out", "bundle"]);
    command.env("FLOW_PASSWORD", "correct-horse").env("FLOW_TOKEN", "battery-staple");
    crate::common::Started::new(command).end().with(0);
    let sent = server.record().first_requests();
    let header = |path: &str| {
        sent.iter().find(|request| request.path == path).unwrap().header("authorization").unwrap().to_owned()
    };
    assert_eq!(header("/b"), "Bearer battery-staple");
    assert!(header("/").starts_with("Basic Ym9iOm"), "{}", header("/"));
    for secret in ["correct-horse", "battery-staple"] {
        crate::common::is_nowhere(secret, &place.path("bundle"));
    }
}
