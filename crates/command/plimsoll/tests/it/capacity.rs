//! Searches for the capacity, on a server that refuses what exceeds a number of users.

use crate::agents::Given;
use crate::common::{Place, edited};
use plimsoll_model::start::RungPart;
use rustix::process::Signal;
use serde_json::Value;

const STUDY: &str = r#"title    = "counter"
question = "How many customers can stand at the counter?"
repeats  = 3

[system.counter]
start = "python3 -u counter.py {port} 8 1000"
ready = { tcp = "{address}", within = "60s" }
waits = { "a place" = "counter is f[u]ll" }

[workload]
protocol = "http"
target   = "{counter.address}"
steps    = [{ get = "/", expect = { status = 200 } }]

[load]
profile  = "capacity"
users    = 2
most     = 64
warmup   = "50ms"
duration = "200ms"
confirm  = "400ms"

[objective]
limits = { "request_duration.med" = "10s" }
errors = "20%"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

#[test]
fn a_time_counts_the_bracket_and_the_confirmation_once() {
    let place = Place::with_study(STUDY);
    // A bracket and ladders of eight loads of 250 ms each, and 400 ms to confirm: 4.4 s for the first repeat, 2 s for each other.
    let planned = place.plimsoll(&["plan", "study.toml", "--for", "30s"]).with(0);
    planned.prints(&["repeats     13: as many as fit into 30 s under load"]);
    place.plimsoll(&["plan", "study.toml", "--for", "8s"]).with(2).says(&["expected at least 9 s for `--for`"]);
}

#[test]
fn a_search_has_no_looks_to_end_at() {
    let versions = "[factors]\nversion = { levels = [8, 12], compare = true, baseline = 8 }\n\n[system.counter]";
    let study = edited(&edited(STUDY, "[system.counter]", versions), "{port} 8 1000", "{port} {version} 1000");
    let refused = "`--until-decided` ends a run at a look, and a search for the capacity, a stress test or a control loop has none";
    Place::with_study(&study).plimsoll(&["plan", "study.toml", "--until-decided"]).with(2).says(&[refused]);
}

/// Takes 10 ms for each request. With more than so many at the same time it refuses one, and with many more it ends. Where a
/// number of seconds is given, it refuses all for so long after it has refused one for that reason.
pub(crate) const COUNTER: &str = r#"
import asyncio, os, sys, time

port, most, too_many = map(int, sys.argv[1:4])
sulks_for = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
present, sulks_until = 0, 0.0

async def serve(reader, writer):
    global present, sulks_until
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            present += 1
            if present > too_many:
                os._exit(3)
            if present > most:
                sulks_until = time.monotonic() + sulks_for
                print("the counter is full", flush=True)
            status = b"503 Full" if present > most or time.monotonic() < sulks_until else b"200 OK"
            await asyncio.sleep(0.01)
            present -= 1
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1000)
    await server.serve_forever()

asyncio.run(main())
"#;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

fn place(study: &str) -> Place {
    let place = Place::with_study(study);
    place.write("counter.py", COUNTER);
    place
}

/// The capacity in the report for programs.
fn cell(place: &Place) -> serde_json::Value {
    let report: serde_json::Value = serde_json::from_str(&place.read("bundle/report/report.json")).unwrap();
    report["capacity"]["cells"][0].clone()
}

#[test]
fn a_search_finds_how_many_users_a_server_takes() {
    let place = place(STUDY);
    place
        .plimsoll(&["plan", "study.toml"])
        .with(0)
        .prints(&[
            "up to 16 × (50 ms + 200 ms)",
            "3 starts, each a search for the capacity of one system, about 8.4 s and at most 20.4 s",
        ])
        .prints(&["16 more loads of a variant on a start where those near the capacity contradict one another"]);
    // A machine that is busy makes it less sure, but not different.
    place.plimsoll(&RUN).with_any_verdict().says(&["3/3"]).prints(&[
        "The system carries",
        "limited by errors",
        "What gave out",
    ]);
    place.nothing_runs();
    let cell = cell(&place);
    // With ten users a fifth is refused.
    let capacity = cell["capacity"].as_f64().expect("a capacity");
    assert!((7.5..13.0).contains(&capacity), "{cell}");
    assert_eq!(cell["starts"].as_array().map(Vec::len), Some(3));
    let fails_from = cell["range"]["requests_fail_from"].as_f64().expect("it refuses");
    assert!((7.5..17.0).contains(&fails_from), "{cell}");
    assert!(cell["gave_out"]["in_words"].as_str().is_some_and(|words| words.contains("a place of counter")), "{cell}");
    assert!(cell["gave_out"]["resources"].as_array().is_some_and(|resources| !resources.is_empty()), "{cell}");
    let loads = place.read("bundle/report/capacity.csv");
    let of = |part: &str| loads.lines().filter(|line| line.contains(&format!(",{part},"))).count();
    assert!(of("bracket") >= 4 && of("ladder") >= 24 && of("confirmation") >= 1, "{loads}");
    let markdown = place.read("bundle/report/report.md");
    for text in [
        "## Capacity",
        "The most users at which the objective holds: requests, median at most 10.0 s",
        "errors (",
        "requests fail from",
        "| the processors of the machine |",
        "![What loads used](charts/resources.png)",
    ] {
        assert!(markdown.contains(text), "{text}: {markdown}");
    }
}

#[test]
fn two_agents_search_a_server_on_the_host_of_a_third() {
    let study = edited(STUDY, "[system.counter]", "[system.counter]\non    = \"servers\"");
    let Some(given) = Given::new(&study) else { return };
    given.place.write("there/counter.py", COUNTER);
    let _host = given.agent_with("far", &["--label", "servers", "--systems", "there"]);
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    given.place.plimsoll(&[&RUN[..], &["--nats", &url, "--agents", "2"]].concat()).with_any_verdict().says(&["3/3"]);
    let cell = cell(&given.place);
    let capacity = cell["capacity"].as_f64().expect("a capacity");
    assert!((7.5..13.0).contains(&capacity), "{cell}");
    let resources = cell["gave_out"]["resources"].to_string();
    assert!(resources.contains("the processors of host far"), "{resources}");
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    for start in &bundle.starts {
        assert_eq!(start.summary.hosts.iter().map(|host| host.machine.as_str()).collect::<Vec<_>>(), ["far"]);
        for load in start.loads.iter().filter(|load| load.summary.validity.counts()) {
            assert_eq!(load.summary.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        }
    }
    let report = given.place.read("bundle/report/report.md");
    assert!(report.contains("| Host far | ") || report.contains("**Host far**"), "{report}");
}

#[test]
fn a_search_of_two_versions_becomes_the_table_of_supported_users() {
    let versions = "[factors]\nversion = { levels = [8, 12], compare = true, baseline = 8 }\n\n[system.counter]";
    let study = edited(&edited(STUDY, "[system.counter]", versions), "{port} 8 1000", "{port} {version} 1000");
    let place = place(&edited(&study, "[objective]", "[decide]\nmeasures = [\"capacity.count\"]\n\n[objective]"));
    place.plimsoll(&RUN).with_any_verdict();
    place.plimsoll(&["release-report", "bundle"]).with(0);
    let page = place.read("release-report/README.md");
    for expected in [
        "### Supported users in unbounded tests",
        "| Test | version = 8 | version = 12 | Delta | Verdict | Limited by |",
        "graphs/unbounded-requests-per-second.png",
        "each version was measured around its own capacity",
        "| Objective | requests, median at most 10.0 s; at most 20 % errors |",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("by name"), "other loads are not compared: {page}");
}

#[test]
fn a_stress_test_goes_up_until_requests_fail() {
    let stress = "profile  = \"stress\"\nstep     = 4\nnew_users = 100";
    let study = edited(&edited(STUDY, "profile  = \"capacity\"", stress), "confirm  = \"400ms\"\n", "");
    let place = place(&study);
    place
        .plimsoll(&["plan", "study.toml"])
        .with(0)
        .prints(&["up to 16 × (70 ms + 200 ms)", "3 starts, each a stress test of one system, at most"]);
    place.plimsoll(&RUN).with_any_verdict().prints(&["The system carries", "Measured by stress tests: 3 starts"]);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    for start in &bundle.starts {
        let rungs = start.loads.iter().flat_map(|load| &load.rungs);
        let counting = rungs.filter(|rung| rung.summary.validity.counts() && rung.rung.part == RungPart::Step);
        let mut levels: Vec<f64> = counting.map(|rung| rung.rung.level).collect();
        levels.dedup();
        // It refuses a request where more than eight are present, and a fifth may be refused.
        assert!(levels.starts_with(&[2.0, 6.0]) && levels.len() < 16, "{levels:?}");
    }
    let range = &cell(&place)["range"];
    let loads = place.read("bundle/report/capacity.csv");
    let number =
        |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number in {range}, from the loads\n{loads}"));
    let fails_from = number(&range["requests_fail_from"]);
    assert!((8.0..19.0).contains(&fails_from), "{range}");
    let [low, high] = [0, 1].map(|end| number(&range["requests_fail_interval"][end]));
    assert!(low < fails_from && fails_from <= high, "{range}");
}

#[test]
fn what_never_fails_is_at_least_and_what_always_fails_is_below() {
    let at_least = place(&edited(STUDY, "most     = 64", "most     = 4"));
    at_least.plimsoll(&RUN).with(0).prints(&["The system carries at least 4 users"]);
    let below = place(&edited(STUDY, "\"request_duration.med\" = \"10s\"", "\"request_duration.min\" = \"1ms\""));
    below.plimsoll(&RUN).with(0).prints(&["The system carries fewer than 1 user", "limited by requests, shortest"]);
    assert_eq!(cell(&below)["below"].as_f64(), Some(1.0));
}

#[test]
fn a_server_that_dies_is_started_again_and_the_search_goes_on_below() {
    let study = edited(STUDY, "{port} 8 1000", "{port} 8 14");
    let place = place(&edited(&study, "repeats  = 3", "repeats  = 3\nspare_blocks = 3"));
    place.plimsoll(&RUN).with_any_verdict().says(&["failed: ", "ended by itself"]).prints(&["The system carries"]);
    place.nothing_runs();
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let first = &bundle.starts[0];
    assert!(!first.validity().counts());
    let of_bracket = |start: usize| {
        let rungs = bundle.starts[start].loads.iter().flat_map(|load| &load.rungs);
        let bracket = rungs.filter(|rung| rung.rung.part == RungPart::Bracket);
        let mut levels: Vec<f64> = bracket.map(|rung| rung.rung.level).collect();
        // A load with too few requests on a busy machine runs again, for longer.
        levels.dedup();
        levels
    };
    assert_eq!(of_bracket(0), [2.0, 4.0, 8.0, 16.0]);
    assert_eq!(of_bracket(1)[0], 11.0, "between what passed and what it died of");
}

#[test]
fn a_server_that_dies_of_one_user_too_many_carries_at_least_one_less() {
    let study = edited(STUDY, "{port} 8 1000", "{port} 8 8");
    let place = place(&edited(&study, "repeats  = 3", "repeats  = 3\nspare_blocks = 6"));
    place
        .plimsoll(&RUN)
        .with_any_verdict()
        .says(&["failed: ", "ended by itself"])
        .prints(&["The system carries at least 8 users", "or a system ends, from 9 on"]);
    place.nothing_runs();
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let counting: Vec<bool> = bundle.starts.iter().map(|start| start.validity().counts()).collect();
    assert!(!counting[0] && !counting[1] && counting.contains(&true), "the bracket takes several: {counting:?}");
}

#[test]
fn a_server_that_recovers_slowly_is_waited_for() {
    let study = edited(STUDY, "{port} 8 1000", "{port} 8 1000 1.5");
    let place = place(&study);
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&["light loads after each load under which requests fail"]);
    place.plimsoll(&RUN).with_any_verdict().prints(&["The system carries"]);
    place.nothing_runs();
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let light: Vec<f64> = bundle
        .starts
        .iter()
        .flat_map(|start| &start.loads)
        .flat_map(|load| &load.recoveries)
        .map(|light| light.rung.level)
        .collect();
    assert!(light.len() >= 4 && light.iter().all(|level| *level <= 8.0), "{light:?}");
    let loads = place.read("bundle/report/capacity.csv");
    assert_eq!(loads.lines().filter(|line| line.contains(",recovery,")).count(), light.len(), "{loads}");
    assert!(place.read("bundle/report/report.md").contains("the systems recover slowly from what is too much"));
    // Without the light loads it refuses what it could serve: each load falls into the time after the one before.
    let capacity = cell(&place)["capacity"].as_f64().expect("a capacity");
    assert!((7.5..9.5).contains(&capacity), "{loads}");
}

#[test]
fn a_start_whose_server_does_not_recover_does_not_count() {
    let study = edited(STUDY, "{port} 8 1000", "{port} 8 1000 60");
    let place = place(&edited(&study, "confirm  =", "recover  = \"500ms\"\nconfirm  ="));
    place.plimsoll(&RUN).with_any_verdict().says(&["the systems did not recover within"]);
    place.nothing_runs();
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert!(bundle.starts[..2].iter().all(|start| !start.validity().counts()));
    let first = |start: usize| bundle.starts[start].loads[0].rungs[0].rung.level;
    assert_eq!((first(0), first(1)), (2.0, 11.0), "the second goes on between what passed and what failed");
    assert!(place.read("bundle/report/report.md").contains("(`load.recover`)"));
}

#[test]
fn a_search_that_was_interrupted_goes_on_where_it_was() {
    let place = place(STUDY);
    let mut run = place.start(&RUN);
    run.wait_until("a load of the second start", |_| {
        place.has("bundle/events.jsonl")
            && place.read("bundle/events.jsonl").contains("\"event\":\"load_begun\",\"start\":2,")
    });
    run.signal(Signal::INT);
    run.end().with(130);
    place.nothing_runs();
    place.plimsoll(&[&RUN[..], &["--resume"]].concat()).with_any_verdict().says(&["1 of them done before"]);
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let second = &bundle.starts[1].loads[0];
    assert!(second.rungs.iter().all(|rung| rung.rung.part == RungPart::Ladder), "the first start has found the region");
}
