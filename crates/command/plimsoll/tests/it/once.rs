//! Trials in which each user goes through its scenario once.

use crate::capacity::COUNTER;
use crate::common::Place;

const STUDY: &str = r#"title    = "counter"
question = "How long does a day take?"
repeats  = 3

[system.counter]
start = "python3 -u counter.py {port} 1000 1000"
ready = { tcp = "{address}", within = "60s" }

[workload]
protocol = "http"
target   = "{counter.address}"
on_start = [{ name = "log in", get = "/" }]
steps    = [{ name = "look", get = "/" }, { repeat = 22, steps = [{ name = "update", get = "/" }] }]

[load]
profile   = "once"
users     = 30
new_users = 60
duration  = "2m"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

#[test]
fn each_user_goes_through_its_scenario_once_and_every_request_is_counted() {
    let place = Place::with_study(STUDY);
    place.write("counter.py", COUNTER);
    place
        .plimsoll(&["plan", "study.toml"])
        .with(0)
        .prints(&["3 trials of one system, nothing compared, at most 6 min"]);
    place
        .plimsoll(&["run", "study.toml", "--out", "bundle"])
        .with_any_verdict()
        .says(&["at most 6 min"])
        .prints(&["Elapsed time: ", "until each user has done its one iteration"]);
    let markdown = place.read("bundle/report/report.md");
    for row in ["log in | 30 | 30 | 0 | 0 | 3 |", "look | 30 | 30 | 0 | 0 | 3 |", "update | 660 | 660 | 0 | 0 | 3 |"] {
        assert!(markdown.contains(row), "{row}: {markdown}");
    }
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let took = |start: &plimsoll_model::result::StartResult| start.loads[0].summary.timing.window.seconds();
    // The last user begins after half a second, and has 23 requests of 10 ms.
    assert!(bundle.starts.iter().all(|start| (0.7..110.0).contains(&took(start))), "they begin one after the other");
}
