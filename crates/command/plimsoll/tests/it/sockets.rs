//! Users that hold WebSockets, in a whole study: what is lost on the way to them is found, and nothing else.

use crate::common::Place;
use plimsoll_model::record::{Part, Subject};
use plimsoll_testkit::chat::{Mistakes, Server};

/// Every user posts to all others, through one server and the other.
const STUDY: &str = r#"
title        = "posts"
question     = "Does every post come to every other user?"
repeats      = 3
design       = "trials"
spare_blocks = 0
noise_floor  = false

[factors]
server = { levels = ["GOOD", "BAD"], compare = true, baseline = "GOOD" }

[workload]
protocol = "http"
target   = "127.0.0.1:{server}"
on_start = [
    { name = "rooms", get = "/rooms", capture = { rooms = { json = "$.rooms[*]", pick = "all" } } },
    { socket = "open" },
]
steps    = [
    {
        name        = "post",
        method      = "POST",
        path        = "/posts/town?from={$user}",
        json        = { id = "{$message}" },
        delivers_to = "town",
    },
    { name = "status", send = { seq = 3 }, await = { json = { "$.seq_reply" = 3 } } },
]

[workload.socket]
path  = "/socket?user={$user}"
ready = { json = { "$.event" = "hello" } }

[workload.socket.deliveries]
listens_to = "rooms"
of         = { json = { "$.event" = "posted" } }
within     = "5s"

[load]
users    = 6
think    = "50ms"
warmup   = "500ms"
duration = "2s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"

[decide]
measures = ["lost_deliveries.ratio", "delivery_duration:post.med"]
"#;

/// The users of the study, each with a socket.
const USERS: u64 = 6;

#[test]
fn a_version_that_loses_deliveries_is_worse_and_says_how_many() {
    let good = Server::start(Mistakes::default()).expect("a port");
    let bad = Server::start(Mistakes { lose_every: Some(10), ..Mistakes::default() }).expect("a port");
    let port = |server: &Server| server.address().port().to_string();
    let place = Place::with_study(&STUDY.replace("GOOD", &port(&good)).replace("BAD", &port(&bad)));
    place.plimsoll(&["run", "study.toml", "--out", "bundle"]).with_any_verdict();
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    let deliveries = Subject::Part(Part::Delivery, "post".to_owned());
    let mut lost = [0, 0];
    for start in &bundle.starts {
        assert!(start.validity().counts(), "{:?}", start.validity());
        for load in &start.loads {
            let tally = &load.tallies[&deliveries];
            assert!(tally.count() > 50, "{}", tally.count());
            lost[load.summary.load.variant] += tally.failed();
            let most = load.generator.iter().map(|row| row.sockets).max();
            assert_eq!(most, Some(USERS), "{:?}", load.generator);
        }
    }
    assert!(lost[0] == 0 && lost[1] > 10, "{lost:?}");
    let report = place.read("bundle/report/report.md");
    for says in [
        "| lost deliveries |",
        "| post, delivery |",
        "| status |",
        "| messages received |",
        "**worse**",
        "Open WebSockets over time",
    ] {
        assert!(report.contains(says), "expected {says} in {report}");
    }
}
