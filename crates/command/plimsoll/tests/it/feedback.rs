//! A control loop that changes the number of users, on a server that refuses what exceeds a number of users.

use crate::agents::Given;
use crate::capacity::COUNTER;
use crate::common::{Place, edited};

const STUDY: &str = r#"title    = "counter"
question = "How many customers can stand at the counter?"
repeats  = 1

[system.counter]
start = "python3 -u counter.py {port} 8 1000"
ready = { tcp = "{address}", within = "60s" }

[workload]
protocol = "http"
target   = "{counter.address}"
steps    = [{ get = "/", expect = { status = 200 } }]

[load]
profile  = "feedback"
users    = 4
most     = 40
think    = "5ms"
duration = "90s"
feedback = { step = 2, rest = "1s", over = "1s", window = "6s", flat = 5 }

[objective]
limits = { "request_duration.med" = "10s" }
errors = "20%"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

fn run(study: &str) -> (Place, serde_json::Value) {
    let place = Place::with_study(study);
    place.write("counter.py", COUNTER);
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    place.nothing_runs();
    let report: serde_json::Value = serde_json::from_str(&place.read("bundle/report/report.json")).unwrap();
    let row = report["feedback"][0].clone();
    (place, row)
}

#[test]
fn users_come_until_requests_fail_and_their_mean_is_the_answer() {
    let (place, row) = run(STUDY);
    assert_eq!((row["end"].as_str(), row["alerts"][0]["condition"].as_str()), (Some("flat"), Some("errors")), "{row}");
    let window = &row["window"];
    let users = window["mean"].as_f64().expect("an answer");
    let [fewest, most] = ["fewest", "most"].map(|key| window[key].as_f64().expect("a number"));
    assert!(fewest < users && users < most && most > 8.0 && most < 40.0, "{row}");
    assert!(row["seconds"].as_f64().is_some_and(|seconds| seconds < 90.0), "it ended by itself: {row}");
    let markdown = place.read("bundle/report/report.md");
    for part in [
        "The control loop settled around",
        "limited by errors",
        "## Users by the control loop",
        "charts/over-time-users.png",
        "**control loop**",
        "s measured at most",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    // The number of users that the generator had in each second is in the bundle.
    let generator = place.read("bundle/starts/0001/generator.csv");
    let users: Vec<&str> =
        generator.lines().skip(1).filter_map(|line| line.split(',').nth(column(&generator))).collect();
    assert!(users.contains(&"6") && users.contains(&"8"), "{users:?}");
}

#[test]
fn the_users_of_two_agents_come_and_go_together() {
    let Some(given) = Given::new(STUDY) else { return };
    given.place.write("counter.py", COUNTER);
    let (_one, _two, url) = (given.agent("one"), given.agent("two"), given.broker.url());
    let run = ["run", "study.toml", "--out", "bundle", "--nats", &url, "--agents", "2"];
    given.place.plimsoll(&run).with_any_verdict();
    let report: serde_json::Value = serde_json::from_str(&given.place.read("bundle/report/report.json")).unwrap();
    let row = &report["feedback"][0];
    assert_eq!((row["end"].as_str(), row["alerts"][0]["condition"].as_str()), (Some("flat"), Some("errors")), "{row}");
    let users = row["window"]["mean"].as_f64().expect("an answer");
    assert!((6.0..30.0).contains(&users), "{row}");
    let bundle = plimsoll_bundle::read(&given.place.path("bundle")).unwrap();
    let agents = &bundle.starts[0].loads[0].summary.agents;
    let most: Vec<u64> = agents.iter().map(|agent| agent.users).collect();
    assert!(most.len() == 2 && most.iter().all(|most| *most > 4), "{most:?}");
}

/// The place of the number of users in `generator.csv`.
fn column(generator: &str) -> usize {
    let header = generator.lines().next().expect("a header");
    header.split(',').position(|name| name == "users").expect("a column")
}

#[test]
fn without_an_alert_there_is_no_answer_and_the_load_ends_all_the_same() {
    let tolerant = edited(STUDY, "errors = \"20%\"", "errors = \"99%\"");
    // Four users at first, two more every second: the time is over before 40 are there, and not before ten are.
    let short = edited(&tolerant, "\"90s\"", "\"9s\"");
    for (study, end, most) in
        [(short, "time", 20), (edited(&tolerant, "most     = 40", "most     = 10"), "no_alert", 10)]
    {
        let (place, row) = run(&study);
        assert_eq!(
            (row["end"].as_str(), row["first_alert"].is_null(), row["window"].is_null()),
            (Some(end), true, true)
        );
        let reached = row["reached"].as_u64().expect("a number");
        assert!((10..=most).contains(&reached), "{row}");
        assert!(row["seconds"].as_f64().is_some_and(|seconds| seconds < 60.0), "it ended by itself: {row}");
        let markdown = place.read("bundle/report/report.md");
        assert!(markdown.contains(&format!("no limit was exceeded with up to {reached} users")), "{markdown}");
        assert!(markdown.contains("**control loop without an alert** (problem)"), "{markdown}");
    }
}

#[test]
fn what_a_control_loop_cannot_have_is_named() {
    for (from, to, says) in [
        ("duration = \"90s\"", "duration = \"5s\"", "before the control loop can"),
        (
            "[objective]\nlimits = { \"request_duration.med\" = \"10s\" }\nerrors = \"20%\"\n",
            "",
            "needs an `[objective]`",
        ),
        (
            "profile  = \"feedback\"",
            "profile  = \"capacity\"",
            "`load.feedback` has a meaning only in a load by a control loop",
        ),
        ("users    = 4", "rate     = 4", "`load.rate` has no place where a control loop"),
    ] {
        let place = Place::with_study(&edited(STUDY, from, to));
        place.write("counter.py", COUNTER);
        place.plimsoll(&["check", "study.toml"]).with(2).says(&[says]);
    }
}
