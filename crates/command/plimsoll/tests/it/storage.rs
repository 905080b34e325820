//! Storage studies from end to end, and what goes wrong with back ends.

use crate::common::{Place, edited, files, is_nowhere};
use plimsoll_model::start::Validity;
use plimsoll_testkit::s3::{ACCESS_KEY, SECRET_KEY, Server};
use std::fs;
use std::path::Path;

/// Two modes of one directory, two trials each.
const DIRECTORY: &str = r#"title    = "tiny"
question = "What does durability cost?"
design   = "trials"
repeats  = 2
noise_floor = false

[factors]
mode = { levels = ["app", "durable"], compare = true, baseline = "app" }
size = ["100KB"]

[store.local]
directory = "data"

[workload]
protocol = "storage"
store    = "local"
mode     = "{mode}"
size     = "{size}"
verify   = true
timeout  = "10s"
steps    = [{ do = "write" }, { do = "read" }]

[load]
users    = 2
duration = "1s"

[generator]
max_cpu      = "100%"
max_lateness = "10s"
"#;

/// A directory and a bucket.
fn with_bucket(endpoint: &str) -> String {
    let study =
        edited(DIRECTORY, r#"mode = { levels = ["app", "durable"], compare = true, baseline = "app" }"#, BACK_ENDS);
    let study = edited(&study, r#"mode     = "{mode}""#, "");
    let study = edited(&study, r#"store    = "local""#, r#"store    = "{backend}""#);
    format!("{study}\n[store.bucket]\ns3 = \"http://{endpoint}\"\nbucket = \"objects\"\n")
}

const BACK_ENDS: &str = r#"backend = { levels = ["local", "bucket"], compare = true, baseline = "local" }"#;

/// A server with one bucket.
fn server(place: &Place) -> Server {
    fs::create_dir_all(place.path("server/objects")).unwrap();
    Server::start(&place.path("server")).unwrap()
}

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

fn run_with_keys(place: &Place, access_key: &str, secret: &str) -> crate::common::Ended {
    let mut command = place.command(&RUN);
    command.env("AWS_ACCESS_KEY_ID", access_key).env("AWS_SECRET_ACCESS_KEY", secret);
    crate::common::Started::new(command).end()
}

#[test]
fn a_directory_is_studied_from_study_to_report_and_left_as_it_was() {
    let place = Place::with_study(DIRECTORY);
    place.plimsoll(&RUN).with_any_verdict();
    let report = place.read("bundle/report/report.md");
    for text in ["## Storage", "| 100KB |", "durable", "not durable", "page cache"] {
        assert!(report.contains(text), "expected `{text}` in:\n{report}");
    }
    assert!(!place.has("data"), "the folder was made for the run");
    let trials = plimsoll_bundle::read(&place.path("bundle")).unwrap().starts;
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert!(trial.validity().counts(), "{:?}", trial.summary);
        let storage = trial.loads[0].summary.work.storage().expect("it was storage");
        assert_eq!((storage.size, storage.left_behind.len()), (100_000, 0));
    }
}

#[test]
fn no_secret_of_the_environment_stands_in_a_bundle_though_a_system_prints_it() {
    let place = Place::empty();
    let server = server(&place);
    let chatty = "\n[system.chatty]\nstart = \"sh -c 'echo key $AWS_SECRET_ACCESS_KEY; exec sleep 60'\"\nready = { log = \"key\" }\n";
    place.write("study.toml", with_bucket(&server.address().to_string()) + chatty);
    let ended = run_with_keys(&place, ACCESS_KEY, SECRET_KEY).with_any_verdict();
    is_nowhere(SECRET_KEY, &place.path("bundle"));
    assert!(!format!("{ended:?}").contains(SECRET_KEY));
    let log = place.read("bundle/starts/0001/output-chatty.log");
    assert_eq!(log, format!("key {}\n", "*".repeat(SECRET_KEY.len())));
    let left: Vec<_> = files(&place.path("server/objects"));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn keys_made_for_a_run_reach_its_server_and_no_file_of_the_bundle() {
    let place = Place::empty();
    let study =
        edited(DIRECTORY, r#"mode = { levels = ["app", "durable"], compare = true, baseline = "app" }"#, BACK_ENDS);
    let study = edited(&study, r#"mode     = "{mode}""#, "");
    let study = edited(&study, r#"store    = "local""#, r#"store    = "{backend}""#);
    // It is no S3 server, so that the run fails: also then, what was made for it is kept secret.
    place.write(
        "study.toml",
        study
            + r#"
[store.bucket]
s3          = "http://{server.address}"
bucket      = "objects"
credentials = "generated"

[system.server]
only  = { backend = "bucket" }
start = "sh -c 'echo $SECRET | tee -a secrets.txt; exec {plimsoll} demo-server --mode mutex --listen {address}'"
env   = { SECRET = "{bucket.secret_key}" }
"#,
    );
    let ended = place.plimsoll(&RUN).with(3);
    let secrets = place.read("secrets.txt");
    let secret = secrets.lines().next().expect("the server was told one");
    assert_eq!(secret.len(), 40);
    is_nowhere(secret, &place.path("bundle"));
    assert!(!format!("{ended:?}").contains(secret));
}

#[test]
fn what_is_wrong_with_a_bucket_is_said() {
    for (access_key, bucket, says) in [(ACCESS_KEY, "missing", "missing"), ("somebody", "objects", "403")] {
        let place = Place::empty();
        let server = server(&place);
        let study = with_bucket(&server.address().to_string());
        place.write("study.toml", edited(&study, "bucket = \"objects\"", &format!("bucket = \"{bucket}\"")));
        run_with_keys(&place, access_key, SECRET_KEY).with(3).says(&["failed", says]);
    }
}

#[test]
fn keys_that_are_not_there_are_missed_before_anything_starts() {
    let place = Place::with_study(&with_bucket("127.0.0.1:9"));
    let mut command = place.command(&RUN);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    crate::common::Started::new(command).end().with(2).says(&["AWS_ACCESS_KEY_ID", "nothing was started"]);
    assert!(!place.has("bundle"));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::with_study(&with_bucket("127.0.0.1:9"));
    run_with_keys(&place, ACCESS_KEY, SECRET_KEY).with(3).says(&["127.0.0.1:9"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let place = Place::with_study(&edited(DIRECTORY, "directory = \"data\"", "directory = \"/proc/objects\""));
    place.plimsoll(&RUN).with(3).says(&["failed to make /proc/objects"]);
    let trials = plimsoll_bundle::read(&place.path("bundle")).unwrap().starts;
    assert!(matches!(trials[0].validity(), Validity::Failed(_)));
}

#[test]
fn a_profile_is_the_same_study_in_another_size() {
    let place = Place::with_study(&format!("{DIRECTORY}\n[profile.large]\nfactors.size = [\"1MB\", \"2MB\"]\n"));
    place.plimsoll(&["plan", "study.toml", "--profile", "large"]).with(0).prints(&["size = 2MB"]);
    place.plimsoll(&["run", "study.toml", "--profile", "large", "--out", "bundle"]).with_any_verdict();
    assert_eq!(plimsoll_bundle::read(&place.path("bundle")).unwrap().facts.profile.as_deref(), Some("large"));
    assert!(place.read("bundle/report/report.md").contains("plimsoll run --profile large study.toml"));
    place.plimsoll(&["check", "study.toml", "--profile", "small"]).with(2).says(&["no profile is named `small`"]);
}

#[test]
fn what_a_killed_run_left_is_named_by_the_one_that_goes_on() {
    let place = Place::with_study(&edited(DIRECTORY, "\"1s\"", "\"20s\""));
    let mut run = place.start(&RUN);
    run.wait_until("the load of the first trial", |_| place.has("bundle/starts/0001.partial/objects.txt"));
    run.signal(rustix::process::Signal::KILL);
    run.end();
    place.wait_for_silence();
    let left = place.read("bundle/starts/0001.partial/objects.txt");
    assert!(Path::new(&left).is_dir(), "{left}");
    let mut again = place.start(&["run", "study.toml", "--resume", "--out", "bundle"]);
    again.wait_until("the warning", |run| run.stderr().contains("was broken off and left objects in"));
    again.signal(rustix::process::Signal::INT);
    again.end().with(130);
    assert!(Path::new(&left).is_dir(), "what another run wrote is not this one's to delete");
    assert!(!place.has("bundle/starts/0001.partial/objects.txt"), "an interrupted trial removes its own");
}
