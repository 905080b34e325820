//! Trials that settle late, and trials that never do.

use crate::common::{Place, edited};
use plimsoll_bundle::Contents;
use plimsoll_model::result::StartResult;
use plimsoll_model::start::Validity;
use plimsoll_model::units::Nanos;
use plimsoll_testkit::http::{Behaviour, Reply, Server};
use std::time::Duration;

/// Two trials of 11.5 s against a server that is there already. The generator is not held to its
/// limits, which a machine that does other things as well would break.
const STUDY: &str = r#"title        = "settling"
question     = "From when on is it steady?"
design   = "trials"
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
    // A machine that does other things as well may keep a trial from settling; hardly three times.
    let (place, bundle) = (0..3)
        .map(|_| settling())
        .find(|(_, bundle)| bundle.starts.iter().all(|trial| trial.loads[0].summary.steadiness.from.is_some()))
        .expect("both trials become steady in one run of three");
    let [slow, settled] = bundle.starts.as_slice() else { panic!("expected two trials") };
    // The warm-up takes half a second of the 2.8 s. How much later it is steady depends on the machine.
    let from = |trial: &StartResult| trial.loads[0].summary.steadiness.from.map_or(0.0, Nanos::seconds);
    assert!(from(slow) >= 2.0, "steady from {} s on", from(slow));
    let cut = from(slow).max(from(settled)).ceil() as i64;
    assert_eq!([slow.loads[0].cut, settled.loads[0].cut], [cut, cut], "one cut for all trials of a condition");
    assert!(place.read("bundle/starts/0001/ticks.csv").lines().count() > 50);
    assert!(place.read("bundle/report/report.md").contains("of the measure phase count for nothing"));
}

/// A run whose first trial meets a server that is slow for 2.8 s. It takes so long for a reply that what a busy machine
/// adds is little beside it.
fn settling() -> (Place, Contents) {
    let behaviour = Behaviour::settling(milliseconds(200), milliseconds(50), milliseconds(2800), Reply::of_size(10));
    let server = Server::start(behaviour).unwrap();
    let place = Place::with_study(&edited(STUDY, "ADDRESS", &server.address().to_string()));
    let bundle = run(&place);
    (place, bundle)
}

#[test]
fn a_trial_that_never_settles_is_void_and_says_so() {
    let behaviour = Behaviour::slowing(milliseconds(10), milliseconds(4), Reply::of_size(10));
    let server = Server::start(behaviour).unwrap();
    let place = Place::with_study(&edited(STUDY, "ADDRESS", &server.address().to_string()));
    let bundle = run(&place);
    let summary = &bundle.starts[0].loads[0].summary;
    let Validity::Void(reasons) = &summary.validity else { panic!("{:?}", summary.validity) };
    assert!(reasons[0].starts_with("no steady state after a warm-up of 0.5 s: "), "{reasons:?}");
    assert!(summary.steadiness.unsteady && summary.steadiness.from.is_none());
    assert_eq!(bundle.starts[0].loads[0].cut, 0);
}
