//! Trials that settle late, and trials that never do.

use crate::common::{Place, edited};
use plimsoll_bundle::Contents;
use plimsoll_model::trial::Validity;
use plimsoll_model::units::Nanos;
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::time::Duration;

/// Two trials of 11.5 s against a server that is there already. The generator is not held to its
/// limits, which a machine that does other things as well would break.
const STUDY: &str = r#"title        = "settling"
question     = "From when on is it steady?"
repeats      = 1
noise_floor  = false
spare_blocks = 0

[factors]
path = { levels = ["/a", "/b"], compare = true, baseline = "/a" }

[workload]
protocol = "http"
target   = "ADDRESS"
steps    = [{ get = "{path}" }]

[load]
users    = 4
warmup   = "500ms"
duration = "11s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// What one repeat decides is not the matter here.
fn run(place: &Place) -> Contents {
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]);
    plimsoll_bundle::read(&place.path("bundle")).unwrap()
}

#[test]
fn one_trial_that_settles_late_cuts_all_of_its_condition() {
    let behaviour = Behaviour::settling(milliseconds(40), milliseconds(10), milliseconds(2800), Reply::of_size(10));
    let server = Server::start(behaviour).unwrap();
    let place = Place::with_study(&edited(STUDY, "ADDRESS", &server.address().to_string()));
    let bundle = run(&place);
    let [slow, settled] = bundle.trials.as_slice() else { panic!("expected two trials") };
    // The warm-up takes half a second of the 2.8 s.
    let from = slow.summary.steady_from.expect("it becomes steady").seconds();
    assert!((2.0..=4.0).contains(&from), "steady from {from} s on");
    assert_eq!(settled.summary.steady_from, Some(Nanos(0)), "the server had settled before");
    assert_eq!(slow.cut, from.ceil() as i64);
    assert_eq!(settled.cut, slow.cut, "one cut for all trials of a condition");
    let mean = |trial: &plimsoll_model::result::TrialResult| {
        trial.tallies[&plimsoll_model::record::Subject::Iteration].service.mean() / 1e6
    };
    assert!(mean(slow) < 20.0, "a mean of {} ms has the slow start in it", mean(slow));
    assert!(place.read("bundle/trials/0001/ticks.csv").lines().count() > 50);
    assert!(place.read("bundle/report/report.md").contains("of the measure phase count for nothing"));
}

#[test]
fn a_trial_that_never_settles_is_void_and_says_so() {
    let behaviour = Behaviour::slowing(milliseconds(10), milliseconds(4), Reply::of_size(10));
    let server = Server::start(behaviour).unwrap();
    let place = Place::with_study(&edited(STUDY, "ADDRESS", &server.address().to_string()));
    let bundle = run(&place);
    let summary = &bundle.trials[0].summary;
    let Validity::Void(reasons) = &summary.validity else { panic!("{:?}", summary.validity) };
    assert!(reasons[0].starts_with("no steady state after a warm-up of 0.5 s: "), "{reasons:?}");
    assert!(summary.unsteady && summary.steady_from.is_none());
    assert_eq!(bundle.trials[0].cut, 0);
}
